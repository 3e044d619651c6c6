/* text_lex.c: characters to names, strings, numbers and notes; where in the text an error is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/text_read.h"

bool nori__text_fail(nori__text_in *r, const char *at, const char *fmt, ...)
{
    char text[600];
    size_t line = 1, column = 1;
    va_list args;
    if (r->status != NORI_OK) {
        return false;
    }
    for (const char *p = r->start; p < at; p++) {
        column = *p == '\n' ? 1 : column + 1;
        line += *p == '\n';
    }
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    r->status = nori__fail(r->err, NORI_ERROR_FORMAT, "line %zu, column %zu: %s", line, column, text);
    nori__offset(r->err, (uint64_t)(at - r->start));
    return false;
}

void *nori__text_grow(nori__text_in *r, void *list, size_t size)
{
    struct {
        void *items;
        size_t count;
    } l;
    memcpy(&l, list, sizeof(l));
    if (l.count == 0 || (l.count >= 4 && (l.count & (l.count - 1)) == 0)) { /* full: 4, 8, 16 ... */
        void *more = nori__arena_array(r->arena, l.count ? 2 * l.count : 4, size);
        if (!more) {
            r->status = r->status == NORI_OK ? nori__no_memory(r->err) : r->status;
            return NULL;
        }
        if (l.count) {
            memcpy(more, l.items, l.count * size);
        }
        l.items = more;
    }
    void *item = (char *)l.items + l.count++ * size;
    memcpy(list, &l, sizeof(l));
    return item;
}

static bool letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ---- notes ---- */

static int hex_of(char c)
{
    return digit(c)                ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static void blanks(nori__text_in *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')) {
        r->at++;
    }
}

/* A string with the escapes that only notes have. */
static nori__str note_string(nori__text_in *r)
{
    blanks(r);
    const char *from = r->at;
    if (r->status != NORI_OK || from == r->end || *from != '"') {
        nori__text_fail(r, from, "a string was expected in this note");
        return NORI__STR("");
    }
    const char *close = from + 1;
    while (close < r->end && *close != '"' && *close != '\n') {
        close += *close == '\\' && close + 1 < r->end ? 2 : 1;
    }
    if (close >= r->end || *close != '"') {
        nori__text_fail(r, from, "the string of this note does not end in its line");
        return NORI__STR("");
    }
    char *out = nori__arena_alloc(r->arena, (size_t)(close - from));
    size_t n = 0;
    if (!out) {
        r->status = nori__no_memory(r->err);
        return NORI__STR("");
    }
    for (const char *p = from + 1; p < close; p++) {
        char c = *p;
        if (c == '\\') {
            c = *++p;
            int high = c == 'x' && close - p > 2 ? hex_of(p[1]) : -1;
            int low = high >= 0 ? hex_of(p[2]) : -1;
            if (low >= 0) {
                c = (char)(high * 16 + low);
                p += 2;
            } else {
                c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
            }
        }
        out[n++] = c;
    }
    r->at = close + 1;
    return (nori__str){out, n};
}

static bool note_match(nori__text_in *r, char c)
{
    blanks(r);
    bool found = r->status == NORI_OK && r->at < r->end && *r->at == c;
    r->at += found;
    return found;
}

static nori__str note_hex(nori__text_in *r)
{
    const char *at = r->at;
    nori__str text = note_string(r);
    char *out = nori__arena_alloc(r->arena, text.n / 2 + 1);
    if (!out) {
        r->status = nori__no_memory(r->err);
        return NORI__STR("");
    }
    for (size_t i = 0; i + 1 < text.n; i += 2) {
        int high = hex_of(text.p[i]), low = hex_of(text.p[i + 1]);
        if (high < 0 || low < 0) {
            nori__text_fail(r, at, "bytes: pairs of hexadecimal digits were expected");
            return NORI__STR("");
        }
        out[i / 2] = (char)(high * 16 + low);
    }
    if (text.n % 2) {
        nori__text_fail(r, at, "bytes: pairs of hexadecimal digits were expected, one is left over");
    }
    return (nori__str){out, text.n / 2};
}

/* "[" strings or pairs of them "]". */
static void note_list(nori__text_in *r, bool pairs)
{
    if (!note_match(r, '[')) {
        nori__text_fail(r, r->at, "'[' was expected in this note");
    }
    while (r->status == NORI_OK) {
        nori__str first = note_string(r);
        if (pairs) {
            nori__pb_entry *e = NORI__GROW(r, r->note.metadata);
            if (!note_match(r, ':')) {
                nori__text_fail(r, r->at, "':' was expected between key and value");
            }
            nori__str second = note_string(r);
            if (e) {
                e->key = first;
                e->value = second;
            }
        } else {
            nori__str *s = NORI__GROW(r, r->note.dims);
            if (s) {
                *s = first;
            }
        }
        if (note_match(r, ']')) {
            return;
        }
        if (!note_match(r, ',')) {
            nori__text_fail(r, r->at, "',' or ']' was expected in this note");
        }
    }
}

static void read_note(nori__text_in *r)
{
    if (r->note.at) {
        nori__text_fail(r, r->at, "a second note about the same thing");
    }
    r->note.at = r->at;
    r->at += 2;
    for (blanks(r); r->status == NORI_OK && r->at < r->end && *r->at != '\n'; blanks(r)) {
        const char *from = r->at;
        while (r->at < r->end && letter(*r->at)) {
            r->at++;
        }
        nori__str key = {from, (size_t)(r->at - from)};
        if (!note_match(r, ':')) {
            nori__text_fail(r, from, "\"key:\" was expected in this note");
        } else if (nori__str_is(key, "doc_string")) {
            r->note.doc = note_string(r);
        } else if (nori__str_is(key, "denotation")) {
            r->note.denotation = note_string(r);
        } else if (nori__str_is(key, "bytes")) {
            r->note.bytes = note_hex(r);
        } else if (nori__str_is(key, "metadata_props") || nori__str_is(key, "dim_denotations")) {
            note_list(r, key.p[0] == 'm');
        } else {
            nori__text_fail(r, from, "a note knows doc_string, metadata_props, denotation, "
                            "dim_denotations and bytes, found %.*s", (int)(key.n < 40 ? key.n : 40),
                            key.p);
        }
    }
}

nori__note_in nori__text_note(nori__text_in *r)
{
    nori__text_peek(r);
    nori__note_in note = r->note;
    r->note = (nori__note_in){0};
    return note;
}

void nori__text_keep(nori__text_in *r, nori__pb_head *head, nori__str bytes)
{
    struct nori__pb_unknown *u = bytes.n ? nori__arena_alloc(r->arena, sizeof(*u)) : NULL;
    if (u) {
        u->bytes = bytes;
        head->unknown = u;
    } else if (bytes.n && r->status == NORI_OK) {
        r->status = nori__no_memory(r->err);
    }
}

/* ---- characters ---- */

int nori__text_peek(nori__text_in *r)
{
    while (r->status == NORI_OK && r->at < r->end) {
        char c = *r->at;
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f') {
            r->at++;
        } else if (c == '#' && r->end - r->at > 1 && r->at[1] == ':') {
            read_note(r);
        } else if (c == '#') {
            while (r->at < r->end && *r->at != '\n') {
                r->at++;
            }
        } else {
            return (unsigned char)c;
        }
    }
    return 0;
}

/* A note is taken by what it stands before; whatever else is taken has none. */
static bool may_take(nori__text_in *r)
{
    nori__text_peek(r);
    if (r->note.at) {
        return nori__text_fail(r, r->note.at, "a note stands here that is about nothing: it goes in "
                               "front of a graph, function, node, value, tensor or attribute");
    }
    return r->status == NORI_OK;
}

bool nori__text_expected(nori__text_in *r, const char *what)
{
    char found[25];
    size_t n = 0;
    if (nori__text_peek(r) == 0) {
        return nori__text_fail(r, r->at, r->at < r->end ? "%s was expected, found a NUL byte"
                                                        : "%s was expected, the text ends here", what);
    }
    for (const char *p = r->at; p < r->end && n + 1 < sizeof(found) && (unsigned char)*p > ' '; p++) {
        found[n++] = (char)(*p < 127 && *p > 0 ? *p : '?'); /* may go to a terminal */
    }
    found[n] = 0;
    return nori__text_fail(r, r->at, "%s was expected, found \"%s\"", what, found);
}

bool nori__text_match(nori__text_in *r, char c)
{
    if (nori__text_peek(r) != (unsigned char)c || !may_take(r)) {
        return false;
    }
    r->at++;
    return true;
}

bool nori__text_need(nori__text_in *r, char c, const char *what)
{
    return nori__text_match(r, c) || nori__text_expected(r, what);
}

bool nori__text_deeper(nori__text_in *r)
{
    if (r->depth >= NORI__PB_MAX_NESTING) {
        if (nori__text_fail(r, r->at, "nested more than %d deep", NORI__PB_MAX_NESTING)) {
            return false;
        }
        r->status = NORI_ERROR_LIMIT;
        if (r->err) {
            r->err->status = NORI_ERROR_LIMIT;
        }
        return false;
    }
    r->depth++;
    return true;
}

/* ---- names and strings ---- */

bool nori__text_at_word(nori__text_in *r)
{
    return letter((char)nori__text_peek(r));
}

bool nori__text_at_id(nori__text_in *r)
{
    int c = nori__text_peek(r);
    return c == '"' || letter((char)c);
}

nori__str nori__text_see_word(nori__text_in *r)
{
    nori__str s = {r->at, 0};
    if (nori__text_at_word(r)) {
        s.p = r->at;
        while (s.p + s.n < r->end && (letter(s.p[s.n]) || digit(s.p[s.n]))) {
            s.n++;
        }
    }
    return s;
}

nori__str nori__text_word(nori__text_in *r, const char *what)
{
    nori__str s = nori__text_see_word(r);
    if (s.n == 0) {
        nori__text_expected(r, what);
    } else if (may_take(r)) {
        r->at += s.n;
        return s;
    }
    return NORI__STR("");
}

nori__str nori__text_string(nori__text_in *r, const char *what)
{
    if (nori__text_peek(r) != '"') {
        nori__text_expected(r, what);
        return NORI__STR("");
    }
    if (!may_take(r)) {
        return NORI__STR("");
    }
    const char *from = r->at + 1, *p = from;
    size_t escapes = 0;
    while (p < r->end && *p != '"') {
        escapes += *p == '\\';
        p += *p == '\\' && r->end - p > 1 ? 2 : 1;
    }
    if (p >= r->end) {
        nori__text_fail(r, from - 1, "the string that begins here has no end");
        return NORI__STR("");
    }
    r->at = p + 1;
    if (escapes == 0) {
        return (nori__str){from, (size_t)(p - from)};
    }
    char *out = nori__arena_alloc(r->arena, (size_t)(p - from));
    size_t n = 0;
    if (!out) {
        r->status = nori__no_memory(r->err);
        return NORI__STR("");
    }
    for (; from < p; from++) {
        from += *from == '\\';
        out[n++] = *from;
    }
    return (nori__str){out, n};
}

nori__str nori__text_id(nori__text_in *r, const char *what)
{
    return nori__text_peek(r) == '"' ? nori__text_string(r, what) : nori__text_word(r, what);
}

/* ---- numbers ---- */

nori__str nori__text_number(nori__text_in *r, const char *what, bool *point)
{
    nori__text_peek(r);
    const char *p = r->at;
    *point = false;
    p += p < r->end && (*p == '-' || *p == '+');
    const char *from = p;
    while (p < r->end && (digit(*p) || *p == '.')) {
        *point = *point || *p == '.';
        p++;
    }
    if (p > from && p < r->end && (*p == 'e' || *p == 'E')) {
        *point = true;
        p++;
        p += p < r->end && (*p == '-' || *p == '+');
        while (p < r->end && digit(*p)) {
            p++;
        }
    }
    if (p == from) {
        while (p < r->end && letter(*p)) {
            p++;
        }
        nori__str word = {from, (size_t)(p - from)};
        *point = true;
        if (!nori__str_is(word, "inf") && !nori__str_is(word, "nan") &&
            !nori__str_is(word, "infinity")) {
            nori__text_expected(r, what);
            return NORI__STR("");
        }
    }
    nori__str s = {r->at, (size_t)(p - r->at)};
    if (s.n > 400 || !may_take(r)) {
        nori__text_fail(r, r->at, "a number of %zu characters", s.n);
        return NORI__STR("");
    }
    r->at = p;
    return s;
}

int64_t nori__text_int(nori__text_in *r, const char *what)
{
    bool point;
    nori__str s = nori__text_number(r, what, &point);
    char text[32] = "", *end;
    if (s.n == 0) {
        return 0;
    }
    errno = 0;
    if (s.n < sizeof(text)) {
        memcpy(text, s.p, s.n);
    }
    long long v = strtoll(text, &end, 10);
    if (point || s.n >= sizeof(text) || errno || *end || end == text) {
        nori__text_fail(r, s.p, "%s was expected, found %.*s", what, (int)(s.n < 40 ? s.n : 40), s.p);
        return 0;
    }
    return v;
}

uint64_t nori__text_uint(nori__text_in *r, const char *what)
{
    bool point;
    nori__str s = nori__text_number(r, what, &point);
    char text[32] = "", *end;
    if (s.n == 0) {
        return 0;
    }
    errno = 0;
    if (s.n < sizeof(text)) {
        memcpy(text, s.p, s.n);
    }
    unsigned long long v = strtoull(text, &end, 10);
    if (point || s.n >= sizeof(text) || errno || *end || end == text || s.p[0] == '-') {
        nori__text_fail(r, s.p, "%s was expected, found %.*s", what, (int)(s.n < 40 ? s.n : 40), s.p);
        return 0;
    }
    return v;
}

/* The number in the form that this program's locale reads. */
static bool localized(nori__text_in *r, nori__str s, char *out, size_t size)
{
    char half[16]; /* "0", what the locale puts for the point, "5" */
    size_t n = 0;
    int written = snprintf(half, sizeof(half), "%.1f", 0.5);
    size_t dot = written > 2 ? (size_t)written - 2 : 0;
    if (s.n == 0) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        bool point = s.p[i] == '.';
        size_t room = point ? dot : 1;
        if (n + room >= size) {
            return nori__text_fail(r, s.p, "this number is too long");
        }
        memcpy(out + n, point ? half + 1 : s.p + i, room);
        n += room;
    }
    out[n] = 0;
    return true;
}

/* single: rounded once, to a float; a double on the way would round twice. */
static double number(nori__text_in *r, const char *what, bool single)
{
    char text[480], *end;
    bool point;
    nori__str s = nori__text_number(r, what, &point);
    if (!localized(r, s, text, sizeof(text))) {
        return 0;
    }
    double v = single ? (double)strtof(text, &end) : strtod(text, &end);
    if (*end || end == text) {
        nori__text_fail(r, s.p, "%s was expected, found %.*s", what, (int)(s.n < 40 ? s.n : 40), s.p);
    }
    return v;
}

float nori__text_float(nori__text_in *r, const char *what)
{
    return (float)number(r, what, true);
}

double nori__text_double(nori__text_in *r, const char *what)
{
    return number(r, what, false);
}
