/* avx2_gemm.c: float products with AVX2 and FMA: tile 6 x 16. */
#define NORI__SIMD_AVX2
#include "kernels/simd.h"

#include "kernels/gemm_body.h"

ALWAYS vf every_second(const float *in)
{
    __m256 v = _mm256_shuffle_ps(_mm256_loadu_ps(in), _mm256_loadu_ps(in + 8), 0x88);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
}

#include "kernels/x86/gemm_pack_body.h"

void nori__avx2_gemm(nori__kernels *k)
{
    gemm_table(k);
}
