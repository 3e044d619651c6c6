/* test_graph.c: building, ordering, editing and copying of graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "make_model.h"
#include "platform/platform.h"

/* The message of the error that building gives. */
static nori_error build_error(make *m)
{
    nori__ir *ir = NULL;
    nori_error err = {0};
    nori_status status = nori__ir_build(&nori__malloc, &m->model, NULL, &ir, &err);
    assert_int_equal(status, err.status);
    assert_null(ir);
    assert_int_not_equal(err.status, NORI_OK);
    make_end(m);
    return err;
}

static void check_links(const nori__ir *ir)
{
    nori_error err = {0};
    nori_status status = nori__ir_verify(ir, &err);
    if (status != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(status, NORI_OK);
}

static nori__node *node_named(nori__graph *g, const char *name)
{
    nori__node *n = g->first;
    while (n && !nori__same(n->name, name)) {
        n = n->next;
    }
    assert_non_null(n);
    return n;
}

static void orders_what_the_file_does_not(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    make_node(&m, &m.graph, "", "Neg", "third", "b", "c");
    nori__pb_node *n = make_node(&m, &m.graph, "", "If", "second", "cond", "b");
    nori__pb_graph *then = make_attr_graph(&m, n, "then_branch");
    make_node(&m, then, "", "Abs", "inner", "a", "t"); /* a comes later in the file */
    make_output(&m, then, "t", NORI_FLOAT, NULL);
    nori__pb_graph *other = make_attr_graph(&m, n, "else_branch");
    make_output(&m, other, "a", NORI_FLOAT, NULL); /* an outer value as output */
    make_node(&m, &m.graph, "", "Relu", "first", "x", "a");
    make_input(&m, &m.graph, "cond", NORI_BOOL, "");
    make_output(&m, &m.graph, "c", NORI_FLOAT, "1");
    nori__ir *ir = make_ir(&m);
    assert_string_equal(ir->main->first->name, "first");
    assert_string_equal(ir->main->first->next->name, "second");
    assert_string_equal(ir->main->last->name, "third");
    assert_int_equal(nori__value_find(ir->main, "a")->uses, 2);
    char path[128];
    nori__node_path(nori__attr_graph(ir->main->first->next, "then_branch")->first, path,
                    sizeof(path));
    assert_string_equal(path, "second > inner (Abs)");
    check_links(ir);
    nori__ir_free(ir);
    make_end(&m);
}

static void cycles_are_named(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    make_node(&m, &m.graph, "", "Relu", "before", "x", "r");
    make_node(&m, &m.graph, "", "Add", "one", "r c", "a");
    make_node(&m, &m.graph, "", "Neg", "two", "a", "b");
    make_node(&m, &m.graph, "", "Abs", "three", "b", "c");
    make_output(&m, &m.graph, "c", NORI_FLOAT, "1");
    nori_error err = build_error(&m);
    assert_int_equal(err.status, NORI_ERROR_MODEL);
    assert_non_null(strstr(err.message, "one (Add)"));
    assert_non_null(strstr(err.message, "two (Neg)"));
    assert_non_null(strstr(err.message, "three (Abs)"));
    assert_null(strstr(err.message, "before"));
}

static void a_body_that_reads_its_own_result_is_a_cycle(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "cond", NORI_BOOL, "");
    nori__pb_node *n = make_node(&m, &m.graph, "", "If", "choose", "cond", "y");
    nori__pb_graph *then = make_attr_graph(&m, n, "then_branch");
    make_node(&m, then, "", "Abs", "inner", "y", "t");
    make_output(&m, then, "t", NORI_FLOAT, NULL);
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1");
    nori_error err = build_error(&m);
    assert_int_equal(err.status, NORI_ERROR_MODEL);
    assert_non_null(strstr(err.message, "choose (If)"));
}

static void bad_names(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    make_node(&m, &m.graph, "", "Add", "sum", "x nowhere", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1");
    nori_error err = build_error(&m);
    assert_int_equal(err.status, NORI_ERROR_MODEL);
    assert_non_null(strstr(err.message, "nowhere"));
    assert_non_null(strstr(err.where, "sum (Add)"));

    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    make_node(&m, &m.graph, "", "Neg", "again", "x", "x");
    make_output(&m, &m.graph, "x", NORI_FLOAT, "1");
    err = build_error(&m);
    assert_int_equal(err.status, NORI_ERROR_MODEL);
    assert_non_null(strstr(err.message, "'x' is defined more than once"));

    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    make_output(&m, &m.graph, "missing", NORI_FLOAT, "1");
    err = build_error(&m);
    assert_int_equal(err.status, NORI_ERROR_MODEL);
    assert_non_null(strstr(err.message, "missing"));

    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    m.graph.inputs.items[0].type->elem = 999;
    err = build_error(&m);
    assert_int_equal(err.status, NORI_ERROR_MODEL);
    assert_non_null(strstr(err.message, "999"));
}

/* The inner value of a name is meant inside, and the user hears of it. */
static void inner_names_hide_outer_ones(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "n", NORI_INT64, "");
    make_input(&m, &m.graph, "acc", NORI_FLOAT, "1");
    nori__pb_node *n = make_node(&m, &m.graph, "", "Loop", "loop", "n - acc", "y");
    nori__pb_graph *body = make_attr_graph(&m, n, "body");
    make_input(&m, body, "i", NORI_INT64, "");
    make_input(&m, body, "go", NORI_BOOL, "");
    make_input(&m, body, "acc", NORI_FLOAT, "1");
    make_node(&m, body, "", "Neg", "neg", "acc", "out");
    make_output(&m, body, "go", NORI_BOOL, "");
    make_output(&m, body, "out", NORI_FLOAT, "1");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1");
    nori__ir *ir = make_ir(&m);
    nori__graph *inner = nori__attr_graph(ir->main->first, "body");
    assert_ptr_equal(inner->first->inputs[0], inner->inputs[2]);
    assert_int_equal(ir->warnings.count, 1);
    assert_non_null(strstr(ir->warnings.items[0], "'acc'"));
    assert_null(ir->main->first->inputs[1]);
    nori__ir_free(ir);
    make_end(&m);
}

static void initializers_by_depth(make *m)
{
    make_begin(m, 13);
    make_ints(m, &m->graph, "w", 1, (int64_t[]){7});
    make_input(m, &m->graph, "c", NORI_BOOL, "");
    nori__pb_node *n = make_node(m, &m->graph, "", "If", "a", "c", "y");
    nori__pb_graph *g = make_attr_graph(m, n, "then_branch");
    nori__pb_node *loop = make_node(m, g, "", "Loop", "b", "- c", "r");
    nori__pb_graph *body = make_attr_graph(m, loop, "body");
    make_input(m, body, "i", NORI_INT64, "");
    make_input(m, body, "go", NORI_BOOL, "");
    nori__pb_node *deep = make_node(m, body, "", "If", "d", "go", "k");
    nori__pb_graph *last = make_attr_graph(m, deep, "then_branch");
    make_node(m, last, "", "Neg", "neg", "w", "z");
    make_output(m, last, "z", NORI_INT64, "1");
    make_output(m, body, "go", NORI_BOOL, "");
    make_output(m, body, "k", NORI_INT64, "1");
    make_output(m, g, "r", NORI_INT64, "1");
    make_output(m, &m->graph, "y", NORI_INT64, "1");
}

static void bodies_see_outer_initializers_at_any_depth(void **state)
{
    (void)state;
    make m;
    initializers_by_depth(&m);
    nori__ir *ir = make_ir(&m);
    const nori__value *w = nori__value_find(ir->main, "w");
    assert_int_equal(w->uses, 1);
    assert_int_equal(nori__tensor_get_i64(nori__value_const(w), 0), 7);
    assert_int_equal(ir->graphs->next_graph->depth, 1);
    assert_int_equal(ir->main->tail->depth, 3);
    check_links(ir);

    /* A copy is the same and stands alone. */
    nori__ir *copy = NULL;
    nori_error err = {0};
    assert_int_equal(nori__ir_copy(ir, &copy, &err), NORI_OK);
    nori__ir_free(ir);
    check_links(copy);
    nori__graph *deepest = copy->main->tail;
    assert_int_equal(deepest->depth, 3);
    assert_ptr_equal(deepest->first->inputs[0], nori__value_find(copy->main, "w"));
    char path[128];
    nori__node_path(deepest->first, path, sizeof(path));
    assert_string_equal(path, "a > b > d > neg (Neg)");

    /* Removing the node takes all graphs below it away. */
    nori__node_remove(copy->main->first);
    assert_null(copy->main->next_graph);
    assert_ptr_equal(copy->main->tail, copy->main);
    assert_int_equal(nori__value_find(copy->main, "w")->uses, 0);
    assert_int_equal(nori__value_find(copy->main, "c")->uses, 0);
    nori__ir_free(copy);
    make_end(&m);
}

static void listed_weights(make *m, int64_t ir_version)
{
    make_begin(m, 8);
    m->model.ir_version = ir_version;
    make_input(m, &m->graph, "w", NORI_INT64, "1");
    make_input(m, &m->graph, "x", NORI_INT64, "1");
    make_ints(m, &m->graph, "w", 1, (int64_t[]){7});
    make_node(m, &m->graph, "", "Add", "sum", "w x", "y");
    make_output(m, &m->graph, "y", NORI_INT64, "1");
}

static void initializers_that_are_inputs(void **state)
{
    (void)state;
    make m;
    listed_weights(&m, 3);
    nori__ir *ir = make_ir(&m);
    assert_int_equal(ir->main->input_count, 1);
    assert_string_equal(ir->main->inputs[0]->name, "x");
    assert_non_null(nori__value_const(nori__value_find(ir->main, "w")));
    nori__ir_free(ir);
    make_end(&m);

    listed_weights(&m, 4);
    ir = make_ir(&m);
    assert_int_equal(ir->main->input_count, 2);
    assert_string_equal(ir->main->inputs[0]->name, "x");
    assert_string_equal(ir->main->inputs[1]->name, "w");
    assert_null(nori__value_const(ir->main->inputs[1]));
    assert_non_null(ir->main->inputs[1]->constant);
    nori__ir_free(ir);
    make_end(&m);
}

static void opsets_may_be_missing_in_old_files_only(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 0);
    m.model.ir_version = 2;
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    make_output(&m, &m.graph, "x", NORI_FLOAT, "1");
    nori__ir *ir = make_ir(&m);
    assert_int_equal(nori__ir_opset(ir, ""), 1);
    assert_int_equal(nori__ir_opset(ir, "ai.onnx"), 1);
    assert_int_equal(ir->warnings.count, 1);
    nori__ir_free(ir);
    m.model.ir_version = 3;
    assert_int_equal(build_error(&m).status, NORI_ERROR_MODEL);
}

static void sparse_initializers_become_dense(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_ints(&m, &m.graph, "s", 2, (int64_t[]){5, 6});
    nori__pb_sparse *s = MAKE_ADD(&m, m.graph.sparse_initializers);
    s->values = &m.graph.initializers.items[0];
    m.graph.initializers.count = 0;
    nori__pb_tensor indices = {0};
    indices.data_type = NORI_INT64;
    *MAKE_ADD(&m, indices.dims) = 2;
    *MAKE_ADD(&m, indices.dims) = 2;
    const int64_t at[] = {0, 2, 1, 0};
    for (int i = 0; i < 4; i++) {
        *MAKE_ADD(&m, indices.ints) = at[i];
    }
    s->indices = &indices;
    *MAKE_ADD(&m, s->dims) = 2;
    *MAKE_ADD(&m, s->dims) = 3;
    make_output(&m, &m.graph, "s", NORI_INT64, "2 3");
    nori__ir *ir = make_ir(&m);
    const nori_tensor *t = nori__value_const(nori__value_find(ir->main, "s"));
    const int64_t want[] = {0, 0, 5, 6, 0, 0};
    assert_int_equal(t->count, 6);
    assert_memory_equal(t->data, want, sizeof(want));
    nori__ir_free(ir);
    indices.ints.items[1] = 3; /* one past the last column */
    assert_int_equal(build_error(&m).status, NORI_ERROR_MODEL);
}

static void replacing_reaches_into_bodies(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    make_input(&m, &m.graph, "c", NORI_BOOL, "");
    make_node(&m, &m.graph, "", "Identity", "id", "x", "a");
    nori__pb_node *n = make_node(&m, &m.graph, "", "If", "if", "c", "b");
    nori__pb_graph *then = make_attr_graph(&m, n, "then_branch");
    make_node(&m, then, "", "Neg", "neg", "a", "t");
    make_output(&m, then, "t", NORI_FLOAT, "1");
    nori__pb_graph *other = make_attr_graph(&m, n, "else_branch");
    make_output(&m, other, "a", NORI_FLOAT, "1");
    make_node(&m, &m.graph, "", "Add", "add", "a b", "y");
    make_output(&m, &m.graph, "y", NORI_FLOAT, "1");
    nori__ir *ir = make_ir(&m);
    nori__node *id = node_named(ir->main, "id");
    nori__value *x = id->inputs[0], *a = id->outputs[0];
    assert_int_equal(a->uses, 3);
    nori__value_replace(a, x);
    assert_int_equal(a->uses, 0);
    assert_int_equal(x->uses, 4);
    nori__node_remove(id);
    assert_int_equal(x->uses, 3);
    assert_ptr_equal(nori__attr_graph(ir->main->first, "else_branch")->outputs[0], x);
    check_links(ir);

    nori__node *add = ir->main->last;
    assert_true(nori__node_set_int(add, "k", 3));
    assert_true(nori__node_set_int(add, "k", 4));
    assert_int_equal(add->attr_count, 1);
    assert_int_equal(nori__attr_i(add, "k", 0), 4);
    assert_float_equal(nori__attr_f(add, "k", 1.5f), 1.5f, 0);
    nori__node_drop_attr(add, "k");
    assert_int_equal(nori__attr_i(add, "k", 9), 9);
    nori__value *fresh = nori__value_new(ir->main, "a");
    assert_non_null(fresh);
    assert_string_not_equal(fresh->name, "a");
    assert_true(nori__node_set_input(add, 4, fresh));
    assert_int_equal(add->input_count, 5);
    nori_error err = {0};
    assert_int_equal(nori__ir_verify(ir, &err), NORI_ERROR_INTERNAL);
    assert_non_null(strstr(err.message, "that nothing makes"));
    assert_true(nori__node_set_input(add, 4, x));
    check_links(ir);
    x->uses++;
    err = (nori_error){0};
    assert_int_equal(nori__ir_verify(ir, &err), NORI_ERROR_INTERNAL);
    x->uses--;
    nori__ir_free(ir);
    make_end(&m);
}

/* Time must grow with the number of nodes, not faster: building, copying, and replacing every
 * value of a chain whose file order is the worst one. */
static double chain_seconds(int count)
{
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1");
    nori__pb_node *nodes =
        nori__arena_array(&m.arena, (size_t)count, sizeof(*nodes));
    nori__str *names = nori__arena_array(&m.arena, (size_t)count + 1, sizeof(*names));
    assert_non_null(nodes);
    assert_non_null(names);
    names[0] = make_str(&m, "x");
    for (int i = 0; i < count; i++) {
        char name[24];
        snprintf(name, sizeof(name), "v%d", i);
        names[i + 1] = make_str(&m, name);
        nori__pb_node *n = &nodes[count - 1 - i];
        n->op_type = NORI__STR("Identity");
        n->inputs.items = &names[i];
        n->outputs.items = &names[i + 1];
        n->inputs.count = n->outputs.count = 1;
    }
    m.graph.nodes.items = nodes;
    m.graph.nodes.count = (size_t)count;
    char last[24];
    snprintf(last, sizeof(last), "v%d", count - 1);
    make_output(&m, &m.graph, last, NORI_FLOAT, "1");
    uint64_t begin = nori__cpu_ns();
    nori__ir *ir = make_ir(&m), *copy = NULL;
    assert_int_equal(nori__ir_copy(ir, &copy, NULL), NORI_OK);
    for (nori__node *n = copy->main->first, *next; n; n = next) {
        next = n->next;
        nori__value_replace(n->outputs[0], n->inputs[0]);
        nori__node_remove(n);
    }
    double took = (double)(nori__cpu_ns() - begin) / 1e9;
    assert_int_equal(copy->main->node_count, 0);
    assert_ptr_equal(copy->main->outputs[0], copy->main->inputs[0]);
    nori__ir_free(copy);
    nori__ir_free(ir);
    make_end(&m);
    return took;
}

static void long_chains_take_linear_time(void **state)
{
    (void)state;
    double took = chain_seconds(40000);
    if (took >= 1) { /* another look, in case the machine was busy */
        took = chain_seconds(40000);
    }
    assert_true(took < 1);
}

/* Subgraphs nested as deep as the reader takes them cost no stack; one more is refused. */
static nori_status nested(int depth, nori_error *err)
{
    make m;
    make_begin(&m, 13);
    make_input(&m, &m.graph, "c", NORI_BOOL, "");
    nori__pb_graph *g = &m.graph;
    for (int i = 0; i < depth; i++) {
        char out[16];
        snprintf(out, sizeof(out), "y%d", i);
        nori__pb_node *n = make_node(&m, g, "", "If", "", "c", out);
        make_output(&m, g, out, NORI_BOOL, "");
        g = make_attr_graph(&m, n, "then_branch");
    }
    make_output(&m, g, "c", NORI_BOOL, "");
    nori__ir *ir = NULL;
    nori_status status = nori__ir_build(&nori__malloc, &m.model, NULL, &ir, err);
    nori__ir_free(ir);
    make_end(&m);
    return status;
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    nori_error err = {0};
    assert_int_equal(nested(NORI__PB_MAX_NESTING, &err), NORI_OK);
    assert_int_equal(nested(NORI__PB_MAX_NESTING + 1, &err), NORI_ERROR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_what_the_file_does_not),
        cmocka_unit_test(cycles_are_named),
        cmocka_unit_test(a_body_that_reads_its_own_result_is_a_cycle),
        cmocka_unit_test(bad_names),
        cmocka_unit_test(inner_names_hide_outer_ones),
        cmocka_unit_test(bodies_see_outer_initializers_at_any_depth),
        cmocka_unit_test(initializers_that_are_inputs),
        cmocka_unit_test(opsets_may_be_missing_in_old_files_only),
        cmocka_unit_test(sparse_initializers_become_dense),
        cmocka_unit_test(replacing_reaches_into_bodies),
        cmocka_unit_test(long_chains_take_linear_time),
        cmocka_unit_test(nesting_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
