/* infer_reshape.c: the same elements under another shape: Reshape, Flatten, Squeeze, Unsqueeze.
 * Named dimensions stay named where the rest cancels. */
#include "ops/content.h"

/* The one open entry of a reshape: what the rest leaves of the input's size. Equal names on both
 * sides cancel; one name left over with nothing beside it is the answer. */
static nori_status solve(nori__infer *c, const nori__shape *in, nori__dim *dims, int rank, int open)
{
    int64_t have = 1, want = 1;
    bool used[NORI_MAX_RANK] = {false};
    const char *left = NULL;
    int n_left = 0;
    for (int d = 0; d < rank; d++) {
        bool found = d == open || dims[d].value >= 0;
        if (d != open && dims[d].value >= 0 && !nori__mul_dim(want, dims[d].value, &want)) {
            return NORI_OK;
        }
        for (int k = 0; !found && k < in->rank; k++) {
            if (!used[k] && in->dims[k].value < 0 && nori__dim_same(in->dims[k], dims[d])) {
                used[k] = found = true;
            }
        }
        if (!found) {
            return NORI_OK;
        }
    }
    for (int k = 0; k < in->rank; k++) {
        if (in->dims[k].value < 0) {
            n_left += !used[k];
            left = used[k] ? left : in->dims[k].name;
        } else if (!nori__mul_dim(have, in->dims[k].value, &have)) {
            return NORI_OK;
        }
    }
    if (n_left > 0) {
        if (n_left == 1 && left && have == want && have > 0) {
            dims[open] = (nori__dim){-1, left};
        }
        return NORI_OK;
    }
    if (want == 0) {
        /* Nothing times anything: numpy refuses, and so do we when it is asked for outright. */
        return have == 0 ? NORI_OK
                         : nori__fail(c->err, NORI_ERROR_MODEL,
                                      "the new shape is empty, the input has %lld elements",
                                      (long long)have);
    }
    if (have % want != 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "%lld elements cannot be divided into parts of %lld", (long long)have,
                          (long long)want);
    }
    dims[open] = nori__dim_of(have / want);
    return NORI_OK;
}

/* Sizes must agree once all is known. */
static nori_status same_count(nori__infer *c, const nori__shape *in, const nori__dim *dims,
                              int rank)
{
    int64_t have = 1, want = 1;
    for (int d = 0; d < rank; d++) {
        if (dims[d].value < 0) {
            return NORI_OK;
        }
        if (!nori__mul_dim(want, dims[d].value, &want)) {
            want = INT64_MAX;
        }
    }
    for (int d = 0; d < in->rank; d++) {
        if (in->dims[d].value < 0 || !nori__mul_dim(have, in->dims[d].value, &have)) {
            return NORI_OK;
        }
    }
    if (in->rank >= 0 && have != want) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the input has %lld elements, the new shape has %lld", (long long)have,
                          (long long)want);
    }
    return NORI_OK;
}

nori_status nori__infer_reshape(nori__infer *c)
{
    nori_type elem = nori__in_elem(c, 0);
    nori__dim dims[NORI_MAX_RANK];
    int rank;
    bool sure = true;
    if (nori__has_in(c, 1)) {
        NORI__TRY(nori__shape_check(c, 1));
        rank = nori__shape_input(c, 1, dims);
        sure = nori__whole(c, 1);
    } else {
        int64_t list[NORI_MAX_RANK];
        nori_status bad;
        rank = nori__infer_ints(c, 1, "shape", list, NORI_MAX_RANK, &bad);
        NORI__TRY(bad);
        for (int d = 0; d < rank; d++) {
            dims[d] = (nori__dim){list[d], NULL};
        }
    }
    if (rank < 0) {
        nori__out_elem(c, 0, elem);
        return NORI_OK;
    }
    const nori__shape *in = &c->in[0];
    int in_rank = nori__in_rank(c, 0);
    bool keep_zero = nori__attr_i(c->node, "allowzero", 0) != 0;
    int open = -1, opens = 0;
    for (int d = 0; d < rank; d++) {
        if (dims[d].value == 0 && !keep_zero) {
            if (in_rank >= 0 && d >= in_rank) {
                return nori__fail(c->err, NORI_ERROR_MODEL,
                                  "entry %d of the shape is 0 (keep), but the input has rank %d", d,
                                  in_rank);
            }
            dims[d] = in_rank < 0 ? NORI__DIM_ANY : in->dims[d];
            if (dims[d].value < 0 && !dims[d].name) {
                opens = 2; /* some size or other, no -1: nothing can be solved */
            }
        } else if (dims[d].value < 0 && !dims[d].name) {
            if (sure && (dims[d].value != -1 || open >= 0)) {
                return nori__fail(c->err, NORI_ERROR_MODEL,
                                  "entry %d of the shape is %lld; one -1 is the only negative "
                                  "entry allowed",
                                  d, (long long)dims[d].value);
            }
            open = d;
            opens++;
            dims[d].value = -1;
        }
    }
    if (opens == 1 && open >= 0 && in_rank >= 0) {
        NORI__TRY(solve(c, in, dims, rank, open));
        if (sure && dims[open].value < 0 && !dims[open].name) {
            /* -1 beside an empty rest, all known: no one answer (0 is as good as any). */
            bool known = true;
            for (int d = 0; d < in_rank; d++) {
                known = known && in->dims[d].value >= 0;
            }
            if (known && keep_zero) {
                return nori__fail(c->err, NORI_ERROR_MODEL,
                                  "the shape has both 0 and -1 with allowzero");
            }
            if (known) {
                dims[open] = nori__dim_of(0);
            }
        }
    }
    if (in_rank >= 0) {
        NORI__TRY(same_count(c, in, dims, rank));
    }
    nori__out_set(c, 0, elem, rank, dims);
    nori__content_pass(c, 0);
    return NORI_OK;
}

nori_status nori__infer_flatten(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    nori__dim dims[2] = {NORI__DIM_ANY, NORI__DIM_ANY};
    if (rank >= 0) {
        int64_t axis = nori__attr_i(c->node, "axis", 1);
        if (axis < -(int64_t)rank || axis > rank) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "axis %lld, but the rank is %d",
                              (long long)axis, rank);
        }
        axis = axis < 0 ? axis + rank : axis;
        for (int half = 0; half < 2; half++) {
            int64_t product = 1;
            int open = 0;
            const char *name = NULL;
            for (int d = half ? (int)axis : 0; d < (half ? rank : (int)axis); d++) {
                nori__dim v = c->in[0].dims[d];
                open += v.value < 0;
                name = v.value < 0 ? v.name : name;
                if (v.value >= 0 && !nori__mul_dim(product, v.value, &product)) {
                    open = 2;
                }
            }
            if (open == 0 || product == 0) {
                dims[half] = nori__dim_of(product);
            } else if (open == 1 && product == 1) {
                dims[half] = (nori__dim){-1, name};
            }
        }
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), 2, dims);
    return NORI_OK;
}

nori_status nori__infer_squeeze(nori__infer *c)
{
    int64_t axes[NORI_MAX_RANK];
    nori_status bad;
    int n = nori__infer_ints(c, 1, "axes", axes, NORI_MAX_RANK, &bad);
    NORI__TRY(bad);
    int rank = nori__in_rank(c, 0), kept = 0;
    nori__dim dims[NORI_MAX_RANK];
    bool drop[NORI_MAX_RANK] = {false};
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 0 || n == NORI__INTS_UNKNOWN) {
        return NORI_OK;
    }
    if (n != NORI__INTS_ABSENT) {
        NORI__TRY(nori__fix_axes(c->err, rank, axes, n));
        for (int i = 0; i < n; i++) {
            int64_t size = c->in[0].dims[axes[i]].value;
            if (size >= 0 && size != 1) {
                return nori__fail(c->err, NORI_ERROR_MODEL,
                                  "axis %lld has size %lld, only size 1 can be squeezed",
                                  (long long)axes[i], (long long)size);
            }
            drop[axes[i]] = true;
        }
    }
    for (int d = 0; d < rank; d++) {
        if (n == NORI__INTS_ABSENT && c->in[0].dims[d].value < 0) {
            return NORI_OK;
        }
        if (!drop[d] && !(n == NORI__INTS_ABSENT && c->in[0].dims[d].value == 1)) {
            dims[kept++] = c->in[0].dims[d];
        }
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), kept, dims);
    nori__content_pass(c, 0);
    return NORI_OK;
}

nori_status nori__infer_unsqueeze(nori__infer *c)
{
    int64_t axes[NORI_MAX_RANK];
    nori_status bad;
    int n = nori__infer_ints(c, 1, "axes", axes, NORI_MAX_RANK, &bad);
    NORI__TRY(bad);
    int rank = nori__in_rank(c, 0);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (n < 0 || rank < 0) {
        bool counted = rank >= 0 && nori__in_rank(c, 1) == 1 && c->in[1].dims[0].value >= 0 &&
                       c->in[1].dims[0].value <= NORI_MAX_RANK - rank;
        if (counted) {
            nori__dim any[NORI_MAX_RANK];
            int out = rank + (int)c->in[1].dims[0].value;
            for (int d = 0; d < out; d++) {
                any[d] = NORI__DIM_ANY;
            }
            nori__out_set(c, 0, nori__in_elem(c, 0), out, any);
        }
        return NORI_OK;
    }
    if (rank + n > NORI_MAX_RANK) {
        return nori__fail(c->err, NORI_ERROR_LIMIT, "rank %d, at most %d is taken", rank + n,
                          NORI_MAX_RANK);
    }
    NORI__TRY(nori__fix_axes(c->err, rank + n, axes, n));
    nori__dim dims[NORI_MAX_RANK];
    for (int d = 0; d < rank + n; d++) {
        dims[d] = NORI__DIM_ANY;
    }
    for (int i = 0; i < n; i++) {
        dims[axes[i]] = nori__dim_of(1);
    }
    for (int d = 0, from = 0; d < rank + n; d++) {
        if (dims[d].value != 1) {
            dims[d] = c->in[0].dims[from++];
        }
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), rank + n, dims);
    nori__content_pass(c, 0);
    return NORI_OK;
}
