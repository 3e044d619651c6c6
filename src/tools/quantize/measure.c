/* measure.c: what quantization cost: both models run on every sample, and values of one name are
 * compared. Memory holds the inner values of one run of the float model. */
#include <math.h>

#include "passes/passes.h"
#include "run/run.h"
#include "tools/quantize/quantize.h"

typedef struct error_of { /* of one value, over all samples */
    nori_tensor *now; /* what the float model made of this sample */
    double signal, noise;
} error_of;

typedef struct measure {
    nori__quantizer *q;
    nori__map errors;  /* name in the quantized model -> error_of * */
    nori__map sources; /* name in the float model -> error_of * */
    nori_session *before, *after;
    const nori_tensor **in;
    nori_tensor **out_before, **out_after;
    error_of *outputs;
    bool failed;
} measure;

static void keep(void *user, const char *name, const nori_tensor *t)
{
    measure *m = user;
    error_of *e = nori__map_get(&m->sources, name);
    if (e && t->kind == NORI_KIND_TENSOR && t->type == NORI_FLOAT) {
        nori_tensor_free(e->now);
        e->now = NULL;
        if (nori__tensor_copy(m->q->allocator, t, &e->now, NULL) != NORI_OK) {
            m->failed = true;
        }
    }
}

static void compare(error_of *e, const nori_tensor *want, const nori_tensor *got)
{
    if (!want || got->kind != NORI_KIND_TENSOR || got->type != want->type ||
        got->count != want->count || !nori__type_is_float((nori_type)want->type)) {
        return;
    }
    for (int64_t i = 0; i < want->count; i++) {
        double a = nori__tensor_get_f64(want, i), d = nori__tensor_get_f64(got, i) - a;
        e->signal += a * a;
        e->noise += d * d;
    }
}

static void look(void *user, const char *name, const nori_tensor *t)
{
    measure *m = user;
    error_of *e = nori__map_get(&m->errors, name);
    if (e) {
        compare(e, e->now, t);
    }
}

static double decibel(const error_of *e)
{
    if (e->signal == 0 && e->noise == 0) {
        return NAN;
    }
    return e->noise > 0 ? 10 * log10(e->signal / e->noise) : INFINITY;
}

static nori_status one_sample(void *user, nori_tensor **inputs)
{
    measure *m = user;
    size_t n_in = nori_session_input_count(m->before), n = nori_session_output_count(m->before);
    const nori_tensor **in = m->in;
    nori__q_feed(m->q, m->before, inputs, in);
    for (size_t i = 0; i < n_in; i++) {
        if (in[i]) {
            keep(m, nori_session_input(m->before, i)->name, in[i]);
        }
    }
    nori_status s = nori_session_run(m->before, in, n_in, m->out_before, n, m->q->err);
    s = s == NORI_OK ? nori_session_run(m->after, in, n_in, m->out_after, n, m->q->err) : s;
    for (size_t i = 0; i < n; i++) {
        if (s == NORI_OK) {
            compare(&m->outputs[i], m->out_before[i], m->out_after[i]);
        }
        nori_tensor_free(m->out_before[i]);
        nori_tensor_free(m->out_after[i]);
        m->out_before[i] = m->out_after[i] = NULL;
    }
    return m->failed ? nori__no_memory(m->q->err) : s;
}

static nori_status open_session(measure *m, const nori_model *model,
                                void (*watch)(void *, const char *, const nori_tensor *),
                                nori_session **session)
{
    nori_session_options o;
    nori_session_options_default(&o);
    o.level = 0;
    o.threads = m->q->options->threads;
    o.watch = watch;
    o.watch_user = m;
    return nori_session_create(model, &o, session, m->q->err);
}

/* The model with its constants dequantized once, and not in every run: convolutions read constant
 * weights then, which is what fast kernels are for. NULL: it cannot be folded, and runs as it is. */
static nori_status fold_weights(measure *m, const nori_model *after, nori_model **folded)
{
    nori__ir *copy = NULL;
    bool changed = false;
    nori_error why = {0};
    *folded = NULL;
    NORI__TRY(nori__ir_copy(nori__model_ir(after), &copy, m->q->err));
    nori_status s = nori__upgrade(copy, &why);
    s = s == NORI_OK ? nori__infer_graph(copy, &why) : s;
    s = s == NORI_OK ? nori__pass_fold_rest(copy, &changed, &why) : s;
    s = s == NORI_OK && changed ? nori__model_from_ir(after, copy, folded, &why) : s;
    nori__ir_free(copy);
    return s == NORI_ERROR_MEMORY ? nori__no_memory(m->q->err) : NORI_OK;
}

static nori_status prepare(measure *m, const nori_model *before, const nori_model *after)
{
    nori__quantizer *q = m->q;
    nori_model *folded = NULL;
    NORI__TRY(open_session(m, before, keep, &m->before));
    NORI__TRY(fold_weights(m, after, &folded));
    nori_status s = open_session(m, folded ? folded : after, look, &m->after);
    nori_model_free(folded);
    NORI__TRY(s);
    size_t n = nori_session_output_count(m->before) + 1;
    m->out_before = nori__arena_array(&q->arena, n, sizeof(*m->out_before));
    m->out_after = nori__arena_array(&q->arena, n, sizeof(*m->out_after));
    m->outputs = nori__arena_array(&q->arena, n, sizeof(*m->outputs));
    m->in = nori__arena_array(&q->arena, nori_session_input_count(m->before) + 1, sizeof(*m->in));
    bool ok = m->in && m->out_before && m->out_after && m->outputs;
    for (const nori__value *v = q->ir->main->values; ok && v; v = v->next) {
        if (v->id >= q->n_values || !nori__q_of(q, v)->pair) {
            continue;
        }
        const nori__value *seen = nori__q_of(q, v)->dequantized;
        error_of *e = nori__arena_alloc(&q->arena, sizeof(*e));
        ok = e && nori__map_put(&m->sources, v->name, e) &&
             nori__map_put(&m->errors, seen ? seen->name : v->name, e);
    }
    return ok ? NORI_OK : nori__no_memory(q->err);
}

static void write_down(measure *m)
{
    nori__quantizer *q = m->q;
    double worst = NAN;
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->output_count; i++) {
            const nori__value *v = n->outputs[i];
            if (v && v->id < q->n_values && nori__q_of(q, v)->pair) {
                nori__q_report_value(q, v, decibel(nori__map_get(&m->sources, v->name)));
            }
        }
    }
    for (size_t i = 0; i < nori_session_output_count(m->before); i++) {
        double d = decibel(&m->outputs[i]);
        worst = isnan(worst) || d < worst ? d : worst;
    }
    nori__q_summary(q->report)->output_sqnr = worst;
}

nori_status nori__q_measure(nori__quantizer *q, const nori_model *before, const nori_model *after)
{
    measure m = {.q = q};
    nori__map_init(&m.errors, q->allocator);
    nori__map_init(&m.sources, q->allocator);
    nori_status s = prepare(&m, before, after);
    s = s == NORI_OK ? nori__q_each_sample(q, "cost", one_sample, &m) : s;
    if (s == NORI_OK) {
        write_down(&m);
    }
    for (const nori__value *v = q->ir->main->values; v; v = v->next) {
        error_of *e = nori__map_get(&m.sources, v->name);
        if (e) {
            nori_tensor_free(e->now);
        }
    }
    nori__map_free(&m.errors);
    nori__map_free(&m.sources);
    nori_session_free(m.before);
    nori_session_free(m.after);
    return s;
}
