/* avx2_gemm.c: float products with AVX2 and FMA: tile 6 x 16.
 *
 * 12 accumulators, 2 vectors of B and 2 of broadcast A fill the 16 registers. Row counts are
 * compiled apart, so that a short last panel costs what it has. */
#include "kernels/internal.h"

#include <immintrin.h>

#define MR 6
#define NR 16
#define ALWAYS static inline __attribute__((always_inline))

/* Mask of the first n of 8 lanes. */
ALWAYS __m256i first(size_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(ones + 8 - (n < 8 ? n : 8)));
}

ALWAYS __m256 limit(__m256 v, const nori__f32_finish *f)
{
    if (f->clamp) {
        /* max and min give their second operand when either is NaN. */
        v = _mm256_max_ps(_mm256_set1_ps(f->low), v);
        v = _mm256_min_ps(_mm256_set1_ps(f->high), v);
    }
    return v;
}

/* One row of sums to c. */
ALWAYS void put(__m256 v0, __m256 v1, size_t row, size_t cols, float *c, const nori__f32_finish *f)
{
    if (f->row) {
        __m256 add = _mm256_broadcast_ss(f->row + row);
        v0 = _mm256_add_ps(v0, add);
        v1 = _mm256_add_ps(v1, add);
    }
    const float *old = f->add ? f->add + row * f->ld_add : NULL;
    if (NORI__LIKELY(cols == NR)) {
        if (f->col) {
            v0 = _mm256_add_ps(v0, _mm256_loadu_ps(f->col));
            v1 = _mm256_add_ps(v1, _mm256_loadu_ps(f->col + 8));
        }
        if (old) {
            v0 = _mm256_add_ps(v0, _mm256_loadu_ps(old));
            v1 = _mm256_add_ps(v1, _mm256_loadu_ps(old + 8));
        }
        _mm256_storeu_ps(c, limit(v0, f));
        _mm256_storeu_ps(c + 8, limit(v1, f));
        return;
    }
    __m256i m0 = first(cols), m1 = first(cols > 8 ? cols - 8 : 0);
    if (f->col) {
        v0 = _mm256_add_ps(v0, _mm256_maskload_ps(f->col, m0));
        if (cols > 8) {
            v1 = _mm256_add_ps(v1, _mm256_maskload_ps(f->col + 8, m1));
        }
    }
    if (old) {
        v0 = _mm256_add_ps(v0, _mm256_maskload_ps(old, m0));
        if (cols > 8) {
            v1 = _mm256_add_ps(v1, _mm256_maskload_ps(old + 8, m1));
        }
    }
    _mm256_maskstore_ps(c, m0, limit(v0, f));
    if (cols > 8) {
        _mm256_maskstore_ps(c + 8, m1, limit(v1, f));
    }
}

/* rows is a constant where this is inlined: what is not needed goes away. */
ALWAYS void tile(const size_t rows, size_t cols, size_t k, const float *a, const float *b, float *c,
                 size_t ldc, const nori__f32_finish *f)
{
    __m256 z = _mm256_setzero_ps();
    __m256 c00 = z, c01 = z, c10 = z, c11 = z, c20 = z, c21 = z, c30 = z, c31 = z, c40 = z,
           c41 = z, c50 = z, c51 = z;
    for (size_t p = 0; p < k; p++, a += MR, b += NR) {
        __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
        __m256 v = _mm256_broadcast_ss(a);
        c00 = _mm256_fmadd_ps(v, b0, c00);
        c01 = _mm256_fmadd_ps(v, b1, c01);
        if (rows > 1) {
            v = _mm256_broadcast_ss(a + 1);
            c10 = _mm256_fmadd_ps(v, b0, c10);
            c11 = _mm256_fmadd_ps(v, b1, c11);
        }
        if (rows > 2) {
            v = _mm256_broadcast_ss(a + 2);
            c20 = _mm256_fmadd_ps(v, b0, c20);
            c21 = _mm256_fmadd_ps(v, b1, c21);
        }
        if (rows > 3) {
            v = _mm256_broadcast_ss(a + 3);
            c30 = _mm256_fmadd_ps(v, b0, c30);
            c31 = _mm256_fmadd_ps(v, b1, c31);
        }
        if (rows > 4) {
            v = _mm256_broadcast_ss(a + 4);
            c40 = _mm256_fmadd_ps(v, b0, c40);
            c41 = _mm256_fmadd_ps(v, b1, c41);
        }
        if (rows > 5) {
            v = _mm256_broadcast_ss(a + 5);
            c50 = _mm256_fmadd_ps(v, b0, c50);
            c51 = _mm256_fmadd_ps(v, b1, c51);
        }
    }
    put(c00, c01, 0, cols, c, f);
    if (rows > 1) {
        put(c10, c11, 1, cols, c + ldc, f);
    }
    if (rows > 2) {
        put(c20, c21, 2, cols, c + 2 * ldc, f);
    }
    if (rows > 3) {
        put(c30, c31, 3, cols, c + 3 * ldc, f);
    }
    if (rows > 4) {
        put(c40, c41, 4, cols, c + 4 * ldc, f);
    }
    if (rows > 5) {
        put(c50, c51, 5, cols, c + 5 * ldc, f);
    }
}

/* At most 8 columns: half the work, the same order of sums. */
ALWAYS void tile_half(const size_t rows, size_t cols, size_t k, const float *a, const float *b,
                      float *c, size_t ldc, const nori__f32_finish *f)
{
    __m256 z = _mm256_setzero_ps();
    __m256 c0 = z, c1 = z, c2 = z, c3 = z, c4 = z, c5 = z;
    for (size_t p = 0; p < k; p++, a += MR, b += NR) {
        __m256 v = _mm256_loadu_ps(b);
        c0 = _mm256_fmadd_ps(_mm256_broadcast_ss(a), v, c0);
        if (rows > 1) {
            c1 = _mm256_fmadd_ps(_mm256_broadcast_ss(a + 1), v, c1);
        }
        if (rows > 2) {
            c2 = _mm256_fmadd_ps(_mm256_broadcast_ss(a + 2), v, c2);
        }
        if (rows > 3) {
            c3 = _mm256_fmadd_ps(_mm256_broadcast_ss(a + 3), v, c3);
        }
        if (rows > 4) {
            c4 = _mm256_fmadd_ps(_mm256_broadcast_ss(a + 4), v, c4);
        }
        if (rows > 5) {
            c5 = _mm256_fmadd_ps(_mm256_broadcast_ss(a + 5), v, c5);
        }
    }
    put(c0, z, 0, cols, c, f);
    if (rows > 1) {
        put(c1, z, 1, cols, c + ldc, f);
    }
    if (rows > 2) {
        put(c2, z, 2, cols, c + 2 * ldc, f);
    }
    if (rows > 3) {
        put(c3, z, 3, cols, c + 3 * ldc, f);
    }
    if (rows > 4) {
        put(c4, z, 4, cols, c + 4 * ldc, f);
    }
    if (rows > 5) {
        put(c5, z, 5, cols, c + 5 * ldc, f);
    }
}

static void f32_tile(size_t rows, size_t cols, size_t k, const float *a, const float *b, float *c,
                     size_t ldc, const nori__f32_finish *f)
{
    switch (cols > 8 ? rows : rows + MR) {
    case 1: tile(1, cols, k, a, b, c, ldc, f); break;
    case 2: tile(2, cols, k, a, b, c, ldc, f); break;
    case 3: tile(3, cols, k, a, b, c, ldc, f); break;
    case 4: tile(4, cols, k, a, b, c, ldc, f); break;
    case 5: tile(5, cols, k, a, b, c, ldc, f); break;
    case 6: tile(6, cols, k, a, b, c, ldc, f); break;
    case 7: tile_half(1, cols, k, a, b, c, ldc, f); break;
    case 8: tile_half(2, cols, k, a, b, c, ldc, f); break;
    case 9: tile_half(3, cols, k, a, b, c, ldc, f); break;
    case 10: tile_half(4, cols, k, a, b, c, ldc, f); break;
    case 11: tile_half(5, cols, k, a, b, c, ldc, f); break;
    default: tile_half(6, cols, k, a, b, c, ldc, f); break;
    }
}

/* ---- packing ---- */

/* Rows r0..r7 of 8 floats become columns. */
ALWAYS void turn8(__m256 r[8])
{
    __m256 t[8], u[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}

/* Lines of the input lie along k (k_step 1): turned 8 x 8. Handles k in steps of 8, columns j to
 * j + 8 of which count are there; width floats apart in out. keep: lanes of out to write. */
ALWAYS void pack_turned(size_t k, size_t count, const float *in, size_t step, float *out,
                        size_t width, __m256i keep, bool whole)
{
    for (size_t p = 0; p + 8 <= k; p += 8) {
        __m256 r[8];
        for (size_t j = 0; j < 8; j++) {
            r[j] = j < count ? _mm256_loadu_ps(in + j * step + p) : _mm256_setzero_ps();
        }
        turn8(r);
        for (size_t i = 0; i < 8; i++) {
            if (whole) {
                _mm256_storeu_ps(out + (p + i) * width, r[i]);
            } else {
                _mm256_maskstore_ps(out + (p + i) * width, keep, r[i]);
            }
        }
    }
}

static void pack_any(size_t width, size_t k, size_t count, const float *in, size_t k_step,
                     size_t step, float *out)
{
    for (size_t p = 0; p < k; p++, out += width) {
        const float *row = in + p * k_step;
        for (size_t j = 0; j < count; j++) {
            out[j] = row[j * step];
        }
        for (size_t j = count; j < width; j++) {
            out[j] = 0;
        }
    }
}

static void f32_pack(size_t width, size_t k, size_t count, const float *in, size_t k_step,
                     size_t step, float *out)
{
    size_t done = 0;
    if (step == 1 && width == NR && count == NR) {
        for (; done < k; done++) {
            __m256 v0 = _mm256_loadu_ps(in + done * k_step);
            __m256 v1 = _mm256_loadu_ps(in + done * k_step + 8);
            _mm256_storeu_ps(out + done * NR, v0);
            _mm256_storeu_ps(out + done * NR + 8, v1);
        }
    } else if (k_step == 1 && width == NR) {
        done = k / 8 * 8;
        pack_turned(done, count < 8 ? count : 8, in, step, out, NR, first(8), true);
        pack_turned(done, count > 8 ? count - 8 : 0, in + 8 * step, step, out + 8, NR, first(8),
                    true);
    } else if (k_step == 1 && width == MR) {
        done = k / 8 * 8;
        pack_turned(done, count, in, step, out, MR, first(MR), false);
    }
    pack_any(width, k - done, count, in + done * k_step, k_step, step, out + done * width);
}

ALWAYS __m256 every_second(const float *in)
{
    __m256 v = _mm256_shuffle_ps(_mm256_loadu_ps(in), _mm256_loadu_ps(in + 8), 0x88);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
}

static void f32_patches(size_t k, const int64_t *offset, const float *x, size_t pieces,
                        const size_t *from, const int64_t *where, size_t step, float *out)
{
    if (step == 1 && pieces == 1) {
        const float *in = x + where[0];
        for (size_t p = 0; p < k; p++, out += NR) {
            __m256 v0 = _mm256_loadu_ps(in + offset[p]);
            __m256 v1 = _mm256_loadu_ps(in + offset[p] + 8);
            _mm256_storeu_ps(out, v0);
            _mm256_storeu_ps(out + 8, v1);
        }
        return;
    }
    for (size_t p = 0; p < k; p++, out += NR) {
        /* A later piece overwrites what the one before wrote too much. */
        for (size_t s = 0; s < pieces; s++) {
            const float *in = x + offset[p] + where[s];
            float *to = out + from[s];
            if (step == 1) {
                __m256 v0 = _mm256_loadu_ps(in), v1 = _mm256_loadu_ps(in + 8);
                _mm256_storeu_ps(to, v0);
                _mm256_storeu_ps(to + 8, v1);
            } else if (step == 2) {
                _mm256_storeu_ps(to, every_second(in));
                _mm256_storeu_ps(to + 8, every_second(in + 16));
            } else {
                for (size_t j = from[s]; j < (s + 1 < pieces ? from[s + 1] : NR); j++) {
                    out[j] = in[(j - from[s]) * step];
                }
            }
        }
    }
}

/* ---- few rows ---- */

/* Sums of four steps of k apart, so that the latency of FMA is hidden. */
ALWAYS void few(const size_t rows, size_t cols, size_t k, const float *x, size_t ldx,
                const float *b, float *y, size_t ldy, const nori__f32_finish *f)
{
    __m256 s[4][2][2];
    for (size_t i = 0; i < rows; i++) {
        s[i][0][0] = s[i][0][1] = s[i][1][0] = s[i][1][1] = _mm256_setzero_ps();
    }
    size_t p = 0;
    for (; p + 2 <= k; p += 2, b += 2 * NR) {
        __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
        __m256 d0 = _mm256_loadu_ps(b + 16), d1 = _mm256_loadu_ps(b + 24);
        for (size_t i = 0; i < rows; i++) {
            __m256 u = _mm256_broadcast_ss(x + i * ldx + p);
            __m256 v = _mm256_broadcast_ss(x + i * ldx + p + 1);
            s[i][0][0] = _mm256_fmadd_ps(u, b0, s[i][0][0]);
            s[i][0][1] = _mm256_fmadd_ps(u, b1, s[i][0][1]);
            s[i][1][0] = _mm256_fmadd_ps(v, d0, s[i][1][0]);
            s[i][1][1] = _mm256_fmadd_ps(v, d1, s[i][1][1]);
        }
    }
    for (; p < k; p++, b += NR) {
        __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
        for (size_t i = 0; i < rows; i++) {
            __m256 u = _mm256_broadcast_ss(x + i * ldx + p);
            s[i][0][0] = _mm256_fmadd_ps(u, b0, s[i][0][0]);
            s[i][0][1] = _mm256_fmadd_ps(u, b1, s[i][0][1]);
        }
    }
    for (size_t i = 0; i < rows; i++) {
        put(_mm256_add_ps(s[i][0][0], s[i][1][0]), _mm256_add_ps(s[i][0][1], s[i][1][1]), i, cols,
            y + i * ldy, f);
    }
}

static void f32_few_rows(size_t rows, size_t n, size_t k, const float *x, size_t ldx,
                         const float *b, float *y, size_t ldy, const nori__f32_finish *finish)
{
    nori__f32_finish f = *finish;
    for (size_t j = 0; j < n; j += NR, b += NR * k) {
        size_t cols = n - j < NR ? n - j : NR;
        f.col = finish->col ? finish->col + j : NULL;
        f.add = finish->add ? finish->add + j : NULL;
        switch (rows) {
        case 1: few(1, cols, k, x, ldx, b, y + j, ldy, &f); break;
        case 2: few(2, cols, k, x, ldx, b, y + j, ldy, &f); break;
        case 3: few(3, cols, k, x, ldx, b, y + j, ldy, &f); break;
        default: few(4, cols, k, x, ldx, b, y + j, ldy, &f); break;
        }
    }
}

void nori__avx2_gemm(nori__kernels *k)
{
    k->f32_mr = MR;
    k->f32_nr = NR;
    k->f32_tile = f32_tile;
    k->f32_pack = f32_pack;
    k->f32_patches = f32_patches;
    k->f32_few_rows = f32_few_rows;
}
