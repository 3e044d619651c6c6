/* ref_shape.c: the shape family. Views copy their bytes unless the planner made both sides one.
 * Bits move untouched (NaN payloads, -0); empty tensors and rank 0 are legal everywhere. Range
 * computes start + i * delta in the type itself (half types in float); integers wrap. */
#include "ops/constant.h"
#include "providers/reference/ref_move.h"
#include "platform/platform.h"

nori_status nori__ref_Identity(nori_call *call)
{
    if (call->n_in < 1 || !call->in[0]) {
        return nori__ref_need(call, 0);
    }
    if (call->in[0]->kind != NORI_KIND_TENSOR) {
        return call->exec->set(call, 0, (nori_tensor *)(uintptr_t)call->in[0]);
    }
    return call->out[0] ? nori__move_whole(call->in[0], call->out[0], call->err) : NORI_OK;
}

/* Flatten, Squeeze, Unsqueeze, and Reshape after its check: inference has shaped everything. */
nori_status nori__ref_view(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    if (!call->out[0]) {
        return NORI_OK;
    }
    if (call->in[0]->count != call->out[0]->count) {
        return nori__fail(call->err, NORI_ERROR_DATA, "%lld elements cannot become %lld",
                          (long long)call->in[0]->count, (long long)call->out[0]->count);
    }
    return nori__move_whole(call->in[0], call->out[0], call->err);
}

/* A single unknown entry of the shape follows from the sizes before a run: what the run then brings must
 * be that. */
nori_status nori__ref_Reshape(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *shape = nori__ref_in(call, 1), *out = nori__ref_out(call, 0), *in = call->in[0];
    bool keep_zero = nori__attr_i(call->node, "allowzero", 0) != 0;
    for (int64_t d = 0; shape && out && d < shape->count; d++) {
        int64_t want = nori__tensor_get_i64(shape, d);
        int64_t size = want == 0 && !keep_zero ? (d < in->rank ? in->dims[d] : -1)
                       : want == -1 && d < out->rank ? out->dims[d] : want;
        if (shape->count != out->rank || size != out->dims[d]) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "entry %lld of the shape is %lld, the %lld elements of the input need %lld",
                              (long long)d, (long long)want, (long long)in->count,
                              (long long)(d < out->rank ? out->dims[d] : 0));
        }
    }
    return nori__ref_view(call);
}

/* splitmix64: small, and the same on every machine. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

nori_status nori__ref_Dropout(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *in = call->in[0], *training = nori__ref_in(call, 2);
    const nori_tensor *given = nori__ref_in(call, 1);
    nori_tensor *out = nori__ref_out(call, 0), *mask = nori__ref_out(call, 1);
    double ratio = given && given->count == 1 ? nori__tensor_get_f64(given, 0) : 0.5;
    bool drops = training && training->count == 1 && nori__tensor_get_i64(training, 0) != 0;
    if (!drops || ratio == 0) {
        if (out) {
            NORI__TRY(nori__move_whole(in, out, call->err));
        }
        for (int64_t i = 0; mask && i < mask->count; i++) {
            nori__tensor_set_i64(mask, i, 1);
        }
        return NORI_OK;
    }
    if (!(ratio > 0 && ratio < 1)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "ratio is %g, expected 0 up to below 1",
                          ratio);
    }
    uint64_t state = nori__attr_find(call->node, "seed")
                         ? (uint64_t)nori__attr_i(call->node, "seed", 0)
                         : nori__now_ns() ^ (uint64_t)(uintptr_t)call;
    double scale = 1 / (1 - ratio);
    for (int64_t i = 0; i < in->count; i++) {
        bool keep = (double)(next_random(&state) >> 11) * 0x1p-53 >= ratio;
        if (mask) {
            nori__tensor_set_i64(mask, i, keep);
        }
        if (out) {
            nori__tensor_set_f64(out, i, keep ? nori__tensor_get_f64(in, i) * scale : 0);
        }
    }
    return NORI_OK;
}

nori_status nori__ref_Shape(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    nori_tensor *out = call->out[0];
    int64_t rank = call->in[0]->rank, first, count;
    nori__slice_axis(rank, nori__attr_i(call->node, "start", 0),
                     nori__attr_i(call->node, "end", rank), 1, &first, &count);
    for (int64_t i = 0; out && i < count; i++) {
        ((int64_t *)out->data)[i] = call->in[0]->dims[first + i];
    }
    return NORI_OK;
}

nori_status nori__ref_Size(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    if (call->out[0]) {
        *(int64_t *)call->out[0]->data = call->in[0]->count;
    }
    return NORI_OK;
}

/* ---- constants ---- */

static nori_status densify(nori_call *call, const nori_tensor *sparse, nori_tensor *out)
{
    const nori_tensor *values = nori_tensor_item(sparse, 0), *at = nori_tensor_item(sparse, 1);
    if (!values || !at || at->type != NORI_INT64 || at->rank < 1 || at->rank > 2 ||
        at->dims[0] != values->count || values->type != out->type ||
        (at->rank == 2 && at->dims[1] != out->rank)) {
        return nori__fail(call->err, NORI_ERROR_MODEL, "the sparse tensor's indices do not fit");
    }
    NORI__TRY(nori__move_fill(NULL, 0, out, call->err));
    for (int64_t i = 0; i < values->count; i++) {
        int64_t index = 0, size = at->rank == 1 ? out->count : 1, v;
        for (int d = 0; d < (at->rank == 1 ? 1 : out->rank); d++) {
            size = at->rank == 1 ? out->count : out->dims[d];
            v = ((const int64_t *)at->data)[at->rank == 1 ? i : i * out->rank + d];
            if (v < 0 || v >= size) {
                return nori__fail(call->err, NORI_ERROR_MODEL,
                                  "index %lld of the sparse tensor is outside of size %lld",
                                  (long long)v, (long long)size);
            }
            index = index * size + v;
        }
        NORI__TRY(nori__move_run(values, i, out, index, 1, call->err));
    }
    return NORI_OK;
}

nori_status nori__ref_Constant(nori_call *call)
{
    nori_tensor *out = call->out[0];
    bool many;
    const nori__attr *a = nori__constant_value(call->node, &many);
    if (!out || !a) {
        return NORI_OK; /* inference has refused what has no value */
    }
    switch (a->kind) {
    case NORI__ATTR_INT:
        *(int64_t *)out->data = a->v.i;
        return NORI_OK;
    case NORI__ATTR_FLOAT:
        *(float *)out->data = a->v.f;
        return NORI_OK;
    case NORI__ATTR_INTS:
    case NORI__ATTR_FLOATS:
        if (a->count > 0) {
            memcpy(out->data, a->kind == NORI__ATTR_INTS ? (const void *)a->v.ints : a->v.floats,
                   out->bytes);
        }
        return NORI_OK;
    case NORI__ATTR_STRING:
        return nori__tensor_set_string(out, 0, a->v.s, a->count, call->err);
    case NORI__ATTR_STRINGS:
        for (size_t i = 0; i < a->count; i++) {
            NORI__TRY(nori__tensor_set_string(out, (int64_t)i, a->v.strings[i].p, a->v.strings[i].n,
                                              call->err));
        }
        return NORI_OK;
    default:
        return a->v.tensor->kind == NORI_KIND_SPARSE ? densify(call, a->v.tensor, out)
                                                     : nori__move_whole(a->v.tensor, out, call->err);
    }
}

nori_status nori__ref_ConstantOfShape(nori_call *call)
{
    const nori_tensor *value = nori__attr_tensor(call->node, "value");
    return call->out[0] ? nori__move_fill(value, 0, call->out[0], call->err) : NORI_OK;
}

/* ---- Expand, EyeLike, Range ---- */

nori_status nori__ref_Expand(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__ref_need(call, 1));
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    /* A size that inference took for one not known. */
    for (int64_t d = 0; d < call->in[1]->count; d++) {
        if (nori__tensor_get_i64(call->in[1], d) < 0) {
            return nori__fail(call->err, NORI_ERROR_DATA, "entry %lld of the shape is %lld", (long long)d,
                              (long long)nori__tensor_get_i64(call->in[1], d));
        }
    }
    if (!out) {
        return NORI_OK;
    }
    nori__move m = {.rank = out->rank};
    int64_t step = 1;
    nori__ref_strides(out->rank, out->dims, m.to_step);
    for (int d = out->rank - 1, k = in->rank - 1; d >= 0; d--, k--) {
        m.dims[d] = out->dims[d];
        m.from_step[d] = k >= 0 && in->dims[k] != 1 ? step : 0;
        step *= k >= 0 ? in->dims[k] : 1;
    }
    return nori__move_spread(call, &m, in, out);
}

nori_status nori__ref_EyeLike(nori_call *call)
{
    NORI__TRY(nori__need_rank(call, 0, 2));
    nori_tensor *out = call->out[0];
    if (!out) {
        return NORI_OK;
    }
    if (out->type == NORI_STRING) {
        return nori__fail(call->err, NORI_ERROR_MODEL, "dtype cannot be string");
    }
    int64_t k = nori__attr_i(call->node, "k", 0);
    NORI__TRY(nori__move_fill(NULL, 0, out, call->err));
    for (int64_t i = 0; i < out->dims[0]; i++) {
        int64_t j;
        if (nori__add_i64(i, k, &j) && j >= 0 && j < out->dims[1]) {
            nori__tensor_set_f64(out, i * out->dims[1] + j, 1);
        }
    }
    return NORI_OK;
}

nori_status nori__ref_Range(nori_call *call)
{
    for (uint32_t i = 0; i < 3; i++) {
        NORI__TRY(nori__ref_need(call, i));
        if (call->in[i]->count != 1 || call->in[i]->type != call->in[0]->type) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "start, limit and delta must be one element each, of one type");
        }
    }
    nori_tensor *out = call->out[0];
    if (!out) {
        return NORI_OK;
    }
    double start = nori__tensor_get_f64(call->in[0], 0), by = nori__tensor_get_f64(call->in[2], 0);
    int64_t first = nori__tensor_get_i64(call->in[0], 0);
    int64_t delta = nori__tensor_get_i64(call->in[2], 0);
    switch (out->type) {
    case NORI_FLOAT:
        for (int64_t i = 0; i < out->count; i++) {
            ((float *)out->data)[i] = (float)start + (float)i * (float)by;
        }
        return NORI_OK;
    case NORI_DOUBLE:
        for (int64_t i = 0; i < out->count; i++) {
            ((double *)out->data)[i] = start + (double)i * by;
        }
        return NORI_OK;
    case NORI_FLOAT16:
    case NORI_BFLOAT16:
        for (int64_t i = 0; i < out->count; i++) {
            nori__tensor_set_f64(out, i, (double)((float)start + (float)i * (float)by));
        }
        return NORI_OK;
    case NORI_STRING:
        return nori__ref_bad_type(call, 0);
    default:
        for (int64_t i = 0; i < out->count; i++) {
            nori__tensor_set_i64(out, i,
                                 (int64_t)((uint64_t)first + (uint64_t)i * (uint64_t)delta));
        }
        return NORI_OK;
    }
}
