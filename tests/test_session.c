/* Sessions as callers meet them: what is taken with a warning, what is refused and how, and the
 * times of nodes when several threads run at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>

#include "make_model.h"
#include "nori/tools.h"
#include "run_node.h"

static void relu_model(make *m, const char *in, const char *out)
{
    make_begin(m, 17);
    make_input(m, &m->graph, "x", NORI_FLOAT, in);
    make_output(m, &m->graph, "y", NORI_FLOAT, out);
    make_node(m, &m->graph, "", "Relu", "relu", "x", "y");
}

static nori_status load(make *m, int strict, nori_model **model, nori_error *err)
{
    nori__text bytes;
    nori_load_options o;
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m->model, &bytes, err), NORI_OK);
    char *kept = nori__arena_copy(&m->arena, bytes.data, bytes.size);
    size_t size = bytes.size;
    nori__text_free(&bytes);
    nori_load_options_default(&o);
    o.strict = strict;
    return nori_model_load_memory(NULL, kept, size, NULL, &o, model, err);
}

/* A newer IR number alone is a warning, and an error when strict. */
static void newer_ir(void **state)
{
    (void)state;
    make m;
    nori_model *model = NULL;
    nori_error err = {0};
    relu_model(&m, "2", "2");
    m.model.ir_version = NORI__IR_VERSION_MAX + 1;
    assert_int_equal(load(&m, 0, &model, &err), NORI_OK);
    assert_non_null(nori_model_warning(model, 0));
    assert_non_null(strstr(nori_model_warning(model, 0), "IR version 15"));
    nori_session *s = node_session(&m, &err);
    nori_tensor *in = node_values(NORI_FLOAT, NODE_DIMS(2), (double[]){-1, 3}), *out[1] = {NULL};
    node_run(s, (const nori_tensor *const[]){in}, 1, out, 1, NORI_OK);
    assert_true(((const float *)nori_tensor_const_data(out[0]))[0] == 0);
    assert_true(((const float *)nori_tensor_const_data(out[0]))[1] == 3);
    nori_tensor_free(in);
    nori_tensor_free(out[0]);
    nori_session_free(s);
    nori_model_free(model);
    model = NULL;
    assert_int_equal(load(&m, 1, &model, &err), NORI_ERROR_MODEL);
    assert_null(model);
    assert_non_null(strstr(err.message, "IR version 15"));
    make_end(&m);
}

/* Feeds one shape; the message must hold every text. */
static void must_refuse(nori_session *s, int rank, const int64_t *dims, const char *a,
                        const char *b, const char *hint)
{
    nori_error err = {0};
    nori_tensor *in = node_tensor(NORI_FLOAT, rank, dims), *out[1] = {NULL};
    assert_int_equal(nori_session_run(s, (const nori_tensor *const[]){in}, 1, out, 1, &err),
                     NORI_ERROR_DATA);
    assert_null(out[0]);
    assert_non_null(strstr(err.message, a));
    assert_non_null(strstr(err.message, b));
    assert_non_null(strstr(err.hint, hint));
    nori_tensor_free(in);
}

/* A frozen batch is refused with axis, expected, got, and the node that has it built in too. */
static void frozen_batch(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 2 3");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 6");
    make_ints(&m, &m.graph, "shape", 2, (int64_t[]){1, -1});
    make_node(&m, &m.graph, "", "Reshape", "flat", "x shape", "y");
    nori_session *s = node_session(&m, &err);
    assert_non_null(s);
    must_refuse(s, NODE_DIMS(4, 2, 3), "input \"x\" axis 0", "expected 1, got 4", "flat");
    nori_session_free(s);
    make_end(&m);
}

/* Declared output sizes are hints: other symbols are fine, a conflict is not the result. */
static void output_hints(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"a 4", "b 4"}, {"2 4", "3 4"}};
    for (size_t i = 0; i < 2; i++) {
        make m;
        nori_error err = {0};
        relu_model(&m, cases[i][0], cases[i][1]);
        nori_session *s = node_session(&m, &err);
        assert_non_null(s);
        nori_tensor *in = node_tensor(NORI_FLOAT, NODE_DIMS(2, 4)), *out[1] = {NULL};
        node_run(s, (const nori_tensor *const[]){in}, 1, out, 1, NORI_OK);
        assert_int_equal(nori_tensor_dims(out[0])[0], 2);
        assert_int_equal(nori_tensor_dims(out[0])[1], 4);
        nori_tensor_free(in);
        nori_tensor_free(out[0]);
        nori_session_free(s);
        make_end(&m);
    }
}

/* Rank 0 is checked as strictly as any other. */
static void scalar_rank(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    relu_model(&m, "", "");
    nori_session *s = node_session(&m, &err);
    assert_non_null(s);
    must_refuse(s, NODE_DIMS(1), "rank 0 was expected", "got rank 1", "");
    nori_tensor *in = node_values(NORI_FLOAT, 0, NULL, (double[]){2}), *out[1] = {NULL};
    node_run(s, (const nori_tensor *const[]){in}, 1, out, 1, NORI_OK);
    assert_int_equal(nori_tensor_rank(out[0]), 0);
    nori_tensor_free(in);
    nori_tensor_free(out[0]);
    nori_session_free(s);
    make_end(&m);
}

enum { CALLERS = 4, RUNS = 50 };

static void *caller(void *user)
{
    nori_tensor *in = node_tensor(NORI_FLOAT, NODE_DIMS(64));
    for (int i = 0; i < RUNS; i++) {
        nori_tensor *out[1] = {NULL};
        node_run(user, (const nori_tensor *const[]){in}, 1, out, 1, NORI_OK);
        nori_tensor_free(out[0]);
    }
    nori_tensor_free(in);
    return NULL;
}

/* Every call of every thread is counted once. */
static void profile_of_many(void **state)
{
    (void)state;
    make m;
    nori_model *model = NULL;
    nori_session *s = NULL;
    nori_error err = {0};
    nori_session_options o;
    relu_model(&m, "64", "64");
    assert_int_equal(load(&m, 0, &model, &err), NORI_OK);
    nori_session_options_default(&o);
    o.profile = 1;
    o.threads = 1;
    assert_int_equal(nori_session_create(model, &o, &s, &err), NORI_OK);
    pthread_t ids[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_create(&ids[i], NULL, caller, s), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(ids[i], NULL);
    }
    nori_profile_row row = {.size = sizeof(row)};
    assert_int_equal(nori_session_profile(s, 0, &row), 1);
    assert_int_equal(row.calls, CALLERS * RUNS);
    assert_int_equal(nori_session_profile(s, 1, &row), 0);
    nori_session_free(s);
    nori_model_free(model);
    make_end(&m);
}

typedef struct seen {
    char names[128];
    float last[2];
} seen;

static void note(void *user, const char *value, const nori_tensor *t)
{
    seen *s = user;
    strncat(s->names, value, sizeof(s->names) - strlen(s->names) - 2);
    strcat(s->names, " ");
    memcpy(s->last, nori_tensor_const_data(t), sizeof(s->last));
}

/* At level 0 the watcher sees every value of the model, views included, in order. */
static void watching(void **state)
{
    (void)state;
    make m;
    nori_model *model = NULL;
    nori_session *s = NULL;
    nori_error err = {0};
    nori_session_options o;
    seen what = {{0}, {0}};
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "2");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "2");
    make_node(&m, &m.graph, "", "Relu", "", "x", "a");
    make_node(&m, &m.graph, "", "Identity", "", "a", "b");
    make_node(&m, &m.graph, "", "Neg", "", "b", "y");
    assert_int_equal(load(&m, 0, &model, &err), NORI_OK);
    nori_session_options_default(&o);
    o.level = 0;
    o.watch = note;
    o.watch_user = &what;
    assert_int_equal(nori_session_create(model, &o, &s, &err), NORI_OK);
    nori_tensor *in = node_values(NORI_FLOAT, NODE_DIMS(2), (double[]){-1, 3}), *out[1] = {NULL};
    node_run(s, (const nori_tensor *const[]){in}, 1, out, 1, NORI_OK);
    assert_string_equal(what.names, "a b y ");
    assert_true(what.last[0] == 0 && what.last[1] == -3);
    nori_tensor_free(in);
    nori_tensor_free(out[0]);
    nori_session_free(s);
    nori_model_free(model);
    make_end(&m);
}

/* Three int4 fill a byte and a half; the other half is 0, whatever lay there. */
static void unused_bits_are_zero(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    make_begin(&m, 21);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "3");
    make_output(&m, &m.graph, "y", NORI_INT4, "3");
    make_attr_int(&m, make_node(&m, &m.graph, "", "Cast", "cast", "x", "y"), "to", NORI_INT4);
    nori_session *s = node_session(&m, &err);
    nori_tensor *in = node_values(NORI_FLOAT, NODE_DIMS(3), (double[]){-1, 3, 5});
    nori_tensor *out[1] = {node_tensor(NORI_INT4, NODE_DIMS(3))};
    memset(out[0]->data, 0xff, out[0]->bytes);
    node_run(s, (const nori_tensor *const[]){in}, 1, out, 1, NORI_OK);
    assert_memory_equal(out[0]->data, "\x3f\x05", 2);
    nori_tensor_free(in);
    nori_tensor_free(out[0]);
    nori_session_free(s);
    make_end(&m);
}

/* Sizes that come from an input's default are planned for; what is fed in its place counts, and the
 * plan for the default is not kept for it, nor the other way round. */
static void defaults_and_what_replaces_them(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "6");
    make_input(&m, &m.graph, "sizes", NORI_INT64, "2");
    make_ints(&m, &m.graph, "sizes", 2, (int64_t[]){2, 3});
    make_output(&m, &m.graph, "y", NORI_FLOAT, "? ?");
    make_node(&m, &m.graph, "", "Reshape", "reshape", "x sizes", "r");
    make_node(&m, &m.graph, "", "Neg", "neg", "r", "n");
    make_node(&m, &m.graph, "", "Relu", "relu", "n", "y");
    nori_session *s = node_session(&m, &err);
    nori_costs *costs = NULL;
    nori_cost_total total = {.size = sizeof(total)};
    assert_int_equal(nori_session_costs(s, NULL, 0, &costs, &err), NORI_OK);
    nori_costs_total(costs, &total);
    assert_int_equal(total.late, 0);
    nori_costs_free(costs);
    nori_tensor *x = node_values(NORI_FLOAT, NODE_DIMS(6), (double[]){-1, -2, -3, -4, -5, -6});
    static const int64_t fed[][2] = {{0, 0}, {3, 2}, {0, 0}, {6, 1}, {1, 6}, {0, 0}};
    for (size_t k = 0; k < NORI__COUNT(fed); k++) {
        bool own = fed[k][0] > 0;
        nori_tensor *sizes = NULL, *out[1] = {NULL};
        if (own) {
            sizes = node_values(NORI_INT64, NODE_DIMS(2), (double[]){(double)fed[k][0], (double)fed[k][1]});
        }
        node_run(s, (const nori_tensor *const[]){x, sizes}, own ? 2 : 1, out, 1, NORI_OK);
        assert_int_equal(nori_tensor_rank(out[0]), 2);
        assert_int_equal(nori_tensor_dims(out[0])[0], own ? fed[k][0] : 2);
        assert_int_equal(nori_tensor_dims(out[0])[1], own ? fed[k][1] : 3);
        for (int i = 0; i < 6; i++) {
            assert_true(((const float *)nori_tensor_const_data(out[0]))[i] == (float)(i + 1));
        }
        nori_tensor_free(sizes);
        nori_tensor_free(out[0]);
    }
    nori_tensor_free(x);
    nori_session_free(s);
    make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newer_ir),     cmocka_unit_test(frozen_batch),
        cmocka_unit_test(output_hints), cmocka_unit_test(scalar_rank),
        cmocka_unit_test(profile_of_many), cmocka_unit_test(watching),
        cmocka_unit_test(unused_bits_are_zero), cmocka_unit_test(defaults_and_what_replaces_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
