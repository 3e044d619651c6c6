/* ref_ms_pool.c: com.microsoft pools of 8-bit tensors, channels first or last: NhwcMaxPool,
 * QLinearAveragePool, QLinearGlobalAveragePool; and CropAndResize.
 *
 * Average pools take real values, pool them as AveragePool does and quantize the result: rounded
 * half to even, saturated. */
#include "providers/reference/ref_nn.h"

#include <math.h>

/* Index in the channels-last order of element i of a channels-first shape. */
static int64_t last_index(int rank, const int64_t *first, int64_t i)
{
    int64_t plane = nori__nn_product(first, 2, rank), channels = first[1];
    int64_t place = i % plane, c = i / plane % channels, b = i / plane / channels;
    return (b * plane + place) * channels + c;
}

/* dims with the channels moved from the end to axis 1. */
static void channels_first(int rank, const int64_t *dims, int64_t *out)
{
    out[0] = dims[0];
    out[1] = dims[rank - 1];
    memcpy(out + 2, dims + 1, (size_t)(rank - 2) * sizeof *out);
}

/* ---- average ---- */

typedef struct linear {
    float scale;
    double zero;
} linear;

static nori_status read_linear(const nori_call *call, uint32_t i, linear *q)
{
    NORI__TRY(nori__nn_need(call, i, "scale", -1));
    NORI__TRY(nori__nn_count(call, i, "scale", 1));
    NORI__TRY(nori__nn_count(call, i + 1, "zero point", 1));
    q->scale = (float)nori__tensor_get_f64(call->in[i], 0);
    q->zero = nori__nn_has(call, i + 1) ? nori__tensor_get_f64(call->in[i + 1], 0) : 0;
    return NORI_OK;
}

/* Pools the real values of X by body and quantizes what comes out. */
static nori_status average(nori_call *call, nori__run_fn body)
{
    linear in, out;
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    const nori_tensor *x = call->in[0];
    nori_tensor *y = call->out[0], *xs = NULL, *ys = NULL;
    if ((x->type != NORI_UINT8 && x->type != NORI_INT8) || y->type != x->type || x->rank < 2) {
        return nori__nn_type_error(call, 0);
    }
    NORI__TRY(read_linear(call, 1, &in));
    NORI__TRY(read_linear(call, 3, &out));
    bool last = nori__attr_i(call->node, "channels_last", 0) != 0;
    int64_t x_dims[NORI_MAX_RANK], y_dims[NORI_MAX_RANK];
    nori__tensor_dims(x, x_dims);
    nori__tensor_dims(y, y_dims);
    if (last) {
        channels_first(x->rank, x->dims, x_dims);
        channels_first(y->rank, y->dims, y_dims);
    }
    nori_status s = nori__tensor_new(call->allocator, NORI_FLOAT, x->rank, x_dims, &xs, call->err);
    if (s == NORI_OK) {
        s = nori__tensor_new(call->allocator, NORI_FLOAT, y->rank, y_dims, &ys, call->err);
    }
    if (s == NORI_OK) {
        for (int64_t i = 0; i < x->count; i++) {
            double q = nori__tensor_get_f64(x, last ? last_index(x->rank, x_dims, i) : i);
            ((float *)xs->data)[i] = (float)(q - in.zero) * in.scale;
        }
        const nori_tensor *ins[1] = {xs};
        nori_call inner = *call;
        inner.in = ins;
        inner.n_in = 1;
        inner.out = &ys;
        inner.n_out = 1;
        s = body(&inner);
    }
    double low, high;
    nori__nn_range((nori_type)y->type, &low, &high);
    for (int64_t i = 0; i < y->count && s == NORI_OK; i++) {
        double v = rint((double)(((const float *)ys->data)[i] / out.scale)) + out.zero;
        nori__tensor_set_f64(y, last ? last_index(y->rank, y_dims, i) : i,
                             v >= low ? nori__nn_clamp(v, low, high) : low);
    }
    nori_tensor_free(xs);
    nori_tensor_free(ys);
    return s;
}

nori_status nori__ref_ms_QLinearAveragePool(nori_call *call)
{
    return average(call, nori__ref_AveragePool);
}

nori_status nori__ref_ms_QLinearGlobalAveragePool(nori_call *call)
{
    return average(call, nori__ref_GlobalAveragePool);
}

/* ---- NhwcMaxPool ---- */

static void move_channels(const nori_tensor *from, nori_tensor *to, const int64_t *first,
                          bool to_first)
{
    const uint8_t *in = from->data;
    uint8_t *out = to->data;
    for (int64_t i = 0; i < from->count; i++) {
        int64_t j = last_index(from->rank, first, i);
        out[to_first ? i : j] = in[to_first ? j : i];
    }
}

nori_status nori__ref_ms_NhwcMaxPool(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "x", -1));
    const nori_tensor *x = call->in[0];
    nori_tensor *y = call->out[0], *xs = NULL, *ys = NULL;
    if ((x->type != NORI_UINT8 && x->type != NORI_INT8) || x->rank < 3 || y->type != x->type) {
        return nori__nn_type_error(call, 0);
    }
    int64_t x_dims[NORI_MAX_RANK], y_dims[NORI_MAX_RANK];
    channels_first(x->rank, x->dims, x_dims);
    channels_first(y->rank, y->dims, y_dims);
    nori_type type = (nori_type)x->type;
    nori_status s = nori__tensor_new(call->allocator, type, x->rank, x_dims, &xs, call->err);
    if (s == NORI_OK) {
        s = nori__tensor_new(call->allocator, type, y->rank, y_dims, &ys, call->err);
    }
    if (s == NORI_OK) {
        const nori_tensor *ins[1] = {xs};
        nori_call inner = *call;
        move_channels(x, xs, x_dims, true);
        inner.in = ins;
        inner.out = &ys;
        s = nori__ref_MaxPool(&inner);
    }
    if (s == NORI_OK) {
        move_channels(ys, y, y_dims, false);
    }
    nori_tensor_free(xs);
    nori_tensor_free(ys);
    return s;
}

/* ---- CropAndResize: X, rois, batch_indices, crop_size ---- */

/* Place in the input of output i of n, for a box from a to b of a side of size: the corners of
 * box and result coincide; one output is the middle. */
static double source(double a, double b, int64_t i, int64_t n, int64_t size)
{
    double most = (double)(size - 1);
    return n > 1 ? a * most + (double)i * ((b - a) * most / (double)(n - 1)) : 0.5 * (a + b) * most;
}

static double sample(const double *x, int64_t height, int64_t width, double py, double px,
                     bool nearest)
{
    if (nearest) {
        return x[(int64_t)round(py) * width + (int64_t)round(px)];
    }
    int64_t y0 = (int64_t)floor(py), x0 = (int64_t)floor(px);
    int64_t y1 = y0 + 1 < height ? y0 + 1 : y0, x1 = x0 + 1 < width ? x0 + 1 : x0;
    double dy = py - (double)y0, dx = px - (double)x0;
    double top = x[y0 * width + x0] * (1 - dx) + x[y0 * width + x1] * dx;
    double bottom = x[y1 * width + x0] * (1 - dx) + x[y1 * width + x1] * dx;
    return top * (1 - dy) + bottom * dy;
}

static nori_status crop(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "X", 4));
    NORI__TRY(nori__nn_need(call, 1, "rois", 2));
    NORI__TRY(nori__nn_need(call, 2, "batch_indices", 1));
    const nori_tensor *x = call->in[0], *rois = call->in[1];
    nori_tensor *y = call->out[0];
    int64_t height = x->dims[2], width = x->dims[3], channels = x->dims[1];
    if (x->type != NORI_DOUBLE || rois->type != NORI_DOUBLE || rois->dims[1] != 4) {
        return nori__nn_type_error(call, rois->dims[1] != 4 ? 1 : 0);
    }
    NORI__TRY(nori__nn_count(call, 2, "batch_indices", rois->dims[0]));
    bool nearest = nori__same(nori__attr_s(call->node, "mode", "bilinear"), "nearest");
    double outside = (double)nori__attr_f(call->node, "extrapolation_value", 0);
    int64_t rows = y->dims[2], columns = y->dims[3];
    for (int64_t i = 0; i < y->count; i++) {
        int64_t column = i % columns, row = i / columns % rows;
        int64_t c = i / columns / rows % channels, r = i / columns / rows / channels;
        const double *box = (const double *)rois->data + r * 4; /* y1, x1, y2, x2 */
        int64_t b = nori__tensor_get_i64(call->in[2], r);
        if (b < 0 || b >= x->dims[0]) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "batch_indices (input 2) names image %lld of %lld", (long long)b,
                              (long long)x->dims[0]);
        }
        double py = source(box[0], box[2], row, rows, height);
        double px = source(box[1], box[3], column, columns, width);
        bool inside =
            py >= 0 && py <= (double)(height - 1) && px >= 0 && px <= (double)(width - 1);
        const double *plane = (const double *)x->data + (b * channels + c) * height * width;
        ((double *)y->data)[i] =
            inside ? sample(plane, height, width, py, px, nearest) : outside;
    }
    return NORI_OK;
}

nori_status nori__ref_ms_CropAndResize(nori_call *call)
{
    return nori__nn_double(call, 0, crop);
}
