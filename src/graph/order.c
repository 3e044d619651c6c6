/* order.c: brings nodes into an order in which every value is made before it is used. ONNX asks
 * files to be so; not all are. What a subgraph reads from outside counts as read by the node that
 * holds it. A file in order costs one look at each edge and is left as it is. */
#include <stdio.h>

#include "graph/internal.h"

typedef struct order {
    uint32_t low, count;  /* node ids [low, low + count) */
    nori__node **nodes;   /* by id - low */
    uint32_t *begin;      /* count + 1: edges of a node in to[] */
    uint32_t *to;         /* what it needs, as id - low */
    uint32_t *cursor;
    uint32_t *stack;
    uint8_t *state;       /* 0 not seen, 1 on the stack, 2 done */
} order;

typedef void (*edge_fn)(order *o, nori__node *needs, nori__node *maker);

/* Calls fn for each value that node or the graph's outputs read and that a node makes. */
static void edge(order *o, nori__node *at, const nori__value *v, edge_fn fn, bool *sorted)
{
    if (v && v->producer) {
        nori__node *needs = nori__node_in(at, v->producer->graph);
        if (needs) {
            *sorted = *sorted && v->producer->id < needs->id;
            if (fn) {
                fn(o, needs, v->producer);
            }
        }
    }
}

static bool each_edge(order *o, nori__graph *first, edge_fn fn)
{
    bool sorted = true;
    for (nori__graph *g = first; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            for (uint32_t i = 0; i < n->input_count; i++) {
                edge(o, n, n->inputs[i], fn, &sorted);
            }
        }
        for (uint32_t i = 0; g->parent_node && i < g->output_count; i++) {
            if (g->outputs[i]->graph != g) {
                edge(o, g->parent_node, g->outputs[i], fn, &sorted);
            }
        }
    }
    return sorted;
}

static void count_edge(order *o, nori__node *needs, nori__node *maker)
{
    (void)maker;
    o->begin[needs->id - o->low + 1]++;
}

static void store_edge(order *o, nori__node *needs, nori__node *maker)
{
    o->to[o->cursor[needs->id - o->low]++] = maker->id - o->low;
}

static nori_status fail_cycle(const order *o, uint32_t depth, uint32_t again, nori_error *err)
{
    char text[1024];
    size_t used = 0;
    uint32_t from = depth - 1;
    while (o->stack[from] != again) {
        from--;
    }
    /* The stack goes from user to maker; a reader follows the data the other way round. */
    uint32_t shown = 0;
    text[0] = 0;
    for (uint32_t i = depth; i-- > from && shown < 8 && used < sizeof(text); shown++) {
        char path[120];
        nori__node_path(o->nodes[o->stack[i]], path, sizeof(path));
        int n = snprintf(text + used, sizeof(text) - used, "%s%s", shown ? " -> " : "", path);
        used += n > 0 ? (size_t)n : 0;
    }
    return nori__fail(err, NORI_ERROR_MODEL,
                      "the graph has a cycle: %s%s -> back to the first of %u nodes", text,
                      depth - from > shown ? " -> ..." : "", depth - from);
}

/* Depth first from node start; each finished node goes to the end of its graph's new list. */
static nori_status visit(order *o, uint32_t start, nori_error *err)
{
    uint32_t depth = 0;
    o->stack[depth++] = start;
    o->state[start] = 1;
    while (depth > 0) {
        uint32_t id = o->stack[depth - 1];
        if (o->cursor[id] < o->begin[id + 1]) {
            uint32_t maker = o->to[o->cursor[id]++];
            if (o->state[maker] == 1) {
                return fail_cycle(o, depth, maker, err);
            }
            if (o->state[maker] == 0) {
                o->state[maker] = 1;
                o->stack[depth++] = maker;
            }
        } else {
            o->state[id] = 2;
            nori__node_link(o->nodes[id]->graph, NULL, o->nodes[id]);
            depth--;
        }
    }
    return NORI_OK;
}

static nori_status sort_all(order *o, nori__graph *first, nori_error *err)
{
    for (uint32_t i = 0; i < o->count; i++) {
        o->begin[i + 1] += o->begin[i];
        o->cursor[i] = o->begin[i];
    }
    each_edge(o, first, store_edge);
    memcpy(o->cursor, o->begin, o->count * sizeof(*o->cursor));
    /* The file's order is kept in nodes[]; cycles are looked for before lists are taken apart. */
    for (nori__graph *g = first; g; g = g->next_graph) {
        g->first = g->last = NULL;
        g->node_count = 0;
    }
    for (uint32_t i = 0; i < o->count; i++) {
        if (o->nodes[i] && o->state[i] == 0) {
            NORI__TRY(visit(o, i, err));
        }
    }
    return NORI_OK;
}

nori_status nori__graphs_order(nori__graph *first, const nori_allocator *a, uint32_t low,
                               uint32_t high, nori_error *err)
{
    if (each_edge(NULL, first, NULL)) {
        return NORI_OK;
    }
    order o = {.low = low, .count = high - low};
    nori__arena arena;
    nori__arena_init(&arena, a);
    o.nodes = nori__arena_array(&arena, o.count, sizeof(*o.nodes));
    o.begin = nori__arena_array(&arena, (size_t)o.count + 1, sizeof(*o.begin));
    o.cursor = nori__arena_array(&arena, o.count, sizeof(*o.cursor));
    o.stack = nori__arena_array(&arena, o.count, sizeof(*o.stack));
    o.state = nori__arena_array(&arena, o.count, sizeof(*o.state));
    nori_status status = NORI_OK;
    if (!o.nodes || !o.begin || !o.cursor || !o.stack || !o.state) {
        status = nori__no_memory(err);
    }
    if (status == NORI_OK) {
        uint64_t edges = 0;
        for (nori__graph *g = first; g; g = g->next_graph) {
            for (nori__node *n = g->first; n; n = n->next) {
                o.nodes[n->id - low] = n;
                edges += n->input_count;
            }
            edges += g->output_count;
        }
        each_edge(&o, first, count_edge);
        o.to = edges < UINT32_MAX ? nori__arena_array(&arena, (size_t)edges, sizeof(*o.to)) : NULL;
        status = o.to ? sort_all(&o, first, err) : nori__no_memory(err);
    }
    nori__arena_free(&arena);
    return status;
}

nori_status nori__ir_order(nori__ir *ir, nori_error *err)
{
    return nori__graphs_order(ir->main, ir->allocator, 0, ir->node_count, err);
}

static bool reads_of(const nori__node *node, const nori__node *maker)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] && node->inputs[i]->producer == maker) {
            return true;
        }
    }
    return false;
}

void nori__node_advance(nori__node *node)
{
    nori__graph *g = node->graph;
    nori__node *before = node;
    while (before->prev && !reads_of(node, before->prev)) {
        before = before->prev;
    }
    if (before == node) {
        return;
    }
    *(node->prev ? &node->prev->next : &g->first) = node->next;
    *(node->next ? &node->next->prev : &g->last) = node->prev;
    g->node_count--;
    nori__node_link(g, before, node);
}
