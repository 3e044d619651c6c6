/* report.c: what is built, what this machine is, how long nodes took. */
#include <stdio.h>

#include "nori/tools.h"
#include "base/given.h"
#include "ops/op.h"
#include "ops/schema.h"
#include "run/run.h"

uint64_t nori_clock_ns(void)
{
    return nori__now_ns();
}

uint64_t nori_cpu_time_ns(void)
{
    return nori__cpu_ns();
}

uint64_t nori_peak_memory(void)
{
    return nori__peak_bytes();
}

const char *nori_cpu_name(void)
{
    return nori__cpu_name();
}

const char *nori_cpu_features(void)
{
    return nori__cpu_features();
}

const char *nori_cpu_level(void)
{
    return nori__cpu_level_name(nori__cpu_level_get());
}

int nori_usable_threads(char *reason, size_t size)
{
    return nori__usable_cpus(NULL, reason, size);
}

int nori_session_profile(const nori_session *session, size_t index, nori_profile_row *row)
{
    NORI__ASKED(session, 0);
    const nori__step *step =
        session->times && index < session->n_step_ids ? session->steps[index] : NULL;
    if (!step) {
        return 0;
    }
    nori_session *s = (nori_session *)(uintptr_t)session; /* only the lock changes */
    pthread_mutex_lock(&s->lock);
    const nori__step_time now = s->times[index], *t = &now;
    pthread_mutex_unlock(&s->lock);
    nori_profile_row r = {.size = row->size,
                          .node = step->node->name,
                          .op = step->node->op_type,
                          .provider = step->provider,
                          .calls = t->calls,
                          .total_ns = t->total_ns,
                          .last_start_ns = t->last_start_ns,
                          .last_end_ns = t->last_end_ns};
    memcpy(row, &r, r.size < sizeof(r) ? r.size : sizeof(r));
    return 1;
}

#ifdef NORI_WITH_ZLIB
#define HAVE_ZLIB 1
#else
#define HAVE_ZLIB 0
#endif

static const struct {
    const char *name, *use;
    int have;
} libraries[] = {
    {"zlib", "gzipped tensor files and compressed archives (.pb.gz, .npz)", HAVE_ZLIB},
};

int nori_library_at(size_t index, const char **name, const char **use, int *have)
{
    NORI__ASKED(name, 0);
    NORI__ASKED(use, 0);
    NORI__ASKED(have, 0);
    if (index >= NORI__COUNT(libraries)) {
        return 0;
    }
    *name = libraries[index].name;
    *use = libraries[index].use;
    *have = libraries[index].have;
    return 1;
}
