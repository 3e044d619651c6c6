/* custom.h: operators that callers register with an environment (nori/provider.h). They stand beside
 * the list and the facts: what asks by domain and name for a graph asks here. */
#ifndef NORI_OPS_CUSTOM_H
#define NORI_OPS_CUSTOM_H

#include "ops/op.h"
#include "ops/schema.h"

/* Newest operator set of a domain of registered operators: files may import any. */
#define NORI__OPSET_ANY INT64_MAX

/* For ir->custom: the operators of an environment, later ones too; NULL when out of memory. */
const void *nori__registry_of(nori_env *env);

/* The operator or the facts in force under an opset: of the list and the table, else registered.
 * ir NULL: of the list alone. */
const nori__op *nori__op_in(const nori__ir *ir, const char *domain, const char *name,
                            int64_t opset);
const nori__schema *nori__schema_in(const nori__ir *ir, const char *domain, const char *name,
                                    int64_t opset);
int64_t nori__opset_max_in(const nori__ir *ir, const char *domain);

/* The kernel of a registered operator; NULL for others. */
const nori_kernel *nori__custom_kernel(const nori__op *op);
/* Makes sure that a callback's failure has a text; returns status. */
nori_status nori__custom_failed(const nori__node *node, nori_status status, nori_error *err);
/* Facts of the index-th operator of an environment, NULL past the last: for reports. */
const nori__schema *nori__custom_at(nori_env *env, size_t index);

/* Functions that libraries of operators call, see custom.c. */
extern void (*const nori__offered[])(void);

#endif
