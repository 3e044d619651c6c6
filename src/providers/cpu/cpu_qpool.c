/* cpu_qpool.c: pools of 8-bit values over one or two dimensions: MaxPool, com.microsoft
 * QLinearAveragePool and QLinearGlobalAveragePool. The same bytes as the reference kernels give:
 * averages are sums of float32 values in double, which are exact in any order. */
#include "ops/window.h"
#include "providers/cpu/integers.h"
#include "providers/cpu/qscale.h"

typedef struct pool_job {
    nori__window w; /* as two spatial dimensions */
    int64_t in[2], out[2];
    const uint8_t *x;
    uint8_t *y;
    bool is_signed, all;  /* all: pads are counted */
    nori__qscale from, to;
    size_t line;          /* bytes of a thread's scratch */
    char *work;
} pool_job;

/* Sizes as two spatial dimensions; false: for the reference kernel. */
static bool pool_shapes(const nori_call *call, pool_job *job)
{
    const nori_tensor *x = nori__cpu_has(call, 0) ? call->in[0] : NULL;
    const nori_tensor *y = call->n_out > 0 ? call->out[0] : NULL;
    memset(job, 0, sizeof(*job));
    if (!x || !y || !nori__cpu_is_8bit((nori_type)x->type) || y->type != x->type || x->rank < 3 ||
        x->rank > 4 || (call->n_out > 1 && call->out[1]) ||
        nori__attr_i(call->node, "channels_last", 0) != 0) {
        return false;
    }
    nori__window w;
    int n = x->rank - 2;
    if (nori__window_read(call->node, NULL, n, NULL, &w) != NORI_OK) {
        return false;
    }
    job->w = w;
    job->w.n = 2;
    job->w.kernel[0] = job->w.stride[0] = job->w.dilation[0] = 1;
    job->w.begin[0] = job->w.end[0] = 0;
    job->in[0] = job->out[0] = 1;
    for (int d = 0; d < n; d++) {
        int to = 2 - n + d;
        job->in[to] = x->dims[d + 2];
        if (nori__window_out(&w, NULL, d, x->dims[d + 2], &job->out[to]) != NORI_OK ||
            job->out[to] != y->dims[d + 2] || w.begin[d] < 0 || w.end[d] < 0) {
            return false;
        }
        job->w.kernel[to] = w.kernel[d];
        job->w.stride[to] = w.stride[d];
        job->w.dilation[to] = w.dilation[d];
        job->w.begin[to] = w.begin[d];
        job->w.end[to] = w.end[d];
    }
    job->is_signed = x->type == NORI_INT8;
    job->all = nori__attr_i(call->node, "count_include_pad", 0) != 0;
    int64_t used = (job->out[1] - 1) * job->w.stride[1] + nori__window_extent(&job->w, 1);
    int64_t there = job->w.begin[1] + job->in[1];
    job->line = (size_t)(used > there ? used : there);
    return x->count > 0 && y->count > 0;
}

/* ---- the largest ---- */

/* One output row of plane x. line holds a row with its pads, most what a window's columns give. */
static void max_row(const pool_job *job, const uint8_t *x, int64_t o, uint8_t *line, uint8_t *most,
                    uint8_t *y)
{
    const nori__kernels *kern = nori__kernels_get();
    const nori__window *w = &job->w;
    size_t width = (size_t)job->in[1], stride = (size_t)w->stride[1];
    uint8_t *inner = line + w->begin[1];
    memset(inner, job->is_signed ? 0x80 : 0, width);
    for (int64_t k = 0; k < w->kernel[0]; k++) {
        int64_t i = o * w->stride[0] - w->begin[0] + k * w->dilation[0];
        if (i >= 0 && i < job->in[0]) {
            kern->x8_max(width, inner, x + (size_t)i * width, job->is_signed, inner);
        }
    }
    size_t n = (size_t)(job->out[1] - 1) * stride + 1;
    memcpy(most, line, n);
    for (int64_t k = 1; k < w->kernel[1]; k++) {
        kern->x8_max(n, most, line + k * w->dilation[1], job->is_signed, most);
    }
    for (int64_t j = 0; j < job->out[1]; j++) {
        y[j] = most[(size_t)j * stride];
    }
}

static void max_units(void *user, int64_t begin, int64_t end, int thread)
{
    const pool_job *job = user;
    uint8_t *line = (uint8_t *)job->work + (size_t)thread * 2 * nori__cpu_round(job->line);
    uint8_t *most = line + nori__cpu_round(job->line);
    memset(line, job->is_signed ? 0x80 : 0, job->line);
    for (int64_t u = begin; u < end; u++) {
        const uint8_t *x = job->x + u * job->in[0] * job->in[1];
        uint8_t *y = job->y + u * job->out[0] * job->out[1];
        for (int64_t o = 0; o < job->out[0]; o++) {
            max_row(job, x, o, line, most, y + o * job->out[1]);
        }
    }
}

static size_t max_workspace(const void *state, const nori_call *call)
{
    pool_job job;
    (void)state;
    return pool_shapes(call, &job)
               ? 2 * nori__cpu_round(job.line) * (size_t)nori__cpu_threads(call)
               : 0;
}

/* How many planes are worth a thread. */
static int64_t grain_of(const pool_job *job)
{
    return 1 + 16384 / (job->in[0] * job->in[1]);
}

static nori_status max_run(const void *state, nori_call *call)
{
    pool_job job;
    if (!pool_shapes(call, &job)) {
        return nori__cpu_reference(call);
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, max_workspace(state, call), &scratch));
    job.x = call->in[0]->data;
    job.y = call->out[0]->data;
    job.work = scratch.data;
    nori__parallel_for(call->pool, nori__cpu_threads(call),
                       call->in[0]->dims[0] * call->in[0]->dims[1], grain_of(&job), max_units,
                       &job);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__cpu_q8_max_pool = {.size = sizeof(nori__kernel),
                                            .workspace = max_workspace,
                                            .run = max_run};

/* ---- averages: X, X_scale, X_zero, Y_scale, Y_zero ---- */

/* Positions of the window at output o along d in [0, size), or with the pads: the first, how many. */
static int64_t covered(const pool_job *job, int d, int64_t o, bool pads)
{
    const nori__window *w = &job->w;
    int64_t start = o * w->stride[d] - w->begin[d], count = 0;
    int64_t low = pads ? -w->begin[d] : 0, high = job->in[d] + (pads ? w->end[d] : 0);
    for (int64_t k = 0; k < w->kernel[d]; k++) {
        int64_t i = start + k * w->dilation[d];
        count += i >= low && i < high;
    }
    return count;
}

static uint8_t average_byte(const pool_job *job, double sum, int64_t count)
{
    float mean = count > 0 ? (float)(sum / (double)count) : 0;
    return nori__qscale_byte(mean / job->to.scale, job->to.zero, job->is_signed);
}

static void average_row(const pool_job *job, const uint8_t *x, int64_t o, double *line, uint8_t *y)
{
    const nori__window *w = &job->w;
    int64_t width = job->in[1];
    memset(line, 0, (size_t)width * sizeof(*line));
    for (int64_t k = 0; k < w->kernel[0]; k++) {
        int64_t i = o * w->stride[0] - w->begin[0] + k * w->dilation[0];
        for (int64_t c = 0; i >= 0 && i < job->in[0] && c < width; c++) {
            uint8_t v = x[i * width + c];
            int32_t q = job->is_signed ? (int8_t)v : v;
            line[c] += (double)((float)(q - job->from.zero) * job->from.scale);
        }
    }
    int64_t rows = covered(job, 0, o, job->all);
    for (int64_t j = 0; j < job->out[1]; j++) {
        double sum = 0;
        for (int64_t k = 0; k < w->kernel[1]; k++) {
            int64_t c = j * w->stride[1] - w->begin[1] + k * w->dilation[1];
            sum += c >= 0 && c < width ? line[c] : 0;
        }
        y[j] = average_byte(job, sum, rows * covered(job, 1, j, job->all));
    }
}

static void average_units(void *user, int64_t begin, int64_t end, int thread)
{
    const pool_job *job = user;
    size_t bytes = nori__cpu_round((size_t)job->in[1] * sizeof(double));
    double *line = (double *)(void *)(job->work + (size_t)thread * bytes);
    for (int64_t u = begin; u < end; u++) {
        const uint8_t *x = job->x + u * job->in[0] * job->in[1];
        uint8_t *y = job->y + u * job->out[0] * job->out[1];
        for (int64_t o = 0; o < job->out[0]; o++) {
            average_row(job, x, o, line, y + o * job->out[1]);
        }
    }
}

static size_t average_workspace(const void *state, const nori_call *call)
{
    pool_job job;
    (void)state;
    return pool_shapes(call, &job) ? nori__cpu_round((size_t)job.in[1] * sizeof(double)) *
                                         (size_t)nori__cpu_threads(call)
                                   : 0;
}

static nori_status average_run(const void *state, nori_call *call)
{
    pool_job job;
    if (!pool_shapes(call, &job) ||
        !nori__qscale_read(call, 1, 2, call->in[0]->type, &job.from) ||
        !nori__qscale_read(call, 3, 4, call->in[0]->type, &job.to)) {
        return nori__cpu_reference(call);
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, average_workspace(state, call), &scratch));
    job.x = call->in[0]->data;
    job.y = call->out[0]->data;
    job.work = scratch.data;
    nori__parallel_for(call->pool, nori__cpu_threads(call),
                       call->in[0]->dims[0] * call->in[0]->dims[1], grain_of(&job), average_units,
                       &job);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__cpu_q8_average_pool = {.size = sizeof(nori__kernel),
                                                .workspace = average_workspace,
                                                .run = average_run};

static void mean_units(void *user, int64_t begin, int64_t end, int thread)
{
    const pool_job *job = user;
    size_t n = (size_t)(job->in[0] * job->in[1]);
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        double sum = nori__kernels_get()->q8_sum(n, job->x + (size_t)u * n, job->is_signed,
                                                 job->from.zero, job->from.scale);
        job->y[u] = average_byte(job, sum, (int64_t)n);
    }
}

static nori_status mean_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__cpu_has(call, 0) ? call->in[0] : NULL;
    const nori_tensor *y = call->n_out > 0 ? call->out[0] : NULL;
    pool_job job = {.in = {1, 1}};
    (void)state;
    if (!x || !y || !nori__cpu_is_8bit((nori_type)x->type) || y->type != x->type || x->rank < 3 ||
        x->count == 0 || nori__attr_i(call->node, "channels_last", 0) != 0 ||
        !nori__qscale_read(call, 1, 2, x->type, &job.from) ||
        !nori__qscale_read(call, 3, 4, x->type, &job.to)) {
        return nori__cpu_reference(call);
    }
    int64_t planes = x->dims[0] * x->dims[1];
    job.in[1] = x->count / planes;
    job.is_signed = x->type == NORI_INT8;
    job.x = x->data;
    job.y = y->data;
    nori__parallel_for(call->pool, nori__cpu_threads(call), planes, grain_of(&job), mean_units,
                       &job);
    return NORI_OK;
}

const nori__kernel nori__cpu_q8_mean = {.size = sizeof(nori__kernel), .run = mean_run};
