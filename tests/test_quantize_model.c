/* Whole models through the quantizer: the bundled one on pictures it has not seen, and small ones
 * made to have what goes wrong elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "quantize_case.h"
#include "run_node.h"

/* ---- the bundled model ---- */

static nori_tensor *pictures(void)
{
    nori_tensor *bytes = NULL, *t = NULL;
    assert_int_equal(nori_tensor_read(NULL, NORI_EXAMPLES_DIR "/digits/test_images.npy", &bytes,
                                      NULL),
                     NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, nori_tensor_rank(bytes),
                                        nori_tensor_dims(bytes), &t, NULL),
                     NORI_OK);
    const uint8_t *from = nori_tensor_const_data(bytes);
    float *to = nori_tensor_data(t);
    for (int64_t i = 0; i < nori_tensor_elements(t); i++) {
        to[i] = (float)from[i] / 255.0f;
    }
    nori_tensor_free(bytes);
    return t;
}

/* The first pictures, one by one. */
static int picture(void *user, size_t index, nori_tensor **inputs, nori_error *err)
{
    const nori_tensor *all = user;
    const int64_t one[4] = {1, 1, 28, 28};
    if (index >= 64) {
        return 0;
    }
    if (nori_tensor_create(NULL, NORI_FLOAT, 4, one, &inputs[0], err) != NORI_OK) {
        return -1;
    }
    memcpy(nori_tensor_data(inputs[0]), (const float *)nori_tensor_const_data(all) + index * 784,
           784 * sizeof(float));
    return 1;
}

static size_t right_of(const nori_model *model, const nori_tensor *in, const nori_tensor *labels)
{
    nori_session *s = NULL;
    nori_error err = {0};
    nori_tensor *out[1] = {NULL};
    assert_int_equal(nori_session_create(model, NULL, &s, &err), NORI_OK);
    node_run(s, (const nori_tensor *const[]){in}, 1, out, 1, NORI_OK);
    size_t right = 0;
    for (int64_t i = 0; i < nori_tensor_dims(in)[0]; i++) {
        const float *row = (const float *)nori_tensor_const_data(out[0]) + i * 10;
        int best = 0;
        for (int c = 1; c < 10; c++) {
            best = row[c] > row[best] ? c : best;
        }
        right += best == (int)nori__tensor_get_i64(labels, i);
    }
    nori_tensor_free(out[0]);
    nori_session_free(s);
    return right;
}

static void digits(void **state)
{
    (void)state;
    nori_tensor *in = pictures(), *labels = NULL;
    nori_model *model = NULL, *made = NULL;
    nori_quantize_report *report = NULL;
    nori_error err = {0};
    nori_quantize_options o;
    assert_int_equal(nori_tensor_read(NULL, NORI_EXAMPLES_DIR "/digits/test_labels.npy", &labels,
                                      NULL),
                     NORI_OK);
    assert_int_equal(nori_model_load(NULL, NORI_EXAMPLES_DIR "/digits/digits.onnx", NULL, &model,
                                     &err),
                     NORI_OK);
    small_options(&o);
    o.sample = picture;
    o.sample_user = in;
    assert_int_equal(nori_quantize(model, &o, &made, &report, &err), NORI_OK);
    nori_quantize_summary s = {.size = sizeof(s)};
    nori_quantize_report_summary(report, &s);
    assert_int_equal(s.samples, 64);
    assert_true(s.output_sqnr > 30);
    assert_true(s.weight_bytes_after * 3.5 < s.weight_bytes_before);
    size_t before = right_of(model, in, labels), after = right_of(made, in, labels);
    size_t all = (size_t)nori_tensor_dims(in)[0];
    print_message("digits: %zu of %zu right in float, %zu in int8; %.1f dB\n", before, all, after,
                  s.output_sqnr);
    assert_true((double)before - (double)after <= 0.003 * (double)all);
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    nori_tensor_free(in);
    nori_tensor_free(labels);
}

/* The other kinds on the same model: what they reach, and that the result is valid ONNX. */
static void other_kinds(void **state)
{
    (void)state;
    static const struct {
        nori_quantize_kind kind;
        nori_type weights;
        int block, packed;
        double sqnr, smaller;
    } rows[] = {{NORI_QUANTIZE_DYNAMIC, NORI_INT8, 0, 0, 35, 3.8},
                {NORI_QUANTIZE_DYNAMIC, NORI_UINT8, 0, 0, 30, 3.8},
                {NORI_QUANTIZE_WEIGHTS, NORI_INT8, 0, 0, 40, 3.8},
                {NORI_QUANTIZE_WEIGHTS, NORI_INT4, 32, 0, 20, 7},
                {NORI_QUANTIZE_WEIGHTS, NORI_UINT4, 64, 0, 20, 7},
                {NORI_QUANTIZE_WEIGHTS, NORI_UINT4, 32, 1, 25, 1},
                {NORI_QUANTIZE_WEIGHTS, NORI_INT8, 64, 1, 45, 1}};
    nori_tensor *in = pictures();
    nori_model *model = NULL;
    nori_error err = {0};
    assert_int_equal(nori_model_load(NULL, NORI_EXAMPLES_DIR "/digits/digits.onnx", NULL, &model,
                                     &err),
                     NORI_OK);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nori_quantize_options o;
        nori_model *made = NULL;
        nori_quantize_report *report = NULL;
        nori_findings *found = NULL;
        small_options(&o);
        o.kind = rows[i].kind;
        o.weight_type = rows[i].weights;
        o.block = rows[i].block;
        o.packed = rows[i].packed;
        o.sample = picture;
        o.sample_user = in;
        if (nori_quantize(model, &o, &made, &report, &err) != NORI_OK) {
            fail_msg("row %zu: %s: %s", i, err.where, err.message);
        }
        nori_quantize_summary s = {.size = sizeof(s)};
        nori_quantize_report_summary(report, &s);
        if (!(s.output_sqnr > rows[i].sqnr) ||
            !((double)s.weight_bytes_before > rows[i].smaller * (double)s.weight_bytes_after)) {
            fail_msg("row %zu: %g dB, %llu bytes", i, s.output_sqnr,
                     (unsigned long long)s.weight_bytes_after);
        }
        assert_int_equal(nori_check(made, NULL, &found, &err), NORI_OK);
        assert_int_equal(nori_findings_at_least(found, NORI_SEVERITY_ERROR), 0);
        nori_findings_free(found);
        nori_quantize_report_free(report);
        nori_model_free(made);
    }
    nori_model_free(model);
    nori_tensor_free(in);
}

/* ---- small models ---- */

static void conv_model(make *m, int64_t opset, const float *weights, const float *bias)
{
    make_begin(m, opset);
    make_input(m, &m->graph, "x", NORI_FLOAT, "1 2 4 4");
    make_output(m, &m->graph, "y", NORI_FLOAT, "1 2 4 4");
    make_weights(m, &m->graph, "w", "2 2 1 1", weights);
    make_weights(m, &m->graph, "b", "2", bias);
    make_node(m, &m->graph, "", "Conv", "conv", "x w b", "y");
}

/* Weights so small that the bias would leave int32: the scale is raised, the bias comes out right. */
static void bias_that_clips(void **state)
{
    (void)state;
    for (int per_channel = 0; per_channel < 2; per_channel++) {
        make m;
        nori_quantize_options o;
        nori_quantize_report *report = NULL;
        samples from = {4, {1, 2, 4, 4}, 4, -60, 67, 1};
        conv_model(&m, 13, (float[]){1e-9f, -1e-9f, 2e-9f, 1e-9f}, (float[]){5, -4.5f});
        nori_model *model = load(&m);
        small_options(&o);
        o.per_channel = per_channel;
        nori_model *made = quantize(model, &from, &o, &report);
        const nori_tensor *b = constant_of(made, "b_quantized"), *s = constant_of(made, "b_scale");
        assert_non_null(b);
        assert_int_equal(nori_tensor_type(b), NORI_INT32);
        for (int i = 0; i < 2; i++) {
            double scale = nori__tensor_get_f64(s, nori_tensor_elements(s) == 1 ? 0 : i);
            double back = (double)nori__tensor_get_i64(b, i) * scale;
            double want = i ? -4.5 : 5;
            assert_true(fabs(back - want) < fabs(want) * 0.01);
            /* The sum beside it fits, too, or kernels of integers could not take the layer. */
            assert_true(llabs(nori__tensor_get_i64(b, i)) + 2 * 65025 <= INT32_MAX);
        }
        assert_non_null(strstr(nori_quantize_report_note(report, 0), "raised"));
        assert_true(output_sqnr(report) > 40);
        nori_quantize_report_free(report);
        nori_model_free(made);
        nori_model_free(model);
        make_end(&m);
    }
}

/* A channel of zeros and one of 1e-6: scales are finite, and no channel is worse than with one
 * scale for all. */
static void dead_channels(void **state)
{
    (void)state;
    static const float w[4] = {0, 0, 1e-6f, -0.7e-6f};
    double sqnr[2];
    for (int per_channel = 0; per_channel < 2; per_channel++) {
        make m;
        nori_quantize_options o;
        nori_quantize_report *report = NULL;
        nori_quantize_node n;
        samples from = {4, {1, 2, 4, 4}, 4, -1, 1, 1};
        conv_model(&m, 13, w, (float[]){0, 0});
        nori_model *model = load(&m);
        small_options(&o);
        o.per_channel = per_channel;
        nori_model *made = quantize(model, &from, &o, &report);
        const nori_tensor *s = constant_of(made, "w_scale");
        for (int64_t i = 0; i < nori_tensor_elements(s); i++) {
            double v = nori__tensor_get_f64(s, i);
            assert_true(isfinite(v) && v > 0);
        }
        assert_true(node_of(report, "conv", &n));
        sqnr[per_channel] = n.weight_sqnr;
        nori_quantize_report_free(report);
        nori_model_free(made);
        nori_model_free(model);
        make_end(&m);
    }
    assert_true(sqnr[1] >= sqnr[0]);
}

/* A bias of one element, where the first mending of such clipping once broke a tool. */
static void bias_of_one(void **state)
{
    (void)state;
    for (int per_channel = 0; per_channel < 2; per_channel++) {
        make m;
        nori_quantize_options o;
        nori_quantize_report *report = NULL;
        samples from = {4, {1, 2, 4, 4}, 4, -60, 67, 1};
        make_begin(&m, 13);
        make_input(&m, &m.graph, "x", NORI_FLOAT, "1 2 4 4");
        make_output(&m, &m.graph, "y", NORI_FLOAT, "1 1 4 4");
        make_weights(&m, &m.graph, "w", "1 2 1 1", (float[]){1e-9f, -0.5e-9f});
        make_weights(&m, &m.graph, "b", "1", (float[]){-4.5f});
        make_node(&m, &m.graph, "", "Conv", "conv", "x w b", "y");
        nori_model *model = load(&m);
        small_options(&o);
        o.per_channel = per_channel;
        nori_model *made = quantize(model, &from, &o, &report);
        const nori_tensor *b = constant_of(made, "b_quantized"), *s = constant_of(made, "b_scale");
        assert_non_null(b);
        assert_int_equal(nori_tensor_elements(b), 1);
        double back = (double)nori__tensor_get_i64(b, 0) * nori__tensor_get_f64(s, 0);
        assert_true(fabs(back + 4.5) < 0.045);
        assert_true(output_sqnr(report) > 40);
        nori_quantize_report_free(report);
        nori_model_free(made);
        nori_model_free(model);
        make_end(&m);
    }
}

/* The same of a depthwise convolution, beside channels of ordinary size. */
static void dead_depthwise(void **state)
{
    (void)state;
    static const float size[4] = {0, 1e-6f, 0.3f, 1};
    float w[36];
    double sqnr[2];
    for (int i = 0; i < 36; i++) {
        w[i] = size[i / 9] * (float)(i * 7 % 11 - 5) / 5;
    }
    for (int per_channel = 0; per_channel < 2; per_channel++) {
        make m;
        nori_quantize_options o;
        nori_quantize_report *report = NULL;
        nori_quantize_node n;
        samples from = {4, {1, 4, 6, 6}, 4, -1, 1, 3};
        make_begin(&m, 13);
        make_input(&m, &m.graph, "x", NORI_FLOAT, "1 4 6 6");
        make_output(&m, &m.graph, "y", NORI_FLOAT, "1 4 6 6");
        make_weights(&m, &m.graph, "w", "4 1 3 3", w);
        nori__pb_node *conv = make_node(&m, &m.graph, "", "Conv", "conv", "x w", "y");
        make_attr_int(&m, conv, "group", 4);
        make_attr_ints(&m, conv, "pads", 4, (int64_t[]){1, 1, 1, 1});
        nori_model *model = load(&m);
        small_options(&o);
        o.per_channel = per_channel;
        nori_model *made = quantize(model, &from, &o, &report);
        const nori_tensor *s = constant_of(made, "w_scale");
        const nori_tensor *q = constant_of(made, "w_quantized");
        assert_int_equal(nori_tensor_elements(s), per_channel ? 4 : 1);
        for (int64_t i = 0; i < 36; i++) {
            double scale = nori__tensor_get_f64(s, per_channel ? i / 9 : 0);
            assert_true(isfinite(scale) && scale > 0);
            double back = (double)nori__tensor_get_i64(q, i) * scale;
            assert_true(fabs(back - w[i]) <= (per_channel ? size[i / 9] : 1) / 127 * 0.5001);
        }
        assert_true(node_of(report, "conv", &n));
        assert_true(n.quantized);
        sqnr[per_channel] = n.weight_sqnr;
        assert_true(output_sqnr(report) > 30);
        nori_quantize_report_free(report);
        nori_model_free(made);
        nori_model_free(model);
        make_end(&m);
    }
    assert_true(sqnr[1] >= sqnr[0]);
}

/* Boxes in [0, 640] and scores in [0, 1] joined: nobody names a node, and the scores survive. */
static void boxes_and_scores(void **state)
{
    (void)state;
    make m;
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_quantize_node n;
    nori_error err = {0};
    samples from = {2, {1, 8}, 16, 0, 1, 3};
    float boxes[32], scores[32];
    for (int i = 0; i < 32; i++) {
        boxes[i] = 160.0f * (float)((i * 7) % 9) / 8.0f;
        scores[i] = 0.125f * (float)((i * 5) % 9) / 8.0f; /* in [0, 1] with inputs in [0, 1] */
    }
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 8");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 8");
    make_weights(&m, &m.graph, "wb", "8 4", boxes);
    make_weights(&m, &m.graph, "ws", "8 4", scores);
    make_node(&m, &m.graph, "", "MatMul", "boxes", "x wb", "b");
    make_node(&m, &m.graph, "", "MatMul", "scores", "x ws", "s");
    make_attr_int(&m, make_node(&m, &m.graph, "", "Concat", "join", "b s", "y"), "axis", 1);
    nori_model *model = load(&m);
    small_options(&o);
    nori_model *made = quantize(model, &from, &o, &report);
    assert_true(node_of(report, "join", &n));
    assert_int_equal(n.quantized, 0);
    assert_true(node_of(report, "boxes", &n) && n.quantized); /* nothing but the join is spared */
    assert_true(node_of(report, "scores", &n) && n.quantized);
    nori_tensor *in[1] = {NULL}, *want[1] = {NULL}, *got[1] = {NULL};
    nori_session *a = NULL, *b = NULL;
    assert_int_equal(draw(&from, 2, in, &err), 1);
    assert_int_equal(nori_session_create(model, NULL, &a, &err), NORI_OK);
    assert_int_equal(nori_session_create(made, NULL, &b, &err), NORI_OK);
    node_run(a, (const nori_tensor *const *)in, 1, want, 1, NORI_OK);
    node_run(b, (const nori_tensor *const *)in, 1, got, 1, NORI_OK);
    for (int i = 4; i < 8; i++) {
        assert_true(fabs(nori__tensor_get_f64(want[0], i) - nori__tensor_get_f64(got[0], i)) <
                    1.0 / 255);
    }
    nori_tensor_free(in[0]);
    nori_tensor_free(want[0]);
    nori_tensor_free(got[0]);
    nori_session_free(a);
    nori_session_free(b);
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* A head as detectors have it: boxes times their stride, scores behind a Sigmoid, both in one output.
 * Scores survive to less than a step of [0, 1], boxes to one of [0, 640]; layers are not taken for what
 * is at fault. */
static void detector_head(void **state)
{
    (void)state;
    make m;
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_quantize_node n;
    nori_error err = {0};
    samples from = {2, {1, 8}, 16, 0, 1, 5};
    float boxes[32], scores[32];
    for (int i = 0; i < 32; i++) {
        boxes[i] = 5.0f * (float)((i * 7) % 9) / 8.0f; /* up to 20, times 32: 640 */
        scores[i] = 0.125f * (float)((i * 5) % 9 - 4);
    }
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 8");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 8");
    make_weights(&m, &m.graph, "wb", "8 4", boxes);
    make_weights(&m, &m.graph, "ws", "8 4", scores);
    make_weights(&m, &m.graph, "stride", "4", (float[]){8, 16, 32, 32});
    make_node(&m, &m.graph, "", "MatMul", "boxes", "x wb", "b");
    make_node(&m, &m.graph, "", "Mul", "scaled", "b stride", "c");
    make_node(&m, &m.graph, "", "MatMul", "scores", "x ws", "s");
    make_node(&m, &m.graph, "", "Sigmoid", "shares", "s", "t");
    make_attr_int(&m, make_node(&m, &m.graph, "", "Concat", "join", "c t", "y"), "axis", 1);
    nori_model *model = load(&m);
    small_options(&o);
    nori_model *made = quantize(model, &from, &o, &report);
    assert_true(node_of(report, "join", &n) && !n.quantized);
    assert_true(node_of(report, "boxes", &n) && n.quantized);
    assert_true(node_of(report, "scores", &n) && n.quantized);
    nori_session *a = NULL, *b = NULL;
    assert_int_equal(nori_session_create(model, NULL, &a, &err), NORI_OK);
    assert_int_equal(nori_session_create(made, NULL, &b, &err), NORI_OK);
    for (size_t k = 0; k < from.count; k++) {
        nori_tensor *in[1] = {NULL}, *want[1] = {NULL}, *got[1] = {NULL};
        assert_int_equal(draw(&from, k, in, &err), 1);
        node_run(a, (const nori_tensor *const *)in, 1, want, 1, NORI_OK);
        node_run(b, (const nori_tensor *const *)in, 1, got, 1, NORI_OK);
        for (int i = 0; i < 8; i++) {
            double off = fabs(nori__tensor_get_f64(want[0], i) - nori__tensor_get_f64(got[0], i));
            assert_true(off < (i < 4 ? 640.0 : 1.0) / 255);
        }
        nori_tensor_free(in[0]);
        nori_tensor_free(want[0]);
        nori_tensor_free(got[0]);
    }
    nori_session_free(a);
    nori_session_free(b);
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

/* The form: every weighted node ends in a pair (no runtime falls back to float), an activation
 * stands inside it, old operator sets are raised, exclusion is said. */
static void form(void **state)
{
    (void)state;
    make m;
    nori_quantize_options o;
    nori_quantize_report *report = NULL;
    nori_quantize_node n;
    samples from = {4, {1, 2, 4, 4}, 4, -1, 1, 1};
    make_begin(&m, 9);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 2 4 4");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 2 4 4");
    make_weights(&m, &m.graph, "w", "2 2 1 1", (float[]){0.5f, -1, 0.25f, 1});
    make_node(&m, &m.graph, "", "Conv", "first", "x w", "a");
    make_node(&m, &m.graph, "", "Relu", "clamp", "a", "r");
    make_node(&m, &m.graph, "", "Conv", "second", "r w", "y");
    nori_model *model = load(&m);
    small_options(&o);
    nori_model *made = quantize(model, &from, &o, &report);
    const char *domain;
    int64_t version = 0;
    nori_model_opset(made, 0, &domain, &version);
    assert_int_equal(version, 13);
    assert_int_equal(count_ops(made, "QuantizeLinear"), 3);   /* x, r, y */
    assert_int_equal(count_ops(made, "DequantizeLinear"), 4); /* and w, once for both */
    assert_true(output_sqnr(report) > 25);
    nori_quantize_report_free(report);
    nori_model_free(made);
    o.exclude = (const char *const[]){"sec*"};
    o.exclude_count = 1;
    made = quantize(model, &from, &o, &report);
    assert_true(node_of(report, "second", &n));
    assert_int_equal(n.quantized, 0);
    assert_non_null(strstr(n.reason, "excluded"));
    nori_quantize_report_free(report);
    nori_model_free(made);
    nori_model_free(model);
    make_end(&m);
}

static int none(void *user, size_t index, nori_tensor **inputs, nori_error *err)
{
    (void)user, (void)index, (void)inputs, (void)err;
    return 0;
}

static void refusals(void **state)
{
    (void)state;
    make m;
    nori_quantize_options o;
    nori_model *made = NULL;
    nori_error err = {0};
    conv_model(&m, 13, (float[]){1, 1, 1, 1}, (float[]){0, 0});
    nori_model *model = load(&m);
    small_options(&o);
    o.sample = none;
    assert_int_equal(nori_quantize(model, &o, &made, NULL, &err), NORI_ERROR_DATA);
    assert_non_null(strstr(err.message, "no samples"));
    assert_null(made);
    memset(&err, 0, sizeof(err));
    o.activation_type = NORI_FLOAT16;
    assert_int_equal(nori_quantize(model, &o, &made, NULL, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "float16"));
    nori_model_free(model);
    make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits),           cmocka_unit_test(other_kinds),
        cmocka_unit_test(bias_that_clips),  cmocka_unit_test(bias_of_one),
        cmocka_unit_test(dead_depthwise),
        cmocka_unit_test(dead_channels),    cmocka_unit_test(boxes_and_scores),
        cmocka_unit_test(detector_head),
        cmocka_unit_test(form),             cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
