/* chosen.h: kernels that have several ways to do a layer ask for one when they are prepared.
 *
 * Each kind of layer has a list of ways (the provider's; providers/cpu/ways.h) and a rule that takes one
 * of them. A session over packs (packed.h) may have choices that were measured, by step: they take the
 * rule's place where they are of the layer's kind and can do it. What was asked and taken is noted. */
#ifndef NORI_PLAN_CHOSEN_H
#define NORI_PLAN_CHOSEN_H

#include "plan/packed.h"

#define NORI__WAYS_MOST 32 /* of a kind */

/* What makes a layer another one, as far as preparing knows it; -1: not known. A product has the depth
 * as channels, the columns as made and the rows as out[0]. */
typedef struct nori__layer {
    int64_t batch, channels, made, group;
    int64_t kernel[2], stride[2], dilation[2], in[2], out[2];
    int64_t joined; /* what else is part of it, as its kernel counts that */
} nori__layer;

typedef struct nori__way_ask {
    uint32_t kind;
    uint32_t fits;  /* bit i: way i can do it */
    uint32_t usual; /* what the rule takes */
    nori__layer layer;
} nori__way_ask;

/* The way to go, one of those that fit. a: what the kernel's prepare was given. One ask a step. */
uint32_t nori__way_asked(const nori_allocator *a, const nori__way_ask *ask);

/* A choice, as a file lists it. */
typedef struct nori__way_entry {
    uint32_t step, op; /* whose kernel, and the hash of its operator */
    uint32_t kind, way;
} nori__way_entry;

/* Whether entries are in order of step, and no way is beyond what a kind may have. */
bool nori__ways_check(const nori__way_entry *entries, size_t count);
/* Before anything is prepared; entries outlive the packs. */
void nori__packs_steer(nori__packs *packs, const nori__way_entry *entries, size_t count);

typedef struct nori__way_noted {
    nori__way_ask ask;
    nori__way_entry taken;
} nori__way_noted;
/* In order of step; until the packs are freed. */
size_t nori__ways_noted(const nori__packs *packs, const nori__way_noted **noted);
/* How many of the entries were no choice for what was prepared. */
size_t nori__ways_unfit(const nori__packs *packs);

#endif
