/* avx2_move.c: moving bits with AVX2. */
#include "kernels/internal.h"

#include <immintrin.h>

/* 8 x 8 words. */
static inline __attribute__((always_inline)) void turn(const uint32_t *in, size_t in_step,
                                                       uint32_t *out, size_t out_step)
{
    __m256i r[8], t[8], u[8];
    for (int i = 0; i < 8; i++) {
        r[i] = _mm256_loadu_si256((const __m256i *)(in + (size_t)i * in_step));
    }
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        u[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        u[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        u[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_si256((__m256i *)(out + (size_t)i * out_step),
                            _mm256_permute2x128_si256(u[i], u[i + 4], 0x20));
        _mm256_storeu_si256((__m256i *)(out + (size_t)(i + 4) * out_step),
                            _mm256_permute2x128_si256(u[i], u[i + 4], 0x31));
    }
}

static void x32_transpose(size_t rows, size_t cols, const uint32_t *in, size_t in_step,
                          uint32_t *out, size_t out_step)
{
    size_t r8 = rows / 8 * 8, c8 = cols / 8 * 8;
    for (size_t c = 0; c < c8; c += 8) {
        for (size_t r = 0; r < r8; r += 8) {
            turn(in + r * in_step + c, in_step, out + c * out_step + r, out_step);
        }
    }
    for (size_t c = 0; c < cols; c++) {
        for (size_t r = c < c8 ? r8 : 0; r < rows; r++) {
            out[c * out_step + r] = in[r * in_step + c];
        }
    }
}

/* 16 x 16 bytes, of which the first rows and columns are read and written. room: 16 bytes from the start
 * of every row may be read. */
static inline __attribute__((always_inline)) void turn8(size_t rows, size_t cols,
                                                        const uint8_t *in, size_t in_step,
                                                        uint8_t *out, size_t out_step,
                                                        __m128i flip, bool room)
{
    __m128i a[16], b[16];
    uint8_t some[16] = {0};
    for (size_t i = 0; i < 16; i++) {
        const uint8_t *row = in + (i < rows ? i : rows - 1) * in_step;
        if (cols < 16 && !room) {
            memcpy(some, row, cols);
            row = some;
        }
        a[i] = _mm_xor_si128(_mm_loadu_si128((const __m128i *)row), flip);
    }
    /* Four times: lines i and i + 8 woven into lines 2 i and 2 i + 1. */
    for (size_t i = 0; i < 8; i++) {
        b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
        b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
    }
    for (size_t i = 0; i < 8; i++) {
        a[2 * i] = _mm_unpacklo_epi8(b[i], b[i + 8]);
        a[2 * i + 1] = _mm_unpackhi_epi8(b[i], b[i + 8]);
    }
    for (size_t i = 0; i < 8; i++) {
        b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
        b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
    }
    for (size_t i = 0; i < 8; i++) {
        a[2 * i] = _mm_unpacklo_epi8(b[i], b[i + 8]);
        a[2 * i + 1] = _mm_unpackhi_epi8(b[i], b[i + 8]);
    }
    for (size_t i = 0; i < cols; i++) {
        if (rows >= 16) {
            _mm_storeu_si128((__m128i *)(out + i * out_step), a[i]);
        } else {
            _mm_storeu_si128((__m128i *)some, a[i]);
            memcpy(out + i * out_step, some, rows);
        }
    }
}

static void x8_transpose(size_t rows, size_t cols, const uint8_t *in, size_t in_step, uint8_t *out,
                         size_t out_step, uint8_t flip)
{
    __m128i f = _mm_set1_epi8((char)flip);
    if (cols <= 4) { /* less than turning takes */
        for (size_t c = 0; c < cols; c++) {
            for (size_t r = 0; r < rows; r++) {
                out[c * out_step + r] = in[r * in_step + c] ^ flip;
            }
        }
        return;
    }
    for (size_t c = 0; c < cols; c += 16) {
        for (size_t r = 0; r < rows; r += 16) {
            size_t nr = rows - r < 16 ? rows - r : 16, nc = cols - c < 16 ? cols - c : 16;
            const uint8_t *from = in + r * in_step + c;
            uint8_t *to = out + c * out_step + r;
            /* What lies beyond a row is the next one, where rows lie close. */
            bool room = in_step == cols && (rows - 1 - r - (nr - 1)) * in_step + nc >= 16;
            if (nr == 16 && nc == 16) {
                turn8(16, 16, from, in_step, to, out_step, f, true);
            } else if (nr > 3) {
                turn8(nr, nc, from, in_step, to, out_step, f, room);
            } else {
                for (size_t i = 0; i < nr; i++) {
                    for (size_t j = 0; j < nc; j++) {
                        to[j * out_step + i] = from[i * in_step + j] ^ flip;
                    }
                }
            }
        }
    }
}

static void f16_to_f32(size_t n, const uint16_t *x, float *y)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(x + i));
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(h));
    }
    for (; i < n; i++) {
        y[i] = _cvtsh_ss(x[i]);
    }
}

static void f32_to_f16(size_t n, const float *x, uint16_t *y)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(y + i), h);
    }
    for (; i < n; i++) {
        y[i] = (uint16_t)_cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
    }
}

void nori__avx2_move(nori__kernels *k)
{
    k->f16_to_f32 = f16_to_f32;
    k->f32_to_f16 = f32_to_f16;
    k->x8_transpose = x8_transpose;
    k->x32_transpose = x32_transpose;
}
