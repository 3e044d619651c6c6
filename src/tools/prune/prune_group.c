/* prune_group.c: what has the same channels as a layer's result. Channels go from value to value through
 * normalization, activation, pooling, depthwise convolution; where values meet element by element (residual
 * sums, gates) all of them have the same channels, and so have the layers that make them. All of these
 * lose a channel together, with the constants that go with it and the weights of whoever reads it. Where
 * the channels leave the graph or come into another order, the group is declined, and says why. */
#include <stdio.h>

#include "ops/resolve.h"
#include "tools/prune/prune.h"

#define MOST_VALUES 4096 /* of a group: walks of all layers stay cheap on any graph */

static bool decline(nori__prune_group *g, const nori__node *n, const char *what)
{
    char path[256];
    nori__node_path(n, path, sizeof(path));
    snprintf(g->why, sizeof(g->why), "%s %s", path, what);
    return false;
}

static bool out_of_memory(nori__prune_group *g)
{
    g->no_memory = true;
    return false;
}

static bool is_one_of(const nori__node *n, const nori__op_id *ids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (nori__node_is(n, ids[i])) {
            return true;
        }
    }
    return false;
}

static bool add_cut(nori__prune_group *g, nori__node *n, uint32_t input, int axis, int64_t stretch)
{
    const nori__value *v = input < n->input_count ? n->inputs[input] : NULL;
    const nori_tensor *t = nori__value_const(v);
    if (!t) {
        return decline(g, n, "has weights that are not constant");
    }
    if (t->type != NORI_FLOAT || axis >= t->rank || t->dims[axis] != g->channels * stretch) {
        return decline(g, n, "has weights of another shape");
    }
    nori__prune_cut *c = nori__arena_alloc(&g->room, sizeof(*c));
    if (!c || !nori__vec_push(&g->cuts, c)) {
        return out_of_memory(g);
    }
    *c = (nori__prune_cut){n, input, axis, stretch};
    return true;
}

/* The value is one of the group. */
static bool follow(nori__prune_group *g, const nori__node *n, nori__value *v)
{
    uint32_t *mark = &g->p->value_marks[v->id];
    if (*mark == g->number) {
        return true;
    }
    *mark = g->number;
    if (g->values.count == MOST_VALUES) {
        return decline(g, n, "is one too many to follow");
    }
    return nori__vec_push(&g->values, v) || out_of_memory(g);
}

/* ---- who reads the channels, and ends them ---- */

/* A product over features, each channel being a stretch of them. */
static bool product(nori__prune_group *g, nori__node *n)
{
    const nori_tensor *t = n->input_count > 1 ? nori__value_const(n->inputs[1]) : NULL;
    bool gemm = nori__node_is(n, NORI__OP_ONNX_Gemm);
    if (!t || t->rank != 2 || (gemm && nori__attr_i(n, "transA", 0))) {
        return decline(g, n, "has weights that are not constant");
    }
    int axis = gemm && nori__attr_i(n, "transB", 0) ? 1 : 0;
    return add_cut(g, n, 1, axis, t->dims[axis] / g->channels);
}

/* [N, C, ...] to [N, C * ...]: only products read that. */
static bool flattened(nori__prune_group *g, nori__node *n)
{
    bool flat = nori__node_is(n, NORI__OP_ONNX_Flatten) && nori__attr_i(n, "axis", 1) == 1;
    const nori_tensor *shape = nori__node_is(n, NORI__OP_ONNX_Reshape) && n->input_count > 1
                                   ? nori__value_const(n->inputs[1])
                                   : NULL;
    if (shape) { /* [0 or N, -1] */
        flat = shape->count == 2 && nori__tensor_get_i64(shape, 1) == -1;
    }
    nori__value *v = n->output_count > 0 ? n->outputs[0] : NULL;
    if (!flat || !v || (v->flags & NORI__VALUE_OUTPUT)) {
        return decline(g, n, "brings the channels into another order");
    }
    const nori__pruner *p = g->p;
    uint32_t first = p->reader_first[v->id], end = p->reader_first[v->id + 1];
    for (uint32_t i = first; i < end; i++) {
        nori__node *r = p->readers[i];
        bool fits = r->inputs[0] == v && (nori__node_is(r, NORI__OP_ONNX_Gemm) ||
                                          nori__node_is(r, NORI__OP_ONNX_MatMul));
        if (!fits) {
            return decline(g, r, "reads all channels in a row");
        }
        if (!product(g, r)) {
            return false;
        }
    }
    return end - first == v->uses ? true : decline(g, n, "is read in a subgraph");
}

/* ---- what has the channels in what it reads and in what it makes ---- */

static bool depthwise(const nori__prune_group *g, const nori__node *n)
{
    const nori_tensor *t = n->input_count > 1 ? nori__value_const(n->inputs[1]) : NULL;
    return t && nori__node_is(n, NORI__OP_ONNX_Conv) && t->rank == g->rank &&
           nori__attr_i(n, "group", 1) == g->channels && g->channels > 1 &&
           t->dims[0] == g->channels;
}

static bool parameters(nori__prune_group *g, nori__node *n)
{
    for (uint32_t i = 1; i < 5; i++) {
        if (n->input_count <= i || !n->inputs[i]) {
            return decline(g, n, "lacks its parameters");
        }
        if (!add_cut(g, n, i, 0, 1)) {
            return false;
        }
    }
    return true;
}

/* A constant that meets the channels, its shape aligned at the end: it may hold one entry for all. */
static bool constant(nori__prune_group *g, nori__node *n, uint32_t input)
{
    const nori_tensor *t = nori__value_const(n->inputs[input]);
    int axis = t->rank - (g->rank - 1);
    if (t->rank > g->rank) {
        return decline(g, n, "has weights of another shape");
    }
    return axis < 0 || t->dims[axis] == 1 || add_cut(g, n, input, axis, 1);
}

static bool joins(nori__prune_group *g, nori__node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++) {
        nori__value *v = n->inputs[i];
        if (v && (nori__value_const(v) ? !constant(g, n, i) : !follow(g, n, v))) {
            return false;
        }
    }
    return true;
}

/* Element by element, and all it reads has the channels. */
static bool is_join(const nori__node *n)
{
    static const nori__op_id ids[] = {NORI__OP_ONNX_Add, NORI__OP_ONNX_Sub, NORI__OP_ONNX_Mul,
                                      NORI__OP_ONNX_Div, NORI__OP_ONNX_Max, NORI__OP_ONNX_Min,
                                      NORI__OP_ONNX_Sum, NORI__OP_ONNX_Mean, NORI__OP_ONNX_PRelu};
    return is_one_of(n, ids, NORI__COUNT(ids));
}

static bool passes_channels(const nori__node *n)
{
    static const nori__op_id ids[] = {
        NORI__OP_ONNX_Relu,        NORI__OP_ONNX_Clip,    NORI__OP_ONNX_LeakyRelu,
        NORI__OP_ONNX_Sigmoid,     NORI__OP_ONNX_Tanh,    NORI__OP_ONNX_HardSwish,
        NORI__OP_ONNX_HardSigmoid, NORI__OP_ONNX_Elu,     NORI__OP_ONNX_Selu,
        NORI__OP_ONNX_Softplus,    NORI__OP_ONNX_Mish,    NORI__OP_ONNX_Gelu,
        NORI__OP_ONNX_Identity,    NORI__OP_ONNX_Dropout, NORI__OP_ONNX_MaxPool,
        NORI__OP_ONNX_AveragePool, NORI__OP_ONNX_GlobalAveragePool, NORI__OP_ONNX_GlobalMaxPool};
    return is_one_of(n, ids, NORI__COUNT(ids));
}

static bool is_normalization(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_BatchNormalization);
}

static bool keeps_channels(const nori__prune_group *g, const nori__node *n)
{
    return is_join(n) || passes_channels(n) || is_normalization(n) || depthwise(g, n);
}

/* From either side: all that the node reads and makes is of the group. */
static bool through(nori__prune_group *g, nori__node *n)
{
    uint32_t *mark = &g->p->node_marks[n->id];
    if (*mark == g->number) {
        return true;
    }
    *mark = g->number;
    for (uint32_t i = 1; i < n->output_count; i++) {
        if (n->outputs[i] && n->outputs[i]->uses > 0) {
            return decline(g, n, "has further results");
        }
    }
    if (n->output_count == 0 || !n->outputs[0]) {
        return decline(g, n, "has no result");
    }
    if (is_join(n)) {
        return joins(g, n) && follow(g, n, n->outputs[0]);
    }
    if (is_normalization(n) && !parameters(g, n)) {
        return false;
    }
    if (depthwise(g, n)) {
        bool biased = n->input_count > 2 && n->inputs[2];
        if (!add_cut(g, n, 1, 0, 1) || (biased && !add_cut(g, n, 2, 0, 1))) {
            return false;
        }
        if (!nori__vec_push(&g->grouped, n)) {
            return out_of_memory(g);
        }
    }
    nori__value *from = n->inputs[0];
    return (from && !nori__value_const(from) ? follow(g, n, from)
                                             : decline(g, n, "reads a constant")) &&
           follow(g, n, n->outputs[0]);
}

static bool reads(nori__prune_group *g, nori__node *n, const nori__value *v)
{
    if (keeps_channels(g, n)) {
        return is_join(n) || n->inputs[0] == v ? through(g, n)
                                               : decline(g, n, "reads them as parameters");
    }
    bool matrix = g->rank == 2;
    bool conv = nori__node_is(n, NORI__OP_ONNX_Conv);
    if (n->inputs[0] != v) {
        return decline(g, n, "joins the channels with others");
    }
    if (conv || nori__node_is(n, NORI__OP_ONNX_ConvTranspose)) {
        return nori__attr_i(n, "group", 1) == 1 ? add_cut(g, n, 1, conv ? 1 : 0, 1)
                                                : decline(g, n, "works in groups of channels");
    }
    if (nori__node_is(n, NORI__OP_ONNX_Flatten) || nori__node_is(n, NORI__OP_ONNX_Reshape)) {
        return flattened(g, n);
    }
    if (nori__node_is(n, NORI__OP_ONNX_Gemm) || (matrix && nori__node_is(n, NORI__OP_ONNX_MatMul))) {
        return product(g, n);
    }
    return decline(g, n, "joins the channels with others");
}

/* ---- who makes them ---- */

int nori__prune_out_axis(const nori__node *n)
{
    bool turned = nori__node_is(n, NORI__OP_ONNX_Gemm) && nori__attr_i(n, "transB", 0);
    return nori__node_is(n, NORI__OP_ONNX_Conv) || turned ? 0 : 1;
}

const char *nori__prune_unfit(const nori__node *n)
{
    if (nori__node_is(n, NORI__OP_ONNX_Conv) || nori__node_is(n, NORI__OP_ONNX_ConvTranspose)) {
        return nori__attr_i(n, "group", 1) == 1 ? NULL : "it works in groups of channels";
    }
    return nori__node_is(n, NORI__OP_ONNX_Gemm) ? NULL : "its outputs are no channels of their own";
}

/* A layer of its own: its weights and its bias lose the channel. */
static bool layer(nori__prune_group *g, nori__node *n)
{
    const nori_tensor *w = n->inputs[1]->constant;
    nori__value *b = n->input_count > 2 ? n->inputs[2] : NULL;
    const nori_tensor *bias = nori__value_const(b);
    if (w->rank != g->rank || !add_cut(g, n, 1, nori__prune_out_axis(n), 1)) {
        return g->why[0] || g->no_memory ? false : decline(g, n, "has weights of another shape");
    }
    if (!nori__vec_push(&g->layers, n)) {
        return out_of_memory(g);
    }
    if (!b || (bias && bias->count == 1 && g->channels > 1)) {
        return true; /* one number for all channels */
    }
    return add_cut(g, n, 2, bias ? bias->rank - 1 : 0, 1);
}

static bool makes(nori__prune_group *g, nori__node *n, const nori__value *v)
{
    if (!n) {
        snprintf(g->why, sizeof(g->why), "its channels are those of the input %s", v->name);
        return false;
    }
    if (n->outputs[0] != v) {
        return decline(g, n, "makes them beside other results");
    }
    if (keeps_channels(g, n)) {
        return through(g, n);
    }
    if (!nori__prune_weighted(g->p, n)) {
        return decline(g, n, "makes channels that must stay");
    }
    return nori__prune_unfit(n) ? decline(g, n, "works in groups of channels") : layer(g, n);
}

/* ---- */

static bool walk(nori__prune_group *g, nori__node *start)
{
    const nori__pruner *p = g->p;
    if (!follow(g, start, start->outputs[0])) {
        return false;
    }
    for (size_t k = 0; k < g->values.count; k++) {
        nori__value *v = g->values.items[k];
        uint32_t first = p->reader_first[v->id], end = p->reader_first[v->id + 1];
        if (v->flags & NORI__VALUE_OUTPUT) {
            snprintf(g->why, sizeof(g->why), "its channels are those of the output %s", v->name);
            return false;
        }
        if (!makes(g, v->producer, v)) {
            return false;
        }
        for (uint32_t i = first; i < end; i++) {
            if (!reads(g, p->readers[i], v)) {
                return false;
            }
        }
        if (end - first != v->uses) {
            return decline(g, v->producer, "is read in a subgraph");
        }
    }
    return true;
}

nori_status nori__prune_group_find(nori__pruner *p, nori__node *start, nori__prune_group *g)
{
    const nori_tensor *w = start->inputs[1]->constant;
    *g = (nori__prune_group){.p = p, .channels = w->dims[nori__prune_out_axis(start)],
                             .rank = w->rank, .number = ++p->groups};
    nori__arena_init(&g->room, p->allocator);
    nori__vec_init(&g->cuts, p->allocator);
    nori__vec_init(&g->layers, p->allocator);
    nori__vec_init(&g->grouped, p->allocator);
    nori__vec_init(&g->values, p->allocator);
    g->fits = walk(g, start);
    if (g->no_memory) {
        nori__prune_group_free(g);
        return nori__no_memory(p->err);
    }
    return NORI_OK;
}

void nori__prune_group_free(nori__prune_group *g)
{
    nori__vec_free(&g->cuts);
    nori__vec_free(&g->layers);
    nori__vec_free(&g->grouped);
    nori__vec_free(&g->values);
    nori__arena_free(&g->room);
}

/* Tables by value and node; constants that come later are not asked about. */
nori_status nori__prune_index(nori__pruner *p)
{
    size_t uses = 0;
    p->value_marks = nori__arena_array(&p->arena, (size_t)p->ir->value_count + 1, sizeof(uint32_t));
    p->node_marks = nori__arena_array(&p->arena, (size_t)p->ir->node_count + 1, sizeof(uint32_t));
    p->reader_first = nori__arena_array(&p->arena, (size_t)p->ir->value_count + 2, sizeof(uint32_t));
    if (!p->value_marks || !p->node_marks || !p->reader_first) {
        return nori__no_memory(p->err);
    }
    for (const nori__node *n = p->ir->main->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            if (n->inputs[i]) {
                p->reader_first[n->inputs[i]->id + 1]++;
                uses++;
            }
        }
    }
    for (uint32_t i = 0; i < p->ir->value_count; i++) {
        p->reader_first[i + 1] += p->reader_first[i];
    }
    p->readers = nori__arena_array(&p->arena, uses + 1, sizeof(nori__node *));
    if (!p->readers) {
        return nori__no_memory(p->err);
    }
    for (nori__node *n = p->ir->main->last; n; n = n->prev) {
        for (uint32_t i = n->input_count; i-- > 0;) {
            if (n->inputs[i]) { /* from the back: what is left is where the value's readers end */
                uint32_t *used = &p->value_marks[n->inputs[i]->id];
                p->readers[p->reader_first[n->inputs[i]->id + 1] - ++*used] = n;
            }
        }
    }
    memset(p->value_marks, 0, ((size_t)p->ir->value_count + 1) * sizeof(uint32_t));
    return NORI_OK;
}
