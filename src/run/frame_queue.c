/* frame_queue.c: parts on a queue: a part whose provider has one is started where its step stands, and
 * waited for when a step comes that reads what it makes, that is a part itself or has subgraphs, or when
 * the plan ends. One is under way at a time, so nobody waits for a provider while holding another.
 *
 * Its inputs are read when it is started; its outputs live from its step on, so nothing between shares
 * their memory. */
#include "base/built.h"
#include "plan/part.h"
#include "run/frame.h"

bool nori__frame_can_start(const nori__frame *f, const nori__step *step, uint8_t kind)
{
    bool can = NORI__BUILT(parts) && step->node->part && kind == NORI__STEP_RUN &&
               nori__part_has_queue(step->node->part) && !f->info->times && !f->info->watch;
    for (uint32_t i = 0; can && i < step->n_out; i++) {
        can = step->out[i] == NORI__NO_SLOT || f->now[step->out[i]];
    }
    return can;
}

nori_status nori__frame_start(nori__frame *f, const nori__step *step, const nori_call *call)
{
    nori__started *s = &f->started;
    s->call = *call;
    memcpy(s->in, call->in, step->n_in * sizeof(*s->in));
    memcpy(s->out, call->out, step->n_out * sizeof(*s->out));
    s->call.in = s->in;
    s->call.out = s->out;
    s->call.run = NULL; /* nothing is left to be allocated */
    NORI__TRY(NORI__BUILT(parts) ? nori__part_start(step->node->part, &s->call, &s->handle) : NORI_OK);
    s->step = step;
    return NORI_OK;
}

static bool made(const nori__step *by, const uint32_t *slots, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < by->n_out && slots[i] != NORI__NO_SLOT; k++) {
            if (by->out[k] == slots[i]) {
                return true;
            }
        }
    }
    return false;
}

bool nori__frame_must_wait(const nori__frame *f, const nori__step *step)
{
    const nori__step *by = f->started.step;
    return by && (step->node->part || step->n_sub > 0 || made(by, step->in, step->n_in) ||
                  made(by, step->hidden, step->n_hidden));
}

nori_status nori__frame_wait(nori__frame *f, nori_error *err)
{
    nori__started *s = &f->started;
    const nori__step *step = s->step;
    if (!NORI__BUILT(parts) || !step) {
        return NORI_OK;
    }
    s->step = NULL;
    s->call.err = err;
    nori_status status = nori__part_finish(step->node->part, s->handle, &s->call);
    for (uint32_t i = 0; i < step->n_out && status == NORI_OK; i++) {
        if (s->out[i]) {
            nori__tensor_clear_rest(s->out[i]);
        }
    }
    if (status != NORI_OK && err && !err->where[0]) {
        char path[256];
        nori__node_path(step->node, path, sizeof(path));
        nori__where(err, "%s", path);
    }
    return status;
}
