/* lower_inputs.c: inputs that were attributes in older versions: they must be known without running. */
#include <math.h>

#include "ops/upgrade.h"
#include "tools/convert/lower.h"

/* A list that came as input becomes an attribute; nothing where the input is absent. */
static nori_status to_attr(nori__lowering *l, nori__node *n, uint32_t input, const char *name)
{
    if (!nori__lower_has(n, input) || l->why[0]) {
        return NORI_OK;
    }
    const nori_tensor *t = nori__lower_content(n->inputs[input]);
    if (!t || (t->type != NORI_INT64 && t->type != NORI_INT32)) {
        return nori__lower_keep(l, "its %s are computed in each run, and the older form has an attribute",
                                name);
    }
    int64_t *list = nori__arena_array(l->arena, (size_t)t->count, sizeof(*list));
    for (int64_t i = 0; list && i < t->count; i++) {
        list[i] = nori__tensor_get_i64(t, i);
    }
    if (!list || !nori__node_set_ints(n, name, list, (size_t)t->count)) {
        return nori__no_memory(l->err);
    }
    nori__lower_drop(n, input);
    return NORI_OK;
}

/* Squeeze, Unsqueeze, Reduce*. */
nori_status nori__lower_axes(nori__lowering *l, nori__node *n)
{
    bool noop = nori__attr_i(n, "noop_with_empty_axes", 0);
    const nori_tensor *t = nori__lower_has(n, 1) ? nori__lower_content(n->inputs[1]) : NULL;
    bool empty = !nori__lower_has(n, 1) || (t && t->count == 0);
    bool reduces = !nori__node_is(n, NORI__OP_ONNX_Squeeze) &&
                   !nori__node_is(n, NORI__OP_ONNX_Unsqueeze);
    if (nori__attr_find(n, "axes")) {
        return NORI_OK; /* the older form already */
    }
    if (empty && noop) {
        return nori__lower_keep(l, "it has no axes and does nothing then, which older versions cannot "
                                "say: take it out");
    }
    if (t && empty && !reduces) {
        return nori__lower_keep(l, "it has an empty list of axes");
    }
    if (t && empty) {
        nori__lower_drop(n, 1);
    }
    NORI__TRY(to_attr(l, n, 1, "axes"));
    nori__node_drop_attr(n, "noop_with_empty_axes");
    return NORI_OK;
}

/* num_outputs: equal parts are implied before where the size is a multiple; else they are listed. */
nori_status nori__lower_split_parts(nori__lowering *l, nori__node *n)
{
    int64_t parts = nori__attr_i(n, "num_outputs", 0), axis = nori__attr_i(n, "axis", 0);
    int rank = nori__lower_rank(n, 0);
    if (parts <= 0 || nori__lower_has(n, 1)) {
        return NORI_OK;
    }
    if (parts != (int64_t)n->output_count) {
        return nori__lower_keep(l, "it has %u outputs of %lld parts, and before 18 every part is one: "
                                   "name the others",
                                n->output_count, (long long)parts);
    }
    axis += axis < 0 ? rank : 0;
    int64_t size = rank >= 0 && axis >= 0 && axis < rank ? n->inputs[0]->type.dims[axis].value : -1;
    if (size < 0) {
        return nori__lower_keep(l, "the size it splits is not known, and before 18 parts must be "
                                "equal: fix that dimension");
    }
    nori__node_drop_attr(n, "num_outputs");
    if (size % parts == 0) {
        return NORI_OK;
    }
    int64_t *sizes = nori__arena_array(l->arena, n->output_count, sizeof(*sizes));
    int64_t each = (size + parts - 1) / parts, left = size;
    for (uint32_t i = 0; sizes && i < n->output_count; i++) {
        sizes[i] = left < each ? left : each;
        left -= sizes[i];
    }
    return sizes ? nori__upgrade_ints(n, 1, sizes, n->output_count, l->err)
                 : nori__no_memory(l->err);
}

nori_status nori__lower_split(nori__lowering *l, nori__node *n)
{
    return to_attr(l, n, 1, "split");
}

nori_status nori__lower_slice(nori__lowering *l, nori__node *n)
{
    if (nori__lower_has(n, 4)) {
        const nori_tensor *steps = nori__lower_content(n->inputs[4]);
        bool ones = steps != NULL;
        for (int64_t i = 0; ones && i < steps->count; i++) {
            ones = nori__tensor_get_i64(steps, i) == 1;
        }
        if (!ones) {
            return nori__lower_keep(l, "it has steps, which came with version 10");
        }
        nori__lower_drop(n, 4);
    }
    NORI__TRY(to_attr(l, n, 3, "axes"));
    NORI__TRY(to_attr(l, n, 2, "ends"));
    return to_attr(l, n, 1, "starts");
}

/* The input axes says which axes the pads are for: pads of all of them. */
nori_status nori__lower_pad_axes(nori__lowering *l, nori__node *n)
{
    if (!nori__lower_has(n, 3)) {
        return NORI_OK;
    }
    const nori_tensor *axes = nori__lower_content(n->inputs[3]);
    const nori_tensor *pads = nori__lower_has(n, 1) ? nori__lower_content(n->inputs[1]) : NULL;
    int rank = nori__lower_rank(n, 0);
    if (!axes || !pads || rank < 0 || pads->count != 2 * axes->count) {
        return nori__lower_keep(l, "its axes, pads or rank are only known when it runs; the input axes "
                                "came with version 18");
    }
    int64_t all[2 * NORI_MAX_RANK] = {0};
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = nori__tensor_get_i64(axes, i);
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank) {
            return nori__lower_keep(l, "its axis %lld is outside rank %d", (long long)axis, rank);
        }
        all[axis] = nori__tensor_get_i64(pads, i);
        all[rank + axis] = nori__tensor_get_i64(pads, axes->count + i);
    }
    nori__lower_drop(n, 3);
    return nori__upgrade_ints(n, 1, all, 2 * (int64_t)rank, l->err);
}

/* One number that came as input becomes a float attribute, exactly. False: it cannot. */
static bool float_attr(nori__lowering *l, nori__node *n, uint32_t input, const char *name)
{
    const nori_tensor *t = nori__lower_content(n->inputs[input]);
    double v = t && t->count == 1 ? nori__tensor_get_f64(t, 0) : 0;
    if (!t || t->count != 1) {
        nori__lower_keep(l, "its %s is computed in each run, and the older form has an attribute", name);
        return false;
    }
    if (!isnan(v) && (double)(float)v != v) {
        nori__lower_keep(l, "its %s is no float32, which the attribute is", name);
        return false;
    }
    if (!nori__node_set_float(n, name, (float)v)) {
        nori__no_memory(l->err);
        return false;
    }
    return true;
}

nori_status nori__lower_pad(nori__lowering *l, nori__node *n)
{
    if (nori__lower_has(n, 2)) {
        if (!float_attr(l, n, 2, "value")) {
            return l->why[0] ? NORI_OK : NORI_ERROR_MEMORY;
        }
        nori__lower_drop(n, 2);
    }
    return to_attr(l, n, 1, l->opset < 2 ? "paddings" : "pads");
}

/* A bound that is absent is none, where version 6 has the largest float: infinity is written. */
nori_status nori__lower_clip(nori__lowering *l, nori__node *n)
{
    static const char *const names[] = {"min", "max"};
    for (uint32_t i = 0; i < 2; i++) {
        if (nori__attr_find(n, names[i])) {
            continue;
        }
        if (!nori__lower_has(n, 1 + i)) {
            if (l->opset >= 6 && n->version >= 11 &&
                !nori__node_set_float(n, names[i], i == 0 ? -INFINITY : INFINITY)) {
                return nori__no_memory(l->err);
            }
        } else if (!float_attr(l, n, 1 + i, names[i])) {
            return l->why[0] ? NORI_OK : NORI_ERROR_MEMORY;
        }
    }
    nori__lower_drop(n, 2);
    nori__lower_drop(n, 1);
    return NORI_OK;
}

nori_status nori__lower_topk(nori__lowering *l, nori__node *n)
{
    const nori_tensor *k = nori__lower_has(n, 1) ? nori__lower_content(n->inputs[1]) : NULL;
    if (nori__attr_find(n, "k")) {
        return NORI_OK;
    }
    if (!k || k->count != 1) {
        return nori__lower_keep(l, "its k is computed in each run, and the older form has an attribute");
    }
    if (!nori__node_set_int(n, "k", nori__tensor_get_i64(k, 0))) {
        return nori__no_memory(l->err);
    }
    nori__lower_drop(n, 1);
    return NORI_OK;
}

nori_status nori__lower_dropout(nori__lowering *l, nori__node *n)
{
    const nori_tensor *training = nori__lower_has(n, 2) ? nori__lower_content(n->inputs[2]) : NULL;
    if (nori__lower_has(n, 2) &&
        (!training || training->count != 1 || nori__tensor_get_i64(training, 0) != 0)) {
        return nori__lower_keep(l, "it may be training, which only version 12 is told");
    }
    nori__lower_drop(n, 2);
    if (nori__lower_has(n, 1)) {
        if (!float_attr(l, n, 1, "ratio")) {
            return l->why[0] ? NORI_OK : NORI_ERROR_MEMORY;
        }
        nori__lower_drop(n, 1);
    }
    nori__node_drop_attr(n, "seed"); /* means nothing where nothing is dropped */
    return NORI_OK;
}

nori_status nori__lower_reshape(nori__lowering *l, nori__node *n)
{
    return to_attr(l, n, 1, "shape");
}

/* value_int and others came with version 12: the tensor says the same. */
nori_status nori__lower_constant(nori__lowering *l, nori__node *n)
{
    static const char *const names[] = {"value_int", "value_ints", "value_float", "value_floats"};
    size_t count = 1, which = 0;
    while (which < NORI__COUNT(names) && !nori__attr_find(n, names[which])) {
        which++;
    }
    if (which == NORI__COUNT(names)) {
        return NORI_OK;
    }
    int64_t one_i = nori__attr_i(n, "value_int", 0);
    float one_f = nori__attr_f(n, "value_float", 0);
    const int64_t *ints = which == 1 ? nori__attr_ints(n, names[1], &count) : &one_i;
    const float *floats = which == 3 ? nori__attr_floats(n, names[3], &count) : &one_f;
    int64_t dim = (int64_t)count;
    nori_tensor *t = NULL;
    NORI__TRY(nori__tensor_new(l->ir->allocator, which < 2 ? NORI_INT64 : NORI_FLOAT, (int)(which & 1),
                               &dim, &t, l->err));
    for (int64_t i = 0; i < t->count; i++) {
        if (which < 2) {
            nori__tensor_set_i64(t, i, ints[i]);
        } else {
            nori__tensor_set_f64(t, i, floats[i]);
        }
    }
    if (!nori__ir_keep(l->ir, t)) {
        return nori__no_memory(l->err);
    }
    for (uint32_t i = 0; i < n->attr_count; i++) {
        nori__attr *a = &n->attrs[i];
        if (nori__same(a->name, names[which])) {
            *a = (nori__attr){.name = "value", .kind = NORI__ATTR_TENSOR, .count = 1, .v.tensor = t};
            l->ir->edits++;
        }
    }
    return NORI_OK;
}
