/* qconv.h: 8-bit convolutions over channels-last activations: what the plain operators and those of
 * channels-last networks share. */
#ifndef NORI_PROVIDERS_CPU_QCONV_H
#define NORI_PROVIDERS_CPU_QCONV_H

#include "providers/cpu/patches.h"
#include "providers/cpu/qlines.h"
#include "providers/cpu/ways.h"

/* What prepare makes of a constant weight. */
typedef struct nori__qconv {
    size_t made, per_group, group, taps;
    const nori__way *way;
    bool rows;        /* a term is a row of the kernel with all its channels, else one position */
    bool deep;        /* depthwise: a channel has its own weights */
    nori__qpack w;    /* else */
    bool narrow;      /* deep: weights of 8 bits, in the form of u8_depthwise4 */
    size_t repeat;    /* narrow: so many neighbouring pixels' channels make a block; else 1 */
    void *weights;    /* deep: else in the form of u8_depthwise; and their sums */
    int32_t *sums;
    size_t wide;      /* room for arrays of a channel */
    size_t weights_bytes, sums_bytes;
} nori__qconv;
/* window: the node's; x: its input, channels last or second as last says. */
nori_status nori__qconv_make(const nori_tensor *w, const nori_tensor *zero, int64_t group,
                             const nori__window *window, const nori__type *x, bool last,
                             const nori_allocator *a, nori__qconv *out, nori_error *err);
void nori__qconv_free(nori__qconv *s, const nori_allocator *a);
size_t nori__qconv_bytes(const nori__qconv *s);

/* One run. Activations are planes of channels or channels last, each side as it is said. */
typedef struct nori__qconv_run {
    const nori__qconv *s;
    nori__patches g;
    size_t batch, channels;
    bool x_last, y_last;
    const uint8_t *x;
    uint8_t flip;             /* makes x unsigned: 128 or 0 */
    int32_t x_zero;           /* of x after that */
    void *y;
    nori__u8_finish finish;   /* form, limits; start, scale and shift are of nori__qconv_arrays */
    /* scratch */
    bool copied;              /* the input is copied: pads, signs, odd sizes, or it is planes */
    size_t copy_bytes, y_bytes, array_bytes, offset_bytes;
    size_t zero_bytes, patch_bytes, deep_bytes; /* depthwise without a copy: a row, a thread's, all */
} nori__qconv_run;
/* Bytes that kernels may read behind the last pixel of what is copied for them. */
#define NORI__QCONV_SLACK 64
/* Sizes from shapes as the plain operator has them; false: not a form this takes. */
bool nori__qconv_plan(nori__qconv_run *r, const nori__ref_conv_work *w, int threads,
                      size_t *bytes);
/* work begins with starts, scales and shifts of channels, s->wide of each; the caller fills in scales
 * and shifts where the form has them. */
static inline float *nori__qconv_array(const nori__qconv_run *r, void *work, int which)
{
    return (float *)(void *)((char *)work + (size_t)which * r->array_bytes);
}
/* Where a channel's value stands in such an array. */
static inline size_t nori__qconv_at(const nori__qconv *s, size_t channel)
{
    size_t each = s->made / s->group;
    return s->deep ? channel : channel / each * s->w.wide + channel % each;
}
/* QLinearConv's inputs 1 to 8: whether they are as they must be; scales into work, limits into r.
 * Gives the bias or NULL. */
bool nori__qconv_fits(const nori__qconv *s, const nori_call *call);
const int32_t *nori__qconv_linear(nori__qconv_run *r, const nori_call *call, void *work);
/* Pixels of a row of a depthwise result (qconv_deep.c). */
void nori__qconv_deep_pixels(const nori__qconv_run *r, size_t n, const int64_t *offset,
                             const uint8_t *x, size_t step, void *y);
/* Row h of a depthwise result to y, from the picture x, the last of the input or not; zero: deep_bytes of
 * scratch, of which the first zero_bytes are zero points (qconv_deep.c). */
bool nori__qconv_deep_plan(nori__qconv_run *r, int threads);
void nori__qconv_deep_row(const nori__qconv_run *r, const uint8_t *x, size_t h, bool last, char *y,
                          char *zero, int thread);
void nori__qconv_go(nori_call *call, nori__qconv_run *r, const int32_t *bias, void *work);

#endif
