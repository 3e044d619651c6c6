/* trace_model.c: what was recorded as a model: operations that lead to outputs, constants they read, then
 * shapes of outputs by inference, then the operator set. */
#include "base/byte_order.h"
#include "ops/resolve.h"
#include "ops/schema.h"
#include "run/run.h"
#include "tools/convert/lower.h"
#include "tools/trace/tracer.h"

typedef struct making {
    nori_tracer *t;
    nori__arena *arena;
    nori_traced *const *inputs, *const *outputs;
    size_t n_in, n_out;
    nori__pb_model model;
    nori__pb_graph graph;
    nori__pb_opset *opsets;
} making;

/* From the outputs back: operations are in order, so one walk does. */
static void mark_used(making *m)
{
    for (size_t i = 0; i < m->n_out; i++) {
        m->outputs[i]->used = true;
    }
    for (size_t i = m->t->ops.count; i-- > 0;) {
        nori__recorded *op = m->t->ops.items[i];
        for (size_t k = 0; k < op->n_out; k++) {
            op->used = op->used || (op->out[k] && op->out[k]->used);
        }
        for (size_t k = 0; op->used && k < op->n_in; k++) {
            if (op->in[k]) {
                op->in[k]->used = true;
            }
        }
        for (size_t k = 0; op->used && k < op->n_captures; k++) {
            op->captures[k].value->used = true;
        }
    }
}

static nori_status put_input(making *m, const nori_traced *v)
{
    nori__pb_value *pb = &m->graph.inputs.items[m->graph.inputs.count++];
    pb->name = nori__str_of(v->name);
    pb->type = nori__trace_type(m->arena, v->tensor, true);
    if (!pb->type) {
        return nori__fail(m->t->err, NORI_ERROR_UNSUPPORTED,
                          "input \"%s\": only tensors, and sequences and optionals that hold some, can be "
                          "example inputs", v->name);
    }
    for (int d = 0; pb->type->shape && d < v->tensor->rank; d++) {
        const nori_trace_options *o = m->t->options;
        for (size_t i = 0; v->open[d] && i < o->dynamic_axis_count; i++) {
            const nori_dynamic_axis *axis = &o->dynamic_axes[i];
            if (axis->axis == d && nori__same(axis->input, v->name)) {
                const char *name = axis->name ? nori__arena_text(m->arena, axis->name)
                                              : nori__arena_printf(m->arena, "%s_%d", v->name, d);
                if (!name) {
                    return nori__no_memory(m->t->err);
                }
                pb->type->shape->dims.items[d] =
                    (nori__pb_dim){.has_param = true, .param = nori__str_of(name)};
            }
        }
    }
    return NORI_OK;
}

static nori_status put_constant(making *m, const nori_traced *v)
{
    const nori_tensor *t = v->tensor;
    nori__pb_tensor *pb = &m->graph.initializers.items[m->graph.initializers.count++];
    int64_t *dims = nori__arena_array(m->arena, t->rank + (size_t)1, sizeof(*dims));
    if (!dims) {
        return nori__no_memory(m->t->err);
    }
    memcpy(dims, t->dims, t->rank * sizeof(*dims));
    *pb = (nori__pb_tensor){.name = nori__str_of(v->name), .data_type = t->type};
    pb->dims.items = dims;
    pb->dims.count = t->rank;
    if (t->type != NORI_STRING) {
        pb->has_raw = true;
        pb->raw = nori__file_bytes(m->arena, (nori_type)t->type, t->data, t->bytes);
        return pb->raw.p ? NORI_OK : nori__no_memory(m->t->err);
    }
    pb->strings.items = nori__arena_array(m->arena, (size_t)t->count + 1, sizeof(nori__str));
    pb->strings.count = (size_t)t->count;
    for (int64_t i = 0; pb->strings.items && i < t->count; i++) {
        const nori_string *s = (const nori_string *)t->data + i;
        pb->strings.items[i] = (nori__str){s->data, s->size};
    }
    return pb->strings.items ? NORI_OK : nori__no_memory(m->t->err);
}

static nori__str *names_of(making *m, nori_traced *const *list, size_t n)
{
    nori__str *names = nori__arena_array(m->arena, n + 1, sizeof(*names));
    for (size_t i = 0; names && i < n; i++) {
        names[i] = list[i] ? nori__str_of(list[i]->name) : NORI__STR("");
    }
    return names;
}

static nori_status put_node(making *m, const nori__recorded *op)
{
    nori__pb_node *n = &m->graph.nodes.items[m->graph.nodes.count++];
    nori__recorded_to_pb(op, n);
    n->inputs.items = names_of(m, op->in, op->n_in);
    n->inputs.count = op->n_in;
    n->outputs.items = nori__arena_array(m->arena, op->n_out + 1, sizeof(nori__str));
    if (!n->inputs.items || !n->outputs.items) {
        return nori__no_memory(m->t->err);
    }
    for (size_t i = 0; i < op->n_out; i++) { /* those nobody reads are not asked for */
        n->outputs.items[i] = op->out[i] && op->out[i]->used ? nori__str_of(op->out[i]->name)
                                                            : NORI__STR("");
        n->outputs.count = n->outputs.items[i].n ? i + 1 : n->outputs.count;
    }
    n->name = nori__str_of(nori__arena_printf(m->arena, "%s_%zu", op->op, m->graph.nodes.count));
    return NORI_OK;
}

/* A domain's version: of operators, the newest form is what was computed, so the version it came with. */
static nori_status put_opset(making *m, const nori__recorded *op)
{
    int64_t version = 1;
    if (nori__same(op->domain, "ai.onnx.ml")) {
        const nori__schema *s = nori__schema_find(op->domain, op->op, NORI__OPSET_MAX_ML);
        version = s ? s->since : NORI__OPSET_MAX_ML;
    }
    for (size_t i = 0; i < m->model.opsets.count; i++) {
        if (nori__str_is(m->opsets[i].domain, op->domain)) {
            if (m->opsets[i].version < version && i > 0) {
                m->opsets[i].version = version;
            }
            return NORI_OK;
        }
    }
    m->opsets[m->model.opsets.count++] =
        (nori__pb_opset){.domain = nori__str_of(op->domain), .version = version};
    return NORI_OK;
}

static nori_status make_messages(making *m)
{
    nori_tracer *t = m->t;
    size_t n_ops = t->ops.count, n_values = t->values.count;
    m->graph.inputs.items = nori__arena_array(m->arena, m->n_in + 1, sizeof(nori__pb_value));
    m->graph.outputs.items = nori__arena_array(m->arena, m->n_out + 1, sizeof(nori__pb_value));
    m->graph.initializers.items = nori__arena_array(m->arena, n_values + 1, sizeof(nori__pb_tensor));
    m->graph.nodes.items = nori__arena_array(m->arena, n_ops + 1, sizeof(nori__pb_node));
    m->opsets = nori__arena_array(m->arena, n_ops + 2, sizeof(*m->opsets));
    if (!m->graph.inputs.items || !m->graph.outputs.items || !m->graph.initializers.items ||
        !m->graph.nodes.items || !m->opsets) {
        return nori__no_memory(t->err);
    }
    m->opsets[0].version = NORI__OPSET_MAX_ONNX;
    m->model.opsets.items = m->opsets;
    m->model.opsets.count = 1;
    for (size_t i = 0; i < m->n_in; i++) {
        NORI__TRY(put_input(m, m->inputs[i]));
    }
    for (size_t i = 0; i < n_values; i++) {
        const nori_traced *v = t->values.items[i];
        if (v->used && !v->made && !v->input) {
            NORI__TRY(put_constant(m, v));
        }
    }
    for (size_t i = 0; i < n_ops; i++) {
        nori__recorded *op = t->ops.items[i];
        if (op->used) {
            nori__trace_rename(t, op);
            NORI__TRY(put_opset(m, op));
            NORI__TRY(put_node(m, op));
        }
    }
    for (size_t i = 0; i < m->n_out; i++) {
        nori__pb_value *pb = &m->graph.outputs.items[m->graph.outputs.count++];
        pb->name = nori__str_of(m->outputs[i]->name);
        pb->type = nori__trace_type(m->arena, m->outputs[i]->tensor, false);
    }
    const char *name = t->options->name ? t->options->name : "traced";
    m->graph.name = nori__str_of(name);
    m->model.ir_version = NORI__IR_VERSION_MAX;
    m->model.producer_name = NORI__STR("nori");
    m->model.producer_version = nori__str_of(nori_version());
    m->model.graph = &m->graph;
    return NORI_OK;
}

static nori_status load(making *m, nori_model **model)
{
    nori__text bytes;
    nori_load_options o;
    nori_load_options_default(&o);
    nori__text_init(&bytes, m->t->allocator);
    nori_status s = nori__pb_write_model(&m->model, &bytes, m->t->err);
    s = s == NORI_OK ? nori__model_from_bytes(m->t->env, &bytes, NULL, &o, model, m->t->err) : s;
    nori__text_free(&bytes);
    return s;
}

/* Shapes of the outputs as they follow from those of the inputs, names and all. */
static nori_status declare_outputs(making *m, const nori_model *model)
{
    nori__ir *ir = NULL;
    NORI__TRY(nori__ir_copy(nori__model_ir(model), &ir, m->t->err));
    nori__resolve(ir);
    nori_status s = nori__infer_graph(ir, m->t->err);
    for (size_t i = 0; s == NORI_OK && i < m->n_out; i++) {
        const nori__type *type = &ir->main->outputs[i]->type;
        nori__pb_value *pb = &m->graph.outputs.items[i];
        if (!pb->type || pb->type->kind != NORI_KIND_TENSOR || type->kind != NORI_KIND_TENSOR ||
            type->rank != m->outputs[i]->tensor->rank) {
            continue;
        }
        pb->type->shape = nori__arena_alloc(m->arena, sizeof(*pb->type->shape));
        nori__pb_dim *dims = nori__arena_array(m->arena, (size_t)type->rank + 1, sizeof(*dims));
        if (!pb->type->shape || !dims) {
            s = nori__no_memory(m->t->err);
            break;
        }
        for (int d = 0; d < type->rank; d++) {
            dims[d].has_value = type->dims[d].value >= 0;
            dims[d].value = dims[d].has_value ? type->dims[d].value : 0;
            if (!dims[d].has_value && type->dims[d].name) {
                dims[d].has_param = true;
                dims[d].param = nori__str_of(nori__arena_text(m->arena, type->dims[d].name));
            }
        }
        pb->type->shape->dims.items = dims;
        pb->type->shape->dims.count = (size_t)type->rank;
    }
    nori__ir_free(ir);
    return s;
}

/* Where the search begins. Below 7 are the broadcasts of old; today's runtimes begin there. What ONNX
 * Runtime called LayerNormalization before ONNX had it in 17 is known, but not written. */
static int64_t oldest_opset(const nori_tracer *t)
{
    for (size_t i = 0; i < t->ops.count; i++) {
        const nori__recorded *op = t->ops.items[i];
        if (op->used && !op->domain[0] && nori__same(op->op, "LayerNormalization")) {
            return 17;
        }
    }
    return 7;
}

/* The lowest operator set where every node says the same in the form it was recorded in. */
static nori_status lowest_as_recorded(const nori_model *model, int64_t oldest, nori__arena *arena,
                                      int64_t *lowest, nori_error *err)
{
    *lowest = NORI__OPSET_MAX_ONNX;
    for (int64_t opset = oldest; opset < NORI__OPSET_MAX_ONNX; opset++) {
        nori__vec blockers;
        nori_error problem = {0};
        nori__vec_init(&blockers, arena->allocator);
        nori__lowering l = {.opset = opset, .arena = arena, .blockers = &blockers, .err = &problem};
        nori_status s = nori__lower_copy(model, &l);
        bool fits = s == NORI_OK && blockers.count == 0 && l.rewritten == 0;
        nori__ir_free(l.ir);
        nori__vec_free(&blockers);
        if (s == NORI_ERROR_MEMORY) {
            return nori__no_memory(err);
        }
        if (fits) {
            *lowest = opset;
            break;
        }
    }
    return NORI_OK;
}

static void note_opset(nori_tracer *t, const nori_model *model, int64_t asked, int64_t lowest)
{
    nori_opset_report *r = NULL;
    nori_runtime_verdict v = {.size = sizeof(v)};
    size_t all = 0, lost = 0;
    if (nori_opset_find(model, &r, NULL) != NORI_OK) {
        return;
    }
    for (; nori_opset_report_runtime(r, all, &v); all++) {
        lost += v.refuses && v.opset >= lowest;
    }
    nori__tracer_note(t, "operator set %lld was asked for, %lld has all that is used: fewer runtimes load "
                      "it (%zu of %zu in the table of `nori opset` refuse it that know %lld)",
                      (long long)asked, (long long)lowest, lost, all, (long long)lowest);
    nori_opset_report_free(r);
}

static nori_status settle_opset(making *m, nori_model *newest, nori_model **model)
{
    nori_tracer *t = m->t;
    int64_t lowest, asked = t->options->opset;
    nori_convert_options o;
    NORI__TRY(lowest_as_recorded(newest, oldest_opset(t), m->arena, &lowest, t->err));
    nori_convert_options_default(&o);
    o.opset = asked ? asked : lowest;
    NORI__TRY(nori_convert(newest, &o, model, NULL, t->err));
    if (t->report) {
        t->report->summary.lowest = lowest;
        t->report->summary.opset = o.opset;
        t->report->summary.ir = nori_model_ir_version(*model);
    }
    if (asked > lowest) {
        note_opset(t, *model, asked, lowest);
    }
    return NORI_OK;
}

static void report(making *m, const nori_model *model)
{
    nori_tracer *t = m->t;
    nori_trace_summary *s = &t->report->summary;
    s->nodes = nori_graph_node_count(nori_model_graph(model));
    s->initializers = m->graph.initializers.count;
    s->shared = t->shared;
    s->dropped = t->ops.count - m->graph.nodes.count;
    s->bytes = nori_model_file_bytes(model);
    for (size_t i = 0; i < m->n_in; i++) {
        if (!m->inputs[i]->used) {
            nori__tracer_note(t, "input \"%s\" leads to no output", m->inputs[i]->name);
        }
    }
    if (s->dropped) {
        nori__tracer_note(t, "%zu operation%s lead%s to no output and %s left out", s->dropped,
                          s->dropped == 1 ? "" : "s", s->dropped == 1 ? "s" : "",
                          s->dropped == 1 ? "was" : "were");
    }
}

nori_status nori__trace_model(nori_tracer *t, nori_traced *const *inputs, size_t n_in,
                              nori_traced *const *outputs, size_t n_out, nori_model **model)
{
    making m = {.t = t, .arena = &t->arena, .inputs = inputs, .outputs = outputs, .n_in = n_in,
                .n_out = n_out};
    nori_model *bare = NULL, *newest = NULL;
    mark_used(&m);
    nori_status s = make_messages(&m);
    s = s == NORI_OK ? load(&m, &bare) : s;
    s = s == NORI_OK ? declare_outputs(&m, bare) : s;
    s = s == NORI_OK ? load(&m, &newest) : s;
    s = s == NORI_OK ? settle_opset(&m, newest, model) : s;
    if (s == NORI_OK && t->report) {
        report(&m, *model);
    }
    nori_model_free(newest);
    nori_model_free(bare);
    return s;
}
