/* test_ref_training.c: one step of each optimizer of ai.onnx.preview.training by hand, and
 * FlexAttention of ai.onnx.preview against a plain attention written here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "make_model.h"
#include "op_harness.h"
#include "ops/schema.h"
#include "run_node.h"

#define TRAINING "ai.onnx.preview.training"
#define V(...) ((const double[]){__VA_ARGS__})

static void begin(op *o, const char *name, double rate, double count, uint32_t outputs)
{
    op_begin(o, TRAINING, name, 1);
    op_outputs(o, outputs);
    op_in(o, NORI_FLOAT, "", &rate);
    op_in(o, NORI_INT64, "", &count);
}

/* Two tensors at once: values, gradients, states. Rate 0.5 / (1 + 3 * 0.5) = 0.2. */
static void adagrad(void **state)
{
    (void)state;
    op o;
    begin(&o, "Adagrad", 0.5, 3, 4);
    op_in(&o, NORI_FLOAT, "1", V(2));
    op_in(&o, NORI_FLOAT, "2", V(0, 4));
    op_in(&o, NORI_FLOAT, "1", V(3));
    op_in(&o, NORI_FLOAT, "2", V(6, -2));
    op_in(&o, NORI_FLOAT, "1", V(9));
    op_in(&o, NORI_FLOAT, "2", V(13, 49));
    op_float(&o, "decay_factor", 0.5f);
    op_float(&o, "norm_coefficient", 0.5f);
    op_float(&o, "epsilon", 3);
    /* gradients 3 + 1, 6, -2 + 2; squares 9 + 16, 13 + 36, 49; roots 5, 7, 7 */
    op_expect(&o, 0, NORI_FLOAT, "1", V(2 - 0.2 * 4 / 8), 1e-6);
    op_expect(&o, 1, NORI_FLOAT, "2", V(-0.2 * 6 / 10, 4), 1e-6);
    op_expect(&o, 2, NORI_FLOAT, "1", V(25), 0);
    op_expect(&o, 3, NORI_FLOAT, "2", V(49, 49), 0);
    op_end(&o);
}

/* V = 4/2 + 2/2 = 3, H = 8 * 3/4 + 4/4 = 7; at T = 2 the rate is sqrt(7/16) / (3/4) = sqrt(7) / 3. */
static void adam(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        op o;
        begin(&o, "Adam", 1, late ? 2 : 0, 3);
        op_in(&o, NORI_DOUBLE, "1", V(1));
        op_in(&o, NORI_DOUBLE, "1", V(2));
        op_in(&o, NORI_DOUBLE, "1", V(4));
        op_in(&o, NORI_DOUBLE, "1", V(8));
        op_float(&o, "alpha", 0.5f);
        op_float(&o, "beta", 0.75f);
        op_float(&o, "epsilon", 1);
        op_float(&o, "norm_coefficient_post", 0.5f);
        double rate = late ? sqrt(7) / 3 : 1;
        op_expect(&o, 0, NORI_DOUBLE, "1", V(0.5 * (1 - rate * 3 / (sqrt(7) + 1))), 1e-12);
        op_expect(&o, 1, NORI_DOUBLE, "1", V(3), 0);
        op_expect(&o, 2, NORI_DOUBLE, "1", V(7), 0);
        op_end(&o);
    }
    op o; /* the defaults: 0.9, 0.999, 1e-6 as float has them */
    double a = (double)0.9f, b = (double)0.999f, e = (double)1e-6f;
    begin(&o, "Adam", 0.1, 0, 1);
    op_in(&o, NORI_DOUBLE, "1", V(1));
    op_in(&o, NORI_DOUBLE, "1", V(1e-3));
    op_in(&o, NORI_DOUBLE, "1", V(0));
    op_in(&o, NORI_DOUBLE, "1", V(0));
    double root = sqrt((1 - b) * 1e-6);
    op_expect(&o, 0, NORI_DOUBLE, "1", V(1 - (double)0.1f * (1 - a) * 1e-3 / (root + e)), 1e-12);
    op_end(&o);
    assert_string_equal(nori__schema_find(TRAINING, "Adam", 1)->attrs[2].name, "epsilon");
    assert_string_equal(nori__schema_find(TRAINING, "Adam", 1)->attrs[2].default_text, "1e-06");
}

/* The first time beta does not count; Nesterov looks ahead by alpha times the new state. */
static void momentum(void **state)
{
    static const double x[2][2] = {{2 - 0.1 * 6, 2 - 0.1 * (4 + 0.5 * 6)},
                                   {2 - 0.1 * 3, 2 - 0.1 * (4 + 0.5 * 3)}};
    (void)state;
    for (int k = 0; k < 4; k++) {
        int late = k / 2, nesterov = k % 2;
        op o;
        begin(&o, "Momentum", 0.1, late, 2);
        op_in(&o, NORI_FLOAT, "1", V(2));
        op_in(&o, NORI_FLOAT, "1", V(3));
        op_in(&o, NORI_FLOAT, "1", V(4));
        op_float(&o, "alpha", 0.5f);
        op_float(&o, "beta", 0.25f);
        op_float(&o, "norm_coefficient", 0.5f);
        op_text(&o, "mode", nesterov ? "nesterov" : "standard");
        op_expect(&o, 0, NORI_FLOAT, "1", &x[late][nesterov], 1e-6);
        op_expect(&o, 1, NORI_FLOAT, "1", V(late ? 3 : 6), 0);
        op_end(&o);
    }
    op o;
    begin(&o, "Momentum", 0.1, 1, 2);
    op_in(&o, NORI_FLOAT, "2", V(1, 2));
    op_in(&o, NORI_FLOAT, "1", V(3)); /* a gradient of another size */
    op_in(&o, NORI_FLOAT, "2", V(4, 5));
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    op_end(&o);
}

/* ---- FlexAttention ---- */

enum { HEADS = 2, QUERIES = 2, KEYS = 3, SIZE = 2 };

static double value(int kind, int head, int row, int d)
{
    return ((kind * 13 + head * 7 + row * 5 + d * 3) % 9) / 4.0 - 1;
}

static nori_tensor *heads_of(int kind, int heads, int rows)
{
    int64_t dims[4] = {1, heads, rows, SIZE};
    nori_tensor *t = node_tensor(NORI_FLOAT, 4, dims);
    for (int i = 0; i < heads * rows * SIZE; i++) {
        nori__tensor_set_f64(t, i, value(kind, i / SIZE / rows, i / SIZE % rows, i % SIZE));
    }
    return t;
}

/* Both heads of Q share the one of K and V. turned: scores change their sign, probabilities are
 * doubled, by the model's own graphs. */
static void flex(bool turned, double scale)
{
    make m;
    nori_error err = {0};
    make_begin(&m, 21);
    make_import(&m, "ai.onnx.preview", 1);
    make_input(&m, &m.graph, "q", NORI_FLOAT, "1 2 2 2");
    make_input(&m, &m.graph, "k", NORI_FLOAT, "1 1 3 2");
    make_input(&m, &m.graph, "v", NORI_FLOAT, "1 1 3 2");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    nori__pb_node *n = make_node(&m, &m.graph, "ai.onnx.preview", "FlexAttention", "f", "q k v", "y");
    if (scale != 0) {
        make_attr(&m, n, "scale", NORI__ATTR_FLOAT)->f = (float)scale;
    }
    if (turned) {
        nori__pb_graph *g = make_attr_graph(&m, n, "score_mod");
        make_input(&m, g, "s", NORI_FLOAT, "1 2 2 3");
        make_node(&m, g, "", "Neg", "neg", "s", "t");
        make_output(&m, g, "t", NORI_FLOAT, "1 2 2 3");
        g = make_attr_graph(&m, n, "prob_mod");
        make_input(&m, g, "p", NORI_FLOAT, "1 2 2 3");
        make_node(&m, g, "", "Add", "twice", "p p", "r");
        make_output(&m, g, "r", NORI_FLOAT, "1 2 2 3");
    }
    nori_session *s = node_session(&m, &err);
    if (!s) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_non_null(s);
    double want[HEADS * QUERIES * SIZE] = {0};
    for (int row = 0; row < HEADS * QUERIES; row++) {
        double e[KEYS], sum = 0;
        for (int j = 0; j < KEYS; j++) {
            double dot = 0;
            for (int d = 0; d < SIZE; d++) {
                dot += value(0, row / QUERIES, row % QUERIES, d) * value(1, 0, j, d);
            }
            dot *= scale != 0 ? scale : 1 / sqrt(SIZE);
            e[j] = exp(turned ? -dot : dot);
            sum += e[j];
        }
        for (int d = 0; d < SIZE; d++) {
            for (int j = 0; j < KEYS; j++) {
                want[row * SIZE + d] += e[j] / sum * (turned ? 2 : 1) * value(2, 0, j, d);
            }
        }
    }
    nori_tensor *in[3] = {heads_of(0, HEADS, QUERIES), heads_of(1, 1, KEYS), heads_of(2, 1, KEYS)};
    nori_tensor *out[1] = {NULL};
    node_run(s, (const nori_tensor *const *)in, 3, out, 1, NORI_OK);
    node_expect(out[0], NORI_FLOAT, NODE_DIMS(1, HEADS, QUERIES, SIZE), want);
    for (int i = 0; i < 3; i++) {
        nori_tensor_free(in[i]);
    }
    nori_session_free(s);
    make_end(&m);
}

static void flex_attention(void **state)
{
    (void)state;
    flex(false, 0);
    flex(false, 0.25);
    flex(true, 0);
    flex(true, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adagrad),
        cmocka_unit_test(adam),
        cmocka_unit_test(momentum),
        cmocka_unit_test(flex_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
