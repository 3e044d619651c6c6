/* perturb.c: samples made from samples, for who has but a few. */
#include "perturb.h"

#include <math.h>

#define FEW 8 /* numbers: a setting rather than data */

/* SplitMix64. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double even(uint64_t *state) /* in [-1, 1) */
{
    return (double)(next(state) >> 11) * 0x1p-52 - 1;
}

static void change(float *v, int64_t count, uint64_t seed)
{
    double low = INFINITY, high = -INFINITY, sum = 0, squares = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(v[i])) {
            low = v[i] < low ? (double)v[i] : low;
            high = v[i] > high ? (double)v[i] : high;
            sum += (double)v[i];
            squares += (double)v[i] * (double)v[i];
            finite++;
        }
    }
    if (finite == 0) {
        return;
    }
    double mean = sum / (double)finite, variance = squares / (double)finite - mean * mean;
    double gain = 1 + 0.25 * even(&seed), shift = mean * (1 - gain) * 0.5;
    double noise = 0.1 * sqrt(variance > 0 ? variance : 0);
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(v[i]) && v[i] != 0) {
            double n = (double)v[i] * gain + shift + noise * even(&seed);
            v[i] = (float)(n < low ? low : n > high ? high : n);
        }
    }
}

/* Samples may lie in memory that others read: what is changed is a copy. */
static bool replace(nori_tensor **t, uint64_t seed, nori_error *err)
{
    nori_tensor *copy = NULL;
    int64_t count = nori_tensor_elements(*t);
    if (nori_tensor_create(NULL, NORI_FLOAT, nori_tensor_rank(*t), nori_tensor_dims(*t), &copy,
                           err) != NORI_OK) {
        return false;
    }
    float *to = nori_tensor_data(copy);
    const float *from = nori_tensor_const_data(*t);
    for (int64_t i = 0; i < count; i++) {
        to[i] = from[i];
    }
    change(to, count, seed);
    nori_tensor_free(*t);
    *t = copy;
    return true;
}

int cli_perturb_get(void *user, size_t index, nori_tensor **inputs, nori_error *err)
{
    cli_perturb *p = user;
    size_t have = cli_samples_count(p->samples);
    if (index < have || index >= p->wanted || have == 0) {
        return index < have ? cli_samples_get(p->samples, index, inputs, err) : 0;
    }
    int got = cli_samples_get(p->samples, index % have, inputs, err);
    for (size_t i = 0; got > 0 && i < p->inputs; i++) {
        nori_tensor *t = inputs[i];
        if (t && nori_tensor_kind(t) == NORI_KIND_TENSOR && nori_tensor_type(t) == NORI_FLOAT &&
            nori_tensor_elements(t) >= FEW && !replace(&inputs[i], index * 64 + i + 1, err)) {
            got = -1;
        }
    }
    return got;
}
