/* lower.h: writing a graph under another operator set; shared by the files of convert/. */
#ifndef NORI_TOOLS_CONVERT_LOWER_H
#define NORI_TOOLS_CONVERT_LOWER_H

#include "nori/convert.h"
#include "ops/resolve.h"

/* A graph on its way to an operator set, and what stands in the way. */
typedef struct nori__lowering {
    nori__ir *ir;          /* changed in place; when there are blockers, only fit to be freed */
    int64_t opset;         /* wanted */
    nori__arena *arena;    /* of blockers: outlives the ir */
    nori__vec *blockers;   /* nori_blocker */
    size_t nodes, rewritten;
    nori_error *err;
    /* The node at hand. */
    bool same;             /* a rewrite saw to it that the meaning is the same */
    char why[192];         /* what keeps it, or "" */
} nori__lowering;

/* Brings the graph to l->opset. NORI_OK with blockers: it cannot be. */
nori_status nori__lower(nori__lowering *l);

/* lower_expand.c: puts others in the place of operators that the operator set wanted lacks. */
nori_status nori__lower_expand(nori__lowering *l);

/* Rewrites of single nodes from a newer form (lower_inputs.c, lower_meaning.c): those in the table of
 * lower.c. A node that cannot be written so gets l->why. */
typedef nori_status (*nori__lower_fn)(nori__lowering *l, nori__node *n);
nori_status nori__lower_keep(nori__lowering *l, const char *fmt, ...) NORI__PRINTF(2, 3);
/* What is in a value in every run: a constant or a Constant's; NULL where it is computed. */
const nori_tensor *nori__lower_content(const nori__value *v);
bool nori__lower_has(const nori__node *n, uint32_t input);
void nori__lower_drop(nori__node *n, uint32_t input); /* and absent ones at the end */
int nori__lower_rank(const nori__node *n, uint32_t input); /* -1: not known */

nori_status nori__lower_axes(nori__lowering *l, nori__node *n);
nori_status nori__lower_split_parts(nori__lowering *l, nori__node *n);
nori_status nori__lower_split(nori__lowering *l, nori__node *n);
nori_status nori__lower_slice(nori__lowering *l, nori__node *n);
nori_status nori__lower_pad_axes(nori__lowering *l, nori__node *n);
nori_status nori__lower_pad(nori__lowering *l, nori__node *n);
nori_status nori__lower_clip(nori__lowering *l, nori__node *n);
nori_status nori__lower_topk(nori__lowering *l, nori__node *n);
nori_status nori__lower_dropout(nori__lowering *l, nori__node *n);
nori_status nori__lower_reshape(nori__lowering *l, nori__node *n);
nori_status nori__lower_constant(nori__lowering *l, nori__node *n);

nori_status nori__raise_softmax(nori__lowering *l, nori__node *n); /* others: nothing */
nori_status nori__lower_softmax(nori__lowering *l, nori__node *n);
nori_status nori__lower_gemm(nori__lowering *l, nori__node *n);
nori_status nori__lower_resize(nori__lowering *l, nori__node *n);
nori_status nori__lower_upsample(nori__lowering *l, nori__node *n);
nori_status nori__lower_scatter(nori__lowering *l, nori__node *n);
nori_status nori__lower_grid(nori__lowering *l, nori__node *n);
nori_status nori__lower_roi(nori__lowering *l, nori__node *n);
nori_status nori__lower_scale(nori__lowering *l, nori__node *n);
nori_status nori__lower_quantize_types(nori__lowering *l, nori__node *n);
nori_status nori__lower_gather(nori__lowering *l, nori__node *n);
nori_status nori__lower_same_shapes(nori__lowering *l, nori__node *n);
nori_status nori__lower_broadcast(nori__lowering *l, nori__node *n);

/* The lowest IR version that has what the graph holds. */
int64_t nori__least_ir(const nori__ir *ir);
/* runtimes.c: what refuses a file; the text of a refusal from arena, "" for none, NULL: no memory. */
size_t nori__runtime_count(void);
void nori__runtime_facts(size_t index, nori_runtime_verdict *verdict);
const char *nori__runtime_refusal(size_t index, const nori__ir *ir, int64_t opset, int64_t ir_version,
                                  nori__arena *arena);
/* convert.c: a copy of the model's graph under an operator set, as far as that is possible. */
nori_status nori__lower_copy(const nori_model *model, nori__lowering *l);
int nori__blocker_at(const nori__vec *blockers, size_t index, nori_blocker *blocker); /* opset.c */
/* opset.c: 0: none. What blocks the one below is added to the list. */
nori_status nori__lowest_opset(const nori_model *model, nori__arena *arena, nori__vec *blockers,
                               int64_t *lowest, nori_error *err);

#endif
