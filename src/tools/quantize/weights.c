/* weights.c: constants as integers. A scale for every index of one axis, or one for all; the bias
 * of a node as int32 with the scale its sum of products has. */
#include <math.h>

#include "tools/quantize/quantize.h"

#define BIAS_MOST 2147483647.0
/* What raised scales leave of a bias: beside it the sum of sixteen thousand products of bytes fits int32,
 * so that kernels of integers take the layer. */
#define BIAS_RAISED 1073741824.0

typedef struct strip { /* the elements that share a scale */
    int64_t outer, inner, count; /* element (o, c, i) lies at (o * count + c) * inner + i */
} strip;

static strip strips(const nori_tensor *w, int axis)
{
    strip s = {1, w->count, 1};
    if (axis >= 0) {
        s.count = w->dims[axis];
        s.inner = 1;
        for (int d = 0; d < w->rank; d++) {
            s.outer *= d < axis ? w->dims[d] : 1;
            s.inner *= d > axis ? w->dims[d] : 1;
        }
    }
    return s;
}

static double at(const nori_tensor *w, const strip *s, int64_t c, int64_t o, int64_t i)
{
    return nori__tensor_get_f64(w, (o * s->count + c) * s->inner + i);
}

static void extremes(const nori_tensor *w, const strip *s, int64_t c, double *low, double *high)
{
    *low = *high = 0;
    for (int64_t o = 0; o < s->outer; o++) {
        for (int64_t i = 0; i < s->inner; i++) {
            double v = at(w, s, c, o, i);
            *low = v < *low ? v : *low;
            *high = v > *high ? v : *high;
        }
    }
}

/* The least scale with which bias / (input_scale * scale) still fits int32 with its sums, and input_scale
 * * scale a float32. One scale has to do for all entries of the bias. */
static double least_scale(const nori_tensor *bias, double input_scale, int64_t c, bool one)
{
    double most = 0;
    for (int64_t i = 0; bias && i < bias->count; i++) {
        double b = fabs(nori__tensor_get_f64(bias, i));
        most = (one || bias->count == 1 || i == c) && b > most ? b : most;
    }
    double least = bias ? most / (input_scale * BIAS_RAISED) * 1.000001 : 0;
    double normal = (double)NORI__QUANT_LEAST_SCALE / (input_scale > 0 ? input_scale : 1);
    return least > normal ? least : normal;
}

static nori_status strip_scale(const nori_tensor *w, const strip *s, int64_t c, nori_type type,
                               bool symmetric, double least, nori_quant *quant, bool *raised,
                               nori_error *err)
{
    double low, high;
    extremes(w, s, c, &low, &high);
    NORI__TRY(nori_quant_range(type, low, high, symmetric, quant, err));
    quant->scale = (double)(float)quant->scale; /* as stored */
    *raised = quant->scale < least;
    if (*raised) {
        quant->scale = (double)nextafterf((float)least, INFINITY);
    }
    return NORI_OK;
}

static nori_status make_tensors(const nori_allocator *a, const nori_tensor *w, const strip *s,
                                int axis, nori_type type, nori__q_weight *out, nori_error *err)
{
    int rank = axis < 0 ? 0 : 1;
    NORI__TRY(nori__tensor_new(a, type, w->rank, w->dims, &out->integers, err));
    NORI__TRY(nori__tensor_new(a, NORI_FLOAT, rank, &s->count, &out->scales, err));
    return nori__tensor_new(a, type, rank, &s->count, &out->zeros, err);
}

nori_status nori__q_weight_make(const nori_allocator *a, const nori_tensor *w, int axis,
                                nori_type type, bool symmetric, const nori_tensor *bias,
                                double input_scale, nori__q_weight *out, nori_error *err)
{
    strip s = strips(w, axis);
    double signal = 0, noise = 0;
    *out = (nori__q_weight){0};
    nori_status status = make_tensors(a, w, &s, axis, type, out, err);
    for (int64_t c = 0; status == NORI_OK && c < s.count; c++) {
        nori_quant quant = {.size = sizeof(quant)};
        bool raised;
        status = strip_scale(w, &s, c, type, symmetric,
                             least_scale(bias, input_scale, c, axis < 0), &quant, &raised, err);
        if (status != NORI_OK) {
            break;
        }
        out->raised += raised;
        nori__tensor_set_f64(out->scales, c, quant.scale);
        nori__tensor_set_i64(out->zeros, c, quant.zero_point);
        for (int64_t o = 0; o < s.outer; o++) {
            for (int64_t i = 0; i < s.inner; i++) {
                double v = at(w, &s, c, o, i);
                int64_t n = nori_quantize_number(&quant, v, NULL);
                double e = v - nori_dequantize_number(&quant, n);
                nori__tensor_set_i64(out->integers, (o * s.count + c) * s.inner + i, n);
                signal += v * v;
                noise += e * e;
            }
        }
    }
    out->sqnr = noise > 0 ? 10 * log10(signal / noise) : INFINITY;
    if (status != NORI_OK) {
        nori_tensor_free(out->integers);
        nori_tensor_free(out->scales);
        nori_tensor_free(out->zeros);
        *out = (nori__q_weight){0};
    }
    return status;
}

nori_status nori__q_bias_make(const nori_allocator *a, const nori_tensor *bias,
                              const nori_tensor *weight_scales, double input_scale,
                              nori_tensor **integers, nori_tensor **scales, nori_error *err)
{
    bool one = weight_scales->count == 1;
    *integers = *scales = NULL;
    nori_status s =
        nori__tensor_new(a, NORI_INT32, bias->rank, bias->dims, integers, err);
    if (s == NORI_OK) {
        s = nori__tensor_new(a, NORI_FLOAT, one ? 0 : 1, weight_scales->dims, scales, err);
    }
    if (s != NORI_OK) {
        nori_tensor_free(*integers);
        *integers = NULL;
        return s;
    }
    for (int64_t c = 0; c < weight_scales->count; c++) {
        double scale = input_scale * nori__tensor_get_f64(weight_scales, c);
        nori__tensor_set_f64(*scales, c, scale);
    }
    for (int64_t i = 0; i < bias->count; i++) {
        double scale = nori__tensor_get_f64(*scales, one ? 0 : i);
        double n = nearbyint(nori__tensor_get_f64(bias, i) / scale);
        n = n > BIAS_MOST ? BIAS_MOST : n < -BIAS_MOST ? -BIAS_MOST : n;
        nori__tensor_set_i64(*integers, i, isnan(n) ? 0 : (int64_t)n);
    }
    return NORI_OK;
}
