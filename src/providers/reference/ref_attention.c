/* ref_attention.c: Attention of opsets 23 to 25.
 *
 * In double, rounded once. -infinity (from a mask) forbids a key; a query with no key left gives
 * zeros, not NaN. NaN in a score makes its row NaN. No keys at all: zeros. */
#include "providers/reference/ref_attention.h"

#include "base/half.h"

#include <math.h>

nori__heads nori__heads_of(const nori_tensor *t, int64_t heads)
{
    nori__heads h = {t->data, 0, 0, 0};
    if (t->rank == 4) {
        h.row = t->dims[3];
        h.head = t->dims[2] * t->dims[3];
        h.batch = t->dims[1] * h.head;
    } else {
        h.head = heads > 0 ? t->dims[2] / heads : 0;
        h.row = t->dims[2];
        h.batch = t->dims[1] * t->dims[2];
    }
    return h;
}

static double *at(const nori__heads *h, int64_t batch, int64_t head, int64_t row)
{
    return h->data + batch * h->batch + head * h->head + row * h->row;
}

void nori__heads_join(const nori__heads *past, const nori__heads *now, int64_t batch,
                      int64_t heads, int64_t n_past, int64_t n_now, int64_t size, double *out)
{
    for (int64_t b = 0; b < batch && size > 0; b++) {
        for (int64_t h = 0; h < heads; h++) {
            for (int64_t j = 0; j < n_past + n_now; j++, out += size) {
                memcpy(out, j < n_past ? at(past, b, h, j) : at(now, b, h, j - n_past),
                       (size_t)size * sizeof *out);
            }
        }
    }
}

typedef struct job {
    const nori__attention *a;
    double *room; /* two rows of scores for each thread */
} job;

static double round_to(double v, nori_type precision)
{
    if (precision == NORI_FLOAT16) {
        return (double)nori__f16_to_f32(nori__f64_to_f16(v));
    }
    return precision == NORI_BFLOAT16 ? (double)nori__bf16_to_f32(nori__f32_to_bf16((float)v)) : v;
}

/* Scores of head h to probabilities in place. */
static void softmax(const nori__attention *a, int64_t h, int64_t n, bool forbidden, double *s)
{
    double most = a->sinks ? a->sinks[h] : -INFINITY, sum;
    for (int64_t j = 0; j < n; j++) {
        s[j] = round_to(s[j], a->precision);
        most = s[j] > most || s[j] != s[j] ? s[j] : most;
    }
    if (forbidden || most == -INFINITY) {
        memset(s, 0, (size_t)n * sizeof *s);
        return;
    }
    sum = a->sinks ? exp(a->sinks[h] - most) : 0;
    for (int64_t j = 0; j < n; j++) {
        s[j] = exp(s[j] - most);
        sum += s[j];
    }
    for (int64_t j = 0; j < n; j++) {
        s[j] = round_to(s[j] / sum, a->precision);
    }
}

static void keep(const nori__attention *a, int mode, int64_t row, int64_t n, const double *s)
{
    if (a->scores && a->mode == mode && n > 0) {
        memcpy(a->scores + row * n, s, (size_t)n * sizeof *s);
    }
}

static void one_query(const nori__attention *a, int64_t row, double *s, double *bias)
{
    int64_t i = row % a->q_length, h = row / a->q_length % a->heads;
    int64_t b = row / a->q_length / a->heads, n = a->past + a->length;
    int64_t kv = h / (a->heads / a->kv_heads);
    const double *q = at(&a->q, b, h, i);
    bool forbidden = a->bias != NULL;
    for (int64_t j = 0; j < n; j++) {
        const double *k = j < a->past ? at(&a->past_k, b, kv, j) : at(&a->k, b, kv, j - a->past);
        double sum = 0;
        for (int64_t d = 0; d < a->size; d++) {
            sum += q[d] * k[d];
        }
        s[j] = sum * a->scale;
    }
    keep(a, 0, row, n, s);
    for (int64_t j = 0; j < n && a->softcap > 0; j++) {
        s[j] = a->softcap * tanh(s[j] / a->softcap);
    }
    keep(a, 1, row, n, s);
    if (a->bias) {
        a->bias(a->user, b, h, i, bias);
        for (int64_t j = 0; j < n; j++) {
            s[j] = a->strict && bias[j] == -INFINITY ? -INFINITY : s[j] + bias[j];
            forbidden = forbidden && bias[j] == -INFINITY;
        }
    }
    keep(a, 2, row, n, s);
    softmax(a, h, n, forbidden, s);
    keep(a, 3, row, n, s);
    double *y = at(&a->y, b, h, i);
    for (int64_t d = 0; d < a->v_size; d++) {
        y[d] = 0;
    }
    for (int64_t j = 0; j < n; j++) {
        const double *v = j < a->past ? at(&a->past_v, b, kv, j) : at(&a->v, b, kv, j - a->past);
        for (int64_t d = 0; d < a->v_size && s[j] != 0; d++) {
            y[d] += s[j] * v[d];
        }
    }
}

static void queries(void *user, int64_t begin, int64_t end, int thread)
{
    const job *j = user;
    int64_t n = j->a->past + j->a->length;
    double *s = j->room + 2 * n * thread;
    for (int64_t row = begin; row < end; row++) {
        one_query(j->a, row, s, s + n);
    }
}

nori_status nori__attention_run(nori_call *call, const nori__attention *a)
{
    int64_t n = a->past + a->length, threads = nori__nn_threads(call), cells;
    size_t bytes;
    if (a->kv_heads < 1 || a->heads % a->kv_heads != 0) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "%lld query heads cannot share %lld key heads", (long long)a->heads,
                          (long long)a->kv_heads);
    }
    if (!nori__mul_dim(n, 2 * threads, &cells)) {
        return nori__no_memory(call->err);
    }
    job j = {a, nori__nn_scratch(call, cells, sizeof(double), &bytes)};
    if (!j.room) {
        return nori__no_memory(call->err);
    }
    nori__parallel_for(call->pool, (int)threads, a->batch * a->heads * a->q_length, 1, queries, &j);
    nori__release(call->allocator, j.room, bytes);
    return NORI_OK;
}

/* ---- what is added to the scores ---- */

typedef struct rules {
    const nori__attention *a;
    const nori_tensor *mask;
    int64_t strides[4]; /* of the mask over batch, head, query, key; 0: broadcast */
    int64_t mask_keys;  /* keys past it are forbidden */
    const int64_t *lengths; /* nonpad_kv_seqlen, or NULL */
    bool causal;
    int64_t left, right; /* window, -1: open */
} rules;

static void bias(const void *user, int64_t b, int64_t h, int64_t i, double *out)
{
    const rules *r = user;
    int64_t n = r->a->past + r->a->length, offset = r->a->past;
    int64_t valid = r->lengths ? r->lengths[b] : n;
    if (r->lengths) {
        offset = valid - r->a->q_length;
    }
    int64_t place = b * r->strides[0] + h * r->strides[1] + i * r->strides[2];
    for (int64_t j = 0; j < n; j++) {
        int64_t p = i + offset;
        bool allowed = j < valid && (!r->causal || j <= p) && (r->left < 0 || j >= p - r->left) &&
                       (r->right < 0 || j <= p + r->right);
        out[j] = 0;
        if (r->mask && j >= r->mask_keys) {
            allowed = false;
        } else if (r->mask && r->mask->type == NORI_BOOL) {
            allowed = allowed && ((const uint8_t *)r->mask->data)[place + j * r->strides[3]];
        } else if (r->mask && r->mask->type == NORI_DOUBLE) {
            out[j] = ((const double *)r->mask->data)[place + j * r->strides[3]];
        } else if (r->mask) {
            out[j] = nori__tensor_get_f64(r->mask, place + j * r->strides[3]);
        }
        out[j] = allowed ? out[j] : -INFINITY;
    }
}

/* A mask may have fewer keys than there are, whatever their number: the rest is forbidden. */
static nori_status read_mask(nori_call *call, const nori__attention *a, rules *r)
{
    int64_t full[4] = {a->batch, a->heads, a->q_length, a->past + a->length}, step = 1;
    r->mask = nori__nn_has(call, 3) ? call->in[3] : NULL;
    if (!r->mask) {
        return NORI_OK;
    }
    bool fits = r->mask->rank >= 1 && r->mask->rank <= 4;
    for (int d = r->mask->rank - 1; d >= 0 && fits; d--) {
        int to = d + 4 - r->mask->rank;
        int64_t size = r->mask->dims[d];
        fits = to == 3 ? size <= full[3] : size == 1 || size == full[to];
        r->strides[to] = to == 3 || size != 1 ? step : 0;
        step *= size;
    }
    if (!fits) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "attn_mask (input 3) does not broadcast to %lld x %lld x %lld x %lld",
                          (long long)full[0], (long long)full[1], (long long)full[2],
                          (long long)full[3]);
    }
    r->mask_keys = r->mask->dims[r->mask->rank - 1];
    return NORI_OK;
}

static nori_status read_lengths(nori_call *call, const nori__attention *a, rules *r)
{
    if (!nori__nn_has(call, 6)) {
        return NORI_OK;
    }
    NORI__TRY(nori__nn_count(call, 6, "nonpad_kv_seqlen", a->batch));
    if (call->in[6]->type != NORI_INT64) {
        return nori__nn_type_error(call, 6);
    }
    if (a->past > 0) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "nonpad_kv_seqlen cannot be used together with past keys");
    }
    r->lengths = call->in[6]->data;
    for (int64_t b = 0; b < a->batch; b++) {
        if (r->lengths[b] < 0 || r->lengths[b] > a->length) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "nonpad_kv_seqlen is %lld, expected 0 to %lld",
                              (long long)r->lengths[b], (long long)a->length);
        }
    }
    return NORI_OK;
}

/* ---- the operator ---- */

static nori_status shape_error(const nori_call *call)
{
    return nori__fail(call->err, NORI_ERROR_DATA,
                      "the shapes of Q, K, V and the past do not agree (ranks %d, %d, %d)",
                      call->in[0]->rank, call->in[1]->rank, call->in[2]->rank);
}

static nori_status read_shapes(nori_call *call, nori__attention *a)
{
    static const char *const names[] = {"Q", "K", "V"};
    int rank = 0;
    for (uint32_t i = 0; i < 3; i++) {
        NORI__TRY(nori__nn_need(call, i, names[i], -1));
        rank = call->in[0]->rank;
        if (call->in[i]->type != NORI_DOUBLE) {
            return nori__nn_type_error(call, i);
        }
        if ((rank != 3 && rank != 4) || call->in[i]->rank != rank) {
            return shape_error(call);
        }
    }
    const int64_t *q = call->in[0]->dims, *k = call->in[1]->dims, *v = call->in[2]->dims;
    a->heads = rank == 4 ? q[1] : nori__attr_i(call->node, "q_num_heads", 0);
    a->kv_heads = rank == 4 ? k[1] : nori__attr_i(call->node, "kv_num_heads", 0);
    if (a->heads < 1 || a->kv_heads < 1) {
        return nori__fail(call->err, NORI_ERROR_DATA, "%lld query heads and %lld key heads",
                          (long long)a->heads, (long long)a->kv_heads);
    }
    a->batch = q[0];
    a->q_length = q[rank - 2];
    a->length = k[rank - 2];
    a->size = rank == 4 ? q[3] : q[2] / a->heads;
    a->v_size = rank == 4 ? v[3] : v[2] / a->kv_heads;
    bool agree = k[0] == q[0] && v[0] == q[0] && v[rank - 2] == k[rank - 2];
    agree = agree && (rank == 4 ? k[3] == a->size && v[1] == a->kv_heads
                                : q[2] == a->heads * a->size && k[2] == a->kv_heads * a->size &&
                                      v[2] == a->kv_heads * a->v_size);
    for (uint32_t i = 4; i < 6 && agree && nori__nn_has(call, i); i++) {
        const int64_t *p = call->in[i]->dims;
        agree = call->in[i]->rank == 4 && call->in[i]->type == NORI_DOUBLE && p[0] == a->batch &&
                p[1] == a->kv_heads && p[3] == (i == 4 ? a->size : a->v_size);
        a->past = agree ? p[2] : 0;
    }
    if (nori__nn_has(call, 4) != nori__nn_has(call, 5) ||
        (agree && nori__nn_has(call, 4) && call->in[4]->dims[2] != call->in[5]->dims[2])) {
        agree = false;
    }
    return agree ? NORI_OK : shape_error(call);
}

static nori_status attention(nori_call *call)
{
    nori__attention a;
    memset(&a, 0, sizeof a);
    NORI__TRY(read_shapes(call, &a));
    a.q = nori__heads_of(call->in[0], a.heads);
    a.k = nori__heads_of(call->in[1], a.kv_heads);
    a.v = nori__heads_of(call->in[2], a.kv_heads);
    if (nori__nn_has(call, 4)) {
        a.past_k = nori__heads_of(call->in[4], a.kv_heads);
        a.past_v = nori__heads_of(call->in[5], a.kv_heads);
    }
    const nori__attr *scale = nori__attr_find(call->node, "scale");
    a.scale = scale ? (double)nori__attr_f(call->node, "scale", 0) : 1 / sqrt((double)a.size);
    a.softcap = (double)nori__attr_f(call->node, "softcap", 0);
    a.precision = (nori_type)nori__attr_i(call->node, "softmax_precision", NORI_DOUBLE);
    a.mode = (int)nori__attr_i(call->node, "qk_matmul_output_mode", 0);
    rules r = {.a = &a, .causal = nori__attr_i(call->node, "is_causal", 0) != 0,
               .left = nori__attr_i(call->node, "left_window_size", -1),
               .right = nori__attr_i(call->node, "right_window_size", -1)};
    NORI__TRY(read_mask(call, &a, &r));
    NORI__TRY(read_lengths(call, &a, &r));
    if (r.mask || r.lengths || r.causal || r.left >= 0 || r.right >= 0) {
        a.bias = bias;
        a.user = &r;
    }
    nori_tensor y = {0};
    y.rank = call->in[0]->rank;
    nori__tensor_dims(call->in[0], y.dims);
    y.dims[y.rank - 1] = y.rank == 4 ? a.v_size : a.heads * a.v_size;
    y.data = call->out[0]->data;
    a.y = nori__heads_of(&y, a.heads);
    if (nori__nn_wants(call, 1)) {
        nori__heads_join(&a.past_k, &a.k, a.batch, a.kv_heads, a.past, a.length, a.size,
                         call->out[1]->data);
    }
    if (nori__nn_wants(call, 2)) {
        nori__heads_join(&a.past_v, &a.v, a.batch, a.kv_heads, a.past, a.length, a.v_size,
                         call->out[2]->data);
    }
    a.scores = nori__nn_wants(call, 3) ? call->out[3]->data : NULL;
    return nori__attention_run(call, &a);
}

nori_status nori__ref_Attention(nori_call *call)
{
    return nori__nn_double(call, 0, attention);
}
