/* serve_elements.c: tensors from binary data and from JSON numbers and texts. */
#include "serve_elements.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- binary ---- */

static nori_status wrong_size(serve_elements *e, uint64_t want)
{
    return nori__serve_fail(e->err, NORI_ERROR_ARGUMENT,
                            "input \"%s\" has %zu bytes of binary data, its shape needs %" PRIu64,
                            e->info->name, e->size, want);
}

/* Each string: four bytes of length, little-endian, then its bytes. */
static nori_status binary_strings(serve_elements *e, nori_tensor **tensor)
{
    if (e->count > e->size / 4) {
        return wrong_size(e, 4 * e->count);
    }
    nori_string *strings = calloc((size_t)e->count + 1, sizeof(*strings));
    size_t at = 0;
    if (!strings) {
        return nori__serve_oom(e->err);
    }
    for (uint64_t i = 0; i < e->count; i++) {
        const unsigned char *p = (const unsigned char *)e->bytes + at;
        size_t n = e->size - at >= 4 ? (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 |
                                           (size_t)p[3] << 24
                                     : SIZE_MAX;
        if (n == SIZE_MAX || n > e->size - at - 4) {
            free(strings);
            return nori__serve_fail(e->err, NORI_ERROR_ARGUMENT,
                                    "string %" PRIu64 " of input \"%s\" goes beyond its binary data", i,
                                    e->info->name);
        }
        strings[i] = (nori_string){(const char *)p + 4, n};
        at += 4 + n;
    }
    nori_status status =
        at == e->size
            ? nori_tensor_strings(NULL, e->rank, e->dims, strings, (size_t)e->count, tensor, e->err)
            : nori__serve_fail(e->err, NORI_ERROR_ARGUMENT,
                               "%zu bytes of binary data follow the last string of input \"%s\"",
                               e->size - at, e->info->name);
    free(strings);
    return status;
}

nori_status nori__serve_bytes(serve_elements *e, nori_tensor **tensor)
{
    if (e->type == NORI_STRING) {
        return binary_strings(e, tensor);
    }
    size_t width = nori_type_bits(e->type) / 8;
    if (e->count > UINT64_MAX / width || e->count * width != e->size) {
        return wrong_size(e, e->count * width);
    }
    for (size_t i = 0; e->type == NORI_BOOL && i < e->size; i++) {
        if ((unsigned char)e->bytes[i] > 1) {
            return nori__serve_fail(e->err, NORI_ERROR_ARGUMENT,
                                    "byte %zu of the BOOL input \"%s\" is neither 0 nor 1", i,
                                    e->info->name);
        }
    }
    if ((uintptr_t)e->bytes % width == 0) {
        return nori_tensor_wrap(NULL, e->type, e->rank, e->dims, e->bytes, e->size, NULL, NULL, tensor,
                                e->err);
    }
    nori_status status = nori_tensor_create(NULL, e->type, e->rank, e->dims, tensor, e->err);
    if (status == NORI_OK && e->size > 0) {
        memcpy(nori_tensor_data(*tensor), e->bytes, e->size);
    }
    return status;
}

/* ---- JSON ---- */

/* Where elements go, as lists are walked. */
typedef struct filler {
    serve_elements *e;
    void *data;
    nori_string *strings;
    uint64_t next;
} filler;

static nori_status bad_element(filler *f, const char *want)
{
    const char *word = nori__serve_word(f->e->type);
    return nori__serve_fail(f->e->err, NORI_ERROR_ARGUMENT,
                            "element %" PRIu64 " of \"data\" of input \"%s\" is not %s, as %s needs",
                            f->next, f->e->info->name, want, word ? word : "its type");
}

/* A whole number in a range; reals that are whole count too, as some writers make 1 a 1.0. */
static bool whole(const json_t *v, int64_t low, int64_t high, int64_t *out)
{
    if (json_is_integer(v)) {
        *out = json_integer_value(v);
    } else if (json_is_real(v) && fabs(json_real_value(v)) <= 9007199254740992.0 &&
               json_real_value(v) == floor(json_real_value(v))) {
        *out = (int64_t)json_real_value(v);
    } else {
        return false;
    }
    return *out >= low && *out <= high;
}

#define STORE(type, low, high)                             \
    if (!whole(v, low, high, &n)) {                        \
        return bad_element(f, "a whole number in range");  \
    }                                                      \
    ((type *)f->data)[f->next] = (type)n;                  \
    break

static nori_status store(filler *f, const json_t *v)
{
    int64_t n = 0;
    switch (f->e->type) {
    case NORI_STRING:
        if (!json_is_string(v)) {
            return bad_element(f, "a text");
        }
        f->strings[f->next] = (nori_string){json_string_value(v), json_string_length(v)};
        break;
    case NORI_BOOL:
        if (!json_is_boolean(v) && !whole(v, 0, 1, &n)) {
            return bad_element(f, "true or false");
        }
        ((uint8_t *)f->data)[f->next] = (uint8_t)(json_is_boolean(v) ? json_is_true(v) : n != 0);
        break;
    case NORI_INT8: STORE(int8_t, INT8_MIN, INT8_MAX);
    case NORI_INT16: STORE(int16_t, INT16_MIN, INT16_MAX);
    case NORI_INT32: STORE(int32_t, INT32_MIN, INT32_MAX);
    case NORI_INT64: STORE(int64_t, INT64_MIN, INT64_MAX);
    case NORI_UINT8: STORE(uint8_t, 0, UINT8_MAX);
    case NORI_UINT16: STORE(uint16_t, 0, UINT16_MAX);
    case NORI_UINT32: STORE(uint32_t, 0, UINT32_MAX);
    case NORI_UINT64: STORE(uint64_t, 0, INT64_MAX);
    default:
        if (!json_is_number(v)) {
            return bad_element(f, "a number");
        }
        double d = json_number_value(v);
        if (f->e->type == NORI_DOUBLE) {
            ((double *)f->data)[f->next] = d;
        } else if (f->e->type == NORI_FLOAT) {
            if (fabs(d) >= 3.4028235677973366e38) { /* beyond what rounds to the largest */
                return bad_element(f, "a number in range");
            }
            ((float *)f->data)[f->next] = (float)d;
        } else {
            ((uint16_t *)f->data)[f->next] = nori__serve_to_half(d, f->e->type == NORI_BFLOAT16);
        }
    }
    f->next++;
    return NORI_OK;
}

/* Lists in lists: as deep as the shape has axes, so at most NORI_MAX_RANK calls. */
static nori_status walk(filler *f, const json_t *list, int axis)
{
    const serve_elements *e = f->e;
    if (!json_is_array(list) || json_array_size(list) != (uint64_t)e->dims[axis]) {
        return nori__serve_fail(e->err, NORI_ERROR_ARGUMENT,
                                "\"data\" of input \"%s\" does not follow its shape: a list of %" PRId64
                                " was expected at depth %d", e->info->name, e->dims[axis], axis);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        nori_status status = axis + 1 < e->rank ? walk(f, v, axis + 1) : store(f, v);
        if (status != NORI_OK) {
            return status;
        }
    }
    return NORI_OK;
}

static nori_status fill(filler *f, const json_t *data)
{
    const serve_elements *e = f->e;
    if (e->rank > 1 && json_is_array(json_array_get(data, 0))) {
        return walk(f, data, 0);
    }
    if (json_array_size(data) != e->count) {
        return nori__serve_fail(e->err, NORI_ERROR_ARGUMENT,
                                "\"data\" of input \"%s\" has %zu elements, its shape needs %" PRIu64,
                                e->info->name, json_array_size(data), e->count);
    }
    for (size_t i = 0; i < json_array_size(data); i++) {
        nori_status status = store(f, json_array_get(data, i));
        if (status != NORI_OK) {
            return status;
        }
    }
    return NORI_OK;
}

/* No more elements than the JSON can hold are made room for. */
static uint64_t held(const json_t *data, int depth)
{
    uint64_t count = json_array_size(data);
    if (depth > 1 && json_is_array(json_array_get(data, 0))) {
        count = 0;
        for (size_t i = 0; i < json_array_size(data); i++) {
            count += held(json_array_get(data, i), depth - 1);
        }
    }
    return count;
}

nori_status nori__serve_data(serve_elements *e, const json_t *data, nori_tensor **tensor)
{
    filler f = {.e = e};
    if (!json_is_array(data)) {
        return nori__serve_fail(e->err, NORI_ERROR_ARGUMENT, "\"data\" of input \"%s\" must be a list",
                                e->info->name);
    }
    if (held(data, e->rank) != e->count) {
        return nori__serve_fail(e->err, NORI_ERROR_ARGUMENT,
                                "\"data\" of input \"%s\" has %" PRIu64 " elements, its shape needs %" PRIu64,
                                e->info->name, held(data, e->rank), e->count);
    }
    if (e->type == NORI_STRING) {
        f.strings = calloc((size_t)e->count + 1, sizeof(*f.strings));
        nori_status status = f.strings ? fill(&f, data) : nori__serve_oom(e->err);
        if (status == NORI_OK) {
            status = nori_tensor_strings(NULL, e->rank, e->dims, f.strings, (size_t)e->count, tensor,
                                         e->err);
        }
        free(f.strings);
        return status;
    }
    nori_status status = nori_tensor_create(NULL, e->type, e->rank, e->dims, tensor, e->err);
    if (status == NORI_OK) {
        f.data = nori_tensor_data(*tensor);
        status = fill(&f, data);
    }
    if (status != NORI_OK) {
        nori_tensor_free(*tensor);
        *tensor = NULL;
    }
    return status;
}
