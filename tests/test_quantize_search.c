/* What a quantization tries by itself: layers that cost too much stay float and are named, steps are
 * kept where they pay, times are measured; and how weights alone are rounded. Models are made so that
 * what should win is known beforehand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "busy.h"
#include <math.h>
#include <stdio.h>

#include "quantize_case.h"

static float even(uint32_t *state) /* in [-1, 1) */
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1;
}

static bool step_of(const nori_quantize_report *r, const char *name, nori_quantize_step_row *row)
{
    row->size = sizeof(*row);
    for (size_t i = 0; nori_quantize_report_step(r, i, row); i++) {
        if (strstr(row->name, name)) {
            return true;
        }
    }
    return false;
}

/* Two products whose outputs are a thousand times larger than their difference, which is the answer: no 8
 * bits hold it. A third one beside them has no such trouble. */
static nori_model *cancelling(make *m)
{
    float large[32], small[32], plain[16];
    uint32_t seed = 1;
    for (int i = 0; i < 16; i++) {
        large[2 * i] = 100 * even(&seed);
        large[2 * i + 1] = large[2 * i] + 0.1f * even(&seed);
        plain[i] = even(&seed);
    }
    memcpy(small, (float[]){1, -1}, 2 * sizeof(float));
    make_begin(m, 13);
    make_input(m, &m->graph, "x", NORI_FLOAT, "4 16");
    make_output(m, &m->graph, "y", NORI_FLOAT, "4 1");
    make_output(m, &m->graph, "z", NORI_FLOAT, "4 1");
    make_weights(m, &m->graph, "wl", "16 2", large);
    make_weights(m, &m->graph, "ws", "2 1", small);
    make_weights(m, &m->graph, "wp", "16 1", plain);
    make_node(m, &m->graph, "", "MatMul", "large", "x wl", "l");
    make_node(m, &m->graph, "", "MatMul", "difference", "l ws", "y");
    make_node(m, &m->graph, "", "MatMul", "plain", "x wp", "z");
    return load(m);
}

static void costly_layers(void **state)
{
    (void)state;
    make m;
    samples from = {2, {4, 16}, 16, -1, 1, 7};
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_quantize_node n;
    nori_quantize_try t = {.size = sizeof(t)};
    nori_model *model = cancelling(&m);
    small_options(&o);
    o.search = 0;
    nori_model *made = quantize(model, &from, &o, &report);
    assert_true(output_sqnr(report) < 15);
    assert_true(node_of(report, "large", &n) && n.quantized);
    assert_non_null(nori_quantize_report_advice(report, 0)); /* the report names what helps */
    nori_quantize_report_free(report);
    nori_model_free(made);

    small_options(&o);
    made = quantize(model, &from, &o, &report);
    assert_true(output_sqnr(report) >= 20);
    assert_true(node_of(report, "large", &n));
    assert_false(n.quantized);
    assert_non_null(strstr(n.reason, "budget"));
    assert_true(n.alone_sqnr < 20); /* its own error */
    assert_true(node_of(report, "plain", &n));
    assert_true(n.quantized);
    assert_true(n.alone_sqnr > 30);
    size_t best = 0, tries = 0;
    for (; nori_quantize_report_try(report, tries, &t); tries++) {
        best += t.pareto != 0;
    }
    assert_true(tries >= 3);
    assert_true(best >= 1 && best <= tries);
    assert_true(t.weight_bytes > 0);
    nori_quantize_report_free(report);
    nori_model_free(made);

    small_options(&o);
    o.least_sqnr = 0; /* no budget: nothing is spared */
    made = quantize(model, &from, &o, &report);
    assert_true(node_of(report, "large", &n) && n.quantized);
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* Channels a thousand times apart between two layers, one scale a weight: nothing but equalizing
 * saves the small ones. */
static void equalizing(void **state)
{
    (void)state;
    make m;
    samples from = {4, {1, 4, 6, 6}, 12, -1, 1, 5};
    float first[32], second[24], bias[8];
    uint32_t seed = 3;
    for (int i = 0; i < 32; i++) {
        first[i] = even(&seed) * (i / 4 % 2 ? 100.0f : 0.1f);
    }
    for (int i = 0; i < 24; i++) {
        second[i] = even(&seed) * (i % 2 ? 0.01f : 10.0f);
    }
    for (int i = 0; i < 8; i++) {
        bias[i] = even(&seed) * (i % 2 ? 10.0f : 0.01f);
    }
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 4 6 6");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 3 6 6");
    make_weights(&m, &m.graph, "w1", "8 4 1 1", first);
    make_weights(&m, &m.graph, "b1", "8", bias);
    make_weights(&m, &m.graph, "w2", "3 8 1 1", second);
    make_node(&m, &m.graph, "", "Conv", "first", "x w1 b1", "a");
    make_node(&m, &m.graph, "", "Relu", "relu", "a", "r");
    make_node(&m, &m.graph, "", "Conv", "second", "r w2", "y");
    nori_model *model = load(&m);
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_quantize_step_row row;
    small_options(&o);
    o.per_channel = 0;
    o.least_sqnr = 0;
    nori_model *made = quantize(model, &from, &o, &report);
    assert_true(step_of(report, "equalize", &row));
    assert_true(row.kept);
    assert_true(row.sqnr_after - row.sqnr_before > 10);
    assert_true(output_sqnr(report) > 25);
    nori_quantize_report_free(report);
    nori_model_free(made);
    o.without = NORI_QUANTIZE_EQUALIZE;
    made = quantize(model, &from, &o, &report);
    assert_true(step_of(report, "equalize", &row));
    assert_false(row.kept);
    assert_string_equal(row.reason, "switched off");
    assert_true(output_sqnr(report) < 20);
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* An outlier channel behind a normalization, as transformers have: its factor goes into the weights. */
static void smoothing(void **state)
{
    (void)state;
    make m;
    samples from = {2, {4, 16}, 12, -1, 1, 11};
    float gamma[16], beta[16], w[128];
    uint32_t seed = 9;
    for (int i = 0; i < 16; i++) {
        gamma[i] = i == 5 ? 300.0f : 1 + 0.1f * even(&seed);
        beta[i] = 0.1f * even(&seed);
    }
    for (int i = 0; i < 128; i++) {
        w[i] = even(&seed) * (i / 8 == 5 ? 0.003f : 1.0f);
    }
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "4 16");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "4 8");
    make_weights(&m, &m.graph, "g", "16", gamma);
    make_weights(&m, &m.graph, "b", "16", beta);
    make_weights(&m, &m.graph, "w", "16 8", w);
    make_node(&m, &m.graph, "", "LayerNormalization", "norm", "x g b", "n");
    make_node(&m, &m.graph, "", "MatMul", "product", "n w", "y");
    nori_model *model = load(&m);
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_quantize_step_row row;
    small_options(&o);
    o.method = NORI_RANGE_MINMAX;
    nori_model *made = quantize(model, &from, &o, &report);
    assert_true(step_of(report, "smooth", &row));
    assert_true(row.kept);
    assert_true(row.sqnr_after - row.sqnr_before > 10);
    assert_true(output_sqnr(report) > 30);
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* Weights that all round the same way, and inputs that are never negative: every output is off by about
 * the same, which a bias makes up for. */
static void biases(void **state)
{
    (void)state;
    make m;
    samples from = {2, {4, 64}, 12, 0, 1, 2};
    float w[128], bias[2] = {0, 0};
    for (int i = 0; i < 128; i++) {
        w[i] = (i % 64 == 0 ? 127 : 1.4f) * (i < 64 ? 0.01f : -0.01f); /* 1.4 steps become 1 */
    }
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "4 64");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "4 2");
    make_weights(&m, &m.graph, "w", "2 64", w);
    make_weights(&m, &m.graph, "b", "2", bias);
    make_attr_int(&m, make_node(&m, &m.graph, "", "Gemm", "sum", "x w b", "y"), "transB", 1);
    nori_model *model = load(&m);
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_quantize_step_row row;
    small_options(&o);
    nori_model *made = quantize(model, &from, &o, &report);
    assert_true(step_of(report, "biases", &row));
    assert_true(row.kept);
    assert_true(row.sqnr_after - row.sqnr_before > 6);
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* Times of each layer are there, both ways; with spare_slow no layer is left on integers that lost. */
static void times(void **state)
{
    (void)state;
    make m;
    samples from = {2, {4, 16}, 8, -1, 1, 7};
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_quantize_summary s = {.size = sizeof(s)};
    nori_quantize_node n;
    nori_model *model = cancelling(&m);
    small_options(&o);
    o.least_sqnr = 0;
    nori_model *made = quantize(model, &from, &o, &report);
    nori_quantize_report_summary(report, &s);
    assert_true(s.float_ms > 0 && s.int_ms > 0);
    assert_true(node_of(report, "plain", &n));
    assert_true(n.float_ms > 0 && n.int_ms > 0);
    nori_quantize_report_free(report);
    nori_model_free(made);
    o.spare_slow = 1;
    made = quantize(model, &from, &o, &report);
    for (size_t i = 0; nori_quantize_report_node(report, i, &n); i++) {
        assert_true(n.quantized || n.reason[0]);
        assert_true(!strstr(n.reason, "slower") || !n.quantized);
    }
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* A transposed convolution has no kernel on integers: there it is the float one and what changes form
 * around it. It is told by default, and stays float where that is asked for. */
static void slow_layer(void **state)
{
    (void)state;
    make m;
    samples from = {4, {1, 1, 384, 384}, 2, -1, 1, 7};
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_quantize_summary s = {.size = sizeof(s)};
    nori_quantize_node n;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 1 384 384");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 1 384 384");
    make_weights(&m, &m.graph, "w", "1 1 1 1", (float[]){0.7f});
    make_node(&m, &m.graph, "", "ConvTranspose", "thin", "x w", "y");
    nori_model *model = load(&m);
    for (int spare = 0; spare < 2; spare++) {
        bool told = false, blamed = false;
        const char *a;
        small_options(&o);
        o.size_first = 1; /* the table would leave it float */
        o.spare_slow = spare;
        o.threads = 1;
        nori_model *made = NULL;
        bool clear = false; /* a neighbour may fall on the float runs alone: measured again */
        for (int tries = 0; !clear && tries < 20; tries++) {
            if (made) {
                nori_quantize_report_free(report);
                nori_model_free(made);
            }
            made = quantize(model, &from, &o, &report);
            assert_true(node_of(report, "thin", &n));
            nori_quantize_report_summary(report, &s);
            clear = n.int_ms > n.float_ms &&
                    (spare ? !n.quantized : s.int_ms > 1.05 * s.float_ms); /* as much is told */
        }
        for (size_t i = 0; (a = nori_quantize_report_advice(report, i)) != NULL; i++) {
            told = told || strstr(a, "--spare-slow");
            blamed = blamed || strstr(a, "budget") || strstr(a, "quantization-aware");
        }
        if (!clear && times_say_nothing()) {
            print_message("busy or sanitized: times are not tested (integers %.3g ms, float %.3g ms)\n",
                          n.int_ms, n.float_ms);
            nori_quantize_report_free(report);
            nori_model_free(made);
            break;
        }
        assert_int_equal(n.quantized, !spare);
        assert_true(n.int_ms > n.float_ms);
        assert_int_equal(told, !spare);
        assert_false(blamed); /* no word of accuracy */
        assert_int_equal(count_ops(made, "QuantizeLinear") > 0, !spare);
        if (spare) {
            assert_non_null(strstr(n.reason, "slower"));
        } else {
            assert_true(s.int_ms > s.float_ms);
        }
        nori_quantize_report_free(report);
        nori_model_free(made);
    }
    nori_model_free(model);
    make_end(&m);
}

/* ---- weights alone ---- */

/* Inputs that follow one another closely, as activations do: errors of one weight can be made up for by
 * others. */
static int correlated(void *user, size_t index, nori_tensor **inputs, nori_error *err)
{
    const samples *s = user;
    if (index >= s->count) {
        return 0;
    }
    uint32_t seed = s->seed + (uint32_t)index;
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 2, s->dims, &inputs[0], err), NORI_OK);
    float *v = nori_tensor_data(inputs[0]);
    for (int64_t r = 0; r < s->dims[0]; r++) {
        float a = even(&seed), b = even(&seed);
        for (int64_t i = 0; i < s->dims[1]; i++) {
            float at = (float)i / (float)s->dims[1];
            v[r * s->dims[1] + i] = a + b * at + 0.05f * even(&seed);
        }
    }
    return 1;
}

static double of_rounding(const nori_model *model, samples *from, nori_quantize_rounding rounding,
                          nori_type type, int packed)
{
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_model *made = NULL;
    nori_error err = {0};
    small_options(&o);
    o.kind = NORI_QUANTIZE_WEIGHTS;
    o.weight_type = type;
    o.block = 32;
    o.packed = packed;
    o.rounding = rounding;
    o.sample = correlated;
    o.sample_user = from;
    if (nori_quantize(model, &o, &made, &report, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    double sqnr = output_sqnr(report);
    nori_quantize_report_free(report);
    nori_model_free(made);
    return sqnr;
}

static void roundings(void **state)
{
    (void)state;
    make m;
    samples from = {2, {8, 64}, 16, -1, 1, 21};
    static float w[64 * 24];
    uint32_t seed = 13;
    for (size_t i = 0; i < sizeof(w) / sizeof(w[0]); i++) {
        float v = even(&seed);
        w[i] = v * v * v;
    }
    make_begin(&m, 21);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "8 64");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "8 24");
    make_weights(&m, &m.graph, "w", "64 24", w);
    make_node(&m, &m.graph, "", "MatMul", "product", "x w", "y");
    nori_model *model = load(&m);
    for (int packed = 0; packed < 2; packed++) {
        double nearest = of_rounding(model, &from, NORI_ROUNDING_NEAREST, NORI_INT4, packed);
        double mse = of_rounding(model, &from, NORI_ROUNDING_MSE, NORI_INT4, packed);
        double hqq = of_rounding(model, &from, NORI_ROUNDING_HQQ, NORI_INT4, packed);
        double gptq = of_rounding(model, &from, NORI_ROUNDING_GPTQ, NORI_INT4, packed);
        assert_true(nearest > 10 && mse > 10 && hqq > 10);
        assert_true(gptq > mse + 6 && gptq > nearest + 6);
        assert_true(of_rounding(model, &from, NORI_ROUNDING_GPTQ, NORI_INT8, packed) > gptq + 15);
    }
    assert_true(of_rounding(model, &from, NORI_ROUNDING_HQQ, NORI_UINT4, 0) > 10);
    nori_quantize_options o;
    nori_model *made = NULL;
    small_options(&o);
    o.kind = NORI_QUANTIZE_WEIGHTS;
    o.rounding = NORI_ROUNDING_GPTQ; /* without samples there is nothing to go by */
    assert_int_equal(nori_quantize(model, &o, &made, NULL, NULL), NORI_ERROR_ARGUMENT);
    nori_model_free(model);
    make_end(&m);
}

/* Weights that other nodes compute from constants are constants too. */
static void computed_weights(void **state)
{
    (void)state;
    make m;
    samples from = {2, {1, 4}, 4, -1, 1, 1};
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_quantize_node n;
    static const int64_t turned[2] = {4, 2};
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 4");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 2");
    make_weights(&m, &m.graph, "w", "8", (float[]){1, -2, 3, -4, 5, -6, 7, -8});
    make_ints(&m, &m.graph, "shape", 2, turned);
    make_node(&m, &m.graph, "", "Reshape", "shaped", "w shape", "ws");
    make_node(&m, &m.graph, "", "MatMul", "product", "x ws", "y");
    nori_model *model = load(&m);
    small_options(&o);
    nori_model *made = quantize(model, &from, &o, &report);
    assert_true(node_of(report, "product", &n));
    assert_true(n.quantized);
    assert_true(n.weight_sqnr > 30);
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costly_layers), cmocka_unit_test(equalizing), cmocka_unit_test(smoothing),
        cmocka_unit_test(biases),        cmocka_unit_test(times),      cmocka_unit_test(roundings),
        cmocka_unit_test(computed_weights), cmocka_unit_test(slow_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
