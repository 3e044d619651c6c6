/* flow.c: maximum flow by Dinic's algorithm: levels by breadth, then flow along them until none is
 * left (E. A. Dinic, 1970). Without recursion: the path is a list. */
#include "tools/divide/divides.h"

typedef struct edge {
    size_t to, next; /* next: of the edges that leave the same node; SIZE_MAX ends */
    int64_t left;    /* what it can still take; its twin is at index ^ 1 */
} edge;

struct nori__flow {
    size_t nodes, edges, capacity;
    size_t *first, *at, *level, *queue, *path;
    bool *near;
    edge *edge;
    nori__arena arena;
};

nori__flow *nori__flow_new(size_t nodes, size_t edges)
{
    size_t twins;
    nori__flow *f = nori__alloc_zero(&nori__malloc, sizeof(*f));
    if (!f) {
        return NULL;
    }
    nori__arena_init(&f->arena, &nori__malloc);
    f->nodes = nodes;
    f->capacity = edges;
    f->first = nori__arena_array(&f->arena, nodes, sizeof(*f->first));
    f->at = nori__arena_array(&f->arena, nodes, sizeof(*f->at));
    f->level = nori__arena_array(&f->arena, nodes, sizeof(*f->level));
    f->queue = nori__arena_array(&f->arena, nodes, sizeof(*f->queue));
    f->path = nori__arena_array(&f->arena, nodes, sizeof(*f->path));
    f->near = nori__arena_array(&f->arena, nodes, sizeof(*f->near));
    f->edge = nori__mul_size(edges, 2, &twins) ? nori__arena_array(&f->arena, twins, sizeof(*f->edge))
                                               : NULL;
    if (!f->first || !f->at || !f->level || !f->queue || !f->path || !f->near || !f->edge) {
        nori__flow_free(f);
        return NULL;
    }
    for (size_t i = 0; i < nodes; i++) {
        f->first[i] = SIZE_MAX;
    }
    return f;
}

void nori__flow_free(nori__flow *f)
{
    if (f) {
        nori__arena_free(&f->arena);
        nori__release(&nori__malloc, f, sizeof(*f));
    }
}

void nori__flow_edge(nori__flow *f, size_t from, size_t to, int64_t capacity)
{
    if (f->edges == f->capacity) {
        return; /* the caller counted wrongly: tests would show a wrong cut */
    }
    size_t i = 2 * f->edges++;
    f->edge[i] = (edge){to, f->first[from], capacity};
    f->first[from] = i;
    f->edge[i + 1] = (edge){from, f->first[to], 0};
    f->first[to] = i + 1;
}

/* Distances from the source over what can still take flow; false: the sink is out of reach. */
static bool levels(nori__flow *f, size_t source, size_t sink)
{
    size_t head = 0, tail = 0;
    for (size_t i = 0; i < f->nodes; i++) {
        f->level[i] = SIZE_MAX;
        f->at[i] = f->first[i];
    }
    f->level[source] = 0;
    f->queue[tail++] = source;
    while (head < tail) {
        size_t n = f->queue[head++];
        for (size_t i = f->first[n]; i != SIZE_MAX; i = f->edge[i].next) {
            size_t to = f->edge[i].to;
            if (f->edge[i].left > 0 && f->level[to] == SIZE_MAX) {
                f->level[to] = f->level[n] + 1;
                f->queue[tail++] = to;
            }
        }
    }
    return f->level[sink] != SIZE_MAX;
}

static void push(nori__flow *f, size_t length)
{
    int64_t most = INT64_MAX;
    for (size_t i = 0; i < length; i++) {
        most = f->edge[f->path[i]].left < most ? f->edge[f->path[i]].left : most;
    }
    for (size_t i = 0; i < length; i++) {
        f->edge[f->path[i]].left -= most;
        f->edge[f->path[i] ^ 1].left += most;
    }
}

/* All the flow that goes along rising levels. */
static void block(nori__flow *f, size_t source, size_t sink)
{
    size_t length = 0, n = source;
    for (;;) {
        if (n == sink) {
            push(f, length);
            length = 0;
            n = source;
            continue;
        }
        size_t i = f->at[n];
        while (i != SIZE_MAX &&
               !(f->edge[i].left > 0 && f->level[f->edge[i].to] == f->level[n] + 1)) {
            i = f->edge[i].next;
        }
        f->at[n] = i;
        if (i != SIZE_MAX) {
            f->path[length++] = i;
            n = f->edge[i].to;
        } else if (length > 0) { /* a dead end: not again in this round */
            f->level[n] = SIZE_MAX;
            n = f->edge[f->path[--length] ^ 1].to;
        } else {
            return;
        }
    }
}

/* Nodes from which the sink can still be reached lie on its side. */
static void mark(nori__flow *f, size_t sink)
{
    size_t head = 0, tail = 0;
    for (size_t i = 0; i < f->nodes; i++) {
        f->near[i] = true;
    }
    f->near[sink] = false;
    f->queue[tail++] = sink;
    while (head < tail) {
        size_t n = f->queue[head++];
        for (size_t i = f->first[n]; i != SIZE_MAX; i = f->edge[i].next) {
            size_t from = f->edge[i].to;
            if (f->near[from] && f->edge[i ^ 1].left > 0) {
                f->near[from] = false;
                f->queue[tail++] = from;
            }
        }
    }
}

void nori__flow_run(nori__flow *f, size_t source, size_t sink)
{
    while (levels(f, source, sink)) {
        block(f, source, sink);
    }
    mark(f, sink);
}

bool nori__flow_far(const nori__flow *f, size_t node)
{
    return !f->near[node];
}
