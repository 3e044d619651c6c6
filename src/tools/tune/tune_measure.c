/* tune_measure.c: two sessions of one model run in turns, and what that says of layers and of the whole.
 *
 * Machines are noisy, in one direction: a run is as long as its work, or longer. So both medians and
 * minima are looked at, and what both agree on counts. Two sessions that are the same differ by some per
 * cent, too, for as long as they live: by where their memory came to lie. So the whole model is judged by
 * several pairs of them. */
#include <stdlib.h>

#include "tools/tune/tune.h"

#define WARM 1     /* runs of each side that are not counted */
#define LEAST 4    /* turns, however slow */
#define LEAST_WHOLE 3
#define MOST_WHOLE 41
#define TURN_NS 1000000.0 /* least of a side's part in a turn of the whole model */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts values. */
static double median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static nori_status run_once(nori__tune_job *job, int side, double *ns)
{
    uint64_t start = nori__now_ns();
    nori_status status = nori_session_run(job->side[side], job->o.inputs, job->o.input_count,
                                          job->outputs, job->n_out, job->err);
    *ns = (double)(nori__now_ns() - start);
    for (size_t i = 0; i < job->n_out; i++) {
        nori_tensor_free(job->outputs[i]);
        job->outputs[i] = NULL;
    }
    return status;
}

/* One run of a session that times its steps; index: of the sample. */
static nori_status sample(nori__tune_job *job, int side, size_t index)
{
    nori_tuning *t = job->t;
    nori_session *s = job->side[side];
    double ns;
    memset(s->times, 0, ((size_t)s->n_step_ids + 1) * sizeof(*s->times));
    NORI__TRY(run_once(job, side, &ns));
    for (size_t i = 0; i < t->n_layers; i++) {
        job->samples[side][i * NORI__TUNE_RUNS + index] = 0;
    }
    for (size_t i = 0; i < t->n_steps; i++) {
        job->samples[side][t->layer_of[i] * NORI__TUNE_RUNS + index] +=
            (double)s->times[t->steps[i].taken.step].total_ns / 1000;
    }
    return NORI_OK;
}

static void note(nori__tune_job *job, size_t layer, size_t n)
{
    nori__tuned *l = &job->t->layers[layer];
    double *usual = job->samples[0] + layer * NORI__TUNE_RUNS;
    double *other = job->samples[1] + layer * NORI__TUNE_RUNS;
    nori__tuned_pair *p = &l->pair[l->way];
    p->usual_us = median(usual, n);
    p->us = median(other, n); /* both are sorted by now */
    double middle = p->us > 0 ? p->usual_us / p->us : 1, least = other[0] > 0 ? usual[0] / other[0] : 1;
    p->gain = middle < least ? middle : least;
    p->measured = true;
}

nori_status nori__tune_layers(nori__tune_job *job, uint64_t until)
{
    double ns;
    size_t n = 0;
    for (int i = 0; i < 2 * WARM; i++) {
        NORI__TRY(run_once(job, i % 2, &ns));
    }
    for (; n < NORI__TUNE_RUNS && (n < LEAST || nori__now_ns() < until); n++) {
        for (int k = 0; k < 2; k++) {
            NORI__TRY(sample(job, (int)(n + (size_t)k) % 2, n));
        }
    }
    for (size_t i = 0; i < job->t->n_layers; i++) {
        if (job->t->layers[i].way != job->t->layers[i].ask.usual) {
            note(job, i, n);
        }
    }
    return NORI_OK;
}

/* A side's part in a turn: milliseconds a run. */
static nori_status part(nori__tune_job *job, int side, int runs, double *ms)
{
    double ns, sum = 0;
    for (int i = 0; i < runs; i++) {
        NORI__TRY(run_once(job, side, &ns));
        sum += ns;
    }
    *ms = sum / 1e6 / runs;
    return NORI_OK;
}

nori_status nori__tune_whole(nori__tune_job *job, uint64_t until, nori__tuned_whole *out)
{
    double ms[2][MOST_WHOLE], ratio[MOST_WHOLE], warm = 1;
    size_t n = 0;
    for (int i = 0; i < 2 * WARM; i++) {
        NORI__TRY(run_once(job, i % 2, &warm));
    }
    int runs = warm < TURN_NS ? (int)(TURN_NS / (warm + 1)) + 1 : 1;
    for (; n < MOST_WHOLE && (n < LEAST_WHOLE || nori__now_ns() < until); n++) {
        for (int k = 0; k < 2; k++) {
            int side = (int)(n + (size_t)k) % 2;
            NORI__TRY(part(job, side, runs, &ms[side][n]));
        }
        ratio[n] = ms[1][n] > 0 ? ms[0][n] / ms[1][n] : 1;
    }
    *out = (nori__tuned_whole){median(ms[0], n), median(ms[1], n), median(ratio, n)};
    return NORI_OK;
}

void nori__tune_judge(nori_tune_report *r, const nori__tuned_whole *pairs, size_t count)
{
    double usual[NORI__TUNE_PAIRS], tuned[NORI__TUNE_PAIRS], gain[NORI__TUNE_PAIRS];
    for (size_t i = 0; i < count; i++) {
        usual[i] = pairs[i].usual_ms;
        tuned[i] = pairs[i].tuned_ms;
        gain[i] = pairs[i].gain;
    }
    r->usual_ms = median(usual, count);
    r->tuned_ms = median(tuned, count);
    r->gain = median(gain, count);
    /* Twice the standard error of a median of five draws is about half their range; of three, 0.8 of it. */
    r->noise = (gain[count - 1] - gain[0]) * (count < NORI__TUNE_PAIRS ? 0.8 : 0.5);
    r->faster = r->gain > 1 + r->noise && r->gain > 1.005;
}
