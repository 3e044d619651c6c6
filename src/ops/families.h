/* families.h: declares every function that op_list.h names (repeats are harmless), so that adding
 * an operator needs no second list. Inference lives in ops/infer_<family>.c, reference kernels in
 * providers/reference/ref_<family>.c. An operator without a kernel yet names nori__ref_none. */
#ifndef NORI_OPS_FAMILIES_H
#define NORI_OPS_FAMILIES_H

#include "ops/op.h"

#define NORI__OP(domain, name, family, flags, infer, reference) \
    nori_status infer(nori__infer *c);                          \
    nori_status reference(nori_call *call);
#include "ops/op_list.h"
#undef NORI__OP

#endif
