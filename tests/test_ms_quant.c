/* test_ms_quant.c: com.microsoft operators on 8-bit tensors, by hand. */
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

static void scale_zero(op *o, nori_type type, double scale, double zero)
{
    op_in(o, NORI_FLOAT, "", &scale);
    op_in(o, type, "", &zero);
}

static void products_and_tables(void **state)
{
    (void)state;
    op o;
    op_begin(&o, MS, "QLinearMul", 1); /* real: {-1, 2} * {3, 3, -12.8} */
    op_in(&o, NORI_UINT8, "2x1", V(126, 132));
    scale_zero(&o, NORI_UINT8, 0.5, 128);
    op_in(&o, NORI_UINT8, "3", V(158, 158, 0));
    scale_zero(&o, NORI_UINT8, 0.1, 128);
    scale_zero(&o, NORI_UINT8, 0.25, 100);
    op_expect(&o, 0, NORI_UINT8, "2x3", V(88, 88, 151, 124, 124, 0), 0);
    op_end(&o);
    op_begin(&o, MS, "QLinearMul", 1); /* absent zero points are 0 */
    op_in(&o, NORI_INT8, "2", V(-3, 100));
    op_in(&o, NORI_FLOAT, "", V(1));
    op_give(&o, NULL);
    op_in(&o, NORI_INT8, "", V(2));
    op_in(&o, NORI_FLOAT, "", V(1));
    op_give(&o, NULL);
    op_in(&o, NORI_FLOAT, "", V(1));
    op_expect(&o, 0, NORI_INT8, "2", V(-6, 127), 0);
    op_end(&o);
    op_begin(&o, MS, "QLinearLeakyRelu", 1); /* real: -2, 0, 3 */
    op_in(&o, NORI_INT8, "3", V(-3, 1, 7));
    scale_zero(&o, NORI_INT8, 0.5, 1);
    scale_zero(&o, NORI_INT8, 0.25, -4);
    op_float(&o, "alpha", 0.5f);
    op_expect(&o, 0, NORI_INT8, "3", V(-8, -4, 8), 0);
    op_end(&o);
    op_begin(&o, MS, "QLinearSigmoid", 1); /* 0: a half; 127 / 8: 1; 1: 0.7311 */
    op_in(&o, NORI_INT8, "3", V(0, 127, 8));
    scale_zero(&o, NORI_INT8, 0.125, 0);
    scale_zero(&o, NORI_INT8, 1.0 / 256, -128);
    op_expect(&o, 0, NORI_INT8, "3", V(0, 127, 59), 0);
    op_end(&o);
}

static void softmax_where_concat(void **state)
{
    (void)state;
    op o;
    for (int old = 0; old < 2; old++) { /* all of axis 1 on as one line, or only the last axis */
        op_begin(&o, MS, "QLinearSoftmax", 1);
        op_in(&o, NORI_UINT8, "1x2x2", V(7, 7, 7, 7));
        scale_zero(&o, NORI_UINT8, 0.1, 3);
        scale_zero(&o, NORI_UINT8, 1.0 / 128, 10);
        op_int(&o, "opset", old ? 11 : 13);
        if (old) {
            op_int(&o, "axis", 1);
        }
        double want = old ? 128 / 4 + 10 : 128 / 2 + 10;
        op_expect(&o, 0, NORI_UINT8, "1x2x2", V(want, want, want, want), 0);
        op_end(&o);
    }
    op_begin(&o, MS, "QLinearWhere", 1);
    op_in(&o, NORI_BOOL, "2x1", V(1, 0));
    op_in(&o, NORI_UINT8, "2", V(10, 20)); /* real 5, 10 */
    scale_zero(&o, NORI_UINT8, 0.5, 0);
    op_in(&o, NORI_UINT8, "1", V(7)); /* real 12 */
    scale_zero(&o, NORI_UINT8, 2, 1);
    scale_zero(&o, NORI_UINT8, 1, 100);
    op_expect(&o, 0, NORI_UINT8, "2x2", V(105, 110, 112, 112), 0);
    op_end(&o);
    op_begin(&o, MS, "QLinearConcat", 1);
    scale_zero(&o, NORI_INT8, 0.5, 1);
    op_in(&o, NORI_INT8, "2x1", V(1, -2));
    scale_zero(&o, NORI_INT8, 1, 0); /* twice as coarse */
    op_in(&o, NORI_INT8, "2x2", V(4, 5, 6, 120));
    scale_zero(&o, NORI_INT8, 0.5, 1); /* as the result */
    op_int(&o, "axis", -1);
    op_expect(&o, 0, NORI_INT8, "2x3", V(3, 4, 5, -3, 6, 120), 0);
    op_end(&o);
    op_begin(&o, MS, "QLinearConcat", 1);
    scale_zero(&o, NORI_INT8, 0.5, 1);
    op_in(&o, NORI_INT8, "2x1", NULL);
    scale_zero(&o, NORI_INT8, 1, 0);
    op_in(&o, NORI_INT8, "3x1", NULL);
    scale_zero(&o, NORI_INT8, 1, 0);
    op_int(&o, "axis", 1);
    assert_int_equal(op_status(&o), NORI_ERROR_MODEL);
    op_end(&o);
}

static void pools(void **state)
{
    (void)state;
    op o;
    /* Channels first: the window 2 x 2 of {1 2; 3 4} is 2.5 real, 5 in halves. */
    op_begin(&o, MS, "QLinearAveragePool", 1);
    op_in(&o, NORI_UINT8, "1x1x2x2", V(1, 2, 3, 4));
    scale_zero(&o, NORI_UINT8, 1, 0);
    scale_zero(&o, NORI_UINT8, 0.5, 7);
    op_ints(&o, "kernel_shape", (int64_t[]){2, 2}, 2);
    op_expect(&o, 0, NORI_UINT8, "1x1x1x1", V(12), 0);
    op_end(&o);
    /* Channels last, padding left out of the mean: rows {1 2} and {10 20} by channel. */
    op_begin(&o, MS, "QLinearAveragePool", 1);
    op_in(&o, NORI_INT8, "1x2x1x2", V(1, 10, 2, 20));
    scale_zero(&o, NORI_INT8, 1, 0);
    scale_zero(&o, NORI_INT8, 1, 0);
    op_ints(&o, "kernel_shape", (int64_t[]){2, 1}, 2);
    op_ints(&o, "pads", (int64_t[]){1, 0, 0, 0}, 4);
    op_int(&o, "channels_last", 1);
    op_expect(&o, 0, NORI_INT8, "1x2x1x2", V(1, 10, 2, 15), 0); /* 1.5 rounds to 2 */
    op_end(&o);
    for (int last = 0; last < 2; last++) {
        op_begin(&o, MS, "QLinearGlobalAveragePool", 1);
        op_in(&o, NORI_UINT8, last ? "1x3x1x2" : "1x2x3x1",
              last ? V(3, 30, 4, 40, 5, 50) : V(3, 4, 5, 30, 40, 50));
        scale_zero(&o, NORI_UINT8, 2, 1);
        scale_zero(&o, NORI_UINT8, 1, 0);
        op_int(&o, "channels_last", last);
        op_expect(&o, 0, NORI_UINT8, last ? "1x1x1x2" : "1x2x1x1", V(6, 78), 0);
        op_end(&o);
    }
    op_begin(&o, MS, "NhwcMaxPool", 1);
    op_in(&o, NORI_INT8, "1x2x2x2", V(-1, 4, -7, 3, -5, 9, -2, -128));
    op_ints(&o, "kernel_shape", (int64_t[]){2, 1}, 2);
    op_expect(&o, 0, NORI_INT8, "1x1x2x2", V(-1, 9, -2, 3), 0);
    op_end(&o);
}

static void products_to_float(void **state)
{
    (void)state;
    op o;
    op_begin(&o, MS, "MatMulIntegerToFloat", 1);
    op_in(&o, NORI_UINT8, "1x2", V(12, 9)); /* 2, -1 */
    op_in(&o, NORI_INT8, "2x2", V(1, 2, 3, 4));
    op_in(&o, NORI_FLOAT, "", V(0.5));
    op_in(&o, NORI_FLOAT, "2", V(2, 4));
    op_in(&o, NORI_UINT8, "", V(10));
    op_in(&o, NORI_INT8, "2", V(1, 0)); /* columns 0 2 and 2 4 */
    op_in(&o, NORI_FLOAT, "2", V(100, 200));
    op_expect(&o, 0, NORI_FLOAT, "1x2", V(100 - 2 * 0.5 * 2, 200), 1e-6);
    op_end(&o);
    /* 0 to 2.55: scale 0.01, so that 1 and 2.55 are 100 and 255. */
    op_begin(&o, MS, "DynamicQuantizeMatMul", 1);
    op_in(&o, NORI_FLOAT, "1x2", V(1, 2.55));
    op_in(&o, NORI_UINT8, "2x1", V(130, 127));
    op_in(&o, NORI_FLOAT, "", V(0.5));
    op_in(&o, NORI_UINT8, "", V(128));
    op_in(&o, NORI_FLOAT, "1", V(7));
    op_expect(&o, 0, NORI_FLOAT, "1x1", V(7 + (2 * 1 - 2.55) * 0.5), 1e-5);
    op_end(&o);
    op_begin(&o, MS, "MatMulIntegerToFloat", 1); /* a scale a row is not in the operator */
    op_in(&o, NORI_UINT8, "2x1", V(1, 2));
    op_in(&o, NORI_UINT8, "1x1", V(1));
    op_in(&o, NORI_FLOAT, "2", V(1, 2));
    op_in(&o, NORI_FLOAT, "", V(1));
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    op_end(&o);
}

static void quantize_and_back(void **state)
{
    (void)state;
    op o;
    op_begin(&o, MS, "QuantizeLinear", 1);
    op_in(&o, NORI_FLOAT16, "2x2", V(1, 2, 3, -4));
    op_in(&o, NORI_FLOAT16, "2", V(0.5, 2));
    op_in(&o, NORI_INT16, "2", V(10, 0));
    op_int(&o, "axis", 0);
    op_expect(&o, 0, NORI_INT16, "2x2", V(12, 14, 2, -2), 0);
    op_end(&o);
    op_begin(&o, MS, "DequantizeLinear", 1);
    op_in(&o, NORI_UINT16, "2", V(65535, 0));
    op_in(&o, NORI_FLOAT, "", V(0.5));
    op_in(&o, NORI_UINT16, "", V(32768));
    op_expect(&o, 0, NORI_FLOAT, "2", V(16383.5, -16384), 0);
    op_end(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_and_tables), cmocka_unit_test(softmax_where_concat),
        cmocka_unit_test(pools),               cmocka_unit_test(products_to_float),
        cmocka_unit_test(quantize_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
