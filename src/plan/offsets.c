/* offsets.c: offsets in one block for buffers with known lives: best fit over a sorted free list,
 * walking forward in time. Not optimal, but near-linear. */
#include "plan/plan.h"

#define ALIGN 64u

typedef struct hole {
    size_t offset, size;
} hole;

typedef struct heap_entry {
    uint32_t last;
    size_t item;
} heap_entry;

typedef struct state {
    hole *holes; /* by offset */
    size_t n_holes;
    heap_entry *heap; /* live items, soonest death first */
    size_t n_heap;
    size_t front; /* nothing live at or above */
    size_t end;   /* high-water mark of front */
} state;

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static void heap_push(state *s, heap_entry e)
{
    size_t i = s->n_heap++;
    while (i > 0 && s->heap[(i - 1) / 2].last > e.last) {
        s->heap[i] = s->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    s->heap[i] = e;
}

static heap_entry heap_pop(state *s)
{
    heap_entry top = s->heap[0], e = s->heap[--s->n_heap];
    size_t i = 0;
    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= s->n_heap) {
            break;
        }
        if (c + 1 < s->n_heap && s->heap[c + 1].last < s->heap[c].last) {
            c++;
        }
        if (s->heap[c].last >= e.last) {
            break;
        }
        s->heap[i] = s->heap[c];
        i = c;
    }
    s->heap[i] = e;
    return top;
}

static void remove_hole(state *s, size_t i)
{
    memmove(&s->holes[i], &s->holes[i + 1], (s->n_holes - i - 1) * sizeof(hole));
    s->n_holes--;
}

/* Gives [offset, offset + size) back, joining neighbours; a hole at the end lowers the front. */
static void give_back(state *s, size_t offset, size_t size)
{
    size_t i = s->n_holes;
    while (i > 0 && s->holes[i - 1].offset > offset) {
        i--;
    }
    bool left = i > 0 && s->holes[i - 1].offset + s->holes[i - 1].size == offset;
    bool right = i < s->n_holes && offset + size == s->holes[i].offset;
    if (left && right) {
        s->holes[i - 1].size += size + s->holes[i].size;
        remove_hole(s, i);
    } else if (left) {
        s->holes[i - 1].size += size;
    } else if (right) {
        s->holes[i].offset = offset;
        s->holes[i].size += size;
    } else {
        memmove(&s->holes[i + 1], &s->holes[i], (s->n_holes - i) * sizeof(hole));
        s->holes[i] = (hole){offset, size};
        s->n_holes++;
    }
    if (s->n_holes > 0) {
        const hole *last = &s->holes[s->n_holes - 1];
        if (last->offset + last->size == s->front) {
            s->front = last->offset;
            s->n_holes--;
        }
    }
}

static size_t take(state *s, size_t size)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < s->n_holes; i++) {
        if (s->holes[i].size >= size &&
            (best == SIZE_MAX || s->holes[i].size < s->holes[best].size)) {
            best = i;
        }
    }
    if (best == SIZE_MAX) {
        size_t offset = s->front;
        s->front += size;
        s->end = s->front > s->end ? s->front : s->end;
        return offset;
    }
    size_t offset = s->holes[best].offset;
    s->holes[best].offset += size;
    s->holes[best].size -= size;
    if (s->holes[best].size == 0) {
        remove_hole(s, best);
    }
    return offset;
}

nori_status nori__assign_offsets(const nori_allocator *a, nori__life *items, size_t count,
                                 size_t *block_bytes, nori_error *err)
{
    *block_bytes = 0;
    size_t total = 0, holes_bytes, heap_bytes;
    for (size_t i = 0; i < count; i++) {
        size_t rounded;
        if (!nori__add_size(items[i].bytes, ALIGN - 1, &rounded) ||
            !nori__add_size(total, rounded, &total)) {
            return nori__fail(err, NORI_ERROR_LIMIT, "activations need more memory than exists");
        }
    }
    if (!nori__mul_size(count + 1, sizeof(hole), &holes_bytes) ||
        !nori__mul_size(count + 1, sizeof(heap_entry), &heap_bytes)) {
        return nori__no_memory(err);
    }
    state s = {.holes = nori__alloc(a, holes_bytes), .heap = nori__alloc(a, heap_bytes)};
    nori_status status = NORI_OK;
    if (!s.holes || !s.heap) {
        status = nori__no_memory(err);
    } else {
        for (size_t i = 0; i < count; i++) {
            while (s.n_heap > 0 && s.heap[0].last < items[i].first) {
                const nori__life *dead = &items[heap_pop(&s).item];
                give_back(&s, dead->offset, round_up(dead->bytes));
            }
            size_t size = round_up(items[i].bytes);
            items[i].offset = 0;
            if (size > 0) {
                items[i].offset = take(&s, size);
                heap_push(&s, (heap_entry){items[i].last, i});
            }
        }
        *block_bytes = s.end;
    }
    nori__release(a, s.holes, holes_bytes);
    nori__release(a, s.heap, heap_bytes);
    return status;
}
