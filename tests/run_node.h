/* run_node.h: one-node (or small) models made in memory, run through a session on the reference
 * provider. Include after make_model.h. */
#ifndef NORI_TESTS_RUN_NODE_H
#define NORI_TESTS_RUN_NODE_H

#include "nori/nori.h"
#include "record.h"

/* Loads what was made and compiles it; NULL with the error kept when that fails. The bytes are in
 * the maker's arena. */
static inline nori_session *node_session(make *m, nori_error *err)
{
    nori__text bytes;
    nori_model *model = NULL;
    nori_session *session = NULL;
    nori_session_options options;
    nori__text_init(&bytes, &nori__malloc);
    assert_int_equal(nori__pb_write_model(&m->model, &bytes, err), NORI_OK);
    char *kept = nori__arena_copy(&m->arena, bytes.data, bytes.size);
    assert_non_null(kept);
    nori_session_options_default(&options);
    options.providers = "reference";
    if (nori_model_load_memory(NULL, kept, bytes.size, NULL, NULL, &model, err) == NORI_OK) {
        nori_session_create(model, &options, &session, err);
    }
    const nori_node *n = session ? nori_graph_first(nori_model_graph(model)) : NULL;
    for (; n; n = nori_node_next(n)) {
        record_operator(nori_node_domain(n), nori_node_op(n), nori_node_version(n));
    }
    nori_model_free(model);
    nori__text_free(&bytes);
    return session;
}

/* Runs; checks that it works unless status says otherwise. */
static inline void node_run(nori_session *s, const nori_tensor *const *in, size_t n_in,
                            nori_tensor **out, size_t n_out, nori_status want)
{
    nori_error err = {0};
    nori_status status = nori_session_run(s, in, n_in, out, n_out, &err);
    if (status != want) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(status, want);
}

static inline nori_tensor *node_tensor(nori_type type, int rank, const int64_t *dims)
{
    nori_tensor *t = NULL;
    assert_int_equal(nori_tensor_create(NULL, type, rank, dims, &t, NULL), NORI_OK);
    return t;
}

static inline nori_tensor *node_values(nori_type type, int rank, const int64_t *dims,
                                       const double *values)
{
    nori_tensor *t = node_tensor(type, rank, dims);
    for (int64_t i = 0; i < t->count; i++) {
        nori__tensor_set_f64(t, i, values[i]);
    }
    return t;
}

#define NODE_DIMS(...)                                                                             \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[])                                       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define NODE_F(rank_dims, ...) node_values(NORI_FLOAT, rank_dims, (double[]){__VA_ARGS__})

/* Type, shape and values; NaN equals NaN. Frees the tensor. */
static inline void node_expect(nori_tensor *t, nori_type type, int rank, const int64_t *dims,
                               const double *values)
{
    assert_non_null(t);
    assert_int_equal(t->kind, NORI_KIND_TENSOR);
    assert_int_equal(t->type, type);
    assert_int_equal(t->rank, rank);
    for (int d = 0; d < rank; d++) {
        assert_int_equal(t->dims[d], dims[d]);
    }
    for (int64_t i = 0; i < t->count; i++) {
        double v = nori__tensor_get_f64(t, i), w = values[i];
        double gap = v > w ? v - w : w - v, size = w < 0 ? -w : w;
        if (!(v == w || (v != v && w != w) || gap <= 1e-6 + 1e-5 * size)) {
            print_error("element %lld is %g, expected %g\n", (long long)i, v, w);
            fail();
        }
    }
    nori_tensor_free(t);
}

#endif
