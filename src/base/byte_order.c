/* byte_order.c: see byte_order.h. */
#include "base/byte_order.h"

size_t nori__order_width(nori_type type)
{
    unsigned bits = nori_type_bits(type);
    if (type == NORI_COMPLEX64 || type == NORI_COMPLEX128) {
        return bits / 16;
    }
    return bits < 16 ? 1 : bits / 8;
}

void nori__turn(void *data, size_t bytes, size_t width)
{
    unsigned char *p = data;
    for (size_t left = bytes; width > 1 && left >= width; left -= width, p += width) {
        for (size_t i = 0; i < width / 2; i++) {
            unsigned char kept = p[i];
            p[i] = p[width - 1 - i];
            p[width - 1 - i] = kept;
        }
    }
}

void nori__order(nori_type type, void *data, size_t bytes)
{
    if (NORI__BIG_ENDIAN) {
        nori__turn(data, bytes, nori__order_width(type));
    }
}

nori__str nori__file_bytes(nori__arena *arena, nori_type type, const void *data, size_t bytes)
{
    if (!data || bytes == 0) {
        return (nori__str){"", 0};
    }
    if (!NORI__BIG_ENDIAN || nori__order_width(type) == 1) {
        return (nori__str){data, bytes};
    }
    char *turned = nori__arena_copy(arena, data, bytes);
    if (turned) {
        nori__order(type, turned, bytes);
    }
    return (nori__str){turned, turned ? bytes : 0};
}
