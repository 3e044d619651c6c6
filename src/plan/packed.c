/* packed.c: memory of packed weights: taken from a file's blocks, or noted so that they can be written;
 * and which ways kernels are told to go, by step as the blocks are. */
#include "plan/chosen.h"

/* What is asked for in pieces: large enough that pages of 2 MB hold many blocks and few ends are left;
 * what nobody takes is only addresses. */
#define PIECE_LEAST ((uint64_t)256 << 10)
#define PIECE_MOST ((uint64_t)30 << 20)
#define PIECE_LARGE ((uint64_t)1 << 20) /* less than that goes into small pages */
#define PIECE_STEP ((size_t)2 << 20)

typedef struct piece {
    struct piece *next;
    uint8_t *memory;
    size_t size, used;
} piece;

struct nori__packs {
    nori_allocator own; /* what kernels get; user is this struct */
    const nori_allocator *from;
    const nori__pack_entry *entries; /* NULL: noting */
    size_t count, at;                /* entries; where the step's begin */
    const uint8_t *bytes;
    uint32_t step, op, asked;
    size_t found, made;
    nori__pack_entry *noted;
    void **noted_bytes;
    size_t n_noted, room;
    bool plain;              /* neither found nor noted */
    piece *pieces;           /* of a plain one, the newest first */
    size_t piece_size;       /* of the next */
    const nori__way_entry *ways;
    size_t n_ways, way_at, ways_used; /* choices; the first that is not before the step */
    nori__way_noted *asks;
    size_t n_asks, asks_room;
};

static void *packs_alloc(void *user, size_t size, size_t align)
{
    const nori_allocator *from = ((nori__packs *)user)->from;
    return from->alloc(from->user, size, align);
}

static bool in_file(const nori__packs *p, const void *memory)
{
    if (!p->entries || p->count == 0) {
        return false;
    }
    const nori__pack_entry *last = &p->entries[p->count - 1];
    uintptr_t at = (uintptr_t)memory, begin = (uintptr_t)p->bytes;
    return at >= begin && at - begin < last->offset + last->size;
}

static bool in_piece(const nori__packs *p, const void *memory)
{
    uintptr_t at = (uintptr_t)memory;
    for (const piece *i = p->pieces; i; i = i->next) {
        if (at >= (uintptr_t)i->memory && at - (uintptr_t)i->memory < i->size) {
            return true;
        }
    }
    return false;
}

static void packs_release(void *user, void *memory, size_t size)
{
    nori__packs *p = user;
    if (!in_file(p, memory) && !in_piece(p, memory)) {
        p->from->release(p->from->user, memory, size);
    }
}

nori__packs *nori__packs_new(const nori_allocator *a, const nori__pack_entry *entries, size_t count,
                             const uint8_t *bytes)
{
    nori__packs *p = nori__alloc_zero(a, sizeof(*p));
    if (p) {
        p->own = (nori_allocator){packs_alloc, packs_release, p};
        p->from = a;
        p->entries = entries;
        p->count = count;
        p->bytes = bytes;
    }
    return p;
}

/* Packed weights can be four times those of the file. */
static size_t piece_size(uint64_t expected)
{
    uint64_t size = expected < PIECE_LARGE ? expected : expected < PIECE_MOST / 4 ? 4 * expected : PIECE_MOST;
    return (size_t)(size < PIECE_LEAST ? PIECE_LEAST : size);
}

nori__packs *nori__packs_plain(const nori_allocator *a, uint64_t expected)
{
    nori__packs *p = nori__packs_new(a, NULL, 0, NULL);
    if (p) {
        p->plain = true;
        p->piece_size = piece_size(expected);
    }
    return p;
}

void nori__packs_free(nori__packs *p)
{
    if (p) {
        while (p->pieces) {
            piece *next = p->pieces->next;
            nori__release(p->from, p->pieces->memory, p->pieces->size);
            nori__release(p->from, p->pieces, sizeof(*p->pieces));
            p->pieces = next;
        }
        nori__release(p->from, p->noted, p->room * sizeof(*p->noted));
        nori__release(p->from, p->noted_bytes, p->room * sizeof(*p->noted_bytes));
        nori__release(p->from, p->asks, p->asks_room * sizeof(*p->asks));
        nori__release(p->from, p, sizeof(*p));
    }
}

const nori_allocator *nori__packs_allocator(const nori__packs *p)
{
    return &p->own;
}

bool nori__packs_ready(const nori__packs *p)
{
    return p->entries != NULL;
}

static uint32_t op_hash(const nori__node *node)
{
    nori__hash h = {0};
    nori__hash_add(&h, node->domain, strlen(node->domain));
    nori__hash_add(&h, node->op_type, strlen(node->op_type));
    return (uint32_t)(h.a ^ h.b);
}

void nori__packs_at(nori__packs *p, uint32_t step, const nori__node *node)
{
    p->step = step;
    p->op = op_hash(node);
    p->asked = 0;
    while (p->entries && p->at < p->count && p->entries[p->at].step < step) {
        p->at++;
    }
    while (p->way_at < p->n_ways && p->ways[p->way_at].step < step) {
        p->way_at++;
    }
}

bool nori__packs_check(const nori__pack_entry *entries, size_t count, uint64_t size)
{
    uint64_t end = 0;
    for (size_t i = 0; i < count; i++) {
        const nori__pack_entry *e = &entries[i];
        bool next = i == 0 ? e->index == 0
                           : e->step > e[-1].step ? e->index == 0
                                                  : e->step == e[-1].step && e->index == e[-1].index + 1;
        if (!next || e->offset < end || e->offset % NORI__PACK_ALIGN != 0 || e->offset > size ||
            e->size == 0 || e->size > size - e->offset) {
            return false;
        }
        end = e->offset + e->size;
    }
    return true;
}

/* A block of the file that is what is asked for now. */
static const nori__pack_entry *find(const nori__packs *p, size_t size)
{
    size_t at = p->at + p->asked;
    if (!p->entries || at < p->at || at >= p->count) {
        return NULL;
    }
    const nori__pack_entry *e = &p->entries[at];
    return e->step == p->step && e->index == p->asked && e->op == p->op && e->size == size ? e : NULL;
}

static bool make_room(nori__packs *p)
{
    if (p->n_noted < p->room) {
        return true;
    }
    size_t room = p->room ? p->room * 2 : 64;
    nori__pack_entry *entries = nori__alloc(p->from, room * sizeof(*entries));
    void **bytes = nori__alloc(p->from, room * sizeof(*bytes));
    if (!entries || !bytes) {
        nori__release(p->from, entries, room * sizeof(*entries));
        nori__release(p->from, bytes, room * sizeof(*bytes));
        return false;
    }
    if (p->n_noted > 0) {
        memcpy(entries, p->noted, p->n_noted * sizeof(*entries));
        memcpy(bytes, p->noted_bytes, p->n_noted * sizeof(*bytes));
    }
    nori__release(p->from, p->noted, p->room * sizeof(*p->noted));
    nori__release(p->from, p->noted_bytes, p->room * sizeof(*p->noted_bytes));
    p->noted = entries;
    p->noted_bytes = bytes;
    p->room = room;
    return true;
}

static piece *add_piece(nori__packs *p, size_t size)
{
    size_t want = p->piece_size > size ? p->piece_size : size;
    piece *i = nori__alloc_zero(p->from, sizeof(*i));
    if (want >= PIECE_STEP && want <= SIZE_MAX - PIECE_STEP) {
        want = (want + PIECE_STEP - 1) / PIECE_STEP * PIECE_STEP;
    }
    if (i && !(i->memory = nori__alloc(p->from, want))) {
        nori__release(p->from, i, sizeof(*i));
        i = NULL;
    }
    if (i) {
        i->size = want;
        i->next = p->pieces;
        p->pieces = i;
        p->piece_size = piece_size(4 * (uint64_t)p->piece_size);
    }
    return i;
}

/* size bytes that go with the pieces. */
static void *from_piece(nori__packs *p, size_t size)
{
    piece *i = p->pieces;
    while (i && i->size - i->used < size) {
        i = i->next;
    }
    if (!i && !(i = add_piece(p, size))) {
        return NULL;
    }
    void *memory = i->memory + i->used;
    size_t left = i->size - i->used - size, pad = (NORI__PACK_ALIGN - size) % NORI__PACK_ALIGN;
    i->used += size + (pad < left ? pad : left);
    return memory;
}

void *nori__packed(const nori_allocator *a, size_t size, bool *ready)
{
    *ready = false;
    if (a->alloc != packs_alloc) {
        return nori__alloc(a, size);
    }
    nori__packs *p = a->user;
    if (p->plain) {
        return from_piece(p, size > 0 ? size : 1);
    }
    const nori__pack_entry *e = size > 0 ? find(p, size) : NULL;
    if (e && ((uintptr_t)p->bytes + e->offset) % NORI__PACK_ALIGN == 0) {
        p->asked++;
        p->found++;
        *ready = true;
        return (void *)(uintptr_t)(p->bytes + e->offset); /* only read */
    }
    void *memory = nori__alloc(p->from, size);
    if (!memory || size == 0) {
        return memory;
    }
    p->made++;
    if (e) { /* the file lies in memory that is not aligned as kernels need it */
        memcpy(memory, p->bytes + e->offset, size);
        *ready = true;
    } else if (!p->entries) {
        memset(memory, 0, size); /* what a kernel leaves as it is goes into the file, too */
        if (!make_room(p)) {
            nori__release(p->from, memory, size);
            return NULL;
        }
        p->noted_bytes[p->n_noted] = memory;
        p->noted[p->n_noted++] = (nori__pack_entry){
            .size = size, .step = p->step, .index = p->asked, .op = p->op};
    }
    p->asked++;
    return memory;
}

size_t nori__packs_noted(const nori__packs *p, const nori__pack_entry **entries,
                         void *const **bytes)
{
    *entries = p->noted;
    *bytes = p->noted_bytes;
    return p->n_noted;
}

void nori__packs_count(const nori__packs *p, size_t *found, size_t *made)
{
    *found = p->found;
    *made = p->made;
}

/* ---- ways ---- */

bool nori__ways_check(const nori__way_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (entries[i].way >= NORI__WAYS_MOST || (i > 0 && entries[i].step <= entries[i - 1].step)) {
            return false;
        }
    }
    return true;
}

void nori__packs_steer(nori__packs *p, const nori__way_entry *entries, size_t count)
{
    p->ways = entries;
    p->n_ways = count;
}

/* Notes an ask; without memory for it nothing is lost but the listing. */
static void note_ask(nori__packs *p, const nori__way_ask *ask, uint32_t way)
{
    if (p->n_asks == p->asks_room) {
        size_t room = p->asks_room ? p->asks_room * 2 : 64;
        nori__way_noted *more = nori__alloc(p->from, room * sizeof(*more));
        if (!more) {
            return;
        }
        if (p->n_asks > 0) {
            memcpy(more, p->asks, p->n_asks * sizeof(*more));
        }
        nori__release(p->from, p->asks, p->asks_room * sizeof(*more));
        p->asks = more;
        p->asks_room = room;
    }
    p->asks[p->n_asks++] = (nori__way_noted){*ask, {p->step, p->op, ask->kind, way}};
}

uint32_t nori__way_asked(const nori_allocator *a, const nori__way_ask *ask)
{
    uint32_t way = ask->usual;
    if (a->alloc != packs_alloc || ((nori__packs *)a->user)->plain) {
        return way;
    }
    nori__packs *p = a->user;
    const nori__way_entry *e = p->way_at < p->n_ways ? &p->ways[p->way_at] : NULL;
    if (e && e->step == p->step && e->op == p->op && e->kind == ask->kind &&
        (ask->fits >> e->way & 1) != 0) {
        way = e->way;
        p->ways_used++;
    }
    note_ask(p, ask, way);
    return way;
}

size_t nori__ways_noted(const nori__packs *p, const nori__way_noted **noted)
{
    *noted = p->asks;
    return p->n_asks;
}

size_t nori__ways_unfit(const nori__packs *p)
{
    return p->n_ways - p->ways_used;
}
