/* emit.c: puts QuantizeLinear and DequantizeLinear into the graph.
 *
 * A value that a chosen node makes is read through its pair by everybody, so that the integers can
 * go from node to node: the pair's result takes the value's name, and what the node made gets a
 * new one. A value that stays float gets a pair beside it, for chosen readers alone. */
#include "ops/op.h"
#include "tools/quantize/search.h"

static nori_status scalar(nori__quantizer *q, const char *name, nori_type type, double value,
                          nori__value **out)
{
    nori_tensor *t = NULL;
    NORI__TRY(nori__tensor_new(q->ir->allocator, type, 0, NULL, &t, q->err));
    nori__tensor_set_f64(t, 0, value);
    *out = nori__const_new(q->ir->main, name, t);
    return *out ? NORI_OK : nori__no_memory(q->err);
}

/* The constants of a root, made on first use. */
static nori_status parameters(nori__quantizer *q, const nori__value *v, nori__q_value **out)
{
    nori__q_value *root = *out = nori__q_root(q, v);
    if (root->scale) {
        return NORI_OK;
    }
    const char *scale = nori__q_name(q, root->root->name, "scale");
    const char *zero = nori__q_name(q, root->root->name, "zero_point");
    if (!scale || !zero) {
        return nori__no_memory(q->err);
    }
    NORI__TRY(scalar(q, scale, NORI_FLOAT, root->quant.scale, &root->scale));
    return scalar(q, zero, root->quant.type, (double)root->quant.zero_point, &root->zero);
}

/* from -> QuantizeLinear -> DequantizeLinear -> to, in front of before. */
static nori_status add_pair(nori__quantizer *q, nori__node *before, const char *name,
                            nori__value *from, const nori__q_value *root, nori__value *to)
{
    nori__graph *g = q->ir->main;
    const char *middle_name = nori__q_name(q, name, "quantized");
    nori__value *middle = middle_name ? nori__value_new(g, middle_name) : NULL;
    if (!middle) {
        return nori__no_memory(q->err);
    }
    nori__node *quantize =
        nori__node_new(g, before, "", "QuantizeLinear",
                       (nori__value *[]){from, root->scale, root->zero}, 3, &middle, 1);
    nori__node *dequantize =
        nori__node_new(g, before, "", "DequantizeLinear",
                       (nori__value *[]){middle, root->scale, root->zero}, 3, &to, 1);
    if (!quantize || !dequantize) {
        return nori__no_memory(q->err);
    }
    quantize->name = nori__q_name(q, name, "QuantizeLinear");
    dequantize->name = nori__q_name(q, name, "DequantizeLinear");
    quantize->name = quantize->name ? nori__arena_text(&q->ir->arena, quantize->name) : NULL;
    dequantize->name = dequantize->name ? nori__arena_text(&q->ir->arena, dequantize->name) : NULL;
    return quantize->name && dequantize->name ? NORI_OK : nori__no_memory(q->err);
}

/* ---- values ---- */

static nori_status pair_output(nori__quantizer *q, nori__node *n, uint32_t index)
{
    nori__value *v = n->outputs[index];
    nori__q_value *root;
    NORI__TRY(parameters(q, v, &root));
    const char *name = nori__q_name(q, v->name, "float");
    nori__value *made = name ? nori__value_new(q->ir->main, name) : NULL;
    if (!made) {
        return nori__no_memory(q->err);
    }
    made->type = v->type;
    made->producer = n;
    n->outputs[index] = made;
    v->producer = NULL;
    return add_pair(q, n->next, v->name, made, root, v);
}

/* What a chosen node reads in place of a value that stays float. */
static nori_status pair_beside(nori__quantizer *q, nori__value *v, nori__value **out)
{
    nori__q_value *own = nori__q_of(q, v), *root;
    if (!own->dequantized) {
        NORI__TRY(parameters(q, v, &root));
        const char *name = nori__q_name(q, v->name, "dequantized");
        own->dequantized = name ? nori__value_new(q->ir->main, name) : NULL;
        if (!own->dequantized) {
            return nori__no_memory(q->err);
        }
        nori__node *before = v->producer ? v->producer->next : q->ir->main->first;
        NORI__TRY(add_pair(q, before, v->name, v, root, own->dequantized));
    }
    *out = own->dequantized;
    return NORI_OK;
}

/* ---- constants ---- */

/* A weight that several nodes read becomes integers once, unless a bias asked for other scales. */
static nori_status weight_value(nori__quantizer *q, nori__node *n, nori__q_weight *made, int axis,
                                nori__value **value, nori_tensor **scales)
{
    nori__q_value *own = nori__q_of(q, n->inputs[1]);
    if (own->weight && own->weight_axis == axis && made->raised == 0) {
        nori_tensor_free(made->integers);
        nori_tensor_free(made->scales);
        nori_tensor_free(made->zeros);
        *value = own->weight;
        *scales = nori_tensor_retain(own->weight_scales);
        return NORI_OK;
    }
    *scales = nori_tensor_retain(made->scales);
    NORI__TRY(nori__q_constant(q, n, n->inputs[1]->name, made->integers, made->scales, made->zeros, axis,
                               0, value));
    if (!own->weight && made->raised == 0) {
        own->weight = *value;
        own->weight_scales = *scales; /* the graph keeps it */
        own->weight_axis = axis;
    }
    return NORI_OK;
}

static nori_status add_bias(nori__quantizer *q, nori__node *n, const char *name,
                            const nori_tensor *bias, const nori_tensor *scales, int axis,
                            double input_scale)
{
    nori_tensor *integers = NULL, *bias_scales = NULL;
    nori__value *value;
    NORI__TRY(nori__q_bias_make(q->ir->allocator, bias, scales, input_scale, &integers, &bias_scales,
                                q->err));
    NORI__TRY(nori__q_constant(q, n, name, integers, bias_scales, NULL, axis < 0 ? -1 : 0, 0, &value));
    return nori__node_set_input(n, 2, value) ? NORI_OK : nori__no_memory(q->err);
}

static nori_status weighted(nori__quantizer *q, nori__node *n)
{
    const nori_quantize_options *o = q->options;
    const nori_tensor *w = nori__value_const(n->inputs[1]);
    nori__value *bias_value = n->input_count > 2 ? n->inputs[2] : NULL;
    const nori_tensor *bias = nori__value_const(bias_value);
    if (!w) {
        return NORI_OK; /* a product of two activations */
    }
    int axis = nori__q_channel_axis(q, n, w);
    bool joins = bias && nori__q_plain(n) && bias->rank == 1 &&
                 (axis < 0 || bias->count == w->dims[axis]);
    double input_scale = nori__q_root(q, n->inputs[0])->quant.scale;
    nori__q_weight made;
    nori__value *value;
    NORI__TRY(nori__q_weight_make(q->ir->allocator, w, axis, o->weight_type,
                                  o->weight_type == NORI_INT8, joins ? bias : NULL, input_scale,
                                  &made, q->err));
    nori__q_take_rounding(q, n, &made);
    nori__q_report_weight(q, n, made.sqnr);
    if (made.raised > 0) {
        nori__q_note(q, "%s: %zu weight scales were raised so that the bias fits int32", n->name,
                     made.raised);
    }
    nori_tensor *scales = NULL, *corrected = NULL;
    const char *bias_name = bias_value ? bias_value->name : nori__q_name(q, n->inputs[1]->name, "bias");
    nori_status s = bias_name ? NORI_OK : nori__no_memory(q->err);
    if (s == NORI_OK && made.raised == 0 && (joins || !bias_value)) {
        s = nori__q_correct_bias(q, n, w, &made, axis, bias, &corrected);
    }
    if (s == NORI_OK) {
        s = weight_value(q, n, &made, axis, &value, &scales);
    } else {
        nori_tensor_free(made.integers);
        nori_tensor_free(made.scales);
        nori_tensor_free(made.zeros);
    }
    s = s == NORI_OK && !nori__node_set_input(n, 1, value) ? nori__no_memory(q->err) : s;
    if (s == NORI_OK && (joins || corrected)) {
        s = add_bias(q, n, bias_name, corrected ? corrected : bias, scales, axis, input_scale);
    }
    nori_tensor_free(corrected);
    nori_tensor_free(scales);
    return s;
}

/* A constant that an elementwise node reads: one scale, of the activations' type. */
static nori_status operand(nori__quantizer *q, nori__node *n, uint32_t index)
{
    nori__q_weight made;
    nori__value *value;
    const nori__value *v = n->inputs[index];
    NORI__TRY(nori__q_weight_make(q->ir->allocator, v->constant, -1, q->options->activation_type,
                                  q->options->symmetric_activations != 0, NULL, 1, &made, q->err));
    NORI__TRY(nori__q_constant(q, n, v->name, made.integers, made.scales, made.zeros, -1, 0,
                               &value));
    return nori__node_set_input(n, index, value) ? NORI_OK : nori__no_memory(q->err);
}

static bool is_float(const nori__value *v)
{
    const nori_tensor *t = nori__value_const(v);
    return t && t->type == NORI_FLOAT;
}

static nori_status emit_node(nori__quantizer *q, nori__node *n)
{
    nori__q_role role = nori__q_role_of(n);
    uint32_t n_data = nori__q_data_inputs(n);
    if (role == NORI__Q_WEIGHTED) {
        NORI__TRY(weighted(q, n));
    }
    for (uint32_t i = 0; i < n_data; i++) {
        nori__value *v = n->inputs[i];
        bool original = v && v->id < q->n_values;
        if (!original) {
            continue;
        }
        if (role != NORI__Q_WEIGHTED && is_float(v)) {
            NORI__TRY(operand(q, n, i));
        } else if (nori__q_of(q, v)->pair && !nori__q_of(q, v)->replaced) {
            nori__value *to = NULL;
            NORI__TRY(pair_beside(q, v, &to));
            if (!nori__node_set_input(n, i, to)) {
                return nori__no_memory(q->err);
            }
        }
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        nori__value *v = n->outputs[i];
        if (v && nori__q_of(q, v)->pair) {
            nori__q_of(q, v)->replaced = true;
            NORI__TRY(pair_output(q, n, i));
        }
    }
    return NORI_OK;
}

nori_status nori__q_emit(nori__quantizer *q)
{
    for (nori__node *n = q->ir->main->first, *next; n; n = next) {
        next = n->next;
        if (n->id < q->n_nodes && q->chosen[n->id]) {
            NORI__TRY(emit_node(q, n));
        }
    }
    return NORI_OK;
}
