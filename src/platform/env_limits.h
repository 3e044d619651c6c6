/* env_limits.h: the limits of an environment from the inside. */
#ifndef NORI_PLATFORM_ENV_LIMITS_H
#define NORI_PLATFORM_ENV_LIMITS_H

#include "nori/limits.h"
#include "platform/env.h"

/* Those in force; never NULL. */
const nori_limits *nori__env_limits(const nori_env *env);
/* Bytes of memory this machine or this cgroup has; 0: cannot be told. root: as nori__usable_cpus. */
uint64_t nori__machine_bytes(const char *root);

#endif
