/* cpu_rows.c: float operators that take a tensor row by row: LayerNormalization, RMSNormalization,
 * com.microsoft SkipLayerNormalization, InstanceNormalization; means, sums and extremes over trailing
 * axes. Softmax: cpu_softmax.c.
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

/* Whether a scale or bias holds one value for each element of a row, that is of the axes from axis on: as
 * many values may belong to other axes. */
static bool of_rows(const nori_tensor *t, const nori_tensor *x, int axis)
{
    bool fits = t->rank <= x->rank;
    for (int d = 0; fits && d < x->rank; d++) {
        int own = d - (x->rank - t->rank);
        fits = (own < 0 ? 1 : t->dims[own]) == (d < axis ? 1 : x->dims[d]);
    }
    return fits;
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
    if (!of_rows(scale, x, (int)axis) || (bias && !of_rows(bias, x, (int)axis)) ||
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

/* ---- one value a row ---- */

typedef enum reduction { MEAN, SUM, LARGEST, LEAST } reduction;

static const struct {
    nori__op_id op;
    reduction what;
    bool axes; /* given; else all behind the channels */
} reductions[] = {
    {NORI__OP_ONNX_ReduceMean, MEAN, true},     {NORI__OP_ONNX_ReduceSum, SUM, true},
    {NORI__OP_ONNX_ReduceMax, LARGEST, true},   {NORI__OP_ONNX_ReduceMin, LEAST, true},
    {NORI__OP_ONNX_GlobalAveragePool, MEAN, false}, {NORI__OP_ONNX_GlobalMaxPool, LARGEST, false},
};

static void mean_units(void *user, int64_t begin, int64_t end, int thread)
{
    const rows_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        job->y[u] = job->kern->f32_sum(job->n, job->x + (size_t)u * job->n) / (float)job->n;
    }
}

static void sum_units(void *user, int64_t begin, int64_t end, int thread)
{
    const rows_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        job->y[u] = job->kern->f32_sum(job->n, job->x + (size_t)u * job->n);
    }
}

static void largest_units(void *user, int64_t begin, int64_t end, int thread)
{
    const rows_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        job->y[u] = job->kern->f32_max(job->n, job->x + (size_t)u * job->n);
    }
}

static void least_units(void *user, int64_t begin, int64_t end, int thread)
{
    const rows_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        job->y[u] = job->kern->f32_min(job->n, job->x + (size_t)u * job->n);
    }
}

/* How many leading axes stay where all others go, or -1: others than trailing ones go. */
static int kept_axes(const nori_call *call, const nori_tensor *x)
{
    const nori_tensor *axes = nori__ref_in(call, 1);
    size_t count = 0;
    const int64_t *list = nori__attr_ints(call->node, "axes", &count);
    uint32_t mask = 0;
    if (axes) {
        count = (size_t)axes->count;
        list = axes->data;
    }
    if (!list || count == 0 || (axes && axes->type != NORI_INT64)) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t a = list[i] + (list[i] < 0 ? x->rank : 0);
        if (a < 0 || a >= x->rank || (mask >> a & 1)) {
            return -1;
        }
        mask |= 1u << a;
    }
    int kept = x->rank - (int)count;
    return mask >> kept == (1u << count) - 1 ? kept : -1;
}

static nori_status reduce_run(const void *state, nori_call *call)
{
    static const nori__body bodies[] = {mean_units, sum_units, largest_units, least_units};
    const nori_tensor *x = nori__ref_in(call, 0);
    nori_tensor *y = nori__ref_out(call, 0);
    (void)state;
    if (!is_f32(x) || !is_f32(y) || x->count == 0 || y->count == 0 || x->count % y->count != 0) {
        return nori__cpu_reference(call);
    }
    reduction what = MEAN;
    bool axes = false;
    for (size_t i = 0; i < NORI__COUNT(reductions); i++) {
        if (nori__node_is(call->node, reductions[i].op)) {
            what = reductions[i].what;
            axes = reductions[i].axes;
        }
    }
    rows_job job = {.x = x->data, .y = y->data, .n = 1};
    int kept = axes ? kept_axes(call, x) : x->rank < 3 ? -1 : 2;
    for (int d = kept; kept >= 0 && d < x->rank; d++) {
        job.n *= (size_t)x->dims[d];
    }
    if (kept < 0 || (size_t)(x->count / y->count) != job.n) {
        return nori__cpu_reference(call);
    }
    run_rows(call, &job, (size_t)y->count, bodies[what]);
    return NORI_OK;
}

const nori__kernel nori__cpu_reduce = {.size = sizeof(nori__kernel), .run = reduce_run};
