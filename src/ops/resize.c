/* resize.c: arguments of Resize (10 to 19) and Upsample (1 to 9).
 *
 * At length 1: pytorch_half_pixel and align_corners read position 0, tf_crop_and_resize the middle
 * of its region, as the text has it; the other modes have no exception. Sizes from scales are
 * floor(size * scale), computed in float32 as exporters do. */
#include "ops/resize.h"

#include <math.h>

static const char *const modes[] = {"nearest", "linear", "cubic"};
static const char *const coords[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                     "align_corners", "asymmetric", "tf_crop_and_resize",
                                     "tf_half_pixel_for_nn"};
static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil",
                                     NORI__ROUND_OUTWARD_TEXT};

static nori_status pick(const nori__node *node, nori_error *err, const char *name,
                        const char *otherwise, const char *const *list, size_t n, int *out)
{
    const char *text = nori__attr_s(node, name, otherwise);
    for (size_t i = 0; i < n; i++) {
        if (nori__same(text, list[i])) {
            *out = (int)i;
            return NORI_OK;
        }
    }
    if (nori__same(text, "bilinear")) { /* in files before opset 9 */
        *out = NORI__LINEAR;
        return NORI_OK;
    }
    return nori__fail(err, NORI_ERROR_MODEL, "%s is \"%s\", which is not known", name, text);
}

nori_status nori__resize_read(const nori__node *node, nori_error *err, nori__resize *r)
{
    int mode = 0, how = 0, round = 0;
    memset(r, 0, sizeof *r);
    bool old = nori__same(node->op_type, "Upsample") || (node->version > 0 && node->version < 11);
    NORI__TRY(pick(node, err, "mode", "nearest", modes, NORI__COUNT(modes), &mode));
    NORI__TRY(pick(node, err, "coordinate_transformation_mode",
                   old ? "asymmetric" : "half_pixel", coords, NORI__COUNT(coords), &how));
    const char *otherwise = !old                                       ? "round_prefer_floor"
                            : nori__same(node->op_type, "Upsample") ? "floor"
                                                                     : NORI__ROUND_OUTWARD_TEXT;
    NORI__TRY(pick(node, err, "nearest_mode", otherwise, rounds,
                   NORI__COUNT(rounds), &round));
    r->mode = (nori__resize_mode)mode;
    r->coords = (nori__resize_coords)how;
    r->round = (nori__resize_round)round;
    r->antialias = nori__attr_i(node, "antialias", 0) != 0;
    r->exclude_outside = nori__attr_i(node, "exclude_outside", 0) != 0;
    r->cubic_a = (double)nori__attr_f(node, "cubic_coeff_a", -0.75f);
    r->extrapolation = (double)nori__attr_f(node, "extrapolation_value", 0);
    r->roi_in = old ? UINT32_MAX : 1;
    r->scales_in = old ? 1 : 2;
    r->sizes_in = old ? UINT32_MAX : 3;
    return NORI_OK;
}

/* Which axis each entry of scales, sizes, roi is about; count of entries. */
static nori_status read_axes(const nori__node *node, nori_error *err, int rank, int *axes, int *n)
{
    size_t count;
    const int64_t *list = nori__attr_ints(node, "axes", &count);
    *n = rank;
    for (int i = 0; i < rank; i++) {
        axes[i] = i;
    }
    if (!list || count == 0) {
        return NORI_OK;
    }
    if (count > (size_t)rank) {
        return nori__fail(err, NORI_ERROR_MODEL, "axes has %zu values for rank %d", count, rank);
    }
    *n = (int)count;
    for (int i = 0; i < *n; i++) {
        NORI__TRY(nori__fix_axis(err, list[i], rank, &axes[i]));
    }
    return NORI_OK;
}

static nori_status from_scales(nori_error *err, const int64_t *in, const int *axes, int n,
                               const float *values, nori__resize *r)
{
    for (int i = 0; i < n; i++) {
        int d = axes[i];
        float s = values[i];
        if (!(s > 0) || !isfinite(s)) {
            return nori__fail(err, NORI_ERROR_MODEL, "scale %g of axis %d is not above 0",
                              (double)s, d);
        }
        double part = r->coords == NORI__TF_CROP ? r->end[d] - r->start[d] : 1;
        r->scale[d] = (double)s;
        r->out[d] = -1;
        if (in[d] >= 0) {
            float size = floorf((float)in[d] * (float)part * s);
            if (!(size >= 0 && size < 9.0e18f)) {
                return nori__fail(err, NORI_ERROR_MODEL, "scale %g makes axis %d too large",
                                  (double)s, d);
            }
            r->out[d] = (int64_t)size;
        }
    }
    return NORI_OK;
}

/* not_larger, not_smaller: one scale for all axes, the least or the most that sizes ask for. An axis
 * of size 0 keeps it, and has no say. */
static void keep_aspect(const char *policy, const int64_t *in, const int *axes, int n,
                        const int64_t *sizes, nori__resize *r)
{
    bool larger = nori__same(policy, "not_smaller");
    double scale = -1;
    for (int i = 0; i < n; i++) {
        int d = axes[i];
        if (in[d] < 0 || sizes[i] < 0) {
            return; /* out keeps -1 or the size asked for */
        }
        if (in[d] == 0) {
            continue;
        }
        double s = (double)sizes[i] / (double)in[d];
        if (scale < 0 || (larger ? s > scale : s < scale)) {
            scale = s;
        }
    }
    scale = scale < 0 ? 1 : scale;
    for (int i = 0; i < n; i++) {
        r->scale[axes[i]] = scale;
        r->out[axes[i]] = (int64_t)floor(scale * (double)in[axes[i]] + 0.5);
    }
}

static nori_status from_sizes(const nori__node *node, nori_error *err, const int64_t *in,
                              const int *axes, int n, const int64_t *sizes, nori__resize *r)
{
    const char *policy = nori__attr_s(node, "keep_aspect_ratio_policy", "stretch");
    bool stretch = nori__same(policy, "stretch");
    if (!stretch && !nori__same(policy, "not_larger") && !nori__same(policy, "not_smaller")) {
        return nori__fail(err, NORI_ERROR_MODEL, "keep_aspect_ratio_policy is \"%s\"", policy);
    }
    for (int i = 0; i < n; i++) {
        r->out[axes[i]] = stretch ? sizes[i] : -1;
        if (in[axes[i]] > 0 && sizes[i] >= 0) {
            r->scale[axes[i]] = (double)sizes[i] / (double)in[axes[i]];
        }
    }
    if (!stretch) {
        keep_aspect(policy, in, axes, n, sizes, r);
    }
    return NORI_OK;
}

/* Scales that old Upsample has as attributes. */
static int attribute_scales(const nori__node *node, int rank, float *out)
{
    size_t n;
    const float *list = nori__attr_floats(node, "scales", &n);
    if (list && n == (size_t)rank) {
        memcpy(out, list, n * sizeof *out);
        return rank;
    }
    if (nori__attr_find(node, "height_scale") && rank == 4) {
        out[0] = out[1] = 1;
        out[2] = nori__attr_f(node, "height_scale", 1);
        out[3] = nori__attr_f(node, "width_scale", 1);
        return rank;
    }
    return -1;
}

nori_status nori__resize_sizes(const nori__node *node, nori_error *err, int rank,
                               const int64_t *in, const nori_tensor *roi,
                               const nori_tensor *scales, const int64_t *sizes, int n_sizes,
                               nori__resize *r)
{
    int axes[NORI_MAX_RANK], n;
    float values[NORI_MAX_RANK];
    NORI__TRY(read_axes(node, err, rank, axes, &n));
    for (int d = 0; d < rank; d++) {
        r->out[d] = in[d];
        r->scale[d] = r->end[d] = 1;
        r->start[d] = 0;
    }
    if (roi && roi->count > 0 && r->coords == NORI__TF_CROP) {
        if (roi->count != 2 * n) {
            return nori__fail(err, NORI_ERROR_MODEL, "roi has %lld values, expected %d",
                              (long long)roi->count, 2 * n);
        }
        for (int i = 0; i < n; i++) {
            r->start[axes[i]] = nori__tensor_get_f64(roi, i);
            r->end[axes[i]] = nori__tensor_get_f64(roi, n + i);
        }
    }
    if (n_sizes > 0) {
        return n_sizes == n ? from_sizes(node, err, in, axes, n, sizes, r)
                            : nori__fail(err, NORI_ERROR_MODEL, "sizes has %d values, expected %d",
                                         n_sizes, n);
    }
    int n_scales = -1;
    if (scales && scales->count > 0) {
        if (scales->count != n) {
            return nori__fail(err, NORI_ERROR_MODEL, "scales has %lld values, expected %d",
                              (long long)scales->count, n);
        }
        n_scales = n;
        for (int i = 0; i < n; i++) {
            values[i] = (float)nori__tensor_get_f64(scales, i);
        }
    } else {
        n_scales = attribute_scales(node, rank, values);
    }
    if (n_scales > 0) {
        return from_scales(err, in, axes, n, values, r);
    }
    for (int i = 0; i < n; i++) {
        r->out[axes[i]] = -1; /* content not known yet */
    }
    return NORI_OK;
}
