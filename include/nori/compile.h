/* compile.h: compiled plans: a model in one file with its weights in the forms that kernels read.
 *
 * A plan is opened like a model, with nori_model_load or nori_model_load_memory, and is one: it can be
 * run with any options, changed and saved. A session made of it with the options, on the CPU level and
 * by the build of nori that it was made for uses the packed weights where they lie in the mapped file;
 * any other session packs them anew, and says so (a warning to the environment's log, the progress
 * callback's phase "cache"). The result is the same either way. What a plan file says is checked as a
 * model file is: the file of an enemy may give wrong numbers, and nothing worse. */
#ifndef NORI_COMPILE_H
#define NORI_COMPILE_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nori_plan_info {
    size_t size;           /* sizeof, set by the caller */
    const char *made_for;  /* lines: build of nori, CPU level, options; lives as long as the model */
    uint64_t model_bytes;  /* of the model, its own weights among them */
    uint64_t packed_bytes; /* of packed weights */
    uint64_t blocks;       /* how many pieces those are */
    int tuned_threads;     /* threads it was tuned for; 0: it was not tuned */
    uint64_t tuned_layers; /* nodes that do not go their usual way */
    const char *ways;      /* lines: "3 nodes: conv direct, short spans"; lives as long as the model */
} nori_plan_info;

/* Compiles model with these options (NULL: the defaults) and writes the plan; the file appears whole or
 * not at all. Data of other files (external data) becomes part of it. info may be NULL. A model that
 * was sealed is refused, since its weights would lie open: seal the plan of the open model instead.
 * Errors: those of nori_session_create, IO, ARGUMENT. */
NORI_API nori_status nori_plan_write(const nori_model *model, const nori_session_options *options,
                                     const char *path, nori_plan_info *info, nori_error *error);
/* Whether the model is of a plan file: 1, and info is filled; else 0. */
NORI_API int nori_model_plan(const nori_model *model, nori_plan_info *info);

typedef struct nori_plan_use {
    size_t size;         /* sizeof, set by the caller */
    size_t found;        /* blocks used from the file */
    size_t packed;       /* blocks that had to be made: the file's were not aligned, or did not fit */
    const char *why_not; /* "": the plan is used; else why it was not */
} nori_plan_use;
/* Whether the session is of a plan's model: 1, and use is filled; else 0. */
NORI_API int nori_session_plan(const nori_session *session, nori_plan_use *use);

/* ---- tuning ---- */

/* Many layers can be done in several ways: direct sums or Winograd's form, long spans or short ones. A
 * rule takes one by the CPU's level and the layer's shape; tuning runs the model with each on this machine
 * and takes what is faster here. */
typedef struct nori_tune_options {
    size_t size;                       /* sizeof, set by _default */
    const nori_tensor *const *inputs;  /* of the runs that are timed, as nori_session_run takes them */
    size_t input_count;
    double seconds; /* about the most it may take (default 20); what is not measured then stays as it is */
    double least;   /* another way must be faster by this share (default 0.05) */
} nori_tune_options;

typedef struct nori_tuning nori_tuning; /* what was found; immutable */

typedef struct nori_tune_report {
    size_t size;       /* sizeof, set by the caller */
    size_t layers;     /* different ones that have a choice */
    size_t changed;    /* of these that are to go another way than their rule says */
    size_t unmeasured; /* of these that time was too short for, in part */
    int threads;       /* of the runs */
    double usual_ms, tuned_ms; /* a run of the model: medians of runs taken in turns, in several pairs of
                                  sessions; 0: no layer gained, and there was nothing to compare */
    double gain;       /* usual over tuned time: the median of those pairs */
    double noise;      /* how far that may be off, as the pairs differ */
    int faster;        /* 1: by more than that; else changed is 0 */
    double seconds;    /* that all of it took */
} nori_tune_report;

typedef struct nori_tuned_layer {
    size_t size;               /* sizeof, set by the caller */
    char layer[96];            /* "conv 3x3, 64 -> 128, 56x56" */
    const char *node;          /* the first one */
    const char *usual, *taken; /* ways */
    size_t nodes;              /* of the model that are this layer */
    double usual_us, taken_us; /* of all of them in a run, measured in turns; 0: not measured */
} nori_tuned_layer;

typedef struct nori_tuned_way {
    size_t size;       /* sizeof, set by the caller */
    const char *way;
    double usual_us, us; /* of all of a layer's nodes: the usual way, and this one, in turns */
    int measured;      /* 0: there was no time for it */
} nori_tuned_way;

NORI_API void nori_tune_options_default(nori_tune_options *options);
/* Measures with the session options' threads, providers, level, dimensions (profile, watch and cache_dir
 * mean nothing here); their progress callback hears of the phase "tune". The machine should be idle.
 * Errors: those of nori_session_create and nori_session_run. */
NORI_API nori_status nori_tune(const nori_model *model, const nori_session_options *options,
                               const nori_tune_options *tune, nori_tuning **tuning, nori_error *error);
NORI_API void nori_tuning_free(nori_tuning *tuning); /* NULL is fine */
NORI_API void nori_tuning_report(const nori_tuning *tuning, nori_tune_report *report);
/* By index; 0 past the last. Texts live as long as the tuning. */
NORI_API int nori_tuning_layer(const nori_tuning *tuning, size_t index, nori_tuned_layer *layer);
NORI_API int nori_tuning_way(const nori_tuning *tuning, size_t layer, size_t index, nori_tuned_way *way);
/* nori_plan_write with the ways that were found, for the same model and options. Sessions of the plan go
 * these ways whatever their number of threads, so that results do not depend on it. */
NORI_API nori_status nori_plan_write_tuned(const nori_model *model, const nori_session_options *options,
                                           const nori_tuning *tuning, const char *path,
                                           nori_plan_info *info, nori_error *error);

/* Which way a layer of a plan's session goes: 1, and layer is filled (times are 0, nodes is 1; texts live
 * as long as the session); 0 past the last one that has a choice. */
NORI_API int nori_session_layer(const nori_session *session, size_t index, nori_tuned_layer *layer);

#ifdef __cplusplus
}
#endif
#endif
