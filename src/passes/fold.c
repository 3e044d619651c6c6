/* fold.c: nodes whose inputs are all constant become constants, unless that would make the model
 * much larger than its inputs were. */
#include "passes/passes.h"

#define GROWTH_LIMIT ((size_t)1 << 20) /* bytes an output may have beyond its node's inputs */

static bool foldable(const nori__node *n)
{
    if (!n->op || (n->op->flags & (NORI__OP_SELF_ALLOC | NORI__OP_RANDOM)) ||
        n->output_count == 0) {
        return false;
    }
    size_t in_bytes = 0, out_bytes = 0;
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i]) {
            const nori_tensor *t = nori__value_const(n->inputs[i]);
            if (!t) {
                return false;
            }
            in_bytes += t->bytes;
        }
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        const nori__value *v = n->outputs[i];
        if (!v) {
            continue;
        }
        int64_t dims[NORI_MAX_RANK], count;
        size_t bytes = 0;
        for (int d = 0; d < v->type.rank; d++) {
            dims[d] = v->type.dims[d].value;
        }
        if (v->type.kind == NORI_KIND_TENSOR && v->type.rank >= 0 &&
            nori__dims_count(v->type.rank, dims, &count) &&
            nori__type_bytes(v->type.elem, count, &bytes)) {
            out_bytes += bytes;
        }
    }
    return out_bytes <= in_bytes || out_bytes - in_bytes <= GROWTH_LIMIT;
}

/* Makes an output of a node a constant of its graph. */
static nori_status become(nori__value *v, nori_tensor *t, nori_error *err)
{
    nori__ir *ir = v->graph->ir;
    nori__dim dims[NORI_MAX_RANK];
    for (int d = 0; d < t->rank; d++) {
        dims[d] = nori__dim_of(t->dims[d]);
    }
    if (!nori__vec_push(&ir->tensors, t)) {
        nori_tensor_free(t);
        return nori__no_memory(err);
    }
    v->constant = t;
    v->flags |= NORI__VALUE_INITIALIZER;
    return nori__type_set(&ir->arena, &v->type, t->type, t->rank, dims) ? NORI_OK
                                                                        : nori__no_memory(err);
}

static nori_status fold_node(nori__node *n, bool *changed, nori_error *err)
{
    nori_tensor *few[8] = {NULL}, **out = few;
    if (n->output_count > NORI__COUNT(few)) {
        out = nori__arena_array(&n->graph->ir->arena, n->output_count, sizeof(*out));
        if (!out) {
            return nori__no_memory(err);
        }
    }
    /* What cannot be computed is left for the run, which may never come to it. */
    if (nori__node_evaluate(n, n->graph->ir->allocator, out, NULL) != NORI_OK) {
        return NORI_OK;
    }
    nori_status s = NORI_OK;
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i] && s == NORI_OK) {
            n->outputs[i]->producer = NULL;
            s = become(n->outputs[i], out[i], err);
        } else {
            nori_tensor_free(out[i]);
        }
    }
    nori__node_remove(n);
    *changed = true;
    return s;
}

nori_status nori__pass_fold(nori__ir *ir, bool *changed, nori_error *err)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first, *next; n; n = next) {
            next = n->next;
            if (foldable(n)) {
                NORI__TRY(fold_node(n, changed, err));
            }
        }
    }
    return NORI_OK;
}
