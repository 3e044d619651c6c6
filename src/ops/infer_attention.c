/* infer_attention.c: shapes of attention and rotary embedding. */
#include "ops/families.h"
#include "ops/infer_dims.h"

nori_status nori__infer_attention(nori__infer *c)
{
    uint32_t outs = c->node->output_count;
    for (uint32_t o = 0; o < outs; o++) {
        nori__out_elem(c, o, nori__in_elem(c, o == 2 ? 2 : 0));
    }
    int rank = nori__in_rank(c, 0);
    for (uint32_t i = 0; i < 3; i++) {
        int r = nori__in_rank(c, i);
        if (r >= 0 && ((r != 3 && r != 4) || (rank >= 0 && r != rank))) {
            return nori__rank_error(c, i, "3 or 4, the same for Q, K and V");
        }
        rank = rank < 0 ? r : rank;
    }
    if (rank < 0) {
        return NORI_OK;
    }
    int64_t qn = nori__attr_i(c->node, "q_num_heads", 0);
    int64_t kn = nori__attr_i(c->node, "kv_num_heads", 0);
    if (rank == 3 && (qn < 1 || kn < 1)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "q_num_heads and kv_num_heads must be given for inputs of rank 3");
    }
    nori__dim batch = nori__in_dim(c, 0, 0), q = nori__in_dim(c, 0, rank - 2);
    nori__dim now = nori__in_dim(c, 1, rank - 2);
    nori__dim heads = rank == 4 ? nori__in_dim(c, 0, 1) : nori__dim_of(qn);
    nori__dim kv = rank == 4 ? nori__in_dim(c, 1, 1) : nori__dim_of(kn);
    nori__dim size = rank == 4 ? nori__in_dim(c, 1, 3) : nori__dim_part(nori__in_dim(c, 1, 2), kn);
    nori__dim v_size = rank == 4 ? nori__in_dim(c, 2, 3) : nori__dim_part(nori__in_dim(c, 2, 2), kn);
    nori__dim total = nori__has_in(c, 4) ? nori__dim_sum(nori__in_dim(c, 4, 2), now) : now;
    nori__dim y4[4] = {batch, heads, q, v_size}, y3[3] = {batch, q, nori__dim_times(v_size, qn)};
    nori__out_set(c, 0, nori__in_elem(c, 0), rank, rank == 4 ? y4 : y3);
    nori__dim other[3][4] = {{batch, kv, total, size}, {batch, kv, total, v_size},
                             {batch, heads, q, total}};
    for (uint32_t o = 1; o < outs && o < 4; o++) {
        nori__out_set(c, o, nori__in_elem(c, o == 2 ? 2 : 0), 4, other[o - 1]);
    }
    return NORI_OK;
}

nori_status nori__infer_rotary(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    nori__out_like(c, 0, 0);
    return rank < 0 || rank == 3 || rank == 4 ? NORI_OK : nori__rank_error(c, 0, "3 or 4");
}

nori_status nori__infer_flex_attention(nori__infer *c)
{
    for (uint32_t i = 0; i < 3; i++) {
        int r = nori__in_rank(c, i);
        if (r >= 0 && r != 4) {
            return nori__rank_error(c, i, "4");
        }
    }
    nori__dim dims[4] = {nori__in_dim(c, 0, 0), nori__in_dim(c, 0, 1),
                         nori__in_dim(c, 0, 2), nori__in_dim(c, 2, 3)};
    nori__out_set(c, 0, nori__in_elem(c, 0), 4, dims);
    return NORI_OK;
}
