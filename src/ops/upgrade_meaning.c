/* upgrade_meaning.c: what old versions did by default, or under another name, said in the words of
 * the newest. */
#include "ops/resize.h"
#include "ops/upgrade.h"

/* Opset 1 to 6 arithmetic: with broadcast=1, B's axes line up with A's from `axis` on (without it:
 * at the end, as today): B gets trailing axes of 1. */
nori_status nori__upgrade_broadcast(nori__node *n, nori_error *err)
{
    bool aligned = nori__attr_i(n, "broadcast", 0) && nori__attr_find(n, "axis");
    int64_t axis = nori__attr_i(n, "axis", 0), axes[NORI_MAX_RANK];
    nori__node_drop_attr(n, "broadcast");
    nori__node_drop_attr(n, "axis");
    if (!aligned || n->input_count < 2 || !n->inputs[0] || !n->inputs[1]) {
        return NORI_OK;
    }
    int a = n->inputs[0]->type.rank, b = n->inputs[1]->type.rank;
    if (a < 0 || b < 0) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "%s with an axis attribute needs inputs of known rank", n->op_type);
    }
    axis += axis < 0 ? a : 0;
    int64_t missing = a - axis - b;
    if (axis < 0 || axis > a || missing < 0) {
        return nori__fail(err, NORI_ERROR_MODEL, "%s: axis %lld does not fit ranks %d and %d",
                          n->op_type, (long long)axis, a, b);
    }
    if (missing == 0) {
        return NORI_OK;
    }
    for (int64_t i = 0; i < missing; i++) {
        axes[i] = b + i;
    }
    nori__value *wide = nori__value_new(n->graph, NULL);
    nori__node *u = wide ? nori__node_new(n->graph, n, "", "Unsqueeze", &n->inputs[1], 1, &wide, 1)
                         : NULL;
    if (!u || !nori__node_set_input(n, 1, wide)) {
        return nori__no_memory(err);
    }
    nori__node_resolve(u);
    return nori__upgrade_ints(u, 1, axes, missing, err);
}

/* Upsample and the first Resize: asymmetric coordinates, nearest as said. scales stands in input 1
 * and moves to 2. */
static nori_status to_resize(nori__node *n, const char *nearest, nori_error *err)
{
    nori__value *scales = n->input_count > 1 ? n->inputs[1] : NULL;
    bool ok = true;
    if (scales) {
        ok = nori__node_set_input(n, 2, scales) && nori__node_set_input(n, 1, NULL);
    }
    const char *mode = nori__attr_s(n, "mode", "nearest");
    mode = nori__same(mode, "bilinear") ? "linear" : mode;
    ok = ok && nori__node_set_text(n, "mode", mode) &&
         nori__node_set_text(n, "coordinate_transformation_mode", "asymmetric") &&
         nori__node_set_text(n, "nearest_mode", nearest);
    n->op_type = "Resize";
    return ok ? NORI_OK : nori__no_memory(err);
}

nori_status nori__upgrade_upsample(nori__node *n, nori_error *err)
{
    if (n->input_count < 2 || !n->inputs[1]) {
        size_t count;
        const float *v = nori__attr_floats(n, "scales", &count);
        if (!v && !nori__attr_find(n, "height_scale")) {
            return nori__fail(err, NORI_ERROR_MODEL, "Upsample has no scales");
        }
        float sides[4] = {1, 1, nori__attr_f(n, "height_scale", 1),
                          nori__attr_f(n, "width_scale", 1)};
        NORI__TRY(nori__upgrade_floats(n, 1, NORI_FLOAT, v ? v : sides, v ? (int64_t)count : 4,
                                       err));
        nori__node_drop_attr(n, "scales");
        nori__node_drop_attr(n, "height_scale");
        nori__node_drop_attr(n, "width_scale");
    }
    return to_resize(n, "floor", err);
}

const char *nori__resize_outward(const nori_tensor *scales)
{
    bool grows = scales != NULL, shrinks = grows;
    for (int64_t i = 0; scales && i < scales->count; i++) {
        double s = nori__tensor_get_f64(scales, i);
        grows = grows && s >= 1;
        shrinks = shrinks && s <= 1;
    }
    return grows ? "floor" : shrinks ? "ceil" : NORI__ROUND_OUTWARD_TEXT;
}

nori_status nori__upgrade_resize(nori__node *n, nori_error *err)
{
    bool nearest = nori__same(nori__attr_s(n, "mode", "nearest"), "nearest");
    const nori_tensor *s = n->input_count > 1 && n->inputs[1] ? nori__value_const(n->inputs[1]) : NULL;
    return to_resize(n, nearest ? nori__resize_outward(s) : "floor", err);
}

/* The type's name as onnx.proto writes it becomes its number. */
nori_status nori__upgrade_cast(nori__node *n, nori_error *err)
{
    static const struct {
        const char *name;
        nori_type type;
    } types[] = {
        {"FLOAT", NORI_FLOAT},     {"UINT8", NORI_UINT8},     {"INT8", NORI_INT8},
        {"UINT16", NORI_UINT16},   {"INT16", NORI_INT16},     {"INT32", NORI_INT32},
        {"INT64", NORI_INT64},     {"STRING", NORI_STRING},   {"BOOL", NORI_BOOL},
        {"FLOAT16", NORI_FLOAT16}, {"DOUBLE", NORI_DOUBLE},   {"UINT32", NORI_UINT32},
        {"UINT64", NORI_UINT64},   {"COMPLEX64", NORI_COMPLEX64},
        {"COMPLEX128", NORI_COMPLEX128},
    };
    const char *name = nori__attr_s(n, "to", NULL);
    if (!name) {
        return NORI_OK; /* a number already */
    }
    for (size_t i = 0; i < NORI__COUNT(types); i++) {
        if (nori__same(name, types[i].name)) {
            return nori__node_set_int(n, "to", types[i].type) ? NORI_OK : nori__no_memory(err);
        }
    }
    return nori__fail(err, NORI_ERROR_MODEL, "Cast: no type is named '%.100s'", name);
}

nori_status nori__upgrade_scatter(nori__node *n, nori_error *err)
{
    (void)err;
    n->op_type = "ScatterElements";
    return NORI_OK;
}

/* p was a float. */
nori_status nori__upgrade_lp(nori__node *n, nori_error *err)
{
    float p = nori__attr_f(n, "p", 2);
    if (!(p >= 1 && p <= 1000) || p != (float)(int)p) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "%s: p = %g is not a whole number from 1",
                          n->op_type, (double)p);
    }
    return nori__node_set_int(n, "p", (int64_t)p) ? NORI_OK : nori__no_memory(err);
}

nori_status nori__upgrade_grid(nori__node *n, nori_error *err)
{
    const char *mode = nori__attr_s(n, "mode", "bilinear");
    mode = nori__same(mode, "bilinear") ? "linear" : nori__same(mode, "bicubic") ? "cubic" : mode;
    return nori__node_set_text(n, "mode", mode) ? NORI_OK : nori__no_memory(err);
}

/* Before 16 there was no half pixel to take off. */
nori_status nori__upgrade_roi(nori__node *n, nori_error *err)
{
    return nori__attr_find(n, "coordinate_transformation_mode") ||
                   nori__node_set_text(n, "coordinate_transformation_mode", "output_half_pixel")
               ? NORI_OK
               : nori__no_memory(err);
}

/* Outputs beyond the first mean training before 14; many files name them and read none. */
nori_status nori__upgrade_batchnorm(nori__node *n, nori_error *err)
{
    (void)err;
    for (uint32_t i = 1; i < n->output_count; i++) {
        if (n->outputs[i] && n->outputs[i]->uses == 0) {
            n->outputs[i]->producer = NULL;
            n->outputs[i] = NULL;
        }
    }
    while (n->output_count > 1 && !n->outputs[n->output_count - 1]) {
        n->output_count--;
    }
    return NORI_OK;
}
