/* fuse_affine.c: y = x * s[c] + t[c] behind a Conv, ConvTranspose or Gemm goes into its weights.
 * That is BatchNormalization at inference, and Mul, Div, Add or Sub by constants that hold one
 * number a channel (or one for all). The sums are made in double; results differ from the graph
 * as written by rounding only. */
#include "passes/passes.h"

#include <math.h>

/* What follows the maker: two numbers a channel. */
typedef struct affine {
    double *scale, *shift;
    bool scales; /* false: all scales are 1 */
} affine;

/* ---- the maker: a node with constant weights ---- */

typedef struct maker {
    nori__node *node;
    const nori_tensor *weight, *bias; /* bias NULL: none */
    uint32_t weight_at, bias_at;
    int64_t channels;
    int rank; /* of its output; -1: not known */
} maker;

/* Without data where the file has them at an odd address: who reads them settles them. */
static const nori_tensor *const_in(const nori__node *n, uint32_t i)
{
    return i < n->input_count ? nori__value_as_is(n->inputs[i]) : NULL;
}

static bool is_gemm(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_Gemm);
}

static bool is_transposed(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_ConvTranspose);
}

/* The channel an element of the weight belongs to. */
static int64_t channel_of(const maker *m, int64_t index)
{
    const nori_tensor *w = m->weight;
    if (is_gemm(m->node)) {
        bool rows = nori__attr_i(m->node, "transB", 0) != 0;
        return rows ? index / w->dims[1] : index % w->dims[1];
    }
    int64_t inner = w->count / w->dims[0]; /* elements behind the first axis */
    if (!is_transposed(m->node)) {
        return index / inner;
    }
    int64_t group = nori__attr_i(m->node, "group", 1), per_group = w->dims[1];
    int64_t row = index / inner, space = inner / per_group;
    return row / (w->dims[0] / group) * per_group + index / space % per_group;
}

static bool find_maker(nori__node *n, maker *m)
{
    bool conv = nori__node_is(n, NORI__OP_ONNX_Conv);
    if (!conv && !is_transposed(n) && !is_gemm(n)) {
        return false;
    }
    *m = (maker){.node = n, .weight_at = 1, .bias_at = 2};
    m->weight = const_in(n, 1);
    bool has_bias = n->input_count > 2 && n->inputs[2];
    m->bias = has_bias ? const_in(n, 2) : NULL;
    const nori_tensor *w = m->weight;
    if (n->output_count != 1 || !w || (has_bias && !m->bias) || w->count == 0 ||
        (w->type != NORI_FLOAT && w->type != NORI_DOUBLE) || w->rank < 2 ||
        (m->bias && m->bias->type != w->type)) {
        return false;
    }
    m->rank = w->rank;
    m->channels = w->dims[0];
    if (is_gemm(n)) {
        m->rank = 2;
        m->channels = w->rank == 2 ? w->dims[nori__attr_i(n, "transB", 0) ? 0 : 1] : 0;
        if (nori__attr_f(n, "alpha", 1) != 1 || nori__attr_f(n, "beta", 1) != 1) {
            return false;
        }
    } else if (is_transposed(n)) {
        int64_t group = nori__attr_i(n, "group", 1);
        if (group < 1 || w->dims[0] % group != 0 ||
            !nori__mul_dim(w->dims[1], group, &m->channels)) {
            return false;
        }
    }
    return m->channels > 0 && (!m->bias || m->bias->count == m->channels) &&
           (!m->bias || m->bias->dims[m->bias->rank - 1] == m->channels);
}

/* ---- what follows ---- */

/* t as one number a channel, for values [N, channels, ...] of that rank. */
static bool per_channel(const nori_tensor *t, const maker *m)
{
    if (!t || t->type != m->weight->type || t->rank > m->rank) {
        return false;
    }
    for (int d = 0; d < t->rank; d++) {
        bool channel = d == t->rank - (m->rank - 1);
        if (t->dims[d] != 1 && !(channel && t->dims[d] == m->channels)) {
            return false;
        }
    }
    return true;
}

static double number(const nori_tensor *t, int64_t channel)
{
    return nori__tensor_get_f64(t, t->count == 1 ? 0 : channel);
}

static bool read_batchnorm(const nori__node *n, const maker *m, affine *a)
{
    const nori_tensor *p[5];
    if (n->input_count != 5 || nori__attr_i(n, "training_mode", 0) ||
        nori__attr_i(n, "spatial", 1) == 0) {
        return false;
    }
    for (uint32_t i = 1; i < 5; i++) {
        p[i] = const_in(n, i);
        if (!p[i] || p[i]->count != m->channels || !nori__type_is_float((nori_type)p[i]->type) ||
            !nori__tensor_settle(p[i])) {
            return false;
        }
    }
    for (uint32_t i = 1; i < n->output_count; i++) {
        if (n->outputs[i]) {
            return false; /* training, or somebody reads the statistics */
        }
    }
    double epsilon = (double)nori__attr_f(n, "epsilon", 1e-5f);
    for (int64_t c = 0; c < m->channels; c++) {
        double s = nori__tensor_get_f64(p[1], c) / sqrt(nori__tensor_get_f64(p[4], c) + epsilon);
        a->scale[c] = s;
        a->shift[c] = nori__tensor_get_f64(p[2], c) - nori__tensor_get_f64(p[3], c) * s;
    }
    a->scales = true;
    return true;
}

/* Mul, Div, Add, Sub: x may stand on either side of Mul and Add. */
static bool read_arithmetic(const nori__node *n, const nori__value *x, const maker *m, affine *a)
{
    bool mul = nori__node_is(n, NORI__OP_ONNX_Mul), add = nori__node_is(n, NORI__OP_ONNX_Add);
    bool div = nori__node_is(n, NORI__OP_ONNX_Div), sub = nori__node_is(n, NORI__OP_ONNX_Sub);
    if ((!mul && !add && !div && !sub) || n->input_count != 2) {
        return false;
    }
    bool second = (mul || add) && n->inputs[1] == x;
    const nori_tensor *t = const_in(n, second ? 0 : 1);
    if ((!second && n->inputs[0] != x) || !per_channel(t, m) || !nori__tensor_settle(t)) {
        return false;
    }
    for (int64_t c = 0; c < m->channels; c++) {
        double v = number(t, c);
        a->scale[c] = mul ? v : div ? 1 / v : 1;
        a->shift[c] = add ? v : sub ? -v : 0;
    }
    a->scales = mul || div;
    return true;
}

/* Weights that would no longer be finite are left as they are: a variance of 0 with a tiny
 * epsilon, or a division by 0. */
static bool is_finite(const affine *a, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        if (!isfinite((float)a->scale[c]) || !isfinite((float)a->shift[c])) {
            return false;
        }
    }
    return true;
}

/* ---- putting it in ---- */

static nori_status new_weight(const maker *m, const affine *a, nori_error *err)
{
    const nori_tensor *w = m->weight;
    nori_tensor *t = NULL;
    NORI__TRY(nori__tensor_copy(m->node->graph->ir->allocator, w, &t, err));
    for (int64_t i = 0; i < w->count; i++) {
        nori__tensor_set_f64(t, i, nori__tensor_get_f64(t, i) * a->scale[channel_of(m, i)]);
    }
    nori__value *v = nori__const_new(m->node->graph, NULL, t);
    return v && nori__node_set_input(m->node, m->weight_at, v) ? NORI_OK : nori__no_memory(err);
}

static nori_status new_bias(const maker *m, const affine *a, nori_error *err)
{
    nori_tensor *t = NULL;
    if (m->bias && !nori__tensor_settle(m->bias)) {
        return nori__no_memory(err);
    }
    NORI__TRY(nori__tensor_new(m->node->graph->ir->allocator, (nori_type)m->weight->type, 1,
                               &m->channels, &t, err));
    for (int64_t c = 0; c < m->channels; c++) {
        double b = m->bias ? nori__tensor_get_f64(m->bias, c) : 0;
        nori__tensor_set_f64(t, c, b * a->scale[c] + a->shift[c]);
    }
    nori__value *v = nori__const_new(m->node->graph, NULL, t);
    return v && nori__node_set_input(m->node, m->bias_at, v) ? NORI_OK : nori__no_memory(err);
}

/* The follower's output is made by the maker from now on. */
static void take_output(nori__node *maker_node, nori__node *follower)
{
    nori__value *out = follower->outputs[0];
    nori__value *was = maker_node->outputs[0];
    nori__node_remove(follower);
    maker_node->outputs[0] = out;
    out->producer = maker_node;
    was->producer = NULL;
}

static nori_status fuse(nori__node *n, bool *fused, nori_error *err)
{
    maker m;
    *fused = false;
    nori__value *x = NULL;
    for (uint32_t i = 0; i < n->input_count && i < 2 && !x; i++) {
        nori__value *v = n->inputs[i];
        x = v && v->producer && v->producer->graph == n->graph && v->uses == 1 &&
                    !(v->flags & NORI__VALUE_OUTPUT) && find_maker(v->producer, &m)
                ? v
                : NULL;
    }
    if (!x || n->output_count < 1 || !n->outputs[0]) {
        return NORI_OK;
    }
    nori__arena scratch;
    nori__arena_init(&scratch, n->graph->ir->allocator);
    affine a = {0};
    a.scale = nori__arena_array(&scratch, (size_t)m.channels, sizeof(double));
    a.shift = nori__arena_array(&scratch, (size_t)m.channels, sizeof(double));
    nori_status s = a.scale && a.shift ? NORI_OK : nori__no_memory(err);
    bool fits = false;
    if (s == NORI_OK) {
        bool norm = nori__node_is(n, NORI__OP_ONNX_BatchNormalization) && n->inputs[0] == x;
        fits = (norm ? read_batchnorm(n, &m, &a) : read_arithmetic(n, x, &m, &a)) &&
               is_finite(&a, m.channels);
    }
    if (fits) {
        s = a.scales ? new_weight(&m, &a, err) : NORI_OK;
        s = s == NORI_OK ? new_bias(&m, &a, err) : s;
        if (s == NORI_OK) {
            take_output(m.node, n);
            *fused = true;
        }
    }
    nori__arena_free(&scratch);
    return s;
}

nori_status nori__pass_fuse_affine(nori__ir *ir, bool *changed, nori_error *err)
{
    if (!NORI__IR_HAS(ir, NORI__OP_ONNX_Conv, NORI__OP_ONNX_ConvTranspose, NORI__OP_ONNX_Gemm)) {
        return NORI_OK;
    }
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first, *next; n; n = next) {
            bool fused;
            next = n->next;
            if (n->op) {
                NORI__TRY(fuse(n, &fused, err));
                *changed = *changed || fused;
            }
        }
    }
    return NORI_OK;
}
