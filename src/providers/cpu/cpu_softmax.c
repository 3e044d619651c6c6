/* cpu_softmax.c: float Softmax along any axis.
 *
 * Long rows that lie together are a micro-kernel's. Along another axis, and where rows are shorter than
 * a few vectors, many of them go side by side: element i of all is one line. Empty tensors go to the
 * reference kernel. */
#include "providers/cpu/cpu.h"
#include "providers/reference/ref.h"

#include <math.h>

#define GRAIN_ELEMENTS 8192
#define SHORT 32 /* rows of fewer elements go side by side */
#define SIDE 128 /* so many of them at a time; results do not depend on it */

typedef struct softmax_job {
    const nori__kernels *kern;
    const float *x;
    float *y;
    size_t n, inner; /* elements of a row, and the distance between them */
    size_t rows;     /* inner = 1: how many there are; else pieces of an inner line */
} softmax_job;

static void row_units(void *user, int64_t begin, int64_t end, int thread)
{
    const softmax_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t at = (size_t)u * job->n;
        job->kern->f32_softmax(job->n, job->x + at, job->y + at);
    }
}

/* count <= SIDE rows side by side; element i of them is at x + i * step. y may be x. */
static void side_by_side(const nori__kernels *k, size_t n, size_t count, const float *x, float *y,
                         size_t step)
{
    float most[SIDE], sum[SIDE];
    memcpy(most, x, count * sizeof(float));
    for (size_t i = 1; i < n; i++) {
        k->f32_binary[NORI__B_MAX](count, most, 1, x + i * step, 1, most);
    }
    for (size_t i = 0; i < n; i++) {
        float *to = y + i * step;
        k->f32_binary[NORI__B_SUB](count, x + i * step, 1, most, 1, to);
        k->f32_unary[NORI__U_EXP](count, to, to, NULL);
        if (i == 0) {
            memcpy(sum, to, count * sizeof(float));
        } else {
            k->f32_binary[NORI__B_ADD](count, sum, 1, to, 1, sum);
        }
    }
    for (size_t i = 0; i < n; i++) {
        k->f32_binary[NORI__B_DIV](count, y + i * step, 1, sum, 1, y + i * step);
    }
}

static void short_units(void *user, int64_t begin, int64_t end, int thread)
{
    const softmax_job *job = user;
    const nori__kernels *k = job->kern;
    float turned[SHORT * SIDE];
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t first = (size_t)u * SIDE, at = first * job->n;
        size_t count = job->rows - first < SIDE ? job->rows - first : SIDE;
        k->x32_transpose(count, job->n, (const uint32_t *)(const void *)(job->x + at), job->n,
                         (uint32_t *)(void *)turned, SIDE);
        side_by_side(k, job->n, count, turned, turned, SIDE);
        k->x32_transpose(job->n, count, (const uint32_t *)(const void *)turned, SIDE,
                         (uint32_t *)(void *)(job->y + at), job->n);
    }
}

static void inner_units(void *user, int64_t begin, int64_t end, int thread)
{
    const softmax_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t piece = (size_t)u % job->rows * SIDE, outer = (size_t)u / job->rows;
        size_t at = outer * job->n * job->inner + piece;
        size_t count = job->inner - piece < SIDE ? job->inner - piece : SIDE;
        side_by_side(job->kern, job->n, count, job->x + at, job->y + at, job->inner);
    }
}

static nori_status softmax_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0);
    nori_tensor *y = nori__ref_out(call, 0);
    bool flat = call->node->version > 0 && call->node->version < 13;
    int64_t axis = nori__attr_i(call->node, "axis", flat ? 1 : -1);
    (void)state;
    if (!x || !y || x->type != NORI_FLOAT || y->type != NORI_FLOAT || x->count == 0 ||
        axis < -x->rank || axis >= x->rank) {
        return nori__cpu_reference(call);
    }
    axis += axis < 0 ? x->rank : 0;
    softmax_job job = {.kern = nori__kernels_get(), .x = x->data, .y = y->data,
                       .n = (size_t)x->dims[axis], .inner = 1};
    for (int d = (int)axis + 1; d < x->rank; d++) {
        *(flat ? &job.n : &job.inner) *= (size_t)x->dims[d];
    }
    size_t outer = (size_t)x->count / job.n / job.inner, units = outer;
    nori__body body = row_units;
    size_t each = job.n;
    if (job.inner > 1) {
        job.rows = (job.inner + SIDE - 1) / SIDE;
        units = outer * job.rows;
        each = job.n * (job.inner < SIDE ? job.inner : SIDE);
        body = inner_units;
    } else if (job.n < SHORT && outer > 1) {
        job.rows = outer;
        units = (outer + SIDE - 1) / SIDE;
        each = job.n * SIDE;
        body = short_units;
    }
    nori__cpu_for(call->pool, nori__cpu_threads(call), (int64_t)units,
                  each < GRAIN_ELEMENTS ? (int64_t)(GRAIN_ELEMENTS / each) : 1, body, &job);
    return NORI_OK;
}

const nori__kernel nori__cpu_softmax = {.size = sizeof(nori__kernel), .run = softmax_run};
