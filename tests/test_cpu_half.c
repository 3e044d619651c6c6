/* Islands of float32 in models of half types: what is cast, what comes out, what it costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "busy.h"
#include <math.h>

#include "base/half.h"
#include "big_model.h"
#include "graph/tensor.h"
#include "nori/tools.h"

#define SIDE 512
#define LINKS 10

/* x -> MatMul -> ... -> y, in a type; weights keep values near 1. */
static void chain(big *b, nori_type type)
{
    static float w[SIDE * SIDE];
    static uint16_t h[SIDE * SIDE];
    uint32_t seed = 5;
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        seed = seed * 1664525u + 1013904223u;
        h[i] = nori__f32_to_f16(((float)(seed >> 8) / (1 << 24) - 0.5f) * 0.15f);
        w[i] = nori__f16_to_f32(h[i]);
    }
    bool half = type == NORI_FLOAT16;
    big_begin(b);
    big_tensor(b, "w", type, 2, (int64_t[]){SIDE, SIDE}, half ? (void *)h : w,
               half ? sizeof(h) : sizeof(w), NULL, 0);
    char in[32] = "x w", out[16];
    for (int i = 0; i < LINKS; i++) {
        snprintf(out, sizeof(out), i + 1 < LINKS ? "v%d" : "y", i);
        big_node(b, "MatMul", in, out);
        snprintf(in, sizeof(in), "%s w", out);
    }
    big_input(b, "x", type, 2, (int64_t[]){-1, SIDE});
    big_output(b, "y", type, 2, (int64_t[]){-1, SIDE});
    big_finish(b, 17);
}

static nori_session *session_of(const big *b, int level, int profile)
{
    nori_error err = {0};
    nori_model *model = NULL;
    nori_session *s = NULL;
    nori_session_options o;
    nori_session_options_default(&o);
    o.level = level;
    o.profile = profile;
    o.threads = 1;
    assert_int_equal(nori_model_load_memory(NULL, b->model.data, b->model.size, NULL, NULL, &model,
                                            &err), NORI_OK);
    if (nori_session_create(model, &o, &s, &err) != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
        fail();
    }
    nori_model_free(model);
    return s;
}

static nori_tensor *rows(nori_type type, int64_t n)
{
    nori_tensor *t = NULL;
    assert_int_equal(nori_tensor_create(NULL, type, 2, (int64_t[]){n, SIDE}, &t, NULL), NORI_OK);
    for (int64_t i = 0; i < n * SIDE; i++) {
        nori__tensor_set_f64(t, i, (double)(i % 17) / 16 - 0.5);
    }
    return t;
}

static nori_tensor *run(nori_session *s, const nori_tensor *x)
{
    nori_error err = {0};
    nori_tensor *out[1] = {NULL};
    if (nori_session_run(s, &x, 1, out, 1, &err) != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
        fail();
    }
    return out[0];
}

static int calls(nori_session *s, const char *op, const char *provider)
{
    int n = 0;
    nori_profile_row r = {.size = sizeof(r)};
    for (size_t i = 0; nori_session_profile(s, i, &r); i++) {
        n += strcmp(r.op, op) == 0 && (!provider || strcmp(r.provider, provider) == 0)
                 ? (int)r.calls
                 : 0;
    }
    return n;
}

static void near_enough(const nori_tensor *got, const nori_tensor *want, double atol, double rtol)
{
    assert_int_equal(nori_tensor_type(got), nori_tensor_type(want));
    assert_int_equal(got->count, want->count);
    for (int64_t i = 0; i < want->count; i++) {
        double a = nori__tensor_get_f64(got, i), b = nori__tensor_get_f64(want, i);
        if (!(fabs(a - b) <= atol + rtol * fabs(b))) {
            print_error("element %lld: %g, expected %g\n", (long long)i, a, b);
            fail();
        }
    }
}

/* Ten products: two Casts, the cpu provider's kernels, and the values of level 0. */
static void two_casts(void **state)
{
    (void)state;
    big b;
    chain(&b, NORI_FLOAT16);
    nori_session *fast = session_of(&b, 2, 1), *plain = session_of(&b, 0, 0);
    nori_tensor *x = rows(NORI_FLOAT16, 3), *got = run(fast, x), *want = run(plain, x);
    near_enough(got, want, 2e-3, 2e-2);
    assert_int_equal(calls(fast, "Cast", NULL), 2);
    assert_int_equal(calls(fast, "MatMul", "cpu"), LINKS);
    nori_tensor_free(x);
    nori_tensor_free(got);
    nori_tensor_free(want);
    nori_session_free(fast);
    nori_session_free(plain);
    big_end(&b);
}

static uint64_t least_time(nori_session *s, const nori_tensor *x)
{
    uint64_t start = nori_cpu_time_ns();
    nori_tensor *y = run(s, x);
    uint64_t took = nori_cpu_time_ns() - start;
    nori_tensor_free(y);
    return took;
}

/* In turn, the least of up to 100 tries each. */
static void as_fast_as_float(void **state)
{
    (void)state;
    big half, whole;
    chain(&half, NORI_FLOAT16);
    chain(&whole, NORI_FLOAT);
    nori_session *h = session_of(&half, 2, 0), *f = session_of(&whole, 2, 0);
    nori_tensor *xh = rows(NORI_FLOAT16, SIDE), *xf = rows(NORI_FLOAT, SIDE);
    uint64_t th = UINT64_MAX, tf = UINT64_MAX;
    for (int i = 0; i < 100 && (i < 10 || (double)th > 1.1 * (double)tf); i++) {
        uint64_t one = least_time(h, xh), two = least_time(f, xf);
        th = one < th ? one : th;
        tf = two < tf ? two : tf;
    }
    print_message("%d products of %d: float16 %.2f ms, float32 %.2f ms\n", LINKS, SIDE,
                  (double)th / 1e6, (double)tf / 1e6);
    ASSERT_TIMES(th, 1.1 * (double)tf);
    nori_tensor_free(xh);
    nori_tensor_free(xf);
    nori_session_free(h);
    nori_session_free(f);
    big_end(&half);
    big_end(&whole);
}

/* A half value inside that others read: an output of its own, and an operator that stays half. */
static void read_from_outside(void **state)
{
    (void)state;
    big b;
    static uint16_t w[SIDE];
    for (int i = 0; i < SIDE; i++) {
        w[i] = nori__f32_to_f16((float)i / 128 - 2);
    }
    big_begin(&b);
    big_tensor(&b, "w", NORI_FLOAT16, 1, (int64_t[]){SIDE}, w, sizeof(w), NULL, 0);
    big_node(&b, "Mul", "x w", "a");
    big_node(&b, "Relu", "a", "inner");
    big_node(&b, "Round", "inner", "r"); /* no float kernel of its own: stays half */
    big_node(&b, "Add", "inner r", "s");
    big_node(&b, "Transpose", "s", "t");
    big_node(&b, "Sub", "t t", "z");
    big_node(&b, "Add", "t z", "y");
    big_input(&b, "x", NORI_FLOAT16, 2, (int64_t[]){-1, SIDE});
    big_output(&b, "y", NORI_FLOAT16, 2, (int64_t[]){SIDE, -1});
    big_output(&b, "inner", NORI_FLOAT16, 2, (int64_t[]){-1, SIDE});
    big_finish(&b, 17);
    nori_session *fast = session_of(&b, 2, 1), *plain = session_of(&b, 0, 0);
    const nori_tensor *x = rows(NORI_FLOAT16, 4);
    nori_tensor *got[2] = {NULL}, *want[2] = {NULL};
    assert_int_equal(nori_session_run(fast, &x, 1, got, 2, NULL), NORI_OK);
    assert_int_equal(nori_session_run(plain, &x, 1, want, 2, NULL), NORI_OK);
    for (int i = 0; i < 2; i++) {
        near_enough(got[i], want[i], 1e-3, 2e-3);
        nori_tensor_free(got[i]);
        nori_tensor_free(want[i]);
    }
    assert_int_equal(calls(fast, "Cast", NULL), 4); /* x in, inner and y out, r in */
    nori_tensor_free((nori_tensor *)(uintptr_t)x);
    nori_session_free(fast);
    nori_session_free(plain);
    big_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_casts),
        cmocka_unit_test(as_fast_as_float),
        cmocka_unit_test(read_from_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
