/* observer.c: streaming statistics of one value. */
#include <math.h>

#include "tools/quantize/quantize.h"

void nori__observer_init(nori__observer *o)
{
    memset(o, 0, sizeof(*o));
    o->min = INFINITY;
    o->max = -INFINITY;
    o->exponent = NORI__LEAST_EXPONENT;
}

static int64_t bin_of(double v, int exponent)
{
    return (int64_t)floor(ldexp(v, -exponent));
}

/* The least exponent whose bins hold v. */
static int exponent_for(double v)
{
    int e;
    if (v == 0) {
        return NORI__LEAST_EXPONENT;
    }
    frexp(v, &e); /* |v| in [2^(e-1), 2^e) */
    e -= 11;      /* |v| < 2048 * 2^(e - 11) */
    if (e > NORI__LEAST_EXPONENT && bin_of(v, e - 1) >= -NORI__BINS && bin_of(v, e - 1) < NORI__BINS) {
        e--; /* the lowest bin has one number more than the highest */
    }
    return e < NORI__LEAST_EXPONENT ? NORI__LEAST_EXPONENT : e;
}

static void grow(nori__observer *o, int exponent)
{
    int by = exponent - o->exponent;
    if (by <= 0) {
        return;
    }
    o->exponent = exponent;
    if (o->count == 0) {
        return;
    }
    by = by > 40 ? 40 : by; /* further shifts change nothing */
    uint64_t old[2 * NORI__BINS];
    memcpy(old, o->bins, sizeof(old));
    memset(o->bins, 0, sizeof(o->bins));
    for (int64_t i = -NORI__BINS; i < NORI__BINS; i++) {
        int64_t to = i >= 0 ? i >> by : -((-i - 1) >> by) - 1; /* floor(i / 2^by) */
        o->bins[to + NORI__BINS] += old[i + NORI__BINS];
    }
}

int nori__observer_exponent(double min, double max)
{
    int a = exponent_for(min), b = exponent_for(max);
    return a > b ? a : b;
}

static void include(nori__observer *o, double low, double high)
{
    grow(o, nori__observer_exponent(low, high));
    o->min = low < o->min ? low : o->min;
    o->max = high > o->max ? high : o->max;
}

void nori__observer_add(nori__observer *o, const float *values, size_t count)
{
    float low = INFINITY, high = -INFINITY;
    size_t finite = 0;
    for (size_t i = 0; i < count; i++) {
        float v = values[i];
        if (isfinite(v)) {
            low = v < low ? v : low;
            high = v > high ? v : high;
            finite++;
        } else {
            o->nan += isnan(v) != 0;
            o->inf += isnan(v) == 0;
        }
    }
    if (finite == 0) {
        return;
    }
    include(o, (double)low + 0.0, (double)high + 0.0); /* -0 and 0 are one */
    nori__exact_add(&o->low_sum, low);
    nori__exact_add(&o->high_sum, high);
    o->calls++;
    const double unit = ldexp(1, -o->exponent);
    for (size_t i = 0; i < count; i++) {
        if (isfinite(values[i])) {
            o->zeros += values[i] == 0;
            o->bins[(int64_t)floor((double)values[i] * unit) + NORI__BINS]++;
        }
    }
    o->count += finite;
}

void nori__observer_merge(nori__observer *o, const nori__observer *other)
{
    o->nan += other->nan;
    o->inf += other->inf;
    if (other->count == 0) {
        return;
    }
    nori__observer copy = *other;
    include(o, other->min, other->max);
    grow(&copy, o->exponent);
    for (int i = 0; i < 2 * NORI__BINS; i++) {
        o->bins[i] += copy.bins[i];
    }
    o->count += other->count;
    o->zeros += other->zeros;
    o->calls += other->calls;
    nori__exact_join(&o->low_sum, &other->low_sum);
    nori__exact_join(&o->high_sum, &other->high_sum);
}
