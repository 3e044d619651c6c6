/* xnnpack_claim.c: the operators XNNPACK of 2022 runs, and which nodes of them. */
#include <math.h>
#include <stdio.h>

#include "ops/resolve.h"
#include "providers/xnnpack/xnnpack.h"

#define ONNX(name, family) {"", #name, nori__xp_claim_##family, nori__xp_emit_##family}
#define MS(name, family) {"com.microsoft", #name, nori__xp_claim_##family, nori__xp_emit_##family}

static const xp_rule rules[] = {
    ONNX(Conv, conv),
    ONNX(ConvTranspose, conv_transpose),
    ONNX(Gemm, product),
    ONNX(MatMul, product),
    ONNX(MaxPool, pool),
    ONNX(AveragePool, pool),
    ONNX(GlobalAveragePool, global_pool),
    ONNX(ReduceMean, global_pool),
    ONNX(Relu, clip),
    ONNX(Clip, clip),
    ONNX(Abs, unary),
    ONNX(Neg, unary),
    ONNX(Floor, unary),
    ONNX(Ceil, unary),
    ONNX(Round, unary),
    ONNX(Sqrt, unary),
    ONNX(Sigmoid, unary),
    ONNX(HardSwish, unary),
    ONNX(LeakyRelu, unary),
    ONNX(Elu, unary),
    ONNX(PRelu, prelu),
    ONNX(Pow, pow),
    ONNX(Softmax, softmax),
    ONNX(Add, binary),
    ONNX(Sub, binary),
    ONNX(Mul, binary),
    ONNX(Div, binary),
    ONNX(Max, binary),
    ONNX(Min, binary),
    ONNX(Sum, binary),
    ONNX(BatchNormalization, batch_norm),
    ONNX(HardSigmoid, hard_sigmoid),
    ONNX(Reshape, reshape),
    ONNX(Flatten, reshape),
    ONNX(Squeeze, reshape),
    ONNX(Unsqueeze, reshape),
    ONNX(Identity, reshape),
    ONNX(Dropout, reshape),
    ONNX(Transpose, transpose),
    ONNX(Concat, concat),
    ONNX(Slice, slice),
    ONNX(Split, split),
    ONNX(Pad, pad),
    ONNX(Resize, resize),
    ONNX(DepthToSpace, depth_to_space),
    ONNX(SpaceToDepth, depth_to_space),
    ONNX(QuantizeLinear, quantize),
    ONNX(DequantizeLinear, dequantize),
    ONNX(QLinearConv, qlinear_conv),
    ONNX(QLinearMatMul, qlinear_product),
    MS(QGemm, qlinear_product),
    MS(QLinearAdd, qlinear_binary),
    MS(QLinearMul, qlinear_binary),
    MS(QLinearSigmoid, qlinear_unary),
    MS(QLinearLeakyRelu, qlinear_unary),
    MS(QLinearSoftmax, qlinear_unary),
    MS(QLinearAveragePool, qlinear_pool),
    MS(QLinearGlobalAveragePool, qlinear_pool),
};

const xp_rule *nori__xp_rule(const nori__node *n)
{
    for (size_t i = 0; i < NORI__COUNT(rules); i++) {
        if (nori__same(rules[i].name, n->op_type) && nori__same(rules[i].domain, n->domain)) {
            return &rules[i];
        }
    }
    return NULL;
}

/* Parts cost nothing to copy to, but for turning layouts; whoever names this provider wants it used,
 * so whatever is more than a start is given away (cost_ns 0). */
nori_status nori__xp_claim(void *self, const nori_node *node, nori_claim *claim, nori_error *err)
{
    (void)self;
    (void)err;
    const xp_rule *rule = nori__xp_rule(node);
    const char *why = !rule        ? "XNNPACK has no such operator"
                      : !node->op  ? "a custom operator"
                      : node->input_count == 0 || !node->inputs[0] || node->output_count == 0 ||
                              !node->outputs[0]
                          ? "it lacks its first input or output"
                          : rule->claim(node);
    claim->taken = why == NULL;
    snprintf(claim->reason, sizeof(claim->reason), "%s", why ? why : "");
    return NORI_OK;
}

/* ---- what rules ask about a node ---- */

const nori__value *nori__xp_in(const nori__node *n, uint32_t i)
{
    return i < n->input_count ? n->inputs[i] : NULL;
}

const nori_tensor *nori__xp_const(const nori__node *n, uint32_t i)
{
    return nori__value_const(nori__xp_in(n, i));
}

bool nori__xp_is_8bit(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR &&
           (v->type.elem == NORI_INT8 || v->type.elem == NORI_UINT8);
}

bool nori__xp_is(const nori__value *v, nori_type type, int low)
{
    return v && v->type.kind == NORI_KIND_TENSOR && v->type.rank >= low && v->type.rank <= XP_RANK &&
           (type ? v->type.elem == type : v->type.elem == NORI_FLOAT || nori__xp_is_8bit(v));
}

bool nori__xp_scalar(const nori__node *n, uint32_t i, float otherwise, float *out)
{
    const nori__value *v = nori__xp_in(n, i);
    const nori_tensor *t = nori__value_const(v);
    *out = otherwise;
    if (t && t->count == 1 && t->kind == NORI_KIND_TENSOR && t->type != NORI_STRING) {
        *out = (float)nori__tensor_get_f64(t, 0);
        return !isnan(*out);
    }
    return !v;
}

/* The DequantizeLinear that makes input i of a constant, or NULL. */
static const nori__node *kept_small(const nori__node *n, uint32_t i)
{
    const nori__value *v = nori__xp_in(n, i);
    const nori__node *d = v ? v->producer : NULL;
    bool fits = d && nori__node_is(d, NORI__OP_ONNX_DequantizeLinear) && d->output_count == 1;
    for (uint32_t k = 0; fits && k < d->input_count; k++) {
        fits = !d->inputs[k] || nori__xp_const(d, k);
    }
    return fits ? d : NULL;
}

bool nori__xp_has_weights(const nori__node *n, uint32_t i, int rank)
{
    const nori_tensor *t = nori__xp_const(n, i);
    const nori__node *d = kept_small(n, i);
    const nori_tensor *q = d ? nori__xp_const(d, 0) : NULL;
    return t ? t->type == NORI_FLOAT && t->count > 0 && (!rank || t->rank == rank)
             : q && nori__xp_is(d->outputs[0], NORI_FLOAT, 0) && q->count > 0 &&
                   (!rank || q->rank == rank);
}

const nori_tensor *nori__xp_weights(const nori__node *n, uint32_t i, nori_tensor **made)
{
    const nori_tensor *t = nori__xp_const(n, i);
    const nori__node *d = kept_small(n, i);
    *made = NULL;
    if (!t && d && nori__node_evaluate(d, &nori__malloc, made, NULL) == NORI_OK) {
        t = *made;
    }
    return t;
}
