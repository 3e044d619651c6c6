/* op_pool.c: maximum and average over windows. */
#include "ops/window.h"
#include "providers/gpu/gpu.h"

static bool takes_pool(const gpu_ask *ask)
{
    int rank = ask->node->inputs[0]->type.rank;
    return (rank >= 3 && rank <= 4) ||
           nori__gpu_no(ask, "it takes one or two spatial dimensions only");
}

static void lower_pool(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0), *y = nori__gpu_out_shape(l, n, 0);
    nori__window w;
    int dims = x->rank - 2, skip = 2 - dims;
    int64_t in[2] = {1, 1}, out[2] = {1, 1}, kernel[2] = {1, 1}, stride[2] = {1, 1};
    int64_t dilation[2] = {1, 1}, begin[2] = {0, 0}, end[2] = {0, 0}, size;
    bool pads = n->op->kind == POOL_average && nori__attr_i(n->node, "count_include_pad", 0) != 0;
    nori_status status = nori__window_read(n->node, nori__gpu_error(l), dims, NULL, &w);
    for (int d = 0; d < dims && status == NORI_OK; d++) {
        in[skip + d] = x->dims[2 + d];
        out[skip + d] = y->dims[2 + d];
        status = nori__window_out(&w, nori__gpu_error(l), d, in[skip + d], &size);
        kernel[skip + d] = w.kernel[d];
        stride[skip + d] = w.stride[d];
        dilation[skip + d] = w.dilation[d];
        begin[skip + d] = w.begin[d];
        end[skip + d] = w.end[d];
    }
    if (status != NORI_OK) {
        nori__gpu_fail(l, status);
        return;
    }
    int64_t planes = x->dims[0] * x->dims[1];
    nori__gpu_kernel(l, GPU_IN_pool, "pool_window");
    nori__gpu_mem(l, nori__gpu_in(l, n, 0));
    nori__gpu_mem(l, nori__gpu_out(l, n, 0));
    nori__gpu_int(l, planes);
    nori__gpu_int4(l, in[0], in[1], out[0], out[1]);
    nori__gpu_int4(l, kernel[0], kernel[1], stride[0], stride[1]);
    nori__gpu_int4(l, dilation[0], dilation[1], begin[0], begin[1]);
    nori__gpu_int2(l, pads ? end[0] : -1, pads ? end[1] : -1);
    nori__gpu_int(l, n->op->kind);
    nori__gpu_items(l, out[1], out[0], planes);
}

const gpu_op nori__gpu_pool_ops[] = {
    {"MaxPool", GPU_IN_pool, false, POOL_max, takes_pool, NULL, lower_pool},
    {"AveragePool", GPU_IN_pool, false, POOL_average, takes_pool, NULL, lower_pool},
    {0},
};
