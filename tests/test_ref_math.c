/* test_ref_math.c: reference kernels of elementwise operators: values at the edges, types,
 * broadcasting, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "op_harness.h"

#define V(...) ((const double[]){__VA_ARGS__})

static void two(const char *name, nori_type type, const char *as, const double *a, const char *bs,
                const double *b, nori_type to, const char *os, const double *want)
{
    op o;
    op_begin(&o, "", name, 14);
    op_in(&o, type, as, a);
    op_in(&o, type, bs, b);
    op_expect(&o, 0, to, os, want, 0);
    op_end(&o);
}

static void one(const char *name, nori_type type, const char *shape, const double *x,
                const double *want, double tolerance)
{
    op o;
    op_begin(&o, "", name, 14);
    op_in(&o, type, shape, x);
    op_expect(&o, 0, type, shape, want, tolerance);
    op_end(&o);
}

static void test_broadcasting(void **state)
{
    (void)state;
    two("Add", NORI_FLOAT, "2x3", V(1, 2, 3, 4, 5, 6), "3", V(10, 20, 30), NORI_FLOAT, "2x3",
        V(11, 22, 33, 14, 25, 36));
    two("Sub", NORI_FLOAT, "2x1", V(1, 2), "1x3", V(10, 20, 30), NORI_FLOAT, "2x3",
        V(-9, -19, -29, -8, -18, -28));
    two("Mul", NORI_DOUBLE, "", V(3), "2x2", V(1, 2, 3, 4), NORI_DOUBLE, "2x2", V(3, 6, 9, 12));
    two("Sub", NORI_INT32, "2x1x2", V(1, 2, 3, 4), "3x1", V(10, 20, 30), NORI_INT32, "2x3x2",
        V(-9, -8, -19, -18, -29, -28, -7, -6, -17, -16, -27, -26));
    two("Add", NORI_FLOAT, "0x3", NULL, "1x3", V(1, 2, 3), NORI_FLOAT, "0x3", NULL);
    two("Add", NORI_FLOAT, "1x1", V(1), "1", V(2), NORI_FLOAT, "1x1", V(3));
    op o;
    op_begin(&o, "", "Add", 14);
    op_in(&o, NORI_FLOAT, "2x3", NULL);
    op_in(&o, NORI_FLOAT, "2", NULL);
    assert_int_equal(op_status(&o), NORI_ERROR_MODEL);
    op_end(&o);
}

/* Every line of a large broadcast, against the plain formula; on one thread and on three, which
 * start lines in the middle. */
static void large(nori__pool *pool)
{
    op o;
    op_begin(&o, "", "Mul", 14);
    o.pool = pool;
    nori_tensor *a = op_tensor(NORI_FLOAT, "7x1x300x5", NULL);
    nori_tensor *b = op_tensor(NORI_FLOAT, "40x1x5", NULL);
    for (int64_t i = 0; i < a->count; i++) {
        ((float *)a->data)[i] = (float)(i % 1000);
    }
    for (int64_t i = 0; i < b->count; i++) {
        ((float *)b->data)[i] = (float)(i + 1);
    }
    op_give(&o, a);
    op_give(&o, b);
    const float *got = op_out(&o, 0, NORI_FLOAT, "7x40x300x5")->data;
    for (int64_t n = 0; n < 7; n++) {
        for (int64_t c = 0; c < 40; c++) {
            for (int64_t h = 0; h < 1500; h++) {
                float want = (float)((n * 1500 + h) % 1000) * (float)(c * 5 + h % 5 + 1);
                assert_true(got[(n * 40 + c) * 1500 + h] == want);
            }
        }
    }
    op_end(&o);
    op_begin(&o, "", "Add", 14); /* equal shapes: one line, cut into pieces */
    o.pool = pool;
    for (int k = 0; k < 2; k++) {
        nori_tensor *t = op_tensor(NORI_INT32, "70000", NULL);
        for (int32_t i = 0; i < 70000; i++) {
            ((int32_t *)t->data)[i] = i * (k + 1);
        }
        op_give(&o, t);
    }
    const int32_t *sum = op_out(&o, 0, NORI_INT32, "70000")->data;
    for (int32_t i = 0; i < 70000; i++) {
        assert_int_equal(sum[i], 3 * i);
    }
    op_end(&o);
}

static void test_large(void **state)
{
    (void)state;
    nori__pool *pool = NULL;
    assert_int_equal(nori__pool_create(&nori__malloc, 3, &pool, NULL), NORI_OK);
    large(NULL);
    large(pool);
    nori__pool_free(pool);
}

static void test_integers(void **state)
{
    (void)state;
    two("Add", NORI_INT8, "3", V(127, -128, 1), "3", V(1, -1, 2), NORI_INT8, "3", V(-128, 127, 3));
    two("Mul", NORI_UINT16, "1", V(65535), "1", V(65535), NORI_UINT16, "1", V(1));
    two("Div", NORI_INT32, "4", V(7, -7, 7, -2147483648.0), "4", V(2, 2, -2, -1), NORI_INT32, "4",
        V(3, -3, -3, -2147483648.0));
    two("Mod", NORI_INT32, "5", V(7, -7, 7, -7, -2147483648.0), "5", V(3, 3, -3, -3, -1),
        NORI_INT32, "5", V(1, 2, -2, -1, 0));
    one("Abs", NORI_INT8, "3", V(-128, -1, 5), V(-128, 1, 5), 0);
    one("Neg", NORI_INT8, "2", V(-128, 3), V(-128, -3), 0);
    one("Sign", NORI_UINT8, "2", V(0, 200), V(0, 1), 0);
    op o;
    op_begin(&o, "", "Div", 14);
    op_in(&o, NORI_INT64, "2", V(1, 2));
    op_in(&o, NORI_INT64, "2", V(1, 0));
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    assert_non_null(strstr(o.err.message, "element 1"));
    op_end(&o);
    op_begin(&o, "", "Mod", 13);
    op_int(&o, "fmod", 1);
    op_in(&o, NORI_FLOAT, "3", V(-5.5, 5.5, 1));
    op_in(&o, NORI_FLOAT, "3", V(2, -2, INFINITY));
    op_expect(&o, 0, NORI_FLOAT, "3", V(-1.5, 1.5, 1), 0);
    op_end(&o);
}

static void test_nan_and_zero(void **state)
{
    (void)state;
    const double *x = V(NAN, 1, -0.0, INFINITY), *y = V(1, NAN, 0.0, -INFINITY);
    two("Max", NORI_FLOAT, "4", x, "4", y, NORI_FLOAT, "4", V(NAN, NAN, -0.0, INFINITY));
    two("Min", NORI_FLOAT16, "4", x, "4", y, NORI_FLOAT16, "4", V(NAN, NAN, -0.0, -INFINITY));
    two("Equal", NORI_FLOAT, "4", x, "4", y, NORI_BOOL, "4", V(0, 0, 1, 0));
    two("LessOrEqual", NORI_DOUBLE, "4", x, "4", y, NORI_BOOL, "4", V(0, 0, 1, 0));
    two("GreaterOrEqual", NORI_BFLOAT16, "4", x, "4", y, NORI_BOOL, "4", V(0, 0, 1, 1));
    two("Div", NORI_FLOAT, "3", V(1, -1, 0), "3", V(0, 0, 0), NORI_FLOAT, "3",
        V(INFINITY, -INFINITY, NAN));
    one("Relu", NORI_FLOAT, "4", V(NAN, -1, -0.0, 2), V(NAN, 0, -0.0, 2), 0);
    one("Sign", NORI_FLOAT, "4", V(NAN, -3, 0, 2), V(NAN, -1, 0, 1), 0);
    one("Round", NORI_FLOAT, "5", V(0.5, 1.5, 2.5, -0.5, -2.5), V(0, 2, 2, -0.0, -2), 0);
    one("Sqrt", NORI_FLOAT, "2", V(-1, 4), V(NAN, 2), 0);
    one("Log", NORI_DOUBLE, "2", V(0, 1), V(-INFINITY, 0), 0);
    one("Sigmoid", NORI_FLOAT, "4", V(-INFINITY, INFINITY, NAN, 0), V(0, 1, NAN, 0.5), 0);
    one("Sigmoid", NORI_DOUBLE, "3", V(-1000, 1000, 0), V(0, 1, 0.5), 0);
    one("Softplus", NORI_FLOAT, "3", V(1000, -1000, 0), V(1000, 0, 0.6931471805599453), 1e-7);
    one("Gelu", NORI_FLOAT, "3", V(-INFINITY, 1, INFINITY), V(0, 0.8413447460685429, INFINITY),
        1e-7);
    one("ThresholdedRelu", NORI_FLOAT, "3", V(NAN, 1, 1.5), V(0, 0, 1.5), 0); /* NaN is not above */
    one("Softsign", NORI_FLOAT, "2", V(-INFINITY, 1), V(-1, 0.5), 0);
    one("HardSwish", NORI_FLOAT, "3", V(-4, 4, 0), V(-0.0, 4, 0), 1e-7);
}

static void test_pow(void **state)
{
    (void)state;
    two("Pow", NORI_FLOAT, "4", V(2, -3, 0, 9), "", V(2), NORI_FLOAT, "4", V(4, 9, 0, 81));
    two("Pow", NORI_INT32, "5", V(2, -1, 3, 0, 7), "5", V(10, -3, -1, 0, 1), NORI_INT32, "5",
        V(1024, -1, 0, 1, 7));
    op o;
    op_begin(&o, "", "Pow", 15);
    op_in(&o, NORI_FLOAT, "2", V(2, 4));
    op_in(&o, NORI_INT64, "2", V(3, -1));
    op_expect(&o, 0, NORI_FLOAT, "2", V(8, 0.25), 0);
    op_end(&o);
}

static void test_variadic(void **state)
{
    (void)state;
    op o;
    op_begin(&o, "", "Mean", 13);
    op_in(&o, NORI_FLOAT, "2x1", V(1, 2));
    op_in(&o, NORI_FLOAT, "2", V(3, 4));
    op_in(&o, NORI_FLOAT, "", V(5));
    op_expect(&o, 0, NORI_FLOAT, "2x2", V(3, 10 / 3.0, 10 / 3.0, 11 / 3.0), 1e-6);
    op_end(&o);
    op_begin(&o, "", "Sum", 13);
    op_in(&o, NORI_FLOAT, "2", V(1, 2));
    op_expect(&o, 0, NORI_FLOAT, "2", V(1, 2), 0);
    op_end(&o);
}

static void test_clip(void **state)
{
    (void)state;
    op o;
    op_begin(&o, "", "Clip", 13);
    op_in(&o, NORI_FLOAT, "4", V(-5, 0.5, 9, NAN));
    op_in(&o, NORI_FLOAT, "", V(-1));
    op_in(&o, NORI_FLOAT, "", V(1));
    op_expect(&o, 0, NORI_FLOAT, "4", V(-1, 0.5, 1, NAN), 0);
    op_end(&o);
    op_begin(&o, "", "Clip", 13);
    op_in(&o, NORI_INT64, "3", V(-5, 0, 9));
    op_give(&o, NULL);
    op_in(&o, NORI_INT64, "", V(1));
    op_expect(&o, 0, NORI_INT64, "3", V(-5, 0, 1), 0);
    op_end(&o);
    op_begin(&o, "", "Clip", 6); /* the form with attributes */
    op_float(&o, "min", 0);
    op_float(&o, "max", 6);
    op_in(&o, NORI_FLOAT, "3", V(-5, 3, 9));
    op_expect(&o, 0, NORI_FLOAT, "3", V(0, 3, 6), 0);
    op_end(&o);
    op_begin(&o, "", "Clip", 13); /* min above max gives max */
    op_in(&o, NORI_FLOAT, "2", V(0, 5));
    op_in(&o, NORI_FLOAT, "", V(3));
    op_in(&o, NORI_FLOAT, "", V(1));
    op_expect(&o, 0, NORI_FLOAT, "2", V(1, 1), 0);
    op_end(&o);
    op_begin(&o, "", "Clip", 13);
    op_in(&o, NORI_FLOAT, "2", V(0, 5));
    op_in(&o, NORI_FLOAT, "2", V(3, 3));
    assert_int_equal(op_status(&o), NORI_ERROR_DATA);
    op_end(&o);
}

static void test_logic(void **state)
{
    (void)state;
    two("And", NORI_BOOL, "4", V(0, 0, 1, 1), "4", V(0, 1, 0, 1), NORI_BOOL, "4", V(0, 0, 0, 1));
    two("Xor", NORI_BOOL, "4", V(0, 0, 1, 1), "4", V(0, 1, 0, 1), NORI_BOOL, "4", V(0, 1, 1, 0));
    two("BitwiseXor", NORI_INT16, "2", V(5, -1), "2", V(3, 1), NORI_INT16, "2", V(6, -2));
    one("BitwiseNot", NORI_UINT8, "2", V(0, 255), V(255, 0), 0);
    op o;
    op_begin(&o, "", "BitShift", 11);
    op_text(&o, "direction", "LEFT");
    op_in(&o, NORI_UINT8, "3", V(1, 255, 1));
    op_in(&o, NORI_UINT8, "3", V(3, 4, 8));
    op_expect(&o, 0, NORI_UINT8, "3", V(8, 240, 0), 0);
    op_end(&o);
    op_begin(&o, "", "Where", 16);
    op_in(&o, NORI_BOOL, "2x1", V(1, 0));
    op_in(&o, NORI_INT64, "2", V(1, 2));
    op_in(&o, NORI_INT64, "", V(9));
    op_expect(&o, 0, NORI_INT64, "2x2", V(1, 2, 9, 9), 0);
    op_end(&o);
    op_begin(&o, "", "Where", 16);
    op_in(&o, NORI_BOOL, "2", V(1, 0));
    op_in_text(&o, "2", (const char *[]){"a", "b"});
    op_in_text(&o, "1", (const char *[]){"other"});
    op_expect_text(&o, 0, "2", (const char *[]){"a", "other"});
    op_end(&o);
}

static void test_activations(void **state)
{
    (void)state;
    op o;
    op_begin(&o, "", "PRelu", 16);
    op_in(&o, NORI_FLOAT, "2x2", V(-1, 2, -3, -4));
    op_in(&o, NORI_FLOAT, "2", V(0.5, 0.25));
    op_expect(&o, 0, NORI_FLOAT, "2x2", V(-0.5, 2, -1.5, -1), 0);
    op_end(&o);
    op_begin(&o, "", "PRelu", 6); /* slope by channel, not by the last axis */
    op_in(&o, NORI_FLOAT, "1x2x2", V(-1, -1, -1, -1));
    op_in(&o, NORI_FLOAT, "2", V(0.5, 0.25));
    op_expect(&o, 0, NORI_FLOAT, "1x2x2", V(-0.5, -0.5, -0.25, -0.25), 0);
    op_end(&o);
    op_begin(&o, "com.microsoft", "FastGelu", 1);
    op_in(&o, NORI_FLOAT, "2", V(0, 1));
    op_in(&o, NORI_FLOAT, "2", V(1, -1));
    op_expect(&o, 0, NORI_FLOAT, "2", V(0.8411919906082768, 0), 1e-6);
    op_end(&o);
    op_begin(&o, "", "Shrink", 9);
    op_float(&o, "lambd", 1.5);
    op_float(&o, "bias", 1.5);
    op_in(&o, NORI_FLOAT, "5", V(-2, -1, 0, 1, 2));
    op_expect(&o, 0, NORI_FLOAT, "5", V(-0.5, 0, 0, 0, 0.5), 0);
    op_end(&o);
    op_begin(&o, "", "Celu", 12);
    op_float(&o, "alpha", 2);
    op_in(&o, NORI_FLOAT, "2", V(-2, 3));
    op_expect(&o, 0, NORI_FLOAT, "2", V(-1.2642411176571153, 3), 1e-6);
    op_end(&o);
}

static void cast(nori_type from, const double *x, nori_type to, const double *want)
{
    op o;
    op_begin(&o, "", "Cast", 25);
    op_int(&o, "to", to);
    op_in(&o, from, "4", x);
    op_expect(&o, 0, to, "4", want, 0);
    op_end(&o);
}

static void test_cast(void **state)
{
    (void)state;
    cast(NORI_FLOAT, V(1.9, -1.9, NAN, 300), NORI_INT8, V(1, -1, 0, 44));
    cast(NORI_FLOAT, V(0, -0.0, NAN, 0.1), NORI_BOOL, V(0, 0, 1, 1));
    cast(NORI_INT16, V(200, -200, 1, 0), NORI_INT8, V(-56, 56, 1, 0));
    cast(NORI_INT64, V(3, 9, -9, 8), NORI_INT4, V(3, -7, 7, -8));
    cast(NORI_INT4, V(3, -7, 7, -8), NORI_FLOAT, V(3, -7, 7, -8));
    cast(NORI_DOUBLE, V(1e300, -65520, 65519, 1), NORI_FLOAT16, V(INFINITY, -INFINITY, 65504, 1));
    cast(NORI_FLOAT, V(1e6, -1e6, NAN, 17), NORI_FLOAT8E4M3FN, V(448, -448, NAN, 16));
    cast(NORI_FLOAT, V(1.5, 0.3, NAN, 100), NORI_FLOAT4E2M1, V(1.5, 0.5, 0, 6));
    cast(NORI_FLOAT, V(3, 4, 0, INFINITY), NORI_FLOAT8E8M0, V(4, 4, 0x1p-127, 0x1p127));
    op o;
    op_begin(&o, "", "Cast", 25);
    op_int(&o, "to", NORI_FLOAT8E8M0);
    op_int(&o, "saturate", 0);
    op_text(&o, "round_mode", "nearest");
    op_in(&o, NORI_FLOAT, "4", V(3, 2.9, 0, INFINITY));
    op_expect(&o, 0, NORI_FLOAT8E8M0, "4", V(4, 2, NAN, NAN), 0);
    op_end(&o);
    op_begin(&o, "", "Cast", 25); /* beyond the 53 bits of a double */
    op_int(&o, "to", NORI_INT32);
    nori_tensor *t = op_tensor(NORI_INT64, "1", NULL);
    *(int64_t *)t->data = INT64_C(0x7fffffff00000003);
    op_give(&o, t);
    op_expect(&o, 0, NORI_INT32, "1", V(3), 0);
    op_end(&o);
    op_begin(&o, "", "BitCast", 26);
    op_int(&o, "to", NORI_INT32);
    op_in(&o, NORI_FLOAT, "2", V(1, -2));
    op_expect(&o, 0, NORI_INT32, "2", V(0x3f800000, -1073741824), 0);
    op_end(&o);
    op_begin(&o, "", "BitCast", 26);
    op_int(&o, "to", NORI_INT64);
    op_in(&o, NORI_FLOAT, "2", V(1, -2));
    assert_int_equal(op_status(&o), NORI_ERROR_MODEL);
    op_end(&o);
}

static void test_cast_text(void **state)
{
    (void)state;
    op o;
    op_begin(&o, "", "Cast", 1); /* names the type */
    op_in(&o, NORI_FLOAT, "2", V(1.5, -2));
    op_text(&o, "to", "INT64");
    op_expect(&o, 0, NORI_INT64, "2", V(1, -2), 0);
    op_end(&o);
    op_begin(&o, "", "Cast", 25);
    op_int(&o, "to", NORI_STRING);
    op_in(&o, NORI_FLOAT, "8", V(0.1, 100, -0.0, 1e-7, 1e20, NAN, -INFINITY, 123456.789));
    op_expect_text(&o, 0, "8", (const char *[]){"0.1", "100.0", "-0.0", "1e-07", "1e+20", "nan",
                                                "-inf", "123456.79"});
    op_end(&o);
    op_begin(&o, "", "Cast", 25);
    op_int(&o, "to", NORI_STRING);
    op_in(&o, NORI_INT8, "2", V(-128, 7));
    op_expect_text(&o, 0, "2", (const char *[]){"-128", "7"});
    op_end(&o);
    op_begin(&o, "", "Cast", 25);
    op_int(&o, "to", NORI_FLOAT);
    op_in_text(&o, "6", (const char *[]){"3.5", "1e-5", "+INF", "-inf", "NaN", " 7 "});
    op_expect(&o, 0, NORI_FLOAT, "6", V(3.5, (double)1e-5f, INFINITY, -INFINITY, NAN, 7), 0);
    op_end(&o);
    op_begin(&o, "", "Cast", 25);
    op_int(&o, "to", NORI_INT64);
    op_in_text(&o, "2", (const char *[]){"100.5", "-42"});
    op_expect(&o, 0, NORI_INT64, "2", V(100, -42), 0);
    op_end(&o);
    const char *const bad[] = {"Hello World!", "", "1.5x", "0x10"};
    for (size_t i = 0; i < NORI__COUNT(bad); i++) {
        op_begin(&o, "", "Cast", 25);
        op_int(&o, "to", NORI_FLOAT);
        op_in_text(&o, "1", &bad[i]);
        assert_int_equal(op_status(&o), NORI_ERROR_DATA);
        op_end(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcasting), cmocka_unit_test(test_large),
        cmocka_unit_test(test_integers),     cmocka_unit_test(test_nan_and_zero),
        cmocka_unit_test(test_pow),          cmocka_unit_test(test_variadic),
        cmocka_unit_test(test_clip),         cmocka_unit_test(test_logic),
        cmocka_unit_test(test_activations),  cmocka_unit_test(test_cast),
        cmocka_unit_test(test_cast_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
