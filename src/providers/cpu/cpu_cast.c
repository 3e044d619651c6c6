/* cpu_cast.c: Cast between float16 and float32, the only one that islands of float32 need. */
#include "providers/cpu/cpu.h"
#include "providers/reference/ref.h"

#define GRAIN 16384

typedef struct cast_job {
    const nori__kernels *kern;
    const nori_tensor *x;
    nori_tensor *y;
} cast_job;

static void cast_units(void *user, int64_t begin, int64_t end, int thread)
{
    const cast_job *job = user;
    size_t n = (size_t)(end - begin);
    (void)thread;
    if (job->x->type == NORI_FLOAT16) {
        job->kern->f16_to_f32(n, (const uint16_t *)job->x->data + begin,
                              (float *)job->y->data + begin);
    } else {
        job->kern->f32_to_f16(n, (const float *)job->x->data + begin,
                              (uint16_t *)job->y->data + begin);
    }
}

static nori_status cast_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0);
    nori_tensor *y = nori__ref_out(call, 0);
    (void)state;
    bool up = x && y && x->type == NORI_FLOAT16 && y->type == NORI_FLOAT;
    bool down = x && y && x->type == NORI_FLOAT && y->type == NORI_FLOAT16;
    if (!up && !down) {
        return nori__cpu_reference(call);
    }
    cast_job job = {nori__kernels_get(), x, y};
    nori__parallel_for(call->pool, nori__cpu_threads(call), x->count, GRAIN, cast_units, &job);
    return NORI_OK;
}

const nori__kernel nori__cpu_cast = {.size = sizeof(nori__kernel), .run = cast_run};
