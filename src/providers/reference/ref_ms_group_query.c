/* ref_ms_group_query.c: com.microsoft GroupQueryAttention: several query heads share a key head, new
 * keys and values go into the cache behind those of earlier calls, each sequence at a place of its
 * own. In double, rounded once. */
#include "providers/reference/ref_attention.h"

#include <math.h>

typedef struct group_query {
    nori__attention a;
    int64_t batch, length, total, rows; /* new tokens, keys of the longest, rows of the cache */
    int64_t window;                     /* keys a query sees, 0: all */
    bool prompt, causal;
    const int32_t *last;                /* index of the last valid key of each sequence */
    const nori_tensor *added;
    double *q, *k, *v, *sinks, *room;   /* q: [B, heads, S, size]; k, v: the caches */
    size_t bytes;
} group_query;

static int64_t past_of(const group_query *g, int64_t b)
{
    return g->prompt ? 0 : g->last[b] + 1 - g->length;
}

/* What is added to the scores of query i. */
static void bias(const void *user, int64_t b, int64_t h, int64_t i, double *out)
{
    const group_query *g = user;
    const nori_tensor *t = g->added;
    int64_t place = past_of(g, b) + i, end = g->causal ? place + 1 : g->last[b] + 1, from = 0;
    int64_t start = g->window > 0 && place + 1 > g->window ? place + 1 - g->window : 0;
    if (t) {
        int64_t bb = t->dims[0] == 1 ? 0 : b, hh = t->dims[1] == 1 ? 0 : h;
        from = ((bb * t->dims[1] + hh) * g->length + i) * t->dims[3];
    }
    for (int64_t j = 0; j < g->total; j++) {
        out[j] = j < start || j >= end ? -INFINITY : t ? ((const double *)t->data)[from + j] : 0;
    }
}

static nori_status shape_error(const nori_call *call, uint32_t i)
{
    return nori__fail(call->err, NORI_ERROR_DATA,
                      "input %u of GroupQueryAttention has a shape of rank %d that does not fit the "
                      "other inputs",
                      i, call->in[i]->rank);
}

static nori_status read_sizes(nori_call *call, group_query *g)
{
    nori__attention *a = &g->a;
    NORI__TRY(nori__nn_need(call, 0, "query", 3));
    NORI__TRY(nori__nn_need(call, 5, "seqlens_k", -1));
    NORI__TRY(nori__nn_need(call, 6, "total_sequence_length", -1));
    const nori_tensor *q = call->in[0];
    bool packed = !nori__nn_has(call, 1);
    a->heads = nori__attr_i(call->node, "num_heads", 0);
    a->kv_heads = nori__attr_i(call->node, "kv_num_heads", 0);
    int64_t parts = packed ? a->heads + 2 * a->kv_heads : a->heads;
    if (a->heads < 1 || a->kv_heads < 1 || q->dims[2] % parts != 0 || q->type != NORI_DOUBLE) {
        return shape_error(call, 0);
    }
    g->batch = a->batch = q->dims[0];
    g->length = a->q_length = q->dims[1];
    a->size = a->v_size = q->dims[2] / parts;
    for (uint32_t i = 1; i < 3 && !packed; i++) {
        NORI__TRY(nori__nn_need(call, i, i == 1 ? "key" : "value", 3));
        const int64_t *d = call->in[i]->dims;
        if (d[0] != g->batch || d[1] != g->length || d[2] != a->kv_heads * a->size ||
            call->in[i]->type != NORI_DOUBLE) {
            return shape_error(call, i);
        }
    }
    NORI__TRY(nori__nn_count(call, 5, "seqlens_k", g->batch));
    NORI__TRY(nori__nn_count(call, 6, "total_sequence_length", 1));
    if (call->in[5]->type != NORI_INT32) {
        return nori__nn_type_error(call, 5);
    }
    g->last = call->in[5]->data;
    g->total = nori__tensor_get_i64(call->in[6], 0);
    g->prompt = g->total == g->length;
    g->rows = g->total;
    for (uint32_t i = 3; i < 5 && nori__nn_has(call, 3); i++) {
        NORI__TRY(nori__nn_need(call, i, i == 3 ? "past_key" : "past_value", 4));
        const int64_t *d = call->in[i]->dims;
        if (d[0] != g->batch || d[1] != a->kv_heads || d[3] != a->size ||
            d[2] != call->in[3]->dims[2] || call->in[i]->type != NORI_DOUBLE) {
            return shape_error(call, i);
        }
        g->rows = d[2] > g->total ? d[2] : g->total;
    }
    return NORI_OK;
}

/* Every place that lengths name must be inside the cache and what was there before. */
static nori_status check_lengths(nori_call *call, const group_query *g)
{
    int64_t had = nori__nn_has(call, 3) ? call->in[3]->dims[2] : 0;
    if (g->total < g->length || g->total < 0) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "total_sequence_length (input 6) is %lld for %lld new tokens",
                          (long long)g->total, (long long)g->length);
    }
    for (int64_t b = 0; b < g->batch; b++) {
        int64_t past = past_of(g, b);
        if (past < 0 || past > had || g->last[b] < 0 || g->last[b] >= g->total) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "seqlens_k (input 5) is %lld for sequence %lld: with %lld new tokens "
                              "and a cache of %lld it must lie between %lld and %lld",
                              (long long)g->last[b], (long long)b, (long long)g->length,
                              (long long)had, (long long)(g->prompt ? 0 : g->length - 1),
                              (long long)g->total - 1);
        }
    }
    const nori_tensor *t = g->added;
    if (t && (t->rank != 4 || t->type != NORI_DOUBLE || t->dims[2] != g->length ||
              t->dims[3] < g->total || (t->dims[0] != 1 && t->dims[0] != g->batch) ||
              (t->dims[1] != 1 && t->dims[1] != g->a.heads))) {
        return shape_error(call, 10);
    }
    return NORI_OK;
}

/* ---- the new tokens, normalized and turned ---- */

typedef struct turning {
    bool on, interleaved;
    int64_t turned, rows;
    const double *cosines, *sines;
    const nori_tensor *positions;
} turning;

static nori_status read_turning(nori_call *call, const group_query *g, turning *t)
{
    memset(t, 0, sizeof *t);
    t->on = nori__attr_i(call->node, "do_rotary", 0) != 0;
    if (!t->on) {
        return NORI_OK;
    }
    NORI__TRY(nori__nn_need(call, 7, "cos_cache", 2));
    NORI__TRY(nori__nn_need(call, 8, "sin_cache", 2));
    NORI__TRY(nori__nn_count(call, 8, "sin_cache", call->in[7]->count));
    NORI__TRY(nori__nn_count(call, 9, "position_ids", g->batch * g->length));
    t->interleaved = nori__attr_i(call->node, "rotary_interleaved", 0) != 0;
    t->turned = 2 * call->in[7]->dims[1];
    t->rows = call->in[7]->dims[0];
    t->cosines = call->in[7]->data;
    t->sines = call->in[8]->data;
    t->positions = nori__nn_has(call, 9) ? call->in[9] : NULL;
    return t->turned <= g->a.size && call->in[7]->type == NORI_DOUBLE &&
                   call->in[8]->type == NORI_DOUBLE
               ? NORI_OK
               : shape_error(call, 7);
}

/* Root mean square of a head to 1, times weight. */
static void normalize(const double *x, int64_t n, double epsilon, const double *weight, double *y)
{
    double squares = 0;
    for (int64_t d = 0; d < n; d++) {
        squares += x[d] * x[d];
    }
    double inverse = 1 / sqrt(squares / (double)n + epsilon);
    for (int64_t d = 0; d < n; d++) {
        y[d] = x[d] * inverse * weight[d];
    }
}

/* Where token s of sequence b stands. Of a prompt's position_ids only the first is read: the
 * operator's text. */
static int64_t position(const group_query *g, const turning *t, int64_t b, int64_t s)
{
    if (!t->positions) {
        return past_of(g, b) + s;
    }
    return g->prompt ? nori__tensor_get_i64(t->positions, 0) + s
                     : nori__tensor_get_i64(t->positions, b * g->length + s);
}

/* Heads of one kind from [B, S, row] at column `first`, to out: [B, heads, rows, size] with the
 * tokens of sequence b from row past on (rows 0: S rows, from 0 on). */
static nori_status place_heads(nori_call *call, const group_query *g, const turning *turn,
                               const nori_tensor *from, int64_t first, int64_t heads,
                               const double *weight, int64_t rows, double *out)
{
    int64_t size = g->a.size, row = from->dims[2];
    double epsilon = (double)nori__attr_f(call->node, "qk_norm_epsilon", 1e-6f);
    for (int64_t i = 0; i < g->batch * g->length * heads; i++) {
        int64_t h = i % heads, s = i / heads % g->length, b = i / heads / g->length;
        const double *x = (const double *)from->data + (b * g->length + s) * row + first + h * size;
        int64_t to = rows > 0 ? past_of(g, b) + s : s;
        double *y = out + ((b * heads + h) * (rows > 0 ? rows : g->length) + to) * size;
        if (weight) {
            normalize(x, size, epsilon, weight, y);
        } else {
            memcpy(y, x, (size_t)size * sizeof *y);
        }
        if (turn && turn->on) {
            int64_t p = position(g, turn, b, s);
            if (p < 0 || p >= turn->rows) {
                return nori__fail(call->err, NORI_ERROR_DATA,
                                  "position %lld of sequence %lld has no row in cos_cache (input 7)",
                                  (long long)p, (long long)b);
            }
            nori__rotary_turn(turn->turned, size, turn->interleaved, y,
                              turn->cosines + p * (turn->turned / 2),
                              turn->sines + p * (turn->turned / 2), y);
        }
    }
    return NORI_OK;
}

/* The valid rows of a cache; what lies behind them and the new ones is zero. */
static void copy_past(const nori_tensor *past, const group_query *g, double *out)
{
    int64_t had = past ? past->dims[2] : 0, size = g->a.size;
    for (int64_t line = 0; line < g->batch * g->a.kv_heads; line++, out += g->rows * size) {
        int64_t valid = past_of(g, line / g->a.kv_heads);
        if (valid > 0) {
            memcpy(out, (const double *)past->data + line * had * size,
                   (size_t)(valid * size) * sizeof *out);
        }
        memset(out + valid * size, 0, (size_t)((g->rows - valid) * size) * sizeof *out);
    }
}

static nori_status place_all(nori_call *call, group_query *g)
{
    turning turn;
    const nori__attention *a = &g->a;
    int64_t q_width = a->heads * a->size, kv_width = a->kv_heads * a->size;
    bool packed = !nori__nn_has(call, 1);
    NORI__TRY(read_turning(call, g, &turn));
    NORI__TRY(nori__nn_count(call, 14, "q_norm_weight", a->size));
    NORI__TRY(nori__nn_count(call, 15, "k_norm_weight", a->size));
    const double *q_norm = nori__nn_has(call, 14) ? call->in[14]->data : NULL;
    const double *k_norm = nori__nn_has(call, 15) ? call->in[15]->data : NULL;
    const nori_tensor *q = call->in[0], *k = packed ? q : call->in[1], *v = packed ? q : call->in[2];
    copy_past(nori__nn_has(call, 3) ? call->in[3] : NULL, g, g->k);
    copy_past(nori__nn_has(call, 3) ? call->in[4] : NULL, g, g->v);
    NORI__TRY(place_heads(call, g, &turn, q, 0, a->heads, q_norm, 0, g->q));
    NORI__TRY(place_heads(call, g, &turn, k, packed ? q_width : 0, a->kv_heads, k_norm, g->rows,
                          g->k));
    return place_heads(call, g, NULL, v, packed ? q_width + kv_width : 0, a->kv_heads, NULL,
                       g->rows, g->v);
}

/* ---- the operator ---- */

/* smooth_softmax: each head has a sink of 0; head_sink: one of its own. */
static nori_status read_sinks(nori_call *call, group_query *g)
{
    NORI__TRY(nori__nn_count(call, 11, "head_sink", g->a.heads));
    for (int64_t h = 0; h < g->a.heads; h++) {
        g->sinks[h] = nori__nn_has(call, 11) ? nori__tensor_get_f64(call->in[11], h) : 0;
    }
    bool smooth = nori__attr_i(call->node, "smooth_softmax", -1) > 0;
    g->a.sinks = smooth || nori__nn_has(call, 11) ? g->sinks : NULL;
    return NORI_OK;
}

static nori_status run(nori_call *call, group_query *g)
{
    nori__attention *a = &g->a;
    NORI__TRY(place_all(call, g));
    NORI__TRY(read_sinks(call, g));
    int64_t s = g->length, size = a->size;
    a->length = g->total;
    a->q = (nori__heads){g->q, a->heads * s * size, s * size, size};
    a->k = (nori__heads){g->k, a->kv_heads * g->rows * size, g->rows * size, size};
    a->v = (nori__heads){g->v, a->kv_heads * g->rows * size, g->rows * size, size};
    a->y = (nori__heads){call->out[0]->data, s * a->heads * size, size, a->heads * size};
    a->bias = bias;
    a->user = g;
    a->strict = true;
    a->precision = NORI_DOUBLE;
    float scale = nori__attr_f(call->node, "scale", 0);
    a->scale = scale != 0 ? (double)scale : 1 / sqrt((double)size);
    a->softcap = (double)nori__attr_f(call->node, "softcap", 0);
    a->scores = nori__nn_wants(call, 3) ? call->out[3]->data : NULL;
    a->mode = nori__attr_i(call->node, "qk_output", 0) == 2 ? 3 : 2;
    NORI__TRY(nori__attention_run(call, a));
    for (int64_t i = 0; a->scores && i < call->out[3]->count; i++) {
        a->scores[i] = a->scores[i] == -INFINITY ? 0 : a->scores[i]; /* keys out of sight */
    }
    return NORI_OK;
}

static nori_status group_query_attention(nori_call *call)
{
    group_query g;
    memset(&g, 0, sizeof g);
    NORI__TRY(read_sizes(call, &g));
    g.added = nori__nn_has(call, 10) ? call->in[10] : NULL;
    g.causal = nori__attr_i(call->node, "causal", 1) != 0;
    g.window = nori__attr_i(call->node, "local_window_size", -1);
    NORI__TRY(check_lengths(call, &g));
    int64_t q = g.batch * g.a.heads * g.length * g.a.size, cells;
    int64_t cache = g.batch * g.a.kv_heads * g.a.size;
    if (!nori__mul_dim(cache, g.rows, &cache) || cache > INT64_MAX / 4 || q > INT64_MAX / 4) {
        return nori__no_memory(call->err);
    }
    cells = q + g.a.heads + 2 * cache;
    g.room = nori__nn_scratch(call, cells, sizeof *g.room, &g.bytes);
    if (!g.room) {
        return nori__no_memory(call->err);
    }
    g.q = g.room;
    g.sinks = g.q + q;
    g.k = nori__nn_wants(call, 1) ? call->out[1]->data : g.sinks + g.a.heads;
    g.v = nori__nn_wants(call, 2) ? call->out[2]->data : g.sinks + g.a.heads + cache;
    nori_status s = run(call, &g);
    nori__release(call->allocator, g.room, g.bytes);
    return s;
}

nori_status nori__ref_ms_GroupQueryAttention(nori_call *call)
{
    return nori__nn_double(call, 0, group_query_attention);
}
