/* write.c: message structs to bytes, by the same tables as reading.
 *
 * Two walks over the same fields: the first records the size of each message, in the order they
 * are met, the second writes and takes the sizes in that order: linear whatever the nesting. The
 * walk recurses, at most MAX_DEPTH deep: deeper is an error, however the messages came about. */
#include "base/byte_order.h"
#include "onnx/fields.h"

#include <pb_encode.h>

#define MAX_DEPTH (NORI__PB_MAX_NESTING * 3 + 8)

typedef struct writer {
    const nori_allocator *allocator;
    nori__pb_sink sink; /* NULL in the first walk */
    void *user;
    size_t size;     /* bytes so far */
    size_t *sizes;   /* of the messages within, in the order they begin */
    size_t count, capacity, next;
    nori_status status;
} writer;

static void put(writer *w, const void *bytes, size_t size)
{
    if (!nori__add_size(w->size, size, &w->size)) {
        w->status = NORI_ERROR_LIMIT;
    } else if (w->sink && size > 0 && !w->sink(w->user, bytes, size)) {
        w->status = NORI_ERROR_IO;
    }
}

/* Floats of size bytes each. */
static void put_fixed(writer *w, const void *items, size_t count, size_t size)
{
    if (!NORI__BIG_ENDIAN) {
        put(w, items, count * size);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        char one[8];
        memcpy(one, (const char *)items + i * size, size);
        nori__turn(one, size, size);
        put(w, one, size);
    }
}

static void put_varint(writer *w, uint64_t v)
{
    pb_byte_t buffer[10];
    pb_ostream_t s = pb_ostream_from_buffer(buffer, sizeof(buffer));
    pb_encode_varint(&s, v); /* cannot fail: 10 bytes hold any */
    put(w, buffer, s.bytes_written);
}

static size_t varint_size(uint64_t v)
{
    size_t n = 1;
    while (v >>= 7) {
        n++;
    }
    return n;
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

/* A place in sizes for the message that begins now. */
static bool new_size(writer *w, size_t *index)
{
    if (w->count == w->capacity) {
        size_t capacity = w->capacity ? w->capacity * 2 : 64, old, bytes;
        size_t *sizes = NULL;
        if (nori__mul_size(capacity, sizeof(*sizes), &bytes)) {
            sizes = nori__alloc(w->allocator, bytes);
        }
        if (!sizes) {
            w->status = NORI_ERROR_MEMORY;
            return false;
        }
        old = w->capacity * sizeof(*sizes);
        if (old > 0) {
            memcpy(sizes, w->sizes, old);
        }
        nori__release(w->allocator, w->sizes, old);
        w->sizes = sizes;
        w->capacity = capacity;
    }
    *index = w->count++;
    return true;
}

static void put_sub(writer *w, const nori__pb_field *field, const char *object,
                    const nori__pb_head *head, int depth)
{
    if (w->sink) {
        put_tag(w, field, PB_WT_STRING);
        put_varint(w, w->sizes[w->next++]);
        put_message(w, field->message, object, head, depth + 1);
        return;
    }
    size_t index, before = w->size;
    if (new_size(w, &index)) {
        put_message(w, field->message, object, head, depth + 1);
        w->sizes[index] = w->size - before;
        put_tag(w, field, PB_WT_STRING);
        put_varint(w, w->sizes[index]);
    }
}

/* As its reader will have it: of int32_data the low half, whatever field its entries came from. */
static uint64_t entry(const nori__pb_field *field, nori__pb_cursor *cursor)
{
    uint64_t v = nori__pb_number(cursor);
    return field->kind == F_I32S ? (uint64_t)(int64_t)(int32_t)(uint32_t)v : v;
}

static nori__pb_cursor first(const nori__pb_field *field, const nori__pb_any_list *list)
{
    return nori__pb_is_numbers(field) ? nori__pb_numbers_of(list) : (nori__pb_cursor){.items = list->items};
}

static size_t numbers_size(const nori__pb_field *field, const nori__pb_any_list *list)
{
    nori__pb_cursor c = first(field, list);
    size_t bytes = 0;
    for (size_t i = 0; i < list->count; i++) {
        bytes += varint_size(entry(field, &c));
    }
    return bytes;
}

static void put_floats(writer *w, const nori__pb_field *field, const nori__pb_any_list *list)
{
    size_t size = nori__pb_item_size(field);
    if (field->packed && list->count > 0) {
        put_tag(w, field, PB_WT_STRING);
        put_varint(w, list->count * size);
        put_fixed(w, list->items, list->count, size);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        put_tag(w, field, size == 4 ? PB_WT_32BIT : PB_WT_64BIT);
        put_fixed(w, (const char *)list->items + i * size, 1, size);
    }
}

static void put_numbers(writer *w, const nori__pb_field *field, const nori__pb_any_list *list)
{
    nori__pb_cursor c = first(field, list);
    if (c.at && c.half == (field->kind == F_I32S)) { /* of this very field */
        put_bytes(w, field, ((const nori__pb_any_numbers *)(const void *)list)->packed);
        return;
    }
    if (field->packed && list->count > 0) {
        put_tag(w, field, PB_WT_STRING);
        put_varint(w, numbers_size(field, list));
    }
    for (size_t i = 0; i < list->count; i++) {
        if (!field->packed) {
            put_tag(w, field, PB_WT_VARINT);
        }
        put_varint(w, entry(field, &c));
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

/* Whether a zero or an empty string is written out: where the file did so. An attribute that was
 * given another type since does not keep the value of the old one. */
static bool was_there(const nori__pb_message *m, const nori__pb_field *field, const char *object,
                      const nori__pb_head *head)
{
    if (field->has >= 0 && *(const bool *)(object + field->has)) {
        return true;
    }
    if (m == &nori__pb_attr_message && field->code != 0 &&
        field->code != (uint8_t)((const nori__pb_attr *)(const void *)object)->kind) {
        return false;
    }
    return head->present >> (field - m->fields) & 1;
}

/* A number or string. */
static void put_scalar(writer *w, const nori__pb_field *field, const char *object, bool has)
{
    const char *member = object + field->offset;
    if (field->kind == F_STR) {
        nori__str s = *(const nori__str *)(const void *)member;
        if (s.n > 0 || has) {
            put_bytes(w, field, s);
        }
        return;
    }
    if (field->kind == F_FLOAT) {
        uint32_t bits;
        memcpy(&bits, member, sizeof(bits));
        if (bits != 0 || has) {
            put_tag(w, field, PB_WT_32BIT);
            put_fixed(w, member, 1, sizeof(bits));
        }
        return;
    }
    int64_t v = field->kind == F_I64 ? *(const int64_t *)(const void *)member
                                     : *(const int32_t *)(const void *)member;
    if (v != 0 || has) {
        put_tag(w, field, PB_WT_VARINT);
        put_varint(w, (uint64_t)v);
    }
}

static void put_field(writer *w, const nori__pb_message *m, const nori__pb_field *field,
                      const char *object, const nori__pb_head *head, int depth)
{
    static const nori__pb_head none;
    const char *member = object + field->offset;
    const nori__pb_any_list *list = (const void *)member;
    const void *sub;
    switch (field->kind) {
    case F_I64:
    case F_I32:
    case F_ENUM:
    case F_FLOAT:
    case F_STR:
        put_scalar(w, field, object, was_there(m, field, object, head));
        break;
    case F_STRS:
        for (size_t i = 0; i < list->count; i++) {
            put_bytes(w, field, ((const nori__str *)list->items)[i]);
        }
        break;
    case F_MESSAGE:
        sub = *(const void *const *)(const void *)member;
        if (sub) {
            put_sub(w, field, sub, sub, depth);
        }
        break;
    case F_ONEOF: {
        const nori__pb_type *type = (const void *)object;
        if (type->kind == (nori_kind)field->code) {
            put_sub(w, field, object, type->wrapped ? type->wrapped : &none, depth);
        }
        break;
    }
    case F_MESSAGES:
        for (size_t i = 0; i < list->count; i++) {
            sub = (const char *)list->items + i * field->message->size;
            put_sub(w, field, sub, sub, depth);
        }
        break;
    case F_POINTERS:
        for (size_t i = 0; i < list->count; i++) {
            sub = ((void *const *)list->items)[i];
            put_sub(w, field, sub, sub, depth);
        }
        break;
    default:
        if (nori__pb_is_fixed(field)) {
            put_floats(w, field, list);
        } else if (belongs(m, field, object)) {
            put_numbers(w, field, list);
        }
    }
}

static void put_message(writer *w, const nori__pb_message *m, const char *object,
                        const nori__pb_head *head, int depth)
{
    if (depth > MAX_DEPTH) {
        w->status = NORI_ERROR_LIMIT;
    }
    for (uint16_t i = 0; i < m->count && w->status == NORI_OK; i++) {
        put_field(w, m, &m->fields[i], object, head, depth);
    }
    for (const struct nori__pb_unknown *u = head->unknown; u; u = u->next) {
        put(w, u->bytes.p, u->bytes.n);
    }
}

static nori_status write_to(const nori__pb_message *m, const void *object, const nori_allocator *a,
                            nori__pb_sink sink, void *user, size_t *size, nori_error *err)
{
    writer w = {.allocator = a};
    put_message(&w, m, object, object, 0);
    *size = w.size;
    if (w.status == NORI_OK && sink) {
        w.size = 0;
        w.sink = sink;
        w.user = user;
        put_message(&w, m, object, object, 0);
    }
    nori__release(w.allocator, w.sizes, w.capacity * sizeof(*w.sizes));
    if (w.status == NORI_ERROR_LIMIT) {
        return nori__fail(err, NORI_ERROR_LIMIT,
                          "%s: it is nested more than %d deep, or larger than memory can be",
                          m->name, MAX_DEPTH);
    }
    return w.status == NORI_ERROR_MEMORY ? nori__no_memory(err) : w.status;
}

/* Room for the whole is made at the first byte: the size is known by then. */
typedef struct text_sink {
    nori__text *out;
    const size_t *size;
    bool begun;
} text_sink;

static bool add_text(void *user, const void *bytes, size_t size)
{
    text_sink *t = user;
    if (!t->begun && !nori__text_reserve(t->out, *t->size)) {
        return false;
    }
    t->begun = true;
    nori__text_add(t->out, bytes, size);
    return !t->out->failed;
}

static nori_status write_message(const nori__pb_message *m, const void *object, nori__text *out,
                                 nori_error *err)
{
    size_t size = 0;
    text_sink t = {.out = out, .size = &size};
    nori_status s = write_to(m, object, out->allocator, add_text, &t, &size, err);
    return s == NORI_ERROR_IO || out->failed ? nori__no_memory(err) : s;
}

nori_status nori__pb_write_model_to(const nori__pb_model *model, const nori_allocator *a,
                                    nori__pb_sink sink, void *user, size_t *size, nori_error *err)
{
    return write_to(&nori__pb_model_message, model, a, sink, user, size, err);
}

nori_status nori__pb_write_model(const nori__pb_model *model, nori__text *out, nori_error *err)
{
    return write_message(&nori__pb_model_message, model, out, err);
}

nori_status nori__pb_write_tensor(const nori__pb_tensor *tensor, nori__text *out, nori_error *err)
{
    return write_message(&nori__pb_tensor_message, tensor, out, err);
}

nori_status nori__pb_write_group(const nori__pb_group *group, nori_kind kind, nori__text *out,
                                 nori_error *err)
{
    return write_message(kind == NORI_KIND_MAP ? &nori__pb_map_message : &nori__pb_group_message,
                         group, out, err);
}
