/* needs.h: which operators a build of nori must hold to run given models: for reduced builds
 * (docs/size.md). Built on nori.h; the same conventions. */
#ifndef NORI_NEEDS_H
#define NORI_NEEDS_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct nori_needs nori_needs;

typedef struct nori_need {
    size_t size;          /* sizeof, set by the caller */
    const char *domain;   /* "ai.onnx", "com.microsoft" ...; "nori": the cpu provider makes it for itself */
    const char *op;
    const char *made_by;  /* NULL: a model has it; else the step of a session that may make it */
    const int *versions;  /* the models have it in, rising; none for what is made */
    size_t version_count;
} nori_need;

/* The operators of all models together, with those of functions and subgraphs, and what sessions may
 * make of them: by upgrades of old forms, rewrites of any level and providers' own. Immutable; freed
 * with nori_needs_free, before or after the models. Errors: UNSUPPORTED (an operator this build does not
 * run), MODEL, MEMORY. */
NORI_API nori_status nori_needs_find(const nori_model *const *models, size_t count, nori_needs **needs,
                                     nori_error *error);
NORI_API void nori_needs_free(nori_needs *needs);
/* Sorted by domain and name, what models have first; 0 past the last. Strings live as long as needs. */
NORI_API int nori_needs_at(const nori_needs *needs, size_t index, nori_need *need);
/* Whether a model computes in float16 or bfloat16. */
NORI_API int nori_needs_half(const nori_needs *needs);

#ifdef __cplusplus
}
#endif

#endif
