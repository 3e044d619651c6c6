/* prepare.c: the float graph as it should be before it is quantized: constants are initializers,
 * and what scales or shifts the channels of a convolution is part of its weights. */
#include "passes/passes.h"
#include "tools/quantize/quantize.h"

/* Constant nodes of float weights, and Identity nodes that only rename one, as exporters leave
 * them behind. */
static nori_status constants(nori__quantizer *q)
{
    for (nori__node *n = q->ir->main->first, *next; n; n = next) {
        next = n->next;
        nori__value *out = n->output_count == 1 ? n->outputs[0] : NULL, *to = NULL;
        if (!out || (out->flags & NORI__VALUE_OUTPUT)) {
            continue;
        }
        if (nori__node_is(n, NORI__OP_ONNX_Identity) && n->input_count == 1 && n->inputs[0] &&
            nori__value_const(n->inputs[0])) {
            to = n->inputs[0];
        } else if (nori__node_is(n, NORI__OP_ONNX_Constant)) {
            const nori_tensor *t = nori__attr_tensor(n, "value");
            if (!t || t->type != NORI_FLOAT) {
                continue;
            }
            to = nori__const_new(n->graph, out->name, nori_tensor_retain(t));
            if (!to) {
                return nori__no_memory(q->err);
            }
        } else {
            continue;
        }
        nori__value_replace(out, to);
        nori__node_remove(n);
    }
    return NORI_OK;
}

/* Float weights that are listed as inputs too may be overridden, and then are no constants. Nobody
 * does; exporters of a certain time listed all of them. */
static void freeze(nori__quantizer *q)
{
    nori__graph *g = q->ir->main;
    uint32_t kept = 0, frozen = 0;
    for (uint32_t i = 0; i < g->input_count; i++) {
        nori__value *v = g->inputs[i];
        if (v->constant && v->constant->type == NORI_FLOAT && v->constant->rank > 0) {
            v->flags &= ~(uint32_t)NORI__VALUE_INPUT;
            frozen++;
        } else {
            g->inputs[kept++] = v;
        }
    }
    g->input_count = kept;
    if (frozen > 0) {
        nori__q_note(q, "%u weights that were also listed as inputs are constants now", frozen);
    }
}

nori_status nori__q_prepare(nori__quantizer *q)
{
    freeze(q);
    bool changed = true;
    NORI__TRY(constants(q));
    while (changed) {
        changed = false;
        NORI__TRY(nori__pass_fuse_affine(q->ir, &changed, q->err));
    }
    return NORI_OK;
}
