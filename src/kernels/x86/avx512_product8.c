/* avx512_product8.c: lines of bytes by blocks of 16 channels of 8-bit weights with AVX-512 VNNI: four
 * products a lane in one instruction, nothing saturates. A tile is up to twelve lines by two blocks:
 * 24 vectors of sums. */
#include "kernels/x86/avx512_put.h"

#define LINES 12

ALWAYS __m512i four(const uint8_t *p)
{
    int32_t v;
    memcpy(&v, p, sizeof(v));
    return _mm512_set1_epi32(v);
}

/* The rest of one block's weights. */
ALWAYS void add_rest(const size_t lines, const size_t b, __m512i s[LINES][2],
                     const int64_t *offset, const uint8_t *const *x, const nori__u8_block *block)
{
    const int8_t *w = block->rest;
    for (size_t e = 0; e < block->rests; e++, w += 4 * N) {
        int64_t at = offset[block->at[2 * e]] + 4 * (int64_t)block->at[2 * e + 1];
        __m512i v = _mm512_loadu_si512(w);
        for (size_t i = 0; i < lines; i++) {
            s[i][b] = _mm512_dpbusd_epi32(s[i][b], four(x[i] + at), v);
        }
    }
}

/* lines and blocks are constants where this is inlined. */
ALWAYS void tile(const size_t lines, const size_t blocks, size_t terms, size_t quads,
                 const int64_t *offset, const uint8_t *const *x, const nori__u8_block *block,
                 void *y, size_t ldy, const nori__u8_finish *f)
{
    __m512i s[LINES][2];
    for (size_t i = 0; i < lines; i++) {
        for (size_t b = 0; b < blocks; b++) {
            s[i][b] = _mm512_loadu_si512(f->start + b * N);
        }
    }
    const int8_t *w = block[0].w;
    size_t next = blocks > 1 ? (size_t)(block[1].w - block[0].w) : 0;
    for (size_t t = 0; t < terms; t++) {
        const uint8_t *p[LINES];
        for (size_t i = 0; i < lines; i++) {
            p[i] = x[i] + offset[t];
        }
        for (size_t q = 0; q < quads; q++, w += 4 * N) {
            __m512i w0 = _mm512_loadu_si512(w), w1 = _mm512_loadu_si512(w + next);
            for (size_t i = 0; i < lines; i++) {
                __m512i v = four(p[i] + 4 * q);
                s[i][0] = _mm512_dpbusd_epi32(s[i][0], v, w0);
                if (blocks > 1) {
                    s[i][1] = _mm512_dpbusd_epi32(s[i][1], v, w1);
                }
            }
        }
    }
    for (size_t b = 0; b < blocks; b++) {
        if (block[b].rests > 0) {
            add_rest(lines, b, s, offset, x, &block[b]);
        }
    }
    for (size_t i = 0; i < lines; i++) {
        for (size_t b = 0; b < blocks; b++) {
            put(s[i][b], b * N, i, y, ldy, f);
        }
    }
}

#define TILE(lines)                                                                                \
    case 2 * (lines):                                                                              \
        tile(lines, 1, terms, quads, offset, x, w, y, ldy, f);                                     \
        break;                                                                                     \
    case 2 * (lines) + 1:                                                                          \
        tile(lines, 2, terms, quads, offset, x, w, y, ldy, f);                                     \
        break;

void nori__avx512_u8_tile(size_t lines, size_t blocks, size_t terms, size_t quads,
                          const int64_t *offset, const uint8_t *const *x, const nori__u8_block *w,
                          void *y, size_t ldy, const nori__u8_finish *f)
{
    switch (2 * lines + blocks - 1) {
        TILE(1)
        TILE(2)
        TILE(3)
        TILE(4)
        TILE(5)
        TILE(6)
        TILE(7)
        TILE(8)
        TILE(9)
        TILE(10)
        TILE(11)
        TILE(12)
    default: break;
    }
}

/* ---- depthwise ---- */

#define DEEP 32

/* Pairs of taps as 16-bit values side by side. Weaving leaves channels 0-3, 8-11, 16-19, 24-27 in one
 * vector and the others in the second: so lie the weights, and sums are put in order at last. */
static const uint8_t order[DEEP] = {0, 1, 2, 3, 8,  9,  10, 11, 16, 17, 18, 19, 24, 25, 26, 27,
                                    4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31};

ALWAYS __m512i thirty_two(const uint8_t *p)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

static void u8_depthwise(size_t lines, size_t taps, const int64_t *offset, const uint8_t *x,
                         size_t step, const int16_t *w, void *y, size_t ldy,
                         const nori__u8_finish *f)
{
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i high =
        _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    size_t pairs = (taps + 1) / 2;
    for (size_t c = 0; c < f->channels; c += DEEP, w += pairs * DEEP * 2) {
        bool both = f->channels - c > N;
        __m512i start0 = _mm512_loadu_si512(f->start + c), start1 = _mm512_loadu_si512(f->start + c + N);
        for (size_t i = 0; i < lines; i++) {
            const uint8_t *p = x + i * step + c;
            __m512i s0 = _mm512_setzero_si512(), s1 = s0;
            for (size_t t = 0; t < pairs; t++) {
                __m512i a = thirty_two(p + offset[2 * t]);
                __m512i b = 2 * t + 1 < taps ? thirty_two(p + offset[2 * t + 1]) : a;
                const int16_t *v = w + t * DEEP * 2;
                s0 = _mm512_dpwssd_epi32(s0, _mm512_unpacklo_epi16(a, b), _mm512_loadu_si512(v));
                s1 = _mm512_dpwssd_epi32(s1, _mm512_unpackhi_epi16(a, b),
                                         _mm512_loadu_si512(v + DEEP));
            }
            put(_mm512_add_epi32(start0, _mm512_permutex2var_epi32(s0, low, s1)), c, i, y, ldy, f);
            if (both) {
                put(_mm512_add_epi32(start1, _mm512_permutex2var_epi32(s0, high, s1)), c + N, i, y,
                    ldy, f);
            }
        }
    }
}

/* ---- depthwise, weights of 8 bits ---- */

#define DEEP4 64

/* Four taps woven into quads of one channel: vector k holds channels 16 l + 4 k to 16 l + 4 k + 3 in its
 * 128 bits number l. Packing results to bytes undoes that. */
#define LANE(l, k) 16 * (l) + 4 * (k), 16 * (l) + 4 * (k) + 1, 16 * (l) + 4 * (k) + 2, 16 * (l) + 4 * (k) + 3
#define VECTOR(k) LANE(0, k), LANE(1, k), LANE(2, k), LANE(3, k)
static const uint8_t order4[DEEP4] = {VECTOR(0), VECTOR(1), VECTOR(2), VECTOR(3)};

/* Parts of 128 bits: out[k] has part k of each of in. Its own inverse. */
ALWAYS void turn_parts(const __m512i *in, __m512i *out)
{
    __m512i a = _mm512_shuffle_i32x4(in[0], in[1], 0x88), b = _mm512_shuffle_i32x4(in[0], in[1], 0xdd);
    __m512i c = _mm512_shuffle_i32x4(in[2], in[3], 0x88), d = _mm512_shuffle_i32x4(in[2], in[3], 0xdd);
    out[0] = _mm512_shuffle_i32x4(a, c, 0x88);
    out[1] = _mm512_shuffle_i32x4(b, d, 0x88);
    out[2] = _mm512_shuffle_i32x4(a, c, 0xdd);
    out[3] = _mm512_shuffle_i32x4(b, d, 0xdd);
}

/* A block's n values of a channel each, in the order of the sums. */
ALWAYS void load_parts(const void *p, __m512i *out)
{
    __m512i in[4];
    for (size_t i = 0; i < 4; i++) {
        in[i] = _mm512_loadu_si512((const char *)p + 64 * i);
    }
    turn_parts(in, out);
}

/* Sums to bytes where these take the whole range: packing limits them. */
ALWAYS void put_bytes(const __m512i *s, const __m512i *scale, __mmask64 m, uint8_t *y,
                      const nori__u8_finish *f)
{
    __m512i r[4];
    for (size_t k = 0; k < 4; k++) {
        __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(s[k]), _mm512_castsi512_ps(scale[k]));
        v = _mm512_min_ps(_mm512_set1_ps(f->high), v); /* NaN stays, and becomes the lowest */
        r[k] = _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(f->zero));
    }
    r[0] = _mm512_packs_epi32(r[0], r[1]);
    r[2] = _mm512_packs_epi32(r[2], r[3]);
    _mm512_mask_storeu_epi8(y, m, _mm512_packus_epi16(r[0], r[2]));
}

static void u8_depthwise4(size_t lines, size_t taps, const int64_t *offset, const uint8_t *x,
                          size_t step, const int8_t *w, void *y, size_t ldy,
                          const nori__u8_finish *f)
{
    size_t quads = (taps + 3) / 4;
    bool whole = f->form == NORI__U8_BYTES && f->low == -(float)f->zero &&
                 f->high == 255.0f - (float)f->zero;
    for (size_t c = 0; c < f->channels; c += DEEP4, w += quads * DEEP4 * 4) {
        size_t n = f->channels - c < DEEP4 ? f->channels - c : DEEP4;
        __mmask64 m = n < DEEP4 ? ((__mmask64)1 << n) - 1 : ~(__mmask64)0;
        __m512i start[4], scale[4];
        load_parts(f->start + c, start);
        if (whole) {
            load_parts(f->scale + c, scale);
        }
        for (size_t i = 0; i < lines; i++) {
            const uint8_t *p = x + i * step + c;
            __m512i s[4] = {start[0], start[1], start[2], start[3]};
            for (size_t q = 0; q < quads; q++) {
                const int8_t *v = w + q * DEEP4 * 4;
                size_t t = 4 * q, left = taps - t;
                __m512i t0 = _mm512_maskz_loadu_epi8(m, p + offset[t]);
                __m512i t1 = left > 1 ? _mm512_maskz_loadu_epi8(m, p + offset[t + 1]) : t0;
                __m512i t2 = left > 2 ? _mm512_maskz_loadu_epi8(m, p + offset[t + 2]) : t0;
                __m512i t3 = left > 3 ? _mm512_maskz_loadu_epi8(m, p + offset[t + 3]) : t0;
                __m512i low01 = _mm512_unpacklo_epi8(t0, t1), high01 = _mm512_unpackhi_epi8(t0, t1);
                __m512i low23 = _mm512_unpacklo_epi8(t2, t3), high23 = _mm512_unpackhi_epi8(t2, t3);
                s[0] = _mm512_dpbusd_epi32(s[0], _mm512_unpacklo_epi16(low01, low23),
                                           _mm512_loadu_si512(v));
                s[1] = _mm512_dpbusd_epi32(s[1], _mm512_unpackhi_epi16(low01, low23),
                                           _mm512_loadu_si512(v + 64));
                s[2] = _mm512_dpbusd_epi32(s[2], _mm512_unpacklo_epi16(high01, high23),
                                           _mm512_loadu_si512(v + 128));
                s[3] = _mm512_dpbusd_epi32(s[3], _mm512_unpackhi_epi16(high01, high23),
                                           _mm512_loadu_si512(v + 192));
            }
            if (whole) {
                put_bytes(s, scale, m, (uint8_t *)y + i * ldy + c, f);
                continue;
            }
            __m512i r[4];
            turn_parts(s, r);
            for (size_t k = 0; k < 4 && k * N < n; k++) {
                put(r[k], c + k * N, i, y, ldy, f);
            }
        }
    }
}

void nori__avx512_product8(nori__kernels *k)
{
    k->u8_lines = LINES;
    k->u8_blocks = 2;
    k->u8_pairs = false;
    k->u8_tile = nori__avx512_u8_tile;
    k->u8_deep = DEEP;
    k->u8_deep_order = order;
    k->u8_depthwise = u8_depthwise;
    k->u8_deep4 = DEEP4;
    k->u8_deep4_order = order4;
    k->u8_depthwise4 = u8_depthwise4;
}
