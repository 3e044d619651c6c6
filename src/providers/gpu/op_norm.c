/* op_norm.c: normalization: by constants a channel (batch), or by what rows hold (layer, RMS,
 * instance, group). Scale and shift are kept as float, whatever activations are stored as. */
#include <math.h>

#include "providers/gpu/gpu.h"

static bool takes_batch(const gpu_ask *ask)
{
    static const char *const names[] = {"scale", "B", "mean", "var"};
    const nori__node *node = ask->node;
    const nori_tensor *scale = nori__gpu_const(node, 1);
    for (uint32_t i = 1; i < 5; i++) {
        const nori_tensor *t = nori__gpu_const(node, i);
        if (!nori__gpu_fixed(ask, i, names[i - 1])) {
            return false;
        }
        if (!t || t->count != scale->count) {
            return nori__gpu_no(ask, "%s has not one number a channel", names[i - 1]);
        }
    }
    return nori__attr_i(node, "training_mode", 0) == 0 || nori__gpu_no(ask, "it does not train");
}

static nori_status pack_batch(gpu_self *self, gpu_node *n, nori_error *err)
{
    const nori_tensor *t[4];
    double epsilon = (double)nori__attr_f(n->node, "epsilon", 1e-5f);
    for (uint32_t i = 0; i < 4; i++) {
        t[i] = nori__gpu_const(n->node, i + 1);
    }
    size_t count = (size_t)t[0]->count;
    float *scale = nori__gpu_take_floats(t[0], count, err);
    float *shift = nori__gpu_take_floats(t[1], count, err);
    for (size_t i = 0; scale && shift && i < count; i++) {
        double by = (double)scale[i] / sqrt(nori__tensor_get_f64(t[3], (int64_t)i) + epsilon);
        shift[i] = (float)((double)shift[i] - nori__tensor_get_f64(t[2], (int64_t)i) * by);
        scale[i] = (float)by;
    }
    if (scale && shift) {
        n->packed[0] = nori__gpu_floats(self, scale, count, err);
        n->packed[1] = nori__gpu_floats(self, shift, count, err);
    }
    nori__gpu_give_floats(scale, count);
    nori__gpu_give_floats(shift, count);
    return n->packed[0] && n->packed[1] ? NORI_OK : NORI_ERROR_MEMORY;
}

static void lower_batch(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0);
    int64_t channels = x->rank > 1 ? x->dims[1] : 1;
    int64_t inner = x->rank > 2 ? nori__gpu_product(x->dims, 2, x->rank) : 1;
    nori__gpu_kernel(l, GPU_IN_elementwise, "channel_affine");
    nori__gpu_mem(l, nori__gpu_in(l, n, 0));
    nori__gpu_mem(l, n->packed[0]);
    nori__gpu_mem(l, n->packed[1]);
    nori__gpu_mem(l, nori__gpu_out(l, n, 0));
    nori__gpu_int(l, x->count);
    nori__gpu_int(l, channels);
    nori__gpu_int(l, inner > 0 ? inner : 1);
    nori__gpu_fused(l, n);
    nori__gpu_items(l, x->count, 1, 1);
}

/* ---- by rows ---- */

/* Scale, and shift or 0. every > 1: each number stands for that many channels. */
static nori_status pack_rows(gpu_self *self, gpu_node *n, nori_error *err)
{
    const nori_tensor *scale = nori__gpu_const(n->node, 1), *shift = nori__gpu_const(n->node, 2);
    size_t count = (size_t)scale->count, bytes = count * sizeof(float);
    float *v = nori__gpu_take_floats(scale, count, err);
    float *s = shift ? nori__gpu_take_floats(shift, count, err) : nori__alloc_zero(&nori__malloc, bytes);
    if (v && s) {
        n->packed[0] = nori__gpu_floats(self, v, count, err);
        n->packed[1] = nori__gpu_floats(self, s, count, err);
    }
    nori__gpu_give_floats(v, count);
    nori__gpu_give_floats(s, count);
    return n->packed[0] && n->packed[1] ? NORI_OK : nori__no_memory(err);
}

static bool takes_params(const gpu_ask *ask)
{
    const nori__node *node = ask->node;
    if (!nori__gpu_has(node, 1) || !nori__gpu_fixed(ask, 1, "scale") ||
        !nori__gpu_fixed(ask, 2, "shift")) {
        return nori__gpu_no(ask, "it takes constant scale and shift only");
    }
    const nori_tensor *scale = nori__gpu_const(node, 1), *shift = nori__gpu_const(node, 2);
    return !shift || shift->count == scale->count ||
           nori__gpu_no(ask, "scale and shift have not as many numbers");
}

/* Scale has the sizes of the axes that are normalized, which must be known. */
static bool takes_layer(const gpu_ask *ask)
{
    const nori__type *x = &ask->node->inputs[0]->type;
    int64_t axis = nori__attr_i(ask->node, "axis", -1), n = 1;
    if (!takes_params(ask)) {
        return false;
    }
    axis = axis < 0 ? axis + x->rank : axis;
    for (int d = (int)axis; axis >= 0 && d < x->rank; d++) {
        n = x->dims[d].value < 0 || !nori__mul_dim(n, x->dims[d].value, &n) ? -1 : n;
        if (n < 0) {
            break;
        }
    }
    return (axis >= 0 && axis < x->rank && n == nori__gpu_const(ask->node, 1)->count) ||
           nori__gpu_no(ask, "it takes a scale of the sizes that are normalized only");
}

static bool takes_instance(const gpu_ask *ask)
{
    const nori__type *x = &ask->node->inputs[0]->type;
    return (takes_params(ask) && x->rank >= 2 &&
            x->dims[1].value == nori__gpu_const(ask->node, 1)->count) ||
           nori__gpu_no(ask, "it takes constant scale and shift of one number a channel only");
}

static bool takes_group(const gpu_ask *ask)
{
    int64_t groups = nori__attr_i(ask->node, "num_groups", 0);
    if (groups < 1 || ask->node->version < 21) { /* before, scale had a number a group */
        return nori__gpu_no(ask, "it takes GroupNormalization of opset 21 and later only");
    }
    return takes_instance(ask) &&
           (ask->node->inputs[0]->type.dims[1].value % groups == 0 ||
            nori__gpu_no(ask, "channels do not divide into groups"));
}

static void lower_rows(gpu_lower *l, const gpu_node *n, int64_t rows, int64_t size, int64_t period,
                       int64_t each, int64_t inner, bool centred)
{
    nori__gpu_kernel(l, GPU_IN_rows, "normalize_rows");
    nori__gpu_mem(l, nori__gpu_in(l, n, 0));
    nori__gpu_mem(l, n->packed[0]);
    nori__gpu_mem(l, n->packed[1]);
    nori__gpu_mem(l, nori__gpu_out(l, n, 0));
    nori__gpu_local(l);
    nori__gpu_int(l, size);
    nori__gpu_int(l, period > 0 ? period : 1);
    nori__gpu_int(l, each);
    nori__gpu_int(l, inner > 0 ? inner : 1);
    nori__gpu_int(l, centred);
    nori__gpu_float(l, nori__attr_f(n->node, "epsilon", 1e-5f));
    nori__gpu_rows(l, size > 0 ? rows : 0, size);
}

static void lower_layer(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0);
    int64_t axis = nori__attr_i(n->node, "axis", -1);
    int from = (int)(axis < 0 ? axis + x->rank : axis);
    lower_rows(l, n, nori__gpu_product(x->dims, 0, from), nori__gpu_product(x->dims, from, x->rank),
               1, 0, 1, nori__same(n->op->name, "LayerNormalization"));
}

static void lower_channels(gpu_lower *l, const gpu_node *n)
{
    const gpu_shape *x = nori__gpu_in_shape(l, n, 0);
    bool by_group = nori__same(n->op->name, "GroupNormalization");
    int64_t groups = by_group ? nori__attr_i(n->node, "num_groups", 1) : x->dims[1];
    int64_t each = groups > 0 ? x->dims[1] / groups : 1;
    int64_t plane = nori__gpu_product(x->dims, 2, x->rank);
    lower_rows(l, n, x->dims[0] * groups, each * plane, groups, each, plane, true);
}

const gpu_op nori__gpu_norm_ops[] = {
    {"BatchNormalization", GPU_IN_elementwise, true, 0, takes_batch, pack_batch, lower_batch},
    {"LayerNormalization", GPU_IN_rows, false, 0, takes_layer, pack_rows, lower_layer},
    {"RMSNormalization", GPU_IN_rows, false, 0, takes_layer, pack_rows, lower_layer},
    {"InstanceNormalization", GPU_IN_rows, false, 0, takes_instance, pack_rows, lower_channels},
    {"GroupNormalization", GPU_IN_rows, false, 0, takes_group, pack_rows, lower_channels},
    {0},
};
