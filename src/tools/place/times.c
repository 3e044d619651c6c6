/* times.c: distributions of times as numbers of equal share. */
#include <math.h>
#include <stdlib.h>

#include "base/given.h"
#include "base/base.h"
#include "nori/place.h"

#define N NORI_TIMES_POINTS

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The share below point i: its middle. */
static double share(int i)
{
    return (i + 0.5) / N;
}

void nori_times_constant(nori_times *t, double value)
{
    NORI__ASKED(t, );
    for (int i = 0; i < N; i++) {
        t->at[i] = value;
    }
}

/* Means of the N slices of equal share, so that the mean of all is the mean asked for. With
 * F(x) = 1 - exp(-x), the integral of the quantile -log(1 - p) from a to b is G(b) - G(a),
 * G(p) = (1 - p) log(1 - p) + p. */
static double integral(double p)
{
    return p >= 1 ? 1 : (1 - p) * log1p(-p) + p;
}

void nori_times_exponential(nori_times *t, double mean)
{
    NORI__ASKED(t, );
    for (int i = 0; i < N; i++) {
        t->at[i] = mean * N * (integral((i + 1.0) / N) - integral((double)i / N));
    }
}

nori_status nori_times_samples(nori_times *t, const double *samples, size_t count, nori_error *err)
{
    NORI__GIVEN(err, t);
    NORI__GIVEN_LIST(err, samples, count);
    size_t bytes;
    if (count == 0) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "no times were given");
    }
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(samples[i]) || samples[i] < 0) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "time %zu is %g, at least 0 was expected", i,
                              samples[i]);
        }
    }
    double *sorted = nori__mul_size(count, sizeof(*sorted), &bytes) ? nori__alloc(&nori__malloc, bytes)
                                                                    : NULL;
    if (!sorted) {
        return nori__no_memory(err);
    }
    memcpy(sorted, samples, bytes);
    qsort(sorted, count, sizeof(*sorted), by_size);
    for (int i = 0; i < N; i++) { /* the mean of what falls into the slice, parts of samples too */
        double low = (double)i * (double)count / N, high = (i + 1.0) * (double)count / N, sum = 0;
        for (size_t k = (size_t)low; k < count && (double)k < high; k++) {
            double from = (double)k > low ? (double)k : low;
            double to = (double)k + 1 < high ? (double)k + 1 : high;
            sum += (to - from) * sorted[k];
        }
        t->at[i] = sum / (high - low);
    }
    nori__release(&nori__malloc, sorted, bytes);
    return NORI_OK;
}

nori_status nori_times_percentiles(nori_times *t, const double *p, const double *values,
                                   size_t count, nori_error *err)
{
    NORI__GIVEN(err, t);
    NORI__GIVEN_LIST(err, p, count);
    NORI__GIVEN_LIST(err, values, count);
    if (count == 0) {
        return nori__fail(err, NORI_ERROR_ARGUMENT, "no percentiles were given");
    }
    for (size_t i = 0; i < count; i++) {
        bool rising = i == 0 || (p[i] > p[i - 1] && values[i] >= values[i - 1]);
        if (!(p[i] >= 0 && p[i] <= 1) || !isfinite(values[i]) || values[i] < 0 || !rising) {
            return nori__fail(err, NORI_ERROR_ARGUMENT,
                              "percentile %zu (%g: %g): rising shares from 0 to 1 and rising times of "
                              "at least 0 were expected", i, p[i], values[i]);
        }
    }
    for (int i = 0; i < N; i++) {
        double at = share(i);
        size_t k = 0;
        while (k < count && p[k] < at) {
            k++;
        }
        t->at[i] = k == 0       ? values[0]
                   : k == count ? values[count - 1]
                                : values[k - 1] + (values[k] - values[k - 1]) * (at - p[k - 1]) /
                                                      (p[k] - p[k - 1]);
    }
    return NORI_OK;
}

double nori_times_mean(const nori_times *t)
{
    NORI__ASKED(t, 0.0);
    double sum = 0;
    for (int i = 0; i < N; i++) {
        sum += t->at[i];
    }
    return sum / N;
}

double nori_times_cv2(const nori_times *t)
{
    NORI__ASKED(t, 0.0);
    double mean = nori_times_mean(t), sum = 0;
    for (int i = 0; i < N; i++) {
        sum += (t->at[i] - mean) * (t->at[i] - mean);
    }
    return mean > 0 ? sum / N / (mean * mean) : 0;
}

/* Straight lines between the middles of the slices. */
double nori_times_quantile(const nori_times *t, double p)
{
    NORI__ASKED(t, 0.0);
    double at = p * N - 0.5;
    if (at <= 0) {
        return t->at[0];
    }
    if (at >= N - 1) {
        return t->at[N - 1];
    }
    int i = (int)at;
    return t->at[i] + (t->at[i + 1] - t->at[i]) * (at - i);
}

double nori_times_within(const nori_times *t, double limit)
{
    NORI__ASKED(t, 0.0);
    int i = 0;
    while (i < N && t->at[i] <= limit) {
        i++;
    }
    return (double)i / N;
}

static bool is_constant(const nori_times *t)
{
    return t->at[0] == t->at[N - 1];
}

void nori_times_add(nori_times *sum, const nori_times *a, const nori_times *b)
{
    NORI__ASKED(sum, );
    NORI__ASKED(a, );
    NORI__ASKED(b, );
    if (is_constant(a) || is_constant(b)) {
        double fixed = is_constant(a) ? a->at[0] : b->at[0];
        const nori_times *other = is_constant(a) ? b : a;
        for (int i = 0; i < N; i++) {
            sum->at[i] = other->at[i] + fixed;
        }
        return;
    }
    size_t bytes = sizeof(double) * N * N;
    double *all = nori__alloc(&nori__malloc, bytes);
    if (!all) { /* as if the two rose together: the same mean, a wider spread */
        for (int i = 0; i < N; i++) {
            sum->at[i] = a->at[i] + b->at[i];
        }
        return;
    }
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++) {
            all[i * N + k] = a->at[i] + b->at[k];
        }
    }
    qsort(all, (size_t)N * N, sizeof(*all), by_size);
    for (int i = 0; i < N; i++) {
        double total = 0;
        for (int k = 0; k < N; k++) {
            total += all[i * N + k];
        }
        sum->at[i] = total / N;
    }
    nori__release(&nori__malloc, all, bytes);
}
