/* compiler.h: the only place for compiler extensions outside ISA files. */
#ifndef NORI_BASE_COMPILER_H
#define NORI_BASE_COMPILER_H

#if defined(__GNUC__)
#define NORI__PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORI__LIKELY(x) __builtin_expect(!!(x), 1)
#define NORI__UNLIKELY(x) __builtin_expect(!!(x), 0)
#define NORI__UNUSED __attribute__((unused))
#define NORI__RESTRICT __restrict
#define NORI__PREFETCH(p) __builtin_prefetch(p, 0, 2) /* to read, into the second cache */
#define NORI__TYPEOF(x) __typeof__(x) /* only for what needs such a compiler */
#else
#define NORI__PRINTF(fmt, args)
#define NORI__LIKELY(x) (x)
#define NORI__UNLIKELY(x) (x)
#define NORI__UNUSED
#define NORI__RESTRICT
#define NORI__PREFETCH(p) ((void)(p))
#endif

/* One turn of a loop that waits for another thread. */
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#define NORI__RELAX() __builtin_ia32_pause()
#elif defined(__GNUC__) && defined(__aarch64__)
#define NORI__RELAX() __asm__ volatile("yield")
#else
#define NORI__RELAX() ((void)0)
#endif

/* A float at any address: weights as they lie in a file. */
#if defined(__GNUC__)
typedef float nori__any_f32 __attribute__((aligned(1)));
typedef unsigned short nori__any_u16 __attribute__((aligned(1)));
#else
typedef float nori__any_f32;
typedef unsigned short nori__any_u16;
#endif

#define NORI__COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
