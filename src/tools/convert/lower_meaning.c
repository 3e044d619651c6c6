/* lower_meaning.c: what newer versions do, said in the words of older ones. */
#include "ops/resize.h"
#include "ops/upgrade.h"
#include "tools/convert/lower.h"

/* A node between n and what it reads or makes, that exchanges two axes. */
static bool exchange(nori__lowering *l, nori__node *n, bool before, int rank, int a, int b)
{
    int64_t perm[NORI_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        perm[i] = i == a ? b : i == b ? a : i;
    }
    nori__value *fresh = nori__value_new(n->graph, NULL);
    nori__value **in = before ? &n->inputs[0] : &fresh, **out = before ? &fresh : &n->outputs[0];
    nori__node *t = fresh ? nori__node_new(n->graph, before ? n : n->next, "", "Transpose", in, 1, out,
                                           1)
                          : NULL;
    if (!t || !nori__node_set_ints(t, "perm", perm, (size_t)rank)) {
        return false;
    }
    t->settled = true;
    nori__node_resolve_at(t, l->opset);
    fresh->type = n->inputs[0]->type;
    if (before) {
        return nori__node_set_input(n, 0, fresh);
    }
    n->outputs[0] = fresh;
    fresh->producer = n;
    return true;
}

/* Before 13 all axes from the given one on are one: the same for the last axis alone. */
nori_status nori__lower_softmax(nori__lowering *l, nori__node *n)
{
    if (n->version < 13) {
        return NORI_OK; /* never was the newer one */
    }
    int rank = nori__lower_rank(n, 0);
    int64_t axis = nori__attr_i(n, "axis", -1);
    axis += axis < 0 ? rank : 0;
    if (rank < 1 || axis < 0 || axis >= rank) {
        return nori__lower_keep(l, "the rank of its input is not known, and the axis means something "
                                "else before 13");
    }
    l->same = true;
    bool ok = nori__node_set_int(n, "axis", rank - 1);
    if (ok && axis != rank - 1) {
        ok = exchange(l, n, true, rank, (int)axis, rank - 1) &&
             exchange(l, n, false, rank, (int)axis, rank - 1);
    }
    return ok ? NORI_OK : nori__no_memory(l->err);
}

static nori__value *put(nori__lowering *l, nori__node *before, nori__node *behind, const char *op,
                        nori__value *const *in, size_t n_in, nori__value *out)
{
    nori__graph *g = before->graph;
    bool fresh = !out;
    out = out ? out : nori__value_new(g, NULL);
    nori__node *n = out ? nori__node_new(g, behind ? behind->next : before, "", op, in, n_in, &out, 1)
                        : NULL;
    if (!n) {
        return NULL;
    }
    n->settled = true;
    nori__node_resolve_at(n, l->opset);
    if (fresh) {
        out->type = (nori__type){.kind = NORI_KIND_TENSOR, .elem = before->inputs[0]->type.elem,
                                 .rank = -1};
    }
    return out;
}

/* All axes from one on as one: as a matrix, and back. */
static nori_status flat_softmax(nori__lowering *l, nori__node *n, int64_t axis)
{
    nori__value *x = n->inputs[0], *y = n->outputs[0], *back[2] = {nori__value_new(n->graph, NULL), NULL};
    nori__value *flat = put(l, n, NULL, "Flatten", &x, 1, NULL);
    bool ok = flat && back[0] && nori__node_set_int(n->prev, "axis", axis);
    back[1] = ok ? put(l, n, NULL, "Shape", &x, 1, NULL) : NULL;
    if (!back[1]) {
        return nori__no_memory(l->err);
    }
    back[0]->type = flat->type;
    back[1]->type.elem = NORI_INT64;
    n->outputs[0] = back[0];
    back[0]->producer = n;
    ok = nori__node_set_input(n, 0, flat) && nori__node_set_int(n, "axis", -1) &&
         put(l, n, n, "Reshape", back, 2, y) &&
         (l->opset < 14 || nori__node_set_int(n->next, "allowzero", 1)); /* sizes of 0 are sizes */
    return ok ? NORI_OK : nori__no_memory(l->err);
}

/* The other way: the last axis alone means the same in both, and so does one with nothing behind it. */
nori_status nori__raise_softmax(nori__lowering *l, nori__node *n)
{
    bool soft = nori__node_is(n, NORI__OP_ONNX_Softmax) ||
                nori__node_is(n, NORI__OP_ONNX_LogSoftmax) ||
                nori__node_is(n, NORI__OP_ONNX_Hardmax);
    int rank = soft ? nori__lower_rank(n, 0) : -1;
    int64_t axis = nori__attr_i(n, "axis", 1);
    if (!soft || !nori__lower_has(n, 0) || n->output_count == 0 || !n->outputs[0]) {
        return NORI_OK;
    }
    if (rank == 0) {
        return nori__lower_keep(l, "a scalar has no axis %lld", (long long)axis);
    }
    axis += axis < 0 && rank >= 0 ? rank : 0;
    bool alone = rank > 0 && axis >= 0 && axis < rank;
    for (int64_t d = axis + 1; alone && d < rank; d++) {
        alone = n->inputs[0]->type.dims[d].value == 1;
    }
    l->same = true;
    for (int d = 0; !alone && l->opset == 13 && d < rank; d++) {
        if (n->inputs[0]->type.dims[d].value == 0) {
            return nori__lower_keep(l, "an empty tensor is not shaped back before 14");
        }
    }
    if (!alone) {
        return flat_softmax(l, n, axis);
    }
    return nori__node_set_int(n, "axis", axis) ? NORI_OK : nori__no_memory(l->err);
}

/* Before 11 there always is a C. */
nori_status nori__lower_gemm(nori__lowering *l, nori__node *n)
{
    float zero = 0;
    return nori__lower_has(n, 2)
               ? NORI_OK
               : nori__upgrade_floats(n, 2, nori__upgrade_elem(n, 0), &zero, -1, l->err);
}

/* 11 must have roi and scales; what is not used is empty. */
nori_status nori__lower_resize(nori__lowering *l, nori__node *n)
{
    if (n->version < 11 || l->opset < 11) {
        return NORI_OK;
    }
    float none = 0;
    for (uint32_t i = 1; i < 3; i++) {
        if (!nori__lower_has(n, i)) {
            NORI__TRY(nori__upgrade_floats(n, i, NORI_FLOAT, &none, 0, l->err));
        }
    }
    return NORI_OK;
}

/* Resize 10, Upsample 9 and 7: coordinates are asymmetric, scales the only way to say a size. */
nori_status nori__lower_upsample(nori__lowering *l, nori__node *n)
{
    const char *mode = nori__attr_s(n, "mode", "nearest");
    const char *nearest = nori__attr_s(n, "nearest_mode", "round_prefer_floor");
    bool linear = nori__same(mode, "linear"), ten = l->opset == 10;
    bool asymmetric = nori__same(nori__attr_s(n, "coordinate_transformation_mode", "half_pixel"),
                                 "asymmetric");
    bool scales = nori__lower_has(n, 2) && !nori__lower_has(n, 3);
    const nori_tensor *s = scales ? nori__lower_content(n->inputs[2]) : NULL;
    const char *floors = ten ? nori__resize_outward(s) : "floor";
    if (!asymmetric || !scales || !(linear || (nori__same(mode, "nearest") &&
                                               nori__same(nearest, floors)))) {
        return nori__lower_keep(l, "before 11 there are only scales, asymmetric coordinates, and "
                                "nearest rounded down or linear");
    }
    for (int64_t i = 0; !ten && i < (s ? s->count : 1); i++) {
        if (!s || !(nori__tensor_get_f64(s, i) >= 1)) {
            return nori__lower_keep(l, "before 10 it can only enlarge, by scales that are constant");
        }
    }
    nori__node_drop_attr(n, "coordinate_transformation_mode");
    nori__node_drop_attr(n, "nearest_mode");
    nori__node_drop_attr(n, "cubic_coeff_a");
    nori__node_drop_attr(n, "exclude_outside");
    nori__node_drop_attr(n, "extrapolation_value");
    nori__value *by = n->inputs[2];
    if (!nori__node_set_input(n, 1, by)) {
        return nori__no_memory(l->err);
    }
    nori__lower_drop(n, 2);
    l->same = true;
    if (ten) {
        return NORI_OK;
    }
    n->op_type = "Upsample";
    nori__node_resolve_at(n, 9);
    if (l->opset < 9) {
        float list[NORI_MAX_RANK];
        if (s->count > NORI_MAX_RANK || l->opset < 7) {
            return nori__lower_keep(l, "its scales cannot be said before 7");
        }
        for (int64_t i = 0; i < s->count; i++) {
            list[i] = (float)nori__tensor_get_f64(s, i);
        }
        if (!nori__node_set_floats(n, "scales", list, (size_t)s->count)) {
            return nori__no_memory(l->err);
        }
        nori__lower_drop(n, 1);
    }
    return NORI_OK;
}

nori_status nori__lower_scatter(nori__lowering *l, nori__node *n)
{
    if (!nori__same(nori__attr_s(n, "reduction", "none"), "none")) {
        return nori__lower_keep(l, "its reduction came with operator set 16");
    }
    nori__node_drop_attr(n, "reduction");
    n->op_type = "Scatter";
    nori__node_resolve_at(n, l->opset);
    l->same = true;
    return NORI_OK;
}

nori_status nori__lower_grid(nori__lowering *l, nori__node *n)
{
    const char *mode = nori__attr_s(n, "mode", "linear");
    if (n->version < 20) {
        return NORI_OK;
    }
    if (nori__lower_rank(n, 0) != 4) {
        return nori__lower_keep(l, "before 20 it takes pictures of rank 4 only");
    }
    mode = nori__same(mode, "linear") ? "bilinear" : nori__same(mode, "cubic") ? "bicubic" : mode;
    l->same = true;
    return nori__node_set_text(n, "mode", mode) ? NORI_OK : nori__no_memory(l->err);
}

nori_status nori__lower_roi(nori__lowering *l, nori__node *n)
{
    if (n->version < 16) {
        return NORI_OK;
    }
    if (!nori__same(nori__attr_s(n, "coordinate_transformation_mode", "half_pixel"),
                    "output_half_pixel")) {
        return nori__lower_keep(l, "before 16 regions are not moved by half a pixel");
    }
    nori__node_drop_attr(n, "coordinate_transformation_mode");
    l->same = true;
    return NORI_OK;
}

/* Scales by axis came with 13; before the scale is one number. */
nori_status nori__lower_scale(nori__lowering *l, nori__node *n)
{
    if (nori__lower_rank(n, 1) != 0) {
        return nori__lower_keep(l, "before 13 it has one scale for all, a tensor of rank 0");
    }
    nori__node_drop_attr(n, "axis");
    return NORI_OK;
}

/* A type of the scale that is not the input's, and with it another precision, came with 23. */
nori_status nori__lower_quantize_types(nori__lowering *l, nori__node *n)
{
    const nori__value *x = n->input_count > 1 ? n->inputs[0] : NULL, *scale = x ? n->inputs[1] : NULL;
    if (x && scale && x->type.elem != scale->type.elem && x->type.elem != NORI_INT32) {
        return nori__lower_keep(l, "before 23 what it quantizes and its scale are of one type");
    }
    return NORI_OK;
}

/* Indices from the end came with 11. */
nori_status nori__lower_gather(nori__lowering *l, nori__node *n)
{
    const nori_tensor *t = nori__lower_has(n, 1) ? nori__lower_content(n->inputs[1]) : NULL;
    for (int64_t i = 0; t && i < t->count; i++) {
        if (nori__tensor_get_i64(t, i) < 0) {
            return nori__lower_keep(l, "its indices count from the end, which came with version 11");
        }
    }
    return NORI_OK;
}

/* Whether b has the last dimensions of a, all of them known or of one name. */
static bool ends_alike(const nori__value *a, const nori__value *b)
{
    int less = a && b ? a->type.rank - b->type.rank : -1;
    bool same = less >= 0 && b->type.rank >= 0;
    for (int d = 0; same && d < b->type.rank; d++) {
        same = nori__dim_same(a->type.dims[less + d], b->type.dims[d]);
    }
    return same;
}

/* Max and others broadcast since 8. */
nori_status nori__lower_same_shapes(nori__lowering *l, nori__node *n)
{
    for (uint32_t i = 1; n->version >= 8 && i < n->input_count; i++) {
        if (!ends_alike(n->inputs[0], n->inputs[i]) || !ends_alike(n->inputs[i], n->inputs[0])) {
            return nori__lower_keep(l, "before 8 its inputs must be of one known shape");
        }
    }
    return NORI_OK;
}

/* Arithmetic broadcasts on its own since 7; before, only the second input does, when told to. */
nori_status nori__lower_broadcast(nori__lowering *l, nori__node *n)
{
    if (n->version < 7 || n->input_count != 2) {
        return NORI_OK;
    }
    const nori__value *a = n->inputs[0], *b = n->inputs[1];
    if (!ends_alike(a, b)) {
        return nori__lower_keep(l, "before 7 the second input must have the last dimensions of the "
                                "first");
    }
    l->same = true;
    return ends_alike(b, a) || nori__node_set_int(n, "broadcast", 1) ? NORI_OK
                                                                   : nori__no_memory(l->err);
}
