/* form.h: a model of one node of some operator set, built, run through a session and compared. Include
 * after cmocka.h. One at a time:
 *
 *     form("", 6, "Clip", "a", "y");       inputs are a, b, c ... in this order
 *     attr_float("min", -1);
 *     in(NORI_FLOAT, "2", V(-3, 1));
 *     gives(NORI_FLOAT, "2", V(-1, 1));    runs it; the only output is y */
#ifndef NORI_TESTS_FORM_H
#define NORI_TESTS_FORM_H

#include <math.h>

#include "graph/tensor.h"
#include "make_model.h"
#include "nori/provider.h"
#include "run_node.h"

enum { MOST = 6 };

static make m;
static nori__pb_node *n;
static nori_tensor *fed[MOST], *made[MOST];
static size_t n_fed;

#define V(...) ((const double[]){__VA_ARGS__})
#define I(...) sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__}

static inline int dims_of(const char *shape, int64_t *dims)
{
    int rank = 0;
    while (*shape) {
        char *end;
        dims[rank++] = strtoll(shape, &end, 10);
        shape = *end == ' ' ? end + 1 : end;
    }
    return rank;
}

/* One node; inputs follow by in(), in the order of their names. */
static inline void form(const char *domain, int64_t opset, const char *op, const char *inputs,
                 const char *outputs)
{
    make_begin(&m, domain[0] ? 18 : opset);
    if (domain[0]) {
        make_import(&m, domain, opset);
    }
    n = make_node(&m, &m.graph, domain, op, "node", inputs, outputs);
    n_fed = 0;
}

static inline void in(nori_type type, const char *shape, const double *v)
{
    static const char *const names[MOST] = {"a", "b", "c", "d", "e", "f"};
    int64_t dims[NORI_MAX_RANK];
    int rank = dims_of(shape, dims);
    make_input(&m, &m.graph, names[n_fed], type, shape);
    fed[n_fed++] = node_values(type, rank, dims, v);
}

/* A constant of float values. */
static inline void constant(const char *name, int64_t count, double v)
{
    nori__pb_tensor *t = MAKE_ADD(&m, m.graph.initializers);
    t->name = make_str(&m, name);
    t->data_type = NORI_FLOAT;
    if (count >= 0) {
        *MAKE_ADD(&m, t->dims) = count;
    }
    *MAKE_ADD(&m, t->floats) = (float)v;
}

static inline void attr_float(const char *name, double v)
{
    make_attr(&m, n, name, NORI__ATTR_FLOAT)->f = (float)v;
}

static inline void attr_floats(const char *name, size_t count, const double *v)
{
    nori__pb_attr *a = make_attr(&m, n, name, NORI__ATTR_FLOATS);
    for (size_t i = 0; i < count; i++) {
        *MAKE_ADD(&m, a->floats) = (float)v[i];
    }
}
#define F(...) sizeof((double[]){__VA_ARGS__}) / 8, (double[]){__VA_ARGS__}

static inline void attr_texts(const char *name, const char *texts)
{
    nori__pb_attr *a = make_attr(&m, n, name, NORI__ATTR_STRINGS);
    MAKE_NAMES(&m, a->strings, texts)
}

static inline void run(size_t n_out)
{
    static const char *const names[] = {"y", "z"};
    nori_error err = {0};
    for (size_t i = 0; i < n_out; i++) { /* of any type and shape */
        nori__pb_value *v = MAKE_ADD(&m, m.graph.outputs);
        v->name = make_str(&m, names[i]);
    }
    nori_session *s = node_session(&m, &err);
    if (!s) {
        fail_msg("%s: %s", err.where, err.message);
    }
    memset(made, 0, sizeof(made));
    node_run(s, (const nori_tensor *const *)fed, n_fed, made, n_out, NORI_OK);
    for (size_t i = 0; i < n_fed; i++) {
        nori_tensor_free(fed[i]);
    }
    nori_session_free(s);
    make_end(&m);
}

static inline void is(size_t output, nori_type type, const char *shape, const double *want)
{
    int64_t dims[NORI_MAX_RANK];
    int rank = dims_of(shape, dims);
    node_expect(made[output], type, rank, dims, want);
}

static inline void gives(nori_type type, const char *shape, const double *want)
{
    run(1);
    is(0, type, shape, want);
}

#endif
