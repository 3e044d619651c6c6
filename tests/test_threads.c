/* One session, many callers: the digits model on a pool of its own, run by several threads at once with
 * batches of their own. Everyone gets the bits that one thread alone gets. The tsan preset runs
 * this to see races between callers, the pool's threads and the session's list of contexts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "nori/nori.h"

enum { CALLERS = 4, MANY = 64, MAKERS = 2, ROUNDS = 6, PIXELS = 28 * 28, MOST = 5 };

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

/* Makes a session of its own, runs it and frees it, until told to stop. */
typedef struct maker {
    nori_env *env;
    nori_tensor *in, *want;
    atomic_bool *stop;
    int made, faults;
} maker;

static void *come_and_go(void *user)
{
    maker *m = user;
    do {
        caller c = {.session = session(m->env, m->made % 3), .in = m->in, .want = m->want};
        nori_tensor *out = NULL;
        m->faults += nori_session_run(c.session, (const nori_tensor *const[]){c.in}, 1, &out, 1, NULL) !=
                         NORI_OK ||
                     memcmp(nori_tensor_const_data(out), nori_tensor_const_data(c.want),
                            nori_tensor_bytes(out)) != 0;
        nori_tensor_free(out);
        nori_session_free(c.session);
        m->made++;
    } while (!atomic_load(m->stop));
    return NULL;
}

/* count callers of one session of an environment, and makers of other sessions of it meanwhile. */
static void callers_at_once(int count, int makers)
{
    nori_env_options options;
    nori_env *env = NULL;
    nori_env_options_default(&options);
    options.threads = 3;
    assert_int_equal(nori_env_create(&options, &env, NULL), NORI_OK);
    nori_session *alone = session(env, 1), *shared = session(env, 0);
    caller callers[MANY];
    maker others[MAKERS];
    pthread_t threads[MANY], making[MAKERS];
    atomic_bool stop = false;
    for (int i = 0; i < count; i++) {
        callers[i] = (caller){.session = shared, .in = batch(1 + i % MOST)};
        assert_int_equal(nori_session_run(alone, (const nori_tensor *const[]){callers[i].in}, 1,
                                          &callers[i].want, 1, NULL), NORI_OK);
    }
    for (int i = 0; i < makers; i++) {
        others[i] = (maker){.env = env, .in = callers[i].in, .want = callers[i].want, .stop = &stop};
        assert_int_equal(pthread_create(&making[i], NULL, come_and_go, &others[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].faults, 0);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < makers; i++) {
        pthread_join(making[i], NULL);
        assert_int_equal(others[i].faults, 0);
        assert_true(others[i].made > 0);
    }
    for (int i = 0; i < count; i++) {
        nori_tensor_free(callers[i].in);
        nori_tensor_free(callers[i].want);
    }
    nori_session_free(alone);
    nori_session_free(shared);
    nori_env_free(env);
}

static void many_callers_of_one_session(void **state)
{
    (void)state;
    callers_at_once(CALLERS, 0);
}

static void very_many_while_sessions_come_and_go(void **state)
{
    (void)state;
    callers_at_once(MANY, MAKERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(many_callers_of_one_session),
                                       cmocka_unit_test(very_many_while_sessions_come_and_go)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
