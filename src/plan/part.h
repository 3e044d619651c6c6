/* part.h: a part of the graph that one execution provider compiles and runs as a whole.
 *
 * In the compiled copy a part is one node (op_type "Part", node->part set) whose kernel hands the
 * call to the provider, so that plan, layout, frame and profile treat it like any other step. */
#ifndef NORI_PLAN_PART_H
#define NORI_PLAN_PART_H

#include <pthread.h>

#include "plan/plan.h"

struct nori_part {
    const nori_provider *provider;
    void *self;             /* of the provider, this session's */
    const char *label;      /* in reports */
    void *compiled;         /* NULL until compiled */
    const nori_allocator *a;
    const nori__ir *ir;     /* where its nodes come from */
    const nori__pb_model *model; /* the messages, when it is a whole model */
    const char *file;       /* see nori_part_file */
    nori__node **nodes;     /* taken out of the graph; still readable */
    uint32_t n_nodes, n_in, n_out;
    nori__value **in, **out;
    const char *const *dim_names; /* fixed for this session */
    const int64_t *dim_values;
    size_t dim_count;
    bool serial;            /* runs take turns */
    pthread_mutex_t turn;
    nori__text onnx;        /* filled on demand */
};

/* A part of the whole main graph of ir, or of count nodes of it; memory from arena, which outlives
 * it. Not in place of anything yet. Free with nori__part_free, also when the rest failed. */
nori_status nori__part_of_model(nori__arena *arena, const nori_allocator *a, const nori__ir *ir,
                                nori_part **part, nori_error *err);
/* Puts one node in place of the part's nodes. */
nori_status nori__part_place(nori_part *part, nori_error *err);
void nori__part_free(nori_part *part); /* the compiled form and what is not in the arena */

extern const nori_kernel nori__part_kernel; /* state: the nori_part */

#endif
