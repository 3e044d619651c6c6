/* item.c: one field after another off a message's bytes, each checked against the bytes there are
 * and the wire type its row of the table asks for. All that can be wrong with the wire form is
 * said here. */
#include <stdio.h>

#include "onnx/reader.h"

nori_status nori__pb_damaged(nori__pb_reader *r, const nori__pb_frame *f, const nori__pb_item *it,
                             const char *fmt, ...)
{
    char text[200], name[32] = "";
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (it->field) {
        snprintf(name, sizeof(name), ".%s", it->field->name);
    } else if (it->number > 0) {
        snprintf(name, sizeof(name), " field %u", (unsigned)it->number);
    }
    nori_status s = nori__fail(r->err, NORI_ERROR_FORMAT, "%s%s: %s", f->message->name, name, text);
    nori__offset(r->err, (uint64_t)(it->start - r->data));
    nori__hint(r->err, "the file is damaged or not an ONNX file; fetch or export it again");
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

static const char *wire_name(pb_wire_type_t wire)
{
    static const char *const names[] = {
        "a varint", "8 bytes", "bytes with a length", "a group", "the end of a group", "4 bytes"};
    return (size_t)wire < NORI__COUNT(names) ? names[wire] : "a wire type that does not exist";
}

/* Tags and lengths are one byte or two nearly always: those are taken off the buffer here, anything else
 * is left to nanopb. */
static bool short_varint(pb_istream_t *stream, uint32_t *v)
{
    const uint8_t *p = nori__pb_at(stream);
    size_t n = stream->bytes_left;
    if (n > 0 && !(p[0] & 0x80)) {
        *v = p[0];
        nori__pb_skip(stream, 1);
        return true;
    }
    if (n > 1 && !(p[1] & 0x80)) {
        *v = (p[0] & 0x7fu) | (uint32_t)p[1] << 7;
        nori__pb_skip(stream, 2);
        return true;
    }
    return false;
}

static bool take_varint(pb_istream_t *stream, uint64_t *v)
{
    uint32_t few;
    if (short_varint(stream, &few)) {
        *v = few;
        return true;
    }
    return pb_decode_varint(stream, v);
}

/* As pb_decode_tag: false with end set where the message ends. */
static bool take_tag(pb_istream_t *stream, pb_wire_type_t *wire, uint32_t *number, bool *end)
{
    uint32_t tag;
    if (stream->bytes_left == 0 || !short_varint(stream, &tag)) {
        return pb_decode_tag(stream, wire, number, end);
    }
    *wire = (pb_wire_type_t)(tag & 7);
    *number = tag >> 3;
    return true;
}

/* Length and place of a length-delimited payload; the stream moves past it. */
static nori_status take_bytes(nori__pb_reader *r, const nori__pb_frame *f, pb_istream_t *stream,
                              nori__pb_item *it)
{
    uint64_t size;
    if (!take_varint(stream, &size)) {
        return nori__pb_damaged(r, f, it, "expected a length, found no whole varint (%s)",
                                PB_GET_ERROR(stream));
    }
    const uint8_t *end = nori__pb_at(stream) + stream->bytes_left;
    if (size > stream->bytes_left) {
        return nori__pb_damaged(
            r, f, it, "length %llu at byte %llu runs past the end of the %s at byte %llu",
            (unsigned long long)size, (unsigned long long)(nori__pb_at(stream) - r->data),
            end == r->end ? "file" : "message it is in", (unsigned long long)(end - r->data));
    }
    it->bytes = (nori__str){(const char *)nori__pb_at(stream), (size_t)size};
    nori__pb_skip(stream, (size_t)size);
    return NORI_OK;
}

static nori_status take_payload(nori__pb_reader *r, const nori__pb_frame *f, pb_istream_t *stream,
                                nori__pb_item *it)
{
    bool ok = false;
    uint32_t four = 0;
    switch (it->wire) {
    case PB_WT_STRING:
        return take_bytes(r, f, stream, it);
    case PB_WT_VARINT:
        ok = take_varint(stream, &it->v);
        break;
    case PB_WT_32BIT:
        ok = pb_decode_fixed32(stream, &four);
        it->v = four;
        break;
    case PB_WT_64BIT:
        ok = pb_decode_fixed64(stream, &it->v);
        break;
    default: /* groups went with protobuf 1; ONNX never had one */
        return nori__pb_damaged(r, f, it, "expected a value, found %s", wire_name(it->wire));
    }
    return ok ? NORI_OK
              : nori__pb_damaged(r, f, it, "expected %s, found no whole one (%s)",
                                 wire_name(it->wire), PB_GET_ERROR(stream));
}

nori_status nori__pb_next(nori__pb_reader *r, const nori__pb_frame *f, pb_istream_t *stream,
                          nori__pb_item *it, bool *end)
{
    *it = (nori__pb_item){.start = nori__pb_at(stream)};
    uint32_t number = 0;
    *end = false;
    if (!take_tag(stream, &it->wire, &number, end)) {
        return *end ? NORI_OK
                    : nori__pb_damaged(r, f, it,
                                       "expected a field tag, found no whole varint (%s)",
                                       PB_GET_ERROR(stream));
    }
    if (number == 0) {
        return nori__pb_damaged(r, f, it, "expected a field tag, found field number 0");
    }
    it->number = number;
    it->field = find_field(f->message, number);
    if (it->field && it->wire != wire_of(it->field) &&
        !(nori__pb_may_pack(it->field) && it->wire == PB_WT_STRING)) {
        return nori__pb_damaged(r, f, it, "expected %s, found %s",
                                wire_name(wire_of(it->field)), wire_name(it->wire));
    }
    return take_payload(r, f, stream, it);
}
