/* ref_training.c: Adagrad, Adam, Momentum: one step of each, element by element in double. NaN and
 * infinities pass through as the formulas have it. */
#include <math.h>

#include "providers/reference/ref_move.h"

typedef struct step {
    double rate, count;
    double alpha, beta, epsilon, norm, norm_post;
    bool nesterov;
} step;

/* New value and states of one element. */
typedef void (*step_fn)(const step *s, double *x, double g, double *state);

static void adagrad(const step *s, double *x, double g, double *state)
{
    g += s->norm * *x;
    state[0] += g * g;
    *x -= s->rate * g / (sqrt(state[0]) + s->epsilon);
}

static void adam(const step *s, double *x, double g, double *state)
{
    g += s->norm * *x;
    state[0] = s->alpha * state[0] + (1 - s->alpha) * g;
    state[1] = s->beta * state[1] + (1 - s->beta) * g * g;
    *x = (1 - s->norm_post) * (*x - s->rate * state[0] / (sqrt(state[1]) + s->epsilon));
}

static void momentum(const step *s, double *x, double g, double *state)
{
    g += s->norm * *x;
    state[0] = s->alpha * state[0] + (s->count > 0 ? s->beta : 1) * g;
    *x -= s->rate * (s->nesterov ? g + s->alpha * state[0] : state[0]);
}

static nori_status run(nori_call *call, const step *s, uint32_t states, step_fn fn)
{
    uint32_t n = (call->n_in - 2) / (states + 2);
    for (uint32_t i = 0; i < n; i++) {
        const nori_tensor *in[4];
        nori_tensor *out[3];
        for (uint32_t k = 0; k < states + 2; k++) {
            NORI__TRY(nori__ref_need(call, 2 + k * n + i));
            in[k] = call->in[2 + k * n + i];
            if (in[k]->count != in[0]->count || in[k]->type == NORI_STRING) {
                return nori__fail(call->err, NORI_ERROR_DATA,
                                  "input %u does not fit the tensor it belongs to", 2 + k * n + i);
            }
        }
        for (uint32_t k = 0; k < states + 1; k++) {
            out[k] = nori__ref_out(call, k * n + i);
        }
        for (int64_t e = 0; e < in[0]->count; e++) {
            double x = nori__tensor_get_f64(in[0], e), g = nori__tensor_get_f64(in[1], e), state[2];
            for (uint32_t k = 0; k < states; k++) {
                state[k] = nori__tensor_get_f64(in[2 + k], e);
            }
            fn(s, &x, g, state);
            for (uint32_t k = 0; k < states + 1; k++) {
                if (out[k]) {
                    nori__tensor_set_f64(out[k], e, k == 0 ? x : state[k - 1]);
                }
            }
        }
    }
    return NORI_OK;
}

static nori_status read_step(nori_call *call, uint32_t states, step *s)
{
    if (call->n_in < 4 + states || (call->n_in - 2) % (states + 2) != 0) {
        return nori__fail(call->err, NORI_ERROR_MODEL, "%u inputs do not fit", call->n_in);
    }
    for (uint32_t i = 0; i < 2; i++) {
        NORI__TRY(nori__ref_need(call, i));
        if (call->in[i]->count != 1 || call->in[i]->type == NORI_STRING) {
            return nori__fail(call->err, NORI_ERROR_DATA, "input %u must be one number", i);
        }
    }
    s->rate = nori__tensor_get_f64(call->in[0], 0);
    s->count = nori__tensor_get_f64(call->in[1], 0);
    s->epsilon = (double)nori__attr_f(call->node, "epsilon", 1e-6f);
    s->norm = (double)nori__attr_f(call->node, "norm_coefficient", 0);
    s->norm_post = (double)nori__attr_f(call->node, "norm_coefficient_post", 0);
    return NORI_OK;
}

nori_status nori__ref_training_Adagrad(nori_call *call)
{
    step s = {.rate = 0};
    NORI__TRY(read_step(call, 1, &s));
    s.rate /= 1 + s.count * (double)nori__attr_f(call->node, "decay_factor", 0);
    return run(call, &s, 1, adagrad);
}

nori_status nori__ref_training_Adam(nori_call *call)
{
    step s = {.rate = 0};
    NORI__TRY(read_step(call, 2, &s));
    s.alpha = (double)nori__attr_f(call->node, "alpha", 0.9f);
    s.beta = (double)nori__attr_f(call->node, "beta", 0.999f);
    if (s.count > 0) {
        s.rate *= sqrt(1 - pow(s.beta, s.count)) / (1 - pow(s.alpha, s.count));
    }
    return run(call, &s, 2, adam);
}

nori_status nori__ref_training_Momentum(nori_call *call)
{
    step s = {.rate = 0};
    NORI__TRY(read_step(call, 1, &s));
    s.alpha = (double)nori__attr_f(call->node, "alpha", 0);
    s.beta = (double)nori__attr_f(call->node, "beta", 0);
    s.nesterov = nori__same(nori__attr_s(call->node, "mode", "standard"), "nesterov");
    return run(call, &s, 1, momentum);
}
