/* base.h: what every folder stands on: errors, memory, strings, vectors, maps, checked sizes.
 *
 * Rules: no function here prints or aborts; every allocation can fail and is reported by NULL or
 * NORI_ERROR_MEMORY; the first error written to a nori_error wins. */
#ifndef NORI_BASE_BASE_H
#define NORI_BASE_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "nori/nori.h"

/* ---- errors (status.c) ---- */

/* Records the error unless err is NULL or already holds one; returns status either way. */
nori_status nori__fail(nori_error *err, nori_status status, const char *fmt, ...)
    NORI__PRINTF(3, 4);
/* Adds to an error just recorded: where it is (outermost call last: texts are prefixed), what to
 * do, which byte. No effect on an OK or NULL error; hint and offset do not overwrite. */
void nori__where(nori_error *err, const char *fmt, ...) NORI__PRINTF(2, 3);
void nori__hint(nori_error *err, const char *fmt, ...) NORI__PRINTF(2, 3);
void nori__offset(nori_error *err, uint64_t offset);
nori_status nori__no_memory(nori_error *err);

/* Evaluates a call once and returns its status when it is not NORI_OK. */
#define NORI__TRY(call)                 \
    do {                                \
        nori_status try_status = (call); \
        if (try_status != NORI_OK) {    \
            return try_status;          \
        }                               \
    } while (0)

/* ---- memory (memory.c) ---- */

/* malloc-backed allocator used where none was given; never NULL. */
extern const nori_allocator nori__malloc;
/* NULL when out of memory. size 0 gives a valid pointer. Default alignment is 64 bytes. */
void *nori__alloc(const nori_allocator *a, size_t size);
void *nori__alloc_zero(const nori_allocator *a, size_t size);
void nori__release(const nori_allocator *a, void *memory, size_t size); /* NULL is fine */

/* Bump allocator freed as a whole. Not thread-safe. Memory is zeroed, aligned to 16. */
typedef struct nori__arena {
    const nori_allocator *allocator;
    struct nori__arena_block *head;
    size_t total; /* bytes taken from the allocator */
} nori__arena;
void nori__arena_init(nori__arena *arena, const nori_allocator *allocator);
void nori__arena_free(nori__arena *arena);
void *nori__arena_alloc(nori__arena *arena, size_t size);
/* Aligned to a cache line of 64 bytes: for structs whose first line is what is looked at. */
void *nori__arena_line(nori__arena *arena, size_t size);
/* count * size with overflow check. */
void *nori__arena_array(nori__arena *arena, size_t count, size_t size);
char *nori__arena_copy(nori__arena *arena, const char *bytes, size_t size); /* adds a NUL */
char *nori__arena_text(nori__arena *arena, const char *text);
char *nori__arena_printf(nori__arena *arena, const char *fmt, ...) NORI__PRINTF(2, 3);

/* ---- checked sizes ---- */

/* Each returns false on overflow and then leaves *out alone. */
static inline bool nori__add_size(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b) {
        return false;
    }
    *out = a + b;
    return true;
}
static inline bool nori__mul_size(size_t a, size_t b, size_t *out)
{
    if (b != 0 && a > SIZE_MAX / b) {
        return false;
    }
    *out = a * b;
    return true;
}
static inline bool nori__add_i64(int64_t a, int64_t b, int64_t *out)
{
    if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b)) {
        return false;
    }
    *out = a + b;
    return true;
}
/* Both at least 0. */
static inline bool nori__mul_dim(int64_t a, int64_t b, int64_t *out)
{
    if (b != 0 && a > INT64_MAX / b) {
        return false;
    }
    *out = a * b;
    return true;
}

/* ---- strings ---- */

/* A view of bytes in somebody else's memory; not terminated, may hold NUL. */
typedef struct nori__str {
    const char *p;
    size_t n;
} nori__str;
#define NORI__STR(literal) ((nori__str){(literal), sizeof(literal) - 1})
static inline nori__str nori__str_of(const char *text)
{
    return (nori__str){text, strlen(text)};
}
static inline bool nori__str_is(nori__str s, const char *text)
{
    size_t n = strlen(text);
    return s.n == n && (n == 0 || memcmp(s.p, text, n) == 0);
}
static inline bool nori__same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Growing text, always terminated once something was added. On allocation failure failed is set
 * and further calls do nothing: check once at the end. */
typedef struct nori__text {
    const nori_allocator *allocator;
    char *data;
    size_t size, capacity;
    bool failed;
} nori__text;
void nori__text_init(nori__text *text, const nori_allocator *allocator);
void nori__text_free(nori__text *text);
/* Room for size more bytes; false: failed. */
bool nori__text_reserve(nori__text *text, size_t size);
void nori__text_add(nori__text *text, const char *bytes, size_t size);
void nori__text_printf(nori__text *text, const char *fmt, ...) NORI__PRINTF(2, 3);

/* ---- hashes of content (hash.c) ---- */

/* 128 bits, the same on every machine. Against accident, not against enemies: whoever must not be
 * able to make two contents of one hash needs a cryptographic one. Start zeroed; how the bytes were
 * split into calls is part of the result. */
typedef struct nori__hash {
    uint64_t a, b;
} nori__hash;
#define NORI__HASH_TEXT 33 /* 32 hexadecimal digits and the end */
void nori__hash_add(nori__hash *hash, const void *data, size_t size);
void nori__hash_text(const nori__hash *hash, char out[NORI__HASH_TEXT]);

/* ---- vectors: pointers ---- */

/* A growing array of pointers. */
typedef struct nori__vec {
    const nori_allocator *allocator;
    void **items;
    size_t count, capacity;
} nori__vec;
void nori__vec_init(nori__vec *vec, const nori_allocator *allocator);
void nori__vec_free(nori__vec *vec);
bool nori__vec_push(nori__vec *vec, void *item); /* false: out of memory */

/* ---- maps: text to pointer ---- */

/* Open addressing, keyed by text the map does not own; values are not NULL. Hashing is seeded
 * per map so that a file cannot choose collisions. */
typedef struct nori__map {
    const nori_allocator *allocator;
    struct nori__map_slot *slots;
    struct nori__map_entry *entries;
    size_t count, capacity;
    uint64_t seed;
    bool raw; /* room was made and nothing put there yet: not even zeros */
} nori__map;
void nori__map_init(nori__map *map, const nori_allocator *allocator);
void nori__map_free(nori__map *map);
void *nori__map_get(const nori__map *map, const char *key); /* NULL: not there */
void *nori__map_get_n(const nori__map *map, const char *key, size_t size);
/* Adds or replaces. key must be terminated and outlive the map. false: out of memory. */
bool nori__map_put(nori__map *map, const char *key, void *value);
/* The place of the key's value, which is NULL where the key is new: one search where looking and
 * adding would be two. Good until the next change of the map. NULL: out of memory. */
void **nori__map_claim(nori__map *map, const char *key, size_t size);
/* Room for that many entries in all, so that adding them does not move the table. */
bool nori__map_reserve(nori__map *map, size_t count);

#endif
