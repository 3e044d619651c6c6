/* copy.c: copies of graphs: a whole ir, or the nodes of a body put in place of a call.
 *
 * Graphs are copied outer before inner from a growing list, so nesting costs no stack. Within a
 * graph all values come first; references then find their copy by the value's id, and what is not
 * copied (values around an inlined body) stands for itself. The file's
 * messages are shared, and so are tensors and names, which live as long as one of the irs does. A copy
 * into another ir shares no other memory with the first, which may be freed. */
#include "graph/internal.h"

typedef struct copier {
    nori__cloner *table;
    nori__ir *to;
    bool same_ir;               /* text and lists can be shared */
    const nori__inlining *what; /* NULL: the whole ir is copied */
    nori__vec pairs;            /* from, to, from, to ...: graphs */
    bool ok;
} copier;

/* Stands in the table for a formal input that the call leaves out. */
static nori__value absent;

void nori__cloner_init(nori__cloner *cloner, const nori_allocator *a)
{
    *cloner = (nori__cloner){.allocator = a};
}

void nori__cloner_free(nori__cloner *cloner)
{
    nori__release(cloner->allocator, cloner->values, cloner->capacity * sizeof(*cloner->values));
    cloner->values = NULL;
    cloner->capacity = 0;
}

static bool reserve(nori__cloner *cloner, size_t count)
{
    if (count <= cloner->capacity) {
        return true;
    }
    size_t capacity = cloner->capacity * 2 > count ? cloner->capacity * 2 : count, bytes;
    nori__value **grown = nori__mul_size(capacity, sizeof(*grown), &bytes)
                              ? nori__alloc_zero(cloner->allocator, bytes)
                              : NULL;
    if (!grown) {
        return false;
    }
    if (cloner->capacity > 0) {
        memcpy(grown, cloner->values, cloner->capacity * sizeof(*grown));
    }
    nori__cloner_free(cloner);
    cloner->values = grown;
    cloner->capacity = capacity;
    return true;
}

static nori__value *copy_of(const copier *c, nori__value *v)
{
    nori__value *copy = v && v->id < c->table->capacity ? c->table->values[v->id] : NULL;
    return copy == &absent ? NULL : copy ? copy : v;
}

/* The name of a dimension: inference makes some up, which are not among the ir's words. */
static const char *dim_name(copier *c, const char *s)
{
    const char *copy = s && !c->same_ir ? nori__arena_text(&c->to->arena, s) : s;
    c->ok = c->ok && (copy || !s);
    return copy;
}

static void *array(copier *c, size_t count, size_t size)
{
    void *p = nori__arena_array(&c->to->arena, count, size);
    c->ok = c->ok && p;
    return p;
}

static void *list(copier *c, const void *from, size_t count, size_t size)
{
    void *p = array(c, count, size);
    if (p && count > 0) {
        memcpy(p, from, count * size);
    }
    return p;
}

/* ---- values ---- */

static nori__type copy_type(copier *c, const nori__type *from)
{
    nori__type first = *from, *to = &first;
    while (!c->same_ir && c->ok) {
        if (to->rank > 0 && to->dims) {
            const nori__dim *dims = to->dims;
            to->dims = list(c, dims, (size_t)to->rank, sizeof(*dims));
            for (int d = 0; c->ok && d < to->rank; d++) {
                to->dims[d].name = dim_name(c, dims[d].name);
            }
        }
        if (!to->of) {
            break;
        }
        nori__type *of = list(c, to->of, 1, sizeof(*of));
        to->of = of;
        to = of;
    }
    return first;
}

static void fill_value(copier *c, const nori__value *v, nori__graph *to, nori__value *copy)
{
    if (!copy) {
        c->ok = false;
        return;
    }
    copy->type = copy_type(c, &v->type);
    bool same = v->declared.dims == v->type.dims && !v->type.of && !v->declared.of;
    copy->declared = same ? v->declared : copy_type(c, &v->declared);
    copy->declared.dims = same ? copy->type.dims : copy->declared.dims;
    copy->constant = v->constant;
    copy->flags = v->flags;
    if (c->what && to == c->what->call_graph) {
        copy->flags &= NORI__VALUE_INITIALIZER;
    }
    copy->pb = v->pb;
    c->table->values[v->id] = copy;
}

static void copy_value(copier *c, const nori__value *v, nori__graph *to)
{
    nori__value *copy = NULL;
    if (c->what && to == c->what->call_graph) {
        const char *name =
            nori__arena_printf(&c->to->shared->arena, "%s/%s", c->what->prefix, v->name);
        copy = name ? nori__value_new(to, name) : NULL;
    } else {
        copy = nori__value_add(to, v->name);
    }
    fill_value(c, v, to, copy);
}

/* All values of an ir that is copied whole: in the list's own order, under their own ids. */
static void copy_all_values(copier *c, const nori__graph *from, nori__graph *to)
{
    nori__value **end = &to->values;
    for (const nori__value *v = from->values; c->ok && v; v = v->next) {
        nori__value *copy = nori__value_make(to, v->name);
        fill_value(c, v, to, copy);
        if (copy) { /* made as the first of the list: it belongs at its end */
            to->values = copy->next ? copy->next : copy;
            copy->next = NULL;
            copy->id = v->id;
            *end = copy;
            end = &copy->next;
        }
    }
}

/* The list is newest first; copied backwards, so that ids keep their order. */
static void copy_values(copier *c, const nori__graph *from, nori__graph *to)
{
    nori__vec order;
    nori__vec_init(&order, c->to->allocator);
    for (nori__value *v = from->values; c->ok && v; v = v->next) {
        c->ok = nori__vec_push(&order, v);
    }
    for (size_t i = order.count; c->ok && i-- > 0;) {
        const nori__value *v = order.items[i];
        if (!c->table->values[v->id]) {
            copy_value(c, v, to);
        }
    }
    nori__vec_free(&order);
}

/* ---- nodes ---- */

static void fill_list(copier *c, nori__value *const *from, size_t n, bool use, nori__value **copy)
{
    for (size_t i = 0; i < n; i++) {
        copy[i] = copy_of(c, from[i]);
        if (use && copy[i]) {
            copy[i]->uses++;
        }
    }
}

static nori__value **copy_list(copier *c, nori__value *const *from, size_t n, bool use)
{
    nori__value **copy = array(c, n, sizeof(*copy));
    if (copy) {
        fill_list(c, from, n, use, copy);
    }
    return copy;
}

static nori__graph *begin_graph(copier *c, const nori__graph *from, nori__graph *parent,
                                nori__node *parent_node)
{
    nori__graph *g = nori__graph_new(c->to, parent, parent_node);
    if (!g || !nori__vec_push(&c->pairs, (void *)(uintptr_t)from) ||
        !nori__vec_push(&c->pairs, g)) {
        c->ok = false;
        return NULL;
    }
    g->pb = from->pb;
    return g;
}

/* The attribute that a function's attribute stands for; NULL when nobody gave it. */
static const nori__attr *resolve_ref(const copier *c, const nori__attr *a)
{
    if (!a->ref || !c->what || !c->what->call) {
        return a;
    }
    const nori__attr *given = nori__attr_find(c->what->call, a->ref);
    for (size_t i = 0; !given && i < c->what->n_defaults; i++) {
        given = nori__same(c->what->defaults[i].name, a->ref) ? &c->what->defaults[i] : NULL;
    }
    return given;
}

static void copy_payload(copier *c, const nori__attr *from, nori__attr *to, nori__node *node)
{
    size_t n = from->count;
    switch (from->kind) {
    case NORI__ATTR_GRAPH:
        to->v.graph = begin_graph(c, from->v.graph, node->graph, node);
        return;
    case NORI__ATTR_GRAPHS:
        to->v.graphs = array(c, n, sizeof(*to->v.graphs));
        for (size_t i = 0; c->ok && i < n; i++) {
            to->v.graphs[i] = begin_graph(c, from->v.graphs[i], node->graph, node);
        }
        return;
    default:
        break;
    }
    if (c->same_ir) {
        return;
    }
    switch (from->kind) {
    case NORI__ATTR_STRING:
        to->v.s = nori__arena_copy(&c->to->arena, from->v.s, n);
        c->ok = c->ok && to->v.s;
        break;
    case NORI__ATTR_INTS:
        to->v.ints = list(c, from->v.ints, n, sizeof(*from->v.ints));
        break;
    case NORI__ATTR_FLOATS:
        to->v.floats = list(c, from->v.floats, n, sizeof(*from->v.floats));
        break;
    case NORI__ATTR_STRINGS: {
        nori__str *copy = array(c, n, sizeof(*copy));
        for (size_t i = 0; c->ok && i < n; i++) {
            copy[i].n = from->v.strings[i].n;
            copy[i].p = nori__arena_copy(&c->to->arena, from->v.strings[i].p, copy[i].n);
            c->ok = copy[i].p != NULL;
        }
        to->v.strings = copy;
        break;
    }
    case NORI__ATTR_TENSORS:
    case NORI__ATTR_SPARSES:
        to->v.tensors = list(c, from->v.tensors, n, sizeof(*from->v.tensors));
        break;
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

static void copy_attrs(copier *c, const nori__node *from, nori__node *to)
{
    for (uint32_t i = 0; c->ok && i < from->attr_count; i++) {
        const nori__attr *a = resolve_ref(c, &from->attrs[i]);
        if (!a) {
            continue; /* an optional attribute of the function that nobody gave */
        }
        nori__attr *copy = &to->attrs[to->attr_count++];
        *copy = *a;
        copy->name = from->attrs[i].name;
        if (!a->ref) {
            copy_payload(c, a, copy, to);
        }
    }
}

static void copy_node(copier *c, const nori__node *n, nori__graph *to, nori__node *before)
{
    nori__node *copy =
        nori__node_make(c->to, n->input_count, n->output_count, n->attr_count);
    if (!copy) {
        c->ok = false;
        return;
    }
    bool inlined = c->what && to == c->what->call_graph;
    copy->name = inlined
                     ? nori__arena_printf(&c->to->shared->arena, "%s/%s", c->what->prefix, n->name)
                     : n->name;
    copy->op_type = n->op_type;
    copy->domain = n->domain;
    copy->overload = n->overload;
    copy->op = n->op;
    copy->version = n->version;
    copy->schema = n->schema;
    copy->pb = n->pb;
    copy->id = c->to->node_count++;
    fill_list(c, n->inputs, n->input_count, true, copy->inputs);
    fill_list(c, n->outputs, n->output_count, false, copy->outputs);
    c->ok = c->ok && copy->name;
    if (!c->ok) {
        return;
    }
    copy->input_count = n->input_count;
    copy->output_count = n->output_count;
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (copy->outputs[i]) {
            copy->outputs[i]->producer = copy;
        }
    }
    nori__node_link(to, before, copy);
    copy_attrs(c, n, copy);
}

/* Graphs pushed by begin_graph, and those that their nodes push. */
static void copy_graphs(copier *c, size_t first)
{
    for (size_t i = first; c->ok && i < c->pairs.count; i += 2) {
        const nori__graph *from = c->pairs.items[i];
        nori__graph *to = c->pairs.items[i + 1];
        to->name = from->name;
        /* Most copies are compiled and nobody asks them for names: entered when somebody does. */
        c->ok = c->ok && nori__map_reserve(&to->names, from->value_count);
        to->names_wait = true;
        (c->what ? copy_values : copy_all_values)(c, from, to);
        for (const nori__node *n = from->first; c->ok && n; n = n->next) {
            copy_node(c, n, to, NULL);
        }
        to->inputs = copy_list(c, from->inputs, from->input_count, false);
        to->outputs = copy_list(c, from->outputs, from->output_count, true);
        to->input_count = c->ok ? from->input_count : 0;
        to->output_count = c->ok ? from->output_count : 0;
    }
}

/* ---- whole ----  */

static void copy_ir(copier *c, const nori__ir *from)
{
    nori__ir *to = c->to;
    to->opsets = array(c, from->opset_count, sizeof(*to->opsets));
    for (size_t i = 0; c->ok && i < from->opset_count; i++) {
        to->opsets[i] = from->opsets[i];
        to->opset_count++;
    }
    to->ir_version = from->ir_version;
    to->custom = from->custom;
    to->pb = from->pb;
    to->external = from->external;
    to->fresh = from->fresh;
    to->loose = from->loose;
    memcpy(to->met, from->met, sizeof(to->met));
    to->main = to->graphs = begin_graph(c, from->main, NULL, NULL);
    copy_graphs(c, 0);
    to->value_count = from->value_count;
}

nori_status nori__ir_copy(const nori__ir *from, nori__ir **out, nori_error *err)
{
    *out = NULL;
    nori__cloner table;
    nori__cloner_init(&table, from->allocator);
    copier c = {.table = &table, .to = nori__ir_new(from->allocator, from->shared), .ok = true};
    if (!c.to) {
        return nori__no_memory(err);
    }
    nori__vec_init(&c.pairs, from->allocator);
    c.ok = reserve(&table, from->value_count);
    if (c.ok) {
        copy_ir(&c, from);
    }
    nori__cloner_free(&table);
    nori__vec_free(&c.pairs);
    if (!c.ok) {
        nori__ir_free(c.to);
        return nori__no_memory(err);
    }
    *out = c.to;
    return NORI_OK;
}

/* ---- inlining ---- */

static void forget(nori__cloner *table, const nori__graph *g)
{
    for (const nori__value *v = g->values; v; v = v->next) {
        table->values[v->id] = NULL;
    }
}

/* The body's inputs become what the call gives; outputs that its nodes make, what it wants. */
static void bind(copier *c, const nori__inlining *what)
{
    const nori__graph *body = what->body;
    nori__value **values = c->table->values;
    for (uint32_t i = 0; i < body->input_count; i++) {
        nori__value *v = i < what->n_in ? what->in[i] : NULL;
        values[body->inputs[i]->id] = v ? v : &absent;
    }
    for (uint32_t i = 0; i < body->output_count && i < what->n_out; i++) {
        const nori__value *v = body->outputs[i];
        if (what->out[i] && v->graph == body && v->producer && !values[v->id]) {
            values[v->id] = what->out[i];
        }
    }
}

/* An output that is an input, a constant or another output needs a node that hands it on. */
static nori_status pass_through(copier *c, const nori__inlining *what, nori__node *at,
                                nori_error *err)
{
    const nori__graph *body = what->body;
    for (uint32_t i = 0; i < body->output_count && i < what->n_out; i++) {
        nori__value *v = copy_of(c, body->outputs[i]), *out = what->out[i];
        if (!out || v == out) {
            continue;
        }
        if (!v) {
            return nori__fail(err, NORI_ERROR_MODEL,
                              "output '%.200s' of '%.200s' is an input that the call leaves out",
                              body->outputs[i]->name, body->name);
        }
        if (!nori__node_new(at->graph, at, "", "Identity", &v, 1, &out, 1)) {
            return nori__no_memory(err);
        }
    }
    return NORI_OK;
}

nori_status nori__graph_inline(nori__cloner *cloner, nori__node *at, const nori__inlining *given,
                               nori_error *err)
{
    nori__inlining what = *given;
    what.call_graph = at->graph;
    copier c = {.table = cloner, .to = at->graph->ir, .same_ir = true, .what = &what, .ok = true};
    if (!reserve(cloner, c.to->value_count)) {
        return nori__no_memory(err);
    }
    nori__vec_init(&c.pairs, c.to->allocator);
    bind(&c, &what);
    copy_values(&c, what.body, at->graph);
    for (const nori__node *n = what.body->first; c.ok && n; n = n->next) {
        copy_node(&c, n, at->graph, at);
    }
    copy_graphs(&c, 0);
    nori_status status = c.ok ? pass_through(&c, &what, at, err) : nori__no_memory(err);
    forget(cloner, what.body);
    for (size_t i = 0; i < c.pairs.count; i += 2) {
        forget(cloner, c.pairs.items[i]);
    }
    nori__vec_free(&c.pairs);
    return status;
}
