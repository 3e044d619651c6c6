/* numbers.c: the integers of a tensor's lists, decoded when the file was read, or packed in it still: a
 * list of bytes as 64-bit numbers would be eight times its file. Whoever needs them takes one after
 * another. */
#include "onnx/fields.h"

bool nori__pb_numbers_fit(nori__str packed)
{
    size_t length = 0; /* of the varint so far */
    for (size_t i = 0; i < packed.n; i++) {
        uint8_t byte = (uint8_t)packed.p[i];
        if (length == 9 && byte > 1) {
            return false;
        }
        length = byte & 0x80 ? length + 1 : 0;
    }
    return length == 0;
}

nori__pb_cursor nori__pb_numbers_of(const void *numbers)
{
    const nori__pb_any_numbers *n = numbers;
    return (nori__pb_cursor){n->items, (const uint8_t *)n->packed.p, n->half};
}

uint64_t nori__pb_number(nori__pb_cursor *c)
{
    if (c->items) {
        return *c->items++;
    }
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = *c->at++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return c->half ? (uint64_t)(int64_t)(int32_t)(uint32_t)v : v;
}
