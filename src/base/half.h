/* half.h: conversions of the small float formats, round to nearest even; scalar, exact.
 * Formats as the ONNX text "Float stored in 8 bits" and IEEE 754-2008 binary16 define them. */
#ifndef NORI_BASE_HALF_H
#define NORI_BASE_HALF_H

#include <stdbool.h>
#include <stdint.h>

#include "nori/nori.h"

float nori__f16_to_f32(uint16_t h);
uint16_t nori__f32_to_f16(float f); /* overflow gives infinity, NaN stays NaN */
uint16_t nori__f64_to_f16(double d); /* one rounding */
float nori__bf16_to_f32(uint16_t h);
uint16_t nori__f32_to_bf16(float f);
/* The 8-bit and 4-bit kinds by nori_type (FLOAT8E4M3FN, ...FNUZ, E5M2, E5M2FNUZ, E8M0,
 * FLOAT4E2M1, which has neither infinity nor NaN: both give its largest value). E8M0 has no sign
 * and no zero: negative values give NaN, zero the smallest power; half way goes up.
 * saturate: out of range gives the largest finite value, else NaN or infinity as the type has
 * it. */
float nori__f8_to_f32(uint8_t bits, nori_type type);
uint8_t nori__f32_to_f8(float f, nori_type type, bool saturate);

#endif
