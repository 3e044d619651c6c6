/* 8-bit models on the provider nnapi, by way of a double of Android's library that knows what NNAPI
 * asks of scales and zero points (nnapi_double_bytes.c): which operations are on bytes, that results
 * are within one step of the reference provider's, and what is left to floats or to others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "make_model.h"
#include "nori/provider.h"
#include "text_model.h"

#include "nnapi_pair.h"

/* Floats x as bytes d of 0.02 around zero; then o, which goes to bytes of t around v, and to floats. */
#define IN(shape, zero) \
    "x=f" shape "; s=F:0.02; z=" zero "; q=QuantizeLinear x s z; d=DequantizeLinear q s z; "
#define OUT(scale, zero) \
    "; t=F:" scale "; v=" zero "; r=QuantizeLinear o t v; y=DequantizeLinear r t v"
/* Weights of one scale, and of one a channel along an axis; a bias of floats. */
#define W8(kind, shape, zero) "w=" kind shape "; a=F:0.01; b=" zero "; e=DequantizeLinear w a b; "
#define WC(shape, n, scales, axis) \
    "w=S" shape "; a=F" n ":" scales "; e=DequantizeLinear w a axis=" axis "; "
#define FIVE "0.01,0.02,0.005,0.011,0.013"

typedef struct row {
    const char *text, *has; /* what the model's operations must contain */
    double step;            /* of the output, where it is floats */
} row;

static void check(const row *r)
{
    takes_within(r->text, true, r->step);
    if (!strstr(words("nnapi_double_made"), r->has)) {
        fail_msg("%s: \"%s\" has no %s", r->text, words("nnapi_double_made"), r->has);
    }
}

#define CHECK_ALL(rows)                              \
    for (size_t i = 0; i < NORI__COUNT(rows); i++) { \
        check(&rows[i]);                             \
    }

static const row layers[] = {
    {IN("1,3,7,6", "U:131") W8("S", "5,3,3,3", "S:0") "o=Conv d e pads=[1,0,1,2]" OUT("0.3", "U:100"),
     "QUANTIZE TRANSPOSE* CONV_2D* ", 0.3},
    {IN("1,3,7,6", "S:5") W8("S", "5,3,3,3", "S:0") "o=Conv d e strides=[2,1]" OUT("0.3", "S:-7"),
     "CONV_2D* ", 0.3},
    {IN("1,3,7,6", "U:131") W8("U", "5,3,3,3", "U:120") "o=Conv d e" OUT("0.3", "U:100"), "CONV_2D* ", 0.3},
    {IN("1,3,7,6", "S:5") W8("U", "5,3,3,3", "U:120") "o=Conv d e" OUT("0.3", "S:-7"), "CONV_2D* ", 0.3},
    {IN("1,3,7,6", "U:131") WC("5,3,3,3", "5", FIVE, "0") "o=Conv d e dilations=[2,1]" OUT("0.2", "U:100"),
     "CONV_2D* ", 0.2},
    {IN("1,3,7,6", "S:5") WC("5,3,3,3", "5", FIVE, "0") "o=Conv d e" OUT("0.2", "S:0"), "CONV_2D* ", 0.2},
    {IN("2,3,9", "U:131") W8("S", "5,3,3", "S:0") "o=Conv d e pads=[1,0]" OUT("0.3", "U:100"),
     "QUANTIZE TRANSPOSE* RESHAPE* CONV_2D* RESHAPE* ", 0.3},
    {IN("2,5,9", "S:5") WC("5,1,3", "5", FIVE, "0") "o=Conv d e group=5" OUT("0.1", "S:-7"),
     "DEPTHWISE_CONV_2D* ", 0.1},
    {IN("1,5,7,6", "U:131") WC("5,1,3,3", "5", FIVE, "0") "o=Conv d e group=5" OUT("0.1", "U:100"),
     "DEPTHWISE_CONV_2D* ", 0.1},
    {IN("1,5,7,6", "U:131") W8("S", "10,1,3,3", "S:3") "o=Conv d e group=5" OUT("0.1", "U:100"),
     "DEPTHWISE_CONV_2D* ", 0.1},
    {IN("1,4,7,6", "U:131") W8("S", "6,2,3,3", "S:0") "o=Conv d e group=2" OUT("0.1", "U:100"),
     "GROUPED_CONV_2D* ", 0.1},
    /* a bias as files have it: int32, in steps of the product */
    {IN("1,3,7,6", "U:131") W8("S", "5,3,3,3", "S:0") "g=I5; h=F:0.0002; k=DequantizeLinear g h; "
     "o=Conv d e k" OUT("0.3", "U:100"), "CONV_2D* ", 0.3},
    {IN("1,3,7,6", "U:131") WC("5,3,3,3", "5", FIVE, "0") "k=F5; o=Conv d e k" OUT("0.3", "U:100"),
     "CONV_2D* ", 0.3},
    /* activations that NNAPI ends a convolution with */
    {IN("1,3,7,6", "U:131") W8("S", "5,3,3,3", "S:0") "p=Conv d e; o=Relu p" OUT("0.3", "U:40"),
     "CONV_2D* DEQUANTIZE* TRANSPOSE ", 0.3},
    {IN("1,3,7,6", "U:131") W8("S", "5,3,3,3", "S:0") "l=F:0; m=F:6; p=Conv d e; o=Clip p l m"
     OUT("0.1", "U:9"), "CONV_2D* DEQUANTIZE* TRANSPOSE ", 0.1},
    {IN("4,7", "U:131") W8("S", "7,5", "S:0") "o=MatMul d e" OUT("0.1", "U:100"), "FULLY_CONNECTED* ", 0.1},
    {IN("2,3,7", "S:0") W8("S", "7,5", "S:2") "o=MatMul d e" OUT("0.1", "S:0"), "FULLY_CONNECTED* RESHAPE* ",
     0.1},
    {IN("4,7", "U:131") W8("S", "5,7", "S:0") "k=F5; o=Gemm d e k transB=1" OUT("0.1", "U:100"),
     "FULLY_CONNECTED* ", 0.1},
    /* a scale a column: a convolution of points */
    {IN("2,3,7", "U:131") WC("7,5", "5", FIVE, "1") "o=MatMul d e" OUT("0.1", "U:100"),
     "RESHAPE* CONV_2D* RESHAPE* ", 0.1},
    {IN("4,7", "S:0") WC("5,7", "5", FIVE, "0") "p=Gemm d e transB=1; o=Relu p" OUT("0.1", "S:-100"),
     "RESHAPE* CONV_2D* RESHAPE* DEQUANTIZE* ", 0.1},
};

#define TWO(zero) "i=f1,3,4,5; j=F:0.03; n=" zero "; f=QuantizeLinear i j n; g=DequantizeLinear f j n; "
static const row others[] = {
    {IN("1,3,4,5", "U:131") TWO("U:90") "o=Add d g" OUT("0.04", "U:120"), "ADD* ", 0.04},
    {IN("1,3,4,5", "S:3") TWO("S:9") "p=Add d g; o=Relu p" OUT("0.02", "S:-120"), "ADD* DEQUANTIZE* ", 0.02},
    {IN("1,3,4,5", "U:131") TWO("U:90") "o=Sub d g" OUT("0.04", "U:120"), "SUB* ", 0.04},
    {IN("1,3,4,5", "U:131") TWO("U:90") "o=Mul d g" OUT("0.04", "U:120"), "MUL* ", 0.04},
    {IN("1,3,4,5", "U:131") TWO("U:90") "o=Concat d g axis=1" OUT("0.04", "U:120"), "CONCATENATION* ", 0.04},
    {IN("1,3,4,5", "U:131") "o=Concat d d axis=3" OUT("0.02", "U:131"), "CONCATENATION* ", 0.02},
    {IN("3,17", "U:131") "o=Sigmoid d" OUT("0.00390625", "U:0"), "LOGISTIC* ", 0.004},
    {IN("3,17", "S:0") "o=Sigmoid d" OUT("0.00390625", "S:-128"), "LOGISTIC* ", 0.004},
    {IN("3,17", "U:131") "o=Tanh d" OUT("0.0078125", "U:128"), "TANH* ", 0.008},
    {IN("3,17", "S:0") "o=Softmax d" OUT("0.00390625", "S:-128"), "SOFTMAX* ", 0.004},
    {IN("3,17", "U:131") "o=HardSwish d" OUT("0.01", "U:60"), "HARD_SWISH* ", 0.01},
    {IN("3,17", "U:131") "o=Relu d" OUT("0.02", "U:131"), "RELU* ", 0.02},
    {IN("1,3,7,8", "U:131") "o=MaxPool d kernel_shape=[3,2] strides=[2,1] pads=[1,0,1,1]"
     OUT("0.02", "U:131"), "MAX_POOL_2D* ", 0.02},
    {IN("1,3,7,8", "S:1") "o=AveragePool d kernel_shape=[3,3] pads=[1,1,1,1]" OUT("0.02", "S:1"),
     "AVERAGE_POOL_2D* ", 0.02},
    {IN("2,3,5,3", "U:131") "o=GlobalAveragePool d" OUT("0.02", "U:131"), "AVERAGE_POOL_2D* ", 0.02},
    {IN("2,3,5,4", "U:131") "h=L2:2,3; o=ReduceMean d h keepdims=0" OUT("0.02", "U:131"), "MEAN* ", 0.02},
    {IN("2,3,5", "U:131") "h=L2:6,5; o=Reshape d h" OUT("0.02", "U:131"), "RESHAPE* ", 0.02},
    {IN("2,3,5,2", "U:131") "o=Transpose d perm=[3,1,0,2]" OUT("0.02", "U:131"), "TRANSPOSE* ", 0.02},
    {IN("2,3,4", "U:131") "h=L6:0,1,2,1,0,3; o=Pad d h" OUT("0.02", "U:131"), "PAD* ", 0.02},
    {IN("5,7,3", "U:131") "h=L2:1,-5; k=L2:4,100; o=Slice d h k" OUT("0.02", "U:131"), "STRIDED_SLICE* ",
     0.02},
    {IN("1,3,4,5", "U:131") "h=F0; k=F4:1,1,2,3; o=Resize d h k mode=nearest" OUT("0.02", "U:131"),
     "RESIZE_NEAREST_NEIGHBOR* ", 0.02},
    /* what NNAPI has only with the same scales, or not of bytes, runs on floats between */
    {IN("2,3,5,3", "U:131") "o=GlobalAveragePool d" OUT("0.01", "U:131"),
     "DEQUANTIZE* TRANSPOSE AVERAGE_POOL_2D ", 0.01},
    {IN("3,17", "U:131") "o=Sigmoid d" OUT("0.004", "U:0"), "DEQUANTIZE* LOGISTIC QUANTIZE ", 0.004},
    {IN("3,17", "U:131") "o=Exp d" OUT("0.05", "U:0"), "DEQUANTIZE* EXP QUANTIZE ", 0.05},
    {IN("1,3,4,5", "U:131") "c=S1,3,4,5; g=DequantizeLinear c s; o=Add d g" OUT("0.04", "U:120"),
     "QUANTIZE DEQUANTIZE* ADD QUANTIZE ", 0.04},
    {IN("1,3,4,5", "U:131") "c=U1,3,4,5; n=U:7; g=DequantizeLinear c s n; o=Add d g" OUT("0.04", "U:120"),
     "ADD* ", 0.04},
};

static void test_layers(void **state)
{
    (void)state;
    CHECK_ALL(layers);
}

static void test_others(void **state)
{
    (void)state;
    CHECK_ALL(others);
}

/* ---- QLinear operators: bytes in and out ---- */

#define Q2 "s=F:0.02; z=U:131; t=F:0.3; v=U:100; "
static const row qlinear[] = {
    {"x=u1,3,7,6; " Q2 "w=S5,3,3,3; a=F:0.01; b=S:0; c=I5; y.u=QLinearConv x s z w a b t v c pads=[1,1,1,1]",
     "CONV_2D* ", 0},
    {"x=u1,3,7,6; " Q2 "w=S5,3,3,3; a=F5:" FIVE "; b=S5:0,0,0,0,0; y.u=QLinearConv x s z w a b t v",
     "CONV_2D* ", 0},
    {"x=u1,5,7,6; " Q2 "w=U5,1,3,3; a=F:0.01; b=U:128; y.u=QLinearConv x s z w a b t v group=5",
     "DEPTHWISE_CONV_2D* ", 0},
    {"x=u4,7; " Q2 "w=U7,5; a=F:0.01; b=U:120; y.u=QLinearMatMul x s z w a b t v", "FULLY_CONNECTED* ", 0},
    {"x=u4,7; " Q2 "w=U7,5; a=F:0.01; b=U:120; c=I5; y.u=QGemm. x s z w a b c t v alpha=0.5",
     "FULLY_CONNECTED* ", 0},
    {"x=u2,3,4,5; i=u2,3,4,5; " Q2 "y.u=QLinearAdd. x s z i t v t v", "ADD* ", 0},
    {"x=u2,3,4,5; i=u2,1,1,5; " Q2 "y.u=QLinearMul. x s z i t v t v", "MUL* ", 0},
    {"x=u3,17; " Q2 "p=F:0.00390625; n=U:0; y.u=QLinearSigmoid. x s z p n", "LOGISTIC* ", 0},
    {"x=u3,17; " Q2 "p=F:0.00390625; n=U:0; y.u=QLinearSoftmax. x s z p n axis=-1 opset=13", "SOFTMAX* ", 0},
    {"x=u3,17; " Q2 "y.u=QLinearLeakyRelu. x s z t v alpha=0.3", "DEQUANTIZE* PRELU QUANTIZE ", 0},
    {"x=u1,3,7,8; " Q2 "y.u=QLinearAveragePool. x s z s z kernel_shape=[3,2]", "AVERAGE_POOL_2D* ", 0},
    {"x=u1,3,7,8; " Q2 "y.u=QLinearGlobalAveragePool. x s z s z", "AVERAGE_POOL_2D* ", 0},
    {"x=u1,3,4,5; i=u1,2,4,5; " Q2 "y.u=QLinearConcat. t v x s z i t v axis=1", "CONCATENATION* ", 0},
    /* moves between them keep the bytes, which one of their neighbours gives a meaning */
    {"x=u1,3,8,6; " Q2 "m=MaxPool x kernel_shape=[2,2]; h=L2:1,-1; n=Reshape m h; "
     "w=S105,5; a=F:0.01; b=S:0; y.u=QLinearMatMul n s z w a b t v", "FULLY_CONNECTED* ", 0},
};

static void test_qlinear(void **state)
{
    (void)state;
    CHECK_ALL(qlinear);
}

/* ---- what is left to others, and to higher levels ---- */

static void test_left(void **state)
{
    static const char *const rows[] = {
        "x=u1,3,7,6; " Q2 "w=U5,3,3,3; a=F5:" FIVE "; b=U5:1,2,3,4,5; y.u=QLinearConv x s z w a b t v",
        "x=u2,3,4,5; i=u2,3,4,5; t=F:0.0001; v=U:3; s=F:0.02; z=U:131; y.u=QLinearMul. x s z i s z t v",
        "x=u3,17; " Q2 "y.u=QLinearSigmoid. x s z t v",
        "x=u1,3,7,8; " Q2 "y.u=QLinearGlobalAveragePool. x s z t v",
        "x=u1,3,4,5; y.u=Transpose x perm=[3,1,0,2]", /* nothing says what the bytes stand for */
        ("x=f3,17; s=F17:1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8; z=U17:1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8; "
         "y.u=QuantizeLinear x s z axis=1"),
        /* what nnapi would have nothing to do with on its other side */
        "x=f3,17; s=F:0.1; z=U:3; p=Erf x; q=QuantizeLinear p s z; d=DequantizeLinear q s z; y=Erf d",
    };
    (void)state;
    TAKES_ALL(rows, false);
}

/* A reader that takes a value for other numbers than its maker said is another's. */
static void test_other_meaning(void **state)
{
    const char *text =
        "x=u1,3,4,5; i=u1,3,4,5; " Q2 "p=QLinearAdd. x s z i t v t v; y.u=QLinearAdd. p s z p s z t v";
    text_model t;
    size_t has, rest;
    (void)state;
    text_begin(&t, text, 18, false);
    nori_session *s = session_of(&t, ALL ",cpu", text), *r = session_of(&t, "reference", text);
    count_nodes(s, &has, &rest);
    assert_int_equal(has, 1);
    assert_int_equal(rest, 1);
    compare(&t, s, r, 0, text);
    nori_session_free(s);
    nori_session_free(r);
    text_end(&t);
}

static void test_levels(void **state)
{
    static const row in_28[] = {
        {"x=u1,3,7,6; " Q2 "w=S5,3,3,3; a=F:0.01; b=S:0; y.u=QLinearConv x s z w a b t v", "CONV_2D* ", 0},
        {"x=u3,17; s=F:0.02; z=U:131; d=DequantizeLinear x s z; y=Relu d", "DEQUANTIZE* RELU ", 1e-5},
    };
    static const char *const later_than_28[] = {
        "x=u1,3,7,6; " Q2 "w=S5,3,3,3; a=F5:" FIVE "; b=S5:0,0,0,0,0; y.u=QLinearConv x s z w a b t v",
        "x=u1,3,7,6; s=F:2.0; z=U:131; t=F:0.01; v=U:3; w=S5,3,3,3; a=F:0.01; b=S:0; "
        "y.u=QLinearConv x s z w a b t v", /* an output scale below that of the product */
        "x=u1,3,4,5; i=u1,2,4,5; " Q2 "y.u=QLinearConcat. t v x s z i t v axis=1",
        "x=f3,17; s=F:0.1; z=U:3; y.u=QuantizeLinear x s z",
    };
    static const char *const later_than_29[] = {
        "x=s1,3,7,6; s=F:0.02; z=S:3; t=F:0.3; v=S:1; w=S5,3,3,3; a=F:0.01; b=S:0; "
        "y.s=QLinearConv x s z w a b t v",
        "x=f3,17; s=F:0.1; z=S:3; y.s=QuantizeLinear x s z",
    };
    (void)state;
    setenv("NNAPI_DOUBLE_LEVEL", "28", 1);
    CHECK_ALL(in_28);
    TAKES_ALL(later_than_28, false);
    setenv("NNAPI_DOUBLE_LEVEL", "29", 1);
    TAKES_ALL(later_than_28, true);
    TAKES_ALL(later_than_29, false);
    setenv("NNAPI_DOUBLE_LEVEL", "30", 1);
    TAKES_ALL(later_than_29, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_layers, fresh),
        cmocka_unit_test_teardown(test_others, fresh),
        cmocka_unit_test_teardown(test_qlinear, fresh),
        cmocka_unit_test_teardown(test_left, fresh),
        cmocka_unit_test_teardown(test_other_meaning, fresh),
        cmocka_unit_test_teardown(test_levels, fresh),
    };
    return cmocka_run_group_tests(tests, open_double, NULL);
}
