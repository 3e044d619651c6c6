/* blocked_rules.h: what the files that move a network onto channel blocks share. */
#ifndef NORI_PROVIDERS_CPU_BLOCKED_RULES_H
#define NORI_PROVIDERS_CPU_BLOCKED_RULES_H

#include "providers/cpu/blocked.h"
#include "providers/cpu/twins.h"

static inline bool nori__is_image(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && v->type.elem == NORI_FLOAT &&
           v->type.rank == 4 && v->type.dims[1].value > 0;
}

static inline nori__value *nori__input(const nori__node *n, uint32_t i)
{
    return i < n->input_count ? n->inputs[i] : NULL;
}

/* No window of two dimensions that crops; kernel NULL: as the attribute says. */
static inline bool nori__given_pads(const nori__node *n, const int64_t *kernel)
{
    nori__window w;
    return nori__window_read(n, NULL, 2, kernel, &w) == NORI_OK && w.begin[0] >= 0 &&
           w.begin[1] >= 0 && w.end[0] >= 0 && w.end[1] >= 0;
}

/* Puts a node of the domain "nori" that makes the twin of n's output into the place of n. */
static inline nori__node *nori__put_blocked(nori__twins *t, nori__node *n, nori__blocked_id id,
                                            nori__value *const *in, size_t n_in)
{
    return nori__twin_put(t, n, nori__blocked_op(id), in, n_in);
}

/* The blocked node in the place of n, or NULL: n is none of theirs, or an error. */
nori__node *nori__block_conv(nori__twins *b, nori__node *n);   /* blocked_conv.c: convolutions */
nori__node *nori__block_stem(nori__twins *b, nori__node *n); /* ... joined with the MaxPool n */
nori__node *nori__block_follow(nori__twins *b, nori__node *n); /* blocked_rules.c: the rest */

#endif
