/* emit_recurrent.c: LSTM, GRU and RNN with 8-bit weights: W and R become DequantizeLinear of their
 * integers, a scale for every row of a gate. The sums stay float, for no standard operator has them on
 * integers: the file is a quarter in size, and every runtime reads it. Where com.microsoft is allowed, an
 * LSTM whose ranges are found in each run becomes DynamicQuantizeLSTM, whose products are of integers. */
#include "ops/op.h"
#include "tools/quantize/quantize.h"

bool nori__q_recurrent(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_LSTM) || nori__node_is(n, NORI__OP_ONNX_GRU) ||
           nori__node_is(n, NORI__OP_ONNX_RNN);
}

/* W or R: [directions, gates x hidden, columns]. */
static nori_status one_weight(nori__quantizer *q, nori__node *n, uint32_t index, double *worst)
{
    const nori_quantize_options *o = q->options;
    const nori_tensor *w = nori__value_const(n->inputs[index]);
    bool symmetric = o->weight_type == NORI_INT8 || o->weight_type == NORI_INT4;
    int axis = o->per_channel && nori__ir_opset(q->ir, "") >= 13 ? 1 : -1;
    nori__q_weight made;
    nori__value *to;
    NORI__TRY(nori__q_weight_make(q->ir->allocator, w, axis, o->weight_type, symmetric, NULL, 1, &made,
                                  q->err));
    *worst = made.sqnr < *worst ? made.sqnr : *worst;
    NORI__TRY(nori__q_constant(q, n, n->inputs[index]->name, made.integers, made.scales, made.zeros, axis,
                               0, &to));
    return nori__node_set_input(n, index, to) ? NORI_OK : nori__no_memory(q->err);
}

bool nori__q_recurrent_fits(const nori__node *n)
{
    for (uint32_t i = 1; i < 3; i++) {
        const nori_tensor *w = i < n->input_count ? nori__value_const(n->inputs[i]) : NULL;
        if (!w || w->type != NORI_FLOAT || w->rank != 3 || w->count == 0) {
            return false;
        }
    }
    return true;
}

/* ---- DynamicQuantizeLSTM ---- */

/* Rows to columns: [directions, rows, depth] to [directions, depth, rows]. */
static nori_status turned(nori__quantizer *q, const nori_tensor *t, int64_t directions, nori_tensor **out)
{
    int64_t depth = t->dims[1], rows = t->dims[0] / directions, dims[3] = {directions, depth, rows};
    NORI__TRY(nori__tensor_new(q->ir->allocator, (nori_type)t->type, 3, dims, out, q->err));
    const uint8_t *from = t->data;
    uint8_t *to = (*out)->data; /* both are bytes */
    for (int64_t i = 0; i < t->count; i++) {
        int64_t row = i / depth, column = i % depth;
        to[(row / rows * depth + column) * rows + row % rows] = from[i];
    }
    return NORI_OK;
}

/* One entry a direction where there is one for all; else [directions, rows]. */
static nori_status a_direction(nori__quantizer *q, const nori_tensor *t, int64_t directions,
                               nori_tensor **out)
{
    int64_t dims[2] = {directions, t->count / directions};
    bool one = t->count == 1;
    NORI__TRY(nori__tensor_new(q->ir->allocator, (nori_type)t->type, one ? 1 : 2, dims, out, q->err));
    for (int64_t i = 0; i < (*out)->count; i++) {
        nori__tensor_set_f64(*out, i, nori__tensor_get_f64(t, one ? 0 : i));
    }
    return NORI_OK;
}

/* Takes the reference of t. */
static nori_status put_constant(nori__quantizer *q, const char *base, const char *what, nori_tensor *t,
                                nori__value **out)
{
    *out = nori__const_new(q->ir->main, nori__q_name(q, base, what), t);
    return *out ? NORI_OK : nori__no_memory(q->err);
}

/* W or R as integers, scale, zero point: out[0] to out[2]. */
static nori_status byte_weight(nori__quantizer *q, const nori__node *n, uint32_t index, double *worst,
                               nori__value **out)
{
    static const char *const what[] = {"quantized", "scale", "zero_point"};
    const nori_quantize_options *o = q->options;
    nori_tensor *w = NULL, *t[3] = {NULL};
    nori__q_weight made = {0};
    NORI__TRY(nori__tensor_copy(q->ir->allocator, nori__value_const(n->inputs[index]), &w, q->err));
    int64_t directions = w->dims[0], dims[2] = {w->dims[0] * w->dims[1], w->dims[2]};
    nori__tensor_reshape(w, NORI_FLOAT, 2, dims);
    bool is_signed = o->weight_type == NORI_INT8; /* others have one zero point for all */
    nori_status s = nori__q_weight_make(q->ir->allocator, w, o->per_channel && is_signed ? 0 : -1,
                                        o->weight_type, is_signed, NULL, 1, &made, q->err);
    if (s == NORI_OK) {
        *worst = made.sqnr < *worst ? made.sqnr : *worst;
        s = turned(q, made.integers, directions, &t[0]);
        s = s == NORI_OK ? a_direction(q, made.scales, directions, &t[1]) : s;
        s = s == NORI_OK ? a_direction(q, made.zeros, directions, &t[2]) : s;
    }
    for (int i = 0; i < 3; i++) {
        if (s == NORI_OK) {
            s = put_constant(q, n->inputs[index]->name, what[i], t[i], &out[i]);
        } else {
            nori_tensor_free(t[i]);
        }
    }
    nori_tensor_free(w);
    nori_tensor_free(made.integers);
    nori_tensor_free(made.scales);
    nori_tensor_free(made.zeros);
    return s;
}

/* Attributes of LSTM that the other has, too. */
static bool take_attributes(nori__quantizer *q, const nori__node *n, nori__node *made)
{
    int64_t hidden = nori__value_const(n->inputs[2])->dims[2];
    made->attrs = nori__arena_array(&q->ir->arena, n->attr_count + 1, sizeof(*made->attrs));
    for (size_t i = 0; made->attrs && i < n->attr_count; i++) {
        const char *name = n->attrs[i].name;
        if (!nori__same(name, "layout") && !nori__same(name, "output_sequence")) {
            made->attrs[made->attr_count++] = n->attrs[i];
        }
    }
    return made->attrs && nori__node_set_int(made, "hidden_size", hidden);
}

static nori_status emit_bytes(nori__quantizer *q, nori__node *n)
{
    nori__value *in[12] = {NULL}, *out[3] = {NULL}, *w[3], *r[3];
    double worst = 1e300;
    NORI__TRY(byte_weight(q, n, 1, &worst, w));
    NORI__TRY(byte_weight(q, n, 2, &worst, r));
    for (uint32_t i = 0; i < 8 && i < n->input_count; i++) {
        in[i] = n->inputs[i];
    }
    in[1] = w[0];
    in[2] = r[0];
    memcpy(in + 8, w + 1, 2 * sizeof(*in));
    memcpy(in + 10, r + 1, 2 * sizeof(*in));
    nori__q_report_weight(q, n, worst);
    nori__q_report_node(q, n, NULL);
    for (uint32_t i = 0; i < n->output_count; i++) {
        out[i] = n->outputs[i];
        n->outputs[i] = NULL;
    }
    nori__node *made = nori__node_new(q->ir->main, n, "com.microsoft", "DynamicQuantizeLSTM", in, 12, out,
                                      n->output_count);
    if (!made || !take_attributes(q, n, made)) {
        return nori__no_memory(q->err);
    }
    made->name = n->name;
    nori__node_remove(n);
    return nori__q_import_microsoft(q->ir, q->err);
}

static bool has_bytes(const nori__quantizer *q, const nori__node *n)
{
    nori_type type = q->options->weight_type;
    return q->options->kind == NORI_QUANTIZE_DYNAMIC && q->options->microsoft &&
           nori__node_is(n, NORI__OP_ONNX_LSTM) && !nori__attr_i(n, "layout", 0) && n->output_count <= 3 &&
           (type == NORI_INT8 || type == NORI_UINT8);
}

nori_status nori__q_emit_recurrent(nori__quantizer *q, nori__node *n)
{
    double worst = 1e300;
    if (has_bytes(q, n)) {
        return emit_bytes(q, n);
    }
    NORI__TRY(one_weight(q, n, 1, &worst));
    NORI__TRY(one_weight(q, n, 2, &worst));
    nori__q_report_weight(q, n, worst);
    nori__q_report_node(q, n, NULL);
    return NORI_OK;
}
