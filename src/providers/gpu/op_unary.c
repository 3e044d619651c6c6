/* op_unary.c: functions of one number, as kernels of their own and behind others. */
#include <math.h>

#include "providers/gpu/gpu.h"

/* Settings are attributes, by name and default. */
static const struct {
    gpu_unary kind;
    const char *a, *b;
    float a_default, b_default;
} settings[] = {
    {UNARY_LeakyRelu, "alpha", NULL, 0.01f, 0},
    {UNARY_HardSigmoid, "alpha", "beta", 0.2f, 0.5f},
    {UNARY_Swish, "alpha", NULL, 1, 0},
    {UNARY_Elu, "alpha", NULL, 1, 0},
    {UNARY_Celu, "alpha", NULL, 1, 0},
    {UNARY_Selu, "alpha", "gamma", 1.67326319217681884765625f, 1.05070102214813232421875f},
    {UNARY_ThresholdedRelu, "alpha", NULL, 1, 0},
};

static float limit(const nori__node *node, uint32_t i, float otherwise)
{
    const nori_tensor *t = nori__gpu_const(node, i);
    return t && t->count == 1 ? (float)nori__tensor_get_f64(t, 0) : otherwise;
}

static void read_settings(const nori__node *node, int kind, gpu_then *then)
{
    *then = (gpu_then){.kind = kind};
    if (kind == UNARY_Clip) {
        then->a = limit(node, 1, -INFINITY);
        then->b = limit(node, 2, INFINITY);
    }
    if (kind == UNARY_Gelu && nori__same(nori__attr_s(node, "approximate", "none"), "tanh")) {
        then->kind = UNARY_GeluTanh;
    }
    for (size_t i = 0; i < NORI__COUNT(settings); i++) {
        if (settings[i].kind == (gpu_unary)kind) {
            then->a = nori__attr_f(node, settings[i].a, settings[i].a_default);
            then->b = settings[i].b ? nori__attr_f(node, settings[i].b, settings[i].b_default) : 0;
        }
    }
}

bool nori__gpu_then(const nori__node *node, gpu_then *then)
{
    for (const gpu_op *op = nori__gpu_unary_ops; op->name && !node->domain[0]; op++) {
        if (nori__same(op->name, node->op_type)) {
            read_settings(node, op->kind, then);
            return true;
        }
    }
    return false;
}

static bool takes_clip(const gpu_ask *ask)
{
    return nori__gpu_fixed(ask, 1, "limits") && nori__gpu_fixed(ask, 2, "limits");
}

static void lower_unary(gpu_lower *l, const gpu_node *n)
{
    gpu_then then;
    int64_t count = nori__gpu_out_shape(l, n, 0)->count;
    read_settings(n->node, n->op->kind, &then);
    nori__gpu_kernel(l, GPU_IN_elementwise, "unary_plain");
    nori__gpu_mem(l, nori__gpu_in(l, n, 0));
    nori__gpu_mem(l, nori__gpu_out(l, n, 0));
    nori__gpu_int(l, count);
    nori__gpu_int(l, then.kind);
    nori__gpu_float(l, then.a);
    nori__gpu_float(l, then.b);
    nori__gpu_items(l, count, 1, 1);
}

#define ROW(name) {#name, GPU_IN_elementwise, false, UNARY_##name, NULL, NULL, lower_unary}
const gpu_op nori__gpu_unary_ops[] = {
    ROW(Relu),
    ROW(LeakyRelu),
    {"Clip", GPU_IN_elementwise, false, UNARY_Clip, takes_clip, NULL, lower_unary},
    ROW(Sigmoid),
    ROW(Tanh),
    ROW(HardSigmoid),
    ROW(HardSwish),
    ROW(Swish),
    ROW(Mish),
    ROW(Gelu),
    ROW(Elu),
    ROW(Celu),
    ROW(Selu),
    ROW(ThresholdedRelu),
    ROW(Softplus),
    ROW(Softsign),
    ROW(Exp),
    ROW(Log),
    ROW(Sqrt),
    ROW(Reciprocal),
    ROW(Abs),
    ROW(Neg),
    ROW(Floor),
    ROW(Ceil),
    ROW(Round),
    ROW(Sign),
    ROW(Erf),
    ROW(Sin),
    ROW(Cos),
    {0},
};
#undef ROW
