/* vec.c: a growing array of pointers. */
#include "base/base.h"

void nori__vec_init(nori__vec *vec, const nori_allocator *allocator)
{
    *vec = (nori__vec){.allocator = allocator};
}

void nori__vec_free(nori__vec *vec)
{
    nori__release(vec->allocator, vec->items, vec->capacity * sizeof(void *));
    nori__vec_init(vec, vec->allocator);
}

bool nori__vec_push(nori__vec *vec, void *item)
{
    if (vec->count == vec->capacity) {
        size_t capacity = vec->capacity ? vec->capacity * 2 : 16, bytes;
        if (!nori__mul_size(capacity, sizeof(void *), &bytes)) {
            return false;
        }
        void **items = nori__alloc(vec->allocator, bytes);
        if (!items) {
            return false;
        }
        if (vec->count > 0) {
            memcpy(items, vec->items, vec->count * sizeof(void *));
        }
        nori__release(vec->allocator, vec->items, vec->capacity * sizeof(void *));
        vec->items = items;
        vec->capacity = capacity;
    }
    vec->items[vec->count++] = item;
    return true;
}
