/* safetensors.c: reads the header of a .safetensors file: 8 bytes of length, little-endian, then a JSON
 * object of that length, {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}, then
 * the tensors' bytes, to which the offsets count. The file is untrusted: the reader never recurses, and
 * every number is checked against the file before it is used. */
#include <stdio.h>

#include "tools/files/safetensors.h"

enum { MAX_HEADER = 100 * 1024 * 1024 };

typedef struct cursor {
    const char *start, *at, *end;
    nori__arena *arena;
    nori_error *err;
    nori_status status;
} cursor;

static const struct {
    const char *name;
    nori_type type;
} dtypes[] = {
    {"F32", NORI_FLOAT},     {"F64", NORI_DOUBLE},    {"F16", NORI_FLOAT16}, {"BF16", NORI_BFLOAT16},
    {"I64", NORI_INT64},     {"I32", NORI_INT32},     {"I16", NORI_INT16},   {"I8", NORI_INT8},
    {"U64", NORI_UINT64},    {"U32", NORI_UINT32},    {"U16", NORI_UINT16},  {"U8", NORI_UINT8},
    {"BOOL", NORI_BOOL},     {"C64", NORI_COMPLEX64}, {"F8_E4M3", NORI_FLOAT8E4M3FN},
    {"F8_E5M2", NORI_FLOAT8E5M2}, {"F8_E8M0", NORI_FLOAT8E8M0},
};

static bool damaged(cursor *c, const char *what)
{
    if (c->status == NORI_OK) {
        c->status = nori__fail(c->err, NORI_ERROR_FORMAT, "safetensors: %s at byte %zu of the file", what,
                               (size_t)(c->at - c->start) + 8);
        nori__hint(c->err, "the file is damaged or cut: fetch or write it again");
    }
    return false;
}

static void blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')) {
        c->at++;
    }
}

static bool match(cursor *c, char ch)
{
    blanks(c);
    bool found = c->status == NORI_OK && c->at < c->end && *c->at == ch;
    c->at += found;
    return found;
}

static bool need(cursor *c, char ch)
{
    char what[32];
    snprintf(what, sizeof(what), "'%c' was expected", ch);
    return match(c, ch) || damaged(c, what);
}

static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        int d = p[i] >= '0' && p[i] <= '9'   ? p[i] - '0'
                : p[i] >= 'a' && p[i] <= 'f' ? p[i] - 'a' + 10
                : p[i] >= 'A' && p[i] <= 'F' ? p[i] - 'A' + 10
                                             : -1;
        if (d < 0) {
            return -1;
        }
        v = v * 16 + d;
    }
    return v;
}

static size_t utf8(int v, char *out)
{
    if (v < 0x80) {
        out[0] = (char)v;
        return 1;
    }
    if (v < 0x800) {
        out[0] = (char)(0xc0 | v >> 6);
        out[1] = (char)(0x80 | (v & 63));
        return 2;
    }
    out[0] = (char)(0xe0 | v >> 12);
    out[1] = (char)(0x80 | (v >> 6 & 63));
    out[2] = (char)(0x80 | (v & 63));
    return 3;
}

/* A JSON string, terminated; NULL after an error. */
static const char *read_string(cursor *c)
{
    if (!need(c, '"')) {
        return NULL;
    }
    const char *from = c->at, *p = from;
    while (p < c->end && *p != '"') {
        p += *p == '\\' && c->end - p > 1 ? 2 : 1;
    }
    if (p >= c->end) {
        damaged(c, "a string without end");
        return NULL;
    }
    char *out = nori__arena_alloc(c->arena, (size_t)(p - from) + 1);
    size_t n = 0;
    if (!out) {
        c->status = nori__no_memory(c->err);
        return NULL;
    }
    for (c->at = p + 1; from < p; from++) {
        static const char letters[] = "bfnrt", values[] = "\b\f\n\r\t";
        const char *escape = *from == '\\' ? strchr(letters, from[1]) : NULL;
        if (*from != '\\') {
            out[n++] = *from;
        } else if (from[1] == 'u') {
            int v = p - from >= 6 ? hex4(from + 2) : -1;
            if (v <= 0) {
                damaged(c, "an escape that is none");
                return NULL;
            }
            n += utf8(v, out + n);
            from += 5;
        } else {
            out[n++] = escape && from[1] ? values[escape - letters] : from[1];
            from++;
        }
    }
    out[n] = 0;
    if (strlen(out) != n) {
        damaged(c, "a NUL in a name");
    }
    return c->status == NORI_OK ? out : NULL;
}

static uint64_t read_count(cursor *c)
{
    uint64_t v = 0;
    blanks(c);
    const char *from = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (v > (UINT64_MAX - 9) / 10) {
            damaged(c, "a number that is too large");
            return 0;
        }
        v = v * 10 + (uint64_t)(*c->at - '0');
    }
    if (c->at == from) {
        damaged(c, "a count was expected");
    }
    return v;
}

/* [1, 2, ...]: at most max; how many, or -1. */
static int read_counts(cursor *c, uint64_t *out, int max)
{
    int n = 0;
    if (!need(c, '[')) {
        return -1;
    }
    if (match(c, ']')) {
        return 0;
    }
    do {
        uint64_t v = read_count(c);
        if (n == max) {
            damaged(c, max == 2 ? "two offsets were expected" : "a shape of more than 16 axes");
            return -1;
        }
        out[n++] = v;
    } while (match(c, ','));
    return need(c, ']') ? n : -1;
}

/* {"key": "value", ...}: what it says is of no use here. */
static void skip_metadata(cursor *c)
{
    if (!need(c, '{') || match(c, '}')) {
        return;
    }
    do {
        read_string(c);
        need(c, ':');
        read_string(c);
    } while (match(c, ','));
    need(c, '}');
}

static bool set_shape(cursor *c, nori__stored *s, const uint64_t *shape, int rank)
{
    int64_t count;
    s->rank = rank;
    for (int i = 0; i < rank; i++) {
        if (shape[i] > INT64_MAX) {
            return damaged(c, "a size that is too large");
        }
        s->dims[i] = (int64_t)shape[i];
    }
    return (nori__dims_count(rank, s->dims, &count) && nori__type_bytes(s->type, count, &s->bytes)) ||
           damaged(c, "a shape larger than memory can be");
}

static bool read_tensor(cursor *c, const uint8_t *data, size_t size, nori__stored *s)
{
    uint64_t shape[NORI_MAX_RANK], offsets[2] = {0, 0};
    int rank = -1, ends = -1;
    if (!need(c, '{')) {
        return false;
    }
    do {
        const char *key = read_string(c);
        if (!key || !need(c, ':')) {
            return false;
        }
        if (nori__same(key, "dtype")) {
            const char *word = read_string(c);
            for (size_t i = 0; word && i < NORI__COUNT(dtypes); i++) {
                s->type = nori__same(word, dtypes[i].name) ? dtypes[i].type : s->type;
            }
            if (word && s->type == NORI_UNDEFINED) {
                c->status = nori__fail(c->err, NORI_ERROR_UNSUPPORTED,
                                       "safetensors: tensor \"%.200s\" has the type \"%.40s\", which ONNX "
                                       "does not have", s->name, word);
                return false;
            }
        } else if (nori__same(key, "shape")) {
            rank = read_counts(c, shape, NORI_MAX_RANK);
        } else if (nori__same(key, "data_offsets")) {
            ends = read_counts(c, offsets, 2);
        } else {
            return damaged(c, "dtype, shape or data_offsets was expected");
        }
    } while (match(c, ','));
    if (!need(c, '}')) {
        return false;
    }
    if (s->type == NORI_UNDEFINED || rank < 0 || ends != 2) {
        return damaged(c, "a tensor without dtype, shape or data_offsets");
    }
    if (!set_shape(c, s, shape, rank)) {
        return false;
    }
    if (offsets[0] > offsets[1] || offsets[1] > size || offsets[1] - offsets[0] != s->bytes) {
        c->status = nori__fail(c->err, NORI_ERROR_FORMAT,
                               "safetensors: tensor \"%.200s\" lies at bytes %llu to %llu of %zu, its type "
                               "and shape need %zu", s->name, (unsigned long long)offsets[0],
                               (unsigned long long)offsets[1], size, s->bytes);
        return false;
    }
    s->data = data + offsets[0];
    return true;
}

static uint64_t header_size(const uint8_t *data)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--) {
        n = n << 8 | data[i];
    }
    return n;
}

bool nori__is_safetensors(const uint8_t *data, size_t size)
{
    return size > 9 && data[8] == '{' && header_size(data) <= MAX_HEADER;
}

nori_status nori__safetensors_read(nori__arena *arena, const uint8_t *data, size_t size,
                                   nori__vec *list, nori_error *err)
{
    uint64_t n = header_size(data);
    if (n > size - 8) {
        return nori__fail(err, NORI_ERROR_FORMAT,
                          "safetensors: the header says it has %llu bytes, the file %zu: it is cut",
                          (unsigned long long)n, size);
    }
    cursor c = {.start = (const char *)data + 8, .at = (const char *)data + 8,
                .end = (const char *)data + 8 + n, .arena = arena, .err = err};
    const uint8_t *content = data + 8 + n;
    need(&c, '{');
    bool more = c.status == NORI_OK && !match(&c, '}');
    while (more) {
        const char *name = read_string(&c);
        if (!name || !need(&c, ':')) {
            break;
        }
        if (nori__same(name, "__metadata__")) {
            skip_metadata(&c);
        } else {
            nori__stored *s = nori__arena_alloc(arena, sizeof(*s));
            if (!s || !nori__vec_push(list, s)) {
                return nori__no_memory(err);
            }
            s->name = name;
            if (!read_tensor(&c, content, size - 8 - (size_t)n, s)) {
                break;
            }
        }
        more = match(&c, ',');
        if (!more) {
            need(&c, '}');
        }
    }
    blanks(&c);
    if (c.status == NORI_OK && c.at < c.end) {
        damaged(&c, "the header goes on behind its end");
    }
    return c.status;
}
