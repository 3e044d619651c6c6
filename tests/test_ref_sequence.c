/* test_ref_sequence.c: reference kernels over sequences: recurrent cells against their equations
 * written out step by step, attention and its masks, transforms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "one_node.h"

enum { LENGTH = 4, INPUT = 3, HIDDEN = 2, MOST_BATCH = 4 };

static double value(int i)
{
    return (double)((i * 5 + 2) % 11) / 11 - 0.45;
}

static void fill(double *v, int n, int seed)
{
    for (int i = 0; i < n; i++) {
        v[i] = (double)(float)value(i + seed);
    }
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

typedef struct gru_case {
    bool after, bias, initial;
    int batch, directions;
    bool reverse;
    double x[LENGTH * MOST_BATCH * INPUT], w[2 * 3 * HIDDEN * INPUT], r[2 * 3 * HIDDEN * HIDDEN];
    double b[2 * 6 * HIDDEN], h0[2 * MOST_BATCH * HIDDEN];
    double y[LENGTH * 2 * MOST_BATCH * HIDDEN];
} gru_case;

/* Row `row` of gate g times v, plus its bias if any. */
static double line(const double *m, const double *b, int g, int row, int columns, const double *v)
{
    double sum = b ? b[g * HIDDEN + row] : 0;
    for (int i = 0; i < columns; i++) {
        sum += m[(g * HIDDEN + row) * columns + i] * v[i];
    }
    return sum;
}

/* zt = f(Xt Wz' + Ht-1 Rz' + Wbz + Rbz), rt alike, ht by one of its two forms,
 * Ht = (1 - zt) ht + zt Ht-1. */
static void gru_direction(gru_case *c, int dir, int batch)
{
    const double *w = c->w + dir * 3 * HIDDEN * INPUT, *r = c->r + dir * 3 * HIDDEN * HIDDEN;
    const double *wb = c->bias ? c->b + dir * 6 * HIDDEN : NULL;
    const double *rb = c->bias ? wb + 3 * HIDDEN : NULL;
    double h[HIDDEN] = {0};
    for (int j = 0; j < HIDDEN && c->initial; j++) {
        h[j] = c->h0[(dir * c->batch + batch) * HIDDEN + j];
    }
    for (int step = 0; step < LENGTH; step++) {
        int t = (dir == 1 || c->reverse) ? LENGTH - 1 - step : step;
        const double *x = c->x + (t * c->batch + batch) * INPUT;
        double z[HIDDEN], gated[HIDDEN], reset[HIDDEN];
        for (int j = 0; j < HIDDEN; j++) {
            z[j] = sigmoid(line(w, wb, 0, j, INPUT, x) + line(r, rb, 0, j, HIDDEN, h));
            reset[j] = sigmoid(line(w, wb, 1, j, INPUT, x) + line(r, rb, 1, j, HIDDEN, h));
        }
        for (int j = 0; j < HIDDEN; j++) {
            gated[j] = reset[j] * h[j];
        }
        double next[HIDDEN];
        for (int j = 0; j < HIDDEN; j++) {
            double in = line(w, wb, 2, j, INPUT, x);
            double fresh = c->after ? tanh(in + reset[j] * line(r, rb, 2, j, HIDDEN, h))
                                    : tanh(in + line(r, rb, 2, j, HIDDEN, gated));
            next[j] = (1 - z[j]) * fresh + z[j] * h[j];
        }
        for (int j = 0; j < HIDDEN; j++) {
            h[j] = next[j];
            c->y[((t * c->directions + dir) * c->batch + batch) * HIDDEN + j] = h[j];
        }
    }
}

static void run_gru(gru_case *c)
{
    one o;
    int d = c->directions, n = c->batch;
    fill(c->x, LENGTH * n * INPUT, 0);
    fill(c->w, d * 3 * HIDDEN * INPUT, 3);
    fill(c->r, d * 3 * HIDDEN * HIDDEN, 7);
    fill(c->b, d * 6 * HIDDEN, 1);
    fill(c->h0, d * n * HIDDEN, 4);
    for (int dir = 0; dir < d; dir++) {
        for (int batch = 0; batch < n; batch++) {
            gru_direction(c, dir, batch);
        }
    }
    one_begin(&o, "", "GRU", 2, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(LENGTH, n, INPUT), c->x);
    one_input(&o, NORI_FLOAT, ONE_DIMS(d, 3 * HIDDEN, INPUT), c->w);
    one_input(&o, NORI_FLOAT, ONE_DIMS(d, 3 * HIDDEN, HIDDEN), c->r);
    if (c->bias) {
        one_input(&o, NORI_FLOAT, ONE_DIMS(d, 6 * HIDDEN), c->b);
    } else {
        one_absent(&o);
    }
    one_absent(&o);
    if (c->initial) {
        one_input(&o, NORI_FLOAT, ONE_DIMS(d, n, HIDDEN), c->h0);
    }
    one_s(&o, "direction", d == 2 ? "bidirectional" : c->reverse ? "reverse" : "forward");
    one_i(&o, "linear_before_reset", c->after);
    one_i(&o, "hidden_size", HIDDEN);
    one_ok(&o);
    one_shape(&o, 0, NORI_FLOAT, ONE_DIMS(LENGTH, d, n, HIDDEN));
    one_near(&o, 0, c->y, 1e-6);
    one_shape(&o, 1, NORI_FLOAT, ONE_DIMS(d, n, HIDDEN));
    for (int i = 0; i < d * n * HIDDEN; i++) { /* the state is the last output of its direction */
        int dir = i / n / HIDDEN, t = dir == 1 || c->reverse ? 0 : LENGTH - 1;
        double want = c->y[(t * d + dir) * n * HIDDEN + i % (n * HIDDEN)];
        assert_true(fabs(nori__tensor_get_f64(o.results[1], i) - want) < 1e-6);
    }
    one_end(&o);
}

static void test_gru(void **state)
{
    (void)state;
    static const int batches[] = {1, 3, 4};
    for (int k = 0; k < 2 * 2 * 2 * 3 * 3; k++) {
        gru_case c = {.after = k & 1, .bias = k >> 1 & 1, .initial = k >> 2 & 1,
                      .batch = batches[k / 8 % 3], .directions = k / 24 == 2 ? 2 : 1,
                      .reverse = k / 24 == 1};
        run_gru(&c);
    }
}

/* Past a sequence's end Y is 0 and the state stays; reverse begins at that end. */
static void test_lengths(void **state)
{
    (void)state;
    for (int reverse = 0; reverse < 2; reverse++) {
        one o;
        one_begin(&o, "", "RNN", 2, 0);
        one_input(&o, NORI_FLOAT, ONE_DIMS(3, 2, 1), ONE_F(1, 1, 2, 2, 4, 4));
        one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 1), ONE_F(1));
        one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 1), ONE_F(10));
        one_absent(&o);
        one_input(&o, NORI_INT32, ONE_DIMS(2), ONE_F(3, 2));
        nori__attr *names = one_attr(&o, "activations", NORI__ATTR_STRINGS);
        const nori__str affine = NORI__STR("Affine");
        names->v.strings = &affine;
        names->count = 1;
        one_s(&o, "direction", reverse ? "reverse" : "forward");
        one_ok(&o);
        one_near(&o, 0, reverse ? ONE_F(421, 21, 42, 2, 4, 0) : ONE_F(1, 1, 12, 12, 124, 0), 1e-6);
        one_near(&o, 1, reverse ? ONE_F(421, 21) : ONE_F(124, 12), 1e-6);
        one_end(&o);
    }
    one o;
    one_begin(&o, "", "LSTM", 3, 0); /* an empty batch */
    one_input(&o, NORI_FLOAT, ONE_DIMS(3, 0, 1), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 8, 1), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 8, 2), NULL);
    one_ok(&o);
    one_shape(&o, 0, NORI_FLOAT, ONE_DIMS(3, 1, 0, 2));
    one_shape(&o, 2, NORI_FLOAT, ONE_DIMS(1, 0, 2));
    one_end(&o);
    one_begin(&o, "", "LSTM", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(3, 1, 1), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 8, 1), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 7, 2), NULL);
    one_fails(&o, NORI_ERROR_MODEL, "7 rows, expected 4 times 2");
}

/* Peepholes and coupled gates of one cell of size 1. */
static void test_lstm(void **state)
{
    (void)state;
    one o;
    one_begin(&o, "", "LSTM", 3, 0);
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 1, 1), ONE_F(2));
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 4, 1), ONE_F(0.1, 0.2, 0.3, 0.4));
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 4, 1), ONE_F(0.5, 0.6, 0.7, 0.8));
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 8), ONE_F(0.01, 0.02, 0.03, 0.04, 0.1, 0.2, 0.3, 0.4));
    one_absent(&o);
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 1, 1), ONE_F(-1));
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 1, 1), ONE_F(3));
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 3), ONE_F(0.9, -0.8, 0.7));
    one_i(&o, "input_forget", 1);
    double i = sigmoid(0.2 - 0.5 + 0.11 + 0.9 * 3);
    double c = (1 - i) * 3 + i * tanh(0.8 - 0.8 + 0.44);
    double h = sigmoid(0.4 - 0.6 + 0.22 - 0.8 * c) * tanh(c);
    one_ok(&o);
    one_near(&o, 0, &h, 1e-12);
    one_near(&o, 1, &h, 1e-12);
    one_near(&o, 2, &c, 1e-12);
    one_end(&o);
}

/* ---- attention ---- */

static double first_of(double a, double b)
{
    return exp(a) / (exp(a) + exp(b));
}

static void test_attention(void **state)
{
    (void)state;
    one o;
    double p = first_of(2, 1);
    /* Two query heads share one key head; a past key; causal from the past on. */
    one_begin(&o, "", "Attention", 4, 0);
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 2, 1, 1), ONE_F(1, 0));
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 1, 1, 1), ONE_F(1));
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 1, 1, 1), ONE_F(10));
    one_absent(&o);
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 1, 1, 1), ONE_F(2));
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 1, 1, 1), ONE_F(20));
    one_i(&o, "is_causal", 1);
    one_i(&o, "qk_matmul_output_mode", 3);
    one_ok(&o);
    one_near(&o, 0, ONE_F(20 * p + 10 * (1 - p), 15), 1e-12);
    one_near(&o, 1, ONE_F(2, 1), 0);
    one_near(&o, 2, ONE_F(20, 10), 0);
    one_near(&o, 3, ONE_F(p, 1 - p, 0.5, 0.5), 1e-12);
    one_end(&o);
    /* A mask of fewer keys forbids the rest; a row with none left is 0, not NaN. */
    one_begin(&o, "", "Attention", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 2, 1), ONE_F(1, 1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 3, 1), ONE_F(2, 1, 9));
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 3, 1), ONE_F(1, 0, 100));
    one_input(&o, NORI_BOOL, ONE_DIMS(2, 2), ONE_F(1, 1, 0, 0));
    one_i(&o, "q_num_heads", 1);
    one_i(&o, "kv_num_heads", 1);
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 2, 1), ONE_F(p, 0));
    /* A cache kept outside: 2 of 3 keys are there, so query 0 stands at key 0. */
    one_begin(&o, "", "Attention", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 2, 1), ONE_F(1, 1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 3, 1), ONE_F(2, 1, 9));
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 3, 1), ONE_F(1, 0, 100));
    one_absent(&o);
    one_absent(&o);
    one_absent(&o);
    one_input(&o, NORI_INT64, ONE_DIMS(1), ONE_F(2));
    one_i(&o, "q_num_heads", 1);
    one_i(&o, "kv_num_heads", 1);
    one_i(&o, "is_causal", 1);
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 2, 1), ONE_F(1, p));
    one_begin(&o, "", "Attention", 1, 0); /* no keys */
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 2, 2), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 0, 2), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 0, 1), NULL);
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 1, 2, 1), ONE_F(0, 0));
    one_begin(&o, "", "Attention", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 3, 2, 2), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 2, 2, 2), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 2, 2, 2), NULL);
    one_fails(&o, NORI_ERROR_DATA, "3 query heads cannot share 2");
}

static void test_ms_attention(void **state)
{
    (void)state;
    one o;
    double p = first_of(2, 1);
    one_begin(&o, "com.microsoft", "Attention", 2, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 3, 1), ONE_F(1, 2, 7)); /* the third is padding */
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 3), ONE_F(0, -1, 1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(3), ONE_F(1, 3, 0));
    one_input(&o, NORI_INT32, ONE_DIMS(1), ONE_F(2));
    one_i(&o, "num_heads", 1);
    one_ok(&o);
    /* q = 1, k = 2, 1, -4; v = 1, 2, 7 */
    double y = p * 1 + (1 - p) * 2;
    one_near(&o, 0, ONE_F(y, y, y), 1e-6);
    one_shape(&o, 1, NORI_FLOAT, ONE_DIMS(2, 1, 1, 3, 1));
    one_near(&o, 1, ONE_F(2, 1, -4, 1, 2, 7), 1e-6);
    one_end(&o);
    one_begin(&o, "com.microsoft", "EmbedLayerNormalization", 2, 0);
    one_input(&o, NORI_INT32, ONE_DIMS(1, 2), ONE_F(1, 0));
    one_input(&o, NORI_INT32, ONE_DIMS(1, 2), ONE_F(0, 1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 2), ONE_F(0, 1, 2, 8));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 2), ONE_F(0, 0, 5, 0));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 2), ONE_F(1, 1, 0, 0));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(1, 2));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(0, 0.5));
    one_input(&o, NORI_INT32, ONE_DIMS(1, 2), ONE_F(1, 0));
    one_ok(&o); /* rows (3, 9) and (5, 1): deviations of one each */
    one_near(&o, 0, ONE_F(-1, 2.5, 1, -1.5), 1e-6);
    one_near(&o, 1, ONE_F(1), 0);
    one_end(&o);
    one_begin(&o, "com.microsoft", "EmbedLayerNormalization", 1, 0);
    one_input(&o, NORI_INT32, ONE_DIMS(1, 1), ONE_F(2));
    one_absent(&o);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 2), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 2), NULL);
    one_absent(&o);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), NULL);
    one_fails(&o, NORI_ERROR_DATA, "names a row");
}

/* ---- transforms ---- */

/* Lengths of both kinds against the sum, and back. */
static void test_dft(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 6, 8, 15, 32};
    for (size_t k = 0; k < NORI__COUNT(sizes); k++) {
        int n = sizes[k];
        one o;
        double v[64], want[64];
        fill(v, n, 0);
        for (int f = 0; f < n; f++) {
            want[2 * f] = want[2 * f + 1] = 0;
            for (int i = 0; i < n; i++) {
                want[2 * f] += v[i] * cos(2 * M_PI * f * i / n);
                want[2 * f + 1] -= v[i] * sin(2 * M_PI * f * i / n);
            }
        }
        one_begin(&o, "", "DFT", 1, 20);
        one_input(&o, NORI_DOUBLE, ONE_DIMS(1, n, 1), v);
        one_ok(&o);
        one_shape(&o, 0, NORI_DOUBLE, ONE_DIMS(1, n, 2));
        one_near(&o, 0, want, 1e-12);
        one_end(&o);
        one_begin(&o, "", "DFT", 1, 20); /* half a spectrum gives the real signal back */
        one_input(&o, NORI_DOUBLE, ONE_DIMS(1, n / 2 + 1, 2), want);
        one_scalar(&o, NORI_INT64, n);
        one_i(&o, "inverse", 1);
        one_i(&o, "onesided", 1);
        one_ok(&o);
        one_shape(&o, 0, NORI_DOUBLE, ONE_DIMS(1, n, 1));
        one_near(&o, 0, v, 1e-12);
        one_end(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gru),       cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_lstm),      cmocka_unit_test(test_attention),
        cmocka_unit_test(test_ms_attention), cmocka_unit_test(test_dft),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
