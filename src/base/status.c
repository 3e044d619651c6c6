/* status.c: status texts, the error object, version. */
#include "base/given.h"

#include <stdio.h>

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *nori_version(void)
{
    return VERSION_TEXT(NORI_VERSION_MAJOR, NORI_VERSION_MINOR, NORI_VERSION_PATCH);
}

const char *nori_status_text(nori_status status)
{
    static const char *const texts[] = {
#define NORI__TEXT(name, text) text,
        NORI_STATUS_LIST(NORI__TEXT)
#undef NORI__TEXT
    };
    return (size_t)status < NORI__COUNT(texts) ? texts[status] : "unknown status";
}

/* Text that does not fit ends in "..." so that a reader sees it was cut. */
static void mark_cut(char *text, size_t size, int wanted)
{
    if (wanted >= 0 && (size_t)wanted >= size) {
        memcpy(text + size - 4, "...", 4);
    }
}

nori_status nori__fail(nori_error *err, nori_status status, const char *fmt, ...)
{
    if (err && err->status == NORI_OK) {
        va_list args;
        va_start(args, fmt);
        int n = vsnprintf(err->message, sizeof(err->message), fmt, args);
        va_end(args);
        mark_cut(err->message, sizeof(err->message), n);
        err->status = status;
        err->has_offset = 0;
        err->where[0] = 0;
        err->hint[0] = 0;
    }
    return status;
}

void nori__where(nori_error *err, const char *fmt, ...)
{
    if (!err || err->status == NORI_OK) {
        return;
    }
    char inner[sizeof(err->where)];
    memcpy(inner, err->where, sizeof(inner));
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(err->where, sizeof(err->where), fmt, args);
    va_end(args);
    mark_cut(err->where, sizeof(err->where), n);
    size_t used = strlen(err->where);
    if (inner[0] && used < sizeof(err->where) - 3) {
        n = snprintf(err->where + used, sizeof(err->where) - used, ": %s", inner);
        mark_cut(err->where, sizeof(err->where), n < 0 ? n : n + (int)used);
    }
}

void nori__hint(nori_error *err, const char *fmt, ...)
{
    if (!err || err->status == NORI_OK || err->hint[0]) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(err->hint, sizeof(err->hint), fmt, args);
    va_end(args);
    mark_cut(err->hint, sizeof(err->hint), n);
}

void nori__offset(nori_error *err, uint64_t offset)
{
    if (err && err->status != NORI_OK && !err->has_offset) {
        err->has_offset = 1;
        err->offset = offset;
    }
}

nori_status nori__no_memory(nori_error *err)
{
    return nori__fail(err, NORI_ERROR_MEMORY, "out of memory");
}

nori_status nori__not_given(nori_error *err, const char *function, const char *what)
{
    return nori__fail(err, NORI_ERROR_ARGUMENT, "%s: %s must not be NULL", function, what);
}

/* ---- types ---- */

static const struct {
    const char *name;
    unsigned bits;
} types[NORI_TYPE_COUNT] = {
    [NORI_UNDEFINED] = {"undefined", 0},
    [NORI_FLOAT] = {"float32", 32},
    [NORI_UINT8] = {"uint8", 8},
    [NORI_INT8] = {"int8", 8},
    [NORI_UINT16] = {"uint16", 16},
    [NORI_INT16] = {"int16", 16},
    [NORI_INT32] = {"int32", 32},
    [NORI_INT64] = {"int64", 64},
    [NORI_STRING] = {"string", 0},
    [NORI_BOOL] = {"bool", 8},
    [NORI_FLOAT16] = {"float16", 16},
    [NORI_DOUBLE] = {"float64", 64},
    [NORI_UINT32] = {"uint32", 32},
    [NORI_UINT64] = {"uint64", 64},
    [NORI_COMPLEX64] = {"complex64", 64},
    [NORI_COMPLEX128] = {"complex128", 128},
    [NORI_BFLOAT16] = {"bfloat16", 16},
    [NORI_FLOAT8E4M3FN] = {"float8e4m3fn", 8},
    [NORI_FLOAT8E4M3FNUZ] = {"float8e4m3fnuz", 8},
    [NORI_FLOAT8E5M2] = {"float8e5m2", 8},
    [NORI_FLOAT8E5M2FNUZ] = {"float8e5m2fnuz", 8},
    [NORI_UINT4] = {"uint4", 4},
    [NORI_INT4] = {"int4", 4},
    [NORI_FLOAT4E2M1] = {"float4e2m1", 4},
    [NORI_FLOAT8E8M0] = {"float8e8m0", 8},
    [NORI_UINT2] = {"uint2", 2},
    [NORI_INT2] = {"int2", 2},
};

const char *nori_type_name(nori_type type)
{
    return (size_t)type < NORI_TYPE_COUNT ? types[type].name : "?";
}

unsigned nori_type_bits(nori_type type)
{
    return (size_t)type < NORI_TYPE_COUNT ? types[type].bits : 0;
}
