/* test_late_shapes.c: sizes that only a run can tell are checked by the run as inference checks those of a
 * file: the same model with a constant in the input's place is refused, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "nori/text.h"
#include "nori/tools.h"

/* Runs text on 1x2 floats and the given sizes; what the message says. */
static nori_status run(const char *text, const char *provider, int level, int64_t count, const int64_t *sizes,
                       nori_error *err)
{
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options o;
    nori_tensor *in[2] = {NULL}, *out[3] = {NULL};
    int64_t dims[2] = {1, 2};
    assert_int_equal(nori_model_from_text(NULL, text, strlen(text), NULL, &model, err), NORI_OK);
    nori_session_options_default(&o);
    o.providers = provider;
    o.level = level;
    nori_status s = nori_session_create(model, &o, &session, err);
    assert_int_equal(nori_tensor_create(NULL, NORI_FLOAT, 2, dims, &in[0], NULL), NORI_OK);
    assert_int_equal(nori_tensor_create(NULL, NORI_INT64, 1, &count, &in[1], NULL), NORI_OK);
    if (count > 0) {
        memcpy(nori_tensor_data(in[1]), sizes, sizeof(*sizes) * (size_t)count);
    }
    if (s == NORI_OK) {
        s = nori_session_run(session, (const nori_tensor *const *)in, nori_session_input_count(session), out,
                             nori_session_output_count(session), err);
    }
    nori_tensor_free(in[0]);
    nori_tensor_free(in[1]);
    for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
        nori_tensor_free(out[i]);
    }
    nori_session_free(session);
    nori_model_free(model);
    return s;
}

#define HEAD "<ir_version: 8, opset_import: [\"\" : 18]>\n"

static const struct {
    const char *provider;
    int level;
} ways[] = {{"reference", 0}, {"reference", 2}, {"cpu", 0}, {"cpu", 2}};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static void refused_early_and_late(void **state)
{
    static const struct {
        const char *late, *early, *says;
        int64_t sizes[2], fine[2];
        int64_t count; /* of sizes */
    } cases[] = {
        {HEAD "main (float[1,2] x, int64[2] s) => (float[a,b] y) { y = Expand (x, s) }",
         HEAD "main (float[1,2] x) => (float[a,b] y) <int64[2] s = {3, -1}> { y = Expand (x, s) }",
         "entry 1 of the shape is -1",
         {3, -1},
         {3, 2},
         2},
        {HEAD "main (float[1,2] x, int64[2] s) => (float[a,b] y) { y = CenterCropPad <axes = [1]> (x, s) }",
         HEAD "main (float[1,2] x) => (float[a,b] y) <int64[2] s = {3, 3}> { y = CenterCropPad <axes = [1]> "
              "(x, s) }",
         "shape has 2 entries for 1 axes",
         {3, 3},
         {0, 0},
         2},
        {HEAD "main (float[1,2] x, int64[s] s) => (float[a,b] y) { y = CenterCropPad (x, s) }",
         HEAD "main (float[1,2] x) => (float[a,b] y) <int64[2] s = {3, -2}> { y = CenterCropPad (x, s) }",
         "-2",
         {3, -2},
         {3, 4},
         2},
        {HEAD "main (float[1,2] x, int64[1] s) => (float[a] y) { y = Reshape (x, s) }",
         HEAD "main (float[1,2] x) => (float[a] y) <int64[1] s = {0}> { y = Reshape (x, s) }",
         "elements",
         {0},
         {2},
         1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t count = cases[i].count;
        for (size_t w = 0; w < WAYS; w++) {
            for (int late = 0; late < 2; late++) {
                nori_error err = {0};
                const char *text = late ? cases[i].late : cases[i].early;
                nori_status s = run(text, ways[w].provider, ways[w].level, count, cases[i].sizes, &err);
                assert_true(s == NORI_ERROR_DATA || s == NORI_ERROR_MODEL);
                assert_non_null(strstr(err.message, cases[i].says));
            }
            if (cases[i].fine[0]) {
                nori_error err = {0};
                const int64_t *sizes = cases[i].fine;
                assert_int_equal(run(cases[i].late, ways[w].provider, ways[w].level, count, sizes, &err), 0);
            }
        }
    }
}

/* Before operator set 18 a Split without sizes has equal parts; from then on the last may be smaller. */
static void parts_are_even(void **state)
{
    static const struct {
        const char *text;
        bool fine;
    } cases[] = {
        {"<ir_version: 8, opset_import: [\"\" : 13]>\n"
         "main (float[1,n] x) => (float[a,b] y, float[c,d] z, float[e,f] w) "
         "{ y, z, w = Split <axis = 1> (x) }",
         false},
        {"<ir_version: 8, opset_import: [\"\" : 13]>\n"
         "main (float[] x) => (float[] y, float[] z, float[] w) { y, z, w = Split <axis = 1> (x) }",
         false},
        {"<ir_version: 8, opset_import: [\"\" : 13]>\n"
         "main (float[1,n] x) => (float[a,b] y, float[c,d] z) { y, z = Split <axis = 1> (x) }",
         true},
        {HEAD "main (float[1,n] x) => (float[a,b] y, float[c,d] z, float[e,f] w) "
              "{ y, z, w = Split <axis = 1, num_outputs = 3> (x) }",
         true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (size_t w = 0; w < WAYS; w++) {
            nori_error err = {0};
            nori_status s = run(cases[i].text, ways[w].provider, ways[w].level, 0, NULL, &err);
            assert_int_equal(s == NORI_OK, cases[i].fine);
            if (!cases[i].fine) {
                assert_non_null(strstr(err.message, "size 2 cannot be split into 3 equal parts"));
            }
        }
    }
}

/* Whatever is known of the input. */
static void upsample_needs_scales(void **state)
{
    static const char *const texts[] = {
        "<ir_version: 4, opset_import: [\"\" : 8]>\nmain (float[] x) => (float[] y) { y = Upsample (x) }",
        "<ir_version: 4, opset_import: [\"\" : 8]>\n"
        "main (float[1,n] x) => (float[a,b] y) { y = Upsample (x) }",
        "<ir_version: 4, opset_import: [\"\" : 9]>\n"
        "main (float[1,n] x) => (float[a,b] y) { y = Upsample (x) }",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        for (size_t w = 0; w < WAYS; w++) {
            nori_error err = {0};
            assert_int_equal(run(texts[i], ways[w].provider, ways[w].level, 0, NULL, &err), NORI_ERROR_MODEL);
            assert_non_null(strstr(err.message, "Upsample"));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused_early_and_late),
                                       cmocka_unit_test(parts_are_even),
                                       cmocka_unit_test(upsample_needs_scales)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
