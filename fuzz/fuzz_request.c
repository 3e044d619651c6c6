/* fuzz_request.c: what a client sends to the server: bodies of calls that infer, list and load. */
#include "fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/serve/serve_protocol.h"

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

/* Strings of a request are looked at to their ends. */
static void look(const nori_tensor *t)
{
    volatile unsigned sum = 0;
    (void)sum;
    const unsigned char *bytes = nori_tensor_const_data(t);
    if (nori_tensor_type(t) == NORI_STRING) {
        const nori_string *strings = nori_tensor_const_data(t);
        for (int64_t i = 0; i < nori_tensor_elements(t); i++) {
            for (size_t k = 0; k < strings[i].size; k++) {
                sum += (unsigned char)strings[i].data[k];
            }
        }
        return;
    }
    for (size_t i = 0; i < nori_tensor_bytes(t); i++) {
        sum += bytes[i];
    }
}

/* First two bytes: how long the JSON is, as the header says it; 65535: no header; 65534 and 65533: the
 * body of a list or a load. */
void fuzz_request(const uint8_t *data, size_t size)
{
    serve_request r;
    nori_error err = {0};
    bool ready;
    if (size < 2) {
        return;
    }
    size_t json = (size_t)data[0] | (size_t)data[1] << 8;
    uint8_t *body = malloc(size - 2 ? size - 2 : 1); /* exact, and may be written to */
    if (!body) {
        return;
    }
    memcpy(body, data + 2, size - 2);
    if (json == 65534) {
        fuzz_error_holds(nori__serve_parse_index(body, size - 2, &ready, &err), &err);
    } else if (json == 65533) {
        fuzz_error_holds(nori__serve_parse_load(body, size - 2, &err), &err);
    } else {
        nori_status s = nori__serve_parse(&signature, body, size - 2,
                                          json == 65535 ? SERVE_ALL_JSON : json, &r, &err);
        fuzz_error_holds(s, &err);
        for (size_t i = 0; s == NORI_OK && i < r.input_count; i++) {
            if (r.inputs[i]) {
                look(r.inputs[i]);
            }
        }
        if (s == NORI_OK) {
            nori__serve_request_free(&r);
        }
    }
    free(body);
}
