/* partition_report.c: which nodes keep a provider's islands apart, and what would join them. */
#include <stdio.h>

#include "plan/partition.h"

/* The latest island in front of each set, or the earliest behind it; NULL: none. */
typedef struct sight {
    nori__island **before, **after; /* by position of the root */
} sight;

static uint32_t wave_of(nori__board *b, const nori__island *s)
{
    return s ? b->high[nori__board_root(b, b->pos[s->nodes[0]->id])] : 0;
}

/* Nodes come in order of execution; sets need not, so the walk is over nodes: what reaches any
 * node of a set reaches the set when its first or its last node is looked at. Islands are what is
 * looked for, and other sets of several nodes belong to earlier providers: for them an
 * approximation within the set is good enough for a report. */
static void look_ahead(nori__board *b, nori__island *const *island_of, sight *s)
{
    for (uint32_t i = 0; i < b->n; i++) {
        nori__island *own = island_of[nori__board_root(b, i)];
        nori__island *give = own ? own : s->before[i];
        for (uint32_t k = b->begin[i]; give && k < b->begin[i + 1]; k++) {
            nori__island **to = &s->before[b->next[k]];
            if (!*to || wave_of(b, give) > wave_of(b, *to)) {
                *to = give;
            }
        }
    }
    for (uint32_t i = b->n; i-- > 0;) {
        for (uint32_t k = b->begin[i]; k < b->begin[i + 1]; k++) {
            uint32_t reader = b->next[k];
            nori__island *own = island_of[nori__board_root(b, reader)];
            nori__island *give = own ? own : s->after[reader];
            if (give && (!s->after[i] || wave_of(b, give) < wave_of(b, s->after[i]))) {
                s->after[i] = give;
            }
        }
    }
}

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (nori__same(name, list[i])) {
            return true;
        }
    }
    return false;
}

/* The node that alone reads what this one makes, or NULL. */
static const nori__node *only_reader(const nori__board *b, uint32_t i)
{
    return b->begin[i + 1] - b->begin[i] == 1 ? b->nodes[b->next[b->begin[i]]] : NULL;
}

static const char *advise(nori__board *b, const nori__bidder *p, uint32_t i)
{
    static const char *const padded[] = {"Conv", "MaxPool", "AveragePool", "QLinearConv"};
    static const char *const idle[] = {"Identity", "Dropout"};
    const nori__node *node = b->nodes[i], *reader = only_reader(b, i);
    char path[192];
    if (nori__same(node->op_type, "Pad") && reader &&
        is_one_of(reader->op_type, padded, NORI__COUNT(padded))) {
        nori__node_path(reader, path, sizeof(path));
        return nori__arena_printf(b->arena, "moving its amounts into the pads of %s", path);
    }
    if (is_one_of(node->op_type, idle, NORI__COUNT(idle))) {
        return "removing it: it changes nothing when the model runs";
    }
    if (strstr(b->bids[i].reason, "--dim")) {
        return "fixing that size";
    }
    return nori__arena_printf(b->arena, "%s taken by %s, or a rewrite that does without it",
                              node->op_type, p->label);
}

nori_status nori__find_splitters(nori__board *b, const nori__bidder *p, uint32_t index,
                                 nori__island *const *island_of, nori__split *split,
                                 nori_error *err)
{
    sight s = {nori__arena_array(b->arena, (size_t)b->n + 1, sizeof(*s.before)),
               nori__arena_array(b->arena, (size_t)b->n + 1, sizeof(*s.after))};
    if (!s.before || !s.after) {
        return nori__no_memory(err);
    }
    look_ahead(b, island_of, &s);
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->candidate[i] || !s.before[i] || !s.after[i] || s.before[i] == s.after[i]) {
            continue;
        }
        nori__splitter *found = nori__arena_alloc(b->arena, sizeof(*found));
        if (!found || !nori__vec_push(&split->splitters, found)) {
            return nori__no_memory(err);
        }
        *found = (nori__splitter){.node = b->nodes[i], .bidder = index, .before = s.before[i],
                                  .after = s.after[i], .reason = b->bids[i].reason,
                                  .advice = advise(b, p, i)};
        if (!found->advice) {
            return nori__no_memory(err);
        }
    }
    return NORI_OK;
}
