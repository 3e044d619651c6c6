/* ref_unary.c: operators on one tensor, element by element: elementary functions, rounding, sign,
 * Not, IsNaN, IsInf, Clip.
 *
 * Floats: computed in double and rounded once to the type, but for the plain float versions of
 * the common functions, which use the C library's float function (error below 1 ulp). NaN in,
 * NaN out; domain errors give NaN as in C; Round goes to even; Sign(NaN) is NaN, Sign(-0) is 0.
 * Integers wrap: Abs and Neg of the smallest integer are itself. */
#include <math.h>

#include "ops/families.h"
#include "providers/reference/ref.h"

static void f64_line(const nori__ref_line *l)
{
    const nori__ref_function *f = l->user;
    double block[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        nori__ref_load_f64(l->from[0], l->in[0] + at, 1, n, block);
        for (int64_t i = 0; i < n; i++) {
            block[i] = f->f64(block[i], f->param);
        }
        nori__ref_store_f64(l->to, l->out + at, n, block);
    }
}

static void f32_line(const nori__ref_line *l)
{
    const nori__ref_function *f = l->user;
    const float *x = NORI__LINE_IN(l, 0, float);
    float *o = NORI__LINE_OUT(l, float);
    for (int64_t i = 0; i < l->n; i++) {
        o[i] = f->f32(x[i]);
    }
}

nori_status nori__ref_apply(nori_call *call, const nori__ref_function *f)
{
    NORI__TRY(nori__ref_need(call, 0));
    if (!nori__type_is_float((nori_type)call->in[0]->type)) {
        return nori__ref_bad_type(call, 0);
    }
    bool single = call->in[0]->type == NORI_FLOAT && f->f32;
    return nori__ref_lines(call, call->out[0], call->in, 1, single ? f32_line : f64_line,
                           (void *)(uintptr_t)f);
}

/* ---- functions of the C library: double form, float form or NULL ---- */

static double sign_of(double x)
{
    return isnan(x) ? x : (double)((x > 0) - (x < 0));
}

static double reciprocal(double x)
{
    return 1 / x;
}

#define FUNCTIONS(X)                          \
    X(Acos, acos, NULL)                       \
    X(Acosh, acosh, NULL)                     \
    X(Asin, asin, NULL)                       \
    X(Asinh, asinh, NULL)                     \
    X(Atan, atan, NULL)                       \
    X(Atanh, atanh, NULL)                     \
    X(Ceil, ceil, ceilf)                      \
    X(Cos, cos, NULL)                         \
    X(Cosh, cosh, NULL)                       \
    X(Erf, erf, erff)                         \
    X(Exp, exp, expf)                         \
    X(Floor, floor, floorf)                   \
    X(Log, log, logf)                         \
    X(Reciprocal, reciprocal, NULL)           \
    X(Round, nearbyint, nearbyintf)           \
    X(Sin, sin, NULL)                         \
    X(Sinh, sinh, NULL)                       \
    X(Sqrt, sqrt, sqrtf)                      \
    X(Tan, tan, NULL)                         \
    X(Tanh, tanh, tanhf)

#define FUNCTION(Name, double_form, float_form)                           \
    static double do_##Name(double x, const double *param)                \
    {                                                                     \
        (void)param;                                                      \
        return double_form(x);                                            \
    }                                                                     \
    nori_status nori__ref_##Name(nori_call *call)                         \
    {                                                                     \
        return nori__ref_apply(call, &(nori__ref_function){do_##Name, float_form, {0}}); \
    }
FUNCTIONS(FUNCTION)

/* ---- by type ---- */

#define ONE(op, name, stored, value, EXPR)                            \
    static void op##_##name(const nori__ref_line *l)                  \
    {                                                                 \
        stored *o = NORI__LINE_OUT(l, stored);                        \
        const stored *a = NORI__LINE_IN(l, 0, stored);                \
        for (int64_t i = 0; i < l->n; i++) {                          \
            value x = nori__load_##name(a + i);                       \
            nori__store_##name(o + i, EXPR);                          \
        }                                                             \
    }

#define ABS_FLOAT(TYPE, name, stored, value, wrap) ONE(abs, name, stored, value, (value)fabs(x))
#define ABS_SIGNED(TYPE, name, stored, value, wrap) \
    ONE(abs, name, stored, value, (value)(x < 0 ? (value)(0 - (wrap)x) : x))
#define ABS_UNSIGNED(TYPE, name, stored, value, wrap) ONE(abs, name, stored, value, x)
#define NEG_FLOAT(TYPE, name, stored, value, wrap) ONE(neg, name, stored, value, -x)
#define NEG_SIGNED(TYPE, name, stored, value, wrap) \
    ONE(neg, name, stored, value, (value)(0 - (wrap)x))
#define SIGN_FLOAT(TYPE, name, stored, value, wrap) \
    ONE(sign, name, stored, value, (value)sign_of((double)x))
#define SIGN_INT(TYPE, name, stored, value, wrap) \
    ONE(sign, name, stored, value, (value)(x > 0 ? 1 : x == 0 ? 0 : -1))
#define SIGN_UNSIGNED(TYPE, name, stored, value, wrap) \
    ONE(sign, name, stored, value, (value)(x > 0))
#define BIT_NOT(TYPE, name, stored, value, wrap) ONE(bitnot, name, stored, value, (value)~x)
#define RELU(TYPE, name, stored, value, wrap) ONE(relu, name, stored, value, x < 0 ? 0 : x)
NORI__REF_FLOATS(ABS_FLOAT)
NORI__REF_SIGNED(ABS_SIGNED)
NORI__REF_UNSIGNED(ABS_UNSIGNED)
NORI__REF_FLOATS(NEG_FLOAT)
NORI__REF_SIGNED(NEG_SIGNED)
NORI__REF_FLOATS(SIGN_FLOAT)
NORI__REF_SIGNED(SIGN_INT)
NORI__REF_UNSIGNED(SIGN_UNSIGNED)
NORI__REF_INTS(BIT_NOT)
NORI__REF_FLOATS(RELU)
NORI__REF_SIGNED(RELU)

static void not_bool(const nori__ref_line *l)
{
    uint8_t *o = NORI__LINE_OUT(l, uint8_t);
    const uint8_t *a = NORI__LINE_IN(l, 0, uint8_t);
    for (int64_t i = 0; i < l->n; i++) {
        o[i] = !a[i];
    }
}

#define ABS_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = abs_##name,
#define NEG_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = neg_##name,
#define SIGN_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = sign_##name,
#define NOT_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = bitnot_##name,
#define RELU_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = relu_##name,
static const nori__ref_line_fn abs_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(ABS_ENTRY)};
static const nori__ref_line_fn neg_lines[NORI_TYPE_COUNT] = {NORI__REF_FLOATS(NEG_ENTRY)
                                                                 NORI__REF_SIGNED(NEG_ENTRY)};
static const nori__ref_line_fn sign_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(SIGN_ENTRY)};
static const nori__ref_line_fn bitnot_lines[NORI_TYPE_COUNT] = {NORI__REF_INTS(NOT_ENTRY)};
static const nori__ref_line_fn relu_lines[NORI_TYPE_COUNT] = {NORI__REF_FLOATS(RELU_ENTRY)
                                                                  NORI__REF_SIGNED(RELU_ENTRY)};
static const nori__ref_line_fn not_lines[NORI_TYPE_COUNT] = {[NORI_BOOL] = not_bool};

static nori_status one(nori_call *call, const nori__ref_line_fn *lines)
{
    NORI__TRY(nori__ref_need(call, 0));
    nori__ref_line_fn fn = lines[call->in[0]->type];
    return fn ? nori__ref_lines(call, call->out[0], call->in, 1, fn, NULL)
              : nori__ref_bad_type(call, 0);
}

nori_status nori__ref_Abs(nori_call *call)
{
    return one(call, abs_lines);
}

nori_status nori__ref_Neg(nori_call *call)
{
    return one(call, neg_lines);
}

nori_status nori__ref_Sign(nori_call *call)
{
    return one(call, sign_lines);
}

nori_status nori__ref_BitwiseNot(nori_call *call)
{
    return one(call, bitnot_lines);
}

nori_status nori__ref_Relu(nori_call *call)
{
    return one(call, relu_lines);
}

nori_status nori__ref_Not(nori_call *call)
{
    return one(call, not_lines);
}

/* ---- classification ---- */

static bool has_nan(nori_type type)
{
    return nori__type_is_float(type) ||
           (type >= NORI_FLOAT8E4M3FN && type <= NORI_FLOAT8E5M2FNUZ) || type == NORI_FLOAT8E8M0;
}

typedef struct classify {
    bool nan, plus, minus; /* what counts */
} classify;

static void classify_line(const nori__ref_line *l)
{
    const classify *c = l->user;
    uint8_t *o = NORI__LINE_OUT(l, uint8_t);
    double x[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        nori__ref_load_f64(l->from[0], l->in[0] + at, 1, n, x);
        for (int64_t i = 0; i < n; i++) {
            o[at + i] = isnan(x[i]) ? c->nan : isinf(x[i]) && (x[i] > 0 ? c->plus : c->minus);
        }
    }
}

static nori_status classify_all(nori_call *call, classify c)
{
    NORI__TRY(nori__ref_need(call, 0));
    if (!has_nan((nori_type)call->in[0]->type)) {
        return nori__ref_bad_type(call, 0);
    }
    return nori__ref_lines(call, call->out[0], call->in, 1, classify_line, &c);
}

nori_status nori__ref_IsNaN(nori_call *call)
{
    return classify_all(call, (classify){true, false, false});
}

nori_status nori__ref_IsInf(nori_call *call)
{
    return classify_all(call, (classify){false,
                                         nori__attr_i(call->node, "detect_positive", 1) != 0,
                                         nori__attr_i(call->node, "detect_negative", 1) != 0});
}
