/* The provider nnapi against the reference provider, by way of a double of Android's library that
 * looks at every call (nnapi_double.h): every operator it takes, at odd sizes; what lower feature
 * levels leave out; what is missing or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "make_model.h"
#include "nori/provider.h"
#include "text_model.h"

#include "nnapi_pair.h"

/* ---- operators ---- */

static const char *const windows[] = {
    "x=f2,3,7,5; w=F4,3,3,3; b=F4; y=Conv x w b pads=[1,0,1,2]",
    "x=f1,5,9,8; w=F7,5,1,1; y=Conv x w",
    "x=f1,3,9,8; w=F5,3,3,2; y=Conv x w strides=[2,3] dilations=[2,1] pads=[0,1,2,1]",
    "x=f1,6,7,7; w=F6,1,3,3; b=F6; y=Conv x w b group=6 pads=[1,1,1,1]",
    "x=f1,19,7,6; w=F19,1,5,5; y=Conv x w group=19 pads=[2,2,2,2] strides=[2,2]",
    "x=f1,5,9,7; w=F5,1,3,3; y=Conv x w group=5 dilations=[2,3]",
    "x=f1,4,7,7; w=F8,1,3,3; y=Conv x w group=4 pads=[1,1,1,1]",
    "x=f2,6,5,6; w=F9,2,3,3; b=F9; y=Conv x w b group=3",
    "x=f1,3,7,6; w=F5,3,3,3; y=Conv x w auto_pad=SAME_LOWER strides=[2,2]",
    "x=f1,3,7,7; w=F2,3,3,3; a=Conv x w; y=Relu a",
    "x=f1,3,7,7; w=F2,3,3,3; l=F:0; h=F:6; a=Conv x w; y=Clip a l h",
    "x=f1,3,7,7; w=F2,3,3,3; l=F:-1; h=F:1; a=Conv x w; y=Clip a l h",
    "x=f1,3,7,7; w=F2,3,3,3; l=F:0.5; h=F:3; a=Conv x w; y=Clip a l h",
    "x=f1,3,7,8; y=MaxPool x kernel_shape=[3,2] strides=[2,1] pads=[1,0,1,1]",
    "x=f1,3,7,8; y=MaxPool x kernel_shape=[3,3] strides=[2,2] ceil_mode=1",
    "x=f1,17,7,8; y=AveragePool x kernel_shape=[3,2] strides=[2,1]",
    "x=f1,3,7,8; y=AveragePool x kernel_shape=[3,3] pads=[1,1,1,1]",
    "x=f1,3,7,8; a=AveragePool x kernel_shape=[3,3] strides=[2,2] ceil_mode=1; y=Relu a",
    "x=f2,19,5,3; y=GlobalAveragePool x",
    "x=f2,3,5,4; a=L2:-1,2; y=ReduceMean x a keepdims=0",
    "x=f2,3,5,4; a=L2:1,-1; y=ReduceMean x a",
    "x=f2,3,5; a=L1:0; y=ReduceMean x a keepdims=0",
    "x=f1,3,4,5; e=F0; s=F4:1,1,2,3; y=Resize x e s mode=linear",
    "x=f1,3,8,9; e=F0; s=F4:1,1,0.5,1; y=Resize x e s mode=linear",
    "x=f1,3,4,5; z=L4:1,3,7,11; y=Resize x - - z mode=linear "
    "coordinate_transformation_mode=align_corners",
    "x=f1,3,4,5; z=L4:1,3,6,4; y=Resize x - - z mode=linear "
    "coordinate_transformation_mode=asymmetric",
    "x=f2,3,4,5; e=F0; s=F4:1,1,2,3; y=Resize x e s mode=nearest nearest_mode=floor "
    "coordinate_transformation_mode=asymmetric",
    "x=f2,3,4,5; e=F0; s=F4:1,1,3,2; y=Resize x e s mode=nearest",
};

static const char *const lines[] = {
    "x=f3,17; y=Abs x",
    "x=f3,17; y=Neg x",
    "x=f3,17; y=Floor x",
    "x=f3,17; y=Exp x",
    "x=f3,17; a=Abs x; y=Sqrt a",
    "x=f3,17; a=Abs x; y=Log a",
    "x=f3,17; y=Sigmoid x",
    "x=f3,17; y=Tanh x",
    "x=f3,17; y=HardSwish x",
    "x=f3,17; y=LeakyRelu x alpha=0.3",
    "x=f3,17; y=Elu x alpha=1.5",
    "x=f3,17; y=Relu x",
    "x=f3,17; l=F:-0.5; h=F:0.75; y=Clip x l h",
    "x=f3,17; l=F:-0.5; y=Clip x l",
    "x=f3,17; h=F:0.75; y=Clip x - h",
    "x=f3,17; y=HardSigmoid x alpha=0.3 beta=0.4",
    "x=f2,5,3,4; s=F5,1,1; y=PRelu x s",
    "x=f3,17; y=Softmax x",
    "x=f2,5,3,7; y=Softmax x axis=1",
    "x=f2,5,3,7; y=Softmax x axis=3",
    "x=f2,5,3; y=Softmax x axis=-1",
    "x=f2,3,5; z=f2,3,5; y=Add x z",
    "x=f2,3,5; z=f3,1; y=Sub x z",
    "x=f2,1,5; z=f4,1; y=Mul x z",
    "x=f2,3,5; z=F:3; y=Div x z",
    "x=f2,3,5; z=F:3; y=Sub z x",
    "x=f1,5; z=f4,1; y=Max x z",
    "x=f4,5; z=f5; y=Min x z",
    "x=f4,5; z=f4,5; a=Add x z; y=Relu a",
    "x=f4,5; y=Mul x x",
    "x=f2,3,4,5; s=F3; b=F3; m=F3; v=F3:0.5,1,2; y=BatchNormalization x s b m v",
    "x=f3,7; w=F7,5; y=MatMul x w",
    "x=f2,3,7; w=F7,5; y=MatMul x w",
    "x=f2,3,7; w=f2,7,4; y=MatMul x w",
    "x=f3,7; w=F7,5; b=F5; y=Gemm x w b alpha=0.5 beta=2.0",
    "x=f3,7; w=F5,7; b=F1,5; a=Gemm x w b transB=1; y=Relu a",
};

static const char *const moves[] = {
    "x=f2,3,5; s=L2:6,5; y=Reshape x s",
    "x=f2,3,5,2; y=Flatten x axis=2",
    "x=f2,1,5; a=L1:1; y=Squeeze x a",
    "x=f2,5; a=L1:1; y=Unsqueeze x a",
    "x=f2,3,4,5; y=Transpose x perm=[0,2,3,1]",
    "x=f2,3,4,5; y=Transpose x perm=[0,3,1,2]",
    "x=f2,3,4,5; y=Transpose x perm=[3,1,0,2]",
    "x=f37,21; y=Transpose x",
    "x=f2,3,4; z=f2,1,4; y=Concat x z x axis=1",
    "x=f2,3,4; z=F2,3,2; y=Concat x z axis=-1",
    "x=f5,7,3; s=L2:1,-5; e=L2:4,100; y=Slice x s e",
    "x=f5,7,3; s=L1:1; e=L1:6; a=L1:1; t=L1:2; y=Slice x s e a t",
    "x=f2,7,3; z=L3:2,4,1; p,q,r=Split x z axis=1",
    "x=f2,3,4; p=L6:0,1,2,1,0,3; v=F:1.5; y=Pad x p v",
    "x=f2,3,4; p=L2:1,2; a=L1:-1; y=Pad x p - a",
    "x=f1,12,2,3; y=DepthToSpace x blocksize=2",
};

/* Values that lie channels last when they come to what does not want them so. */
static const char *const mixed[] = {
    "x=f1,3,7,6; w=F5,3,3,3; c=Conv x w; s=L2:1,-1; a=Reshape c s; m=F100,4; y=MatMul a m",
    "x=f1,3,7,6; w=F5,3,3,3; k=F5,1; c=Conv x w; y=Mul c k",
    "x=f1,3,7,6; z=f5,4; w=F5,3,3,3; c=Conv x w; k=f5,5,4; y=Add c z",
    "x=f1,3,7,6; w=F5,3,3,3; k=F5,5,4; c=Conv x w; y=Add c k",
    "x=f1,3,7,6; w=F5,3,3,3; c=Conv x w; t=Transpose c perm=[0,2,3,1]; y=Softmax t",
    "x=f1,7,6,3; w=F5,3,3,3; t=Transpose x perm=[0,3,1,2]; y=Conv t w",
    "x=f1,3,7,6; w=F5,3,3,3; c=Conv x w; d=Conv x w; e=Concat c d axis=1; y=Concat e e axis=3",
    "x=f1,4,7,6; w=F6,4,3,3; c=Conv x w; p,q=Split c axis=1 num_outputs=2; y=Sub p q",
    "x=f1,3,7,6; w=F5,3,3,3; c=Conv x w; s=L2:1,0; e=L2:4,3; a=L2:1,3; y=Slice c s e a",
    "x=f1,3,7,6; w=F5,3,3,3; c=Conv x w; p=L8:0,1,2,0,0,0,1,3; y=Pad c p",
    "x=f1,3,8,6; w=F5,3,3,3; c=Conv x w; g=GlobalAveragePool c; h=HardSigmoid g; y=Mul c h",
    "x=f1,3,8,6; w=F5,3,3,3; c=Conv x w; a=L2:2,3; g=ReduceMean c a keepdims=0; y=Relu g",
    "x=f1,3,8,6; w=F5,3,3,3; c=Conv x w; g=GlobalAveragePool c; h=Flatten g; y=Softmax h",
    "x=f1,3,8,6; w=F5,3,3,3; c=Conv x w; s=F5,1,1; y=PRelu c s",
    "x=f1,3,8,6; w=F5,3,3,3; c=Conv x w; d=Relu c; y=Add c d",
};

/* Lines are pictures of height 1, and lie channels last between what works so. */
static const char *const along[] = {
    "x=f2,3,11; w=F4,3,3; b=F4; y=Conv x w b pads=[1,2]",
    "x=f1,3,11; w=F5,3,2; y=Conv x w strides=[2] dilations=[3]",
    "x=f2,6,9; w=F6,1,3; y=Conv x w group=6 pads=[1,1]",
    "x=f1,6,9; w=F9,2,3; b=F9; y=Conv x w b group=3 strides=[2]",
    "x=f1,3,8; w=F5,3,3; y=Conv x w auto_pad=SAME_UPPER strides=[3]",
    "x=f2,3,11; w=F4,3,3; v=F5,4,2; c=Conv x w; r=Relu c; y=Conv r v",
    "x=f2,3,9; y=MaxPool x kernel_shape=[3] strides=[2] pads=[1,1]",
    "x=f2,3,8; y=MaxPool x kernel_shape=[3] strides=[2] ceil_mode=1",
    "x=f2,3,9; a=AveragePool x kernel_shape=[4] strides=[3] pads=[1,1]; y=Relu a",
    "x=f2,19,5; y=GlobalAveragePool x",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; g=GlobalAveragePool c; h=HardSigmoid g; y=Mul c h",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; k=F5,1; y=Mul c k",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; k=F2,5,7; y=Add c k",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; k=f5,1; y=Add c k",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; k=F3,2,5,7; y=Add c k",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; s=F5,1; y=PRelu c s",
    "x=f2,3,9; w=F5,3,3; s=F5; b=F5; m=F5; v=F5:1,2,3,0.5,1; c=Conv x w; y=BatchNormalization c s b m v",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; d=Conv x w; e=Concat c d axis=1; y=Concat e e axis=2",
    "x=f2,4,9; w=F6,4,3; c=Conv x w; p,q=Split c axis=1 num_outputs=2; y=Sub p q",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; s=L2:1,0; e=L2:4,3; a=L2:1,2; y=Slice c s e a",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; p=L6:0,1,2,0,0,3; y=Pad c p",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; y=Softmax c axis=1",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; y=Softmax c axis=2",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; a=L1:2; y=ReduceMean c a keepdims=0",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; a=L1:1; y=ReduceMean c a keepdims=0",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; a=L1:1; y=ReduceMean c a",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; s=L2:2,-1; a=Reshape c s; m=F35,4; y=MatMul a m",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; t=Transpose c perm=[0,2,1]; m=F5,4; y=MatMul t m",
    "x=f2,9,3; w=F5,3,3; t=Transpose x perm=[0,2,1]; c=Conv t w; y=Transpose c perm=[0,2,1]",
    "x=f2,3,9; w=F5,3,3; c=Conv x w; y=Transpose c perm=[2,0,1]",
};

static void test_along(void **state)
{
    (void)state;
    TAKES_ALL(along, true);
    takes("x=f2,3,11; w=F4,3,3; v=F5,4,2; c=Conv x w; r=Relu c; y=Conv r v", true);
    /* turned once at each border */
    assert_string_equal(words("nnapi_double_made"),
                        "TRANSPOSE RESHAPE CONV_2D RESHAPE RESHAPE CONV_2D RESHAPE TRANSPOSE ");
}

static void test_windows(void **state)
{
    (void)state;
    TAKES_ALL(windows, true);
}

static void test_lines(void **state)
{
    (void)state;
    TAKES_ALL(lines, true);
}

static void test_moves(void **state)
{
    (void)state;
    TAKES_ALL(moves, true);
}

static void test_mixed(void **state)
{
    (void)state;
    TAKES_ALL(mixed, true);
}

/* ---- what is left to others ---- */

static void test_left(void **state)
{
    static const char *const rows[] = {
        "x=f1,3,7,6,5; w=F4,3,3,3,3; y=Conv x w",
        "x=f1,3,9,8; y=MaxPool x kernel_shape=[2,3] dilations=[3,2]",
        "x=f1,3,7,8; y=AveragePool x kernel_shape=[3,3] pads=[1,1,1,1] count_include_pad=1",
        "x=f3,7; w=f7,5; y=Gemm x w",
        "x=f3,4,7; w=f7,5; y=MatMul x w",
        "x=f2,3,4,5; s=f3,1,1; y=PRelu x s",
        "x=f2,3,4; p=L6:0,1,1,1,0,1; y=Pad x p mode=reflect",
        "x=f5,7; s=L1:4; e=L1:0; a=L1:0; t=L1:-1; y=Slice x s e a t",
        "x=f1,12,2,3; y=DepthToSpace x blocksize=2 mode=CRD",
        "x=f3,17; y=Erf x",
        "x=f1,2,2,3,2,3; y=Relu x",
        "x=f; y=Relu x",
    };
    (void)state;
    TAKES_ALL(rows, false);
}

/* Level 28 has no compute: it is started and waited for. */
static void test_levels(void **state)
{
    static const char *const in_28[] = {
        "x=f1,6,7,7; w=F6,1,3,3; b=F6; c=Conv x w b group=6 pads=[1,1,1,1]; y=Softmax c axis=3",
        "x=f2,3,5; z=f3,1; a=Sub x z; p=L6:0,1,2,1,0,3; y=Pad a p",
    };
    static const char *const later[] = {
        "x=f1,3,9,8; w=F5,3,3,2; y=Conv x w dilations=[2,1]",
        "x=f2,6,5,6; w=F9,2,3,3; y=Conv x w group=3",
        "x=f3,17; y=Abs x",
        "x=f3,17; l=F:-0.5; h=F:0.75; y=Clip x l h",
        "x=f2,5,3,7; y=Softmax x axis=1",
        "x=f2,3,4; p=L6:0,1,2,1,0,3; v=F:1.5; y=Pad x p v",
        "x=f1,3,4,5; e=F0; s=F4:1,1,2,3; y=Resize x e s mode=linear",
        "x=f2,3,7; w=f2,7,4; y=MatMul x w",
    };
    (void)state;
    setenv("NNAPI_DOUBLE_LEVEL", "28", 1);
    TAKES_ALL(in_28, true);
    TAKES_ALL(later, false);
    setenv("NNAPI_DOUBLE_LEVEL", "29", 1);
    takes(later[0], true);
    takes(later[6], false);
}

/* ---- what cannot be had ---- */

static void refused(const char *providers, nori_status status, const char *word, const char *other)
{
    text_model t;
    nori_error err = {0};
    text_begin(&t, "x=f3,17; y=Relu x", 18, false);
    nori_session *s = text_session(&t, providers, 1, 1, &err);
    assert_null(s);
    assert_int_equal(err.status, status);
    if (!strstr(err.message, word) || !strstr(err.message, other)) {
        fail_msg("%s: \"%s\" has no %s or %s", providers, err.message, word, other);
    }
    text_end(&t);
}

static void test_missing(void **state)
{
    (void)state;
    refused("nnapi:lib=/nowhere/libneuralnetworks.so", NORI_ERROR_UNAVAILABLE,
            "/nowhere/libneuralnetworks.so", "No such file");
    refused("nnapi:lib=" NNAPI_LACKING, NORI_ERROR_UNAVAILABLE, NNAPI_LACKING,
            "ANeuralNetworksModel_finish");
    refused("nnapi:lib=libm.so.6", NORI_ERROR_UNAVAILABLE, "libm.so.6", "ANeuralNetworksModel_create");
    refused(ALL ",device=npu7", NORI_ERROR_UNAVAILABLE, "device", "npu7");
    refused(ALL ",speed=1", NORI_ERROR_ARGUMENT, "option", "speed");
    refused("nnapi:costs=few", NORI_ERROR_ARGUMENT, "costs", "few");
    setenv("NNAPI_DOUBLE_LEVEL", "27", 1);
    refused(ALL, NORI_ERROR_UNAVAILABLE, "level 27", "28");
}

static void test_device(void **state)
{
    const char *text = "x=f3,17; y=Relu x";
    text_model t;
    size_t has, others;
    (void)state;
    text_begin(&t, text, 18, false);
    nori_session *s = session_of(&t, ALL ",device=double", text), *r = session_of(&t, "reference", text);
    count_nodes(s, &has, &others);
    assert_int_equal(has, 1);
    compare(&t, s, r, 1e-5, text);
    nori_session_free(s);
    nori_session_free(r);
    text_end(&t);
}

/* A call that fails while a part is compiled leaves it to others, while it runs it is an error. */
static void test_calls_refused(void **state)
{
    static const char *const compiling[] = {
        "ANeuralNetworksModel_create",         "ANeuralNetworksModel_addOperand",
        "ANeuralNetworksModel_setOperandValue", "ANeuralNetworksModel_addOperation",
        "ANeuralNetworksModel_finish",         "ANeuralNetworksModel_identifyInputsAndOutputs",
        "ANeuralNetworksCompilation_create",   "ANeuralNetworksCompilation_finish",
    };
    static const char *const running[] = {
        "ANeuralNetworksExecution_create",
        "ANeuralNetworksExecution_setInput",
        "ANeuralNetworksExecution_setOutput",
        "ANeuralNetworksExecution_compute",
    };
    const char *text = "x=f3,7; w=F7,5; a=MatMul x w; y=Relu a";
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(compiling); i++) {
        setenv("NNAPI_DOUBLE_REFUSE", compiling[i], 1);
        takes(text, false);
        assert_int_equal(number("nnapi_double_live"), 0);
    }
    unsetenv("NNAPI_DOUBLE_REFUSE");
    for (size_t i = 0; i < NORI__COUNT(running); i++) {
        text_model t;
        nori_error err = {0};
        nori_tensor *out[TEXT_MAX] = {NULL};
        text_begin(&t, text, 18, false);
        nori_session *s = session_of(&t, ALL, text);
        setenv("NNAPI_DOUBLE_REFUSE", running[i], 1);
        assert_int_not_equal(nori_session_run(s, (const nori_tensor *const *)t.in, t.n_in, out, 1, &err),
                             NORI_OK);
        assert_non_null(strstr(err.message, running[i]));
        unsetenv("NNAPI_DOUBLE_REFUSE");
        nori_session_free(s);
        text_end(&t);
    }
}

/* ---- sizes that are open ---- */

static void test_open_sizes(void **state)
{
    const char *text = "x=f2,5,3,7; y=MaxPool x kernel_shape=[2,2]";
    text_model t;
    size_t has, others;
    (void)state;
    text_begin(&t, text, 18, true);
    nori_session *s = session_of(&t, ALL, text);
    count_nodes(s, &has, &others);
    assert_int_equal(has, 0);
    nori_session_free(s);
    text_end(&t);
}

/* ---- the name in the cache: the same for the same model, another for another weight ---- */

/* What was told about the folder. */
static void hear(void *user, const nori_progress *p)
{
    char *said = user;
    if (strcmp(p->phase, "cache") == 0) {
        snprintf(said, 512, "%s: %s", p->provider, p->text);
    }
}

static void token_of(const char *text, const char *folder, char *token)
{
    char said[512] = "", want[600], name[17] = "";
    text_model t;
    nori__text bytes;
    nori_model *model = NULL;
    nori_session *s = NULL;
    nori_session_options o;
    text_begin(&t, text, 18, false);
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&t.m.model, &bytes, NULL), NORI_OK);
    nori_session_options_default(&o);
    o.providers = ALL;
    o.cache_dir = folder;
    o.progress = hear;
    o.progress_user = said;
    assert_int_equal(nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, NULL),
                     NORI_OK);
    assert_int_equal(nori_session_create(model, &o, &s, NULL), NORI_OK);
    snprintf(token, 65, "%s", words("nnapi_double_token"));
    assert_int_equal(strlen(token), 64);
    for (size_t i = 0; i < 16; i++) { /* the double has the bytes of the name in hexadecimal */
        unsigned byte = 0;
        assert_int_equal(sscanf(token + 2 * i, "%2x", &byte), 1);
        name[i] = (char)byte;
    }
    snprintf(want, sizeof(want), "nnapi: left to the driver: it may keep 1 node in %s as %s", folder,
             name);
    if (strncmp(said, want, strlen(want)) != 0) {
        fail_msg("\"%s\" is not \"%s\"", said, want);
    }
    nori_session_free(s);
    nori_model_free(model);
    nori__text_free(&bytes);
    text_end(&t);
}

static void test_cache(void **state)
{
    char folder[] = "/tmp/nori-nnapi-XXXXXX", a[65], b[65], c[65];
    (void)state;
    assert_non_null(mkdtemp(folder));
    token_of("x=f3,2; w=F2,2:1,2,3,4; y=MatMul x w", folder, a);
    token_of("x=f3,2; w=F2,2:1,2,3,5; y=MatMul x w", folder, b);
    token_of("x=f3,2; w=F2,2:1,2,3,4; y=MatMul x w", folder, c);
    assert_string_equal(a, c);
    assert_string_not_equal(a, b);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_windows, fresh),
        cmocka_unit_test_teardown(test_along, fresh),
        cmocka_unit_test_teardown(test_lines, fresh),
        cmocka_unit_test_teardown(test_moves, fresh),
        cmocka_unit_test_teardown(test_mixed, fresh),
        cmocka_unit_test_teardown(test_left, fresh),
        cmocka_unit_test_teardown(test_levels, fresh),
        cmocka_unit_test_teardown(test_missing, fresh),
        cmocka_unit_test_teardown(test_device, fresh),
        cmocka_unit_test_teardown(test_calls_refused, fresh),
        cmocka_unit_test_teardown(test_open_sizes, fresh),
        cmocka_unit_test_teardown(test_cache, fresh),
    };
    return cmocka_run_group_tests(tests, open_double, NULL);
}
