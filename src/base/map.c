/* map.c: text to pointer. Entries lie in the order they came; a table of their numbers, open
 * addressing with linear probing and at most 2/3 full, leads to them. Names of a graph are looked for
 * in about the order they came in, too: of a large one only the table, 8 bytes a slot, is met at random. */
#include "base/bulk.h"

#include <time.h>

typedef struct nori__map_slot {
    uint32_t hash;  /* its low half: key and memcmp decide */
    uint32_t entry; /* number + 1; 0: free */
} nori__map_slot;

typedef struct nori__map_entry {
    const char *key;
    void *value;
    size_t size; /* of the key */
} nori__map_entry;

/* Room for entries: as many as slots may be taken. */
static size_t room(size_t capacity)
{
    return capacity / 3 * 2;
}

void nori__map_init(nori__map *map, const nori_allocator *allocator)
{
    struct timespec now = {0};
    timespec_get(&now, TIME_UTC);
    *map = (nori__map){.allocator = allocator};
    /* Address and clock: not secret, but not in the hands of whoever wrote the file. */
    map->seed = ((uint64_t)(uintptr_t)map >> 4) * 0x9e3779b97f4a7c15u ^ (uint64_t)now.tv_nsec;
}

void nori__map_free(nori__map *map)
{
    nori__release(map->allocator, map->slots, map->capacity * sizeof(*map->slots));
    nori__release(map->allocator, map->entries, room(map->capacity) * sizeof(*map->entries));
    map->slots = NULL;
    map->entries = NULL;
    map->count = map->capacity = 0;
    map->raw = false;
}

static uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

/* SipHash-1-3 (Aumasson and Bernstein, 2012): names come from files, and with a plain
 * multiplicative hash a file could hold names that all meet in one slot, whatever the seed. */
static uint64_t hash_bytes(uint64_t seed, const char *key, size_t size)
{
    uint64_t k0 = seed, k1 = rotate(seed, 29) * 0x9e3779b97f4a7c15u;
    uint64_t v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
                     k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
    uint64_t m = 0;
    for (size_t left = size; left >= 8; left -= 8, key += 8) {
        memcpy(&m, key, 8);
        v[3] ^= m;
        sip_round(v);
        v[0] ^= m;
    }
    m = 0;
    if (size % 8 != 0) {
        memcpy(&m, key, size % 8);
    }
    m ^= (uint64_t)size << 56;
    v[3] ^= m;
    sip_round(v);
    v[0] ^= m;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The slot of the key, or the free one where it would go. */
static nori__map_slot *probe(const nori__map *map, const char *key, size_t size, uint32_t hash)
{
    size_t i = hash & (map->capacity - 1);
    for (;;) {
        nori__map_slot *s = &map->slots[i];
        if (s->entry == 0) {
            return s;
        }
        const nori__map_entry *e = &map->entries[s->entry - 1];
        if (s->hash == hash && e->size == size && (size == 0 || memcmp(e->key, key, size) == 0)) {
            return s;
        }
        i = (i + 1) & (map->capacity - 1);
    }
}

void *nori__map_get_n(const nori__map *map, const char *key, size_t size)
{
    if (map->count == 0) {
        return NULL;
    }
    const nori__map_slot *s = probe(map, key, size, (uint32_t)hash_bytes(map->seed, key, size));
    return s->entry ? map->entries[s->entry - 1].value : NULL;
}

static bool is_entry(const nori__map *map, size_t at, const char *key, size_t size)
{
    const nori__map_entry *e = &map->entries[at];
    return at < map->count && e->size == size && memcmp(e->key, key, size) == 0;
}

void *nori__map_get_near(const nori__map *map, const char *key, size_t size, size_t *near)
{
    if (map->count == 0) {
        return NULL;
    }
    if (size > 0 && is_entry(map, map->count - 1, key, size)) {
        return map->entries[map->count - 1].value;
    }
    if (size > 0 && is_entry(map, *near, key, size)) {
        return map->entries[(*near)++].value;
    }
    if (size > 0 && *near > 0 && is_entry(map, *near - 1, key, size)) {
        return map->entries[*near - 1].value;
    }
    const nori__map_slot *s = probe(map, key, size, (uint32_t)hash_bytes(map->seed, key, size));
    if (s->entry == 0) {
        return NULL;
    }
    *near = s->entry; /* the one behind it */
    return map->entries[s->entry - 1].value;
}

void *nori__map_get(const nori__map *map, const char *key)
{
    return nori__map_get_n(map, key, strlen(key));
}

static bool resize(nori__map *map, size_t capacity)
{
    nori__map old = *map;
    size_t slots, entries;
    /* Hashes have 32 bits: a table of more slots would fill up at one end. */
    if (capacity > UINT32_MAX || !nori__mul_size(capacity, sizeof(*map->slots), &slots) ||
        !nori__mul_size(room(capacity), sizeof(*map->entries), &entries)) {
        return false;
    }
    map->slots = nori__alloc(map->allocator, slots);
    map->entries = nori__alloc(map->allocator, entries);
    if (!map->slots || !map->entries) {
        nori__release(map->allocator, map->slots, slots);
        nori__release(map->allocator, map->entries, entries);
        *map = old;
        return false;
    }
    map->capacity = capacity;
    map->raw = old.count == 0;
    if (!map->raw) {
        memset(map->slots, 0, slots);
        memcpy(map->entries, old.entries, old.count * sizeof(*old.entries));
    }
    for (size_t i = 0; i < old.capacity && old.count > 0; i++) {
        size_t at = old.slots[i].hash & (capacity - 1);
        while (old.slots[i].entry && map->slots[at].entry) { /* all keys differ: no need to look */
            at = (at + 1) & (capacity - 1);
        }
        if (old.slots[i].entry) {
            map->slots[at] = old.slots[i];
        }
    }
    nori__map_free(&old);
    return true;
}

bool nori__map_reserve(nori__map *map, size_t count)
{
    size_t capacity = 16;
    while (capacity < UINT32_MAX / 2 && room(capacity) <= count) {
        capacity *= 2;
    }
    return capacity <= map->capacity || resize(map, capacity);
}

void **nori__map_claim(nori__map *map, const char *key, size_t size)
{
    if (map->count >= room(map->capacity) &&
        !resize(map, map->capacity ? map->capacity * 2 : 16)) {
        return NULL;
    }
    if (map->raw) {
        memset(map->slots, 0, map->capacity * sizeof(*map->slots));
        map->raw = false;
    }
    uint32_t hash = (uint32_t)hash_bytes(map->seed, key, size);
    nori__map_slot *s = probe(map, key, size, hash);
    if (s->entry == 0) {
        map->entries[map->count++] = (nori__map_entry){key, NULL, size};
        *s = (nori__map_slot){hash, (uint32_t)map->count};
    }
    return &map->entries[s->entry - 1].value;
}

bool nori__map_put(nori__map *map, const char *key, void *value)
{
    void **at = nori__map_claim(map, key, strlen(key));
    if (at) {
        *at = value;
    }
    return at != NULL;
}
