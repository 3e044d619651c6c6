/* plan.h: how a compiled graph is run.
 *
 * A nori__plan is the part that does not depend on shapes: steps in order with their kernels and
 * packed state, slots (one a value), which slots die where. A nori__layout is the small part that
 * does: concrete shapes, offsets in one memory block, and the results of steps that could be
 * computed from shapes alone. A new input shape costs a new layout, not a new plan. */
#ifndef NORI_PLAN_PLAN_H
#define NORI_PLAN_PLAN_H

#include "ops/op.h"

#define NORI__NO_SLOT UINT32_MAX

typedef enum nori__slot_kind {
    NORI__SLOT_LOCAL,   /* made by a step of this plan */
    NORI__SLOT_CONST,   /* initializer or folded */
    NORI__SLOT_INPUT,   /* graph input (with a default when value->constant) */
    NORI__SLOT_CAPTURE  /* value of an enclosing graph */
} nori__slot_kind;

typedef struct nori__slot {
    const nori__value *value;
    uint8_t kind;       /* nori__slot_kind */
    bool is_output;     /* of the graph */
    uint32_t last_step; /* last step that makes or reads it; NORI__NO_SLOT when none does */
} nori__slot;

/* Whether what an input is fed is its own default: then its content may be relied on, as long as
 * nothing else is fed. */
static inline bool nori__is_default(const nori__slot *slot, const nori_tensor *fed)
{
    return fed && fed->kind == NORI_KIND_TENSOR && slot->kind == NORI__SLOT_INPUT &&
           fed == slot->value->constant;
}

typedef struct nori__step {
    const nori__node *node;
    const nori_kernel *kernel;
    const char *provider;
    void *state;
    size_t state_bytes;
    uint32_t n_in, n_out;
    const uint32_t *in, *out;   /* slots; NORI__NO_SLOT: absent */
    uint32_t n_hidden;          /* slots that only its subgraphs read */
    const uint32_t *hidden;
    uint32_t n_dead;            /* slots whose last use is this step */
    const uint32_t *dead;
    uint32_t n_sub;
    struct nori__plan **sub;    /* plans of its subgraph attributes */
    uint32_t id;                /* over all plans of a session */
} nori__step;

typedef struct nori__plan {
    const nori__graph *graph;
    nori__step *steps;
    uint32_t n_steps;
    nori__slot *slots;
    uint32_t n_slots;
    uint32_t n_in, n_out, n_capture;
    bool holds;            /* some step's state is to be given back; or there are subgraphs */
    uint64_t state_bytes;  /* of all steps, those of subgraphs included */
    int threads; /* see nori__plan_options */
    const uint32_t *in, *out, *capture; /* slots; a graph output may be any kind of slot */
    const uint32_t *capture_outer;      /* the enclosing plan's slot of each capture */
    const nori_tensor **loose; /* constants that are to have data when a step runs: a run sees to it */
    size_t n_loose;
} nori__plan;

/* How kernels are chosen while planning. */
typedef struct nori__plan_options {
    const nori_allocator *allocator;
    const nori_provider *const *providers; /* in order of preference; reference is implied last */
    void *const *provider_self;
    size_t n_providers;
    int threads; /* budget of a run: what kernels size their workspace for */
    struct nori__packs *packs; /* NULL, or whose allocator the one above is (plan/packed.h) */
    /* NULL, or told of large weights before a kernel packs them (needed) and after: where they lie in a
     * file, its pages are mapped at once, and need not stay beside what was made of them. */
    void (*pages)(void *user, const void *data, size_t size, bool needed);
    void *pages_user;
} nori__plan_options;

/* Builds the plan of a graph and its subgraphs in arena; types must have been inferred. Kernels
 * are prepared here: nori__plan_close releases their states (also after an error). */
nori_status nori__plan_build(nori__arena *arena, const nori__graph *graph,
                             const nori__plan_options *options, uint32_t *next_id,
                             nori__plan **plan, nori_error *err);
/* Whether a run of the step takes input i as it lies in the file (a loose tensor), or not at all. */
bool nori__step_takes_loose(const nori__step *step, uint32_t i);
void nori__plan_close(nori__plan *plan, const nori_allocator *a);

/* ---- layout ---- */

/* What to do about a run that meets its session's cap; a session whose cap is its environment's says
 * so in its place. */
#define NORI__CAP_HINT "raise max_bytes (--memory), or use smaller inputs"

enum {
    NORI__STEP_RUN,  /* shapes known, memory planned */
    NORI__STEP_DONE, /* results known from shapes: kept in the layout */
    NORI__STEP_LATE, /* shapes known only when it runs */
    NORI__STEP_VIEW  /* output shares its input's bytes: nothing to run */
};
enum {
    NORI__PLACE_NONE,  /* not planned: input, constant, capture, late */
    NORI__PLACE_BLOCK, /* offset in the block */
    NORI__PLACE_KNOWN, /* tensor kept in the layout */
    NORI__PLACE_ALIAS, /* the bytes of another slot that is not in the block */
    NORI__PLACE_OUT    /* graph output: memory of its own */
};

typedef struct nori__place {
    uint8_t how;
    uint8_t type;     /* of the shape below; UNDEFINED: late */
    int8_t rank;
    uint32_t alias;   /* ALIAS: whose bytes */
    size_t offset;    /* BLOCK */
    size_t bytes;
    const int64_t *dims;
    nori_tensor *known; /* KNOWN */
} nori__place;

typedef struct nori__layout {
    nori__arena arena;
    nori__place *places; /* per slot */
    uint8_t *step_kind;  /* per step */
    size_t *work_offset; /* per step; workspace in the block */
    size_t *work_size;
    size_t block_bytes;
    nori__vec known;     /* tensors to free */
} nori__layout;

/* Lays out a plan for these input and capture tensors, of which type and shape are looked at
 * (constants and defaults also by content). inputs: plan->n_in, captures: plan->n_capture; an entry that is
 * NULL or a group makes what depends on it late. memory_cap 0: none. */
nori_status nori__layout_build(const nori__plan *plan, const nori_allocator *a,
                               const nori_tensor *const *inputs,
                               const nori_tensor *const *captures, uint64_t memory_cap,
                               nori__layout *layout, nori_error *err);
void nori__layout_free(nori__layout *layout);

/* What inference may know of a tensor at hand; content too if asked. */
void nori__shape_of_tensor(nori__shape *shape, const nori_tensor *t, bool content);

/* offsets.c: offsets by liveness. Items are live from first to last step, both included. */
typedef struct nori__life {
    uint32_t first, last;
    size_t bytes;
    size_t offset; /* result, multiple of 64 */
} nori__life;
/* Best fit over a free list in order of first (the items come sorted by it). places.c decides what
 * shares an item. */
nori_status nori__assign_offsets(const nori_allocator *a, nori__life *items, size_t count,
                                 size_t *block_bytes, nori_error *err);

#endif
