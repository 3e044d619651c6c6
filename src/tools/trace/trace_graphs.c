/* trace_graphs.c: attributes that are graphs (of If, Loop, Scan), given as text: which values of the trace
 * they read, and under which names. */
#include "graph/text_form.h"
#include "tools/trace/tracer.h"

/* Graphs around the one at hand, innermost first. Nesting is bounded where the text was read. */
typedef struct scope {
    const nori__pb_graph *g;
    const struct scope *outer;
} scope;

static bool same(nori__str a, nori__str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static bool defined_in(const nori__pb_graph *g, nori__str name)
{
    for (size_t i = 0; i < g->inputs.count; i++) {
        if (same(g->inputs.items[i].name, name)) {
            return true;
        }
    }
    for (size_t i = 0; i < g->initializers.count; i++) {
        if (same(g->initializers.items[i].name, name)) {
            return true;
        }
    }
    for (size_t i = 0; i < g->nodes.count; i++) {
        const nori__pb_node *n = &g->nodes.items[i];
        for (size_t k = 0; k < n->outputs.count; k++) {
            if (same(n->outputs.items[k], name)) {
                return true;
            }
        }
    }
    return false;
}

static bool defined(const scope *s, nori__str name)
{
    bool found = false;
    for (; s && !found; s = s->outer) {
        found = defined_in(s->g, name);
    }
    return found;
}

typedef struct walk {
    nori_tracer *t;
    nori__recorded *op;
    bool rename; /* else: gather */
} walk;

/* A name that comes from around the graph. */
static bool outer_name(walk *w, nori__str *name)
{
    nori_tracer *t = w->t;
    nori_traced *v = nori__map_get_n(&t->names, name->p, name->n);
    if (w->rename) { /* values may have got another name since */
        *name = v ? nori__str_of(v->name) : *name;
        return true;
    }
    if (!v) {
        return nori__tracer_stop(t, NORI_ERROR_ARGUMENT,
                                 "%s: a graph reads \"%.*s\", which neither it nor the trace has", w->op->op,
                                 (int)(name->n < 200 ? name->n : 200), name->p);
    }
    for (size_t i = 0; i < w->op->n_captures; i++) {
        if (same(w->op->captures[i].name, *name)) {
            return true;
        }
    }
    nori__capture *more = nori__arena_array(&t->arena, w->op->n_captures + 1, sizeof(*more));
    if (!more) {
        return nori__tracer_stop(t, NORI_ERROR_MEMORY, "out of memory");
    }
    if (w->op->n_captures) {
        memcpy(more, w->op->captures, w->op->n_captures * sizeof(*more));
    }
    more[w->op->n_captures++] = (nori__capture){.name = *name, .value = v};
    w->op->captures = more;
    return true;
}

static bool walk_graph(walk *w, nori__pb_graph *g, const scope *outer)
{
    const scope here = {g, outer};
    bool ok = true;
    for (size_t i = 0; ok && i < g->nodes.count; i++) {
        nori__pb_node *n = &g->nodes.items[i];
        for (size_t k = 0; ok && k < n->inputs.count; k++) {
            nori__str *name = &n->inputs.items[k];
            ok = name->n == 0 || defined(&here, *name) || outer_name(w, name);
        }
        for (size_t k = 0; ok && k < n->attrs.count; k++) {
            nori__pb_attr *a = &n->attrs.items[k];
            ok = !a->g || walk_graph(w, a->g, &here);
            for (size_t j = 0; ok && j < a->graphs.count; j++) {
                ok = walk_graph(w, a->graphs.items[j], &here);
            }
        }
    }
    for (size_t i = 0; ok && i < g->outputs.count; i++) {
        nori__str *name = &g->outputs.items[i].name;
        ok = defined(&here, *name) || outer_name(w, name);
    }
    return ok;
}

bool nori__trace_graph_attr(nori_tracer *t, nori__recorded *op, const char *text, nori__pb_attr *pb)
{
    const char *own = nori__arena_text(&t->arena, text);
    walk w = {.t = t, .op = op};
    if (!own) {
        return nori__tracer_stop(t, NORI_ERROR_MEMORY, "out of memory");
    }
    nori_status s = nori__graph_from_text(&t->arena, own, strlen(own), &pb->g, t->err);
    if (s != NORI_OK) {
        t->status = s;
        nori__where(t->err, "attribute %.*s of %s", (int)pb->name.n, pb->name.p, op->op);
        return false;
    }
    return walk_graph(&w, pb->g, NULL);
}

void nori__trace_rename(nori_tracer *t, nori__recorded *op)
{
    walk w = {.t = t, .op = op, .rename = true};
    for (size_t i = 0; i < op->n_attrs; i++) {
        if (op->attrs[i].g) {
            walk_graph(&w, op->attrs[i].g, NULL);
        }
    }
}
