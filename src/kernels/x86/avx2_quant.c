/* avx2_quant.c: element by element on 8-bit values with AVX2; the same bits as base_quant.c. */
#include "kernels/internal.h"

#include <immintrin.h>

#define ALWAYS static inline __attribute__((always_inline))
#define STEP 32

ALWAYS __m256i load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
ALWAYS void store(void *p, __m256i v) { _mm256_storeu_si256((__m256i *)p, v); }

/* Rows of 16 entries; a byte picks from the row that its high half names, others give 0. */
static void x8_table(size_t n, const uint8_t *x, const uint8_t *table, uint8_t *y)
{
    const __m256i past = _mm256_set1_epi8(0x70);
    __m256i row[16];
    size_t i = 0;
    if (n >= STEP) {
        for (int h = 0; h < 16; h++) {
            row[h] = _mm256_broadcastsi128_si256(
                _mm_loadu_si128((const __m128i *)(table + 16 * h)));
        }
    }
    for (; i + STEP <= n; i += STEP) {
        __m256i v = load(x + i), sum = _mm256_setzero_si256();
        for (int h = 0; h < 16; h++) {
            __m256i own = _mm256_xor_si256(v, _mm256_set1_epi8((char)(h << 4)));
            sum = _mm256_or_si256(sum, _mm256_shuffle_epi8(row[h], _mm256_adds_epu8(own, past)));
        }
        store(y + i, sum);
    }
    for (; i < n; i++) {
        y[i] = table[x[i]];
    }
}

static void x8_max(size_t n, const void *a, const void *b, bool is_signed, void *y)
{
    const uint8_t *u = a, *v = b, flip = is_signed ? 0x80 : 0;
    uint8_t *out = y;
    size_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        __m256i p = load(u + i), q = load(v + i);
        store(out + i, is_signed ? _mm256_max_epi8(p, q) : _mm256_max_epu8(p, q));
    }
    for (; i < n; i++) {
        out[i] = (uint8_t)(u[i] ^ flip) > (uint8_t)(v[i] ^ flip) ? u[i] : v[i];
    }
}

/* 8 bytes minus their zero point. */
ALWAYS __m256i widen(const uint8_t *x, bool is_signed, __m256i zero)
{
    __m128i bytes = _mm_loadl_epi64((const __m128i *)x);
    __m256i v = is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
    return _mm256_sub_epi32(v, zero);
}

/* The first n < 32 bytes; step 0: one byte all over. */
ALWAYS const uint8_t *whole(const uint8_t *x, size_t n, size_t step, uint8_t room[STEP])
{
    memset(room, step == 0 ? x[0] : 0, STEP);
    if (step == 1) {
        memcpy(room, x, n);
    }
    return room;
}

/* 8 floats to whole numbers in the range of the type; NaN to the lowest (max gives its second
 * operand then). */
ALWAYS __m256i whole_numbers(__m256 v, __m256 zero, __m256 low, __m256 high)
{
    v = _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    v = _mm256_min_ps(_mm256_max_ps(_mm256_add_ps(v, zero), low), high);
    return _mm256_cvttps_epi32(v);
}

/* 32 numbers of four vectors to bytes, in order. */
ALWAYS __m256i to_bytes(const __m256i v[4], bool is_signed)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i low = _mm256_packs_epi32(v[0], v[1]), high = _mm256_packs_epi32(v[2], v[3]);
    __m256i all = is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
    return _mm256_permutevar8x32_epi32(all, order);
}

ALWAYS void pair(size_t n, const uint8_t *a, size_t a_step, const uint8_t *b, size_t b_step,
                 const nori__q8_pair *q, uint8_t *y, const bool product, const bool is_signed)
{
    const __m256i a_zero = _mm256_set1_epi32(q->a_zero), b_zero = _mm256_set1_epi32(q->b_zero);
    const __m256 a_scale = _mm256_set1_ps(q->a_scale), b_scale = _mm256_set1_ps(q->b_scale);
    const __m256 y_scale = _mm256_set1_ps(q->y_scale), zero = _mm256_set1_ps((float)q->y_zero);
    const __m256 low = _mm256_set1_ps(is_signed ? -128.0f : 0.0f);
    const __m256 high = _mm256_set1_ps(is_signed ? 127.0f : 255.0f);
    uint8_t a_room[STEP], b_room[STEP], y_room[STEP];
    if (a_step == 0 && n > 0) {
        whole(a, 0, 0, a_room);
    }
    if (b_step == 0 && n > 0) {
        whole(b, 0, 0, b_room);
    }
    for (size_t i = 0; i < n; i += STEP) {
        size_t left = n - i;
        const uint8_t *u = a_step == 0 ? a_room
                           : left < STEP ? whole(a + i, left, 1, a_room)
                                         : a + i;
        const uint8_t *v = b_step == 0 ? b_room
                           : left < STEP ? whole(b + i, left, 1, b_room)
                                         : b + i;
        __m256i r[4];
        for (int k = 0; k < 4; k++) {
            __m256i s = widen(u + 8 * k, is_signed, a_zero);
            __m256i t = widen(v + 8 * k, is_signed, b_zero);
            __m256 f;
            if (product) {
                f = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_mullo_epi32(s, t)), y_scale);
            } else {
                f = _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(s), a_scale),
                                  _mm256_mul_ps(_mm256_cvtepi32_ps(t), b_scale));
                f = _mm256_div_ps(f, y_scale);
            }
            r[k] = whole_numbers(f, zero, low, high);
        }
        if (left < STEP) {
            store(y_room, to_bytes(r, is_signed));
            memcpy(y + i, y_room, left);
        } else {
            store(y + i, to_bytes(r, is_signed));
        }
    }
}

static void q8_add(size_t n, const void *a, size_t a_step, const void *b, size_t b_step,
                   const nori__q8_pair *q, void *y)
{
    if (q->is_signed) {
        pair(n, a, a_step, b, b_step, q, y, false, true);
    } else {
        pair(n, a, a_step, b, b_step, q, y, false, false);
    }
}

static void q8_mul(size_t n, const void *a, size_t a_step, const void *b, size_t b_step,
                   const nori__q8_pair *q, void *y)
{
    if (q->is_signed) {
        pair(n, a, a_step, b, b_step, q, y, true, true);
    } else {
        pair(n, a, a_step, b, b_step, q, y, true, false);
    }
}

static void quantize(size_t n, const float *x, float scale, int32_t zero, bool is_signed,
                     void *out)
{
    const __m256 s = _mm256_set1_ps(scale), z = _mm256_set1_ps((float)zero);
    const __m256 low = _mm256_set1_ps(is_signed ? -128.0f : 0.0f);
    const __m256 high = _mm256_set1_ps(is_signed ? 127.0f : 255.0f);
    float room[STEP];
    uint8_t bytes[STEP];
    for (size_t i = 0; i < n; i += STEP) {
        size_t left = n - i;
        const float *from = x + i;
        if (left < STEP) {
            memset(room, 0, sizeof(room));
            memcpy(room, from, left * sizeof(*from));
            from = room;
        }
        __m256i r[4];
        for (int k = 0; k < 4; k++) {
            __m256 v = _mm256_div_ps(_mm256_loadu_ps(from + 8 * k), s);
            r[k] = whole_numbers(v, z, low, high);
        }
        if (left < STEP) {
            store(bytes, to_bytes(r, is_signed));
            memcpy((uint8_t *)out + i, bytes, left);
        } else {
            store((uint8_t *)out + i, to_bytes(r, is_signed));
        }
    }
}

/* min and max give their second operand where either is NaN: what was seen goes second, and NaN is
 * kept apart. */
static bool f32_range(size_t n, const float *x, float *low, float *high)
{
    __m256 least[2] = {_mm256_set1_ps(*low), _mm256_set1_ps(*low)};
    __m256 most[2] = {_mm256_set1_ps(*high), _mm256_set1_ps(*high)};
    __m256 odd = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        for (int k = 0; k < 2; k++) {
            __m256 v = _mm256_loadu_ps(x + i + 8 * k);
            least[k] = _mm256_min_ps(v, least[k]);
            most[k] = _mm256_max_ps(v, most[k]);
            odd = _mm256_or_ps(odd, _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
        }
    }
    float lows[8], highs[8];
    _mm256_storeu_ps(lows, _mm256_min_ps(least[0], least[1]));
    _mm256_storeu_ps(highs, _mm256_max_ps(most[0], most[1]));
    bool numbers = _mm256_movemask_ps(odd) == 0;
    for (int k = 0; k < 8; k++) {
        *low = lows[k] < *low ? lows[k] : *low;
        *high = highs[k] > *high ? highs[k] : *high;
    }
    for (; i < n; i++) {
        *low = x[i] < *low ? x[i] : *low;
        *high = x[i] > *high ? x[i] : *high;
        numbers = numbers && x[i] == x[i];
    }
    return numbers;
}

static double q8_sum(size_t n, const void *x, bool is_signed, int32_t zero, float scale)
{
    const __m256i z = _mm256_set1_epi32(zero);
    const __m256 s = _mm256_set1_ps(scale);
    __m256d even = _mm256_setzero_pd(), odd = even;
    double lanes[4], sum = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_mul_ps(
            _mm256_cvtepi32_ps(widen((const uint8_t *)x + i, is_signed, z)), s);
        even = _mm256_add_pd(even, _mm256_cvtps_pd(_mm256_castps256_ps128(v)));
        odd = _mm256_add_pd(odd, _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)));
    }
    _mm256_storeu_pd(lanes, _mm256_add_pd(even, odd));
    for (int l = 0; l < 4; l++) {
        sum += lanes[l];
    }
    for (; i < n; i++) {
        int32_t v = is_signed ? ((const int8_t *)x)[i] : ((const uint8_t *)x)[i];
        sum += (double)((float)(v - zero) * scale);
    }
    return sum;
}

static void f32_from_sums(size_t n, const int32_t *sums, const float *scale, size_t scale_step,
                          const float *bias, size_t bias_step, float *y)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_cvtepi32_ps(load(sums + i));
        v = _mm256_mul_ps(v, scale_step ? _mm256_loadu_ps(scale + i) : _mm256_set1_ps(*scale));
        if (bias) {
            v = _mm256_add_ps(v, bias_step ? _mm256_loadu_ps(bias + i) : _mm256_set1_ps(*bias));
        }
        _mm256_storeu_ps(y + i, v);
    }
    for (; i < n; i++) {
        int32_t sum;
        memcpy(&sum, sums + i, sizeof(sum));
        float v = (float)sum * scale[i * scale_step];
        y[i] = bias ? v + bias[i * bias_step] : v;
    }
}

void nori__avx2_quant(nori__kernels *k)
{
    k->x8_table = x8_table;
    k->x8_max = x8_max;
    k->q8_add = q8_add;
    k->q8_mul = q8_mul;
    k->quantize = quantize;
    k->f32_range = f32_range;
    k->q8_sum = q8_sum;
    k->f32_from_sums = f32_from_sums;
}
