/* ref_roi.c: RoiAlign and MaxRoiPool, in double, rounded once. An empty region gives 0. */
#include "providers/reference/ref_nn.h"

#include <math.h>

/* ---- RoiAlign ---- */

typedef struct align {
    int64_t channels, height, width, out_h, out_w;
    double scale, shift; /* shift: 0.5 for half_pixel */
    int64_t ratio;
    bool most; /* mode max */
} align;

/* The four neighbours of a sampling point and their weights; false: outside, all zero. */
static bool corners(const align *a, double y, double x, int64_t *place, double *weight)
{
    if (!(y >= -1 && y <= (double)a->height && x >= -1 && x <= (double)a->width)) {
        return false;
    }
    y = y < 0 ? 0 : y;
    x = x < 0 ? 0 : x;
    int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + 1, x1 = x0 + 1;
    if (y0 >= a->height - 1) {
        y0 = y1 = a->height - 1;
        y = (double)y0;
    }
    if (x0 >= a->width - 1) {
        x0 = x1 = a->width - 1;
        x = (double)x0;
    }
    double dy = y - (double)y0, dx = x - (double)x0;
    int64_t places[4] = {y0 * a->width + x0, y0 * a->width + x1, y1 * a->width + x0,
                         y1 * a->width + x1};
    double weights[4] = {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx};
    memcpy(place, places, sizeof places);
    memcpy(weight, weights, sizeof weights);
    return true;
}

/* One bin of one channel. In max mode the text's examples take the largest weighted neighbour of
 * all sampling points, not the largest interpolated value. */
static double bin(const align *a, const double *x, double y0, double x0, double h, double w,
                  int64_t grid_h, int64_t grid_w)
{
    double sum = 0, most = 0;
    bool first = true;
    for (int64_t iy = 0; iy < grid_h; iy++) {
        for (int64_t ix = 0; ix < grid_w; ix++) {
            int64_t place[4] = {0};
            double weight[4] = {0};
            corners(a, y0 + ((double)iy + 0.5) * h / (double)grid_h,
                    x0 + ((double)ix + 0.5) * w / (double)grid_w, place, weight);
            for (int k = 0; k < 4; k++) {
                double v = weight[k] != 0 ? weight[k] * x[place[k]] : 0;
                sum += v;
                most = first || v > most || v != v ? v : most;
                first = false;
            }
        }
    }
    int64_t count = grid_h * grid_w;
    return a->most ? most : count > 0 ? sum / (double)count : 0;
}

static nori_status read_align(nori_call *call, align *a)
{
    NORI__TRY(nori__nn_need(call, 0, "X", 4));
    NORI__TRY(nori__nn_need(call, 1, "rois", 2));
    NORI__TRY(nori__nn_need(call, 2, "batch_indices", 1));
    const nori_tensor *x = call->in[0], *rois = call->in[1];
    if (x->type != NORI_DOUBLE || rois->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 0);
    }
    if (rois->dims[1] != 4) {
        return nori__fail(call->err, NORI_ERROR_DATA, "rois (input 1) has %lld columns, expected 4",
                          (long long)rois->dims[1]);
    }
    NORI__TRY(nori__nn_count(call, 2, "batch_indices", rois->dims[0]));
    /* Before opset 16 there was no shift. */
    const char *mode = nori__attr_s(call->node, "coordinate_transformation_mode",
                                    call->node->version > 0 && call->node->version < 16
                                        ? "output_half_pixel" : "half_pixel");
    *a = (align){.channels = x->dims[1], .height = x->dims[2], .width = x->dims[3],
                 .out_h = call->out[0]->dims[2], .out_w = call->out[0]->dims[3],
                 .scale = (double)nori__attr_f(call->node, "spatial_scale", 1),
                 .shift = nori__same(mode, "half_pixel") ? 0.5 : 0,
                 .ratio = nori__attr_i(call->node, "sampling_ratio", 0),
                 .most = nori__same(nori__attr_s(call->node, "mode", "avg"), "max")};
    return NORI_OK;
}

static nori_status roi_align(nori_call *call)
{
    align a = {0};
    NORI__TRY(read_align(call, &a));
    const nori_tensor *x = call->in[0];
    double *y = call->out[0]->data;
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    if (x->count == 0) {
        return nori__fail(call->err, NORI_ERROR_DATA, "regions of an empty input");
    }
    for (int64_t r = 0; r < call->in[1]->dims[0]; r++) {
        const double *roi = (const double *)call->in[1]->data + 4 * r;
        int64_t image = nori__tensor_get_i64(call->in[2], r);
        if (image < 0 || image >= x->dims[0]) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "batch_indices (input 2) names image %lld of %lld", (long long)image,
                              (long long)x->dims[0]);
        }
        double x0 = roi[0] * a.scale - a.shift, y0 = roi[1] * a.scale - a.shift;
        double w = roi[2] * a.scale - a.shift - x0, h = roi[3] * a.scale - a.shift - y0;
        if (a.shift == 0) {
            w = w > 1 ? w : 1;
            h = h > 1 ? h : 1;
        }
        double bin_h = h / (double)a.out_h, bin_w = w / (double)a.out_w;
        if (!(fabs(bin_h) < 1e6 && fabs(bin_w) < 1e6)) {
            return nori__fail(call->err, NORI_ERROR_DATA, "region %lld is %g x %g", (long long)r, w,
                              h);
        }
        int64_t gh = a.ratio > 0 ? a.ratio : (int64_t)ceil(bin_h);
        int64_t gw = a.ratio > 0 ? a.ratio : (int64_t)ceil(bin_w);
        for (int64_t i = 0; i < a.channels * a.out_h * a.out_w; i++) {
            int64_t pw = i % a.out_w, ph = i / a.out_w % a.out_h, c = i / a.out_w / a.out_h;
            const double *plane = (const double *)x->data +
                                  (image * a.channels + c) * a.height * a.width;
            *y++ = bin(&a, plane, y0 + (double)ph * bin_h, x0 + (double)pw * bin_w, bin_h, bin_w,
                       gh, gw);
        }
    }
    return NORI_OK;
}

nori_status nori__ref_RoiAlign(nori_call *call)
{
    return nori__nn_double(call, 0, roi_align);
}

/* ---- MaxRoiPool: rois of [batch, x1, y1, x2, y2], whole pixels, ends included ---- */

/* First and last + 1 input of bin i along an axis. */
static void bin_range(double start, double bin_size, int64_t i, int64_t size, int64_t *low,
                      int64_t *high)
{
    double a = floor((double)i * bin_size) + start, b = ceil((double)(i + 1) * bin_size) + start;
    *low = (int64_t)nori__nn_clamp(a, 0, (double)size);
    *high = (int64_t)nori__nn_clamp(b, 0, (double)size);
}

static nori_status max_roi_pool(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "X", 4));
    NORI__TRY(nori__nn_need(call, 1, "rois", 2));
    const nori_tensor *x = call->in[0], *rois = call->in[1], *out = call->out[0];
    double scale = (double)nori__attr_f(call->node, "spatial_scale", 1);
    if (x->type != NORI_DOUBLE || rois->type != NORI_DOUBLE || rois->dims[1] != 5) {
        return nori__nn_type_error(call, x->type != NORI_DOUBLE ? 0 : 1);
    }
    double *y = out->data;
    for (int64_t r = 0; r < rois->dims[0] && out->count > 0; r++) {
        const double *roi = (const double *)rois->data + 5 * r;
        double edge[4], bins[2];
        for (int k = 0; k < 4; k++) {
            edge[k] = round(roi[k + 1] * scale);
        }
        if (!(roi[0] >= 0 && roi[0] < (double)x->dims[0])) {
            return nori__fail(call->err, NORI_ERROR_DATA, "rois (input 1) names image %g of %lld",
                              roi[0], (long long)x->dims[0]);
        }
        for (int k = 0; k < 2; k++) {
            double size = edge[k + 2] - edge[k] + 1;
            bins[k] = (size > 1 ? size : 1) / (double)out->dims[3 - k];
        }
        for (int64_t i = 0; i < out->count / rois->dims[0]; i++) {
            int64_t pw = i % out->dims[3], ph = i / out->dims[3] % out->dims[2];
            int64_t c = i / out->dims[3] / out->dims[2], x0, x1, y0, y1;
            const double *plane = (const double *)x->data +
                                  ((int64_t)roi[0] * x->dims[1] + c) * x->dims[2] * x->dims[3];
            bin_range(edge[0], bins[0], pw, x->dims[3], &x0, &x1);
            bin_range(edge[1], bins[1], ph, x->dims[2], &y0, &y1);
            double most = x1 > x0 && y1 > y0 ? plane[y0 * x->dims[3] + x0] : 0;
            for (int64_t v = y0; v < y1; v++) {
                for (int64_t u = x0; u < x1; u++) {
                    double value = plane[v * x->dims[3] + u];
                    most = value > most || value != value ? value : most;
                }
            }
            *y++ = most;
        }
    }
    return NORI_OK;
}

nori_status nori__ref_MaxRoiPool(nori_call *call)
{
    return nori__nn_double(call, 0, max_roi_pool);
}
