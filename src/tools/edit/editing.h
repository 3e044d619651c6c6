/* editing.h: what the tools that make models of models share. They work on messages where nodes only
 * move, and on a copy of the graph where nodes change. */
#ifndef NORI_TOOLS_EDIT_EDITING_H
#define NORI_TOOLS_EDIT_EDITING_H

#include "nori/edit.h"
#include "ops/resolve.h"
#include "run/run.h"

#define NORI__NAME_N(s) (int)((s).n < 200 ? (s).n : 200), ((s).n ? (s).p : "")

/* Options of the caller, which may be of an older size, over the defaults. */
#define NORI__OPTIONS(type, o, given)                                                       \
    do {                                                                                    \
        type##_default(&(o));                                                               \
        if (given) {                                                                        \
            memcpy(&(o), (given), (given)->size < sizeof(o) ? (given)->size : sizeof(o));   \
        }                                                                                   \
    } while (0)

/* ---- typed.c: what is known of the values ---- */

/* A copy of the graph in its newest form with all types inferred, its dimensions fixed as said.
 * Values of the main graph are found in it by name. */
nori_status nori__edit_typed(const nori_model *model, const char *const *dim_names,
                             const int64_t *dim_values, size_t dim_count, nori__ir **ir,
                             nori_error *err);
nori_status nori__edit_typed_ir(const nori__ir *from, const char *const *dim_names,
                                const int64_t *dim_values, size_t dim_count, nori__ir **ir,
                                nori_error *err);
/* The value of a name, or NULL. */
const nori__value *nori__edit_value(const nori__ir *typed, const char *name);
/* Bytes a value takes; false: its sizes are not all known. */
bool nori__edit_bytes(const nori__value *v, uint64_t *bytes);
/* An error for a name that no value of the main graph has. */
nori_status nori__edit_no_value(const nori__ir *ir, const char *name, nori_error *err);

/* ---- stages.c: nodes and what they depend on ---- */

/* Nodes of the main graph in order, and which of them constants alone decide. Indices are positions in
 * the order; those of values are ids of the ir. */
typedef struct nori__order {
    const nori__ir *ir;
    nori__node **nodes;
    size_t count;
    bool *constant; /* by node: computed from constants alone; goes wherever it is read */
    bool *made;     /* by value: by such a node, or a constant itself */
    uint32_t *maker; /* by value: position of its node + 1; 0: none */
} nori__order;
nori_status nori__order_find(const nori__ir *ir, nori__arena *arena, nori__order *order,
                             nori_error *err);
/* An error where a node reads others by name, which no cut may part: of those in, or of all for NULL. */
nori_status nori__order_whole(const nori__order *o, const bool *in, nori_error *err);
/* Marks in first the nodes that must go before the boundary of these values: what they need, and what
 * reads more of that than the values. */
nori_status nori__order_before(const nori__order *o, nori__arena *arena, nori__value *const *values,
                               size_t count, bool *first, nori_error *err);

/* ---- model_part.c: some nodes as a model ---- */

typedef struct nori__part_plan {
    const nori_model *model;
    const nori__order *order;
    const nori__ir *typed;
    const char *name;       /* added to the graph's */
    const bool *in;         /* by node: belongs to the part (constant ones come where needed) */
    nori__value *const *inputs, *const *outputs;
    size_t n_inputs, n_outputs;
} nori__part_plan;
nori_status nori__part_make(const nori__part_plan *plan, nori_model **part, nori_error *err);

/* ---- proof.c ---- */

/* One model at level 0, to be run on given tensors. */
nori_status nori__proof_session(const nori_model *model, const nori_proof_options *o,
                                nori_session **session, nori_error *err);
typedef struct nori__values { /* named tensors, owned */
    const char **names;
    nori_tensor **tensors;
    size_t count;
} nori__values;
void nori__values_free(nori__values *v);
const nori_tensor *nori__values_find(const nori__values *v, const char *name);
/* The same values, in memory of their own. */
nori_status nori__values_copy(const nori__values *from, nori__arena *arena, nori__values *to,
                              nori_error *err);
void nori__proof_fill(nori_tensor *t, uint64_t *state); /* other content, made up */
/* Makes inputs on which the model runs, and runs it. UNSUPPORTED: none were found, why says it. */
nori_status nori__proof_run(const nori_model *model, const nori_proof_options *o,
                            nori__arena *arena, nori__values *inputs, nori__values *outputs,
                            uint64_t *ns, nori_error *err);
/* Runs a session on tensors found by name. ns may be NULL: the run is not timed. */
nori_status nori__proof_feed(nori_session *session, const nori__values *const *sets, size_t n_sets,
                             nori__arena *arena, nori__values *outputs, uint64_t *ns,
                             nori_error *err);
/* Adds a pair to a proof that began with agrees and equal set. */
void nori__proof_compare(nori_proof *proof, const char *name, const nori_tensor *want,
                         const nori_tensor *got);
/* The largest |element| that is finite. */
double nori__proof_peak(const nori_tensor *t);
void nori__proof_begin(nori_proof *proof);
void nori__proof_give(const nori_proof *proof, nori_proof *out);
void nori__proof_tell(const nori_proof_options *o, size_t done, size_t total, const char *text);
/* Whether a model has operators that give something else each time. */
bool nori__edit_random(const nori__ir *ir);
/* The whole of a proof that two models of the same inputs and outputs agree. */
nori_status nori__proof_same(const nori_model *before, const nori_model *after,
                             const nori_proof_options *o, nori_proof *proof, nori_error *err);

#endif
