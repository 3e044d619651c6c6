/* Parts on a queue: what runs between their start and their end, who waits for them, and that nothing is
 * left. Probe, an operator of the test's own, gives how many parts are under way while it runs. And a
 * provider with one wrong kernel, which the comparison of layers names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdatomic.h>

#include "make_model.h"
#include "nori/provider.h"
#include "nori/tools.h"
#include "platform/platform.h"
#include "run_node.h"

static atomic_int *pending, *starts;
static bool probe_fails;

static nori_status probe_infer(nori_infer *infer)
{
    return nori_infer_like(infer, 0, 0);
}

static nori_status probe_run(const void *state, nori_call *call)
{
    nori_tensor *t = nori_call_output(call, 0);
    (void)state;
    if (probe_fails) {
        return nori_error_set(nori_call_error(call), NORI_ERROR_DATA, "the probe fails");
    }
    for (int64_t i = 0; i < nori_tensor_elements(t); i++) {
        ((float *)nori_tensor_data(t))[i] = (float)atomic_load(pending);
    }
    return NORI_OK;
}

static nori_env *new_env(void)
{
    static const nori_kernel kernel = {.size = sizeof(kernel), .run = probe_run};
    static const nori_op_arg in = {.name = "x"}, out = {.name = "y"};
    nori_custom_op op = {.size = sizeof(op), .domain = "my.own", .name = "Probe", .since = 1,
                         .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1,
                         .infer = probe_infer, .kernel = &kernel};
    nori_env *env = NULL;
    nori_error err = {0};
    assert_int_equal(nori_env_create(NULL, &env, &err), NORI_OK);
    assert_int_equal(nori_env_register_op(env, &op, &err), NORI_OK);
    return env;
}

static int find_counts(void **state)
{
    nori_error err = {0};
    void *library = nori__library_open(QUEUE_PROVIDER, &err);
    (void)state;
    pending = library ? nori__library_symbol(library, "fake_pending", &err) : NULL;
    starts = library ? nori__library_symbol(library, "fake_starts", &err) : NULL;
    return pending && starts ? 0 : -1;
}

/* A model of nodes "OP IN OUT", one behind the other in the file, and what it gives for x = 1, -2. */
typedef struct flow {
    make m;
    nori_env *env;
    nori_session *s;
    char *bytes;
    nori_tensor *out[4];
    nori_error err;
} flow;

static void begin(flow *f, const char *const (*nodes)[3], size_t n, const char *const *outputs, size_t n_out,
                  int profile)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_session_options o;
    memset(f, 0, sizeof(*f));
    make_begin(&f->m, 17);
    make_import(&f->m, "my.own", 1);
    make_input(&f->m, &f->m.graph, "x", NORI_FLOAT, "2");
    make_ints(&f->m, &f->m.graph, "flat", 2, (const int64_t[]){2, 1});
    for (size_t i = 0; i < n; i++) {
        bool own = strcmp(nodes[i][0], "Probe") == 0;
        make_node(&f->m, &f->m.graph, own ? "my.own" : "", nodes[i][0], nodes[i][2], nodes[i][1],
                  nodes[i][2]);
    }
    for (size_t i = 0; i < n_out; i++) {
        make_output(&f->m, &f->m.graph, outputs[i], NORI_FLOAT, NULL);
    }
    f->env = new_env();
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&f->m.model, &bytes, &f->err), NORI_OK);
    f->bytes = nori__arena_copy(&f->m.arena, bytes.data, bytes.size);
    nori_session_options_default(&o);
    o.providers = QUEUE_PROVIDER ":cost=0,cpu";
    o.profile = profile;
    assert_int_equal(nori_model_load_memory(f->env, f->bytes, bytes.size, NULL, NULL, &model, &f->err),
                     NORI_OK);
    assert_int_equal(nori_session_create(model, &o, &f->s, &f->err), NORI_OK);
    nori_model_free(model);
    nori__text_free(&bytes);
}

static nori_status run(flow *f)
{
    const double x[] = {1, -2};
    nori_tensor *in = node_values(NORI_FLOAT, NODE_DIMS(2), x);
    for (size_t i = 0; i < 4; i++) {
        nori_tensor_free(f->out[i]);
        f->out[i] = NULL;
    }
    nori_status status = nori_session_run(f->s, (const nori_tensor *const[]){in}, 1, f->out,
                                          nori_session_output_count(f->s), &f->err);
    nori_tensor_free(in);
    assert_int_equal(atomic_load(pending), 0); /* in any case */
    return status;
}

static void expect(const flow *f, size_t i, double a, double b)
{
    const float *v = nori_tensor_const_data(f->out[i]);
    if ((double)v[0] != a || (double)v[1] != b) {
        fail_msg("output %zu is %g, %g, expected %g, %g", i, (double)v[0], (double)v[1], a, b);
    }
}

static void end(flow *f)
{
    for (size_t i = 0; i < 4; i++) {
        nori_tensor_free(f->out[i]);
    }
    nori_session_free(f->s);
    nori_env_free(f->env);
    make_end(&f->m);
}

#define NODES(...) \
    (const char *const[][3]){__VA_ARGS__}, sizeof((const char *const[][3]){__VA_ARGS__}) / sizeof(char *[3])
#define OUTPUTS(...) \
    (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

/* What does not need a part runs beside it, wherever the file has it; who reads it waits. */
static void beside(void **state)
{
    flow f;
    (void)state;
    begin(&f, NODES({"Probe", "x", "q"}, {"Neg", "x", "p"}, {"Probe", "x", "o"}, {"Probe", "p", "r"}),
          OUTPUTS("p", "q", "o", "r"), 0);
    for (int i = 0; i < 3; i++) {
        int before = atomic_load(starts);
        assert_int_equal(run(&f), NORI_OK);
        expect(&f, 0, -1, 2);
        expect(&f, 1, 1, 1);
        expect(&f, 2, 1, 1);
        expect(&f, 3, 0, 0);
        assert_int_equal(atomic_load(starts) - before, 1);
    }
    end(&f);
}

/* A view of what is not there yet waits, too. */
static void views(void **state)
{
    flow f;
    (void)state;
    begin(&f, NODES({"Neg", "x", "p"}, {"Reshape", "p flat", "v"}, {"Softplus", "v", "y"}), OUTPUTS("y", "v"),
          0);
    assert_int_equal(run(&f), NORI_OK);
    expect(&f, 1, -1, 2);
    assert_true(fabs((double)*(const float *)nori_tensor_const_data(f.out[0]) - log(1 + exp(-1))) < 1e-6);
    end(&f);
}

/* One part waits for the one before it, also where it does not read it. */
static void parts(void **state)
{
    flow f;
    int before = atomic_load(starts);
    (void)state;
    begin(&f, NODES({"Neg", "x", "p"}, {"Probe", "x", "q"}, {"Neg", "q", "t"}, {"Probe", "q", "r"}),
          OUTPUTS("p", "t", "q", "r"), 0);
    assert_int_equal(run(&f), NORI_OK);
    expect(&f, 0, -1, 2);
    expect(&f, 1, -1, -1);
    expect(&f, 2, 1, 1);
    expect(&f, 3, 1, 1); /* beside the second alone */
    assert_int_equal(atomic_load(starts) - before, 2);
    end(&f);
}

static void failing(void **state)
{
    flow f;
    (void)state;
    begin(&f, NODES({"Neg", "x", "p"}, {"Probe", "x", "q"}), OUTPUTS("p", "q"), 0);
    probe_fails = true;
    assert_int_equal(run(&f), NORI_ERROR_DATA);
    assert_non_null(strstr(f.err.message, "the probe fails"));
    probe_fails = false;
    f.err = (nori_error){0};
    assert_int_equal(run(&f), NORI_OK);
    expect(&f, 0, -1, 2);
    expect(&f, 1, 1, 1);
    end(&f);
}

/* Where steps are timed each has its own time. */
static void timed(void **state)
{
    flow f;
    int before = atomic_load(starts);
    (void)state;
    begin(&f, NODES({"Neg", "x", "p"}, {"Probe", "x", "q"}), OUTPUTS("p", "q"), 1);
    assert_int_equal(run(&f), NORI_OK);
    expect(&f, 0, -1, 2);
    expect(&f, 1, 0, 0);
    assert_int_equal(atomic_load(starts), before);
    end(&f);
}

/* ---- a provider with one wrong kernel ---- */

static void wrong_kernel(void **state)
{
    make m;
    nori__text bytes;
    nori_model *model = NULL;
    nori_error err = {0};
    nori_session_options got, want;
    nori_layers *layers = NULL;
    nori_layer l = {.size = sizeof(l)};
    const double x[] = {1, -2, 3};
    nori_tensor *in = node_values(NORI_FLOAT, NODE_DIMS(3), x);
    (void)state;
    make_begin(&m, 17);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "3");
    make_node(&m, &m.graph, "", "Abs", "first", "x", "a");
    make_node(&m, &m.graph, "", "Neg", "second", "a", "b");
    make_node(&m, &m.graph, "", "Relu", "third", "b", "c");
    make_node(&m, &m.graph, "", "Add", "fourth", "b c", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "3");
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m.model, &bytes, &err), NORI_OK);
    assert_int_equal(nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, &err), NORI_OK);
    nori_session_options_default(&got);
    nori_session_options_default(&want);
    got.providers = FAKE_PROVIDER ":wrong=1";
    want.providers = "reference";
    for (int honest = 0; honest < 2; honest++) {
        assert_int_equal(nori_validate_layers(model, model, &got, &want, (const nori_tensor *const[]){in}, 1,
                                              NULL, &layers, &err),
                         NORI_OK);
        size_t bad = 0, n = 0;
        for (; nori_layers_at(layers, n, &l); n++) {
            if (l.has_own && !l.own.passes) {
                bad++;
                assert_string_equal(l.value, "b");
            }
        }
        assert_true(n >= 3);
        assert_int_equal(bad, honest ? 0 : 1);
        nori_layers_free(layers);
        got.providers = FAKE_PROVIDER;
    }
    nori_model_free(model);
    nori_tensor_free(in);
    nori__text_free(&bytes);
    make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beside),  cmocka_unit_test(views), cmocka_unit_test(parts),
        cmocka_unit_test(failing), cmocka_unit_test(timed), cmocka_unit_test(wrong_kernel),
    };
    return cmocka_run_group_tests(tests, find_counts, NULL);
}
