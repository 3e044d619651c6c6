/* xnnpack_conv.c: convolutions and transposed ones over one or two dimensions. XNNPACK itself takes
 * its depthwise kernels where groups have one channel. */
#include <math.h>

#include "ops/window.h"
#include "providers/xnnpack/xnnpack.h"

/* ---- geometry ---- */

/* One dimension is a picture of height 1. */
static void spread(const nori__window *from, xp_window *to)
{
    for (int i = 0; i < 2; i++) {
        int d = i - (2 - from->n);
        to->begin[i] = d < 0 ? 0 : (uint32_t)from->begin[d];
        to->end[i] = d < 0 ? 0 : (uint32_t)from->end[d];
        to->kernel[i] = d < 0 ? 1 : (uint32_t)from->kernel[d];
        to->stride[i] = d < 0 ? 1 : (uint32_t)from->stride[d];
        to->dilation[i] = d < 0 ? 1 : (uint32_t)from->dilation[d];
    }
}

/* Pads that follow from sizes are told now, where those are known. */
static const char *same_pads(const nori__node *n, nori__window *w, bool transposed)
{
    const nori__value *x = n->inputs[0];
    for (int d = 0; d < w->n; d++) {
        int64_t in = x->type.dims[d + 2].value, out;
        bool open = w->auto_pad == NORI__PAD_UPPER || w->auto_pad == NORI__PAD_LOWER;
        if (transposed) {
            open = open || nori__attr_find(n, "output_shape");
        }
        if (open && in < 0) {
            return "its pads follow from sizes that are open";
        }
        nori_error ignored = {0};
        nori_status status =
            in < 0 ? NORI_OK
            : transposed ? nori__window_out_transposed(w, n, &ignored, d, in, &out)
                         : nori__window_out(w, &ignored, d, in, &out);
        if (status != NORI_OK) {
            return "its window does not fit its input";
        }
        if (w->begin[d] < 0 || w->end[d] < 0) {
            return "it has pads below 0";
        }
    }
    return NULL;
}

const char *nori__xp_window(const nori__node *n, const nori_tensor *weight, xp_window *out)
{
    const nori__value *x = n->inputs[0];
    nori__window w;
    if (x->type.rank != 3 && x->type.rank != 4) {
        return "XNNPACK has one or two spatial dimensions";
    }
    bool transposed = nori__node_is(n, NORI__OP_ONNX_ConvTranspose);
    if (nori__window_read(n, NULL, x->type.rank - 2, weight ? weight->dims + 2 : NULL, &w) !=
        NORI_OK) {
        return "its window cannot be read";
    }
    const char *why = same_pads(n, &w, transposed);
    *out = (xp_window){.ceil = w.ceil, .groups = 1, .transposed = transposed};
    spread(&w, out);
    int64_t groups = nori__attr_i(n, "group", 1);
    if (!why && weight) {
        int64_t made = transposed ? weight->dims[1] : weight->dims[0];
        if (groups < 1 || groups > INT32_MAX || weight->count == 0 || weight->dims[0] % groups != 0) {
            return "its groups and weights do not fit";
        }
        out->groups = (uint32_t)groups;
        out->group_in = (size_t)(transposed ? weight->dims[0] / groups : weight->dims[1]);
        out->group_out = (size_t)(transposed ? made : made / groups);
    }
    return why;
}

void nori__xp_window_rows(const nori_tensor *matrix, bool turned, xp_window *w)
{
    *w = (xp_window){.kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    w->group_in = (size_t)matrix->dims[turned ? 1 : 0];
    w->group_out = (size_t)matrix->dims[turned ? 0 : 1];
}

/* What lies plain is rows: a picture of one column. */
xp_image nori__xp_image(const xp_part *p, uint32_t buffer)
{
    xp_shape s = nori__xp_shape(p, buffer);
    if (!(nori__xp_buffer(p, buffer)->form & XP_LAST)) {
        size_t c = s.d[s.rank - 1];
        return (xp_image){.n = 1, .h = c ? s.count / c : 0, .w = 1, .c = c};
    }
    return (xp_image){.n = s.d[0], .h = s.rank == 4 ? s.d[1] : 1, .w = s.d[s.rank - 2],
                      .c = s.d[s.rank - 1]};
}

/* Conv [group out][group in][h][w], ConvTranspose [group in][out][h][w]: to [group out][h][w][in]. */
void nori__xp_pack(const nori_tensor *weight, const xp_window *w, unsigned width, void *out)
{
    size_t taps = (size_t)w->kernel[0] * w->kernel[1], in = w->group_in, made = w->group_out;
    xp_move m = {.rank = 4, .width = width};
    m.dims[0] = w->groups;
    m.dims[1] = made;
    m.dims[2] = taps;
    m.dims[3] = in;
    m.in[0] = in * made * taps;
    m.in[1] = w->transposed ? taps : in * taps;
    m.in[2] = 1;
    m.in[3] = w->transposed ? made * taps : taps;
    m.out[0] = in * made * taps;
    m.out[1] = taps * in;
    m.out[2] = in;
    m.out[3] = 1;
    nori__xp_move_run(&m, weight->data, out, NULL);
}

/* ---- steps ---- */

typedef struct conv_args {
    xp_window w;
    xp_kind kind;
} conv_args;

static nori_status setup_transposed(xp_part *p, xp_step *s, const xp_window *w, nori_error *err)
{
    xp_image x = nori__xp_image(p, s->in[0]), y = nori__xp_image(p, s->out);
    size_t in[2] = {x.h, x.w}, out[2] = {y.h, y.w};
    uint32_t more[2];
    for (int d = 0; d < 2; d++) {
        size_t full = (in[d] - 1) * w->stride[d] + (size_t)(w->kernel[d] - 1) * w->dilation[d] + 1;
        size_t least = full - w->begin[d] - w->end[d];
        if (full < (size_t)w->begin[d] + w->end[d] || out[d] < least ||
            out[d] - least >= w->stride[d]) {
            return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                              "XNNPACK makes no output of %zu from %zu with this window", out[d],
                              in[d]);
        }
        more[d] = (uint32_t)(out[d] - least);
    }
    XP_TRY(XNN(setup_deconvolution2d_nhwc_f32)(s->op, x.n, x.h, x.w, more[0], more[1],
                                              nori__xp_floats(p, s->in[0]),
                                              nori__xp_floats(p, s->out), nori__xp_pool(p)),
           s->node, err);
    return NORI_OK;
}

static nori_status setup_conv(xp_part *p, xp_step *s, nori_error *err)
{
    const conv_args *a = s->args;
    xp_image x = nori__xp_image(p, s->in[0]);
    s->idle = nori__xp_shape(p, s->out).count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    if (a->w.transposed) {
        return setup_transposed(p, s, &a->w, err);
    }
    if (a->kind == XP_F32) {
        XP_TRY(XNN(setup_convolution2d_nhwc_f32)(s->op, x.n, x.h, x.w, nori__xp_floats(p, s->in[0]),
                                                nori__xp_floats(p, s->out), nori__xp_pool(p)),
               s->node, err);
        return NORI_OK;
    }
    const int8_t *in = nori__xp_bytes(p, s->in[0]);
    int8_t *out = nori__xp_bytes(p, s->out);
    enum xnn_status status =
        a->kind == XP_QS8
            ? XNN(setup_convolution2d_nhwc_qs8)(s->op, x.n, x.h, x.w, in, out, nori__xp_pool(p))
        : a->kind == XP_QC8
            ? XNN(setup_convolution2d_nhwc_qc8)(s->op, x.n, x.h, x.w, in, out, nori__xp_pool(p))
            : XNN(setup_convolution2d_nhwc_qu8)(s->op, x.n, x.h, x.w, (const uint8_t *)in,
                                               (uint8_t *)out, nori__xp_pool(p));
    return nori__xp_check(status, "xnn_setup of an 8-bit convolution", s->node, err);
}

xp_step *nori__xp_conv_step(xp_part *p, const nori__node *n, uint32_t in, uint32_t out,
                            const xp_window *w, xp_kind kind)
{
    xp_step *s = nori__xp_step(p, n, &in, 1, out, sizeof(conv_args), setup_conv);
    if (s) {
        *(conv_args *)s->args = (conv_args){*w, kind};
    }
    return s;
}

/* ---- floats ---- */

/* Shape only: the claim of weights that are still 8-bit asks for no content. */
static const nori_tensor *weight_shape(const nori__node *n)
{
    const nori_tensor *t = nori__xp_const(n, 1);
    return t ? t : nori__xp_const(n->inputs[1]->producer, 0);
}

const char *nori__xp_claim_conv(const nori__node *n)
{
    xp_window w;
    const nori__value *x = n->inputs[0];
    bool biased = nori__xp_in(n, 2) != NULL;
    if (!nori__xp_is(x, NORI_FLOAT, 1)) {
        return "it is not on floats of a known rank";
    }
    if (!nori__xp_has_weights(n, 1, x->type.rank) || (biased && !nori__xp_has_weights(n, 2, 1))) {
        return "its weights are not constant floats";
    }
    return nori__xp_window(n, weight_shape(n), &w);
}

const char *nori__xp_claim_conv_transpose(const nori__node *n)
{
    return nori__xp_claim_conv(n);
}

static nori_status create_conv(xp_step *s, const xp_window *w, const nori_tensor *weight,
                               const nori_tensor *bias, float low, float high, nori_error *err)
{
    float *packed = nori__alloc(&nori__malloc, weight->bytes);
    if (!packed) {
        return nori__no_memory(err);
    }
    nori__xp_pack(weight, w, 4, packed);
    size_t in = w->groups * w->group_in, out = w->groups * w->group_out;
    const float *b = bias ? bias->data : NULL;
    enum xnn_status status =
        w->transposed
            ? XNN(create_deconvolution2d_nhwc_f32)(
                  w->begin[0], w->end[1], w->end[0], w->begin[1], w->kernel[0], w->kernel[1],
                  w->stride[0], w->stride[1], w->dilation[0], w->dilation[1], w->groups, w->group_in,
                  w->group_out, in, out, packed, b, low, high, 0, &s->op)
            : XNN(create_convolution2d_nhwc_f32)(
                  w->begin[0], w->end[1], w->end[0], w->begin[1], w->kernel[0], w->kernel[1],
                  w->stride[0], w->stride[1], w->dilation[0], w->dilation[1], w->groups, w->group_in,
                  w->group_out, in, out, packed, b, low, high, 0, &s->op);
    nori__release(&nori__malloc, packed, weight->bytes);
    return nori__xp_check(status,
                          w->transposed ? "xnn_create_deconvolution2d_nhwc_f32"
                                        : "xnn_create_convolution2d_nhwc_f32",
                          s->node, err);
}

nori_status nori__xp_emit_conv(xp_part *p, const xp_job *j, nori_error *err)
{
    xp_window w;
    float low, high;
    nori_tensor *made[2] = {NULL, NULL};
    const nori_tensor *weight = nori__xp_weights(j->node, 1, &made[0]);
    const nori_tensor *bias = nori__xp_in(j->node, 2) ? nori__xp_weights(j->node, 2, &made[1]) : NULL;
    nori_status status = NORI_OK;
    const char *why = weight ? nori__xp_window(j->node, weight, &w) : "its weights are not there";
    size_t channels = why ? 0 : w.groups * w.group_out;
    if (why || (bias && (size_t)bias->count != channels) || (nori__xp_in(j->node, 2) && !bias)) {
        status = nori__fail(err, NORI_ERROR_UNSUPPORTED, "%s", why ? why : "its bias does not fit");
    } else {
        uint32_t in = nori__xp_want(p, j->in[0], XP_LAST);
        uint32_t out = nori__xp_make(p, nori__xp_clamp(p, j->out, &low, &high), XP_LAST);
        xp_step *s = nori__xp_conv_step(p, j->node, in, out, &w, XP_F32);
        status = s ? create_conv(s, &w, weight, bias, low, high, err) : nori__no_memory(err);
    }
    nori_tensor_free(made[0]);
    nori_tensor_free(made[1]);
    return status;
}

nori_status nori__xp_emit_conv_transpose(xp_part *p, const xp_job *j, nori_error *err)
{
    return nori__xp_emit_conv(p, j, err);
}
