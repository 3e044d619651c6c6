/* internal.h: what the files of graph/ share. */
#ifndef NORI_GRAPH_INTERNAL_H
#define NORI_GRAPH_INTERNAL_H

#include <stdatomic.h>

#include "graph/graph.h"

/* ---- ir.c, edit.c ---- */

/* older: what is shared of the ir it will be a copy of, or NULL. */
nori__ir *nori__ir_new(const nori_allocator *a, nori__shared *older);
/* Behind all graphs that hang below the same outermost one; without parent: outermost itself, the
 * caller says what for. */
nori__graph *nori__graph_new(nori__ir *ir, nori__graph *parent, nori__node *parent_node);
static inline nori__graph *nori__outermost(nori__graph *g)
{
    while (g->parent) {
        g = g->parent;
    }
    return g;
}
/* What an ir holds for its copies too, which keep it alive. */
struct nori__shared {
    atomic_int refs;
    const nori_allocator *allocator;
    nori__arena arena;   /* text */
    nori__vec tensors;   /* one reference to each */
    uint64_t tensor_bytes; /* of their data, and of what was in older when this was made */
    nori__shared *older; /* of the graph that this one's was copied from */
};
nori__shared *nori__shared_new(const nori_allocator *a, nori__shared *older);
void nori__shared_release(nori__shared *shared);
/* A node not yet linked, with arrays for its lists in one piece of memory; counts stay 0. */
nori__node *nori__node_make(nori__ir *ir, size_t n_in, size_t n_out, size_t n_attr);
/* Adds a value without looking whether the name is taken; name must be the ir's text. */
nori__value *nori__value_add(nori__graph *g, const char *name);
/* The same, without entering it in the table of names. */
nori__value *nori__value_make(nori__graph *g, const char *name);
/* Links node into g before `before`, or at the end. */
void nori__node_link(nori__graph *g, nori__node *before, nori__node *node);
/* The ancestor of node, or itself, that lies in graph outer; NULL: none. */
static inline nori__node *nori__node_in(nori__node *node, const nori__graph *outer)
{
    while (node && node->graph != outer) {
        node = node->graph->parent_node;
    }
    return node;
}

/* ---- tensor.c ---- */

/* As nori__tensor_new, but the data of a small one lie behind its header, aligned to 16 only. */
nori_status nori__tensor_new_near(const nori_allocator *a, nori_type type, int rank,
                                  const int64_t *dims, nori_tensor **tensor, nori_error *err);
/* A tensor over bytes that belong to the file and outlive it. */
nori_status nori__tensor_view(const nori_allocator *a, nori_type type, int rank,
                              const int64_t *dims, const void *data, nori_tensor **tensor,
                              nori_error *err);

/* ---- build_attr.c ---- */

typedef struct nori__builder {
    nori__ir *ir;
    nori_error *err;
    bool function;     /* attributes may refer to those of a function */
    bool unsorted;     /* some node stands before what makes one of its inputs */
    size_t near;       /* of names: see nori__map_get_near */
    nori__vec waiting; /* nodes of the graph at hand that are not complete */
    const char *common[64]; /* text that came before, by a hash of it */
} nori__builder;
nori_status nori__text_from_pb(nori__builder *b, nori__str s, const char *what, const char **text);
nori_status nori__type_from_pb(nori__builder *b, const nori__pb_type *pb, nori__type *type);
/* node NULL: no graphs allowed. Graphs are only created here; the builder's loop fills them. */
nori_status nori__attr_from_pb(nori__builder *b, nori__node *node, const nori__pb_attr *pb,
                               nori__attr *attr);
/* Sparse tensors are made dense at once: kernels see ordinary ones. */
nori_status nori__sparse_from_pb(const nori__ir *ir, const nori__pb_sparse *pb,
                                 nori_tensor **tensor, nori_error *err);

/* ---- to_pb.c, to_pb_item.c ---- */

typedef struct nori__packer {
    const nori__ir *ir;
    nori__arena *arena;
    bool *done; /* by value id: initializers that are written already */
    bool outside; /* data in other files stays there */
    bool ok;    /* false: out of memory */
} nori__packer;
/* A zeroed array with one entry to spare; NULL only when ok is false. */
void *nori__pack_room(nori__packer *p, size_t count, size_t size);
/* A declaration: the file's own where there is one, else what is known of the value. */
void nori__value_to_pb(nori__packer *p, const nori__value *v, nori__pb_value *pb);
void nori__declare_to_pb(nori__packer *p, const nori__value *v, const nori__type *type,
                         nori__pb_value *pb);
void nori__tensor_to_pb(nori__packer *p, const nori_tensor *t, nori__str name,
                        nori__pb_tensor *pb);
/* The message a tensor came from, whose content is still the tensor's. */
void nori__tensor_again(nori__packer *p, const nori__pb_tensor *from, const nori_tensor *t,
                        nori__pb_tensor *pb);
void nori__attr_to_pb(nori__packer *p, const nori__attr *a, nori__pb_attr *pb);
void nori__node_to_pb(nori__packer *p, const nori__node *n, nori__pb_node *pb);
nori__pb_graph *nori__graph_to_pb(nori__packer *p, const nori__graph *g); /* NULL: see ok */

/* ---- order.c ---- */

/* Brings the nodes of each graph of the list into topological order; their ids are [low, high). */
nori_status nori__graphs_order(nori__graph *first, const nori_allocator *a, uint32_t low,
                               uint32_t high, nori_error *err);

#endif
