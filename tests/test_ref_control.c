/* test_ref_control.c: control flow: scope, shadowing, absent trip count and condition, no
 * iteration at all, what changes shape. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "make_model.h"
#include "run_node.h"

static void scalar_init(make *m, nori__pb_graph *g, const char *name, nori_type type, int64_t value)
{
    nori__pb_tensor *t = MAKE_ADD(m, g->initializers);
    t->name = make_str(m, name);
    t->data_type = type;
    if (type == NORI_FLOAT) {
        *MAKE_ADD(m, t->floats) = (float)value;
    } else {
        *MAKE_ADD(m, t->ints) = value;
    }
}

static nori_session *session(make *m)
{
    nori_error err = {0};
    nori_session *s = node_session(m, &err);
    if (!s) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_non_null(s);
    return s;
}

static nori_tensor *one(nori_type type, double v)
{
    return node_values(type, 0, NULL, &v);
}

/* If > Loop > If, the innermost reads an initializer of the main graph. */
static void test_scope(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    nori__pb_graph *g = &m.graph;
    scalar_init(&m, g, "weight", NORI_FLOAT, 3);
    scalar_init(&m, g, "trips", NORI_INT64, 4);
    scalar_init(&m, g, "zero", NORI_FLOAT, 0);
    nori__pb_node *n = make_node(&m, g, "", "If", "if", "c", "o");
    nori__pb_graph *yes = make_attr_graph(&m, n, "then_branch");
    nori__pb_graph *no = make_attr_graph(&m, n, "else_branch");
    make_node(&m, no, "", "Identity", "id", "weight", "no_out");
    make_output(&m, no, "no_out", NORI_FLOAT, "");
    n = make_node(&m, yes, "", "Loop", "loop", "trips - zero", "sum");
    make_output(&m, yes, "sum", NORI_FLOAT, "");
    nori__pb_graph *body = make_attr_graph(&m, n, "body");
    make_input(&m, body, "i", NORI_INT64, "");
    make_input(&m, body, "go", NORI_BOOL, "");
    make_input(&m, body, "acc", NORI_FLOAT, "");
    n = make_node(&m, body, "", "If", "inner", "c", "step");
    nori__pb_graph *yes2 = make_attr_graph(&m, n, "then_branch");
    nori__pb_graph *no2 = make_attr_graph(&m, n, "else_branch");
    make_node(&m, yes2, "", "Add", "a", "acc weight", "y2");
    make_output(&m, yes2, "y2", NORI_FLOAT, "");
    make_node(&m, no2, "", "Identity", "b", "zero", "n2");
    make_output(&m, no2, "n2", NORI_FLOAT, "");
    make_node(&m, body, "", "Identity", "go2", "go", "go_out");
    make_output(&m, body, "go_out", NORI_BOOL, "");
    make_output(&m, body, "step", NORI_FLOAT, "");
    make_input(&m, g, "c", NORI_BOOL, "");
    make_output(&m, g, "o", NORI_FLOAT, "");
    nori_session *s = session(&m);
    for (int c = 0; c < 2; c++) {
        nori_tensor *in = one(NORI_BOOL, c), *o = NULL;
        node_run(s, (const nori_tensor *const[]){in}, 1, &o, 1, NORI_OK);
        node_expect(o, NORI_FLOAT, 0, NULL, (double[]){c ? 12 : 3});
        nori_tensor_free(in);
    }
    nori_session_free(s);
    make_end(&m);
}

/* The body's input has the name of the outer value: 0 + 1 + 2 + 3 + 4, and a warning. */
static void test_shadowing(void **state)
{
    (void)state;
    make m;
    nori_error err = {0};
    make_begin(&m, 13);
    nori__pb_graph *g = &m.graph;
    scalar_init(&m, g, "trips", NORI_INT64, 5);
    nori__pb_node *n = make_node(&m, g, "", "Loop", "loop", "trips - sum", "o");
    nori__pb_graph *body = make_attr_graph(&m, n, "body");
    make_input(&m, body, "i", NORI_INT64, "");
    make_input(&m, body, "go", NORI_BOOL, "");
    make_input(&m, body, "sum", NORI_INT64, "");
    make_node(&m, body, "", "Add", "a", "sum i", "next");
    make_node(&m, body, "", "Identity", "k", "go", "go_out");
    make_output(&m, body, "go_out", NORI_BOOL, "");
    make_output(&m, body, "next", NORI_INT64, "");
    make_input(&m, g, "sum", NORI_INT64, "");
    make_output(&m, g, "o", NORI_INT64, "");
    nori_session *s = session(&m);
    nori_tensor *in = one(NORI_INT64, 0), *o = NULL;
    node_run(s, (const nori_tensor *const[]){in}, 1, &o, 1, NORI_OK);
    node_expect(o, NORI_INT64, 0, NULL, (double[]){10});
    nori_session_free(s);
    nori_tensor_free(in);

    nori__text bytes;
    nori_model *model = NULL;
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m.model, &bytes, &err), NORI_OK);
    assert_int_equal(nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, &err),
                     NORI_OK);
    bool warned = false;
    for (size_t i = 0; nori_model_warning(model, i); i++) {
        warned = warned || strstr(nori_model_warning(model, i), "sum") != NULL;
    }
    assert_true(warned);
    nori_model_free(model);
    nori__text_free(&bytes);
    make_end(&m);
}

/* A loop that doubles x while it is below 100 and gives each value: inputs m, c, x. */
static nori_session *doubling(make *m, const char *inputs)
{
    make_begin(m, 13);
    nori__pb_graph *g = &m->graph;
    nori__pb_node *n = make_node(m, g, "", "Loop", "loop", inputs, "last all");
    nori__pb_graph *body = make_attr_graph(m, n, "body");
    scalar_init(m, body, "limit", NORI_FLOAT, 100);
    make_input(m, body, "i", NORI_INT64, "");
    make_input(m, body, "go", NORI_BOOL, "");
    make_input(m, body, "v", NORI_FLOAT, "");
    make_node(m, body, "", "Add", "a", "v v", "w");
    make_node(m, body, "", "Less", "l", "w limit", "again");
    make_node(m, body, "", "Identity", "k", "w", "seen");
    make_output(m, body, "again", NORI_BOOL, "");
    make_output(m, body, "w", NORI_FLOAT, "");
    make_output(m, body, "seen", NORI_FLOAT, "");
    make_input(m, g, "m", NORI_INT64, "");
    make_input(m, g, "c", NORI_BOOL, "");
    make_input(m, g, "x", NORI_FLOAT, "");
    make_output(m, g, "last", NORI_FLOAT, "");
    make_output(m, g, "all", NORI_FLOAT, "n");
    return session(m);
}

static void test_trips_and_condition(void **state)
{
    (void)state;
    static const struct {
        const char *inputs;
        double trips, cond, last;
        int64_t count;
        double all[5];
    } cases[] = {
        {"m c x", 2, 1, 12, 2, {6, 12}},
        {"m c x", 9, 1, 192, 6, {6, 12, 24, 48, 96}},
        {"m c x", 2, 0, 3, 0, {0}},
        {"m c x", 0, 1, 3, 0, {0}},
        {"m - x", 2, 0, 12, 2, {6, 12}},
        {"- c x", 0, 1, 192, 6, {6, 12, 24, 48, 96}},
        {"- - x", 0, 0, 192, 6, {6, 12, 24, 48, 96}},
        {"m c x", -1, 1, 3, 0, {0}},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        make m;
        nori_session *s = doubling(&m, cases[i].inputs);
        nori_tensor *in[3] = {one(NORI_INT64, cases[i].trips), one(NORI_BOOL, cases[i].cond),
                              one(NORI_FLOAT, 3)};
        double all[6] = {0, 0, 0, 0, 0, 192};
        memcpy(all, cases[i].all, sizeof(cases[i].all));
        for (int again = 0; again < 2; again++) { /* a second run starts afresh */
            nori_tensor *out[2] = {NULL, NULL};
            node_run(s, (const nori_tensor *const *)in, 3, out, 2, NORI_OK);
            node_expect(out[0], NORI_FLOAT, 0, NULL, &cases[i].last);
            node_expect(out[1], NORI_FLOAT, NODE_DIMS(cases[i].count), all);
        }
        for (int k = 0; k < 3; k++) {
            nori_tensor_free(in[k]);
        }
        nori_session_free(s);
        make_end(&m);
    }
}

/* A carried value may grow; a scan output may not. */
static void test_growing(void **state)
{
    (void)state;
    for (int scanned = 0; scanned < 2; scanned++) {
        make m;
        make_begin(&m, 13);
        nori__pb_graph *g = &m.graph;
        scalar_init(&m, g, "trips", NORI_INT64, 3);
        nori__pb_node *n =
            make_node(&m, g, "", "Loop", "loop", "trips - x", scanned ? "o all" : "o");
        nori__pb_graph *body = make_attr_graph(&m, n, "body");
        make_input(&m, body, "i", NORI_INT64, "");
        make_input(&m, body, "go", NORI_BOOL, "");
        make_input(&m, body, "v", NORI_FLOAT, NULL);
        make_attr_int(&m, make_node(&m, body, "", "Concat", "c", "v x", "w"), "axis", 0);
        make_node(&m, body, "", "Identity", "k", "go", "go_out");
        make_node(&m, body, "", "Identity", "k2", "w", "w2");
        make_output(&m, body, "go_out", NORI_BOOL, "");
        make_output(&m, body, "w", NORI_FLOAT, NULL);
        if (scanned) {
            make_output(&m, body, "w2", NORI_FLOAT, NULL);
        }
        make_input(&m, g, "x", NORI_FLOAT, "n");
        make_output(&m, g, "o", NORI_FLOAT, NULL);
        if (scanned) {
            make_output(&m, g, "all", NORI_FLOAT, NULL);
        }
        nori_session *s = session(&m);
        nori_tensor *x = NODE_F(NODE_DIMS(2), 1, 2), *out[2] = {NULL, NULL};
        node_run(s, (const nori_tensor *const[]){x}, 1, out, scanned ? 2 : 1,
                 scanned ? NORI_ERROR_DATA : NORI_OK);
        if (!scanned) {
            node_expect(out[0], NORI_FLOAT, NODE_DIMS(8), (double[]){1, 2, 1, 2, 1, 2, 1, 2});
        }
        assert_null(out[1]);
        nori_tensor_free(x);
        nori_session_free(s);
        make_end(&m);
    }
}

/* Two scan inputs, one from the back along axis 1; output stacked along axis 1, from the back. */
static void test_scan_directions(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    nori__pb_graph *g = &m.graph;
    nori__pb_node *n = make_node(&m, g, "", "Scan", "scan", "start a b", "last all");
    make_attr_int(&m, n, "num_scan_inputs", 2);
    make_attr_ints(&m, n, "scan_input_axes", 2, (int64_t[]){0, -1});
    make_attr_ints(&m, n, "scan_input_directions", 2, (int64_t[]){0, 1});
    make_attr_ints(&m, n, "scan_output_axes", 1, (int64_t[]){1});
    make_attr_ints(&m, n, "scan_output_directions", 1, (int64_t[]){1});
    nori__pb_graph *body = make_attr_graph(&m, n, "body");
    make_input(&m, body, "s", NORI_FLOAT, NULL);
    make_input(&m, body, "p", NORI_FLOAT, NULL);
    make_input(&m, body, "q", NORI_FLOAT, NULL);
    make_node(&m, body, "", "Add", "x", "s p", "t");
    make_node(&m, body, "", "Add", "y", "t q", "u");
    make_node(&m, body, "", "Identity", "z", "u", "v");
    make_output(&m, body, "u", NORI_FLOAT, NULL);
    make_output(&m, body, "v", NORI_FLOAT, NULL);
    make_input(&m, g, "start", NORI_FLOAT, "2");
    make_input(&m, g, "a", NORI_FLOAT, "3 2");
    make_input(&m, g, "b", NORI_FLOAT, "2 3");
    make_output(&m, g, "last", NORI_FLOAT, NULL);
    make_output(&m, g, "all", NORI_FLOAT, NULL);
    nori_session *s = session(&m);
    nori_tensor *in[3] = {NODE_F(NODE_DIMS(2), 0, 100), NODE_F(NODE_DIMS(3, 2), 1, 2, 3, 4, 5, 6),
                          NODE_F(NODE_DIMS(2, 3), 10, 20, 30, 40, 50, 60)};
    nori_tensor *out[2] = {NULL, NULL};
    node_run(s, (const nori_tensor *const *)in, 3, out, 2, NORI_OK);
    /* t=0: +(1,2)+(30,60) = 31,162; t=1: +(3,4)+(20,50) = 54,216; t=2: +(5,6)+(10,40) = 69,262 */
    node_expect(out[0], NORI_FLOAT, NODE_DIMS(2), (double[]){69, 262});
    node_expect(out[1], NORI_FLOAT, NODE_DIMS(2, 3), (double[]){69, 54, 31, 262, 216, 162});
    for (int k = 0; k < 3; k++) {
        nori_tensor_free(in[k]);
    }
    nori_session_free(s);
    make_end(&m);
}

/* Sequences outlive what was put in, and positions are checked. */
static void test_sequence(void **state)
{
    (void)state;
    make m;
    make_begin(&m, 13);
    nori__pb_graph *g = &m.graph;
    scalar_init(&m, g, "first", NORI_INT64, -3);
    make_node(&m, g, "", "Add", "a", "x x", "y");
    make_node(&m, g, "", "SequenceConstruct", "c", "x y", "s0");
    make_node(&m, g, "", "SequenceInsert", "i", "s0 y", "s1");
    make_node(&m, g, "", "SequenceErase", "e", "s1 first", "s2");
    make_node(&m, g, "", "SequenceAt", "t", "s1 at", "o");
    make_attr_int(&m, make_node(&m, g, "", "ConcatFromSequence", "j", "s2", "joined"), "axis", 0);
    make_node(&m, g, "", "SequenceLength", "l", "s2", "n");
    make_input(&m, g, "x", NORI_FLOAT, "2");
    make_input(&m, g, "at", NORI_INT64, "");
    make_output(&m, g, "o", NORI_FLOAT, NULL);
    make_output(&m, g, "joined", NORI_FLOAT, NULL);
    make_output(&m, g, "n", NORI_INT64, NULL);
    nori_session *s = session(&m);
    for (int at = -4; at <= 3; at++) {
        nori_tensor *in[2] = {NODE_F(NODE_DIMS(2), 1, 2), one(NORI_INT64, at)};
        nori_tensor *out[3] = {NULL, NULL, NULL};
        bool fits = at >= -3 && at <= 2;
        node_run(s, (const nori_tensor *const *)in, 2, out, 3, fits ? NORI_OK : NORI_ERROR_DATA);
        nori_tensor_free(in[0]);
        nori_tensor_free(in[1]);
        if (fits) {
            double by = at == 0 || at == -3 ? 1 : 2;
            node_expect(out[0], NORI_FLOAT, NODE_DIMS(2), (double[]){by, 2 * by});
            node_expect(out[1], NORI_FLOAT, NODE_DIMS(4), (double[]){2, 4, 2, 4});
            node_expect(out[2], NORI_INT64, 0, NULL, (double[]){2});
        }
    }
    nori_session_free(s);
    make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scope),           cmocka_unit_test(test_shadowing),
        cmocka_unit_test(test_growing),         cmocka_unit_test(test_trips_and_condition),
        cmocka_unit_test(test_scan_directions), cmocka_unit_test(test_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
