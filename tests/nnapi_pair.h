/* nnapi_pair.h: one model on the provider nnapi, by way of the double of its library, and on the
 * reference provider. Include after text_model.h, in a program with NNAPI_DOUBLE defined. */
#ifndef NORI_TESTS_NNAPI_PAIR_H
#define NORI_TESTS_NNAPI_PAIR_H

#include <dlfcn.h>
#include <math.h>

#include "record.h"

#define ALL "nnapi:lib=" NNAPI_DOUBLE ",costs=none"

/* ---- what the double says ---- */

static void *library;

static inline int number(const char *name)
{
    void *symbol = dlsym(library, name);
    int (*ask)(void);
    assert_non_null(symbol);
    memcpy(&ask, &symbol, sizeof(ask));
    return ask();
}

static inline const char *words(const char *name)
{
    void *symbol = dlsym(library, name);
    const char *(*ask)(void);
    assert_non_null(symbol);
    memcpy(&ask, &symbol, sizeof(ask));
    return ask();
}

static inline int open_double(void **state)
{
    (void)state;
    library = dlopen(NNAPI_DOUBLE, RTLD_NOW | RTLD_LOCAL);
    return library ? 0 : -1;
}

/* After each test: no rule broken, nothing left. */
static inline int fresh(void **state)
{
    (void)state;
    unsetenv("NNAPI_DOUBLE_LEVEL");
    unsetenv("NNAPI_DOUBLE_REFUSE");
    if (number("nnapi_double_faults") > 0) {
        fprintf(stderr, "the double: %s\n", words("nnapi_double_last"));
        return -1;
    }
    return number("nnapi_double_live") == 0 ? 0 : -1;
}

/* ---- one model on both ---- */

static inline void count_nodes(const nori_session *s, size_t *has, size_t *others)
{
    nori_node_info n = {.size = sizeof(n)};
    *has = *others = 0;
    for (size_t i = 0; nori_session_node(s, i, &n); i++) {
        bool ours = strcmp(n.provider, "nnapi") == 0;
        *(ours ? has : others) += 1;
        if (ours) {
            record_operator(nori_node_domain(n.node), nori_node_op(n.node),
                            nori_node_version(n.node));
        }
    }
}

static inline nori_session *session_of(text_model *t, const char *providers, const char *text)
{
    nori_error err = {0};
    nori_session *s = text_session(t, providers, 1, 1, &err);
    if (!s) {
        fail_msg("%s: %s: %s", text, err.where, err.message);
    }
    return s;
}

static inline void agree(const nori_tensor *a, const nori_tensor *b, double tolerance, const char *text)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->dims, b->dims, (size_t)a->rank * sizeof(a->dims[0]));
    for (int64_t i = 0; i < a->count; i++) {
        double x = nori__tensor_get_f64(a, i), y = nori__tensor_get_f64(b, i);
        double near = a->type == NORI_FLOAT ? tolerance * (1 + fabs(y)) : 1;
        if (!(x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= near)) {
            fail_msg("%s: element %lld is %g, the reference has %g", text, (long long)i, x, y);
        }
    }
}

static inline void compare(text_model *t, nori_session *s, nori_session *reference, double tolerance,
                           const char *text)
{
    nori_tensor *a[TEXT_MAX] = {NULL}, *b[TEXT_MAX] = {NULL};
    size_t n = nori_session_output_count(s);
    nori_error err = {0};
    if (nori_session_run(s, (const nori_tensor *const *)t->in, t->n_in, a, n, &err) != NORI_OK) {
        fail_msg("%s: %s: %s (%s)", text, err.where, err.message, words("nnapi_double_last"));
    }
    assert_int_equal(nori_session_run(reference, (const nori_tensor *const *)t->in, t->n_in, b, n, &err),
                     NORI_OK);
    for (size_t i = 0; i < n; i++) {
        agree(a[i], b[i], tolerance, text);
        nori_tensor_free(a[i]);
        nori_tensor_free(b[i]);
    }
}

/* All nodes on nnapi, or none; results as on reference, to a tolerance (bytes: to one step). */
static inline void takes_within(const char *text, bool all, double tolerance)
{
    text_model t;
    text_begin(&t, text, 18, false);
    nori_session *s = session_of(&t, ALL, text), *r = session_of(&t, "reference", text);
    size_t has, others;
    int computed = number("nnapi_double_computed");
    count_nodes(s, &has, &others);
    if (all ? has == 0 || others > 0 : has > 0) {
        fail_msg("%s: nnapi has %zu nodes, others have %zu (%s)", text, has, others,
                 words("nnapi_double_last"));
    }
    compare(&t, s, r, tolerance, text);
    compare(&t, s, r, tolerance, text);
    assert_int_equal(number("nnapi_double_computed") - computed, all ? 2 : 0);
    nori_session_free(s);
    nori_session_free(r);
    text_end(&t);
    if (number("nnapi_double_faults") > 0) {
        fail_msg("%s: %s", text, words("nnapi_double_last"));
    }
}

static inline void takes(const char *text, bool all)
{
    takes_within(text, all, 1e-5);
}

#define TAKES_ALL(rows, all)                              \
    for (size_t i = 0; i < NORI__COUNT(rows); i++) {      \
        takes(rows[i], all);                              \
    }

#endif
