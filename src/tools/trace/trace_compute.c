/* trace_compute.c: one recorded operation, computed at once: as a model of one node, run by a session, so
 * that it means what it will mean in the graph. */
#include "base/byte_order.h"
#include "ops/schema.h"
#include "run/run.h"
#include "tools/trace/tracer.h"

/* Constants of up to this many elements go along as initializers: kernels may want to know them before
 * they run (axes, shapes). The rest is fed, and so not copied. */
enum { SMALL = 64 };

static nori__pb_shape *shape_of(nori__arena *arena, const nori_tensor *t)
{
    nori__pb_shape *s = nori__arena_alloc(arena, sizeof(*s));
    nori__pb_dim *dims = nori__arena_array(arena, t->rank + (size_t)1, sizeof(*dims));
    if (!s || !dims) {
        return NULL;
    }
    for (int d = 0; d < t->rank; d++) {
        dims[d].has_value = true;
        dims[d].value = t->dims[d];
    }
    s->dims.items = dims;
    s->dims.count = t->rank;
    return s;
}

nori__pb_type *nori__trace_type(nori__arena *arena, const nori_tensor *t, bool shape)
{
    nori__pb_type *first = NULL, **to = &first;
    for (; t; t = t->kind == NORI_KIND_TENSOR || t->count == 0 ? NULL : ((nori_tensor *const *)t->data)[0]) {
        nori__pb_type *type = nori__arena_alloc(arena, sizeof(*type));
        if (!type || t->kind == NORI_KIND_MAP || t->kind == NORI_KIND_SPARSE) {
            return NULL;
        }
        type->kind = (nori_kind)t->kind;
        type->elem = t->kind == NORI_KIND_TENSOR ? t->type : 0;
        *to = type;
        to = &type->of;
        if (t->kind == NORI_KIND_TENSOR && shape && type == first) {
            type->shape = shape_of(arena, t);
            if (!type->shape) {
                return NULL;
            }
        }
    }
    return first && (first->kind == NORI_KIND_TENSOR || first->of) ? first : NULL;
}

void nori__recorded_to_pb(const nori__recorded *op, nori__pb_node *pb)
{
    pb->op_type = nori__str_of(op->op);
    pb->domain = nori__str_of(op->domain);
    pb->attrs.items = op->attrs;
    pb->attrs.count = op->n_attrs;
}

typedef struct small_model {
    nori__arena arena;
    nori__pb_model model;
    nori__pb_graph graph;
    nori__pb_node node;
    nori__pb_opset opsets[4];
    const nori_tensor **feeds;
    size_t n_feeds;
} small_model;

static nori__str numbered(small_model *m, const char *stem, size_t i)
{
    char *name = nori__arena_printf(&m->arena, "%s%zu", stem, i);
    return name ? nori__str_of(name) : (nori__str){NULL, 0};
}

static bool put_initializer(small_model *m, nori__str name, const nori_tensor *t)
{
    nori__pb_tensor *pb = &m->graph.initializers.items[m->graph.initializers.count++];
    int64_t *dims = nori__arena_array(&m->arena, t->rank + (size_t)1, sizeof(*dims));
    if (!dims) {
        return false;
    }
    memcpy(dims, t->dims, t->rank * sizeof(*dims));
    *pb = (nori__pb_tensor){.name = name, .data_type = t->type, .has_raw = true};
    pb->raw = nori__file_bytes(&m->arena, (nori_type)t->type, t->data, t->bytes);
    pb->dims.items = dims;
    pb->dims.count = t->rank;
    return pb->raw.p != NULL;
}

static bool put_inputs(small_model *m, const nori__recorded *op)
{
    for (size_t i = 0; i < op->n_in; i++) {
        const nori_traced *v = op->in[i];
        size_t first = 0;
        while (first < i && op->in[first] != v) {
            first++;
        }
        nori__str name = v ? numbered(m, "nori:in:", first) : NORI__STR("");
        if (!name.p) {
            return false;
        }
        m->node.inputs.items[m->node.inputs.count++] = name;
        if (!v || first < i) {
            continue;
        }
        const nori_tensor *t = v->tensor;
        bool constant = !v->depends && t->kind == NORI_KIND_TENSOR && t->count <= SMALL &&
                        t->type != NORI_STRING;
        if (constant) {
            if (!put_initializer(m, name, t)) {
                return false;
            }
            continue;
        }
        nori__pb_value *in = &m->graph.inputs.items[m->graph.inputs.count++];
        in->name = name;
        in->type = nori__trace_type(&m->arena, t, true);
        m->feeds[m->n_feeds++] = t;
    }
    for (size_t i = 0; i < op->n_captures; i++) { /* inner graphs read them by name */
        const nori_tensor *t = op->captures[i].value->tensor;
        nori__pb_value *in = &m->graph.inputs.items[m->graph.inputs.count++];
        in->name = op->captures[i].name;
        in->type = nori__trace_type(&m->arena, t, true);
        m->feeds[m->n_feeds++] = t;
    }
    return true;
}

static nori_status build(nori_tracer *t, small_model *m, const nori__recorded *op)
{
    nori__arena *arena = &m->arena;
    size_t n_in = op->n_in + op->n_captures;
    m->graph.inputs.items = nori__arena_array(arena, n_in + 1, sizeof(nori__pb_value));
    m->graph.initializers.items = nori__arena_array(arena, op->n_in + 1, sizeof(nori__pb_tensor));
    m->graph.outputs.items = nori__arena_array(arena, op->n_out + 1, sizeof(nori__pb_value));
    m->node.inputs.items = nori__arena_array(arena, op->n_in + 1, sizeof(nori__str));
    m->node.outputs.items = nori__arena_array(arena, op->n_out + 1, sizeof(nori__str));
    m->feeds = nori__arena_array(arena, n_in + 1, sizeof(*m->feeds));
    bool ok = m->graph.inputs.items && m->graph.initializers.items && m->graph.outputs.items &&
              m->node.inputs.items && m->node.outputs.items && m->feeds && put_inputs(m, op);
    for (size_t i = 0; ok && i < op->n_out; i++) {
        nori__str name = numbered(m, "nori:out:", i);
        ok = name.p != NULL;
        m->node.outputs.items[m->node.outputs.count++] = name;
        m->graph.outputs.items[m->graph.outputs.count++].name = name;
    }
    if (!ok) {
        return nori__no_memory(t->err);
    }
    nori__recorded_to_pb(op, &m->node);
    m->node.name = m->node.op_type;
    m->graph.name = NORI__STR("one");
    m->graph.nodes.items = &m->node;
    m->graph.nodes.count = 1;
    m->opsets[0] = (nori__pb_opset){.version = NORI__OPSET_MAX_ONNX};
    m->opsets[1] = (nori__pb_opset){.domain = NORI__STR("ai.onnx.ml"), .version = NORI__OPSET_MAX_ML};
    size_t n = 2;
    if (op->domain[0] && !nori__same(op->domain, "ai.onnx.ml")) {
        m->opsets[n++] = (nori__pb_opset){.domain = nori__str_of(op->domain), .version = 1};
    }
    m->model = (nori__pb_model){.ir_version = NORI__IR_VERSION_MAX, .graph = &m->graph};
    m->model.opsets.items = m->opsets;
    m->model.opsets.count = n;
    return NORI_OK;
}

nori_status nori__trace_compute(nori_tracer *t, const nori__recorded *op, nori_tensor **out)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_load_options load;
    nori_session_options o;
    small_model *m = nori__alloc_zero(t->allocator, sizeof(*m));
    if (!m) {
        return nori__no_memory(t->err);
    }
    nori__arena_init(&m->arena, t->allocator);
    nori__text_init(&bytes, t->allocator);
    nori_load_options_default(&load);
    nori_session_options_default(&o);
    o.providers = t->options->providers;
    o.level = 1;
    nori_status s = build(t, m, op);
    s = s == NORI_OK ? nori__pb_write_model(&m->model, &bytes, t->err) : s;
    s = s == NORI_OK ? nori__model_from_bytes(t->env, &bytes, NULL, &load, &model, t->err) : s;
    s = s == NORI_OK ? nori_session_create(model, &o, &session, t->err) : s;
    s = s == NORI_OK ? nori_session_run(session, m->feeds, m->n_feeds, out, op->n_out, t->err) : s;
    nori_session_free(session);
    nori_model_free(model);
    nori__text_free(&bytes);
    nori__arena_free(&m->arena);
    nori__release(t->allocator, m, sizeof(*m));
    return s;
}
