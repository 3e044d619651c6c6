/* integers_products.c: Conv, MatMul and Gemm of dequantized operands (integers.h). */
#include "providers/cpu/integers.h"

#include <math.h>

#define SUM_MOST 2147483647.0
#define PRODUCT_MOST 65025.0 /* 255 * 255 */

/* A bias may be off by half a unit of the sums: that must be little beside a step of the result. */
#define UNIT_MOST 0.1

/* ---- operands ---- */

/* v as a constant operand of 8 bits with one scale, or one for each of count places along axis. */
static bool weight_operand(const nori__joiner *j, const nori__value *v, int axis, int64_t count,
                           nori__quantized *w)
{
    if (!nori__dequantized(j, v, w) || !nori__cpu_is_8bit(w->type)) {
        return false;
    }
    int rank = w->q->type.rank, own = w->axis < 0 ? w->axis + rank : w->axis;
    return w->scales->count == 1 || (own == axis && w->scales->count == count);
}

static double weight_scale(const nori__quantized *w, int64_t i)
{
    return (double)((const float *)w->scales->data)[w->scales->count == 1 ? 0 : i];
}

/* A bias in real numbers: a float constant, or a dequantized one. */
typedef struct bias {
    bool given;
    const float *real;      /* one a channel, or: */
    nori__quantized q;
    const int32_t *integer; /* one a channel */
} bias;

/* Of count channels; they must be the last axis. false: a form that is not taken. */
static bool read_bias(const nori__joiner *j, const nori__value *v, int64_t count, bias *b)
{
    memset(b, 0, sizeof(*b));
    b->given = v != NULL;
    if (!v) {
        return true;
    }
    bool from = nori__dequantized(j, v, &b->q);
    const nori_tensor *t = nori__value_const(from ? b->q.q : v);
    if (!t || t->count != count || t->rank < 1 || t->dims[t->rank - 1] != count ||
        (from && b->q.scales->count != 1 && b->q.scales->count != count)) {
        return false;
    }
    b->real = !from && t->type == NORI_FLOAT ? t->data : NULL;
    b->integer = from && t->type == NORI_INT32 ? t->data : NULL;
    return b->real || b->integer;
}

static double bias_at(const bias *b, int64_t i)
{
    if (b->real) {
        return (double)b->real[i];
    }
    int64_t zero = !b->q.zeros ? 0 : nori__tensor_get_i64(b->q.zeros, b->q.zeros->count == 1 ? 0 : i);
    return (double)(b->integer[i] - zero) * weight_scale(&b->q, i);
}

/* The bias in units of the sums, as a constant. false: not exact enough, or the sums could leave 32
 * bits; unit: a factor all have besides the scale of the weights. */
static bool integer_bias(nori__joiner *j, const bias *b, int64_t count, int64_t depth,
                         const nori__quantized *w, double unit, double y_scale, nori__value **out)
{
    *out = NULL;
    if ((double)depth * PRODUCT_MOST > SUM_MOST) {
        return false;
    }
    if (!b->given) {
        return true;
    }
    nori_tensor *t = NULL;
    if (nori__tensor_new(j->ir->allocator, NORI_INT32, 1, &count, &t, j->err) != NORI_OK) {
        return false;
    }
    bool fits = true;
    for (int64_t i = 0; i < count && fits; i++) {
        double own = unit * weight_scale(w, i), given = b->integer ? weight_scale(&b->q, i) : 0;
        double q = bias_at(b, i) / own;
        if (fabs(given - own) <= 1e-5 * own) {
            q = bias_at(b, i) / given; /* meant to be the same: a whole number */
        } else {
            fits = own <= UNIT_MOST * y_scale;
        }
        fits = fits && fabs(q) + (double)depth * PRODUCT_MOST <= SUM_MOST;
        ((int32_t *)t->data)[i] = fits ? (int32_t)rint(q) : 0;
    }
    if (!fits) {
        nori_tensor_free(t);
        return false;
    }
    *out = nori__joiner_const(j, t);
    return *out != NULL;
}

/* ---- with integers as result ---- */

/* A constant matrix with rows and columns changed. */
static nori__value *turn(nori__joiner *j, const nori_tensor *t)
{
    nori_tensor *out = NULL;
    int64_t dims[2] = {t->dims[1], t->dims[0]};
    if (nori__tensor_new(j->ir->allocator, (nori_type)t->type, 2, dims, &out, j->err) != NORI_OK) {
        return NULL;
    }
    for (int64_t r = 0; r < dims[1]; r++) {
        for (int64_t c = 0; c < dims[0]; c++) {
            ((uint8_t *)out->data)[c * dims[1] + r] =
                ((const uint8_t *)t->data)[r * dims[0] + c];
        }
    }
    return nori__joiner_const(j, out);
}

void nori__turn_qgemm(nori__joiner *j, nori__node *n)
{
    const nori_tensor *b = nori__value_const(nori__input_of(n, 3));
    if (!nori__node_is(n, NORI__OP_MS_QGemm) || !nori__attr_i(n, "transB", 0) || !b ||
        b->rank != 2 || !nori__cpu_is_8bit((nori_type)b->type)) {
        return;
    }
    nori__value *turned = turn(j, b);
    if (!turned || !nori__node_set_input(n, 3, turned) || !nori__node_set_int(n, "transB", 0)) {
        nori__no_memory(j->err);
    }
}

/* Inputs of all three: a, scale, zero, b, scale, zero; then more. */
static bool operands(nori__joiner *j, const nori__quantized *a, const nori__quantized *b,
                     nori__value **in)
{
    in[0] = a->q;
    in[1] = a->scale;
    in[2] = nori__zero_value(j, a);
    in[3] = b->q;
    in[4] = b->scale;
    in[5] = nori__zero_value(j, b);
    return in[2] && in[5];
}

/* Two operands of a Conv; weights must be constant. */
static bool conv_operands(const nori__joiner *j, const nori__node *p, nori__quantized *x,
                          nori__quantized *w, bias *b)
{
    nori__quantized any;
    if (p->input_count < 2 || !nori__dequantized_8bit(j, p->inputs[0], x) ||
        !nori__dequantized(j, p->inputs[1], &any)) {
        return false;
    }
    const nori_tensor *t = nori__value_const(any.q);
    return t && t->rank >= 3 && t->count > 0 &&
           weight_operand(j, p->inputs[1], 0, t->dims[0], w) &&
           read_bias(j, nori__cpu_value(p, 2), t->dims[0], b);
}

static nori__node *conv(nori__joiner *j, nori__node *p, nori__node *before,
                        const nori__quantized *y, nori__value *out)
{
    nori__quantized x, w;
    nori__value *in[9];
    bias b;
    if (!conv_operands(j, p, &x, &w, &b)) {
        return NULL;
    }
    const nori_tensor *t = nori__value_const(w.q);
    if (!integer_bias(j, &b, t->dims[0], t->count / t->dims[0], &w, (double)nori__scale_of(&x),
                      (double)nori__scale_of(y), &in[8]) ||
        !operands(j, &x, &w, in)) {
        return NULL;
    }
    in[6] = y->scale;
    in[7] = nori__zero_value(j, y);
    return in[7] ? nori__joiner_node(j, before, "", "QLinearConv", NULL, in, 9, out, p) : NULL;
}

/* The columns of a right operand of rank 2 or more, and the depth; -1: not known. */
static void matrix_sizes(const nori__value *v, bool turned, int64_t *columns, int64_t *depth)
{
    int rank = v->type.rank;
    *columns = rank >= 2 ? v->type.dims[rank - (turned ? 2 : 1)].value : -1;
    *depth = rank >= 2 ? v->type.dims[rank - (turned ? 1 : 2)].value : -1;
}

typedef struct product {
    nori__quantized a, b;
    bias c;
    bool gemm, turned; /* turned: rows of b are columns */
    int64_t columns, depth;
    float alpha, beta;
} product;

/* MatMul or Gemm p, with add behind it (NULL: none) that adds a row of constants. */
static bool read_product(const nori__joiner *j, const nori__node *p, const nori__value *add,
                         product *m)
{
    memset(m, 0, sizeof(*m));
    m->gemm = nori__node_is(p, NORI__OP_ONNX_Gemm);
    m->turned = m->gemm && nori__attr_i(p, "transB", 0) != 0;
    m->alpha = m->gemm ? nori__attr_f(p, "alpha", 1) : 1;
    m->beta = m->gemm && !add ? nori__attr_f(p, "beta", 1) : 1;
    nori__quantized any;
    if ((!m->gemm && !nori__node_is(p, NORI__OP_ONNX_MatMul)) || p->input_count < 2 ||
        (m->gemm && nori__attr_i(p, "transA", 0) != 0) || !(m->alpha > 0) || m->beta != 1 ||
        !nori__dequantized_8bit(j, p->inputs[0], &m->a) ||
        !nori__dequantized(j, p->inputs[1], &any)) {
        return false;
    }
    const nori__value *c = m->gemm ? nori__cpu_value(p, 2) : NULL;
    matrix_sizes(any.q, m->turned, &m->columns, &m->depth);
    int axis = any.q->type.rank - (m->turned ? 2 : 1);
    return m->columns >= 0 && m->depth > 0 && (any.scales->count == 1 || any.q->type.rank == 2) &&
           !(c && add) && weight_operand(j, p->inputs[1], axis, m->columns, &m->b) &&
           read_bias(j, c ? c : add, m->columns, &m->c);
}

static nori__node *matrix(nori__joiner *j, nori__node *p, const nori__value *add,
                          nori__node *before, const nori__quantized *y, nori__value *out)
{
    product m;
    nori__value *in[9] = {NULL}, *row;
    if (!read_product(j, p, add, &m) ||
        !integer_bias(j, &m.c, m.columns, m.depth, &m.b,
                      (double)m.alpha * (double)nori__scale_of(&m.a), (double)nori__scale_of(y),
                      &row) ||
        !operands(j, &m.a, &m.b, in)) {
        return NULL;
    }
    nori__value *zero = nori__zero_value(j, y);
    bool flat = m.a.q->type.rank == 2 && m.b.q->type.rank == 2;
    if (!zero || (m.c.given && !flat)) {
        return NULL;
    }
    if (!m.gemm && !m.c.given) {
        in[6] = y->scale;
        in[7] = zero;
        return nori__joiner_node(j, before, "", "QLinearMatMul", NULL, in, 8, out, p);
    }
    in[6] = row;
    in[7] = y->scale;
    in[8] = zero;
    nori__node *made = nori__joiner_node(j, before, "com.microsoft", "QGemm", NULL, in, 9, out, p);
    if (made) {
        nori__turn_qgemm(j, made);
    }
    return made;
}

/* A product, or the sum of a product and a row of constants. */
nori__node *nori__join_product(nori__joiner *j, nori__node *p, nori__node *before,
                               const nori__quantized *y, nori__value *out)
{
    if (nori__node_is(p, NORI__OP_ONNX_Conv)) {
        return conv(j, p, before, y, out);
    }
    if (nori__node_is(p, NORI__OP_ONNX_Add) && p->input_count == 2) {
        for (int i = 0; i < 2; i++) {
            nori__node *m = nori__sole_producer(j, p->inputs[i]);
            nori__node *made = m && nori__node_is(m, NORI__OP_ONNX_MatMul) && p->inputs[!i]
                                   ? matrix(j, m, p->inputs[!i], before, y, out)
                                   : NULL;
            if (made || j->err->status != NORI_OK) {
                return made;
            }
        }
        return NULL;
    }
    return matrix(j, p, NULL, before, y, out);
}

/* ---- with floats as result ---- */

static nori__value *product_scale(nori__joiner *j, const nori__quantized *a,
                                  const nori__quantized *w, float alpha)
{
    nori_tensor *t = NULL;
    int64_t n = w->scales->count;
    if (nori__tensor_new(j->ir->allocator, NORI_FLOAT, 1, &n, &t, j->err) != NORI_OK) {
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        ((float *)t->data)[i] = alpha * nori__scale_of(a) * ((const float *)w->scales->data)[i];
    }
    return nori__joiner_const(j, t);
}

static bool float_bias(nori__joiner *j, const bias *b, int64_t count, nori__value **out)
{
    nori_tensor *t = NULL;
    *out = NULL;
    if (!b->given) {
        return true;
    }
    if (nori__tensor_new(j->ir->allocator, NORI_FLOAT, 1, &count, &t, j->err) != NORI_OK) {
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        ((float *)t->data)[i] = (float)bias_at(b, i);
    }
    *out = nori__joiner_const(j, t);
    return *out != NULL;
}

static nori__node *finish_float(nori__joiner *j, nori__node *p, nori__integer_id id,
                                nori__value *const *in)
{
    const nori__op *op = nori__integer_op(id);
    nori__node *made = nori__joiner_node(j, p, "nori", op->name, op, in, 6, p->outputs[0], p);
    if (made) {
        nori__drop(j, p);
    }
    return made;
}

nori__node *nori__join_to_float(nori__joiner *j, nori__node *p)
{
    nori__value *in[6];
    if (p->output_count != 1 || !p->outputs[0]) {
        return NULL;
    }
    if (nori__node_is(p, NORI__OP_ONNX_Conv)) {
        nori__quantized x, w;
        bias b;
        if (!conv_operands(j, p, &x, &w, &b)) {
            return NULL;
        }
        int64_t made = nori__value_const(w.q)->dims[0];
        in[0] = x.q;
        in[1] = w.q;
        in[2] = nori__zero_value(j, &x);
        in[3] = nori__zero_value(j, &w);
        in[4] = product_scale(j, &x, &w, 1);
        return in[2] && in[3] && in[4] && float_bias(j, &b, made, &in[5])
                   ? finish_float(j, p, NORI__INTEGER_CONV, in)
                   : NULL;
    }
    product m;
    if (!read_product(j, p, NULL, &m) || (m.turned && !nori__value_const(m.b.q))) {
        return NULL;
    }
    in[0] = m.a.q;
    in[1] = m.turned ? turn(j, nori__value_const(m.b.q)) : m.b.q;
    in[2] = nori__zero_value(j, &m.a);
    in[3] = nori__zero_value(j, &m.b);
    in[4] = product_scale(j, &m.a, &m.b, m.alpha);
    return in[1] && in[2] && in[3] && in[4] && float_bias(j, &m.c, m.columns, &in[5])
               ? finish_float(j, p, NORI__INTEGER_MATMUL, in)
               : NULL;
}
