/* rebatch_mend.c: nodes with a batch size written into them. Where the form allows, the size is left
 * to the data (0, -1, 1, the largest integer); else it is read from the first input while running. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/edit/rebatch.h"

int nori__batch_axis(const nori__rebatching *r, const nori__value *more, const nori__value **was)
{
    const nori__value *one = more ? nori__batch_value(r->one, more) : NULL;
    if (was) {
        *was = one;
    }
    if (!one || one->type.kind != NORI_KIND_TENSOR || more->type.kind != NORI_KIND_TENSOR ||
        one->type.rank < 0 || one->type.rank != more->type.rank) {
        return -1;
    }
    for (int d = 0; d < one->type.rank; d++) {
        int64_t a = one->type.dims[d].value, b = more->type.dims[d].value;
        if (a > 0 && b > a && a % r->was == 0 && b / r->now == a / r->was && b % r->now == 0) {
            return d;
        }
    }
    return -1;
}

/* The node of the file that makes what n makes. */
static nori__node *own_node(const nori__rebatching *r, const nori__node *n)
{
    const nori__value *v = n->output_count > 0 && n->outputs[0]
                               ? nori__batch_value(r->own, n->outputs[0]) : NULL;
    return v ? v->producer : NULL;
}

static nori_status refuse(const nori__rebatching *r, const nori__node *n, const char *why)
{
    char path[256];
    nori__node_path(n, path, sizeof(path));
    nori_status s = nori__fail(r->err, NORI_ERROR_UNSUPPORTED, "node %s %s", path, why);
    nori__hint(r->err, "export the model with a dynamic batch, or feed it one batch at a time");
    return s;
}

static nori_status set_list(nori__rebatching *r, nori__node *n, uint32_t input, const int64_t *list,
                            int64_t count)
{
    nori_tensor *t = NULL;
    NORI__TRY(nori__tensor_new(n->graph->ir->allocator, NORI_INT64, 1, &count, &t, r->err));
    memcpy(t->data, list, (size_t)count * sizeof(*list));
    nori__value *v = nori__const_new(n->graph, NULL, t);
    return v && nori__node_set_input(n, input, v) ? NORI_OK : nori__no_memory(r->err);
}

/* A list of integers that a node takes, in both graphs; attr: what older forms call it. */
static nori_status give_list(nori__rebatching *r, nori__node *n, uint32_t input, const char *attr,
                             const int64_t *list, size_t count)
{
    nori__node *own = own_node(r, n);
    if (!own || !nori__same(own->op_type, n->op_type)) {
        return refuse(r, n, "has a batch size written into it, and lies in a function or an older form "
                            "that cannot be changed");
    }
    NORI__TRY(set_list(r, n, input, list, (int64_t)count));
    if (nori__attr_find(own, attr)) {
        return nori__node_set_ints(own, attr, list, count) ? NORI_OK : nori__no_memory(r->err);
    }
    if (input < own->input_count && own->inputs[input]) {
        const nori_tensor *was = nori__value_const(own->inputs[input]);
        if (was && was->type == NORI_INT32) {
            return refuse(r, n, "has a batch size written into it as int32");
        }
    }
    return set_list(r, own, input, list, (int64_t)count);
}

static const nori_tensor *content(const nori__node *n, uint32_t i)
{
    const nori_tensor *t = i < n->input_count && n->inputs[i] ? nori__value_const(n->inputs[i]) : NULL;
    return t && t->kind == NORI_KIND_TENSOR && t->type == NORI_INT64 && t->rank <= 1 &&
                   t->count <= NORI_MAX_RANK
               ? t : NULL;
}

/* ---- Reshape, Expand ---- */

static bool all_known(const nori__type *t, int but)
{
    for (int d = 0; d < t->rank; d++) {
        if (d != but && t->dims[d].value < 0) {
            return false;
        }
    }
    return t->rank >= 0;
}

/* Where the batch of x goes: elements before it stay before it. */
static int reshaped_axis(const nori__rebatching *r, const nori__type *x, int axis, const nori__type *y)
{
    int64_t before = 1, so_far = 1;
    for (int d = 0; d < axis; d++) {
        if (x->dims[d].value < 0 || !nori__mul_dim(before, x->dims[d].value, &before)) {
            return -1;
        }
    }
    for (int d = 0; d < y->rank; d++) {
        int64_t size = y->dims[d].value;
        if (so_far == before && (size < 0 || (size > 0 && size % r->was == 0))) {
            return d;
        }
        if (size < 0 || !nori__mul_dim(so_far, size, &so_far)) {
            return -1;
        }
    }
    return -1;
}

static nori_status mend_reshape(nori__rebatching *r, nori__node *n, bool *changed)
{
    const nori__value *x0, *y0;
    int axis = nori__batch_axis(r, n->inputs[0], &x0);
    const nori_tensor *shape = content(n, 1);
    if (axis < 0 || !shape || !n->outputs[0]) {
        return NORI_OK;
    }
    (void)nori__batch_axis(r, n->outputs[0], &y0);
    int64_t list[NORI_MAX_RANK];
    int to = y0 && y0->type.rank == (int)shape->count
                 ? reshaped_axis(r, &x0->type, axis, &y0->type) : -1;
    bool zero = nori__attr_i(n, "allowzero", 0) == 0;
    if (to < 0) {
        return refuse(r, n, "takes the batch apart by a constant shape");
    }
    for (int64_t i = 0; i < shape->count; i++) {
        list[i] = nori__tensor_get_i64(shape, i);
    }
    if (list[to] == -1 || (list[to] == 0 && zero && to == axis)) {
        return NORI_OK;
    }
    if (zero && to == axis && y0->type.dims[to].value == x0->type.dims[axis].value) {
        list[to] = 0; /* as the data has it */
    } else {
        if (!all_known(&y0->type, to)) {
            return refuse(r, n, "has a batch size and another that is not known in one constant shape");
        }
        for (int d = 0; d < y0->type.rank; d++) {
            list[d] = d == to ? -1 : y0->type.dims[d].value;
        }
    }
    *changed = true;
    NORI__TRY(nori__batch_note(r, n, "its constant shape had %" PRId64 " for the batch",
                               nori__tensor_get_i64(shape, to)));
    return give_list(r, n, 1, "shape", list, (size_t)shape->count);
}

/* Expand to 1 keeps the size of the data. */
static nori_status mend_expand(nori__rebatching *r, nori__node *n, bool *changed)
{
    const nori__value *x0;
    int axis = nori__batch_axis(r, n->inputs[0], &x0);
    const nori_tensor *shape = content(n, 1);
    int64_t at = shape && x0 ? shape->count - x0->type.rank + axis : -1, list[NORI_MAX_RANK];
    if (axis < 0 || !shape || at < 0 || nori__tensor_get_i64(shape, at) == 1) {
        return NORI_OK;
    }
    for (int64_t i = 0; i < shape->count; i++) {
        list[i] = i == at ? 1 : nori__tensor_get_i64(shape, i);
    }
    *changed = true;
    NORI__TRY(nori__batch_note(r, n, "its constant shape had %" PRId64 " for the batch",
                               nori__tensor_get_i64(shape, at)));
    return give_list(r, n, 1, "shape", list, (size_t)shape->count);
}

/* ---- Slice ---- */

static nori_status mend_slice(nori__rebatching *r, nori__node *n, bool *changed)
{
    const nori__value *x0;
    int axis = nori__batch_axis(r, n->inputs[0], &x0);
    const nori_tensor *starts = content(n, 1), *ends = content(n, 2), *axes = content(n, 3);
    const nori_tensor *steps = content(n, 4);
    if (axis < 0 || !starts || !ends || (n->input_count > 3 && n->inputs[3] && !axes) ||
        (n->input_count > 4 && n->inputs[4] && !steps)) {
        return NORI_OK;
    }
    int64_t list[NORI_MAX_RANK], at = -1;
    for (int64_t i = 0; i < ends->count; i++) {
        int64_t a = axes && i < axes->count ? nori__tensor_get_i64(axes, i) : i;
        at = (a < 0 ? a + x0->type.rank : a) == axis ? i : at;
        list[i] = nori__tensor_get_i64(ends, i);
    }
    if (at < 0 || at >= starts->count || list[at] >= INT32_MAX) {
        return NORI_OK;
    }
    bool whole = nori__tensor_get_i64(starts, at) == 0 && list[at] >= x0->type.dims[axis].value &&
                 (!steps || at >= steps->count || nori__tensor_get_i64(steps, at) == 1);
    if (!whole) {
        return refuse(r, n, "takes some items of the batch alone");
    }
    *changed = true;
    NORI__TRY(nori__batch_note(r, n, "it ended at %" PRId64 " along the batch", list[at]));
    list[at] = INT64_MAX;
    return give_list(r, n, 2, "ends", list, (size_t)ends->count);
}

/* ---- sizes that are read while running ---- */

/* A shape: the batch of the first input at one place, given sizes elsewhere. */
static nori__value *live_shape(nori__rebatching *r, nori__node *before, const int64_t *sizes, int rank,
                               int place)
{
    nori__graph *g = before->graph;
    nori__value *input = NULL;
    int axis = 0;
    for (uint32_t i = 0; i < r->more->main->input_count && !input; i++) {
        if (r->axis[i] >= 0) {
            axis = r->axis[i];
            input = nori__value_find(g, r->more->main->inputs[i]->name);
        }
    }
    nori__value *parts[3], *shape = nori__value_new(g, NULL), *one = nori__value_new(g, NULL);
    nori__value *all = nori__value_new(g, NULL);
    nori_tensor *t = NULL;
    int64_t at = axis, n = 1, count[2] = {place, rank - place - 1};
    size_t k = 0;
    if (!input || !shape || !one || !all ||
        nori__tensor_new(g->ir->allocator, NORI_INT64, 1, &n, &t, r->err) != NORI_OK) {
        return NULL;
    }
    nori__tensor_set_i64(t, 0, at);
    nori__value *index = nori__const_new(g, NULL, t), *in[2] = {shape, index};
    for (int half = 0; half < 2; half++) {
        if (half == 1) {
            parts[k++] = one;
        }
        if (count[half] > 0) {
            if (nori__tensor_new(g->ir->allocator, NORI_INT64, 1, &count[half], &t, r->err) != NORI_OK) {
                return NULL;
            }
            memcpy(t->data, sizes + (half ? place + 1 : 0), (size_t)count[half] * sizeof(*sizes));
            parts[k] = nori__const_new(g, NULL, t);
            if (!parts[k++]) {
                return NULL;
            }
        }
    }
    nori__node *a = index ? nori__node_new(g, before, "", "Shape", &input, 1, &shape, 1) : NULL;
    nori__node *b = a ? nori__node_new(g, before, "", "Gather", in, 2, &one, 1) : NULL;
    nori__node *c = b ? nori__node_new(g, before, "", "Concat", parts, k, &all, 1) : NULL;
    if (!c || !nori__node_set_int(c, "axis", 0)) {
        return NULL;
    }
    nori__node_resolve(a);
    nori__node_resolve(b);
    nori__node_resolve(c);
    return all;
}

/* An input of one item along an axis goes through Expand first, in one of the graphs. */
static nori_status widen_in(nori__rebatching *r, nori__node *n, uint32_t input, int rank, int axis)
{
    int64_t ones[NORI_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        ones[d] = 1;
    }
    nori__value *shape = live_shape(r, n, ones, rank, axis), *out = nori__value_new(n->graph, NULL);
    nori__value *in[2] = {n->inputs[input], shape};
    nori__node *e = shape && out ? nori__node_new(n->graph, n, "", "Expand", in, 2, &out, 1) : NULL;
    if (!e || !nori__node_set_input(n, input, out)) {
        return nori__no_memory(r->err);
    }
    nori__node_resolve(e);
    return NORI_OK;
}

static nori_status widen(nori__rebatching *r, nori__node *n, uint32_t input, int axis)
{
    const nori__value *v0 = nori__batch_value(r->one, n->inputs[input]);
    nori__node *own = own_node(r, n);
    if (!own || !v0 || v0->type.dims[axis].value != 1 || nori__ir_opset(r->own, "") < 8 ||
        input >= own->input_count || !own->inputs[input]) {
        return refuse(r, n, "joins the batch with something of a batch of its own");
    }
    char name[128];
    snprintf(name, sizeof(name), "%s", n->inputs[input]->name);
    int rank = v0->type.rank;
    NORI__TRY(widen_in(r, n, input, rank, axis));
    NORI__TRY(widen_in(r, own, input, rank, axis));
    return nori__batch_note(r, n, "input %s, one for all, is repeated for the batch", name);
}

static bool is_one(const nori__rebatching *r, const nori__value *v, int axis)
{
    const nori__value *v0;
    return v && nori__batch_axis(r, v, &v0) < 0 && v0 && v0->type.kind == NORI_KIND_TENSOR &&
           v0->type.rank > axis && v0->type.dims[axis].value == r->was &&
           v->type.kind == NORI_KIND_TENSOR && v->type.rank > axis &&
           v->type.dims[axis].value == r->was;
}

static nori_status mend_concat(nori__rebatching *r, nori__node *n, bool *changed)
{
    int axis = -1;
    for (uint32_t i = 0; i < n->input_count && axis < 0; i++) {
        axis = n->inputs[i] ? nori__batch_axis(r, n->inputs[i], NULL) : -1;
    }
    const nori__type *t = n->input_count > 0 && n->inputs[0] ? &n->inputs[0]->type : NULL;
    int64_t along = nori__attr_i(n, "axis", 0);
    along += along < 0 && t ? t->rank : 0;
    for (uint32_t i = 0; axis >= 0 && along != axis && i < n->input_count; i++) {
        if (is_one(r, n->inputs[i], axis)) {
            NORI__TRY(widen(r, n, i, axis));
            *changed = true;
        }
    }
    return NORI_OK;
}

/* First states: [directions, batch, size], or batch first in the newer layout. */
static nori_status mend_recurrent(nori__rebatching *r, nori__node *n, bool *changed)
{
    int axis = nori__attr_i(n, "layout", 0) ? 0 : 1;
    if (nori__batch_axis(r, n->inputs[0], NULL) != axis) {
        return NORI_OK;
    }
    for (uint32_t i = 5; i < 7 && i < n->input_count; i++) {
        if (n->inputs[i] && is_one(r, n->inputs[i], axis)) {
            NORI__TRY(widen(r, n, i, axis));
            *changed = true;
        }
    }
    return NORI_OK;
}

static nori_status mend_resize(nori__rebatching *r, nori__node *n, bool *changed)
{
    int axis = nori__batch_axis(r, n->inputs[0], NULL);
    const nori_tensor *sizes = content(n, 3);
    size_t named = 0;
    (void)nori__attr_ints(n, "axes", &named);
    if (axis < 0 || !sizes || named > 0 || axis >= sizes->count) {
        return NORI_OK;
    }
    int64_t list[NORI_MAX_RANK];
    for (int64_t i = 0; i < sizes->count; i++) {
        list[i] = nori__tensor_get_i64(sizes, i);
    }
    nori__node *own = own_node(r, n);
    if (!own || own->input_count < 4 || r->was != 1) {
        return refuse(r, n, "resizes to a constant size with the batch in it");
    }
    nori__node *both[] = {n, own};
    for (size_t i = 0; i < NORI__COUNT(both); i++) {
        nori__value *shape = live_shape(r, both[i], list, (int)sizes->count, axis);
        if (!shape || !nori__node_set_input(both[i], 3, shape)) {
            return nori__no_memory(r->err);
        }
    }
    *changed = true;
    return nori__batch_note(r, n, "its constant sizes had %" PRId64 " for the batch", list[axis]);
}

nori_status nori__batch_mend(nori__rebatching *r, nori__node *n, bool *changed)
{
    if (!n->op || n->op->domain != NORI__ONNX || n->input_count == 0 || !n->inputs[0] ||
        n->output_count == 0) {
        return NORI_OK;
    }
    switch (n->op->id) {
    case NORI__OP_ONNX_Reshape:
        return mend_reshape(r, n, changed);
    case NORI__OP_ONNX_Expand:
        return mend_expand(r, n, changed);
    case NORI__OP_ONNX_Slice:
        return mend_slice(r, n, changed);
    case NORI__OP_ONNX_Concat:
        return mend_concat(r, n, changed);
    case NORI__OP_ONNX_LSTM:
    case NORI__OP_ONNX_GRU:
    case NORI__OP_ONNX_RNN:
        return mend_recurrent(r, n, changed);
    case NORI__OP_ONNX_Resize:
        return mend_resize(r, n, changed);
    default:
        return NORI_OK;
    }
}
