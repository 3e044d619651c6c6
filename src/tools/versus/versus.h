/* versus.h: what the files of versus/ share. */
#ifndef NORI_TOOLS_VERSUS_VERSUS_H
#define NORI_TOOLS_VERSUS_VERSUS_H

#include "nori/tools.h"
#include "run/run.h"

typedef struct versus_side {
    nori_session_options options;
    nori_session *session;
    nori__opened *held; /* the provider's library and environment, kept open between loads */
    size_t n_held;
    nori_tensor **outputs; /* of the first run; reused where the session can write into them */
    bool reuse;
    nori_versus_side times;
    double *block_ms, *block_cpu_ms; /* per round */
    double *runs_ms;                 /* all timed runs */
    size_t n_runs;
} versus_side;

struct nori_versus {
    const nori_allocator *a;
    nori__arena arena;
    nori_env *env;
    versus_side side[2];
    size_t n_out;
    nori_difference *difference; /* per output */
    int loads;
};

/* Sorts values; quantile 0.25, 0.5, 0.75 ... between neighbours. */
double nori__versus_quantile(double *values, size_t count, double quantile);

#endif
