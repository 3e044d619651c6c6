/* probe.c: a few samples and what the float model makes of them, kept in memory, so that a try costs
 * its own runs and nothing else. How many depends on the model alone, so that searches repeat. */
#include <math.h>

#include "run/run.h"
#include "tools/quantize/search.h"

#define MOST_SAMPLES 8
#define LEAST_SAMPLES 2
#define MOST_BYTES ((size_t)64 << 20) /* of all inputs and outputs kept */
#define MACS_A_TRY 8e9                /* about so much work is worth a try */

/* ---- making ---- */

typedef struct maker {
    nori__quantizer *q;
    nori__q_probe *p;
    nori_session *session;
    size_t bytes, most;
} maker;

static size_t size_of(nori_tensor *const *t, size_t n)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += t[i] ? t[i]->bytes : 0;
    }
    return sum;
}

/* The number of samples that go with what a run takes. */
static size_t affordable(nori_session *session, const nori_tensor *const *inputs, size_t n)
{
    nori_costs *costs = NULL;
    nori_cost_total total = {.size = sizeof(total)};
    if (nori_session_costs(session, inputs, n, &costs, NULL) != NORI_OK) {
        return MOST_SAMPLES;
    }
    nori_costs_total(costs, &total);
    nori_costs_free(costs);
    double count = MACS_A_TRY / ((double)total.macs + 1);
    return count < LEAST_SAMPLES ? LEAST_SAMPLES : count > MOST_SAMPLES ? MOST_SAMPLES : (size_t)count;
}

static nori_status keep_one(void *user, nori_tensor **inputs)
{
    maker *m = user;
    nori__q_probe *p = m->p;
    nori__q_feed(m->q, m->session, inputs, p->fed);
    if (p->count == 0) {
        m->most = affordable(m->session, p->fed, nori_session_input_count(m->session));
    }
    if (p->count > 0 && (p->count >= m->most || m->bytes > MOST_BYTES)) {
        return NORI_OK;
    }
    nori_tensor **in = p->inputs + p->count * p->n_in, **out = p->outputs + p->count * p->n_out;
    uint64_t start = nori_clock_ns();
    NORI__TRY(nori_session_run(m->session, p->fed, nori_session_input_count(m->session), out, p->n_out,
                               m->q->err));
    double took = (double)(nori_clock_ns() - start);
    p->float_ns = p->count == 0 || took < p->float_ns ? took : p->float_ns;
    for (size_t i = 0; i < p->n_in; i++) {
        in[i] = inputs[i] ? nori_tensor_retain(inputs[i]) : NULL;
    }
    m->bytes += size_of(in, p->n_in) + size_of(out, p->n_out);
    p->count++;
    return NORI_OK;
}

nori_status nori__q_probe_make(nori__quantizer *q, nori__q_probe *probe)
{
    maker m = {.q = q, .p = probe};
    nori_session_options o;
    nori_session_options_default(&o);
    o.threads = q->options->threads;
    NORI__TRY(nori_session_create(q->model, &o, &m.session, q->err));
    *probe = (nori__q_probe){.n_in = nori_model_input_count(q->model),
                             .n_out = nori_session_output_count(m.session)};
    probe->inputs = nori__arena_array(&q->arena, MOST_SAMPLES * (probe->n_in + 1), sizeof(void *));
    probe->outputs = nori__arena_array(&q->arena, MOST_SAMPLES * (probe->n_out + 1), sizeof(void *));
    probe->fed = nori__arena_array(&q->arena, probe->n_in + 1, sizeof(void *));
    q->limit = MOST_SAMPLES;
    bool ok = probe->inputs && probe->outputs && probe->fed;
    nori_status s = ok ? nori__q_each_sample(q, "first", keep_one, &m)
                                                    : nori__no_memory(q->err);
    q->limit = 0;
    nori_session_free(m.session);
    return s;
}

void nori__q_probe_free(nori__q_probe *p)
{
    for (size_t i = 0; p->inputs && i < p->count * p->n_in; i++) {
        nori_tensor_free(p->inputs[i]);
    }
    for (size_t i = 0; p->outputs && i < p->count * p->n_out; i++) {
        nori_tensor_free(p->outputs[i]);
    }
}

/* ---- scoring ---- */

static bool is_float(const nori_tensor *t)
{
    return t && t->kind == NORI_KIND_TENSOR && nori__type_is_float((nori_type)t->type);
}

typedef struct tally {
    double signal, noise;
    double rows, other; /* whose largest number is another one */
} tally;

/* Numbers of a row, for the largest in it: of a [N, classes, 1 ...] all behind the first axis, else
 * along the last. 0: there are no rows. */
static int64_t row_size(const nori_tensor *t)
{
    int64_t size = 1;
    if (t->rank < 2 || t->count == 0) {
        return 0;
    }
    for (int d = 2; d < t->rank; d++) {
        size *= t->dims[d];
    }
    size = size == 1 ? t->dims[1] : t->dims[t->rank - 1];
    return size > 1 ? size : 0;
}

static void compare(tally *sum, const nori_tensor *want, const nori_tensor *got)
{
    if (!is_float(want) || !is_float(got) || want->count != got->count) {
        return;
    }
    int64_t row = row_size(want), best = 0, found = 0;
    for (int64_t i = 0; i < want->count; i++) {
        double a = nori__tensor_get_f64(want, i), b = nori__tensor_get_f64(got, i);
        if (isfinite(a)) {
            double d = isfinite(b) ? b - a : a; /* a number that became none is lost */
            sum->signal += a * a;
            sum->noise += d * d;
        }
        if (row > 0) {
            int64_t at = i % row, first = i - at;
            best = at == 0 || a > nori__tensor_get_f64(want, first + best) ? at : best;
            found = at == 0 || b > nori__tensor_get_f64(got, first + found) ? at : found;
            if (at == row - 1) {
                sum->rows++;
                sum->other += best != found;
            }
        }
    }
}

static void add_up(const tally *sums, size_t n, nori__q_score *score)
{
    double worst = -1, rows = 0, other = 0;
    for (size_t i = 0; i < n; i++) {
        if (sums[i].signal > 0 || sums[i].noise > 0) {
            double ratio = sums[i].signal > 0 ? sums[i].noise / sums[i].signal : INFINITY;
            worst = ratio > worst ? ratio : worst;
        }
        if (rows == 0) { /* of the first output that has rows */
            rows = sums[i].rows;
            other = sums[i].other;
        }
    }
    score->noise = worst;
    score->sqnr = worst < 0 ? NAN : worst == 0 ? INFINITY : -10 * log10(worst);
    score->top1 = rows > 0 ? other / rows : NAN;
}

nori_status nori__q_probe_score(nori__quantizer *q, const nori__q_probe *p, nori_session *session,
                                nori__q_score *score)
{
    nori__arena room;
    nori__arena_init(&room, q->allocator);
    nori_tensor **out = nori__arena_array(&room, p->n_out + 1, sizeof(*out));
    tally *sums = nori__arena_array(&room, p->n_out + 1, sizeof(*sums));
    nori_status s = out && sums ? NORI_OK : nori__no_memory(q->err);
    score->ns = -1;
    size_t use = p->use > 0 && p->use < p->count ? p->use : p->count;
    for (size_t k = 0; s == NORI_OK && k < use; k++) {
        nori__q_feed(q, session, p->inputs + k * p->n_in, p->fed);
        uint64_t start = nori_clock_ns();
        s = nori_session_run(session, p->fed, nori_session_input_count(session), out, p->n_out, q->err);
        double took = (double)(nori_clock_ns() - start);
        score->ns = score->ns < 0 || took < score->ns ? took : score->ns;
        for (size_t i = 0; i < p->n_out; i++) {
            if (s == NORI_OK) {
                compare(&sums[i], p->outputs[k * p->n_out + i], out[i]);
            }
            nori_tensor_free(out[i]);
            out[i] = NULL;
        }
    }
    if (s == NORI_OK) {
        add_up(sums, p->n_out, score);
    }
    nori__arena_free(&room);
    return s;
}

/* ---- all samples ---- */

typedef struct both {
    nori__quantizer *q;
    nori_session *before, *after;
    nori_tensor **want, **got;
    const nori_tensor **fed;
    tally *sums;
    size_t n_out;
} both;

static nori_status run_both(void *user, nori_tensor **inputs)
{
    both *b = user;
    nori__q_feed(b->q, b->before, inputs, b->fed);
    nori_status s = nori_session_run(b->before, b->fed, nori_session_input_count(b->before), b->want,
                                     b->n_out, b->q->err);
    if (s == NORI_OK) {
        nori__q_feed(b->q, b->after, inputs, b->fed);
        s = nori_session_run(b->after, b->fed, nori_session_input_count(b->after), b->got, b->n_out,
                             b->q->err);
    }
    for (size_t i = 0; i < b->n_out; i++) {
        if (s == NORI_OK) {
            compare(&b->sums[i], b->want[i], b->got[i]);
        }
        nori_tensor_free(b->want[i]);
        nori_tensor_free(b->got[i]);
        b->want[i] = b->got[i] = NULL;
    }
    return s;
}

nori_status nori__q_score_all(nori__quantizer *q, const nori_model *model, nori__q_score *score)
{
    both b = {.q = q};
    nori__arena room;
    nori_session_options o;
    nori__arena_init(&room, q->allocator);
    nori_session_options_default(&o);
    o.threads = q->options->threads;
    nori_status s = nori_session_create(q->model, &o, &b.before, q->err);
    s = s == NORI_OK ? nori_session_create(model, &o, &b.after, q->err) : s;
    if (s == NORI_OK) {
        b.n_out = nori_session_output_count(b.before);
        b.want = nori__arena_array(&room, b.n_out + 1, sizeof(*b.want));
        b.got = nori__arena_array(&room, b.n_out + 1, sizeof(*b.got));
        b.sums = nori__arena_array(&room, b.n_out + 1, sizeof(*b.sums));
        b.fed = nori__arena_array(&room, nori_model_input_count(q->model) + 1, sizeof(*b.fed));
        bool ok = b.want && b.got && b.sums && b.fed;
        s = ok ? nori__q_each_sample(q, "all", run_both, &b) : nori__no_memory(q->err);
    }
    if (s == NORI_OK) {
        add_up(b.sums, b.n_out, score);
    }
    nori_session_free(b.before);
    nori_session_free(b.after);
    nori__arena_free(&room);
    return s;
}
