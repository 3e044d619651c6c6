/* quantize.h: the parts of the quantizer: arithmetic, what is seen of activations, ranges, and the
 * rewriting of graphs. */
#ifndef NORI_TOOLS_QUANTIZE_QUANTIZE_H
#define NORI_TOOLS_QUANTIZE_QUANTIZE_H

#include "nori/tools.h"
#include "graph/graph.h"

/* ---- arithmetic (arithmetic.c) ---- */

/* Scales are stored as float32; smaller ones would be denormal there. */
#define NORI__QUANT_LEAST_SCALE 0x1p-126f

/* False when the type is none to quantize to. */
bool nori__quant_limits(nori_type type, int64_t *q_min, int64_t *q_max);

/* ---- what is seen of one value (observer.c) ---- */

#define NORI__BINS 2048 /* on either side of 0 */

/* Extremes and a histogram in fixed memory. Bin i, from -NORI__BINS, counts the numbers in
 * [i * 2^exponent, (i + 1) * 2^exponent); the exponent is the least that holds everything seen,
 * and grows by joining pairs of bins, which is exact: the state depends on what was seen alone,
 * never on the order, nor on how it was split into batches or over machines. */
typedef struct nori__observer {
    double min, max;   /* of the finite numbers; min > max: none seen */
    uint64_t count;    /* finite numbers */
    uint64_t nan, inf; /* others: not in the histogram */
    uint64_t zeros;    /* exact zeros, also counted in bin 0 */
    int exponent;
    uint64_t bins[2 * NORI__BINS];
} nori__observer;

void nori__observer_init(nori__observer *o);
void nori__observer_add(nori__observer *o, const float *values, size_t count);
void nori__observer_merge(nori__observer *o, const nori__observer *other);

/* ---- ranges (range.c) ---- */

/* The range of reals that a type with this many steps should cover, by method. */
typedef enum nori__range_method {
    NORI__RANGE_MINMAX,
    NORI__RANGE_PERCENTILE, /* all but a share of the numbers at either end */
    NORI__RANGE_ENTROPY,    /* least Kullback-Leibler divergence of the quantized histogram */
    NORI__RANGE_MSE         /* least mean squared error */
} nori__range_method;

typedef struct nori__range {
    double low, high;
    double clipped; /* share of the numbers seen that lie outside */
} nori__range;

/* percentile: in percent, as 99.99; used by that method alone. */
nori__range nori__range_choose(const nori__observer *o, nori__range_method method,
                               double percentile, nori_type type, bool symmetric);

#endif
