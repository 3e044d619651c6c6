/* infer_reduce.c: types and shapes of reductions, ArgMax/ArgMin, TopK, softmax and running sums.
 *
 * Axes come from input 1 or from the attribute of older opsets. Rank 0 counts as one element where
 * an axis is asked for, as numpy has it. */
#include "ops/reduce.h"

#include "ops/families.h"

static nori_status fix_axis(int64_t axis, int rank, nori_status status, nori_error *err, int *out)
{
    *out = 0;
    if (axis < -(int64_t)rank || axis >= rank) {
        return nori__fail(err, status, "axis %lld is outside a tensor of rank %d",
                          (long long)axis, rank);
    }
    *out = (int)(axis < 0 ? axis + rank : axis);
    return NORI_OK;
}

nori_status nori__scalar_axis(const nori__node *node, int64_t otherwise, int rank,
                              nori_status status, nori_error *err, int *axis)
{
    int64_t given = nori__attr_i(node, "axis", otherwise);
    return fix_axis(given, rank > 0 ? rank : 1, status, err, axis);
}

nori_status nori__reduce_axes(const nori__node *node, const int64_t *axes, int64_t n, int rank,
                              nori_status status, nori_error *err, bool fold[NORI_MAX_RANK])
{
    if (!axes) {
        size_t count = 0;
        axes = nori__attr_ints(node, "axes", &count);
        n = axes ? (int64_t)count : 0;
    }
    bool all = n == 0 && nori__attr_i(node, "noop_with_empty_axes", 0) == 0;
    for (int d = 0; d < NORI_MAX_RANK; d++) {
        fold[d] = all && d < rank;
    }
    for (int64_t i = 0; i < n; i++) {
        int axis;
        NORI__TRY(fix_axis(axes[i], rank > 0 ? rank : 1, status, err, &axis));
        if (fold[axis]) {
            return nori__fail(err, status, "axis %d is named twice in axes", axis);
        }
        fold[axis] = true;
    }
    return NORI_OK;
}

/* The rank is certain though the axes are not. */
static void unknown_axes(nori__infer *c, nori_type elem, int rank, bool keep)
{
    nori__dim any[NORI_MAX_RANK];
    for (int d = 0; d < NORI_MAX_RANK; d++) {
        any[d] = NORI__DIM_ANY;
    }
    int64_t count = nori__in_rank(c, 1) == 1 ? c->in[1].dims[0].value : -1;
    if (keep) {
        nori__out_set(c, 0, elem, rank, any);
    } else if (count > 0 && count <= rank) {
        nori__out_set(c, 0, elem, rank - (int)count, any);
    } else {
        nori__out_elem(c, 0, elem);
    }
}

nori_status nori__infer_reduce(nori__infer *c)
{
    nori_type elem = nori__in_elem(c, 0);
    int rank = nori__in_rank(c, 0);
    bool keep = nori__attr_i(c->node, "keepdims", 1) != 0;
    if (rank < 0) {
        nori__out_elem(c, 0, elem);
        return NORI_OK;
    }
    nori__dim data[NORI_MAX_RANK];
    int64_t axes[NORI_MAX_RANK + 1] = {0};
    int n = 0;
    if (nori__has_in(c, 1)) {
        n = nori__in_data(c, 1, data, NORI_MAX_RANK);
        bool known = n >= 0;
        for (int i = 0; i < n; i++) {
            axes[i] = data[i].value;
            /* An entry known in part has value -1, which would read as the last axis. */
            known = known && (c->in[1].tensor || axes[i] >= 0);
        }
        if (!known) {
            unknown_axes(c, elem, rank, keep);
            return NORI_OK;
        }
    }
    bool fold[NORI_MAX_RANK];
    NORI__TRY(nori__reduce_axes(c->node, nori__has_in(c, 1) ? axes : NULL, n, rank,
                                NORI_ERROR_MODEL, c->err, fold));
    nori__dim dims[NORI_MAX_RANK];
    int out = 0;
    for (int d = 0; d < rank; d++) {
        if (!fold[d]) {
            dims[out++] = c->in[0].dims[d];
        } else if (keep) {
            dims[out++] = nori__dim_of(1);
        }
    }
    nori__out_set(c, 0, elem, out, dims);
    return NORI_OK;
}

nori_status nori__infer_arg(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), axis;
    if (rank < 0) {
        nori__out_elem(c, 0, NORI_INT64);
        return NORI_OK;
    }
    NORI__TRY(nori__scalar_axis(c->node, 0, rank, NORI_ERROR_MODEL, c->err, &axis));
    bool keep = nori__attr_i(c->node, "keepdims", 1) != 0;
    nori__dim dims[NORI_MAX_RANK];
    int out = 0;
    for (int d = 0; d < rank; d++) {
        if (d != axis) {
            dims[out++] = c->in[0].dims[d];
        } else if (keep) {
            dims[out++] = nori__dim_of(1);
        }
    }
    nori__out_set(c, 0, NORI_INT64, out, dims);
    return NORI_OK;
}

nori_status nori__infer_softmax(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), axis;
    nori__out_like(c, 0, 0);
    if (rank < 0) {
        return NORI_OK;
    }
    if (c->node->version < 13) {
        int64_t split = nori__attr_i(c->node, "axis", 1); /* [-rank, rank]: 2-D from there */
        if (split < -(int64_t)rank || split > rank) {
            /* A scalar is one row whatever the default axis says. */
            return rank == 0 ? NORI_OK
                             : nori__fail(c->err, NORI_ERROR_MODEL,
                                          "axis %lld is outside a tensor of rank %d",
                                          (long long)split, rank);
        }
        return NORI_OK;
    }
    return nori__scalar_axis(c->node, -1, rank, NORI_ERROR_MODEL, c->err, &axis);
}

nori_status nori__infer_topk(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), axis;
    nori_type elem = nori__in_elem(c, 0);
    nori__out_elem(c, 0, elem);
    nori__out_elem(c, 1, NORI_INT64);
    if (rank < 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__scalar_axis(c->node, -1, rank, NORI_ERROR_MODEL, c->err, &axis));
    nori__dim dims[NORI_MAX_RANK], k[NORI_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        dims[d] = c->in[0].dims[d];
    }
    k[0] = NORI__DIM_ANY;
    if (!nori__has_in(c, 1)) {
        k[0] = nori__dim_of(nori__attr_i(c->node, "k", -1));
        if (k[0].value < 0) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "k is missing: no input 1, no attribute");
        }
    } else if (c->in[1].tensor && c->in[1].tensor->count != 1) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "k (input 1) has %lld elements, expected 1",
                          (long long)c->in[1].tensor->count);
    } else if (nori__in_data(c, 1, k, NORI_MAX_RANK) != 1) {
        k[0] = NORI__DIM_ANY;
    } else if (c->in[1].tensor && k[0].value < 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "k (input 1) is %lld, expected at least 0",
                          (long long)k[0].value);
    }
    int64_t length = rank > 0 ? dims[axis].value : 1;
    if (length >= 0 && k[0].value > length) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "k is %lld, but axis %d of input 0 has size %lld", (long long)k[0].value,
                          axis, (long long)length);
    }
    if (rank > 0) {
        dims[axis] = k[0];
    }
    nori__out_set(c, 0, elem, rank, dims);
    nori__out_set(c, 1, NORI_INT64, rank, dims);
    return NORI_OK;
}
