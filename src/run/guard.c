/* guard.c: what stops a run, and the flag another thread stops it by. */
#include "base/given.h"
#include "run/guard.h"

#include <stdatomic.h>

#include "onnx/model_limits.h"
#include "platform/env.h"

#define NS_PER_MS ((uint64_t)1000000)

struct nori_cancel {
    atomic_int asked;
    const nori_allocator *allocator;
};

nori_status nori_cancel_create(nori_env *env, nori_cancel **cancel, nori_error *err)
{
    NORI__GIVEN(err, cancel);
    const nori_allocator *a = nori__env_allocator(env);
    nori_cancel *c = nori__alloc_zero(a, sizeof(*c));
    *cancel = c;
    if (!c) {
        return nori__no_memory(err);
    }
    atomic_init(&c->asked, 0);
    c->allocator = a;
    return NORI_OK;
}

void nori_cancel_free(nori_cancel *c)
{
    if (c) {
        nori__release(c->allocator, c, sizeof(*c));
    }
}

void nori_cancel_request(nori_cancel *c)
{
    NORI__ASKED(c, );
    atomic_store_explicit(&c->asked, 1, memory_order_relaxed);
}

void nori_cancel_reset(nori_cancel *c)
{
    NORI__ASKED(c, );
    atomic_store_explicit(&c->asked, 0, memory_order_relaxed);
}

int nori_cancel_requested(const nori_cancel *c)
{
    NORI__ASKED(c, 0);
    return atomic_load_explicit(&c->asked, memory_order_relaxed);
}

void nori_run_options_default(nori_run_options *options)
{
    NORI__ASKED(options, );
    *options = (nori_run_options){.size = sizeof(*options)};
}

void nori__guard_init(nori__guard *g, const nori_limits *limits, const nori_run_options *options)
{
    nori_run_options o;
    nori_run_options_default(&o);
    if (options) {
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    }
    *g = (nori__guard){.cancel = o.cancel,
                       .run_ms = o.run_ms ? o.run_ms : limits->run_ms,
                       .limit = o.iterations ? o.iterations : limits->iterations};
    uint64_t now = g->run_ms ? nori__now_ns() : 0;
    if (g->run_ms) {
        g->end_ns = g->run_ms > (UINT64_MAX - now) / NS_PER_MS ? UINT64_MAX
                                                               : now + g->run_ms * NS_PER_MS;
    }
    g->watches = g->cancel || g->end_ns;
}

nori_status nori__guard_look(const nori__guard *g, nori_error *err)
{
    if (g->cancel && nori_cancel_requested(g->cancel)) {
        return nori__fail(err, NORI_ERROR_CANCELLED, "the run was cancelled");
    }
    uint64_t now = g->end_ns ? nori__now_ns() : 0;
    if (now > g->end_ns) {
        return nori__past_limit(err, "milliseconds of a run",
                                g->run_ms + (now - g->end_ns) / NS_PER_MS, g->run_ms, "run_ms",
                                "time");
    }
    return NORI_OK;
}

nori_status nori__guard_iteration(nori__guard *g, nori_error *err)
{
    g->iterations++;
    if (g->limit && g->iterations > g->limit) {
        return nori__past_limit(err, "iterations of a run's loops", g->iterations, g->limit,
                                "iterations", "iterations");
    }
    return g->watches ? nori__guard_look(g, err) : NORI_OK;
}
