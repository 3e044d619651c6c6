/* base_unary.c: one-argument functions over rows, with the C library's math in float or double.
 *
 * Largest errors at this level, in units in the last place: what the library has (about 1) but
 * for products of two roundings. The levels above state theirs. NaN gives NaN everywhere, RELU(-0)
 * is 0 or -0. */
#include "kernels/internal.h"

#include <float.h>
#include <math.h>

#define UNARY(name, expression)                                                     \
    static void name(size_t n, const float *in, float *out, const float *p)         \
    {                                                                               \
        (void)p;                                                                    \
        for (size_t i = 0; i < n; i++) {                                            \
            float x = in[i];                                                        \
            out[i] = (expression);                                                  \
        }                                                                           \
    }

static float hard(float x, float a, float b)
{
    return nori__clamp(a * x + b, 0, 1);
}

/* -inf times 0 would be NaN. */
static float hardswish(float x)
{
    return (x < -FLT_MAX ? -FLT_MAX : x) * hard(x, 1.0f / 6, 0.5f);
}

static float sigmoid(float x)
{
    return (float)(1 / (1 + exp(-(double)x)));
}

static float gelu(float x)
{
    double d = x;
    return isinf(x) ? (x > 0 ? x : -0.0f) : (float)(0.5 * d * (1 + erf(d * 0.70710678118654752)));
}

/* 1 + tanh(u) = 2 / (1 + e^-2u), which does not cancel. */
static float gelu_tanh(float x)
{
    double d = x, u = 0.79788456080286536 * (d + 0.044715 * d * d * d);
    return isinf(x) ? (x > 0 ? x : -0.0f) : (float)(d / (1 + exp(-2 * u)));
}

static float silu(float x, float p)
{
    double d = (double)x * p;
    return isinf(x) && d < 0 ? -0.0f : (float)(x / (1 + exp(-d)));
}

UNARY(f32_relu, x < 0 ? 0 : x)
UNARY(f32_leaky, x < 0 ? p[0] * x : x)
UNARY(f32_clamp, nori__clamp(x, p[0], p[1]))
UNARY(f32_hardsigmoid, hard(x, p[0], p[1]))
UNARY(f32_hardswish, hardswish(x))
UNARY(f32_sigmoid, sigmoid(x))
UNARY(f32_tanh, tanhf(x))
UNARY(f32_exp, expf(x))
UNARY(f32_erf, erff(x))
UNARY(f32_gelu, gelu(x))
UNARY(f32_gelu_tanh, gelu_tanh(x))
UNARY(f32_silu, silu(x, p[0]))
UNARY(f32_elu, x < 0 ? p[0] * expm1f(x) : x)
UNARY(f32_sqrt, sqrtf(x))
UNARY(f32_reciprocal, 1 / x)
UNARY(f32_neg, -x)
UNARY(f32_abs, fabsf(x))
UNARY(f32_affine, p[0] * x + p[1])

#include "kernels/unary_table.h"

void nori__base_unary(nori__kernels *k)
{
    unary_table(k);
}
