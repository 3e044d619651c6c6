/* fields.h: the field tables that drive reader and writer. One row a field of a message. */
#ifndef NORI_ONNX_FIELDS_H
#define NORI_ONNX_FIELDS_H

#include "onnx/onnx.h"

typedef enum field_kind {
    F_I64,      /* varint into int64_t */
    F_I32,      /* varint into int32_t */
    F_ENUM,     /* varint into an enum of int size */
    F_FLOAT,    /* fixed32 into float */
    F_STR,      /* bytes into nori__str */
    F_MESSAGE,  /* message behind a pointer, made when met; once at most */
    F_ONEOF,    /* TypeProto: a wrapped message whose fields land in the same struct */
    F_STRS,     /* list of nori__str */
    F_MESSAGES, /* list of message structs */
    F_POINTERS, /* list of pointers to message structs */
    F_I64S, F_I32S, F_U64S, F_FLOATS, F_DOUBLES /* lists, packed or not; I32S land in int64_t */
} field_kind;

typedef struct nori__pb_field {
    uint32_t number;
    uint8_t kind;
    bool packed;        /* how it is written */
    int16_t has;        /* offset of a bool that says it was there, or -1 */
    uint16_t offset;
    uint8_t code;       /* F_ONEOF: the nori_kind it stands for; attribute values: their kind */
    const struct nori__pb_message *message;
    const char *name;
} nori__pb_field;

typedef struct nori__pb_message {
    const char *name;
    uint16_t size;
    uint16_t count; /* at most 32, see nori__pb_head.present */
    const nori__pb_field *fields;
} nori__pb_message;

/* Every list member has this form. */
typedef struct nori__pb_any_list {
    void *items;
    size_t count;
} nori__pb_any_list;

/* What NORI__PB_NUMBERS makes; begins as every list does. */
typedef struct nori__pb_any_numbers {
    void *items;
    size_t count;
    nori__str packed;
    bool half;
} nori__pb_any_numbers;
/* Payloads below this are decoded when they are read. */
#define NORI__PB_PACKED_LEAST ((size_t)16384)
/* Whether each varint of the bytes, the last of which ends one, is no longer than 64 bits. */
bool nori__pb_numbers_fit(nori__str packed);

extern const nori__pb_message nori__pb_model_message, nori__pb_tensor_message,
    nori__pb_attr_message, nori__pb_group_message, nori__pb_map_message;
size_t nori__pb_item_size(const nori__pb_field *field); /* bytes of one list item */

static inline bool nori__pb_is_list(const nori__pb_field *field)
{
    return field->kind >= F_STRS;
}

static inline bool nori__pb_may_pack(const nori__pb_field *field)
{
    return field->kind >= F_I64S;
}

static inline bool nori__pb_is_fixed(const nori__pb_field *field)
{
    return field->kind == F_FLOATS || field->kind == F_DOUBLES;
}

/* Lists of varints of a tensor: nori__pb_any_numbers. */
static inline bool nori__pb_is_numbers(const nori__pb_field *field)
{
    return field->packed && !nori__pb_is_fixed(field);
}

/* What a file seems to be, by its first bytes, when it cannot be protobuf ("this is a PNG
 * picture"); NULL: it may be (guess.c). */
const char *nori__pb_looks_like(const uint8_t *data, size_t size);

#endif
