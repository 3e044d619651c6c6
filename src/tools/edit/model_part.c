/* model_part.c: some nodes of a model as a model of its own: the file's own messages of those nodes, of the
 * constants they read and of what is declared about their values. */
#include "tools/edit/editing.h"

typedef struct making {
    const nori__part_plan *plan;
    nori__arena arena;
    bool *node;        /* by position: is in the part */
    bool *value;       /* by id: is read or made here */
    nori__vec waiting; /* constant nodes whose inputs are yet to be looked at */
    nori_error *err;
} making;

/* ---- what belongs to it ---- */

static bool need(void *user, nori__value *v)
{
    making *m = user;
    const nori__order *o = m->plan->order;
    m->value[v->id] = true;
    if (o->made[v->id] && o->maker[v->id] > 0 && !m->node[o->maker[v->id] - 1]) {
        m->node[o->maker[v->id] - 1] = true;
        return nori__vec_push(&m->waiting, o->nodes[o->maker[v->id] - 1]);
    }
    return true;
}

static nori_status collect(making *m)
{
    const nori__part_plan *p = m->plan;
    bool ok = true;
    for (size_t i = 0; i < p->order->count && ok; i++) {
        if (p->in[i] && !p->order->constant[i]) {
            m->node[i] = true;
            ok = nori__node_reads(p->order->nodes[i], need, m);
        }
    }
    for (size_t i = 0; i < p->n_outputs && ok; i++) {
        ok = need(m, p->outputs[i]);
    }
    while (ok && m->waiting.count > 0) {
        ok = nori__node_reads(m->waiting.items[--m->waiting.count], need, m);
    }
    for (size_t i = 0; i < p->order->count; i++) {
        const nori__node *n = p->order->nodes[i];
        for (uint32_t k = 0; m->node[i] && k < n->output_count; k++) {
            if (n->outputs[k]) {
                m->value[n->outputs[k]->id] = true;
            }
        }
    }
    return ok ? NORI_OK : nori__no_memory(m->err);
}

/* ---- declarations ---- */

/* Names that inference made up say nothing to others: only those that the file's inputs have stay. */
static bool known_dim(const nori__ir *ir, const char *name)
{
    for (uint32_t i = 0; name && i < ir->main->input_count; i++) {
        const nori__type *t = &ir->main->inputs[i]->declared;
        for (int d = 0; t->kind == NORI_KIND_TENSOR && d < t->rank; d++) {
            if (t->dims[d].name && nori__same(t->dims[d].name, name)) {
                return true;
            }
        }
    }
    return false;
}

static const nori__pb_value *said(const nori__pb_value *items, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (nori__str_is(items[i].name, name)) {
            return &items[i];
        }
    }
    return NULL;
}

/* A shape that rests on a declaration may be one example's: then only its rank is told. */
static nori_status declare(making *m, const nori__value *v, nori__pb_value *out)
{
    const nori__part_plan *p = m->plan;
    const nori__pb_graph *g = p->model->source->pb->graph;
    const nori__pb_value *own = said(g->inputs.items, g->inputs.count, v->name);
    own = own ? own : said(g->outputs.items, g->outputs.count, v->name);
    if (own) {
        *out = *own;
        return NORI_OK;
    }
    const nori__value *typed = nori__edit_value(p->typed, v->name);
    nori__type type = typed ? typed->type : v->type;
    if (type.kind == NORI_KIND_UNKNOWN || (type.kind == NORI_KIND_TENSOR && !type.elem)) {
        nori_status s = nori__fail(m->err, NORI_ERROR_UNSUPPORTED,
                                   "the type of value \"%.200s\" is not known, so a model cannot have it "
                                   "as an input or output", v->name);
        nori__hint(m->err, "cut elsewhere; `nori inspect --nodes` shows what is known of each value");
        return s;
    }
    if (type.kind == NORI_KIND_TENSOR && type.rank > 0) {
        bool hinted = typed && (typed->flags & NORI__VALUE_HINTED);
        nori__dim *dims = nori__arena_array(&m->arena, (size_t)type.rank, sizeof(*dims));
        if (!dims) {
            return nori__no_memory(m->err);
        }
        for (int d = 0; d < type.rank; d++) {
            dims[d] = hinted ? NORI__DIM_ANY : type.dims[d];
            dims[d].name = known_dim(p->order->ir, dims[d].name) ? dims[d].name : NULL;
        }
        type.dims = dims;
    }
    return nori__declare(&m->arena, v->name, &type, out) ? NORI_OK : nori__no_memory(m->err);
}

/* Initializers that callers may set stay inputs as well; before IR 4 all are inputs. */
static bool listed_constant(const making *m, const nori__pb_value *pb)
{
    const nori__value *v = nori__map_get_n(nori__graph_names(m->plan->order->ir->main), pb->name.p,
                                           pb->name.n);
    return v && v->constant && !v->producer && m->value[v->id];
}

static nori_status declare_all(making *m, nori__pb_graph *to)
{
    const nori__part_plan *p = m->plan;
    const nori__pb_graph *g = p->model->source->pb->graph;
    size_t room = p->n_inputs + g->inputs.count + 1, n = 0;
    nori__pb_value *in = nori__arena_array(&m->arena, room, sizeof(*in));
    nori__pb_value *out = nori__arena_array(&m->arena, p->n_outputs + 1, sizeof(*out));
    nori__pb_value *info = nori__arena_array(&m->arena, g->value_info.count + 1, sizeof(*info));
    if (!in || !out || !info) {
        return nori__no_memory(m->err);
    }
    for (size_t i = 0; i < p->n_inputs; i++) {
        NORI__TRY(declare(m, p->inputs[i], &in[n++]));
    }
    for (size_t i = 0; i < g->inputs.count; i++) {
        if (listed_constant(m, &g->inputs.items[i])) {
            in[n++] = g->inputs.items[i];
        }
    }
    for (size_t i = 0; i < p->n_outputs; i++) {
        NORI__TRY(declare(m, p->outputs[i], &out[i]));
    }
    to->inputs.items = in;
    to->inputs.count = n;
    to->outputs.items = out;
    to->outputs.count = p->n_outputs;
    n = 0;
    for (size_t i = 0; i < g->value_info.count; i++) {
        const nori__pb_value *pb = &g->value_info.items[i];
        const nori__value *v = nori__map_get_n(nori__graph_names(p->order->ir->main), pb->name.p,
                                               pb->name.n);
        bool twice = v && (said(in, to->inputs.count, v->name) || said(out, p->n_outputs, v->name));
        if (v && m->value[v->id] && !twice) {
            info[n++] = *pb;
        }
    }
    to->value_info.items = info;
    to->value_info.count = n;
    return NORI_OK;
}

/* ---- nodes and constants ---- */

static nori_status copy_nodes(making *m, nori__pb_graph *to)
{
    const nori__order *o = m->plan->order;
    const nori__pb_graph *g = m->plan->model->source->pb->graph;
    bool *keep = nori__arena_array(&m->arena, g->nodes.count + 1, sizeof(*keep));
    nori__pb_node *nodes = nori__arena_array(&m->arena, g->nodes.count + 1, sizeof(*nodes));
    if (!keep || !nodes) {
        return nori__no_memory(m->err);
    }
    for (size_t i = 0; i < o->count; i++) {
        keep[o->nodes[i]->pb - g->nodes.items] = m->node[i];
    }
    size_t n = 0;
    for (size_t i = 0; i < g->nodes.count; i++) {
        if (keep[i]) {
            nodes[n++] = g->nodes.items[i];
        }
    }
    to->nodes.items = nodes;
    to->nodes.count = n;
    return NORI_OK;
}

static bool wanted(const making *m, nori__str name)
{
    const nori__value *v =
        nori__map_get_n(nori__graph_names(m->plan->order->ir->main), name.p, name.n);
    return v && m->value[v->id];
}

static nori_status copy_constants(making *m, nori__pb_graph *to)
{
    const nori__pb_graph *g = m->plan->model->source->pb->graph;
    nori__pb_tensor *plain = nori__arena_array(&m->arena, g->initializers.count + 1, sizeof(*plain));
    nori__pb_sparse *sparse =
        nori__arena_array(&m->arena, g->sparse_initializers.count + 1, sizeof(*sparse));
    if (!plain || !sparse) {
        return nori__no_memory(m->err);
    }
    to->initializers.items = plain;
    to->sparse_initializers.items = sparse;
    to->initializers.count = to->sparse_initializers.count = 0;
    for (size_t i = 0; i < g->initializers.count; i++) {
        if (wanted(m, g->initializers.items[i].name)) {
            plain[to->initializers.count++] = g->initializers.items[i];
        }
    }
    for (size_t i = 0; i < g->sparse_initializers.count; i++) {
        const nori__pb_sparse *s = &g->sparse_initializers.items[i];
        if (s->values && wanted(m, s->values->name)) {
            sparse[to->sparse_initializers.count++] = *s;
        }
    }
    return NORI_OK;
}

static nori_status make(making *m, nori_model **part)
{
    const nori__part_plan *p = m->plan;
    const nori__pb_model *from = p->model->source->pb;
    nori__pb_graph graph = *from->graph;
    nori__pb_model model = *from;
    m->node = nori__arena_array(&m->arena, p->order->count + 1, sizeof(*m->node));
    m->value = nori__arena_array(&m->arena, (size_t)p->order->ir->value_count + 1, sizeof(*m->value));
    if (!m->node || !m->value) {
        return nori__no_memory(m->err);
    }
    NORI__TRY(collect(m));
    NORI__TRY(declare_all(m, &graph));
    NORI__TRY(copy_nodes(m, &graph));
    NORI__TRY(copy_constants(m, &graph));
    if (p->name) {
        char *name = nori__arena_printf(&m->arena, "%.*s%s", NORI__NAME_N(graph.name), p->name);
        if (!name) {
            return nori__no_memory(m->err);
        }
        graph.name = nori__str_of(name);
    }
    model.graph = &graph;
    model.training.count = 0; /* it speaks of the whole graph */
    return nori__model_from_pb(&p->model, 1, &model, part, m->err);
}

nori_status nori__part_make(const nori__part_plan *plan, nori_model **part, nori_error *err)
{
    making m = {.plan = plan, .err = err};
    nori__arena_init(&m.arena, plan->model->source->allocator);
    nori__vec_init(&m.waiting, m.arena.allocator);
    nori_status s = make(&m, part);
    nori__vec_free(&m.waiting);
    nori__arena_free(&m.arena);
    return s;
}
