/* tune.h: what the files of tune/ share. */
#ifndef NORI_TOOLS_TUNE_TUNE_H
#define NORI_TOOLS_TUNE_TUNE_H

#include "plan/chosen.h"
#include "run/run.h"
#include "nori/compile.h"

#define NORI__TUNE_RUNS 25 /* most of a pair of sessions */

/* Times of one way of a layer against the usual one, measured in turns. */
typedef struct nori__tuned_pair {
    double usual_us, us; /* medians of the sums over the layer's nodes */
    double gain;         /* the smaller one of what medians and what minima say */
    bool measured;
} nori__tuned_pair;

/* Nodes that are the same layer. */
typedef struct nori__tuned {
    nori__way_ask ask;
    uint32_t op;
    const char *node;
    size_t nodes;
    uint32_t way;              /* that the session being measured goes */
    uint32_t taken;
    nori__tuned_pair pair[NORI__WAYS_MOST];
} nori__tuned;

struct nori_tuning {
    const nori_allocator *a;
    nori__arena arena;
    nori__tuned *layers;
    size_t n_layers;
    nori__way_noted *steps;    /* that have a choice, in order */
    uint32_t *layer_of;        /* of each of those */
    size_t n_steps;
    nori__way_entry *entries;  /* what a session or plan is given: of each of those steps, at most */
    size_t n_entries;
    nori_tune_report report;
};

/* ---- tune_measure.c ---- */

typedef struct nori__tune_job {
    nori_tuning *t;
    nori_tune_options o;
    nori_session *side[2]; /* the usual one, and another */
    nori_tensor **outputs;
    size_t n_out;
    double *samples[2];    /* microseconds: a row of NORI__TUNE_RUNS for each layer */
    uint64_t start, end;   /* nanoseconds of the clock */
    nori_error *err;
} nori__tune_job;

/* Runs both sides in turns until a time of the clock, at least a few times, and notes of each layer what
 * its way took beside the usual one. */
nori_status nori__tune_layers(nori__tune_job *job, uint64_t until);
/* The same without looking at layers. */
typedef struct nori__tuned_whole {
    double usual_ms, tuned_ms, gain; /* medians */
} nori__tuned_whole;
nori_status nori__tune_whole(nori__tune_job *job, uint64_t until, nori__tuned_whole *out);
/* What several such pairs of sessions say together, into the report. */
void nori__tune_judge(nori_tune_report *report, const nori__tuned_whole *pairs, size_t count);
#define NORI__TUNE_PAIRS 5
#define NORI__TUNE_LEAST_PAIRS 3 /* where time is over */

#endif
