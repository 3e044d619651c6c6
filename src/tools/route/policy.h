/* policy.h: what the files of the policy share. */
#ifndef NORI_TOOLS_ROUTE_POLICY_H
#define NORI_TOOLS_ROUTE_POLICY_H

#include "base/base.h"
#include "nori/route.h"

#define NORI__POLICY_WINDOW 128 /* newest times of a place that percentiles are taken from */
#define NORI__POLICY_LATE_WEIGHT (1.0 / 128) /* of the newest call in the share of late ones */

/* What is known of a place. */
typedef struct nori__policy_place {
    double window[NORI__POLICY_WINDOW];
    size_t count, next;
    double mean; /* moving */
    double late; /* moving share that missed the deadline */
    uint64_t told;
    bool surprised; /* the last time was far from what was thought: ask again soon */
} nori__policy_place;

/* policy_times.c */
void nori__policy_prior(nori__policy_place *p, const nori_times *prior, double deadline);
void nori__policy_time(nori__policy_place *p, double seconds, bool answered, double weight,
                       double deadline);
double nori__policy_quantile(const nori__policy_place *p, double share); /* 0: nothing known */

#endif
