/* cpu_bpool.c: BlockedPool and BlockedMean: pools over channel blocks. */
#include "providers/cpu/blocked.h"

typedef struct bpool_job {
    const nori__kernels *kern;
    nori__block_window g;
    bool average, all; /* all: pads count */
    size_t end[2];     /* pads after */
    const float *x;
    float *y, *divide; /* divide: a line a thread */
    size_t line;
} bpool_job;

/* False: not a form this kernel takes (the rewrite asks, too). */
static bool bpool_window(const nori__node *node, const int64_t *in, const int64_t *out,
                         bpool_job *job)
{
    nori__window w;
    if (nori__window_read(node, NULL, 2, NULL, &w) != NORI_OK) {
        return false;
    }
    for (int d = 0; d < 2; d++) {
        int64_t size;
        if (nori__window_out(&w, NULL, d, in[d], &size) != NORI_OK || size != out[d] ||
            w.begin[d] < 0 || w.end[d] < 0) {
            return false;
        }
        job->g.in[d] = (size_t)in[d];
        job->g.out[d] = (size_t)size;
        job->g.kernel[d] = (size_t)w.kernel[d];
        job->g.stride[d] = (size_t)w.stride[d];
        job->g.dilation[d] = (size_t)w.dilation[d];
        job->g.begin[d] = (size_t)w.begin[d];
        job->end[d] = (size_t)w.end[d];
    }
    return true;
}

/* Positions of the window at output o along dimension d that count. */
static size_t bpool_seen(const bpool_job *job, int d, size_t o)
{
    const nori__block_window *g = &job->g;
    size_t low = job->all ? 0 : g->begin[d], count = 0;
    size_t high = g->begin[d] + g->in[d] + (job->all ? job->end[d] : 0);
    for (size_t k = 0; k < g->kernel[d]; k++) {
        size_t i = o * g->stride[d] + k * g->dilation[d];
        count += i >= low && i < high;
    }
    return count;
}

static void bpool_units(void *user, int64_t begin, int64_t end, int thread)
{
    const bpool_job *job = user;
    const nori__block_window *g = &job->g;
    size_t c = job->kern->block;
    float *divide = job->average ? job->divide + (size_t)thread * job->line : NULL;
    for (int64_t u = begin; u < end; u++) {
        size_t b = (size_t)u / g->out[0], row = (size_t)u % g->out[0];
        size_t rows = job->average ? bpool_seen(job, 0, row) : 0;
        for (size_t j = 0; divide && j < g->out[1]; j++) {
            size_t count = rows * bpool_seen(job, 1, j);
            divide[j] = count ? (float)count : 1; /* nothing but pads: 0 */
        }
        job->kern->f32_block_pool(g, !job->average, row, job->x + b * g->in[0] * g->in[1] * c,
                                  job->y + (b * g->out[0] + row) * g->out[1] * c, divide);
    }
}

static size_t bpool_line(const nori_tensor *y)
{
    return nori__cpu_round((size_t)y->dims[3] * sizeof(float)) / sizeof(float);
}

static size_t bpool_workspace(const void *state, const nori_call *call)
{
    (void)state;
    return bpool_line(call->out[0]) * sizeof(float) * (size_t)nori__cpu_threads(call);
}

static nori_status bpool_run(const void *state, nori_call *call)
{
    const nori_tensor *x = call->in[0];
    nori_tensor *y = call->out[0];
    bpool_job job = {.kern = nori__kernels_get(), .x = x->data, .y = y->data,
                     .line = bpool_line(y),
                     .average = nori__attr_i(call->node, "average", 0) != 0,
                     .all = nori__attr_i(call->node, "count_include_pad", 0) != 0};
    if (!bpool_window(call->node, x->dims + 2, y->dims + 2, &job)) {
        return nori__fail(call->err, NORI_ERROR_INTERNAL, "a pool over blocks changed its form");
    }
    if (y->count == 0) {
        return NORI_OK;
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, bpool_workspace(state, call), &scratch));
    job.divide = scratch.data;
    int64_t rows = y->dims[0] * y->dims[1] * y->dims[2];
    int64_t grain = 4096 / (y->dims[3] * (int64_t)(job.g.kernel[0] * job.g.kernel[1])) + 1;
    nori__cpu_for(call->pool, nori__cpu_threads(call), rows, grain, bpool_units, &job);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__blocked_pool = {.size = sizeof(nori__kernel), .workspace = bpool_workspace,
                                         .run = bpool_run};

/* ---- means of planes ---- */

typedef struct mean_job {
    const nori__kernels *kern;
    const float *x;
    float *y;
    size_t pixels;
} mean_job;

static void mean_units(void *user, int64_t begin, int64_t end, int thread)
{
    const mean_job *j = user;
    size_t c = j->kern->block;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        float *y = j->y + (size_t)u * c;
        j->kern->f32_block_sum(j->pixels, j->x + (size_t)u * j->pixels * c, y);
        for (size_t l = 0; l < c; l++) {
            y[l] /= (float)j->pixels;
        }
    }
}

static nori_status mean_run(const void *state, nori_call *call)
{
    const nori_tensor *x = call->in[0];
    (void)state;
    mean_job j = {nori__kernels_get(), x->data, call->out[0]->data,
                  (size_t)(x->dims[2] * x->dims[3])};
    if (call->out[0]->count > 0) {
        nori__cpu_for(call->pool, nori__cpu_threads(call), x->dims[0] * x->dims[1],
                     (int64_t)(2048 / (j.pixels + 1) + 1), mean_units, &j);
    }
    return NORI_OK;
}

const nori__kernel nori__blocked_mean = {.size = sizeof(nori__kernel), .run = mean_run};
