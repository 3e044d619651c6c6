/* env.h: the environment from the inside: allocator, log, the shared pool. NULL is the default
 * environment everywhere. */
#ifndef NORI_PLATFORM_ENV_H
#define NORI_PLATFORM_ENV_H

#include "platform/platform.h"

#define NORI__MAX_THREADS 256 /* of a pool, the caller's own included */

const nori_allocator *nori__env_allocator(const nori_env *env);
nori__pool *nori__env_pool(nori_env *env); /* made on first use; NULL: work alone */
/* What another folder keeps with an environment (ops/custom.c: the registry of operators): made by
 * the first who asks with a part, NULL before. release is called when the environment is freed;
 * with the default one it stays until the process ends. */
typedef struct nori__env_part {
    void *(*make)(const nori_allocator *a); /* NULL: out of memory */
    void (*release)(void *kept);
} nori__env_part;
void *nori__env_kept(nori_env *env, const nori__env_part *part);
void nori__env_log(const nori_env *env, nori_log_level level, const char *fmt, ...)
    NORI__PRINTF(3, 4);

#endif
