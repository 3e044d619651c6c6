/* joined.h: operators of the domain "nori" that the cpu provider's rewrites put in the place of
 * several standard ones (joined_ops.c). Only the cpu provider makes such nodes, and only it runs
 * them. */
#ifndef NORI_PROVIDERS_CPU_JOINED_H
#define NORI_PROVIDERS_CPU_JOINED_H

#include "providers/cpu/cpu.h"

/* Ids past those of the list and of channel blocks. */
typedef enum nori__joined_id {
    /* A, constant matrix B, column bias or none, what is added (shaped like the result) or none;
     * activation as FusedConv, or Gelu, GeluTanh. */
    NORI__JOINED_PRODUCT = NORI__OP_COUNT + 1000,
    /* softmax(scale Q K + mask) V over the last two axes, with broadcasting. Q, K, V are inputs 0 to
     * 2 with their axes in the order perm_q, perm_k, perm_v; the mask, or none, is 3; perm turns the
     * result. */
    NORI__JOINED_ATTEND
} nori__joined_id;
const nori__op *nori__joined_op(nori__joined_id id);
const nori__kernel *nori__joined_kernel(const nori__node *node); /* NULL: not such a node */

static inline bool nori__joined_is(const nori__node *n, nori__joined_id id)
{
    return n->op && (int)n->op->id == (int)id;
}

extern const nori__kernel nori__cpu_attend;
nori_status nori__infer_attend(nori__infer *c);

/* fuse_attention.c: products around a Softmax become Attend. */
nori_status nori__cpu_fuse_attention(nori__ir *ir, nori_error *err);
/* fuse_products.c: MatMul by a constant matrix takes in what follows it. */
nori_status nori__cpu_fuse_products(nori__ir *ir, nori_error *err);

#endif
