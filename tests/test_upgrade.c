/* test_upgrade.c: old forms of operators in the words of the newest. Each case is one node; the
 * graph afterwards must hold the new form, with the old meaning. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "make_model.h"
#include "ops/resize.h"
#include "ops/resolve.h"
#include "ops/schema.h"

static make m;
static nori__ir *ir;

/* One node "op" under an opset, x: float [2,3,4,5] and whatever else inputs name. */
static nori__pb_node *begin(int64_t opset, const char *op, const char *inputs,
                            const char *outputs)
{
    make_begin(&m, opset);
    make_input(&m, &m.graph, "x", NORI_FLOAT, "2 3 4 5");
    make_input(&m, &m.graph, "b", NORI_FLOAT, "3");
    make_input(&m, &m.graph, "scales", NORI_FLOAT, "4");
    make_input(&m, &m.graph, "at", NORI_INT64, "2 3 4 5");
    make_input(&m, &m.graph, "grid", NORI_FLOAT, "2 6 6 2");
    make_ints(&m, &m.graph, "two", 1, (int64_t[]){2});
    make_ints(&m, &m.graph, "one", 1, (int64_t[]){1});
    nori__pb_node *n = make_node(&m, &m.graph, "", op, "node", inputs, outputs);
    size_t first = strcspn(outputs, " ");
    char name[16] = "";
    memcpy(name, outputs, first);
    make_output(&m, &m.graph, name, NORI_FLOAT, NULL);
    return n;
}

static nori_status upgrade(nori_error *err)
{
    ir = make_ir(&m);
    nori__resolve(ir);
    assert_non_null(ir->main->last->op);
    return nori__upgrade(ir, err);
}

static nori__node *upgraded(void)
{
    nori_error err = {0};
    nori_status s = upgrade(&err);
    if (s != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(s, NORI_OK);
    return ir->main->last;
}

static void end(void)
{
    nori__ir_free(ir);
    make_end(&m);
}

static void has_ints(const nori__node *n, uint32_t input, int rank, int count, const int64_t *want)
{
    assert_true(input < n->input_count);
    const nori_tensor *t = nori__value_const(n->inputs[input]);
    assert_non_null(t);
    assert_int_equal(t->type, NORI_INT64);
    assert_int_equal(t->rank, rank);
    assert_int_equal(t->count, count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(nori__tensor_get_i64(t, i), want[i]);
    }
}

static void has_float(const nori__node *n, uint32_t input, double want)
{
    assert_true(input < n->input_count);
    const nori_tensor *t = nori__value_const(n->inputs[input]);
    assert_non_null(t);
    assert_int_equal(t->type, NORI_FLOAT);
    assert_int_equal(t->count, 1);
    assert_float_equal(nori__tensor_get_f64(t, 0), want, 1e-6);
}

#define INTS(...) NORI__COUNT(((const int64_t[]){__VA_ARGS__})), (const int64_t[]){__VA_ARGS__}

static void axes_become_inputs(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        int64_t opset;
        int version; /* of the newest form */
    } cases[] = {
        {"ReduceSum", 11, 13},  {"ReduceMean", 17, 18}, {"ReduceMax", 1, 20}, {"ReduceL2", 13, 18},
        {"Unsqueeze", 11, 25},
    };
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        make_attr_ints(&m, begin(cases[i].opset, cases[i].op, "x", "y"), "axes",
                       INTS(1, 2));
        nori__node *n = upgraded();
        has_ints(n, 1, 1, 2, (int64_t[]){1, 2});
        assert_null(nori__attr_find(n, "axes"));
        assert_int_equal(n->version, cases[i].version);
        end();
    }
    begin(11, "ReduceSum", "x", "y"); /* all axes stay all axes */
    assert_int_equal(upgraded()->input_count, 1);
    end();
    begin(18, "ReduceMean", "x two", "y"); /* new already */
    assert_int_equal(upgraded()->input_count, 2);
    end();
}

static void lists_become_inputs(void **state)
{
    (void)state;
    nori__pb_node *p = begin(9, "Slice", "x", "y");
    make_attr_ints(&m, p, "starts", INTS(0, 1));
    make_attr_ints(&m, p, "ends", INTS(2, 3));
    make_attr_ints(&m, p, "axes", INTS(2, 3));
    nori__node *n = upgraded();
    has_ints(n, 1, 1, 2, (int64_t[]){0, 1});
    has_ints(n, 2, 1, 2, (int64_t[]){2, 3});
    has_ints(n, 3, 1, 2, (int64_t[]){2, 3});
    assert_int_equal(n->attr_count, 0);
    end();

    p = begin(11, "Split", "x", "y z");
    make_attr_ints(&m, p, "split", INTS(1, 1));
    n = upgraded();
    has_ints(n, 1, 1, 2, (int64_t[]){1, 1});
    assert_null(nori__attr_find(n, "num_outputs"));
    end();
    begin(13, "Split", "x", "y z");
    n = upgraded();
    assert_int_equal(n->input_count, 1);
    assert_int_equal(nori__attr_i(n, "num_outputs", 0), 2);
    end();

    p = begin(1, "Pad", "x", "y");
    make_attr_ints(&m, p, "paddings", INTS(0, 0, 1, 1, 0, 0, 1, 1));
    make_attr(&m, p, "value", NORI__ATTR_FLOAT)->f = 1.5f;
    n = upgraded();
    has_ints(n, 1, 1, 8, (int64_t[]){0, 0, 1, 1, 0, 0, 1, 1});
    has_float(n, 2, 1.5);
    assert_int_equal(nori__value_const(n->inputs[2])->rank, 0);
    end();

    p = begin(1, "Reshape", "x", "y");
    make_attr_ints(&m, p, "shape", INTS(0, -1));
    has_ints(upgraded(), 1, 1, 2, (int64_t[]){0, -1});
    end();

    begin(1, "Tile", "x two one", "y");
    n = upgraded();
    assert_int_equal(n->input_count, 2);
    has_ints(n, 1, 1, 4, (int64_t[]){1, 2, 1, 1});
    end();
}

static void scalars_become_inputs(void **state)
{
    (void)state;
    nori__pb_node *p = begin(6, "Clip", "x", "y");
    make_attr(&m, p, "max", NORI__ATTR_FLOAT)->f = 6;
    nori__node *n = upgraded();
    has_float(n, 1, -FLT_MAX); /* version 6 has defaults, version 1 has none */
    has_float(n, 2, 6);
    end();

    p = begin(1, "Clip", "x", "y");
    make_attr(&m, p, "max", NORI__ATTR_FLOAT)->f = 6;
    n = upgraded();
    assert_null(n->inputs[1]);
    has_float(n, 2, 6);
    end();

    p = begin(1, "TopK", "x", "y i");
    make_attr_int(&m, p, "k", 3);
    n = upgraded();
    has_ints(n, 1, 1, 1, (int64_t[]){3});
    assert_int_equal(n->version, 24);
    end();

    p = begin(7, "Dropout", "x", "y");
    make_attr(&m, p, "ratio", NORI__ATTR_FLOAT)->f = 0.25f;
    has_float(upgraded(), 1, 0.25);
    end();

    begin(17, "DFT", "x", "y");
    n = upgraded();
    assert_null(n->inputs[1]);
    has_ints(n, 2, 0, 1, (int64_t[]){1}); /* the old default, not the new one */
    end();
}

static void broadcasting_by_axis(void **state)
{
    (void)state;
    nori__pb_node *p = begin(6, "Add", "x b", "y");
    make_attr_int(&m, p, "broadcast", 1);
    make_attr_int(&m, p, "axis", 1);
    nori__node *n = upgraded();
    nori__node *u = n->inputs[1]->producer;
    assert_non_null(u);
    assert_true(nori__node_is(u, NORI__OP_ONNX_Unsqueeze));
    assert_int_equal(u->version, 25);
    has_ints(u, 1, 1, 2, (int64_t[]){1, 2}); /* [3] to [3,1,1] */
    assert_string_equal(u->inputs[0]->name, "b");
    assert_int_equal(n->attr_count, 0);
    assert_int_equal(n->version, 14);
    nori_error err = {0};
    assert_int_equal(nori__infer_graph(ir, &err), NORI_OK);
    end();

    p = begin(6, "Mul", "x scales", "y"); /* at the end already, by way of a negative axis */
    m.graph.inputs.items[2].type->shape->dims.items[0].value = 5;
    make_attr_int(&m, p, "broadcast", 1);
    make_attr_int(&m, p, "axis", -1);
    n = upgraded();
    assert_null(n->inputs[1]->producer);
    end();

    p = begin(6, "Add", "x b", "y");
    make_attr_int(&m, p, "broadcast", 1);
    make_attr_int(&m, p, "axis", 4);
    err = (nori_error){0};
    assert_int_equal(upgrade(&err), NORI_ERROR_MODEL);
    assert_string_equal(err.where, "node (Add)");
    end();
}

static void upsampling_is_resizing(void **state)
{
    (void)state;
    nori__pb_node *p = begin(1, "Upsample", "x", "y");
    make_attr(&m, p, "height_scale", NORI__ATTR_FLOAT)->f = 2;
    make_attr(&m, p, "width_scale", NORI__ATTR_FLOAT)->f = 3;
    make_attr_text(&m, p, "mode", "bilinear");
    nori__node *n = upgraded();
    assert_true(nori__node_is(n, NORI__OP_ONNX_Resize));
    const nori_tensor *t = nori__value_const(n->inputs[2]);
    const float want[] = {1, 1, 2, 3};
    assert_memory_equal(t->data, want, sizeof(want));
    assert_null(n->inputs[1]);
    assert_string_equal(nori__attr_s(n, "mode", ""), "linear");
    end();

    for (int i = 0; i < 2; i++) {
        begin(i ? 10 : 9, i ? "Resize" : "Upsample", "x scales", "y");
        n = upgraded();
        assert_true(nori__node_is(n, NORI__OP_ONNX_Resize));
        assert_int_equal(n->version, 19);
        assert_null(n->inputs[1]);
        assert_string_equal(n->inputs[2]->name, "scales");
        assert_int_equal(n->inputs[2]->uses, 1);
        assert_string_equal(nori__attr_s(n, "coordinate_transformation_mode", ""), "asymmetric");
        assert_string_equal(nori__attr_s(n, "nearest_mode", ""),
                            i ? NORI__ROUND_OUTWARD_TEXT : "floor");
        end();
    }
}

static void names_and_defaults(void **state)
{
    (void)state;
    make_attr_text(&m, begin(1, "Cast", "x", "y"), "to", "INT64");
    assert_int_equal(nori__attr_i(upgraded(), "to", 0), NORI_INT64);
    end();
    make_attr_text(&m, begin(1, "Cast", "x", "y"), "to", "INT65");
    nori_error err = {0};
    assert_int_equal(upgrade(&err), NORI_ERROR_MODEL);
    end();

    begin(9, "Scatter", "x at x", "y");
    assert_true(nori__node_is(upgraded(), NORI__OP_ONNX_ScatterElements));
    end();

    make_attr_text(&m, begin(16, "GridSample", "x grid", "y"), "mode", "bicubic");
    assert_string_equal(nori__attr_s(upgraded(), "mode", ""), "cubic");
    end();

    make_attr(&m, begin(1, "GlobalLpPool", "x", "y"), "p", NORI__ATTR_FLOAT)->f = 3;
    assert_int_equal(nori__attr_i(upgraded(), "p", 0), 3);
    end();

    begin(9, "BatchNormalization", "x b b b b", "y mean var");
    nori__node *n = upgraded();
    assert_int_equal(n->output_count, 1);
    assert_int_equal(n->version, 9);
    end();

    begin(11, "Softmax", "x", "y"); /* flattens to two axes: the kernel must see that */
    assert_int_equal(upgraded()->version, 11);
    assert_int_equal(nori__ir_opset(ir, ""), NORI__OPSET_MAX_ONNX);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_become_inputs),    cmocka_unit_test(lists_become_inputs),
        cmocka_unit_test(scalars_become_inputs), cmocka_unit_test(broadcasting_by_axis),
        cmocka_unit_test(upsampling_is_resizing), cmocka_unit_test(names_and_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
