/* prepare.c: the float graph as it should be before it is quantized: constants are initializers,
 * and what scales or shifts the channels of a convolution is part of its weights. */
#include "passes/passes.h"
#include "tools/quantize/search.h"

nori_status nori__q_bare_constants(nori__ir *ir, nori_error *err)
{
    for (nori__node *n = ir->main->first, *next; n; n = next) {
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
                return nori__no_memory(err);
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

/* Constants are to be found by name in a copy that was brought to the newest forms and folded: only
 * those have kernels. Floats alone: integers of shapes stay computed, as the file has them. */
static nori_status take_folded(nori__quantizer *q, const nori__ir *folded)
{
    size_t taken = 0;
    for (nori__node *n = q->ir->main->first, *next; n; n = next) {
        next = n->next;
        for (uint32_t i = 0; i < n->output_count; i++) {
            nori__value *v = n->outputs[i];
            const nori__value *f = v ? nori__value_find(folded->main, v->name) : NULL;
            const nori_tensor *t = f ? nori__value_const(f) : NULL;
            if (!t || t->type != NORI_FLOAT || (v->flags & NORI__VALUE_OUTPUT) ||
                nori__node_is(n, NORI__OP_ONNX_Constant)) {
                continue;
            }
            nori__value *to = nori__const_new(n->graph, v->name, nori_tensor_retain(t));
            if (!to) {
                return nori__no_memory(q->err);
            }
            nori__value_replace(v, to);
            taken++;
        }
    }
    bool changed = false;
    return taken > 0 ? nori__pass_dead(q->ir, &changed, q->err) : NORI_OK;
}

static nori_status fold_constants(nori__quantizer *q)
{
    nori__ir *copy = NULL;
    nori_error why = {0}; /* a graph that cannot be folded stays as it is: running it will tell why */
    NORI__TRY(nori__ir_copy(q->ir, &copy, q->err));
    nori_status s = nori__inline_functions(copy, &why);
    s = s == NORI_OK ? nori__upgrade(copy, &why) : s;
    s = s == NORI_OK ? nori__passes_run_only(copy, 1, "fold", &why) : s;
    s = s == NORI_OK ? take_folded(q, copy) : s == NORI_ERROR_MEMORY ? nori__no_memory(q->err) : NORI_OK;
    nori__ir_free(copy);
    return s;
}

nori_status nori__q_constants(nori__quantizer *q)
{
    freeze(q);
    NORI__TRY(nori__q_bare_constants(q->ir, q->err));
    return fold_constants(q);
}

nori_status nori__q_rename(nori__quantizer *q, nori__node *n, const char *what)
{
    nori__value *old = n->outputs[0];
    char *name = nori__arena_printf(&q->ir->arena, "%s_%s", old->name, what);
    nori__value *v = name ? nori__value_new(n->graph, name) : NULL;
    if (!v) {
        return nori__no_memory(q->err);
    }
    v->type = old->type;
    nori__value_replace(old, v);
    n->outputs[0] = v;
    v->producer = n;
    old->producer = NULL;
    return NORI_OK;
}

nori_status nori__q_fold(nori__quantizer *q)
{
    bool changed = true;
    while (changed) {
        changed = false;
        NORI__TRY(nori__pass_fuse_affine(q->ir, &changed, q->err));
    }
    return NORI_OK;
}

nori_status nori__q_prepare(nori__quantizer *q)
{
    NORI__TRY(nori__q_constants(q));
    return q->options->without & NORI_QUANTIZE_FOLD ? NORI_OK : nori__q_fold(q);
}
