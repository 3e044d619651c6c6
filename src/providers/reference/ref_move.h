/* ref_move.h: moving elements whatever their type: by width in bytes, below a byte each on its
 * own, strings by copying. Indices and steps count elements. */
#ifndef NORI_PROVIDERS_REFERENCE_REF_MOVE_H
#define NORI_PROVIDERS_REFERENCE_REF_MOVE_H

#include "ops/content.h"
#include "providers/reference/ref.h"

enum { NORI__MOVE_RANK = 2 * NORI_MAX_RANK + 2 };

/* A nest of loops that copies one element each: dims[] counts, with the steps both sides take.
 * A from_step of 0 repeats, a negative one reverses. */
typedef struct nori__move {
    int rank;
    int64_t dims[NORI__MOVE_RANK], from_step[NORI__MOVE_RANK], to_step[NORI__MOVE_RANK];
    int64_t from, to; /* first elements */
} nori__move;

/* Types must be the same; all indices in range (the caller's guarantee). Fails only for strings,
 * out of memory. */
nori_status nori__move_all(const nori__move *m, const nori_tensor *from, nori_tensor *to,
                           nori_error *err);
/* The same by the threads of a call. */
nori_status nori__move_spread(const nori_call *call, const nori__move *m, const nori_tensor *from,
                              nori_tensor *to);
/* n elements side by side. */
nori_status nori__move_run(const nori_tensor *from, int64_t first, nori_tensor *to, int64_t at,
                           int64_t n, nori_error *err);
/* Everything: same type and count; nothing when both are the same bytes. */
nori_status nori__move_whole(const nori_tensor *from, nori_tensor *to, nori_error *err);
/* Every element of `to` becomes element `index` of from; from NULL: zero, false, "". */
nori_status nori__move_fill(const nori_tensor *from, int64_t index, nori_tensor *to,
                            nori_error *err);
/* out[i0, i1, ...] = in[table[0][i0] + table[1][i1] + ...]; an entry below 0 leaves it as it is. */
nori_status nori__move_table(const nori_tensor *from, nori_tensor *to, const int64_t *const *table,
                             nori_error *err);

/* Loops over out's dims with the row-major steps of both, `from` of rank and dims like out. */
void nori__move_like(nori__move *m, int rank, const int64_t *dims, const int64_t *from_dims,
                     const int64_t *to_dims);

/* Index i of indices made non-negative for size; false when outside. */
static inline bool nori__index(const nori_tensor *indices, int64_t i, int64_t size, int64_t *out)
{
    int64_t v = indices->type == NORI_INT64 ? ((const int64_t *)indices->data)[i]
                                            : (int64_t)((const int32_t *)indices->data)[i];
    v = v < 0 ? v + size : v;
    *out = v;
    return v >= 0 && v < size;
}
/* DATA unless input i is a tensor of int32 or int64. */
nori_status nori__need_indices(const nori_call *call, uint32_t i);
/* DATA, "index 7 (element 3 of input 1) is outside of axis 0 of size 5". */
nori_status nori__bad_index(const nori_call *call, uint32_t input, int64_t i, int axis,
                            int64_t size);
/* Input i present, a tensor, of type and rank (-1: any) as said: for what inference may not have
 * seen. */
nori_status nori__need_rank(const nori_call *call, uint32_t i, int rank);

#endif
