/* internal.h: what the files of graph/ share. */
#ifndef NORI_GRAPH_INTERNAL_H
#define NORI_GRAPH_INTERNAL_H

#include "graph/graph.h"

nori__ir *nori__ir_new(const nori_allocator *a);
nori__graph *nori__graph_new(nori__ir *ir, nori__graph *parent);
/* Adds a value without looking for a name of the same kind; name must be in the arena. */
nori__value *nori__value_add(nori__graph *g, const char *name);
nori__node *nori__node_add(nori__graph *g); /* at the end */
bool nori__ir_keep(nori__ir *ir, nori_tensor *t); /* takes the reference, also on failure */
nori_status nori__graph_order(nori__graph *g, nori_error *err);
/* Fills uses of every value of the ir from scratch. */
void nori__count_uses(nori__ir *ir);

#endif
