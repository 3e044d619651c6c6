/* weight_fit.c: scales and integers of weights, block by block.
 *
 * HQQ (Badri and Shaji, "Half-quadratic quantization", 2023) looks for a scale and a zero point that
 * leave few large errors rather than a small sum of squares: errors are shrunk towards 0 by the
 * proximal operator of |e|^p, and the scale is fitted to what is left. Zero points are integers here,
 * as the files ask for. GPTQ (Frantar and others, 2022) rounds a column's weights one after another and
 * moves what each error does to the sums into those to come. */
#include <math.h>

#include "tools/quantize/weight_fit.h"

#define SHARES 20     /* of the range that are tried, in steps of 2.5 % */
#define HQQ_ROUNDS 20
#define HQQ_P 0.7
#define HQQ_BETA 10.0 /* over the mean size of weights; grows by HQQ_KAPPA */
#define HQQ_KAPPA 1.05

static double error_of(const double *v, int64_t count, const nori_quant *quant)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double e = v[i] - nori_dequantize_number(quant, nori_quantize_number(quant, v[i], NULL));
        sum += e * e;
    }
    return sum;
}

static nori_status of_share(const double *v, int64_t count, double share, nori_type type, bool symmetric,
                            nori_quant *quant, nori_error *err)
{
    double low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        low = v[i] < low ? v[i] : low;
        high = v[i] > high ? v[i] : high;
    }
    *quant = (nori_quant){.size = sizeof(*quant)};
    NORI__TRY(nori_quant_range(type, low * share, high * share, symmetric, quant, err));
    quant->scale = (double)(float)quant->scale; /* as stored */
    return NORI_OK;
}

/* Clipping the largest few of a block often costs less than coarse steps for all the rest. */
static nori_status least_squares(const double *v, int64_t count, nori_type type, bool symmetric,
                                 nori_quant *best, nori_error *err)
{
    double least = INFINITY;
    for (int t = 0; t < SHARES; t++) {
        nori_quant q;
        NORI__TRY(of_share(v, count, 1 - t * 0.025, type, symmetric, &q, err));
        double e = error_of(v, count, &q);
        if (e < least) {
            least = e;
            *best = q;
        }
    }
    return NORI_OK;
}

/* Sum of |e|^p: what HQQ makes small. */
static double sparse_error(const double *v, int64_t count, const nori_quant *quant)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        double e = v[i] - nori_dequantize_number(quant, nori_quantize_number(quant, v[i], NULL));
        sum += pow(fabs(e), HQQ_P);
    }
    return sum;
}

static void half_quadratic(const double *v, int64_t count, bool symmetric, nori_quant *quant)
{
    nori_quant q = *quant;
    double least = sparse_error(v, count, &q), mean = 0;
    for (int64_t i = 0; i < count; i++) {
        mean += fabs(v[i]) / (double)count;
    }
    double beta = HQQ_BETA / (mean > 0 ? mean : 1);
    for (int round = 0; round < HQQ_ROUNDS; round++, beta *= HQQ_KAPPA) {
        double up = 0, down = 0, shift = 0;
        for (int64_t i = 0; i < count; i++) {
            int64_t n = nori_quantize_number(&q, v[i], NULL);
            double e = v[i] - nori_dequantize_number(&q, n), size = fabs(e);
            double less = size > 0 ? size - pow(size, HQQ_P - 1) / (beta * beta) : 0;
            double target = v[i] - (less > 0 ? copysign(less, e) : 0);
            double step = (double)(n - q.zero_point);
            up += target * step;
            down += step * step;
            shift += (double)n - target / q.scale;
        }
        double scale = down > 0 ? (double)(float)(up / down) : q.scale;
        if (!(scale >= (double)NORI__QUANT_LEAST_SCALE)) {
            break;
        }
        q.scale = scale;
        if (!symmetric) {
            double z = nearbyint(shift / (double)count);
            q.zero_point = z < (double)q.q_min ? q.q_min : z > (double)q.q_max ? q.q_max : (int64_t)z;
        }
        double e = sparse_error(v, count, &q);
        if (e >= least) {
            break;
        }
        least = e;
        *quant = q;
    }
}

static nori_status fit_block(nori_quantize_rounding how, const double *v, int64_t count, nori_type type,
                             bool symmetric, nori_quant *quant, nori_error *err)
{
    if (how == NORI_ROUNDING_NEAREST) {
        return of_share(v, count, 1, type, symmetric, quant, err);
    }
    NORI__TRY(least_squares(v, count, type, symmetric, quant, err));
    if (how == NORI_ROUNDING_HQQ) {
        half_quadratic(v, count, symmetric, quant);
    }
    return NORI_OK;
}

/* ---- a column ---- */

static void round_column(const nori_quant *quants, int64_t block, double *v, int64_t rows,
                         const double *factor, int32_t *integers)
{
    for (int64_t i = 0; i < rows; i++) {
        const nori_quant *q = &quants[i / block];
        int64_t n = nori_quantize_number(q, v[i], NULL);
        integers[i] = (int32_t)n;
        if (factor) {
            const double *row = factor + i * rows;
            double e = (v[i] - nori_dequantize_number(q, n)) / row[i];
            for (int64_t k = i + 1; k < rows; k++) {
                v[k] -= e * row[k];
            }
        }
    }
}

nori_status nori__q_fit(nori__quantizer *q, const nori__q_matrix *m, int64_t block, nori_type type,
                        bool symmetric, const double *factor, nori__q_fitted *f)
{
    double signal = 0, noise = 0;
    *f = (nori__q_fitted){.block = block > 0 ? block : m->rows > 0 ? m->rows : 1};
    nori__arena_init(&f->arena, q->allocator);
    f->blocks = (m->rows + f->block - 1) / f->block;
    size_t n_quants, n_integers;
    if (!nori__mul_size((size_t)m->columns, (size_t)f->blocks, &n_quants) ||
        !nori__mul_size((size_t)m->columns, (size_t)m->rows, &n_integers)) {
        return nori__no_memory(q->err);
    }
    f->quants = nori__arena_array(&f->arena, n_quants, sizeof(*f->quants));
    f->integers = nori__arena_array(&f->arena, n_integers, sizeof(*f->integers));
    double *v = nori__arena_array(&f->arena, (size_t)m->rows, sizeof(*v));
    if (!f->quants || !f->integers || !v) {
        return nori__no_memory(q->err);
    }
    for (int64_t c = 0; c < m->columns; c++) {
        nori_quant *quants = f->quants + c * f->blocks;
        int32_t *integers = f->integers + c * m->rows;
        for (int64_t i = 0; i < m->rows; i++) {
            v[i] = nori__tensor_get_f64(m->w, i * m->row_step + c * m->column_step);
        }
        for (int64_t b = 0; b < f->blocks; b++) {
            int64_t first = b * f->block, left = m->rows - first;
            NORI__TRY(fit_block(q->options->rounding, v + first, left < f->block ? left : f->block, type,
                                symmetric, &quants[b], q->err));
        }
        round_column(quants, f->block, v, m->rows, factor, integers);
        for (int64_t i = 0; i < m->rows; i++) {
            double w = nori__tensor_get_f64(m->w, i * m->row_step + c * m->column_step);
            double e = w - nori_dequantize_number(&quants[i / f->block], integers[i]);
            signal += w * w;
            noise += e * e;
        }
    }
    f->sqnr = noise > 0 ? 10 * log10(signal / noise) : INFINITY;
    return NORI_OK;
}
