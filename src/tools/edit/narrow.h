/* narrow.h: what narrow.c, narrow_write.c and narrow_prove.c share. */
#ifndef NORI_TOOLS_EDIT_NARROW_H
#define NORI_TOOLS_EDIT_NARROW_H

#include "nori/tools.h"
#include "tools/edit/editing.h"

/* A float32 value that a part makes and later ones read. */
typedef struct nori__crossing {
    const char *name, *sent, *scale_name, *zero_name;
    const nori__type *type; /* as its maker declares it */
    bool is_output;         /* of the whole model, too: it stays one */
    float scale;            /* with fixed ranges, as zero_point */
    uint8_t zero_point;
    nori_narrowed row;
    nori_agreement agreement;
} nori__crossing;

/* An output of the whole model. */
typedef struct nori__narrow_output {
    const char *name;
    double peak;
    nori_agreement agreement;
} nori__narrow_output;

typedef struct nori__narrowing {
    const nori_model *model;
    const nori_model *const *parts;
    size_t count;
    const nori_narrow_options *options;
    nori_model **narrow;
    nori__arena *arena;
    nori__crossing *values;
    size_t n_values;
    nori_narrow_result *result;
    nori_error *err;
} nori__narrowing;

/* narrow_write.c: part k, with what crosses as bytes. */
nori_status nori__narrow_write(nori__narrowing *n, size_t k, nori_model **narrow);

/* narrow_prove.c: both run on samples. */
nori_status nori__narrow_ranges(nori__narrowing *n);
nori_status nori__narrow_prove(nori__narrowing *n);

#endif
