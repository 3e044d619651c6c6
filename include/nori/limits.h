/* limits.h: what a model may cost. Bounds for all that is loaded and run in an environment, and for a
 * single run a time and a way to stop it from another thread. Built on nori.h; the same conventions.
 *
 *     nori_limits limits;
 *     nori_limits_default(&limits);
 *     limits.nodes = 10000;
 *     limits.run_ms = 2000;
 *     nori_env_set_limits(env, &limits, &err);
 *
 * What goes beyond a bound is refused with NORI_ERROR_LIMIT: the message names the bound and what was
 * found, the hint how to raise it. docs/limits.md has the defaults and the options of the command. */
#ifndef NORI_LIMITS_H
#define NORI_LIMITS_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 0 in a field: nothing but memory and nori's own bounds. */
typedef struct nori_limits {
    size_t size;               /* sizeof, set by _default */
    /* Of a model, looked at when it is loaded. */
    uint64_t model_bytes;      /* of its file; nori_load_options.max_bytes, where set, goes first */
    uint64_t nodes;            /* of all graphs and functions; of a session: functions put in place */
    uint64_t nesting;          /* graphs within graphs; at most 64 in any case */
    uint64_t rank;             /* dimensions of a tensor; at most NORI_MAX_RANK in any case */
    uint64_t string_bytes;     /* of one name, text or string element */
    uint64_t unfolded_bytes;   /* of one tensor that takes more memory than file: dense, unpacked */
    /* Of a run. */
    uint64_t activation_bytes; /* what it holds; nori_session_options.max_bytes, where set, goes first */
    uint64_t iterations;       /* of all Loop and Scan nodes together */
    uint64_t run_ms;           /* of the clock on the wall; see nori_session_run_with */
} nori_limits;

/* What an environment begins with: generous, but nothing that a small file could take a machine down
 * by. activation_bytes is what the machine, or its cgroup, has; run_ms is 0. */
NORI_API void nori_limits_default(nori_limits *limits);
/* For what is loaded, made and run from here on; to be called before other threads use env. NULL is
 * the default environment. Errors: ARGUMENT. */
NORI_API nori_status nori_env_set_limits(nori_env *env, const nori_limits *limits,
                                         nori_error *error);
/* Those in force; limits->size is set by the caller. */
NORI_API void nori_env_limits(const nori_env *env, nori_limits *limits);

/* A flag that stops runs; any thread may ask, also a signal handler. One flag may serve many runs. */
typedef struct nori_cancel nori_cancel;
NORI_API nori_status nori_cancel_create(nori_env *env, nori_cancel **cancel, nori_error *error);
NORI_API void nori_cancel_free(nori_cancel *cancel);     /* no run may use it any more */
NORI_API void nori_cancel_request(nori_cancel *cancel);  /* runs that have it stop */
NORI_API void nori_cancel_reset(nori_cancel *cancel);    /* for the next run */
NORI_API int nori_cancel_requested(const nori_cancel *cancel);

typedef struct nori_run_options {
    size_t size;              /* sizeof, set by _default */
    const nori_cancel *cancel; /* may be NULL */
    uint64_t run_ms;          /* 0: as the environment has it */
    uint64_t iterations;      /* 0: as the environment has it */
} nori_run_options;
NORI_API void nori_run_options_default(nori_run_options *options);

/* nori_session_run that can be stopped. The flag and the clock are looked at between nodes and before
 * each iteration: one long node is finished first, a part that another engine runs too. A stopped run
 * makes no output, and the session may be run again. Errors beside those of nori_session_run:
 * CANCELLED (the flag), LIMIT (time, iterations). options may be NULL. */
NORI_API nori_status nori_session_run_with(nori_session *session, const nori_run_options *options,
                                           const nori_tensor *const *inputs, size_t input_count,
                                           nori_tensor **outputs, size_t output_count,
                                           nori_error *error);

#ifdef __cplusplus
}
#endif
#endif
