/* infer_text.c: types and shapes of string operators. */
#include "ops/families.h"

/* [C] or [1, C]: how many elements stay depends on them. */
nori_status nori__infer_string_normalizer(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    nori__dim dims[2] = {NORI__DIM_ANY, NORI__DIM_ANY};
    if (rank < 0) {
        nori__out_elem(c, 0, NORI_STRING);
        return NORI_OK;
    }
    if (rank != 1 && rank != 2) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 0 has rank %d, expected 1 or 2", rank);
    }
    if (rank == 2) {
        dims[0] = nori__dim_of(1);
    }
    nori__out_set(c, 0, NORI_STRING, rank, dims);
    return NORI_OK;
}

nori_status nori__infer_string_split(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    nori__dim dims[NORI_MAX_RANK];
    nori__out_elem(c, 0, NORI_STRING);
    nori__out_like(c, 1, 0);
    nori__out_elem(c, 1, NORI_INT64);
    if (rank < 0) {
        return NORI_OK;
    }
    if (rank + 1 > NORI_MAX_RANK) {
        return nori__fail(c->err, NORI_ERROR_LIMIT, "the result would have rank %d, at most %d "
                          "is supported", rank + 1, NORI_MAX_RANK);
    }
    for (int i = 0; i < rank; i++) {
        dims[i] = c->in[0].dims[i];
    }
    dims[rank] = NORI__DIM_ANY;
    nori__out_set(c, 0, NORI_STRING, rank + 1, dims);
    return NORI_OK;
}

/* [C] or [N, C] to [max(ngram_indexes) + 1], a row each. */
nori_status nori__infer_tfidf(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    size_t n;
    const int64_t *indexes = nori__attr_ints(c->node, "ngram_indexes", &n);
    int64_t last = -1;
    for (size_t i = 0; i < n; i++) {
        if (indexes[i] < 0 || indexes[i] == INT64_MAX) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "ngram_indexes has %lld at entry %zu",
                              (long long)indexes[i], i);
        }
        last = indexes[i] > last ? indexes[i] : last;
    }
    if (rank < 0) {
        nori__out_elem(c, 0, NORI_FLOAT);
        return NORI_OK;
    }
    if (rank != 1 && rank != 2) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "input 0 has rank %d, expected 1 or 2", rank);
    }
    nori__dim dims[2] = {c->in[0].dims[0], nori__dim_of(last + 1)};
    nori__out_set(c, 0, NORI_FLOAT, rank, rank == 2 ? dims : dims + 1);
    return NORI_OK;
}
