/* read.c: bytes to message structs, by the field tables and nanopb's wire functions.
 *
 * Each message is walked twice: once to check its wire structure and count list items, so that
 * lists are one allocation, once to fill them. The stack is explicit: nesting in the file costs no
 * C stack. A singular message given twice is refused, not merged: no exporter writes that, and two
 * readers that differ in it would see two models in one file. */
#include "base/bulk.h"
#include "base/byte_order.h"
#include "onnx/reader.h"

/* A message in the file may be two bytes, its struct is hundreds: without a bound a small file
 * could take a hundred times its size. What exporters write takes at most about 25 times the bytes
 * of its structure (attributes of one number), and weights take nothing. */
#define STRUCTS_PER_BYTE 32u
#define STRUCTS_ALWAYS ((size_t)8 << 20)

/* Memory for list items, which are all filled, as far as the file's size allows. */
static nori_status make_raw(nori__pb_reader *r, size_t count, size_t size, void **memory)
{
    size_t bytes;
    if (!nori__mul_size(count, size, &bytes) || bytes > r->budget) {
        nori_status s = nori__fail(r->err, NORI_ERROR_LIMIT,
                                   "the messages in the file's %zu bytes would take more than %u "
                                   "times as much memory",
                                   (size_t)(r->end - r->data), STRUCTS_PER_BYTE);
        nori__hint(r->err, "no exporter writes so many empty messages: the file is damaged, or "
                           "made to do harm");
        return s;
    }
    r->budget -= bytes;
    *memory = nori__arena_raw(r->arena, 1, bytes);
    return *memory ? NORI_OK : nori__no_memory(r->err);
}

/* A struct, set to zero. */
static nori_status make(nori__pb_reader *r, size_t size, void **memory)
{
    NORI__TRY(make_raw(r, 1, size, memory));
    memset(*memory, 0, size);
    return NORI_OK;
}

/* How many numbers a packed payload holds. */
static nori_status packed_items(nori__pb_reader *r, const nori__pb_frame *f,
                                const nori__pb_item *it, size_t *count)
{
    nori__str bytes = it->bytes;
    size_t n = 0;
    if (nori__pb_is_fixed(it->field)) {
        size_t size = nori__pb_item_size(it->field);
        *count = bytes.n / size;
        return bytes.n % size == 0
                   ? NORI_OK
                   : nori__pb_damaged(r, f, it, "expected a multiple of %zu bytes, found %zu",
                                      size, bytes.n);
    }
    for (size_t i = 0; i < bytes.n; i++) {
        n += !((unsigned char)bytes.p[i] & 0x80);
    }
    *count = n;
    return bytes.n == 0 || !((unsigned char)bytes.p[bytes.n - 1] & 0x80)
               ? NORI_OK
               : nori__pb_damaged(r, f, it, "the last of its packed numbers is cut off");
}

/* Whether the floats of a payload may be used where they stand: those of attributes are read as numbers,
 * those of tensors are moved as bytes until somebody aligns them (tensor_pb.c). */
static bool stays(const nori__pb_frame *f, const nori__pb_item *it)
{
    return !NORI__BIG_ENDIAN && nori__pb_is_fixed(it->field) &&
           (f->message == &nori__pb_tensor_message ||
            (uintptr_t)it->bytes.p % nori__pb_item_size(it->field) == 0);
}

/* Adds the items of one field to what its list will hold. A list whose floats all come in one
 * payload is not copied but pointed at, where it may stay. */
static nori_status count_item(nori__pb_reader *r, const nori__pb_frame *f, const nori__pb_item *it)
{
    nori__pb_any_list *list = (void *)(f->object + it->field->offset);
    nori__pb_any_numbers *numbers = nori__pb_is_numbers(it->field) ? (void *)list : NULL;
    size_t n = 1;
    list->items = NULL; /* more than one payload: copied */
    if (numbers) {
        numbers->packed = (nori__str){NULL, 0};
    }
    if (nori__pb_may_pack(it->field) && it->wire == PB_WT_STRING) {
        NORI__TRY(packed_items(r, f, it, &n));
        if (list->count == 0 && n > 0 && stays(f, it)) {
            list->items = (void *)(uintptr_t)it->bytes.p;
        }
        if (numbers && list->count == 0 && it->bytes.n >= NORI__PB_PACKED_LEAST) {
            numbers->packed = it->bytes;
            numbers->half = it->field->kind == F_I32S;
        }
    }
    list->count += n; /* cannot overflow: each item has a byte in the file */
    return NORI_OK;
}

/* Counts list items and makes the lists; also checks the wire structure of the whole message. */
static nori_status count_items(nori__pb_reader *r, nori__pb_frame *f)
{
    pb_istream_t s = f->stream;
    nori__pb_item it;
    uint32_t met = 0; /* lists, by row of the table */
    for (bool end = false;;) {
        NORI__TRY(nori__pb_next(r, f, &s, &it, &end));
        if (end) {
            break;
        }
        if (it.field && nori__pb_is_list(it.field)) {
            NORI__TRY(count_item(r, f, &it));
            met |= UINT32_C(1) << (it.field - f->message->fields);
        }
    }
    for (uint32_t i = 0; met >> i; i++) {
        const nori__pb_field *field = &f->message->fields[i];
        nori__pb_any_list *list = (void *)(f->object + field->offset);
        if (!(met >> i & 1) || list->count == 0) {
            continue; /* empty, or shared with a field that was here before */
        }
        if (nori__pb_is_numbers(field) && ((nori__pb_any_numbers *)(void *)list)->packed.p) {
            continue; /* whole already */
        }
        if (!list->items) {
            NORI__TRY(make_raw(r, list->count, nori__pb_item_size(field), &list->items));
        }
        list->count = 0;
    }
    return NORI_OK;
}

static nori_status push(nori__pb_reader *r, const nori__pb_message *message, void *object,
                        nori__pb_head *head, nori__str bytes)
{
    if (r->depth == NORI__PB_MAX_DEPTH) {
        nori_status s = nori__fail(r->err, NORI_ERROR_LIMIT,
                                   "messages are nested more than %d deep", NORI__PB_MAX_DEPTH);
        nori__offset(r->err, (uint64_t)((const uint8_t *)bytes.p - r->data));
        return s;
    }
    nori__pb_frame *f = &r->stack[r->depth++];
    *f = (nori__pb_frame){.message = message, .object = object, .head = head};
    f->stream = pb_istream_from_buffer((const pb_byte_t *)bytes.p, bytes.n);
    head->bytes = bytes;
    return count_items(r, f);
}

static void add_number(nori__pb_any_list *list, const nori__pb_field *field, uint64_t v)
{
    if (field->kind == F_I32S) {
        ((int64_t *)list->items)[list->count++] = (int32_t)v;
    } else {
        ((uint64_t *)list->items)[list->count++] = v;
    }
}

/* Appends the items of a packed payload, whose shape count_items has checked. */
static nori_status add_packed(nori__pb_reader *r, const nori__pb_frame *f, const nori__pb_item *it,
                              nori__pb_any_list *list)
{
    if (nori__pb_is_fixed(it->field)) {
        size_t size = nori__pb_item_size(it->field);
        if (it->bytes.n > 0 && list->items != it->bytes.p) {
            char *to = (char *)list->items + list->count * size;
            memcpy(to, it->bytes.p, it->bytes.n);
            if (NORI__BIG_ENDIAN) {
                nori__turn(to, it->bytes.n, size);
            }
        }
        list->count += it->bytes.n / size;
        return NORI_OK;
    }
    if (nori__pb_is_numbers(it->field) && ((nori__pb_any_numbers *)(void *)list)->packed.p == it->bytes.p) {
        return nori__pb_numbers_fit(it->bytes)
                   ? NORI_OK
                   : nori__pb_damaged(r, f, it, "expected packed varints, found one beyond 64 bits");
    }
    pb_istream_t s = pb_istream_from_buffer((const pb_byte_t *)it->bytes.p, it->bytes.n);
    while (s.bytes_left > 0) {
        uint64_t v;
        if (!pb_decode_varint(&s, &v)) {
            return nori__pb_damaged(r, f, it,
                                    "expected a packed varint, found no whole one (%s)",
                                    PB_GET_ERROR(&s));
        }
        add_number(list, it->field, v);
    }
    return NORI_OK;
}

/* Neighbours share one record: a file of nothing else costs no more memory than its bytes. */
static nori_status keep_unknown(nori__pb_reader *r, nori__pb_frame *f, const nori__pb_item *it)
{
    size_t size = (size_t)(nori__pb_at(&f->stream) - it->start);
    if (r->report && r->report->unknown_fields++ == 0) {
        r->report->first_number = it->number;
        r->report->first_offset = (uint64_t)(it->start - r->data);
        r->report->first_message = f->message->name;
    }
    if (f->last && (const uint8_t *)f->last->bytes.p + f->last->bytes.n == it->start) {
        f->last->bytes.n += size;
        return NORI_OK;
    }
    void *memory = NULL;
    NORI__TRY(make(r, sizeof(struct nori__pb_unknown), &memory));
    struct nori__pb_unknown *u = memory;
    u->bytes = (nori__str){(const char *)it->start, size};
    u->number = it->number;
    if (f->last) {
        f->last->next = u;
    } else {
        f->head->unknown = u;
    }
    f->last = u;
    return NORI_OK;
}

static nori_status enter_oneof(nori__pb_reader *r, nori__pb_frame *f, const nori__pb_item *it)
{
    nori__pb_type *type = (void *)f->object;
    void *memory = NULL;
    NORI__TRY(make(r, sizeof(nori__pb_head), &memory));
    nori__pb_head *head = memory;
    if (type->kind != NORI_KIND_UNKNOWN) {
        return nori__pb_damaged(r, f, it, "expected one kind of type, found a second one");
    }
    type->kind = (nori_kind)it->field->code;
    type->wrapped = head;
    return push(r, it->field->message, type, head, it->bytes);
}

/* A payload that is a message: finds or makes its struct and pushes a frame for it. */
static nori_status enter(nori__pb_reader *r, nori__pb_frame *f, const nori__pb_item *it)
{
    const nori__pb_message *message = it->field->message;
    char *member = f->object + it->field->offset;
    nori__pb_any_list *list = (void *)member;
    if (it->field->kind == F_ONEOF) {
        return enter_oneof(r, f, it);
    }
    if (it->field->kind == F_MESSAGES) {
        char *object = (char *)list->items + list->count++ * message->size;
        memset(object, 0, message->size); /* here and not all at once: now it is needed */
        return push(r, message, object, (void *)object, it->bytes);
    }
    void *object = NULL;
    NORI__TRY(make(r, message->size, &object));
    if (it->field->kind == F_POINTERS) {
        ((void **)list->items)[list->count++] = object;
    } else if (*(void **)(void *)member) {
        return nori__pb_damaged(r, f, it, "expected one message, found a second one");
    } else {
        *(void **)(void *)member = object;
    }
    return push(r, message, object, object, it->bytes);
}

static void put_float(void *to, uint64_t v)
{
    uint32_t bits = (uint32_t)v;
    memcpy(to, &bits, sizeof(bits));
}

static nori_status store(nori__pb_reader *r, nori__pb_frame *f, const nori__pb_item *it)
{
    char *member = f->object + it->field->offset;
    nori__pb_any_list *list = (void *)member;
    f->head->present |= UINT32_C(1) << (it->field - f->message->fields);
    if (it->field->has >= 0) {
        *(bool *)(f->object + it->field->has) = true;
    }
    switch (it->field->kind) {
    case F_I64:
        *(int64_t *)(void *)member = (int64_t)it->v;
        return NORI_OK;
    case F_I32:
    case F_ENUM:
        *(int32_t *)(void *)member = (int32_t)it->v;
        return NORI_OK;
    case F_FLOAT:
        put_float(member, it->v);
        return NORI_OK;
    case F_STR:
        *(nori__str *)(void *)member = it->bytes;
        return NORI_OK;
    case F_STRS:
        ((nori__str *)list->items)[list->count++] = it->bytes;
        return NORI_OK;
    case F_MESSAGE:
    case F_ONEOF:
    case F_MESSAGES:
    case F_POINTERS:
        return enter(r, f, it);
    default: /* numbers */
        if (it->wire == PB_WT_STRING) {
            return add_packed(r, f, it, list);
        }
        if (it->field->kind == F_FLOATS) {
            put_float((float *)list->items + list->count++, it->v);
        } else {
            add_number(list, it->field, it->v);
        }
        return NORI_OK;
    }
}

/* Reads one field of the top frame, or takes the frame off when its message is at its end. */
static nori_status step(nori__pb_reader *r)
{
    nori__pb_frame *f = &r->stack[r->depth - 1];
    nori__pb_item it;
    bool end;
    NORI__TRY(nori__pb_next(r, f, &f->stream, &it, &end));
    if (end) {
        nori__pb_attr *attr = f->message == &nori__pb_attr_message ? (void *)f->object : NULL;
        if (attr && attr->kind == NORI__ATTR_NONE) {
            attr->kind = (nori__pb_attr_kind)f->implied;
        }
        r->depth--;
        return NORI_OK;
    }
    if (!it.field) {
        return keep_unknown(r, f, &it);
    }
    if (f->message == &nori__pb_attr_message && it.field->code != 0) {
        f->implied = it.field->code;
    }
    return store(r, f, &it);
}

static nori_status read_message(nori__arena *arena, const uint8_t *data, size_t size,
                                const nori__pb_message *message, void **object,
                                nori__pb_report *report, nori_error *err)
{
    nori__pb_reader *r = nori__alloc_zero(arena->allocator, sizeof(*r));
    *object = nori__arena_alloc(arena, message->size);
    nori_status status = r && *object ? NORI_OK : nori__no_memory(err);
    if (status == NORI_OK) {
        r->arena = arena;
        r->data = data;
        r->end = data ? data + size : data;
        r->report = report;
        r->err = err;
        size_t most;
        r->budget = nori__mul_size(size, STRUCTS_PER_BYTE, &most) &&
                            nori__add_size(most, STRUCTS_ALWAYS, &most)
                        ? most
                        : SIZE_MAX;
        status = push(r, message, *object, *object, (nori__str){(const char *)data, size});
    }
    while (status == NORI_OK && r->depth > 0) {
        status = step(r);
    }
    nori__release(arena->allocator, r, sizeof(*r));
    return status;
}

nori_status nori__pb_read_model(nori__arena *arena, const uint8_t *data, size_t size,
                                nori__pb_model **model, nori__pb_report *report, nori_error *err)
{
    *model = NULL;
    const char *other = nori__pb_looks_like(data, size);
    if (other) {
        nori_status s = nori__fail(err, NORI_ERROR_FORMAT, "not an ONNX model: %s", other);
        nori__hint(err, "an .onnx file (a serialized ModelProto) was expected");
        return s;
    }
    void *object = NULL;
    NORI__TRY(read_message(arena, data, size, &nori__pb_model_message, &object, report, err));
    *model = object;
    if (!(*model)->graph) {
        *model = NULL;
        nori_status s =
            nori__fail(err, NORI_ERROR_FORMAT, "not an ONNX model: ModelProto has no graph");
        nori__hint(err, "if this is a tensor file (.pb), give it as an input, not as the model");
        return s;
    }
    return NORI_OK;
}

nori_status nori__pb_read_tensor(nori__arena *arena, const uint8_t *data, size_t size,
                                 nori__pb_tensor **tensor, nori_error *err)
{
    *tensor = NULL;
    const char *other = nori__pb_looks_like(data, size);
    if (other) {
        nori_status s = nori__fail(err, NORI_ERROR_FORMAT, "not an ONNX tensor: %s", other);
        nori__hint(err, "a .pb file (a serialized TensorProto) was expected");
        return s;
    }
    void *object = NULL;
    NORI__TRY(read_message(arena, data, size, &nori__pb_tensor_message, &object, NULL, err));
    *tensor = object;
    return NORI_OK;
}

nori_status nori__pb_read_group(nori__arena *arena, const uint8_t *data, size_t size,
                                nori_kind kind, nori__pb_group **group, nori_error *err)
{
    const nori__pb_message *message =
        kind == NORI_KIND_MAP ? &nori__pb_map_message : &nori__pb_group_message;
    void *object = NULL;
    *group = NULL;
    NORI__TRY(read_message(arena, data, size, message, &object, NULL, err));
    *group = object;
    return NORI_OK;
}
