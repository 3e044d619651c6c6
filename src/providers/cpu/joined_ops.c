/* joined_ops.c: the operators of joined.h: names, shapes, kernels. */
#include "providers/cpu/joined.h"

#include "base/built.h"
#include "ops/families.h"

#define ROW(id, name, infer, kernel)                                                               \
    {{(nori__op_id)(id), NORI__DOMAINS, #name, "joined", 0, NORI__WHERE_BUILT(nori_##name, infer),  \
      NULL},                                                                                       \
     NORI__WHERE_BUILT(nori_##name, &nori__cpu_##kernel)}
static const struct row {
    nori__op op;
    const nori__kernel *kernel;
} rows[] = {
    ROW(NORI__JOINED_PRODUCT, Product, nori__infer_matmul, matmul),
    ROW(NORI__JOINED_ATTEND, Attend, nori__infer_attend, attend),
};
#undef ROW

static const struct row *find(int id)
{
    int at = id - (int)NORI__JOINED_PRODUCT;
    return at >= 0 && at < (int)NORI__COUNT(rows) ? &rows[at] : NULL;
}

const nori__op *nori__joined_op(nori__joined_id id)
{
    return &find((int)id)->op;
}

const nori__kernel *nori__joined_kernel(const nori__node *node)
{
    const struct row *row = node->op ? find((int)node->op->id) : NULL;
    return row ? row->kernel : NULL;
}
