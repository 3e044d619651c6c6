/* build.c: from the file's messages to the graph in memory.
 *
 * Graphs are built outer before inner from a growing list, never by recursion. Each one declares
 * all names it defines (inputs, initializers, node outputs). A node whose inputs came before it, as
 * is usual, is complete at once; the others wait until all names are known and are then looked up
 * here and in the enclosing graphs. So the order of nodes in the file does not matter, and order.c
 * repairs it at the end. The messages were checked by onnx/ for form, not
 * for meaning: every name, count and type is untrusted here. */
#include "base/bulk.h"
#include "graph/internal.h"

/* Imports are looked through one by one, for every node. */
#define MAX_OPSETS 256

/* Text of a name for messages: names come from the file and may be long. */
#define NAME_FMT "'%.200s'"

/* ---- names ---- */

static nori__value *find_outer(const nori__graph *g, nori__str name)
{
    nori__value *v = NULL;
    while (g && !v) {
        v = nori__map_get_n(&g->names, name.p, name.n);
        g = g->parent;
    }
    return v;
}

/* Whether v is made by a node that stands before user, or before the node that holds user. */
static bool made_before(const nori__value *v, nori__node *user)
{
    nori__node *needs = v->producer ? nori__node_in(user, v->producer->graph) : NULL;
    return !needs || v->producer->id < needs->id;
}

static nori_status declare(nori__builder *b, nori__graph *g, nori__str name, const char *what,
                           nori__value **value)
{
    const char *text;
    NORI__TRY(nori__text_from_pb(b, name, what, &text));
    if (name.n == 0) {
        return nori__fail(b->err, NORI_ERROR_MODEL, "graph " NAME_FMT " has %s without a name",
                          g->name, what);
    }
    void **place = nori__map_claim(&g->names, text, name.n);
    if (!place) {
        return nori__no_memory(b->err);
    }
    if (*place) {
        return nori__fail(b->err, NORI_ERROR_MODEL,
                          "the name " NAME_FMT " is defined more than once in graph " NAME_FMT
                          ", the last time as %s",
                          text, g->name, what);
    }
    if (g->parent && find_outer(g->parent, name) &&
        nori__ir_warn(b->ir,
                      "graph " NAME_FMT " defines " NAME_FMT ", which a graph around it defines "
                      "too: inside, the inner one is meant (ONNX forbids this)",
                      g->name, text) != NORI_OK) {
        return nori__no_memory(b->err);
    }
    nori__value *v = nori__value_make(g, text);
    if (!v) {
        return nori__no_memory(b->err);
    }
    *place = v;
    *value = v;
    return NORI_OK;
}

static nori_status declare_type(nori__builder *b, nori__value *v, const nori__pb_value *pb)
{
    if (pb->type) {
        nori_status status = nori__type_from_pb(b, pb->type, &v->declared);
        if (status != NORI_OK) {
            nori__where(b->err, "type of '%.200s'", v->name);
            return status;
        }
        v->type = v->declared;
    }
    v->pb = pb;
    return NORI_OK;
}

/* ---- initializers ---- */

static nori_status add_initializer(nori__builder *b, nori__graph *g, nori__str name,
                                   nori_tensor *t)
{
    if (!nori__ir_keep(b->ir, t)) {
        return nori__no_memory(b->err);
    }
    nori__value *v = nori__map_get_n(&g->names, name.p, name.n);
    bool listed = v && (v->flags & NORI__VALUE_INPUT) && !(v->flags & NORI__VALUE_INITIALIZER);
    if (!listed) {
        NORI__TRY(declare(b, g, name, "an initializer", &v));
    }
    v->constant = t;
    v->flags |= NORI__VALUE_INITIALIZER;
    if (listed && b->ir->ir_version < 4) {
        v->flags &= ~(uint32_t)NORI__VALUE_INPUT;
    }
    b->ir->loose = b->ir->loose || t->loose;
    if ((v->flags & NORI__VALUE_INPUT) && !nori__tensor_settle(t)) {
        return nori__no_memory(b->err); /* kernels take it as they take what a caller gives */
    }
    if (!(v->flags & NORI__VALUE_INPUT)) {
        nori__dim dims[NORI_MAX_RANK];
        for (int i = 0; i < t->rank; i++) {
            dims[i] = nori__dim_of(t->dims[i]);
        }
        if (!nori__type_set(&b->ir->arena, &v->type, (nori_type)t->type, t->rank, dims)) {
            return nori__no_memory(b->err);
        }
        v->declared = v->type;
    }
    return NORI_OK;
}

static nori_status build_initializers(nori__builder *b, nori__graph *g, const nori__pb_graph *pb)
{
    for (size_t i = 0; i < pb->initializers.count; i++) {
        const nori__pb_tensor *p = &pb->initializers.items[i];
        nori_tensor *t = NULL;
        nori_status status =
            nori__initializer_from_pb(b->ir->allocator, p, b->ir->external, &t, b->err);
        status = status == NORI_OK ? add_initializer(b, g, p->name, t) : status;
        if (status != NORI_OK) {
            nori__where(b->err, "initializer '%.*s'", (int)(p->name.n < 200 ? p->name.n : 200),
                        p->name.p ? p->name.p : "");
            return status;
        }
    }
    for (size_t i = 0; i < pb->sparse_initializers.count; i++) {
        const nori__pb_sparse *p = &pb->sparse_initializers.items[i];
        nori__str name = p->values ? p->values->name : (nori__str){NULL, 0};
        nori_tensor *t = NULL;
        nori_status status = nori__sparse_from_pb(b->ir, p, &t, b->err);
        status = status == NORI_OK ? add_initializer(b, g, name, t) : status;
        if (status != NORI_OK) {
            nori__where(b->err, "sparse initializer '%.*s'",
                        (int)(name.n < 200 ? name.n : 200), name.p ? name.p : "");
            return status;
        }
    }
    return NORI_OK;
}

/* ---- inputs and outputs ---- */

static nori_status declare_inputs(nori__builder *b, nori__graph *g, const nori__pb_graph *pb)
{
    g->inputs = nori__arena_array(&b->ir->arena, pb->inputs.count, sizeof(*g->inputs));
    if (!g->inputs) {
        return nori__no_memory(b->err);
    }
    for (size_t i = 0; i < pb->inputs.count; i++) {
        nori__value *v;
        NORI__TRY(declare(b, g, pb->inputs.items[i].name, "an input", &v));
        NORI__TRY(declare_type(b, v, &pb->inputs.items[i]));
        v->flags |= NORI__VALUE_INPUT;
        g->inputs[g->input_count++] = v;
    }
    return NORI_OK;
}

/* Drops inputs that turned out to be constants; those with a default go to the end of the main
 * graph's list (positions in a body matter, so those stay). */
static nori_status sort_inputs(nori__builder *b, nori__graph *g)
{
    nori__value **sorted =
        nori__arena_array(&b->ir->arena, g->input_count, sizeof(*g->inputs));
    if (!sorted) {
        return nori__no_memory(b->err);
    }
    uint32_t n = 0;
    for (int optional = 0; optional < 2; optional++) {
        for (uint32_t i = 0; i < g->input_count; i++) {
            nori__value *v = g->inputs[i];
            bool last = !g->parent && (v->flags & NORI__VALUE_INITIALIZER);
            if ((v->flags & NORI__VALUE_INPUT) && last == (optional != 0)) {
                sorted[n++] = v;
            }
        }
    }
    g->inputs = sorted;
    g->input_count = n;
    return NORI_OK;
}

static nori_status add_output(nori__builder *b, nori__graph *g, nori__str name, nori__value **out)
{
    nori__value *v = name.n > 0 ? find_outer(g, name) : NULL;
    if (!v) {
        return nori__fail(b->err, NORI_ERROR_MODEL,
                          "output '%.*s' of graph " NAME_FMT
                          " is not defined: no node output, input or initializer has this name",
                          (int)(name.n < 200 ? name.n : 200), name.p ? name.p : "", g->name);
    }
    if (v->graph == g) {
        v->flags |= NORI__VALUE_OUTPUT;
    }
    v->uses++;
    b->unsorted = b->unsorted || (v->graph != g && !made_before(v, g->parent_node));
    g->outputs[g->output_count++] = v;
    *out = v;
    return NORI_OK;
}

static nori_status build_outputs(nori__builder *b, nori__graph *g, const nori__pb_graph *pb)
{
    g->outputs = nori__arena_array(&b->ir->arena, pb->outputs.count, sizeof(*g->outputs));
    if (!g->outputs) {
        return nori__no_memory(b->err);
    }
    for (size_t i = 0; i < pb->outputs.count; i++) {
        nori__value *v;
        NORI__TRY(add_output(b, g, pb->outputs.items[i].name, &v));
        if (v->graph == g && v->type.kind == NORI_KIND_UNKNOWN) {
            NORI__TRY(declare_type(b, v, &pb->outputs.items[i]));
        }
    }
    return NORI_OK;
}

static nori_status build_value_info(nori__builder *b, nori__graph *g, const nori__pb_value *infos,
                                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        nori__value *v = nori__map_get_n(&g->names, infos[i].name.p, infos[i].name.n);
        if (v && v->type.kind == NORI_KIND_UNKNOWN) {
            NORI__TRY(declare_type(b, v, &infos[i]));
        }
    }
    return NORI_OK;
}

/* ---- nodes ---- */

static nori_status fail_in_node(nori__builder *b, const nori__node *node, nori_status status)
{
    char path[256];
    nori__node_path(node, path, sizeof(path));
    nori__where(b->err, "node %s", path);
    return status;
}

/* Text that many nodes share: one copy, and one pointer, of each of the last ones seen. */
static nori_status common_text(nori__builder *b, nori__str s, const char *what, const char **text)
{
    size_t n = s.n;
    size_t slot = n > 0 ? ((size_t)(uint8_t)s.p[0] * 5 + (uint8_t)s.p[n - 1] + n * 11) : 0;
    const char **last = &b->common[slot % NORI__COUNT(b->common)];
    /* The copy holds no NUL but its end. */
    if (n > 0 && *last && strncmp(*last, s.p, n) == 0 && !(*last)[n]) {
        *text = *last;
        return NORI_OK;
    }
    NORI__TRY(nori__text_from_pb(b, s, what, text));
    *last = n > 0 ? *text : NULL;
    return NORI_OK;
}

/* Inputs that this graph has declared so far; nothing is done unless all are. */
static bool wire_early(nori__builder *b, const nori__graph *g, nori__node *node,
                       const nori__pb_node *pb)
{
    size_t count = pb->inputs.count;
    for (size_t i = 0; i < count; i++) {
        nori__str name = pb->inputs.items[i];
        node->inputs[i] = name.n > 0 ? nori__map_get_near(&g->names, name.p, name.n, &b->near) : NULL;
        if (name.n > 0 && !node->inputs[i]) {
            return false;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (node->inputs[i]) {
            node->inputs[i]->uses++;
        }
    }
    node->input_count = (uint32_t)count;
    return true;
}

/* Of one node: what infers and runs it keeps a shape for each. */
enum { MOST_WIRES = 65536 };

/* The node with its outputs declared; attributes, and inputs that did not come before it, wait
 * until all names are known. */
static nori_status begin_node(nori__builder *b, nori__graph *g, const nori__pb_node *pb)
{
    nori__ir *ir = b->ir;
    if (pb->inputs.count > MOST_WIRES || pb->outputs.count > MOST_WIRES || pb->attrs.count > MOST_WIRES) {
        return nori__fail(b->err, NORI_ERROR_LIMIT,
                          "a node has %zu inputs, %zu outputs and %zu attributes, more than %d are not taken",
                          pb->inputs.count, pb->outputs.count, pb->attrs.count, MOST_WIRES);
    }
    nori__node *node =
        nori__node_make(ir, pb->inputs.count, pb->outputs.count, pb->attrs.count);
    if (!node) {
        return nori__no_memory(b->err);
    }
    node->pb = pb;
    NORI__TRY(nori__text_from_pb(b, pb->name, "a node name", &node->name));
    NORI__TRY(common_text(b, pb->op_type, "an operator name", &node->op_type));
    NORI__TRY(nori__text_from_pb(b, pb->overload, "an overload name", &node->overload));
    NORI__TRY(common_text(b, pb->domain, "a domain", &node->domain));
    if (nori__same(node->domain, "ai.onnx")) {
        node->domain = "";
    }
    node->id = ir->node_count++;
    nori__node_link(g, NULL, node);
    if (pb->op_type.n == 0) {
        return fail_in_node(b, node, nori__fail(b->err, NORI_ERROR_MODEL,
                                                "the node names no operator (op_type is empty)"));
    }
    if ((!wire_early(b, g, node, pb) || pb->attrs.count > 0) &&
        !nori__vec_push(&b->waiting, node)) {
        return nori__no_memory(b->err);
    }
    for (size_t i = 0; i < pb->outputs.count; i++) {
        nori__value *v = NULL;
        if (pb->outputs.items[i].n > 0) {
            nori_status status = declare(b, g, pb->outputs.items[i], "a node output", &v);
            if (status != NORI_OK) {
                return fail_in_node(b, node, status);
            }
            v->producer = node;
        }
        node->outputs[node->output_count++] = v;
    }
    return NORI_OK;
}

static nori_status wire_node(nori__builder *b, nori__graph *g, nori__node *node)
{
    const nori__pb_node *pb = node->pb;
    for (size_t i = node->input_count; i < pb->inputs.count; i++) {
        nori__str name = pb->inputs.items[i];
        nori__value *v = NULL;
        if (name.n > 0) {
            v = find_outer(g, name);
            if (!v) {
                nori__fail(b->err, NORI_ERROR_MODEL,
                           "input %zu, '%.*s', is not defined: no graph input, initializer or "
                           "node output has this name, here or in the graphs around",
                           i, (int)(name.n < 200 ? name.n : 200), name.p);
                return fail_in_node(b, node, NORI_ERROR_MODEL);
            }
            v->uses++;
            b->unsorted = b->unsorted || !made_before(v, node);
        }
        node->inputs[node->input_count++] = v;
    }
    for (size_t i = 0; i < pb->attrs.count; i++) {
        nori_status status =
            nori__attr_from_pb(b, node, &pb->attrs.items[i], &node->attrs[node->attr_count]);
        if (status != NORI_OK) {
            return fail_in_node(b, node, status);
        }
        node->attr_count++;
    }
    return NORI_OK;
}

static nori_status build_nodes(nori__builder *b, nori__graph *g, const nori__pb_node *nodes,
                               size_t count)
{
    if (count > INT32_MAX - b->ir->node_count) {
        return nori__fail(b->err, NORI_ERROR_LIMIT, "more than 2^31 nodes");
    }
    for (size_t i = 0; i < count; i++) {
        NORI__TRY(begin_node(b, g, &nodes[i]));
    }
    for (size_t i = 0; i < b->waiting.count; i++) {
        NORI__TRY(wire_node(b, g, b->waiting.items[i]));
    }
    b->waiting.count = 0;
    return NORI_OK;
}

/* After all graphs were built: nodes in an order in which values are made before they are used. */
static nori_status bring_into_order(nori__builder *b, nori__graph *first, uint32_t low)
{
    return b->unsorted
               ? nori__graphs_order(first, b->ir->allocator, low, b->ir->node_count, b->err)
               : NORI_OK;
}

static nori_status build_graph(nori__builder *b, nori__graph *g)
{
    const nori__pb_graph *pb = g->pb;
    if (g->depth > NORI__PB_MAX_NESTING) {
        return nori__fail(b->err, NORI_ERROR_LIMIT, "graphs are nested more than %d deep",
                          NORI__PB_MAX_NESTING);
    }
    NORI__TRY(nori__text_from_pb(b, pb->name, "a graph name", &g->name));
    size_t names; /* as most nodes have one output; what is missing is made room for later */
    if (!nori__add_size(pb->inputs.count, pb->initializers.count, &names) ||
        !nori__add_size(names, pb->nodes.count, &names) ||
        !nori__map_reserve(&g->names, names)) {
        return nori__no_memory(b->err);
    }
    NORI__TRY(declare_inputs(b, g, pb));
    NORI__TRY(build_initializers(b, g, pb));
    NORI__TRY(sort_inputs(b, g));
    NORI__TRY(build_nodes(b, g, pb->nodes.items, pb->nodes.count));
    NORI__TRY(build_outputs(b, g, pb));
    return build_value_info(b, g, pb->value_info.items, pb->value_info.count);
}

/* ---- the model ---- */

static nori_status build_opsets(nori__builder *b, const nori__pb_model *pb)
{
    nori__ir *ir = b->ir;
    size_t count = pb->opsets.count;
    if (count > MAX_OPSETS) {
        return nori__fail(b->err, NORI_ERROR_LIMIT,
                          "the model imports %zu operator sets, at most %d are taken", count,
                          MAX_OPSETS);
    }
    ir->opsets = nori__arena_array(&ir->arena, count + 1, sizeof(*ir->opsets));
    if (!ir->opsets) {
        return nori__no_memory(b->err);
    }
    for (size_t i = 0; i < count; i++) {
        const char *domain;
        NORI__TRY(nori__text_from_pb(b, pb->opsets.items[i].domain, "a domain", &domain));
        domain = nori__same(domain, "ai.onnx") ? "" : domain;
        ir->opsets[ir->opset_count++] = (nori__opset){domain, pb->opsets.items[i].version};
    }
    if (count == 0) {
        if (ir->ir_version >= 3) {
            return nori__fail(b->err, NORI_ERROR_MODEL,
                              "the model imports no operator set (opset_import is empty), which "
                              "IR version %lld requires",
                              (long long)ir->ir_version);
        }
        if (nori__ir_warn(ir, "the model names no operator set: ai.onnx 1 is assumed") != NORI_OK) {
            return nori__no_memory(b->err);
        }
        ir->opsets[ir->opset_count++] = (nori__opset){"", 1};
    }
    return NORI_OK;
}

static nori_status build_all(nori__builder *b, const nori__pb_model *pb)
{
    nori__ir *ir = b->ir;
    if (!pb->graph) {
        return nori__fail(b->err, NORI_ERROR_MODEL, "the model has no graph");
    }
    NORI__TRY(build_opsets(b, pb));
    ir->main = nori__graph_new(ir, NULL, NULL);
    if (!ir->main) {
        return nori__no_memory(b->err);
    }
    ir->main->pb = pb->graph;
    ir->graphs = ir->main;
    for (nori__graph *g = ir->main; g; g = g->next_graph) {
        NORI__TRY(build_graph(b, g));
    }
    return bring_into_order(b, ir->graphs, 0);
}

nori_status nori__ir_build(const nori_allocator *a, const nori__pb_model *pb,
                           nori__external *external, nori__ir **result, nori_error *err)
{
    *result = NULL;
    nori__ir *ir = nori__ir_new(a, NULL);
    if (!ir) {
        return nori__no_memory(err);
    }
    ir->ir_version = pb->ir_version;
    ir->pb = pb;
    ir->external = external;
    nori__builder b = {.ir = ir, .err = err};
    nori__vec_init(&b.waiting, a);
    nori_status status = build_all(&b, pb);
    nori__vec_free(&b.waiting);
    if (status != NORI_OK) {
        nori__ir_free(ir);
        return status;
    }
    *result = ir;
    return NORI_OK;
}

/* ---- functions ---- */

static nori_status build_function(nori__builder *b, nori__graph *g, const nori__pb_function *pb)
{
    nori__ir *ir = b->ir;
    uint32_t low = ir->node_count;
    NORI__TRY(nori__text_from_pb(b, pb->name, "a function name", &g->name));
    g->inputs = nori__arena_array(&ir->arena, pb->inputs.count, sizeof(*g->inputs));
    g->outputs = nori__arena_array(&ir->arena, pb->outputs.count, sizeof(*g->outputs));
    if (!g->inputs || !g->outputs) {
        return nori__no_memory(b->err);
    }
    for (size_t i = 0; i < pb->inputs.count; i++) {
        nori__value *v;
        NORI__TRY(declare(b, g, pb->inputs.items[i], "an input", &v));
        v->flags |= NORI__VALUE_INPUT;
        g->inputs[g->input_count++] = v;
    }
    NORI__TRY(build_nodes(b, g, pb->nodes.items, pb->nodes.count));
    for (size_t i = 0; i < pb->outputs.count; i++) {
        nori__value *v;
        NORI__TRY(add_output(b, g, pb->outputs.items[i], &v));
    }
    NORI__TRY(build_value_info(b, g, pb->value_info.items, pb->value_info.count));
    for (nori__graph *inner = g->next_graph; inner; inner = inner->next_graph) {
        NORI__TRY(build_graph(b, inner));
    }
    return bring_into_order(b, g, low);
}

nori_status nori__function_build(nori__ir *ir, const nori__pb_function *pb, nori__graph **body,
                                 nori_error *err)
{
    nori__graph *g = nori__graph_new(ir, NULL, NULL);
    if (!g) {
        return nori__no_memory(err);
    }
    nori__builder b = {.ir = ir, .err = err, .function = true};
    nori__vec_init(&b.waiting, ir->allocator);
    nori_status status = build_function(&b, g, pb);
    nori__vec_free(&b.waiting);
    if (status != NORI_OK) {
        nori__where(err, "function '%.200s'", g->name);
        nori__function_free(g);
        return status;
    }
    *body = g;
    return NORI_OK;
}

void nori__function_free(nori__graph *body)
{
    for (nori__graph *g = body; g; g = g->next_graph) {
        nori__map_free(&g->names);
    }
}

nori_status nori__attr_build(nori__ir *ir, const nori__pb_attr *pb, nori__attr *attr,
                             nori_error *err)
{
    nori__builder b = {.ir = ir, .err = err};
    return nori__attr_from_pb(&b, NULL, pb, attr);
}
