/* bulk.h: for those who handle what a large model has many of: memory that is filled at once, names
 * that are looked for in about the order in which they came. */
#ifndef NORI_BASE_BULK_H
#define NORI_BASE_BULK_H

#include "base/base.h"

/* As nori__arena_array, but not set to zero. */
void *nori__arena_raw(nori__arena *arena, size_t count, size_t size);

/* As nori__map_get_n. *near: where the last such search of a row of them ended, 0 at first; that
 * name, the one behind it and the last of all are looked at before the table. */
void *nori__map_get_near(const nori__map *map, const char *key, size_t size, size_t *near);

#endif
