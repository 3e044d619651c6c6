/* test_outlive.c: what a run gives belongs to the caller: it stays when session, model, its mapped
 * file and the inputs are gone, also where the run handed an input or a constant of the model
 * through. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nori/edit.h"
#include "nori/nori.h"
#include "nori/text.h"

/* The model of a text, its constants mapped from a file: nobody but the model holds them. */
static nori_model *mapped(const char *text)
{
    char folder[] = "/tmp/nori_test_outlive_XXXXXX", path[80], data[80];
    nori_model *made = NULL, *model = NULL;
    nori_save_options o;
    nori_error err = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    snprintf(data, sizeof(data), "%s/data", folder);
    assert_int_equal(nori_model_from_text(NULL, text, strlen(text), NULL, &made, &err), NORI_OK);
    nori_save_options_default(&o);
    o.external = "data";
    o.threshold = 1;
    assert_int_equal(nori_model_save_as(made, path, &o, &err), NORI_OK);
    nori_model_free(made);
    assert_int_equal(nori_model_load(NULL, path, NULL, &model, &err), NORI_OK);
    unlink(path);
    unlink(data);
    rmdir(folder);
    return model;
}

/* y of text, run on x = {1, 2, 3}: c of the model is {4, 5, 6}. All else is gone and overwritten
 * then. */
static nori_tensor *left_over(const char *text, const char *provider, int level)
{
    float data[3] = {1, 2, 3};
    int64_t n = 3;
    nori_model *model = mapped(text);
    nori_session *session = NULL;
    nori_session_options o;
    nori_tensor *in[1] = {NULL}, *out[1] = {NULL};
    nori_error err = {0};
    nori_session_options_default(&o);
    o.providers = provider;
    o.level = level;
    assert_int_equal(nori_session_create(model, &o, &session, &err), NORI_OK);
    assert_int_equal(
        nori_tensor_wrap(NULL, NORI_FLOAT, 1, &n, data, sizeof(data), NULL, NULL, &in[0], &err),
        NORI_OK);
    assert_int_equal(nori_session_run(session, (const nori_tensor *const *)in, 1, out, 1, &err),
                     NORI_OK);
    nori_tensor_free(in[0]);
    nori_session_free(session);
    nori_model_free(model);
    memset(data, 0xff, sizeof(data));
    return out[0];
}

static void outputs_stand_alone(void **state)
{
#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]>\nmain (float[3] x) => "
#define BODY                                                                                       \
    "<body: graph = b (int64 i, bool g, float[] k) => (bool g2, float[] k2) { g2 = Identity(g) "   \
    "k2 = Neg(k) }>"
    static const struct {
        const char *text;
        float first;
    } cases[] = {
        {HEAD "(float[3] y) { y = Identity(x) }", 1},
        {HEAD "(float[3] y) <float[3] c = {4, 5, 6}> { y = Identity(c) }", 4},
        {HEAD "(float[3] y) <int64 no = {0}> { y = Loop(no, \"\", x) " BODY " }", 1},
        {HEAD "(float[3] y) <int64 no = {0}, float[3] c = {4, 5, 6}> { y = Loop(no, \"\", c) " BODY
              " }",
         4},
        {HEAD
         "(float[3] y) <float[3] c = {4, 5, 6}, float zero = {0}> { s = ReduceMax<keepdims = 0>(x) "
         "w = Greater(s, zero) y = If(w) <then_branch: graph = t () => (float[] a) { a = "
         "Identity(c) }, "
         "else_branch: graph = e () => (float[] b) { b = Identity(x) }> }",
         4},
        {HEAD
         "(float[] y) <int64 no = {0}, float[3] c = {4, 5, 6}> { y = Scan(c, x) <body: graph = o "
         "(float[] s, float l) => (float[] s2) { s2 = Loop(no, \"\", s) " BODY " }, "
         "num_scan_inputs: int = 1> }",
         4},
        {HEAD
         "(float[] y) <int64 no = {0}, float[3] c = {4, 5, 6}> { y = Scan(x, c) <body: graph = o "
         "(float[] s, float l) => (float[] s2) { s2 = Loop(no, \"\", s) " BODY " }, "
         "num_scan_inputs: int = 1> }",
         1},
        {HEAD "(seq(float[3]) y) { y = SequenceConstruct(x) }", 1},
        {HEAD "(seq(float[3]) y) <float[3] c = {4, 5, 6}> { y = SequenceConstruct(c, x) }", 4},
        {HEAD "(optional(float[3]) y) { y = Optional(x) }", 1},
    };
    static const char *const providers[] = {"reference", "cpu"};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t p = 0; p < 2; p++) {
            for (int level = 0; level < 3; level++) {
                nori_tensor *y = left_over(cases[i].text, providers[p], level);
                const nori_tensor *t = y;
                if (nori_tensor_kind(y) != NORI_KIND_TENSOR) {
                    assert_true(nori_tensor_item_count(y) >= 1);
                    t = nori_tensor_item(y, 0);
                }
                const float *v = nori_tensor_const_data(t);
                for (int k = 0; k < 3; k++) {
                    assert_true(v[k] == cases[i].first + (float)k);
                }
                nori_tensor_free(y);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(outputs_stand_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
