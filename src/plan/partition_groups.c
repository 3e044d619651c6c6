/* partition_groups.c: gathering nodes into sets that can each run as one node.
 *
 * Nodes become ready in waves: first all that need no candidate, then all candidates that are
 * ready, then what these made ready, and so on. Candidates of one wave that touch are a set: a
 * path that left it would pass a later wave and could not come back. Sets of different waves that
 * touch are joined after that, where no path between them leads through others. */
#include "plan/partition.h"

uint32_t nori__board_root(nori__board *b, uint32_t node)
{
    while (b->root[node] != node) {
        b->root[node] = b->root[b->root[node]];
        node = b->root[node];
    }
    return node;
}

void nori__board_join(nori__board *b, uint32_t a, uint32_t c)
{
    a = nori__board_root(b, a);
    c = nori__board_root(b, c);
    if (a == c) {
        return;
    }
    if (b->size[a] < b->size[c]) {
        uint32_t t = a;
        a = c;
        c = t;
    }
    b->root[c] = a;
    b->size[a] += b->size[c];
    b->low[a] = b->low[c] < b->low[a] ? b->low[c] : b->low[a];
    b->high[a] = b->high[c] > b->high[a] ? b->high[c] : b->high[a];
    uint32_t t = b->ring[a];
    b->ring[a] = b->ring[c];
    b->ring[c] = t;
}

/* ---- making ---- */

typedef struct edges {
    nori__board *b;
    uint32_t reader;
    bool store;
} edges;

static bool count_edge(void *user, nori__value *v)
{
    edges *e = user;
    if (v->producer && v->producer->graph == e->b->ir->main) {
        uint32_t maker = e->b->pos[v->producer->id];
        if (e->store) {
            e->b->next[e->b->queue[maker]++] = e->reader;
        } else {
            e->b->begin[maker + 1]++;
        }
    }
    return true;
}

nori_status nori__board_make(nori__arena *arena, nori__ir *ir, nori__board *b, nori_error *err)
{
    nori__graph *g = ir->main;
    size_t n = g->node_count;
    *b = (nori__board){.arena = arena, .ir = ir, .n = g->node_count};
    b->nodes = nori__arena_array(arena, n + 1, sizeof(*b->nodes));
    b->pos = nori__arena_array(arena, (size_t)ir->node_count + 1, sizeof(*b->pos));
    b->begin = nori__arena_array(arena, n + 2, sizeof(*b->begin));
    b->root = nori__arena_array(arena, n + 1, sizeof(*b->root));
    b->ring = nori__arena_array(arena, n + 1, sizeof(*b->ring));
    b->size = nori__arena_array(arena, n + 1, sizeof(*b->size));
    b->low = nori__arena_array(arena, n + 1, sizeof(*b->low));
    b->high = nori__arena_array(arena, n + 1, sizeof(*b->high));
    b->candidate = nori__arena_array(arena, n + 1, sizeof(*b->candidate));
    b->owner = nori__arena_array(arena, n + 1, sizeof(*b->owner));
    b->bids = nori__arena_array(arena, n + 1, sizeof(*b->bids));
    b->stamp = nori__arena_array(arena, n + 1, sizeof(*b->stamp));
    b->queue = nori__arena_array(arena, n + 1, sizeof(*b->queue));
    b->value_stamp = nori__arena_array(arena, (size_t)ir->value_count + 1, sizeof(uint32_t));
    if (!b->nodes || !b->pos || !b->begin || !b->root || !b->ring || !b->size || !b->low ||
        !b->high || !b->candidate || !b->owner || !b->bids || !b->stamp || !b->queue ||
        !b->value_stamp) {
        return nori__no_memory(err);
    }
    uint32_t i = 0;
    for (nori__node *node = g->first; node; node = node->next, i++) {
        b->nodes[i] = node;
        b->pos[node->id] = i;
        b->root[i] = b->ring[i] = i;
        b->size[i] = 1;
    }
    edges e = {.b = b};
    for (i = 0; i < b->n; i++) {
        nori__node_reads(b->nodes[i], count_edge, &e);
    }
    for (i = 0; i < b->n; i++) {
        b->begin[i + 1] += b->begin[i];
        b->queue[i] = b->begin[i];
    }
    b->next = nori__arena_array(arena, (size_t)b->begin[b->n] + 1, sizeof(*b->next));
    if (!b->next) {
        return nori__no_memory(err);
    }
    e.store = true;
    for (i = 0; i < b->n; i++) {
        e.reader = i;
        nori__node_reads(b->nodes[i], count_edge, &e);
    }
    return NORI_OK;
}

/* ---- waves ---- */

/* Kahn's order over sets, kind by kind. queue holds ready sets: candidates from the front, others
 * from the back, each a stack. */
static void find_waves(nori__board *b)
{
    uint32_t *waiting = b->stamp, front = 0, back = b->n, wave = 0;
    memset(waiting, 0, b->n * sizeof(*waiting));
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t from = nori__board_root(b, i);
        for (uint32_t k = b->begin[i]; k < b->begin[i + 1]; k++) {
            uint32_t to = nori__board_root(b, b->next[k]);
            waiting[to] += to != from;
        }
    }
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->root[i] == i && waiting[i] == 0) {
            b->queue[b->candidate[i] ? front++ : --back] = i;
        }
    }
    bool turn = false; /* others first */
    while (front > 0 || back < b->n) {
        if (turn ? front == 0 : back == b->n) {
            turn = !turn;
            wave++;
            continue;
        }
        uint32_t at = turn ? b->queue[--front] : b->queue[back++], i = at;
        b->low[at] = b->high[at] = wave;
        do {
            for (uint32_t k = b->begin[i]; k < b->begin[i + 1]; k++) {
                uint32_t to = nori__board_root(b, b->next[k]);
                if (to != at && --waiting[to] == 0) {
                    b->queue[b->candidate[to] ? front++ : --back] = to;
                }
            }
            i = b->ring[i];
        } while (i != at);
    }
}

/* ---- joining ---- */

/* Whether something outside lies on a path from set a to set c. budget: steps left; at 0 the
 * answer is yes. */
static bool path_between(nori__board *b, uint32_t a, uint32_t c, uint64_t *budget)
{
    uint32_t top = 0, mark = ++b->mark;
    b->stamp[a] = mark;
    b->queue[top++] = a;
    while (top > 0) {
        uint32_t at = b->queue[--top], i = at;
        do {
            for (uint32_t k = b->begin[i]; k < b->begin[i + 1]; k++) {
                uint32_t to = nori__board_root(b, b->next[k]);
                if (*budget == 0) {
                    return true;
                }
                --*budget;
                if (to == c && at != a) {
                    return true;
                }
                if (to != c && b->stamp[to] != mark && b->low[to] <= b->high[c]) {
                    b->stamp[to] = mark;
                    b->queue[top++] = to;
                }
            }
            i = b->ring[i];
        } while (i != at);
    }
    return false;
}

void nori__board_group(nori__board *b)
{
    find_waves(b);
    for (uint32_t i = 0; i < b->n; i++) {
        for (uint32_t k = b->begin[i]; b->candidate[i] && k < b->begin[i + 1]; k++) {
            uint32_t to = b->next[k];
            uint32_t x = nori__board_root(b, i), y = nori__board_root(b, to);
            if (b->candidate[to] && b->low[x] == b->low[y]) {
                nori__board_join(b, x, y);
            }
        }
    }
    memset(b->stamp, 0, b->n * sizeof(*b->stamp));
    b->mark = 0;
    uint64_t budget = 64 * ((uint64_t)b->n + b->begin[b->n]) + 1000000;
    for (uint32_t i = 0; i < b->n; i++) {
        for (uint32_t k = b->begin[i]; b->candidate[i] && k < b->begin[i + 1]; k++) {
            uint32_t x = nori__board_root(b, i), y = nori__board_root(b, b->next[k]);
            if (x != y && b->candidate[b->next[k]] && !path_between(b, x, y, &budget)) {
                nori__board_join(b, x, y);
            }
        }
    }
}
