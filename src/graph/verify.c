/* verify.c: the invariants that every edit must keep. Slow and thorough: for tests and debug. */
#include "graph/internal.h"

typedef struct verifier {
    const nori__ir *ir;
    nori_error *err;
    uint32_t *uses;  /* by value id, counted anew */
    uint32_t *place; /* by node id: its place in its graph, from 1 */
} verifier;

static nori_status broken(verifier *w, const nori__node *node, const char *what)
{
    nori_status s = nori__fail(w->err, NORI_ERROR_INTERNAL, "the graph is broken: %s", what);
    char path[256];
    if (node) {
        nori__node_path(node, path, sizeof(path));
        nori__where(w->err, "%s", path);
    }
    return s;
}

/* Whether v may be read at node (or as an output of g, node NULL). */
static const char *readable(verifier *w, const nori__graph *g, nori__node *node,
                            const nori__value *v)
{
    const nori__graph *at = g;
    while (at && at != v->graph) {
        at = at->parent;
    }
    if (!at) {
        return "a value of a graph that is not around is read";
    }
    if (!v->producer) {
        bool from_outside = v->constant || (v->flags & NORI__VALUE_INPUT);
        return from_outside ? NULL : "a value is read that nothing makes";
    }
    nori__node *reader = node ? node : g->parent_node;
    reader = at == g && !node ? NULL : nori__node_in(reader, at);
    bool later = reader && w->place[v->producer->id] >= w->place[reader->id];
    return later ? "a value is read before it is made" : NULL;
}

static nori_status verify_links(verifier *w, const nori__graph *g)
{
    uint32_t count = 0;
    for (const nori__node *n = g->first; n; n = n->next) {
        w->place[n->id] = ++count;
        if (n->graph != g || (n->next ? n->next->prev != n : g->last != n)) {
            return broken(w, n, "its links");
        }
    }
    if (count != g->node_count || g->dead) {
        return broken(w, NULL, "the number of nodes of a graph");
    }
    return NORI_OK;
}

static nori_status verify_nodes(verifier *w, const nori__graph *g)
{
    for (nori__node *n = g->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            const char *what = n->inputs[i] ? readable(w, g, n, n->inputs[i]) : NULL;
            if (what) {
                return broken(w, n, what);
            }
            if (n->inputs[i]) {
                w->uses[n->inputs[i]->id]++;
            }
        }
        for (uint32_t i = 0; i < n->output_count; i++) {
            const nori__value *v = n->outputs[i];
            if (v && (v->producer != n || v->graph != g)) {
                return broken(w, n, "an output has another producer or graph");
            }
        }
        uint32_t state = 0;
        for (nori__graph *inner; (inner = nori__node_subgraph(n, &state)) != NULL;) {
            if (inner->parent != g || inner->parent_node != n || inner->dead) {
                return broken(w, n, "a subgraph's parent");
            }
        }
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        const char *what = readable(w, g, NULL, g->outputs[i]);
        if (what) {
            return broken(w, g->parent_node, what);
        }
        if (g->outputs[i]->graph == g && !(g->outputs[i]->flags & NORI__VALUE_OUTPUT)) {
            return broken(w, g->parent_node, "an output without its flag");
        }
        w->uses[g->outputs[i]->id]++;
    }
    return NORI_OK;
}

static nori_status verify_values(verifier *w, const nori__graph *g)
{
    for (const nori__value *v = g->values; v; v = v->next) {
        if (v->uses != w->uses[v->id]) {
            return broken(w, v->producer, "the number of uses of a value");
        }
        if (v->graph != g || nori__map_get(nori__graph_names(g), v->name) != v) {
            return broken(w, v->producer, "a value's name");
        }
    }
    return NORI_OK;
}

static nori_status verify_all(verifier *w)
{
    for (const nori__graph *g = w->ir->graphs; g; g = g->next_graph) {
        NORI__TRY(verify_links(w, g));
    }
    for (const nori__graph *g = w->ir->graphs; g; g = g->next_graph) {
        NORI__TRY(verify_nodes(w, g));
    }
    for (const nori__graph *g = w->ir->graphs; g; g = g->next_graph) {
        NORI__TRY(verify_values(w, g));
    }
    return NORI_OK;
}

nori_status nori__ir_verify(const nori__ir *ir, nori_error *err)
{
    nori__arena scratch;
    nori__arena_init(&scratch, ir->allocator);
    verifier w = {.ir = ir, .err = err};
    w.uses = nori__arena_array(&scratch, ir->value_count, sizeof(*w.uses));
    w.place = nori__arena_array(&scratch, ir->node_count, sizeof(*w.place));
    nori_status s = w.uses && w.place ? verify_all(&w) : nori__no_memory(err);
    nori__arena_free(&scratch);
    return s;
}
