/* part_links.h: who makes and who reads the values of a part, for providers that compute several of its
 * nodes as one: an activation behind an operator, an operator between DequantizeLinear and QuantizeLinear. */
#ifndef NORI_PROVIDERS_PART_LINKS_H
#define NORI_PROVIDERS_PART_LINKS_H

#include "plan/part.h"

#define NORI__NOBODY UINT32_MAX

typedef struct nori__links {
    const nori_part *part;
    uint32_t *maker;  /* per value: position of the node that makes it, or NORI__NOBODY */
    uint32_t *reader; /* per value: of the one node that reads it; NORI__NOBODY: none or several */
    uint32_t *input;  /* per value: its number among the part's inputs, or NORI__NOBODY */
    bool *is_out;     /* per value: the part delivers it */
    bool *done;       /* per node, for the provider: another's operation computes it */
} nori__links;

/* False: out of memory. */
bool nori__links_make(nori__arena *arena, const nori_part *part, nori__links *l);

/* The node, by position, that alone reads a value, as its first input; NORI__NOBODY: there is none, or
 * the part delivers the value. */
uint32_t nori__links_follower(const nori__links *l, uint32_t value);

/* The DequantizeLinear that makes a value, which then comes from bytes; NULL: another makes it. */
const nori__node *nori__links_dequantizer(const nori__links *l, uint32_t value, uint32_t *bytes);

/* What stands between an operator's result and the bytes it is turned to. */
typedef struct nori__way_out {
    uint32_t activation, quantizer; /* positions; activation may be NORI__NOBODY */
    uint32_t bytes;                 /* the value */
} nori__way_out;

/* From a value, perhaps through an activation, to QuantizeLinear; false: that is not what follows. */
bool nori__links_way_out(const nori__links *l, uint32_t value,
                         bool (*activation)(void *user, const nori__node *n), void *user,
                         nori__way_out *way);
void nori__links_take(nori__links *l, const nori__way_out *way); /* both are done */

#endif
