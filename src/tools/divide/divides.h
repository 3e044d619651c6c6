/* divides.h: what the files of dividing share. */
#ifndef NORI_TOOLS_DIVIDE_DIVIDES_H
#define NORI_TOOLS_DIVIDE_DIVIDES_H

#include "graph/graph.h"
#include "nori/divide.h"

/* ---- flow.c: maximum flow and minimum cut ---- */

#define NORI__FLOW_ENDLESS ((int64_t)1 << 61) /* an edge that is never cut */
typedef struct nori__flow nori__flow;
/* edges: at most so many will be added. NULL: out of memory. */
nori__flow *nori__flow_new(size_t nodes, size_t edges);
void nori__flow_free(nori__flow *f);
void nori__flow_edge(nori__flow *f, size_t from, size_t to, int64_t capacity);
/* Afterwards nori__flow_far says of a node whether it is on the sink's side of the cut, which is the
 * one nearest to the sink: what may be on either side is on the source's. */
void nori__flow_run(nori__flow *f, size_t source, size_t sink);
bool nori__flow_far(const nori__flow *f, size_t node);

/* ---- divide_graph.c: the graph of a model as a problem ---- */

typedef struct nori__divide_value {
    const nori__value *v;
    size_t producer;      /* as in nori_divide_value */
    size_t *readers;
    size_t n_readers, capacity;
    uint64_t bytes, int8_bytes;
    bool output, seen;    /* seen: the run made it */
} nori__divide_value;

struct nori_divide {
    const nori_model *model;
    nori_session_options options;
    nori__arena arena;
    nori__node **nodes;        /* those that are placed, in order */
    size_t n_nodes;
    nori__divide_value *values;   /* what they read and make */
    size_t n_values;
    nori__map by_name;         /* of values: name to nori__divide_value */
    double *seconds[2];        /* of nodes, by side */
    unsigned char *cloud;      /* of nodes: the last cut told */
    const char **names;        /* of its values */
    nori_tensor **inputs, **outputs; /* of the run; as many as the session has */
    size_t n_in, n_out;
};

nori_status nori__divide_graph(nori_divide *c, nori_error *err);

#endif
