/* base_move.c: moving bits in plain C. */
#include "base/half.h"
#include "kernels/internal.h"

#define BLOCK 16

/* In blocks, so that lines of both sides stay in the first cache. */
static void x32_transpose(size_t rows, size_t cols, const uint32_t *in, size_t in_step,
                          uint32_t *out, size_t out_step)
{
    for (size_t r0 = 0; r0 < rows; r0 += BLOCK) {
        size_t r1 = rows - r0 < BLOCK ? rows : r0 + BLOCK;
        for (size_t c0 = 0; c0 < cols; c0 += BLOCK) {
            size_t c1 = cols - c0 < BLOCK ? cols : c0 + BLOCK;
            for (size_t c = c0; c < c1; c++) {
                for (size_t r = r0; r < r1; r++) {
                    out[c * out_step + r] = in[r * in_step + c];
                }
            }
        }
    }
}

static void x8_transpose(size_t rows, size_t cols, const uint8_t *in, size_t in_step, uint8_t *out,
                         size_t out_step, uint8_t flip)
{
    for (size_t c0 = 0; c0 < cols; c0 += BLOCK) {
        size_t c1 = cols - c0 < BLOCK ? cols : c0 + BLOCK;
        for (size_t r = 0; r < rows; r++) {
            for (size_t c = c0; c < c1; c++) {
                out[c * out_step + r] = in[r * in_step + c] ^ flip;
            }
        }
    }
}

static void f16_to_f32(size_t n, const uint16_t *x, float *y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = nori__f16_to_f32(x[i]);
    }
}

static void f32_to_f16(size_t n, const float *x, uint16_t *y)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = nori__f32_to_f16(x[i]);
    }
}

void nori__base_move(nori__kernels *k)
{
    k->f16_to_f32 = f16_to_f32;
    k->f32_to_f16 = f32_to_f16;
    k->x8_transpose = x8_transpose;
    k->x32_transpose = x32_transpose;
}
