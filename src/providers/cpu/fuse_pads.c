/* fuse_pads.c: a Pad with zeros in front of a convolution becomes the convolution's own pads: how
 * frameworks write padding that is not the same on both sides. */
#include "ops/resolve.h"
#include "providers/cpu/cpu.h"

/* What n adds to the spatial axes, as pads of a convolution; false: it does something else. */
static bool zeros_around(const nori__node *n, int rank, int64_t *pads)
{
    const nori_tensor *list = nori__value_const(nori__cpu_value(n, 1));
    const nori__value *value = nori__cpu_value(n, 2);
    const nori_tensor *filled = nori__value_const(value);
    if (!nori__node_is(n, NORI__OP_ONNX_Pad) || !list || list->type != NORI_INT64 ||
        list->count != 2 * rank || nori__cpu_value(n, 3) ||
        !nori__same(nori__attr_s(n, "mode", "constant"), "constant")) {
        return false;
    }
    if (value && (!filled || filled->count != 1 || filled->type == NORI_STRING ||
                  nori__tensor_get_f64(filled, 0) != 0)) {
        return false;
    }
    const int64_t *p = list->data;
    for (int d = 0; d < rank; d++) {
        bool spatial = d >= 2;
        if (p[d] < 0 || p[rank + d] < 0 || p[d] > INT32_MAX || p[rank + d] > INT32_MAX ||
            (!spatial && (p[d] != 0 || p[rank + d] != 0))) {
            return false;
        }
        if (spatial) {
            pads[d - 2] = p[d];
            pads[rank - 2 + d - 2] = p[rank + d];
        }
    }
    return true;
}

static bool take_pad(nori__node *conv)
{
    nori__value *x = conv->inputs[0];
    int rank = x && x->type.kind == NORI_KIND_TENSOR ? x->type.rank : -1;
    int64_t pads[2 * NORI_MAX_RANK] = {0};
    size_t n = 0;
    const int64_t *own = nori__attr_ints(conv, "pads", &n);
    const char *how = nori__attr_s(conv, "auto_pad", "NOTSET");
    bool none = nori__same(how, "VALID");
    if (rank < 3 || !x->producer || x->producer->graph != conv->graph ||
        !(none || nori__same(how, "NOTSET")) || (own && n != (size_t)(2 * (rank - 2))) ||
        !zeros_around(x->producer, rank, pads)) {
        return true;
    }
    for (size_t i = 0; own && !none && i < n; i++) {
        pads[i] += own[i];
    }
    return nori__node_set_input(conv, 0, x->producer->inputs[0]) &&
           nori__node_set_text(conv, "auto_pad", "NOTSET") &&
           nori__node_set_ints(conv, "pads", pads, (size_t)(2 * (rank - 2)));
}

nori_status nori__cpu_fuse_pads(nori__ir *ir, nori_error *err)
{
    if (!NORI__IR_HAS(ir, NORI__OP_ONNX_Pad)) {
        return NORI_OK;
    }
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            if (nori__node_is(n, NORI__OP_ONNX_Conv) && n->input_count > 1 && !take_pad(n)) {
                return nori__no_memory(err);
            }
        }
        for (nori__node *n = g->first, *next; n; n = next) { /* what nobody reads now */
            next = n->next;
            nori__value *y = n->output_count == 1 ? n->outputs[0] : NULL;
            if (nori__node_is(n, NORI__OP_ONNX_Pad) && y && y->uses == 0 &&
                !(y->flags & NORI__VALUE_OUTPUT)) {
                nori__node_remove(n);
            }
        }
    }
    return NORI_OK;
}
