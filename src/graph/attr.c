/* attr.c: reading and setting attributes of nodes. */
#include "graph/internal.h"

const nori__attr *nori__attr_find(const nori__node *node, const char *name)
{
    for (uint32_t i = 0; i < node->attr_count; i++) {
        if (nori__same(node->attrs[i].name, name)) {
            return &node->attrs[i];
        }
    }
    return NULL;
}

static const nori__attr *find_kind(const nori__node *node, const char *name,
                                   nori__pb_attr_kind kind)
{
    const nori__attr *a = nori__attr_find(node, name);
    return a && a->kind == kind ? a : NULL;
}

int64_t nori__attr_i(const nori__node *node, const char *name, int64_t otherwise)
{
    const nori__attr *a = find_kind(node, name, NORI__ATTR_INT);
    return a ? a->v.i : otherwise;
}

float nori__attr_f(const nori__node *node, const char *name, float otherwise)
{
    const nori__attr *a = find_kind(node, name, NORI__ATTR_FLOAT);
    return a ? a->v.f : otherwise;
}

const char *nori__attr_s(const nori__node *node, const char *name, const char *otherwise)
{
    const nori__attr *a = find_kind(node, name, NORI__ATTR_STRING);
    return a ? a->v.s : otherwise;
}

const int64_t *nori__attr_ints(const nori__node *node, const char *name, size_t *count)
{
    const nori__attr *a = find_kind(node, name, NORI__ATTR_INTS);
    *count = a ? a->count : 0;
    return a ? a->v.ints : NULL;
}

const float *nori__attr_floats(const nori__node *node, const char *name, size_t *count)
{
    const nori__attr *a = find_kind(node, name, NORI__ATTR_FLOATS);
    *count = a ? a->count : 0;
    return a ? a->v.floats : NULL;
}

const nori_tensor *nori__attr_tensor(const nori__node *node, const char *name)
{
    const nori__attr *a = find_kind(node, name, NORI__ATTR_TENSOR);
    a = a ? a : find_kind(node, name, NORI__ATTR_SPARSE);
    return a ? a->v.tensor : NULL;
}

nori__graph *nori__attr_graph(const nori__node *node, const char *name)
{
    const nori__attr *a = find_kind(node, name, NORI__ATTR_GRAPH);
    return a ? a->v.graph : NULL;
}

/* The attribute of that name, made if need be, emptied. */
static nori__attr *slot(nori__node *node, const char *name, nori__pb_attr_kind kind)
{
    nori__attr *a = (nori__attr *)(uintptr_t)nori__attr_find(node, name);
    if (!a) {
        nori__arena *arena = &node->graph->ir->arena;
        nori__attr *list = nori__arena_array(arena, (size_t)node->attr_count + 1, sizeof(*list));
        const char *text = nori__arena_text(arena, name);
        if (!list || !text) {
            return NULL;
        }
        for (uint32_t i = 0; i < node->attr_count; i++) {
            list[i] = node->attrs[i];
        }
        node->attrs = list;
        a = &list[node->attr_count++];
        a->name = text;
    }
    a->kind = kind;
    a->count = 0;
    a->pb = NULL;
    a->ref = NULL;
    return a;
}

bool nori__node_set_int(nori__node *node, const char *name, int64_t value)
{
    nori__attr *a = slot(node, name, NORI__ATTR_INT);
    if (a) {
        a->v.i = value;
    }
    return a != NULL;
}

bool nori__node_set_float(nori__node *node, const char *name, float value)
{
    nori__attr *a = slot(node, name, NORI__ATTR_FLOAT);
    if (a) {
        a->v.f = value;
    }
    return a != NULL;
}

bool nori__node_set_ints(nori__node *node, const char *name, const int64_t *v, size_t n)
{
    int64_t *copy = nori__arena_array(&node->graph->ir->arena, n + 1, sizeof(*copy));
    nori__attr *a = copy ? slot(node, name, NORI__ATTR_INTS) : NULL;
    if (a) {
        for (size_t i = 0; i < n; i++) {
            copy[i] = v[i];
        }
        a->v.ints = copy;
        a->count = n;
    }
    return a != NULL;
}

bool nori__node_set_text(nori__node *node, const char *name, const char *value)
{
    const char *copy = nori__arena_text(&node->graph->ir->arena, value);
    nori__attr *a = copy ? slot(node, name, NORI__ATTR_STRING) : NULL;
    if (a) {
        a->v.s = copy;
        a->count = strlen(copy);
    }
    return a != NULL;
}

void nori__node_drop_attr(nori__node *node, const char *name)
{
    for (uint32_t i = 0; i < node->attr_count; i++) {
        if (nori__same(node->attrs[i].name, name)) {
            memmove(&node->attrs[i], &node->attrs[i + 1],
                    (node->attr_count - i - 1) * sizeof(nori__attr));
            node->attr_count--;
            return;
        }
    }
}
