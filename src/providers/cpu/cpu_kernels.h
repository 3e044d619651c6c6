/* cpu_kernels.h: the cpu provider: kernels on the micro-kernels of src/kernels, and its rewrites. */
#ifndef NORI_PROVIDERS_CPU_CPU_KERNELS_H
#define NORI_PROVIDERS_CPU_CPU_KERNELS_H

#include "ops/op.h"

/* The kernel for a node, or NULL: the reference kernel runs it. */
const nori__kernel *nori__cpu_kernel(const nori__node *node);

/* Joins nodes into ones the provider has faster kernels for. Types must have been inferred. For the
 * compiled copy only: the result is not standard ONNX. fuse.c: convolutions with what follows;
 * fuse_patterns.c: activations and normalizations that exporters write out. */
nori_status nori__cpu_fuse(nori__ir *ir, nori_error *err);
nori_status nori__cpu_fuse_patterns(nori__ir *ir, nori_error *err);
/* Pads with zeros become those of the convolutions behind them (fuse_pads.c). */
nori_status nori__cpu_fuse_pads(nori__ir *ir, nori_error *err);
/* Float32 islands in models of float16 and bfloat16 (half_islands.c); before the others. */
nori_status nori__cpu_half_islands(nori__ir *ir, nori_error *err);
/* Quantized graphs onto integer operators (integers.c); before fuse. */
nori_status nori__cpu_integers(nori__ir *ir, nori_error *err);
/* Moves convolutional networks onto channel blocks (blocked_rewrite.c). */
nori_status nori__cpu_block(nori__ir *ir, nori_error *err);
/* cpu_rewrites.c has them all, in order: what a session for this provider does with its copy. */

extern const nori_provider nori__cpu_provider;

#endif
