/* reduce.h: what inference and kernels of reductions both need: axes read in one place. */
#ifndef NORI_OPS_REDUCE_H
#define NORI_OPS_REDUCE_H

#include "ops/op.h"

/* Which axes a reduction of a tensor of this rank folds. Values come from input 1 (axes, given as
 * n integers) or, axes NULL, from the old attribute. status is that of errors: MODEL or DATA. */
nori_status nori__reduce_axes(const nori__node *node, const int64_t *axes, int64_t n, int rank,
                              nori_status status, nori_error *err, bool fold[NORI_MAX_RANK]);

/* The axis attribute for a rank; a scalar is taken as one element along axis 0 or -1. */
nori_status nori__scalar_axis(const nori__node *node, int64_t otherwise, int rank,
                              nori_status status, nori_error *err, int *axis);

#endif
