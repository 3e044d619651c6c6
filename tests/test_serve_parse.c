/* The body of a request without a socket: what the command's tests cannot reach, halves bit by bit, every
 * cut and many changes of a body, text and tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "tools/serve/serve_protocol.h"

/* ---- a signature: x float[n, 2], t string[n] optional, to y float[n, 2] ---- */

static const int64_t pair[2] = {-1, 2}, one[1] = {-1};
static const nori_value_info x_info = {.name = "x", .kind = NORI_KIND_TENSOR, .type = NORI_FLOAT,
                                       .rank = 2, .dims = pair};
static const nori_value_info t_info = {.name = "t", .kind = NORI_KIND_TENSOR, .type = NORI_STRING,
                                       .rank = 1, .dims = one, .optional = 1};
static const nori_value_info y_info = {.name = "y", .kind = NORI_KIND_TENSOR, .type = NORI_FLOAT,
                                       .rank = 2, .dims = pair};
static const nori_value_info *inputs[] = {&x_info, &t_info}, *outputs[] = {&y_info};
static size_t slots[] = {0};
static const serve_signature signature = {inputs, outputs, slots, 2, 1, 1};

static nori_status parse(const char *text, size_t size, size_t json, serve_request *r, nori_error *err)
{
    char *body = malloc(size + 1); /* of its own size: a step beyond it shows under a sanitizer */
    assert_non_null(body);
    memcpy(body, text, size);
    char *exact = realloc(body, size ? size : 1);
    assert_non_null(exact);
    memset(err, 0, sizeof(*err));
    nori_status status = nori__serve_parse(&signature, exact, size, json, r, err);
    assert_int_equal(status, err->status);
    if (status != NORI_OK) {
        assert_true(err->message[0] != 0);
        assert_null(r->inputs);
    } else {
        assert_non_null(r->inputs[0]);
        volatile float sum = 0;
        for (int64_t i = 0; i < nori_tensor_elements(r->inputs[0]); i++) {
            sum += ((const float *)nori_tensor_const_data(r->inputs[0]))[i];
        }
        (void)sum;
        nori__serve_request_free(r);
    }
    free(exact);
    return status;
}

static const char json_body[] =
    "{\"id\":\"7\",\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[2,2],"
    "\"data\":[[1,2],[3,4.5]]},"
    "{\"name\":\"t\",\"datatype\":\"BYTES\",\"shape\":[2],\"parameters\":{\"binary_data_size\":11}}],"
    "\"outputs\":[{\"name\":\"y\",\"parameters\":{\"binary_data\":true}}],\"parameters\":{\"timeout\":5000}}";
static const char strings[] = "\2\0\0\0ab\1\0\0\0c";

static size_t whole(char out[1024])
{
    memcpy(out, json_body, sizeof(json_body) - 1);
    memcpy(out + sizeof(json_body) - 1, strings, sizeof(strings) - 1);
    return sizeof(json_body) - 1 + sizeof(strings) - 1;
}

static void all_of_it(void **state)
{
    (void)state;
    char body[1024];
    size_t size = whole(body);
    serve_request r;
    nori_error err = {0};
    assert_int_equal(nori__serve_parse(&signature, body, size, sizeof(json_body) - 1, &r, &err), NORI_OK);
    assert_string_equal(r.id, "7");
    assert_int_equal(r.timeout_us, 5000);
    assert_int_equal(r.wanted_count, 1);
    assert_true(r.wanted[0].binary);
    const float *x = nori_tensor_const_data(r.inputs[0]);
    assert_true(x[0] == 1 && x[1] == 2 && x[2] == 3 && x[3] == 4.5f);
    const nori_string *t = nori_tensor_const_data(r.inputs[1]);
    assert_int_equal(t[0].size, 2);
    assert_memory_equal(t[0].data, "ab", 2);
    assert_memory_equal(t[1].data, "c", 1);
    nori__serve_request_free(&r);
}

/* Bytes that end early, and bytes that are others: an error with a text or a request, nothing else. */
static void cut_and_changed(void **state)
{
    (void)state;
    char body[1024], changed[1024];
    size_t size = whole(body), good = 0;
    serve_request r;
    nori_error err;
    for (size_t n = 0; n < size; n++) {
        assert_int_not_equal(parse(body, n, sizeof(json_body) - 1, &r, &err), NORI_OK);
        assert_int_not_equal(parse(body, n, SERVE_ALL_JSON, &r, &err), NORI_OK);
    }
    uint32_t random = 1;
    for (int i = 0; i < 20000; i++) {
        memcpy(changed, body, size);
        for (int k = 0; k < 1 + i % 3; k++) {
            random = random * 1664525u + 1013904223u;
            static const char likely[] = "0123456789-[]{}\",:.eE\\u \0\xff";
            char c = i % 2 ? (char)(random >> 8) : likely[(random >> 8) % (sizeof(likely) - 1)];
            changed[(random >> 16) % size] = c;
        }
        good += parse(changed, size, sizeof(json_body) - 1, &r, &err) == NORI_OK;
    }
    assert_in_range(good, 1, 19000);
}

static void deep(void **state)
{
    (void)state;
    char *text = malloc(200000);
    serve_request r;
    nori_error err;
    assert_non_null(text);
    memset(text, '[', 200000);
    assert_int_equal(parse(text, 200000, SERVE_ALL_JSON, &r, &err), NORI_ERROR_ARGUMENT);
    int n = snprintf(text, 200, "{\"inputs\":[{\"name\":\"x\",\"datatype\":\"FP32\",\"shape\":[1,2],"
                                "\"data\":");
    memset(text + n, '[', 1000);
    memset(text + n + 1000, ']', 1000);
    memcpy(text + n + 2000, "}]}", 3);
    assert_int_equal(parse(text, (size_t)n + 2003, SERVE_ALL_JSON, &r, &err), NORI_ERROR_ARGUMENT);
    free(text);
}

/* ---- halves ---- */

static void halves(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        double half = nori__serve_from_half((uint16_t)bits, false);
        double b = nori__serve_from_half((uint16_t)bits, true);
        float want = nori__f16_to_f32((uint16_t)bits), want_b = nori__bf16_to_f32((uint16_t)bits);
        assert_true(isnan(half) ? isnan(want) : half == (double)want);
        assert_true(isnan(b) ? isnan(want_b) : b == (double)want_b);
        if (!isnan(half)) {
            assert_int_equal(nori__serve_to_half(half, false), bits);
        }
        if (!isnan(b)) {
            assert_int_equal(nori__serve_to_half(b, true), bits);
        }
    }
    uint32_t random = 7;
    for (int i = 0; i < 200000; i++) {
        random = random * 1664525u + 1013904223u;
        float f;
        memcpy(&f, &random, 4);
        if (!isnan(f)) {
            assert_int_equal(nori__serve_to_half((double)f, false), nori__f32_to_f16(f));
            assert_int_equal(nori__serve_to_half((double)f, true), nori__f32_to_bf16(f));
        }
    }
}

/* ---- text ---- */

static void numbers(void **state)
{
    (void)state;
    uint32_t random = 3;
    for (int i = 0; i < 50000; i++) {
        random = random * 1664525u + 1013904223u;
        float f;
        memcpy(&f, &random, 4);
        uint64_t wide = ((uint64_t)random << 32) | (random * 2654435761u);
        double d;
        memcpy(&d, &wide, 8);
        serve_text t = {NULL, 0, 0, false};
        nori__serve_number(&t, (double)f, true);
        assert_true(isfinite(f) ? strtof(t.data, NULL) == f : strcmp(t.data, "null") == 0);
        t.size = 0;
        nori__serve_number(&t, d, false);
        assert_true(isfinite(d) ? strtod(t.data, NULL) == d : strcmp(t.data, "null") == 0);
        free(t.data);
    }
}

static void quotes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *json;
        bool good;
    } cases[] = {{"a\"\\\n\x7f", "\"a\\\"\\\\\\u000a\\u007f\"", true},
                 {"\xc3\xa9", "\"\xc3\xa9\"", true},
                 {"\xff", "\"\xef\xbf\xbd\"", false},
                 {"\xc3", "\"\xef\xbf\xbd\"", false},
                 {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", false},
                 {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"", false},
                 {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        serve_text t = {NULL, 0, 0, false};
        assert_int_equal(nori__serve_quote_bytes(&t, cases[i].text, strlen(cases[i].text)), cases[i].good);
        assert_string_equal(t.data, cases[i].json);
        free(t.data);
    }
}

static void tokens(void **state)
{
    (void)state;
    assert_true(nori__serve_same("secret", 6, "secret", 6));
    assert_false(nori__serve_same("secret", 6, "secreT", 6));
    assert_false(nori__serve_same("secret", 6, "secretsecret", 12));
    assert_false(nori__serve_same("secretsecret", 12, "secret", 6));
    assert_false(nori__serve_same("secret", 6, "", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it), cmocka_unit_test(cut_and_changed), cmocka_unit_test(deep),
        cmocka_unit_test(halves),    cmocka_unit_test(numbers),         cmocka_unit_test(quotes),
        cmocka_unit_test(tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
