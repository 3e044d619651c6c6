/* peak.h: loops that do nothing but multiply and add, to measure what the machine can do. */
#ifndef NORI_BENCH_PEAK_H
#define NORI_BENCH_PEAK_H

#include <stddef.h>

/* Runs about flop float operations from registers; returns how many it did. */
double peak_base(double flop);
double peak_avx2(double flop);
double peak_avx512(double flop);

/* Keeps results alive. */
extern volatile float peak_sink;

#endif
