/* infer_gemm.c: shapes of matrix products. An inner size of 0 is legal (the sum is empty). */
#include "ops/einsum.h"
#include "ops/families.h"

static const nori__dim any = {-1, NULL};

static nori_status inner_error(nori__infer *c, uint32_t a, uint32_t b, nori__dim ka, nori__dim kb)
{
    return nori__fail(c->err, NORI_ERROR_MODEL,
                      "inner sizes differ: %lld (input %u) and %lld (input %u)",
                      (long long)ka.value, a, (long long)kb.value, b);
}

static bool differ(nori__dim a, nori__dim b)
{
    return a.value >= 0 && b.value >= 0 && a.value != b.value;
}

/* numpy's matmul of inputs ai and bi, seen as the shapes a and b. */
static nori_status matmul_of(nori__infer *c, uint32_t ai, uint32_t bi, const nori__shape *a,
                             const nori__shape *b, nori_type elem)
{
    int ar = a->rank, br = b->rank;
    if (ar == 0 || br == 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank 0, expected at least 1",
                          ar == 0 ? ai : bi);
    }
    nori__dim ka = a->dims[ar - 1], kb = br == 1 ? b->dims[0] : b->dims[br - 2];
    if (differ(ka, kb)) {
        return inner_error(c, ai, bi, ka, kb);
    }
    nori__shape la = *a, lb = *b, out;
    memset(&out, 0, sizeof out);
    la.rank = (int8_t)(ar > 2 ? ar - 2 : 0);
    lb.rank = (int8_t)(br > 2 ? br - 2 : 0);
    NORI__TRY(nori__broadcast(c, &la, &lb, &out));
    int rank = out.rank;
    if (rank < 0) {
        return NORI_OK;
    }
    if (ar > 1) {
        out.dims[rank++] = a->dims[ar - 2];
    }
    if (br > 1) {
        out.dims[rank++] = b->dims[br - 1];
    }
    nori__out_set(c, 0, elem, rank, out.dims);
    return NORI_OK;
}

static nori_status matmul(nori__infer *c, uint32_t ai, uint32_t bi, nori_type elem)
{
    int ar = nori__in_rank(c, ai), br = nori__in_rank(c, bi);
    nori__out_elem(c, 0, elem);
    if ((ar < 0 && br != 0) || (br < 0 && ar != 0)) {
        return NORI_OK;
    }
    return matmul_of(c, ai, bi, &c->in[ai], &c->in[bi], elem);
}

nori_status nori__infer_matmul(nori__infer *c)
{
    return matmul(c, 0, 1, nori__in_elem(c, 0));
}

nori_status nori__infer_matmul_integer(nori__infer *c)
{
    return matmul(c, 0, 1, NORI_INT32);
}

nori_status nori__infer_qlinear_matmul(nori__infer *c)
{
    return matmul(c, 0, 3, nori__in_elem(c, 7));
}

/* com.microsoft: inputs 0 and 1 with float results. */
nori_status nori__infer_ms_dynamic_matmul(nori__infer *c)
{
    return matmul(c, 0, 1, nori__in_elem(c, 0));
}

nori_status nori__infer_ms_integer_to_float(nori__infer *c)
{
    return matmul(c, 0, 1, nori__in_elem(c, 2));
}

/* The shape of an operand as FusedMatMul multiplies it. */
static void transposed(nori__infer *c, uint32_t i, nori__shape *s)
{
    *s = c->in[i];
    int rank = s->rank;
    if (rank > 2 && nori__attr_i(c->node, i == 0 ? "transBatchA" : "transBatchB", 0) != 0) {
        nori__dim first = s->dims[0];
        memmove(s->dims, s->dims + 1, (size_t)(rank - 2) * sizeof first);
        s->dims[rank - 2] = first;
    }
    if (rank > 1 && nori__attr_i(c->node, i == 0 ? "transA" : "transB", 0) != 0) {
        nori__dim d = s->dims[rank - 1];
        s->dims[rank - 1] = s->dims[rank - 2];
        s->dims[rank - 2] = d;
    }
}

nori_status nori__infer_ms_fused_matmul(nori__infer *c)
{
    nori__shape a, b;
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (nori__in_rank(c, 0) < 0 || nori__in_rank(c, 1) < 0) {
        return NORI_OK;
    }
    transposed(c, 0, &a);
    transposed(c, 1, &b);
    return matmul_of(c, 0, 1, &a, &b, nori__in_elem(c, 0));
}

/* Two matrices, transposed by attributes; ci: the addend, broadcast into the result. */
static nori_status gemm(nori__infer *c, uint32_t bi, uint32_t ci, nori_type elem)
{
    nori__dim dims[2] = {any, any}, ka = any, kb = any;
    for (int side = 0; side < 2; side++) {
        uint32_t i = side == 0 ? 0 : bi;
        int rank = nori__in_rank(c, i);
        if (rank < 0) {
            continue;
        }
        if (rank != 2) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, expected 2", i,
                              rank);
        }
        bool turned = nori__attr_i(c->node, side == 0 ? "transA" : "transB", 0) != 0;
        const nori__dim *d = c->in[i].dims;
        dims[side] = d[(side == 0) == turned];
        *(side == 0 ? &ka : &kb) = d[(side == 0) != turned];
    }
    if (differ(ka, kb)) {
        return inner_error(c, 0, bi, ka, kb);
    }
    int rank = nori__in_rank(c, ci);
    for (int d = 0; d < rank && rank <= 2; d++) {
        nori__dim have = c->in[ci].dims[rank - 1 - d];
        if (have.value != 1 && differ(have, dims[1 - d])) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "input %u has size %lld on axis %d, expected 1 or %lld", ci,
                              (long long)have.value, rank - 1 - d, (long long)dims[1 - d].value);
        }
    }
    if (rank > 2) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, expected at most 2", ci,
                          rank);
    }
    nori__out_set(c, 0, elem, 2, dims);
    return NORI_OK;
}

nori_status nori__infer_gemm(nori__infer *c)
{
    return gemm(c, 1, 2, nori__in_elem(c, 0));
}

/* com.microsoft QGemm: A, a_scale, a_zp, B, b_scale, b_zp, C, y_scale, y_zp; float without y_zp. */
nori_status nori__infer_qgemm(nori__infer *c)
{
    return gemm(c, 3, 6, nori__has_in(c, 8) ? nori__in_elem(c, 8) : NORI_FLOAT);
}

nori_status nori__infer_det(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 0) {
        return NORI_OK;
    }
    if (rank < 2 || differ(c->in[0].dims[rank - 1], c->in[0].dims[rank - 2])) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 0 is not made of square matrices");
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), rank - 2, c->in[0].dims);
    return NORI_OK;
}

nori_status nori__infer_einsum(nori__infer *c)
{
    int ranks[NORI__EINSUM_OPERANDS];
    int64_t shapes[NORI__EINSUM_OPERANDS][NORI_MAX_RANK];
    nori__einsum e;
    nori__dim dims[NORI_MAX_RANK];
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    uint32_t n = c->node->input_count;
    for (uint32_t i = 0; i < n && i < NORI__EINSUM_OPERANDS; i++) {
        ranks[i] = nori__in_rank(c, i);
        if (ranks[i] < 0) {
            return NORI_OK;
        }
        for (int d = 0; d < ranks[i]; d++) {
            shapes[i][d] = c->in[i].dims[d].value;
        }
    }
    const char *equation = nori__attr_s(c->node, "equation", "");
    NORI__TRY(nori__einsum_read(equation, n > NORI__EINSUM_OPERANDS ? -1 : (int)n, ranks,
                                (const int64_t(*)[NORI_MAX_RANK])shapes, &e, c->err));
    for (int d = 0; d < e.out_rank; d++) {
        dims[d] = nori__dim_of(e.size[e.out[d]]);
    }
    nori__out_set(c, 0, nori__in_elem(c, 0), e.out_rank, dims);
    return NORI_OK;
}
