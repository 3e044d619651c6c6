/* upgrade_forms.c: attributes that later versions take as inputs. What is missing in the old form
 * gets the default of that form, which is not always the new one's. */
#include <float.h>

#include "ops/upgrade.h"

static bool has_input(const nori__node *n, uint32_t i)
{
    return i < n->input_count && n->inputs[i];
}

/* Squeeze, Unsqueeze, Reduce*: no axes means all (or all of size 1) in both forms. */
nori_status nori__upgrade_axes(nori__node *n, nori_error *err)
{
    return has_input(n, 1) ? NORI_OK : nori__upgrade_list(n, "axes", 1, err);
}

/* Equal parts are said by the number of outputs until 17, by an attribute from 18 on. */
nori_status nori__upgrade_split(nori__node *n, nori_error *err)
{
    if (!has_input(n, 1)) {
        NORI__TRY(nori__upgrade_list(n, "split", 1, err));
    }
    if (!has_input(n, 1) && !nori__attr_find(n, "num_outputs")) {
        n->even = true;
        if (!nori__node_set_int(n, "num_outputs", n->output_count)) {
            return nori__no_memory(err);
        }
    }
    return NORI_OK;
}

nori_status nori__upgrade_slice(nori__node *n, nori_error *err)
{
    if (!nori__attr_find(n, "starts") || !nori__attr_find(n, "ends")) {
        return nori__fail(err, NORI_ERROR_MODEL, "Slice needs the attributes starts and ends");
    }
    NORI__TRY(nori__upgrade_list(n, "starts", 1, err));
    NORI__TRY(nori__upgrade_list(n, "ends", 2, err));
    return nori__upgrade_list(n, "axes", 3, err);
}

nori_status nori__upgrade_pad(nori__node *n, nori_error *err)
{
    const char *name = nori__attr_find(n, "pads") ? "pads" : "paddings";
    if (!nori__attr_find(n, name)) {
        return nori__fail(err, NORI_ERROR_MODEL, "Pad needs the attribute pads");
    }
    float value = nori__attr_f(n, "value", 0);
    NORI__TRY(nori__upgrade_list(n, name, 1, err));
    nori__node_drop_attr(n, "value");
    return value != 0 ? nori__upgrade_floats(n, 2, nori__upgrade_elem(n, 0), &value, -1, err)
                      : NORI_OK;
}

/* A bound that is not given is none: the old defaults are the largest finite numbers of float32. */
nori_status nori__upgrade_clip(nori__node *n, nori_error *err)
{
    static const char *const names[] = {"min", "max"};
    nori_type elem = nori__upgrade_elem(n, 0);
    for (uint32_t i = 0; i < 2; i++) {
        /* Version 6 has the largest float as default: there infinity is clipped as well. */
        if (nori__attr_find(n, names[i]) || n->version >= 6) {
            float bound = nori__attr_f(n, names[i], i == 0 ? -FLT_MAX : FLT_MAX);
            NORI__TRY(nori__upgrade_floats(n, 1 + i, elem, &bound, -1, err));
            nori__node_drop_attr(n, names[i]);
        }
    }
    return NORI_OK;
}

nori_status nori__upgrade_topk(nori__node *n, nori_error *err)
{
    int64_t k = nori__attr_i(n, "k", -1);
    if (k < 0) {
        return nori__fail(err, NORI_ERROR_MODEL, "TopK needs the attribute k, at least 0");
    }
    nori__node_drop_attr(n, "k");
    return nori__upgrade_ints(n, 1, &k, 1, err);
}

/* Whoever runs the model here does not train it: is_test is taken as said. */
nori_status nori__upgrade_dropout(nori__node *n, nori_error *err)
{
    float ratio = nori__attr_f(n, "ratio", 0.5f);
    nori__node_drop_attr(n, "ratio");
    nori__node_drop_attr(n, "is_test");
    return has_input(n, 1)
               ? NORI_OK
               : nori__upgrade_floats(n, 1, nori__upgrade_elem(n, 0), &ratio, -1, err);
}

nori_status nori__upgrade_reshape(nori__node *n, nori_error *err)
{
    return has_input(n, 1) ? NORI_OK : nori__upgrade_list(n, "shape", 1, err);
}

/* The axis without attribute is 1 before 20 and -2 later. */
nori_status nori__upgrade_dft(nori__node *n, nori_error *err)
{
    int64_t axis = nori__attr_i(n, "axis", 1);
    nori__node_drop_attr(n, "axis");
    return nori__upgrade_ints(n, 2, &axis, -1, err);
}

/* Tile 1 repeats along one axis; later every axis has its number. */
nori_status nori__upgrade_tile(nori__node *n, nori_error *err)
{
    if (n->input_count < 3) {
        return NORI_OK; /* written in the new form: many files are */
    }
    const nori_tensor *tiles = nori__value_const(n->inputs[1]);
    const nori_tensor *axis = nori__value_const(n->inputs[2]);
    int rank = n->inputs[0] ? n->inputs[0]->type.rank : -1;
    if (!tiles || !axis || tiles->count != 1 || axis->count != 1 || rank < 0) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "Tile of version 1 needs constant tiles and axis, and a known rank");
    }
    int at;
    int64_t repeats[NORI_MAX_RANK];
    NORI__TRY(nori__fix_axis(err, nori__tensor_get_i64(axis, 0), rank, &at));
    for (int d = 0; d < rank; d++) {
        repeats[d] = d == at ? nori__tensor_get_i64(tiles, 0) : 1;
    }
    if (!nori__node_set_input(n, 2, NULL)) {
        return nori__no_memory(err);
    }
    n->input_count = 2;
    return nori__upgrade_ints(n, 1, repeats, rank, err);
}
