/* copy.c: a second graph of the same structure. Tensors and the file's messages are shared; names
 * and attribute payloads are copied, so that the first may be freed. */
#include "graph/internal.h"

typedef struct copier {
    const nori__ir *from;
    nori__ir *to;
    nori__value **values; /* by id of from */
    nori__vec pairs;      /* from, to, from, to ... graphs */
    bool ok;
} copier;

static const char *text(copier *c, const char *s)
{
    const char *copy = s ? nori__arena_text(&c->to->arena, s) : NULL;
    c->ok = c->ok && (copy || !s);
    return copy;
}

static void *array(copier *c, size_t count, size_t size)
{
    void *p = nori__arena_array(&c->to->arena, count + 1, size);
    c->ok = c->ok && p;
    return p;
}

static nori__type copy_type(copier *c, const nori__type *t)
{
    nori__type copy = *t;
    if (t->rank > 0 && t->dims) {
        copy.dims = array(c, (size_t)t->rank, sizeof(*copy.dims));
        for (int d = 0; c->ok && d < t->rank; d++) {
            copy.dims[d] = (nori__dim){t->dims[d].value, text(c, t->dims[d].name)};
        }
    }
    if (t->of) { /* types nest as deep as the reader allows */
        nori__type *of = array(c, 1, sizeof(*of));
        if (c->ok) {
            *of = copy_type(c, t->of);
        }
        copy.of = of;
    }
    return copy;
}

static void retain(copier *c, nori_tensor *t)
{
    if (t && !nori__ir_keep(c->to, nori_tensor_retain(t))) {
        c->ok = false;
    }
}

/* First all graphs and values, so that references across graphs find their target. */
static void copy_values(copier *c, const nori__graph *from, nori__graph *to)
{
    to->name = text(c, from->name);
    to->pb = from->pb;
    /* values is newest first: walked backwards, so that ids keep their order */
    size_t n = 0;
    for (const nori__value *v = from->values; v; v = v->next) {
        n++;
    }
    const nori__value **list = nori__alloc(c->to->allocator, (n + 1) * sizeof(*list));
    if (!list) {
        c->ok = false;
        return;
    }
    size_t i = n;
    for (const nori__value *v = from->values; v; v = v->next) {
        list[--i] = v;
    }
    for (i = 0; c->ok && i < n; i++) {
        const nori__value *v = list[i];
        const char *name = text(c, v->name);
        nori__value *copy = c->ok ? nori__value_add(to, name) : NULL;
        if (!copy) {
            c->ok = false;
            break;
        }
        copy->type = copy_type(c, &v->type);
        copy->constant = v->constant;
        copy->flags = v->flags;
        copy->uses = v->uses;
        copy->pb = v->pb;
        c->values[v->id] = copy;
        retain(c, v->constant);
    }
    nori__release(c->to->allocator, list, (n + 1) * sizeof(*list));
}

static nori__graph *graph_of(copier *c, const nori__graph *from)
{
    for (size_t i = 0; i + 1 < c->pairs.count; i += 2) {
        if (c->pairs.items[i] == (const void *)from) {
            return c->pairs.items[i + 1];
        }
    }
    return NULL;
}

static nori__value **copy_list(copier *c, nori__value *const *from, size_t n)
{
    nori__value **list = array(c, n, sizeof(*list));
    for (size_t i = 0; c->ok && i < n; i++) {
        list[i] = from[i] ? c->values[from[i]->id] : NULL;
    }
    return list;
}

static void copy_attr(copier *c, const nori__attr *from, nori__attr *to, nori__node *node)
{
    *to = *from;
    to->name = text(c, from->name);
    to->ref = text(c, from->ref);
    size_t n = from->count;
    switch (from->kind) {
    case NORI__ATTR_STRING:
        to->v.s = nori__arena_copy(&c->to->arena, from->v.s, n);
        c->ok = c->ok && to->v.s;
        break;
    case NORI__ATTR_INTS: {
        int64_t *copy = array(c, n, sizeof(*copy));
        if (copy && n) {
            memcpy(copy, from->v.ints, n * sizeof(*copy));
        }
        to->v.ints = copy;
        break;
    }
    case NORI__ATTR_FLOATS: {
        float *copy = array(c, n, sizeof(*copy));
        if (copy && n) {
            memcpy(copy, from->v.floats, n * sizeof(*copy));
        }
        to->v.floats = copy;
        break;
    }
    case NORI__ATTR_STRINGS: {
        nori__str *copy = array(c, n, sizeof(*copy));
        for (size_t i = 0; copy && i < n; i++) {
            copy[i].n = from->v.strings[i].n;
            copy[i].p = nori__arena_copy(&c->to->arena, copy[i].n ? from->v.strings[i].p : "",
                                         copy[i].n);
            c->ok = c->ok && copy[i].p;
        }
        to->v.strings = copy;
        break;
    }
    case NORI__ATTR_TENSOR:
    case NORI__ATTR_SPARSE:
        retain(c, from->v.tensor);
        break;
    case NORI__ATTR_TENSORS: {
        to->v.tensors = array(c, n, sizeof(*to->v.tensors));
        for (size_t i = 0; c->ok && i < n; i++) {
            to->v.tensors[i] = from->v.tensors[i];
            retain(c, from->v.tensors[i]);
        }
        break;
    }
    case NORI__ATTR_GRAPH:
        to->v.graph = graph_of(c, from->v.graph);
        if (to->v.graph) {
            to->v.graph->parent_node = node;
        }
        break;
    case NORI__ATTR_GRAPHS: {
        to->v.graphs = array(c, n, sizeof(*to->v.graphs));
        for (size_t i = 0; c->ok && i < n; i++) {
            to->v.graphs[i] = graph_of(c, from->v.graphs[i]);
            if (to->v.graphs[i]) {
                to->v.graphs[i]->parent_node = node;
            }
        }
        break;
    }
    case NORI__ATTR_TYPE: {
        nori__type *type = array(c, 1, sizeof(*type));
        if (c->ok) {
            *type = copy_type(c, from->v.type);
        }
        to->v.type = type;
        break;
    }
    default:
        break;
    }
}

static void copy_nodes(copier *c, const nori__graph *from, nori__graph *to)
{
    for (const nori__node *n = from->first; c->ok && n; n = n->next) {
        nori__node *copy = nori__node_add(to);
        if (!copy) {
            c->ok = false;
            return;
        }
        copy->name = text(c, n->name);
        copy->op_type = text(c, n->op_type);
        copy->domain = text(c, n->domain);
        copy->overload = text(c, n->overload);
        copy->op = n->op;
        copy->version = n->version;
        copy->pb = n->pb;
        copy->inputs = copy_list(c, n->inputs, n->input_count);
        copy->outputs = copy_list(c, n->outputs, n->output_count);
        copy->input_count = n->input_count;
        copy->output_count = n->output_count;
        copy->attrs = array(c, n->attr_count, sizeof(*copy->attrs));
        for (uint32_t i = 0; c->ok && i < n->output_count; i++) {
            if (copy->outputs[i]) {
                copy->outputs[i]->producer = copy;
            }
        }
        for (uint32_t i = 0; c->ok && i < n->attr_count; i++) {
            copy_attr(c, &n->attrs[i], &copy->attrs[i], copy);
        }
        copy->attr_count = n->attr_count;
    }
    to->inputs = copy_list(c, from->inputs, from->input_count);
    to->outputs = copy_list(c, from->outputs, from->output_count);
    to->input_count = from->input_count;
    to->output_count = from->output_count;
}

static void copy_all(copier *c)
{
    nori__ir *to = c->to;
    to->opsets = array(c, c->from->opset_count, sizeof(*to->opsets));
    for (size_t i = 0; c->ok && i < c->from->opset_count; i++) {
        to->opsets[i] = (nori__opset){text(c, c->from->opsets[i].domain),
                                      c->from->opsets[i].version};
    }
    to->opset_count = c->from->opset_count;
    to->ir_version = c->from->ir_version;
    to->pb = c->from->pb;
    to->fresh = c->from->fresh;
    for (const nori__graph *g = c->from->graphs; c->ok && g; g = g->next_graph) {
        nori__graph *copy = nori__graph_new(to, NULL);
        if (!copy || !nori__vec_push(&c->pairs, (void *)(uintptr_t)g) ||
            !nori__vec_push(&c->pairs, copy)) {
            c->ok = false;
            return;
        }
        copy_values(c, g, copy);
    }
    for (size_t i = 0; c->ok && i < c->pairs.count; i += 2) {
        const nori__graph *g = c->pairs.items[i];
        nori__graph *copy = c->pairs.items[i + 1];
        copy->parent = g->parent ? graph_of(c, g->parent) : NULL;
        copy_nodes(c, g, copy);
    }
    to->main = graph_of(c, c->from->main);
}

nori_status nori__ir_copy(const nori__ir *from, nori__ir **out, nori_error *err)
{
    *out = NULL;
    copier c = {.from = from, .to = nori__ir_new(from->allocator), .ok = true};
    if (!c.to) {
        return nori__no_memory(err);
    }
    size_t bytes = ((size_t)from->value_count + 1) * sizeof(*c.values);
    nori__vec_init(&c.pairs, from->allocator);
    c.values = nori__alloc_zero(from->allocator, bytes);
    c.ok = c.values != NULL;
    if (c.ok) {
        copy_all(&c);
    }
    nori__release(from->allocator, c.values, bytes);
    nori__vec_free(&c.pairs);
    if (!c.ok) {
        nori__ir_free(c.to);
        return nori__no_memory(err);
    }
    *out = c.to;
    return NORI_OK;
}
