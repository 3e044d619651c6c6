/* twins.c: the walk that moves runs of a network onto another layout; see twins.h. */
#include "providers/cpu/twins.h"

nori__value *nori__twin_of(const nori__twins *t, const nori__value *v)
{
    nori__value *twin = v && v->id < t->values ? t->twin[v->id] : NULL;
    return twin && twin->graph == t->g ? twin : NULL;
}

/* A node of the domain "nori" in front of before. */
static nori__node *make(nori__twins *t, nori__node *before, const nori__op *op, const char *name,
                        nori__value *const *in, size_t n_in, nori__value *out)
{
    nori__node *n = nori__node_new(t->g, before, "nori", op->name, in, n_in, &out, 1);
    if (!n) {
        nori__no_memory(t->err);
        return NULL;
    }
    n->op = op;
    n->version = 1;
    n->name = name;
    return n;
}

/* A new twin of v, not made by anything yet. */
static nori__value *new_twin(nori__twins *t, const nori__value *v)
{
    nori__value *twin = nori__value_new(t->g, v->name);
    if (!twin || !t->kind->type(t->ir, v, &twin->type)) {
        nori__no_memory(t->err);
        return NULL;
    }
    t->twin[v->id] = twin;
    return twin;
}

nori__value *nori__twin_made(nori__twins *t, nori__value *v, nori__node *n)
{
    nori__value *twin = nori__twin_of(t, v);
    if (!twin && t->kind->fits(v) && v->id < t->values) {
        twin = new_twin(t, v);
        if (twin && !make(t, n, t->kind->from, "", &v, 1, twin)) {
            return NULL;
        }
    }
    return twin;
}

/* made stands for n from now on. */
static nori__node *replace(nori__node *made, nori__node *n)
{
    made->attrs = n->attrs;
    made->attr_count = n->attr_count;
    nori__node_remove(n);
    return made;
}

nori__node *nori__twin_put(nori__twins *t, nori__node *n, const nori__op *op,
                           nori__value *const *in, size_t n_in)
{
    nori__value *out = new_twin(t, n->outputs[0]);
    nori__node *made = out ? make(t, n, op, n->name, in, n_in, out) : NULL;
    return made ? replace(made, n) : NULL;
}

nori__node *nori__twin_put_same(nori__twins *t, nori__node *n, nori__value *const *in, size_t n_in)
{
    nori__value *out = new_twin(t, n->outputs[0]);
    nori__node *made =
        out ? nori__node_new(t->g, n, n->domain, n->op_type, in, n_in, &out, 1) : NULL;
    if (!made) {
        nori__no_memory(t->err);
        return NULL;
    }
    made->op = n->op;
    made->version = n->version;
    made->name = n->name;
    return replace(made, n);
}

/* Values that lost their producer and have plain readers left are made from their twins. */
static nori_status make_plain(nori__twins *t)
{
    for (nori__value *v = t->g->values; v; v = v->next) {
        nori__value *twin = v->id < t->values ? t->twin[v->id] : NULL;
        if (!twin || v->producer || v->uses == 0 || (v->flags & NORI__VALUE_INPUT) ||
            nori__value_as_is(v)) {
            continue;
        }
        nori__node *made = make(t, twin->producer->next, t->kind->to, "", &twin, 1, v);
        if (!made || !t->kind->to_attr(made, v)) {
            return nori__no_memory(t->err);
        }
    }
    return NORI_OK;
}

static nori_status walk(nori__twins *t)
{
    memset(t->twin, 0, t->values * sizeof(*t->twin));
    for (nori__node *n = t->g->first, *next; n; n = next) {
        next = n->next;
        if (n->output_count == 1 && t->kind->fits(n->outputs[0]) &&
            n->outputs[0]->id < t->values && n->input_count > 0 && n->inputs[0]) {
            t->kind->take(t, n);
        }
        if (t->err->status != NORI_OK) {
            return t->err->status;
        }
    }
    return make_plain(t);
}

nori_status nori__twins_walk(nori__ir *ir, const nori__twin_kind *kind, nori_error *err)
{
    nori_error own = {0};
    nori__twins t = {.ir = ir, .kind = kind, .values = ir->value_count, .err = err ? err : &own};
    size_t bytes = (t.values + 1) * sizeof(*t.twin);
    t.twin = nori__alloc(ir->allocator, bytes);
    if (!t.twin) {
        return nori__no_memory(err);
    }
    nori_status status = NORI_OK;
    for (t.g = ir->graphs; t.g && status == NORI_OK; t.g = t.g->next_graph) {
        status = walk(&t);
    }
    nori__release(ir->allocator, t.twin, bytes);
    return status;
}
