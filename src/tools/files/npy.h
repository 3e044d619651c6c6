/* npy.h: NumPy's array files, format versions 1 to 3 (NEP 1). */
#ifndef NORI_TOOLS_FILES_NPY_H
#define NORI_TOOLS_FILES_NPY_H

#include "graph/tensor.h"

bool nori__is_npy(const uint8_t *data, size_t size);
nori_status nori__npy_read(const nori_allocator *a, const uint8_t *data, size_t size,
                           nori_tensor **tensor, nori_error *err);
/* Some rows of a row-major array of numbers. */
nori_status nori__npy_rows(const nori_allocator *a, const uint8_t *data, size_t size, int64_t first,
                           int64_t count, nori_tensor **tensor, int64_t *rows, nori_error *err);
nori_status nori__npy_write(const nori_tensor *t, nori__text *out, nori_error *err);

#endif
