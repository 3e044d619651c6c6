/* exact_sum.c: sums of float32 numbers that do not depend on the order. */
#include <math.h>

#include "tools/quantize/quantize.h"

#define LIMBS 6
#define UNIT (-149) /* exponent of the least float32 */

/* Adds low, high << 64 at limb i, and carries. */
static void add_at(nori__exact *s, int i, uint64_t low, uint64_t high)
{
    uint64_t carry = 0;
    for (int k = i; k < LIMBS; k++) {
        uint64_t term = k == i ? low : k == i + 1 ? high : 0;
        uint64_t sum = s->limbs[k] + term;
        uint64_t over = sum < term;
        s->limbs[k] = sum + carry;
        carry = over | (s->limbs[k] < carry);
    }
}

static void negate(nori__exact *s)
{
    for (int k = 0; k < LIMBS; k++) {
        s->limbs[k] = ~s->limbs[k];
    }
    add_at(s, 0, 1, 0);
}

void nori__exact_add(nori__exact *sum, float v)
{
    int e;
    float m = frexpf(fabsf(v), &e); /* in [0.5, 1) */
    uint64_t digits = (uint64_t)ldexpf(m, 24);
    int at = e - 24 - UNIT; /* may be below 0 where the last digits are zero */
    if (digits == 0) {
        return;
    }
    digits = at < 0 ? digits >> -at : digits;
    at = at < 0 ? 0 : at;
    nori__exact term = {{0}};
    int limb = at / 64, shift = at % 64;
    add_at(&term, limb, digits << shift, shift > 40 ? digits >> (64 - shift) : 0);
    if (v < 0) {
        negate(&term);
    }
    nori__exact_join(sum, &term);
}

void nori__exact_join(nori__exact *sum, const nori__exact *other)
{
    uint64_t carry = 0;
    for (int k = 0; k < LIMBS; k++) {
        uint64_t s = sum->limbs[k] + other->limbs[k];
        uint64_t over = s < sum->limbs[k];
        sum->limbs[k] = s + carry;
        carry = over | (sum->limbs[k] < carry);
    }
}

double nori__exact_value(const nori__exact *sum)
{
    nori__exact s = *sum;
    bool negative = s.limbs[LIMBS - 1] >> 63;
    double v = 0;
    if (negative) {
        negate(&s);
    }
    for (int k = LIMBS - 1; k >= 0; k--) {
        v += ldexp((double)s.limbs[k], 64 * k + UNIT);
    }
    return negative ? -v : v;
}
