/* route_job.h: what the files of `nori route` share. */
#ifndef NORI_CLI_ROUTE_JOB_H
#define NORI_CLI_ROUTE_JOB_H

#include <pthread.h>
#include <stdatomic.h>

#include "nori/route.h"
#include "place_job.h"
#include "remote.h"

/* One call as it went. */
typedef struct route_call {
    double at, seconds; /* since the beginning */
    nori_place place, asked;
    bool answered, hedged, agrees;
} route_call;

typedef struct route_job {
    cli_args *args;
    nori_model *model;
    nori_session *session, *first; /* the whole model here; the first part of a split */
    nori_model *first_model;
    nori_tensor **in, **wanted;    /* wanted: the device's own answer, where it can run the model */
    size_t n_in, n_out;
    remote *r;
    const char *second;            /* the second part's name on the server */
    const nori_value_info **in_info, **out_info, **feature_info;
    place_job place;               /* profiles, as a question */
    nori_route_options options;
    nori_route *route;
    FILE *log;
    atomic_bool log_failed; /* then nothing is sent any more */
    char when[32];
    uint64_t records, sent, received; /* of the log */
    uint64_t refused;                 /* requests that the server did not answer ... */
    nori_error refusal;               /* ... and the first of them: under its own lock */
    pthread_mutex_t refusal_lock;
    double atol, rtol; /* answers agree with the device's own within these */
    double deadline, rate, seconds;   /* seconds: how long; 0: by calls */
    long calls, callers;
    /* While calls run: */
    pthread_mutex_t lock;
    uint64_t begin_ns;
    long next, done;
    route_call *all;
    size_t capacity;
    nori_error error; /* of the first call without an answer */
} route_job;

int route_prepare(route_job *j);  /* route_prepare.c: models, priors, the route */
void route_close(route_job *j);
int route_calls(route_job *j);    /* route_calls.c: runs them */
int route_report(route_job *j);   /* route_print.c: ends the route, so that nothing is left out */

#endif
