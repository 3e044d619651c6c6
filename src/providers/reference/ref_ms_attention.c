/* ref_ms_attention.c: com.microsoft Attention and QAttention: attention with the projection to Q, K
 * and V inside. In double, rounded once. */
#include "providers/reference/ref_attention.h"

#include <math.h>

/* Where an operator has its inputs. */
typedef struct places {
    uint32_t weights, bias, mask, past, added, past_length;
} places;

enum { NOWHERE = 99 }; /* an input that the operator does not have */

/* Sizes of the three parts of the projection. */
static nori_status read_parts(nori_call *call, int64_t heads, int64_t all, int64_t *parts)
{
    size_t n;
    const int64_t *sizes = nori__attr_ints(call->node, "qkv_hidden_sizes", &n);
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

/* The cache: [2, B, heads, rows, size]; shared with the result, only part of its rows count. */
static nori_status read_past(nori_call *call, const places *at, nori__attention *a)
{
    if (!nori__nn_has(call, at->past)) {
        return NORI_OK;
    }
    const nori_tensor *past = call->in[at->past];
    const int64_t *d = past->dims;
    if (past->rank != 5 || d[0] != 2 || d[1] != a->batch || d[2] != a->heads || d[4] != a->size ||
        a->v_size != a->size || past->type != NORI_DOUBLE) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "past (input %u) does not hold keys and values of %lld heads of %lld",
                          at->past, (long long)a->heads, (long long)a->size);
    }
    a->past = d[3];
    if (nori__attr_i(call->node, "past_present_share_buffer", 0) != 0) {
        NORI__TRY(nori__ms_past_length(call, at->past_length, d[3] - a->length, &a->past));
    }
    int64_t row = a->size, head = d[3] * row, batch = a->heads * head;
    a->past_k = (nori__heads){past->data, batch, head, row};
    a->past_v = (nori__heads){(double *)past->data + a->batch * batch, batch, head, row};
    return NORI_OK;
}

/* Keys and values for the next call; rows of a shared cache behind them are kept. */
static void write_present(nori_call *call, const places *at, const nori__attention *a)
{
    nori_tensor *present = call->out[1];
    int64_t rows = present->dims[3], half = present->count / 2;
    if (rows == a->past + a->length) {
        double *out = present->data;
        nori__heads_join(&a->past_k, &a->k, a->batch, a->heads, a->past, a->length, a->size, out);
        nori__heads_join(&a->past_v, &a->v, a->batch, a->heads, a->past, a->length, a->v_size,
                         out + half);
        return;
    }
    memcpy(present->data, call->in[at->past]->data, present->bytes);
    for (int64_t line = 0; line < a->batch * a->heads; line++) {
        int64_t b = line / a->heads, h = line % a->heads;
        double *out = (double *)present->data + (line * rows + a->past) * a->size;
        for (int64_t i = 0; i < a->length; i++) {
            size_t bytes = (size_t)a->size * sizeof *out;
            memcpy(out + i * a->size, a->k.data + b * a->k.batch + h * a->k.head + i * a->k.row,
                   bytes);
            memcpy(out + half + i * a->size,
                   a->v.data + b * a->v.batch + h * a->v.head + i * a->v.row, bytes);
        }
    }
}

/* qkv: what the projection gave, [B, S, all], without its bias. */
static nori_status attend(nori_call *call, const places *at, nori__attention *a,
                          const int64_t *parts, double *qkv)
{
    nori__ms_mask mask;
    int64_t all = parts[0] + parts[1] + parts[2];
    NORI__TRY(nori__nn_count(call, at->bias, "bias", all));
    const double *bias = nori__nn_has(call, at->bias) ? call->in[at->bias]->data : NULL;
    for (int64_t i = 0; i < a->batch * a->length * all && bias; i++) {
        qkv[i] += bias[i % all];
    }
    a->q = (nori__heads){qkv, a->length * all, a->size, all};
    a->k = (nori__heads){qkv + parts[0], a->length * all, a->size, all};
    a->v = (nori__heads){qkv + parts[0] + parts[1], a->length * all, a->v_size, all};
    a->y = (nori__heads){call->out[0]->data, a->length * parts[2], a->v_size, parts[2]};
    NORI__TRY(read_past(call, at, a));
    NORI__TRY(nori__ms_mask_read(call, at->mask, at->added, a, &mask));
    if (nori__nn_wants(call, 1)) {
        if (a->v_size != a->size) {
            return nori__fail(call->err, NORI_ERROR_UNSUPPORTED,
                              "present of keys and values of different sizes");
        }
        write_present(call, at, a);
    }
    return nori__attention_run(call, a);
}

static nori_status read_sizes(nori_call *call, const places *at, nori__attention *a, int64_t *parts)
{
    NORI__TRY(nori__nn_need(call, 0, "input", 3));
    NORI__TRY(nori__nn_need(call, at->weights, "weights", 2));
    const nori_tensor *x = call->in[0], *w = call->in[at->weights];
    memset(a, 0, sizeof *a);
    a->heads = a->kv_heads = nori__attr_i(call->node, "num_heads", 0);
    NORI__TRY(read_parts(call, a->heads, w->dims[1], parts));
    if (w->dims[0] != x->dims[2]) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input 0 has rows of %lld, the weights (input %u) take %lld",
                          (long long)x->dims[2], at->weights, (long long)w->dims[0]);
    }
    a->batch = x->dims[0];
    a->q_length = a->length = x->dims[1];
    a->size = parts[0] / a->heads;
    a->v_size = parts[2] / a->heads;
    float scale = nori__attr_f(call->node, "scale", 0);
    a->scale = scale != 0 ? (double)scale : 1 / sqrt((double)a->size);
    a->precision = NORI_DOUBLE;
    return NORI_OK;
}

static double *projection(nori_call *call, const nori__attention *a, const int64_t *parts,
                          size_t *bytes)
{
    int64_t tokens = a->batch * a->length;
    double *qkv =
        nori__nn_scratch(call, tokens * (parts[0] + parts[1] + parts[2]), sizeof *qkv, bytes);
    if (!qkv) {
        nori__no_memory(call->err);
    }
    return qkv;
}

/* ---- Attention ---- */

static nori_status attention(nori_call *call)
{
    static const places at = {1, 2, 3, 4, 5, 6};
    nori__attention a;
    int64_t parts[3];
    size_t bytes;
    NORI__TRY(read_sizes(call, &at, &a, parts));
    if (call->in[0]->type != NORI_DOUBLE || call->in[1]->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, call->in[0]->type != NORI_DOUBLE ? 0 : 1);
    }
    double *qkv = projection(call, &a, parts, &bytes);
    if (!qkv) {
        return NORI_ERROR_MEMORY;
    }
    int64_t k = call->in[0]->dims[2], all = call->in[1]->dims[1];
    nori__ref_product_work p = {.m = a.batch * a.length, .n = all, .k = k, .a_row = k, .a_col = 1,
                                .b_row = all, .b_col = 1, .a = call->in[0]->data,
                                .b = call->in[1]->data, .y = qkv};
    nori__ref_product_f64(call, &p);
    nori_status s = attend(call, &at, &a, parts, qkv);
    nori__release(call->allocator, qkv, bytes);
    return s;
}

nori_status nori__ref_ms_Attention(nori_call *call)
{
    return nori__nn_double(call, 0, attention);
}

/* ---- QAttention: input, weight, bias, their scales, mask, zero points, past ---- */

/* Sums of integers, exact in double below 2^53, then both scales. */
static nori_status project_integers(nori_call *call, const nori__attention *a, double *qkv)
{
    const nori_tensor *x = call->in[0], *w = call->in[1], *scales = call->in[4];
    int64_t k = x->dims[2], all = w->dims[1];
    NORI__TRY(nori__nn_count(call, 3, "input_scale", 1));
    NORI__TRY(nori__nn_count(call, 6, "input_zero_point", 1));
    if (scales->count != 1) {
        NORI__TRY(nori__nn_count(call, 4, "weight_scale", all));
    }
    const nori_tensor *zeros = nori__nn_has(call, 7) ? call->in[7] : NULL;
    if (zeros && zeros->count != 1) {
        NORI__TRY(nori__nn_count(call, 7, "weight_zero_point", all));
    }
    int64_t x_zero = nori__nn_has(call, 6) ? nori__tensor_get_i64(call->in[6], 0) : 0;
    double x_scale = nori__tensor_get_f64(call->in[3], 0);
    for (int64_t i = 0; i < a->batch * a->length * all; i++) {
        int64_t c = i % all, sum = 0;
        int64_t w_zero = zeros ? nori__tensor_get_i64(zeros, zeros->count == 1 ? 0 : c) : 0;
        for (int64_t j = 0; j < k; j++) {
            sum += (nori__tensor_get_i64(x, i / all * k + j) - x_zero) *
                   (nori__tensor_get_i64(w, j * all + c) - w_zero);
        }
        qkv[i] = (double)sum * x_scale * nori__tensor_get_f64(scales, scales->count == 1 ? 0 : c);
    }
    return NORI_OK;
}

static nori_status q_attention(nori_call *call)
{
    static const places at = {1, 2, 5, 8, NOWHERE, NOWHERE};
    nori__attention a;
    int64_t parts[3];
    size_t bytes;
    for (uint32_t i = 2; i < 5; i++) {
        NORI__TRY(nori__nn_need(call, i, "bias or scale", -1));
    }
    NORI__TRY(read_sizes(call, &at, &a, parts));
    double *qkv = projection(call, &a, parts, &bytes);
    if (!qkv) {
        return NORI_ERROR_MEMORY;
    }
    nori_status s = project_integers(call, &a, qkv);
    if (s == NORI_OK) {
        s = attend(call, &at, &a, parts, qkv);
    }
    nori__release(call->allocator, qkv, bytes);
    return s;
}

nori_status nori__ref_ms_QAttention(nori_call *call)
{
    return nori__nn_double(call, 0, q_attention);
}
