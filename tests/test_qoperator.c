/* Two forms of one quantized graph: pairs around operators, and operators on integers. The same
 * numbers in both, and the same bits out of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "quantize_case.h"
#include "run/run.h"
#include "run_node.h"

/* Convolutions with and without a bias and a clamp, a residual sum, pooling, a join, products. */
static nori_model *network(make *m)
{
    float w[72], v[32];
    for (int i = 0; i < 72; i++) {
        w[i] = (float)((i * 31) % 17 - 8) / 16;
    }
    for (int i = 0; i < 32; i++) {
        v[i] = (float)((i * 13) % 19 - 9) / 20;
    }
    make_begin(m, 13);
    make_input(m, &m->graph, "x", NORI_FLOAT, "1 2 6 6");
    make_output(m, &m->graph, "y", NORI_FLOAT, "1 4");
    make_weights(m, &m->graph, "w1", "4 2 3 3", w);
    make_weights(m, &m->graph, "b1", "4", (float[]){0.5f, -0.25f, 0, 1});
    make_weights(m, &m->graph, "w2", "4 4 1 1", v);
    make_weights(m, &m->graph, "w3", "8 4", v);
    make_weights(m, &m->graph, "b3", "4", (float[]){0.1f, 0.2f, -0.3f, 0});
    make_weights(m, &m->graph, "w4", "4 4", v + 16);
    make_attr_ints(m, make_node(m, &m->graph, "", "Conv", "c1", "x w1 b1", "a1"), "pads", 4,
                   (int64_t[]){1, 1, 1, 1});
    make_node(m, &m->graph, "", "Relu", "relu", "a1", "r1");
    make_node(m, &m->graph, "", "Conv", "c2", "r1 w2", "a2");
    make_node(m, &m->graph, "", "Add", "sum", "a2 r1", "s");
    make_attr_ints(m, make_node(m, &m->graph, "", "MaxPool", "pool", "s", "p"), "kernel_shape", 2,
                   (int64_t[]){2, 2});
    make_node(m, &m->graph, "", "Conv", "c3", "p w2", "a3");
    make_attr_int(m, make_node(m, &m->graph, "", "Concat", "join", "p a3", "cc"), "axis", 1);
    make_node(m, &m->graph, "", "GlobalAveragePool", "mean", "cc", "g");
    make_node(m, &m->graph, "", "Flatten", "flat", "g", "f");
    make_node(m, &m->graph, "", "Gemm", "gemm", "f w3 b3", "h");
    make_node(m, &m->graph, "", "MatMul", "product", "h w4", "y");
    return load(m);
}

static nori_model *form_of(const nori_model *model, samples *from, int form, int microsoft, nori_type type)
{
    nori_quantize_options o;
    nori_model *made = NULL;
    nori_findings *found = NULL;
    nori_error err = {0};
    nori_quantize_options_default(&o);
    o.search = 0;
    o.sample = draw;
    o.sample_user = from;
    o.form = form;
    o.microsoft = microsoft;
    o.activation_type = type;
    if (nori_quantize(model, &o, &made, NULL, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    assert_int_equal(nori__ir_verify(nori__model_ir(made), &err), NORI_OK);
    assert_int_equal(nori_check(made, NULL, &found, &err), NORI_OK);
    assert_int_equal(nori_findings_at_least(found, NORI_SEVERITY_ERROR), 0);
    nori_findings_free(found);
    return made;
}

static void results(const nori_model *m, samples *from, float out[8][4])
{
    nori_session *s = NULL;
    nori_error err = {0};
    if (nori_session_create(m, NULL, &s, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    for (size_t i = 0; i < 8; i++) {
        nori_tensor *in = NULL, *got[1] = {NULL};
        assert_int_equal(draw(from, i, &in, &err), 1);
        node_run(s, (const nori_tensor *const[]){in}, 1, got, 1, NORI_OK);
        memcpy(out[i], nori_tensor_const_data(got[0]), sizeof(out[i]));
        nori_tensor_free(in);
        nori_tensor_free(got[0]);
    }
    nori_session_free(s);
}

static void same_bits(void **state)
{
    (void)state;
    static const nori_type types[] = {NORI_UINT8, NORI_INT8};
    for (int t = 0; t < 2; t++) {
        make m;
        samples from = {4, {1, 2, 6, 6}, 8, -1, 1, 21};
        nori_model *model = network(&m);
        nori_model *pairs = form_of(model, &from, NORI_FORM_QDQ, 0, types[t]);
        nori_model *standard = form_of(model, &from, NORI_FORM_QOPERATOR, 0, types[t]);
        nori_model *all = form_of(model, &from, NORI_FORM_QOPERATOR, 1, types[t]);
        assert_int_equal(count_ops(pairs, "QLinearConv") + count_ops(pairs, "QLinearMatMul"), 0);
        assert_int_equal(count_ops(standard, "QLinearConv"), 3);
        assert_int_equal(count_ops(standard, "QLinearMatMul"), 1);
        assert_int_equal(count_ops(standard, "Gemm"), 1);
        assert_int_equal(count_ops(standard, "Add"), 1);
        assert_int_equal(count_ops(all, "QGemm"), 1);
        assert_int_equal(count_ops(all, "QLinearAdd"), 1);
        assert_int_equal(count_ops(all, "QLinearConcat"), 1);
        assert_int_equal(count_ops(all, "QLinearGlobalAveragePool"), 1);
        assert_int_equal(count_ops(all, "QuantizeLinear"), 1);   /* the input */
        assert_int_equal(count_ops(all, "DequantizeLinear"), 1); /* the output */
        float a[8][4], b[8][4], c[8][4];
        results(pairs, &from, a);
        results(standard, &from, b);
        results(all, &from, c);
        assert_memory_equal(a, b, sizeof(a));
        assert_memory_equal(a, c, sizeof(a));
        nori_model_free(pairs);
        nori_model_free(standard);
        nori_model_free(all);
        nori_model_free(model);
        make_end(&m);
    }
}

static void refusals(void **state)
{
    (void)state;
    make m;
    samples from = {4, {1, 2, 6, 6}, 2, -1, 1, 21};
    nori_model *model = network(&m), *made = NULL;
    nori_quantize_options o;
    nori_quantize_options_default(&o);
    o.sample = draw;
    o.sample_user = &from;
    nori_error err = {0};
    o.microsoft = 1;
    assert_int_equal(nori_quantize(model, &o, &made, NULL, &err), NORI_ERROR_ARGUMENT);
    o.microsoft = 0;
    o.form = NORI_FORM_QOPERATOR;
    o.activation_type = NORI_INT16;
    memset(&err, 0, sizeof(err));
    assert_int_equal(nori_quantize(model, &o, &made, NULL, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "8 bits"));
    nori_model_free(model);
    make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
