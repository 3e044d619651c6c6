/* test_block_kernels.c: the micro-kernels over channel blocks, of every level this CPU has, against
 * plain C in double: every tile size, odd sizes, misaligned pointers, guards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel_harness.h"

/* ---- tiles ---- */

static double tile_sum(const nori__kernels *k, size_t terms, size_t lanes, const int64_t *offset,
                       const float *x, const float *w, size_t blocks, size_t block, size_t lane)
{
    double sum = 0;
    for (size_t t = 0; t < terms; t++) {
        for (size_t l = 0; l < lanes; l++) {
            sum += (double)x[(size_t)offset[t] + l] *
                   w[((t * lanes + l) * blocks + block) * k->block + lane];
        }
    }
    return sum;
}

static void tiles(void **state)
{
    (void)state;
    static const struct {
        size_t terms, lanes, step;
    } forms[] = {{0, 1, 1}, {1, 1, 1}, {5, 1, 2}, {3, 16, 16}, {2, 7, 32}, {9, 3, 5}};
    EACH_LEVEL(k) {
        size_t c = k->block;
        for (size_t pixels = 1; pixels <= k->block_pixels; pixels++) {
            for (size_t blocks = 1; blocks <= 2; blocks++) {
                for (size_t i = 0; i < NORI__COUNT(forms); i++) {
                    size_t terms = forms[i].terms, lanes = forms[i].lanes, step = forms[i].step;
                    int64_t offset[9];
                    for (size_t t = 0; t < 9; t++) {
                        offset[t] = (int64_t)(t * 37 % 9 * 11);
                    }
                    size_t y_block = 2 * pixels * c + 3, used = 2 * y_block;
                    float *x = floats(8 * 11 + lanes + (pixels - 1) * step);
                    float *w = floats(terms * lanes * blocks * c), *bias = floats(blocks * c);
                    float *add = floats(used), *old = floats(used);
                    nori__block_finish f = {.bias = i % 2 ? bias : NULL, .add = i > 2 ? add : NULL,
                                            .clamp = i == 4, .low = -0.5f, .high = 0.75f,
                                            .step = i == 5 ? 2 * c : 0};
                    size_t next = f.step ? f.step : c;
                    buffer y = take(used * sizeof(float), 4);
                    memcpy(y.p, old, used * sizeof(float));
                    k->f32_block_tile(pixels, blocks, terms, lanes, offset, x, step, w, w, 64, y.p,
                                      y_block, &f);
                    for (size_t at = 0; at < used; at++) {
                        size_t b = at / y_block, p = at % y_block / next, lane = at % y_block % next;
                        float got = ((float *)y.p)[at];
                        if (b >= blocks || p >= pixels || lane >= c) { /* nothing is written there */
                            assert_true(got == old[at]);
                            continue;
                        }
                        double sum = f.bias ? bias[b * c + lane] : old[at];
                        sum += tile_sum(k, terms, lanes, offset, x + p * step, w, blocks, b, lane);
                        sum += f.add ? add[at] : 0;
                        near(got, f.clamp ? fmin(fmax(sum, -0.5), 0.75) : sum, 1e-5);
                    }
                    give(&y);
                    free(x);
                    free(w);
                    free(bias);
                    free(add);
                    free(old);
                }
            }
        }
    }
}

/* ---- windows ---- */

static const nori__block_window windows[] = {
    /* in, out, kernel, stride, dilation, begin */
    {{7, 7}, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {{9, 17}, {9, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {{8, 22}, {6, 20}, {3, 3}, {1, 1}, {1, 1}, {0, 0}},
    {{11, 15}, {6, 8}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},
    {{14, 14}, {7, 7}, {3, 3}, {2, 2}, {1, 1}, {0, 0}}, /* pads after only */
    {{14, 14}, {14, 14}, {5, 5}, {1, 1}, {1, 1}, {2, 2}},
    {{13, 19}, {7, 10}, {5, 5}, {2, 2}, {1, 1}, {2, 2}},
    {{5, 3}, {5, 3}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {{2, 1}, {2, 1}, {5, 5}, {1, 1}, {1, 1}, {2, 2}},
    {{6, 5}, {6, 5}, {3, 3}, {1, 1}, {2, 2}, {2, 2}},
    {{9, 9}, {9, 9}, {7, 7}, {1, 1}, {1, 1}, {3, 3}},
    {{9, 9}, {4, 3}, {2, 4}, {2, 3}, {1, 1}, {0, 1}},
    {{6, 12}, {6, 12}, {1, 3}, {1, 1}, {1, 1}, {0, 1}},
    {{6, 12}, {6, 12}, {3, 1}, {1, 1}, {1, 1}, {1, 0}},
};

/* Where kernel position t of output (h, w) looks; false: into pads. */
static bool looks(const nori__block_window *g, size_t h, size_t w, size_t t, size_t *at)
{
    int64_t r = (int64_t)(h * g->stride[0] + t / g->kernel[1] * g->dilation[0]) - (int64_t)g->begin[0];
    int64_t s = (int64_t)(w * g->stride[1] + t % g->kernel[1] * g->dilation[1]) - (int64_t)g->begin[1];
    *at = (size_t)(r * (int64_t)g->in[1] + s);
    return r >= 0 && s >= 0 && r < (int64_t)g->in[0] && s < (int64_t)g->in[1];
}

static void depthwise(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t i = 0; i < NORI__COUNT(windows); i++) {
            const nori__block_window *g = &windows[i];
            size_t c = k->block, taps = g->kernel[0] * g->kernel[1], n = g->out[0] * g->out[1];
            float *x = floats(g->in[0] * g->in[1] * c), *w = floats(taps * c), *bias = floats(c);
            float *add = floats(n * c);
            nori__block_finish f = {.bias = bias, .add = i % 2 ? add : NULL, .clamp = i % 3 == 0,
                                    .low = -1, .high = 1};
            buffer y = take(n * c * sizeof(float), 4);
            size_t middle = g->out[0] / 2; /* in two calls */
            k->f32_block_depthwise(g, 0, middle, x, w, y.p, &f);
            f.add = f.add ? f.add + middle * g->out[1] * c : NULL;
            k->f32_block_depthwise(g, middle, g->out[0], x, w,
                                   (float *)y.p + middle * g->out[1] * c, &f);
            for (size_t o = 0; o < n * c; o++) {
                double sum = bias[o % c] + (i % 2 ? (double)add[o] : 0);
                for (size_t t = 0; t < taps; t++) {
                    size_t at;
                    if (looks(g, o / c / g->out[1], o / c % g->out[1], t, &at)) {
                        sum += (double)x[at * c + o % c] * w[t * c + o % c];
                    }
                }
                near(((float *)y.p)[o], f.clamp ? fmin(fmax(sum, -1), 1) : sum, 1e-5);
            }
            give(&y);
            free(x);
            free(w);
            free(bias);
            free(add);
        }
    }
}

static void pools(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t i = 0; i < NORI__COUNT(windows); i++) {
            const nori__block_window *g = &windows[i];
            size_t c = k->block, taps = g->kernel[0] * g->kernel[1];
            float *x = floats(g->in[0] * g->in[1] * c), *divide = floats(g->out[1]);
            x[c] = NAN;
            for (size_t j = 0; j < g->out[1]; j++) {
                divide[j] = 2 + divide[j];
            }
            for (size_t row = 0; row < g->out[0]; row++) {
                for (int max = 0; max < 2; max++) {
                    buffer y = take(g->out[1] * c * sizeof(float), 4);
                    k->f32_block_pool(g, max != 0, row, x, y.p, divide);
                    for (size_t o = 0; o < g->out[1] * c; o++) {
                        double best = -INFINITY, sum = 0;
                        for (size_t t = 0; t < taps; t++) {
                            size_t at;
                            if (looks(g, row, o / c, t, &at)) {
                                double v = x[at * c + o % c];
                                best = isnan(v) || isnan(best) ? NAN : fmax(best, v);
                                sum += v;
                            }
                        }
                        near(((float *)y.p)[o], max ? best : sum / (double)divide[o / c], 1e-5);
                    }
                    give(&y);
                }
            }
            free(x);
            free(divide);
        }
        for (size_t n = 1; n < 40; n++) {
            size_t c = k->block;
            float *x = floats(n * c), *scale = floats(c);
            buffer y = take(n * c * sizeof(float), 4), sum = take(c * sizeof(float), 4);
            k->f32_block_affine(n, x, scale, n % 2 ? NULL : scale, y.p);
            k->f32_block_sum(n, x, sum.p);
            for (size_t l = 0; l < c; l++) {
                double want = 0;
                for (size_t p = 0; p < n; p++) {
                    want += (double)x[p * c + l];
                    near(((float *)y.p)[p * c + l],
                         (double)x[p * c + l] * scale[l] + (n % 2 ? 0 : (double)scale[l]), 1e-6);
                }
                near(((float *)sum.p)[l], want, 1e-5);
            }
            give(&y);
            give(&sum);
            free(x);
            free(scale);
        }
    }
}

static void rows_of_planes(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        size_t c = k->block;
        for (size_t n = 1; n < 20; n++) {
            float *x0 = floats(7 * c), *x1 = floats(7 * c), *slope = floats(c);
            nori__linear_tap tap[20];
            int64_t at[20];
            for (size_t i = 0; i < n; i++) {
                at[i] = (int64_t)(i * 5 % 7);
                tap[i] = (nori__linear_tap){{i * 3 % 7, i * 4 % 7}, {(float)i / 20, 1 - (float)i / 20}};
            }
            buffer y = take(n * c * sizeof(float), 4), z = take(n * c * sizeof(float), 4);
            buffer leaky = take(7 * c * sizeof(float), 4);
            k->f32_block_pick(n, at, x0, y.p);
            k->f32_block_linear(n, tap, x0, x1, 0.25f, 0.75f, z.p);
            k->f32_block_leaky(7, x0, slope, leaky.p);
            for (size_t i = 0; i < n * c; i++) {
                const nori__linear_tap *t = &tap[i / c];
                size_t l = i % c;
                double want = 0;
                for (int j = 0; j < 2; j++) {
                    want += (double)t->weight[j] * (0.25 * (double)x0[t->at[j] * c + l] +
                                                    0.75 * (double)x1[t->at[j] * c + l]);
                }
                assert_true(((float *)y.p)[i] == x0[(size_t)at[i / c] * c + l]);
                near(((float *)z.p)[i], want, 1e-6);
            }
            for (size_t i = 0; i < 7 * c; i++) {
                assert_true(((float *)leaky.p)[i] == (x0[i] < 0 ? x0[i] * slope[i % c] : x0[i]));
            }
            give(&y);
            give(&z);
            give(&leaky);
            free(x0);
            free(x1);
            free(slope);
        }
    }
}

/* ---- Winograd ---- */

/* B', A' and G of F(4 x 4, 3 x 3) and F(2 x 2, 3 x 3). */
#define P 0.70710678118654752
#define Q 1.41421356237309505
static const struct {
    size_t tile;
    double to_v[6][6], to_y[4][6], g[6][3];
} forms[] = {
    {4,
     {{1, 0, -2.5, 0, 1, 0}, {0, -2 * P, -2, P, 1, 0}, {0, 2 * P, -2, -P, 1, 0},
      {0, -Q / 2, -0.5, Q, 1, 0}, {0, Q / 2, -0.5, -Q, 1, 0}, {0, 1, 0, -2.5, 0, 1}},
     {{1, 1, 1, 1, 1, 0}, {0, P, -P, Q, -Q, 0}, {0, 0.5, 0.5, 2, 2, 0},
      {0, P / 2, -P / 2, 2 * Q, -2 * Q, 1}},
     {{1, 0, 0}, {-2.0 / 3, -2 * P / 3, -1.0 / 3}, {-2.0 / 3, 2 * P / 3, -1.0 / 3},
      {1.0 / 6, Q / 6, 1.0 / 3}, {1.0 / 6, -Q / 6, 1.0 / 3}, {0, 0, 1}}},
    {2,
     {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
     {{1, 1, 1, 0}, {0, 1, -1, -1}},
     {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}}},
};

static void winograd_in(const nori__kernels *k, size_t form, const nori__block_patch *p)
{
    size_t c = k->block, row = 9 * c, step = 3 * c + 1, side = forms[form].tile + 2;
    size_t rows = p->row[1] - p->row[0], cols = p->col[1] - p->col[0];
    float *x = floats((rows - 1) * row + cols * c);
    buffer v = take(((side * side - 1) * step + c) * sizeof(float), 4);
    k->f32_winograd_in(forms[form].tile, x, row, p, v.p, step);
    for (size_t i = 0; i < side * side * c; i++) {
        size_t t = i / c;
        double want = 0;
        for (size_t h = 0; h < rows; h++) {
            for (size_t w = 0; w < cols; w++) {
                want += forms[form].to_v[t / side][p->row[0] + h] *
                        forms[form].to_v[t % side][p->col[0] + w] * (double)x[h * row + w * c + i % c];
            }
        }
        near(((float *)v.p)[t * step + i % c], want, 1e-5);
    }
    give(&v);
    free(x);
}

static void winograd_out(const nori__kernels *k, size_t form, size_t rows, size_t cols)
{
    size_t c = k->block, row = 9 * c, step = 3 * c + 1, side = forms[form].tile + 2;
    size_t used = (rows - 1) * row + cols * c;
    float *m = floats((side * side - 1) * step + c), *bias = floats(c), *add = floats(used);
    nori__block_finish f = {.bias = bias, .add = rows % 2 ? add : NULL, .clamp = cols > 1, .low = -1,
                            .high = 0.5f};
    buffer y = take(used * sizeof(float), 4);
    k->f32_winograd_out(forms[form].tile, m, step, rows, cols, y.p, row, &f);
    for (size_t o = 0; o < rows * cols * c; o++) {
        size_t h = o / c / cols, w = o / c % cols, at = h * row + w * c + o % c;
        double want = bias[o % c];
        for (size_t t = 0; t < side * side; t++) {
            want += forms[form].to_y[h][t / side] * forms[form].to_y[w][t % side] *
                    (double)m[t * step + o % c];
        }
        want += f.add ? add[at] : 0;
        near(((float *)y.p)[at], f.clamp ? fmin(fmax(want, -1), 0.5) : want, 1e-5);
    }
    give(&y);
    free(m);
    free(bias);
    free(add);
}

static void winograd(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t form = 0; form < 2; form++) {
            size_t tile = forms[form].tile, least = tile > 2 ? 4 : 3, side = tile + 2;
            for (size_t r0 = 0; r0 < 3; r0++) {
                for (size_t r1 = least; r1 <= side; r1++) {
                    nori__block_patch p = {{r0, r1}, {2 - r0, least + side - r1}};
                    winograd_in(k, form, &p);
                }
            }
            for (size_t i = 0; i < tile * tile; i++) {
                winograd_out(k, form, i / tile + 1, i % tile + 1);
            }
        }
    }
}

/* ---- weights ---- */

/* Rows at an odd address, as in a file, become vectors; what lies between their places stays. */
static void block_weights(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        size_t c = k->block, step = 2 * c + 1;
        for (size_t rows = 1; rows <= c; rows += rows + 1 < c ? 3 : 1) {
            for (size_t cols = 1; cols < 3 * c; cols += 2) {
                size_t place[3 * NORI__BLOCK_MAX];
                float *from = floats((rows - 1) * (cols + 5) + cols);
                char *bytes = malloc(((rows - 1) * (cols + 5) + cols) * sizeof(float) + 1);
                assert_non_null(bytes);
                memcpy(bytes + 1, from, ((rows - 1) * (cols + 5) + cols) * sizeof(float));
                for (size_t q = 0; q < cols; q++) {
                    place[q] = (cols - 1 - q) * step;
                }
                size_t used = (cols - 1) * step + c;
                buffer out = take(used * sizeof(float), 4);
                k->f32_block_weights(rows, cols, (const float *)(const void *)(bytes + 1), cols + 5, place,
                                     out.p);
                for (size_t at = 0; at < used; at++) {
                    size_t q = cols - 1 - at / step, j = at % step;
                    float got = ((float *)out.p)[at], want = j < rows ? from[j * (cols + 5) + q] : 0;
                    uint32_t bits;
                    memcpy(&bits, &got, sizeof(bits));
                    assert_true(j < c ? got == want : bits == 0x5a5a5a5a);
                }
                give(&out);
                free(bytes);
                free(from);
            }
        }
    }
}

/* G g G' of 3 x 3 filters: exact but for the one rounding to float. */
static void winograd_weights(void **state)
{
    (void)state;
    EACH_LEVEL(k) {
        for (size_t form = 0; form < 2; form++) {
            size_t side = forms[form].tile + 2, positions = side * side;
            size_t c = k->block, channels = 5, u_channel = c + 2, u_step = channels * u_channel + 3;
            float *w = floats(channels * 9 * c);
            size_t used = (positions - 1) * u_step + (channels - 1) * u_channel + c;
            buffer u = take(used * sizeof(float), 4);
            k->f32_winograd_weights(forms[form].tile, channels, w, u.p, u_channel, u_step);
            for (size_t i = 0; i < channels * positions * c; i++) {
                size_t ch = i / positions / c, t = i / c % positions, lane = i % c;
                double want = 0;
                for (size_t a = 0; a < 9; a++) {
                    want += forms[form].g[t / side][a / 3] * forms[form].g[t % side][a % 3] *
                            (double)w[(ch * 9 + a) * c + lane];
                }
                near(((float *)u.p)[t * u_step + ch * u_channel + lane], want, 1e-7);
            }
            give(&u);
            free(w);
        }
    }
}

int main(void)
{
    levels_fill();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles),
        cmocka_unit_test(depthwise),
        cmocka_unit_test(pools),
        cmocka_unit_test(rows_of_planes),
        cmocka_unit_test(winograd),
        cmocka_unit_test(block_weights),
        cmocka_unit_test(winograd_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
