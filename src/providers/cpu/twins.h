/* twins.h: what rewrites share that move runs of a network onto activations laid out in another way
 * (blocked.h, lastc.h).
 *
 * A plain value may have a twin. One walk in order of execution: a node that is taken reads twins and
 * makes one. A value that plain nodes read, too, is made from its twin by one node right behind it. */
#ifndef NORI_PROVIDERS_CPU_TWINS_H
#define NORI_PROVIDERS_CPU_TWINS_H

#include "providers/cpu/cpu.h"

typedef struct nori__twins nori__twins;

/* One way of laying out. */
typedef struct nori__twin_kind {
    bool (*fits)(const nori__value *plain);             /* may it have a twin? */
    bool (*type)(nori__ir *ir, const nori__value *plain, nori__type *twin); /* false: no memory */
    /* The node over twins in the place of n, made by the functions below, or NULL: n stays. */
    nori__node *(*take)(nori__twins *t, nori__node *n);
    const nori__op *from, *to;                          /* plain to twin and back */
    bool (*to_attr)(nori__node *made, const nori__value *plain); /* attributes of `to` */
} nori__twin_kind;

struct nori__twins {
    nori__ir *ir;
    nori__graph *g;
    const nori__twin_kind *kind;
    nori__value **twin; /* by id of the plain value; NULL: none */
    size_t values;
    nori_error *err;    /* never NULL */
};

/* The rewrite itself, over all graphs. */
nori_status nori__twins_walk(nori__ir *ir, const nori__twin_kind *kind, nori_error *err);

/* v's twin, or NULL. */
nori__value *nori__twin_of(const nori__twins *t, const nori__value *v);
/* The same, made in front of n where there is none. NULL: none can be, or an error. */
nori__value *nori__twin_made(nori__twins *t, nori__value *v, nori__node *n);
/* Puts an operator that makes the twin of n's output into the place of n; gives the new node. */
nori__node *nori__twin_put(nori__twins *t, nori__node *n, const nori__op *op,
                           nori__value *const *in, size_t n_in);
/* The same with n's own operator: it works element by element, or axis by axis. */
nori__node *nori__twin_put_same(nori__twins *t, nori__node *n, nori__value *const *in, size_t n_in);

#endif
