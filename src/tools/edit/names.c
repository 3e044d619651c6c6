/* names.c: other names of values, nodes and dimensions, put into a copy of a model's messages.
 * Graphs nest at most NORI__PB_MAX_NESTING deep, which reading saw to: the walks recurse. */
#include "tools/edit/names.h"

void nori__names_init(nori__names *n, nori__arena *arena, const nori_allocator *a, nori_error *err)
{
    *n = (nori__names){.arena = arena, .err = err};
    nori__map_init(&n->values, a);
    nori__map_init(&n->nodes, a);
    nori__map_init(&n->dims, a);
}

void nori__names_free(nori__names *n)
{
    nori__map_free(&n->values);
    nori__map_free(&n->nodes);
    nori__map_free(&n->dims);
}

static nori__str other(const nori__map *map, nori__str name)
{
    const char *to = name.n > 0 && map->count > 0 ? nori__map_get_n(map, name.p, name.n) : NULL;
    return to ? nori__str_of(to) : name;
}

static nori_status list(nori__names *n, const void *from, size_t count, size_t size, void **copy)
{
    *copy = nori__arena_array(n->arena, count + 1, size);
    if (!*copy) {
        return nori__no_memory(n->err);
    }
    if (count > 0) {
        memcpy(*copy, from, count * size);
    }
    return NORI_OK;
}

static nori_status rename_texts(nori__names *n, nori__str **items, size_t count)
{
    void *copy;
    NORI__TRY(list(n, *items, count, sizeof(**items), &copy));
    *items = copy;
    for (size_t i = 0; i < count; i++) {
        (*items)[i] = other(&n->values, (*items)[i]);
    }
    return NORI_OK;
}

static nori_status rename_dims(nori__names *n, nori__pb_type **type)
{
    while (*type) {
        void *copy;
        NORI__TRY(list(n, *type, 1, sizeof(**type), &copy));
        *type = copy;
        if ((*type)->shape) {
            NORI__TRY(list(n, (*type)->shape, 1, sizeof(*(*type)->shape), &copy));
            nori__pb_shape *shape = copy;
            (*type)->shape = shape;
            NORI__TRY(list(n, shape->dims.items, shape->dims.count, sizeof(*shape->dims.items), &copy));
            shape->dims.items = copy;
            for (size_t i = 0; i < shape->dims.count; i++) {
                shape->dims.items[i].param = other(&n->dims, shape->dims.items[i].param);
            }
        }
        type = &(*type)->of;
    }
    return NORI_OK;
}

nori_status nori__names_value(nori__names *n, nori__pb_value *v)
{
    v->name = other(&n->values, v->name);
    return n->dims.count > 0 ? rename_dims(n, &v->type) : NORI_OK;
}

static nori_status rename_values(nori__names *n, nori__pb_value **items, size_t count)
{
    void *copy;
    NORI__TRY(list(n, *items, count, sizeof(**items), &copy));
    *items = copy;
    for (size_t i = 0; i < count; i++) {
        NORI__TRY(nori__names_value(n, &(*items)[i]));
    }
    return NORI_OK;
}

static nori_status rename_attrs(nori__names *n, nori__pb_node *node)
{
    bool any = false;
    void *copy;
    for (size_t i = 0; i < node->attrs.count; i++) {
        any = any || node->attrs.items[i].g || node->attrs.items[i].graphs.count > 0;
    }
    if (!any) {
        return NORI_OK;
    }
    NORI__TRY(list(n, node->attrs.items, node->attrs.count, sizeof(*node->attrs.items), &copy));
    node->attrs.items = copy;
    for (size_t i = 0; i < node->attrs.count; i++) {
        nori__pb_attr *a = &node->attrs.items[i];
        NORI__TRY(a->g ? nori__names_graph(n, a->g, &a->g) : NORI_OK);
        NORI__TRY(list(n, a->graphs.items, a->graphs.count, sizeof(*a->graphs.items), &copy));
        a->graphs.items = copy;
        for (size_t k = 0; k < a->graphs.count; k++) {
            NORI__TRY(nori__names_graph(n, a->graphs.items[k], &a->graphs.items[k]));
        }
    }
    return NORI_OK;
}

static nori_status rename_constants(nori__names *n, nori__pb_graph *g)
{
    void *copy;
    NORI__TRY(list(n, g->initializers.items, g->initializers.count, sizeof(*g->initializers.items),
                   &copy));
    g->initializers.items = copy;
    for (size_t i = 0; i < g->initializers.count; i++) {
        g->initializers.items[i].name = other(&n->values, g->initializers.items[i].name);
    }
    NORI__TRY(list(n, g->sparse_initializers.items, g->sparse_initializers.count,
                   sizeof(*g->sparse_initializers.items), &copy));
    g->sparse_initializers.items = copy;
    for (size_t i = 0; i < g->sparse_initializers.count; i++) {
        nori__pb_sparse *s = &g->sparse_initializers.items[i];
        if (s->values) {
            NORI__TRY(list(n, s->values, 1, sizeof(*s->values), &copy));
            s->values = copy;
            s->values->name = other(&n->values, s->values->name);
        }
    }
    return NORI_OK;
}

nori_status nori__names_graph(nori__names *n, const nori__pb_graph *from, nori__pb_graph **copy)
{
    void *room;
    NORI__TRY(list(n, from, 1, sizeof(*from), &room));
    nori__pb_graph *g = room;
    NORI__TRY(list(n, g->nodes.items, g->nodes.count, sizeof(*g->nodes.items), &room));
    g->nodes.items = room;
    for (size_t i = 0; i < g->nodes.count; i++) {
        nori__pb_node *node = &g->nodes.items[i];
        node->name = other(&n->nodes, node->name);
        NORI__TRY(rename_texts(n, &node->inputs.items, node->inputs.count));
        NORI__TRY(rename_texts(n, &node->outputs.items, node->outputs.count));
        NORI__TRY(rename_attrs(n, node));
    }
    NORI__TRY(rename_constants(n, g));
    NORI__TRY(rename_values(n, &g->inputs.items, g->inputs.count));
    NORI__TRY(rename_values(n, &g->outputs.items, g->outputs.count));
    NORI__TRY(rename_values(n, &g->value_info.items, g->value_info.count));
    *copy = g;
    return NORI_OK;
}

/* ---- which names there are ---- */

typedef struct gathering {
    nori__arena *arena;
    nori__name_sets *sets;
    bool ok;
} gathering;

static void note(gathering *g, nori__map *map, nori__vec *order, nori__str name)
{
    if (g->ok && name.n > 0 && !nori__map_get_n(map, name.p, name.n)) {
        char *text = nori__arena_copy(g->arena, name.p, name.n);
        g->ok = text && nori__map_put(map, text, text) && nori__vec_push(order, text);
    }
}

static void note_value(gathering *g, const nori__pb_value *v)
{
    note(g, &g->sets->values, &g->sets->value_list, v->name);
    for (const nori__pb_type *t = v->type; t; t = t->of) {
        for (size_t i = 0; t->shape && i < t->shape->dims.count; i++) {
            note(g, &g->sets->dims, &g->sets->dim_list, t->shape->dims.items[i].param);
        }
    }
}

static void note_graph(gathering *g, const nori__pb_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const nori__pb_node *n = &graph->nodes.items[i];
        note(g, &g->sets->nodes, &g->sets->node_list, n->name);
        for (size_t k = 0; k < n->inputs.count; k++) {
            note(g, &g->sets->values, &g->sets->value_list, n->inputs.items[k]);
        }
        for (size_t k = 0; k < n->outputs.count; k++) {
            note(g, &g->sets->values, &g->sets->value_list, n->outputs.items[k]);
        }
        for (size_t k = 0; k < n->attrs.count; k++) {
            const nori__pb_attr *a = &n->attrs.items[k];
            if (a->g) {
                note_graph(g, a->g);
            }
            for (size_t j = 0; j < a->graphs.count; j++) {
                note_graph(g, a->graphs.items[j]);
            }
        }
    }
    for (size_t i = 0; i < graph->initializers.count; i++) {
        note(g, &g->sets->values, &g->sets->value_list, graph->initializers.items[i].name);
    }
    for (size_t i = 0; i < graph->sparse_initializers.count; i++) {
        const nori__pb_sparse *s = &graph->sparse_initializers.items[i];
        note(g, &g->sets->values, &g->sets->value_list, s->values ? s->values->name : (nori__str){NULL, 0});
    }
    for (size_t i = 0; i < graph->inputs.count; i++) {
        note_value(g, &graph->inputs.items[i]);
    }
    for (size_t i = 0; i < graph->outputs.count; i++) {
        note_value(g, &graph->outputs.items[i]);
    }
    for (size_t i = 0; i < graph->value_info.count; i++) {
        note_value(g, &graph->value_info.items[i]);
    }
}

nori_status nori__name_sets_of(const nori__pb_graph *graph, nori__arena *arena,
                               nori__name_sets *sets, nori_error *err)
{
    gathering g = {.arena = arena, .sets = sets, .ok = true};
    nori__map_init(&sets->values, arena->allocator);
    nori__map_init(&sets->nodes, arena->allocator);
    nori__map_init(&sets->dims, arena->allocator);
    nori__vec_init(&sets->value_list, arena->allocator);
    nori__vec_init(&sets->node_list, arena->allocator);
    nori__vec_init(&sets->dim_list, arena->allocator);
    note_graph(&g, graph);
    return g.ok ? NORI_OK : nori__no_memory(err);
}

void nori__name_sets_free(nori__name_sets *sets)
{
    nori__map_free(&sets->values);
    nori__map_free(&sets->nodes);
    nori__map_free(&sets->dims);
    nori__vec_free(&sets->value_list);
    nori__vec_free(&sets->node_list);
    nori__vec_free(&sets->dim_list);
}

bool nori__names_in_bytes(const nori__str *items, size_t count, const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 1; n > 0 && n < 128 && at + n <= items[i].n; at++) {
            /* A text field: its length, then its bytes. */
            if ((unsigned char)items[i].p[at - 1] == n && memcmp(items[i].p + at, text, n) == 0) {
                return true;
            }
        }
    }
    return false;
}
