/* test_old_forms.c: operators in the forms of their first versions, by value: models as files of those
 * days have them, run through whole sessions. Expected values are worked out by hand. What a version
 * shares with later ones is run by run_versions.c; here is what changed its form or its meaning, and
 * what no backend case exercises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "form.h"

/* ---- broadcasting by attributes (versions below 7) ---- */

static void broadcast(void **state)
{
    static const struct {
        const char *op;
        double want[6];
    } cases[] = {
        {"Add", {3, 4, 5, 7, 8, 9}},  {"Sub", {-1, 0, 1, 1, 2, 3}}, {"Mul", {2, 4, 6, 12, 15, 18}},
        {"Div", {0.5, 1, 1.5, 4 / 3., 5 / 3., 2}}, {"Pow", {1, 4, 9, 64, 125, 216}},
    };
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        for (int64_t opset = 1; opset <= 6; opset += 5) {
            form("", opset, cases[i].op, "a b", "y"); /* b lies along axis 0 */
            make_attr_int(&m, n, "broadcast", 1);
            make_attr_int(&m, n, "axis", 0);
            in(NORI_FLOAT, "2 3", V(1, 2, 3, 4, 5, 6));
            in(NORI_FLOAT, "2", V(2, 3));
            gives(NORI_FLOAT, "2 3", cases[i].want);
            form("", opset, cases[i].op, "a b", "y"); /* without axis: at the end */
            make_attr_int(&m, n, "broadcast", 1);
            in(NORI_FLOAT, "1 2", V(1, 4));
            in(NORI_FLOAT, "", V(2));
            static const double scalar[][2] = {{3, 6}, {-1, 2}, {2, 8}, {0.5, 2}, {1, 16}};
            gives(NORI_FLOAT, "1 2", scalar[i]);
        }
    }
    static const char *const compare[] = {"Less", "Greater", "Equal"};
    static const double compared[][4] = {{1, 0, 0, 0}, {0, 0, 1, 0}, {0, 1, 0, 1}};
    for (int i = 0; i < 3; i++) {
        form("", 1, compare[i], "a b", "y");
        make_attr_int(&m, n, "broadcast", 1);
        make_attr_int(&m, n, "axis", 0);
        nori_type type = i == 2 ? NORI_INT32 : NORI_FLOAT; /* Equal 1 has no floats */
        in(type, "2 2", V(1, 2, 4, 3));
        in(type, "2", V(2, 3));
        gives(NORI_BOOL, "2 2", compared[i]);
    }
    static const char *const logic[] = {"And", "Or", "Xor"};
    static const double decided[][4] = {{0, 1, 0, 0}, {1, 1, 0, 1}, {1, 0, 0, 1}};
    for (int i = 0; i < 3; i++) {
        form("", 1, logic[i], "a b", "y");
        make_attr_int(&m, n, "broadcast", 1);
        make_attr_int(&m, n, "axis", 0);
        in(NORI_BOOL, "2 2", V(0, 1, 0, 1));
        in(NORI_BOOL, "2", V(1, 0));
        gives(NORI_BOOL, "2 2", decided[i]);
    }
}

/* ---- attributes that became inputs ---- */

static void attributes(void **state)
{
    (void)state;
    form("", 1, "Reshape", "a", "y");
    make_attr_ints(&m, n, "shape", I(2, -1));
    in(NORI_FLOAT, "4", V(1, 2, 3, 4));
    gives(NORI_FLOAT, "2 2", V(1, 2, 3, 4));

    form("", 1, "Pad", "a", "y");
    make_attr_ints(&m, n, "paddings", I(1, 2));
    attr_float("value", 9);
    in(NORI_FLOAT, "2", V(1, 2));
    gives(NORI_FLOAT, "5", V(9, 1, 2, 9, 9));

    form("", 2, "Pad", "a", "y");
    make_attr_ints(&m, n, "pads", I(0, -1));
    in(NORI_FLOAT, "2", V(1, 2));
    gives(NORI_FLOAT, "1", V(1));

    form("", 1, "Slice", "a", "y");
    make_attr_ints(&m, n, "starts", I(1, -2));
    make_attr_ints(&m, n, "ends", I(9, -1));
    make_attr_ints(&m, n, "axes", I(0, 1));
    in(NORI_FLOAT, "2 3", V(1, 2, 3, 4, 5, 6));
    gives(NORI_FLOAT, "1 1", V(5));

    for (int64_t opset = 1; opset <= 2; opset++) {
        form("", opset, "Split", "a", "y z");
        make_attr_ints(&m, n, "split", I(1, 2));
        in(NORI_FLOAT, "3", V(1, 2, 3));
        run(2);
        is(0, NORI_FLOAT, "1", V(1));
        is(1, NORI_FLOAT, "2", V(2, 3));
    }

    for (int64_t opset = 1; opset <= 11; opset += 10) {
        form("", opset, "Squeeze", "a", "y");
        make_attr_ints(&m, n, "axes", I(1));
        in(NORI_FLOAT, "2 1", V(1, 2));
        gives(NORI_FLOAT, "2", V(1, 2));
        form("", opset, "Unsqueeze", "a", "y");
        make_attr_ints(&m, n, "axes", I(0, 2));
        in(NORI_FLOAT, "2", V(1, 2));
        gives(NORI_FLOAT, "1 2 1", V(1, 2));
        form("", opset, "ReduceSum", "a", "y");
        make_attr_ints(&m, n, "axes", I(1));
        make_attr_int(&m, n, "keepdims", 0);
        in(NORI_FLOAT, "2 2", V(1, 2, 3, 4));
        gives(NORI_FLOAT, "2", V(3, 7));
        form("", opset, "ReduceMax", "a", "y");
        make_attr_ints(&m, n, "axes", I(0));
        in(NORI_FLOAT, "2 2", V(1, 4, 3, 2));
        gives(NORI_FLOAT, "1 2", V(3, 4));
    }

    form("", 1, "TopK", "a", "y z");
    make_attr_int(&m, n, "k", 2);
    in(NORI_FLOAT, "3", V(1, 3, 2));
    run(2);
    is(0, NORI_FLOAT, "2", V(3, 2));
    is(1, NORI_INT64, "2", V(1, 2));

    for (int64_t opset = 1; opset <= 6; opset += 5) {
        form("", opset, "Clip", "a", "y");
        attr_float("min", -1);
        attr_float("max", 2);
        in(NORI_FLOAT, "3", V(-3, 1, 3));
        gives(NORI_FLOAT, "3", V(-1, 1, 2));
        form("", opset, "Dropout", "a", "y");
        make_attr_int(&m, n, "is_test", 1);
        attr_float("ratio", 0.9);
        in(NORI_FLOAT, "2", V(1, 2));
        gives(NORI_FLOAT, "2", V(1, 2));
    }

    form("", 1, "Tile", "a tiles axis", "y");
    constant("tiles", -1, 2);
    constant("axis", -1, 1);
    in(NORI_FLOAT, "1 2", V(1, 2));
    gives(NORI_FLOAT, "1 4", V(1, 2, 1, 2));

    form("", 1, "Cast", "a", "y");
    make_attr_text(&m, n, "to", "INT32");
    in(NORI_FLOAT, "2", V(1.75, -1.75));
    gives(NORI_INT32, "2", V(1, -1));
}

/* ---- pictures ---- */

static void pictures(void **state)
{
    (void)state;
    form("", 1, "Upsample", "a", "y");
    attr_float("height_scale", 1);
    attr_float("width_scale", 2);
    in(NORI_FLOAT, "1 1 1 2", V(1, 2));
    gives(NORI_FLOAT, "1 1 1 4", V(1, 1, 2, 2));

    form("", 7, "Upsample", "a", "y");
    attr_floats("scales", F(1, 1, 2, 1));
    in(NORI_FLOAT, "1 1 1 2", V(1, 2));
    gives(NORI_FLOAT, "1 1 2 2", V(1, 2, 1, 2));

    form("", 10, "Resize", "a b", "y");
    in(NORI_FLOAT, "1 1 1 2", V(1, 2));
    in(NORI_FLOAT, "4", V(1, 1, 1, 2));
    gives(NORI_FLOAT, "1 1 1 4", V(1, 1, 2, 2));

    form("", 10, "Resize", "a b", "y"); /* asymmetric: 0, 0.5, 1, 1.5 -> the last one stays */
    make_attr_text(&m, n, "mode", "linear");
    in(NORI_FLOAT, "1 1 1 2", V(1, 2));
    in(NORI_FLOAT, "4", V(1, 1, 1, 2));
    gives(NORI_FLOAT, "1 1 1 4", V(1, 1.5, 2, 2));

    form("", 1, "DepthToSpace", "a", "y");
    make_attr_int(&m, n, "blocksize", 2);
    in(NORI_FLOAT, "1 4 1 1", V(1, 2, 3, 4));
    gives(NORI_FLOAT, "1 1 2 2", V(1, 2, 3, 4));

    form("", 1, "Crop", "a", "y");
    make_attr_ints(&m, n, "border", I(1, 0, 1, 1)); /* left, top, right, bottom */
    in(NORI_FLOAT, "1 1 3 4", V(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
    gives(NORI_FLOAT, "1 1 2 2", V(1, 2, 5, 6));

    form("", 1, "ImageScaler", "a", "y");
    attr_float("scale", 2);
    attr_floats("bias", F(10, 20));
    in(NORI_FLOAT, "1 2 1 1", V(1, 2));
    gives(NORI_FLOAT, "1 2 1 1", V(12, 24));

    form("", 10, "RoiAlign", "a b c", "y"); /* without the half pixel: the middle of all four */
    make_attr_int(&m, n, "sampling_ratio", 1);
    in(NORI_FLOAT, "1 1 2 2", V(1, 2, 3, 4));
    in(NORI_FLOAT, "1 4", V(0, 0, 1, 1));
    in(NORI_INT64, "1", V(0));
    gives(NORI_FLOAT, "1 1 1 1", V(2.5));
}

/* ---- normalizing, pooling, softmax ---- */

static void norms_and_pools(void **state)
{
    (void)state;
    for (int64_t opset = 1; opset <= 9; opset++) {
        form("", opset, "BatchNormalization", "a b c d e", "y");
        attr_float("epsilon", 0);
        if (opset == 1) {
            make_attr_ints(&m, n, "consumed_inputs", I(0, 0, 0, 1, 1));
        }
        if (opset < 7) {
            make_attr_int(&m, n, "is_test", 1);
        }
        in(NORI_FLOAT, "1 2 2", V(1, 2, 3, 4));
        in(NORI_FLOAT, "2", V(2, 1));
        in(NORI_FLOAT, "2", V(0, 1));
        in(NORI_FLOAT, "2", V(1, 3));
        in(NORI_FLOAT, "2", V(4, 1));
        gives(NORI_FLOAT, "1 2 2", V(0, 1, 1, 2));
    }

    form("", 18, "GroupNormalization", "a b c", "y"); /* a scale a group, not a channel */
    make_attr_int(&m, n, "num_groups", 2);
    attr_float("epsilon", 0);
    in(NORI_FLOAT, "1 4 1", V(1, 3, 2, 6));
    in(NORI_FLOAT, "2", V(2, 3));
    in(NORI_FLOAT, "2", V(0, 1));
    gives(NORI_FLOAT, "1 4 1", V(-2, 2, -2, 4));

    form("", 1, "Affine", "a", "y");
    attr_float("alpha", 2);
    attr_float("beta", 3);
    in(NORI_FLOAT, "2", V(1, -1));
    gives(NORI_FLOAT, "2", V(5, 1));

    form("", 1, "GlobalLpPool", "a", "y"); /* p was a float, and is 2 */
    in(NORI_FLOAT, "1 1 1 2", V(3, 4));
    gives(NORI_FLOAT, "1 1 1 1", V(5));
    for (int64_t opset = 2; opset <= 22; opset += 20) {
        form("", opset, "GlobalLpPool", "a", "y");
        make_attr_int(&m, n, "p", 1);
        in(NORI_FLOAT, "1 1 1 2", V(3, -4));
        gives(NORI_FLOAT, "1 1 1 1", V(7));
    }
    form("", 1, "LpPool", "a", "y");
    attr_float("p", 2);
    make_attr_ints(&m, n, "kernel_shape", I(2));
    in(NORI_FLOAT, "1 1 3", V(3, 4, 3));
    gives(NORI_FLOAT, "1 1 2", V(5, 5));

    for (int64_t opset = 1; opset <= 22; opset += 21) {
        form("", opset, "MaxRoiPool", "a b", "y");
        make_attr_ints(&m, n, "pooled_shape", I(1, 1));
        in(NORI_FLOAT, "1 1 2 2", V(1, 4, 3, 2));
        in(NORI_FLOAT, "1 5", V(0, 0, 0, 1, 1));
        gives(NORI_FLOAT, "1 1 1 1", V(4));
    }

    static const char *const ops[] = {"Softmax", "LogSoftmax", "Hardmax"};
    static const double want[][8] = {
        {0.25, 0.25, 0.25, 0.25, 0.125, 0.125, 0.125, 0.625},
        {-1.3862943611, -1.3862943611, -1.3862943611, -1.3862943611, -2.0794415417, -2.0794415417,
         -2.0794415417, -0.4700036292},
        {1, 0, 0, 0, 0, 0, 0, 1},
    };
    for (int i = 0; i < 3; i++) { /* over all axes from 1 on, not over one */
        for (int64_t opset = 1; opset <= 11; opset += 10) {
            form("", opset, ops[i], "a", "y");
            in(NORI_FLOAT, "2 2 2", V(0, 0, 0, 0, 0, 0, 0, 1.6094379124341003));
            gives(NORI_FLOAT, "2 2 2", want[i]);
        }
    }
}

/* ---- bodies ---- */

static void loop(void **state)
{
    (void)state;
    form("", 1, "Loop", "a b c", "y");
    nori__pb_graph *body = make_attr_graph(&m, n, "body");
    make_input(&m, body, "i", NORI_INT64, "");
    make_input(&m, body, "go", NORI_BOOL, "");
    make_input(&m, body, "v", NORI_FLOAT, "1");
    make_node(&m, body, "", "Sum", "", "v v", "w");
    make_node(&m, body, "", "Identity", "", "go", "going");
    make_output(&m, body, "going", NORI_BOOL, "");
    make_output(&m, body, "w", NORI_FLOAT, "1");
    in(NORI_INT64, "", V(3));
    in(NORI_BOOL, "", V(1));
    in(NORI_FLOAT, "1", V(1));
    gives(NORI_FLOAT, "1", V(8));

    form("", 1, "RNN", "a b c", "y");
    make_attr_int(&m, n, "hidden_size", 1);
    make_attr_int(&m, n, "output_sequence", 1);
    in(NORI_FLOAT, "2 1 1", V(0.5, 0));
    in(NORI_FLOAT, "1 1 1", V(1));
    in(NORI_FLOAT, "1 1 1", V(2));
    gives(NORI_FLOAT, "2 1 1 1", V(0.4621171573, 0.7278944044)); /* tanh(0.5), tanh(2 * that) */
}

/* ---- chance: shape, range, and the mean to 5 standard deviations ---- */

static double mean_of(nori_tensor *t, int64_t count, double low, double high)
{
    double sum = 0;
    assert_int_equal(t->count, count);
    for (int64_t i = 0; i < count; i++) {
        double v = nori__tensor_get_f64(t, i);
        assert_true(v >= low && v <= high);
        sum += v;
    }
    nori_tensor_free(t);
    return sum / (double)count;
}

static void near(double got, double want, double deviation)
{
    if (!(fabs(got - want) <= 5 * deviation)) {
        fail_msg("the mean is %g, expected %g", got, want);
    }
}

static void chance(void **state)
{
    const int64_t count = 10000;
    (void)state;
    for (int64_t opset = 1; opset <= 22; opset += 21) {
        for (int like = 0; like < 2; like++) {
            for (int normal = 0; normal < 2; normal++) {
                const char *op = normal ? (like ? "RandomNormalLike" : "RandomNormal")
                                        : (like ? "RandomUniformLike" : "RandomUniform");
                form("", opset, op, like ? "a" : "", "y");
                attr_float(normal ? "mean" : "low", 2);
                attr_float(normal ? "scale" : "high", 4);
                if (like) {
                    double *zeros = calloc(10000, sizeof(double));
                    in(NORI_FLOAT, "100 100", zeros);
                    free(zeros);
                } else {
                    make_attr_ints(&m, n, "shape", I(100, 100));
                }
                run(1);
                double mean = mean_of(made[0], count, normal ? -30 : 2, normal ? 40 : 4);
                near(mean, normal ? 2 : 3, (normal ? 4 : 2 / sqrt(12)) / 100);
            }
        }
        if (opset == 22) {
            form("", opset, "Multinomial", "a", "y");
            make_attr_int(&m, n, "sample_size", count);
            in(NORI_FLOAT, "1 2", V(log(0.25), log(0.75)));
            run(1);
            near(mean_of(made[0], count, 0, 1), 0.75, sqrt(0.75 * 0.25) / 100);
        }
    }
}

/* ---- ai.onnx.ml ---- */

#define ML "ai.onnx.ml"

/* One tree: feature 0 at most 0.5 goes to the first leaf. */
static void tree(const char *op, int64_t opset)
{
    form(ML, opset, op, "a", strstr(op, "Classifier") ? "y z" : "y");
    make_attr_ints(&m, n, "nodes_treeids", I(0, 0, 0));
    make_attr_ints(&m, n, "nodes_nodeids", I(0, 1, 2));
    make_attr_ints(&m, n, "nodes_featureids", I(0, 0, 0));
    attr_floats("nodes_values", F(0.5, 0, 0));
    attr_texts("nodes_modes", "BRANCH_LEQ LEAF LEAF");
    make_attr_ints(&m, n, "nodes_truenodeids", I(1, 0, 0));
    make_attr_ints(&m, n, "nodes_falsenodeids", I(2, 0, 0));
}

static void machine_learning(void **state)
{
    (void)state;
    for (int64_t opset = 1; opset <= 5; opset += 2) {
        tree("TreeEnsembleRegressor", opset);
        make_attr_ints(&m, n, "target_treeids", I(0, 0));
        make_attr_ints(&m, n, "target_nodeids", I(1, 2));
        make_attr_ints(&m, n, "target_ids", I(0, 0));
        attr_floats("target_weights", F(10, 20));
        make_attr_int(&m, n, "n_targets", 1);
        in(NORI_FLOAT, "2 1", V(0, 1));
        gives(NORI_FLOAT, "2 1", V(10, 20));

        tree("TreeEnsembleClassifier", opset);
        make_attr_ints(&m, n, "class_treeids", I(0, 0));
        make_attr_ints(&m, n, "class_nodeids", I(1, 2));
        make_attr_ints(&m, n, "class_ids", I(0, 1));
        attr_floats("class_weights", F(1, 1));
        make_attr_ints(&m, n, "classlabels_int64s", I(7, 8));
        in(NORI_FLOAT, "2 1", V(0, 1));
        run(2);
        is(0, NORI_INT64, "2", V(7, 8));
        is(1, NORI_FLOAT, "2 2", V(1, 0, 0, 1));
    }

    form(ML, 1, "ArrayFeatureExtractor", "a b", "y");
    in(NORI_FLOAT, "2 3", V(1, 2, 3, 4, 5, 6));
    in(NORI_INT64, "2", V(2, 0));
    gives(NORI_FLOAT, "2 2", V(3, 1, 6, 4));

    form(ML, 1, "FeatureVectorizer", "a b", "y");
    make_attr_ints(&m, n, "inputdimensions", I(2, 1));
    in(NORI_FLOAT, "1 2", V(1, 2));
    in(NORI_FLOAT, "1 1", V(3));
    gives(NORI_FLOAT, "1 3", V(1, 2, 3));

    nori_string text[] = {{"b", 1}, {"x", 1}, {"a", 1}};
    form(ML, 1, "LabelEncoder", "a", "y");
    attr_texts("classes_strings", "a b");
    make_attr_int(&m, n, "default_int64", -1);
    make_input(&m, &m.graph, "a", NORI_STRING, "3");
    assert_int_equal(nori_tensor_strings(NULL, 1, (int64_t[]){3}, text, 3, &fed[0], NULL), NORI_OK);
    n_fed = 1;
    gives(NORI_INT64, "3", V(1, -1, 0));

    form(ML, 1, "DictVectorizer", "a", "y"); /* a map in, a row out */
    attr_texts("string_vocabulary", "a b c");
    make_input(&m, &m.graph, "a", NORI_FLOAT, "");
    nori__pb_type value = *m.graph.inputs.items[0].type;
    *m.graph.inputs.items[0].type =
        (nori__pb_type){.kind = NORI_KIND_MAP, .elem = NORI_STRING, .of = &value};
    nori_tensor *items[2] = {NULL, NODE_F(NODE_DIMS(1), 2)};
    assert_int_equal(nori_tensor_strings(NULL, 1, (int64_t[]){1}, text, 1, &items[0], NULL), NORI_OK);
    assert_int_equal(nori_tensor_group(NULL, NORI_KIND_MAP, items, 2, 0, NULL, &fed[0], NULL), NORI_OK);
    nori_tensor_free(items[0]);
    nori_tensor_free(items[1]);
    n_fed = 1;
    run(1);
    assert_int_equal(made[0]->count, 3);
    assert_true(((const float *)made[0]->data)[1] == 2 && ((const float *)made[0]->data)[0] == 0);
    nori_tensor_free(made[0]);
}

/* Gemm with an activation, as optimizers of com.microsoft write it. */
static void fused_gemm(void **state)
{
    (void)state;
    form("com.microsoft", 1, "FusedGemm", "a b c", "y");
    make_attr_text(&m, n, "activation", "Relu");
    make_attr_int(&m, n, "transB", 1);
    in(NORI_FLOAT, "1 2", V(1, -2));
    in(NORI_FLOAT, "2 2", V(1, 0, 3, 1));
    in(NORI_FLOAT, "2", V(0, -2));
    gives(NORI_FLOAT, "1 2", V(1, 0)); /* 1 and 3 - 2 - 2 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broadcast), cmocka_unit_test(attributes),
        cmocka_unit_test(pictures),  cmocka_unit_test(norms_and_pools),
        cmocka_unit_test(loop),      cmocka_unit_test(chance),
        cmocka_unit_test(machine_learning), cmocka_unit_test(fused_gemm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
