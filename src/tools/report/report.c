/* report.c: what is built, what this machine is, how long nodes took. */
#include <stdio.h>

#include "nori/tools.h"
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

static void types_text(uint64_t types, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (int t = 1; t < NORI_TYPE_COUNT && used + 1 < size; t++) {
        if (types >> t & 1) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "," : "",
                                     nori_type_name((nori_type)t));
        }
    }
}

int nori_capability_at(size_t index, nori_capability *capability)
{
    const nori__schema *s = nori__schema_at(index);
    if (!s) {
        return 0;
    }
    const nori__op *op = nori__op_find(s->domain, s->name);
    nori_capability c = {.size = capability->size,
                         .domain = s->domain,
                         .op = s->name,
                         .family = op ? op->family : "",
                         .since = s->since,
                         .kernel = op && op->reference ? "reference" : ""};
    if (s->n_in > 0) {
        types_text(s->in[0].types, c.types, sizeof(c.types));
    }
    memcpy(capability, &c, c.size < sizeof(c) ? c.size : sizeof(c));
    return 1;
}

int nori_session_profile(const nori_session *session, size_t index, nori_profile_row *row)
{
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
