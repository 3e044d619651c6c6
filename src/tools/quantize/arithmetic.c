/* arithmetic.c: between real numbers and integers of few bits; formulas in nori/tools.h. */
#include <math.h>

#include "tools/quantize/quantize.h"
#include "base/given.h"

bool nori__quant_limits(nori_type type, int64_t *q_min, int64_t *q_max)
{
    unsigned bits = nori_type_bits(type);
    switch (type) {
    case NORI_INT2:
    case NORI_INT4:
    case NORI_INT8:
    case NORI_INT16:
    case NORI_INT32:
        *q_min = -((int64_t)1 << (bits - 1));
        *q_max = ((int64_t)1 << (bits - 1)) - 1;
        return true;
    case NORI_UINT2:
    case NORI_UINT4:
    case NORI_UINT8:
    case NORI_UINT16:
    case NORI_UINT32:
        *q_min = 0;
        *q_max = ((int64_t)1 << bits) - 1;
        return true;
    default:
        return false;
    }
}

static int64_t clamp(int64_t q, int64_t low, int64_t high)
{
    return q < low ? low : q > high ? high : q;
}

nori_status nori_quant_range(nori_type type, double r_min, double r_max, int symmetric,
                             nori_quant *quant, nori_error *err)
{
    int64_t low, high;
    if (!nori__quant_limits(type, &low, &high)) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "%s is no type to quantize to: an integer of 2 to 32 bits was expected",
                          nori_type_name(type));
    }
    if (!isfinite(r_min) || !isfinite(r_max) || r_min > r_max) {
        return nori__fail(err, NORI_ERROR_ARGUMENT,
                          "the range [%g, %g] is none: two finite numbers, the lower one first, "
                          "were expected",
                          r_min, r_max);
    }
    double lo = r_min < 0 ? r_min : 0, hi = r_max > 0 ? r_max : 0;
    bool is_signed = low < 0;
    int64_t zero = is_signed ? 0 : (high + 1) / 2;
    if (symmetric) {
        double most = -lo > hi ? -lo : hi;
        lo = -most;
        hi = most;
        low += is_signed; /* as many steps on either side of 0 */
    }
    double steps = (double)high - (double)low;
    double scale = hi > lo ? hi / steps - lo / steps : 1; /* hi - lo may overflow */
    if (symmetric) {
        /* Above Z an unsigned type has one step less than below. */
        scale = hi > lo ? hi / (double)(is_signed ? high : high - zero) : 1;
    } else {
        zero = clamp((int64_t)nearbyint((double)low - lo / scale), low, high);
    }
    if (scale < (double)NORI__QUANT_LEAST_SCALE) {
        scale = (double)NORI__QUANT_LEAST_SCALE; /* a float32, and no denormal */
    }
    nori_quant q = {quant->size, type, scale, zero, low, high};
    memcpy(quant, &q, quant->size < sizeof(q) ? quant->size : sizeof(q));
    return NORI_OK;
}

int64_t nori_quantize_number(const nori_quant *quant, double real, int *saturated)
{
    NORI__ASKED(quant, 0);
    double q = nearbyint(real / quant->scale) + (double)quant->zero_point;
    bool out = !(q >= (double)quant->q_min && q <= (double)quant->q_max);
    if (saturated) {
        *saturated = out;
    }
    if (isnan(q)) {
        return quant->zero_point;
    }
    return q < (double)quant->q_min   ? quant->q_min
           : q > (double)quant->q_max ? quant->q_max
                                      : (int64_t)q;
}

double nori_dequantize_number(const nori_quant *quant, int64_t q)
{
    NORI__ASKED(quant, 0.0);
    return quant->scale * (double)(q - quant->zero_point);
}
