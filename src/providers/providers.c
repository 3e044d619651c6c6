/* providers.c: the list of built-in providers. */
#include "providers/providers.h"

#include "providers/cpu/cpu_kernels.h"

/* The reference kernel runs what nobody else takes, so its provider need not offer any. */
const nori_provider nori__reference_provider = {
    .size = sizeof(nori_provider),
    .name = "reference",
    .description = "plain C, double accumulation: the yardstick, and what runs the rest",
};

static const nori__builtin builtins[] = {
    {&nori__cpu_provider, nori__cpu_rewrites},
    {&nori__reference_provider, NULL},
    {&nori__ort_provider, NULL},
#ifdef NORI_WITH_XNNPACK
    {&nori__xnnpack_provider, NULL},
#endif
    {&nori__nnapi_provider, NULL},
#ifdef NORI_WITH_OPENCL
    {&nori__opencl_provider, NULL},
#endif
#ifdef NORI_WITH_CUDA
    {&nori__cuda_provider, NULL},
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
