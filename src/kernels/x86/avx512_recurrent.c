/* avx512_recurrent.c: gates of LSTM and GRU: AVX-512. */
#define NORI__SIMD_AVX512
#include "kernels/simd.h"

#include "kernels/simd_math.h"

#include "kernels/recurrent_body.h"

void nori__avx512_recurrent(nori__kernels *k)
{
    recurrent_table(k);
}
