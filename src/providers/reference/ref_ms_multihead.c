/* ref_ms_multihead.c: com.microsoft MultiHeadAttention and DecoderMaskedMultiHeadAttention: attention
 * on projected Q, K and V, given apart, packed, or as a cache. In double, rounded once. */
#include "providers/reference/ref_attention.h"

#include <math.h>

/* Where an operator has its inputs. */
typedef struct places {
    uint32_t bias, mask, added, past_k, past_v, past_length, beams, indirection;
    bool shared; /* the cache has room behind its valid rows */
} places;

typedef struct multihead {
    nori__attention a;
    nori__ms_mask mask;
    bool cached;          /* K and V come as [B, heads, L, size]: no bias for them */
    double *room;         /* Q, K, V with their bias, and keys and values of beams */
    size_t bytes;
} multihead;

static nori_status shape_error(const nori_call *call, uint32_t i)
{
    const nori_tensor *t = call->in[i];
    return nori__fail(call->err, NORI_ERROR_DATA,
                      "input %u of %s has a shape of rank %d that does not fit the other inputs", i,
                      call->node->op_type, t->rank);
}

/* One of Q, K, V in a packed tensor: part `index` of `parts` within each head. */
static nori__heads packed_view(const nori_tensor *t, int64_t index)
{
    const int64_t *d = t->dims; /* B, L, heads, parts, size */
    return (nori__heads){(double *)t->data + index * d[4], d[1] * d[2] * d[3] * d[4], d[3] * d[4],
                         d[2] * d[3] * d[4]};
}

/* The three parts of [B, S, 2 * D + Dv], one behind the other in each row. */
static nori_status read_joined(nori_call *call, nori__attention *a)
{
    const nori_tensor *q = call->in[0];
    int64_t row = q->dims[2], part = row / 3;
    if (row % 3 != 0 || part % a->heads != 0) {
        return shape_error(call, 0);
    }
    a->size = a->v_size = part / a->heads;
    double *data = q->data;
    a->q = (nori__heads){data, q->dims[1] * row, a->size, row};
    a->k = (nori__heads){data + part, q->dims[1] * row, a->size, row};
    a->v = (nori__heads){data + 2 * part, q->dims[1] * row, a->size, row};
    a->length = a->q_length;
    return NORI_OK;
}

static nori_status read_kv(nori_call *call, multihead *m)
{
    nori__attention *a = &m->a;
    const nori_tensor *k = call->in[1], *v = nori__nn_has(call, 2) ? call->in[2] : NULL;
    const int64_t *d = k->dims;
    if (k->rank == 5 && !v && d[0] == a->batch && d[2] == a->heads && d[3] == 2 &&
        d[4] == a->size) {
        a->length = d[1];
        a->v_size = a->size;
        a->k = packed_view(k, 0);
        a->v = packed_view(k, 1);
        return NORI_OK;
    }
    if (!v || v->rank != k->rank || v->type != NORI_DOUBLE || v->dims[0] != a->batch ||
        d[0] != a->batch || v->dims[k->rank == 4 ? 2 : 1] != d[k->rank == 4 ? 2 : 1]) {
        return v ? shape_error(call, 2) : nori__nn_need(call, 2, "value", -1);
    }
    m->cached = k->rank == 4;
    if (m->cached) {
        a->length = d[2];
        a->v_size = v->dims[3];
        return d[1] == a->heads && v->dims[1] == a->heads && d[3] == a->size
                   ? (a->k = nori__heads_of(k, 0), a->v = nori__heads_of(v, 0), NORI_OK)
                   : shape_error(call, 1);
    }
    if (k->rank != 3 || d[2] != a->heads * a->size || v->dims[2] % a->heads != 0) {
        return shape_error(call, 1);
    }
    a->length = d[1];
    a->v_size = v->dims[2] / a->heads;
    a->k = nori__heads_of(k, a->heads);
    a->v = nori__heads_of(v, a->heads);
    return NORI_OK;
}

static nori_status read_qkv(nori_call *call, multihead *m)
{
    nori__attention *a = &m->a;
    NORI__TRY(nori__nn_need(call, 0, "query", -1));
    const nori_tensor *q = call->in[0];
    a->heads = a->kv_heads = nori__attr_i(call->node, "num_heads", 0);
    if (q->type != NORI_DOUBLE || a->heads < 1 || (q->rank != 3 && q->rank != 5)) {
        return q->type != NORI_DOUBLE ? nori__nn_type_error(call, 0) : shape_error(call, 0);
    }
    a->batch = q->dims[0];
    a->q_length = q->dims[1];
    if (q->rank == 5) {
        if (q->dims[2] != a->heads || q->dims[3] != 3 || nori__nn_has(call, 1)) {
            return shape_error(call, 0);
        }
        a->size = a->v_size = q->dims[4];
        a->length = q->dims[1];
        a->q = packed_view(q, 0);
        a->k = packed_view(q, 1);
        a->v = packed_view(q, 2);
        return NORI_OK;
    }
    if (!nori__nn_has(call, 1)) {
        return read_joined(call, a);
    }
    if (q->dims[2] % a->heads != 0) {
        return shape_error(call, 0);
    }
    a->size = q->dims[2] / a->heads;
    a->q = nori__heads_of(q, a->heads);
    if (call->in[1]->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 1);
    }
    return read_kv(call, m);
}

/* Copies [B, heads, length, size] dense to out with the bias of a head's values added. */
static void add_bias(nori__heads *h, const nori__attention *a, int64_t length, int64_t size,
                     const double *bias, double *out)
{
    nori__heads from = *h;
    *h = (nori__heads){out, a->heads * length * size, length * size, size};
    for (int64_t i = 0; i < a->batch * a->heads * length * size; i++) {
        int64_t d = i % size, row = i / size % length, head = i / size / length % a->heads;
        int64_t b = i / size / length / a->heads;
        out[i] = from.data[b * from.batch + head * from.head + row * from.row + d] +
                 bias[head * size + d];
    }
}

/* What a beam sees: row j of sequence b is that of the beam that the table names. */
static nori_status follow_beams(nori_call *call, const places *at, multihead *m, double *k,
                                double *v)
{
    nori__attention *a = &m->a;
    const nori_tensor *table = call->in[at->indirection];
    int64_t beams = 1;
    if (nori__nn_has(call, at->beams)) {
        NORI__TRY(nori__nn_count(call, at->beams, "beam_width", 1));
        beams = nori__tensor_get_i64(call->in[at->beams], 0);
    }
    if (beams < 1 || a->batch % beams != 0 || table->rank != 3 || table->type != NORI_INT32 ||
        table->dims[0] * table->dims[1] != a->batch || table->dims[1] != beams ||
        table->dims[2] < a->past) {
        return shape_error(call, at->indirection);
    }
    for (int64_t i = 0; i < a->batch * a->heads * a->past; i++) {
        int64_t j = i % a->past, h = i / a->past % a->heads, b = i / a->past / a->heads;
        int64_t beam = ((const int32_t *)table->data)[b * table->dims[2] + j];
        if (beam < 0 || beam >= beams) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "cache_indirection (input %u) names beam %lld of %lld",
                              at->indirection, (long long)beam, (long long)beams);
        }
        int64_t from = b / beams * beams + beam;
        memcpy(k + i * a->size,
               a->past_k.data + from * a->past_k.batch + h * a->past_k.head + j * a->past_k.row,
               (size_t)a->size * sizeof *k);
        memcpy(v + i * a->v_size,
               a->past_v.data + from * a->past_v.batch + h * a->past_v.head + j * a->past_v.row,
               (size_t)a->v_size * sizeof *v);
    }
    a->past_k = (nori__heads){k, a->heads * a->past * a->size, a->past * a->size, a->size};
    a->past_v = (nori__heads){v, a->heads * a->past * a->v_size, a->past * a->v_size, a->v_size};
    return NORI_OK;
}

static nori_status read_past(nori_call *call, const places *at, multihead *m)
{
    nori__attention *a = &m->a;
    if (!nori__nn_has(call, at->past_k)) {
        return NORI_OK;
    }
    NORI__TRY(nori__nn_need(call, at->past_k, "past_key", 4));
    NORI__TRY(nori__nn_need(call, at->past_v, "past_value", 4));
    const nori_tensor *k = call->in[at->past_k], *v = call->in[at->past_v];
    if (k->dims[0] != a->batch || k->dims[1] != a->heads || k->dims[3] != a->size ||
        v->dims[0] != a->batch || v->dims[1] != a->heads || v->dims[3] != a->v_size ||
        v->dims[2] != k->dims[2] || k->type != NORI_DOUBLE || v->type != NORI_DOUBLE) {
        return shape_error(call, at->past_k);
    }
    a->past = k->dims[2];
    if (at->shared) {
        NORI__TRY(nori__ms_past_length(call, at->past_length, k->dims[2] - a->length, &a->past));
    }
    a->past_k = nori__heads_of(k, 0);
    a->past_v = nori__heads_of(v, 0);
    return NORI_OK;
}

/* One of present_key and present_value; rows of a shared cache behind the new ones are kept. */
static void write_present(nori_tensor *out, const nori_tensor *past_tensor,
                          const nori__attention *a, const nori__heads *past,
                          const nori__heads *now, int64_t size)
{
    int64_t rows = out->dims[2];
    if (rows == a->past + a->length) {
        nori__heads_join(past, now, a->batch, a->heads, a->past, a->length, size, out->data);
        return;
    }
    memcpy(out->data, past_tensor->data, out->bytes);
    for (int64_t i = 0; i < a->batch * a->heads * a->length; i++) {
        int64_t j = i % a->length, h = i / a->length % a->heads, b = i / a->length / a->heads;
        memcpy((double *)out->data + ((b * a->heads + h) * rows + a->past + j) * size,
               now->data + b * now->batch + h * now->head + j * now->row,
               (size_t)size * sizeof(double));
    }
}

/* Q, K and V with their bias in memory of their own, and room for what beams see. */
static nori_status prepare(nori_call *call, const places *at, multihead *m)
{
    nori__attention *a = &m->a;
    bool biased = nori__nn_has(call, at->bias), beams = nori__nn_has(call, at->indirection);
    int64_t heads = a->batch * a->heads, past = beams ? a->past : 0;
    int64_t q = biased ? heads * a->q_length * a->size : 0;
    int64_t k = biased && !m->cached ? heads * a->length * a->size : 0;
    int64_t v = biased && !m->cached ? heads * a->length * a->v_size : 0;
    int64_t pk = heads * past * a->size, pv = heads * past * a->v_size;
    m->room = nori__nn_scratch(call, q + k + v + pk + pv, sizeof *m->room, &m->bytes);
    if (!m->room) {
        return nori__no_memory(call->err);
    }
    if (biased) {
        int64_t width = a->heads * a->size;
        NORI__TRY(nori__nn_count(call, at->bias, "bias", 2 * width + a->heads * a->v_size));
        const double *bias = call->in[at->bias]->data;
        add_bias(&a->q, a, a->q_length, a->size, bias, m->room);
        if (!m->cached) {
            add_bias(&a->k, a, a->length, a->size, bias + width, m->room + q);
            add_bias(&a->v, a, a->length, a->v_size, bias + 2 * width, m->room + q + k);
        }
    }
    return beams && a->past > 0
               ? follow_beams(call, at, m, m->room + q + k + v, m->room + q + k + v + pk)
               : NORI_OK;
}

static nori_status attend(nori_call *call, const places *at)
{
    multihead m;
    memset(&m, 0, sizeof m);
    nori__attention *a = &m.a;
    NORI__TRY(read_qkv(call, &m));
    NORI__TRY(read_past(call, at, &m));
    float scale = nori__attr_f(call->node, "scale", 0);
    a->scale = scale != 0 ? (double)scale : 1 / sqrt((double)a->size);
    a->precision = NORI_DOUBLE;
    a->y = (nori__heads){call->out[0]->data, a->q_length * a->heads * a->v_size, a->v_size,
                         a->heads * a->v_size};
    NORI__TRY(nori__ms_mask_read(call, at->mask, at->added, a, &m.mask));
    nori__heads past_k = a->past_k, past_v = a->past_v;
    nori_status s = prepare(call, at, &m);
    if (s == NORI_OK && nori__nn_wants(call, 1)) {
        write_present(call->out[1], nori__nn_has(call, at->past_k) ? call->in[at->past_k] : NULL, a,
                      &past_k, &a->k, a->size);
    }
    if (s == NORI_OK && nori__nn_wants(call, 2)) {
        write_present(call->out[2], nori__nn_has(call, at->past_v) ? call->in[at->past_v] : NULL, a,
                      &past_v, &a->v, a->v_size);
    }
    if (s == NORI_OK) {
        a->scores = nori__nn_wants(call, 3) ? call->out[3]->data : NULL;
        a->mode = 2;
        s = nori__attention_run(call, a);
    }
    nori__release(call->allocator, m.room, m.bytes);
    return s;
}

/* Inputs: query, key, value, bias, key_padding_mask, attention_bias, past_key, past_value,
 * past_sequence_length (then the cache is shared with the result), cache_indirection. */
static nori_status multi_head(nori_call *call)
{
    places at = {3, 4, 5, 6, 7, 8, 99, 9, nori__nn_has(call, 8)};
    return attend(call, &at);
}

nori_status nori__ref_ms_MultiHeadAttention(nori_call *call)
{
    return nori__nn_double(call, 0, multi_head);
}

/* Inputs: query, key, value, mask_index, attention_bias, past_key, past_value,
 * past_sequence_length, beam_width, cache_indirection, bias. */
static nori_status decoder_masked(nori_call *call)
{
    places at = {10, 3, 4, 5, 6, 7, 8, 9,
                 nori__attr_i(call->node, "past_present_share_buffer", 0) != 0};
    return attend(call, &at);
}

nori_status nori__ref_ms_DecoderMaskedMultiHeadAttention(nori_call *call)
{
    return nori__nn_double(call, 0, decoder_masked);
}
