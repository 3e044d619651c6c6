/* infer_dims.h: arithmetic on dimensions that may not be known, for the inference of attention
 * layers. What does not fit or is not known gives an unknown dimension. */
#ifndef NORI_OPS_INFER_DIMS_H
#define NORI_OPS_INFER_DIMS_H

#include "ops/op.h"

static inline nori__dim nori__in_dim(const nori__infer *c, uint32_t i, int d)
{
    return nori__in_rank(c, i) > d ? c->in[i].dims[d] : NORI__DIM_ANY;
}

static inline nori__dim nori__dim_sum(nori__dim a, nori__dim b)
{
    int64_t s;
    return a.value >= 0 && b.value >= 0 && nori__add_i64(a.value, b.value, &s) ? nori__dim_of(s)
                                                                              : NORI__DIM_ANY;
}

/* A packed dimension of n parts: the size of one. */
static inline nori__dim nori__dim_part(nori__dim whole, int64_t n)
{
    return whole.value >= 0 && n > 0 ? nori__dim_of(whole.value / n) : NORI__DIM_ANY;
}

static inline nori__dim nori__dim_times(nori__dim one, int64_t n)
{
    int64_t p;
    return one.value >= 0 && n > 0 && nori__mul_dim(one.value, n, &p) ? nori__dim_of(p)
                                                                     : NORI__DIM_ANY;
}

static inline nori_status nori__rank_error(nori__infer *c, uint32_t i, const char *expected)
{
    return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, expected %s", i,
                      nori__in_rank(c, i), expected);
}

#endif
