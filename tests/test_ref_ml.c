/* test_ref_ml.c: ai.onnx.ml: trees at their thresholds and at missing values, linear models,
 * support vectors, encoders, maps. Values are worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "make_model.h"
#include "run_node.h"

static void attr_floats(make *m, nori__pb_node *n, const char *name, size_t count, const double *v)
{
    nori__pb_attr *a = make_attr(m, n, name, NORI__ATTR_FLOATS);
    for (size_t i = 0; i < count; i++) {
        *MAKE_ADD(m, a->floats) = (float)v[i];
    }
}

static void attr_strings(make *m, nori__pb_node *n, const char *name, const char *words)
{
    nori__pb_attr *a = make_attr(m, n, name, NORI__ATTR_STRINGS);
    MAKE_NAMES(m, a->strings, words)
}

static void attr_doubles(make *m, nori__pb_node *n, const char *name, size_t count, const double *v)
{
    nori__pb_attr *a = make_attr(m, n, name, NORI__ATTR_TENSOR);
    a->t = nori__arena_alloc(&m->arena, sizeof(*a->t));
    assert_non_null(a->t);
    a->t->data_type = NORI_DOUBLE;
    *MAKE_ADD(m, a->t->dims) = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        *MAKE_ADD(m, a->t->doubles) = v[i];
    }
}
#define FLOATS(m, n, name, ...)                                                                    \
    attr_floats(m, n, name, sizeof((double[]){__VA_ARGS__}) / 8, (double[]){__VA_ARGS__})
#define INTS(m, n, name, ...)                                                                      \
    make_attr_ints(m, n, name, sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

static nori__pb_node *begin(make *m, const char *op, nori_type in, const char *outputs)
{
    make_begin(m, 13);
    make_import(m, "ai.onnx.ml", 3);
    nori__pb_node *n = make_node(m, &m->graph, "ai.onnx.ml", op, "n", "x", outputs);
    make_input(m, &m->graph, "x", in, NULL);
    for (const char *at = outputs; *at; at += at[1] == ' ' ? 2 : 1) {
        make_output(m, &m->graph, (char[]){*at, 0}, NORI_UNDEFINED, NULL);
        m->graph.outputs.items[m->graph.outputs.count - 1].type = NULL;
    }
    return n;
}

/* Runs on x (freed); out holds what the node gives. */
static void finish(make *m, nori_tensor *x, nori_tensor **out, size_t n_out, nori_status want)
{
    nori_error err = {0};
    nori_session *s = node_session(m, &err);
    if (!s) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_non_null(s);
    for (size_t i = 0; i < n_out; i++) {
        out[i] = NULL;
    }
    node_run(s, (const nori_tensor *const[]){x}, 1, out, n_out, want);
    nori_session_free(s);
    nori_tensor_free(x);
    make_end(m);
}

/* ---- trees ---- */

/* One split of feature 0: 10 when the comparison holds, 20 when not. */
static double split(const char *mode, nori_type type, double x, double threshold, bool as_double,
                    int missing)
{
    make m;
    nori_tensor *out[1];
    nori__pb_node *n = begin(&m, "TreeEnsembleRegressor", type, "o");
    INTS(&m, n, "nodes_treeids", 7, 7, 7);
    INTS(&m, n, "nodes_nodeids", 4, 9, 2);
    INTS(&m, n, "nodes_featureids", 0, 0, 0);
    INTS(&m, n, "nodes_truenodeids", 9, 0, 0);
    INTS(&m, n, "nodes_falsenodeids", 2, 0, 0);
    char modes[40];
    snprintf(modes, sizeof(modes), "%s LEAF LEAF", mode);
    attr_strings(&m, n, "nodes_modes", modes);
    if (as_double) {
        attr_doubles(&m, n, "nodes_values_as_tensor", 3, (double[]){threshold, 0, 0});
    } else {
        FLOATS(&m, n, "nodes_values", threshold, 0, 0);
    }
    if (missing >= 0) {
        INTS(&m, n, "nodes_missing_value_tracks_true", missing, 0, 0);
    }
    INTS(&m, n, "target_treeids", 7, 7);
    INTS(&m, n, "target_nodeids", 2, 9);
    INTS(&m, n, "target_ids", 0, 0);
    FLOATS(&m, n, "target_weights", 20, 10);
    finish(&m, node_values(type, NODE_DIMS(1, 1), &x), out, 1, NORI_OK);
    double v = nori__tensor_get_f64(out[0], 0);
    nori_tensor_free(out[0]);
    return v;
}

static void test_tree_without_root(void **state)
{
    (void)state;
    make m;
    nori_tensor *out[1];
    nori__pb_node *n = begin(&m, "TreeEnsembleRegressor", NORI_FLOAT, "o");
    INTS(&m, n, "nodes_treeids", 0, 0, 1);
    INTS(&m, n, "nodes_nodeids", 0, 1, 0);
    INTS(&m, n, "nodes_featureids", 0, 0, 0);
    INTS(&m, n, "nodes_truenodeids", 1, 0, 0); /* there and back */
    INTS(&m, n, "nodes_falsenodeids", 1, 0, 0);
    attr_strings(&m, n, "nodes_modes", "BRANCH_LEQ BRANCH_LEQ LEAF");
    FLOATS(&m, n, "nodes_values", 0, 0, 0);
    INTS(&m, n, "target_treeids", 0, 1);
    INTS(&m, n, "target_nodeids", 1, 0);
    INTS(&m, n, "target_ids", 0, 0);
    FLOATS(&m, n, "target_weights", 20, 10);
    finish(&m, NODE_F(NODE_DIMS(1, 1), 1), out, 1, NORI_ERROR_MODEL);
}

static void test_tree_modes(void **state)
{
    (void)state;
    static const struct {
        const char *mode;
        bool below, at, above;
    } cases[] = {{"BRANCH_LEQ", true, true, false}, {"BRANCH_LT", true, false, false},
                 {"BRANCH_GTE", false, true, true}, {"BRANCH_GT", false, false, true},
                 {"BRANCH_EQ", false, true, false}, {"BRANCH_NEQ", true, false, true}};
    double t = (double)0.1f;
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        for (int wide = 0; wide < 2; wide++) {
            nori_type type = wide ? NORI_DOUBLE : NORI_FLOAT;
            double below = wide ? nextafter(t, 0) : (double)nextafterf(0.1f, 0);
            double above = wide ? nextafter(t, 1) : (double)nextafterf(0.1f, 1);
            assert_true(split(cases[i].mode, type, below, t, wide, -1) ==
                        (cases[i].below ? 10 : 20));
            assert_true(split(cases[i].mode, type, t, t, wide, -1) == (cases[i].at ? 10 : 20));
            assert_true(split(cases[i].mode, type, above, t, wide, -1) ==
                        (cases[i].above ? 10 : 20));
        }
        /* NaN goes by the flag alone, numbers go by the threshold whatever the flag. */
        for (int kind = 0; kind < 4; kind++) {
            nori_type type = kind % 2 ? NORI_DOUBLE : NORI_FLOAT;
            bool wide = kind / 2 != 0;
            for (int flag = -1; flag < 2; flag++) { /* -1: no flags in the file */
                assert_true(split(cases[i].mode, type, (double)NAN, t, wide, flag) ==
                            (flag == 1 ? 10 : 20));
                assert_true(split(cases[i].mode, type, t, t, wide, flag) ==
                            (cases[i].at ? 10 : 20));
                assert_true(split(cases[i].mode, type, -INFINITY, t, wide, flag) ==
                            (cases[i].below ? 10 : 20));
                assert_true(split(cases[i].mode, type, INFINITY, t, wide, flag) ==
                            (cases[i].above ? 10 : 20));
            }
        }
    }
    /* A double threshold between two floats: 0.1 lies below 0.1f. */
    assert_true(split("BRANCH_LEQ", NORI_FLOAT, 0.1, 0.1, true, -1) == 20);
    assert_true(split("BRANCH_LEQ", NORI_FLOAT, 0.1, 0.1, false, -1) == 10);
    assert_true(split("BRANCH_LEQ", NORI_INT64, 3, 3, false, -1) == 10);
}

static void two_stumps(make *m, nori__pb_node *n)
{
    INTS(m, n, "nodes_treeids", 0, 0, 0, 1, 1, 1);
    INTS(m, n, "nodes_nodeids", 0, 1, 2, 0, 1, 2);
    INTS(m, n, "nodes_featureids", 0, 0, 0, 1, 0, 0);
    INTS(m, n, "nodes_truenodeids", 1, 0, 0, 1, 0, 0);
    INTS(m, n, "nodes_falsenodeids", 2, 0, 0, 2, 0, 0);
    attr_strings(m, n, "nodes_modes", "BRANCH_LT LEAF LEAF BRANCH_LT LEAF LEAF");
    FLOATS(m, n, "nodes_values", 0, 0, 0, 0, 0, 0);
}

static void classifier(make *m, const char *post, const double *weights, const int64_t *ids)
{
    nori__pb_node *n = begin(m, "TreeEnsembleClassifier", NORI_FLOAT, "l s");
    two_stumps(m, n);
    INTS(m, n, "class_treeids", 0, 0, 1, 1);
    INTS(m, n, "class_nodeids", 1, 2, 1, 2);
    make_attr_ints(m, n, "class_ids", 4, ids);
    attr_floats(m, n, "class_weights", 4, weights);
    attr_strings(m, n, "classlabels_strings", "no yes");
    make_attr_text(m, n, "post_transform", post);
}

static void expect_text(nori_tensor *t, const char *first, const char *second)
{
    const nori_string *s = t->data;
    assert_int_equal(t->type, NORI_STRING);
    assert_int_equal(t->count, 2);
    assert_string_equal(s[0].data, first);
    assert_string_equal(s[1].data, second);
    nori_tensor_free(t);
}

static void test_tree_classifier(void **state)
{
    (void)state;
    make m;
    nori_tensor *out[2];
    const double x[] = {-1, -1, 1, 1};
    /* Votes of one class, none negative: a probability. */
    classifier(&m, "NONE", (double[]){0.1, 0.4, 0.2, 0.5}, (int64_t[]){1, 1, 1, 1});
    finish(&m, node_values(NORI_FLOAT, NODE_DIMS(2, 2), x), out, 2, NORI_OK);
    expect_text(out[0], "no", "yes");
    node_expect(out[1], NORI_FLOAT, NODE_DIMS(2, 2), (double[]){0.7, 0.3, 0.1, 0.9});
    /* A margin through the logistic function. */
    classifier(&m, "LOGISTIC", (double[]){-1, 1, -0.5, 0.5}, (int64_t[]){0, 0, 0, 0});
    finish(&m, node_values(NORI_FLOAT, NODE_DIMS(2, 2), x), out, 2, NORI_OK);
    expect_text(out[0], "no", "yes");
    double p = 1 / (1 + exp(1.5));
    node_expect(out[1], NORI_FLOAT, NODE_DIMS(2, 2), (double[]){1 - p, p, p, 1 - p});
    /* Votes of both. */
    classifier(&m, "SOFTMAX", (double[]){2, 1, 1, 3}, (int64_t[]){0, 1, 1, 0});
    finish(&m, node_values(NORI_FLOAT, NODE_DIMS(2, 2), x), out, 2, NORI_OK);
    expect_text(out[0], "no", "no");
    double a = exp(1) / (exp(1) + 1), b = exp(2) / (exp(2) + 1);
    node_expect(out[1], NORI_FLOAT, NODE_DIMS(2, 2), (double[]){a, 1 - a, b, 1 - b});
}

static void test_tree_aggregates(void **state)
{
    (void)state;
    static const char *const names[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    static const double want[][2] = {{13, 33}, {7, 17}, {2, 12}, {12, 22}}; /* base 1 added */
    for (size_t i = 0; i < 4; i++) {
        make m;
        nori_tensor *out[1];
        nori__pb_node *n = begin(&m, "TreeEnsembleRegressor", NORI_FLOAT, "o");
        two_stumps(&m, n);
        INTS(&m, n, "target_treeids", 0, 0, 1, 1);
        INTS(&m, n, "target_nodeids", 1, 2, 1, 2);
        INTS(&m, n, "target_ids", 0, 0, 0, 0);
        FLOATS(&m, n, "target_weights", 1, 11, 11, 21);
        FLOATS(&m, n, "base_values", 1);
        make_attr_text(&m, n, "aggregate_function", names[i]);
        finish(&m, NODE_F(NODE_DIMS(2, 2), -1, -1, 1, 1), out, 1, NORI_OK);
        node_expect(out[0], NORI_FLOAT, NODE_DIMS(2, 1), want[i]);
    }
}

static void test_tree_cycle(void **state)
{
    (void)state;
    make m;
    nori_tensor *out[1];
    nori__pb_node *n = begin(&m, "TreeEnsembleRegressor", NORI_FLOAT, "o");
    INTS(&m, n, "nodes_treeids", 0, 0, 0);
    INTS(&m, n, "nodes_nodeids", 0, 1, 2);
    INTS(&m, n, "nodes_featureids", 0, 0, 5);
    INTS(&m, n, "nodes_truenodeids", 1, 2, 1);
    INTS(&m, n, "nodes_falsenodeids", 1, 2, 1);
    attr_strings(&m, n, "nodes_modes", "BRANCH_LT BRANCH_LT BRANCH_LT");
    FLOATS(&m, n, "nodes_values", 0, 0, 0);
    INTS(&m, n, "target_treeids", 0);
    INTS(&m, n, "target_nodeids", 1);
    INTS(&m, n, "target_ids", 0);
    FLOATS(&m, n, "target_weights", 1);
    finish(&m, NODE_F(NODE_DIMS(1, 6), 1, 1, 1, 1, 1, 1), out, 1, NORI_ERROR_MODEL);
    assert_null(out[0]);
}

/* ---- linear models, support vectors ---- */

static void test_linear(void **state)
{
    (void)state;
    make m;
    nori_tensor *out[2];
    nori__pb_node *n = begin(&m, "LinearRegressor", NORI_FLOAT, "o");
    FLOATS(&m, n, "coefficients", 1, 2, 3, 4);
    FLOATS(&m, n, "intercepts", 10, 20);
    make_attr_int(&m, n, "targets", 2);
    finish(&m, NODE_F(NODE_DIMS(2, 2), 1, 1, 2, -1), out, 1, NORI_OK);
    node_expect(out[0], NORI_FLOAT, NODE_DIMS(2, 2), (double[]){13, 27, 10, 22});

    n = begin(&m, "LinearClassifier", NORI_FLOAT, "l s");
    FLOATS(&m, n, "coefficients", -1, 1, 1, -1, 0, 0);
    FLOATS(&m, n, "intercepts", 0, 0, 0.5);
    INTS(&m, n, "classlabels_ints", 5, 6, 7);
    make_attr_text(&m, n, "post_transform", "LOGISTIC");
    finish(&m, NODE_F(NODE_DIMS(3, 2), 0, 2, 2, 0, 0, 0), out, 2, NORI_OK);
    node_expect(out[0], NORI_INT64, NODE_DIMS(3), (double[]){5, 6, 7});
    double p = 1 / (1 + exp(-2)), h = 1 / (1 + exp(-0.5));
    node_expect(out[1], NORI_FLOAT, NODE_DIMS(3, 3),
                (double[]){p, 1 - p, h, 1 - p, p, h, 0.5, 0.5, h});

    /* SOFTMAX_ZERO: zeros stay out; a row of nothing else is 0.5. */
    n = begin(&m, "LinearRegressor", NORI_FLOAT, "o");
    FLOATS(&m, n, "coefficients", 1, 2, 0);
    make_attr_int(&m, n, "targets", 3);
    make_attr_text(&m, n, "post_transform", "SOFTMAX_ZERO");
    finish(&m, NODE_F(NODE_DIMS(2, 1), 1, 0), out, 1, NORI_OK);
    double e = 1 / (1 + exp(1));
    node_expect(out[0], NORI_FLOAT, NODE_DIMS(2, 3), (double[]){e, 1 - e, 0, 0.5, 0.5, 0.5});

    n = begin(&m, "LinearRegressor", NORI_FLOAT, "o");
    FLOATS(&m, n, "coefficients", 1, 2, 3);
    finish(&m, NODE_F(NODE_DIMS(1, 2), 1, 1), out, 1, NORI_ERROR_DATA);
}

static void test_svm(void **state)
{
    (void)state;
    make m;
    nori_tensor *out[2];
    nori__pb_node *n = begin(&m, "SVMRegressor", NORI_FLOAT, "o");
    make_attr_text(&m, n, "kernel_type", "RBF");
    FLOATS(&m, n, "kernel_params", 0.5, 0, 3);
    FLOATS(&m, n, "support_vectors", 0, 0, 1, 1);
    FLOATS(&m, n, "coefficients", 2, -1);
    FLOATS(&m, n, "rho", 0.25);
    make_attr_int(&m, n, "n_supports", 2);
    finish(&m, NODE_F(NODE_DIMS(1, 2), 1, 0), out, 1, NORI_OK);
    node_expect(out[0], NORI_FLOAT, NODE_DIMS(1, 1), (double[]){exp(-0.5) + 0.25});

    /* Three classes on a line, one vector each: pair decisions 0-1, 0-2, 1-2. */
    n = begin(&m, "SVMClassifier", NORI_FLOAT, "l s");
    FLOATS(&m, n, "support_vectors", -1, 0, 1);
    INTS(&m, n, "vectors_per_class", 1, 1, 1);
    FLOATS(&m, n, "coefficients", 1, 0, -1, 1, 0, -1);
    FLOATS(&m, n, "rho", -0.5, 0, 0.5);
    INTS(&m, n, "classlabels_ints", 10, 11, 12);
    finish(&m, NODE_F(NODE_DIMS(3, 1), -2, 0, 3), out, 2, NORI_OK);
    node_expect(out[0], NORI_INT64, NODE_DIMS(3), (double[]){10, 11, 12});
    /* 0-1: w0[0] k0 + w0[1] k1 - 0.5, and so on, with k = -x, 0, x. */
    node_expect(out[1], NORI_FLOAT, NODE_DIMS(3, 3),
                (double[]){1.5, 4, 2.5, -0.5, 0, 0.5, -3.5, -6, -2.5});

    /* One decision of 1 with a = -1, b = 0 for two classes: p = 1 / (1 + e^-1). */
    n = begin(&m, "SVMClassifier", NORI_FLOAT, "l s");
    FLOATS(&m, n, "support_vectors", -1, 1);
    INTS(&m, n, "vectors_per_class", 1, 1);
    FLOATS(&m, n, "coefficients", 0.5, -0.5);
    FLOATS(&m, n, "rho", 0);
    FLOATS(&m, n, "prob_a", -1);
    FLOATS(&m, n, "prob_b", 0);
    attr_strings(&m, n, "classlabels_strings", "low high");
    finish(&m, NODE_F(NODE_DIMS(2, 1), -1, 1), out, 2, NORI_OK);
    expect_text(out[0], "low", "high");
    double p = 1 / (1 + exp(-1)), got = (double)((const float *)out[1]->data)[0];
    assert_true(fabs(got - p) < 5e-3); /* the coupling stops at this accuracy */
    nori_tensor_free(out[1]);

    /* Without probabilities: the decision -x of the pair votes for the first label above 0, and the
     * scores are its negative and itself. */
    n = begin(&m, "SVMClassifier", NORI_FLOAT, "l s");
    FLOATS(&m, n, "support_vectors", -1, 1);
    INTS(&m, n, "vectors_per_class", 1, 1);
    FLOATS(&m, n, "coefficients", 0.5, -0.5);
    FLOATS(&m, n, "rho", 0);
    INTS(&m, n, "classlabels_ints", 7, 3);
    finish(&m, NODE_F(NODE_DIMS(2, 1), -1, 2), out, 2, NORI_OK);
    node_expect(out[0], NORI_INT64, NODE_DIMS(2), (double[]){7, 3});
    node_expect(out[1], NORI_FLOAT, NODE_DIMS(2, 2), (double[]){-1, 1, 2, -2});

    /* No support vectors: a linear function a class, the first rho for all. */
    n = begin(&m, "SVMClassifier", NORI_FLOAT, "l s");
    FLOATS(&m, n, "coefficients", 1, -1, 0.5);
    FLOATS(&m, n, "rho", 0.25, 9, 9);
    INTS(&m, n, "classlabels_ints", 7, 3, 5);
    finish(&m, NODE_F(NODE_DIMS(1, 1), 2), out, 2, NORI_OK);
    node_expect(out[0], NORI_INT64, NODE_DIMS(1), (double[]){7});
    node_expect(out[1], NORI_FLOAT, NODE_DIMS(1, 3), (double[]){2.25, -1.75, 1.25});
}

/* ---- scaling and encoding ---- */

static void test_scale(void **state)
{
    (void)state;
    make m;
    nori_tensor *out[1];
    nori__pb_node *n = begin(&m, "Scaler", NORI_INT64, "o");
    FLOATS(&m, n, "offset", 1, 2);
    FLOATS(&m, n, "scale", 0.5);
    finish(&m, node_values(NORI_INT64, NODE_DIMS(2, 2), (double[]){1, 2, 3, 4}), out, 1, NORI_OK);
    node_expect(out[0], NORI_FLOAT, NODE_DIMS(2, 2), (double[]){0, 0, 1, 1});

    static const char *const norms[] = {"MAX", "L1", "L2"};
    static const double by[] = {3, 7, 5};
    for (int i = 0; i < 3; i++) {
        n = begin(&m, "Normalizer", NORI_FLOAT, "o");
        make_attr_text(&m, n, "norm", norms[i]);
        finish(&m, NODE_F(NODE_DIMS(2, 2), 3, -4, 0, 0), out, 1, NORI_OK);
        node_expect(out[0], NORI_FLOAT, NODE_DIMS(2, 2), (double[]){3 / by[i], -4 / by[i], 0, 0});
    }
    n = begin(&m, "Imputer", NORI_FLOAT, "o");
    FLOATS(&m, n, "imputed_value_floats", 7, 8);
    make_attr(&m, n, "replaced_value_float", NORI__ATTR_FLOAT)->f = NAN;
    finish(&m, NODE_F(NODE_DIMS(2, 2), (double)NAN, (double)NAN, 1, 2), out, 1, NORI_OK);
    node_expect(out[0], NORI_FLOAT, NODE_DIMS(2, 2), (double[]){7, 8, 1, 2});
}

static void test_encode(void **state)
{
    (void)state;
    make m;
    nori_tensor *out[1];
    nori__pb_node *n = begin(&m, "LabelEncoder", NORI_FLOAT, "o");
    FLOATS(&m, n, "keys_floats", 1, (double)NAN, 1);
    INTS(&m, n, "values_int64s", 4, 5, 6);
    finish(&m, NODE_F(NODE_DIMS(3), 1, (double)NAN, 2), out, 1, NORI_OK);
    node_expect(out[0], NORI_INT64, NODE_DIMS(3), (double[]){6, 5, -1});

    n = begin(&m, "OneHotEncoder", NORI_INT64, "o");
    INTS(&m, n, "cats_int64s", 3, 9);
    finish(&m, node_values(NORI_INT64, NODE_DIMS(3), (double[]){9, 4, 3}), out, 1, NORI_OK);
    node_expect(out[0], NORI_FLOAT, NODE_DIMS(3, 2), (double[]){0, 1, 0, 0, 1, 0});

    n = begin(&m, "OneHotEncoder", NORI_INT64, "o");
    INTS(&m, n, "cats_int64s", 3, 9);
    make_attr_int(&m, n, "zeros", 0);
    finish(&m, node_values(NORI_INT64, NODE_DIMS(1), (double[]){4}), out, 1, NORI_ERROR_DATA);

    n = begin(&m, "CategoryMapper", NORI_INT64, "o");
    INTS(&m, n, "cats_int64s", 1, 2);
    attr_strings(&m, n, "cats_strings", "one two");
    finish(&m, node_values(NORI_INT64, NODE_DIMS(2), (double[]){2, 3}), out, 1, NORI_OK);
    expect_text(out[0], "two", "_Unused");
}

static void test_maps(void **state)
{
    (void)state;
    make m;
    nori_tensor *out[1];
    nori__pb_node *n = begin(&m, "ZipMap", NORI_FLOAT, "o");
    attr_strings(&m, n, "classlabels_strings", "cat dog");
    finish(&m, NODE_F(NODE_DIMS(2, 2), 0.1, 0.9, 0.7, 0.3), out, 1, NORI_OK);
    assert_int_equal(out[0]->kind, NORI_KIND_SEQUENCE);
    assert_int_equal(nori_tensor_item_count(out[0]), 2);
    nori_tensor *map = nori_tensor_item(out[0], 1);
    assert_int_equal(map->kind, NORI_KIND_MAP);
    assert_string_equal(((const nori_string *)nori_tensor_item(map, 0)->data)[1].data, "dog");
    node_expect(nori_tensor_retain(nori_tensor_item(map, 1)), NORI_FLOAT, NODE_DIMS(2),
                (double[]){0.7, 0.3});
    nori_tensor_free(out[0]);

    nori_tensor *keys = node_values(NORI_INT64, NODE_DIMS(3), (double[]){4, 0, 2});
    nori_tensor *values = NODE_F(NODE_DIMS(3), 40, 1, 20), *x = NULL;
    for (int sparse = 0; sparse < 3; sparse++) { /* 2: key 4 is past the end */
        assert_int_equal(nori_tensor_group(NULL, NORI_KIND_MAP, (nori_tensor *[]){keys, values}, 2,
                                           0, NULL, &x, NULL),
                         NORI_OK);
        n = begin(&m, "CastMap", NORI_FLOAT, "o");
        nori__pb_value *in = &m.graph.inputs.items[0];
        in->type->kind = NORI_KIND_MAP;
        in->type->elem = NORI_INT64;
        in->type->of = nori__arena_alloc(&m.arena, sizeof(*in->type->of));
        in->type->of->kind = NORI_KIND_TENSOR;
        in->type->of->elem = NORI_FLOAT;
        make_attr_text(&m, n, "map_form", sparse ? "SPARSE" : "DENSE");
        make_attr_int(&m, n, "max_map", sparse == 2 ? 4 : 5);
        finish(&m, x, out, 1, sparse == 2 ? NORI_ERROR_DATA : NORI_OK);
        if (sparse == 0) {
            node_expect(out[0], NORI_FLOAT, NODE_DIMS(1, 3), (double[]){1, 20, 40});
        } else if (sparse == 1) {
            node_expect(out[0], NORI_FLOAT, NODE_DIMS(1, 5), (double[]){1, 0, 20, 0, 40});
        }
    }
    nori_tensor_free(keys);
    nori_tensor_free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_modes),
        cmocka_unit_test(test_tree_without_root),
        cmocka_unit_test(test_tree_classifier),
        cmocka_unit_test(test_tree_aggregates),
        cmocka_unit_test(test_tree_cycle),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_svm),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
