/* qscale.h: how a tensor of an operator on quantized values is quantized, as its kernels read it. */
#ifndef NORI_PROVIDERS_CPU_QSCALE_H
#define NORI_PROVIDERS_CPU_QSCALE_H

#include "providers/cpu/cpu.h"

#include <math.h>

typedef struct nori__qscale {
    float scale;
    int32_t zero;
} nori__qscale;

/* From inputs scale and zero (which may be absent) of a call; false: not one of each, or not of the
 * types that kernels take. */
static inline bool nori__qscale_read(const nori_call *call, uint32_t scale, uint32_t zero,
                                     int type, nori__qscale *q)
{
    if (!nori__cpu_has(call, scale) || call->in[scale]->type != NORI_FLOAT ||
        call->in[scale]->count != 1) {
        return false;
    }
    q->scale = *(const float *)call->in[scale]->data;
    q->zero = 0;
    if (nori__cpu_has(call, zero)) {
        if (call->in[zero]->type != type || call->in[zero]->count != 1) {
            return false;
        }
        q->zero = (int32_t)nori__tensor_get_i64(call->in[zero], 0);
    }
    return true;
}

/* The byte of a real value that is already divided by the scale: rounded half to even, saturated;
 * NaN gives the lowest. */
static inline uint8_t nori__qscale_byte(float v, int32_t zero, bool is_signed)
{
    float low = is_signed ? -128.0f : 0.0f, high = is_signed ? 127.0f : 255.0f;
    v = rintf(v) + (float)zero;
    v = v >= low ? (v < high ? v : high) : low;
    return (uint8_t)(int32_t)v;
}

#endif
