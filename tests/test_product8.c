/* test_product8.c: the micro-kernels of 8-bit products, of every level this CPU has, against sums in
 * 64 bits: every tile size, odd sizes, misaligned pointers, guards, extreme values, and the packing
 * that keeps pairs of products from saturating. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel_harness.h"
#include "providers/cpu/qlines.h"

enum { N = NORI__U8_BLOCK };

static int32_t byte(void)
{
    return (int32_t)floor((next() + 1) * 128);
}

/* What a kernel must make of a sum. */
static double finished(const nori__u8_finish *f, int64_t sum, size_t c)
{
    int32_t wrapped = (int32_t)(uint32_t)(uint64_t)sum;
    if (f->form == NORI__U8_SUMS) {
        return wrapped;
    }
    float v = (float)wrapped * f->scale[c];
    if (f->form == NORI__U8_FLOATS) {
        return (double)(f->shift ? v + f->shift[c] : v);
    }
    double r = rint((double)v); /* to even */
    r = r < (double)f->low ? (double)f->low : r > (double)f->high ? (double)f->high : r;
    return (double)(uint8_t)(int32_t)(r + f->zero);
}

static double got_at(const nori__u8_finish *f, const void *y, size_t at)
{
    return f->form == NORI__U8_SUMS     ? ((const int32_t *)y)[at]
           : f->form == NORI__U8_FLOATS ? (double)((const float *)y)[at]
                                        : ((const uint8_t *)y)[at];
}

typedef struct finish_data {
    int32_t start[128];
    float scale[128], shift[128];
} finish_data;

static nori__u8_finish finish_of(finish_data *d, size_t form)
{
    for (size_t c = 0; c < 128; c++) {
        d->start[c] = byte() * 1000 - 100000;
        d->scale[c] = (float)(next() + 1.5) / 4096;
        d->shift[c] = (float)next();
    }
    nori__u8_finish f = {.start = d->start, .scale = d->scale};
    f.form = form == 0 ? NORI__U8_SUMS : form < 3 ? NORI__U8_BYTES : NORI__U8_FLOATS;
    f.shift = form == 4 ? d->shift : NULL;
    f.zero = form == 1 ? 0 : 117;
    f.low = form == 1 ? 0 : -117;
    f.high = f.low + 255;
    return f;
}

/* ---- tiles ---- */

static void one_tile(const nori__kernels *k, size_t lines, size_t blocks, size_t terms, size_t quads,
                     size_t form)
{
    enum { RESTS = 3 };
    int64_t offset[4];
    const uint8_t *x[NORI__U8_LINES_MAX];
    size_t line = 4 * quads + 1, w_size = terms * quads * 4 * N;
    uint8_t *bytes = malloc(terms * lines * line);
    int8_t *w = malloc(blocks * w_size), rest[RESTS * 4 * N];
    uint32_t at[RESTS][2];
    nori__u8_block block[NORI__U8_BLOCKS_MAX];
    finish_data data;
    assert_true(bytes && w);
    for (size_t i = 0; i < terms * lines * line; i++) {
        bytes[i] = (uint8_t)byte();
    }
    for (size_t t = 0; t < terms; t++) { /* the last term of the last line ends the memory */
        offset[t] = (int64_t)(t * lines * line + 1);
    }
    for (size_t i = 0; i < lines; i++) {
        x[i] = bytes + i * line;
    }
    for (size_t i = 0; i < blocks * w_size; i++) {
        int32_t v = byte() - 128; /* neighbours of one sign within 128 */
        w[i] = (int8_t)(i % 2 && (w[i - 1] > 0) == (v > 0) ? (v > 0 ? 128 - w[i - 1] : -128 - w[i - 1])
                                                           : v);
    }
    for (size_t i = 0; i < sizeof(rest); i++) {
        rest[i] = (int8_t)(byte() / 2 - 64);
    }
    for (size_t e = 0; e < RESTS; e++) {
        at[e][0] = (uint32_t)(e % terms);
        at[e][1] = (uint32_t)(e * 5 % quads);
    }
    for (size_t b = 0; b < blocks; b++) {
        block[b] = (nori__u8_block){w + b * w_size, rest, at[0], b == 0 ? RESTS : RESTS - 2};
    }
    nori__u8_finish f = finish_of(&data, form);
    f.channels = blocks * N - form * 3 % N;
    size_t ldy = blocks * N + 3, size = f.form == NORI__U8_BYTES ? 1 : 4;
    buffer y = take(lines * ldy * size, form == 1 ? 3 : 4);
    memset(y.p, 0x33, y.bytes);
    k->u8_tile(lines, blocks, terms, quads, offset, x, block, y.p, ldy, &f);
    for (size_t i = 0; i < lines; i++) {
        for (size_t c = 0; c < ldy; c++) {
            if (c >= f.channels) {
                for (size_t s = 0; s < size; s++) {
                    assert_int_equal(((uint8_t *)y.p)[(i * ldy + c) * size + s], 0x33);
                }
                continue;
            }
            int64_t sum = f.start[c];
            const nori__u8_block *own = &block[c / N];
            for (size_t p = 0; p < terms * quads * 4; p++) {
                sum += x[i][offset[p / (4 * quads)] + (int64_t)(p % (4 * quads))] *
                       own->w[(p / 4 * N + c % N) * 4 + p % 4];
            }
            for (size_t p = 0; p < own->rests * 4; p++) {
                const uint32_t *a = own->at + p / 4 * 2;
                sum += x[i][offset[a[0]] + 4 * a[1] + p % 4] * rest[(p / 4 * N + c % N) * 4 + p % 4];
            }
            assert_true(got_at(&f, y.p, i * ldy + c) == finished(&f, sum, c));
        }
    }
    give(&y);
    free(bytes);
    free(w);
}

static void tiles(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t lines = 1; lines <= k->u8_lines; lines++) {
            for (size_t blocks = 1; blocks <= k->u8_blocks; blocks++) {
                for (size_t form = 0; form < 5; form++) {
                    one_tile(k, lines, blocks, 1, 1, form);
                    one_tile(k, lines, blocks, 3, 7, form);
                    one_tile(k, lines, blocks, 2, 16, form); /* whole tile registers */
                    one_tile(k, lines, blocks, 4, 43, form); /* and more than is laid side by side */
                }
            }
        }
    }
}

/* ---- depthwise ---- */

/* kind 0: any values; 1: the largest. narrow: weights of 8 bits in fours, else of 9 bits in pairs. */
static void one_depthwise(const nori__kernels *k, size_t n, size_t taps, size_t kind, bool narrow)
{
    size_t deep = narrow ? k->u8_deep4 : k->u8_deep, lines = 1 + taps % 4, few = narrow ? 4 : 2;
    const uint8_t *order = narrow ? k->u8_deep4_order : k->u8_deep_order;
    size_t wide = (n + deep - 1) / deep * deep, groups = (taps + few - 1) / few, step = n + 2;
    int64_t offset[10];
    int32_t plain[72][10];
    for (size_t t = 0; t < taps; t++) {
        offset[t] = (int64_t)(t * 7 % taps * 5);
    }
    size_t bytes = (taps - 1) * 5 + (lines - 1) * step + (narrow ? n : wide);
    uint8_t *x = malloc(bytes);
    int16_t *w = calloc(wide * groups * few, sizeof(*w));
    assert_true(x && w);
    for (size_t b = 0; b < bytes; b++) {
        x[b] = (uint8_t)(kind == 1 ? 255 : byte());
    }
    for (size_t c = 0; c < wide; c++) {
        size_t channel = c / deep * deep + order[c % deep];
        for (size_t t = 0; channel < n && t < taps; t++) {
            int32_t v = narrow ? byte() - 128 : byte() * 2 - 255;
            size_t at = (c / deep * groups * deep + t / few * deep + c % deep) * few + t % few;
            v = kind == 1 ? (narrow ? -128 : -255) : v;
            plain[channel][t] = v;
            if (narrow) {
                ((int8_t *)w)[at] = (int8_t)v;
            } else {
                w[at] = (int16_t)v;
            }
        }
    }
    for (size_t form = 0; form < 5; form++) {
        finish_data data;
        nori__u8_finish f = finish_of(&data, form);
        f.channels = n;
        size_t ldy = n + 1, size = f.form == NORI__U8_BYTES ? 1 : 4;
        buffer y = take(lines * ldy * size, 4);
        memset(y.p, 0x33, y.bytes);
        if (narrow) {
            k->u8_depthwise4(lines, taps, offset, x, step, (int8_t *)w, y.p, ldy, &f);
        } else {
            k->u8_depthwise(lines, taps, offset, x, step, w, y.p, ldy, &f);
        }
        for (size_t o = 0; o < lines * ldy; o++) {
            size_t c = o % ldy, l = o / ldy;
            if (c >= n) {
                assert_int_equal(((uint8_t *)y.p)[o * size], 0x33);
                continue;
            }
            int64_t sum = f.start[c];
            for (size_t t = 0; t < taps; t++) {
                sum += x[l * step + (size_t)offset[t] + c] * plain[c][t];
            }
            assert_true(got_at(&f, y.p, o) == finished(&f, sum, c));
        }
        give(&y);
    }
    free(x);
    free(w);
}

static void depthwise(void **state)
{
    (void)state;
    static const size_t channels[] = {1, 7, 16, 17, 32, 33, 48, 64, 72};
    EACH_LEVEL(k) {
        for (size_t i = 0; i < NORI__COUNT(channels); i++) {
            for (size_t taps = 1; taps <= 10; taps++) {
                one_depthwise(k, channels[i], taps, i % 2, false);
                if (k->u8_depthwise4) {
                    one_depthwise(k, channels[i], taps, i % 2, true);
                }
            }
        }
    }
}

/* ---- packing, and whole products ---- */

/* Weights that no pair of 16-bit sums would bear, and plain ones; zero points to both sides. */
static int32_t weight(size_t kind, size_t k, size_t c)
{
    switch (kind) {
    case 0: return 127;
    case 1: return -128;
    case 2: return (k + c) % 2 ? 127 : -128;
    case 3: return k % 3 ? 127 : 1;
    default: return byte() - 128;
    }
}

static void products(void **state)
{
    (void)state;
    static const struct {
        size_t k, n, lines;
    } sizes[] = {{2, 16, 1}, {4, 17, 3}, {64, 48, 14}, {7, 5, 2}, {130, 33, 25}};
    nori__pool *pool = NULL;
    assert_int_equal(nori__pool_create(&nori__malloc, 3, &pool, NULL), NORI_OK);
    for (size_t i = 0; i < NORI__COUNT(sizes); i++) {
        for (size_t kind = 0; kind < 12; kind++) {
            size_t k = sizes[i].k, n = sizes[i].n, lines = sizes[i].lines, k4 = (k + 3) / 4 * 4;
            bool is_signed = kind < 6, each = kind % 2;
            nori_tensor *w = NULL, *zero = NULL;
            int64_t dims[2] = {(int64_t)n, (int64_t)k}, count = each ? (int64_t)n : 1;
            nori_type type = is_signed ? NORI_INT8 : NORI_UINT8;
            assert_int_equal(nori__tensor_new(&nori__malloc, type, 2, dims, &w, NULL), NORI_OK);
            assert_int_equal(nori__tensor_new(&nori__malloc, type, 1, &count, &zero, NULL), NORI_OK);
            for (int64_t p = 0; p < w->count; p++) {
                nori__tensor_set_i64(w, p, weight(kind % 6, (size_t)p % k, (size_t)p / k) +
                                               (is_signed ? 0 : 128));
            }
            for (int64_t p = 0; p < count; p++) {
                nori__tensor_set_i64(zero, p, byte() - (is_signed ? 128 : 0));
            }
            size_t from[130];
            for (size_t p = 0; p < k; p++) {
                from[p] = p;
            }
            nori__qweights weights = {.data = w, .zero = kind % 3 ? zero : NULL, .groups = 1,
                                      .made = n, .terms = 1, .bytes = k, .step = k, .from = from};
            nori__qpack packed;
            assert_int_equal(nori__qpack_make(&weights, &nori__malloc, &packed, NULL), NORI_OK);
            uint8_t *x = malloc(lines * k4);
            int32_t *start = malloc(packed.wide * sizeof(*start)), *y = malloc(lines * n * sizeof(*y));
            assert_true(x && start && y);
            for (size_t p = 0; p < lines * k4; p++) {
                x[p] = (uint8_t)(kind < 4 || kind % 4 == 1 ? 255 : byte());
            }
            nori__qlines_start(&packed, NULL, 131, start);
            for (int threads = 1; threads <= 3; threads += 2) {
                int64_t none = 0;
                nori_call call = {.pool = pool, .threads = threads};
                nori__qlines q = {.w = &packed, .offset = &none, .x = x, .images = 1,
                                  .size = {1, 1, lines}, .step = {0, 0, k4}, .y = y, .ldy = n,
                                  .finish = {.form = NORI__U8_SUMS, .start = start}};
                memset(y, 0, lines * n * sizeof(*y));
                nori__qlines_run(&call, &q);
                for (size_t o = 0; o < lines * n; o++) {
                    int64_t sum = 0, z = 0;
                    size_t c = o % n;
                    if (weights.zero) {
                        z = nori__tensor_get_i64(zero, each ? (int64_t)c : 0);
                    }
                    for (size_t p = 0; p < k; p++) {
                        sum += ((int64_t)x[o / n * k4 + p] - 131) *
                               (nori__tensor_get_i64(w, (int64_t)(c * k + p)) - z);
                    }
                    assert_int_equal(y[o], sum);
                }
            }
            nori__qpack_free(&packed, &nori__malloc);
            nori_tensor_free(w);
            nori_tensor_free(zero);
            free(x);
            free(start);
            free(y);
        }
    }
    nori__pool_free(pool);
}

/* ---- moving bytes ---- */

static void transpose(void **state)
{
    (void)state;
    static const size_t sizes[][2] = {{1, 1}, {3, 40}, {16, 16}, {17, 33}, {5, 16}, {40, 3}, {64, 7},
                                       {33, 5}, {20, 9}, {70, 9}, {50, 2}, {19, 4}, {35, 15}};
    EACH_LEVEL(k) {
        for (size_t i = 0; i < NORI__COUNT(sizes); i++) {
            size_t rows = sizes[i][0], cols = sizes[i][1], in_step = cols + i % 3, out_step = rows + 1;
            uint8_t *in = malloc((rows - 1) * in_step + cols);
            assert_non_null(in);
            for (size_t p = 0; p < (rows - 1) * in_step + cols; p++) {
                in[p] = (uint8_t)byte();
            }
            buffer out = take((cols - 1) * out_step + rows, 1);
            k->x8_transpose(rows, cols, in, in_step, out.p, out_step, i % 2 ? 128 : 0);
            for (size_t p = 0; p < rows * cols; p++) {
                size_t r = p / cols, c = p % cols;
                assert_int_equal(((uint8_t *)out.p)[c * out_step + r],
                                 in[r * in_step + c] ^ (i % 2 ? 128 : 0));
            }
            give(&out);
            free(in);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles),
        cmocka_unit_test(depthwise),
        cmocka_unit_test(products),
        cmocka_unit_test(transpose),
    };
    levels_fill();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
