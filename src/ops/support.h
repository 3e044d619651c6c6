/* support.h: which nodes of a graph cannot run, and why: asked by sessions before they compile and
 * by the checker. Works at the file's own opset, on the graph as built. */
#ifndef NORI_OPS_SUPPORT_H
#define NORI_OPS_SUPPORT_H

#include "ops/resolve.h"
#include "ops/schema.h"

typedef enum nori__gap_kind {
    NORI__GAP_OPERATOR, /* no such operator in a domain we know */
    NORI__GAP_OPSET,    /* exists, but only from a later opset than the file imports */
    NORI__GAP_DOMAIN,   /* the domain is not known */
    NORI__GAP_IMPORT,   /* the domain is used without an opset import */
    NORI__GAP_NEWER,    /* the opset is newer than we know, so the operator's meaning is not */
    NORI__GAP_KERNEL    /* known, but nothing runs it */
} nori__gap_kind;

/* One operator that cannot run, however many nodes use it. */
typedef struct nori__gap {
    nori__gap_kind kind;
    const char *domain, *op_type; /* "" for ai.onnx */
    int64_t opset;                /* imported; 0: not imported */
    int since;                    /* OPSET: the version that brings it; KERNEL: the one in force */
    size_t count;                 /* nodes, subgraphs and function bodies included */
    const char *path;             /* of the first */
    const char *hint;             /* what to do, or NULL */
} nori__gap;

/* Says for a node of a known operator whether something runs it. */
typedef bool (*nori__can_run_fn)(void *user, const nori__node *node);

/* Appends a nori__gap * (in the arena) for each operator that cannot run, in the order of first
 * use. can_run NULL: an operator runs when the list names a reference kernel. Nodes that call a
 * function of the model are judged by the body. Only MEMORY errors. */
nori_status nori__gaps_find(const nori__ir *ir, nori__can_run_fn can_run, void *user,
                            nori__arena *arena, nori__vec *gaps, nori_error *err);
/* One line about a gap, without count and path: "RMSNorm, default domain, opset 10: no such
 * operator". In the arena; NULL when out of memory. */
const char *nori__gap_text(nori__arena *arena, const nori__gap *gap);
/* "IR version 8, opsets: ai.onnx 17 (newest known 28), ai.onnx.ml 99 (newest known 5)". gaps: the default
 * domain's and theirs alone; NULL: all, which can be many. */
const char *nori__imports_text(nori__arena *arena, const nori__ir *ir, const nori__vec *gaps);

/* nori__require_supported (resolve.h) with a question of the caller's own. The UNSUPPORTED error
 * lists every operator that cannot run, each once, with domain, opset, number of nodes and path of
 * the first. */
nori_status nori__require_runnable(const nori__ir *ir, nori__can_run_fn can_run, void *user,
                                   nori_error *err);

/* The operator a writer of an unknown name may have meant, or NULL; near.c. */
const nori__schema *nori__near_operator(const char *name);

#endif
