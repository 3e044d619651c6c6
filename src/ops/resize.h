/* resize.h: how Resize and Upsample of every version read their arguments; shared by inference and
 * kernels. */
#ifndef NORI_OPS_RESIZE_H
#define NORI_OPS_RESIZE_H

#include "ops/op.h"

typedef enum nori__resize_mode { NORI__NEAREST, NORI__LINEAR, NORI__CUBIC } nori__resize_mode;

typedef enum nori__resize_coords {
    NORI__HALF_PIXEL,
    NORI__HALF_PIXEL_SYMMETRIC,
    NORI__PYTORCH_HALF_PIXEL,
    NORI__ALIGN_CORNERS,
    NORI__ASYMMETRIC,
    NORI__TF_CROP,
    NORI__TF_HALF_PIXEL_NN /* of opset 11: half_pixel without the final 0.5 */
} nori__resize_coords;

typedef enum nori__resize_round {
    NORI__ROUND_PREFER_FLOOR,
    NORI__ROUND_PREFER_CEIL,
    NORI__ROUND_FLOOR,
    NORI__ROUND_CEIL,
    NORI__ROUND_OUTWARD /* of opset 10: down where an axis grows, up where it shrinks */
} nori__resize_round;
/* What nearest_mode says on the compiled copy of a Resize of opset 10 whose scales are not known, or are
 * of both kinds; not a word of ONNX. */
#define NORI__ROUND_OUTWARD_TEXT "floor or ceil by scale"
/* The same with constant scales (NULL: not known) in a word of ONNX where one says it. */
const char *nori__resize_outward(const nori_tensor *scales);
static inline bool nori__resize_by_scale(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_Resize) &&
           nori__same(nori__attr_s(n, "nearest_mode", ""), NORI__ROUND_OUTWARD_TEXT);
}

typedef struct nori__resize {
    nori__resize_mode mode;
    nori__resize_coords coords;
    nori__resize_round round;
    bool antialias, exclude_outside;
    double cubic_a, extrapolation;
    uint32_t roi_in, scales_in, sizes_in; /* input numbers; UINT32_MAX: this version has none */
    int64_t out[NORI_MAX_RANK];           /* -1: not known */
    double scale[NORI_MAX_RANK];
    double start[NORI_MAX_RANK], end[NORI_MAX_RANK]; /* region, for TF_CROP */
} nori__resize;

/* The attributes and where inputs are. */
nori_status nori__resize_read(const nori__node *node, nori_error *err, nori__resize *r);
/* Output sizes and scales. in: sizes, -1 where unknown. The tensors may be NULL: absent or not
 * known; sizes as dims (n_sizes -1 when absent or not known). */
nori_status nori__resize_sizes(const nori__node *node, nori_error *err, int rank,
                               const int64_t *in, const nori_tensor *roi,
                               const nori_tensor *scales, const int64_t *sizes, int n_sizes,
                               nori__resize *r);

#endif
