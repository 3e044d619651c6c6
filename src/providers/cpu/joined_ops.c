/* joined_ops.c: the operators of joined.h: names, shapes, kernels. */
#include "providers/cpu/joined.h"

#include "ops/families.h"

#define ROW(id, name, infer) {(nori__op_id)(id), NORI__DOMAINS, name, "joined", 0, infer, NULL}
static const struct row {
    nori__op op;
    const nori__kernel *kernel;
} rows[] = {
    {ROW(NORI__JOINED_PRODUCT, "Product", nori__infer_matmul), &nori__cpu_matmul},
    {ROW(NORI__JOINED_ATTEND, "Attend", nori__infer_attend), &nori__cpu_attend},
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
