/* op_resize.c: what looks its elements up along one axis after another: Gather, Pad, Resize. Where an
 * output lies in the input is worked out here, in double, as the reference kernels do; the device
 * follows tables. */
#include "providers/gpu/gpu.h"
#include "providers/reference/ref_resize.h"

/* A tensor on its way through several axes: all steps but the last go to scratch. */
typedef struct walk {
    gpu_mem *at;
    gpu_shape shape;
    int left;
} walk;

static int walk_steps(const gpu_shape *x, const gpu_shape *y, const bool *touched)
{
    int n = 0;
    for (int d = 0; d < x->rank; d++) {
        n += touched[d] || x->dims[d] != y->dims[d];
    }
    return n;
}

/* Where this step writes; sets what the kernel needs to know of the axis. */
static gpu_mem *walk_to(gpu_lower *l, const gpu_node *n, walk *w, int axis, int64_t size)
{
    w->shape.dims[axis] = size;
    w->shape.count = nori__gpu_product(w->shape.dims, 0, w->shape.rank);
    return --w->left == 0 ? nori__gpu_out(l, n, 0) : nori__gpu_scratch(l, w->shape.count);
}

static void take_axis(gpu_lower *l, const gpu_node *n, walk *w, int axis, int64_t size,
                      gpu_mem *table, float fill)
{
    int64_t before = w->shape.dims[axis];
    gpu_mem *to = walk_to(l, n, w, axis, size);
    nori__gpu_kernel(l, GPU_IN_move, "take_axis");
    nori__gpu_mem(l, w->at);
    nori__gpu_mem(l, table);
    nori__gpu_mem(l, to);
    nori__gpu_int(l, w->shape.count);
    nori__gpu_int(l, before);
    nori__gpu_int(l, size > 0 ? size : 1);
    nori__gpu_int(l, nori__gpu_product(w->shape.dims, axis + 1, w->shape.rank));
    nori__gpu_float(l, fill);
    nori__gpu_items(l, w->shape.count, 1, 1);
    w->at = to;
}

static walk walk_begin(gpu_lower *l, const gpu_node *n, int steps)
{
    return (walk){nori__gpu_in(l, n, 0), *nori__gpu_in_shape(l, n, 0), steps};
}

/* ---- gather ---- */

static bool takes_gather(const gpu_ask *ask)
{
    const nori__node *node = ask->node;
    return (nori__gpu_has(node, 1) && node->inputs[1]->type.elem != NORI_FLOAT) ||
           nori__gpu_no(ask, "indices must be integers");
}

static void lower_gather(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0);
    int axis = 0;
    nori_status status =
        nori__fix_axis(nori__gpu_error(l), nori__attr_i(n->node, "axis", 0), x->rank, &axis);
    if (status != NORI_OK) {
        nori__gpu_fail(l, status);
        return;
    }
    walk w = walk_begin(l, n, 1);
    gpu_mem *table = nori__gpu_indices(l, n, 1, x->dims[axis]);
    take_axis(l, n, &w, axis, nori__gpu_in_shape(l, n, 1)->count, table, 0);
}

/* ---- pad ---- */

static bool takes_pad(const gpu_ask *ask)
{
    const nori_tensor *pads = nori__gpu_const(ask->node, 1);
    const char *mode = nori__attr_s(ask->node, "mode", "constant");
    bool known = nori__same(mode, "constant") || nori__same(mode, "reflect") ||
                 nori__same(mode, "edge") || nori__same(mode, "wrap");
    if (!known || !nori__gpu_has(ask->node, 1)) {
        return nori__gpu_no(ask, "mode \"%.40s\" is not one it takes", mode);
    }
    if (!nori__same(mode, "constant") && !pads) {
        return nori__gpu_no(ask, "it takes constant pads only in mode %s", mode);
    }
    for (int64_t i = 0; !nori__same(mode, "constant") && i < pads->count; i++) {
        if (nori__tensor_get_i64(pads, i) < 0) {
            return nori__gpu_no(ask, "it takes no negative pads in mode %s", mode);
        }
    }
    return nori__gpu_fixed(ask, 2, "constant_value");
}

/* Place i, counted from the first element, of an axis of n; -1: outside. */
static int64_t pad_source(char mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n) {
        return i;
    }
    switch (mode) {
    case 'r':
        return i < 0 ? -i : 2 * (n - 1) - i;
    case 'e':
        return i < 0 ? 0 : n - 1;
    case 'w':
        return i < 0 ? n - 1 - (-i - 1) % n : i % n;
    default:
        return -1;
    }
}

static gpu_mem *pad_table(gpu_lower *l, char mode, int64_t size, int64_t low, int64_t out)
{
    int32_t *table = nori__gpu_host_room(l, (size_t)out, sizeof(*table));
    for (int64_t o = 0; table && o < out; o++) {
        int64_t at = size > 0 ? pad_source(mode, o - low, size) : -1;
        if (mode != 'c' && (at < 0 || at >= size)) {
            nori__fail(nori__gpu_error(l), NORI_ERROR_DATA,
                       "an axis of %lld elements is too short for its padding", (long long)size);
            nori__gpu_fail(l, NORI_ERROR_DATA);
            return NULL;
        }
        table[o] = (int32_t)at;
    }
    return table ? nori__gpu_table(l, table, (size_t)out) : NULL;
}

/* Pads before each axis; false: the lists do not fit. */
static bool read_pads(gpu_lower *l, const gpu_node *n, int rank, int64_t *low, bool *touched)
{
    const nori_tensor *pads = nori__gpu_content(l, n, 1), *axes = nori__gpu_content(l, n, 3);
    int64_t entries = axes ? axes->count : rank;
    memset(low, 0, NORI_MAX_RANK * sizeof(*low));
    memset(touched, 0, NORI_MAX_RANK * sizeof(*touched));
    if (nori__gpu_bad(l) || !pads || pads->count != 2 * entries) {
        return false;
    }
    for (int64_t i = 0; i < entries; i++) {
        int axis = 0;
        if (nori__fix_axis(nori__gpu_error(l), axes ? nori__tensor_get_i64(axes, i) : i, rank,
                           &axis) != NORI_OK) {
            return false;
        }
        low[axis] = nori__tensor_get_i64(pads, i);
        touched[axis] = low[axis] != 0 || nori__tensor_get_i64(pads, i + entries) != 0;
    }
    return true;
}

static void lower_pad(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0), *y = nori__gpu_out_shape(l, n, 0);
    const nori_tensor *value = nori__gpu_const(n->node, 2);
    int64_t low[NORI_MAX_RANK];
    bool touched[NORI_MAX_RANK];
    char mode = nori__attr_s(n->node, "mode", "constant")[0];
    float fill = value && value->count > 0 ? (float)nori__tensor_get_f64(value, 0) : 0;
    if (!read_pads(l, n, x->rank, low, touched)) {
        nori__gpu_fail(l, NORI_ERROR_DATA);
        return;
    }
    walk w = walk_begin(l, n, walk_steps(x, y, touched));
    if (w.left == 0) {
        nori__gpu_alias(l, n);
    }
    for (int d = 0; d < x->rank && !nori__gpu_bad(l); d++) {
        if (touched[d] || x->dims[d] != y->dims[d]) {
            take_axis(l, n, &w, d, y->dims[d], pad_table(l, mode, x->dims[d], low[d], y->dims[d]),
                      fill);
        }
    }
}

/* ---- resize ---- */

static bool takes_resize(const gpu_ask *ask)
{
    nori__resize r;
    if (nori__resize_read(ask->node, NULL, &r) != NORI_OK || r.mode == NORI__CUBIC ||
        r.antialias || r.coords == NORI__TF_CROP) {
        return nori__gpu_no(ask, "it takes nearest and linear, without antialias or a region");
    }
    return (r.scales_in == UINT32_MAX || nori__gpu_fixed(ask, r.scales_in, "scales"));
}

static bool read_resize(gpu_lower *l, const gpu_node *n, nori__resize *r)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0), *y = nori__gpu_out_shape(l, n, 0);
    int64_t want[NORI_MAX_RANK];
    int count = -1;
    nori_status status = nori__resize_read(n->node, nori__gpu_error(l), r);
    const nori_tensor *scales = nori__gpu_const(n->node, r->scales_in);
    const nori_tensor *sizes =
        r->sizes_in != UINT32_MAX ? nori__gpu_content(l, n, r->sizes_in) : NULL;
    for (int64_t i = 0; sizes && i < sizes->count && i < NORI_MAX_RANK; i++) {
        want[i] = nori__tensor_get_i64(sizes, i);
        count = (int)i + 1;
    }
    if (status == NORI_OK) {
        status = nori__resize_sizes(n->node, nori__gpu_error(l), x->rank, x->dims, NULL,
                                    scales && scales->count > 0 ? scales : NULL, want, count, r);
    }
    for (int d = 0; d < x->rank && status == NORI_OK; d++) {
        status = r->out[d] == y->dims[d] && (x->dims[d] > 0 || y->count == 0) ? NORI_OK
                                                                            : NORI_ERROR_DATA;
    }
    if (status != NORI_OK) {
        nori__gpu_fail(l, status);
    }
    return status == NORI_OK && !nori__gpu_bad(l);
}

static void nearest_axis(gpu_lower *l, const gpu_node *n, walk *w, const nori__resize *r, int axis)
{
    int64_t in = w->shape.dims[axis], out = r->out[axis];
    int32_t *table = nori__gpu_host_room(l, (size_t)out, sizeof(*table));
    for (int64_t o = 0; table && o < out; o++) {
        table[o] = (int32_t)nori__resize_nearest_at(r, axis, in, o);
    }
    gpu_mem *places = table ? nori__gpu_table(l, table, (size_t)out) : NULL;
    take_axis(l, n, w, axis, out, places, (float)r->extrapolation);
}

static void linear_axis(gpu_lower *l, const gpu_node *n, walk *w, const nori__resize *r, int axis)
{
    int64_t in = w->shape.dims[axis], out = r->out[axis], at[2];
    double weight[2];
    size_t entries = (size_t)out * 2;
    int32_t *places = nori__gpu_host_room(l, entries, sizeof(*places));
    float *weights = nori__gpu_host_room(l, entries, sizeof(*weights));
    for (int64_t o = 0; places && weights && o < out; o++) {
        nori__resize_linear_at(r, axis, in, o, at, weight);
        for (int k = 0; k < 2; k++) {
            places[2 * o + k] = (int32_t)at[k];
            weights[2 * o + k] = (float)weight[k];
        }
    }
    gpu_mem *to = walk_to(l, n, w, axis, out);
    if (nori__gpu_bad(l)) {
        return;
    }
    gpu_mem *place_table = nori__gpu_table(l, places, entries);
    gpu_mem *weight_table = nori__gpu_weights(l, weights, entries);
    nori__gpu_kernel(l, GPU_IN_move, "blend_axis");
    nori__gpu_mem(l, w->at);
    nori__gpu_mem(l, place_table);
    nori__gpu_mem(l, weight_table);
    nori__gpu_mem(l, to);
    nori__gpu_int(l, w->shape.count);
    nori__gpu_int(l, in);
    nori__gpu_int(l, out > 0 ? out : 1);
    nori__gpu_int(l, nori__gpu_product(w->shape.dims, axis + 1, w->shape.rank));
    nori__gpu_items(l, w->shape.count, 1, 1);
    w->at = to;
}

static void lower_resize(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0), *y = nori__gpu_out_shape(l, n, 0);
    nori__resize r;
    bool touched[NORI_MAX_RANK] = {false};
    if (!read_resize(l, n, &r)) {
        return;
    }
    for (int d = 0; d < x->rank; d++) { /* the same size, but not the same places */
        touched[d] = r.scale[d] != 1;
    }
    walk w = walk_begin(l, n, walk_steps(x, y, touched));
    if (w.left == 0) {
        nori__gpu_alias(l, n);
    }
    for (int d = 0; d < x->rank && !nori__gpu_bad(l); d++) {
        if (touched[d] || x->dims[d] != y->dims[d]) {
            (r.mode == NORI__LINEAR ? linear_axis : nearest_axis)(l, n, &w, &r, d);
        }
    }
}

const gpu_op nori__gpu_resize_ops[] = {
    {"Gather", GPU_IN_move, false, 0, takes_gather, NULL, lower_gather},
    {"Pad", GPU_IN_move, false, 0, takes_pad, NULL, lower_pad},
    {"Resize", GPU_IN_move, false, 0, takes_resize, NULL, lower_resize},
    {0},
};
