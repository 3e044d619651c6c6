/* infer_norm.c: shapes of normalisations: output 0 is like input 0. */
#include "ops/families.h"

static const nori__dim any = {-1, NULL};

static nori_status need_rank(nori__infer *c, int least)
{
    int rank = nori__in_rank(c, 0);
    if (rank >= 0 && rank < least) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 0 has rank %d, expected at least %d",
                          rank, least);
    }
    return NORI_OK;
}

/* A parameter with one value a channel (axis 1 of input 0). */
static nori_status per_channel(nori__infer *c, uint32_t i)
{
    int rank = nori__in_rank(c, i), xr = nori__in_rank(c, 0);
    if (rank < 0 || xr < 2) {
        return NORI_OK;
    }
    nori__dim n = rank == 1 ? c->in[i].dims[0] : any, ch = c->in[0].dims[1];
    if (rank != 1 || (n.value >= 0 && ch.value >= 0 && n.value != ch.value)) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "input %u has rank %d and size %lld, expected one value for each of %lld "
                          "channels", i, rank, (long long)n.value, (long long)ch.value);
    }
    return NORI_OK;
}

nori_status nori__infer_batch_norm(nori__infer *c)
{
    bool old = c->node->version > 0 && c->node->version < 9 &&
               nori__attr_i(c->node, "spatial", 1) == 0;
    NORI__TRY(need_rank(c, 1));
    nori__out_like(c, 0, 0);
    for (uint32_t i = 1; i < 5 && !old; i++) {
        NORI__TRY(per_channel(c, i));
    }
    /* Running statistics, and in old files the saved ones. */
    for (uint32_t o = 1; o < c->node->output_count; o++) {
        nori__out_like(c, o, o % 2 ? 3 : 4);
    }
    return NORI_OK;
}

nori_status nori__infer_instance_norm(nori__infer *c)
{
    NORI__TRY(need_rank(c, 2));
    nori__out_like(c, 0, 0);
    NORI__TRY(per_channel(c, 1));
    return per_channel(c, 2);
}

nori_status nori__infer_channel_norm(nori__infer *c)
{
    NORI__TRY(need_rank(c, 2));
    nori__out_like(c, 0, 0);
    return NORI_OK;
}

nori_status nori__infer_axis_norm(nori__infer *c)
{
    int axis, rank = nori__in_rank(c, 0);
    nori__out_like(c, 0, 0);
    return rank < 0 ? NORI_OK
                    : nori__fix_axis(c->err, nori__attr_i(c->node, "axis", -1), rank, &axis);
}

/* Mean and InvStdDev (outputs 1 and 2): 1 from axis on, of the type stash_type says. */
/* The type that mean and deviation are computed and given in. */
static nori_status stash_type(nori__infer *c, nori_type *type)
{
    int64_t given = nori__attr_i(c->node, "stash_type", NORI_FLOAT);
    if (given < 0 || given >= NORI_TYPE_COUNT || !nori__type_is_float((nori_type)given)) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "stash_type is %lld, which is no type of floats",
                          (long long)given);
    }
    *type = (nori_type)given;
    return NORI_OK;
}

nori_status nori__infer_layer_norm(nori__infer *c)
{
    int axis, rank = nori__in_rank(c, 0);
    nori_type stash;
    nori__dim dims[NORI_MAX_RANK];
    NORI__TRY(stash_type(c, &stash));
    nori__out_like(c, 0, 0);
    for (uint32_t o = 1; o < c->node->output_count; o++) {
        nori__out_elem(c, o, stash);
    }
    if (rank < 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", -1), rank, &axis));
    for (int d = 0; d < rank; d++) {
        dims[d] = d < axis ? c->in[0].dims[d] : nori__dim_of(1);
    }
    for (uint32_t o = 1; o < c->node->output_count && o < 3; o++) {
        nori__out_set(c, o, stash, rank, dims);
    }
    return NORI_OK;
}

/* The output's type is the scale's. */
nori_status nori__infer_rms_norm(nori__infer *c)
{
    nori_type stash;
    NORI__TRY(stash_type(c, &stash));
    NORI__TRY(nori__infer_axis_norm(c));
    if (nori__in_elem(c, 1) != NORI_UNDEFINED && nori__in_rank(c, 0) >= 0) {
        nori__out_set(c, 0, nori__in_elem(c, 1), nori__in_rank(c, 0), c->in[0].dims);
    } else if (nori__in_elem(c, 1) != NORI_UNDEFINED) {
        nori__out_elem(c, 0, nori__in_elem(c, 1));
    }
    return NORI_OK;
}

/* Of no opset: Y of the scale's type, then the inverse deviation. */
nori_status nori__infer_simplified_layer_norm(nori__infer *c)
{
    int axis, rank = nori__in_rank(c, 0);
    nori_type stash;
    nori__dim dims[NORI_MAX_RANK];
    NORI__TRY(stash_type(c, &stash));
    NORI__TRY(nori__infer_rms_norm(c));
    if (c->node->output_count < 2 || rank < 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__fix_axis(c->err, nori__attr_i(c->node, "axis", -1), rank, &axis));
    for (int d = 0; d < rank; d++) {
        dims[d] = d < axis ? c->in[0].dims[d] : nori__dim_of(1);
    }
    nori__out_set(c, 1, stash, rank, dims);
    return NORI_OK;
}

/* com.microsoft: input, skip, gamma, beta, bias; output, mean, inverse deviation, the sum. */
nori_status nori__infer_skip_layer_norm(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    nori__dim dims[NORI_MAX_RANK];
    NORI__TRY(need_rank(c, 1));
    nori__out_like(c, 0, 0);
    for (uint32_t o = 1; o < c->node->output_count; o++) {
        nori__out_elem(c, o, NORI_FLOAT);
    }
    if (c->node->output_count > 3) {
        nori__out_like(c, 3, 0);
    }
    if (rank < 0) {
        return NORI_OK;
    }
    for (int d = 0; d < rank; d++) {
        dims[d] = d < rank - 1 ? c->in[0].dims[d] : nori__dim_of(1);
    }
    for (uint32_t o = 1; o < c->node->output_count && o < 3; o++) {
        nori__out_set(c, o, NORI_FLOAT, rank, dims);
    }
    return NORI_OK;
}
