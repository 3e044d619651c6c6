/* base_quant.c: element by element on 8-bit values in plain C. Each step rounds to float32 as
 * written, so that every level gives the same bits. */
#include "kernels/internal.h"

#include <math.h>

static int32_t at(const void *x, size_t i, bool is_signed)
{
    return is_signed ? ((const int8_t *)x)[i] : ((const uint8_t *)x)[i];
}

static void x8_table(size_t n, const uint8_t *x, const uint8_t *table, uint8_t *y)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint8_t a = table[x[i]], b = table[x[i + 1]], c = table[x[i + 2]], d = table[x[i + 3]];
        y[i] = a;
        y[i + 1] = b;
        y[i + 2] = c;
        y[i + 3] = d;
    }
    for (; i < n; i++) {
        y[i] = table[x[i]];
    }
}

static void x8_max(size_t n, const void *a, const void *b, bool is_signed, void *y)
{
    const uint8_t flip = is_signed ? 0x80 : 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t u = ((const uint8_t *)a)[i], v = ((const uint8_t *)b)[i];
        ((uint8_t *)y)[i] = (uint8_t)(u ^ flip) > (uint8_t)(v ^ flip) ? u : v;
    }
}

static uint8_t byte_of(float v, const nori__q8_pair *q)
{
    float low = q->is_signed ? -128.0f : 0.0f, high = q->is_signed ? 127.0f : 255.0f;
    v = nearbyintf(v) + (float)q->y_zero;
    v = v >= low ? (v < high ? v : high) : low;
    return (uint8_t)(int32_t)v;
}

static void q8_add(size_t n, const void *a, size_t a_step, const void *b, size_t b_step,
                   const nori__q8_pair *q, void *y)
{
    for (size_t i = 0; i < n; i++) {
        float u = (float)(at(a, i * a_step, q->is_signed) - q->a_zero) * q->a_scale;
        float v = (float)(at(b, i * b_step, q->is_signed) - q->b_zero) * q->b_scale;
        ((uint8_t *)y)[i] = byte_of((u + v) / q->y_scale, q);
    }
}

static void q8_mul(size_t n, const void *a, size_t a_step, const void *b, size_t b_step,
                   const nori__q8_pair *q, void *y)
{
    for (size_t i = 0; i < n; i++) {
        int32_t u = at(a, i * a_step, q->is_signed) - q->a_zero;
        int32_t v = at(b, i * b_step, q->is_signed) - q->b_zero;
        ((uint8_t *)y)[i] = byte_of((float)(u * v) * q->y_scale, q);
    }
}

static bool f32_range(size_t n, const float *x, float *low, float *high)
{
    bool numbers = true;
    for (size_t i = 0; i < n; i++) {
        *low = x[i] < *low ? x[i] : *low;
        *high = x[i] > *high ? x[i] : *high;
        numbers = numbers && x[i] == x[i];
    }
    return numbers;
}

static double q8_sum(size_t n, const void *x, bool is_signed, int32_t zero, float scale)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)((float)(at(x, i, is_signed) - zero) * scale);
    }
    return sum;
}

static void f32_from_sums(size_t n, const int32_t *sums, const float *scale, size_t scale_step,
                          const float *bias, size_t bias_step, float *y)
{
    for (size_t i = 0; i < n; i++) {
        int32_t sum;
        memcpy(&sum, sums + i, sizeof(sum)); /* y may lie there */
        float v = (float)sum * scale[i * scale_step];
        y[i] = bias ? v + bias[i * bias_step] : v;
    }
}

void nori__base_quant(nori__kernels *k)
{
    k->x8_table = x8_table;
    k->x8_max = x8_max;
    k->q8_add = q8_add;
    k->q8_mul = q8_mul;
    k->f32_range = f32_range;
    k->q8_sum = q8_sum;
    k->f32_from_sums = f32_from_sums;
}
