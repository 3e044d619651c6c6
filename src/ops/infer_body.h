/* infer_body.h: what infer_graph.c asks of infer_body.c: types on the way into subgraphs. */
#ifndef NORI_OPS_INFER_BODY_H
#define NORI_OPS_INFER_BODY_H

#include "ops/op.h"

/* Carried values may change shape from one iteration to the next. Bodies are inferred with the
 * initial shape first; where what comes out differs, again with less. */
enum {
    NORI__CARRY_SHAPE, /* the initial type */
    NORI__CARRY_RANK,  /* sizes that changed are open */
    NORI__CARRY_ELEM   /* only the element type */
};

bool nori__is_loop(const nori__node *node); /* has carried values */
/* Types of body's inputs from those of node's. false: out of memory. */
bool nori__body_bind(const nori__node *node, nori__graph *body, int carry);
/* Whether the carried values come out of the body as they went in. */
bool nori__body_settled(const nori__node *node);

#endif
