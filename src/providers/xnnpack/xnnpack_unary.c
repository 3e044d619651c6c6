/* xnnpack_unary.c: operators on floats of one operand, and Softmax. Where ONNX lets a NaN through
 * Relu and Clip, XNNPACK's kernels may not. */
#include <math.h>

#include "providers/xnnpack/xnnpack.h"

/* ---- one operand: any layout, all elements in a row ---- */

typedef enum xnn_status (*unary_setup)(xnn_operator_t, size_t, const float *, float *, pthreadpool_t);

static nori_status setup_unary(xp_part *p, xp_step *s, nori_error *err)
{
    const unary_setup *setup = s->args;
    size_t n = nori__xp_shape(p, s->in[0]).count;
    s->idle = n == 0;
    if (s->idle) {
        return NORI_OK;
    }
    enum xnn_status status = (*setup)(s->op, n, nori__xp_floats(p, s->in[0]),
                                      nori__xp_floats(p, s->out), nori__xp_pool(p));
    return nori__xp_check(status, "xnn_setup of a unary operator", s->node, err);
}

static nori_status add_unary(xp_part *p, const xp_job *j, unary_setup setup, xnn_operator_t **op,
                             nori_error *err)
{
    unsigned form = nori__xp_layout(p, j->in[0]);
    uint32_t in = nori__xp_want(p, j->in[0], form);
    xp_step *s = nori__xp_step(p, j->node, &in, 1, nori__xp_make(p, j->out, form), sizeof(setup),
                               setup_unary);
    if (!s) {
        return nori__no_memory(err);
    }
    *(unary_setup *)s->args = setup;
    *op = &s->op;
    return NORI_OK;
}

const char *nori__xp_claim_unary(const nori__node *n)
{
    bool leaky = nori__node_is(n, NORI__OP_ONNX_LeakyRelu);
    if (!nori__xp_is(n->inputs[0], NORI_FLOAT, 0)) {
        return "it is not on floats of a known rank";
    }
    if (leaky && !isnormal(nori__attr_f(n, "alpha", 0.01f))) {
        return "its alpha is 0 or no number";
    }
    if (nori__node_is(n, NORI__OP_ONNX_Elu) &&
        (!isnormal(nori__attr_f(n, "alpha", 1)) || nori__attr_f(n, "alpha", 1) < 0)) {
        return "its alpha is not above 0";
    }
    return NULL;
}

nori_status nori__xp_emit_unary(xp_part *p, const xp_job *j, nori_error *err)
{
    xnn_operator_t *op = NULL;
    if (nori__node_is(j->node, NORI__OP_ONNX_LeakyRelu)) {
        NORI__TRY(add_unary(p, j, XNN(setup_leaky_relu_nc_f32), &op, err));
        XP_TRY(XNN(create_leaky_relu_nc_f32)(1, 1, 1, nori__attr_f(j->node, "alpha", 0.01f), 0, op),
               j->node, err);
        return NORI_OK;
    }
    if (nori__node_is(j->node, NORI__OP_ONNX_Elu)) {
        NORI__TRY(add_unary(p, j, XNN(setup_elu_nc_f32), &op, err));
        XP_TRY(XNN(create_elu_nc_f32)(1, 1, 1, nori__attr_f(j->node, "alpha", 1), 0, op), j->node,
               err);
        return NORI_OK;
    }
    const struct {
        nori__op_id id;
        enum xnn_status (*create)(size_t, size_t, size_t, uint32_t, xnn_operator_t *);
        unary_setup setup;
    } unary[] = {
#define ROW(name, call) {NORI__OP_ONNX_##name, XNN(create_##call), XNN(setup_##call)},
        XP_PLAIN_UNARY(ROW)
#undef ROW
    };
    for (size_t i = 0; i < NORI__COUNT(unary); i++) {
        if (nori__node_is(j->node, unary[i].id)) {
            NORI__TRY(add_unary(p, j, unary[i].setup, &op, err));
            return nori__xp_check(unary[i].create(1, 1, 1, 0, op), "xnn_create of a unary operator",
                                  j->node, err);
        }
    }
    return nori__fail(err, NORI_ERROR_INTERNAL, "no unary operator %s", j->node->op_type);
}

const char *nori__xp_claim_clip(const nori__node *n)
{
    float low, high;
    if (!nori__xp_is(n->inputs[0], NORI_FLOAT, 0)) {
        return "it is not on floats of a known rank";
    }
    return nori__xp_limits(n, &low, &high) ? NULL : "its limits are not constant, or no range";
}

nori_status nori__xp_emit_clip(xp_part *p, const xp_job *j, nori_error *err)
{
    xnn_operator_t *op = NULL;
    float low, high;
    nori__xp_limits(j->node, &low, &high);
    NORI__TRY(add_unary(p, j, XNN(setup_clamp_nc_f32), &op, err));
    XP_TRY(XNN(create_clamp_nc_f32)(1, 1, 1, low, high, 0, op), j->node, err);
    return NORI_OK;
}

const char *nori__xp_claim_pow(const nori__node *n)
{
    float y;
    if (!nori__xp_is(n->inputs[0], NORI_FLOAT, 0) || !nori__xp_is(n->outputs[0], NORI_FLOAT, 0) ||
        n->outputs[0]->type.rank != n->inputs[0]->type.rank) {
        return "it is not on floats of a known rank";
    }
    return nori__xp_scalar(n, 1, 1, &y) && y == 2 ? NULL : "XNNPACK has no power but the square";
}

nori_status nori__xp_emit_pow(xp_part *p, const xp_job *j, nori_error *err)
{
    xnn_operator_t *op = NULL;
    NORI__TRY(add_unary(p, j, XNN(setup_square_nc_f32), &op, err));
    XP_TRY(XNN(create_square_nc_f32)(1, 1, 1, 0, op), j->node, err);
    return NORI_OK;
}

/* ---- PRelu: a slope a channel ---- */

const char *nori__xp_claim_prelu(const nori__node *n)
{
    const nori_tensor *slope = nori__xp_const(n, 1);
    const nori__value *x = n->inputs[0];
    if (!nori__xp_is(x, NORI_FLOAT, 3) || !slope || slope->type != NORI_FLOAT) {
        return "it is not on floats of a known rank with a constant slope";
    }
    int axis = slope->rank - (x->type.rank - 1); /* of channels, in the slope */
    bool old = n->version > 0 && n->version < 7 && slope->rank == 1;
    int64_t channels = old                       ? slope->count
                       : axis >= 0 && axis <= 1 ? slope->dims[axis]
                                                 : 0;
    return channels > 0 && channels == slope->count && x->type.dims[1].value == channels
               ? NULL
               : "its slope is not one a channel";
}

static nori_status setup_prelu(xp_part *p, xp_step *s, nori_error *err)
{
    xp_shape x = nori__xp_shape(p, s->in[0]);
    s->idle = x.count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    XP_TRY(XNN(setup_prelu_nc_f32)(s->op, x.count / x.d[x.rank - 1],
                                  nori__xp_floats(p, s->in[0]),
                                  nori__xp_floats(p, s->out), nori__xp_pool(p)),
           s->node, err);
    return NORI_OK;
}

nori_status nori__xp_emit_prelu(xp_part *p, const xp_job *j, nori_error *err)
{
    const nori_tensor *slope = nori__xp_const(j->node, 1);
    uint32_t in = nori__xp_want(p, j->in[0], XP_LAST);
    xp_step *s = nori__xp_step(p, j->node, &in, 1, nori__xp_make(p, j->out, XP_LAST), 0,
                               setup_prelu);
    if (!s) {
        return nori__no_memory(err);
    }
    size_t c = (size_t)slope->count;
    XP_TRY(XNN(create_prelu_nc_f32)(c, c, c, slope->data, 0, &s->op), j->node, err);
    return NORI_OK;
}

/* ---- Softmax: over what lies last ---- */

const char *nori__xp_claim_softmax(const nori__node *n)
{
    const nori__value *x = n->inputs[0];
    if (!nori__xp_is(x, NORI_FLOAT, 1)) {
        return "it is not on floats of a known rank";
    }
    bool old = n->version > 0 && n->version < 13; /* then it flattens from axis on */
    int64_t axis = nori__attr_i(n, "axis", old ? 1 : -1), rank = x->type.rank;
    axis += axis < 0 ? rank : 0;
    return axis == rank - 1 || (axis == 1 && !old) ? NULL
                                                   : "its axis is neither channels nor the last";
}

static nori_status setup_softmax(xp_part *p, xp_step *s, nori_error *err)
{
    xp_shape x = nori__xp_shape(p, s->in[0]);
    nori__xp_drop(s);
    s->idle = x.count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    size_t c = x.d[x.rank - 1];
    XP_TRY(XNN(create_softmax_nc_f32)(c, c, c, 0, &s->op), s->node, err);
    XP_TRY(XNN(setup_softmax_nc_f32)(s->op, x.count / c,
                                    nori__xp_floats(p, s->in[0]),
                                    nori__xp_floats(p, s->out), nori__xp_pool(p)),
           s->node, err);
    return NORI_OK;
}

nori_status nori__xp_emit_softmax(xp_part *p, const xp_job *j, nori_error *err)
{
    int64_t rank = nori__xp_rank(p, j->in[0]);
    int64_t axis = nori__attr_i(j->node, "axis", j->node->version < 13 ? 1 : -1);
    axis += axis < 0 ? rank : 0;
    unsigned form = axis == rank - 1 ? 0 : XP_LAST;
    uint32_t in = nori__xp_want(p, j->in[0], form);
    xp_step *s = nori__xp_step(p, j->node, &in, 1, nori__xp_make(p, j->out, form), 0, setup_softmax);
    return s ? NORI_OK : nori__no_memory(err);
}
