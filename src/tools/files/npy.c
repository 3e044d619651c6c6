/* npy.c: reading and writing .npy. The header is a Python dictionary; only the three keys of the
 * format are looked at, by a small scanner, and everything is checked against the bytes present. */
#include "tools/files/npy.h"

#include "base/byte_order.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
    const char *descr;
    nori_type type;
} kinds[] = {
    {"f4", NORI_FLOAT},   {"f8", NORI_DOUBLE}, {"f2", NORI_FLOAT16}, {"i1", NORI_INT8},
    {"u1", NORI_UINT8},   {"i2", NORI_INT16},  {"u2", NORI_UINT16},  {"i4", NORI_INT32},
    {"u4", NORI_UINT32},  {"i8", NORI_INT64},  {"u8", NORI_UINT64},  {"b1", NORI_BOOL},
    {"c8", NORI_COMPLEX64}, {"c16", NORI_COMPLEX128},
};

bool nori__is_npy(const uint8_t *data, size_t size)
{
    return size >= 10 && memcmp(data, "\x93NUMPY", 6) == 0;
}

static nori_status damaged(nori_error *err, const char *what)
{
    return nori__fail(err, NORI_ERROR_FORMAT, "the .npy file is damaged: %s", what);
}

/* The text behind 'key': in the header, or NULL. */
static const char *find_key(const char *header, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof(quoted), "'%s':", key);
    const char *at = strstr(header, quoted);
    if (!at) {
        return NULL;
    }
    at += strlen(quoted);
    while (*at == ' ') {
        at++;
    }
    return at;
}

/* "U12": strings of 12 characters of four bytes each, UTF-32, padded with zeros. */
static bool read_width(const char *at, size_t *width)
{
    *width = 0;
    if (*at++ != 'U') {
        return false;
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        if (*width > (1u << 26)) {
            return false;
        }
        *width = *width * 10 + (size_t)(*at - '0');
    }
    return *at == '\'';
}

/* width: characters of a string, else 0. turned: the file's byte order is not the machine's. */
static nori_status read_descr(const char *at, nori_type *type, size_t *width, bool *turned, nori_error *err)
{
    *width = 0;
    if (!at || *at != '\'') {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "the .npy file holds a structured type; plain numbers were expected");
    }
    at++;
    *turned = *at == (NORI__BIG_ENDIAN ? '<' : '>');
    at += *at == '<' || *at == '>' || *at == '|' || *at == '=';
    for (size_t i = 0; i < NORI__COUNT(kinds); i++) {
        size_t n = strlen(kinds[i].descr);
        if (strncmp(at, kinds[i].descr, n) == 0 && at[n] == '\'') {
            *type = kinds[i].type;
            return NORI_OK;
        }
    }
    if (read_width(at, width)) {
        *type = NORI_STRING;
        return NORI_OK;
    }
    return nori__fail(err, NORI_ERROR_UNSUPPORTED, "the .npy file has element type %.8s", at);
}

static nori_status read_shape(const char *at, int *rank, int64_t *dims, nori_error *err)
{
    if (!at || *at++ != '(') {
        return damaged(err, "no shape");
    }
    for (*rank = 0;;) {
        while (*at == ' ' || *at == ',') {
            at++;
        }
        if (*at == ')') {
            return NORI_OK;
        }
        if (*at < '0' || *at > '9') {
            return damaged(err, "a size in the shape is not a number");
        }
        if (*rank == NORI_MAX_RANK) {
            return nori__fail(err, NORI_ERROR_LIMIT, "the .npy file has more than %d axes",
                              NORI_MAX_RANK);
        }
        int64_t v = 0;
        while (*at >= '0' && *at <= '9') {
            if (!nori__mul_dim(v, 10, &v) || !nori__add_i64(v, *at - '0', &v)) {
                return damaged(err, "a size in the shape is too large");
            }
            at++;
        }
        at += *at == 'L';
        dims[(*rank)++] = v;
    }
}

/* Column-major data to row-major. */
static void from_fortran(nori_tensor *t, const uint8_t *data)
{
    size_t width = nori_type_bits(t->type) / 8;
    int64_t index[NORI_MAX_RANK] = {0};
    for (int64_t i = 0; i < t->count; i++) {
        int64_t at = 0;
        for (int d = t->rank - 1; d >= 0; d--) {
            at = at * t->dims[d] + index[d];
        }
        memcpy((char *)t->data + (size_t)i * width, data + (size_t)at * width, width);
        for (int d = t->rank - 1; d >= 0 && ++index[d] == t->dims[d]; d--) {
            index[d] = 0;
        }
    }
}

static size_t put_utf8(uint32_t c, char *out)
{
    c = c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)(lead[n] | c);
    return n;
}

/* Row-major strings of width characters. */
static nori_status read_strings(const nori_allocator *a, nori_tensor *t, const uint8_t *data,
                                size_t width, bool turned, nori_error *err)
{
    char *text = nori__alloc(a, width * 4);
    nori_status s = text ? NORI_OK : nori__no_memory(err);
    for (int64_t i = 0; s == NORI_OK && i < t->count; i++, data += width * 4) {
        size_t n = 0, end = width;
        while (end > 0 && memcmp(data + end * 4 - 4, "\0\0\0", 4) == 0) {
            end--;
        }
        for (size_t k = 0; k < end; k++) {
            uint32_t c;
            memcpy(&c, data + k * 4, 4);
            if (turned) {
                nori__turn(&c, 4, 4);
            }
            n += put_utf8(c, text + n);
        }
        s = nori__tensor_set_string(t, i, text, n, err);
    }
    nori__release(a, text, width * 4);
    return s;
}

/* Whether the data behind the header are what type and shape need: before memory is asked for, so
 * that a header's lie costs nothing. */
static nori_status check_size(nori_type type, size_t width, int rank, const int64_t *dims,
                              size_t have, nori_error *err)
{
    int64_t count;
    size_t need = 0;
    if (type == NORI_STRING && width == 0) {
        return damaged(err, "its strings have no characters");
    }
    bool fits = nori__dims_count(rank, dims, &count);
    if (fits && type == NORI_STRING) {
        fits = nori__mul_size((size_t)count, width, &need) && nori__mul_size(need, 4, &need);
    } else if (fits) {
        fits = nori__type_bytes(type, count, &need);
    }
    if (!fits) {
        return damaged(err, "its shape needs more memory than exists");
    }
    return have == need ? NORI_OK
                        : nori__fail(err, NORI_ERROR_FORMAT,
                                     "the .npy file has %zu bytes of data, its shape needs %zu",
                                     have, need);
}

nori_status nori__npy_head_read(const uint8_t *data, size_t have, size_t size, nori__npy_head *h,
                                nori_error *err)
{
    size_t start = data[6] >= 2 ? 12 : 10, length = data[8] | (size_t)data[9] << 8;
    if (have < start) {
        return damaged(err, "the header is cut");
    }
    if (data[6] >= 2) {
        length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
    }
    char header[NORI__NPY_HEAD_MAX - 12];
    if (length > have - start || length >= sizeof(header)) {
        return damaged(err, "the header is cut or too long");
    }
    memcpy(header, data + start, length);
    header[length] = 0;
    *h = (nori__npy_head){.start = start + length};
    NORI__TRY(read_descr(find_key(header, "descr"), &h->type, &h->width, &h->turned, err));
    NORI__TRY(read_shape(find_key(header, "shape"), &h->rank, h->dims, err));
    const char *order = find_key(header, "fortran_order");
    h->fortran = order && strncmp(order, "True", 4) == 0 && h->rank > 1;
    return check_size(h->type, h->width, h->rank, h->dims, size - h->start, err);
}

static void turn_elements(const nori__npy_head *h, nori_tensor *t)
{
    if (t && h->turned && h->type != NORI_STRING) {
        nori__turn(t->data, t->bytes, nori__order_width(h->type));
    }
}

nori_status nori__npy_read(const nori_allocator *a, const uint8_t *data, size_t size,
                           nori_tensor **tensor, nori_error *err)
{
    nori__npy_head h;
    NORI__TRY(nori__npy_head_read(data, size, size, &h, err));
    const uint8_t *elements = data + h.start;
    NORI__TRY(nori__tensor_new(a, h.type, h.rank, h.dims, tensor, err));
    nori_status s = NORI_OK;
    if (h.type == NORI_STRING && h.fortran) {
        s = nori__fail(err, NORI_ERROR_UNSUPPORTED, "the .npy file has strings in Fortran order");
    } else if (h.type == NORI_STRING) {
        s = read_strings(a, *tensor, elements, h.width, h.turned, err);
    } else if (h.fortran) {
        from_fortran(*tensor, elements);
    } else if ((*tensor)->bytes > 0) {
        memcpy((*tensor)->data, elements, (*tensor)->bytes);
    }
    turn_elements(&h, s == NORI_OK ? *tensor : NULL);
    if (s != NORI_OK) {
        nori_tensor_free(*tensor);
        *tensor = NULL;
    }
    return s;
}

nori_status nori__npy_rows(const nori_allocator *a, const uint8_t *data, size_t size, int64_t first,
                           int64_t count, nori_tensor **tensor, int64_t *rows, nori_error *err)
{
    nori__npy_head h;
    NORI__TRY(nori__npy_head_read(data, size, size, &h, err));
    const uint8_t *elements = data + h.start;
    if (h.type == NORI_STRING || h.fortran || h.rank == 0) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "the .npy file cannot be read by rows: a row-major array of numbers was "
                          "expected");
    }
    *rows = h.dims[0];
    if (first < 0 || count < 0 || first > *rows || count > *rows - first) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "rows %lld to %lld were asked for, the .npy file has %lld",
                          (long long)first, (long long)first + count, (long long)*rows);
    }
    size_t row = *rows > 0 ? (size - h.start) / (size_t)*rows : 0;
    h.dims[0] = count;
    NORI__TRY(nori__tensor_new(a, h.type, h.rank, h.dims, tensor, err));
    if ((*tensor)->bytes > 0) {
        memcpy((*tensor)->data, elements + row * (size_t)first, (*tensor)->bytes);
    }
    turn_elements(&h, *tensor);
    return NORI_OK;
}

nori_status nori__npy_write(const nori_tensor *t, nori__text *out, nori_error *err)
{
    const char *descr = NULL;
    for (size_t i = 0; i < NORI__COUNT(kinds); i++) {
        descr = kinds[i].type == (nori_type)t->type ? kinds[i].descr : descr;
    }
    if (!descr || t->kind != NORI_KIND_TENSOR) {
        nori_status s = nori__fail(err, NORI_ERROR_UNSUPPORTED, ".npy cannot hold %s%s",
                                   t->kind == NORI_KIND_TENSOR ? "type " : "a sequence, map or optional",
                                   t->kind == NORI_KIND_TENSOR ? nori_type_name(t->type) : "");
        nori__hint(err, "write a .pb file instead");
        return s;
    }
    char header[1024];
    int n = snprintf(header, sizeof(header), "{'descr': '%s%s', 'fortran_order': False, 'shape': (",
                     nori_type_bits(t->type) == 8 ? "|" : NORI__BIG_ENDIAN ? ">" : "<", descr);
    for (int d = 0; d < t->rank; d++) {
        n += snprintf(header + n, sizeof(header) - (size_t)n, "%lld,%s", (long long)t->dims[d],
                      d + 1 < t->rank ? " " : "");
    }
    n += snprintf(header + n, sizeof(header) - (size_t)n, "), }");
    size_t total = (10 + (size_t)n + 1 + 63) / 64 * 64; /* data start at a multiple of 64 */
    uint8_t begin[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)((total - 10) & 255),
                         (uint8_t)((total - 10) >> 8)};
    nori__text_add(out, (const char *)begin, sizeof(begin));
    nori__text_add(out, header, (size_t)n);
    while (out->size % 64 != 63 && !out->failed) {
        nori__text_add(out, " ", 1);
    }
    nori__text_add(out, "\n", 1);
    nori__text_add(out, t->data, t->bytes);
    return out->failed ? nori__no_memory(err) : NORI_OK;
}
