/* cpu_bmove.c: Block and Unblock: plain activations to channel blocks and back; BlockedScale. */
#include "providers/cpu/blocked.h"

/* Pixels a unit: a few pages of each side. */
#define SPAN 1024

typedef struct move_job {
    const nori__kernels *kern;
    const float *plain_in, *blocked_in;
    float *plain_out, *blocked_out;
    size_t channels, blocks, pixels, spans;
} move_job;

static void from_units(void *user, int64_t begin, int64_t end, int thread)
{
    const move_job *j = user;
    size_t c = j->kern->block;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t unit = (size_t)u, p = unit % j->spans * SPAN, b = unit / j->spans;
        size_t image = b / j->blocks, ch = b % j->blocks * c;
        size_t n = j->pixels - p < SPAN ? j->pixels - p : SPAN;
        size_t count = j->channels - ch < c ? j->channels - ch : c;
        const float *in = j->plain_in + (image * j->channels + ch) * j->pixels + p;
        float *out = j->blocked_out + (b * j->pixels + p) * c;
        if (count < c) {
            memset(out, 0, n * c * sizeof(float));
        }
        j->kern->x32_transpose(count, n, (const uint32_t *)(const void *)in, j->pixels,
                               (uint32_t *)(void *)out, c);
    }
}

static void to_units(void *user, int64_t begin, int64_t end, int thread)
{
    const move_job *j = user;
    size_t c = j->kern->block;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t unit = (size_t)u, p = unit % j->spans * SPAN, b = unit / j->spans;
        size_t image = b / j->blocks, ch = b % j->blocks * c;
        size_t n = j->pixels - p < SPAN ? j->pixels - p : SPAN;
        size_t count = j->channels - ch < c ? j->channels - ch : c;
        const float *in = j->blocked_in + (b * j->pixels + p) * c;
        float *out = j->plain_out + (image * j->channels + ch) * j->pixels + p;
        j->kern->x32_transpose(n, count, (const uint32_t *)(const void *)in, c,
                               (uint32_t *)(void *)out, j->pixels);
    }
}

static nori_status move_run(nori_call *call, bool from)
{
    const nori_tensor *x = call->in[0];
    nori_tensor *y = call->out[0];
    if (x->count == 0 || y->count == 0) {
        return NORI_OK;
    }
    const nori_tensor *plain = from ? x : y, *blocked = from ? y : x;
    move_job j = {.kern = nori__kernels_get(), .plain_in = x->data, .blocked_in = x->data,
                  .plain_out = y->data, .blocked_out = y->data,
                  .channels = (size_t)plain->dims[1], .blocks = (size_t)blocked->dims[1],
                  .pixels = (size_t)(plain->dims[2] * plain->dims[3])};
    j.spans = nori__div_up(j.pixels, SPAN);
    nori__parallel_for(call->pool, nori__cpu_threads(call),
                       (int64_t)((size_t)plain->dims[0] * j.blocks * j.spans), 1,
                       from ? from_units : to_units, &j);
    return NORI_OK;
}

static nori_status from_run(const void *state, nori_call *call)
{
    (void)state;
    return move_run(call, true);
}

static nori_status to_run(const void *state, nori_call *call)
{
    (void)state;
    return move_run(call, false);
}

const nori__kernel nori__blocked_from = {.size = sizeof(nori__kernel), .run = from_run};
const nori__kernel nori__blocked_to = {.size = sizeof(nori__kernel), .run = to_run};

/* ---- scaling ---- */

typedef struct scale_job {
    const nori__kernels *kern;
    const float *x, *scale;
    float *y;
    size_t pixels, spans;
} scale_job;

static void scale_units(void *user, int64_t begin, int64_t end, int thread)
{
    const scale_job *j = user;
    size_t c = j->kern->block;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t p = (size_t)u % j->spans * SPAN, b = (size_t)u / j->spans;
        size_t n = j->pixels - p < SPAN ? j->pixels - p : SPAN, at = (b * j->pixels + p) * c;
        j->kern->f32_block_affine(n, j->x + at, j->scale + b * c, NULL, j->y + at);
    }
}

static nori_status scale_run(const void *state, nori_call *call)
{
    const nori_tensor *x = call->in[0];
    (void)state;
    if (x->count == 0) {
        return NORI_OK;
    }
    scale_job j = {.kern = nori__kernels_get(), .x = x->data, .scale = call->in[1]->data,
                   .y = call->out[0]->data, .pixels = (size_t)(x->dims[2] * x->dims[3])};
    j.spans = nori__div_up(j.pixels, SPAN);
    nori__parallel_for(call->pool, nori__cpu_threads(call),
                       (int64_t)((size_t)(x->dims[0] * x->dims[1]) * j.spans), 1, scale_units, &j);
    return NORI_OK;
}

const nori__kernel nori__blocked_scale = {.size = sizeof(nori__kernel), .run = scale_run};
