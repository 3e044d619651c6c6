/* kernels.c: filling the table of micro-kernels. */
#include "base/built.h"
#include "kernels/internal.h"

#include <pthread.h>

static nori__kernels table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A reduced build leaves out the groups that its operators have no use for. */
#define FILL(level, group)                    \
    do {                                      \
        if (NORI__BUILT(kernels_##group)) {   \
            nori__##level##_##group(k);       \
        }                                     \
    } while (0)

static void fill(nori__cpu_level level, nori__kernels *k)
{
    memset(k, 0, sizeof(*k));
    k->level = level;
    FILL(base, gemm);
    FILL(base, int8);
    FILL(base, unary);
    FILL(base, vector);
    FILL(base, recurrent);
    FILL(base, window);
    FILL(base, quant);
    FILL(base, move);
    FILL(base, product8);
    FILL(base, block);
#ifdef NORI__X86
    if (NORI__BUILT(level_avx2) && level >= NORI__CPU_AVX2) {
        FILL(avx2, gemm);
        FILL(avx2, int8);
        FILL(avx2, unary);
        FILL(avx2, vector);
        FILL(avx2, recurrent);
        FILL(avx2, window);
        FILL(avx2, quant);
        FILL(avx2, move);
        FILL(avx2, product8);
        FILL(avx2, block);
    }
    if (NORI__BUILT(level_avx512) && level >= NORI__CPU_AVX512) {
        FILL(avx512, product8);
        FILL(avx512, gemm);
        FILL(avx512, recurrent);
        FILL(avx512, unary);
        FILL(avx512, vector);
        FILL(avx512, block);
    }
#ifdef __x86_64__
    if (NORI__BUILT(level_amx) && level >= NORI__CPU_AMX) {
        FILL(amx, product8);
        FILL(amx, quant);
    }
#endif
#endif
}

static void fill_once(void)
{
    fill(nori__cpu_level_get(), &table);
}

const nori__kernels *nori__kernels_get(void)
{
    pthread_once(&once, fill_once);
    return &table;
}

bool nori__kernels_fill(nori__cpu_level level, nori__kernels *k)
{
    if (level > nori__cpu_level_get()) {
        return false;
    }
    fill(level, k);
    return true;
}
