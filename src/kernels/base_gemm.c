/* base_gemm.c: float products in plain C: tile 4 x 8, packing. */
#include "kernels/internal.h"

#define MR 4
#define NR 8

static float finished(float sum, size_t row, size_t col, const nori__f32_finish *f)
{
    if (f->row) {
        sum += f->row[row];
    }
    if (f->col) {
        sum += f->col[col];
    }
    if (f->add) {
        sum += f->add[row * f->ld_add + col];
    }
    return f->clamp ? nori__clamp(sum, f->low, f->high) : sum;
}

static void f32_tile(size_t rows, size_t cols, size_t k, const float *a, size_t a_row, size_t a_k,
                     const float *b, float *c, size_t ldc, const nori__f32_finish *finish)
{
    float sum[MR][NR] = {{0}};
    /* Rows that are not there repeat the last: a constant count is faster. */
    size_t at[MR];
    for (size_t i = 0; i < MR; i++) {
        at[i] = (i < rows ? i : rows - 1) * a_row;
    }
    for (size_t p = 0; p < k; p++, a += a_k, b += NR) {
        for (size_t i = 0; i < MR; i++) {
            float v = a[at[i]];
            for (size_t j = 0; j < NR; j++) {
                sum[i][j] += v * b[j];
            }
        }
    }
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            c[i * ldc + j] = finished(sum[i][j], i, j, finish);
        }
    }
}

static void f32_pack(size_t width, size_t k, size_t count, const float *in, size_t k_step,
                     size_t step, float *out)
{
    if (step == 1) {
        for (size_t p = 0; p < k; p++, out += width) {
            memcpy(out, in + p * k_step, count * sizeof(float));
            memset(out + count, 0, (width - count) * sizeof(float));
        }
        return;
    }
    for (size_t p = 0; p < k; p++, out += width) {
        const nori__any_f32 *row = in + p * k_step;
        for (size_t j = 0; j < count; j++) {
            out[j] = row[j * step];
        }
        for (size_t j = count; j < width; j++) {
            out[j] = 0;
        }
    }
}

static void f32_patches(size_t k, const int64_t *offset, const float *x, size_t pieces,
                        const size_t *from, const int64_t *where, size_t step, float *out)
{
    for (size_t p = 0; p < k; p++, out += NR) {
        for (size_t s = 0; s < pieces; s++) {
            const float *in = x + offset[p] + where[s];
            size_t end = s + 1 < pieces ? from[s + 1] : NR;
            for (size_t j = from[s]; j < end; j++, in += step) {
                out[j] = *in;
            }
        }
    }
}

static void f32_few_rows(size_t rows, size_t n, size_t k, const float *x, size_t ldx,
                         const float *b, float *y, size_t ldy, const nori__f32_finish *finish)
{
    for (size_t j = 0; j < n; j += NR, b += NR * k) {
        size_t cols = n - j < NR ? n - j : NR;
        for (size_t i = 0; i < rows; i++) {
            float sum[NR] = {0};
            for (size_t p = 0; p < k; p++) {
                float v = x[i * ldx + p];
                for (size_t c = 0; c < NR; c++) {
                    sum[c] += v * b[p * NR + c];
                }
            }
            float *out = y + i * ldy + j;
            for (size_t c = 0; c < cols; c++) {
                out[c] = finished(sum[c], i, j + c, finish);
            }
        }
    }
}

void nori__base_gemm(nori__kernels *k)
{
    k->f32_mr = MR;
    k->f32_nr = NR;
    k->f32_depth = 288;
    k->f32_near = 256 * 1024;
    k->f32_tile = f32_tile;
    k->f32_pack = f32_pack;
    k->f32_patches = f32_patches;
    k->f32_few_rows = f32_few_rows;
}
