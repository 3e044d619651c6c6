/* ref_tree.h: tree ensembles in one form, whichever attributes they came in. */
#ifndef NORI_PROVIDERS_REFERENCE_REF_TREE_H
#define NORI_PROVIDERS_REFERENCE_REF_TREE_H

#include "providers/reference/ref_ml.h"

typedef enum nori__tree_mode {
    NORI__TREE_LEQ,
    NORI__TREE_LT,
    NORI__TREE_GTE,
    NORI__TREE_GT,
    NORI__TREE_EQ,
    NORI__TREE_NEQ,
    NORI__TREE_MEMBER,
    NORI__TREE_LEAF
} nori__tree_mode;

typedef struct nori__tree_node {
    uint8_t mode;
    bool missing_true; /* where NaN goes */
    int64_t feature;
    double value;        /* threshold; MEMBER: unused */
    int64_t yes, no;     /* nodes; LEAF: votes [yes, no) */
    int64_t first, last; /* MEMBER: entries of members */
} nori__tree_node;

typedef struct nori__vote {
    int64_t target;
    double weight;
} nori__vote;

typedef struct nori__forest {
    nori__arena arena;
    nori__tree_node *nodes;
    int64_t n_nodes;
    int64_t *roots;
    int64_t n_roots;
    nori__vote *votes;
    int64_t n_votes;
    const nori_tensor *members;
    int64_t n_targets;
    bool all_positive; /* no vote is negative */
    int64_t only;      /* the one target of all votes, or -1 */
} nori__forest;

/* Reads and checks the attributes of any of the three operators: every index is in range
 * afterwards (cycles are found while walking). The arena must be freed whatever is returned. */
nori_status nori__forest_load(const nori_call *call, const char *votes, int64_t n_targets,
                              nori__forest *f);
nori_status nori__forest_load_new(const nori_call *call, int64_t n_targets, nori__forest *f);
/* The leaf that a row ends in. */
nori_status nori__forest_walk(const nori_call *call, const nori__forest *f, const nori__rows *x,
                              int64_t row, int64_t root, const nori__tree_node **leaf);

/* The three operators in two steps, so that a provider may read the attributes once: the forest of a
 * node, whose arena must be freed whatever is returned, and one run with it. */
nori_status nori__tree_read(const nori_call *call, nori__forest *f);
nori_status nori__tree_run(nori_call *call, const nori__forest *f);

#endif
