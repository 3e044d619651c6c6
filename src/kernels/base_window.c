/* base_window.c: depthwise convolution and pooling windows in plain C. */
#include "kernels/internal.h"

#include <math.h>

static void f32_depthwise(size_t height, size_t width, size_t kh, size_t kw, size_t sh, size_t sw,
                          size_t dh, size_t dw, const float *x, size_t x_step, const float *w,
                          float *y, const nori__f32_finish *f)
{
    for (size_t h = 0; h < height; h++, y += width) {
        for (size_t j = 0; j < width; j++) {
            float sum = f->row ? f->row[0] : 0;
            for (size_t r = 0; r < kh; r++) {
                const float *in = x + (h * sh + r * dh) * x_step + j * sw;
                for (size_t c = 0; c < kw; c++) {
                    sum += w[r * kw + c] * in[c * dw];
                }
            }
            sum += f->add ? f->add[h * f->ld_add + j] : 0;
            y[j] = f->clamp ? nori__clamp(sum, f->low, f->high) : sum;
        }
    }
}

static void f32_window_max(size_t n, size_t kw, size_t stride, size_t dilation, const float *x,
                           float *y)
{
    for (size_t j = 0; j < n; j++) {
        float best = -INFINITY;
        for (size_t c = 0; c < kw; c++) {
            float v = x[j * stride + c * dilation];
            best = v > best || isnan(v) ? v : best;
        }
        y[j] = best;
    }
}

static void f32_window_sum(size_t n, size_t kw, size_t stride, size_t dilation, const float *x,
                           float *y)
{
    for (size_t j = 0; j < n; j++) {
        float sum = 0;
        for (size_t c = 0; c < kw; c++) {
            sum += x[j * stride + c * dilation];
        }
        y[j] = sum;
    }
}

void nori__base_window(nori__kernels *k)
{
    k->f32_depthwise = f32_depthwise;
    k->f32_window_max = f32_window_max;
    k->f32_window_sum = f32_window_sum;
}
