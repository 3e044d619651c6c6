/* test_functions.c: calls of a model's own functions become their bodies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "make_model.h"
#include "ops/resolve.h"

static nori__pb_function *function(make *m, const char *name, const char *inputs,
                                   const char *outputs, int64_t opset)
{
    nori__pb_function *f = MAKE_ADD(m, m->model.functions);
    f->domain = make_str(m, "mine");
    f->name = make_str(m, name);
    MAKE_NAMES(m, f->inputs, inputs)
    MAKE_NAMES(m, f->outputs, outputs)
    MAKE_ADD(m, f->opsets)->version = opset;
    nori__pb_opset *mine = MAKE_ADD(m, f->opsets);
    mine->domain = make_str(m, "mine");
    mine->version = 1;
    return f;
}

static nori__pb_node *body_node(make *m, nori__pb_function *f, const char *domain, const char *op,
                                const char *name, const char *inputs, const char *outputs)
{
    nori__pb_node *n = MAKE_ADD(m, f->nodes);
    n->domain = make_str(m, domain);
    n->op_type = make_str(m, op);
    n->name = make_str(m, name);
    MAKE_NAMES(m, n->inputs, inputs)
    MAKE_NAMES(m, n->outputs, outputs)
    return n;
}

static void begin(make *m)
{
    make_begin(m, 18);
    make_import(m, "mine", 1);
    make_input(m, &m->graph, "x", NORI_FLOAT, "2 3");
    make_input(m, &m->graph, "c", NORI_BOOL, "");
}

static nori_status inlined(make *m, nori__ir **ir, nori_error *err)
{
    *ir = make_ir(m);
    nori__resolve(*ir);
    return nori__inline_functions(*ir, err);
}

static nori__node *find_op(nori__ir *ir, const char *op)
{
    nori__node *found = NULL;
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            found = nori__same(n->op_type, op) ? n : found;
            assert_string_not_equal(n->domain, "mine");
        }
    }
    assert_non_null(found);
    return found;
}

/* Nested calls, each under its own operator set, with attributes given, defaulted and left out. */
static void nested_calls_with_attributes(void **state)
{
    (void)state;
    make m;
    begin(&m);
    nori__pb_function *inner = function(&m, "Inner", "a", "b", 9);
    *MAKE_ADD(&m, inner->attr_names) = make_str(&m, "slope");
    nori__pb_node *n = body_node(&m, inner, "", "LeakyRelu", "leaky", "a", "t");
    make_attr(&m, n, "alpha", NORI__ATTR_FLOAT)->ref_name = make_str(&m, "slope");
    n = body_node(&m, inner, "", "Softmax", "soft", "t", "b");
    make_attr(&m, n, "axis", NORI__ATTR_INT)->ref_name = make_str(&m, "nobody_gives");

    nori__pb_function *outer = function(&m, "Outer", "p q", "r", 13);
    nori__pb_attr *k = MAKE_ADD(&m, outer->attrs);
    k->name = make_str(&m, "k");
    k->kind = NORI__ATTR_FLOAT;
    k->f = 0.25f;
    n = body_node(&m, outer, "mine", "Inner", "call", "p", "s");
    make_attr(&m, n, "slope", NORI__ATTR_FLOAT)->ref_name = make_str(&m, "k");
    body_node(&m, outer, "", "Neg", "neg", "s", "r");

    make_node(&m, &m.graph, "mine", "Outer", "first", "x", "y"); /* q is left out */
    make_output(&m, &m.graph, "y", NORI_FLOAT, "2 3");
    n = make_node(&m, &m.graph, "mine", "Outer", "second", "x x", "z");
    make_attr(&m, n, "k", NORI__ATTR_FLOAT)->f = 0.5f;
    make_output(&m, &m.graph, "z", NORI_FLOAT, "2 3");

    nori__ir *ir;
    nori_error err = {0};
    assert_int_equal(inlined(&m, &ir, &err), NORI_OK);
    assert_int_equal(ir->main->node_count, 6);
    nori__node *leaky = ir->main->first;
    assert_string_equal(leaky->op_type, "LeakyRelu");
    assert_float_equal(nori__attr_f(leaky, "alpha", 0), 0.25f, 0);
    assert_int_equal(leaky->version, 6);
    assert_true(nori__node_is(leaky, NORI__OP_ONNX_LeakyRelu));
    assert_true(NORI__IR_HAS(ir, NORI__OP_ONNX_Conv, NORI__OP_ONNX_LeakyRelu));
    assert_false(NORI__IR_HAS(ir, NORI__OP_ONNX_Conv, NORI__OP_ONNX_Gemm));
    nori__node *soft = leaky->next;
    assert_int_equal(soft->version, 1); /* under opset 9, not the model's 18 */
    assert_int_equal(soft->attr_count, 0);
    assert_string_equal(soft->name, "first/call/soft");
    assert_string_equal(soft->next->op_type, "Neg");
    assert_ptr_equal(soft->next->outputs[0], ir->main->outputs[0]);
    assert_string_equal(ir->main->outputs[0]->name, "y");
    assert_float_equal(nori__attr_f(soft->next->next, "alpha", 0), 0.5f, 0);
    assert_int_equal(ir->main->inputs[0]->uses, 2);
    nori__ir_free(ir);
    make_end(&m);
}

/* A body with a subgraph that reads the function's input, called from inside a subgraph. */
static void bodies_with_subgraphs(void **state)
{
    (void)state;
    make m;
    begin(&m);
    nori__pb_function *f = function(&m, "Maybe", "a cond", "b", 18);
    nori__pb_node *n = body_node(&m, f, "", "If", "if", "cond", "b");
    nori__pb_graph *then = make_attr_graph(&m, n, "then_branch");
    make_node(&m, then, "", "Abs", "abs", "a", "t");
    make_output(&m, then, "t", NORI_FLOAT, NULL);
    nori__pb_graph *other = make_attr_graph(&m, n, "else_branch");
    make_output(&m, other, "a", NORI_FLOAT, NULL);

    nori__pb_node *loop = make_node(&m, &m.graph, "", "If", "outside", "c", "y");
    nori__pb_graph *body = make_attr_graph(&m, loop, "then_branch");
    make_node(&m, body, "mine", "Maybe", "call", "x c", "v");
    make_output(&m, body, "v", NORI_FLOAT, NULL);
    nori__pb_graph *rest = make_attr_graph(&m, loop, "else_branch");
    make_output(&m, rest, "x", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);

    nori__ir *ir;
    nori_error err = {0};
    assert_int_equal(inlined(&m, &ir, &err), NORI_OK);
    nori__node *abs = find_op(ir, "Abs");
    assert_ptr_equal(abs->inputs[0], ir->main->inputs[0]);
    assert_int_equal(abs->graph->depth, 2);
    assert_int_equal(ir->main->inputs[0]->uses, 3);
    char path[128];
    nori__node_path(abs, path, sizeof(path));
    assert_string_equal(path, "outside > call/if > abs (Abs)");
    size_t graphs = 0;
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        assert_ptr_equal(g->parent ? g->parent_node->graph : NULL, g->parent);
        graphs++;
    }
    assert_int_equal(graphs, 5);

    nori__ir *copy = NULL; /* what was inlined survives a copy */
    assert_int_equal(nori__ir_copy(ir, &copy, &err), NORI_OK);
    nori__ir_free(ir);
    assert_ptr_equal(find_op(copy, "Abs")->inputs[0], copy->main->inputs[0]);
    assert_true(NORI__IR_HAS(copy, NORI__OP_ONNX_Abs)); /* met in a body only */
    nori__ir_free(copy);
    make_end(&m);
}

static void outputs_that_are_inputs(void **state)
{
    (void)state;
    make m;
    begin(&m);
    nori__pb_function *f = function(&m, "Both", "a", "b a b2", 18);
    f->outputs.items[2] = f->outputs.items[0]; /* the same output twice */
    body_node(&m, f, "", "Neg", "", "a", "b");
    make_node(&m, &m.graph, "mine", "Both", "call", "x", "y z w");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "z", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "w", NORI_FLOAT, NULL);
    nori__ir *ir;
    nori_error err = {0};
    assert_int_equal(inlined(&m, &ir, &err), NORI_OK);
    assert_int_equal(ir->main->node_count, 3);
    nori__node *neg = ir->main->first, *z = neg->next, *w = z->next;
    assert_true(nori__node_is(z, NORI__OP_ONNX_Identity));
    assert_ptr_equal(z->inputs[0], ir->main->inputs[0]);
    assert_ptr_equal(w->inputs[0], neg->outputs[0]);
    nori__ir_free(ir);
    make_end(&m);
}

static nori_error fails(make *m)
{
    nori__ir *ir;
    nori_error err = {0};
    nori_status status = inlined(m, &ir, &err);
    assert_int_not_equal(status, NORI_OK);
    assert_int_equal(status, err.status);
    nori__ir_free(ir);
    make_end(m);
    return err;
}

static void what_cannot_end_is_refused(void **state)
{
    (void)state;
    make m;
    begin(&m);
    body_node(&m, function(&m, "Ping", "a", "b", 18), "mine", "Pong", "", "a", "b");
    body_node(&m, function(&m, "Pong", "a", "b", 18), "mine", "Ping", "", "a", "b");
    make_node(&m, &m.graph, "mine", "Ping", "call", "x", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    nori_error err = fails(&m);
    assert_int_equal(err.status, NORI_ERROR_MODEL);
    assert_non_null(strstr(err.message, "'Ping' calls itself, by way of 'Pong'"));

    /* Thirty functions that each call the next one twice: a thousand million nodes. */
    begin(&m);
    for (int i = 0; i < 30; i++) {
        char name[16], next[16];
        snprintf(name, sizeof(name), "F%d", i);
        snprintf(next, sizeof(next), "F%d", i + 1);
        nori__pb_function *f = function(&m, name, "a", "b", 18);
        const char *domain = i < 29 ? "mine" : "";
        body_node(&m, f, domain, i < 29 ? next : "Neg", "", "a", "t");
        body_node(&m, f, domain, i < 29 ? next : "Neg", "", "t", "b");
    }
    make_node(&m, &m.graph, "mine", "F0", "call", "x", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    assert_int_equal(fails(&m).status, NORI_ERROR_LIMIT);

    begin(&m);
    body_node(&m, function(&m, "One", "a", "b", 18), "", "Neg", "", "a", "b");
    make_node(&m, &m.graph, "mine", "One", "call", "x x", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    err = fails(&m);
    assert_int_equal(err.status, NORI_ERROR_MODEL);
    assert_non_null(strstr(err.where, "call (One)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_calls_with_attributes),
        cmocka_unit_test(bodies_with_subgraphs),
        cmocka_unit_test(outputs_that_are_inputs),
        cmocka_unit_test(what_cannot_end_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
