/* graph_shrink.c: the smallest graph that still shows a fault, by changes that leave a valid one. */
#include "graphs.h"

enum { CANDIDATES = 600 };

static bool same_name(nori__str a, nori__str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static bool is_read(const graph_case *c, nori__str name)
{
    const nori__pb_graph *g = &c->m.graph;
    for (size_t i = 0; i < g->outputs.count; i++) {
        if (same_name(g->outputs.items[i].name, name)) {
            return true;
        }
    }
    for (size_t i = 0; i < g->nodes.count; i++) {
        if (graphs_reads(&g->nodes.items[i], name)) {
            return true;
        }
    }
    return false;
}

#define CUT(list, at)                                                                              \
    (memmove(&(list).items[at], &(list).items[(at) + 1],                                           \
             ((list).count - (at)-1) * sizeof(*(list).items)),                                     \
     (list).count--)

void graph_case_tidy(graph_case *c)
{
    nori__pb_graph *g = &c->m.graph;
    for (size_t i = g->nodes.count; i > 0; i--) {
        bool used = false;
        const nori__pb_node *n = &g->nodes.items[i - 1];
        for (size_t k = 0; k < n->outputs.count; k++) {
            used = used || is_read(c, n->outputs.items[k]);
        }
        if (!used) {
            CUT(g->nodes, i - 1);
        }
    }
    for (size_t i = g->initializers.count; i > 0; i--) {
        if (!is_read(c, g->initializers.items[i - 1].name)) {
            CUT(g->initializers, i - 1);
        }
    }
    for (size_t i = g->inputs.count; i > 0; i--) {
        if (!is_read(c, g->inputs.items[i - 1].name)) {
            CUT(g->inputs, i - 1);
            nori_tensor_free(c->in[i - 1]);
            memmove(&c->in[i - 1], &c->in[i], (c->n_in - i) * sizeof(*c->in));
            c->in[--c->n_in] = NULL;
        }
    }
}

/* ---- what one step changes; false: nothing there to change ---- */

typedef struct step {
    graphs_values *all; /* of the case before the change */
    size_t a, b;
} step;
typedef bool (*change)(graph_case *c, const step *s);

static bool one_output(graph_case *c, const step *s)
{
    nori__pb_graph *g = &c->m.graph;
    if (s->b > 0 || g->outputs.count < 2 || s->a >= g->outputs.count) {
        return false;
    }
    g->outputs.items[0] = g->outputs.items[s->a];
    g->outputs.count = 1;
    return true;
}

/* A value of the graph becomes an input of it; false: there are too many. */
static bool feed(graph_case *c, const graphs_value *v)
{
    char shape[256] = "";
    size_t at = 0;
    if (!v || c->n_in == GRAPHS_INPUTS) {
        return false;
    }
    for (int d = 0; d < nori_tensor_rank(v->v[0]); d++) {
        at += (size_t)snprintf(shape + at, sizeof(shape) - at, "%s%lld", d ? " " : "",
                               (long long)nori_tensor_dims(v->v[0])[d]);
    }
    make_input(&c->m, &c->m.graph, v->name, nori_tensor_type(v->v[0]), shape);
    c->in[c->n_in++] = nori_tensor_retain(v->v[0]);
    return true;
}

/* What node a makes is fed instead. */
static bool fed(graph_case *c, const step *s)
{
    nori__pb_graph *g = &c->m.graph;
    if (s->b > 0 || s->a >= g->nodes.count || g->nodes.count < 2) {
        return false;
    }
    nori__pb_node n = g->nodes.items[s->a];
    for (size_t k = 0; k < n.outputs.count; k++) {
        const graphs_value *v = graphs_find(s->all, n.outputs.items[k]);
        if (n.outputs.items[k].n == 0 || !is_read(c, n.outputs.items[k])) {
            continue;
        }
        if (!feed(c, v)) {
            return false;
        }
    }
    CUT(g->nodes, s->a);
    for (size_t i = 0; i < g->outputs.count; i++) { /* what is fed is no result */
        for (size_t k = 0; k < n.outputs.count; k++) {
            if (same_name(g->outputs.items[i].name, n.outputs.items[k])) {
                return false;
            }
        }
    }
    return true;
}

static void rename_in(nori__pb_graph *g, nori__str from, nori__str to)
{
    for (size_t i = 0; i < g->outputs.count; i++) {
        g->outputs.items[i].name =
            same_name(g->outputs.items[i].name, from) ? to : g->outputs.items[i].name;
    }
    for (size_t i = 0; i < g->nodes.count; i++) {
        nori__pb_node *n = &g->nodes.items[i];
        for (size_t k = 0; k < n->inputs.count; k++) {
            n->inputs.items[k] = same_name(n->inputs.items[k], from) ? to : n->inputs.items[k];
        }
        for (size_t k = 0; k < n->attrs.count; k++) {
            if (n->attrs.items[k].g) {
                rename_in(n->attrs.items[k].g, from, to);
            }
        }
    }
}

/* A node of the bodies of node a is left out: its first output is its first input. */
static bool passed_inside(graph_case *c, const step *s)
{
    nori__pb_graph *g = &c->m.graph;
    size_t left = s->b;
    const nori__pb_node *outer = s->a < g->nodes.count ? &g->nodes.items[s->a] : NULL;
    for (size_t k = 0; outer && k < outer->attrs.count; k++) {
        nori__pb_graph *body = outer->attrs.items[k].g;
        if (body && left < body->nodes.count) {
            nori__pb_node n = body->nodes.items[left];
            if (n.inputs.count == 0 || n.inputs.items[0].n == 0 || n.outputs.items[0].n == 0) {
                return false;
            }
            CUT(body->nodes, left);
            rename_in(body, n.outputs.items[0], n.inputs.items[0]);
            return true;
        }
        left -= body ? body->nodes.count : 0;
    }
    return false;
}

/* The nodes of a branch (b) of node a stand in its place. */
static bool unfolded(graph_case *c, const step *s)
{
    nori__pb_graph *g = &c->m.graph;
    if (s->a >= g->nodes.count || s->b > 1) {
        return false;
    }
    nori__pb_node node = g->nodes.items[s->a];
    const nori__pb_attr *a = graphs_attr(&node, s->b ? "else_branch" : "then_branch");
    if (!a || !a->g || a->g->outputs.count != node.outputs.count) {
        return false;
    }
    size_t behind = g->nodes.count - s->a - 1, count = 0;
    nori__pb_node *kept = calloc(behind + 1, sizeof(*kept));
    assert_non_null(kept);
    memcpy(kept, &g->nodes.items[s->a + 1], behind * sizeof(*kept));
    g->nodes.count = s->a;
    for (; count < a->g->nodes.count; count++) {
        *MAKE_ADD(&c->m, g->nodes) = a->g->nodes.items[count];
    }
    for (size_t i = 0; i < a->g->initializers.count; i++) {
        *MAKE_ADD(&c->m, g->initializers) = a->g->initializers.items[i];
    }
    for (size_t i = 0; i < behind; i++) {
        *MAKE_ADD(&c->m, g->nodes) = kept[i];
    }
    free(kept);
    for (size_t i = 0; i < node.outputs.count; i++) {
        rename_in(g, node.outputs.items[i], a->g->outputs.items[i].name);
    }
    return true;
}

/* A named size of an input becomes the size that was fed. */
static bool fixed_size(graph_case *c, const step *s)
{
    nori__pb_graph *g = &c->m.graph;
    nori__pb_type *type = s->a < c->n_in ? g->inputs.items[s->a].type : NULL;
    nori__pb_dim *dim = type && type->shape && s->b < type->shape->dims.count
                            ? &type->shape->dims.items[s->b]
                            : NULL;
    if (!dim || dim->has_value) {
        return false;
    }
    dim->has_value = true;
    dim->has_param = false;
    dim->value = nori_tensor_dims(c->in[s->a])[s->b];
    return true;
}

/* Node a is left out: its first output is its input b, where type and shape allow. */
static bool passed(graph_case *c, const step *s)
{
    nori__pb_graph *g = &c->m.graph;
    if (s->a >= g->nodes.count || s->b >= g->nodes.items[s->a].inputs.count) {
        return false;
    }
    nori__str out = g->nodes.items[s->a].outputs.items[0],
              in = g->nodes.items[s->a].inputs.items[s->b];
    const graphs_value *x = graphs_find(s->all, in), *y = graphs_find(s->all, out);
    if (!x || !y || nori_tensor_type(x->v[0]) != nori_tensor_type(y->v[0]) ||
        nori_tensor_rank(x->v[0]) != nori_tensor_rank(y->v[0])) {
        return false;
    }
    for (size_t i = 0; i < g->outputs.count; i++) {
        if (same_name(g->outputs.items[i].name, out)) {
            return false;
        }
    }
    CUT(g->nodes, s->a);
    rename_in(g, out, in);
    return true;
}

static bool no_attribute(graph_case *c, const step *s)
{
    nori__pb_graph *g = &c->m.graph;
    if (s->a >= g->nodes.count || s->b >= g->nodes.items[s->a].attrs.count ||
        g->nodes.items[s->a].attrs.items[s->b].g) {
        return false;
    }
    CUT(g->nodes.items[s->a].attrs, s->b);
    return true;
}

static bool no_last_input(graph_case *c, const step *s)
{
    nori__pb_graph *g = &c->m.graph;
    if (s->b > 0 || s->a >= g->nodes.count || g->nodes.items[s->a].inputs.count < 2) {
        return false;
    }
    g->nodes.items[s->a].inputs.count--;
    return true;
}

/* The first elements of a tensor along every axis of size `from`, of which `to` are kept. */
static nori_tensor *shorter(const nori_tensor *t, int64_t from, int64_t to)
{
    int64_t dims[NORI_MAX_RANK], at[NORI_MAX_RANK] = {0};
    int rank = nori_tensor_rank(t);
    nori_tensor *made = NULL;
    bool changed = false;
    for (int d = 0; d < rank; d++) {
        dims[d] = nori_tensor_dims(t)[d] == from ? to : nori_tensor_dims(t)[d];
        changed = changed || dims[d] != nori_tensor_dims(t)[d];
    }
    size_t width = nori_type_bits(nori_tensor_type(t)) / 8;
    if (!changed || width == 0 ||
        nori_tensor_create(NULL, nori_tensor_type(t), rank, dims, &made, NULL) != NORI_OK) {
        return NULL;
    }
    for (int64_t i = 0; i < nori_tensor_elements(made); i++) {
        int64_t source = 0;
        for (int d = 0; d < rank; d++) {
            source = source * nori_tensor_dims(t)[d] + at[d];
        }
        memcpy((char *)nori_tensor_data(made) + (size_t)i * width,
               (const char *)nori_tensor_const_data(t) + (size_t)source * width, width);
        for (int d = rank - 1; d >= 0 && ++at[d] == dims[d]; d--) {
            at[d] = 0;
        }
    }
    return made;
}

/* Every size a + 2 becomes 1 (b 0), half (b 1) or one less (b 2), wherever it stands. */
static bool smaller_size(graph_case *c, const step *s)
{
    nori__pb_graph *g = &c->m.graph;
    int64_t from = (int64_t)s->a + 2, to = s->b == 0 ? 1 : s->b == 1 ? from / 2 : from - 1;
    bool changed = false;
    if (s->b > 2 || from > 24 || (s->b > 0 && to < 2)) {
        return false;
    }
    for (size_t i = 0; i < c->n_in; i++) {
        nori_tensor *t = shorter(c->in[i], from, to);
        if (t) {
            nori_tensor_free(c->in[i]);
            c->in[i] = t;
            nori__pb_type *type = g->inputs.items[i].type;
            for (size_t d = 0; type && type->shape && d < type->shape->dims.count; d++) {
                nori__pb_dim *dim = &type->shape->dims.items[d];
                dim->value = dim->has_value ? nori_tensor_dims(t)[d] : 0;
            }
            changed = true;
        }
    }
    for (size_t i = 0; i < g->initializers.count; i++) {
        nori__pb_tensor *pb = &g->initializers.items[i];
        nori_tensor *whole = NULL, *t = NULL;
        if (nori__tensor_from_pb(&nori__malloc, pb, NULL, &whole, NULL) == NORI_OK && pb->has_raw &&
            (t = shorter(whole, from, to)) != NULL) {
            for (size_t d = 0; d < pb->dims.count; d++) {
                pb->dims.items[d] = nori_tensor_dims(t)[d];
            }
            pb->raw.n = nori_tensor_bytes(t);
            pb->raw.p = nori__arena_copy(&c->m.arena, pb->raw.n ? nori_tensor_const_data(t) : "",
                                         pb->raw.n);
            changed = true;
        }
        nori_tensor_free(t);
        nori_tensor_free(whole);
    }
    for (size_t i = 0; i < g->outputs.count; i++) { /* their sizes follow */
        if (g->outputs.items[i].type) {
            g->outputs.items[i].type->shape = NULL;
        }
    }
    return changed;
}

/* A change may leave what no model is: a graph that does not make its outputs, types that do not go
 * together. check says so, but where what it says is the fault. */
static bool is_model(const graph_case *c, const graphs_fault *fault)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_findings *findings = NULL;
    nori_error err = {0};
    bool fine;
    nori__text_init(&bytes, &nori__malloc);
    nori_status s = nori__pb_write_model(&c->m.model, &bytes, &err);
    s = s ? s : nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, &err);
    s = s ? s : nori_check(model, NULL, &findings, &err);
    size_t n = s ? 0 : nori_findings_at_least(findings, NORI_SEVERITY_ERROR);
    if (strcmp(fault->way, "load") == 0) {
        fine = true;
    } else if (strcmp(fault->way, "check") == 0) { /* it goes on being the same that it says */
        const char *of = strrchr(fault->text, '(');
        const nori_finding *f = n > 0 ? nori_findings_at(findings, 0) : NULL;
        fine = f && n == 1 && of && strstr(f->path, "(") &&
               strncmp(strrchr(f->path, '('), of, 6) == 0;
        fine = fine || (!s && !of);
    } else {
        fine = !s && n == 0;
    }
    nori_findings_free(findings);
    nori_model_free(model);
    nori__text_free(&bytes);
    return fine;
}

static bool both_are(const graphs_fault *a, const graphs_fault *b, const char *way)
{
    return (strcmp(a->way, way) == 0) == (strcmp(b->way, way) == 0);
}

static bool try_change(graphs_workers *w, graph_case *c, graphs_fault *fault, change does,
                       const step *s, int *left)
{
    graph_case next;
    graphs_fault found = {.worker = fault->worker};
    bool better = graph_case_copy(c, &next) && does(&next, s);
    if (better) {
        graph_case_tidy(&next);
        (*left)--;
        better = next.m.graph.nodes.count > 0 && is_model(&next, fault) &&
                 graphs_faulty(w, fault->worker, &next, &found) &&
                 strcmp(found.kind, fault->kind) == 0 && both_are(&found, fault, "load") &&
                 both_are(&found, fault, "check");
    }
    if (better) {
        graph_case_free(c);
        *c = next;
        c->m.model.graph = &c->m.graph;
        *fault = found;
    } else {
        graph_case_free(&next);
    }
    return better;
}

/* Whether the graph has it without any node. */
static bool given(const nori__pb_graph *g, nori__str name)
{
    bool found = name.n == 0;
    for (size_t i = 0; !found && i < g->initializers.count; i++) {
        found = found || same_name(g->initializers.items[i].name, name);
    }
    for (size_t i = 0; i < g->inputs.count; i++) {
        found = found || same_name(g->inputs.items[i].name, name);
    }
    return found;
}

static bool made_by(const nori__pb_node *n, nori__str name)
{
    bool found = false;
    for (size_t k = 0; k < n->outputs.count; k++) {
        found = found || same_name(n->outputs.items[k], name);
    }
    return found;
}

bool graph_case_one(const graph_case *c, graphs_values *all, const nori__pb_node *node,
                    graph_case *one)
{
    bool fine = graph_case_copy(c, one);
    nori__pb_graph *g = &one->m.graph;
    g->nodes.items[0] = *node;
    g->nodes.count = 1;
    g->outputs.count = 0;
    const nori__pb_node *n = &g->nodes.items[0];
    for (size_t k = 0; fine && k < n->outputs.count; k++) {
        const graphs_value *v =
            n->outputs.items[k].n ? graphs_find(all, n->outputs.items[k]) : NULL;
        if (v) {
            make_output(&one->m, g, v->name, nori_tensor_type(v->v[0]), NULL);
        }
    }
    graph_case_tidy(one);
    for (size_t k = 0; fine && k < all->count; k++) { /* also what its bodies read */
        nori__str name = {all->items[k].name, strlen(all->items[k].name)};
        fine = !graphs_reads(n, name) || made_by(n, name) || given(g, name) ||
               feed(one, &all->items[k]);
    }
    if (!fine) {
        graph_case_free(one);
    }
    return fine;
}

void graphs_shrink(graphs_workers *w, graph_case *c, graphs_fault *fault)
{
    graphs_look look = {.noise = 1};
    static const change changes[] = {one_output,   fed,           unfolded,
                                     passed,       passed_inside, fixed_size,
                                     smaller_size, no_attribute,  no_last_input};
    int left = CANDIDATES;
    graphs_sets sets;
    char why[GRAPHS_TEXT];
    bool any = graphs_measure_case(c, &sets, &look, false, why);
    while (any && left > 0) {
        any = false;
        for (size_t k = 0; k < NORI__COUNT(changes); k++) {
            for (size_t a = 0; a < 40; a++) {
                for (size_t b = 0; b < 8 && left > 0; b++) {
                    step s = {sets.of[0], a, b};
                    while (left > 0 && try_change(w, c, fault, changes[k], &s, &left)) {
                        any = true; /* and once more: something else stands there now */
                        graphs_sets_free(&sets);
                        graphs_measure_case(c, &sets, &look, false, why);
                        s.all = sets.of[0];
                    }
                }
            }
        }
    }
    graphs_sets_free(&sets);
}
