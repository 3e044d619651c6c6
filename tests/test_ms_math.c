/* test_ms_math.c: com.microsoft activations, products, crops and normalizations of floats, by hand
 * or from closed forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op_harness.h"

#define MS "com.microsoft"
#define V(...) ((const double[]){__VA_ARGS__})

static void activations(void **state)
{
    (void)state;
    op o;
    op_begin(&o, MS, "Gelu", 1); /* x * Phi(x) */
    op_in(&o, NORI_DOUBLE, "3", V(1, -1, 0));
    op_expect(&o, 0, NORI_DOUBLE, "3", V(0.8413447460685429, -0.15865525393145707, 0), 1e-15);
    op_end(&o);
    op_begin(&o, MS, "BiasGelu", 1);
    op_in(&o, NORI_FLOAT, "2x2", V(0, 1, -1, 3));
    op_in(&o, NORI_FLOAT, "2", V(1, -2));
    op_expect(&o, 0, NORI_FLOAT, "2x2",
              V(0.8413447460685429, -0.15865525393145707, 0, 0.8413447460685429), 1e-6);
    op_end(&o);
    op_begin(&o, MS, "QuickGelu", 1); /* sigmoid(ln 3) is 3/4 */
    op_in(&o, NORI_FLOAT, "3", V(2, -2, INFINITY));
    op_float(&o, "alpha", (float)(0.5 * log(3)));
    op_expect(&o, 0, NORI_FLOAT, "3", V(1.5, -0.5, INFINITY), 1e-6);
    op_end(&o);
    op_begin(&o, MS, "QuickGelu", 1);
    op_in(&o, NORI_DOUBLE, "1", V(1));
    op_expect(&o, 0, NORI_DOUBLE, "1", V(1 / (1 + exp(-(double)1.702f))), 1e-15);
    op_end(&o);
}

/* A of shape rows x columns (or turned), with numbers that make every place different. */
static void fused_product(bool turn_a, bool turn_b, bool batch_a, bool batch_b)
{
    enum { B = 2, M = 2, K = 3, N = 4 };
    double a[B * M * K], b[B * K * N], want[B * M * N];
    char shape_a[16], shape_b[16];
    int64_t rows_a = turn_a ? K : M, columns_a = turn_a ? M : K;
    int64_t rows_b = turn_b ? N : K, columns_b = turn_b ? K : N;
    for (int64_t z = 0; z < B; z++) {
        for (int64_t i = 0; i < M; i++) {
            for (int64_t k = 0; k < K; k++) {
                int64_t r = turn_a ? k : i, c = turn_a ? i : k;
                int64_t at = batch_a ? (r * B + z) * columns_a + c : (z * rows_a + r) * columns_a + c;
                a[at] = (double)(z * 7 + i * 3 - k);
            }
        }
        for (int64_t k = 0; k < K; k++) {
            for (int64_t j = 0; j < N; j++) {
                int64_t r = turn_b ? j : k, c = turn_b ? k : j;
                int64_t at = batch_b ? (r * B + z) * columns_b + c : (z * rows_b + r) * columns_b + c;
                b[at] = (double)(k * k - z + j * 2);
            }
        }
        for (int64_t i = 0; i < M; i++) {
            for (int64_t j = 0; j < N; j++) {
                double sum = 0;
                for (int64_t k = 0; k < K; k++) {
                    sum += (double)(z * 7 + i * 3 - k) * (double)(k * k - z + j * 2);
                }
                want[(z * M + i) * N + j] = -0.5 * sum;
            }
        }
    }
    snprintf(shape_a, sizeof shape_a, "%dx%dx%d", (int)(batch_a ? rows_a : B),
             (int)(batch_a ? B : rows_a), (int)columns_a);
    snprintf(shape_b, sizeof shape_b, "%dx%dx%d", (int)(batch_b ? rows_b : B),
             (int)(batch_b ? B : rows_b), (int)columns_b);
    op o;
    op_begin(&o, MS, "FusedMatMul", 1);
    op_in(&o, NORI_FLOAT, shape_a, a);
    op_in(&o, NORI_FLOAT, shape_b, b);
    op_int(&o, "transA", turn_a);
    op_int(&o, "transB", turn_b);
    op_int(&o, "transBatchA", batch_a);
    op_int(&o, "transBatchB", batch_b);
    op_float(&o, "alpha", -0.5f);
    op_expect(&o, 0, NORI_FLOAT, "2x2x4", want, 0);
    op_end(&o);
}

static void products(void **state)
{
    (void)state;
    for (int bits = 0; bits < 16; bits++) {
        fused_product(bits & 1, bits & 2, bits & 4, bits & 8);
    }
    op o;
    op_begin(&o, MS, "TransposeMatMul", 1); /* a vector is never turned */
    op_in(&o, NORI_DOUBLE, "2", V(1, 2));
    op_in(&o, NORI_DOUBLE, "3x2", V(1, 2, 3, 4, 5, 6));
    op_int(&o, "transA", 1);
    op_int(&o, "transB", 1);
    op_expect(&o, 0, NORI_DOUBLE, "3", V(5, 11, 17), 0);
    op_end(&o);
    op_begin(&o, MS, "FusedMatMul", 1);
    op_in(&o, NORI_FLOAT, "2x3", NULL);
    op_in(&o, NORI_FLOAT, "3x2", NULL);
    op_int(&o, "transB", 1);
    assert_int_equal(op_status(&o), NORI_ERROR_MODEL);
    op_end(&o);
    op_begin(&o, MS, "Inverse", 1); /* the second needs its rows swapped */
    op_in(&o, NORI_FLOAT, "2x2x2", V(1, 2, 3, 4, 0, 2, 4, 0));
    op_expect(&o, 0, NORI_FLOAT, "2x2x2", V(-2, 1, 1.5, -0.5, 0, 0.25, 0.5, 0), 1e-6);
    op_end(&o);
    op_begin(&o, MS, "Inverse", 1);
    op_in(&o, NORI_FLOAT, "2x2", V(1, 2, 2, 4));
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    assert_non_null(strstr(o.err.message, "no inverse"));
    op_end(&o);
}

static void crops(void **state)
{
    (void)state;
    op o;
    /* 3 x 3 of 0 .. 8: the whole as it is; the middle of the upper left; and what lies outside. */
    for (int nearest = 0; nearest < 2; nearest++) {
        op_begin(&o, MS, "CropAndResize", 1);
        op_in(&o, NORI_FLOAT, "1x1x3x3", V(0, 1, 2, 3, 4, 5, 6, 7, 8));
        op_in(&o, NORI_FLOAT, "3x4", V(0, 0, 1, 1, 0, 0, 0.5, 0.5, -1, 0.5, 0, 1));
        op_in(&o, NORI_INT32, "3", V(0, 0, 0));
        op_in(&o, NORI_INT32, "2", V(3, 3));
        op_float(&o, "extrapolation_value", -9);
        op_text(&o, "mode", nearest ? "nearest" : "bilinear");
        op_expect(&o, 0, NORI_FLOAT, "3x1x3x3",
                  nearest ? V(0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 1, 3, 4, 4, 3, 4, 4, /* halves up */
                              -9, -9, -9, -9, -9, -9, 1, 2, 2)
                          : V(0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, -9, -9,
                              -9, -9, -9, -9, 1, 1.5, 2),
                  1e-6);
        op_end(&o);
    }
    op_begin(&o, MS, "CropAndResize", 1); /* one output: the middle of the box; image 1 of 2 */
    op_in(&o, NORI_DOUBLE, "2x1x1x3", V(0, 1, 2, 10, 20, 40));
    op_in(&o, NORI_DOUBLE, "1x4", V(0, 0.5, 0, 1));
    op_in(&o, NORI_INT32, "1", V(1));
    op_in(&o, NORI_INT32, "2", V(1, 1));
    op_expect(&o, 0, NORI_DOUBLE, "1x1x1x1", V(30), 1e-12);
    op_end(&o);
    op_begin(&o, MS, "CropAndResize", 1);
    op_in(&o, NORI_FLOAT, "1x1x1x1", V(0));
    op_in(&o, NORI_FLOAT, "1x4", V(0, 0, 0, 0));
    op_in(&o, NORI_INT32, "1", V(1));
    op_in(&o, NORI_INT32, "2", V(1, 1));
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    op_end(&o);
}

static void norms(void **state)
{
    (void)state;
    op o;
    /* Sums {3, 4} and {6, 8}; root mean squares 5 / sqrt(2) and 10 / sqrt(2). */
    double root = sqrt(2);
    op_begin(&o, MS, "SkipSimplifiedLayerNormalization", 1);
    op_outputs(&o, 4);
    o.made[1] = NULL;
    o.made[2] = NULL;
    op_in(&o, NORI_FLOAT, "2x2", V(1, 2, 3, 4));
    op_in(&o, NORI_FLOAT, "2x2", V(1, 1, 2, 3));
    op_in(&o, NORI_FLOAT, "2", V(1, 10));
    op_in(&o, NORI_FLOAT, "2", V(1, 1));
    op_expect(&o, 0, NORI_FLOAT, "2x2",
              V(0.6 * root, 8 * root, 0.6 * root, 8 * root), 1e-6);
    op_expect(&o, 3, NORI_FLOAT, "2x2", V(3, 4, 6, 8), 0);
    op_end(&o);
    op_begin(&o, "", "SimplifiedLayerNormalization", 1);
    op_outputs(&o, 2);
    op_in(&o, NORI_FLOAT, "1x2", V(3, 4));
    op_in(&o, NORI_FLOAT, "2", V(1, 10));
    op_float(&o, "epsilon", 0);
    op_expect(&o, 0, NORI_FLOAT, "1x2", V(0.6 * root, 8 * root), 1e-6);
    op_expect(&o, 1, NORI_FLOAT, "1x1", V(root / 5), 1e-6);
    op_end(&o);
    /* skip without the batch dimension is repeated */
    op_begin(&o, MS, "SkipLayerNormalization", 1);
    op_in(&o, NORI_FLOAT, "2x1x2", V(0, 2, 4, 10));
    op_in(&o, NORI_FLOAT, "1x2", V(1, 1));
    op_in(&o, NORI_FLOAT, "2", V(1, 2));
    op_expect(&o, 0, NORI_FLOAT, "2x1x2", V(-1, 2, -1, 2), 1e-6);
    op_end(&o);
}

static void fused_fails(nori_type type, const char *activation, nori_status status,
                        const char *says)
{
    static nori__shape s[2 * OP_MOST];
    for (int conv = 0; conv < 2; conv++) {
        op o;
        op_begin(&o, MS, conv ? "FusedConv" : "FusedGemm", 1);
        op_in(&o, type, conv ? "1x1x2x2" : "2x2", NULL);
        op_in(&o, type, conv ? "1x1x1x1" : "2x2", NULL);
        op_text(&o, "activation", activation);
        nori__infer c = {.node = &o.node, .in = s, .out = s + OP_MOST, .err = &o.err};
        op__shapes(&o, true, s);
        assert_int_equal(o.node.op->infer(&c), status);
        assert_non_null(strstr(o.err.message, says));
        assert_true(status != NORI_ERROR_UNSUPPORTED || strstr(o.err.hint, "run") != NULL);
        op_end(&o);
    }
}

static void fused(void **state)
{
    (void)state;
    op o;
    op_begin(&o, MS, "FusedGemm", 1); /* 1 2; 3 4 times 1 -1; 1 -1 plus -4: -1 -7; 3 -11 */
    op_in(&o, NORI_FLOAT16, "2x2", V(1, 2, 3, 4));
    op_in(&o, NORI_FLOAT16, "2x2", V(1, -1, 1, -1));
    op_in(&o, NORI_FLOAT16, "1", V(-4));
    op_text(&o, "activation", "LeakyRelu");
    op_float(&o, "activation_alpha", 0.5f);
    op_expect(&o, 0, NORI_FLOAT16, "2x2", V(-0.5, -3.5, 3, -5.5), 0);
    op_end(&o);
    fused_fails(NORI_FLOAT, "Softmax", NORI_ERROR_UNSUPPORTED, "activation \"Softmax\"");
    fused_fails(NORI_DOUBLE, "Relu", NORI_ERROR_UNSUPPORTED, "of float64");
    fused_fails(NORI_FLOAT, "Clip", NORI_ERROR_MODEL, "limits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations),
        cmocka_unit_test(products),
        cmocka_unit_test(crops),
        cmocka_unit_test(norms),
        cmocka_unit_test(fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
