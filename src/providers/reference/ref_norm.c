/* ref_norm.c: normalisations over channels and batches: BatchNormalization, InstanceNormalization,
 * GroupNormalization, LRN, MeanVarianceNormalization, LpNormalization, ImageScaler.
 *
 * All in double, rounded once. A NaN makes its whole group NaN; infinities give NaN through
 * x - mean. Empty groups have nothing to write. LpNormalization of an all-zero line is zero. */
#include "providers/reference/ref_nn.h"

#include <math.h>

static const double *in(const nori_call *call, uint32_t i)
{
    return call->in[i]->data;
}

static double *out(const nori_call *call, uint32_t i)
{
    return call->out[i]->data;
}

static void mean_and_variance(const double *x, int64_t n, double *mean, double *variance)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i];
    }
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        squares += (x[i] - *mean) * (x[i] - *mean);
    }
    *variance = squares / (double)n;
}

static void normalize(const double *x, double *y, int64_t n, double mean, double variance,
                      double epsilon, double scale, double bias)
{
    double factor = scale / sqrt(variance + epsilon);
    for (int64_t i = 0; i < n; i++) {
        y[i] = (x[i] - mean) * factor + bias;
    }
}

/* ---- BatchNormalization ---- */

/* Statistics of each channel over the batch and the space. */
static void channel_statistics(const double *x, int64_t batch, int64_t channels, int64_t plane,
                               int64_t c, double *mean, double *variance)
{
    double sum = 0, squares = 0, n = (double)batch * (double)plane;
    for (int64_t b = 0; b < batch; b++) {
        const double *p = x + (b * channels + c) * plane;
        for (int64_t i = 0; i < plane; i++) {
            sum += p[i];
        }
    }
    *mean = sum / n;
    for (int64_t b = 0; b < batch; b++) {
        const double *p = x + (b * channels + c) * plane;
        for (int64_t i = 0; i < plane; i++) {
            squares += (p[i] - *mean) * (p[i] - *mean);
        }
    }
    *variance = squares / n;
}

static nori_status batch_norm(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    const nori_tensor *x = call->in[0];
    if (x->rank < 1 || x->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 0);
    }
    int64_t batch = x->dims[0], channels = x->rank > 1 ? x->dims[1] : 1;
    int64_t plane = nori__nn_product(x->dims, 2, x->rank);
    if (call->node->version < 9 && nori__attr_i(call->node, "spatial", 1) == 0) {
        channels = (int64_t)((uint64_t)channels * (uint64_t)plane);
        plane = 1;
    }
    static const char *const names[] = {"X", "scale", "B", "input_mean", "input_var"};
    for (uint32_t i = 1; i < 5; i++) {
        NORI__TRY(nori__nn_need(call, i, names[i], -1));
        NORI__TRY(nori__nn_count(call, i, names[i], channels));
    }
    bool training = nori__attr_i(call->node, "training_mode", 0) != 0 ||
                    (call->node->version < 14 && nori__nn_wants(call, 1));
    double momentum = (double)nori__attr_f(call->node, "momentum", 0.9f);
    double epsilon = (double)nori__attr_f(call->node, "epsilon", 1e-5f);
    for (int64_t c = 0; c < channels; c++) {
        double mean = in(call, 3)[c], variance = in(call, 4)[c];
        if (training) {
            double old[2] = {mean, variance}, now[2];
            channel_statistics(x->data, batch, channels, plane, c, &now[0], &now[1]);
            mean = now[0];
            variance = now[1];
            for (uint32_t o = 1; o < 5; o++) {
                if (nori__nn_wants(call, o)) {
                    int k = o % 2 ? 0 : 1; /* mean or variance; 3 and 4 are the saved ones */
                    out(call, o)[c] = o < 3 ? old[k] * momentum + now[k] * (1 - momentum) : now[k];
                }
            }
        }
        for (int64_t b = 0; b < batch; b++) {
            int64_t at = (b * channels + c) * plane;
            normalize(in(call, 0) + at, out(call, 0) + at, plane, mean, variance, epsilon,
                      in(call, 1)[c], in(call, 2)[c]);
        }
    }
    return NORI_OK;
}

nori_status nori__ref_BatchNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, batch_norm);
}

/* ---- InstanceNormalization, GroupNormalization ---- */

static nori_status group_norm_by(nori_call *call, int64_t groups, bool per_group)
{
    const nori_tensor *x = call->in[0];
    int64_t channels = x->dims[1], plane = nori__nn_product(x->dims, 2, x->rank);
    if (groups < 1 || channels % groups != 0) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "%lld channels do not divide into %lld groups", (long long)channels,
                          (long long)groups);
    }
    for (uint32_t i = 1; i < 3; i++) {
        NORI__TRY(nori__nn_need(call, i, i == 1 ? "scale" : "bias", -1));
        NORI__TRY(
            nori__nn_count(call, i, i == 1 ? "scale" : "bias", per_group ? groups : channels));
    }
    double epsilon = (double)nori__attr_f(call->node, "epsilon", 1e-5f);
    int64_t size = channels / groups;
    for (int64_t g = 0; x->count > 0 && g < x->dims[0] * groups; g++) {
        double mean, variance;
        int64_t at = g * size * plane;
        mean_and_variance(in(call, 0) + at, size * plane, &mean, &variance);
        for (int64_t c = 0; c < size; c++, at += plane) {
            int64_t p = per_group ? g % groups : g % groups * size + c;
            normalize(in(call, 0) + at, out(call, 0) + at, plane, mean, variance, epsilon,
                      in(call, 1)[p], in(call, 2)[p]);
        }
    }
    return NORI_OK;
}

static nori_status instance_norm(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "input", -1));
    if (call->in[0]->rank < 2 || call->in[0]->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 0);
    }
    int64_t channels = call->in[0]->dims[1];
    return channels == 0 ? NORI_OK : group_norm_by(call, channels, false);
}

nori_status nori__ref_InstanceNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, instance_norm);
}

/* Before opset 21 scale and bias had one value a group. */
static nori_status group_norm(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    if (call->in[0]->rank < 2 || call->in[0]->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 0);
    }
    return group_norm_by(call, nori__attr_i(call->node, "num_groups", 0),
                         call->node->version > 0 && call->node->version < 21);
}

nori_status nori__ref_GroupNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, group_norm);
}

/* ---- LRN ---- */

static nori_status lrn(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    const nori_tensor *x = call->in[0];
    int64_t size = nori__attr_i(call->node, "size", 0);
    if (x->rank < 2 || x->type != NORI_DOUBLE || size < 1 || size > INT32_MAX) {
        return size < 1 || size > INT32_MAX
                   ? nori__fail(call->err, NORI_ERROR_DATA, "size is %lld", (long long)size)
                   : nori__nn_type_error(call, 0);
    }
    double alpha = (double)nori__attr_f(call->node, "alpha", 1e-4f);
    double beta = (double)nori__attr_f(call->node, "beta", 0.75f);
    double bias = (double)nori__attr_f(call->node, "bias", 1);
    int64_t channels = x->dims[1], plane = nori__nn_product(x->dims, 2, x->rank);
    for (int64_t b = 0; x->count > 0 && b < x->dims[0]; b++) {
        for (int64_t c = 0; c < channels; c++) {
            int64_t low = c - (size - 1) / 2, high = c + size / 2; /* size / 2: ceil((size-1)/2) */
            low = low < 0 ? 0 : low;
            high = high < channels ? high : channels - 1;
            double *y = out(call, 0) + (b * channels + c) * plane;
            const double *p = in(call, 0) + (b * channels + c) * plane;
            for (int64_t i = 0; i < plane; i++) {
                y[i] = 0;
            }
            for (int64_t k = low; k <= high; k++) {
                const double *q = in(call, 0) + (b * channels + k) * plane;
                for (int64_t i = 0; i < plane; i++) {
                    y[i] += q[i] * q[i];
                }
            }
            for (int64_t i = 0; i < plane; i++) {
                y[i] = p[i] / pow(bias + alpha / (double)size * y[i], beta);
            }
        }
    }
    return NORI_OK;
}

nori_status nori__ref_LRN(nori_call *call)
{
    return nori__nn_double(call, 0, lrn);
}

/* ---- MeanVarianceNormalization ---- */

/* Strides that give an element's group: 0 along the axes that are averaged. Returns the groups. */
static nori_status mvn_groups(nori_call *call, int64_t *strides, int64_t *groups)
{
    static const int64_t usual[] = {0, 2, 3};
    const nori_tensor *x = call->in[0];
    size_t n;
    const int64_t *axes = nori__attr_ints(call->node, "axes", &n);
    bool reduced[NORI_MAX_RANK] = {false};
    if (!axes) {
        axes = usual;
        n = 3;
    }
    for (size_t i = 0; i < n; i++) {
        int axis;
        NORI__TRY(nori__fix_axis(call->err, axes[i], x->rank, &axis));
        reduced[axis] = true;
    }
    *groups = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        strides[d] = reduced[d] ? 0 : *groups;
        *groups *= reduced[d] ? 1 : x->dims[d];
    }
    return NORI_OK;
}

/* Goes through x in order with the group of each element; pass 0 sums, 1 squares, 2 writes. */
static void mvn_pass(const nori_tensor *x, const int64_t *strides, double *mean, double *variance,
                     double n, int pass, double *y)
{
    int64_t at[NORI_MAX_RANK] = {0}, group = 0;
    const double *p = x->data;
    for (int64_t i = 0; i < x->count; i++) {
        if (pass == 0) {
            mean[group] += p[i] / n;
        } else if (pass == 1) {
            variance[group] += (p[i] - mean[group]) * (p[i] - mean[group]) / n;
        } else {
            y[i] = (p[i] - mean[group]) / (sqrt(variance[group]) + 1e-9);
        }
        for (int d = x->rank - 1; d >= 0; d--) {
            group += strides[d];
            if (++at[d] < x->dims[d]) {
                break;
            }
            group -= strides[d] * x->dims[d];
            at[d] = 0;
        }
    }
}

static nori_status mvn(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    const nori_tensor *x = call->in[0];
    int64_t strides[NORI_MAX_RANK], groups;
    size_t bytes;
    if (x->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 0);
    }
    if (x->count == 0) {
        return NORI_OK;
    }
    NORI__TRY(mvn_groups(call, strides, &groups));
    double *sums = nori__nn_scratch(call, groups, 2 * sizeof *sums, &bytes);
    if (!sums) {
        return nori__no_memory(call->err);
    }
    memset(sums, 0, bytes);
    for (int pass = 0; pass < 3; pass++) {
        mvn_pass(x, strides, sums, sums + groups, (double)(x->count / groups), pass, out(call, 0));
    }
    nori__release(call->allocator, sums, bytes);
    return NORI_OK;
}

nori_status nori__ref_MeanVarianceNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, mvn);
}

/* ---- LpNormalization, ImageScaler ---- */

static nori_status lp_norm(nori_call *call)
{
    int axis;
    NORI__TRY(nori__nn_need(call, 0, "input", -1));
    const nori_tensor *x = call->in[0];
    int64_t p = nori__attr_i(call->node, "p", 2);
    if (x->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 0);
    }
    if (p != 1 && p != 2) {
        return nori__fail(call->err, NORI_ERROR_DATA, "p is %lld, expected 1 or 2", (long long)p);
    }
    NORI__TRY(nori__fix_axis(call->err, nori__attr_i(call->node, "axis", -1), x->rank, &axis));
    int64_t inner = nori__nn_product(x->dims, axis + 1, x->rank), n = x->dims[axis];
    int64_t lines = x->count == 0 ? 0 : x->count / n;
    for (int64_t line = 0; line < lines; line++) {
        int64_t at = line / inner * n * inner + line % inner;
        const double *v = in(call, 0) + at;
        double *y = out(call, 0) + at, norm = 0;
        for (int64_t i = 0; i < n; i++) {
            norm += p == 1 ? fabs(v[i * inner]) : v[i * inner] * v[i * inner];
        }
        norm = p == 1 ? norm : sqrt(norm);
        for (int64_t i = 0; i < n; i++) {
            y[i * inner] = norm == 0 ? 0 : v[i * inner] / norm;
        }
    }
    return NORI_OK;
}

nori_status nori__ref_LpNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, lp_norm);
}

static nori_status image_scaler(nori_call *call)
{
    size_t n;
    NORI__TRY(nori__nn_need(call, 0, "input", -1));
    const nori_tensor *x = call->in[0];
    const float *bias = nori__attr_floats(call->node, "bias", &n);
    double scale = (double)nori__attr_f(call->node, "scale", 1);
    if (x->rank < 2 || x->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 0);
    }
    if (bias && n > 0 && (int64_t)n != x->dims[1]) {
        return nori__fail(call->err, NORI_ERROR_DATA, "bias has %zu values for %lld channels", n,
                          (long long)x->dims[1]);
    }
    int64_t plane = nori__nn_product(x->dims, 2, x->rank);
    for (int64_t i = 0; i < x->count; i++) {
        double b = bias && n > 0 ? (double)bias[i / plane % x->dims[1]] : 0;
        out(call, 0)[i] = in(call, 0)[i] * scale + b;
    }
    return NORI_OK;
}

nori_status nori__ref_ImageScaler(nori_call *call)
{
    return nori__nn_double(call, 0, image_scaler);
}
