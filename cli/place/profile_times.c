/* profile_times.c: measurements as times at fixed shares. */
#include <stdlib.h>

#include "profile.h"

const double profile_shares[PROFILE_SHARES] = {0,   0.01, 0.05, 0.1, 0.2,  0.25, 0.3,  0.4,  0.5,   0.6, 0.7,
                                               0.75, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1};

bool profile_add(profile_samples *s, double v)
{
    if (s->count == s->capacity) {
        size_t wanted = s->capacity ? 2 * s->capacity : 256;
        double *grown = realloc(s->v, wanted * sizeof(*grown));
        if (!grown) {
            return false;
        }
        s->v = grown;
        s->capacity = wanted;
    }
    s->v[s->count++] = v > 0 ? v : 0;
    return true;
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

void profile_settle(profile_samples *s, profile_times *out)
{
    *out = (profile_times){.count = s->count};
    if (s->count > 0) {
        qsort(s->v, s->count, sizeof(*s->v), by_size);
        for (size_t i = 0; i < s->count; i++) {
            out->mean += s->v[i] / (double)s->count;
        }
        for (int i = 0; i < PROFILE_SHARES; i++) { /* straight lines between the samples */
            double at = profile_shares[i] * (double)(s->count - 1);
            size_t k = (size_t)at < s->count - 1 ? (size_t)at : s->count - 1;
            double next = k + 1 < s->count ? s->v[k + 1] : s->v[k];
            out->at[i] = s->v[k] + (next - s->v[k]) * (at - (double)k);
        }
    }
    free(s->v);
    *s = (profile_samples){0};
}

bool profile_as_times(const profile_times *p, nori_times *out)
{
    return p->count > 0 &&
           nori_times_percentiles(out, profile_shares, p->at, PROFILE_SHARES, NULL) == NORI_OK;
}

void profile_free(profile *p)
{
    for (size_t i = 0; i < p->n_nodes; i++) {
        free(p->nodes[i].value);
        free(p->nodes[i].op);
    }
    free(p->nodes);
    free(p->model);
    free(p->provider);
    free(p->cpu);
    free(p->url);
    *p = (profile){0};
}
