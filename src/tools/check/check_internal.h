/* check_internal.h: the parts of the checker. A check is one walk over a copy of the graph in
 * order of execution: each node is held against the facts, then its outputs' types are inferred
 * for the nodes behind it. Rules that look at the whole graph follow. */
#ifndef NORI_TOOLS_CHECK_INTERNAL_H
#define NORI_TOOLS_CHECK_INTERNAL_H

#include "nori/tools.h"
#include "ops/custom.h"

/* ---- findings (findings.c) ---- */

struct nori_findings {
    const nori_allocator *allocator;
    nori__arena arena;
    nori__map seen; /* severity, rule and message -> entry */
    nori__vec entries;
    nori_finding *sorted; /* after nori__findings_close */
    size_t count;
    size_t said; /* calls, repeats included */
    bool strict, failed;
    bool faulty; /* an error is among them, "target" ones aside */
};

nori_findings *nori__findings_open(const nori_allocator *a, bool strict); /* NULL: no memory */
/* Adds a finding; one with the same rule and message is counted instead, so that a fault of two
 * hundred nodes is said once. path and hint are copied and may be NULL. */
void nori__found(nori_findings *f, nori_severity severity, const char *rule, const char *path,
                 const char *hint, const char *fmt, ...) NORI__PRINTF(6, 7);
void nori__found_at(nori_findings *f, nori_severity severity, const char *rule,
                    const nori__node *node, const char *hint, const char *fmt, ...)
    NORI__PRINTF(6, 7);
/* Sorts by severity, errors first, else in the order found. */
nori_status nori__findings_close(nori_findings *f, nori_error *err);

/* ---- rules ---- */

/* check_facts.c: arity and attributes of one node against its schema. False: an error was
 * found. */
bool nori__check_facts(nori_findings *f, const nori__node *node, const nori__schema *schema);

/* check_types.c: element types of inputs (and of outputs that declare one) against the schema.
 * known[i] gets the type bound to output i, kind UNKNOWN where the facts do not say. False: an
 * error was found. */
bool nori__check_types(nori_findings *f, const nori__node *node, const nori__schema *schema,
                       nori__type *known);

/* check_shapes.c: runs the operator's inference where it fits the node's version (and the node is
 * good) and writes what is learned, or at least known, into the output values of the copy. */
nori_status nori__check_shapes(nori_findings *f, nori__node *node, const nori__schema *schema,
                               const nori__type *known, bool good, nori_error *err);
/* Types of a subgraph's inputs, as far as its node's inputs tell. */
void nori__check_seed(nori__node *node, nori__graph *body);

/* check_graph.c: imports, what is unused, dead nodes; what loading warned of. */
void nori__check_imports(nori_findings *f, const nori__ir *ir);
void nori__check_unused(nori_findings *f, const nori__ir *ir);
void nori__check_warnings(nori_findings *f, const nori__ir *ir);
/* check_batch.c: a batch size written into the body; names of axes only outputs have. */
void nori__check_batch(nori_findings *f, const nori__ir *ir);
void nori__check_axes(nori_findings *f, const nori__ir *ir);
/* check_targets.c: operators that cannot run at all, or not on one of the targets. */
nori_status nori__check_gaps(nori_findings *f, const nori__ir *ir, const char *targets,
                             nori_error *err);
/* Which operators a target has no kernel of its own for, so that reference runs them: on a copy as
 * a session compiles it, types inferred. */
nori_status nori__check_fallback(nori_findings *f, const nori__ir *compiled, const char *targets,
                                 nori_error *err);
/* check_claims.c: what targets that take parts would not take; rewrites the copy. */
nori_status nori__check_claims(nori_findings *f, nori__ir *compiled, const char *targets,
                               nori_error *err);

/* check.c: the walk. */
nori_status nori__check_ir(const nori__ir *ir, const nori_check_options *options,
                           nori_findings **findings, nori_error *err);

#endif
