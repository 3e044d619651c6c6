/* nnapi_qlinear.c: operators that name scales and zero points of what goes in and out: QLinearConv,
 * QLinearMatMul, and com.microsoft's. */
#include "providers/nnapi/nnapi_bytes.h"

static const char not_meant[] = "its scales are not single constants that hold for all uses of its "
                                "values, or int8 is of a later feature level (30)";

/* ---- QLinearConv: x, w, y, bias; QLinearMatMul: a, b, y; QGemm: a, b, c, y ---- */

static const char *read_layer(const na_self *self, const nori__node *n, na_layer *l)
{
    bool gemm = nori__node_is(n, NORI__OP_MS_QGemm), conv = nori__node_is(n, NORI__OP_ONNX_QLinearConv);
    uint32_t y = gemm ? 7 : 6, bias = gemm ? 6 : 8;
    *l = (na_layer){.rows = !conv, .factor = gemm ? nori__attr_f(n, "alpha", 1) : 1};
    l->weight = nori__na_const(n, 3);
    l->scale = nori__na_const(n, 4);
    l->zero = nori__na_const(n, 5);
    l->bias = gemm || conv ? nori__na_const(n, bias) : NULL;
    l->turned = gemm && nori__attr_i(n, "transB", 0) != 0;
    if ((nori__na_in(n, 5) && !l->zero) || ((gemm || conv) && nori__na_in(n, bias) && !l->bias) ||
        (gemm && nori__attr_i(n, "transA", 0))) {
        return "its weights are no 8-bit constants";
    }
    if (!nori__na_means(self, n, 1, 2, n->inputs[0], &l->x) ||
        !nori__na_means(self, n, y, y + 1, n->outputs[0], &l->y)) {
        return not_meant;
    }
    return nori__na_layer_fits(self, n, l);
}

const char *nori__na_claim_qlinear_conv(const na_self *self, const nori__node *n)
{
    na_layer l;
    return read_layer(self, n, &l);
}

void nori__na_emit_qlinear_conv(na_part *p, const na_job *j)
{
    na_layer l;
    const char *why = read_layer(p->self, j->node, &l);
    if (why) {
        nori__na_refuse(p, why);
        return;
    }
    nori__na_add_layer(p, j->node, j->in[0], j->out, &l);
}

const char *nori__na_claim_qlinear_product(const na_self *self, const nori__node *n)
{
    return nori__na_claim_qlinear_conv(self, n);
}

void nori__na_emit_qlinear_product(na_part *p, const na_job *j)
{
    nori__na_emit_qlinear_conv(p, j);
}

/* ---- QLinearAdd, QLinearMul ---- */

static int32_t binary_code(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_MS_QLinearMul) ? NA_MUL : NA_ADD;
}

const char *nori__na_claim_qlinear_binary(const na_self *self, const nori__node *n)
{
    na_quant a, b, y;
    return nori__na_means(self, n, 1, 2, n->inputs[0], &a) &&
                   nori__na_means(self, n, 4, 5, nori__na_in(n, 3), &b) &&
                   nori__na_means(self, n, 6, 7, n->outputs[0], &y)
               ? nori__na_binary8_fits(self, binary_code(n), &a, &b, &y)
               : not_meant;
}

void nori__na_emit_qlinear_binary(na_part *p, const na_job *j)
{
    uint32_t in[2] = {j->in[0], j->in[3]};
    nori__na_add_binary8(p, binary_code(j->node), in, j->out, NA_FUSED_NONE);
}

/* ---- QLinearSigmoid, QLinearSoftmax, QLinearLeakyRelu ---- */

/* -1: over all dimensions from one on, as softmax was defined before opset 13. */
static int softmax_axis(const nori__node *n)
{
    int rank = n->inputs[0]->type.rank;
    bool old = nori__attr_i(n, "opset", 13) < 13;
    int axis = nori__na_axis(nori__attr_i(n, "axis", old ? 1 : -1), rank);
    return old && axis != rank - 1 ? -1 : axis;
}

const char *nori__na_claim_qlinear_unary(const na_self *self, const nori__node *n)
{
    na_quant x, y;
    if (!nori__na_means(self, n, 1, 2, n->inputs[0], &x) ||
        !nori__na_means(self, n, 3, 4, n->outputs[0], &y) || x.type != y.type) {
        return not_meant;
    }
    if (nori__node_is(n, NORI__OP_MS_QLinearLeakyRelu)) {
        return self->level < 29 ? "NNAPI has it from feature level 29 on" : NULL;
    }
    if (!nori__na_fixed_meaning(self, NA_LOGISTIC, &y)) {
        return "NNAPI gives it in steps of 1/256 from 0 on";
    }
    return nori__node_is(n, NORI__OP_MS_QLinearSoftmax)
               ? nori__na_softmax_fits(self, n->inputs[0]->type.rank, softmax_axis(n))
               : NULL;
}

void nori__na_emit_qlinear_unary(na_part *p, const na_job *j)
{
    int form = nori__na_layout(p, j->in[0]);
    if (nori__node_is(j->node, NORI__OP_MS_QLinearSoftmax)) {
        nori__na_add_softmax(p, j->in[0], j->out, softmax_axis(j->node));
        return;
    }
    if (nori__node_is(j->node, NORI__OP_MS_QLinearLeakyRelu)) { /* on floats: slopes have no byte */
        na_shape s = nori__na_shape(p, j->in[0], form), one = {.rank = 1, .d = {1}, .count = 1};
        float *slope = nori__na_room(p, 1);
        if (slope) {
            *slope = nori__attr_f(j->node, "alpha", 0.01f);
            uint32_t in[2] = {nori__na_to_floats(p, j->in[0], form), nori__na_constant(p, &one, slope)};
            uint32_t out = nori__na_operand(p, &s);
            nori__na_op(p, NA_PRELU, in, 2, out);
            nori__na_to_bytes(p, out, j->out, form);
        }
        return;
    }
    uint32_t in = nori__na_want(p, j->in[0], form);
    nori__na_op(p, NA_LOGISTIC, &in, 1, nori__na_make(p, j->out, form));
}

/* ---- QLinearAveragePool, QLinearGlobalAveragePool ---- */

const char *nori__na_claim_qlinear_pool(const na_self *self, const nori__node *n)
{
    na_quant x, y;
    if (nori__attr_i(n, "channels_last", 0)) {
        return "its channels come last";
    }
    if (!nori__na_means(self, n, 1, 2, n->inputs[0], &x) ||
        !nori__na_means(self, n, 3, 4, n->outputs[0], &y)) {
        return not_meant;
    }
    if (!nori__na_same(&x, &y)) {
        return "NNAPI averages bytes where what goes in and comes out have one scale";
    }
    return nori__node_is(n, NORI__OP_MS_QLinearAveragePool) ? nori__na_claim_pool(self, n)
                                                             : nori__na_claim_global_pool(self, n);
}

void nori__na_emit_qlinear_pool(na_part *p, const na_job *j)
{
    if (nori__node_is(j->node, NORI__OP_MS_QLinearAveragePool)) {
        nori__na_emit_pool(p, j);
    } else {
        nori__na_emit_global_pool(p, j);
    }
}

/* ---- QLinearConcat: y's scale and zero point, then three inputs each ---- */

const char *nori__na_claim_qlinear_concat(const na_self *self, const nori__node *n)
{
    na_quant y, x;
    const nori__value *first = nori__na_in(n, 2);
    if (!nori__na_means(self, n, 0, 1, n->outputs[0], &y)) {
        return not_meant;
    }
    for (uint32_t i = 2; i < n->input_count; i += 3) {
        if (!nori__na_means(self, n, i + 1, i + 2, n->inputs[i], &x)) {
            return not_meant;
        }
        if (x.type != y.type || (self->level < 29 && !nori__na_same(&x, &y))) {
            return "NNAPI joins bytes of other scales from feature level 29 on";
        }
    }
    return first && nori__na_axis(nori__attr_i(n, "axis", 1), first->type.rank) >= 0
               ? NULL
               : "its axis does not fit";
}

void nori__na_emit_qlinear_concat(na_part *p, const na_job *j)
{
    na_job plain = *j;
    uint32_t *in = nori__arena_array(&p->arena, (size_t)j->n_in + 1, sizeof(*in));
    if (!in) {
        nori__na_check(p, 1, "Model_addOperation");
        return;
    }
    plain.in = in;
    plain.n_in = 0;
    for (uint32_t i = 2; i < j->n_in; i += 3) {
        in[plain.n_in++] = j->in[i];
    }
    nori__na_emit_concat(p, &plain);
}
