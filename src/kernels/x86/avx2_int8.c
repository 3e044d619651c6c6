/* avx2_int8.c: integer products and quantization with AVX2.
 *
 * Pairs of int16 multiply and add in one instruction (9-bit values: no overflow); tile 6 x 16 as
 * for floats. */
#include "kernels/internal.h"

#include <immintrin.h>

#define MR 6
#define NR 16
#define ALWAYS static inline __attribute__((always_inline))

ALWAYS __m256i first(size_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones + 8 - (n < 8 ? n : 8)));
}

ALWAYS void put(__m256i v0, __m256i v1, size_t cols, int32_t *c, bool add)
{
    __m256i m0 = first(cols), m1 = first(cols > 8 ? cols - 8 : 0);
    if (add) {
        v0 = _mm256_add_epi32(v0, _mm256_maskload_epi32(c, m0));
        v1 = cols > 8 ? _mm256_add_epi32(v1, _mm256_maskload_epi32(c + 8, m1)) : v1;
    }
    _mm256_maskstore_epi32(c, m0, v0);
    if (cols > 8) {
        _mm256_maskstore_epi32(c + 8, m1, v1);
    }
}

ALWAYS __m256i pair(const int16_t *a)
{
    int32_t both;
    memcpy(&both, a, sizeof(both));
    return _mm256_set1_epi32(both);
}

#define STEP(i)                                                          \
    if (rows > i) {                                                      \
        __m256i v = pair(a + 2 * i);                                     \
        s##i##0 = _mm256_add_epi32(s##i##0, _mm256_madd_epi16(v, b0));   \
        s##i##1 = _mm256_add_epi32(s##i##1, _mm256_madd_epi16(v, b1));   \
    }
#define PUT(i)                                           \
    if (rows > i) {                                      \
        put(s##i##0, s##i##1, cols, c + i * ldc, add);   \
    }

ALWAYS void tile(const size_t rows, size_t cols, size_t pairs, const int16_t *a, const int16_t *b,
                 int32_t *c, size_t ldc, bool add)
{
    __m256i z = _mm256_setzero_si256();
    __m256i s00 = z, s01 = z, s10 = z, s11 = z, s20 = z, s21 = z, s30 = z, s31 = z, s40 = z,
            s41 = z, s50 = z, s51 = z;
    for (size_t p = 0; p < pairs; p++, a += 2 * MR, b += 2 * NR) {
        __m256i b0 = _mm256_loadu_si256((const __m256i *)b);
        __m256i b1 = _mm256_loadu_si256((const __m256i *)(b + 16));
        STEP(0)
        STEP(1)
        STEP(2)
        STEP(3)
        STEP(4)
        STEP(5)
    }
    PUT(0)
    PUT(1)
    PUT(2)
    PUT(3)
    PUT(4)
    PUT(5)
}

static void s16_tile(size_t rows, size_t cols, size_t pairs, const int16_t *a, const int16_t *b,
                     int32_t *c, size_t ldc, bool add)
{
    switch (rows) {
    case 1: tile(1, cols, pairs, a, b, c, ldc, add); break;
    case 2: tile(2, cols, pairs, a, b, c, ldc, add); break;
    case 3: tile(3, cols, pairs, a, b, c, ldc, add); break;
    case 4: tile(4, cols, pairs, a, b, c, ldc, add); break;
    case 5: tile(5, cols, pairs, a, b, c, ldc, add); break;
    default: tile(6, cols, pairs, a, b, c, ldc, add); break;
    }
}

/* ---- packing ---- */

ALWAYS __m256i widen(const void *in, bool is_signed)
{
    __m128i v = _mm_loadu_si128(in);
    return is_signed ? _mm256_cvtepi8_epi16(v) : _mm256_cvtepu8_epi16(v);
}

static int16_t one(const void *in, size_t i, bool is_signed, int32_t zero)
{
    int32_t v = is_signed ? ((const int8_t *)in)[i] : ((const uint8_t *)in)[i];
    return (int16_t)(v - zero);
}

static void s16_pack(size_t width, size_t k, size_t count, const void *in, size_t k_step,
                     size_t step, bool is_signed, int32_t zero, int16_t *out)
{
    size_t p = 0;
    if (width == NR && count == NR && step == 1) {
        __m256i z = _mm256_set1_epi16((int16_t)zero);
        for (; p + 2 <= k; p += 2, out += 2 * NR) {
            const uint8_t *row = (const uint8_t *)in + p * k_step;
            __m256i u = _mm256_sub_epi16(widen(row, is_signed), z);
            __m256i v = _mm256_sub_epi16(widen(row + k_step, is_signed), z);
            __m256i low = _mm256_unpacklo_epi16(u, v), high = _mm256_unpackhi_epi16(u, v);
            _mm256_storeu_si256((__m256i *)out, _mm256_permute2x128_si256(low, high, 0x20));
            _mm256_storeu_si256((__m256i *)(out + NR), _mm256_permute2x128_si256(low, high, 0x31));
        }
    } else if (k_step == 1) {
        /* Lines along k: pairs lie side by side already. */
        __m256i z = _mm256_set1_epi16((int16_t)zero);
        for (; p + 16 <= k; p += 16, out += 16 * width) {
            for (size_t j = 0; j < width; j++) {
                int32_t pairs[8] = {0};
                if (j < count) {
                    __m256i v = widen((const uint8_t *)in + j * step + p, is_signed);
                    _mm256_storeu_si256((__m256i *)pairs, _mm256_sub_epi16(v, z));
                }
                for (size_t q = 0; q < 8; q++) {
                    memcpy(out + 2 * (q * width + j), &pairs[q], sizeof(pairs[q]));
                }
            }
        }
    }
    for (; p < k; p += 2) {
        for (size_t j = 0; j < width; j++, out += 2) {
            size_t at = p * k_step + j * step;
            out[0] = j < count ? one(in, at, is_signed, zero) : 0;
            out[1] = j < count && p + 1 < k ? one(in, at + k_step, is_signed, zero) : 0;
        }
    }
}

/* ---- quantization ---- */

/* 8 floats to 8-bit values: half to even, saturated, NaN to the lowest (max gives its second
 * operand then). */
ALWAYS __m256i to_8bit(__m256 v, __m256 zero, __m256 low, __m256 high)
{
    v = _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    v = _mm256_add_ps(v, zero);
    v = _mm256_min_ps(_mm256_max_ps(v, low), high);
    return _mm256_cvttps_epi32(v);
}

/* The low bytes of 8 lanes. */
ALWAYS void put8(__m256i v, size_t n, uint8_t *out)
{
    const __m256i pick = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                          -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                          -1, -1);
    v = _mm256_shuffle_epi8(v, pick);
    __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    if (n >= 8) {
        _mm_storel_epi64((__m128i *)out, both);
    } else {
        uint8_t bytes[16];
        _mm_storeu_si128((__m128i *)bytes, both);
        memcpy(out, bytes, n);
    }
}

#define LIMITS                                                    \
    __m256 z = _mm256_set1_ps((float)zero);                       \
    __m256 low = _mm256_set1_ps(is_signed ? -128.0f : 0.0f);      \
    __m256 high = _mm256_set1_ps(is_signed ? 127.0f : 255.0f)

static void requantize(size_t n, const int32_t *in, int32_t bias, float scale, int32_t zero,
                       bool is_signed, void *out)
{
    LIMITS;
    __m256i b = _mm256_set1_epi32(bias);
    __m256 s = _mm256_set1_ps(scale);
    for (size_t i = 0; i < n; i += 8) {
        __m256i v = n - i >= 8 ? _mm256_loadu_si256((const __m256i *)(in + i))
                               : _mm256_maskload_epi32(in + i, first(n - i));
        __m256 f = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(v, b)), s);
        put8(to_8bit(f, z, low, high), n - i, (uint8_t *)out + i);
    }
}

static void requantize_each(size_t n, const int32_t *in, const int32_t *bias, const float *scale,
                            int32_t zero, bool is_signed, void *out)
{
    LIMITS;
    for (size_t i = 0; i < n; i += 8) {
        __m256i m = first(n - i);
        __m256i v = _mm256_maskload_epi32(in + i, m);
        v = bias ? _mm256_add_epi32(v, _mm256_maskload_epi32(bias + i, m)) : v;
        __m256 f = _mm256_mul_ps(_mm256_cvtepi32_ps(v), _mm256_maskload_ps(scale + i, m));
        put8(to_8bit(f, z, low, high), n - i, (uint8_t *)out + i);
    }
}

static void dequantize(size_t n, const void *in, bool is_signed, int32_t zero, float scale,
                       float *y)
{
    __m256i z = _mm256_set1_epi32(zero);
    __m256 s = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i bytes = _mm_loadl_epi64((const __m128i *)((const uint8_t *)in + i));
        __m256i v = is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(v, z)), s));
    }
    for (; i < n; i++) {
        int32_t v = is_signed ? ((const int8_t *)in)[i] : ((const uint8_t *)in)[i];
        y[i] = (float)(v - zero) * scale;
    }
}

void nori__avx2_int8(nori__kernels *k)
{
    k->s16_mr = MR;
    k->s16_nr = NR;
    k->s16_tile = s16_tile;
    k->s16_pack = s16_pack;
    k->requantize = requantize;
    k->requantize_each = requantize_each;
    k->dequantize = dequantize;
}
