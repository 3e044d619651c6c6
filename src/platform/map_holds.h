/* map_holds.h: whether bytes lie in a mapped file. */
#ifndef NORI_PLATFORM_MAP_HOLDS_H
#define NORI_PLATFORM_MAP_HOLDS_H

#include "platform/platform.h"

static inline bool nori__map_holds(const nori__map_file *file, const void *data, size_t size)
{
    uintptr_t begin = (uintptr_t)file->data, at = (uintptr_t)data;
    return file->data && at >= begin && at - begin <= file->size && size <= file->size - (at - begin);
}

#endif
