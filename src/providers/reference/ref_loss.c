/* ref_loss.c: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss.
 *
 * Sums in double. A label outside [0, C) that is not ignore_index is an error DATA. The mean over
 * no weight at all (everything ignored, empty batch) is 0 / 0, NaN. */
#include <math.h>

#include "ops/families.h"
#include "providers/reference/ref.h"

typedef struct loss {
    const nori_tensor *x, *labels, *weights; /* weights may be NULL */
    nori_tensor *out, *log_prob;             /* each may be NULL */
    int64_t batch, classes, inner;           /* x as (batch, classes, inner) */
    bool softmax, has_ignored;
    int64_t ignored;
} loss;

static nori_status open_loss(nori_call *call, bool softmax, loss *l)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__ref_need(call, 1));
    *l = (loss){.x = call->in[0], .labels = call->in[1], .weights = nori__ref_in(call, 2),
                .out = nori__ref_out(call, 0), .log_prob = softmax ? nori__ref_out(call, 1) : NULL,
                .softmax = softmax};
    if (!nori__type_is_float((nori_type)l->x->type)) {
        return nori__ref_bad_type(call, 0);
    }
    if (l->labels->type != NORI_INT32 && l->labels->type != NORI_INT64) {
        return nori__ref_bad_type(call, 1);
    }
    bool fits = l->x->rank >= 2 && l->labels->rank == l->x->rank - 1 &&
                l->labels->dims[0] == l->x->dims[0];
    for (int i = 2; fits && i < l->x->rank; i++) {
        fits = l->labels->dims[i - 1] == l->x->dims[i];
    }
    if (!fits) {
        return nori__fail(call->err, NORI_ERROR_DATA, "input 1 of %s must have the shape of input "
                          "0 without axis 1", call->node->op_type);
    }
    nori__ref_split s = nori__ref_split_at(l->x, 1);
    l->batch = s.outer;
    l->classes = s.length;
    l->inner = s.inner;
    if (l->weights && (l->weights->rank != 1 || l->weights->dims[0] != l->classes)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input 2 (weight) of %s must be 1-D with %lld entries",
                          call->node->op_type, (long long)l->classes);
    }
    l->has_ignored = nori__attr_find(call->node, "ignore_index") != NULL;
    l->ignored = nori__attr_i(call->node, "ignore_index", 0);
    return NORI_OK;
}

/* log(sum over classes of e^x) at one place: what turns scores into log-probabilities. */
static double log_total(const loss *l, int64_t first)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < l->classes; c++) {
        double x = nori__tensor_get_f64(l->x, first + c * l->inner);
        largest = x > largest || isnan(x) ? x : largest;
    }
    for (int64_t c = 0; c < l->classes; c++) {
        sum += exp(nori__tensor_get_f64(l->x, first + c * l->inner) - largest);
    }
    return largest + log(sum);
}

/* The loss at one place and its weight. */
static nori_status at_place(nori_call *call, const loss *l, int64_t n, int64_t i, double *value,
                            double *weight)
{
    int64_t first = n * l->classes * l->inner + i;
    int64_t label = nori__tensor_get_i64(l->labels, n * l->inner + i);
    double shift = l->softmax ? log_total(l, first) : 0;
    for (int64_t c = 0; l->log_prob && c < l->classes; c++) {
        int64_t k = first + c * l->inner;
        nori__tensor_set_f64(l->log_prob, k, nori__tensor_get_f64(l->x, k) - shift);
    }
    *value = *weight = 0;
    if (l->has_ignored && label == l->ignored) {
        return NORI_OK;
    }
    if (label < 0 || label >= l->classes) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "element %lld of input 1 of %s is %lld, expected a class in [0, %lld)",
                          (long long)(n * l->inner + i), call->node->op_type, (long long)label,
                          (long long)l->classes);
    }
    *weight = l->weights ? nori__tensor_get_f64(l->weights, label) : 1;
    *value = -(nori__tensor_get_f64(l->x, first + label * l->inner) - shift) * *weight;
    return NORI_OK;
}

static nori_status run(nori_call *call, bool softmax)
{
    loss l;
    NORI__TRY(open_loss(call, softmax, &l));
    const char *reduction = nori__attr_s(call->node, "reduction", "mean");
    bool each = nori__same(reduction, "none");
    double sum = 0, weights = 0;
    for (int64_t n = 0; n < l.batch; n++) {
        for (int64_t i = 0; i < l.inner; i++) {
            double value = 0, weight = 0;
            NORI__TRY(at_place(call, &l, n, i, &value, &weight));
            if (each && l.out) {
                nori__tensor_set_f64(l.out, n * l.inner + i, value);
            }
            sum += value;
            weights += weight;
        }
    }
    if (!each && l.out) {
        nori__tensor_set_f64(l.out, 0, nori__same(reduction, "sum") ? sum : sum / weights);
    }
    return NORI_OK;
}

nori_status nori__ref_NegativeLogLikelihoodLoss(nori_call *call)
{
    return run(call, false);
}

nori_status nori__ref_SoftmaxCrossEntropyLoss(nori_call *call)
{
    return run(call, true);
}
