/* memory.c: the allocator hook and the arena. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

#define ALIGN 64u
#define HUGE_PAGE ((size_t)2 << 20)

/* Weights are streamed once a run: with pages of 4 KB each page costs a walk of the tables, and
 * prefetching stops at its end. Where the system grants large pages on request, ask. */
static void *large_alloc(size_t size)
{
    void *memory = NULL;
    if (posix_memalign(&memory, HUGE_PAGE, size) != 0) {
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    /* Only whole pages, so that no more memory is used; a refusal changes nothing. */
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
    if (size >= HUGE_PAGE && align <= HUGE_PAGE) {
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
} nori__arena_block;

#define HEADER ((sizeof(nori__arena_block) + 15) & ~(size_t)15)
#define FIRST_BLOCK ((size_t)4096)
#define LARGEST_BLOCK ((size_t)1 << 20)

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

void *nori__arena_alloc(nori__arena *arena, size_t size)
{
    size_t rounded;
    if (!nori__add_size(size, 15, &rounded)) {
        return NULL;
    }
    rounded &= ~(size_t)15;
    nori__arena_block *head = arena->head;
    if (!head || head->size - head->used < rounded) {
        size_t want = head ? head->size * 2 : FIRST_BLOCK;
        want = want > LARGEST_BLOCK ? LARGEST_BLOCK : want;
        size_t least;
        if (!nori__add_size(rounded, HEADER, &least)) {
            return NULL;
        }
        bool own = least > want / 2; /* large requests get a block behind the current one */
        want = own ? least : want;
        nori__arena_block *block = nori__alloc(arena->allocator, want);
        if (!block) {
            return NULL;
        }
        *block = (nori__arena_block){.size = want, .used = HEADER};
        arena->total += want;
        if (own && head) {
            block->next = head->next;
            head->next = block;
        } else {
            block->next = head;
            arena->head = block;
        }
        head = block;
    }
    void *memory = (char *)head + head->used;
    head->used += rounded;
    memset(memory, 0, rounded);
    return memory;
}

void *nori__arena_array(nori__arena *arena, size_t count, size_t size)
{
    size_t bytes;
    return nori__mul_size(count, size, &bytes) ? nori__arena_alloc(arena, bytes) : NULL;
}

char *nori__arena_copy(nori__arena *arena, const char *bytes, size_t size)
{
    size_t with_nul;
    char *copy = nori__add_size(size, 1, &with_nul) ? nori__arena_alloc(arena, with_nul) : NULL;
    if (copy && size > 0) {
        memcpy(copy, bytes, size);
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
    char *text = n >= 0 ? nori__arena_alloc(arena, (size_t)n + 1) : NULL;
    if (text) {
        vsnprintf(text, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    va_end(args);
    return text;
}
