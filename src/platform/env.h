/* env.h: the environment from the inside: allocator, log, the shared pool. NULL is the default
 * environment everywhere. */
#ifndef NORI_PLATFORM_ENV_H
#define NORI_PLATFORM_ENV_H

#include "platform/platform.h"

const nori_allocator *nori__env_allocator(const nori_env *env);
nori__pool *nori__env_pool(nori_env *env); /* made on first use; NULL: work alone */
void nori__env_log(const nori_env *env, nori_log_level level, const char *fmt, ...)
    NORI__PRINTF(3, 4);

#endif
