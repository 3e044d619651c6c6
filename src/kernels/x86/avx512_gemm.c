/* avx512_gemm.c: float products with AVX-512: tile 14 x 32. */
#define NORI__SIMD_AVX512
#include "kernels/simd.h"

#include "kernels/gemm_body.h"

ALWAYS vf every_second(const float *in)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(_mm512_loadu_ps(in), even, _mm512_loadu_ps(in + 16));
}

#include "kernels/x86/gemm_pack_body.h"

void nori__avx512_gemm(nori__kernels *k)
{
    gemm_table(k);
}
