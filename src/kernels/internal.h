/* internal.h: who fills the table of micro-kernels, in order. */
#ifndef NORI_KERNELS_INTERNAL_H
#define NORI_KERNELS_INTERNAL_H

#include "kernels/kernels.h"

void nori__base_gemm(nori__kernels *k);
void nori__base_int8(nori__kernels *k);
void nori__base_unary(nori__kernels *k);
void nori__base_vector(nori__kernels *k);
void nori__base_recurrent(nori__kernels *k);
void nori__base_window(nori__kernels *k);
void nori__base_quant(nori__kernels *k);
void nori__base_move(nori__kernels *k);
void nori__base_product8(nori__kernels *k);
void nori__base_block(nori__kernels *k);
#if defined(__x86_64__) || defined(__i386__)
#define NORI__X86 1
void nori__avx2_gemm(nori__kernels *k);
void nori__avx2_int8(nori__kernels *k);
void nori__avx2_unary(nori__kernels *k);
void nori__avx2_vector(nori__kernels *k);
void nori__avx2_recurrent(nori__kernels *k);
void nori__avx2_window(nori__kernels *k);
void nori__avx2_quant(nori__kernels *k);
void nori__avx2_move(nori__kernels *k);
void nori__avx2_product8(nori__kernels *k);
void nori__avx2_block(nori__kernels *k);
void nori__avx512_gemm(nori__kernels *k);
void nori__avx512_recurrent(nori__kernels *k);
void nori__avx512_vector(nori__kernels *k);
void nori__avx512_block(nori__kernels *k);
void nori__avx512_product8(nori__kernels *k);
void nori__avx512_unary(nori__kernels *k);
/* u8_tile without tiles: up to twelve lines by two blocks. */
void nori__avx512_u8_tile(size_t lines, size_t blocks, size_t terms, size_t quads,
                          const int64_t *offset, const uint8_t *const *x, const nori__u8_block *w,
                          void *y, size_t ldy, const nori__u8_finish *f);
#ifdef __x86_64__
void nori__amx_product8(nori__kernels *k);
void nori__amx_quant(nori__kernels *k);
#endif
#endif

/* max(low, x) and min(high, x) with NaN kept. */
static inline float nori__clamp(float x, float low, float high)
{
    float y = x < low ? low : x;
    return y > high ? high : y;
}

#endif
