/* optimize_same.c: constants of one content become one, and nodes that compute the same from the same. */
#include <stdio.h>

#include "tools/edit/optimize.h"

/* ---- constants ---- */

static bool same_content(const nori_tensor *a, const nori_tensor *b)
{
    return a->kind == b->kind && a->type == b->type && a->rank == b->rank && a->bytes == b->bytes &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(*a->dims)) == 0 &&
           (a->bytes == 0 || memcmp(nori__tensor_at(a), nori__tensor_at(b), a->bytes) == 0);
}

static char *content_key(const nori_tensor *t, nori__arena *arena)
{
    nori__hash h = {0, 0};
    char text[NORI__HASH_TEXT];
    nori__hash_add(&h, t->dims, (size_t)t->rank * sizeof(*t->dims));
    nori__hash_add(&h, t->bytes > 0 ? nori__tensor_at(t) : "", t->bytes);
    nori__hash_text(&h, text);
    return nori__arena_printf(arena, "%d %d %s", t->type, t->rank, text);
}

static nori_status same_constants(nori__graph *g, nori__arena *arena, nori__map *seen, size_t *changes,
                                  nori_error *err)
{
    nori__vec order; /* the list is newest first: the first one stays */
    nori__vec_init(&order, arena->allocator);
    bool ok = true;
    for (nori__value *v = g->values; ok && v; v = v->next) {
        const nori_tensor *t = nori__value_as_is(v);
        bool plain = t && !v->producer && v->uses > 0 && !(v->flags & NORI__VALUE_OUTPUT) &&
                     t->kind == NORI_KIND_TENSOR && t->type != NORI_STRING;
        ok = !plain || nori__vec_push(&order, v);
    }
    for (size_t i = order.count; ok && i-- > 0;) {
        nori__value *v = order.items[i];
        char *key = content_key(v->constant, arena);
        nori__value *first = key ? nori__map_get(seen, key) : NULL;
        if (first && same_content(first->constant, v->constant)) {
            nori__value_replace(v, first);
            (*changes)++;
        } else {
            ok = key && (first || nori__map_put(seen, key, v));
        }
    }
    nori__vec_free(&order);
    return ok ? NORI_OK : nori__no_memory(err);
}

nori_status nori__opt_same_constants(nori__ir *ir, size_t *changes, nori_error *err)
{
    nori_status s = NORI_OK;
    for (nori__graph *g = ir->graphs; s == NORI_OK && g; g = g->next_graph) {
        nori__arena arena;
        nori__map seen;
        nori__arena_init(&arena, ir->allocator);
        nori__map_init(&seen, ir->allocator);
        s = same_constants(g, &arena, &seen, changes, err);
        nori__map_free(&seen);
        nori__arena_free(&arena);
    }
    return s;
}

/* ---- nodes ---- */

static bool same_attr(const nori__attr *a, const nori__attr *b)
{
    if (a->kind != b->kind || a->count != b->count || a->ref || b->ref) {
        return false;
    }
    switch (a->kind) {
    case NORI__ATTR_INT:
        return a->v.i == b->v.i;
    case NORI__ATTR_FLOAT:
        return memcmp(&a->v.f, &b->v.f, sizeof(a->v.f)) == 0;
    case NORI__ATTR_STRING:
        return memcmp(a->v.s, b->v.s, a->count) == 0;
    case NORI__ATTR_INTS:
        return memcmp(a->v.ints, b->v.ints, a->count * sizeof(*a->v.ints)) == 0;
    case NORI__ATTR_FLOATS:
        return memcmp(a->v.floats, b->v.floats, a->count * sizeof(*a->v.floats)) == 0;
    case NORI__ATTR_TENSOR:
        return a->v.tensor->type != NORI_STRING && same_content(a->v.tensor, b->v.tensor);
    default:
        return false; /* graphs, types: not looked into */
    }
}

static bool same_node(const nori__node *a, const nori__node *b)
{
    if (a->attr_count != b->attr_count || a->output_count != b->output_count ||
        !nori__same(a->overload, b->overload)) {
        return false;
    }
    for (uint32_t i = 0; i < b->output_count; i++) {
        const nori__value *v = b->outputs[i];
        if (v && (!a->outputs[i] || (v->flags & NORI__VALUE_OUTPUT))) {
            return false; /* its name is known outside */
        }
    }
    for (uint32_t i = 0; i < a->attr_count; i++) {
        const nori__attr *other = nori__attr_find(b, a->attrs[i].name);
        if (!other || !same_attr(&a->attrs[i], other)) {
            return false;
        }
    }
    return true;
}

static char *node_key(const nori__node *n, nori__arena *arena, const nori_allocator *a)
{
    nori__text text;
    nori__text_init(&text, a);
    nori__text_printf(&text, "%s:%s", n->domain, n->op_type);
    for (uint32_t i = 0; i < n->input_count; i++) {
        nori__text_printf(&text, " %u", n->inputs[i] ? n->inputs[i]->id + 1 : 0);
    }
    char *key = text.failed ? NULL : nori__arena_copy(arena, text.data, text.size);
    nori__text_free(&text);
    return key;
}

static nori_status same_nodes(nori__graph *g, nori__arena *arena, nori__map *seen, size_t *changes,
                              nori_error *err)
{
    for (nori__node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (!n->op || (n->op->flags & (NORI__OP_RANDOM | NORI__OP_CONTROL)) || n->input_count == 0) {
            continue;
        }
        char *key = node_key(n, arena, g->ir->allocator);
        nori__node *first = key ? nori__map_get(seen, key) : NULL;
        if (!key || (!first && !nori__map_put(seen, key, n))) {
            return nori__no_memory(err);
        }
        if (!first || !same_node(first, n)) {
            continue;
        }
        for (uint32_t i = 0; i < n->output_count; i++) {
            if (n->outputs[i]) {
                nori__value_replace(n->outputs[i], first->outputs[i]);
            }
        }
        nori__node_remove(n);
        (*changes)++;
    }
    return NORI_OK;
}

nori_status nori__opt_same_nodes(nori__ir *ir, size_t *changes, nori_error *err)
{
    nori_status s = NORI_OK;
    for (nori__graph *g = ir->graphs; s == NORI_OK && g; g = g->next_graph) {
        nori__arena arena;
        nori__map seen;
        nori__arena_init(&arena, ir->allocator);
        nori__map_init(&seen, ir->allocator);
        s = same_nodes(g, &arena, &seen, changes, err);
        nori__map_free(&seen);
        nori__arena_free(&arena);
    }
    return s;
}
