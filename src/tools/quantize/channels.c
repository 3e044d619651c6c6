/* channels.c: what a weighted node multiplies with what, channel by channel, and what the samples
 * hold in each channel of its input. */
#include <math.h>

#include "run/run.h"
#include "tools/quantize/search.h"

/* ---- the form of weights ---- */

static bool is_conv(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_Conv);
}

static bool is_transposed(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_ConvTranspose);
}

/* Gemm with its weight as [out, in]. */
static bool is_turned(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_Gemm) && nori__attr_i(n, "transB", 0);
}

static int64_t groups(const nori__node *n)
{
    int64_t g = nori__attr_i(n, "group", 1);
    return g > 0 ? g : 1;
}

int64_t nori__q_out_channels(const nori__node *n, const nori_tensor *w)
{
    if (is_conv(n)) {
        return w->rank > 2 && w->dims[0] % groups(n) == 0 ? w->dims[0] : 0;
    }
    if (is_transposed(n)) {
        return w->rank > 2 && w->dims[0] % groups(n) == 0 ? w->dims[1] * groups(n) : 0;
    }
    return w->rank == 2 ? w->dims[!is_turned(n)] : 0;
}

int64_t nori__q_in_channels(const nori__node *n, const nori_tensor *w)
{
    if (nori__q_out_channels(n, w) == 0) {
        return 0;
    }
    if (is_conv(n)) {
        return w->dims[1] * groups(n);
    }
    return is_transposed(n) ? w->dims[0] : w->dims[is_turned(n)];
}

enum { ROWS_OUT, ROWS_IN, PLAIN, TURNED }; /* Conv, ConvTranspose, [in, out], [out, in] */

nori__q_walk nori__q_walk_begin(const nori__node *n, const nori_tensor *w)
{
    int form = is_conv(n) ? ROWS_OUT : is_transposed(n) ? ROWS_IN : is_turned(n) ? TURNED : PLAIN;
    bool conv = form == ROWS_OUT || form == ROWS_IN;
    nori__q_walk walk = {.form = form, .n_first = w->dims[0], .n_second = w->dims[1], .first = 0};
    walk.second = -1;
    walk.per_group = conv ? w->dims[0] / groups(n) : w->dims[0];
    walk.count = w->count > 0 ? w->count / (w->dims[0] * w->dims[1]) : 0;
    walk.at = -walk.count;
    return walk;
}

bool nori__q_walk_next(nori__q_walk *k)
{
    k->at += k->count;
    if (++k->second == k->n_second) {
        k->second = 0;
        k->first++;
        if (k->form <= ROWS_IN && k->first % k->per_group == 0) {
            k->base += k->n_second; /* the next group's channels */
        }
    }
    bool first_is_in = k->form == ROWS_IN || k->form == PLAIN;
    k->in = first_is_in ? k->first : k->base + k->second;
    k->out = first_is_in ? k->base + k->second : k->first;
    return k->count > 0 && k->first < k->n_first;
}

/* ---- what the samples hold ---- */

static void look(void *user, const char *name, const nori_tensor *t)
{
    nori__quantizer *q = user;
    nori__q_channels *c = nori__map_get(&q->channels, name);
    if (!c || t->kind != NORI_KIND_TENSOR || t->type != NORI_FLOAT) {
        return;
    }
    int axis = c->axis < 0 ? t->rank - 1 : c->axis;
    if (axis < 0 || axis >= t->rank || t->dims[axis] != c->count || t->count == 0) {
        return; /* of another form than its weight asks for: running will say so */
    }
    int64_t inner = 1;
    for (int d = axis + 1; d < t->rank; d++) {
        inner *= t->dims[d];
    }
    const float *v = t->data;
    for (int64_t first = 0; first < t->count; first += inner * c->count) {
        for (int64_t k = 0; k < c->count; k++) {
            double sum = 0, most = c->most[k];
            for (int64_t i = 0; i < inner; i++) {
                double x = (double)v[first + k * inner + i];
                if (isfinite(x)) {
                    sum += x;
                    most = fabs(x) > most ? fabs(x) : most;
                }
            }
            c->sum[k] += sum;
            c->most[k] = most;
        }
    }
    c->numbers += (double)(t->count / c->count);
}

static nori_status want(nori__quantizer *q, const nori__node *n)
{
    const nori_tensor *w = n->input_count > 1 ? nori__value_const(n->inputs[1]) : NULL;
    bool plain = nori__q_role_of(n) == NORI__Q_WEIGHTED && w && w->type == NORI_FLOAT && w->count > 0;
    int64_t count = plain ? nori__q_in_channels(n, w) : 0;
    if (count == 0 || !n->inputs[0] || nori__attr_i(n, "transA", 0)) {
        return NORI_OK;
    }
    nori__q_channels *c = nori__map_get(&q->channels, n->inputs[0]->name);
    if (c && c->count == count) {
        memset(c->sum, 0, (size_t)count * sizeof(*c->sum));
        memset(c->most, 0, (size_t)count * sizeof(*c->most));
        c->numbers = 0;
        return NORI_OK;
    }
    c = nori__arena_alloc(&q->arena, sizeof(*c));
    char *name = nori__arena_text(&q->arena, n->inputs[0]->name);
    if (!c || !name) {
        return nori__no_memory(q->err);
    }
    c->axis = nori__node_is(n, NORI__OP_ONNX_MatMul) ? -1 : 1;
    c->count = count;
    c->sum = nori__arena_array(&q->arena, (size_t)count, sizeof(*c->sum));
    c->most = nori__arena_array(&q->arena, (size_t)count, sizeof(*c->most));
    bool ok = c->sum && c->most && nori__map_put(&q->channels, name, c);
    return ok ? NORI_OK : nori__no_memory(q->err);
}

nori_status nori__q_see_channels(nori__quantizer *q)
{
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        NORI__TRY(want(q, n));
    }
    return nori__q_watch(q, "channels", look, q);
}
