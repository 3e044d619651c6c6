/* nnapi_claim.c: the operators NNAPI runs, from which feature level on, and what rules ask. */
#include <math.h>
#include <stdio.h>

#include "providers/nnapi/nnapi_bytes.h"

#define MOVE(name, level, bytes, family) \
    {"", #name, level, bytes, nori__na_claim_##family, nori__na_emit_##family}
#define ROW(name, level, family) MOVE(name, level, 0, family)
#define MS(name, family) \
    {"com.microsoft", #name, 27, NA_OWN, nori__na_claim_##family, nori__na_emit_##family}

static const na_rule rules[] = {
    ROW(Conv, 27, conv),
    MOVE(MaxPool, 27, 27, pool),
    ROW(AveragePool, 27, pool),
    ROW(GlobalAveragePool, 27, global_pool),
    ROW(Gemm, 27, product),
    ROW(MatMul, 27, product),
    ROW(Add, 27, binary),
    ROW(Mul, 27, binary),
    ROW(Sub, 28, binary),
    ROW(Div, 28, binary),
    ROW(Max, 29, binary),
    ROW(Min, 29, binary),
    ROW(Relu, 27, clip),
    ROW(Clip, 27, clip),
    ROW(Sigmoid, 27, unary),
    ROW(Tanh, 27, unary),
    ROW(Floor, 27, unary),
    ROW(Abs, 29, unary),
    ROW(Exp, 29, unary),
    ROW(Log, 29, unary),
    ROW(Neg, 29, unary),
    ROW(Sqrt, 29, unary),
    ROW(Elu, 30, unary),
    ROW(HardSwish, 30, unary),
    ROW(LeakyRelu, 29, prelu),
    ROW(PRelu, 29, prelu),
    ROW(HardSigmoid, 29, hard_sigmoid),
    ROW(BatchNormalization, 27, batch_norm),
    ROW(Softmax, 27, softmax),
    ROW(ReduceMean, 28, mean),
    ROW(Resize, 27, resize),
    MOVE(Reshape, 27, 27, reshape),
    MOVE(Flatten, 27, 27, reshape),
    MOVE(Squeeze, 27, 27, reshape),
    MOVE(Unsqueeze, 27, 27, reshape),
    MOVE(Identity, 27, 27, reshape),
    MOVE(Dropout, 27, 27, reshape),
    MOVE(Transpose, 28, 28, transpose),
    MOVE(Concat, 27, 27, concat),
    MOVE(Slice, 28, 28, slice),
    MOVE(Split, 28, 28, split),
    ROW(Pad, 28, pad),
    MOVE(DepthToSpace, 27, 27, depth_to_space),
    MOVE(QuantizeLinear, 29, NA_OWN, quantize),
    MOVE(DequantizeLinear, 27, NA_OWN, dequantize),
    MOVE(QLinearConv, 27, NA_OWN, qlinear_conv),
    MOVE(QLinearMatMul, 27, NA_OWN, qlinear_product),
    MS(QGemm, qlinear_product),
    MS(QLinearAdd, qlinear_binary),
    MS(QLinearMul, qlinear_binary),
    MS(QLinearSigmoid, qlinear_unary),
    MS(QLinearLeakyRelu, qlinear_unary),
    MS(QLinearSoftmax, qlinear_unary),
    MS(QLinearAveragePool, qlinear_pool),
    MS(QLinearGlobalAveragePool, qlinear_pool),
    MS(QLinearConcat, qlinear_concat),
};

const na_rule *nori__na_rule(const nori__node *n)
{
    for (size_t i = 0; i < NORI__COUNT(rules); i++) {
        if (nori__same(rules[i].name, n->op_type) && nori__same(rules[i].domain, n->domain)) {
            return &rules[i];
        }
    }
    return NULL;
}

static bool first_out_only(const nori__node *n)
{
    for (uint32_t i = 1; i < n->output_count; i++) {
        if (n->outputs[i]) {
            return false;
        }
    }
    return true;
}

/* Floats, or where bytes says so bytes whose meaning is the same before and after. */
static const char *types_fit(const na_self *self, const nori__node *n, int bytes)
{
    const nori__value *x = n->inputs[0];
    bool many = nori__node_is(n, NORI__OP_ONNX_Split), in_bytes = bytes > 0 && nori__na_is_bytes(x, 0);
    na_quant in, out;
    if (!nori__na_is(x, 0) && !in_bytes) {
        return bytes ? "it is not on floats or bytes of a known shape of at most four dimensions"
                     : "it is not on floats of a known shape of at most four dimensions";
    }
    if (in_bytes && (self->level < bytes || !nori__na_quant(x, &in) ||
                     (in.type == NORI_INT8 && self->level < 30))) {
        return "nothing says what its bytes stand for, or int8 is of a later feature level (30)";
    }
    for (uint32_t i = 0; i < (many ? n->output_count : 1); i++) {
        const nori__value *y = n->outputs[i];
        if (!(in_bytes ? nori__na_is_bytes(y, 0) : nori__na_is(y, 0)) || y->type.rank < 1) {
            return "it does not make such values of a known shape of one to four dimensions";
        }
        if (in_bytes && (!nori__na_quant(y, &out) || !nori__na_same(&in, &out))) {
            return "its bytes stand for other numbers before and after";
        }
    }
    return !many && !first_out_only(n) ? "a second output of it is wanted" : NULL;
}

static const char *why_not(const na_self *self, const nori__node *n, char *text, size_t size)
{
    const na_rule *rule = nori__na_rule(n);
    if (!rule || !n->op) {
        return "NNAPI has no such operator";
    }
    if (rule->level > self->level) {
        snprintf(text, size, "NNAPI has it from feature level %d on, this one has %lld", rule->level,
                 (long long)self->level);
        return text;
    }
    if (n->input_count == 0 || n->output_count == 0 || !n->inputs[0] || !n->outputs[0]) {
        return "it lacks its first input or output";
    }
    const char *why = rule->bytes == NA_OWN ? NULL : types_fit(self, n, rule->bytes);
    return why ? why : rule->claim(self, n);
}

bool nori__na_takes(const na_self *self, const nori__node *n)
{
    char ignored[192];
    return !why_not(self, n, ignored, sizeof(ignored));
}

/* Whoever names this provider wants it used: what it runs counts as free but for copies and the
 * start of a part. */
nori_status nori__na_claim(void *self, const nori_node *node, nori_claim *claim, nori_error *err)
{
    char text[sizeof(claim->reason)];
    const char *why = why_not(self, node, text, sizeof(text));
    (void)err;
    claim->taken = why == NULL;
    claim->static_only = 1;
    snprintf(claim->reason, sizeof(claim->reason), "%s", why ? why : "");
    return NORI_OK;
}

/* ---- what rules ask about a node ---- */

const nori__value *nori__na_in(const nori__node *n, uint32_t i)
{
    return i < n->input_count ? n->inputs[i] : NULL;
}

const nori_tensor *nori__na_const(const nori__node *n, uint32_t i)
{
    return nori__value_const(nori__na_in(n, i));
}

const nori_tensor *nori__na_floats(const nori__node *n, uint32_t i)
{
    const nori_tensor *t = nori__na_const(n, i);
    return t && t->type == NORI_FLOAT && t->count > 0 ? t : NULL;
}

/* The DequantizeLinear of constants that makes input i, or NULL. */
static const nori__node *kept_small(const nori__node *n, uint32_t i)
{
    const nori__value *v = nori__na_in(n, i);
    const nori__node *d = v ? v->producer : NULL;
    bool fits = d && nori__node_is(d, NORI__OP_ONNX_DequantizeLinear) && d->output_count == 1 &&
                v->type.elem == NORI_FLOAT;
    for (uint32_t k = 0; fits && k < d->input_count; k++) {
        fits = !d->inputs[k] || nori__na_const(d, k);
    }
    return fits ? d : NULL;
}

const nori_tensor *nori__na_weights(const nori__node *n, uint32_t i)
{
    const nori__node *d = kept_small(n, i);
    const nori_tensor *t = d ? nori__na_const(d, 0) : nori__na_floats(n, i);
    return t && t->count > 0 ? t : NULL;
}

const nori_tensor *nori__na_weight_floats(const nori__node *n, uint32_t i, nori_tensor **made)
{
    const nori__node *d = kept_small(n, i);
    *made = NULL;
    return !d ? nori__na_floats(n, i)
           : nori__node_evaluate(d, &nori__malloc, made, NULL) == NORI_OK ? *made
                                                                         : NULL;
}

bool nori__na_is(const nori__value *v, int rank)
{
    return v && v->type.elem == NORI_FLOAT && nori__na_known(v, rank);
}

bool nori__na_is_bytes(const nori__value *v, int rank)
{
    return v && (v->type.elem == NORI_UINT8 || v->type.elem == NORI_INT8) && nori__na_known(v, rank);
}

bool nori__na_known(const nori__value *v, int rank)
{
    const nori_tensor *t = nori__value_const(v);
    if (!v || v->type.kind != NORI_KIND_TENSOR || v->type.rank > NA_RANK ||
        (rank > 0 && v->type.rank != rank)) {
        return false;
    }
    if (t) {
        return t->count > 0 && t->count <= INT32_MAX;
    }
    int64_t count = 1;
    for (int d = 0; d < v->type.rank; d++) { /* 0 stands for unknown in NNAPI */
        int64_t size = v->type.dims[d].value;
        if (size < 1 || !nori__mul_dim(count, size, &count) || count > INT32_MAX) {
            return false;
        }
    }
    return v->type.rank > 0; /* as does rank 0 */
}

bool nori__na_scalar(const nori__node *n, uint32_t i, float otherwise, float *out)
{
    const nori__value *v = nori__na_in(n, i);
    const nori_tensor *t = nori__value_const(v);
    *out = otherwise;
    if (t && t->count == 1 && t->type == NORI_FLOAT) {
        *out = *(const float *)t->data;
        return !isnan(*out);
    }
    return !v;
}

int nori__na_axis(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}
