/* xnnpack_int8_conv.c: convolutions and products of 8-bit integers.
 *
 * int8 weights of zero point 0 go to XNNPACK's signed kernels, with one scale a channel where wanted;
 * so do uint8 weights of zero point 128. Others go to the unsigned kernels, which take any zero
 * point but one scale. Activations follow the weights by their sign bit. */
#include <math.h>

#include "providers/xnnpack/xnnpack_int8.h"

bool nori__xp_quant(const nori__node *n, uint32_t scale, uint32_t zero, const nori__value *v,
                    xp_quant *q)
{
    const nori_tensor *s = nori__xp_const(n, scale), *z = nori__xp_const(n, zero);
    if (!nori__xp_is_8bit(v) || !s || s->type != NORI_FLOAT || s->count != 1 ||
        (nori__xp_in(n, zero) && (!z || z->count != 1 || z->type != v->type.elem))) {
        return false;
    }
    bool is_signed = v->type.elem == NORI_INT8;
    q->scale = *(const float *)s->data;
    q->zero = (z ? (int32_t)nori__tensor_get_i64(z, 0) : 0) - (is_signed ? 0 : 128);
    q->form = is_signed ? 0 : XP_FLIP;
    return isnormal(q->scale) && q->scale > 0;
}

/* ---- which kernels ---- */

static int32_t zero_at(const xp_conv8 *c, int64_t i)
{
    return c->zero ? (int32_t)nori__tensor_get_i64(c->zero, c->zero->count == 1 ? 0 : i) : 0;
}

/* Whether all zero points are the middle of the type. */
static bool symmetric(const xp_conv8 *c)
{
    int32_t middle = c->weight->type == NORI_INT8 ? 0 : 128;
    bool all = true;
    for (int64_t i = 0; i < (c->zero ? c->zero->count : 1); i++) {
        all = all && zero_at(c, i) == middle;
    }
    return all;
}

static xp_kind kind_of(const xp_conv8 *c)
{
    return !symmetric(c) ? XP_QU8 : c->scale->count > 1 ? XP_QC8 : XP_QS8;
}

static float scale_at(const xp_conv8 *c, size_t channel)
{
    return ((const float *)c->scale->data)[c->scale->count == 1 ? 0 : channel];
}

const char *nori__xp_conv8_fits(const xp_conv8 *c)
{
    size_t made = c->w.groups * c->w.group_out;
    if ((c->weight->type != NORI_INT8 && c->weight->type != NORI_UINT8) || c->weight->count == 0 ||
        c->scale->type != NORI_FLOAT) {
        return "its weights are no 8-bit constants";
    }
    if ((c->scale->count != 1 && (size_t)c->scale->count != made) ||
        (c->zero && (c->zero->type != c->weight->type ||
                     (c->zero->count != 1 && (size_t)c->zero->count != made)))) {
        return "its scales are neither one nor one a channel";
    }
    if (c->bias && ((size_t)c->bias->count != made ||
                    (c->bias->type != NORI_INT32 && c->bias->type != NORI_FLOAT))) {
        return "its bias does not fit";
    }
    if (kind_of(c) == XP_QU8 && (c->scale->count > 1 || (c->zero && c->zero->count > 1))) {
        return "XNNPACK has one scale for weights whose zero point is not 0";
    }
    for (size_t i = 0; i < (size_t)c->scale->count; i++) {
        float s = scale_at(c, i), r = c->x.scale * s / c->y.scale;
        if (!isnormal(s) || s <= 0 || !(r >= 0x1p-32f) || r >= 256) {
            return "its scales are further apart than XNNPACK takes";
        }
    }
    return c->w.transposed ? "it is transposed" : NULL;
}

/* ---- making ---- */

static void pack_weights(const xp_conv8 *c, bool flip, uint8_t *out)
{
    if (c->rows) {
        xp_move m = {.rank = 2, .width = 1, .flip = flip};
        size_t depth = c->w.group_in, made = c->w.group_out;
        m.dims[0] = made;
        m.dims[1] = depth;
        m.in[0] = c->turned ? depth : 1;
        m.in[1] = c->turned ? 1 : made;
        m.out[0] = depth;
        m.out[1] = 1;
        nori__xp_move_run(&m, c->weight->data, out, NULL);
        return;
    }
    nori__xp_pack(c->weight, &c->w, 1, out);
    for (size_t i = 0; i < c->weight->bytes && flip; i++) {
        out[i] ^= 0x80;
    }
}

/* Bias and scales of a channel each. */
static void fill_channels(const xp_conv8 *c, size_t made, int32_t *bias, float *scales)
{
    for (size_t i = 0; i < made; i++) {
        scales[i] = scale_at(c, i);
        if (c->bias && c->bias->type == NORI_FLOAT) {
            double q = nearbyint((double)((const float *)c->bias->data)[i] /
                                 ((double)c->x.scale * (double)scales[i]));
            bias[i] = q >= INT32_MAX ? INT32_MAX : q <= INT32_MIN ? INT32_MIN : (int32_t)q;
        } else {
            bias[i] = c->bias ? ((const int32_t *)c->bias->data)[i] : 0;
        }
    }
}

#define GEOMETRY                                                                                  \
    w->begin[0], w->end[1], w->end[0], w->begin[1], w->kernel[0], w->kernel[1], w->stride[0],     \
        w->stride[1], w->dilation[0], w->dilation[1], w->groups, w->group_in, w->group_out,       \
        w->groups * w->group_in, made

static enum xnn_status create(const xp_conv8 *c, xp_kind kind, const uint8_t *packed,
                              const int32_t *bias, const float *scales, xnn_operator_t *op)
{
    const xp_window *w = &c->w;
    size_t made = w->groups * w->group_out;
    const int8_t *signed_weights = (const int8_t *)packed;
    if (kind == XP_QC8) {
        return XNN(create_convolution2d_nhwc_qc8)(GEOMETRY, (int8_t)c->x.zero, c->x.scale, scales,
                                                 signed_weights, bias, (int8_t)c->y.zero, c->y.scale,
                                                 c->low, c->high, 0, op);
    }
    if (kind == XP_QS8) {
        return XNN(create_convolution2d_nhwc_qs8)(GEOMETRY, (int8_t)c->x.zero, c->x.scale, scales[0],
                                                 signed_weights, bias, (int8_t)c->y.zero, c->y.scale,
                                                 c->low, c->high, 0, op);
    }
    uint8_t zero = (uint8_t)(zero_at(c, 0) + (c->weight->type == NORI_INT8 ? 128 : 0));
    return XNN(create_convolution2d_nhwc_qu8)(GEOMETRY, (uint8_t)(c->x.zero + 128), c->x.scale, zero,
                                             scales[0], packed, bias, (uint8_t)(c->y.zero + 128),
                                             c->y.scale, (uint8_t)(c->low + 128),
                                             (uint8_t)(c->high + 128), 0, op);
}

static nori_status create_step(xp_step *s, const xp_conv8 *c, xp_kind kind, nori_error *err)
{
    size_t made = c->w.groups * c->w.group_out, per_channel, bytes;
    char *room = NULL;
    if (!nori__mul_size(made, sizeof(int32_t) + sizeof(float), &per_channel) ||
        !nori__add_size(per_channel, c->weight->bytes, &bytes) ||
        !(room = nori__alloc(&nori__malloc, bytes))) {
        return nori__no_memory(err);
    }
    int32_t *bias = (int32_t *)(void *)room;
    float *scales = (float *)(void *)(bias + made);
    uint8_t *packed = (uint8_t *)(scales + made);
    bool is_signed = kind != XP_QU8;
    fill_channels(c, made, bias, scales);
    pack_weights(c, (c->weight->type == NORI_INT8) != is_signed, packed);
    enum xnn_status status = create(c, kind, packed, bias, scales, &s->op);
    nori__release(&nori__malloc, room, bytes);
    return nori__xp_check(status, "xnn_create of an 8-bit convolution", s->node, err);
}

nori_status nori__xp_conv8(xp_part *p, const nori__node *n, uint32_t in, uint32_t out,
                           const xp_conv8 *c, nori_error *err)
{
    xp_kind kind = kind_of(c);
    unsigned sign = kind == XP_QU8 ? XP_FLIP : 0, layout = c->rows ? 0 : XP_LAST;
    uint32_t from = nori__xp_want(p, in, layout | (c->x.form ^ sign));
    uint32_t to = nori__xp_make(p, out, layout | (c->y.form ^ sign));
    xp_step *s = nori__xp_conv_step(p, n, from, to, &c->w, kind);
    if (!s) {
        return nori__no_memory(err);
    }
    return create_step(s, c, kind, err);
}
