/* ref_cast_text.c: Cast from and to strings.
 *
 * Reading: plain or scientific decimals, "inf", "nan" in any case with or without sign, blanks
 * around them; integers exactly where they are written as integers; for bool also "true" and
 * "false". Anything else is an error DATA that shows the text. Writing: the fewest digits that read
 * back as the same element ("0.1", not "0.100000001"), always with a point or exponent ("100.0"),
 * exponents from 1e16 and below 1e-4; nan, inf, -inf; True and False. The process's locale has no
 * say: both directions run under the C locale of their own thread. */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "providers/reference/ref_cast.h"

enum { LONGEST = 400 }; /* more digits than any double needs */

/* Copies a string without the blanks around it; false when it is empty, too long or has NULs. */
static bool trimmed(const nori_string *s, char *out)
{
    size_t begin = 0, end = s->size;
    while (begin < end && strchr(" \t\r\n", s->data[begin]) && s->data[begin]) {
        begin++;
    }
    while (end > begin && strchr(" \t\r\n", s->data[end - 1]) && s->data[end - 1]) {
        end--;
    }
    if (begin == end || end - begin >= LONGEST || memchr(s->data + begin, 0, end - begin)) {
        return false;
    }
    memcpy(out, s->data + begin, end - begin);
    out[end - begin] = 0;
    return true;
}

static bool to_integer(const char *text, nori_tensor *to, int64_t i)
{
    char *end = NULL;
    errno = 0;
    if (to->type == NORI_UINT64 && text[0] != '-') {
        unsigned long long v = strtoull(text, &end, 10);
        if (*end == 0 && errno == 0) {
            nori__tensor_set_i64(to, i, (int64_t)v);
            return true;
        }
        return false;
    }
    long long v = strtoll(text, &end, 10);
    if (*end == 0 && errno == 0) {
        nori__tensor_set_i64(to, i, v);
        return true;
    }
    return false;
}

static bool to_number(const char *text, nori_tensor *to, int64_t i)
{
    if (to->type == NORI_BOOL && (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)) {
        nori__tensor_set_i64(to, i, text[0] == 't' || text[0] == 'T');
        return true;
    }
    if (!nori__type_is_float((nori_type)to->type) && to_integer(text, to, i)) {
        return true;
    }
    char *end = NULL;
    double v;
    if (to->type == NORI_FLOAT) { /* rounded once */
        v = (double)strtof(text, &end);
    } else {
        v = strtod(text, &end);
    }
    if (*end != 0 || end == text || strpbrk(text, "xXpP(")) { /* hexadecimal is C's own */
        return false;
    }
    nori__tensor_set_f64(to, i, v);
    return true;
}

static nori_status read_all(nori_call *call)
{
    const nori_string *s = call->in[0]->data;
    nori_tensor *to = call->out[0];
    char text[LONGEST];
    for (int64_t i = 0; i < call->in[0]->count; i++) {
        if (!trimmed(&s[i], text) || !to_number(text, to, i)) {
            return nori__fail(call->err, NORI_ERROR_DATA, "element %lld of input 0 of %s is "
                              "\"%.*s\", which is not a number", (long long)i, call->node->op_type,
                              s[i].size > 60 ? 60 : (int)s[i].size, s[i].data ? s[i].data : "");
        }
    }
    return NORI_OK;
}

/* ---- writing ---- */

/* Whether text reads back as the same element. */
static bool same_back(const char *text, double v, nori_type type)
{
    switch (type) {
    case NORI_FLOAT:
        return (double)strtof(text, NULL) == v;
    case NORI_FLOAT16:
        return (double)nori__f16_to_f32(nori__f64_to_f16(strtod(text, NULL))) == v;
    case NORI_BFLOAT16:
        return (double)nori__bf16_to_f32(nori__f32_to_bf16(strtof(text, NULL))) == v;
    default: /* doubles; the 8-bit types have few digits anyway */
        return strtod(text, NULL) == v;
    }
}

static void float_text(double v, nori_type type, char *out, size_t size)
{
    if (isnan(v)) {
        snprintf(out, size, "nan");
        return;
    }
    if (isinf(v)) {
        snprintf(out, size, v < 0 ? "-inf" : "inf");
        return;
    }
    int digits = 0; /* after the first */
    do {
        snprintf(out, size, "%.*e", digits, v);
    } while (!same_back(out, v, type) && ++digits < 17);
    double a = fabs(v);
    if (v != 0 && (a < 1e-4 || a >= 1e16)) {
        return;
    }
    int exponent = (int)strtol(strchr(out, 'e') + 1, NULL, 10);
    int decimals = digits - exponent; /* digits after the point */
    snprintf(out, size, "%.*f", decimals > 1 ? decimals : 1, v);
}

static nori_status write_all(nori_call *call)
{
    const nori_tensor *from = call->in[0];
    nori_type type = (nori_type)from->type;
    char text[64];
    for (int64_t i = 0; i < from->count; i++) {
        if (type == NORI_BOOL) {
            snprintf(text, sizeof(text), nori__tensor_get_i64(from, i) ? "True" : "False");
        } else if (type == NORI_UINT64) {
            snprintf(text, sizeof(text), "%llu", (unsigned long long)nori__tensor_get_i64(from, i));
        } else if (nori__type_is_float(type) || type == NORI_FLOAT4E2M1 ||
                   (type >= NORI_FLOAT8E4M3FN && type <= NORI_FLOAT8E5M2FNUZ) ||
                   type == NORI_FLOAT8E8M0) {
            float_text(nori__tensor_get_f64(from, i), type, text, sizeof(text));
        } else {
            snprintf(text, sizeof(text), "%lld", (long long)nori__tensor_get_i64(from, i));
        }
        NORI__TRY(nori__tensor_set_string(call->out[0], i, text, strlen(text), call->err));
    }
    return NORI_OK;
}

/* Runs one of the above with the thread in the C locale. */
static nori_status in_c_locale(nori_call *call, nori_status (*body)(nori_call *call))
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) {
        return nori__no_memory(call->err);
    }
    locale_t before = uselocale(c);
    nori_status s = body(call);
    uselocale(before);
    freelocale(c);
    return s;
}

nori_status nori__ref_cast_from_text(nori_call *call)
{
    return in_c_locale(call, read_all);
}

nori_status nori__ref_cast_to_text(nori_call *call)
{
    return in_c_locale(call, write_all);
}
