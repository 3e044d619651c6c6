/* test_limits.c: each limit holds at its bound and refuses one beyond, by name; runs stop by the clock
 * and by another thread, and the session runs again afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "make_model.h"
#include "nori/text.h"
#include "platform/env_limits.h"
#include "run/run.h"

/* n iterations of a body that adds one; b iterations within each; go: the condition at the start. */
static const char loops[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "main (int64 n, bool go) => (int64 y)\n"
    "<int64 zero = {0}, int64 one = {1}> {\n"
    "  y = Loop <body = outer (int64 i, bool c, int64 a) => (bool c_out, int64 a_out) {\n"
    "    c_out = Identity (c)\n"
    "    a_out = Add (a, one)\n"
    "  }> (n, go, zero)\n"
    "}\n";

/* A relu below an If within an If: three graphs deep. */
static const char nested[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "main (bool c, float[2,3] x) => (float[2,3] y) {\n"
    "  y = If <then_branch = a () => (float[2,3] y1) {\n"
    "    y1 = If <then_branch = b () => (float[2,3] y2) { y2 = Relu (x) },\n"
    "             else_branch = d () => (float[2,3] y3) { y3 = Neg (x) }> (c)\n"
    "  }, else_branch = e () => (float[2,3] y4) { y4 = Identity (x) }> (c)\n"
    "}\n";

static nori_env *env_with(size_t field, uint64_t value)
{
    nori_env *env = NULL;
    nori_limits limits;
    nori_error err = {0};
    assert_int_equal(nori_env_create(NULL, &env, &err), NORI_OK);
    nori_limits_default(&limits);
    memcpy((char *)&limits + field, &value, sizeof(value));
    assert_int_equal(nori_env_set_limits(env, &limits, &err), NORI_OK);
    return env;
}
#define ENV(field, value) env_with(offsetof(nori_limits, field), value)

/* Loads at the bound, not one below it; the message has the name and both numbers. */
static void bound(const char *text, size_t field, const char *name, uint64_t found)
{
    for (int less = 0; less < 2; less++) {
        nori_env *env = env_with(field, found - (uint64_t)less);
        nori_model *model = NULL;
        nori_error err = {0};
        nori_status s = nori_model_from_text(env, text, strlen(text), NULL, &model, &err);
        if (less) {
            char numbers[96];
            assert_int_equal(s, NORI_ERROR_LIMIT);
            snprintf(numbers, sizeof(numbers), "%llu found, the limit is %llu (%s)",
                     (unsigned long long)found, (unsigned long long)found - 1, name);
            assert_non_null(strstr(err.message, numbers));
            assert_non_null(strstr(err.hint, name));
            assert_null(model);
        } else {
            if (s != NORI_OK) {
                print_error("%s: %s\n", err.where, err.message);
            }
            assert_int_equal(s, NORI_OK);
        }
        nori_model_free(model);
        nori_env_free(env);
    }
}

static void test_model_bounds(void **state)
{
    (void)state;
    static const char string[] =
        "<ir_version: 8, opset_import: [\"\" : 17, \"own\" : 1]>\n"
        "main (float x) => (float y) { y = own.Some <note = \"twelve bytes\"> (x) }\n";
    bound(nested, offsetof(nori_limits, nodes), "nodes", 5);
    bound(nested, offsetof(nori_limits, nesting), "nesting", 2);
    bound(nested, offsetof(nori_limits, rank), "rank", 2);
    bound(string, offsetof(nori_limits, string_bytes), "string_bytes", 12);
}

static void test_function_nodes(void **state)
{
    (void)state;
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17, \"own\" : 1]>\n"
        "main (float x) => (float y) { a = own.Twice (x)\n b = own.Twice (a)\n y = own.Twice (b) }\n"
        "<domain: \"own\", opset_import: [\"\" : 17]>\n"
        "Twice (p) => (q) { r = Neg (p)\n q = Neg (r) }\n";
    bound(text, offsetof(nori_limits, nodes), "nodes", 5);
    nori_env *env = ENV(nodes, 6); /* the calls take more once they are put in place */
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_error err = {0};
    assert_int_equal(nori_model_from_text(env, text, strlen(text), NULL, &model, &err), NORI_OK);
    assert_int_equal(nori_session_create(model, NULL, &session, &err), NORI_ERROR_LIMIT);
    assert_non_null(strstr(err.message, "functions put in place"));
    nori_model_free(model);
    nori_env_free(env);
}

static void test_bytes(void **state)
{
    (void)state;
    nori_env *env = ENV(model_bytes, 99);
    nori_model *model = NULL;
    nori_load_options o;
    nori_error err = {0};
    static const char data[100] = {0};
    assert_int_equal(nori_model_load_memory(env, data, 100, NULL, NULL, &model, &err),
                     NORI_ERROR_LIMIT);
    assert_non_null(strstr(err.message, "100 found, the limit is 99 (model_bytes)"));
    assert_non_null(strstr(err.hint, "--limit model=N"));
    nori_load_options_default(&o);
    o.max_bytes = 100; /* goes before the environment's: other things are wrong now */
    err = (nori_error){0};
    assert_int_not_equal(nori_model_load_memory(env, data, 100, NULL, &o, &model, &err),
                         NORI_ERROR_LIMIT);
    nori_env_free(env);
}

/* A sparse tensor of one value whose shape would take 4 GiB: refused before anything is made. */
static void test_unfolded(void **state)
{
    (void)state;
    for (int small = 0; small < 2; small++) {
        make m;
        nori__text bytes;
        nori_model *model = NULL;
        nori_error err = {0};
        make_begin(&m, 13);
        nori__pb_sparse *s = MAKE_ADD(&m, m.graph.sparse_initializers);
        s->values = nori__arena_alloc(&m.arena, sizeof(*s->values));
        s->indices = nori__arena_alloc(&m.arena, sizeof(*s->indices));
        s->values->name = make_str(&m, "w");
        s->values->data_type = NORI_FLOAT;
        s->indices->data_type = NORI_INT64;
        *MAKE_ADD(&m, s->values->dims) = 1;
        *MAKE_ADD(&m, s->values->floats) = 5;
        *MAKE_ADD(&m, s->indices->dims) = 1;
        *MAKE_ADD(&m, s->indices->ints) = 7;
        *MAKE_ADD(&m, s->dims) = small ? 16 : (int64_t)1 << 30;
        make_node(&m, &m.graph, "", "Neg", "n", "w", "y");
        make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
        nori__text_init(&bytes, &nori__malloc);
        assert_int_equal(nori__pb_write_model(&m.model, &bytes, &err), NORI_OK);
        nori_status got =
            nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, &err);
        assert_int_equal(got, small ? NORI_OK : NORI_ERROR_LIMIT);
        if (!small) {
            assert_non_null(strstr(err.message, "4.29 GB found"));
            assert_non_null(strstr(err.hint, "--limit unfolded=N"));
        }
        nori_model_free(model);
        nori__text_free(&bytes);
        make_end(&m);
    }
}

/* ---- runs ---- */

typedef struct looped {
    nori_session *session;
    nori_tensor *in[2];
} looped;

static void open_loops(looped *l, nori_env *env, int64_t n)
{
    nori_model *model = NULL;
    nori_error err = {0};
    if (nori_model_from_text(env, loops, strlen(loops), NULL, &model, &err) != NORI_OK ||
        nori_session_create(model, NULL, &l->session, &err) != NORI_OK) {
        fail_msg("%s: %s", err.where, err.message);
    }
    nori_model_free(model);
    assert_int_equal(nori_tensor_create(env, NORI_INT64, 0, NULL, &l->in[0], &err), NORI_OK);
    assert_int_equal(nori_tensor_create(env, NORI_BOOL, 0, NULL, &l->in[1], &err), NORI_OK);
    *(int64_t *)nori_tensor_data(l->in[0]) = n;
    *(uint8_t *)nori_tensor_data(l->in[1]) = 1;
}

static nori_status run(looped *l, const nori_run_options *o, int64_t *y, nori_error *err)
{
    nori_tensor *out = NULL;
    *err = (nori_error){0};
    nori_status s = nori_session_run_with(l->session, o, (const nori_tensor *const *)l->in, 2, &out, 1,
                                          err);
    *y = out ? *(const int64_t *)nori_tensor_const_data(out) : -1;
    nori_tensor_free(out);
    return s;
}

static void close_loops(looped *l)
{
    nori_session_free(l->session);
    nori_tensor_free(l->in[0]);
    nori_tensor_free(l->in[1]);
}

static void test_iterations(void **state)
{
    (void)state;
    nori_env *env = ENV(iterations, 50);
    looped l;
    nori_error err;
    int64_t y;
    open_loops(&l, env, 50);
    assert_int_equal(run(&l, NULL, &y, &err), NORI_OK);
    assert_int_equal(y, 50);
    *(int64_t *)nori_tensor_data(l.in[0]) = 51;
    assert_int_equal(run(&l, NULL, &y, &err), NORI_ERROR_LIMIT);
    assert_int_equal(y, -1);
    assert_non_null(strstr(err.message, "51 found, the limit is 50 (iterations)"));
    assert_non_null(strstr(err.hint, "--limit iterations=N"));
    nori_run_options o;
    nori_run_options_default(&o);
    o.iterations = 51; /* this run alone */
    assert_int_equal(run(&l, &o, &y, &err), NORI_OK);
    assert_int_equal(y, 51);
    close_loops(&l);
    nori_env_free(env);
}

static void test_time(void **state)
{
    (void)state;
    looped l;
    nori_error err;
    nori_run_options o;
    int64_t y;
    nori_run_options_default(&o);
    o.run_ms = 30;
    o.iterations = UINT64_MAX;
    open_loops(&l, NULL, INT64_MAX); /* without the limit: for ever */
    assert_int_equal(run(&l, &o, &y, &err), NORI_ERROR_LIMIT);
    assert_non_null(strstr(err.message, "milliseconds of a run"));
    assert_non_null(strstr(err.message, "the limit is 30 (run_ms)"));
    assert_non_null(strstr(err.hint, "--limit time=N"));
    *(int64_t *)nori_tensor_data(l.in[0]) = 3; /* the session is as good as new */
    o.run_ms = 1000000;
    assert_int_equal(run(&l, &o, &y, &err), NORI_OK);
    assert_int_equal(y, 3);
    close_loops(&l);
}

static void *ask(void *cancel)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    nori_cancel_request(cancel);
    return NULL;
}

static void test_cancel(void **state)
{
    (void)state;
    looped l;
    nori_error err = {0};
    nori_run_options o;
    nori_cancel *cancel = NULL;
    pthread_t thread;
    int64_t y;
    nori_run_options_default(&o);
    assert_int_equal(nori_cancel_create(NULL, &cancel, &err), NORI_OK);
    o.cancel = cancel;
    o.iterations = UINT64_MAX;
    open_loops(&l, NULL, INT64_MAX);
    assert_int_equal(pthread_create(&thread, NULL, ask, cancel), 0);
    assert_int_equal(run(&l, &o, &y, &err), NORI_ERROR_CANCELLED);
    pthread_join(thread, NULL);
    assert_true(nori_cancel_requested(cancel));
    *(int64_t *)nori_tensor_data(l.in[0]) = 2;
    assert_int_equal(run(&l, &o, &y, &err), NORI_ERROR_CANCELLED); /* still asked */
    nori_cancel_reset(cancel);
    assert_int_equal(run(&l, &o, &y, &err), NORI_OK);
    assert_int_equal(y, 2);
    close_loops(&l);
    nori_cancel_free(cancel);
}

/* What a run holds is bounded without a word about it, by what the machine has. */
static void test_activations(void **state)
{
    (void)state;
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "main (float[1000] x) => (float[1000] y) { a = Exp (x)\n"
                               " b = MatMul (a, a)\n c = Exp (b)\n y = Mul (c, x) }\n";
    nori_limits d;
    nori_limits_default(&d);
    assert_true(d.activation_bytes > 0 && d.activation_bytes <= nori__machine_bytes(NULL));
    nori_env *env = ENV(activation_bytes, 1000);
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_error err = {0};
    nori_tensor *x = NULL, *y = NULL;
    assert_int_equal(nori_model_from_text(env, text, strlen(text), NULL, &model, &err), NORI_OK);
    assert_int_equal(nori_session_create(model, NULL, &session, &err), NORI_OK);
    assert_int_equal(nori_tensor_create(env, NORI_FLOAT, 1, (int64_t[]){1000}, &x, &err), NORI_OK);
    assert_int_equal(nori_session_run(session, (const nori_tensor *const *)&x, 1, &y, 1, &err),
                     NORI_ERROR_LIMIT);
    assert_non_null(strstr(err.message, "1000"));
    assert_non_null(strstr(err.hint, "--limit activations=N"));
    nori_tensor_free(x);
    nori_session_free(session);
    nori_model_free(model);
    nori_env_free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_bounds), cmocka_unit_test(test_function_nodes),
        cmocka_unit_test(test_bytes),        cmocka_unit_test(test_unfolded),
        cmocka_unit_test(test_iterations),   cmocka_unit_test(test_time),
        cmocka_unit_test(test_cancel),       cmocka_unit_test(test_activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
