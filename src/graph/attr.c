/* attr.c: reading and writing attributes of a node. */
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

/* The attribute when it has the kind and is no reference, else NULL. */
static const nori__attr *of_kind(const nori__node *node, const char *name, nori__pb_attr_kind kind)
{
    const nori__attr *a = nori__attr_find(node, name);
    return a && a->kind == kind && !a->ref ? a : NULL;
}

int64_t nori__attr_i(const nori__node *node, const char *name, int64_t otherwise)
{
    const nori__attr *a = of_kind(node, name, NORI__ATTR_INT);
    return a ? a->v.i : otherwise;
}

float nori__attr_f(const nori__node *node, const char *name, float otherwise)
{
    const nori__attr *a = of_kind(node, name, NORI__ATTR_FLOAT);
    return a ? a->v.f : otherwise;
}

const char *nori__attr_s(const nori__node *node, const char *name, const char *otherwise)
{
    const nori__attr *a = of_kind(node, name, NORI__ATTR_STRING);
    return a ? a->v.s : otherwise;
}

const int64_t *nori__attr_ints(const nori__node *node, const char *name, size_t *count)
{
    const nori__attr *a = of_kind(node, name, NORI__ATTR_INTS);
    *count = a ? a->count : 0;
    return a ? a->v.ints : NULL;
}

const float *nori__attr_floats(const nori__node *node, const char *name, size_t *count)
{
    const nori__attr *a = of_kind(node, name, NORI__ATTR_FLOATS);
    *count = a ? a->count : 0;
    return a ? a->v.floats : NULL;
}

const nori_tensor *nori__attr_tensor(const nori__node *node, const char *name)
{
    const nori__attr *a = of_kind(node, name, NORI__ATTR_TENSOR);
    a = a ? a : of_kind(node, name, NORI__ATTR_SPARSE);
    return a && nori__tensor_settle(a->v.tensor) ? a->v.tensor : NULL;
}

nori__graph *nori__attr_graph(const nori__node *node, const char *name)
{
    const nori__attr *a = of_kind(node, name, NORI__ATTR_GRAPH);
    return a ? a->v.graph : NULL;
}

nori__graph *nori__node_subgraph(const nori__node *node, uint32_t *state)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < node->attr_count; i++) {
        const nori__attr *a = &node->attrs[i];
        if (a->ref || (a->kind != NORI__ATTR_GRAPH && a->kind != NORI__ATTR_GRAPHS)) {
            continue;
        }
        uint32_t count = a->kind == NORI__ATTR_GRAPH ? 1 : (uint32_t)a->count;
        if (*state - seen < count) {
            uint32_t k = (*state)++ - seen;
            return a->kind == NORI__ATTR_GRAPH ? a->v.graph : a->v.graphs[k];
        }
        seen += count;
    }
    return NULL;
}

/* ---- writing ---- */

/* The attribute of that name, emptied, or a new one. */
static nori__attr *writable(nori__node *node, const char *name)
{
    node->graph->ir->edits++;
    for (uint32_t i = 0; i < node->attr_count; i++) {
        if (nori__same(node->attrs[i].name, name)) {
            const char *kept = node->attrs[i].name;
            node->attrs[i] = (nori__attr){.name = kept};
            return &node->attrs[i];
        }
    }
    nori__ir *ir = node->graph->ir;
    nori__attr *attrs = nori__arena_array(&ir->arena, (size_t)node->attr_count + 1, sizeof(*attrs));
    const char *copy = nori__ir_text(ir, name, strlen(name));
    if (!attrs || !copy) {
        return NULL;
    }
    if (node->attr_count > 0) {
        memcpy(attrs, node->attrs, node->attr_count * sizeof(*attrs));
    }
    node->attrs = attrs;
    attrs[node->attr_count].name = copy;
    return &attrs[node->attr_count++];
}

bool nori__node_set_int(nori__node *node, const char *name, int64_t value)
{
    nori__attr *a = writable(node, name);
    if (a) {
        a->kind = NORI__ATTR_INT;
        a->v.i = value;
    }
    return a != NULL;
}

bool nori__node_set_float(nori__node *node, const char *name, float value)
{
    nori__attr *a = writable(node, name);
    if (a) {
        a->kind = NORI__ATTR_FLOAT;
        a->v.f = value;
    }
    return a != NULL;
}

bool nori__node_set_ints(nori__node *node, const char *name, const int64_t *v, size_t n)
{
    int64_t *copy = nori__arena_array(&node->graph->ir->arena, n, sizeof(*copy));
    nori__attr *a = copy ? writable(node, name) : NULL;
    if (a) {
        if (n > 0) {
            memcpy(copy, v, n * sizeof(*copy));
        }
        a->kind = NORI__ATTR_INTS;
        a->v.ints = copy;
        a->count = n;
    }
    return a != NULL;
}

bool nori__node_set_floats(nori__node *node, const char *name, const float *v, size_t n)
{
    float *copy = nori__arena_array(&node->graph->ir->arena, n, sizeof(*copy));
    nori__attr *a = copy ? writable(node, name) : NULL;
    if (a) {
        if (n > 0) {
            memcpy(copy, v, n * sizeof(*copy));
        }
        a->kind = NORI__ATTR_FLOATS;
        a->v.floats = copy;
        a->count = n;
    }
    return a != NULL;
}

bool nori__node_set_text(nori__node *node, const char *name, const char *value)
{
    char *copy = nori__arena_text(&node->graph->ir->arena, value);
    nori__attr *a = copy ? writable(node, name) : NULL;
    if (a) {
        a->kind = NORI__ATTR_STRING;
        a->v.s = copy;
        a->count = strlen(copy);
    }
    return a != NULL;
}

void nori__node_drop_attr(nori__node *node, const char *name)
{
    node->graph->ir->edits++;
    for (uint32_t i = 0; i < node->attr_count; i++) {
        if (nori__same(node->attrs[i].name, name)) {
            node->attr_count--;
            memmove(&node->attrs[i], &node->attrs[i + 1],
                    (node->attr_count - i) * sizeof(*node->attrs));
            return;
        }
    }
}
