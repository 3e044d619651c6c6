/* ref_binary.c: arithmetic on two tensors with broadcasting: Add Sub Mul Div Mod Pow.
 *
 * Floats follow IEEE 754 (x / 0 is an infinity or NaN); half types compute in float and round
 * once. Integers wrap on overflow; the smallest integer divided by -1 wraps to itself; division
 * by zero and Mod by zero are errors DATA. Integer Div truncates toward zero; Mod takes the sign
 * of the divisor, with fmod=1 that of the dividend. Empty tensors give empty results. */
#include <math.h>

#include "ops/families.h"
#include "providers/reference/ref.h"

/* A line of a binary operator; EXPR is in terms of x and y, of type value. An input that is one
 * element for the whole line is loaded once. */
#define BINARY(op, name, stored, value, EXPR)                                      \
    static void op##_##name(const nori__ref_line *l)                               \
    {                                                                              \
        stored *o = NORI__LINE_OUT(l, stored);                                     \
        const stored *a = NORI__LINE_IN(l, 0, stored);                             \
        const stored *b = NORI__LINE_IN(l, 1, stored);                             \
        if (l->step[0] && l->step[1]) {                                            \
            for (int64_t i = 0; i < l->n; i++) {                                   \
                value x = nori__load_##name(a + i), y = nori__load_##name(b + i);  \
                nori__store_##name(o + i, EXPR);                                   \
            }                                                                      \
        } else if (l->step[0]) {                                                   \
            value y = nori__load_##name(b);                                        \
            for (int64_t i = 0; i < l->n; i++) {                                   \
                value x = nori__load_##name(a + i);                                \
                nori__store_##name(o + i, EXPR);                                   \
            }                                                                      \
        } else {                                                                   \
            value x = nori__load_##name(a);                                        \
            for (int64_t i = 0; i < l->n; i++) {                                   \
                value y = nori__load_##name(b + i * l->step[1]);                   \
                nori__store_##name(o + i, EXPR);                                   \
            }                                                                      \
        }                                                                          \
    }

#define ADD(TYPE, name, stored, value, wrap) \
    BINARY(add, name, stored, value, (value)((wrap)x + (wrap)y))
#define SUB(TYPE, name, stored, value, wrap) \
    BINARY(sub, name, stored, value, (value)((wrap)x - (wrap)y))
#define MUL(TYPE, name, stored, value, wrap) \
    BINARY(mul, name, stored, value, (value)((wrap)x * (wrap)y))
#define DIV_PLAIN(TYPE, name, stored, value, wrap) BINARY(div, name, stored, value, (value)(x / y))
#define DIV_SIGNED(TYPE, name, stored, value, wrap) \
    BINARY(div, name, stored, value, (value)(y == -1 ? (value)(0 - (wrap)x) : (value)(x / y)))
#define REM_UNSIGNED(TYPE, name, stored, value, wrap) \
    BINARY(rem, name, stored, value, (value)(x % y))
#define REM_SIGNED(TYPE, name, stored, value, wrap) \
    BINARY(rem, name, stored, value, (value)(y == -1 ? 0 : x % y))
#define REM_FLOAT(TYPE, name, stored, value, wrap) \
    BINARY(rem, name, stored, value, (value)fmod((double)x, (double)y))
/* Remainder moved to the divisor's sign. */
#define MOD_SIGNED(TYPE, name, stored, value, wrap)                                       \
    BINARY(mod, name, stored, value,                                                      \
           (value)(y == -1 ? 0 : x % y == 0 || (x < 0) == (y < 0) ? x % y : x % y + y))

NORI__REF_NUMBERS(ADD)
NORI__REF_NUMBERS(SUB)
NORI__REF_NUMBERS(MUL)
NORI__REF_FLOATS(DIV_PLAIN)
NORI__REF_UNSIGNED(DIV_PLAIN)
NORI__REF_SIGNED(DIV_SIGNED)
NORI__REF_UNSIGNED(REM_UNSIGNED)
NORI__REF_SIGNED(REM_SIGNED)
NORI__REF_FLOATS(REM_FLOAT)
NORI__REF_SIGNED(MOD_SIGNED)

#define ADD_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = add_##name,
#define SUB_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = sub_##name,
#define MUL_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = mul_##name,
#define DIV_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = div_##name,
#define REM_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = rem_##name,
#define MOD_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = mod_##name,
static const nori__ref_line_fn add_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(ADD_ENTRY)};
static const nori__ref_line_fn sub_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(SUB_ENTRY)};
static const nori__ref_line_fn mul_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(MUL_ENTRY)};
static const nori__ref_line_fn div_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(DIV_ENTRY)};
static const nori__ref_line_fn rem_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(REM_ENTRY)};
static const nori__ref_line_fn mod_lines[NORI_TYPE_COUNT] = {NORI__REF_SIGNED(MOD_ENTRY)
                                                                 NORI__REF_UNSIGNED(REM_ENTRY)};

nori_status nori__ref_two(nori_call *call, const nori__ref_line_fn *lines)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__ref_need(call, 1));
    const nori_tensor *a = call->in[0], *b = call->in[1];
    if (a->type != b->type) {
        return nori__fail(call->err, NORI_ERROR_DATA, "inputs of %s have types %s and %s, "
                          "expected the same", call->node->op_type,
                          nori_type_name((nori_type)a->type), nori_type_name((nori_type)b->type));
    }
    if (!lines[a->type]) {
        return nori__ref_bad_type(call, 0);
    }
    return nori__ref_lines(call, call->out[0], call->in, 2, lines[a->type], NULL);
}

/* Refuses zeros in an integer divisor, whether or not they meet an element. */
static nori_status check_divisor(const nori_call *call)
{
    const nori_tensor *b = nori__ref_in(call, 1);
    if (!b || nori__type_is_float((nori_type)b->type) || call->out[0]->count == 0) {
        return NORI_OK;
    }
    int64_t block[NORI__REF_BLOCK];
    for (int64_t at = 0; at < b->count; at += NORI__REF_BLOCK) {
        int64_t n = b->count - at < NORI__REF_BLOCK ? b->count - at : NORI__REF_BLOCK;
        nori__ref_load_i64(b, at, 1, n, block);
        for (int64_t i = 0; i < n; i++) {
            if (block[i] == 0) {
                return nori__fail(call->err, NORI_ERROR_DATA,
                                  "integer division by zero: element %lld of input 1 of %s",
                                  (long long)(at + i), call->node->op_type);
            }
        }
    }
    return NORI_OK;
}

nori_status nori__ref_Add(nori_call *call)
{
    return nori__ref_two(call, add_lines);
}

nori_status nori__ref_Sub(nori_call *call)
{
    return nori__ref_two(call, sub_lines);
}

nori_status nori__ref_Mul(nori_call *call)
{
    return nori__ref_two(call, mul_lines);
}

nori_status nori__ref_Div(nori_call *call)
{
    NORI__TRY(check_divisor(call));
    return nori__ref_two(call, div_lines);
}

nori_status nori__ref_Mod(nori_call *call)
{
    bool as_c = nori__attr_i(call->node, "fmod", 0) != 0;
    NORI__TRY(nori__ref_need(call, 0));
    if (!as_c && nori__type_is_float((nori_type)call->in[0]->type)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "Mod of floating-point tensors needs the attribute fmod=1");
    }
    NORI__TRY(check_divisor(call));
    return nori__ref_two(call, as_c ? rem_lines : mod_lines);
}

/* ---- Pow: the exponent may have a type of its own ---- */

/* x^y by squaring, modulo 2^64; a negative exponent truncates the quotient 1 / x^-y. */
static int64_t pow_int(int64_t x, int64_t y)
{
    if (y < 0) {
        return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
    }
    uint64_t base = (uint64_t)x, result = 1;
    for (uint64_t e = (uint64_t)y; e; e >>= 1) {
        result = e & 1 ? result * base : result;
        base *= base;
    }
    return (int64_t)result;
}

static void pow_int_line(const nori__ref_line *l)
{
    int64_t x[NORI__REF_BLOCK], y[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        nori__ref_load_i64(l->from[0], l->in[0] + at * l->step[0], l->step[0], n, x);
        nori__ref_load_i64(l->from[1], l->in[1] + at * l->step[1], l->step[1], n, y);
        for (int64_t i = 0; i < n; i++) {
            x[i] = pow_int(x[i], y[i]);
        }
        nori__ref_store_i64(l->to, l->out + at, n, x);
    }
}

static void pow_line(const nori__ref_line *l)
{
    double x[NORI__REF_BLOCK], y[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        nori__ref_load_f64(l->from[0], l->in[0] + at * l->step[0], l->step[0], n, x);
        nori__ref_load_f64(l->from[1], l->in[1] + at * l->step[1], l->step[1], n, y);
        for (int64_t i = 0; i < n; i++) { /* squares are what normalizations ask for */
            x[i] = y[i] == 2 ? x[i] * x[i] : pow(x[i], y[i]);
        }
        nori__ref_store_f64(l->to, l->out + at, n, x);
    }
}

nori_status nori__ref_Pow(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(nori__ref_need(call, 1));
    int type = call->in[0]->type, exponent = call->in[1]->type;
    bool int_base = type == NORI_INT32 || type == NORI_INT64;
    bool int_exponent = exponent >= NORI_UINT8 && exponent <= NORI_INT64;
    int_exponent = int_exponent || exponent == NORI_UINT32 || exponent == NORI_UINT64;
    if (!int_base && !nori__type_is_float((nori_type)type)) {
        return nori__ref_bad_type(call, 0);
    }
    if (!int_exponent && !nori__type_is_float((nori_type)exponent)) {
        return nori__ref_bad_type(call, 1);
    }
    return nori__ref_lines(call, call->out[0], call->in, 2,
                           int_base && int_exponent ? pow_int_line : pow_line, NULL);
}
