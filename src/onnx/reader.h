/* reader.h: what read.c and item.c share: the reader's state, and a field as the file has it. */
#ifndef NORI_ONNX_READER_H
#define NORI_ONNX_READER_H

#include <pb_decode.h>

#include "onnx/fields.h"

/* Frames: a graph is in an attribute is in a node; the rest is for what the innermost one holds. */
#define NORI__PB_MAX_DEPTH (NORI__PB_MAX_NESTING * 3 + 8)

typedef struct nori__pb_frame {
    const nori__pb_message *message;
    char *object;
    nori__pb_head *head;
    struct nori__pb_unknown *last; /* of head->unknown */
    pb_istream_t stream;
    uint8_t implied; /* AttributeProto without type: what its fields say it is */
} nori__pb_frame;

typedef struct nori__pb_reader {
    nori__arena *arena;
    const uint8_t *data, *end;
    nori__pb_report *report;
    nori_error *err;
    size_t budget; /* bytes of structs that may still be made, see read.c */
    size_t depth;
    nori__pb_frame stack[NORI__PB_MAX_DEPTH];
} nori__pb_reader;

/* One field as it stands in the file. */
typedef struct nori__pb_item {
    const uint8_t *start; /* of its tag */
    uint32_t number;
    pb_wire_type_t wire;
    const nori__pb_field *field; /* NULL: not known here */
    uint64_t v;                  /* varint, fixed32, fixed64 */
    nori__str bytes;             /* length-delimited */
} nori__pb_item;

static inline const uint8_t *nori__pb_at(const pb_istream_t *stream)
{
    return stream->state;
}

/* Past bytes that are there. */
static inline void nori__pb_skip(pb_istream_t *stream, size_t bytes)
{
    stream->state = (void *)(uintptr_t)(nori__pb_at(stream) + bytes);
    stream->bytes_left -= bytes;
}

/* Takes the next field of f from stream, checked against the tables; end: there is none. */
nori_status nori__pb_next(nori__pb_reader *r, const nori__pb_frame *f, pb_istream_t *stream,
                          nori__pb_item *it, bool *end);
/* Records a FORMAT error about it: "TensorProto.raw_data: ...", with its byte offset. */
nori_status nori__pb_damaged(nori__pb_reader *r, const nori__pb_frame *f, const nori__pb_item *it,
                             const char *fmt, ...) NORI__PRINTF(4, 5);

#endif
