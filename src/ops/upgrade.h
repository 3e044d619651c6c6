/* upgrade.h: shared between upgrade.c (the table) and the files of rewrites; nobody else's. */
#ifndef NORI_OPS_UPGRADE_H
#define NORI_OPS_UPGRADE_H

#include "ops/resolve.h"

/* A rewrite gets a node whose version is below the one the table names; it is then given the newest
 * version. */

/* upgrade.c: constants as inputs. count -1: a scalar. */
nori_status nori__upgrade_ints(nori__node *n, uint32_t input, const int64_t *v, int64_t count,
                               nori_error *err);
nori_status nori__upgrade_floats(nori__node *n, uint32_t input, nori_type type, const float *v,
                                 int64_t count, nori_error *err);
/* Attribute of integers becomes an input; nothing when it is not there. */
nori_status nori__upgrade_list(nori__node *n, const char *attr, uint32_t input, nori_error *err);
/* Element type of an input, float32 when not known. */
nori_type nori__upgrade_elem(const nori__node *n, uint32_t input);

/* upgrade_forms.c: attributes that became inputs. */
nori_status nori__upgrade_axes(nori__node *n, nori_error *err);
nori_status nori__upgrade_split(nori__node *n, nori_error *err);
nori_status nori__upgrade_slice(nori__node *n, nori_error *err);
nori_status nori__upgrade_pad(nori__node *n, nori_error *err);
nori_status nori__upgrade_clip(nori__node *n, nori_error *err);
nori_status nori__upgrade_topk(nori__node *n, nori_error *err);
nori_status nori__upgrade_dropout(nori__node *n, nori_error *err);
nori_status nori__upgrade_reshape(nori__node *n, nori_error *err);
nori_status nori__upgrade_dft(nori__node *n, nori_error *err);
nori_status nori__upgrade_tile(nori__node *n, nori_error *err);

/* upgrade_meaning.c: old meanings said in new words. */
nori_status nori__upgrade_broadcast(nori__node *n, nori_error *err);
nori_status nori__upgrade_upsample(nori__node *n, nori_error *err);
nori_status nori__upgrade_resize(nori__node *n, nori_error *err);
nori_status nori__upgrade_cast(nori__node *n, nori_error *err);
nori_status nori__upgrade_scatter(nori__node *n, nori_error *err);
nori_status nori__upgrade_lp(nori__node *n, nori_error *err);
nori_status nori__upgrade_grid(nori__node *n, nori_error *err);
nori_status nori__upgrade_roi(nori__node *n, nori_error *err);
nori_status nori__upgrade_batchnorm(nori__node *n, nori_error *err);

/* gradient.c: becomes the nodes that compute it. */
nori_status nori__upgrade_gradient(nori__node *n, nori_error *err);

#endif
