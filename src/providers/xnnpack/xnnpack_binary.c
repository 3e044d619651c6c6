/* xnnpack_binary.c: operators on floats of two operands, with broadcasting, and lines a channel. Where
 * ONNX lets a NaN through Max and Min, XNNPACK's kernels may not. */
#include <math.h>

#include "providers/xnnpack/xnnpack.h"

typedef enum xnn_status (*binary_setup)(xnn_operator_t, size_t, const size_t *, size_t,
                                        const size_t *, const float *, const float *, float *,
                                        pthreadpool_t);

static nori_status setup_binary(xp_part *p, xp_step *s, nori_error *err)
{
    const binary_setup *setup = s->args;
    xp_shape a = nori__xp_shape(p, s->in[0]), b = nori__xp_shape(p, s->in[1]);
    s->idle = nori__xp_shape(p, s->out).count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    enum xnn_status status =
        (*setup)(s->op, (size_t)a.rank, a.d, (size_t)b.rank, b.d,
                 nori__xp_floats(p, s->in[0]),
                 nori__xp_floats(p, s->in[1]),
                 nori__xp_floats(p, s->out), nori__xp_pool(p));
    return nori__xp_check(status, "xnn_setup of a binary operator", s->node, err);
}

static enum xnn_status create_max(float low, float high, uint32_t flags, xnn_operator_t *op)
{
    (void)low;
    (void)high;
    return XNN(create_maximum_nd_f32)(flags, op);
}

static enum xnn_status create_min(float low, float high, uint32_t flags, xnn_operator_t *op)
{
    (void)low;
    (void)high;
    return XNN(create_minimum_nd_f32)(flags, op);
}

const char *nori__xp_claim_binary(const nori__node *n)
{
    if (n->input_count != 2 || !n->inputs[1]) {
        return "XNNPACK takes two operands";
    }
    return nori__xp_is(n->inputs[0], NORI_FLOAT, 0) && nori__xp_is(n->inputs[1], NORI_FLOAT, 0)
               ? NULL
               : "it is not on floats of a known rank";
}

/* A constant of any rank as operand of a result that lies channels last. */
static uint32_t spread_constant(xp_part *p, uint32_t value, int rank)
{
    const nori_tensor *t = nori__xp_tensor(p, value);
    xp_shape wide = {.rank = rank, .count = (size_t)t->count}, turned;
    xp_move m = {.width = t->type == NORI_FLOAT ? 4 : 1};
    for (int d = 0; d < rank; d++) {
        int from = d - (rank - t->rank);
        wide.d[d] = from < 0 ? 1 : (size_t)t->dims[from];
    }
    nori__xp_move_layout(&m, &wide, 0, XP_LAST);
    turned = wide;
    for (int d = 0; d < rank; d++) {
        turned.d[d] = m.dims[d];
    }
    uint32_t b = nori__xp_fixed(p, &turned, m.width, NULL);
    if (b != XP_NONE) {
        nori__xp_move_run(&m, t->data, nori__xp_buffer(p, b)->fixed, NULL);
    }
    return b;
}

/* Operands of lower rank are lined up at the end, which channels last would move: constants are
 * turned, others make the result plain. */
unsigned nori__xp_binary_form(const xp_part *p, const uint32_t *in, int rank)
{
    unsigned form = 0;
    for (int i = 0; i < 2 && rank > 2; i++) {
        bool full = nori__xp_rank(p, in[i]) == rank;
        if (!full && !nori__xp_tensor(p, in[i]) && nori__xp_rank(p, in[i]) > 0) {
            return 0;
        }
        form |= full ? nori__xp_layout(p, in[i]) : 0;
    }
    return form;
}

uint32_t nori__xp_binary_operand(xp_part *p, uint32_t value, unsigned form, int rank)
{
    bool lower = nori__xp_rank(p, value) < rank && nori__xp_rank(p, value) > 0;
    return lower && (form & XP_LAST) ? spread_constant(p, value, rank)
                                     : nori__xp_want(p, value, form);
}

nori_status nori__xp_emit_binary(xp_part *p, const xp_job *j, nori_error *err)
{
    const struct {
        nori__op_id id;
        bool clamps;
        enum xnn_status (*create)(float, float, uint32_t, xnn_operator_t *);
        binary_setup setup;
    } binary[] = {
        {NORI__OP_ONNX_Add, true, XNN(create_add_nd_f32), XNN(setup_add_nd_f32)},
        {NORI__OP_ONNX_Sum, true, XNN(create_add_nd_f32), XNN(setup_add_nd_f32)},
        {NORI__OP_ONNX_Sub, true, XNN(create_subtract_nd_f32), XNN(setup_subtract_nd_f32)},
        {NORI__OP_ONNX_Mul, true, XNN(create_multiply_nd_f32), XNN(setup_multiply_nd_f32)},
        {NORI__OP_ONNX_Div, true, XNN(create_divide_nd_f32), XNN(setup_divide_nd_f32)},
        {NORI__OP_ONNX_Max, false, create_max, XNN(setup_maximum_nd_f32)},
        {NORI__OP_ONNX_Min, false, create_min, XNN(setup_minimum_nd_f32)},
    };
    size_t i = 0;
    while (i + 1 < NORI__COUNT(binary) && !nori__node_is(j->node, binary[i].id)) {
        i++;
    }
    float low = -INFINITY, high = INFINITY;
    int rank = nori__xp_rank(p, j->out);
    unsigned form = nori__xp_binary_form(p, j->in, rank);
    uint32_t out = binary[i].clamps ? nori__xp_clamp(p, j->out, &low, &high) : j->out;
    uint32_t in[2] = {nori__xp_binary_operand(p, j->in[0], form, rank),
                      nori__xp_binary_operand(p, j->in[1], form, rank)};
    xp_step *s = nori__xp_step(p, j->node, in, 2, nori__xp_make(p, out, form),
                               sizeof(binary[i].setup), setup_binary);
    if (!s) {
        return nori__no_memory(err);
    }
    *(binary_setup *)s->args = binary[i].setup;
    return nori__xp_check(binary[i].create(low, high, 0, &s->op), "xnn_create of a binary operator",
                          j->node, err);
}

/* ---- a channel's or all values' line: x * scale + shift, as two steps ---- */

static nori_status add_line(xp_part *p, const xp_job *j, uint32_t scale, uint32_t shift,
                            unsigned form, float low, float high, uint32_t out, nori_error *err)
{
    uint32_t middle = nori__xp_scratch(p, j->out, form, 4);
    uint32_t first[2] = {nori__xp_want(p, j->in[0], form), scale}, second[2] = {middle, shift};
    xp_step *mul = nori__xp_step(p, j->node, first, 2, middle, sizeof(binary_setup), setup_binary);
    xp_step *add = nori__xp_step(p, j->node, second, 2, nori__xp_make(p, out, form),
                                 sizeof(binary_setup), setup_binary);
    if (!mul || !add) {
        return nori__no_memory(err);
    }
    *(binary_setup *)mul->args = XNN(setup_multiply_nd_f32);
    *(binary_setup *)add->args = XNN(setup_add_nd_f32);
    XP_TRY(XNN(create_multiply_nd_f32)(-INFINITY, INFINITY, 0, &mul->op), j->node, err);
    XP_TRY(XNN(create_add_nd_f32)(low, high, 0, &add->op), j->node, err);
    return NORI_OK;
}

const char *nori__xp_claim_batch_norm(const nori__node *n)
{
    bool fits = nori__xp_is(n->inputs[0], NORI_FLOAT, 3) && n->input_count == 5 && n->version >= 9 &&
                nori__attr_i(n, "training_mode", 0) == 0;
    for (uint32_t i = 1; i < n->output_count; i++) {
        fits = fits && !n->outputs[i];
    }
    for (uint32_t i = 1; fits && i < 5; i++) {
        const nori_tensor *t = nori__xp_const(n, i);
        fits = t && t->type == NORI_FLOAT && t->rank == 1 && t->count > 0 &&
               t->count == nori__xp_const(n, 1)->count;
    }
    return fits ? NULL : "it is not one of constant floats over channels, for inference";
}

nori_status nori__xp_emit_batch_norm(xp_part *p, const xp_job *j, nori_error *err)
{
    const float *t[4];
    float epsilon = nori__attr_f(j->node, "epsilon", 1e-5f), low, high;
    for (uint32_t i = 0; i < 4; i++) {
        t[i] = nori__xp_const(j->node, i + 1)->data; /* scale, shift, mean, variance */
    }
    size_t c = (size_t)nori__xp_const(j->node, 1)->count;
    xp_shape s = {.rank = 1, .d = {c}, .count = c};
    uint32_t scale = nori__xp_fixed(p, &s, 4, NULL), shift = nori__xp_fixed(p, &s, 4, NULL);
    if (scale == XP_NONE || shift == XP_NONE) {
        return nori__no_memory(err);
    }
    float *a = nori__xp_buffer(p, scale)->fixed, *b = nori__xp_buffer(p, shift)->fixed;
    for (size_t i = 0; i < c; i++) {
        double factor = (double)t[0][i] / sqrt((double)t[3][i] + (double)epsilon);
        a[i] = (float)factor;
        b[i] = (float)((double)t[1][i] - (double)t[2][i] * factor);
    }
    uint32_t out = nori__xp_clamp(p, j->out, &low, &high);
    return add_line(p, j, scale, shift, XP_LAST, low, high, out, err);
}

const char *nori__xp_claim_hard_sigmoid(const nori__node *n)
{
    return nori__xp_is(n->inputs[0], NORI_FLOAT, 0) ? NULL : "it is not on floats of a known rank";
}

nori_status nori__xp_emit_hard_sigmoid(xp_part *p, const xp_job *j, nori_error *err)
{
    float line[2] = {nori__attr_f(j->node, "alpha", 0.2f), nori__attr_f(j->node, "beta", 0.5f)};
    xp_shape one = {.count = 1};
    return add_line(p, j, nori__xp_fixed(p, &one, 4, &line[0]), nori__xp_fixed(p, &one, 4, &line[1]),
                    nori__xp_layout(p, j->in[0]), 0, 1, j->out, err);
}
