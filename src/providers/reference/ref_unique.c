/* ref_unique.c: Unique. Order is by value, strings by their bytes, slices along an axis element
 * by element; NaNs are one value and come last, -0 equals 0 (the first that occurs is given). */
#include <math.h>

#include "providers/reference/ref_move.h"

static int order_f64(double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return isnan(a) - isnan(b);
    }
    return (a > b) - (a < b);
}

static int order(const nori_tensor *t, int64_t i, int64_t j)
{
    if (t->type == NORI_STRING) {
        const nori_string *a = (const nori_string *)t->data + i;
        const nori_string *b = (const nori_string *)t->data + j;
        size_t n = a->size < b->size ? a->size : b->size;
        int by = n > 0 ? memcmp(a->data, b->data, n) : 0;
        return by ? by : (a->size > b->size) - (a->size < b->size);
    }
    if (t->type == NORI_UINT64) {
        uint64_t a = ((const uint64_t *)t->data)[i], b = ((const uint64_t *)t->data)[j];
        return (a > b) - (a < b);
    }
    if (t->type == NORI_INT64) {
        int64_t a = ((const int64_t *)t->data)[i], b = ((const int64_t *)t->data)[j];
        return (a > b) - (a < b);
    }
    if (t->type == NORI_COMPLEX64) {
        const float *f = t->data;
        int by = order_f64((double)f[2 * i], (double)f[2 * j]);
        return by ? by : order_f64((double)f[2 * i + 1], (double)f[2 * j + 1]);
    }
    if (t->type == NORI_COMPLEX128) {
        const double *f = t->data;
        int by = order_f64(f[2 * i], f[2 * j]);
        return by ? by : order_f64(f[2 * i + 1], f[2 * j + 1]);
    }
    return order_f64(nori__tensor_get_f64(t, i), nori__tensor_get_f64(t, j));
}

static int order_slices(const nori_tensor *t, nori__ref_split s, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < s.outer; o++) {
        for (int64_t i = 0; i < s.inner; i++) {
            int by = order(t, (o * s.length + a) * s.inner + i, (o * s.length + b) * s.inner + i);
            if (by) {
                return by;
            }
        }
    }
    return 0;
}

/* Bottom-up merge sort of slice numbers: stable, so the first of equals comes first. Returns
 * which of the two arrays holds the result. */
static int64_t *sort_slices(const nori_tensor *t, nori__ref_split s, int64_t *a, int64_t *b)
{
    int64_t n = s.length;
    for (int64_t i = 0; i < n; i++) {
        a[i] = i;
    }
    for (int64_t w = 1; w < n; w *= 2) {
        for (int64_t low = 0; low < n; low += 2 * w) {
            int64_t mid = low + w < n ? low + w : n, high = low + 2 * w < n ? low + 2 * w : n;
            for (int64_t l = low, r = mid, k = low; k < high; k++) {
                bool left = l < mid && (r >= high || order_slices(t, s, a[l], a[r]) <= 0);
                b[k] = left ? a[l++] : a[r++];
            }
        }
        int64_t *swap = a;
        a = b;
        b = swap;
    }
    return a;
}

/* Numbers the groups of equal slices: group[slice], first[group]; the count comes back. */
static int64_t number_groups(const nori_tensor *t, nori__ref_split s, const int64_t *sorted,
                             int64_t *group, int64_t *first)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s.length; i++) {
        if (i == 0 || order_slices(t, s, sorted[i - 1], sorted[i]) != 0) {
            first[n++] = sorted[i];
        }
        group[sorted[i]] = n - 1;
    }
    return n;
}

/* Renumbers groups by first occurrence: slice i opens a group when it is its group's first. */
static void by_occurrence(int64_t length, int64_t *group, int64_t *first, int64_t *number)
{
    int64_t n = 0;
    for (int64_t i = 0; i < length; i++) {
        if (first[group[i]] == i) {
            number[group[i]] = n++;
        }
    }
    for (int64_t i = 0; i < length; i++) {
        group[i] = number[group[i]];
    }
    for (int64_t i = length - 1; i >= 0; i--) {
        first[group[i]] = i;
    }
}

static nori_status give(nori_call *call, nori__ref_split s, int axis, bool flat,
                        const int64_t *group, const int64_t *first, int64_t count)
{
    const nori_tensor *in = call->in[0];
    nori_tensor *out = NULL;
    int64_t dims[NORI_MAX_RANK];
    nori__tensor_dims(in, dims);
    dims[flat ? 0 : axis] = count;
    NORI__TRY(call->exec->alloc(call, 0, (nori_type)in->type, flat ? 1 : in->rank, dims, &out));
    for (int64_t o = 0; o < s.outer; o++) {
        for (int64_t g = 0; g < count; g++) {
            NORI__TRY(nori__move_run(in, (o * s.length + first[g]) * s.inner, out,
                                     (o * count + g) * s.inner, s.inner, call->err));
        }
    }
    for (uint32_t k = 1; k < call->n_out && k < 4; k++) {
        int64_t n = k == 2 ? s.length : count;
        NORI__TRY(call->exec->alloc(call, k, NORI_INT64, 1, &n, &out));
        int64_t *to = out->data;
        if (n > 0 && k < 3) {
            memcpy(to, k == 1 ? first : group, (size_t)n * sizeof(*to));
        } else if (n > 0) {
            memset(to, 0, (size_t)n * sizeof(*to));
            for (int64_t i = 0; i < s.length; i++) {
                to[group[i]]++;
            }
        }
    }
    return NORI_OK;
}

nori_status nori__ref_Unique(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *in = call->in[0];
    bool flat = !nori__attr_find(call->node, "axis");
    int axis = 0;
    if (!flat) {
        NORI__TRY(nori__ref_axis(call, nori__attr_i(call->node, "axis", 0), in->rank, &axis));
    }
    nori__ref_split s = flat ? (nori__ref_split){1, in->count, 1} : nori__ref_split_at(in, axis);
    size_t bytes;
    if (!nori__mul_size((size_t)s.length + 1, 4 * sizeof(int64_t), &bytes)) {
        return nori__no_memory(call->err);
    }
    int64_t *memory = nori__alloc(call->allocator, bytes);
    if (!memory) {
        return nori__no_memory(call->err);
    }
    int64_t *a = memory, *b = a + s.length, *group = b + s.length, *first = group + s.length;
    int64_t *sorted = sort_slices(in, s, a, b);
    int64_t count = number_groups(in, s, sorted, group, first);
    if (nori__attr_i(call->node, "sorted", 1) == 0) {
        by_occurrence(s.length, group, first, sorted);
    }
    nori_status status = give(call, s, axis, flat, group, first, count);
    nori__release(call->allocator, memory, bytes);
    return status;
}
