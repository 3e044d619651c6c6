/* cost.c: how many multiply-accumulates (a * b + c is one) a node takes.
 *
 * Counted is what the plain definition of the operator does: padding counts as data, Winograd and
 * other short cuts do not lower the number, so that it means the same for every kernel. */
#include "plan/cost.h"
#include "plan/partition.h"

#include "ops/einsum.h"

typedef struct counting {
    const nori__node *node;
    const nori_tensor *const *in, *const *out;
    uint32_t n_in, n_out;
    int64_t macs;
} counting;

static const nori_tensor *in_of(const counting *c, uint32_t i)
{
    return i < c->n_in ? c->in[i] : NULL;
}

static const nori_tensor *out_of(const counting *c, uint32_t i)
{
    return i < c->n_out ? c->out[i] : NULL;
}

static bool times(int64_t *product, int64_t factor)
{
    return nori__mul_dim(*product, factor, product);
}

/* Product of the dims behind the first. */
static bool kernel_size(const nori_tensor *w, int64_t *size)
{
    *size = 1;
    for (int d = 1; w && d < w->rank; d++) {
        if (!times(size, w->dims[d])) {
            return false;
        }
    }
    return w != NULL;
}

/* Each output element sums over a kernel: weights [M, C/group, k...] at input `at`. */
static bool conv(counting *c, uint32_t at)
{
    int64_t size;
    const nori_tensor *y = out_of(c, 0);
    if (!y || !kernel_size(in_of(c, at), &size)) {
        return false;
    }
    c->macs = y->count;
    return times(&c->macs, size);
}

static bool count_conv(counting *c)
{
    return conv(c, 1);
}

static bool count_qlinear_conv(counting *c)
{
    return conv(c, 3);
}

/* The cpu provider's own form, result [N, blocks, H, W, block]: channels that only fill a block are
 * no work of the model's. */
static bool count_blocked_conv(counting *c)
{
    const nori_tensor *w = in_of(c, 1), *y = out_of(c, 0);
    int64_t size;
    if (!y || y->rank != 5 || !kernel_size(w, &size) || w->rank < 1) {
        return false;
    }
    c->macs = y->dims[0];
    return times(&c->macs, w->dims[0]) && times(&c->macs, y->dims[2]) &&
           times(&c->macs, y->dims[3]) && times(&c->macs, size);
}

/* x [N, blocks, H, W, block] through 1 x 1 weights [E, C, 1, 1], then depthwise ones [E, 1, k, k]. */
static bool count_blocked_expand(counting *c)
{
    const nori_tensor *x = in_of(c, 0), *wide = in_of(c, 1), *y = out_of(c, 0);
    counting each = *c;
    int64_t depthwise = 0, size;
    if (!x || !y || x->rank != 5 || y->rank != 5 || !wide || wide->rank < 1 || !kernel_size(wide, &size)) {
        return false;
    }
    each.in = c->in + 2; /* the depthwise weights stand where a convolution's do */
    each.n_in = c->n_in > 2 ? c->n_in - 2 : 0;
    if (!count_blocked_conv(&each)) {
        return false;
    }
    depthwise = each.macs;
    c->macs = x->dims[0];
    return times(&c->macs, x->dims[2]) && times(&c->macs, x->dims[3]) &&
           times(&c->macs, wide->dims[0]) && times(&c->macs, size) &&
           nori__add_i64(c->macs, depthwise, &c->macs);
}

/* The convolution before the pool: its strides, dilations and pads are in conv_window. */
static bool count_blocked_stem(counting *c)
{
    const nori_tensor *x = in_of(c, 0), *w = in_of(c, 1);
    size_t n = 0;
    const int64_t *conv = nori__attr_ints(c->node, "conv_window", &n);
    int64_t size;
    if (!x || x->rank != 4 || !w || w->rank != 4 || n != 8 || !kernel_size(w, &size)) {
        return false;
    }
    c->macs = x->dims[0];
    for (int d = 0; d < 2; d++) {
        int64_t rest = x->dims[d + 2] + conv[4 + d] + conv[6 + d] - ((w->dims[d + 2] - 1) * conv[2 + d] + 1);
        if (!times(&c->macs, rest < 0 ? 0 : rest / conv[d] + 1)) {
            return false;
        }
    }
    return times(&c->macs, w->dims[0]) && times(&c->macs, size);
}

static bool count_blocked_conv_transpose(counting *c)
{
    const nori_tensor *x = in_of(c, 0), *w = in_of(c, 1);
    int64_t size;
    if (!x || x->rank < 4 || !kernel_size(w, &size) || w->rank < 1) {
        return false;
    }
    c->macs = x->dims[0];
    return times(&c->macs, w->dims[0]) && times(&c->macs, x->dims[2]) &&
           times(&c->macs, x->dims[3]) && times(&c->macs, size);
}

/* Each input element is spread over a kernel: weights [C, M/group, k...]. */
static bool count_conv_transpose(counting *c)
{
    int64_t size;
    const nori_tensor *x = in_of(c, 0);
    if (!x || !kernel_size(in_of(c, 1), &size)) {
        return false;
    }
    c->macs = x->count;
    return times(&c->macs, size);
}

/* out elements times the shared dimension, read off A. */
static bool count_matmul(counting *c)
{
    const nori_tensor *a = in_of(c, 0), *y = out_of(c, 0);
    bool turned = nori__attr_i(c->node, "transA", 0) != 0;
    if (!a || !y || a->rank < 1) {
        return false;
    }
    c->macs = y->count;
    return times(&c->macs, turned && a->rank > 1 ? a->dims[a->rank - 2] : a->dims[a->rank - 1]);
}

static bool count_matmul_bits(counting *c)
{
    const nori_tensor *y = out_of(c, 0);
    int64_t k = nori__attr_i(c->node, "K", 0);
    c->macs = y ? y->count : 0;
    return y && k > 0 && times(&c->macs, k);
}

/* Every combination of labels once; fewer than two operands have nothing to multiply. */
static bool count_einsum(counting *c)
{
    int ranks[NORI__EINSUM_OPERANDS];
    int64_t shapes[NORI__EINSUM_OPERANDS][NORI_MAX_RANK];
    nori__einsum e;
    nori_error ignored = {0};
    if (c->n_in > NORI__EINSUM_OPERANDS) {
        return false;
    }
    for (uint32_t i = 0; i < c->n_in; i++) {
        if (!c->in[i]) {
            return false;
        }
        ranks[i] = c->in[i]->rank;
        nori__tensor_dims(c->in[i], shapes[i]);
    }
    if (c->n_in < 2) {
        return true;
    }
    const char *equation = nori__attr_s(c->node, "equation", "");
    if (nori__einsum_read(equation, (int)c->n_in, ranks, (const int64_t(*)[NORI_MAX_RANK])shapes,
                          &e, &ignored) != NORI_OK) {
        return false;
    }
    c->macs = (int64_t)c->n_in - 1;
    for (int i = 0; i < NORI__EINSUM_LABELS; i++) {
        if (e.used[i] && (e.size[i] < 0 || !times(&c->macs, e.size[i]))) {
            return false;
        }
    }
    return true;
}

/* X [seq, batch, in], W [dirs, gates * hidden, in], R [dirs, gates * hidden, hidden]: each weight
 * is used once a step and item. */
static bool count_recurrent(counting *c)
{
    const nori_tensor *x = in_of(c, 0), *w = in_of(c, 1), *r = in_of(c, 2);
    if (!x || !w || !r || x->rank != 3) {
        return false;
    }
    c->macs = x->dims[0];
    return times(&c->macs, x->dims[1]) && times(&c->macs, w->count + r->count);
}

/* Scores and weighted sum: batch * queries * keys * (width of all query heads + of the result). */
static bool attend(counting *c, int64_t batch, int64_t queries, int64_t keys, int64_t width)
{
    int64_t n = batch;
    if (!times(&n, queries) || !times(&n, keys) || !times(&n, width)) {
        return false;
    }
    return nori__add_i64(c->macs, n, &c->macs);
}

static bool count_attention(counting *c)
{
    const nori_tensor *q = in_of(c, 0), *k = in_of(c, 1), *past = in_of(c, 4), *y = out_of(c, 0);
    if (!q || !k || !y || q->rank != k->rank || (q->rank != 3 && q->rank != 4) ||
        y->rank != q->rank || (past && past->rank != 4)) {
        return false;
    }
    int at = q->rank - 2; /* the axis of positions */
    int64_t keys = k->dims[at] + (past ? past->dims[2] : 0);
    int64_t width = q->rank == 3 ? q->dims[2] + y->dims[2] : q->dims[1] * (q->dims[3] + y->dims[3]);
    return attend(c, q->dims[0], q->dims[at], keys, width);
}

/* com.microsoft: input [batch, seq, in] is first projected by weights [in, 3 * hidden]. */
static bool projected(counting *c, uint32_t past_at)
{
    const nori_tensor *x = in_of(c, 0), *w = in_of(c, 1), *past = in_of(c, past_at);
    const nori_tensor *y = out_of(c, 0);
    if (!x || !w || !y || x->rank != 3 || y->rank != 3 || w->rank != 2 ||
        (past && past->rank != 5)) {
        return false;
    }
    c->macs = x->dims[0];
    if (!times(&c->macs, x->dims[1]) || !times(&c->macs, w->count)) {
        return false;
    }
    int64_t keys = x->dims[1] + (past ? past->dims[3] : 0);
    return attend(c, x->dims[0], x->dims[1], keys, w->dims[1] - y->dims[2]);
}

static bool count_ms_attention(counting *c)
{
    return projected(c, 4);
}

static bool count_q_attention(counting *c)
{
    return projected(c, 8);
}

/* com.microsoft: result [batch, seq, width], present keys [batch, heads, positions, size]; where a
 * cache has room for more positions than are used, all of it is counted. */
static bool count_group_query(counting *c)
{
    const nori_tensor *y = out_of(c, 0), *present = out_of(c, 1);
    if (!y || !present || y->rank != 3 || present->rank != 4) {
        return false;
    }
    return attend(c, y->dims[0], y->dims[1], present->dims[2], 2 * y->dims[2]);
}

/* com.microsoft: query, key and value are [batch, seq, width] of their own. */
static bool count_multi_head(counting *c)
{
    const nori_tensor *q = in_of(c, 0), *k = in_of(c, 1), *y = out_of(c, 0);
    if (!q || !k || !y || q->rank != 3 || k->rank != 3 || y->rank != 3 || in_of(c, 6)) {
        return false;
    }
    return attend(c, q->dims[0], q->dims[1], k->dims[1], q->dims[2] + y->dims[2]);
}

/* The cpu provider's own form: every score is a sum over the depth of Q, every result over the keys. */
static bool count_attend(counting *c)
{
    const nori_tensor *q = in_of(c, 0), *k = in_of(c, 1), *y = out_of(c, 0);
    size_t n;
    const int64_t *pq = nori__attr_ints(c->node, "perm_q", &n);
    const int64_t *pk = nori__attr_ints(c->node, "perm_k", &n);
    if (!q || !k || !y || !pq || !pk || n < 3 || (size_t)q->rank != n || (size_t)k->rank != n) {
        return false;
    }
    int64_t depth = q->dims[pq[n - 1]], scores = q->count / (depth > 0 ? depth : 1);
    int64_t keys = k->dims[pk[n - 1]], sums = y->count;
    c->macs = scores;
    if (!times(&c->macs, depth) || !times(&c->macs, keys) || !times(&sums, keys) ||
        sums > INT64_MAX - c->macs) {
        return false;
    }
    c->macs += sums;
    return true;
}

/* Of a family that multiplies, but not so. */
static bool count_none(counting *c)
{
    (void)c;
    return true;
}

static const struct {
    const char *domain, *name;
    bool (*count)(counting *c);
} rules[] = {
    {"", "Conv", count_conv},
    {"", "ConvInteger", count_conv},
    {"", "DeformConv", count_conv},
    {"com.microsoft", "FusedConv", count_conv},
    {"nori", "BlockedConv", count_blocked_conv},
    {"nori", "BlockedConvTranspose", count_blocked_conv_transpose},
    {"nori", "BlockedExpand", count_blocked_expand},
    {"nori", "BlockedStem", count_blocked_stem},
    {"nori", "LastConv", count_qlinear_conv},
    {"nori", "Product", count_matmul},
    {"nori", "Attend", count_attend},
    {"", "QLinearConv", count_qlinear_conv},
    {"com.microsoft", "QLinearConv", count_qlinear_conv},
    {"", "ConvTranspose", count_conv_transpose},
    {"", "Gemm", count_matmul},
    {"com.microsoft", "FusedGemm", count_matmul},
    {"com.microsoft", "QGemm", count_matmul},
    {"", "MatMul", count_matmul},
    {"", "MatMulInteger", count_matmul},
    {"", "QLinearMatMul", count_matmul},
    {"com.microsoft", "FusedMatMul", count_matmul},
    {"com.microsoft", "TransposeMatMul", count_matmul},
    {"com.microsoft", "MatMulIntegerToFloat", count_matmul},
    {"com.microsoft", "DynamicQuantizeMatMul", count_matmul},
    {"com.microsoft", "MatMulNBits", count_matmul_bits},
    {"", "Einsum", count_einsum},
    {"", "RNN", count_recurrent},
    {"", "GRU", count_recurrent},
    {"", "LSTM", count_recurrent},
    {"com.microsoft", "DynamicQuantizeLSTM", count_recurrent},
    {"", "Attention", count_attention},
    {"com.microsoft", "Attention", count_ms_attention},
    {"com.microsoft", "QAttention", count_q_attention},
    {"com.microsoft", "MultiHeadAttention", count_multi_head},
    {"com.microsoft", "GroupQueryAttention", count_group_query},
    {"", "Col2Im", count_none},
    {"", "Det", count_none},
    {"", "RotaryEmbedding", count_none},
    {"com.microsoft", "RotaryEmbedding", count_none},
    {"com.microsoft", "EmbedLayerNormalization", count_none},
};

/* Operators that multiply, by family or, where a provider made them, by name: one without a rule
 * must not count as 0. */
static bool multiplies(const nori__node *node)
{
    static const char *const families[] = {"conv", "gemm", "recurrent", "attention"};
    static const char *const names[] = {"Conv", "MatMul", "Gemm", "Attention"};
    for (size_t i = 0; node->op && i < NORI__COUNT(families); i++) {
        if (nori__same(node->op->family, families[i])) {
            return true;
        }
    }
    for (size_t i = 0; i < NORI__COUNT(names); i++) {
        if (strstr(node->op_type, names[i])) {
            return true;
        }
    }
    return false;
}

bool nori__cost_macs(const nori__node *node, const nori_tensor *const *in, uint32_t n_in,
                     const nori_tensor *const *out, uint32_t n_out, uint64_t *macs)
{
    counting c = {.node = node, .in = in, .out = out, .n_in = n_in, .n_out = n_out};
    *macs = 0;
    for (size_t i = 0; i < NORI__COUNT(rules); i++) {
        if (nori__same(rules[i].name, node->op_type) && nori__same(rules[i].domain, node->domain)) {
            bool known = rules[i].count(&c) && c.macs >= 0;
            *macs = known ? (uint64_t)c.macs : 0;
            return known;
        }
    }
    return !multiplies(node);
}

/* ---- time ---- */

/* One thread of a small machine; what counts is how nodes compare with each other and with copies. */
#define NS_PER_MAC 0.04
#define NS_PER_BYTE 0.1
#define NS_PER_NODE 500.0
#define MOST_SHAPES 16 /* of inputs and of outputs that are looked at */

uint64_t nori__cost_bytes(const nori__value *v)
{
    uint64_t bits = v->type.elem ? nori_type_bits((nori_type)v->type.elem) : 32;
    double count = bits ? (double)bits / 8 : 16; /* strings */
    for (int d = 0; d < v->type.rank; d++) {
        count *= v->type.dims[d].value >= 0 ? (double)v->type.dims[d].value : 1;
    }
    return count < 1e18 ? (uint64_t)count : (uint64_t)1e18;
}

/* A header of the value's type and shape; NULL: nothing is known. */
static const nori_tensor *shape_of(const nori__value *v, nori_tensor *room)
{
    int64_t dims[NORI_MAX_RANK];
    if (!v || v->type.kind != NORI_KIND_TENSOR || v->type.rank < 0 || !v->type.elem) {
        return NULL;
    }
    for (int d = 0; d < v->type.rank; d++) {
        dims[d] = v->type.dims[d].value >= 0 ? v->type.dims[d].value : 1;
    }
    room->kind = NORI_KIND_TENSOR;
    return nori__tensor_reshape(room, (nori_type)v->type.elem, v->type.rank, dims) ? room : NULL;
}

double nori__cost_ns(const nori__node *node)
{
    nori_tensor room[2 * MOST_SHAPES];
    const nori_tensor *in[MOST_SHAPES] = {NULL}, *out[MOST_SHAPES] = {NULL};
    uint32_t n_in = node->input_count < MOST_SHAPES ? node->input_count : MOST_SHAPES;
    uint32_t n_out = node->output_count < MOST_SHAPES ? node->output_count : MOST_SHAPES;
    double bytes = 0;
    uint64_t macs = 0;
    memset(room, 0, sizeof(room));
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (i < n_in) {
            in[i] = shape_of(node->inputs[i], &room[i]);
        }
        bytes += node->inputs[i] ? (double)nori__cost_bytes(node->inputs[i]) : 0;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (i < n_out) {
            out[i] = shape_of(node->outputs[i], &room[MOST_SHAPES + i]);
        }
        bytes += node->outputs[i] ? (double)nori__cost_bytes(node->outputs[i]) : 0;
    }
    nori__cost_macs(node, in, n_in, out, n_out, &macs);
    return NS_PER_NODE + NS_PER_MAC * (double)macs + NS_PER_BYTE * bytes;
}
