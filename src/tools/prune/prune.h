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
} nori__pruner;

/* Whether the node is one that is pruned at all: Conv, ConvTranspose, Gemm, MatMul with a constant
 * float32 weight, and not excluded. */
bool nori__prune_weighted(const nori__pruner *p, const nori__node *n);

/* prune_zeros.c: magnitude and 2:4. prune_channels.c: channels of least weight leave the graph. */
nori_status nori__prune_zeros(nori__pruner *p);
nori_status nori__prune_channels(nori__pruner *p);

/* prune_report.c. Best effort: what does not fit in memory is missing. */
nori_prune_report *nori__prune_report_new(const nori_allocator *a);
/* reason: why it was left alone, or NULL. */
void nori__prune_report_node(nori__pruner *p, const nori__node *n, nori_prune_node row,
                             const char *reason);

#endif
