/* wire.h: protobuf messages by hand, for tests of the reader: fields appended to a text. Include
 * after cmocka.h. */
#ifndef NORI_TESTS_WIRE_H
#define NORI_TESTS_WIRE_H

#include "base/byte_order.h"

static inline void wire_varint(nori__text *t, uint64_t v)
{
    while (v >= 0x80) {
        nori__text_add(t, &(char){(char)(v | 0x80)}, 1);
        v >>= 7;
    }
    nori__text_add(t, &(char){(char)v}, 1);
}

static inline void wire_tag(nori__text *t, uint32_t number, unsigned wire)
{
    wire_varint(t, (uint64_t)number << 3 | wire);
}

static inline void wire_int(nori__text *t, uint32_t number, int64_t v)
{
    wire_tag(t, number, 0);
    wire_varint(t, (uint64_t)v);
}

static inline void wire_bytes(nori__text *t, uint32_t number, const void *p, size_t n)
{
    wire_tag(t, number, 2);
    wire_varint(t, n);
    nori__text_add(t, p, n);
}

static inline void wire_str(nori__text *t, uint32_t number, const char *text)
{
    wire_bytes(t, number, text, strlen(text));
}

/* Numbers as files have them. */
static inline void wire_numbers(nori__text *t, nori_type type, const void *v, size_t size)
{
    nori__arena arena;
    nori__arena_init(&arena, &nori__malloc);
    nori__str file = nori__file_bytes(&arena, type, v, size);
    nori__text_add(t, file.p, file.n);
    nori__arena_free(&arena);
}

static inline void wire_f32(nori__text *t, uint32_t number, float v)
{
    wire_tag(t, number, 5);
    wire_numbers(t, NORI_FLOAT, &v, sizeof(v));
}

static inline void wire_f64(nori__text *t, uint32_t number, double v)
{
    wire_tag(t, number, 1);
    wire_numbers(t, NORI_DOUBLE, &v, sizeof(v));
}

/* As wire_bytes, of numbers. */
static inline void wire_list(nori__text *t, uint32_t number, nori_type type, const void *v, size_t size)
{
    wire_tag(t, number, 2);
    wire_varint(t, size);
    wire_numbers(t, type, v, size);
}

static inline nori__text wire_new(void)
{
    nori__text t;
    nori__text_init(&t, &nori__malloc);
    return t;
}

/* Appends sub as a message, and frees it. */
static inline void wire_sub(nori__text *t, uint32_t number, nori__text *sub)
{
    wire_bytes(t, number, sub->data, sub->size);
    assert_false(sub->failed);
    nori__text_free(sub);
}

/* "08 ff" to bytes; the count. */
static inline size_t wire_hex(const char *hex, uint8_t *bytes, size_t room)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (; *hex; hex++) {
        if (*hex == ' ') {
            continue;
        }
        const char *high = strchr(digits, hex[0]), *low = strchr(digits, hex[1]);
        assert_true(high && low && n < room);
        bytes[n++] = (uint8_t)((high - digits) * 16 + (low - digits));
        hex++;
    }
    return n;
}

#endif
