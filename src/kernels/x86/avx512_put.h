/* avx512_put.h: what becomes of a vector of integer sums, for the levels that have AVX-512. */
#ifndef NORI_KERNELS_X86_AVX512_PUT_H
#define NORI_KERNELS_X86_AVX512_PUT_H

#include "kernels/internal.h"

#include <immintrin.h>

#define N NORI__U8_BLOCK
#define ALWAYS static inline __attribute__((always_inline))

/* Channels [c, c + N) of a line, as far as there are channels. */
ALWAYS void put(__m512i s, size_t c, size_t line, void *y, size_t ldy, const nori__u8_finish *f)
{
    size_t n = f->channels - c, at = line * ldy + c;
    __mmask16 m = n < N ? (__mmask16)((1u << n) - 1) : 0xffff;
    if (f->form == NORI__U8_SUMS) {
        _mm512_mask_storeu_epi32((int32_t *)y + at, m, s);
        return;
    }
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(s), _mm512_loadu_ps(f->scale + c));
    if (f->form == NORI__U8_FLOATS) {
        v = f->shift ? _mm512_add_ps(v, _mm512_loadu_ps(f->shift + c)) : v;
        _mm512_mask_storeu_ps((float *)y + at, m, v);
        return;
    }
    v = _mm512_max_ps(v, _mm512_set1_ps(f->low)); /* NaN: the lowest */
    v = _mm512_min_ps(v, _mm512_set1_ps(f->high));
    __m512i r = _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(f->zero));
    __m128i bytes = _mm512_cvtepi32_epi8(r);
    if (NORI__LIKELY(n >= N)) { /* a store under a mask costs more */
        _mm_storeu_si128((__m128i *)(void *)((uint8_t *)y + at), bytes);
    } else {
        _mm_mask_storeu_epi8((uint8_t *)y + at, m, bytes);
    }
}

#endif
