/* providers.h: the built-in providers, and opening those a session asks for. */
#ifndef NORI_PROVIDERS_PROVIDERS_H
#define NORI_PROVIDERS_PROVIDERS_H

#include "ops/op.h"

/* What a built-in provider does to the compiled copy for itself (level 2). */
typedef struct nori__rewrite {
    const char *name;
    nori_status (*run)(nori__ir *ir, nori_error *err);
    bool infer; /* types must be inferred anew before it */
} nori__rewrite;

typedef struct nori__builtin {
    const nori_provider *provider;
    const nori__rewrite *rewrites; /* in order, ended by a name of NULL; may be NULL */
} nori__builtin;

const nori__builtin *nori__builtin_find(const char *name); /* NULL: none of that name */

extern const nori_provider nori__reference_provider, nori__ort_provider, nori__xnnpack_provider;
extern const nori_provider nori__nnapi_provider;
extern const nori__rewrite nori__cpu_rewrites[];
extern const nori_provider nori__opencl_provider; /* with NORI_WITH_OPENCL */
extern const nori_provider nori__cuda_provider;   /* with NORI_WITH_CUDA */

/* ---- open_provider.c ---- */

/* A provider as a session holds it. */
typedef struct nori__opened {
    const nori_provider *provider; /* NULL: not open */
    const nori__builtin *builtin;  /* NULL: from a shared object */
    void *self, *library;
    nori_provider_info info;
    const char *label; /* in reports; in the arena */
} nori__opened;

/* Opens what one entry of a provider list says: "cpu", "ort:cuda:device_id=1", or the path of a
 * shared object (it holds a '/') with options behind ':'. Errors are UNAVAILABLE with the library,
 * symbol, version or driver that is missing, or ARGUMENT. */
/* how: all but the options, which are taken from spec. */
nori_status nori__provider_open(const char *spec, const nori_provider_open *how, nori__arena *arena,
                                nori__opened *opened, nori_error *err);
void nori__provider_close(nori__opened *opened);

/* Takes the next entry from a comma-separated list, in place; NULL past the last. What follows a
 * comma belongs to the entry before it when it is an option ("ort:cuda:a=1,b=2,cpu": two). */
char *nori__provider_next(char **list);

#endif
