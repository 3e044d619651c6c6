/* ref_scale.c: ai.onnx.ml on numbers: Scaler, Normalizer, Imputer, Binarizer,
 * ArrayFeatureExtractor, FeatureVectorizer. Computed in double. NaN passes through, but Imputer can
 * replace it. */
#include "providers/reference/ref_ml.h"

#include <math.h>

static nori_status need_numbers(const nori_call *call, uint32_t i)
{
    NORI__TRY(nori__ref_need(call, i));
    return call->in[i]->type == NORI_STRING ? nori__ref_bad_type(call, i) : NORI_OK;
}

/* Features of the last axis. */
static int64_t width_of(const nori_tensor *t)
{
    return t->rank > 0 ? t->dims[t->rank - 1] : 1;
}

/* A list of one value for all features or one for each. */
static nori_status check_list(const nori_call *call, const char *name, size_t n, int64_t width)
{
    if (n == 1 || (int64_t)n == width) {
        return NORI_OK;
    }
    return nori__fail(call->err, NORI_ERROR_DATA, "%s has %zu values for %lld features", name, n,
                      (long long)width);
}

nori_status nori__ref_ml_Scaler(nori_call *call)
{
    NORI__TRY(need_numbers(call, 0));
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    size_t n_scale, n_offset;
    const float *scale = nori__attr_floats(call->node, "scale", &n_scale);
    const float *offset = nori__attr_floats(call->node, "offset", &n_offset);
    int64_t width = width_of(in);
    if (scale) {
        NORI__TRY(check_list(call, "scale", n_scale, width));
    }
    if (offset) {
        NORI__TRY(check_list(call, "offset", n_offset, width));
    }
    for (int64_t i = 0; out && i < in->count; i++) {
        int64_t f = i % width;
        double v = nori__tensor_get_f64(in, i);
        v -= offset ? (double)offset[n_offset == 1 ? 0 : f] : 0;
        nori__tensor_set_f64(out, i, v * (scale ? (double)scale[n_scale == 1 ? 0 : f] : 1));
    }
    return NORI_OK;
}

nori_status nori__ref_ml_Normalizer(nori_call *call)
{
    nori__rows x;
    NORI__TRY(nori__rows_of(call, &x));
    const char *norm = nori__attr_s(call->node, "norm", "MAX");
    bool max = nori__same(norm, "MAX"), l1 = nori__same(norm, "L1"), l2 = nori__same(norm, "L2");
    if (!max && !l1 && !l2) {
        return nori__fail(call->err, NORI_ERROR_MODEL, "norm is %.20s, expected MAX, L1 or L2",
                          norm);
    }
    for (int64_t r = 0; call->out[0] && r < x.n; r++) {
        double by = max ? -HUGE_VAL : 0;
        for (int64_t i = 0; i < x.width; i++) {
            double v = nori__rows_get(&x, r, i);
            by = !max ? by + (l1 ? fabs(v) : v * v) : v > by ? v : by;
        }
        by = l2 ? sqrt(by) : by;
        by = by == 0 ? 1 : by; /* nothing to divide by: left as it is */
        for (int64_t i = 0; i < x.width; i++) {
            nori__tensor_set_f64(call->out[0], r * x.width + i, nori__rows_get(&x, r, i) / by);
        }
    }
    return NORI_OK;
}

nori_status nori__ref_ml_Binarizer(nori_call *call)
{
    NORI__TRY(need_numbers(call, 0));
    double threshold = (double)nori__attr_f(call->node, "threshold", 0);
    for (int64_t i = 0; call->out[0] && i < call->in[0]->count; i++) {
        nori__tensor_set_f64(call->out[0], i, nori__tensor_get_f64(call->in[0], i) > threshold);
    }
    return NORI_OK;
}

nori_status nori__ref_ml_Imputer(nori_call *call)
{
    NORI__TRY(need_numbers(call, 0));
    const nori_tensor *in = call->in[0];
    nori_tensor *out = call->out[0];
    bool real = nori__type_is_float((nori_type)in->type);
    size_t n;
    const float *floats = nori__attr_floats(call->node, "imputed_value_floats", &n);
    double gone = (double)nori__attr_f(call->node, "replaced_value_float", 0);
    const int64_t *ints = NULL;
    int64_t gone_int = nori__attr_i(call->node, "replaced_value_int64", 0), width = width_of(in);
    if (!real) {
        ints = nori__attr_ints(call->node, "imputed_value_int64s", &n);
    }
    if (real ? !floats : !ints) {
        return nori__fail(call->err, NORI_ERROR_MODEL, "there are no imputed values for %s",
                          nori_type_name((nori_type)in->type));
    }
    NORI__TRY(check_list(call, "the list of imputed values", n, width));
    if (!out) {
        return NORI_OK;
    }
    NORI__TRY(nori__move_whole(in, out, call->err));
    for (int64_t i = 0; i < in->count; i++) {
        int64_t f = n == 1 ? 0 : i % width;
        if (real) {
            double v = nori__tensor_get_f64(in, i);
            if (v == gone || (isnan(v) && isnan(gone))) {
                nori__tensor_set_f64(out, i, (double)floats[f]);
            }
        } else if (nori__tensor_get_i64(in, i) == gone_int) {
            nori__tensor_set_i64(out, i, ints[f]);
        }
    }
    return NORI_OK;
}

nori_status nori__ref_ml_ArrayFeatureExtractor(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__need_indices(call, 1));
    const nori_tensor *in = call->in[0], *at = call->in[1];
    nori_tensor *out = call->out[0];
    int64_t width = width_of(in), rows = width > 0 ? in->count / width : 0;
    if (in->rank < 1) {
        return nori__need_rank(call, 0, 1);
    }
    for (int64_t i = 0; i < at->count; i++) {
        int64_t v = nori__tensor_get_i64(at, i);
        if (v < 0 || v >= width) {
            return nori__bad_index(call, 1, i, in->rank - 1, width);
        }
    }
    for (int64_t r = 0; out && r < rows; r++) {
        for (int64_t i = 0; i < at->count; i++) {
            NORI__TRY(nori__move_run(in, r * width + nori__tensor_get_i64(at, i), out,
                                     r * at->count + i, 1, call->err));
        }
    }
    return NORI_OK;
}

nori_status nori__ref_ml_FeatureVectorizer(nori_call *call)
{
    nori_tensor *out = call->out[0];
    size_t n_sizes;
    const int64_t *sizes = nori__attr_ints(call->node, "inputdimensions", &n_sizes);
    int64_t at = 0;
    for (uint32_t i = 0; out && i < call->n_in; i++) {
        NORI__TRY(need_numbers(call, i));
        const nori_tensor *in = call->in[i];
        int64_t width = width_of(in), rows = in->rank == 2 ? in->dims[0] : 1;
        if (in->rank < 1 || in->rank > 2 || rows != out->dims[0] ||
            (i < n_sizes && sizes[i] != width)) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "input %u has %lld rows of %lld, which does not fit", i,
                              (long long)rows, (long long)width);
        }
        for (int64_t k = 0; k < in->count; k++) {
            int64_t to = k / width * out->dims[1] + at + k % width;
            nori__tensor_set_f64(out, to, nori__tensor_get_f64(in, k));
        }
        at += width;
    }
    return NORI_OK;
}
