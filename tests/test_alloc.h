/* test_alloc.h: an allocator for tests that counts what is live, checks the sizes given back, and
 * fails from a chosen call on. One thread at a time. */
#ifndef NORI_TEST_ALLOC_H
#define NORI_TEST_ALLOC_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "nori/nori.h"

typedef struct test_alloc {
    nori_allocator allocator;
    size_t calls, fail_at; /* calls before the first that fails; 0: none fails */
    size_t live, peak;     /* bytes */
    bool wrong_size;
} test_alloc;

#define TEST_ALLOC_HEADER 64u

static inline void *test_alloc_alloc(void *user, size_t size, size_t align)
{
    test_alloc *t = user;
    t->calls++;
    if ((t->fail_at > 0 && t->calls >= t->fail_at) || align > TEST_ALLOC_HEADER) {
        return NULL;
    }
    size_t whole = (size + 2 * TEST_ALLOC_HEADER - 1) & ~(size_t)(TEST_ALLOC_HEADER - 1);
    char *p = aligned_alloc(TEST_ALLOC_HEADER, whole);
    if (!p) {
        return NULL;
    }
    memset(p, 0xa5, whole); /* nobody may count on zeros */
    memcpy(p, &size, sizeof(size));
    t->live += size;
    t->peak = t->live > t->peak ? t->live : t->peak;
    return p + TEST_ALLOC_HEADER;
}

static inline void test_alloc_release(void *user, void *memory, size_t size)
{
    test_alloc *t = user;
    char *p = (char *)memory - TEST_ALLOC_HEADER;
    size_t was;
    memcpy(&was, p, sizeof(was));
    t->wrong_size |= was != size;
    t->live -= was;
    free(p);
}

static inline void test_alloc_init(test_alloc *t, size_t fail_at)
{
    *t = (test_alloc){.fail_at = fail_at};
    t->allocator = (nori_allocator){test_alloc_alloc, test_alloc_release, t};
}

#endif
