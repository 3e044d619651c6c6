/* gradient_rules.c: the derivative of each operator, as nodes. g is the derivative of y by the
 * node's output; what an operator's kernel does at kinks (Relu at 0, Max at ties) is said at it. */
#include "ops/gradient.h"

typedef nori__value *value;

static value in(const nori__node *n, uint32_t i)
{
    return i < n->input_count ? n->inputs[i] : NULL;
}
static value mul(nori__grad *d, value a, value b)
{
    return nori__emit(d, "Mul", a, b, NULL);
}
static value divide(nori__grad *d, value a, value b)
{
    return nori__emit(d, "Div", a, b, NULL);
}
static value neg(nori__grad *d, value a)
{
    return nori__emit(d, "Neg", a, NULL, NULL);
}
static value one_minus(nori__grad *d, value a, const nori__value *like)
{
    return nori__emit(d, "Sub", nori__emit_number(d, 1, like), a, NULL);
}
static value scale(nori__grad *d, value a, double by, const nori__value *like)
{
    return mul(d, a, nori__emit_number(d, by, like));
}
/* Gives an input its derivative, summed where it was broadcast. */
static void give(nori__grad *d, nori__node *n, uint32_t i, value v)
{
    nori__grad_give(d, n, i, nori__emit_sum_to(d, v, n->outputs[0], n->inputs[i]));
}

/* ---- of two inputs ---- */

static void add(nori__grad *d, nori__node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++) { /* Sum too */
        if (nori__grad_wants(d, n, i)) {
            give(d, n, i, nori__grad_out(d, n, 0));
        }
    }
}

static void sub(nori__grad *d, nori__node *n)
{
    value g = nori__grad_out(d, n, 0);
    if (nori__grad_wants(d, n, 0)) {
        give(d, n, 0, g);
    }
    if (nori__grad_wants(d, n, 1)) {
        give(d, n, 1, neg(d, g));
    }
}

static void product(nori__grad *d, nori__node *n)
{
    value g = nori__grad_out(d, n, 0);
    for (uint32_t i = 0; i < 2; i++) {
        if (nori__grad_wants(d, n, i)) {
            give(d, n, i, mul(d, g, in(n, 1 - i)));
        }
    }
}

static void quotient(nori__grad *d, nori__node *n)
{
    value g = nori__grad_out(d, n, 0), b = in(n, 1);
    if (nori__grad_wants(d, n, 0)) {
        give(d, n, 0, divide(d, g, b));
    }
    if (nori__grad_wants(d, n, 1)) { /* -a / b^2 = -y / b */
        give(d, n, 1, neg(d, divide(d, mul(d, g, n->outputs[0]), b)));
    }
}

static void power(nori__grad *d, nori__node *n)
{
    value g = nori__grad_out(d, n, 0), a = in(n, 0), b = in(n, 1);
    if (nori__grad_wants(d, n, 0)) { /* b a^(b - 1) */
        value exponent = nori__emit(d, "CastLike", b, a, NULL);
        value less = nori__emit(d, "Sub", exponent, nori__emit_number(d, 1, a), NULL);
        value slope = mul(d, exponent, nori__emit(d, "Pow", a, less, NULL));
        give(d, n, 0, mul(d, g, slope));
    }
    if (nori__grad_wants(d, n, 1)) { /* y log a */
        value slope = mul(d, n->outputs[0], nori__emit(d, "Log", a, NULL, NULL));
        give(d, n, 1, nori__emit(d, "CastLike", mul(d, g, slope), b, NULL));
    }
}

/* Max and Min: to every input that is the result, so all of several equal ones. */
static void extreme(nori__grad *d, nori__node *n)
{
    value g = nori__grad_out(d, n, 0), y = n->outputs[0];
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (nori__grad_wants(d, n, i)) {
            value is = nori__emit(d, "Equal", in(n, i), y, NULL);
            give(d, n, i, nori__emit(d, "Where", is, g, nori__emit_number(d, 0, y)));
        }
    }
}

static void where(nori__grad *d, nori__node *n)
{
    value g = nori__grad_out(d, n, 0), zero = nori__emit_number(d, 0, n->outputs[0]);
    for (uint32_t i = 1; i < 3; i++) {
        if (nori__grad_wants(d, n, i)) {
            give(d, n, i, nori__emit(d, "Where", in(n, 0), i == 1 ? g : zero, i == 1 ? zero : g));
        }
    }
}

/* ---- of one input ---- */

/* Slope times g, by what the slope is made of. */
static void unary(nori__grad *d, nori__node *n)
{
    value x = in(n, 0), y = n->outputs[0], g = nori__grad_out(d, n, 0), out = NULL;
    switch (n->op->id) {
    case NORI__OP_ONNX_Neg:
        out = neg(d, g);
        break;
    case NORI__OP_ONNX_Identity:
        out = g;
        break;
    case NORI__OP_ONNX_Abs: /* 0 at 0 */
        out = mul(d, g, nori__emit(d, "Sign", x, NULL, NULL));
        break;
    case NORI__OP_ONNX_Exp:
        out = mul(d, g, y);
        break;
    case NORI__OP_ONNX_Log:
        out = divide(d, g, x);
        break;
    case NORI__OP_ONNX_Sqrt:
        out = divide(d, g, scale(d, y, 2, y));
        break;
    case NORI__OP_ONNX_Reciprocal:
        out = neg(d, mul(d, g, mul(d, y, y)));
        break;
    case NORI__OP_ONNX_Sin:
        out = mul(d, g, nori__emit(d, "Cos", x, NULL, NULL));
        break;
    case NORI__OP_ONNX_Cos:
        out = neg(d, mul(d, g, nori__emit(d, "Sin", x, NULL, NULL)));
        break;
    case NORI__OP_ONNX_Sigmoid:
        out = mul(d, g, mul(d, y, one_minus(d, y, y)));
        break;
    case NORI__OP_ONNX_Tanh:
        out = mul(d, g, one_minus(d, mul(d, y, y), y));
        break;
    case NORI__OP_ONNX_Softplus:
        out = mul(d, g, nori__emit(d, "Sigmoid", x, NULL, NULL));
        break;
    case NORI__OP_ONNX_Erf: /* 2 / sqrt(pi) e^(-x^2) */
        out = nori__emit(d, "Exp", neg(d, mul(d, x, x)), NULL, NULL);
        out = mul(d, g, scale(d, out, 1.1283791670955126, x));
        break;
    case NORI__OP_ONNX_Relu: /* 0 at 0 */
        out = nori__emit(d, "Greater", x, nori__emit_number(d, 0, x), NULL);
        out = nori__emit(d, "Where", out, g, nori__emit_number(d, 0, x));
        break;
    case NORI__OP_ONNX_LeakyRelu: /* alpha at 0 */
        out = nori__emit(d, "Greater", x, nori__emit_number(d, 0, x), NULL);
        out = nori__emit(d, "Where", out, g,
                         scale(d, g, (double)nori__attr_f(n, "alpha", 0.01f), x));
        break;
    default:
        nori__grad_refuse(d, n, "none is known for its operator");
        break;
    }
    nori__grad_give(d, n, 0, out);
}

static void cast(nori__grad *d, nori__node *n)
{
    nori__grad_give(d, n, 0, nori__emit(d, "CastLike", nori__grad_out(d, n, 0), in(n, 0), NULL));
}

/* Without training; the mask is not differentiated. */
static void dropout(nori__grad *d, nori__node *n)
{
    if (in(n, 2)) {
        nori__grad_refuse(d, n, "its training_mode is an input");
        return;
    }
    nori__grad_give(d, n, 0, nori__grad_out(d, n, 0));
}

/* Clip: where the bounds do not bind. */
static void clip(nori__grad *d, nori__node *n)
{
    value same = nori__emit(d, "Equal", in(n, 0), n->outputs[0], NULL);
    nori__grad_give(d, n, 0, nori__emit(d, "Where", same, nori__grad_out(d, n, 0),
                                        nori__emit_number(d, 0, in(n, 0))));
}

/* ---- shapes ---- */

/* Reshape, Flatten, Squeeze, Unsqueeze: the same elements. */
static void reshape(nori__grad *d, nori__node *n)
{
    nori__grad_give(d, n, 0, nori__emit_reshape(d, nori__grad_out(d, n, 0), in(n, 0)));
}

static void expand(nori__grad *d, nori__node *n)
{
    give(d, n, 0, nori__grad_out(d, n, 0));
}

static void transpose(nori__grad *d, nori__node *n)
{
    size_t rank;
    const int64_t *perm = nori__attr_ints(n, "perm", &rank);
    int64_t back[NORI_MAX_RANK];
    value out = nori__emit(d, "Transpose", nori__grad_out(d, n, 0), NULL, NULL);
    for (size_t i = 0; perm && i < rank && rank <= NORI_MAX_RANK; i++) {
        if (perm[i] >= 0 && perm[i] < (int64_t)rank) {
            back[perm[i]] = (int64_t)i;
        }
    }
    if (perm && rank > 0) {
        nori__emit_attrs(d, "perm", back, rank);
    }
    nori__grad_give(d, n, 0, out);
}

/* Concat: each input its part. */
static void concat(nori__grad *d, nori__node *n)
{
    value g = nori__grad_out(d, n, 0), begin = nori__emit_ints(d, (int64_t[]){0}, 1);
    int64_t axis = nori__attr_i(n, "axis", 1);
    int rank = n->outputs[0]->type.rank;
    axis += axis < 0 && rank > 0 ? rank : 0;
    if (axis < 0) {
        nori__grad_refuse(d, n, "its rank is not known");
        return;
    }
    for (uint32_t i = 0; i < n->input_count && d->status == NORI_OK; i++) {
        value size = nori__emit_shape(d, in(n, i));
        nori__emit_attr(d, "start", axis);
        nori__emit_attr(d, "end", axis + 1);
        value end = nori__emit(d, "Add", begin, size, NULL);
        if (nori__grad_wants(d, n, i)) {
            value part = nori__emit(d, "Slice", g, begin, end);
            value axes = nori__emit_ints(d, &axis, 1);
            if (d->status == NORI_OK && part &&
                !nori__node_set_input(part->producer, 3, axes)) {
                d->status = nori__no_memory(d->err);
            }
            nori__grad_give(d, n, i, part);
        }
        begin = end;
    }
}

/* ---- reductions ---- */

/* g as if the axes had been kept with size 1; of a scalar: as it is. */
static value with_axes(nori__grad *d, nori__node *n, value g)
{
    if (in(n, 1) && !nori__attr_i(n, "keepdims", 1)) {
        g = nori__emit(d, "Unsqueeze", g, in(n, 1), NULL);
    }
    return g;
}

static void reduce(nori__grad *d, nori__node *n)
{
    value x = in(n, 0), g = nori__grad_out(d, n, 0);
    const nori_tensor *axes = in(n, 1) ? nori__value_const(in(n, 1)) : NULL;
    bool all = !in(n, 1) || (axes && axes->count == 0);
    if (all && nori__attr_i(n, "noop_with_empty_axes", 0)) {
        nori__grad_give(d, n, 0, g);
        return;
    }
    if (in(n, 1) && all) {
        nori__grad_refuse(d, n, "its axes are an empty list");
        return;
    }
    value out = nori__emit_expand(d, with_axes(d, n, g), x);
    if (n->op->id == NORI__OP_ONNX_ReduceMean) {
        value sizes = divide(d, nori__emit(d, "Size", x, NULL, NULL),
                             nori__emit(d, "Size", n->outputs[0], NULL, NULL));
        out = divide(d, out, nori__emit(d, "CastLike", sizes, x, NULL));
    }
    nori__grad_give(d, n, 0, out);
}

static void global_average(nori__grad *d, nori__node *n)
{
    value x = in(n, 0);
    value sizes = divide(d, nori__emit(d, "Size", x, NULL, NULL),
                         nori__emit(d, "Size", n->outputs[0], NULL, NULL));
    value out = nori__emit_expand(d, nori__grad_out(d, n, 0), x);
    nori__grad_give(d, n, 0, divide(d, out, nori__emit(d, "CastLike", sizes, x, NULL)));
}

/* Softmax: y (g - sum(g y)); LogSoftmax: g - e^y sum(g). Below version 13 the sum goes over all axes
 * from `axis` on, later over that one. */
static void softmax(nori__grad *d, nori__node *n)
{
    bool log = n->op->id == NORI__OP_ONNX_LogSoftmax, old = n->version < 13;
    value y = n->outputs[0], g = nori__grad_out(d, n, 0);
    int64_t axis = nori__attr_i(n, "axis", old ? 1 : -1), axes[NORI_MAX_RANK] = {axis};
    int rank = y->type.rank, count = 1;
    if (old) {
        if (rank < 0 || axis < -rank || axis > rank) {
            nori__grad_refuse(d, n, "its rank is not known");
            return;
        }
        axis += axis < 0 ? rank : 0;
        for (count = 0; axis + count < rank; count++) {
            axes[count] = axis + count;
        }
    }
    value sum = nori__emit(d, "ReduceSum", log ? g : mul(d, g, y), nori__emit_ints(d, axes, count), NULL);
    nori__emit_attr(d, "noop_with_empty_axes", 1);
    value part = log ? mul(d, nori__emit(d, "Exp", y, NULL, NULL), sum) : sum;
    value out = nori__emit(d, "Sub", g, part, NULL);
    nori__grad_give(d, n, 0, log ? out : mul(d, y, out));
}

/* ---- the table ---- */

static const struct {
    nori__op_id op;
    nori__grad_rule rule;
} rules[] = {
    {NORI__OP_ONNX_Abs, unary},        {NORI__OP_ONNX_Add, add},
    {NORI__OP_ONNX_Cast, cast},        {NORI__OP_ONNX_CastLike, cast},
    {NORI__OP_ONNX_Clip, clip},        {NORI__OP_ONNX_Concat, concat},
    {NORI__OP_ONNX_Conv, nori__grad_conv},
    {NORI__OP_ONNX_Cos, unary},        {NORI__OP_ONNX_Div, quotient},
    {NORI__OP_ONNX_Dropout, dropout},  {NORI__OP_ONNX_Erf, unary},
    {NORI__OP_ONNX_Exp, unary},        {NORI__OP_ONNX_Expand, expand},
    {NORI__OP_ONNX_Flatten, reshape},  {NORI__OP_ONNX_Gemm, nori__grad_gemm},
    {NORI__OP_ONNX_GlobalAveragePool, global_average},
    {NORI__OP_ONNX_Identity, unary},   {NORI__OP_ONNX_LeakyRelu, unary},
    {NORI__OP_ONNX_Log, unary},        {NORI__OP_ONNX_LogSoftmax, softmax},
    {NORI__OP_ONNX_MatMul, nori__grad_matmul},
    {NORI__OP_ONNX_Max, extreme},      {NORI__OP_ONNX_Min, extreme},
    {NORI__OP_ONNX_Mul, product},      {NORI__OP_ONNX_Neg, unary},
    {NORI__OP_ONNX_Pow, power},        {NORI__OP_ONNX_Reciprocal, unary},
    {NORI__OP_ONNX_ReduceMean, reduce}, {NORI__OP_ONNX_ReduceSum, reduce},
    {NORI__OP_ONNX_Relu, unary},       {NORI__OP_ONNX_Reshape, reshape},
    {NORI__OP_ONNX_Sigmoid, unary},    {NORI__OP_ONNX_Sin, unary},
    {NORI__OP_ONNX_Softmax, softmax},  {NORI__OP_ONNX_Softplus, unary},
    {NORI__OP_ONNX_Sqrt, unary},       {NORI__OP_ONNX_Squeeze, reshape},
    {NORI__OP_ONNX_Sub, sub},          {NORI__OP_ONNX_Sum, add},
    {NORI__OP_ONNX_Tanh, unary},       {NORI__OP_ONNX_Transpose, transpose},
    {NORI__OP_ONNX_Unsqueeze, reshape}, {NORI__OP_ONNX_Where, where},
};

nori__grad_rule nori__grad_rule_find(const nori__node *n)
{
    for (size_t i = 0; n->op && i < NORI__COUNT(rules); i++) {
        if (rules[i].op == n->op->id) {
            return rules[i].rule;
        }
    }
    return NULL;
}
