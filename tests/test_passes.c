/* test_passes.c: rewrites keep graphs valid and results the same. Every case runs at each level
 * and must agree with level 0; structure is looked at where a pass has something to show. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "make_model.h"
#include "nori/nori.h"
#include "passes/passes.h"

static uint32_t seed = 1;

static uint32_t any(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static void float_const(make *m, const char *name, size_t rank, const int64_t *dims)
{
    nori__pb_tensor *t = MAKE_ADD(m, m->graph.initializers);
    t->name = make_str(m, name);
    t->data_type = NORI_FLOAT;
    size_t count = 1;
    for (size_t d = 0; d < rank; d++) {
        *MAKE_ADD(m, t->dims) = dims[d];
        count *= (size_t)dims[d];
    }
    for (size_t i = 0; i < count; i++) {
        *MAKE_ADD(m, t->floats) = (float)any(1000) / 500 - 0.5f;
    }
}
#define FLOATS(m, name, ...)                                               \
    float_const(m, name, NORI__COUNT(((const int64_t[]){__VA_ARGS__})),    \
                (const int64_t[]){__VA_ARGS__})

static void number(make *m, const char *name, float value)
{
    float_const(m, name, 0, NULL);
    m->graph.initializers.items[m->graph.initializers.count - 1].floats.items[0] = value;
}

static void fail_with(const nori_error *err)
{
    print_error("%s: %s\n", err->where, err->message);
    assert_int_equal(err->status, NORI_OK);
}

/* First output of the model for float input x of this shape, at a level. */
static nori_tensor *result(const nori_model *model, int level, int rank, const int64_t *dims)
{
    nori_error err = {0};
    nori_session_options o;
    nori_session_options_default(&o);
    o.level = level;
    o.threads = 1;
    nori_session *session = NULL;
    if (nori_session_create(model, &o, &session, &err) != NORI_OK) {
        fail_with(&err);
    }
    nori_tensor *x = NULL, *y = NULL;
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, rank, dims, &x, &err), NORI_OK);
    float *data = nori_tensor_data(x);
    seed = 99;
    for (int64_t i = 0; i < nori_tensor_elements(x); i++) {
        data[i] = (float)any(2000) / 1000 - 1;
    }
    if (nori_session_run(session, (const nori_tensor *const[]){x}, 1, &y, 1, &err) != NORI_OK) {
        fail_with(&err);
    }
    nori_tensor_free(x);
    nori_session_free(session);
    return y;
}

static void levels_agree(make *m, int rank, const int64_t *dims)
{
    nori_error err = {0};
    nori__text bytes;
    nori_model *model = NULL;
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m->model, &bytes, &err), NORI_OK);
    if (nori_model_load_memory(NULL, bytes.data, bytes.size, NULL, NULL, &model, &err) != NORI_OK) {
        fail_with(&err);
    }
    nori_tensor *want = result(model, 0, rank, dims);
    for (int level = 1; level <= 2; level++) {
        nori_tensor *got = result(model, level, rank, dims);
        assert_int_equal(nori_tensor_type(got), nori_tensor_type(want));
        assert_int_equal(nori_tensor_rank(got), nori_tensor_rank(want));
        assert_int_equal(nori_tensor_elements(got), nori_tensor_elements(want));
        for (int64_t i = 0; i < nori_tensor_elements(want); i++) {
            double a = nori__tensor_get_f64(got, i), b = nori__tensor_get_f64(want, i);
            double most = 1e-5 + 1e-4 * fabs(b);
            if (!(a == b || fabs(a - b) <= most || (isnan(a) && isnan(b)))) {
                print_error("level %d, element %lld: %g, at level 0 %g\n", level, (long long)i, a, b);
                fail();
            }
        }
        nori_tensor_free(got);
    }
    nori_tensor_free(want);
    nori_model_free(model);
    nori__text_free(&bytes);
}

/* The graph after all passes of level 1, for a look at it. */
static nori__ir *optimized(make *m)
{
    nori_error err = {0};
    nori__ir *ir = make_ir(m);
    nori__resolve(ir);
    if (nori__upgrade(ir, &err) != NORI_OK || nori__passes_run(ir, 1, &err) != NORI_OK ||
        nori__ir_verify(ir, &err) != NORI_OK) {
        fail_with(&err);
    }
    return ir;
}

static void has_nodes(make *m, uint32_t count, const char *last)
{
    nori__ir *ir = optimized(m);
    assert_int_equal(ir->main->node_count, count);
    if (last) {
        assert_string_equal(ir->main->last->op_type, last);
        assert_string_equal(ir->main->last->outputs[0]->name, "y");
    }
    nori__ir_free(ir);
}

static void finish(make *m, int rank, const int64_t *dims)
{
    levels_agree(m, rank, dims);
    make_end(m);
}

static void begin(make *m, const char *shape)
{
    make_begin(m, 17);
    make_input(m, &m->graph, "x", NORI_FLOAT, shape);
    make_output(m, &m->graph, "y", NORI_FLOAT, NULL);
}

/* Two rules that once broke a graph together elsewhere. */
static void same_type_cast_before_mul_by_one(void **state)
{
    (void)state;
    make m;
    begin(&m, "2 3");
    number(&m, "one", 1);
    make_attr_int(&m, make_node(&m, &m.graph, "", "Cast", "cast", "x", "c"), "to", NORI_FLOAT);
    make_node(&m, &m.graph, "", "Mul", "mul", "c one", "y");
    nori__ir *ir = optimized(&m);
    assert_int_equal(ir->main->node_count, 1); /* x cannot bear the name y: one node hands it on */
    nori__ir_free(ir);
    finish(&m, 2, (int64_t[]){2, 3});

    begin(&m, "2 3");
    number(&m, "one", 1);
    make_node(&m, &m.graph, "", "Neg", "neg", "x", "n");
    make_attr_int(&m, make_node(&m, &m.graph, "", "Cast", "cast", "n", "c"), "to", NORI_FLOAT);
    make_node(&m, &m.graph, "", "Mul", "mul", "c one", "y");
    has_nodes(&m, 1, "Neg");
    finish(&m, 2, (int64_t[]){2, 3});
}

static void identities(void **state)
{
    (void)state;
    make m;
    begin(&m, "2 3");
    make_ints(&m, &m.graph, "shape", 2, (int64_t[]){2, 3});
    make_ints(&m, &m.graph, "pads", 4, (int64_t[]){0, 0, 0, 0});
    number(&m, "one", 1);
    number(&m, "zero", 0);
    number(&m, "minus", -0.0f);
    make_node(&m, &m.graph, "", "Abs", "", "x", "a");
    make_node(&m, &m.graph, "", "Reshape", "", "a shape", "b");
    make_node(&m, &m.graph, "", "Pad", "", "b pads", "c");
    make_attr_ints(&m, make_node(&m, &m.graph, "", "Transpose", "", "c", "d"), "perm", 2,
                   (int64_t[]){0, 1});
    make_node(&m, &m.graph, "", "Dropout", "", "d", "e");
    make_node(&m, &m.graph, "", "Div", "", "e one", "f");
    make_node(&m, &m.graph, "", "Sub", "", "f zero", "g");
    make_node(&m, &m.graph, "", "Sum", "", "g", "h");
    make_node(&m, &m.graph, "", "Identity", "", "h", "i");
    make_node(&m, &m.graph, "", "Neg", "", "i", "y");
    has_nodes(&m, 2, "Neg");
    finish(&m, 2, (int64_t[]){2, 3});

    begin(&m, "2 3"); /* these change a -0, the shape, or may do so */
    number(&m, "zero", 0);
    number(&m, "minus", -0.0f);
    FLOATS(&m, "wide", 1, 1, 1);
    m.graph.initializers.items[2].floats.items[0] = 1;
    make_node(&m, &m.graph, "", "Add", "", "x zero", "a");
    make_node(&m, &m.graph, "", "Sub", "", "a minus", "b");
    make_node(&m, &m.graph, "", "Mul", "", "b wide", "y");
    has_nodes(&m, 3, "Mul");
    finish(&m, 2, (int64_t[]){2, 3});
}

/* A declared size is a hint: it must not make a Reshape with unknown target vanish. */
static void hints_drop_nothing(void **state)
{
    (void)state;
    make m;
    begin(&m, "N 4");
    make_ints(&m, &m.graph, "to", 2, (int64_t[]){-1, 2});
    make_node(&m, &m.graph, "", "NonZero", "", "x", "z");
    make_node(&m, &m.graph, "", "Shape", "", "z", "s"); /* only running tells */
    make_attr_int(&m, make_node(&m, &m.graph, "", "Cast", "", "s", "f"), "to", NORI_FLOAT);
    make_node(&m, &m.graph, "", "Neg", "", "f", "y");
    nori__pb_value *info = MAKE_ADD(&m, m.graph.value_info);
    make_value(&m, info, "z", NORI_INT64, "2 7"); /* one example's */
    nori__ir *ir = optimized(&m);
    assert_true(ir->main->node_count >= 4);
    nori__ir_free(ir);
    finish(&m, 2, (int64_t[]){3, 4});
}

static void shape_arithmetic_folds(void **state)
{
    (void)state;
    make m;
    begin(&m, "2 3 4");
    make_ints(&m, &m.graph, "i", 1, (int64_t[]){1});
    make_ints(&m, &m.graph, "rest", 1, (int64_t[]){-1});
    make_node(&m, &m.graph, "", "Shape", "", "x", "s");
    make_node(&m, &m.graph, "", "Gather", "", "s i", "d");
    make_attr_int(&m, make_node(&m, &m.graph, "", "Concat", "", "d rest", "t"), "axis", 0);
    make_node(&m, &m.graph, "", "Reshape", "", "x t", "y");
    has_nodes(&m, 1, "Reshape");
    finish(&m, 3, (int64_t[]){2, 3, 4});

    begin(&m, "N 3 4"); /* the axis that is taken is known all the same */
    make_ints(&m, &m.graph, "i", 1, (int64_t[]){1});
    make_ints(&m, &m.graph, "rest", 1, (int64_t[]){-1});
    make_node(&m, &m.graph, "", "Shape", "", "x", "s");
    make_node(&m, &m.graph, "", "Gather", "", "s i", "d");
    make_attr_int(&m, make_node(&m, &m.graph, "", "Concat", "", "d rest", "t"), "axis", 0);
    make_node(&m, &m.graph, "", "Reshape", "", "x t", "y");
    finish(&m, 3, (int64_t[]){5, 3, 4});
}

static void constant_conditions_choose(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        make m;
        begin(&m, "2 3");
        make_ints(&m, &m.graph, "number", 1, (int64_t[]){which});
        make_ints(&m, &m.graph, "none", 0, NULL);
        make_node(&m, &m.graph, "", "Reshape", "", "number none", "n0");
        make_attr_int(&m, make_node(&m, &m.graph, "", "Cast", "", "n0", "c"), "to", NORI_BOOL);
        nori__pb_node *n = make_node(&m, &m.graph, "", "If", "if", "c", "y");
        nori__pb_graph *then = make_attr_graph(&m, n, "then_branch");
        nori__pb_node *deep = make_node(&m, then, "", "If", "deep", "c", "t");
        nori__pb_graph *deeper = make_attr_graph(&m, deep, "then_branch");
        make_node(&m, deeper, "", "Neg", "", "x", "v");
        make_output(&m, deeper, "v", NORI_FLOAT, NULL);
        nori__pb_graph *never = make_attr_graph(&m, deep, "else_branch");
        make_output(&m, never, "x", NORI_FLOAT, NULL);
        make_output(&m, then, "t", NORI_FLOAT, NULL);
        nori__pb_graph *other = make_attr_graph(&m, n, "else_branch");
        make_output(&m, other, "x", NORI_FLOAT, NULL);
        nori__ir *ir = optimized(&m);
        assert_int_equal(ir->main->node_count, 1);
        assert_null(ir->main->next_graph);
        assert_string_equal(ir->main->last->op_type, which ? "Neg" : "Identity");
        nori__ir_free(ir);
        finish(&m, 2, (int64_t[]){2, 3});
    }
}

static void norms_go_into_weights(void **state)
{
    (void)state;
    for (int kind = 0; kind < 6; kind++) {
        make m;
        begin(&m, kind == 5 ? "2 4" : "1 4 5 5");
        const char *bias = kind % 2 ? " b" : "";
        char inputs[16];
        snprintf(inputs, sizeof(inputs), "x w%s", bias);
        FLOATS(&m, "b", 6);
        if (kind == 0 || kind == 1) {
            FLOATS(&m, "w", 6, 4, 3, 3);
        } else if (kind == 2) {
            FLOATS(&m, "w", 6, 2, 3, 3); /* two groups */
        } else if (kind == 3) {
            FLOATS(&m, "w", 4, 6, 2, 2);
        } else if (kind == 4) {
            FLOATS(&m, "w", 4, 3, 2, 2); /* two groups, transposed */
        } else {
            FLOATS(&m, "w", 6, 4);
        }
        static const char *const ops[] = {"Conv", "Conv", "Conv", "ConvTranspose",
                                          "ConvTranspose", "Gemm"};
        nori__pb_node *n = make_node(&m, &m.graph, "", ops[kind], "maker", inputs, "a");
        if (kind == 2 || kind == 4) {
            make_attr_int(&m, n, "group", 2);
        }
        if (kind == 5) {
            make_attr_int(&m, n, "transB", 1);
        }
        FLOATS(&m, "scale", 6);
        FLOATS(&m, "shift", 6);
        FLOATS(&m, "mean", 6);
        FLOATS(&m, "var", 6);
        nori__pb_tensor *var = &m.graph.initializers.items[m.graph.initializers.count - 1];
        for (size_t i = 0; i < var->floats.count; i++) {
            var->floats.items[i] += 1;
        }
        FLOATS(&m, "times", 6);
        if (kind != 5) {
            nori__pb_tensor *t = &m.graph.initializers.items[m.graph.initializers.count - 1];
            *MAKE_ADD(&m, t->dims) = 1; /* [6,1,1] */
            *MAKE_ADD(&m, t->dims) = 1;
        }
        number(&m, "plus", 0.25f);
        make_node(&m, &m.graph, "", "BatchNormalization", "bn", "a scale shift mean var", "c");
        make_node(&m, &m.graph, "", "Mul", "mul", "times c", "d");
        make_node(&m, &m.graph, "", "Add", "add", "d plus", "y");
        has_nodes(&m, 1, ops[kind]);
        finish(&m, kind == 5 ? 2 : 4,
               kind == 5 ? (int64_t[]){2, 4, 0, 0} : (int64_t[]){1, 4, 5, 5});
    }
}

static void weights_stay_where_they_must(void **state)
{
    (void)state;
    make m;
    begin(&m, "1 4 5 5"); /* a map of its own for each place, and a second reader */
    FLOATS(&m, "w", 6, 4, 3, 3);
    FLOATS(&m, "places", 1, 1, 3, 3);
    make_node(&m, &m.graph, "", "Conv", "", "x w", "a");
    make_node(&m, &m.graph, "", "Mul", "", "a places", "y");
    has_nodes(&m, 2, "Mul");
    finish(&m, 4, (int64_t[]){1, 4, 5, 5});

    begin(&m, "1 4 5 5");
    FLOATS(&m, "w", 6, 4, 3, 3);
    number(&m, "two", 2);
    make_node(&m, &m.graph, "", "Conv", "", "x w", "a");
    make_node(&m, &m.graph, "", "Mul", "", "a two", "b");
    make_node(&m, &m.graph, "", "Add", "", "a b", "y");
    has_nodes(&m, 3, "Add");
    finish(&m, 4, (int64_t[]){1, 4, 5, 5});

    begin(&m, "1 4 5 5"); /* a division by 0 stays one */
    FLOATS(&m, "w", 6, 4, 3, 3);
    number(&m, "zero", 0);
    make_node(&m, &m.graph, "", "Conv", "", "x w", "a");
    make_node(&m, &m.graph, "", "Div", "", "a zero", "y");
    has_nodes(&m, 2, "Div");
    make_end(&m);
}

/* Random graphs, random orders of passes: valid after each, the same at every level. */
static void random_graphs(void **state)
{
    (void)state;
    static const char *const unary[] = {"Identity", "Neg", "Relu", "Cast", "Dropout", "Reshape",
                                        "Transpose", "Sum", "Abs"};
    static const char *const binary[] = {"Add", "Mul", "Sub", "Div"};
    for (uint32_t round = 0; round < 60; round++) {
        make m;
        seed = round * 7919 + 3;
        begin(&m, "2 2");
        number(&m, "c0", 1);
        number(&m, "c1", 0);
        FLOATS(&m, "c2", 2, 2);
        make_ints(&m, &m.graph, "same", 2, (int64_t[]){2, 2});
        const char *names[] = {"x", "c0", "c1", "c2"};
        char made[16][16];
        uint32_t n_made = 0, count = 3 + any(12);
        for (uint32_t i = 0; i < count; i++) {
            char in[32];
            const char *pick[2];
            for (int k = 0; k < 2; k++) {
                pick[k] = n_made > 0 && any(3) ? made[any(n_made)] : names[any(4)];
            }
            snprintf(made[i], sizeof(made[i]), "v%u", i);
            const char *out = i + 1 == count ? "y" : made[i];
            bool two = any(2);
            const char *op = two ? binary[any(4)] : unary[any(9)];
            bool reshape = nori__same(op, "Reshape");
            /* constants of rank 0 cannot be reshaped to 4 elements */
            const char *first = reshape && n_made == 0 ? "x" : pick[0];
            if (reshape || nori__same(op, "Transpose") || (two && nori__same(op, "Div"))) {
                first = "x";
            }
            snprintf(in, sizeof(in), two ? "%s %s" : reshape ? "%s same" : "%s", first, pick[1]);
            nori__pb_node *n = make_node(&m, &m.graph, "", op, "", in, out);
            if (nori__same(op, "Cast")) {
                make_attr_int(&m, n, "to", NORI_FLOAT);
            }
            if (nori__same(op, "Transpose") && any(2)) {
                make_attr_ints(&m, n, "perm", 2, (int64_t[]){0, 1});
            }
            n_made = i + 1;
        }
        uint32_t kept = seed;
        nori__ir *ir = make_ir(&m);
        nori_error err = {0};
        nori__resolve(ir);
        assert_int_equal(nori__upgrade(ir, &err), NORI_OK);
        size_t passes = 0;
        while (nori__pass_at(passes)) {
            passes++;
        }
        for (int i = 0; i < 12; i++) {
            bool changed = false;
            const nori__pass *p = nori__pass_at(any((uint32_t)passes));
            if (p->run(ir, &changed, &err) != NORI_OK || nori__ir_verify(ir, &err) != NORI_OK ||
                (any(2) && nori__infer_graph(ir, &err) != NORI_OK)) {
                print_error("round %u, pass %s\n", round, p->name);
                fail_with(&err);
            }
        }
        nori__ir_free(ir);
        seed = kept;
        levels_agree(&m, 2, (int64_t[]){2, 2});
        make_end(&m);
    }
}

/* Verifies, and counts what has run; a graph without its last Identity is "broken" when asked. */
typedef struct looker {
    int looks;
    bool needs_identity;
} looker;

static nori_status look(void *user, const nori__pass *pass, nori__ir *ir, nori_error *err)
{
    looker *l = user;
    (void)pass;
    l->looks++;
    NORI__TRY(nori__ir_verify(ir, err));
    for (const nori__node *n = ir->main->first; l->needs_identity && n; n = n->next) {
        if (nori__node_is(n, NORI__OP_ONNX_Identity)) {
            return NORI_OK;
        }
    }
    return l->needs_identity ? nori__fail(err, NORI_ERROR_INTERNAL, "the Identity is gone")
                             : NORI_OK;
}

/* The check is made after every pass, and the error names the one that broke the graph. */
static void the_pass_is_named(void **state)
{
    (void)state;
    make m;
    begin(&m, "2 2");
    make_node(&m, &m.graph, "", "Relu", "", "x", "a");
    make_node(&m, &m.graph, "", "Identity", "", "a", "b");
    make_node(&m, &m.graph, "", "Neg", "", "b", "y");
    for (int needs = 0; needs < 2; needs++) {
        nori_error err = {0};
        looker l = {.needs_identity = needs != 0};
        nori__ir *ir = make_ir(&m);
        nori__resolve(ir);
        assert_int_equal(nori__upgrade(ir, &err), NORI_OK);
        nori_status s = nori__passes_run_checked(ir, 1, look, &l, &err);
        if (needs) {
            assert_int_equal(s, NORI_ERROR_INTERNAL);
            assert_string_equal(err.where, "pass identity");
        } else {
            assert_int_equal(s, NORI_OK);
            assert_true(l.looks >= 5);
        }
        nori__ir_free(ir);
    }
    make_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_type_cast_before_mul_by_one),
        cmocka_unit_test(identities),
        cmocka_unit_test(hints_drop_nothing),
        cmocka_unit_test(shape_arithmetic_folds),
        cmocka_unit_test(constant_conditions_choose),
        cmocka_unit_test(norms_go_into_weights),
        cmocka_unit_test(weights_stay_where_they_must),
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(the_pass_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
