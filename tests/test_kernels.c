/* test_kernels.c: every micro-kernel of every level this CPU has against plain C written here, on odd
 * sizes, misaligned pointers, with guards around what is written. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/half.h"
#include "kernel_harness.h"

enum { ROOM = 1 << 16 };

/* ---- products ---- */

static void tiles(void **state)
{
    (void)state;
    static const size_t depths[] = {0, 1, 2, 7, 33};
    EACH_LEVEL(k) {
        for (size_t rows = 1; rows <= k->f32_mr; rows++) {
            for (size_t cols = 1; cols <= k->f32_nr; cols++) {
                for (size_t d = 0; d < NORI__COUNT(depths); d++) {
                    size_t depth = depths[d], ldc = cols + d;
                    float *a = floats(depth * k->f32_mr), *b = floats(depth * k->f32_nr);
                    float *row = floats(rows), *col = floats(cols), *add = floats(rows * ldc);
                    nori__f32_finish f = {.row = d & 1 ? row : NULL, .col = d & 2 ? col : NULL,
                                          .add = d > 1 ? add : NULL, .ld_add = ldc,
                                          .clamp = d == 3, .low = -0.5f, .high = 0.75f};
                    buffer c = take(((rows - 1) * ldc + cols) * sizeof(float), 4);
                    /* A in panels, or as a matrix: rows apart by what panels have along k. */
                    size_t a_row = d == 4 ? depth : 1, a_k = d == 4 ? 1 : k->f32_mr;
                    k->f32_tile(rows, cols, depth, a, a_row, a_k, b, c.p, ldc, &f);
                    for (size_t i = 0; i < rows; i++) {
                        for (size_t j = 0; j < ldc && (i + 1 < rows || j < cols); j++) {
                            double sum = 0;
                            for (size_t p = 0; p < depth; p++) {
                                sum += (double)a[p * a_k + i * a_row] * b[p * k->f32_nr + j % cols];
                            }
                            if (j >= cols) { /* between rows nothing is written */
                                uint32_t bits;
                                memcpy(&bits, (float *)c.p + i * ldc + j, sizeof(bits));
                                assert_int_equal(bits, 0x5a5a5a5a);
                                continue;
                            }
                            sum += (f.row ? row[i] : 0) + (f.col ? col[j] : 0);
                            sum += f.add ? add[i * ldc + j] : 0;
                            sum = f.clamp ? fmin(fmax(sum, -0.5), 0.75) : sum;
                            near(((float *)c.p)[i * ldc + j], sum, 1e-5);
                        }
                    }
                    give(&c);
                    free(a);
                    free(b);
                    free(row);
                    free(col);
                    free(add);
                }
            }
        }
    }
}

static void packs(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (int form = 0; form < 3; form++) {
            for (size_t width = k->f32_mr;; width = k->f32_nr) {
                for (size_t count = 1; count <= width; count++) {
                    for (size_t depth = 0; depth < 20; depth += 3) {
                        size_t step = form == 0 ? 1 : form == 1 ? depth + 1 : 3;
                        size_t k_step = form == 0 ? count + 2 : form == 1 ? 1 : 3 * count + 1;
                        size_t n = depth ? (depth - 1) * k_step + (count - 1) * step + 1 : 0;
                        float *in = floats(n);
                        buffer out = take(depth * width * sizeof(float), 4);
                        k->f32_pack(width, depth, count, in, k_step, step, out.p);
                        for (size_t i = 0; i < depth * width; i++) {
                            size_t p = i / width, j = i % width;
                            assert_true(((float *)out.p)[i] ==
                                        (j < count ? in[p * k_step + j * step] : 0));
                        }
                        give(&out);
                        free(in);
                    }
                }
                if (width == k->f32_nr) {
                    break;
                }
            }
        }
    }
}

static void patches(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t step = 1; step <= 3; step++) {
            for (size_t piece = 1; piece <= k->f32_nr; piece += 2) {
                enum { DEPTH = 6 };
                size_t nr = k->f32_nr, from[NORI__NR_MAX], pieces = 0;
                int64_t where[NORI__NR_MAX], offset[DEPTH];
                for (size_t j = 0; j < nr; j += piece) {
                    from[pieces] = j;
                    where[pieces++] = (int64_t)(j * 7);
                }
                for (int64_t p = 0; p < DEPTH; p++) {
                    offset[p] = p * 11;
                }
                size_t n = 11 * DEPTH + 7 * nr + nr * step;
                float *x = floats(n);
                buffer out = take((DEPTH + 1) * nr * sizeof(float), 4);
                k->f32_patches(DEPTH, offset, x, pieces, from, where, step, out.p);
                for (size_t i = 0; i < DEPTH * nr; i++) {
                    size_t p = i / nr, j = i % nr, s = j / piece;
                    size_t at = (size_t)(offset[p] + where[s]) + (j - from[s]) * step;
                    assert_true(((float *)out.p)[i] == x[at]);
                }
                give(&out);
                free(x);
            }
        }
    }
}

static void few_rows(void **state)
{
    (void)state;
    static const size_t widths[] = {1, 7, 16, 17, 40};
    EACH_LEVEL(k) {
        for (size_t rows = 1; rows <= 4; rows++) {
            for (size_t w = 0; w < NORI__COUNT(widths); w++) {
                for (size_t depth = 0; depth < 12; depth += 1 + depth / 2) {
                    size_t n = widths[w], nr = k->f32_nr, panels = (n + nr - 1) / nr;
                    float *x = floats(rows * depth), *b = floats(panels * nr * depth);
                    float *col = floats(n), *add = floats(rows * n);
                    nori__f32_finish f = {.col = col, .add = add, .ld_add = n};
                    buffer y = take(rows * n * sizeof(float), 4);
                    k->f32_few_rows(rows, n, depth, x, depth, b, y.p, n, &f);
                    for (size_t i = 0; i < rows * n; i++) {
                        size_t r = i / n, j = i % n;
                        double sum = (double)col[j] + add[i];
                        for (size_t p = 0; p < depth; p++) {
                            sum += (double)x[r * depth + p] *
                                   b[j / nr * nr * depth + p * nr + j % nr];
                        }
                        near(((float *)y.p)[i], sum, 1e-5);
                    }
                    give(&y);
                    free(x);
                    free(b);
                    free(col);
                    free(add);
                }
            }
        }
    }
}

/* ---- integers ---- */

static void int_tiles(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t rows = 1; rows <= k->s16_mr; rows++) {
            for (size_t cols = 1; cols <= k->s16_nr; cols++) {
                for (size_t pairs = 0; pairs < 9; pairs += 4) {
                    size_t mr = k->s16_mr, nr = k->s16_nr;
                    int16_t *a = malloc((pairs * mr * 2 + 1) * sizeof(*a));
                    int16_t *b = malloc((pairs * nr * 2 + 1) * sizeof(*b));
                    for (size_t i = 0; i < pairs * mr * 2; i++) {
                        a[i] = (int16_t)(i % 3 ? next() * 255 : 255); /* extremes too */
                    }
                    for (size_t i = 0; i < pairs * nr * 2; i++) {
                        b[i] = (int16_t)(i % 3 ? next() * 255 : -255);
                    }
                    for (int add = 0; add < 2; add++) {
                        buffer c = take(rows * cols * sizeof(int32_t), 4);
                        for (size_t i = 0; i < rows * cols && add; i++) {
                            ((int32_t *)c.p)[i] = INT32_MAX - (int32_t)i;
                        }
                        k->s16_tile(rows, cols, pairs, a, b, c.p, cols, add != 0);
                        for (size_t i = 0; i < rows * cols; i++) {
                            uint32_t sum = add ? (uint32_t)INT32_MAX - (uint32_t)i : 0;
                            for (size_t p = 0; p < 2 * pairs; p++) {
                                int32_t u = a[(p / 2 * mr + i / cols) * 2 + p % 2];
                                sum += (uint32_t)(u * b[(p / 2 * nr + i % cols) * 2 + p % 2]);
                            }
                            assert_int_equal(((int32_t *)c.p)[i], (int32_t)sum);
                        }
                        give(&c);
                    }
                    free(a);
                    free(b);
                }
            }
        }
    }
}

static void int_rows(void **state)
{
    (void)state;
    static const float odd[] = {0,      -0.0f, INFINITY, -INFINITY, NAN,   1e30f, -1e30f, 0.25f,
                                0.75f,  1.25f, -0.25f,   -0.75f,    63.75f, 64,   127,    128,
                                -64.25f, -64,  1e-30f};
    EACH_LEVEL(k) {
        for (int is_signed = 0; is_signed < 2; is_signed++) {
            double low = is_signed ? -128 : 0, high = is_signed ? 127 : 255;
            for (size_t n = 0; n <= NORI__COUNT(odd); n++) {
                float *x = malloc((n + 1) * sizeof(*x)), *scale = floats(n);
                int32_t *sums = malloc((n + 1) * sizeof(*sums));
                for (size_t i = 0; i < n; i++) {
                    x[i] = odd[NORI__COUNT(odd) - n + i];
                    sums[i] = (int32_t)(next() * 2e9);
                }
                buffer q = take(n, 1), r = take(n, 1), y = take(n * sizeof(float), 4);
                k->quantize(n, x, 0.5f, 3, is_signed, q.p);
                k->requantize_each(n, sums, sums, scale, -2, is_signed, r.p);
                k->dequantize(n, q.p, is_signed, 5, 0.1f, y.p);
                for (size_t i = 0; i < n; i++) {
                    double v = rintf(x[i] / 0.5f) + 3.0f;
                    v = v >= low ? fmin(v, high) : low;
                    int32_t got = is_signed ? ((int8_t *)q.p)[i] : ((uint8_t *)q.p)[i];
                    assert_int_equal(got, (int32_t)v);
                    assert_true(((float *)y.p)[i] == (float)(got - 5) * 0.1f);
                    int32_t twice = (int32_t)((uint32_t)sums[i] + (uint32_t)sums[i]);
                    v = rintf((float)twice * scale[i]) + -2.0f;
                    v = v >= low ? fmin(v, high) : low;
                    assert_int_equal(is_signed ? ((int8_t *)r.p)[i] : ((uint8_t *)r.p)[i],
                                     (int32_t)v);
                }
                k->requantize(n, sums, 17, 1e-7f, 4, is_signed, r.p);
                for (size_t i = 0; i < n; i++) {
                    double v = rintf((float)(int32_t)((uint32_t)sums[i] + 17) * 1e-7f) + 4.0f;
                    v = v >= low ? fmin(v, high) : low;
                    assert_int_equal(is_signed ? ((int8_t *)r.p)[i] : ((uint8_t *)r.p)[i],
                                     (int32_t)v);
                }
                give(&q);
                give(&r);
                give(&y);
                free(x);
                free(scale);
                free(sums);
            }
        }
    }
}

static void int_packs(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (int form = 0; form < 4; form++) {
            for (size_t width = k->s16_mr;; width = k->s16_nr) {
                for (size_t count = 1; count <= width; count++) {
                    for (size_t depth = 1; depth < 40; depth += 6) {
                        size_t step = form & 1 ? depth + 1 : 1, k_step = form & 1 ? 1 : count + 1;
                        size_t n = (depth - 1) * k_step + (count - 1) * step + 1;
                        uint8_t *in = malloc(n);
                        for (size_t i = 0; i < n; i++) {
                            in[i] = (uint8_t)(next() * 127 + 128);
                        }
                        size_t pairs = (depth + 1) / 2;
                        buffer out = take(pairs * width * 2 * sizeof(int16_t), 2);
                        k->s16_pack(width, depth, count, in, k_step, step, form > 1, 9, out.p);
                        for (size_t i = 0; i < pairs * width * 2; i++) {
                            size_t p = i / (2 * width) * 2 + i % 2, j = i / 2 % width;
                            int32_t want = 0;
                            if (j < count && p < depth) {
                                uint8_t v = in[p * k_step + j * step];
                                want = (form > 1 ? (int8_t)v : v) - 9;
                            }
                            assert_int_equal(((int16_t *)out.p)[i], want);
                        }
                        give(&out);
                        free(in);
                    }
                }
                if (width == k->s16_nr) {
                    break;
                }
            }
        }
    }
}

/* ---- functions: the errors that are stated ---- */

static double exact(int function, double x, const float *p)
{
    double gate = fmin(fmax((double)p[0] * x + p[1], 0), 1);
    switch (function) {
    case NORI__U_RELU: return x < 0 ? 0 : x;
    case NORI__U_LEAKY: return x < 0 ? x * p[0] : x;
    case NORI__U_CLAMP: return x < p[0] ? p[0] : x > p[1] ? p[1] : x;
    case NORI__U_HARDSIGMOID: return isnan(x) ? x : gate;
    case NORI__U_HARDSWISH: return isnan(x) ? x : x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case NORI__U_SIGMOID: return 1 / (1 + exp(-x));
    case NORI__U_TANH: return tanh(x);
    case NORI__U_EXP: return exp(x);
    case NORI__U_ERF: return erf(x);
    case NORI__U_GELU: return 0.5 * x * erfc(-x * 0.70710678118654752);
    case NORI__U_GELU_TANH:
        return x / (1 + exp(-2 * 0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case NORI__U_SILU: return x / (1 + exp(-(double)p[0] * x));
    case NORI__U_ELU: return x < 0 ? (double)p[0] * expm1(x) : x;
    case NORI__U_SQRT: return sqrt(x);
    case NORI__U_RECIPROCAL: return 1 / x;
    case NORI__U_NEG: return -x;
    case NORI__U_ABS: return fabs(x);
    default: return (double)p[0] * x + p[1];
    }
}

/* Relative error allowed, in units of 2^-24 (half an ulp of 1), and absolute near nothing. */
static void unary(void **state)
{
    (void)state;
    static const double halves[NORI__U_COUNT] = {
        [NORI__U_LEAKY] = 1,   [NORI__U_HARDSIGMOID] = 4, [NORI__U_HARDSWISH] = 8,
        [NORI__U_SIGMOID] = 8, [NORI__U_TANH] = 8,        [NORI__U_EXP] = 4,
        [NORI__U_ERF] = 8,     [NORI__U_GELU] = 84,       [NORI__U_GELU_TANH] = 336,
        [NORI__U_SILU] = 12,   [NORI__U_SQRT] = 1,        [NORI__U_RECIPROCAL] = 1,
        [NORI__U_AFFINE] = 4,  [NORI__U_ELU] = 12,
    };
    const float p[2] = {0.25f, 0.75f};
    EACH_LEVEL(k) {
        for (int f = 0; f < NORI__U_COUNT; f++) {
            double worst = 0, at = 0;
            for (int64_t block = 0; block < 1000; block++) {
                float x[37], y[37];
                for (int64_t i = 0; i < 37; i++) {
                    x[i] = (float)((double)(block * 37 + i) / 37000 * 220 - 110 + next() * 1e-3);
                    if (block % 4 == 0) { /* every size of number */
                        x[i] = (float)(next() * pow(2, (double)(block % 120) / 4 - 24));
                    }
                }
                k->f32_unary[f](37, x, y, p);
                for (int i = 0; i < 37; i++) {
                    double want = exact(f, x[i], p), least = 1.2e-38;
                    least = f == NORI__U_GELU && x[i] < -6.2f ? 1e-9 / 5e-6 : least;
                    least = f == NORI__U_HARDSIGMOID || f == NORI__U_AFFINE ? 1 : least;
                    least = f == NORI__U_HARDSWISH ? fabs(x[i]) : least;
                    least = f == NORI__U_GELU_TANH || f == NORI__U_SILU ? fmax(fabs(want), 1e-30) : least;
                    if (isnan(want) || fabs(want) > 3.4e38) {
                        near(y[i], isnan(want) ? NAN : want > 0 ? INFINITY : -INFINITY, 0);
                        continue;
                    }
                    if (f == NORI__U_SIGMOID && want < 1.18e-38) { /* not a normal number */
                        assert_true(y[i] >= 0 && y[i] < 1.3e-38f);
                        continue;
                    }
                    if (f == NORI__U_GELU && x[i] > -1) {
                        assert_true(fabs(y[i] - want) <= 16 * fabs(want) / 16777216 + 1e-45);
                    }
                    double error = fabs(y[i] - want) / fmax(fabs(want), least) * 16777216;
                    if (f == NORI__U_EXP && x[i] > 80) {
                        error = isinf(y[i]) && want > 3.4e38 ? 0 : error;
                    }
                    at = error > worst ? x[i] : at;
                    worst = error > worst ? error : worst;
                }
            }
            if (worst > halves[f] + 1e-9) {
                print_error("level %s function %d: error %.1f half ulps at %.9g, stated %.1f\n",
                            nori__cpu_level_name(k->level), f, worst, at, halves[f]);
            }
            assert_true(worst <= halves[f] + 1e-9);
        }
    }
}

static void unary_special(void **state)
{
    (void)state;
    const float p[2] = {0.75f, 2.0f};
    EACH_LEVEL(k) {
        for (int f = 0; f < NORI__U_COUNT; f++) {
            for (size_t n = 1; n < 20; n++) { /* NaN in every lane; x and y the same memory */
                buffer y = take(n * sizeof(float), 4);
                float *v = y.p;
                for (size_t i = 0; i < n; i++) {
                    v[i] = i + 1 == n ? NAN : 1;
                }
                k->f32_unary[f](n, v, v, p);
                for (size_t i = 0; i < n; i++) {
                    assert_true(isnan(v[i]) == (i + 1 == n));
                }
                give(&y);
            }
        }
    }
}

/* ---- half floats ---- */

/* Every half; and floats next to those and half way between them, as the scalar functions say. */
static void halves(void **state)
{
    (void)state;
    enum { N = 65536 };
    uint16_t *h = malloc(N * sizeof(*h)), *back = malloc(N * sizeof(*back));
    float *f = malloc(N * sizeof(*f)), *x = malloc(N * sizeof(*x));
    assert_true(h && back && f && x);
    EACH_LEVEL(k) {
        for (uint32_t i = 0; i < N; i++) {
            h[i] = (uint16_t)i;
        }
        k->f16_to_f32(N - 3, h, f);
        for (uint32_t i = 0; i < N - 3; i++) {
            float want = nori__f16_to_f32(h[i]);
            assert_true(f[i] == want || (isnan(f[i]) && isnan(want)));
            x[i] = want + (i % 3 == 0 ? 0 : (i % 3 == 1 ? 0.5f : 0.50001f) * fabsf(want) / 1024);
        }
        k->f32_to_f16(N - 3, x, back);
        for (uint32_t i = 0; i < N - 3; i++) {
            uint16_t want = nori__f32_to_f16(x[i]);
            assert_true(back[i] == want || (isnan(x[i]) && isnan(nori__f16_to_f32(back[i]))));
        }
    }
    free(h);
    free(back);
    free(f);
    free(x);
}

/* ---- rows ---- */

static void rows(void **state)
{
    (void)state;
    static nori__kernels base;
    assert_true(nori__kernels_fill(NORI__CPU_BASE, &base));
    EACH_LEVEL(k) {
        for (size_t n = 1; n < 140; n += n < 40 ? 1 : 33) {
            float *x = floats(n), *scale = floats(n), *bias = floats(n);
            double sum = 0, square = 0, exps = 0;
            float top = -INFINITY, least = INFINITY;
            for (size_t i = 0; i < n; i++) {
                sum += x[i];
                square += ((double)x[i] - 0.25) * ((double)x[i] - 0.25);
                top = x[i] > top ? x[i] : top;
                least = x[i] < least ? x[i] : least;
            }
            near(k->f32_sum(n, x), sum, 1e-5);
            near(k->f32_sum_square(n, x, 0.25f), square, 1e-5);
            near(k->f32_sum_turns(n, x), sum, 1e-5);
            near(k->f32_sum_square_turns(n, x, 0.25f), square, 1e-5);
            assert_true(k->f32_sum_turns(n, x) == base.f32_sum_turns(n, x)); /* to the bit */
            assert_true(k->f32_sum_square_turns(n, x, 0.25f) ==
                        base.f32_sum_square_turns(n, x, 0.25f));
            assert_true(k->f32_max(n, x) == top);
            assert_true(k->f32_min(n, x) == least);
            for (size_t i = 0; i < n; i++) {
                exps += exp((double)x[i] - top);
            }
            buffer y = take(n * sizeof(float), 4), z = take(n * sizeof(float), 4);
            k->f32_softmax(n, x, y.p);
            k->f32_normalize(n, x, 0.5f, 2, scale, bias, z.p);
            for (size_t i = 0; i < n; i++) {
                near(((float *)y.p)[i], exp((double)x[i] - top) / exps, 1e-6);
                near(((float *)z.p)[i], ((double)x[i] - 0.5) * 2 * scale[i] + bias[i], 1e-6);
            }
            x[n / 2] = NAN;
            assert_true(isnan(k->f32_max(n, x)) && isnan(k->f32_min(n, x)));
            give(&y);
            give(&z);
            free(x);
            free(scale);
            free(bias);
        }
        assert_true(k->f32_max(0, NULL) == -INFINITY);
        assert_true(k->f32_sum(0, NULL) == 0);
    }
}

static float two(int f, float u, float v)
{
    switch (f) {
    case NORI__B_ADD: return u + v;
    case NORI__B_SUB: return u - v;
    case NORI__B_MUL: return u * v;
    case NORI__B_DIV: return u / v;
    case NORI__B_MAX: return isnan(u) || u > v ? u : v;
    default: return isnan(u) || u < v ? u : v;
    }
}

static void binary(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (int f = 0; f < NORI__B_COUNT; f++) {
            for (size_t n = 0; n < 36; n++) {
                for (size_t steps = 0; steps < 4; steps++) {
                    size_t as = steps & 1, bs = steps >> 1;
                    float *a = floats(as ? n : 1), *b = floats(bs ? n : 1);
                    a[0] = n % 5 == 1 ? NAN : a[0];
                    b[0] = n % 5 == 2 ? NAN : b[0];
                    buffer y = take(n * sizeof(float), 4);
                    k->f32_binary[f](n, a, as, b, bs, y.p);
                    for (size_t i = 0; i < n; i++) {
                        near(((float *)y.p)[i], two(f, a[i * as], b[i * bs]), 0);
                    }
                    give(&y);
                    free(a);
                    free(b);
                }
            }
        }
    }
}

/* ---- windows ---- */

static void windows(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t n = 1; n < 30; n++) {
            for (size_t form = 0; form < 18; form++) {
                size_t kw = form % 3 + 1, stride = form / 3 % 3 + 1, dilation = form / 9 + 1;
                size_t width = (n - 1) * stride + (kw - 1) * dilation + 1;
                float *x = floats(width);
                x[width / 2] = n % 7 ? x[width / 2] : NAN;
                buffer top = take(n * sizeof(float), 4), sum = take(n * sizeof(float), 4);
                k->f32_window_max(n, kw, stride, dilation, x, top.p);
                k->f32_window_sum(n, kw, stride, dilation, x, sum.p);
                for (size_t j = 0; j < n; j++) {
                    float best = -INFINITY;
                    double all = 0;
                    for (size_t c = 0; c < kw; c++) {
                        float v = x[j * stride + c * dilation];
                        best = isnan(v) || v > best ? v : best;
                        all += v;
                    }
                    near(((float *)top.p)[j], best, 0);
                    near(((float *)sum.p)[j], all, 1e-6);
                }
                give(&top);
                give(&sum);
                free(x);
            }
        }
    }
}

static void depthwise(void **state)
{
    (void)state;
    static const size_t forms[][6] = {{3, 3, 1, 1, 1, 1}, {3, 3, 2, 2, 1, 1}, {5, 5, 1, 1, 1, 1},
                                      {5, 5, 2, 2, 1, 1}, {2, 4, 1, 3, 2, 1}, {1, 3, 1, 1, 1, 2},
                                      {3, 3, 2, 1, 1, 1}, {7, 7, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1}};
    EACH_LEVEL(k) {
        for (size_t i = 0; i < NORI__COUNT(forms); i++) {
            const size_t *g = forms[i];
            for (size_t height = 1; height < 4; height++) {
                for (size_t width = 1; width < 36; width += width < 18 ? 1 : 8) {
                    size_t step = (width - 1) * g[3] + (g[1] - 1) * g[5] + 1 + i;
                    size_t lines = (height - 1) * g[2] + (g[0] - 1) * g[4] + 1;
                    size_t n = lines * step, slack = 32 * g[3];
                    float *x = floats(n + slack), *w = floats(g[0] * g[1]), bias = 0.5f;
                    float *add = floats(height * width);
                    nori__f32_finish f = {.row = i & 1 ? &bias : NULL, .add = i & 2 ? add : NULL,
                                          .ld_add = width, .clamp = i == 0, .low = -1, .high = 1};
                    buffer y = take(height * width * sizeof(float), 4);
                    k->f32_depthwise(height, width, g[0], g[1], g[2], g[3], g[4], g[5], x, step, w,
                                     y.p, &f);
                    for (size_t o = 0; o < height * width; o++) {
                        double sum = (f.row ? bias : 0) + (f.add ? add[o] : 0);
                        for (size_t t = 0; t < g[0] * g[1]; t++) {
                            size_t r = t / g[1], c = t % g[1];
                            sum += (double)w[t] * x[(o / width * g[2] + r * g[4]) * step +
                                                    o % width * g[3] + c * g[5]];
                        }
                        near(((float *)y.p)[o], f.clamp ? fmin(fmax(sum, -1), 1) : sum, 1e-5);
                    }
                    give(&y);
                    free(x);
                    free(w);
                    free(add);
                }
            }
        }
    }
}

static void transposes(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t r = 1; r < 35; r += 3) {
            for (size_t c = 1; c < 35; c += 3) {
                size_t in_step = c + r % 2, out_step = r + c % 2;
                float *in = floats((r - 1) * in_step + c);
                buffer out = take(((c - 1) * out_step + r) * 4, 4);
                k->x32_transpose(r, c, (const uint32_t *)(const void *)in, in_step, out.p, out_step);
                for (size_t i = 0; i < r * c; i++) {
                    assert_true(((float *)out.p)[i % c * out_step + i / c] ==
                                in[i / c * in_step + i % c]);
                }
                give(&out);
                free(in);
            }
        }
    }
}

int main(void)
{
    levels_fill();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles),         cmocka_unit_test(packs),    cmocka_unit_test(patches),
        cmocka_unit_test(few_rows),      cmocka_unit_test(int_tiles), cmocka_unit_test(int_rows),
        cmocka_unit_test(int_packs),     cmocka_unit_test(unary),    cmocka_unit_test(unary_special),
        cmocka_unit_test(halves),
        cmocka_unit_test(rows),          cmocka_unit_test(binary),   cmocka_unit_test(windows),
        cmocka_unit_test(depthwise),     cmocka_unit_test(transposes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
