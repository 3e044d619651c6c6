/* integers_elements.c: sums, products, Concat, Softmax and averages of dequantized values become
 * com.microsoft QLinear operators (integers.h), which want all their types alike. */
#include "providers/cpu/integers.h"

/* Input i of p, of y's type. */
static bool operand(const nori__joiner *j, const nori__node *p, uint32_t i,
                    const nori__quantized *y, nori__quantized *x)
{
    return i < p->input_count && nori__dequantized_8bit(j, p->inputs[i], x) && x->type == y->type;
}

static nori__node *microsoft(nori__joiner *j, nori__node *before, const char *name,
                             nori__value *const *in, size_t n, nori__value *out,
                             const nori__node *like)
{
    for (size_t i = 0; i < n; i++) {
        if (!in[i]) {
            return NULL; /* no memory, which was said */
        }
    }
    return nori__joiner_node(j, before, "com.microsoft", name, NULL, in, n, out, like);
}

static nori__node *binary(nori__joiner *j, nori__node *p, nori__node *before,
                          const nori__quantized *y, nori__value *out, const char *name)
{
    nori__quantized a, b;
    if (!operand(j, p, 0, y, &a) || !operand(j, p, 1, y, &b) || p->input_count != 2) {
        return NULL;
    }
    float minus = -nori__scale_of(&b);
    nori__value *b_scale = nori__node_is(p, NORI__OP_ONNX_Sub)
                               ? nori__float_const(j, &minus, 1, true)
                               : b.scale;
    nori__value *in[8] = {a.q, a.scale, nori__zero_value(j, &a),
                          b.q, b_scale, nori__zero_value(j, &b),
                          y->scale, nori__zero_value(j, y)};
    return microsoft(j, before, name, in, 8, out, p);
}

static nori__node *unary(nori__joiner *j, nori__node *p, nori__node *before,
                         const nori__quantized *y, nori__value *out, const char *name)
{
    nori__quantized x;
    if (!operand(j, p, 0, y, &x)) {
        return NULL;
    }
    nori__value *in[5] = {x.q, x.scale, nori__zero_value(j, &x), y->scale, nori__zero_value(j, y)};
    return microsoft(j, before, name, in, 5, out, p);
}

static nori__node *concat(nori__joiner *j, nori__node *p, nori__node *before,
                          const nori__quantized *y, nori__value *out)
{
    nori__quantized x;
    size_t n = 2 + 3 * (size_t)p->input_count;
    nori__value **in = nori__arena_array(&j->ir->arena, n, sizeof(nori__value *));
    if (!in) {
        nori__no_memory(j->err);
        return NULL;
    }
    in[0] = y->scale;
    in[1] = nori__zero_value(j, y);
    for (uint32_t i = 0; i < p->input_count; i++) {
        if (!operand(j, p, i, y, &x)) {
            return NULL;
        }
        in[2 + 3 * i] = x.q;
        in[3 + 3 * i] = x.scale;
        in[4 + 3 * i] = nori__zero_value(j, &x);
    }
    return microsoft(j, before, "QLinearConcat", in, n, out, p);
}

/* Windows without gaps: that is all QLinearAveragePool has. */
static bool dense(const nori__node *p)
{
    size_t count;
    const int64_t *d = nori__attr_ints(p, "dilations", &count);
    for (size_t i = 0; d && i < count; i++) {
        if (d[i] != 1) {
            return false;
        }
    }
    return true;
}

/* ReduceMean over all axes behind the channels. */
static bool over_planes(const nori__node *p)
{
    const nori__value *x = nori__cpu_value(p, 0);
    const nori_tensor *axes = nori__value_const(nori__cpu_value(p, 1));
    int rank = x ? x->type.rank : -1;
    uint32_t seen = 0;
    if (rank < 3 || !axes || axes->type != NORI_INT64) {
        return false;
    }
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t a = ((const int64_t *)axes->data)[i];
        a += a < 0 ? rank : 0;
        if (a < 2 || a >= rank) {
            return false;
        }
        seen |= 1u << a;
    }
    return seen == (1u << rank) - 4;
}

static nori__node *mean(nori__joiner *j, nori__node *p, nori__node *before,
                        const nori__quantized *y, nori__value *out)
{
    nori__quantized x;
    bool keeps = nori__attr_i(p, "keepdims", 1) != 0;
    if (!over_planes(p) || !operand(j, p, 0, y, &x)) {
        return NULL;
    }
    nori__value *whole = keeps ? out : nori__value_like(j, p->inputs[0], y->type);
    nori__value *in[5] = {x.q, x.scale, nori__zero_value(j, &x), y->scale, nori__zero_value(j, y)};
    nori__node *made =
        whole ? microsoft(j, before, "QLinearGlobalAveragePool", in, 5, whole, NULL) : NULL;
    if (!made) {
        return NULL;
    }
    made->name = p->name;
    nori__value *squeeze[2] = {whole, p->inputs[1]};
    return keeps || nori__joiner_node(j, before, "", "Squeeze", NULL, squeeze, 2, out, NULL) ? made
                                                                                            : NULL;
}

nori__node *nori__join_elements(nori__joiner *j, nori__node *p, nori__node *before,
                                const nori__quantized *y, nori__value *out)
{
    if (!p->op || p->output_count != 1 || p->input_count < 1) {
        return NULL;
    }
    switch (p->op->id) {
    case NORI__OP_ONNX_Add:
    case NORI__OP_ONNX_Sub:
        return binary(j, p, before, y, out, "QLinearAdd");
    case NORI__OP_ONNX_Mul:
        return binary(j, p, before, y, out, "QLinearMul");
    case NORI__OP_ONNX_Concat:
        return concat(j, p, before, y, out);
    case NORI__OP_ONNX_AveragePool:
        return dense(p) ? unary(j, p, before, y, out, "QLinearAveragePool") : NULL;
    case NORI__OP_ONNX_GlobalAveragePool:
        return unary(j, p, before, y, out, "QLinearGlobalAveragePool");
    case NORI__OP_ONNX_Softmax:
        return p->version >= 13 ? unary(j, p, before, y, out, "QLinearSoftmax") : NULL;
    case NORI__OP_ONNX_ReduceMean:
        return mean(j, p, before, y, out);
    default:
        return NULL;
    }
}
