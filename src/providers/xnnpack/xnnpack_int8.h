/* xnnpack_int8.h: layers of 8-bit integers, told from QLinear operators (xnnpack_qlinear.c) and from
 * operators between DequantizeLinear and QuantizeLinear (xnnpack_qdq.c) alike. */
#ifndef NORI_PROVIDERS_XNNPACK_XNNPACK_INT8_H
#define NORI_PROVIDERS_XNNPACK_XNNPACK_INT8_H

#include "providers/xnnpack/xnnpack.h"

/* How a value is quantized, seen as int8: of uint8 the zero point is 128 less and form XP_FLIP. */
typedef struct xp_quant {
    float scale;
    int32_t zero;
    unsigned form;
} xp_quant;

/* From a constant scale and zero point (may be absent: of + 0) of the 8-bit value v. False: it is
 * none XNNPACK takes. */
bool nori__xp_quant(const nori__node *n, uint32_t scale, uint32_t zero, const nori__value *v,
                    xp_quant *q);

/* A convolution, or a product as one of a 1 x 1 window over rows. */
typedef struct xp_conv8 {
    xp_window w;
    bool rows;       /* a product: in is [..., group_in] */
    bool turned;     /* its weights are [out][in] */
    xp_quant x, y;
    const nori_tensor *weight, *scale, *zero; /* scale, zero: one or one a channel; zero may be NULL */
    const nori_tensor *bias;                  /* int32, or floats to be quantized, or NULL */
    int8_t low, high;                         /* of the result, as int8 */
} xp_conv8;
const char *nori__xp_conv8_fits(const xp_conv8 *c); /* NULL, or why not */
nori_status nori__xp_conv8(xp_part *p, const nori__node *n, uint32_t in, uint32_t out,
                           const xp_conv8 *c, nori_error *err);

typedef struct xp_binary8 {
    nori__op_id op; /* Add, Sub, Mul of ONNX */
    xp_quant a, b, y;
    int8_t low, high;
} xp_binary8;
const char *nori__xp_binary8_fits(const xp_binary8 *c);
nori_status nori__xp_binary8(xp_part *p, const nori__node *n, const uint32_t *in, uint32_t out,
                             const xp_binary8 *c, nori_error *err);

typedef struct xp_unary8 {
    nori__op_id op; /* Sigmoid, Tanh, Elu, LeakyRelu, Softmax of ONNX */
    xp_quant x, y;
    float alpha;
    int64_t axis; /* Softmax */
} xp_unary8;
const char *nori__xp_unary8_fits(const xp_unary8 *c);
nori_status nori__xp_unary8(xp_part *p, const nori__node *n, uint32_t in, uint32_t out,
                            const xp_unary8 *c, nori_error *err);

typedef struct xp_pool8 {
    bool all;    /* over all positions */
    xp_window w; /* else */
    xp_quant x, y;
} xp_pool8;
const char *nori__xp_pool8_fits(const xp_pool8 *c);
nori_status nori__xp_pool8(xp_part *p, const nori__node *n, uint32_t in, uint32_t out,
                           const xp_pool8 *c, nori_error *err);

#endif
