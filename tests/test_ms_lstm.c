/* test_ms_lstm.c: com.microsoft DynamicQuantizeLSTM on the cpu and the reference provider against the
 * same network as the test computes it: integers of input and state, sums of products in 64 bits, gates
 * in double. Weights of both types, a scale a column or a direction, both directions, lengths, states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "make_model.h"
#include "model_run.h"
#include "nori/nori.h"
#include "record.h"

enum { LENGTH = 5, BATCH = 3, INPUT = 7, HIDDEN = 9, COLUMNS = 4 * HIDDEN, DIRECTIONS = 2 };

typedef struct lstm {
    bool is_signed, per_column, lengths;
    float x[LENGTH * BATCH * INPUT];
    int w[DIRECTIONS * INPUT * COLUMNS], r[DIRECTIONS * HIDDEN * COLUMNS];
    float w_scale[DIRECTIONS * COLUMNS], r_scale[DIRECTIONS * COLUMNS];
    int w_zero[DIRECTIONS * COLUMNS], r_zero[DIRECTIONS * COLUMNS];
    float bias[DIRECTIONS * 2 * COLUMNS], h0[DIRECTIONS * BATCH * HIDDEN], c0[DIRECTIONS * BATCH * HIDDEN];
    double y[LENGTH * DIRECTIONS * BATCH * HIDDEN], h[DIRECTIONS * BATCH * HIDDEN];
} lstm;

static uint32_t drawn = 5;
static uint32_t draw(void)
{
    drawn = drawn * 1664525u + 1013904223u;
    return drawn >> 8;
}
static float between(float low, float high)
{
    return low + (high - low) * (float)draw() / 16777216.0f;
}

/* ---- what it computes ---- */

typedef struct bytes {
    int64_t q[LENGTH * BATCH * INPUT];
    float scale;
} bytes;

/* Integers less their zero point. */
static void quantize(const float *v, int n, bytes *out)
{
    float low = 0, high = 0;
    for (int i = 0; i < n; i++) {
        low = fminf(low, v[i]);
        high = fmaxf(high, v[i]);
    }
    out->scale = high > low ? (high - low) / 255 : 1;
    float zero = rintf(fmaxf(0, fminf(255, -low / out->scale)));
    for (int i = 0; i < n; i++) {
        out->q[i] = (int64_t)(fmaxf(0, fminf(255, rintf(v[i] / out->scale) + zero)) - zero);
    }
}

static double sum(const bytes *b, int at, int n, const int *w, const int *zero, const float *scale,
                  int column)
{
    int64_t total = 0;
    for (int k = 0; k < n; k++) {
        total += b->q[at + k] * (w[k * COLUMNS + column] - zero[column]);
    }
    return (double)total * (double)b->scale * (double)scale[column];
}

static double sigmoid(double v) { return 1 / (1 + exp(-v)); }

static void one_sequence(lstm *l, const bytes *x, int d, int b)
{
    int steps = l->lengths ? LENGTH - b : LENGTH, state = (d * BATCH + b) * HIDDEN;
    float h[HIDDEN];
    double c[HIDDEN];
    bytes now;
    for (int j = 0; j < HIDDEN; j++) {
        h[j] = l->h0[state + j];
        c[j] = (double)l->c0[state + j];
    }
    for (int s = 0; s < steps; s++) {
        int t = d ? steps - 1 - s : s, columns = d * COLUMNS;
        double gate[COLUMNS];
        quantize(h, HIDDEN, &now);
        for (int g = 0; g < COLUMNS; g++) {
            gate[g] = sum(x, (t * BATCH + b) * INPUT, INPUT, l->w + d * INPUT * COLUMNS, l->w_zero + columns,
                          l->w_scale + columns, g) +
                      sum(&now, 0, HIDDEN, l->r + d * HIDDEN * COLUMNS, l->r_zero + columns,
                          l->r_scale + columns, g) +
                      (double)l->bias[2 * columns + g] + (double)l->bias[2 * columns + COLUMNS + g];
        }
        for (int j = 0; j < HIDDEN; j++) { /* i, o, f, c */
            c[j] = sigmoid(gate[2 * HIDDEN + j]) * c[j] + sigmoid(gate[j]) * tanh(gate[3 * HIDDEN + j]);
            h[j] = (float)(sigmoid(gate[HIDDEN + j]) * tanh(c[j]));
            l->y[((t * DIRECTIONS + d) * BATCH + b) * HIDDEN + j] = (double)h[j];
        }
    }
    for (int j = 0; j < HIDDEN; j++) {
        l->h[state + j] = (double)h[j];
    }
}

static void compute(lstm *l)
{
    bytes x;
    memset(l->y, 0, sizeof(l->y));
    quantize(l->x, LENGTH * BATCH * INPUT, &x);
    for (int d = 0; d < DIRECTIONS; d++) {
        for (int b = 0; b < BATCH; b++) {
            one_sequence(l, &x, d, b);
        }
    }
}

/* ---- its numbers ---- */

static void draw_weight(const lstm *l, int depth, int *w, float *scale, int *zero)
{
    for (int i = 0; i < DIRECTIONS * depth * COLUMNS; i++) {
        w[i] = (int)(draw() % 256) - (l->is_signed ? 128 : 0);
    }
    for (int i = 0; i < DIRECTIONS * COLUMNS; i++) {
        bool same = !l->per_column && i % COLUMNS > 0;
        scale[i] = same ? scale[i - 1] : between(0.001f, 0.006f);
        zero[i] = same ? zero[i - 1] : l->is_signed ? (l->per_column ? 0 : 3) : 120 + (int)(draw() % 9);
    }
}

static void draw_all(lstm *l)
{
    for (size_t i = 0; i < NORI__COUNT(l->x); i++) {
        l->x[i] = between(-2, 3);
    }
    for (size_t i = 0; i < NORI__COUNT(l->bias); i++) {
        l->bias[i] = between(-0.5f, 0.5f);
    }
    for (size_t i = 0; i < NORI__COUNT(l->h0); i++) {
        l->h0[i] = between(-1, 1);
        l->c0[i] = between(-1, 1);
    }
    draw_weight(l, INPUT, l->w, l->w_scale, l->w_zero);
    draw_weight(l, HIDDEN, l->r, l->r_scale, l->r_zero);
}

/* ---- the model ---- */

static void integers(make *m, const char *name, nori_type type, int rank, const int64_t *dims, const int *v)
{
    nori__pb_tensor *t = MAKE_ADD(m, m->graph.initializers);
    int64_t count = 1;
    t->name = make_str(m, name);
    t->data_type = type;
    for (int i = 0; i < rank; i++) {
        *MAKE_ADD(m, t->dims) = dims[i];
        count *= dims[i];
    }
    for (int64_t i = 0; i < count; i++) {
        *MAKE_ADD(m, t->ints) = v[i];
    }
}

/* Scale and zero point: of each column, or the first of each direction. */
static void add_scale(make *m, const lstm *l, const char *name, const float *scale, const int *zero)
{
    char text[32];
    float few[DIRECTIONS] = {scale[0], scale[COLUMNS]};
    int zeros[DIRECTIONS] = {zero[0], zero[COLUMNS]};
    snprintf(text, sizeof(text), "%s_scale", name);
    make_weights(m, &m->graph, text, l->per_column ? "2 36" : "2", l->per_column ? scale : few);
    snprintf(text, sizeof(text), "%s_zero", name);
    integers(m, text, l->is_signed ? NORI_INT8 : NORI_UINT8, l->per_column ? 2 : 1,
             (const int64_t[]){DIRECTIONS, COLUMNS}, l->per_column ? zero : zeros);
}

static void build(make *m, const lstm *l)
{
    static const int lengths[BATCH] = {LENGTH, LENGTH - 1, LENGTH - 2};
    nori_type type = l->is_signed ? NORI_INT8 : NORI_UINT8;
    make_begin(m, 13);
    make_import(m, "com.microsoft", 1);
    make_input(m, &m->graph, "x", NORI_FLOAT, "5 3 7");
    make_output(m, &m->graph, "y", NORI_FLOAT, "5 2 3 9");
    make_output(m, &m->graph, "h", NORI_FLOAT, "2 3 9");
    integers(m, "w", type, 3, (const int64_t[]){DIRECTIONS, INPUT, COLUMNS}, l->w);
    integers(m, "r", type, 3, (const int64_t[]){DIRECTIONS, HIDDEN, COLUMNS}, l->r);
    make_weights(m, &m->graph, "b", "2 72", l->bias);
    make_weights(m, &m->graph, "h0", "2 3 9", l->h0);
    make_weights(m, &m->graph, "c0", "2 3 9", l->c0);
    integers(m, "lengths", NORI_INT32, 1, (const int64_t[]){BATCH}, lengths);
    add_scale(m, l, "w", l->w_scale, l->w_zero);
    add_scale(m, l, "r", l->r_scale, l->r_zero);
    nori__pb_node *n = make_node(m, &m->graph, "com.microsoft", "DynamicQuantizeLSTM", "cell",
                                 l->lengths ? "x w r b lengths h0 c0 - w_scale w_zero r_scale r_zero"
                                            : "x w r b - h0 c0 - w_scale w_zero r_scale r_zero",
                                 "y h");
    make_attr_int(m, n, "hidden_size", HIDDEN);
    make_attr_text(m, n, "direction", "bidirectional");
}

static void check(const lstm *l, const char *providers, int threads)
{
    make m;
    nori_tensor *x = NULL, *out[2] = {NULL};
    nori_error err = {0};
    build(&m, l);
    const int64_t dims[3] = {LENGTH, BATCH, INPUT};
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 3, dims, &x, &err), NORI_OK);
    memcpy(nori_tensor_data(x), l->x, sizeof(l->x));
    model_run(&m, providers, 2, threads, x, out, 2);
    assert_int_equal(nori_tensor_elements(out[0]), NORI__COUNT(l->y));
    for (size_t i = 0; i < NORI__COUNT(l->y); i++) {
        assert_true(fabs(nori__tensor_get_f64(out[0], (int64_t)i) - l->y[i]) < 2e-5);
    }
    for (size_t i = 0; i < NORI__COUNT(l->h); i++) {
        assert_true(fabs(nori__tensor_get_f64(out[1], (int64_t)i) - l->h[i]) < 2e-5);
    }
    nori_tensor_free(out[0]);
    nori_tensor_free(out[1]);
    nori_tensor_free(x);
    record_operator("com.microsoft", "DynamicQuantizeLSTM", 1);
    make_end(&m);
}

static void all(void **state)
{
    static lstm l;
    (void)state;
    for (int k = 0; k < 8; k++) {
        l.is_signed = k & 1;
        l.per_column = k & 2;
        l.lengths = k & 4;
        draw_all(&l);
        compute(&l);
        check(&l, "reference", 1);
        check(&l, "cpu", 1);
        check(&l, "cpu", 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
