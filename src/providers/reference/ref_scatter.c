/* ref_scatter.c: operators that place elements by index. Negative indices count from the end, an
 * index outside is an error DATA. Without a reduction the last of several updates of one place
 * stays; with one they are applied in order. min and max: NaN stays NaN; integers wrap; for
 * booleans add and max are or, mul and min are and. */
#include "providers/reference/ref_move.h"

typedef enum how { SET, ADD, MUL, MIN, MAX } how;

static nori_status read_how(const nori_call *call, how *out)
{
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *text = nori__attr_s(call->node, "reduction", "none");
    for (int i = 0; i < (int)NORI__COUNT(names); i++) {
        if (nori__same(text, names[i])) {
            *out = (how)i;
            return NORI_OK;
        }
    }
    return nori__fail(call->err, NORI_ERROR_MODEL,
                      "reduction is %.40s, expected none, add, mul, min or max", text);
}

/* to[at + i] = to[at + i] (how) from[first + i] */
#define COMBINE(TYPE, name, stored, value, wrap)                                                   \
    case TYPE: {                                                                                   \
        const stored *f = (const stored *)from->data + first;                                      \
        stored *t = (stored *)to->data + at;                                                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            value a = nori__load_##name(&t[i]), b = nori__load_##name(&f[i]), v = b;               \
            switch (h) {                                                                           \
            case ADD:                                                                              \
                v = (value)((wrap)a + (wrap)b);                                                    \
                break;                                                                             \
            case MUL:                                                                              \
                v = (value)((wrap)a * (wrap)b);                                                    \
                break;                                                                             \
            case MIN:                                                                              \
                v = b != b || b < a ? b : a;                                                       \
                break;                                                                             \
            case MAX:                                                                              \
                v = b != b || b > a ? b : a;                                                       \
                break;                                                                             \
            default:                                                                               \
                break;                                                                             \
            }                                                                                      \
            nori__store_##name(&t[i], v);                                                          \
        }                                                                                          \
        return NORI_OK;                                                                            \
    }

static nori_status place(const nori_call *call, how h, const nori_tensor *from, int64_t first,
                         nori_tensor *to, int64_t at, int64_t n)
{
    if (h == SET) {
        return nori__move_run(from, first, to, at, n, call->err);
    }
    switch (to->type) {
        NORI__REF_NUMBERS(COMBINE)
    case NORI_BOOL:
        for (int64_t i = 0; i < n; i++) {
            uint8_t *t = (uint8_t *)to->data + at + i;
            uint8_t f = ((const uint8_t *)from->data)[first + i];
            *t = h == ADD || h == MAX ? *t | f : *t & f;
        }
        return NORI_OK;
    default:
        return nori__fail(call->err, NORI_ERROR_DATA, "no reduction is defined for %s",
                          nori_type_name((nori_type)to->type));
    }
}

static nori_status check_three(const nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__need_indices(call, 1));
    NORI__TRY(nori__ref_need(call, 2));
    return call->in[2]->type == call->in[0]->type ? NORI_OK : nori__ref_bad_type(call, 2);
}

nori_status nori__ref_ScatterElements(nori_call *call)
{
    NORI__TRY(check_three(call));
    const nori_tensor *in = call->in[0], *at = call->in[1], *up = call->in[2];
    nori_tensor *out = call->out[0];
    int axis;
    how h;
    NORI__TRY(read_how(call, &h));
    NORI__TRY(nori__need_rank(call, 1, in->rank));
    NORI__TRY(nori__need_rank(call, 2, in->rank));
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", 0), in->rank, &axis));
    for (int d = 0; d < in->rank; d++) {
        if (at->dims[d] != up->dims[d] || (d != axis && at->dims[d] > in->dims[d])) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "axis %d: data has size %lld, indices %lld, updates %lld", d,
                              (long long)in->dims[d], (long long)at->dims[d],
                              (long long)up->dims[d]);
        }
    }
    if (!out) {
        return NORI_OK;
    }
    NORI__TRY(nori__move_whole(in, out, call->err));
    int64_t step[NORI_MAX_RANK], where[NORI_MAX_RANK] = {0}, base = 0, index;
    nori__ref_strides(in->rank, in->dims, step);
    for (int64_t i = 0; i < at->count; i++) {
        if (!nori__index(at, i, in->dims[axis], &index)) {
            return nori__bad_index(call, 1, i, axis, in->dims[axis]);
        }
        NORI__TRY(place(call, h, up, i, out, base + index * step[axis], 1));
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

nori_status nori__ref_ScatterND(nori_call *call)
{
    NORI__TRY(check_three(call));
    const nori_tensor *in = call->in[0], *at = call->in[1], *up = call->in[2];
    nori_tensor *out = call->out[0];
    how h;
    NORI__TRY(read_how(call, &h));
    int64_t k = at->rank > 0 ? at->dims[at->rank - 1] : -1, rows = 1, inner = 1;
    bool fits = k >= 0 && k <= in->rank && up->rank == at->rank - 1 + in->rank - k;
    for (int d = 0; fits && d < up->rank; d++) {
        int64_t want = d < at->rank - 1 ? at->dims[d] : in->dims[d - (at->rank - 1) + k];
        fits = up->dims[d] == want;
    }
    if (!fits) {
        return nori__fail(
            call->err, NORI_ERROR_DATA,
            "indices of rank %d ending in %lld and updates of rank %d do not fit data of "
            "rank %d",
            at->rank, (long long)k, up->rank, in->rank);
    }
    if (!out) {
        return NORI_OK;
    }
    NORI__TRY(nori__move_whole(in, out, call->err));
    if (up->count == 0) {
        return NORI_OK;
    }
    for (int d = 0; d < at->rank - 1; d++) {
        rows *= at->dims[d];
    }
    for (int d = (int)k; d < in->rank; d++) {
        inner *= in->dims[d];
    }
    for (int64_t r = 0, i = 0; r < rows; r++) {
        int64_t to = 0, index;
        for (int64_t d = 0; d < k; d++, i++) {
            if (!nori__index(at, i, in->dims[d], &index)) {
                return nori__bad_index(call, 1, i, (int)d, in->dims[d]);
            }
            to = to * in->dims[d] + index;
        }
        NORI__TRY(place(call, h, up, r * inner, out, to * inner, inner));
    }
    return NORI_OK;
}

nori_status nori__ref_TensorScatter(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *past = call->in[0], *write = nori__ref_in(call, 2);
    NORI__TRY(nori__need_rank(call, 1, past->rank));
    const nori_tensor *up = call->in[1];
    nori_tensor *out = call->out[0];
    bool circular = nori__same(nori__attr_s(call->node, "mode", "linear"), "circular");
    int axis;
    NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", -2), past->rank, &axis));
    bool fits = axis > 0 && up->type == past->type && up->dims[axis] <= past->dims[axis];
    for (int d = 0; d < past->rank; d++) {
        fits = fits && (d == axis || up->dims[d] == past->dims[d]);
    }
    if (!fits || (write && (write->type != NORI_INT64 || write->count != past->dims[0]))) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "the update or the write indices do not fit the cache");
    }
    if (!out) {
        return NORI_OK;
    }
    NORI__TRY(nori__move_whole(past, out, call->err));
    if (up->count == 0) {
        return NORI_OK;
    }
    nori__ref_split p = nori__ref_split_at(past, axis), u = nori__ref_split_at(up, axis);
    for (int64_t o = 0; o < p.outer; o++) {
        int64_t b = o / (p.outer / past->dims[0]);
        int64_t first = write ? ((const int64_t *)write->data)[b] : 0;
        if (circular) {
            first = first % p.length + (first % p.length < 0 ? p.length : 0);
        } else if (first < 0 || first > p.length - u.length) {
            return nori__bad_index(call, 2, b, axis, p.length - u.length + 1);
        }
        int64_t n = first + u.length > p.length ? p.length - first : u.length;
        int64_t from = o * u.length * u.inner, to = o * p.length * p.inner;
        NORI__TRY(nori__move_run(up, from, out, to + first * p.inner, n * p.inner, call->err));
        NORI__TRY(
            nori__move_run(up, from + n * p.inner, out, to, (u.length - n) * p.inner, call->err));
    }
    return NORI_OK;
}
