/* ref_control.c: If, and what Loop and Scan share: running a body, stacking its outputs. All
 * references a body gives are held here until the node is done, whatever fails in between. */
#include "providers/reference/ref_control.h"

nori_status nori__body_open(nori__body_runs *b, nori_call *call, const nori__graph *graph,
                            uint32_t first_scan)
{
    memset(b, 0, sizeof(*b));
    nori__arena_init(&b->arena, call->allocator);
    b->call = call;
    b->graph = graph;
    b->n_in = graph->input_count;
    b->n_out = graph->output_count;
    b->first_scan = first_scan;
    b->n_scan = b->n_out > first_scan ? b->n_out - first_scan : 0;
    b->in = nori__arena_array(&b->arena, (size_t)b->n_in + 1, sizeof(*b->in));
    b->out = nori__arena_array(&b->arena, (size_t)b->n_out + 1, sizeof(*b->out));
    b->state = nori__arena_array(&b->arena, (size_t)b->n_out + 1, sizeof(*b->state));
    b->stacks = nori__arena_array(&b->arena, (size_t)b->n_scan + 1, sizeof(*b->stacks));
    if (!b->in || !b->out || !b->state || !b->stacks) {
        return nori__no_memory(call->err);
    }
    for (uint32_t i = 0; i < b->n_scan; i++) {
        nori__vec_init(&b->stacks[i].items, call->allocator);
    }
    return NORI_OK;
}

void nori__stack_clear(nori__stack *s)
{
    while (s->items.count > 0) {
        nori_tensor_free(s->items.items[--s->items.count]);
    }
}

void nori__body_close(nori__body_runs *b)
{
    for (uint32_t i = 0; b->out && b->state && i < b->n_out; i++) {
        nori_tensor_free(b->out[i]);
        nori_tensor_free(b->state[i]);
    }
    for (uint32_t i = 0; b->stacks && i < b->n_scan; i++) {
        nori__stack_clear(&b->stacks[i]);
        nori__vec_free(&b->stacks[i].items);
    }
    nori__arena_free(&b->arena);
}

nori_status nori__body_run(nori__body_runs *b)
{
    for (uint32_t i = 0; i < b->n_out; i++) {
        nori_tensor_free(b->out[i]);
        b->out[i] = NULL;
    }
    return b->call->exec->subgraph(b->call, b->graph, b->in, b->n_in, b->out, b->n_out);
}

nori_status nori__body_push(nori__body_runs *b)
{
    for (uint32_t i = 0; i < b->n_scan; i++) {
        nori_tensor *t = b->out[b->first_scan + i];
        if (!t || t->kind != NORI_KIND_TENSOR) {
            return nori__fail(b->call->err, NORI_ERROR_MODEL, "scan output %u is not a tensor", i);
        }
        if (!nori__vec_push(&b->stacks[i].items, t)) {
            return nori__no_memory(b->call->err);
        }
        b->out[b->first_scan + i] = NULL;
    }
    return NORI_OK;
}

/* Type and shape of one item: of the first, or, when the body never ran, what is known of its
 * output; sizes that are not known are 0 then, as there is nothing they could be read from. */
static nori_status item_shape(nori__body_runs *b, uint32_t k, nori_type *type, int *rank,
                              int64_t *dims)
{
    const nori__vec *items = &b->stacks[k].items;
    if (items->count > 0) {
        const nori_tensor *t = items->items[0];
        *type = (nori_type)t->type;
        *rank = t->rank;
        nori__tensor_dims(t, dims);
        return NORI_OK;
    }
    const nori__type *t = &b->graph->outputs[b->first_scan + k]->type;
    if (t->kind != NORI_KIND_TENSOR || !t->elem) {
        return nori__fail(b->call->err, NORI_ERROR_DATA,
                          "there was no iteration and the type of scan output %u is not known", k);
    }
    *type = (nori_type)t->elem;
    *rank = t->rank < 0 ? 0 : t->rank;
    for (int d = 0; d < *rank; d++) {
        dims[d] = t->dims[d].value < 0 ? 0 : t->dims[d].value;
    }
    return NORI_OK;
}

nori_status nori__body_stack(nori__body_runs *b, uint32_t k, uint32_t o, int64_t axis,
                             bool backward)
{
    const nori__vec *items = &b->stacks[k].items;
    nori_call *call = b->call;
    int64_t shape[NORI_MAX_RANK], dims[NORI_MAX_RANK + 1], count = (int64_t)items->count;
    int rank = 0, at;
    nori_type type = NORI_UNDEFINED;
    nori_tensor *out = NULL;
    NORI__TRY(item_shape(b, k, &type, &rank, shape));
    if (rank + 1 > NORI_MAX_RANK) {
        return nori__fail(call->err, NORI_ERROR_LIMIT, "rank %d, at most %d is taken", rank + 1,
                          NORI_MAX_RANK);
    }
    NORI__TRY(nori__ref_axis(call, axis, rank + 1, &at));
    for (int d = 0, from = 0; d <= rank; d++) {
        dims[d] = d == at ? count : shape[from++];
    }
    NORI__TRY(call->exec->alloc(call, o, type, rank + 1, dims, &out));
    int64_t inner = 1, outer = 1;
    for (int d = 0; d < rank; d++) {
        *(d < at ? &outer : &inner) *= shape[d];
    }
    for (int64_t i = 0; i < count; i++) {
        const nori_tensor *t = items->items[i];
        bool same = t->type == type && t->rank == rank;
        for (int d = 0; same && d < rank; d++) {
            same = t->dims[d] == shape[d];
        }
        if (!same) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "scan output %u changes its type or shape in iteration %lld", k,
                              (long long)i);
        }
        int64_t place = backward ? count - 1 - i : i;
        nori__move m = {.rank = 2,
                        .dims = {outer, inner},
                        .from_step = {inner, 1},
                        .to_step = {inner * count, 1},
                        .to = place * inner};
        NORI__TRY(nori__move_all(&m, t, out, call->err));
    }
    return NORI_OK;
}

nori_status nori__ref_If(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *cond = call->in[0];
    if (cond->type != NORI_BOOL || cond->count != 1) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "the condition is %lld elements of %s, expected one bool",
                          (long long)cond->count, nori_type_name((nori_type)cond->type));
    }
    const char *name = *(const uint8_t *)cond->data ? "then_branch" : "else_branch";
    const nori__graph *g = nori__attr_graph(call->node, name);
    if (!g || g->input_count != 0 || g->output_count < call->n_out) {
        return nori__fail(call->err, NORI_ERROR_MODEL,
                          "%s is missing, has inputs, or fewer outputs than the node", name);
    }
    nori__body_runs b;
    nori_status status = nori__body_open(&b, call, g, g->output_count);
    if (status == NORI_OK) {
        status = nori__body_run(&b);
    }
    for (uint32_t i = 0; status == NORI_OK && i < call->n_out; i++) {
        status = call->exec->set(call, i, b.out[i]);
    }
    nori__body_close(&b);
    return status;
}
