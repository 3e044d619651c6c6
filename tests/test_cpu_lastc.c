/* test_cpu_lastc.c: small 8-bit networks over channels-last activations of the cpu provider: what moves
 * there and what stays, and the same bits as the reference provider gives, for unsigned and signed
 * activations and 1, 2 and 5 threads. Runs at each level (NORI_CPU). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "make_model.h"
#include "model_run.h"
#include "nori/nori.h"
#include "ops/resolve.h"
#include "passes/passes.h"
#include "providers/cpu/cpu_kernels.h"
#include "providers/cpu/lastc.h"
#include "rewrite_case.h"

/* Nodes are "Op key=value ...:inputs:output". Each value has a scale and a zero point of its own.
 * Convolutions make their weights (key w; u=1: unsigned with zero points, n=1: no bias). */
typedef struct net {
    const char *what, *input;
    const char *nodes[10];
    const char *outputs, *left; /* operators after the rewrite */
} net;

static const net nets[] = {
    {"image", "1 3 17 19", {"Conv w=10x3x3x3 s=2 p=1:x:y"}, "y", "ToLast LastConv ToPlanes"},
    {"image, large kernel", "2 3 20 21", {"Conv w=20x3x7x7 s=2 p=3:x:a", "Max k=3 s=2 p=1:a:y"}, "y",
     "ToLast LastConv LastMaxPool ToPlanes"},
    {"pointwise", "2 32 7 7", {"Conv w=50x32x1x1:x:y"}, "y", "ToLast LastConv ToPlanes"},
    {"pointwise, odd", "1 33 5 6", {"Conv w=17x33x1x1 n=1:x:y"}, "y", "ToLast LastConv ToPlanes"},
    {"pointwise, strided", "1 20 9 8", {"Conv w=35x20x1x1 s=2:x:y"}, "y", "ToLast LastConv ToPlanes"},
    {"direct", "1 24 9 30", {"Conv w=40x24x3x3 p=1:x:a", "Conv w=40x40x3x3:a:y"}, "y",
     "ToLast LastConv LastConv ToPlanes"},
    {"dilated", "1 6 11 12", {"Conv w=9x6x3x3 p=2 d=2:x:y"}, "y", "ToLast LastConv ToPlanes"},
    {"unsigned weights", "1 8 9 9", {"Conv w=9x8x3x3 p=1 u=1:x:y"}, "y", "ToLast LastConv ToPlanes"},
    {"groups", "2 12 9 9", {"Conv w=20x3x3x3 p=1 g=4:x:y"}, "y", "ToLast LastConv ToPlanes"},
    {"depthwise", "2 35 9 10", {"Conv w=35x1x3x3 p=1 g=35:x:a", "Conv w=35x1x5x5 p=2 s=2 g=35 u=1:a:y"},
     "y", "ToLast LastConv LastConv ToPlanes"},
    {"depthwise, few channels", "2 5 9 11",
     {"Conv w=5x1x3x3 p=1 g=5:x:a", "Conv w=5x1x5x5 p=2 g=5 n=1:a:b", "Conv w=5x1x3x3 s=2 g=5:b:y"},
     "y", "ToLast LastConv LastConv LastConv ToPlanes"},
    {"depthwise, half a block", "1 29 6 8",
     {"Conv w=29x1x3x3 p=1 g=29:x:a", "Conv w=29x1x3x3 p=2 d=2 g=29:a:y"}, "y",
     "ToLast LastConv LastConv ToPlanes"},
    {"depthwise, no pads", "1 64 8 8", {"Conv w=64x1x3x3 g=64:x:y"}, "y", "ToLast LastConv ToPlanes"},
    {"depthwise, multiplied", "1 4 6 7", {"Conv w=8x1x3x3 p=1 g=4:x:y"}, "y",
     "ToLast LastConv ToPlanes"},
    {"residual", "1 16 8 9",
     {"Conv w=16x16x3x3 p=1:x:a", "Conv w=16x16x1x1:a:b", "Add:a b:c", "Conv w=8x16x1x1:c:y"}, "y",
     "ToLast LastConv LastConv QLinearAdd LastConv ToPlanes"},
    {"residual from the input", "1 16 8 9", {"Conv w=16x16x3x3 p=1:x:a", "Add:a x:y"}, "y",
     "ToLast LastConv QLinearAdd ToPlanes"},
    {"squeeze and excite", "2 24 9 8",
     {"Conv w=24x24x1x1:x:a", "Mean:a:m", "Conv w=6x24x1x1:m:n", "LeakyRelu:n:o",
      "Conv w=24x6x1x1:o:p", "Sigmoid:p:q", "Mul:a q:y"}, "y",
     "ToLast LastConv LastMean LastConv Table LastConv Table QLinearMul ToPlanes"},
    {"pools", "1 9 11 10",
     {"Conv w=9x9x1x1:x:a", "Average k=3 s=2 p=1:a:b", "Average k=2 p=1 all=1:b:c", "Max k=2 s=2:c:y"},
     "y", "ToLast LastConv LastAveragePool LastAveragePool LastMaxPool ToPlanes"},
    {"joined", "1 8 6 6",
     {"Conv w=5x8x1x1:x:a", "Conv w=7x8x3x3 p=1:x:b", "QConcat:a b:c", "Concat:c a:d",
      "Conv w=8x17x1x1:d:y"}, "y",
     "ToLast LastConv LastConv QLinearConcat Concat LastConv ToPlanes"},
    {"two readers", "1 8 6 6", {"Conv w=8x8x3x3 p=1:x:a", "Max k=2 s=2:a:y"}, "y a",
     "ToLast LastConv ToPlanes LastMaxPool ToPlanes"},
    {"nothing to move", "1 8 6 6", {"Max k=2 s=2:x:a", "Mean:a:y"}, "y",
     "MaxPool QLinearGlobalAveragePool"},
    {"empty batch", "0 8 6 6", {"Conv w=8x8x3x3 p=1:x:a", "Max k=2 s=2:a:y"}, "y",
     "ToLast LastConv LastMaxPool ToPlanes"},
};

/* ---- building ---- */

static uint32_t random_byte(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 24;
}

static nori__pb_tensor *constant(make *m, const char *name, nori_type type)
{
    nori__pb_tensor *t = MAKE_ADD(m, m->graph.initializers);
    t->name = make_str(m, name);
    t->data_type = type;
    return t;
}

/* " s_v z_v" behind used: the scale and the zero point of value v, made where they are new. */
static void append_quant(make *m, char *text, size_t size, const char *v, nori_type type)
{
    char s[16], z[16];
    bool known = false;
    snprintf(s, sizeof(s), "s_%s", v);
    snprintf(z, sizeof(z), "z_%s", v);
    for (size_t i = 0; i < m->graph.initializers.count; i++) {
        nori__str name = m->graph.initializers.items[i].name;
        known = known || nori__str_is(name, s);
    }
    if (!known) {
        nori__pb_tensor *scale = constant(m, s, NORI_FLOAT);
        *MAKE_ADD(m, scale->floats) = 0.02f + 0.005f * (float)(v[0] % 5);
        nori__pb_tensor *zero = constant(m, z, type);
        *MAKE_ADD(m, zero->ints) = (type == NORI_UINT8 ? 100 : -10) + v[0] % 11 * 3;
    }
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s %s", used ? " " : "", s, z);
}

static void append(char *text, size_t size, const char *word)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? " " : "", word);
}

static int64_t key(const char *op, const char *name, int64_t otherwise)
{
    const char *at = strstr(op, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : otherwise;
}

/* Weights and bias of a convolution; adds their names. */
static void add_weights(make *m, const char *op, const char *y, char *in, size_t size)
{
    char name[16], inputs[64] = "";
    bool is_unsigned = key(op, " u=", 0) != 0;
    nori_type type = is_unsigned ? NORI_UINT8 : NORI_INT8;
    uint32_t seed = (uint32_t)y[0] * 77;
    int64_t count = 1, made = 0;
    char *end;
    snprintf(name, sizeof(name), "w_%s", y);
    append(in, size, name);
    nori__pb_tensor *w = constant(m, name, type);
    for (const char *at = strstr(op, " w=") + 3;; at = end + 1) {
        int64_t d = strtoll(at, &end, 10);
        made = made ? made : d;
        count *= d;
        *MAKE_ADD(m, w->dims) = d;
        if (*end != 'x') {
            break;
        }
    }
    for (int64_t i = 0; i < count; i++) { /* some at the ends of the range */
        int64_t v = (int64_t)random_byte(&seed) - 128;
        *MAKE_ADD(m, w->ints) = (i % 3 ? v / 4 : v) + (is_unsigned ? 128 : 0);
    }
    snprintf(name, sizeof(name), "ws_%s", y);
    append(inputs, sizeof(inputs), name);
    nori__pb_tensor *scale = constant(m, name, NORI_FLOAT);
    *MAKE_ADD(m, scale->dims) = made;
    for (int64_t i = 0; i < made; i++) {
        *MAKE_ADD(m, scale->floats) = 0.001f + 0.0001f * (float)i;
    }
    snprintf(name, sizeof(name), "wz_%s", y);
    append(inputs, sizeof(inputs), name);
    nori__pb_tensor *zero = constant(m, name, type);
    if (is_unsigned) {
        *MAKE_ADD(m, zero->dims) = made;
    }
    for (int64_t i = 0; i < (is_unsigned ? made : 1); i++) {
        *MAKE_ADD(m, zero->ints) = is_unsigned ? 90 + i * 5 % 60 : 0;
    }
    append(in, size, inputs);
}

static void add_bias(make *m, const char *op, const char *y, char *in, size_t size)
{
    char name[16];
    if (key(op, " n=", 0)) {
        return;
    }
    snprintf(name, sizeof(name), "b_%s", y);
    append(in, size, name);
    nori__pb_tensor *b = constant(m, name, NORI_INT32);
    int64_t made = key(op, " w=", 0);
    *MAKE_ADD(m, b->dims) = made;
    for (int64_t i = 0; i < made; i++) {
        *MAKE_ADD(m, b->ints) = i * 331 % 1000 - 500;
    }
}

static void add_window(make *m, nori__pb_node *n, const char *op, bool kernel)
{
    int64_t k = key(op, " k=", 1), s = key(op, " s=", 1), d = key(op, " d=", 1), p = key(op, " p=", 0);
    if (kernel) {
        make_attr_ints(m, n, "kernel_shape", 2, (int64_t[]){k, k});
    } else {
        make_attr_ints(m, n, "dilations", 2, (int64_t[]){d, d});
        make_attr_int(m, n, "group", key(op, " g=", 1));
    }
    make_attr_ints(m, n, "strides", 2, (int64_t[]){s, s});
    make_attr_ints(m, n, "pads", 4, (int64_t[]){p, p, p, p});
}

static void add_node(make *m, const char *text, nori_type type)
{
    char op[64], a[8] = "", b[8] = "", y[8] = "", in[160] = "";
    assert_true(sscanf(text, "%63[^:]:%7[^: ] %7[^: ]:%7s", op, a, b, y) == 4 ||
                sscanf(text, "%63[^:]:%7[^: ]:%7s", op, a, y) == 3);
    bool two = strchr(strchr(text, ':') + 1, ' ') != NULL;
    const char *space = strchr(op, ' ');
    size_t length = space ? (size_t)(space - op) : strlen(op);
#define IS(name) (length == sizeof(name) - 1 && memcmp(op, name, length) == 0)
    bool joins = IS("QConcat");
    if (joins) {
        append_quant(m, in, sizeof(in), y, type);
    }
    append(in, sizeof(in), a);
    if (!IS("Max") && !IS("Concat")) {
        append_quant(m, in, sizeof(in), a, type);
    }
    if (two) {
        append(in, sizeof(in), b);
        if (!IS("Concat")) {
            append_quant(m, in, sizeof(in), b, type);
        }
    }
    if (IS("Conv")) {
        add_weights(m, op, y, in, sizeof(in));
    }
    if (!IS("Max") && !IS("Concat") && !joins) {
        append_quant(m, in, sizeof(in), y, type);
    }
    if (IS("Conv")) {
        add_bias(m, op, y, in, sizeof(in));
    }
    static const struct {
        const char *name, *type, *domain;
    } types[] = {{"Conv", "QLinearConv", ""},
                 {"Max", "MaxPool", ""},
                 {"Concat", "Concat", ""},
                 {"Add", "QLinearAdd", "com.microsoft"},
                 {"Mul", "QLinearMul", "com.microsoft"},
                 {"Mean", "QLinearGlobalAveragePool", "com.microsoft"},
                 {"Average", "QLinearAveragePool", "com.microsoft"},
                 {"Sigmoid", "QLinearSigmoid", "com.microsoft"},
                 {"LeakyRelu", "QLinearLeakyRelu", "com.microsoft"},
                 {"QConcat", "QLinearConcat", "com.microsoft"}};
    size_t t = 0;
    while (strlen(types[t].name) != length || memcmp(types[t].name, op, length) != 0) {
        t++;
        assert_true(t < NORI__COUNT(types));
    }
    nori__pb_node *n = make_node(m, &m->graph, types[t].domain, types[t].type, y, in, y);
    if (IS("Conv") || IS("Max") || IS("Average")) {
        add_window(m, n, op, !IS("Conv"));
    }
    if (IS("Average")) {
        make_attr_int(m, n, "count_include_pad", key(op, " all=", 0));
    }
    if (joins || IS("Concat")) {
        make_attr_int(m, n, "axis", joins ? 1 : -3);
    }
#undef IS
}

static void build(make *m, const net *c, nori_type type)
{
    make_begin(m, 13);
    make_import(m, "com.microsoft", 1);
    make_input(m, &m->graph, "x", type, c->input);
    for (size_t i = 0; c->nodes[i]; i++) {
        add_node(m, c->nodes[i], type);
    }
    rewrite_outputs(m, c->outputs, type);
}

/* ---- what is left ---- */

static void check_nodes(make *m, const net *c)
{
    nori__ir *ir = make_ir(m);
    nori_error err = {0};
    nori__resolve(ir);
    assert_int_equal(nori__upgrade(ir, &err), NORI_OK);
    assert_int_equal(nori__passes_run(ir, 2, &err), NORI_OK);
    assert_int_equal(nori__cpu_integers(ir, &err), NORI_OK);
    assert_int_equal(nori__cpu_lastc(ir, &err), NORI_OK);
    rewrite_left(ir, c->left, c->what);
    assert_int_equal(nori__ir_verify(ir, &err), NORI_OK);
    nori__ir_free(ir);
}

/* ---- results ---- */

static void check_results(make *m, const net *c, nori_type type)
{
    nori_tensor *x = rewrite_input(type, c->input), *want[2] = {0};
    size_t n_out = strchr(c->outputs, ' ') ? 2 : 1;
    uint32_t seed = 5;
    for (int64_t i = 0; i < x->count; i++) {
        ((uint8_t *)x->data)[i] = (uint8_t)random_byte(&seed);
    }
    rewrite_work(m, x, c->what);
    model_run(m, "reference", 0, 1, x, want, n_out);
    for (int threads = 1; threads <= 5; threads += threads) {
        nori_tensor *got[2] = {0};
        model_run(m, "cpu", 2, threads, x, got, n_out);
        for (size_t o = 0; o < n_out; o++) {
            assert_int_equal(got[o]->count, want[o]->count);
            for (int64_t i = 0; i < got[o]->count; i++) {
                int64_t a = nori__tensor_get_i64(got[o], i), b = nori__tensor_get_i64(want[o], i);
                if (a != b) {
                    print_error("%s, type %d: element %d is %d, expected %d\n", c->what, (int)type,
                                (int)i, (int)a, (int)b);
                }
                assert_int_equal(a, b);
            }
            nori_tensor_free(got[o]);
        }
    }
    nori_tensor_free(want[0]);
    nori_tensor_free(want[1]);
    nori_tensor_free(x);
}

static void networks(void **state)
{
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(nets); i++) {
        for (int s = 0; s < 2; s++) {
            make m;
            nori_type type = s ? NORI_INT8 : NORI_UINT8;
            build(&m, &nets[i], type);
            check_nodes(&m, &nets[i]);
            check_results(&m, &nets[i], type);
            make_end(&m);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(networks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
