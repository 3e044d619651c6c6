/* test_ref_reduce.c: reductions, ArgMax, TopK, softmax and running sums where results are easily
 * got wrong: NaN, ties, nothing to fold, axes given or not, wrapping, old opsets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op_harness.h"

#define V(...) ((const double[]){__VA_ARGS__})
#define INF ((double)INFINITY)
#define NOT_A_NUMBER ((double)NAN)

/* axes NULL: no input 1. */
static void reduce(const char *name, nori_type type, const char *shape, const double *x,
                   const char *axes_shape, const double *axes, int keep, const char *to,
                   const double *want, double tolerance)
{
    op o;
    op_begin(&o, "", name, 18);
    op_in(&o, type, shape, x);
    if (axes_shape) {
        op_in(&o, NORI_INT64, axes_shape, axes);
    }
    op_int(&o, "keepdims", keep);
    op_expect(&o, 0, type, to, want, tolerance);
    op_end(&o);
}

static void test_reduce_axes(void **state)
{
    (void)state;
    const double *x = V(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12); /* 2x3x2 */
    reduce("ReduceSum", NORI_FLOAT, "2x3x2", x, "1", V(1), 1, "2x1x2", V(9, 12, 27, 30), 0);
    reduce("ReduceSum", NORI_FLOAT, "2x3x2", x, "2", V(-1, 0), 0, "3", V(18, 26, 34), 0);
    reduce("ReduceSum", NORI_INT32, "2x3x2", x, "2", V(1, 2), 0, "2", V(21, 57), 0);
    reduce("ReduceMean", NORI_FLOAT, "2x3x2", x, NULL, NULL, 0, "", V(6.5), 0);
    reduce("ReduceMean", NORI_FLOAT, "2x3x2", x, "0", NULL, 1, "1x1x1", V(6.5), 0);
    reduce("ReduceProd", NORI_INT64, "2x3x2", x, "1", V(2), 0, "2x3", V(2, 12, 30, 56, 90, 132), 0);
    reduce("ReduceMax", NORI_FLOAT, "", V(-3), NULL, NULL, 1, "", V(-3), 0);
    op o;
    op_begin(&o, "", "ReduceSum", 18);
    op_in(&o, NORI_FLOAT, "2x2", NULL);
    op_in(&o, NORI_INT64, "1", V(2));
    assert_int_equal(op_status(&o), NORI_ERROR_MODEL);
    op_end(&o);
    op_begin(&o, "", "ReduceSum", 18);
    op_in(&o, NORI_FLOAT, "2x2", NULL);
    op_in(&o, NORI_INT64, "2", V(1, -1));
    assert_int_equal(op_status(&o), NORI_ERROR_MODEL);
    op_end(&o);
}

/* The attribute of older opsets, and reducing nothing on request. */
static void test_reduce_forms(void **state)
{
    (void)state;
    op o;
    op_begin(&o, "", "ReduceMax", 11);
    op_in(&o, NORI_FLOAT, "2x2", V(1, 4, 3, 2));
    op_ints(&o, "axes", (const int64_t[]){0}, 1);
    op_expect(&o, 0, NORI_FLOAT, "1x2", V(3, 4), 0);
    op_end(&o);
    op_begin(&o, "", "ReduceSumSquare", 18);
    op_in(&o, NORI_FLOAT, "3", V(1, -2, 3));
    op_int(&o, "noop_with_empty_axes", 1);
    op_expect(&o, 0, NORI_FLOAT, "3", V(1, 4, 9), 0);
    op_end(&o);
}

static void test_reduce_values(void **state)
{
    (void)state;
    const double *x = V(1, NOT_A_NUMBER, -2, 5);
    reduce("ReduceMax", NORI_FLOAT, "2x2", x, "1", V(1), 0, "2", V(NOT_A_NUMBER, 5), 0);
    reduce("ReduceMin", NORI_FLOAT, "2x2", x, "1", V(0), 0, "2", V(-2, NOT_A_NUMBER), 0);
    reduce("ReduceMax", NORI_FLOAT16, "2x0", NULL, "1", V(1), 0, "2", V(-INF, -INF), 0);
    reduce("ReduceMin", NORI_INT8, "0x2", NULL, "1", V(0), 0, "2", V(127, 127), 0);
    reduce("ReduceMax", NORI_INT32, "0", NULL, NULL, NULL, 0, "", V(-2147483648.0), 0);
    reduce("ReduceMax", NORI_BOOL, "2x2", V(0, 1, 0, 0), "1", V(1), 0, "2", V(1, 0), 0);
    reduce("ReduceSum", NORI_FLOAT, "2x0", NULL, "1", V(1), 1, "2x1", V(0, 0), 0);
    reduce("ReduceSum", NORI_FLOAT, "0x3x2", NULL, "1", V(0), 0, "3x2", V(0, 0, 0, 0, 0, 0), 0);
    reduce("ReduceProd", NORI_FLOAT, "0", NULL, NULL, NULL, 0, "", V(1), 0);
    reduce("ReduceMean", NORI_FLOAT, "0", NULL, NULL, NULL, 0, "", V(NOT_A_NUMBER), 0);
    reduce("ReduceMean", NORI_INT64, "3", V(-1, -1, -2), NULL, NULL, 0, "", V(-1), 0);
    reduce("ReduceLogSumExp", NORI_FLOAT, "0", NULL, NULL, NULL, 0, "", V(-INF), 0);
    reduce("ReduceLogSumExp", NORI_FLOAT, "2x2", V(1000, 1000, -INF, -INF), "1", V(1), 0, "2",
           V(1000.6931472, -INF), 1e-6);
    reduce("ReduceSum", NORI_INT32, "2", V(2147483647, 1), NULL, NULL, 0, "", V(-2147483648.0), 0);
    reduce("ReduceMax", NORI_UINT64, "2", V(0x1p63, 1), NULL, NULL, 0, "", V(0x1p63), 0);
    reduce("ReduceL1", NORI_INT32, "3", V(-1, 2, -3), NULL, NULL, 0, "", V(6), 0);
    reduce("ReduceL2", NORI_FLOAT, "2", V(3, -4), NULL, NULL, 0, "", V(5), 0);
    reduce("ReduceLogSum", NORI_DOUBLE, "2", V(1, 1), NULL, NULL, 0, "", V(0.69314718056), 1e-11);
}

/* Longer than a block, in rows and in columns, against the plain formula. */
static void test_large(void **state)
{
    (void)state;
    enum { ROWS = 300, COLUMNS = 700 };
    double *x = calloc(ROWS * COLUMNS, sizeof(*x));
    double row[ROWS] = {0}, column[COLUMNS] = {0}, where[ROWS] = {0};
    assert_non_null(x);
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < COLUMNS; k++) {
            double v = (i * 31 + k * 17) % 251 - 100;
            x[i * COLUMNS + k] = v;
            row[i] += v;
            column[k] += v;
            where[i] = v > x[i * COLUMNS + (int)where[i]] ? k : where[i];
        }
    }
    reduce("ReduceSum", NORI_FLOAT, "300x700", x, "1", V(1), 0, "300", row, 0);
    reduce("ReduceSum", NORI_FLOAT, "300x700", x, "1", V(0), 0, "700", column, 0);
    reduce("ReduceSum", NORI_INT32, "300x700", x, "1", V(0), 0, "700", column, 0);
    op o;
    op_begin(&o, "", "ArgMax", 13);
    op_in(&o, NORI_FLOAT, "300x700", x);
    op_int(&o, "axis", 1);
    op_int(&o, "keepdims", 0);
    op_expect(&o, 0, NORI_INT64, "300", where, 0);
    op_end(&o);
    free(x);
}

static void arg(const char *name, const double *x, int last, const double *want)
{
    op o;
    op_begin(&o, "", name, 13);
    op_in(&o, NORI_FLOAT, "2x3", x);
    op_int(&o, "axis", -1);
    op_int(&o, "select_last_index", last);
    op_expect(&o, 0, NORI_INT64, "2x1", want, 0);
    op_end(&o);
}

static void test_arg(void **state)
{
    (void)state;
    arg("ArgMax", V(1, 3, 3, -1, -5, -1), 0, V(1, 0));
    arg("ArgMax", V(1, 3, 3, -1, -5, -1), 1, V(2, 2));
    arg("ArgMin", V(0.0, -0.0, 1, -1, NOT_A_NUMBER, -7), 0, V(0, 1));
    arg("ArgMax", V(1, NOT_A_NUMBER, NOT_A_NUMBER, INF, 2, -INF), 0, V(1, 0));
    op o;
    op_begin(&o, "", "ArgMax", 13);
    op_in(&o, NORI_FLOAT, "2x0", NULL);
    op_int(&o, "axis", 1);
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    op_end(&o);
}

static void top(nori_type type, const double *x, double k, int largest, const char *to,
                const double *values, const double *indices)
{
    op o;
    op_begin(&o, "", "TopK", 11);
    op_outputs(&o, 2);
    op_in(&o, type, "5", x);
    op_in(&o, NORI_INT64, "1", V(k));
    op_int(&o, "largest", largest);
    op_expect(&o, 0, type, to, values, 0);
    op_expect(&o, 1, NORI_INT64, to, indices, 0);
    op_end(&o);
}

static void test_topk(void **state)
{
    (void)state;
    top(NORI_FLOAT, V(2, 5, 5, -1, 2), 4, 1, "4", V(5, 5, 2, 2), V(1, 2, 0, 4));
    top(NORI_FLOAT, V(2, 5, 5, -1, 2), 5, 0, "5", V(-1, 2, 2, 5, 5), V(3, 0, 4, 1, 2));
    top(NORI_FLOAT, V(2, NOT_A_NUMBER, INF, -1, 2), 2, 1, "2", V(NOT_A_NUMBER, INF), V(1, 2));
    top(NORI_FLOAT, V(2, NOT_A_NUMBER, INF, -1, 2), 2, 0, "2", V(-1, 2), V(3, 0));
    top(NORI_UINT64, V(1, 0x1p63, 2, 0, 3), 2, 1, "2", V(0x1p63, 3), V(1, 4));
    top(NORI_INT8, V(-128, 127, 0, -1, 1), 1, 0, "1", V(-128), V(0));
    top(NORI_FLOAT, V(1, 2, 3, 4, 5), 0, 1, "0", NULL, NULL);
    op o; /* along an inner axis */
    op_begin(&o, "", "TopK", 11);
    op_outputs(&o, 2);
    op_in(&o, NORI_FLOAT16, "3x2", V(1, 6, 3, 2, 2, 4));
    op_in(&o, NORI_INT64, "1", V(2));
    op_int(&o, "axis", 0);
    op_expect(&o, 0, NORI_FLOAT16, "2x2", V(3, 6, 2, 4), 0);
    op_expect(&o, 1, NORI_INT64, "2x2", V(1, 0, 2, 2), 0);
    op_end(&o);
    op_begin(&o, "", "TopK", 11);
    op_outputs(&o, 2);
    op_in(&o, NORI_FLOAT, "2", V(1, 2));
    op_in(&o, NORI_INT64, "1", V(3));
    assert_int_equal(op_status(&o), NORI_ERROR_MODEL);
    op_end(&o);
}

static void soft(const char *name, int version, nori_type type, const char *shape, int axis,
                 const double *x, const double *want)
{
    op o;
    op_begin(&o, "", name, version);
    op_in(&o, type, shape, x);
    op_int(&o, "axis", axis);
    op_expect(&o, 0, type, shape, want, type == NORI_FLOAT16 ? 1e-3 : 1e-6);
    op_end(&o);
}

static void test_softmax(void **state)
{
    (void)state;
    const double *x = V(0, 0, 1000, 1000), *half = V(0.5, 0.5, 0.5, 0.5), *columns = V(0, 0, 1, 1);
    const double l = -0.69314718;
    soft("Softmax", 13, NORI_FLOAT, "2x2", -1, x, half);
    soft("Softmax", 13, NORI_FLOAT16, "2x2", 1, x, half);
    soft("Softmax", 13, NORI_FLOAT, "2x2", 0, x, columns);
    soft("Softmax", 13, NORI_DOUBLE, "2x2", 0, x, columns);
    soft("Softmax", 11, NORI_FLOAT, "1x2x2", 1, x, V(0, 0, 0.5, 0.5)); /* one row of four */
    soft("Softmax", 11, NORI_FLOAT, "1x2x2", 2, x, half);
    soft("Softmax", 13, NORI_FLOAT, "2", 0, V(-INF, 3), V(0, 1));
    soft("Softmax", 13, NORI_FLOAT, "2", 0, V(-INF, -INF), V(NOT_A_NUMBER, NOT_A_NUMBER));
    soft("Softmax", 13, NORI_FLOAT, "2x0", 1, NULL, NULL);
    soft("LogSoftmax", 13, NORI_FLOAT, "2x2", 1, x, V(l, l, l, l));
    soft("LogSoftmax", 13, NORI_FLOAT, "2x2", 0, x, V(-1000, -1000, 0, 0));
    soft("Hardmax", 13, NORI_FLOAT, "2x3", 1, V(1, 4, 4, NOT_A_NUMBER, 9, 9), V(0, 1, 0, 1, 0, 0));
    soft("Hardmax", 13, NORI_FLOAT, "2x2", 0, V(1, 4, 2, 3), V(0, 1, 1, 0));
}

static void cumulate(const char *name, nori_type type, double axis, int exclusive, int reverse,
                     const double *want)
{
    op o;
    op_begin(&o, "", name, 26);
    op_in(&o, type, "2x3", V(1, 2, 3, 4, 5, 6));
    op_in(&o, NORI_INT64, "", V(axis));
    op_int(&o, "exclusive", exclusive);
    op_int(&o, "reverse", reverse);
    op_expect(&o, 0, type, "2x3", want, 0);
    op_end(&o);
}

static void test_cumulate(void **state)
{
    (void)state;
    cumulate("CumSum", NORI_FLOAT, 1, 0, 0, V(1, 3, 6, 4, 9, 15));
    cumulate("CumSum", NORI_INT32, -1, 1, 0, V(0, 1, 3, 0, 4, 9));
    cumulate("CumSum", NORI_FLOAT, 1, 0, 1, V(6, 5, 3, 15, 11, 6));
    cumulate("CumSum", NORI_FLOAT, 1, 1, 1, V(5, 3, 0, 11, 6, 0));
    cumulate("CumSum", NORI_DOUBLE, 0, 0, 0, V(1, 2, 3, 5, 7, 9));
    cumulate("CumProd", NORI_FLOAT, 0, 1, 1, V(4, 5, 6, 1, 1, 1));
    cumulate("CumProd", NORI_INT64, 1, 0, 0, V(1, 2, 6, 4, 20, 120));
    op o;
    op_begin(&o, "", "CumSum", 14);
    op_in(&o, NORI_FLOAT, "2", V(1, 2));
    op_in(&o, NORI_INT64, "", V(1));
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    op_end(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce_axes),   cmocka_unit_test(test_reduce_forms),
        cmocka_unit_test(test_reduce_values), cmocka_unit_test(test_large),
        cmocka_unit_test(test_arg),           cmocka_unit_test(test_topk),
        cmocka_unit_test(test_softmax),       cmocka_unit_test(test_cumulate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
