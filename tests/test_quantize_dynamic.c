/* Quantization that finds ranges in each run, where it goes beyond layers with weights: products of two
 * activations, when asked; LSTM, GRU and RNN, whose weights alone become integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "quantize_case.h"

static nori_tensor *run_one(const nori_model *model, samples *from)
{
    nori_error err = {0};
    nori_session *s = NULL;
    nori_tensor *in = NULL, *out = NULL;
    assert_int_equal(draw(from, 0, &in, &err), 1);
    if (nori_session_create(model, NULL, &s, &err) != NORI_OK ||
        nori_session_run(s, (const nori_tensor *const[]){in}, 1, &out, 1, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    nori_session_free(s);
    nori_tensor_free(in);
    return out;
}

/* y = x x^T. Integers of x are off by half a step at most, so a sum of 8 products is off by no more than
 * 8 * (2 * most * step / 2 + step^2 / 4). */
static void attention(void **state)
{
    (void)state;
    make m;
    samples from = {3, {2, 5, 8}, 4, -2, 3, 11};
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "2 5 8");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "2 5 5");
    nori__pb_node *n = make_node(&m, &m.graph, "", "Transpose", "turn", "x", "t");
    make_attr_ints(&m, n, "perm", 3, (int64_t[]){0, 2, 1});
    make_node(&m, &m.graph, "", "MatMul", "scores", "x t", "y");
    nori_model *model = load(&m);
    for (int asked = 0; asked < 2; asked++) {
        nori_quantize_options o;
        nori_quantize_report *report = NULL;
        nori_quantize_node node;
        nori_quantize_options_default(&o);
        assert_int_equal(o.attention, 0);
        o.kind = NORI_QUANTIZE_DYNAMIC;
        o.attention = asked;
        nori_model *made = quantize(model, &from, &o, &report);
        assert_true(node_of(report, "scores", &node));
        assert_int_equal(node.quantized, asked);
        assert_int_equal(strstr(node.reason, "--attention") != NULL, !asked);
        assert_int_equal(count_ops(made, "MatMulInteger"), asked);
        assert_int_equal(count_ops(made, "MatMul"), !asked);
        assert_int_equal(count_ops(made, "DynamicQuantizeLinear"), 2 * asked);
        nori_tensor *got = run_one(made, &from), *want = run_one(model, &from);
        double step = 5.0 / 255, bound = 8 * (2 * 3 * step / 2 + step * step / 4) + 1e-4, off = 0;
        assert_int_equal(nori_tensor_elements(got), 50);
        for (int64_t i = 0; i < 50; i++) {
            double e = fabs(nori__tensor_get_f64(got, i) - nori__tensor_get_f64(want, i));
            assert_true(e <= (asked ? bound : 0));
            off += e;
        }
        assert_int_equal(off > 0, asked);
        nori_tensor_free(got);
        nori_tensor_free(want);
        nori_quantize_report_free(report);
        nori_model_free(made);
    }
    nori_model_free(model);
    make_end(&m);
}

/* Integers times scale lie within half a step of weights; every row of a gate has a scale. */
static void check_weight(const nori_model *made, const char *name, const float *w, size_t count,
                         size_t rows)
{
    char integers[32], scales[32];
    snprintf(integers, sizeof(integers), "%s_quantized", name);
    snprintf(scales, sizeof(scales), "%s_scale", name);
    const nori_tensor *q = constant_of(made, integers), *s = constant_of(made, scales);
    assert_true(q && s);
    assert_int_equal(q->type, NORI_INT8);
    assert_int_equal(q->count, count);
    assert_int_equal(s->count, rows);
    size_t columns = count / rows / 2;
    for (size_t i = 0; i < count; i++) { /* [2, rows, columns] */
        double step = nori__tensor_get_f64(s, (int64_t)(i / columns % rows));
        assert_true(fabs(step * (double)nori__tensor_get_i64(q, (int64_t)i) - (double)w[i]) <=
                    0.500001 * step);
    }
}

static void recurrent(void **state)
{
    (void)state;
    static const struct {
        const char *op, *w, *r;
        size_t gates;
    } kinds[] = {{"LSTM", "2 24 5", "2 24 6", 4}, {"GRU", "2 18 5", "2 18 6", 3},
                 {"RNN", "2 6 5", "2 6 6", 1}};
    static float w[2 * 24 * 6], r[2 * 24 * 6];
    uint32_t seed = 3;
    for (size_t i = 0; i < NORI__COUNT(w); i++) {
        seed = seed * 1664525u + 1013904223u;
        w[i] = (float)(seed >> 8) / 16777216.0f - 0.5f;
        r[i] = w[i] / 3;
    }
    for (size_t k = 0; k < NORI__COUNT(kinds); k++) {
        for (int kind = NORI_QUANTIZE_DYNAMIC; kind <= NORI_QUANTIZE_WEIGHTS; kind++) {
            make m;
            samples from = {3, {7, 3, 5}, 4, -2, 2, 11};
            nori_quantize_options o;
            nori_quantize_report *report = NULL;
            nori_quantize_node node;
            make_begin(&m, 14);
            make_input(&m, &m.graph, "x", NORI_FLOAT, "7 3 5");
            make_output(&m, &m.graph, "y", NORI_FLOAT, "7 2 3 6");
            make_weights(&m, &m.graph, "w", kinds[k].w, w);
            make_weights(&m, &m.graph, "r", kinds[k].r, r);
            nori__pb_node *n = make_node(&m, &m.graph, "", kinds[k].op, "cell", "x w r", "y");
            make_attr_int(&m, n, "hidden_size", 6);
            make_attr_text(&m, n, "direction", "bidirectional");
            nori_model *model = load(&m);
            nori_quantize_options_default(&o);
            o.kind = (nori_quantize_kind)kind;
            nori_model *made = quantize(model, &from, &o, &report);
            assert_true(node_of(report, "cell", &node));
            assert_true(node.quantized && node.weight_sqnr > 35);
            assert_true(output_sqnr(report) > 35);
            assert_int_equal(count_ops(made, "DequantizeLinear"), 2);
            size_t rows = kinds[k].gates * 6;
            check_weight(made, "w", w, 2 * rows * 5, rows);
            check_weight(made, "r", r, 2 * rows * 6, rows);
            nori_quantize_report_free(report);
            nori_model_free(made);

            report = NULL; /* left alone where that is asked for */
            o.exclude = (const char *const[]){kinds[k].op};
            o.exclude_count = 1;
            made = quantize(model, &from, &o, &report);
            assert_int_equal(count_ops(made, "DequantizeLinear"), 0);
            nori_quantize_report_free(report);
            nori_model_free(made);

            report = NULL; /* com.microsoft has an LSTM whose ranges are found in each run */
            o.exclude_count = 0;
            o.microsoft = 1;
            bool bytes = kinds[k].gates == 4 && kind == NORI_QUANTIZE_DYNAMIC;
            if (kind == NORI_QUANTIZE_DYNAMIC) {
                made = quantize(model, &from, &o, &report);
                assert_int_equal(count_ops(made, "DynamicQuantizeLSTM"), bytes);
                assert_int_equal(count_ops(made, "DequantizeLinear"), bytes ? 0 : 2);
                assert_true(output_sqnr(report) > 30);
                if (bytes) { /* a column a gate, a scale for each of each direction */
                    const nori_tensor *q = constant_of(made, "w_quantized");
                    const nori_tensor *step = constant_of(made, "w_scale");
                    assert_true(q->rank == 3 && q->dims[1] == 5 && q->dims[2] == (int64_t)rows);
                    assert_true(step->rank == 2 && step->dims[0] == 2 && step->dims[1] == (int64_t)rows);
                    for (int64_t i = 0; i < q->count; i++) {
                        int64_t column = i / (5 * (int64_t)rows) * (int64_t)rows + i % (int64_t)rows;
                        double by = nori__tensor_get_f64(step, column);
                        double was = (double)w[column * 5 + i / (int64_t)rows % 5];
                        assert_true(fabs(by * (double)nori__tensor_get_i64(q, i) - was) <= 0.500001 * by);
                    }
                }
                nori_quantize_report_free(report);
                nori_model_free(made);
            }
            nori_model_free(model);
            make_end(&m);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention),
        cmocka_unit_test(recurrent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
