/* cuda_double.h: between the double of NVIDIA's libraries (cuda_double.c) and the kernels it runs on the
 * host (cuda_kernels.cpp); and what tests ask it. */
#ifndef NORI_TESTS_CUDA_DOUBLE_H
#define NORI_TESTS_CUDA_DOUBLE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOUBLE_PARAMETERS 24

typedef struct double_kernel {
    const char *name;
    int count; /* of parameters */
    size_t sizes[DOUBLE_PARAMETERS];
    int pointers[DOUBLE_PARAMETERS]; /* whether they are */
    void (*run)(void **parameters);  /* one thread */
    int barriers;                    /* whether threads of a block wait for each other */
    /* Of one that was compiled on its own: told thread, block and size of a block. */
    void (*place)(const unsigned at[3][3]);
} double_kernel;

/* NULL: no kernel of that name. */
const double_kernel *double_find(const char *name);
/* A kernel whose text is all there is of it, compiled for the host by a compiler of C++ (cuda_made.c);
 * NULL: it does not compile. The same text is compiled once. */
const double_kernel *double_make(const char *name, const char *source);
/* Runs a grid, block after block. NULL, or what a kernel did wrong. */
const char *double_run(const double_kernel *k, const unsigned grid[3], const unsigned block[3],
                       size_t shared, void **parameters);

/* For the doubles of cuBLASLt and cuDNN (cuda_libraries_double.c); these take the lock themselves. */
int double_wrong(int code, const char *what);       /* a call against the rules: counted, code comes back */
int double_context(void);                            /* whether this thread has one */
int double_stream(const void *stream);               /* whether it is one */
int double_within(const void *at, size_t bytes);     /* whether all of it is memory of the device */
void double_add(const char *what, long n);
/* Something to do when its turn comes, and again when a recording of it is replayed; a copy of size bytes
 * (at most 768) is kept. NULL, or what was wrong. */
int double_later(const char *(*act)(const void *what), const void *what, size_t size);

/* What happened since the process began, or is there now: "allocations", "pinned", "modules", "streams",
 * "graphs", "contexts", "handles" (all that live), "launches", "products", "convolutions" (that libraries
 * were asked for), "replays", "compiles", "loads", "bytes in", "bytes out",
 * "wrong" (calls against the rules). -1: no such count. */
long cuda_double_count(const char *what);
/* The first call against the rules, or "". */
const char *cuda_double_complaint(void);
/* "": works. "none": no device. "old": an old driver. "source": kernels do not compile. "memory": nothing
 * more can be allocated. "init": cuInit fails. "arch": the compiler is older than the device. "refuse":
 * code is not taken. */
void cuda_double_mode(const char *mode);

#ifdef __cplusplus
}
#endif
#endif
