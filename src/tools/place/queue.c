/* queue.c: waiting before servers, from the rate of calls. */
#include <math.h>

#include "base/base.h"
#include "base/given.h"
#include "nori/place.h"

/* Erlang's formula C, the share of calls that wait, from his formula B by its recurrence
 * B(0) = 1, B(k) = a B(k-1) / (k + a B(k-1)): C = B / (1 - load (1 - B)). */
static double erlang_c(int servers, double offered)
{
    double b = 1;
    for (int k = 1; k <= servers; k++) {
        b = offered * b / (k + offered * b);
    }
    return b / (1 - offered / servers * (1 - b));
}

int nori_queue_wait(const nori_times *service, int servers, double rate, nori_times *wait,
                    double *load)
{
    NORI__ASKED(service, 0);
    NORI__ASKED(wait, 0);
    NORI__ASKED(load, 0);
    double mean = nori_times_mean(service), offered = rate * mean;
    servers = servers < 1 ? 1 : servers;
    *load = offered / servers;
    nori_times_constant(wait, 0);
    if (!(*load < 1)) {
        return 0;
    }
    if (offered <= 0) {
        return 1;
    }
    double busy = erlang_c(servers, offered);
    double average = busy * mean / (servers * (1 - *load)) * (1 + nori_times_cv2(service)) / 2;
    /* A share of 1 - busy waits 0; the rest exponentially, with a mean of average / busy. */
    double from = 1 - busy;
    nori_times tail;
    nori_times_exponential(&tail, average / busy);
    double scale = 0;
    for (int i = 0; i < NORI_TIMES_POINTS; i++) {
        double p = (i + 0.5) / NORI_TIMES_POINTS;
        wait->at[i] = p > from ? nori_times_quantile(&tail, (p - from) / busy) : 0;
        scale += wait->at[i] / NORI_TIMES_POINTS;
    }
    for (int i = 0; i < NORI_TIMES_POINTS && scale > 0; i++) {
        wait->at[i] *= average / scale; /* the mean is exact, the ends of the tail are not */
    }
    if (scale == 0) { /* too few wait to show in a point */
        wait->at[NORI_TIMES_POINTS - 1] = average * NORI_TIMES_POINTS;
    }
    return 1;
}
