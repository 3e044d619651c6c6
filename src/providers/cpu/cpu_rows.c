/* cpu_rows.c: float operators that take a tensor row by row: Softmax, LayerNormalization,
 * RMSNormalization, com.microsoft SkipLayerNormalization, InstanceNormalization, ReduceMean and
 * GlobalAveragePool over trailing axes.
 *
 * Means and variances are of float sums in a fixed order. A row is one thread's. Empty rows go to
 * the reference kernels. */
#include "providers/cpu/cpu.h"
#include "providers/reference/ref.h"

#include <math.h>

#define GRAIN_ELEMENTS 8192

typedef struct rows_job {
    const nori__kernels *kern;
    const float *x, *skip, *extra; /* skip, extra: SkipLayerNormalization */
    float *y, *sum;
    size_t n;
    const float *scale, *bias;
    size_t channels;       /* InstanceNormalization */
    float *mean, *factor;  /* outputs, or NULL */
    float epsilon;
    bool centred;
} rows_job;

static bool is_f32(const nori_tensor *t)
{
    return t && t->type == NORI_FLOAT;
}

static void run_rows(nori_call *call, rows_job *job, size_t rows, nori__body body)
{
    int64_t grain = job->n > 0 && job->n < GRAIN_ELEMENTS ? (int64_t)(GRAIN_ELEMENTS / job->n) : 1;
    job->kern = nori__kernels_get();
    nori__cpu_for(call->pool, nori__cpu_threads(call), (int64_t)rows, grain, body, job);
}

/* ---- Softmax ---- */

static void softmax_units(void *user, int64_t begin, int64_t end, int thread)
{
    const rows_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t at = (size_t)u * job->n;
        job->kern->f32_softmax(job->n, job->x + at, job->y + at);
    }
}

static nori_status softmax_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0);
    nori_tensor *y = nori__ref_out(call, 0);
    bool flat = call->node->version > 0 && call->node->version < 13;
    int64_t axis = nori__attr_i(call->node, "axis", flat ? 1 : -1);
    (void)state;
    if (!is_f32(x) || !is_f32(y) || x->count == 0 || axis < -x->rank || axis >= x->rank) {
        return nori__cpu_reference(call);
    }
    axis += axis < 0 ? x->rank : 0;
    rows_job job = {.x = x->data, .y = y->data, .n = 1};
    for (int d = (int)axis; d < x->rank; d++) {
        job.n *= (size_t)x->dims[d];
    }
    if (!flat && (size_t)x->dims[axis] != job.n) {
        return nori__cpu_reference(call); /* not along the last axis */
    }
    run_rows(call, &job, (size_t)x->count / job.n, softmax_units);
    return NORI_OK;
}

const nori__kernel nori__cpu_softmax = {.size = sizeof(nori__kernel), .run = softmax_run};

/* ---- normalizations ---- */

/* Sums first where there is something to add; the sum stands in y (or its own output) then. */
static const float *skip_sum(const rows_job *job, size_t at)
{
    const float *x = job->x + at;
    if (!job->skip) {
        return x;
    }
    float *to = job->sum ? job->sum + at : job->y + at;
    job->kern->f32_binary[NORI__B_ADD](job->n, x, 1, job->skip + at, 1, to);
    if (job->extra) {
        job->kern->f32_binary[NORI__B_ADD](job->n, to, 1, job->extra, 1, to);
    }
    return to;
}

static void norm_units(void *user, int64_t begin, int64_t end, int thread)
{
    const rows_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t at = (size_t)u * job->n;
        const float *x = skip_sum(job, at);
        float mean = job->centred ? job->kern->f32_sum(job->n, x) / (float)job->n : 0;
        float variance = job->kern->f32_sum_square(job->n, x, mean) / (float)job->n;
        float factor = 1 / sqrtf(variance + job->epsilon);
        job->kern->f32_normalize(job->n, x, mean, factor, job->scale, job->bias, job->y + at);
        if (job->mean) {
            job->mean[u] = mean;
        }
        if (job->factor) {
            job->factor[u] = factor;
        }
    }
}

static nori_status layer_norm_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0), *scale = nori__ref_in(call, 1);
    const nori_tensor *bias = nori__ref_in(call, 2);
    nori_tensor *y = nori__ref_out(call, 0), *mean = nori__ref_out(call, 1),
                *factor = nori__ref_out(call, 2);
    bool rms = nori__node_is(call->node, NORI__OP_ONNX_RMSNormalization);
    int64_t axis = nori__attr_i(call->node, "axis", -1);
    (void)state;
    bool fits = is_f32(x) && is_f32(y) && is_f32(scale) && (!bias || is_f32(bias)) &&
                (!mean || is_f32(mean)) && (!factor || is_f32(factor)) && x->count > 0 &&
                axis >= -x->rank && axis < x->rank;
    if (!fits) {
        return nori__cpu_reference(call);
    }
    axis += axis < 0 ? x->rank : 0;
    rows_job job = {.x = x->data, .y = y->data, .n = 1, .scale = scale->data,
                    .bias = bias ? bias->data : NULL, .mean = mean ? mean->data : NULL,
                    .factor = factor ? factor->data : NULL,
                    .epsilon = nori__attr_f(call->node, "epsilon", 1e-5f), .centred = !rms};
    for (int d = (int)axis; d < x->rank; d++) {
        job.n *= (size_t)x->dims[d];
    }
    size_t rows = (size_t)x->count / job.n;
    if ((size_t)scale->count != job.n || (bias && (size_t)bias->count != job.n) ||
        (mean && (size_t)mean->count != rows) || (factor && (size_t)factor->count != rows)) {
        return nori__cpu_reference(call);
    }
    run_rows(call, &job, rows, norm_units);
    return NORI_OK;
}

const nori__kernel nori__cpu_layer_norm = {.size = sizeof(nori__kernel), .run = layer_norm_run};

static nori_status skip_norm_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0), *skip = nori__ref_in(call, 1);
    const nori_tensor *scale = nori__ref_in(call, 2), *bias = nori__ref_in(call, 3);
    const nori_tensor *extra = nori__ref_in(call, 4);
    nori_tensor *y = nori__ref_out(call, 0), *sum = nori__ref_out(call, 3);
    (void)state;
    bool fits = is_f32(x) && is_f32(skip) && is_f32(scale) && is_f32(y) &&
                (!bias || is_f32(bias)) && (!extra || is_f32(extra)) && (!sum || is_f32(sum)) &&
                x->count > 0 && x->rank > 0 && skip->count == x->count &&
                !nori__ref_out(call, 1) && !nori__ref_out(call, 2);
    int64_t n = fits ? x->dims[x->rank - 1] : 0;
    if (!fits || scale->count != n || (bias && bias->count != n) || (extra && extra->count != n)) {
        return nori__cpu_reference(call);
    }
    rows_job job = {.x = x->data, .skip = skip->data, .extra = extra ? extra->data : NULL,
                    .y = y->data, .sum = sum ? sum->data : NULL, .n = (size_t)n,
                    .scale = scale->data, .bias = bias ? bias->data : NULL,
                    .epsilon = nori__attr_f(call->node, "epsilon", 1e-12f), .centred = true};
    run_rows(call, &job, (size_t)(x->count / n), norm_units);
    return NORI_OK;
}

const nori__kernel nori__cpu_skip_norm = {.size = sizeof(nori__kernel), .run = skip_norm_run};

/* Planes are long, so a row's float sums err by what their order makes of it: eight sums in turn is
 * the order other engines have, and results of deep networks of such layers agree only with it. */
static void instance_norm_units(void *user, int64_t begin, int64_t end, int thread)
{
    const rows_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t at = (size_t)u * job->n, c = (size_t)u % job->channels;
        const float *x = job->x + at;
        float mean = job->kern->f32_sum_turns(job->n, x) / (float)job->n;
        float variance = job->kern->f32_sum_square_turns(job->n, x, mean) / (float)job->n;
        float p[2] = {job->scale[c], job->bias[c]};
        job->kern->f32_normalize(job->n, x, mean, 1 / sqrtf(variance + job->epsilon), NULL, NULL,
                                 job->y + at);
        job->kern->f32_unary[NORI__U_AFFINE](job->n, job->y + at, job->y + at, p);
    }
}

static nori_status instance_norm_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0), *scale = nori__ref_in(call, 1);
    const nori_tensor *bias = nori__ref_in(call, 2);
    nori_tensor *y = nori__ref_out(call, 0);
    (void)state;
    if (!is_f32(x) || !is_f32(scale) || !is_f32(bias) || !is_f32(y) || x->rank < 3 ||
        x->count == 0 || scale->count != x->dims[1] || bias->count != x->dims[1]) {
        return nori__cpu_reference(call);
    }
    size_t rows = (size_t)(x->dims[0] * x->dims[1]);
    rows_job job = {.x = x->data, .y = y->data, .n = (size_t)x->count / rows, .scale = scale->data,
                    .bias = bias->data, .channels = (size_t)x->dims[1],
                    .epsilon = nori__attr_f(call->node, "epsilon", 1e-5f)};
    run_rows(call, &job, rows, instance_norm_units);
    return NORI_OK;
}

const nori__kernel nori__cpu_instance_norm = {.size = sizeof(nori__kernel),
                                              .run = instance_norm_run};

/* ---- means of rows ---- */

static void mean_units(void *user, int64_t begin, int64_t end, int thread)
{
    const rows_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        job->y[u] = job->kern->f32_sum(job->n, job->x + (size_t)u * job->n) / (float)job->n;
    }
}

static nori_status mean_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0);
    nori_tensor *y = nori__ref_out(call, 0);
    (void)state;
    if (!is_f32(x) || !is_f32(y) || x->count == 0 || y->count == 0 || x->count % y->count != 0) {
        return nori__cpu_reference(call);
    }
    /* Trailing axes only: all dimensions before some place are kept, all after it are not. */
    rows_job job = {.x = x->data, .y = y->data, .n = 1};
    int kept = 2;
    if (nori__node_is(call->node, NORI__OP_ONNX_ReduceMean)) {
        const nori_tensor *axes = nori__ref_in(call, 1);
        size_t count = 0;
        const int64_t *list = nori__attr_ints(call->node, "axes", &count);
        count = axes ? (size_t)axes->count : list ? count : 0;
        uint32_t mask = 0;
        if (count == 0 || (axes && axes->type != NORI_INT64)) {
            return nori__cpu_reference(call);
        }
        list = axes ? axes->data : list;
        for (size_t i = 0; i < count; i++) {
            int64_t a = list[i] + (list[i] < 0 ? x->rank : 0);
            if (a < 0 || a >= x->rank || (mask >> a & 1)) {
                return nori__cpu_reference(call);
            }
            mask |= 1u << a;
        }
        kept = x->rank - (int)count;
        if (mask >> kept != (1u << count) - 1) {
            return nori__cpu_reference(call);
        }
    } else if (x->rank < 3) {
        return nori__cpu_reference(call);
    }
    for (int d = kept; d < x->rank; d++) {
        job.n *= (size_t)x->dims[d];
    }
    if ((size_t)(x->count / y->count) != job.n) {
        return nori__cpu_reference(call);
    }
    run_rows(call, &job, (size_t)y->count, mean_units);
    return NORI_OK;
}

const nori__kernel nori__cpu_mean = {.size = sizeof(nori__kernel), .run = mean_run};
