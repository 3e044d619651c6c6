/* The split of a graph over execution providers, with a provider whose costs are settable: who gets
 * what, that results stay the same, what the report says, and what cannot be had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>

#include "make_model.h"
#include "nori/tools.h"
#include "test_alloc.h"
#include "run_node.h"

static nori_session *session_of(make *m, const char *providers, int split_only, const char *dim,
                                int64_t size, nori_error *err)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options o;
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m->model, &bytes, err), NORI_OK);
    char *kept = nori__arena_copy(&m->arena, bytes.data, bytes.size);
    nori_session_options_default(&o);
    o.providers = providers;
    o.split_only = split_only;
    o.profile = 1;
    o.dim_names = &dim;
    o.dim_values = &size;
    o.dim_count = dim != NULL;
    assert_int_equal(nori_model_load_memory(NULL, kept, bytes.size, NULL, NULL, &model, err),
                     NORI_OK);
    nori_session_create(model, &o, &session, err);
    nori_model_free(model);
    nori__text_free(&bytes);
    return session;
}

static size_t given_parts(const nori_session *s, size_t *nodes)
{
    nori_part_info p = {.size = sizeof(p)};
    size_t given = 0;
    *nodes = 0;
    for (size_t i = 0; nori_session_part(s, i, &p); i++) {
        given += p.given != 0;
        *nodes += p.given ? p.node_count : 0;
    }
    return given;
}

/* Runs both sessions on one input of n numbers: outputs must be the same. */
static void same_results(nori_session *s, nori_session *want, int64_t n)
{
    double values[64];
    nori_tensor *a[8] = {NULL}, *b[8] = {NULL};
    size_t count = nori_session_output_count(s);
    assert_true(n <= 64 && count <= 8);
    for (int64_t i = 0; i < n; i++) {
        values[i] = (double)(i * 7 % 11) - 5;
    }
    nori_tensor *in = node_values(NORI_FLOAT, 1, &n, values);
    node_run(s, (const nori_tensor *const[]){in}, 1, a, count, NORI_OK);
    node_run(want, (const nori_tensor *const[]){in}, 1, b, count, NORI_OK);
    for (size_t i = 0; i < count; i++) {
        nori_difference d = {.size = sizeof(d)};
        nori_tensor_compare(a[i], b[i], 0, 1e-6, &d);
        assert_true(d.passes);
        nori_tensor_free(a[i]);
        nori_tensor_free(b[i]);
    }
    nori_tensor_free(in);
}

static void check(make *m, const char *options, size_t parts, size_t nodes, int64_t n)
{
    char list[512];
    nori_error err = {0};
    size_t have;
    snprintf(list, sizeof(list), "%s:%s", FAKE_PROVIDER, options);
    nori_session *s = session_of(m, list, 0, NULL, 0, &err);
    if (!s) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_non_null(s);
    assert_int_equal(given_parts(s, &have), parts);
    assert_int_equal(have, nodes);
    nori_session *want = session_of(m, "reference", 0, NULL, 0, &err);
    same_results(s, want, n);
    nori_session_free(want);
    nori_session_free(s);
}

/* A chain with an operator that is not taken at every third place. */
static void chain(make *m, size_t nodes, const char *third, const char *shape)
{
    char in[24] = "x", out[24], name[24];
    make_begin(m, 17);
    make_input(m, &m->graph, "x", NORI_FLOAT, shape);
    for (size_t i = 0; i < nodes; i++) {
        const char *op = i % 3 == 2 ? third : i % 3 == 0 ? "Relu" : "Neg";
        snprintf(out, sizeof(out), i + 1 == nodes ? "y" : "v%zu", i);
        snprintf(name, sizeof(name), "n%zu", i);
        make_node(m, &m->graph, "", op, name, in, out);
        snprintf(in, sizeof(in), "%s", out);
    }
    make_output(m, &m->graph, "y", NORI_FLOAT, shape);
}

static void cost_of_copies(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    nori_splitter_info split = {.size = sizeof(split)};
    nori_part_info p = {.size = sizeof(p)};
    nori_node_info node = {.size = sizeof(node)};
    chain(&m, 12, "Softplus", "64");
    check(&m, "copy=1e6,cost=1", 0, 0, 64); /* 1 ms: all stay */
    check(&m, "copy=0,cost=1", 4, 8, 64);   /* free: all that can goes */
    check(&m, "copy=0,cost=1e9", 0, 0, 64); /* slow */
    check(&m, "launch=1e6", 0, 0, 64);
    nori_session *s = session_of(&m, FAKE_PROVIDER ":copy=1e6", 1, NULL, 0, &err);
    size_t splitters = 0;
    for (; nori_session_splitter(s, splitters, &split); splitters++) {
        assert_string_equal(nori_node_op(split.node), "Softplus");
        assert_string_equal(split.provider, "fake");
        assert_int_equal(split.before, splitters + 1); /* part 0 is the model, not taken whole */
        assert_int_equal(split.after, splitters + 2);
        assert_non_null(strstr(split.reason, "Softplus"));
        assert_non_null(strstr(split.advice, "Softplus"));
    }
    assert_int_equal(splitters, 3); /* the last Softplus has nothing behind it */
    for (size_t i = 0; nori_session_part(s, i, &p); i++) {
        assert_int_equal(p.given, 0);
        assert_int_equal(p.whole, i == 0);
        if (p.whole) {
            continue;
        }
        assert_non_null(strstr(p.why, "lose"));
        assert_true(p.copy_ns == 2e6);
        assert_int_equal(p.in_bytes, 256);
    }
    size_t nodes = 0;
    for (; nori_session_node(s, nodes, &node); nodes++) {
        assert_string_equal(node.provider, "reference");
        assert_true(node.part == SIZE_MAX);
    }
    assert_int_equal(nodes, 12);
    nori_tensor *out[1] = {NULL};
    assert_int_equal(nori_session_run(s, NULL, 0, out, 1, &err), NORI_ERROR_ARGUMENT);
    nori_session_free(s);
    make_end(&m);
}

/* A Pad in the middle is named, and what would do without it. */
static void a_pad_splits(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    nori_splitter_info split = {.size = sizeof(split)};
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 1 4 4");
    make_ints(&m, &m.graph, "pads", 8, (const int64_t[]){0, 0, 1, 1, 0, 0, 1, 1});
    make_node(&m, &m.graph, "", "Relu", "before", "x", "a");
    make_node(&m, &m.graph, "", "Pad", "frame", "a pads", "b");
    nori__pb_node *pool = make_node(&m, &m.graph, "", "MaxPool", "pool", "b", "c");
    make_attr_ints(&m, pool, "kernel_shape", 2, (const int64_t[]){3, 3});
    make_node(&m, &m.graph, "", "Neg", "behind", "c", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1 1 4 4");
    nori_session *s = session_of(&m, FAKE_PROVIDER ":cost=0", 1, NULL, 0, &err);
    assert_int_equal(nori_session_splitter(s, 0, &split), 1);
    assert_string_equal(nori_node_op(split.node), "Pad");
    assert_non_null(strstr(split.advice, "into the pads of"));
    assert_non_null(strstr(split.advice, "pool"));
    assert_int_equal(nori_session_splitter(s, 1, &split), 1);
    assert_string_equal(nori_node_op(split.node), "MaxPool");
    assert_int_equal(nori_session_splitter(s, 2, &split), 0);
    nori_session_free(s);
    make_end(&m);
}

static void providers_of_nodes(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    const char *label, *engine;
    nori_node_info node = {.size = sizeof(node)};
    nori_profile_row row = {.size = sizeof(row)};
    chain(&m, 6, "Softplus", "64");
    nori_session *s = session_of(&m, FAKE_PROVIDER ":cost=1,cpu", 0, NULL, 0, &err);
    assert_int_equal(nori_session_provider(s, 0, &label, &engine), 1);
    assert_string_equal(label, "fake");
    assert_string_equal(engine, "fake engine 1.0");
    assert_int_equal(nori_session_provider(s, 1, &label, &engine), 1);
    assert_string_equal(label, "cpu");
    assert_int_equal(nori_session_provider(s, 2, &label, &engine), 0);
    size_t on_fake = 0, others = 0;
    for (size_t i = 0; nori_session_node(s, i, &node); i++) {
        bool fake = strcmp(node.provider, "fake") == 0;
        on_fake += fake;
        others += !fake;
        assert_true(fake == (node.part != SIZE_MAX));
        assert_true(fake == (strcmp(nori_node_op(node.node), "Softplus") != 0));
    }
    assert_int_equal(on_fake, 4);
    assert_int_equal(others, 2);
    size_t rows = 0;
    for (size_t i = 0; nori_session_profile(s, i, &row); i++) {
        rows += strcmp(row.provider, "fake") == 0;
    }
    assert_int_equal(rows, 2);
    nori_session_free(s);
    make_end(&m);
}

/* a -> Softplus -> c and a -> c: a and c cannot be one part, the path between them leaves it. */
static void no_way_out_and_back(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "8");
    make_node(&m, &m.graph, "", "Relu", "a", "x", "a");
    make_node(&m, &m.graph, "", "Softplus", "b", "a", "b");
    make_node(&m, &m.graph, "", "Add", "c", "a b", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "8");
    check(&m, "cost=1", 2, 2, 8);
    make_end(&m);
}

/* p is ready long before what it goes with: it joins that, not a part of its own. */
static void late_company(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "8");
    make_node(&m, &m.graph, "", "Relu", "p", "x", "p");
    make_node(&m, &m.graph, "", "Softplus", "h", "x", "h");
    make_node(&m, &m.graph, "", "Add", "q", "p h", "q");
    make_node(&m, &m.graph, "", "Softplus", "i", "q", "i");
    make_node(&m, &m.graph, "", "Mul", "r", "i p", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "8");
    check(&m, "cost=1", 2, 3, 8); /* p and q; r, for i lies between */
    make_end(&m);
}

/* Nodes of the list that come between the nodes of a part must move in front of it or behind. */
static void order_changes(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "8");
    make_node(&m, &m.graph, "", "Relu", "a", "x", "a");
    make_node(&m, &m.graph, "", "Softplus", "s", "a", "s");  /* reads the part */
    make_node(&m, &m.graph, "", "Softplus", "t", "x", "t");  /* read by the part */
    make_node(&m, &m.graph, "", "Add", "b", "a t", "b");
    make_node(&m, &m.graph, "", "Neg", "c", "b", "c");
    make_node(&m, &m.graph, "", "Softplus", "u", "s", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "8");
    make_output(&m, &m.graph, "c", NORI_FLOAT, "8");
    make_output(&m, &m.graph, "a", NORI_FLOAT, "8"); /* an output from the middle of the part */
    check(&m, "cost=1", 1, 3, 8);
    make_end(&m);
}

/* Sizes that only a run tells: one session, several lengths, twice each. */
static void open_sizes(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    nori_part_info p = {.size = sizeof(p)};
    nori_splitter_info split = {.size = sizeof(split)};
    size_t nodes;
    chain(&m, 6, "Softplus", "N");
    nori_session *s = session_of(&m, FAKE_PROVIDER ":cost=0", 0, NULL, 0, &err);
    nori_session *want = session_of(&m, "reference", 0, NULL, 0, &err);
    assert_int_equal(given_parts(s, &nodes), 2);
    for (int64_t n = 1; n < 60; n += 13) {
        same_results(s, want, n);
        same_results(s, want, n);
    }
    same_results(s, want, 0);
    nori_session_free(s);
    s = session_of(&m, FAKE_PROVIDER ":static=1", 0, NULL, 0, &err);
    assert_int_equal(nori_session_part(s, 1, &p), 0); /* only the model, which is not taken */
    assert_int_equal(nori_session_splitter(s, 0, &split), 0);
    same_results(s, want, 5);
    nori_session_free(s);
    s = session_of(&m, FAKE_PROVIDER ":static=1", 0, "N", 9, &err);
    assert_int_equal(given_parts(s, &nodes), 2);
    same_results(s, want, 9);
    nori_session_free(s);
    nori_session_free(want);
    make_end(&m);
}

static void range_of_sizes(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    nori_tensor *out[1] = {NULL};
    chain(&m, 2, "Softplus", "N");
    nori_session *s = session_of(&m, FAKE_PROVIDER ":low=2,high=10", 0, NULL, 0, &err);
    nori_session *want = session_of(&m, "reference", 0, NULL, 0, &err);
    same_results(s, want, 2);
    same_results(s, want, 10);
    nori_tensor *in = node_tensor(NORI_FLOAT, NODE_DIMS(11));
    assert_int_equal(nori_session_run(s, (const nori_tensor *const[]){in}, 1, out, 1, &err),
                     NORI_ERROR_DATA);
    assert_non_null(strstr(err.message, "fake takes N from 2 to 10, found 11"));
    nori_tensor_free(in);
    nori_session_free(want);
    nori_session_free(s);
    make_end(&m);
}

/* What compiles not stays with the others, with the reason; a driver that is missing is an error. */
static void compiling_fails(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    nori_part_info p = {.size = sizeof(p)};
    chain(&m, 6, "Softplus", "64");
    check(&m, "refuse=1", 0, 0, 64);
    nori_session *s = session_of(&m, FAKE_PROVIDER ":refuse=1", 0, NULL, 0, &err);
    assert_int_equal(nori_session_part(s, 1, &p), 1);
    assert_int_equal(p.given, 0);
    assert_non_null(strstr(p.why, "the fake engine refuses"));
    nori_session_free(s);
    assert_null(session_of(&m, FAKE_PROVIDER ":broken=1", 0, NULL, 0, &err));
    assert_int_equal(err.status, NORI_ERROR_UNAVAILABLE);
    assert_non_null(strstr(err.message, "driver is missing"));
    make_end(&m);
}

static void whole_model(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    nori_part_info p = {.size = sizeof(p)};
    chain(&m, 2, "", "64");
    check(&m, "whole=1", 1, 2, 64);
    nori_session *s = session_of(&m, FAKE_PROVIDER ":whole=1", 1, NULL, 0, &err);
    assert_int_equal(nori_session_part(s, 0, &p), 1);
    assert_int_equal(p.whole, 1);
    nori_session_free(s);
    make_end(&m);
    chain(&m, 6, "Softplus", "64");
    check(&m, "whole=1", 2, 4, 64); /* not taken whole: then by parts */
    make_end(&m);
}

/* The body of an If reads what a part makes: the part delivers it. */
static void read_by_a_subgraph(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "8");
    make_floats(&m, &m.graph, "zero", 1, 0);
    make_node(&m, &m.graph, "", "ReduceMax", "most", "x", "most");
    make_node(&m, &m.graph, "", "Greater", "some", "most zero", "yes");
    make_node(&m, &m.graph, "", "Relu", "a", "x", "a");
    make_node(&m, &m.graph, "", "Neg", "b", "a", "b");
    nori__pb_node *n = make_node(&m, &m.graph, "", "If", "c", "yes", "y");
    nori__pb_graph *then = make_attr_graph(&m, n, "then_branch");
    make_node(&m, then, "", "Softplus", "d", "a", "d");
    make_output(&m, then, "d", NORI_FLOAT, "8");
    nori__pb_graph *other = make_attr_graph(&m, n, "else_branch");
    make_node(&m, other, "", "Identity", "e", "b", "e");
    make_output(&m, other, "e", NORI_FLOAT, "8");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "8");
    check(&m, "cost=0", 1, 2, 8);
    make_end(&m);
}

/* ---- several threads ---- */

static void *run_often(void *user)
{
    nori_session *s = user;
    for (int i = 0; i < 200; i++) {
        nori_tensor *in = node_values(NORI_FLOAT, NODE_DIMS(4), (double[]){-1, 2, -3, 4});
        nori_tensor *out[1] = {NULL};
        nori_error err = {0};
        nori_status status =
            nori_session_run(s, (const nori_tensor *const[]){in}, 1, out, 1, &err);
        nori_tensor_free(in);
        if (status != NORI_OK || ((const float *)nori_tensor_const_data(out[0]))[3] != -4) {
            return s;
        }
        nori_tensor_free(out[0]);
    }
    return NULL;
}

static void turns(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    pthread_t threads[4];
    chain(&m, 2, "", "4");
    nori_session *s = session_of(&m, FAKE_PROVIDER ":serial=1", 0, NULL, 0, &err);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, s), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        void *bad = s;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
    nori_session_free(s);
    make_end(&m);
}

/* ---- what cannot be had ---- */

static void must_say(make *m, const char *provider, nori_status status, const char *a, const char *b)
{
    nori_error err = {0};
    assert_null(session_of(m, provider, 0, NULL, 0, &err));
    assert_int_equal(err.status, status);
    if (!strstr(err.message, a) || !strstr(err.message, b)) {
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", err.message, a, b);
    }
}

static void missing(void **state)
{
    (void)state;
    make m;
    chain(&m, 2, "", "4");
    must_say(&m, LACKING_PROVIDER, NORI_ERROR_UNAVAILABLE, LACKING_PROVIDER,
             "nori_no_driver_has_this");
    must_say(&m, "/nowhere/fakegpu.so", NORI_ERROR_UNAVAILABLE, "/nowhere/fakegpu.so", "No such");
    must_say(&m, "fakegpu", NORI_ERROR_UNAVAILABLE, "fakegpu", "reference");
    must_say(&m, FAKE_PROVIDER ":banana=1", NORI_ERROR_ARGUMENT, "banana", "");
    must_say(&m, "", NORI_ERROR_ARGUMENT, "name", "");
    must_say(&m, EXAMPLE_PROVIDER ":copy_us=x", NORI_ERROR_ARGUMENT, "copy_us", "");
    make_end(&m);
}

static void example(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    size_t nodes;
    chain(&m, 9, "Softplus", "64");
    nori_session *s = session_of(&m, EXAMPLE_PROVIDER ",cpu", 0, NULL, 0, &err);
    nori_session *want = session_of(&m, "reference", 0, NULL, 0, &err);
    assert_int_equal(given_parts(s, &nodes), 3);
    same_results(s, want, 64);
    nori_session_free(s);
    s = session_of(&m, EXAMPLE_PROVIDER ":copy_us=1000,cpu", 0, NULL, 0, &err);
    assert_int_equal(given_parts(s, &nodes), 0);
    same_results(s, want, 64);
    nori_session_free(s);
    nori_session_free(want);
    make_end(&m);
}

/* Many islands, and near-linear time: a quadratic split would take minutes. */
static void large(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    size_t nodes;
    chain(&m, 3000, "Softplus", "4");
    nori_session *s = session_of(&m, FAKE_PROVIDER ":cost=0", 0, NULL, 0, &err);
    assert_non_null(s);
    assert_int_equal(given_parts(s, &nodes), 1000);
    assert_int_equal(nodes, 2000);
    nori_session_free(s);
    make_end(&m);
}

/* Each allocation in turn fails, and all after it: an error, nothing lost, nothing freed twice. */
static bool split_and_run(test_alloc *t, const void *bytes, size_t size, nori_error *err)
{
    nori_env *env = NULL;
    nori_model *model = NULL;
    nori_session *s = NULL;
    nori_env_options e;
    nori_session_options o;
    nori_tensor *in = node_tensor(NORI_FLOAT, NODE_DIMS(64)), *out[1] = {NULL};
    nori_env_options_default(&e);
    nori_session_options_default(&o);
    e.allocator = t->allocator;
    e.threads = 1;
    o.providers = FAKE_PROVIDER ":cost=0,cpu";
    nori_status status = nori_env_create(&e, &env, err);
    if (status == NORI_OK) {
        status = nori_model_load_memory(env, bytes, size, NULL, NULL, &model, err);
    }
    if (status == NORI_OK) {
        status = nori_session_create(model, &o, &s, err);
    }
    if (status == NORI_OK) {
        status = nori_session_run(s, (const nori_tensor *const[]){in}, 1, out, 1, err);
    }
    nori_tensor_free(out[0]);
    nori_tensor_free(in);
    nori_session_free(s);
    nori_model_free(model);
    nori_env_free(env);
    return status == NORI_OK;
}

static void out_of_memory(void **state)
{
    (void)state;
    make m;
    nori__text bytes;
    bool worked = false;
    chain(&m, 6, "Softplus", "64");
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m.model, &bytes, NULL), NORI_OK);
    for (size_t fail_at = 1; !worked; fail_at++) {
        test_alloc t;
        nori_error err = {0};
        test_alloc_init(&t, fail_at);
        worked = split_and_run(&t, bytes.data, bytes.size, &err);
        assert_int_equal(t.live, 0);
        assert_false(t.wrong_size);
        if (!worked) {
            assert_int_equal(err.status, NORI_ERROR_MEMORY);
        }
        assert_true(fail_at < 5000);
    }
    nori__text_free(&bytes);
    make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cost_of_copies),      cmocka_unit_test(providers_of_nodes),
        cmocka_unit_test(a_pad_splits),
        cmocka_unit_test(no_way_out_and_back), cmocka_unit_test(late_company),
        cmocka_unit_test(order_changes),       cmocka_unit_test(open_sizes),
        cmocka_unit_test(range_of_sizes),      cmocka_unit_test(compiling_fails),
        cmocka_unit_test(whole_model),         cmocka_unit_test(read_by_a_subgraph),
        cmocka_unit_test(turns),               cmocka_unit_test(missing),
        cmocka_unit_test(example),             cmocka_unit_test(large),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
