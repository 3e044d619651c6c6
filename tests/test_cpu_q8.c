/* test_cpu_q8.c: operators on quantized values of the cpu provider that do not multiply matrices:
 * equal to the reference kernels, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu_compare.h"

static const nori_type kinds[2] = {NORI_UINT8, NORI_INT8};
#define MS "com.microsoft"

/* Scale and zero point. */
static void quantized(op *o, double scale, nori_type type, double zero)
{
    op_in(o, NORI_FLOAT, "", &scale);
    op_in(o, type, "", &zero);
}

static void two(void **state)
{
    (void)state;
    static const char *const shapes[][2] = {{"3x5x70", "3x5x70"}, {"2x4x33", "4x1"}, {"1", "19"},
                                            {"40000", ""}, {"2x0x3", "2x0x3"}, {"2x3x4", "2x1x4"}};
    for (size_t s = 0; s < NORI__COUNT(shapes); s++) {
        for (int form = 0; form < 4; form++) {
            op o;
            nori_type t = kinds[form & 1];
            op_begin(&o, MS, form >> 1 ? "QLinearMul" : "QLinearAdd", 1);
            cpu_in(&o, t, shapes[s][0]);
            quantized(&o, 0.03, t, 7);
            cpu_in(&o, t, shapes[s][1]);
            quantized(&o, 0.05, t, 90);
            quantized(&o, form >> 1 ? 0.3 : 0.06, t, 11);
            cpu_compare(&o, 0xf6, 0, true);
            op_end(&o);
        }
    }
}

static void concat(void **state)
{
    (void)state;
    static const char *const shapes[][2] = {{"2x3x50", "2x7x50"}, {"1x2x90000", "1x1x90000"},
                                            {"2x0x4", "2x3x4"}, {"3x1", "3x1"}};
    for (size_t s = 0; s < NORI__COUNT(shapes); s++) {
        for (int form = 0; form < 2; form++) {
            op o;
            nori_type t = kinds[form];
            op_begin(&o, MS, "QLinearConcat", 1);
            quantized(&o, 0.05, t, 11);
            cpu_in(&o, t, shapes[s][0]);
            quantized(&o, 0.05, t, 11); /* as the result */
            cpu_in(&o, t, shapes[s][1]);
            quantized(&o, 0.03, t, 90);
            cpu_in(&o, t, shapes[s][0]);
            quantized(&o, 0.2, t, 3);
            op_int(&o, "axis", 1);
            cpu_compare(&o, 0, 0, true);
            op_end(&o);
        }
    }
}

static void softmax(void **state)
{
    (void)state;
    static const char *const shapes[] = {"3x10", "2x300x3", "2x3x700", "1x1", "7x197", "64x50"};
    for (size_t s = 0; s < NORI__COUNT(shapes); s++) {
        for (int form = 0; form < 4; form++) {
            op o;
            nori_type t = kinds[form & 1];
            op_begin(&o, MS, "QLinearSoftmax", 1);
            cpu_in(&o, t, shapes[s]);
            quantized(&o, s < 4 ? 0.03 : s == 4 ? 0.002 : 0.2, t, 7);
            quantized(&o, s == 5 ? 1e-3 : 1.0 / 256, t, form & 1 ? -128 : 0);
            op_int(&o, "axis", form >> 1 ? 1 : -1);
            op_int(&o, "opset", 13);
            cpu_compare(&o, 0, 0, true);
            op_end(&o);
        }
    }
}

static void pools(void **state)
{
    (void)state;
    static const struct {
        const char *x;
        int64_t kernel, stride, dilation, pad, ceil, include;
    } cases[] = {
        {"1x3x9x11", 2, 2, 1, 0, 0, 0}, {"2x4x17x40", 3, 2, 1, 1, 0, 0}, {"1x2x7x7", 3, 1, 1, 1, 0, 1},
        {"1x5x13x13", 5, 1, 1, 2, 0, 0}, {"2x3x31", 3, 2, 1, 1, 1, 0},   {"1x2x20x70", 3, 3, 2, 1, 0, 0},
        {"1x4x8x8", 2, 2, 1, 0, 1, 1},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        for (int form = 0; form < 4; form++) {
            op o;
            nori_type t = kinds[form & 1];
            int64_t d[NORI_MAX_RANK], k[2], s[2], f[2], pads[4];
            size_t n = (size_t)op_shape(cases[i].x, d) - 2;
            bool average = form >> 1;
            for (size_t a = 0; a < n; a++) {
                k[a] = cases[i].kernel;
                s[a] = cases[i].stride;
                f[a] = average ? 1 : cases[i].dilation;
                pads[a] = pads[n + a] = cases[i].pad;
            }
            op_begin(&o, average ? MS : "", average ? "QLinearAveragePool" : "MaxPool",
                     average ? 1 : 12);
            cpu_in(&o, t, cases[i].x);
            if (average) {
                quantized(&o, 0.03, t, 7);
                quantized(&o, 0.02, t, 100);
                op_int(&o, "count_include_pad", cases[i].include);
            }
            op_ints(&o, "kernel_shape", k, n);
            op_ints(&o, "strides", s, n);
            op_ints(&o, "dilations", f, n);
            op_ints(&o, "pads", pads, 2 * n);
            op_int(&o, "ceil_mode", cases[i].ceil);
            cpu_compare(&o, 0, 0, true);
            op_end(&o);
        }
    }
}

static void means(void **state)
{
    (void)state;
    static const char *const shapes[] = {"1x7x7x7", "2x3x100", "1x2x3x4x5", "1x4x1x1"};
    for (size_t s = 0; s < NORI__COUNT(shapes); s++) {
        for (int form = 0; form < 2; form++) {
            op o;
            nori_type t = kinds[form];
            op_begin(&o, MS, "QLinearGlobalAveragePool", 1);
            cpu_in(&o, t, shapes[s]);
            quantized(&o, 0.0371, t, 7);
            quantized(&o, 0.01, t, 100);
            op_int(&o, "channels_last", 0);
            cpu_compare(&o, 0, 0, true);
            op_end(&o);
        }
    }
}

static void transpose(void **state)
{
    (void)state;
    static const struct {
        const char *x;
        int64_t perm[4];
    } cases[] = {{"2x3x17x9", {0, 2, 3, 1}}, {"1x33x5x70", {3, 1, 2, 0}}, {"4x5x6x7", {2, 0, 1, 3}},
                 {"1x1x200x3", {0, 1, 3, 2}}, {"3x4x5x6", {3, 2, 1, 0}}};
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        op o;
        op_begin(&o, "", "Transpose", 13);
        cpu_in(&o, kinds[i % 2], cases[i].x);
        op_ints(&o, "perm", cases[i].perm, 4);
        cpu_compare(&o, 0, 0, true);
        op_end(&o);
    }
}

static void gemm(void **state)
{
    (void)state;
    static const char *const shapes[][3] = {
        {"3x20", "20x7", "7"}, {"1x64", "64x33", "33"}, {"9x5", "5x1", "1"}};
    for (size_t s = 0; s < NORI__COUNT(shapes); s++) {
        for (int form = 0; form < 8; form++) {
            op o;
            nori_type t = kinds[form & 1], w = kinds[form >> 1 & 1];
            const char *each = form >> 2 ? shapes[s][2] : "";
            op_begin(&o, MS, "QGemm", 1);
            cpu_in(&o, t, shapes[s][0]);
            quantized(&o, 0.03, t, 7);
            cpu_in(&o, w, shapes[s][1]);
            cpu_in(&o, NORI_FLOAT, each);
            cpu_in(&o, w, each);
            if (form % 3) {
                cpu_in(&o, NORI_INT32, shapes[s][2]);
            } else {
                op_give(&o, NULL);
            }
            quantized(&o, 1.3, t, 40);
            op_float(&o, "alpha", form & 1 ? 1.5f : 1.0f);
            cpu_compare(&o, 0x38, 0, true);
            op_end(&o);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two),   cmocka_unit_test(concat), cmocka_unit_test(softmax),
        cmocka_unit_test(pools), cmocka_unit_test(means),  cmocka_unit_test(gemm),
        cmocka_unit_test(transpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
