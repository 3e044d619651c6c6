/* kernel_harness.h: what tests of micro-kernels share: the tables of every level this CPU has, random
 * floats in exactly sized memory, guarded outputs. Include after cmocka.h. */
#ifndef NORI_TESTS_KERNEL_HARNESS_H
#define NORI_TESTS_KERNEL_HARNESS_H

#include <math.h>
#include <stdlib.h>

#include "kernels/kernels.h"

enum { GUARD = 64 };

static nori__kernels levels[NORI__CPU_LEVELS];
static int n_levels;
static uint64_t seed = 1;

static inline double next(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(seed >> 11) / (double)(1ll << 52) - 1;
}

/* Memory that ends where a sanitizer sees one byte too much: count floats, one past alignment. */
typedef struct buffer {
    char *memory;
    size_t bytes;
    void *p;
} buffer;

static inline buffer take(size_t bytes, size_t shift)
{
    buffer b = {malloc(bytes + 2 * GUARD + shift), bytes, NULL};
    assert_non_null(b.memory);
    memset(b.memory, 0x5a, bytes + 2 * GUARD + shift);
    b.p = b.memory + GUARD + shift;
    return b;
}

/* Guards must stand. */
static inline void give(buffer *b)
{
    const char *p = b->p;
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal((uint8_t)p[-1 - (int)i], 0x5a);
        assert_int_equal((uint8_t)p[b->bytes + i], 0x5a);
    }
    free(b->memory);
}

/* Exactly sized input, so that reading too far is seen. */
static inline float *floats(size_t n)
{
    float *p = malloc((n ? n : 1) * sizeof(*p));
    assert_non_null(p);
    for (size_t i = 0; i < n; i++) {
        p[i] = (float)next();
    }
    return p;
}

static inline void near(double got, double want, double tolerance)
{
    bool same = isnan(want) ? isnan(got)
                : isinf(want) || isinf(got) ? got == want
                                            : fabs(got - want) <= tolerance * fmax(1, fabs(want));
    if (!same) {
        print_error("%.9g, expected %.9g\n", got, want);
    }
    assert_true(same);
}

#define EACH_LEVEL(k) for (const nori__kernels *k = levels; k < levels + n_levels; k++)

static inline void levels_fill(void)
{
    for (int l = 0; l < NORI__CPU_LEVELS; l++) {
        n_levels += nori__kernels_fill((nori__cpu_level)l, &levels[n_levels]);
    }
}

#endif
