/* graph_measure.c: what each node of a graph gives, by the reference kernels, one node at a time,
 * and how far a few roundings more would move it. Stands for what a graph means: no other part of
 * nori takes part. */
#include <math.h>

#include "graphs.h"

enum { MOST_ELEMENTS = 20000 };

graphs_value *graphs_find(graphs_values *all, nori__str name)
{
    for (size_t i = 0; i < all->count; i++) {
        if (strlen(all->items[i].name) == name.n &&
            memcmp(all->items[i].name, name.p, name.n) == 0) {
            return &all->items[i];
        }
    }
    return NULL;
}

graphs_value *graphs_add(graphs_values *all, const char *name, nori_tensor *exact, bool constant)
{
    if (all->count == GRAPHS_VALUES) {
        return NULL;
    }
    graphs_value *v = &all->items[all->count++];
    memset(v, 0, sizeof(*v));
    snprintf(v->name, sizeof(v->name), "%s", name);
    v->constant = constant;
    for (int k = 0; exact && k < GRAPHS_VARIANTS; k++) {
        v->v[k] = nori_tensor_retain(exact);
    }
    return v;
}

void graphs_cut(graphs_values *all, size_t count)
{
    while (all->count > count) {
        graphs_value *v = &all->items[--all->count];
        for (int k = 0; k < GRAPHS_VARIANTS; k++) {
            nori_tensor_free(v->v[k]);
        }
    }
}

/* Two tensors of one type and shape. */
bool graphs_one_form(const nori_tensor *a, const nori_tensor *b)
{
    return nori_tensor_kind(a) == nori_tensor_kind(b) &&
           nori_tensor_type(a) == nori_tensor_type(b) &&
           nori_tensor_rank(a) == nori_tensor_rank(b) &&
           (nori_tensor_rank(a) == 0 || memcmp(nori_tensor_dims(a), nori_tensor_dims(b),
                                               sizeof(int64_t) * (size_t)nori_tensor_rank(a)) == 0);
}

static bool same_strings(const nori_tensor *a, const nori_tensor *b)
{
    const nori_string *s = nori_tensor_const_data(a), *t = nori_tensor_const_data(b);
    bool same = true;
    for (int64_t i = 0; same && i < nori_tensor_elements(a); i++) {
        same = s[i].size == t[i].size &&
               (s[i].size == 0 || memcmp(s[i].data, t[i].data, s[i].size) == 0);
    }
    return same;
}

bool graphs_same_bits(const nori_tensor *a, const nori_tensor *b, char *why)
{
    bool same = graphs_one_form(a, b);
    if (!same) {
        snprintf(why, GRAPHS_TEXT, "other types or shapes");
    } else if (nori_tensor_type(a) == NORI_STRING) {
        same = same_strings(a, b);
        snprintf(why, GRAPHS_TEXT, "other strings");
    } else if (nori_tensor_bytes(a) > 0) {
        same =
            memcmp(nori_tensor_const_data(a), nori_tensor_const_data(b), nori_tensor_bytes(a)) == 0;
        snprintf(why, GRAPHS_TEXT, "other bits");
    }
    return same;
}

/* ---- one node ---- */

static bool named_before(const nori__pb_node *n, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        const nori__str *a = &n->inputs.items[i], *b = &n->inputs.items[j];
        if (a->n == b->n && memcmp(a->p, b->p, a->n) == 0) {
            return true;
        }
    }
    return false;
}

/* A model of that node, its inputs fed; in[] are borrowed indices of values. */
static bool alone(const make *m, const nori__pb_node *node, graphs_values *all, make *one,
                  size_t *from, size_t *n_from, char *why)
{
    *n_from = 0;
    for (size_t i = 0; i < node->inputs.count; i++) {
        nori__str name = node->inputs.items[i];
        if (name.n == 0 || named_before(node, i)) {
            continue;
        }
        graphs_value *v = graphs_find(all, name);
        if (!v || *n_from == 32) {
            snprintf(why, GRAPHS_TEXT, "an input that is not there");
            return false;
        }
        from[(*n_from)++] = (size_t)(v - all->items);
        nori__pb_value *in = MAKE_ADD(one, one->graph.inputs);
        make_value(one, in, v->name, nori_tensor_type(v->v[0]), NULL);
        /* Sizes stay free: two variants may differ in none, but kernels are asked the general case.
         */
    }
    for (size_t i = 0; i < node->outputs.count; i++) {
        if (node->outputs.items[i].n > 0) {
            MAKE_ADD(one, one->graph.outputs)->name = node->outputs.items[i];
        }
    }
    *MAKE_ADD(one, one->graph.nodes) = *node;
    one->model.opsets.items = m->model.opsets.items;
    one->model.opsets.count = m->model.opsets.count;
    one->model.ir_version = m->model.ir_version;
    return true;
}

static bool run_variants(make *one, const nori__pb_node *node, graphs_values *all,
                         const size_t *from, size_t n_from, nori_tensor *out[][GRAPHS_OUTPUTS],
                         char *why)
{
    nori__text bytes;
    nori_error err = {0};
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options o;
    nori_tensor *in[32];
    bool sums = graphs_sums(node);
    size_t n_out = one->graph.outputs.count;
    nori__text_init(&bytes, &nori__malloc);
    nori_session_options_default(&o);
    o.providers = "reference";
    o.level = 0;
    o.threads = 1;
    nori_status s = n_out > 0 && n_out <= GRAPHS_OUTPUTS
                        ? nori__pb_write_model(&one->model, &bytes, &err)
                        : NORI_ERROR_ARGUMENT;
    s = s ? s : nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, &err);
    s = s ? s : nori_session_create(model, &o, &session, &err);
    for (int k = 0; !s && k < GRAPHS_VARIANTS; k++) {
        for (size_t i = 0; i < n_from; i++) {
            in[i] = nori_tensor_retain(all->items[from[i]].v[k]);
            if (k > 0 && (sums || graphs_read_apart(in[i], all))) {
                graphs_move_summands(&in[i], &all->noise);
            }
        }
        s = nori_session_run(session, (const nori_tensor *const *)in, n_from, out[k], n_out, &err);
        for (size_t i = 0; i < n_from; i++) {
            nori_tensor_free(in[i]);
        }
    }
    snprintf(why, GRAPHS_TEXT, "%.500s", err.message);
    nori_session_free(session);
    nori_model_free(model);
    nori__text_free(&bytes);
    return s == NORI_OK;
}

bool graphs_measure(const make *m, const nori__pb_node *node, graphs_values *all, bool strict,
                    char *why)
{
    make one;
    size_t from[32], n_from = 0, before = all->count, n_out = 0;
    nori_tensor *out[GRAPHS_VARIANTS][GRAPHS_OUTPUTS] = {{NULL}};
    if (!graphs_legal(m, node, all, why) || (strict && graphs_at_a_jump(node, all, why))) {
        return false;
    }
    if (graphs_has_bodies(node)) {
        return graphs_measure_bodies(m, node, all, strict, why);
    }
    make_begin(&one, 0);
    bool ran = alone(m, node, all, &one, from, &n_from, why) &&
               run_variants(&one, node, all, from, n_from, out, why);
    for (size_t i = 0; i < node->outputs.count && n_out < GRAPHS_OUTPUTS; i++) {
        char name[24];
        nori__str s = node->outputs.items[i];
        if (s.n == 0) {
            continue;
        }
        snprintf(name, sizeof(name), "%.*s", (int)s.n, s.p);
        graphs_value *v = ran ? graphs_add(all, name, NULL, false) : NULL;
        ran = ran && v;
        for (int k = 0; k < GRAPHS_VARIANTS; k++) {
            nori_tensor *t = out[k][n_out];
            if (v && t && k > 0) {
                graphs_move_result(node, &t, all);
            }
            if (v) {
                v->v[k] = t;
            } else {
                nori_tensor_free(t);
            }
            out[k][n_out] = NULL;
        }
        n_out++;
        if (v && (nori_tensor_kind(v->v[0]) != NORI_KIND_TENSOR ||
                  nori_tensor_elements(v->v[0]) > MOST_ELEMENTS || (strict && !graphs_steady(v, why)))) {
            ran = false;
        }
    }
    for (int k = 0; k < GRAPHS_VARIANTS; k++) {
        for (size_t i = 0; i < GRAPHS_OUTPUTS; i++) {
            nori_tensor_free(out[k][i]);
        }
    }
    make_end(&one);
    if (!ran) {
        graphs_cut(all, before);
    } else if (all->look.seen) {
        all->look.seen(all->look.by, node, all);
    }
    return ran;
}

bool graphs_add_initializers(const nori__pb_graph *g, graphs_values *all, char *why)
{
    char name[24];
    for (size_t i = 0; i < g->initializers.count; i++) {
        nori_tensor *t = NULL;
        nori_error err = {0};
        const nori__pb_tensor *pb = &g->initializers.items[i];
        snprintf(name, sizeof(name), "%.*s", (int)pb->name.n, pb->name.p);
        bool fine = nori__tensor_from_pb(&nori__malloc, pb, NULL, &t, &err) == NORI_OK &&
                    graphs_add(all, name, t, true) != NULL;
        nori_tensor_free(t);
        if (!fine) {
            snprintf(why, GRAPHS_TEXT, "initializer %s: %.400s", name, err.message);
            return false;
        }
    }
    return true;
}

static bool measure_set(const graph_case *c, nori_tensor *const *in, graphs_values *all,
                        bool strict, char *why)
{
    char name[24];
    const nori__pb_graph *g = &c->m.graph;
    bool fine = graphs_add_initializers(g, all, why);
    for (size_t i = 0; fine && i < c->n_in; i++) {
        const nori__str *s = &g->inputs.items[i].name;
        snprintf(name, sizeof(name), "%.*s", (int)s->n, s->p);
        fine = graphs_add(all, name, in[i], false) != NULL;
    }
    for (size_t i = 0; fine && i < g->nodes.count; i++) {
        fine = graphs_measure(&c->m, &g->nodes.items[i], all, strict, why);
    }
    return fine;
}

bool graphs_measure_case(const graph_case *c, graphs_sets *sets, const graphs_look *look,
                         bool strict, char *why)
{
    nori_tensor *other[GRAPHS_INPUTS] = {NULL};
    char text[GRAPHS_TEXT];
    for (int s = 0; s < 2; s++) {
        sets->of[s] = calloc(1, sizeof(*sets->of[s]));
        assert_non_null(sets->of[s]);
        sets->of[s]->noise.state = look->noise;
        sets->of[s]->look = *look;
        if (s > 0) {
            sets->of[s]->look.seen = NULL;
        }
    }
    bool fine = measure_set(c, c->in, sets->of[0], strict, why);
    bool both = fine && graph_case_other(c, other);
    if (!both || !measure_set(c, other, sets->of[1], strict, text)) {
        graphs_cut(sets->of[1], 0);
        free(sets->of[1]);
        sets->of[1] = NULL;
    }
    for (size_t i = 0; i < GRAPHS_INPUTS; i++) {
        nori_tensor_free(other[i]);
    }
    return fine;
}

void graphs_sets_free(graphs_sets *sets)
{
    for (int s = 0; s < 2; s++) {
        if (sets->of[s]) {
            graphs_cut(sets->of[s], 0);
            free(sets->of[s]);
        }
        sets->of[s] = NULL;
    }
}

bool graphs_differ(const nori_tensor *got, const graphs_value *want, char *why)
{
    const nori_tensor *exact = want->v[0];
    if (!got || !graphs_one_form(got, exact)) {
        snprintf(why, GRAPHS_TEXT,
                 "%s: %s of rank %d with %lld elements, not %s of rank %d with %lld", want->name,
                 got ? nori_type_name(nori_tensor_type(got)) : "nothing",
                 got ? nori_tensor_rank(got) : 0, got ? (long long)nori_tensor_elements(got) : 0,
                 nori_type_name(nori_tensor_type(exact)), nori_tensor_rank(exact),
                 (long long)nori_tensor_elements(exact));
        return true;
    }
    if (!nori__type_is_float(nori_tensor_type(exact))) {
        char text[GRAPHS_TEXT];
        if (graphs_same_bits(got, exact, text)) {
            return false;
        }
        int64_t at = 0;
        bool numbers = nori_tensor_type(exact) != NORI_STRING;
        while (numbers && at < nori_tensor_elements(exact) - 1 &&
               nori__tensor_get_i64(got, at) == nori__tensor_get_i64(exact, at)) {
            at++;
        }
        snprintf(why, GRAPHS_TEXT, "%s: element %lld is %lld, not %lld", want->name, (long long)at,
                 numbers ? (long long)nori__tensor_get_i64(got, at) : 0,
                 numbers ? (long long)nori__tensor_get_i64(exact, at) : 0);
        return true;
    }
    double allowed = graphs_allowed(want);
    for (int64_t i = 0; i < nori_tensor_elements(exact); i++) {
        double g = nori__tensor_get_f64(got, i), w = nori__tensor_get_f64(exact, i);
        if (!(fabs(g - w) <= allowed) && !(isnan(g) && isnan(w)) && !(g == w)) {
            snprintf(why, GRAPHS_TEXT, "%s: element %lld is %.9g, not %.9g; allowed is %.3g",
                     want->name, (long long)i, g, w, allowed);
            return true;
        }
    }
    return false;
}
