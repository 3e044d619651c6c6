/* The double of NNAPI itself: that it finds what breaks its rules. What it lets pass would not be
 * found in nori either. It is linked in, and called as the provider would call it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operands),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
