/* peak_avx512.c: the loop with AVX-512: 12 independent chains. */
#include "peak.h"

#include <immintrin.h>

double peak_avx512(double flop)
{
    size_t rounds = (size_t)(flop / (12 * 32)) + 1;
    __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
    /* Different starts: equal chains would be merged. */
    __m512 c0 = _mm512_set1_ps(1.0f), c1 = _mm512_set1_ps(2.0f), c2 = _mm512_set1_ps(3.0f);
    __m512 c3 = _mm512_set1_ps(4.0f), c4 = _mm512_set1_ps(5.0f), c5 = _mm512_set1_ps(6.0f);
    __m512 c6 = _mm512_set1_ps(7.0f), c7 = _mm512_set1_ps(8.0f), c8 = _mm512_set1_ps(9.0f);
    __m512 c9 = _mm512_set1_ps(10.0f), c10 = _mm512_set1_ps(11.0f), c11 = _mm512_set1_ps(12.0f);
    for (size_t r = 0; r < rounds; r++) {
        c0 = _mm512_fmadd_ps(c0, a, b);
        c1 = _mm512_fmadd_ps(c1, a, b);
        c2 = _mm512_fmadd_ps(c2, a, b);
        c3 = _mm512_fmadd_ps(c3, a, b);
        c4 = _mm512_fmadd_ps(c4, a, b);
        c5 = _mm512_fmadd_ps(c5, a, b);
        c6 = _mm512_fmadd_ps(c6, a, b);
        c7 = _mm512_fmadd_ps(c7, a, b);
        c8 = _mm512_fmadd_ps(c8, a, b);
        c9 = _mm512_fmadd_ps(c9, a, b);
        c10 = _mm512_fmadd_ps(c10, a, b);
        c11 = _mm512_fmadd_ps(c11, a, b);
    }
    c0 = _mm512_add_ps(_mm512_add_ps(c0, c1), _mm512_add_ps(c2, c3));
    c4 = _mm512_add_ps(_mm512_add_ps(c4, c5), _mm512_add_ps(c6, c7));
    c8 = _mm512_add_ps(_mm512_add_ps(c8, c9), _mm512_add_ps(c10, c11));
    c0 = _mm512_add_ps(_mm512_add_ps(c0, c4), c8);
    peak_sink = _mm512_cvtss_f32(c0);
    return (double)rounds * 12 * 32;
}
