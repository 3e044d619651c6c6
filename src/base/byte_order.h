/* byte_order.h: numbers in files are little-endian, in memory as the machine has them. Where the two are the
 * same nothing is copied or turned. */
#ifndef NORI_BASE_BYTE_ORDER_H
#define NORI_BASE_BYTE_ORDER_H

#include "base/base.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define NORI__BIG_ENDIAN 1
#else
#define NORI__BIG_ENDIAN 0
#endif

/* Bytes of the units whose order counts: 1 where there is none to keep, half an element of complex types. */
size_t nori__order_width(nori_type type);

/* Turns each whole unit of width bytes around. */
void nori__turn(void *data, size_t bytes, size_t width);

/* Elements as a file has them become those of the machine, in place, and the other way round. */
void nori__order(nori_type type, void *data, size_t bytes);

/* Elements of memory as a file has them: themselves, or a turned copy in the arena, whose p is NULL where
 * there was no memory. */
nori__str nori__file_bytes(nori__arena *arena, nori_type type, const void *data, size_t bytes);

#endif
