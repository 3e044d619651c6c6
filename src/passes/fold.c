/* fold.c: nodes whose inputs are all constant become constants, unless that would make the model
 * much larger than its inputs were, or all that was folded larger than a few times the constants
 * that came with it (a small file can ask for any number). So do integers known from shapes alone
 * (Shape of an input of fixed size and what is computed from it), where no mere declaration has a
 * part in it.
 *
 * A DequantizeLinear of constants stays where what reads it reads other dequantized values, too:
 * that is an operator on quantized values, which providers turn into one on integers. What is left
 * of those when providers are done is folded at last. */
#include "passes/passes.h"

#define GROWTH_LIMIT ((size_t)8 << 20) /* bytes an output may have beyond its node's inputs */
/* All that folding may make, for it is held as long as the session: this, and this many times the
 * bytes of the constants that came with the model. */
#define FOLDED_ALWAYS ((uint64_t)32 << 20)
#define FOLDED_TIMES 4u

/* Whether so many bytes more may be made. */
static bool room_for(nori__ir *ir, size_t bytes)
{
    if (ir->fold_most == 0) {
        ir->fold_most = FOLDED_ALWAYS + FOLDED_TIMES * nori__ir_tensor_bytes(ir);
    }
    return bytes <= ir->fold_most && ir->fold_bytes <= ir->fold_most - bytes;
}

static bool foldable(const nori__node *n)
{
    if (!n->op || (n->op->flags & (NORI__OP_SELF_ALLOC | NORI__OP_RANDOM)) ||
        n->output_count == 0) {
        return false;
    }
    size_t in_bytes = 0, out_bytes = 0;
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i]) {
            const nori_tensor *t = nori__value_as_is(n->inputs[i]);
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
    return (out_bytes <= in_bytes || out_bytes - in_bytes <= GROWTH_LIMIT) &&
           room_for(n->graph->ir, out_bytes);
}

/* ---- what is left for operators on integers ---- */

static const nori__node *maker(const nori__value *v, nori__op_id op)
{
    return v && v->producer && nori__node_is(v->producer, op) ? v->producer : NULL;
}

/* What makes v, past what only moves elements. */
static const nori__value *unmoved(const nori__value *v)
{
    static const nori__op_id ops[] = {NORI__OP_ONNX_Transpose, NORI__OP_ONNX_Reshape,
                                      NORI__OP_ONNX_Flatten, NORI__OP_ONNX_Squeeze,
                                      NORI__OP_ONNX_Unsqueeze, NORI__OP_ONNX_MaxPool,
                                      NORI__OP_ONNX_Identity};
    for (int step = 0; v && step < 4; step++) {
        const nori__node *n = NULL;
        for (size_t i = 0; i < NORI__COUNT(ops) && !n; i++) {
            n = maker(v, ops[i]);
        }
        if (!n || n->input_count < 1) {
            break;
        }
        v = n->inputs[0];
    }
    return v;
}

/* The node that dequantizes what v is made of. */
static const nori__node *dequantizes(const nori__value *v)
{
    const nori__node *n = maker(unmoved(v), NORI__OP_ONNX_DequantizeLinear);
    return n && n->input_count > 1 && n->inputs[0] ? n : NULL;
}

static bool of_constants(const nori__node *n)
{
    const nori__node *before = maker(n->inputs[0], NORI__OP_ONNX_QuantizeLinear);
    return nori__value_as_is(n->inputs[0]) || (before && nori__value_as_is(before->inputs[0]));
}

/* Marks the nodes that stay by id. */
static void mark_kept(const nori__ir *ir, uint8_t *kept)
{
    if (!NORI__IR_HAS(ir, NORI__OP_ONNX_DequantizeLinear)) {
        return;
    }
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (const nori__node *n = g->first; n; n = n->next) {
            bool quantized = nori__node_is(n, NORI__OP_ONNX_Gather); /* rows of a table */
            for (uint32_t i = 0; i < n->input_count && !quantized; i++) {
                const nori__node *d = n->inputs[i] ? dequantizes(n->inputs[i]) : NULL;
                quantized = d && !of_constants(d);
            }
            for (uint32_t i = 0; i < n->input_count && quantized; i++) {
                const nori__node *d = n->inputs[i] ? dequantizes(n->inputs[i]) : NULL;
                if (d) {
                    kept[d->id] = 1;
                }
            }
        }
    }
}

/* ---- folding ---- */

/* Makes an output of a node a constant of its graph. */
static nori_status become(nori__value *v, nori_tensor *t, nori_error *err)
{
    nori__ir *ir = v->graph->ir;
    nori__dim dims[NORI_MAX_RANK];
    for (int d = 0; d < t->rank; d++) {
        dims[d] = nori__dim_of(t->dims[d]);
    }
    if (!nori__ir_keep(ir, t)) {
        return nori__no_memory(err);
    }
    ir->fold_bytes += t->bytes;
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

/* Whether inference knows all of v's content. */
static bool known_content(const nori__value *v)
{
    const nori__type *t = &v->type;
    if (!v->data || (v->flags & NORI__VALUE_HINTED) || t->kind != NORI_KIND_TENSOR ||
        (t->elem != NORI_INT64 && t->elem != NORI_INT32) || t->rank < 0 || t->rank > 1 ||
        v->data_count != (t->rank == 1 ? t->dims[0].value : 1)) {
        return false;
    }
    for (int i = 0; i < v->data_count; i++) {
        if (v->data[i].name || v->data[i].value == -1) {
            return false; /* -1 is "not known": a real -1 is left to the kernel */
        }
    }
    return true;
}

static bool foldable_from_shapes(const nori__node *n)
{
    if (!n->op || (n->op->flags & (NORI__OP_SELF_ALLOC | NORI__OP_RANDOM)) || n->output_count != 1 ||
        !n->outputs[0]) {
        return false;
    }
    return known_content(n->outputs[0]);
}

static nori_status fold_from_shapes(nori__node *n, bool *changed, nori_error *err)
{
    nori__value *v = n->outputs[0];
    nori_tensor *t = NULL;
    const int64_t count = v->data_count;
    NORI__TRY(nori__tensor_new(n->graph->ir->allocator, (nori_type)v->type.elem, v->type.rank,
                               &count, &t, err));
    for (int64_t i = 0; i < count; i++) {
        nori__tensor_set_i64(t, i, v->data[i].value);
    }
    v->producer = NULL;
    nori__node_remove(n);
    *changed = true;
    return become(v, t, err);
}

/* The tensor of a Constant: it becomes its output's as it is, of whatever size, and nothing is made. */
static nori_tensor *tensor_of_constant(const nori__node *n)
{
    if (!nori__node_is(n, NORI__OP_ONNX_Constant) || n->output_count != 1 || !n->outputs[0]) {
        return NULL;
    }
    const nori__attr *a = nori__attr_find(n, "value");
    return a && a->kind == NORI__ATTR_TENSOR && a->v.tensor->kind == NORI_KIND_TENSOR ? a->v.tensor : NULL;
}

static nori_status fold_constant(nori__node *n, nori_tensor *t, bool *changed, nori_error *err)
{
    nori__value *v = n->outputs[0];
    uint64_t made = n->graph->ir->fold_bytes;
    v->producer = NULL;
    nori__node_remove(n);
    *changed = true;
    NORI__TRY(become(v, nori_tensor_retain(t), err));
    v->graph->ir->fold_bytes = made;
    return NORI_OK;
}

/* kept: by id of a node that is there now; NULL: none stays. */
static nori_status fold(nori__ir *ir, const uint8_t *kept, bool *changed, nori_error *err)
{
    uint64_t edits = ir->edits;
    bool stays = false;
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first, *next; n; n = next) {
            next = n->next;
            nori_tensor *t = tensor_of_constant(n);
            if (t) {
                NORI__TRY(fold_constant(n, t, changed, err));
            } else if (foldable_from_shapes(n)) {
                NORI__TRY(fold_from_shapes(n, changed, err));
            } else if (foldable(n)) {
                if (kept && kept[n->id]) {
                    stays = true;
                } else {
                    NORI__TRY(fold_node(n, changed, err));
                }
            }
        }
    }
    if (ir->edits == edits && !stays) {
        ir->folded = edits + 1;
    }
    return NORI_OK;
}

nori_status nori__pass_fold(nori__ir *ir, bool *changed, nori_error *err)
{
    const size_t count = (size_t)ir->node_count + 1;
    uint8_t *kept = nori__alloc_zero(ir->allocator, count);
    if (!kept) {
        return nori__no_memory(err);
    }
    mark_kept(ir, kept);
    nori_status s = fold(ir, kept, changed, err);
    nori__release(ir->allocator, kept, count);
    return s;
}

nori_status nori__pass_fold_rest(nori__ir *ir, bool *changed, nori_error *err)
{
    return ir->folded == ir->edits + 1 ? NORI_OK : fold(ir, NULL, changed, err);
}
