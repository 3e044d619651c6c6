/* xnnpack_qlinear.c: QuantizeLinear, DequantizeLinear, and operators that name the scales and zero
 * points of what goes in and out: QLinearConv, QLinearMatMul, and com.microsoft's. */
#include <math.h>

#include "ops/resolve.h"
#include "providers/xnnpack/xnnpack_int8.h"

/* ---- to bytes and back ---- */

typedef struct converting {
    bool to_bytes;
} converting;

static nori_status setup_convert(xp_part *p, xp_step *s, nori_error *err)
{
    size_t n = nori__xp_shape(p, s->in[0]).count;
    s->idle = n == 0;
    if (s->idle) {
        return NORI_OK;
    }
    if (((const converting *)s->args)->to_bytes) {
        XP_TRY(XNN(setup_convert_nc_f32_qs8)(s->op, n, nori__xp_floats(p, s->in[0]),
                                            nori__xp_bytes(p, s->out), nori__xp_pool(p)),
               s->node, err);
    } else {
        XP_TRY(XNN(setup_convert_nc_qs8_f32)(s->op, n, nori__xp_bytes(p, s->in[0]),
                                            nori__xp_floats(p, s->out), nori__xp_pool(p)),
               s->node, err);
    }
    return NORI_OK;
}

const char *nori__xp_claim_quantize(const nori__node *n)
{
    xp_quant q;
    return nori__xp_is(n->inputs[0], NORI_FLOAT, 0) && nori__xp_quant(n, 1, 2, n->outputs[0], &q)
               ? NULL
               : "it is not from floats to bytes by one constant scale";
}

nori_status nori__xp_emit_quantize(xp_part *p, const xp_job *j, nori_error *err)
{
    xp_quant q;
    unsigned form = nori__xp_layout(p, j->in[0]);
    if (!nori__xp_quant(j->node, 1, 2, j->node->outputs[0], &q)) {
        return nori__fail(err, NORI_ERROR_INTERNAL, "its scale was constant");
    }
    uint32_t in = nori__xp_want(p, j->in[0], form), out = nori__xp_make(p, j->out, form | q.form);
    xp_step *s = nori__xp_step(p, j->node, &in, 1, out, sizeof(converting), setup_convert);
    if (!s) {
        return nori__no_memory(err);
    }
    ((converting *)s->args)->to_bytes = true;
    XP_TRY(XNN(create_convert_nc_f32_qs8)(1, 1, 1, q.scale, (int8_t)q.zero, INT8_MIN, INT8_MAX, 0,
                                         &s->op),
           j->node, err);
    return NORI_OK;
}

/* Constants that fold.c left small are weights: who uses them packs them. */
const char *nori__xp_claim_dequantize(const nori__node *n)
{
    xp_quant q;
    if (!nori__xp_is(n->outputs[0], NORI_FLOAT, 0)) {
        return "it does not give floats of a known rank";
    }
    if (nori__xp_const(n, 0)) {
        return nori__xp_const(n, 1) && (!nori__xp_in(n, 2) || nori__xp_const(n, 2))
                   ? NULL
                   : "its scale is not constant";
    }
    return nori__xp_quant(n, 1, 2, n->inputs[0], &q) ? NULL
                                                     : "it is not from bytes by one constant scale";
}

static uint32_t fixed_floats(xp_part *p, const nori__node *n)
{
    nori_tensor *t = NULL;
    if (nori__node_evaluate(n, &nori__malloc, &t, NULL) != NORI_OK) {
        p->failed = true;
        return XP_NONE;
    }
    xp_shape s = {.rank = t->rank, .count = (size_t)t->count};
    for (int d = 0; d < t->rank && d < XP_RANK; d++) {
        s.d[d] = (size_t)t->dims[d];
    }
    uint32_t b = nori__xp_fixed(p, &s, 4, t->data);
    nori_tensor_free(t);
    return b;
}

nori_status nori__xp_emit_dequantize(xp_part *p, const xp_job *j, nori_error *err)
{
    xp_quant q;
    if (nori__xp_const(j->node, 0)) {
        return nori__xp_share(p, j->out, 0, fixed_floats(p, j->node)) ? NORI_OK
                                                                      : nori__no_memory(err);
    }
    unsigned form = nori__xp_layout(p, j->in[0]);
    if (!nori__xp_quant(j->node, 1, 2, j->node->inputs[0], &q)) {
        return nori__fail(err, NORI_ERROR_INTERNAL, "its scale was constant");
    }
    uint32_t in = nori__xp_want(p, j->in[0], form | q.form), out = nori__xp_make(p, j->out, form);
    xp_step *s = nori__xp_step(p, j->node, &in, 1, out, sizeof(converting), setup_convert);
    if (!s) {
        return nori__no_memory(err);
    }
    XP_TRY(XNN(create_convert_nc_qs8_f32)(1, 1, 1, q.scale, (int8_t)q.zero, 0, &s->op), j->node, err);
    return NORI_OK;
}

/* ---- QLinearConv ---- */

static const char not_constant[] = "its scales and zero points are not single constants";

static const char *read_conv(const nori__node *n, xp_conv8 *c)
{
    *c = (xp_conv8){.low = INT8_MIN, .high = INT8_MAX};
    c->weight = nori__xp_const(n, 3);
    c->scale = nori__xp_const(n, 4);
    c->zero = nori__xp_const(n, 5);
    c->bias = nori__xp_const(n, 8);
    if (!nori__xp_is(n->inputs[0], NORI_UNDEFINED, 3) || !c->weight || !c->scale ||
        (nori__xp_in(n, 5) && !c->zero) || (nori__xp_in(n, 8) && !c->bias) ||
        c->weight->rank != n->inputs[0]->type.rank) {
        return "its weights are not constant";
    }
    if (!nori__xp_quant(n, 1, 2, n->inputs[0], &c->x) ||
        !nori__xp_quant(n, 6, 7, n->outputs[0], &c->y)) {
        return not_constant;
    }
    const char *why = nori__xp_window(n, c->weight, &c->w);
    return why ? why : nori__xp_conv8_fits(c);
}

const char *nori__xp_claim_qlinear_conv(const nori__node *n)
{
    xp_conv8 c;
    return read_conv(n, &c);
}

nori_status nori__xp_emit_qlinear_conv(xp_part *p, const xp_job *j, nori_error *err)
{
    xp_conv8 c;
    const char *why = read_conv(j->node, &c);
    return why ? nori__fail(err, NORI_ERROR_UNSUPPORTED, "%s", why)
               : nori__xp_conv8(p, j->node, j->in[0], j->out, &c, err);
}

/* ---- QLinearMatMul: a, b, y; QGemm: a, b, c, y ---- */

static const char *read_product(const nori__node *n, xp_conv8 *c)
{
    bool gemm = nori__node_is(n, NORI__OP_MS_QGemm);
    uint32_t y = gemm ? 7 : 6;
    *c = (xp_conv8){.low = INT8_MIN, .high = INT8_MAX, .rows = true};
    c->weight = nori__xp_const(n, 3);
    c->scale = nori__xp_const(n, 4);
    c->zero = nori__xp_const(n, 5);
    c->bias = gemm ? nori__xp_const(n, 6) : NULL;
    if (!nori__xp_is(n->inputs[0], NORI_UNDEFINED, 2) || !c->weight || !c->scale ||
        c->weight->rank != 2 || (nori__xp_in(n, 5) && !c->zero) ||
        (gemm && nori__xp_in(n, 6) && !c->bias) || (gemm && nori__attr_i(n, "transA", 0))) {
        return "it is no product with a constant matrix";
    }
    if (!nori__xp_quant(n, 1, 2, n->inputs[0], &c->x) ||
        !nori__xp_quant(n, y, y + 1, n->outputs[0], &c->y)) {
        return not_constant;
    }
    c->turned = gemm && nori__attr_i(n, "transB", 0) != 0;
    c->x.scale *= gemm ? nori__attr_f(n, "alpha", 1) : 1;
    nori__xp_window_rows(c->weight, c->turned, &c->w);
    return isnormal(c->x.scale) && c->x.scale > 0 ? nori__xp_conv8_fits(c) : not_constant;
}

const char *nori__xp_claim_qlinear_product(const nori__node *n)
{
    xp_conv8 c;
    return read_product(n, &c);
}

nori_status nori__xp_emit_qlinear_product(xp_part *p, const xp_job *j, nori_error *err)
{
    xp_conv8 c;
    const char *why = read_product(j->node, &c);
    return why ? nori__fail(err, NORI_ERROR_UNSUPPORTED, "%s", why)
               : nori__xp_conv8(p, j->node, j->in[0], j->out, &c, err);
}

/* ---- com.microsoft's elementwise and pools ---- */

static const char *read_binary(const nori__node *n, xp_binary8 *c)
{
    c->op = nori__node_is(n, NORI__OP_MS_QLinearMul) ? NORI__OP_ONNX_Mul : NORI__OP_ONNX_Add;
    c->low = INT8_MIN;
    c->high = INT8_MAX;
    if (!nori__xp_is(n->inputs[0], NORI_UNDEFINED, 0) ||
        !nori__xp_is(nori__xp_in(n, 3), NORI_UNDEFINED, 0) ||
        !nori__xp_quant(n, 1, 2, n->inputs[0], &c->a) ||
        !nori__xp_quant(n, 4, 5, n->inputs[3], &c->b) ||
        !nori__xp_quant(n, 6, 7, n->outputs[0], &c->y)) {
        return not_constant;
    }
    return nori__xp_binary8_fits(c);
}

const char *nori__xp_claim_qlinear_binary(const nori__node *n)
{
    xp_binary8 c;
    return read_binary(n, &c);
}

nori_status nori__xp_emit_qlinear_binary(xp_part *p, const xp_job *j, nori_error *err)
{
    xp_binary8 c;
    uint32_t in[2] = {j->in[0], j->in[3]};
    const char *why = read_binary(j->node, &c);
    return why ? nori__fail(err, NORI_ERROR_UNSUPPORTED, "%s", why)
               : nori__xp_binary8(p, j->node, in, j->out, &c, err);
}

static const char *read_unary(const nori__node *n, xp_unary8 *c)
{
    const nori__value *x = n->inputs[0];
    *c = (xp_unary8){.op = NORI__OP_ONNX_Sigmoid, .alpha = nori__attr_f(n, "alpha", 0.01f)};
    if (!nori__xp_is(x, NORI_UNDEFINED, 1) || !nori__xp_quant(n, 1, 2, x, &c->x) ||
        !nori__xp_quant(n, 3, 4, n->outputs[0], &c->y)) {
        return not_constant;
    }
    if (nori__node_is(n, NORI__OP_MS_QLinearLeakyRelu)) {
        c->op = NORI__OP_ONNX_LeakyRelu;
    } else if (nori__node_is(n, NORI__OP_MS_QLinearSoftmax)) {
        c->op = NORI__OP_ONNX_Softmax;
        bool old = nori__attr_i(n, "opset", 13) < 13; /* flattens from axis on */
        c->axis = nori__attr_i(n, "axis", old ? 1 : -1);
        c->axis += c->axis < 0 ? x->type.rank : 0;
        if (c->axis != x->type.rank - 1 && (c->axis != 1 || old)) {
            return "its axis is neither channels nor the last";
        }
    }
    return nori__xp_unary8_fits(c);
}

const char *nori__xp_claim_qlinear_unary(const nori__node *n)
{
    xp_unary8 c;
    return read_unary(n, &c);
}

nori_status nori__xp_emit_qlinear_unary(xp_part *p, const xp_job *j, nori_error *err)
{
    xp_unary8 c;
    const char *why = read_unary(j->node, &c);
    return why ? nori__fail(err, NORI_ERROR_UNSUPPORTED, "%s", why)
               : nori__xp_unary8(p, j->node, j->in[0], j->out, &c, err);
}

static const char *read_pool(const nori__node *n, xp_pool8 *c)
{
    const nori__value *x = n->inputs[0];
    *c = (xp_pool8){.all = nori__node_is(n, NORI__OP_MS_QLinearGlobalAveragePool)};
    if (!nori__xp_is(x, NORI_UNDEFINED, 3) || nori__attr_i(n, "channels_last", 0) ||
        !nori__xp_quant(n, 1, 2, x, &c->x) || !nori__xp_quant(n, 3, 4, n->outputs[0], &c->y)) {
        return not_constant;
    }
    const char *why = c->all ? NULL : nori__xp_window(n, NULL, &c->w);
    return why ? why : nori__xp_pool8_fits(c);
}

const char *nori__xp_claim_qlinear_pool(const nori__node *n)
{
    xp_pool8 c;
    return read_pool(n, &c);
}

nori_status nori__xp_emit_qlinear_pool(xp_part *p, const xp_job *j, nori_error *err)
{
    xp_pool8 c;
    const char *why = read_pool(j->node, &c);
    return why ? nori__fail(err, NORI_ERROR_UNSUPPORTED, "%s", why)
               : nori__xp_pool8(p, j->node, j->in[0], j->out, &c, err);
}
