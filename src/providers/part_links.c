/* part_links.c: the tables of part_links.h, and what is looked up in them. */
#include "providers/part_links.h"

static void fill(nori__links *l, uint32_t *reads)
{
    const nori_part *part = l->part;
    for (uint32_t i = 0; i < part->n_values; i++) {
        l->maker[i] = l->reader[i] = l->input[i] = NORI__NOBODY;
    }
    for (uint32_t i = 0, k = 0; i < part->n_in && k < part->n_values; k++) {
        if (part->values[k] == part->in[i]) { /* both in order of first sight */
            l->input[k] = i++;
        }
    }
    for (uint32_t i = 0; i < part->n_out; i++) {
        l->is_out[part->out_values[i]] = true;
    }
    for (uint32_t at = 0; at < part->n_nodes; at++) {
        const nori__node *node = part->nodes[at];
        const uint32_t *v = part->node_values[at];
        for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
            if (v[i] == UINT32_MAX) {
                continue;
            }
            if (i >= node->input_count) {
                l->maker[v[i]] = at;
            } else {
                l->reader[v[i]] = reads[v[i]]++ == 0 ? at : NORI__NOBODY;
            }
        }
    }
}

bool nori__links_make(nori__arena *arena, const nori_part *part, nori__links *l)
{
    size_t n = (size_t)part->n_values + 1;
    uint32_t *reads = nori__arena_array(arena, n, sizeof(*reads));
    *l = (nori__links){.part = part};
    l->maker = nori__arena_array(arena, n, sizeof(*l->maker));
    l->reader = nori__arena_array(arena, n, sizeof(*l->reader));
    l->input = nori__arena_array(arena, n, sizeof(*l->input));
    l->is_out = nori__arena_array(arena, n, sizeof(*l->is_out));
    l->done = nori__arena_array(arena, (size_t)part->n_nodes + 1, sizeof(*l->done));
    if (!reads || !l->maker || !l->reader || !l->input || !l->is_out || !l->done) {
        return false;
    }
    fill(l, reads);
    return true;
}

uint32_t nori__links_follower(const nori__links *l, uint32_t value)
{
    uint32_t at = l->is_out[value] ? NORI__NOBODY : l->reader[value];
    return at != NORI__NOBODY && l->part->node_values[at][0] == value ? at : NORI__NOBODY;
}

const nori__node *nori__links_dequantizer(const nori__links *l, uint32_t value, uint32_t *bytes)
{
    uint32_t at = value != UINT32_MAX ? l->maker[value] : NORI__NOBODY;
    const nori__node *n = at == NORI__NOBODY ? NULL : l->part->nodes[at];
    if (!n || !nori__node_is(n, NORI__OP_ONNX_DequantizeLinear)) {
        return NULL;
    }
    *bytes = l->part->node_values[at][0];
    return n;
}

static uint32_t made_by(const nori_part *part, uint32_t at)
{
    return part->node_values[at][part->nodes[at]->input_count];
}

bool nori__links_way_out(const nori__links *l, uint32_t value,
                         bool (*activation)(void *user, const nori__node *n), void *user,
                         nori__way_out *way)
{
    uint32_t at = nori__links_follower(l, value);
    way->activation = NORI__NOBODY;
    if (at != NORI__NOBODY && activation(user, l->part->nodes[at])) {
        way->activation = at;
        at = nori__links_follower(l, made_by(l->part, at));
    }
    if (at == NORI__NOBODY || !nori__node_is(l->part->nodes[at], NORI__OP_ONNX_QuantizeLinear)) {
        return false;
    }
    way->quantizer = at;
    way->bytes = made_by(l->part, at);
    return true;
}

void nori__links_take(nori__links *l, const nori__way_out *way)
{
    l->done[way->quantizer] = true;
    if (way->activation != NORI__NOBODY) {
        l->done[way->activation] = true;
    }
}
