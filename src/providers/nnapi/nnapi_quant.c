/* nnapi_quant.c: what bytes stand for, and the ways from floats to bytes and back. */
#include <math.h>

#include "providers/nnapi/nnapi_bytes.h"

/* ---- who says it ---- */

/* Operators that name the meaning of input 0, of a second input, and of what they give: scales are
 * there, zero points behind them. 0: no second input. */
static const struct {
    nori__op_id op;
    uint8_t second, y;
} sayers[] = {
    {NORI__OP_ONNX_QLinearConv, 0, 6},
    {NORI__OP_ONNX_QLinearMatMul, 3, 6},
    {NORI__OP_MS_QGemm, 0, 7},
    {NORI__OP_MS_QLinearAdd, 3, 6},
    {NORI__OP_MS_QLinearMul, 3, 6},
    {NORI__OP_MS_QLinearSigmoid, 0, 3},
    {NORI__OP_MS_QLinearLeakyRelu, 0, 3},
    {NORI__OP_MS_QLinearSoftmax, 0, 3},
    {NORI__OP_MS_QLinearAveragePool, 0, 3},
    {NORI__OP_MS_QLinearGlobalAveragePool, 0, 3},
};

/* What keeps bytes as they are, of ONNX. */
static const nori__op_id movers[] = {
    NORI__OP_ONNX_MaxPool,   NORI__OP_ONNX_Reshape,   NORI__OP_ONNX_Flatten,  NORI__OP_ONNX_Squeeze,
    NORI__OP_ONNX_Unsqueeze, NORI__OP_ONNX_Transpose, NORI__OP_ONNX_Identity, NORI__OP_ONNX_Dropout,
    NORI__OP_ONNX_Concat,    NORI__OP_ONNX_Slice,     NORI__OP_ONNX_Split,    NORI__OP_ONNX_DepthToSpace,
};

bool nori__na_said(const nori__node *n, uint32_t scale, uint32_t zero, const nori__value *v,
                   na_quant *q)
{
    const nori_tensor *s = nori__na_const(n, scale), *z = nori__na_const(n, zero);
    if (!v || v->type.kind != NORI_KIND_TENSOR ||
        (v->type.elem != NORI_UINT8 && v->type.elem != NORI_INT8) || !s || s->type != NORI_FLOAT ||
        s->count != 1 || (nori__na_in(n, zero) && (!z || z->count != 1 || z->type != v->type.elem))) {
        return false;
    }
    q->type = v->type.elem;
    q->scale = *(const float *)s->data;
    q->zero = z ? (int32_t)nori__tensor_get_i64(z, 0) : 0;
    return isnormal(q->scale) && q->scale > 0;
}

static bool says_of_result(const nori__node *n, const nori__value *v, na_quant *q)
{
    if (nori__node_is(n, NORI__OP_ONNX_QuantizeLinear)) {
        return nori__na_said(n, 1, 2, v, q);
    }
    if (nori__node_is(n, NORI__OP_MS_QLinearConcat)) {
        return nori__na_said(n, 0, 1, v, q);
    }
    for (size_t i = 0; i < NORI__COUNT(sayers); i++) {
        if (nori__node_is(n, sayers[i].op)) {
            return nori__na_said(n, sayers[i].y, sayers[i].y + 1u, v, q);
        }
    }
    return false;
}

static bool says_of_input(const nori__node *n, uint32_t at, na_quant *q)
{
    const nori__value *v = n->inputs[at];
    if (nori__node_is(n, NORI__OP_ONNX_DequantizeLinear)) {
        return at == 0 && nori__na_said(n, 1, 2, v, q);
    }
    if (nori__node_is(n, NORI__OP_MS_QLinearConcat)) {
        return at >= 2 && at % 3 == 2 && nori__na_said(n, at + 1, at + 2, v, q);
    }
    for (size_t i = 0; i < NORI__COUNT(sayers); i++) {
        if (nori__node_is(n, sayers[i].op)) {
            return (at == 0 || (sayers[i].second && at == sayers[i].second)) &&
                   nori__na_said(n, at + 1, at + 2, v, q);
        }
    }
    return false;
}

static bool moves(const nori__node *n)
{
    for (size_t i = 0; i < NORI__COUNT(movers); i++) {
        if (nori__node_is(n, movers[i])) {
            return n->input_count > 0 && n->inputs[0];
        }
    }
    return false;
}

static bool among(const nori__value *v, const nori__value *const *set, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (set[i] == v) {
            return true;
        }
    }
    return false;
}

/* Up to whoever makes the bytes; when that says nothing, down to the first reader that does. */
bool nori__na_quant(const nori__value *v, na_quant *q)
{
    const nori__value *same[64]; /* as many as are followed */
    size_t n = 0;
    for (const nori__value *at = v; at && n < NORI__COUNT(same) / 2;) {
        same[n++] = at;
        if (at->producer && says_of_result(at->producer, at, q)) {
            return true;
        }
        at = at->producer && moves(at->producer) ? at->producer->inputs[0] : NULL;
    }
    for (const nori__node *r = v && v->graph ? v->graph->first : NULL; r; r = r->next) {
        for (uint32_t i = 0; i < r->input_count; i++) {
            if (among(r->inputs[i], same, n) && says_of_input(r, i, q)) {
                return true;
            }
        }
        for (uint32_t i = 0; moves(r) && among(r->inputs[0], same, n) && i < r->output_count; i++) {
            if (r->outputs[i] && n < NORI__COUNT(same) && !among(r->outputs[i], same, n)) {
                same[n++] = r->outputs[i];
            }
        }
    }
    return false;
}

bool nori__na_means(const na_self *self, const nori__node *n, uint32_t scale, uint32_t zero,
                    const nori__value *v, na_quant *q)
{
    na_quant known;
    return nori__na_is_bytes(v, 0) && nori__na_said(n, scale, zero, v, q) &&
           nori__na_quant(v, &known) && nori__na_same(q, &known) &&
           (q->type == NORI_UINT8 || self->level >= 30);
}

na_type nori__na_byte_type(const na_quant *q)
{
    return (na_type){.type = q->type == NORI_UINT8 ? NA_TENSOR_UINT8 : NA_TENSOR_INT8,
                     .scale = q->scale, .zero_point = q->zero};
}

/* ---- claims: what would have nothing to do with nnapi on its other side is left to others ---- */

static bool converts(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_QuantizeLinear) ||
           nori__node_is(n, NORI__OP_ONNX_DequantizeLinear);
}

const char *nori__na_claim_quantize(const na_self *self, const nori__node *n)
{
    na_quant q;
    const nori__node *from = n->inputs[0]->producer;
    if (!nori__na_is(n->inputs[0], 0) || !nori__na_means(self, n, 1, 2, n->outputs[0], &q)) {
        return self->level < 30 ? "it is not from floats of a known shape to bytes by one constant scale "
                                  "(int8 from feature level 30 on)"
                                : "it is not from floats of a known shape to bytes by one constant scale";
    }
    return !from || converts(from) || nori__na_takes(self, from) ? NULL
                                                                  : "what makes its floats is not taken";
}

static bool a_reader_is_taken(const na_self *self, const nori__value *v)
{
    bool read = false;
    for (const nori__node *r = v->graph->first; r; r = r->next) {
        for (uint32_t i = 0; i < r->input_count; i++) {
            if (r->inputs[i] == v) {
                read = true;
                if (converts(r) || nori__na_takes(self, r)) {
                    return true;
                }
            }
        }
    }
    return !read; /* the model gives it */
}

const char *nori__na_claim_dequantize(const na_self *self, const nori__node *n)
{
    na_quant q;
    const nori_tensor *t = nori__na_const(n, 0);
    bool fits = t ? t->count > 0 && t->count <= INT32_MAX && nori__na_const(n, 1) &&
                        (!nori__na_in(n, 2) || nori__na_const(n, 2)) &&
                        nori__na_known(n->outputs[0], 0)
                  : nori__na_means(self, n, 1, 2, n->inputs[0], &q) &&
                        nori__na_is(n->outputs[0], 0);
    if (!fits) {
        return "it is not from bytes of a known shape by one constant scale";
    }
    return a_reader_is_taken(self, n->outputs[0]) ? NULL : "what reads its floats is not taken";
}

/* ---- ways ---- */

uint32_t nori__na_to_floats(na_part *p, uint32_t value, int form)
{
    uint32_t in = nori__na_want(p, value, form);
    na_shape s = nori__na_shape(p, value, form);
    uint32_t out = nori__na_operand(p, &s);
    nori__na_op(p, NA_DEQUANTIZE, &in, 1, out);
    return out;
}

void nori__na_to_bytes(na_part *p, uint32_t floats, uint32_t value, int form)
{
    nori__na_op(p, NA_QUANTIZE, &floats, 1, nori__na_make(p, value, form));
}

void nori__na_emit_quantize(na_part *p, const na_job *j)
{
    int form = nori__na_layout(p, j->in[0]);
    nori__na_to_bytes(p, nori__na_want(p, j->in[0], form), j->out, form);
}

/* nori__na_want makes it when somebody asks for the floats. */
void nori__na_emit_dequantize(na_part *p, const na_job *j)
{
    (void)p;
    (void)j;
}

uint32_t nori__na_dequantized(na_part *p, uint32_t value, int form)
{
    uint32_t at = p->links.maker[value];
    const nori__node *n = at == NA_NONE ? NULL : p->part->nodes[at];
    nori_tensor *made = NULL;
    if (!n || !nori__node_is(n, NORI__OP_ONNX_DequantizeLinear)) {
        return NA_NONE;
    }
    if (nori__na_const(n, 0)) {
        if (nori__node_evaluate(n, &nori__malloc, &made, NULL) != NORI_OK) {
            nori__na_refuse(p, "a constant cannot be dequantized");
            return NA_NONE;
        }
        uint32_t constant = nori__na_constant_form(p, value, form, made);
        nori_tensor_free(made);
        return constant;
    }
    uint32_t bytes = p->part->node_values[at][0];
    int lies = nori__na_layout(p, bytes);
    uint32_t in = nori__na_want(p, bytes, lies), out = nori__na_make(p, value, lies);
    nori__na_op(p, NA_DEQUANTIZE, &in, 1, out);
    return out;
}
