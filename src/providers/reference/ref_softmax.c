/* ref_softmax.c: Softmax, LogSoftmax, Hardmax.
 *
 * The largest value is subtracted first, so finite inputs do not overflow; sums are in double. A NaN
 * or +infinity in a line makes the line NaN, as does a line of -infinity alone (numpy's results);
 * Hardmax marks the first of equal maxima, and the first NaN. Before opset 13 the tensor is seen as
 * 2-D, split at the axis. A scalar is one line of one element. */
#include <math.h>

#include "ops/families.h"
#include "ops/reduce.h"
#include "providers/reference/ref.h"

enum { GRAIN = 8192 };

typedef enum softmax_kind { SOFTMAX, LOG_SOFTMAX, HARDMAX } softmax_kind;

typedef struct job {
    const nori_tensor *x;
    nori_tensor *y;
    softmax_kind kind;
    nori__ref_split s;
    int64_t pieces; /* blocks of columns in one outer step */
} job;

/* NaN stays once it is there. */
static double larger(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

/* ---- lines that lie side by side in memory ---- */

static void line_f32(const job *j, int64_t at)
{
    const float *x = (const float *)j->x->data + at;
    float *y = (float *)j->y->data + at;
    int64_t n = j->s.length;
    float max = x[0];
    for (int64_t i = 1; i < n; i++) {
        max = x[i] > max || isnan(x[i]) ? x[i] : max;
    }
    double sum = 0;
    if (j->kind == LOG_SOFTMAX) {
        for (int64_t i = 0; i < n; i++) {
            sum += (double)expf(x[i] - max);
        }
        double shift = (double)max + log(sum);
        for (int64_t i = 0; i < n; i++) {
            y[i] = (float)((double)x[i] - shift);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        y[i] = expf(x[i] - max);
        sum += (double)y[i];
    }
    float factor = (float)(1 / sum);
    for (int64_t i = 0; i < n; i++) {
        y[i] *= factor;
    }
}

static void line_any(const job *j, int64_t at)
{
    double block[NORI__REF_BLOCK], max = 0, sum = 0;
    int64_t n = j->s.length;
    for (int64_t i = 0; i < n; i += NORI__REF_BLOCK) {
        int64_t m = n - i < NORI__REF_BLOCK ? n - i : NORI__REF_BLOCK;
        nori__ref_load_f64(j->x, at + i, 1, m, block);
        max = i == 0 ? block[0] : max;
        for (int64_t k = 0; k < m; k++) {
            max = larger(max, block[k]);
        }
    }
    for (int64_t i = 0; i < n; i += NORI__REF_BLOCK) {
        int64_t m = n - i < NORI__REF_BLOCK ? n - i : NORI__REF_BLOCK;
        nori__ref_load_f64(j->x, at + i, 1, m, block);
        for (int64_t k = 0; k < m; k++) {
            sum += exp(block[k] - max);
        }
    }
    double log_sum = log(sum);
    for (int64_t i = 0; i < n; i += NORI__REF_BLOCK) {
        int64_t m = n - i < NORI__REF_BLOCK ? n - i : NORI__REF_BLOCK;
        nori__ref_load_f64(j->x, at + i, 1, m, block);
        for (int64_t k = 0; k < m; k++) {
            block[k] -= max;
            block[k] = j->kind == LOG_SOFTMAX ? block[k] - log_sum : exp(block[k]) / sum;
        }
        nori__ref_store_f64(j->y, at + i, m, block);
    }
}

/* ---- columns: many lines at once, m of them side by side ---- */

static void columns(const job *j, int64_t at, int64_t m)
{
    double block[NORI__REF_BLOCK], max[NORI__REF_BLOCK], sum[NORI__REF_BLOCK];
    for (int64_t r = 0; r < j->s.length; r++) {
        nori__ref_load_f64(j->x, at + r * j->s.inner, 1, m, block);
        for (int64_t k = 0; k < m; k++) {
            max[k] = r == 0 ? block[k] : larger(max[k], block[k]);
            sum[k] = 0;
        }
    }
    for (int64_t r = 0; r < j->s.length; r++) {
        nori__ref_load_f64(j->x, at + r * j->s.inner, 1, m, block);
        for (int64_t k = 0; k < m; k++) {
            sum[k] += exp(block[k] - max[k]);
        }
    }
    for (int64_t k = 0; k < m && j->kind == LOG_SOFTMAX; k++) {
        sum[k] = log(sum[k]);
    }
    for (int64_t r = 0; r < j->s.length; r++) {
        nori__ref_load_f64(j->x, at + r * j->s.inner, 1, m, block);
        for (int64_t k = 0; k < m; k++) {
            block[k] -= max[k];
            block[k] = j->kind == LOG_SOFTMAX ? block[k] - sum[k] : exp(block[k]) / sum[k];
        }
        nori__ref_store_f64(j->y, at + r * j->s.inner, m, block);
    }
}

static void hard_columns(const job *j, int64_t at, int64_t m)
{
    double block[NORI__REF_BLOCK], max[NORI__REF_BLOCK];
    int64_t where[NORI__REF_BLOCK];
    for (int64_t r = 0; r < j->s.length; r++) {
        nori__ref_load_f64(j->x, at + r * j->s.inner, 1, m, block);
        for (int64_t k = 0; k < m; k++) {
            if (r == 0 || block[k] > max[k] || (isnan(block[k]) && !isnan(max[k]))) {
                max[k] = block[k];
                where[k] = r;
            }
        }
    }
    for (int64_t r = 0; r < j->s.length; r++) {
        for (int64_t k = 0; k < m; k++) {
            block[k] = where[k] == r;
        }
        nori__ref_store_f64(j->y, at + r * j->s.inner, m, block);
    }
}

static void run(void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = user;
    for (int64_t i = begin; i < end; i++) {
        int64_t outer = i / j->pieces, column = i % j->pieces * NORI__REF_BLOCK;
        int64_t left = j->s.inner - column, at = outer * j->s.length * j->s.inner + column;
        int64_t m = left < NORI__REF_BLOCK ? left : NORI__REF_BLOCK;
        if (j->kind == HARDMAX) {
            hard_columns(j, at, m);
        } else if (j->s.inner > 1) {
            columns(j, at, m);
        } else if (j->x->type == NORI_FLOAT) {
            line_f32(j, at);
        } else {
            line_any(j, at);
        }
    }
}

static nori_status softmax(nori_call *call, softmax_kind kind)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *x = call->in[0];
    nori_tensor *y = nori__ref_out(call, 0);
    if (!y || y->count == 0) {
        return NORI_OK;
    }
    if (!nori__type_is_float((nori_type)x->type)) {
        return nori__ref_bad_type(call, 0);
    }
    job j = {x, y, kind, {1, x->count, 1}, 1};
    if (call->node->version < 13) {
        int64_t split = nori__attr_i(call->node, "axis", 1);
        split += split < 0 ? x->rank : 0;
        j.s.length = 1;
        for (int d = 0; d < x->rank; d++) {
            *(d < split ? &j.s.outer : &j.s.length) *= x->dims[d];
        }
    } else if (x->rank > 0) {
        int axis;
        NORI__TRY(nori__scalar_axis(call->node, -1, x->rank, NORI_ERROR_DATA, call->err, &axis));
        j.s = nori__ref_split_at(x, axis);
    }
    j.pieces = (j.s.inner - 1) / NORI__REF_BLOCK + 1;
    int64_t width = j.s.inner < NORI__REF_BLOCK ? j.s.inner : NORI__REF_BLOCK;
    int64_t grain = GRAIN / width / j.s.length;
    nori__parallel_for(call->pool, call->threads, j.s.outer * j.pieces, grain > 0 ? grain : 1, run,
                       &j);
    return NORI_OK;
}

nori_status nori__ref_Softmax(nori_call *call)
{
    return softmax(call, SOFTMAX);
}

nori_status nori__ref_LogSoftmax(nori_call *call)
{
    return softmax(call, LOG_SOFTMAX);
}

nori_status nori__ref_Hardmax(nori_call *call)
{
    return softmax(call, HARDMAX);
}
