/* xnnpack_int8_math.c: sums, products, functions by table, and averages of 8-bit integers. */
#include <math.h>

#include "providers/xnnpack/xnnpack_int8.h"

/* ---- two operands ---- */

typedef enum xnn_status (*binary_setup)(xnn_operator_t, size_t, const size_t *, size_t,
                                        const size_t *, const int8_t *, const int8_t *, int8_t *,
                                        pthreadpool_t);

static bool near(float ratio, float low, float high)
{
    return ratio >= low && ratio < high;
}

const char *nori__xp_binary8_fits(const xp_binary8 *c)
{
    float a = c->a.scale / c->y.scale, b = c->b.scale / c->y.scale;
    bool fits = c->op == NORI__OP_ONNX_Mul
                    ? near(c->a.scale * c->b.scale / c->y.scale, 0x1p-16f, 0x1p8f)
                    : near(a, 0x1p-10f, 0x1p8f) && near(b, 0x1p-10f, 0x1p8f);
    return fits ? NULL : "its scales are further apart than XNNPACK takes";
}

static nori_status setup_binary(xp_part *p, xp_step *s, nori_error *err)
{
    const binary_setup *setup = s->args;
    xp_shape a = nori__xp_shape(p, s->in[0]), b = nori__xp_shape(p, s->in[1]);
    s->idle = nori__xp_shape(p, s->out).count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    return nori__xp_check((*setup)(s->op, (size_t)a.rank, a.d, (size_t)b.rank, b.d,
                                   nori__xp_bytes(p, s->in[0]), nori__xp_bytes(p, s->in[1]),
                                   nori__xp_bytes(p, s->out), nori__xp_pool(p)),
                          "xnn_setup of an 8-bit binary operator", s->node, err);
}

nori_status nori__xp_binary8(xp_part *p, const nori__node *n, const uint32_t *in, uint32_t out,
                             const xp_binary8 *c, nori_error *err)
{
    int rank = nori__xp_rank(p, out);
    unsigned layout = nori__xp_binary_form(p, in, rank);
    uint32_t from[2] = {nori__xp_binary_operand(p, in[0], layout | c->a.form, rank),
                        nori__xp_binary_operand(p, in[1], layout | c->b.form, rank)};
    const struct {
        nori__op_id op;
        enum xnn_status (*create)(int8_t, float, int8_t, float, int8_t, float, int8_t, int8_t, uint32_t,
                                  xnn_operator_t *);
        binary_setup setup;
    } binary[] = {
        {NORI__OP_ONNX_Add, XNN(create_add_nd_qs8), XNN(setup_add_nd_qs8)},
        {NORI__OP_ONNX_Sub, XNN(create_subtract_nd_qs8), XNN(setup_subtract_nd_qs8)},
        {NORI__OP_ONNX_Mul, XNN(create_multiply_nd_qs8), XNN(setup_multiply_nd_qs8)},
    };
    size_t i = 0;
    while (i + 1 < NORI__COUNT(binary) && binary[i].op != c->op) {
        i++;
    }
    xp_step *s = nori__xp_step(p, n, from, 2, nori__xp_make(p, out, layout | c->y.form),
                               sizeof(binary_setup), setup_binary);
    if (!s) {
        return nori__no_memory(err);
    }
    *(binary_setup *)s->args = binary[i].setup;
    return nori__xp_check(binary[i].create((int8_t)c->a.zero, c->a.scale, (int8_t)c->b.zero,
                                           c->b.scale, (int8_t)c->y.zero, c->y.scale, c->low, c->high,
                                           0, &s->op),
                          "xnn_create of an 8-bit binary operator", n, err);
}

/* ---- one operand: by table ---- */

const char *nori__xp_unary8_fits(const xp_unary8 *c)
{
    if (c->op == NORI__OP_ONNX_Sigmoid) { /* as XNNPACK has it: all of 0 to 1 */
        return c->y.scale == 0x1p-8f && c->y.zero == -128 ? NULL
                                                           : "XNNPACK gives Sigmoid in steps of 1/256";
    }
    if (c->op == NORI__OP_ONNX_Tanh) {
        return c->y.scale == 0x1p-7f && c->y.zero == 0 ? NULL
                                                        : "XNNPACK gives Tanh in steps of 1/128";
    }
    if (c->op == NORI__OP_ONNX_Softmax) {
        return c->y.scale == 0x1p-8f && c->y.zero == -128 ? NULL
                                                           : "XNNPACK gives Softmax in steps of 1/256";
    }
    if (c->op == NORI__OP_ONNX_LeakyRelu && !(isnormal(c->alpha) && c->alpha > 0 && c->alpha <= 1)) {
        return "its alpha is not from 0 to 1";
    }
    return near(c->x.scale / c->y.scale, 0x1p-8f, 0x1p7f)
               ? NULL
               : "its scales are further apart than XNNPACK takes";
}

typedef struct unary_args {
    nori__op_id op;
    xp_quant x, y;
} unary_args;

static nori_status setup_softmax(xp_part *p, xp_step *s, nori_error *err)
{
    const unary_args *a = s->args;
    xp_shape x = nori__xp_shape(p, s->in[0]);
    nori__xp_drop(s);
    s->idle = x.count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    size_t c = x.d[x.rank - 1];
    XP_TRY(XNN(create_softmax_nc_qu8)(c, c, c, a->x.scale, (uint8_t)(a->y.zero + 128), a->y.scale, 0,
                                     &s->op),
           s->node, err);
    XP_TRY(XNN(setup_softmax_nc_qu8)(s->op, x.count / c, nori__xp_data(p, s->in[0]),
                                    nori__xp_data(p, s->out), nori__xp_pool(p)),
           s->node, err);
    return NORI_OK;
}

static nori_status setup_unary(xp_part *p, xp_step *s, nori_error *err)
{
    const unary_args *a = s->args;
    size_t n = nori__xp_shape(p, s->in[0]).count;
    const int8_t *in = nori__xp_bytes(p, s->in[0]);
    int8_t *out = nori__xp_bytes(p, s->out);
    s->idle = n == 0;
    if (s->idle) {
        return NORI_OK;
    }
    enum xnn_status status =
        a->op == NORI__OP_ONNX_Sigmoid ? XNN(setup_sigmoid_nc_qs8)(s->op, n, in, out, nori__xp_pool(p))
        : a->op == NORI__OP_ONNX_Tanh  ? XNN(setup_tanh_nc_qs8)(s->op, n, in, out, nori__xp_pool(p))
        : a->op == NORI__OP_ONNX_Elu   ? XNN(setup_elu_nc_qs8)(s->op, n, in, out, nori__xp_pool(p))
                                       : XNN(setup_leaky_relu_nc_qu8)(s->op, n, (const uint8_t *)in,
                                                                     (uint8_t *)out,
                                                                     nori__xp_pool(p));
    return nori__xp_check(status, "xnn_setup of an 8-bit unary operator", s->node, err);
}

static enum xnn_status create_unary(const xp_unary8 *c, xnn_operator_t *op)
{
    int8_t x = (int8_t)c->x.zero, y = (int8_t)c->y.zero;
    if (c->op == NORI__OP_ONNX_Sigmoid) {
        return XNN(create_sigmoid_nc_qs8)(1, 1, 1, x, c->x.scale, y, c->y.scale, INT8_MIN, INT8_MAX, 0,
                                         op);
    }
    if (c->op == NORI__OP_ONNX_Tanh) {
        return XNN(create_tanh_nc_qs8)(1, 1, 1, x, c->x.scale, y, c->y.scale, INT8_MIN, INT8_MAX, 0,
                                      op);
    }
    if (c->op == NORI__OP_ONNX_Elu) {
        return XNN(create_elu_nc_qs8)(1, 1, 1, c->alpha, x, c->x.scale, y, c->y.scale, INT8_MIN,
                                     INT8_MAX, 0, op);
    }
    return XNN(create_leaky_relu_nc_qu8)(1, 1, 1, c->alpha, (uint8_t)(x + 128), c->x.scale,
                                        (uint8_t)(y + 128), c->y.scale, 0, UINT8_MAX, 0, op);
}

nori_status nori__xp_unary8(xp_part *p, const nori__node *n, uint32_t in, uint32_t out,
                            const xp_unary8 *c, nori_error *err)
{
    bool softmax = c->op == NORI__OP_ONNX_Softmax;
    unsigned sign = softmax || c->op == NORI__OP_ONNX_LeakyRelu ? XP_FLIP : 0;
    unsigned layout = nori__xp_layout(p, in);
    if (softmax) {
        layout = c->axis == nori__xp_rank(p, in) - 1 ? 0 : XP_LAST;
    }
    uint32_t from = nori__xp_want(p, in, layout | (c->x.form ^ sign));
    uint32_t to = nori__xp_make(p, out, layout | (c->y.form ^ sign));
    xp_step *s = nori__xp_step(p, n, &from, 1, to, sizeof(unary_args),
                               softmax ? setup_softmax : setup_unary);
    if (!s) {
        return nori__no_memory(err);
    }
    *(unary_args *)s->args = (unary_args){c->op, c->x, c->y};
    return softmax ? NORI_OK
                   : nori__xp_check(create_unary(c, &s->op), "xnn_create of an 8-bit unary operator",
                                    n, err);
}

/* ---- averages ---- */

const char *nori__xp_pool8_fits(const xp_pool8 *c)
{
    const xp_window *w = &c->w;
    if (!near(c->x.scale / c->y.scale, 0x1p-8f, 0x1p8f)) {
        return "its scales are further apart than XNNPACK takes";
    }
    if (c->all) {
        return NULL;
    }
    if (w->begin[0] || w->begin[1] || w->end[0] || w->end[1] || w->ceil || w->dilation[0] > 1 ||
        w->dilation[1] > 1) {
        return "XNNPACK pads and dilates no averages of bytes";
    }
    return w->kernel[0] * (uint64_t)w->kernel[1] < 2 ? "XNNPACK takes no window of one element" : NULL;
}

static nori_status setup_all(xp_part *p, xp_step *s, nori_error *err)
{
    const xp_pool8 *a = s->args;
    xp_shape x = nori__xp_shape(p, s->in[0]);
    size_t c = x.d[x.rank - 1], n = x.d[0];
    if (x.count == 0) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED, "XNNPACK takes no mean of nothing");
    }
    XP_TRY(XNN(create_global_average_pooling_nwc_qs8)(c, c, c, (int8_t)a->x.zero, a->x.scale,
                                                     (int8_t)a->y.zero, a->y.scale, INT8_MIN, INT8_MAX,
                                                     0, &s->op),
           s->node, err);
    XP_TRY(XNN(setup_global_average_pooling_nwc_qs8)(s->op, n, x.count / n / c,
                                                    nori__xp_bytes(p, s->in[0]),
                                                    nori__xp_bytes(p, s->out), nori__xp_pool(p)),
           s->node, err);
    return NORI_OK;
}

static nori_status setup_pool(xp_part *p, xp_step *s, nori_error *err)
{
    const xp_pool8 *a = s->args;
    const xp_window *w = &a->w;
    nori__xp_drop(s);
    s->idle = nori__xp_shape(p, s->out).count == 0;
    if (s->idle || a->all) {
        return s->idle ? NORI_OK : setup_all(p, s, err);
    }
    xp_image x = nori__xp_image(p, s->in[0]);
    XP_TRY(XNN(create_average_pooling2d_nhwc_qu8)(
               0, 0, 0, 0, w->kernel[0], w->kernel[1], w->stride[0], w->stride[1], x.c, x.c, x.c,
               (uint8_t)(a->x.zero + 128), a->x.scale, (uint8_t)(a->y.zero + 128), a->y.scale, 0,
               UINT8_MAX, 0, &s->op),
           s->node, err);
    XP_TRY(XNN(setup_average_pooling2d_nhwc_qu8)(s->op, x.n, x.h, x.w, nori__xp_data(p, s->in[0]),
                                                nori__xp_data(p, s->out), nori__xp_pool(p)),
           s->node, err);
    return NORI_OK;
}

nori_status nori__xp_pool8(xp_part *p, const nori__node *n, uint32_t in, uint32_t out,
                           const xp_pool8 *c, nori_error *err)
{
    unsigned sign = c->all ? 0 : XP_FLIP;
    uint32_t from = nori__xp_want(p, in, XP_LAST | (c->x.form ^ sign));
    uint32_t to = nori__xp_make(p, out, (c->all ? 0 : XP_LAST) | (c->y.form ^ sign));
    xp_step *s = nori__xp_step(p, n, &from, 1, to, sizeof(*c), setup_pool);
    if (!s || (c->all && nori__xp_rank(p, out) > 2 &&
               !nori__xp_share(p, out, XP_LAST | (c->y.form ^ sign), to))) {
        return nori__no_memory(err);
    }
    *(xp_pool8 *)s->args = *c;
    return NORI_OK;
}
