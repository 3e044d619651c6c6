/* route_job.c: a call to one place, here or in a thread of its own. */
#include "platform/platform.h"
#include "tools/route/routes.h"

double nori__route_now(void)
{
    return (double)nori__now_ns() / 1e9;
}

static int stopped(void *user)
{
    nori_route *r = user;
    pthread_mutex_lock(&r->lock);
    bool yes = r->stopping;
    pthread_mutex_unlock(&r->lock);
    return yes;
}

static void write_log(nori_route *r, const char *what, nori_place place, const nori_route_traffic *traffic,
                      double seconds, bool answered)
{
    if (r->o.log) {
        nori_route_record record = {.size = sizeof(record), .what = what, .place = place,
                                    .model = place == NORI_PLACE_SPLIT ? "second" : "model",
                                    .traffic = *traffic, .seconds = seconds, .answered = answered};
        pthread_mutex_lock(&r->log_lock);
        r->o.log(r->o.log_user, &record);
        pthread_mutex_unlock(&r->log_lock);
    }
}

/* ---- the three places ---- */

static nori_status send_to(nori_route *r, nori_place place, const nori_tensor *const *inputs, size_t n_in,
                           nori_tensor **out, size_t n_out, nori_error *err)
{
    nori_route_traffic traffic = {0};
    double start = nori__route_now();
    nori_status s = r->o.infer(r->o.far_user, place == NORI_PLACE_SPLIT, inputs, n_in, out, n_out, stopped,
                               r, &traffic, err);
    write_log(r, "infer", place, &traffic, nori__route_now() - start, s == NORI_OK);
    return s;
}

static nori_status divided(nori_route *r, const nori_tensor *const *inputs, size_t n_in, nori_tensor **out,
                           size_t n_out, nori_error *err)
{
    size_t n = nori_session_output_count(r->o.first), bytes = (n + 1) * sizeof(nori_tensor *);
    nori_tensor **features = nori__alloc_zero(&nori__malloc, bytes);
    if (!features) {
        return nori__no_memory(err);
    }
    nori_status s = nori_session_run(r->o.first, inputs, n_in, features, n, err);
    if (s == NORI_OK) {
        s = send_to(r, NORI_PLACE_SPLIT, (const nori_tensor *const *)features, n, out, n_out, err);
    }
    for (size_t i = 0; i < n; i++) {
        nori_tensor_free(features[i]);
    }
    nori__release(&nori__malloc, features, bytes);
    return s;
}

nori_status nori__route_here(nori_route *r, nori_place place, const nori_tensor *const *inputs, size_t n_in,
                             nori_tensor **out, size_t n_out, double *seconds, const nori__route_job *job,
                             nori_error *err)
{
    double start = nori__route_now();
    nori_status s = place == NORI_PLACE_EDGE ? nori_session_run(r->o.edge, inputs, n_in, out, n_out, err)
                    : place == NORI_PLACE_SPLIT ? divided(r, inputs, n_in, out, n_out, err)
                                                : send_to(r, place, inputs, n_in, out, n_out, err);
    double now = nori__route_now();
    *seconds = now - start;
    if (s != NORI_ERROR_CANCELLED) { /* given up by us: says nothing of the place */
        pthread_mutex_lock(&r->lock);
        if (s == NORI_OK || !job || !job->overdue) {
            nori_policy_told(r->policy, place, *seconds, s == NORI_OK, now);
        }
        pthread_mutex_unlock(&r->lock);
    }
    return s;
}

/* ---- jobs ---- */

static void free_job(nori__route_job *job)
{
    for (size_t i = 0; job->in && i < job->n_in; i++) {
        nori_tensor_free(job->in[i]);
    }
    for (size_t i = 0; job->out && i < job->n_out; i++) {
        nori_tensor_free(job->out[i]);
    }
    nori__release(&nori__malloc, job->in, (job->n_in + 1) * sizeof(*job->in));
    nori__release(&nori__malloc, job->out, (job->n_out + 1) * sizeof(*job->out));
    nori__release(&nori__malloc, job, sizeof(*job));
}

void nori__route_release(nori__route_job *job)
{
    nori_route *r = job->r;
    pthread_mutex_lock(&r->lock);
    bool last = --job->refs == 0;
    pthread_mutex_unlock(&r->lock);
    if (last) {
        free_job(job);
    }
}

static void *run_job(void *user)
{
    nori__route_job *job = user;
    nori_route *r = job->r;
    bool far = job->place != NORI_PLACE_EDGE;
    double seconds;
    nori_status s = nori__route_here(r, job->place, (const nori_tensor *const *)job->in, job->n_in, job->out,
                                     job->n_out, &seconds, job, &job->err);
    pthread_mutex_lock(&r->lock);
    job->status = s;
    job->seconds = seconds;
    job->done = true;
    bool last = --job->refs == 0;
    pthread_mutex_unlock(&r->lock);
    if (last) {
        free_job(job);
    }
    pthread_mutex_lock(&r->lock); /* only now may the route go */
    r->jobs--;
    r->far_jobs -= far;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* A thread that nobody joins; false: none can be had. */
static bool detach(void *(*body)(void *), void *user)
{
    pthread_attr_t attr;
    pthread_t thread;
    if (pthread_attr_init(&attr) != 0) {
        return false;
    }
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    bool ok = pthread_create(&thread, &attr, body, user) == 0;
    pthread_attr_destroy(&attr);
    return ok;
}

nori__route_job *nori__route_start(nori_route *r, nori_place place, const nori_tensor *const *inputs,
                                   size_t n_in, size_t n_out, nori_error *err)
{
    nori__route_job *job = nori__alloc_zero(&nori__malloc, sizeof(*job));
    if (!job) {
        (void)nori__no_memory(err);
        return NULL;
    }
    *job = (nori__route_job){.r = r, .place = place, .n_in = n_in, .n_out = n_out, .refs = 2};
    job->in = nori__alloc_zero(&nori__malloc, (n_in + 1) * sizeof(*job->in));
    job->out = nori__alloc_zero(&nori__malloc, (n_out + 1) * sizeof(*job->out));
    nori_status s = job->in && job->out ? NORI_OK : nori__no_memory(err);
    for (size_t i = 0; s == NORI_OK && i < n_in; i++) {
        s = inputs[i] ? nori__tensor_copy(&nori__malloc, inputs[i], &job->in[i], err) : NORI_OK;
    }
    if (s != NORI_OK) {
        free_job(job);
        return NULL;
    }
    pthread_mutex_lock(&r->lock);
    r->jobs++;
    r->far_jobs += place != NORI_PLACE_EDGE;
    bool started = detach(run_job, job);
    if (!started) {
        r->jobs--;
        r->far_jobs -= place != NORI_PLACE_EDGE;
    }
    pthread_mutex_unlock(&r->lock);
    if (!started) {
        free_job(job);
        (void)nori__fail(err, NORI_ERROR_LIMIT, "no thread can be had for a call");
        return NULL;
    }
    return job;
}

/* ---- probes ---- */

static void *run_probe(void *user)
{
    nori_route *r = user;
    nori_route_traffic traffic = {0};
    nori_error err = {0};
    double start = nori__route_now();
    bool answered = r->o.probe(r->o.far_user, &traffic, &err) == NORI_OK;
    double now = nori__route_now();
    write_log(r, "probe", NORI_PLACE_CLOUD, &traffic, now - start, answered);
    pthread_mutex_lock(&r->lock);
    nori_policy_probed(r->policy, answered, now);
    r->probing = false;
    r->jobs--;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

void nori__route_probe(nori_route *r)
{
    double now = nori__route_now();
    if (r->probing || !nori_policy_probe_due(r->policy, now)) {
        return;
    }
    if (!r->o.probe) {
        nori_policy_probed(r->policy, 1, now);
        return;
    }
    r->probing = true;
    r->jobs++;
    if (!detach(run_probe, r)) {
        r->probing = false;
        r->jobs--;
    }
}
