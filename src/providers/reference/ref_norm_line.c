/* ref_norm_line.c: normalisations of lines: LayerNormalization, RMSNormalization, and the forms that
 * optimizers write: SimplifiedLayerNormalization, com.microsoft SkipLayerNormalization and
 * SkipSimplifiedLayerNormalization. All in double, rounded once; a NaN makes its line NaN. */
#include "providers/reference/ref_nn.h"

#include <math.h>

/* Strides with which a parameter is broadcast over x (0 where it has size 1 or no dimension). */
static nori_status param_strides(nori_call *call, uint32_t i, const nori_tensor *x,
                                 int64_t *strides)
{
    memset(strides, 0, NORI_MAX_RANK * sizeof *strides);
    if (!nori__nn_has(call, i)) {
        return NORI_OK;
    }
    const nori_tensor *t = call->in[i];
    int64_t step = 1;
    bool fits = t->rank <= x->rank && t->type == NORI_DOUBLE;
    for (int d = t->rank - 1; d >= 0 && fits; d--) {
        int xd = d + x->rank - t->rank;
        fits = t->dims[d] == 1 || t->dims[d] == x->dims[xd];
        strides[xd] = t->dims[d] == 1 ? 0 : step;
        step *= t->dims[d];
    }
    return fits ? NORI_OK
                : nori__fail(call->err, NORI_ERROR_DATA,
                             "input %u of rank %d does not broadcast to input 0", i, t->rank);
}

typedef struct params {
    int64_t at[NORI_MAX_RANK];
    int64_t strides[2][NORI_MAX_RANK], place[2]; /* of inputs 1 and 2 */
} params;

static void next(params *p, const nori_tensor *x)
{
    for (int d = x->rank - 1; d >= 0; d--) {
        p->place[0] += p->strides[0][d];
        p->place[1] += p->strides[1][d];
        if (++p->at[d] < x->dims[d]) {
            break;
        }
        p->place[0] -= p->strides[0][d] * x->dims[d];
        p->place[1] -= p->strides[1][d] * x->dims[d];
        p->at[d] = 0;
    }
}

/* Every output that is wanted holds what this file writes. */
static nori_status outputs_fit(const nori_call *call)
{
    for (uint32_t i = 0; i < call->n_out; i++) {
        if (nori__nn_wants(call, i) && call->out[i]->type != NORI_DOUBLE) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "output %u is of type %s, which is not one of floats", i,
                              nori_type_name((nori_type)call->out[i]->type));
        }
    }
    return NORI_OK;
}

/* centered: the mean is taken off (LayerNormalization), or not (RMSNormalization). inverse_out:
 * the output of the inverse deviation; the mean is the one before it, unless that is the result. */
static nori_status line_norm(nori_call *call, bool centered, uint32_t inverse_out)
{
    params p;
    int axis;
    memset(&p, 0, sizeof p);
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    NORI__TRY(nori__nn_need(call, 1, "Scale", -1));
    const nori_tensor *x = call->in[0];
    if (x->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 0);
    }
    NORI__TRY(outputs_fit(call));
    NORI__TRY(nori__fix_axis(call->err, nori__attr_i(call->node, "axis", -1), x->rank, &axis));
    NORI__TRY(param_strides(call, 1, x, p.strides[0]));
    NORI__TRY(param_strides(call, 2, x, p.strides[1]));
    double epsilon = (double)nori__attr_f(call->node, "epsilon", 1e-5f);
    const double *v = x->data, *scale = call->in[1]->data;
    const double *bias = nori__nn_has(call, 2) ? call->in[2]->data : NULL;
    double *y = call->out[0]->data;
    int64_t n = nori__nn_product(x->dims, axis, x->rank);
    int64_t lines = nori__nn_product(x->dims, 0, axis); /* each with a mean, of nothing too: NaN */
    for (int64_t line = 0; line < lines; line++, v += n, y += n) {
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < n && centered; i++) {
            mean += v[i];
        }
        mean /= (double)n;
        for (int64_t i = 0; i < n; i++) {
            squares += (v[i] - mean) * (v[i] - mean);
        }
        double inverse = 1 / sqrt(squares / (double)n + epsilon);
        for (int64_t i = 0; i < n; i++) {
            y[i] = (v[i] - mean) * inverse * scale[p.place[0]] + (bias ? bias[p.place[1]] : 0);
            next(&p, x);
        }
        if (inverse_out > 1 && nori__nn_wants(call, inverse_out - 1)) {
            ((double *)call->out[inverse_out - 1]->data)[line] = mean;
        }
        if (nori__nn_wants(call, inverse_out)) {
            ((double *)call->out[inverse_out]->data)[line] = inverse;
        }
    }
    return NORI_OK;
}

static nori_status layer_norm(nori_call *call)
{
    return line_norm(call, true, 2);
}

nori_status nori__ref_LayerNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, layer_norm);
}

static nori_status rms_norm(nori_call *call)
{
    return line_norm(call, false, 1);
}

nori_status nori__ref_RMSNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, rms_norm);
}

/* Of no opset: exporters of language models write it into ai.onnx. */
nori_status nori__ref_SimplifiedLayerNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, rms_norm);
}

/* Inputs: input, skip (repeated over leading dimensions), gamma, then beta (centered only), bias. */
static nori_status skip_norm(nori_call *call, bool centered)
{
    for (uint32_t i = 0; i < 3; i++) {
        NORI__TRY(nori__nn_need(call, i, "input, skip, gamma", -1));
    }
    const nori_tensor *x = call->in[0], *skip = call->in[1];
    int64_t n = x->rank > 0 ? x->dims[x->rank - 1] : 0;
    if (x->type != NORI_DOUBLE || x->rank < 1 || skip->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 0);
    }
    NORI__TRY(outputs_fit(call));
    uint32_t bias_in = centered ? 4 : 3;
    for (uint32_t i = 2; i <= bias_in; i++) {
        NORI__TRY(nori__nn_count(call, i, "gamma, beta or bias", n));
    }
    if (x->count > 0 && (skip->count == 0 || x->count % skip->count != 0 || skip->count % n != 0)) {
        return nori__nn_count(call, 1, "skip", x->count);
    }
    double epsilon = (double)nori__attr_f(call->node, "epsilon", 1e-12f);
    const double *a = x->data, *s = skip->data, *gamma = call->in[2]->data;
    const double *beta = centered && nori__nn_has(call, 3) ? call->in[3]->data : NULL;
    const double *bias = nori__nn_has(call, bias_in) ? call->in[bias_in]->data : NULL;
    double *y = call->out[0]->data;
    int64_t lines = nori__nn_product(x->dims, 0, x->rank - 1); /* each with a mean, of nothing too: NaN */
    for (int64_t line = 0; line < lines; line++) {
        int64_t from = line * n;
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < n; i++) {
            y[from + i] = a[from + i] + s[(from + i) % skip->count] + (bias ? bias[i] : 0);
            mean += centered ? y[from + i] : 0;
        }
        mean /= (double)n;
        for (int64_t i = 0; i < n; i++) {
            squares += (y[from + i] - mean) * (y[from + i] - mean);
        }
        double inverse = 1 / sqrt(squares / (double)n + epsilon);
        for (int64_t i = 0; i < n; i++) {
            double sum = y[from + i];
            if (nori__nn_wants(call, 3)) {
                ((double *)call->out[3]->data)[from + i] = sum;
            }
            y[from + i] = (sum - mean) * inverse * gamma[i] + (beta ? beta[i] : 0);
        }
        if (nori__nn_wants(call, 1)) {
            ((double *)call->out[1]->data)[line] = mean;
        }
        if (nori__nn_wants(call, 2)) {
            ((double *)call->out[2]->data)[line] = inverse;
        }
    }
    return NORI_OK;
}

static nori_status skip_layer_norm(nori_call *call)
{
    return skip_norm(call, true);
}

nori_status nori__ref_ms_SkipLayerNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, skip_layer_norm);
}

static nori_status skip_rms_norm(nori_call *call)
{
    return skip_norm(call, false);
}

nori_status nori__ref_ms_SkipSimplifiedLayerNormalization(nori_call *call)
{
    return nori__nn_double(call, 0, skip_rms_norm);
}
