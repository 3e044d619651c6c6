/* to_pb_subset.c: some nodes of a graph as a model of their own, for engines that read ONNX. */
#include "graph/internal.h"

#define OLDEST_IR 8 /* initializers need not be inputs, subgraphs may read outer values */

typedef struct collecting {
    nori__packer *packer;
    nori__vec values; /* constants that are read, each once */
} collecting;

static bool collect(void *user, nori__value *v)
{
    collecting *c = user;
    if (!nori__value_const(v) || c->packer->done[v->id]) {
        return true;
    }
    c->packer->done[v->id] = true;
    return nori__vec_push(&c->values, v);
}

static void initializers(nori__packer *p, const nori__subset *s, nori__pb_graph *graph)
{
    collecting c = {.packer = p};
    nori__vec_init(&c.values, p->arena->allocator);
    for (size_t i = 0; i < s->n_nodes && p->ok; i++) {
        p->ok = nori__node_reads(s->nodes[i], collect, &c);
    }
    nori__pb_tensor *list = nori__pack_room(p, c.values.count, sizeof(*list));
    for (size_t i = 0; i < c.values.count && p->ok; i++) {
        const nori__value *v = c.values.items[i];
        nori__tensor_to_pb(p, v->constant, nori__str_of(v->name), &list[i]);
    }
    graph->initializers.items = list;
    graph->initializers.count = c.values.count;
    nori__vec_free(&c.values);
}

/* A shape that rests on a declaration may be one example's: then only its rank is told. */
static nori__pb_value *declare(nori__packer *p, nori__value *const *values, size_t count)
{
    nori__pb_value *list = nori__pack_room(p, count, sizeof(*list));
    for (size_t i = 0; i < count && p->ok; i++) {
        nori__type type = values[i]->type;
        bool hinted = (values[i]->flags & NORI__VALUE_HINTED) && type.rank > 0;
        type.dims = hinted ? nori__pack_room(p, (size_t)type.rank, sizeof(*type.dims)) : type.dims;
        for (int d = 0; hinted && p->ok && d < type.rank; d++) {
            type.dims[d] = NORI__DIM_ANY;
        }
        nori__declare_to_pb(p, values[i], &type, &list[i]);
    }
    return list;
}

nori_status nori__subset_to_pb(const nori__ir *ir, const nori__subset *s, nori__arena *arena,
                               nori__pb_model **model, nori_error *err)
{
    nori__packer packer = {.ir = ir, .arena = arena, .ok = true}, *p = &packer;
    nori__pb_model *pb = nori__pack_room(p, 1, sizeof(*pb));
    nori__pb_graph *graph = nori__pack_room(p, 1, sizeof(*graph));
    nori__pb_opset *opsets = nori__pack_room(p, s->n_opsets, sizeof(*opsets));
    nori__pb_node *nodes = nori__pack_room(p, s->n_nodes, sizeof(*nodes));
    p->done = nori__pack_room(p, ir->value_count, sizeof(*p->done));
    *model = NULL;
    if (!p->ok) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < s->n_opsets; i++) {
        opsets[i].domain = nori__str_of(s->opsets[i].domain);
        opsets[i].version = s->opsets[i].version;
    }
    for (size_t i = 0; i < s->n_nodes && p->ok; i++) {
        nori__node_to_pb(p, s->nodes[i], &nodes[i]);
    }
    for (size_t i = 0; i < s->n_in; i++) {
        if (s->in[i]->type.kind == NORI_KIND_UNKNOWN) {
            return nori__fail(err, NORI_ERROR_UNSUPPORTED, "the type of %s is not known",
                              s->in[i]->name);
        }
    }
    graph->name = nori__str_of("part");
    graph->nodes.items = nodes;
    graph->nodes.count = s->n_nodes;
    graph->inputs.items = declare(p, s->in, s->n_in);
    graph->inputs.count = s->n_in;
    graph->outputs.items = declare(p, s->out, s->n_out);
    graph->outputs.count = s->n_out;
    initializers(p, s, graph);
    pb->ir_version = ir->ir_version > OLDEST_IR ? ir->ir_version : OLDEST_IR;
    pb->producer_name = nori__str_of("nori");
    pb->producer_version = nori__str_of(nori_version());
    pb->opsets.items = opsets;
    pb->opsets.count = s->n_opsets;
    pb->graph = graph;
    *model = pb;
    return p->ok ? NORI_OK : nori__no_memory(err);
}
