/* test_special.c: NaN, signed zeros, infinities and ties through whole sessions, on both providers and,
 * run with NORI_CPU=base too, on every level. NaN wins, as in NumPy: the largest, smallest or clipped
 * of anything with it is NaN, TopK takes it for the largest, ArgMax and ArgMin find the first one. It
 * stands at the first, a middle and the last place, and where vectors end and the rest begins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "graph/tensor.h"
#include "make_model.h"
#include "nori/nori.h"

enum { N = 77 }; /* not a multiple of any vector */

static const char *const providers[] = {"reference", "cpu"};
static const int places[] = {0, 1, 7, 8, 38, 63, 64, 71, 72, N - 1};

static nori_session *session_of(make *m, const char *provider)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options options;
    nori_error err = {0};
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m->model, &bytes, &err), NORI_OK);
    char *kept = nori__arena_copy(&m->arena, bytes.data, bytes.size);
    nori_session_options_default(&options);
    options.providers = provider;
    if (nori_model_load_memory(NULL, kept, bytes.size, NULL, NULL, &model, &err) != NORI_OK ||
        nori_session_create(model, &options, &session, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    nori_model_free(model);
    nori__text_free(&bytes);
    return session;
}

typedef struct result {
    float v[4 * N];
    int64_t index[4 * N];
    int64_t count;
} result;

/* One node on float inputs a (and b), its outputs y (and i, of integers; index: y itself is one). */
typedef struct node {
    const char *op, *shape, *inputs, *outputs;
    void (*more)(make *m, nori__pb_node *n);
    bool index;
} node;

static void run(const node *n, const char *provider, const float *a, const float *b, result *r)
{
    make m;
    nori_error err = {0};
    make_begin(&m, 18);
    make_input(&m, &m.graph, "a", NORI_FLOAT, n->shape);
    make_input(&m, &m.graph, "b", NORI_FLOAT, n->shape);
    nori__pb_node *made = make_node(&m, &m.graph, "", n->op, "node", n->inputs, n->outputs);
    if (n->more) {
        n->more(&m, made);
    }
    bool two = strchr(n->outputs, ' ') != NULL;
    make_output(&m, &m.graph, "y", n->index ? NORI_INT64 : NORI_FLOAT, NULL);
    if (two) {
        make_output(&m, &m.graph, "i", NORI_INT64, NULL);
    }
    nori_session *s = session_of(&m, provider);
    nori_tensor *in[2] = {NULL, NULL}, *out[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        const nori_value_info *info = nori_session_input(s, (size_t)i);
        assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, info->rank, info->dims, &in[i], &err),
                         NORI_OK);
        memcpy(in[i]->data, i ? b : a, in[i]->bytes);
    }
    if (nori_session_run(s, (const nori_tensor *const *)in, 2, out, two ? 2 : 1, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    r->count = out[0]->count;
    assert_true(r->count <= 4 * N);
    memcpy(n->index ? (void *)r->index : (void *)r->v, out[0]->data, out[0]->bytes);
    if (two) {
        memcpy(r->index, out[1]->data, out[1]->bytes);
    }
    for (int i = 0; i < 2; i++) {
        nori_tensor_free(in[i]);
        nori_tensor_free(out[i]);
    }
    nori_session_free(s);
    make_end(&m);
}

static void same(const char *what, const char *provider, int place, int64_t at, float got, float want)
{
    bool equal = isnan(want) ? isnan(got) != 0 : got == want && signbit(got) == signbit(want);
    if (!equal) {
        fail_msg("%s on %s, NaN at %d: element %lld is %g, expected %g", what, provider, place,
                 (long long)at, (double)got, (double)want);
    }
}

static void fill(float *v, float scale)
{
    for (int i = 0; i < N; i++) {
        v[i] = scale * (float)((i * 29 + 11) % 61 - 30);
    }
}

/* What NumPy gives for two numbers. */
static float larger(float a, float b)
{
    return isnan(a) || a > b ? a : isnan(b) ? b : a == b && signbit(a) ? b : a < b ? b : a;
}
static float smaller(float a, float b)
{
    return -larger(-a, -b);
}

/* ---- element by element ---- */

static void max_and_min(void **state)
{
    (void)state;
    float a[N], b[N];
    result r;
    for (size_t k = 0; k < NORI__COUNT(places); k++) {
        for (int p = 0; p < 4; p++) { /* NaN in the first, then in the second input */
            fill(a, 1);
            fill(b, -0.5f);
            (p < 2 ? a : b)[places[k]] = NAN;
            (p < 2 ? b : a)[(places[k] + 5) % N] = INFINITY;
            (p < 2 ? b : a)[(places[k] + 6) % N] = -INFINITY;
            run(&(node){"Max", "77", "a b", "y", NULL, false}, providers[p % 2], a, b, &r);
            for (int i = 0; i < N; i++) {
                same("Max", providers[p % 2], places[k], i, r.v[i] + 0, larger(a[i], b[i]) + 0);
            }
            run(&(node){"Min", "77", "a b", "y", NULL, false}, providers[p % 2], a, b, &r);
            for (int i = 0; i < N; i++) {
                same("Min", providers[p % 2], places[k], i, r.v[i] + 0, smaller(a[i], b[i]) + 0);
            }
        }
    }
}

static void bounds(make *m, nori__pb_node *n)
{
    for (int i = 0; i < 2; i++) {
        nori__pb_tensor *t = MAKE_ADD(m, m->graph.initializers);
        t->name = make_str(m, i ? "high" : "low");
        t->data_type = NORI_FLOAT;
        *MAKE_ADD(m, t->floats) = i ? 9.5f : -7.25f;
    }
    (void)n;
}

static void relu_and_clip(void **state)
{
    (void)state;
    float a[N];
    result r;
    for (size_t k = 0; k < NORI__COUNT(places); k++) {
        for (int p = 0; p < 2; p++) {
            fill(a, 1);
            a[places[k]] = NAN;
            a[(places[k] + 3) % N] = INFINITY;
            a[(places[k] + 4) % N] = -INFINITY;
            run(&(node){"Relu", "77", "a", "y", NULL, false}, providers[p], a, a, &r);
            for (int i = 0; i < N; i++) {
                same("Relu", providers[p], places[k], i, r.v[i] + 0, larger(a[i], 0) + 0);
            }
            run(&(node){"Clip", "77", "a low high", "y", bounds, false}, providers[p], a, a, &r);
            for (int i = 0; i < N; i++) {
                same("Clip", providers[p], places[k], i, r.v[i], smaller(larger(a[i], -7.25f), 9.5f));
            }
        }
    }
}

/* ---- the largest of many ---- */

static void last_axis(make *m, nori__pb_node *n)
{
    make_ints(m, &m->graph, "axes", 1, (int64_t[]){-1});
    (void)n;
}
static void axis_1(make *m, nori__pb_node *n)
{
    make_attr_int(m, n, "axis", -1);
    make_attr_int(m, n, "keepdims", 0);
}
static void three(make *m, nori__pb_node *n)
{
    make_ints(m, &m->graph, "k", 1, (int64_t[]){3});
    (void)n;
}
static void three_smallest(make *m, nori__pb_node *n)
{
    three(m, n);
    make_attr_int(m, n, "largest", 0);
}

static void reductions(void **state)
{
    static const char *const ops[] = {"ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean",
                                      "ReduceProd", "ReduceL1", "ReduceL2"};
    (void)state;
    float a[N];
    result r;
    for (size_t k = 0; k < NORI__COUNT(places); k++) {
        for (size_t o = 0; o < 2 * NORI__COUNT(ops); o++) {
            fill(a, 1);
            a[places[k]] = NAN;
            run(&(node){ops[o / 2], "1 77", "a axes", "y", last_axis, false}, providers[o % 2], a, a,
                &r);
            assert_int_equal(r.count, 1);
            same(ops[o / 2], providers[o % 2], places[k], 0, r.v[0], NAN);
        }
    }
    for (size_t o = 0; o < 4; o++) { /* without NaN: infinities */
        fill(a, 1);
        a[40] = o / 2 ? -INFINITY : INFINITY;
        run(&(node){ops[o / 2], "1 77", "a axes", "y", last_axis, false}, providers[o % 2], a, a, &r);
        same(ops[o / 2], providers[o % 2], -1, 0, r.v[0], a[40]);
    }
}

static void arg_max(void **state)
{
    (void)state;
    float a[N];
    result r;
    for (size_t k = 0; k < NORI__COUNT(places); k++) {
        for (int p = 0; p < 4; p++) {
            const char *op = p < 2 ? "ArgMax" : "ArgMin";
            fill(a, 1);
            a[places[k]] = NAN;
            a[N - 1] = NAN; /* a later one does not count */
            run(&(node){op, "1 77", "a", "y", axis_1, true}, providers[p % 2], a, a, &r);
            if (r.index[0] != places[k]) {
                fail_msg("%s on %s: %d, expected %d", op, providers[p % 2], (int)r.index[0], places[k]);
            }
        }
    }
    for (int p = 0; p < 2; p++) { /* ties: the first */
        fill(a, 0);
        run(&(node){"ArgMax", "1 77", "a", "y", axis_1, true}, providers[p], a, a, &r);
        assert_int_equal(r.index[0], 0);
    }
}

static void top_k(void **state)
{
    (void)state;
    float a[N];
    result r;
    for (size_t k = 0; k < NORI__COUNT(places); k++) {
        for (int p = 0; p < 2; p++) {
            fill(a, 1);
            a[places[k]] = NAN;
            run(&(node){"TopK", "1 77", "a k", "y i", three, false}, providers[p], a, a, &r);
            assert_int_equal(r.count, 3);
            same("TopK", providers[p], places[k], 0, r.v[0], NAN);
            assert_int_equal(r.index[0], places[k]);
            same("TopK", providers[p], places[k], 1, r.v[1], a[r.index[1]]);
            run(&(node){"TopK", "1 77", "a k", "y i", three_smallest, false}, providers[p], a, a, &r);
            assert_false(isnan(r.v[0]) || isnan(r.v[1]) || isnan(r.v[2]));
            assert_true(r.v[0] <= r.v[1] && r.v[1] <= r.v[2]);
        }
    }
    for (int p = 0; p < 2; p++) { /* ties: in their order */
        fill(a, 0);
        run(&(node){"TopK", "1 77", "a k", "y i", three, false}, providers[p], a, a, &r);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(r.index[i], i);
        }
    }
}

static void window(make *m, nori__pb_node *n)
{
    make_attr_ints(m, n, "kernel_shape", 2, (int64_t[]){1, 3});
}
static void window_stride(make *m, nori__pb_node *n)
{
    window(m, n);
    make_attr_ints(m, n, "strides", 2, (int64_t[]){1, 2});
    make_attr_ints(m, n, "pads", 4, (int64_t[]){0, 1, 0, 1});
}

static void max_pool(void **state)
{
    (void)state;
    float a[N];
    result r;
    for (size_t k = 0; k < NORI__COUNT(places); k++) {
        for (int p = 0; p < 4; p++) {
            int stride = p < 2 ? 1 : 2, pad = p < 2 ? 0 : 1;
            fill(a, 1);
            a[places[k]] = NAN;
            a[(places[k] + 9) % N] = -INFINITY;
            run(&(node){"MaxPool", "1 1 1 77", "a", "y", p < 2 ? window : window_stride, false},
                providers[p % 2], a, a, &r);
            for (int64_t o = 0; o < r.count; o++) {
                float want = -INFINITY;
                for (int64_t i = o * stride - pad; i < o * stride - pad + 3; i++) {
                    want = i >= 0 && i < N ? larger(want, a[i]) : want;
                }
                same("MaxPool", providers[p % 2], places[k], o, r.v[o], want);
            }
        }
    }
}

/* ---- signed zeros and infinities in arithmetic ---- */

static void arithmetic(void **state)
{
    static const float a[8] = {-0.0f, 0.0f, 1, -1, INFINITY, -INFINITY, 3e38f, INFINITY};
    static const float b[8] = {-0.0f, -0.0f, 0, 0, -INFINITY, 2, 3e38f, 0};
    static const struct {
        const char *op;
        float want[8];
    } cases[] = {
        {"Add", {-0.0f, 0, 1, -1, NAN, -INFINITY, INFINITY, INFINITY}},
        {"Sub", {0, 0, 1, -1, INFINITY, -INFINITY, 0, INFINITY}},
        {"Mul", {0, -0.0f, 0, -0.0f, -INFINITY, -INFINITY, INFINITY, NAN}},
        {"Div", {NAN, NAN, INFINITY, -INFINITY, NAN, -INFINITY, 1, INFINITY}},
    };
    static const struct {
        const char *op;
        float want[8];
    } single[] = {
        {"Neg", {0, -0.0f, -1, 1, -INFINITY, INFINITY, -3e38f, -INFINITY}},
        {"Abs", {0, 0, 1, 1, INFINITY, INFINITY, 3e38f, INFINITY}},
        {"Sqrt", {-0.0f, 0, 1, NAN, INFINITY, NAN, 1.7320508e19f, INFINITY}},
        {"Exp", {1, 1, 2.7182817f, 0.36787945f, INFINITY, 0, INFINITY, INFINITY}},
        {"Floor", {-0.0f, 0, 1, -1, INFINITY, -INFINITY, 3e38f, INFINITY}},
        {"Sigmoid", {0.5f, 0.5f, 0.7310586f, 0.26894143f, 1, 0, 1, 1}},
        {"Tanh", {-0.0f, 0, 0.7615942f, -0.7615942f, 1, -1, 1, 1}},
    };
    (void)state;
    result r;
    for (int p = 0; p < 2; p++) {
        for (size_t c = 0; c < NORI__COUNT(cases); c++) {
            run(&(node){cases[c].op, "8", "a b", "y", NULL, false}, providers[p], a, b, &r);
            for (int i = 0; i < 8; i++) {
                same(cases[c].op, providers[p], -1, i, r.v[i], cases[c].want[i]);
            }
        }
        for (size_t c = 0; c < NORI__COUNT(single); c++) {
            run(&(node){single[c].op, "8", "a", "y", NULL, false}, providers[p], a, a, &r);
            for (int i = 0; i < 8; i++) { /* but for the last bits of what is not exact */
                float want = single[c].want[i];
                bool near = fabsf(r.v[i] - want) <= 3e-7f * fabsf(want);
                same(single[c].op, providers[p], -1, i, near ? want : r.v[i], want);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_and_min), cmocka_unit_test(relu_and_clip),
        cmocka_unit_test(reductions),  cmocka_unit_test(arg_max),
        cmocka_unit_test(top_k),       cmocka_unit_test(max_pool),
        cmocka_unit_test(arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
