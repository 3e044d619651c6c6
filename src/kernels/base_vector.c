/* base_vector.c: rows of floats in plain C: two arguments, reductions, softmax, normalization.
 *
 * Reductions keep 8 partial sums in float, added at the end: the order is fixed. Softmax of a row
 * that holds NaN, or only -inf, is NaN. */
#include "kernels/internal.h"

#include <math.h>

#define BINARY(name, expression)                                                           \
    static void name(size_t n, const float *a, size_t a_step, const float *b, size_t b_step, \
                     float *y)                                                              \
    {                                                                                       \
        for (size_t i = 0; i < n; i++) {                                                    \
            float u = a[i * a_step], v = b[i * b_step];                                     \
            y[i] = (expression);                                                            \
        }                                                                                   \
    }

BINARY(f32_add, u + v)
BINARY(f32_sub, u - v)
BINARY(f32_mul, u * v)
BINARY(f32_div, u / v)
BINARY(f32_larger, u > v || isnan(u) ? u : v)
BINARY(f32_smaller, u < v || isnan(u) ? u : v)

#define LANES 8

static float fold(const float *s)
{
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

static float f32_sum(size_t n, const float *x)
{
    float s[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        s[i % LANES] += x[i];
    }
    return fold(s);
}

static float f32_sum_square(size_t n, const float *x, float mean)
{
    float s[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        float d = x[i] - mean;
        s[i % LANES] += d * d;
    }
    return fold(s);
}

static float f32_max(size_t n, const float *x)
{
    float best = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        best = x[i] > best || isnan(x[i]) ? x[i] : best;
    }
    return best;
}

static float f32_min(size_t n, const float *x)
{
    float best = INFINITY;
    for (size_t i = 0; i < n; i++) {
        best = x[i] < best || isnan(x[i]) ? x[i] : best;
    }
    return best;
}

static void f32_softmax(size_t n, const float *x, float *y)
{
    float top = f32_max(n, x), s[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        y[i] = expf(x[i] - top);
        s[i % LANES] += y[i];
    }
    float factor = 1 / fold(s);
    for (size_t i = 0; i < n; i++) {
        y[i] *= factor;
    }
}

static void f32_normalize(size_t n, const float *x, float mean, float factor, const float *scale,
                          const float *bias, float *y)
{
    for (size_t i = 0; i < n; i++) {
        float v = (x[i] - mean) * factor;
        v = scale ? v * scale[i] : v;
        y[i] = bias ? v + bias[i] : v;
    }
}

void nori__base_vector(nori__kernels *k)
{
    k->f32_binary[NORI__B_ADD] = f32_add;
    k->f32_binary[NORI__B_SUB] = f32_sub;
    k->f32_binary[NORI__B_MUL] = f32_mul;
    k->f32_binary[NORI__B_DIV] = f32_div;
    k->f32_binary[NORI__B_MAX] = f32_larger;
    k->f32_binary[NORI__B_MIN] = f32_smaller;
    k->f32_sum = f32_sum;
    k->f32_sum_square = f32_sum_square;
    k->f32_sum_turns = f32_sum;
    k->f32_sum_square_turns = f32_sum_square;
    k->f32_max = f32_max;
    k->f32_min = f32_min;
    k->f32_softmax = f32_softmax;
    k->f32_normalize = f32_normalize;
}
