/* passes.h: rewrites of the compiled copy that stay within standard ONNX. Every pass leaves a valid
 * graph; a new one is a file here, a declaration below and a row in pass_list.c. */
#ifndef NORI_PASSES_PASSES_H
#define NORI_PASSES_PASSES_H

#include "ops/resolve.h"

typedef struct nori__pass {
    const char *name;
    int level; /* runs at this optimization level and above */
    nori_status (*run)(nori__ir *ir, bool *changed, nori_error *err);
} nori__pass;

/* Passes in order; NULL past the last. */
const nori__pass *nori__pass_at(size_t index);

/* Infers, then runs the passes of the level over and over until nothing changes (at most a few
 * rounds), inferring again after each round that changed something. */
nori_status nori__passes_run(nori__ir *ir, int level, nori_error *err);
/* The same with a look at the graph after every pass: the first that is not NORI_OK ends it, and the
 * error names the pass that broke the graph. In debug builds nori__passes_run verifies so. */
typedef nori_status (*nori__pass_check)(void *user, const nori__pass *pass, nori__ir *ir,
                                        nori_error *err);
nori_status nori__passes_run_checked(nori__ir *ir, int level, nori__pass_check check, void *user,
                                     nori_error *err);

/* The same with only some passes: names, comma-separated; "": none, NULL: all. ARGUMENT when a name
 * is no pass's; one with a '/' is a provider's (src/run/rewrites.c). */
nori_status nori__passes_run_only(nori__ir *ir, int level, const char *only, nori_error *err);

/* Whether a list has a name; NULL has all. */
bool nori__pass_listed(const char *only, const char *name);

nori_status nori__pass_branch(nori__ir *ir, bool *changed, nori_error *err);
nori_status nori__pass_fold(nori__ir *ir, bool *changed, nori_error *err);
/* The same, what fold leaves for rewrites of quantized graphs included. */
nori_status nori__pass_fold_rest(nori__ir *ir, bool *changed, nori_error *err);
nori_status nori__pass_identity(nori__ir *ir, bool *changed, nori_error *err);
nori_status nori__pass_fuse_affine(nori__ir *ir, bool *changed, nori_error *err);
nori_status nori__pass_dead(nori__ir *ir, bool *changed, nori_error *err);

#endif
