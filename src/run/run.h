/* run.h: models, sessions, contexts and the executor from the inside. */
#ifndef NORI_RUN_RUN_H
#define NORI_RUN_RUN_H

#include <stdatomic.h>
#include <pthread.h>

#include "plan/part.h"
#include "plan/partition.h"
#include "run/guard.h"
#include "run/meter.h"
#include "platform/env.h"
#include "providers/providers.h"

/* ---- models (model.c) ---- */

/* The file's bytes and everything that points into them: shared by the model and its sessions,
 * freed with the last of them. */
typedef struct nori__source {
    atomic_int refs;
    nori_env *env;
    const nori_allocator *allocator;
    nori__map_file file; /* data NULL when the caller's memory is used */
    nori__arena arena;   /* messages */
    nori__external *external;
    nori__pb_model *pb;
    char *path;          /* "" when from memory */
    uint64_t bytes;
    const uint8_t *data; /* the bytes of the messages: of the file, the caller or made */
    size_t data_bytes;
    nori__text made;     /* the bytes, when a tool made the model */
    struct nori__source *parents[2]; /* of models it was made of: their data is lent to it */
    uint64_t read_ns, build_ns; /* what loading took */
    struct nori__plan_file *plan; /* NULL, or what else its file holds (plan_file.h) */
    bool sealed;         /* its content is to be written nowhere in the open */
} nori__source;
void nori__source_release(nori__source *source);
/* Whether these bytes lie in a file that the source has mapped. */
bool nori__source_maps(const nori__source *source, const void *data, size_t size);
/* Whether its content, or that of a model it was made of, is to be written nowhere in the open. */
bool nori__source_sealed(const nori__source *source);

struct nori_model {
    nori__source *source;
    nori__ir *ir;
    nori_value_info *inputs, *outputs;
    size_t n_inputs, n_outputs;
    nori__vec warnings; /* char * in the ir's arena */
    char *producer;
    bool changed;      /* set by whoever edits it: its file no longer says what it is */
};

const nori__ir *nori__model_ir(const nori_model *model);
/* A model of its own from an edited graph, in the environment of the model it came from. */
nori_status nori__model_from_ir(const nori_model *from, const nori__ir *ir, nori_model **model,
                                nori_error *err);
/* A model from bytes that a tool made, which it takes. base_dir: as nori_model_load_memory has it. */
nori_status nori__model_from_bytes(nori_env *env, nori__text *bytes, const char *base_dir,
                                   const nori_load_options *options, nori_model **model,
                                   nori_error *err);
/* The same from messages that point into one or two models (derive.c). Data those have in other files
 * is not copied. */
nori_status nori__model_from_pb(const nori_model *const *from, size_t count,
                                const nori__pb_model *pb, nori_model **model, nori_error *err);
/* model.c, for derive.c: a source without bytes, and the model over source->made, which gets the
 * reference in any case. */
nori_status nori__source_new(nori_env *env, const char *path, nori__source **source,
                             nori_error *err);
nori_status nori__model_of_made(nori__source *source, nori_model **model, nori_error *err);
/* Fills an array of value descriptions for a graph's inputs or outputs; memory from arena. */
nori_status nori__describe_values(nori__arena *arena, nori__value *const *values, size_t count,
                                  nori_value_info **out, nori_error *err);

/* ---- frames (frame.c) ---- */

/* Times of one step, by step id. */
typedef struct nori__step_time {
    uint64_t calls, total_ns, last_start_ns, last_end_ns;
} nori__step_time;

/* What a run needs beside the plan; constant while it runs. */
typedef struct nori__run_info {
    nori__pool *pool;
    int threads;
    uint64_t memory_cap;
    nori__guard *guard;
    nori__step_time *times; /* NULL: not profiling */
    void (*watch)(void *user, const char *value, const nori_tensor *tensor); /* NULL: nobody */
    void *watch_user;
} nori__run_info;

/* The state of one graph's run: tensors by slot, one memory block, a layout kept from the last
 * shapes. Used by one thread at a time; children are the frames of its steps' subgraphs. */
typedef struct nori__frame nori__frame;
nori_status nori__frame_create(const nori__plan *plan, nori__meter *meter, nori__frame **frame,
                               nori_error *err);
void nori__frame_free(nori__frame *frame);
/* inputs: plan->n_in; captures: plan->n_capture. outputs[i], where not NULL, is written; the rest
 * become new references, which nothing else writes. On error no new output remains. */
nori_status nori__frame_run(nori__frame *frame, const nori__run_info *info,
                            const nori_tensor *const *inputs, const nori_tensor *const *captures,
                            nori_tensor **outputs, nori_error *err);
size_t nori__frame_bytes(const nori__frame *frame);

/* ---- sessions (session.c) ---- */

typedef struct nori__context {
    nori__meter meter;
    nori__frame *frame;
    nori__step_time *times; /* of the run going on, by step id; NULL: not profiling */
    struct nori__context *next;
} nori__context;

struct nori_session {
    nori__source *source;
    nori_env *env;
    const nori_allocator *allocator;
    nori__ir *ir;        /* the compiled copy */
    nori__arena arena;   /* plans, descriptions */
    nori__plan *plan;
    struct nori__packs *packs; /* NULL, or where packed weights come from or are noted */
    struct nori__packs *plain; /* NULL, or the memory of packed weights where packs is NULL */
    const char *plan_note;     /* why the model's plan is not used; "" or NULL: nothing to say */
    struct {                   /* its packed weights in the cache folder (plan_cache.c) */
        const char *path, *made_for;
        nori__map_file file;
        nori__str blocks;
        bool wanted;           /* to be written, as there is none that fits: */
        char why[256];
    } kept;
    uint32_t n_step_ids;
    const nori__step **steps; /* by step id, those of subgraphs among them */
    nori__opened *providers;
    size_t n_providers;
    nori__vec parts;        /* nori_part *: made for execution providers */
    nori__split split;      /* who was to get what */
    nori_node_info *nodes;  /* who runs what */
    size_t n_nodes;
    const char *model_file; /* the model as it is, or NULL */
    nori_value_info *inputs, *outputs;
    size_t n_inputs, n_outputs;
    int threads;
    uint64_t memory_cap;
    bool cap_of_env;        /* the cap is the environment's, not an option of this session */
    uint64_t packed_bytes;
    nori_timing timing;
    pthread_mutex_t lock;   /* guards what follows */
    nori__context *idle;
    size_t peak_bytes;
    nori__step_time *times; /* by step id, NULL: not profiling */
    void (*watch)(void *user, const char *value, const nori_tensor *tensor);
    void *watch_user;
};

/* The caller's options, which may be of an older size, over the defaults. */
void nori__session_options(const nori_session_options *given, nori_session_options *options);
/* Ways for layers to go (plan/chosen.h), measured with so many threads. */
typedef struct nori__ways {
    const struct nori__way_entry *entries; /* outlive what is made with them */
    size_t count;
    int threads; /* 0: they were not measured */
} nori__ways;
/* record: layers go these ways, and what kernels pack is noted in session->packs; NULL: the plan's ways
 * and blocks, if there is one. */
nori_status nori__session_make(const nori_model *model, const nori_session_options *options,
                               const nori__ways *record, nori_session **session, nori_error *err);
/* Tells the options' progress callback, if there is one. */
void nori__tell_progress(const nori_session_options *o, const char *phase, const char *provider,
                         size_t done, size_t total);
/* Asks the first provider whether it takes the model as its file has it (parts.c); whole: it did,
 * and the graph is one node now. */
nori_status nori__give_model(nori_session *s, const nori_session_options *o, bool *whole,
                             nori_error *err);

/* What the providers do to the compiled copy for themselves (rewrites.c). */
nori_status nori__rewrite_for_providers(nori_session *s, const nori_session_options *o,
                                        nori_error *err);
/* Splits the graph over the providers and compiles the parts given away (parts.c). */
nori_status nori__give_parts(nori_session *s, const nori_session_options *o, nori_error *err);
/* Notes who runs what, when all is planned (or, split only, decided); session_nodes.c. */
nori_status nori__note_nodes(nori_session *s, nori_error *err);

/* Checks what a caller feeds against the declared inputs. */
nori_status nori__check_inputs(const nori_session *session, const nori_tensor *const *inputs,
                               size_t count, nori_error *err);

#endif
