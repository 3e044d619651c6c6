/* test_custom.c: operators registered at run time: what is refused, versions, inference, folding,
 * dynamic outputs, profiles, checks, the library of examples/custom_op. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "make_model.h"
#include "nori/tools.h"
#include "run_node.h"

/* ---- operators ---- */

static int prepared, released, runs;

/* Y = X * factor + offset; offset is what the state holds. */
static nori_status scale_prepare(const nori_node *node, const nori_allocator *a, void **state,
                                 size_t *bytes, nori_error *error)
{
    (void)error;
    float *s = a->alloc(a->user, sizeof *s, sizeof *s);
    assert_non_null(s);
    *s = nori_node_float(node, "offset", 0);
    *state = s;
    *bytes = sizeof *s;
    prepared++;
    return NORI_OK;
}

static void scale_release(void *state, const nori_allocator *a)
{
    a->release(a->user, state, sizeof(float));
    released++;
}

static size_t scale_workspace(const void *state, const nori_call *call)
{
    (void)state, (void)call;
    return sizeof(float);
}

static nori_status scale_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori_call_input(call, 0);
    float *factor = nori_call_workspace(call), *y = nori_tensor_data(nori_call_output(call, 0));
    *factor = nori_node_float(nori_call_node(call), "factor", 1);
    for (int64_t i = 0; i < nori_tensor_elements(x); i++) {
        y[i] = ((const float *)nori_tensor_const_data(x))[i] * *factor + *(const float *)state;
    }
    runs++;
    return NORI_OK;
}

static nori_status same_shape(nori_infer *c)
{
    return nori_infer_like(c, 0, 0);
}

static const nori_kernel scale_kernel = {.size = sizeof(nori_kernel), .prepare = scale_prepare,
                                         .workspace = scale_workspace, .run = scale_run,
                                         .release = scale_release};
static const nori_op_arg one_float = {"X", NORI_TYPE_BIT(NORI_FLOAT), "T", NORI_OP_REQUIRED};
static const nori_op_attr scale_attrs[] = {{"factor", NORI_ATTR_FLOAT, 1},
                                           {"offset", NORI_ATTR_FLOAT, 0}};

static nori_custom_op scale_op(int since)
{
    return (nori_custom_op){.size = sizeof(nori_custom_op), .domain = "my.own", .name = "Scale",
                            .since = since, .inputs = &one_float, .n_inputs = 1,
                            .outputs = &one_float, .n_outputs = 1, .attributes = scale_attrs,
                            .n_attributes = 2, .infer = same_shape, .kernel = &scale_kernel};
}

/* Version 3 is dynamic: the values above 0, however many. */
static nori_status positive_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori_call_input(call, 0);
    const float *v = nori_tensor_const_data(x);
    int64_t n = 0, at = 0;
    nori_tensor *y;
    (void)state;
    for (int64_t i = 0; i < nori_tensor_elements(x); i++) {
        n += v[i] > 0;
    }
    nori_status s = nori_call_alloc(call, 0, NORI_FLOAT, 1, &n, &y);
    for (int64_t i = 0; s == NORI_OK && i < nori_tensor_elements(x); i++) {
        if (v[i] > 0) {
            ((float *)nori_tensor_data(y))[at++] = v[i];
        }
    }
    return s;
}

static const nori_kernel positive_kernel = {.size = sizeof(nori_kernel), .run = positive_run};

/* ---- models ---- */

/* Models point into their bytes, which are kept to the end. */
enum { MOST_MODELS = 32 };
static nori__text kept[MOST_MODELS];
static int n_kept;

static int free_kept(void **state)
{
    (void)state;
    while (n_kept > 0) {
        nori__text_free(&kept[--n_kept]);
    }
    return 0;
}

static nori_model *load(nori_env *env, int64_t version, bool constant, bool factor,
                        nori_type type, nori_error *err)
{
    make m;
    nori__text bytes;
    nori_model *model = NULL;
    make_begin(&m, 17);
    make_import(&m, "my.own", version);
    make_input(&m, &m.graph, "x", type, "N 2");
    if (constant) {
        make_floats(&m, &m.graph, "c", 2, 0);
    }
    nori__pb_node *n =
        make_node(&m, &m.graph, "my.own", "Scale", "s", constant ? "c" : "x", constant ? "z" : "y");
    if (factor) {
        make_attr(&m, n, "factor", NORI__ATTR_FLOAT)->f = 2;
    }
    make_attr(&m, n, "offset", NORI__ATTR_FLOAT)->f = 0.5f;
    if (constant) {
        make_node(&m, &m.graph, "", "Add", "a", "x z", "y");
    }
    make_output(&m, &m.graph, "y", type, NULL);
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m.model, &bytes, err), NORI_OK);
    if (nori_model_load_memory(env, bytes.data, bytes.size, NULL, NULL, &model, err) == NORI_OK) {
        assert_non_null(model);
    }
    assert_true(n_kept < MOST_MODELS);
    kept[n_kept++] = bytes;
    make_end(&m);
    return model;
}

static nori_env *new_env(void)
{
    nori_env *env = NULL;
    assert_int_equal(nori_env_create(NULL, &env, NULL), NORI_OK);
    return env;
}

static nori_session *session_of(const nori_model *model, nori_status want, nori_error *err)
{
    nori_session *s = NULL;
    nori_session_options o;
    nori_session_options_default(&o);
    o.profile = 1;
    assert_int_equal(nori_session_create(model, &o, &s, err), want);
    return s;
}

static void run_once(nori_session *s, const double *x, const double *want)
{
    nori_tensor *in[1] = {node_values(NORI_FLOAT, NODE_DIMS(1, 2), x)}, *out[1] = {NULL};
    node_run(s, (const nori_tensor *const *)in, 1, out, 1, NORI_OK);
    node_expect(out[0], NORI_FLOAT, NODE_DIMS(1, 2), want);
    nori_tensor_free(in[0]);
}

/* ---- tests ---- */

static void registered_runs(void **state)
{
    (void)state;
    nori_env *env = new_env();
    nori_error err = {0};
    nori_custom_op op = scale_op(1);
    const char *domain, *name;
    int since;
    assert_int_equal(nori_env_op(env, 0, &domain, &name, &since), 0);
    assert_int_equal(nori_env_register_op(env, &op, &err), NORI_OK);
    assert_int_equal(nori_env_op(env, 0, &domain, &name, &since), 1);
    assert_string_equal(domain, "my.own");
    assert_string_equal(name, "Scale");
    nori_model *model = load(env, 1, false, true, NORI_FLOAT, &err);
    prepared = released = runs = 0;
    nori_session *s = session_of(model, NORI_OK, &err);
    assert_int_equal(prepared, 1);
    run_once(s, (double[]){1, -3}, (double[]){2.5, -5.5});
    assert_int_equal(runs, 1);
    nori_profile_row row = {.size = sizeof row};
    assert_int_equal(nori_session_profile(s, 0, &row), 1);
    assert_string_equal(row.provider, "custom");
    assert_string_equal(row.op, "Scale");
    nori_session_free(s);
    assert_int_equal(released, 1);
    nori_model_free(model);
    nori_env_free(env);
}

/* What depends on constants alone is computed while compiling. */
static void folds(void **state)
{
    (void)state;
    for (int random = 0; random < 2; random++) {
        nori_env *env = new_env();
        nori_error err = {0};
        nori_custom_op op = scale_op(1);
        op.flags = random ? NORI_OP_RANDOM : 0;
        assert_int_equal(nori_env_register_op(env, &op, &err), NORI_OK);
        nori_model *model = load(env, 1, true, true, NORI_FLOAT, &err);
        prepared = released = runs = 0;
        nori_session *s = session_of(model, NORI_OK, &err);
        assert_int_equal(runs, !random);
        assert_int_equal(prepared, 1);
        run_once(s, (double[]){1, -3}, (double[]){1.5, -2.5});
        run_once(s, (double[]){1, -3}, (double[]){1.5, -2.5});
        assert_int_equal(runs, random ? 2 : 1);
        nori_session_free(s);
        assert_int_equal(released, 1);
        nori_model_free(model);
        nori_env_free(env);
    }
}

/* The form in force: the newest that the file's import allows. */
static void versions(void **state)
{
    (void)state;
    nori_env *env = new_env();
    nori_error err = {0};
    nori_custom_op first = scale_op(1), third = scale_op(3);
    third.flags = NORI_OP_DYNAMIC;
    third.infer = NULL;
    third.kernel = &positive_kernel;
    assert_int_equal(nori_env_register_op(env, &third, &err), NORI_OK);
    assert_int_equal(nori_env_register_op(env, &first, &err), NORI_OK);
    nori_model *old = load(env, 2, false, true, NORI_FLOAT, &err);
    nori_model *new = load(env, 7, false, true, NORI_FLOAT, &err);
    assert_int_equal(nori_node_version(nori_graph_first(nori_model_graph(old))), 1);
    assert_int_equal(nori_node_version(nori_graph_first(nori_model_graph(new))), 3);
    nori_session *s = session_of(old, NORI_OK, &err);
    run_once(s, (double[]){1, -3}, (double[]){2.5, -5.5});
    nori_session_free(s);
    s = session_of(new, NORI_OK, &err);
    nori_tensor *in[1] = {node_values(NORI_FLOAT, NODE_DIMS(2, 2), (double[]){1, -3, 0, 5})};
    nori_tensor *out[1] = {NULL};
    node_run(s, (const nori_tensor *const *)in, 1, out, 1, NORI_OK);
    node_expect(out[0], NORI_FLOAT, NODE_DIMS(2), (double[]){1, 5});
    nori_tensor_free(in[0]);
    nori_session_free(s);
    nori_model_free(old);
    nori_model_free(new);
    nori_env_free(env);
}

/* Another environment does not know it; the checker holds nodes against what was registered. */
static void unknown_and_checked(void **state)
{
    (void)state;
    nori_env *env = new_env(), *other = new_env();
    nori_error err = {0};
    nori_custom_op op = scale_op(1);
    assert_int_equal(nori_env_register_op(env, &op, &err), NORI_OK);
    nori_model *model = load(other, 1, false, true, NORI_FLOAT, &err);
    assert_null(session_of(model, NORI_ERROR_UNSUPPORTED, &err));
    assert_non_null(strstr(err.message, "the domain is not known"));
    nori_model_free(model);
    const struct {
        bool factor;
        nori_type type;
        const char *says;
    } cases[] = {{true, NORI_FLOAT, NULL}, {false, NORI_FLOAT, "factor"},
                 {true, NORI_INT32, "int32"}};
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        nori_findings *found = NULL;
        bool said = false;
        model = load(env, 1, false, cases[i].factor, cases[i].type, &err);
        assert_int_equal(nori_check(model, NULL, &found, &err), NORI_OK);
        for (size_t k = 0; nori_findings_at(found, k); k++) {
            const nori_finding *f = nori_findings_at(found, k);
            if (cases[i].says) {
                said |= strstr(f->message, cases[i].says) != NULL;
            } else {
                assert_true(f->severity < NORI_SEVERITY_WARNING);
            }
        }
        assert_int_equal(said, cases[i].says != NULL);
        nori_findings_free(found);
        nori_model_free(model);
    }
    nori_env_free(env);
    nori_env_free(other);
}

static void refused(nori_env *env, const nori_custom_op *op, const char *says)
{
    nori_error err = {0};
    assert_int_equal(nori_env_register_op(env, op, &err), NORI_ERROR_ARGUMENT);
    if (!strstr(err.message, says)) {
        print_error("\"%s\" does not say \"%s\"\n", err.message, says);
        fail();
    }
}

static void refuses(void **state)
{
    (void)state;
    nori_env *env = new_env();
    nori_op_arg two[2] = {{"X", 0, NULL, NORI_OP_VARIADIC}, {"Y", 0, NULL, NORI_OP_REQUIRED}};
    nori_kernel lacking = scale_kernel;
    nori_custom_op op = scale_op(1);
    op.domain = "ai.onnx";
    refused(env, &op, "belongs to ONNX");
    op = scale_op(1);
    op.domain = "com.microsoft";
    op.name = "Gelu";
    refused(env, &op, "nori has an operator");
    op = scale_op(0);
    refused(env, &op, "since");
    op = scale_op(1);
    op.infer = NULL;
    refused(env, &op, "infer");
    op = scale_op(1);
    op.flags = 1;
    refused(env, &op, "flags");
    op = scale_op(1);
    lacking.release = NULL;
    op.kernel = &lacking;
    refused(env, &op, "release");
    op = scale_op(1);
    op.inputs = two;
    op.n_inputs = 2;
    refused(env, &op, "variadic");
    op = scale_op(1);
    op.size = offsetof(nori_custom_op, kernel); /* as if from before kernels */
    refused(env, &op, "kernel");
    op = scale_op(1);
    assert_int_equal(nori_env_register_op(env, &op, NULL), NORI_OK);
    refused(env, &op, "already");
    nori_env_free(env);
}

/* ---- libraries ---- */

static void library_fails(const char *path, const char *says, const char *also)
{
    nori_env *env = new_env();
    nori_error err = {0};
    assert_int_equal(nori_env_load_ops(env, path, &err), NORI_ERROR_UNAVAILABLE);
    char all[sizeof err.where + sizeof err.message + 2];
    snprintf(all, sizeof all, "%s %s", err.where, err.message);
    assert_non_null(strstr(all, says));
    assert_non_null(strstr(all, also));
    assert_true(err.hint[0] != 0);
    nori_env_free(env);
}

static void libraries(void **state)
{
    (void)state;
    nori_env *env = new_env();
    nori_error err = {0};
    const char *domain, *name;
    int since;
    nori_status s = nori_env_load_ops(env, NORI_MOVING_MEAN, &err);
    if (s != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(s, NORI_OK);
    assert_int_equal(nori_env_op(env, 0, &domain, &name, &since), 1);
    assert_string_equal(name, "MovingMean");
    nori_env_free(env);
    library_fails("/no/such/library.so", "/no/such/library.so", "library");
    library_fails(NORI_LACKING_OPS, "lacking_ops", "nori_function_of_a_later_version");
    library_fails("libm.so.6", "libm.so.6", "nori_register_ops");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registered_runs),     cmocka_unit_test(folds),
        cmocka_unit_test(versions),            cmocka_unit_test(unknown_and_checked),
        cmocka_unit_test(refuses),             cmocka_unit_test(libraries),
    };
    return cmocka_run_group_tests(tests, NULL, free_kept);
}
