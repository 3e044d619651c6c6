/* op_binary.c: functions of two numbers, with broadcasting. */
#include "providers/opencl/opencl.h"

static bool takes_binary(const ocl_ask *ask)
{
    const nori__node *node = ask->node;
    if (node->input_count != 2 || !nori__ocl_has(node, 1)) {
        return nori__ocl_no(ask, "it takes two inputs only, found %u", node->input_count);
    }
    if (node->version < 7 && nori__same(node->op_type, "PRelu")) {
        return nori__ocl_no(ask, "it takes PRelu of opset 7 and later only"); /* by channel before */
    }
    return node->inputs[1]->type.elem == NORI_FLOAT ||
           nori__ocl_no(ask, "its second input must be float32");
}

static bool same_dims(const ocl_shape *a, const ocl_shape *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0])) == 0;
}

/* Strides with which s goes along the 8 last axes of the result; 0: repeated. */
static void spread(const ocl_shape *s, int64_t by[8])
{
    int64_t step = 1;
    memset(by, 0, 8 * sizeof(*by));
    for (int d = s->rank - 1; d >= 0; d--) {
        by[8 - s->rank + d] = s->dims[d] == 1 ? 0 : step;
        step *= s->dims[d];
    }
}

static void lower_binary(ocl_lower *l, const ocl_node *n)
{
    const ocl_shape *p = nori__ocl_in_shape(l, n, 0), *q = nori__ocl_in_shape(l, n, 1);
    const ocl_shape *y = nori__ocl_out_shape(l, n, 0);
    bool same = same_dims(p, y) && same_dims(q, y);
    nori__ocl_kernel(l, OCL_IN_elementwise, same ? "binary_same" : "binary_broadcast");
    nori__ocl_mem(l, nori__ocl_in(l, n, 0));
    nori__ocl_mem(l, nori__ocl_in(l, n, 1));
    nori__ocl_mem(l, nori__ocl_out(l, n, 0));
    if (!same) {
        int64_t sizes[8] = {1, 1, 1, 1, 1, 1, 1, 1}, by_p[8], by_q[8];
        for (int d = 0; d < y->rank; d++) {
            sizes[8 - y->rank + d] = y->dims[d] > 0 ? y->dims[d] : 1;
        }
        spread(p, by_p);
        spread(q, by_q);
        nori__ocl_int8(l, sizes);
        nori__ocl_int8(l, by_p);
        nori__ocl_int8(l, by_q);
    }
    nori__ocl_int(l, y->count);
    nori__ocl_int(l, n->op->kind);
    nori__ocl_fused(l, n);
    nori__ocl_items(l, y->count, 1, 1);
}

#define ROW(name) {#name, OCL_IN_elementwise, true, BINARY_##name, takes_binary, NULL, lower_binary}
const ocl_op nori__ocl_binary_ops[] = {
    ROW(Add),
    ROW(Sub),
    ROW(Mul),
    ROW(Div),
    ROW(Pow),
    ROW(Max),
    ROW(Min),
    ROW(PRelu),
    {"Sum", OCL_IN_elementwise, true, BINARY_Add, takes_binary, NULL, lower_binary},
    {0},
};
#undef ROW
