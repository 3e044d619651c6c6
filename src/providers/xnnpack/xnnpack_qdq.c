/* xnnpack_qdq.c: an operator whose operands come from DequantizeLinear and whose result goes to
 * QuantizeLinear is one of integers. An activation may stand before the latter. */
#include <math.h>

#include "providers/xnnpack/xnnpack_int8.h"

/* The operator's place between bytes. */
typedef struct sandwich {
    const xp_job *job;
    nori__way_out way;
    float low, high; /* of the activation */
    xp_quant y;
} sandwich;

/* The DequantizeLinear in the part that makes operand i, or NULL. */
static const nori__node *source(const xp_part *p, const xp_job *j, uint32_t i, uint32_t *bytes)
{
    return i < j->n_in ? nori__links_dequantizer(&p->links, j->in[i], bytes) : NULL;
}

static bool operand(const xp_part *p, const xp_job *j, uint32_t i, uint32_t *bytes, xp_quant *q)
{
    const nori__node *n = source(p, j, i, bytes);
    return n && nori__xp_quant(n, 1, 2, n->inputs[0], q);
}

static bool limits(void *user, const nori__node *n)
{
    sandwich *s = user;
    return nori__xp_limits(n, &s->low, &s->high);
}

static bool find_end(const xp_part *p, const xp_job *j, sandwich *s)
{
    *s = (sandwich){.job = j, .low = -INFINITY, .high = INFINITY};
    if (!nori__links_way_out(&p->links, j->out, limits, s, &s->way)) {
        return false;
    }
    const nori__node *n = p->part->nodes[s->way.quantizer];
    return nori__xp_quant(n, 1, 2, n->outputs[0], &s->y);
}

static int8_t byte_limit(const sandwich *s, float limit)
{
    float q = rintf(limit / s->y.scale) + (float)s->y.zero;
    return (int8_t)(q < INT8_MIN ? INT8_MIN : q > INT8_MAX ? INT8_MAX : q);
}

static bool whole_range(const sandwich *s)
{
    return byte_limit(s, s->low) == INT8_MIN && byte_limit(s, s->high) == INT8_MAX;
}

/* ---- convolutions and products ---- */

static const char *read_layer(xp_part *p, const sandwich *s, xp_conv8 *c, uint32_t *in,
                              nori_tensor **made)
{
    const xp_job *j = s->job;
    const nori__node *n = j->node;
    uint32_t weights;
    const nori__node *w = source(p, j, 1, &weights);
    bool conv = nori__node_is(n, NORI__OP_ONNX_Conv), gemm = nori__node_is(n, NORI__OP_ONNX_Gemm);
    *c = (xp_conv8){.rows = !conv, .y = s->y, .low = byte_limit(s, s->low),
                    .high = byte_limit(s, s->high)};
    if (!w || !nori__xp_const(w, 0) || !operand(p, j, 0, in, &c->x) || c->low >= c->high) {
        return "not of bytes";
    }
    c->weight = nori__xp_const(w, 0);
    c->scale = nori__xp_const(w, 1);
    c->zero = nori__xp_const(w, 2);
    c->turned = gemm && nori__attr_i(n, "transB", 0) != 0;
    int axis = conv || c->turned ? 0 : 1;
    if (c->scale->count > 1 && nori__attr_i(w, "axis", 1) != axis) {
        return "scales of another axis";
    }
    if (gemm && (nori__attr_i(n, "transA", 0) || nori__attr_f(n, "alpha", 1) != 1 ||
                 nori__attr_f(n, "beta", 1) != 1)) {
        return "factors";
    }
    if (nori__xp_in(n, 2)) {
        c->bias = nori__xp_weights(n, 2, made);
        if (!c->bias) {
            return "no constant bias";
        }
    }
    if (conv) {
        const char *why = c->weight->rank == n->inputs[0]->type.rank
                              ? nori__xp_window(n, c->weight, &c->w)
                              : "another rank";
        return why ? why : nori__xp_conv8_fits(c);
    }
    if (c->weight->rank != 2) {
        return "no matrix";
    }
    nori__xp_window_rows(c->weight, c->turned, &c->w);
    return nori__xp_conv8_fits(c);
}

static nori_status layer(xp_part *p, const sandwich *s, bool *taken, nori_error *err)
{
    xp_conv8 c;
    uint32_t in;
    nori_tensor *made = NULL;
    nori_status status = NORI_OK;
    if (!read_layer(p, s, &c, &in, &made)) {
        status = nori__xp_conv8(p, s->job->node, in, s->way.bytes, &c, err);
        *taken = true;
    }
    nori_tensor_free(made);
    return status;
}

/* ---- the rest ---- */

static nori_status two(xp_part *p, const sandwich *s, bool *taken, nori_error *err)
{
    uint32_t in[2];
    xp_binary8 c = {.op = s->job->node->op->id, .y = s->y, .low = byte_limit(s, s->low),
                    .high = byte_limit(s, s->high)};
    if (!operand(p, s->job, 0, &in[0], &c.a) || !operand(p, s->job, 1, &in[1], &c.b) ||
        c.low >= c.high || nori__xp_binary8_fits(&c)) {
        return NORI_OK;
    }
    *taken = true;
    return nori__xp_binary8(p, s->job->node, in, s->way.bytes, &c, err);
}

static nori_status one(xp_part *p, const sandwich *s, bool *taken, nori_error *err)
{
    uint32_t in;
    const nori__node *n = s->job->node;
    bool elu = nori__node_is(n, NORI__OP_ONNX_Elu);
    int rank = nori__xp_rank(p, s->job->in[0]);
    xp_unary8 c = {.op = n->op->id, .y = s->y, .alpha = nori__attr_f(n, "alpha", elu ? 1 : 0.01f)};
    c.axis = nori__attr_i(n, "axis", n->version < 13 ? 1 : -1);
    c.axis += c.axis < 0 ? rank : 0;
    if (!operand(p, s->job, 0, &in, &c.x) || !whole_range(s) || nori__xp_unary8_fits(&c)) {
        return NORI_OK;
    }
    *taken = true;
    return nori__xp_unary8(p, n, in, s->way.bytes, &c, err);
}

static nori_status average(xp_part *p, const sandwich *s, bool *taken, nori_error *err)
{
    uint32_t in;
    const nori__node *n = s->job->node;
    xp_pool8 c = {.all = !nori__node_is(n, NORI__OP_ONNX_AveragePool), .y = s->y};
    if (!operand(p, s->job, 0, &in, &c.x) || !whole_range(s) ||
        (!c.all && nori__xp_window(n, NULL, &c.w)) || nori__xp_pool8_fits(&c)) {
        return NORI_OK;
    }
    *taken = true;
    return nori__xp_pool8(p, n, in, s->way.bytes, &c, err);
}

/* What only moves or picks bytes does so with bytes, when their meaning stays. */
static nori_status same(xp_part *p, const sandwich *s, bool *taken, nori_error *err)
{
    xp_job j = *s->job;
    uint32_t *in = nori__arena_array(&p->arena, (size_t)j.n_in + 1, sizeof(*in));
    bool all = nori__node_is(j.node, NORI__OP_ONNX_Concat);
    if (!in) {
        return nori__no_memory(err);
    }
    memcpy(in, j.in, j.n_in * sizeof(*in));
    for (uint32_t i = 0; i < (all ? j.n_in : 1); i++) {
        xp_quant q;
        if (!operand(p, s->job, i, &in[i], &q) || q.scale != s->y.scale || q.zero != s->y.zero ||
            q.form != s->y.form || !whole_range(s)) {
            return NORI_OK;
        }
    }
    j.in = in;
    j.out = s->way.bytes;
    *taken = true;
    return nori__xp_rule(j.node)->emit(p, &j, err);
}

static const struct {
    nori__op_id op;
    nori_status (*make)(xp_part *p, const sandwich *s, bool *taken, nori_error *err);
} makers[] = {
    {NORI__OP_ONNX_Conv, layer},
    {NORI__OP_ONNX_Gemm, layer},
    {NORI__OP_ONNX_MatMul, layer},
    {NORI__OP_ONNX_Add, two},
    {NORI__OP_ONNX_Sub, two},
    {NORI__OP_ONNX_Mul, two},
    {NORI__OP_ONNX_Sigmoid, one},
    {NORI__OP_ONNX_Elu, one},
    {NORI__OP_ONNX_LeakyRelu, one},
    {NORI__OP_ONNX_Softmax, one},
    {NORI__OP_ONNX_AveragePool, average},
    {NORI__OP_ONNX_GlobalAveragePool, average},
    {NORI__OP_ONNX_ReduceMean, average},
    {NORI__OP_ONNX_MaxPool, same},
    {NORI__OP_ONNX_Reshape, same},
    {NORI__OP_ONNX_Flatten, same},
    {NORI__OP_ONNX_Squeeze, same},
    {NORI__OP_ONNX_Unsqueeze, same},
    {NORI__OP_ONNX_Transpose, same},
    {NORI__OP_ONNX_Slice, same},
    {NORI__OP_ONNX_Concat, same},
    {NORI__OP_ONNX_DepthToSpace, same},
    {NORI__OP_ONNX_SpaceToDepth, same},
};

nori_status nori__xp_integers(xp_part *p, const xp_job *j, bool *taken, nori_error *err)
{
    sandwich s;
    *taken = false;
    for (size_t i = 0; i < NORI__COUNT(makers); i++) {
        if (nori__node_is(j->node, makers[i].op)) {
            if (find_end(p, j, &s)) {
                NORI__TRY(makers[i].make(p, &s, taken, err));
            }
            if (*taken) {
                nori__links_take(&p->links, &s.way);
            }
            return NORI_OK;
        }
    }
    return NORI_OK;
}
