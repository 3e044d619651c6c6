/* amx_quant.c: bytes through a table, for processors with tiles: all of them pick bytes out of two vectors
 * in one instruction (VBMI), so that 256 entries are two of those. */
#include "kernels/internal.h"

#include <immintrin.h>

static void x8_table(size_t n, const uint8_t *x, const uint8_t *table, uint8_t *y)
{
    __m512i row[4];
    for (size_t k = 0; k < 4; k++) {
        row[k] = _mm512_loadu_si512(table + 64 * k);
    }
    for (size_t i = 0; i < n; i += 64) {
        __mmask64 some = n - i < 64 ? ((__mmask64)1 << (n - i)) - 1 : ~(__mmask64)0;
        __m512i v = _mm512_maskz_loadu_epi8(some, x + i);
        __m512i low = _mm512_permutex2var_epi8(row[0], v, row[1]);
        __m512i high = _mm512_permutex2var_epi8(row[2], v, row[3]);
        v = _mm512_mask_blend_epi8(_mm512_movepi8_mask(v), low, high);
        _mm512_mask_storeu_epi8(y + i, some, v);
    }
}

void nori__amx_quant(nori__kernels *k) { k->x8_table = x8_table; }
