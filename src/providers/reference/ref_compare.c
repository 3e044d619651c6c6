/* ref_compare.c: comparisons, boolean and bitwise logic, shifts, Where: all with broadcasting.
 *
 * Comparing with NaN is false (so is NaN == NaN); -0 equals 0. Strings compare byte by byte.
 * Booleans are any nonzero byte when read and 0 or 1 when written. Shifting by the width of the
 * type or more gives 0. */
#include "ops/families.h"
#include "providers/reference/ref.h"

/* A line from two inputs of one type to bytes 0 or 1, or to the same type. */
#define TWO(op, name, stored, value, result, EXPR)                                     \
    static void op##_##name(const nori__ref_line *l)                                   \
    {                                                                                  \
        result *o = NORI__LINE_OUT(l, result);                                         \
        const stored *a = NORI__LINE_IN(l, 0, stored), *b = NORI__LINE_IN(l, 1, stored); \
        int64_t as = l->step[0], bs = l->step[1];                                      \
        for (int64_t i = 0; i < l->n; i++) {                                           \
            value x = nori__load_##name(a + i * as), y = nori__load_##name(b + i * bs); \
            o[i] = (result)(EXPR);                                                     \
        }                                                                              \
    }

#define EQUAL(TYPE, name, stored, value, wrap) TWO(eq, name, stored, value, uint8_t, x == y)
#define LESS(TYPE, name, stored, value, wrap) TWO(lt, name, stored, value, uint8_t, x < y)
#define GREATER(TYPE, name, stored, value, wrap) TWO(gt, name, stored, value, uint8_t, x > y)
#define LESS_EQ(TYPE, name, stored, value, wrap) TWO(le, name, stored, value, uint8_t, x <= y)
#define GREATER_EQ(TYPE, name, stored, value, wrap) TWO(ge, name, stored, value, uint8_t, x >= y)
NORI__REF_NUMBERS(EQUAL)
TWO(eq, bool, uint8_t, uint8_t, uint8_t, !x == !y)
NORI__REF_NUMBERS(LESS)
NORI__REF_NUMBERS(GREATER)
NORI__REF_NUMBERS(LESS_EQ)
NORI__REF_NUMBERS(GREATER_EQ)

static void eq_string(const nori__ref_line *l)
{
    uint8_t *o = NORI__LINE_OUT(l, uint8_t);
    const nori_string *a = NORI__LINE_IN(l, 0, nori_string);
    const nori_string *b = NORI__LINE_IN(l, 1, nori_string);
    for (int64_t i = 0; i < l->n; i++) {
        const nori_string *x = a + i * l->step[0], *y = b + i * l->step[1];
        o[i] = x->size == y->size && (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
    }
}

#define EQ_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = eq_##name,
#define LT_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = lt_##name,
#define GT_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = gt_##name,
#define LE_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = le_##name,
#define GE_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = ge_##name,
static const nori__ref_line_fn eq_lines[NORI_TYPE_COUNT] = {
    NORI__REF_NUMBERS(EQ_ENTRY) NORI__REF_BOOL(EQ_ENTRY)[NORI_STRING] = eq_string};
static const nori__ref_line_fn lt_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(LT_ENTRY)};
static const nori__ref_line_fn gt_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(GT_ENTRY)};
static const nori__ref_line_fn le_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(LE_ENTRY)};
static const nori__ref_line_fn ge_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(GE_ENTRY)};

nori_status nori__ref_Equal(nori_call *call)
{
    return nori__ref_two(call, eq_lines);
}

nori_status nori__ref_Less(nori_call *call)
{
    return nori__ref_two(call, lt_lines);
}

nori_status nori__ref_Greater(nori_call *call)
{
    return nori__ref_two(call, gt_lines);
}

nori_status nori__ref_LessOrEqual(nori_call *call)
{
    return nori__ref_two(call, le_lines);
}

nori_status nori__ref_GreaterOrEqual(nori_call *call)
{
    return nori__ref_two(call, ge_lines);
}

/* ---- booleans ---- */

TWO(and, bool, uint8_t, uint8_t, uint8_t, x && y)
TWO(or, bool, uint8_t, uint8_t, uint8_t, x || y)
TWO(xor, bool, uint8_t, uint8_t, uint8_t, !x != !y)
static const nori__ref_line_fn and_lines[NORI_TYPE_COUNT] = {[NORI_BOOL] = and_bool};
static const nori__ref_line_fn or_lines[NORI_TYPE_COUNT] = {[NORI_BOOL] = or_bool};
static const nori__ref_line_fn xor_lines[NORI_TYPE_COUNT] = {[NORI_BOOL] = xor_bool};

nori_status nori__ref_And(nori_call *call)
{
    return nori__ref_two(call, and_lines);
}

nori_status nori__ref_Or(nori_call *call)
{
    return nori__ref_two(call, or_lines);
}

nori_status nori__ref_Xor(nori_call *call)
{
    return nori__ref_two(call, xor_lines);
}

/* ---- bits ---- */

#define BIT_AND(TYPE, name, stored, value, wrap) TWO(bitand, name, stored, value, stored, x & y)
#define BIT_OR(TYPE, name, stored, value, wrap) TWO(bitor, name, stored, value, stored, x | y)
#define BIT_XOR(TYPE, name, stored, value, wrap) TWO(bitxor, name, stored, value, stored, x ^ y)
#define SHIFT_LEFT(TYPE, name, stored, value, wrap)  \
    TWO(left, name, stored, value, stored, y >= sizeof(stored) * 8 ? 0 : (wrap)x << y)
#define SHIFT_RIGHT(TYPE, name, stored, value, wrap) \
    TWO(right, name, stored, value, stored, y >= sizeof(stored) * 8 ? 0 : (wrap)x >> y)
NORI__REF_INTS(BIT_AND)
NORI__REF_INTS(BIT_OR)
NORI__REF_INTS(BIT_XOR)
NORI__REF_UNSIGNED(SHIFT_LEFT)
NORI__REF_UNSIGNED(SHIFT_RIGHT)
#define BIT_AND_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = bitand_##name,
#define BIT_OR_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = bitor_##name,
#define BIT_XOR_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = bitxor_##name,
#define LEFT_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = left_##name,
#define RIGHT_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = right_##name,
static const nori__ref_line_fn bitand_lines[NORI_TYPE_COUNT] = {NORI__REF_INTS(BIT_AND_ENTRY)};
static const nori__ref_line_fn bitor_lines[NORI_TYPE_COUNT] = {NORI__REF_INTS(BIT_OR_ENTRY)};
static const nori__ref_line_fn bitxor_lines[NORI_TYPE_COUNT] = {NORI__REF_INTS(BIT_XOR_ENTRY)};
static const nori__ref_line_fn left_lines[NORI_TYPE_COUNT] = {NORI__REF_UNSIGNED(LEFT_ENTRY)};
static const nori__ref_line_fn right_lines[NORI_TYPE_COUNT] = {NORI__REF_UNSIGNED(RIGHT_ENTRY)};

nori_status nori__ref_BitwiseAnd(nori_call *call)
{
    return nori__ref_two(call, bitand_lines);
}

nori_status nori__ref_BitwiseOr(nori_call *call)
{
    return nori__ref_two(call, bitor_lines);
}

nori_status nori__ref_BitwiseXor(nori_call *call)
{
    return nori__ref_two(call, bitxor_lines);
}

nori_status nori__ref_BitShift(nori_call *call)
{
    const char *direction = nori__attr_s(call->node, "direction", "");
    if (!nori__same(direction, "LEFT") && !nori__same(direction, "RIGHT")) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "attribute direction of BitShift is \"%s\", expected LEFT or RIGHT",
                          direction);
    }
    return nori__ref_two(call, direction[0] == 'L' ? left_lines : right_lines);
}

/* ---- Where ---- */

/* Moves elements of a width; complex128 is two words. */
#define WHERE(name, T)                                                                 \
    static void where_##name(const nori__ref_line *l)                                  \
    {                                                                                  \
        T *o = NORI__LINE_OUT(l, T);                                                   \
        const uint8_t *c = NORI__LINE_IN(l, 0, uint8_t);                               \
        const T *x = NORI__LINE_IN(l, 1, T), *y = NORI__LINE_IN(l, 2, T);              \
        for (int64_t i = 0; i < l->n; i++) {                                           \
            o[i] = c[i * l->step[0]] ? x[i * l->step[1]] : y[i * l->step[2]];          \
        }                                                                              \
    }
typedef struct two_words {
    uint64_t low, high;
} two_words;
WHERE(8, uint8_t)
WHERE(16, uint16_t)
WHERE(32, uint32_t)
WHERE(64, uint64_t)
WHERE(128, two_words)

static nori_status where_strings(nori_call *call)
{
    nori__ref_walk w;
    NORI__TRY(nori__ref_walk_start(call, &w, call->out[0], call->in, 3));
    while (nori__ref_walk_next(&w)) {
        const nori__ref_line *l = &w.line;
        const uint8_t *c = NORI__LINE_IN(l, 0, uint8_t);
        for (int64_t i = 0; i < l->n; i++) {
            int from = c[i * l->step[0]] ? 1 : 2;
            const nori_string *s = (const nori_string *)l->from[from]->data + l->in[from] +
                                   i * l->step[from];
            NORI__TRY(nori__tensor_set_string(call->out[0], l->out + i, s->data, s->size,
                                              call->err));
        }
    }
    return NORI_OK;
}

nori_status nori__ref_Where(nori_call *call)
{
    for (uint32_t i = 0; i < 3; i++) {
        NORI__TRY(nori__ref_need(call, i));
    }
    if (call->in[0]->type != NORI_BOOL) {
        return nori__ref_bad_type(call, 0);
    }
    if (call->in[1]->type != call->in[2]->type) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "inputs 1 and 2 of Where have types %s and %s, expected the same",
                          nori_type_name((nori_type)call->in[1]->type),
                          nori_type_name((nori_type)call->in[2]->type));
    }
    if (call->in[1]->type == NORI_STRING) {
        return where_strings(call);
    }
    nori__ref_line_fn fn = NULL;
    switch (nori_type_bits((nori_type)call->in[1]->type)) {
    case 8:
        fn = where_8;
        break;
    case 16:
        fn = where_16;
        break;
    case 32:
        fn = where_32;
        break;
    case 64:
        fn = where_64;
        break;
    case 128:
        fn = where_128;
        break;
    default:
        return nori__ref_bad_type(call, 1);
    }
    return nori__ref_lines(call, call->out[0], call->in, 3, fn, NULL);
}
