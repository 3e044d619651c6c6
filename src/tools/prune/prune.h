/* prune.h: the parts of pruning: weights that become zero, and channels that go. */
#ifndef NORI_TOOLS_PRUNE_PRUNE_H
#define NORI_TOOLS_PRUNE_PRUNE_H

#include "graph/graph.h"
#include "nori/tools.h"

struct nori_prune_report {
    const nori_allocator *allocator;
    nori__arena arena;
    nori__vec nodes; /* nori_prune_node * */
    nori_prune_summary summary;
};

typedef struct nori__pruner {
    const nori_prune_options *options;
    const nori_model *model;
    const nori_allocator *allocator;
    nori__ir *ir; /* the copy that becomes the result */
    nori__arena arena;
    nori_prune_report *report;
    nori_error *err;
    /* prune_group.c: nodes that read a value, and in which group a value or node was met last; by id. */
    nori__node **readers;
    uint32_t *reader_first, *value_marks, *node_marks;
    uint32_t groups; /* so far */
} nori__pruner;

/* Whether the node is one that is pruned at all: Conv, ConvTranspose, Gemm, MatMul with a constant
 * float32 weight, and not excluded. */
bool nori__prune_weighted(const nori__pruner *p, const nori__node *n);

/* prune_zeros.c: magnitude and 2:4. prune_channels.c: channels of least weight leave the graph. */
nori_status nori__prune_zeros(nori__pruner *p);
nori_status nori__prune_channels(nori__pruner *p);

/* ---- prune_group.c: what has the same channels as a layer's result ---- */

/* A constant that loses entries: channel c is the stretch [c * stretch, (c + 1) * stretch). */
typedef struct nori__prune_cut {
    nori__node *node;
    uint32_t input;
    int axis;
    int64_t stretch;
} nori__prune_cut;

typedef struct nori__prune_group {
    nori__pruner *p;
    int64_t channels;
    int rank;           /* of the values; the channels are axis 1 */
    uint32_t number;
    bool fits;          /* else why says what stands in the way */
    bool no_memory;
    nori__arena room;
    nori__vec cuts;     /* nori__prune_cut * */
    nori__vec layers;   /* nori__node *: those that make the channels */
    nori__vec grouped;  /* nori__node *: depthwise convolutions, whose group shrinks too */
    nori__vec values;
    char why[384];
} nori__prune_group;

nori_status nori__prune_index(nori__pruner *p); /* before the first group is looked for */
nori_status nori__prune_group_find(nori__pruner *p, nori__node *layer, nori__prune_group *group);
void nori__prune_group_free(nori__prune_group *group);
/* Why a weighted node cannot lose channels of its own, or NULL; axis of its weight that holds them. */
const char *nori__prune_unfit(const nori__node *n);
int nori__prune_out_axis(const nori__node *n);

/* prune_report.c. Best effort: what does not fit in memory is missing. */
nori_prune_report *nori__prune_report_new(const nori_allocator *a);
/* reason: why it was left alone, or NULL. */
void nori__prune_report_node(nori__pruner *p, const nori__node *n, nori_prune_node row,
                             const char *reason);

#endif
