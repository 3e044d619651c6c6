/* part_infer.c: what comes out of a part, told by inference through its nodes, for whole graphs
 * (sizes may be names) and for one layout (all sizes known) alike. */
#include "plan/part.h"

static void unknown(nori__shape *s)
{
    memset(s, 0, offsetof(nori__shape, dims));
    s->rank = -1;
    s->of = NULL;
    s->tensor = NULL;
    s->data_count = -1;
}

static uint32_t widest(const nori_part *p)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        uint32_t count = p->nodes[i]->input_count + p->nodes[i]->output_count;
        most = count > most ? count : most;
    }
    return most;
}

static nori_status infer_node(const nori_part *p, uint32_t at, nori__shape *shapes,
                              nori__shape *room, nori__arena *arena, nori_error *err)
{
    const nori__node *node = p->nodes[at];
    const uint32_t *numbers = p->node_values[at];
    nori__shape *out = room + node->input_count;
    if (!node->op) {
        return NORI_OK; /* a custom operator: the part's provider says what comes out */
    }
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
        if (i < node->input_count && numbers[i] != UINT32_MAX) {
            room[i] = shapes[numbers[i]];
        } else {
            unknown(&room[i]);
        }
    }
    nori__infer c = {.node = node, .in = room, .out = out, .arena = arena, .err = err};
    nori_status status = node->op->infer(&c);
    if (status != NORI_OK) {
        char path[256];
        nori__node_path(node, path, sizeof(path));
        nori__where(err, "%s", path);
        return status;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (numbers[node->input_count + i] != UINT32_MAX) {
            shapes[numbers[node->input_count + i]] = out[i];
        }
    }
    return NORI_OK;
}

nori_status nori__part_shapes(const nori_part *p, const nori__shape *in, nori__arena *arena,
                              nori__shape **out, size_t *bytes, nori_error *err)
{
    size_t count, room = widest(p);
    nori__shape *shapes = NULL;
    *bytes = 0;
    if (nori__add_size(p->n_values, room + 1, &count) &&
        nori__mul_size(count, sizeof(*shapes), bytes)) {
        shapes = nori__alloc(p->a, *bytes);
    }
    if (!shapes) {
        return nori__no_memory(err);
    }
    for (uint32_t i = 0; i < p->n_values; i++) {
        const nori_tensor *t = nori__value_as_is(p->values[i]);
        unknown(&shapes[i]);
        if (t) {
            nori__shape_of_tensor(&shapes[i], t, true);
        }
    }
    for (uint32_t i = 0, k = 0; i < p->n_in && k < p->n_values; k++) {
        if (p->values[k] == p->in[i]) { /* both in order of first sight */
            shapes[k] = in[i++];
        }
    }
    nori_status status = NORI_OK;
    for (uint32_t i = 0; i < p->n_nodes && status == NORI_OK; i++) {
        status = infer_node(p, i, shapes, shapes + p->n_values, arena, err);
    }
    if (status != NORI_OK) {
        nori__release(p->a, shapes, *bytes);
        return status;
    }
    *out = shapes;
    return NORI_OK;
}

nori_status nori__part_infer(nori__infer *c)
{
    const nori_part *p = c->node->part;
    nori__shape *shapes = NULL;
    size_t bytes;
    NORI__TRY(nori__part_shapes(p, c->in, c->arena, &shapes, &bytes, c->err));
    for (uint32_t i = 0; i < p->n_out; i++) {
        c->out[i] = shapes[p->out_values[i]];
    }
    nori__release(p->a, shapes, bytes);
    return NORI_OK;
}
