/* identity.c: nodes that give their input back: Identity, Dropout at inference, a Cast to the type
 * it has, a Transpose that moves nothing, a Reshape or Expand to the same shape, a Pad by nothing,
 * a Concat or Sum of one, x * 1, x / 1, x - 0. (x + 0 is not one: it makes -0 to +0,
 * and so does x - -0.) */
#include "passes/passes.h"

#include <math.h>

static bool same_static_shape(const nori__value *x, const nori__value *y)
{
    const nori__type *a = &x->type, *b = &y->type;
    if (a->kind != NORI_KIND_TENSOR || b->kind != NORI_KIND_TENSOR || a->rank < 0 ||
        a->rank != b->rank || ((x->flags | y->flags) & NORI__VALUE_HINTED)) {
        return false;
    }
    for (int d = 0; d < a->rank; d++) {
        if (a->dims[d].value < 0 || a->dims[d].value != b->dims[d].value) {
            return false;
        }
    }
    return true;
}

static bool only_first_output(const nori__node *n)
{
    for (uint32_t i = 1; i < n->output_count; i++) {
        if (n->outputs[i] && n->outputs[i]->uses > 0) {
            return false;
        }
    }
    return true;
}

/* Only integers, and single numbers, are read. */
static const nori_tensor *const_in(const nori__node *n, uint32_t i)
{
    return i < n->input_count ? nori__value_as_is(n->inputs[i]) : NULL;
}

static bool all_zero(const nori_tensor *t)
{
    for (int64_t i = 0; i < t->count; i++) {
        if (nori__tensor_get_i64(t, i) != 0) {
            return false;
        }
    }
    return true;
}

/* Input i is the one number, of a shape that does not widen input 0. */
static bool is_number(const nori__node *n, uint32_t i, double number)
{
    const nori_tensor *t = const_in(n, i);
    bool numeric = t && t->kind == NORI_KIND_TENSOR && t->type != NORI_STRING &&
                   t->type != NORI_COMPLEX64 && t->type != NORI_COMPLEX128;
    const nori__type *x = &n->inputs[0]->type;
    return numeric && t->count == 1 && nori__tensor_get_f64(t, 0) == number &&
           (t->rank == 0 || (x->kind == NORI_KIND_TENSOR && x->rank >= t->rank &&
                             !(n->inputs[0]->flags & NORI__VALUE_HINTED)));
}

static bool same_order(const nori__node *n)
{
    size_t count;
    const int64_t *perm = nori__attr_ints(n, "perm", &count);
    const nori__type *x = &n->inputs[0]->type;
    if (!perm) { /* reverses all axes */
        return x->kind == NORI_KIND_TENSOR && x->rank >= 0 && x->rank <= 1 &&
               !(n->inputs[0]->flags & NORI__VALUE_HINTED);
    }
    for (size_t i = 0; i < count; i++) {
        if (perm[i] != (int64_t)i) {
            return false;
        }
    }
    return true;
}

static bool dropout_is_off(const nori__node *n)
{
    const nori_tensor *training = const_in(n, 2);
    bool given = n->input_count > 2 && n->inputs[2];
    return only_first_output(n) &&
           (!given || (training && training->count == 1 && all_zero(training)));
}

static bool gives_input_back(const nori__node *n)
{
    const nori__value *in = n->inputs[0], *out = n->outputs[0];
    const nori_tensor *pads;
    switch (n->op->id) {
    case NORI__OP_ONNX_Identity:
        return true;
    case NORI__OP_ONNX_Dropout:
        return dropout_is_off(n);
    case NORI__OP_ONNX_Cast:
        return in->type.kind == NORI_KIND_TENSOR && in->type.elem != NORI_UNDEFINED &&
               nori__attr_i(n, "to", 0) == in->type.elem;
    case NORI__OP_ONNX_Transpose:
        return same_order(n);
    case NORI__OP_ONNX_Reshape:
    case NORI__OP_ONNX_Flatten:
    case NORI__OP_ONNX_Expand:
        return same_static_shape(in, out);
    case NORI__OP_ONNX_Pad:
        pads = const_in(n, 1);
        return pads && all_zero(pads);
    case NORI__OP_ONNX_Concat:
    case NORI__OP_ONNX_Sum:
    case NORI__OP_ONNX_Max:
    case NORI__OP_ONNX_Min:
    case NORI__OP_ONNX_Mean:
        return n->input_count == 1;
    case NORI__OP_ONNX_Mul:
    case NORI__OP_ONNX_Div:
        return is_number(n, 1, 1);
    case NORI__OP_ONNX_Sub:
        return is_number(n, 1, 0) && !signbit(nori__tensor_get_f64(const_in(n, 1), 0));
    default:
        return false;
    }
}

/* The output keeps its name (somebody outside knows it): the node that makes the input makes the
 * output instead. */
static bool rename_input(nori__node *n)
{
    nori__value *in = n->inputs[0], *out = n->outputs[0];
    nori__node *maker = in->producer;
    if (!maker || in->graph != n->graph || (in->flags & NORI__VALUE_OUTPUT)) {
        return false; /* an input, a constant, or known by a name of its own */
    }
    nori__node_remove(n);
    for (uint32_t i = 0; i < maker->output_count; i++) {
        maker->outputs[i] = maker->outputs[i] == in ? out : maker->outputs[i];
    }
    out->producer = maker;
    nori__value_replace(in, out); /* walks from in's producer, so before it is forgotten */
    in->producer = NULL;
    return true;
}

nori_status nori__pass_identity(nori__ir *ir, bool *changed, nori_error *err)
{
    (void)err;
    if (!NORI__IR_HAS(ir, NORI__OP_ONNX_Identity, NORI__OP_ONNX_Dropout, NORI__OP_ONNX_Cast,
                      NORI__OP_ONNX_Transpose, NORI__OP_ONNX_Reshape, NORI__OP_ONNX_Flatten,
                      NORI__OP_ONNX_Expand, NORI__OP_ONNX_Pad, NORI__OP_ONNX_Concat,
                      NORI__OP_ONNX_Sum, NORI__OP_ONNX_Max, NORI__OP_ONNX_Min,
                      NORI__OP_ONNX_Mean, NORI__OP_ONNX_Mul, NORI__OP_ONNX_Div,
                      NORI__OP_ONNX_Sub)) {
        return NORI_OK;
    }
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first, *next; n; n = next) {
            next = n->next;
            if (!n->op || n->input_count < 1 || n->output_count < 1 || !n->inputs[0] ||
                !n->outputs[0] || !gives_input_back(n)) {
                continue;
            }
            if (n->outputs[0]->flags & NORI__VALUE_OUTPUT) {
                *changed = rename_input(n) || *changed;
                continue;
            }
            nori__value_replace(n->outputs[0], n->inputs[0]);
            nori__node_remove(n);
            *changed = true;
        }
    }
    return NORI_OK;
}
