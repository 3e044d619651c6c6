/* op_rows.c: reductions, global pools and softmax. */
#include "ops/reduce.h"
#include "providers/gpu/gpu.h"

#define FEW 32 /* elements of a row that one work-item takes on alone */

static void lower_along(gpu_lower *l, gpu_mem *x, gpu_mem *y, int64_t outer, int64_t n,
                        int64_t inner, int kind)
{
    bool rows = inner == 1 && n > FEW;
    nori__gpu_kernel(l, GPU_IN_rows, rows ? "reduce_rows" : "reduce_lines");
    nori__gpu_mem(l, x);
    nori__gpu_mem(l, y);
    if (rows) {
        nori__gpu_local(l);
    } else {
        nori__gpu_int(l, outer * inner);
    }
    nori__gpu_int(l, n);
    if (!rows) {
        nori__gpu_int(l, inner);
    }
    nori__gpu_int(l, kind);
    if (rows) {
        nori__gpu_rows(l, outer, n);
    } else {
        nori__gpu_items(l, outer * inner, 1, 1);
    }
}

/* ---- global pools ---- */

static bool takes_global(const gpu_ask *ask)
{
    return ask->node->inputs[0]->type.rank >= 2 || nori__gpu_no(ask, "it takes [N, C, ...] only");
}

static void lower_global(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0);
    lower_along(l, nori__gpu_in(l, n, 0), nori__gpu_out(l, n, 0), x->dims[0] * x->dims[1],
                nori__gpu_product(x->dims, 2, x->rank), 1, n->op->kind);
}

/* ---- reductions ---- */

static bool read_axes(gpu_lower *l, const gpu_node *n, bool fold[NORI_MAX_RANK])
{
    const nori_tensor *t = nori__gpu_content(l, n, 1);
    int rank = nori__gpu_in_shape(l, n, 0)->rank;
    int64_t axes[NORI_MAX_RANK];
    if (nori__gpu_bad(l)) {
        return false;
    }
    if (t && t->count > rank) {
        nori__fail(nori__gpu_error(l), NORI_ERROR_DATA, "axes has %lld entries for rank %d",
                   (long long)t->count, rank);
        nori__gpu_fail(l, NORI_ERROR_DATA);
        return false;
    }
    for (int64_t i = 0; t && i < t->count; i++) {
        axes[i] = nori__tensor_get_i64(t, i);
    }
    nori_status status = nori__reduce_axes(n->node, t ? axes : NULL, t ? t->count : 0, rank,
                                           NORI_ERROR_DATA, nori__gpu_error(l), fold);
    if (status != NORI_OK) {
        nori__gpu_fail(l, status);
    }
    return status == NORI_OK;
}

/* Axes that stay, then axes that go: then what goes lies together. */
static gpu_mem *turn(gpu_lower *l, const gpu_node *n, const bool fold[NORI_MAX_RANK])
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0);
    gpu_mem *turned = nori__gpu_scratch(l, x->count);
    int64_t by[NORI_MAX_RANK], step = 1;
    gpu_copy c = {.rank = 0};
    nori__gpu_strides(x, by);
    for (int pass = 0; pass < 2; pass++) {
        for (int d = 0; d < x->rank; d++) {
            if (fold[d] == (pass == 1)) {
                c.sizes[c.rank] = x->dims[d];
                c.by_x[c.rank++] = by[d];
            }
        }
    }
    for (int d = c.rank - 1; d >= 0; d--) {
        c.by_y[d] = step;
        step *= c.sizes[d];
    }
    nori__gpu_copy(l, nori__gpu_in(l, n, 0), turned, &c);
    return turned;
}

static void lower_reduce(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0);
    bool fold[NORI_MAX_RANK];
    int first = -1, last = -1;
    int64_t size = 1;
    if (!read_axes(l, n, fold)) {
        return;
    }
    for (int d = 0; d < x->rank; d++) {
        if (fold[d]) {
            first = first < 0 ? d : first;
            last = d;
            size *= x->dims[d];
        }
    }
    gpu_mem *from = nori__gpu_in(l, n, 0), *y = nori__gpu_out(l, n, 0);
    if (first < 0) { /* nothing goes: each element is a sum of its own */
        lower_along(l, from, y, x->count, 1, 1, n->op->kind);
        return;
    }
    bool together = true;
    for (int d = first; d <= last; d++) {
        together = together && fold[d];
    }
    if (together) {
        lower_along(l, from, y, nori__gpu_product(x->dims, 0, first), size,
                    nori__gpu_product(x->dims, last + 1, x->rank), n->op->kind);
        return;
    }
    int64_t rows = nori__gpu_out_shape(l, n, 0)->count;
    lower_along(l, turn(l, n, fold), y, rows, size, 1, n->op->kind);
}

/* ---- softmax ---- */

static void lower_softmax(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0);
    bool old = n->node->version < 13; /* then the axes from axis on are one */
    int64_t axis = nori__attr_i(n->node, "axis", old ? 1 : -1);
    int rank = x->rank;
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis > rank || (!old && rank > 0 && axis == rank)) {
        nori__fail(nori__gpu_error(l), NORI_ERROR_MODEL, "axis is outside a tensor of rank %d",
                   rank);
        nori__gpu_fail(l, NORI_ERROR_MODEL);
        return;
    }
    int at = (int)axis;
    int64_t outer = nori__gpu_product(x->dims, 0, at);
    int64_t size = old         ? nori__gpu_product(x->dims, at, rank)
                   : rank == 0 ? 1
                               : x->dims[at];
    int64_t inner = old || rank == 0 ? 1 : nori__gpu_product(x->dims, at + 1, rank);
    bool rows = inner == 1 && size > FEW;
    nori__gpu_kernel(l, GPU_IN_rows, rows ? "softmax_rows" : "softmax_lines");
    nori__gpu_mem(l, nori__gpu_in(l, n, 0));
    nori__gpu_mem(l, nori__gpu_out(l, n, 0));
    if (rows) {
        nori__gpu_local(l);
        nori__gpu_int(l, size);
    } else {
        nori__gpu_int(l, outer * inner);
        nori__gpu_int(l, size);
        nori__gpu_int(l, inner);
    }
    nori__gpu_int(l, nori__same(n->op->name, "LogSoftmax"));
    if (rows) {
        nori__gpu_rows(l, outer, size);
    } else {
        nori__gpu_items(l, outer * inner, 1, 1);
    }
}

#define ROW(kind) {"Reduce" #kind, GPU_IN_rows, false, REDUCE_##kind, NULL, NULL, lower_reduce}
const gpu_op nori__gpu_row_ops[] = {
    {"GlobalAveragePool", GPU_IN_rows, false, REDUCE_Mean, takes_global, NULL, lower_global},
    {"GlobalMaxPool", GPU_IN_rows, false, REDUCE_Max, takes_global, NULL, lower_global},
    ROW(Sum),
    ROW(Mean),
    ROW(Max),
    ROW(Min),
    ROW(Prod),
    ROW(L1),
    ROW(L2),
    ROW(SumSquare),
    ROW(LogSum),
    {"Softmax", GPU_IN_rows, false, 0, NULL, NULL, lower_softmax},
    {"LogSoftmax", GPU_IN_rows, false, 0, NULL, NULL, lower_softmax},
    {0},
};
#undef ROW
