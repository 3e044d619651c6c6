/* build.c: from messages to the graph: names become pointers. Names are looked up in the graph
 * itself, then outwards; what a subgraph defines hides an outer value of the same name (allowed in
 * old files, forbidden since ONNX 1.17: a warning). */
#include "graph/internal.h"

typedef struct builder {
    nori__ir *ir;
    nori__external *external;
    nori_error *err;
    int depth;
} builder;

static nori_status build_graph(builder *b, const nori__pb_graph *pb, nori__graph *parent,
                               nori__node *parent_node, nori__graph **out);

/* Names become terminated text; one with a NUL inside would be two different names. */
static nori_status name_of(builder *b, nori__str s, const char *what, const char **out)
{
    if (s.n > 0 && memchr(s.p, 0, s.n)) {
        return nori__fail(b->err, NORI_ERROR_FORMAT, "%s contains a NUL byte", what);
    }
    *out = nori__arena_copy(&b->ir->arena, s.n ? s.p : "", s.n);
    return *out ? NORI_OK : nori__no_memory(b->err);
}

/* ---- types ---- */

static nori_status read_type(builder *b, const nori__pb_type *pb, nori__type *type,
                             const char *name, int depth)
{
    *type = (nori__type){.kind = (uint8_t)pb->kind, .rank = -1};
    if (depth > NORI__PB_MAX_NESTING) {
        return nori__fail(b->err, NORI_ERROR_LIMIT, "value %s: its type is nested too deep", name);
    }
    if (pb->elem < 0 || pb->elem >= NORI_TYPE_COUNT) {
        return nori__fail(b->err, NORI_ERROR_MODEL,
                          "value %s: element type %d does not exist (1 to %d do)", name,
                          (int)pb->elem, NORI_TYPE_COUNT - 1);
    }
    type->elem = (uint8_t)pb->elem;
    if (pb->of) {
        nori__type *of = nori__arena_alloc(&b->ir->arena, sizeof(*of));
        if (!of) {
            return nori__no_memory(b->err);
        }
        type->of = of;
        NORI__TRY(read_type(b, pb->of, of, name, depth + 1));
    }
    if (!pb->shape) {
        return NORI_OK;
    }
    size_t rank = pb->shape->dims.count;
    if (rank > NORI_MAX_RANK) {
        return nori__fail(b->err, NORI_ERROR_LIMIT, "value %s: rank %zu, at most %d is taken", name,
                          rank, NORI_MAX_RANK);
    }
    type->dims = nori__arena_array(&b->ir->arena, rank + 1, sizeof(*type->dims));
    if (!type->dims) {
        return nori__no_memory(b->err);
    }
    type->rank = (int8_t)rank;
    for (size_t d = 0; d < rank; d++) {
        const nori__pb_dim *dim = &pb->shape->dims.items[d];
        type->dims[d] = NORI__DIM_ANY;
        if (dim->has_value && dim->value >= 0) { /* old exporters write -1 for "any" */
            type->dims[d].value = dim->value;
        } else if (dim->has_param && dim->param.n > 0) {
            NORI__TRY(name_of(b, dim->param, "a dimension name", &type->dims[d].name));
        }
    }
    return NORI_OK;
}

static nori_status declare(builder *b, const nori__pb_value *pb, nori__value *v)
{
    v->pb = pb;
    return pb->type ? read_type(b, pb->type, &v->type, v->name, 0) : NORI_OK;
}

static nori_status type_of_tensor(builder *b, nori__value *v, const nori_tensor *t)
{
    nori__dim dims[NORI_MAX_RANK];
    for (int d = 0; d < t->rank; d++) {
        dims[d] = nori__dim_of(t->dims[d]);
    }
    return nori__type_set(&b->ir->arena, &v->type, t->type, t->rank, dims)
               ? NORI_OK
               : nori__no_memory(b->err);
}

/* ---- values ---- */

static nori_status define(builder *b, nori__graph *g, nori__str name, const char *what,
                          nori__value **out)
{
    const char *text;
    NORI__TRY(name_of(b, name, what, &text));
    if (nori__map_get(&g->names, text)) {
        return nori__fail(b->err, NORI_ERROR_MODEL, "%s \"%s\" is defined a second time", what,
                          text);
    }
    if (g->parent && nori__value_find(g->parent, text)) {
        NORI__TRY(nori__ir_warn(b->ir,
                                "\"%s\" in subgraph %s hides a value of the same name outside it; "
                                "the inner one is used",
                                text, g->name));
    }
    *out = nori__value_add(g, text);
    return *out ? NORI_OK : nori__no_memory(b->err);
}

static nori_status sparse_tensor(builder *b, const nori__pb_sparse *pb, nori_tensor **out)
{
    if (!pb->values || !pb->indices || pb->dims.count > NORI_MAX_RANK) {
        return nori__fail(b->err, NORI_ERROR_MODEL,
                          "a sparse tensor needs values, indices and at most %d dimensions",
                          NORI_MAX_RANK);
    }
    nori_tensor *items[2] = {NULL, NULL};
    nori_status s = nori__tensor_from_pb(b->ir->allocator, pb->values, b->external, &items[0], b->err);
    if (s == NORI_OK) {
        s = nori__tensor_from_pb(b->ir->allocator, pb->indices, b->external, &items[1], b->err);
    }
    int rank = (int)pb->dims.count;
    int64_t total = 0;
    if (s == NORI_OK && (!nori__dims_count(rank, pb->dims.items, &total) || rank < 1 ||
                         items[1]->type != NORI_INT64 || items[1]->rank < 1 ||
                         items[1]->dims[0] != items[0]->count || items[0]->type == NORI_STRING ||
                         (items[1]->rank == 2 && items[1]->dims[1] != rank) ||
                         items[1]->rank > 2 || nori_type_bits(items[0]->type) < 8)) {
        s = nori__fail(b->err, NORI_ERROR_MODEL, "a sparse tensor's indices do not fit its values");
    }
    if (s == NORI_OK) { /* made dense at once: kernels see ordinary tensors */
        s = nori__tensor_new(b->ir->allocator, items[0]->type, rank, pb->dims.items, out, b->err);
    }
    if (s == NORI_OK) {
        size_t width = nori_type_bits(items[0]->type) / 8;
        const int64_t *index = items[1]->data;
        if ((*out)->bytes > 0) {
            memset((*out)->data, 0, (*out)->bytes);
        }
        for (int64_t i = 0; s == NORI_OK && i < items[0]->count; i++) {
            int64_t at = 0;
            if (items[1]->rank == 1) {
                at = index[i];
            }
            for (int d = 0; items[1]->rank == 2 && d < rank; d++) {
                int64_t x = index[i * rank + d];
                at = x < 0 || x >= pb->dims.items[d] ? INT64_MIN / 2 : at * pb->dims.items[d] + x;
            }
            if (at < 0 || at >= total) {
                s = nori__fail(b->err, NORI_ERROR_MODEL, "a sparse tensor's index is out of range");
            } else {
                memcpy((char *)(*out)->data + (size_t)at * width,
                       (const char *)items[0]->data + (size_t)i * width, width);
            }
        }
        if (s != NORI_OK) {
            nori_tensor_free(*out);
            *out = NULL;
        }
    }
    nori_tensor_free(items[0]);
    nori_tensor_free(items[1]);
    return s;
}

/* An initializer under the name of an input is that input's default. Before IR 4 every
 * initializer had to be listed as an input: there it is taken as the constant it is meant to be. */
static nori_status add_initializer(builder *b, nori__graph *g, nori__str name, nori_tensor *t)
{
    if (!nori__ir_keep(b->ir, t)) {
        return nori__no_memory(b->err);
    }
    nori__value *v = nori__map_get_n(&g->names, name.n ? name.p : "", name.n);
    if (v && (v->flags & NORI__VALUE_INPUT) && !v->constant) {
        if (b->ir->ir_version < 4) {
            v->flags &= ~(uint32_t)NORI__VALUE_INPUT;
        }
    } else {
        NORI__TRY(define(b, g, name, "initializer", &v));
    }
    v->flags |= NORI__VALUE_INITIALIZER;
    v->constant = t;
    return type_of_tensor(b, v, t);
}

static nori_status add_values(builder *b, const nori__pb_graph *pb, nori__graph *g)
{
    for (size_t i = 0; i < pb->inputs.count; i++) {
        nori__value *v = NULL;
        NORI__TRY(define(b, g, pb->inputs.items[i].name, "input", &v));
        v->flags |= NORI__VALUE_INPUT;
        NORI__TRY(declare(b, &pb->inputs.items[i], v));
    }
    for (size_t i = 0; i < pb->initializers.count; i++) {
        const nori__pb_tensor *t = &pb->initializers.items[i];
        nori_tensor *tensor = NULL;
        NORI__TRY(nori__tensor_from_pb(b->ir->allocator, t, b->external, &tensor, b->err));
        NORI__TRY(add_initializer(b, g, t->name, tensor));
    }
    for (size_t i = 0; i < pb->sparse_initializers.count; i++) {
        const nori__pb_sparse *s = &pb->sparse_initializers.items[i];
        nori_tensor *tensor = NULL;
        NORI__TRY(sparse_tensor(b, s, &tensor));
        NORI__TRY(add_initializer(b, g, s->values->name, tensor));
    }
    for (size_t i = 0; i < pb->nodes.count; i++) {
        const nori__pb_node *node = &pb->nodes.items[i];
        for (size_t o = 0; o < node->outputs.count; o++) {
            nori__value *v = NULL;
            if (node->outputs.items[o].n > 0) {
                NORI__TRY(define(b, g, node->outputs.items[o], "value", &v));
            }
        }
    }
    for (size_t i = 0; i < pb->value_info.count; i++) {
        nori__str name = pb->value_info.items[i].name;
        nori__value *v = nori__map_get_n(&g->names, name.n ? name.p : "", name.n);
        if (v && !v->pb && !v->constant) {
            NORI__TRY(declare(b, &pb->value_info.items[i], v));
        }
    }
    return NORI_OK;
}

/* ---- nodes ---- */

static nori_status build_attr(builder *b, const nori__pb_attr *pb, nori__attr *attr,
                              nori__node *node)
{
    attr->pb = pb;
    attr->kind = pb->kind;
    NORI__TRY(name_of(b, pb->name, "an attribute name", &attr->name));
    if (pb->ref_name.n > 0) {
        NORI__TRY(name_of(b, pb->ref_name, "an attribute name", &attr->ref));
    }
    if (attr->kind == NORI__ATTR_NONE && !attr->ref) { /* IR 1 does not say: told by what is there */
        attr->kind = pb->t                ? NORI__ATTR_TENSOR
                     : pb->g              ? NORI__ATTR_GRAPH
                     : pb->ints.count     ? NORI__ATTR_INTS
                     : pb->floats.count   ? NORI__ATTR_FLOATS
                     : pb->strings.count  ? NORI__ATTR_STRINGS
                     : pb->s.n            ? NORI__ATTR_STRING
                     : pb->f != 0         ? NORI__ATTR_FLOAT
                                          : NORI__ATTR_INT;
    }
    switch (attr->kind) {
    case NORI__ATTR_FLOAT:
        attr->v.f = pb->f;
        break;
    case NORI__ATTR_INT:
        attr->v.i = pb->i;
        break;
    case NORI__ATTR_STRING:
        attr->count = pb->s.n;
        attr->v.s = nori__arena_copy(&b->ir->arena, pb->s.n ? pb->s.p : "", pb->s.n);
        return attr->v.s ? NORI_OK : nori__no_memory(b->err);
    case NORI__ATTR_FLOATS:
        attr->count = pb->floats.count;
        attr->v.floats = pb->floats.items;
        break;
    case NORI__ATTR_INTS:
        attr->count = pb->ints.count;
        attr->v.ints = pb->ints.items;
        break;
    case NORI__ATTR_STRINGS:
        attr->count = pb->strings.count;
        attr->v.strings = pb->strings.items;
        break;
    case NORI__ATTR_TENSOR:
        if (!pb->t) {
            return nori__fail(b->err, NORI_ERROR_MODEL, "attribute %s has no tensor", attr->name);
        }
        NORI__TRY(nori__tensor_from_pb(b->ir->allocator, pb->t, b->external, &attr->v.tensor, b->err));
        return nori__ir_keep(b->ir, attr->v.tensor) ? NORI_OK : nori__no_memory(b->err);
    case NORI__ATTR_SPARSE:
        if (!pb->sparse) {
            return nori__fail(b->err, NORI_ERROR_MODEL, "attribute %s has no tensor", attr->name);
        }
        NORI__TRY(sparse_tensor(b, pb->sparse, &attr->v.tensor));
        return nori__ir_keep(b->ir, attr->v.tensor) ? NORI_OK : nori__no_memory(b->err);
    case NORI__ATTR_TENSORS:
        attr->v.tensors = nori__arena_array(&b->ir->arena, pb->tensors.count + 1, sizeof(void *));
        if (!attr->v.tensors) {
            return nori__no_memory(b->err);
        }
        for (size_t i = 0; i < pb->tensors.count; i++) {
            nori_tensor *t = NULL;
            NORI__TRY(nori__tensor_from_pb(b->ir->allocator, &pb->tensors.items[i], b->external, &t,
                                           b->err));
            if (!nori__ir_keep(b->ir, t)) {
                return nori__no_memory(b->err);
            }
            attr->v.tensors[attr->count++] = t;
        }
        break;
    case NORI__ATTR_GRAPH:
        if (!pb->g) {
            return nori__fail(b->err, NORI_ERROR_MODEL, "attribute %s has no graph", attr->name);
        }
        return build_graph(b, pb->g, node->graph, node, &attr->v.graph);
    case NORI__ATTR_GRAPHS:
        attr->v.graphs = nori__arena_array(&b->ir->arena, pb->graphs.count + 1, sizeof(void *));
        if (!attr->v.graphs) {
            return nori__no_memory(b->err);
        }
        for (size_t i = 0; i < pb->graphs.count; i++) {
            NORI__TRY(build_graph(b, pb->graphs.items[i], node->graph, node,
                                  &attr->v.graphs[attr->count++]));
        }
        break;
    case NORI__ATTR_TYPE: {
        nori__type *type = nori__arena_alloc(&b->ir->arena, sizeof(*type));
        attr->v.type = type;
        if (!type) {
            return nori__no_memory(b->err);
        }
        return pb->tp ? read_type(b, pb->tp, type, attr->name, 0) : NORI_OK;
    }
    default:
        break;
    }
    return NORI_OK;
}

static nori_status build_node(builder *b, const nori__pb_node *pb, nori__graph *g)
{
    nori__node *node = nori__node_add(g);
    if (!node) {
        return nori__no_memory(b->err);
    }
    node->pb = pb;
    NORI__TRY(name_of(b, pb->name, "a node name", &node->name));
    NORI__TRY(name_of(b, pb->op_type, "an operator name", &node->op_type));
    NORI__TRY(name_of(b, pb->domain, "a domain", &node->domain));
    NORI__TRY(name_of(b, pb->overload, "an overload name", &node->overload));
    if (nori__same(node->domain, "ai.onnx")) {
        node->domain = "";
    }
    nori__arena *arena = &b->ir->arena;
    if (pb->inputs.count > UINT32_MAX / 2 || pb->outputs.count > UINT32_MAX / 2) {
        return nori__fail(b->err, NORI_ERROR_LIMIT, "too many inputs");
    }
    node->inputs = nori__arena_array(arena, pb->inputs.count + 1, sizeof(*node->inputs));
    node->outputs = nori__arena_array(arena, pb->outputs.count + 1, sizeof(*node->outputs));
    node->attrs = nori__arena_array(arena, pb->attrs.count + 1, sizeof(*node->attrs));
    if (!node->inputs || !node->outputs || !node->attrs) {
        return nori__no_memory(b->err);
    }
    node->output_count = (uint32_t)pb->outputs.count;
    for (uint32_t i = 0; i < node->output_count; i++) {
        nori__str name = pb->outputs.items[i];
        if (name.n > 0) {
            node->outputs[i] = nori__map_get_n(&g->names, name.p, name.n);
            node->outputs[i]->producer = node;
        }
    }
    node->input_count = (uint32_t)pb->inputs.count;
    for (uint32_t i = 0; i < node->input_count; i++) {
        nori__str name = pb->inputs.items[i];
        if (name.n == 0) {
            continue;
        }
        for (nori__graph *at = g; at && !node->inputs[i]; at = at->parent) {
            node->inputs[i] = nori__map_get_n(&at->names, name.p, name.n);
        }
        if (!node->inputs[i]) {
            return nori__fail(b->err, NORI_ERROR_MODEL,
                              "input %u is \"%.*s\", which nothing defines", i,
                              (int)(name.n < 200 ? name.n : 200), name.p);
        }
    }
    for (size_t i = 0; i < pb->attrs.count; i++) {
        NORI__TRY(build_attr(b, &pb->attrs.items[i], &node->attrs[i], node));
        node->attr_count++;
    }
    return NORI_OK;
}

static nori_status add_outputs(builder *b, const nori__pb_graph *pb, nori__graph *g)
{
    g->outputs = nori__arena_array(&b->ir->arena, pb->outputs.count + 1, sizeof(*g->outputs));
    if (!g->outputs) {
        return nori__no_memory(b->err);
    }
    for (size_t i = 0; i < pb->outputs.count; i++) {
        const char *name;
        NORI__TRY(name_of(b, pb->outputs.items[i].name, "output", &name));
        nori__value *v = nori__value_find(g, name);
        if (!v) {
            return nori__fail(b->err, NORI_ERROR_MODEL,
                              "graph output \"%s\" is defined by no node, input or initializer",
                              name);
        }
        v->flags |= v->graph == g ? NORI__VALUE_OUTPUT : 0;
        if (v->graph == g && !v->pb && !v->constant) {
            NORI__TRY(declare(b, &pb->outputs.items[i], v));
        }
        g->outputs[g->output_count++] = v;
    }
    return NORI_OK;
}

/* Inputs that must be fed first, then those with a default. */
static nori_status add_inputs(builder *b, const nori__pb_graph *pb, nori__graph *g)
{
    g->inputs = nori__arena_array(&b->ir->arena, pb->inputs.count + 1, sizeof(*g->inputs));
    if (!g->inputs) {
        return nori__no_memory(b->err);
    }
    for (int with_default = 0; with_default < 2; with_default++) {
        for (size_t i = 0; i < pb->inputs.count; i++) {
            nori__str name = pb->inputs.items[i].name;
            nori__value *v = nori__map_get_n(&g->names, name.n ? name.p : "", name.n);
            if ((v->flags & NORI__VALUE_INPUT) && (v->constant != NULL) == with_default) {
                g->inputs[g->input_count++] = v;
            }
        }
    }
    return NORI_OK;
}

static nori_status build_graph(builder *b, const nori__pb_graph *pb, nori__graph *parent,
                               nori__node *parent_node, nori__graph **out)
{
    nori__graph *g = nori__graph_new(b->ir, parent);
    *out = g;
    if (!g) {
        return nori__no_memory(b->err);
    }
    if (b->depth >= NORI__PB_MAX_NESTING) {
        return nori__fail(b->err, NORI_ERROR_LIMIT, "subgraphs are nested more than %d deep",
                          NORI__PB_MAX_NESTING);
    }
    b->depth++;
    g->pb = pb;
    g->parent_node = parent_node;
    NORI__TRY(name_of(b, pb->name, "a graph name", &g->name));
    NORI__TRY(add_values(b, pb, g));
    NORI__TRY(add_inputs(b, pb, g));
    for (size_t i = 0; i < pb->nodes.count; i++) {
        nori_status s = build_node(b, &pb->nodes.items[i], g);
        if (s != NORI_OK) {
            if (g->last && b->err && !b->err->where[0]) {
                char path[256];
                nori__node_path(g->last, path, sizeof(path));
                nori__where(b->err, "%s", path);
            }
            return s;
        }
    }
    NORI__TRY(add_outputs(b, pb, g));
    b->depth--;
    return nori__graph_order(g, b->err);
}

static nori_status read_opsets(builder *b, const nori__pb_model *pb)
{
    nori__ir *ir = b->ir;
    ir->opsets = nori__arena_array(&ir->arena, pb->opsets.count + 1, sizeof(*ir->opsets));
    if (!ir->opsets) {
        return nori__no_memory(b->err);
    }
    for (size_t i = 0; i < pb->opsets.count; i++) {
        nori__opset *o = &ir->opsets[ir->opset_count++];
        NORI__TRY(name_of(b, pb->opsets.items[i].domain, "a domain", &o->domain));
        o->domain = nori__same(o->domain, "ai.onnx") ? "" : o->domain;
        o->version = pb->opsets.items[i].version;
    }
    if (ir->opset_count > 0) {
        return NORI_OK;
    }
    if (pb->ir_version >= 3) {
        nori_status s = nori__fail(b->err, NORI_ERROR_MODEL,
                                   "the model imports no operator set (opset_import is empty)");
        nori__hint(b->err, "only files of IR version 1 and 2 may leave it out; this one says %lld",
                   (long long)pb->ir_version);
        return s;
    }
    ir->opsets[ir->opset_count++] = (nori__opset){"", 1};
    return nori__ir_warn(ir, "the model names no operator set; its IR version %lld implies "
                             "operator set 1",
                         (long long)pb->ir_version);
}

nori_status nori__ir_build(const nori_allocator *a, const nori__pb_model *pb,
                           nori__external *external, nori__ir **out, nori_error *err)
{
    *out = NULL;
    nori__ir *ir = nori__ir_new(a);
    if (!ir) {
        return nori__no_memory(err);
    }
    ir->pb = pb;
    ir->ir_version = pb->ir_version;
    builder b = {.ir = ir, .external = external, .err = err};
    nori_status s = read_opsets(&b, pb);
    if (s == NORI_OK) {
        s = build_graph(&b, pb->graph, NULL, NULL, &ir->main);
    }
    if (s != NORI_OK) {
        nori__ir_free(ir);
        return s;
    }
    nori__count_uses(ir);
    *out = ir;
    return NORI_OK;
}
