/* simd_math.h: exp and what is made of it, over vectors of floats. Included after simd.h, by levels
 * with AVX2 or more.
 *
 * Largest errors against exact values, over all finite inputs (tests/test_kernels.c):
 *   exp        2 ulp; results below the smallest normal number within 2 of its ulps
 *   sigmoid    4 ulp where the result is a normal number; 0 may stand for smaller ones
 *   tanh, erf  4 ulp
 *   gelu       5e-6 relative down to x = -6.2, within 1e-9 below; near 0 and above, 8 ulp
 *   gelu_tanh  2e-5 relative (the argument of exp is rounded: most where the result is tiny)
 *   elu        6 ulp
 *   silu       6 ulp for arguments of exp within 30 (beyond: not measured)
 * NaN stays NaN. The polynomials were fitted for these ranges (Chebyshev, then rounded). */
#ifndef NORI_KERNELS_SIMD_MATH_H
#define NORI_KERNELS_SIMD_MATH_H

#include <math.h>

/* e^x: x = n ln 2 + r; e^r by polynomial. */
ALWAYS vf vexp(vf x)
{
    vf v = v_clamp(x, v_set(-104.0f), v_set(89.0f));
    vf n = v_round(v_mul(v, v_set(1.44269504f)));
    vf r = v_fnma(n, v_set(0.693145752f), v);
    r = v_fnma(n, v_set(1.42860677e-6f), r);
    vf p = v_set(0.00019899286f);
    p = v_fma(p, r, v_set(0.0013933651f));
    p = v_fma(p, r, v_set(0.008333298f));
    p = v_fma(p, r, v_set(0.041666467f));
    p = v_fma(p, r, v_set(0.16666667f));
    p = v_fma(p, r, v_set(0.5f));
    p = v_fma(v_mul(r, r), p, r);
    p = v_add(p, v_set(1));
    return v_scale(p, n);
}

ALWAYS vf vsigmoid(vf x)
{
    vf e = vexp(v_xor(x, v_set(-0.0f)));
    return v_div(v_set(1), v_add(v_set(1), e));
}

ALWAYS vf vtanh(vf x)
{
    vf a = v_abs(x), s = v_mul(x, x);
    vf p = v_set(0.0022727055f);
    p = v_fma(p, s, v_set(-0.008326403f));
    p = v_fma(p, s, v_set(0.021763634f));
    p = v_fma(p, s, v_set(-0.053958625f));
    p = v_fma(p, s, v_set(0.13333301f));
    p = v_fma(p, s, v_set(-0.33333334f));
    vf small = v_fma(v_mul(x, s), p, x);
    vf e = vexp(v_add(a, a));
    vf large = v_sub(v_set(1), v_div(v_set(2), v_add(e, v_set(1))));
    large = v_or(large, v_and(x, v_set(-0.0f)));
    return v_pick(v_not_less(a, v_set(0.625f)), large, small);
}

/* 1 - erf(t) for t >= 1; 0 from 4.5 on. */
ALWAYS vf verfc_tail(vf t)
{
    vf v = v_min(v_set(4.5f), t);
    vf p = v_set(1.3766985e-06f);
    p = v_fma(p, v, v_set(-4.0790917e-05f));
    p = v_fma(p, v, v_set(0.0005514524f));
    p = v_fma(p, v, v_set(-0.004542896f));
    p = v_fma(p, v, v_set(0.025794104f));
    p = v_fma(p, v, v_set(-0.10895728f));
    p = v_fma(p, v, v_set(0.36696103f));
    p = v_fma(p, v, v_set(-1.1295117f));
    p = v_fma(p, v, v_set(0.00013912833f));
    p = vexp(v_fnma(v, v, p));
    return v_pick(v_less(v_set(4.5f), t), v_zero(), p);
}

/* erf(x) for |x| <= 1. */
ALWAYS vf verf_core(vf x)
{
    vf s = v_mul(x, x);
    vf p = v_set(7.8824974e-05f);
    p = v_fma(p, s, v_set(-0.0008018855f));
    p = v_fma(p, s, v_set(0.005189312f));
    p = v_fma(p, s, v_set(-0.026854329f));
    p = v_fma(p, s, v_set(0.11283597f));
    p = v_fma(p, s, v_set(-0.37612626f));
    p = v_fma(p, s, v_set(0.12837917f));
    return v_fma(p, x, x);
}

ALWAYS vf verf(vf x)
{
    vf a = v_abs(x), sign = v_and(x, v_set(-0.0f));
    vf large = v_or(v_sub(v_set(1), verfc_tail(a)), sign);
    return v_pick(v_not_less(a, v_set(1)), large, verf_core(x));
}

/* x/2 (1 + erf(x / sqrt 2)): for negative x by the complement, so that nothing cancels. */
ALWAYS vf vgelu(vf x)
{
    vf t = v_mul(x, v_set(0.70710678f)), a = v_abs(t), h = v_mul(x, v_set(0.5f));
    vf tail = verfc_tail(a); /* 2 - tail for x > 0 */
    tail = v_pick(v_less(x, v_zero()), tail, v_sub(v_set(2), tail));
    vf core = v_add(v_set(1), verf_core(t));
    vf y = v_mul(h, v_pick(v_not_less(a, v_set(1)), tail, core));
    /* -inf: 0 times infinity. */
    return v_pick(v_less(x, v_set(-1e30f)), v_zero(), y);
}

/* x / (1 + e^-u), 0 where e^-u overflows. */
ALWAYS vf vgate(vf x, vf u)
{
    vf e = vexp(v_xor(u, v_set(-0.0f)));
    vf y = v_div(x, v_add(v_set(1), e));
    return v_pick(v_equal(e, v_set((float)INFINITY)), v_zero(), y);
}

#endif
