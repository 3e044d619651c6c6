/* prune.c: a model with fewer weights: zeros among them, or channels taken out of the graph. */
#include <math.h>

#include "base/given.h"
#include "ops/resolve.h"
#include "run/run.h"
#include "tools/prune/prune.h"
#include "tools/quantize/quantize.h"

void nori_prune_options_default(nori_prune_options *o)
{
    NORI__ASKED(o, );
    *o = (nori_prune_options){.size = sizeof(*o), .share = 0.5};
}

static bool excluded(const nori_prune_options *o, const nori__node *n)
{
    for (size_t i = 0; i < o->exclude_count; i++) {
        const char *what = o->exclude[i];
        size_t size = strlen(what);
        bool prefix = size > 0 && what[size - 1] == '*';
        if ((prefix ? strncmp(what, n->name, size - 1) == 0 : nori__same(what, n->name)) ||
            nori__same(what, n->op_type)) {
            return true;
        }
    }
    return false;
}

bool nori__prune_weighted(const nori__pruner *p, const nori__node *n)
{
    static const nori__op_id ids[] = {NORI__OP_ONNX_Conv, NORI__OP_ONNX_ConvTranspose,
                                      NORI__OP_ONNX_Gemm, NORI__OP_ONNX_MatMul};
    bool known = false;
    for (size_t i = 0; i < NORI__COUNT(ids); i++) {
        known = known || nori__node_is(n, ids[i]);
    }
    const nori_tensor *w = known && n->input_count > 1 ? nori__value_const(n->inputs[1]) : NULL;
    return w && w->type == NORI_FLOAT && w->rank >= 2 && w->count > 0 && !excluded(p->options, n);
}

static uint64_t weight_bytes(const nori__ir *ir)
{
    uint64_t sum = 0;
    for (const nori__value *v = ir->main->values; v; v = v->next) {
        sum += v->constant && !v->producer && v->uses > 0 ? v->constant->bytes : 0;
    }
    return sum;
}

static nori_status check(const nori__pruner *p)
{
    const nori_prune_options *o = p->options;
    if (o->method != NORI_PRUNE_MAGNITUDE && o->method != NORI_PRUNE_2_4 &&
        o->method != NORI_PRUNE_CHANNELS) {
        return nori__fail(p->err, NORI_ERROR_ARGUMENT, "%d is no method of pruning", (int)o->method);
    }
    if (!(o->share > 0 && o->share < 1)) {
        return nori__fail(p->err, NORI_ERROR_ARGUMENT,
                          "the share to prune is %g: more than 0 and less than 1 was expected",
                          o->share);
    }
    return NORI_OK;
}

/* How far the outputs are from the unpruned model's. */
static nori_status measure(nori__pruner *p, const nori_model *pruned)
{
    nori_quantize_options plain;
    nori_quantize_options_default(&plain);
    plain.sample = p->options->sample;
    plain.sample_user = p->options->sample_user;
    plain.threads = p->options->threads;
    nori__quantizer q = {.options = &plain, .model = p->model, .allocator = p->allocator,
                         .ir = p->ir, .err = p->err};
    nori__arena_init(&q.arena, q.allocator);
    q.report = nori__q_report_new(q.allocator);
    nori_status s = q.report ? nori__q_measure(&q, p->model, pruned) : nori__no_memory(p->err);
    if (s == NORI_OK) {
        p->report->summary.output_sqnr = nori__q_summary(q.report)->output_sqnr;
        p->report->summary.samples = nori__q_summary(q.report)->samples;
    }
    nori_quantize_report_free(q.report);
    nori__arena_free(&q.arena);
    return s;
}

static nori_status prune(nori__pruner *p, nori_model **pruned)
{
    NORI__TRY(check(p));
    NORI__TRY(nori__ir_copy(nori__model_ir(p->model), &p->ir, p->err));
    NORI__TRY(nori__ir_settle(p->ir, p->err));
    nori__resolve(p->ir);
    NORI__TRY(nori__q_bare_constants(p->ir, p->err));
    nori_prune_summary *sum = &p->report->summary;
    sum->weight_bytes_before = weight_bytes(p->ir);
    NORI__TRY(p->options->method == NORI_PRUNE_CHANNELS ? nori__prune_channels(p)
                                                        : nori__prune_zeros(p));
    sum->weight_bytes_after = weight_bytes(p->ir);
    for (size_t i = 0; i < p->report->nodes.count; i++) {
        const nori_prune_node *row = p->report->nodes.items[i];
        sum->weights += row->weights;
        sum->zeros += row->zeros;
        sum->removed += row->removed;
    }
    NORI__TRY(nori__model_from_ir(p->model, p->ir, pruned, p->err));
    return p->options->sample ? measure(p, *pruned) : NORI_OK;
}

nori_status nori_prune(const nori_model *model, const nori_prune_options *options,
                       nori_model **pruned, nori_prune_report **report, nori_error *err)
{
    NORI__GIVEN(err, model);
    NORI__GIVEN(err, pruned);
    nori_prune_options o;
    nori_error own = {0};
    err = err ? err : &own;
    nori_prune_options_default(&o);
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    *pruned = NULL;
    nori__pruner p = {
        .options = &o, .model = model, .allocator = model->source->allocator, .err = err};
    nori__arena_init(&p.arena, p.allocator);
    p.report = nori__prune_report_new(p.allocator);
    nori_status s = p.report ? prune(&p, pruned) : nori__no_memory(err);
    nori__ir_free(p.ir);
    nori__arena_free(&p.arena);
    if (s != NORI_OK) {
        nori_model_free(*pruned);
        *pruned = NULL;
    }
    if (s != NORI_OK || !report) {
        nori_prune_report_free(p.report);
        p.report = NULL;
    }
    if (report) {
        *report = p.report;
    }
    return s;
}
