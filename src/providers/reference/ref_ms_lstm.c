/* ref_ms_lstm.c: com.microsoft DynamicQuantizeLSTM: an LSTM with 8-bit weights, a column a gate, whose
 * input and state are made 8 bits in each run. The range of X is that of all of it, as runtimes have it;
 * that of the state is one for each entry of the batch in each step, so that no entry depends on those
 * beside it. Products of integers are made in double with their scales: exact but for the last bit. */
#include "providers/reference/ref_nn.h"

#include <math.h>

void nori__nn_as_bytes(int64_t n, double *v)
{
    float low = 0, high = 0;
    for (int64_t i = 0; i < n; i++) {
        low = (float)v[i] < low ? (float)v[i] : low;
        high = (float)v[i] > high ? (float)v[i] : high;
    }
    float scale = high > low ? (high - low) / 255 : 1;
    float zero = rintf((float)nori__nn_clamp((double)(0 - low / scale), 0, 255));
    for (int64_t i = 0; i < n; i++) {
        float q = rintf((float)v[i] / scale) + zero;
        q = q >= 0 ? (q < 255 ? q : 255) : 0; /* NaN: the lowest */
        v[i] = (double)(q - zero) * (double)scale;
    }
}

/* X as numbers that bytes stand for. */
static nori_status read_input(const nori_call *call, nori_tensor **out)
{
    const nori_tensor *x = call->in[0];
    NORI__TRY(nori__tensor_new(call->allocator, NORI_DOUBLE, x->rank, x->dims, out, call->err));
    nori__nn_load_f64(x, 0, x->count, (*out)->data);
    nori__nn_as_bytes(x->count, (*out)->data);
    return NORI_OK;
}

/* W or R as LSTM has them, a row a gate, from columns and their scales. */
static nori_status read_weight(const nori_call *call, uint32_t i, const char *name, uint32_t scale_at,
                               nori_tensor **out)
{
    const nori_tensor *w = call->in[i], *scale, *zero;
    NORI__TRY(nori__nn_need(call, scale_at, "scale", -1));
    scale = call->in[scale_at];
    zero = nori__nn_has(call, scale_at + 1) ? call->in[scale_at + 1] : NULL;
    int64_t directions = w->dims[0], depth = w->dims[1], columns = w->dims[2];
    int64_t all = nori__nn_product(w->dims, 0, 3) == 0 ? 0 : directions * columns;
    if (scale->type != NORI_FLOAT || (scale->count != directions && scale->count != all) ||
        (zero && ((zero->count != directions && zero->count != all) || zero->type != w->type))) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "scale and zero point of %s have %lld and %lld entries, expected %lld or %lld of "
                          "float32, and of its own type", name, (long long)scale->count,
                          zero ? (long long)zero->count : 0, (long long)directions, (long long)all);
    }
    int64_t dims[3] = {directions, columns, depth};
    NORI__TRY(nori__tensor_new(call->allocator, NORI_DOUBLE, 3, dims, out, call->err));
    double *to = (*out)->data;
    for (int64_t d = 0; d < directions; d++) {
        for (int64_t c = 0; c < columns; c++) {
            int64_t one = d * columns + c;
            double s = nori__tensor_get_f64(scale, scale->count == directions ? d : one);
            int64_t z = zero ? nori__tensor_get_i64(zero, zero->count == directions ? d : one) : 0;
            for (int64_t k = 0; k < depth; k++) {
                *to++ = (double)(nori__tensor_get_i64(w, (d * depth + k) * columns + c) - z) * s;
            }
        }
    }
    return NORI_OK;
}

nori_status nori__ref_ms_DynamicQuantizeLSTM(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "X", 3));
    NORI__TRY(nori__nn_need(call, 1, "W", 3));
    NORI__TRY(nori__nn_need(call, 2, "R", 3));
    for (uint32_t i = 1; i < 3; i++) {
        if (call->in[i]->type != NORI_INT8 && call->in[i]->type != NORI_UINT8) {
            return nori__nn_type_error(call, i);
        }
    }
    if (call->in[0]->type != NORI_FLOAT) {
        return nori__nn_type_error(call, 0);
    }
    const nori_tensor *in[8] = {NULL};
    nori_tensor *made[3] = {NULL};
    for (uint32_t i = 3; i < NORI__COUNT(in) && i < call->n_in; i++) {
        in[i] = call->in[i];
    }
    nori_status s = read_input(call, &made[0]);
    s = s == NORI_OK ? read_weight(call, 1, "W", 8, &made[1]) : s;
    s = s == NORI_OK ? read_weight(call, 2, "R", 10, &made[2]) : s;
    if (s == NORI_OK) {
        nori_call inner = *call;
        memcpy(in, made, sizeof(made));
        inner.in = in;
        inner.n_in = NORI__COUNT(in);
        s = nori__ref_lstm_bytes(&inner);
    }
    for (size_t i = 0; i < NORI__COUNT(made); i++) {
        nori_tensor_free(made[i]);
    }
    return s;
}
