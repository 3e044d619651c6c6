/* The double of NNAPI itself: that it finds what breaks its rules. What it lets pass would not be
 * found in nori either. It is linked in, and called as the provider would call it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "nnapi_double.h"

typedef struct compilation compilation;
typedef struct execution execution;
int ANeuralNetworksModel_create(model **m);
void ANeuralNetworksModel_free(model *m);
int ANeuralNetworksModel_addOperand(model *m, const operand_type *t);
int ANeuralNetworksModel_setOperandValue(model *m, int32_t index, const void *data, size_t size);
int ANeuralNetworksModel_addOperation(model *m, int32_t code, uint32_t n_in, const uint32_t *in,
                                      uint32_t n_out, const uint32_t *out);
int ANeuralNetworksModel_identifyInputsAndOutputs(model *m, uint32_t n_in, const uint32_t *in,
                                                  uint32_t n_out, const uint32_t *out);
int ANeuralNetworksModel_finish(model *m);
int ANeuralNetworksCompilation_create(model *m, compilation **c);
void ANeuralNetworksCompilation_free(compilation *c);
int ANeuralNetworksCompilation_finish(compilation *c);
int ANeuralNetworksExecution_create(compilation *c, execution **e);
void ANeuralNetworksExecution_free(execution *e);
int ANeuralNetworksExecution_setInput(execution *e, int32_t i, const operand_type *t, const void *data,
                                      size_t size);
int ANeuralNetworksExecution_setOutput(execution *e, int32_t i, const operand_type *t, void *data,
                                       size_t size);
int ANeuralNetworksExecution_compute(execution *e);
int ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model *m, int32_t index,
                                                             const channel_type *c);
int nnapi_double_faults(void);
const char *nnapi_double_last(void);
int nnapi_double_live(void);

/* The call is a fault whose text has the word. */
#define FAULT(call, result, word)                                  \
    do {                                                           \
        int before = nnapi_double_faults();                        \
        assert_int_equal(call, result);                            \
        assert_int_equal(nnapi_double_faults(), before + 1);       \
        if (!strstr(nnapi_double_last(), word)) {                  \
            fail_msg("\"%s\" has no %s", nnapi_double_last(), word); \
        }                                                          \
    } while (0)
#define FINE(call) assert_int_equal(call, OK)

enum { WIDTH = 40 }; /* floats: more bytes than are copied */
static float weights[WIDTH];

static uint32_t tensor(model *m, uint32_t rank, const uint32_t *dims)
{
    FINE(ANeuralNetworksModel_addOperand(
        m, &(operand_type){.type = TENSOR_FLOAT32, .rank = rank, .dims = dims}));
    return m->n_operands - 1;
}

static uint32_t whole(model *m, int32_t value)
{
    FINE(ANeuralNetworksModel_addOperand(m, &(operand_type){.type = INT32}));
    FINE(ANeuralNetworksModel_setOperandValue(m, (int32_t)m->n_operands - 1, &value, sizeof(value)));
    return m->n_operands - 1;
}

/* 0: x, 1: weights by reference, 2: activation, 3: y. */
static model *sum(bool connected)
{
    static const uint32_t dims[] = {1, WIDTH};
    model *m;
    FINE(ANeuralNetworksModel_create(&m));
    tensor(m, 2, dims);
    tensor(m, 2, dims);
    FINE(ANeuralNetworksModel_setOperandValue(m, 1, weights, sizeof(weights)));
    whole(m, 1);
    tensor(m, 2, dims);
    if (connected) {
        FINE(ANeuralNetworksModel_addOperation(m, 0, 3, (uint32_t[]){0, 1, 2}, 1, (uint32_t[]){3}));
        FINE(ANeuralNetworksModel_identifyInputsAndOutputs(m, 1, (uint32_t[]){0}, 1, (uint32_t[]){3}));
    }
    return m;
}

static void test_operands(void **state)
{
    static const uint32_t none[] = {2, 0}, two[] = {2, 3};
    model *m;
    (void)state;
    FINE(ANeuralNetworksModel_create(&m));
    FAULT(ANeuralNetworksModel_addOperand(m, &(operand_type){.type = 99}), BAD_DATA, "type 99");
    FAULT(ANeuralNetworksModel_addOperand(m, &(operand_type){.type = INT32, .rank = 1, .dims = two}),
          BAD_DATA, "scalar of rank");
    FAULT(ANeuralNetworksModel_addOperand(m, &(operand_type){.type = TENSOR_FLOAT32}), BAD_DATA, "rank 0");
    FAULT(ANeuralNetworksModel_addOperand(
              m, &(operand_type){.type = TENSOR_FLOAT32, .rank = 2, .dims = none}),
          BAD_DATA, "unknown");
    FAULT(ANeuralNetworksModel_addOperand(
              m, &(operand_type){.type = TENSOR_FLOAT32, .rank = 2, .dims = two, .scale = 1}),
          BAD_DATA, "scale");
    tensor(m, 2, two);
    FAULT(ANeuralNetworksModel_setOperandValue(m, 0, weights, 20), BAD_DATA, "24 bytes");
    FAULT(ANeuralNetworksModel_setOperandValue(m, 7, weights, 24), BAD_DATA, "no operand 7");
    FINE(ANeuralNetworksModel_setOperandValue(m, 0, weights, 24));
    FAULT(ANeuralNetworksModel_setOperandValue(m, 0, weights, 24), BAD_DATA, "has one");
    ANeuralNetworksModel_free(m);
}

static void test_operations(void **state)
{
    static const uint32_t dims[] = {3, WIDTH};
    const uint32_t y[] = {3};
    model *m = sum(false);
    (void)state;
    FAULT(ANeuralNetworksModel_addOperation(m, 9999, 3, (uint32_t[]){0, 1, 2}, 1, y), BAD_DATA, "9999");
    FAULT(ANeuralNetworksModel_addOperation(m, 0, 2, (uint32_t[]){0, 1}, 1, y), BAD_DATA, "number of inputs");
    FAULT(ANeuralNetworksModel_addOperation(m, 0, 3, (uint32_t[]){0, 1, 1}, 1, y), BAD_DATA, "type");
    FAULT(ANeuralNetworksModel_addOperation(m, 0, 3, (uint32_t[]){0, 1, 77}, 1, y), BAD_DATA, "operand 77");
    FAULT(ANeuralNetworksModel_addOperation(m, 0, 3, (uint32_t[]){0, 1, whole(m, 4)}, 1, y), BAD_DATA,
          "activation");
    FAULT(ANeuralNetworksModel_addOperation(m, 0, 3, (uint32_t[]){0, 1, 2}, 1,
                                            (uint32_t[]){tensor(m, 2, dims)}),
          BAD_DATA, "shape");
    FAULT(ANeuralNetworksModel_addOperation(m, 0, 3, (uint32_t[]){0, 0, 2}, 1, (uint32_t[]){1}), BAD_DATA,
          "written twice");
    FINE(ANeuralNetworksModel_addOperation(m, 0, 3, (uint32_t[]){0, 1, 2}, 1, y));
    FAULT(ANeuralNetworksModel_addOperation(m, 0, 3, (uint32_t[]){0, 1, 2}, 1, y), BAD_DATA, "twice");
    ANeuralNetworksModel_free(m);
}

/* Convolutions: filter, bias, pads, layout. */
static void test_windows(void **state)
{
    static const uint32_t x[] = {1, 5, 5, 2}, filter[] = {3, 3, 3, 2}, shallow[] = {3, 3, 3, 1};
    static const uint32_t bias[] = {3}, longer[] = {4}, y[] = {1, 3, 3, 3};
    model *m;
    (void)state;
    FINE(ANeuralNetworksModel_create(&m));
    uint32_t a = tensor(m, 4, x), f = tensor(m, 4, filter), s = tensor(m, 4, shallow);
    uint32_t b = tensor(m, 1, bias), l = tensor(m, 1, longer), out[] = {tensor(m, 4, y)};
    uint32_t zero = whole(m, 0), one = whole(m, 1), three = whole(m, 3), below = whole(m, -1);
    uint32_t in[] = {a, f, b, zero, zero, zero, zero, one, one, zero};
    in[1] = s;
    FAULT(ANeuralNetworksModel_addOperation(m, 3, 10, in, 1, out), BAD_DATA, "depth");
    in[1] = f;
    in[2] = l;
    FAULT(ANeuralNetworksModel_addOperation(m, 3, 10, in, 1, out), BAD_DATA, "bias");
    in[2] = b;
    in[3] = three;
    FAULT(ANeuralNetworksModel_addOperation(m, 3, 10, in, 1, out), BAD_DATA, "as wide as");
    in[3] = below;
    FAULT(ANeuralNetworksModel_addOperation(m, 3, 10, in, 1, out), BAD_DATA, "below 0");
    in[3] = zero;
    in[7] = zero;
    FAULT(ANeuralNetworksModel_addOperation(m, 3, 10, in, 1, out), BAD_DATA, "steps");
    in[7] = one;
    FAULT(ANeuralNetworksModel_addOperation(m, 4, 10, in, 1, out), BAD_DATA, "number of inputs");
    FINE(ANeuralNetworksModel_addOperation(m, 3, 10, in, 1, out));
    ANeuralNetworksModel_free(m);
}

static void test_models(void **state)
{
    compilation *c;
    model *m = sum(false);
    (void)state;
    FAULT(ANeuralNetworksModel_finish(m), BAD_STATE, "not identified");
    FAULT(ANeuralNetworksModel_identifyInputsAndOutputs(m, 1, (uint32_t[]){1}, 1, (uint32_t[]){3}),
          BAD_DATA, "constant");
    FAULT(ANeuralNetworksModel_identifyInputsAndOutputs(m, 1, (uint32_t[]){0}, 1, (uint32_t[]){3}),
          BAD_DATA, "not written");
    ANeuralNetworksModel_free(m);
    m = sum(true);
    FAULT(ANeuralNetworksCompilation_create(m, &c), BAD_STATE, "not finished");
    FINE(ANeuralNetworksModel_finish(m));
    FAULT(ANeuralNetworksModel_finish(m), BAD_STATE, "twice");
    FAULT(ANeuralNetworksModel_addOperand(m, &(operand_type){.type = INT32}), BAD_STATE, "finished");
    ANeuralNetworksModel_free(m);
    m = sum(false); /* operand 0 is read, but nothing gives it */
    FINE(ANeuralNetworksModel_addOperation(m, 0, 3, (uint32_t[]){0, 1, 2}, 1, (uint32_t[]){3}));
    uint32_t more = tensor(m, 2, (uint32_t[]){1, WIDTH});
    FINE(ANeuralNetworksModel_identifyInputsAndOutputs(m, 1, &more, 1, (uint32_t[]){3}));
    FAULT(ANeuralNetworksModel_finish(m), BAD_DATA, "nothing writes");
    ANeuralNetworksModel_free(m);
}

static void test_runs(void **state)
{
    float x[WIDTH] = {1}, y[WIDTH];
    compilation *c;
    execution *e;
    (void)state;
    memset(weights, 0, sizeof(weights));
    model *m = sum(true);
    FINE(ANeuralNetworksModel_finish(m));
    FINE(ANeuralNetworksCompilation_create(m, &c));
    FAULT(ANeuralNetworksExecution_create(c, &e), BAD_STATE, "not finished");
    FINE(ANeuralNetworksCompilation_finish(c));
    FAULT(ANeuralNetworksCompilation_finish(c), BAD_STATE, "twice");
    FINE(ANeuralNetworksExecution_create(c, &e));
    FAULT(ANeuralNetworksExecution_setInput(e, 0, NULL, x, 4), BAD_DATA, "160");
    FAULT(ANeuralNetworksExecution_setInput(e, 1, NULL, x, sizeof(x)), BAD_DATA, "no 1");
    FINE(ANeuralNetworksExecution_setInput(e, 0, NULL, x, sizeof(x)));
    FAULT(ANeuralNetworksExecution_compute(e), BAD_STATE, "output 0 is not set");
    ANeuralNetworksExecution_free(e);
    FINE(ANeuralNetworksExecution_create(c, &e));
    FINE(ANeuralNetworksExecution_setInput(e, 0, NULL, x, sizeof(x)));
    FINE(ANeuralNetworksExecution_setOutput(e, 0, NULL, y, sizeof(y)));
    FINE(ANeuralNetworksExecution_compute(e));
    assert_true(y[0] == 1 && y[1] == 0);
    FAULT(ANeuralNetworksExecution_compute(e), BAD_STATE, "once");
    ANeuralNetworksExecution_free(e);
    weights[3] = 5; /* memory that was given by reference */
    FINE(ANeuralNetworksExecution_create(c, &e));
    FINE(ANeuralNetworksExecution_setInput(e, 0, NULL, x, sizeof(x)));
    FINE(ANeuralNetworksExecution_setOutput(e, 0, NULL, y, sizeof(y)));
    FAULT(ANeuralNetworksExecution_compute(e), BAD_DATA, "has changed");
    ANeuralNetworksExecution_free(e);
    ANeuralNetworksCompilation_free(c);
    ANeuralNetworksModel_free(m);
    assert_int_equal(nnapi_double_live(), 0);
}

/* ---- bytes ---- */

static uint32_t bytes(model *m, int32_t type, float scale, int32_t zero, uint32_t rank, const uint32_t *dims)
{
    FINE(ANeuralNetworksModel_addOperand(
        m, &(operand_type){.type = type, .rank = rank, .dims = dims, .scale = scale, .zero_point = zero}));
    return m->n_operands - 1;
}

#define OPERAND(type_, scale_, zero_) \
    ANeuralNetworksModel_addOperand(  \
        m, &(operand_type){.type = type_, .rank = 2, .dims = two, .scale = scale_, .zero_point = zero_})

static void test_byte_operands(void **state)
{
    static const uint32_t two[] = {2, 3};
    static const float scales[] = {1, 2, 0};
    model *m;
    (void)state;
    FINE(ANeuralNetworksModel_create(&m));
    FAULT(OPERAND(TENSOR_UINT8, 0, 3), BAD_DATA, "scale that is not above 0");
    FAULT(OPERAND(TENSOR_UINT8, 1, 256), BAD_DATA, "no byte");
    FAULT(OPERAND(TENSOR_INT8, 1, -129), BAD_DATA, "no byte");
    FAULT(OPERAND(TENSOR_CHANNELS, 1, 0), BAD_DATA, "scale or zero point");
    FAULT(OPERAND(TENSOR_INT32, 1, 1), BAD_DATA, "of int32");
    setenv("NNAPI_DOUBLE_LEVEL", "29", 1);
    FAULT(OPERAND(TENSOR_INT8, 1, 0), BAD_DATA, "level 30");
    setenv("NNAPI_DOUBLE_LEVEL", "28", 1);
    FAULT(OPERAND(TENSOR_CHANNELS, 0, 0), BAD_DATA, "level 29");
    unsetenv("NNAPI_DOUBLE_LEVEL");
    FINE(OPERAND(TENSOR_CHANNELS, 0, 0));
    FINE(OPERAND(TENSOR_UINT8, 1, 255));
    channel_type c = {1, 3, scales};
    FAULT(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(m, 0, &c), BAD_DATA, "above 0");
    c = (channel_type){1, 2, scales};
    FAULT(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(m, 0, &c), BAD_DATA, "do not fit");
    c = (channel_type){0, 2, scales};
    FAULT(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(m, 1, &c), BAD_DATA, "one scale");
    FINE(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(m, 0, &c));
    ANeuralNetworksModel_free(m);
}

/* A product of [1][2] and [1][2] bytes, with a bias of that scale. */
static int product(model *m, float x_scale, int32_t w_type, float w_scale, float bias_scale, float y_scale)
{
    static const uint32_t line[] = {1, 2}, one[] = {1}, out[] = {1, 1};
    uint32_t in[4] = {bytes(m, TENSOR_UINT8, x_scale, 5, 2, line), bytes(m, w_type, w_scale, 10, 2, line),
                      bytes(m, TENSOR_INT32, bias_scale, 0, 1, one), whole(m, 0)};
    uint32_t y = bytes(m, TENSOR_UINT8, y_scale, 3, 2, out);
    return ANeuralNetworksModel_addOperation(m, 9, 4, in, 1, &y);
}

static void test_byte_rules(void **state)
{
    static const uint32_t line[] = {1, 2}, four[] = {1, 1, 1, 2}, filter[] = {2, 1, 1, 2}, twice[] = {2};
    static const float scales[] = {1, 2};
    model *m;
    (void)state;
    FINE(ANeuralNetworksModel_create(&m));
    FAULT(product(m, 0.5f, TENSOR_UINT8, 0.25f, 0.25f, 1), BAD_DATA, "bias whose scale");
    FAULT(product(m, 0.5f, TENSOR_INT8, 0.25f, 0.125f, 1), BAD_DATA, "another type");
    setenv("NNAPI_DOUBLE_LEVEL", "28", 1);
    FAULT(product(m, 0.5f, TENSOR_UINT8, 0.25f, 0.125f, 0.125f), BAD_DATA, "not above that of the product");
    unsetenv("NNAPI_DOUBLE_LEVEL");
    FINE(product(m, 0.5f, TENSOR_UINT8, 0.25f, 0.125f, 0.125f));
    uint32_t a = bytes(m, TENSOR_UINT8, 0.5f, 5, 2, line), b = bytes(m, TENSOR_UINT8, 0.5f, 6, 2, line);
    uint32_t s = bytes(m, TENSOR_INT8, 0.5f, 5, 2, line), none = whole(m, 0), axis = whole(m, 1);
    uint32_t p = bytes(m, TENSOR_UINT8, 0.25f, 0, 2, line), beta;
    FINE(ANeuralNetworksModel_addOperand(m, &(operand_type){.type = FLOAT32}));
    beta = m->n_operands - 1;
    FINE(ANeuralNetworksModel_setOperandValue(m, (int32_t)beta, &scales[0], 4));
    FAULT(ANeuralNetworksModel_addOperation(m, 19, 1, &a, 1, &b), BAD_DATA, "another scale"); /* RELU */
    FAULT(ANeuralNetworksModel_addOperation(m, 14, 1, &a, 1, &b), BAD_DATA, "1/256");         /* LOGISTIC */
    FAULT(ANeuralNetworksModel_addOperation(m, 28, 1, &a, 1, &b), BAD_DATA, "1/128");         /* TANH */
    FAULT(ANeuralNetworksModel_addOperation(m, 25, 2, (uint32_t[]){a, beta}, 1, &b), BAD_DATA, "1/256");
    FAULT(ANeuralNetworksModel_addOperation(m, 18, 3, (uint32_t[]){a, b, none}, 1, &p), BAD_DATA,
          "not above that of the product");
    FAULT(ANeuralNetworksModel_addOperation(m, 0, 3, (uint32_t[]){a, s, none}, 1, &b), BAD_DATA,
          "another type");
    FAULT(ANeuralNetworksModel_addOperation(m, 30, 3, (uint32_t[]){a, b, none}, 1, &p), BAD_DATA,
          "another type"); /* DIV has no bytes */
    setenv("NNAPI_DOUBLE_LEVEL", "28", 1);
    const uint32_t long_line[] = {1, 4};
    uint32_t joined = bytes(m, TENSOR_UINT8, 0.5f, 5, 2, long_line);
    FAULT(ANeuralNetworksModel_addOperation(m, 2, 3, (uint32_t[]){a, b, axis}, 1, &joined), BAD_DATA,
          "other scales");
    FAULT(ANeuralNetworksModel_addOperation(m, 36, 3, (uint32_t[]){a, b, none}, 1, &p), BAD_DATA,
          "another type"); /* SUB of bytes is of level 29 */
    unsetenv("NNAPI_DOUBLE_LEVEL");
    FINE(ANeuralNetworksModel_addOperation(m, 2, 3, (uint32_t[]){a, b, axis}, 1, &joined));
    /* a filter with scales a channel */
    uint32_t x = bytes(m, TENSOR_UINT8, 0.5f, 5, 4, four), f = bytes(m, TENSOR_CHANNELS, 0, 0, 4, filter);
    uint32_t bias = bytes(m, TENSOR_INT32, 0, 0, 1, twice), scaled = bytes(m, TENSOR_INT32, 1, 0, 1, twice);
    uint32_t y = bytes(m, TENSOR_UINT8, 1, 0, 4, four);
    uint32_t in[10] = {x, f, bias, none, none, none, none, axis, axis, none};
    FAULT(ANeuralNetworksModel_addOperation(m, 3, 10, in, 1, &y), BAD_DATA, "were not given");
    channel_type c = {3, 2, scales};
    FINE(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(m, (int32_t)f, &c));
    FAULT(ANeuralNetworksModel_addOperation(m, 3, 10, in, 1, &y), BAD_DATA, "another dimension");
    c.dim = 0;
    FINE(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(m, (int32_t)f, &c));
    in[2] = scaled;
    FAULT(ANeuralNetworksModel_addOperation(m, 3, 10, in, 1, &y), BAD_DATA, "a bias that has a scale");
    in[2] = bias;
    FINE(ANeuralNetworksModel_addOperation(m, 3, 10, in, 1, &y));
    ANeuralNetworksModel_free(m);
}

/* (x - 5) * 0.5 by (w - 10) * 0.25, bias 7 * 0.125: sums of integers, rounded once, half to even. */
static void test_byte_sums(void **state)
{
    static const struct {
        uint8_t x[2], w[2], y;
        int32_t bias;
    } rows[] = {
        {{6, 5}, {14, 10}, 3 + 2, 0},        /* 4 * 0.125 / 0.25 = 2 */
        {{6, 5}, {15, 10}, 3 + 2, 0},        /* 2.5 */
        {{6, 5}, {17, 10}, 3 + 4, 0},        /* 3.5 */
        {{255, 255}, {255, 255}, 255, 0},    /* beyond */
        {{0, 0}, {255, 255}, 0, 0},          /* below */
        {{5, 5}, {1, 2}, 3 + 4, 7},          /* the bias alone: 3.5 */
        {{255, 0}, {255, 255}, 3 + 12, -61250 + 1225 + 24},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint8_t y = 99;
        compilation *c;
        execution *e;
        model *m;
        FINE(ANeuralNetworksModel_create(&m));
        FINE(product(m, 0.5f, TENSOR_UINT8, 0.25f, 0.125f, 0.25f));
        FINE(ANeuralNetworksModel_setOperandValue(m, 1, rows[i].w, 2));
        FINE(ANeuralNetworksModel_setOperandValue(m, 2, &rows[i].bias, 4));
        FINE(ANeuralNetworksModel_identifyInputsAndOutputs(m, 1, (uint32_t[]){0}, 1, (uint32_t[]){4}));
        FINE(ANeuralNetworksModel_finish(m));
        FINE(ANeuralNetworksCompilation_create(m, &c));
        FINE(ANeuralNetworksCompilation_finish(c));
        FINE(ANeuralNetworksExecution_create(c, &e));
        FINE(ANeuralNetworksExecution_setInput(e, 0, NULL, rows[i].x, 2));
        FINE(ANeuralNetworksExecution_setOutput(e, 0, NULL, &y, 1));
        FINE(ANeuralNetworksExecution_compute(e));
        assert_int_equal(y, rows[i].y);
        ANeuralNetworksExecution_free(e);
        ANeuralNetworksCompilation_free(c);
        ANeuralNetworksModel_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operands),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_byte_operands),
        cmocka_unit_test(test_byte_rules),
        cmocka_unit_test(test_byte_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
