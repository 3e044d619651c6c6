/* patches.h: where the inputs under a convolution's kernel lie, for gathering them into panels. */
#ifndef NORI_PROVIDERS_CPU_PATCHES_H
#define NORI_PROVIDERS_CPU_PATCHES_H

#include "providers/reference/ref_nn.h"

/* Sizes of a convolution, always in three spatial dimensions (leading ones are 1). */
typedef struct nori__patches {
    size_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    size_t padded[3];                      /* input with pads, as far as windows reach */
    size_t in_size, out_size, padded_size; /* of a channel */
    bool copied;    /* pads are there: the input must be copied into them */
    bool pointwise; /* one element, no pads, no strides */
} nori__patches;

/* False where sizes are out of what gathering takes (cropping pads, sizes that overflow). */
bool nori__patches_set(nori__patches *g, const nori__ref_conv_work *w);

/* Pieces of output rows that columns [j, j + count) lie in: piece s begins at column from[s], and
 * its first element is at where[s] in the padded channel. Arrays have room for count entries. */
size_t nori__patches_pieces(const nori__patches *g, size_t j, size_t count, size_t *from,
                            int64_t *where);

/* Where each k = (channel, kernel position) looks, relative to a column's place. Grows with k. */
void nori__patches_offsets(const nori__patches *g, size_t channels, int64_t *offset);

#endif
