/* tensor.h: the one value type of nori from the inside; see nori.h for what callers see. */
#ifndef NORI_GRAPH_TENSOR_H
#define NORI_GRAPH_TENSOR_H

#include <stdatomic.h>

#include "base/base.h"
#include "onnx/onnx.h"

struct nori_tensor {
    atomic_int refs;
    uint8_t kind;  /* nori_kind */
    uint8_t type;  /* nori_type of the elements; UNDEFINED for groups */
    uint8_t rank;
    uint8_t owned; /* how data is given back: see tensor.c */
    uint8_t depth; /* of groups: 1 + that of the deepest item */
    atomic_uchar loose; /* 0, or how far loose.c is with data that lie in a file as they are */
    int64_t count; /* product of dims; number of items for groups */
    size_t bytes;  /* of data: (count * bits + 7) / 8; count * sizeof(nori_string) for strings */
    void *data;    /* elements, nori_string[] or nori_tensor *[]; loose ones: see below */
    const nori_allocator *allocator;
    void (*release)(void *user, void *data);
    void *user;    /* of release; loose: where the bytes are */
    int64_t dims[NORI_MAX_RANK]; /* last: models have many small ones, whose memory may end behind the rank's;
                                    nori__tensor_dims copies them */
};

/* The sizes, and zeros beyond the rank. */
static inline void nori__tensor_dims(const nori_tensor *t, int64_t dims[NORI_MAX_RANK])
{
    for (int d = 0; d < NORI_MAX_RANK; d++) {
        dims[d] = d < t->rank ? t->dims[d] : 0;
    }
}

/* Bytes that count elements of a type take; false on overflow. */
bool nori__type_bytes(nori_type type, int64_t count, size_t *bytes);
/* Product of dims; false when negative or too large. */
bool nori__dims_count(int rank, const int64_t *dims, int64_t *count);

/* Sets up caller-held storage (refs 1, never freed itself) over given data: no allocation. */
void nori__tensor_init(nori_tensor *t, nori_type type, int rank, const int64_t *dims, void *data);
/* Changes type and shape of a header, recomputing count and bytes; data is left alone. False
 * on overflow. */
bool nori__tensor_reshape(nori_tensor *t, nori_type type, int rank, const int64_t *dims);
nori_status nori__tensor_new(const nori_allocator *a, nori_type type, int rank,
                             const int64_t *dims, nori_tensor **tensor, nori_error *err);
/* Elements of less than a byte may leave bits of the last byte unused: sets them to 0, so that equal
 * tensors have equal bytes. */
void nori__tensor_clear_rest(nori_tensor *t);
/* Bytes taken from t->allocator for t itself: header, data, strings; not what a group's items took. */
size_t nori__tensor_footprint(const nori_tensor *t);
/* Deep copy. */
nori_status nori__tensor_copy(const nori_allocator *a, const nori_tensor *from,
                              nori_tensor **tensor, nori_error *err);
/* A sequence, optional, map or sparse tensor over items, each retained. */
nori_status nori__tensor_group(const nori_allocator *a, nori_kind kind, nori_tensor *const *items,
                               size_t count, nori_tensor **tensor, nori_error *err);
/* Replaces one element of a STRING tensor by a copy of the bytes. */
nori_status nori__tensor_set_string(nori_tensor *t, int64_t index, const char *data, size_t size,
                                    nori_error *err);
/* From TensorProto: raw data and matching typed data are pointed at where type and alignment
 * allow (proto's bytes must then outlive the tensor; owner is retained by release hooks), else
 * copied. external may be NULL when none is expected. Checks counts against dims. */
nori_status nori__tensor_from_pb(const nori_allocator *a, const nori__pb_tensor *pb,
                                 nori__external *external, nori_tensor **tensor, nori_error *err);

/* The same for what a graph is built of, which need not be aligned at once: see below. */
nori_status nori__initializer_from_pb(const nori_allocator *a, const nori__pb_tensor *pb,
                                      nori__external *external, nori_tensor **tensor,
                                      nori_error *err);

/* ---- loose tensors (loose.c) ----
 *
 * Floats of an initializer stand where the file has them, in three of four files at no multiple of
 * four. Such a tensor has no data until somebody asks for it by nori__tensor_settle, which makes an
 * aligned copy, once, for all threads; packing and moving take nori__tensor_at, and no copy is made.
 * Only large ones of float types are loose: integers, and what a channel has, never are. */
enum { NORI__LOOSE = 1, NORI__LOOSE_BUSY, NORI__LOOSE_SETTLED };
#define NORI__LOOSE_LEAST ((size_t)16384)
/* Of t's file: a tensor without data. */
nori_status nori__tensor_loose(const nori_allocator *a, nori_type type, int rank,
                               const int64_t *dims, const void *bytes, nori_tensor **tensor,
                               nori_error *err);
bool nori__tensor_settle_now(const nori_tensor *t);
/* Whether t has data now: false only when there is no memory for them. */
static inline bool nori__tensor_settle(const nori_tensor *t)
{
    return !t->loose || nori__tensor_settle_now(t);
}
/* The bytes of t at an address that may be a multiple of nothing. */
static inline const void *nori__tensor_at(const nori_tensor *t)
{
    return t->loose ? t->user : t->data;
}

/* Element as double or int64 whatever the numeric type (complex: real part). */
double nori__tensor_get_f64(const nori_tensor *t, int64_t index);
int64_t nori__tensor_get_i64(const nori_tensor *t, int64_t index);
/* Integers: towards zero, wrapping, NaN gives 0. */
void nori__tensor_set_f64(nori_tensor *t, int64_t index, double value);
void nori__tensor_set_i64(nori_tensor *t, int64_t index, int64_t value);

static inline bool nori__type_is_float(nori_type t)
{
    return t == NORI_FLOAT || t == NORI_DOUBLE || t == NORI_FLOAT16 || t == NORI_BFLOAT16;
}

#endif
