/* size_text.h: numbers of bytes as people read them. */
#ifndef NORI_BASE_SIZE_TEXT_H
#define NORI_BASE_SIZE_TEXT_H

#include "base/base.h"

#define NORI__SIZE_TEXT 32
/* "1024 bytes", "64.0 kB", "1.05 MB": units of 1000, as the command prints them. Returns out. */
const char *nori__size_text(uint64_t bytes, char out[NORI__SIZE_TEXT]);
/* The same, but as a plain number where other, which is not as many, would read the same: "needs 1.00 MB, the
 * limit is 1.00 MB" says nothing. */
const char *nori__size_apart(uint64_t bytes, uint64_t other, char out[NORI__SIZE_TEXT]);

#endif
