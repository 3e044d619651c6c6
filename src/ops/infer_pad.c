/* infer_pad.c: shapes of operators that widen, crop or fold axes: Pad, Crop, CenterCropPad,
 * DepthToSpace, SpaceToDepth; and Trilu. */
#include "ops/content.h"

static bool known(nori__dim d)
{
    return d.value >= 0;
}

/* Output 0 with the input's element type and rank, all dims open. */
static void out_rank(nori__infer *c, int rank)
{
    nori__dim dims[NORI_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        dims[d] = NORI__DIM_ANY;
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), rank, dims);
}

nori_status nori__infer_pad(nori__infer *c)
{
    int64_t pads[2 * NORI_MAX_RANK], axes[NORI_MAX_RANK];
    nori_status bad[2];
    const char *old = c->node->version == 1 ? "paddings" : "pads";
    int n = nori__infer_ints(c, 1, old, pads, 2 * NORI_MAX_RANK, &bad[0]);
    int n_axes = nori__infer_ints(c, 3, NULL, axes, NORI_MAX_RANK, &bad[1]);
    int rank = nori__in_rank(c, 0);
    NORI__TRY(bad[0]);
    NORI__TRY(bad[1]);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 0) {
        return NORI_OK;
    }
    if (n == NORI__INTS_UNKNOWN || n_axes == NORI__INTS_UNKNOWN) {
        out_rank(c, rank);
        return NORI_OK;
    }
    if (n_axes == NORI__INTS_ABSENT) {
        n_axes = rank;
        for (int d = 0; d < rank; d++) {
            axes[d] = d;
        }
    }
    if (n != 2 * n_axes) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "pads has %d entries, expected %d", n,
                          2 * n_axes);
    }
    NORI__TRY(nori__fix_axes(c->err, rank, axes, n_axes));
    nori__dim dims[NORI_MAX_RANK];
    memcpy(dims, c->in[0].dims, sizeof(dims));
    for (int i = 0; i < n_axes; i++) {
        nori__dim *d = &dims[axes[i]];
        int64_t low = pads[i], high = pads[i + n_axes], size = 0;
        if (!known(*d)) {
            *d = low == 0 && high == 0 ? *d : NORI__DIM_ANY;
        } else if (!nori__add_i64(low, high, &size) || !nori__add_i64(d->value, size, &size) ||
                   size < 0) {
            return nori__fail(
                c->err, NORI_ERROR_MODEL, "pads %lld and %lld do not fit axis %lld of size %lld",
                (long long)low, (long long)high, (long long)axes[i], (long long)d->value);
        } else {
            d->value = size;
        }
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), rank, dims);
    return NORI_OK;
}

/* DepthToSpace and SpaceToDepth, told apart by sign. */
static nori_status blocks(nori__infer *c, bool to_space)
{
    int64_t b = nori__attr_i(c->node, "blocksize", 0);
    int rank = nori__in_rank(c, 0);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (b < 1 || b > 65536) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "blocksize is %lld", (long long)b);
    }
    if (rank < 0) {
        return NORI_OK;
    }
    if (rank != 4) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 0 has rank %d, expected 4", rank);
    }
    nori__dim dims[4];
    for (int d = 0; d < 4; d++) {
        dims[d] = c->in[0].dims[d];
        int64_t by = d == 0 ? 1 : d == 1 ? b * b : b;
        bool divide = (d == 1) == to_space;
        if (d == 0) {
            continue;
        }
        if (!known(dims[d])) {
            dims[d] = b == 1 ? dims[d] : NORI__DIM_ANY;
        } else if (divide && dims[d].value % by != 0) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "axis %d has size %lld, no multiple of %lld", d,
                              (long long)dims[d].value, (long long)by);
        } else if (divide) {
            dims[d].value /= by;
        } else if (!nori__mul_dim(dims[d].value, by, &dims[d].value)) {
            return nori__fail(c->err, NORI_ERROR_LIMIT, "the result is too large");
        }
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), 4, dims);
    return NORI_OK;
}

nori_status nori__infer_depth_to_space(nori__infer *c)
{
    return blocks(c, true);
}

nori_status nori__infer_space_to_depth(nori__infer *c)
{
    return blocks(c, false);
}

/* Crop of opset 1 (experimental): border [left, top, right, bottom], or scale [height, width]
 * from the left and top border on. */
nori_status nori__infer_crop(nori__infer *c)
{
    size_t n_border = 0, n_scale = 0;
    const int64_t *border = nori__attr_ints(c->node, "border", &n_border);
    const int64_t *scale = nori__attr_ints(c->node, "scale", &n_scale);
    int rank = nori__in_rank(c, 0);
    nori__out_like(c, 0, 0);
    if (!border || n_border != 4 || (scale && n_scale != 2) || (rank >= 0 && rank != 4)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "needs rank 4, a border of 4 and a scale of 2 or none");
    }
    for (int d = 2; d < rank; d++) {
        nori__dim *o = &c->out[0].dims[d];
        int64_t low = border[d == 2 ? 1 : 0], high = border[d == 2 ? 3 : 2];
        int64_t size = scale ? scale[d - 2] : 0, end = 0;
        if (low < 0 || high < 0 || size < 0 || !nori__add_i64(low, scale ? size : high, &end) ||
            (known(*o) && end > o->value)) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "the border does not fit axis %d", d);
        }
        *o = scale ? nori__dim_of(size) : known(*o) ? nori__dim_of(o->value - end) : NORI__DIM_ANY;
    }
    return NORI_OK;
}

nori_status nori__infer_center_crop_pad(nori__infer *c)
{
    int64_t shape[NORI_MAX_RANK], axes[NORI_MAX_RANK];
    size_t n_axes = 0;
    const int64_t *given = nori__attr_ints(c->node, "axes", &n_axes);
    nori_status bad;
    int n = nori__infer_ints(c, 1, NULL, shape, NORI_MAX_RANK, &bad);
    int rank = nori__in_rank(c, 0);
    NORI__TRY(bad);
    nori__out_like(c, 0, 0);
    if (rank < 0) {
        return NORI_OK;
    }
    if (n_axes > (size_t)rank) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "%zu axes for rank %d", n_axes, rank);
    }
    int count = given ? (int)n_axes : rank;
    for (int i = 0; i < count; i++) {
        axes[i] = given ? given[i] : i;
    }
    NORI__TRY(nori__fix_axes(c->err, rank, axes, count));
    if (n >= 0 && n != count) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "shape has %d entries for %d axes", n, count);
    }
    for (int i = 0; i < count; i++) {
        if (n >= 0 && shape[i] < 0) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "entry %d of the shape is %lld", i,
                              (long long)shape[i]);
        }
        c->out[0].dims[axes[i]] = n >= 0 ? nori__dim_of(shape[i]) : NORI__DIM_ANY;
    }
    return NORI_OK;
}

nori_status nori__infer_trilu(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    if (rank >= 0 && rank < 2) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 0 has rank %d, expected 2 or more",
                          rank);
    }
    nori__out_like(c, 0, 0);
    return NORI_OK;
}
