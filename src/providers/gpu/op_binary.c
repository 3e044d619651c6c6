/* op_binary.c: functions of two numbers, with broadcasting. */
#include "providers/gpu/gpu.h"

static bool takes_binary(const gpu_ask *ask)
{
    const nori__node *node = ask->node;
    if (node->input_count != 2 || !nori__gpu_has(node, 1)) {
        return nori__gpu_no(ask, "it takes two inputs only, found %u", node->input_count);
    }
    if (node->version < 7 && nori__same(node->op_type, "PRelu")) {
        return nori__gpu_no(ask, "it takes PRelu of opset 7 and later only"); /* by channel before */
    }
    return node->inputs[1]->type.elem == NORI_FLOAT ||
           nori__gpu_no(ask, "its second input must be float32");
}

static bool same_dims(const gpu_shape *a, const gpu_shape *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) == 0;
}

int nori__gpu_binary_kind(const nori__node *node)
{
    for (const gpu_op *op = nori__gpu_binary_ops; op->name && !node->domain[0]; op++) {
        if (nori__same(op->name, node->op_type)) {
            return node->input_count == 2 ? op->kind : -1;
        }
    }
    return -1;
}

void nori__gpu_spread(const gpu_shape *s, int64_t by[8])
{
    int64_t step = 1;
    memset(by, 0, 8 * sizeof(*by));
    for (int d = s->rank - 1; d >= 0; d--) {
        by[8 - s->rank + d] = s->dims[d] == 1 ? 0 : step;
        step *= s->dims[d];
    }
}

static void lower_binary(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *p = nori__gpu_in_shape(l, n, 0), *q = nori__gpu_in_shape(l, n, 1);
    const gpu_shape *y = nori__gpu_out_shape(l, n, 0);
    bool same = same_dims(p, y) && same_dims(q, y);
    nori__gpu_kernel(l, GPU_IN_elementwise, same ? "binary_same" : "binary_broadcast");
    nori__gpu_mem(l, nori__gpu_in(l, n, 0));
    nori__gpu_mem(l, nori__gpu_in(l, n, 1));
    nori__gpu_mem(l, nori__gpu_out(l, n, 0));
    if (!same) {
        int64_t sizes[8] = {1, 1, 1, 1, 1, 1, 1, 1}, by_p[8], by_q[8];
        for (int d = 0; d < y->rank; d++) {
            sizes[8 - y->rank + d] = y->dims[d] > 0 ? y->dims[d] : 1;
        }
        nori__gpu_spread(p, by_p);
        nori__gpu_spread(q, by_q);
        nori__gpu_int8(l, sizes);
        nori__gpu_int8(l, by_p);
        nori__gpu_int8(l, by_q);
    }
    nori__gpu_int(l, y->count);
    nori__gpu_int(l, n->op->kind);
    nori__gpu_fused(l, n);
    nori__gpu_items(l, y->count, 1, 1);
}

#define ROW(name) {#name, GPU_IN_elementwise, true, BINARY_##name, takes_binary, NULL, lower_binary}
const gpu_op nori__gpu_binary_ops[] = {
    ROW(Add),
    ROW(Sub),
    ROW(Mul),
    ROW(Div),
    ROW(Pow),
    ROW(Max),
    ROW(Min),
    ROW(PRelu),
    {"Sum", GPU_IN_elementwise, true, BINARY_Add, takes_binary, NULL, lower_binary},
    {0},
};
#undef ROW
