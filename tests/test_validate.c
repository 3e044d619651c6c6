/* Agreement of results by numbers worked out by hand; levels against level 0 with a faulty rewrite,
 * which must be named; layers: a node's own error and the inherited one. This program has a list of
 * passes and of providers of its own, with a fusion that is wrong on purpose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "make_model.h"
#include "nori/tools.h"
#include "passes/passes.h"
#include "providers/cpu/cpu_kernels.h"
#include "providers/providers.h"
#include "run_node.h"

/* ---- the passes of this program ---- */

static float faulty; /* what the constant of the fusion below is off by; 0: nothing */

/* Joins Mul by one number and Neg into a Mul by the negated number. */
static nori_status join(nori__ir *ir, float off, bool *changed, nori_error *err)
{
    for (nori__node *n = ir->main->first, *next; n; n = next) {
        next = n->next;
        nori__node *mul = nori__node_is(n, NORI__OP_ONNX_Neg) ? n->inputs[0]->producer : NULL;
        const nori_tensor *w = mul && mul->input_count == 2 ? nori__value_const(mul->inputs[1]) : NULL;
        if (!w || !nori__node_is(mul, NORI__OP_ONNX_Mul)) {
            continue;
        }
        nori_tensor *t = node_values(NORI_FLOAT, 0, NULL, (double[]){-(double)nori__tensor_get_f64(w, 0) *
                                                                     (1 + (double)off)});
        nori__value *number = nori__const_new(ir->main, NULL, t), *out = n->outputs[0];
        nori__value *in[2] = {mul->inputs[0], number};
        nori__node_remove(n);
        nori__node *made = nori__node_new(ir->main, next, "", "Mul", in, 2, &out, 1);
        if (!number || !made) {
            return nori__no_memory(err);
        }
        nori__node_resolve(made);
        *changed = true;
    }
    return NORI_OK;
}

static nori_status join_pass(nori__ir *ir, bool *changed, nori_error *err)
{
    return join(ir, faulty, changed, err);
}

static const nori__pass passes[] = {
    {"fold", 1, nori__pass_fold},
    {"join", 1, join_pass},
    {"dead", 1, nori__pass_dead},
};
static size_t n_passes = NORI__COUNT(passes);

const nori__pass *nori__pass_at(size_t index)
{
    return index < n_passes ? &passes[index] : NULL;
}

/* ---- the providers of this program ---- */

static nori_status join_own(nori__ir *ir, nori_error *err)
{
    bool changed = false;
    return join(ir, faulty, &changed, err);
}

static const nori__rewrite rewrites[] = {
    {"patterns", nori__cpu_fuse_patterns, false},
    {"join", join_own, false},
    {"fuse", nori__cpu_fuse, false},
    {NULL, NULL, false},
};

const nori_provider nori__reference_provider = {
    .size = sizeof(nori_provider), .name = "reference", .description = "",
};

static const nori__builtin builtins[] = {
    {&nori__cpu_provider, rewrites},
    {&nori__reference_provider, NULL},
};

const nori__builtin *nori__builtin_find(const char *name)
{
    return strcmp(name, "cpu") == 0 ? &builtins[0] : strcmp(name, "reference") == 0 ? &builtins[1] : NULL;
}

const nori_provider *nori_provider_at(size_t index)
{
    return index < NORI__COUNT(builtins) ? builtins[index].provider : NULL;
}

/* ---- agreement ---- */

static void by_hand(void **state)
{
    (void)state;
    nori_agreement a = {.size = sizeof(a)};
    nori_agreement_options o;
    nori_agreement_options_default(&o);
    o.atol = 0.5;
    o.rtol = 0;
    nori_tensor *want = node_values(NORI_FLOAT, NODE_DIMS(1, 4), (double[]){3, 4, 0, NAN});
    nori_tensor *got = node_values(NORI_FLOAT, NODE_DIMS(1, 4), (double[]){4, 3, 0, NAN});
    nori_agreement_add(&a, got, want, &o);
    assert_int_equal(a.passes, 0);
    assert_int_equal(a.elements, 4);
    assert_int_equal(a.beyond, 2);
    assert_int_equal(a.nan_got, 1);
    assert_int_equal(a.nan_want, 1);
    assert_true(a.max_abs == 1);
    assert_true(fabs(a.max_rel - 1.0 / 3) < 1e-9);
    assert_true(fabs(a.cosine - 24.0 / 25) < 1e-9);
    assert_true(fabs(a.sqnr_db - 10 * log10(25.0 / 2)) < 1e-9);
    assert_true(fabs(a.rms - sqrt(2.0 / 4)) < 1e-9);
    assert_int_equal(a.rows, 1);
    assert_true(a.top1 == 0);
    assert_true(a.topk == 1); /* k is 4: all classes */
    nori_agreement_add(&a, want, want, &o); /* a second pair: shares halve */
    assert_int_equal(a.pairs, 2);
    assert_int_equal(a.rows, 2);
    assert_true(a.top1 == 0.5);
    assert_true(fabs(a.sqnr_db - 10 * log10(50.0 / 2)) < 1e-9);
    o.max_beyond = 0.25;
    nori_agreement_add(&a, want, want, &o);
    assert_int_equal(a.passes, 1);
    o.min_sqnr_db = 30;
    nori_agreement_add(&a, want, want, &o);
    assert_int_equal(a.passes, 0);
    nori_tensor_free(got);
    nori_tensor_free(want);
}

/* Without tolerances of the caller's the type says what can be asked for. */
static void by_type(void **state)
{
    (void)state;
    static const struct {
        nori_type type;
        double want, got;
        int passes;
    } rows[] = {
        {NORI_FLOAT, 1, 1.0009, 1},    {NORI_FLOAT, 1, 1.002, 0},   {NORI_FLOAT, 0, 2e-4, 0},
        {NORI_FLOAT16, 1, 1.003, 1},   {NORI_FLOAT16, 1, 1.02, 0},  {NORI_BFLOAT16, 1, 1.03, 1},
        {NORI_BFLOAT16, 1, 1.06, 0},   {NORI_INT8, 5, 5, 1},        {NORI_INT8, 5, 6, 0},
        {NORI_INT64, 1000000, 1000001, 0}, {NORI_DOUBLE, 1, 1.002, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        nori_agreement a = {.size = sizeof(a)};
        nori_tensor *want = node_values(rows[i].type, NODE_DIMS(1), &rows[i].want);
        nori_tensor *got = node_values(rows[i].type, NODE_DIMS(1), &rows[i].got);
        nori_agreement_add(&a, got, want, NULL);
        assert_int_equal(a.passes, rows[i].passes);
        nori_tensor_free(want);
        nori_tensor_free(got);
    }
}

static void spread(void **state)
{
    (void)state;
    nori_agreement a = {.size = sizeof(a)};
    nori_tensor *want = node_values(NORI_DOUBLE, NODE_DIMS(6), (double[]){0, 0, 0, 0, 0, INFINITY});
    nori_tensor *got =
        node_values(NORI_DOUBLE, NODE_DIMS(6), (double[]){0, 1e-300, -5e-4, 0.5, 1e30, INFINITY});
    nori_agreement_add(&a, got, want, NULL);
    nori_agreement_add(&a, got, want, NULL);
    assert_int_equal(a.decades[0], 2);                /* equal */
    assert_int_equal(a.decades[1], 2);                /* below 1e-11 */
    assert_int_equal(a.decades[9], 2);                /* below 1e-3 */
    assert_int_equal(a.decades[12], 2);               /* below 1 */
    assert_int_equal(a.decades[NORI_DECADES - 1], 2); /* the rest; infinities are not counted */
    nori_tensor_free(want);
    nori_tensor_free(got);
}

static void forms(void **state)
{
    (void)state;
    nori_agreement a = {.size = sizeof(a)};
    nori_tensor *x = node_values(NORI_FLOAT, NODE_DIMS(2), (double[]){1, INFINITY});
    nori_tensor *y = node_values(NORI_FLOAT, NODE_DIMS(2, 1), (double[]){1, INFINITY});
    nori_tensor *z = node_values(NORI_FLOAT, NODE_DIMS(2), (double[]){1, NAN});
    nori_agreement_add(&a, x, y, NULL);
    assert_int_equal(a.passes, 0);
    assert_non_null(strstr(a.reason, "float32[2,1]"));
    a = (nori_agreement){.size = sizeof(a)};
    nori_agreement_add(&a, x, x, NULL);
    assert_int_equal(a.passes, 1);
    assert_int_equal(a.inf_got, 1);
    assert_true(isinf(a.sqnr_db));
    a = (nori_agreement){.size = sizeof(a)};
    nori_agreement_add(&a, z, x, NULL);
    assert_int_equal(a.passes, 0);
    assert_int_equal(a.nan_got, 1);
    assert_int_equal(a.nan_want, 0);
    nori_tensor_free(x);
    nori_tensor_free(y);
    nori_tensor_free(z);
}

/* ---- models ---- */

static nori_model *load(make *m)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_error err = {0};
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m->model, &bytes, &err), NORI_OK);
    char *kept = nori__arena_copy(&m->arena, bytes.data, bytes.size);
    assert_int_equal(nori_model_load_memory(NULL, kept, bytes.size, NULL, NULL, &model, &err),
                     NORI_OK);
    nori__text_free(&bytes);
    return model;
}

/* x -> Relu -> Mul by a constant -> Neg -> y */
static nori_model *three(make *m, float factor)
{
    make_begin(m, 17);
    make_input(m, &m->graph, "x", NORI_FLOAT, "3");
    make_floats(m, &m->graph, "w", 1, 0);
    m->graph.initializers.items[0].floats.items[0] = factor;
    make_node(m, &m->graph, "", "Relu", "first", "x", "a");
    make_node(m, &m->graph, "", "Mul", "second", "a w", "b");
    make_node(m, &m->graph, "", "Neg", "third", "b", "y");
    make_output(m, &m->graph, "y", NORI_FLOAT, "3");
    return load(m);
}

/* What `validate --levels` says of a model and providers: rows[0] is level 1, rows[1] is level 2. */
static void judge_levels(const nori_model *model, const char *providers, nori_level_row rows[2])
{
    nori_session_options o;
    nori_error err = {0};
    nori_tensor *in = node_values(NORI_FLOAT, NODE_DIMS(3), (double[]){1, 2, -3});
    nori_session_options_default(&o);
    o.providers = providers;
    rows[0] = rows[1] = (nori_level_row){.size = sizeof(rows[0])};
    assert_int_equal(nori_validate_levels(model, &o, (const nori_tensor *const[]){in}, 1, NULL, rows, &err),
                     NORI_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rows[i].level, i + 1);
        assert_string_equal(rows[i].output, "y");
    }
    nori_tensor_free(in);
}

static void levels(void **state)
{
    (void)state;
    make m;
    nori_level_row rows[2];
    nori_model *model = three(&m, 2);
    judge_levels(model, NULL, rows);
    assert_int_equal(rows[0].agreement.passes && rows[1].agreement.passes, 1);
    assert_string_equal(rows[0].culprit, "");
    faulty = 0.1f; /* the constant of a standard fusion: both levels make it */
    judge_levels(model, NULL, rows);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rows[i].agreement.passes, 0);
        assert_string_equal(rows[i].culprit, "join");
        assert_true(fabs(rows[i].agreement.max_abs - 0.4) < 1e-6); /* -4.4 for -4 */
    }
    n_passes = 1; /* of a fusion of the provider's own: level 2 alone, by cpu alone */
    judge_levels(model, "reference,cpu", rows);
    assert_string_equal(rows[0].culprit, "");
    assert_int_equal(rows[0].agreement.passes, 1);
    assert_int_equal(rows[1].agreement.passes, 0);
    assert_string_equal(rows[1].culprit, "cpu/join");
    judge_levels(model, "reference", rows);
    assert_int_equal(rows[1].agreement.passes, 1);
    faulty = 0;
    n_passes = NORI__COUNT(passes);
    nori_model_free(model);
    make_end(&m);
}

static void names_of_rewrites(void **state)
{
    static const struct {
        const char *providers, *passes, *unknown;
    } cases[] = {
        {"cpu", "fold,banana", "banana"},        {"cpu", "cpu/banana", "cpu/banana"},
        {"reference", "cpu/fuse", "cpu/fuse"},   {"cpu", "fold,cpu/fuse,dead", NULL},
        {"cpu", "", NULL},
    };
    (void)state;
    make m;
    nori_model *model = three(&m, 2);
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        nori_session *s = NULL;
        nori_error err = {0};
        nori_session_options o;
        nori_session_options_default(&o);
        o.providers = cases[i].providers;
        o.passes = cases[i].passes;
        nori_status status = nori_session_create(model, &o, &s, &err);
        assert_int_equal(status, cases[i].unknown ? NORI_ERROR_ARGUMENT : NORI_OK);
        assert_true(!cases[i].unknown || strstr(err.message, cases[i].unknown));
        nori_session_free(s);
    }
    nori_model_free(model);
    make_end(&m);
}

/* A list of standard rewrites leaves those of providers alone; one that names one of these limits them. */
static void lists_of_rewrites(void **state)
{
    static const struct {
        const char *passes;
        double y; /* -4, or what the faulty fusion of the provider's makes of it */
    } cases[] = {{NULL, -4.4}, {"fold", -4.4}, {"", -4.4}, {"fold,cpu/fuse", -4}, {"cpu/join", -4.4}};
    (void)state;
    make m;
    nori_model *model = three(&m, 2);
    nori_tensor *in = node_values(NORI_FLOAT, NODE_DIMS(3), (double[]){1, 2, -3});
    faulty = 0.1f;
    n_passes = 1;
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        nori_session *s = NULL;
        nori_error err = {0};
        nori_session_options o;
        nori_tensor *out[1] = {NULL};
        nori_session_options_default(&o);
        o.passes = cases[i].passes;
        assert_int_equal(nori_session_create(model, &o, &s, &err), NORI_OK);
        node_run(s, (const nori_tensor *const[]){in}, 1, out, 1, NORI_OK);
        assert_true(fabs(nori__tensor_get_f64(out[0], 1) - cases[i].y) < 1e-6);
        nori_tensor_free(out[0]);
        nori_session_free(s);
    }
    faulty = 0;
    n_passes = NORI__COUNT(passes);
    nori_tensor_free(in);
    nori_model_free(model);
    make_end(&m);
}

static void own_and_inherited(void **state)
{
    (void)state;
    make m, k;
    nori_error err = {0};
    nori_session_options o;
    nori_layers *layers = NULL;
    nori_layer l = {.size = sizeof(l)};
    nori_model *want = three(&m, 2), *got = three(&k, 2.2f); /* a weight 10 % off */
    nori_tensor *in = node_values(NORI_FLOAT, NODE_DIMS(3), (double[]){1, 2, -3});
    const nori_tensor *const inputs[] = {in};
    nori_session_options_default(&o);
    o.level = 0;
    assert_int_equal(nori_validate_layers(got, want, &o, &o, inputs, 1, NULL, &layers, &err),
                     NORI_OK);
    static const char *const names[] = {"a", "b", "y"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(nori_layers_at(layers, i, &l), 1);
        assert_string_equal(l.value, names[i]);
        assert_int_equal(l.has_own && l.has_total, 1);
        assert_int_equal(l.own.passes, i != 1);   /* only the second is wrong on its own */
        assert_int_equal(l.total.passes, i == 0); /* what follows inherits it */
    }
    assert_int_equal(nori_layers_at(layers, 3, &l), 0);
    nori_layers_free(layers);
    nori_tensor_free(in);
    nori_model_free(want);
    nori_model_free(got);
    make_end(&m);
    make_end(&k);
}

/* The same values in half floats: compared, not called another type. */
static void layers_of_half_floats(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    nori_session_options o;
    nori_layers *layers = NULL;
    nori_layer l = {.size = sizeof(l)};
    nori_model *want = three(&m, 2), *got = NULL;
    nori_quantize_options q;
    nori_quantize_options_default(&q);
    q.kind = NORI_QUANTIZE_FP16;
    assert_int_equal(nori_quantize(want, &q, &got, NULL, &err), NORI_OK);
    nori_tensor *in = node_values(NORI_FLOAT, NODE_DIMS(3), (double[]){1.0001, 2, -3});
    const nori_tensor *const inputs[] = {in};
    nori_session_options_default(&o);
    o.level = 0;
    assert_int_equal(nori_validate_layers(got, want, &o, &o, inputs, 1, NULL, &layers, &err),
                     NORI_OK);
    size_t found = 0;
    for (size_t i = 0; nori_layers_at(layers, i, &l); i++) {
        bool inner = strcmp(l.value, "a") == 0 || strcmp(l.value, "b") == 0;
        found += inner && l.has_own && l.has_total && l.own.passes && l.total.passes;
        assert_true(!inner || l.total.max_abs < 4e-3);
    }
    assert_int_equal(found, 2);
    nori_layers_free(layers);
    nori_tensor_free(in);
    nori_model_free(want);
    nori_model_free(got);
    make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand), cmocka_unit_test(by_type), cmocka_unit_test(spread),
        cmocka_unit_test(forms),
        cmocka_unit_test(levels), cmocka_unit_test(names_of_rewrites),
        cmocka_unit_test(lists_of_rewrites),
        cmocka_unit_test(own_and_inherited), cmocka_unit_test(layers_of_half_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
