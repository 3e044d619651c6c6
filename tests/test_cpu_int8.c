/* test_cpu_int8.c: 8-bit operators of the cpu provider: equal to the reference kernels, bit for bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu_compare.h"

static const nori_type kinds[2] = {NORI_UINT8, NORI_INT8};

static void conv(void **state)
{
    (void)state;
    static const struct {
        const char *x, *w;
        int64_t group, stride, dilation, pad;
    } cases[] = {
        {"1x3x9x11", "5x3x3x3", 1, 1, 1, 1},  {"2x3x17x13", "7x3x3x3", 1, 2, 1, 1},
        {"1x33x7x7", "13x33x1x1", 1, 1, 1, 0}, {"1x8x9x9", "10x8x1x1", 1, 2, 1, 0},
        {"1x80x6x6", "20x80x3x3", 1, 1, 1, 1}, {"1x8x10x10", "12x4x3x3", 2, 1, 2, 1},
        {"1x3x12x13", "6x3x3x3", 1, 3, 1, 0},  {"2x6x31", "8x6x5", 1, 1, 1, 2},
        {"1x3x5x6x7", "4x3x3x3x3", 1, 1, 1, 1}, {"2x5x14x15", "5x1x3x3", 5, 1, 1, 1},
        {"1x5x14x35", "10x1x5x5", 5, 2, 1, 2}, {"1x3x14x15", "3x1x3x3", 3, 3, 1, 1},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        for (int form = 0; form < 8; form++) {
            op o;
            bool linear = form & 1;
            nori_type xt = kinds[form >> 1 & 1], wt = kinds[form >> 2];
            int64_t wd[NORI_MAX_RANK], s[3], d[3], pads[6];
            char made[32];
            size_t n = (size_t)op_shape(cases[i].w, wd) - 2;
            snprintf(made, sizeof(made), "%d", (int)wd[0]);
            op_begin(&o, "", linear ? "QLinearConv" : "ConvInteger", 10);
            cpu_in(&o, xt, cases[i].x);
            if (linear) {
                op_in(&o, NORI_FLOAT, "", (double[]){0.03});
                op_in(&o, xt, "", (double[]){7});
                cpu_in(&o, wt, cases[i].w);
                cpu_in(&o, NORI_FLOAT, i % 2 ? made : "");
                cpu_in(&o, wt, i % 2 ? made : "");
                op_in(&o, NORI_FLOAT, "", (double[]){0.7});
                op_in(&o, xt, "", (double[]){11});
                if (i % 3) {
                    cpu_in(&o, NORI_INT32, made);
                }
            } else {
                cpu_in(&o, wt, cases[i].w);
                cpu_in(&o, xt, "");
                if (i % 2) {
                    cpu_in(&o, wt, "");
                }
            }
            for (size_t a = 0; a < n; a++) {
                s[a] = cases[i].stride;
                d[a] = cases[i].dilation;
                pads[a] = pads[n + a] = cases[i].pad;
            }
            op_ints(&o, "strides", s, n);
            op_ints(&o, "dilations", d, n);
            op_ints(&o, "pads", pads, 2 * n);
            op_int(&o, "group", cases[i].group);
            cpu_compare(&o, linear ? 0x28 : 0xa, 0, true);
            op_end(&o);
        }
    }
}

static void matmul(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
    } cases[] = {
        {"7x33", "33x21"}, {"1x40", "40x50"}, {"3x17", "17x1"},         {"13x700", "700x35"},
        {"2x5x9", "9x18"}, {"3x0", "0x4"},    {"2x3x13x20", "2x3x20x31"}, {"0x4", "4x3"},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        for (int form = 0; form < 16; form++) {
            op o;
            bool linear = form & 1, constant = form >> 3;
            nori_type at = kinds[form >> 1 & 1], bt = kinds[form >> 2 & 1];
            int64_t bd[NORI_MAX_RANK];
            char columns[32];
            int rank = op_shape(cases[i].b, bd);
            snprintf(columns, sizeof(columns), "%d", (int)bd[rank - 1]);
            const char *each = i % 2 && rank == 2 ? columns : "";
            op_begin(&o, "", linear ? "QLinearMatMul" : "MatMulInteger", linear ? 21 : 10);
            cpu_in(&o, at, cases[i].a);
            if (linear) {
                op_in(&o, NORI_FLOAT, "", (double[]){0.03});
                cpu_in(&o, at, "");
                cpu_in(&o, bt, cases[i].b);
                cpu_in(&o, NORI_FLOAT, each);
                cpu_in(&o, bt, each);
                op_in(&o, NORI_FLOAT, "", (double[]){0.9});
                cpu_in(&o, at, "");
            } else {
                cpu_in(&o, bt, cases[i].b);
                cpu_in(&o, at, "");
                cpu_in(&o, bt, each);
            }
            cpu_compare(&o, constant ? (linear ? 0x28 : 0xa) : 0, 0, true);
            op_end(&o);
        }
    }
}

static void quantize(void **state)
{
    (void)state;
    static const double odd[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e30, -1e30, 0.25, 0.75,
                                 1.25, -0.25, -0.75, 63.75, 64, 127, 128, -64, -64.25, 1e-30};
    static const char *const shapes[] = {"19", "3x5x70", "2x3x4", "70000", "2x0x3"};
    static const int versions[] = {10, 13, 21};
    for (size_t s = 0; s < NORI__COUNT(shapes); s++) {
        for (int form = 0; form < 4; form++) {
            op o;
            int64_t dims[NORI_MAX_RANK];
            int rank = op_shape(shapes[s], dims);
            char axis[32];
            snprintf(axis, sizeof(axis), "%d", (int)(rank > 1 ? dims[1] : 1));
            const char *each = form & 2 && rank > 1 ? axis : "";
            op_begin(&o, "", "QuantizeLinear", versions[s % 3]);
            if (s == 0) {
                op_in(&o, NORI_FLOAT, shapes[s], odd);
            } else {
                cpu_in(&o, NORI_FLOAT, shapes[s]);
            }
            op_give(&o, op_tensor(NORI_FLOAT, each, NULL));
            for (int64_t i = 0; i < o.in[1]->count; i++) {
                nori__tensor_set_f64(o.in[1], i, s == 0 ? 0.5 : 0.005 + (double)i * 0.001);
            }
            cpu_in(&o, kinds[form & 1], each);
            cpu_compare(&o, 6, 0, true);
            op_end(&o);
            op_begin(&o, "", "DequantizeLinear", versions[s % 3]);
            cpu_in(&o, kinds[form & 1], shapes[s]);
            cpu_in(&o, NORI_FLOAT, each);
            cpu_in(&o, kinds[form & 1], each);
            cpu_compare(&o, 6, 0, true);
            op_end(&o);
        }
        op o;
        op_begin(&o, "", "DynamicQuantizeLinear", 11);
        cpu_in(&o, NORI_FLOAT, shapes[s]);
        op_outputs(&o, 3);
        cpu_compare(&o, 0, 0, true);
        op_end(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv),
        cmocka_unit_test(matmul),
        cmocka_unit_test(quantize),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
