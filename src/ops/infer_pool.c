/* infer_pool.c: shapes of pooling. */
#include "ops/families.h"
#include "ops/window.h"

static const nori__dim any = {-1, NULL};

static nori_status rank_error(nori__infer *c, uint32_t i, const char *expected)
{
    return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, expected %s", i,
                      nori__in_rank(c, i), expected);
}

nori_status nori__infer_pool(nori__infer *c)
{
    nori__window w;
    nori__dim dims[NORI_MAX_RANK];
    int rank = nori__in_rank(c, 0);
    nori_type elem = nori__in_elem(c, 0);
    nori__out_elem(c, 0, elem);
    if (c->node->output_count > 1) {
        nori__out_elem(c, 1, NORI_INT64);
    }
    if (rank < 0) {
        return NORI_OK;
    }
    if (rank < 3) {
        return rank_error(c, 0, "at least 3 (batch, channels, space)");
    }
    NORI__TRY(nori__window_read(c->node, c->err, rank - 2, NULL, &w));
    memcpy(dims, c->in[0].dims, 2 * sizeof dims[0]);
    for (int d = 0; d < rank - 2; d++) {
        nori__dim in = c->in[0].dims[d + 2];
        NORI__TRY(nori__window_out(&w, c->err, d, in.value, &dims[d + 2].value));
        bool kept = w.stride[d] == 1 && (w.auto_pad >= NORI__PAD_UPPER ||
                                         w.begin[d] + w.end[d] == nori__window_extent(&w, d) - 1);
        dims[d + 2].name = in.value < 0 && kept ? in.name : NULL;
    }
    nori__out_set(c, 0, elem, rank, dims);
    if (c->node->output_count > 1) {
        nori__out_set(c, 1, NORI_INT64, rank, dims);
    }
    return NORI_OK;
}

nori_status nori__infer_global_pool(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    nori__dim dims[NORI_MAX_RANK];
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 0) {
        return NORI_OK;
    }
    if (rank < 2) {
        return rank_error(c, 0, "at least 2");
    }
    for (int d = 0; d < rank; d++) {
        dims[d] = d < 2 ? c->in[0].dims[d] : nori__dim_of(1);
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), rank, dims);
    return NORI_OK;
}

nori_status nori__infer_max_unpool(nori__infer *c)
{
    nori__window w;
    nori__dim dims[NORI_MAX_RANK];
    int rank = nori__in_rank(c, 0);
    nori_type elem = nori__in_elem(c, 0);
    nori__out_elem(c, 0, elem);
    if (nori__has_in(c, 2)) {
        int n = nori__in_data(c, 2, dims, NORI_MAX_RANK);
        if (n >= 0 && rank >= 0 && n != rank) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "output_shape has %d values, expected %d",
                              n, rank);
        }
        if (n >= 0) {
            nori__out_set(c, 0, elem, n, dims);
        }
        return NORI_OK;
    }
    if (rank < 0) {
        return NORI_OK;
    }
    if (rank < 3) {
        return rank_error(c, 0, "at least 3 (batch, channels, space)");
    }
    NORI__TRY(nori__window_read(c->node, c->err, rank - 2, NULL, &w));
    memcpy(dims, c->in[0].dims, 2 * sizeof dims[0]);
    for (int d = 0; d < rank - 2; d++) {
        dims[d + 2] = any;
        NORI__TRY(nori__window_out_transposed(&w, c->node, c->err, d, c->in[0].dims[d + 2].value,
                                              &dims[d + 2].value));
    }
    nori__out_set(c, 0, elem, rank, dims);
    return NORI_OK;
}

static nori_status roi(nori__infer *c, int columns, int64_t height, int64_t width)
{
    int xr = nori__in_rank(c, 0), rr = nori__in_rank(c, 1);
    if (xr >= 0 && xr != 4) {
        return rank_error(c, 0, "4");
    }
    if (rr >= 0 &&
        (rr != 2 || (c->in[1].dims[1].value >= 0 && c->in[1].dims[1].value != columns))) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 1 (rois) is not of shape (count, %d)",
                          columns);
    }
    if (height < 1 || width < 1) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "output size %lld x %lld", (long long)height,
                          (long long)width);
    }
    nori__dim dims[4] = {rr >= 0 ? c->in[1].dims[0] : any, xr >= 0 ? c->in[0].dims[1] : any,
                         nori__dim_of(height), nori__dim_of(width)};
    nori__out_set(c, 0, nori__in_elem(c, 0), 4, dims);
    return NORI_OK;
}

nori_status nori__infer_roi_align(nori__infer *c)
{
    return roi(c, 4, nori__attr_i(c->node, "output_height", 1),
               nori__attr_i(c->node, "output_width", 1));
}

nori_status nori__infer_max_roi_pool(nori__infer *c)
{
    size_t n;
    const int64_t *shape = nori__attr_ints(c->node, "pooled_shape", &n);
    if (!shape || n != 2) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "pooled_shape must have 2 values");
    }
    return roi(c, 5, shape[0], shape[1]);
}
