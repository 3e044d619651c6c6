/* places.h: groups of values that share bytes while a layout is made, and where groups lie. */
#ifndef NORI_PLAN_PLACES_H
#define NORI_PLAN_PLACES_H

#include "plan/plan.h"

#define NORI__NO_GROUP UINT32_MAX

/* Values with the same bytes, or scratch of a step. A group may be a piece of another one: then that
 * one's life and place count. */
typedef struct nori__group {
    nori__life life;
    uint32_t inside; /* NORI__NO_GROUP: a whole of its own */
    size_t at;       /* bytes from the start of that one */
} nori__group;

typedef struct nori__groups {
    nori__group *items; /* room for as many as are made */
    uint32_t count;
} nori__groups;

uint32_t nori__group_new(nori__groups *g, uint32_t first, uint32_t last, size_t bytes);
/* The whole that a group is part of, itself if it is none. */
uint32_t nori__group_whole(nori__groups *g, uint32_t group);
/* The whole's life: from the first step that writes to any piece to the last that reads one. */
uint32_t nori__group_last(nori__groups *g, uint32_t group);
void nori__group_used(nori__groups *g, uint32_t group, uint32_t step);
/* A whole becomes a piece of another group. */
void nori__group_put(nori__groups *g, uint32_t group, uint32_t whole, size_t at);
/* Places all: life.offset of every group, pieces too. */
nori_status nori__groups_place(const nori_allocator *a, nori__groups *g, size_t *block_bytes,
                               nori_error *err);

/* Where a Concat's inputs (a Split's outputs) lie one after another in its output (input), at[i]
 * bytes from its start; false where they are interleaved, or not a node of that kind. count:
 * step->n_in or n_out. */
bool nori__pieces_of(const nori__step *step, bool join, const nori_tensor *whole,
                     const nori_tensor *const *parts, uint32_t count, size_t *at);

/* Whether a Slice's output lies in one piece in its input, *at bytes from its start. in: the step's
 * inputs, those after the first with their content. */
bool nori__slice_of(const nori__step *step, const nori_tensor **in, nori_tensor *out, size_t *at);

#endif
