/* each_tensor.c: a model's messages copied as far as tensors lie in them, so that a tool can put other
 * tensors in their place: data moved into another file, or back. */
#include "onnx/onnx.h"

typedef struct walk {
    nori__arena *arena;
    nori__pb_tensor_fn fn;
    void *user;
    nori_error *err;
} walk;

static nori_status walk_graph(walk *w, const nori__pb_graph *from, nori__pb_graph **copy);

static nori_status list(walk *w, const void *from, size_t count, size_t size, void **copy)
{
    *copy = nori__arena_array(w->arena, count + 1, size);
    if (!*copy) {
        return nori__no_memory(w->err);
    }
    if (count > 0) {
        memcpy(*copy, from, count * size);
    }
    return NORI_OK;
}

static nori_status walk_tensors(walk *w, nori__pb_tensor **items, size_t count, bool initializer)
{
    void *copy;
    NORI__TRY(list(w, *items, count, sizeof(**items), &copy));
    *items = copy;
    for (size_t i = 0; i < count; i++) {
        NORI__TRY(w->fn(w->user, &(*items)[i], initializer, w->err));
    }
    return NORI_OK;
}

static nori_status walk_sparses(walk *w, nori__pb_sparse **items, size_t count)
{
    void *copy;
    NORI__TRY(list(w, *items, count, sizeof(**items), &copy));
    *items = copy;
    for (size_t i = 0; i < count; i++) {
        nori__pb_sparse *s = &(*items)[i];
        NORI__TRY(s->values ? walk_tensors(w, &s->values, 1, false) : NORI_OK);
        NORI__TRY(s->indices ? walk_tensors(w, &s->indices, 1, false) : NORI_OK);
    }
    return NORI_OK;
}

static bool holds_tensors(const nori__pb_attr *a)
{
    return a->t || a->g || a->sparse || a->tensors.count || a->graphs.count || a->sparses.count;
}

static nori_status walk_attr(walk *w, nori__pb_attr *a)
{
    NORI__TRY(a->t ? walk_tensors(w, &a->t, 1, false) : NORI_OK);
    NORI__TRY(a->sparse ? walk_sparses(w, &a->sparse, 1) : NORI_OK);
    NORI__TRY(a->tensors.count ? walk_tensors(w, &a->tensors.items, a->tensors.count, false) : NORI_OK);
    NORI__TRY(a->sparses.count ? walk_sparses(w, &a->sparses.items, a->sparses.count) : NORI_OK);
    NORI__TRY(a->g ? walk_graph(w, a->g, &a->g) : NORI_OK);
    if (a->graphs.count > 0) {
        void *copy;
        NORI__TRY(list(w, a->graphs.items, a->graphs.count, sizeof(*a->graphs.items), &copy));
        a->graphs.items = copy;
        for (size_t i = 0; i < a->graphs.count; i++) {
            NORI__TRY(walk_graph(w, a->graphs.items[i], &a->graphs.items[i]));
        }
    }
    return NORI_OK;
}

static nori_status walk_nodes(walk *w, nori__pb_node **items, size_t count)
{
    void *copy;
    NORI__TRY(list(w, *items, count, sizeof(**items), &copy));
    *items = copy;
    for (size_t i = 0; i < count; i++) {
        nori__pb_node *n = &(*items)[i];
        bool any = false;
        for (size_t k = 0; k < n->attrs.count; k++) {
            any = any || holds_tensors(&n->attrs.items[k]);
        }
        if (!any) {
            continue;
        }
        NORI__TRY(list(w, n->attrs.items, n->attrs.count, sizeof(*n->attrs.items), &copy));
        n->attrs.items = copy;
        for (size_t k = 0; k < n->attrs.count; k++) {
            NORI__TRY(walk_attr(w, &n->attrs.items[k]));
        }
    }
    return NORI_OK;
}

/* Graphs nest at most NORI__PB_MAX_NESTING deep, which reading saw to. */
static nori_status walk_graph(walk *w, const nori__pb_graph *from, nori__pb_graph **copy)
{
    nori__pb_graph *g = nori__arena_alloc(w->arena, sizeof(*g));
    if (!g) {
        return nori__no_memory(w->err);
    }
    *g = *from;
    *copy = g;
    NORI__TRY(walk_tensors(w, &g->initializers.items, g->initializers.count, true));
    NORI__TRY(walk_sparses(w, &g->sparse_initializers.items, g->sparse_initializers.count));
    return walk_nodes(w, &g->nodes.items, g->nodes.count);
}

nori_status nori__pb_each_tensor(nori__arena *arena, const nori__pb_model *model,
                                 nori__pb_tensor_fn fn, void *user, nori__pb_model **copy,
                                 nori_error *err)
{
    walk w = {.arena = arena, .fn = fn, .user = user, .err = err};
    void *functions;
    nori__pb_model *m = nori__arena_alloc(arena, sizeof(*m));
    if (!m) {
        return nori__no_memory(err);
    }
    *m = *model;
    NORI__TRY(m->graph ? walk_graph(&w, m->graph, &m->graph) : NORI_OK);
    NORI__TRY(list(&w, m->functions.items, m->functions.count, sizeof(*m->functions.items),
                   &functions));
    m->functions.items = functions;
    for (size_t i = 0; i < m->functions.count; i++) {
        NORI__TRY(walk_nodes(&w, &m->functions.items[i].nodes.items,
                             m->functions.items[i].nodes.count));
    }
    *copy = m;
    return NORI_OK;
}
