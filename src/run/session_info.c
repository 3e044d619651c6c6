/* session_info.c: what callers may ask of a session. */
#include "run/run.h"
#include "base/given.h"

size_t nori_session_input_count(const nori_session *s)
{
    NORI__ASKED(s, 0);
    return s->n_inputs;
}

const nori_value_info *nori_session_input(const nori_session *s, size_t i)
{
    NORI__ASKED(s, NULL);
    return i < s->n_inputs ? &s->inputs[i] : NULL;
}

size_t nori_session_output_count(const nori_session *s)
{
    NORI__ASKED(s, 0);
    return s->n_outputs;
}

const nori_value_info *nori_session_output(const nori_session *s, size_t i)
{
    NORI__ASKED(s, NULL);
    return i < s->n_outputs ? &s->outputs[i] : NULL;
}

void nori_session_memory(const nori_session *session, nori_memory_stats *stats)
{
    NORI__ASKED(session, );
    NORI__ASKED(stats, );
    nori_session *s = (nori_session *)(uintptr_t)session; /* only the lock changes */
    nori_memory_stats now = {.packed_bytes = s->packed_bytes};
    pthread_mutex_lock(&s->lock);
    now.peak_activation_bytes = s->peak_bytes;
    for (nori__context *c = s->idle; c; c = c->next) {
        now.held_bytes += nori__frame_bytes(c->frame) + c->meter.spare;
    }
    pthread_mutex_unlock(&s->lock);
    now.size = stats->size;
    memcpy(stats, &now, stats->size < sizeof(now) ? stats->size : sizeof(now));
}

void nori_session_timing(const nori_session *s, nori_timing *timing)
{
    NORI__ASKED(s, );
    NORI__ASKED(timing, );
    nori_timing now = s->timing;
    now.size = timing->size;
    memcpy(timing, &now, timing->size < sizeof(now) ? timing->size : sizeof(now));
}
