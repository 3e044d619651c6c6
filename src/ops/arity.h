/* arity.h: what a node is given against the facts of its version: asked by sessions before they
 * compile; the checker says the same of all nodes in its own words. */
#ifndef NORI_OPS_ARITY_H
#define NORI_OPS_ARITY_H

#include "graph/graph.h"

/* The first node that lacks an input or output its version needs, has more of them than it may, or an
 * attribute of another kind: MODEL, with its path. Attributes left out are up to inference. Outputs
 * that are always there, but stand under no name, get a value. */
nori_status nori__require_arity(nori__ir *ir, nori_error *err);

/* "ints"; "unknown" for a number that is no kind. */
const char *nori__attr_kind_name(nori__pb_attr_kind kind);

#endif
