/* calibrate.c: runs the samples through the float graph and watches every float32 value. Memory
 * depends on the number of values, not on the number of samples. */
#include "base/given.h"
#include "run/run.h"
#include "tools/quantize/quantize.h"

typedef struct watcher {
    nori__quantizer *q;
    bool failed; /* out of memory */
} watcher;

static void see(void *user, const char *name, const nori_tensor *t)
{
    watcher *w = user;
    if (t->kind != NORI_KIND_TENSOR || t->type != NORI_FLOAT || w->failed) {
        return;
    }
    nori__observer *o = nori__calibration_of(w->q->seen, name);
    if (!o) {
        w->failed = true;
        return;
    }
    nori__observer_add(o, t->data, (size_t)t->count);
}

nori_status nori__q_each_sample(nori__quantizer *q, const char *phase,
                                nori_status (*use)(void *user, nori_tensor **inputs), void *user)
{
    const nori_quantize_options *o = q->options;
    size_t n = nori_model_input_count(q->model);
    size_t total = nori__q_summary(q->report)->samples;
    nori_status s = NORI_OK;
    size_t index = 0;
    nori_tensor **inputs = nori__arena_array(&q->arena, n + 1, sizeof(*inputs));
    if (!inputs) {
        return nori__no_memory(q->err);
    }
    for (; q->limit == 0 || index < q->limit; index++) {
        memset(inputs, 0, n * sizeof(nori_tensor *));
        int got = o->sample(o->sample_user, index, inputs, q->err);
        if (got < 0) {
            s = q->err && q->err->status != NORI_OK
                    ? q->err->status
                    : nori__fail(q->err, NORI_ERROR_DATA, "sample %zu could not be had", index);
        }
        if (got <= 0) {
            break;
        }
        s = use(user, inputs);
        for (size_t i = 0; i < n; i++) {
            nori_tensor_free(inputs[i]);
        }
        if (s != NORI_OK) {
            nori__where(q->err, "sample %zu", index);
            break;
        }
        if (o->progress) {
            o->progress(o->progress_user, phase, index + 1, total);
        }
    }
    nori__q_summary(q->report)->samples = index;
    return s;
}

void nori__q_feed(const nori__quantizer *q, const nori_session *session,
                  nori_tensor *const *inputs, const nori_tensor **in)
{
    size_t at = 0; /* both lists are in one order */
    for (size_t i = 0; i < nori_session_input_count(session); i++) {
        while (at < nori_model_input_count(q->model) &&
               !nori__same(nori_model_input(q->model, at)->name,
                           nori_session_input(session, i)->name)) {
            at++;
        }
        in[i] = at < nori_model_input_count(q->model) ? inputs[at++] : NULL;
    }
}

typedef struct runner {
    nori__quantizer *q;
    nori_session *session;
    nori_tensor **outputs;
    const nori_tensor **in;
    watcher w;
} runner;

static nori_status run_one(void *user, nori_tensor **inputs)
{
    runner *r = user;
    nori__quantizer *q = r->q;
    size_t n = nori_session_output_count(r->session);
    size_t n_in = nori_session_input_count(r->session);
    nori__q_feed(q, r->session, inputs, r->in);
    NORI__TRY(nori_session_run(r->session, r->in, n_in, r->outputs, n, q->err));
    for (size_t i = 0; i < n; i++) {
        nori_tensor_free(r->outputs[i]);
        r->outputs[i] = NULL;
    }
    for (size_t i = 0; i < n_in; i++) {
        if (r->in[i]) {
            see(&r->w, nori_session_input(r->session, i)->name, r->in[i]);
        }
    }
    return r->w.failed ? nori__no_memory(q->err) : NORI_OK;
}

/* What the caller has watched before, of this very model. */
static nori_status take_given(nori__quantizer *q)
{
    const nori_calibration *c = q->options->calibration;
    uint64_t graph = nori__graph_hash(nori__model_ir(q->model));
    if (c->graph != graph) {
        nori__fail(q->err, NORI_ERROR_DATA,
                   "the calibration was made with another model: its graph is %016llx, this one's is "
                   "%016llx",
                   (unsigned long long)c->graph, (unsigned long long)graph);
        nori__hint(q->err, "run nori calibrate on this file");
        return NORI_ERROR_DATA;
    }
    q->seen = (nori_calibration *)(uintptr_t)c; /* only looked at from here on */
    return NORI_OK;
}

static nori_status watch_samples(nori__quantizer *q)
{
    runner r = {.q = q, .w = {.q = q}};
    nori_model *model = NULL;
    nori_session_options so;
    nori_session_options_default(&so);
    so.level = 0; /* so that every value is there, under its own name */
    so.threads = q->options->threads;
    so.watch = see;
    so.watch_user = &r.w;
    nori_status s = nori__model_from_ir(q->model, q->ir, &model, q->err);
    s = s == NORI_OK ? nori_session_create(model, &so, &r.session, q->err) : s;
    if (s == NORI_OK) {
        r.outputs = nori__arena_array(&q->arena, nori_session_output_count(r.session) + 1,
                                      sizeof(*r.outputs));
        r.in = nori__arena_array(&q->arena, nori_session_input_count(r.session) + 1,
                                 sizeof(*r.in));
        s = r.outputs && r.in ? nori__q_each_sample(q, "ranges", run_one, &r) : nori__no_memory(q->err);
    }
    nori_session_free(r.session);
    nori_model_free(model);
    return s;
}

nori_status nori__q_calibrate(nori__quantizer *q)
{
    if (q->options->calibration) {
        NORI__TRY(take_given(q));
    } else {
        NORI__TRY(nori__calibration_new(q->allocator, &q->seen, q->err));
        q->seen->graph = nori__graph_hash(nori__model_ir(q->model));
        NORI__TRY(watch_samples(q));
        q->seen->samples = nori__q_summary(q->report)->samples;
    }
    nori__q_summary(q->report)->calibrated = (size_t)q->seen->samples;
    if (q->seen->samples == 0) {
        nori_status s = nori__fail(q->err, NORI_ERROR_DATA,
                                   q->options->calibration
                                       ? "the calibration holds no samples to find the ranges from"
                                       : "there are no samples to find the ranges from");
        nori__hint(q->err, "a few dozen real inputs are a good start");
        return s;
    }
    return NORI_OK;
}

/* ---- calibrating alone ---- */

void nori_calibrate_options_default(nori_calibrate_options *o)
{
    NORI__ASKED(o, );
    *o = (nori_calibrate_options){.size = sizeof(*o)};
}

/* The values of the graph as it is before it is quantized: folded, at its own operator set. A form
 * that needs a newer one does not change what values are. */
static nori_status calibrate(nori__quantizer *q)
{
    NORI__TRY(nori__ir_copy(nori__model_ir(q->model), &q->ir, q->err));
    NORI__TRY(nori__ir_settle(q->ir, q->err));
    NORI__TRY(nori__q_prepare(q));
    NORI__TRY(nori__calibration_new(q->allocator, &q->seen, q->err));
    q->seen->graph = nori__graph_hash(nori__model_ir(q->model));
    NORI__TRY(watch_samples(q));
    q->seen->samples = nori__q_summary(q->report)->samples;
    return NORI_OK;
}

nori_status nori_calibrate(const nori_model *model, const nori_calibrate_options *options,
                           nori_calibration **calibration, nori_error *err)
{
    NORI__GIVEN(err, model);
    NORI__GIVEN(err, options);
    NORI__GIVEN(err, calibration);
    nori_calibrate_options o;
    nori_quantize_options plain;
    nori_error own = {0};
    err = err ? err : &own;
    nori_calibrate_options_default(&o);
    memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    *calibration = NULL;
    if (!o.sample) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "samples were expected");
    }
    nori_quantize_options_default(&plain);
    plain.sample = o.sample;
    plain.sample_user = o.sample_user;
    plain.progress = o.progress;
    plain.progress_user = o.progress_user;
    plain.threads = o.threads;
    nori__quantizer q = {.options = &plain,
                         .model = model,
                         .allocator = model->source->allocator,
                         .err = err};
    nori__arena_init(&q.arena, q.allocator);
    q.report = nori__q_report_new(q.allocator);
    nori_status s = q.report ? calibrate(&q) : nori__no_memory(err);
    nori__ir_free(q.ir);
    nori__arena_free(&q.arena);
    nori_quantize_report_free(q.report);
    if (s != NORI_OK) {
        nori_calibration_free(q.seen);
        return s;
    }
    *calibration = q.seen;
    return NORI_OK;
}
