/* order.c: topological order, by counting what each node still waits for. Nodes keep the file's
 * order where it is already one. What a subgraph reads counts as read by its node. */
#include "graph/internal.h"

typedef struct edge {
    uint32_t to;   /* node index */
    uint32_t next; /* edge index + 1 */
} edge;

typedef struct sorter {
    nori__graph *g;
    nori__node **nodes;
    uint32_t *waits; /* per node */
    uint32_t *first; /* per node: edge index + 1 */
    edge *edges;
    uint32_t n_edges;
    uint32_t *ready; /* stack */
} sorter;

/* Node inputs of a graph, and the outputs of a subgraph: what may become an edge. */
static uint64_t count_reads(const nori__graph *inner, const nori__graph *g)
{
    uint64_t n = inner == g ? 0 : inner->output_count;
    for (const nori__node *node = inner->first; node; node = node->next) {
        n += node->input_count;
    }
    return n;
}

static void add_edge(sorter *s, const nori__value *v, uint32_t reader)
{
    if (!v || v->graph != s->g || !v->producer || v->producer->graph != s->g) {
        return;
    }
    uint32_t from = v->producer->id;
    s->edges[s->n_edges] = (edge){reader, s->first[from]};
    s->first[from] = ++s->n_edges;
    s->waits[reader]++;
}

/* Whether inner lies in g, and in which of its nodes. */
static bool lies_in(const nori__graph *inner, const nori__graph *g, const nori__node **through)
{
    for (const nori__graph *at = inner; at; at = at->parent) {
        if (at->parent == g) {
            *through = at->parent_node;
            return true;
        }
    }
    return false;
}

static nori_status cycle_error(sorter *s, uint32_t n, nori_error *err)
{
    char text[512];
    size_t used = 0, shown = 0, stuck = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (s->waits[i] == 0) {
            continue;
        }
        stuck++;
        char path[128];
        nori__node_path(s->nodes[i], path, sizeof(path));
        if (shown < 5 && used + strlen(path) + 3 < sizeof(text)) {
            memcpy(text + used, shown ? ", " : "", shown ? 2 : 0);
            used += shown ? 2 : 0;
            memcpy(text + used, path, strlen(path));
            used += strlen(path);
            shown++;
        }
    }
    text[used] = 0;
    return nori__fail(err, NORI_ERROR_MODEL,
                      "%zu nodes wait for each other's results (a cycle): %s%s", stuck, text,
                      stuck > shown ? ", ..." : "");
}

static nori_status sort(sorter *s, uint32_t n, nori_error *err)
{
    nori__graph *g = s->g;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < s->nodes[i]->input_count; k++) {
            add_edge(s, s->nodes[i]->inputs[k], i);
        }
    }
    for (const nori__graph *sub = g->ir->graphs; sub; sub = sub->next_graph) {
        const nori__node *through = NULL;
        if (sub == g || !lies_in(sub, g, &through)) {
            continue;
        }
        for (const nori__node *node = sub->first; node; node = node->next) {
            for (uint32_t k = 0; k < node->input_count; k++) {
                add_edge(s, node->inputs[k], through->id);
            }
        }
        for (uint32_t k = 0; k < sub->output_count; k++) {
            add_edge(s, sub->outputs[k], through->id);
        }
    }
    /* The scan takes every ready node in file order; a node freed behind the scan is taken at
     * once, through a stack. */
    uint32_t *ready = s->ready;
    uint32_t placed = 0;
    g->first = g->last = NULL;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t depth = 0;
        if (s->waits[i] == 0 && s->first[i] != UINT32_MAX) {
            ready[depth++] = i;
        }
        while (depth > 0) {
            uint32_t at = ready[--depth];
            nori__node *node = s->nodes[at];
            node->prev = g->last;
            node->next = NULL;
            *(g->last ? &g->last->next : &g->first) = node;
            g->last = node;
            placed++;
            uint32_t e = s->first[at];
            s->first[at] = UINT32_MAX; /* placed */
            while (e) {
                uint32_t to = s->edges[e - 1].to;
                if (--s->waits[to] == 0 && to < i) {
                    ready[depth++] = to;
                }
                e = s->edges[e - 1].next;
            }
        }
    }
    return placed == n ? NORI_OK : cycle_error(s, n, err);
}

nori_status nori__graph_order(nori__graph *g, nori_error *err)
{
    uint32_t n = g->node_count;
    uint64_t reads = count_reads(g, g);
    const nori__node *through;
    for (const nori__graph *sub = g->ir->graphs; sub; sub = sub->next_graph) {
        if (sub != g && lies_in(sub, g, &through)) {
            reads += count_reads(sub, g);
        }
    }
    nori__arena scratch;
    nori__arena_init(&scratch, g->ir->allocator);
    uint32_t *old_ids = nori__arena_array(&scratch, (size_t)n + 1, sizeof(*old_ids));
    sorter s = {.g = g};
    s.nodes = nori__arena_array(&scratch, (size_t)n + 1, sizeof(*s.nodes));
    s.waits = nori__arena_array(&scratch, (size_t)n + 1, sizeof(*s.waits));
    s.first = nori__arena_array(&scratch, (size_t)n + 1, sizeof(*s.first));
    s.ready = nori__arena_array(&scratch, (size_t)n + 1, sizeof(*s.ready));
    s.edges = nori__arena_array(&scratch, (size_t)reads + 1, sizeof(*s.edges));
    nori_status status;
    if (!old_ids || !s.nodes || !s.waits || !s.first || !s.ready || !s.edges) {
        status = nori__no_memory(err);
    } else {
        uint32_t i = 0;
        for (nori__node *node = g->first; node; node = node->next) {
            s.nodes[i] = node;
            old_ids[i] = node->id;
            node->id = i++; /* while sorting, a node's id is its place in the file */
        }
        status = sort(&s, n, err);
        for (i = 0; i < n; i++) {
            s.nodes[i]->id = old_ids[i];
        }
    }
    nori__arena_free(&scratch);
    return status;
}
