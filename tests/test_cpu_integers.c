/* test_cpu_integers.c: quantized graphs on the cpu provider: what is joined into operators on
 * integers, what is not, that results are those of the file's own nodes to a step at most, and that
 * two ways of saying the same give the same bits. */
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
#include "passes/passes.h"
#include "providers/cpu/cpu_kernels.h"
#include "rewrite_case.h"

/* Nodes as "Operator:inputs:outputs:attributes"; Q and D are QuantizeLinear and DequantizeLinear. */
typedef struct int_case {
    const char *what;
    const char *input; /* shape of x */
    const char *nodes[16];
    const char *outputs;  /* names */
    double step;          /* a step of the results; 0: they are floats and near */
    const char *expected; /* operators that are left, in order */
} int_case;

#define X_U8 "Q:x s1 z128:q", "D:q s1 z128:d"
#define X_I8 "Q:x s1 i5:q", "D:q s1 i5:d"
#define W "D:w8 ws wz:w:axis=0", "D:b32 bs:b:axis=0"
#define Y_U8 "Q:c s2 z128:e", "D:e s2 z128:y"
#define PADS "pads=1,1,1,1"
#define AROUND(op) "QuantizeLinear " op " DequantizeLinear"

static const int_case cases[] = {
    {"convolution", "1 4 6 6", {X_U8, W, "Conv:d w b:c:" PADS, Y_U8}, "y", 0.05,
     AROUND("QLinearConv")},
    {"without a bias", "1 4 6 6", {X_U8, W, "Conv:d w:c:" PADS, Y_U8}, "y", 0.05,
     AROUND("QLinearConv")},
    {"with a float bias", "1 4 6 6", {X_U8, W, "Conv:d w bf:c:" PADS, Y_U8}, "y", 0.05,
     AROUND("QLinearConv")},
    {"a float bias too coarse as integer", "1 4 6 6",
     {X_U8, W, "Conv:d w bf:c:" PADS, "Q:c tiny z128:e", "D:e tiny z128:y"}, "y", 0.0001,
     "QuantizeLinear ConvToFloat QuantizeLinear DequantizeLinear"},
    {"weights of bytes, one scale", "2 4 6 6",
     {X_U8, "D:wu s3 uz:w", "Conv:d w:c:strides=2,2", Y_U8}, "y", 0.05, AROUND("QLinearConv")},
    {"signed activations", "1 4 6 6",
     {X_I8, W, "Conv:d w b:c:" PADS, "Q:c s2 i5:e", "D:e s2 i5:y"}, "y", 0.05,
     AROUND("QLinearConv")},
    {"from signed to unsigned", "1 4 6 6", {X_I8, W, "Conv:d w b:c:" PADS, Y_U8}, "y", 0.05,
     AROUND("QLinearConv")},
    {"no zero points", "1 4 6 6",
     {"Q:x s1:q", "D:q s1:d", "D:w8 ws:w:axis=0", "Conv:d w:c:" PADS, "Q:c s2:e", "D:e s2:y"}, "y",
     0.05, AROUND("QLinearConv")},
    {"scales along another axis", "1 4 6 6",
     {X_U8, "D:w8 ws wz:w:axis=1", "Conv:d w:c:" PADS, Y_U8}, "y", 0.05,
     "QuantizeLinear DequantizeLinear Conv QuantizeLinear DequantizeLinear"},
    {"Relu by saturation", "1 4 6 6",
     {X_U8, W, "Conv:d w b:r:" PADS, "Relu:r:c", "Q:c s2 z0:e", "D:e s2 z0:y"}, "y", 0.05,
     AROUND("QLinearConv")},
    {"Relu by table", "1 4 6 6", {X_U8, W, "Conv:d w b:r:" PADS, "Relu:r:c", Y_U8}, "y", 0.05,
     AROUND("QLinearConv Table")},
    {"Clip by table", "1 4 6 6",
     {X_U8, W, "Conv:d w b:r:" PADS, "Clip:r low0 six:c", "Q:c s2 z7:e", "D:e s2 z7:y"}, "y", 0.05,
     AROUND("QLinearConv Table")},
    {"an output between", "1 4 6 6", {X_U8, W, "Conv:d w b:c:" PADS, Y_U8}, "y c", 0.05,
     "QuantizeLinear ConvToFloat QuantizeLinear DequantizeLinear"},
    {"a reader between", "1 4 6 6", {X_U8, W, "Conv:d w b:c:" PADS, "Neg:c:z", Y_U8}, "y z", 0.05,
     "QuantizeLinear ConvToFloat Neg QuantizeLinear DequantizeLinear"},
    {"nothing behind", "1 4 6 6", {X_U8, W, "Conv:d w b:c:" PADS, "Relu:c:y"}, "y", 0,
     "QuantizeLinear ConvToFloat"},
    {"weights alone", "1 4 6 6", {W, "Conv:x w b:y:" PADS}, "y", 0, "Conv"},
    {"16 bits", "1 4 6 6", {"Q:x s4 h0:q", "D:q s4 h0:d", W, "Conv:d w b:c:" PADS, Y_U8}, "y", 0.05,
     "QuantizeLinear DequantizeLinear Conv QuantizeLinear DequantizeLinear"},
    {"shared by two", "1 4 6 6",
     {X_U8, W, "Conv:d w b:c:" PADS, Y_U8, "Conv:d w b:c2:" PADS, "Q:c2 s3 z7:e2",
      "D:e2 s3 z7:z"}, "y z", 0.05,
     "QuantizeLinear QLinearConv DequantizeLinear QLinearConv DequantizeLinear"},
    {"residual sum", "1 4 6 6",
     {X_U8, W, "Conv:d w b:c:" PADS, "Q:c s2 z128:e", "D:e s2 z128:f", "Add:d f:g", "Relu:g:h",
      "Q:h s3 z0:i", "D:i s3 z0:y"}, "y", 0.013, AROUND("QLinearConv QLinearAdd")},
    {"difference, product", "1 4 6 6",
     {X_U8, "Neg:x:n", "Q:n s2 z7:m", "D:m s2 z7:o", "Sub:d o:a", "Q:a s2 z128:c",
      "D:c s2 z128:g", "Mul:g d:h", "Q:h s2 z128:e", "D:e s2 z128:y"}, "y", 0.05,
     "QuantizeLinear Neg QuantizeLinear QLinearAdd QLinearMul DequantizeLinear"},
    {"sum of two types", "1 4 6 6",
     {X_U8, "Q:x s2 i5:m", "D:m s2 i5:o", "Add:d o:c", Y_U8}, "y", 0.05,
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear Add QuantizeLinear "
     "DequantizeLinear"},
    {"largest of a window", "1 4 6 6",
     {X_U8, "MaxPool:d:c:kernel_shape=2,2;strides=2,2", "Q:c s1 z128:e", "D:e s1 z128:y"}, "y", 0.02,
     AROUND("MaxPool")},
    {"largest, other scale", "1 4 6 6",
     {X_I8, "MaxPool:d:c:kernel_shape=3,3;" PADS, "Q:c s2 i5:e", "D:e s2 i5:y"}, "y", 0.05,
     AROUND("MaxPool Table")},
    {"quantized behind what moves", "1 4 6 6",
     {X_U8, W, "Conv:d w b:r:" PADS, "Relu:r:p", "MaxPool:p:t:kernel_shape=2,2;strides=2,2",
      "Transpose:t:f:perm=0,2,3,1", "Reshape:f flat:c", "Q:c s2 z0:e", "D:e s2 z0:y"}, "y", 0.05,
     AROUND("QLinearConv MaxPool Transpose Reshape")},
    {"moved", "1 4 6 6",
     {X_U8, "Transpose:d:t:perm=0,2,3,1", "Slice:t from to:u", "Pad:u pads4:v", "Flatten:v:y"},
     "y", 0.02, AROUND("Transpose Slice Pad Flatten")},
    {"split and joined", "1 4 6 6",
     {X_U8, "Split:d halves:a b:axis=1", "Concat:b a:y:axis=1"}, "y", 0.02,
     AROUND("Split Concat")},
    {"joined from other scales", "1 4 6 6",
     {X_U8, "Q:x s2 z7:m", "D:m s2 z7:o", "Concat:d o:c:axis=1", Y_U8}, "y", 0.05,
     "QuantizeLinear QuantizeLinear QLinearConcat DequantizeLinear"},
    {"larger picture", "1 4 6 6", {X_U8, "Resize:d - double:y:"}, "y", 0.02, AROUND("Resize")},
    {"its shape alone", "1 4 6 6", {X_U8, "Shape:d:n", "Reshape:x n:y"}, "y", 0, "Reshape"},
    {"a pair that changes nothing", "1 4 6 6",
     {X_U8, "Q:d s1 z128:e", "D:e s1 z128:f", "Q:f s1 z128:g", "D:g s1 z128:y"}, "y", 0.02,
     AROUND("")},
    {"another scale", "1 4 6 6", {X_U8, "Q:d s2 z7:e", "D:e s2 z7:y"}, "y", 0.05, AROUND("Table")},
    {"another type", "1 4 6 6", {X_U8, "Q:d s2 i5:e", "D:e s2 i5:y"}, "y", 0.05, AROUND("Table")},
    {"a function", "1 4 6 6", {X_I8, "HardSwish:d:c", Y_U8}, "y", 0.05, AROUND("Table")},
    {"several", "1 4 6 6",
     {X_U8, "Add:d three:a", "Clip:a low0 six:b", "Div:b six:f", "Mul:d f:h", "Tanh:h:c", Y_U8},
     "y", 0.05, AROUND("Table")},
    {"a gate with integers between", "1 4 6 6",
     {X_U8, "Sigmoid:d:a", "Q:a s4 z0:b", "D:b s4 z0:f", "Mul:d f:c", Y_U8}, "y", 0.05,
     AROUND("Table")},
    {"a function of two", "1 4 6 6",
     {X_U8, "Q:x s2 z7:m", "D:m s2 z7:o", "Max:d o:c", Y_U8}, "y", 0.05,
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear Max QuantizeLinear "
     "DequantizeLinear"},
    {"averages", "1 4 6 6",
     {X_U8, "AveragePool:d:a:kernel_shape=3,3;" PADS, "Q:a s2 z7:b", "D:b s2 z7:f",
      "GlobalAveragePool:f:c", "Q:c s3 z7:e", "D:e s3 z7:y"}, "y", 0.013,
     AROUND("QLinearAveragePool QLinearGlobalAveragePool")},
    {"mean over planes", "1 4 6 6",
     {X_I8, "ReduceMean:d planes:c:keepdims=0", "Q:c s2 i5:e", "D:e s2 i5:y"}, "y", 0.05,
     AROUND("QLinearGlobalAveragePool Squeeze")},
    {"softmax", "3 6", {X_U8, "Softmax:d:c:axis=1", "Q:c s4 z0:e", "D:e s4 z0:y"}, "y", 0.004,
     AROUND("QLinearSoftmax")},
    {"product of matrices", "3 6", {X_U8, "D:m8 ms mz:w:axis=1", "MatMul:d w:c", Y_U8}, "y", 0.05,
     AROUND("QLinearMatMul")},
    {"product of two activations", "3 6",
     {X_U8, "Transpose:d:t:perm=1,0", "MatMul:d t:c", "Q:c s2 z7:e", "D:e s2 z7:y"}, "y", 0.05,
     AROUND("Transpose QLinearMatMul")},
    {"product and row", "3 6",
     {X_U8, "D:m8 ms mz:w:axis=1", "MatMul:d w:p", "Add:p mf:c", Y_U8}, "y", 0.05,
     AROUND("QGemm")},
    {"product of more dimensions and row", "2 3 6",
     {X_U8, "D:m8 ms mz:w:axis=1", "MatMul:d w:p", "Add:mf p:c", "Tanh:c:y"}, "y", 0,
     "QuantizeLinear MatMulToFloat"},
    {"turned weights", "3 6",
     {X_I8, "D:mt8 ms mz:w:axis=0", "D:mb32 mbs:b:axis=0", "Gemm:d w b:c:transB=1", Y_U8}, "y", 0.05,
     AROUND("QGemm")},
    {"weights turned by a node", "3 6",
     {X_U8, "D:mt8 ms mz:w:axis=0", "Transpose:w:v:perm=1,0", "MatMul:d v:c", Y_U8}, "y", 0.05,
     AROUND("QLinearMatMul")},
    {"a layer without integers behind", "3 6",
     {X_U8, "D:mt8 ms mz:w:axis=0", "D:mb32 mbs:b:axis=0", "Gemm:d w b:y:transB=1"}, "y", 0,
     "QuantizeLinear MatMulToFloat"},
    {"rows of a table", "3 6",
     {"Cast:x:i:to=7", "Abs:i:k", "D:mt8 ms0:w", "Gather:w k:y"}, "y", 0,
     "Cast Abs Gather DequantizeLinear"},
    {"convolution by range", "1 4 6 6",
     {"DynamicQuantizeLinear:x:q s z", "ConvInteger:q w8 z:i:" PADS, "Cast:i:f:to=1",
      "Mul:s s3:t", "Mul:f t:g", "Add:g each:h", "Relu:h:y"}, "y", 0,
     "DynamicQuantizeLinear Mul ConvToFloat"},
    {"products by range", "3 6",
     {"DynamicQuantizeLinear:x:q s z", "MatMulInteger:q m8 z mz:i", "Cast:i:f:to=1", "Mul:s ms:t",
      "Mul:t f:g", "Add:g mf:y", "MatMulInteger:q m8 z mz:i2", "Cast:i2:f2:to=1", "Mul:f2 t:z2"},
     "y z2", 0, "DynamicQuantizeLinear Mul MatMulToFloat MatMulToFloat"},
    {"sums that are wanted", "1 4 6 6",
     {"DynamicQuantizeLinear:x:q s z", "ConvInteger:q w8 z:i:" PADS, "Cast:i:f:to=1",
      "Mul:s s3:t", "Mul:f t:y"}, "y f", 0,
     "DynamicQuantizeLinear ConvInteger Cast Mul Mul"},
    {"operators on integers", "3 6",
     {"Q:x s1 z128:q", "QLinearSigmoid:q s1 z128 s4 z0:g", "QLinearMul:g s4 z0 q s1 z128 s2 z7:h",
      "QGemm:h s2 z7 mt8 ms mz mb32 s2 z128:e:transB=1", "D:e s2 z128:y"}, "y", 0.05,
     AROUND("Table QLinearMul QGemm")},
};

/* ---- building ---- */

static const struct constant {
    const char *name;
    nori_type type;
    const char *shape;
    double value; /* NAN: random within the type, or in [-1, 1) */
} constants[] = {
    {"s1", NORI_FLOAT, "", 0.02},      {"s2", NORI_FLOAT, "", 0.05},
    {"s3", NORI_FLOAT, "", 0.013},     {"s4", NORI_FLOAT, "", 0.004},
    {"tiny", NORI_FLOAT, "", 0.0001},   {"z128", NORI_UINT8, "", 128},
    {"z0", NORI_UINT8, "", 0},         {"z7", NORI_UINT8, "", 7},
    {"uz", NORI_UINT8, "", 130},       {"i5", NORI_INT8, "", 5},
    {"h0", NORI_INT16, "", 0},         {"w8", NORI_INT8, "4 4 3 3", NAN},
    {"wu", NORI_UINT8, "4 4 3 3", NAN}, {"ws", NORI_FLOAT, "4", 0.0013},
    {"wz", NORI_INT8, "4", 0},         {"b32", NORI_INT32, "4", NAN},
    {"bs", NORI_FLOAT, "4", 0.02 * 0.0013},   {"bf", NORI_FLOAT, "4", NAN},
    {"each", NORI_FLOAT, "1 4 1 1", NAN}, {"m8", NORI_INT8, "6 5", NAN},
    {"mt8", NORI_INT8, "5 6", NAN},    {"ms", NORI_FLOAT, "5", 0.01},
    {"ms0", NORI_FLOAT, "", 0.01},     {"mz", NORI_INT8, "5", 0},
    {"mb32", NORI_INT32, "5", NAN},    {"mbs", NORI_FLOAT, "5", 0.02 * 0.01},
    {"mf", NORI_FLOAT, "5", NAN},      {"low0", NORI_FLOAT, "", 0},
    {"six", NORI_FLOAT, "", 6},        {"three", NORI_FLOAT, "", 3},
};

static double random_of(uint32_t *seed, nori_type type)
{
    *seed = *seed * 1664525 + 1013904223;
    double v = (double)(*seed >> 8) / 8388608.0 - 1;
    return type == NORI_UINT8   ? floor((v + 1) * 128)
           : type == NORI_INT8  ? floor(v * 128)
           : type == NORI_INT32 ? floor(v * 1000)
                                : v;
}

static void add_constant(make *m, const struct constant *c)
{
    nori__pb_tensor *t = MAKE_ADD(m, m->graph.initializers);
    int64_t count = 1;
    uint32_t seed = (uint32_t)strlen(c->name) * 77 + (uint8_t)c->name[1];
    t->name = make_str(m, c->name);
    t->data_type = (int32_t)c->type;
    const char *shape = c->shape;
    for (char *end; *shape; shape = *end ? end + 1 : end) {
        int64_t d = strtoll(shape, &end, 10);
        *MAKE_ADD(m, t->dims) = d;
        count *= d;
    }
    for (int64_t i = 0; i < count; i++) {
        bool scales = count > 1 && c->value > 0 && c->type == NORI_FLOAT;
        double v = isnan(c->value) ? random_of(&seed, c->type) : c->value;
        v *= scales ? 1 + 0.25 * (double)i : 1;
        if (c->type == NORI_FLOAT) {
            *MAKE_ADD(m, t->floats) = (float)v;
        } else {
            *MAKE_ADD(m, t->ints) = (int64_t)v;
        }
    }
}

/* "name=1,2;name=3": a list for pads, strides, kernel_shape, perm; else one integer. */
static void add_attrs(make *m, nori__pb_node *n, char *text)
{
    while (text && *text) {
        char *next = strchr(text, ';'), *value = strchr(text, '=');
        int64_t v[8];
        size_t count = 0;
        if (next) {
            *next++ = 0;
        }
        *value++ = 0;
        for (char *end; *value; value = *end ? end + 1 : end) {
            v[count++] = strtoll(value, &end, 10);
        }
        if (count > 1) {
            make_attr_ints(m, n, text, count, v);
        } else {
            make_attr_int(m, n, text, v[0]);
        }
        text = next;
    }
}

static void add_node(make *m, const char *node)
{
    char text[160], *part[4] = {text, NULL, NULL, NULL};
    snprintf(text, sizeof(text), "%s", node);
    for (int i = 1; i < 4 && part[i - 1]; i++) {
        part[i] = strchr(part[i - 1], ':');
        if (part[i]) {
            *part[i]++ = 0;
        }
    }
    const char *op = nori__same(text, "Q") ? "QuantizeLinear"
                     : nori__same(text, "D") ? "DequantizeLinear"
                                             : text;
    bool ms = strncmp(op, "QLinear", 7) == 0 || nori__same(op, "QGemm");
    add_attrs(m, make_node(m, &m->graph, ms ? "com.microsoft" : "", op, op, part[1], part[2]),
              part[3]);
}

static void build(make *m, const int_case *c)
{
    static const int64_t flat[] = {1, -1}, from[] = {0, 1}, to[] = {1, 5}, halves[] = {1, 3};
    static const int64_t pads[] = {0, 1, 0, 0, 0, 2, 0, 0}, planes[] = {2, 3};
    static const float twice[] = {1, 1, 2, 2};
    make_begin(m, 21);
    make_import(m, "com.microsoft", 1);
    make_input(m, &m->graph, "x", NORI_FLOAT, c->input);
    for (size_t i = 0; i < NORI__COUNT(constants); i++) {
        add_constant(m, &constants[i]);
    }
    make_ints(m, &m->graph, "flat", 2, flat);
    make_ints(m, &m->graph, "from", 2, from);
    make_ints(m, &m->graph, "to", 2, to);
    make_ints(m, &m->graph, "halves", 2, halves);
    make_ints(m, &m->graph, "pads4", 8, pads);
    make_ints(m, &m->graph, "planes", 2, planes);
    make_weights(m, &m->graph, "double", "4", twice);
    for (size_t i = 0; c->nodes[i]; i++) {
        add_node(m, c->nodes[i]);
    }
    rewrite_outputs(m, c->outputs, NORI_FLOAT);
}

/* ---- what is left ---- */

static void check_nodes(make *m, const int_case *c)
{
    nori__ir *ir = make_ir(m);
    nori_error err = {0};
    nori__resolve(ir);
    assert_int_equal(nori__upgrade(ir, &err), NORI_OK);
    assert_int_equal(nori__passes_run(ir, 2, &err), NORI_OK);
    assert_int_equal(nori__cpu_integers(ir, &err), NORI_OK);
    rewrite_left(ir, c->expected, c->what);
    assert_int_equal(nori__ir_verify(ir, &err), NORI_OK);
    nori__ir_free(ir);
}

/* ---- results ---- */

static nori_tensor *input_of(const char *shape, nori_type type)
{
    nori_tensor *x = rewrite_input(type, shape);
    for (int64_t i = 0; i < x->count; i++) {
        nori__tensor_set_f64(x, i, type == NORI_FLOAT ? (double)(i * 37 % 101) / 25.0 - 2
                                                      : (double)(i * 91 % 256));
    }
    return x;
}

/* Near the reference without any pass: by a step here and there, or as floats are. */
static void check_results(make *m, const int_case *c)
{
    nori_tensor *x = input_of(c->input, NORI_FLOAT), *want[2] = {0}, *first[2] = {0};
    size_t n_out = strchr(c->outputs, ' ') ? 2 : 1;
    model_run(m, "reference", 0, 1, x, want, n_out);
    for (int threads = 1; threads <= 2; threads++) {
        nori_tensor *got[2] = {0};
        model_run(m, "cpu", 2, threads, x, got, n_out);
        for (size_t o = 0; o < n_out; o++) {
            int64_t differ = 0;
            assert_int_equal(got[o]->count, want[o]->count);
            for (int64_t i = 0; i < got[o]->count; i++) {
                double a = nori__tensor_get_f64(got[o], i), b = nori__tensor_get_f64(want[o], i);
                double near = 2e-5 * fmax(1, fabs(b));
                differ += fabs(a - b) > near;
                if (!(fabs(a - b) <= c->step + near)) {
                    print_error("%s: element %d is %g, expected %g\n", c->what, (int)i, a, b);
                }
                assert_true(fabs(a - b) <= c->step + near);
            }
            if (differ > 1 + got[o]->count / 50) {
                print_error("%s: %d of %d elements differ\n", c->what, (int)differ,
                            (int)got[o]->count);
            }
            assert_true(differ <= 1 + got[o]->count / 50);
            if (first[o]) {
                assert_memory_equal(first[o]->data, got[o]->data, got[o]->bytes);
                nori_tensor_free(got[o]);
            } else {
                first[o] = got[o];
            }
        }
    }
    for (size_t o = 0; o < 2; o++) {
        nori_tensor_free(first[o]);
        nori_tensor_free(want[o]);
    }
    nori_tensor_free(x);
}

static void join(void **state)
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

/* ---- two ways of saying the same ---- */

/* A small network on bytes from end to end. */
static const int_case qdq = {
    "pairs", "1 4 6 6",
    {"D:x s1 z128:d", W, "Conv:d w b:c:" PADS, "Q:c s2 z128:e", "D:e s2 z128:f", "Add:d f:g",
     "Q:g s2 z7:h", "D:h s2 z7:i", "Sigmoid:i:j", "Q:j s4 z0:k", "D:k s4 z0:l", "Mul:i l:o",
     "Q:o s2 z7:p"},
    "p", 0, ""};
static const char *const more[] = {"D:p s2 z7:r", "GlobalAveragePool:r:s", "Q:s s3 z7:t",
                                   "D:t s3 z7:u", "Flatten:u:v", "D:mt4 ms mz:n:axis=0",
                                   "D:mb32 nbs:a:axis=0", "Gemm:v n a:ya:transB=1", "Q:ya s3 z128:y"};
static const int_case qlinear = {
    "operators", "1 4 6 6",
    {"QLinearConv:x s1 z128 w8 ws wz s2 z128 b32:e:" PADS,
     "QLinearAdd:x s1 z128 e s2 z128 s2 z7:h", "QLinearSigmoid:h s2 z7 s4 z0:k",
     "QLinearMul:h s2 z7 k s4 z0 s2 z7:p"},
    "p", 0, ""};
static const char *const qlinear_more[] = {"QLinearGlobalAveragePool:p s2 z7 s3 z7:t",
                                           "Flatten:t:v",
                                           "QGemm:v s3 z7 mt4 ms mz mb32 s3 z128:y:transB=1"};

static nori_tensor *bytes_of(const int_case *c, const char *const *rest, size_t count,
                             const char *output, const char *provider, int level, int threads)
{
    static const struct constant mt4 = {"mt4", NORI_INT8, "5 4", NAN};
    static const struct constant nbs = {"nbs", NORI_FLOAT, "5", 0.013 * 0.01};
    make m;
    nori_tensor *x = input_of(c->input, NORI_UINT8), *out = NULL;
    build(&m, c);
    add_constant(&m, &mt4);
    add_constant(&m, &nbs);
    for (size_t i = 0; i < count; i++) {
        add_node(&m, rest[i]);
    }
    /* QLinearConv is ai.onnx's; bytes go in and come out. */
    for (size_t i = 0; i < m.graph.nodes.count; i++) {
        nori__pb_node *n = &m.graph.nodes.items[i];
        if (n->op_type.n == 11 && memcmp(n->op_type.p, "QLinearConv", 11) == 0) {
            n->domain = make_str(&m, "");
        }
    }
    m.graph.inputs.items[0].type->elem = NORI_UINT8;
    m.graph.outputs.items[0].name = make_str(&m, output);
    m.graph.outputs.items[0].type->elem = NORI_UINT8;
    model_run(&m, provider, level, threads, x, &out, 1);
    nori_tensor_free(x);
    make_end(&m);
    return out;
}

static uint32_t hash_of(const nori_tensor *t)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < t->bytes; i++) {
        h = (h ^ ((const uint8_t *)t->data)[i]) * 16777619u;
    }
    return h;
}

/* The same bytes from both forms, with and without any rewrite, by any number of threads, by plain C and on
 * every level of the CPU: this program is also run with the lower ones. */
static void one_result(void **state)
{
    (void)state;
    static const struct {
        const char *output;
        uint32_t hash;
    } outputs[] = {{"p", 0x46d808b7}, {"y", 0x444c0a95}};
    static const struct {
        const char *provider;
        int level, threads;
    } ways[] = {{"cpu", 2, 1}, {"cpu", 2, 2}, {"cpu", 2, 5}, {"cpu", 0, 1}, {"reference", 0, 1}};
    for (size_t o = 0; o < NORI__COUNT(outputs); o++) {
        for (size_t w = 0; w < NORI__COUNT(ways); w++) {
            /* without a rewrite pairs compute floats between their bytes: a tie may fall either way */
            for (int pairs = 0; pairs < 1 + (ways[w].level > 0); pairs++) {
                nori_tensor *t = bytes_of(pairs ? &qdq : &qlinear, pairs ? more : qlinear_more,
                                          pairs ? NORI__COUNT(more) : NORI__COUNT(qlinear_more),
                                          outputs[o].output, ways[w].provider, ways[w].level,
                                          ways[w].threads);
                if (hash_of(t) != outputs[o].hash) {
                    print_error("%s, %s %d, level %d, %d threads: %#x\n", outputs[o].output,
                                ways[w].provider, pairs, ways[w].level, ways[w].threads, hash_of(t));
                }
                assert_int_equal(hash_of(t), outputs[o].hash);
                nori_tensor_free(t);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(join), cmocka_unit_test(one_result)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
