/* Which layers stay float because integers would make them slower: by what the model and its samples
 * are, not by a clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "quantize_case.h"

static float *numbers(make *m, size_t count)
{
    float *v = nori__arena_array(&m->arena, count, sizeof(*v));
    uint32_t state = (uint32_t)count;
    assert_non_null(v);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        v[i] = (float)(state >> 8) / 16777216.0f - 0.5f;
    }
    return v;
}

/* "name (op)": on integers, or float for a reason that holds these words. */
static void is(const nori_quantize_report *r, const char *path, const char *reason)
{
    nori_quantize_node n;
    if (!node_of(r, path, &n)) {
        fail_msg("no node %s", path);
    }
    if (reason ? n.quantized || !strstr(n.reason, reason) : !n.quantized) {
        fail_msg("%s is %s: %s", path, n.quantized ? "on integers" : "float", n.reason);
    }
}

static bool advised(const nori_quantize_report *r, const char *words)
{
    const char *a;
    for (size_t i = 0; (a = nori_quantize_report_advice(r, i)) != NULL; i++) {
        if (strstr(a, words)) {
            return true;
        }
    }
    return false;
}

/* Two products of 16 by 16: a run of either form is over before it is worth changing form. */
static void little_work(void **state)
{
    (void)state;
    make m;
    samples from = {2, {1, 16}, 4, -1, 1, 3};
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 16");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 16");
    make_weights(&m, &m.graph, "a", "16 16", numbers(&m, 256));
    make_weights(&m, &m.graph, "b", "16 16", numbers(&m, 256));
    make_node(&m, &m.graph, "", "MatMul", "first", "x a", "h");
    make_node(&m, &m.graph, "", "Relu", "relu", "h", "r");
    make_node(&m, &m.graph, "", "MatMul", "second", "r b", "y");
    nori_model *model = load(&m);
    for (int size_first = 0; size_first < 2; size_first++) {
        nori_quantize_options o;
        nori_quantize_report *report = NULL;
        nori_quantize_options_default(&o);
        o.size_first = size_first;
        nori_model *made = quantize(model, &from, &o, &report);
        is(report, "first", size_first ? NULL : "too little work");
        is(report, "second", size_first ? NULL : "too little work");
        is(report, "relu", size_first ? NULL : "neighbours stay float");
        assert_int_equal(advised(report, "2 of 2 layers stay float as integers would make them slower"),
                         !size_first);
        assert_int_equal(advised(report, "--size-first"), !size_first);
        assert_int_equal(count_ops(made, "QuantizeLinear") > 0, size_first);
        nori_quantize_report_free(report);
        nori_model_free(made);
    }
    nori_model_free(model);
    make_end(&m);
}

/* A large convolution; a small one between operators that have no integer form, which loses more
 * around itself than it wins; a head too small to win, which stays with the others for its size. */
static void neighbours(void **state)
{
    (void)state;
    make m;
    samples from = {4, {1, 16, 24, 24}, 4, -1, 1, 5};
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 16 24 24");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 32 24 24");
    make_output(&m, &m.graph, "z", NORI_FLOAT, "1 4");
    make_weights(&m, &m.graph, "large", "32 16 5 5", numbers(&m, 12800));
    make_weights(&m, &m.graph, "small", "32 32 1 1", numbers(&m, 1024));
    make_weights(&m, &m.graph, "head", "32 4", numbers(&m, 128));
    make_attr_ints(&m, make_node(&m, &m.graph, "", "Conv", "large", "x large", "a"), "pads", 4,
                   (int64_t[]){2, 2, 2, 2});
    make_node(&m, &m.graph, "", "Sin", "odd", "a", "b");
    make_node(&m, &m.graph, "", "Conv", "small", "b small", "c");
    make_node(&m, &m.graph, "", "Sin", "other", "c", "y");
    make_node(&m, &m.graph, "", "GlobalAveragePool", "mean", "a", "d");
    make_node(&m, &m.graph, "", "Flatten", "flat", "d", "e");
    make_node(&m, &m.graph, "", "MatMul", "head", "e head", "z");
    nori_model *model = load(&m);
    nori_quantize_options_default(&o);
    nori_model *made = quantize(model, &from, &o, &report);
    is(report, "large", NULL);
    is(report, "odd", "no quantized form");
    is(report, "small", "quantizing and dequantizing around it");
    nori_quantize_report_free(report);
    nori_model_free(made);
    o.size_first = 1;
    made = quantize(model, &from, &o, &report);
    is(report, "small", NULL);
    nori_quantize_report_free(report);
    nori_model_free(made);
    o.size_first = 0;
    o.search = 0; /* every layer, whatever it costs */
    made = quantize(model, &from, &o, &report);
    is(report, "small", NULL);
    is(report, "head", NULL);
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* Projections have weights and work; what is between them is one kernel in float. */
static void attention(void **state)
{
    (void)state;
    make m;
    samples from = {2, {64, 128}, 4, -1, 1, 7};
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "64 128");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "64 128");
    make_weights(&m, &m.graph, "wq", "128 128", numbers(&m, 16384));
    make_weights(&m, &m.graph, "wk", "128 128", numbers(&m, 16384));
    make_weights(&m, &m.graph, "wv", "128 128", numbers(&m, 16384));
    make_node(&m, &m.graph, "", "MatMul", "queries", "x wq", "q");
    make_node(&m, &m.graph, "", "MatMul", "keys", "x wk", "k");
    make_node(&m, &m.graph, "", "MatMul", "values", "x wv", "v");
    make_node(&m, &m.graph, "", "Transpose", "turned", "k", "kt");
    make_node(&m, &m.graph, "", "MatMul", "scores", "q kt", "s");
    make_node(&m, &m.graph, "", "Softmax", "shares", "s", "p");
    make_node(&m, &m.graph, "", "MatMul", "mixed", "p v", "y");
    nori_model *model = load(&m);
    nori_quantize_options_default(&o);
    nori_model *made = quantize(model, &from, &o, &report);
    is(report, "queries", NULL);
    is(report, "keys", NULL);
    is(report, "values", NULL);
    is(report, "scores", "product of two activations");
    is(report, "shares", "what it reads is not quantized");
    is(report, "mixed", "product of two activations");
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* What float kernels of pictures take for the graph's own inputs and outputs is spared on integers: a
 * convolution alone goes there. */
static void alone(void **state)
{
    (void)state;
    make m;
    samples from = {4, {1, 64, 28, 28}, 4, -1, 1, 9};
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 64 28 28");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 64 28 28");
    make_weights(&m, &m.graph, "w", "64 64 3 3", numbers(&m, 36864));
    make_attr_ints(&m, make_node(&m, &m.graph, "", "Conv", "only", "x w", "y"), "pads", 4,
                   (int64_t[]){1, 1, 1, 1});
    nori_model *model = load(&m);
    nori_quantize_options_default(&o);
    nori_model *made = quantize(model, &from, &o, &report);
    is(report, "only", NULL);
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* A convolution that integers make faster, beside one that has no form on integers: of a run that is
 * mostly the other one, and of its bytes, what they win is next to nothing, and all stays float. */
static void too_little(void **state)
{
    (void)state;
    static const char *const widths[] = {"32 8 7 7", "32 384 7 7"};
    static const char *const shapes[] = {"1 8 18 18", "1 384 18 18"};
    for (int large = 0; large < 2; large++) {
        make m;
        samples from = {4, {1, 32, 12, 12}, 2, -1, 1, 11};
        nori_quantize_options o;
        nori_quantize_report *report = NULL;
        make_begin(&m, 13);
        make_input(&m, &m.graph, "x", NORI_FLOAT, "1 32 12 12");
        make_output(&m, &m.graph, "y", NORI_FLOAT, "1 32 12 12");
        make_output(&m, &m.graph, "z", NORI_FLOAT, shapes[large]);
        make_weights(&m, &m.graph, "w", "32 32 5 5", numbers(&m, 25600));
        make_weights(&m, &m.graph, "v", widths[large], numbers(&m, large ? 602112 : 12544));
        make_attr_ints(&m, make_node(&m, &m.graph, "", "Conv", "wins", "x w", "y"), "pads", 4,
                       (int64_t[]){2, 2, 2, 2});
        make_node(&m, &m.graph, "", "ConvTranspose", "rest", "x v", "z");
        nori_model *model = load(&m);
        nori_quantize_options_default(&o);
        nori_model *made = quantize(model, &from, &o, &report);
        is(report, "wins", large ? "what all integers together would win" : NULL);
        assert_true(advised(report, large ? "2 of 2 layers stay float as integers would win too little"
                                          : "1 of 2 layers stay float as integers would make them slower"));
        assert_int_equal(count_ops(made, "QuantizeLinear") > 0, !large);
        nori_quantize_report_free(report);
        nori_model_free(made);
        nori_model_free(model);
        make_end(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(little_work), cmocka_unit_test(neighbours),
                                       cmocka_unit_test(attention), cmocka_unit_test(alone),
                                       cmocka_unit_test(too_little)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
