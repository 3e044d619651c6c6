/* Agreement of results by numbers worked out by hand; levels against level 0 with a faulty rewrite,
 * which must be named; layers: a node's own error and the inherited one. This program has a list of
 * passes of its own, one of which is wrong on purpose. */
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
#include "run_node.h"

/* ---- the passes of this program ---- */

static bool faulty;

/* Turns a Neg into an Abs. */
static nori_status wrong(nori__ir *ir, bool *changed, nori_error *err)
{
    (void)err;
    for (nori__node *n = ir->main->first; n && faulty; n = n->next) {
        if (nori__node_is(n, NORI__OP_ONNX_Neg)) {
            n->op_type = "Abs";
            nori__node_resolve(n);
            *changed = true;
        }
    }
    return NORI_OK;
}

static const nori__pass passes[] = {
    {"fold", 1, nori__pass_fold},
    {"wrong", 1, wrong},
    {"dead", 1, nori__pass_dead},
};

const nori__pass *nori__pass_at(size_t index)
{
    return index < NORI__COUNT(passes) ? &passes[index] : NULL;
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

static void levels(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    nori_session_options o;
    nori_level_row rows[2] = {{.size = sizeof(rows[0])}, {.size = sizeof(rows[0])}};
    nori_model *model = three(&m, 2);
    nori_tensor *in = node_values(NORI_FLOAT, NODE_DIMS(3), (double[]){1, 2, -3});
    const nori_tensor *const inputs[] = {in};
    faulty = false;
    assert_int_equal(nori_validate_levels(model, NULL, inputs, 1, NULL, rows, &err), NORI_OK);
    assert_int_equal(rows[0].agreement.passes && rows[1].agreement.passes, 1);
    assert_string_equal(rows[0].culprit, "");
    faulty = true;
    assert_int_equal(nori_validate_levels(model, NULL, inputs, 1, NULL, rows, &err), NORI_OK);
    faulty = false;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rows[i].level, i + 1);
        assert_int_equal(rows[i].agreement.passes, 0);
        assert_string_equal(rows[i].culprit, "wrong");
        assert_string_equal(rows[i].output, "y");
        assert_true(rows[i].agreement.max_abs == 8);
    }
    nori_session *s = NULL;
    nori_session_options_default(&o);
    o.passes = "fold,banana";
    assert_int_equal(nori_session_create(model, &o, &s, &err), NORI_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "banana"));
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
        cmocka_unit_test(levels),
        cmocka_unit_test(own_and_inherited), cmocka_unit_test(layers_of_half_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
