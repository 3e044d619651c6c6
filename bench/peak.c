/* peak.c: the loop for plain C. */
#include "peak.h"

volatile float peak_sink;

double peak_base(double flop)
{
    enum { LANES = 48 };
    float s[LANES];
    size_t rounds = (size_t)(flop / (2 * LANES)) + 1;
    for (size_t i = 0; i < LANES; i++) {
        s[i] = (float)i;
    }
    for (size_t r = 0; r < rounds; r++) {
        for (size_t i = 0; i < LANES; i++) {
            s[i] = s[i] * 0.999f + 0.001f;
        }
    }
    float sum = 0;
    for (size_t i = 0; i < LANES; i++) {
        sum += s[i];
    }
    peak_sink = sum;
    return (double)rounds * 2 * LANES;
}
