/* op_pool.c: maximum and average over windows. */
#include "ops/window.h"
#include "providers/opencl/opencl.h"

static bool takes_pool(const ocl_ask *ask)
{
    int rank = ask->node->inputs[0]->type.rank;
    return (rank >= 3 && rank <= 4) ||
           nori__ocl_no(ask, "it takes one or two spatial dimensions only");
}

static void lower_pool(ocl_lower *l, const ocl_node *n)
{
    const ocl_shape *x = nori__ocl_in_shape(l, n, 0), *y = nori__ocl_out_shape(l, n, 0);
    nori__window w;
    int dims = x->rank - 2, skip = 2 - dims;
    int64_t in[2] = {1, 1}, out[2] = {1, 1}, kernel[2] = {1, 1}, stride[2] = {1, 1};
    int64_t dilation[2] = {1, 1}, begin[2] = {0, 0}, end[2] = {0, 0}, size;
    bool pads = n->op->kind == POOL_average && nori__attr_i(n->node, "count_include_pad", 0) != 0;
    nori_status status = nori__window_read(n->node, nori__ocl_error(l), dims, NULL, &w);
    for (int d = 0; d < dims && status == NORI_OK; d++) {
        in[skip + d] = x->dims[2 + d];
        out[skip + d] = y->dims[2 + d];
        status = nori__window_out(&w, nori__ocl_error(l), d, in[skip + d], &size);
        kernel[skip + d] = w.kernel[d];
        stride[skip + d] = w.stride[d];
        dilation[skip + d] = w.dilation[d];
        begin[skip + d] = w.begin[d];
        end[skip + d] = w.end[d];
    }
    if (status != NORI_OK) {
        nori__ocl_fail(l, status);
        return;
    }
    int64_t planes = x->dims[0] * x->dims[1];
    nori__ocl_kernel(l, OCL_IN_pool, "pool_window");
    nori__ocl_mem(l, nori__ocl_in(l, n, 0));
    nori__ocl_mem(l, nori__ocl_out(l, n, 0));
    nori__ocl_int(l, planes);
    nori__ocl_int4(l, in[0], in[1], out[0], out[1]);
    nori__ocl_int4(l, kernel[0], kernel[1], stride[0], stride[1]);
    nori__ocl_int4(l, dilation[0], dilation[1], begin[0], begin[1]);
    nori__ocl_int2(l, pads ? end[0] : -1, pads ? end[1] : -1);
    nori__ocl_int(l, n->op->kind);
    nori__ocl_items(l, out[1], out[0], planes);
}

const ocl_op nori__ocl_pool_ops[] = {
    {"MaxPool", OCL_IN_pool, false, POOL_max, takes_pool, NULL, lower_pool},
    {"AveragePool", OCL_IN_pool, false, POOL_average, takes_pool, NULL, lower_pool},
    {0},
};
