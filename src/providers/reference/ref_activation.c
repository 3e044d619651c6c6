/* ref_activation.c: activation functions. Relu is in ref_unary.c with the typed loops.
 *
 * Computed in double and rounded once to the tensor's type; Sigmoid, LeakyRelu and friends of
 * float tensors take float loops. NaN goes through; formulas are written so that large arguments
 * saturate instead of giving inf - inf or inf / inf. */
#include <math.h>

#include "ops/families.h"
#include "providers/reference/ref.h"

static double sigmoid(double x)
{
    double e = exp(-fabs(x)); /* at most 1 */
    return x >= 0 ? 1 / (1 + e) : e / (1 + e) + (x - x); /* x - x: NaN stays NaN */
}

static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* Parameters p are the attributes in the order the kernels below give them. */
static double do_sigmoid(double x, const double *p)
{
    (void)p;
    return isinf(x) ? (x > 0 ? 1 : 0) : sigmoid(x);
}

static float sigmoid_f32(float x)
{
    return 1.0f / (1.0f + expf(-x)); /* expf overflows to infinity: 0 */
}

static double do_celu(double x, const double *p)
{
    return x > 0 ? x : x == 0 ? 0 : p[0] * expm1(x / p[0]);
}

static double do_elu(double x, const double *p)
{
    return x < 0 ? p[0] * expm1(x) : x;
}

static double do_selu(double x, const double *p)
{
    return x > 0 ? p[1] * x : p[1] * (p[0] * expm1(x));
}

static double do_gelu(double x, const double *p)
{
    (void)p;
    return x == -INFINITY ? -0.0 : 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}

static double do_gelu_tanh(double x, const double *p)
{
    (void)p;
    double inner = 0.79788456080286535588 * (x + 0.044715 * x * x * x); /* sqrt(2 / pi) */
    return x == -INFINITY ? -0.0 : 0.5 * x * (1 + tanh(inner));
}

static double hard_sigmoid(double x, double alpha, double beta)
{
    double y = alpha * x + beta;
    return y < 0 ? 0 : y > 1 ? 1 : y;
}

static double do_hard_sigmoid(double x, const double *p)
{
    return hard_sigmoid(x, p[0], p[1]);
}

static double do_hard_swish(double x, const double *p)
{
    (void)p;
    return x == -INFINITY ? -0.0 : x * hard_sigmoid(x, 1.0 / 6, 0.5);
}

static double do_leaky(double x, const double *p)
{
    return x < 0 ? p[0] * x : x;
}

static double do_mish(double x, const double *p)
{
    (void)p;
    return x == -INFINITY ? -0.0 : x * tanh(softplus(x));
}

static double do_softplus(double x, const double *p)
{
    (void)p;
    return softplus(x);
}

static double do_softsign(double x, const double *p)
{
    (void)p;
    return isinf(x) ? (x > 0 ? 1 : -1) : x / (1 + fabs(x));
}

static double do_swish(double x, const double *p)
{
    double z = p[0] * x;
    return x == 0 || (isinf(x) && z < 0) ? 0 : x * do_sigmoid(z, NULL);
}

static double do_thresholded(double x, const double *p)
{
    return x > p[0] ? x : 0; /* so NaN, which is not above alpha, gives 0 */
}

static nori_status apply(nori_call *call, double (*f)(double, const double *), double p0,
                         double p1)
{
    return nori__ref_apply(call, &(nori__ref_function){f, NULL, {p0, p1}});
}

/* A float attribute, as float. */
static double attr(const nori_call *call, const char *name, float otherwise)
{
    return (double)nori__attr_f(call->node, name, otherwise);
}

nori_status nori__ref_Sigmoid(nori_call *call)
{
    return nori__ref_apply(call, &(nori__ref_function){do_sigmoid, sigmoid_f32, {0}});
}

nori_status nori__ref_Celu(nori_call *call)
{
    return apply(call, do_celu, attr(call, "alpha", 1), 0);
}

nori_status nori__ref_Elu(nori_call *call)
{
    return apply(call, do_elu, attr(call, "alpha", 1), 0);
}

/* Defaults by version: the first had rounded ones. */
nori_status nori__ref_Selu(nori_call *call)
{
    bool first = call->node->version == 1;
    return apply(call, do_selu, attr(call, "alpha", first ? 1.6732f : 1.67326319217681884765625f),
                 attr(call, "gamma", first ? 1.0507f : 1.05070102214813232421875f));
}

nori_status nori__ref_Gelu(nori_call *call)
{
    bool by_tanh = nori__same(nori__attr_s(call->node, "approximate", "none"), "tanh");
    return apply(call, by_tanh ? do_gelu_tanh : do_gelu, 0, 0);
}

nori_status nori__ref_HardSigmoid(nori_call *call)
{
    return apply(call, do_hard_sigmoid, attr(call, "alpha", 0.2f), attr(call, "beta", 0.5f));
}

nori_status nori__ref_HardSwish(nori_call *call)
{
    return apply(call, do_hard_swish, 0, 0);
}

nori_status nori__ref_LeakyRelu(nori_call *call)
{
    return apply(call, do_leaky, attr(call, "alpha", 0.01f), 0);
}

nori_status nori__ref_Mish(nori_call *call)
{
    return apply(call, do_mish, 0, 0);
}

nori_status nori__ref_Softplus(nori_call *call)
{
    return apply(call, do_softplus, 0, 0);
}

nori_status nori__ref_Softsign(nori_call *call)
{
    return apply(call, do_softsign, 0, 0);
}

nori_status nori__ref_Swish(nori_call *call)
{
    return apply(call, do_swish, attr(call, "alpha", 1), 0);
}

nori_status nori__ref_ThresholdedRelu(nori_call *call)
{
    return apply(call, do_thresholded, attr(call, "alpha", 1), 0);
}

/* Experimental operator of old files: alpha * x + beta. */
static double do_affine(double x, const double *p)
{
    return p[0] * x + p[1];
}

nori_status nori__ref_Affine(nori_call *call)
{
    return apply(call, do_affine, attr(call, "alpha", 1), attr(call, "beta", 0));
}

/* ---- any number type ---- */

static void shrink_line(const nori__ref_line *l)
{
    const double *p = l->user; /* bias, lambd */
    double x[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        nori__ref_load_f64(l->from[0], l->in[0] + at, 1, n, x);
        for (int64_t i = 0; i < n; i++) {
            x[i] = x[i] < -p[1] ? x[i] + p[0] : x[i] > p[1] ? x[i] - p[0] : isnan(x[i]) ? x[i] : 0;
        }
        nori__ref_store_f64(l->to, l->out + at, n, x);
    }
}

nori_status nori__ref_Shrink(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    double p[2] = {attr(call, "bias", 0), attr(call, "lambd", 0.5f)};
    return nori__ref_lines(call, call->out[0], call->in, 1, shrink_line, p);
}

#define PRELU(TYPE, name, stored, value, wrap)                                            \
    static void prelu_##name(const nori__ref_line *l)                                     \
    {                                                                                     \
        stored *o = NORI__LINE_OUT(l, stored);                                            \
        const stored *a = NORI__LINE_IN(l, 0, stored), *b = NORI__LINE_IN(l, 1, stored);  \
        for (int64_t i = 0; i < l->n; i++) {                                              \
            value x = nori__load_##name(a + i * l->step[0]);                              \
            value slope = nori__load_##name(b + i * l->step[1]);                          \
            nori__store_##name(o + i, x < 0 ? (value)((wrap)slope * (wrap)x) : x);        \
        }                                                                                 \
    }
#define PRELU_WIDE(X)                                  \
    NORI__REF_FLOATS(X)                                \
    X(NORI_INT32, i32, int32_t, int32_t, uint32_t)     \
    X(NORI_INT64, i64, int64_t, int64_t, uint64_t)
PRELU_WIDE(PRELU)
/* Unsigned elements are never negative. */
static void prelu_unsigned(const nori__ref_line *l)
{
    size_t size = l->from[0]->type == NORI_UINT32 ? 4 : 8;
    memmove((char *)l->to->data + (size_t)l->out * size,
            (const char *)l->from[0]->data + (size_t)l->in[0] * size, (size_t)l->n * size);
}
#define PRELU_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = prelu_##name,
static const nori__ref_line_fn prelu_lines[NORI_TYPE_COUNT] = {
    PRELU_WIDE(PRELU_ENTRY)[NORI_UINT32] = prelu_unsigned, [NORI_UINT64] = prelu_unsigned};

/* Before version 7 a 1-D slope of channels meant axis 1, not the last. */
nori_status nori__ref_PRelu(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__ref_need(call, 1));
    const nori_tensor *x = call->in[0], *slope = call->in[1];
    if (call->node->version > 0 && call->node->version < 7 && slope->rank == 1 && x->rank > 1 &&
        slope->type == x->type && slope->dims[0] == x->dims[1] && prelu_lines[x->type]) {
        nori_tensor by_channel; /* a view, not shared */
        int64_t dims[NORI_MAX_RANK];
        for (int i = 0; i + 1 < x->rank; i++) {
            dims[i] = i == 0 ? slope->dims[0] : 1;
        }
        nori__tensor_init(&by_channel, (nori_type)slope->type, x->rank - 1, dims, slope->data);
        const nori_tensor *in[2] = {x, &by_channel};
        return nori__ref_lines(call, call->out[0], in, 2, prelu_lines[x->type], NULL);
    }
    return nori__ref_two(call, prelu_lines);
}

/* ---- com.microsoft ---- */

typedef double (*act_fn)(double x, const double *p);

/* f(x + bias), user: an act_fn. */
static void biased_line(const nori__ref_line *l)
{
    double x[NORI__REF_BLOCK], bias[NORI__REF_BLOCK];
    const act_fn *f = l->user;
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        nori__ref_load_f64(l->from[0], l->in[0] + at * l->step[0], l->step[0], n, x);
        nori__ref_load_f64(l->from[1], l->in[1] + at * l->step[1], l->step[1], n, bias);
        for (int64_t i = 0; i < n; i++) {
            x[i] = (*f)(x[i] + bias[i], NULL);
        }
        nori__ref_store_f64(l->to, l->out + at, n, x);
    }
}

static nori_status biased(nori_call *call, act_fn f)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__ref_need(call, 1));
    if (!nori__type_is_float((nori_type)call->in[0]->type)) {
        return nori__ref_bad_type(call, 0);
    }
    if (call->in[1]->type != call->in[0]->type) {
        return nori__ref_bad_type(call, 1);
    }
    return nori__ref_lines(call, call->out[0], call->in, 2, biased_line, &f);
}

nori_status nori__ref_ms_BiasGelu(nori_call *call)
{
    return biased(call, do_gelu);
}

/* The bias may be absent. */
nori_status nori__ref_ms_FastGelu(nori_call *call)
{
    return nori__ref_in(call, 1) ? biased(call, do_gelu_tanh) : apply(call, do_gelu_tanh, 0, 0);
}

nori_status nori__ref_ms_QuickGelu(nori_call *call)
{
    return apply(call, do_swish, attr(call, "alpha", 1.702f), 0);
}
