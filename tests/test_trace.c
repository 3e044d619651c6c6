/* test_trace.c: C functions become models: what is recorded, computed, named, frozen and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/byte_order.h"
#include "graph/tensor.h"
#include "nori/trace.h"

static nori_tensor *filled(nori_type type, int rank, const int64_t *dims, uint32_t seed)
{
    nori_tensor *x = NULL;
    assert_int_equal(nori_tensor_create(NULL, type, rank, dims, &x, NULL), NORI_OK);
    for (int64_t i = 0; i < x->count; i++) {
        seed = seed * 1664525u + 1013904223u;
        double v = (double)(seed >> 8) / (1 << 24);
        nori__tensor_set_f64(x, i, type == NORI_FLOAT ? 2 * v - 1 : floor(6 * v));
    }
    return x;
}

static nori_traced *weight(nori_tracer *t, const char *name, int rank, const int64_t *dims, uint32_t seed)
{
    nori_tensor *x = filled(NORI_FLOAT, rank, dims, seed);
    nori_traced *v = nori_traced_constant(t, name, x);
    nori_tensor_free(x);
    return v;
}
#define DIMS(...) (const int64_t[]){__VA_ARGS__}

static const char *const x_name[] = {"x"}, *const y_name[] = {"y"};

static nori_trace_options options_of(const nori_dynamic_axis *axes, size_t n)
{
    nori_trace_options o;
    nori_trace_options_default(&o);
    o.input_names = x_name;
    o.output_names = y_name;
    o.output_count = 1;
    o.dynamic_axes = axes;
    o.dynamic_axis_count = n;
    return o;
}

static nori_status run1(nori_trace_function f, void *user, nori_tensor *x, const nori_trace_options *o,
                        nori_model **model, nori_trace_report **report, nori_error *err)
{
    return nori_trace(NULL, f, user, (const nori_tensor *const[]){x}, 1, o, model, report, err);
}

static const char *noted(const nori_trace_report *r, const char *what)
{
    const char *text;
    for (size_t i = 0; r && (text = nori_trace_report_note(r, i)) != NULL; i++) {
        if (strstr(text, what)) {
            return text;
        }
    }
    return NULL;
}

/* ---- a model ---- */

static nori_status mlp(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    nori_traced *h = nori_layer_linear(t, in[0], weight(t, "fc1.weight", 2, DIMS(5, 4), 1),
                                       weight(t, "fc1.bias", 1, DIMS(5), 2));
    h = nori_traced_name(nori_layer_unary(t, "Relu", h), "hidden");
    /* The same weights once more: stored once. */
    nori_traced *g = nori_layer_linear(t, in[0], weight(t, "again", 2, DIMS(5, 4), 1), NULL);
    nori_layer_unary(t, "Neg", g); /* leads nowhere */
    out[0] = nori_layer_softmax(t, nori_layer_binary(t, "Add", h, g), -1);
    return NORI_OK;
}

static void a_model_is_made(void **state)
{
    (void)state;
    const nori_dynamic_axis batch = {"x", 0, "batch"};
    nori_trace_options o = options_of(&batch, 1);
    nori_tensor *x = filled(NORI_FLOAT, 2, DIMS(2, 4), 7);
    char path[] = "/tmp/nori-trace-XXXXXX";
    nori_error err = {0};
    nori_model *m = NULL;
    nori_trace_report *r = NULL;
    close(mkstemp(path));
    o.path = path;
    o.name = "mlp";
    if (run1(mlp, NULL, x, &o, &m, &r, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    nori_trace_summary sum = {.size = sizeof(sum)};
    nori_trace_report_summary(r, &sum);
    assert_int_equal(sum.opset, 7 + 6); /* Softmax over one axis came with 13 */
    assert_int_equal(sum.lowest, sum.opset);
    assert_int_equal(sum.initializers, 2);
    assert_int_equal(sum.shared, 1);
    assert_int_equal(sum.dropped, 1);
    assert_int_equal(sum.nodes, 5);
    assert_non_null(noted(r, "1 operation leads to no output"));
    assert_string_equal(nori_graph_name(nori_model_graph(m)), "mlp");
    assert_string_equal(nori_model_input(m, 0)->dim_names[0], "batch");
    assert_string_equal(nori_model_output(m, 0)->name, "y");
    assert_string_equal(nori_model_output(m, 0)->dim_names[0], "batch");
    assert_int_equal(nori_model_output(m, 0)->dims[1], 5);
    static const char *const whats[] = {"example", "batch = 3", "written"};
    nori_trace_check c = {.size = sizeof(c)};
    for (size_t i = 0; i < 3; i++) {
        assert_true(nori_trace_report_check(r, i, &c));
        assert_string_equal(c.what, whats[i]);
        assert_string_equal(c.output, "y");
        assert_true(c.agreement.passes && c.agreement.elements == (i == 1 ? 15 : 10));
    }
    assert_false(nori_trace_report_check(r, 3, &c));
    bool named = false;
    for (const nori_value *v = nori_graph_value(nori_model_graph(m)); v; v = nori_value_next(v)) {
        named = named || strcmp(nori_value_name(v), "hidden") == 0;
    }
    assert_true(named);
    nori_model_free(m);
    assert_int_equal(nori_model_load(NULL, path, NULL, &m, &err), NORI_OK);
    nori_model_free(m);
    nori_trace_report_free(r);
    unlink(path);

    /* Without the axis: frozen, and another size is refused with what to do. */
    nori_session *s = NULL;
    nori_tensor *other = filled(NORI_FLOAT, 2, DIMS(3, 4), 7), *out[1] = {NULL};
    o.dynamic_axis_count = 0;
    o.path = NULL;
    assert_int_equal(run1(mlp, NULL, x, &o, &m, NULL, &err), NORI_OK);
    assert_int_equal(nori_session_create(m, NULL, &s, &err), NORI_OK);
    assert_int_equal(nori_session_run(s, (const nori_tensor *const[]){other}, 1, out, 1, &err),
                     NORI_ERROR_DATA);
    assert_non_null(strstr(err.message, "input \"x\" axis 0: expected 2, got 3"));
    assert_non_null(strstr(err.hint, "dynamic axes"));
    nori_session_free(s);
    nori_model_free(m);
    nori_tensor_free(other);
    nori_tensor_free(x);
}

static void operator_sets(void **state)
{
    (void)state;
    nori_trace_options o = options_of(NULL, 0);
    nori_tensor *x = filled(NORI_FLOAT, 2, DIMS(2, 4), 7);
    nori_error err = {0};
    nori_model *m = NULL;
    nori_trace_report *r = NULL;
    const char *domain;
    int64_t version;
    o.opset = 21;
    assert_int_equal(run1(mlp, NULL, x, &o, &m, &r, &err), NORI_OK);
    assert_true(nori_model_opset(m, 0, &domain, &version) && version == 21);
    assert_non_null(noted(r, "operator set 21 was asked for, 13 has all that is used: fewer runtimes"));
    nori_model_free(m);
    nori_trace_report_free(r);
    o.opset = 29;
    assert_int_equal(run1(mlp, NULL, x, &o, &m, NULL, &err), NORI_ERROR_ARGUMENT);
    assert_null(m);
    nori_tensor_free(x);
}

/* ---- every layer, against what it is said to compute ---- */

static nori_status layers(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    const nori_window w = {.stride = {2, 1}, .pad = {1, 1, 1, 1}, .groups = 1};
    const nori_window p = {.kernel = {2, 2}, .stride = {1, 1}};
    nori_traced *c = nori_layer_conv2d(t, in[0], weight(t, "cw", 4, DIMS(6, 3, 3, 3), 3),
                                       weight(t, "cb", 1, DIMS(6), 4), &w);
    nori_tensor *ones = filled(NORI_FLOAT, 1, DIMS(6), 5);
    for (int i = 0; i < 6; i++) {
        ((float *)ones->data)[i] = 0.5f + (float)i;
    }
    c = nori_layer_batch_norm(t, c, weight(t, "bs", 1, DIMS(6), 6), weight(t, "bb", 1, DIMS(6), 7),
                              weight(t, "bm", 1, DIMS(6), 8), nori_traced_constant(t, "bv", ones), 1e-5f);
    nori_tensor_free(ones);
    c = nori_layer_binary(t, "Add", nori_layer_max_pool2d(t, c, &p), nori_layer_average_pool2d(t, c, &p));
    c = nori_layer_leaky_relu(t, c, 0.1f);
    nori_traced *g = nori_layer_flatten(t, nori_layer_global_average_pool(t, c), 1); /* [n, 6] */
    /* [n, 6] to [n, 3, 2], attention over it */
    nori_traced *q = nori_layer_reshape(t, g, DIMS(0, 3, 2), 3);
    q = nori_layer_attention(t, q, q, nori_layer_gelu(t, q), NULL, 2);
    q = nori_layer_layer_norm(t, q, weight(t, "ls", 1, DIMS(2), 9), weight(t, "lb", 1, DIMS(2), 10), 1e-5f);
    q = nori_layer_linear(t, q, weight(t, "lw", 2, DIMS(4, 2), 11), weight(t, "lwb", 1, DIMS(4), 12));
    q = nori_layer_transpose(t, q, DIMS(1, 0, 2), 3); /* steps first */
    q = nori_layer_lstm(t, q, weight(t, "ih", 2, DIMS(20, 4), 13), weight(t, "hh", 2, DIMS(20, 5), 14),
                        weight(t, "bih", 1, DIMS(20), 15), weight(t, "bhh", 1, DIMS(20), 16));
    q = nori_layer_slice(t, q, 0, -1, INT64_MAX);
    nori_traced *e = nori_layer_embedding(t, weight(t, "table", 2, DIMS(6, 5), 17), in[1]); /* [n, 5] */
    nori_traced *both[2] = {nori_layer_mean(t, q, 0), nori_layer_reshape(t, e, DIMS(1, -1, 5), 3)};
    out[0] = nori_layer_concat(t, both, 2, -1);
    nori_traced *sizes[2] = {nori_layer_size(t, in[0], 0), nori_traced_ints(t, DIMS(1), 1)};
    out[1] = nori_layer_binary(t, "Expand", nori_traced_float(t, 3), nori_layer_concat(t, sizes, 2, 0));
    char text[200];
    nori_traced_text(e, text, sizeof(text));
    assert_true(t == NULL || strstr(text, "Gather") || strstr(text, "no value"));
    return NORI_OK;
}

static void all_layers_go_through(void **state)
{
    (void)state;
    static const char *const in[] = {"image", "ids"}, *const out[] = {"y", "threes"};
    const nori_dynamic_axis axes[] = {{"image", 0, "n"}, {"ids", 0, "n"}, {"image", 2, NULL}};
    nori_trace_options o;
    nori_trace_options_default(&o);
    o.input_names = in;
    o.output_names = out;
    o.output_count = 2;
    o.dynamic_axes = axes;
    o.dynamic_axis_count = 3;
    nori_tensor *x = filled(NORI_FLOAT, 4, DIMS(2, 3, 8, 7), 7), *ids = filled(NORI_INT64, 1, DIMS(2), 8);
    nori_error err = {0};
    nori_trace_report *r = NULL;
    if (nori_trace(NULL, layers, NULL, (const nori_tensor *const[]){x, ids}, 2, &o, NULL, &r, &err) !=
        NORI_OK) {
        fail_msg("%s: %s (%s)", err.where, err.message, err.hint);
    }
    nori_trace_check c = {.size = sizeof(c)};
    assert_true(nori_trace_report_check(r, 2, &c));
    assert_string_equal(c.what, "n = 3");
    assert_true(nori_trace_report_check(r, 4, &c));
    assert_string_equal(c.what, "axis 2 of image = 9");
    nori_trace_report_free(r);
    nori_tensor_free(x);
    nori_tensor_free(ids);
}

/* y = sigmoid(o) tanh(c) by hand, for the order of the gates. */
static nori_status only_lstm(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    out[0] = nori_layer_lstm(t, in[0], weight(t, "ih", 2, DIMS(4, 1), 13), weight(t, "hh", 2, DIMS(4, 1), 14),
                             weight(t, "bih", 1, DIMS(4), 15), weight(t, "bhh", 1, DIMS(4), 16));
    const nori_tensor *y = nori_traced_read(out[0]), *x = nori_traced_read(in[0]);
    nori_tensor *w = filled(NORI_FLOAT, 2, DIMS(4, 1), 13), *b = filled(NORI_FLOAT, 1, DIMS(4), 15),
                *b2 = filled(NORI_FLOAT, 1, DIMS(4), 16);
    double g[4];
    for (int i = 0; i < 4; i++) {
        g[i] = nori_tensor_number(w, i) * nori_tensor_number(x, 0) + nori_tensor_number(b, i) +
               nori_tensor_number(b2, i);
    }
    double cell = 1 / (1 + exp(-g[0])) * tanh(g[2]);
    assert_true(y && fabs(nori_tensor_number(y, 0) - 1 / (1 + exp(-g[3])) * tanh(cell)) < 1e-5);
    nori_tensor_free(w);
    nori_tensor_free(b);
    nori_tensor_free(b2);
    return NORI_OK;
}

static void gates_are_those_of_pytorch(void **state)
{
    (void)state;
    nori_trace_options o = options_of(NULL, 0);
    nori_tensor *x = filled(NORI_FLOAT, 3, DIMS(2, 1, 1), 21);
    nori_error err = {0};
    if (run1(only_lstm, NULL, x, &o, NULL, NULL, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    nori_tensor_free(x);
}

/* ---- graphs as attributes ---- */

/* What nori_traced_read would freeze, the graph decides: here the first element of x. */
static nori_status chooses(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    nori_traced *h = nori_traced_name(nori_layer_unary(t, "Neg", in[0]), "before");
    nori_traced *first = nori_traced_op(t, "ReduceMax", in, 1, NULL, 0);
    nori_traced *c = nori_layer_binary(t, "Greater", nori_layer_reshape(t, first, NULL, 0),
                                       nori_traced_float(t, 0));
    nori_attr a[2] = {
        nori_attr_graph("then_branch", "th () => (float[] r) <float two = {2}> { r = Mul(before, two) }"),
        nori_attr_graph("else_branch", "el () => (float[] r) { b = Add(before, x)\n r = Add(b, x) }")};
    nori_traced_name(h, "after"); /* the graphs follow */
    out[0] = nori_traced_op(t, "If", &c, 1, a, 2);
    return NORI_OK;
}

static nori_status reads_nobody(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    nori_attr a[2] = {nori_attr_graph("then_branch", user), nori_attr_graph("else_branch", user)};
    nori_tensor *yes = filled(NORI_BOOL, 0, NULL, 1);
    nori_traced *c = nori_traced_constant(t, NULL, yes);
    (void)in;
    nori_tensor_free(yes);
    out[0] = nori_traced_op(t, "If", &c, 1, a, 2);
    return NORI_OK;
}

static void refuses(nori_trace_function f, void *user, nori_tensor *x, const nori_trace_options *o,
                    const char *what);

static void graphs_are_recorded(void **state)
{
    (void)state;
    const nori_dynamic_axis batch = {"x", 0, "batch"};
    nori_trace_options o = options_of(&batch, 1);
    nori_tensor *x = filled(NORI_FLOAT, 2, DIMS(2, 4), 7), *out[1] = {NULL};
    nori_error err = {0};
    nori_model *m = NULL;
    nori_session *s = NULL;
    if (run1(chooses, NULL, x, &o, &m, NULL, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    /* The other branch, too: the graph decides in each run. */
    float *p = nori_tensor_data(x);
    for (int i = 0; i < 8; i++) {
        p[i] = -1 - (float)i;
    }
    assert_int_equal(nori_session_create(m, NULL, &s, &err), NORI_OK);
    assert_int_equal(nori_session_run(s, (const nori_tensor *const[]){x}, 1, out, 1, &err), NORI_OK);
    for (int i = 0; i < 8; i++) {
        assert_true(nori_tensor_number(out[0], i) == (double)p[i]); /* -x + x + x */
    }
    nori_tensor_free(out[0]);
    nori_session_free(s);
    nori_model_free(m);
    o = options_of(NULL, 0);
    refuses(reads_nobody, "g () => (float[] r) { r = Neg(nobody) }", x, &o, "a graph reads \"nobody\"");
    refuses(reads_nobody, "g () => (float[] r) { r = Neg(x", x, &o, "line 1, column 32");
    refuses(reads_nobody, "g () => (float[] r) { r = Neg(x) } more", x, &o, "the end of the graph");
    nori_tensor_free(x);
}

/* ---- what is frozen ---- */

static nori_status decides(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    const nori_tensor *x = nori_traced_read(in[0]);
    out[0] = x && nori_tensor_number(x, 0) > 0 ? nori_layer_unary(t, "Relu", in[0])
                                               : nori_layer_unary(t, "Neg", in[0]);
    return NORI_OK;
}

/* A reshape by numbers: right for the example alone. */
static nori_status bakes(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    int64_t dims[2] = {nori_traced_dim(in[0], 0) * 2, -1};
    out[0] = nori_layer_reshape(t, in[0], dims, 2);
    return NORI_OK;
}

static void what_is_frozen_is_said(void **state)
{
    (void)state;
    const nori_dynamic_axis batch = {"x", 0, "batch"};
    nori_trace_options o = options_of(NULL, 0);
    nori_tensor *x = filled(NORI_FLOAT, 2, DIMS(2, 4), 7);
    nori_error err = {0};
    nori_model *m = NULL;
    nori_trace_report *r = NULL;
    assert_int_equal(run1(decides, NULL, x, &o, &m, &r, &err), NORI_OK);
    assert_non_null(noted(r, "the content of \"x\" was read by the function"));
    assert_non_null(noted(r, "frozen"));
    nori_model_free(m);
    nori_trace_report_free(r);

    o = options_of(&batch, 1);
    o.path = "/tmp/nori-trace-never.onnx";
    unlink(o.path);
    assert_int_not_equal(run1(bakes, NULL, x, &o, &m, &r, &err), NORI_OK);
    assert_null(m);
    assert_non_null(strstr(err.message, "is not what the function gave (batch = 3): "));
    assert_non_null(noted(r, "the size of axis 0 of \"x\" was read as a number (2)"));
    assert_int_not_equal(access(o.path, F_OK), 0);
    nori_trace_report_free(r);
    nori_tensor_free(x);
}

/* ---- what is refused ---- */

static void refuses(nori_trace_function f, void *user, nori_tensor *x, const nori_trace_options *o,
                    const char *what)
{
    nori_error err = {0};
    nori_model *m = NULL;
    nori_status s = run1(f, user, x, o, &m, NULL, &err);
    assert_null(m);
    if (s == NORI_OK || (!strstr(err.message, what) && !strstr(err.where, what))) {
        fail_msg("%s was expected, got %d: %s (%s)", what, s, err.message, err.where);
    }
}

static nori_status wrong_operator(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    out[0] = nori_layer_unary(t, user, in[0]);
    out[0] = nori_layer_unary(t, "Relu", out[0]); /* goes on, to no effect */
    return NORI_OK;
}

static nori_status wrong_attribute(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    nori_attr a = nori_attr_int("no_such_thing", 1);
    out[0] = nori_traced_op(t, "Relu", in, 1, &a, 1);
    return NORI_OK;
}

static nori_status wrong_weight(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    out[0] = nori_layer_linear(t, in[0], weight(t, "w", 2, DIMS(5, 3), 1), NULL);
    return NORI_OK;
}

/* What a program that does not look at what it gets might do. */
static nori_status careless(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    char text[8];
    assert_null(nori_traced_op(NULL, "Relu", in, 1, NULL, 0));
    assert_null(nori_layer_linear(NULL, in[0], NULL, NULL));
    assert_null(nori_layer_lstm(t, NULL, NULL, NULL, NULL, NULL)); /* and all fails from here */
    assert_null(nori_layer_attention(t, NULL, in[0], NULL, NULL, 0));
    assert_null(nori_traced_op(t, "Relu", NULL, 3, NULL, 2));
    assert_null(nori_traced_ints(t, NULL, 4));
    assert_null(nori_traced_weight(t, NULL, NULL));
    assert_null(nori_traced_constant(t, NULL, NULL));
    assert_null(nori_traced_name(NULL, "y"));
    assert_null(nori_traced_read(NULL));
    assert_int_equal(nori_traced_dim(NULL, 0), 0);
    nori_traced_text(NULL, text, sizeof(text));
    out[0] = nori_layer_concat(t, NULL, 0, 0);
    return NORI_OK;
}

static nori_status gives_nothing(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    (void)t;
    (void)in;
    (void)out;
    return NORI_OK;
}

static nori_status own_error(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    (void)in;
    (void)out;
    return nori_tracer_fail(t, NORI_ERROR_DATA, "of its own");
}

static nori_status same_twice(void *user, nori_tracer *t, nori_traced *const *in, nori_traced **out)
{
    (void)user;
    out[0] = in[0];
    out[1] = nori_traced_float(t, 2);
    out[2] = in[0];
    return NORI_OK;
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    nori_dynamic_axis axes[2] = {{"x", 0, "batch"}, {"x", 1, "batch"}};
    nori_trace_options o = options_of(axes, 1);
    nori_tensor *x = filled(NORI_FLOAT, 2, DIMS(2, 4), 7);
    nori_error err = {0};
    assert_int_equal(nori_trace(NULL, mlp, NULL, NULL, 0, &o, NULL, NULL, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "no example input"));
    refuses(NULL, NULL, x, &o, "a function to trace");
    refuses(mlp, NULL, NULL, &o, "example of input 0 is NULL");
    axes[0].input = "z";
    refuses(mlp, NULL, x, &o, "dynamic axis 0 of \"z\": there is no input of that name; there is \"x\"");
    axes[0].input = "x";
    axes[0].axis = 2;
    refuses(mlp, NULL, x, &o, "dynamic axis 2 of input \"x\": its example has rank 2");
    axes[0].axis = -1;
    refuses(mlp, NULL, x, &o, "dynamic axis -1");
    axes[0].axis = 1;
    o.dynamic_axis_count = 2;
    refuses(mlp, NULL, x, &o, "given twice");
    axes[0].axis = 0;
    refuses(mlp, NULL, x, &o, "one name is one size");
    o.dynamic_axis_count = 0;
    o.output_names = x_name;
    refuses(mlp, NULL, x, &o, "are called \"x\"");
    o.output_names = y_name;
    refuses(wrong_operator, "NoSuchOperator", x, &o, "operation 1 (NoSuchOperator)");
    refuses(wrong_operator, "", x, &o, "the name of an operator");
    refuses(wrong_attribute, NULL, x, &o, "no_such_thing");
    refuses(wrong_weight, NULL, x, &o, "operation 1 (Gemm)");
    refuses(gives_nothing, NULL, x, &o, "left output \"y\" (0) empty");
    refuses(own_error, NULL, x, &o, "of its own");
    refuses(careless, NULL, x, &o, "lstm: input is absent");
    o.path = "/nowhere/at/all.onnx";
    refuses(mlp, NULL, x, &o, "/nowhere");
    nori_tensor_free(x);
}

static void outputs_need_nodes(void **state)
{
    (void)state;
    static const char *const out[] = {"a", "b", "c"};
    nori_trace_options o = options_of(NULL, 0);
    nori_tensor *x = filled(NORI_FLOAT, 2, DIMS(2, 4), 7);
    nori_error err = {0};
    nori_model *m = NULL;
    o.output_names = out;
    o.output_count = 3;
    if (run1(same_twice, NULL, x, &o, &m, NULL, &err) != NORI_OK) {
        fail_msg("%s", err.message);
    }
    assert_int_equal(nori_model_output_count(m), 3);
    nori_model_free(m);
    nori_tensor_free(x);
}

/* ---- weights ---- */

static char path_of_weights[] = "/tmp/nori-weights-XXXXXX";

static nori_status open_bytes(const char *header, const void *data, size_t size, nori_weights **w,
                              nori_error *err)
{
    FILE *f = fopen(path_of_weights, "wb");
    uint64_t n = strlen(header), stored = n;
    assert_non_null(f);
    nori__order(NORI_UINT64, &stored, 8);
    assert_int_equal(fwrite(&stored, 1, 8, f), 8);
    assert_int_equal(fwrite(header, 1, n, f), n);
    assert_int_equal(fwrite(data, 1, size, f), size);
    fclose(f);
    *err = (nori_error){0};
    return nori_weights_open(NULL, path_of_weights, w, err);
}

static void safetensors_are_read(void **state)
{
    (void)state;
    float data[6] = {1, 2, 3, 4, 5, 6};
    nori__order(NORI_FLOAT, data, sizeof(data));
    static const char *const wrong[][2] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", "need 12"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[16,28]}}", "lies at bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[12,0]}}", "lies at bytes"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,8],\"data_offsets\":[0,8]}}",
         "larger than"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,8]}}", "too large"},
        {"{\"a\":{\"dtype\":\"Q4\",\"shape\":[3],\"data_offsets\":[0,12]}}", "the type \"Q4\""},
        {"{\"a\":{\"shape\":[3],\"data_offsets\":[0,12]}}", "without dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-3],\"data_offsets\":[0,12]}}", "a count"},
        {"{\"a\":{\"dtype\":\"F32\"", "expected"},
        {"{\"a", "without end"},
        {"{\"a\":[[[[", "'{' was expected"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", "two tensors"},
    };
    nori_weights *w = NULL;
    nori_tensor *t = NULL;
    nori_error err;
    close(mkstemp(path_of_weights));
    assert_int_equal(
        open_bytes("{\"__metadata__\":{\"format\":\"pt\"}, \"l\\u00e4yer.w\" : {\"dtype\":\"F32\","
                   "\"shape\":[2,2],"
                   "\"data_offsets\":[8,24]},"
                   "\"none\":{\"data_offsets\":[0,0],\"shape\":[0],\"dtype\":\"I64\"}}  ",
                   data, sizeof(data), &w, &err), NORI_OK);
    assert_int_equal(nori_weights_count(w), 2);
    assert_string_equal(nori_weights_name(w, 0), "l\xc3\xa4yer.w");
    assert_int_equal(nori_weights_tensor(w, "l\xc3\xa4yer.w", &t, &err), NORI_OK);
    nori_weights_free(w);
    assert_int_equal(nori_tensor_rank(t), 2);
    assert_true(nori_tensor_number(t, 0) == 3 && nori_tensor_number(t, 3) == 6);
    nori_tensor_free(t);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        w = NULL;
        assert_int_not_equal(open_bytes(wrong[i][0], data, sizeof(data), &w, &err), NORI_OK);
        assert_null(w);
        if (!strstr(err.message, wrong[i][1])) {
            fail_msg("%s\nsaid: %s", wrong[i][0], err.message);
        }
    }
    /* The other kinds, and what is none. */
    const char *name = "a";
    nori_tensor *a = filled(NORI_FLOAT, 1, DIMS(3), 1);
    assert_int_equal(nori_archive_write(path_of_weights, &name, (const nori_tensor *const[]){a}, 1, &err),
                     NORI_OK);
    assert_int_equal(nori_weights_open(NULL, path_of_weights, &w, &err), NORI_OK);
    assert_true(nori_weights_has(w, "a") && !nori_weights_has(w, "b"));
    err = (nori_error){0};
    assert_int_equal(nori_weights_tensor(w, "b", &t, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "no tensor \"b\""));
    nori_weights_free(w);
    nori_tensor_free(a);
    err = (nori_error){0};
    assert_int_equal(nori_weights_open(NULL, NORI_EXAMPLES_DIR "/digits/digits.onnx", &w, &err), NORI_OK);
    assert_true(nori_weights_has(w, "head.weight"));
    nori_weights_free(w);
    assert_int_not_equal(nori_weights_open(NULL, NORI_EXAMPLES_DIR "/digits/labels.txt", &w, &err), NORI_OK);
    unlink(path_of_weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_made),        cmocka_unit_test(operator_sets),
        cmocka_unit_test(all_layers_go_through),  cmocka_unit_test(gates_are_those_of_pytorch),
        cmocka_unit_test(what_is_frozen_is_said), cmocka_unit_test(mistakes_are_refused),
        cmocka_unit_test(outputs_need_nodes),     cmocka_unit_test(safetensors_are_read),
        cmocka_unit_test(graphs_are_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
