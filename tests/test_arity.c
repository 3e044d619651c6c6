/* Nodes that lack what their version needs, or have more than it takes, are refused when a session
 * is made, each with its path; and steps that read nothing look at no tensor of the step before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "make_model.h"
#include "run_node.h"

static make m;

static nori__pb_node *begin(const char *op, const char *in, const char *out)
{
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "2 3");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    return make_node(&m, &m.graph, "", op, "n", in, out);
}

static void refused(const char *text)
{
    nori_error err = {0};
    nori_session *s = node_session(&m, &err);
    assert_null(s);
    if (err.status != NORI_ERROR_MODEL || !strstr(err.message, text)) {
        print_error("%d %s: %s\n", (int)err.status, err.where, err.message);
    }
    assert_int_equal(err.status, NORI_ERROR_MODEL);
    assert_non_null(strstr(err.message, text));
    assert_non_null(strstr(err.where, "n ("));
    make_end(&m);
}

static void inputs_left_out(void **state)
{
    (void)state;
    begin("Relu", "", "y");
    refused("needs input 0, X");
    begin("Add", "x", "y");
    refused("needs input 1, B");
    begin("Add", "- x", "y");
    refused("needs input 0, A");
    begin("Concat", "", "y");
    refused("");
}

static void too_many(void **state)
{
    (void)state;
    begin("Relu", "x x", "y");
    refused("takes at most 1 inputs, found 2");
    begin("Relu", "x", "y z");
    refused("has at most 1 outputs, found 2");
}

static void attributes(void **state)
{
    (void)state;
    make_attr_ints(&m, begin("ReduceMax", "x", "y"), "keepdims", 1, (int64_t[]){1});
    refused("attribute keepdims of ReduceMax (version 13) must be int, found ints");
    begin("Constant", "", "y");
    refused("no attribute says the constant's value");
}

/* What only data tell, and these do not: the data are wrong, not nori. */
static void sizes_of_no_use(void **state)
{
    (void)state;
    nori_error err = {0};
    make_begin(&m, 13);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "1 1 1 1");
    make_input(&m, &m.graph, "i", NORI_INT64, "1 1 1 1");
    make_input(&m, &m.graph, "s", NORI_INT64, "4");
    make_output(&m, &m.graph, "y", NORI_FLOAT, NULL);
    nori__pb_node *n = make_node(&m, &m.graph, "", "MaxUnpool", "n", "x i s", "y");
    make_attr_ints(&m, n, "kernel_shape", 2, (int64_t[]){2, 2});
    nori_session *s = node_session(&m, &err);
    assert_non_null(s);
    nori_tensor *in[3] = {node_values(NORI_FLOAT, NODE_DIMS(1, 1, 1, 1), (double[]){1}),
                          node_values(NORI_INT64, NODE_DIMS(1, 1, 1, 1), (double[]){0}),
                          node_values(NORI_INT64, NODE_DIMS(4), (double[]){1, 1, -2, 2})};
    nori_tensor *out[1] = {NULL};
    assert_int_equal(nori_session_run(s, (const nori_tensor *const *)in, 3, out, 1, &err),
                     NORI_ERROR_DATA);
    assert_null(out[0]);
    assert_non_null(strstr(err.where, "n ("));
    for (int i = 0; i < 3; i++) {
        nori_tensor_free(in[i]);
    }
    nori_session_free(s);
    make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_left_out),
        cmocka_unit_test(too_many),
        cmocka_unit_test(attributes),
        cmocka_unit_test(sizes_of_no_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
