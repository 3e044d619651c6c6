/* stretch.h: the nodes that make a value out of values another model has too. */
#ifndef NORI_TOOLS_VALIDATE_STRETCH_H
#define NORI_TOOLS_VALIDATE_STRETCH_H

#include "graph/graph.h"

typedef struct nori__stretches {
    bool (*known)(void *user, const nori__value *v); /* where a walk upstream ends */
    void *user;
    uint32_t *place; /* by node id: 1 + its place in the main graph; 0: not there */
    bool *taken;     /* by node id, while one is gathered */
    uint32_t n_nodes;
    nori__vec nodes; /* of the stretch gathered last, in order */
    const nori_allocator *a;
} nori__stretches;

/* The graph must not change until the end. */
nori_status nori__stretches_begin(nori__stretches *s, const nori_allocator *a, const nori__ir *ir,
                                  nori_error *err);
void nori__stretches_end(nori__stretches *s);
/* Fills s->nodes with node and what it takes to feed it from known values and constants. *found
 * false: there is no such stretch, or it is long. */
nori_status nori__stretch_to(nori__stretches *s, nori__node *node, bool *found, nori_error *err);
/* The node that the stretch is about: the last that does more than change the form of numbers. */
const nori__node *nori__stretch_heart(const nori__stretches *s, const nori__node *node);

#endif
