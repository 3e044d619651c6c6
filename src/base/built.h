/* built.h: what a build holds. A full one holds everything; a reduced one (docs/size.md) what nori_built.h
 * says, which tools/gen_built.py makes: a macro NORI__BUILT_<what> of 0 or 1 for each
 *
 *   ONNX_Conv, MS_QGemm ...   operator of the list
 *   nori_Block ...            operator that only the cpu provider makes
 *   rewrite_block ...         rewrite of the cpu provider, step before it
 *   kernels_block ...         group of micro-kernels
 *   level_avx2 ...            CPU level past base
 *   provider_cpu ...          provider
 *   parts                     giving parts of models to providers that take them
 *
 * Tables name what they hold through these; what no table names the linker leaves out. */
#ifndef NORI_BASE_BUILT_H
#define NORI_BASE_BUILT_H

#ifdef NORI_REDUCED
#include "nori_built.h"
#define NORI__BUILT(what) NORI__BUILT_##what
#else
#define NORI__BUILT(what) 1
#endif

/* The rest of the arguments where what is built, else nothing: for rows of tables. */
#define NORI__IF_BUILT(what, ...) NORI__IF_BUILT_OF(NORI__BUILT(what), __VA_ARGS__)
#define NORI__IF_BUILT_OF(flag, ...) NORI__IF_BUILT_AS(flag, __VA_ARGS__)
#define NORI__IF_BUILT_AS(flag, ...) NORI__IF_BUILT_##flag(__VA_ARGS__)
#define NORI__IF_BUILT_1(...) __VA_ARGS__
#define NORI__IF_BUILT_0(...)

/* A function or an object where what is built, else NULL. */
#define NORI__WHERE_BUILT(what, pointer) (NORI__BUILT(what) ? (pointer) : NULL)

#endif
