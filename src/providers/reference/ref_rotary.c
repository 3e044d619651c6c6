/* ref_rotary.c: RotaryEmbedding, that of ai.onnx and that of com.microsoft. In double, rounded once;
 * dimensions past rotary_embedding_dim are passed through. */
#include "providers/reference/ref_attention.h"

typedef struct rotary {
    int64_t batch, heads, length, size, turned;
    int64_t step_batch, step_head, step_row;
    bool interleaved;
} rotary;

/* heads: of an input of rank 3. */
static nori_status read_shape(nori_call *call, int64_t heads, rotary *r)
{
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    NORI__TRY(nori__nn_need(call, 1, "cos_cache", -1));
    NORI__TRY(nori__nn_need(call, 2, "sin_cache", -1));
    const nori_tensor *x = call->in[0];
    if (x->type != NORI_DOUBLE || (x->rank != 3 && x->rank != 4)) {
        return nori__nn_type_error(call, 0);
    }
    bool flat = x->rank == 3;
    r->heads = flat ? heads : x->dims[1];
    if (flat && (r->heads < 1 || x->dims[2] % r->heads != 0)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "%lld values do not divide into %lld heads",
                          (long long)x->dims[2], (long long)r->heads);
    }
    r->batch = x->dims[0];
    r->length = flat ? x->dims[1] : x->dims[2];
    r->size = flat ? x->dims[2] / r->heads : x->dims[3];
    r->step_row = flat ? x->dims[2] : r->size;
    r->step_head = flat ? r->size : r->length * r->size;
    r->step_batch = r->heads * r->length * r->size;
    r->turned = nori__attr_i(call->node, "rotary_embedding_dim", 0);
    r->turned = r->turned == 0 ? r->size : r->turned;
    r->interleaved = nori__attr_i(call->node, "interleaved", 0) != 0;
    if (r->turned < 0 || r->turned > r->size || r->turned % 2 != 0) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "rotary_embedding_dim is %lld for heads of %lld", (long long)r->turned,
                          (long long)r->size);
    }
    return NORI_OK;
}

/* Row of the caches for a token; -1: outside. */
static int64_t cache_row(const nori_call *call, const rotary *r, int64_t b, int64_t s, int64_t rows)
{
    int64_t row = b * r->length + s;
    if (nori__nn_has(call, 3)) {
        row = nori__tensor_get_i64(call->in[3], row);
    }
    return row >= 0 && row < rows ? row : -1;
}

void nori__rotary_turn(int64_t turned, int64_t size, bool interleaved, const double *x,
                       const double *cosines, const double *sines, double *y)
{
    int64_t half = turned / 2;
    for (int64_t i = 0; i < half; i++) {
        int64_t a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + half;
        double xa = x[a], xb = x[b];
        y[a] = cosines[i] * xa - sines[i] * xb;
        y[b] = sines[i] * xa + cosines[i] * xb;
    }
    for (int64_t i = turned; i < size; i++) {
        y[i] = x[i];
    }
}

static nori_status rotary_with(nori_call *call, int64_t heads)
{
    rotary r = {0};
    NORI__TRY(read_shape(call, heads, &r));
    const nori_tensor *c = call->in[1];
    int64_t half = r.turned / 2, rows = half > 0 ? c->count / half : 0;
    bool positions = nori__nn_has(call, 3);
    if (c->rank < 1 || c->dims[c->rank - 1] != half || c->type != NORI_DOUBLE ||
        (!positions && rows != r.batch * r.length && half > 0)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "cos_cache (input 1) does not hold %lld values for every position",
                          (long long)half);
    }
    NORI__TRY(nori__nn_count(call, 2, "sin_cache", c->count));
    NORI__TRY(nori__nn_count(call, 3, "position_ids", r.batch * r.length));
    const double *x = call->in[0]->data, *cosines = c->data, *sines = call->in[2]->data;
    double *y = call->out[0]->data;
    for (int64_t b = 0; b < r.batch; b++) {
        for (int64_t s = 0; s < r.length && r.size > 0; s++) {
            int64_t row = half > 0 ? cache_row(call, &r, b, s, rows) : 0;
            if (row < 0) {
                return nori__fail(call->err, NORI_ERROR_DATA,
                                  "position_ids (input 3) names a position outside 0 to %lld",
                                  (long long)rows - 1);
            }
            for (int64_t h = 0; h < r.heads; h++) {
                int64_t at = b * r.step_batch + h * r.step_head + s * r.step_row;
                nori__rotary_turn(r.turned, r.size, r.interleaved, x + at, cosines + row * half,
                                  sines + row * half, y + at);
            }
        }
    }
    return NORI_OK;
}

static nori_status rotary_embedding(nori_call *call)
{
    return rotary_with(call, nori__attr_i(call->node, "num_heads", 0));
}

nori_status nori__ref_RotaryEmbedding(nori_call *call)
{
    return nori__nn_double(call, 0, rotary_embedding);
}

/* com.microsoft: input, position_ids, cos_cache, sin_cache. One position is that of the first token
 * of every sequence; without num_heads the caches' rows are half a head. */
static nori_status ms_rotary(nori_call *call)
{
    for (uint32_t i = 0; i < 4; i++) {
        NORI__TRY(nori__nn_need(call, i, "input, position_ids or cache", -1));
    }
    const nori_tensor *x = call->in[0], *ids = call->in[1], *cosines = call->in[2];
    if ((x->rank != 3 && x->rank != 4) || cosines->rank < 1 || ids->type != NORI_INT64) {
        return nori__nn_type_error(call, ids->type != NORI_INT64 ? 1 : 0);
    }
    int64_t heads = nori__attr_i(call->node, "num_heads", 0);
    int64_t size = 2 * cosines->dims[cosines->rank - 1];
    heads = heads == 0 && size > 0 && x->rank == 3 ? x->dims[2] / size : heads;
    int64_t dims[2] = {x->dims[0], x->dims[x->rank - 2]};
    nori_tensor *all = NULL;
    NORI__TRY(nori__tensor_new(call->allocator, NORI_INT64, 2, dims, &all, call->err));
    nori_status s = ids->count == 1 ? NORI_OK : nori__nn_count(call, 1, "position_ids", all->count);
    for (int64_t i = 0; i < all->count && s == NORI_OK; i++) {
        const int64_t *p = ids->data;
        ((int64_t *)all->data)[i] = ids->count == 1 ? p[0] + i % dims[1] : p[i];
    }
    if (s == NORI_OK) {
        const nori_tensor *in[4] = {x, cosines, call->in[3], all};
        nori_call inner = *call;
        inner.in = in;
        s = rotary_with(&inner, heads);
    }
    nori_tensor_free(all);
    return s;
}

nori_status nori__ref_ms_RotaryEmbedding(nori_call *call)
{
    return nori__nn_double(call, 0, ms_rotary);
}
