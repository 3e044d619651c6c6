/* part.h: a part of the graph that one execution provider compiles and runs as a whole.
 *
 * In the compiled copy a part is one node (op_type "Part", node->part set) whose kernel hands the
 * call to the provider, so that plan, layout, frame and profile treat it like any other step. */
#ifndef NORI_PLAN_PART_H
#define NORI_PLAN_PART_H

#include <pthread.h>

#include "plan/plan.h"
#include "platform/platform.h"

struct nori_part {
    const nori_provider *provider;
    void *self;             /* of the provider, this session's */
    const char *label;      /* in reports */
    const nori_provider_info *info;
    void *compiled;         /* NULL until compiled */
    const nori_allocator *a;
    nori__arena *arena;
    nori__ir *ir;           /* where its nodes come from */
    const nori__pb_model *model; /* the messages, when it is a whole model */
    const char *file;       /* see nori_part_file */
    nori__node **nodes;     /* later taken out of the graph; still readable */
    uint32_t n_nodes, n_in, n_out;
    nori__value **in, **out;
    /* For inference through it (part_infer.c): its values by number, inputs first; unset for a
     * whole model. */
    nori__value **values;
    uint32_t n_values;
    uint32_t **node_values; /* per node: numbers of its inputs, then outputs; UINT32_MAX: absent */
    uint32_t *out_values;
    const char *const *dim_names; /* fixed for this session, while it is compiled */
    const int64_t *dim_values;
    size_t dim_count;
    const char *cache_dir;        /* likewise, or NULL */
    void (*progress)(void *user, const nori_progress *progress); /* likewise, or NULL */
    void *progress_user;
    char hash[NORI__HASH_TEXT]; /* part_cache.c: names it in the folder; "" until asked for */
    nori__map_file cached;  /* the file nori_part_load gave bytes of */
    pthread_mutex_t turn;   /* of a serial provider */
    nori__text onnx;        /* filled on demand */
};

/* A part of the whole main graph of ir; memory from arena, which outlives it. Not in place of
 * anything yet. Free with nori__part_free, also when the rest failed. */
nori_status nori__part_of_model(nori__arena *arena, const nori_allocator *a, nori__ir *ir,
                                nori_part **part, nori_error *err);
/* Of count nodes of the main graph, in order; scratch: ir->value_count zeros, zeros again after. */
nori_status nori__part_of_nodes(nori__arena *arena, const nori_allocator *a, nori__ir *ir,
                                nori__node *const *nodes, uint32_t count, uint32_t *scratch,
                                nori_part **part, nori_error *err);
/* Puts one node in place of the part's nodes, at the end of the graph: when all parts are placed,
 * nori__ir_order follows. */
nori_status nori__part_place(nori_part *part, nori_error *err);
void nori__part_free(nori_part *part); /* the compiled form and what is not in the arena */

extern const nori_kernel nori__part_kernel; /* state: the nori_part */
/* The same in two halves, for providers that have them. */
static inline bool nori__part_has_queue(const nori_part *part)
{
    return part->provider->start && part->provider->finish;
}
nori_status nori__part_start(nori_part *part, nori_call *call, void **started);
nori_status nori__part_finish(nori_part *part, void *started, nori_call *call);

/* part_cache.c: a line of the session's progress about its folder, while the part is compiled. */
void nori__part_tell(const nori_part *part, const char *fmt, ...) NORI__PRINTF(2, 3);

/* part_opsets.c: operator sets under which the part's nodes, which may be of several versions, all
 * mean what they mean here; UNSUPPORTED when there are none. */
nori_status nori__part_opsets(const nori_part *part, nori__arena *arena, nori__subset *set,
                              nori_error *err);

/* part_infer.c: shapes of a part's outputs by inference through its nodes. */
nori_status nori__part_infer(nori__infer *c);
/* Shapes of all its values, by number, from those of its inputs; released by the caller. arena: see
 * nori__infer. */
nori_status nori__part_shapes(const nori_part *part, const nori__shape *in, nori__arena *arena,
                              nori__shape **shapes, size_t *bytes, nori_error *err);

#endif
