/* ref_misc.c: CausalConvWithState, LinearAttention, SwiGLU, in double, rounded once. Empty
 * sequences pass the state through. */
#include "providers/reference/ref_nn.h"

#include <math.h>

static double silu(double alpha, double x)
{
    return x / (1 + exp(-alpha * x));
}

/* ---- CausalConvWithState: input, weight, bias, past_state ---- */

/* Position t of past and input joined; past has k - 1 values, zeros when absent. */
static double joined(const double *past, const double *x, int64_t k, int64_t t)
{
    return t < k - 1 ? (past ? past[t] : 0) : x[t - (k - 1)];
}

static nori_status causal_conv(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "input", 3));
    NORI__TRY(nori__nn_need(call, 1, "weight", 3));
    const nori_tensor *x = call->in[0], *w = call->in[1];
    int64_t channels = x->dims[1], length = x->dims[2], k = w->dims[2];
    const char *name = nori__attr_s(call->node, "activation", "none");
    bool act = nori__same(name, "silu") || nori__same(name, "swish");
    if (!act && !nori__same(name, "none") && !nori__same(name, "")) {
        return nori__fail(call->err, NORI_ERROR_DATA, "activation is \"%s\"", name);
    }
    if (x->type != NORI_DOUBLE || w->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 0);
    }
    if (w->dims[0] != channels || w->dims[1] != 1 || k < 1) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "weight is %lld x %lld x %lld for %lld channels", (long long)w->dims[0],
                          (long long)w->dims[1], (long long)k, (long long)channels);
    }
    NORI__TRY(nori__nn_count(call, 2, "bias", channels));
    NORI__TRY(nori__nn_count(call, 3, "past_state", x->dims[0] * channels * (k - 1)));
    const double *bias = nori__nn_has(call, 2) ? call->in[2]->data : NULL;
    const double *past = nori__nn_has(call, 3) ? call->in[3]->data : NULL;
    for (int64_t line = 0; line < x->dims[0] * channels; line++) {
        int64_t c = line % channels;
        const double *p = past ? past + line * (k - 1) : NULL;
        const double *v = (const double *)x->data + line * length;
        const double *taps = (const double *)w->data + c * k;
        for (int64_t t = 0; t < length && nori__nn_wants(call, 0); t++) {
            double sum = bias ? bias[c] : 0;
            for (int64_t j = 0; j < k; j++) {
                sum += taps[j] * joined(p, v, k, t + j);
            }
            ((double *)call->out[0]->data)[line * length + t] = act ? silu(1, sum) : sum;
        }
        for (int64_t j = 0; j < k - 1 && nori__nn_wants(call, 1); j++) {
            ((double *)call->out[1]->data)[line * (k - 1) + j] = joined(p, v, k, length + j);
        }
    }
    return NORI_OK;
}

nori_status nori__ref_CausalConvWithState(nori_call *call)
{
    return nori__nn_double(call, 0, causal_conv);
}

/* ---- LinearAttention: query, key, value, past_state, decay, beta ---- */

typedef struct linear {
    int64_t batch, length, heads, kv_heads, dk, dv;
    bool gated, delta;
    double scale;
    const double *q, *k, *v, *decay, *beta;
    int64_t decay_width, beta_width; /* of their last dimension */
} linear;

static nori_status read_linear(nori_call *call, linear *l)
{
    static const char *const names[] = {"query", "key", "value", "past_state", "decay", "beta"};
    const char *rule = nori__attr_s(call->node, "update_rule", "gated_delta");
    l->gated = nori__same(rule, "gated") || nori__same(rule, "gated_delta");
    l->delta = nori__same(rule, "delta") || nori__same(rule, "gated_delta");
    if (!l->gated && !l->delta && !nori__same(rule, "linear")) {
        return nori__fail(call->err, NORI_ERROR_DATA, "update_rule is \"%s\"", rule);
    }
    for (uint32_t i = 0; i < 6; i++) {
        if (i < 3 || (i == 4 && l->gated) || (i == 5 && l->delta)) {
            NORI__TRY(nori__nn_need(call, i, names[i], 3));
        }
        if (nori__nn_has(call, i) && call->in[i]->type != NORI_DOUBLE) {
            return nori__nn_type_error(call, i);
        }
    }
    const int64_t *q = call->in[0]->dims, *k = call->in[1]->dims, *v = call->in[2]->dims;
    l->heads = nori__attr_i(call->node, "q_num_heads", 0);
    l->kv_heads = nori__attr_i(call->node, "kv_num_heads", 0);
    bool fits = l->kv_heads > 0 && l->heads > 0 && l->heads % l->kv_heads == 0;
    if (fits) {
        l->batch = q[0];
        l->length = q[1];
        l->dk = q[2] / l->heads;
        l->dv = v[2] / l->kv_heads;
        fits = q[2] == l->dk * l->heads && k[2] == l->dk * l->kv_heads &&
               v[2] == l->dv * l->kv_heads && k[0] == q[0] && v[0] == q[0] && k[1] == q[1] &&
               v[1] == q[1];
    }
    if (!fits) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "query, key and value do not fit %lld and %lld heads",
                          (long long)l->heads, (long long)l->kv_heads);
    }
    NORI__TRY(nori__nn_count(call, 3, names[3], l->batch * l->kv_heads * l->dk * l->dv));
    l->q = call->in[0]->data;
    l->k = call->in[1]->data;
    l->v = call->in[2]->data;
    if (l->gated) {
        l->decay = call->in[4]->data;
        l->decay_width = call->in[4]->dims[2];
        bool wide = l->decay_width == l->kv_heads * l->dk;
        NORI__TRY(nori__nn_count(call, 4, names[4], l->batch * l->length * l->kv_heads *
                                                        (wide ? l->dk : 1)));
    }
    if (l->delta) {
        l->beta = call->in[5]->data;
        l->beta_width = call->in[5]->dims[2];
        NORI__TRY(nori__nn_count(call, 5, names[5], l->batch * l->length *
                                                        (l->beta_width == 1 ? 1 : l->kv_heads)));
    }
    double scale = (double)nori__attr_f(call->node, "scale", 0);
    l->scale = scale != 0 ? scale : 1 / sqrt((double)l->dk);
    return NORI_OK;
}

/* One token of one key head: state [dk, dv] becomes the next. */
static void update(const linear *l, int64_t token, int64_t h, double *state)
{
    const double *k = l->k + (token * l->kv_heads + h) * l->dk;
    const double *v = l->v + (token * l->kv_heads + h) * l->dv;
    bool per_key = l->gated && l->decay_width != l->kv_heads;
    for (int64_t i = 0; i < l->dk && l->gated; i++) {
        const double *decay = l->decay + token * l->decay_width;
        double factor = exp(per_key ? decay[h * l->dk + i] : decay[h]);
        for (int64_t j = 0; j < l->dv; j++) {
            state[i * l->dv + j] *= factor;
        }
    }
    double beta = 1;
    if (l->delta) {
        beta = l->beta[token * l->beta_width + (l->beta_width == 1 ? 0 : h)];
    }
    for (int64_t j = 0; j < l->dv; j++) {
        double add = v[j];
        for (int64_t i = 0; i < l->dk && l->delta; i++) {
            add -= state[i * l->dv + j] * k[i];
        }
        for (int64_t i = 0; i < l->dk; i++) {
            state[i * l->dv + j] += beta * k[i] * add;
        }
    }
}

static nori_status linear_attention(nori_call *call)
{
    linear l = {0};
    size_t bytes;
    NORI__TRY(read_linear(call, &l));
    int64_t size = l.dk * l.dv, shared = l.heads / l.kv_heads;
    double *state = nori__nn_scratch(call, size, sizeof *state, &bytes);
    if (!state) {
        return nori__no_memory(call->err);
    }
    for (int64_t line = 0; line < l.batch * l.kv_heads; line++) {
        int64_t b = line / l.kv_heads, h = line % l.kv_heads;
        for (int64_t i = 0; i < size; i++) {
            state[i] = nori__nn_has(call, 3) ? ((const double *)call->in[3]->data)[line * size + i]
                                             : 0;
        }
        for (int64_t t = 0; t < l.length; t++) {
            int64_t token = b * l.length + t;
            update(&l, token, h, state);
            for (int64_t o = 0; o < shared * l.dv && nori__nn_wants(call, 0); o++) {
                int64_t head = h * shared + o / l.dv, j = o % l.dv;
                const double *q = l.q + (token * l.heads + head) * l.dk;
                double sum = 0;
                for (int64_t i = 0; i < l.dk; i++) {
                    sum += q[i] * state[i * l.dv + j];
                }
                ((double *)call->out[0]->data)[(token * l.heads + head) * l.dv + j] = l.scale * sum;
            }
        }
        if (nori__nn_wants(call, 1) && size > 0) {
            memcpy((double *)call->out[1]->data + line * size, state, (size_t)size * sizeof *state);
        }
    }
    nori__release(call->allocator, state, bytes);
    return NORI_OK;
}

nori_status nori__ref_LinearAttention(nori_call *call)
{
    return nori__nn_double(call, 0, linear_attention);
}

/* ---- SwiGLU ---- */

static nori_status swiglu(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "A", -1));
    NORI__TRY(nori__nn_need(call, 1, "B", -1));
    NORI__TRY(nori__nn_count(call, 1, "B", call->in[0]->count));
    if (call->in[0]->type != NORI_DOUBLE || call->in[1]->type != NORI_DOUBLE) {
        return nori__nn_type_error(call, 0);
    }
    double alpha = (double)nori__attr_f(call->node, "alpha", 1);
    const double *a = call->in[0]->data, *b = call->in[1]->data;
    double *y = call->out[0]->data;
    for (int64_t i = 0; i < call->out[0]->count; i++) {
        y[i] = silu(alpha, a[i]) * b[i];
    }
    return NORI_OK;
}

nori_status nori__ref_SwiGLU(nori_call *call)
{
    return nori__nn_double(call, 0, swiglu);
}
