/* op_move.c: what only moves elements: other shapes over the same bytes, copies by strides. Pad and
 * Gather, which look places up in tables, are in op_resize.c. */
#include "ops/content.h"
#include "providers/gpu/gpu.h"

int64_t nori__gpu_product(const int64_t *dims, int from, int to)
{
    int64_t n = 1; /* of sizes whose whole product was checked */
    for (int d = from; d < to; d++) {
        n *= dims[d];
    }
    return n;
}

void nori__gpu_strides(const gpu_shape *s, int64_t *strides)
{
    int64_t step = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= s->dims[d];
    }
}

/* Axes that go on where the next one ends become one with it. */
static int collapse(const gpu_copy *c, gpu_copy *out)
{
    *out = *c;
    out->rank = 0;
    for (int d = 0; d < c->rank; d++) {
        int k = out->rank - 1;
        if (c->sizes[d] == 1) {
            continue;
        }
        if (k >= 0 && out->by_x[k] == c->by_x[d] * c->sizes[d] &&
            out->by_y[k] == c->by_y[d] * c->sizes[d]) {
            out->sizes[k] *= c->sizes[d];
            out->by_x[k] = c->by_x[d];
            out->by_y[k] = c->by_y[d];
            continue;
        }
        out->sizes[++k] = c->sizes[d];
        out->by_x[k] = c->by_x[d];
        out->by_y[k] = c->by_y[d];
        out->rank++;
    }
    return out->rank;
}

void nori__gpu_copy(gpu_lower *l, gpu_mem *x, gpu_mem *y, const gpu_copy *c)
{
    gpu_copy short_one;
    int64_t sizes[8] = {1, 1, 1, 1, 1, 1, 1, 1}, by_x[8] = {0}, by_y[8] = {0};
    int64_t count = nori__gpu_product(c->sizes, 0, c->rank);
    int rank = collapse(c, &short_one);
    if (rank > 8) {
        nori__fail(nori__gpu_error(l), NORI_ERROR_UNSUPPORTED,
                   "%s: a copy over %d axes, at most 8 were expected", nori__gpu_title(l), rank);
        nori__gpu_fail(l, NORI_ERROR_UNSUPPORTED);
        return;
    }
    for (int d = 0; d < rank; d++) {
        sizes[8 - rank + d] = short_one.sizes[d];
        by_x[8 - rank + d] = short_one.by_x[d];
        by_y[8 - rank + d] = short_one.by_y[d];
    }
    nori__gpu_kernel(l, GPU_IN_move, "copy_strided");
    nori__gpu_mem(l, x);
    nori__gpu_mem(l, y);
    nori__gpu_int8(l, sizes);
    nori__gpu_int8(l, by_x);
    nori__gpu_int8(l, by_y);
    nori__gpu_int(l, c->start_x);
    nori__gpu_int(l, c->start_y);
    nori__gpu_int(l, count);
    nori__gpu_items(l, count, 1, 1);
}

/* ---- transpose, depth to space ---- */

/* x, seen with these sizes, with its axes in another order. */
static void lower_order(gpu_lower *l, const gpu_node *n, int rank, const int64_t *sizes,
                        const int *order)
{
    gpu_shape seen = {.rank = rank};
    int64_t by[NORI_MAX_RANK], step = 1;
    gpu_copy c = {.rank = rank};
    memcpy(seen.dims, sizes, (size_t)rank * sizeof(*sizes));
    nori__gpu_strides(&seen, by);
    for (int d = rank - 1; d >= 0; d--) {
        c.sizes[d] = sizes[order[d]];
        c.by_x[d] = by[order[d]];
        c.by_y[d] = step;
        step *= c.sizes[d];
    }
    nori__gpu_copy(l, nori__gpu_in(l, n, 0), nori__gpu_out(l, n, 0), &c);
}

static void lower_transpose(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0);
    size_t count = 0;
    const int64_t *perm = nori__attr_ints(n->node, "perm", &count);
    int order[NORI_MAX_RANK];
    for (int d = 0; d < x->rank; d++) { /* inference has checked perm */
        order[d] = perm && count == (size_t)x->rank ? (int)perm[d] : x->rank - 1 - d;
    }
    lower_order(l, n, x->rank, x->dims, order);
}

static bool takes_blocks(const gpu_ask *ask)
{
    return (ask->node->inputs[0]->type.rank == 4 && nori__attr_i(ask->node, "blocksize", 0) > 0) ||
           nori__gpu_no(ask, "it takes [N, C, H, W] only");
}

static void lower_depth_to_space(gpu_lower *l, const gpu_node *n)
{
    const int64_t *x = nori__gpu_in_shape(l, n, 0)->dims, b = nori__attr_i(n->node, "blocksize", 1);
    bool columns = nori__same(nori__attr_s(n->node, "mode", "DCR"), "CRD");
    int64_t depth = x[1] / (b * b);
    if (columns) {
        lower_order(l, n, 6, (const int64_t[]){x[0], depth, b, b, x[2], x[3]},
                    (const int[]){0, 1, 4, 2, 5, 3});
    } else {
        lower_order(l, n, 6, (const int64_t[]){x[0], b, b, depth, x[2], x[3]},
                    (const int[]){0, 3, 4, 1, 5, 2});
    }
}

static void lower_space_to_depth(gpu_lower *l, const gpu_node *n)
{
    const int64_t *x = nori__gpu_in_shape(l, n, 0)->dims, b = nori__attr_i(n->node, "blocksize", 1);
    lower_order(l, n, 6, (const int64_t[]){x[0], x[1], x[2] / b, b, x[3] / b, b},
                (const int[]){0, 3, 5, 1, 2, 4});
}

/* ---- parts of tensors ---- */

static bool takes_floats(const gpu_ask *ask)
{
    for (uint32_t i = 0; i < ask->node->input_count; i++) {
        const nori__value *v = ask->node->inputs[i];
        if (!v || v->type.elem != NORI_FLOAT) {
            return nori__gpu_no(ask, "it takes float32 only");
        }
    }
    return true;
}

static int axis_of(gpu_lower *l, const gpu_node *n, int64_t otherwise, int rank)
{
    int axis = 0;
    nori_status status = nori__fix_axis(nori__gpu_error(l),
                                        nori__attr_i(n->node, "axis", otherwise), rank, &axis);
    if (status != NORI_OK) {
        nori__gpu_fail(l, status);
    }
    return axis;
}

/* All of the smaller shape, to or from a place along an axis of the larger one. */
static void copy_piece(gpu_lower *l, gpu_mem *x, gpu_mem *y, const gpu_shape *small,
                       const gpu_shape *large, int axis, int64_t at, bool to_large)
{
    gpu_copy c = {.rank = small->rank};
    memcpy(c.sizes, small->dims, sizeof(small->dims));
    nori__gpu_strides(to_large ? small : large, c.by_x);
    nori__gpu_strides(to_large ? large : small, c.by_y);
    *(to_large ? &c.start_y : &c.start_x) = at * nori__gpu_product(large->dims, axis + 1, large->rank);
    nori__gpu_copy(l, x, y, &c);
}

static void lower_concat(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *y = nori__gpu_out_shape(l, n, 0);
    int axis = axis_of(l, n, 0, y->rank);
    int64_t at = 0;
    gpu_mem *to = nori__gpu_out(l, n, 0);
    for (uint32_t i = 0; i < n->node->input_count && !nori__gpu_bad(l); i++) {
        const gpu_shape *x = nori__gpu_in_shape(l, n, i);
        copy_piece(l, nori__gpu_in(l, n, i), to, x, y, axis, at, true);
        at += x->dims[axis];
    }
}

static void lower_split(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0);
    int axis = axis_of(l, n, 0, x->rank);
    int64_t at = 0;
    for (uint32_t i = 0; i < n->node->output_count && !nori__gpu_bad(l); i++) {
        const gpu_shape *y = nori__gpu_out_shape(l, n, i);
        copy_piece(l, nori__gpu_in(l, n, 0), nori__gpu_out(l, n, i), y, x, axis, at, false);
        at += y->dims[axis];
    }
}

static bool takes_split(const gpu_ask *ask)
{
    for (uint32_t i = 0; i < ask->node->output_count; i++) {
        if (!ask->node->outputs[i]) {
            return nori__gpu_no(ask, "it takes Split with all outputs wanted only");
        }
    }
    return true;
}

static void lower_slice(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0), *y = nori__gpu_out_shape(l, n, 0);
    const nori_tensor *starts = nori__gpu_content(l, n, 1), *ends = nori__gpu_content(l, n, 2);
    const nori_tensor *axes = nori__gpu_content(l, n, 3), *steps = nori__gpu_content(l, n, 4);
    gpu_copy c = {.rank = x->rank};
    int64_t by[NORI_MAX_RANK], count;
    if (nori__gpu_bad(l) || !starts || !ends) {
        nori__gpu_fail(l, NORI_ERROR_INTERNAL);
        return;
    }
    nori__gpu_strides(x, by);
    nori__gpu_strides(x, c.by_x);
    nori__gpu_strides(y, c.by_y);
    memcpy(c.sizes, y->dims, sizeof(y->dims));
    for (int64_t i = 0; i < starts->count; i++) { /* inference has checked the lists */
        int axis = 0;
        int64_t first, step = steps ? nori__tensor_get_i64(steps, i) : 1;
        nori_status status = nori__fix_axis(nori__gpu_error(l),
                                            axes ? nori__tensor_get_i64(axes, i) : i, x->rank, &axis);
        if (status != NORI_OK || step == 0) {
            nori__gpu_fail(l, NORI_ERROR_DATA);
            return;
        }
        nori__slice_axis(x->dims[axis], nori__tensor_get_i64(starts, i),
                         nori__tensor_get_i64(ends, i), step, &first, &count);
        c.start_x += first * by[axis];
        c.by_x[axis] = count > 1 ? by[axis] * step : 0; /* a step past the end may be huge */
    }
    nori__gpu_copy(l, nori__gpu_in(l, n, 0), nori__gpu_out(l, n, 0), &c);
}

/* ---- repeated ---- */

static void lower_expand(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0), *y = nori__gpu_out_shape(l, n, 0);
    gpu_copy c = {.rank = y->rank};
    int64_t by[NORI_MAX_RANK] = {0};
    nori__gpu_strides(x, by);
    nori__gpu_strides(y, c.by_y);
    for (int d = 0; d < y->rank; d++) {
        int from = d - (y->rank - x->rank);
        c.sizes[d] = y->dims[d];
        c.by_x[d] = from >= 0 && x->dims[from] != 1 ? by[from] : 0;
    }
    nori__gpu_copy(l, nori__gpu_in(l, n, 0), nori__gpu_out(l, n, 0), &c);
}

static bool takes_tile(const gpu_ask *ask)
{
    return ask->node->inputs[0]->type.rank <= 4 || nori__gpu_no(ask, "it takes rank 4 at most");
}

/* Each axis as two: how often, and the input's own. */
static void lower_tile(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0), *y = nori__gpu_out_shape(l, n, 0);
    gpu_copy c = {.rank = 2 * x->rank};
    int64_t by_x[NORI_MAX_RANK] = {0}, by_y[NORI_MAX_RANK] = {0};
    nori__gpu_strides(x, by_x);
    nori__gpu_strides(y, by_y);
    for (int d = 0; d < x->rank; d++) {
        c.sizes[2 * d] = x->dims[d] > 0 ? y->dims[d] / x->dims[d] : 0;
        c.by_y[2 * d] = x->dims[d] * by_y[d];
        c.sizes[2 * d + 1] = x->dims[d];
        c.by_x[2 * d + 1] = by_x[d];
        c.by_y[2 * d + 1] = by_y[d];
    }
    nori__gpu_copy(l, nori__gpu_in(l, n, 0), nori__gpu_out(l, n, 0), &c);
}

#define VIEW(name) {name, GPU_IN_move, false, 0, NULL, NULL, nori__gpu_alias}
const gpu_op nori__gpu_move_ops[] = {
    VIEW("Reshape"),
    VIEW("Flatten"),
    VIEW("Squeeze"),
    VIEW("Unsqueeze"),
    VIEW("Identity"),
    {"Transpose", GPU_IN_move, false, 0, NULL, NULL, lower_transpose},
    {"DepthToSpace", GPU_IN_move, false, 0, takes_blocks, NULL, lower_depth_to_space},
    {"SpaceToDepth", GPU_IN_move, false, 0, takes_blocks, NULL, lower_space_to_depth},
    {"Concat", GPU_IN_move, false, 0, takes_floats, NULL, lower_concat},
    {"Split", GPU_IN_move, false, 0, takes_split, NULL, lower_split},
    {"Slice", GPU_IN_move, false, 0, NULL, NULL, lower_slice},
    {"Expand", GPU_IN_move, false, 0, NULL, NULL, lower_expand},
    {"Tile", GPU_IN_move, false, 0, takes_tile, NULL, lower_tile},
    {0},
};
#undef VIEW
