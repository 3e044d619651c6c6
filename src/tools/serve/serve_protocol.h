/* serve_protocol.h: requests and answers of the protocol as bytes: no sockets, no threads. Bodies are
 * untrusted; everything about one is checked here. */
#ifndef NORI_SERVE_PROTOCOL_H
#define NORI_SERVE_PROTOCOL_H

#include <stdbool.h>

#include "nori/nori.h"

#if defined(__GNUC__)
#define SERVE_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define SERVE_PRINTF(a, b)
#endif

/* ---- text ---- */

/* Bytes that grow. failed: out of memory, from then on nothing is added. */
typedef struct serve_text {
    char *data;
    size_t size, room;
    bool failed;
} serve_text;
void nori__serve_add(serve_text *t, const void *bytes, size_t size);
void nori__serve_print(serve_text *t, const char *format, ...) SERVE_PRINTF(2, 3);
/* A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void nori__serve_quote(serve_text *t, const char *text);
bool nori__serve_quote_bytes(serve_text *t, const char *text, size_t size); /* false: some were not */
/* A number that reads back as the same value; what is not finite becomes null. */
void nori__serve_number(serve_text *t, double value, bool is_float);
/* "error" and, where there are, "where" and "hint". */
void nori__serve_error(serve_text *t, const nori_error *err);

/* Fills an error. The first one stays. */
nori_status nori__serve_fail(nori_error *err, nori_status status, const char *format, ...)
    SERVE_PRINTF(3, 4);
/* Out of memory. */
nori_status nori__serve_oom(nori_error *err);
/* What to do next, where nothing was said yet. */
void nori__serve_hint(nori_error *err, const char *format, ...) SERVE_PRINTF(2, 3);

/* ---- types ---- */

/* "FP32", "BYTES" ...; NULL for what the protocol has no word for. */
const char *nori__serve_word(nori_type type);
/* Of a word; NORI_UNDEFINED when there is none. */
nori_type nori__serve_type(const char *word, size_t size);
/* Halves: value to the nearest, ties to even. bfloat: bfloat16 else IEEE half. */
uint16_t nori__serve_to_half(double value, bool bfloat);
double nori__serve_from_half(uint16_t bits, bool bfloat);

/* ---- requests ---- */

/* What a model takes and gives. Outputs that are no tensors cannot be said in the protocol and are not
 * among them. The entries belong to the session. */
typedef struct serve_signature {
    const nori_value_info **inputs, **outputs;
    size_t *slots;          /* of the session, by output */
    size_t input_count, output_count;
    size_t session_outputs; /* of the session in all */
} serve_signature;
nori_status nori__serve_signature_make(const nori_session *session, serve_signature *signature,
                                       nori_error *err);
void nori__serve_signature_free(serve_signature *signature);

typedef struct serve_wanted {
    size_t output;
    bool binary;
} serve_wanted;

typedef struct serve_request {
    char *id;              /* or NULL */
    nori_tensor **inputs;  /* by input of the signature; NULL: left out */
    size_t input_count;
    serve_wanted *wanted;
    size_t wanted_count;
    int64_t timeout_us;    /* 0: not said */
} serve_request;

/* No header of the JSON's length was given: all of the body is JSON. */
#define SERVE_ALL_JSON SIZE_MAX

/* Reads the body of an infer request. json_size: what the header Inference-Header-Content-Length says,
 * or SERVE_ALL_JSON; 0: the body is the one input's bytes alone. Tensors may lie in the body, which
 * must outlive the request. Errors: ARGUMENT (400), UNSUPPORTED (400), LIMIT (413), MEMORY (503). On
 * error the request is empty. */
nori_status nori__serve_parse(const serve_signature *signature, void *body, size_t size,
                              size_t json_size, serve_request *request, nori_error *err);
void nori__serve_request_free(serve_request *request);

/* Between these it can be told whether a body was no JSON or memory ran out. They may be nested. */
void nori__serve_json_watch(void);
void nori__serve_json_unwatch(void);

/* The bodies of repository calls, which may be empty: {"ready": true}, and that of load, whose
 * parameters would change what is loaded and are refused. */
nori_status nori__serve_parse_index(const void *body, size_t size, bool *ready_only, nori_error *err);
nori_status nori__serve_parse_load(const void *body, size_t size, nori_error *err);

/* ---- answers ---- */

/* Rows [first, first + rows) of a tensor along axis 0; rows -1: all of it. */
typedef struct serve_slice {
    const nori_tensor *tensor;
    int64_t first, rows;
} serve_slice;

/* Writes the answer: outputs by the request's wanted ones. *json_size: the length of the JSON where
 * binary data follow, else 0. DATA: strings that JSON cannot hold. */
nori_status nori__serve_answer(const serve_signature *signature, const serve_request *request,
                               const char *model, const char *version, const serve_slice *outputs,
                               serve_text *out, size_t *json_size, nori_error *err);
/* The entries of a "tensor" list of metadata. */
void nori__serve_describe(serve_text *t, const nori_value_info *const *values, size_t count);

/* Whether two secrets of these sizes are the same, in a time that only depends on the sizes. */
bool nori__serve_same(const char *a, size_t a_size, const char *b, size_t b_size);

#endif
