/* ref_sequence.c: sequences and optionals. A group's items never change once it is made, so groups
 * share them; a tensor that goes into a group is copied, since its memory may be the planner's or
 * the caller's. Positions count from the end when negative; outside is an error DATA. */
#include "providers/reference/ref_control.h"

static nori_status need_sequence(const nori_call *call, uint32_t i)
{
    const nori_tensor *t = nori__ref_in(call, i);
    if (!t || t->kind != NORI_KIND_SEQUENCE) {
        return nori__fail(call->err, NORI_ERROR_DATA, "input %u of %s must be a sequence", i,
                          call->node->op_type);
    }
    return NORI_OK;
}

static nori_tensor *const *items_of(const nori_tensor *t)
{
    return (nori_tensor *const *)t->data;
}

/* Position from input i, in [0, last]; where the input is absent, `otherwise`. */
static nori_status position(const nori_call *call, uint32_t i, int64_t size, int64_t last,
                            int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    if (nori__ref_in(call, i)) {
        NORI__TRY(nori__need_indices(call, i));
        if (call->in[i]->count != 1) {
            return nori__fail(call->err, NORI_ERROR_DATA, "the position must be one integer");
        }
        int64_t v = nori__tensor_get_i64(call->in[i], 0);
        *out = v < 0 ? v + size : v;
    }
    if (*out < 0 || *out > last) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "position %lld is outside of a sequence of %lld", (long long)*out,
                          (long long)size);
    }
    return NORI_OK;
}

/* Makes output o a group of kind over items, which are given up to it. */
static nori_status give_group(nori_call *call, uint32_t o, nori_kind kind,
                              nori_tensor *const *items, size_t count)
{
    nori_tensor *group = NULL;
    NORI__TRY(nori__tensor_group(call->allocator, kind, items, count, &group, call->err));
    nori_status status = call->exec->set(call, o, group);
    nori_tensor_free(group);
    return status;
}

nori_status nori__ref_SequenceConstruct(nori_call *call)
{
    nori__vec items;
    nori_status status = NORI_OK;
    nori__vec_init(&items, call->allocator);
    for (uint32_t i = 0; status == NORI_OK && i < call->n_in; i++) {
        nori_tensor *copy = NULL;
        status = nori__ref_need(call, i);
        if (status == NORI_OK && call->in[i]->type != call->in[0]->type) {
            status = nori__ref_bad_type(call, i);
        }
        if (status == NORI_OK) {
            status = nori__tensor_copy(call->allocator, call->in[i], &copy, call->err);
        }
        if (status == NORI_OK && !nori__vec_push(&items, copy)) {
            nori_tensor_free(copy);
            status = nori__no_memory(call->err);
        }
    }
    if (status == NORI_OK) {
        status =
            give_group(call, 0, NORI_KIND_SEQUENCE, (nori_tensor *const *)items.items, items.count);
    }
    for (size_t i = 0; i < items.count; i++) {
        nori_tensor_free(items.items[i]);
    }
    nori__vec_free(&items);
    return status;
}

nori_status nori__ref_SequenceEmpty(nori_call *call)
{
    return give_group(call, 0, NORI_KIND_SEQUENCE, NULL, 0);
}

/* The sequence with `item` put at `at` (insert), or the one there left out (item NULL). */
static nori_status edit(nori_call *call, int64_t at, nori_tensor *item)
{
    const nori_tensor *seq = call->in[0];
    size_t n = (size_t)seq->count + (item ? 1 : 0), bytes;
    if (!nori__mul_size(n + 1, sizeof(nori_tensor *), &bytes)) {
        return nori__no_memory(call->err);
    }
    nori_tensor **items = nori__alloc(call->allocator, bytes);
    if (!items) {
        return nori__no_memory(call->err);
    }
    size_t to = 0;
    for (int64_t i = 0; i <= seq->count; i++) {
        if (i == at && item) {
            items[to++] = item;
        }
        if (i < seq->count && (i != at || item)) {
            items[to++] = items_of(seq)[i];
        }
    }
    nori_status status = give_group(call, 0, NORI_KIND_SEQUENCE, items, to);
    nori__release(call->allocator, items, bytes);
    return status;
}

nori_status nori__ref_SequenceInsert(nori_call *call)
{
    int64_t at;
    nori_tensor *copy = NULL;
    NORI__TRY(need_sequence(call, 0));
    NORI__TRY(nori__ref_need(call, 1));
    const nori_tensor *seq = call->in[0];
    NORI__TRY(position(call, 2, seq->count, seq->count, seq->count, &at));
    if (seq->count > 0 && items_of(seq)[0]->type != call->in[1]->type) {
        return nori__ref_bad_type(call, 1);
    }
    NORI__TRY(nori__tensor_copy(call->allocator, call->in[1], &copy, call->err));
    nori_status status = edit(call, at, copy);
    nori_tensor_free(copy);
    return status;
}

nori_status nori__ref_SequenceErase(nori_call *call)
{
    int64_t at;
    NORI__TRY(need_sequence(call, 0));
    int64_t n = call->in[0]->count;
    NORI__TRY(position(call, 1, n, n - 1, n - 1, &at));
    return edit(call, at, NULL);
}

nori_status nori__ref_SequenceAt(nori_call *call)
{
    int64_t at;
    NORI__TRY(need_sequence(call, 0));
    int64_t n = call->in[0]->count;
    NORI__TRY(position(call, 1, n, n - 1, -1, &at));
    return call->exec->set(call, 0, items_of(call->in[0])[at]);
}

nori_status nori__ref_SequenceLength(nori_call *call)
{
    nori_tensor *out = NULL;
    NORI__TRY(need_sequence(call, 0));
    NORI__TRY(call->exec->alloc(call, 0, NORI_INT64, 0, NULL, &out));
    *(int64_t *)out->data = call->in[0]->count;
    return NORI_OK;
}

/* ---- between tensors and sequences ---- */

/* One part of a split: size elements of an axis from `at` on; the axis may go if it is 1. */
static nori_status cut(nori_call *call, int axis, int64_t at, int64_t size, bool drop,
                       nori_tensor **out)
{
    const nori_tensor *in = call->in[0];
    int64_t dims[NORI_MAX_RANK], kept[NORI_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < in->rank; d++) {
        dims[d] = d == axis ? size : in->dims[d];
        if (d != axis || !drop) {
            kept[rank++] = dims[d];
        }
    }
    NORI__TRY(nori__tensor_new(call->allocator, (nori_type)in->type, rank, kept, out, call->err));
    if ((*out)->count == 0) {
        return NORI_OK;
    }
    nori__move m;
    nori__move_like(&m, in->rank, dims, in->dims, dims);
    m.from = at * m.from_step[axis];
    return nori__move_all(&m, in, *out, call->err);
}

static nori_status split_parts(nori_call *call, int axis, nori__vec *parts)
{
    const nori_tensor *in = call->in[0], *split = nori__ref_in(call, 1);
    int64_t length = in->dims[axis], at = 0;
    bool drop = !split && nori__attr_i(call->node, "keepdims", 1) == 0;
    bool listed = split && split->rank == 1;
    int64_t each = split && !listed ? nori__tensor_get_i64(split, 0) : 1;
    if (each < 1) {
        return nori__fail(call->err, NORI_ERROR_DATA, "split is %lld", (long long)each);
    }
    for (int64_t i = 0; listed ? i < split->count : at < length; i++) {
        int64_t size = listed ? nori__tensor_get_i64(split, i) : each;
        size = !listed && size > length - at ? length - at : size;
        if (size < 0 || size > length - at) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "part %lld of size %lld does not fit axis %d of size %lld",
                              (long long)i, (long long)size, axis, (long long)length);
        }
        nori_tensor *part = NULL;
        nori_status status = cut(call, axis, at, size, drop, &part);
        if (status != NORI_OK || !nori__vec_push(parts, part)) {
            nori_tensor_free(part);
            return status != NORI_OK ? status : nori__no_memory(call->err);
        }
        at += size;
    }
    if (at != length) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "the parts sum up to %lld, axis %d has size %lld", (long long)at, axis,
                          (long long)length);
    }
    return NORI_OK;
}

nori_status nori__ref_SplitToSequence(nori_call *call)
{
    int axis;
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", 0), call->in[0]->rank, &axis));
    if (nori__ref_in(call, 1)) {
        NORI__TRY(nori__need_indices(call, 1));
        if (call->in[1]->rank > 1) {
            return nori__need_rank(call, 1, 1);
        }
    }
    nori__vec parts;
    nori__vec_init(&parts, call->allocator);
    nori_status status = split_parts(call, axis, &parts);
    if (status == NORI_OK) {
        status =
            give_group(call, 0, NORI_KIND_SEQUENCE, (nori_tensor *const *)parts.items, parts.count);
    }
    for (size_t i = 0; i < parts.count; i++) {
        nori_tensor_free(parts.items[i]);
    }
    nori__vec_free(&parts);
    return status;
}

nori_status nori__ref_ConcatFromSequence(nori_call *call)
{
    NORI__TRY(need_sequence(call, 0));
    const nori_tensor *seq = call->in[0];
    bool stack = nori__attr_i(call->node, "new_axis", 0) != 0;
    int axis;
    if (seq->count == 0) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "nothing can be joined: the sequence is empty");
    }
    const nori_tensor *first = items_of(seq)[0];
    int rank = first->rank + (stack ? 1 : 0);
    if (first->kind != NORI_KIND_TENSOR || rank > NORI_MAX_RANK) {
        return nori__fail(call->err, NORI_ERROR_DATA, "items must be tensors, of rank %d at most",
                          NORI_MAX_RANK - 1);
    }
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", 0), rank, &axis));
    int64_t dims[NORI_MAX_RANK], inner = 1, outer = 1, total = 0;
    for (int d = 0, from = 0; d < rank; d++) {
        dims[d] = stack && d == axis ? 1 : first->dims[from++];
    }
    for (int64_t i = 0; i < seq->count; i++) {
        const nori_tensor *t = items_of(seq)[i];
        bool same = t->kind == NORI_KIND_TENSOR && t->type == first->type && t->rank == first->rank;
        for (int d = 0; same && d < t->rank; d++) {
            same = t->dims[d] == first->dims[d] || (!stack && d == axis);
        }
        if (!same || !nori__add_i64(total, stack ? 1 : t->dims[axis], &total)) {
            return nori__fail(call->err, NORI_ERROR_DATA, "item %lld does not fit the first",
                              (long long)i);
        }
    }
    dims[axis] = total;
    nori_tensor *out = NULL;
    NORI__TRY(call->exec->alloc(call, 0, (nori_type)first->type, rank, dims, &out));
    if (out->count == 0) {
        return NORI_OK;
    }
    for (int d = 0; d < rank; d++) {
        inner *= d > axis ? dims[d] : 1;
        outer *= d < axis ? dims[d] : 1;
    }
    for (int64_t i = 0, at = 0; i < seq->count; i++) {
        const nori_tensor *t = items_of(seq)[i];
        int64_t n = (stack ? 1 : t->dims[axis]) * inner;
        nori__move m = {.rank = 2,
                        .dims = {outer, n},
                        .from_step = {n, 1},
                        .to_step = {total * inner, 1},
                        .to = at};
        NORI__TRY(nori__move_all(&m, t, out, call->err));
        at += n;
    }
    return NORI_OK;
}

/* ---- SequenceMap ---- */

static nori_status map_all(nori__body_runs *b)
{
    nori_call *call = b->call;
    int64_t n = call->in[0]->count;
    for (uint32_t i = 0; i < call->n_in; i++) {
        if (!call->in[i] || (call->in[i]->kind == NORI_KIND_SEQUENCE && call->in[i]->count != n)) {
            return nori__fail(
                call->err, NORI_ERROR_DATA,
                "input %u is missing or a sequence of another length than the first's "
                "%lld",
                i, (long long)n);
        }
    }
    for (int64_t k = 0; k < n; k++) {
        for (uint32_t i = 0; i < call->n_in; i++) {
            const nori_tensor *t = call->in[i];
            b->in[i] = t->kind == NORI_KIND_SEQUENCE ? items_of(t)[k] : t;
        }
        NORI__TRY(nori__body_run(b));
        NORI__TRY(nori__body_push(b));
    }
    for (uint32_t o = 0; o < call->n_out; o++) {
        const nori__vec *items = &b->stacks[o].items;
        NORI__TRY(give_group(call, o, NORI_KIND_SEQUENCE, (nori_tensor *const *)items->items,
                             items->count));
    }
    return NORI_OK;
}

nori_status nori__ref_SequenceMap(nori_call *call)
{
    const nori__graph *g = nori__attr_graph(call->node, "body");
    NORI__TRY(need_sequence(call, 0));
    if (!g || g->input_count != call->n_in || g->output_count < call->n_out) {
        return nori__fail(call->err, NORI_ERROR_MODEL,
                          "the body's inputs or outputs do not fit the node's");
    }
    nori__body_runs b;
    nori_status status = nori__body_open(&b, call, g, 0);
    if (status == NORI_OK) {
        status = map_all(&b);
    }
    nori__body_close(&b);
    return status;
}

/* ---- optionals ---- */

nori_status nori__ref_Optional(nori_call *call)
{
    const nori_tensor *in = nori__ref_in(call, 0);
    nori_tensor *copy = NULL;
    if (!in) {
        return give_group(call, 0, NORI_KIND_OPTIONAL, NULL, 0);
    }
    NORI__TRY(nori__tensor_copy(call->allocator, in, &copy, call->err));
    nori_status status = give_group(call, 0, NORI_KIND_OPTIONAL, &copy, 1);
    nori_tensor_free(copy);
    return status;
}

nori_status nori__ref_OptionalHasElement(nori_call *call)
{
    const nori_tensor *in = nori__ref_in(call, 0);
    nori_tensor *out = NULL;
    NORI__TRY(call->exec->alloc(call, 0, NORI_BOOL, 0, NULL, &out));
    *(uint8_t *)out->data = in && (in->kind != NORI_KIND_OPTIONAL || in->count > 0);
    return NORI_OK;
}

nori_status nori__ref_OptionalGetElement(nori_call *call)
{
    const nori_tensor *in = nori__ref_in(call, 0);
    if (!in || (in->kind == NORI_KIND_OPTIONAL && in->count == 0)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "the optional is empty");
    }
    const nori_tensor *item = in->kind == NORI_KIND_OPTIONAL ? items_of(in)[0] : in;
    return call->exec->set(call, 0, (nori_tensor *)(uintptr_t)item);
}
