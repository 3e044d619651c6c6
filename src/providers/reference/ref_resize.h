/* ref_resize.h: where an output of Resize looks along one axis; for kernels of other providers. */
#ifndef NORI_PROVIDERS_REFERENCE_REF_RESIZE_H
#define NORI_PROVIDERS_REFERENCE_REF_RESIZE_H

#include "ops/resize.h"

/* Mode nearest: the input of output o on axis d of size in; -1: outside. */
int64_t nori__resize_nearest_at(const nori__resize *r, int d, int64_t in, int64_t o);
/* Mode linear without antialiasing or a region: two inputs and their weights. */
void nori__resize_linear_at(const nori__resize *r, int d, int64_t in, int64_t o, int64_t at[2],
                            double weight[2]);

#endif
