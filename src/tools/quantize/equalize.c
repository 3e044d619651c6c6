/* equalize.c: channels of like range across two layers (CLE). A factor a channel goes out of one layer
 * and into the next: where only a ReLU or the like stands between, the result is the same, and no
 * channel drowns beside a larger one. The factors are those of Nagel and others, "Data-free
 * quantization through weight equalization and bias correction", 2019: s = sqrt(r1 / r2), r being the
 * largest size of a weight in the channel of the first and second layer. */
#include <math.h>

#include "ops/op.h"
#include "tools/quantize/search.h"

#define SWEEPS 8        /* over all pairs: a layer in two of them settles by and by */
#define SETTLED 1e-3    /* factors this near 1 change nothing that matters */
#define MOST_FACTOR 1e3 /* channels further apart are dead rather than small */

typedef struct pair {
    nori__node *first, *second;
} pair;

static nori__node *sole_reader(const nori__value *v)
{
    if (v->uses != 1 || (v->flags & NORI__VALUE_OUTPUT)) {
        return NULL;
    }
    for (nori__node *n = v->producer->next; n; n = n->next) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            if (n->inputs[i] == v) {
                return i == 0 ? n : NULL;
            }
        }
    }
    return NULL; /* a subgraph reads it */
}

/* f(s x) = s f(x) for s > 0, channel by channel. */
static bool is_homogeneous(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_Relu) || nori__node_is(n, NORI__OP_ONNX_LeakyRelu) ||
           nori__node_is(n, NORI__OP_ONNX_MaxPool) || nori__node_is(n, NORI__OP_ONNX_AveragePool) ||
           nori__node_is(n, NORI__OP_ONNX_GlobalAveragePool) ||
           nori__node_is(n, NORI__OP_ONNX_Identity);
}

/* A layer whose weights may be scaled: constant, and nobody else's. */
static const nori_tensor *own_weight(const nori__node *n)
{
    bool fits = (nori__node_is(n, NORI__OP_ONNX_Conv) || nori__node_is(n, NORI__OP_ONNX_ConvTranspose) ||
                 nori__node_is(n, NORI__OP_ONNX_Gemm)) &&
                n->input_count > 1 && n->inputs[1] && nori__q_plain(n) &&
                !nori__attr_i(n, "transA", 0);
    const nori_tensor *w = fits ? nori__value_const(n->inputs[1]) : NULL;
    return w && w->type == NORI_FLOAT && n->inputs[1]->uses == 1 && w->count > 0 ? w : NULL;
}

static bool bias_fits(const nori__node *n, int64_t channels)
{
    const nori__value *v = n->input_count > 2 ? n->inputs[2] : NULL;
    const nori_tensor *b = nori__value_const(v);
    return !v || (b && b->type == NORI_FLOAT && b->count == channels && b->rank == 1 && v->uses == 1);
}

static bool find_pair(nori__node *first, pair *p)
{
    const nori_tensor *w = own_weight(first);
    if (!w || first->output_count != 1 || !bias_fits(first, nori__q_out_channels(first, w))) {
        return false;
    }
    nori__node *n = sole_reader(first->outputs[0]);
    while (n && is_homogeneous(n) && n->outputs[0]) {
        n = sole_reader(n->outputs[0]);
    }
    const nori_tensor *next = n ? own_weight(n) : NULL;
    *p = (pair){first, n};
    return next && nori__q_out_channels(first, w) > 0 &&
           nori__q_in_channels(n, next) == nori__q_out_channels(first, w);
}

/* A copy of its own for what is changed. */
static nori_status own_copy(nori__quantizer *q, nori__node *n, uint32_t index)
{
    nori_tensor *t = NULL;
    nori__value *old = n->inputs[index];
    NORI__TRY(nori__tensor_copy(q->ir->allocator, old->constant, &t, q->err));
    nori__value *v = nori__const_new(q->ir->main, old->name, t);
    return v && nori__node_set_input(n, index, v) ? NORI_OK : nori__no_memory(q->err);
}

static void ranges(const nori__node *n, bool of_input, double *most)
{
    const nori_tensor *w = n->inputs[1]->constant;
    const float *data = w->data;
    for (nori__q_walk k = nori__q_walk_begin(n, w); nori__q_walk_next(&k);) {
        double *m = &most[of_input ? k.in : k.out];
        for (int64_t i = k.at; i < k.at + k.count; i++) {
            double v = fabs((double)data[i]);
            *m = v > *m ? v : *m;
        }
    }
}

static void scale(nori__node *n, bool of_input, const double *factors)
{
    nori_tensor *w = n->inputs[1]->constant;
    float *data = w->data;
    for (nori__q_walk k = nori__q_walk_begin(n, w); nori__q_walk_next(&k);) {
        double f = of_input ? factors[k.in] : 1 / factors[k.out];
        for (int64_t i = k.at; i < k.at + k.count; i++) {
            data[i] = (float)((double)data[i] * f);
        }
    }
    if (!of_input && n->input_count > 2 && n->inputs[2]) {
        float *bias = n->inputs[2]->constant->data;
        for (int64_t c = 0; c < n->inputs[2]->constant->count; c++) {
            bias[c] = (float)((double)bias[c] / factors[c]);
        }
    }
}

/* The largest change of a factor, as its logarithm's size. */
static nori_status equalize(nori__quantizer *q, const pair *p, double *moved)
{
    nori__arena room;
    nori__arena_init(&room, q->allocator);
    int64_t count = nori__q_out_channels(p->first, p->first->inputs[1]->constant);
    double *r1 = nori__arena_array(&room, (size_t)count, sizeof(*r1));
    double *r2 = nori__arena_array(&room, (size_t)count, sizeof(*r2));
    if (!r1 || !r2) {
        nori__arena_free(&room);
        return nori__no_memory(q->err);
    }
    ranges(p->first, false, r1);
    ranges(p->second, true, r2);
    for (int64_t c = 0; c < count; c++) {
        double s = r1[c] > 0 && r2[c] > 0 ? sqrt(r1[c] / r2[c]) : 1;
        s = s > MOST_FACTOR || s < 1 / MOST_FACTOR || !isfinite(s) ? 1 : s;
        r1[c] = s;
        *moved = fabs(log(s)) > *moved ? fabs(log(s)) : *moved;
    }
    scale(p->first, false, r1);
    scale(p->second, true, r1);
    nori__arena_free(&room);
    return NORI_OK;
}

/* Channels of all that lies between the two have another size now. */
static nori_status rename_between(nori__quantizer *q, const pair *p)
{
    nori_status s = NORI_OK;
    for (nori__node *n = p->first; s == NORI_OK && n && n != p->second; n = sole_reader(n->outputs[0])) {
        s = nori__q_rename(q, n, "equalized");
    }
    return s;
}

nori_status nori__q_equalize(nori__quantizer *q, size_t *count)
{
    nori__vec pairs;
    nori_status s = NORI_OK;
    *count = 0;
    nori__vec_init(&pairs, q->allocator);
    for (nori__node *n = q->ir->main->first; s == NORI_OK && n; n = n->next) {
        pair found, *p;
        if (!find_pair(n, &found)) {
            continue;
        }
        p = nori__arena_alloc(&q->ir->arena, sizeof(*p));
        s = p && nori__vec_push(&pairs, p) ? NORI_OK : nori__no_memory(q->err);
        if (s == NORI_OK) {
            *p = found;
            s = own_copy(q, p->first, 1);
            s = s == NORI_OK && p->first->input_count > 2 && p->first->inputs[2]
                    ? own_copy(q, p->first, 2)
                    : s;
            s = s == NORI_OK ? own_copy(q, p->second, 1) : s;
        }
    }
    double moved = 1;
    for (int sweep = 0; s == NORI_OK && sweep < SWEEPS && moved > SETTLED; sweep++) {
        moved = 0;
        for (size_t i = 0; s == NORI_OK && i < pairs.count; i++) {
            s = equalize(q, pairs.items[i], &moved);
        }
    }
    for (size_t i = 0; s == NORI_OK && i < pairs.count; i++) {
        s = rename_between(q, pairs.items[i]);
    }
    *count = pairs.count;
    nori__vec_free(&pairs);
    return s;
}
