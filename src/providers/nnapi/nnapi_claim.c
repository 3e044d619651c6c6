/* nnapi_claim.c: the operators NNAPI runs, from which feature level on, and what rules ask. */
#include <math.h>
#include <stdio.h>

#include "providers/nnapi/nnapi.h"

#define ROW(name, level, family) {#name, level, nori__na_claim_##family, nori__na_emit_##family}

static const na_rule rules[] = {
    ROW(Conv, 27, conv),
    ROW(MaxPool, 27, pool),
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
    ROW(Reshape, 27, reshape),
    ROW(Flatten, 27, reshape),
    ROW(Squeeze, 27, reshape),
    ROW(Unsqueeze, 27, reshape),
    ROW(Identity, 27, reshape),
    ROW(Dropout, 27, reshape),
    ROW(Transpose, 28, transpose),
    ROW(Concat, 27, concat),
    ROW(Slice, 28, slice),
    ROW(Split, 28, split),
    ROW(Pad, 28, pad),
    ROW(DepthToSpace, 27, depth_to_space),
};

const na_rule *nori__na_rule(const nori__node *n)
{
    for (size_t i = 0; i < NORI__COUNT(rules) && !*n->domain; i++) {
        if (nori__same(rules[i].name, n->op_type)) {
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
    if (n->input_count == 0 || n->output_count == 0 || !nori__na_is(nori__na_in(n, 0), 0)) {
        return "it is not on floats of a known shape of at most four dimensions";
    }
    bool many = nori__node_is(n, NORI__OP_ONNX_Split);
    for (uint32_t i = 0; i < (many ? n->output_count : 1); i++) {
        if (!nori__na_is(n->outputs[i], 0) || n->outputs[i]->type.rank < 1) {
            return "it does not make floats of a known shape of one to four dimensions";
        }
    }
    if (!many && !first_out_only(n)) {
        return "a second output of it is wanted";
    }
    return rule->claim(self, n);
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

bool nori__na_is(const nori__value *v, int rank)
{
    const nori_tensor *t = nori__value_const(v);
    if (!v || v->type.kind != NORI_KIND_TENSOR || v->type.elem != NORI_FLOAT || v->type.rank > NA_RANK ||
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
