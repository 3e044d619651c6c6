/* ref_quant.c: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
 *
 * Quantizing divides in the scale's precision (or the one of `precision`), rounds half to even,
 * adds the zero point and saturates; NaN gives the lowest integer. Float 8 and 4 bit targets are
 * cast as their type has it. Dequantizing subtracts exactly, then multiplies in float32 and rounds
 * to the output's type. Empty tensors stay empty. */
#include "base/half.h"
#include "providers/reference/ref.h"
#include "providers/reference/ref_nn.h"

#include <math.h>

#define CHUNK 256

/* x seen as outer x length x inner around the axis; the scale of element (o, i, j) is at
 * o * so + (i / block) * si + j * sj. */
typedef struct grain {
    int64_t outer, length, inner, block;
    int64_t so, si, sj;
} grain;

static nori_status grain_of(const nori_call *call, grain *g)
{
    const nori_tensor *x = call->in[0], *s = call->in[1];
    int64_t block = nori__attr_i(call->node, "block_size", 0);
    int axis;
    *g = (grain){1, 1, x->count, 1, 0, 0, 0};
    if (s->count == 1 && block == 0) {
        return NORI_OK;
    }
    NORI__TRY(x->rank == 1 ? nori__fix_axis(call->err, 0, 1, &axis)
                           : nori__fix_axis(call->err, nori__attr_i(call->node, "axis", 1), x->rank,
                                            &axis));
    g->outer = nori__nn_product(x->dims, 0, axis);
    g->length = x->dims[axis];
    g->inner = nori__nn_product(x->dims, axis + 1, x->rank);
    g->si = 1;
    if (block == 0) {
        return nori__nn_count(call, 1, "scale", g->length);
    }
    g->block = block;
    int64_t blocks = block > 0 && g->length > 0 ? (g->length - 1) / block + 1 : 0;
    bool fits = s->rank == x->rank && block > 0;
    for (int d = 0; d < x->rank && fits; d++) {
        fits = s->dims[d] == (d == axis ? blocks : x->dims[d]);
    }
    if (!fits) {
        return nori__fail(
            call->err, NORI_ERROR_DATA,
            "the scale does not have the input's shape in blocks of %lld along axis %d",
            (long long)block, axis);
    }
    g->sj = 1;
    g->si = g->inner;
    g->so = blocks * g->inner;
    return NORI_OK;
}

static nori_status check(const nori_call *call, grain *g)
{
    NORI__TRY(nori__nn_need(call, 0, "x", -1));
    NORI__TRY(nori__nn_need(call, 1, "scale", -1));
    NORI__TRY(grain_of(call, g));
    return nori__nn_count(call, 2, "zero point", call->in[1]->count);
}

static float round_to(float v, nori_type precision)
{
    if (precision == NORI_FLOAT16) {
        return nori__f16_to_f32(nori__f32_to_f16(v));
    }
    return precision == NORI_BFLOAT16 ? nori__bf16_to_f32(nori__f32_to_bf16(v)) : v;
}

typedef struct target {
    nori_type type, precision;
    double low, high;
    bool saturate, integer;
} target;

/* n elements from index `from` with one scale and zero point. */
static void quantize_line(const nori_call *call, const target *t, int64_t from, int64_t n,
                          int64_t param)
{
    const nori_tensor *zeros = nori__nn_has(call, 2) ? call->in[2] : NULL;
    nori_tensor *y = call->out[0];
    float x[CHUNK], scale = (float)nori__tensor_get_f64(call->in[1], param);
    float zero = zeros ? (float)nori__tensor_get_f64(zeros, param) : 0;
    float low = (float)t->low, high = (float)t->high;
    for (int64_t done = 0; done < n; done += CHUNK) {
        int64_t count = n - done < CHUNK ? n - done : CHUNK, at = from + done;
        nori__nn_load_f32(call->in[0], at, count, x);
        for (int64_t i = 0; i < count; i++) {
            x[i] = x[i] / scale;
        }
        for (int64_t i = 0; i < count && t->precision != NORI_FLOAT; i++) {
            x[i] = round_to(x[i], t->precision);
        }
        for (int64_t i = 0; i < count && t->integer; i++) {
            float v = rintf(x[i]) + zero;
            x[i] = v >= low ? (v < high ? v : high) : low;
        }
        if (t->type == NORI_UINT8) {
            for (int64_t i = 0; i < count; i++) {
                ((uint8_t *)y->data)[at + i] = (uint8_t)x[i];
            }
        } else if (t->type == NORI_INT8) {
            for (int64_t i = 0; i < count; i++) {
                ((int8_t *)y->data)[at + i] = (int8_t)x[i];
            }
        } else if (t->integer) {
            for (int64_t i = 0; i < count; i++) {
                nori__tensor_set_i64(y, at + i, (int64_t)x[i]);
            }
        } else if (t->type == NORI_FLOAT4E2M1) {
            for (int64_t i = 0; i < count; i++) {
                nori__tensor_set_f64(y, at + i, (double)(x[i] + zero));
            }
        } else {
            for (int64_t i = 0; i < count; i++) {
                ((uint8_t *)y->data)[at + i] = nori__f32_to_f8(x[i] + zero, t->type, t->saturate);
            }
        }
    }
}

/* Calls line for runs of elements that share a scale. */
static void each_line(const nori_call *call, const grain *g, const target *t,
                      void (*line)(const nori_call *, const target *, int64_t, int64_t, int64_t))
{
    int64_t at = 0;
    for (int64_t o = 0; o < g->outer && call->in[0]->count > 0; o++) {
        for (int64_t i = 0; i < g->length; i++) {
            int64_t param = o * g->so + i / g->block * g->si;
            if (g->sj == 0) {
                line(call, t, at, g->inner, param);
                at += g->inner;
                continue;
            }
            for (int64_t j = 0; j < g->inner; j++) {
                line(call, t, at++, 1, param + j);
            }
        }
    }
}

nori_status nori__ref_QuantizeLinear(nori_call *call)
{
    grain g;
    NORI__TRY(check(call, &g));
    nori_type type = (nori_type)call->out[0]->type, scale = (nori_type)call->in[1]->type;
    nori_type x = (nori_type)call->in[0]->type;
    target t = {.type = type, .saturate = nori__attr_i(call->node, "saturate", 1) != 0};
    nori__nn_range(type, &t.low, &t.high);
    t.integer = t.high > 0;
    t.precision = (nori_type)nori__attr_i(call->node, "precision", NORI_UNDEFINED);
    if (t.precision == NORI_UNDEFINED) { /* 0, the default, stands for the type of the scale */
        t.precision = scale;
    }
    if (t.precision != NORI_FLOAT16 && t.precision != NORI_BFLOAT16) {
        t.precision = NORI_FLOAT;
    }
    bool small =
        type == NORI_FLOAT4E2M1 || (type >= NORI_FLOAT8E4M3FN && type <= NORI_FLOAT8E5M2FNUZ);
    if ((!t.integer && !small) || type == NORI_INT32 ||
        (!nori__type_is_float(x) && x != NORI_INT32)) {
        return nori__nn_type_error(call, t.integer || small ? 0 : 2);
    }
    each_line(call, &g, &t, quantize_line);
    return NORI_OK;
}

/* ---- DequantizeLinear ---- */

static void dequantize_line(const nori_call *call, const target *t, int64_t from, int64_t n,
                            int64_t param)
{
    const nori_tensor *x = call->in[0], *zeros = nori__nn_has(call, 2) ? call->in[2] : NULL;
    float out[CHUNK], scale = (float)nori__tensor_get_f64(call->in[1], param);
    int64_t zero = zeros && t->integer ? nori__tensor_get_i64(zeros, param) : 0;
    double fzero = zeros ? nori__tensor_get_f64(zeros, param) : 0;
    for (int64_t done = 0; done < n; done += CHUNK) {
        int64_t count = n - done < CHUNK ? n - done : CHUNK, at = from + done;
        if (x->type == NORI_UINT8) {
            const uint8_t *p = (const uint8_t *)x->data + at;
            for (int64_t i = 0; i < count; i++) {
                out[i] = (float)((int32_t)p[i] - (int32_t)zero) * scale;
            }
        } else if (x->type == NORI_INT8) {
            const int8_t *p = (const int8_t *)x->data + at;
            for (int64_t i = 0; i < count; i++) {
                out[i] = (float)((int32_t)p[i] - (int32_t)zero) * scale;
            }
        } else if (t->integer) {
            for (int64_t i = 0; i < count; i++) {
                out[i] = (float)(nori__tensor_get_i64(x, at + i) - zero) * scale;
            }
        } else {
            for (int64_t i = 0; i < count; i++) {
                out[i] = (float)(nori__tensor_get_f64(x, at + i) - fzero) * scale;
            }
        }
        nori__nn_store_f32(call->out[0], at, count, out);
    }
}

nori_status nori__ref_DequantizeLinear(nori_call *call)
{
    grain g;
    NORI__TRY(check(call, &g));
    nori_type type = (nori_type)call->in[0]->type;
    target t = {.type = type};
    nori__nn_range(type, &t.low, &t.high);
    t.integer = t.high > 0;
    bool small =
        type == NORI_FLOAT4E2M1 || (type >= NORI_FLOAT8E4M3FN && type <= NORI_FLOAT8E5M2FNUZ);
    if (!t.integer && !small) {
        return nori__nn_type_error(call, 0);
    }
    if (!nori__type_is_float((nori_type)call->out[0]->type)) {
        return nori__nn_type_error(call, 1);
    }
    each_line(call, &g, &t, dequantize_line);
    return NORI_OK;
}

/* ---- DynamicQuantizeLinear ---- */

/* The range is widened to hold 0; an all-zero (or empty) input has scale 1. */
nori_status nori__ref_DynamicQuantizeLinear(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "x", -1));
    const nori_tensor *x = call->in[0];
    if (x->type != NORI_FLOAT) {
        return nori__nn_type_error(call, 0);
    }
    const float *p = x->data;
    float low = 0, high = 0;
    for (int64_t i = 0; i < x->count; i++) {
        low = p[i] < low ? p[i] : low;
        high = p[i] > high ? p[i] : high;
    }
    float scale = high > low ? (high - low) / 255 : 1;
    float zero = rintf((float)nori__nn_clamp((double)(0 - low / scale), 0, 255));
    if (nori__nn_wants(call, 1)) {
        *(float *)call->out[1]->data = scale;
    }
    if (nori__nn_wants(call, 2)) {
        *(uint8_t *)call->out[2]->data = (uint8_t)zero;
    }
    if (nori__nn_wants(call, 0)) {
        uint8_t *y = call->out[0]->data;
        for (int64_t i = 0; i < x->count; i++) {
            float v = rintf(p[i] / scale) + zero;
            y[i] = (uint8_t)(v >= 0 ? (v < 255 ? v : 255) : 0);
        }
    }
    return NORI_OK;
}
