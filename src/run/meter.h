/* meter.h: the allocators of one context: what its runs hold is counted against the cap, and what
 * kernels gave back is kept for the next that asks for as much, so that runs at shapes met before
 * take nothing from the environment's allocator.
 *
 * Memory passes through unchanged: a piece may be given back to the environment's allocator itself,
 * which is what nori__meter_let_go makes of tensors that leave the run. */
#ifndef NORI_RUN_METER_H
#define NORI_RUN_METER_H

#include <pthread.h>

#include "graph/tensor.h"

#define NORI__METER_CLASSES 64

typedef struct nori__spare {
    void *memory;
    size_t size, align;
    uint64_t run; /* in which it was given back */
} nori__spare;

typedef struct nori__spares { /* the pieces of one power of two */
    nori__spare *items;
    size_t count, capacity;
} nori__spares;

typedef struct nori__meter {
    nori_allocator plain;  /* counted */
    nori_allocator pooled; /* counted, and kept when given back */
    const nori_allocator *base;
    uint64_t cap; /* 0: none */
    pthread_mutex_t lock; /* guards what follows: kernels may allocate in the pool's threads */
    size_t live;   /* bytes in use */
    size_t spare;  /* bytes kept */
    size_t most;   /* largest live of this run and the one before */
    uint64_t run;
    size_t refused, refused_live; /* what was asked for, and live then, when the cap said no first */
    nori__spares classes[NORI__METER_CLASSES];
} nori__meter;

void nori__meter_init(nori__meter *meter, const nori_allocator *base, uint64_t cap);
/* Everything taken from it must have been given back or let go. */
void nori__meter_close(nori__meter *meter);
/* Around a run: pieces no run has wanted since the last one began are given back at its end. */
void nori__meter_begin(nori__meter *meter);
void nori__meter_end(nori__meter *meter);
/* A tensor that outlives the run, its items too: no longer counted, and given back to the base. What the
 * run did not make (an input handed through, a constant of the model) becomes a copy: an output must live
 * without them. */
nori_status nori__meter_let_go(nori__meter *meter, nori_tensor **tensor, nori_error *err);
/* An error MEMORY that comes from the cap becomes LIMIT, with what was asked for and in use. */
nori_status nori__meter_explain(const nori__meter *meter, nori_status status, nori_error *err);

#endif
