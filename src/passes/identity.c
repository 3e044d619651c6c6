/* identity.c: nodes that give their input back: Identity, Dropout at inference, a Cast to the type
 * it has, a Transpose that changes nothing, a Reshape or Expand to
 * the same shape. */
#include "passes/passes.h"

static bool same_static_shape(const nori__type *a, const nori__type *b)
{
    if (a->kind != NORI_KIND_TENSOR || b->kind != NORI_KIND_TENSOR || a->rank < 0 ||
        a->rank != b->rank) {
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

static bool gives_input_back(const nori__node *n)
{
    const nori__value *in = n->inputs[0], *out = n->outputs[0];
    switch (n->op->id) {
    case NORI__OP_ONNX_Identity:
        return true;
    case NORI__OP_ONNX_Dropout: {
        const nori_tensor *training =
            n->input_count > 2 && n->inputs[2] ? nori__value_const(n->inputs[2]) : NULL;
        bool off = n->input_count < 3 || !n->inputs[2] ||
                   (training && training->count == 1 && !nori__tensor_get_i64(training, 0));
        return off && only_first_output(n) && nori__attr_i(n, "is_test", 1) != 0;
    }
    case NORI__OP_ONNX_Cast:
        return in->type.kind == NORI_KIND_TENSOR && in->type.elem != NORI_UNDEFINED &&
               nori__attr_i(n, "to", 0) == in->type.elem;
    case NORI__OP_ONNX_Transpose: {
        size_t count;
        const int64_t *perm = nori__attr_ints(n, "perm", &count);
        for (size_t i = 0; i < count; i++) {
            if (perm[i] != (int64_t)i) {
                return false;
            }
        }
        return perm != NULL && in->type.rank == (int)count;
    }
    case NORI__OP_ONNX_Reshape:
    case NORI__OP_ONNX_Flatten:
    case NORI__OP_ONNX_Expand:
        return same_static_shape(&in->type, &out->type);
    default:
        return false;
    }
}

nori_status nori__pass_identity(nori__ir *ir, bool *changed, nori_error *err)
{
    (void)err;
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first, *next; n; n = next) {
            next = n->next;
            if (!n->op || n->input_count < 1 || n->output_count < 1 || !n->inputs[0] ||
                !n->outputs[0] || !gives_input_back(n)) {
                continue;
            }
            /* A graph output keeps its name, and its own memory. */
            if (n->outputs[0]->flags & NORI__VALUE_OUTPUT) {
                continue;
            }
            nori__value_replace(n->outputs[0], n->inputs[0]);
            nori__node_remove(n);
            *changed = true;
        }
    }
    return NORI_OK;
}
