/* cpu_kernels.h: the cpu provider: kernels on the micro-kernels of src/kernels, and its rewrites. */
#ifndef NORI_PROVIDERS_CPU_CPU_KERNELS_H
#define NORI_PROVIDERS_CPU_CPU_KERNELS_H

#include "ops/op.h"

/* The kernel for a node, or NULL: the reference kernel runs it. */
const nori__kernel *nori__cpu_kernel(const nori__node *node);


extern const nori_provider nori__cpu_provider;

#endif
