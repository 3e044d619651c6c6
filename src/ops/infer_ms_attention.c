/* infer_ms_attention.c: types and shapes of com.microsoft's attention layers. What nori does not run
 * is refused here, so that a model that uses it does not load: UNSUPPORTED, with the nearest that
 * runs. */
#include "ops/families.h"
#include "ops/infer_dims.h"

static nori_status need_rank(nori__infer *c, uint32_t i, int rank, const char *expected)
{
    int have = nori__in_rank(c, i);
    return have < 0 || have == rank ? NORI_OK : nori__rank_error(c, i, expected);
}

/* "GroupQueryAttention, com.microsoft version 1, with WHAT", and what runs instead. */
static nori_status refuse(nori__infer *c, const char *what, const char *instead)
{
    nori_status s = nori__fail(c->err, NORI_ERROR_UNSUPPORTED, "%s, com.microsoft version 1, with %s",
                               c->node->op_type, what);
    nori__hint(c->err, "%s", instead);
    return s;
}

static nori_status need_heads(nori__infer *c, const char *name, int64_t *heads)
{
    *heads = nori__attr_i(c->node, name, 0);
    return *heads >= 1 ? NORI_OK
                       : nori__fail(c->err, NORI_ERROR_MODEL, "%s is %lld, expected at least 1",
                                    name, (long long)*heads);
}

/* ---- projections inside: Attention, QAttention ---- */

/* weights: where they are; past: where the cache is; elem: of the result. */
static nori_status projected(nori__infer *c, uint32_t weights, uint32_t past, nori_type elem)
{
    size_t n;
    int64_t heads;
    const int64_t *sizes = nori__attr_ints(c->node, "qkv_hidden_sizes", &n);
    for (uint32_t o = 0; o < c->node->output_count; o++) {
        nori__out_elem(c, o, elem);
    }
    NORI__TRY(need_rank(c, 0, 3, "3"));
    NORI__TRY(need_heads(c, "num_heads", &heads));
    if (nori__attr_i(c->node, "do_rotary", 0) != 0) {
        return refuse(c, "do_rotary",
                      "GroupQueryAttention with do_rotary runs, and RotaryEmbedding in front of "
                      "MultiHeadAttention");
    }
    nori__dim hidden = sizes && n == 3 ? nori__dim_of(sizes[2])
                                         : nori__dim_part(nori__in_dim(c, weights, 1), 3);
    nori__dim y[3] = {nori__in_dim(c, 0, 0), nori__in_dim(c, 0, 1), hidden};
    nori__out_set(c, 0, elem, 3, y);
    if (c->node->output_count > 1) {
        bool shared = nori__attr_i(c->node, "past_present_share_buffer", 0) != 0;
        nori__dim total = !nori__has_in(c, past) ? y[1]
                          : shared               ? nori__in_dim(c, past, 3)
                                                 : nori__dim_sum(nori__in_dim(c, past, 3), y[1]);
        nori__dim p[5] = {nori__dim_of(2), y[0], nori__dim_of(heads), total, nori__dim_part(hidden, heads)};
        nori__out_set(c, 1, elem, 5, p);
    }
    return NORI_OK;
}

nori_status nori__infer_ms_attention(nori__infer *c)
{
    return projected(c, 1, 4, nori__in_elem(c, 0));
}

nori_status nori__infer_ms_q_attention(nori__infer *c)
{
    if (nori__attr_i(c->node, "past_present_share_buffer", 0) != 0) {
        return refuse(c, "past_present_share_buffer", "a cache of its own length runs");
    }
    return projected(c, 1, 8, nori__in_elem(c, 2));
}

/* ---- MultiHeadAttention, DecoderMaskedMultiHeadAttention ---- */

typedef struct heads_shape {
    nori__dim batch, queries, keys, size, v_size;
} heads_shape;

/* What query, key and value say; unknown where they do not. */
static nori_status read_heads(nori__infer *c, int64_t heads, heads_shape *s)
{
    int q = nori__in_rank(c, 0), k = nori__in_rank(c, 1), v = nori__in_rank(c, 2);
    *s = (heads_shape){nori__in_dim(c, 0, 0), nori__in_dim(c, 0, 1), NORI__DIM_ANY, NORI__DIM_ANY,
                       NORI__DIM_ANY};
    if (q >= 0 && q != 3 && q != 5) {
        return nori__rank_error(c, 0, "3, or 5 when Q, K and V are packed");
    }
    if (k >= 0 && k != 3 && k != 4 && k != 5) {
        return nori__rank_error(c, 1, "3, 4 (a cache) or 5 (K and V packed)");
    }
    if (v >= 0 && v != 3 && v != 4) {
        return nori__rank_error(c, 2, "3 or 4");
    }
    if (q == 5) {
        s->size = s->v_size = nori__in_dim(c, 0, 4);
        s->keys = s->queries;
        return NORI_OK;
    }
    if (!nori__has_in(c, 1)) {
        s->size = s->v_size = nori__dim_part(nori__dim_part(nori__in_dim(c, 0, 2), 3), heads);
        s->keys = s->queries;
        return NORI_OK;
    }
    s->size = nori__dim_part(nori__in_dim(c, 0, 2), heads);
    s->keys = nori__in_dim(c, 1, k == 4 ? 2 : 1);
    s->v_size = v == 4   ? nori__in_dim(c, 2, 3)
                : v == 3 ? nori__dim_part(nori__in_dim(c, 2, 2), heads)
                         : NORI__DIM_ANY;
    s->v_size = k == 5 ? s->size : s->v_size;
    return NORI_OK;
}

static nori_status multi_head(nori__infer *c, uint32_t past, bool shared)
{
    nori_type elem = nori__in_elem(c, 0);
    int64_t heads;
    heads_shape s = {0};
    for (uint32_t o = 0; o < c->node->output_count; o++) {
        nori__out_elem(c, o, elem);
    }
    NORI__TRY(need_heads(c, "num_heads", &heads));
    NORI__TRY(read_heads(c, heads, &s));
    NORI__TRY(need_rank(c, past, 4, "4"));
    NORI__TRY(need_rank(c, past + 1, 4, "4"));
    nori__dim total = s.keys, rows = s.keys;
    if (nori__has_in(c, past)) {
        nori__dim old = nori__in_dim(c, past, 2), valid[1] = {NORI__DIM_ANY};
        if (shared) {
            nori__in_data(c, past + 2, valid, 1);
            old = valid[0];
        }
        total = nori__dim_sum(old, s.keys);
        rows = shared ? nori__in_dim(c, past, 2) : total;
    }
    nori__dim y[3] = {s.batch, s.queries, nori__dim_times(s.v_size, heads)};
    nori__dim head = nori__dim_of(heads), more[3][4] = {{s.batch, head, rows, s.size},
                                                        {s.batch, head, rows, s.v_size},
                                                        {s.batch, head, s.queries, total}};
    if (nori__in_rank(c, 0) < 0) {
        return NORI_OK;
    }
    nori__out_set(c, 0, elem, 3, y);
    for (uint32_t o = 1; o < c->node->output_count && o < 4; o++) {
        nori__out_set(c, o, elem, 4, more[o - 1]);
    }
    return NORI_OK;
}

nori_status nori__infer_ms_multi_head(nori__infer *c)
{
    return multi_head(c, 6, nori__has_in(c, 8));
}

nori_status nori__infer_ms_decoder_masked(nori__infer *c)
{
    return multi_head(c, 5, nori__attr_i(c->node, "past_present_share_buffer", 0) != 0);
}

/* ---- GroupQueryAttention ---- */

static nori_status check_group_query(nori__infer *c)
{
    nori_type cache = nori__in_elem(c, 3), elem = nori__in_elem(c, 0);
    bool integers = cache != NORI_UNDEFINED && !nori__type_is_float(cache);
    if (integers || !nori__same(nori__attr_s(c->node, "k_quant_type", "NONE"), "NONE") ||
        !nori__same(nori__attr_s(c->node, "v_quant_type", "NONE"), "NONE")) {
        return refuse(c, "a quantized cache", "a cache of the query's type runs");
    }
    if (cache != NORI_UNDEFINED && elem != NORI_UNDEFINED && cache != elem) {
        return refuse(c, "a cache of another type than the query", "a cache of the same type runs");
    }
    if (nori__attr_i(c->node, "sliding_window_cache", 0) != 0) {
        return refuse(c, "sliding_window_cache",
                      "a cache of the whole sequence with local_window_size runs");
    }
    int64_t window = nori__attr_i(c->node, "local_window_size", -1);
    if (window != -1 && (window < 1 || nori__attr_i(c->node, "causal", 1) == 0)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "local_window_size is %lld with causal %lld, expected -1, or a window of "
                          "causal attention",
                          (long long)window, (long long)nori__attr_i(c->node, "causal", 1));
    }
    int64_t wanted = nori__attr_i(c->node, "qk_output", 0);
    if (c->node->output_count > 3 && c->node->outputs[3] && wanted != 1 && wanted != 2) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "output 3 is wanted with qk_output %lld, expected 1 or 2",
                          (long long)wanted);
    }
    if (nori__attr_i(c->node, "do_rotary", 0) != 0 &&
        (!nori__has_in(c, 7) || !nori__has_in(c, 8))) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "do_rotary is set, but cos_cache (input 7) or sin_cache (input 8) is "
                          "absent");
    }
    return NORI_OK;
}

nori_status nori__infer_ms_group_query(nori__infer *c)
{
    nori_type elem = nori__in_elem(c, 0);
    int64_t heads, kv;
    nori__dim total[1] = {NORI__DIM_ANY};
    for (uint32_t o = 0; o < c->node->output_count; o++) {
        nori__out_elem(c, o, elem);
    }
    NORI__TRY(need_heads(c, "num_heads", &heads));
    NORI__TRY(need_heads(c, "kv_num_heads", &kv));
    NORI__TRY(need_rank(c, 0, 3, "3"));
    NORI__TRY(check_group_query(c));
    if (heads % kv != 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "%lld query heads cannot share %lld key heads",
                          (long long)heads, (long long)kv);
    }
    nori__dim size = nori__dim_part(nori__in_dim(c, 0, 2), nori__has_in(c, 1) ? heads : heads + 2 * kv);
    if (nori__in_data(c, 6, total, 1) != 1) {
        total[0] = NORI__DIM_ANY;
    }
    nori__dim rows = total[0], old = nori__in_dim(c, 3, 2);
    if (nori__has_in(c, 3)) {
        rows = old.value >= 0 && rows.value >= 0 ? (old.value > rows.value ? old : rows) : NORI__DIM_ANY;
    }
    nori__dim batch = nori__in_dim(c, 0, 0), length = nori__in_dim(c, 0, 1);
    nori__dim y[3] = {batch, length, nori__dim_times(size, heads)};
    nori__dim cache[4] = {batch, nori__dim_of(kv), rows, size};
    nori__dim scores[4] = {batch, nori__dim_of(heads), length, total[0]};
    if (nori__in_rank(c, 0) < 0) {
        return NORI_OK;
    }
    nori__out_set(c, 0, elem, 3, y);
    for (uint32_t o = 1; o < c->node->output_count && o < 4; o++) {
        nori__out_set(c, o, elem, 4, o < 3 ? cache : scores);
    }
    return NORI_OK;
}

/* ---- the layers around ---- */

/* Inputs: input, position_ids, cos_cache, sin_cache. */
nori_status nori__infer_ms_rotary(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    float scale = nori__attr_f(c->node, "scale", 1);
    nori__out_like(c, 0, 0);
    if (scale != 1) {
        return refuse(c, "a scale other than 1", "multiply behind it");
    }
    return rank < 0 || rank == 3 || rank == 4 ? NORI_OK : nori__rank_error(c, 0, "3 or 4");
}

/* Inputs: input_ids [B, S], segment_ids, word, position, segment embeddings, gamma, ... */
nori_status nori__infer_ms_embed_layer_norm(nori__infer *c)
{
    nori_type elem = nori__in_elem(c, 2);
    NORI__TRY(need_rank(c, 0, 2, "2"));
    nori__dim y[3] = {nori__in_dim(c, 0, 0), nori__in_dim(c, 0, 1), nori__in_dim(c, 2, 1)};
    nori__out_set(c, 0, elem, 3, y);
    if (c->node->output_count > 1) {
        nori__out_set(c, 1, NORI_INT32, 1, y);
    }
    if (c->node->output_count > 2) {
        nori__out_set(c, 2, elem, 3, y);
    }
    return NORI_OK;
}
