/* versus.c: rounds of runs in turns, and what they say; see tools.h for the method. */
#include <math.h>
#include <time.h>

#include "base/given.h"
#include "tools/versus/versus.h"

#define MOST_RUNS 1000
#define MOST_ROUNDS 1001
#define QUIET_SLICE_NS 2000000 /* idle when a slice of sleep this long uses ... */
#define QUIET_CPU_NS 200000u   /* ... no more CPU time than this */
#define QUIET_SLICES 250       /* given up after half a second */

void nori_versus_options_default(nori_versus_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_versus_options){.size = sizeof(*options), .rounds = 9, .block_ms = 60,
                                     .atol = 1e-3, .rtol = 1e-3};
}

/* Sleeps until no thread of the process works or spins. Returns the nanoseconds that took. */
static uint64_t settle(void)
{
    uint64_t begin = nori__now_ns();
    for (int i = 0; i < QUIET_SLICES; i++) {
        uint64_t cpu = nori__cpu_ns();
        nanosleep(&(struct timespec){.tv_nsec = QUIET_SLICE_NS}, NULL);
        if (nori__cpu_ns() - cpu < QUIET_CPU_NS) {
            break;
        }
    }
    return nori__now_ns() - begin;
}

typedef struct rounds {
    nori_versus *v;
    const nori_tensor *const *inputs;
    size_t n_in;
    const nori_versus_options *o;
    nori_versus_report *report;
    nori_error *err;
} rounds;

static nori_status run_once(rounds *r, versus_side *side, double *ms)
{
    for (size_t i = 0; !side->reuse && i < r->v->n_out; i++) {
        nori_tensor_free(side->outputs[i]);
        side->outputs[i] = NULL;
    }
    uint64_t start = nori__now_ns();
    nori_status status = nori_session_run(side->session, r->inputs, r->n_in, side->outputs,
                                          r->v->n_out, r->err);
    *ms = (double)(nori__now_ns() - start) / 1e6;
    return status;
}

static nori_status run_block(rounds *r, versus_side *side, int round, int runs)
{
    double ms, *all = side->runs_ms + side->n_runs;
    r->report->waited_ms += (double)settle() / 1e6;
    NORI__TRY(run_once(r, side, &ms));
    uint64_t cpu = nori__cpu_ns();
    for (int i = 0; i < runs; i++) {
        NORI__TRY(run_once(r, side, &all[i]));
    }
    side->block_cpu_ms[round] = (double)(nori__cpu_ns() - cpu) / 1e6 / runs;
    side->n_runs += (size_t)runs;
    side->block_ms[round] = nori__versus_quantile(all, (size_t)runs, 0.5);
    return NORI_OK;
}

/* Root mean square of an output, at least 1: errors of float sums grow with the numbers summed. */
static double magnitude(const nori_tensor *t)
{
    double sum = 0;
    if (t->kind != NORI_KIND_TENSOR || !nori__type_is_float((nori_type)t->type) || t->count == 0) {
        return 1;
    }
    for (int64_t i = 0; i < t->count; i++) {
        double v = nori__tensor_get_f64(t, i);
        sum += isfinite(v) ? v * v : 0;
    }
    double rms = sqrt(sum / (double)t->count);
    return rms > 1 ? rms : 1;
}

/* First runs, agreement, and how many runs make a block. */
static nori_status begin(rounds *r, int *runs)
{
    nori_versus *v = r->v;
    double slower = 0;
    for (int i = 0; i < 2; i++) {
        versus_side *side = &v->side[i];
        double ms, best = 0;
        r->report->waited_ms += (double)settle() / 1e6;
        NORI__TRY(run_once(r, side, &side->times.first_ms));
        for (int k = 0; k < 3; k++) {
            NORI__TRY(run_once(r, side, &ms));
            best = k == 0 || ms < best ? ms : best;
        }
        slower = best > slower ? best : slower;
    }
    r->report->agrees = 1;
    for (size_t i = 0; i < v->n_out; i++) {
        v->difference[i].size = sizeof(v->difference[i]);
        const nori_tensor *want = v->side[1].outputs[i];
        nori_tensor_compare(v->side[0].outputs[i], want, r->o->atol * magnitude(want), r->o->rtol,
                            &v->difference[i]);
        r->report->agrees = r->report->agrees && v->difference[i].passes;
    }
    *runs = r->o->runs;
    if (*runs <= 0) {
        double fit = slower > 0 ? r->o->block_ms / slower : MOST_RUNS;
        *runs = fit < 1 ? 1 : fit > MOST_RUNS ? MOST_RUNS : (int)fit;
    }
    return NORI_OK;
}

static nori_versus_ratio ratio_of(const double *a, const double *b, double *room, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        room[i] = b[i] > 0 ? a[i] / b[i] : 0;
    }
    return (nori_versus_ratio){.median = nori__versus_quantile(room, count, 0.5),
                               .low = nori__versus_quantile(room, count, 0.25),
                               .high = nori__versus_quantile(room, count, 0.75)};
}

static nori_status measure(rounds *r, nori__arena *arena)
{
    nori_versus *v = r->v;
    nori_versus_report *report = r->report;
    size_t n = (size_t)r->o->rounds;
    int runs;
    NORI__TRY(begin(r, &runs));
    double *room = nori__arena_array(arena, n, sizeof(*room));
    bool ok = room != NULL;
    for (int i = 0; i < 2; i++) {
        versus_side *side = &v->side[i];
        side->n_runs = 0;
        side->block_ms = nori__arena_array(arena, n, sizeof(double));
        side->block_cpu_ms = nori__arena_array(arena, n, sizeof(double));
        side->runs_ms = nori__arena_array(arena, n * (size_t)runs, sizeof(double));
        ok = ok && side->block_ms && side->block_cpu_ms && side->runs_ms;
    }
    if (!ok) {
        return nori__no_memory(r->err);
    }
    for (int round = 0; round < r->o->rounds; round++) {
        for (int k = 0; k < 2; k++) {
            NORI__TRY(run_block(r, &v->side[(round + k) % 2], round, runs));
        }
        if (r->o->progress) {
            r->o->progress(r->o->progress_user, round + 1, r->o->rounds);
        }
    }
    const versus_side *a = &v->side[0], *b = &v->side[1];
    report->wall = ratio_of(a->block_ms, b->block_ms, room, n);
    report->cpu = ratio_of(a->block_cpu_ms, b->block_cpu_ms, room, n);
    for (int i = 0; i < 2; i++) {
        versus_side *side = &v->side[i];
        side->times.median_ms = nori__versus_quantile(side->runs_ms, side->n_runs, 0.5);
        side->times.min_ms = side->runs_ms[0]; /* sorted by now */
        side->times.cpu_ms = nori__versus_quantile(side->block_cpu_ms, n, 0.5);
        report->side[i] = side->times;
    }
    report->rounds = r->o->rounds;
    report->runs = runs;
    report->loads = v->loads;
    report->threads = a->options.threads;
    return NORI_OK;
}

nori_status nori_versus_run(nori_versus *v, const nori_tensor *const *inputs, size_t input_count,
                            const nori_versus_options *options, nori_versus_report *report,
                            nori_error *err)
{
    NORI__GIVEN(err, v);
    NORI__GIVEN_LIST(err, inputs, input_count);
    NORI__GIVEN(err, report);
    nori_versus_options o;
    nori_versus_options_default(&o);
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    if (o.rounds < 7 || o.rounds > MOST_ROUNDS || o.runs < 0 || o.runs > MOST_RUNS) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "%d rounds of %d runs: 7 to %d rounds and at most %d runs were expected",
                          o.rounds, o.runs, MOST_ROUNDS, MOST_RUNS);
    }
    nori_versus_report full = {.size = report->size};
    rounds r = {v, inputs, input_count, &o, &full, err};
    nori__arena arena;
    nori__arena_init(&arena, v->a);
    nori_status status = measure(&r, &arena);
    nori__arena_free(&arena);
    if (status == NORI_OK) {
        memcpy(report, &full, full.size < sizeof(full) ? full.size : sizeof(full));
    }
    return status;
}

int nori_versus_output(const nori_versus *v, size_t index, const char **name,
                       nori_difference *difference)
{
    NORI__ASKED(v, 0);
    NORI__ASKED(difference, 0);
    if (index >= v->n_out) {
        return 0;
    }
    *name = v->side[0].session->outputs[index].name;
    size_t size = difference->size < sizeof(*difference) ? difference->size : sizeof(*difference);
    memcpy(difference, &v->difference[index], size);
    difference->size = size;
    return 1;
}
