/* providers.h: the built-in providers. */
#ifndef NORI_PROVIDERS_PROVIDERS_H
#define NORI_PROVIDERS_PROVIDERS_H

#include "ops/op.h"

/* A built-in provider may also rewrite the compiled copy for itself (level 2). */
typedef struct nori__builtin {
    const nori_provider *provider;
    nori_status (*rewrite)(nori__ir *ir, nori_error *err); /* may be NULL */
} nori__builtin;

const nori__builtin *nori__builtin_find(const char *name); /* NULL: none of that name */

extern const nori_provider nori__reference_provider;

#endif
