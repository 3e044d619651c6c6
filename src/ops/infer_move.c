/* infer_move.c: shapes of operators that move whole elements along axes: Concat, Split, Slice,
 * Transpose, Tile. */
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

nori_status nori__infer_concat(nori__infer *c)
{
    uint32_t n = c->node->input_count;
    int rank = -1, axis;
    nori__dim dims[NORI_MAX_RANK], sum = nori__dim_of(0);
    nori_type elem = NORI_UNDEFINED;
    bool open = false;
    for (uint32_t i = 0; i < n; i++) {
        int r = nori__in_rank(c, i);
        elem = elem ? elem : nori__in_elem(c, i);
        if (r < 0) {
            open = true;
        } else if (rank >= 0 && r != rank) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "input %u has rank %d, the ones before have rank %d", i, r, rank);
        } else if (rank < 0) {
            rank = r;
            memcpy(dims, c->in[i].dims, sizeof(dims));
        }
    }
    nori__out_elem(c, 0, elem);
    if (rank < 0) {
        return NORI_OK;
    }
    NORI__TRY(
        nori__fix_axis(c->err, nori__attr_i(c->node, "axis", c->node->version < 4), rank, &axis));
    for (uint32_t i = 0; i < n; i++) {
        const nori__shape *s = &c->in[i];
        for (int d = 0; d < rank && nori__in_rank(c, i) >= 0; d++) {
            if (d == axis) {
                if (!known(s->dims[d]) || !known(sum)) {
                    bool alone = known(sum) && sum.value == 0;
                    sum = alone                                        ? s->dims[d]
                          : known(s->dims[d]) && s->dims[d].value == 0 ? sum
                                                                       : NORI__DIM_ANY;
                } else if (!nori__add_i64(sum.value, s->dims[d].value, &sum.value)) {
                    return nori__fail(c->err, NORI_ERROR_LIMIT, "the result is too large");
                }
            } else if (known(s->dims[d]) && known(dims[d]) && s->dims[d].value != dims[d].value) {
                return nori__fail(c->err, NORI_ERROR_MODEL,
                                  "input %u has size %lld on axis %d, the ones before have %lld", i,
                                  (long long)s->dims[d].value, d, (long long)dims[d].value);
            } else if (known(s->dims[d])) {
                dims[d] = s->dims[d];
            }
        }
    }
    dims[axis] = open ? NORI__DIM_ANY : sum;
    nori__out_set(c, 0, elem, rank, dims);
    if (rank != 1 || open || !known(sum) || sum.value > NORI_MAX_RANK) {
        return NORI_OK;
    }
    int at = 0;
    for (uint32_t i = 0; i < n; i++) {
        int size = (int)c->in[i].dims[0].value;
        if (nori__content(c, i, dims + at) != size) {
            for (int k = 0; k < size; k++) {
                dims[at + k] = NORI__DIM_ANY;
            }
        }
        at += size;
    }
    nori__content_set(c, 0, at, dims);
    return NORI_OK;
}

nori_status nori__infer_split(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), axis;
    uint32_t parts = c->node->output_count;
    const nori_type elem = nori__in_elem(c, 0);
    for (uint32_t i = 0; i < parts; i++) {
        nori__out_elem(c, i, elem);
    }
    if (rank < 0 || parts == 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", 0), rank, &axis));
    nori__dim dims[NORI_MAX_RANK], size = c->in[0].dims[axis];
    memcpy(dims, c->in[0].dims, sizeof(dims));
    const nori_tensor *t = nori__has_in(c, 1) ? c->in[1].tensor : NULL;
    size_t n_attr = 0;
    const int64_t *list = nori__has_in(c, 1) ? NULL : nori__attr_ints(c->node, "split", &n_attr);
    bool listed = t || list;
    if (listed && (t ? t->count : (int64_t)n_attr) != (int64_t)parts) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "split has %lld sizes for %u outputs",
                          (long long)(t ? t->count : (int64_t)n_attr), parts);
    }
    int64_t sum = 0, of = nori__attr_i(c->node, "num_outputs", parts);
    if (!listed && (of < (int64_t)parts || of < 1)) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "num_outputs is %lld for %u outputs",
                          (long long)of, parts);
    }
    if (!listed && !nori__has_in(c, 1) && known(size) &&
        (c->node->even || c->node->version < 18) && size.value % of != 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "size %lld cannot be split into %lld equal parts", (long long)size.value,
                          (long long)of);
    }
    for (uint32_t i = 0; i < parts; i++) {
        int64_t v = -1;
        if (listed) {
            v = t ? nori__tensor_get_i64(t, i) : list[i];
            if (v < 0 || !nori__add_i64(sum, v, &sum)) {
                return nori__fail(c->err, NORI_ERROR_MODEL, "part %u has size %lld", i,
                                  (long long)v);
            }
        } else if (!nori__has_in(c, 1) && known(size)) {
            v = nori__split_size(size.value, of, i);
        }
        dims[axis] = (nori__dim){v, v < 0 && parts == 1 ? size.name : NULL};
        nori__out_set(c, i, elem, rank, dims);
    }
    if (listed && known(size) && sum != size.value) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the parts sum up to %lld, axis %d has size %lld", (long long)sum, axis,
                          (long long)size.value);
    }
    return NORI_OK;
}

/* Slice of known one-dimensional content. */
static void slice_content(nori__infer *c, int64_t start, int64_t end, int64_t step)
{
    nori__dim data[NORI_MAX_RANK], kept[NORI_MAX_RANK];
    int n = nori__content(c, 0, data);
    int64_t first, count;
    if (n < 0 || nori__in_rank(c, 0) != 1) {
        return;
    }
    nori__slice_axis(n, start, end, step, &first, &count);
    for (int64_t i = 0; i < count; i++) {
        kept[i] = data[first + i * step];
    }
    nori__content_set(c, 0, (int)count, kept);
}

nori_status nori__infer_slice(nori__infer *c)
{
    int64_t starts[NORI_MAX_RANK], ends[NORI_MAX_RANK], axes[NORI_MAX_RANK], steps[NORI_MAX_RANK];
    nori_status bad[4];
    int n = nori__infer_ints(c, 1, "starts", starts, NORI_MAX_RANK, &bad[0]);
    int n_ends = nori__infer_ints(c, 2, "ends", ends, NORI_MAX_RANK, &bad[1]);
    int n_axes = nori__infer_ints(c, 3, "axes", axes, NORI_MAX_RANK, &bad[2]);
    int n_steps = nori__infer_ints(c, 4, NULL, steps, NORI_MAX_RANK, &bad[3]);
    for (int i = 0; i < 4; i++) {
        NORI__TRY(bad[i]);
    }
    int rank = nori__in_rank(c, 0);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 0) {
        return NORI_OK;
    }
    if (n == NORI__INTS_ABSENT || n_ends == NORI__INTS_ABSENT) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "starts or ends are missing");
    }
    int lists = n >= 0 ? n : n_ends >= 0 ? n_ends : n_axes;
    if ((n >= 0 && n != lists) || (n_ends >= 0 && n_ends != lists) ||
        (n_axes >= 0 && n_axes != lists && lists >= 0) ||
        (n_steps >= 0 && n_steps != lists && lists >= 0)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "starts, ends, axes, steps have %d, %d, %d, %d entries", n, n_ends,
                          n_axes, n_steps);
    }
    nori__dim dims[NORI_MAX_RANK];
    if (n_axes == NORI__INTS_ABSENT && lists >= 0) {
        n_axes = lists;
        for (int i = 0; i < lists; i++) {
            axes[i] = i;
        }
    }
    if (n_axes < 0) {
        out_rank(c, rank);
        return NORI_OK;
    }
    NORI__TRY(nori__fix_axes(c->err, rank, axes, n_axes));
    memcpy(dims, c->in[0].dims, sizeof(dims));
    bool all = n >= 0 && n_ends >= 0 && n_steps != NORI__INTS_UNKNOWN;
    for (int i = 0; i < n_axes; i++) {
        int64_t step = n_steps >= 0 ? steps[i] : 1, first;
        nori__dim *d = &dims[axes[i]];
        if (n_steps >= 0 && step == 0) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "step %d is 0", i);
        }
        if (all && known(*d)) {
            nori__slice_axis(d->value, starts[i], ends[i], step, &first, &d->value);
        } else if (!(all && step == 1 && starts[i] == 0 && ends[i] >= INT32_MAX) &&
                   !(all && step == -1 && starts[i] == -1 && ends[i] <= INT32_MIN)) {
            *d = NORI__DIM_ANY; /* else the whole axis: the name stays */
        }
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), rank, dims);
    if (all && rank == 1 && n_axes == 1) {
        slice_content(c, starts[0], ends[0], n_steps >= 0 ? steps[0] : 1);
    } else if (all && n_axes == 0) {
        nori__content_pass(c, 0);
    }
    return NORI_OK;
}

nori_status nori__infer_transpose(nori__infer *c)
{
    size_t n = 0;
    const int64_t *perm = nori__attr_ints(c->node, "perm", &n);
    int rank = nori__in_rank(c, 0);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 0) {
        return NORI_OK;
    }
    if (perm && n != (size_t)rank) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "perm has %zu entries, input 0 has rank %d", n,
                          rank);
    }
    nori__dim dims[NORI_MAX_RANK];
    int64_t axes[NORI_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        axes[d] = perm ? perm[d] : rank - 1 - d;
    }
    NORI__TRY(nori__fix_axes(c->err, rank, axes, rank));
    for (int d = 0; d < rank; d++) {
        dims[d] = c->in[0].dims[axes[d]];
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), rank, dims);
    if (rank <= 1) {
        nori__content_pass(c, 0);
    }
    return NORI_OK;
}

nori_status nori__infer_tile(nori__infer *c)
{
    int64_t repeats[NORI_MAX_RANK];
    nori_status bad;
    int rank = nori__in_rank(c, 0);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 0) {
        return NORI_OK;
    }
    int n = nori__infer_ints(c, 1, NULL, repeats, NORI_MAX_RANK, &bad);
    if (c->node->version < 6) { /* tiles and axis, each of the data's own type */
        const nori_tensor *tiles = nori__has_in(c, 1) ? c->in[1].tensor : NULL;
        const nori_tensor *on = nori__has_in(c, 2) ? c->in[2].tensor : NULL;
        int axis;
        bad = NORI_OK;
        n = NORI__INTS_UNKNOWN;
        if (tiles && on && tiles->count == 1 && on->count == 1) {
            NORI__TRY(nori__fix_axis(c->err, nori__tensor_get_i64(on, 0), rank, &axis));
            for (int d = 0; d < rank; d++) {
                repeats[d] = d == axis ? nori__tensor_get_i64(tiles, 0) : 1;
            }
            n = rank;
        }
    }
    NORI__TRY(bad);
    if (n < 0) {
        out_rank(c, rank);
        return NORI_OK;
    }
    if (n != rank) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "repeats has %d entries, input 0 has rank %d",
                          n, rank);
    }
    nori__dim dims[NORI_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        dims[d] = c->in[0].dims[d];
        if (repeats[d] < 0) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "repeat %d is %lld", d,
                              (long long)repeats[d]);
        }
        if (known(dims[d])) {
            if (!nori__mul_dim(dims[d].value, repeats[d], &dims[d].value)) {
                return nori__fail(c->err, NORI_ERROR_LIMIT, "the result is too large");
            }
        } else if (repeats[d] != 1) {
            dims[d] = repeats[d] == 0 ? nori__dim_of(0) : NORI__DIM_ANY;
        }
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), rank, dims);
    return NORI_OK;
}
