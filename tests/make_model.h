/* make_model.h: models as messages in memory, for tests of what stands on the graph. Everything
 * lives in one arena; running out of memory fails the test. Include after cmocka.h. */
#ifndef NORI_TESTS_MAKE_MODEL_H
#define NORI_TESTS_MAKE_MODEL_H

#include "graph/graph.h"

typedef struct make {
    nori__arena arena;
    nori__pb_model model;
    nori__pb_graph graph; /* the main one */
} make;

static inline void *make_room(make *m, void *items, size_t count, size_t size)
{
    char *grown = nori__arena_array(&m->arena, count + 1, size);
    assert_non_null(grown);
    if (count > 0) {
        memcpy(grown, items, count * size);
    }
    return grown;
}
/* A zeroed entry more at the end of a message list; a pointer to it. Earlier pointers die. */
#define MAKE_ADD(m, list)                                                                  \
    ((list).items = make_room((m), (list).items, (list).count, sizeof(*(list).items)), \
     &(list).items[(list).count++])

static inline nori__str make_str(make *m, const char *text)
{
    char *copy = nori__arena_text(&m->arena, text);
    assert_non_null(copy);
    return (nori__str){copy, strlen(copy)};
}

static inline void make_begin(make *m, int64_t opset)
{
    memset(m, 0, sizeof(*m));
    nori__arena_init(&m->arena, &nori__malloc);
    m->model.ir_version = 8;
    m->model.graph = &m->graph;
    m->graph.name = make_str(m, "main");
    if (opset > 0) {
        MAKE_ADD(m, m->model.opsets)->version = opset;
    }
}

static inline void make_end(make *m)
{
    nori__arena_free(&m->arena);
}

static inline void make_import(make *m, const char *domain, int64_t version)
{
    nori__pb_opset *o = MAKE_ADD(m, m->model.opsets);
    o->domain = make_str(m, domain);
    o->version = version;
}

/* shape: "N 3 ?" or "" for rank 0, NULL for an unknown rank. */
static inline void make_value(make *m, nori__pb_value *v, const char *name, nori_type type,
                              const char *shape)
{
    v->name = make_str(m, name);
    v->type = nori__arena_alloc(&m->arena, sizeof(*v->type));
    assert_non_null(v->type);
    v->type->kind = NORI_KIND_TENSOR;
    v->type->elem = type;
    if (!shape) {
        return;
    }
    v->type->shape = nori__arena_alloc(&m->arena, sizeof(*v->type->shape));
    assert_non_null(v->type->shape);
    while (*shape) {
        size_t n = strcspn(shape, " ");
        nori__pb_dim *d = MAKE_ADD(m, v->type->shape->dims);
        if (*shape >= '0' && *shape <= '9') {
            d->has_value = true;
            for (size_t i = 0; i < n; i++) {
                d->value = d->value * 10 + (shape[i] - '0');
            }
        } else if (*shape != '?') {
            d->has_param = true;
            d->param = (nori__str){nori__arena_copy(&m->arena, shape, n), n};
        }
        shape += n;
        shape += *shape == ' ';
    }
}

static inline void make_input(make *m, nori__pb_graph *g, const char *name, nori_type type,
                              const char *shape)
{
    make_value(m, MAKE_ADD(m, g->inputs), name, type, shape);
}

static inline void make_output(make *m, nori__pb_graph *g, const char *name, nori_type type,
                               const char *shape)
{
    make_value(m, MAKE_ADD(m, g->outputs), name, type, shape);
}

/* A 1-D int64 initializer. */
static inline void make_ints(make *m, nori__pb_graph *g, const char *name, size_t count,
                             const int64_t *values)
{
    nori__pb_tensor *t = MAKE_ADD(m, g->initializers);
    t->name = make_str(m, name);
    t->data_type = NORI_INT64;
    *MAKE_ADD(m, t->dims) = (int64_t)count;
    for (size_t i = 0; i < count; i++) {
        *MAKE_ADD(m, t->ints) = values[i];
    }
}

/* A float initializer of zeros, rank 1 or 2 (columns 0: rank 1). */
static inline void make_floats(make *m, nori__pb_graph *g, const char *name, int64_t rows,
                               int64_t columns)
{
    nori__pb_tensor *t = MAKE_ADD(m, g->initializers);
    t->name = make_str(m, name);
    t->data_type = NORI_FLOAT;
    *MAKE_ADD(m, t->dims) = rows;
    if (columns > 0) {
        *MAKE_ADD(m, t->dims) = columns;
    }
    for (int64_t i = 0; i < rows * (columns > 0 ? columns : 1); i++) {
        *MAKE_ADD(m, t->floats) = 0;
    }
}

/* A float initializer with content; shape as "2 3". */
static inline void make_weights(make *m, nori__pb_graph *g, const char *name, const char *shape,
                                const float *values)
{
    nori__pb_tensor *t = MAKE_ADD(m, g->initializers);
    int64_t count = 1;
    t->name = make_str(m, name);
    t->data_type = NORI_FLOAT;
    for (const char *at = shape; *at; at += strcspn(at, " "), at += *at == ' ') {
        int64_t size = 0;
        for (const char *c = at; *c >= '0' && *c <= '9'; c++) {
            size = size * 10 + (*c - '0');
        }
        *MAKE_ADD(m, t->dims) = size;
        count *= size;
    }
    float *kept = nori__arena_array(&m->arena, (size_t)count + 1, sizeof(*kept));
    assert_non_null(kept); /* at once: by MAKE_ADD large ones would take the square of their size */
    memcpy(kept, values, (size_t)count * sizeof(*kept));
    t->floats.items = kept;
    t->floats.count = (size_t)count;
}

/* Names separated by spaces; "-" is an empty name. */
#define MAKE_NAMES(m, list, names)                                                \
    for (const char *at = (names); *at; at += strcspn(at, " "), at += *at == ' ') { \
        size_t size = strcspn(at, " ");                                             \
        *MAKE_ADD(m, list) = size == 1 && *at == '-'                                \
                                 ? (nori__str){NULL, 0}                             \
                                 : (nori__str){nori__arena_copy(&(m)->arena, at, size), size}; \
    }

/* The pointer is good until the graph gets another node. */
static inline nori__pb_node *make_node(make *m, nori__pb_graph *g, const char *domain,
                                       const char *op_type, const char *name, const char *inputs,
                                       const char *outputs)
{
    nori__pb_node *n = MAKE_ADD(m, g->nodes);
    n->domain = make_str(m, domain);
    n->op_type = make_str(m, op_type);
    n->name = make_str(m, name);
    MAKE_NAMES(m, n->inputs, inputs)
    MAKE_NAMES(m, n->outputs, outputs)
    return n;
}

static inline nori__pb_attr *make_attr(make *m, nori__pb_node *n, const char *name,
                                       nori__pb_attr_kind kind)
{
    nori__pb_attr *a = MAKE_ADD(m, n->attrs);
    a->name = make_str(m, name);
    a->kind = kind;
    return a;
}

static inline void make_attr_int(make *m, nori__pb_node *n, const char *name, int64_t value)
{
    make_attr(m, n, name, NORI__ATTR_INT)->i = value;
}

static inline void make_attr_ints(make *m, nori__pb_node *n, const char *name, size_t count,
                                  const int64_t *values)
{
    nori__pb_attr *a = make_attr(m, n, name, NORI__ATTR_INTS);
    for (size_t i = 0; i < count; i++) {
        *MAKE_ADD(m, a->ints) = values[i];
    }
}

static inline void make_attr_text(make *m, nori__pb_node *n, const char *name, const char *value)
{
    make_attr(m, n, name, NORI__ATTR_STRING)->s = make_str(m, value);
}

static inline nori__pb_graph *make_attr_graph(make *m, nori__pb_node *n, const char *name)
{
    nori__pb_graph *g = nori__arena_alloc(&m->arena, sizeof(*g));
    assert_non_null(g);
    g->name = make_str(m, name);
    make_attr(m, n, name, NORI__ATTR_GRAPH)->g = g;
    return g;
}

static inline nori__ir *make_ir(make *m)
{
    nori__ir *ir = NULL;
    nori_error err = {0};
    nori_status status = nori__ir_build(&nori__malloc, &m->model, NULL, &ir, &err);
    if (status != NORI_OK) {
        print_error("%s: %s\n", err.where, err.message);
    }
    assert_int_equal(status, NORI_OK);
    return ir;
}

#endif
