/* infer_conv.c: shapes of the convolution family. Spatial rank 0 (N x C only) is refused: the text
 * begins at one spatial dimension. Zero-size dimensions pass through the formulas of window.c. */
#include "ops/families.h"
#include "ops/window.h"

static const nori__dim any = {-1, NULL};

static nori__dim in_dim(const nori__infer *c, uint32_t i, int d)
{
    return nori__in_rank(c, i) > d ? c->in[i].dims[d] : any;
}

/* Checks ranks, groups and bias; w gets the window; returns the rank, 0 when unknown. */
static nori_status conv_begin(nori__infer *c, uint32_t xi, uint32_t wi, int *rank, nori__window *w)
{
    int xr = nori__in_rank(c, xi), wr = nori__in_rank(c, wi);
    *rank = xr >= 0 ? xr : wr;
    if (*rank < 0) {
        *rank = 0;
        return NORI_OK;
    }
    if (*rank < 3) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "input %u has rank %d, expected at least 3 (batch, channels, space)", xi,
                          *rank);
    }
    if (wr >= 0 && wr != *rank) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the weight (input %u) has rank %d, expected %d as input %u", wi, wr,
                          *rank, xi);
    }
    int64_t kernel[NORI__SPATIAL];
    for (int d = 0; d < *rank - 2; d++) {
        kernel[d] = in_dim(c, wi, d + 2).value;
    }
    return nori__window_read(c->node, c->err, *rank - 2, kernel, w);
}

static nori_status check_groups(nori__infer *c, int64_t channels, int64_t per_group, int64_t made,
                                int64_t *group)
{
    *group = nori__attr_i(c->node, "group", 1);
    if (*group < 1 || *group > INT32_MAX) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "group is %lld", (long long)*group);
    }
    if (channels >= 0 && per_group >= 0 &&
        (channels % *group != 0 || channels / *group != per_group)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "%lld channels in %lld groups, but the weight is made for %lld a group",
                          (long long)channels, (long long)*group, (long long)per_group);
    }
    if (made >= 0 && made % *group != 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "%lld output channels do not divide into %lld groups", (long long)made,
                          (long long)*group);
    }
    return NORI_OK;
}

static nori_status check_bias(nori__infer *c, uint32_t i, nori__dim made)
{
    int rank = nori__in_rank(c, i);
    if (rank < 0) {
        return NORI_OK;
    }
    nori__dim n = rank == 1 ? c->in[i].dims[0] : any;
    if (rank != 1 || (n.value >= 0 && made.value >= 0 && n.value != made.value)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the bias (input %u) must have one value for each of %lld channels", i,
                          (long long)made.value);
    }
    return NORI_OK;
}

static nori_status conv(nori__infer *c, uint32_t xi, uint32_t wi, uint32_t bi, nori_type elem)
{
    int rank;
    nori__window w;
    int64_t group, size;
    nori__out_elem(c, 0, elem);
    NORI__TRY(conv_begin(c, xi, wi, &rank, &w));
    if (rank == 0) {
        return NORI_OK;
    }
    nori__dim made = in_dim(c, wi, 0), dims[NORI_MAX_RANK];
    NORI__TRY(check_groups(c, in_dim(c, xi, 1).value, in_dim(c, wi, 1).value, made.value, &group));
    if (bi != 0) {
        NORI__TRY(check_bias(c, bi, made));
    }
    dims[0] = in_dim(c, xi, 0);
    dims[1] = made;
    for (int d = 0; d < rank - 2; d++) {
        nori__dim in = in_dim(c, xi, d + 2);
        NORI__TRY(nori__window_out(&w, c->err, d, in.value, &size));
        dims[d + 2] = nori__dim_of(size);
        /* A window that changes no size keeps the dimension's name. */
        if (size < 0 && in.name && w.stride[d] == 1 &&
            ((w.auto_pad >= NORI__PAD_UPPER) ||
             (w.kernel[d] > 0 && w.begin[d] + w.end[d] == nori__window_extent(&w, d) - 1))) {
            dims[d + 2] = in;
        }
    }
    nori__out_set(c, 0, elem, rank, dims);
    return NORI_OK;
}

nori_status nori__infer_conv(nori__infer *c)
{
    return conv(c, 0, 1, 2, nori__in_elem(c, 0));
}

nori_status nori__infer_conv_integer(nori__infer *c)
{
    return conv(c, 0, 1, 0, NORI_INT32);
}

nori_status nori__infer_qlinear_conv(nori__infer *c)
{
    return conv(c, 0, 3, 8, nori__in_elem(c, 7));
}

nori_status nori__infer_deform_conv(nori__infer *c)
{
    return conv(c, 0, 1, 3, nori__in_elem(c, 0));
}

nori_status nori__infer_conv_transpose(nori__infer *c)
{
    int rank;
    nori__window w;
    int64_t group, size;
    nori_type elem = nori__in_elem(c, 0);
    nori__out_elem(c, 0, elem);
    NORI__TRY(conv_begin(c, 0, 1, &rank, &w));
    if (rank == 0) {
        return NORI_OK;
    }
    nori__dim dims[NORI_MAX_RANK], channels = in_dim(c, 0, 1), per_group = in_dim(c, 1, 1);
    NORI__TRY(check_groups(c, channels.value, -1, channels.value, &group));
    if (channels.value >= 0 && in_dim(c, 1, 0).value >= 0 &&
        channels.value != in_dim(c, 1, 0).value) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "input 0 has %lld channels but the weight is made for %lld",
                          (long long)channels.value, (long long)in_dim(c, 1, 0).value);
    }
    dims[0] = in_dim(c, 0, 0);
    dims[1] = any;
    if (per_group.value >= 0 && !nori__mul_dim(per_group.value, group, &dims[1].value)) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "too many output channels");
    }
    NORI__TRY(check_bias(c, 2, dims[1]));
    for (int d = 0; d < rank - 2; d++) {
        NORI__TRY(nori__window_out_transposed(&w, c->node, c->err, d, in_dim(c, 0, d + 2).value,
                                              &size));
        dims[d + 2] = nori__dim_of(size);
    }
    nori__out_set(c, 0, elem, rank, dims);
    return NORI_OK;
}

/* [N, C * block, L] to [N, C, image...]. */
nori_status nori__infer_col2im(nori__infer *c)
{
    nori__dim image[NORI_MAX_RANK], block[NORI_MAX_RANK], dims[NORI_MAX_RANK];
    nori_type elem = nori__in_elem(c, 0);
    nori__out_elem(c, 0, elem);
    int rank = nori__in_rank(c, 0);
    if (rank >= 0 && rank != 3) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 0 has rank %d, expected 3", rank);
    }
    int n = nori__in_data(c, 1, image, NORI__SPATIAL),
        nb = nori__in_data(c, 2, block, NORI__SPATIAL);
    if (n < 0) {
        return NORI_OK;
    }
    if (nb >= 0 && nb != n) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "block_shape has %d values, expected %d", nb,
                          n);
    }
    int64_t size = 1;
    for (int d = 0; d < nb; d++) {
        int64_t b = block[d].value;
        if (b == 0 || b > INT32_MAX || (size > 0 && b > 0 && !nori__mul_dim(size, b, &size))) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "block_shape[%d] is %lld", d, (long long)b);
        }
        size = b < 0 ? -1 : size;
    }
    dims[0] = in_dim(c, 0, 0);
    dims[1] = any;
    int64_t columns = in_dim(c, 0, 1).value;
    if (nb >= 0 && size > 0 && columns >= 0) {
        if (columns % size != 0) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "dimension 1 of input 0 is %lld, expected a multiple of %lld",
                              (long long)columns, (long long)size);
        }
        dims[1] = nori__dim_of(columns / size);
    }
    memcpy(dims + 2, image, (size_t)n * sizeof image[0]);
    nori__out_set(c, 0, elem, n + 2, dims);
    return NORI_OK;
}
