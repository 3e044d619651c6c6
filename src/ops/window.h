/* window.h: the geometry of sliding windows (convolution, pooling, unfolding), shared by shape
 * inference and kernels: attributes read and checked once, one formula a size. */
#ifndef NORI_OPS_WINDOW_H
#define NORI_OPS_WINDOW_H

#include "ops/op.h"

#define NORI__SPATIAL (NORI_MAX_RANK - 2)

typedef enum nori__auto_pad {
    NORI__PAD_GIVEN,
    NORI__PAD_VALID,
    NORI__PAD_UPPER,
    NORI__PAD_LOWER
} nori__auto_pad;

typedef struct nori__window {
    int n; /* spatial dimensions */
    int64_t kernel[NORI__SPATIAL]; /* -1: not known */
    int64_t stride[NORI__SPATIAL], dilation[NORI__SPATIAL];
    int64_t begin[NORI__SPATIAL], end[NORI__SPATIAL]; /* pads; with SAME_* set by ..._out */
    nori__auto_pad auto_pad;
    bool ceil;
} nori__window;

/* Reads kernel_shape, strides, dilations, pads, auto_pad, ceil_mode for n spatial dimensions.
 * weight: the kernel's sizes as the weight has them (-1 where unknown), or NULL; kernel_shape must
 * agree with it, and must be there without it. Sizes are kept within 2^31 so that later sums and
 * products of two cannot overflow. */
nori_status nori__window_read(const nori__node *node, nori_error *err, int n,
                              const int64_t *weight, nori__window *w);
/* Output size along spatial dimension d for an input size; fills begin and end for SAME_*. Input or
 * kernel unknown (-1): -1. */
nori_status nori__window_out(nori__window *w, nori_error *err, int d, int64_t in, int64_t *out);
/* The same for a transposed convolution: output_padding, output_shape are looked up in node. */
nori_status nori__window_out_transposed(nori__window *w, const nori__node *node, nori_error *err,
                                        int d, int64_t in, int64_t *out);
static inline int64_t nori__window_extent(const nori__window *w, int d)
{
    return (w->kernel[d] - 1) * w->dilation[d] + 1;
}

#endif
