/* check_batch.c: sizes that pretend to be free: a batch written into the body of a model whose
 * inputs leave it open (or fix it at 1), and axis names that only outputs carry. */
#include <inttypes.h>

#include "tools/check/check_internal.h"

/* Declared first axis of an input that looks like a batch: 1 or free, rank at least 2. */
static bool batch_axis(const nori__value *v, nori__dim *dim)
{
    if (nori__value_as_is(v) || v->type.kind != NORI_KIND_TENSOR || v->type.rank < 2) {
        return false;
    }
    *dim = v->type.dims[0];
    return dim->value == 1 || dim->value < 0;
}

/* The constant size a Reshape or Expand gives to axis 0; -1: none, it follows the data. */
static int64_t baked_size(const nori__node *n)
{
    bool reshape = nori__node_is(n, NORI__OP_ONNX_Reshape);
    if (!reshape && !nori__node_is(n, NORI__OP_ONNX_Expand)) {
        return -1;
    }
    int64_t first = -1;
    size_t count = 0;
    if (reshape && n->version == 1) {
        const int64_t *shape = nori__attr_ints(n, "shape", &count);
        first = shape && count > 0 ? shape[0] : -1;
    } else if (n->input_count > 1) {
        const nori_tensor *t = nori__value_as_is(n->inputs[1]);
        if (t && t->kind == NORI_KIND_TENSOR && t->type == NORI_INT64 && t->rank == 1 &&
            t->count > 0) {
            count = (size_t)t->count;
            first = nori__tensor_get_i64(t, 0);
        }
    }
    /* Rank 1 results carry no batch; Expand to 1 keeps the size of the data. */
    return count >= 2 && first >= (reshape ? 1 : 2) ? first : -1;
}

/* Whether some shape is computed while running: then a constant one elsewhere may be undone. */
static bool computes_shapes(const nori__graph *g)
{
    for (const nori__node *n = g->first; n; n = n->next) {
        if (nori__node_is(n, NORI__OP_ONNX_Reshape) && n->input_count > 1 && n->inputs[1] &&
            !nori__value_as_is(n->inputs[1])) {
            return true;
        }
    }
    return false;
}

void nori__check_batch(nori_findings *f, const nori__ir *ir)
{
    const nori__value *input = NULL;
    nori__dim batch = NORI__DIM_ANY;
    for (uint32_t i = 0; i < ir->main->input_count && !input; i++) {
        if (batch_axis(ir->main->inputs[i], &batch)) {
            input = ir->main->inputs[i];
        }
    }
    if (!input) {
        return;
    }
    bool is_free = batch.value < 0;
    nori_severity severity =
        is_free && !computes_shapes(ir->main) ? NORI_SEVERITY_WARNING : NORI_SEVERITY_INFO;
    for (const nori__node *n = ir->main->first; n; n = n->next) {
        int64_t size = baked_size(n);
        const nori__value *data = n->input_count > 0 ? n->inputs[0] : NULL;
        if (size < 0 || !data || nori__value_as_is(data)) {
            continue;
        }
        if (data->type.kind == NORI_KIND_TENSOR && data->type.rank > 0) {
            /* Only where axis 0 is, or may be, the batch. */
            nori__dim d = data->type.dims[0];
            bool may = d.value < 0 ? !d.name || !batch.name || nori__dim_same(d, batch)
                                   : !is_free && d.value == 1;
            if (!may) {
                continue;
            }
        }
        nori__found_at(f, severity, "batch", n,
                       "export the model with a dynamic batch axis, or feed one item at a time",
                       is_free ? "axis 0 of input %s is free, but a constant shape here fixes "
                                 "axis 0 at %" PRId64
                               : "axis 0 of input %s is 1, and a constant shape here fixes axis 0 "
                                 "at %" PRId64 " too: no other batch size will do",
                       input->name, size);
    }
}

/* Whether sizes can come from the data itself, so that an output may have an axis of its own. */
static bool makes_sizes(const nori__ir *ir)
{
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (const nori__node *n = g->first; n; n = n->next) {
            const nori__op *op = 
                nori__op_in(ir, n->domain, n->op_type, nori__ir_opset(ir, n->domain));
            if (!op || (op->flags & NORI__OP_SELF_ALLOC)) {
                return true;
            }
        }
    }
    return false;
}

void nori__check_axes(nori_findings *f, const nori__ir *ir)
{
    const nori__graph *g = ir->main;
    nori__map names; /* of the inputs' axes */
    nori__map_init(&names, ir->allocator);
    bool any_free = makes_sizes(ir);
    for (uint32_t i = 0; i < g->input_count; i++) {
        const nori__type *t = &g->inputs[i]->type;
        any_free |= t->rank < 0;
        for (int k = 0; k < t->rank; k++) {
            any_free |= t->dims[k].value < 0;
            if (t->dims[k].value < 0 && t->dims[k].name &&
                !nori__map_put(&names, t->dims[k].name, g->inputs[i])) {
                f->failed = true;
            }
        }
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        const nori__value *v = g->outputs[i];
        const nori__pb_type *said = v->pb ? v->pb->type : NULL;
        if (!said || said->kind != NORI_KIND_TENSOR || !said->shape) {
            continue; /* as declared: inference gives names of its own */
        }
        for (size_t k = 0; k < said->shape->dims.count; k++) {
            nori__str name = said->shape->dims.items[k].param;
            if (!said->shape->dims.items[k].has_param || name.n == 0 ||
                nori__map_get_n(&names, name.p, name.n)) {
                continue;
            }
            nori__found(f, any_free ? NORI_SEVERITY_INFO : NORI_SEVERITY_WARNING, "axis-name",
                        v->name,
                        any_free ? "fine when the size depends on the data"
                                 : "name the input's axis when exporting (dynamic_axes keys are "
                                   "input names), or state the size",
                        any_free ? "axis %zu of output %s is named %.*s, an axis no input has"
                                 : "axis %zu of output %s is named %.*s, an axis no input has: "
                                   "no size of the inputs is free",
                        k, v->name, (int)(name.n > 200 ? 200 : name.n), name.p);
        }
    }
    nori__map_free(&names);
}
