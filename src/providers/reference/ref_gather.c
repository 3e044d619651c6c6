/* ref_gather.c: operators that pick elements by index. Negative indices count from the end, an
 * index outside is an error DATA (OneHot alone ignores it, as its definition says). Bits move
 * untouched; empty tensors give empty results. */
#include "providers/reference/ref_move.h"

nori_status nori__ref_Gather(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__need_indices(call, 1));
    const nori_tensor *in = call->in[0], *at = call->in[1];
    nori_tensor *out = call->out[0];
    int axis;
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", 0), in->rank, &axis));
    int64_t size = in->dims[axis], index;
    for (int64_t i = 0; i < at->count; i++) {
        if (!nori__index(at, i, size, &index)) {
            return nori__bad_index(call, 1, i, axis, size);
        }
    }
    if (!out || out->count == 0) {
        return NORI_OK;
    }
    nori__ref_split s = nori__ref_split_at(in, axis);
    for (int64_t o = 0, to = 0; o < s.outer; o++) {
        for (int64_t i = 0; i < at->count; i++, to += s.inner) {
            nori__index(at, i, size, &index);
            NORI__TRY(
                nori__move_run(in, (o * size + index) * s.inner, out, to, s.inner, call->err));
        }
    }
    return NORI_OK;
}

nori_status nori__ref_GatherElements(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__need_indices(call, 1));
    const nori_tensor *in = call->in[0], *at = call->in[1];
    nori_tensor *out = call->out[0];
    int axis;
    NORI__TRY(nori__need_rank(call, 1, in->rank));
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", 0), in->rank, &axis));
    for (int d = 0; d < in->rank; d++) {
        if (d != axis && at->dims[d] > in->dims[d]) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "axis %d: indices have size %lld, data only %lld", d,
                              (long long)at->dims[d], (long long)in->dims[d]);
        }
    }
    if (!out || out->count == 0) {
        return NORI_OK;
    }
    int64_t step[NORI_MAX_RANK], where[NORI_MAX_RANK] = {0}, base = 0, index;
    nori__ref_strides(in->rank, in->dims, step);
    for (int64_t i = 0; i < at->count; i++) {
        if (!nori__index(at, i, in->dims[axis], &index)) {
            return nori__bad_index(call, 1, i, axis, in->dims[axis]);
        }
        NORI__TRY(nori__move_run(in, base + index * step[axis], out, i, 1, call->err));
        for (int d = in->rank - 1; d >= 0; d--) {
            int64_t by = d == axis ? 0 : step[d];
            base += by;
            if (++where[d] < at->dims[d]) {
                break;
            }
            base -= by * at->dims[d];
            where[d] = 0;
        }
    }
    return NORI_OK;
}

nori_status nori__ref_GatherND(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__need_indices(call, 1));
    const nori_tensor *in = call->in[0], *at = call->in[1];
    nori_tensor *out = call->out[0];
    int64_t batch = nori__attr_i(call->node, "batch_dims", 0), batches = 1, per_batch = 1,
            inner = 1;
    int64_t k = at->rank > 0 ? at->dims[at->rank - 1] : 0;
    if (at->rank < 1 || batch < 0 || batch >= at->rank || k < 1 || k > in->rank - batch) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "indices of rank %d ending in %lld with batch_dims %lld do not fit data "
                          "of rank %d",
                          at->rank, (long long)k, (long long)batch, in->rank);
    }
    for (int d = 0; d < batch; d++) {
        if (in->dims[d] != at->dims[d]) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "batch axis %d: data has size %lld, indices %lld", d,
                              (long long)in->dims[d], (long long)at->dims[d]);
        }
        batches *= in->dims[d];
    }
    if (!out || out->count == 0) {
        return NORI_OK;
    }
    for (int d = (int)batch; d < at->rank - 1; d++) {
        per_batch *= at->dims[d];
    }
    for (int d = (int)(batch + k); d < in->rank; d++) {
        inner *= in->dims[d];
    }
    for (int64_t b = 0, i = 0, to = 0; b < batches; b++) {
        for (int64_t n = 0; n < per_batch; n++, to += inner) {
            int64_t first = b, index;
            for (int64_t j = 0; j < k; j++, i++) {
                int64_t size = in->dims[batch + j];
                if (!nori__index(at, i, size, &index)) {
                    return nori__bad_index(call, 1, i, (int)(batch + j), size);
                }
                first = first * size + index;
            }
            NORI__TRY(nori__move_run(in, first * inner, out, to, inner, call->err));
        }
    }
    return NORI_OK;
}

nori_status nori__ref_OneHot(nori_call *call)
{
    for (uint32_t i = 0; i < 3; i++) {
        NORI__TRY(nori__ref_need(call, i));
    }
    const nori_tensor *at = call->in[0], *values = call->in[2];
    nori_tensor *out = call->out[0];
    int axis;
    if (values->count != 2 || at->type == NORI_STRING) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "values has %lld elements, expected off and on",
                          (long long)values->count);
    }
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", -1), at->rank + 1, &axis));
    if (!out || out->count == 0) {
        return NORI_OK;
    }
    int64_t depth = out->dims[axis], inner = 1;
    for (int d = axis + 1; d < out->rank; d++) {
        inner *= out->dims[d];
    }
    NORI__TRY(nori__move_fill(values, 0, out, call->err));
    for (int64_t i = 0; i < at->count; i++) {
        int64_t index = nori__tensor_get_i64(at, i);
        index = index < 0 ? index + depth : index;
        if (index >= 0 && index < depth) {
            int64_t to = (i / inner * depth + index) * inner + i % inner;
            NORI__TRY(nori__move_run(values, 1, out, to, 1, call->err));
        }
    }
    return NORI_OK;
}

/* NaN is not zero, -0 is; a string is when it is empty. */
static bool is_zero(const nori_tensor *t, int64_t i)
{
    switch (t->type) {
    case NORI_STRING:
        return ((const nori_string *)t->data)[i].size == 0;
    case NORI_FLOAT:
        return ((const float *)t->data)[i] == 0;
    case NORI_BOOL:
    case NORI_UINT8:
        return ((const uint8_t *)t->data)[i] == 0;
    case NORI_COMPLEX64:
        return ((const float *)t->data)[2 * i] == 0 && ((const float *)t->data)[2 * i + 1] == 0;
    case NORI_COMPLEX128:
        return ((const double *)t->data)[2 * i] == 0 && ((const double *)t->data)[2 * i + 1] == 0;
    case NORI_INT64:
    case NORI_UINT64:
        return ((const int64_t *)t->data)[i] == 0;
    default:
        return nori__tensor_get_f64(t, i) == 0;
    }
}

nori_status nori__ref_NonZero(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *in = call->in[0];
    nori_tensor *out = NULL;
    int64_t count = 0, where[NORI_MAX_RANK] = {0};
    for (int64_t i = 0; i < in->count; i++) {
        count += !is_zero(in, i);
    }
    NORI__TRY(call->exec->alloc(call, 0, NORI_INT64, 2, (int64_t[]){in->rank, count}, &out));
    for (int64_t i = 0, n = 0; i < in->count && n < count; i++) {
        if (!is_zero(in, i)) {
            for (int d = 0; d < in->rank; d++) {
                ((int64_t *)out->data)[d * count + n] = where[d];
            }
            n++;
        }
        for (int d = in->rank - 1; d >= 0 && ++where[d] == in->dims[d]; d--) {
            where[d] = 0;
        }
    }
    return NORI_OK;
}

nori_status nori__ref_Compress(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__need_rank(call, 1, 1));
    const nori_tensor *in = call->in[0], *keep = call->in[1];
    nori_tensor *out = NULL;
    bool flat = !nori__attr_find(call->node, "axis");
    int axis = 0;
    if (keep->type != NORI_BOOL) {
        return nori__ref_bad_type(call, 1);
    }
    if (!flat) {
        NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", 0), in->rank, &axis));
    }
    nori__ref_split s = flat ? (nori__ref_split){1, in->count, 1} : nori__ref_split_at(in, axis);
    int64_t count = 0, dims[NORI_MAX_RANK];
    for (int64_t i = 0; i < keep->count; i++) {
        if (((const uint8_t *)keep->data)[i]) {
            if (i >= s.length) {
                return nori__fail(call->err, NORI_ERROR_DATA,
                                  "condition selects %lld of an axis of size %lld", (long long)i,
                                  (long long)s.length);
            }
            count++;
        }
    }
    for (int d = 0; d < in->rank; d++) {
        dims[d] = in->dims[d];
    }
    dims[flat ? 0 : axis] = count;
    NORI__TRY(call->exec->alloc(call, 0, (nori_type)in->type, flat ? 1 : in->rank, dims, &out));
    for (int64_t o = 0, to = 0; o < s.outer && out->count > 0; o++) {
        for (int64_t i = 0; i < keep->count; i++) {
            if (((const uint8_t *)keep->data)[i]) {
                NORI__TRY(
                    nori__move_run(in, (o * s.length + i) * s.inner, out, to, s.inner, call->err));
                to += s.inner;
            }
        }
    }
    return NORI_OK;
}
