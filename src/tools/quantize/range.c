/* range.c: the range of reals an integer type should cover, from what was seen.
 *
 * Narrow ranges round finely and clip outliers, wide ones the reverse. Every method works on the
 * histogram in double, in one order, so equal statistics give equal ranges, bit for bit. */
#include <math.h>

#include "tools/quantize/quantize.h"

#define SIDE NORI__BINS

static double edge(const nori__observer *o, int bin)
{
    return ldexp((double)(bin - SIDE), o->exponent);
}

static double clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

/* Share of the numbers in bins that lie wholly outside [low, high]. */
static double share_outside(const nori__observer *o, double low, double high)
{
    uint64_t n = 0;
    for (int i = 0; i < 2 * SIDE; i++) {
        n += edge(o, i + 1) <= low || edge(o, i) > high ? o->bins[i] : 0;
    }
    return o->count ? (double)n / (double)o->count : 0;
}

/* ---- average ---- */

static void average(const nori__observer *o, nori__range *r)
{
    double calls = (double)o->calls;
    r->low = clamp(nori__exact_value(&o->low_sum) / calls, o->min, o->max);
    r->high = clamp(nori__exact_value(&o->high_sum) / calls, o->min, o->max);
}

/* ---- percentile ---- */

static void percentile(const nori__observer *o, double percent, nori__range *r)
{
    double tail = (double)o->count * (1 - clamp(percent, 50, 100) / 100) / 2;
    uint64_t below = 0, above = 0;
    int low = 0, high = 2 * SIDE - 1;
    while (low < high && (double)(below + o->bins[low]) <= tail) {
        below += o->bins[low++];
    }
    while (high > low && (double)(above + o->bins[high]) <= tail) {
        above += o->bins[high--];
    }
    r->low = clamp(edge(o, low), o->min, o->max);
    r->high = clamp(edge(o, high + 1), o->min, o->max);
}

/* ---- entropy ---- */

/* Kullback-Leibler divergence between the first `kept` bins (what lies beyond is put into the last
 * one) and the same after joining them into `levels` steps, each spread again over the bins of it
 * that were not empty (Migacz, "8-bit inference with TensorRT", 2017). */
static double divergence(const double *bins, int count, int kept, int levels)
{
    double beyond = 0, total = 0, sum_q = 0, kl = 0;
    for (int i = 0; i < count; i++) {
        total += bins[i];
        beyond += i >= kept ? bins[i] : 0;
    }
    static const double least = 1e-12; /* stands for a bin that the steps lost */
    for (int s = 0; s < levels; s++) {
        int from = (int)((int64_t)s * kept / levels), to = (int)((int64_t)(s + 1) * kept / levels);
        double mass = 0;
        int filled = 0;
        for (int i = from; i < to; i++) {
            mass += bins[i];
            filled += bins[i] > 0;
        }
        sum_q += mass;
        for (int i = from; i < to; i++) {
            double p = (bins[i] + (i == kept - 1 ? beyond : 0)) / total;
            double q = bins[i] > 0 && filled ? mass / filled : least;
            if (p > 0) {
                kl += p * log(p / q);
            }
        }
    }
    return sum_q > 0 ? kl + log(sum_q) : INFINITY; /* q was not normalized above */
}

static void entropy(const nori__observer *o, int levels, nori__range *r)
{
    double folded[SIDE]; /* by distance from 0 */
    for (int i = 0; i < SIDE; i++) {
        folded[i] = (double)(o->bins[SIDE + i] + o->bins[SIDE - 1 - i]);
    }
    folded[0] -= (double)o->zeros; /* which every range keeps exactly; a clamp makes many */
    bool two_sided = o->min < 0 && o->max > 0;
    int steps = two_sided ? levels / 2 : levels, best = SIDE;
    double least = INFINITY;
    for (int kept = steps; kept <= SIDE; kept += 8) {
        double kl = divergence(folded, SIDE, kept, steps);
        if (kl < least) {
            least = kl;
            best = kept;
        }
    }
    double most = ldexp((double)best, o->exponent);
    r->low = clamp(-most, o->min, o->max);
    r->high = clamp(most, o->min, o->max);
}

/* ---- mean squared error ---- */

/* Uniform steps of width s inside make s^2 / 12; what is clipped, its distance from the edge. */
static double squared_error(const nori__observer *o, double low, double high, double steps)
{
    double step = (high - low) / steps, inside = step * step / 12, sum = 0;
    for (int i = 0; i < 2 * SIDE; i++) {
        if (o->bins[i] == 0) {
            continue;
        }
        double middle = (edge(o, i) + edge(o, i + 1)) / 2;
        double away = middle < low ? low - middle : middle > high ? middle - high : 0;
        sum += (double)o->bins[i] * (away > 0 ? away * away : inside);
    }
    return sum;
}

static void least_squares(const nori__observer *o, double steps, bool symmetric, nori__range *r)
{
    double most = -o->min > o->max ? -o->min : o->max, least = INFINITY;
    double low = symmetric ? -most : o->min < 0 ? o->min : 0;
    double high = symmetric ? most : o->max > 0 ? o->max : 0;
    double best = 1;
    for (int percent = 100; percent >= 20; percent--) {
        double share = percent / 100.0;
        double e = squared_error(o, low * share, high * share, steps);
        if (e < least) {
            least = e;
            best = share;
        }
    }
    r->low = clamp(low * best, o->min, o->max);
    r->high = clamp(high * best, o->min, o->max);
}

nori__range nori__range_choose(const nori__observer *o, nori_range_method method,
                               double percent, nori_type type, bool symmetric)
{
    nori__range r = {0, 0, 0};
    int64_t q_min = 0, q_max = 255;
    if (o->count == 0) {
        return r;
    }
    nori__quant_limits(type, &q_min, &q_max);
    double steps = (double)q_max - (double)q_min;
    r.low = o->min;
    r.high = o->max;
    if (method == NORI_RANGE_AVERAGE) {
        average(o, &r);
    } else if (method == NORI_RANGE_PERCENTILE) {
        percentile(o, percent, &r);
    } else if (method == NORI_RANGE_ENTROPY && steps < SIDE) {
        entropy(o, (int)steps + 1, &r);
    } else if (method == NORI_RANGE_MSE && o->max > o->min) {
        least_squares(o, steps, symmetric, &r);
    }
    r.clipped = share_outside(o, r.low, r.high);
    return r;
}
