/* op_attention.c: attention in one kernel (kernels/attention.cl): the operator Attention, and a Softmax
 * between two products, with a factor and a mask before it. */
#include <math.h>

#include "providers/gpu/gpu.h"

#define WIDEST 128          /* elements of a row, as the kernel has it */
#define ITEMS 64            /* of a group, likewise */
#define LOCAL_BYTES 25600   /* its arrays */

/* What the kernel is told; strides of batch, head, row and element. */
typedef struct attend {
    gpu_mem *q, *k, *v, *mask, *y;
    int64_t batch, heads, shared; /* shared: heads that have one k and v */
    int64_t m, n, d, dv;
    int64_t by_q[4], by_k[4], by_v[4], by_y[4], by_mask[4];
    float scale;
    bool causal;
} attend;

static void emit(gpu_lower *l, const attend *a)
{
    nori__gpu_kernel(l, GPU_IN_attention, "attend");
    nori__gpu_mem(l, a->q);
    nori__gpu_mem(l, a->k);
    nori__gpu_mem(l, a->v);
    nori__gpu_mem(l, a->mask ? a->mask : nori__gpu_zero(l));
    nori__gpu_mem(l, a->y);
    nori__gpu_int4(l, a->m, a->n, a->d, a->dv);
    nori__gpu_int4(l, a->by_q[0], a->by_q[1], a->by_q[2], a->by_q[3]);
    nori__gpu_int4(l, a->by_k[0], a->by_k[1], a->by_k[2], a->by_k[3]);
    nori__gpu_int4(l, a->by_v[0], a->by_v[1], a->by_v[2], a->by_v[3]);
    nori__gpu_int4(l, a->by_y[0], a->by_y[1], a->by_y[2], a->by_y[3]);
    nori__gpu_int4(l, a->by_mask[0], a->by_mask[1], a->by_mask[2], a->by_mask[3]);
    nori__gpu_int2(l, a->heads, a->shared);
    nori__gpu_float(l, a->scale);
    nori__gpu_int(l, a->causal);
    nori__gpu_int(l, a->mask != NULL);
    nori__gpu_groups(l, a->batch * a->heads * ((a->m + 15) / 16), 1, 1, ITEMS);
}

/* A shape as four dimensions, 1 in front. */
static void four(const gpu_shape *s, int64_t dims[4])
{
    for (int d = 0; d < 4; d++) {
        dims[d] = d < 4 - s->rank ? 1 : s->dims[d - (4 - s->rank)];
    }
}

/* Strides of [batch, head, row, element] that lie so. */
static void dense(const int64_t dims[4], int64_t by[4])
{
    by[3] = 1;
    by[2] = dims[3];
    by[1] = dims[2] * dims[3];
    by[0] = dims[1] * by[1];
}

static void read_mask(gpu_lower *l, const gpu_node *n, attend *a)
{
    if (n->n_in <= 3 || n->in[3] == UINT32_MAX) {
        return;
    }
    int64_t dims[4];
    four(nori__gpu_in_shape(l, n, 3), dims);
    dense(dims, a->by_mask);
    for (int d = 0; d < 4; d++) {
        a->by_mask[d] = dims[d] == 1 ? 0 : a->by_mask[d];
    }
    a->mask = nori__gpu_in(l, n, 3);
}

static bool device_can(const gpu_self *self)
{
    return self->local_memory >= LOCAL_BYTES && self->group_size >= ITEMS;
}

/* ---- a Softmax between products ---- */

typedef struct joined {
    float scale;
} joined;

static void lower_joined(gpu_lower *l, const gpu_node *n)
{
    int64_t q[4], k[4], v[4], y[4];
    four(nori__gpu_in_shape(l, n, 0), q);
    four(nori__gpu_in_shape(l, n, 1), k); /* [d][n] */
    four(nori__gpu_in_shape(l, n, 2), v);
    four(nori__gpu_out_shape(l, n, 0), y);
    attend a = {.batch = q[0], .heads = q[1], .shared = 1, .m = q[2], .n = k[3], .d = q[3], .dv = v[3],
                .scale = ((const joined *)n->more)->scale};
    dense(q, a.by_q);
    dense(k, a.by_k);
    a.by_k[2] = 1;
    a.by_k[3] = k[3];
    dense(v, a.by_v);
    dense(y, a.by_y);
    read_mask(l, n, &a);
    a.q = nori__gpu_in(l, n, 0);
    a.k = nori__gpu_in(l, n, 1);
    a.v = nori__gpu_in(l, n, 2);
    a.y = nori__gpu_out(l, n, 0);
    emit(l, &a);
}

static const gpu_op joined_op = {.name = "attention", .source = GPU_IN_attention, .lower = lower_joined};

/* Steps back from a value to the node that makes it, for nobody else; false: others see it. */
static bool step_back(const nori_part *part, uint32_t value, uint32_t reader, const bool *taken,
                      uint32_t *maker)
{
    uint32_t input;
    *maker = nori__gpu_maker(part, value);
    return *maker != UINT32_MAX && !taken[*maker] &&
           nori__gpu_only_reader(part, *maker, value, &input) == reader;
}

static bool is_product(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_MatMul);
}

/* The factor of a product's or quotient's one number. */
static bool read_factor(const nori__node *n, uint32_t *scores, float *scale)
{
    bool quotient = nori__node_is(n, NORI__OP_ONNX_Div);
    if (!quotient && !nori__node_is(n, NORI__OP_ONNX_Mul)) {
        return false;
    }
    for (uint32_t i = 0; i < 2 && n->input_count == 2; i++) {
        const nori_tensor *t = nori__gpu_const(n, 1 - i);
        if (t && t->count == 1 && t->type == NORI_FLOAT && !(quotient && i == 1)) {
            float v = *(const float *)t->data;
            *scale = quotient ? 1 / v : v;
            *scores = i;
            return isfinite(*scale);
        }
    }
    return false;
}

static bool same_front(const nori__value *a, const nori__value *b, int count)
{
    bool same = a->type.rank == b->type.rank;
    for (int d = 0; d < count && same; d++) {
        same = nori__dim_same(a->type.dims[d], b->type.dims[d]);
    }
    return same;
}

/* Products over the same batches, of rows the kernel has room for. */
static bool shapes_fit(const nori__node *first, const nori__node *last)
{
    const nori__value *q = first->inputs[0], *k = first->inputs[1], *v = last->inputs[1];
    int rank = q->type.rank;
    if (rank < 2 || rank > 4 || !same_front(q, k, rank - 2) || !same_front(q, v, rank - 2) ||
        v->type.elem != NORI_FLOAT) {
        return false;
    }
    int64_t d = q->type.dims[rank - 1].value, dv = v->type.dims[rank - 1].value;
    return d > 0 && d <= WIDEST && dv > 0 && dv <= WIDEST;
}

/* From a value of scores back to their product, over a factor, if any. */
static bool find_scores(const nori_part *part, uint32_t value, uint32_t reader, const bool *taken,
                        uint32_t nodes[2], float *scale)
{
    uint32_t at, input = 0;
    nodes[1] = UINT32_MAX;
    *scale = 1;
    if (!step_back(part, value, reader, taken, &at)) {
        return false;
    }
    if (read_factor(part->nodes[at], &input, scale)) {
        nodes[1] = at;
        if (!step_back(part, part->node_values[at][input], at, taken, &at)) {
            return false;
        }
    }
    nodes[0] = at;
    return is_product(part->nodes[at]);
}

/* The product's, with or without a mask; mask: its value, or UINT32_MAX. */
static bool find_before(const nori_part *part, uint32_t softmax, const bool *taken, uint32_t nodes[3],
                        float *scale, uint32_t *mask)
{
    uint32_t value = part->node_values[softmax][0], add;
    *mask = nodes[2] = UINT32_MAX;
    if (find_scores(part, value, softmax, taken, nodes, scale)) {
        return true;
    }
    if (!step_back(part, value, softmax, taken, &add) ||
        !nori__node_is(part->nodes[add], NORI__OP_ONNX_Add)) {
        return false;
    }
    nodes[2] = add;
    for (uint32_t i = 0; i < 2; i++) {
        const nori__node *n = part->nodes[add];
        const nori__value *scores = n->inputs[i];
        if (find_scores(part, part->node_values[add][i], add, taken, nodes, scale) &&
            same_front(scores, n->outputs[0], scores->type.rank) &&
            n->inputs[1 - i]->type.rank <= scores->type.rank) {
            *mask = part->node_values[add][1 - i];
            return true;
        }
    }
    return false;
}

static bool along_last(const nori__node *n)
{
    int rank = n->inputs[0]->type.rank;
    int64_t axis = nori__attr_i(n, "axis", n->version < 13 ? 1 : -1);
    return rank >= 2 && (axis == rank - 1 || (axis == -1 && n->version >= 11));
}

bool nori__gpu_find_attention(const gpu_self *self, gpu_part *p, uint32_t softmax, bool *taken,
                              gpu_node *found)
{
    const nori_part *part = p->part;
    const nori__node *n = part->nodes[softmax];
    uint32_t before[3], mask, input = 1;
    float scale;
    if (!nori__node_is(n, NORI__OP_ONNX_Softmax) || taken[softmax] || !device_can(self) ||
        !along_last(n) || !find_before(part, softmax, taken, before, &scale, &mask)) {
        return false;
    }
    uint32_t last = nori__gpu_only_reader(part, softmax, part->node_values[softmax][1], &input);
    if (last == UINT32_MAX || input != 0 || taken[last] || !is_product(part->nodes[last]) ||
        !shapes_fit(part->nodes[before[0]], part->nodes[last])) {
        return false;
    }
    joined *more = nori__arena_alloc(&p->arena, sizeof(*more));
    uint32_t *in = nori__arena_array(&p->arena, 5, sizeof(*in));
    if (!more || !in) {
        return false;
    }
    more->scale = scale;
    in[0] = part->node_values[before[0]][0];
    in[1] = part->node_values[before[0]][1];
    in[2] = part->node_values[last][1];
    in[3] = mask;
    in[4] = part->node_values[last][2];
    *found = (gpu_node){.at = last, .node = part->nodes[last], .op = &joined_op, .in = in, .out = in + 4,
                        .n_in = 4, .n_out = 1, .more = more};
    taken[softmax] = taken[last] = true;
    for (int i = 0; i < 3; i++) {
        if (before[i] != UINT32_MAX) {
            taken[before[i]] = true;
        }
    }
    return true;
}

/* ---- the operator ---- */

/* Heads of input i: [B, H, S, D], or [B, S, H * D] with the attribute. */
static int64_t heads_of(const nori__node *n, uint32_t i)
{
    const nori__value *v = n->inputs[i];
    return v->type.rank == 4 ? v->type.dims[1].value
                             : nori__attr_i(n, i == 0 ? "q_num_heads" : "kv_num_heads", 0);
}

static int64_t width_of(const nori__node *n, uint32_t i)
{
    const nori__value *v = n->inputs[i];
    int64_t last = v->type.dims[v->type.rank - 1].value, heads = heads_of(n, i);
    return v->type.rank == 4 ? last : last > 0 && heads > 0 && last % heads == 0 ? last / heads : 0;
}

static bool takes_mask(const gpu_ask *ask)
{
    const nori__node *n = ask->node;
    if (!nori__gpu_has(n, 3)) {
        return true;
    }
    const nori__value *mask = n->inputs[3], *k = n->inputs[1];
    int rank = mask->type.rank;
    nori__dim keys = k->type.dims[k->type.rank - 2];
    return (mask->type.elem == NORI_FLOAT && rank >= 2 && rank <= 4 &&
            nori__dim_same(mask->type.dims[rank - 1], keys)) ||
           nori__gpu_no(ask, "it takes masks of floats, one for each key");
}

static bool takes_attention(const gpu_ask *ask)
{
    const nori__node *n = ask->node;
    if (!device_can(ask->self)) {
        return nori__gpu_no(ask, "the device has groups too small for it");
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (!nori__gpu_has(n, i) || n->inputs[i]->type.elem != NORI_FLOAT ||
            n->inputs[i]->type.rank < 3 || n->inputs[i]->type.rank > 4 ||
            n->inputs[i]->type.rank != n->inputs[0]->type.rank) {
            return nori__gpu_no(ask, "it takes three or four dimensions of float32 only");
        }
    }
    for (uint32_t i = 4; i < n->input_count; i++) {
        if (nori__gpu_has(n, i)) {
            return nori__gpu_no(ask, "it takes no cache of keys and values");
        }
    }
    int64_t heads = heads_of(n, 0), kv = heads_of(n, 1);
    if (nori__attr_f(n, "softcap", 0) != 0) {
        return nori__gpu_no(ask, "it has no softcap");
    }
    if (heads <= 0 || kv <= 0 || heads % kv != 0 || width_of(n, 0) <= 0 || width_of(n, 0) > WIDEST ||
        width_of(n, 2) <= 0 || width_of(n, 2) > WIDEST) {
        return nori__gpu_no(ask, "it takes heads of known size up to %d only", WIDEST);
    }
    return takes_mask(ask);
}

/* As [batch, head, row, element], whichever way it lies. */
static void lie(const gpu_shape *s, int64_t heads, int64_t dims[4], int64_t by[4])
{
    if (s->rank == 4) {
        four(s, dims);
        dense(dims, by);
        return;
    }
    dims[0] = s->dims[0];
    dims[1] = heads;
    dims[2] = s->dims[1];
    dims[3] = s->dims[2] / heads;
    by[0] = s->dims[1] * s->dims[2];
    by[1] = dims[3];
    by[2] = s->dims[2];
    by[3] = 1;
}

static void lower_attention(gpu_lower *l, const gpu_node *n)
{
    int64_t q[4], k[4], v[4], y[4], heads = heads_of(n->node, 0), kv = heads_of(n->node, 1);
    attend a = {.heads = heads, .shared = heads / kv, .causal = nori__attr_i(n->node, "is_causal", 0) != 0};
    lie(nori__gpu_in_shape(l, n, 0), heads, q, a.by_q);
    lie(nori__gpu_in_shape(l, n, 1), kv, k, a.by_k);
    lie(nori__gpu_in_shape(l, n, 2), kv, v, a.by_v);
    lie(nori__gpu_out_shape(l, n, 0), heads, y, a.by_y);
    a.batch = q[0];
    a.m = q[2];
    a.n = k[2];
    a.d = q[3];
    a.dv = v[3];
    a.scale = nori__attr_f(n->node, "scale", 1 / sqrtf((float)a.d));
    read_mask(l, n, &a);
    a.q = nori__gpu_in(l, n, 0);
    a.k = nori__gpu_in(l, n, 1);
    a.v = nori__gpu_in(l, n, 2);
    a.y = nori__gpu_out(l, n, 0);
    emit(l, &a);
}

const gpu_op nori__gpu_attention_ops[] = {
    {"Attention", GPU_IN_attention, false, 0, takes_attention, NULL, lower_attention},
    {0},
};
