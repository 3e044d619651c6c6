/* op_harness.h: one operator in memory: infer, run the reference kernel, compare. Include after
 * cmocka.h.
 *
 *     op o;
 *     op_begin(&o, "", "Add", 14);
 *     op_in(&o, NORI_FLOAT, "2x3", (double[]){1, 2, 3, 4, 5, 6});
 *     op_in(&o, NORI_FLOAT, "", (double[]){10});
 *     op_expect(&o, 0, NORI_FLOAT, "2x3", (double[]){11, 12, 13, 14, 15, 16}, 0);
 *     op_end(&o);
 *
 * The first op_expect or op_status runs it. Inference is asked twice: with everything known, which
 * must give every output its shape unless the operator allocates itself, and with nothing known,
 * which must not fail. */
#ifndef NORI_TESTS_OP_HARNESS_H
#define NORI_TESTS_OP_HARNESS_H

#include <math.h>
#include <stdio.h>

#include "ops/op.h"
#include "record.h"

enum { OP_MOST = 16 };

typedef struct op {
    nori__node node;
    nori__attr attrs[OP_MOST];
    nori__value values[2 * OP_MOST];
    nori__value *wired[OP_MOST], *made[OP_MOST];
    nori_tensor *in[OP_MOST], *out[OP_MOST];
    nori_error err;
    nori_status status;
    bool ran;
    nori__pool *pool; /* NULL: one thread */
} op;

static inline void op_begin(op *o, const char *domain, const char *name, int version)
{
    memset(o, 0, sizeof(*o));
    o->node.name = "";
    o->node.op_type = name;
    o->node.domain = domain;
    o->node.overload = "";
    o->node.version = version;
    o->node.op = nori__op_find(domain, name);
    assert_non_null(o->node.op);
    assert_non_null(o->node.op->reference);
    o->node.attrs = o->attrs;
    o->node.inputs = o->wired;
    o->node.outputs = o->made;
    o->node.output_count = 1;
    o->made[0] = &o->values[OP_MOST];
}

/* "2x3" to dims; "" is rank 0. Returns the rank. */
static inline int op_shape(const char *text, int64_t *dims)
{
    int rank = 0;
    while (*text) {
        char *end;
        dims[rank++] = strtoll(text, &end, 10);
        text = *end == 'x' ? end + 1 : end;
    }
    return rank;
}

static inline nori_tensor *op_tensor(nori_type type, const char *shape, const double *v)
{
    int64_t dims[NORI_MAX_RANK] = {0};
    nori_tensor *t = NULL;
    int rank = op_shape(shape, dims);
    assert_int_equal(nori_tensor_create(NULL, type, rank, dims, &t, NULL), NORI_OK);
    for (int64_t i = 0; v && i < t->count; i++) {
        nori__tensor_set_f64(t, i, v[i]);
    }
    return t;
}

/* Takes the tensor; NULL: an absent optional input. */
static inline void op_give(op *o, nori_tensor *t)
{
    uint32_t i = o->node.input_count++;
    assert_true(i < OP_MOST);
    o->in[i] = t;
    o->wired[i] = t ? &o->values[i] : NULL;
}
static inline void op_in(op *o, nori_type type, const char *shape, const double *v)
{
    op_give(o, op_tensor(type, shape, v));
}
/* count strings of a shape. */
static inline void op_in_text(op *o, const char *shape, const char *const *v)
{
    nori_tensor *t = op_tensor(NORI_STRING, shape, NULL);
    for (int64_t i = 0; i < t->count; i++) {
        assert_int_equal(nori__tensor_set_string(t, i, v[i], strlen(v[i]), NULL), NORI_OK);
    }
    op_give(o, t);
}
static inline void op_outputs(op *o, uint32_t n)
{
    o->node.output_count = n;
    for (uint32_t i = 0; i < n; i++) {
        o->made[i] = &o->values[OP_MOST + i];
    }
}

static inline nori__attr *op_attr(op *o, const char *name, nori__pb_attr_kind kind)
{
    nori__attr *a = &o->attrs[o->node.attr_count++];
    assert_true(o->node.attr_count <= OP_MOST);
    a->name = name;
    a->kind = kind;
    return a;
}
static inline void op_int(op *o, const char *name, int64_t v)
{
    op_attr(o, name, NORI__ATTR_INT)->v.i = v;
}
static inline void op_float(op *o, const char *name, float v)
{
    op_attr(o, name, NORI__ATTR_FLOAT)->v.f = v;
}
static inline void op_text(op *o, const char *name, const char *v)
{
    nori__attr *a = op_attr(o, name, NORI__ATTR_STRING);
    a->v.s = v;
    a->count = strlen(v);
}
static inline void op_ints(op *o, const char *name, const int64_t *v, size_t n)
{
    nori__attr *a = op_attr(o, name, NORI__ATTR_INTS);
    a->v.ints = v;
    a->count = n;
}
static inline void op_floats(op *o, const char *name, const float *v, size_t n)
{
    nori__attr *a = op_attr(o, name, NORI__ATTR_FLOATS);
    a->v.floats = v;
    a->count = n;
}
static inline void op_texts(op *o, const char *name, const nori__str *v, size_t n)
{
    nori__attr *a = op_attr(o, name, NORI__ATTR_STRINGS);
    a->v.strings = v;
    a->count = n;
}

/* ---- running ---- */

static inline nori_status op__alloc(nori_call *call, uint32_t i, nori_type type, int rank,
                                    const int64_t *dims, nori_tensor **tensor)
{
    op *o = call->run;
    NORI__TRY(nori__tensor_new(&nori__malloc, type, rank, dims, &o->out[i], call->err));
    *tensor = o->out[i];
    return NORI_OK;
}
static inline nori_status op__set(nori_call *call, uint32_t i, nori_tensor *tensor)
{
    op *o = call->run;
    o->out[i] = nori_tensor_retain(tensor);
    return NORI_OK;
}

static inline void op__shapes(op *o, bool known, nori__shape *s)
{
    for (uint32_t i = 0; i < 2 * OP_MOST; i++) {
        memset(&s[i], 0, sizeof(s[i]));
        s[i].rank = -1;
        s[i].data_count = -1;
        if (i < OP_MOST && known && o->in[i]) {
            s[i].kind = o->in[i]->kind;
            s[i].elem = o->in[i]->type;
            s[i].rank = (int8_t)o->in[i]->rank;
            s[i].tensor = o->in[i];
            for (int d = 0; d < o->in[i]->rank; d++) {
                s[i].dims[d] = nori__dim_of(o->in[i]->dims[d]);
            }
        }
    }
}

static inline nori_status op__go(op *o)
{
    static nori__shape s[2 * OP_MOST];
    nori__arena arena;
    nori__arena_init(&arena, &nori__malloc);
    nori__infer c = {.node = &o->node, .in = s, .out = s + OP_MOST, .arena = &arena,
                     .err = &o->err};
    op__shapes(o, false, s);
    assert_int_equal(o->node.op->infer(&c), NORI_OK);
    op__shapes(o, true, s);
    nori_status status = o->node.op->infer(&c);
    bool own = (o->node.op->flags & NORI__OP_SELF_ALLOC) != 0;
    for (uint32_t i = 0; status == NORI_OK && !own && i < o->node.output_count; i++) {
        const nori__shape *out = &c.out[i];
        int64_t dims[NORI_MAX_RANK];
        if (!o->made[i]) {
            continue;
        }
        assert_int_equal(out->kind, NORI_KIND_TENSOR);
        assert_int_not_equal(out->elem, NORI_UNDEFINED);
        assert_true(out->rank >= 0);
        for (int d = 0; d < out->rank; d++) {
            dims[d] = out->dims[d].value;
            assert_true(dims[d] >= 0);
        }
        status = nori__tensor_new(&nori__malloc, out->elem, out->rank, dims, &o->out[i], &o->err);
        if (status == NORI_OK && out->elem != NORI_STRING && o->out[i]->bytes > 0) {
            memset(o->out[i]->data, 0xa5, o->out[i]->bytes); /* kernels may not count on zeros */
        }
    }
    if (status == NORI_OK) {
        nori__exec exec = {op__alloc, op__set, NULL};
        nori_call call = {.node = &o->node, .n_in = o->node.input_count,
                          .n_out = o->node.output_count,
                          .in = (const nori_tensor *const *)o->in, .out = o->out, .exec = &exec,
                          .allocator = &nori__malloc, .pool = o->pool,
                          .threads = o->pool ? nori__pool_threads(o->pool) : 1, .err = &o->err,
                          .run = o};
        status = o->node.op->reference(&call);
    }
    nori__arena_free(&arena);
    return status;
}

/* Runs it, once. */
static inline nori_status op_status(op *o)
{
    if (!o->ran) {
        o->ran = true;
        o->status = op__go(o);
        if (o->status == NORI_OK) {
            record_operator(o->node.domain, o->node.op_type, o->node.version);
        }
        assert_int_equal(o->status, o->err.status);
    }
    return o->status;
}

static inline nori_tensor *op_out(op *o, uint32_t i, nori_type type, const char *shape)
{
    int64_t dims[NORI_MAX_RANK];
    int rank = op_shape(shape, dims);
    if (op_status(o) != NORI_OK) {
        print_error("%s: %s\n", o->node.op_type, o->err.message);
    }
    assert_int_equal(o->status, NORI_OK);
    assert_non_null(o->out[i]);
    assert_int_equal(o->out[i]->type, type);
    assert_int_equal(o->out[i]->rank, rank);
    for (int d = 0; d < rank; d++) {
        assert_int_equal(o->out[i]->dims[d], dims[d]);
    }
    return o->out[i];
}

/* Type, shape and |got - want| <= tolerance * max(1, |want|); NaN only equals NaN, and the sign of
 * zero counts when the tolerance is 0. */
static inline void op_expect(op *o, uint32_t i, nori_type type, const char *shape, const double *v,
                             double tolerance)
{
    const nori_tensor *t = op_out(o, i, type, shape);
    for (int64_t k = 0; k < t->count; k++) {
        double got = nori__tensor_get_f64(t, k), want = v[k];
        bool same = isnan(want) ? isnan(got)
                    : isinf(want) || isinf(got)
                        ? got == want
                        : fabs(got - want) <= tolerance * fmax(1, fabs(want));
        if (tolerance == 0 && want == 0 && nori__type_is_float(type)) {
            same = same && !signbit(got) == !signbit(want);
        }
        if (!same) {
            print_error("%s: element %lld is %.9g, expected %.9g\n", o->node.op_type,
                        (long long)k, got, want);
        }
        assert_true(same);
    }
}
static inline void op_expect_text(op *o, uint32_t i, const char *shape, const char *const *v)
{
    const nori_tensor *t = op_out(o, i, NORI_STRING, shape);
    for (int64_t k = 0; k < t->count; k++) {
        const nori_string *s = (const nori_string *)t->data + k;
        assert_int_equal(s->size, strlen(v[k]));
        assert_memory_equal(s->data ? s->data : "", v[k], s->size);
    }
}

static inline void op_end(op *o)
{
    for (int i = 0; i < OP_MOST; i++) {
        nori_tensor_free(o->in[i]);
        nori_tensor_free(o->out[i]);
    }
}

#endif
