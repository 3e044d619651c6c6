/* lastc_pool.c: pools over channels-last bytes: LastMaxPool, LastAveragePool, LastMean. The same bytes
 * as the reference kernels of the plain operators give: averages are sums of float32 values in
 * double, which are exact in any order. */
#include "providers/cpu/lastc.h"

#include <math.h>

typedef struct pool_job {
    const uint8_t *x;
    uint8_t *y;
    int64_t in[2], out[2];
    size_t channels;
    nori__window w;
    bool average, all;  /* all: pads are counted */
    double value[256];  /* of each byte */
    float scale;        /* of the result */
    int32_t zero, low;  /* low: the plain type's lowest */
    size_t bytes;       /* of a thread's sums or row */
    char *work;
} pool_job;

static uint8_t average_byte(const pool_job *job, double sum, int64_t count)
{
    float mean = count > 0 ? (float)(sum / (double)count) : 0;
    float v = rintf(mean / job->scale) + (float)job->zero, low = (float)job->low;
    v = v >= low ? (v < low + 255 ? v : low + 255) : low;
    return (uint8_t)((int32_t)v - job->low);
}

/* Kernel positions along d whose input lies inside, for output o; with the pads where all. */
static int64_t covered(const pool_job *job, int d, int64_t o)
{
    int64_t start = o * job->w.stride[d] - job->w.begin[d], count = 0;
    int64_t low = job->all ? -job->w.begin[d] : 0;
    int64_t high = job->in[d] + (job->all ? job->w.end[d] : 0);
    for (int64_t k = 0; k < job->w.kernel[d]; k++) {
        int64_t i = start + k * job->w.dilation[d];
        count += i >= low && i < high;
    }
    return count;
}

static void add_pixel(const pool_job *job, const uint8_t *x, double *sum)
{
    for (size_t c = 0; c < job->channels; c++) {
        sum[c] += job->value[x[c]];
    }
}

/* One output pixel. */
static void average_pixel(const pool_job *job, const uint8_t *x, int64_t h, int64_t w, double *sum,
                          uint8_t *y)
{
    size_t channels = job->channels;
    memset(sum, 0, channels * sizeof(*sum));
    for (int64_t r = 0; r < job->w.kernel[0]; r++) {
        int64_t i = h * job->w.stride[0] - job->w.begin[0] + r * job->w.dilation[0];
        for (int64_t s = 0; i >= 0 && i < job->in[0] && s < job->w.kernel[1]; s++) {
            int64_t j = w * job->w.stride[1] - job->w.begin[1] + s * job->w.dilation[1];
            if (j >= 0 && j < job->in[1]) {
                add_pixel(job, x + (size_t)(i * job->in[1] + j) * channels, sum);
            }
        }
    }
    int64_t count = covered(job, 0, h) * covered(job, 1, w);
    for (size_t c = 0; c < channels; c++) {
        y[c] = average_byte(job, sum[c], count);
    }
}

/* A row of output pixels: first the largest over the kernel's rows, then over its columns. Rows are long
 * where there are few channels. row has room for one of the input. */
static void max_row(const pool_job *job, const uint8_t *x, int64_t h, uint8_t *row, uint8_t *y)
{
    const nori__kernels *kern = nori__kernels_get();
    size_t channels = job->channels, width = (size_t)job->in[1] * channels;
    const uint8_t *most = NULL;
    for (int64_t r = 0; r < job->w.kernel[0]; r++) {
        int64_t i = h * job->w.stride[0] - job->w.begin[0] + r * job->w.dilation[0];
        if (i < 0 || i >= job->in[0]) {
            continue;
        }
        const uint8_t *from = x + (size_t)i * width;
        if (most) {
            kern->x8_max(width, most, from, false, row);
        }
        most = most ? row : from;
    }
    for (int64_t w = 0; w < job->out[1]; w++, y += channels) {
        const uint8_t *first = NULL;
        bool one = true;
        for (int64_t s = 0; most && s < job->w.kernel[1]; s++) {
            int64_t j = w * job->w.stride[1] - job->w.begin[1] + s * job->w.dilation[1];
            if (j < 0 || j >= job->in[1]) {
                continue;
            }
            const uint8_t *p = most + (size_t)j * channels;
            if (first) {
                kern->x8_max(channels, first, p, false, y);
                one = false;
            }
            first = first ? y : p;
        }
        if (!first) {
            memset(y, 0, channels); /* the lowest */
        } else if (one) {
            memcpy(y, first, channels);
        }
    }
}

static void max_units(void *user, int64_t begin, int64_t end, int thread)
{
    const pool_job *job = user;
    uint8_t *row = (uint8_t *)(job->work + (size_t)thread * job->bytes);
    for (int64_t u = begin; u < end; u++) {
        int64_t image = u / job->out[0], h = u % job->out[0];
        const uint8_t *x = job->x + (size_t)(image * job->in[0] * job->in[1]) * job->channels;
        max_row(job, x, h, row, job->y + (size_t)(u * job->out[1]) * job->channels);
    }
}

static void average_units(void *user, int64_t begin, int64_t end, int thread)
{
    const pool_job *job = user;
    double *sum = (double *)(void *)(job->work + (size_t)thread * job->bytes);
    for (int64_t u = begin; u < end; u++) {
        int64_t image = u / job->out[0], h = u % job->out[0];
        const uint8_t *x = job->x + (size_t)(image * job->in[0] * job->in[1]) * job->channels;
        for (int64_t w = 0; w < job->out[1]; w++) {
            average_pixel(job, x, h, w, sum, job->y + (size_t)(u * job->out[1] + w) * job->channels);
        }
    }
}

/* Of a thread: sums of a pixel, or a row of the input. */
static size_t thread_bytes(const nori_call *call, bool average)
{
    const nori_tensor *x = call->in[0];
    return nori__cpu_round((size_t)x->dims[3] * (average ? sizeof(double) : (size_t)x->dims[2]));
}

static size_t max_workspace(const void *state, const nori_call *call)
{
    (void)state;
    return thread_bytes(call, false) * (size_t)nori__cpu_threads(call);
}

static size_t average_workspace(const void *state, const nori_call *call)
{
    (void)state;
    return thread_bytes(call, true) * (size_t)nori__cpu_threads(call);
}

static nori_status pool_go(nori_call *call, pool_job *job)
{
    const nori_tensor *x = call->in[0], *y = call->out[0];
    job->x = x->data;
    job->y = y->data;
    job->channels = (size_t)x->dims[3];
    for (int d = 0; d < 2; d++) {
        job->in[d] = x->dims[d + 1];
        job->out[d] = y->dims[d + 1];
    }
    if (x->count == 0 || y->count == 0) {
        return NORI_OK;
    }
    nori__cpu_scratch scratch;
    job->bytes = thread_bytes(call, job->average);
    NORI__TRY(nori__cpu_take(call, job->bytes * (size_t)nori__cpu_threads(call), &scratch));
    job->work = scratch.data;
    int64_t row = job->out[1] * job->w.kernel[0] * job->w.kernel[1] * x->dims[3];
    nori__parallel_for(call->pool, nori__cpu_threads(call), y->dims[0] * job->out[0],
                       1 + 16384 / row, job->average ? average_units : max_units, job);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

static nori_status read_window(nori_call *call, pool_job *job)
{
    NORI__TRY(nori__window_read(call->node, call->err, 2, NULL, &job->w));
    for (int d = 0; d < 2; d++) {
        int64_t size;
        NORI__TRY(nori__window_out(&job->w, call->err, d, call->in[0]->dims[d + 1], &size));
        if (size != call->out[0]->dims[d + 1]) {
            return nori__fail(call->err, NORI_ERROR_INTERNAL, "a pool's result has the wrong size");
        }
    }
    return NORI_OK;
}

static nori_status max_run(const void *state, nori_call *call)
{
    pool_job job = {0};
    (void)state;
    NORI__TRY(read_window(call, &job));
    return pool_go(call, &job);
}

/* Inputs 1 to 4: scale and zero point of x and of y. */
static nori_status read_scales(const nori_call *call, pool_job *job)
{
    const nori_tensor *zero = nori__cpu_has(call, 2) ? call->in[2] : NULL;
    const nori_tensor *to = nori__cpu_has(call, 4) ? call->in[4] : NULL;
    float scale = *(const float *)call->in[1]->data;
    int32_t z = zero ? (int32_t)nori__tensor_get_i64(zero, 0) : 0;
    job->low = nori__attr_i(call->node, "type", NORI_UINT8) == NORI_INT8 ? -128 : 0;
    for (int32_t i = 0; i < 256; i++) {
        job->value[i] = (double)((float)(i + job->low - z) * scale);
    }
    job->scale = *(const float *)call->in[3]->data;
    job->zero = to ? (int32_t)nori__tensor_get_i64(to, 0) : 0;
    job->average = true;
    return NORI_OK;
}

static nori_status average_run(const void *state, nori_call *call)
{
    pool_job job = {.all = nori__attr_i(call->node, "count_include_pad", 0) != 0};
    (void)state;
    NORI__TRY(read_scales(call, &job));
    NORI__TRY(read_window(call, &job));
    return pool_go(call, &job);
}

static nori_status mean_run(const void *state, nori_call *call)
{
    pool_job job = {0};
    (void)state;
    NORI__TRY(read_scales(call, &job));
    job.w.n = 2;
    for (int d = 0; d < 2; d++) {
        job.w.kernel[d] = call->in[0]->dims[d + 1];
        job.w.stride[d] = job.w.dilation[d] = 1;
    }
    return pool_go(call, &job);
}

const nori__kernel nori__lastc_max = {.size = sizeof(nori__kernel),
                                      .workspace = max_workspace,
                                      .run = max_run};
const nori__kernel nori__lastc_average = {.size = sizeof(nori__kernel),
                                          .workspace = average_workspace,
                                          .run = average_run};
const nori__kernel nori__lastc_mean = {.size = sizeof(nori__kernel),
                                       .workspace = average_workspace,
                                       .run = mean_run};
