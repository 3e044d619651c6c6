/* Every operator of providers for devices, at odd shapes, against the reference provider: fp32 storage
 * within 1e-5, fp16 storage within 2e-3 (of 1, or of the value where that is larger). Inputs are exact in
 * float16, so that is the rounding of results and of values in between. Built for opencl, and with
 * ON_CUDA for cuda. Exits 77 where there is no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "make_model.h"
#include "gpu_case.h"

typedef struct row {
    const char *op, *inputs, *attributes;
    int outputs;
    int64_t opset;
} row;
#define ROW(op, inputs, attributes) {op, inputs, attributes, 1, 21}

static const row convolutions[] = {
    ROW("Conv", "1x5x9x7 c:7x5x3x3 c:7", "pads=[1,1,1,1]"),
    ROW("Conv", "2x5x9x7 c:7x5x3x3", "strides=[2,1] pads=[0,2,1,0] dilations=[1,2]"),
    ROW("Conv", "1x6x5x11 c:9x2x3x2 c:9", "group=3 strides=[1,3]"),
    ROW("Conv", "2x5x7x6 c:3x5x1x1 c:3", ""),
    ROW("Conv", "1x6x7x7 c:10x3x1x1", "group=2"),
    ROW("Conv", "1x4x5x3 c:6x4x1x1", "strides=[2,2]"),
    ROW("Conv", "2x5x9x11 c:5x1x3x3 c:5", "group=5 pads=[1,1,1,1]"),
    ROW("Conv", "1x3x9x10 c:3x1x5x3", "group=3 strides=[2,2] dilations=[1,3] pads=[2,3,2,3]"),
    ROW("Conv", "1x3x8x8 c:6x1x3x3", "group=3"),
    ROW("Conv", "2x3x17 c:5x3x4 c:5", "pads=[2,1] strides=[2]"),
    ROW("Conv", "1x2x7x7 c:3x2x3x3", "auto_pad=SAME_UPPER strides=[2,2]"),
    ROW("Conv", "1x2x7x8 c:3x2x2x2", "auto_pad=SAME_LOWER"),
    ROW("Conv", "2x5x9x9 c:70x5x3x3 c:70", "pads=[1,1,1,1]"), /* more than one tile, not whole */
    ROW("Conv", "1x8x13x7 c:18x4x3x2", "group=2 strides=[1,2]"),
    ROW("Conv", "1x9x5x14 c:66x9x1x1 c:66", ""),
    ROW("Conv", "2x3x90 c:9x3x5 c:9", "pads=[2,2]"),
    ROW("Conv then Relu", "1x5x9x7 c:7x5x3x3 c:7", ""),
    ROW("Conv then Sigmoid", "1x5x6x7 c:5x1x3x3 c:5", "group=5"),
    ROW("Conv then HardSwish", "1x5x6x7 c:6x5x1x1 c:6", ""),
    ROW("ConvTranspose", "1x4x5x3 c:4x3x3x3 c:3", "strides=[2,2] pads=[1,0,1,1]"),
    ROW("ConvTranspose", "2x4x5x3 c:4x2x2x3", "group=2 strides=[1,2] output_padding=[0,1]"),
    ROW("ConvTranspose", "1x2x6 c:2x3x4 c:3", "strides=[3] dilations=[2]"),
};

static const row products[] = {
    ROW("Gemm", "5x7 c:7x9 c:9", ""),
    ROW("Gemm", "5x7 c:9x7 c:5x1", "transB=1 alpha=0.5 beta=2.0"),
    ROW("Gemm", "7x5 c:7x6 s:", "transA=1"),
    ROW("Gemm", "6x7 9x7", "transB=1 alpha=1.5"),
    ROW("Gemm", "7x6 7x9 c:6x9", "transA=1"),
    ROW("Gemm then Relu", "3x33 c:33x10 c:10", ""),
    ROW("Gemm", "19x70 c:19x67 c:70x1", "transA=1 alpha=0.5"),
    ROW("Gemm then Sigmoid", "9x5 c:66x5 c:66", "transB=1"),
    ROW("MatMul", "70x19 c:19x67", ""),
    ROW("MatMul", "2x9x33 2x33x70", ""),
    ROW("MatMul", "3x1x65x5 2x5x66", ""),
    ROW("MatMul", "5x7 c:7x9", ""),
    ROW("MatMul", "2x3x5x7 c:7x6", ""),
    ROW("MatMul", "2x3x5x7 2x3x7x4", ""),
    ROW("MatMul", "3x5x7 2x1x7x9", ""),
    ROW("MatMul", "5x7 2x7x9", ""),
    ROW("MatMul", "2x5x7 c:2x7x3", ""),
    ROW("MatMul", "7 7x5", ""),
    ROW("MatMul", "3x7 7", ""),
    ROW("MatMul", "2x3x7 c:7", ""),
    ROW("MatMul", "7 7", ""),
    ROW("MatMul then Tanh", "1x70 c:70x3", ""),
};

static const row windows[] = {
    ROW("MaxPool", "2x3x9x7", "kernel_shape=[3,2] strides=[2,1] pads=[1,0,1,1]"),
    ROW("MaxPool", "1x3x10x11", "kernel_shape=[2,3] dilations=[2,2] ceil_mode=1 strides=[3,2]"),
    ROW("MaxPool", "1x3x10", "kernel_shape=[3] auto_pad=SAME_UPPER strides=[2]"),
    ROW("AveragePool", "2x3x9x7", "kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1]"),
    ROW("AveragePool", "1x3x8x7", "kernel_shape=[3,2] pads=[1,0,1,1] count_include_pad=1"),
    ROW("AveragePool", "1x3x8x7", "kernel_shape=[3,3] strides=[2,2] ceil_mode=1 count_include_pad=1"),
    ROW("AveragePool", "2x3x11", "kernel_shape=[4] strides=[3] dilations=[2]"),
    ROW("GlobalAveragePool", "2x3x9x7", ""),
    ROW("GlobalMaxPool", "2x5x3x2", ""),
    ROW("GlobalAveragePool", "1x3x5", ""),
};

static const row elementwise[] = {
    ROW("Relu", "3x5", ""),
    ROW("LeakyRelu", "3x5", "alpha=0.25"),
    ROW("Clip", "3x5 - s:", ""),
    ROW("Clip", "3x5 s:", ""),
    ROW("Sigmoid", "3x5", ""),
    ROW("Tanh", "3x5", ""),
    ROW("HardSigmoid", "3x5", "alpha=0.3"),
    ROW("HardSwish", "7x5", ""),
    ROW("Mish", "3x5", ""),
    ROW("Gelu", "3x5", ""),
    ROW("Gelu", "3x5", "approximate=tanh"),
    {"Swish", "3x5", "alpha=1.5", 1, 24},
    ROW("Elu", "3x5", "alpha=2.0"),
    ROW("Celu", "3x5", "alpha=0.5"),
    ROW("Selu", "3x5", ""),
    ROW("ThresholdedRelu", "3x5", "alpha=0.25"),
    ROW("Softplus", "3x5", ""),
    ROW("Softsign", "3x5", ""),
    ROW("Exp", "3x5", ""),
    ROW("Log", "3x5", ""),
    ROW("Sqrt", "3x5", ""),
    ROW("Reciprocal", "3x5", ""),
    ROW("Abs", "3x5", ""),
    ROW("Neg", "1", ""),
    ROW("Floor", "67", ""),
    ROW("Ceil", "67", ""),
    ROW("Round", "67", ""),
    ROW("Sign", "67", ""),
    ROW("Erf", "3x5", ""),
    ROW("Sin", "3x5", ""),
    ROW("Cos", "3x5", ""),
    ROW("Add", "3x5 3x5", ""),
    ROW("Add", "3x1x5 4x1", ""),
    ROW("Sub", "2x3x4x5 3x1x1", ""),
    ROW("Mul", "1x3x4x5 2x1x4x1", ""),
    ROW("Div", "3x5 c:5", ""),
    ROW("Div", "s: 3x5", ""),
    ROW("Pow", "3x5 s:", ""),
    ROW("Max", "3x5 1x5", ""),
    ROW("Min", "3x5 3x1", ""),
    ROW("PRelu", "2x3x4x5 c:3x1x1", ""),
    ROW("Sum", "3x5 5", ""),
    ROW("Add then Relu", "3x5 5", ""),
    ROW("Mul then Neg", "3x5 3x5", ""),
    ROW("Add", "2x1x2x1x2x1x2x3 1x2x1x2x1x2x1x1", ""),
};

static const row along[] = {
    ROW("Softmax", "3x5", ""),
    ROW("Softmax", "3x103", ""),
    ROW("Softmax", "2x7x5x3", "axis=1"),
    {"Softmax", "2x3x5", "axis=1", 1, 11},
    ROW("LogSoftmax", "3x70", ""),
    ROW("LogSoftmax", "3x7x2", "axis=1"),
    ROW("ReduceMean", "3x5x7 i:1", ""),
    ROW("ReduceMean", "2x3x5x7 i:2,3", "keepdims=0"),
    ROW("ReduceSum", "2x3x5x7 i:0,2", ""),
    ROW("ReduceSum", "2x3x5 f:-1", ""),
    ROW("ReduceSum", "2x3", "noop_with_empty_axes=1"),
    ROW("ReduceMax", "2x3x5x7", "keepdims=0"),
    ROW("ReduceMax", "3x5x7 i:0", ""),
    ROW("ReduceMin", "3x50 i:1", ""),
    ROW("ReduceProd", "3x5 i:1", ""),
    ROW("ReduceL1", "3x5 i:1", ""),
    ROW("ReduceL2", "3x45 i:1", ""),
    ROW("ReduceSumSquare", "3x5 i:0", ""),
    ROW("ReduceLogSum", "5x3 i:1", ""),
    ROW("BatchNormalization", "2x5x3x4 c:5 c:5 c:5 p:5", ""),
    ROW("BatchNormalization then Relu", "3x5 c:5 c:5 c:5 p:5", "epsilon=0.5"),
    ROW("LayerNormalization", "3x5x7 c:7 c:7", ""),
    ROW("LayerNormalization", "3x5x7 c:5x7", "axis=1 epsilon=0.01"),
    ROW("LayerNormalization", "2x130 c:130 c:130", ""),
    {"RMSNormalization", "3x5x7 c:7", "", 1, 23},
    ROW("InstanceNormalization", "2x3x5x7 c:3 c:3", ""),
    ROW("GroupNormalization", "2x6x5x3 c:6 c:6", "num_groups=3"),
};

static const row moves[] = {
    ROW("Transpose", "2x3x5x7", "perm=[0,2,3,1]"),
    ROW("Transpose", "3x5", ""),
    ROW("Transpose", "2x3x4x5x6", "perm=[4,0,2,1,3]"),
    ROW("Concat", "2x3x5 2x1x5 c:2x2x5", "axis=1"),
    ROW("Concat", "3x5 3x2", "axis=-1"),
    {"Split", "2x7x3 i:2,4,1", "axis=1", 3, 21},
    {"Split", "7x3", "num_outputs=2", 2, 21},
    ROW("Slice", "7x9 i:1,8 i:6,0 i:0,1 i:2,-3", ""),
    ROW("Slice", "7x9 f:2 f:100 i:1", ""),
    ROW("Slice", "3x9 i:-1 i:-100 i:1 i:-9223372036854775807", ""),
    ROW("Reshape", "2x3x5 i:5,-1", ""),
    ROW("Reshape", "2x3x5 f:6,5", ""),
    ROW("Flatten", "2x3x5", "axis=2"),
    ROW("Squeeze", "2x1x5 i:1", ""),
    ROW("Unsqueeze", "2x5 i:0,3", ""),
    ROW("Expand", "3x1 i:2,3,4", ""),
    ROW("Tile", "2x3x2 i:2,1,3", ""),
    ROW("Gather", "5x7 i:3,-1,0", ""),
    ROW("Gather", "5x7 f:6,0,-7,2", "axis=1"),
    ROW("Pad", "3x5 i:1,2,0,3 s:", ""),
    ROW("Pad", "2x3x5 i:-1,2,0,1 - i:1,2", ""),
    ROW("Pad", "3x5x4 f:0,1,0,0,0,2", ""),
    ROW("Pad", "3x5 i:1,2,2,3", "mode=reflect"),
    ROW("Pad", "3x5 i:0,2,2,0", "mode=edge"),
    ROW("Pad", "3x5 i:1,7,0,3", "mode=wrap"),
    ROW("DepthToSpace", "2x12x3x2", "blocksize=2"),
    ROW("DepthToSpace", "1x18x3x2", "blocksize=3 mode=CRD"),
    ROW("SpaceToDepth", "2x3x6x4", "blocksize=2"),
    ROW("Resize", "1x2x5x4 - - i:1,2,9,7", "mode=linear"),
    ROW("Resize", "1x2x5x4 - - i:1,2,3,7", "mode=linear coordinate_transformation_mode=align_corners"),
    ROW("Resize", "1x2x5x4 - - i:1,2,11,8", "mode=nearest"),
    ROW("Resize", "2x2x5x4 - - i:2,2,3,3", "nearest_mode=ceil coordinate_transformation_mode=asymmetric"),
    ROW("Resize", "2x3x7 - - i:2,3,20", "mode=linear coordinate_transformation_mode=pytorch_half_pixel"),
};

#ifdef ON_CUDA
#define PROVIDER "cuda"
#define IN_PLACE "NORI_CUDA" /* names a provider to test in its place */
static const char by_default[] = ON_CUDA;
#else
#define IN_PLACE "NORI_OPENCL"
#define PROVIDER "opencl"
static const char by_default[] = "opencl:costs=none";
#endif

static const char *on_device(void)
{
    return getenv(IN_PLACE) ? getenv(IN_PLACE) : by_default;
}

static void run_once(gpu_case *c, const row *r, const char *providers, nori_tensor **out)
{
    nori_error err = {0};
    nori_session *s = case_session(c, providers, NULL, &err);
    if (!s) {
        fail_msg("%s (%s) on %s: %s", r->op, r->inputs, providers, err.message);
    }
    if (strstr(providers, PROVIDER)) {
        size_t want = strstr(r->op, " then ") ? 2 : 1;
        if (case_nodes(s, PROVIDER) != want) {
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
    const struct {
        const char *providers, *name;
        double tolerance;
    } ways[] = {
        {on_device(), "fp32", 1e-5},
#ifndef ON_CUDA
        {"opencl:costs=none,storage=fp16", "fp16", 2e-3},
#endif
    };
    nori_tensor *want[CASE_MOST] = {NULL};
    gpu_case c;
    case_begin(&c, r->op, r->inputs, r->attributes, r->outputs, r->opset);
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
    return case_device(on_device()) ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
