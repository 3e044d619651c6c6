/* npy.h: NumPy's array files, format versions 1 to 3 (NEP 1). */
#ifndef NORI_TOOLS_FILES_NPY_H
#define NORI_TOOLS_FILES_NPY_H

#include "graph/tensor.h"

/* What a header says, checked against the number of bytes behind it. */
typedef struct nori__npy_head {
    nori_type type;
    int rank;
    int64_t dims[NORI_MAX_RANK];
    size_t width; /* characters of a string */
    bool fortran; /* column-major, where that makes a difference */
    bool turned;  /* byte order other than the machine's */
    size_t start; /* where the elements begin */
} nori__npy_head;
/* A header and what is in front of it are never longer. */
#define NORI__NPY_HEAD_MAX ((size_t)4096 + 12)

bool nori__is_npy(const uint8_t *data, size_t size);
/* The header of a file of size bytes, of which have are there to be looked at. */
nori_status nori__npy_head_read(const uint8_t *data, size_t have, size_t size, nori__npy_head *head,
                                nori_error *err);
nori_status nori__npy_read(const nori_allocator *a, const uint8_t *data, size_t size,
                           nori_tensor **tensor, nori_error *err);
/* Some rows of a row-major array of numbers. */
nori_status nori__npy_rows(const nori_allocator *a, const uint8_t *data, size_t size, int64_t first,
                           int64_t count, nori_tensor **tensor, int64_t *rows, nori_error *err);
nori_status nori__npy_write(const nori_tensor *t, nori__text *out, nori_error *err);

#endif
