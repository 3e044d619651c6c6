/* Weights that are rounded together: sums over the samples move less than with the nearest integers, for
 * every form of a layer; each integer is one of the two next to its weight, scales stay; and the step
 * can be switched off. Samples have a mean, so that errors of weights add up unless they cancel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "quantize_case.h"

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

static void numbers(float *w, size_t count)
{
    uint32_t seed = 5;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        w[i] = (float)(seed >> 8) / 8388608.0f - 1;
    }
}

/* The integers of weight w: one a weight, no further than a step from it, ends as they are. */
static size_t turned(const nori_model *plain, const nori_model *made, const float *w, size_t count)
{
    const nori_tensor *q = constant_of(made, "w_quantized"), *p = constant_of(plain, "w_quantized");
    const nori_tensor *s = constant_of(made, "w_scale"), *t = constant_of(plain, "w_scale");
    assert_true(q && p && s && t);
    assert_int_equal(nori_tensor_elements(q), count);
    assert_int_equal(nori_tensor_bytes(s), nori_tensor_bytes(t));
    assert_memory_equal(s->data, t->data, nori_tensor_bytes(s));
    const int8_t *a = q->data, *b = p->data;
    double scale = (double)*(const float *)s->data;
    size_t others = 0;
    assert_int_equal(nori_tensor_elements(s), 1);
    for (size_t i = 0; i < count; i++) {
        others += a[i] != b[i];
        assert_true(abs(a[i] - b[i]) <= 1);
        assert_true(fabs(a[i] * scale - (double)w[i]) < scale);
        assert_true(abs(b[i]) < 127 || a[i] == b[i]);
    }
    return others;
}

/* dB that rounding together gains, with activations of 16 bits so that weights are what errs. */
static double gain(make *m, samples *from, const float *w, size_t count)
{
    nori_quantize_options o;
    nori_quantize_report *report[2] = {NULL, NULL};
    nori_model *made[2], *model = load(m);
    double sqnr[2];
    for (int i = 0; i < 2; i++) {
        nori_quantize_step_row row;
        small_options(&o);
        o.activation_type = NORI_UINT16;
        o.per_channel = 0;
        o.without = ~0u & ~(unsigned)(i ? NORI_QUANTIZE_ADAROUND : 0);
        made[i] = quantize(model, from, &o, &report[i]);
        sqnr[i] = output_sqnr(report[i]);
        assert_true(step_of(report[i], "AdaRound", &row));
        assert_int_equal(row.kept, i);
        if (i) {
            assert_true(row.sqnr_after > row.sqnr_before + 1);
        } else {
            assert_string_equal(row.reason, "switched off");
        }
        nori_quantize_report_free(report[i]);
    }
    size_t others = turned(made[0], made[1], w, count);
    assert_true(others > count / 50 && others < count / 2);
    nori_model_free(made[0]);
    nori_model_free(made[1]);
    nori_model_free(model);
    make_end(m);
    return sqnr[1] - sqnr[0];
}

/* By hand: 64 weights of errors that do not know of each other, numbers even in [0, 1). An output's
 * error is sum d^2 / 12 + (sum d)^2 / 4 in the mean, that is 4 sum d^2 / 12; where sum d is made 0,
 * a quarter of it, 6 dB, less what turned weights have more. */
static void products(void **state)
{
    (void)state;
    static float w[64 * 24];
    numbers(w, NORI__COUNT(w));
    for (int kind = 0; kind < 3; kind++) {
        make m;
        samples from = {2, {8, 64}, 40, 0, 1, 3};
        make_begin(&m, 21);
        make_input(&m, &m.graph, "x", NORI_FLOAT, "8 64");
        make_output(&m, &m.graph, "y", NORI_FLOAT, "8 24");
        make_weights(&m, &m.graph, "w", kind == 2 ? "24 64" : "64 24", w);
        nori__pb_node *n =
            make_node(&m, &m.graph, "", kind ? "Gemm" : "MatMul", "product", "x w", "y");
        if (kind == 2) {
            make_attr_int(&m, n, "transB", 1);
        }
        double db = gain(&m, &from, w, NORI__COUNT(w));
        print_message("product %d: %.2f dB\n", kind, db);
        assert_true(db > 3);
    }
}

static void convolutions(void **state)
{
    (void)state;
    static const struct {
        int64_t group, dilation, stride;
        const char *weights, *out, *pad;
        size_t count;
    } kinds[] = {
        {1, 1, 1, "16 8 3 3", "1 16 12 12", NULL, 16 * 8 * 9},
        {8, 1, 1, "16 1 3 3", "1 16 12 12", NULL, 16 * 9},
        {2, 2, 2, "16 4 3 3", "1 16 6 6", "SAME_UPPER", 16 * 4 * 9},
    };
    static float w[16 * 8 * 9];
    numbers(w, NORI__COUNT(w));
    for (size_t i = 0; i < NORI__COUNT(kinds); i++) {
        make m;
        samples from = {4, {1, 8, 12, 12}, 24, 0, 1, 3};
        make_begin(&m, 21);
        make_input(&m, &m.graph, "x", NORI_FLOAT, "1 8 12 12");
        make_output(&m, &m.graph, "y", NORI_FLOAT, kinds[i].out);
        make_weights(&m, &m.graph, "w", kinds[i].weights, w);
        nori__pb_node *n = make_node(&m, &m.graph, "", "Conv", "layer", "x w", "y");
        make_attr_int(&m, n, "group", kinds[i].group);
        make_attr_ints(&m, n, "strides", 2, (int64_t[]){kinds[i].stride, kinds[i].stride});
        make_attr_ints(&m, n, "dilations", 2, (int64_t[]){kinds[i].dilation, kinds[i].dilation});
        if (kinds[i].pad) {
            make_attr_text(&m, n, "auto_pad", kinds[i].pad);
        } else {
            make_attr_ints(&m, n, "pads", 4, (int64_t[]){1, 1, 1, 1});
        }
        double db = gain(&m, &from, w, kinds[i].count);
        print_message("convolution %zu: %.2f dB\n", i, db);
        assert_true(db > 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
