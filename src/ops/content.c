/* content.c: small integer content while inferring and running. */
#include "ops/content.h"

static bool is_index(nori_type type)
{
    return type == NORI_INT64 || type == NORI_INT32;
}

static int read_ints(const nori_tensor *t, uint32_t input, int64_t *out, int max, nori_error *err,
                     nori_status *bad)
{
    if (t->kind != NORI_KIND_TENSOR || !is_index((nori_type)t->type) || t->count > max) {
        *bad = nori__fail(err, NORI_ERROR_MODEL,
                          "input %u holds %lld values of type %s, expected at most %d of int64",
                          input, (long long)t->count, nori_type_name((nori_type)t->type), max);
        return NORI__INTS_ABSENT;
    }
    for (int64_t k = 0; k < t->count; k++) {
        out[k] = nori__tensor_get_i64(t, k);
    }
    return (int)t->count;
}

static int attr_ints(const nori__node *node, const char *attr, int64_t *out, int max,
                     nori_error *err, nori_status *bad)
{
    size_t n = 0;
    const int64_t *v = attr ? nori__attr_ints(node, attr, &n) : NULL;
    if (!v) {
        return NORI__INTS_ABSENT;
    }
    if (n > (size_t)max) {
        *bad = nori__fail(err, NORI_ERROR_MODEL, "attribute %s has %zu values, at most %d expected",
                          attr, n, max);
        return NORI__INTS_ABSENT;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = v[i];
    }
    return (int)n;
}

int nori__infer_ints(const nori__infer *c, uint32_t input, const char *attr, int64_t *out, int max,
                     nori_status *bad)
{
    *bad = NORI_OK;
    if (!nori__has_in(c, input)) {
        return attr_ints(c->node, attr, out, max, c->err, bad);
    }
    const nori__shape *s = &c->in[input];
    if (s->tensor) {
        return read_ints(s->tensor, input, out, max, c->err, bad);
    }
    if (s->data_count < 0 || s->data_count > max) {
        return NORI__INTS_UNKNOWN;
    }
    for (int i = 0; i < s->data_count; i++) {
        if (s->data[i].value < 0) {
            return NORI__INTS_UNKNOWN;
        }
        out[i] = s->data[i].value;
    }
    return s->data_count;
}

int nori__call_ints(const nori_call *call, uint32_t input, const char *attr, int64_t *out, int max,
                    nori_status *bad)
{
    *bad = NORI_OK;
    if (input < call->n_in && call->in[input]) {
        return read_ints(call->in[input], input, out, max, call->err, bad);
    }
    return attr_ints(call->node, attr, out, max, call->err, bad);
}

int nori__content(const nori__infer *c, uint32_t i, nori__dim *out)
{
    if (!nori__has_in(c, i) || !is_index((nori_type)c->in[i].elem)) {
        return -1;
    }
    int n = nori__in_data(c, i, out, NORI_MAX_RANK);
    for (int k = 0; k < n; k++) {
        if (out[k].value < 0) {
            out[k].value = -1;
        }
    }
    return n;
}

void nori__content_set(nori__infer *c, uint32_t i, int count, const nori__dim *data)
{
    if (i >= c->node->output_count || count < 0 || count > NORI_MAX_RANK) {
        return;
    }
    nori__shape *o = &c->out[i];
    if (o->kind != NORI_KIND_TENSOR || !is_index((nori_type)o->elem) || o->rank < 0 ||
        o->rank > 1 || (o->rank == 0 && count != 1)) {
        return;
    }
    o->data_count = count;
    for (int k = 0; k < count; k++) {
        o->data[k] = data[k];
    }
}

void nori__content_pass(nori__infer *c, uint32_t in)
{
    nori__dim data[NORI_MAX_RANK];
    int n = nori__content(c, in, data);
    nori__content_set(c, 0, n, data);
}

nori_status nori__fix_axes(nori_error *err, int rank, int64_t *axes, int count)
{
    uint32_t seen = 0;
    for (int i = 0; i < count; i++) {
        int axis;
        NORI__TRY(nori__fix_axis(err, axes[i], rank, &axis));
        if (seen >> axis & 1) {
            return nori__fail(err, NORI_ERROR_MODEL, "axis %d is named twice", axis);
        }
        seen |= (uint32_t)1 << axis;
        axes[i] = axis;
    }
    return NORI_OK;
}

void nori__slice_axis(int64_t dim, int64_t start, int64_t end, int64_t step, int64_t *first,
                      int64_t *count)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    *first = *count = 0;
    if (dim == 0) {
        return;
    }
    start = start < 0 ? start + dim : start;
    end = end < 0 ? end + dim : end;
    /* Unlike in Python, a start before the first element is the first one, whatever the step. */
    start = start < 0 ? 0 : start > high ? high : start;
    end = end < low ? low : end > high ? high : end;
    int64_t span = step > 0 ? end - start : start - end;
    uint64_t by = step > 0 ? (uint64_t)step : (uint64_t)0 - (uint64_t)step;
    *first = start;
    *count = span <= 0 ? 0 : (int64_t)(((uint64_t)span - 1) / by) + 1;
}

/* ---- shapes given as inputs ---- */

int nori__shape_input(const nori__infer *c, uint32_t i, nori__dim *dims)
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

bool nori__whole(const nori__infer *c, uint32_t i)
{
    return nori__has_in(c, i) && c->in[i].tensor != NULL;
}

nori_status nori__shape_check(const nori__infer *c, uint32_t i)
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
