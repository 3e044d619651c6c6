/* cpu_bchannel.c: what has numbers of its own for each channel, over channel blocks:
 * BatchNormalization at inference, joined with an activation, and PRelu. */
#include "providers/cpu/blocked.h"

#include <math.h>

#define SPAN 1024 /* pixels a unit */

typedef struct channel_job {
    const nori__kernels *kern;
    const float *x, *scale, *shift; /* shift NULL: PRelu, scale being slopes */
    float *y;
    nori__activation act;
    size_t blocks, pixels, spans;
} channel_job;

static void channel_units(void *user, int64_t begin, int64_t end, int thread)
{
    const channel_job *j = user;
    size_t c = j->kern->block;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t p = (size_t)u % j->spans * SPAN, b = (size_t)u / j->spans;
        size_t n = j->pixels - p < SPAN ? j->pixels - p : SPAN, at = (b * j->pixels + p) * c;
        const float *scale = j->scale + b % j->blocks * c;
        float *y = j->y + at;
        if (!j->shift) {
            j->kern->f32_block_leaky(n, j->x + at, scale, y);
            continue;
        }
        j->kern->f32_block_affine(n, j->x + at, scale, j->shift + b % j->blocks * c, y);
        const float limits[2] = {j->act.low, j->act.high};
        if (j->act.clamp) {
            j->kern->f32_unary[NORI__U_CLAMP](n * c, y, y, limits);
        } else if (j->act.apply) {
            j->kern->f32_unary[j->act.function](n * c, y, y, j->act.p);
        }
    }
}

static size_t channel_workspace(const void *state, const nori_call *call)
{
    (void)state;
    return 2 * (size_t)(call->in[0]->dims[1] * call->in[0]->dims[4]) * sizeof(float);
}

/* numbers: fills scale and shift, of padded channels each. */
static nori_status channel_run(nori_call *call, bool norm)
{
    const nori_tensor *x = call->in[0];
    size_t padded = (size_t)(x->dims[1] * x->dims[4]);
    channel_job j = {.kern = nori__kernels_get(), .x = x->data, .y = call->out[0]->data,
                     .blocks = (size_t)x->dims[1], .pixels = (size_t)(x->dims[2] * x->dims[3])};
    nori__cpu_scratch scratch;
    if (x->count == 0) {
        return NORI_OK;
    }
    for (uint32_t i = 1; i < (norm ? 5 : 2); i++) {
        if ((size_t)call->in[i]->count > padded) {
            return nori__fail(call->err, NORI_ERROR_DATA, "input %u has %lld values, expected %lld",
                              i, (long long)call->in[i]->count, (long long)padded);
        }
    }
    NORI__TRY(nori__cpu_take(call, channel_workspace(NULL, call), &scratch));
    float *scale = scratch.data, *shift = scale + padded;
    memset(scale, 0, 2 * padded * sizeof(float));
    if (norm) {
        const float *p[4];
        for (uint32_t i = 0; i < 4; i++) {
            p[i] = call->in[i + 1]->data;
        }
        double epsilon = (double)nori__attr_f(call->node, "epsilon", 1e-5f);
        for (size_t c = 0; c < (size_t)call->in[1]->count; c++) {
            double factor = p[0][c] / sqrt((double)p[3][c] + epsilon);
            scale[c] = (float)factor;
            shift[c] = (float)(p[1][c] - p[2][c] * factor);
        }
        j.shift = shift;
        nori__activation_read(call->node, &j.act);
    } else {
        const float *slope = call->in[1]->data;
        bool one = call->in[1]->count == 1;
        for (size_t c = 0; c < (one ? padded : (size_t)call->in[1]->count); c++) {
            scale[c] = slope[one ? 0 : c];
        }
    }
    j.scale = scale;
    j.spans = nori__div_up(j.pixels, SPAN);
    nori__cpu_for(call->pool, nori__cpu_threads(call),
                 (int64_t)((size_t)x->dims[0] * j.blocks * j.spans), 1, channel_units, &j);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

static nori_status norm_run(const void *state, nori_call *call)
{
    (void)state;
    return channel_run(call, true);
}

static nori_status leaky_run(const void *state, nori_call *call)
{
    (void)state;
    return channel_run(call, false);
}

const nori__kernel nori__blocked_norm = {.size = sizeof(nori__kernel),
                                         .workspace = channel_workspace, .run = norm_run};
const nori__kernel nori__blocked_leaky = {.size = sizeof(nori__kernel),
                                          .workspace = channel_workspace, .run = leaky_run};
