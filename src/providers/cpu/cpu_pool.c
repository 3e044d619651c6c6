/* cpu_pool.c: float MaxPool and AveragePool in one and two spatial dimensions.
 *
 * A row of outputs is made in two steps: input rows under the window are joined element by element
 * into one line with its pads, then windows slide along the line. NaN wins a maximum; pads never do
 * (-inf); a window that sees only pads cannot be (its output would be left out). */
#include "ops/window.h"
#include "providers/cpu/cpu.h"
#include "providers/reference/ref.h"

#include <math.h>

typedef struct pool_job {
    const nori__kernels *kern;
    nori__window w;
    bool average, all; /* all: pads count */
    int64_t in[2], out[2];
    const float *x;
    float *y;
    float *work;
    size_t line; /* floats a thread */
} pool_job;

/* Sizes as two spatial dimensions; false: for the reference kernel. */
static bool pool_shapes(const nori_call *call, pool_job *job)
{
    const nori_tensor *x = call->n_in > 0 ? call->in[0] : NULL;
    const nori_tensor *y = call->out[0];
    memset(job, 0, sizeof(*job));
    if (!x || !y || x->type != NORI_FLOAT || y->type != NORI_FLOAT || x->rank < 3 || x->rank > 4 ||
        (call->n_out > 1 && call->out[1])) {
        return false;
    }
    nori__window w;
    int n = x->rank - 2;
    if (nori__window_read(call->node, NULL, n, NULL, &w) != NORI_OK) {
        return false;
    }
    job->in[0] = job->out[0] = 1;
    for (int d = 0; d < n; d++) {
        int to = 2 - n + d;
        job->in[to] = x->dims[d + 2];
        if (nori__window_out(&w, NULL, d, x->dims[d + 2], &job->out[to]) != NORI_OK ||
            job->out[to] != y->dims[d + 2] || w.begin[d] < 0 || w.end[d] < 0) {
            return false;
        }
    }
    job->w = w;
    if (n == 1) { /* the one dimension becomes the second */
        job->w.kernel[1] = w.kernel[0];
        job->w.stride[1] = w.stride[0];
        job->w.dilation[1] = w.dilation[0];
        job->w.begin[1] = w.begin[0];
        job->w.end[1] = w.end[0];
        job->w.kernel[0] = job->w.stride[0] = job->w.dilation[0] = 1;
        job->w.begin[0] = job->w.end[0] = 0;
        job->w.n = 2;
    }
    job->average = nori__node_is(call->node, NORI__OP_ONNX_AveragePool);
    job->all = nori__attr_i(call->node, "count_include_pad", 0) != 0;
    int64_t used = (job->out[1] - 1) * job->w.stride[1] + nori__window_extent(&job->w, 1);
    int64_t there = job->w.begin[1] + job->in[1];
    int64_t most = used > there ? used : there;
    job->line = nori__cpu_round((size_t)(most > 0 ? most : 1) * sizeof(float)) / sizeof(float);
    return x->count > 0 && y->count > 0;
}

static size_t pool_workspace(const void *state, const nori_call *call)
{
    pool_job job;
    (void)state;
    return pool_shapes(call, &job) ? job.line * sizeof(float) * (size_t)nori__cpu_threads(call) : 0;
}

/* Positions of the window at output o along dimension d that lie in [0, size): as many. With pads
 * counted those up to the end of the padding. */
static int64_t seen(const pool_job *job, int d, int64_t o, bool pads)
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

/* One output row of the plane x. */
static void pool_row(const pool_job *job, const float *x, int64_t o, float *line, float *y)
{
    const nori__kernels *kern = job->kern;
    const nori__window *w = &job->w;
    float *inner = line + w->begin[1];
    size_t width = (size_t)job->in[1];
    float empty = job->average ? 0 : -INFINITY;
    bool first = true;
    for (int64_t k = 0; k < w->kernel[0]; k++) {
        int64_t i = o * w->stride[0] - w->begin[0] + k * w->dilation[0];
        if (i < 0 || i >= job->in[0]) {
            continue;
        }
        const float *row = x + (size_t)i * width;
        if (first) {
            memcpy(inner, row, width * sizeof(float));
            first = false;
        } else {
            kern->f32_binary[job->average ? NORI__B_ADD : NORI__B_MAX](width, inner, 1, row, 1,
                                                                       inner);
        }
    }
    for (size_t j = 0; first && j < width; j++) {
        inner[j] = empty;
    }
    size_t n = (size_t)job->out[1], kw = (size_t)w->kernel[1];
    if (!job->average) {
        kern->f32_window_max(n, kw, (size_t)w->stride[1], (size_t)w->dilation[1], line, y);
        return;
    }
    kern->f32_window_sum(n, kw, (size_t)w->stride[1], (size_t)w->dilation[1], line, y);
    int64_t rows = seen(job, 0, o, job->all);
    for (size_t j = 0; j < n; j++) {
        int64_t count = rows * seen(job, 1, (int64_t)j, job->all);
        y[j] /= count ? (float)count : 1; /* nothing but pads: 0 */
    }
}

static void pool_units(void *user, int64_t begin, int64_t end, int thread)
{
    const pool_job *job = user;
    float *line = job->work + (size_t)thread * job->line;
    for (size_t j = 0; j < job->line; j++) {
        line[j] = job->average ? 0 : -INFINITY;
    }
    for (int64_t u = begin; u < end; u++) {
        const float *x = job->x + u * job->in[0] * job->in[1];
        float *y = job->y + u * job->out[0] * job->out[1];
        for (int64_t o = 0; o < job->out[0]; o++) {
            pool_row(job, x, o, line, y + o * job->out[1]);
        }
    }
}

static nori_status pool_run(const void *state, nori_call *call)
{
    pool_job job;
    (void)state;
    if (!pool_shapes(call, &job)) {
        return nori__cpu_reference(call);
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, pool_workspace(state, call), &scratch));
    job.kern = nori__kernels_get();
    job.x = call->in[0]->data;
    job.y = call->out[0]->data;
    job.work = scratch.data;
    nori__parallel_for(call->pool, nori__cpu_threads(call),
                       call->in[0]->dims[0] * call->in[0]->dims[1], 1, pool_units, &job);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__cpu_pool = {.size = sizeof(nori__kernel), .workspace = pool_workspace,
                                     .run = pool_run};
