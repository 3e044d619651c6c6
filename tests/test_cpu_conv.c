/* test_cpu_conv.c: convolutions of the cpu provider against the reference kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu_compare.h"

typedef struct conv_case {
    const char *x, *w;
    int64_t group, stride, dilation, pad;
    const char *activation;
    bool bias, sum;
} conv_case;

static void conv_one(const conv_case *c)
{
    op o;
    int64_t wd[NORI_MAX_RANK], list[6];
    int rank = op_shape(c->w, wd), n = rank - 2;
    bool fused = c->activation || c->sum;
    op_begin(&o, fused ? "com.microsoft" : "", fused ? "FusedConv" : "Conv", fused ? 1 : 11);
    cpu_in(&o, NORI_FLOAT, c->x);
    cpu_in(&o, NORI_FLOAT, c->w);
    char made[32];
    snprintf(made, sizeof(made), "%d", (int)wd[0]);
    if (c->bias) {
        cpu_in(&o, NORI_FLOAT, made);
    } else if (c->sum) {
        op_give(&o, NULL);
    }
    int64_t strides[3] = {c->stride, c->stride, c->stride};
    int64_t dilations[3] = {c->dilation, c->dilation, c->dilation};
    for (int i = 0; i < 6; i++) {
        list[i] = c->pad;
    }
    op_ints(&o, "strides", strides, (size_t)n);
    op_ints(&o, "dilations", dilations, (size_t)n);
    op_ints(&o, "pads", list, (size_t)(2 * n));
    op_int(&o, "group", c->group);
    float params[2] = {-0.25f, 0.5f};
    if (c->activation) {
        op_text(&o, "activation", c->activation);
        if (nori__same(c->activation, "Clip") || nori__same(c->activation, "LeakyRelu")) {
            op_floats(&o, "activation_params", params, 2);
        }
    }
    if (c->sum) {
        int64_t xd[NORI_MAX_RANK];
        char shape[128];
        op_shape(c->x, xd);
        size_t used = (size_t)snprintf(shape, sizeof(shape), "%dx%d", (int)xd[0], (int)wd[0]);
        for (int d = 0; d < n; d++) {
            int64_t out = (xd[d + 2] + 2 * c->pad - (wd[d + 2] - 1) * c->dilation - 1) / c->stride + 1;
            used += (size_t)snprintf(shape + used, sizeof(shape) - used, "x%d", (int)out);
        }
        cpu_in(&o, NORI_FLOAT, shape);
    }
    cpu_compare(&o, 2, 2e-5, true);
    op_end(&o);
}

static void conv_shapes(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {"1x3x9x11", "5x3x3x3", 1, 1, 1, 1, NULL, true, false},
        {"2x3x17x13", "7x3x3x3", 1, 2, 1, 1, NULL, true, false},
        {"1x16x14x14", "32x16x3x3", 1, 1, 1, 1, "Relu", true, true},
        {"1x4x30x29", "6x4x7x7", 1, 2, 1, 3, NULL, false, false},
        {"1x4x12x12", "6x4x3x3", 1, 1, 2, 2, "Clip", true, false},
        {"1x5x12x13", "6x5x3x3", 1, 3, 1, 0, NULL, true, false},
        {"2x33x7x7", "13x33x1x1", 1, 1, 1, 0, "Sigmoid", true, false},
        {"1x8x9x9", "10x8x1x1", 1, 2, 1, 0, NULL, true, true},
        {"1x300x5x5", "9x300x1x1", 1, 1, 1, 0, "HardSigmoid", false, true},
        {"1x40x6x6", "20x40x3x3", 1, 1, 1, 1, "Tanh", true, false},
        {"1x8x10x10", "12x4x3x3", 2, 1, 1, 1, "LeakyRelu", true, false},
        {"1x12x10x10", "12x4x3x3", 3, 2, 1, 1, NULL, true, true},
        {"2x6x31", "8x6x5", 1, 1, 1, 2, NULL, true, false},
        {"1x6x31", "8x6x5", 1, 2, 1, 2, "Relu", true, false},
        {"1x3x5x6x7", "4x3x3x3x3", 1, 1, 1, 1, NULL, true, false},
        {"1x4x5x6x7", "4x2x2x3x2", 2, 2, 1, 1, NULL, true, false},
        {"1x2x1x1", "3x2x1x1", 1, 1, 1, 0, NULL, true, false},
        {"1x2x3x40", "3x2x3x1", 1, 1, 1, 1, NULL, true, false},
        {"1x2x40x1", "3x2x3x3", 1, 1, 1, 1, NULL, true, false},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        conv_one(&cases[i]);
    }
}

static void depthwise(void **state)
{
    (void)state;
    static const conv_case cases[] = {
        {"1x5x9x11", "5x1x3x3", 5, 1, 1, 1, NULL, true, false},
        {"2x5x14x14", "5x1x3x3", 5, 2, 1, 1, "Relu", true, false},
        {"1x5x28x29", "5x1x5x5", 5, 1, 1, 2, "Clip", false, true},
        {"1x5x28x33", "5x1x5x5", 5, 2, 1, 2, "Sigmoid", true, false},
        {"1x5x12x20", "10x1x3x3", 5, 1, 2, 2, NULL, true, false},
        {"1x3x20x20", "3x1x7x7", 3, 1, 1, 3, NULL, true, true},
        {"1x3x20x20", "3x1x7x7", 3, 3, 1, 3, NULL, true, false},
        {"1x4x25", "4x1x3", 4, 1, 1, 1, "Relu", true, false},
        {"1x4x1x1", "4x1x3x3", 4, 1, 1, 1, NULL, true, false},
        {"1x2x57x65", "2x1x3x3", 2, 1, 1, 1, "Relu", true, true},
        {"1x2x57x65", "2x1x3x3", 2, 2, 1, 0, NULL, true, false},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        conv_one(&cases[i]);
    }
}

/* Subnormal weights and activations are as good as zero to what adds them up, and leave no trace in how
 * the caller's thread computes. */
static void subnormal(void **state)
{
    (void)state;
    op o;
    op_begin(&o, "", "Conv", 11);
    cpu_in(&o, NORI_FLOAT, "1x8x9x9");
    cpu_in(&o, NORI_FLOAT, "16x8x3x3");
    cpu_in(&o, NORI_FLOAT, "16");
    float *x = o.in[0]->data, *w = o.in[1]->data, *bias = o.in[2]->data;
    for (int64_t i = 0; i < o.in[0]->count; i += 2) {
        x[i] *= 1e-40f;
    }
    for (int64_t i = 0; i < o.in[1]->count; i += 3) {
        w[i] *= 1e-40f;
    }
    bias[3] = 0;
    for (int64_t i = 0; i < 8 * 9; i++) {
        w[3 * 8 * 9 + i] = 1e-41f;
    }
    cpu_compare(&o, 6, 2e-5, true);
    volatile float small = 1e-30f;
    assert_true(small * 1e-10f > 0);
    op_end(&o);
}

/* Forms the kernel hands to the reference: the answer is the same. */
static void conv_odd(void **state)
{
    (void)state;
    op o;
    static const int64_t crop[4] = {-1, 0, 0, -1};
    op_begin(&o, "", "Conv", 11);
    cpu_in(&o, NORI_FLOAT, "1x2x8x8");
    cpu_in(&o, NORI_FLOAT, "3x2x3x3");
    op_ints(&o, "pads", crop, 4);
    cpu_compare(&o, 2, 0, true);
    op_end(&o);
    op_begin(&o, "", "Conv", 11); /* weights that may change are not packed */
    cpu_in(&o, NORI_FLOAT, "1x2x8x8");
    cpu_in(&o, NORI_FLOAT, "3x2x3x3");
    cpu_compare(&o, 0, 0, false);
    op_end(&o);
    op_begin(&o, "", "Conv", 11);
    cpu_in(&o, NORI_FLOAT, "0x2x8x8");
    cpu_in(&o, NORI_FLOAT, "3x2x3x3");
    cpu_compare(&o, 2, 0, true);
    op_end(&o);
    op_begin(&o, "", "Conv", 11);
    cpu_in(&o, NORI_FLOAT, "1x2x9x8");
    cpu_in(&o, NORI_FLOAT, "3x2x4x3");
    op_text(&o, "auto_pad", "SAME_LOWER");
    cpu_compare(&o, 2, 2e-5, true);
    op_end(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_shapes),
        cmocka_unit_test(depthwise),
        cmocka_unit_test(subnormal),
        cmocka_unit_test(conv_odd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
