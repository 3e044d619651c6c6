/* integers_moves.c: what only moves elements, or takes the largest, works on the integers just as
 * well (integers.h): a DequantizeLinear in front of it goes behind it, or a QuantizeLinear behind it
 * goes in front. Exact: dequantizing and quantizing are element by element and monotonous. */
#include "providers/cpu/integers.h"

static bool one_of(const nori__node *n, const nori__op_id *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (nori__node_is(n, ops[i])) {
            return true;
        }
    }
    return false;
}

static bool only_first_output(const nori__node *n)
{
    for (uint32_t i = 1; i < n->output_count; i++) {
        if (n->outputs[i] && (n->outputs[i]->uses > 0 || n->outputs[i]->flags & NORI__VALUE_OUTPUT)) {
            return false;
        }
    }
    return n->output_count > 0 && n->outputs[0];
}

static bool picks_nearest(const nori__node *n)
{
    return nori__same(nori__attr_s(n, "mode", "nearest"), "nearest") &&
           !nori__same(nori__attr_s(n, "coordinate_transformation_mode", ""), "tf_crop_and_resize");
}

/* Keeps the number of elements, or makes it smaller by taking the largest. */
static bool moves_all(const nori__node *n)
{
    static const nori__op_id ops[] = {
        NORI__OP_ONNX_Reshape, NORI__OP_ONNX_Flatten, NORI__OP_ONNX_Squeeze,
        NORI__OP_ONNX_Unsqueeze, NORI__OP_ONNX_Transpose, NORI__OP_ONNX_Identity,
        NORI__OP_ONNX_DepthToSpace, NORI__OP_ONNX_SpaceToDepth, NORI__OP_ONNX_MaxPool};
    return one_of(n, ops, NORI__COUNT(ops));
}

static bool moves(const nori__node *n)
{
    static const nori__op_id ops[] = {NORI__OP_ONNX_Slice, NORI__OP_ONNX_Split,
                                      NORI__OP_ONNX_Gather, NORI__OP_ONNX_Expand};
    return moves_all(n) || one_of(n, ops, NORI__COUNT(ops)) ||
           (nori__node_is(n, NORI__OP_ONNX_Resize) && picks_nearest(n));
}

/* n's twin that reads the integers in its first input and makes out[i] in the place of output i. */
static nori__node *twin(nori__joiner *j, nori__node *n, nori__value *q, nori__value *const *out)
{
    nori__node *made = nori__node_new(j->g, n, n->domain, n->op_type, n->inputs, n->input_count, out,
                                      n->output_count);
    if (!made || !nori__node_set_input(made, 0, q)) {
        nori__no_memory(j->err);
        return NULL;
    }
    made->op = n->op;
    made->version = n->version;
    made->name = n->name;
    made->attrs = n->attrs;
    made->attr_count = n->attr_count;
    return made;
}

/* DequantizeLinear in front of before that makes out. */
static bool add_dequantize(nori__joiner *j, nori__node *before, nori__value *q,
                           const nori__quantized *by, nori__value *out)
{
    nori__value *in[3] = {q, by->scale, by->zero};
    nori__node *made =
        nori__joiner_node(j, before, "", "DequantizeLinear", NULL, in, 3, out, NULL);
    return made && (by->scales->count == 1 || nori__node_set_int(made, "axis", by->axis));
}

/* Where axis goes. false: n is no Transpose, or the axis is not known. */
static bool moved_axis(const nori__node *n, nori__quantized *by)
{
    size_t count;
    const int64_t *perm = nori__attr_ints(n, "perm", &count);
    int rank = by->q->type.rank;
    int axis = by->axis < 0 ? by->axis + rank : by->axis;
    if (!nori__node_is(n, NORI__OP_ONNX_Transpose) || rank < 1 || axis < 0 || axis >= rank ||
        (perm && count != (size_t)rank)) {
        return false;
    }
    for (int d = 0; d < rank; d++) {
        if ((perm ? perm[d] : rank - 1 - d) == axis) {
            by->axis = d;
            return true;
        }
    }
    return false;
}

/* All that a Concat joins is quantized alike. */
static bool joins_alike(const nori__joiner *j, const nori__node *n, nori__quantized *first)
{
    nori__quantized other;
    if (!nori__node_is(n, NORI__OP_ONNX_Concat) || n->input_count < 1 ||
        !nori__dequantized_8bit(j, n->inputs[0], first)) {
        return false;
    }
    for (uint32_t i = 1; i < n->input_count; i++) {
        if (!nori__dequantized_8bit(j, n->inputs[i], &other) ||
            !nori__same_quantization(first, &other)) {
            return false;
        }
    }
    return true;
}

static nori__node *push_concat(nori__joiner *j, nori__node *n, const nori__quantized *by)
{
    nori__quantized other;
    nori__value *out = nori__value_like(j, n->outputs[0], by->type);
    nori__node *made = out ? twin(j, n, by->q, &out) : NULL;
    for (uint32_t i = 1; made && i < n->input_count; i++) {
        (void)nori__dequantized_8bit(j, n->inputs[i], &other);
        if (!nori__node_set_input(made, i, other.q)) {
            nori__no_memory(j->err);
            return NULL;
        }
    }
    return made && add_dequantize(j, n, out, by, n->outputs[0]) ? made : NULL;
}

/* A Pad with zeros, or with what is there: the zero point stands for 0. */
static bool pads_zero(const nori__node *n)
{
    const nori__value *v = nori__cpu_value(n, 2);
    const nori_tensor *t = nori__value_const(v);
    return nori__node_is(n, NORI__OP_ONNX_Pad) &&
           (!nori__same(nori__attr_s(n, "mode", "constant"), "constant") || !v ||
            (t && t->type == NORI_FLOAT && t->count == 1 && *(const float *)t->data == 0));
}

static bool set_pad_value(nori__joiner *j, nori__node *made, const nori__quantized *by)
{
    nori_tensor *t = NULL;
    if (nori__tensor_new(j->ir->allocator, by->type, 0, NULL, &t, j->err) != NORI_OK) {
        return false;
    }
    nori__tensor_set_i64(t, 0, nori__zero_of(by));
    nori__value *v = nori__joiner_const(j, t);
    return v && nori__node_set_input(made, 2, v);
}

nori__node *nori__push_down(nori__joiner *j, nori__node *n)
{
    nori__quantized by;
    nori__value *out[8] = {NULL};
    if (!n->op || n->input_count < 1 || n->output_count < 1 ||
        n->output_count > NORI__COUNT(out)) {
        return NULL;
    }
    if ((n->op->flags & NORI__OP_SHAPE) && nori__dequantized_8bit(j, n->inputs[0], &by)) {
        (void)nori__node_set_input(n, 0, by.q); /* its shape is the same */
        return NULL;
    }
    if (joins_alike(j, n, &by)) {
        nori__node *made = push_concat(j, n, &by);
        if (made) {
            nori__drop(j, n);
        }
        return made;
    }
    bool pads = pads_zero(n);
    if ((!moves(n) && !pads) || !nori__dequantized(j, n->inputs[0], &by) ||
        !nori__cpu_is_8bit(by.type)) {
        return NULL;
    }
    if (by.scales->count != 1 && (!nori__value_const(by.q) || !moved_axis(n, &by))) {
        return NULL;
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        bool indices = i > 0 && nori__node_is(n, NORI__OP_ONNX_MaxPool);
        out[i] = !n->outputs[i] || indices ? n->outputs[i]
                                           : nori__value_like(j, n->outputs[i], by.type);
        if (n->outputs[i] && !out[i]) {
            return NULL;
        }
    }
    nori__node *made = twin(j, n, by.q, out);
    if (!made || (pads && !set_pad_value(j, made, &by))) {
        return NULL;
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i] && out[i] != n->outputs[i] &&
            !add_dequantize(j, n, out[i], &by, n->outputs[i])) {
            return NULL;
        }
    }
    nori__drop(j, n);
    return made;
}

/* The QuantizeLinear that is now in front. */
nori__node *nori__lift_up(nori__joiner *j, nori__node *q)
{
    nori__quantized by;
    nori__node *n = nori__quantizes(q, &by) ? nori__sole_producer(j, q->inputs[0]) : NULL;
    if (!n || n->input_count < 1 || !moves_all(n) || !only_first_output(n) ||
        !nori__sole_producer(j, n->inputs[0]) || n->inputs[0]->type.kind != NORI_KIND_TENSOR ||
        n->inputs[0]->type.elem != NORI_FLOAT || (n->op->flags & NORI__OP_SELF_ALLOC)) {
        return NULL;
    }
    nori__value *small = nori__value_like(j, n->inputs[0], by.type);
    nori__value *in[3] = {n->inputs[0], by.scale, by.zero}, *out[2] = {by.q, NULL};
    nori__node *made = small ? nori__joiner_node(j, n, "", "QuantizeLinear", NULL, in, 3, small, q)
                             : NULL;
    nori__node *moved = made ? twin(j, n, small, out) : NULL;
    if (!moved) {
        return NULL;
    }
    moved->output_count = 1;
    nori__drop(j, q);
    return made;
}
