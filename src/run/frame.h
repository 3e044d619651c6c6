/* frame.h: the state of one graph's run, shared by the files of the executor.
 *
 * Every slot has a current tensor: an input, a constant, a header over the block, or, for values
 * whose shape only the run can tell, a tensor the frame owns until the slot dies. */
#ifndef NORI_RUN_FRAME_H
#define NORI_RUN_FRAME_H

#include "run/run.h"

/* A part that was started and is not waited for yet (frame_queue.c). */
typedef struct nori__started {
    const nori__step *step; /* NULL: none */
    void *handle;           /* the provider's */
    nori_call call;
    const nori_tensor **in;
    nori_tensor **out;
} nori__started;

typedef struct nori__frame_child {
    const nori__plan *plan;
    nori__frame *frame;
} nori__frame_child;

struct nori__frame {
    const nori__plan *plan;
    const nori_allocator *a; /* counted: tables, the block */
    nori__meter *meter;      /* pooled: late values and what kernels take */
    nori__arena arena;
    nori_tensor *headers; /* of local slots that are in the block or an alias */
    nori_tensor **now;    /* per slot: current tensor, NULL: none */
    bool *owned;          /* per slot: now[] is a reference of ours */
    bool any_owned;
    nori__layout layout;
    bool laid_out;
    int64_t *key; /* types and shapes the layout is for */
    size_t key_size, key_capacity;
    char *block;
    size_t block_bytes;
    char *scratch; /* workspace of late steps */
    size_t scratch_bytes;
    const nori_tensor **in; /* of the current step */
    nori_tensor **out;
    nori__shape *shapes;
    const nori_tensor **bound; /* captures of the subgraph being started */
    nori__frame_child *children;
    uint32_t n_children;
    nori__vec spare; /* outputs nobody wants, until the step ends */
    const nori__run_info *info;
    nori__started started;
};

/* ---- frame.c ---- */
void nori__frame_drop(nori__frame *f, uint32_t slot);
/* Memory of at least size bytes; what it held is not kept. */
bool nori__frame_reserve(const nori_allocator *a, char **memory, size_t *have, size_t size);

/* ---- frame_bind.c ---- */
/* Makes the layout fit these inputs; one for the same types and shapes is kept. */
nori_status nori__frame_lay_out(nori__frame *f, const nori_tensor *const *inputs,
                                const nori_tensor *const *captures, nori_error *err);
/* Output slots with memory of their own get the caller's tensor, or a new one. */
nori_status nori__frame_bind_outputs(nori__frame *f, nori_tensor **outputs, nori_error *err);
nori_status nori__frame_give_outputs(nori__frame *f, nori_tensor **outputs, nori_error *err);
/* A reference that outlives the run. Headers over the block cannot be kept: they are copied. */
nori_status nori__frame_keep(const nori_allocator *a, const nori_tensor *t, bool fresh,
                             nori_tensor **out, nori_error *err);

/* ---- frame_step.c ---- */
nori_status nori__frame_step(nori__frame *f, uint32_t step, nori_error *err);

/* ---- frame_queue.c ---- */
/* Whether a step is a part that can be started now and waited for later. */
bool nori__frame_can_start(const nori__frame *f, const nori__step *step, uint8_t kind);
nori_status nori__frame_start(nori__frame *f, const nori__step *step, const nori_call *call);
/* Whether a step needs what was started, or must not run beside it. */
bool nori__frame_must_wait(const nori__frame *f, const nori__step *step);
/* Waits for what was started, if anything was; err may be NULL. */
nori_status nori__frame_wait(nori__frame *f, nori_error *err);

#endif
