/* search.c: a static quantization, step by step: what of the steps before it pays, which method finds
 * the better ranges, and which layers stay float so that the budget is met. Every choice is made by
 * trying it on a few samples (probe.c); what does not pay is left out. */
#include <math.h>

#include "run/run.h"
#include "tools/quantize/search.h"

#define MOST_ROUNDS 3    /* of sparing more, when all samples are looked at */
#define MORE 0.3         /* dB beyond the budget, and beyond what is lacking: all samples decide */
#define LEAST_GAIN 0.05  /* dB: less is chance */
#define MOST_FOLD_LOSS 0.5
#define SAMPLES_A_STEP 4 /* while steps are tried */

static const struct {
    nori_quantize_step step;
    const char *name, *nothing;
} steps[] = {
    {NORI_QUANTIZE_FOLD, "fold BatchNormalization", "nothing scales or shifts what a layer makes"},
    {NORI_QUANTIZE_EQUALIZE, "equalize channels (CLE)", "no two layers are joined by a ReLU or nothing"},
    {NORI_QUANTIZE_SMOOTH, "smooth activations (SmoothQuant)", "no normalization feeds products alone"},
    {NORI_QUANTIZE_ADAROUND, "round weights together (AdaRound)", "no layer has others than the nearest"},
    {NORI_QUANTIZE_CORRECT_BIAS, "correct biases", "no layer has a bias"},
};

static uint64_t bytes_of(const nori__ir *ir)
{
    uint64_t sum = 0;
    for (const nori__value *v = ir->main->values; v; v = v->next) {
        sum += v->constant && !v->producer && v->uses > 0 ? v->constant->bytes : 0;
    }
    return sum;
}

bool nori__q_good(const nori__quantizer *q, double stricter, const nori__q_score *score)
{
    const nori_quantize_options *o = q->options;
    bool sqnr = o->least_sqnr <= 0 || isnan(score->sqnr) || score->sqnr >= o->least_sqnr + stricter;
    bool top1 = o->most_top1 < 0 || isnan(score->top1) || score->top1 <= o->most_top1;
    return sqnr && top1;
}

/* ---- one try ---- */

static nori_status score_model(nori__q_tries *t, const nori_model *model, nori__q_score *score)
{
    nori_session_options o;
    nori_session *session = NULL;
    nori_session_options_default(&o);
    o.threads = t->q->options->threads;
    nori_status s = nori_session_create(model, &o, &session, t->q->err);
    s = s == NORI_OK ? nori__q_probe_score(t->q, &t->probe, session, score) : s;
    nori_session_free(session);
    return s;
}

nori_status nori__q_scratch_begin(nori__quantizer *q, nori__q_scratch *kept)
{
    *kept = (nori__q_scratch){q->arena, q->report};
    nori__arena_init(&q->arena, q->allocator);
    q->report = nori__q_report_new(q->allocator);
    if (!q->report) {
        nori__q_scratch_end(q, kept);
        return nori__no_memory(q->err);
    }
    return NORI_OK;
}

void nori__q_scratch_end(nori__quantizer *q, nori__q_scratch *kept)
{
    nori__arena_free(&q->arena);
    nori_quantize_report_free(q->report);
    q->arena = kept->arena;
    q->report = kept->report;
    q->values = NULL;
    q->chosen = NULL;
}

nori_status nori__q_attempt(nori__q_tries *t, const char *label, nori__q_score *score,
                            nori_model **model)
{
    nori__quantizer *q = t->q;
    nori__ir *prepared = q->ir;
    nori__q_scratch scratch;
    nori_model *made = NULL;
    NORI__TRY(nori__q_scratch_begin(q, &scratch));
    q->ir = NULL;
    nori_status s = nori__ir_copy(prepared, &q->ir, q->err);
    s = s == NORI_OK ? nori__q_select(q) : s;
    s = s == NORI_OK ? nori__q_emit(q) : s;
    s = s == NORI_OK ? nori__model_from_ir(q->model, q->ir, &made, q->err) : s;
    uint64_t bytes = s == NORI_OK ? bytes_of(q->ir) : 0;
    nori__ir_free(q->ir);
    q->ir = prepared;
    nori__q_scratch_end(q, &scratch);
    s = s == NORI_OK ? score_model(t, made, score) : s;
    if (s == NORI_OK && label) {
        nori__q_report_try(t, label, score, bytes);
    }
    if (s != NORI_OK || !model) {
        nori_model_free(made);
        made = NULL;
    }
    if (model) {
        *model = made;
    }
    return s;
}

/* ---- steps ---- */

/* What was seen belongs to the graph as it was. */
static void forget(nori__quantizer *q)
{
    if (q->seen != q->options->calibration) {
        nori_calibration_free(q->seen);
    }
    q->seen = NULL;
}

/* The prepared graph with the steps in use, and the ranges of its values. applied: those that found
 * something to do. */
static nori_status prepare(nori__q_tries *t, size_t limit, unsigned *applied)
{
    nori__quantizer *q = t->q;
    size_t count = 0;
    *applied = 0;
    nori__ir_free(q->ir);
    q->ir = NULL;
    NORI__TRY(nori__ir_copy(t->original, &q->ir, q->err));
    uint32_t nodes = q->ir->main->node_count;
    if (q->steps & NORI_QUANTIZE_FOLD) {
        NORI__TRY(nori__q_fold(q));
        *applied |= q->ir->main->node_count < nodes ? (unsigned)NORI_QUANTIZE_FOLD : 0;
    }
    q->limit = limit;
    if (q->steps & NORI_QUANTIZE_EQUALIZE) {
        NORI__TRY(nori__q_equalize(q, &count));
        *applied |= count > 0 ? (unsigned)NORI_QUANTIZE_EQUALIZE : 0;
    }
    if (q->steps & NORI_QUANTIZE_SMOOTH) {
        NORI__TRY(nori__q_see_channels(q));
        NORI__TRY(nori__q_smooth(q, &count));
        *applied |= count > 0 ? (unsigned)NORI_QUANTIZE_SMOOTH : 0;
    }
    forget(q);
    nori_status s = nori__q_calibrate(q);
    if (s == NORI_OK && q->steps & NORI_QUANTIZE_CORRECT_BIAS) {
        s = nori__q_see_channels(q);
        *applied |= NORI_QUANTIZE_CORRECT_BIAS;
    }
    nori__q_forget_roundings(q);
    t->wide = 0;
    if (s == NORI_OK && q->steps & NORI_QUANTIZE_ADAROUND && q->options->sample) {
        s = nori__q_round(q, &count, &t->wide);
        *applied |= count > 0 ? (unsigned)NORI_QUANTIZE_ADAROUND : 0;
    }
    q->limit = 0;
    return s;
}

/* Folding cost something: where the budget is not met with it, the other steps may do better alone. */
static nori_status doubt_fold(nori__q_tries *t, size_t few, const nori__q_score *best, unsigned *kept)
{
    nori__quantizer *q = t->q;
    nori__q_score score;
    unsigned applied;
    if (nori__q_good(q, t->stricter, best)) {
        return NORI_OK;
    }
    q->steps = *kept & ~(unsigned)NORI_QUANTIZE_FOLD;
    NORI__TRY(prepare(t, few, &applied));
    NORI__TRY(nori__q_attempt(t, "nothing folded", &score, NULL));
    if (score.sqnr > best->sqnr + MOST_FOLD_LOSS) {
        *kept = q->steps;
        nori__q_report_no_step(q, steps[0].name, "it does not pay here");
    }
    return NORI_OK;
}

/* Adds the steps one after another and keeps those that pay. */
static nori_status choose_steps(nori__q_tries *t)
{
    nori__quantizer *q = t->q;
    nori__q_score best, score;
    bool fold_costs = false;
    unsigned applied, kept = 0;
    size_t few = t->probe.count < SAMPLES_A_STEP ? t->probe.count : SAMPLES_A_STEP;
    q->steps = 0;
    t->probe.use = few;
    NORI__TRY(prepare(t, few, &applied));
    NORI__TRY(nori__q_attempt(t, "as it is", &best, NULL));
    for (size_t i = 0; i < NORI__COUNT(steps); i++) {
        if (q->options->without & steps[i].step) {
            nori__q_report_step(q, steps[i].name, false, NAN, NAN, "switched off");
            continue;
        }
        unsigned moves_ranges = NORI_QUANTIZE_EQUALIZE | NORI_QUANTIZE_SMOOTH;
        if (q->options->calibration && steps[i].step & moves_ranges) {
            nori__q_report_step(q, steps[i].name, false, NAN, NAN, "the ranges were given");
            continue;
        }
        q->steps = kept | steps[i].step;
        NORI__TRY(prepare(t, few, &applied));
        if (!(applied & steps[i].step)) {
            nori__q_report_step(q, steps[i].name, false, NAN, NAN, steps[i].nothing);
            continue;
        }
        NORI__TRY(nori__q_attempt(t, steps[i].name, &score, NULL));
        /* Folding saves nodes, and what it costs other steps often bring back: it goes at last, if so. */
        bool fold = steps[i].step == NORI_QUANTIZE_FOLD;
        bool pays = isnan(score.sqnr) || score.sqnr > best.sqnr + LEAST_GAIN || fold;
        nori__q_report_step(q, steps[i].name, pays, best.sqnr, score.sqnr,
                            pays ? "" : "it does not pay here");
        fold_costs = fold_costs || (fold && score.sqnr < best.sqnr - MOST_FOLD_LOSS);
        if (pays) {
            kept |= steps[i].step;
            best = score;
        }
    }
    if (fold_costs) {
        NORI__TRY(doubt_fold(t, few, &best, &kept));
    }
    t->probe.use = 0;
    q->steps = kept;
    return NORI_OK;
}

/* ---- methods ---- */

static nori_status choose_method(nori__q_tries *t, nori__q_score *best)
{
    static const struct {
        nori_range_method method;
        const char *name;
    } methods[] = {{NORI_RANGE_MINMAX, "ranges: minmax"},
                   {NORI_RANGE_MSE, "ranges: mse"},
                   {NORI_RANGE_PERCENTILE, "ranges: percentile"}};
    nori__quantizer *q = t->q;
    if (q->options->method != NORI_RANGE_AUTO) {
        return nori__q_attempt(t, "all layers on integers", best, NULL);
    }
    nori_range_method found = NORI_RANGE_MINMAX;
    for (size_t i = 0; i < NORI__COUNT(methods); i++) {
        nori__q_score score;
        q->method = methods[i].method;
        NORI__TRY(nori__q_attempt(t, methods[i].name, &score, NULL));
        /* What clips must win clearly: samples to come may reach further. */
        if (i == 0 || score.sqnr > best->sqnr + 0.5) {
            *best = score;
            found = methods[i].method;
        }
    }
    q->method = found;
    return NORI_OK;
}

/* ---- */

/* Ranges and scales, where there are no samples to tell what they cost. */
static void report_unmeasured(nori__quantizer *q)
{
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->output_count; i++) {
            const nori__value *v = n->outputs[i];
            if (v && v->id < q->n_values && nori__q_of(q, v)->pair) {
                nori__q_report_value(q, v, NAN);
            }
        }
    }
}

/* The last word: the graph is emitted for good, and both models run on every sample. */
static nori_status write_model(nori__q_tries *t, nori_model **result)
{
    nori__quantizer *q = t->q;
    nori_model *before = NULL;
    NORI__TRY(nori__model_from_ir(q->model, q->ir, &before, q->err));
    nori_status s = nori__q_select(q);
    s = s == NORI_OK ? nori__q_emit(q) : s;
    s = s == NORI_OK ? nori__model_from_ir(q->model, q->ir, result, q->err) : s;
    s = s == NORI_OK && q->options->sample ? nori__q_measure(q, before, *result) : s;
    nori_model_free(before);
    if (s == NORI_OK && !q->options->sample) {
        report_unmeasured(q);
    }
    for (size_t i = 0; i < q->unit_list.count; i++) {
        nori__q_report_unit(q, q->unit_list.items[i]);
    }
    if (s == NORI_OK && t->wide > 0) {
        nori__q_note(q, "AdaRound left %zu layer%s alone: too wide, or seen too little of; nearest "
                        "integers there", t->wide, t->wide == 1 ? "" : "s");
    }
    if (s == NORI_OK) {
        nori__q_give_advice(t);
    }
    return s;
}

/* The few samples of the search may be kinder than all of them: then it goes on with what they lack. */
static nori_status check_all(nori__q_tries *t, nori__q_score *score)
{
    nori__quantizer *q = t->q;
    for (int round = 0; round < MOST_ROUNDS; round++) {
        nori_model *model = NULL;
        nori__q_score all, unused;
        if (nori__q_summary(q->report)->samples <= t->probe.count) {
            return NORI_OK;
        }
        NORI__TRY(nori__q_attempt(t, NULL, &unused, &model));
        nori_status s = nori__q_score_all(q, model, &all);
        nori_model_free(model);
        if (s != NORI_OK || nori__q_good(q, 0, &all)) {
            return s;
        }
        double lack = q->options->least_sqnr - all.sqnr;
        t->stricter += (lack > 0 ? lack : 0) + MORE;
        NORI__TRY(nori__q_spare(t, score));
    }
    return NORI_OK;
}

static nori_status no_samples(nori__quantizer *q)
{
    nori_status s = nori__fail(q->err, NORI_ERROR_DATA, "there are no samples to find the ranges from");
    nori__hint(q->err, "a few dozen real inputs are a good start");
    return s;
}

static nori_status search(nori__q_tries *t, nori_model **result)
{
    nori__quantizer *q = t->q;
    nori__q_score score;
    unsigned applied;
    if (q->options->search && q->options->sample) {
        NORI__TRY(nori__q_probe_make(q, &t->probe));
    }
    if (q->options->sample && q->options->search && t->probe.count == 0 && !q->options->calibration) {
        return no_samples(q);
    }
    if (t->probe.count == 0) { /* nothing to try with */
        q->steps = ~q->options->without;
        if (q->options->calibration) { /* what needs no others than its ranges */
            q->steps &= NORI_QUANTIZE_FOLD;
        }
        NORI__TRY(prepare(t, 0, &applied));
        return write_model(t, result);
    }
    NORI__TRY(choose_steps(t));
    NORI__TRY(prepare(t, 0, &applied));
    NORI__TRY(choose_method(t, &score));
    NORI__TRY(nori__q_find_units(q));
    if (!nori__q_good(q, t->stricter, &score)) {
        NORI__TRY(nori__q_spare(t, &score));
    }
    NORI__TRY(check_all(t, &score));
    NORI__TRY(nori__q_time_layers(t));
    return write_model(t, result);
}

nori_status nori__q_search(nori__quantizer *q, nori_model **result)
{
    nori__q_tries t = {.q = q, .original = q->ir, .stricter = MORE};
    q->ir = NULL;
    nori_status s = search(&t, result);
    nori__q_probe_free(&t.probe);
    nori__ir_free(t.original);
    return s;
}
