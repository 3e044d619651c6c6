/* test_new_forms.c: operators of newer operator sets by value, worked out by hand, so that what is
 * claimed of them holds where no backend cases are at hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "form.h"

static void bits(void **state)
{
    static const char *const ops[] = {"BitwiseAnd", "BitwiseOr", "BitwiseXor"};
    static const double want[][2] = {{8, 2}, {14, 14}, {6, 12}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        form("", 18, ops[i], "a b", "y");
        in(NORI_UINT8, "2", V(12, 10));
        in(NORI_UINT8, "2", V(10, 6));
        gives(NORI_UINT8, "2", want[i]);
    }
    form("", 18, "BitwiseNot", "a", "y");
    in(NORI_UINT8, "2", V(12, 255));
    gives(NORI_UINT8, "2", V(243, 0));
}

static void elements(void **state)
{
    (void)state;
    for (int64_t opset = 18; opset <= 22; opset += 4) {
        form("", opset, "Mish", "a", "y"); /* x tanh(log(1 + e^x)) */
        in(NORI_FLOAT, "3", V(0, 1, -1));
        gives(NORI_FLOAT, "3", V(0, 0.8650983883, -0.3034014613));
    }
    form("", 1, "LpNormalization", "a", "y");
    in(NORI_FLOAT, "2", V(3, 4));
    gives(NORI_FLOAT, "2", V(0.6, 0.8));

    form("", 21, "GroupNormalization", "a b c", "y"); /* a scale a channel */
    make_attr_int(&m, n, "num_groups", 2);
    attr_float("epsilon", 0);
    in(NORI_FLOAT, "1 4 1", V(1, 3, 2, 6));
    in(NORI_FLOAT, "4", V(1, 2, 3, 4));
    in(NORI_FLOAT, "4", V(0, 0, 0, 0));
    gives(NORI_FLOAT, "1 4 1", V(-1, 2, -3, 4));
}

static void pictures(void **state)
{
    (void)state;
    static const int64_t pools[] = {2, 11, 18};
    for (int i = 0; i < 3; i++) {
        form("", pools[i], "LpPool", "a", "y");
        make_attr_ints(&m, n, "kernel_shape", I(2));
        make_attr_int(&m, n, "p", 1);
        in(NORI_FLOAT, "1 1 3", V(3, -4, 1));
        gives(NORI_FLOAT, "1 1 2", V(7, 5));
    }
    form("", 18, "CenterCropPad", "a b", "y");
    in(NORI_FLOAT, "5", V(1, 2, 3, 4, 5));
    in(NORI_INT64, "1", V(3));
    gives(NORI_FLOAT, "3", V(2, 3, 4));

    form("", 18, "Col2Im", "a b c", "y"); /* two columns of two that overlap by one */
    in(NORI_FLOAT, "1 2 2", V(1, 2, 3, 4));
    in(NORI_INT64, "2", V(1, 3));
    in(NORI_INT64, "2", V(1, 2));
    gives(NORI_FLOAT, "1 1 1 3", V(1, 5, 4));

    for (int64_t opset = 19; opset <= 22; opset += 3) {
        form("", opset, "DeformConv", "a b c", "y"); /* half a row down; outside is 0 */
        in(NORI_FLOAT, "1 1 2 2", V(1, 2, 3, 4));
        in(NORI_FLOAT, "1 1 1 1", V(2));
        in(NORI_FLOAT, "1 2 2 2", V(0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0));
        gives(NORI_FLOAT, "1 1 2 2", V(4, 6, 3, 4));
    }
    form("", 20, "AffineGrid", "a b", "y"); /* the identity: corners of -1 and 1, as x, y */
    make_attr_int(&m, n, "align_corners", 1);
    in(NORI_FLOAT, "1 2 3", V(1, 0, 0, 0, 1, 0));
    in(NORI_INT64, "4", V(1, 1, 2, 2));
    gives(NORI_FLOAT, "1 2 2 2", V(-1, -1, 1, -1, -1, 1, 1, 1));
}

static void attention(void **state)
{
    (void)state;
    for (int64_t opset = 23; opset <= 24; opset++) {
        form("", opset, "Attention", "a b c", "y"); /* alike scores: the mean; else softmax */
        in(NORI_FLOAT, "1 1 2 1", V(0, 1));
        in(NORI_FLOAT, "1 1 2 1", V(0, 1.0986122887)); /* e^1.0986 = 3 */
        in(NORI_FLOAT, "1 1 2 1", V(1, 3));
        gives(NORI_FLOAT, "1 1 2 1", V(2, 2.5));
    }
    form("", 23, "RotaryEmbedding", "a b c", "y"); /* a quarter turn */
    in(NORI_FLOAT, "1 1 1 2", V(1, 2));
    in(NORI_FLOAT, "1 1 1", V(0));
    in(NORI_FLOAT, "1 1 1", V(1));
    gives(NORI_FLOAT, "1 1 1 2", V(-2, 1));

    form("", 24, "TensorScatter", "a b c", "y");
    in(NORI_FLOAT, "1 1 3 1", V(1, 2, 3));
    in(NORI_FLOAT, "1 1 1 1", V(9));
    in(NORI_INT64, "1", V(1));
    gives(NORI_FLOAT, "1 1 3 1", V(1, 9, 3));

    form("", 27, "CausalConvWithState", "a b", "y z"); /* nothing before the first */
    in(NORI_FLOAT, "1 1 3", V(1, 2, 3));
    in(NORI_FLOAT, "1 1 2", V(1, 1));
    run(2);
    is(0, NORI_FLOAT, "1 1 3", V(1, 3, 5));
    is(1, NORI_FLOAT, "1 1 1", V(3));
}

/* A 1-D tensor as an attribute: floats, or uint8. */
static void attr_tensor(const char *name, nori_type type, size_t count, const double *v)
{
    nori__pb_tensor *t = nori__arena_alloc(&m.arena, sizeof(*t));
    assert_non_null(t);
    t->data_type = type;
    *MAKE_ADD(&m, t->dims) = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        if (type == NORI_FLOAT) {
            *MAKE_ADD(&m, t->floats) = (float)v[i];
        } else {
            *MAKE_ADD(&m, t->ints) = (int64_t)v[i];
        }
    }
    make_attr(&m, n, name, NORI__ATTR_TENSOR)->t = t;
}

static void newest(void **state)
{
    (void)state;
    form("", 27, "LinearAttention", "a b c", "y z"); /* the state sums k v: 3, then 3 + 4 */
    make_attr_int(&m, n, "q_num_heads", 1);
    make_attr_int(&m, n, "kv_num_heads", 1);
    make_attr_text(&m, n, "update_rule", "linear");
    in(NORI_FLOAT, "1 2 1", V(1, 2));
    in(NORI_FLOAT, "1 2 1", V(1, 1));
    in(NORI_FLOAT, "1 2 1", V(3, 4));
    run(2);
    is(0, NORI_FLOAT, "1 2 1", V(3, 14));
    is(1, NORI_FLOAT, "1 1 1 1", V(7));

    form("", 28, "SwiGLU", "a b", "y"); /* a sigmoid(a) b */
    in(NORI_FLOAT, "2", V(1, 0));
    in(NORI_FLOAT, "2", V(2, 5));
    gives(NORI_FLOAT, "2", V(1.4621171573, 0));

    form("ai.onnx.preview", 1, "FlexAttention", "a b c", "y");
    in(NORI_FLOAT, "1 1 2 1", V(0, 1));
    in(NORI_FLOAT, "1 1 2 1", V(0, 1.0986122887));
    in(NORI_FLOAT, "1 1 2 1", V(1, 3));
    gives(NORI_FLOAT, "1 1 2 1", V(2, 2.5));

    form("ai.onnx.ml", 5, "TreeEnsemble", "a", "y"); /* at most 0.5: the first leaf */
    make_attr_ints(&m, n, "tree_roots", I(0));
    make_attr_ints(&m, n, "nodes_featureids", I(0));
    attr_tensor("nodes_splits", NORI_FLOAT, F(0.5));
    attr_tensor("nodes_modes", NORI_UINT8, F(0));
    make_attr_ints(&m, n, "nodes_truenodeids", I(0));
    make_attr_ints(&m, n, "nodes_trueleafs", I(1));
    make_attr_ints(&m, n, "nodes_falsenodeids", I(1));
    make_attr_ints(&m, n, "nodes_falseleafs", I(1));
    make_attr_ints(&m, n, "leaf_targetids", I(0, 0));
    attr_tensor("leaf_weights", NORI_FLOAT, F(10, 20));
    make_attr_int(&m, n, "n_targets", 1);
    in(NORI_FLOAT, "3 1", V(0, 0.5, 1));
    gives(NORI_FLOAT, "3 1", V(10, 10, 20));
}

static void others(void **state)
{
    (void)state;
    form("", 24, "SplitToSequence", "a b", "y");
    in(NORI_FLOAT, "3", V(1, 2, 3));
    in(NORI_INT64, "", V(2));
    run(1);
    assert_int_equal(nori_tensor_item_count(made[0]), 2);
    const float *last = nori_tensor_const_data(nori_tensor_item(made[0], 1));
    assert_int_equal(nori_tensor_elements(nori_tensor_item(made[0], 1)), 1);
    assert_true(last[0] == 3);
    nori_tensor_free(made[0]);

    double *quarter = calloc(10000, sizeof(double)), ones = 0;
    for (int i = 0; i < 10000; i++) {
        quarter[i] = 0.25;
    }
    form("", 22, "Bernoulli", "a", "y");
    in(NORI_FLOAT, "10000", quarter);
    free(quarter);
    run(1);
    for (int i = 0; i < 10000; i++) {
        float v = ((const float *)nori_tensor_const_data(made[0]))[i];
        assert_true(v == 0 || v == 1);
        ones += (double)v;
    }
    assert_true(fabs(ones - 2500) < 5 * sqrt(10000 * 0.25 * 0.75));
    nori_tensor_free(made[0]);

    form("ai.onnx.ml", 1, "Binarizer", "a", "y");
    attr_float("threshold", 1);
    in(NORI_FLOAT, "3", V(0.5, 1, 2));
    gives(NORI_FLOAT, "3", V(0, 0, 1));

    form("ai.onnx.ml", 4, "LabelEncoder", "a", "y");
    make_attr_ints(&m, n, "keys_int64s", I(1, 2));
    attr_floats("values_floats", F(0.5, 1.5));
    attr_float("default_float", -1);
    in(NORI_INT64, "2", V(2, 3));
    gives(NORI_FLOAT, "2", V(1.5, -1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits), cmocka_unit_test(elements), cmocka_unit_test(pictures),
        cmocka_unit_test(attention), cmocka_unit_test(newest), cmocka_unit_test(others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
