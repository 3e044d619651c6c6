/* infer_misc.c: shapes of CausalConvWithState, LinearAttention, SwiGLU. */
#include "ops/families.h"

static const nori__dim any = {-1, NULL};

static nori__dim in_dim(const nori__infer *c, uint32_t i, int d)
{
    return nori__in_rank(c, i) > d ? c->in[i].dims[d] : any;
}

static nori_status need_rank(nori__infer *c, uint32_t i, int expected)
{
    int rank = nori__in_rank(c, i);
    return rank < 0 || rank == expected
               ? NORI_OK
               : nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, expected %d", i, rank,
                            expected);
}

/* input [B, C, L], weight [C, 1, K]; output like input, state [B, C, K - 1]. */
nori_status nori__infer_causal_conv(nori__infer *c)
{
    NORI__TRY(need_rank(c, 0, 3));
    NORI__TRY(need_rank(c, 1, 3));
    nori__out_like(c, 0, 0);
    if (in_dim(c, 1, 2).value == 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "the kernel (input 1) has no elements");
    }
    if (c->node->output_count > 1) {
        nori__dim k = in_dim(c, 1, 2), state = k.value > 0 ? nori__dim_of(k.value - 1) : any;
        nori__dim dims[3] = {in_dim(c, 0, 0), in_dim(c, 0, 1),
                             k.value > 0 ? state : in_dim(c, 3, 2)};
        nori__out_set(c, 1, nori__in_elem(c, nori__has_in(c, 3) ? 3 : 0), 3, dims);
    }
    return NORI_OK;
}

/* query [B, T, Hq * dk], key [B, T, H * dk], value [B, T, H * dv]. */
nori_status nori__infer_linear_attention(nori__infer *c)
{
    int64_t q = nori__attr_i(c->node, "q_num_heads", 0),
            kv = nori__attr_i(c->node, "kv_num_heads", 0);
    if (q < 1 || kv < 1 || q % kv != 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "q_num_heads is %lld, kv_num_heads %lld; expected a multiple",
                          (long long)q, (long long)kv);
    }
    for (uint32_t i = 0; i < 3; i++) {
        NORI__TRY(need_rank(c, i, 3));
    }
    nori__dim k = in_dim(c, 1, 2), v = in_dim(c, 2, 2), wide = any;
    nori__dim dk = k.value >= 0 ? nori__dim_of(k.value / kv) : any;
    nori__dim dv = v.value >= 0 ? nori__dim_of(v.value / kv) : any;
    if (dv.value >= 0 && !nori__mul_dim(dv.value, q, &wide.value)) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "too many heads");
    }
    nori__dim y[3] = {in_dim(c, 0, 0), in_dim(c, 0, 1), wide};
    nori__dim s[4] = {in_dim(c, 0, 0), nori__dim_of(kv), dk, dv};
    nori__out_set(c, 0, nori__in_elem(c, 0), 3, y);
    if (c->node->output_count > 1) {
        nori__out_set(c, 1, nori__in_elem(c, nori__has_in(c, 3) ? 3 : 0), 4, s);
    }
    return NORI_OK;
}
