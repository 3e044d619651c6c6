/* test_cpu_fuse.c: what the cpu provider joins, what it must not, and that results stay. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "make_model.h"
#include "model_run.h"
#include "nori/nori.h"
#include "ops/resolve.h"
#include "providers/cpu/cpu_kernels.h"
#include "rewrite_case.h"

/* One node: "Op:inputs:outputs"; attributes by operator, below. */
typedef struct fuse_case {
    const char *what;
    const char *input; /* shape of x */
    const char *nodes[14];
    const char *outputs;  /* names */
    const char *expected; /* operators that are left, in order */
} fuse_case;

static const fuse_case cases[] = {
    {"activation", "1 4 6 6", {"Conv:x w b:c", "Relu:c:y"}, "y", "FusedConv"},
    {"clip", "1 4 6 6", {"Conv:x w b:c", "Clip:c low high:y"}, "y", "FusedConv"},
    {"read twice", "1 4 6 6", {"Conv:x w b:c", "Relu:c:y", "Neg:c:z"}, "y z", "Conv Relu Neg"},
    {"an output", "1 4 6 6", {"Conv:x w b:c", "Relu:c:y"}, "y c", "Conv Relu"},
    {"residual", "1 4 6 6", {"Conv:x w b:c", "Neg:x:n", "Add:n c:s", "Relu:s:y"}, "y",
     "Neg FusedConv"},
    {"twice the same", "1 4 6 6", {"Conv:x w b:c", "Add:c c:y"}, "y", "Conv Add"},
    {"broadcast sum", "1 4 6 6", {"Conv:x w b:c", "Add:c row:y"}, "y", "Conv Add"},
    {"bias", "1 4 6 6", {"Conv:x w:c", "Add:c each:s", "Relu:s:y"}, "y", "FusedConv"},
    {"norm", "1 4 6 6", {"Conv:x w b:c", "BatchNormalization:c b b2 b var:s", "Relu:s:y"}, "y",
     "FusedConv"},
    {"norm without bias", "2 4 6 6", {"Conv:x w:c", "BatchNormalization:c b b2 b var:y"}, "y", "Conv"},
    {"pads", "1 4 6 6", {"Pad:x around:p", "Conv:p w b:c", "Relu:c:y"}, "y", "FusedConv"},
    {"pads, zero said", "1 4 6 6", {"Pad:x around low0:p", "Conv:p w b:y"}, "y", "Conv"},
    {"pads, read twice", "1 4 6 6", {"Pad:x around:p", "Conv:p w b:y", "Neg:p:z"}, "y z",
     "Pad Conv Neg"},
    {"pads with ones", "1 4 6 6", {"Pad:x around one:p", "Conv:p w b:y"}, "y", "Pad Conv"},
    {"pads of channels", "1 3 6 6", {"Pad:x deep:p", "Conv:p w b:y"}, "y", "Pad Conv"},
    {"pads that crop", "1 4 6 6", {"Pad:x crop:p", "Conv:p w b:y"}, "y", "Pad Conv"},
    {"sigmoid gate", "1 4 6 6", {"Conv:x w b:c", "Sigmoid:c:g", "Mul:c g:y"}, "y", "FusedConv"},
    {"gate of another", "1 4 6 6", {"Sigmoid:x:g", "Neg:x:n", "Mul:n g:y"}, "y", "Sigmoid Neg Mul"},
    {"hard gate", "1 4 6 6",
     {"Conv:x w b:c", "Add:c three:a", "Clip:a low0 six:k", "Div:k six:g", "Mul:c g:y"}, "y",
     "FusedConv"},
    {"hard gate, divided last", "1 4 6 6",
     {"Add:x three:a", "Clip:a low0 six:k", "Mul:x k:m", "Div:m six:y"}, "y", "HardSwish"},
    {"gelu", "3 5",
     {"Div:x root2:d", "Erf:d:e", "Add:e one:a", "Mul:x a:m", "Mul:m half:y"}, "y", "Gelu"},
    {"gelu, half first", "3 5",
     {"Div:x root2:d", "Erf:d:e", "Add:e one:a", "Mul:x half:m", "Mul:m a:y"}, "y", "Gelu"},
    {"gelu of another", "3 5",
     {"Div:x root2:d", "Erf:d:e", "Add:e one:a", "Neg:x:n", "Mul:n a:m", "Mul:m half:y"}, "y",
     "Div Erf Add Neg Mul Mul"},
    {"gelu by tanh", "3 5",
     {"Mul:x x:q", "Mul:x q:c", "Mul:c cubes:d", "Add:x d:s", "Mul:s rootpi:u", "Tanh:u:t",
      "Add:t one:a", "Mul:a half:m", "Mul:x m:y"}, "y", "Gelu"},
    {"gelu by tanh, half first", "3 5",
     {"Pow:x three:c", "Mul:cubes c:d", "Add:d x:s", "Mul:rootpi s:u", "Tanh:u:t", "Add:one t:a",
      "Mul:half x:m", "Mul:m a:y"}, "y", "Gelu"},
    {"gelu by tanh, cube in turn", "3 5",
     {"Mul:x cubes:q", "Mul:q x:c", "Mul:x c:d", "Add:x d:s", "Mul:s rootpi:u", "Tanh:u:t",
      "Add:t one:a", "Mul:a half:m", "Mul:x m:y"}, "y", "Gelu"},
    {"gelu by tanh, cube of another", "3 5",
     {"Neg:x:n", "Mul:n n:q", "Mul:n q:c", "Mul:c cubes:d", "Add:x d:s", "Mul:s rootpi:u", "Tanh:u:t",
      "Add:t one:a", "Mul:a half:m", "Mul:x m:y"}, "y", "Neg Mul Mul Mul Add Mul Tanh Add Mul Mul"},
    {"gelu by tanh, square read", "3 5",
     {"Mul:x x:q", "Mul:x q:c", "Mul:c cubes:d", "Add:x d:s", "Mul:s rootpi:u", "Tanh:u:t",
      "Add:t one:a", "Mul:a half:m", "Mul:x m:y", "Neg:q:z"}, "y z",
     "Mul Mul Mul Add Mul Tanh Add Mul Mul Neg"},
    {"layer norm", "3 5",
     {"ReduceMean:x last:m", "Sub:x m:d", "Pow:d two:p", "ReduceMean:p last:v", "Add:v tiny:a",
      "Sqrt:a:r", "Div:d r:q", "Mul:q s5:t", "Add:t t5:y"},
     "y", "LayerNormalization"},
    {"layer norm, read inside", "3 5",
     {"ReduceMean:x last:m", "Sub:x m:d", "Pow:d two:p", "ReduceMean:p last:v", "Add:v tiny:a",
      "Sqrt:a:r", "Div:d r:q", "Mul:q s5:t", "Add:t t5:y", "Neg:d:z"},
     "y z", "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add Neg"},
    {"product and bias", "3 5", {"MatMul:x m57:p", "Add:p t7:s", "Relu:s:y"}, "y", "FusedGemm"},
    {"product of rank 3", "2 3 5", {"MatMul:x m57:p", "Add:p t7:s", "Relu:s:y"}, "y", "Product"},
    {"product and gelu", "2 3 5",
     {"MatMul:x m57:p", "Add:t7 p:s", "Div:s root2:d", "Erf:d:e", "Add:e one:a", "Mul:s a:m",
      "Mul:m half:y"}, "y", "Product"},
    {"product and residual", "2 3 5",
     {"MatMul:x m57:q", "Add:q t7:r", "Neg:r:n", "MatMul:x m57:p", "Add:p t7:s", "Add:n s:t",
      "Sigmoid:t:y"}, "y", "Product Neg Product"},
    {"product read twice", "2 3 5",
     {"MatMul:x m57:p", "Add:p t7:s", "Relu:s:y", "Neg:s:z"}, "y z", "Product Relu Neg"},
    {"product alone", "2 3 5", {"MatMul:x m57:p", "Relu:p:y"}, "y", "MatMul Relu"},
    {"product and row of ones", "2 3 5", {"MatMul:x m57:p", "Add:p one:y"}, "y", "MatMul Add"},
    {"attention", "2 3 5",
     {"Transpose:x:k", "MatMul:x k:s", "Div:s root2:d", "Softmax:d:p", "MatMul:p x:y"}, "y", "Attend"},
    {"attention, scores read", "2 3 5",
     {"Transpose:x:k", "MatMul:x k:s", "Softmax:s:p", "MatMul:p x:y", "Neg:p:z"}, "y z",
     "Transpose MatMul Softmax MatMul Neg"},
    {"attention over heads", "2 7 3 5",
     {"Transpose:x:q", "Mul:q half:r", "Transpose:x:k", "MatMul:r k:s", "Add:s mk:a", "Softmax:a:p",
      "Transpose:x:v", "MatMul:p v:o", "Transpose:o:y"}, "y", "Attend"},
    {"attention, mask of each score", "2 7 3 5",
     {"Transpose:x:q", "Transpose:x:k", "MatMul:q k:s", "Div:s root2:d", "Add:mqk d:a", "Softmax:a:p",
      "Transpose:x:v", "MatMul:p v:o", "Neg:o:y"}, "y", "Attend Neg"},
    {"attention, mask of queries", "2 7 3 5",
     {"Transpose:x:q", "Transpose:x:k", "MatMul:q k:s", "Add:mq s:a", "Softmax:a:p",
      "Transpose:x:v", "MatMul:p v:o", "Transpose:o:kt"}, "kt", "Attend Transpose"},
    {"attention, one query for all of a mask", "2 1 3 5",
     {"Transpose:x:q", "Transpose:x:k", "MatMul:q k:s", "Add:s mq:a", "Softmax:a:p",
      "Transpose:x:v", "MatMul:p v:o", "Transpose:o:y"}, "y", "Attend"},
    {"attention of many rows", "2 70 2 33",
     {"Transpose:x:q", "Transpose:x:k", "Mul:k half:l", "MatMul:q l:s", "Add:s mb:a", "Softmax:a:p",
      "Transpose:x:v", "MatMul:p v:o", "Transpose:o:y"}, "y", "Attend"},
    {"attention, all forbidden", "2 7 3 5",
     {"Transpose:x:q", "Transpose:x:k", "MatMul:q k:s", "Add:s minf:a", "Softmax:a:p",
      "Transpose:x:v", "MatMul:p v:o", "Transpose:o:y"}, "y", "Attend"},
    {"product and matrix", "3 5", {"MatMul:x m57:p", "Add:p m37:y"}, "y", "MatMul Add"},
};

static void floats(make *m, const char *name, const char *shape, const float *values)
{
    nori__pb_tensor *t = MAKE_ADD(m, m->graph.initializers);
    int64_t count = 1;
    uint32_t seed = (uint32_t)strlen(name) * 77 + (uint8_t)name[0];
    t->name = make_str(m, name);
    t->data_type = NORI_FLOAT;
    for (char *end; *shape; shape = *end ? end + 1 : end) {
        int64_t d = strtoll(shape, &end, 10);
        *MAKE_ADD(m, t->dims) = d;
        count *= d;
    }
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        *MAKE_ADD(m, t->floats) = values ? values[0] : (float)(seed >> 8) / 8388608.0f - 1;
    }
}

static void build(make *m, const fuse_case *c)
{
    static const struct {
        const char *name, *shape;
        float value; /* NAN: random */
    } constants[] = {
        {"w", "4 4 3 3", NAN}, {"b", "4", NAN},      {"b2", "4", NAN},    {"var", "4", 0.7f},
        {"each", "1 4 1 1", NAN}, {"row", "6", NAN},  {"low", "", -0.3f},  {"high", "", 0.4f},
        {"low0", "", 0},       {"six", "", 6},       {"three", "", 3},    {"root2", "", 1.4142135f},
        {"cubes", "", 0.044715f}, {"rootpi", "", 0.79788456f},
        {"one", "", 1},        {"half", "", 0.5f},   {"two", "", 2},      {"tiny", "", 1e-5f},
        {"s5", "5", NAN},      {"t5", "5", NAN},     {"m57", "5 7", NAN}, {"t7", "7", NAN},
        {"m37", "3 7", NAN},   {"mk", "7", NAN},      {"mqk", "7 7", NAN}, {"mq", "7 1", NAN},
        {"mb", "2 1 1 70", NAN}, {"minf", "1 7", -INFINITY},
    };
    static const int64_t last[] = {-1}, pads[] = {1, 1, 1, 1};
    static const int64_t axes3[] = {0, 2, 1}, heads[] = {0, 2, 1, 3}, keys[] = {0, 2, 3, 1};
    size_t blanks = 0;
    for (const char *p = c->input; *p; p++) {
        blanks += *p == ' ';
    }
    bool four = blanks == 3;
    make_begin(m, 18);
    make_input(m, &m->graph, "x", NORI_FLOAT, c->input);
    for (size_t i = 0; i < NORI__COUNT(constants); i++) {
        floats(m, constants[i].name, constants[i].shape,
               isnan(constants[i].value) ? NULL : &constants[i].value);
    }
    make_ints(m, &m->graph, "last", 1, last);
    static const int64_t around[] = {0, 0, 0, 2, 0, 0, 1, 3}, deep[] = {0, 0, 0, 0, 0, 1, 0, 0};
    static const int64_t crop[] = {0, 0, 1, -1, 0, 0, 1, 0};
    make_ints(m, &m->graph, "around", 8, around);
    make_ints(m, &m->graph, "deep", 8, deep);
    make_ints(m, &m->graph, "crop", 8, crop);
    for (size_t i = 0; c->nodes[i]; i++) {
        char text[128];
        snprintf(text, sizeof(text), "%s", c->nodes[i]);
        char *in = strchr(text, ':'), *out = strrchr(text, ':');
        *in++ = *out++ = 0;
        nori__pb_node *n = make_node(m, &m->graph, "", text, text, in, out);
        if (nori__same(text, "Conv")) {
            make_attr_ints(m, n, "pads", 4, pads);
        } else if (nori__same(text, "Transpose")) { /* k: keys and their depth change places, too */
            make_attr_ints(m, n, "perm", four ? 4 : 3, !four ? axes3 : *out == 'k' ? keys : heads);
        }
    }
    rewrite_outputs(m, c->outputs, NORI_FLOAT);
}

/* Which operators are left. */
static void check_nodes(make *m, const fuse_case *c)
{
    nori__ir *ir = make_ir(m);
    nori_error err = {0};
    nori__resolve(ir);
    assert_int_equal(nori__infer_graph(ir, &err), NORI_OK);
    assert_int_equal(nori__cpu_fuse_pads(ir, &err), NORI_OK);
    assert_int_equal(nori__cpu_fuse(ir, &err), NORI_OK);
    for (nori__node *n = ir->main->first; n; n = n->next) {
        assert_non_null(n->op);
        for (uint32_t i = 0; i < n->output_count; i++) {
            assert_ptr_equal(n->outputs[i]->producer, n);
        }
    }
    rewrite_left(ir, c->expected, c->what);
    assert_int_equal(nori__infer_graph(ir, &err), NORI_OK);
    nori__ir_free(ir);
}

/* The same results as the reference provider without any pass. */
static void check_results(make *m, const fuse_case *c)
{
    nori_tensor *x = rewrite_input(NORI_FLOAT, c->input), *want[2] = {0};
    size_t n_out = strchr(c->outputs, ' ') ? 2 : 1;
    for (int64_t i = 0; i < x->count; i++) {
        ((float *)x->data)[i] = (float)(i * 37 % 101) / 25.0f - 2;
    }
    model_run(m, "reference", 0, 1, x, want, n_out);
    for (int threads = 1; threads <= 2; threads++) {
        nori_tensor *got[2] = {0};
        model_run(m, "cpu", 2, threads, x, got, n_out);
        for (size_t o = 0; o < n_out; o++) {
            assert_int_equal(got[o]->count, want[o]->count);
            for (int64_t i = 0; i < got[o]->count; i++) {
                double a = nori__tensor_get_f64(got[o], i), b = nori__tensor_get_f64(want[o], i);
                bool near = isnan(b) ? isnan(a) : fabs(a - b) <= 2e-5 * fmax(1, fabs(b));
                if (!near) {
                    print_error("%s: element %d is %g, expected %g\n", c->what, (int)i, a, b);
                }
                assert_true(near);
            }
            nori_tensor_free(got[o]);
        }
    }
    nori_tensor_free(want[0]);
    nori_tensor_free(want[1]);
    nori_tensor_free(x);
}

static void fuse(void **state)
{
    (void)state;
    for (size_t i = 0; i < NORI__COUNT(cases); i++) {
        make m;
        build(&m, &cases[i]);
        check_nodes(&m, &cases[i]);
        check_results(&m, &cases[i]);
        make_end(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fuse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
