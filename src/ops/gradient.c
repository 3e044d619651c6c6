/* gradient.c: Gradient of ai.onnx.preview.training, replaced by nodes that compute it.
 *
 * The operator names a value y of its graph and values xs (and zs, which are held); its inputs take
 * the places of xs and zs. First the nodes between them and y are copied in front of the operator, on
 * its inputs, unless its inputs are xs and zs themselves: then y is there already. When inference has
 * come past the copies, derivatives are added behind them, from y back to xs, operator by operator
 * (gradient_rules.c). All of that is ordinary ONNX: passes, providers and further Gradients see
 * nothing special. */
#include "ops/gradient.h"

#include "ops/upgrade.h"

/* ---- what rules ask ---- */

static bool tracked(const nori__grad *d, const nori__value *v)
{
    return v && v->id < d->values && d->depends[v->id];
}

bool nori__grad_wants(const nori__grad *d, const nori__node *n, uint32_t input)
{
    return d->status == NORI_OK && input < n->input_count && tracked(d, n->inputs[input]);
}

nori__value *nori__grad_out(const nori__grad *d, const nori__node *n, uint32_t output)
{
    const nori__value *v = output < n->output_count ? n->outputs[output] : NULL;
    return tracked(d, v) ? d->of[v->id] : NULL;
}

void nori__grad_give(nori__grad *d, nori__node *n, uint32_t input, nori__value *derivative)
{
    if (d->status == NORI_OK && derivative && nori__grad_wants(d, n, input)) {
        nori__value **of = &d->of[n->inputs[input]->id];
        *of = *of ? nori__emit(d, "Add", *of, derivative, NULL) : derivative;
    }
}

void nori__grad_refuse(nori__grad *d, const nori__node *n, const char *why)
{
    if (d->status == NORI_OK) {
        char path[256];
        nori__node_path(n, path, sizeof(path));
        d->status = nori__fail(d->err, NORI_ERROR_UNSUPPORTED, "no derivative of node %s: %s", path,
                               why);
    }
}

/* ---- first: y in terms of the inputs ---- */

static nori__value *named(const nori__node *n, const char *attr, const nori__str *name,
                          nori_error *err)
{
    char text[256];
    nori__value *v = NULL;
    if (name->n > 0 && name->n < sizeof(text)) {
        memcpy(text, name->p, name->n);
        text[name->n] = 0;
        v = nori__map_get(nori__graph_names(n->graph), text);
    }
    if (!v) {
        nori__fail(err, NORI_ERROR_MODEL, "%s of Gradient names '%.*s', which is no value of its graph",
                   attr, (int)(name->n < 200 ? name->n : 200), name->n ? name->p : "");
    }
    return v;
}

/* The values xs, then zs, name: as many as there are inputs. */
static nori_status leaves(const nori__node *n, nori__value **out, nori_error *err)
{
    uint32_t count = 0;
    for (int list = 0; list < 2; list++) {
        const char *attr = list ? "zs" : "xs";
        const nori__attr *a = nori__attr_find(n, attr);
        for (size_t i = 0; a && a->kind == NORI__ATTR_STRINGS && i < a->count; i++) {
            if (count == n->input_count || !n->inputs[count]) {
                return nori__fail(err, NORI_ERROR_MODEL,
                                  "Gradient has %u inputs, xs and zs name more values",
                                  n->input_count);
            }
            out[count] = named(n, attr, &a->v.strings[i], err);
            if (!out[count++]) {
                return NORI_ERROR_MODEL;
            }
        }
    }
    return count == n->input_count
               ? NORI_OK
               : nori__fail(err, NORI_ERROR_MODEL, "Gradient has %u inputs, xs and zs name %u values",
                            n->input_count, count);
}

static bool comes_before(const nori__node *first, const nori__node *second)
{
    const nori__node *n = first->graph == second->graph ? first : NULL;
    while (n && n != second) {
        n = n->next;
    }
    return n != NULL;
}

/* Marks, by id of the value, y and all it is made of down to the leaves. */
static bool mark(const nori__graph *g, nori__value *y, uint8_t *marks, const nori_allocator *a)
{
    nori__vec open;
    nori__vec_init(&open, a);
    bool ok = nori__vec_push(&open, y);
    while (ok && open.count > 0) {
        const nori__value *v = open.items[--open.count];
        if (marks[v->id] || !v->producer || v->graph != g) {
            continue;
        }
        marks[v->id] = 1;
        for (uint32_t i = 0; ok && i < v->producer->input_count; i++) {
            nori__value *in = v->producer->inputs[i];
            ok = !in || nori__vec_push(&open, in);
        }
    }
    nori__vec_free(&open);
    return ok;
}

enum { LEAF = 2 };

static nori_status clone_node(nori__node *at, const nori__node *from, nori__value **to,
                              nori_error *err)
{
    nori__graph *g = at->graph;
    nori__arena *arena = &g->ir->arena;
    nori__value **in = nori__arena_array(arena, from->input_count + 1u, sizeof(*in));
    nori__value **out = nori__arena_array(arena, from->output_count + 1u, sizeof(*out));
    nori__attr *attrs = nori__arena_array(arena, from->attr_count + 1u, sizeof(*attrs));
    uint32_t state = 0;
    if (nori__node_subgraph(from, &state)) {
        char path[256];
        nori__node_path(from, path, sizeof(path));
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "Gradient passes node %s, which has a subgraph",
                          path);
    }
    for (uint32_t i = 0; in && i < from->input_count; i++) {
        in[i] = from->inputs[i];
        if (in[i] && in[i]->graph == g && to[in[i]->id]) {
            in[i] = to[in[i]->id];
        }
    }
    bool ok = in && out && attrs;
    for (uint32_t i = 0; ok && i < from->output_count; i++) {
        out[i] = from->outputs[i] ? nori__value_new(g, NULL) : NULL;
        ok = out[i] || !from->outputs[i];
        if (out[i] && !to[from->outputs[i]->id]) { /* a leaf keeps what was given for it */
            to[from->outputs[i]->id] = out[i];
        }
    }
    nori__node *n = ok ? nori__node_new(g, at, from->domain, from->op_type, in, from->input_count, out,
                                        from->output_count)
                       : NULL;
    if (!n) {
        return nori__no_memory(err);
    }
    if (from->attr_count > 0) { /* the list is the copy's own, as upgrading edits it */
        memcpy(attrs, from->attrs, from->attr_count * sizeof(*attrs));
    }
    n->attrs = attrs;
    n->attr_count = from->attr_count;
    n->op = from->op;
    n->version = from->version;
    n->schema = from->schema;
    return NORI_OK;
}

static nori_status clone_nodes(nori__node *at, nori__value *const *leaf, nori__value **y,
                               nori_error *err)
{
    nori__graph *g = at->graph;
    const nori_allocator *a = g->ir->allocator;
    uint32_t count = g->ir->value_count;
    nori__value **to = nori__alloc_zero(a, count * sizeof(*to));
    uint8_t *marks = nori__alloc_zero(a, count);
    nori_status s = to && marks ? NORI_OK : nori__no_memory(err);
    for (uint32_t i = 0; s == NORI_OK && i < at->input_count; i++) {
        to[leaf[i]->id] = at->inputs[i];
        marks[leaf[i]->id] = LEAF;
    }
    if (s == NORI_OK && !mark(g, *y, marks, a)) {
        s = nori__no_memory(err);
    }
    for (nori__node *n = g->first, *next; s == NORI_OK && n; n = next) {
        bool needed = false;
        next = n->next;
        for (uint32_t i = 0; i < n->output_count; i++) {
            needed = needed || (n->outputs[i] && n->outputs[i]->id < count &&
                                marks[n->outputs[i]->id] == 1);
        }
        if (needed && n == at) {
            s = nori__fail(err, NORI_ERROR_MODEL, "Gradient is asked for a value made of its own output");
        } else if (needed) {
            s = clone_node(at, n, to, err);
        }
    }
    if (s == NORI_OK && to[(*y)->id]) {
        *y = to[(*y)->id];
    }
    nori__release(a, to, count * sizeof(*to));
    nori__release(a, marks, count);
    return s;
}

/* Makes y an input, behind the others; copied: it lies behind nodes that are new. */
static nori_status bring_y(nori__node *n, bool *copied, nori_error *err)
{
    const nori__attr *attr = nori__attr_find(n, "y");
    nori__value **leaf = nori__arena_array(&n->graph->ir->arena, n->input_count + 1u, sizeof(*leaf));
    if (!leaf) {
        return nori__no_memory(err);
    }
    if (!attr || attr->kind != NORI__ATTR_STRING) {
        return nori__fail(err, NORI_ERROR_MODEL, "Gradient needs the attribute y");
    }
    NORI__TRY(leaves(n, leaf, err));
    nori__value *y = named(n, "y", &(nori__str){attr->v.s, attr->count}, err);
    if (!y) {
        return NORI_ERROR_MODEL;
    }
    bool there = !y->producer || comes_before(y->producer, n);
    for (uint32_t i = 0; i < n->input_count; i++) {
        there = there && n->inputs[i] == leaf[i];
    }
    if (!there) {
        NORI__TRY(clone_nodes(n, leaf, &y, err));
    }
    *copied = !there;
    nori__node_drop_attr(n, "y"); /* from now on a number: the input that is y */
    return nori__node_set_int(n, "y", n->input_count) && nori__node_set_input(n, n->input_count, y)
               ? NORI_OK
               : nori__no_memory(err);
}

/* ---- then: back from y ---- */

static bool is_float(const nori__value *v)
{
    return v->type.kind == NORI_KIND_TENSOR && nori__type_is_float((nori_type)v->type.elem);
}

/* Whether v is one of xs or zs: nothing goes back beyond it. */
static bool is_leaf(const nori__grad *d, const nori__value *v)
{
    for (uint32_t i = 0; i + 1 < d->at->input_count; i++) {
        if (d->at->inputs[i] == v) {
            return true;
        }
    }
    return false;
}

/* Which values depend on the first n inputs, by way of floating-point numbers. */
static void mark_dependent(nori__grad *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        d->depends[d->at->inputs[i]->id] = true;
    }
    for (const nori__node *m = d->graph->first; m != d->at; m = m->next) {
        bool any = false;
        for (uint32_t i = 0; i < m->input_count; i++) {
            any = any || tracked(d, m->inputs[i]);
        }
        for (uint32_t i = 0; any && i < m->output_count; i++) {
            if (m->outputs[i] && is_float(m->outputs[i]) && !is_leaf(d, m->outputs[i])) {
                d->depends[m->outputs[i]->id] = true;
            }
        }
    }
}

static void walk_back(nori__grad *d)
{
    nori__node *m = d->at->prev;
    nori__value *y = d->at->inputs[d->at->input_count - 1];
    if (!tracked(d, y)) {
        return;
    }
    d->of[y->id] = nori__emit_expand(d, nori__emit_number(d, 1, y), y);
    for (; d->status == NORI_OK && m; m = m->prev) {
        bool any = false;
        for (uint32_t i = 0; i < m->output_count; i++) {
            any = any || (nori__grad_out(d, m, i) && !is_leaf(d, m->outputs[i]));
        }
        if (!any) {
            continue;
        }
        nori__grad_rule rule = nori__grad_rule_find(m);
        if (!rule) {
            nori__grad_refuse(d, m, "none is known for its operator");
            return;
        }
        rule(d, m);
    }
}

/* The outputs get their producers; the Gradient itself goes. */
static nori_status finish(nori__grad *d, uint32_t n, nori_error *err)
{
    nori__node *gradient = d->at;
    nori__value **x = gradient->inputs, **out = gradient->outputs;
    nori__node *behind = gradient->next;
    nori__value *result[2];
    for (uint32_t i = 0; i < gradient->output_count; i++) {
        nori__value *of = d->of[x[i]->id];
        if (!of) { /* y does not depend on it */
            of = nori__emit_expand(d, nori__emit_number(d, 0, x[i]), x[i]);
            d->of[x[i]->id] = of;
        }
    }
    NORI__TRY(d->status);
    uint32_t count = gradient->output_count;
    if (count > n) {
        return nori__fail(err, NORI_ERROR_MODEL, "Gradient has %u outputs for %u xs", count, n);
    }
    nori__node_remove(gradient);
    for (uint32_t i = 0; i < count; i++) {
        result[0] = d->of[x[i]->id];
        nori__node *copy = !out[i] ? NULL
                                   : nori__node_new(d->graph, behind, "", "Identity", result, 1,
                                                    &out[i], 1);
        if (out[i] && !copy) {
            return nori__no_memory(err);
        }
        if (copy) {
            nori__node_resolve(copy);
        }
    }
    return NORI_OK;
}

static nori_status differentiate(nori__node *n, nori_error *err)
{
    const nori_allocator *a = n->graph->ir->allocator;
    const nori__attr *xs = nori__attr_find(n, "xs");
    uint32_t count = xs && xs->kind == NORI__ATTR_STRINGS ? (uint32_t)xs->count : 0;
    nori__grad d = {.graph = n->graph, .at = n, .values = n->graph->ir->value_count,
                    .status = NORI_OK, .err = err};
    if (count == 0 || n->output_count > count || count >= n->input_count ||
        nori__attr_i(n, "y", -1) + 1 != n->input_count) {
        return nori__fail(err, NORI_ERROR_MODEL, "Gradient has %u outputs for %u xs", n->output_count,
                          count);
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (!n->inputs[i]) {
            return nori__fail(err, NORI_ERROR_MODEL, "input %u of Gradient is absent", i);
        }
    }
    d.of = nori__alloc_zero(a, d.values * sizeof(*d.of));
    d.depends = nori__alloc_zero(a, d.values * sizeof(*d.depends));
    nori_status s = d.of && d.depends ? NORI_OK : nori__no_memory(err);
    if (s == NORI_OK) {
        mark_dependent(&d, count);
        walk_back(&d);
        s = d.status;
    }
    if (s == NORI_OK) {
        s = finish(&d, count, err);
    }
    nori__release(a, d.of, d.values * sizeof(*d.of));
    nori__release(a, d.depends, d.values * sizeof(*d.depends));
    return s;
}

nori_status nori__upgrade_gradient(nori__node *n, nori_error *err)
{
    bool copied = false;
    if (nori__attr_i(n, "y", -1) < 0) {
        NORI__TRY(bring_y(n, &copied, err));
    }
    return copied ? NORI_OK : differentiate(n, err); /* asked again when the copies are inferred */
}
