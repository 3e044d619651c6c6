/* element.c: one element of any numeric type as double or int64, and back. For cold paths. */
#include "graph/tensor.h"

#include <math.h>

#include "base/half.h"

static unsigned sub_bits(const nori_tensor *t, int64_t i, unsigned bits)
{
    unsigned per = 8 / bits, shift = (unsigned)(i % per) * bits;
    return ((const uint8_t *)t->data)[i / per] >> shift & ((1u << bits) - 1);
}

static void set_sub_bits(nori_tensor *t, int64_t i, unsigned bits, unsigned value)
{
    unsigned per = 8 / bits, shift = (unsigned)(i % per) * bits, mask = (1u << bits) - 1;
    uint8_t *p = (uint8_t *)t->data + i / per;
    *p = (uint8_t)((*p & ~(mask << shift)) | (value & mask) << shift);
}

int64_t nori__tensor_get_i64(const nori_tensor *t, int64_t i)
{
    switch (t->type) {
    case NORI_UINT8:
    case NORI_BOOL:
        return ((const uint8_t *)t->data)[i];
    case NORI_INT8:
        return ((const int8_t *)t->data)[i];
    case NORI_UINT16:
        return ((const uint16_t *)t->data)[i];
    case NORI_INT16:
        return ((const int16_t *)t->data)[i];
    case NORI_INT32:
        return ((const int32_t *)t->data)[i];
    case NORI_UINT32:
        return ((const uint32_t *)t->data)[i];
    case NORI_INT64:
        return ((const int64_t *)t->data)[i];
    case NORI_UINT64:
        return (int64_t)((const uint64_t *)t->data)[i];
    case NORI_UINT4:
        return sub_bits(t, i, 4);
    case NORI_INT4:
        return (int64_t)(sub_bits(t, i, 4) ^ 8u) - 8;
    case NORI_UINT2:
        return sub_bits(t, i, 2);
    case NORI_INT2:
        return (int64_t)(sub_bits(t, i, 2) ^ 2u) - 2;
    default: {
        double v = nori__tensor_get_f64(t, i);
        return isnan(v) ? 0 : v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
    }
    }
}

double nori__tensor_get_f64(const nori_tensor *t, int64_t i)
{
    switch (t->type) {
    case NORI_FLOAT:
        return (double)((const float *)t->data)[i];
    case NORI_DOUBLE:
        return ((const double *)t->data)[i];
    case NORI_FLOAT16:
        return (double)nori__f16_to_f32(((const uint16_t *)t->data)[i]);
    case NORI_BFLOAT16:
        return (double)nori__bf16_to_f32(((const uint16_t *)t->data)[i]);
    case NORI_COMPLEX64:
        return (double)((const float *)t->data)[2 * i];
    case NORI_COMPLEX128:
        return ((const double *)t->data)[2 * i];
    case NORI_FLOAT8E4M3FN:
    case NORI_FLOAT8E4M3FNUZ:
    case NORI_FLOAT8E5M2:
    case NORI_FLOAT8E5M2FNUZ:
    case NORI_FLOAT8E8M0:
        return (double)nori__f8_to_f32(((const uint8_t *)t->data)[i], t->type);
    case NORI_FLOAT4E2M1:
        return (double)nori__f8_to_f32((uint8_t)sub_bits(t, i, 4), t->type);
    case NORI_UINT64:
        return (double)((const uint64_t *)t->data)[i];
    case NORI_STRING:
    case NORI_UNDEFINED:
        return 0;
    default:
        return (double)nori__tensor_get_i64(t, i);
    }
}

void nori__tensor_set_i64(nori_tensor *t, int64_t i, int64_t v)
{
    switch (t->type) {
    case NORI_UINT8:
    case NORI_INT8:
        ((uint8_t *)t->data)[i] = (uint8_t)v;
        break;
    case NORI_BOOL:
        ((uint8_t *)t->data)[i] = v != 0;
        break;
    case NORI_UINT16:
    case NORI_INT16:
        ((uint16_t *)t->data)[i] = (uint16_t)v;
        break;
    case NORI_INT32:
    case NORI_UINT32:
        ((uint32_t *)t->data)[i] = (uint32_t)v;
        break;
    case NORI_INT64:
    case NORI_UINT64:
        ((uint64_t *)t->data)[i] = (uint64_t)v;
        break;
    case NORI_UINT4:
    case NORI_INT4:
        set_sub_bits(t, i, 4, (unsigned)v);
        break;
    case NORI_UINT2:
    case NORI_INT2:
        set_sub_bits(t, i, 2, (unsigned)v);
        break;
    default:
        nori__tensor_set_f64(t, i, (double)v);
    }
}

void nori__tensor_set_f64(nori_tensor *t, int64_t i, double v)
{
    switch (t->type) {
    case NORI_FLOAT:
        ((float *)t->data)[i] = (float)v;
        break;
    case NORI_DOUBLE:
        ((double *)t->data)[i] = v;
        break;
    case NORI_FLOAT16:
        ((uint16_t *)t->data)[i] = nori__f64_to_f16(v);
        break;
    case NORI_BFLOAT16:
        ((uint16_t *)t->data)[i] = nori__f32_to_bf16((float)v);
        break;
    case NORI_COMPLEX64:
        ((float *)t->data)[2 * i] = (float)v;
        ((float *)t->data)[2 * i + 1] = 0;
        break;
    case NORI_COMPLEX128:
        ((double *)t->data)[2 * i] = v;
        ((double *)t->data)[2 * i + 1] = 0;
        break;
    case NORI_FLOAT8E4M3FN:
    case NORI_FLOAT8E4M3FNUZ:
    case NORI_FLOAT8E5M2:
    case NORI_FLOAT8E5M2FNUZ:
    case NORI_FLOAT8E8M0:
        ((uint8_t *)t->data)[i] = nori__f32_to_f8((float)v, t->type, true);
        break;
    case NORI_FLOAT4E2M1:
        set_sub_bits(t, i, 4, nori__f32_to_f8((float)v, t->type, true));
        break;
    case NORI_BOOL:
        ((uint8_t *)t->data)[i] = v != 0;
        break;
    case NORI_UINT64:
        ((uint64_t *)t->data)[i] = isnan(v)         ? 0
                                   : v >= 0x1p64    ? UINT64_MAX
                                   : v >= 0         ? (uint64_t)v
                                   : v <= -0x1p63   ? (uint64_t)INT64_MIN
                                                    : (uint64_t)(int64_t)v;
        break;
    case NORI_STRING:
    case NORI_UNDEFINED:
        break;
    default:
        nori__tensor_set_i64(t, i, isnan(v)        ? 0
                                   : v >= 0x1p63   ? INT64_MAX
                                   : v < -0x1p63   ? INT64_MIN
                                                   : (int64_t)v);
    }
}
