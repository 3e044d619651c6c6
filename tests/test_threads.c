/* One session, many callers: the digits model on a pool of its own, run by several threads at once with
 * batches of their own. Everyone gets the bits that one thread alone gets. The tsan preset runs
 * this to see races between callers, the pool's threads and the session's list of contexts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "nori/nori.h"

enum { CALLERS = 4, ROUNDS = 6, PIXELS = 28 * 28, MOST = 5 };

static const char digits[] = NORI_EXAMPLES_DIR "/digits/digits.onnx";

/* Pictures of gray noise; batch n begins as every other does. */
static nori_tensor *batch(int n)
{
    nori_tensor *t = NULL;
    const int64_t dims[4] = {n, 1, 28, 28};
    uint32_t seed = 1;
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 4, dims, &t, NULL), NORI_OK);
    float *p = nori_tensor_data(t);
    for (int i = 0; i < n * PIXELS; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (float)(seed >> 24) / 255;
    }
    return t;
}

static nori_session *session(nori_env *env, int threads)
{
    nori_error err = {0};
    nori_model *model = NULL;
    nori_session *s = NULL;
    nori_session_options options;
    nori_session_options_default(&options);
    options.threads = threads;
    assert_int_equal(nori_model_load(env, digits, NULL, &model, &err), NORI_OK);
    assert_int_equal(nori_session_create(model, &options, &s, &err), NORI_OK);
    nori_model_free(model);
    return s;
}

typedef struct caller {
    nori_session *session;
    nori_tensor *in, *want;
    int faults;
} caller;

static void *call(void *user)
{
    caller *c = user;
    for (int i = 0; i < ROUNDS; i++) {
        nori_tensor *out = NULL;
        if (nori_session_run(c->session, (const nori_tensor *const[]){c->in}, 1, &out, 1, NULL) !=
                NORI_OK ||
            nori_tensor_bytes(out) != nori_tensor_bytes(c->want) ||
            memcmp(nori_tensor_const_data(out), nori_tensor_const_data(c->want),
                   nori_tensor_bytes(out)) != 0) {
            c->faults++;
        }
        nori_tensor_free(out);
        if (i == ROUNDS / 2) { /* giving memory back must not disturb the others */
            nori_session_trim(c->session);
        }
    }
    return NULL;
}

static void many_callers_of_one_session(void **state)
{
    (void)state;
    nori_env_options options;
    nori_env *env = NULL;
    nori_env_options_default(&options);
    options.threads = 3;
    assert_int_equal(nori_env_create(&options, &env, NULL), NORI_OK);
    nori_session *alone = session(env, 1), *shared = session(env, 0);
    caller callers[CALLERS];
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (caller){.session = shared, .in = batch(1 + i % MOST)};
        assert_int_equal(nori_session_run(alone, (const nori_tensor *const[]){callers[i].in}, 1,
                                          &callers[i].want, 1, NULL), NORI_OK);
    }
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].faults, 0);
        nori_tensor_free(callers[i].in);
        nori_tensor_free(callers[i].want);
    }
    nori_session_free(alone);
    nori_session_free(shared);
    nori_env_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_callers_of_one_session)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
