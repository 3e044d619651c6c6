/* cost.h: multiply-accumulates of one node, from the shapes of what goes in and out. */
#ifndef NORI_PLAN_COST_H
#define NORI_PLAN_COST_H

#include "ops/op.h"

/* in[i], out[i]: type and shape only, NULL where absent or not known. False: the shapes that
 * matter are not known, or nothing says how this operator is counted. Operators that do no
 * products (elementwise, pooling, moving) count 0. */
bool nori__cost_macs(const nori__node *node, const nori_tensor *const *in, uint32_t n_in,
                     const nori_tensor *const *out, uint32_t n_out, uint64_t *macs);

#endif
