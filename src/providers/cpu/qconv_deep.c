/* qconv_deep.c: rows of an 8-bit depthwise convolution read straight from channels-last bytes. A row of
 * the kernel above or below the picture reads a row of zero points; the few columns at the sides, and
 * the last pixel where reading whole blocks of channels would leave the picture, are gathered. */
#include "providers/cpu/qconv.h"

bool nori__qconv_deep_plan(nori__qconv_run *r, int threads)
{
    const nori__patches *g = &r->g;
    size_t row, patch;
    if (g->in[0] != 1 || g->kernel[0] != 1 || g->out[0] != 1 || g->in[2] == 0 || g->in[1] == 0 ||
        !nori__mul_size(g->in[2], r->channels, &row) ||
        !nori__mul_size(r->s->taps, r->channels + 2 * sizeof(int64_t), &patch) ||
        row > SIZE_MAX / 4 || patch > SIZE_MAX / 4) {
        return false;
    }
    r->zero_bytes = nori__cpu_round(row + NORI__QCONV_SLACK);
    r->patch_bytes = nori__cpu_round(2 * r->s->taps * sizeof(int64_t)) +
                     nori__cpu_round(r->s->taps * r->channels + NORI__QCONV_SLACK);
    size_t all;
    if (!nori__mul_size(r->patch_bytes, (size_t)threads, &all) || all > SIZE_MAX / 4) {
        return false;
    }
    r->deep_bytes = r->zero_bytes + all;
    return true;
}

/* Few channels fill a part of a vector: neighbouring pixels fill the rest where the kernel moves by one
 * pixel, so that their channels follow one another on both sides. Weights lie there as often. */
static void repeated_pixels(const nori__qconv_run *r, size_t n, const int64_t *offset,
                            const uint8_t *x, char *y)
{
    const nori__qconv *s = r->s;
    const nori__kernels *kern = nori__kernels_get();
    size_t element = r->finish.form == NORI__U8_BYTES ? 1 : sizeof(int32_t);
    size_t wide = s->repeat * s->made, lines = n / s->repeat, rest = n % s->repeat;
    nori__u8_finish f = r->finish;
    f.channels = wide;
    kern->u8_depthwise4(lines, s->taps, offset, x, wide, s->weights, y, wide, &f);
    if (rest > 0) {
        f.channels = rest * s->made;
        kern->u8_depthwise4(1, s->taps, offset, x + lines * wide, wide, s->weights,
                            y + lines * wide * element, wide, &f);
    }
}

void nori__qconv_deep_pixels(const nori__qconv_run *r, size_t n, const int64_t *offset,
                             const uint8_t *x, size_t step, void *y)
{
    const nori__kernels *kern = nori__kernels_get();
    const nori__qconv *s = r->s;
    if (s->repeat > 1 && step == s->made) {
        repeated_pixels(r, n, offset, x, y);
    } else if (s->narrow) {
        kern->u8_depthwise4(n, s->taps, offset, x, step, s->weights, y, s->made, &r->finish);
    } else {
        kern->u8_depthwise(n, s->taps, offset, x, step, s->weights, y, s->made, &r->finish);
    }
}

typedef struct deep_row {
    const nori__qconv_run *r;
    const uint8_t *x, *zero;
    int64_t top;             /* input row under the kernel's first */
    int64_t *offset, *place; /* of taps in the picture; in the patch */
    uint8_t *patch;
    char *y;
    size_t element;
} deep_row;

/* One pixel whose kernel reaches over a side. */
static void side_pixel(const deep_row *d, size_t w)
{
    const nori__qconv_run *r = d->r;
    const nori__patches *g = &r->g;
    for (size_t t = 0; t < r->s->taps; t++) {
        int64_t i = d->top + (int64_t)(t / g->kernel[2] * g->dilation[1]);
        int64_t j = (int64_t)(w * g->stride[2] + t % g->kernel[2] * g->dilation[2]) -
                    (int64_t)g->pad[2];
        uint8_t *to = d->patch + t * r->channels;
        if (i < 0 || j < 0 || i >= (int64_t)g->in[1] || j >= (int64_t)g->in[2]) {
            memset(to, r->x_zero, r->channels);
        } else {
            memcpy(to, d->x + ((size_t)i * g->in[2] + (size_t)j) * r->channels, r->channels);
        }
    }
    nori__qconv_deep_pixels(r, 1, d->place, d->patch, 0, d->y + w * r->s->made * d->element);
}

/* Columns [*first, *end) lie over the picture with the whole kernel. */
static void inner_columns(const nori__qconv_run *r, bool guarded, size_t *first, size_t *end)
{
    const nori__patches *g = &r->g;
    size_t reach = (g->kernel[2] - 1) * g->dilation[2] + (guarded ? 1 : 0);
    size_t have = g->in[2] + g->pad[2];
    *first = (g->pad[2] + g->stride[2] - 1) / g->stride[2];
    *first = *first < g->out[2] ? *first : g->out[2];
    *end = have > reach ? (have - 1 - reach) / g->stride[2] + 1 : 0;
    *end = *end < g->out[2] ? *end : g->out[2];
    *end = *end > *first ? *end : *first;
}

void nori__qconv_deep_row(const nori__qconv_run *r, const uint8_t *x, size_t h, bool last, char *y,
                          char *zero, int thread)
{
    const nori__patches *g = &r->g;
    const nori__kernels *kern = nori__kernels_get();
    size_t taps = r->s->taps, row = g->in[2] * r->channels, first, end;
    char *own = zero + r->zero_bytes + (size_t)thread * r->patch_bytes;
    deep_row d = {.r = r, .x = x, .zero = (const uint8_t *)zero, .y = y,
                  .top = (int64_t)(h * g->stride[1]) - (int64_t)g->pad[1],
                  .offset = (int64_t *)(void *)own, .place = (int64_t *)(void *)own + taps,
                  .patch = (uint8_t *)own + nori__cpu_round(2 * taps * sizeof(int64_t)),
                  .element = r->finish.form == NORI__U8_BYTES ? 1 : sizeof(int32_t)};
    bool ends = false; /* reads the last row of the picture */
    for (size_t t = 0; t < taps; t++) {
        int64_t i = d.top + (int64_t)(t / g->kernel[2] * g->dilation[1]);
        bool inside = i >= 0 && i < (int64_t)g->in[1];
        const uint8_t *from = inside ? x + (size_t)i * row : d.zero;
        d.offset[t] = (int64_t)((uintptr_t)from - (uintptr_t)x) +
                      (int64_t)(t % g->kernel[2] * g->dilation[2] * r->channels);
        d.place[t] = (int64_t)(t * r->channels);
        ends = ends || i == (int64_t)g->in[1] - 1;
    }
    inner_columns(r, last && ends && r->channels % kern->u8_deep != 0, &first, &end);
    memset(d.patch + taps * r->channels, 0, NORI__QCONV_SLACK);
    for (size_t w = 0; w < first; w++) {
        side_pixel(&d, w);
    }
    if (end > first) {
        nori__qconv_deep_pixels(r, end - first, d.offset,
                                x + (first * g->stride[2] - g->pad[2]) * r->channels,
                                g->stride[2] * r->channels, y + first * r->s->made * d.element);
    }
    for (size_t w = end; w < g->out[2]; w++) {
        side_pixel(&d, w);
    }
}
