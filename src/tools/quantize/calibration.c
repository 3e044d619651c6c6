/* calibration.c: what was seen of a model's values, apart from any session: it is merged with what
 * others have seen, and ranges are chosen from it later. */
#include <stdlib.h>

#include "base/given.h"
#include "platform/env.h"
#include "tools/quantize/quantize.h"

nori_status nori__calibration_new(const nori_allocator *a, nori_calibration **out, nori_error *err)
{
    nori_calibration *c = *out = nori__alloc_zero(a, sizeof(*c));
    if (!c) {
        return nori__no_memory(err);
    }
    c->allocator = a;
    nori__arena_init(&c->arena, a);
    nori__map_init(&c->observers, a);
    nori__vec_init(&c->names, a);
    return NORI_OK;
}

void nori_calibration_free(nori_calibration *c)
{
    if (c) {
        nori__vec_free(&c->names);
        nori__map_free(&c->observers);
        nori__arena_free(&c->arena);
        nori__release(c->allocator, c, sizeof(*c));
    }
}

nori__observer *nori__calibration_of(nori_calibration *c, const char *name)
{
    nori__observer *o = nori__map_get(&c->observers, name);
    if (!o) {
        char *copy = nori__arena_text(&c->arena, name);
        o = nori__arena_alloc(&c->arena, sizeof(*o));
        if (!copy || !o || !nori__vec_push(&c->names, copy)) {
            return NULL;
        }
        if (!nori__map_put(&c->observers, copy, o)) {
            c->names.count--;
            return NULL;
        }
        nori__observer_init(o);
        c->sorted = false;
    }
    return o;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void nori__calibration_sort(nori_calibration *c)
{
    if (!c->sorted && c->names.count > 0) {
        qsort(c->names.items, c->names.count, sizeof(*c->names.items), by_name);
    }
    c->sorted = true;
}

static bool too_many(const nori__observer *a, const nori__observer *b)
{
    return a->count + b->count >= NORI__MOST_SEEN || a->nan + b->nan >= NORI__MOST_SEEN ||
           a->inf + b->inf >= NORI__MOST_SEEN || a->calls + b->calls >= NORI__MOST_SEEN;
}

nori_status nori_calibration_merge(nori_calibration *into, const nori_calibration *from,
                                   nori_error *err)
{
    NORI__GIVEN(err, into);
    NORI__GIVEN(err, from);
    if (into->graph != from->graph) {
        nori__fail(err, NORI_ERROR_DATA,
                   "calibrations of two models cannot be merged: graph %016llx and %016llx",
                   (unsigned long long)into->graph, (unsigned long long)from->graph);
        nori__hint(err, "all parts must be made with one model file");
        return NORI_ERROR_DATA;
    }
    bool over = into->samples + from->samples >= NORI__MOST_SEEN;
    for (size_t i = 0; i < from->names.count && !over; i++) {
        const nori__observer *o = nori__map_get(&into->observers, from->names.items[i]);
        over = o && too_many(o, nori__map_get(&from->observers, from->names.items[i]));
    }
    if (over) {
        return nori__fail(err, NORI_ERROR_DATA, "more was counted than a calibration can hold");
    }
    for (size_t i = 0; i < from->names.count; i++) {
        nori__observer *o = nori__calibration_of(into, from->names.items[i]);
        if (!o) {
            return nori__no_memory(err);
        }
        nori__observer_merge(o, nori__map_get(&from->observers, from->names.items[i]));
    }
    into->samples += from->samples;
    return NORI_OK;
}

uint64_t nori_calibration_samples(const nori_calibration *c)
{
    NORI__ASKED(c, 0);
    return c->samples;
}

int nori_calibration_at(nori_calibration *c, size_t index, nori_calibrated *value)
{
    NORI__ASKED(c, 0);
    NORI__ASKED(value, 0);
    if (index >= c->names.count) {
        return 0;
    }
    nori__calibration_sort(c);
    const nori__observer *o = nori__map_get(&c->observers, c->names.items[index]);
    nori_calibrated v = {.size = value->size,
                         .name = c->names.items[index],
                         .min = o->min,
                         .max = o->max,
                         .count = o->count,
                         .nan = o->nan,
                         .inf = o->inf};
    if (o->calls > 0) {
        v.average_min = nori__exact_value(&o->low_sum) / (double)o->calls;
        v.average_max = nori__exact_value(&o->high_sum) / (double)o->calls;
    }
    memcpy(value, &v, value->size < sizeof(v) ? value->size : sizeof(v));
    return 1;
}
