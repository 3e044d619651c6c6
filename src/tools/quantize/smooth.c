/* smooth.c: outliers of activations go into weights (SmoothQuant; Xiao and others, 2022). Behind a
 * normalization a few channels are often a hundred times larger than the rest. What the normalization
 * multiplies each channel with is divided by s = sqrt(largest activation / largest weight), and the
 * rows of the products that read it are multiplied: the result is the same. */
#include <math.h>

#include "ops/op.h"
#include "tools/quantize/search.h"

typedef struct place { /* where a factor a channel can go */
    nori__node *scale_node, *shift_node; /* shift_node NULL: nothing is added */
    uint32_t scale_at, shift_at;
    nori__value *out; /* what the products read */
} place;

static bool vector_of(const nori__value *v, int64_t count)
{
    const nori_tensor *t = nori__value_const(v);
    return t && t->type == NORI_FLOAT && t->count == count && t->rank > 0 &&
           t->dims[t->rank - 1] == count;
}

static int const_operand(const nori__node *n)
{
    for (uint32_t i = 0; i < 2 && n->input_count == 2; i++) {
        if (n->inputs[i] && nori__value_const(n->inputs[i])) {
            return (int)i;
        }
    }
    return -1;
}

static bool find_place(nori__node *n, place *p)
{
    int at = const_operand(n);
    *p = (place){0};
    if (nori__node_is(n, NORI__OP_ONNX_LayerNormalization) && n->input_count > 1 &&
        nori__attr_i(n, "axis", -1) == -1) {
        bool shifted = n->input_count > 2 && n->inputs[2];
        *p = (place){n, shifted ? n : NULL, 1, 2, n->outputs[0]};
        return true;
    }
    if (nori__node_is(n, NORI__OP_ONNX_Mul) && at >= 0) {
        *p = (place){n, NULL, (uint32_t)at, 0, n->outputs[0]};
        return true;
    }
    if (nori__node_is(n, NORI__OP_ONNX_Add) && at >= 0 && n->inputs[1 - at] &&
        n->inputs[1 - at]->uses == 1 && n->inputs[1 - at]->producer) {
        nori__node *m = n->inputs[1 - at]->producer;
        int scale = const_operand(m);
        if (nori__node_is(m, NORI__OP_ONNX_Mul) && scale >= 0 && m->graph == n->graph) {
            *p = (place){m, n, (uint32_t)scale, (uint32_t)at, n->outputs[0]};
            return true;
        }
    }
    return false;
}

/* The largest weight of each row over all readers; false: somebody else reads the value too. */
static bool weights_of(nori__quantizer *q, const nori__value *v, int64_t count, double *most,
                       nori__vec *readers)
{
    uint32_t found = 0;
    for (nori__node *n = v->producer->next; n && found < v->uses; n = n->next) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            if (n->inputs[i] != v) {
                continue;
            }
            const nori_tensor *w = i == 0 && n->input_count > 1 ? nori__value_const(n->inputs[1]) : NULL;
            bool product = nori__node_is(n, NORI__OP_ONNX_MatMul) || nori__node_is(n, NORI__OP_ONNX_Gemm);
            if (!product || !w || w->type != NORI_FLOAT || nori__q_in_channels(n, w) != count ||
                nori__attr_i(n, "transA", 0) || !nori__vec_push(readers, n)) {
                return false;
            }
            found++;
            for (nori__q_walk k = nori__q_walk_begin(n, w); nori__q_walk_next(&k);) {
                double size = fabs(nori__tensor_get_f64(w, k.at)); /* matrices: stretches of 1 */
                most[k.in] = size > most[k.in] ? size : most[k.in];
            }
        }
    }
    (void)q;
    return found == v->uses && found > 0;
}

static nori_status scaled(nori__quantizer *q, nori__node *n, uint32_t index, const double *factors,
                          bool rows)
{
    nori_tensor *t = NULL;
    const nori__value *old = n->inputs[index];
    NORI__TRY(nori__tensor_copy(q->ir->allocator, nori__value_const(old), &t, q->err));
    float *data = t->data;
    if (rows) {
        for (nori__q_walk k = nori__q_walk_begin(n, t); nori__q_walk_next(&k);) {
            data[k.at] = (float)((double)data[k.at] * factors[k.in]);
        }
    }
    for (int64_t k = 0; !rows && k < t->count; k++) {
        data[k] = (float)((double)data[k] / factors[k]);
    }
    nori__value *v = nori__const_new(q->ir->main, old->name, t);
    return v && nori__node_set_input(n, index, v) ? NORI_OK : nori__no_memory(q->err);
}

static nori_status smooth_one(nori__quantizer *q, const place *p, nori__arena *room, size_t *count)
{
    const nori__q_channels *c = nori__map_get(&q->channels, p->out->name);
    if (!c || c->axis != -1 || c->numbers == 0 || p->out->uses == 0 ||
        !vector_of(p->scale_node->inputs[p->scale_at], c->count) ||
        (p->shift_node && !vector_of(p->shift_node->inputs[p->shift_at], c->count))) {
        return NORI_OK;
    }
    nori__vec readers;
    nori__vec_init(&readers, q->allocator);
    double *factors = nori__arena_array(room, (size_t)c->count, sizeof(*factors));
    nori_status s = factors ? NORI_OK : nori__no_memory(q->err);
    if (s == NORI_OK && weights_of(q, p->out, c->count, factors, &readers)) {
        for (int64_t k = 0; k < c->count; k++) {
            bool alive = c->most[k] > 0 && factors[k] > 0;
            double f = alive ? sqrt(c->most[k] / factors[k]) : 1;
            factors[k] = isfinite(f) && f > 1e-5 && f < 1e5 ? f : 1;
        }
        s = scaled(q, p->scale_node, p->scale_at, factors, false);
        s = s == NORI_OK && p->shift_node
                ? scaled(q, p->shift_node, p->shift_at, factors, false)
                : s;
        for (size_t i = 0; s == NORI_OK && i < readers.count; i++) {
            s = scaled(q, readers.items[i], 1, factors, true);
            (*count)++;
        }
        if (s == NORI_OK && p->shift_node && p->shift_node != p->scale_node) {
            s = nori__q_rename(q, p->scale_node, "smoothed");
        }
        s = s == NORI_OK ? nori__q_rename(q, p->out->producer, "smoothed") : s;
    }
    nori__vec_free(&readers);
    return s;
}

nori_status nori__q_smooth(nori__quantizer *q, size_t *count)
{
    nori__arena room;
    nori_status s = NORI_OK;
    *count = 0;
    nori__arena_init(&room, q->allocator);
    for (nori__node *n = q->ir->main->first; s == NORI_OK && n; n = n->next) {
        place p;
        if (find_place(n, &p)) {
            s = smooth_one(q, &p, &room, count);
        }
    }
    nori__arena_free(&room);
    return s;
}
