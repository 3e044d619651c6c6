/* env.c: environments. The default one is made on first use and kept until the process ends. */
#include "base/given.h"
#include "platform/env_limits.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

struct nori_env {
    nori_allocator allocator;
    void (*log)(void *user, nori_log_level level, const char *text);
    void *log_user;
    int threads;
    nori_limits limits;
    pthread_mutex_t lock; /* of whoever makes the pool or what is kept */
    _Atomic(nori__pool *) pool;
    _Atomic(void *) kept;
    void (*release_kept)(void *kept);
};

static nori_env default_env = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_once_t default_limits = PTHREAD_ONCE_INIT;

void nori_env_options_default(nori_env_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_env_options){.size = sizeof(*options)};
}

nori_status nori_env_create(const nori_env_options *options, nori_env **env, nori_error *err)
{
    NORI__GIVEN(err, env);
    *env = NULL;
    nori_env_options o;
    nori_env_options_default(&o);
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    if ((o.allocator.alloc == NULL) != (o.allocator.release == NULL)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "an allocator needs both alloc and release, or neither");
    }
    if (o.threads < 0) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "threads is %d, at least 0 was expected",
                          o.threads);
    }
    nori_allocator a = o.allocator.alloc ? o.allocator : nori__malloc;
    nori_env *e = nori__alloc_zero(&a, sizeof(*e));
    if (!e) {
        return nori__no_memory(err);
    }
    e->allocator = a;
    e->log = o.log;
    e->log_user = o.log_user;
    e->threads = o.threads < NORI__MAX_THREADS ? o.threads : NORI__MAX_THREADS;
    nori_limits_default(&e->limits);
    pthread_mutex_init(&e->lock, NULL);
    *env = e;
    return NORI_OK;
}

void nori_env_free(nori_env *env)
{
    if (env) {
        nori_allocator a = env->allocator;
        nori__pool_free(env->pool);
        if (env->kept) {
            env->release_kept(env->kept);
        }
        pthread_mutex_destroy(&env->lock);
        nori__release(&a, env, sizeof(*env));
    }
}

int nori_env_threads(const nori_env *env)
{
    return env && env->threads > 0 ? env->threads : nori__usable_cpus(NULL, NULL, 0);
}

const nori_allocator *nori__env_allocator(const nori_env *env)
{
    return env ? &env->allocator : &nori__malloc;
}

static void set_default_limits(void)
{
    nori_limits_default(&default_env.limits);
}

const nori_limits *nori__env_limits(const nori_env *env)
{
    if (!env) {
        pthread_once(&default_limits, set_default_limits);
    }
    return env ? &env->limits : &default_env.limits;
}

nori_status nori_env_set_limits(nori_env *env, const nori_limits *limits, nori_error *err)
{
    nori_limits l = *nori__env_limits(env);
    if (!limits || limits->size < sizeof(limits->size)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "limits must come from nori_limits_default, which sets their size");
    }
    memcpy(&l, limits, limits->size < sizeof(l) ? limits->size : sizeof(l));
    l.size = sizeof(l);
    (env ? env : &default_env)->limits = l;
    return NORI_OK;
}

nori__pool *nori__env_pool(nori_env *env)
{
    nori_env *e = env ? env : &default_env;
    nori__pool *pool = atomic_load_explicit(&e->pool, memory_order_acquire);
    if (pool) { /* without the lock, which a fork may have left taken */
        return pool;
    }
    pthread_mutex_lock(&e->lock);
    pool = atomic_load_explicit(&e->pool, memory_order_relaxed);
    if (!pool) {
        nori__pool_create(nori__env_allocator(env), nori_env_threads(env), &pool, NULL);
        atomic_store_explicit(&e->pool, pool, memory_order_release);
    }
    pthread_mutex_unlock(&e->lock);
    return pool;
}

void *nori__env_kept(nori_env *env, const nori__env_part *part)
{
    nori_env *e = env ? env : &default_env;
    void *kept = atomic_load_explicit(&e->kept, memory_order_acquire);
    if (kept || !part) {
        return kept;
    }
    pthread_mutex_lock(&e->lock);
    kept = atomic_load_explicit(&e->kept, memory_order_relaxed);
    if (!kept) {
        kept = part->make(nori__env_allocator(env));
        e->release_kept = part->release;
        atomic_store_explicit(&e->kept, kept, memory_order_release);
    }
    pthread_mutex_unlock(&e->lock);
    return kept;
}

void nori__env_log(const nori_env *env, nori_log_level level, const char *fmt, ...)
{
    if (!env || !env->log) {
        return;
    }
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    env->log(env->log_user, level, text);
}
