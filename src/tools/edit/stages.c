/* stages.c: the nodes of a main graph in order, what constants alone decide, and which nodes must go
 * before a boundary. */
#include "tools/edit/editing.h"

typedef struct looking {
    const nori__order *order;
    bool all; /* so far all that is read is constant */
} looking;

static bool is_made(void *user, nori__value *v)
{
    looking *l = user;
    l->all = l->all && l->order->made[v->id];
    return l->all;
}

/* An operator that is not known may do anything, one of chance something else in each part. */
static bool constant_node(const nori__order *o, nori__node *n)
{
    looking l = {o, true};
    if (!n->op || (n->op->flags & NORI__OP_RANDOM)) {
        return false;
    }
    nori__node_reads(n, is_made, &l);
    return l.all;
}

nori_status nori__order_find(const nori__ir *ir, nori__arena *arena, nori__order *o, nori_error *err)
{
    const nori__graph *g = ir->main;
    *o = (nori__order){.ir = ir};
    o->nodes = nori__arena_array(arena, (size_t)g->node_count + 1, sizeof(*o->nodes));
    o->constant = nori__arena_array(arena, (size_t)g->node_count + 1, sizeof(*o->constant));
    o->made = nori__arena_array(arena, (size_t)ir->value_count + 1, sizeof(*o->made));
    o->maker = nori__arena_array(arena, (size_t)ir->value_count + 1, sizeof(*o->maker));
    if (!o->nodes || !o->constant || !o->made || !o->maker) {
        return nori__no_memory(err);
    }
    for (const nori__value *v = g->values; v; v = v->next) {
        o->made[v->id] = nori__value_as_is(v) != NULL;
    }
    for (nori__node *n = g->first; n; n = n->next) {
        bool constant = constant_node(o, n);
        o->constant[o->count] = constant;
        o->nodes[o->count++] = n;
        for (uint32_t i = 0; i < n->output_count; i++) {
            if (n->outputs[i]) {
                o->maker[n->outputs[i]->id] = (uint32_t)o->count;
                o->made[n->outputs[i]->id] = constant;
            }
        }
    }
    return NORI_OK;
}

nori_status nori__order_whole(const nori__order *o, const bool *in, nori_error *err)
{
    for (size_t i = 0; i < o->count; i++) {
        if ((!in || in[i]) && nori__same(o->nodes[i]->op_type, "Gradient")) {
            char path[256];
            nori__node_path(o->nodes[i], path, sizeof(path));
            nori_status s = nori__fail(err, NORI_ERROR_UNSUPPORTED,
                                       "node %s goes back through nodes by the names of their values: it "
                                       "and they can only be in one model together", path);
            nori__hint(err, "cut the model before the gradient is added to it");
            return s;
        }
    }
    return NORI_OK;
}

/* ---- before a boundary ---- */

typedef struct closing {
    const nori__order *order;
    bool *first;
    const bool *at; /* by value: one of the boundary's */
    bool mark;      /* backwards: the node's makers are marked */
    bool reads_more;
    bool changed;
} closing;

static bool look(void *user, nori__value *v)
{
    closing *c = user;
    uint32_t maker = c->order->maker[v->id];
    if (maker == 0 || c->order->made[v->id]) {
        return true;
    }
    if (c->mark && !c->first[maker - 1]) {
        c->first[maker - 1] = c->changed = true;
    }
    c->reads_more = c->reads_more || (c->first[maker - 1] && !c->at[v->id]);
    return true;
}

nori_status nori__order_before(const nori__order *o, nori__arena *arena, nori__value *const *values,
                               size_t count, bool *first, nori_error *err)
{
    bool *at = nori__arena_array(arena, (size_t)o->ir->value_count + 1, sizeof(*at));
    if (!at) {
        return nori__no_memory(err);
    }
    closing c = {.order = o, .first = first, .at = at, .changed = true};
    for (size_t i = 0; i < count; i++) {
        at[values[i]->id] = true;
        if (o->maker[values[i]->id] > 0) {
            first[o->maker[values[i]->id] - 1] = true;
        }
    }
    while (c.changed) { /* mostly twice: each round adds nodes or is the last */
        c.changed = false;
        c.mark = true;
        for (size_t i = o->count; i-- > 0;) {
            if (first[i] && !o->constant[i]) {
                nori__node_reads(o->nodes[i], look, &c);
            }
        }
        c.mark = false;
        for (size_t i = 0; i < o->count; i++) {
            c.reads_more = false;
            if (!first[i] && !o->constant[i]) {
                nori__node_reads(o->nodes[i], look, &c);
            }
            if (c.reads_more) {
                first[i] = c.changed = true;
            }
        }
    }
    return NORI_OK;
}
