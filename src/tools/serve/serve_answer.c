/* serve_answer.c: outputs as JSON and binary data. */
#include <inttypes.h>
#include <string.h>

#include "serve_protocol.h"

/* The elements of a slice: where they begin and how many. */
typedef struct span {
    size_t first, count;
} span;

static span span_of(const serve_slice *s)
{
    size_t total = (size_t)nori_tensor_elements(s->tensor);
    if (s->rows < 0) {
        return (span){0, total};
    }
    int64_t rows = nori_tensor_dims(s->tensor)[0];
    size_t row = rows > 0 ? total / (size_t)rows : 0;
    return (span){(size_t)s->first * row, (size_t)s->rows * row};
}

static void json_element(serve_text *t, const void *data, nori_type type, size_t i)
{
    switch (type) {
    case NORI_BOOL: nori__serve_print(t, "%s", ((const uint8_t *)data)[i] ? "true" : "false"); break;
    case NORI_INT8: nori__serve_print(t, "%d", ((const int8_t *)data)[i]); break;
    case NORI_INT16: nori__serve_print(t, "%d", ((const int16_t *)data)[i]); break;
    case NORI_INT32: nori__serve_print(t, "%" PRId32, ((const int32_t *)data)[i]); break;
    case NORI_INT64: nori__serve_print(t, "%" PRId64, ((const int64_t *)data)[i]); break;
    case NORI_UINT8: nori__serve_print(t, "%u", ((const uint8_t *)data)[i]); break;
    case NORI_UINT16: nori__serve_print(t, "%u", ((const uint16_t *)data)[i]); break;
    case NORI_UINT32: nori__serve_print(t, "%" PRIu32, ((const uint32_t *)data)[i]); break;
    case NORI_UINT64: nori__serve_print(t, "%" PRIu64, ((const uint64_t *)data)[i]); break;
    case NORI_DOUBLE: nori__serve_number(t, ((const double *)data)[i], false); break;
    case NORI_FLOAT: nori__serve_number(t, (double)((const float *)data)[i], true); break;
    default:
        nori__serve_number(t, nori__serve_from_half(((const uint16_t *)data)[i], type == NORI_BFLOAT16),
                           true);
    }
}

static nori_status json_data(serve_text *t, const serve_slice *s, const char *name, nori_error *err)
{
    span at = span_of(s);
    nori_type type = nori_tensor_type(s->tensor);
    const void *data = nori_tensor_const_data(s->tensor);
    const nori_string *strings = data;
    nori__serve_print(t, "\"data\":[");
    for (size_t i = 0; i < at.count; i++) {
        if (i > 0) {
            nori__serve_add(t, ",", 1);
        }
        if (type != NORI_STRING) {
            json_element(t, data, type, at.first + i);
        } else if (!nori__serve_quote_bytes(t, strings[at.first + i].data, strings[at.first + i].size)) {
            nori__serve_hint(err, "ask for it with the parameter \"binary_data\": true");
            return nori__serve_fail(err, NORI_ERROR_DATA,
                                    "output \"%s\" holds bytes that are not UTF-8, which JSON cannot say",
                                    name);
        }
    }
    nori__serve_print(t, "]");
    return NORI_OK;
}

static size_t binary_size(const serve_slice *s)
{
    span at = span_of(s);
    if (nori_tensor_type(s->tensor) != NORI_STRING) {
        return at.count * (nori_type_bits(nori_tensor_type(s->tensor)) / 8);
    }
    const nori_string *strings = nori_tensor_const_data(s->tensor);
    size_t size = 0;
    for (size_t i = 0; i < at.count; i++) {
        size += 4 + strings[at.first + i].size;
    }
    return size;
}

static void binary_data(serve_text *t, const serve_slice *s)
{
    span at = span_of(s);
    const char *data = nori_tensor_const_data(s->tensor);
    if (nori_tensor_type(s->tensor) != NORI_STRING) {
        size_t width = nori_type_bits(nori_tensor_type(s->tensor)) / 8;
        nori__serve_add(t, at.count > 0 ? data + at.first * width : "", at.count * width);
        return;
    }
    const nori_string *strings = nori_tensor_const_data(s->tensor);
    for (size_t i = 0; i < at.count; i++) {
        const nori_string *v = &strings[at.first + i];
        unsigned char n[4] = {(unsigned char)v->size, (unsigned char)(v->size >> 8),
                              (unsigned char)(v->size >> 16), (unsigned char)(v->size >> 24)};
        nori__serve_add(t, n, 4);
        nori__serve_add(t, v->data, v->size);
    }
}

static nori_status one_output(serve_text *t, const nori_value_info *info, const serve_slice *s,
                              bool binary, nori_error *err)
{
    const char *word = nori__serve_word(nori_tensor_type(s->tensor));
    nori_status status = NORI_OK;
    nori__serve_print(t, "{\"name\":");
    nori__serve_quote(t, info->name);
    nori__serve_print(t, ",\"datatype\":\"%s\",\"shape\":[", word ? word : "");
    for (int i = 0; i < nori_tensor_rank(s->tensor); i++) {
        int64_t d = i == 0 && s->rows >= 0 ? s->rows : nori_tensor_dims(s->tensor)[i];
        nori__serve_print(t, "%s%" PRId64, i ? "," : "", d);
    }
    nori__serve_print(t, "],");
    if (binary) {
        nori__serve_print(t, "\"parameters\":{\"binary_data_size\":%zu}", binary_size(s));
    } else {
        status = json_data(t, s, info->name, err);
    }
    nori__serve_print(t, "}");
    return status;
}

nori_status nori__serve_answer(const serve_signature *signature, const serve_request *request,
                               const char *model, const char *version, const serve_slice *outputs,
                               serve_text *t, size_t *json_size, nori_error *err)
{
    bool binary = false;
    nori_status status = NORI_OK;
    nori__serve_print(t, "{\"model_name\":");
    nori__serve_quote(t, model);
    nori__serve_print(t, ",\"model_version\":");
    nori__serve_quote(t, version);
    if (request->id) {
        nori__serve_print(t, ",\"id\":");
        nori__serve_quote(t, request->id);
    }
    nori__serve_print(t, ",\"outputs\":[");
    for (size_t i = 0; i < request->wanted_count && status == NORI_OK; i++) {
        const serve_wanted *w = &request->wanted[i];
        nori__serve_add(t, ",", i > 0);
        status = one_output(t, signature->outputs[w->output], &outputs[w->output], w->binary, err);
        binary = binary || w->binary;
    }
    nori__serve_print(t, "]}");
    *json_size = binary ? t->size : 0;
    for (size_t i = 0; i < request->wanted_count && status == NORI_OK; i++) {
        if (request->wanted[i].binary) {
            binary_data(t, &outputs[request->wanted[i].output]);
        }
    }
    return status == NORI_OK && t->failed ? nori__serve_oom(err) : status;
}
