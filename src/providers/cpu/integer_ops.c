/* integer_ops.c: the operators of integers.h: shapes, kernels, and what they give without one. They
 * are no part of the list of operators: no file names them, and no other provider is asked for them. */
#include "base/built.h"
#include "ops/families.h"
#include "providers/cpu/integers.h"
#include "providers/reference/ref.h"

static nori_status infer_table(nori__infer *c)
{
    nori__out_like(c, 0, 0);
    if (c->out[0].kind == NORI_KIND_TENSOR) {
        c->out[0].elem = (uint8_t)nori__in_elem(c, 1);
    }
    return NORI_OK;
}

/* Shape as the integer operator infers it, of floats. */
static nori_status infer_float(nori__infer *c, nori__infer_fn infer)
{
    NORI__TRY(infer(c));
    if (c->out[0].kind == NORI_KIND_TENSOR) {
        c->out[0].elem = NORI_FLOAT;
    }
    return NORI_OK;
}

static nori_status infer_conv(nori__infer *c)
{
    return infer_float(c, nori__infer_conv_integer);
}

static nori_status infer_matmul(nori__infer *c)
{
    return infer_float(c, nori__infer_matmul_integer);
}

/* Also what folding and composing tables run. */
static nori_status run_table(nori_call *call)
{
    const uint8_t *x = call->in[0]->data, *table = call->in[1]->data;
    uint8_t *y = call->out[0]->data;
    for (int64_t i = 0; i < call->in[0]->count; i++) {
        y[i] = table[x[i]];
    }
    return NORI_OK;
}

/* The reference of the two products makes their sums alone, the kernel does the rest: they must not be
 * folded, which asks the reference. */
#define ROW(id, name, flags, infer, reference, kernel)                                             \
    {{(nori__op_id)(id), NORI__DOMAINS, #name, "integer", flags,                                   \
      NORI__WHERE_BUILT(nori_##name, infer), NORI__WHERE_BUILT(nori_##name, reference)},           \
     NORI__WHERE_BUILT(nori_##name, &nori__cpu_##kernel)}
static const struct row {
    nori__op op;
    const nori__kernel *kernel;
} rows[] = {
    ROW(NORI__INTEGER_TABLE, Table, NORI__OP_INPLACE, infer_table, run_table, table),
    ROW(NORI__INTEGER_CONV, ConvToFloat, NORI__OP_RANDOM, infer_conv, nori__ref_ConvInteger, to_float),
    ROW(NORI__INTEGER_MATMUL, MatMulToFloat, NORI__OP_RANDOM, infer_matmul, nori__ref_MatMulInteger,
        to_float),
};
#undef ROW

static const struct row *find(int id)
{
    int at = id - (int)NORI__INTEGER_TABLE;
    return at >= 0 && at < (int)NORI__COUNT(rows) ? &rows[at] : NULL;
}

const nori__op *nori__integer_op(nori__integer_id id)
{
    return &find((int)id)->op;
}

const nori__kernel *nori__integer_kernel(const nori__node *node)
{
    const struct row *row = node->op ? find((int)node->op->id) : NULL;
    return row ? row->kernel : NULL;
}
