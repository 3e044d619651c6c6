/* partition.h: the split of a graph over execution providers, by cost.
 *
 * Each provider of parts, in the order of preference, bids for the nodes nobody before it has.
 * What it takes is gathered into islands that can run as one (no path leaves an island and comes
 * back), as few as the graph allows; an island is given away when it wins more than its copies
 * and its launch cost. Costs are estimates: what nori would take on its own is told from
 * multiply-accumulates and bytes, the rest by the provider. */
#ifndef NORI_PLAN_PARTITION_H
#define NORI_PLAN_PARTITION_H

#include "ops/op.h"

typedef struct nori__bidder {
    const nori_provider *provider;
    void *self;
    const char *label;
    const nori_provider_info *info;
} nori__bidder;

typedef struct nori__island {
    uint32_t bidder;
    uint32_t index;     /* in the split's list */
    uint32_t n_nodes;
    nori__node **nodes; /* in order of execution */
    double base_ns;     /* what nori would take on its own */
    double cost_ns, copy_ns, launch_ns; /* what the provider takes */
    uint64_t in_bytes, out_bytes;
    uint32_t n_in, n_out; /* tensors copied */
    bool whole;           /* the model as its file has it: nothing was weighed */
    bool given;
    const char *why; /* not given: the reason; else "" */
} nori__island;

/* A node that lies between islands of one provider and keeps them from being one. */
typedef struct nori__splitter {
    const nori__node *node;
    uint32_t bidder;
    const nori__island *before, *after;
    const char *reason; /* why the provider does not have it */
    const char *advice; /* what would join the islands */
} nori__splitter;

typedef struct nori__split {
    nori__vec islands;   /* nori__island *, by provider, then in order of execution */
    nori__vec splitters; /* nori__splitter * */
} nori__split;

/* Adds to split, whose vectors the caller has made; all else lives in arena. Types must have been
 * inferred. */
nori_status nori__partition(nori__arena *arena, nori__ir *ir, const nori__bidder *bidders,
                            size_t count, nori__split *split, nori_error *err);
void nori__split_free(nori__split *split);

/* cost.c: nanoseconds one run of a node takes on a plain CPU, give or take a factor of three; sizes
 * not known count as 1. And the bytes of a value, likewise. */
double nori__cost_ns(const nori__node *node);
uint64_t nori__cost_bytes(const nori__value *v);

/* ---- what the files of the split share ---- */

typedef struct nori__bid {
    bool taken;
    double cost_ns;
    const char *reason; /* not taken */
} nori__bid;

/* The main graph as numbers: nodes by position in its order. */
typedef struct nori__board {
    nori__arena *arena;
    nori__ir *ir;
    uint32_t n;
    nori__node **nodes;
    uint32_t *pos;                /* by node id */
    uint32_t *begin, *next;       /* next[begin[i] .. begin[i + 1]): who reads what node i makes */
    uint32_t *root, *ring, *size; /* sets of nodes: union by root, members in a ring */
    uint32_t *low, *high;         /* waves of a set, by root */
    bool *candidate;              /* of the provider now bidding */
    uint8_t *owner;               /* 0: free, else bidder + 1 */
    nori__bid *bids;              /* of the provider now bidding */
    uint32_t *stamp;              /* scratch by position */
    uint32_t *value_stamp;        /* scratch by value id */
    uint32_t *queue;
    uint32_t mark;
} nori__board;

/* partition_groups.c */
nori_status nori__board_make(nori__arena *arena, nori__ir *ir, nori__board *b, nori_error *err);
uint32_t nori__board_root(nori__board *b, uint32_t node);
void nori__board_join(nori__board *b, uint32_t a, uint32_t c);
/* Joins candidates into as few sets as can each run as one. */
void nori__board_group(nori__board *b);

/* partition_report.c: who splits the islands of a bidder; before commitment. island_of: by position
 * of a set's root. */
nori_status nori__find_splitters(nori__board *b, const nori__bidder *bidder, uint32_t index,
                                 nori__island *const *island_of, nori__split *split,
                                 nori_error *err);

#endif
