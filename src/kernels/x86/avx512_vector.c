/* avx512_vector.c: rows of floats, sixteen at a time: two arguments, sums, softmax, normalization.
 *
 * Sums keep sixteen partial sums (or several times that) in turn, added at the end: the order is
 * fixed. Sums that are the same at every level stay those of avx2_vector.c. */
#define NORI__SIMD_AVX512
#include "kernels/simd.h"

#include "kernels/simd_math.h"

ALWAYS __mmask16 first(size_t n)
{
    return (__mmask16)(n >= VL ? 0xffff : (1u << n) - 1);
}

ALWAYS vf from(const float *p, size_t i, size_t step, __mmask16 m)
{
    return step ? _mm512_maskz_loadu_ps(m, p + i) : v_set(*p);
}

ALWAYS void row(size_t n, const float *a, size_t as, const float *b, size_t bs, float *y,
                vf (*f)(vf a, vf b))
{
    for (size_t i = 0; i < n; i += VL) {
        __mmask16 m = first(n - i);
        _mm512_mask_storeu_ps(y + i, m, f(from(a, i, as, m), from(b, i, bs, m)));
    }
}

#define ROW(name, f)                                                                            \
    static void name(size_t n, const float *a, size_t as, const float *b, size_t bs, float *y)  \
    {                                                                                           \
        if (as && bs) {                                                                         \
            row(n, a, 1, b, 1, y, f);                                                           \
        } else {                                                                                \
            row(n, a, as, b, bs, y, f);                                                         \
        }                                                                                       \
    }
ROW(f32_add, v_add)
ROW(f32_sub, v_sub)
ROW(f32_mul, v_mul)
ROW(f32_div, v_div)

static float f32_sum(size_t n, const float *x)
{
    vf s0 = v_zero(), s1 = s0;
    size_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        s0 = v_add(s0, v_load(x + i));
        s1 = v_add(s1, v_load(x + i + VL));
    }
    for (; i < n; i += VL) {
        s0 = v_add(s0, _mm512_maskz_loadu_ps(first(n - i), x + i));
    }
    return _mm512_reduce_add_ps(v_add(s0, s1));
}

static float f32_sum_square(size_t n, const float *x, float mean)
{
    vf s0 = v_zero(), s1 = s0, m = v_set(mean);
    size_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        vf d0 = v_sub(v_load(x + i), m), d1 = v_sub(v_load(x + i + VL), m);
        s0 = v_fma(d0, d0, s0);
        s1 = v_fma(d1, d1, s1);
    }
    for (; i < n; i += VL) {
        __mmask16 some = first(n - i);
        vf d = _mm512_maskz_sub_ps(some, _mm512_maskz_loadu_ps(some, x + i), m);
        s0 = v_fma(d, d, s0);
    }
    return _mm512_reduce_add_ps(v_add(s0, s1));
}

/* NaN if any is. */
ALWAYS vf top_of(size_t n, const float *x)
{
    vf best = v_set(-INFINITY);
    size_t i = 0;
    for (; i + VL <= n; i += VL) {
        best = v_larger(best, v_load(x + i));
    }
    if (i < n) {
        best = v_larger(best, _mm512_mask_loadu_ps(v_set(-INFINITY), first(n - i), x + i));
    }
    best = v_larger(best, _mm512_shuffle_f32x4(best, best, 0x4e));
    best = v_larger(best, _mm512_shuffle_f32x4(best, best, 0xb1));
    best = v_larger(best, _mm512_permute_ps(best, 0x4e));
    return v_larger(best, _mm512_permute_ps(best, 0xb1));
}

static float f32_max(size_t n, const float *x)
{
    return _mm512_cvtss_f32(top_of(n, x));
}

static void f32_softmax(size_t n, const float *x, float *y)
{
    vf top = top_of(n, x), sum = v_zero();
    for (size_t i = 0; i < n; i += VL) {
        __mmask16 m = first(n - i);
        vf e = vexp(v_sub(_mm512_maskz_loadu_ps(m, x + i), top));
        _mm512_mask_storeu_ps(y + i, m, e);
        sum = _mm512_mask_add_ps(sum, m, sum, e);
    }
    vf factor = v_set(1 / _mm512_reduce_add_ps(sum));
    for (size_t i = 0; i < n; i += VL) {
        __mmask16 m = first(n - i);
        _mm512_mask_storeu_ps(y + i, m, v_mul(_mm512_maskz_loadu_ps(m, y + i), factor));
    }
}

static void f32_normalize(size_t n, const float *x, float mean, float factor, const float *scale,
                          const float *bias, float *y)
{
    vf u = v_set(mean), f = v_set(factor);
    for (size_t i = 0; i < n; i += VL) {
        __mmask16 m = first(n - i);
        vf v = v_mul(v_sub(_mm512_maskz_loadu_ps(m, x + i), u), f);
        v = scale ? v_mul(v, _mm512_maskz_loadu_ps(m, scale + i)) : v;
        v = bias ? v_add(v, _mm512_maskz_loadu_ps(m, bias + i)) : v;
        _mm512_mask_storeu_ps(y + i, m, v);
    }
}

void nori__avx512_vector(nori__kernels *k)
{
    k->f32_binary[NORI__B_ADD] = f32_add;
    k->f32_binary[NORI__B_SUB] = f32_sub;
    k->f32_binary[NORI__B_MUL] = f32_mul;
    k->f32_binary[NORI__B_DIV] = f32_div;
    k->f32_sum = f32_sum;
    k->f32_sum_square = f32_sum_square;
    k->f32_max = f32_max;
    k->f32_softmax = f32_softmax;
    k->f32_normalize = f32_normalize;
}
