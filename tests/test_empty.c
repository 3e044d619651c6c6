/* Tensors without elements on both providers: an empty inner dimension still gives the bias, an empty
 * output has its shape, rows of nothing go through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "big_model.h"

static nori_tensor *floats(int rank, const int64_t *dims, float value)
{
    nori_tensor *t = NULL;
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, rank, dims, &t, NULL), NORI_OK);
    for (int64_t i = 0; i < nori_tensor_elements(t); i++) {
        ((float *)nori_tensor_data(t))[i] = value + (float)i;
    }
    return t;
}

/* Runs y = op(inputs named a, b, c), matrices of these shapes. */
static nori_tensor *run(const char *provider, const char *op, const char *names,
                        const int64_t dims[][2], size_t n)
{
    nori_error err = {0};
    nori_model *model = NULL;
    nori_session *s = NULL;
    nori_session_options o;
    nori_tensor *in[3] = {NULL}, *out[1] = {NULL};
    big b;
    big_begin(&b);
    big_node(&b, op, names, "y");
    for (size_t i = 0; i < n; i++) {
        char name[2] = {(char)('a' + i), 0};
        big_input(&b, name, NORI_FLOAT, 2, dims[i]);
        in[i] = floats(2, dims[i], (float)i);
    }
    big_output(&b, "y", NORI_FLOAT, 2, (int64_t[]){-1, -1});
    big_finish(&b, 17);
    nori_session_options_default(&o);
    o.providers = provider;
    assert_int_equal(nori_model_load_memory(NULL, b.model.data, b.model.size, NULL, NULL, &model,
                                            &err), NORI_OK);
    assert_int_equal(nori_session_create(model, &o, &s, &err), NORI_OK);
    nori_status status =
        nori_session_run(s, (const nori_tensor *const *)in, n, out, 1, &err);
    if (status != NORI_OK) {
        print_error("%s on %s: %s\n", op, provider, err.message);
    }
    assert_int_equal(status, NORI_OK);
    for (size_t i = 0; i < n; i++) {
        nori_tensor_free(in[i]);
    }
    nori_session_free(s);
    nori_model_free(model);
    big_end(&b);
    return out[0];
}

static const char *const providers[] = {"cpu", "reference"};

static void empty_inner_dimension(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        const int64_t gemm[3][2] = {{2, 0}, {0, 3}, {2, 3}};
        nori_tensor *y = run(providers[p], "Gemm", "a b c", gemm, 3);
        assert_int_equal(nori_tensor_elements(y), 6);
        for (int i = 0; i < 6; i++) { /* the bias: 2, 3, 4 ... */
            assert_true(((const float *)nori_tensor_const_data(y))[i] == 2 + (float)i);
        }
        nori_tensor_free(y);
        y = run(providers[p], "MatMul", "a b", gemm, 2);
        assert_int_equal(nori_tensor_elements(y), 6);
        for (int i = 0; i < 6; i++) {
            assert_true(((const float *)nori_tensor_const_data(y))[i] == 0);
        }
        nori_tensor_free(y);
    }
}

static void empty_output(void **state)
{
    (void)state;
    static const char *const ops[] = {"Gemm", "MatMul", "Add", "Mul", "Relu", "Softmax"};
    for (size_t p = 0; p < 2; p++) {
        for (size_t i = 0; i < 6; i++) {
            const int64_t product[2][2] = {{0, 4}, {4, 3}}, row[2][2] = {{0, 4}, {1, 4}};
            bool two = i < 4;
            nori_tensor *y = run(providers[p], ops[i], two ? "a b" : "a", i < 2 ? product : row,
                                 two ? 2 : 1);
            assert_int_equal(nori_tensor_rank(y), 2);
            assert_int_equal(nori_tensor_dims(y)[0], 0);
            assert_int_equal(nori_tensor_dims(y)[1], i < 2 ? 3 : 4);
            assert_int_equal(nori_tensor_bytes(y), 0);
            nori_tensor_free(y);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_inner_dimension),
        cmocka_unit_test(empty_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
