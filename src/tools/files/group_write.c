/* group_write.c: values as TensorProto, SequenceProto, OptionalProto and MapProto. Recurses as deep
 * as the values nest, which making them limits. */
#include "base/byte_order.h"
#include "tools/files/group_file.h"

#include "onnx/onnx.h"

typedef struct writer {
    nori__arena arena;
    nori_error *err;
} writer;

enum { ITEM_TENSOR = 1, ITEM_SEQUENCE = 3, ITEM_MAP, ITEM_OPTIONAL };

static nori_status fill_tensor(writer *w, const nori_tensor *t, nori__pb_tensor *pb)
{
    *pb = (nori__pb_tensor){.data_type = t->type};
    pb->dims.items = (int64_t *)(uintptr_t)t->dims;
    pb->dims.count = t->rank;
    if (t->type != NORI_STRING) {
        pb->has_raw = true;
        pb->raw = nori__file_bytes(&w->arena, (nori_type)t->type, t->data, t->bytes);
        return pb->raw.p ? NORI_OK : nori__no_memory(w->err);
    }
    pb->strings.count = (size_t)t->count;
    pb->strings.items = nori__arena_array(&w->arena, pb->strings.count + 1, sizeof(nori__str));
    if (!pb->strings.items) {
        return nori__no_memory(w->err);
    }
    for (int64_t i = 0; i < t->count; i++) {
        const nori_string *s = (const nori_string *)t->data + i;
        pb->strings.items[i] = (nori__str){s->data, s->size};
    }
    return NORI_OK;
}

static nori_status fill_group(writer *w, const nori_tensor *t, nori__pb_group *pb);

/* Keys, and values as a sequence of tensors of one element each. */
static nori_status fill_map(writer *w, const nori_tensor *t, nori__pb_group *pb)
{
    const nori_tensor *keys = ((nori_tensor **)t->data)[0];
    const nori_tensor *values = ((nori_tensor **)t->data)[1];
    size_t n = (size_t)keys->count;
    unsigned bits = nori_type_bits((nori_type)values->type);
    pb->elem = keys->type;
    pb->values = nori__arena_alloc(&w->arena, sizeof(*pb->values));
    nori__pb_tensor *items = nori__arena_array(&w->arena, n + 1, sizeof(*items));
    if (!pb->values || !items) {
        return nori__no_memory(w->err);
    }
    if (values->kind != NORI_KIND_TENSOR || values->count != keys->count ||
        (values->type != NORI_STRING && bits < 8) ||
        (keys->type != NORI_STRING && keys->type != NORI_INT64)) {
        return nori__fail(w->err, NORI_ERROR_UNSUPPORTED,
                          "a map of this kind has no form in a file");
    }
    if (keys->type == NORI_STRING) {
        nori__pb_tensor strings;
        NORI__TRY(fill_tensor(w, keys, &strings));
        pb->string_keys.items = strings.strings.items;
        pb->string_keys.count = n;
    } else {
        pb->keys.items = keys->data;
        pb->keys.count = n;
    }
    for (size_t i = 0; i < n; i++) {
        items[i] = (nori__pb_tensor){.data_type = values->type};
        if (values->type == NORI_STRING) {
            const nori_string *s = (const nori_string *)values->data + i;
            items[i].strings.items = nori__arena_alloc(&w->arena, sizeof(nori__str));
            if (!items[i].strings.items) {
                return nori__no_memory(w->err);
            }
            items[i].strings.items[0] = (nori__str){s->data, s->size};
            items[i].strings.count = 1;
        } else {
            items[i].has_raw = true;
            items[i].raw = nori__file_bytes(&w->arena, (nori_type)values->type,
                                            (const char *)values->data + i * (bits / 8), bits / 8);
            if (!items[i].raw.p) {
                return nori__no_memory(w->err);
            }
        }
    }
    pb->values->elem = ITEM_TENSOR;
    pb->values->tensors.items = items;
    pb->values->tensors.count = n;
    return NORI_OK;
}

/* Items of a sequence or optional, all of one kind. */
static nori_status fill_items(writer *w, const nori_tensor *t, nori__pb_group *pb)
{
    nori_tensor **items = t->data;
    size_t n = (size_t)t->count;
    uint8_t kind = n > 0 ? items[0]->kind : (uint8_t)NORI_KIND_TENSOR;
    nori__pb_tensor *tensors = nori__arena_array(&w->arena, n + 1, sizeof(*tensors));
    nori__pb_group **groups = nori__arena_array(&w->arena, n + 1, sizeof(*groups));
    if (!tensors || !groups) {
        return nori__no_memory(w->err);
    }
    for (size_t i = 0; i < n; i++) {
        if (items[i]->kind != kind || kind == NORI_KIND_SPARSE) {
            return nori__fail(w->err, NORI_ERROR_UNSUPPORTED,
                              "items of several kinds, or sparse ones, cannot be written");
        }
        if (kind == NORI_KIND_TENSOR) {
            NORI__TRY(fill_tensor(w, items[i], &tensors[i]));
            continue;
        }
        groups[i] = nori__arena_alloc(&w->arena, sizeof(*groups[i]));
        if (!groups[i]) {
            return nori__no_memory(w->err);
        }
        NORI__TRY(fill_group(w, items[i], groups[i]));
    }
    if (kind == NORI_KIND_TENSOR) {
        pb->elem = n > 0 || t->kind == NORI_KIND_SEQUENCE ? ITEM_TENSOR : 0;
        pb->tensors.items = tensors;
        pb->tensors.count = n;
    } else if (kind == NORI_KIND_SEQUENCE) {
        pb->elem = ITEM_SEQUENCE;
        pb->sequences.items = groups;
        pb->sequences.count = n;
    } else if (kind == NORI_KIND_MAP) {
        pb->elem = ITEM_MAP;
        pb->maps.items = groups;
        pb->maps.count = n;
    } else {
        pb->elem = ITEM_OPTIONAL;
        pb->optionals.items = groups;
        pb->optionals.count = n;
    }
    return NORI_OK;
}

static nori_status fill_group(writer *w, const nori_tensor *t, nori__pb_group *pb)
{
    switch (t->kind) {
    case NORI_KIND_MAP:
        return fill_map(w, t, pb);
    case NORI_KIND_SEQUENCE:
    case NORI_KIND_OPTIONAL:
        return fill_items(w, t, pb);
    default:
        return nori__fail(w->err, NORI_ERROR_UNSUPPORTED, "a sparse tensor cannot be written");
    }
}

nori_status nori__value_write(const nori_tensor *t, nori__text *out, nori_error *err)
{
    writer w = {.err = err};
    nori__arena_init(&w.arena, &nori__malloc);
    nori_status s;
    if (t->kind == NORI_KIND_TENSOR) {
        nori__pb_tensor pb;
        s = fill_tensor(&w, t, &pb);
        s = s == NORI_OK ? nori__pb_write_tensor(&pb, out, err) : s;
    } else {
        nori__pb_group pb = {.elem = 0};
        s = fill_group(&w, t, &pb);
        s = s == NORI_OK ? nori__pb_write_group(&pb, (nori_kind)t->kind, out, err) : s;
    }
    nori__arena_free(&w.arena);
    return s;
}
