/* nnapi_bytes.h: 8-bit values. ONNX says at each use what a byte stands for, NNAPI says it of the value:
 * nori__na_quant finds the one meaning a value has in the graph, and a use of another is not taken.
 *
 * An operator between DequantizeLinear and QuantizeLinear (nnapi_qdq.c) or a QLinear operator
 * (nnapi_qlinear.c) becomes an operation on bytes where NNAPI has it; else the former runs on floats
 * between DEQUANTIZE and QUANTIZE. DEQUANTIZE is made when somebody wants the floats. */
#ifndef NORI_PROVIDERS_NNAPI_NNAPI_BYTES_H
#define NORI_PROVIDERS_NNAPI_NNAPI_BYTES_H

#include "providers/nnapi/nnapi.h"
#include "ops/resolve.h"

typedef struct na_quant {
    nori_type type; /* NORI_UINT8 or NORI_INT8 */
    float scale;
    int32_t zero;
} na_quant;

static inline bool nori__na_same(const na_quant *a, const na_quant *b)
{
    return a->type == b->type && a->scale == b->scale && a->zero == b->zero;
}

/* ---- nnapi_quant.c ---- */
/* What the bytes of v stand for, by who makes or reads it; false: nobody says. */
bool nori__na_quant(const nori__value *v, na_quant *q);
/* What a node says of the 8-bit value v: a scale, and a zero point (may be absent), both of one number. */
bool nori__na_said(const nori__node *n, uint32_t scale, uint32_t zero, const nori__value *v,
                   na_quant *q);
/* Both at once: v has that meaning, and the library has its type. */
bool nori__na_means(const na_self *self, const nori__node *n, uint32_t scale, uint32_t zero,
                    const nori__value *v, na_quant *q);
na_type nori__na_byte_type(const na_quant *q); /* without dimensions */
/* Floats of a value that a DequantizeLinear in the part makes, in a form; NA_NONE: it makes it not. */
uint32_t nori__na_dequantized(na_part *p, uint32_t value, int form);
/* Floats of an 8-bit value, and of floats an 8-bit value. */
uint32_t nori__na_to_floats(na_part *p, uint32_t value, int form);
void nori__na_to_bytes(na_part *p, uint32_t floats, uint32_t value, int form);

/* ---- nnapi_qdq.c ---- */
/* The node as an operation on bytes, when it is between DequantizeLinear and QuantizeLinear. */
bool nori__na_integers(na_part *p, const na_job *j);

/* ---- nnapi_layers.c ---- */
/* A convolution, or a product with a constant matrix. */
typedef struct na_layer {
    bool rows, turned;                        /* a product; of [out][in] weights */
    na_quant x, y;
    float factor;                             /* of the product */
    const nori_tensor *weight, *scale, *zero; /* scale, zero: one or one an output; zero may be NULL */
    const nori_tensor *bias;                  /* int32 in steps of the product, floats, or NULL */
    int fused;
} na_layer;
const char *nori__na_layer_fits(const na_self *self, const nori__node *n, const na_layer *l);
void nori__na_add_layer(na_part *p, const nori__node *n, uint32_t in, uint32_t out, const na_layer *l);

const char *nori__na_binary8_fits(const na_self *self, int32_t code, const na_quant *a,
                                  const na_quant *b, const na_quant *y);
void nori__na_add_binary8(na_part *p, int32_t code, const uint32_t *in, uint32_t out, int fused);
/* LOGISTIC, SOFTMAX and TANH have one meaning of what they give. */
bool nori__na_fixed_meaning(const na_self *self, int32_t code, const na_quant *y);

#endif
