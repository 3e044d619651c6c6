/* session_nodes.c: who runs what in a session: its providers, parts and nodes. */
#include "run/run.h"
#include "base/given.h"

#define NO_PART SIZE_MAX

/* Who would run a node that no part has, before anything is planned. */
static const char *kernel_provider(const nori_session *s, const nori__node *node)
{
    for (size_t i = 0; i < s->n_providers; i++) {
        const nori__opened *o = &s->providers[i];
        if (o->provider->kernel && o->provider->kernel(o->self, node)) {
            return o->label;
        }
    }
    return "reference";
}

static void add(nori_session *s, const nori__node *node, const char *provider, size_t part)
{
    s->nodes[s->n_nodes++] = (nori_node_info){.node = node, .provider = provider, .part = part};
}

nori_status nori__note_nodes(nori_session *s, nori_error *err)
{
    size_t count = s->plan ? s->n_step_ids : s->ir->main->node_count;
    for (size_t i = 0; i < s->split.islands.count; i++) {
        count += ((const nori__island *)s->split.islands.items[i])->n_nodes;
    }
    s->nodes = nori__arena_array(&s->arena, count + 1, sizeof(*s->nodes));
    bool *taken = nori__arena_array(&s->arena, (size_t)s->ir->node_count + 1, sizeof(*taken));
    if (!s->nodes || !taken) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < s->split.islands.count; i++) {
        const nori__island *island = s->split.islands.items[i];
        for (uint32_t k = 0; island->given && k < island->n_nodes; k++) {
            add(s, island->nodes[k], s->providers[island->bidder].label, i);
            taken[island->nodes[k]->id] = true;
        }
    }
    for (uint32_t i = 0; s->plan && i < s->n_step_ids; i++) {
        if (!s->steps[i]->node->part) {
            add(s, s->steps[i]->node, s->steps[i]->provider, NO_PART);
        }
    }
    for (const nori__node *n = s->plan ? NULL : s->ir->main->first; n; n = n->next) {
        if (!taken[n->id]) {
            add(s, n, kernel_provider(s, n), NO_PART);
        }
    }
    return NORI_OK;
}

/* ---- accessors ---- */

int nori_session_provider(const nori_session *s, size_t index, const char **label,
                          const char **engine)
{
    NORI__ASKED(s, 0);
    NORI__ASKED(label, 0);
    NORI__ASKED(engine, 0);
    if (index >= s->n_providers) {
        return 0;
    }
    *label = s->providers[index].label;
    *engine = s->providers[index].info.engine;
    return 1;
}

int nori_session_part(const nori_session *s, size_t index, nori_part_info *info)
{
    NORI__ASKED(s, 0);
    if (index >= s->split.islands.count) {
        return 0;
    }
    const nori__island *island = s->split.islands.items[index];
    nori_part_info i = {.size = info->size,
                        .provider = s->providers[island->bidder].label,
                        .node_count = island->n_nodes,
                        .first = island->n_nodes ? island->nodes[0] : NULL,
                        .whole = island->whole,
                        .given = island->given,
                        .why = island->why,
                        .base_ns = island->base_ns,
                        .cost_ns = island->cost_ns,
                        .copy_ns = island->copy_ns,
                        .launch_ns = island->launch_ns,
                        .in_count = island->n_in,
                        .out_count = island->n_out,
                        .in_bytes = island->in_bytes,
                        .out_bytes = island->out_bytes};
    memcpy(info, &i, i.size < sizeof(i) ? i.size : sizeof(i));
    return 1;
}

int nori_session_splitter(const nori_session *s, size_t index, nori_splitter_info *info)
{
    NORI__ASKED(s, 0);
    if (index >= s->split.splitters.count) {
        return 0;
    }
    const nori__splitter *found = s->split.splitters.items[index];
    nori_splitter_info i = {.size = info->size,
                            .node = found->node,
                            .provider = s->providers[found->bidder].label,
                            .before = found->before->index,
                            .after = found->after->index,
                            .reason = found->reason,
                            .advice = found->advice};
    memcpy(info, &i, i.size < sizeof(i) ? i.size : sizeof(i));
    return 1;
}

int nori_session_node(const nori_session *s, size_t index, nori_node_info *info)
{
    NORI__ASKED(s, 0);
    NORI__ASKED(info, 0);
    if (index >= s->n_nodes) {
        return 0;
    }
    nori_node_info i = s->nodes[index];
    i.size = info->size;
    memcpy(info, &i, i.size < sizeof(i) ? i.size : sizeof(i));
    return 1;
}
