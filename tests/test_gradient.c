/* test_gradient.c: Gradient against central differences, operator by operator: y is the square of what
 * the operator gives, so that derivatives differ from element to element. With sizes known when
 * compiling and with sizes only the run tells, at every level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "make_model.h"
#include "nori/nori.h"
#include "graph/tensor.h"

enum { MOST = 3 };

typedef struct trial {
    const char *op, *shapes[MOST]; /* NULL: no such input */
    double low, high;              /* range of the inputs */
    void (*attributes)(make *m, nori__pb_node *n);
    const int64_t *ints;           /* a last input of the operator, constant */
    size_t n_ints;
    int64_t opset;                 /* 0: 18 */
    bool fixed;                    /* sizes must be known */
} trial;

static void strings(make *m, nori__pb_node *n, const char *name, const char *names)
{
    nori__pb_attr *a = make_attr(m, n, name, NORI__ATTR_STRINGS);
    MAKE_NAMES(m, a->strings, names)
}

/* "2 3" with every size open: "? ?". */
static void open_shape(const char *shape, char *out)
{
    for (; *shape; shape++) {
        if (*shape == ' ') {
            *out++ = ' ';
        } else if (out[-1] != '?') {
            *out++ = '?';
        }
    }
    *out = 0;
}

static nori_session *compiled(make *m, const char *providers, int level, nori_error *err)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options options;
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m->model, &bytes, err), NORI_OK);
    char *kept = nori__arena_copy(&m->arena, bytes.data, bytes.size);
    nori_session_options_default(&options);
    options.providers = providers;
    options.level = level;
    if (nori_model_load_memory(NULL, kept, bytes.size, NULL, NULL, &model, err) == NORI_OK) {
        nori_session_create(model, &options, &session, err);
    }
    nori_model_free(model);
    nori__text_free(&bytes);
    return session;
}

static nori_session *must_compile(make *m, const char *providers, int level)
{
    nori_error err = {0};
    nori_session *s = compiled(m, providers, level, &err);
    if (!s) {
        fail_msg("%s: %s", err.where, err.message);
    }
    return s;
}

/* Outputs y and the derivatives d0, d1 ... by the inputs i0, i1 ... */
static void build(make *m, const trial *t, bool open)
{
    char in[64] = "", out[64] = "";
    make_begin(m, t->opset ? t->opset : 18);
    make_import(m, "ai.onnx.preview.training", 1);
    make_output(m, &m->graph, "y", NORI_DOUBLE, NULL);
    for (int i = 0; i < MOST && t->shapes[i]; i++) {
        char name[8], shape[65] = " ";
        snprintf(name, sizeof(name), "i%d", i);
        open_shape(t->shapes[i], shape + 1);
        make_input(m, &m->graph, name, NORI_DOUBLE, open ? shape + 1 : t->shapes[i]);
        snprintf(in + strlen(in), sizeof(in) - strlen(in), "%s%s", i ? " " : "", name);
        snprintf(out + strlen(out), sizeof(out) - strlen(out), "%sd%d", i ? " " : "", i);
        snprintf(name, sizeof(name), "d%d", i);
        make_output(m, &m->graph, name, NORI_DOUBLE, NULL);
    }
    char all[80];
    snprintf(all, sizeof(all), "%s%s", in, t->ints ? " ints" : "");
    if (t->ints) {
        make_ints(m, &m->graph, "ints", t->n_ints, t->ints);
    }
    nori__pb_node *n = make_node(m, &m->graph, "", t->op, "tried", all, "f");
    if (t->attributes) {
        t->attributes(m, n);
    }
    make_node(m, &m->graph, "", "Mul", "square", "f f", "y");
    n = make_node(m, &m->graph, "ai.onnx.preview.training", "Gradient", "gradient", in, out);
    strings(m, n, "xs", in);
    make_attr_text(m, n, "y", "y");
}

static nori_tensor *random_tensor(const char *shape, double low, double high, uint32_t *seed)
{
    int64_t dims[NORI_MAX_RANK];
    int rank = 0;
    nori_tensor *t = NULL;
    while (*shape) {
        char *end;
        dims[rank++] = strtoll(shape, &end, 10);
        shape = *end == ' ' ? end + 1 : end;
    }
    assert_int_equal(nori_tensor_create(NULL, NORI_DOUBLE, rank, dims, &t, NULL), NORI_OK);
    for (int64_t i = 0; i < t->count; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        ((double *)t->data)[i] = low + (high - low) * (*seed >> 8) / 16777216.0;
    }
    return t;
}

static void run(nori_session *s, nori_tensor *const *in, size_t n, nori_tensor **out)
{
    nori_error err = {0};
    size_t n_out = nori_session_output_count(s);
    if (nori_session_run(s, (const nori_tensor *const *)in, n, out, n_out, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
}

static double sum_of_y(nori_session *s, nori_tensor *const *in, size_t n)
{
    nori_tensor *out[1 + MOST] = {NULL};
    double sum = 0;
    run(s, in, n, out);
    for (int64_t i = 0; i < out[0]->count; i++) {
        sum += ((const double *)out[0]->data)[i];
    }
    for (size_t i = 0; i < 1 + MOST; i++) {
        nori_tensor_free(out[i]);
    }
    return sum;
}

static void compare(const char *what, nori_session *s, nori_tensor *const *in, size_t n)
{
    nori_tensor *out[1 + MOST] = {NULL};
    const double step = 1e-5;
    run(s, in, n, out);
    for (size_t i = 0; i < n; i++) {
        double *x = in[i]->data;
        const double *got = out[1 + i]->data;
        assert_int_equal(out[1 + i]->rank, in[i]->rank);
        assert_int_equal(out[1 + i]->count, in[i]->count);
        for (int64_t k = 0; k < in[i]->count; k++) {
            double kept = x[k];
            x[k] = kept + step;
            double above = sum_of_y(s, in, n);
            x[k] = kept - step;
            double slope = (above - sum_of_y(s, in, n)) / (2 * step);
            x[k] = kept;
            if (!(fabs(got[k] - slope) <= 1e-6 * (1 + fabs(slope)))) {
                fail_msg("%s: by element %d of input %d: %.9g, differences say %.9g", what, (int)k,
                         (int)i, got[k], slope);
            }
        }
    }
    for (size_t i = 0; i < 1 + MOST; i++) {
        nori_tensor_free(out[i]);
    }
}

static void try_one(const trial *t)
{
    uint32_t seed = 1;
    nori_tensor *in[MOST] = {NULL};
    size_t n = 0;
    for (; n < MOST && t->shapes[n]; n++) {
        in[n] = random_tensor(t->shapes[n], t->low, t->high, &seed);
    }
    for (int open = 0; open < (t->fixed ? 1 : 2); open++) {
        make m;
        build(&m, t, open);
        for (int level = 0; level < 3; level++) {
            nori_session *s = must_compile(&m, level == 2 ? "cpu" : "reference", level);
            compare(t->op, s, in, n);
            nori_session_free(s);
        }
        make_end(&m);
    }
    for (size_t i = 0; i < n; i++) {
        nori_tensor_free(in[i]);
    }
}

static void elementwise(void **state)
{
    static const char *const one[] = {"Abs", "Neg", "Exp", "Sigmoid", "Tanh", "Softplus", "Sin", "Cos",
                                      "Erf", "Relu", "LeakyRelu", "Identity"};
    static const char *const positive[] = {"Log", "Sqrt", "Reciprocal"};
    static const char *const two[] = {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min"};
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(one); i++) {
        try_one(&(trial){.op = one[i], .shapes = {"2 3"}, .low = -2, .high = 2});
    }
    for (size_t i = 0; i < NORI__COUNT(positive); i++) {
        try_one(&(trial){.op = positive[i], .shapes = {"2 3"}, .low = 0.5, .high = 2});
    }
    for (size_t i = 0; i < NORI__COUNT(two); i++) { /* alike, broadcast in front, within, both ways */
        try_one(&(trial){.op = two[i], .shapes = {"2 3", "2 3"}, .low = 0.5, .high = 2});
        try_one(&(trial){.op = two[i], .shapes = {"2 3", "3"}, .low = 0.5, .high = 2});
        try_one(&(trial){.op = two[i], .shapes = {"", "2 1"}, .low = 0.5, .high = 2});
        try_one(&(trial){.op = two[i], .shapes = {"2 1 3", "4 1"}, .low = 0.5, .high = 2});
    }
    try_one(&(trial){.op = "Sum", .shapes = {"2 3", "3", ""}, .low = -2, .high = 2});
}

static void ints_axis_1(make *m, nori__pb_node *n)
{
    make_attr_int(m, n, "axis", 1);
}
static void perm_201(make *m, nori__pb_node *n)
{
    make_attr_ints(m, n, "perm", 3, (int64_t[]){2, 0, 1});
}
static void no_keepdims(make *m, nori__pb_node *n)
{
    make_attr_int(m, n, "keepdims", 0);
}

static void shapes(void **state)
{
    (void)state;
    try_one(&(trial){.op = "Reshape", .shapes = {"2 3"}, .low = -2, .high = 2,
                     .ints = (int64_t[]){3, -1}, .n_ints = 2});
    try_one(&(trial){.op = "Flatten", .shapes = {"2 3 2"}, .low = -2, .high = 2});
    try_one(&(trial){.op = "Unsqueeze", .shapes = {"2 3"}, .low = -2, .high = 2,
                     .ints = (int64_t[]){1}, .n_ints = 1});
    try_one(&(trial){.op = "Squeeze", .shapes = {"2 1 3"}, .low = -2, .high = 2,
                     .ints = (int64_t[]){1}, .n_ints = 1});
    try_one(&(trial){.op = "Expand", .shapes = {"2 1"}, .low = -2, .high = 2,
                     .ints = (int64_t[]){2, 2, 3}, .n_ints = 3});
    try_one(&(trial){.op = "Transpose", .shapes = {"2 3 4"}, .low = -2, .high = 2});
    try_one(&(trial){.op = "Transpose", .shapes = {"2 3 4"}, .low = -2, .high = 2,
                     .attributes = perm_201});
    try_one(&(trial){.op = "Concat", .shapes = {"2 3", "2 1", "2 2"}, .low = -2, .high = 2,
                     .attributes = ints_axis_1});
}

static void reductions(void **state)
{
    static const char *const sums[] = {"ReduceSum", "ReduceMean"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        try_one(&(trial){.op = sums[i], .shapes = {"2 3 2"}, .low = -2, .high = 2});
        try_one(&(trial){.op = sums[i], .shapes = {"2 3 2"}, .low = -2, .high = 2,
                         .attributes = no_keepdims});
        try_one(&(trial){.op = sums[i], .shapes = {"2 3 2"}, .low = -2, .high = 2,
                         .ints = (int64_t[]){0, -1}, .n_ints = 2});
        try_one(&(trial){.op = sums[i], .shapes = {"2 3 2"}, .low = -2, .high = 2,
                         .ints = (int64_t[]){1}, .n_ints = 1, .attributes = no_keepdims});
    }
    try_one(&(trial){.op = "GlobalAveragePool", .shapes = {"2 3 2 2"}, .low = -2, .high = 2});
    for (int64_t opset = 11; opset <= 13; opset += 2) { /* before 13 over all later axes */
        try_one(&(trial){.op = "Softmax", .shapes = {"2 3 2"}, .low = -2, .high = 2, .opset = opset});
        try_one(&(trial){.op = "LogSoftmax", .shapes = {"2 3 2"}, .low = -2, .high = 2,
                         .opset = opset, .attributes = ints_axis_1});
    }
}

static void turned(make *m, nori__pb_node *n)
{
    make_attr_int(m, n, "transA", 1);
    make_attr_int(m, n, "transB", 1);
    make_attr(m, n, "alpha", NORI__ATTR_FLOAT)->f = 0.5f;
    make_attr(m, n, "beta", NORI__ATTR_FLOAT)->f = 2;
}
static void turned_b(make *m, nori__pb_node *n)
{
    make_attr_int(m, n, "transB", 1);
}

static void products(void **state)
{
    (void)state;
    try_one(&(trial){.op = "MatMul", .shapes = {"2 3", "3 4"}, .low = -1, .high = 1});
    try_one(&(trial){.op = "MatMul", .shapes = {"2 2 3", "3 4"}, .low = -1, .high = 1});
    try_one(&(trial){.op = "MatMul", .shapes = {"2 3", "2 3 4"}, .low = -1, .high = 1});
    try_one(&(trial){.op = "MatMul", .shapes = {"2 1 2 3", "3 3 2"}, .low = -1, .high = 1,
                     .fixed = true});
    try_one(&(trial){.op = "MatMul", .shapes = {"3", "3"}, .low = -1, .high = 1});
    try_one(&(trial){.op = "MatMul", .shapes = {"3", "2 3 2"}, .low = -1, .high = 1});
    try_one(&(trial){.op = "MatMul", .shapes = {"2 2 3", "3"}, .low = -1, .high = 1});
    try_one(&(trial){.op = "Gemm", .shapes = {"2 3", "3 4", "4"}, .low = -1, .high = 1});
    try_one(&(trial){.op = "Gemm", .shapes = {"2 3", "4 3"}, .low = -1, .high = 1,
                     .attributes = turned_b});
    try_one(&(trial){.op = "Gemm", .shapes = {"3 2", "4 3", "2 1"}, .low = -1, .high = 1,
                     .attributes = turned});
}

static void spread(make *m, nori__pb_node *n)
{
    make_attr_ints(m, n, "strides", 2, (int64_t[]){2, 3});
    make_attr_ints(m, n, "pads", 4, (int64_t[]){1, 0, 2, 1});
    make_attr_ints(m, n, "dilations", 2, (int64_t[]){1, 2});
    make_attr_int(m, n, "group", 2);
}
static void same_upper(make *m, nori__pb_node *n)
{
    make_attr_text(m, n, "auto_pad", "SAME_UPPER");
    make_attr_ints(m, n, "strides", 2, (int64_t[]){2, 2});
}

static void convolutions(void **state)
{
    (void)state;
    try_one(&(trial){.op = "Conv", .shapes = {"2 3 5 4", "2 3 3 2", "2"}, .low = -1, .high = 1,
                     .fixed = true});
    try_one(&(trial){.op = "Conv", .shapes = {"2 4 6 7", "6 2 3 2"}, .low = -1, .high = 1,
                     .attributes = spread, .fixed = true});
    try_one(&(trial){.op = "Conv", .shapes = {"1 2 5 5", "3 2 3 3"}, .low = -1, .high = 1,
                     .attributes = same_upper, .fixed = true});
    try_one(&(trial){.op = "Conv", .shapes = {"2 2 7", "3 2 3"}, .low = -1, .high = 1, .fixed = true});
}

/* ---- what the operator itself promises ---- */

static nori_tensor *vector(double a, double b)
{
    nori_tensor *t = NULL;
    assert_int_equal(nori_tensor_create(NULL, NORI_DOUBLE, 1, (int64_t[]){2}, &t, NULL), NORI_OK);
    ((double *)t->data)[0] = a;
    ((double *)t->data)[1] = b;
    return t;
}

static void expect(nori_tensor *t, double a, double b)
{
    const double *v = t->data;
    if (fabs(v[0] - a) > 1e-9 || fabs(v[1] - b) > 1e-9) {
        fail_msg("got %g, %g, expected %g, %g", v[0], v[1], a, b);
    }
    nori_tensor_free(t);
}

/* y = a a b, differentiated at other values than a and b: the inputs take their places. The nodes are
 * in the form of opset 6, and y comes after the Gradient. */
static void at_other_values(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 6);
    make_import(&m, "ai.onnx.preview.training", 1);
    static const char *const names[] = {"a", "b", "p", "q"};
    for (int i = 0; i < 4; i++) {
        make_input(&m, &m.graph, names[i], NORI_DOUBLE, "2");
    }
    nori__pb_node *n = make_node(&m, &m.graph, "ai.onnx.preview.training", "Gradient", "g", "p q",
                                 "dp dq");
    strings(&m, n, "xs", "a b");
    make_attr_text(&m, n, "y", "y");
    n = make_node(&m, &m.graph, "", "Mul", "", "a a", "s");
    make_attr_int(&m, n, "broadcast", 1);
    make_attr_int(&m, n, "axis", 0);
    n = make_node(&m, &m.graph, "", "Mul", "", "s b", "y");
    make_attr_int(&m, n, "broadcast", 1);
    make_output(&m, &m.graph, "y", NORI_DOUBLE, NULL);
    make_output(&m, &m.graph, "dp", NORI_DOUBLE, NULL);
    make_output(&m, &m.graph, "dq", NORI_DOUBLE, NULL);
    nori_session *s = must_compile(&m, "reference", 1);
    nori_tensor *in[4] = {vector(1, 2), vector(3, 4), vector(5, 6), vector(7, 8)};
    nori_tensor *out[3] = {NULL};
    run(s, in, 4, out);
    expect(out[0], 3, 16);
    expect(out[1], 2 * 5 * 7, 2 * 6 * 8);
    expect(out[2], 25, 36);
    for (int i = 0; i < 4; i++) {
        nori_tensor_free(in[i]);
    }
    nori_session_free(s);
    make_end(&m);
}

/* y = a^3: its derivative 3 a^2, and of that 6 a; zs are held; what y does not depend on gives 0. */
static void of_a_derivative(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_import(&m, "ai.onnx.preview.training", 1);
    make_input(&m, &m.graph, "a", NORI_DOUBLE, "2");
    make_input(&m, &m.graph, "b", NORI_DOUBLE, "2");
    make_node(&m, &m.graph, "", "Mul", "", "a a", "s");
    make_node(&m, &m.graph, "", "Mul", "", "s a", "y");
    nori__pb_node *n =
        make_node(&m, &m.graph, "ai.onnx.preview.training", "Gradient", "g", "a", "d");
    strings(&m, n, "xs", "a");
    make_attr_text(&m, n, "y", "y");
    n = make_node(&m, &m.graph, "ai.onnx.preview.training", "Gradient", "h", "a b", "e zero");
    strings(&m, n, "xs", "a b");
    make_attr_text(&m, n, "y", "d");
    n = make_node(&m, &m.graph, "ai.onnx.preview.training", "Gradient", "k", "a s", "held");
    strings(&m, n, "xs", "a");
    strings(&m, n, "zs", "s");
    make_attr_text(&m, n, "y", "y");
    const char *outputs[] = {"d", "e", "zero", "held"};
    for (int i = 0; i < 4; i++) {
        make_output(&m, &m.graph, outputs[i], NORI_DOUBLE, NULL);
    }
    nori_session *s = must_compile(&m, "cpu", 2);
    nori_tensor *in[2] = {vector(2, -3), vector(1, 1)}, *out[4] = {NULL};
    run(s, in, 2, out);
    expect(out[0], 12, 27);
    expect(out[1], 12, -18);
    expect(out[2], 0, 0);
    expect(out[3], 4, 9);
    nori_tensor_free(in[0]);
    nori_tensor_free(in[1]);
    nori_session_free(s);
    make_end(&m);
}

static void refused(const char *op, const char *xs, const char *y, const char *says)
{
    make m;
    nori_error err = {0};
    make_begin(&m, 13);
    make_import(&m, "ai.onnx.preview.training", 1);
    make_input(&m, &m.graph, "a", NORI_DOUBLE, "2");
    make_node(&m, &m.graph, "", op, "tried", "a", "y");
    nori__pb_node *n =
        make_node(&m, &m.graph, "ai.onnx.preview.training", "Gradient", "g", "a", "d");
    strings(&m, n, "xs", xs);
    if (y) {
        make_attr_text(&m, n, "y", y);
    }
    make_output(&m, &m.graph, "d", NORI_DOUBLE, NULL);
    nori_session *s = compiled(&m, "reference", 1, &err);
    if (s) {
        fail_msg("Gradient of %s by %s compiles", op, xs);
    }
    if (!strstr(err.message, says)) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    }
    make_end(&m);
}

static void what_cannot_be_done_is_said(void **state)
{
    (void)state;
    refused("Floor", "a", "y", "no derivative of node tried (Floor)");
    refused("Neg", "a", "nothing", "'nothing'");
    refused("Neg", "nothing", "y", "'nothing'");
    refused("Neg", "a y", "y", "1 inputs");
    refused("Neg", "a", NULL, "attribute y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise),     cmocka_unit_test(shapes),
        cmocka_unit_test(reductions),      cmocka_unit_test(products),
        cmocka_unit_test(convolutions),    cmocka_unit_test(at_other_values),
        cmocka_unit_test(of_a_derivative), cmocka_unit_test(what_cannot_be_done_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
