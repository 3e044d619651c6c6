/* infer_shape.c: shapes of the shape family that are made or looked at: Constant, Shape, Size,
 * Expand, EyeLike, Range. Those that only regroup dims are in infer_reshape.c.
 *
 * Named dimensions and integer content known in part go through here, so that "batch" stays
 * "batch" across Shape -> Gather -> Concat -> Reshape. Empty tensors and rank 0 are legal. */
#include <math.h>

#include "ops/constant.h"
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
    bool many;
    const nori__attr *a = nori__constant_value(c->node, &many);
    if (!a) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          many ? "more than one attribute says the constant's value"
                               : "no attribute says the constant's value");
    }
    nori__dim n = nori__dim_of((int64_t)a->count);
    switch (a->kind) {
    case NORI__ATTR_INT:
        return const_ints(c, a, 0);
    case NORI__ATTR_INTS:
        return const_ints(c, a, 1);
    case NORI__ATTR_FLOAT:
        nori__out_set(c, 0, NORI_FLOAT, 0, NULL);
        return NORI_OK;
    case NORI__ATTR_FLOATS:
        nori__out_set(c, 0, NORI_FLOAT, 1, &n);
        return NORI_OK;
    case NORI__ATTR_STRING:
        nori__out_set(c, 0, NORI_STRING, 0, NULL);
        return NORI_OK;
    case NORI__ATTR_STRINGS:
        nori__out_set(c, 0, NORI_STRING, 1, &n);
        return NORI_OK;
    default:
        const_tensor(c, a->v.tensor);
        return NORI_OK;
    }
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
    NORI__TRY(nori__shape_check(c, 0));
    int rank = nori__shape_input(c, 0, dims);
    if (rank < 0) {
        nori__out_elem(c, 0, elem);
        return NORI_OK;
    }
    for (int d = 0; d < rank; d++) {
        if (dims[d].value < 0 && nori__whole(c, 0)) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "axis %d has the negative size %lld", d,
                              (long long)dims[d].value);
        }
        dims[d].value = dims[d].value < 0 ? -1 : dims[d].value;
    }
    nori__out_set(c, 0, elem, rank, dims);
    if (rank <= 1 && (rank == 0 || (dims[0].value >= 0 && dims[0].value <= NORI_MAX_RANK)) &&
        value && (elem == NORI_INT64 || elem == NORI_INT32)) {
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

/* ---- Expand, EyeLike, Range ---- */

nori_status nori__infer_expand(nori__infer *c)
{
    nori__shape want = {.kind = NORI_KIND_TENSOR, .data_count = -1};
    NORI__TRY(nori__shape_check(c, 1));
    want.rank = (int8_t)nori__shape_input(c, 1, want.dims);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (want.rank < 0 || nori__in_rank(c, 0) < 0) {
        return NORI_OK;
    }
    for (int d = 0; d < want.rank; d++) {
        if (want.dims[d].value < 0 && nori__whole(c, 1)) {
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
        uint64_t span =
            delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
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
    if (nori__whole(c, 0) && nori__whole(c, 1) && nori__whole(c, 2)) {
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
