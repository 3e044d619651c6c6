/* narrow_prove.c: what values that cross are, so that they get a scale, and what bytes in their place cost
 * at the outputs: both chains of parts, run on the same samples. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "tools/edit/narrow.h"

/* Parts that run one after another. */
typedef struct chain {
    nori_session **sessions;
    nori__values *made; /* by part, of the last run */
    size_t count;
} chain;

static nori_status open_chain(nori__narrowing *n, const nori_model *const *models, chain *c)
{
    c->sessions = nori__arena_array(n->arena, n->count, sizeof(*c->sessions));
    c->made = nori__arena_array(n->arena, n->count, sizeof(*c->made));
    if (!c->sessions || !c->made) {
        return nori__no_memory(n->err);
    }
    for (size_t k = 0; k < n->count; k++) {
        NORI__TRY(nori__proof_session(models[k], &n->options->proof, &c->sessions[k], n->err));
        c->count = k + 1;
    }
    return NORI_OK;
}

static void forget(chain *c)
{
    for (size_t k = 0; k < c->count; k++) {
        nori__values_free(&c->made[k]);
    }
}

static void close_chain(chain *c)
{
    forget(c);
    for (size_t k = 0; k < c->count; k++) {
        nori_session_free(c->sessions[k]);
    }
}

static nori_status run_chain(nori__narrowing *n, chain *c, const nori__values *inputs, nori__arena *scratch)
{
    const nori__values **sets = nori__arena_array(scratch, n->count + 1, sizeof(*sets));
    if (!sets) {
        return nori__no_memory(n->err);
    }
    sets[0] = inputs;
    for (size_t k = 0; k < c->count; k++) {
        nori_status s = nori__proof_feed(c->sessions[k], sets, k + 1, scratch, &c->made[k], NULL, n->err);
        if (s != NORI_OK) {
            nori__where(n->err, "part %zu", k + 1);
            return s;
        }
        sets[k + 1] = &c->made[k];
    }
    return NORI_OK;
}

static const nori_tensor *made_by(const chain *c, const char *name)
{
    const nori_tensor *t = NULL;
    for (size_t k = 0; k < c->count && !t; k++) {
        t = nori__values_find(&c->made[k], name);
    }
    return t;
}

/* ---- samples ---- */

/* Inputs of the whole model by name; tensors are filled by the caller's callback. */
static nori_status name_inputs(nori__narrowing *n, nori__values *inputs)
{
    size_t count = nori_model_input_count(n->model);
    inputs->names = nori__arena_array(n->arena, count + 1, sizeof(*inputs->names));
    inputs->tensors = nori__arena_array(n->arena, count + 1, sizeof(*inputs->tensors));
    if (!inputs->names || !inputs->tensors) {
        return nori__no_memory(n->err);
    }
    for (size_t i = 0; i < count; i++) {
        inputs->names[i] = nori_model_input(n->model, i)->name;
    }
    return NORI_OK;
}

/* Calls each(n, user, inputs, scratch) with every sample, or with one that is made up. */
typedef nori_status (*each_fn)(nori__narrowing *n, void *user, const nori__values *inputs,
                               nori__arena *scratch);
static nori_status each_sample(nori__narrowing *n, const char *phase, each_fn each, void *user)
{
    const nori_narrow_options *o = n->options;
    nori__values inputs = {0}, whole = {0};
    nori__arena scratch;
    uint64_t ns = 0;
    if (!o->sample) {
        nori__proof_tell(&o->proof, 0, 1, phase);
        nori_status s = nori__proof_run(n->model, &o->proof, n->arena, &inputs, &whole, &ns, n->err);
        s = s == NORI_OK ? each(n, user, &inputs, n->arena) : s;
        nori__values_free(&whole);
        nori__values_free(&inputs);
        return s;
    }
    NORI__TRY(name_inputs(n, &inputs));
    size_t count = nori_model_input_count(n->model);
    n->result->samples = 0;
    for (size_t i = 0;; i++) {
        memset(inputs.tensors, 0, count * sizeof(*inputs.tensors));
        int got = o->sample(o->sample_user, i, inputs.tensors, n->err);
        if (got <= 0) {
            return got == 0 ? NORI_OK
                            : nori__fail(n->err, NORI_ERROR_DATA, "sample %zu could not be had", i);
        }
        nori__proof_tell(&o->proof, i, 0, phase);
        inputs.count = count;
        nori__arena_init(&scratch, n->arena->allocator);
        nori_status s = each(n, user, &inputs, &scratch);
        nori__values_free(&inputs);
        nori__arena_free(&scratch);
        if (s != NORI_OK) {
            nori__where(n->err, "sample %zu", i);
            return s;
        }
        n->result->samples = i + 1;
    }
}

/* ---- ranges ---- */

static void widen(nori__crossing *c, const nori_tensor *t)
{
    const float *v = nori_tensor_const_data(t);
    for (int64_t i = 0; i < nori_tensor_elements(t); i++) {
        if (isfinite(v[i])) {
            c->row.min = v[i] < c->row.min ? v[i] : c->row.min;
            c->row.max = v[i] > c->row.max ? v[i] : c->row.max;
        }
    }
}

static nori_status look(nori__narrowing *n, void *user, const nori__values *inputs, nori__arena *scratch)
{
    chain *c = user;
    nori_status s = run_chain(n, c, inputs, scratch);
    for (size_t i = 0; s == NORI_OK && i < n->n_values; i++) {
        const nori_tensor *t = made_by(c, n->values[i].name);
        if (t && nori_tensor_kind(t) == NORI_KIND_TENSOR && nori_tensor_type(t) == NORI_FLOAT) {
            widen(&n->values[i], t);
        }
    }
    forget(c);
    return s;
}

/* S = (max - min) / 255, Z = -min / S rounded; zero is in the range, so that it is exact. */
static void settle(nori__crossing *c)
{
    double scale = (c->row.max - c->row.min) / 255;
    scale = scale < FLT_MIN ? 1 : scale > FLT_MAX ? FLT_MAX : scale;
    double zero = nearbyint(-c->row.min / scale);
    c->scale = (float)scale;
    c->zero_point = (uint8_t)(zero < 0 ? 0 : zero > 255 ? 255 : zero);
    c->row.scale = c->scale;
    c->row.zero_point = c->zero_point;
}

nori_status nori__narrow_ranges(nori__narrowing *n)
{
    chain c = {0};
    nori_status s = open_chain(n, n->parts, &c);
    s = s == NORI_OK ? each_sample(n, "ranges: sample", look, &c) : s;
    close_chain(&c);
    if (s == NORI_OK && n->result->samples == 0) {
        return nori__fail(n->err, NORI_ERROR_DATA, "there is no sample: at least one was expected");
    }
    for (size_t i = 0; s == NORI_OK && i < n->n_values; i++) {
        settle(&n->values[i]);
    }
    return s;
}

/* ---- both chains ---- */

typedef struct both {
    chain plain, narrow;
    nori__narrow_output *outputs;
    size_t n_outputs;
} both;

/* What a reader makes of the bytes. */
static nori_status received(nori__narrowing *n, const both *b, nori__crossing *c, nori_tensor **out)
{
    const nori_tensor *q = made_by(&b->narrow, c->sent);
    if (!c->row.fixed) {
        const nori_tensor *scale = made_by(&b->narrow, c->scale_name);
        const nori_tensor *zero = made_by(&b->narrow, c->zero_name);
        c->row.scale = scale ? nori__tensor_get_f64(scale, 0) : 0;
        c->row.zero_point = zero ? (int)nori__tensor_get_f64(zero, 0) : 0;
    }
    if (!q) {
        return nori__fail(n->err, NORI_ERROR_INTERNAL, "value %.200s was not made", c->sent);
    }
    NORI__TRY(nori_tensor_create(n->model->source->env, NORI_FLOAT, nori_tensor_rank(q), nori_tensor_dims(q),
                                 out, n->err));
    const uint8_t *from = nori_tensor_const_data(q);
    float *to = nori_tensor_data(*out);
    for (int64_t i = 0; i < nori_tensor_elements(q); i++) {
        to[i] = (float)c->row.scale * (float)(from[i] - c->row.zero_point);
    }
    c->row.bytes = nori_tensor_bytes(q) + (c->row.fixed ? 0 : sizeof(float) + 1);
    return NORI_OK;
}

static nori_status compare_values(nori__narrowing *n, const both *b)
{
    for (size_t i = 0; i < n->n_values; i++) {
        nori__crossing *c = &n->values[i];
        const nori_tensor *want = made_by(&b->plain, c->name);
        nori_tensor *got = NULL;
        NORI__TRY(received(n, b, c, &got));
        if (want && nori_tensor_type(want) == NORI_FLOAT) {
            widen(c, want);
            c->row.bytes_before = nori_tensor_bytes(want);
            nori_agreement_add(&c->agreement, got, want, NULL);
        }
        nori_tensor_free(got);
    }
    return NORI_OK;
}

static void compare_output(const both *b, nori__narrow_output *o, double tolerance)
{
    const nori_tensor *want = made_by(&b->plain, o->name), *got = made_by(&b->narrow, o->name);
    bool floats = want && want->kind == NORI_KIND_TENSOR && nori__type_is_float((nori_type)want->type);
    double peak = floats ? nori__proof_peak(want) : 0;
    nori_agreement_options held;
    nori_agreement_options_default(&held);
    held.atol = floats ? tolerance * peak : 0;
    held.rtol = 0;
    o->peak = peak > o->peak ? peak : o->peak;
    if (want && got) {
        nori_agreement_add(&o->agreement, got, want, &held);
    }
}

static nori_status run_both(nori__narrowing *n, void *user, const nori__values *inputs, nori__arena *scratch)
{
    both *b = user;
    nori_status s = run_chain(n, &b->plain, inputs, scratch);
    s = s == NORI_OK ? run_chain(n, &b->narrow, inputs, scratch) : s;
    s = s == NORI_OK ? compare_values(n, b) : s;
    for (size_t i = 0; s == NORI_OK && i < b->n_outputs; i++) {
        compare_output(b, &b->outputs[i], n->options->tolerance);
    }
    forget(&b->plain);
    forget(&b->narrow);
    return s;
}

/* The output that is furthest off, for its size; those that do not keep the tolerance go first. */
static nori_status conclude(nori__narrowing *n, const both *b)
{
    const nori__narrow_output *worst = NULL;
    nori_narrow_result *r = n->result;
    double most = -1;
    for (size_t i = 0; i < b->n_outputs; i++) {
        const nori__narrow_output *o = &b->outputs[i];
        double off = o->peak > 0 ? o->agreement.max_abs / o->peak : o->agreement.max_abs;
        off += o->agreement.passes || o->agreement.pairs == 0 ? 0 : 1e9;
        if (off > most) {
            most = off;
            worst = o;
        }
    }
    for (size_t i = 0; i < n->n_values; i++) {
        nori__crossing *c = &n->values[i];
        c->row.max_abs = c->agreement.max_abs;
        c->row.sqnr_db = c->agreement.sqnr_db;
    }
    r->ran = 1;
    if (!worst) {
        return NORI_OK;
    }
    r->output = worst->name;
    r->max_abs = worst->agreement.max_abs;
    r->peak = worst->peak;
    r->sqnr_db = worst->agreement.sqnr_db;
    if (worst->agreement.passes) {
        return NORI_OK;
    }
    nori_status s = nori__fail(n->err, NORI_ERROR_DATA,
                               "in 8 bits output %.100s is off by up to %.3g where its largest element is "
                               "%.3g: more than %.3g of it (%.4g dB)%s%.80s",
                               worst->name, r->max_abs, r->peak, r->tolerance, r->sqnr_db,
                               worst->agreement.reason[0] ? "; " : "", worst->agreement.reason);
    nori__hint(n->err, "cut elsewhere, give samples that show what inputs are like, or allow more");
    return s;
}

nori_status nori__narrow_prove(nori__narrowing *n)
{
    both b = {.n_outputs = nori_model_output_count(n->model)};
    if (n->options->proof.skip || nori__edit_random(nori__model_ir(n->model))) {
        snprintf(n->result->reason, sizeof(n->result->reason), "%s",
                 n->options->proof.skip ? "not asked for"
                                        : "operators of chance give something else in each run");
        return NORI_OK;
    }
    b.outputs = nori__arena_array(n->arena, b.n_outputs + 1, sizeof(*b.outputs));
    if (!b.outputs) {
        return nori__no_memory(n->err);
    }
    for (size_t i = 0; i < b.n_outputs; i++) {
        b.outputs[i].name = nori__arena_text(n->arena, nori_model_output(n->model, i)->name);
        b.outputs[i].agreement.size = sizeof(b.outputs[i].agreement);
        if (!b.outputs[i].name) {
            return nori__no_memory(n->err);
        }
    }
    nori_status s = open_chain(n, n->parts, &b.plain);
    s = s == NORI_OK ? open_chain(n, (const nori_model *const *)n->narrow, &b.narrow) : s;
    s = s == NORI_OK ? each_sample(n, "proof: sample", run_both, &b) : s;
    close_chain(&b.plain);
    close_chain(&b.narrow);
    return s == NORI_OK ? conclude(n, &b) : s;
}
