/* integers.h: quantized graphs as integer operators, whoever wrote them and however.
 *
 * A file says "computed on integers" in three ways: DequantizeLinear -> operator -> QuantizeLinear
 * around float operators, QLinear operators, and chains that find their scales in each run
 * (DynamicQuantizeLinear, ConvInteger or MatMulInteger, Cast, Mul, Add). integers.c brings the first
 * onto the second and joins the third, on the compiled copy:
 *
 *   Conv                         QLinearConv
 *   MatMul, Gemm                 QLinearMatMul, com.microsoft QGemm
 *   Add, Sub, Mul, Concat, Softmax, pools of averages
 *                                com.microsoft QLinearAdd, QLinearMul, ...
 *   what moves bytes or takes the largest
 *                                the same operator on the integers
 *   any function of one 8-bit value
 *                                Table
 *   products whose result stays float
 *                                ConvToFloat, MatMulToFloat
 *
 * Operators of the domain "nori", made by the cpu provider and run by it alone (integer_ops.c):
 *
 *   Table          x (8-bit), table (256 elements of an 8-bit type, by the byte of x)
 *   ConvToFloat    x, w, x_zero, w_zero (as ConvInteger), scale (1 or one a channel), bias (one a
 *                  channel, may be absent); attributes of Conv, activation as FusedConv. The result is
 *                  activation((float)sum * scale + bias), each step rounded to float32.
 *   MatMulToFloat  a, b, a_zero, b_zero (as MatMulInteger), scale (1 or one a column), bias (one a
 *                  column, may be absent); activation. */
#ifndef NORI_PROVIDERS_CPU_INTEGERS_H
#define NORI_PROVIDERS_CPU_INTEGERS_H

#include "ops/resolve.h"
#include "providers/cpu/cpu.h"

/* Ids past those of the list and of blocked.h. */
typedef enum nori__integer_id {
    NORI__INTEGER_TABLE = NORI__OP_COUNT + 100,
    NORI__INTEGER_CONV,
    NORI__INTEGER_MATMUL
} nori__integer_id;
const nori__op *nori__integer_op(nori__integer_id id);
const nori__kernel *nori__integer_kernel(const nori__node *node); /* NULL: not such a node */
static inline bool nori__integer_is(const nori__node *n, nori__integer_id id)
{
    return n && n->op && (int)n->op->id == (int)id;
}

extern const nori__kernel nori__cpu_table, nori__cpu_to_float, nori__cpu_q8_binary,
    nori__cpu_q8_concat, nori__cpu_q8_softmax, nori__cpu_q8_max_pool, nori__cpu_q8_average_pool,
    nori__cpu_q8_mean, nori__cpu_qgemm;

/* ---- what the files of the rewrite share (integers_common.c) ---- */

typedef struct nori__joiner {
    nori__ir *ir;
    nori__graph *g;
    nori_error *err; /* never NULL; a status other than OK ends the walk */
} nori__joiner;

/* A real value as (q - zero) * scale: one scale for all, or one for each place along axis. */
typedef struct nori__quantized {
    nori__value *q, *scale, *zero; /* zero NULL: 0 */
    const nori_tensor *scales, *zeros;
    nori_type type; /* of q */
    int axis;       /* as the node says it, may be negative */
} nori__quantized;

/* Input i of n, to read from it elsewhere. */
static inline nori__value *nori__input_of(const nori__node *n, uint32_t i)
{
    return i < n->input_count ? n->inputs[i] : NULL;
}
/* v is made by a DequantizeLinear of the same graph with constant scales, to float32. */
bool nori__dequantized(const nori__joiner *j, const nori__value *v, nori__quantized *out);
/* The same, of 8 bits and with one scale. */
bool nori__dequantized_8bit(const nori__joiner *j, const nori__value *v, nori__quantized *out);
/* n is a QuantizeLinear of float32 to 8 bits with one constant scale; out->q is its output. */
bool nori__quantizes(const nori__node *n, nori__quantized *out);
bool nori__same_quantization(const nori__quantized *a, const nori__quantized *b);
static inline float nori__scale_of(const nori__quantized *q)
{
    return *(const float *)q->scales->data;
}
static inline int32_t nori__zero_of(const nori__quantized *q)
{
    return q->zeros ? (int32_t)nori__tensor_get_i64(q->zeros, 0) : 0;
}
/* The zero point as a value: its own, or a new constant 0. NULL: no memory. */
nori__value *nori__zero_value(nori__joiner *j, const nori__quantized *q);

/* Who makes v, in the graph at hand, where nobody but one reader wants v; else NULL. */
nori__node *nori__sole_producer(const nori__joiner *j, const nori__value *v);

/* A value of the shape of another, of an integer type. NULL: no memory. */
nori__value *nori__value_like(nori__joiner *j, const nori__value *v, nori_type type);
/* A constant that owns t (also on failure). */
nori__value *nori__joiner_const(nori__joiner *j, nori_tensor *t);
nori__value *nori__float_const(nori__joiner *j, const float *v, int64_t count, bool scalar);
/* A node in front of before that makes out; op NULL: of the list by domain and name. */
nori__node *nori__joiner_node(nori__joiner *j, nori__node *before, const char *domain,
                              const char *name, const nori__op *op, nori__value *const *in,
                              size_t n_in, nori__value *out, const nori__node *like);
/* Removes n and what was there for it alone. */
void nori__drop(nori__joiner *j, nori__node *n);

/* ---- the rewrites; each gives what it made, NULL where it does not apply or failed ---- */

/* integers_moves.c: a DequantizeLinear in front of what only moves goes behind it; a QuantizeLinear
 * behind it goes in front. */
nori__node *nori__push_down(nori__joiner *j, nori__node *n);
nori__node *nori__lift_up(nori__joiner *j, nori__node *q);
/* integers_table.c: what leads to q is a function of one 8-bit value. */
nori__node *nori__join_table(nori__joiner *j, nori__node *q);
nori__node *nori__table_of_node(nori__joiner *j, nori__node *n); /* QLinearSigmoid and the like */
/* A Table behind v, whose zero and scale are y's: limits real values. Gives the output. */
nori__node *nori__clamp_table(nori__joiner *j, nori__node *before, nori__value *v,
                              const nori__quantized *y, float low, float high, nori__value *out);
/* integers_products.c, integers_elements.c: the operator p makes what q quantizes. out is what the
 * new node makes. */
nori__node *nori__join_product(nori__joiner *j, nori__node *p, nori__node *before,
                               const nori__quantized *y, nori__value *out);
nori__node *nori__join_elements(nori__joiner *j, nori__node *p, nori__node *before,
                                const nori__quantized *y, nori__value *out);
nori__node *nori__join_to_float(nori__joiner *j, nori__node *p); /* nothing quantizes its result */
/* A QGemm of a file whose constant weights are transposed gets them the other way. */
void nori__turn_qgemm(nori__joiner *j, nori__node *n);
/* integers_dynamic.c: chains behind ConvInteger and MatMulInteger. */
nori__node *nori__join_dynamic(nori__joiner *j, nori__node *n);

#endif
