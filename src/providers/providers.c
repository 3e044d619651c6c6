/* providers.c: the list of built-in providers. */
#include "providers/providers.h"

#include "base/built.h"

#include "providers/cpu/cpu_kernels.h"

/* The reference kernel runs what nobody else takes, so its provider need not offer any. */
const nori_provider nori__reference_provider = {
    .size = sizeof(nori_provider),
    .name = "reference",
    .description = "plain C, double accumulation: the yardstick, and what runs the rest",
};

static const nori__builtin builtins[] = {
    NORI__IF_BUILT(provider_cpu, {&nori__cpu_provider, nori__cpu_rewrites},)
    {&nori__reference_provider, NULL},
    NORI__IF_BUILT(provider_ort, {&nori__ort_provider, NULL},)
#ifdef NORI_WITH_XNNPACK
    NORI__IF_BUILT(provider_xnnpack, {&nori__xnnpack_provider, NULL},)
#endif
    NORI__IF_BUILT(provider_nnapi, {&nori__nnapi_provider, NULL},)
#ifdef NORI_WITH_OPENCL
    NORI__IF_BUILT(provider_opencl, {&nori__opencl_provider, NULL},)
#endif
#ifdef NORI_WITH_CUDA
    NORI__IF_BUILT(provider_cuda, {&nori__cuda_provider, NULL},)
#endif
};

const nori__builtin *nori__builtin_find(const char *name)
{
    for (size_t i = 0; i < NORI__COUNT(builtins); i++) {
        if (nori__same(builtins[i].provider->name, name)) {
            return &builtins[i];
        }
    }
    return NULL;
}

const nori_provider *nori_provider_at(size_t index)
{
    return index < NORI__COUNT(builtins) ? builtins[index].provider : NULL;
}
