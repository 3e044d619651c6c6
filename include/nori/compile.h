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

#ifdef __cplusplus
}
#endif
#endif
