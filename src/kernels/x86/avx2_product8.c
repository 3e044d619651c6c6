/* avx2_product8.c: lines of bytes by blocks of 16 channels of 8-bit weights with AVX2.
 *
 * Two neighbouring products are added in 16 bits, which saturate: the weights come in parts whose
 * pairs cannot reach that (u8_pairs). A tile is four lines by sixteen channels: eight vectors of
 * sums. */
#include "kernels/internal.h"

#include <immintrin.h>

#define LINES 4
#define N NORI__U8_BLOCK
#define ALWAYS static inline __attribute__((always_inline))

ALWAYS __m256i four(const uint8_t *p)
{
    int32_t v;
    memcpy(&v, p, sizeof(v));
    return _mm256_set1_epi32(v);
}

ALWAYS __m256i dot(__m256i sum, __m256i x, __m256i w)
{
    __m256i pairs = _mm256_maddubs_epi16(x, w);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* Eight sums to eight bytes in the low lanes. */
ALWAYS __m128i to_bytes(__m256i s, const float *scale, const nori__u8_finish *f)
{
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(s), _mm256_loadu_ps(scale));
    v = _mm256_max_ps(v, _mm256_set1_ps(f->low)); /* NaN: the lowest */
    v = _mm256_min_ps(v, _mm256_set1_ps(f->high));
    __m256i r = _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(f->zero));
    const __m256i pick = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                          -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                          -1, -1);
    r = _mm256_shuffle_epi8(r, pick);
    return _mm_unpacklo_epi32(_mm256_castsi256_si128(r), _mm256_extracti128_si256(r, 1));
}

ALWAYS __m256 to_floats(__m256i s, size_t at, const nori__u8_finish *f)
{
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(s), _mm256_loadu_ps(f->scale + at));
    return f->shift ? _mm256_add_ps(v, _mm256_loadu_ps(f->shift + at)) : v;
}

/* Sums of channels from c on. */
ALWAYS void put(__m256i s0, __m256i s1, size_t c, size_t line, void *y, size_t ldy,
                const nori__u8_finish *f)
{
    size_t n = f->channels - c < N ? f->channels - c : N, at = line * ldy + c;
    if (f->form == NORI__U8_BYTES) {
        __m128i v = _mm_unpacklo_epi64(to_bytes(s0, f->scale + c, f),
                                       to_bytes(s1, f->scale + c + 8, f));
        uint8_t some[N], *to = (uint8_t *)y + at;
        if (n == N) {
            _mm_storeu_si128((__m128i *)to, v);
        } else {
            _mm_storeu_si128((__m128i *)some, v);
            memcpy(to, some, n);
        }
        return;
    }
    if (f->form == NORI__U8_FLOATS) {
        s0 = _mm256_castps_si256(to_floats(s0, c, f));
        s1 = _mm256_castps_si256(to_floats(s1, c + 8, f));
    }
    int32_t some[N], *to = (int32_t *)y + at;
    int32_t *where = n == N ? to : some;
    _mm256_storeu_si256((__m256i *)where, s0);
    _mm256_storeu_si256((__m256i *)(where + 8), s1);
    if (n != N) {
        memcpy(to, some, n * sizeof(*to));
    }
}

/* lines is a constant where this is inlined. */
ALWAYS void tile(const size_t lines, size_t terms, size_t quads, const int64_t *offset,
                 const uint8_t *const *x, const nori__u8_block *block, void *y, size_t ldy,
                 const nori__u8_finish *f)
{
    __m256i s[LINES][2];
    for (size_t i = 0; i < lines; i++) {
        s[i][0] = _mm256_loadu_si256((const __m256i *)f->start);
        s[i][1] = _mm256_loadu_si256((const __m256i *)(f->start + 8));
    }
    const int8_t *w = block->w;
    for (size_t t = 0; t < terms; t++) {
        const uint8_t *p[LINES];
        for (size_t i = 0; i < lines; i++) {
            p[i] = x[i] + offset[t];
        }
        for (size_t q = 0; q < quads; q++, w += 4 * N) {
            __m256i w0 = _mm256_loadu_si256((const __m256i *)w);
            __m256i w1 = _mm256_loadu_si256((const __m256i *)(w + 32));
            for (size_t i = 0; i < lines; i++) {
                __m256i v = four(p[i] + 4 * q);
                s[i][0] = dot(s[i][0], v, w0);
                s[i][1] = dot(s[i][1], v, w1);
            }
        }
    }
    w = block->rest;
    for (size_t e = 0; e < block->rests; e++, w += 4 * N) {
        int64_t at = offset[block->at[2 * e]] + 4 * (int64_t)block->at[2 * e + 1];
        __m256i w0 = _mm256_loadu_si256((const __m256i *)w);
        __m256i w1 = _mm256_loadu_si256((const __m256i *)(w + 32));
        for (size_t i = 0; i < lines; i++) {
            __m256i v = four(x[i] + at);
            s[i][0] = dot(s[i][0], v, w0);
            s[i][1] = dot(s[i][1], v, w1);
        }
    }
    for (size_t i = 0; i < lines; i++) {
        put(s[i][0], s[i][1], 0, i, y, ldy, f);
    }
}

static void u8_tile(size_t lines, size_t blocks, size_t terms, size_t quads, const int64_t *offset,
                    const uint8_t *const *x, const nori__u8_block *w, void *y, size_t ldy,
                    const nori__u8_finish *f)
{
    (void)blocks; /* one */
    switch (lines) {
    case 1: tile(1, terms, quads, offset, x, w, y, ldy, f); break;
    case 2: tile(2, terms, quads, offset, x, w, y, ldy, f); break;
    case 3: tile(3, terms, quads, offset, x, w, y, ldy, f); break;
    default: tile(4, terms, quads, offset, x, w, y, ldy, f); break;
    }
}

/* ---- depthwise ---- */

/* Pairs of taps as 16-bit values side by side. Weaving leaves channels 0-3 and 8-11 in one vector,
 * 4-7 and 12-15 in the other: so lie the weights, and sums are put in order at last. */
static const uint8_t order[N] = {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15};

ALWAYS __m256i sixteen(const uint8_t *p)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
}

static void u8_depthwise(size_t lines, size_t taps, const int64_t *offset, const uint8_t *x,
                         size_t step, const int16_t *w, void *y, size_t ldy,
                         const nori__u8_finish *f)
{
    size_t pairs = (taps + 1) / 2;
    for (size_t c = 0; c < f->channels; c += N, w += pairs * N * 2) {
        __m256i start0 = _mm256_loadu_si256((const __m256i *)(f->start + c));
        __m256i start1 = _mm256_loadu_si256((const __m256i *)(f->start + c + 8));
        for (size_t i = 0; i < lines; i++) {
            const uint8_t *p = x + i * step + c;
            __m256i s0 = _mm256_setzero_si256(), s1 = s0;
            for (size_t t = 0; t < pairs; t++) {
                __m256i a = sixteen(p + offset[2 * t]);
                __m256i b = 2 * t + 1 < taps ? sixteen(p + offset[2 * t + 1]) : a;
                const __m256i *v = (const __m256i *)(const void *)(w + t * N * 2);
                __m256i w0 = _mm256_loadu_si256(v), w1 = _mm256_loadu_si256(v + 1);
                s0 = _mm256_add_epi32(s0, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w0));
                s1 = _mm256_add_epi32(s1, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w1));
            }
            put(_mm256_add_epi32(start0, _mm256_permute2x128_si256(s0, s1, 0x20)),
                _mm256_add_epi32(start1, _mm256_permute2x128_si256(s0, s1, 0x31)), c, i, y, ldy, f);
        }
    }
}

void nori__avx2_product8(nori__kernels *k)
{
    k->u8_lines = LINES;
    k->u8_blocks = 1;
    k->u8_pairs = true;
    k->u8_tile = u8_tile;
    k->u8_deep = N;
    k->u8_deep_order = order;
    k->u8_depthwise = u8_depthwise;
}
