/* cuBLASLt and cuDNN by way of the provider cuda, against doubles of them (cuda_libraries_double.c): when
 * they are used, what is left to own kernels, what is said when they cannot be had. That results are right
 * for every form of product and convolution is test_gpu_cases.c with both (cuda_cases_libraries). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "cuda_double.h"
#include "make_model.h"
#include "gpu_case.h"
#include "platform/platform.h"

#define LIBRARIES ",cublaslt=" CUDA_DOUBLE ",cudnn=" CUDA_DOUBLE
#define PLAIN "cuda:costs=none,lib=" CUDA_DOUBLE ",nvrtc=" CUDA_DOUBLE
#define BOTH PLAIN LIBRARIES

static long (*count)(const char *);
static const char *(*complaint)(void);

static int open_double(void **state)
{
    nori_error err = {0};
    void *library = nori__library_open(CUDA_DOUBLE, &err), *symbol;
    (void)state;
    assert_non_null(library);
    symbol = nori__library_symbol(library, "cuda_double_count", &err);
    memcpy(&count, &symbol, sizeof(symbol));
    symbol = nori__library_symbol(library, "cuda_double_complaint", &err);
    memcpy(&complaint, &symbol, sizeof(symbol));
    return count && complaint ? 0 : -1;
}

static void nothing_left(void)
{
    static const char *const all[] = {"allocations", "handles", "graphs", "contexts"};
    for (size_t i = 0; i < NORI__COUNT(all); i++) {
        if (count(all[i]) != 0) {
            fail_msg("%ld %s are left", count(all[i]), all[i]);
        }
    }
    if (count("wrong") != 0) {
        fail_msg("the double says: %s", complaint());
    }
}

typedef struct row {
    const char *op, *inputs, *attributes;
    long products, convolutions; /* of one run */
    long kernels;                /* besides */
} row;

/* Runs three times: kernel by kernel, recording, and replaying; results as on the reference provider. */
static void check(const row *r, const char *providers)
{
    gpu_case c;
    nori_error err = {0};
    case_begin(&c, r->op, r->inputs, r->attributes, 1, 21);
    nori_session *s = case_session(&c, providers, NULL, &err);
    nori_session *ref = case_session(&c, "reference", NULL, &err);
    assert_non_null(s);
    assert_non_null(ref);
    for (int run = 0; run < 3; run++) {
        long before[3] = {count("products"), count("convolutions"), count("launches")};
        nori_tensor *a = NULL, *b = NULL;
        const nori_tensor *const *in = (const nori_tensor *const *)c.fed;
        if (nori_session_run(s, in, c.n_fed, &a, 1, &err) != NORI_OK) {
            fail_msg("%s %s: %s: %s (%s)", r->op, r->inputs, err.where, err.message, complaint());
        }
        assert_int_equal(nori_session_run(ref, in, c.n_fed, &b, 1, &err), NORI_OK);
        for (int64_t i = 0; i < nori_tensor_elements(b); i++) {
            double x = (double)((float *)nori_tensor_data(a))[i];
            double y = (double)((float *)nori_tensor_data(b))[i];
            if (fabs(x - y) > 1e-5 * (1 + fabs(y))) {
                fail_msg("%s %s: element %lld is %g, the reference has %g", r->op, r->inputs, (long long)i, x,
                         y);
            }
        }
        if (run == 0) {
            long made[3] = {count("products") - before[0], count("convolutions") - before[1],
                            count("launches") - before[2]};
            if (made[0] != r->products || made[1] != r->convolutions || made[2] != r->kernels) {
                fail_msg("%s %s: %ld products, %ld convolutions, %ld kernels", r->op, r->inputs, made[0],
                         made[1], made[2]);
            }
        } else if (run == 2) {
            assert_int_equal(count("products") + count("convolutions"), before[0] + before[1]);
        }
        nori_tensor_free(a);
        nori_tensor_free(b);
    }
    nori_session_free(s);
    nori_session_free(ref);
    case_end(&c);
    nothing_left();
}

static void used(void **state)
{
    static const row rows[] = {
        {"MatMul", "5x7 c:7x9", "", 1, 0, 0},
        {"MatMul", "2x3x5x7 c:7x6", "", 1, 0, 0},    /* as one of 30 rows */
        {"MatMul", "2x3x5x7 2x3x7x4", "", 1, 0, 0},  /* as a batch of 6 */
        {"MatMul", "7 7x5", "", 1, 0, 0},
        {"Gemm", "5x7 c:9x7 c:9", "transB=1 alpha=0.5 beta=2.0", 1, 0, 0},
        {"Gemm", "7x5 c:7x6", "transA=1", 1, 0, 0},
        {"Gemm then Relu", "3x33 c:33x10 c:10", "", 1, 0, 0}, /* bias and Relu with it */
        {"Gemm then Sigmoid", "9x5 c:66x5 c:66", "transB=1", 1, 0, 1},
        {"Conv", "2x5x9x7 c:7x5x3x3", "strides=[2,1] pads=[1,0,1,0] dilations=[1,2]", 0, 1, 0},
        {"Conv", "1x6x5x11 c:9x2x3x2 c:9", "group=3 strides=[1,3]", 0, 1, 1},
        {"Conv then Relu", "1x5x9x7 c:7x5x1x1", "", 0, 1, 1},
        {"Conv", "2x3x17 c:5x3x4 c:5", "pads=[2,2] strides=[2]", 0, 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(rows); i++) {
        check(&rows[i], BOTH);
    }
}

static void left(void **state)
{
    static const row rows[] = {
        {"MatMul", "3x5x7 2x1x7x9", "", 0, 0, 1},             /* batches that repeat each other */
        {"Gemm", "5x7 c:7x9 c:5x1", "", 0, 0, 1},             /* a bias a row */
        {"Conv", "1x5x9x7 c:7x5x3x3", "pads=[0,1,1,1]", 0, 0, 1}, /* pads of two sizes */
        {"Conv", "1x2x7x7 c:3x2x3x3", "auto_pad=SAME_UPPER strides=[2,2]", 0, 0, 1},
        {"Conv", "2x5x9x11 c:5x1x3x3 c:5", "group=5 pads=[1,1,1,1]", 0, 0, 1}, /* depthwise */
        {"ConvTranspose", "1x4x5x3 c:4x3x3x3 c:3", "strides=[2,2]", 0, 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(rows); i++) {
        check(&rows[i], BOTH);
    }
}

/* Where a library has no algorithm, own kernels compute. */
static void no_algorithm(void **state)
{
    static const row product = {"Gemm then Relu", "9x33 c:33x10 c:10", "", 0, 0, 1};
    static const row window = {"Conv then Relu", "1x5x9x7 c:10x5x3x3 c:10", "", 0, 0, 1};
    (void)state;
    setenv("CUDA_DOUBLE_REFUSE", "product", 1);
    check(&product, BOTH);
    setenv("CUDA_DOUBLE_REFUSE", "convolution", 1);
    check(&window, BOTH);
    unsetenv("CUDA_DOUBLE_REFUSE");
}

/* Each alone, and neither. */
static void apart(void **state)
{
    static const row product = {"MatMul", "5x7 c:7x9", "", 1, 0, 0};
    static const row own = {"MatMul", "5x7 c:7x9", "", 0, 0, 1};
    static const row window = {"Conv", "1x5x9x7 c:7x5x3x3", "", 0, 1, 0};
    static const row own_window = {"Conv", "1x5x9x7 c:7x5x3x3", "", 0, 0, 1};
    (void)state;
    check(&product, PLAIN ",cudnn=none,cublaslt=" CUDA_DOUBLE);
    check(&own_window, PLAIN ",cudnn=none,cublaslt=" CUDA_DOUBLE);
    check(&own, PLAIN ",cublaslt=none,cudnn=" CUDA_DOUBLE);
    check(&window, PLAIN ",cublaslt=none,cudnn=" CUDA_DOUBLE);
    check(&own, PLAIN ",cublaslt=none,cudnn=none");
}

static void engine_says(const char *providers, const char *text)
{
    gpu_case c;
    nori_error err = {0};
    const char *label, *engine = "";
    case_begin(&c, "Relu", "2", "", 1, 17);
    nori_session *s = case_session(&c, providers, NULL, &err);
    assert_non_null(s);
    assert_true(nori_session_provider(s, 0, &label, &engine));
    if (!strstr(engine, text)) {
        fail_msg("\"%s\" does not say \"%s\"", engine, text);
    }
    nori_session_free(s);
    case_end(&c);
}

static void said(void **state)
{
    (void)state;
    engine_says(BOTH, "products by cuBLASLt 12.4, convolutions by cuDNN 8.9");
    engine_says(PLAIN ",cublaslt=none,cudnn=" CUDA_DOUBLE,
                "products by own kernels, convolutions by cuDNN 8.9");
    engine_says(PLAIN ",cublaslt=none,cudnn=none", "products by own kernels, convolutions by own kernels");
}

static void fails(const char *providers, const char *text)
{
    gpu_case c;
    nori_error err = {0};
    case_begin(&c, "Relu", "2", "", 1, 17);
    nori_session *s = case_session(&c, providers, NULL, &err);
    assert_null(s);
    assert_int_equal(err.status, NORI_ERROR_UNAVAILABLE);
    if (!strstr(err.message, text)) {
        fail_msg("\"%s\" does not say \"%s\"", err.message, text);
    }
    case_end(&c);
    nothing_left();
}

/* Absence of what nobody named is no error; of what was named it is. */
static void missing(void **state)
{
    (void)state;
    fails(PLAIN ",cudnn=none,cublaslt=/nonexistent/libcublasLt.so.12", "/nonexistent/libcublasLt.so.12");
    fails(PLAIN ",cublaslt=none,cudnn=/nonexistent/libcudnn.so.9", "/nonexistent/libcudnn.so.9");
    fails(PLAIN ",cudnn=none,cublaslt=" LACKING_CUDA, "lacks symbol cublasLtMatmul");
    fails(PLAIN ",cublaslt=none,cudnn=libm.so.6", "lacks symbol cudnnGetVersion");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(used),  cmocka_unit_test(left), cmocka_unit_test(no_algorithm),
        cmocka_unit_test(apart), cmocka_unit_test(said), cmocka_unit_test(missing),
    };
    return cmocka_run_group_tests(tests, open_double, NULL);
}
