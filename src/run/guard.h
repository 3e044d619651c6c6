/* guard.h: what stops a run: a flag another thread sets, the clock, too many iterations. Looked at
 * between nodes and before each iteration; one guard serves a run's frames, its subgraphs' too. */
#ifndef NORI_RUN_GUARD_H
#define NORI_RUN_GUARD_H

#include "nori/limits.h"
#include "base/base.h"

typedef struct nori__guard {
    const nori_cancel *cancel; /* NULL: nobody will ask */
    uint64_t run_ms, end_ns;   /* 0: any time */
    uint64_t limit, iterations;
    bool watches; /* there is a flag or a clock to look at */
} nori__guard;

/* options NULL: the environment's limits alone. */
void nori__guard_init(nori__guard *guard, const nori_limits *limits, const nori_run_options *options);
/* Whether to go on: OK, CANCELLED or LIMIT. */
nori_status nori__guard_look(const nori__guard *guard, nori_error *err);
/* The same before an iteration of a Loop or Scan, which is counted. */
nori_status nori__guard_iteration(nori__guard *guard, nori_error *err);

#endif
