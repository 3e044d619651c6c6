/* serve_types.c: words of the protocol for element types, halves, and what a model takes and gives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve_protocol.h"

static const struct {
    nori_type type;
    const char *word;
} words[] = {
    {NORI_FLOAT, "FP32"},     {NORI_DOUBLE, "FP64"}, {NORI_FLOAT16, "FP16"}, {NORI_BFLOAT16, "BF16"},
    {NORI_INT8, "INT8"},      {NORI_INT16, "INT16"}, {NORI_INT32, "INT32"},  {NORI_INT64, "INT64"},
    {NORI_UINT8, "UINT8"},    {NORI_UINT16, "UINT16"}, {NORI_UINT32, "UINT32"}, {NORI_UINT64, "UINT64"},
    {NORI_BOOL, "BOOL"},      {NORI_STRING, "BYTES"},
};
#define WORDS (sizeof(words) / sizeof(words[0]))

const char *nori__serve_word(nori_type type)
{
    for (size_t i = 0; i < WORDS; i++) {
        if (words[i].type == type) {
            return words[i].word;
        }
    }
    return NULL;
}

nori_type nori__serve_type(const char *word, size_t size)
{
    for (size_t i = 0; i < WORDS; i++) {
        if (strlen(words[i].word) == size && memcmp(words[i].word, word, size) == 0) {
            return words[i].type;
        }
    }
    return NORI_UNDEFINED;
}

/* ---- halves: sign, exponent, mantissa of 10 or 7 bits (IEEE 754-2008, 3.4; bfloat16) ---- */

uint16_t nori__serve_to_half(double value, bool bfloat)
{
    const int mantissa = bfloat ? 7 : 10, lowest = bfloat ? -126 : -14, highest = bfloat ? 127 : 15;
    const uint32_t infinite = (uint32_t)(highest - lowest + 2) << mantissa;
    uint32_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value)) {
        return (uint16_t)(sign | infinite | (1u << (mantissa - 1)));
    }
    if (value == 0 || isinf(value)) {
        return (uint16_t)(sign | (value == 0 ? 0 : infinite));
    }
    int e = ilogb(value);
    if (e > highest) {
        return (uint16_t)(sign | infinite);
    }
    e = e < lowest ? lowest : e;
    /* Up to 2^(mantissa + 1), when rounding carries: then the sum below carries too. */
    uint32_t q = (uint32_t)nearbyint(ldexp(fabs(value), mantissa - e));
    uint32_t one = 1u << mantissa;
    uint32_t bits = q < one ? q : ((uint32_t)(e - lowest + 1) << mantissa) + (q - one);
    return (uint16_t)(sign | (bits > infinite ? infinite : bits));
}

double nori__serve_from_half(uint16_t bits, bool bfloat)
{
    const int mantissa = bfloat ? 7 : 10, lowest = bfloat ? -126 : -14, highest = bfloat ? 127 : 15;
    uint32_t exponent = (uint32_t)(bits & 0x7fff) >> mantissa, one = 1u << mantissa;
    uint32_t m = bits & (one - 1);
    double value;
    if (exponent == (uint32_t)(highest - lowest + 2)) {
        value = m ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp(m, lowest - mantissa);
    } else {
        value = ldexp(m + one, (int)exponent - 1 + lowest - mantissa);
    }
    return bits & 0x8000 ? -value : value;
}

/* ---- signatures ---- */

static nori_status refuse(const nori_value_info *v, const char *side, nori_error *err)
{
    if (v->kind != NORI_KIND_TENSOR) {
        return nori__serve_fail(err, NORI_ERROR_UNSUPPORTED,
                                "%s \"%s\" is no tensor, and the protocol only has tensors", side,
                                v->name);
    }
    return nori__serve_fail(err, NORI_ERROR_UNSUPPORTED,
                            "%s \"%s\" has elements of type %s, for which the protocol has no word",
                            side, v->name, nori_type_name(v->type));
}

void nori__serve_signature_free(serve_signature *s)
{
    free(s->inputs);
    free(s->outputs);
    free(s->slots);
    memset(s, 0, sizeof(*s));
}

nori_status nori__serve_signature_make(const nori_session *session, serve_signature *s,
                                       nori_error *err)
{
    size_t outputs = nori_session_output_count(session);
    memset(s, 0, sizeof(*s));
    s->input_count = nori_session_input_count(session);
    s->session_outputs = outputs;
    s->inputs = calloc(s->input_count + 1, sizeof(*s->inputs));
    s->outputs = calloc(outputs + 1, sizeof(*s->outputs));
    s->slots = calloc(outputs + 1, sizeof(*s->slots));
    if (!s->inputs || !s->outputs || !s->slots) {
        nori__serve_signature_free(s);
        return nori__serve_oom(err);
    }
    const nori_value_info *bad = NULL;
    for (size_t i = 0; i < s->input_count; i++) {
        s->inputs[i] = nori_session_input(session, i);
        bool fine = s->inputs[i]->kind == NORI_KIND_TENSOR && nori__serve_word(s->inputs[i]->type);
        bad = fine || s->inputs[i]->optional || bad ? bad : s->inputs[i];
    }
    if (bad) {
        nori__serve_signature_free(s);
        return refuse(bad, "input", err);
    }
    for (size_t i = 0; i < outputs; i++) {
        const nori_value_info *v = nori_session_output(session, i);
        if (v->kind == NORI_KIND_TENSOR && nori__serve_word(v->type)) {
            s->slots[s->output_count] = i;
            s->outputs[s->output_count++] = v;
        }
    }
    if (s->output_count == 0) {
        nori__serve_signature_free(s);
        return outputs > 0 ? refuse(nori_session_output(session, 0), "output", err)
                           : nori__serve_fail(err, NORI_ERROR_MODEL, "the model has no outputs");
    }
    return NORI_OK;
}

void nori__serve_describe(serve_text *t, const nori_value_info *const *values, size_t count)
{
    bool first = true;
    for (size_t i = 0; i < count; i++) {
        const nori_value_info *v = values[i];
        if (v->kind != NORI_KIND_TENSOR || !nori__serve_word(v->type)) {
            continue; /* an input with a default */
        }
        nori__serve_print(t, "%s{\"name\":", first ? "" : ",");
        nori__serve_quote(t, v->name);
        nori__serve_print(t, ",\"datatype\":\"%s\",\"shape\":[", nori__serve_word(v->type));
        for (int k = 0; k < v->rank; k++) {
            nori__serve_print(t, "%s%lld", k ? "," : "", (long long)v->dims[k]);
        }
        nori__serve_print(t, v->rank < 0 ? "-1]" : "]");
        if (v->optional) {
            nori__serve_print(t, ",\"optional\":true");
        }
        nori__serve_print(t, "}");
        first = false;
    }
}
