/* platform.h: what differs between systems: threads, clock, files, libraries, the CPU. */
#ifndef NORI_PLATFORM_PLATFORM_H
#define NORI_PLATFORM_PLATFORM_H

#include "base/base.h"

/* ---- clock (clock.c) ---- */
uint64_t nori__now_ns(void);     /* monotonic */
uint64_t nori__cpu_ns(void);     /* CPU time of the process */
uint64_t nori__peak_bytes(void); /* largest resident size of the process so far */

/* ---- files (file.c) ---- */
/* A read-only mapping of a whole regular file; empty files map to data NULL, size 0. */
typedef struct nori__map_file {
    const uint8_t *data;
    size_t size;
} nori__map_file;
nori_status nori__map_open(const char *path, nori__map_file *file, nori_error *err);
void nori__map_close(nori__map_file *file);
/* Gives the pages back that were read so far: they come again from the file when looked at. */
void nori__map_relax(const nori__map_file *file);
/* The same for whole pages among these bytes, which must lie in a mapping of a file. */
void nori__map_relax_range(const void *data, size_t size);
/* These bytes of a mapping will be read soon: their pages are mapped in one go where the system can. */
void nori__map_need(const void *data, size_t size);

/* A file that appears whole at path on commit, or not at all (temporary beside it, fsync,
 * rename). After any failed write commit fails too. abort removes the temporary. */
typedef struct nori__out_file nori__out_file;
nori_status nori__out_open(const nori_allocator *a, const char *path, nori__out_file **out,
                           nori_error *err);
nori_status nori__out_write(nori__out_file *out, const void *data, size_t size, nori_error *err);
/* Zeros, which take no room where the file system keeps files with holes. */
nori_status nori__out_zeros(nori__out_file *out, uint64_t size, nori_error *err);
nori_status nori__out_commit(nori__out_file *out, nori_error *err); /* frees out in any case */
void nori__out_abort(nori__out_file *out);                          /* NULL is fine */

/* ---- libraries (library.c) ---- */
void *nori__library_open(const char *path, nori_error *err); /* names path and the reason */
void *nori__library_symbol(void *library, const char *name, nori_error *err);
void nori__library_close(void *library);

/* ---- CPU (cpu.c) ---- */
typedef enum nori__cpu_level {
    NORI__CPU_BASE,   /* what the compiler's target guarantees: SSE2, NEON ... */
    NORI__CPU_AVX2,   /* AVX2, FMA, F16C */
    NORI__CPU_AVX512, /* F, BW, DQ, VL and VNNI */
    NORI__CPU_AMX,    /* and tiles of 8-bit products, where the system grants them */
    NORI__CPU_LEVELS
} nori__cpu_level;
/* The level in use: the best the CPU has, lowered by the environment variable NORI_CPU=base,
 * avx2, avx512 or amx (a level that is not there is ignored). Read once. Tiles are asked of the system
 * for the whole process, and only if the level is not lowered. */
nori__cpu_level nori__cpu_level_get(void);
const char *nori__cpu_level_name(nori__cpu_level level);
/* Model name and feature flags as text, for doctor. Static storage, computed once. */
const char *nori__cpu_name(void);
const char *nori__cpu_features(void);

/* How many threads this process may use and why: affinity mask, cgroup v1 or v2 quota (rounded
 * up), whichever is less; at least 1. root replaces "/" in tests (NULL: the real one). reason, if
 * not NULL, gets one line of text ("2: affinity mask of 2 CPUs"). */
int nori__usable_cpus(const char *root, char *reason, size_t reason_size);

/* ---- thread pool (pool.c) ---- */
/* Workers sleep when idle (they wait awake for some 20 microseconds first; for some 200 between
 * begin_run and end_run, which say that another job is likely). The caller takes part. */
typedef struct nori__pool nori__pool;
nori_status nori__pool_create(const nori_allocator *a, int threads, nori__pool **pool,
                              nori_error *err);
void nori__pool_free(nori__pool *pool);
int nori__pool_threads(const nori__pool *pool); /* NULL pool: 1 */
void nori__pool_begin_run(nori__pool *pool);    /* NULL pool: nothing */
void nori__pool_end_run(nori__pool *pool);

/* Calls body(user, begin, end, thread) for ranges that cover [0, count) once, each range a
 * multiple of grain but the last; returns when all are done. thread is below max_threads and
 * unique among bodies that run at the same time. At most max_threads (0: the pool's) take part.
 * Any number of threads may call this on one pool at once (a busy pool runs the caller's body
 * alone); bodies may not call it again. pool may be NULL. Which thread runs which range is not
 * fixed: results must not depend on it. */
typedef void (*nori__body)(void *user, int64_t begin, int64_t end, int thread);
void nori__parallel_for(nori__pool *pool, int max_threads, int64_t count, int64_t grain,
                        nori__body body, void *user);

#endif
