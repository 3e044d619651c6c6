/* infer_shape.c: shapes of the shape family (Reshape, Squeeze, Shape, Expand, Range ...).
 *
 * Named dimensions and integer content known in part go through here, so that "batch" stays
 * "batch" across Shape -> Gather -> Concat -> Reshape. Empty tensors and rank 0 are legal. */
#include <math.h>

#include "ops/content.h"


/* ---- Constant, ConstantOfShape ---- */

static nori_status const_ints(nori__infer *c, const nori__attr *a, int rank)
{
    nori__dim n = nori__dim_of(rank ? (int64_t)a->count : 1);
    nori__out_set(c, 0, NORI_INT64, rank, &n);
    if (n.value > NORI_MAX_RANK) {
        return NORI_OK;
    }
    nori__dim data[NORI_MAX_RANK];
    for (int64_t i = 0; i < n.value; i++) {
        int64_t v = rank ? a->v.ints[i] : a->v.i;
        data[i] = nori__dim_of(v < 0 ? -1 : v);
    }
    nori__content_set(c, 0, (int)n.value, data);
    return NORI_OK;
}

static void const_tensor(nori__infer *c, const nori_tensor *t)
{
    nori__dim dims[NORI_MAX_RANK];
    const nori_tensor *typed = t;
    if (t->kind == NORI_KIND_SPARSE) {
        typed = ((nori_tensor *const *)t->data)[0];
    }
    for (int d = 0; d < t->rank; d++) {
        dims[d] = nori__dim_of(t->dims[d]);
    }
    nori__out_set(c, 0, (nori_type)typed->type, t->rank, dims);
    if (t->kind != NORI_KIND_TENSOR || t->count > NORI_MAX_RANK || t->rank > 1 ||
        (t->type != NORI_INT64 && t->type != NORI_INT32)) {
        return;
    }
    for (int64_t i = 0; i < t->count; i++) {
        int64_t v = nori__tensor_get_i64(t, i);
        dims[i] = nori__dim_of(v < 0 ? -1 : v);
    }
    nori__content_set(c, 0, (int)t->count, dims);
}

nori_status nori__infer_constant(nori__infer *c)
{
    for (uint32_t i = 0; i < c->node->attr_count; i++) {
        const nori__attr *a = &c->node->attrs[i];
        nori__dim n = nori__dim_of((int64_t)a->count);
        if (nori__same(a->name, "value") || nori__same(a->name, "sparse_value")) {
            if ((a->kind == NORI__ATTR_TENSOR || a->kind == NORI__ATTR_SPARSE) && a->v.tensor) {
                const_tensor(c, a->v.tensor);
            }
        } else if (nori__same(a->name, "value_int") && a->kind == NORI__ATTR_INT) {
            return const_ints(c, a, 0);
        } else if (nori__same(a->name, "value_ints") && a->kind == NORI__ATTR_INTS) {
            return const_ints(c, a, 1);
        } else if (nori__same(a->name, "value_float") && a->kind == NORI__ATTR_FLOAT) {
            nori__out_set(c, 0, NORI_FLOAT, 0, NULL);
        } else if (nori__same(a->name, "value_floats") && a->kind == NORI__ATTR_FLOATS) {
            nori__out_set(c, 0, NORI_FLOAT, 1, &n);
        } else if (nori__same(a->name, "value_string") && a->kind == NORI__ATTR_STRING) {
            nori__out_set(c, 0, NORI_STRING, 0, NULL);
        } else if (nori__same(a->name, "value_strings") && a->kind == NORI__ATTR_STRINGS) {
            nori__out_set(c, 0, NORI_STRING, 1, &n);
        }
    }
    return NORI_OK;
}

/* Dims from the content of a shape input; rank alone when only the count of entries is known. */
static int shape_from_input(const nori__infer *c, uint32_t i, nori__dim *dims)
{
    int n = nori__in_data(c, i, dims, NORI_MAX_RANK);
    if (n < 0 && nori__in_rank(c, i) == 1 && c->in[i].dims[0].value >= 0 &&
        c->in[i].dims[0].value <= NORI_MAX_RANK) {
        n = (int)c->in[i].dims[0].value;
        for (int d = 0; d < n; d++) {
            dims[d] = NORI__DIM_ANY;
        }
    }
    return n;
}

static bool whole(const nori__infer *c, uint32_t i)
{
    return nori__has_in(c, i) && c->in[i].tensor != NULL;
}

static nori_status check_shape(const nori__infer *c, uint32_t i)
{
    const nori_tensor *t = nori__has_in(c, i) ? c->in[i].tensor : NULL;
    if (!t) {
        return NORI_OK;
    }
    if (t->rank > 1 || (t->type != NORI_INT64 && t->type != NORI_INT32)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the shape must be a list of int64, found rank %d of %s", t->rank,
                          nori_type_name((nori_type)t->type));
    }
    if (t->count > NORI_MAX_RANK) {
        return nori__fail(c->err, NORI_ERROR_LIMIT, "rank %lld, at most %d is taken",
                          (long long)t->count, NORI_MAX_RANK);
    }
    return NORI_OK;
}

nori_status nori__infer_constant_of_shape(nori__infer *c)
{
    const nori_tensor *value = nori__attr_tensor(c->node, "value");
    nori_type elem = value ? (nori_type)value->type : NORI_FLOAT;
    if (value && value->count != 1) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "value has %lld elements, expected one",
                          (long long)value->count);
    }
    nori__dim dims[NORI_MAX_RANK];
    NORI__TRY(check_shape(c, 0));
    int rank = shape_from_input(c, 0, dims);
    if (rank < 0) {
        nori__out_elem(c, 0, elem);
        return NORI_OK;
    }
    for (int d = 0; d < rank; d++) {
        if (dims[d].value < 0 && whole(c, 0)) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "axis %d has the negative size %lld", d,
                              (long long)dims[d].value);
        }
        dims[d].value = dims[d].value < 0 ? -1 : dims[d].value;
    }
    nori__out_set(c, 0, elem, rank, dims);
    if (rank <= 1 && (rank == 0 || (dims[0].value >= 0 && dims[0].value <= NORI_MAX_RANK)) && value &&
        (elem == NORI_INT64 || elem == NORI_INT32)) {
        int64_t v = nori__tensor_get_i64(value, 0);
        int n = rank ? (int)dims[0].value : 1;
        for (int d = 0; d < n; d++) {
            dims[d] = nori__dim_of(v < 0 ? -1 : v);
        }
        nori__content_set(c, 0, n, dims);
    }
    return NORI_OK;
}

/* ---- Identity, Dropout, Shape, Size ---- */

nori_status nori__infer_identity(nori__infer *c)
{
    nori__out_like(c, 0, 0);
    nori__content_pass(c, 0);
    return NORI_OK;
}

nori_status nori__infer_dropout(nori__infer *c)
{
    nori__out_like(c, 0, 0);
    nori__out_like(c, 1, 0);
    if (c->node->output_count > 1 && c->node->version >= 10) {
        c->out[1].kind = NORI_KIND_TENSOR;
        c->out[1].elem = NORI_BOOL;
    }
    return NORI_OK;
}

nori_status nori__infer_shape(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    if (rank < 0) {
        nori__dim any = NORI__DIM_ANY;
        nori__out_set(c, 0, NORI_INT64, 1, &any);
        return NORI_OK;
    }
    int64_t start = nori__attr_i(c->node, "start", 0), end = nori__attr_i(c->node, "end", rank);
    int64_t first, count;
    nori__slice_axis(rank, start, end, 1, &first, &count);
    nori__dim n = nori__dim_of(count);
    nori__out_set(c, 0, NORI_INT64, 1, &n);
    nori__content_set(c, 0, (int)count, c->in[0].dims + first);
    return NORI_OK;
}

nori_status nori__infer_size(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    nori__dim total = nori__dim_of(1);
    nori__out_set(c, 0, NORI_INT64, 0, NULL);
    const char *name = NULL;
    int names = 0;
    for (int d = 0; d < rank; d++) {
        nori__dim v = c->in[0].dims[d];
        if (v.value < 0) {
            name = v.name;
            names++;
        } else if (!nori__mul_dim(total.value, v.value, &total.value)) {
            return NORI_OK;
        }
    }
    if (rank >= 0 && names == 0) {
        nori__content_set(c, 0, 1, &total);
    } else if (rank >= 0 && names == 1 && total.value == 1) {
        nori__content_set(c, 0, 1, &(nori__dim){-1, name});
    }
    return NORI_OK;
}

/* ---- Reshape and its kin ---- */

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
static nori_status same_count(nori__infer *c, const nori__shape *in, const nori__dim *dims, int rank)
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
        NORI__TRY(check_shape(c, 1));
        rank = shape_from_input(c, 1, dims);
        sure = whole(c, 1);
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
                                  "entry allowed", d, (long long)dims[d].value);
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

/* ---- Expand, EyeLike, Range ---- */

nori_status nori__infer_expand(nori__infer *c)
{
    nori__shape want = {.kind = NORI_KIND_TENSOR, .data_count = -1};
    NORI__TRY(check_shape(c, 1));
    want.rank = (int8_t)shape_from_input(c, 1, want.dims);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (want.rank < 0 || nori__in_rank(c, 0) < 0) {
        return NORI_OK;
    }
    for (int d = 0; d < want.rank; d++) {
        if (want.dims[d].value < 0 && whole(c, 1)) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "entry %d of the shape is %lld", d,
                              (long long)want.dims[d].value);
        }
    }
    return nori__broadcast(c, &c->in[0], &want, &c->out[0]);
}

nori_status nori__infer_eye_like(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    if (rank >= 0 && rank != 2) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 0 has rank %d, expected 2", rank);
    }
    nori__out_like(c, 0, 0);
    int64_t type = nori__attr_i(c->node, "dtype", nori__in_elem(c, 0));
    if (type < 0 || type >= NORI_TYPE_COUNT) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "element type %lld does not exist",
                          (long long)type);
    }
    nori__out_elem(c, 0, (nori_type)type);
    return NORI_OK;
}

static nori_status range_count(nori__infer *c, int64_t *count)
{
    const nori_tensor *t[3] = {c->in[0].tensor, c->in[1].tensor, c->in[2].tensor};
    for (int i = 0; i < 3; i++) {
        if (t[i]->count != 1 || t[i]->type != t[0]->type) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "input %d has %lld elements of %s, expected one of %s", i,
                              (long long)t[i]->count, nori_type_name((nori_type)t[i]->type),
                              nori_type_name((nori_type)t[0]->type));
        }
    }
    if (nori__type_is_float((nori_type)t[0]->type)) {
        double n = ceil((nori__tensor_get_f64(t[1], 0) - nori__tensor_get_f64(t[0], 0)) /
                        nori__tensor_get_f64(t[2], 0));
        if (!(n < 0x1p62)) { /* delta 0, NaN, infinities */
            return nori__fail(c->err, NORI_ERROR_MODEL, "the range has no end");
        }
        *count = n > 0 ? (int64_t)n : 0;
        return NORI_OK;
    }
    int64_t start = nori__tensor_get_i64(t[0], 0), limit = nori__tensor_get_i64(t[1], 0);
    int64_t delta = nori__tensor_get_i64(t[2], 0);
    if (delta == 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "the range has no end: delta is 0");
    }
    *count = 0;
    if (delta > 0 ? limit > start : limit < start) {
        uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start
                                  : (uint64_t)start - (uint64_t)limit;
        uint64_t by = delta > 0 ? (uint64_t)delta : (uint64_t)0 - (uint64_t)delta;
        uint64_t n = (span - 1) / by + 1;
        if (n > INT64_MAX) {
            return nori__fail(c->err, NORI_ERROR_LIMIT, "the range is larger than memory can be");
        }
        *count = (int64_t)n;
    }
    return NORI_OK;
}

nori_status nori__infer_range(nori__infer *c)
{
    nori__dim n = NORI__DIM_ANY, s[NORI_MAX_RANK], l[NORI_MAX_RANK], d[NORI_MAX_RANK];
    if (c->node->input_count < 3) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "%u inputs, expected 3", c->node->input_count);
    }
    nori_type elem = nori__in_elem(c, 0);
    if (whole(c, 0) && whole(c, 1) && whole(c, 2)) {
        NORI__TRY(range_count(c, &n.value));
    } else if (nori__content(c, 0, s) == 1 && nori__content(c, 1, l) == 1 &&
               nori__content(c, 2, d) == 1 && s[0].value == 0 && d[0].value == 1) {
        n = l[0]; /* 0, 1, ... "length" - 1 */
    }
    nori__out_set(c, 0, elem ? elem : nori__in_elem(c, 1), 1, &n);
    if (n.value > 0 && n.value <= NORI_MAX_RANK && nori__content(c, 0, s) == 1 &&
        nori__content(c, 2, d) == 1 && s[0].value >= 0 && d[0].value >= 0 &&
        s[0].value < INT32_MAX && d[0].value < INT32_MAX) {
        for (int i = 0; i < n.value; i++) {
            l[i] = nori__dim_of(s[0].value + i * d[0].value);
        }
        nori__content_set(c, 0, (int)n.value, l);
    }
    return NORI_OK;
}
