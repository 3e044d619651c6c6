/* base_product8.c: lines of bytes by blocks of 16 channels of 8-bit weights, in plain C. Exact, and
 * equal to every other level. */
#include "kernels/internal.h"

#include <math.h>

#define LINES 4
#define N NORI__U8_BLOCK

/* One quad of one line: four products a channel. */
static void quad(const uint8_t *x, const int8_t *w, uint32_t *sum)
{
    for (size_t c = 0; c < N; c++) {
        int32_t v = x[0] * w[4 * c] + x[1] * w[4 * c + 1] + x[2] * w[4 * c + 2] +
                    x[3] * w[4 * c + 3];
        sum[c] += (uint32_t)v;
    }
}

static void put(const uint32_t *sum, const nori__u8_finish *f, size_t c0, size_t line, void *y,
                size_t ldy)
{
    size_t n = f->channels - c0 < N ? f->channels - c0 : N, at = line * ldy + c0;
    for (size_t c = 0; c < n; c++) {
        if (f->form == NORI__U8_SUMS) {
            ((int32_t *)y)[at + c] = (int32_t)sum[c];
            continue;
        }
        float v = (float)(int32_t)sum[c] * f->scale[c0 + c];
        if (f->form == NORI__U8_FLOATS) {
            ((float *)y)[at + c] = f->shift ? v + f->shift[c0 + c] : v;
            continue;
        }
        v = v > f->low ? v : f->low; /* NaN: the lowest */
        v = v < f->high ? v : f->high;
        ((uint8_t *)y)[at + c] = (uint8_t)((int32_t)nearbyintf(v) + f->zero);
    }
}

static void u8_tile(size_t lines, size_t blocks, size_t terms, size_t quads, const int64_t *offset,
                    const uint8_t *const *x, const nori__u8_block *w, void *y, size_t ldy,
                    const nori__u8_finish *f)
{
    for (size_t b = 0; b < blocks; b++) {
        for (size_t i = 0; i < lines; i++) {
            uint32_t sum[N];
            const int8_t *p = w[b].w;
            memcpy(sum, f->start + b * N, sizeof(sum));
            for (size_t t = 0; t < terms; t++) {
                for (size_t q = 0; q < quads; q++, p += 4 * N) {
                    quad(x[i] + offset[t] + 4 * q, p, sum);
                }
            }
            for (size_t e = 0; e < w[b].rests; e++) {
                quad(x[i] + offset[w[b].at[2 * e]] + 4 * w[b].at[2 * e + 1],
                     w[b].rest + e * 4 * N, sum);
            }
            put(sum, f, b * N, i, y, ldy);
        }
    }
}

static void u8_depthwise(size_t lines, size_t taps, const int64_t *offset, const uint8_t *x,
                         size_t step, const int16_t *w, void *y, size_t ldy,
                         const nori__u8_finish *f)
{
    size_t pairs = (taps + 1) / 2;
    for (size_t c0 = 0; c0 < f->channels; c0 += N, w += pairs * N * 2) {
        for (size_t i = 0; i < lines; i++) {
            uint32_t sum[N];
            const uint8_t *p = x + i * step + c0;
            memcpy(sum, f->start + c0, sizeof(sum));
            for (size_t t = 0; t < taps; t++) {
                const int16_t *wt = w + t / 2 * N * 2 + t % 2;
                for (size_t c = 0; c < N; c++) {
                    sum[c] += (uint32_t)(p[offset[t] + (int64_t)c] * wt[2 * c]);
                }
            }
            put(sum, f, c0, i, y, ldy);
        }
    }
}

static const uint8_t order[N] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

void nori__base_product8(nori__kernels *k)
{
    k->u8_lines = LINES;
    k->u8_blocks = 1;
    k->u8_pairs = false;
    k->u8_tile = u8_tile;
    k->u8_deep = N;
    k->u8_deep_order = order;
    k->u8_depthwise = u8_depthwise;
}
