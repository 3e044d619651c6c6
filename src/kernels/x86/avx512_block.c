/* avx512_block.c: convolution and pooling over channel blocks: AVX-512, sixteen lanes. */
#define NORI__SIMD_AVX512
#include "kernels/simd.h"

#include <math.h>

#include "kernels/block_tile_body.h"
#include "kernels/block_weights_body.h"
#include "kernels/block_window_body.h"
#include "kernels/block_winograd_body.h"
#include "kernels/block_table.h"

void nori__avx512_block(nori__kernels *k)
{
    block_table(k);
}
