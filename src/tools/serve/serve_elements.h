/* serve_elements.h: the data of one tensor of a request. */
#ifndef NORI_SERVE_ELEMENTS_H
#define NORI_SERVE_ELEMENTS_H

#include <jansson.h>

#include "serve_protocol.h"

/* A tensor whose shape is known and whose data is to be read. */
typedef struct serve_elements {
    const nori_value_info *info;
    nori_type type;
    int rank;
    int64_t dims[NORI_MAX_RANK];
    uint64_t count;
    char *bytes; /* of binary data */
    size_t size;
    nori_error *err;
} serve_elements;

/* From binary data, which the tensor borrows where its alignment allows. */
nori_status nori__serve_bytes(serve_elements *e, nori_tensor **tensor);
/* From JSON: one list, or lists in lists by the shape. */
nori_status nori__serve_data(serve_elements *e, const json_t *data, nori_tensor **tensor);

/* A body as JSON; NULL: error filled (ARGUMENT: it is none, MEMORY). flags: of json_loadb. */
json_t *nori__serve_json(const void *body, size_t size, size_t flags, nori_error *err);

#endif
