/* infer_ml.c: shapes of ai.onnx.ml. Most take rows, [N, C] or [C] as one row. */
#include "ops/content.h"

static size_t list_size(const nori__node *node, const char *name)
{
    const nori__attr *a = nori__attr_find(node, name);
    bool list = a && (a->kind == NORI__ATTR_STRINGS || a->kind == NORI__ATTR_INTS ||
                      a->kind == NORI__ATTR_FLOATS);
    return list ? a->count : 0;
}

static size_t label_count(const nori__node *node)
{
    size_t n = list_size(node, "classlabels_strings");
    n = n ? n : list_size(node, "classlabels_int64s");
    return n ? n : list_size(node, "classlabels_ints");
}

/* N of [N, C]; 1 of [C]. */
static nori__dim row_count(const nori__infer *c, nori__dim *width)
{
    int rank = nori__in_rank(c, 0);
    *width = rank == 1 || rank == 2 ? c->in[0].dims[rank - 1] : NORI__DIM_ANY;
    return rank == 2 ? c->in[0].dims[0] : rank == 1 ? nori__dim_of(1) : NORI__DIM_ANY;
}

nori_status nori__infer_ml_same(nori__infer *c)
{
    nori__out_like(c, 0, 0);
    return NORI_OK;
}

nori_status nori__infer_ml_same_float(nori__infer *c)
{
    nori__out_like(c, 0, 0);
    nori__out_elem(c, 0, NORI_FLOAT);
    return NORI_OK;
}

nori_status nori__infer_ml_extract(nori__infer *c)
{
    int rank = nori__in_rank(c, 0), at = nori__in_rank(c, 1);
    nori__dim dims[NORI_MAX_RANK + 1], n = nori__dim_of(1);
    nori__out_elem(c, 0, nori__in_elem(c, 0));
    if (rank < 1 || at < 0) {
        return NORI_OK;
    }
    for (int d = 0; d < at; d++) {
        nori__dim v = c->in[1].dims[d];
        n = v.value == 1   ? n
            : n.value == 1 ? v
            : v.value >= 0 && n.value >= 0 && nori__mul_dim(n.value, v.value, &n.value)
                ? n
                : NORI__DIM_ANY;
    }
    int to = rank == 1 ? 2 : rank;
    for (int d = 0; d < to - 1; d++) {
        dims[d] = rank == 1 ? nori__dim_of(1) : c->in[0].dims[d];
    }
    dims[to - 1] = n;
    nori__out_set(c, 0, nori__in_elem(c, 0), to, dims);
    return NORI_OK;
}

nori_status nori__infer_ml_category(nori__infer *c)
{
    nori__out_like(c, 0, 0);
    nori__out_elem(c, 0, nori__in_elem(c, 0) == NORI_STRING ? NORI_INT64 : NORI_STRING);
    return NORI_OK;
}

nori_status nori__infer_ml_label_encoder(nori__infer *c)
{
    const nori_tensor *values = nori__attr_tensor(c->node, "values_tensor");
    nori_type type = values                                 ? (nori_type)values->type
                     : list_size(c->node, "values_strings") ? NORI_STRING
                     : list_size(c->node, "values_floats")  ? NORI_FLOAT
                     : list_size(c->node, "values_int64s")  ? NORI_INT64
                     : nori__in_elem(c, 0) == NORI_STRING   ? NORI_INT64
                                                            : NORI_STRING;
    nori__out_like(c, 0, 0);
    nori__out_elem(c, 0, type); /* version 1: from text to integers and back */
    return NORI_OK;
}

nori_status nori__infer_ml_one_hot(nori__infer *c)
{
    int rank = nori__in_rank(c, 0);
    size_t n = list_size(c->node, "cats_int64s") + list_size(c->node, "cats_strings");
    nori__out_elem(c, 0, NORI_FLOAT);
    if (rank >= NORI_MAX_RANK) {
        return nori__fail(c->err, NORI_ERROR_LIMIT, "rank %d, at most %d is taken", rank + 1,
                          NORI_MAX_RANK);
    }
    if (rank >= 0) {
        nori__dim dims[NORI_MAX_RANK];
        memcpy(dims, c->in[0].dims, sizeof(dims));
        dims[rank] = nori__dim_of((int64_t)n);
        nori__out_set(c, 0, NORI_FLOAT, rank + 1, dims);
    }
    return NORI_OK;
}

nori_status nori__infer_ml_feature_vectorizer(nori__infer *c)
{
    nori__dim dims[2] = {NORI__DIM_ANY, nori__dim_of(0)};
    for (uint32_t i = 0; i < c->node->input_count; i++) {
        int rank = nori__in_rank(c, i);
        nori__dim n = rank == 2 ? c->in[i].dims[0] : rank == 1 ? nori__dim_of(1) : NORI__DIM_ANY;
        nori__dim w = rank == 1 || rank == 2 ? c->in[i].dims[rank - 1] : NORI__DIM_ANY;
        if (rank > 2) {
            return nori__fail(c->err, NORI_ERROR_MODEL, "input %u has rank %d, expected 1 or 2", i,
                              rank);
        }
        if (n.value >= 0 && dims[0].value >= 0 && n.value != dims[0].value) {
            return nori__fail(c->err, NORI_ERROR_MODEL,
                              "input %u has %lld rows, the ones before %lld", i, (long long)n.value,
                              (long long)dims[0].value);
        }
        dims[0] = dims[0].value >= 0 || (dims[0].name && n.value < 0) ? dims[0] : n;
        if (w.value < 0 || dims[1].value < 0 ||
            !nori__add_i64(dims[1].value, w.value, &dims[1].value)) {
            dims[1] = NORI__DIM_ANY;
        }
    }
    nori__out_set(c, 0, NORI_FLOAT, 2, dims);
    return NORI_OK;
}

/* Label and scores of classifiers. */
static void label_and_scores(nori__infer *c, nori__dim n, nori__dim scores)
{
    bool text = list_size(c->node, "classlabels_strings") > 0;
    nori__dim dims[2] = {n, scores};
    nori__out_set(c, 0, text ? NORI_STRING : NORI_INT64, 1, &n);
    nori__out_set(c, 1, NORI_FLOAT, 2, dims);
}

nori_status nori__infer_ml_linear_classifier(nori__infer *c)
{
    nori__dim width, n = row_count(c, &width);
    size_t labels = label_count(c->node), weights = list_size(c->node, "coefficients");
    nori__dim scores = nori__dim_of((int64_t)labels);
    if (labels == 0) {
        scores = width.value > 0 ? nori__dim_of((int64_t)weights / width.value) : NORI__DIM_ANY;
    }
    label_and_scores(c, n, scores);
    return NORI_OK;
}

nori_status nori__infer_ml_linear_regressor(nori__infer *c)
{
    nori__dim width, dims[2] = {row_count(c, &width)};
    int64_t targets = nori__attr_i(c->node, "targets", 1);
    if (targets < 1) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "targets is %lld", (long long)targets);
    }
    dims[1] = nori__dim_of(targets);
    nori__out_set(c, 0, NORI_FLOAT, 2, dims);
    return NORI_OK;
}

nori_status nori__infer_ml_svm_classifier(nori__infer *c)
{
    nori__dim width, n = row_count(c, &width);
    int64_t labels = (int64_t)label_count(c->node), scores = labels;
    bool pairs = list_size(c->node, "vectors_per_class") > 0 && list_size(c->node, "prob_a") == 0;
    if (pairs && labels > 2 && labels < INT32_MAX) {
        scores = labels * (labels - 1) / 2;
    }
    label_and_scores(c, n, nori__dim_of(scores));
    return NORI_OK;
}

nori_status nori__infer_ml_svm_regressor(nori__infer *c)
{
    nori__dim width, dims[2] = {row_count(c, &width), nori__dim_of(1)};
    nori__out_set(c, 0, NORI_FLOAT, 2, dims);
    return NORI_OK;
}

nori_status nori__infer_ml_tree_classifier(nori__infer *c)
{
    nori__dim width, n = row_count(c, &width);
    label_and_scores(c, n, nori__dim_of((int64_t)label_count(c->node)));
    return NORI_OK;
}

/* TreeEnsembleRegressor gives float, TreeEnsemble its input's type. */
nori_status nori__infer_ml_tree_regressor(nori__infer *c)
{
    nori__dim width, dims[2] = {row_count(c, &width)};
    int64_t targets = nori__attr_i(c->node, "n_targets", 1);
    if (targets < 1) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "n_targets is %lld", (long long)targets);
    }
    dims[1] = nori__dim_of(targets);
    bool newer = nori__node_is(c->node, NORI__OP_ML_TreeEnsemble);
    nori__out_set(c, 0, newer ? nori__in_elem(c, 0) : NORI_FLOAT, 2, dims);
    return NORI_OK;
}

nori_status nori__infer_ml_zip_map(nori__infer *c)
{
    nori__type *map = c->arena ? nori__arena_alloc(c->arena, sizeof(*map)) : NULL;
    nori__type *value = map ? nori__arena_alloc(c->arena, sizeof(*value)) : NULL;
    if (value) {
        bool text = list_size(c->node, "classlabels_strings") > 0;
        *value = (nori__type){.kind = NORI_KIND_TENSOR, .elem = NORI_FLOAT, .rank = 0};
        *map = (nori__type){.kind = NORI_KIND_MAP,
                            .elem = text ? NORI_STRING : NORI_INT64,
                            .rank = -1,
                            .of = value};
    }
    if (c->node->output_count > 0) {
        c->out[0].kind = NORI_KIND_SEQUENCE;
        c->out[0].of = value ? map : NULL;
    }
    return NORI_OK;
}

nori_status nori__infer_ml_cast_map(nori__infer *c)
{
    const char *to = nori__attr_s(c->node, "cast_to", "TO_FLOAT");
    nori__dim dims[2] = {nori__dim_of(1), NORI__DIM_ANY};
    if (nori__same(nori__attr_s(c->node, "map_form", "DENSE"), "SPARSE")) {
        int64_t n = nori__attr_i(c->node, "max_map", 1);
        dims[1].value = n < 0 ? -1 : n;
    }
    nori__out_set(c, 0,
                  nori__same(to, "TO_STRING")  ? NORI_STRING
                  : nori__same(to, "TO_INT64") ? NORI_INT64
                                               : NORI_FLOAT,
                  2, dims);
    return NORI_OK;
}

nori_status nori__infer_ml_dict_vectorizer(nori__infer *c)
{
    size_t n = list_size(c->node, "int64_vocabulary") + list_size(c->node, "string_vocabulary");
    nori__dim dims[2] = {nori__dim_of(1), nori__dim_of((int64_t)n)};
    const nori__type *value = nori__has_in(c, 0) ? c->in[0].of : NULL;
    nori__out_set(c, 0, value ? (nori_type)value->elem : NORI_UNDEFINED, 2, dims);
    return NORI_OK;
}
