/* ref_ms_mask.c: masks and biases of com.microsoft's attention operators, by rank. */
#include "providers/reference/ref_attention.h"

#include <math.h>

/* A mask of: [B] valid keys; [2B] ends, then starts; [3B + 2] valid keys, then places in packed
 * data; [B, keys]; [B, S, keys]; [B, 1, max, max]. */
static bool masked(const nori__ms_mask *m, int64_t b, int64_t i, int64_t j)
{
    const nori_tensor *t = m->mask;
    int64_t n = m->a->past + m->a->length;
    if (t->rank == 1) {
        int64_t end = nori__tensor_get_i64(t, b);
        bool starts = t->count == 2 * m->a->batch;
        return j >= end || (starts && j < nori__tensor_get_i64(t, m->a->batch + b));
    }
    int64_t at = b * n + j;
    if (t->rank == 3) {
        at = (b * m->a->q_length + i) * n + j;
    } else if (t->rank == 4) {
        at = (b * t->dims[2] + m->a->past + i) * t->dims[3] + j;
    }
    return nori__tensor_get_i64(t, at) <= 0;
}

static void bias(const void *user, int64_t b, int64_t h, int64_t i, double *out)
{
    const nori__ms_mask *m = user;
    const nori_tensor *t = m->added;
    int64_t n = m->a->past + m->a->length, from = 0;
    if (t) {
        int64_t bb = t->dims[0] == 1 ? 0 : b, hh = t->dims[1] == 1 ? 0 : h;
        from = ((bb * t->dims[1] + hh) * m->a->q_length + i) * n;
    }
    for (int64_t j = 0; j < n; j++) {
        out[j] = m->mask && masked(m, b, i, j) ? m->filter : 0;
        out[j] += t ? ((const double *)t->data)[from + j] : 0;
        if (m->causal && j > i + m->a->past) {
            out[j] = -INFINITY;
        }
    }
}

static bool mask_fits(const nori_tensor *t, const nori__attention *a)
{
    int64_t n = a->past + a->length, b = a->batch;
    const int64_t *d = t->dims;
    switch (t->rank) {
    case 1:
        return d[0] == b || d[0] == 2 * b || d[0] == 3 * b + 2;
    case 2:
        return d[0] == b && d[1] == n;
    case 3:
        return d[0] == b && d[1] == a->q_length && d[2] == n;
    case 4:
        return d[0] == b && d[1] == 1 && d[2] >= n && d[3] >= n;
    default:
        return false;
    }
}

nori_status nori__ms_mask_read(nori_call *call, uint32_t mask, uint32_t added, nori__attention *a,
                               nori__ms_mask *m)
{
    int64_t n = a->past + a->length;
    *m = (nori__ms_mask){.a = a,
                         .mask = nori__nn_has(call, mask) ? call->in[mask] : NULL,
                         .added = nori__nn_has(call, added) ? call->in[added] : NULL,
                         .filter = (double)nori__attr_f(call->node, "mask_filter_value", -10000),
                         .causal = nori__attr_i(call->node, "unidirectional", 0) != 0};
    if (m->mask && (m->mask->type != NORI_INT32 || !mask_fits(m->mask, a))) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "the mask (input %u) does not fit %lld sequences of %lld queries and %lld "
                          "keys",
                          mask, (long long)a->batch, (long long)a->q_length, (long long)n);
    }
    const nori_tensor *t = m->added;
    if (t && (t->rank != 4 || t->type != NORI_DOUBLE || t->dims[2] != a->q_length ||
              t->dims[3] != n || (t->dims[0] != 1 && t->dims[0] != a->batch) ||
              (t->dims[1] != 1 && t->dims[1] != a->heads))) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "attention_bias (input %u) does not broadcast to %lld x %lld x %lld x %lld",
                          added, (long long)a->batch, (long long)a->heads, (long long)a->q_length,
                          (long long)n);
    }
    if (m->mask || m->added || m->causal) {
        a->bias = bias;
        a->user = m;
    }
    return NORI_OK;
}

nori_status nori__ms_past_length(nori_call *call, uint32_t i, int64_t most, int64_t *length)
{
    NORI__TRY(nori__nn_need(call, i, "past_sequence_length", -1));
    NORI__TRY(nori__nn_count(call, i, "past_sequence_length", 1));
    *length = nori__tensor_get_i64(call->in[i], 0);
    if (*length < 0 || *length > most) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "past_sequence_length (input %u) is %lld, the cache has room for %lld", i,
                          (long long)*length, (long long)most);
    }
    return NORI_OK;
}
