/* ref_pool.c: MaxPool, AveragePool, LpPool, their global forms, MaxUnpool.
 *
 * NaN is the maximum (numpy's rule); of equal values the first in row-major order gives the index.
 * A window wholly in padding gives the lowest value for MaxPool (index 0 of its plane), 0 for the
 * others. Sums in double. Global pools of an empty space: lowest value, NaN (0/0), 0. */
#include "providers/reference/ref_nn.h"

#include <math.h>

#define BLOCK 256

typedef enum pool_mode { POOL_MAX, POOL_AVERAGE, POOL_LP } pool_mode;

typedef struct pool_job {
    const nori__ref_conv_work *c;
    pool_mode mode;
    double lowest, p;
    bool with_pads;       /* count_include_pad */
    bool columns;         /* storage_order 1 */
    int64_t *indices;     /* of the maxima, or NULL */
    int64_t *lists;
    int64_t positions;
} pool_job;

/* Window positions along d at output o that count: inside the input, or with its pads too. */
static int64_t counted(const pool_job *job, int d, int64_t o)
{
    const nori__window *w = &job->c->w;
    int64_t low = job->with_pads ? -w->begin[d] : 0;
    int64_t high = job->c->in[d] + (job->with_pads ? w->end[d] : 0), n = 0;
    for (int64_t k = 0; k < w->kernel[d]; k++) {
        int64_t i = o * w->stride[d] - w->begin[d] + k * w->dilation[d];
        n += i >= low && i < high;
    }
    return n;
}

static void pool_finish(const pool_job *job, int64_t row, int64_t from, int64_t count, double *acc)
{
    const nori__ref_conv_work *c = job->c;
    if (job->mode == POOL_LP) {
        for (int64_t j = 0; j < count; j++) {
            acc[j] = pow(acc[j], 1 / job->p);
        }
    }
    if (job->mode != POOL_AVERAGE) {
        return;
    }
    int64_t outer = 1;
    for (int d = c->w.n - 2; d >= 0; d--) {
        outer *= counted(job, d, row % c->out[d]);
        row /= c->out[d];
    }
    for (int64_t j = 0; j < count; j++) {
        int64_t n = outer * counted(job, c->w.n - 1, from + j);
        acc[j] = n > 0 ? acc[j] / (double)n : 0;
    }
}

/* Index of an element of a plane as MaxPool's second output wants it. */
static int64_t pool_index(const pool_job *job, int64_t at)
{
    if (at < 0 || !job->columns) {
        return at < 0 ? 0 : at;
    }
    const nori__ref_conv_work *c = job->c;
    int64_t index = 0, plane = nori__nn_product(c->in, 0, c->w.n);
    for (int d = c->w.n - 1; d >= 0; d--) {
        plane /= c->in[d]; /* elements of the dimensions before d */
        index += at % c->in[d] * plane;
        at /= c->in[d];
    }
    return index;
}

#define T float
#define NAME(x) x##_f32
#include "providers/reference/ref_pool_body.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "providers/reference/ref_pool_body.h"
#undef T
#undef NAME

static nori_status pool(nori_call *call, pool_mode mode, double lowest)
{
    nori__ref_conv_work c;
    memset(&c, 0, sizeof c);
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    const nori_tensor *x = call->in[0];
    nori_tensor *y = call->out[0];
    if (x->rank < 3 || (x->type != NORI_FLOAT && x->type != NORI_DOUBLE)) {
        return nori__nn_type_error(call, 0);
    }
    NORI__TRY(nori__window_read(call->node, call->err, x->rank - 2, NULL, &c.w));
    for (int d = 0; d < c.w.n; d++) {
        c.in[d] = x->dims[d + 2];
        NORI__TRY(nori__window_out(&c.w, call->err, d, c.in[d], &c.out[d]));
        if (c.out[d] != y->dims[d + 2]) {
            return nori__fail(call->err, NORI_ERROR_DATA, "output axis %d has size %lld, not %lld",
                              d + 2, (long long)y->dims[d + 2], (long long)c.out[d]);
        }
    }
    if (y->count == 0) {
        return NORI_OK;
    }
    c.x = x->data;
    c.y = y->data;
    int last = c.w.n - 1;
    pool_job job = {.c = &c, .mode = mode, .lowest = lowest,
                    .p = (double)nori__attr_i(call->node, "p", 2),
                    .with_pads = nori__attr_i(call->node, "count_include_pad", 0) != 0,
                    .columns = nori__attr_i(call->node, "storage_order", 0) != 0};
    if (mode == POOL_MAX && nori__nn_wants(call, 1)) {
        job.indices = call->out[1]->data;
    }
    int64_t slots = 2 * (int64_t)nori__nn_threads(call);
    size_t bytes = 0;
    job.positions = 1;
    for (int d = 0; d < last; d++) {
        if (!nori__mul_dim(job.positions, c.w.kernel[d], &job.positions)) {
            return nori__no_memory(call->err);
        }
    }
    if (nori__mul_dim(job.positions, slots, &slots)) {
        job.lists = nori__nn_scratch(call, slots, sizeof *job.lists, &bytes);
    }
    if (!job.lists) {
        return nori__no_memory(call->err);
    }
    int64_t units = y->count / c.out[last] * ((c.out[last] + BLOCK - 1) / BLOCK);
    nori__parallel_for(call->pool, nori__nn_threads(call), units, 16,
                       x->type == NORI_FLOAT ? pool_units_f32 : pool_units_f64, &job);
    nori__release(call->allocator, job.lists, bytes);
    return NORI_OK;
}

static nori_status max_pool(nori_call *call)
{
    return pool(call, POOL_MAX, -INFINITY);
}

static nori_status max_pool_i8(nori_call *call)
{
    return pool(call, POOL_MAX, -128);
}

static nori_status max_pool_u8(nori_call *call)
{
    return pool(call, POOL_MAX, 0);
}

nori_status nori__ref_MaxPool(nori_call *call)
{
    if (nori__nn_has(call, 0) && call->in[0]->type == NORI_INT8) {
        return nori__nn_double(call, 1u | 1u << 16, max_pool_i8);
    }
    if (nori__nn_has(call, 0) && call->in[0]->type == NORI_UINT8) {
        return nori__nn_double(call, 1u | 1u << 16, max_pool_u8);
    }
    return nori__nn_half(call, max_pool);
}

static nori_status average_pool(nori_call *call)
{
    return pool(call, POOL_AVERAGE, 0);
}

nori_status nori__ref_AveragePool(nori_call *call)
{
    return nori__nn_half(call, average_pool);
}

static nori_status lp_pool(nori_call *call)
{
    return pool(call, POOL_LP, 0);
}

nori_status nori__ref_LpPool(nori_call *call)
{
    return nori__nn_half(call, lp_pool);
}

/* ---- global ---- */

static nori_status global_pool(nori_call *call, pool_mode mode)
{
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    const nori_tensor *x = call->in[0];
    if (x->type != NORI_DOUBLE || x->rank < 2) {
        return nori__nn_type_error(call, 0);
    }
    const double *p = x->data;
    double *y = call->out[0]->data, power = (double)nori__attr_i(call->node, "p", 2);
    int64_t plane = nori__nn_product(x->dims, 2, x->rank);
    for (int64_t i = 0; i < call->out[0]->count; i++) {
        double acc = mode == POOL_MAX ? -INFINITY : 0;
        for (int64_t j = 0; j < plane; j++) {
            double v = *p++;
            if (mode == POOL_MAX) {
                acc = v > acc || v != v ? v : acc; /* NaN > x is false: a NaN stays */
            } else {
                acc += mode == POOL_AVERAGE ? v : pow(fabs(v), power);
            }
        }
        y[i] = mode == POOL_AVERAGE ? acc / (double)plane : mode == POOL_LP ? pow(acc, 1 / power)
                                                                          : acc;
    }
    return NORI_OK;
}

static nori_status global_average(nori_call *call)
{
    return global_pool(call, POOL_AVERAGE);
}

nori_status nori__ref_GlobalAveragePool(nori_call *call)
{
    return nori__nn_double(call, 0, global_average);
}

static nori_status global_max(nori_call *call)
{
    return global_pool(call, POOL_MAX);
}

nori_status nori__ref_GlobalMaxPool(nori_call *call)
{
    return nori__nn_double(call, 0, global_max);
}

static nori_status global_lp(nori_call *call)
{
    return global_pool(call, POOL_LP);
}

nori_status nori__ref_GlobalLpPool(nori_call *call)
{
    return nori__nn_double(call, 0, global_lp);
}

/* ---- MaxUnpool ---- */

/* Indices are of the tensor that kernel, strides and pads imply; a larger output_shape places the
 * same coordinates in a larger space. */
static nori_status max_unpool(nori_call *call)
{
    nori__window w;
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    NORI__TRY(nori__nn_need(call, 1, "I", -1));
    const nori_tensor *x = call->in[0], *index = call->in[1];
    nori_tensor *y = call->out[0];
    int rank = x->rank;
    NORI__TRY(nori__nn_count(call, 1, "I", x->count));
    if (rank < 3 || y->rank != rank || index->type != NORI_INT64) {
        return nori__nn_type_error(call, rank < 3 ? 0 : 1);
    }
    NORI__TRY(nori__window_read(call->node, call->err, rank - 2, NULL, &w));
    int64_t implied[NORI_MAX_RANK] = {x->dims[0], x->dims[1]}, total = 1;
    for (int d = 0; d < rank; d++) {
        if (d >= 2) {
            NORI__TRY(nori__window_out_transposed(&w, call->node, call->err, d - 2, x->dims[d],
                                                  &implied[d]));
        }
        if (!nori__mul_dim(total, implied[d], &total)) {
            return nori__fail(call->err, NORI_ERROR_DATA, "the unpooled size is too large");
        }
    }
    double *out = y->data;
    for (int64_t i = 0; i < y->count; i++) {
        out[i] = 0;
    }
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = ((const int64_t *)index->data)[i], place = 0, step = 1;
        bool inside = at >= 0 && at < total;
        for (int d = rank - 1, n = rank; n > 0 && inside; n--, d--) {
            int64_t p = at % implied[d];
            at /= implied[d];
            inside = p < y->dims[d];
            place += p * step;
            step *= y->dims[d];
        }
        if (!inside) {
            return nori__fail(call->err, NORI_ERROR_DATA, "index %lld of input 1 is outside the "
                              "output", (long long)((const int64_t *)index->data)[i]);
        }
        out[place] = ((const double *)x->data)[i];
    }
    return NORI_OK;
}

nori_status nori__ref_MaxUnpool(nori_call *call)
{
    return nori__nn_double(call, 0, max_unpool);
}
