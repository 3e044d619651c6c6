/* write.c: message structs to bytes, by the same tables. Two walks: sizes, then bytes; nesting of
 * messages is what the reader or the graph allowed, so recursion is bounded by that. */
#include "onnx/fields.h"

#include <pb_encode.h>

#define MAX_DEPTH (NORI__PB_MAX_NESTING * 3 + 8)

typedef struct writer {
    nori__text *out; /* NULL: only count */
    size_t size;
} writer;

static void put(writer *w, const void *bytes, size_t size)
{
    w->size += size;
    if (w->out) {
        nori__text_add(w->out, bytes, size);
    }
}

static void put_varint(writer *w, uint64_t v)
{
    pb_byte_t buffer[10];
    pb_ostream_t s = pb_ostream_from_buffer(buffer, sizeof(buffer));
    pb_encode_varint(&s, v);
    put(w, buffer, s.bytes_written);
}

static void put_tag(writer *w, const nori__pb_field *field, pb_wire_type_t wire)
{
    put_varint(w, (uint64_t)field->number << 3 | (uint64_t)wire);
}

static void put_bytes(writer *w, const nori__pb_field *field, nori__str s)
{
    put_tag(w, field, PB_WT_STRING);
    put_varint(w, s.n);
    put(w, s.p, s.n);
}

static void put_message(writer *w, const nori__pb_message *m, const char *object,
                        const nori__pb_head *head, int depth);

static void put_sub(writer *w, const nori__pb_field *field, const char *object,
                    const nori__pb_head *head, int depth)
{
    writer counting = {NULL, 0};
    put_message(&counting, field->message, object, head, depth + 1);
    put_tag(w, field, PB_WT_STRING);
    put_varint(w, counting.size);
    if (w->out) {
        put_message(w, field->message, object, head, depth + 1);
    } else {
        w->size += counting.size; /* already walked: counting stays linear */
    }
}

static void put_number(writer *w, const nori__pb_field *field, const void *item, bool tag)
{
    if (field->kind == F_FLOATS || field->kind == F_DOUBLES) {
        if (tag) {
            put_tag(w, field, field->kind == F_FLOATS ? PB_WT_32BIT : PB_WT_64BIT);
        }
        put(w, item, field->kind == F_FLOATS ? 4 : 8);
        return;
    }
    if (tag) {
        put_tag(w, field, PB_WT_VARINT);
    }
    put_varint(w, *(const uint64_t *)item);
}

static void put_numbers(writer *w, const nori__pb_field *field, const nori__pb_any_list *list)
{
    size_t size = nori__pb_item_size(field);
    const char *items = list->items;
    if (field->packed && list->count > 0) {
        writer counting = {NULL, 0};
        for (size_t i = 0; i < list->count; i++) {
            put_number(&counting, field, items + i * size, false);
        }
        put_tag(w, field, PB_WT_STRING);
        put_varint(w, counting.size);
    }
    for (size_t i = 0; i < list->count; i++) {
        put_number(w, field, items + i * size, !field->packed);
    }
}

/* int32_data and int64_data share a list; the tensor's type says which field it is written as. */
static bool belongs(const nori__pb_message *m, const nori__pb_field *field, const char *object)
{
    if (m != &nori__pb_tensor_message || field->offset != offsetof(nori__pb_tensor, ints)) {
        return true;
    }
    bool wide = ((const nori__pb_tensor *)(const void *)object)->data_type == NORI_INT64;
    return wide == (field->kind == F_I64S);
}

static void put_field(writer *w, const nori__pb_message *m, const nori__pb_field *field,
                      const char *object, int depth)
{
    const char *member = object + field->offset;
    const nori__pb_any_list *list = (const void *)member;
    bool has = field->has >= 0 && *(const bool *)(object + field->has);
    switch (field->kind) {
    case F_I64: {
        int64_t v = *(const int64_t *)(const void *)member;
        if (v != 0 || has) {
            put_tag(w, field, PB_WT_VARINT);
            put_varint(w, (uint64_t)v);
        }
        break;
    }
    case F_I32:
    case F_ENUM: {
        int32_t v = *(const int32_t *)(const void *)member;
        if (v != 0) {
            put_tag(w, field, PB_WT_VARINT);
            put_varint(w, (uint64_t)(int64_t)v);
        }
        break;
    }
    case F_FLOAT: {
        uint32_t bits;
        memcpy(&bits, member, 4);
        if (bits != 0) {
            put_tag(w, field, PB_WT_32BIT);
            put(w, member, 4);
        }
        break;
    }
    case F_STR: {
        nori__str s = *(const nori__str *)(const void *)member;
        if (s.n > 0 || has) {
            put_bytes(w, field, s);
        }
        break;
    }
    case F_STRS:
        for (size_t i = 0; i < list->count; i++) {
            put_bytes(w, field, ((const nori__str *)list->items)[i]);
        }
        break;
    case F_MESSAGE: {
        const void *sub = *(const void *const *)(const void *)member;
        if (sub) {
            put_sub(w, field, sub, sub, depth);
        }
        break;
    }
    case F_ONEOF: {
        const nori__pb_type *type = (const void *)object;
        static const nori__pb_head none;
        if (type->kind == (nori_kind)field->oneof) {
            put_sub(w, field, object, type->wrapped ? type->wrapped : &none, depth);
        }
        break;
    }
    case F_MESSAGES:
        for (size_t i = 0; i < list->count; i++) {
            const char *sub = (const char *)list->items + i * field->message->size;
            put_sub(w, field, sub, (const void *)sub, depth);
        }
        break;
    case F_POINTERS:
        for (size_t i = 0; i < list->count; i++) {
            const void *sub = ((void *const *)list->items)[i];
            put_sub(w, field, sub, sub, depth);
        }
        break;
    default:
        if (belongs(m, field, object)) {
            put_numbers(w, field, list);
        }
    }
}

static void put_message(writer *w, const nori__pb_message *m, const char *object,
                        const nori__pb_head *head, int depth)
{
    if (depth > MAX_DEPTH) {
        return; /* cannot be: readers and graphs are limited */
    }
    for (uint16_t i = 0; i < m->count; i++) {
        put_field(w, m, &m->fields[i], object, depth);
    }
    for (const struct nori__pb_unknown *u = head->unknown; u; u = u->next) {
        put(w, u->bytes.p, u->bytes.n);
    }
}

static nori_status write_message(const nori__pb_message *m, const void *object, nori__text *out,
                                 nori_error *err)
{
    writer w = {out, 0};
    put_message(&w, m, object, object, 0);
    return out->failed ? nori__no_memory(err) : NORI_OK;
}

nori_status nori__pb_write_model(const nori__pb_model *model, nori__text *out, nori_error *err)
{
    return write_message(&nori__pb_model_message, model, out, err);
}

nori_status nori__pb_write_tensor(const nori__pb_tensor *tensor, nori__text *out, nori_error *err)
{
    return write_message(&nori__pb_tensor_message, tensor, out, err);
}
