/* serve_text.c: text and JSON that are written, and errors. */
#include "serve_protocol.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for size more bytes, and one for the end. */
static bool grow(serve_text *t, size_t size)
{
    if (t->failed || size > SIZE_MAX / 2 - t->size - 1) {
        t->failed = true;
        return false;
    }
    if (t->size + size + 1 > t->room) {
        size_t room = t->room ? t->room : 256;
        while (room < t->size + size + 1) {
            room *= 2;
        }
        char *data = realloc(t->data, room);
        if (!data) {
            t->failed = true;
            return false;
        }
        t->data = data;
        t->room = room;
    }
    return true;
}

void nori__serve_add(serve_text *t, const void *bytes, size_t size)
{
    if (grow(t, size)) {
        if (size > 0) {
            memcpy(t->data + t->size, bytes, size);
        }
        t->size += size;
        t->data[t->size] = 0;
    }
}

void nori__serve_print(serve_text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (n >= 0 && grow(t, (size_t)n)) {
        va_start(list, format);
        vsnprintf(t->data + t->size, (size_t)n + 1, format, list);
        va_end(list);
        t->size += (size_t)n;
    }
}

/* Bytes of the well-formed UTF-8 sequence at p, 0 when there is none. */
static size_t utf8_length(const unsigned char *p, size_t left)
{
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
    if (n == 0 || n > left) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] >= 0xa0, beyond = p[0] == 0xf4 && p[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : n;
}

bool nori__serve_quote_bytes(serve_text *t, const char *text, size_t size)
{
    bool good = true;
    nori__serve_add(t, "\"", 1);
    for (size_t i = 0; i < size;) {
        unsigned char c = (unsigned char)text[i];
        size_t n = utf8_length((const unsigned char *)text + i, size - i);
        if (n == 0) {
            nori__serve_add(t, "\xef\xbf\xbd", 3);
            good = false;
            n = 1;
        } else if (c == '"' || c == '\\') {
            nori__serve_print(t, "\\%c", c);
        } else if (c < 0x20 || c == 0x7f) {
            nori__serve_print(t, "\\u%04x", c);
        } else {
            nori__serve_add(t, text + i, n);
        }
        i += n;
    }
    nori__serve_add(t, "\"", 1);
    return good;
}

void nori__serve_quote(serve_text *t, const char *text)
{
    nori__serve_quote_bytes(t, text, strlen(text));
}

void nori__serve_number(serve_text *t, double value, bool is_float)
{
    char text[40];
    if (!isfinite(value)) {
        nori__serve_add(t, "null", 4);
        return;
    }
    /* As short as most values allow, else as long as every value needs. */
    snprintf(text, sizeof(text), is_float ? "%.6g" : "%.15g", value);
    double back = is_float ? (double)strtof(text, NULL) : strtod(text, NULL);
    if (!(back == value)) {
        snprintf(text, sizeof(text), is_float ? "%.9g" : "%.17g", value);
    }
    nori__serve_add(t, text, strlen(text));
    if (!strpbrk(text, ".e")) { /* a real stays one for those who look */
        nori__serve_add(t, ".0", 2);
    }
}

void nori__serve_error(serve_text *t, const nori_error *err)
{
    nori__serve_print(t, "{\"error\":");
    nori__serve_quote(t, err->message[0] ? err->message : nori_status_text(err->status));
    if (err->where[0]) {
        nori__serve_print(t, ",\"where\":");
        nori__serve_quote(t, err->where);
    }
    if (err->hint[0]) {
        nori__serve_print(t, ",\"hint\":");
        nori__serve_quote(t, err->hint);
    }
    nori__serve_print(t, "}\n");
}

nori_status nori__serve_fail(nori_error *err, nori_status status, const char *format, ...)
{
    va_list list;
    if (err && err->status == NORI_OK) {
        err->status = status;
        va_start(list, format);
        int n = vsnprintf(err->message, sizeof(err->message), format, list);
        va_end(list);
        if (n < 0 || (size_t)n >= sizeof(err->message)) {
            memcpy(err->message + sizeof(err->message) - 4, "...", 4);
        }
    }
    return err ? err->status : status;
}

nori_status nori__serve_oom(nori_error *err)
{
    return nori__serve_fail(err, NORI_ERROR_MEMORY, "out of memory");
}

void nori__serve_hint(nori_error *err, const char *format, ...)
{
    va_list list;
    if (err && !err->hint[0]) {
        va_start(list, format);
        int n = vsnprintf(err->hint, sizeof(err->hint), format, list);
        va_end(list);
        if (n >= 0 && (size_t)n >= sizeof(err->hint)) {
            memcpy(err->hint + sizeof(err->hint) - 4, "...", 4);
        }
    }
}

bool nori__serve_same(const char *a, size_t a_size, const char *b, size_t b_size)
{
    /* volatile: the loop must not end at the first difference. */
    volatile unsigned char different = a_size != b_size;
    for (size_t i = 0; i < a_size; i++) {
        unsigned char other = b_size > 0 ? (unsigned char)b[i % b_size] : 0;
        different = (unsigned char)(different | ((unsigned char)a[i] ^ other));
    }
    return different == 0;
}
