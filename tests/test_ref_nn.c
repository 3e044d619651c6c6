/* test_ref_nn.c: reference kernels of convolution, products, pooling, quantization, normalisation:
 * values worked out by hand or by the plain formula, empty tensors, NaN, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "one_node.h"

/* ---- convolution ---- */

/* ConvTranspose by its definition: every input adds its kernel to the output. */
static void transposed(int n, int k, int stride, int dilation, int begin, int out, double *y)
{
    for (int i = 0; i < out * out; i++) {
        y[i] = 0;
    }
    for (int i = 0; i < n * n * k * k; i++) {
        int a = i / k / k / n, b = i / k / k % n, u = i / k % k, v = i % k;
        int r = a * stride + u * dilation - begin, c = b * stride + v * dilation - begin;
        if (r >= 0 && r < out && c >= 0 && c < out) {
            y[r * out + c] += ((a * n + b) % 7 - 3) * ((u * k + v) % 7 - 3);
        }
    }
}

/* SAME_*: input times stride; output_padding takes part in the pads alone. */
static void test_transpose_same(void **state)
{
    (void)state;
    static const struct {
        int n, k, stride, dilation, extra;
    } cases[] = {{2, 3, 1, 1, 0}, {5, 3, 2, 1, 0}, {5, 3, 2, 1, 1}, {4, 3, 2, 2, 0},
                 {4, 3, 3, 2, 1}, {3, 2, 2, 1, 0}, {3, 4, 2, 1, 1}};
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        for (int upper = 0; upper < 2; upper++) {
            one o;
            double want[400];
            int n = cases[i].n, k = cases[i].k, s = cases[i].stride, d = cases[i].dilation;
            int out = n * s, total = (n - 1) * s + cases[i].extra + (k - 1) * d + 1 - out;
            total = total > 0 ? total : 0;
            int begin = upper ? total / 2 : total - total / 2;
            transposed(n, k, s, d, begin, out, want);
            one_begin(&o, "", "ConvTranspose", 1, 0);
            one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, n, n), NULL);
            one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, k, k), NULL);
            one_s(&o, "auto_pad", upper ? "SAME_UPPER" : "SAME_LOWER");
            int64_t strides[2] = {s, s}, dilations[2] = {d, d}, extra[2];
            extra[0] = extra[1] = cases[i].extra;
            one_ints(&o, "strides", 2, strides);
            one_ints(&o, "dilations", 2, dilations);
            one_ints(&o, "output_padding", 2, extra);
            one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 1, out, out), want);
        }
    }
}

static void test_conv(void **state)
{
    (void)state;
    one o;
    /* 1-D, two groups, dilation 2, pad 1 and bias. */
    one_begin(&o, "", "Conv", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 2, 4), ONE_F(1, 2, 3, 4, 5, 6, 7, 8));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 1, 2), ONE_F(1, 10, 2, -1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(0.5, 0));
    one_i(&o, "group", 2);
    one_ints(&o, "dilations", 1, (int64_t[]){2});
    one_ints(&o, "pads", 2, (int64_t[]){1, 1});
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 2, 4),
               ONE_F(20.5, 31.5, 42.5, 3.5, -6, 3, 4, 14));
    /* 3-D of all ones counts the window. */
    one_begin(&o, "", "Conv", 1, 0);
    double ones[27], want[8];
    for (int i = 0; i < 27; i++) {
        ones[i] = 1;
    }
    for (int i = 0; i < 8; i++) {
        want[i] = 8;
    }
    one_input(&o, NORI_FLOAT16, ONE_DIMS(1, 1, 3, 3, 3), ones);
    one_input(&o, NORI_FLOAT16, ONE_DIMS(1, 1, 2, 2, 2), ones);
    one_expect(&o, NORI_FLOAT16, ONE_DIMS(1, 1, 2, 2, 2), want);
    /* Rows longer than a block. */
    one_begin(&o, "", "Conv", 1, 0);
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 1, 1400), NULL);
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 1, 3), ONE_F(1, 1, 1));
    one_s(&o, "auto_pad", "SAME_UPPER");
    one_ok(&o);
    one_shape(&o, 0, NORI_DOUBLE, ONE_DIMS(1, 1, 1400));
    for (int i = 1; i < 1399; i++) {
        double sum = (i - 1) % 7 + i % 7 + (i + 1) % 7 - 9;
        assert_true(nori__tensor_get_f64(o.results[0], i) == sum);
    }
    one_end(&o);
}

static void test_fused_conv(void **state)
{
    (void)state;
    one o;
    one_begin(&o, "com.microsoft", "FusedConv", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 3), ONE_F(-1, 2, 3));
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 1), ONE_F(2));
    one_input(&o, NORI_FLOAT, ONE_DIMS(1), ONE_F(1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 3), ONE_F(0.5, -10, 0)); /* added before */
    one_s(&o, "activation", "Relu");
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 1, 3), ONE_F(0, 0, 7));
}

static void test_conv_errors(void **state)
{
    (void)state;
    one o;
    one_begin(&o, "", "Conv", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 3, 5, 5), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 2, 3, 3), NULL);
    one_fails(&o, NORI_ERROR_MODEL, "3 channels in 1 groups");
    one_begin(&o, "", "Conv", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 2), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 3), NULL);
    one_fails(&o, NORI_ERROR_MODEL, "does not fit");
    one_begin(&o, "", "Conv", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 5), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 3), NULL);
    one_ints(&o, "strides", 1, (int64_t[]){0});
    one_fails(&o, NORI_ERROR_MODEL, "strides[0] is 0");
    one_begin(&o, "", "Conv", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 5), NULL);
    one_input(&o, NORI_DOUBLE, ONE_DIMS(1, 1, 3), NULL);
    one_fails(&o, NORI_ERROR_DATA, "float64");
}

/* ---- integers ---- */

/* 255 x 127 everywhere: pairs of products pass 16 bits. */
static void test_integer_exact(void **state)
{
    (void)state;
    static const int sizes[] = {2, 4, 64, 40000};
    for (size_t i = 0; i < NORI__COUNT(sizes); i++) {
        int k = sizes[i];
        one o;
        one_begin(&o, "", "MatMulInteger", 1, 0);
        nori_tensor *a = one_in(&o, NORI_UINT8, ONE_DIMS(1, k));
        nori_tensor *b = one_in(&o, k == 40000 ? NORI_UINT8 : NORI_INT8, ONE_DIMS(k, 1));
        memset(a->data, 255, a->bytes);
        memset(b->data, k == 40000 ? 255 : 127, b->bytes);
        /* 40000 * 65025 = 2601000000 wraps as int32 does. */
        double want = k == 40000 ? 2601000000.0 - 4294967296.0 : 255.0 * 127 * k;
        one_expect(&o, NORI_INT32, ONE_DIMS(1, 1), &want);
    }
    one o; /* padding is the zero point */
    one_begin(&o, "", "ConvInteger", 1, 0);
    one_input(&o, NORI_UINT8, ONE_DIMS(1, 1, 3), ONE_F(2, 3, 4));
    one_input(&o, NORI_UINT8, ONE_DIMS(1, 1, 3), ONE_F(1, 1, 1));
    one_scalar(&o, NORI_UINT8, 1);
    one_ints(&o, "pads", 2, (int64_t[]){1, 1});
    one_expect(&o, NORI_INT32, ONE_DIMS(1, 1, 3), ONE_F(3, 6, 5));
}

static void test_requantize(void **state)
{
    (void)state;
    one o;
    /* Halves to even, saturation, zero points of rows and columns. */
    one_begin(&o, "", "QLinearMatMul", 1, 0);
    one_input(&o, NORI_UINT8, ONE_DIMS(3, 1), ONE_F(11, 13, 15));
    one_scalar(&o, NORI_FLOAT, 0.5);
    one_scalar(&o, NORI_UINT8, 10);
    one_input(&o, NORI_INT8, ONE_DIMS(1, 3), ONE_F(1, 101, -99));
    one_input(&o, NORI_FLOAT, ONE_DIMS(3), ONE_F(1, 1, 2));
    one_input(&o, NORI_INT8, ONE_DIMS(3), ONE_F(0, 1, 1));
    one_scalar(&o, NORI_FLOAT, 1);
    one_scalar(&o, NORI_UINT8, 3);
    one_expect(&o, NORI_UINT8, ONE_DIMS(3, 3), ONE_F(3, 53, 0, 5, 153, 0, 5, 253, 0));
    one_begin(&o, "", "QLinearConv", 1, 0);
    one_input(&o, NORI_UINT8, ONE_DIMS(1, 1, 2), ONE_F(5, 9));
    one_scalar(&o, NORI_FLOAT, 0.5);
    one_scalar(&o, NORI_UINT8, 4);
    one_input(&o, NORI_INT8, ONE_DIMS(2, 1, 1), ONE_F(3, -3));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(1, 0.5));
    one_input(&o, NORI_INT8, ONE_DIMS(2), ONE_F(0, 0));
    one_scalar(&o, NORI_FLOAT, 0.25);
    one_scalar(&o, NORI_INT8, -1);
    one_input(&o, NORI_INT32, ONE_DIMS(2), ONE_F(2, 1000));
    /* (1 * 3 + 2) * 2 - 1, (5 * 3 + 2) * 2 - 1, saturated twice */
    one_expect(&o, NORI_INT8, ONE_DIMS(1, 2, 2), ONE_F(9, 33, 127, 127));
    one_begin(&o, "com.microsoft", "QGemm", 1, 0);
    one_input(&o, NORI_UINT8, ONE_DIMS(1, 2), ONE_F(3, 5));
    one_scalar(&o, NORI_FLOAT, 0.5);
    one_scalar(&o, NORI_UINT8, 1);
    one_input(&o, NORI_UINT8, ONE_DIMS(2, 2), ONE_F(10, 20, 30, 40)); /* transposed */
    one_scalar(&o, NORI_FLOAT, 2);
    one_scalar(&o, NORI_UINT8, 10);
    one_input(&o, NORI_INT32, ONE_DIMS(2), ONE_F(-4, 7));
    one_i(&o, "transB", 1);
    /* (2 * 0 + 4 * 10 - 4), (2 * 20 + 4 * 30 + 7) */
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 2), ONE_F(36, 167));
    one_begin(&o, "com.microsoft", "QLinearAdd", 1, 0);
    one_input(&o, NORI_INT8, ONE_DIMS(2, 2), ONE_F(1, 2, 3, 100));
    one_scalar(&o, NORI_FLOAT, 0.5);
    one_scalar(&o, NORI_INT8, 1);
    one_input(&o, NORI_INT8, ONE_DIMS(2), ONE_F(10, -128));
    one_scalar(&o, NORI_FLOAT, 1);
    one_scalar(&o, NORI_INT8, 0);
    one_scalar(&o, NORI_FLOAT, 1);
    one_scalar(&o, NORI_INT8, 5);
    /* -127.5 + 5 rounds to -128 + 5 */
    one_expect(&o, NORI_INT8, ONE_DIMS(2, 2), ONE_F(15, -123, 16, -73));
}

static void test_quantize(void **state)
{
    (void)state;
    one o;
    one_begin(&o, "", "QuantizeLinear", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(6), ONE_F(0.5, 1.5, -0.5, 300, -300, NAN));
    one_scalar(&o, NORI_FLOAT, 1);
    one_scalar(&o, NORI_INT8, 1);
    one_expect(&o, NORI_INT8, ONE_DIMS(6), ONE_F(1, 3, 1, 127, -128, -128));
    one_begin(&o, "", "QuantizeLinear", 1, 0); /* along axis 0 */
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 2), ONE_F(1, 2, 3, 4));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(0.5, 2));
    one_input(&o, NORI_UINT16, ONE_DIMS(2), ONE_F(0, 7));
    one_i(&o, "axis", 0);
    one_expect(&o, NORI_UINT16, ONE_DIMS(2, 2), ONE_F(2, 4, 9, 9));
    one_begin(&o, "", "QuantizeLinear", 1, 0); /* blocks of 2 along axis 1, the last short */
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 3), ONE_F(1, 20, 3));
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 2), ONE_F(1, 0.5));
    one_input(&o, NORI_INT4, ONE_DIMS(1, 2), ONE_F(0, 0));
    one_i(&o, "block_size", 2);
    one_expect(&o, NORI_INT4, ONE_DIMS(1, 3), ONE_F(1, 7, 6));
    one_begin(&o, "", "QuantizeLinear", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(3), ONE_F(1, 1.3, 1e6));
    one_scalar(&o, NORI_FLOAT, 2);
    one_i(&o, "output_dtype", NORI_FLOAT8E4M3FN);
    one_expect(&o, NORI_FLOAT8E4M3FN, ONE_DIMS(3), ONE_F(0.5, 0.625, 448));
    one_begin(&o, "", "DequantizeLinear", 1, 0);
    one_input(&o, NORI_UINT4, ONE_DIMS(2, 2), ONE_F(0, 15, 7, 8));
    one_input(&o, NORI_FLOAT16, ONE_DIMS(2, 1), ONE_F(0.5, 2));
    one_input(&o, NORI_UINT4, ONE_DIMS(2, 1), ONE_F(1, 8));
    one_i(&o, "block_size", 2);
    one_expect(&o, NORI_FLOAT16, ONE_DIMS(2, 2), ONE_F(-0.5, 7, -2, 0));
    for (int precision = 0; precision < 2; precision++) { /* 64.67, of which bfloat16 makes 64.5 */
        one_begin(&o, "", "QuantizeLinear", 1, 0);
        one_input(&o, NORI_FLOAT, ONE_DIMS(1), ONE_F(6.0625));
        one_scalar(&o, NORI_BFLOAT16, 0.09375);
        one_scalar(&o, NORI_UINT16, 1);
        one_i(&o, "precision", precision); /* 0, the default: that of the scale */
        one_expect(&o, NORI_UINT16, ONE_DIMS(1), ONE_F(precision ? 66 : 65));
    }
    one_begin(&o, "", "QuantizeLinear", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 3), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(1, 1));
    one_fails(&o, NORI_ERROR_MODEL, "the scale has 2 values");
    one_begin(&o, "", "DynamicQuantizeLinear", 3, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(3), ONE_F(-51, 0, 204));
    one_ok(&o);
    one_near(&o, 0, ONE_F(0, 51, 255), 0);
    one_near(&o, 1, ONE_F(1), 0);
    one_near(&o, 2, ONE_F(51), 0);
    one_end(&o);
}

/* ---- pooling ---- */

/* A NaN wins wherever it lies in the window, whatever the row's length. */
static void test_max_pool_nan(void **state)
{
    (void)state;
    static const int sizes[] = {1, 3, 8, 17, 600};
    static const nori_type types[] = {NORI_FLOAT, NORI_DOUBLE, NORI_FLOAT16, NORI_BFLOAT16};
    for (size_t i = 0; i < NORI__COUNT(sizes) * NORI__COUNT(types); i++) {
        int n = sizes[i / 4], places[4] = {0, n / 2, n - 1, n > 1 ? n - 2 : 0};
        for (int p = 0; p < 4; p++) {
            one o;
            double v[600], want[600];
            for (int k = 0; k < n; k++) {
                v[k] = k == places[p] ? NAN : k % 5;
            }
            for (int k = 0; k < n; k++) {
                want[k] = v[k];
                for (int j = k - 1; j <= k + 1; j++) {
                    if (j >= 0 && j < n && (isnan(v[j]) || v[j] > want[k])) {
                        want[k] = v[j];
                    }
                }
            }
            one_begin(&o, "", "MaxPool", 1, 0);
            one_input(&o, types[i % 4], ONE_DIMS(1, 1, n), v);
            one_ints(&o, "kernel_shape", 1, (int64_t[]){3});
            one_ints(&o, "pads", 2, (int64_t[]){1, 1});
            one_expect(&o, types[i % 4], ONE_DIMS(1, 1, n), want);
            one_begin(&o, "", "GlobalMaxPool", 1, 0);
            one_input(&o, types[i % 4], ONE_DIMS(1, 1, n), v);
            one_expect(&o, types[i % 4], ONE_DIMS(1, 1, 1), ONE_F(NAN));
        }
    }
}

static void test_pool(void **state)
{
    (void)state;
    one o;
    one_begin(&o, "", "MaxPool", 2, 0); /* ties: the first; column-major indices */
    one_input(&o, NORI_INT8, ONE_DIMS(1, 1, 2, 3), ONE_F(-5, -5, -7, -5, -9, -8));
    one_ints(&o, "kernel_shape", 2, (int64_t[]){2, 2});
    one_i(&o, "storage_order", 1);
    one_ok(&o);
    one_near(&o, 0, ONE_F(-5, -5), 0);
    one_near(&o, 1, ONE_F(0, 2), 0);
    one_end(&o);
    one_begin(&o, "", "AveragePool", 1, 0); /* the last window begins in the input: it counts */
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 4), ONE_F(1, 2, 3, 4));
    one_ints(&o, "kernel_shape", 1, (int64_t[]){3});
    one_ints(&o, "strides", 1, (int64_t[]){2});
    one_i(&o, "ceil_mode", 1);
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 1, 2), ONE_F(2, 3.5));
    one_begin(&o, "", "AveragePool", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 2), ONE_F(3, 6));
    one_ints(&o, "kernel_shape", 1, (int64_t[]){3});
    one_ints(&o, "pads", 2, (int64_t[]){1, 1});
    one_i(&o, "count_include_pad", 1);
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 1, 2), ONE_F(3, 3));
}

static void test_products(void **state)
{
    (void)state;
    one o;
    one_begin(&o, "", "MatMul", 1, 0); /* batches broadcast: [2,1,1,2] x [3,2,1] */
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 1, 1, 2), ONE_F(1, 2, 3, 4));
    one_input(&o, NORI_FLOAT, ONE_DIMS(3, 2, 1), ONE_F(1, 1, 2, 0, 0, 2));
    one_expect(&o, NORI_FLOAT, ONE_DIMS(2, 3, 1, 1), ONE_F(3, 2, 4, 7, 6, 8));
    one_begin(&o, "", "Gemm", 1, 0);
    one_input(&o, NORI_DOUBLE, ONE_DIMS(2, 2), ONE_F(1, 2, 3, 4));
    one_input(&o, NORI_DOUBLE, ONE_DIMS(2, 2), ONE_F(1, 0, 2, 1));
    one_input(&o, NORI_DOUBLE, ONE_DIMS(2, 1), ONE_F(10, 20));
    one_i(&o, "transA", 1);
    one_i(&o, "transB", 1);
    one_f(&o, "alpha", 0.5);
    one_expect(&o, NORI_DOUBLE, ONE_DIMS(2, 2), ONE_F(10.5, 12.5, 21, 24));
    one_begin(&o, "", "MatMul", 1, 0); /* int32 wraps */
    one_input(&o, NORI_INT32, ONE_DIMS(1, 1), ONE_F(65536));
    one_input(&o, NORI_INT32, ONE_DIMS(1, 1), ONE_F(65537));
    one_expect(&o, NORI_INT32, ONE_DIMS(1, 1), ONE_F(65536));
    one_begin(&o, "", "Einsum", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 2), ONE_F(1, 2, 3, 4));
    one_s(&o, "equation", "i i");
    one_expect(&o, NORI_FLOAT, 0, NULL, ONE_F(5));
    one_begin(&o, "", "Einsum", 1, 0);
    one_input(&o, NORI_INT64, ONE_DIMS(2, 1, 2), ONE_F(1, 2, 3, 4));
    one_input(&o, NORI_INT64, ONE_DIMS(2, 3), ONE_F(1, 2, 3, 4, 5, 6));
    one_s(&o, "equation", "...j, jk -> k...");
    one_expect(&o, NORI_INT64, ONE_DIMS(3, 2, 1), ONE_F(9, 19, 12, 26, 15, 33));
    one_begin(&o, "", "Einsum", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 2), NULL);
    one_s(&o, "equation", "ij,jk->ik");
    one_fails(&o, NORI_ERROR_MODEL, "one term for each of 1 inputs");
    one_begin(&o, "", "MatMul", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 3), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 2), NULL);
    one_fails(&o, NORI_ERROR_MODEL, "inner sizes differ: 3");
}

/* ---- normalisation, suppression ---- */

static void test_norm(void **state)
{
    (void)state;
    one o;
    one_begin(&o, "", "LayerNormalization", 3, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 4), ONE_F(1, 3, 1, 3));
    one_input(&o, NORI_FLOAT, ONE_DIMS(4), ONE_F(1, 1, 2, 2));
    one_input(&o, NORI_FLOAT, ONE_DIMS(1), ONE_F(10));
    one_f(&o, "epsilon", 0);
    one_ok(&o);
    one_near(&o, 0, ONE_F(9, 11, 8, 12), 1e-6);
    one_shape(&o, 1, NORI_FLOAT, ONE_DIMS(1, 1));
    one_near(&o, 1, ONE_F(2), 1e-6);
    one_near(&o, 2, ONE_F(1), 1e-6);
    one_end(&o);

    one_begin(&o, "", "LayerNormalization", 3, 0); /* over nothing: two lines all the same */
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 0), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(0), NULL);
    one_ok(&o);
    one_shape(&o, 0, NORI_FLOAT, ONE_DIMS(2, 0));
    one_shape(&o, 1, NORI_FLOAT, ONE_DIMS(2, 1));
    one_near(&o, 1, ONE_F(NAN, NAN), 0);
    one_near(&o, 2, ONE_F(NAN, NAN), 0);
    one_end(&o);
    one_begin(&o, "com.microsoft", "SkipLayerNormalization", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 2, 2), ONE_F(0, 1, 2, 3));
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 2, 2), ONE_F(0, 1, 2, 1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(1, 3));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(0, 1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(0, 4));
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 2, 2), ONE_F(-1, 4, -1, 4));
    one_begin(&o, "", "BatchNormalization", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 2, 1), ONE_F(3, 5));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(2, 1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(0, 1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(1, 1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(4, 16));
    one_f(&o, "epsilon", 0);
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 2, 1), ONE_F(2, 2));
    one_begin(&o, "", "LpNormalization", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 2), ONE_F(3, 4, 0, 0));
    one_expect(&o, NORI_FLOAT, ONE_DIMS(2, 2), ONE_F(0.6, 0.8, 0, 0));
}

static void test_nms(void **state)
{
    (void)state;
    one o;
    one_begin(&o, "", "NonMaxSuppression", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 4, 4),
              ONE_F(0, 0, 1, 1, 1, 1, 0, 0.1, 0, 5, 1, 6, 0, 0, 0, 1));
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 4), ONE_F(0.7, 0.9, 0.7, NAN));
    one_scalar(&o, NORI_INT64, 3);
    one_scalar(&o, NORI_FLOAT, 0.5);
    one_expect(&o, NORI_INT64, ONE_DIMS(2, 3), ONE_F(0, 0, 1, 0, 0, 2));
    one_begin(&o, "", "NonMaxSuppression", 1, 0); /* without a number: none */
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 4), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 1), ONE_F(1));
    one_expect(&o, NORI_INT64, ONE_DIMS(0, 3), NULL);
}

/* ---- empty tensors ---- */

static void test_empty(void **state)
{
    (void)state;
    one o;
    one_begin(&o, "", "Gemm", 1, 0); /* M = 0 */
    one_input(&o, NORI_FLOAT, ONE_DIMS(0, 3), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(3, 2), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(1, 2));
    one_expect(&o, NORI_FLOAT, ONE_DIMS(0, 2), NULL);
    one_begin(&o, "", "Gemm", 1, 0); /* K = 0: the addend */
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 0), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(0, 2), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(1, 2));
    one_expect(&o, NORI_FLOAT, ONE_DIMS(2, 2), ONE_F(1, 2, 1, 2));
    one_begin(&o, "", "MatMul", 1, 0);
    one_input(&o, NORI_INT64, ONE_DIMS(1, 0), NULL);
    one_input(&o, NORI_INT64, ONE_DIMS(0, 2), NULL);
    one_expect(&o, NORI_INT64, ONE_DIMS(1, 2), ONE_F(0, 0));
    one_begin(&o, "", "Conv", 1, 0); /* no channels: the bias */
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 0, 3), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 0, 2), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(5, 6));
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 2, 2), ONE_F(5, 5, 6, 6));
    one_begin(&o, "", "Conv", 1, 0); /* no pixels but pads */
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 0), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 1, 2), NULL);
    one_ints(&o, "pads", 2, (int64_t[]){1, 1});
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 1, 1), ONE_F(0));
    static const char *const pools[] = {"MaxPool", "AveragePool", "LpPool"};
    for (size_t i = 0; i < NORI__COUNT(pools); i++) {
        one_begin(&o, "", pools[i], 1, 0);
        one_input(&o, NORI_FLOAT, ONE_DIMS(0, 2, 4), NULL);
        one_ints(&o, "kernel_shape", 1, (int64_t[]){2});
        one_expect(&o, NORI_FLOAT, ONE_DIMS(0, 2, 3), NULL);
    }
    one_begin(&o, "", "QuantizeLinear", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(3, 0), NULL);
    one_scalar(&o, NORI_FLOAT, 1);
    one_expect(&o, NORI_UINT8, ONE_DIMS(3, 0), NULL);
    one_begin(&o, "", "LayerNormalization", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(0, 4), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(4), NULL);
    one_expect(&o, NORI_FLOAT, ONE_DIMS(0, 4), NULL);
    one_begin(&o, "", "Einsum", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2, 0), NULL);
    one_s(&o, "equation", "ij->i");
    one_expect(&o, NORI_FLOAT, ONE_DIMS(2), ONE_F(0, 0));
    one_begin(&o, "", "InstanceNormalization", 1, 0);
    one_input(&o, NORI_FLOAT, ONE_DIMS(1, 2, 0), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), NULL);
    one_input(&o, NORI_FLOAT, ONE_DIMS(2), NULL);
    one_expect(&o, NORI_FLOAT, ONE_DIMS(1, 2, 0), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transpose_same), cmocka_unit_test(test_conv),
        cmocka_unit_test(test_fused_conv),     cmocka_unit_test(test_conv_errors),
        cmocka_unit_test(test_integer_exact),  cmocka_unit_test(test_requantize),
        cmocka_unit_test(test_quantize),       cmocka_unit_test(test_max_pool_nan),
        cmocka_unit_test(test_pool),           cmocka_unit_test(test_products),
        cmocka_unit_test(test_norm),           cmocka_unit_test(test_nms),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
