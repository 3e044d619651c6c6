/* policy_times.c: what is known of a place's times: a moving mean, a moving share of late calls, and a
 * window for percentiles. What placement thought fills them first and is forgotten as calls come. */
#include <math.h>
#include <stdlib.h>

#include "tools/route/policy.h"

#define PRIOR_POINTS 32
#define SURPRISE 1.5 /* times more or less than was thought */

void nori__policy_prior(nori__policy_place *p, const nori_times *prior, double deadline)
{
    p->mean = nori_times_mean(prior);
    p->late = deadline > 0 ? 1 - nori_times_within(prior, deadline) : 0;
    for (int i = 0; i < PRIOR_POINTS; i++) {
        p->window[p->count++] = nori_times_quantile(prior, (i + 0.5) / PRIOR_POINTS);
    }
    p->next = p->count;
}

void nori__policy_time(nori__policy_place *p, double seconds, bool answered, double weight,
                       double deadline)
{
    bool known = p->count > 0;
    if (!answered) { /* a failure is no time: a quick one must not look like a quick answer */
        p->late += known ? NORI__POLICY_LATE_WEIGHT * (1 - p->late) : 0;
        p->mean += known && seconds > p->mean ? weight * (seconds - p->mean) : 0;
        return;
    }
    bool late = deadline > 0 && seconds > deadline;
    p->surprised = known && (seconds > p->mean * SURPRISE || seconds * SURPRISE < p->mean);
    p->mean = known ? p->mean + weight * (seconds - p->mean) : seconds;
    p->late += (known ? NORI__POLICY_LATE_WEIGHT : 1) * ((late ? 1 : 0) - p->late);
    p->window[p->next % NORI__POLICY_WINDOW] = seconds;
    p->next = (p->next + 1) % NORI__POLICY_WINDOW;
    p->count += p->count < NORI__POLICY_WINDOW;
    p->told++;
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

double nori__policy_quantile(const nori__policy_place *p, double share)
{
    double sorted[NORI__POLICY_WINDOW];
    if (p->count == 0) {
        return 0;
    }
    memcpy(sorted, p->window, p->count * sizeof(*sorted));
    qsort(sorted, p->count, sizeof(*sorted), by_size);
    size_t at = (size_t)ceil(share * (double)p->count);
    return sorted[at > 0 ? at - 1 : 0];
}
