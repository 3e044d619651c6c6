/* avx2_math.h: exp and what is made of it, for 8 floats; included by AVX2 files only.
 *
 * Largest errors against exact values, over all finite inputs (tests/test_kernels.c):
 *   exp        2 ulp; results below the smallest normal number within 2 of its ulps
 *   sigmoid    4 ulp where the result is a normal number; 0 may stand for smaller ones
 *   tanh, erf  4 ulp
 *   gelu       5e-6 relative down to x = -6.2, within 1e-9 below; near 0 and above, 8 ulp
 *   gelu_tanh  2e-5 relative (the argument of exp is rounded: most where the result is tiny)
 *   silu       6 ulp for arguments of exp within 30 (beyond: not measured)
 * NaN stays NaN. The polynomials were fitted for these ranges (Chebyshev, then rounded). */
#ifndef NORI_KERNELS_X86_AVX2_MATH_H
#define NORI_KERNELS_X86_AVX2_MATH_H

#include "kernels/internal.h"

#include <immintrin.h>
#include <math.h>

#define ALWAYS static inline __attribute__((always_inline))

/* Mask of the first n of 8 lanes. */
ALWAYS __m256i lanes(size_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones + 8 - (n < 8 ? n : 8)));
}

ALWAYS __m256 vset(float v)
{
    return _mm256_set1_ps(v);
}

ALWAYS __m256 vclamp(__m256 v, float low, float high)
{
    /* max and min give their second operand when either is NaN. */
    return _mm256_min_ps(vset(high), _mm256_max_ps(vset(low), v));
}

ALWAYS __m256 vabs(__m256 v)
{
    return _mm256_andnot_ps(vset(-0.0f), v);
}

/* 2 to the power of whole numbers in [-126, 127]. */
ALWAYS __m256 vpow2(__m256i n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* e^x: x = n ln 2 + r; e^r by polynomial; scaled twice by half of n, so that neither end of the
 * range of floats is missed. */
ALWAYS __m256 vexp(__m256 x)
{
    __m256 v = vclamp(x, -104.0f, 89.0f);
    __m256 n = _mm256_round_ps(_mm256_mul_ps(v, vset(1.44269504f)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, vset(0.693145752f), v);
    r = _mm256_fnmadd_ps(n, vset(1.42860677e-6f), r);
    __m256 p = vset(0.00019899286f);
    p = _mm256_fmadd_ps(p, r, vset(0.0013933651f));
    p = _mm256_fmadd_ps(p, r, vset(0.008333298f));
    p = _mm256_fmadd_ps(p, r, vset(0.041666467f));
    p = _mm256_fmadd_ps(p, r, vset(0.16666667f));
    p = _mm256_fmadd_ps(p, r, vset(0.5f));
    p = _mm256_fmadd_ps(_mm256_mul_ps(r, r), p, r);
    p = _mm256_add_ps(p, vset(1));
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    p = _mm256_mul_ps(p, vpow2(half));
    return _mm256_mul_ps(p, vpow2(_mm256_sub_epi32(whole, half)));
}

ALWAYS __m256 vsigmoid(__m256 x)
{
    __m256 e = vexp(_mm256_xor_ps(x, vset(-0.0f)));
    return _mm256_div_ps(vset(1), _mm256_add_ps(vset(1), e));
}

ALWAYS __m256 vtanh(__m256 x)
{
    __m256 a = vabs(x), s = _mm256_mul_ps(x, x);
    __m256 p = vset(0.0022727055f);
    p = _mm256_fmadd_ps(p, s, vset(-0.008326403f));
    p = _mm256_fmadd_ps(p, s, vset(0.021763634f));
    p = _mm256_fmadd_ps(p, s, vset(-0.053958625f));
    p = _mm256_fmadd_ps(p, s, vset(0.13333301f));
    p = _mm256_fmadd_ps(p, s, vset(-0.33333334f));
    __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(x, s), p, x);
    __m256 e = vexp(_mm256_add_ps(a, a));
    __m256 large = _mm256_sub_ps(vset(1), _mm256_div_ps(vset(2), _mm256_add_ps(e, vset(1))));
    large = _mm256_or_ps(large, _mm256_and_ps(x, vset(-0.0f)));
    return _mm256_blendv_ps(small, large, _mm256_cmp_ps(a, vset(0.625f), _CMP_NLT_UQ));
}

/* 1 - erf(t) for t >= 1; 0 from 4.5 on. */
ALWAYS __m256 verfc_tail(__m256 t)
{
    __m256 v = _mm256_min_ps(vset(4.5f), t);
    __m256 p = vset(1.3766985e-06f);
    p = _mm256_fmadd_ps(p, v, vset(-4.0790917e-05f));
    p = _mm256_fmadd_ps(p, v, vset(0.0005514524f));
    p = _mm256_fmadd_ps(p, v, vset(-0.004542896f));
    p = _mm256_fmadd_ps(p, v, vset(0.025794104f));
    p = _mm256_fmadd_ps(p, v, vset(-0.10895728f));
    p = _mm256_fmadd_ps(p, v, vset(0.36696103f));
    p = _mm256_fmadd_ps(p, v, vset(-1.1295117f));
    p = _mm256_fmadd_ps(p, v, vset(0.00013912833f));
    p = vexp(_mm256_fnmadd_ps(v, v, p));
    return _mm256_andnot_ps(_mm256_cmp_ps(t, vset(4.5f), _CMP_GE_OQ), p);
}

/* erf(x) for |x| <= 1. */
ALWAYS __m256 verf_core(__m256 x)
{
    __m256 s = _mm256_mul_ps(x, x);
    __m256 p = vset(7.8824974e-05f);
    p = _mm256_fmadd_ps(p, s, vset(-0.0008018855f));
    p = _mm256_fmadd_ps(p, s, vset(0.005189312f));
    p = _mm256_fmadd_ps(p, s, vset(-0.026854329f));
    p = _mm256_fmadd_ps(p, s, vset(0.11283597f));
    p = _mm256_fmadd_ps(p, s, vset(-0.37612626f));
    p = _mm256_fmadd_ps(p, s, vset(0.12837917f));
    return _mm256_fmadd_ps(p, x, x);
}

ALWAYS __m256 verf(__m256 x)
{
    __m256 a = vabs(x), sign = _mm256_and_ps(x, vset(-0.0f));
    __m256 large = _mm256_or_ps(_mm256_sub_ps(vset(1), verfc_tail(a)), sign);
    return _mm256_blendv_ps(verf_core(x), large, _mm256_cmp_ps(a, vset(1), _CMP_NLT_UQ));
}

/* x/2 (1 + erf(x / sqrt 2)): for negative x by the complement, so that nothing cancels. */
ALWAYS __m256 vgelu(__m256 x)
{
    __m256 t = _mm256_mul_ps(x, vset(0.70710678f)), a = vabs(t), h = _mm256_mul_ps(x, vset(0.5f));
    __m256 tail = verfc_tail(a); /* 2 - tail for x > 0 */
    __m256 negative = _mm256_castsi256_ps(_mm256_srai_epi32(_mm256_castps_si256(x), 31));
    tail = _mm256_blendv_ps(_mm256_sub_ps(vset(2), tail), tail, negative);
    __m256 core = _mm256_add_ps(vset(1), verf_core(t));
    __m256 y = _mm256_mul_ps(
        h, _mm256_blendv_ps(core, tail, _mm256_cmp_ps(a, vset(1), _CMP_NLT_UQ)));
    /* -inf: 0 times infinity. */
    return _mm256_andnot_ps(_mm256_cmp_ps(x, vset(-1e30f), _CMP_LT_OQ), y);
}

/* x / (1 + e^-u), 0 where e^-u overflows. */
ALWAYS __m256 vgate(__m256 x, __m256 u)
{
    __m256 e = vexp(_mm256_xor_ps(u, vset(-0.0f)));
    __m256 y = _mm256_div_ps(x, _mm256_add_ps(vset(1), e));
    return _mm256_andnot_ps(_mm256_cmp_ps(e, vset((float)INFINITY), _CMP_EQ_OQ), y);
}

#endif
