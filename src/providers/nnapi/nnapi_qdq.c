/* nnapi_qdq.c: an operator whose operands come from DequantizeLinear and whose result goes to
 * QuantizeLinear, perhaps through an activation, as an operation on bytes. */
#include "providers/nnapi/nnapi_bytes.h"

/* The operator's place between bytes. */
typedef struct sandwich {
    const na_job *job;
    nori__way_out way;
    int fused;
    na_quant y;
} sandwich;

/* The DequantizeLinear in the part that makes operand i, or NULL. */
static const nori__node *source(const na_part *p, const na_job *j, uint32_t i, uint32_t *bytes)
{
    return i < j->n_in ? nori__links_dequantizer(&p->links, j->in[i], bytes) : NULL;
}

/* Constants, too, have a meaning of their own: they are operands like others. */
static bool operand(const na_part *p, const na_job *j, uint32_t i, uint32_t *bytes, na_quant *q)
{
    const nori__node *n = source(p, j, i, bytes);
    return n && nori__na_means(p->self, n, 1, 2, n->inputs[0], q);
}

static bool fuses(void *user, const nori__node *n)
{
    int *fused = user;
    *fused = nori__na_activation(n);
    return *fused != NA_FUSED_NONE;
}

static bool find_end(const na_part *p, const na_job *j, sandwich *s)
{
    *s = (sandwich){.job = j, .fused = NA_FUSED_NONE};
    if (!nori__links_way_out(&p->links, j->out, fuses, &s->fused, &s->way)) {
        return false;
    }
    const nori__node *n = p->part->nodes[s->way.quantizer];
    return nori__na_means(p->self, n, 1, 2, n->outputs[0], &s->y);
}

/* ---- convolutions and products ---- */

static bool read_layer(na_part *p, const sandwich *s, na_layer *l, uint32_t *in, nori_tensor **made)
{
    const na_job *j = s->job;
    const nori__node *n = j->node;
    uint32_t weights;
    const nori__node *w = source(p, j, 1, &weights);
    bool conv = nori__node_is(n, NORI__OP_ONNX_Conv), gemm = nori__node_is(n, NORI__OP_ONNX_Gemm);
    *l = (na_layer){.rows = !conv, .y = s->y, .factor = 1, .fused = s->fused};
    if (!w || !nori__na_const(w, 0) || !nori__na_const(w, 1) || !operand(p, j, 0, in, &l->x)) {
        return false;
    }
    l->weight = nori__na_const(w, 0);
    l->scale = nori__na_const(w, 1);
    l->zero = nori__na_const(w, 2);
    l->turned = gemm && nori__attr_i(n, "transB", 0) != 0;
    int64_t axis = nori__attr_i(w, "axis", 1);
    axis += axis < 0 ? l->weight->rank : 0;
    if ((l->scale->count > 1 && axis != (conv || l->turned ? 0 : 1)) ||
        nori__attr_i(w, "block_size", 0) != 0 ||
        (gemm && (nori__attr_i(n, "transA", 0) || nori__attr_f(n, "alpha", 1) != 1 ||
                  nori__attr_f(n, "beta", 1) != 1))) {
        return false;
    }
    if (nori__na_in(n, 2) && !(l->bias = nori__na_weight_floats(n, 2, made))) {
        return false;
    }
    return !nori__na_layer_fits(p->self, n, l);
}

static bool layer(na_part *p, const sandwich *s)
{
    na_layer l;
    uint32_t in;
    nori_tensor *made = NULL;
    bool taken = read_layer(p, s, &l, &in, &made);
    if (taken) {
        nori__na_add_layer(p, s->job->node, in, s->way.bytes, &l);
    }
    nori_tensor_free(made);
    return taken;
}

/* ---- the rest ---- */

static bool two(na_part *p, const sandwich *s)
{
    const nori__node *n = s->job->node;
    uint32_t in[2];
    na_quant a, b;
    int32_t code = nori__node_is(n, NORI__OP_ONNX_Add)   ? NA_ADD
                   : nori__node_is(n, NORI__OP_ONNX_Sub) ? NA_SUB
                                                         : NA_MUL;
    if (!operand(p, s->job, 0, &in[0], &a) || !operand(p, s->job, 1, &in[1], &b) ||
        nori__na_binary8_fits(p->self, code, &a, &b, &s->y)) {
        return false;
    }
    nori__na_add_binary8(p, code, in, s->way.bytes, s->fused);
    return true;
}

/* The operator's own operation, from bytes to bytes. */
static bool as_it_is(na_part *p, const sandwich *s, const uint32_t *in)
{
    na_job j = *s->job;
    j.in = in;
    j.out = s->way.bytes;
    j.outs = &s->way.bytes;
    nori__na_rule(j.node)->emit(p, &j);
    return true;
}

static bool curve(na_part *p, const sandwich *s)
{
    const nori__node *n = s->job->node;
    uint32_t in;
    na_quant x;
    bool fits = nori__node_is(n, NORI__OP_ONNX_HardSwish)
                    ? p->self->level >= 30
                    : nori__na_fixed_meaning(
                          p->self, nori__node_is(n, NORI__OP_ONNX_Tanh) ? NA_TANH : NA_LOGISTIC, &s->y);
    return fits && s->fused == NA_FUSED_NONE && operand(p, s->job, 0, &in, &x) && x.type == s->y.type &&
           as_it_is(p, s, &in);
}

/* What NNAPI has only where what goes in and what comes out mean the same. */
static bool same(na_part *p, const sandwich *s)
{
    const na_job *j = s->job;
    bool concat = nori__node_is(j->node, NORI__OP_ONNX_Concat);
    bool pads = nori__node_is(j->node, NORI__OP_ONNX_Pad), limits = nori__na_activation(j->node) != 0;
    bool late = pads || nori__node_is(j->node, NORI__OP_ONNX_Resize);
    uint32_t *in = nori__arena_array(&p->arena, (size_t)j->n_in + 1, sizeof(*in));
    float value = 0;
    if (!in || s->fused != NA_FUSED_NONE || (late && p->self->level < 29) ||
        (pads && (!nori__na_scalar(j->node, 2, 0, &value) || value != 0)) ||
        (nori__node_is(j->node, NORI__OP_ONNX_Clip) && !limits)) {
        return false;
    }
    memcpy(in, j->in, j->n_in * sizeof(*in));
    for (uint32_t i = 0; i < (concat ? j->n_in : 1); i++) {
        na_quant q;
        bool any = concat && p->self->level >= 29;
        if (!operand(p, j, i, &in[i], &q) ||
            !(any ? q.type == s->y.type : nori__na_same(&q, &s->y))) {
            return false;
        }
    }
    return as_it_is(p, s, in);
}

static const struct {
    nori__op_id op;
    bool (*make)(na_part *p, const sandwich *s);
} makers[] = {
    {NORI__OP_ONNX_Conv, layer},
    {NORI__OP_ONNX_Gemm, layer},
    {NORI__OP_ONNX_MatMul, layer},
    {NORI__OP_ONNX_Add, two},
    {NORI__OP_ONNX_Sub, two},
    {NORI__OP_ONNX_Mul, two},
    {NORI__OP_ONNX_Sigmoid, curve},
    {NORI__OP_ONNX_Tanh, curve},
    {NORI__OP_ONNX_Softmax, curve},
    {NORI__OP_ONNX_HardSwish, curve},
    {NORI__OP_ONNX_Relu, same},
    {NORI__OP_ONNX_Clip, same},
    {NORI__OP_ONNX_MaxPool, same},
    {NORI__OP_ONNX_AveragePool, same},
    {NORI__OP_ONNX_GlobalAveragePool, same},
    {NORI__OP_ONNX_ReduceMean, same},
    {NORI__OP_ONNX_Reshape, same},
    {NORI__OP_ONNX_Flatten, same},
    {NORI__OP_ONNX_Squeeze, same},
    {NORI__OP_ONNX_Unsqueeze, same},
    {NORI__OP_ONNX_Transpose, same},
    {NORI__OP_ONNX_Slice, same},
    {NORI__OP_ONNX_Concat, same},
    {NORI__OP_ONNX_Pad, same},
    {NORI__OP_ONNX_Resize, same},
    {NORI__OP_ONNX_DepthToSpace, same},
};

bool nori__na_integers(na_part *p, const na_job *j)
{
    sandwich s;
    for (size_t i = 0; i < NORI__COUNT(makers); i++) {
        if (!nori__node_is(j->node, makers[i].op)) {
            continue;
        }
        if (!find_end(p, j, &s) || !makers[i].make(p, &s)) {
            return false;
        }
        nori__links_take(&p->links, &s.way);
        return true;
    }
    return false;
}
