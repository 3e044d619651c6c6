/* simd.h: a thin layer of vectors of floats, for kernel bodies that are written once.
 *
 * The file that includes a body says which level it is for by defining NORI__SIMD_AVX512 or
 * NORI__SIMD_AVX2 (and is compiled with that level's flags); without either the vectors are the
 * compiler's own, four lanes wide, which every target has. VL is the number of lanes. */
#ifndef NORI_KERNELS_SIMD_H
#define NORI_KERNELS_SIMD_H

#include "kernels/internal.h"

#define ALWAYS static inline __attribute__((always_inline))

/* In front of a loop over an array of sums: they stay in registers only where all of it is unrolled. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#define NO_UNROLL _Pragma("nounroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#define NO_UNROLL _Pragma("GCC unroll 1")
#endif

/* A value that is used several times stays in a register: a compiler may else load it for each use. */
#if defined(NORI__SIMD_AVX512)
#define V_HOLD(v) __asm__("" : "+v"(v))
#elif defined(__SSE2__)
#define V_HOLD(v) __asm__("" : "+x"(v))
#else
#define V_HOLD(v) ((void)0)
#endif

/* Nothing is loaded before what stands in front of it: else a compiler takes the loads of several steps
 * together, for which there are no registers. */
#if defined(__GNUC__)
#define V_STEP __asm__ volatile("" ::: "memory")
#define V_FORGET(p) __asm__("" : "+r"(p)) /* where p came from */
#define V_NEAR(p) __builtin_prefetch(p, 0, 3) /* to read, into the first cache */
#else
#define V_STEP ((void)0)
#define V_FORGET(p) ((void)0)
#define V_NEAR(p) ((void)(p))
#endif

#if defined(NORI__SIMD_AVX512)
#include <immintrin.h>
#define VL 16
#define V_REGISTERS 32
typedef __m512 vf;
ALWAYS vf v_load(const float *p) { return _mm512_loadu_ps(p); }
ALWAYS void v_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
ALWAYS vf v_set(float a) { return _mm512_set1_ps(a); }
ALWAYS vf v_zero(void) { return _mm512_setzero_ps(); }
ALWAYS vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
ALWAYS vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
ALWAYS vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
ALWAYS vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
ALWAYS vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }   /* a b + c */
ALWAYS vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a b */
ALWAYS vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); } /* b where either is NaN */
ALWAYS vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); } /* b where either is NaN */
typedef __mmask16 vm; /* a truth a lane */
ALWAYS vm v_less(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
ALWAYS vm v_not_less(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); } /* NaN: true */
ALWAYS vm v_equal(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
ALWAYS vf v_pick(vm m, vf a, vf b) { return _mm512_mask_mov_ps(b, m, a); } /* a where m, else b */
ALWAYS vf v_and(vf a, vf b) { return _mm512_and_ps(a, b); } /* bits */
ALWAYS vf v_or(vf a, vf b) { return _mm512_or_ps(a, b); }
ALWAYS vf v_xor(vf a, vf b) { return _mm512_xor_ps(a, b); }
ALWAYS vf v_sqrt(vf a) { return _mm512_sqrt_ps(a); }
ALWAYS vf v_round(vf a) /* half to even */
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
ALWAYS vf v_scale(vf a, vf n) { return _mm512_scalef_ps(a, n); } /* a 2^n, n whole */
ALWAYS vf v_larger(vf a, vf b) /* NaN where either is */
{
    return v_pick(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a, _mm512_max_ps(a, b));
}
/* The first n < VL floats; other lanes are 0. */
ALWAYS vf v_load_some(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
ALWAYS void v_store_some(float *p, size_t n, vf a)
{
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), a);
}
/* VL vectors of VL floats, as rows of a matrix, become its columns. */
ALWAYS void v_turn(vf r[VL])
{
    vf t[VL];
    UNROLL
    for (size_t i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLL
    for (size_t i = 0; i < 16; i += 4) {
        r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    /* Four lanes of 4 x 4 in each group of four rows: lanes are turned as elements were. */
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    UNROLL
    for (size_t i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
}
#elif defined(NORI__SIMD_AVX2)
#include <immintrin.h>
#define VL 8
#define V_REGISTERS 16
typedef __m256 vf;
ALWAYS vf v_load(const float *p) { return _mm256_loadu_ps(p); }
ALWAYS void v_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
ALWAYS vf v_set(float a) { return _mm256_set1_ps(a); }
ALWAYS vf v_zero(void) { return _mm256_setzero_ps(); }
ALWAYS vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
ALWAYS vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
ALWAYS vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
ALWAYS vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
ALWAYS vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
ALWAYS vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
ALWAYS vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
ALWAYS vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
typedef __m256 vm;
ALWAYS vm v_less(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
ALWAYS vm v_not_less(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_NLT_UQ); }
ALWAYS vm v_equal(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
ALWAYS vf v_pick(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
ALWAYS vf v_and(vf a, vf b) { return _mm256_and_ps(a, b); }
ALWAYS vf v_or(vf a, vf b) { return _mm256_or_ps(a, b); }
ALWAYS vf v_xor(vf a, vf b) { return _mm256_xor_ps(a, b); }
ALWAYS vf v_sqrt(vf a) { return _mm256_sqrt_ps(a); }
ALWAYS vf v_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
ALWAYS vf v_power2(__m256i n) /* n in [-126, 127] */
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
/* Scaled twice by half of n, so that neither end of the range of floats is missed. */
ALWAYS vf v_scale(vf a, vf n)
{
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    a = _mm256_mul_ps(a, v_power2(half));
    return _mm256_mul_ps(a, v_power2(_mm256_sub_epi32(whole, half)));
}
ALWAYS vf v_larger(vf a, vf b)
{
    return v_pick(_mm256_cmp_ps(a, a, _CMP_UNORD_Q), a, _mm256_max_ps(a, b));
}
ALWAYS __m256i v_lanes(size_t n) /* mask of the first n lanes */
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones + 8 - (n < 8 ? n : 8)));
}
ALWAYS vf v_load_some(const float *p, size_t n) { return _mm256_maskload_ps(p, v_lanes(n)); }
ALWAYS void v_store_some(float *p, size_t n, vf a) { _mm256_maskstore_ps(p, v_lanes(n), a); }
ALWAYS void v_turn(vf r[VL])
{
    vf t[VL], u[VL];
    UNROLL
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLL
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}
#else
#define VL 4
#define V_REGISTERS 16
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vm __attribute__((vector_size(16)));
ALWAYS vf v_load(const float *p)
{
    vf a;
    memcpy(&a, p, sizeof(a));
    return a;
}
ALWAYS void v_store(float *p, vf a) { memcpy(p, &a, sizeof(a)); }
ALWAYS vf v_set(float a) { return (vf){a, a, a, a}; }
ALWAYS vf v_zero(void) { return v_set(0); }
ALWAYS vf v_add(vf a, vf b) { return a + b; }
ALWAYS vf v_sub(vf a, vf b) { return a - b; }
ALWAYS vf v_mul(vf a, vf b) { return a * b; }
ALWAYS vf v_div(vf a, vf b) { return a / b; }
ALWAYS vf v_fma(vf a, vf b, vf c) { return a * b + c; } /* rounded twice */
ALWAYS vf v_fnma(vf a, vf b, vf c) { return c - a * b; }
ALWAYS vf v_pick(vm m, vf a, vf b)
{
    return (vf)(((vm)a & m) | ((vm)b & ~m));
}
ALWAYS vm v_less(vf a, vf b) { return (vm)(a < b); }
ALWAYS vf v_max(vf a, vf b) { return v_pick((vm)(a > b), a, b); }
ALWAYS vf v_min(vf a, vf b) { return v_pick((vm)(a < b), a, b); }
ALWAYS vf v_larger(vf a, vf b) { return v_pick((vm)(a > b) | (vm)(a != a), a, b); }
ALWAYS void v_turn(vf r[VL])
{
    float t[VL][VL], u[VL][VL];
    memcpy(t, r, sizeof(t));
    for (size_t i = 0; i < VL; i++) {
        for (size_t j = 0; j < VL; j++) {
            u[j][i] = t[i][j];
        }
    }
    memcpy(r, u, sizeof(u));
}
#endif

/* Limits that let NaN through. */
ALWAYS vf v_clamp(vf a, vf low, vf high) { return v_min(high, v_max(low, a)); }

#if VL > 4
ALWAYS vf v_abs(vf a) { return v_xor(a, v_and(a, v_set(-0.0f))); }
#endif

#endif
