/* avx2_recurrent.c: gates of LSTM and GRU: AVX2. */
#define NORI__SIMD_AVX2
#include "kernels/simd.h"

#include "kernels/simd_math.h"

#include "kernels/recurrent_body.h"

void nori__avx2_recurrent(nori__kernels *k)
{
    recurrent_table(k);
}
