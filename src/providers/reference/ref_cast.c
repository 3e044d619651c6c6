/* ref_cast.c: Cast, CastLike, BitCast. Strings are in ref_cast_text.c.
 *
 * Float to float rounds to nearest even, overflow gives infinity (or what the 8-bit types have,
 * by the attribute saturate); NaN stays NaN where the type has one. Float to integer truncates
 * toward zero; out of range, which ONNX leaves undefined, goes to the nearest 64-bit integer and
 * then drops high bits; NaN gives 0. Integer to integer drops high bits. To bool: nonzero, NaN
 * included, is true. Complex types are refused. */
#include <math.h>

#include "ops/families.h"
#include "providers/reference/ref_cast.h"

/* The rules of the attributes, for the 8-bit float types. */
typedef struct rules {
    bool saturate;
    char round_mode; /* of float8e8m0: u, d or n */
} rules;

static bool is_small_float(int type)
{
    return (type >= NORI_FLOAT8E4M3FN && type <= NORI_FLOAT8E5M2FNUZ) || type == NORI_FLOAT8E8M0;
}

/* Powers of two from 2^-127 (code 0) to 2^127 (254); 255 is NaN. Negative numbers have no code:
 * NaN. */
static uint8_t to_e8m0(double v, rules r)
{
    if (isnan(v) || v < 0) {
        return 255;
    }
    if (isinf(v)) {
        return r.saturate ? 254 : 255;
    }
    if (v == 0) {
        return r.saturate ? 0 : 255;
    }
    int e;
    double m = frexp(v, &e); /* v = m 2^e, m in [0.5, 1) */
    e += 126;
    e += r.round_mode == 'u' ? m > 0.5 : r.round_mode == 'n' ? m >= 0.75 : 0;
    if (e < 0 || e > 254) {
        return !r.saturate ? 255 : e < 0 ? 0 : 254;
    }
    return (uint8_t)e;
}

static void small_float_line(const nori__ref_line *l)
{
    const rules *r = l->user;
    nori_type to = (nori_type)l->to->type;
    uint8_t *o = NORI__LINE_OUT(l, uint8_t);
    double x[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        nori__ref_load_f64(l->from[0], l->in[0] + at, 1, n, x);
        for (int64_t i = 0; i < n; i++) {
            o[at + i] = to == NORI_FLOAT8E8M0 ? to_e8m0(x[i], *r)
                                              : nori__f32_to_f8((float)x[i], to, r->saturate);
        }
    }
}

static void f64_line(const nori__ref_line *l)
{
    double x[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        nori__ref_load_f64(l->from[0], l->in[0] + at, 1, n, x);
        nori__ref_store_f64(l->to, l->out + at, n, x);
    }
}

/* float4e2m1 has no NaN: it becomes -0, as in the ONNX test cases. */
static void f4_line(const nori__ref_line *l)
{
    for (int64_t i = 0; i < l->n; i++) {
        double x = nori__tensor_get_f64(l->from[0], l->in[0] + i);
        nori__tensor_set_f64(l->to, l->out + i, isnan(x) ? -0.0 : x);
    }
}

static void i64_line(const nori__ref_line *l)
{
    int64_t x[NORI__REF_BLOCK];
    for (int64_t at = 0; at < l->n; at += NORI__REF_BLOCK) {
        int64_t n = l->n - at < NORI__REF_BLOCK ? l->n - at : NORI__REF_BLOCK;
        nori__ref_load_i64(l->from[0], l->in[0] + at, 1, n, x);
        nori__ref_store_i64(l->to, l->out + at, n, x);
    }
}

/* 64-bit integers straight to float: by way of double some would be rounded twice. */
static void wide_to_f32_line(const nori__ref_line *l)
{
    float *o = NORI__LINE_OUT(l, float);
    const int64_t *x = NORI__LINE_IN(l, 0, int64_t);
    bool has_sign = l->from[0]->type == NORI_INT64;
    for (int64_t i = 0; i < l->n; i++) {
        o[i] = has_sign ? (float)x[i] : (float)(uint64_t)x[i];
    }
}

/* Masks and pictures: a byte is a float as it is. */
static void byte_to_f32_line(const nori__ref_line *l)
{
    float *o = NORI__LINE_OUT(l, float);
    const uint8_t *x = NORI__LINE_IN(l, 0, uint8_t);
    if (l->from[0]->type == NORI_BOOL) {
        for (int64_t i = 0; i < l->n; i++) {
            o[i] = x[i] != 0 ? 1.0f : 0.0f;
        }
        return;
    }
    for (int64_t i = 0; i < l->n; i++) {
        o[i] = (float)x[i];
    }
}

static bool is_integer(int type)
{
    switch (type) {
    case NORI_UINT8:
    case NORI_INT8:
    case NORI_UINT16:
    case NORI_INT16:
    case NORI_INT32:
    case NORI_INT64:
    case NORI_BOOL:
    case NORI_UINT32:
    case NORI_UINT64:
    case NORI_UINT4:
    case NORI_INT4:
    case NORI_UINT2:
    case NORI_INT2:
        return true;
    default:
        return false;
    }
}

static bool is_complex(int type)
{
    return type == NORI_COMPLEX64 || type == NORI_COMPLEX128;
}

nori_status nori__ref_copy(nori_call *call, const nori_tensor *from, nori_tensor *to)
{
    if (from->type != NORI_STRING) {
        if (to->bytes > 0 && to->data != from->data) {
            memmove(to->data, from->data, to->bytes);
        }
        return NORI_OK;
    }
    const nori_string *s = from->data;
    for (int64_t i = 0; i < from->count; i++) {
        NORI__TRY(nori__tensor_set_string(to, i, s[i].data, s[i].size, call->err));
    }
    return NORI_OK;
}

/* Sub-byte elements share bytes, so two threads may not write neighbours: one line at a time. */
static nori_status alone(nori_call *call, nori__ref_line_fn fn, void *user)
{
    nori__ref_walk w;
    NORI__TRY(nori__ref_walk_start(call, &w, call->out[0], call->in, 1));
    w.line.user = user;
    while (nori__ref_walk_next(&w)) {
        fn(&w.line);
    }
    return NORI_OK;
}

nori_status nori__ref_Cast(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *from = call->in[0];
    nori_tensor *to = call->out[0];
    const char *mode = nori__attr_s(call->node, "round_mode", "up");
    rules r = {nori__attr_i(call->node, "saturate", 1) != 0, mode[0]};
    if (is_complex(from->type) || is_complex(to->type)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "%s from %s to %s is not defined",
                          call->node->op_type, nori_type_name((nori_type)from->type),
                          nori_type_name((nori_type)to->type));
    }
    if (from->type == to->type) {
        return nori__ref_copy(call, from, to);
    }
    if (from->type == NORI_STRING) {
        return nori__ref_cast_from_text(call);
    }
    if (to->type == NORI_STRING) {
        return nori__ref_cast_to_text(call);
    }
    nori__ref_line_fn fn = f64_line;
    if (is_small_float(to->type)) {
        fn = small_float_line;
    } else if (to->type == NORI_FLOAT4E2M1) {
        fn = f4_line;
    } else if (is_integer(from->type) && is_integer(to->type)) {
        fn = i64_line;
    } else if ((from->type == NORI_INT64 || from->type == NORI_UINT64) && to->type == NORI_FLOAT) {
        fn = wide_to_f32_line;
    } else if ((from->type == NORI_BOOL || from->type == NORI_UINT8) && to->type == NORI_FLOAT) {
        fn = byte_to_f32_line;
    }
    return nori_type_bits((nori_type)to->type) < 8
               ? alone(call, fn, &r)
               : nori__ref_lines(call, to, call->in, 1, fn, &r);
}

nori_status nori__ref_BitCast(nori_call *call)
{
    NORI__TRY(nori__ref_need(call, 0));
    const nori_tensor *from = call->in[0];
    nori_tensor *to = call->out[0];
    if (from->type == NORI_STRING || to->type == NORI_STRING || from->bytes != to->bytes) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "BitCast from %s to %s: the types must have one width",
                          nori_type_name((nori_type)from->type),
                          nori_type_name((nori_type)to->type));
    }
    if (to->bytes > 0 && to->data != from->data) {
        memmove(to->data, from->data, to->bytes);
    }
    return NORI_OK;
}
