/* infer_attention.c: shapes of attention and rotary embedding. */
#include "ops/families.h"

static const nori__dim any = {-1, NULL};

static nori__dim in_dim(const nori__infer *c, uint32_t i, int d)
{
    return nori__in_rank(c, i) > d ? c->in[i].dims[d] : any;
}

static nori__dim sum(nori__dim a, nori__dim b)
{
    int64_t s;
    return a.value >= 0 && b.value >= 0 && nori__add_i64(a.value, b.value, &s) ? nori__dim_of(s)
                                                                              : any;
}

/* A packed dimension of n heads: the size of one. */
static nori__dim part(nori__dim whole, int64_t n)
{
    return whole.value >= 0 && n > 0 ? nori__dim_of(whole.value / n) : any;
}

static nori__dim times(nori__dim one, int64_t n)
{
    int64_t p;
    return one.value >= 0 && n > 0 && nori__mul_dim(one.value, n, &p) ? nori__dim_of(p) : any;
}

static nori_status rank_error(nori__infer *c, uint32_t i, const char *expected)
{
    return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, expected %s", i,
                      nori__in_rank(c, i), expected);
}

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
            return rank_error(c, i, "3 or 4, the same for Q, K and V");
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
    nori__dim batch = in_dim(c, 0, 0), q = in_dim(c, 0, rank - 2), now = in_dim(c, 1, rank - 2);
    nori__dim heads = rank == 4 ? in_dim(c, 0, 1) : nori__dim_of(qn);
    nori__dim kv = rank == 4 ? in_dim(c, 1, 1) : nori__dim_of(kn);
    nori__dim size = rank == 4 ? in_dim(c, 1, 3) : part(in_dim(c, 1, 2), kn);
    nori__dim v_size = rank == 4 ? in_dim(c, 2, 3) : part(in_dim(c, 2, 2), kn);
    nori__dim total = nori__has_in(c, 4) ? sum(in_dim(c, 4, 2), now) : now;
    nori__dim y4[4] = {batch, heads, q, v_size}, y3[3] = {batch, q, times(v_size, qn)};
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
    return rank < 0 || rank == 3 || rank == 4 ? NORI_OK : rank_error(c, 0, "3 or 4");
}

nori_status nori__infer_flex_attention(nori__infer *c)
{
    for (uint32_t i = 0; i < 3; i++) {
        int r = nori__in_rank(c, i);
        if (r >= 0 && r != 4) {
            return rank_error(c, i, "4");
        }
    }
    nori__dim dims[4] = {in_dim(c, 0, 0), in_dim(c, 0, 1), in_dim(c, 0, 2), in_dim(c, 2, 3)};
    nori__out_set(c, 0, nori__in_elem(c, 0), 4, dims);
    return NORI_OK;
}
