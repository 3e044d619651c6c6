/* ort.c: ONNX Runtime behind ort.h. Functions are reached by their place in the table that
 * OrtGetApiBase hands out; the places never change from version to version. */
#include "ort.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum slot {
    SLOT_STATUS_CODE = 1,
    SLOT_STATUS_MESSAGE = 2,
    SLOT_CREATE_ENV = 3,
    SLOT_CREATE_SESSION = 7,
    SLOT_RUN = 9,
    SLOT_CREATE_OPTIONS = 10,
    SLOT_SET_SEVERITY = 22,
    SLOT_SET_LEVEL = 23,
    SLOT_SET_THREADS = 24,
    SLOT_TENSOR_WITH_DATA = 49,
    SLOT_TENSOR_NEW = 48,
    SLOT_TENSOR_BYTES = 51,
    SLOT_FILL_STRINGS = 52,
    SLOT_STRINGS_SIZE = 53,
    SLOT_STRINGS = 54,
    SLOT_ELEMENT_TYPE = 60,
    SLOT_RANK = 61,
    SLOT_DIMS = 62,
    SLOT_ELEMENTS = 64,
    SLOT_TYPE_AND_SHAPE = 65,
    SLOT_VALUE_KIND = 67,
    SLOT_CPU_MEMORY = 69,
    SLOT_ALLOCATOR = 78,
    SLOT_GET_ITEM = 80,
    SLOT_ITEM_COUNT = 81,
    SLOT_CREATE_GROUP = 82,
    SLOT_FREE_STATUS = 93,
    SLOT_FREE_SESSION = 95,
    SLOT_FREE_VALUE = 96,
    SLOT_FREE_TYPE_AND_SHAPE = 99,
    SLOT_HAS_VALUE = 192
};

enum { ORT_API_LEVEL = 18, KIND_TENSOR = 1, KIND_SEQUENCE, KIND_MAP, KIND_OPTIONAL = 6 };

/* Opaque objects of the library. */
typedef struct ort_status ort_status;
typedef struct ort_value ort_value;
typedef struct ort_object ort_object;
typedef void (*ort_function)(void);

typedef struct ort_base {
    const ort_function *(*api)(uint32_t version);
    const char *(*version)(void);
} ort_base;

struct ort {
    const ort_function *api;
    const char *version;
    ort_object *env, *options, *memory, *allocator;
};

typedef ort_status *(*get_size)(const ort_object *, size_t *);
typedef void (*free_object)(void *);

/* 0 and the text kept when a call failed. */
static int good(ort *o, ort_status *status, char *text, size_t size)
{
    if (!status) {
        return 1;
    }
    const char *(*message)(const ort_status *) =
        (const char *(*)(const ort_status *))o->api[SLOT_STATUS_MESSAGE];
    int (*code)(const ort_status *) = (int (*)(const ort_status *))o->api[SLOT_STATUS_CODE];
    snprintf(text, size, "[%d] %s", code(status), message(status));
    for (char *c = text; *c; c++) {
        if (*c == '\n' || *c == '\t' || *c == '\r') {
            *c = ' ';
        }
    }
    ((free_object)o->api[SLOT_FREE_STATUS])(status);
    return 0;
}

ort *ort_open(const char *path, char *reason, size_t size)
{
    static ort one;
    ort *o = &one;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(reason, size, "%s", dlerror());
        return NULL;
    }
    const ort_base *(*base)(void) = NULL;
    *(void **)&base = dlsym(library, "OrtGetApiBase");
    const ort_function *api = base ? base()->api(ORT_API_LEVEL) : NULL;
    if (!api) {
        snprintf(reason, size, "%s has no interface of level %d", path, ORT_API_LEVEL);
        return NULL;
    }
    o->api = api;
    o->version = base()->version();
    ort_status *(*env)(int, const char *, ort_object **) =
        (ort_status * (*)(int, const char *, ort_object **)) api[SLOT_CREATE_ENV];
    ort_status *(*options)(ort_object **) = (ort_status * (*)(ort_object **)) api[SLOT_CREATE_OPTIONS];
    ort_status *(*memory)(int, int, ort_object **) =
        (ort_status * (*)(int, int, ort_object **)) api[SLOT_CPU_MEMORY];
    ort_status *(*set)(ort_object *, int) = (ort_status * (*)(ort_object *, int)) api[SLOT_SET_LEVEL];
    if (!good(o, env(4, "differential", &o->env), reason, size) ||
        !good(o, options(&o->options), reason, size) ||
        !good(o, set(o->options, 0), reason, size)) {
        return NULL;
    }
    set = (ort_status * (*)(ort_object *, int)) api[SLOT_SET_THREADS];
    if (!good(o, set(o->options, 1), reason, size)) {
        return NULL;
    }
    set = (ort_status * (*)(ort_object *, int)) api[SLOT_SET_SEVERITY];
    ort_status *(*allocator)(ort_object **) = (ort_status * (*)(ort_object **)) api[SLOT_ALLOCATOR];
    if (!good(o, set(o->options, 4), reason, size) ||
        !good(o, memory(0, 0, &o->memory), reason, size) ||
        !good(o, allocator(&o->allocator), reason, size)) {
        return NULL;
    }
    return o;
}

const char *ort_version(const ort *o)
{
    return o->version;
}

/* ---- to the library ---- */

/* Its numbers of element types are ONNX's but for the last, which were added in another order. */
static int type_to(nori_type type)
{
    return type == NORI_UINT2 ? 24 : type == NORI_INT2 ? 25 : (int)type;
}

static nori_type type_from(int type)
{
    return type == 24 ? NORI_UINT2 : type == 25 ? NORI_INT2 : (nori_type)type;
}

static int tensor_to(ort *o, const nori_tensor *t, ort_value **value, char *text, size_t size)
{
    size_t rank = (size_t)nori_tensor_rank(t);
    const int64_t *dims = nori_tensor_dims(t);
    static int64_t nothing[2];
    if (nori_tensor_type(t) != NORI_STRING) {
        ort_status *(*make)(ort_object *, void *, size_t, const int64_t *, size_t, int,
                            ort_value **) =
            (ort_status * (*)(ort_object *, void *, size_t, const int64_t *, size_t, int,
                              ort_value **)) o->api[SLOT_TENSOR_WITH_DATA];
        void *data = (void *)(uintptr_t)nori_tensor_const_data(t);
        return good(o, make(o->memory, data ? data : nothing, nori_tensor_bytes(t), dims, rank,
                            type_to(nori_tensor_type(t)), value), text, size);
    }
    ort_status *(*make)(ort_object *, const int64_t *, size_t, int, ort_value **) =
        (ort_status * (*)(ort_object *, const int64_t *, size_t, int, ort_value **))
            o->api[SLOT_TENSOR_NEW];
    ort_status *(*fill)(ort_value *, const char *const *, size_t) =
        (ort_status * (*)(ort_value *, const char *const *, size_t)) o->api[SLOT_FILL_STRINGS];
    size_t n = (size_t)nori_tensor_elements(t);
    const nori_string *strings = nori_tensor_const_data(t);
    const char **list = calloc(n + 1, sizeof *list);
    char **copies = calloc(n + 1, sizeof *copies);
    int fine = list && copies;
    for (size_t i = 0; fine && i < n; i++) {
        copies[i] = calloc(1, strings[i].size + 1);
        fine = copies[i] != NULL;
        if (fine && strings[i].size) {
            memcpy(copies[i], strings[i].data, strings[i].size);
        }
        list[i] = copies[i];
    }
    fine = fine && good(o, make(o->allocator, dims, rank, NORI_STRING, value), text, size) &&
           good(o, fill(*value, list, n), text, size);
    for (size_t i = 0; copies && i < n; i++) {
        free(copies[i]);
    }
    free(copies);
    free(list);
    return fine;
}

static int value_to(ort *o, const nori_tensor *t, ort_value **value, char *text, size_t size)
{
    if (nori_tensor_kind(t) == NORI_KIND_TENSOR) {
        return tensor_to(o, t, value, text, size);
    }
    size_t n = nori_tensor_item_count(t);
    if (nori_tensor_kind(t) == NORI_KIND_OPTIONAL && n == 1) {
        return value_to(o, nori_tensor_item(t, 0), value, text, size);
    }
    bool map = nori_tensor_kind(t) == NORI_KIND_MAP;
    if ((!map && nori_tensor_kind(t) != NORI_KIND_SEQUENCE) || n == 0 || n > ORT_MAX_VALUES) {
        snprintf(text, size, "[test] no way to hand over this kind of value");
        return 0;
    }
    ort_status *(*group)(const ort_value *const *, size_t, int, ort_value **) =
        (ort_status * (*)(const ort_value *const *, size_t, int, ort_value **))
            o->api[SLOT_CREATE_GROUP];
    ort_value *items[ORT_MAX_VALUES] = {NULL};
    int fine = 1;
    for (size_t i = 0; fine && i < n; i++) {
        fine = tensor_to(o, nori_tensor_item(t, i), &items[i], text, size);
    }
    fine = fine && good(o, group((const ort_value *const *)items, n, map ? KIND_MAP : KIND_SEQUENCE,
                                 value), text, size);
    for (size_t i = 0; i < n; i++) {
        ((free_object)o->api[SLOT_FREE_VALUE])(items[i]);
    }
    return fine;
}

/* ---- from the library ---- */

static int strings_from(ort *o, ort_value *value, int rank, const int64_t *dims, size_t n,
                        nori_tensor **t, char *text, size_t size)
{
    ort_status *(*all)(const ort_value *, size_t *) =
        (ort_status * (*)(const ort_value *, size_t *)) o->api[SLOT_STRINGS_SIZE];
    ort_status *(*get)(const ort_value *, void *, size_t, size_t *, size_t) =
        (ort_status * (*)(const ort_value *, void *, size_t, size_t *, size_t))
            o->api[SLOT_STRINGS];
    size_t bytes = 0;
    if (!good(o, all(value, &bytes), text, size)) {
        return 0;
    }
    char *data = malloc(bytes + 1);
    size_t *at = calloc(n + 1, sizeof *at);
    nori_string *strings = calloc(n + 1, sizeof *strings);
    int fine = data && at && strings && (n == 0 || good(o, get(value, data, bytes, at, n), text, size));
    for (size_t i = 0; fine && i < n; i++) {
        size_t end = i + 1 < n ? at[i + 1] : bytes;
        strings[i] = (nori_string){data + at[i], end - at[i]};
    }
    fine = fine && nori_tensor_strings(NULL, rank, dims, strings, n, t, NULL) == NORI_OK;
    free(data);
    free(at);
    free(strings);
    return fine;
}

static int tensor_from(ort *o, ort_value *value, nori_tensor **t, char *text, size_t size)
{
    ort_object *info = NULL;
    ort_status *(*shape)(const ort_value *, ort_object **) =
        (ort_status * (*)(const ort_value *, ort_object **)) o->api[SLOT_TYPE_AND_SHAPE];
    ort_status *(*type)(const ort_object *, int *) =
        (ort_status * (*)(const ort_object *, int *)) o->api[SLOT_ELEMENT_TYPE];
    ort_status *(*dims)(const ort_object *, int64_t *, size_t) =
        (ort_status * (*)(const ort_object *, int64_t *, size_t)) o->api[SLOT_DIMS];
    ort_status *(*bytes)(ort_value *, void **) =
        (ort_status * (*)(ort_value *, void **)) o->api[SLOT_TENSOR_BYTES];
    int element = 0;
    size_t rank = 0, n = 0;
    int64_t d[NORI_MAX_RANK] = {0};
    if (!good(o, shape(value, &info), text, size)) {
        return 0;
    }
    int fine = good(o, type(info, &element), text, size) &&
               good(o, ((get_size)o->api[SLOT_RANK])(info, &rank), text, size) &&
               rank <= NORI_MAX_RANK && good(o, dims(info, d, rank), text, size) &&
               good(o, ((get_size)o->api[SLOT_ELEMENTS])(info, &n), text, size);
    ((free_object)o->api[SLOT_FREE_TYPE_AND_SHAPE])(info);
    if (fine && element == NORI_STRING) {
        return strings_from(o, value, (int)rank, d, n, t, text, size);
    }
    void *data = NULL;
    fine = fine && nori_tensor_create(NULL, type_from(element), (int)rank, d, t, NULL) == NORI_OK &&
           good(o, bytes(value, &data), text, size);
    if (fine && nori_tensor_bytes(*t)) {
        memcpy(nori_tensor_data(*t), data, nori_tensor_bytes(*t));
    }
    return fine;
}

/* Groups inside groups (a sequence of maps) go one level deeper each; ONNX has no more than two. */
static int value_from(ort *o, ort_value *value, nori_tensor **t, int depth, char *text, size_t size)
{
    ort_status *(*kind)(const ort_value *, int *) =
        (ort_status * (*)(const ort_value *, int *)) o->api[SLOT_VALUE_KIND];
    ort_status *(*has)(const ort_value *, int *) =
        (ort_status * (*)(const ort_value *, int *)) o->api[SLOT_HAS_VALUE];
    ort_status *(*count)(const ort_value *, size_t *) =
        (ort_status * (*)(const ort_value *, size_t *)) o->api[SLOT_ITEM_COUNT];
    ort_status *(*item)(const ort_value *, int, ort_object *, ort_value **) =
        (ort_status * (*)(const ort_value *, int, ort_object *, ort_value **))
            o->api[SLOT_GET_ITEM];
    int what = 0, there = 0;
    if (!good(o, has(value, &there), text, size)) {
        return 0;
    }
    if (!there) {
        return nori_tensor_group(NULL, NORI_KIND_OPTIONAL, NULL, 0, 0, NULL, t, NULL) == NORI_OK;
    }
    if (!good(o, kind(value, &what), text, size)) {
        return 0;
    }
    if (what == KIND_TENSOR) {
        return tensor_from(o, value, t, text, size);
    }
    size_t n = 0;
    if (depth > 2 || (what != KIND_SEQUENCE && what != KIND_MAP) ||
        !good(o, count(value, &n), text, size)) {
        return 0;
    }
    n = what == KIND_MAP ? 2 : n;
    nori_tensor **items = calloc(n + 1, sizeof(*items));
    int fine = items != NULL;
    for (size_t i = 0; fine && i < n; i++) {
        ort_value *v = NULL;
        fine = good(o, item(value, (int)i, o->allocator, &v), text, size) &&
               value_from(o, v, &items[i], depth + 1, text, size);
        ((free_object)o->api[SLOT_FREE_VALUE])(v);
    }
    nori_kind group = what == KIND_MAP ? NORI_KIND_MAP : NORI_KIND_SEQUENCE;
    fine = fine && nori_tensor_group(NULL, group, items, n, 0, NULL, t, NULL) == NORI_OK;
    for (size_t i = 0; items && i < n; i++) {
        nori_tensor_free(items[i]);
    }
    free(items);
    return fine;
}

ort_outcome ort_run(ort *o, const char *path, const nori_tensor *const *inputs,
                    const char *const *input_names, size_t n_in, nori_tensor **outputs,
                    const char *const *output_names, size_t n_out, char *text, size_t size)
{
    ort_status *(*create)(ort_object *, const char *, ort_object *, ort_object **) =
        (ort_status * (*)(ort_object *, const char *, ort_object *, ort_object **))
            o->api[SLOT_CREATE_SESSION];
    ort_status *(*run)(ort_object *, ort_object *, const char *const *, const ort_value *const *,
                       size_t, const char *const *, size_t, ort_value **) =
        (ort_status * (*)(ort_object *, ort_object *, const char *const *, const ort_value *const *,
                          size_t, const char *const *, size_t, ort_value **)) o->api[SLOT_RUN];
    free_object free_value = (free_object)o->api[SLOT_FREE_VALUE];
    ort_object *session = NULL;
    ort_value *in[ORT_MAX_VALUES] = {NULL}, *out[ORT_MAX_VALUES] = {NULL};
    ort_outcome outcome = ORT_REFUSED;
    snprintf(text, size, "[test] a value of a kind the test cannot hand over");
    if (n_in <= ORT_MAX_VALUES && n_out <= ORT_MAX_VALUES &&
        good(o, create(o->env, path, o->options, &session), text, size)) {
        int fine = 1;
        for (size_t i = 0; fine && i < n_in; i++) {
            fine = value_to(o, inputs[i], &in[i], text, size);
        }
        if (fine) {
            outcome = ORT_FAILED;
            fine = good(o, run(session, NULL, input_names, (const ort_value *const *)in, n_in,
                               output_names, n_out, out), text, size);
        }
        for (size_t i = 0; fine && i < n_out; i++) {
            fine = value_from(o, out[i], &outputs[i], 0, text, size);
        }
        outcome = fine ? ORT_RAN : outcome;
    }
    for (size_t i = 0; i < ORT_MAX_VALUES; i++) {
        free_value(in[i]);
        free_value(out[i]);
    }
    ((free_object)o->api[SLOT_FREE_SESSION])(session);
    return outcome;
}
