/* infer_gather.c: shapes of operators that pick or place elements by index: Gather and its kin,
 * OneHot, Scatter, ReverseSequence, and those whose size only the run can tell. */
#include "ops/content.h"

static bool known(nori__dim d)
{
    return d.value >= 0;
}

nori_status nori__infer_gather(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), depth = nori__in_rank(c, 1), axis;
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", 0), rank, &axis));
    if (depth < 0) {
        return NORI_OK;
    }
    if (rank - 1 + depth > NORI_MAX_RANK) {
        return nori__fail(c->err, NORI_ERROR_LIMIT, "rank %d, at most %d is taken",
                          rank - 1 + depth, NORI_MAX_RANK);
    }
    nori__dim dims[2 * NORI_MAX_RANK];
    int n = 0;
    for (int d = 0; d < rank; d++) {
        for (int k = 0; k < depth && d == axis; k++) {
            dims[n++] = c->in[1].dims[k];
        }
        if (d != axis) {
            dims[n++] = c->in[0].dims[d];
        }
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), n, dims);
    if (rank != 1 || depth > 1) {
        return NORI_OK;
    }
    nori__dim data[NORI_MAX_RANK], picked[NORI_MAX_RANK];
    int64_t index[NORI_MAX_RANK];
    nori_status bad = NORI_OK;
    const nori_tensor *t = c->in[1].tensor;
    int count = nori__content(c, 0, data);
    int m = t && t->count > NORI_MAX_RANK
                ? -1
                : nori__infer_ints(c, 1, NULL, index, NORI_MAX_RANK, &bad);
    NORI__TRY(bad);
    for (int i = 0; i < m && count >= 0; i++) {
        int64_t at = index[i] < 0 ? index[i] + count : index[i];
        if (at < 0 || at >= count) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "index %lld is outside of axis 0 of size %d", (long long)index[i],
                              count);
        }
        picked[i] = data[at];
    }
    nori__content_set(c, 0, count >= 0 ? m : -1, picked);
    return NORI_OK;
}

nori_status nori__infer_gather_elements(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), depth = nori__in_rank(c, 1), axis;
    if (rank >= 0) {
        NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", 0), rank, &axis));
        if (depth >= 0 && depth != rank) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "indices have rank %d, data has rank %d",
                              depth, rank);
        }
    }
    nori__out_like(c, 0, 1);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    return NORI_OK;
}

nori_status nori__infer_gather_nd(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), depth = nori__in_rank(c, 1);
    int64_t batch = nori__attr_i(c->node, "batch_dims", 0);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 0 || depth < 0) {
        return NORI_OK;
    }
    if (depth < 1 || batch < 0 || batch >= depth || batch >= rank) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "batch_dims %lld with data of rank %d and indices of rank %d",
                          (long long)batch, rank, depth);
    }
    nori__dim last = c->in[1].dims[depth - 1], dims[2 * NORI_MAX_RANK];
    if (!known(last)) {
        return NORI_OK;
    }
    if (last.value < 1 || last.value > rank - batch) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "indices end in size %lld, expected 1 to %lld",
                          (long long)last.value, (long long)(rank - batch));
    }
    int n = 0;
    for (int d = 0; d < depth - 1; d++) {
        dims[n++] = c->in[1].dims[d];
    }
    for (int d = (int)(batch + last.value); d < rank; d++) {
        dims[n++] = c->in[0].dims[d];
    }
    if (n > NORI_MAX_RANK) {
        return nori__fail(c->err, NORI_ERROR_LIMIT, "rank %d, at most %d is taken", n,
                          NORI_MAX_RANK);
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), n, dims);
    return NORI_OK;
}

nori_status nori__infer_one_hot(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), axis;
    nori__dim dims[NORI_MAX_RANK + 1], depth[NORI_MAX_RANK];
    nori__out_elem(c, 0, nori__in_elem(c, 2));
    if (rank < 0) {
        return NORI_OK;
    }
    if (rank + 1 > NORI_MAX_RANK) {
        return nori__fail(c->err, NORI_ERROR_LIMIT, "rank %d, at most %d is taken", rank + 1,
                          NORI_MAX_RANK);
    }
    NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", -1), rank + 1, &axis));
    depth[0] = NORI__DIM_ANY;
    if (nori__in_data(c, 1, depth, NORI_MAX_RANK) == 1 && c->in[1].tensor && depth[0].value < 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "depth is %lld", (long long)depth[0].value);
    }
    for (int d = 0, from = 0; d <= rank; d++) {
        dims[d] = d == axis ? depth[0] : c->in[0].dims[from++];
    }
    nori__out_set(c, 0, nori__in_elem(c, 2), rank + 1, dims);
    return NORI_OK;
}

/* ScatterElements: indices and updates alike, of data's rank. */
nori_status nori__infer_scatter_elements(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), axis;
    nori__out_like(c, 0, 0);
    if (rank < 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", 0), rank, &axis));
    for (uint32_t i = 1; i < 3; i++) {
        int r = nori__in_rank(c, i);
        if (r >= 0 && r != rank) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, data has rank %d", i,
                              r, rank);
        }
    }
    for (int d = 0; d < rank && nori__in_rank(c, 1) >= 0 && nori__in_rank(c, 2) >= 0; d++) {
        nori__dim a = c->in[1].dims[d], b = c->in[2].dims[d], in = c->in[0].dims[d];
        if (known(a) && known(b) && a.value != b.value) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "axis %d: indices have size %lld, updates %lld", d,
                              (long long)a.value, (long long)b.value);
        }
        if (known(a) && known(in) && d != axis && a.value > in.value) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "axis %d: indices have size %lld, data only %lld", d,
                              (long long)a.value, (long long)in.value);
        }
    }
    return NORI_OK;
}

/* ScatterND: updates are indices' shape but its last, then what that last leaves of data. */
nori_status nori__infer_scatter_nd(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), depth = nori__in_rank(c, 1), up = nori__in_rank(c, 2);
    nori__out_like(c, 0, 0);
    if (rank < 0 || depth < 0) {
        return NORI_OK;
    }
    nori__dim last = depth > 0 ? c->in[1].dims[depth - 1] : nori__dim_of(-2);
    if (depth < 1 || rank < 1 || (known(last) && last.value > rank)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "indices of rank %d ending in size %lld do not fit data of rank %d",
                          depth, (long long)last.value, rank);
    }
    if (!known(last) || up < 0) {
        return NORI_OK;
    }
    int k = (int)last.value;
    if (up != depth - 1 + rank - k) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "updates have rank %d, expected %d", up,
                          depth - 1 + rank - k);
    }
    for (int d = 0; d < up; d++) {
        nori__dim want = d < depth - 1 ? c->in[1].dims[d] : c->in[0].dims[d - (depth - 1) + k];
        nori__dim have = c->in[2].dims[d];
        if (known(want) && known(have) && want.value != have.value) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "axis %d: updates have size %lld, expected %lld", d,
                              (long long)have.value, (long long)want.value);
        }
    }
    return NORI_OK;
}

nori_status nori__infer_tensor_scatter(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), axis;
    nori__out_like(c, 0, 0);
    if (rank < 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", -2), rank, &axis));
    if (axis == 0 || (nori__in_rank(c, 1) >= 0 && nori__in_rank(c, 1) != rank)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "axis %d, rank %d with an update of rank %d: the axis must not be the "
                          "batch's and the ranks alike",
                          axis, rank, nori__in_rank(c, 1));
    }
    return NORI_OK;
}

nori_status nori__infer_non_zero(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    nori__dim dims[2] = {NORI__DIM_ANY, NORI__DIM_ANY};
    if (rank >= 0) {
        dims[0] = nori__dim_of(rank);
    }
    nori__out_set(c, 0, NORI_INT64, 2, dims);
    return NORI_OK;
}

nori_status nori__infer_compress(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), axis;
    nori__dim any = NORI__DIM_ANY;
    if (!nori__attr_find(c->node, "axis")) {
        nori__out_set(c, 0, nori__in_elem(c, 0), 1, &any);
        return NORI_OK;
    }
    nori__out_like(c, 0, 0);
    if (rank >= 0) {
        NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", 0), rank, &axis));
        c->out[0].dims[axis] = any;
    }
    return NORI_OK;
}

nori_status nori__infer_unique(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), axis;
    nori__dim any = NORI__DIM_ANY;
    for (uint32_t i = 1; i < 4; i++) {
        nori__out_set(c, i, NORI_INT64, 1, &any);
    }
    if (!nori__attr_find(c->node, "axis")) {
        nori__out_set(c, 0, nori__in_elem(c, 0), 1, &any);
        return NORI_OK;
    }
    nori__out_like(c, 0, 0);
    if (rank >= 0) {
        NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", 0), rank, &axis));
        c->out[0].dims[axis] = any;
    }
    return NORI_OK;
}
