/* divide_graph.c: a model's main graph as what is placed: the nodes that depend on inputs, and the values
 * between them. */
#include "run/run.h"
#include "tools/divide/divides.h"

typedef struct walk {
    nori_divide *c;
    bool *dynamic;       /* by id of a value */
    nori__divide_value **own; /* by id of a value */
    size_t at;           /* index of the node that reads */
    bool hit, failed;
} walk;

static bool sees_dynamic(void *user, nori__value *v)
{
    walk *w = user;
    w->hit = w->hit || w->dynamic[v->id];
    return true;
}

/* Two sides would draw different numbers: such a node is one that is placed. */
static bool draws(const nori__node *n)
{
    return strncmp(n->op_type, "Random", 6) == 0 || nori__same(n->op_type, "Multinomial") ||
           nori__same(n->op_type, "Bernoulli");
}

static bool is_output(const nori__graph *g, const nori__value *v)
{
    for (uint32_t i = 0; i < g->output_count; i++) {
        if (g->outputs[i] == v) {
            return true;
        }
    }
    return false;
}

static nori__divide_value *add_value(walk *w, const nori__value *v, size_t producer)
{
    nori__divide_value *own = &w->c->values[w->c->n_values++];
    *own = (nori__divide_value){.v = v, .producer = producer, .output = is_output(v->graph, v)};
    w->own[v->id] = own;
    w->dynamic[v->id] = true;
    w->failed = w->failed || !nori__map_put(&w->c->by_name, v->name, own);
    return own;
}

static bool add_reader(void *user, nori__value *v)
{
    walk *w = user;
    nori__divide_value *own = w->own[v->id];
    if (!own || (own->n_readers > 0 && own->readers[own->n_readers - 1] == w->at)) {
        return true;
    }
    if (own->n_readers == own->capacity) {
        size_t wanted = own->capacity ? 2 * own->capacity : 4;
        size_t *grown = nori__arena_array(&w->c->arena, wanted, sizeof(*grown));
        if (!grown) {
            w->failed = true;
            return false;
        }
        if (own->n_readers > 0) {
            memcpy(grown, own->readers, own->n_readers * sizeof(*grown));
        }
        own->readers = grown;
        own->capacity = wanted;
    }
    own->readers[own->n_readers++] = w->at;
    return true;
}

static void walk_nodes(walk *w, const nori__graph *g)
{
    for (nori__node *n = g->first; n && !w->failed; n = n->next) {
        w->hit = draws(n);
        nori__node_reads(n, sees_dynamic, w);
        if (!w->hit) {
            continue;
        }
        w->at = w->c->n_nodes;
        w->c->nodes[w->c->n_nodes++] = n;
        nori__node_reads(n, add_reader, w);
        for (uint32_t i = 0; i < n->output_count; i++) {
            if (n->outputs[i]) {
                add_value(w, n->outputs[i], w->at);
            }
        }
    }
}

nori_status nori__divide_graph(nori_divide *c, nori_error *err)
{
    const nori__ir *ir = nori__model_ir(c->model);
    const nori__graph *g = ir->main;
    nori__arena scratch;
    nori__arena_init(&scratch, &nori__malloc);
    walk w = {.c = c};
    w.dynamic = nori__arena_array(&scratch, ir->value_count + 1, sizeof(*w.dynamic));
    w.own = nori__arena_array(&scratch, ir->value_count + 1, sizeof(*w.own));
    c->nodes = nori__arena_array(&c->arena, g->node_count + 1, sizeof(*c->nodes));
    c->values = nori__arena_array(&c->arena, ir->value_count + 1, sizeof(*c->values));
    bool ok = w.dynamic && w.own && c->nodes && c->values;
    for (uint32_t i = 0; ok && i < g->input_count; i++) {
        if (!g->inputs[i]->constant) { /* a default is as good as a constant */
            add_value(&w, g->inputs[i], NORI_DIVIDE_INPUT);
        }
    }
    if (ok) {
        walk_nodes(&w, g);
    }
    nori__arena_free(&scratch);
    c->seconds[0] = nori__arena_array(&c->arena, c->n_nodes + 1, sizeof(double));
    c->seconds[1] = nori__arena_array(&c->arena, c->n_nodes + 1, sizeof(double));
    c->cloud = nori__arena_array(&c->arena, c->n_nodes + 1, 1);
    c->names = nori__arena_array(&c->arena, c->n_values + 1, sizeof(*c->names));
    return ok && !w.failed && c->seconds[0] && c->seconds[1] && c->cloud && c->names ? NORI_OK
                                                                                    : nori__no_memory(err);
}
