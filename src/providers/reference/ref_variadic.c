/* ref_variadic.c: Max Min Sum Mean of any number of tensors, and Clip; with broadcasting.
 *
 * NaN in any input gives NaN (numpy's rule, not fmax's). Of -0 and 0 the first one stays. Integer
 * sums do not occur. Clip with min above max gives max; with a NaN bound, NaN. */
#include <math.h>

#include "ops/families.h"
#include "providers/reference/ref.h"

#define TWO(op, name, stored, value, EXPR)                                                \
    static void op##_##name(const nori__ref_line *l)                                      \
    {                                                                                     \
        stored *o = NORI__LINE_OUT(l, stored);                                            \
        const stored *a = NORI__LINE_IN(l, 0, stored), *b = NORI__LINE_IN(l, 1, stored);  \
        int64_t as = l->step[0], bs = l->step[1];                                         \
        for (int64_t i = 0; i < l->n; i++) {                                              \
            value x = nori__load_##name(a + i * as), y = nori__load_##name(b + i * bs);   \
            nori__store_##name(o + i, EXPR);                                              \
        }                                                                                 \
    }
/* x != x is NaN; always false for integers, and gcc knows. */
#define MAX(TYPE, name, stored, value, wrap) \
    TWO(max, name, stored, value, x >= y ? x : y > x ? y : isnan((double)x) ? x : y)
#define MIN(TYPE, name, stored, value, wrap) \
    TWO(min, name, stored, value, x <= y ? x : y < x ? y : isnan((double)x) ? x : y)
#define SUM(TYPE, name, stored, value, wrap) TWO(sum, name, stored, value, x + y)
NORI__REF_NUMBERS(MAX)
NORI__REF_NUMBERS(MIN)
NORI__REF_FLOATS(SUM)
#define MAX_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = max_##name,
#define MIN_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = min_##name,
#define SUM_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = sum_##name,
static const nori__ref_line_fn max_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(MAX_ENTRY)};
static const nori__ref_line_fn min_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(MIN_ENTRY)};
static const nori__ref_line_fn sum_lines[NORI_TYPE_COUNT] = {NORI__REF_FLOATS(SUM_ENTRY)};

static void copy_line(const nori__ref_line *l)
{
    size_t size = nori_type_bits((nori_type)l->to->type) / 8;
    char *to = (char *)l->to->data + (size_t)l->out * size;
    const char *from = (const char *)l->from[0]->data + (size_t)l->in[0] * size;
    if (l->step[0]) {
        memmove(to, from, (size_t)l->n * size);
        return;
    }
    for (int64_t i = 0; i < l->n; i++) {
        memcpy(to + (size_t)i * size, from, size);
    }
}

/* out = ((in0 op in1) op in2) ... The output may lie over any one input: a third or later one is
 * then kept aside, since the first step writes over it. */
static nori_status fold(nori_call *call, const nori__ref_line_fn *lines)
{
    nori_tensor *out = call->out[0];
    for (uint32_t i = 0; i < call->n_in; i++) {
        NORI__TRY(nori__ref_need(call, i));
        if (!lines[call->in[i]->type] || call->in[i]->type != out->type) {
            return nori__ref_bad_type(call, i);
        }
    }
    if (call->n_in == 0) {
        return nori__ref_need(call, 0);
    }
    if (call->n_in == 1) {
        return nori__ref_lines(call, out, call->in, 1, copy_line, NULL);
    }
    nori_tensor *aside = NULL;
    for (uint32_t i = 2; i < call->n_in && out->bytes > 0 && !aside; i++) {
        if (call->in[i]->data == out->data) {
            NORI__TRY(nori__tensor_copy(call->allocator, call->in[i], &aside, call->err));
        }
    }
    nori_status s = nori__ref_lines(call, out, call->in, 2, lines[out->type], NULL);
    for (uint32_t i = 2; s == NORI_OK && i < call->n_in; i++) {
        bool moved = aside && call->in[i]->data == out->data;
        const nori_tensor *in[2] = {out, moved ? aside : call->in[i]};
        s = nori__ref_lines(call, out, in, 2, lines[out->type], NULL);
    }
    nori_tensor_free(aside);
    return s;
}

nori_status nori__ref_Max(nori_call *call)
{
    return fold(call, max_lines);
}

nori_status nori__ref_Min(nori_call *call)
{
    return fold(call, min_lines);
}

nori_status nori__ref_Sum(nori_call *call)
{
    return fold(call, sum_lines);
}

static void divide_line(const nori__ref_line *l)
{
    double by = *(const double *)l->user, x[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        nori__ref_load_f64(l->from[0], l->in[0] + at, 1, n, x);
        for (int64_t i = 0; i < n; i++) {
            x[i] /= by;
        }
        nori__ref_store_f64(l->to, l->out + at, n, x);
    }
}

nori_status nori__ref_Mean(nori_call *call)
{
    NORI__TRY(fold(call, sum_lines));
    double by = (double)call->n_in;
    const nori_tensor *in[1] = {call->out[0]};
    return nori__ref_lines(call, call->out[0], in, 1, divide_line, &by);
}

/* ---- Clip ---- */

typedef struct bounds {
    const nori_tensor *low, *high; /* scalars of the type, or NULL */
    float attr_low, attr_high;     /* the old form's attributes, where given */
    bool has_attr_low, has_attr_high;
} bounds;

/* Min(max, Max(x, min)), each as MAX and MIN above. */
#define CLIP(TYPE, name, stored, value, wrap)                                              \
    static void clip_##name(const nori__ref_line *l)                                       \
    {                                                                                      \
        const bounds *b = l->user;                                                         \
        stored *o = NORI__LINE_OUT(l, stored);                                             \
        const stored *a = NORI__LINE_IN(l, 0, stored);                                     \
        bool has_low = b->low || b->has_attr_low, has_high = b->high || b->has_attr_high;  \
        value low = b->low ? nori__load_##name(b->low->data) : (value)b->attr_low;         \
        value high = b->high ? nori__load_##name(b->high->data) : (value)b->attr_high;     \
        for (int64_t i = 0; i < l->n; i++) {                                               \
            value x = nori__load_##name(a + i);                                            \
            x = has_low && (x < low || isnan((double)low)) ? low : x;                      \
            x = has_high && (x > high || isnan((double)high)) ? high : x;                  \
            nori__store_##name(o + i, x);                                                  \
        }                                                                                  \
    }
NORI__REF_NUMBERS(CLIP)
#define CLIP_ENTRY(TYPE, name, stored, value, wrap) [TYPE] = clip_##name,
static const nori__ref_line_fn clip_lines[NORI_TYPE_COUNT] = {NORI__REF_NUMBERS(CLIP_ENTRY)};

/* Some exporters write bounds of shape [1]: any single element will do. */
static nori_status bound(const nori_call *call, uint32_t i, const nori_tensor **out)
{
    *out = nori__ref_in(call, i);
    if (*out && ((*out)->count != 1 || (*out)->type != call->in[0]->type)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input %u (%s) of Clip must be one %s, found %lld of %s", (unsigned)i,
                          i == 1 ? "min" : "max", nori_type_name((nori_type)call->in[0]->type),
                          (long long)(*out)->count, nori_type_name((nori_type)(*out)->type));
    }
    return NORI_OK;
}

nori_status nori__ref_Clip(nori_call *call)
{
    bounds b = {0};
    NORI__TRY(nori__ref_need(call, 0));
    NORI__TRY(bound(call, 1, &b.low));
    NORI__TRY(bound(call, 2, &b.high));
    if (nori__type_is_float((nori_type)call->in[0]->type)) { /* all the old form had */
        b.has_attr_low = nori__attr_find(call->node, "min") != NULL;
        b.has_attr_high = nori__attr_find(call->node, "max") != NULL;
        b.attr_low = nori__attr_f(call->node, "min", -INFINITY);
        b.attr_high = nori__attr_f(call->node, "max", INFINITY);
    }
    nori__ref_line_fn fn = clip_lines[call->in[0]->type];
    return fn ? nori__ref_lines(call, call->out[0], call->in, 1, fn, &b)
              : nori__ref_bad_type(call, 0);
}
