/* window.c: sizes and pads of sliding windows, as the Conv, ConvTranspose and pooling texts give
 * them. */
#include "ops/window.h"

#define LIMIT INT32_MAX

static nori_status read_list(const nori__node *node, nori_error *err, const char *name, int n,
                             int64_t least, int64_t *out, bool *there)
{
    size_t count;
    const int64_t *v = nori__attr_ints(node, name, &count);
    *there = v != NULL && count > 0;
    if (!*there) {
        return NORI_OK;
    }
    if (count != (size_t)n) {
        return nori__fail(err, NORI_ERROR_MODEL, "%s has %zu values, expected %d", name, count, n);
    }
    for (int i = 0; i < n; i++) {
        if (v[i] < least || v[i] > LIMIT) {
            return nori__fail(err, NORI_ERROR_MODEL, "%s[%d] is %lld, expected %lld to %lld", name,
                              i, (long long)v[i], (long long)least, (long long)LIMIT);
        }
        out[i] = v[i];
    }
    return NORI_OK;
}

static nori_status read_auto_pad(const nori__node *node, nori_error *err, nori__window *w)
{
    const char *text = nori__attr_s(node, "auto_pad", "NOTSET");
    w->auto_pad = NORI__PAD_GIVEN;
    if (nori__same(text, "VALID")) {
        w->auto_pad = NORI__PAD_VALID;
    } else if (nori__same(text, "SAME_UPPER")) {
        w->auto_pad = NORI__PAD_UPPER;
    } else if (nori__same(text, "SAME_LOWER")) {
        w->auto_pad = NORI__PAD_LOWER;
    } else if (!nori__same(text, "NOTSET") && !nori__same(text, "")) {
        return nori__fail(err, NORI_ERROR_MODEL,
                          "auto_pad is \"%s\", expected NOTSET, SAME_UPPER, SAME_LOWER or VALID",
                          text);
    }
    return NORI_OK;
}

nori_status nori__window_read(const nori__node *node, nori_error *err, int n,
                              const int64_t *weight, nori__window *w)
{
    memset(w, 0, sizeof *w);
    if (n < 0 || n > NORI__SPATIAL) {
        return nori__fail(err, NORI_ERROR_MODEL, "%d spatial dimensions, expected 0 to %d", n,
                          NORI__SPATIAL);
    }
    w->n = n;
    bool there;
    for (int i = 0; i < n; i++) {
        w->kernel[i] = weight ? weight[i] : -1;
        w->stride[i] = w->dilation[i] = 1;
    }
    NORI__TRY(read_list(node, err, "kernel_shape", n, 1, w->kernel, &there));
    if (!there && !weight) {
        return nori__fail(err, NORI_ERROR_MODEL, "the attribute kernel_shape is missing");
    }
    for (int i = 0; i < n && weight; i++) {
        if (weight[i] >= 0 && w->kernel[i] != weight[i]) {
            return nori__fail(err, NORI_ERROR_MODEL,
                              "kernel_shape[%d] is %lld but the weight has %lld", i,
                              (long long)w->kernel[i], (long long)weight[i]);
        }
        if (w->kernel[i] == 0 || w->kernel[i] > LIMIT) {
            return nori__fail(err, NORI_ERROR_MODEL, "kernel size %lld on axis %d",
                              (long long)w->kernel[i], i);
        }
    }
    NORI__TRY(read_list(node, err, "strides", n, 1, w->stride, &there));
    NORI__TRY(read_list(node, err, "dilations", n, 1, w->dilation, &there));
    NORI__TRY(read_auto_pad(node, err, w));
    w->ceil = nori__attr_i(node, "ceil_mode", 0) != 0;
    if (w->auto_pad == NORI__PAD_GIVEN && n > 0) {
        int64_t pads[2 * NORI__SPATIAL] = {0};
        NORI__TRY(read_list(node, err, "pads", 2 * n, -LIMIT, pads, &there));
        memcpy(w->begin, pads, (size_t)n * sizeof pads[0]);
        memcpy(w->end, pads + n, (size_t)n * sizeof pads[0]);
    }
    for (int i = 0; i < n; i++) {
        if (w->kernel[i] > 0 && (w->kernel[i] - 1) > (LIMIT - 1) / w->dilation[i]) {
            return nori__fail(err, NORI_ERROR_MODEL, "kernel size %lld by dilation %lld on axis %d "
                              "is too large", (long long)w->kernel[i], (long long)w->dilation[i],
                              i);
        }
    }
    return NORI_OK;
}

/* Splits total pads over both sides; an odd one goes to the end with SAME_UPPER. */
static void split_pads(nori__window *w, int d, int64_t total, bool upper)
{
    int64_t small = total / 2;
    w->begin[d] = upper ? small : total - small;
    w->end[d] = total - w->begin[d];
}

nori_status nori__window_out(nori__window *w, nori_error *err, int d, int64_t in, int64_t *out)
{
    *out = -1;
    if (in < 0) {
        return NORI_OK;
    }
    if (in > INT64_MAX / 4) {
        return nori__fail(err, NORI_ERROR_MODEL, "size %lld on spatial axis %d is too large",
                          (long long)in, d);
    }
    int64_t s = w->stride[d];
    bool same = w->auto_pad == NORI__PAD_UPPER || w->auto_pad == NORI__PAD_LOWER;
    if (same) {
        *out = in == 0 ? 0 : (in - 1) / s + 1;
        if (w->kernel[d] < 0) {
            return NORI_OK;
        }
        int64_t total = in == 0 ? 0 : (*out - 1) * s + nori__window_extent(w, d) - in;
        split_pads(w, d, total > 0 ? total : 0, w->auto_pad == NORI__PAD_UPPER);
        return NORI_OK;
    }
    if (w->kernel[d] < 0) {
        return NORI_OK;
    }
    int64_t room = in + w->begin[d] + w->end[d] - nori__window_extent(w, d);
    if (room < 0) {
        if (in == 0) {
            *out = 0;
            return NORI_OK;
        }
        return nori__fail(err, NORI_ERROR_MODEL, "a window of %lld does not fit spatial axis %d of "
                          "size %lld with pads %lld and %lld",
                          (long long)nori__window_extent(w, d), d, (long long)in,
                          (long long)w->begin[d], (long long)w->end[d]);
    }
    *out = room / s + 1;
    if (w->ceil && w->auto_pad == NORI__PAD_GIVEN && room % s != 0) {
        /* A window that would begin in the padding at the end is left out. */
        *out += *out * s < in + w->begin[d];
    }
    return NORI_OK;
}

nori_status nori__window_out_transposed(nori__window *w, const nori__node *node, nori_error *err,
                                        int d, int64_t in, int64_t *out)
{
    size_t n_extra, n_shape;
    const int64_t *extra = nori__attr_ints(node, "output_padding", &n_extra);
    const int64_t *shape = nori__attr_ints(node, "output_shape", &n_shape);
    *out = -1;
    if (extra && n_extra != 0 && n_extra != (size_t)w->n) {
        return nori__fail(err, NORI_ERROR_MODEL, "output_padding has %zu values, expected %d",
                          n_extra, w->n);
    }
    int64_t add = extra && n_extra ? extra[d] : 0;
    if (add < 0 || add > LIMIT) {
        return nori__fail(err, NORI_ERROR_MODEL, "output_padding[%d] is %lld", d, (long long)add);
    }
    /* Old files give output_shape with batch and channels. */
    size_t skip = shape && n_shape == (size_t)w->n + 2 ? 2 : 0;
    if (shape && n_shape != 0 && n_shape - skip != (size_t)w->n) {
        return nori__fail(err, NORI_ERROR_MODEL, "output_shape has %zu values, expected %d",
                          n_shape, w->n);
    }
    int64_t want = shape && n_shape ? shape[skip + (size_t)d] : -1;
    if (shape && n_shape && (want < 0 || want > INT64_MAX / 4)) {
        return nori__fail(err, NORI_ERROR_MODEL, "output_shape[%d] is %lld", d, (long long)want);
    }
    *out = want;
    if (in < 0 || w->kernel[d] < 0) {
        return NORI_OK;
    }
    if (in > LIMIT) {
        return nori__fail(err, NORI_ERROR_MODEL, "size %lld on spatial axis %d is too large",
                          (long long)in, d);
    }
    bool same = w->auto_pad == NORI__PAD_UPPER || w->auto_pad == NORI__PAD_LOWER;
    if (want < 0 && same) {
        want = in * w->stride[d]; /* output_padding takes part in the pads only */
    }
    int64_t full = in == 0 ? 0 : (in - 1) * w->stride[d] + add + nori__window_extent(w, d);
    if (want >= 0) {
        /* The text gives the odd pad to the end for SAME_UPPER, to the beginning otherwise. Where
         * the wanted size is larger than what is computed, zeros (bias) follow. */
        int64_t total = full - want;
        split_pads(w, d, total > 0 ? total : 0, w->auto_pad == NORI__PAD_UPPER);
        *out = want;
        return NORI_OK;
    }
    *out = full - w->begin[d] - w->end[d];
    if (*out < 0) {
        if (in == 0) {
            *out = 0;
            return NORI_OK;
        }
        return nori__fail(err, NORI_ERROR_MODEL, "pads %lld and %lld leave nothing of spatial axis "
                          "%d", (long long)w->begin[d], (long long)w->end[d], d);
    }
    return NORI_OK;
}
