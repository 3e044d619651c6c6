/* avx2_unary.c: one-argument functions over rows: AVX2. */
#define NORI__SIMD_AVX2
#include "kernels/simd.h"

#include "kernels/simd_math.h"

#include "kernels/unary_body.h"
#include "kernels/unary_table.h"

void nori__avx2_unary(nori__kernels *k)
{
    unary_table(k);
}
