/* to_pb.c: from the graph in memory back to the file's messages, for saving what was edited.
 *
 * What came from a file and was not changed goes back as its own message, with everything nori
 * does not look at (documentation, metadata, unknown fields). What was made or changed becomes a
 * new message. Weights are pointed at, not copied. Graphs nest at most NORI__PB_MAX_NESTING deep,
 * which was checked when they were built: the walk may recurse. */
#include "graph/internal.h"

/* ---- nodes ---- */

static nori__str *names_to_pb(nori__packer *p, nori__value *const *values, size_t count)
{
    nori__str *list = nori__pack_room(p, count, sizeof(*list));
    for (size_t i = 0; p->ok && i < count; i++) {
        list[i] = nori__str_of(values[i] ? values[i]->name : "");
    }
    return list;
}

void nori__node_to_pb(nori__packer *p, const nori__node *n, nori__pb_node *pb)
{
    if (n->pb) {
        *pb = *n->pb;
    }
    pb->name = nori__str_of(n->name ? n->name : "");
    pb->op_type = nori__str_of(n->op_type);
    if (n->domain[0] || !nori__str_is(pb->domain, "ai.onnx")) { /* may be written either way */
        pb->domain = nori__str_of(n->domain);
    }
    pb->overload = nori__str_of(n->overload ? n->overload : "");
    pb->inputs.items = names_to_pb(p, n->inputs, n->input_count);
    pb->inputs.count = n->input_count;
    pb->outputs.items = names_to_pb(p, n->outputs, n->output_count);
    pb->outputs.count = n->output_count;
    nori__pb_attr *attrs = nori__pack_room(p, n->attr_count, sizeof(*attrs));
    for (uint32_t i = 0; p->ok && i < n->attr_count; i++) {
        nori__attr_to_pb(p, &n->attrs[i], &attrs[i]);
    }
    pb->attrs.items = attrs;
    pb->attrs.count = n->attr_count;
}

/* ---- graphs ---- */

static bool same_type(const nori__type *a, const nori__type *b)
{
    if (a->kind != b->kind || a->elem != b->elem || a->rank != b->rank) {
        return false;
    }
    for (int i = 0; i < a->rank; i++) {
        bool same = a->dims[i].value == b->dims[i].value &&
                    (a->dims[i].value >= 0 || nori__dim_same(a->dims[i], b->dims[i]) ||
                     (!a->dims[i].name && !b->dims[i].name));
        if (!same) {
            return false;
        }
    }
    return true;
}

static bool is_initializer(const nori__value *v)
{
    return v->constant && !v->producer && (v->uses > 0 || (v->flags & NORI__VALUE_INPUT));
}

/* Initializers in the file's order, then new ones in the order they were made. */
static void initializers_to_pb(nori__packer *p, const nori__graph *g, nori__pb_graph *pb)
{
    const nori__pb_graph *old = g->pb;
    size_t kept = old ? old->initializers.count : 0, sparse = 0, fresh = 0, n = 0;
    for (const nori__value *v = g->values; v; v = v->next) {
        fresh += is_initializer(v);
    }
    nori__pb_tensor *list = nori__pack_room(p, kept + fresh, sizeof(*list));
    nori__pb_sparse *sparse_list =
        nori__pack_room(p, old ? old->sparse_initializers.count : 0, sizeof(*sparse_list));
    const nori__value **made = nori__pack_room(p, fresh, sizeof(*made));
    if (!p->ok) {
        return;
    }
    for (size_t i = 0; i < kept; i++) {
        const nori__pb_tensor *t = &old->initializers.items[i];
        const nori__value *v = nori__map_get_n(nori__graph_names(g), t->name.p, t->name.n);
        if (v && is_initializer(v)) {
            nori__tensor_again(p, t, v->constant, &list[n++]);
            p->done[v->id] = true;
        }
    }
    for (size_t i = 0; old && i < old->sparse_initializers.count; i++) {
        const nori__pb_sparse *s = &old->sparse_initializers.items[i];
        const nori__value *v = nori__map_get_n(nori__graph_names(g), s->values->name.p, s->values->name.n);
        bool inside = s->values->data_location != 1 && s->indices->data_location != 1;
        if (v && inside && is_initializer(v)) {
            sparse_list[sparse++] = *s;
            p->done[v->id] = true;
        }
    }
    size_t made_count = 0;
    for (const nori__value *v = g->values; v; v = v->next) { /* newest first */
        if (is_initializer(v) && !p->done[v->id]) {
            made[made_count++] = v;
        }
    }
    while (made_count-- > 0) {
        const nori__value *v = made[made_count];
        nori__tensor_to_pb(p, v->constant, nori__str_of(v->name), &list[n++]);
    }
    pb->initializers.items = list;
    pb->initializers.count = n;
    pb->sparse_initializers.items = sparse_list;
    pb->sparse_initializers.count = sparse;
}

/* Graph inputs, in the file's order where it has one: sorting put those with defaults last, and
 * files before IR 4 list every initializer. */
static void inputs_to_pb(nori__packer *p, const nori__graph *g, nori__pb_graph *pb)
{
    const nori__pb_graph *old = g->pb;
    size_t listed = old ? old->inputs.count : 0, n = 0;
    nori__pb_value *list = nori__pack_room(p, listed + g->input_count, sizeof(*list));
    bool *done = nori__pack_room(p, g->input_count, sizeof(*done));
    if (!p->ok) {
        return;
    }
    for (size_t i = 0; i < listed; i++) {
        nori__str name = old->inputs.items[i].name;
        const nori__value *v = nori__map_get_n(nori__graph_names(g), name.p, name.n);
        uint32_t at = 0;
        while (v && at < g->input_count && g->inputs[at] != v) {
            at++;
        }
        if (v && at < g->input_count && !done[at]) {
            done[at] = true;
            nori__value_to_pb(p, v, &list[n++]);
        } else if (v && p->ir->ir_version < 4 && is_initializer(v)) {
            nori__value_to_pb(p, v, &list[n++]);
        }
    }
    for (uint32_t i = 0; p->ok && i < g->input_count; i++) {
        if (!done[i]) {
            nori__value_to_pb(p, g->inputs[i], &list[n++]);
        }
    }
    pb->inputs.items = list;
    pb->inputs.count = n;
}

/* Declarations of outputs and of inner values that still exist and still have the type declared. */
static void outputs_to_pb(nori__packer *p, const nori__graph *g, nori__pb_graph *pb)
{
    const nori__pb_graph *old = g->pb;
    nori__pb_value *list = nori__pack_room(p, g->output_count, sizeof(*list));
    nori__pb_value *infos = nori__pack_room(p, old ? old->value_info.count : 0, sizeof(*infos));
    size_t n = 0;
    for (uint32_t i = 0; p->ok && i < g->output_count; i++) {
        const nori__value *v = g->outputs[i];
        const nori__pb_value *was = old && i < old->outputs.count ? &old->outputs.items[i] : NULL;
        bool retyped = was && was->type && v->declared.elem && v->declared.elem != was->type->elem;
        if (was && nori__str_is(was->name, v->name) && !retyped) {
            list[i] = *was;
        } else {
            nori__value_to_pb(p, v, &list[i]);
        }
    }
    for (size_t i = 0; p->ok && old && i < old->value_info.count; i++) {
        nori__str name = old->value_info.items[i].name;
        const nori__value *v = nori__map_get_n(nori__graph_names(g), name.p, name.n);
        if (v && (v->uses > 0 || v->producer) && same_type(&v->type, &v->declared)) {
            infos[n++] = old->value_info.items[i];
        }
    }
    pb->outputs.items = list;
    pb->outputs.count = g->output_count;
    pb->value_info.items = infos;
    pb->value_info.count = n;
}

nori__pb_graph *nori__graph_to_pb(nori__packer *p, const nori__graph *g)
{
    nori__pb_graph *pb = nori__pack_room(p, 1, sizeof(*pb));
    if (!p->ok) {
        return NULL;
    }
    if (g->pb) {
        *pb = *g->pb;
    }
    pb->name = nori__str_of(g->name ? g->name : "main");
    inputs_to_pb(p, g, pb);
    outputs_to_pb(p, g, pb);
    initializers_to_pb(p, g, pb);
    nori__pb_node *nodes = nori__pack_room(p, g->node_count, sizeof(*nodes));
    size_t n = 0;
    for (const nori__node *node = g->first; p->ok && node; node = node->next) {
        nori__node_to_pb(p, node, &nodes[n++]);
    }
    pb->nodes.items = nodes;
    pb->nodes.count = n;
    return pb;
}

static nori_status ir_to_pb(const nori__ir *ir, nori__arena *arena, bool outside,
                            nori__pb_model **model, nori_error *err)
{
    nori__packer p = {.ir = ir, .arena = arena, .ok = true, .outside = outside};
    nori__pb_model *pb = nori__pack_room(&p, 1, sizeof(*pb));
    p.done = nori__pack_room(&p, ir->value_count, sizeof(*p.done));
    nori__pb_opset *opsets = nori__pack_room(&p, ir->opset_count, sizeof(*opsets));
    *model = NULL;
    if (!p.ok) {
        return nori__no_memory(err);
    }
    if (ir->pb) {
        *pb = *ir->pb;
    } else {
        pb->producer_name = nori__str_of("nori");
        pb->producer_version = nori__str_of(nori_version());
    }
    pb->ir_version = ir->ir_version;
    for (size_t i = 0; i < ir->opset_count; i++) {
        bool own = ir->pb && i < ir->pb->opsets.count;
        if (own) {
            opsets[i] = ir->pb->opsets.items[i];
        } else {
            opsets[i].domain = nori__str_of(ir->opsets[i].domain);
        }
        opsets[i].version = ir->opsets[i].version;
    }
    pb->opsets.items = opsets;
    pb->opsets.count = ir->opset_count;
    pb->graph = nori__graph_to_pb(&p, ir->main);
    if (!p.ok) {
        return nori__no_memory(err);
    }
    *model = pb;
    return NORI_OK;
}

nori_status nori__ir_to_pb(const nori__ir *ir, nori__arena *arena, nori__pb_model **model,
                           nori_error *err)
{
    return ir_to_pb(ir, arena, false, model, err);
}

nori_status nori__ir_to_pb_outside(const nori__ir *ir, nori__arena *arena, nori__pb_model **model,
                                   nori_error *err)
{
    return ir_to_pb(ir, arena, true, model, err);
}
