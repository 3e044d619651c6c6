/* flips.c: at which bandwidth, payload, round trip and rate the answer between edge and cloud turns,
 * all else unchanged, on the mean. */
#include <math.h>

#include "tools/place/decide.h"

typedef enum knob { BANDWIDTH, PAYLOAD, ROUND_TRIP, RATE, KNOBS } knob;

static const char *const names[KNOBS] = {"bandwidth", "payload", "round trip", "rate"};

static double value_of(const nori_place_question *q, knob k)
{
    switch (k) {
    case BANDWIDTH: return q->up_speed;
    case PAYLOAD: return q->up_bytes;
    case ROUND_TRIP: return nori_times_mean(&q->rtt);
    default: return q->rate;
    }
}

static double wait_at(const nori_place_side *side, double rate)
{
    nori_times wait;
    double load;
    if (side->has_queue) {
        return nori_times_mean(&side->queue);
    }
    return rate <= 0 ? 0 : nori_queue_wait(&side->service, side->servers, rate, &wait, &load)
                           ? nori_times_mean(&wait) : INFINITY;
}

/* Mean of the edge less mean of the cloud with the knob at v: below 0 the edge wins. */
static double lead(const nori_place_question *q, knob k, double v)
{
    double up = q->up_speed > 0 ? q->up_bytes / q->up_speed : 0;
    double down = q->down_speed > 0 ? q->down_bytes / q->down_speed : 0;
    double rtt = nori_times_mean(&q->rtt), rate = q->rate, others = q->cloud_rate;
    switch (k) {
    case BANDWIDTH: /* both ways */
        up *= q->up_speed / v;
        down *= q->up_speed / v;
        break;
    case PAYLOAD: up *= v / q->up_bytes; break;
    case ROUND_TRIP: rtt = v; break;
    default:
        others = others > 0 ? others + v - rate : v; /* the others' calls stay */
        rate = v;
        break;
    }
    double edge = nori_times_mean(&q->edge.service) + wait_at(&q->edge, rate);
    double cloud = nori_times_mean(&q->cloud.service) + nori_times_mean(&q->up) +
                   nori_times_mean(&q->down) + up + down + rtt +
                   wait_at(&q->cloud, others > 0 ? others : rate);
    return isinf(edge) && isinf(cloud) ? 0 : edge - cloud;
}

/* Between a and b, where the sign differs; in logarithms, as these spread over decades. */
static double turn(const nori_place_question *q, knob k, double a, double b)
{
    bool below = lead(q, k, a) < 0;
    for (int i = 0; i < 200 && b / a - 1 > 1e-12; i++) {
        double mid = sqrt(a) * sqrt(b);
        if ((lead(q, k, mid) < 0) == below) {
            a = mid;
        } else {
            b = mid;
        }
    }
    return sqrt(a) * sqrt(b);
}

/* The turn nearest to now, within six decades to either side. */
static bool find_turn(const nori_place_question *q, knob k, double now, double *at)
{
    bool below = lead(q, k, now) < 0;
    for (double reach = 1.1; reach < 1e6; reach *= 1.1) {
        double low = now / reach, high = now * reach;
        if ((lead(q, k, high) < 0) != below) {
            *at = turn(q, k, high / 1.1, high);
            return true;
        }
        if ((lead(q, k, low) < 0) != below) {
            *at = turn(q, k, low, low * 1.1);
            return true;
        }
    }
    return false;
}

/* The lowest rate from which the device's own queue makes it lose where it wins without one. */
static double inversion(const nori_place_question *q)
{
    double service = nori_times_mean(&q->edge.service), at;
    int servers = q->edge.servers < 1 ? 1 : q->edge.servers;
    if (q->edge.has_queue || !q->edge.there || !q->cloud.there || service <= 0 ||
        !(lead(q, RATE, 0) < 0)) {
        return 0;
    }
    double most = servers / service; /* where its load is 1 */
    for (double rate = most / 4096; rate <= most; rate += most / 4096) {
        if (lead(q, RATE, rate) > 0) {
            at = turn(q, RATE, rate - most / 4096 > 0 ? rate - most / 4096 : rate / 2, rate);
            return at;
        }
    }
    return 0;
}

void nori__place_flips(const nori_place_question *q, nori_place_answer *a)
{
    for (int k = 0; k < KNOBS; k++) {
        nori_place_flip *f = &a->flip[k];
        f->what = names[k];
        f->now = value_of(q, (knob)k);
        if (q->edge.there && q->cloud.there && f->now > 0) {
            f->flips = find_turn(q, (knob)k, f->now, &f->at);
        }
    }
    a->inversion = inversion(q);
}
