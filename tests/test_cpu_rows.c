/* test_cpu_rows.c: elementwise, row-wise, pooling and transposing kernels of the cpu provider against
 * the reference kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu_compare.h"

static const double special[] = {0,    -0.0, INFINITY, -INFINITY, NAN,  1e-40, -1e-40, 3e38, -3e38,
                                 88.6, -88,  -103,     5,         -5,   0.5,   -0.5,   9,    -9,
                                 0.62, 0.63, 1.0,      -1.0,      4.49, -6.5,  20,     -20,  100};

static void unary(void **state)
{
    (void)state;
    static const struct {
        const char *op, *domain;
        int version;
        double tolerance;
    } cases[] = {
        {"Relu", "", 14, 0},        {"LeakyRelu", "", 16, 1e-7}, {"Clip", "", 13, 0},
        {"HardSigmoid", "", 6, 1e-6}, {"HardSwish", "", 14, 1e-6}, {"Sigmoid", "", 13, 1e-6},
        {"Tanh", "", 13, 1e-6},     {"Exp", "", 13, 1e-6},       {"Erf", "", 13, 1e-6},
        {"Gelu", "", 20, 1e-6},     {"Swish", "", 24, 1e-6},     {"Sqrt", "", 13, 1e-7},
        {"Elu", "", 6, 1e-6},
        {"Reciprocal", "", 13, 1e-7}, {"Neg", "", 13, 0},        {"Abs", "", 13, 0},
        {"FastGelu", "com.microsoft", 1, 1e-6},
    };
    static const char *const shapes[] = {"27", "1", "3x5x7", "", "2x0", "70000", "8x16"};
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        for (size_t s = 0; s < NORI__COUNT(shapes); s++) {
            op o;
            op_begin(&o, cases[i].domain, cases[i].op, cases[i].version);
            if (s == 0) {
                op_in(&o, NORI_FLOAT, shapes[s], special);
            } else {
                cpu_in(&o, NORI_FLOAT, shapes[s]);
                for (int64_t e = 0; e < o.in[0]->count; e++) {
                    ((float *)o.in[0]->data)[e] *= 6;
                }
            }
            if (nori__same(cases[i].op, "Clip")) {
                op_in(&o, NORI_FLOAT, "", (double[]){-0.5});
                op_in(&o, NORI_FLOAT, "", (double[]){2.5});
            }
            cpu_compare(&o, 0, cases[i].tolerance, true);
            op_end(&o);
        }
    }
    op o;
    op_begin(&o, "", "Gelu", 20);
    op_in(&o, NORI_FLOAT, "27", special);
    op_text(&o, "approximate", "tanh");
    cpu_compare(&o, 0, 1e-6, true);
    op_end(&o);
}

static void binary(void **state)
{
    (void)state;
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "Max", "Min"};
    static const char *const shapes[][2] = {
        {"2x3x5x7", "2x3x5x7"}, {"2x3x5x7", "3x1x1"}, {"2x3x5x7", ""}, {"", "9"},
        {"2x3x1x7", "1x3x5x1"}, {"4x17", "17"},       {"4x17", "4x1"}, {"0x4", "4"},
        {"300x300", "300"},     {"27", "27"},
    };
    for (size_t i = 0; i < NORI__COUNT(ops); i++) {
        for (size_t s = 0; s < NORI__COUNT(shapes); s++) {
            op o;
            op_begin(&o, "", ops[i], 14);
            cpu_in(&o, NORI_FLOAT, shapes[s][0]);
            if (s + 1 == NORI__COUNT(shapes)) {
                op_in(&o, NORI_FLOAT, "27", special);
            } else {
                cpu_in(&o, NORI_FLOAT, shapes[s][1]);
            }
            cpu_compare(&o, 0, 0, true);
            op_end(&o);
        }
    }
}

static void rows(void **state)
{
    (void)state;
    static const char *const shapes[] = {"3x5", "2x3x128", "1x1", "4x33", "2x7x1x1000", "3x9x0"};
    op o;
    for (size_t s = 0; s < NORI__COUNT(shapes); s++) {
        int64_t dims[NORI_MAX_RANK];
        char last[16];
        snprintf(last, sizeof(last), "%d", (int)dims[op_shape(shapes[s], dims) - 1]);
        for (int version = 11; version <= 13; version += 2) {
            op_begin(&o, "", "Softmax", version);
            cpu_in(&o, NORI_FLOAT, shapes[s]);
            cpu_compare(&o, 0, 1e-6, true);
            op_end(&o);
        }
        op_begin(&o, "", "LayerNormalization", 17);
        cpu_in(&o, NORI_FLOAT, shapes[s]);
        cpu_in(&o, NORI_FLOAT, last);
        cpu_in(&o, NORI_FLOAT, last);
        op_outputs(&o, o.in[0]->count > 0 ? 3 : 1);
        cpu_compare(&o, 0, 2e-5, true);
        op_end(&o);
        op_begin(&o, "", "RMSNormalization", 23);
        cpu_in(&o, NORI_FLOAT, shapes[s]);
        cpu_in(&o, NORI_FLOAT, last);
        cpu_compare(&o, 0, 2e-5, true);
        op_end(&o);
        op_begin(&o, "", "ReduceMean", 18);
        cpu_in(&o, NORI_FLOAT, shapes[s]);
        op_in(&o, NORI_INT64, "1", (double[]){-1});
        op_int(&o, "keepdims", s % 2);
        cpu_compare(&o, 0, 1e-6, true);
        op_end(&o);
    }
    op_begin(&o, "", "Softmax", 13);
    cpu_in(&o, NORI_FLOAT, "2x5x6");
    op_int(&o, "axis", 1);
    cpu_compare(&o, 0, 1e-6, true);
    op_end(&o);
    op_begin(&o, "", "ReduceMean", 18);
    cpu_in(&o, NORI_FLOAT, "2x5x6x7");
    op_in(&o, NORI_INT64, "2", (double[]){3, -2});
    cpu_compare(&o, 0, 1e-6, true);
    op_end(&o);
    op_begin(&o, "", "ReduceMean", 18);
    cpu_in(&o, NORI_FLOAT, "2x5x6x7");
    op_in(&o, NORI_INT64, "2", (double[]){0, 3});
    cpu_compare(&o, 0, 1e-6, true);
    op_end(&o);
    op_begin(&o, "com.microsoft", "SkipLayerNormalization", 1);
    cpu_in(&o, NORI_FLOAT, "2x5x40");
    cpu_in(&o, NORI_FLOAT, "2x5x40");
    cpu_in(&o, NORI_FLOAT, "40");
    cpu_in(&o, NORI_FLOAT, "40");
    cpu_in(&o, NORI_FLOAT, "40");
    op_outputs(&o, 4);
    o.made[1] = o.made[2] = NULL;
    cpu_compare(&o, 0, 2e-5, true);
    op_end(&o);
}

/* Softmax where rows lie apart, and where they are short; one value a row; what has slopes. */
static void other_rows(void **state)
{
    (void)state;
    op o;
    static const struct {
        const char *x;
        int64_t axis;
    } soft[] = {{"2x5x6", 1}, {"2x5x300", 1}, {"3x2x7x5", 0}, {"300x2", -1}, {"1000x3", 1},
                {"7x31x2", 1}, {"2x3x31", -1}, {"5x1x4", 1}, {"129x1", 1}, {"1x3", -1}};
    for (size_t i = 0; i < NORI__COUNT(soft); i++) {
        op_begin(&o, "", "Softmax", 13);
        cpu_in(&o, NORI_FLOAT, soft[i].x);
        op_int(&o, "axis", soft[i].axis);
        cpu_compare(&o, 0, 1e-6, true);
        op_end(&o);
    }
    op_begin(&o, "", "Softmax", 13);
    op_in(&o, NORI_FLOAT, "2x3", (double[]){1, NAN, 2, 88, -INFINITY, 100});
    cpu_compare(&o, 0, 1e-6, true);
    op_end(&o);
    static const char *const reductions[] = {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"};
    static const double axes[][2] = {{-1, -2}, {0, 2}, {1, 2}};
    for (size_t i = 0; i < 12; i++) {
        op_begin(&o, "", reductions[i % 4], 18);
        cpu_in(&o, NORI_FLOAT, "4x17x9");
        op_in(&o, NORI_INT64, "2", axes[i / 4]);
        op_int(&o, "keepdims", (int64_t)i % 2);
        cpu_compare(&o, 0, 1e-5, true);
        op_end(&o);
    }
    static const char *const slopes[] = {"3x1x1", "1", "1x3x1x1", "7", "", "2x3x5x7"};
    for (size_t i = 0; i < NORI__COUNT(slopes); i++) {
        op_begin(&o, "", "PRelu", 16);
        cpu_in(&o, NORI_FLOAT, "2x3x5x7");
        cpu_in(&o, NORI_FLOAT, slopes[i]);
        cpu_compare(&o, 2, 0, true);
        op_end(&o);
    }
    static const double by[] = {2, 3, 0.5, -1, 2.5, 0};
    for (size_t i = 0; i < NORI__COUNT(by); i++) {
        op_begin(&o, "", "Pow", 15);
        op_in(&o, NORI_FLOAT, "27", special);
        op_in(&o, NORI_FLOAT, i % 2 ? "" : "1", &by[i]);
        cpu_compare(&o, 2, 1e-6, true);
        op_end(&o);
        op_begin(&o, "", "Pow", 15);
        cpu_in(&o, NORI_FLOAT, "3x333");
        op_in(&o, NORI_FLOAT, "", &by[i]);
        cpu_compare(&o, 2, 1e-6, true);
        op_end(&o);
    }
}

static void channels(void **state)
{
    (void)state;
    op o;
    static const char *const shapes[] = {"2x3x5x7", "1x3x1x1", "2x3x33", "2x3x0x4"};
    for (size_t s = 0; s < NORI__COUNT(shapes); s++) {
        op_begin(&o, "", "InstanceNormalization", 6);
        cpu_in(&o, NORI_FLOAT, shapes[s]);
        cpu_in(&o, NORI_FLOAT, "3");
        cpu_in(&o, NORI_FLOAT, "3");
        cpu_compare(&o, 0, s == 1 ? 1 : 2e-5, true); /* one element: all noise */
        op_end(&o);
        op_begin(&o, "", "BatchNormalization", 15);
        cpu_in(&o, NORI_FLOAT, shapes[s]);
        cpu_in(&o, NORI_FLOAT, "3");
        cpu_in(&o, NORI_FLOAT, "3");
        cpu_in(&o, NORI_FLOAT, "3");
        op_in(&o, NORI_FLOAT, "3", (double[]){0.5, 1, 2});
        cpu_compare(&o, 0, 2e-6, true);
        op_end(&o);
        for (int max = 0; max < 2; max++) {
            op_begin(&o, "", max ? "GlobalMaxPool" : "GlobalAveragePool", 1);
            cpu_in(&o, NORI_FLOAT, shapes[s]);
            cpu_compare(&o, 0, 1e-6, true);
            op_end(&o);
        }
    }
}

static void pool(void **state)
{
    (void)state;
    static const struct {
        const char *x;
        int64_t kernel, stride, dilation, begin, end, ceil, include;
    } cases[] = {
        {"1x3x20x21", 2, 2, 1, 0, 0, 0, 0}, {"2x3x20x21", 3, 2, 1, 1, 1, 0, 0},
        {"1x3x20x21", 3, 1, 1, 1, 1, 0, 1}, {"1x3x20x21", 3, 2, 1, 0, 0, 1, 0},
        {"1x3x20x21", 3, 2, 1, 1, 0, 1, 1}, {"1x3x20x21", 3, 3, 2, 2, 1, 0, 0},
        {"1x3x5x5", 5, 1, 1, 2, 2, 0, 0},   {"1x3x1x1", 3, 1, 1, 1, 1, 0, 0},
        {"2x3x40", 4, 2, 1, 1, 2, 0, 1},    {"1x2x4x5x6", 2, 1, 1, 0, 0, 0, 0},
        {"1x1x9x70", 1, 2, 1, 0, 0, 0, 0},  {"1x3x112x112", 3, 2, 1, 1, 1, 0, 0},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        for (int average = 0; average < 2; average++) {
            op o;
            int64_t dims[NORI_MAX_RANK], pads[6], same[3][3];
            size_t n = (size_t)op_shape(cases[i].x, dims) - 2;
            for (size_t d = 0; d < n; d++) {
                same[0][d] = cases[i].kernel;
                same[1][d] = cases[i].stride;
                same[2][d] = cases[i].dilation;
                pads[d] = cases[i].begin;
                pads[n + d] = cases[i].end;
            }
            op_begin(&o, "", average ? "AveragePool" : "MaxPool", average ? 22 : 12);
            cpu_in(&o, NORI_FLOAT, cases[i].x);
            op_ints(&o, "kernel_shape", same[0], n);
            op_ints(&o, "strides", same[1], n);
            op_ints(&o, "dilations", same[2], n);
            op_ints(&o, "pads", pads, 2 * n);
            op_int(&o, "ceil_mode", cases[i].ceil);
            if (average) {
                op_int(&o, "count_include_pad", cases[i].include);
            }
            cpu_compare(&o, 0, average ? 1e-6 : 0, true);
            op_end(&o);
        }
    }
}

static void transpose(void **state)
{
    (void)state;
    static const struct {
        const char *x;
        int64_t perm[5];
    } cases[] = {
        {"3x5", {1, 0}},          {"17x33", {1, 0}},        {"2x3x4", {0, 2, 1}},
        {"2x3x4", {2, 1, 0}},     {"2x9x4x8", {0, 2, 1, 3}}, {"2x9x4x8", {0, 2, 3, 1}},
        {"2x9x4x8", {0, 3, 1, 2}}, {"2x9x4x8", {3, 1, 2, 0}}, {"1x9x1x8", {3, 1, 2, 0}},
        {"2x3x4x5x6", {4, 2, 0, 3, 1}}, {"300x200", {1, 0}}, {"7", {0}}, {"3x0", {1, 0}},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        op o;
        int64_t dims[NORI_MAX_RANK];
        op_begin(&o, "", "Transpose", 13);
        cpu_in(&o, i % 2 ? NORI_FLOAT : NORI_INT32, cases[i].x);
        op_ints(&o, "perm", cases[i].perm, (size_t)op_shape(cases[i].x, dims));
        cpu_compare(&o, 0, 0, true);
        op_end(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary),    cmocka_unit_test(binary), cmocka_unit_test(rows),
        cmocka_unit_test(other_rows),
        cmocka_unit_test(channels), cmocka_unit_test(pool),   cmocka_unit_test(transpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
