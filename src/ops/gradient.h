/* gradient.h: shared between gradient.c (the walk) and the files of derivatives; nobody else's. */
#ifndef NORI_OPS_GRADIENT_H
#define NORI_OPS_GRADIENT_H

#include "ops/resolve.h"

/* While derivatives are put in front of node `at`. Every function that makes a value gives NULL once
 * something failed; status says what. */
typedef struct nori__grad {
    nori__graph *graph;
    nori__node *at;
    nori__node *last;      /* the node made last, for its attributes */
    nori__value **of;      /* by id of a forward value: derivative of y by it so far, or NULL */
    bool *depends;         /* by id: whether it depends on what is differentiated by */
    uint32_t values;       /* entries of the two */
    nori_status status;
    nori_error *err;
} nori__grad;

/* The derivatives by the node's inputs from those by its outputs; nori__grad_out gives these, and
 * nori__grad_give takes those. */
typedef void (*nori__grad_rule)(nori__grad *d, nori__node *n);

/* gradient.c */
bool nori__grad_wants(const nori__grad *d, const nori__node *n, uint32_t input);
/* Of an output, or NULL where y does not depend on it. */
nori__value *nori__grad_out(const nori__grad *d, const nori__node *n, uint32_t output);
void nori__grad_give(nori__grad *d, nori__node *n, uint32_t input, nori__value *derivative);
void nori__grad_refuse(nori__grad *d, const nori__node *n, const char *why);

/* gradient_emit.c: new nodes. */
nori__value *nori__emit(nori__grad *d, const char *op, nori__value *a, nori__value *b,
                        nori__value *c);
nori__value *nori__emit_ints(nori__grad *d, const int64_t *v, int64_t count); /* 1-D constant */
/* Rank 0, of the type of a forward value: new ones have none yet. */
nori__value *nori__emit_number(nori__grad *d, double v, const nori__value *like);
void nori__emit_attr(nori__grad *d, const char *name, int64_t v); /* of the node made last */
void nori__emit_attrs(nori__grad *d, const char *name, const int64_t *v, size_t n);
void nori__emit_attr_float(nori__grad *d, const char *name, float v);
nori__value *nori__emit_shape(nori__grad *d, nori__value *v);
nori__value *nori__emit_expand(nori__grad *d, nori__value *v, nori__value *like);
nori__value *nori__emit_reshape(nori__grad *d, nori__value *v, nori__value *like);
/* v, of the shape of `whole`, summed over the axes along which x was broadcast to it. */
nori__value *nori__emit_sum_to(nori__grad *d, nori__value *v, const nori__value *whole,
                               nori__value *x);

/* Rule of an operator, or NULL: gradient_rules.c, which asks gradient_linear.c too. */
nori__grad_rule nori__grad_rule_find(const nori__node *n);
void nori__grad_matmul(nori__grad *d, nori__node *n);
void nori__grad_gemm(nori__grad *d, nori__node *n);
void nori__grad_conv(nori__grad *d, nori__node *n);

#endif
