/* infer_random.c: types and shapes of random operators. */
#include "ops/families.h"

/* The type attribute, or `otherwise` where it is not given. */
static nori_status dtype(nori__infer *c, nori_type otherwise, nori_type *out)
{
    int64_t type = nori__attr_i(c->node, "dtype", otherwise);
    if (type < NORI_UNDEFINED || type >= NORI_TYPE_COUNT) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "attribute dtype is %lld, expected the number of an element type",
                          (long long)type);
    }
    *out = (nori_type)type;
    return NORI_OK;
}

/* RandomNormal, RandomUniform. */
nori_status nori__infer_random(nori__infer *c)
{
    nori_type type = NORI_FLOAT;
    NORI__TRY(dtype(c, NORI_FLOAT, &type));
    size_t n;
    const int64_t *shape = nori__attr_ints(c->node, "shape", &n);
    nori__dim dims[NORI_MAX_RANK];
    if (n > NORI_MAX_RANK) {
        return nori__fail(c->err, NORI_ERROR_LIMIT, "attribute shape has %zu entries, at most %d "
                          "dimensions are supported", n, NORI_MAX_RANK);
    }
    for (size_t i = 0; i < n; i++) {
        if (shape[i] < 0) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "attribute shape has %lld at entry %zu",
                              (long long)shape[i], i);
        }
        dims[i] = nori__dim_of(shape[i]);
    }
    nori__out_set(c, 0, type, (int)n, dims);
    return NORI_OK;
}

/* RandomNormalLike, RandomUniformLike, Bernoulli: the input's shape, and type unless given. */
nori_status nori__infer_random_like(nori__infer *c)
{
    nori_type type = NORI_UNDEFINED;
    NORI__TRY(dtype(c, nori__in_elem(c, 0), &type));
    nori__out_like(c, 0, 0);
    nori__out_elem(c, 0, type);
    return NORI_OK;
}

nori_status nori__infer_multinomial(nori__infer *c)
{
    nori_type type = NORI_INT32;
    NORI__TRY(dtype(c, NORI_INT32, &type));
    int64_t samples = nori__attr_i(c->node, "sample_size", 1);
    int rank = nori__in_rank(c, 0);
    if (samples < 0) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "attribute sample_size is %lld",
                          (long long)samples);
    }
    if (rank >= 0 && rank != 2) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "input 0 has rank %d, expected 2 (batch, classes)", rank);
    }
    nori__dim dims[2] = {rank == 2 ? c->in[0].dims[0] : NORI__DIM_ANY, nori__dim_of(samples)};
    nori__out_set(c, 0, type, 2, dims);
    return NORI_OK;
}
