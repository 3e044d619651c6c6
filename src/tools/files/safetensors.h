/* safetensors.h: the table of a .safetensors file. */
#ifndef NORI_TOOLS_FILES_SAFETENSORS_H
#define NORI_TOOLS_FILES_SAFETENSORS_H

#include "graph/tensor.h"

typedef struct nori__stored {
    const char *name; /* terminated, in the arena */
    nori_type type;
    int rank;
    int64_t dims[NORI_MAX_RANK];
    const uint8_t *data; /* in the file */
    size_t bytes;
} nori__stored;

/* Whether bytes may be such a file: a length and a JSON object. */
bool nori__is_safetensors(const uint8_t *data, size_t size);
/* Fills list with nori__stored, all of which lie inside data. */
nori_status nori__safetensors_read(nori__arena *arena, const uint8_t *data, size_t size,
                                   nori__vec *list, nori_error *err);

#endif
