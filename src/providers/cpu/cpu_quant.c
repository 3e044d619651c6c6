/* cpu_quant.c: QuantizeLinear and DequantizeLinear between float and 8-bit integers,
 * DynamicQuantizeLinear. One scale a tensor or a channel; blocks and other types go to the reference
 * kernels. */
#include "providers/cpu/cpu.h"
#include "providers/reference/ref.h"

#include <math.h>

#define GRAIN_ELEMENTS 16384

typedef struct quant_job {
    const nori__kernels *kern;
    const void *x;
    void *y;
    const float *scale;
    const nori_tensor *zero;
    size_t inner, channels, many; /* elements a line; scales; 1 or 0: lines have their own */
    size_t piece, pieces;         /* a line is cut into pieces for threads */
    bool is_signed, back;
} quant_job;

static void quant_units(void *user, int64_t begin, int64_t end, int thread)
{
    const quant_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t line = (size_t)u / job->pieces, from = (size_t)u % job->pieces * job->piece;
        size_t n = job->inner - from < job->piece ? job->inner - from : job->piece;
        size_t c = job->many ? line % job->channels : 0, at = line * job->inner + from;
        int32_t zero = job->zero ? (int32_t)nori__tensor_get_i64(job->zero, (int64_t)c) : 0;
        if (job->back) {
            job->kern->dequantize(n, (const uint8_t *)job->x + at, job->is_signed, zero,
                                  job->scale[c], (float *)job->y + at);
        } else {
            job->kern->quantize(n, (const float *)job->x + at, job->scale[c], zero, job->is_signed,
                                (uint8_t *)job->y + at);
        }
    }
}

static nori_status quant_run(nori_call *call, bool back)
{
    const nori_tensor *x = nori__ref_in(call, 0), *scale = nori__ref_in(call, 1);
    const nori_tensor *zero = nori__ref_in(call, 2);
    nori_tensor *y = nori__ref_out(call, 0);
    const nori_tensor *small = back ? x : y, *wide = back ? y : x;
    int64_t precision = nori__attr_i(call->node, "precision", NORI_UNDEFINED); /* 0: the scale's */
    bool fits = x && y && scale && scale->type == NORI_FLOAT && wide->type == NORI_FLOAT &&
                nori__cpu_is_8bit((nori_type)small->type) && x->count > 0 &&
                nori__attr_i(call->node, "block_size", 0) == 0 &&
                (precision == NORI_UNDEFINED || precision == NORI_FLOAT) &&
                (!zero || (zero->count == scale->count && zero->type == small->type));
    int64_t axis = nori__attr_i(call->node, "axis", 1);
    if (!fits) {
        return nori__cpu_reference(call);
    }
    quant_job job = {.kern = nori__kernels_get(), .x = x->data, .y = y->data, .scale = scale->data,
                     .zero = zero, .inner = (size_t)x->count, .channels = 1, .back = back,
                     .is_signed = small->type == NORI_INT8};
    if (scale->count != 1) {
        axis = x->rank == 1 ? 0 : axis < 0 ? axis + x->rank : axis;
        if (axis < 0 || axis >= x->rank || x->dims[axis] != scale->count) {
            return nori__cpu_reference(call);
        }
        job.many = 1;
        job.channels = (size_t)scale->count;
        job.inner = 1;
        for (int d = (int)axis + 1; d < x->rank; d++) {
            job.inner *= (size_t)x->dims[d];
        }
        if (job.inner < 8) {
            return nori__cpu_reference(call); /* scales side by side */
        }
    }
    job.piece = job.inner < GRAIN_ELEMENTS ? job.inner : GRAIN_ELEMENTS;
    job.pieces = (job.inner + job.piece - 1) / job.piece;
    int64_t lines = (int64_t)((size_t)x->count / job.inner);
    nori__parallel_for(call->pool, nori__cpu_threads(call), lines * (int64_t)job.pieces,
                       (int64_t)(GRAIN_ELEMENTS / job.piece), quant_units, &job);
    return NORI_OK;
}

static nori_status quantize_run(const void *state, nori_call *call)
{
    (void)state;
    return quant_run(call, false);
}

static nori_status dequantize_run(const void *state, nori_call *call)
{
    (void)state;
    return quant_run(call, true);
}

const nori__kernel nori__cpu_quantize = {.size = sizeof(nori__kernel), .run = quantize_run};
const nori__kernel nori__cpu_dequantize = {.size = sizeof(nori__kernel), .run = dequantize_run};

/* ---- the range from the data ---- */

#define PIECES 64

typedef struct dynamic_job {
    const float *x;
    uint8_t *y;
    size_t n, piece;
    float low[PIECES], high[PIECES];
    bool numbers[PIECES];
    float scale;
    int32_t zero;
} dynamic_job;

static size_t piece_size(const dynamic_job *job, int64_t u)
{
    size_t from = (size_t)u * job->piece;
    return job->n - from < job->piece ? job->n - from : job->piece;
}

static void range_units(void *user, int64_t begin, int64_t end, int thread)
{
    dynamic_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        job->low[u] = job->high[u] = 0; /* the range holds 0 */
        job->numbers[u] = nori__kernels_get()->f32_range(
            piece_size(job, u), job->x + (size_t)u * job->piece, &job->low[u], &job->high[u]);
    }
}

static void dynamic_units(void *user, int64_t begin, int64_t end, int thread)
{
    const dynamic_job *job = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t from = (size_t)u * job->piece;
        nori__kernels_get()->quantize(piece_size(job, u), job->x + from, job->scale, job->zero,
                                      false, job->y + from);
    }
}

static nori_status dynamic_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0);
    nori_tensor *y = nori__ref_out(call, 0);
    (void)state;
    if (!x || x->type != NORI_FLOAT || x->count == 0 || !y) {
        return nori__cpu_reference(call);
    }
    dynamic_job job = {.x = x->data, .y = y->data, .n = (size_t)x->count};
    job.piece = (job.n + PIECES - 1) / PIECES;
    job.piece = job.piece < GRAIN_ELEMENTS ? GRAIN_ELEMENTS : job.piece;
    int64_t pieces = (int64_t)((job.n + job.piece - 1) / job.piece);
    int threads = nori__cpu_threads(call);
    nori__parallel_for(call->pool, threads, pieces, 1, range_units, &job);
    float low = 0, high = 0;
    bool numbers = true;
    for (int64_t u = 0; u < pieces; u++) {
        low = job.low[u] < low ? job.low[u] : low;
        high = job.high[u] > high ? job.high[u] : high;
        numbers = numbers && job.numbers[u];
    }
    job.scale = high > low ? (high - low) / 255 : 1;
    float point = 0 - low / job.scale;
    if (!numbers || isnan(point)) {
        return nori__cpu_reference(call);
    }
    job.zero = (int32_t)rintf(point < 0 ? 0 : point > 255 ? 255 : point);
    if (nori__ref_out(call, 1)) {
        *(float *)call->out[1]->data = job.scale;
    }
    if (nori__ref_out(call, 2)) {
        *(uint8_t *)call->out[2]->data = (uint8_t)job.zero;
    }
    nori__parallel_for(call->pool, threads, pieces, 1, dynamic_units, &job);
    return NORI_OK;
}

const nori__kernel nori__cpu_dynamic_quantize = {.size = sizeof(nori__kernel), .run = dynamic_run};
