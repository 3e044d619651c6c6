/* group_file.h: sequences, optionals and maps as files hold them. */
#ifndef NORI_TOOLS_FILES_GROUP_FILE_H
#define NORI_TOOLS_FILES_GROUP_FILE_H

#include "graph/tensor.h"

/* kind: SEQUENCE, OPTIONAL or MAP. The result does not point into data. */
nori_status nori__group_read(const nori_allocator *a, const uint8_t *data, size_t size,
                             nori_kind kind, nori_tensor **value, nori_error *err);
/* Appends a value of any kind but sparse as the message that fits it. */
nori_status nori__value_write(const nori_tensor *t, nori__text *out, nori_error *err);

#endif
