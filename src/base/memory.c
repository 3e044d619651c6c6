/* memory.c: the allocator hook and the arena. */
#include "base/bulk.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#define ALIGN 64u
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_FROM ((size_t)5 << 18) /* as many bytes in small pages cost more than a large one */

/* Weights are streamed once a run: with pages of 4 KB each page costs a walk of the tables, and
 * prefetching stops at its end. Where the system grants large pages on request, ask. */
static void *large_alloc(size_t size)
{
    void *memory = NULL;
    size_t rest = size % HUGE_PAGE;
    if (rest >= HUGE_FROM && size <= PTRDIFF_MAX - HUGE_PAGE) {
        size += HUGE_PAGE - rest;
    }
    if (posix_memalign(&memory, HUGE_PAGE, size) != 0) {
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    /* Only whole pages: a short end stays in small ones. A refusal changes nothing. */
    (void)madvise(memory, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    return memory;
}

static void *malloc_alloc(void *user, size_t size, size_t align)
{
    (void)user;
    if (size > PTRDIFF_MAX - align) { /* no object is larger */
        return NULL;
    }
    if (align <= _Alignof(max_align_t)) {
        return malloc(size);
    }
    if (size >= HUGE_FROM && align <= HUGE_PAGE) {
        return large_alloc(size);
    }
    return aligned_alloc(align, (size + align - 1) & ~(align - 1));
}

static void malloc_release(void *user, void *memory, size_t size)
{
    (void)user;
    (void)size;
    free(memory);
}

const nori_allocator nori__malloc = {malloc_alloc, malloc_release, NULL};

void *nori__alloc(const nori_allocator *a, size_t size)
{
    return a->alloc(a->user, size ? size : 1, ALIGN);
}

void *nori__alloc_zero(const nori_allocator *a, size_t size)
{
    void *memory = nori__alloc(a, size);
    if (memory) {
        memset(memory, 0, size);
    }
    return memory;
}

void nori__release(const nori_allocator *a, void *memory, size_t size)
{
    if (memory) {
        a->release(a->user, memory, size ? size : 1);
    }
}

/* ---- arena ---- */

typedef struct nori__arena_block {
    struct nori__arena_block *next;
    size_t size; /* of the whole allocation */
    size_t used; /* header included */
    size_t clean; /* set to zero up to here: ahead of use, many small pieces at a time */
} nori__arena_block;

#define HEADER ((sizeof(nori__arena_block) + ALIGN - 1) & ~(size_t)(ALIGN - 1))
#define FIRST_BLOCK ((size_t)4096)
#define CLEAN_AHEAD ((size_t)4096)
#define LARGEST_BLOCK HUGE_PAGE /* a large graph is walked in few large pages */

void nori__arena_init(nori__arena *arena, const nori_allocator *allocator)
{
    *arena = (nori__arena){.allocator = allocator};
}

void nori__arena_free(nori__arena *arena)
{
    nori__arena_block *block = arena->head;
    while (block) {
        nori__arena_block *next = block->next;
        nori__release(arena->allocator, block, block->size);
        block = next;
    }
    arena->head = NULL;
    arena->total = 0;
}

/* A block with room for size bytes; it becomes the current one unless it is for them alone. */
static nori__arena_block *add_block(nori__arena *arena, size_t size)
{
    nori__arena_block *head = arena->head;
    size_t want = head ? head->size * 2 : FIRST_BLOCK, least;
    want = want > LARGEST_BLOCK ? LARGEST_BLOCK : want;
    if (!nori__add_size(size, HEADER, &least)) {
        return NULL;
    }
    bool own = least > want / 2; /* large requests get a block behind the current one */
    want = own ? least : want;
    nori__arena_block *block = nori__alloc(arena->allocator, want);
    if (!block) {
        return NULL;
    }
    *block = (nori__arena_block){.size = want, .used = HEADER, .clean = HEADER};
    arena->total += want;
    if (own && head) {
        block->next = head->next;
        head->next = block;
    } else {
        block->next = head;
        arena->head = block;
    }
    return block;
}

/* align: a power of two, at most 64. raw: not to be set to zero. */
static inline void *take(nori__arena *arena, size_t size, size_t align, bool raw)
{
    nori__arena_block *block = arena->head;
    size_t at = block ? (block->used + align - 1) & ~(align - 1) : 0;
    if (!block || at > block->size || block->size - at < size) {
        block = add_block(arena, size);
        if (!block) {
            return NULL;
        }
        at = (block->used + align - 1) & ~(align - 1);
    }
    block->used = at + size;
    if (block->used > block->clean && raw) {
        block->clean = block->used;
    } else if (block->used > block->clean) {
        size_t left = block->size - block->used;
        size_t to = block->used + (left < CLEAN_AHEAD ? left : CLEAN_AHEAD);
        memset((char *)block + block->clean, 0, to - block->clean);
        block->clean = to;
    }
    return (char *)block + at;
}

void *nori__arena_alloc(nori__arena *arena, size_t size)
{
    return take(arena, size, 16, false);
}

void *nori__arena_line(nori__arena *arena, size_t size)
{
    return take(arena, size, ALIGN, false);
}

void *nori__arena_array(nori__arena *arena, size_t count, size_t size)
{
    size_t bytes;
    return nori__mul_size(count, size, &bytes) ? nori__arena_alloc(arena, bytes) : NULL;
}

void *nori__arena_raw(nori__arena *arena, size_t count, size_t size)
{
    size_t bytes;
    return nori__mul_size(count, size, &bytes) ? take(arena, bytes, 16, true) : NULL;
}

char *nori__arena_copy(nori__arena *arena, const char *bytes, size_t size)
{
    size_t with_nul;
    char *copy = nori__add_size(size, 1, &with_nul) ? take(arena, with_nul, 1, true) : NULL;
    if (copy && size > 0) {
        memcpy(copy, bytes, size);
    }
    if (copy) {
        copy[size] = 0;
    }
    return copy;
}

char *nori__arena_text(nori__arena *arena, const char *text)
{
    return nori__arena_copy(arena, text, strlen(text));
}

char *nori__arena_printf(nori__arena *arena, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *text = n >= 0 ? take(arena, (size_t)n + 1, 1, true) : NULL;
    if (text) {
        vsnprintf(text, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    va_end(args);
    return text;
}
