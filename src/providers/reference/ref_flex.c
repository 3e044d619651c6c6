/* ref_flex.c: FlexAttention of ai.onnx.preview: attention whose scores and probabilities pass
 * through the model's own subgraphs. Products in double; scores are rounded to the softmax's type
 * for the subgraphs. A query all of whose scores are -infinity gives NaN, as the text's Softmax
 * does. */
#include "providers/reference/ref_nn.h"

#include <math.h>

typedef struct flex {
    int64_t batch, heads, kv_heads, length, keys, size, v_size;
    nori_type precision;
    double scale;
    double *q, *k, *v, *room; /* one block */
    size_t bytes;
} flex;

static nori_status setup(nori_call *call, flex *f)
{
    static const char *const names[] = {"Q", "K", "V"};
    for (uint32_t i = 0; i < 3; i++) {
        NORI__TRY(nori__nn_need(call, i, names[i], 4));
        if (!nori__type_is_float((nori_type)call->in[i]->type)) {
            return nori__nn_type_error(call, i);
        }
    }
    const int64_t *q = call->in[0]->dims, *k = call->in[1]->dims, *v = call->in[2]->dims;
    *f = (flex){.batch = q[0], .heads = q[1], .kv_heads = k[1], .length = q[2], .keys = k[2],
                .size = q[3], .v_size = v[3]};
    if (k[0] != q[0] || v[0] != q[0] || v[1] != k[1] || v[2] != k[2] || k[3] != q[3] || k[1] < 1 ||
        q[1] % k[1] != 0) {
        return nori__fail(call->err, NORI_ERROR_DATA, "the shapes of Q, K and V do not agree");
    }
    f->scale = (double)nori__attr_f(call->node, "scale", (float)(1 / sqrt((double)f->size)));
    int64_t wanted = nori__attr_i(call->node, "softmax_precision",
                                  call->in[0]->type == NORI_DOUBLE ? NORI_DOUBLE : NORI_FLOAT);
    f->precision = (nori_type)wanted;
    if (wanted < 0 || wanted >= NORI_TYPE_COUNT || !nori__type_is_float(f->precision)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "softmax_precision is %lld",
                          (long long)wanted);
    }
    int64_t total = call->in[0]->count;
    for (uint32_t i = 1; i < 3; i++) {
        if (!nori__add_i64(total, call->in[i]->count, &total)) {
            return nori__no_memory(call->err);
        }
    }
    f->room = nori__nn_scratch(call, total, sizeof *f->room, &f->bytes);
    if (!f->room) {
        return nori__no_memory(call->err);
    }
    f->q = f->room;
    f->k = f->q + call->in[0]->count;
    f->v = f->k + call->in[1]->count;
    nori__nn_load_f64(call->in[0], 0, call->in[0]->count, f->q);
    nori__nn_load_f64(call->in[1], 0, call->in[1]->count, f->k);
    nori__nn_load_f64(call->in[2], 0, call->in[2]->count, f->v);
    return NORI_OK;
}

static int64_t kv_line(const flex *f, int64_t line)
{
    return line / f->heads * f->kv_heads + line % f->heads / (f->heads / f->kv_heads);
}

static void fill_scores(const flex *f, nori_tensor *scores)
{
    int64_t at = 0;
    for (int64_t line = 0; line < f->batch * f->heads; line++) {
        const double *k = f->k + kv_line(f, line) * f->keys * f->size;
        for (int64_t i = 0; i < f->length; i++) {
            const double *q = f->q + (line * f->length + i) * f->size;
            for (int64_t j = 0; j < f->keys; j++) {
                double sum = 0;
                for (int64_t d = 0; d < f->size; d++) {
                    sum += q[d] * k[j * f->size + d];
                }
                nori__tensor_set_f64(scores, at++, sum * f->scale);
            }
        }
    }
}

/* Replaces *t by what the subgraph makes of it; without the attribute it stays. */
static nori_status modify(nori_call *call, const char *name, nori_tensor **t)
{
    const nori__graph *graph = nori__attr_graph(call->node, name);
    if (!graph) {
        return NORI_OK;
    }
    nori_tensor *out = NULL;
    const nori_tensor *in[1] = {*t};
    NORI__TRY(call->exec->subgraph(call, graph, in, 1, &out, 1));
    bool fits = out && out->kind == NORI_KIND_TENSOR && out->type == (*t)->type &&
                out->rank == (*t)->rank &&
                memcmp(out->dims, (*t)->dims, (size_t)out->rank * sizeof out->dims[0]) == 0;
    if (!fits) {
        nori_tensor_free(out);
        return nori__fail(call->err, NORI_ERROR_DATA, "%s does not keep type and shape", name);
    }
    nori_tensor_free(*t);
    *t = out;
    return NORI_OK;
}

static nori_status softmax(nori_call *call, const flex *f, const nori_tensor *from,
                           nori_tensor *to)
{
    size_t bytes;
    double *row = nori__nn_scratch(call, f->keys, sizeof *row, &bytes);
    if (!row) {
        return nori__no_memory(call->err);
    }
    for (int64_t at = 0; at < from->count; at += f->keys) {
        double most = -INFINITY, sum = 0;
        nori__nn_load_f64(from, at, f->keys, row);
        for (int64_t j = 0; j < f->keys; j++) {
            most = row[j] > most || row[j] != row[j] ? row[j] : most;
        }
        for (int64_t j = 0; j < f->keys; j++) {
            row[j] = exp(row[j] - most);
            sum += row[j];
        }
        for (int64_t j = 0; j < f->keys; j++) {
            row[j] /= sum;
        }
        nori__nn_store_f64(to, at, f->keys, row);
    }
    nori__release(call->allocator, row, bytes);
    return NORI_OK;
}

static void mix(const flex *f, const nori_tensor *probs, nori_tensor *y)
{
    int64_t at = 0;
    for (int64_t row = 0; row < f->batch * f->heads * f->length; row++) {
        const double *v = f->v + kv_line(f, row / f->length) * f->keys * f->v_size;
        for (int64_t d = 0; d < f->v_size; d++) {
            double sum = 0;
            for (int64_t j = 0; j < f->keys; j++) {
                sum += nori__tensor_get_f64(probs, row * f->keys + j) * v[j * f->v_size + d];
            }
            nori__tensor_set_f64(y, at++, sum);
        }
    }
}

nori_status nori__ref_FlexAttention(nori_call *call)
{
    flex f = {0};
    NORI__TRY(setup(call, &f));
    int64_t dims[4] = {f.batch, f.heads, f.length, f.keys};
    int64_t out_dims[4] = {f.batch, f.heads, f.length, f.v_size};
    nori_tensor *t = NULL, *probs = NULL, *y = NULL;
    nori_status s = nori__tensor_new(call->allocator, f.precision, 4, dims, &t, call->err);
    if (s == NORI_OK) {
        fill_scores(&f, t);
        s = modify(call, "score_mod", &t);
    }
    if (s == NORI_OK) {
        s = nori__tensor_new(call->allocator, f.precision, 4, dims, &probs, call->err);
    }
    if (s == NORI_OK) {
        s = softmax(call, &f, t, probs);
    }
    if (s == NORI_OK) {
        s = modify(call, "prob_mod", &probs);
    }
    if (s == NORI_OK) {
        s = call->exec->alloc(call, 0, (nori_type)call->in[2]->type, 4, out_dims, &y);
    }
    if (s == NORI_OK) {
        mix(&f, probs, y);
    }
    nori_tensor_free(t);
    nori_tensor_free(probs);
    nori__release(call->allocator, f.room, f.bytes);
    return s;
}
