/* What providers for devices make one kernel of: attention between products and as an operator, and
 * functions one behind the other, against the reference provider. Built for opencl, and with ON_CUDA for
 * cuda, where the double counts the kernels that are started. Exits 77 where there is no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "make_model.h"
#include "nori/provider.h"
#include "platform/platform.h"
#include "text_model.h"

#include "gpu_case.h"

#ifdef ON_CUDA
#define DEVICE ON_CUDA
#define OTHER "NORI_CUDA" /* names another, such as a real one */
#else
#define OTHER "NORI_OPENCL"
#define DEVICE "opencl:costs=none,chains=1"
#endif

/* A model, and how many kernels it takes (0: not asked). */
typedef struct row {
    const char *text;
    long kernels;
} row;

static const char *device(void)
{
    const char *other = getenv(OTHER);
    return other ? other : DEVICE;
}

/* Counted by the double; 0 elsewhere. */
static long launches(void)
{
#ifdef ON_CUDA
    if (getenv(OTHER)) {
        return 0;
    }
    static long (*count)(const char *);
    nori_error err = {0};
    if (!count) {
        void *library = nori__library_open(CUDA_DOUBLE, &err);
        void *symbol = library ? nori__library_symbol(library, "cuda_double_count", &err) : NULL;
        assert_non_null(symbol);
        memcpy(&count, &symbol, sizeof(symbol));
    }
    return count("launches");
#else
    return 0;
#endif
}

static nori_session *session_of(text_model *t, const char *providers, const char *text)
{
    nori_error err = {0};
    nori_session *s = text_session(t, providers, 1, 1, &err);
    if (!s) {
        fail_msg("%s: %s: %s", text, err.where, err.message);
    }
    return s;
}

static void agree(const nori_tensor *a, const nori_tensor *b, double tolerance, const char *text)
{
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0]));
    for (int64_t i = 0; i < a->count; i++) {
        double x = nori__tensor_get_f64(a, i), y = nori__tensor_get_f64(b, i);
        if (!(x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * (1 + fabs(y)))) {
            fail_msg("%s: element %lld is %g, the reference has %g", text, (long long)i, x, y);
        }
    }
}

static void check(const row *r, bool open, const char *providers, double tolerance)
{
    text_model t;
    nori_error err = {0};
    text_begin(&t, r->text, 23, open);
    nori_session *s = session_of(&t, providers, r->text), *ref = session_of(&t, "reference", r->text);
    nori_node_info info = {.size = sizeof(info)};
    for (size_t i = 0; nori_session_node(s, i, &info); i++) {
        if (strncmp(info.provider, providers, 4) != 0) {
            fail_msg("%s: %s runs %s", r->text, info.provider, nori_node_op(info.node));
        }
    }
    long before = launches();
    for (int run = 0; run < 3; run++) { /* the second is recorded, the third replayed */
        nori_tensor *a[TEXT_MAX] = {NULL}, *b[TEXT_MAX] = {NULL};
        size_t n = nori_session_output_count(s);
        const nori_tensor *const *in = (const nori_tensor *const *)t.in;
        if (nori_session_run(s, in, t.n_in, a, n, &err) != NORI_OK) {
            fail_msg("%s: %s: %s", r->text, err.where, err.message);
        }
        if (run == 0 && r->kernels && launches() > 0 && launches() - before != r->kernels) {
            fail_msg("%s: %ld kernels, expected %ld", r->text, launches() - before, r->kernels);
        }
        assert_int_equal(nori_session_run(ref, in, t.n_in, b, n, &err), NORI_OK);
        for (size_t i = 0; i < n; i++) {
            agree(a[i], b[i], tolerance, r->text);
            nori_tensor_free(a[i]);
            nori_tensor_free(b[i]);
        }
    }
    nori_session_free(s);
    nori_session_free(ref);
    text_end(&t);
}

static void check_all(const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check(&rows[i], false, device(), 1e-5);
#ifndef ON_CUDA
        check(&rows[i], false, DEVICE ",storage=fp16", 4e-3);
#endif
    }
}

/* ---- attention ---- */

static const row attention[] = {
    {"q=f2,3,5,7; k=f2,3,7,9; v=f2,3,9,6; a=MatMul q k; s=Softmax a axis=-1; y=MatMul s v", 1},
    {"q=f2,3,33,8; k=f2,3,8,50; v=f2,3,50,4; c=F:0.35; a=MatMul q k; b=Mul a c; s=Softmax b axis=3; "
     "y=MatMul s v", 1},
    {"q=f2,3,5,7; k=f2,3,7,19; v=f2,3,19,6; c=F:2.6; m=f2,1,1,19; a=MatMul q k; b=Div a c; d=Add b m; "
     "s=Softmax d; y=MatMul s v", 1},
    {"q=f2,3,17,7; k=f2,3,7,17; v=f2,3,17,6; m=F17,17; a=MatMul q k; d=Add m a; s=Softmax d; "
     "y=MatMul s v", 1},
    {"q=f3,5,7; k=f3,7,9; v=f3,9,6; m=f3,5,9; a=MatMul q k; d=Add a m; s=Softmax d; y=MatMul s v", 1},
    {"q=f5,128; k=f128,20; v=f20,128; c=F:0.05; a=MatMul q k; b=Mul a c; s=Softmax b; y=MatMul s v", 1},
    {"q=f1,2,1,4; k=f1,2,4,1; v=f1,2,1,4; a=MatMul q k; s=Softmax a; y=MatMul s v", 1},
    /* of keys, not yet turned */
    {"q=f1,2,5,8; k=f1,2,9,8; v=f1,2,9,8; t=Transpose k perm=[0,1,3,2]; a=MatMul q t; s=Softmax a; "
     "y=MatMul s v", 2},
    /* keys that a mask leaves out, all but one */
    {"q=f1,1,3,4; k=f1,1,4,18; v=f1,1,18,4; m=F1,1,1,18:-1000000,-1000000,-1000000,-1000000,-1000000,"
     "-1000000,-1000000,-1000000,-1000000,-1000000,-1000000,-1000000,-1000000,-1000000,-1000000,-1000000,"
     "-1000000,0; a=MatMul q k; d=Add a m; s=Softmax d; y=MatMul s v", 1},
    /* not one kernel: scores that others see, another axis, a mask that adds batches, long rows */
    {"q=f2,3,5,7; k=f2,3,7,9; v=f2,3,9,6; a=MatMul q k; s=Softmax a axis=-2; y=MatMul s v", 3},
    {"q=f1,3,5,7; k=f1,3,7,9; v=f1,3,9,6; m=f2,1,5,9; a=MatMul q k; d=Add a m; s=Softmax d; y=MatMul s v", 4},
    {"q=f5,130; k=f130,9; v=f9,6; a=MatMul q k; s=Softmax a; y=MatMul s v", 3},
    {"q=f2,3,5,7; k=f2,3,7,9; v=f2,3,9,6; a=MatMul q k; s=Softmax a; b=MatMul s v; p,y=Split s axis=3 "
     "num_outputs=2", 0},
};

static const row operators[] = {
    {"q=f2,3,5,8; k=f2,3,9,8; v=f2,3,9,6; y=Attention q k v", 1},
    {"q=f2,4,21,8; k=f2,2,33,8; v=f2,2,33,8; y=Attention q k v scale=0.4", 1},
    {"q=f2,3,20,8; k=f2,3,20,8; v=f2,3,20,6; y=Attention q k v is_causal=1", 1},
    {"q=f2,3,5,8; k=f2,3,9,8; v=f2,3,9,6; m=f5,9; y=Attention q k v m", 1},
    {"q=f2,3,5,8; k=f2,3,9,8; v=f2,3,9,6; m=F2,1,5,9; y=Attention q k v m", 1},
    {"q=f2,5,24; k=f2,9,24; v=f2,9,18; y=Attention q k v q_num_heads=3 kv_num_heads=3", 1},
    {"q=f2,17,32; k=f2,19,16; v=f2,19,16; y=Attention q k v q_num_heads=4 kv_num_heads=2 is_causal=1", 1},
};

static void joined_attention(void **state)
{
    (void)state;
    check_all(attention, NORI__COUNT(attention));
    row open = {attention[2].text, 5}; /* sizes of other names may differ: nothing is joined */
    check(&open, true, device(), 1e-5);
}

static void operator_attention(void **state)
{
    (void)state;
    check_all(operators, NORI__COUNT(operators));
}

/* ---- chains ---- */

static const row chains[] = {
    {"x=f2,3,5; a=Abs x; b=Sqrt a; y=Neg b", 1},
    {"x=f2,3,5; z=f2,3,5; a=Add x z; b=Mul a z; c=Sigmoid b; y=Sub c x", 1},
    {"x=f2,3,5; k=F3,1; c=F:1.5; a=Mul x k; b=Add a c; d=Relu b; l=F:-1; h=F:0.75; y=Clip d l h", 1},
    {"x=f2,3,5; h=F:0.75; a=Elu x alpha=0.3; b=LeakyRelu a alpha=0.25; y=Clip b - h", 1},
    {"x=f4,5; c=F:3; a=Add x c; l=F:0; h=F:6; b=Clip a l h; d=Mul x b; y=Div d h", 1},
    {"x=f2,1,5; z=f3,1; w=f2,3,5; a=Add w x; b=Mul z a; d=Max b x; y=Min d z", 1},
    {"x=f4,5; c=F:2; a=Pow x c; b=Add c a; d=Div c b; y=PRelu d x", 1},
    /* what grows by a factor of the chain begins another one */
    {"x=f3,1; z=f4,1,5; a=Exp x; b=Neg a; d=Add b z; e=Tanh d; y=Mul e z", 2},
    /* a value that two read ends one */
    {"x=f4,5; a=Exp x; b=Neg a; d=Tanh b; e=Abs b; f=Add d e; y=Relu f", 0},
};

static void chain(void **state)
{
    (void)state;
    check_all(chains, NORI__COUNT(chains));
    row open = {chains[2].text, 1}; /* sizes of one name are the same */
    check(&open, true, device(), 1e-5);
    open = (row){chains[1].text, 3};
    check(&open, true, device(), 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined_attention),
        cmocka_unit_test(operator_attention),
        cmocka_unit_test(chain),
    };
#ifndef ON_CUDA
    if (!case_device("opencl:costs=none")) {
        return 77;
    }
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
