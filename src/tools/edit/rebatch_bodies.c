/* rebatch_bodies.c: the bodies of If, Loop and Scan under another batch: where a value of one of the
 * graphs is in another, and what bodies declare.
 *
 * Bodies nest as deep as the file had them, which reading saw to: the walks recurse. */
#include "tools/edit/rebatch.h"

/* The graph of ir that stands where g does in its own: below the node that makes the same value. */
static const nori__graph *counterpart(const nori__ir *ir, const nori__graph *g)
{
    if (!g->parent) {
        return ir->main;
    }
    const nori__node *n = g->parent_node;
    const nori__graph *outer = counterpart(ir, g->parent), *own, *theirs;
    const nori__value *v = outer && n->output_count > 0 && n->outputs[0]
                               ? nori__map_get(nori__graph_names(outer), n->outputs[0]->name) : NULL;
    uint32_t mine = 0, other = 0;
    if (!v || !v->producer || !nori__same(v->producer->op_type, n->op_type)) {
        return NULL;
    }
    do {
        own = nori__node_subgraph(n, &mine);
        theirs = nori__node_subgraph(v->producer, &other);
    } while (own && own != g);
    return own ? theirs : NULL;
}

nori__value *nori__batch_value(const nori__ir *ir, const nori__value *v)
{
    const nori__graph *g = v ? counterpart(ir, v->graph) : NULL;
    return g ? nori__map_get(nori__graph_names(g), v->name) : NULL;
}

void nori__batch_forget(nori__ir *ir)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__value *v = g->values; v; v = v->next) {
            if (v->producer) {
                v->type = v->declared = (nori__type){.rank = -1};
            }
        }
        for (uint32_t i = 0; g->parent && i < g->input_count; i++) {
            if (g->inputs[i]->constant) {
                continue;
            }
            g->inputs[i]->type = g->inputs[i]->declared = (nori__type){.rank = -1};
        }
    }
}

/* ---- what bodies declare ---- */

static void *copied(nori__rebatching *r, nori__arena *arena, const void *from, size_t count, size_t size)
{
    void *copy = nori__arena_array(arena, count + 1, size);
    if (copy && count > 0) {
        memcpy(copy, from, count * size);
    }
    if (!copy) {
        (void)nori__no_memory(r->err);
    }
    return copy;
}

/* Declarations without the shapes that hold the batch: the node around a body says what goes in. */
static nori_status shapeless(nori__rebatching *r, nori__pb_value **items, size_t count,
                             const nori__graph *g, nori__arena *arena)
{
    nori__pb_value *list = copied(r, arena, *items, count, sizeof(*list));
    for (size_t i = 0; list && i < count; i++) {
        const nori__value *v = nori__map_get_n(nori__graph_names(g), list[i].name.p, list[i].name.n);
        if (!v || !list[i].type || nori__batch_axis(r, v, NULL) < 0) {
            continue;
        }
        nori__pb_type *type = copied(r, arena, list[i].type, 1, sizeof(*type));
        if (!type) {
            return NORI_ERROR_MEMORY;
        }
        type->shape = NULL;
        list[i].type = type;
    }
    *items = list;
    return list ? NORI_OK : NORI_ERROR_MEMORY;
}

static nori_status body(nori__rebatching *r, nori__pb_graph **pb, const nori__graph *g,
                        nori__arena *arena)
{
    nori__pb_graph *copy = copied(r, arena, *pb, 1, sizeof(*copy));
    if (!copy) {
        return NORI_ERROR_MEMORY;
    }
    *pb = copy;
    NORI__TRY(shapeless(r, &copy->inputs.items, copy->inputs.count, g, arena));
    NORI__TRY(shapeless(r, &copy->outputs.items, copy->outputs.count, g, arena));
    NORI__TRY(shapeless(r, &copy->value_info.items, copy->value_info.count, g, arena));
    return nori__batch_bodies(r, copy, g, arena);
}

static nori_status node_bodies(nori__rebatching *r, nori__pb_node *pb, const nori__node *n,
                               nori__arena *arena)
{
    nori__pb_attr *attrs = copied(r, arena, pb->attrs.items, pb->attrs.count, sizeof(*attrs));
    if (!attrs) {
        return NORI_ERROR_MEMORY;
    }
    pb->attrs.items = attrs;
    for (size_t i = 0; i < pb->attrs.count; i++) {
        char *name = attrs[i].g ? nori__arena_copy(arena, attrs[i].name.p, attrs[i].name.n) : NULL;
        const nori__attr *a = name ? nori__attr_find(n, name) : NULL;
        if (attrs[i].g && !name) {
            return nori__no_memory(r->err);
        }
        if (a && a->kind == NORI__ATTR_GRAPH) {
            NORI__TRY(body(r, &attrs[i].g, a->v.graph, arena));
        }
    }
    return NORI_OK;
}

nori_status nori__batch_bodies(nori__rebatching *r, nori__pb_graph *pb, const nori__graph *g,
                               nori__arena *arena)
{
    bool any = false;
    for (size_t i = 0; i < pb->nodes.count; i++) {
        for (size_t k = 0; k < pb->nodes.items[i].attrs.count; k++) {
            any = any || pb->nodes.items[i].attrs.items[k].g;
        }
    }
    if (!any) {
        return NORI_OK;
    }
    nori__pb_node *nodes = copied(r, arena, pb->nodes.items, pb->nodes.count, sizeof(*nodes));
    if (!nodes) {
        return NORI_ERROR_MEMORY;
    }
    pb->nodes.items = nodes;
    for (size_t i = 0; i < pb->nodes.count; i++) {
        nori__str first = nodes[i].outputs.count > 0 ? nodes[i].outputs.items[0] : NORI__STR("");
        const nori__value *v = first.n > 0
                                   ? nori__map_get_n(nori__graph_names(g), first.p, first.n) : NULL;
        if (v && v->producer && nodes[i].attrs.count > 0) {
            NORI__TRY(node_bodies(r, &nodes[i], v->producer, arena));
        }
    }
    return NORI_OK;
}
