/* read.c: bytes to message structs, by the field tables and nanopb's wire functions.
 *
 * Each message is walked twice: once to count list items, so that lists are one allocation, once
 * to fill them. The stack is explicit: nesting in the file costs no C stack. */
#include "onnx/fields.h"

#include <pb_decode.h>

#define MAX_DEPTH (NORI__PB_MAX_NESTING * 3 + 8) /* a graph is in an attribute is in a node */

typedef struct frame {
    const nori__pb_message *message;
    char *object;
    nori__pb_head *head;
    pb_istream_t stream;
} frame;

typedef struct reader {
    nori__arena *arena;
    const uint8_t *data;
    nori__pb_report *report;
    nori_error *err;
    size_t depth;
    frame stack[MAX_DEPTH];
} reader;

static const uint8_t *at(const pb_istream_t *stream)
{
    return stream->state;
}

static nori_status damaged(reader *r, const uint8_t *where, const frame *f,
                           const nori__pb_field *field, const char *what)
{
    nori_status s = nori__fail(r->err, NORI_ERROR_FORMAT, "%s%s%s: %s", f->message->name,
                               field ? "." : "", field ? field->name : "", what);
    nori__offset(r->err, (uint64_t)(where - r->data));
    nori__hint(r->err, "the file is damaged or not an ONNX model; fetch or export it again");
    return s;
}

static const nori__pb_field *find_field(const nori__pb_message *m, uint32_t number)
{
    for (uint16_t i = 0; i < m->count; i++) {
        if (m->fields[i].number == number) {
            return &m->fields[i];
        }
    }
    return NULL;
}

static bool is_list(const nori__pb_field *field)
{
    return field->kind >= F_STRS;
}

/* The wire type one item of a field has; lists of numbers may also come packed. */
static pb_wire_type_t wire_of(const nori__pb_field *field)
{
    switch (field->kind) {
    case F_I64:
    case F_I32:
    case F_ENUM:
    case F_I64S:
    case F_I32S:
    case F_U64S:
        return PB_WT_VARINT;
    case F_FLOAT:
    case F_FLOATS:
        return PB_WT_32BIT;
    case F_DOUBLES:
        return PB_WT_64BIT;
    default:
        return PB_WT_STRING;
    }
}

static bool may_pack(const nori__pb_field *field)
{
    return field->kind >= F_I64S;
}

/* Length and place of a length-delimited payload; the stream moves past it. */
static bool take_bytes(pb_istream_t *stream, nori__str *out)
{
    uint64_t size;
    if (!pb_decode_varint(stream, &size) || size > stream->bytes_left) {
        return false;
    }
    out->p = (const char *)at(stream);
    out->n = (size_t)size;
    return pb_read(stream, NULL, (size_t)size);
}

/* A field's payload of the given wire type is skipped; deprecated groups are refused. */
static bool skip(pb_istream_t *stream, pb_wire_type_t wire)
{
    nori__str bytes;
    if (wire == PB_WT_STRING) {
        return take_bytes(stream, &bytes);
    }
    return wire != PB_WT_PACKED && pb_skip_field(stream, wire);
}

static size_t packed_items(const nori__pb_field *field, nori__str bytes, bool *ok)
{
    size_t n = 0;
    if (field->kind == F_FLOATS || field->kind == F_DOUBLES) {
        size_t size = field->kind == F_FLOATS ? 4 : 8;
        *ok = *ok && bytes.n % size == 0;
        return bytes.n / size;
    }
    for (size_t i = 0; i < bytes.n; i++) {
        n += !((unsigned char)bytes.p[i] & 0x80);
    }
    *ok = *ok && (bytes.n == 0 || !((unsigned char)bytes.p[bytes.n - 1] & 0x80));
    return n;
}

/* Counts list items and makes the lists; also checks the wire structure of the whole message. */
static nori_status count_items(reader *r, frame *f)
{
    pb_istream_t s = f->stream;
    for (;;) {
        const uint8_t *start = at(&s);
        pb_wire_type_t wire;
        uint32_t number;
        bool eof = false;
        if (!pb_decode_tag(&s, &wire, &number, &eof)) {
            if (eof) {
                break;
            }
            return damaged(r, start, f, NULL, "a field tag is damaged");
        }
        const nori__pb_field *field = find_field(f->message, number);
        if (field && wire != wire_of(field) && !(may_pack(field) && wire == PB_WT_STRING)) {
            return damaged(r, start, f, field, "wrong wire type");
        }
        nori__str bytes = {NULL, 0};
        bool ok = wire == PB_WT_STRING ? take_bytes(&s, &bytes) : skip(&s, wire);
        if (ok && field && is_list(field)) {
            nori__pb_any_list *list = (void *)(f->object + field->offset);
            list->count += may_pack(field) && wire == PB_WT_STRING
                               ? packed_items(field, bytes, &ok)
                               : 1;
        }
        if (!ok) {
            return damaged(r, start, f, field, "its bytes run past the end of the message");
        }
    }
    for (uint16_t i = 0; i < f->message->count; i++) {
        const nori__pb_field *field = &f->message->fields[i];
        nori__pb_any_list *list = (void *)(f->object + field->offset);
        if (!is_list(field) || list->count == 0 || list->items) {
            continue; /* a list that two fields share is made once, with both counts */
        }
        list->items = nori__arena_array(r->arena, list->count, nori__pb_item_size(field));
        if (!list->items) {
            return nori__no_memory(r->err);
        }
        list->count = 0;
    }
    return NORI_OK;
}

static nori_status push(reader *r, const nori__pb_message *message, void *object,
                        nori__pb_head *head, nori__str bytes)
{
    if (r->depth == MAX_DEPTH) {
        nori_status s = nori__fail(r->err, NORI_ERROR_LIMIT,
                                   "messages are nested more than %d deep", MAX_DEPTH);
        nori__offset(r->err, (uint64_t)((const uint8_t *)bytes.p - r->data));
        return s;
    }
    frame *f = &r->stack[r->depth++];
    f->message = message;
    f->object = object;
    f->head = head;
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
static bool add_packed(nori__pb_any_list *list, const nori__pb_field *field, nori__str bytes)
{
    if (field->kind == F_FLOATS || field->kind == F_DOUBLES) {
        size_t size = nori__pb_item_size(field);
        if (bytes.n > 0) {
            memcpy((char *)list->items + list->count * size, bytes.p, bytes.n);
        }
        list->count += bytes.n / size;
        return true;
    }
    pb_istream_t s = pb_istream_from_buffer((const pb_byte_t *)bytes.p, bytes.n);
    while (s.bytes_left > 0) {
        uint64_t v;
        if (!pb_decode_varint(&s, &v)) {
            return false;
        }
        add_number(list, field, v);
    }
    return true;
}

static nori_status keep_unknown(reader *r, frame *f, const uint8_t *start, uint32_t number)
{
    struct nori__pb_unknown *u = nori__arena_alloc(r->arena, sizeof(*u));
    if (!u) {
        return nori__no_memory(r->err);
    }
    u->bytes = (nori__str){(const char *)start, (size_t)(at(&f->stream) - start)};
    u->number = number;
    const struct nori__pb_unknown **tail = &f->head->unknown;
    while (*tail) {
        tail = (const struct nori__pb_unknown **)(uintptr_t)&(*tail)->next;
    }
    *tail = u;
    if (r->report && r->report->unknown_fields++ == 0) {
        r->report->first_number = number;
        r->report->first_offset = (uint64_t)(start - r->data);
        r->report->first_message = f->message->name;
    }
    return NORI_OK;
}

/* A payload that is a message: finds or makes its struct and pushes a frame for it. */
static nori_status enter(reader *r, frame *f, const nori__pb_field *field, nori__str bytes)
{
    char *member = f->object + field->offset;
    if (field->kind == F_ONEOF) {
        nori__pb_type *type = (void *)f->object;
        nori__pb_head *head = nori__arena_alloc(r->arena, sizeof(*head));
        if (!head) {
            return nori__no_memory(r->err);
        }
        if (type->kind != NORI_KIND_UNKNOWN) {
            return damaged(r, (const uint8_t *)bytes.p, f, field, "a second kind of type");
        }
        type->kind = (nori_kind)field->oneof;
        type->wrapped = head;
        return push(r, field->message, type, head, bytes);
    }
    void *object = NULL;
    if (field->kind == F_MESSAGES) {
        nori__pb_any_list *list = (void *)member;
        object = (char *)list->items + list->count++ * field->message->size;
    } else {
        object = nori__arena_alloc(r->arena, field->message->size);
        if (!object) {
            return nori__no_memory(r->err);
        }
        if (field->kind == F_POINTERS) {
            nori__pb_any_list *list = (void *)member;
            ((void **)list->items)[list->count++] = object;
        } else {
            void **slot = (void *)member;
            if (*slot) {
                return damaged(r, (const uint8_t *)bytes.p, f, field, "given twice");
            }
            *slot = object;
        }
    }
    return push(r, field->message, object, object, bytes);
}

/* Reads one field of the top frame; done when the message is at its end. */
static nori_status read_field(reader *r, frame *f, bool *done)
{
    const uint8_t *start = at(&f->stream);
    pb_wire_type_t wire;
    uint32_t number;
    bool eof = false;
    if (!pb_decode_tag(&f->stream, &wire, &number, &eof)) {
        *done = eof;
        return eof ? NORI_OK : damaged(r, start, f, NULL, "a field tag is damaged");
    }
    const nori__pb_field *field = find_field(f->message, number);
    if (!field) {
        if (!skip(&f->stream, wire)) {
            return damaged(r, start, f, NULL, "an unknown field is damaged");
        }
        return keep_unknown(r, f, start, number);
    }
    char *member = f->object + field->offset;
    nori__str bytes = {NULL, 0};
    uint64_t v = 0;
    bool ok = true;
    if (wire == PB_WT_STRING) {
        ok = take_bytes(&f->stream, &bytes);
    } else if (wire == PB_WT_VARINT) {
        ok = pb_decode_varint(&f->stream, &v);
    } else if (wire == PB_WT_32BIT) {
        ok = pb_read(&f->stream, (pb_byte_t *)&v, 4);
    } else {
        ok = pb_read(&f->stream, (pb_byte_t *)&v, 8);
    }
    if (!ok) {
        return damaged(r, start, f, field, "its value is damaged");
    }
    if (field->has >= 0) {
        *(bool *)(f->object + field->has) = true;
    }
    nori__pb_any_list *list = (void *)member;
    switch (field->kind) {
    case F_I64:
        *(int64_t *)(void *)member = (int64_t)v;
        break;
    case F_I32:
    case F_ENUM:
        *(int32_t *)(void *)member = (int32_t)v;
        break;
    case F_FLOAT:
        memcpy(member, &v, 4);
        break;
    case F_STR:
        *(nori__str *)(void *)member = bytes;
        break;
    case F_STRS:
        ((nori__str *)list->items)[list->count++] = bytes;
        break;
    case F_MESSAGE:
    case F_ONEOF:
    case F_MESSAGES:
    case F_POINTERS:
        return enter(r, f, field, bytes);
    case F_FLOATS:
        if (wire != PB_WT_STRING) {
            memcpy((float *)list->items + list->count++, &v, 4);
            break;
        }
        /* fall through */
    default:
        if (wire != PB_WT_STRING) {
            add_number(list, field, v);
        } else if (!add_packed(list, field, bytes)) {
            return damaged(r, start, f, field, "a packed value is damaged");
        }
    }
    return NORI_OK;
}

static nori_status read_message(nori__arena *arena, const uint8_t *data, size_t size,
                                const nori__pb_message *message, void **object,
                                nori__pb_report *report, nori_error *err)
{
    reader *r = nori__alloc_zero(arena->allocator, sizeof(*r));
    *object = nori__arena_alloc(arena, message->size);
    nori_status status = r && *object ? NORI_OK : nori__no_memory(err);
    if (status == NORI_OK) {
        r->arena = arena;
        r->data = data;
        r->report = report;
        r->err = err;
        status = push(r, message, *object, *object, (nori__str){(const char *)data, size});
    }
    while (status == NORI_OK && r->depth > 0) {
        bool done = false;
        status = read_field(r, &r->stack[r->depth - 1], &done);
        if (done) {
            r->depth--;
        }
    }
    nori__release(arena->allocator, r, sizeof(*r));
    return status;
}

/* What a file that is not a model may be, by its first bytes. */
static const char *looks_like(const uint8_t *data, size_t size)
{
    static const struct {
        const char *magic, *what;
        size_t n;
    } known[] = {
        {"\x89PNG", "a PNG picture", 4},
        {"\xff\xd8\xff", "a JPEG picture", 3},
        {"PK\x03\x04", "a zip archive (.npz, .pt, .zip)", 4},
        {"\x1f\x8b", "gzip data; unpack it first", 2},
        {"<!DOCTYPE", "an HTML page, perhaps an error page saved as a model", 9},
        {"<html", "an HTML page, perhaps an error page saved as a model", 5},
        {"version https://git-lfs", "a Git LFS pointer; fetch the real file with `git lfs pull`", 23},
        {"\x93NUMPY", "a NumPy .npy array", 6},
        {"\x7f" "ELF", "a program", 4},
        {"{", "JSON text", 1},
        {"%PDF", "a PDF document", 4},
    };
    for (size_t i = 0; i < NORI__COUNT(known); i++) {
        if (size >= known[i].n && memcmp(data, known[i].magic, known[i].n) == 0) {
            return known[i].what;
        }
    }
    if (size >= 8 && memcmp(data + 4, "TFL3", 4) == 0) {
        return "a TensorFlow Lite model";
    }
    return NULL;
}

nori_status nori__pb_read_model(nori__arena *arena, const uint8_t *data, size_t size,
                                nori__pb_model **model, nori__pb_report *report, nori_error *err)
{
    const char *other = looks_like(data, size);
    if (size == 0 || other) {
        nori_status s = nori__fail(err, NORI_ERROR_FORMAT, "not an ONNX model: %s%s",
                                   size == 0 ? "the file is empty" : "this is ",
                                   size == 0 ? "" : other);
        nori__hint(err, "an .onnx file (a serialized ModelProto) was expected");
        return s;
    }
    NORI__TRY(read_message(arena, data, size, &nori__pb_model_message, (void **)model, report, err));
    if (!(*model)->graph) {
        nori_status s = nori__fail(err, NORI_ERROR_FORMAT,
                                   "not an ONNX model: ModelProto has no graph");
        nori__hint(err, "if this is a tensor file (.pb), give it as an input, not as the model");
        return s;
    }
    return NORI_OK;
}

nori_status nori__pb_read_tensor(nori__arena *arena, const uint8_t *data, size_t size,
                                 nori__pb_tensor **tensor, nori_error *err)
{
    return read_message(arena, data, size, &nori__pb_tensor_message, (void **)tensor, NULL, err);
}
