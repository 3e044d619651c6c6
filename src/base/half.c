/* half.c: small float formats, by arithmetic on bits. Every format is (exponent bits, mantissa
 * bits, bias) with its own rule at the top of the range; rounding is to nearest, ties to even,
 * whatever rounding mode the thread is in. */
#include "base/half.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

float nori__f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 1023u;
    if (e == 31) {
        return float_of(sign | 0x7f800000u | m << 13);
    }
    if (e == 0) {
        float v = (float)m * 0x1p-24f;
        return sign ? -v : v;
    }
    return float_of(sign | (e + 112) << 23 | m << 13);
}

/* The code, without sign, of a finite magnitude in a format of man_bits whose smallest normal
 * exponent is least: rounded once, and running on past the format's top, for callers to compare
 * with their largest code. */
static uint32_t round_code(double d, int man_bits, int least)
{
    uint64_t u;
    memcpy(&u, &d, sizeof(u));
    int e = (int)(u >> 52 & 2047) - 1023;
    uint64_t m = (u & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int at = e < least ? least : e;      /* exponent whose units are counted */
    int shift = 52 - man_bits + at - e;
    if (e == -1023 || shift > 53) { /* less than half of the smallest subnormal */
        return 0;
    }
    uint64_t half = UINT64_C(1) << (shift - 1), rest = m & (2 * half - 1);
    uint32_t r = (uint32_t)(m >> shift);
    r += rest > half || (rest == half && (r & 1));
    return r + ((uint32_t)(at - least) << man_bits); /* the hidden bit carries itself in */
}

/* A double rounded to 1 sign, 5 exponent, 10 mantissa bits; one rounding from either source. */
uint16_t nori__f64_to_f16(double d)
{
    uint16_t sign = signbit(d) ? 0x8000u : 0;
    if (isnan(d)) {
        return (uint16_t)(sign | 0x7e00u);
    }
    uint32_t code = isinf(d) ? 0x7c00u : round_code(d, 10, -14);
    return (uint16_t)(sign | (code > 0x7c00u ? 0x7c00u : code));
}

uint16_t nori__f32_to_f16(float f)
{
    return nori__f64_to_f16((double)f);
}

float nori__bf16_to_f32(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

uint16_t nori__f32_to_bf16(float f)
{
    uint32_t u = bits_of(f);
    if (isnan(f)) {
        return (uint16_t)(u >> 16 | 0x40u);
    }
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

typedef struct format {
    int exp_bits, man_bits, bias;
    bool infinity; /* IEEE-like top: all-ones exponent is infinity and NaN */
    bool fnuz;     /* one zero, NaN at 0x80 */
    bool no_nan;   /* neither infinity nor NaN (float4) */
} format;

static format format_of(nori_type type)
{
    switch (type) {
    case NORI_FLOAT8E4M3FN:
        return (format){4, 3, 7, false, false, false};
    case NORI_FLOAT8E4M3FNUZ:
        return (format){4, 3, 8, false, true, false};
    case NORI_FLOAT8E5M2:
        return (format){5, 2, 15, true, false, false};
    case NORI_FLOAT8E5M2FNUZ:
        return (format){5, 2, 16, false, true, false};
    default: /* NORI_FLOAT4E2M1 */
        return (format){2, 1, 1, false, false, true};
    }
}

float nori__f8_to_f32(uint8_t bits, nori_type type)
{
    if (type == NORI_FLOAT8E8M0) { /* a power of two, 2^(bits - 127) */
        return bits == 255 ? NAN : ldexpf(1.0f, (int)bits - 127);
    }
    format f = format_of(type);
    int width = f.exp_bits + f.man_bits;
    unsigned top = (1u << f.exp_bits) - 1;
    unsigned sign = bits >> width & 1, e = bits >> f.man_bits & top;
    unsigned m = bits & ((1u << f.man_bits) - 1);
    if (f.fnuz && bits == 0x80) {
        return NAN;
    }
    if (f.infinity && e == top) {
        return m ? NAN : sign ? -INFINITY : INFINITY;
    }
    if (!f.infinity && !f.fnuz && !f.no_nan && e == top && m == (1u << f.man_bits) - 1) {
        return NAN;
    }
    float v = e == 0 ? ldexpf((float)m, 1 - f.bias - f.man_bits)
                     : ldexpf((float)(m | 1u << f.man_bits), (int)e - f.bias - f.man_bits);
    return sign ? -v : v;
}

static uint8_t to_e8m0(float value, bool saturate)
{
    if (isnan(value) || value < 0) {
        return 255;
    }
    if (isinf(value)) {
        return saturate ? 254 : 255;
    }
    if (value == 0) {
        return 0;
    }
    int e;
    float m = frexpf(value, &e); /* value = m 2^e, m in [0.5, 1) */
    /* Nearest power of two, half way goes up (the exponent's rounding by the mantissa's top). */
    int n = e - 1 + (m >= 0.75f) + 127;
    return n < 0 ? 0 : n > 254 ? (saturate ? 254 : 255) : (uint8_t)n;
}

uint8_t nori__f32_to_f8(float value, nori_type type, bool saturate)
{
    if (type == NORI_FLOAT8E8M0) {
        return to_e8m0(value, saturate);
    }
    format f = format_of(type);
    int width = f.exp_bits + f.man_bits;
    uint8_t sign = (uint8_t)((signbit(value) ? 1u : 0u) << width);
    unsigned top = (1u << f.exp_bits) - 1, man = (1u << f.man_bits) - 1;
    /* Codes without sign: largest finite, infinity or what stands for it, NaN. */
    unsigned largest = f.infinity ? ((top - 1) << f.man_bits | man)
                       : f.fnuz || f.no_nan ? (top << f.man_bits | man)
                                            : (top << f.man_bits | (man - 1));
    uint8_t nan = f.fnuz ? 0x80 : (uint8_t)(f.no_nan ? largest : (sign | ((1u << width) - 1)));
    if (isnan(value)) {
        return nan;
    }
    uint8_t over = saturate || f.no_nan ? (uint8_t)(sign | largest)
                   : f.infinity         ? (uint8_t)(sign | top << f.man_bits)
                                        : nan;
    if (isinf(value)) {
        return over;
    }
    uint32_t code = round_code((double)value, f.man_bits, 1 - f.bias);
    if (code > largest) {
        return over;
    }
    if (f.fnuz && code == 0) {
        return 0; /* no negative zero */
    }
    return (uint8_t)(sign | code);
}
