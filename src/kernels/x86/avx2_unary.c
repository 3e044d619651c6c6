/* avx2_unary.c: one-argument functions over rows with AVX2; errors are stated in avx2_math.h. */
#include "kernels/x86/avx2_math.h"

#include <float.h>

/* f is a constant where this is inlined. */
ALWAYS void row(size_t n, const float *x, float *y, const float *p,
                __m256 (*f)(__m256 x, const float *p))
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(y + i, f(_mm256_loadu_ps(x + i), p));
    }
    if (i < n) {
        __m256i m = lanes(n - i);
        _mm256_maskstore_ps(y + i, m, f(_mm256_maskload_ps(x + i, m), p));
    }
}

ALWAYS __m256 relu(__m256 x, const float *p)
{
    (void)p;
    return _mm256_max_ps(_mm256_setzero_ps(), x);
}

ALWAYS __m256 leaky(__m256 x, const float *p)
{
    __m256 below = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ);
    return _mm256_blendv_ps(x, _mm256_mul_ps(x, vset(p[0])), below);
}

ALWAYS __m256 clamp(__m256 x, const float *p)
{
    return vclamp(x, p[0], p[1]);
}

ALWAYS __m256 hardsigmoid(__m256 x, const float *p)
{
    return vclamp(_mm256_add_ps(_mm256_mul_ps(x, vset(p[0])), vset(p[1])), 0, 1);
}

ALWAYS __m256 hardswish(__m256 x, const float *p)
{
    const float q[2] = {1.0f / 6, 0.5f};
    (void)p;
    /* -inf times 0 would be NaN. */
    return _mm256_mul_ps(_mm256_max_ps(vset(-FLT_MAX), x), hardsigmoid(x, q));
}

ALWAYS __m256 sigmoid(__m256 x, const float *p)
{
    (void)p;
    return vsigmoid(x);
}

ALWAYS __m256 hyperbolic(__m256 x, const float *p)
{
    (void)p;
    return vtanh(x);
}

ALWAYS __m256 exponential(__m256 x, const float *p)
{
    (void)p;
    return vexp(x);
}

ALWAYS __m256 error_function(__m256 x, const float *p)
{
    (void)p;
    return verf(x);
}

ALWAYS __m256 gelu(__m256 x, const float *p)
{
    (void)p;
    return vgelu(x);
}

ALWAYS __m256 gelu_tanh(__m256 x, const float *p)
{
    /* 1 + tanh(u) = 2 / (1 + e^-2u) */
    __m256 s = _mm256_mul_ps(x, x);
    __m256 u = _mm256_mul_ps(x, _mm256_fmadd_ps(s, vset(0.0713548163f), vset(1.59576912f)));
    (void)p;
    return vgate(x, u);
}

ALWAYS __m256 silu(__m256 x, const float *p)
{
    return vgate(x, _mm256_mul_ps(x, vset(p[0])));
}

ALWAYS __m256 root(__m256 x, const float *p)
{
    (void)p;
    return _mm256_sqrt_ps(x);
}

ALWAYS __m256 reciprocal(__m256 x, const float *p)
{
    (void)p;
    return _mm256_div_ps(vset(1), x);
}

ALWAYS __m256 negative(__m256 x, const float *p)
{
    (void)p;
    return _mm256_xor_ps(x, vset(-0.0f));
}

ALWAYS __m256 absolute(__m256 x, const float *p)
{
    (void)p;
    return vabs(x);
}

ALWAYS __m256 affine(__m256 x, const float *p)
{
    return _mm256_add_ps(_mm256_mul_ps(x, vset(p[0])), vset(p[1]));
}

#define ROW(name, f)                                                            \
    static void name(size_t n, const float *x, float *y, const float *p)        \
    {                                                                           \
        row(n, x, y, p, f);                                                     \
    }
ROW(f32_relu, relu)
ROW(f32_leaky, leaky)
ROW(f32_clamp, clamp)
ROW(f32_hardsigmoid, hardsigmoid)
ROW(f32_hardswish, hardswish)
ROW(f32_sigmoid, sigmoid)
ROW(f32_tanh, hyperbolic)
ROW(f32_exp, exponential)
ROW(f32_erf, error_function)
ROW(f32_gelu, gelu)
ROW(f32_gelu_tanh, gelu_tanh)
ROW(f32_silu, silu)
ROW(f32_sqrt, root)
ROW(f32_reciprocal, reciprocal)
ROW(f32_neg, negative)
ROW(f32_abs, absolute)
ROW(f32_affine, affine)

void nori__avx2_unary(nori__kernels *k)
{
    k->f32_unary[NORI__U_RELU] = f32_relu;
    k->f32_unary[NORI__U_LEAKY] = f32_leaky;
    k->f32_unary[NORI__U_CLAMP] = f32_clamp;
    k->f32_unary[NORI__U_HARDSIGMOID] = f32_hardsigmoid;
    k->f32_unary[NORI__U_HARDSWISH] = f32_hardswish;
    k->f32_unary[NORI__U_SIGMOID] = f32_sigmoid;
    k->f32_unary[NORI__U_TANH] = f32_tanh;
    k->f32_unary[NORI__U_EXP] = f32_exp;
    k->f32_unary[NORI__U_ERF] = f32_erf;
    k->f32_unary[NORI__U_GELU] = f32_gelu;
    k->f32_unary[NORI__U_GELU_TANH] = f32_gelu_tanh;
    k->f32_unary[NORI__U_SILU] = f32_silu;
    k->f32_unary[NORI__U_SQRT] = f32_sqrt;
    k->f32_unary[NORI__U_RECIPROCAL] = f32_reciprocal;
    k->f32_unary[NORI__U_NEG] = f32_neg;
    k->f32_unary[NORI__U_ABS] = f32_abs;
    k->f32_unary[NORI__U_AFFINE] = f32_affine;
}
