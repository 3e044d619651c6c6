/* places.c: groups of values that share bytes. What a Concat joins is made where its output will be,
 * and what a Split or Slice makes is looked at where its input is, whenever the pieces lie one after
 * another: then the kernel finds nothing to copy. A whole lives from its first piece's step on. */
#include <stdlib.h>

#include "ops/content.h"
#include "plan/places.h"

/* Pieces begin as tensors of their own do. */
#define ALIGN 64u

uint32_t nori__group_new(nori__groups *g, uint32_t first, uint32_t last, size_t bytes)
{
    g->items[g->count] = (nori__group){.life = {.first = first, .last = last, .bytes = bytes},
                                       .inside = NORI__NO_GROUP};
    return g->count++;
}

uint32_t nori__group_whole(nori__groups *g, uint32_t group)
{
    uint32_t whole = group;
    size_t at = 0;
    while (g->items[whole].inside != NORI__NO_GROUP) {
        at += g->items[whole].at;
        whole = g->items[whole].inside;
    }
    while (group != whole) { /* shorter ways the next time */
        nori__group *item = &g->items[group];
        size_t own = item->at;
        group = item->inside;
        item->inside = whole;
        item->at = at;
        at -= own;
    }
    return whole;
}

uint32_t nori__group_last(nori__groups *g, uint32_t group)
{
    return g->items[nori__group_whole(g, group)].life.last;
}

void nori__group_used(nori__groups *g, uint32_t group, uint32_t step)
{
    nori__life *life = &g->items[nori__group_whole(g, group)].life;
    life->last = step > life->last ? step : life->last;
}

void nori__group_put(nori__groups *g, uint32_t group, uint32_t whole, size_t at)
{
    nori__life *of = &g->items[nori__group_whole(g, whole)].life;
    const nori__life *life = &g->items[group].life;
    of->first = life->first < of->first ? life->first : of->first;
    of->last = life->last > of->last ? life->last : of->last;
    g->items[group].inside = whole;
    g->items[group].at = at;
}

/* ---- offsets ---- */

typedef struct placed {
    nori__life life;
    uint32_t group;
} placed;

static int by_first(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->life.first != y->life.first) {
        return x->life.first < y->life.first ? -1 : 1;
    }
    return x->group < y->group ? -1 : x->group > y->group;
}

nori_status nori__groups_place(const nori_allocator *a, nori__groups *g, size_t *block_bytes,
                               nori_error *err)
{
    size_t n = 0, order_bytes, life_bytes;
    if (!nori__mul_size((size_t)g->count + 1, sizeof(placed), &order_bytes) ||
        !nori__mul_size((size_t)g->count + 1, sizeof(nori__life), &life_bytes)) {
        return nori__no_memory(err);
    }
    placed *order = nori__alloc(a, order_bytes);
    nori__life *lives = nori__alloc(a, life_bytes);
    nori_status status = order && lives ? NORI_OK : nori__no_memory(err);
    if (status == NORI_OK) {
        for (uint32_t i = 0; i < g->count; i++) {
            if (g->items[i].inside == NORI__NO_GROUP) {
                order[n++] = (placed){g->items[i].life, i};
            }
        }
        qsort(order, n, sizeof(*order), by_first);
        for (size_t i = 0; i < n; i++) {
            lives[i] = order[i].life;
        }
        status = nori__assign_offsets(a, lives, n, block_bytes, err);
        for (size_t i = 0; status == NORI_OK && i < n; i++) {
            g->items[order[i].group].life.offset = lives[i].offset;
        }
        for (uint32_t i = 0; status == NORI_OK && i < g->count; i++) {
            uint32_t whole = nori__group_whole(g, i);
            if (whole != i) {
                g->items[i].life.offset = g->items[whole].life.offset + g->items[i].at;
            }
        }
    }
    nori__release(a, order, order_bytes);
    nori__release(a, lives, life_bytes);
    return status;
}

/* ---- pieces ---- */

bool nori__pieces_of(const nori__step *step, bool join, const nori_tensor *whole,
                     const nori_tensor *const *parts, uint32_t count, size_t *at)
{
    const nori__node *node = step->node;
    if (!nori__node_is(node, join ? NORI__OP_ONNX_Concat : NORI__OP_ONNX_Split) ||
        nori_type_bits(whole->type) < 8 || whole->type == NORI_STRING || whole->rank < 1) {
        return false;
    }
    int axis;
    int64_t fallback = join && node->version < 4;
    if (nori__fix_axis(NULL, nori__attr_i(node, "axis", fallback), whole->rank, &axis) != NORI_OK) {
        return false;
    }
    for (int d = 0; d < axis; d++) {
        if (whole->dims[d] != 1) {
            return false;
        }
    }
    size_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!parts[i] || parts[i]->rank != whole->rank || parts[i]->type != whole->type) {
            return false;
        }
        at[i] = sum;
        if (!nori__add_size(sum, parts[i]->bytes, &sum)) {
            return false;
        }
        if (at[i] % ALIGN != 0) {
            at[i] = SIZE_MAX; /* this one is copied */
        }
    }
    return sum == whole->bytes;
}

bool nori__slice_of(const nori__step *step, const nori_tensor **in, nori_tensor *out, size_t *at)
{
    const nori_tensor *whole = in[0];
    size_t width = nori_type_bits(whole->type) / 8;
    if (!nori__node_is(step->node, NORI__OP_ONNX_Slice) || width == 0 ||
        whole->type == NORI_STRING || whole->rank < 1 || out->rank != whole->rank ||
        out->type != whole->type || out->count == 0) {
        return false;
    }
    int64_t starts[NORI_MAX_RANK], ends[NORI_MAX_RANK], axes[NORI_MAX_RANK], steps[NORI_MAX_RANK];
    nori_status bad[4];
    nori_call call = {.node = step->node, .n_in = step->n_in, .n_out = step->n_out, .in = in,
                      .out = &out};
    int n = nori__call_ints(&call, 1, "starts", starts, NORI_MAX_RANK, &bad[0]);
    nori__call_ints(&call, 2, "ends", ends, NORI_MAX_RANK, &bad[1]);
    int n_axes = nori__call_ints(&call, 3, "axes", axes, NORI_MAX_RANK, &bad[2]);
    int n_steps = nori__call_ints(&call, 4, NULL, steps, NORI_MAX_RANK, &bad[3]);
    if (n != 1 || bad[0] != NORI_OK || bad[1] != NORI_OK || bad[2] != NORI_OK ||
        bad[3] != NORI_OK || (n_steps >= 0 && steps[0] != 1)) {
        return false;
    }
    int axis;
    if (nori__fix_axis(NULL, n_axes >= 0 ? axes[0] : 0, whole->rank, &axis) != NORI_OK) {
        return false;
    }
    size_t inner = width;
    for (int d = 0; d < whole->rank; d++) {
        if (d < axis && whole->dims[d] != 1) {
            return false;
        }
        inner *= d > axis ? (size_t)whole->dims[d] : 1; /* of a tensor's bytes: no overflow */
    }
    int64_t first, count;
    nori__slice_axis(whole->dims[axis], starts[0], ends[0], 1, &first, &count);
    *at = (size_t)first * inner;
    return out->dims[axis] == count && *at % ALIGN == 0;
}
