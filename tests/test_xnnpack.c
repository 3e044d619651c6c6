/* The provider xnnpack against the reference provider: every operator it takes, at odd sizes; what it
 * leaves to others, and why; shapes that change; threads; bytes between scales. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "make_model.h"
#include "nori/provider.h"
#include "record.h"
#include "text_model.h"

#define ALL "xnnpack:launch_us=0"

/* ---- one model on both ---- */

/* Nodes of the compiled model that xnnpack has, and has not. */
static void count_nodes(const nori_session *s, size_t *has, size_t *others)
{
    nori_node_info n = {.size = sizeof(n)};
    *has = *others= 0;
    for (size_t i = 0; nori_session_node(s, i, &n); i++) {
        bool ours = strcmp(n.provider, "xnnpack") == 0;
        *(ours ? has : others) += 1;
        if (ours) {
            record_operator(nori_node_domain(n.node), nori_node_op(n.node),
                            nori_node_version(n.node));
        }
    }
}

static void run(nori_session *s, const text_model *t, nori_tensor **out)
{
    nori_error err = {0};
    nori_status status = nori_session_run(s, (const nori_tensor *const *)t->in, t->n_in, out,
                                          nori_session_output_count(s), &err);
    if (status != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
}

static void agree(const nori_tensor *a, const nori_tensor *b, double tolerance, const char *text)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0]));
    for (int64_t i = 0; i < a->count; i++) {
        double x = nori__tensor_get_f64(a, i), y = nori__tensor_get_f64(b, i);
        double limit = a->type == NORI_FLOAT ? tolerance * (1 + fabs(y)) : tolerance >= 1 ? tolerance
                                                                                           : 1;
        if (!(x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= limit)) {
            fail_msg("%s: element %lld is %g, the reference has %g", text, (long long)i, x, y);
        }
    }
}

static void compare(text_model *t, nori_session *s, nori_session *reference, double tolerance,
                    const char *text)
{
    nori_tensor *a[TEXT_MAX] = {NULL}, *b[TEXT_MAX] = {NULL};
    size_t n = nori_session_output_count(s);
    run(s, t, a);
    run(reference, t, b);
    for (size_t i = 0; i < n; i++) {
        agree(a[i], b[i], tolerance, text);
        nori_tensor_free(a[i]);
        nori_tensor_free(b[i]);
    }
}

static nori_session *session_of(text_model *t, const char *providers, int threads, const char *text)
{
    nori_error err = {0};
    nori_session *s = text_session(t, providers, threads, 1, &err);
    if (!s) {
        fail_msg("%s: %s: %s", text, err.where, err.message);
    }
    return s;
}

/* All nodes on xnnpack, results as on reference, sizes known before or not. */
static void takes(const char *text, int64_t opset, double tolerance, bool open)
{
    text_model t;
    text_begin(&t, text, opset, open);
    nori_session *s = session_of(&t, ALL, 1, text), *r = session_of(&t, "reference", 1, text);
    size_t has, others;
    count_nodes(s, &has, &others);
    if (has == 0 || others> 0) {
        fail_msg("%s: xnnpack has %zu nodes, others have %zu", text, has, others);
    }
    compare(&t, s, r, tolerance, text);
    compare(&t, s, r, tolerance, text); /* set up already */
    nori_session_free(s);
    nori_session_free(r);
    text_end(&t);
}

typedef struct row {
    const char *text;
    double tolerance; /* 0: 1e-5 */
} row;

static void takes_all(const row *rows, size_t count, bool open)
{
    for (size_t i = 0; i < count; i++) {
        takes(rows[i].text, 18, rows[i].tolerance > 0 ? rows[i].tolerance : 1e-5, open);
    }
}

/* ---- floats ---- */

static const row windows[] = {
    {"x=f2,3,7,5; w=F4,3,3,3; b=F4; y=Conv x w b pads=[1,0,1,2]", 0},
    {"x=f1,5,9,8; w=F7,5,1,1; y=Conv x w", 0},
    {"x=f1,3,9,8; w=F5,3,3,2; y=Conv x w strides=[2,3] dilations=[2,1] pads=[0,1,2,1]", 0},
    {"x=f1,6,7,7; w=F6,1,3,3; b=F6; y=Conv x w b group=6 pads=[1,1,1,1]", 0},
    {"x=f1,19,7,6; w=F19,1,5,5; y=Conv x w group=19 pads=[2,2,2,2] strides=[2,2]", 0},
    {"x=f1,4,7,7; w=F8,1,3,3; y=Conv x w group=4 pads=[1,1,1,1]", 0},
    {"x=f2,6,5,6; w=F9,2,3,3; y=Conv x w group=3", 0},
    {"x=f2,4,11; w=F3,4,3; b=F3; y=Conv x w b pads=[2,1] strides=[2]", 0},
    {"x=f1,4,9; w=F4,1,3; y=Conv x w group=4 dilations=[2]", 0},
    {"x=f1,3,7,7; w=F2,3,3,3; a=Conv x w; y=Relu a", 0},
    {"x=f1,3,7,7; w=F2,3,3,3; l=F:0.5; h=F:3; a=Conv x w; y=Clip a l h", 0},
    {"x=f2,3,4,5; w=F3,4,3,3; b=F4; y=ConvTranspose x w b", 0},
    {"x=f1,3,4,5; w=F3,4,3,2; y=ConvTranspose x w strides=[2,3] pads=[1,0,0,1] "
     "output_padding=[1,2]",
     0},
    {"x=f1,4,5,4; w=F4,3,3,3; y=ConvTranspose x w group=2 strides=[2,2] dilations=[2,1]", 0},
    {"x=f2,3,6; w=F3,5,4; y=ConvTranspose x w strides=[2] pads=[1,1]", 0},
    {"x=f1,3,7,8; y=MaxPool x kernel_shape=[3,2] strides=[2,1] pads=[1,0,1,1]", 0},
    {"x=f1,3,7,8; y=MaxPool x kernel_shape=[3,3] strides=[2,2] ceil_mode=1", 0},
    {"x=f1,3,9,8; y=MaxPool x kernel_shape=[2,3] dilations=[3,2]", 0},
    {"x=f2,5,9; y=MaxPool x kernel_shape=[3] strides=[2]", 0},
    {"x=u1,3,7,8; y.u=MaxPool x kernel_shape=[3,3] pads=[1,1,1,1]", 0},
    {"x=s1,3,7,8; y.s=MaxPool x kernel_shape=[3,3] strides=[2,2]", 0},
    {"x=f1,17,7,8; y=AveragePool x kernel_shape=[3,2] strides=[2,1]", 0},
    {"x=f1,3,7,8; y=AveragePool x kernel_shape=[3,3] pads=[1,1,1,1]", 0},
    {"x=f1,3,7,8; y=AveragePool x kernel_shape=[3,3] strides=[2,2] ceil_mode=1", 0},
    {"x=f2,5,9; y=AveragePool x kernel_shape=[4] strides=[3] pads=[1,2]", 0},
    {"x=f2,19,5,3; y=GlobalAveragePool x", 0},
    {"x=f2,3,11; y=GlobalAveragePool x", 0},
    {"x=f2,3,5,4; a=L2:-1,2; y=ReduceMean x a keepdims=0", 0},
    {"x=f1,3,4,5; e=F0; s=F4:1,1,2,3; y=Resize x e s mode=linear", 0},
    {"x=f1,3,8,9; e=F0; s=F4:1,1,0.5,1; y=Resize x e s mode=linear", 0},
    {"x=f1,3,4,5; z=L4:1,3,7,11; y=Resize x - - z mode=linear "
     "coordinate_transformation_mode=align_corners",
     0},
    {"x=f1,3,4,5; z=L4:1,3,6,4; y=Resize x - - z mode=linear "
     "coordinate_transformation_mode=asymmetric",
     0},
    {"x=f2,3,4,5; e=F0; s=F4:1,1,2,3; y=Resize x e s mode=nearest nearest_mode=floor "
     "coordinate_transformation_mode=asymmetric",
     0},
};

static const row lines[] = {
    {"x=f3,17; y=Abs x", 0},
    {"x=f3,17; y=Neg x", 0},
    {"x=f3,17; y=Floor x", 0},
    {"x=f3,17; y=Ceil x", 0},
    {"x=f7; h=F:0.5; a=Mul x h; b=Round a; y=Round b", 0},
    {"x=f5,3,7; y=Sqrt x", 0},
    {"x=f3,17; y=Sigmoid x", 0},
    {"x=f3,17; y=HardSwish x", 0},
    {"x=f3,17; y=LeakyRelu x alpha=0.3", 0},
    {"x=f3,17; y=Elu x alpha=1.5", 0},
    {"x=f3,17; y=Relu x", 0},
    {"x=f3,17; l=F:-0.5; h=F:0.75; y=Clip x l h", 0},
    {"x=f3,17; h=F:0.75; y=Clip x - h", 0},
    {"x=f3,17; y=HardSigmoid x alpha=0.3 beta=0.4", 0},
    {"x=f3,17; e=F:2; y=Pow x e", 0},
    {"x=f2,5,3,4; s=F5,1,1; y=PRelu x s", 0},
    {"x=f3,17; y=Softmax x", 0},
    {"x=f2,5,3,7; y=Softmax x axis=1", 0},
    {"x=f2,5,3,7; y=Softmax x axis=3", 0},
    {"x=f2,3,5; z=f2,3,5; y=Add x z", 0},
    {"x=f2,3,5; z=f3,1; y=Sub x z", 0},
    {"x=f2,1,5; z=f4,1; y=Mul x z", 0},
    {"x=f2,3,5; z=F:3; y=Div x z", 0},
    {"x=f1,5; z=f4,1; y=Max x z", 0},
    {"x=f4,5; z=f5; y=Min x z", 0},
    {"x=f4,5; z=f4,5; y=Sum x z", 0},
    {"x=f4,5; z=f4,5; a=Add x z; y=Relu a", 0},
    {"x=f4,5; y=Mul x x", 0},
    {"x=f2,3,4,5; s=F3; b=F3; m=F3; v=F3:0.5,1,2; y=BatchNormalization x s b m v", 0},
    {"x=f3,7; w=F7,5; y=MatMul x w", 0},
    {"x=f2,3,7; w=F7,5; y=MatMul x w", 0},
    {"x=f3,7; w=F7,5; b=F5; y=Gemm x w b alpha=0.5 beta=2.0", 0},
    {"x=f3,7; w=F5,7; b=F1,5; a=Gemm x w b transB=1; y=Relu a", 0},
};

static const row moves[] = {
    {"x=f2,3,5; s=L2:6,5; y=Reshape x s", 0},
    {"x=f2,3,5,2; y=Flatten x axis=2", 0},
    {"x=f2,1,5; a=L1:1; y=Squeeze x a", 0},
    {"x=f2,5; a=L1:1; y=Unsqueeze x a", 0},
    {"x=f2,3,4,5; y=Transpose x perm=[0,2,3,1]", 0},
    {"x=f2,3,4,5; y=Transpose x perm=[0,3,1,2]", 0},
    {"x=f2,3,4,5; y=Transpose x perm=[3,1,0,2]", 0},
    {"x=f37,21; y=Transpose x", 0},
    {"x=u5,21,3; y.u=Transpose x perm=[2,0,1]", 0},
    {"x=f2,3,4; z=f2,1,4; y=Concat x z x axis=1", 0},
    {"x=f2,3,4; z=F2,3,2; y=Concat x z axis=-1", 0},
    {"x=f5,7,3; s=L2:1,-5; e=L2:4,100; y=Slice x s e", 0},
    {"x=f5,7,3; s=L1:1; e=L1:6; a=L1:1; t=L1:2; y=Slice x s e a t", 0},
    {"x=f2,7,3; z=L3:2,4,1; p,q,r=Split x z axis=1", 0},
    {"x=s2,6,3; p.s,q.s=Split x axis=1 num_outputs=2", 0},
    {"x=f2,3,4; p=L6:0,1,2,1,0,3; v=F:1.5; y=Pad x p v", 0},
    {"x=f2,3,4; p=L2:1,2; a=L1:-1; y=Pad x p - a", 0},
    {"x=f1,12,2,3; y=DepthToSpace x blocksize=2", 0},
    {"x=f1,12,2,3; y=DepthToSpace x blocksize=2 mode=CRD", 0},
    {"x=f1,3,4,6; y=SpaceToDepth x blocksize=2", 0},
};

/* Values that lie channels last when they come to what does not want them so. */
static const row mixed[] = {
    {"x=f1,3,7,6; w=F5,3,3,3; c=Conv x w; s=L2:1,-1; a=Reshape c s; m=F100,4; y=MatMul a m", 0},
    {"x=f1,3,7,6; w=F5,3,3,3; k=F5,1; c=Conv x w; y=Mul c k", 0},
    {"x=f1,3,7,6; z=f5,4; w=F5,3,3,3; c=Conv x w; k=f5,5,4; y=Add c z", 0},
    {"x=f1,3,7,6; z=f5,4; w=F5,3,3,3; k=F5,5,4; c=Conv x w; y=Add c k", 0},
    {"x=f1,3,7,6; w=F5,3,3,3; c=Conv x w; t=Transpose c perm=[0,2,3,1]; y=Softmax t", 0},
    {"x=f1,7,6,3; w=F5,3,3,3; t=Transpose x perm=[0,3,1,2]; y=Conv t w", 0},
    {"x=f1,3,7,6; w=F5,3,3,3; c=Conv x w; d=Conv x w; e=Concat c d axis=1; y=Concat e e axis=3", 0},
    {"x=f1,4,7,6; w=F6,4,3,3; c=Conv x w; p,q=Split c axis=1 num_outputs=2; y=Sub p q", 0},
    {"x=f1,3,7,6; w=F5,3,3,3; c=Conv x w; s=L2:1,0; e=L2:4,3; a=L2:1,3; y=Slice c s e a", 0},
    {"x=f1,3,7,6; w=F5,3,3,3; c=Conv x w; p=L8:0,1,2,0,0,0,1,3; y=Pad c p", 0},
    {"x=f1,3,8,6; w=F5,3,3,3; c=Conv x w; g=GlobalAveragePool c; h=HardSigmoid g; y=Mul c h", 0},
    {"x=f1,3,8,6; w=F5,3,3,3; c=Conv x w; i=Identity c; y=Add c i", 0},
};

static void test_windows(void **state)
{
    (void)state;
    takes_all(windows, NORI__COUNT(windows), false);
}

static void test_lines(void **state)
{
    (void)state;
    takes_all(lines, NORI__COUNT(lines), false);
}

static void test_moves(void **state)
{
    (void)state;
    takes_all(moves, NORI__COUNT(moves), false);
}

static void test_mixed(void **state)
{
    (void)state;
    takes_all(mixed, NORI__COUNT(mixed), false);
}

/* ---- bytes: within one step of the reference ---- */

static const row bytes[] = {
    {"x=f3,17; s=F:0.02; z=U:120; y.u=QuantizeLinear x s z", 1},
    {"x=f3,17; s=F:0.02; z=S:-3; y.s=QuantizeLinear x s z", 1},
    {"x=u3,17; s=F:0.02; z=U:120; y=DequantizeLinear x s z", 0},
    {"x=s3,17; s=F:0.02; z=S:-3; y=DequantizeLinear x s z", 0},
    {"x=u1,3,7,6; xs=F:0.02; xz=U:120; w=S4,3,3,3; ws=F:0.01; wz=S:0; ys=F:0.05; yz=U:99; b=I4; "
     "y.u=QLinearConv x xs xz w ws wz ys yz b pads=[1,1,1,1]",
     1},
    {"x=u1,3,7,6; xs=F:0.02; xz=U:120; w=S4,3,3,3; ws=F4:0.01,0.02,0.005,0.03; wz=S4:0,0,0,0; "
     "ys=F:0.05; yz=U:99; y.u=QLinearConv x xs xz w ws wz ys yz strides=[2,1]",
     1},
    {"x=s1,6,7,6; xs=F:0.02; xz=S:5; w=S6,1,3,3; ws=F:0.01; wz=S:0; ys=F:0.05; yz=S:-9; b=I6; "
     "y.s=QLinearConv x xs xz w ws wz ys yz b group=6 pads=[1,1,1,1]",
     1},
    {"x=s1,6,9; xs=F:0.02; xz=S:5; w=S5,6,3; ws=F:0.01; wz=S:0; ys=F:0.05; yz=S:-9; "
     "y.s=QLinearConv x xs xz w ws wz ys yz",
     1},
    {"x=u1,3,7,6; xs=F:0.02; xz=U:120; w=U4,3,3,3; ws=F:0.01; wz=U:131; ys=F:0.05; yz=U:99; b=I4; "
     "y.u=QLinearConv x xs xz w ws wz ys yz b pads=[1,0,1,1]",
     1},
    {"x=u1,3,7,6; xs=F:0.02; xz=U:120; w=U4,3,3,3; ws=F:0.01; wz=U:128; ys=F:0.05; yz=U:99; "
     "y.u=QLinearConv x xs xz w ws wz ys yz",
     1},
    {"x=s1,3,7,6; xs=F:0.02; xz=S:1; w=S4,3,3,3; ws=F:0.01; wz=S:7; ys=F:0.05; yz=S:9; "
     "y.s=QLinearConv x xs xz w ws wz ys yz",
     1},
    {"x=u3,7; xs=F:0.02; xz=U:120; w=S7,5; ws=F:0.01; wz=S:0; ys=F:0.05; yz=U:99; "
     "y.u=QLinearMatMul x xs xz w ws wz ys yz",
     1},
    {"x=s2,3,7; xs=F:0.02; xz=S:-7; w=S7,5; ws=F5:0.01,0.02,0.01,0.005,0.03; wz=S5:0,0,0,0,0; "
     "ys=F:0.05; yz=S:9; y.s=QLinearMatMul x xs xz w ws wz ys yz",
     1},
    {"x=u3,7; xs=F:0.02; xz=U:120; w=U5,7; ws=F:0.01; wz=U:111; b=I5; ys=F:0.05; yz=U:99; "
     "y.u=QGemm. x xs xz w ws wz b ys yz transB=1 alpha=0.5",
     1},
    {"x=u2,3,4,5; xs=F:0.02; xz=U:120; z=u3,1,1; zs=F:0.03; zz=U:10; ys=F:0.05; yz=U:99; "
     "y.u=QLinearAdd. x xs xz z zs zz ys yz",
     1},
    {"x=s3,5; xs=F:0.02; xz=S:12; z=S5; zs=F:0.03; zz=S:10; ys=F:0.05; yz=S:-9; "
     "y.s=QLinearMul. x xs xz z zs zz ys yz",
     1},
    {"x=u3,17; xs=F:0.02; xz=U:120; ys=F:0.00390625; yz=U:0; y.u=QLinearSigmoid. x xs xz ys yz", 1},
    {"x=s3,17; xs=F:0.02; xz=S:20; ys=F:0.03; yz=S:-2; "
     "y.s=QLinearLeakyRelu. x xs xz ys yz alpha=0.1",
     1},
    {"x=u3,17; xs=F:0.05; xz=U:120; ys=F:0.00390625; yz=U:0; "
     "y.u=QLinearSoftmax. x xs xz ys yz axis=1 opset=13",
     1},
    {"x=u1,17,5,6; xs=F:0.05; xz=U:120; ys=F:0.04; yz=U:100; "
     "y.u=QLinearAveragePool. x xs xz ys yz kernel_shape=[3,2] strides=[2,2]",
     1},
    {"x=s2,17,5,6; xs=F:0.05; xz=S:12; ys=F:0.04; yz=S:-10; "
     "y.s=QLinearGlobalAveragePool. x xs xz ys yz channels_last=0",
     1},
};

/* x and w are dequantized, y is quantized; xs, xz, ys, yz as before. */
#define QDQ_X "xs=F:0.02; xz=U:120; x=u1,4,8,6; a=DequantizeLinear x xs xz; "
#define QDQ_Y "ys=F:0.05; yz=U:110; y.u=QuantizeLinear c ys yz"
static const row between[] = {
    {QDQ_X "h=F:0.5; b=AveragePool a kernel_shape=[2,2]; c=Relu b; " QDQ_Y, 1},
    {QDQ_X "c=AveragePool a kernel_shape=[2,3] strides=[2,1]; " QDQ_Y, 1},
    {QDQ_X "c=GlobalAveragePool a; " QDQ_Y, 1},
    {QDQ_X "k=L2:2,3; c=ReduceMean a k keepdims=0; " QDQ_Y, 1},
    {QDQ_X "zs=F:0.03; zz=U:3; z=u4,1,1; b=DequantizeLinear z zs zz; c=Add a b; " QDQ_Y, 1},
    {QDQ_X "zs=F:0.03; zz=U:3; z=u1,4,8,6; b=DequantizeLinear z zs zz; d=Sub a b; c=Relu d; " QDQ_Y,
     1},
    {QDQ_X "zs=F:0.03; zz=U:3; z=u1,4,8,6; b=DequantizeLinear z zs zz; c=Mul a b; " QDQ_Y, 1},
    {QDQ_X "c=LeakyRelu a alpha=0.2; " QDQ_Y, 1},
    {QDQ_X "c=Elu a; " QDQ_Y, 1},
    {QDQ_X "c=Sigmoid a; " QDQ_Y, 1},
    {QDQ_X "c=MaxPool a kernel_shape=[2,2]; " QDQ_Y, 1},
    {QDQ_X "c=MaxPool a kernel_shape=[2,2]; y.u=QuantizeLinear c xs xz", 1},
    {QDQ_X "s=L2:4,-1; c=Reshape a s; y.u=QuantizeLinear c xs xz", 1},
    {QDQ_X "c=Concat a a axis=2; y.u=QuantizeLinear c xs xz", 1},
    {QDQ_X "w=F5,4,3,3; c=Conv a w; " QDQ_Y, 1},
    {QDQ_X "w=S5,4,3,3; ws=F:0.01; wz=S:0; b=DequantizeLinear w ws wz; c=Conv a b; " QDQ_Y, 1},
    {QDQ_X "w=S5,4,3,3; ws=F5:0.01,0.02,0.005,0.01,0.03; wz=S5:0,0,0,0,0; f=F5; "
           "b=DequantizeLinear w ws wz axis=0; d=Conv a b f pads=[1,1,1,1]; c=Relu d; " QDQ_Y,
     1},
    {QDQ_X "w=U5,4,3,3; ws=F:0.01; wz=U:117; k=I5; ks=F:0.0002; kz=I:0; "
           "b=DequantizeLinear w ws wz; f=DequantizeLinear k ks kz; c=Conv a b f; " QDQ_Y,
     1},
    {"xs=F:0.02; xz=S:7; x=s3,7; a=DequantizeLinear x xs xz; w=S5,7; ws=F5:0.01,0.02,0.005,0.01,0.03; "
     "wz=S5:0,0,0,0,0; f=F5; b=DequantizeLinear w ws wz axis=0; c=Gemm a b f transB=1; ys=F:0.05; "
     "yz=S:-10; y.s=QuantizeLinear c ys yz",
     1},
    {"xs=F:0.02; xz=S:7; x=s2,3,7; a=DequantizeLinear x xs xz; w=S7,5; ws=F5:0.01,0.02,0.005,0.01,0.03; "
     "wz=S5:0,0,0,0,0; b=DequantizeLinear w ws wz axis=1; c=MatMul a b; ys=F:0.05; yz=S:-10; "
     "y.s=QuantizeLinear c ys yz",
     1},
    {QDQ_X "w=S5,4,3,3; ws=F:0.01; wz=S:0; b=DequantizeLinear w ws wz; y=Conv a b", 0},
};

static void test_bytes(void **state)
{
    (void)state;
    takes_all(bytes, NORI__COUNT(bytes), false);
}

static void test_between(void **state)
{
    (void)state;
    takes_all(between, NORI__COUNT(between), false);
}

/* ---- sizes known only when it runs ---- */

static void test_open_sizes(void **state)
{
    static const row rows[] = {
        {"x=f2,7,5,3; w=F4,3,3,3; b=F4; t=Transpose x perm=[0,3,1,2]; u=Conv t w b; y=Relu u", 0},
        {"x=f3,17; z=f3,17; y=Mul x z", 0},
        {"x=f2,5,3,7; y=Softmax x axis=1", 0},
        {"x=f2,5,3,7; y=MaxPool x kernel_shape=[2,2]", 0},
        {"x=f2,5,3,7; a=GlobalAveragePool x; y=Flatten a", 0},
        {"x=f2,3,4,5; e=F0; s=F4:1,1,2,3; y=Resize x e s mode=linear", 0},
        {"x=f37,21; y=Transpose x", 0},
    };
    (void)state;
    takes_all(rows, NORI__COUNT(rows), true);
}

/* Sizes that come and go, and none at all. */
static void test_changing_sizes(void **state)
{
    const char *text = "x=f2,3,7,6; w=F4,3,3,3; m=F4,5; a=Conv x w pads=[1,1,1,1] strides=[2,1]; "
                       "b=MaxPool a kernel_shape=[2,2]; c=GlobalAveragePool b; d=Flatten c; "
                       "y=MatMul d m";
    static const int64_t sizes[][4] = {{2, 3, 7, 6}, {1, 3, 9, 5}, {2, 3, 7, 6}, {5, 3, 20, 21},
                                       {0, 3, 7, 6}, {1, 3, 9, 5}};
    text_model t;
    (void)state;
    text_begin(&t, text, 18, true);
    nori_session *s = session_of(&t, ALL, 1, text), *r = session_of(&t, "reference", 1, text);
    for (size_t i = 0; i < NORI__COUNT(sizes); i++) {
        nori_tensor_free(t.in[0]);
        t.in[0] = text_filled(&t, NORI_FLOAT, 4, sizes[i]);
        compare(&t, s, r, 1e-5, text);
    }
    nori_session_free(s);
    nori_session_free(r);
    text_end(&t);
}

/* ---- threads ---- */

static void test_threads(void **state)
{
    static const char *const texts[] = {
        "x=f2,19,33,31; w=F37,19,3,3; y=Conv x w pads=[1,1,1,1]",
        "x=f1,37,33,31; w=F37,1,3,3; y=Conv x w group=37",
        "x=f5,333; w=F333,77; y=MatMul x w",
        "x=f1,333; w=F333,777; a=MatMul x w; y=Softmax a",
        "x=f3,41,37,29; a=Sigmoid x; b=AveragePool a kernel_shape=[3,3] pads=[1,1,1,1]; "
        "c=GlobalAveragePool b; y=Mul a c",
        "x=u1,19,33,31; xs=F:0.02; xz=U:120; w=S37,19,3,3; ws=F:0.01; wz=S:0; ys=F:0.5; yz=U:99; "
        "y.u=QLinearConv x xs xz w ws wz ys yz",
    };
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(texts); i++) {
        text_model t;
        nori_tensor *a[1] = {NULL}, *b[1] = {NULL};
        text_begin(&t, texts[i], 18, false);
        nori_session *one = session_of(&t, ALL, 1, texts[i]);
        nori_session *many = session_of(&t, ALL, 3, texts[i]);
        run(one, &t, a);
        run(many, &t, b);
        assert_int_equal(a[0]->bytes, b[0]->bytes);
        assert_memory_equal(a[0]->data, b[0]->data, a[0]->bytes);
        nori_tensor_free(a[0]);
        nori_tensor_free(b[0]);
        nori_session_free(one);
        nori_session_free(many);
        text_end(&t);
    }
}

/* ---- what it leaves ---- */

static void leaves(const char *text, const char *why)
{
    text_model t;
    nori_claim claim = {.size = sizeof(claim)};
    nori_error err = {0};
    void *self = NULL;
    text_begin(&t, text, 18, false);
    nori_session *s = session_of(&t, "xnnpack:launch_us=0,reference", 1, text);
    size_t has, others;
    count_nodes(s, &has, &others);
    if (others== 0) {
        fail_msg("%s: xnnpack has it", text);
    }
    nori_provider_open how = {.size = sizeof(how), .options = "", .threads = 1};
    const nori_provider *p = NULL;
    for (size_t i = 0; nori_provider_at(i); i++) {
        p = strcmp(nori_provider_at(i)->name, "xnnpack") == 0 ? nori_provider_at(i) : p;
    }
    assert_int_equal(p->open(&how, &self, &err), NORI_OK);
    nori_node_info n = {.size = sizeof(n)};
    for (size_t i = 0; nori_session_node(s, i, &n); i++) {
        if (strcmp(n.provider, "xnnpack") != 0) {
            assert_int_equal(p->claim(self, n.node, &claim, &err), NORI_OK);
            assert_false(claim.taken);
            if (!strstr(claim.reason, why)) {
                fail_msg("%s: it says \"%s\", expected \"%s\"", text, claim.reason, why);
            }
        }
    }
    p->close(self);
    nori_session_free(s);
    text_end(&t);
}

static void test_left(void **state)
{
    (void)state;
    leaves("x=f3,7; y=Erf x", "no such operator");
    leaves("x=f1,3,7,6; w=f4,3,3,3; y=Conv x w", "not constant");
    leaves("x=f1,2,5,5,5; w=F4,2,3,3,3; y=Conv x w", "one or two spatial dimensions");
    leaves("x=f3,7; z=f7,5; y=MatMul x z", "constant matrix");
    leaves("x=f7,3; w=F7,5; y=Gemm x w transA=1", "turned");
    leaves("x=f1,3,7,6; y=AveragePool x kernel_shape=[3,3] pads=[1,1,1,1] count_include_pad=1",
           "count pads");
    leaves("x=f1,3,7,6; y=MaxPool x kernel_shape=[1,1]", "one element");
    leaves("x=f1,3,70,60; y=GlobalAveragePool x", "less exactly");
    leaves("x=f1,3,70,60; y=AveragePool x kernel_shape=[70,60]", "less exactly");
    leaves("x=f1,3,7,6; y=MaxPool x kernel_shape=[3,3] dilations=[2,2] pads=[1,1,1,1]", "dilated");
    leaves("x=f1,3,7,6; y=Softmax x axis=2", "neither channels nor the last");
    leaves("x=f1,3,7,6; p=L8:0,0,1,1,0,0,1,1; y=Pad x p mode=reflect", "with a constant only");
    leaves("x=f3,4; z=f3,4; v=f3,4; y=Max x z v", "two operands");
    leaves("x=u3,17; xs=F:0.02; xz=U:120; ys=F:0.01; yz=U:0; y.u=QLinearSigmoid. x xs xz ys yz",
           "1/256");
    leaves("x=u1,3,7,6; xs=F:500; xz=U:120; w=S4,3,3,3; ws=F:1; wz=S:0; ys=F:0.05; yz=U:99; "
           "y.u=QLinearConv x xs xz w ws wz ys yz",
           "further apart");
}

static void test_options(void **state)
{
    text_model t;
    nori_error err = {0};
    (void)state;
    text_begin(&t, "x=f3,7; y=Abs x", 18, false);
    assert_null(text_session(&t, "xnnpack:turbo=1", 1, 1, &err));
    assert_non_null(strstr(err.message, "turbo=1"));
    assert_non_null(strstr(err.hint, "launch_us"));
    nori_session *s = session_of(&t, "xnnpack,reference", 1, "its usual costs");
    size_t has, others;
    count_nodes(s, &has, &others); /* one small node is not worth a start */
    assert_int_equal(has, 0);
    nori_session_free(s);
    text_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_moves),          cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_bytes),          cmocka_unit_test(test_between),
        cmocka_unit_test(test_open_sizes),     cmocka_unit_test(test_changing_sizes),
        cmocka_unit_test(test_threads),        cmocka_unit_test(test_left),
        cmocka_unit_test(test_options),
    };
    bool there = false;
    for (size_t i = 0; nori_provider_at(i); i++) {
        there = there || strcmp(nori_provider_at(i)->name, "xnnpack") == 0;
    }
    if (!there) {
        print_message("skipped: this nori was built without XNNPACK\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
