/* big_model.h: models of many nodes or many bytes, written as protobuf in linear time. Nodes go into
 * the graph as they are added; initializers, inputs and outputs too: their order does not matter.
 * Include after cmocka.h. */
#ifndef NORI_TESTS_BIG_MODEL_H
#define NORI_TESTS_BIG_MODEL_H

#include <stdio.h>
#include <stdlib.h>

#include "nori/nori.h"
#include "wire.h"

typedef struct big {
    nori__text graph;
    nori__text model; /* after big_finish */
} big;

static inline void big_begin(big *b)
{
    b->graph = wire_new();
    b->model = wire_new();
}

static inline void big_end(big *b)
{
    nori__text_free(&b->graph);
    nori__text_free(&b->model);
}

/* Attributes of the next node, gathered as its field 5. */
static inline void big_attr_int(nori__text *attrs, const char *name, int64_t value)
{
    nori__text a = wire_new();
    wire_str(&a, 1, name);
    wire_int(&a, 3, value);
    wire_int(&a, 20, 2);
    wire_sub(attrs, 5, &a);
}

/* body: nodes, inputs and outputs were added, big_finish was not called. */
static inline void big_attr_graph(nori__text *attrs, const char *name, const big *body)
{
    nori__text a = wire_new();
    wire_str(&a, 1, name);
    wire_bytes(&a, 6, body->graph.data, body->graph.size);
    wire_int(&a, 20, 5);
    wire_sub(attrs, 5, &a);
}

/* NodeProto: names separated by spaces. attrs: NULL, or what was gathered; taken over. */
static inline void big_node_with(big *b, const char *op, const char *inputs, const char *outputs,
                                 nori__text *attrs)
{
    nori__text n = wire_new();
    for (int side = 0; side < 2; side++) {
        for (const char *at = side ? outputs : inputs; *at;) {
            size_t size = strcspn(at, " ");
            wire_bytes(&n, side ? 2 : 1, at, size);
            at += size;
            at += *at == ' ';
        }
    }
    wire_str(&n, 4, op);
    if (attrs) {
        nori__text_add(&n, attrs->data, attrs->size);
        nori__text_free(attrs);
    }
    wire_sub(&b->graph, 1, &n);
}

static inline void big_node(big *b, const char *op, const char *inputs, const char *outputs)
{
    big_node_with(b, op, inputs, outputs, NULL);
}

/* ValueInfoProto; a dimension of -1 has the name N. number: 11 input, 12 output. */
static inline void big_value(big *b, uint32_t number, const char *name, nori_type type, int rank,
                             const int64_t *dims)
{
    nori__text shape = wire_new(), tensor = wire_new(), kind = wire_new(), value = wire_new();
    for (int d = 0; d < rank; d++) {
        nori__text dim = wire_new();
        if (dims[d] < 0) {
            wire_str(&dim, 2, "N");
        } else {
            wire_int(&dim, 1, dims[d]);
        }
        wire_sub(&shape, 1, &dim);
    }
    wire_int(&tensor, 1, type);
    wire_sub(&tensor, 2, &shape);
    wire_sub(&kind, 1, &tensor);
    wire_str(&value, 1, name);
    wire_sub(&value, 2, &kind);
    wire_sub(&b->graph, number, &value);
}

static inline void big_input(big *b, const char *name, nori_type type, int rank,
                             const int64_t *dims)
{
    big_value(b, 11, name, type, rank, dims);
}

static inline void big_output(big *b, const char *name, nori_type type, int rank,
                              const int64_t *dims)
{
    big_value(b, 12, name, type, rank, dims);
}

/* TensorProto with raw bytes; file not NULL: external data there, at offset. */
static inline void big_tensor(big *b, const char *name, nori_type type, int rank,
                              const int64_t *dims, const void *data, size_t size,
                              const char *file, uint64_t offset)
{
    nori__text t = wire_new();
    for (int d = 0; d < rank; d++) {
        wire_int(&t, 1, dims[d]);
    }
    wire_int(&t, 2, type);
    wire_str(&t, 8, name);
    if (file) {
        char number[2][32];
        snprintf(number[0], sizeof(number[0]), "%llu", (unsigned long long)offset);
        snprintf(number[1], sizeof(number[1]), "%zu", size);
        const char *const entry[3][2] = {
            {"location", file}, {"offset", number[0]}, {"length", number[1]}};
        for (size_t i = 0; i < 3; i++) {
            nori__text e = wire_new();
            wire_str(&e, 1, entry[i][0]);
            wire_str(&e, 2, entry[i][1]);
            wire_sub(&t, 13, &e);
        }
        wire_int(&t, 14, 1);
    } else {
        wire_list(&t, 9, (nori_type)type, data, size);
    }
    wire_sub(&b->graph, 5, &t);
}

static inline void big_finish(big *b, int64_t opset)
{
    nori__text set = wire_new();
    wire_int(&b->model, 1, 8);
    wire_int(&set, 2, opset);
    wire_sub(&b->model, 8, &set);
    wire_str(&b->graph, 2, "main");
    wire_bytes(&b->model, 7, b->graph.data, b->graph.size);
    assert_false(b->model.failed);
}

#endif
