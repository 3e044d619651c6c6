/* route.h: each call goes to the device, to a server, or first to the one and then to the other, by what
 * calls have been taking.
 *
 * A policy is the decision alone, without threads or clocks: it is told what calls took and says where
 * the next one goes. A route does it with sessions and a way to a server: it hedges a late answer of the
 * server by starting the device, keeps away from a network that is gone, and says what left the device.
 * Times are in seconds, on any clock that does not go back. */
#ifndef NORI_ROUTE_H
#define NORI_ROUTE_H

#include "nori/place.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the policy --------------------------------------------------------------------------- */

#define NORI_PLACES 3 /* edge, cloud, split: nori_place less 1 */

typedef struct nori_policy_options {
    size_t size;                 /* sizeof, set by _default */
    int possible[NORI_PLACES];   /* 1: there is such a place, and the rules allow it */
    int has_prior[NORI_PLACES];
    nori_times prior[NORI_PLACES]; /* totals as nori_place_decide tells them, until calls were measured */
    double deadline;             /* seconds; 0: none */
    double percentile;           /* of calls that must keep it; default 0.99 */
    double margin;               /* share that another place must be better by; default 0.1 */
    int dwell;                   /* calls a place keeps at least; default 5 */
    double weight;               /* of the newest call in the moving mean; default 0.2 */
    double explore;              /* share of calls that also ask a place not in use; default 0.02 */
    int failures;                /* so many in a row: the server is not called any more; default 2 */
    double retry_s; /* until it is asked whether it is back, doubling up to 16 times; default 1 */
} nori_policy_options;
NORI_API void nori_policy_options_default(nori_policy_options *options);

/* One thread at a time. */
typedef struct nori_policy nori_policy;
/* Errors: ARGUMENT (no place is possible, numbers out of range), MEMORY. */
NORI_API nori_status nori_policy_create(const nori_policy_options *options, nori_policy **policy,
                                        nori_error *error);
NORI_API void nori_policy_free(nori_policy *policy);
/* Where the next call goes. *also (may be NULL): a place that should be measured with the same call, its
 * answer not being waited for; or NORI_PLACE_NONE. */
NORI_API nori_place nori_policy_choose(nori_policy *policy, double now, nori_place *also);
/* What a call took there. answered 0: there was no answer, and seconds is what was lost waiting. */
NORI_API void nori_policy_told(nori_policy *policy, nori_place place, double seconds, int answered,
                               double now);
/* A call there has no answer yet, and the device took over: several in a row are as failures. What it
 * takes in the end is told by nori_policy_told. */
NORI_API void nori_policy_overdue(nori_policy *policy, nori_place place, double now);
/* While the server is not called: 1 when it is time to ask whether it is back; then tell what came of it. */
NORI_API int nori_policy_probe_due(nori_policy *policy, double now);
NORI_API void nori_policy_probed(nori_policy *policy, int answered, double now);
/* When a hedge should start: how long nearly all answers of a place take (their p95), or earlier where
 * the edge could not keep the deadline otherwise. */
NORI_API double nori_policy_hedge(const nori_policy *policy, nori_place place);

typedef struct nori_policy_view {
    size_t size;                /* sizeof, set by the caller */
    nori_place place;           /* in use */
    int open;                   /* 1: the server is not called */
    uint64_t calls, switches;
    double mean[NORI_PLACES], p50[NORI_PLACES], p95[NORI_PLACES]; /* as estimated; 0: nothing known */
    double within[NORI_PLACES]; /* share that keeps the deadline, as estimated */
} nori_policy_view;
NORI_API void nori_policy_look(const nori_policy *policy, nori_policy_view *view);

/* ---- calls of the past -------------------------------------------------------------------- */

/* What a call took, or would have taken, at each place; below 0: no answer was to be had there. */
typedef struct nori_replay_call {
    double at;                   /* when; not before the call before */
    double seconds[NORI_PLACES];
} nori_replay_call;

/* Who decides. */
typedef enum nori_replay_who {
    NORI_REPLAY_EDGE,   /* always there, and so on */
    NORI_REPLAY_CLOUD,
    NORI_REPLAY_SPLIT,
    NORI_REPLAY_POLICY, /* a policy that is told what it measured itself, with hedges as a route has them */
    NORI_REPLAY_ORACLE  /* one that knows all calls before they come: the least cost there is */
} nori_replay_who;

typedef struct nori_replay_options {
    size_t size;                  /* sizeof, set by _default */
    nori_policy_options policy;   /* possible and deadline hold for all */
    double late_s;                /* what a call beyond the deadline costs more; default: ten deadlines */
    double switch_s;              /* what another place than for the call before costs; default 0 */
    double lost_s;                /* waited in vain where a server did not answer; default 1; then the edge */
    double price[NORI_PLACES];    /* of a call */
} nori_replay_options;
NORI_API void nori_replay_options_default(nori_replay_options *options);

typedef struct nori_replay_result {
    size_t size;                  /* sizeof, set by the caller */
    uint64_t calls, hits, switches; /* hits: within the deadline; without one, answered */
    uint64_t at[NORI_PLACES];     /* who was asked */
    uint64_t hedged, lost;        /* lost: no answer anywhere */
    double mean_s, p99_s;
    double cost_s, regret_s;      /* time, late_s and switch_s added up; what the oracle has less of it */
    double price;
} nori_replay_result;
/* Goes through the calls as if it had been there. chosen: NULL, or count entries: who was asked. Errors:
 * ARGUMENT (no calls, times that go back or are not finite, a place that is not possible), MEMORY. */
NORI_API nori_status nori_replay(const nori_replay_options *options, nori_replay_who who,
                                 const nori_replay_call *calls, size_t count, nori_place *chosen,
                                 nori_replay_result *result, nori_error *error);

/* ---- the route ---------------------------------------------------------------------------- */

/* What went over the network for one request. */
typedef struct nori_route_traffic {
    uint64_t sent_bytes, received_bytes;
} nori_route_traffic;
/* Asked by a transport now and then: 1: nobody waits for the answer any more. */
typedef int (*nori_route_stopped)(void *user);

typedef struct nori_route_record {
    size_t size;
    const char *what;     /* infer, probe */
    const char *model;    /* what ran there: model or second */
    nori_place place;
    nori_route_traffic traffic;
    double seconds;
    int answered;
} nori_route_record;

typedef struct nori_route_options {
    size_t size;          /* sizeof, set by _default */
    nori_policy_options policy;
    nori_session *edge;   /* the whole model; NULL: the device cannot run it */
    nori_session *first;  /* the first part of a split; its outputs are sent, in their order. Or NULL */
    /* A request to the server: the whole model (second 0) or the second part. outputs become new tensors.
     * Called from threads of the route, several at once. NULL: there is no server. */
    nori_status (*infer)(void *user, int second, const nori_tensor *const *inputs, size_t input_count,
                         nori_tensor **outputs, size_t output_count, nori_route_stopped stopped,
                         void *stopped_user, nori_route_traffic *traffic, nori_error *error);
    /* Whether the server answers at all; NULL: the next call finds out. */
    nori_status (*probe)(void *user, nori_route_traffic *traffic, nori_error *error);
    void *far_user;
    size_t output_count;  /* of the model */
    double hedge_s;       /* the edge starts when the server has not answered by then; 0: by what was
                             measured; below 0: never */
    int raw_stays;        /* 1: inputs may not leave: no cloud */
    int features_stay;    /* 1: nothing computed from them may either: no split. With both nothing is sent,
                             probes neither */
    /* May be NULL: everything that left the device, after it did: bytes, never content. Called from
     * threads of the route, one at a time. */
    void (*log)(void *user, const nori_route_record *record);
    void *log_user;
} nori_route_options;
NORI_API void nori_route_options_default(nori_route_options *options);

/* Any number of threads may run one route. Sessions must outlive it. */
typedef struct nori_route nori_route;
NORI_API nori_status nori_route_create(const nori_route_options *options, nori_route **route,
                                       nori_error *error);
/* Waits for requests that are still under way. */
NORI_API void nori_route_free(nori_route *route);

typedef struct nori_route_result {
    size_t size;     /* sizeof, set by the caller */
    nori_place place; /* whose answer it is */
    nori_place asked; /* who was asked first */
    int hedged;      /* 1: the edge was started because the server was late or failed */
    double seconds;
} nori_route_result;
/* One call. outputs become new tensors that the caller frees. Inputs may be written to again when it
 * returns: what is still being sent is a copy. Errors: those of the session, and of the server where
 * there is no edge. result may be NULL. */
NORI_API nori_status nori_route_run(nori_route *route, const nori_tensor *const *inputs,
                                    size_t input_count, nori_tensor **outputs, size_t output_count,
                                    nori_route_result *result, nori_error *error);
NORI_API void nori_route_look(nori_route *route, nori_policy_view *view);

#ifdef __cplusplus
}
#endif
#endif
