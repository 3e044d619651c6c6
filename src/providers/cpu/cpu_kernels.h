/* cpu_kernels.h: the cpu provider: kernels on the micro-kernels of src/kernels, and its rewrites. */
#ifndef NORI_PROVIDERS_CPU_CPU_KERNELS_H
#define NORI_PROVIDERS_CPU_CPU_KERNELS_H

#include "ops/op.h"

/* The kernel for a node, or NULL: the reference kernel runs it. */
const nori__kernel *nori__cpu_kernel(const nori__node *node);

/* Joins nodes into ones the provider has faster kernels for (com.microsoft FusedConv ...). Types
 * must have been inferred. For the compiled copy only: the result is not standard ONNX. */
nori_status nori__cpu_fuse(nori__ir *ir, nori_error *err);

extern const nori_provider nori__cpu_provider;

#endif
