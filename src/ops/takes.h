/* takes.h: element types against the facts of an operator. Sessions refuse what no version takes
 * before a kernel meets it; the checker holds a node to its own version. */
#ifndef NORI_OPS_TAKES_H
#define NORI_OPS_TAKES_H

#include "ops/op.h"
#include "ops/schema.h"

/* What a value of this kind is as bits of nori__schema_arg.types, several where not all of it is
 * known; 0: nothing is known. elem as in nori_type, of: what a sequence or optional holds, or NULL. */
uint64_t nori__types_of(nori_kind kind, nori_type elem, const nori__type *of);

/* "bool, int32, sequence of maps" into out, cut to size. */
void nori__types_text(uint64_t types, char *out, size_t size);

/* The argument of position i: the last one repeats when variadic; NULL: there is none. */
const nori__schema_arg *nori__schema_arg_at(const nori__schema_arg *args, unsigned n, uint32_t i);

/* MODEL where an input's type is known and neither the node's version nor the newest takes it:
 * kernels and inference may then count on it. Nodes that no facts are known of pass. */
nori_status nori__require_types(const nori__infer *c);

#endif
