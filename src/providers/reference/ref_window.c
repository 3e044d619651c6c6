/* ref_window.c: HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix: made from numbers, in
 * double. A symmetric window of one sample is 1. */
#include "providers/reference/ref_nn.h"

#include <math.h>

/* a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n). */
static nori_status window(nori_call *call, double a0, double a1, double a2)
{
    NORI__TRY(nori__nn_need(call, 0, "size", -1));
    nori_tensor *y = call->out[0];
    if (call->in[0]->count != 1 || nori__tensor_get_i64(call->in[0], 0) != y->count) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "size (input 0) is not one number, 0 or more");
    }
    bool periodic = nori__attr_i(call->node, "periodic", 1) != 0;
    double n = (double)(periodic ? y->count : y->count - 1);
    const double turn = 2 * 3.14159265358979323846;
    for (int64_t i = 0; i < y->count; i++) {
        double at = turn * (double)i / n;
        double v = n == 0 ? 1 : a0 - a1 * cos(at) + a2 * cos(2 * at);
        nori__tensor_set_f64(y, i, v);
    }
    return NORI_OK;
}

nori_status nori__ref_HannWindow(nori_call *call)
{
    return window(call, 0.5, 0.5, 0);
}

nori_status nori__ref_HammingWindow(nori_call *call)
{
    return window(call, 25.0 / 46, 21.0 / 46, 0);
}

nori_status nori__ref_BlackmanWindow(nori_call *call)
{
    return window(call, 0.42, 0.5, 0.08);
}

/* ---- MelWeightMatrix ---- */

static void triangle(nori_tensor *y, int64_t bands, int64_t band, int64_t low, int64_t center,
                     int64_t high)
{
    if (center == low) {
        nori__tensor_set_f64(y, center * bands + band, 1);
    }
    for (int64_t j = low; j <= center && center > low; j++) {
        nori__tensor_set_f64(y, j * bands + band, (double)(j - low) / (double)(center - low));
    }
    for (int64_t j = center; j < high; j++) {
        nori__tensor_set_f64(y, j * bands + band, (double)(high - j) / (double)(high - center));
    }
}

nori_status nori__ref_MelWeightMatrix(nori_call *call)
{
    static const char *const names[] = {"num_mel_bins", "dft_length", "sample_rate",
                                        "lower_edge_hertz", "upper_edge_hertz"};
    double v[5];
    for (uint32_t i = 0; i < 5; i++) {
        NORI__TRY(nori__nn_need(call, i, names[i], -1));
        NORI__TRY(nori__nn_count(call, i, names[i], 1));
        v[i] = nori__tensor_get_f64(call->in[i], 0);
    }
    nori_tensor *y = call->out[0];
    int64_t bins = y->dims[0], bands = y->dims[1];
    double low = 2595 * log10(1 + v[3] / 700), high = 2595 * log10(1 + v[4] / 700);
    double step = (high - low) / (v[0] + 2);
    if (y->bytes > 0) {
        memset(y->data, 0, y->bytes);
    }
    for (int64_t band = 0; band < bands; band++) {
        int64_t edge[3];
        for (int k = 0; k < 3; k++) {
            double hertz = 700 * (pow(10, ((double)(band + k) * step + low) / 2595) - 1);
            double bin = floor((v[1] + 1) * hertz / v[2]);
            /* The upper edge itself may lie one past the last bin: it has weight 0. */
            if (!(bin >= 0 && bin < (double)bins + (k == 2 ? 1 : 0)) ||
                (k > 0 && (int64_t)bin < edge[k - 1])) {
                return nori__fail(call->err, NORI_ERROR_DATA,
                                  "%g to %g hertz do not lie in %lld bins at a sample rate of %g",
                                  v[3], v[4], (long long)bins, v[2]);
            }
            edge[k] = (int64_t)bin;
        }
        triangle(y, bands, band, edge[0], edge[1], edge[2]);
    }
    return NORI_OK;
}
