/* ref_pad.c: Pad, Crop, CenterCropPad, DepthToSpace, SpaceToDepth, Trilu, ReverseSequence.
 *
 * Pad: negative pads crop first; what is left is then extended. reflect needs more data than it
 * adds, edge and wrap need any data at all: else an error, never made-up values. */
#include "providers/reference/ref_move.h"

/* Where element i of the padded axis comes from in the cropped one of size n; -1: nowhere. */
static int64_t source(const char *mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n) {
        return i;
    }
    switch (mode[0]) {
    case 'r':
        return i < 0 ? -i : 2 * (n - 1) - i;
    case 'e':
        return i < 0 ? 0 : n - 1;
    case 'w':
        return i < 0 ? n - 1 - (-i - 1) % n : i % n;
    default:
        return -1;
    }
}

static nori_status pad_axis(const nori_call *call, const char *mode, int axis, int64_t size,
                            int64_t low, int64_t high, int64_t step, int64_t *table)
{
    /* INT64_MIN has no negative: it cuts as much as can be said. */
    int64_t cut_low = low < 0 ? -(low + (low == INT64_MIN)) : 0;
    int64_t cut_high = high < 0 ? -(high + (high == INT64_MIN)) : 0;
    if (cut_low > size || cut_high > size - cut_low) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "pads %lld and %lld cut more than axis %d of size %lld has",
                          (long long)low, (long long)high, axis, (long long)size);
    }
    int64_t n = size - cut_low - cut_high, add_low = low > 0 ? low : 0,
            add_high = high > 0 ? high : 0;
    int64_t least = mode[0] == 'r'   ? (add_low > add_high ? add_low : add_high) + 1
                    : mode[0] == 'c' ? 0
                                     : 1;
    if ((add_low > 0 || add_high > 0) && n < least) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "%s padding of %lld and %lld needs %lld elements on axis %d, there are "
                          "%lld",
                          mode, (long long)low, (long long)high, (long long)least, axis,
                          (long long)n);
    }
    for (int64_t i = 0; i < add_low + n + add_high; i++) {
        int64_t from = source(mode, i - add_low, n);
        table[i] = from < 0 ? -1 : (from + cut_low) * step;
    }
    return NORI_OK;
}

nori_status nori__ref_Pad(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *in = call->in[0], *value = nori__ref_in(call, 2);
    nori_tensor *out = call->out[0];
    int64_t pads[2 * NORI_MAX_RANK], axes[NORI_MAX_RANK], low[NORI_MAX_RANK] = {0};
    int64_t high[NORI_MAX_RANK] = {0}, step[NORI_MAX_RANK];
    const char *mode = nori__attr_s(call->node, "mode", "constant");
    nori_status bad[2];
    int n = nori__call_ints(call, 1, call->node->version == 1 ? "paddings" : "pads", pads,
                            2 * NORI_MAX_RANK, &bad[0]);
    int n_axes = nori__call_ints(call, 3, NULL, axes, NORI_MAX_RANK, &bad[1]);
    NORI__TRY(bad[0]);
    NORI__TRY(bad[1]);
    if (!nori__same(mode, "constant") && !nori__same(mode, "reflect") &&
        !nori__same(mode, "edge") && !nori__same(mode, "wrap")) {
        return nori__fail(call->err, NORI_ERROR_MODEL,
                          "mode is %.40s, expected constant, reflect, edge or wrap", mode);
    }
    for (int d = 0; n_axes < 0 && d < in->rank; d++) {
        axes[d] = d;
    }
    n_axes = n_axes < 0 ? in->rank : n_axes;
    NORI__TRY(nori__fix_axes(call->err, in->rank, axes, n_axes));
    if (n != 2 * n_axes || (value && (value->count != 1 || value->type != in->type))) {
        return nori__fail(
            call->err, NORI_ERROR_DATA,
            "pads has %d entries for %d axes, or constant_value is not one element of "
            "data's type",
            n, n_axes);
    }
    if (!out) {
        return NORI_OK;
    }
    size_t entries = 1, bytes;
    for (int d = 0; d < out->rank; d++) {
        if (!nori__add_size(entries, (size_t)out->dims[d], &entries)) {
            return nori__no_memory(call->err);
        }
    }
    for (int i = 0; i < n_axes; i++) {
        low[axes[i]] = pads[i];
        high[axes[i]] = pads[i + n_axes];
    }
    int64_t *memory = nori__mul_size(entries, sizeof(*memory), &bytes)
                          ? nori__alloc(call->allocator, bytes)
                          : NULL;
    if (!memory) {
        return nori__no_memory(call->err);
    }
    const int64_t *table[NORI_MAX_RANK];
    int64_t *at = memory;
    nori_status status = NORI_OK;
    nori__ref_strides(in->rank, in->dims, step);
    for (int d = 0; status == NORI_OK && d < in->rank; d++) {
        table[d] = at;
        status = pad_axis(call, mode, d, in->dims[d], low[d], high[d], step[d], at);
        at += out->dims[d];
    }
    nori_tensor old;
    float old_value = nori__attr_f(call->node, "value", 0);
    if (status == NORI_OK && mode[0] == 'c') {
        if (!value && old_value != 0 && in->type != NORI_STRING) { /* attribute of opset 2 */
            for (int64_t i = 0; i < out->count && i < 1; i++) {
                nori__tensor_set_f64(out, 0, (double)old_value);
            }
            nori__tensor_init(&old, (nori_type)out->type, 0, NULL, out->data);
            value = out->count > 0 ? &old : NULL;
        }
        status = nori__move_fill(value, 0, out, call->err);
    }
    if (status == NORI_OK) {
        status = nori__move_table(in, out, table, call->err);
    }
    nori__release(call->allocator, memory, bytes);
    return status;
}

nori_status nori__ref_Crop(nori_call *call)
{
    NORI__TRY(nori__need_rank(call, 0, 4));
    size_t n;
    const int64_t *border = nori__attr_ints(call->node, "border", &n);
    nori__move m;
    if (!call->out[0] || call->out[0]->count == 0 || !border || n != 4) {
        return NORI_OK;
    }
    nori__move_like(&m, 4, call->out[0]->dims, call->in[0]->dims, call->out[0]->dims);
    m.from = border[1] * m.from_step[2] + border[0];
    return nori__move_spread(call, &m, call->in[0], call->out[0]);
}

nori_status nori__ref_CenterCropPad(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__ref_need(call, 1));
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    nori__move m;
    size_t n_axes = 0;
    if (!nori__attr_ints(call->node, "axes", &n_axes)) {
        n_axes = in->rank;
    }
    if ((size_t)call->in[1]->count != n_axes) { /* inference saw it only where it knew the content */
        return nori__fail(call->err, NORI_ERROR_DATA, "shape has %lld entries for %zu axes",
                          (long long)call->in[1]->count, n_axes);
    }
    if (!out || out->rank != in->rank) {
        return NORI_OK;
    }
    NORI__TRY(nori__move_fill(NULL, 0, out, call->err));
    if (out->count == 0 || in->count == 0) {
        return NORI_OK;
    }
    nori__move_like(&m, in->rank, out->dims, in->dims, out->dims);
    for (int d = 0; d < in->rank; d++) {
        int64_t have = in->dims[d], want = out->dims[d];
        m.dims[d] = have < want ? have : want;
        m.from += have > want ? (have - want) / 2 * m.from_step[d] : 0;
        m.to += want > have ? (want - have) / 2 * m.to_step[d] : 0;
    }
    return nori__move_spread(call, &m, in, out);
}

/* Loops (n, c, h, i, w, j): channel c and place (i, j) within the block; deep is the tensor with
 * the blocks in its channels, wide the one with them in space. */
static nori_status move_blocks(nori_call *call, bool to_space, bool channel_first)
{
    NORI__TRY(nori__need_rank(call, 0, 4));
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    if (!out || out->count == 0) {
        return NORI_OK;
    }
    const int64_t *deep = to_space ? in->dims : out->dims, *wide = to_space ? out->dims : in->dims;
    int64_t b = nori__attr_i(call->node, "blocksize", 1), c = wide[1], h = deep[2], w = deep[3];
    nori__move m = {.rank = 6, .dims = {deep[0], c, h, b, w, b}};
    int64_t plane = h * w;
    const int64_t d_step[6] = {deep[1] * plane,
                               channel_first ? b * b * plane : plane,
                               w,
                               (channel_first ? b : b * c) * plane,
                               1,
                               (channel_first ? 1 : c) * plane};
    const int64_t w_step[6] = {c * b * b * plane, b * b * plane, b * b * w, b * w, b, 1};
    memcpy(m.from_step, to_space ? d_step : w_step, sizeof(d_step));
    memcpy(m.to_step, to_space ? w_step : d_step, sizeof(d_step));
    return nori__move_spread(call, &m, in, out);
}

nori_status nori__ref_DepthToSpace(nori_call *call)
{
    return move_blocks(call, true, nori__same(nori__attr_s(call->node, "mode", "DCR"), "CRD"));
}

nori_status nori__ref_SpaceToDepth(nori_call *call)
{
    return move_blocks(call, false, nori__same(nori__attr_s(call->node, "mode", "DCR"), "CRD"));
}

nori_status nori__ref_Trilu(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *in = call->in[0], *given = nori__ref_in(call, 1);
    nori_tensor *out = call->out[0];
    bool upper = nori__attr_i(call->node, "upper", 1) != 0;
    if (in->rank < 2 || (given && (given->count != 1 || given->type != NORI_INT64))) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "needs rank 2 or more (found %d) and k as one int64", in->rank);
    }
    if (!out || out->count == 0) {
        return NORI_OK;
    }
    int64_t rows = in->dims[in->rank - 2], columns = in->dims[in->rank - 1];
    int64_t k = given ? nori__tensor_get_i64(given, 0) : 0;
    k = k > columns ? columns : k < -rows ? -rows : k;
    NORI__TRY(nori__move_fill(NULL, 0, out, call->err));
    for (int64_t r = 0; r < in->count / columns; r++) {
        int64_t cut = r % rows + k + (upper ? 0 : 1); /* first column on the upper side */
        cut = cut < 0 ? 0 : cut > columns ? columns : cut;
        int64_t first = r * columns + (upper ? cut : 0), n = upper ? columns - cut : cut;
        NORI__TRY(nori__move_run(in, first, out, first, n, call->err));
    }
    return NORI_OK;
}

nori_status nori__ref_ReverseSequence(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__need_rank(call, 1, 1));
    const nori_tensor *in = call->in[0], *lengths = call->in[1];
    nori_tensor *out = call->out[0];
    int time, batch;
    NORI__TRY(nori__need_indices(call, 1));
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "time_axis", 0), in->rank, &time));
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "batch_axis", 1), in->rank, &batch));
    if (time == batch || lengths->count != in->dims[batch]) {
        return nori__fail(
            call->err, NORI_ERROR_DATA,
            "%lld sequence lengths for a batch of %lld, or time and batch share an axis",
            (long long)lengths->count, (long long)in->dims[batch]);
    }
    if (!out || out->count == 0) {
        return NORI_OK;
    }
    nori__move m;
    nori__move_like(&m, in->rank, in->dims, in->dims, in->dims);
    NORI__TRY(nori__move_whole(in, out, call->err));
    int64_t t_step = m.from_step[time];
    m.dims[batch] = 1;
    for (int64_t b = 0; b < in->dims[batch]; b++) {
        int64_t n = nori__tensor_get_i64(lengths, b);
        if (n < 0 || n > in->dims[time]) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "sequence length %lld is outside of an axis of size %lld",
                              (long long)n, (long long)in->dims[time]);
        }
        m.dims[time] = n;
        m.to = b * m.to_step[batch];
        m.from = m.to + (n > 0 ? n - 1 : 0) * t_step;
        m.from_step[time] = -t_step;
        NORI__TRY(nori__move_spread(call, &m, in, out));
    }
    return NORI_OK;
}
