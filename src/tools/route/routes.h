/* routes.h: what the files of the route share. */
#ifndef NORI_TOOLS_ROUTE_ROUTES_H
#define NORI_TOOLS_ROUTE_ROUTES_H

#include <pthread.h>

#include "graph/tensor.h"
#include "nori/route.h"

/* Requests that nobody waits for any more, at most; with so many under way the server is not asked. */
#define NORI__ROUTE_MOST 16

struct nori_route {
    nori_route_options o;
    nori_policy *policy;
    pthread_mutex_t lock, log_lock; /* lock: all that follows, and the policy */
    pthread_cond_t changed;         /* a job ended */
    size_t far_jobs, jobs;          /* under way */
    bool probing, stopping;
};

/* One call to one place, in a thread of its own. Whoever started it and its thread each hold a
 * reference. */
typedef struct nori__route_job {
    nori_route *r;
    nori_place place;
    nori_tensor **in, **out;
    size_t n_in, n_out;
    nori_status status;
    nori_error err;
    double seconds;
    bool done;
    bool overdue; /* the policy was told that it is: a failure that comes later is the same one */
    int refs;
} nori__route_job;

double nori__route_now(void);
/* Copies the inputs and starts. NULL: it could not be (err says why). The caller holds a reference. */
nori__route_job *nori__route_start(nori_route *r, nori_place place, const nori_tensor *const *inputs,
                                   size_t n_in, size_t n_out, nori_error *err);
void nori__route_release(nori__route_job *job);
/* The same in the calling thread; out[] are NULL. The policy is told. job: the one it is for, or NULL. */
nori_status nori__route_here(nori_route *r, nori_place place, const nori_tensor *const *inputs, size_t n_in,
                             nori_tensor **out, size_t n_out, double *seconds, const nori__route_job *job,
                             nori_error *err);
/* Asks in a thread whether the server is back. r->lock is held. */
void nori__route_probe(nori_route *r);

#endif
