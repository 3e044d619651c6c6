/* Every operator the provider opencl takes, at odd shapes, against the reference provider: fp32
 * storage within 1e-5, fp16 storage within 2e-3 (of 1, or of the value where that is larger). Inputs
 * are exact in float16, so that is the rounding of results and of values in between.
 * Exits 77 where there is no OpenCL device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "make_model.h"
#include "opencl_case.h"

typedef struct row {
    const char *op, *inputs, *attributes;
    int outputs;   /* 0: one */
    int64_t opset; /* 0: 21 */
} row;

static const row convolutions[] = {
    {"Conv", "1x5x9x7 c:7x5x3x3 c:7", "pads=[1,1,1,1]"},
    {"Conv", "2x5x9x7 c:7x5x3x3", "strides=[2,1] pads=[0,2,1,0] dilations=[1,2]"},
    {"Conv", "1x6x5x11 c:9x2x3x2 c:9", "group=3 strides=[1,3]"},
    {"Conv", "2x5x7x6 c:3x5x1x1 c:3", ""},
    {"Conv", "1x6x7x7 c:10x3x1x1", "group=2"},
    {"Conv", "1x4x5x3 c:6x4x1x1", "strides=[2,2]"},
    {"Conv", "2x5x9x11 c:5x1x3x3 c:5", "group=5 pads=[1,1,1,1]"},
    {"Conv", "1x3x9x10 c:3x1x5x3", "group=3 strides=[2,2] dilations=[1,3] pads=[2,3,2,3]"},
    {"Conv", "1x3x8x8 c:6x1x3x3", "group=3"},
    {"Conv", "2x3x17 c:5x3x4 c:5", "pads=[2,1] strides=[2]"},
    {"Conv", "1x2x7x7 c:3x2x3x3", "auto_pad=SAME_UPPER strides=[2,2]"},
    {"Conv", "1x2x7x8 c:3x2x2x2", "auto_pad=SAME_LOWER"},
    {"Conv then Relu", "1x5x9x7 c:7x5x3x3 c:7", ""},
    {"Conv then Sigmoid", "1x5x6x7 c:5x1x3x3 c:5", "group=5"},
    {"Conv then HardSwish", "1x5x6x7 c:6x5x1x1 c:6", ""},
    {"ConvTranspose", "1x4x5x3 c:4x3x3x3 c:3", "strides=[2,2] pads=[1,0,1,1]"},
    {"ConvTranspose", "2x4x5x3 c:4x2x2x3", "group=2 strides=[1,2] output_padding=[0,1]"},
    {"ConvTranspose", "1x2x6 c:2x3x4 c:3", "strides=[3] dilations=[2]"},
};

static const row products[] = {
    {"Gemm", "5x7 c:7x9 c:9", ""},
    {"Gemm", "5x7 c:9x7 c:5x1", "transB=1 alpha=0.5 beta=2.0"},
    {"Gemm", "7x5 c:7x6 s:", "transA=1"},
    {"Gemm", "6x7 9x7", "transB=1 alpha=1.5"},
    {"Gemm", "7x6 7x9 c:6x9", "transA=1"},
    {"Gemm then Relu", "3x33 c:33x10 c:10", ""},
    {"MatMul", "5x7 c:7x9", ""},
    {"MatMul", "2x3x5x7 c:7x6", ""},
    {"MatMul", "2x3x5x7 2x3x7x4", ""},
    {"MatMul", "3x5x7 2x1x7x9", ""},
    {"MatMul", "5x7 2x7x9", ""},
    {"MatMul", "2x5x7 c:2x7x3", ""},
    {"MatMul", "7 7x5", ""},
    {"MatMul", "3x7 7", ""},
    {"MatMul", "2x3x7 c:7", ""},
    {"MatMul", "7 7", ""},
    {"MatMul then Tanh", "1x70 c:70x3", ""},
};

static const row windows[] = {
    {"MaxPool", "2x3x9x7", "kernel_shape=[3,2] strides=[2,1] pads=[1,0,1,1]"},
    {"MaxPool", "1x3x10x11", "kernel_shape=[2,3] dilations=[2,2] ceil_mode=1 strides=[3,2]"},
    {"MaxPool", "1x3x10", "kernel_shape=[3] auto_pad=SAME_UPPER strides=[2]"},
    {"AveragePool", "2x3x9x7", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"},
    {"AveragePool", "1x3x8x7", "kernel_shape=[3,2] pads=[1,0,1,1] count_include_pad=1"},
    {"AveragePool", "1x3x8x7", "kernel_shape=[3,3] strides=[2,2] ceil_mode=1 count_include_pad=1"},
    {"AveragePool", "2x3x11", "kernel_shape=[4] strides=[3] dilations=[2]"},
    {"GlobalAveragePool", "2x3x9x7", ""},
    {"GlobalMaxPool", "2x5x3x2", ""},
    {"GlobalAveragePool", "1x3x5", ""},
};

static const row elementwise[] = {
    {"Relu", "3x5", ""},
    {"LeakyRelu", "3x5", "alpha=0.25"},
    {"Clip", "3x5 - s:", ""},
    {"Clip", "3x5 s:", ""},
    {"Sigmoid", "3x5", ""},
    {"Tanh", "3x5", ""},
    {"HardSigmoid", "3x5", "alpha=0.3"},
    {"HardSwish", "7x5", ""},
    {"Mish", "3x5", ""},
    {"Gelu", "3x5", ""},
    {"Gelu", "3x5", "approximate=tanh"},
    {"Swish", "3x5", "alpha=1.5", 1, 24},
    {"Elu", "3x5", "alpha=2.0"},
    {"Celu", "3x5", "alpha=0.5"},
    {"Selu", "3x5", ""},
    {"ThresholdedRelu", "3x5", "alpha=0.25"},
    {"Softplus", "3x5", ""},
    {"Softsign", "3x5", ""},
    {"Exp", "3x5", ""},
    {"Log", "3x5", ""},
    {"Sqrt", "3x5", ""},
    {"Reciprocal", "3x5", ""},
    {"Abs", "3x5", ""},
    {"Neg", "1", ""},
    {"Floor", "67", ""},
    {"Ceil", "67", ""},
    {"Round", "67", ""},
    {"Sign", "67", ""},
    {"Erf", "3x5", ""},
    {"Sin", "3x5", ""},
    {"Cos", "3x5", ""},
    {"Add", "3x5 3x5", ""},
    {"Add", "3x1x5 4x1", ""},
    {"Sub", "2x3x4x5 3x1x1", ""},
    {"Mul", "1x3x4x5 2x1x4x1", ""},
    {"Div", "3x5 c:5", ""},
    {"Div", "s: 3x5", ""},
    {"Pow", "3x5 s:", ""},
    {"Max", "3x5 1x5", ""},
    {"Min", "3x5 3x1", ""},
    {"PRelu", "2x3x4x5 c:3x1x1", ""},
    {"Sum", "3x5 5", ""},
    {"Add then Relu", "3x5 5", ""},
    {"Mul then Neg", "3x5 3x5", ""},
    {"Add", "2x1x2x1x2x1x2x3 1x2x1x2x1x2x1x1", ""},
};

static const row along[] = {
    {"Softmax", "3x5", ""},
    {"Softmax", "3x103", ""},
    {"Softmax", "2x7x5x3", "axis=1"},
    {"Softmax", "2x3x5", "axis=1", 1, 11},
    {"LogSoftmax", "3x70", ""},
    {"LogSoftmax", "3x7x2", "axis=1"},
    {"ReduceMean", "3x5x7 i:1", ""},
    {"ReduceMean", "2x3x5x7 i:2,3", "keepdims=0"},
    {"ReduceSum", "2x3x5x7 i:0,2", ""},
    {"ReduceSum", "2x3x5 f:-1", ""},
    {"ReduceSum", "2x3", "noop_with_empty_axes=1"},
    {"ReduceMax", "2x3x5x7", "keepdims=0"},
    {"ReduceMax", "3x5x7 i:0", ""},
    {"ReduceMin", "3x50 i:1", ""},
    {"ReduceProd", "3x5 i:1", ""},
    {"ReduceL1", "3x5 i:1", ""},
    {"ReduceL2", "3x45 i:1", ""},
    {"ReduceSumSquare", "3x5 i:0", ""},
    {"ReduceLogSum", "5x3 i:1", ""},
    {"BatchNormalization", "2x5x3x4 c:5 c:5 c:5 p:5", ""},
    {"BatchNormalization then Relu", "3x5 c:5 c:5 c:5 p:5", "epsilon=0.5"},
    {"LayerNormalization", "3x5x7 c:7 c:7", ""},
    {"LayerNormalization", "3x5x7 c:5x7", "axis=1 epsilon=0.01"},
    {"LayerNormalization", "2x130 c:130 c:130", ""},
    {"RMSNormalization", "3x5x7 c:7", "", 1, 23},
    {"InstanceNormalization", "2x3x5x7 c:3 c:3", ""},
    {"GroupNormalization", "2x6x5x3 c:6 c:6", "num_groups=3"},
};

static const row moves[] = {
    {"Transpose", "2x3x5x7", "perm=[0,2,3,1]"},
    {"Transpose", "3x5", ""},
    {"Transpose", "2x3x4x5x6", "perm=[4,0,2,1,3]"},
    {"Concat", "2x3x5 2x1x5 c:2x2x5", "axis=1"},
    {"Concat", "3x5 3x2", "axis=-1"},
    {"Split", "2x7x3 i:2,4,1", "axis=1", 3},
    {"Split", "7x3", "num_outputs=2", 2},
    {"Slice", "7x9 i:1,8 i:6,0 i:0,1 i:2,-3", ""},
    {"Slice", "7x9 f:2 f:100 i:1", ""},
    {"Slice", "3x9 i:-1 i:-100 i:1 i:-9223372036854775807", ""},
    {"Reshape", "2x3x5 i:5,-1", ""},
    {"Reshape", "2x3x5 f:6,5", ""},
    {"Flatten", "2x3x5", "axis=2"},
    {"Squeeze", "2x1x5 i:1", ""},
    {"Unsqueeze", "2x5 i:0,3", ""},
    {"Expand", "3x1 i:2,3,4", ""},
    {"Tile", "2x3x2 i:2,1,3", ""},
    {"Gather", "5x7 i:3,-1,0", ""},
    {"Gather", "5x7 f:6,0,-7,2", "axis=1"},
    {"Pad", "3x5 i:1,2,0,3 s:", ""},
    {"Pad", "2x3x5 i:-1,2,0,1 - i:1,2", ""},
    {"Pad", "3x5x4 f:0,1,0,0,0,2", ""},
    {"Pad", "3x5 i:1,2,2,3", "mode=reflect"},
    {"Pad", "3x5 i:0,2,2,0", "mode=edge"},
    {"Pad", "3x5 i:1,7,0,3", "mode=wrap"},
    {"DepthToSpace", "2x12x3x2", "blocksize=2"},
    {"DepthToSpace", "1x18x3x2", "blocksize=3 mode=CRD"},
    {"SpaceToDepth", "2x3x6x4", "blocksize=2"},
    {"Resize", "1x2x5x4 - - i:1,2,9,7", "mode=linear"},
    {"Resize", "1x2x5x4 - - i:1,2,3,7", "mode=linear coordinate_transformation_mode=align_corners"},
    {"Resize", "1x2x5x4 - - i:1,2,11,8", "mode=nearest"},
    {"Resize", "2x2x5x4 - - i:2,2,3,3", "nearest_mode=ceil coordinate_transformation_mode=asymmetric"},
    {"Resize", "2x3x7 - - i:2,3,20", "mode=linear coordinate_transformation_mode=pytorch_half_pixel"},
};

static void run_once(opencl_case *c, const row *r, const char *providers, nori_tensor **out)
{
    nori_error err = {0};
    nori_session *s = case_session(c, providers, NULL, &err);
    if (!s) {
        fail_msg("%s (%s) on %s: %s", r->op, r->inputs, providers, err.message);
    }
    if (strstr(providers, "opencl")) {
        size_t want = strstr(r->op, " then ") ? 2 : 1;
        if (case_nodes(s) != want) {
            fail_msg("%s (%s; %s) is not taken", r->op, r->inputs, r->attributes);
        }
    }
    size_t n = nori_session_output_count(s);
    if (nori_session_run(s, (const nori_tensor *const *)c->fed, c->n_fed, out, n, &err) != NORI_OK) {
        fail_msg("%s (%s; %s) on %s: %s", r->op, r->inputs, r->attributes, providers, err.message);
    }
    nori_session_free(s);
}

static void compare(const row *r, const char *how, const nori_tensor *got, const nori_tensor *want,
                    double tolerance)
{
    nori_difference d = {.size = sizeof(d)};
    assert_int_equal(nori_tensor_rank(got), nori_tensor_rank(want));
    for (int k = 0; k < nori_tensor_rank(want); k++) {
        assert_int_equal(nori_tensor_dims(got)[k], nori_tensor_dims(want)[k]);
    }
    nori_tensor_compare(got, want, tolerance, tolerance, &d);
    if (!d.passes) {
        fail_msg("%s (%s; %s) in %s: off by %g", r->op, r->inputs, r->attributes, how, d.max_abs);
    }
}

static void run_row(const row *r)
{
    static const struct {
        const char *providers, *name;
        double tolerance;
    } ways[] = {
        {"opencl:costs=none", "fp32", 1e-5},
        {"opencl:costs=none,storage=fp16", "fp16", 2e-3},
    };
    nori_tensor *want[CASE_MOST] = {NULL};
    opencl_case c;
    case_begin(&c, r->op, r->inputs, r->attributes, r->outputs ? r->outputs : 1,
               r->opset ? r->opset : 21);
    run_once(&c, r, "reference", want);
    for (size_t w = 0; w < NORI__COUNT(ways); w++) {
        nori_tensor *got[CASE_MOST] = {NULL};
        run_once(&c, r, ways[w].providers, got);
        for (int i = 0; i < CASE_MOST && want[i]; i++) {
            compare(r, ways[w].name, got[i], want[i], ways[w].tolerance);
            nori_tensor_free(got[i]);
        }
    }
    for (int i = 0; i < CASE_MOST; i++) {
        nori_tensor_free(want[i]);
    }
    case_end(&c);
}

#define TEST(list)                                      \
    static void test_##list(void **state)               \
    {                                                   \
        (void)state;                                    \
        for (size_t i = 0; i < NORI__COUNT(list); i++) { \
            run_row(&list[i]);                          \
        }                                               \
    }
TEST(convolutions)
TEST(products)
TEST(windows)
TEST(elementwise)
TEST(along)
TEST(moves)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolutions), cmocka_unit_test(test_products),
        cmocka_unit_test(test_windows),      cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_along),        cmocka_unit_test(test_moves),
    };
    return case_device() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
