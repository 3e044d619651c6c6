/* avx2_window.c: depthwise convolution and pooling rows with AVX2 and FMA.
 *
 * A depthwise output vector needs one multiply-add for each kernel element and is bound by loads
 * and latency: two output rows share their loads, two vectors hide the latency; kernels of 3 and 5
 * are compiled apart. */
#include "kernels/internal.h"

#include <immintrin.h>

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS __m256i first(size_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones + 8 - (n < 8 ? n : 8)));
}

ALWAYS __m256 every_second(const float *in)
{
    __m256 v = _mm256_shuffle_ps(_mm256_loadu_ps(in), _mm256_loadu_ps(in + 8), 0x88);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
}

/* 8 neighbouring outputs' inputs: in[0], in[sw], in[2 sw] ... */
ALWAYS __m256 take(const float *in, const size_t sw)
{
    if (sw == 1) {
        return _mm256_loadu_ps(in);
    }
    if (sw == 2) {
        return every_second(in);
    }
    return _mm256_set_ps(in[7 * sw], in[6 * sw], in[5 * sw], in[4 * sw], in[3 * sw], in[2 * sw],
                         in[sw], in[0]);
}

ALWAYS void put(__m256 v, size_t h, size_t j, size_t width, float *y, const nori__f32_finish *f)
{
    size_t left = width - j;
    const float *add = f->add ? f->add + h * f->ld_add + j : NULL;
    float *to = y + h * width + j;
    if (NORI__LIKELY(left >= 8)) {
        v = add ? _mm256_add_ps(v, _mm256_loadu_ps(add)) : v;
    } else {
        v = add ? _mm256_add_ps(v, _mm256_maskload_ps(add, first(left))) : v;
    }
    if (f->clamp) {
        v = _mm256_max_ps(_mm256_set1_ps(f->low), v);
        v = _mm256_min_ps(_mm256_set1_ps(f->high), v);
    }
    if (NORI__LIKELY(left >= 8)) {
        _mm256_storeu_ps(to, v);
    } else {
        _mm256_maskstore_ps(to, first(left), v);
    }
}

/* rows x (8 vecs) outputs of a k x k kernel with stride sw both ways. All four are constants where
 * this is inlined, so that sums stay in registers. Each sum goes row by row of the kernel. */
ALWAYS void block(const size_t k, const size_t sw, const size_t rows, const size_t vecs,
                  const float *in, size_t x_step, const float *w, __m256 bias, __m256 s[2][2])
{
    for (size_t q = 0; q < rows; q++) {
        for (size_t v = 0; v < vecs; v++) {
            s[q][v] = bias;
        }
    }
    for (size_t r = 0; r < k + sw * (rows - 1); r++, in += x_step) {
        for (size_t c = 0; c < k; c++) {
            for (size_t v = 0; v < vecs; v++) {
                __m256 x = take(in + c + 8 * v * sw, sw);
                for (size_t q = 0; q < rows; q++) {
                    if (r >= q * sw && r - q * sw < k) {
                        __m256 t = _mm256_broadcast_ss(w + (r - q * sw) * k + c);
                        s[q][v] = _mm256_fmadd_ps(x, t, s[q][v]);
                    }
                }
            }
        }
    }
}

ALWAYS void square(const size_t k, const size_t sw, size_t height, size_t width, const float *x,
                   size_t x_step, const float *w, float *y, const nori__f32_finish *f)
{
    __m256 bias = f->row ? _mm256_broadcast_ss(f->row) : _mm256_setzero_ps();
    __m256 s[2][2];
    size_t h = 0;
    for (; h + 2 <= height; h += 2) {
        const float *in = x + h * sw * x_step;
        size_t j = 0;
        for (; j + 8 < width; j += 16) {
            block(k, sw, 2, 2, in + j * sw, x_step, w, bias, s);
            put(s[0][0], h, j, width, y, f);
            put(s[0][1], h, j + 8, width, y, f);
            put(s[1][0], h + 1, j, width, y, f);
            put(s[1][1], h + 1, j + 8, width, y, f);
        }
        if (j < width) {
            block(k, sw, 2, 1, in + j * sw, x_step, w, bias, s);
            put(s[0][0], h, j, width, y, f);
            put(s[1][0], h + 1, j, width, y, f);
        }
    }
    for (size_t j = 0; h < height && j < width; j += 8) {
        block(k, sw, 1, 1, x + h * sw * x_step + j * sw, x_step, w, bias, s);
        put(s[0][0], h, j, width, y, f);
    }
}

static void any(size_t height, size_t width, size_t kh, size_t kw, size_t sh, size_t sw, size_t dh,
                size_t dw, const float *x, size_t x_step, const float *w, float *y,
                const nori__f32_finish *f)
{
    __m256 bias = f->row ? _mm256_broadcast_ss(f->row) : _mm256_setzero_ps();
    for (size_t h = 0; h < height; h++) {
        for (size_t j = 0; j < width; j += 8) {
            __m256 s = bias;
            for (size_t r = 0; r < kh; r++) {
                const float *in = x + (h * sh + r * dh) * x_step + j * sw;
                for (size_t c = 0; c < kw; c++, in += dw) {
                    __m256 v = sw == 1 ? take(in, 1) : sw == 2 ? take(in, 2) : take(in, sw);
                    s = _mm256_fmadd_ps(v, _mm256_broadcast_ss(w + r * kw + c), s);
                }
            }
            put(s, h, j, width, y, f);
        }
    }
}

static void f32_depthwise(size_t height, size_t width, size_t kh, size_t kw, size_t sh, size_t sw,
                          size_t dh, size_t dw, const float *x, size_t x_step, const float *w,
                          float *y, const nori__f32_finish *f)
{
    bool square_kernel = kh == kw && dh == 1 && dw == 1 && sh == sw;
    if (square_kernel && kh == 3 && sw == 1) {
        square(3, 1, height, width, x, x_step, w, y, f);
    } else if (square_kernel && kh == 3 && sw == 2) {
        square(3, 2, height, width, x, x_step, w, y, f);
    } else if (square_kernel && kh == 5 && sw == 1) {
        square(5, 1, height, width, x, x_step, w, y, f);
    } else if (square_kernel && kh == 5 && sw == 2) {
        square(5, 2, height, width, x, x_step, w, y, f);
    } else {
        any(height, width, kh, kw, sh, sw, dh, dw, x, x_step, w, y, f);
    }
}

/* ---- pooling ---- */

/* The larger, NaN if either is. */
ALWAYS __m256 larger(__m256 a, __m256 b)
{
    __m256 m = _mm256_max_ps(a, b); /* b where either is NaN */
    return _mm256_blendv_ps(m, a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}

/* Outputs whose vector loads stay inside what the outputs of the row read anyway. */
static size_t whole(size_t n, size_t stride)
{
    size_t over = stride == 1 ? 0 : 1; /* stride 2 loads one element past the last */
    return stride > 2 || n < 8 + over ? 0 : (n - over) / 8 * 8;
}

static void f32_window_max(size_t n, size_t kw, size_t stride, size_t dilation, const float *x,
                           float *y)
{
    size_t end = whole(n, stride);
    for (size_t j = 0; j < end; j += 8) {
        const float *in = x + j * stride;
        __m256 best = stride == 1 ? take(in, 1) : take(in, 2);
        for (size_t c = 1; c < kw; c++) {
            in += dilation;
            best = larger(best, stride == 1 ? take(in, 1) : take(in, 2));
        }
        _mm256_storeu_ps(y + j, best);
    }
    for (size_t j = end; j < n; j++) {
        float best = x[j * stride];
        for (size_t c = 1; c < kw; c++) {
            float v = x[j * stride + c * dilation];
            best = v > best || v != v ? v : best;
        }
        y[j] = best;
    }
}

static void f32_window_sum(size_t n, size_t kw, size_t stride, size_t dilation, const float *x,
                           float *y)
{
    size_t end = whole(n, stride);
    for (size_t j = 0; j < end; j += 8) {
        const float *in = x + j * stride;
        __m256 sum = _mm256_setzero_ps();
        for (size_t c = 0; c < kw; c++, in += dilation) {
            sum = _mm256_add_ps(sum, stride == 1 ? take(in, 1) : take(in, 2));
        }
        _mm256_storeu_ps(y + j, sum);
    }
    for (size_t j = end; j < n; j++) {
        float sum = 0;
        for (size_t c = 0; c < kw; c++) {
            sum += x[j * stride + c * dilation];
        }
        y[j] = sum;
    }
}

void nori__avx2_window(nori__kernels *k)
{
    k->f32_depthwise = f32_depthwise;
    k->f32_window_max = f32_window_max;
    k->f32_window_sum = f32_window_sum;
}
