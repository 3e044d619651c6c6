/* gpu_ops.c: which nodes the provider takes, and what they would cost. */
#include <stdio.h>

#include "plan/partition.h"
#include "providers/gpu/gpu.h"

const gpu_op *nori__gpu_op(const nori__node *node)
{
    static const gpu_op *const tables[] = {
        nori__gpu_unary_ops, nori__gpu_binary_ops, nori__gpu_conv_ops,
        nori__gpu_gemm_ops,  nori__gpu_pool_ops,   nori__gpu_row_ops,
        nori__gpu_norm_ops,  nori__gpu_move_ops,   nori__gpu_resize_ops,
        nori__gpu_attention_ops,
    };
    for (size_t t = 0; !node->domain[0] && t < NORI__COUNT(tables); t++) {
        for (const gpu_op *op = tables[t]; op->name; op++) {
            if (nori__same(op->name, node->op_type)) {
                return op;
            }
        }
    }
    return NULL;
}

bool nori__gpu_no(const gpu_ask *ask, const char *fmt, ...)
{
    va_list list;
    va_start(list, fmt);
    vsnprintf(ask->reason, ask->reason_size, fmt, list);
    va_end(list);
    return false;
}

bool nori__gpu_fixed(const gpu_ask *ask, uint32_t i, const char *name)
{
    return !nori__gpu_has(ask->node, i) || nori__gpu_const(ask->node, i) ||
           nori__gpu_no(ask, "it takes constant %s only", name);
}

/* What holds for every operator: floats of a known rank that 32-bit indices reach; integers may
 * only say where or how large, and are read on the host. */
static bool value_fits(const gpu_ask *ask, const nori__value *v, bool output)
{
    if (!v) {
        return true;
    }
    int64_t count = 1;
    if (v->type.kind != NORI_KIND_TENSOR || v->type.rank < 0 || v->type.rank > 8) {
        return nori__gpu_no(ask, "it takes tensors of a known rank up to 8 only");
    }
    for (int d = 0; d < v->type.rank; d++) {
        int64_t size = v->type.dims[d].value;
        if (size > 0 && (!nori__mul_dim(count, size, &count) || count > INT32_MAX)) {
            return nori__gpu_no(ask, "it takes tensors of less than 2^31 elements only");
        }
    }
    nori_type elem = (nori_type)v->type.elem;
    if (elem == NORI_FLOAT || (!output && (elem == NORI_INT64 || elem == NORI_INT32))) {
        return true;
    }
    return nori__gpu_no(ask, "it takes float32 only, found %s", nori_type_name(elem));
}

static bool takes(const gpu_ask *ask)
{
    const nori__node *node = ask->node;
    const gpu_op *op = nori__gpu_op(node);
    if (!op) {
        return nori__gpu_no(ask, "it has no %s", node->op_type);
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!value_fits(ask, node->inputs[i], false)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!value_fits(ask, node->outputs[i], true)) {
            return false;
        }
        if (i > 0 && node->outputs[i] && !nori__same(op->name, "Split")) {
            return nori__gpu_no(ask, "it makes the first output only");
        }
    }
    if (!nori__gpu_has(node, 0) || node->inputs[0]->type.elem != NORI_FLOAT ||
        node->output_count == 0 || !node->outputs[0]) {
        return nori__gpu_no(ask, "its first input must be float32, its first output wanted");
    }
    return !op->takes || op->takes(ask);
}

nori_status nori__gpu_claim(void *user, const nori_node *node, nori_claim *claim, nori_error *err)
{
    gpu_self *self = user;
    const gpu_ask ask = {node, self, claim->reason, sizeof(claim->reason)};
    (void)err;
    claim->taken = takes(&ask);
    bool free = self->free_cost || (self->is_cpu && !self->costs_set);
    if (claim->taken && !free) {
        /* A kernel's start, and what nori would take on one core, faster. */
        claim->cost_ns = (self->is_cpu ? 2e4 : 5e3) + nori__cost_ns(node) / self->speed;
    }
    return NORI_OK;
}
