/* prune_channels.c: channels of least weight leave a convolution or Gemm, and with them what reads
 * them: normalization, activation, pooling, depthwise convolution, and the next layer's weights. Where
 * the channels meet others (sums, joins) or leave the graph, the layer stays as it is, and the report
 * names what stands in the way. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ops/resolve.h"
#include "tools/prune/prune.h"

/* One constant that loses entries: channel c is the stretch [c * stretch, (c + 1) * stretch). */
typedef struct cut {
    nori__node *node;
    uint32_t input;
    int axis;
    int64_t stretch;
} cut;

typedef struct walk {
    nori__pruner *p;
    int64_t channels;
    bool matrix; /* [N, channels]: the layer is a Gemm */
    cut cuts[128];
    size_t n_cuts;
    nori__node *grouped[32]; /* depthwise convolutions: their group shrinks too */
    size_t n_grouped;
    nori__value *todo[64];   /* values whose axis 1 are the channels */
    size_t n_todo;
    char why[384];
} walk;

static bool decline(walk *w, const nori__node *n, const char *what)
{
    char path[256];
    nori__node_path(n, path, sizeof(path));
    snprintf(w->why, sizeof(w->why), "%s %s", path, what);
    return false;
}

static bool add_cut(walk *w, nori__node *n, uint32_t input, int axis, int64_t stretch)
{
    const nori__value *v = n->inputs[input];
    const nori_tensor *t = nori__value_const(v);
    if (!t || v->uses != 1 || t->type != NORI_FLOAT) {
        return decline(w, n, !t ? "has weights that are not constant" : "shares its weights");
    }
    if (axis >= t->rank || t->dims[axis] != w->channels * stretch) {
        return decline(w, n, "has weights of another shape");
    }
    if (w->n_cuts == NORI__COUNT(w->cuts)) {
        return decline(w, n, "is one too many to follow");
    }
    w->cuts[w->n_cuts++] = (cut){n, input, axis, stretch};
    return true;
}

static bool follow(walk *w, const nori__node *n, nori__value *v)
{
    if (w->n_todo == NORI__COUNT(w->todo)) {
        return decline(w, n, "is one too many to follow");
    }
    w->todo[w->n_todo++] = v;
    return true;
}

/* ---- who reads the channels ---- */

static bool passes_channels(const nori__node *n)
{
    static const nori__op_id ids[] = {
        NORI__OP_ONNX_Relu,        NORI__OP_ONNX_Clip,    NORI__OP_ONNX_LeakyRelu,
        NORI__OP_ONNX_Sigmoid,     NORI__OP_ONNX_Tanh,    NORI__OP_ONNX_HardSwish,
        NORI__OP_ONNX_HardSigmoid, NORI__OP_ONNX_Elu,     NORI__OP_ONNX_Selu,
        NORI__OP_ONNX_Softplus,    NORI__OP_ONNX_Mish,    NORI__OP_ONNX_Gelu,
        NORI__OP_ONNX_Identity,    NORI__OP_ONNX_Dropout, NORI__OP_ONNX_MaxPool,
        NORI__OP_ONNX_AveragePool, NORI__OP_ONNX_GlobalAveragePool, NORI__OP_ONNX_GlobalMaxPool};
    for (size_t i = 0; i < NORI__COUNT(ids); i++) {
        if (nori__node_is(n, ids[i])) {
            return true;
        }
    }
    return false;
}

/* A product over features, each channel being a stretch of them. */
static bool product(walk *w, nori__node *n)
{
    const nori_tensor *t = n->input_count > 1 ? nori__value_const(n->inputs[1]) : NULL;
    bool gemm = nori__node_is(n, NORI__OP_ONNX_Gemm);
    if (!t || t->rank != 2 || (gemm && nori__attr_i(n, "transA", 0))) {
        return decline(w, n, "has weights that are not constant");
    }
    int axis = gemm && nori__attr_i(n, "transB", 0) ? 1 : 0;
    int64_t stretch = t->dims[axis] / w->channels;
    return add_cut(w, n, 1, axis, stretch);
}

/* [N, C, ...] to [N, C * ...]: only products read that. */
static bool flattened(walk *w, nori__node *n)
{
    bool flat = nori__node_is(n, NORI__OP_ONNX_Flatten) && nori__attr_i(n, "axis", 1) == 1;
    const nori_tensor *shape = nori__node_is(n, NORI__OP_ONNX_Reshape) && n->input_count > 1
                                   ? nori__value_const(n->inputs[1])
                                   : NULL;
    if (shape) { /* [0 or N, -1] */
        flat = shape->count == 2 && nori__tensor_get_i64(shape, 1) == -1;
    }
    nori__value *v = n->outputs[0];
    if (!flat || (v->flags & NORI__VALUE_OUTPUT)) {
        return decline(w, n, "brings the channels into another order");
    }
    uint32_t found = 0;
    for (nori__node *r = n->next; r; r = r->next) {
        for (uint32_t i = 0; i < r->input_count; i++) {
            if (r->inputs[i] != v) {
                continue;
            }
            found++;
            bool fits = i == 0 && (nori__node_is(r, NORI__OP_ONNX_Gemm) ||
                                   nori__node_is(r, NORI__OP_ONNX_MatMul));
            if (!fits) {
                return decline(w, r, "reads all channels in a row");
            }
            if (!product(w, r)) {
                return false;
            }
        }
    }
    return found == v->uses ? true : decline(w, n, "is read in a subgraph");
}

static bool convolution(walk *w, nori__node *n)
{
    int64_t group = nori__attr_i(n, "group", 1);
    const nori_tensor *t = nori__value_const(n->inputs[1]);
    if (group == 1) {
        return add_cut(w, n, 1, 1, 1);
    }
    if (!t || t->rank < 3 || group != w->channels || t->dims[0] != group) {
        return decline(w, n, "works in groups of channels");
    }
    if (w->n_grouped == NORI__COUNT(w->grouped)) {
        return decline(w, n, "is one too many to follow");
    }
    w->grouped[w->n_grouped++] = n;
    return add_cut(w, n, 1, 0, 1) &&
           (n->input_count < 3 || !n->inputs[2] || add_cut(w, n, 2, 0, 1)) &&
           follow(w, n, n->outputs[0]);
}

static bool normalization(walk *w, nori__node *n)
{
    for (uint32_t i = 1; i < 5; i++) {
        if (n->input_count <= i || !n->inputs[i] || !add_cut(w, n, i, 0, 1)) {
            return w->why[0] ? false : decline(w, n, "lacks its parameters");
        }
    }
    return follow(w, n, n->outputs[0]);
}

static bool reads(walk *w, nori__node *n, uint32_t input)
{
    bool others = false;
    for (uint32_t i = 1; i < n->output_count; i++) {
        others = others || (n->outputs[i] && n->outputs[i]->uses > 0);
    }
    if (input != 0 || others) {
        return decline(w, n, "joins the channels with others");
    }
    if (nori__node_is(n, NORI__OP_ONNX_Conv)) {
        return convolution(w, n);
    }
    if (nori__node_is(n, NORI__OP_ONNX_ConvTranspose) && nori__attr_i(n, "group", 1) == 1) {
        return add_cut(w, n, 1, 0, 1);
    }
    if (nori__node_is(n, NORI__OP_ONNX_BatchNormalization)) {
        return normalization(w, n);
    }
    if (nori__node_is(n, NORI__OP_ONNX_Flatten) || nori__node_is(n, NORI__OP_ONNX_Reshape)) {
        return flattened(w, n);
    }
    if (nori__node_is(n, NORI__OP_ONNX_Gemm) || (w->matrix && nori__node_is(n, NORI__OP_ONNX_MatMul))) {
        return product(w, n);
    }
    return passes_channels(n) ? follow(w, n, n->outputs[0])
                              : decline(w, n, "joins the channels with others");
}

static bool all_readers(walk *w, nori__node *from)
{
    for (size_t k = 0; k < w->n_todo; k++) {
        nori__value *v = w->todo[k];
        uint32_t found = 0;
        if (v->flags & NORI__VALUE_OUTPUT) {
            snprintf(w->why, sizeof(w->why), "its channels are those of the output %s", v->name);
            return false;
        }
        for (nori__node *n = from; n && found < v->uses; n = n->next) {
            for (uint32_t i = 0; i < n->input_count; i++) {
                if (n->inputs[i] == v) {
                    found++;
                    if (!reads(w, n, i)) {
                        return false;
                    }
                }
            }
        }
        if (found != v->uses) {
            return decline(w, from, "is read in a subgraph");
        }
    }
    return true;
}

/* ---- taking channels out ---- */

static nori_status shorten(nori__pruner *p, const cut *c, const bool *keep, int64_t channels,
                           int64_t kept)
{
    const nori__value *v = c->node->inputs[c->input];
    const nori_tensor *t = v->constant;
    int64_t dims[NORI_MAX_RANK], outer = 1, inner = c->stretch;
    nori_tensor *made = NULL;
    for (int d = 0; d < t->rank; d++) {
        dims[d] = d == c->axis ? kept * c->stretch : t->dims[d];
        outer *= d < c->axis ? t->dims[d] : 1;
        inner *= d > c->axis ? t->dims[d] : 1;
    }
    NORI__TRY(nori__tensor_new(p->ir->allocator, NORI_FLOAT, t->rank, dims, &made, p->err));
    float *to = made->data;
    const float *from = t->data;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < channels; i++, from += inner) {
            if (keep[i]) {
                memcpy(to, from, (size_t)inner * sizeof(float));
                to += inner;
            }
        }
    }
    const char *name = nori__arena_printf(&p->arena, "%s_pruned", v->name);
    nori__value *value = name ? nori__const_new(p->ir->main, name, made) : NULL;
    if (!name) {
        nori_tensor_free(made);
    }
    return value && nori__node_set_input(c->node, c->input, value) ? NORI_OK
                                                                   : nori__no_memory(p->err);
}

typedef struct ranked {
    double size; /* sum of |w| */
    int64_t channel;
} ranked;

static int by_size(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    int order = (x->size > y->size) - (x->size < y->size);
    return order ? order : (x->channel > y->channel) - (x->channel < y->channel);
}

/* Marks the channels that stay; how many. */
static nori_status choose(nori__pruner *p, const nori_tensor *t, int axis, bool **keep, int64_t *kept)
{
    int64_t channels = t->dims[axis], inner = 1;
    ranked *r = nori__arena_array(&p->arena, (size_t)channels, sizeof(*r));
    *keep = nori__arena_array(&p->arena, (size_t)channels, sizeof(**keep));
    if (!r || !*keep) {
        return nori__no_memory(p->err);
    }
    for (int d = axis + 1; d < t->rank; d++) {
        inner *= t->dims[d];
    }
    for (int64_t i = 0; i < t->count; i++) {
        int64_t c = i / inner % channels;
        r[c].channel = c;
        r[c].size += fabs(nori__tensor_get_f64(t, i));
    }
    qsort(r, (size_t)channels, sizeof(*r), by_size);
    int64_t drop = (int64_t)floor(p->options->share * (double)channels);
    drop = drop < channels ? drop : channels - 1;
    for (int64_t i = drop; i < channels; i++) {
        (*keep)[r[i].channel] = true;
    }
    *kept = channels - drop;
    return NORI_OK;
}

/* The weight's own channels and the bias's. */
static bool own_cuts(walk *w, nori__node *n, int axis)
{
    const nori_tensor *bias = n->input_count > 2 ? nori__value_const(n->inputs[2]) : NULL;
    bool has_bias = n->input_count > 2 && n->inputs[2];
    if (!add_cut(w, n, 1, axis, 1)) {
        return false;
    }
    if (!has_bias || (bias && bias->count == 1 && w->channels > 1)) {
        return true; /* one number for all channels */
    }
    return add_cut(w, n, 2, bias ? bias->rank - 1 : 0, 1);
}

static nori_status prune_node(nori__pruner *p, nori__node *n)
{
    const nori_tensor *t = n->inputs[1]->constant;
    bool conv = nori__node_is(n, NORI__OP_ONNX_Conv), gemm = nori__node_is(n, NORI__OP_ONNX_Gemm);
    int axis = conv || nori__attr_i(n, "transB", 0) ? 0 : 1;
    nori_prune_node row = {.weights = (uint64_t)t->count};
    if ((!conv && !gemm) || (conv && nori__attr_i(n, "group", 1) != 1)) {
        nori__prune_report_node(p, n, row, conv ? "it works in groups of channels"
                                                : "its outputs are no channels of their own");
        return NORI_OK;
    }
    walk *w = nori__arena_alloc(&p->arena, sizeof(*w));
    if (!w) {
        return nori__no_memory(p->err);
    }
    w->p = p;
    w->matrix = gemm;
    w->channels = t->dims[axis];
    row.channels_before = row.channels_after = w->channels;
    bool fits = own_cuts(w, n, axis) && follow(w, n, n->outputs[0]) && all_readers(w, n->next);
    bool *keep = NULL;
    int64_t kept = w->channels;
    NORI__TRY(choose(p, t, axis, &keep, &kept));
    if (!fits || kept == w->channels) {
        nori__prune_report_node(p, n, row, fits ? "it has too few channels for one to go" : w->why);
        return NORI_OK;
    }
    row.channels_after = kept;
    for (size_t i = 0; i < w->n_cuts; i++) {
        const cut *c = &w->cuts[i];
        int64_t before = c->node->inputs[c->input]->constant->count;
        NORI__TRY(shorten(p, c, keep, w->channels, kept));
        row.removed += (uint64_t)(before - c->node->inputs[c->input]->constant->count);
    }
    for (size_t i = 0; i < w->n_grouped; i++) {
        if (!nori__node_set_int(w->grouped[i], "group", kept)) {
            return nori__no_memory(p->err);
        }
    }
    nori__prune_report_node(p, n, row, NULL);
    return NORI_OK;
}

nori_status nori__prune_channels(nori__pruner *p)
{
    for (nori__node *n = p->ir->main->first; n; n = n->next) {
        if (nori__prune_weighted(p, n) && n->outputs[0]) {
            NORI__TRY(prune_node(p, n));
        }
    }
    /* What was declared of inner values may be true no more. */
    for (nori__value *v = p->ir->main->values; v; v = v->next) {
        if (v->producer && !(v->flags & NORI__VALUE_OUTPUT)) {
            v->type = (nori__type){.rank = -1};
            v->declared = v->type;
            v->pb = NULL;
        }
    }
    return nori__infer_graph(p->ir, p->err);
}
