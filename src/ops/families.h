/* families.h: declares every inference function and reference kernel the list names, family by
 * family. Inference lives in ops/infer_<family>.c, kernels in providers/reference/ref_<family>.c. */
#ifndef NORI_OPS_FAMILIES_H
#define NORI_OPS_FAMILIES_H

#include "ops/op.h"

#define NORI__DECLARE_INFER(name) nori_status name(nori__infer *c);
#define NORI__DECLARE_REF(name) nori_status name(nori_call *call);

/* Each family keeps its declarations in a block of its own here. */

#endif
