/* kernels.c: filling the table of micro-kernels. */
#include "kernels/internal.h"

#include <pthread.h>

static nori__kernels table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(nori__cpu_level level, nori__kernels *k)
{
    memset(k, 0, sizeof(*k));
    k->level = level;
    nori__base_gemm(k);
    nori__base_int8(k);
    nori__base_unary(k);
    nori__base_vector(k);
    nori__base_recurrent(k);
    nori__base_window(k);
    nori__base_quant(k);
    nori__base_move(k);
    nori__base_product8(k);
    nori__base_block(k);
#ifdef NORI__X86
    if (level >= NORI__CPU_AVX2) {
        nori__avx2_gemm(k);
        nori__avx2_int8(k);
        nori__avx2_unary(k);
        nori__avx2_vector(k);
        nori__avx2_recurrent(k);
        nori__avx2_window(k);
        nori__avx2_quant(k);
        nori__avx2_move(k);
        nori__avx2_product8(k);
        nori__avx2_block(k);
    }
    if (level >= NORI__CPU_AVX512) {
        nori__avx512_product8(k);
        nori__avx512_gemm(k);
        nori__avx512_recurrent(k);
        nori__avx512_unary(k);
        nori__avx512_vector(k);
        nori__avx512_block(k);
    }
#ifdef __x86_64__
    if (level >= NORI__CPU_AMX) {
        nori__amx_product8(k);
        nori__amx_quant(k);
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
