/* base_int8.c: integer products, quantization in plain C. Exact on every level.
 *
 * Rounding is half to even: nearbyint under the default mode. Values beyond the 8-bit range
 * saturate, NaN becomes the lowest. */
#include "kernels/internal.h"

#include <math.h>

#define MR 4
#define NR 8

static void s16_tile(size_t rows, size_t cols, size_t pairs, const int16_t *a, const int16_t *b,
                     int32_t *c, size_t ldc, bool add)
{
    uint32_t sum[MR][NR] = {{0}};
    for (size_t p = 0; p < pairs; p++, a += 2 * MR, b += 2 * NR) {
        for (size_t i = 0; i < MR; i++) {
            for (size_t j = 0; j < NR; j++) {
                sum[i][j] += (uint32_t)(a[2 * i] * b[2 * j]) + (uint32_t)(a[2 * i + 1] * b[2 * j + 1]);
            }
        }
    }
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            uint32_t old = add ? (uint32_t)c[i * ldc + j] : 0;
            c[i * ldc + j] = (int32_t)(sum[i][j] + old);
        }
    }
}

static int16_t widened(const void *in, size_t i, bool is_signed, int32_t zero)
{
    int32_t v = is_signed ? ((const int8_t *)in)[i] : ((const uint8_t *)in)[i];
    return (int16_t)(v - zero);
}

static void s16_pack(size_t width, size_t k, size_t count, const void *in, size_t k_step,
                     size_t step, bool is_signed, int32_t zero, int16_t *out)
{
    for (size_t p = 0; p < k; p += 2) {
        for (size_t j = 0; j < width; j++, out += 2) {
            size_t at = p * k_step + j * step;
            out[0] = j < count ? widened(in, at, is_signed, zero) : 0;
            out[1] = j < count && p + 1 < k ? widened(in, at + k_step, is_signed, zero) : 0;
        }
    }
}

static void put8(void *out, size_t i, bool is_signed, float v, int32_t zero)
{
    float low = is_signed ? -128.0f : 0.0f, high = is_signed ? 127.0f : 255.0f;
    v = nearbyintf(v) + (float)zero;
    v = v >= low ? (v < high ? v : high) : low;
    if (is_signed) {
        ((int8_t *)out)[i] = (int8_t)v;
    } else {
        ((uint8_t *)out)[i] = (uint8_t)v;
    }
}

static int32_t plus(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static void requantize(size_t n, const int32_t *in, int32_t bias, float scale, int32_t zero,
                       bool is_signed, void *out)
{
    for (size_t i = 0; i < n; i++) {
        put8(out, i, is_signed, (float)plus(in[i], bias) * scale, zero);
    }
}

static void requantize_each(size_t n, const int32_t *in, const int32_t *bias, const float *scale,
                            int32_t zero, bool is_signed, void *out)
{
    for (size_t i = 0; i < n; i++) {
        put8(out, i, is_signed, (float)plus(in[i], bias ? bias[i] : 0) * scale[i], zero);
    }
}

static void quantize(size_t n, const float *x, float scale, int32_t zero, bool is_signed,
                     void *out)
{
    for (size_t i = 0; i < n; i++) {
        put8(out, i, is_signed, x[i] / scale, zero);
    }
}

static void dequantize(size_t n, const void *in, bool is_signed, int32_t zero, float scale,
                       float *y)
{
    for (size_t i = 0; i < n; i++) {
        int32_t v = is_signed ? ((const int8_t *)in)[i] : ((const uint8_t *)in)[i];
        y[i] = (float)(v - zero) * scale;
    }
}

void nori__base_int8(nori__kernels *k)
{
    k->s16_mr = MR;
    k->s16_nr = NR;
    k->s16_tile = s16_tile;
    k->s16_pack = s16_pack;
    k->requantize = requantize;
    k->requantize_each = requantize_each;
    k->quantize = quantize;
    k->dequantize = dequantize;
}
