/* emit_dynamic.c: products of integers whose activations are quantized in each run:
 *     A -> DynamicQuantizeLinear -> MatMulInteger or ConvInteger -> Cast -> Mul by both scales
 * and the bias behind. Products of two activations quantize both. LSTM, GRU and RNN get 8-bit weights.
 * Needs no samples; each run looks for the ranges itself. */
#include "ops/op.h"
#include "tools/quantize/quantize.h"

static nori__value *value(nori__quantizer *q, const char *base, const char *what)
{
    const char *name = nori__q_name(q, base, what);
    return name ? nori__value_new(q->ir->main, name) : NULL;
}

/* DynamicQuantizeLinear of a value, once for all its readers: integers, scale, zero point. */
static nori_status dynamic(nori__quantizer *q, nori__value *v, nori__value **out)
{
    nori__q_value *own = nori__q_of(q, v);
    if (!own->dynamic[0]) {
        own->dynamic[0] = value(q, v->name, "quantized");
        own->dynamic[1] = value(q, v->name, "scale");
        own->dynamic[2] = value(q, v->name, "zero_point");
        nori__node *before = v->producer ? v->producer->next : q->ir->main->first;
        if (!own->dynamic[0] || !own->dynamic[1] || !own->dynamic[2] ||
            !nori__node_new(q->ir->main, before, "", "DynamicQuantizeLinear", &v, 1, own->dynamic,
                            3)) {
            return nori__no_memory(q->err);
        }
    }
    memcpy(out, own->dynamic, sizeof(own->dynamic));
    return NORI_OK;
}

static nori_status constant(nori__quantizer *q, const char *base, const char *what,
                            nori_tensor *t, nori__value **out)
{
    *out = nori__const_new(q->ir->main, nori__q_name(q, base, what), t);
    return *out ? NORI_OK : nori__no_memory(q->err);
}

/* A vector over channels as it broadcasts against [N, C, ...]: [C, 1, 1 ...]. */
static void over_channels(const nori__node *n, nori_tensor *t, int rank)
{
    if (nori__node_is(n, NORI__OP_ONNX_Conv) && t->rank == 1) {
        int64_t dims[NORI_MAX_RANK] = {t->dims[0]};
        for (int d = 1; d < rank - 1; d++) {
            dims[d] = 1;
        }
        nori__tensor_reshape(t, (nori_type)t->type, rank - 1, dims);
    }
}

/* Gemm multiplies by columns; its weights may be stored by rows. */
static nori_status columns(nori__quantizer *q, const nori__node *n, const nori_tensor *w,
                           nori_tensor **out)
{
    if (!nori__node_is(n, NORI__OP_ONNX_Gemm) || !nori__attr_i(n, "transB", 0)) {
        *out = nori_tensor_retain(w);
        return NORI_OK;
    }
    int64_t dims[2] = {w->dims[1], w->dims[0]};
    NORI__TRY(nori__tensor_new(q->ir->allocator, (nori_type)w->type, 2, dims, out, q->err));
    for (int64_t i = 0; i < w->count; i++) {
        nori__tensor_set_f64(*out, i % w->dims[1] * w->dims[0] + i / w->dims[1],
                             nori__tensor_get_f64(w, i));
    }
    return NORI_OK;
}

/* from -> op(from, other) -> a new value. */
static nori_status step(nori__quantizer *q, nori__node *before, const char *op, nori__value *from,
                        nori__value *other, const char *base, const char *what, nori__value **out)
{
    *out = value(q, base, what);
    nori__value *in[2] = {from, other};
    if (!*out || !nori__node_new(q->ir->main, before, "", op, in, other ? 2 : 1, out, 1)) {
        return nori__no_memory(q->err);
    }
    return NORI_OK;
}

static nori_status product(nori__quantizer *q, nori__node *n, const nori__q_weight *made,
                           nori__value **integers, nori__value *scale_of[2])
{
    bool conv = nori__node_is(n, NORI__OP_ONNX_Conv);
    nori__value *a[3], *w[3] = {NULL};
    const char *base = n->inputs[1]->name;
    NORI__TRY(dynamic(q, n->inputs[0], a));
    NORI__TRY(constant(q, base, "quantized", made->integers, &w[0]));
    NORI__TRY(constant(q, base, "scale", made->scales, &w[1]));
    nori__value *in[4] = {a[0], w[0], a[2], NULL};
    if (q->options->weight_type == NORI_UINT8) {
        NORI__TRY(constant(q, base, "zero_point", nori_tensor_retain(made->zeros), &w[2]));
        in[3] = w[2];
    }
    *integers = value(q, n->outputs[0]->name, "integers");
    nori__node *p = !*integers ? NULL
                               : nori__node_new(q->ir->main, n, "",
                                                conv ? "ConvInteger" : "MatMulInteger", in,
                                                in[3] ? 4 : 3, integers, 1);
    if (!p) {
        return nori__no_memory(q->err);
    }
    p->name = n->name;
    if (conv) { /* strides, pads and so on mean the same */
        p->attrs = n->attrs;
        p->attr_count = n->attr_count;
    }
    scale_of[0] = a[1];
    scale_of[1] = w[1];
    return NORI_OK;
}

/* The last step makes the node's own output. */
static void replace(nori__node *n, nori__value *last)
{
    nori__value *out = n->outputs[0];
    nori__node *maker = last->producer;
    nori__node_remove(n);
    maker->outputs[0] = out;
    out->producer = maker;
    last->producer = NULL;
}

/* A product of two activations, integers of both from each run. */
static nori_status emit_both(nori__quantizer *q, nori__node *n)
{
    nori__value *a[3], *b[3], *numbers, *scale, *scaled;
    const char *base = n->outputs[0]->name;
    NORI__TRY(dynamic(q, n->inputs[0], a));
    NORI__TRY(dynamic(q, n->inputs[1], b));
    nori__value *in[4] = {a[0], b[0], a[2], b[2]}, *integers = value(q, base, "integers");
    nori__node *p =
        integers ? nori__node_new(q->ir->main, n, "", "MatMulInteger", in, 4, &integers, 1) : NULL;
    if (!p) {
        return nori__no_memory(q->err);
    }
    p->name = n->name;
    NORI__TRY(step(q, n, "Cast", integers, NULL, base, "float", &numbers));
    if (!nori__node_set_int(numbers->producer, "to", NORI_FLOAT)) {
        return nori__no_memory(q->err);
    }
    NORI__TRY(step(q, n, "Mul", a[1], b[1], base, "scale", &scale));
    NORI__TRY(step(q, n, "Mul", numbers, scale, base, "scaled", &scaled));
    replace(n, scaled);
    return NORI_OK;
}

static nori_status emit_node(nori__quantizer *q, nori__node *n)
{
    const nori_tensor *w = nori__value_const(n->inputs[1]);
    if (!w) {
        return emit_both(q, n);
    }
    nori__value *bias = n->input_count > 2 ? n->inputs[2] : NULL, *out = n->outputs[0];
    bool conv = nori__node_is(n, NORI__OP_ONNX_Conv);
    nori_tensor *turned = NULL;
    nori__q_weight made;
    NORI__TRY(columns(q, n, w, &turned));
    /* Scales stand apart from the integers here: an operator set without scales per channel in
     * DequantizeLinear is no hindrance. Zero points per channel of unsigned weights are. */
    bool per_channel = q->options->per_channel && q->options->weight_type == NORI_INT8;
    int axis = !per_channel ? -1 : conv ? 0 : turned->rank == 2 ? 1 : -1;
    nori_status s = nori__q_weight_make(q->ir->allocator, turned, axis, q->options->weight_type,
                                        q->options->weight_type == NORI_INT8, NULL, 1, &made,
                                        q->err);
    nori_tensor_free(turned);
    NORI__TRY(s);
    nori__q_report_weight(q, n, made.sqnr);
    over_channels(n, made.scales, w->rank);
    nori__value *integers, *scales[2] = {NULL}, *scale, *numbers, *scaled;
    s = product(q, n, &made, &integers, scales);
    nori_tensor_free(made.zeros);
    NORI__TRY(s);
    NORI__TRY(step(q, n, "Cast", integers, NULL, out->name, "float", &numbers));
    if (!nori__node_set_int(numbers->producer, "to", NORI_FLOAT)) {
        return nori__no_memory(q->err);
    }
    NORI__TRY(step(q, n, "Mul", scales[0], scales[1], out->name, "scale", &scale));
    NORI__TRY(step(q, n, "Mul", numbers, scale, out->name, "scaled", &scaled));
    nori__value *last = scaled;
    if (bias) {
        nori_tensor *t = NULL;
        nori__value *shaped = bias;
        if (conv) {
            NORI__TRY(nori__tensor_copy(q->ir->allocator, nori__value_const(bias), &t, q->err));
            over_channels(n, t, w->rank);
            NORI__TRY(constant(q, bias->name, "shaped", t, &shaped));
        }
        NORI__TRY(step(q, n, "Add", scaled, shaped, out->name, "biased", &last));
    }
    replace(n, last);
    return NORI_OK;
}

static bool fits(const nori__quantizer *q, const nori__node *n)
{
    const nori__value *bias = n->input_count > 2 ? n->inputs[2] : NULL;
    (void)q;
    return !nori__node_is(n, NORI__OP_ONNX_ConvTranspose) && nori__q_plain(n) &&
           !nori__attr_i(n, "transA", 0) && (!bias || nori__value_const(bias));
}

nori_status nori__q_emit_dynamic(nori__quantizer *q)
{
    for (nori__node *n = q->ir->main->first, *next; n; n = next) {
        next = n->next;
        if (n->id >= q->n_nodes || !q->chosen[n->id]) {
            continue;
        }
        if (nori__q_recurrent(n)) {
            NORI__TRY(nori__q_emit_recurrent(q, n));
        } else if (fits(q, n)) {
            nori__q_report_node(q, n, NULL);
            NORI__TRY(emit_node(q, n));
        } else {
            nori__q_report_node(q, n, "it has no form with ranges found in each run");
        }
    }
    return NORI_OK;
}
