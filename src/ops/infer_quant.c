/* infer_quant.c: types and shapes of quantization. */
#include "ops/families.h"

/* Granularity: scale (input 1) is a scalar, one value along axis, or blocks of x's shape. */
static nori_status check_scale(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), sr = nori__in_rank(c, 1), axis;
    int64_t block = nori__attr_i(c->node, "block_size", 0);
    if (rank < 0 || sr < 0) {
        return NORI_OK;
    }
    if (block > 0 && sr != rank) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "block_size is %lld but the scale has rank %d, expected %d",
                          (long long)block, sr, rank);
    }
    if (block == 0 && sr > 1) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the scale (input 1) has rank %d, expected 0 or 1", sr);
    }
    bool one = sr == 0 || (sr == 1 && c->in[1].dims[0].value == 1);
    if (one || rank == 0) {
        return NORI_OK;
    }
    if (sr == 1 && rank == 1) {
        axis = 0; /* the default axis 1 is outside a vector */
    } else {
        NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", 1), rank, &axis));
    }
    int64_t n = c->in[0].dims[axis].value, s = c->in[1].dims[sr == 1 ? 0 : axis].value;
    if (block == 0 && n >= 0 && s >= 0 && n != s) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the scale has %lld values, but axis %d of input 0 has size %lld",
                          (long long)s, axis, (long long)n);
    }
    return NORI_OK;
}

static nori_status set_type(nori__infer *c, nori_type elem)
{
    if (nori__in_rank(c, 0) >= 0) {
        nori__out_set(c, 0, elem, nori__in_rank(c, 0), c->in[0].dims);
    } else {
        nori__out_elem(c, 0, elem);
    }
    return NORI_OK;
}

nori_status nori__infer_quantize(nori__infer *c)
{
    int64_t type = nori__attr_i(c->node, "output_dtype", 0);
    if (nori__has_in(c, 2)) {
        type = nori__in_elem(c, 2);
    } else if (type == 0) {
        type = NORI_UINT8;
    }
    if (type < 0 || type >= NORI_TYPE_COUNT) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "output_dtype is %lld", (long long)type);
    }
    NORI__TRY(set_type(c, (nori_type)type));
    return check_scale(c);
}

nori_status nori__infer_dequantize(nori__infer *c)
{
    int64_t type = nori__attr_i(c->node, "output_dtype", 0);
    if (type == 0) {
        type = nori__in_elem(c, 1);
        type = type == NORI_FLOAT8E8M0 ? NORI_FLOAT : type;
    }
    if (type < 0 || type >= NORI_TYPE_COUNT) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "output_dtype is %lld", (long long)type);
    }
    NORI__TRY(set_type(c, (nori_type)type));
    return check_scale(c);
}

nori_status nori__infer_dynamic_quantize(nori__infer *c)
{
    set_type(c, NORI_UINT8);
    if (c->node->output_count > 1) {
        nori__out_set(c, 1, NORI_FLOAT, 0, NULL);
    }
    if (c->node->output_count > 2) {
        nori__out_set(c, 2, NORI_UINT8, 0, NULL);
    }
    return NORI_OK;
}

/* com.microsoft: A, A_scale, A_zero_point, B, B_scale, B_zero_point, C_scale, C_zero_point. */
nori_status nori__infer_qlinear_binary(nori__infer *c)
{
    nori_type elem = nori__in_elem(c, 0);
    nori__out_elem(c, 0, elem);
    if (nori__in_rank(c, 0) < 0 || nori__in_rank(c, 3) < 0) {
        return NORI_OK;
    }
    nori__shape out;
    memset(&out, 0, sizeof out);
    NORI__TRY(nori__broadcast(c, &c->in[0], &c->in[3], &out));
    if (out.rank >= 0) {
        nori__out_set(c, 0, elem, out.rank, out.dims);
    }
    return NORI_OK;
}
