/* lastc.h: 8-bit convolutional networks over activations with channels last.
 *
 * An 8-bit value [N, C, H, W] has a twin [N, H, W, C] of unsigned bytes: int8 is kept as q + 128.
 * lastc_rewrite.c puts operators of the domain "nori" over twins in the place of plain ones, with
 * ToLast and ToPlanes only where a plain value meets a twin; what works element by element stays the
 * operator it is, its zero points moved by 128. lastc_ops.c says what the new ones are. Only the cpu
 * provider makes such nodes, and only it runs them. */
#ifndef NORI_PROVIDERS_CPU_LASTC_H
#define NORI_PROVIDERS_CPU_LASTC_H

#include "ops/window.h"
#include "providers/cpu/cpu.h"

/* Ids past those of the list and of other operators of this provider. */
typedef enum nori__lastc_id {
    NORI__LASTC_FROM = NORI__OP_COUNT + 200, /* ToLast: planes to a twin */
    NORI__LASTC_TO,   /* ToPlanes: attribute type, of the plain value */
    NORI__LASTC_CONV, /* inputs as QLinearConv, X a twin; so is the result */
    NORI__LASTC_MAX,  /* MaxPool */
    NORI__LASTC_MEAN, /* inputs as QLinearGlobalAveragePool, zero points of the plain values */
    NORI__LASTC_AVERAGE /* QLinearAveragePool likewise */
} nori__lastc_id;
const nori__op *nori__lastc_op(nori__lastc_id id);
const nori__kernel *nori__lastc_kernel(const nori__node *node); /* NULL: not such a node */

extern const nori__kernel nori__lastc_from, nori__lastc_to, nori__lastc_conv, nori__lastc_max,
    nori__lastc_mean, nori__lastc_average;

/* What makes the bytes of a type unsigned. */
static inline uint8_t nori__lastc_flip(int type)
{
    return type == NORI_INT8 ? 128 : 0;
}

/* The rewrite; types must have been inferred. */
nori_status nori__cpu_lastc(nori__ir *ir, nori_error *err);

#endif
