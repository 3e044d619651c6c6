/* one_node.h: a node in memory, inferred and run on its reference kernel, for tests of operators.
 * Include after cmocka.h. Running out of room or memory fails the test. */
#ifndef NORI_TESTS_ONE_NODE_H
#define NORI_TESTS_ONE_NODE_H

#include <math.h>
#include <stdio.h>

#include "ops/resolve.h"
#include "record.h"

enum { ONE_MAX = 12 };

typedef struct one {
    nori__node node;
    nori__value values[2 * ONE_MAX];
    nori__value *in[ONE_MAX], *out[ONE_MAX];
    nori__attr attrs[ONE_MAX];
    nori_tensor *results[ONE_MAX];
    nori_error err;
} one;

/* outputs: how many are wanted; version: of the operator as if from a file (0: the newest). */
static inline void one_begin(one *o, const char *domain, const char *op, uint32_t outputs,
                             int version)
{
    memset(o, 0, sizeof *o);
    o->node.name = "";
    o->node.op_type = op;
    o->node.domain = domain;
    o->node.overload = "";
    o->node.op = nori__op_find(domain, op);
    assert_non_null(o->node.op);
    o->node.version = version ? version : 1000;
    o->node.inputs = o->in;
    o->node.outputs = o->out;
    o->node.attrs = o->attrs;
    o->node.output_count = outputs;
    for (uint32_t i = 0; i < outputs; i++) {
        o->values[ONE_MAX + i].name = "y";
        o->out[i] = &o->values[ONE_MAX + i];
    }
}

static inline nori_tensor *one_in(one *o, nori_type type, int rank, const int64_t *dims)
{
    assert_true(o->node.input_count < ONE_MAX);
    uint32_t i = o->node.input_count++;
    nori_tensor *t = NULL;
    assert_int_equal(nori__tensor_new(&nori__malloc, type, rank, dims, &t, NULL), NORI_OK);
    o->values[i].name = "x";
    o->values[i].constant = t;
    o->values[i].flags = NORI__VALUE_INITIALIZER;
    o->in[i] = &o->values[i];
    return t;
}

static inline void one_absent(one *o)
{
    o->node.input_count++;
}

#define ONE_DIMS(...) (int)NORI__COUNT(((int64_t[]){__VA_ARGS__})), (int64_t[]){__VA_ARGS__}
#define ONE_F(...) (double[]){__VA_ARGS__}

/* Values as double whatever the type; NULL: i-th is i % 7 - 3. */
static inline void one_input(one *o, nori_type type, int rank, const int64_t *dims,
                             const double *v)
{
    nori_tensor *t = one_in(o, type, rank, dims);
    for (int64_t i = 0; i < t->count; i++) {
        nori__tensor_set_f64(t, i, v ? v[i] : (double)(i % 7) - 3);
    }
}

static inline void one_scalar(one *o, nori_type type, double v)
{
    one_input(o, type, 0, NULL, &v);
}

static inline nori__attr *one_attr(one *o, const char *name, nori__pb_attr_kind kind)
{
    assert_true(o->node.attr_count < ONE_MAX);
    nori__attr *a = &o->attrs[o->node.attr_count++];
    a->name = name;
    a->kind = kind;
    return a;
}

static inline void one_i(one *o, const char *name, int64_t v)
{
    one_attr(o, name, NORI__ATTR_INT)->v.i = v;
}

static inline void one_f(one *o, const char *name, double v)
{
    one_attr(o, name, NORI__ATTR_FLOAT)->v.f = (float)v;
}

static inline void one_s(one *o, const char *name, const char *v)
{
    nori__attr *a = one_attr(o, name, NORI__ATTR_STRING);
    a->v.s = v;
    a->count = strlen(v);
}

static inline void one_ints(one *o, const char *name, int n, const int64_t *v)
{
    nori__attr *a = one_attr(o, name, NORI__ATTR_INTS);
    a->v.ints = v;
    a->count = (size_t)n;
}

static inline nori_status one_alloc(nori_call *call, uint32_t i, nori_type type, int rank,
                                    const int64_t *dims, nori_tensor **tensor)
{
    one *o = call->run;
    NORI__TRY(nori__tensor_new(&nori__malloc, type, rank, dims, &o->results[i], call->err));
    *tensor = o->results[i];
    return NORI_OK;
}

static inline nori_status one_run_dynamic(one *o)
{
    const nori_tensor *in[ONE_MAX] = {NULL};
    nori_tensor *out[ONE_MAX] = {NULL};
    for (uint32_t i = 0; i < o->node.input_count; i++) {
        in[i] = o->in[i] ? o->in[i]->constant : NULL;
    }
    nori__exec exec = {.alloc = one_alloc};
    nori_call call = {.node = &o->node, .n_in = o->node.input_count, .n_out = o->node.output_count,
                      .in = in, .out = out, .exec = &exec, .allocator = &nori__malloc,
                      .threads = 1, .err = &o->err, .run = o};
    return o->node.op->reference(&call);
}

static inline nori_status one_run(one *o)
{
    if (o->node.op->flags & NORI__OP_SELF_ALLOC) {
        return one_run_dynamic(o);
    }
    return nori__node_evaluate(&o->node, &nori__malloc, o->results, &o->err);
}

static inline void one_end(one *o)
{
    for (int i = 0; i < ONE_MAX; i++) {
        nori_tensor_free(o->results[i]);
        nori_tensor_free(o->values[i].constant);
    }
}

static inline void one_ok(one *o)
{
    nori_status s = one_run(o);
    if (s != NORI_OK) {
        print_message("%s: %s %s\n", o->node.op_type, nori_status_text(s), o->err.message);
    }
    assert_int_equal(s, NORI_OK);
    record_operator(o->node.domain, o->node.op_type, o->node.version);
}

static inline void one_shape(const one *o, int i, nori_type type, int rank, const int64_t *dims)
{
    const nori_tensor *t = o->results[i];
    assert_non_null(t);
    assert_int_equal(t->type, type);
    assert_int_equal(t->rank, rank);
    for (int d = 0; d < rank; d++) {
        assert_int_equal(t->dims[d], dims[d]);
    }
}

/* Values of output i within a relative and absolute difference; NaN equals NaN. */
static inline void one_near(const one *o, int i, const double *want, double tolerance)
{
    const nori_tensor *t = o->results[i];
    assert_non_null(t);
    for (int64_t k = 0; k < t->count; k++) {
        double got = nori__tensor_get_f64(t, k);
        bool same = got == want[k] || (isnan(got) && isnan(want[k]));
        if (!same && !(fabs(got - want[k]) <= tolerance * (1 + fabs(want[k])))) {
            fail_msg("%s output %d[%lld] is %.9g, expected %.9g", o->node.op_type, i, (long long)k,
                     got, want[k]);
        }
    }
}

/* Runs, checks one output of the type of input 0, ends. */
static inline void one_expect(one *o, nori_type type, int rank, const int64_t *dims,
                              const double *want)
{
    one_ok(o);
    one_shape(o, 0, type, rank, dims);
    one_near(o, 0, want, 1e-6);
    one_end(o);
}

static inline void one_fails(one *o, nori_status status, const char *text)
{
    assert_int_equal(one_run(o), status);
    if (!strstr(o->err.message, text)) {
        fail_msg("\"%s\" does not say \"%s\"", o->err.message, text);
    }
    one_end(o);
}

#endif
