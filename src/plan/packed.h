/* packed.h: where kernels get memory for weights in a form of their own, so that what was packed once
 * can be written down, and found again in a file (run/plan_file.h) instead of being made.
 *
 * A session that does so gives its kernels an allocator of these; to everybody else that is an
 * allocator like any other. Blocks are known by the step whose kernel asks, by its operator, by how
 * many it asked for before, and by their size: whoever finds another finds nothing, and packs. What a
 * file holds is not trusted: kernels take from it only data whose values cannot harm (no index, no
 * size, unless they check it). */
#ifndef NORI_PLAN_PACKED_H
#define NORI_PLAN_PACKED_H

#include "graph/graph.h"

typedef struct nori__packs nori__packs;

/* Memory of size bytes for a kernel's prepare, which gave it this allocator; back with nori__release.
 * *ready: it holds, to be read only, what was packed before; else it is to be filled. NULL: out of
 * memory. */
void *nori__packed(const nori_allocator *a, size_t size, bool *ready);

/* One block, as a file lists it. */
typedef struct nori__pack_entry {
    uint64_t offset, size;  /* in the file's section of blocks */
    uint32_t step, index;   /* whose kernel, and which of its blocks */
    uint32_t op;            /* hash of its operator */
    uint32_t unused;
} nori__pack_entry;
#define NORI__PACK_ALIGN 64u

/* Where nothing is written or found: packed blocks lie one after the other in a few large pieces of
 * memory, whose large pages cost the system a third of the time that as many small ones do. About
 * expected bytes will be asked for. */
nori__packs *nori__packs_plain(const nori_allocator *a, uint64_t expected);
/* Memory from a. With entries: blocks are looked for in them, which lie in order of step and index
 * within bytes of size (as nori__packs_check found them); both outlive the packs. With NULL: what
 * kernels pack is noted. */
nori__packs *nori__packs_new(const nori_allocator *a, const nori__pack_entry *entries, size_t count,
                             const uint8_t *bytes);
void nori__packs_free(nori__packs *packs); /* NULL is fine; after everything that was taken from it */
const nori_allocator *nori__packs_allocator(const nori__packs *packs);
/* Whether blocks come from entries: weights need hardly be read. */
bool nori__packs_ready(const nori__packs *packs);
/* The step that is prepared next. */
void nori__packs_at(nori__packs *packs, uint32_t step, const nori__node *node);
/* Whether entries are in order, aligned and within size bytes. */
bool nori__packs_check(const nori__pack_entry *entries, size_t count, uint64_t size);
/* What was noted: entries with offset 0, and where each one's bytes are; until the packs are freed. */
size_t nori__packs_noted(const nori__packs *packs, const nori__pack_entry **entries,
                         void *const **bytes);
/* How many blocks were found, and how many had to be packed all the same. */
void nori__packs_count(const nori__packs *packs, size_t *found, size_t *made);

#endif
