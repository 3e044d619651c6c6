/* emit_qoperator.c: the other form of a quantized graph: DequantizeLinear, operator, QuantizeLinear
 * become one operator on integers with the same numbers in it. QLinearConv and QLinearMatMul are
 * standard; others are com.microsoft's, and used where that was allowed. What moves values does so on
 * integers. What has no such form keeps its pairs. */
#include <math.h>

#include "ops/resolve.h"
#include "run/run.h"
#include "tools/quantize/quantize.h"

typedef struct integers { /* what a DequantizeLinear reads */
    nori__value *values, *scale, *zero;
} integers;

typedef struct reader {
    nori__node *node;
    uint32_t count;
} reader;

typedef struct forms {
    nori__quantizer *q;
    nori__ir *ir;
    reader *readers; /* by value id, as the graph was */
    uint32_t n_values;
    bool microsoft;  /* allowed */
    size_t used;     /* of com.microsoft */
} forms;

static bool is(const nori__node *n, nori__op_id id)
{
    return n && nori__node_is(n, id);
}

static bool is_byte(const nori__value *zero)
{
    const nori_tensor *t = nori__value_const(zero);
    return t && (t->type == NORI_INT8 || t->type == NORI_UINT8);
}

/* Whether a value is dequantized from 8-bit integers by constants. */
static bool from_integers(const nori__value *v, integers *out)
{
    const nori__node *d = v ? v->producer : NULL;
    if (!is(d, NORI__OP_ONNX_DequantizeLinear) || d->input_count < 3 || !d->inputs[2] ||
        nori__attr_i(d, "block_size", 0) != 0 || !nori__value_const(d->inputs[1]) ||
        !is_byte(d->inputs[2])) {
        return false;
    }
    *out = (integers){d->inputs[0], d->inputs[1], d->inputs[2]};
    return true;
}

/* The only reader of a value; NULL where there are more, or it is an output. */
static nori__node *sole_reader(const forms *f, const nori__value *v)
{
    bool one = v->id < f->n_values && v->uses == 1 && f->readers[v->id].count == 1;
    return one && !(v->flags & NORI__VALUE_OUTPUT) ? f->readers[v->id].node : NULL;
}

static bool to_integers(const forms *f, const nori__value *v, nori__node **quantize, integers *out)
{
    nori__node *n = sole_reader(f, v);
    if (!is(n, NORI__OP_ONNX_QuantizeLinear) || n->inputs[0] != v || n->input_count < 3 ||
        !n->inputs[2] || !nori__value_const(n->inputs[1]) || !is_byte(n->inputs[2]) ||
        nori__value_const(n->inputs[1])->count != 1) {
        return false;
    }
    *quantize = n;
    *out = (integers){n->outputs[0], n->inputs[1], n->inputs[2]};
    return true;
}

static double number(const nori__value *v)
{
    return nori__tensor_get_f64(v->constant, 0);
}

/* Whether the clamp of the integers is the activation's own: nothing it would clamp is left. */
static bool clamps(const nori__node *n, const integers *to)
{
    double low = 0, high = INFINITY, scale = number(to->scale), zero = number(to->zero);
    bool is_signed = to->zero->constant->type == NORI_INT8;
    if (is(n, NORI__OP_ONNX_Clip)) {
        const nori_tensor *a = n->input_count > 1 ? nori__value_const(n->inputs[1]) : NULL;
        const nori_tensor *b = n->input_count > 2 ? nori__value_const(n->inputs[2]) : NULL;
        bool dynamic = (n->input_count > 1 && n->inputs[1] && !a) ||
                       (n->input_count > 2 && n->inputs[2] && !b);
        if (dynamic || n->version < 11) {
            return false;
        }
        low = a ? nori__tensor_get_f64(a, 0) : -INFINITY;
        high = b ? nori__tensor_get_f64(b, 0) : INFINITY;
    } else if (!is(n, NORI__OP_ONNX_Relu)) {
        return false;
    }
    double least = ((is_signed ? -128 : 0) - zero) * scale, most = ((is_signed ? 127 : 255) - zero) * scale;
    return least >= low - scale * 1e-3 && most <= high + scale / 2;
}

/* ---- rewriting ---- */

/* A node that makes what quantize made, in its place. */
static nori_status put(forms *f, nori__node *quantize, const nori__node *from, const char *domain,
                       const char *op, nori__value **in, size_t n_in)
{
    nori__value *out = quantize->outputs[0];
    nori__node *before = quantize->next;
    nori__node_remove(quantize);
    nori__node *n = nori__node_new(f->ir->main, before, domain, op, in, n_in, &out, 1);
    if (!n) {
        return nori__no_memory(f->q->err);
    }
    n->name = from->name;
    f->used += domain[0] != 0;
    return NORI_OK;
}

static void keep_attrs(const forms *f, const nori__value *out, const nori__node *from)
{
    (void)f;
    out->producer->attrs = from->attrs;
    out->producer->attr_count = from->attr_count;
}

/* A bias as int32 with the scale of the sum; false: it is another. */
static bool bias_of(const nori__value *v, const integers *x, const integers *w, nori__value **bias)
{
    const nori__node *d = v ? v->producer : NULL;
    const nori_tensor *s = is(d, NORI__OP_ONNX_DequantizeLinear) ? nori__value_const(d->inputs[1]) : NULL;
    const nori_tensor *b = s ? nori__value_const(d->inputs[0]) : NULL;
    const nori_tensor *ws = nori__value_const(w->scale);
    if (!b || b->type != NORI_INT32 || b->rank != 1 || s->count != ws->count) {
        return false;
    }
    for (int64_t i = 0; i < s->count; i++) {
        double sum = number(x->scale) * nori__tensor_get_f64(ws, i);
        if (fabs(sum - nori__tensor_get_f64(s, i)) > sum * 1e-6) {
            return false;
        }
    }
    *bias = d->inputs[0];
    return true;
}

static bool channel_axis_fits(const nori__node *n, const nori_tensor *scale)
{
    const nori__node *d = n->inputs[1]->producer;
    int64_t axis = nori__attr_i(d, "axis", 1), want = is(n, NORI__OP_ONNX_Conv) ? 0 : 1;
    if (is(n, NORI__OP_ONNX_Gemm) && nori__attr_i(n, "transB", 0)) {
        want = 0;
    }
    return scale->count == 1 || axis == want;
}

static nori_status weighted(forms *f, nori__node *n)
{
    integers x, w, y;
    nori__node *quantize = NULL, *clamp = sole_reader(f, n->outputs[0]);
    nori__value *bias = NULL;
    if (!from_integers(n->inputs[0], &x) || !from_integers(n->inputs[1], &w)) {
        return NORI_OK;
    }
    bool activation = is(clamp, NORI__OP_ONNX_Relu) || is(clamp, NORI__OP_ONNX_Clip);
    const nori__value *last = activation ? clamp->outputs[0] : n->outputs[0];
    bool has_bias = n->input_count > 2 && n->inputs[2];
    if (!to_integers(f, last, &quantize, &y) || (activation && !clamps(clamp, &y)) ||
        !channel_axis_fits(n, w.scale->constant) || x.scale->constant->count != 1 ||
        (has_bias && !bias_of(n->inputs[2], &x, &w, &bias))) {
        return NORI_OK;
    }
    nori__value *in[9] = {x.values, x.scale, x.zero, w.values, w.scale, w.zero};
    if (is(n, NORI__OP_ONNX_Gemm)) {
        bool plain = f->microsoft && nori__q_plain(n) && !nori__attr_i(n, "transA", 0);
        in[6] = bias;
        in[7] = y.scale;
        in[8] = y.zero;
        NORI__TRY(plain ? put(f, quantize, n, "com.microsoft", "QGemm", in, 9) : NORI_OK);
        return !plain || nori__node_set_int(y.values->producer, "transB", nori__attr_i(n, "transB", 0))
                   ? NORI_OK
                   : nori__no_memory(f->q->err);
    }
    in[6] = y.scale;
    in[7] = y.zero;
    in[8] = bias;
    bool conv = is(n, NORI__OP_ONNX_Conv);
    NORI__TRY(put(f, quantize, n, "", conv ? "QLinearConv" : "QLinearMatMul", in, bias ? 9 : 8));
    if (conv) { /* strides, pads and so on mean the same */
        keep_attrs(f, y.values, n);
    }
    return NORI_OK;
}

/* com.microsoft's operators of one or two inputs: what is read, then the output's numbers. */
static nori_status microsoft(forms *f, nori__node *n, const char *op)
{
    integers y, a;
    nori__node *quantize = NULL, *clamp = sole_reader(f, n->outputs[0]);
    bool activation = is(n, NORI__OP_ONNX_Add) &&
                      (is(clamp, NORI__OP_ONNX_Relu) || is(clamp, NORI__OP_ONNX_Clip));
    const nori__value *last = activation ? clamp->outputs[0] : n->outputs[0];
    bool concat = is(n, NORI__OP_ONNX_Concat);
    nori__value *in[3 * 32 + 2];
    size_t count = 0;
    if (n->input_count > 32 || !to_integers(f, last, &quantize, &y) ||
        (activation && !clamps(clamp, &y))) {
        return NORI_OK;
    }
    if (concat) {
        in[count++] = y.scale;
        in[count++] = y.zero;
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (!from_integers(n->inputs[i], &a) || a.scale->constant->count != 1) {
            return NORI_OK;
        }
        in[count++] = a.values;
        in[count++] = a.scale;
        in[count++] = a.zero;
    }
    if (!concat) {
        in[count++] = y.scale;
        in[count++] = y.zero;
    }
    NORI__TRY(put(f, quantize, n, "com.microsoft", op, in, count));
    if (!is(n, NORI__OP_ONNX_Add) && !is(n, NORI__OP_ONNX_Mul) && !is(n, NORI__OP_ONNX_Sigmoid)) {
        keep_attrs(f, y.values, n);
    }
    return NORI_OK;
}

/* Moves integers instead of the numbers they stand for, where both ends have one scale. */
static nori_status moved(forms *f, nori__node *n)
{
    integers x, y;
    nori__node *quantize = NULL;
    if (n->output_count != 1 || !from_integers(n->inputs[0], &x) ||
        !to_integers(f, n->outputs[0], &quantize, &y) || x.scale->constant->count != 1 ||
        number(x.scale) != number(y.scale) || number(x.zero) != number(y.zero) ||
        x.zero->constant->type != y.zero->constant->type ||
        (is(n, NORI__OP_ONNX_MaxPool) && n->version < 12)) {
        return NORI_OK;
    }
    nori__value *out = y.values, *old = n->outputs[0];
    nori__node_remove(quantize);
    n->outputs[0] = out;
    out->producer = n;
    old->producer = NULL;
    return nori__node_set_input(n, 0, x.values) ? NORI_OK : nori__no_memory(f->q->err);
}

static nori_status rewrite(forms *f, nori__node *n)
{
    static const struct {
        nori__op_id id;
        const char *op;
    } rows[] = {{NORI__OP_ONNX_Add, "QLinearAdd"},
                {NORI__OP_ONNX_Mul, "QLinearMul"},
                {NORI__OP_ONNX_Concat, "QLinearConcat"},
                {NORI__OP_ONNX_Sigmoid, "QLinearSigmoid"},
                {NORI__OP_ONNX_LeakyRelu, "QLinearLeakyRelu"},
                {NORI__OP_ONNX_AveragePool, "QLinearAveragePool"},
                {NORI__OP_ONNX_GlobalAveragePool, "QLinearGlobalAveragePool"}};
    if (is(n, NORI__OP_ONNX_Conv) || is(n, NORI__OP_ONNX_MatMul) || is(n, NORI__OP_ONNX_Gemm)) {
        return weighted(f, n);
    }
    if (nori__q_role_of(n) == NORI__Q_PASS) {
        return moved(f, n);
    }
    for (size_t i = 0; f->microsoft && i < NORI__COUNT(rows); i++) {
        if (is(n, rows[i].id)) {
            return microsoft(f, n, rows[i].op);
        }
    }
    return NORI_OK;
}

static nori_status find_readers(forms *f)
{
    f->n_values = f->ir->value_count;
    f->readers = nori__arena_array(&f->q->arena, (size_t)f->n_values + 1, sizeof(*f->readers));
    for (nori__node *n = f->ir->main->first; f->readers && n; n = n->next) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            if (n->inputs[i]) {
                f->readers[n->inputs[i]->id].node = n;
                f->readers[n->inputs[i]->id].count++;
            }
        }
    }
    return f->readers ? NORI_OK : nori__no_memory(f->q->err);
}

/* Nodes whose results nobody reads any more: from the end, so that what fed them goes too. */
static void sweep(nori__graph *g)
{
    for (nori__node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        bool used = false;
        for (uint32_t i = 0; i < n->output_count; i++) {
            used = used || (n->outputs[i] && n->outputs[i]->uses > 0);
        }
        if (!used) {
            nori__node_remove(n);
        }
    }
}

nori_status nori__q_form_operators(nori__quantizer *q, nori_model **model)
{
    forms f = {.q = q, .microsoft = q->options->microsoft != 0};
    NORI__TRY(nori__ir_copy(nori__model_ir(*model), &f.ir, q->err));
    NORI__TRY(nori__ir_settle(f.ir, q->err));
    nori__resolve(f.ir);
    nori_status s = find_readers(&f);
    for (nori__node *n = f.ir->main->first, *next; s == NORI_OK && n; n = next) {
        next = n->next;
        while (next && is(next, NORI__OP_ONNX_QuantizeLinear)) {
            next = next->next; /* they may be gone by then */
        }
        s = is(n, NORI__OP_ONNX_QuantizeLinear) ? NORI_OK : rewrite(&f, n);
    }
    sweep(f.ir->main);
    s = s == NORI_OK && f.used > 0 ? nori__q_import_microsoft(f.ir, q->err) : s;
    nori_model *made = NULL;
    s = s == NORI_OK ? nori__model_from_ir(q->model, f.ir, &made, q->err) : s;
    nori__ir_free(f.ir);
    if (s == NORI_OK) {
        nori_model_free(*model);
        *model = made;
    }
    return s;
}
