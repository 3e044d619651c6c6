/* ref_attention_ms.c: com.microsoft Attention and EmbedLayerNormalization, as exporters of
 * BERT-like models write them. In double, rounded once. A masked key has mask_filter_value added to
 * its score, so that a query with every key masked still spreads over them. */
#include "providers/reference/ref_attention.h"

#include <math.h>

/* ---- Attention: input, weights, bias, mask_index, past, attention_bias ---- */

typedef struct ms_rules {
    const nori__attention *a;
    const nori_tensor *mask, *added;
    double filter;
    bool causal;
} ms_rules;

/* mask_index: [B] valid keys; [2B] ends and starts; [B, keys]; [B, S, keys]; [B, 1, max, max]. */
static bool masked(const ms_rules *r, int64_t b, int64_t i, int64_t j)
{
    const nori_tensor *m = r->mask;
    int64_t n = r->a->past + r->a->length;
    if (m->rank == 1) {
        int64_t end = nori__tensor_get_i64(m, b);
        int64_t start = m->count == 2 * r->a->batch ? nori__tensor_get_i64(m, r->a->batch + b) : 0;
        return j < start || j >= end;
    }
    int64_t at = b * n + j;
    if (m->rank == 3) {
        at = (b * r->a->q_length + i) * n + j;
    } else if (m->rank == 4) {
        at = (b * m->dims[2] + r->a->past + i) * m->dims[3] + j;
    }
    return nori__tensor_get_i64(m, at) <= 0;
}

static void ms_bias(const void *user, int64_t b, int64_t h, int64_t i, double *out)
{
    const ms_rules *r = user;
    int64_t n = r->a->past + r->a->length;
    for (int64_t j = 0; j < n; j++) {
        out[j] = r->mask && masked(r, b, i, j) ? r->filter : 0;
        if (r->added) {
            int64_t bb = r->added->dims[0] == 1 ? 0 : b, hh = r->added->dims[1] == 1 ? 0 : h;
            out[j] +=
                ((const double *)
                     r->added->data)[((bb * r->added->dims[1] + hh) * r->a->q_length + i) * n + j];
        }
        if (r->causal && j > i + r->a->past) {
            out[j] = -INFINITY;
        }
    }
}

static nori_status read_rules(nori_call *call, const nori__attention *a, ms_rules *r)
{
    int64_t n = a->past + a->length;
    r->a = a;
    r->mask = nori__nn_has(call, 3) ? call->in[3] : NULL;
    r->added = nori__nn_has(call, 5) ? call->in[5] : NULL;
    r->filter = (double)nori__attr_f(call->node, "mask_filter_value", -10000);
    r->causal = nori__attr_i(call->node, "unidirectional", 0) != 0;
    bool fits = true;
    if (r->mask) {
        const int64_t *d = r->mask->dims;
        int rank = r->mask->rank;
        fits = (rank == 1 && (d[0] == a->batch || d[0] == 2 * a->batch)) ||
               (rank == 2 && d[0] == a->batch && d[1] == n) ||
               (rank == 3 && d[0] == a->batch && d[1] == a->q_length && d[2] == n) ||
               (rank == 4 && d[0] == a->batch && d[1] == 1 && d[2] >= n && d[3] >= n);
    }
    if (fits && r->added) {
        const int64_t *d = r->added->dims;
        fits = r->added->rank == 4 && r->added->type == NORI_DOUBLE && d[2] == a->q_length &&
               d[3] == n && (d[0] == 1 || d[0] == a->batch) && (d[1] == 1 || d[1] == a->heads);
    }
    return fits ? NORI_OK
                : nori__fail(
                      call->err, NORI_ERROR_DATA,
                      "mask_index (input 3) or the attention bias (input 5) does not fit %lld "
                      "queries and %lld keys",
                      (long long)a->q_length, (long long)n);
}

/* Sizes of the three parts of the projection. */
static nori_status read_parts(nori_call *call, int64_t heads, int64_t *parts)
{
    size_t n;
    const int64_t *sizes = nori__attr_ints(call->node, "qkv_hidden_sizes", &n);
    int64_t all = call->in[1]->dims[1];
    for (int p = 0; p < 3; p++) {
        parts[p] = sizes && n == 3 ? sizes[p] : all / 3;
    }
    bool fits = heads > 0 && parts[0] == parts[1] && parts[0] >= 0 && parts[2] >= 0 &&
                parts[0] <= all && parts[2] <= all && parts[0] + parts[1] + parts[2] == all;
    if (!fits || parts[0] % heads != 0 || parts[2] % heads != 0) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "weights of %lld columns do not divide into Q, K and V of %lld heads",
                          (long long)all, (long long)heads);
    }
    return NORI_OK;
}

static nori_status ms_attention_on(nori_call *call, nori__attention *a, const int64_t *parts,
                                   double *qkv)
{
    ms_rules r;
    int64_t all = parts[0] + parts[1] + parts[2], tokens = a->batch * a->length;
    nori__ref_product_work p = {.m = tokens, .n = all, .k = call->in[0]->dims[2],
                                .a_row = call->in[0]->dims[2], .a_col = 1, .b_row = all,
                                .b_col = 1, .a = call->in[0]->data, .b = call->in[1]->data,
                                .y = qkv};
    nori__ref_product_f64(call, &p);
    const double *bias = nori__nn_has(call, 2) ? call->in[2]->data : NULL;
    for (int64_t i = 0; i < tokens * all && bias; i++) {
        qkv[i] += bias[i % all];
    }
    a->q = (nori__heads){qkv, a->length * all, a->size, all};
    a->k = (nori__heads){qkv + parts[0], a->length * all, a->size, all};
    a->v = (nori__heads){qkv + parts[0] + parts[1], a->length * all, a->v_size, all};
    a->y = (nori__heads){call->out[0]->data, a->length * parts[2], a->v_size, parts[2]};
    NORI__TRY(read_rules(call, a, &r));
    if (r.mask || r.added || r.causal) {
        a->bias = ms_bias;
        a->user = &r;
    }
    if (nori__nn_wants(call, 1)) {
        double *present = call->out[1]->data;
        int64_t half = a->batch * a->heads * (a->past + a->length) * a->size;
        nori__heads_join(&a->past_k, &a->k, a->batch, a->heads, a->past, a->length, a->size,
                         present);
        nori__heads_join(&a->past_v, &a->v, a->batch, a->heads, a->past, a->length, a->v_size,
                         present + half);
    }
    return nori__attention_run(call, a);
}

static nori_status ms_attention(nori_call *call)
{
    int64_t parts[3];
    nori__attention a;
    memset(&a, 0, sizeof a);
    NORI__TRY(nori__nn_need(call, 0, "input", 3));
    NORI__TRY(nori__nn_need(call, 1, "weights", 2));
    const nori_tensor *x = call->in[0];
    a.heads = a.kv_heads = nori__attr_i(call->node, "num_heads", 0);
    NORI__TRY(read_parts(call, a.heads, parts));
    if (x->type != NORI_DOUBLE || call->in[1]->type != NORI_DOUBLE ||
        call->in[1]->dims[0] != x->dims[2]) {
        return nori__nn_type_error(call, 1);
    }
    a.batch = x->dims[0];
    a.q_length = a.length = x->dims[1];
    a.size = parts[0] / a.heads;
    a.v_size = parts[2] / a.heads;
    float scale = nori__attr_f(call->node, "scale", 0);
    a.scale = scale != 0 ? (double)scale : 1 / sqrt((double)a.size);
    a.precision = NORI_DOUBLE;
    NORI__TRY(nori__nn_count(call, 2, "bias", parts[0] + parts[1] + parts[2]));
    if (nori__nn_has(call, 4)) {
        const nori_tensor *past = call->in[4];
        if (past->rank != 5 || past->dims[0] != 2 || past->dims[1] != a.batch ||
            past->dims[2] != a.heads || past->dims[4] != a.size || a.v_size != a.size ||
            past->type != NORI_DOUBLE) {
            return nori__fail(call->err, NORI_ERROR_DATA, "past (input 4) does not fit");
        }
        a.past = past->dims[3];
        int64_t row = a.size, head = a.past * row, batch = a.heads * head;
        a.past_k = (nori__heads){past->data, batch, head, row};
        a.past_v = (nori__heads){(double *)past->data + a.batch * batch, batch, head, row};
    }
    if (nori__nn_wants(call, 1) && a.v_size != a.size) {
        return nori__fail(call->err, NORI_ERROR_UNSUPPORTED,
                          "present of keys and values of different sizes");
    }
    size_t bytes;
    double *qkv = nori__nn_scratch(call, a.batch * a.length * call->in[1]->dims[1], sizeof *qkv,
                                   &bytes);
    if (!qkv) {
        return nori__no_memory(call->err);
    }
    nori_status status = ms_attention_on(call, &a, parts, qkv);
    nori__release(call->allocator, qkv, bytes);
    return status;
}

nori_status nori__ref_ms_Attention(nori_call *call)
{
    return nori__nn_double(call, 0, ms_attention);
}

/* ---- EmbedLayerNormalization: input_ids, segment_ids, word, position and segment embeddings,
 * gamma, beta, mask, position_ids ---- */

/* Adds row `row` of table i to sum; false when there is no such row. */
static bool add_row(const nori_call *call, uint32_t i, int64_t row, int64_t n, double *sum)
{
    const nori_tensor *t = call->in[i];
    if (row < 0 || row >= t->dims[0]) {
        return false;
    }
    for (int64_t j = 0; j < n; j++) {
        sum[j] += ((const double *)t->data)[row * n + j];
    }
    return true;
}

static nori_status embed_token(nori_call *call, int64_t b, int64_t s, int64_t length, int64_t n,
                               double *y)
{
    int64_t token = b * length + s, position = s;
    const nori_tensor *positions = nori__nn_has(call, 8) ? call->in[8] : NULL;
    if (positions) {
        position = nori__tensor_get_i64(positions, positions->count == length ? s : token);
    }
    memset(y, 0, (size_t)n * sizeof *y);
    bool found = add_row(call, 2, nori__tensor_get_i64(call->in[0], token), n, y) &&
                 add_row(call, 3, position, n, y);
    if (found && nori__nn_has(call, 4)) {
        int64_t segment = nori__nn_has(call, 1) ? nori__tensor_get_i64(call->in[1], token) : 0;
        found = add_row(call, 4, segment, n, y);
    }
    if (!found) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "token %lld of sequence %lld names a row that an embedding does not have",
                          (long long)s, (long long)b);
    }
    if (nori__nn_wants(call, 2)) {
        memcpy((double *)call->out[2]->data + token * n, y, (size_t)n * sizeof *y);
    }
    double mean = 0, squares = 0;
    for (int64_t j = 0; j < n; j++) {
        mean += y[j] / (double)n;
    }
    for (int64_t j = 0; j < n; j++) {
        squares += (y[j] - mean) * (y[j] - mean);
    }
    double inverse = 1 / sqrt(squares / (double)n +
                              (double)nori__attr_f(call->node, "epsilon", 1e-12f));
    const double *gamma = call->in[5]->data;
    const double *beta = nori__nn_has(call, 6) ? call->in[6]->data : NULL;
    for (int64_t j = 0; j < n; j++) {
        y[j] = (y[j] - mean) * inverse * gamma[j] + (beta ? beta[j] : 0);
    }
    return NORI_OK;
}

static nori_status embed(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "input_ids", 2));
    NORI__TRY(nori__nn_need(call, 2, "word_embedding", 2));
    NORI__TRY(nori__nn_need(call, 3, "position_embedding", 2));
    NORI__TRY(nori__nn_need(call, 5, "gamma", 1));
    int64_t batch = call->in[0]->dims[0], length = call->in[0]->dims[1];
    int64_t n = call->in[2]->dims[1];
    for (uint32_t i = 2; i < 7; i++) {
        bool table = i < 5;
        if (nori__nn_has(call, i) &&
            (call->in[i]->type != NORI_DOUBLE || call->in[i]->rank != (table ? 2 : 1) ||
             call->in[i]->dims[table ? 1 : 0] != n)) {
            return nori__fail(call->err, NORI_ERROR_DATA, "input %u does not have rows of %lld", i,
                              (long long)n);
        }
    }
    NORI__TRY(nori__nn_count(call, 1, "segment_ids", batch * length));
    NORI__TRY(nori__nn_count(call, 7, "mask", batch * length));
    if (nori__nn_has(call, 8) && call->in[8]->count != length) {
        NORI__TRY(nori__nn_count(call, 8, "position_ids", batch * length));
    }
    for (int64_t b = 0; b < batch; b++) {
        int64_t valid = 0;
        for (int64_t s = 0; s < length; s++) {
            NORI__TRY(embed_token(call, b, s, length, n,
                                  (double *)call->out[0]->data + (b * length + s) * n));
            valid += nori__nn_has(call, 7) &&
                     nori__tensor_get_i64(call->in[7], b * length + s) == 1;
        }
        if (nori__nn_wants(call, 1)) {
            ((int32_t *)call->out[1]->data)[b] = (int32_t)valid;
        }
    }
    return NORI_OK;
}

nori_status nori__ref_ms_EmbedLayerNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, embed);
}
