/* route.c: one call: where the policy says, with the device as the hedge of a server that is late. */
#include <math.h>
#include <time.h>

#include "base/given.h"
#include "tools/route/routes.h"

void nori_route_options_default(nori_route_options *o)
{
    NORI__ASKED(o, );
    *o = (nori_route_options){.size = sizeof(*o)};
    nori_policy_options_default(&o->policy);
}

/* ---- making ---- */

/* What is there, what the rules leave of it, and what the caller wants of that (none named: all). */
static void set_possible(nori_route_options *o)
{
    const int there[NORI_PLACES] = {o->edge != NULL, o->infer && !o->raw_stays,
                                    o->infer && o->first && !o->features_stay};
    int *wanted = o->policy.possible;
    bool any = wanted[0] || wanted[1] || wanted[2];
    for (int i = 0; i < NORI_PLACES; i++) {
        wanted[i] = there[i] && (!any || wanted[i]);
    }
}

static bool make_locks(nori_route *r)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0) {
        return false;
    }
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    bool ok = pthread_cond_init(&r->changed, &attr) == 0;
    pthread_condattr_destroy(&attr);
    if (ok && pthread_mutex_init(&r->lock, NULL) != 0) {
        pthread_cond_destroy(&r->changed);
        ok = false;
    }
    if (ok && pthread_mutex_init(&r->log_lock, NULL) != 0) {
        pthread_cond_destroy(&r->changed);
        pthread_mutex_destroy(&r->lock);
        ok = false;
    }
    return ok;
}

nori_status nori_route_create(const nori_route_options *options, nori_route **route, nori_error *err)
{
    NORI__GIVEN(err, options);
    NORI__GIVEN(err, route);
    nori_route_options o;
    nori_route_options_default(&o);
    memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    set_possible(&o);
    if (o.output_count == 0 || !isfinite(o.hedge_s)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "output_count is %zu and hedge_s %g: how many outputs the "
                          "model has and a time were expected",
                          o.output_count, o.hedge_s);
    }
    nori_route *r = nori__alloc_zero(&nori__malloc, sizeof(*r));
    if (!r) {
        return nori__no_memory(err);
    }
    r->o = o;
    nori_status s = nori_policy_create(&o.policy, &r->policy, err);
    if (s == NORI_OK && !make_locks(r)) {
        s = nori__no_memory(err);
    }
    if (s != NORI_OK) {
        nori_policy_free(r->policy);
        nori__release(&nori__malloc, r, sizeof(*r));
        return s;
    }
    *route = r;
    return NORI_OK;
}

void nori_route_free(nori_route *r)
{
    if (!r) {
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    while (r->jobs > 0) {
        pthread_cond_wait(&r->changed, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    pthread_mutex_destroy(&r->log_lock);
    nori_policy_free(r->policy);
    nori__release(&nori__malloc, r, sizeof(*r));
}

void nori_route_look(nori_route *r, nori_policy_view *view)
{
    NORI__ASKED(r, );
    NORI__ASKED(view, );
    pthread_mutex_lock(&r->lock);
    nori_policy_look(r->policy, view);
    pthread_mutex_unlock(&r->lock);
}

/* ---- a call ---- */

typedef struct call {
    nori_route *r;
    const nori_tensor *const *in;
    size_t n_in, n_out;
    nori_tensor **out;
    nori_route_result *result;
    nori_error *err;
} call;

/* Waits until one of the jobs (NULL: none) is done well, all are done, or it is `until`. */
static void wait_for(nori_route *r, nori__route_job *const jobs[2], double until)
{
    struct timespec at = {(time_t)until, (long)((until - floor(until)) * 1e9)};
    pthread_mutex_lock(&r->lock);
    for (;;) {
        bool all = true, good = false;
        for (int i = 0; i < 2; i++) {
            all = all && (!jobs[i] || jobs[i]->done);
            good = good || (jobs[i] && jobs[i]->done && jobs[i]->status == NORI_OK);
        }
        if (all || good) {
            break;
        }
        if (!isfinite(until)) {
            pthread_cond_wait(&r->changed, &r->lock);
        } else if (pthread_cond_timedwait(&r->changed, &r->lock, &at) != 0) {
            break;
        }
    }
    pthread_mutex_unlock(&r->lock);
}

static bool state_of(nori_route *r, const nori__route_job *job, nori_status *s)
{
    pthread_mutex_lock(&r->lock);
    bool done = job->done;
    *s = job->status;
    pthread_mutex_unlock(&r->lock);
    return done;
}

static void take(call *c, nori__route_job *job)
{
    for (size_t i = 0; i < c->n_out; i++) {
        c->out[i] = job->out[i];
        job->out[i] = NULL;
    }
    c->result->place = job->place;
}

/* The device was first: tells the policy, unless the request has ended meanwhile. */
static void overdue(nori_route *r, nori__route_job *job)
{
    pthread_mutex_lock(&r->lock);
    if (!job->done) {
        job->overdue = true;
        nori_policy_overdue(r->policy, job->place, nori__route_now());
    }
    pthread_mutex_unlock(&r->lock);
}

/* The server's answer, or the device's where that is late or does not come. */
static nori_status hedged(call *c, nori_place place, double wait)
{
    nori_route *r = c->r;
    nori_status s;
    double start = nori__route_now();
    nori__route_job *jobs[2] = {nori__route_start(r, place, c->in, c->n_in, c->n_out, NULL), NULL};
    if (jobs[0]) {
        wait_for(r, jobs, start + wait);
        if (state_of(r, jobs[0], &s) && s == NORI_OK) {
            take(c, jobs[0]);
            nori__route_release(jobs[0]);
            return NORI_OK;
        }
    }
    c->result->hedged = 1;
    jobs[1] = jobs[0] && !state_of(r, jobs[0], &s)
                  ? nori__route_start(r, NORI_PLACE_EDGE, c->in, c->n_in, c->n_out, NULL) : NULL;
    if (!jobs[1]) { /* it failed already, or no thread can be had */
        double took;
        s = nori__route_here(r, NORI_PLACE_EDGE, c->in, c->n_in, c->out, c->n_out, &took, NULL, c->err);
        c->result->place = NORI_PLACE_EDGE;
    } else {
        wait_for(r, jobs, INFINITY);
        bool far_done = state_of(r, jobs[0], &s) && s == NORI_OK;
        nori__route_job *first = far_done ? jobs[0] : jobs[1];
        s = far_done ? NORI_OK : first->status; /* the edge is done then */
        if (s == NORI_OK) {
            take(c, first);
        } else if (c->err) {
            *c->err = first->err;
        }
        if (!far_done) {
            overdue(r, jobs[0]);
        }
        nori__route_release(jobs[1]);
    }
    if (jobs[0]) {
        nori__route_release(jobs[0]);
    }
    return s;
}

static void beside(call *c, nori_place also)
{
    nori__route_job *job = also == NORI_PLACE_NONE
                               ? NULL : nori__route_start(c->r, also, c->in, c->n_in, c->n_out, NULL);
    if (job) {
        nori__route_release(job);
    }
}

/* Where the call goes, a place to look at with it, and how long a server may take. */
static nori_place choose(nori_route *r, nori_place *also, double *wait)
{
    double now = nori__route_now();
    pthread_mutex_lock(&r->lock);
    nori__route_probe(r);
    nori_place place = nori_policy_choose(r->policy, now, also);
    bool full = r->far_jobs >= NORI__ROUTE_MOST;
    if (r->far_jobs > 0 && *also != NORI_PLACE_EDGE) { /* one look at a time */
        *also = NORI_PLACE_NONE;
    }
    if (full && r->o.policy.possible[0]) {
        place = NORI_PLACE_EDGE;
    }
    *wait = r->o.hedge_s > 0   ? r->o.hedge_s
            : r->o.hedge_s < 0 ? INFINITY
                               : nori_policy_hedge(r->policy, place);
    pthread_mutex_unlock(&r->lock);
    if (*wait <= 0) {
        *wait = 1; /* nothing is known yet */
    }
    return place;
}

nori_status nori_route_run(nori_route *r, const nori_tensor *const *inputs, size_t n_in,
                           nori_tensor **outputs, size_t n_out, nori_route_result *result,
                           nori_error *err)
{
    NORI__GIVEN(err, r);
    NORI__GIVEN_LIST(err, inputs, n_in);
    NORI__GIVEN_LIST(err, outputs, n_out);
    nori_route_result own = {.size = sizeof(own)};
    nori_error inner = {0};
    double start = nori__route_now(), wait, took;
    nori_place also;
    if (n_out != r->o.output_count) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "%zu outputs were asked for, the route's model has %zu", n_out,
                          r->o.output_count);
    }
    for (size_t i = 0; i < n_out; i++) {
        outputs[i] = NULL;
    }
    call c = {r, inputs, n_in, n_out, outputs, &own, err ? err : &inner};
    nori_place place = choose(r, &also, &wait);
    own.asked = own.place = place;
    beside(&c, also);
    nori_status s;
    if (place == NORI_PLACE_EDGE || !r->o.policy.possible[0]) {
        s = nori__route_here(r, place, inputs, n_in, outputs, n_out, &took, NULL, c.err);
    } else {
        s = hedged(&c, place, wait);
    }
    own.seconds = nori__route_now() - start;
    if (result) {
        own.size = result->size;
        memcpy(result, &own, result->size < sizeof(own) ? result->size : sizeof(own));
    }
    return s;
}
