/* simd.h: a thin layer of vectors of floats, for kernel bodies that are written once.
 *
 * The file that includes a body says which level it is for by defining NORI__SIMD_AVX512 or
 * NORI__SIMD_AVX2 (and is compiled with that level's flags); without either the vectors are the
 * compiler's own, four lanes wide, which every target has. VL is the number of lanes. */
#ifndef NORI_KERNELS_SIMD_H
#define NORI_KERNELS_SIMD_H

#include "kernels/internal.h"

#define ALWAYS static inline __attribute__((always_inline))

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
ALWAYS vf v_larger(vf a, vf b) /* NaN where either is */
{
    return _mm512_mask_mov_ps(_mm512_max_ps(a, b), _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a);
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
ALWAYS vf v_larger(vf a, vf b)
{
    return _mm256_blendv_ps(_mm256_max_ps(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
#else
#define VL 4
#define V_REGISTERS 16
typedef float vf __attribute__((vector_size(16)));
typedef int32_t v_mask __attribute__((vector_size(16)));
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
ALWAYS vf v_pick(v_mask m, vf a, vf b) /* a where m, else b */
{
    return (vf)(((v_mask)a & m) | ((v_mask)b & ~m));
}
ALWAYS vf v_max(vf a, vf b) { return v_pick((v_mask)(a > b), a, b); }
ALWAYS vf v_min(vf a, vf b) { return v_pick((v_mask)(a < b), a, b); }
ALWAYS vf v_larger(vf a, vf b) { return v_pick((v_mask)(a > b) | (v_mask)(a != a), a, b); }
#endif

/* Limits that let NaN through. */
ALWAYS vf v_clamp(vf a, vf low, vf high) { return v_min(high, v_max(low, a)); }

#endif
