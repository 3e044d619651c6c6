/* tools.h: what can be done with a model beside running it. Built on nori.h; the same conventions.
 */
#ifndef NORI_TOOLS_H
#define NORI_TOOLS_H

#include "nori/nori.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- check ------------------------------------------------------------------------------ */

typedef enum nori_severity {
    NORI_SEVERITY_INFO = 1, /* worth knowing */
    NORI_SEVERITY_WARNING,  /* valid, but likely not what was meant */
    NORI_SEVERITY_ERROR     /* not valid ONNX, or cannot run */
} nori_severity;

/* One thing the checker has to say. Strings are never NULL; hint and path may be "". */
typedef struct nori_finding {
    int severity;        /* nori_severity */
    const char *rule;    /* stable word: load operator domain opset inputs outputs attribute type
                            shape graph unused batch axis-name deprecated target */
    const char *path;    /* node or value; of the first, where a finding stands for several */
    const char *message; /* what is wrong, what was expected, what was found */
    const char *hint;    /* what to do */
} nori_finding;

/* Everything found, errors first; immutable, may be read from any thread. */
typedef struct nori_findings nori_findings;

typedef struct nori_check_options {
    size_t size;         /* sizeof, set by _default */
    const char *targets; /* comma-separated providers that must be able to run every node, or NULL */
    int strict;          /* 1: warnings become errors */
} nori_check_options;

NORI_API void nori_check_options_default(nori_check_options *options);
/* Everything that is wrong or remarkable about a model, at its own opset. A finding is not an
 * error of the call: NORI_OK with zero errors among the findings means the model is valid. Errors:
 * ARGUMENT (a target that is not known), MEMORY. options may be NULL. */
NORI_API nori_status nori_check(const nori_model *model, const nori_check_options *options,
                                nori_findings **findings, nori_error *error);
/* Loads and checks. What keeps the file from loading is a finding (rule "load"); errors only when
 * the file itself cannot be read (IO), ARGUMENT, MEMORY. load_options may be NULL. */
NORI_API nori_status nori_check_file(nori_env *env, const char *path,
                                     const nori_load_options *load_options,
                                     const nori_check_options *options, nori_findings **findings,
                                     nori_error *error);
NORI_API size_t nori_findings_count(const nori_findings *findings);
/* How many are of at least this severity. */
NORI_API size_t nori_findings_at_least(const nori_findings *findings, nori_severity severity);
NORI_API const nori_finding *nori_findings_at(const nori_findings *findings, size_t index);
NORI_API void nori_findings_free(nori_findings *findings);

#ifdef __cplusplus
}
#endif
#endif
