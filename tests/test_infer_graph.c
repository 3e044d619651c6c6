/* test_infer_graph.c: inference over whole graphs: declarations as hints, bodies of control flow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "make_model.h"
#include "ops/resolve.h"

static nori__ir *inferred(make *m)
{
    nori__ir *ir = make_ir(m);
    nori_error err = {0};
    nori__resolve(ir);
    nori_status s = nori__infer_graph(ir, &err);
    if (s != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(s, NORI_OK);
    assert_int_equal(nori__infer_graph(ir, &err), NORI_OK); /* twice is as once */
    return ir;
}

/* "2 N ?" of a value; "*" for an unknown rank. */
static void has_shape(const nori__value *v, const char *want)
{
    char text[128] = "";
    size_t used = 0;
    if (v->type.rank < 0) {
        snprintf(text, sizeof(text), "*");
    }
    for (int d = 0; d < v->type.rank; d++) {
        nori__dim dim = v->type.dims[d];
        const char *space = d ? " " : "";
        used += (size_t)(dim.value >= 0
                             ? snprintf(text + used, sizeof(text) - used, "%s%lld", space,
                                        (long long)dim.value)
                             : snprintf(text + used, sizeof(text) - used, "%s%s", space,
                                        dim.name ? dim.name : "?"));
    }
    assert_string_equal(text, want);
}

static void declarations_are_hints(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out, *want;
        size_t warnings;
    } cases[] = {
        {"a 4", "b 4", "a 4", 0},   /* other symbols say nothing */
        {"2 4", "3 4", "2 4", 1},   /* a real conflict: what is computed wins */
        {"2 4", "2 4 1", "2 4", 1}, /* so for the rank */
        {"? 4", "b 4", "b 4", 0},   /* a hint fills in */
        {"a 4", "1 4", "a 4", 0},   /* an example's size does not pin a free axis */
        {NULL, "b 4", "b 4", 0},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        make m;
        make_begin(&m, 13);
        make_input(&m, &m.graph, "x", NORI_FLOAT, cases[i].in);
        make_node(&m, &m.graph, "", "Relu", "", "x", "y");
        make_output(&m, &m.graph, "y", NORI_FLOAT, cases[i].out);
        nori__ir *ir = inferred(&m);
        has_shape(ir->main->outputs[0], cases[i].want);
        assert_int_equal(ir->warnings.count, cases[i].warnings);
        nori__ir_free(ir);
        make_end(&m);
    }
}

/* x [2 3] goes through a loop whose body applies op with the constant, its result carried on; the
 * body declares what its author saw. */
static nori__ir *loop(make *m, const char *op, const char *inputs, int64_t axis)
{
    make_begin(m, 13);
    make_input(m, &m->graph, "n", NORI_INT64, "");
    make_input(m, &m->graph, "x", NORI_FLOAT, "2 3");
    nori__pb_node *n = make_node(m, &m->graph, "", "Loop", "loop", "n - x", "y each");
    nori__pb_graph *body = make_attr_graph(m, n, "body");
    make_input(m, body, "i", NORI_INT64, "");
    make_input(m, body, "go", NORI_BOOL, "");
    make_input(m, body, "v", NORI_FLOAT, "2 3");
    nori__pb_node *inner = make_node(m, body, "", op, "inner", inputs, "w");
    if (axis >= 0) {
        make_attr_int(m, inner, "axis", axis);
    }
    make_node(m, body, "", "Identity", "", "go", "going");
    make_output(m, body, "going", NORI_BOOL, "");
    make_output(m, body, "w", NORI_FLOAT, NULL);
    make_output(m, body, "w", NORI_FLOAT, NULL);
    make_output(m, &m->graph, "y", NORI_FLOAT, NULL);
    make_output(m, &m->graph, "each", NORI_FLOAT, NULL);
    return inferred(m);
}

static void carried_values_keep_what_lasts(void **state)
{
    (void)state;
    make m;
    nori__ir *ir = loop(&m, "Neg", "v", -1);
    has_shape(ir->main->outputs[0], "2 3");
    has_shape(ir->main->outputs[1], "? 2 3");
    nori__ir_free(ir);
    make_end(&m);

    ir = loop(&m, "Concat", "v x", 1); /* grows along axis 1 */
    has_shape(ir->main->outputs[0], "2 ?");
    has_shape(ir->main->outputs[1], "? 2 ?");
    nori__ir_free(ir);
    make_end(&m);
}

static void carried_values_may_change_rank(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "n", NORI_INT64, "");
    make_input(&m, &m.graph, "x", NORI_FLOAT, "2 3");
    make_ints(&m, &m.graph, "zero", 1, (int64_t[]){0});
    nori__pb_node *n = make_node(&m, &m.graph, "", "Loop", "loop", "n - x", "y");
    nori__pb_graph *body = make_attr_graph(&m, n, "body");
    make_input(&m, body, "i", NORI_INT64, "");
    make_input(&m, body, "go", NORI_BOOL, "");
    make_input(&m, body, "v", NORI_FLOAT, "2 3");
    make_node(&m, body, "", "Unsqueeze", "inner", "v zero", "w");
    make_output(&m, body, "go", NORI_BOOL, "");
    make_output(&m, body, "w", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    nori__ir *ir = inferred(&m);
    has_shape(ir->main->outputs[0], "*");
    assert_int_equal(ir->main->outputs[0]->type.elem, NORI_FLOAT);
    nori__ir_free(ir);
    make_end(&m);
}

/* An optional goes in, a sequence comes out: which it is after the loop, its trips decide. */
static void carried_values_may_change_kind(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 16);
    make_input(&m, &m.graph, "n", NORI_INT64, "");
    make_input(&m, &m.graph, "x", NORI_FLOAT, NULL);
    nori__pb_value *x = &m.graph.inputs.items[1];
    nori__pb_type tensor = *x->type, sequence = {.kind = NORI_KIND_SEQUENCE, .of = &tensor};
    *x->type = (nori__pb_type){.kind = NORI_KIND_OPTIONAL, .of = &sequence};
    nori__pb_node *n = make_node(&m, &m.graph, "", "Loop", "loop", "n - x", "y");
    nori__pb_graph *body = make_attr_graph(&m, n, "body");
    make_input(&m, body, "i", NORI_INT64, "");
    make_input(&m, body, "go", NORI_BOOL, "");
    make_input(&m, body, "v", NORI_FLOAT, NULL);
    body->inputs.items[2].type = x->type;
    make_node(&m, body, "", "SequenceConstruct", "inner", "i", "w");
    make_output(&m, body, "go", NORI_BOOL, "");
    make_output(&m, body, "w", NORI_INT64, NULL);
    body->outputs.items[1].type = &sequence;
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    m.graph.outputs.items[0].type = &sequence;
    nori__ir *ir = inferred(&m);
    assert_int_equal(ir->main->outputs[0]->type.kind, NORI_KIND_SEQUENCE); /* as declared */
    nori__ir_free(ir);
    make_end(&m);
}

static void branches_meet(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "c", NORI_BOOL, "");
    make_input(&m, &m.graph, "a", NORI_FLOAT, "2 3");
    make_input(&m, &m.graph, "b", NORI_FLOAT, "2 5");
    nori__pb_node *n = make_node(&m, &m.graph, "", "If", "if", "c", "y");
    nori__pb_graph *then = make_attr_graph(&m, n, "then_branch");
    make_node(&m, then, "", "Neg", "", "a", "t");
    make_output(&m, then, "t", NORI_FLOAT, NULL);
    nori__pb_graph *other = make_attr_graph(&m, n, "else_branch");
    make_output(&m, other, "b", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    nori__ir *ir = inferred(&m);
    has_shape(ir->main->outputs[0], "2 ?");
    nori__ir_free(ir);
    make_end(&m);
}

static void scans(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "s", NORI_FLOAT, "4");
    make_input(&m, &m.graph, "x", NORI_FLOAT, "4 T");
    nori__pb_node *n = make_node(&m, &m.graph, "", "Scan", "scan", "s x", "last each");
    make_attr_int(&m, n, "num_scan_inputs", 1);
    make_attr_ints(&m, n, "scan_input_axes", 1, (int64_t[]){1});
    make_attr_ints(&m, n, "scan_output_axes", 1, (int64_t[]){-1});
    nori__pb_graph *body = make_attr_graph(&m, n, "body");
    make_input(&m, body, "state", NORI_FLOAT, NULL);
    make_input(&m, body, "row", NORI_FLOAT, NULL);
    make_node(&m, body, "", "Add", "", "state row", "sum");
    make_output(&m, body, "sum", NORI_FLOAT, NULL);
    make_node(&m, body, "", "Neg", "", "sum", "out");
    make_output(&m, body, "out", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "last", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "each", NORI_FLOAT, NULL);
    nori__ir *ir = inferred(&m);
    has_shape(ir->main->outputs[0], "4");
    has_shape(ir->main->outputs[1], "4 T");
    nori__ir_free(ir);
    make_end(&m);
}

static void errors_say_where(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "a", NORI_FLOAT, "2 3");
    make_input(&m, &m.graph, "b", NORI_FLOAT, "2 5");
    make_node(&m, &m.graph, "", "Add", "sum", "a b", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    nori__ir *ir = make_ir(&m);
    nori__resolve(ir);
    nori_error err = {0};
    assert_int_equal(nori__infer_graph(ir, &err), NORI_ERROR_MODEL);
    assert_string_equal(err.where, "sum (Add)");
    nori__ir_free(ir);
    make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(declarations_are_hints),
        cmocka_unit_test(carried_values_keep_what_lasts),
        cmocka_unit_test(carried_values_may_change_rank),
        cmocka_unit_test(carried_values_may_change_kind),
        cmocka_unit_test(branches_meet),
        cmocka_unit_test(scans),
        cmocka_unit_test(errors_say_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
