/* einsum.h: Einsum's equation, read once for inference and kernels. */
#ifndef NORI_OPS_EINSUM_H
#define NORI_OPS_EINSUM_H

#include "ops/op.h"

enum {
    NORI__EINSUM_OPERANDS = 16,
    NORI__EINSUM_LETTERS = 52,
    NORI__EINSUM_LABELS = NORI__EINSUM_LETTERS + NORI_MAX_RANK /* letters, then ellipsis axes */
};

typedef struct nori__einsum {
    int operands;
    int rank[NORI__EINSUM_OPERANDS];
    int8_t label[NORI__EINSUM_OPERANDS][NORI_MAX_RANK]; /* of each dimension */
    int out_rank;
    int8_t out[NORI_MAX_RANK];
    int64_t size[NORI__EINSUM_LABELS]; /* -1: not known; 1 where nothing tells more */
    bool used[NORI__EINSUM_LABELS];
} nori__einsum;

/* shapes[i]: sizes (-1 unknown) of operand i of rank ranks[i] (known). */
nori_status nori__einsum_read(const char *equation, int operands, const int *ranks,
                              const int64_t (*shapes)[NORI_MAX_RANK], nori__einsum *e,
                              nori_error *err);

#endif
