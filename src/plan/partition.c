/* partition.c: bids, islands and what they win: who gets what; see partition.h. */
#include <stdio.h>

#include "plan/partition.h"

/* ---- bids ---- */

static bool fixed_sizes(const nori__value *v)
{
    bool fixed = !v || (v->type.kind == NORI_KIND_TENSOR && v->type.rank >= 0);
    for (int d = 0; fixed && v && d < v->type.rank; d++) {
        fixed = v->type.dims[d].value >= 0;
    }
    return fixed;
}

static const char *loose_size(const nori__value *v)
{
    for (int d = 0; v && d < v->type.rank; d++) {
        if (v->type.dims[d].value < 0 && v->type.dims[d].name) {
            return v->type.dims[d].name;
        }
    }
    return NULL;
}

/* The reason a node of open sizes is not for a provider that wants them fixed; NULL: fixed. */
static const char *open_sizes(nori__arena *arena, const nori__node *node)
{
    const char *name = NULL;
    bool fixed = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        fixed = fixed && fixed_sizes(node->inputs[i]);
        name = name ? name : loose_size(node->inputs[i]);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        fixed = fixed && fixed_sizes(node->outputs[i]);
        name = name ? name : loose_size(node->outputs[i]);
    }
    if (fixed) {
        return NULL;
    }
    return name ? nori__arena_printf(arena, "its sizes are open: fix %s with --dim", name)
                : "its sizes are known only when it runs";
}

static nori_status bid(nori__board *b, const nori__bidder *p, uint32_t i, nori_error *err)
{
    nori__node *node = b->nodes[i];
    nori_claim claim = {.size = sizeof(claim)};
    nori__bid *out = &b->bids[i];
    *out = (nori__bid){.reason = ""};
    if (b->owner[i] || node->part) {
        out->reason = "another provider has it";
        return NORI_OK;
    }
    NORI__TRY(p->provider->claim(p->self, node, &claim, err));
    claim.reason[sizeof(claim.reason) - 1] = 0;
    const char *open = claim.taken && claim.static_only ? open_sizes(b->arena, node) : NULL;
    out->taken = claim.taken && !open;
    out->cost_ns = claim.cost_ns;
    if (!out->taken) {
        out->reason = open              ? open
                      : claim.reason[0] ? nori__arena_text(b->arena, claim.reason)
                                        : nori__arena_printf(b->arena, "it does not take %s",
                                                             node->op_type);
    }
    return out->reason ? NORI_OK : nori__no_memory(err);
}

/* ---- islands ---- */

typedef struct pricing {
    nori__board *b;
    const nori_provider_info *info;
    nori__island *island;
    uint32_t root, mark;
    bool *escapes; /* by value id: read outside its set, or an output */
} pricing;

static double copy_ns(double fixed, double bytes_per_s, uint64_t bytes)
{
    return fixed + (bytes_per_s > 0 ? (double)bytes / bytes_per_s * 1e9 : 0);
}

static bool price_input(void *user, nori__value *v)
{
    pricing *p = user;
    nori__board *b = p->b;
    bool inside = v->producer && v->producer->graph == b->ir->main &&
                  nori__board_root(b, b->pos[v->producer->id]) == p->root;
    if (inside || nori__value_as_is(v) || b->value_stamp[v->id] == p->mark) {
        return true;
    }
    b->value_stamp[v->id] = p->mark;
    uint64_t bytes = nori__cost_bytes(v);
    p->island->in_bytes += bytes;
    p->island->n_in++;
    p->island->copy_ns +=
        copy_ns(p->info->copy_in_fixed_ns, p->info->copy_in_bytes_per_s, bytes);
    return true;
}

static void price_node(pricing *p, uint32_t i)
{
    nori__board *b = p->b;
    nori__node *node = b->nodes[i];
    p->island->base_ns += nori__cost_ns(node);
    p->island->cost_ns += b->bids[i].cost_ns;
    nori__node_reads(node, price_input, p);
    for (uint32_t k = 0; k < node->output_count; k++) {
        const nori__value *v = node->outputs[k];
        if (v && p->escapes[v->id]) {
            uint64_t bytes = nori__cost_bytes(v);
            p->island->out_bytes += bytes;
            p->island->n_out++;
            p->island->copy_ns +=
                copy_ns(p->info->copy_out_fixed_ns, p->info->copy_out_bytes_per_s, bytes);
        }
    }
}

typedef struct escaping {
    nori__board *b;
    uint32_t reader;
    bool *escapes;
} escaping;

static bool note_escape(void *user, nori__value *v)
{
    escaping *e = user;
    nori__board *b = e->b;
    if (v->producer && v->producer->graph == b->ir->main &&
        nori__board_root(b, b->pos[v->producer->id]) != nori__board_root(b, e->reader)) {
        e->escapes[v->id] = true;
    }
    return true;
}

static bool *find_escapes(nori__board *b)
{
    escaping e = {.b = b};
    e.escapes = nori__arena_array(b->arena, (size_t)b->ir->value_count + 1, sizeof(bool));
    for (uint32_t i = 0; i < b->n && e.escapes; i++) {
        e.reader = i;
        nori__node_reads(b->nodes[i], note_escape, &e);
    }
    for (uint32_t i = 0; i < b->ir->main->output_count && e.escapes; i++) {
        e.escapes[b->ir->main->outputs[i]->id] = true;
    }
    return e.escapes;
}

static const char *why_not(nori__arena *arena, const nori__island *s, const char *label)
{
    return nori__arena_printf(arena,
                              "it would lose: %.1f us here against %.1f us on %s, copies of %.1f us "
                              "and %.1f us to start included",
                              s->base_ns / 1e3,
                              (s->cost_ns + s->copy_ns + s->launch_ns) / 1e3, label,
                              s->copy_ns / 1e3, s->launch_ns / 1e3);
}

/* The islands of a bidder, priced; island_of by position of the root. */
static nori_status make_islands(nori__board *b, const nori__bidder *p, uint32_t index,
                                nori__island **island_of, nori__split *split, nori_error *err)
{
    pricing price = {.b = b, .info = p->info, .escapes = find_escapes(b)};
    if (!price.escapes) {
        return nori__no_memory(err);
    }
    for (uint32_t i = 0; i < b->n; i++) {
        if (!b->candidate[i]) {
            continue;
        }
        uint32_t root = nori__board_root(b, i);
        nori__island *s = island_of[root];
        if (!s) {
            s = island_of[root] = nori__arena_alloc(b->arena, sizeof(*s));
            if (!s || !nori__vec_push(&split->islands, s)) {
                return nori__no_memory(err);
            }
            s->nodes = nori__arena_array(b->arena, b->size[root], sizeof(*s->nodes));
            if (!s->nodes) {
                return nori__no_memory(err);
            }
            s->bidder = index;
            s->index = (uint32_t)split->islands.count - 1;
            s->launch_ns = p->info->launch_ns;
        }
        s->nodes[s->n_nodes++] = b->nodes[i];
    }
    memset(b->value_stamp, 0, (size_t)b->ir->value_count * sizeof(*b->value_stamp));
    for (uint32_t root = 0; root < b->n; root++) {
        nori__island *s = island_of[root];
        price.island = s;
        price.root = root;
        price.mark++;
        for (uint32_t k = 0; s && k < s->n_nodes; k++) {
            price_node(&price, b->pos[s->nodes[k]->id]);
        }
        if (s) {
            s->given = s->base_ns > s->cost_ns + s->copy_ns + s->launch_ns;
            s->why = s->given ? "" : why_not(b->arena, s, p->label);
            if (!s->why) {
                return nori__no_memory(err);
            }
        }
    }
    return NORI_OK;
}

/* Sets go back to single nodes, but for the islands that were given away. */
static void commit(nori__board *b, uint32_t index, nori__island *const *island_of)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->candidate[i]) {
            nori__island *s = island_of[nori__board_root(b, i)];
            b->owner[i] = s->given ? (uint8_t)(index + 1) : 0;
        }
    }
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->candidate[i] && !b->owner[i]) {
            b->root[i] = b->ring[i] = i; /* whole sets fall apart: no root is left behind */
            b->size[i] = 1;
        }
        b->candidate[i] = false;
    }
}

static nori_status split_for(nori__board *b, const nori__bidder *p, uint32_t index,
                             nori__split *split, nori_error *err)
{
    bool any = false;
    for (uint32_t i = 0; i < b->n; i++) {
        nori_status status = bid(b, p, i, err);
        if (status != NORI_OK) {
            char path[256];
            nori__node_path(b->nodes[i], path, sizeof(path));
            nori__where(err, "%s", path);
            return status;
        }
        b->candidate[i] = b->bids[i].taken;
        any = any || b->candidate[i];
    }
    if (!any) {
        return NORI_OK;
    }
    nori__island **island_of = nori__arena_array(b->arena, (size_t)b->n + 1, sizeof(*island_of));
    if (!island_of) {
        return nori__no_memory(err);
    }
    nori__board_group(b);
    NORI__TRY(make_islands(b, p, index, island_of, split, err));
    NORI__TRY(nori__find_splitters(b, p, index, island_of, split, err));
    commit(b, index, island_of);
    return NORI_OK;
}

nori_status nori__partition(nori__arena *arena, nori__ir *ir, const nori__bidder *bidders,
                            size_t count, nori__split *split, nori_error *err)
{
    nori__board b;
    bool parts = false;
    for (size_t i = 0; i < count && i < UINT8_MAX; i++) {
        parts = parts || bidders[i].provider->claim;
    }
    if (!parts) {
        return NORI_OK;
    }
    NORI__TRY(nori__board_make(arena, ir, &b, err));
    for (uint32_t p = 0; p < count && p < UINT8_MAX; p++) {
        const nori_provider *provider = bidders[p].provider;
        for (uint32_t i = 0; i < b.n && provider->kernel; i++) {
            if (!b.owner[i] && provider->kernel(bidders[p].self, b.nodes[i])) {
                b.owner[i] = (uint8_t)(p + 1); /* node by node: no islands */
            }
        }
        if (provider->claim) {
            NORI__TRY(split_for(&b, &bidders[p], p, split, err));
        }
    }
    return NORI_OK;
}

void nori__split_free(nori__split *split)
{
    nori__vec_free(&split->islands);
    nori__vec_free(&split->splitters);
}
