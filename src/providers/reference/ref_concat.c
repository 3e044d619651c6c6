/* ref_concat.c: Concat, Split, Slice, Transpose, Tile. Bits move untouched; empty inputs take no
 * part; rank 0 has no axis and is refused where one is needed. */
#include "providers/reference/ref_move.h"

nori_status nori__ref_Concat(nori_call *call)
{
    nori_tensor *out = call->out[0];
    int axis;
    if (!out) {
        return NORI_OK;
    }
    int64_t fallback = call->node->version < 4;
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", fallback), out->rank, &axis));
    int64_t step = 1, at = 0;
    for (int d = axis + 1; d < out->rank; d++) {
        step *= out->dims[d];
    }
    for (uint32_t i = 0; i < call->n_in; i++) {
        NORI__TRY(nori__need_rank(call, i, out->rank));
        const nori_tensor *in = call->in[i];
        if (in->type != out->type) {
            return nori__ref_bad_type(call, i);
        }
        nori__move m;
        nori__move_like(&m, out->rank, in->dims, in->dims, out->dims);
        m.to = at * step;
        NORI__TRY(nori__move_spread(call, &m, in, out));
        at += in->dims[axis];
    }
    return NORI_OK;
}

nori_status nori__ref_Split(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *in = call->in[0], *sizes = nori__ref_in(call, 1);
    size_t n_list = 0;
    const int64_t *list = sizes ? NULL : nori__attr_ints(call->node, "split", &n_list);
    int axis;
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", 0), in->rank, &axis));
    int64_t parts = nori__attr_i(call->node, "num_outputs", call->n_out);
    int64_t step = 1, at = 0;
    for (int d = axis + 1; d < in->rank; d++) {
        step *= in->dims[d];
    }
    for (uint32_t i = 0; i < call->n_out; i++) {
        nori_tensor *out = call->out[i];
        int64_t size = sizes && i < sizes->count ? nori__tensor_get_i64(sizes, i)
                       : list && i < n_list      ? list[i]
                                                 : nori__split_size(in->dims[axis], parts, i);
        if (size < 0 || size > in->dims[axis] - at || (out && out->dims[axis] != size)) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "part %u of size %lld does not fit axis %d of size %lld", i,
                              (long long)size, axis, (long long)in->dims[axis]);
        }
        if (out) {
            nori__move m;
            nori__move_like(&m, in->rank, out->dims, in->dims, out->dims);
            m.from = at * step;
            NORI__TRY(nori__move_spread(call, &m, in, out));
        }
        at += size;
    }
    return NORI_OK;
}

nori_status nori__ref_Slice(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    int64_t starts[NORI_MAX_RANK], ends[NORI_MAX_RANK], axes[NORI_MAX_RANK], steps[NORI_MAX_RANK];
    nori_status bad[4];
    int n = nori__call_ints(call, 1, "starts", starts, NORI_MAX_RANK, &bad[0]);
    nori__call_ints(call, 2, "ends", ends, NORI_MAX_RANK, &bad[1]);
    int n_axes = nori__call_ints(call, 3, "axes", axes, NORI_MAX_RANK, &bad[2]);
    int n_steps = nori__call_ints(call, 4, NULL, steps, NORI_MAX_RANK, &bad[3]);
    for (int i = 0; i < 4; i++) {
        NORI__TRY(bad[i]);
    }
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    for (int i = 0; n_axes < 0 && i < n; i++) {
        axes[i] = i;
    }
    NORI__TRY(nori__fix_axes(call->err, in->rank, axes, n));
    if (!out || out->count == 0) {
        return NORI_OK;
    }
    nori__move m;
    nori__move_like(&m, in->rank, out->dims, in->dims, out->dims);
    for (int i = 0; i < n; i++) {
        int64_t step = n_steps >= 0 ? steps[i] : 1, first, count;
        int d = (int)axes[i];
        nori__slice_axis(in->dims[d], starts[i], ends[i], step, &first, &count);
        m.from += first * m.from_step[d];
        /* One element: the step is never taken, and may be too large to multiply. */
        m.from_step[d] = count > 1 ? m.from_step[d] * step : 0;
    }
    return nori__move_spread(call, &m, in, out);
}

nori_status nori__ref_Transpose(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    size_t n;
    const int64_t *perm = nori__attr_ints(call->node, "perm", &n);
    int64_t axes[NORI_MAX_RANK];
    if (perm && n != in->rank) {
        return nori__fail(call->err, NORI_ERROR_DATA, "perm has %zu entries, input 0 has rank %d",
                          n, in->rank);
    }
    for (int d = 0; d < in->rank; d++) {
        axes[d] = perm ? perm[d] : in->rank - 1 - d;
    }
    NORI__TRY(nori__fix_axes(call->err, in->rank, axes, in->rank));
    if (!out) {
        return NORI_OK;
    }
    nori__move m;
    int64_t step[NORI_MAX_RANK];
    nori__move_like(&m, in->rank, out->dims, in->dims, out->dims);
    nori__ref_strides(in->rank, in->dims, step);
    for (int d = 0; d < in->rank; d++) {
        m.from_step[d] = step[axes[d]];
    }
    return nori__move_spread(call, &m, in, out);
}

nori_status nori__ref_Tile(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    if (!out || out->count == 0) {
        return NORI_OK;
    }
    if (out->rank != in->rank) {
        return nori__fail(call->err, NORI_ERROR_DATA, "repeats do not fit rank %d", in->rank);
    }
    nori__move m = {.rank = 2 * in->rank};
    int64_t from[NORI_MAX_RANK], to[NORI_MAX_RANK];
    nori__ref_strides(in->rank, in->dims, from);
    nori__ref_strides(out->rank, out->dims, to);
    for (int d = 0; d < in->rank; d++) {
        m.dims[2 * d] = out->dims[d] / in->dims[d]; /* the repeats: a turn each, then the axis */
        m.to_step[2 * d] = to[d] * in->dims[d];
        m.dims[2 * d + 1] = in->dims[d];
        m.from_step[2 * d + 1] = from[d];
        m.to_step[2 * d + 1] = to[d];
    }
    return nori__move_spread(call, &m, in, out);
}
