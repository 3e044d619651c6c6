/* Pruning: which weights become zero, which channels go and from where, what stands in the way, and
 * that the thinner model computes what the thick one does with those channels at zero. */
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

static const nori_tensor *weight_of(const nori_model *m, const char *node, uint32_t input)
{
    for (const nori__node *n = nori__model_ir(m)->main->first; n; n = n->next) {
        if (nori__same(n->name, node)) {
            return n->inputs[input]->constant;
        }
    }
    fail_msg("no node %s", node);
    return NULL;
}

static nori_model *prune(const nori_model *model, nori_prune_options *o, nori_prune_report **report)
{
    nori_model *made = NULL;
    nori_findings *found = NULL;
    nori_error err = {0};
    if (nori_prune(model, o, &made, report, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    assert_int_equal(nori__ir_verify(nori__model_ir(made), &err), NORI_OK);
    assert_int_equal(nori_check(made, NULL, &found, &err), NORI_OK);
    for (size_t i = 0; i < nori_findings_count(found); i++) {
        const nori_finding *f = nori_findings_at(found, i);
        if (f->severity == NORI_SEVERITY_ERROR) {
            fail_msg("%s: %s", f->path, f->message);
        }
    }
    nori_findings_free(found);
    return made;
}

static void has_row(const nori_prune_report *r, const char *path, int64_t before, int64_t after,
                    const char *reason)
{
    nori_prune_node n = {.size = sizeof(n)};
    for (size_t i = 0; nori_prune_report_node(r, i, &n); i++) {
        if (strncmp(n.path, path, strlen(path)) == 0) {
            if (n.channels_before != before || n.channels_after != after ||
                (reason ? !strstr(n.reason, reason) : n.reason[0])) {
                fail_msg("%s: %d to %d, \"%s\"", path, (int)n.channels_before,
                         (int)n.channels_after, n.reason);
            }
            return;
        }
    }
    fail_msg("no row %s", path);
}

/* ---- zeros ---- */

static void zeros(void **state)
{
    (void)state;
    make m;
    nori_prune_options o;
    nori_prune_report *report = NULL;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 6");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 2");
    /* Columns (of six, along the sum): 1 -5 2 -2 9 8, and 3 3 0 4 -1 7. */
    make_weights(&m, &m.graph, "w", "6 2",
                 (float[]){1, 3, -5, 3, 2, 0, -2, 4, 9, -1, 8, 7});
    make_node(&m, &m.graph, "", "MatMul", "product", "x w", "y");
    nori_model *model = load(&m);
    nori_prune_options_default(&o);
    nori_model *made = prune(model, &o, &report);
    /* Half of twelve: 0, 1, -1, 2, -2 and the first of the two 3. */
    const float half[12] = {0, 0, -5, 3, 0, 0, 0, 4, 9, 0, 8, 7};
    assert_memory_equal(weight_of(made, "product", 1)->data, half, sizeof(half));
    nori_prune_summary s = {.size = sizeof(s)};
    nori_prune_report_summary(report, &s);
    assert_int_equal(s.weights, 12);
    assert_int_equal(s.zeros, 6);
    assert_int_equal(s.removed, 5); /* one was zero before */
    nori_prune_report_free(report);
    nori_model_free(made);
    o.method = NORI_PRUNE_2_4;
    made = prune(model, &o, &report);
    const float pairs[12] = {0, 3, -5, 0, 2, 0, 0, 4, 9, -1, 8, 7};
    const float *got = weight_of(made, "product", 1)->data;
    for (int i = 0; i < 12; i++) {
        if (got[i] != pairs[i] && !(i == 1 || i == 3 || i == 4 || i == 6)) {
            fail_msg("element %d is %g, expected %g", i, (double)got[i], (double)pairs[i]);
        }
    }
    for (int c = 0; c < 2; c++) { /* equals: either may stay, but two of four are zero */
        int none = 0;
        for (int k = 0; k < 4; k++) {
            none += got[k * 2 + c] == 0;
        }
        assert_int_equal(none, 2);
    }
    nori_prune_report_free(report);
    nori_model_free(made);
    o.exclude = (const char *const[]){"prod*"};
    o.exclude_count = 1;
    made = prune(model, &o, &report);
    assert_memory_equal(weight_of(made, "product", 1)->data, weight_of(model, "product", 1)->data, 48);
    nori_prune_report_free(report);
    nori_model_free(made);
    o.share = 1;
    nori_error err = {0};
    assert_int_equal(nori_prune(model, &o, &made, NULL, &err), NORI_ERROR_ARGUMENT);
    nori_model_free(model);
    make_end(&m);
}

/* ---- channels ---- */

/* Conv, BatchNormalization, Relu, depthwise Conv, Conv, pooling, Flatten, Gemm, Relu, Gemm. Channels
 * 1 and 3 of the first, 0 and 2 of the third, and two features of the Gemm are all zero: taking half
 * away changes no result. */
static void chain(void **state)
{
    (void)state;
    make m;
    nori_prune_options o;
    nori_prune_report *report = NULL;
    samples from = {4, {1, 2, 4, 4}, 4, -1, 1, 5};
    float w1[8], dw[36], w2[16], w3[64], w4[8];
    for (int i = 0; i < 8; i++) {
        w1[i] = (i / 2) % 2 ? 0 : 0.5f + (float)i / 10;
        w4[i] = (float)(i - 3) / 4;
    }
    for (int i = 0; i < 36; i++) {
        dw[i] = (float)((i * 5) % 7 - 3) / 4;
    }
    for (int i = 0; i < 16; i++) {
        w2[i] = (i / 4) % 2 ? (float)((i * 3) % 5 - 2) / 2 + 0.25f : 0;
    }
    for (int i = 0; i < 64; i++) {
        w3[i] = i / 16 < 2 ? 0 : (float)((i * 11) % 9 - 4) / 8 + 0.05f;
    }
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "N 2 4 4");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "N 2");
    make_weights(&m, &m.graph, "w1", "4 2 1 1", w1);
    make_weights(&m, &m.graph, "b1", "4", (float[]){0.1f, 0, 0.2f, 0});
    make_weights(&m, &m.graph, "s", "4", (float[]){1, 2, 0.5f, 1});
    make_weights(&m, &m.graph, "o", "4", (float[]){0.25f, 0, -0.5f, 0});
    make_weights(&m, &m.graph, "mean", "4", (float[]){0.1f, 0, 0, 0});
    make_weights(&m, &m.graph, "var", "4", (float[]){1, 1, 2, 1});
    make_weights(&m, &m.graph, "dw", "4 1 3 3", dw);
    make_weights(&m, &m.graph, "w2", "4 4 1 1", w2);
    make_weights(&m, &m.graph, "w3", "4 16", w3);
    make_weights(&m, &m.graph, "b3", "4", (float[]){0, 0, 0.5f, -0.25f});
    make_weights(&m, &m.graph, "w4", "4 2", w4);
    make_node(&m, &m.graph, "", "Conv", "c1", "x w1 b1", "a");
    make_node(&m, &m.graph, "", "BatchNormalization", "bn", "a s o mean var", "n");
    make_node(&m, &m.graph, "", "Relu", "relu", "n", "r");
    nori__pb_node *d = make_node(&m, &m.graph, "", "Conv", "deep", "r dw", "d");
    make_attr_int(&m, d, "group", 4);
    make_attr_ints(&m, d, "pads", 4, (int64_t[]){1, 1, 1, 1});
    make_node(&m, &m.graph, "", "Conv", "c2", "d w2", "e");
    nori__pb_node *pool = make_node(&m, &m.graph, "", "MaxPool", "pool", "e", "p");
    make_attr_ints(&m, pool, "kernel_shape", 2, (int64_t[]){2, 2});
    make_attr_ints(&m, pool, "strides", 2, (int64_t[]){2, 2});
    make_node(&m, &m.graph, "", "Flatten", "flat", "p", "f");
    make_attr_int(&m, make_node(&m, &m.graph, "", "Gemm", "g1", "f w3 b3", "h"), "transB", 1);
    make_node(&m, &m.graph, "", "Relu", "relu2", "h", "k");
    make_node(&m, &m.graph, "", "MatMul", "last", "k w4", "y");
    nori_model *model = load(&m);
    nori_prune_options_default(&o);
    o.method = NORI_PRUNE_CHANNELS;
    o.sample = draw;
    o.sample_user = &from;
    nori_model *made = prune(model, &o, &report);
    has_row(report, "c1", 4, 2, NULL);
    has_row(report, "c2", 4, 2, NULL);
    has_row(report, "g1", 4, 2, NULL);
    has_row(report, "deep", 0, 0, "groups");
    has_row(report, "last", 0, 0, "no channels");
    static const struct {
        const char *node;
        uint32_t input;
        int64_t dims[2];
    } shapes[] = {{"c1", 1, {2, 2}}, {"c1", 2, {2, 0}}, {"bn", 1, {2, 0}},  {"bn", 4, {2, 0}},
                  {"deep", 1, {2, 1}}, {"c2", 1, {2, 2}}, {"g1", 1, {2, 8}}, {"g1", 2, {2, 0}},
                  {"last", 1, {2, 2}}};
    for (size_t i = 0; i < NORI__COUNT(shapes); i++) {
        const nori_tensor *t = weight_of(made, shapes[i].node, shapes[i].input);
        assert_int_equal(t->dims[0], shapes[i].dims[0]);
        assert_true(shapes[i].dims[1] == 0 || t->dims[1] == shapes[i].dims[1]);
    }
    nori_prune_summary s = {.size = sizeof(s)};
    nori_prune_report_summary(report, &s);
    assert_int_equal(s.samples, 4);
    assert_true(s.output_sqnr > 100); /* what went was nothing */
    assert_true(s.weight_bytes_after * 1.9 < (double)s.weight_bytes_before);
    nori_prune_report_free(report);
    /* And on to integers. */
    nori_quantize_options q;
    nori_quantize_report *quantized = NULL;
    nori_model *small = NULL;
    nori_error err = {0};
    small_options(&q);
    q.sample = draw;
    q.sample_user = &from;
    if (nori_quantize(made, &q, &small, &quantized, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    nori_quantize_summary qs = {.size = sizeof(qs)};
    nori_quantize_report_summary(quantized, &qs);
    assert_true(qs.quantized_nodes > 4 && qs.output_sqnr > 20);
    nori_quantize_report_free(quantized);
    nori_model_free(small);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* Channels of inputs and outputs, groups and shared weights: left alone, and said why. */
static void declined(void **state)
{
    (void)state;
    make m;
    nori_prune_options o;
    nori_prune_report *report = NULL;
    float w[16];
    for (int i = 0; i < 16; i++) {
        w[i] = (float)(i - 7) / 8;
    }
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 4 2 2");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 4 2 2");
    make_output(&m, &m.graph, "z", NORI_FLOAT, "1 4 2 2");
    make_weights(&m, &m.graph, "wa", "4 4 1 1", w);
    make_weights(&m, &m.graph, "wb", "4 4 1 1", w);
    make_weights(&m, &m.graph, "wc", "4 4 1 1", w);
    make_weights(&m, &m.graph, "wg", "4 2 1 1", w);
    make_node(&m, &m.graph, "", "Conv", "residual", "x wa", "a");
    make_node(&m, &m.graph, "", "Add", "sum", "x a", "s");
    make_node(&m, &m.graph, "", "Conv", "before", "s wb", "b");
    make_attr_int(&m, make_node(&m, &m.graph, "", "Conv", "grouped", "b wg", "y"), "group", 2);
    make_node(&m, &m.graph, "", "Conv", "output", "s wc", "z");
    nori_model *model = load(&m);
    nori_prune_options_default(&o);
    o.method = NORI_PRUNE_CHANNELS;
    nori_model *made = prune(model, &o, &report);
    has_row(report, "residual", 4, 4, "its channels are those of the input x");
    has_row(report, "before", 4, 4, "grouped (Conv) works in groups");
    has_row(report, "grouped", 0, 0, "groups");
    has_row(report, "output", 4, 4, "the output z");
    nori_prune_summary s = {.size = sizeof(s)};
    nori_prune_report_summary(report, &s);
    assert_int_equal(s.removed, 0);
    nori_prune_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* ---- residual sums ---- */

#define RES_LAYERS 7

typedef struct layer {
    const char *name, *weight, *bias, *shape;
    int64_t out, in; /* channels; kernels are 1x1 */
    unsigned gone;   /* channels of what it makes that weigh least, as bits */
    unsigned masked; /* of what it reads */
} layer;

/* stem, inner and second, third, squeeze and excite, head: the results of stem, second, third and
 * excite meet in sums and a product, and lose channels 1 and 3; inner loses 0, 2 and 5, squeeze 1. */
static const layer res_layers[RES_LAYERS] = {
    {"stem", "w0", "b0", "4 2 1 1", 4, 2, 0x0a, 0},
    {"inner", "w1", "b1", "6 4 1 1", 6, 4, 0x25, 0x0a},
    {"second", "w2", "b2", "4 6 1 1", 4, 6, 0x0a, 0x25},
    {"third", "w3", "b3", "4 4 1 1", 4, 4, 0x0a, 0x0a},
    {"squeeze", "w4", "b4", "2 4 1 1", 2, 4, 0x02, 0x0a},
    {"excite", "w5", "b5", "4 2 1 1", 4, 2, 0x0a, 0x02},
    {"head", "w6", "b6", "3 4", 3, 4, 0, 0x0a}};

/* A network of two residual sums, a depthwise convolution on the way, a gate, and a sum with a
 * constant; the normalization reads one constant twice. masked: weights that read the channels that
 * are to go are zero. */
static nori_model *residual_model(make *m, bool masked)
{
    static const char *const four[] = {"s", "o", "mean"};
    make_begin(m, 13);
    make_input(m, &m->graph, "x", NORI_FLOAT, "N 2 4 4");
    make_output(m, &m->graph, "y", NORI_FLOAT, "N 3");
    for (size_t k = 0; k < RES_LAYERS; k++) {
        const layer *l = &res_layers[k];
        char bias_shape[8];
        float w[24], b[6];
        for (int64_t o = 0; o < l->out; o++) {
            b[o] = (float)(o + 1) / 8 - 0.3f;
            for (int64_t i = 0; i < l->in; i++) {
                bool zero = masked && (l->masked >> i & 1);
                float v = (float)((o * 7 + i * 5 + (int64_t)k) % 9 - 4) / 4 + 0.06f;
                w[o * l->in + i] = zero ? 0 : l->gone >> o & 1 ? v / 50 : v;
            }
        }
        make_weights(m, &m->graph, l->weight, l->shape, w);
        snprintf(bias_shape, sizeof(bias_shape), "%d", (int)l->out);
        make_weights(m, &m->graph, l->bias, bias_shape, b);
    }
    for (size_t i = 0; i < NORI__COUNT(four); i++) {
        make_weights(m, &m->graph, four[i], "4", (float[]){1, 0.5f, 1.5f, 0.75f});
    }
    float dw[36];
    for (int i = 0; i < 36; i++) {
        dw[i] = (float)((i * 5) % 7 - 3) / 4;
    }
    make_weights(m, &m->graph, "dw", "4 1 3 3", dw);
    make_weights(m, &m->graph, "shift", "4 1 1", (float[]){0.1f, 0.2f, -0.3f, 0.4f});
    make_weights(m, &m->graph, "half", "1", (float[]){0.5f});
    make_node(m, &m->graph, "", "Conv", "stem", "x w0 b0", "a0");
    make_node(m, &m->graph, "", "BatchNormalization", "bn", "a0 s o mean s", "a1");
    make_node(m, &m->graph, "", "Relu", "relu0", "a1", "a2");
    make_node(m, &m->graph, "", "Conv", "inner", "a2 w1 b1", "b0v");
    make_node(m, &m->graph, "", "Relu", "relu1", "b0v", "b1v");
    make_node(m, &m->graph, "", "Conv", "second", "b1v w2 b2", "c0");
    make_node(m, &m->graph, "", "Add", "sum1", "c0 a2", "c1");
    make_node(m, &m->graph, "", "Add", "shifted", "shift c1", "c2");
    make_node(m, &m->graph, "", "Mul", "halved", "c2 half", "c3");
    nori__pb_node *deep = make_node(m, &m->graph, "", "Conv", "deep", "c3 dw", "d0");
    make_attr_int(m, deep, "group", 4);
    make_attr_ints(m, deep, "pads", 4, (int64_t[]){1, 1, 1, 1});
    make_node(m, &m->graph, "", "Conv", "third", "d0 w3 b3", "d1");
    make_node(m, &m->graph, "", "Sum", "sum2", "d1 c3", "d2");
    make_node(m, &m->graph, "", "GlobalAveragePool", "mean1", "d2", "e0");
    make_node(m, &m->graph, "", "Conv", "squeeze", "e0 w4 b4", "e1");
    make_node(m, &m->graph, "", "Relu", "relu2", "e1", "e2");
    make_node(m, &m->graph, "", "Conv", "excite", "e2 w5 b5", "e3");
    make_node(m, &m->graph, "", "Sigmoid", "gate", "e3", "e4");
    make_node(m, &m->graph, "", "Mul", "gated", "d2 e4", "f0");
    make_node(m, &m->graph, "", "GlobalAveragePool", "mean2", "f0", "f1");
    make_node(m, &m->graph, "", "Flatten", "flat", "f1", "f2");
    make_attr_int(m, make_node(m, &m->graph, "", "Gemm", "head", "f2 w6 b6", "y"), "transB", 1);
    return load(m);
}

static nori_tensor *result_of(const nori_model *model, samples *from)
{
    nori_session *s = NULL;
    nori_tensor *in = NULL, *out = NULL;
    nori_error err = {0};
    assert_int_equal(nori_session_create(model, NULL, &s, &err), NORI_OK);
    assert_int_equal(draw(from, 0, &in, &err), 1);
    const nori_tensor *given = in;
    assert_int_equal(nori_session_run(s, &given, 1, &out, 1, &err), NORI_OK);
    nori_tensor_free(in);
    nori_session_free(s);
    return out;
}

/* All that meet lose the same channels, and the thin model computes what the thick one does where nobody
 * reads those channels. */
static void residual(void **state)
{
    (void)state;
    make m, full;
    nori_prune_options o;
    nori_prune_report *report = NULL;
    samples from = {4, {2, 2, 4, 4}, 1, -1, 1, 9};
    nori_model *model = residual_model(&full, false), *masked = residual_model(&m, true);
    nori_prune_options_default(&o);
    o.method = NORI_PRUNE_CHANNELS;
    nori_model *made = prune(model, &o, &report);
    for (size_t k = 0; k < RES_LAYERS; k++) {
        const layer *l = &res_layers[k];
        int64_t in = 0, out = 0;
        for (int64_t c = 0; c < 8; c++) {
            in += c < l->in && !(l->masked >> c & 1);
            out += c < l->out && !(l->gone >> c & 1);
        }
        const nori_tensor *w = weight_of(made, l->name, 1);
        assert_int_equal(w->dims[0], out);
        assert_int_equal(w->dims[1], in);
        assert_int_equal(weight_of(made, l->name, 2)->count, out);
        has_row(report, l->name, l->out, out, l->gone ? NULL : "the output y");
    }
    assert_int_equal(weight_of(made, "deep", 1)->dims[0], 2);
    assert_int_equal(weight_of(made, "bn", 1)->count, 2);
    assert_int_equal(weight_of(made, "bn", 4)->count, 2);
    assert_int_equal(weight_of(made, "shifted", 0)->count, 2);
    assert_int_equal(weight_of(made, "halved", 1)->count, 1);
    nori_tensor *thin = result_of(made, &from), *thick = result_of(masked, &from);
    nori_tensor *before = result_of(model, &from);
    bool moved = false;
    assert_int_equal(thin->count, 6);
    for (int64_t i = 0; i < thin->count; i++) {
        double a = nori__tensor_get_f64(thin, i), b = nori__tensor_get_f64(thick, i);
        assert_true(fabs(a - b) <= 1e-5 * (1 + fabs(b)));
        moved = moved || fabs(a - nori__tensor_get_f64(before, i)) > 1e-3;
    }
    assert_true(moved); /* the channels that went were not nothing */
    nori_tensor_free(thin);
    nori_tensor_free(thick);
    nori_tensor_free(before);
    nori_prune_report_free(report);
    nori_model_free(made);
    /* One of them excluded, all of them stay. */
    o.exclude = (const char *const[]){"third"};
    o.exclude_count = 1;
    made = prune(model, &o, &report);
    has_row(report, "stem", 4, 4, "third (Conv) makes channels that must stay");
    has_row(report, "second", 4, 4, "third (Conv)");
    has_row(report, "inner", 6, 3, NULL);
    nori_prune_report_free(report);
    nori_model_free(made);
    nori_model_free(masked);
    nori_model_free(model);
    make_end(&m);
    make_end(&full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(zeros), cmocka_unit_test(chain),
                                       cmocka_unit_test(declined), cmocka_unit_test(residual)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
