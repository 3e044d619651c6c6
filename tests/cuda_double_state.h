/* cuda_double_state.h: what the files of the double of NVIDIA's libraries share: its memory, what was
 * started, and how a call is looked at. */
#ifndef NORI_TESTS_CUDA_DOUBLE_STATE_H
#define NORI_TESTS_CUDA_DOUBLE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_double.h"

enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    LAUNCH_FAILED = 719,
    CAPTURING = 900
};

#define GUARD 64 /* bytes behind an allocation that nobody may write */
#define MOST_BLOCK 1024
#define MOST_SHARED 49152

typedef struct block {
    struct block *next;
    size_t bytes;
    unsigned char *data;
    bool host;
} block;

typedef struct step {
    struct step *next;
    const double_kernel *kernel; /* NULL: a copy, or act */
    const char *(*act)(const void *what); /* on values */
    unsigned grid[3], threads[3], shared;
    _Alignas(16) unsigned char values[DOUBLE_PARAMETERS][32];
    void *to;
    void *from;
    size_t bytes;
} step;

typedef struct list {
    step *first, **end;
} list;

#pragma GCC visibility push(hidden) /* no names for those who load the double */

/* What calls change; under the lock. */
typedef struct state {
    block *blocks;
    list queue;    /* started and not waited for */
    list recorded; /* while capturing */
    bool capturing, initialized;
    int context, stream; /* their addresses are the handles */
} state;
extern state now;
extern _Thread_local int double_current; /* contexts pushed by this thread */

void double_lock(void);
void double_unlock(void);
bool double_is(const char *mode);
void add(const char *what, long n);
int wrong(int code, const char *what); /* the caller has the lock */

/* ---- cuda_double_device.c ---- */
block *block_with(const void *at, size_t bytes, bool host); /* NULL: no allocation has all of it */
int allocate(void **at, size_t bytes, bool host);
int give_back(void *at, bool host);
void put(list *l, step *s);
void drop(list *l);
int run_queue(void);
int later(const void *to, const void *from, size_t bytes);

#pragma GCC visibility pop

/* ---- calls ---- */

#define CALL(name, parameters, ...)         \
    int name parameters;                    \
    int name parameters                     \
    {                                       \
        int code = 0;                       \
        double_lock();          \
        if (!now.initialized) {                 \
            code = NOT_INITIALIZED;         \
        } else {                            \
            __VA_ARGS__                     \
        }                                   \
        double_unlock();        \
        return code;                        \
    }
#define CHECK(what, failure, text)          \
    if (code == 0 && !(what)) {             \
        code = wrong(failure, text);        \
    }
#define NEED_CONTEXT CHECK(double_current > 0, INVALID_CONTEXT, "a call needs a current context")
#define NEED_STREAM CHECK(stream == &now.stream, INVALID_HANDLE, "no such stream")

#endif
