/* ways.h: the ways the cpu provider has of doing a layer, and the rule that takes one.
 *
 * ways.c is the one table: a list a kind of layer, with what each way can do. Rules were fitted to
 * measurements that bench/fit_choices.py repeats; a tuned plan takes what was measured for its model
 * instead (plan/chosen.h). All ways of a kind keep the promises of its kernel: the tolerance, the same bits
 * for any number of threads, and on integers the same bytes. */
#ifndef NORI_PROVIDERS_CPU_WAYS_H
#define NORI_PROVIDERS_CPU_WAYS_H

#include "plan/chosen.h"

typedef enum nori__ways_kind {
    NORI__WAYS_CONV,    /* over channel blocks */
    NORI__WAYS_DEPTHWISE,
    NORI__WAYS_EXPAND,  /* 1 x 1 joined with the depthwise one after it */
    NORI__WAYS_STEM,    /* the first one joined with its pool */
    NORI__WAYS_PRODUCT, /* float, by a constant matrix */
    NORI__WAYS_CONV8,   /* on integers, channels last */
    NORI__WAYS_COUNT
} nori__ways_kind;

enum { NORI__WAY_DIRECT, NORI__WAY_WINOGRAD, NORI__WAY_WINOGRAD2 };
/* Rows of a direct convolution: as they are, gathered by kernel column, or what their width asks for. */
enum { NORI__LINES_BY_WIDTH, NORI__LINES_AS_ROWS, NORI__LINES_BY_COLUMN };
/* Rows of a product's left operand: as their number and distance ask for, in tiles as they are, copied. */
enum { NORI__ROWS_BY_DISTANCE, NORI__ROWS_AS_THEY_ARE, NORI__ROWS_COPIED };
#define NORI__ROWS_FEW 4 /* at once, straight from the input, unless they are to go in tiles */
/* A 1 x 1 convolution and the depthwise one after it: band by band, or all of the first one first. */
enum { NORI__EXPAND_JOINED, NORI__EXPAND_APART };
/* Terms of an integer convolution: rows of the kernel, or its positions. */
enum { NORI__TERMS_ROWS, NORI__TERMS_POSITIONS };

typedef struct nori__way {
    const char *name;
    uint8_t form;  /* one of the enums above, as the kind has it */
    uint8_t lines; /* of the second one */
    uint8_t spans; /* what a thread takes at a time, in eighths of the usual; 0: all there is */
    uint8_t alone; /* 1: one thread does it, for layers whose parts are not worth a hand-over */
} nori__way;

/* The way for the layer of a kernel whose prepare was given a. */
const nori__way *nori__way_for(const nori_allocator *a, nori__ways_kind kind, const nori__layer *layer);
/* What the rule takes, where nothing was chosen. */
const nori__way *nori__way_usual(nori__ways_kind kind, const nori__layer *layer);

/* For listings; any numbers may be asked for. */
const char *nori__ways_name(uint32_t kind);               /* NULL: no such kind */
const nori__way *nori__way_at(uint32_t kind, uint32_t way); /* NULL: past the last */
/* "conv 3x3, 64 -> 128, 56x56" */
void nori__layer_text(uint32_t kind, const nori__layer *layer, char *out, size_t size);

/* Bytes (or lines) a unit takes, of what is usual. */
static inline size_t nori__way_span(const nori__way *w, size_t usual)
{
    return w->spans == 0 ? SIZE_MAX / 2 : usual / 8 * w->spans + usual % 8 * w->spans / 8;
}

static inline int nori__way_threads(const nori__way *w, int threads)
{
    return w->alone ? 1 : threads;
}

/* Nothing known of it, and nothing special about it. */
static inline nori__layer nori__layer_unknown(void)
{
    return (nori__layer){-1, -1, -1, 1, {1, 1}, {1, 1}, {1, 1}, {-1, -1}, {-1, -1}, 0};
}

#endif
