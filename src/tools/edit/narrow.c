/* narrow.c: parts of a model that hand floats over as bytes: which values those are, and the order of
 * the work. */
#include "tools/edit/narrow.h"
#include "base/given.h"

struct nori_narrow_report {
    nori__arena arena;
    nori__crossing *values;
    size_t count;
    nori_narrow_result result;
};

void nori_narrow_options_default(nori_narrow_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_narrow_options){.size = sizeof(*options), .tolerance = 0.05};
    nori_proof_options_default(&options->proof);
}

/* ---- which values ---- */

static const nori__graph *graph_of(const nori_model *m)
{
    return nori__model_ir(m)->main;
}

static bool read_later(const nori__narrowing *n, size_t part, const char *name)
{
    for (size_t k = part + 1; k < n->count; k++) {
        const nori__graph *g = graph_of(n->parts[k]);
        for (uint32_t i = 0; i < g->input_count; i++) {
            if (nori__same(g->inputs[i]->name, name)) {
                return true;
            }
        }
    }
    return false;
}

/* A name that no graph of the model has, so that no part has it. */
static const char *fresh(nori__narrowing *n, const char *name, const char *what)
{
    for (unsigned i = 0;; i++) {
        const char *text = i ? nori__arena_printf(n->arena, "%s%s_%u", name, what, i)
                             : nori__arena_printf(n->arena, "%s%s", name, what);
        bool taken = false;
        const nori__graph *g = text ? nori__model_ir(n->model)->graphs : NULL;
        for (; g && !taken; g = g->next_graph) {
            taken = nori__map_get(nori__graph_names(g), text) != NULL;
        }
        if (!text || !taken) {
            return text;
        }
    }
}

static nori_status note(nori__narrowing *n, size_t part, const nori__value *v)
{
    const nori__value *whole = nori__map_get(nori__graph_names(graph_of(n->model)), v->name);
    nori__crossing *c = &n->values[n->n_values++];
    *c = (nori__crossing){.name = nori__arena_text(n->arena, v->name),
                          .sent = fresh(n, v->name, "_bytes"),
                          .scale_name = fresh(n, v->name, "_bytes_scale"),
                          .zero_name = fresh(n, v->name, "_bytes_zero_point"),
                          .type = &v->type,
                          .is_output = whole && (whole->flags & NORI__VALUE_OUTPUT),
                          .agreement = {.size = sizeof(c->agreement)}};
    c->row = (nori_narrowed){.size = sizeof(c->row), .value = c->name, .sent = c->sent, .part = part,
                             .fixed = n->options->sample != NULL, .min = 0, .max = 0};
    return c->name && c->sent && c->scale_name && c->zero_name ? NORI_OK : nori__no_memory(n->err);
}

static nori_status find(nori__narrowing *n)
{
    size_t room = 1;
    for (size_t k = 0; k < n->count; k++) {
        room += graph_of(n->parts[k])->output_count;
    }
    n->values = nori__arena_array(n->arena, room, sizeof(*n->values));
    if (!n->values) {
        return nori__no_memory(n->err);
    }
    for (size_t k = 0; k < n->count; k++) {
        const nori__graph *g = graph_of(n->parts[k]);
        for (uint32_t i = 0; i < g->output_count; i++) {
            const nori__value *v = g->outputs[i];
            if (!read_later(n, k, v->name)) {
                continue;
            }
            if (v->type.kind == NORI_KIND_TENSOR && v->type.elem == NORI_FLOAT) {
                NORI__TRY(note(n, k, v));
            } else {
                n->result->left++;
            }
        }
    }
    if (n->n_values == 0) {
        nori_status s = nori__fail(n->err, NORI_ERROR_ARGUMENT,
                                   "no float32 value goes from part to part: there is nothing to narrow");
        nori__hint(n->err, "cut at a value of floats, or leave the 8 bits out");
        return s;
    }
    return NORI_OK;
}

static nori_status check_opset(nori__narrowing *n)
{
    int64_t has = nori__ir_opset(nori__model_ir(n->model), "");
    int64_t least = n->options->sample ? 10 : 11;
    if (has >= least) {
        return NORI_OK;
    }
    nori_status s = nori__fail(n->err, NORI_ERROR_UNSUPPORTED,
                               "the model is of operator set %lld, which has no %s: %lld is the first that "
                               "has it", (long long)has,
                               n->options->sample ? "QuantizeLinear" : "DynamicQuantizeLinear",
                               (long long)least);
    nori__hint(n->err, "bring it to operator set 13 first: nori convert --opset 13");
    return s;
}

static nori_status narrow(nori__narrowing *n)
{
    NORI__TRY(find(n));
    NORI__TRY(check_opset(n));
    if (n->options->sample) {
        NORI__TRY(nori__narrow_ranges(n));
    }
    for (size_t k = 0; k < n->count; k++) {
        NORI__TRY(nori__narrow_write(n, k, &n->narrow[k]));
    }
    return nori__narrow_prove(n);
}

nori_status nori_narrow(const nori_model *model, const nori_model *const *parts, size_t count,
                        const nori_narrow_options *options, nori_model **made,
                        nori_narrow_report **report, nori_error *err)
{
    nori_error own = {0};
    nori_narrow_options o;
    err = err ? err : &own;
    if (report) {
        *report = NULL;
    }
    NORI__OPTIONS(nori_narrow_options, o, options);
    if (!model || !parts || !made || count < 2 || !(o.tolerance >= 0)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "a model, at least two parts of it, room for as many, "
                          "and a tolerance of at least 0 were expected");
    }
    const nori_allocator *a = model->source->allocator;
    nori_narrow_report *r = nori__alloc_zero(a, sizeof(*r));
    if (!r) {
        return nori__no_memory(err);
    }
    nori__arena_init(&r->arena, a);
    r->result = (nori_narrow_result){.size = sizeof(r->result), .tolerance = o.tolerance};
    nori__narrowing n = {.model = model, .parts = parts, .count = count, .options = &o, .narrow = made,
                         .arena = &r->arena, .result = &r->result, .err = err};
    memset(made, 0, count * sizeof(*made));
    nori_status s = narrow(&n);
    r->values = n.values;
    r->count = n.n_values;
    for (size_t k = 0; s != NORI_OK && k < count; k++) {
        nori_model_free(made[k]);
        made[k] = NULL;
    }
    if (s == NORI_OK && report) {
        *report = r;
    } else {
        nori_narrow_report_free(r);
    }
    return s;
}

/* ---- the report ---- */

int nori_narrow_report_value(const nori_narrow_report *r, size_t index, nori_narrowed *value)
{
    NORI__ASKED(r, 0);
    if (index >= r->count) {
        return 0;
    }
    size_t size = value->size < sizeof(*value) ? value->size : sizeof(*value);
    memcpy(value, &r->values[index].row, size);
    value->size = size;
    return 1;
}

void nori_narrow_report_result(const nori_narrow_report *r, nori_narrow_result *result)
{
    NORI__ASKED(r, );
    NORI__ASKED(result, );
    size_t size = result->size < sizeof(*result) ? result->size : sizeof(*result);
    memcpy(result, &r->result, size);
    result->size = size;
}

void nori_narrow_report_free(nori_narrow_report *r)
{
    if (r) {
        const nori_allocator *a = r->arena.allocator;
        nori__arena_free(&r->arena);
        nori__release(a, r, sizeof(*r));
    }
}
