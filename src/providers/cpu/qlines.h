/* qlines.h: lines of bytes times packed 8-bit weights, exact on every level: convolutions over
 * channels-last activations (a line is a pixel) and matrix products (a line is a row of A). */
#ifndef NORI_PROVIDERS_CPU_QLINES_H
#define NORI_PROVIDERS_CPU_QLINES_H

#include "providers/cpu/cpu.h"

/* ---- packed weights (qpack.c) ---- */

/* Where weights come from: weight k (of terms * bytes) of output channel o is at
 * data[o * step + from[k]], and o's zero point is taken off. */
typedef struct nori__qweights {
    const nori_tensor *data, *zero; /* zero: NULL, one, or one a channel */
    size_t groups, made;            /* output channels of a group */
    size_t terms, bytes;            /* bytes of a term */
    size_t step;
    const size_t *from;
} nori__qweights;

/* Blocks of sixteen channels in the forms of u8_tile. Arrays a channel have room for whole blocks:
 * channel c of group g is at g * wide + c. */
typedef struct nori__qpack {
    size_t groups, made, terms, bytes, quads, blocks, wide;
    nori__u8_block *block; /* [groups][blocks] */
    int8_t *w, *rest;
    uint32_t *at;
    uint32_t *rests;       /* of each block: what block says of it, too */
    int32_t *sums;         /* of a channel's weights */
    size_t block_bytes, w_bytes, rest_bytes, at_bytes, rests_bytes, sums_bytes;
} nori__qpack;

nori_status nori__qpack_make(const nori__qweights *from, const nori_allocator *a, nori__qpack *out,
                             nori_error *err);
void nori__qpack_free(nori__qpack *p, const nori_allocator *a);
size_t nori__qpack_bytes(const nori__qpack *p);

/* ---- products (qlines.c) ---- */

/* One run over images of size[0] * size[1] * size[2] lines. */
typedef struct nori__qlines {
    const nori__qpack *w;
    const int64_t *offset;    /* of terms, from the start of a line */
    const uint8_t *x;         /* 4 * quads bytes of each term are read */
    size_t images, x_image;   /* bytes between images */
    size_t size[3], step[3];  /* lines, and bytes between neighbours */
    size_t group;             /* bytes between the groups of a line */
    size_t span;              /* lines a unit at most; 0: as usual */
    void *y;                  /* lines of ldy elements, images y_image elements apart */
    size_t ldy, y_image;
    nori__u8_finish finish;   /* start, scale and shift of all channels */
} nori__qlines;
void nori__qlines_run(nori_call *call, const nori__qlines *q);

/* start[c] = bias[c] - zero * sums[c]; bias may be NULL. zero: of the bytes, x + 128 for int8. */
void nori__qlines_start(const nori__qpack *w, const int32_t *bias, int32_t zero, int32_t *start);
/* Limits and zero point of an 8-bit result; biased: int8 results are kept as q + 128. */
void nori__qlines_limits(nori__u8_finish *f, int32_t zero, bool is_signed, bool biased);

#endif
