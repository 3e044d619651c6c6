/* avx2_vector.c: rows of floats with AVX2: two arguments, reductions, softmax, normalization.
 *
 * Reductions keep 4 vectors of partial sums, added pairwise at the end: the order is fixed. */
#define NORI__SIMD_AVX2
#include "kernels/simd.h"

#include "kernels/simd_math.h"

ALWAYS __m256 add(__m256 a, __m256 b)
{
    return _mm256_add_ps(a, b);
}
ALWAYS __m256 sub(__m256 a, __m256 b)
{
    return _mm256_sub_ps(a, b);
}
ALWAYS __m256 mul(__m256 a, __m256 b)
{
    return _mm256_mul_ps(a, b);
}
ALWAYS __m256 quotient(__m256 a, __m256 b)
{
    return _mm256_div_ps(a, b);
}
ALWAYS __m256 larger(__m256 a, __m256 b)
{
    /* The second operand where either is NaN; then the first if that is. */
    return _mm256_blendv_ps(_mm256_max_ps(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
ALWAYS __m256 smaller(__m256 a, __m256 b)
{
    return _mm256_blendv_ps(_mm256_min_ps(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}

ALWAYS __m256 from(const float *p, size_t i, size_t step)
{
    return step ? _mm256_loadu_ps(p + i) : _mm256_broadcast_ss(p);
}

ALWAYS __m256 from_some(const float *p, size_t i, size_t step, __m256i m)
{
    return step ? _mm256_maskload_ps(p + i, m) : _mm256_broadcast_ss(p);
}

ALWAYS void row(size_t n, const float *a, size_t as, const float *b, size_t bs, float *y,
                __m256 (*f)(__m256 a, __m256 b))
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(y + i, f(from(a, i, as), from(b, i, bs)));
    }
    if (i < n) {
        __m256i m = v_lanes(n - i);
        _mm256_maskstore_ps(y + i, m, f(from_some(a, i, as, m), from_some(b, i, bs, m)));
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
ROW(f32_add, add)
ROW(f32_sub, sub)
ROW(f32_mul, mul)
ROW(f32_div, quotient)
ROW(f32_larger, larger)
ROW(f32_smaller, smaller)

ALWAYS float fold(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

static float f32_sum(size_t n, const float *x)
{
    __m256 s0 = _mm256_setzero_ps(), s1 = s0, s2 = s0, s3 = s0;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        s0 = _mm256_add_ps(s0, _mm256_loadu_ps(x + i));
        s1 = _mm256_add_ps(s1, _mm256_loadu_ps(x + i + 8));
        s2 = _mm256_add_ps(s2, _mm256_loadu_ps(x + i + 16));
        s3 = _mm256_add_ps(s3, _mm256_loadu_ps(x + i + 24));
    }
    for (; i < n; i += 8) {
        s0 = _mm256_add_ps(s0, _mm256_maskload_ps(x + i, v_lanes(n - i)));
    }
    return fold(_mm256_add_ps(_mm256_add_ps(s0, s1), _mm256_add_ps(s2, s3)));
}

static float f32_sum_square(size_t n, const float *x, float mean)
{
    __m256 s0 = _mm256_setzero_ps(), s1 = s0, m = v_set(mean);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 d0 = _mm256_sub_ps(_mm256_loadu_ps(x + i), m);
        __m256 d1 = _mm256_sub_ps(_mm256_loadu_ps(x + i + 8), m);
        s0 = _mm256_fmadd_ps(d0, d0, s0);
        s1 = _mm256_fmadd_ps(d1, d1, s1);
    }
    for (; i < n; i += 8) {
        __m256i some = v_lanes(n - i);
        __m256 d = _mm256_sub_ps(_mm256_maskload_ps(x + i, some), m);
        d = _mm256_and_ps(d, _mm256_castsi256_ps(some));
        s0 = _mm256_fmadd_ps(d, d, s0);
    }
    return fold(_mm256_add_ps(s0, s1));
}

static float f32_sum_turns(size_t n, const float *x)
{
    __m256 s = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        s = _mm256_add_ps(s, _mm256_loadu_ps(x + i));
    }
    if (i < n) {
        s = _mm256_add_ps(s, _mm256_maskload_ps(x + i, v_lanes(n - i)));
    }
    return fold(s);
}

static float f32_sum_square_turns(size_t n, const float *x, float mean)
{
    __m256 s = _mm256_setzero_ps(), m = v_set(mean);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + i), m);
        s = _mm256_add_ps(s, _mm256_mul_ps(d, d));
    }
    if (i < n) {
        __m256i some = v_lanes(n - i);
        __m256 d = _mm256_sub_ps(_mm256_maskload_ps(x + i, some), m);
        d = _mm256_and_ps(d, _mm256_castsi256_ps(some));
        s = _mm256_add_ps(s, _mm256_mul_ps(d, d));
    }
    return fold(s);
}

/* Extreme of a row; start where nothing is known. */
ALWAYS float extreme(size_t n, const float *x, float start, __m256 (*f)(__m256 a, __m256 b))
{
    __m256 best = v_set(start);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        best = f(best, _mm256_loadu_ps(x + i));
    }
    if (i < n) {
        __m256i m = v_lanes(n - i);
        best = f(best, _mm256_blendv_ps(v_set(start), _mm256_maskload_ps(x + i, m),
                                        _mm256_castsi256_ps(m)));
    }
    best = f(best, _mm256_permute2f128_ps(best, best, 1));
    best = f(best, _mm256_permute_ps(best, 0x4e));
    best = f(best, _mm256_permute_ps(best, 0xb1));
    return _mm256_cvtss_f32(best);
}

static float f32_max(size_t n, const float *x)
{
    return extreme(n, x, -(float)INFINITY, larger);
}

static float f32_min(size_t n, const float *x)
{
    return extreme(n, x, (float)INFINITY, smaller);
}

static void f32_softmax(size_t n, const float *x, float *y)
{
    __m256 top = v_set(f32_max(n, x)), sum = _mm256_setzero_ps();
    for (size_t i = 0; i < n; i += 8) {
        __m256i m = v_lanes(n - i);
        __m256 e = vexp(_mm256_sub_ps(_mm256_maskload_ps(x + i, m), top));
        _mm256_maskstore_ps(y + i, m, e);
        sum = _mm256_add_ps(sum, _mm256_and_ps(e, _mm256_castsi256_ps(m)));
    }
    __m256 factor = v_set(1 / fold(sum));
    for (size_t i = 0; i < n; i += 8) {
        __m256i m = v_lanes(n - i);
        _mm256_maskstore_ps(y + i, m, _mm256_mul_ps(_mm256_maskload_ps(y + i, m), factor));
    }
}

static void f32_normalize(size_t n, const float *x, float mean, float factor, const float *scale,
                          const float *bias, float *y)
{
    __m256 u = v_set(mean), f = v_set(factor);
    for (size_t i = 0; i < n; i += 8) {
        __m256i m = v_lanes(n - i);
        __m256 v = _mm256_mul_ps(_mm256_sub_ps(_mm256_maskload_ps(x + i, m), u), f);
        v = scale ? _mm256_mul_ps(v, _mm256_maskload_ps(scale + i, m)) : v;
        v = bias ? _mm256_add_ps(v, _mm256_maskload_ps(bias + i, m)) : v;
        _mm256_maskstore_ps(y + i, m, v);
    }
}

void nori__avx2_vector(nori__kernels *k)
{
    k->f32_binary[NORI__B_ADD] = f32_add;
    k->f32_binary[NORI__B_SUB] = f32_sub;
    k->f32_binary[NORI__B_MUL] = f32_mul;
    k->f32_binary[NORI__B_DIV] = f32_div;
    k->f32_binary[NORI__B_MAX] = f32_larger;
    k->f32_binary[NORI__B_MIN] = f32_smaller;
    k->f32_sum = f32_sum;
    k->f32_sum_square = f32_sum_square;
    k->f32_sum_turns = f32_sum_turns;
    k->f32_sum_square_turns = f32_sum_square_turns;
    k->f32_max = f32_max;
    k->f32_min = f32_min;
    k->f32_softmax = f32_softmax;
    k->f32_normalize = f32_normalize;
}
