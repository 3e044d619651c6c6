/* ref_ms_product.c: com.microsoft products: FusedMatMul (TransposeMatMul is an older name of it),
 * DynamicQuantizeMatMul, MatMulIntegerToFloat, and Inverse. Float results are made in double and
 * rounded once; the integer products are those of MatMulInteger. */
#include "providers/reference/ref_nn.h"

#include <math.h>

/* ---- FusedMatMul ---- */

/* An operand with its rows, columns and batch axes found: transBatch moves axis 0 behind the batch
 * axes, then trans swaps the last two. */
typedef struct side {
    int64_t rows, columns, row_step, column_step;
    int n_batch;
    int64_t batch[NORI_MAX_RANK], step[NORI_MAX_RANK];
} side;

static void read_side(const nori_tensor *t, bool swap, bool move_batch, bool right, side *s)
{
    int64_t steps[NORI_MAX_RANK], step = 1;
    memset(s, 0, sizeof *s);
    for (int d = t->rank - 1; d >= 0; d--) {
        steps[d] = step;
        step = (int64_t)((uint64_t)step * (uint64_t)t->dims[d]);
    }
    if (t->rank == 1) { /* a row on the left, a column on the right; never transposed */
        s->rows = right ? t->dims[0] : 1;
        s->columns = right ? 1 : t->dims[0];
        s->row_step = s->column_step = 1;
        return;
    }
    int row = move_batch ? 0 : t->rank - 2, column = t->rank - 1, first = move_batch ? 1 : 0;
    s->n_batch = t->rank - 2;
    for (int d = 0; d < s->n_batch; d++) {
        s->batch[d] = t->dims[first + d];
        s->step[d] = steps[first + d];
    }
    s->rows = t->dims[swap ? column : row];
    s->columns = t->dims[swap ? row : column];
    s->row_step = steps[swap ? column : row];
    s->column_step = steps[swap ? row : column];
}

/* Steps of an operand over the result's batch axes: 0 where it is broadcast. */
static bool spread_batch(const side *s, const nori__ref_product_work *p, int64_t *steps)
{
    for (int d = 0; d < p->n_batch; d++) {
        int own = d - (p->n_batch - s->n_batch);
        bool repeats = own < 0 || s->batch[own] == 1;
        if (!repeats && s->batch[own] != p->batch[d]) {
            return false;
        }
        steps[d] = repeats ? 0 : s->step[own];
    }
    return true;
}

static nori_status fused_matmul(nori_call *call)
{
    nori__ref_product_work p;
    const nori__node *node = call->node;
    side a, b;
    memset(&p, 0, sizeof p);
    for (uint32_t i = 0; i < 2; i++) {
        NORI__TRY(nori__nn_need(call, i, i == 0 ? "A" : "B", -1));
        if (call->in[i]->type != NORI_DOUBLE || call->in[i]->rank < 1) {
            return nori__nn_type_error(call, i);
        }
    }
    nori_tensor *y = call->out[0];
    read_side(call->in[0], nori__attr_i(node, "transA", 0) != 0,
              nori__attr_i(node, "transBatchA", 0) != 0, false, &a);
    read_side(call->in[1], nori__attr_i(node, "transB", 0) != 0,
              nori__attr_i(node, "transBatchB", 0) != 0, true, &b);
    p.m = a.rows;
    p.k = a.columns;
    p.n = b.columns;
    p.a_row = a.row_step;
    p.a_col = a.column_step;
    p.b_row = b.row_step;
    p.b_col = b.column_step;
    p.n_batch = a.n_batch > b.n_batch ? a.n_batch : b.n_batch;
    memcpy(p.batch, y->dims, (size_t)p.n_batch * sizeof p.batch[0]);
    if (b.rows != p.k || y->rank < p.n_batch || !spread_batch(&a, &p, p.a_batch) ||
        !spread_batch(&b, &p, p.b_batch)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "operands of ranks %d and %d do not form a matrix product",
                          call->in[0]->rank, call->in[1]->rank);
    }
    p.a = call->in[0]->data;
    p.b = call->in[1]->data;
    p.y = y->data;
    nori__ref_product_f64(call, &p);
    double alpha = (double)nori__attr_f(node, "alpha", 1);
    for (int64_t i = 0; i < y->count && alpha != 1; i++) {
        ((double *)y->data)[i] *= alpha;
    }
    return NORI_OK;
}

nori_status nori__ref_ms_FusedMatMul(nori_call *call)
{
    return nori__nn_double(call, 0, fused_matmul);
}

/* ---- products of integers with float results ---- */

/* y = sums * a_scale * b_scale + bias. b_scale: one value, or one a column. */
static nori_status scale_sums(nori_call *call, const nori_tensor *sums, double a_scale,
                              uint32_t b_scale, uint32_t bias)
{
    nori_tensor *y = call->out[0];
    const nori_tensor *scales = call->in[b_scale];
    const nori_tensor *add = nori__nn_has(call, bias) ? call->in[bias] : NULL;
    int64_t n = call->in[1]->rank > 1 ? call->in[1]->dims[call->in[1]->rank - 1] : 1;
    if (scales->count != 1) {
        NORI__TRY(nori__nn_count(call, b_scale, "b_scale", n));
    }
    NORI__TRY(nori__nn_count(call, bias, "bias", n));
    for (int64_t i = 0; i < y->count; i++) {
        double scale = nori__tensor_get_f64(scales, scales->count == 1 ? 0 : i % n);
        double v = (double)((const int32_t *)sums->data)[i] * a_scale * scale;
        nori__tensor_set_f64(y, i, v + (add ? nori__tensor_get_f64(add, i % n) : 0));
    }
    return NORI_OK;
}

/* MatMulInteger of a and B (input 1) with their zero points, then scales and bias. */
static nori_status integer_to_float(nori_call *call, const nori_tensor *a, double a_scale,
                                    const nori_tensor *a_zero, const nori_tensor *b_zero,
                                    uint32_t b_scale, uint32_t bias)
{
    nori_tensor *sums = NULL;
    nori_tensor *y = call->out[0];
    NORI__TRY(nori__tensor_new(call->allocator, NORI_INT32, y->rank, y->dims, &sums, call->err));
    const nori_tensor *in[4] = {a, call->in[1], a_zero, b_zero};
    nori_call inner = *call;
    inner.in = in;
    inner.n_in = 4;
    inner.out = &sums;
    nori_status s = nori__ref_MatMulInteger(&inner);
    if (s == NORI_OK) {
        s = scale_sums(call, sums, a_scale, b_scale, bias);
    }
    nori_tensor_free(sums);
    return s;
}

/* Inputs: A, B, a_scale, b_scale, a_zero_point, b_zero_point, bias. */
nori_status nori__ref_ms_MatMulIntegerToFloat(nori_call *call)
{
    for (uint32_t i = 0; i < 4; i++) {
        NORI__TRY(nori__nn_need(call, i, "operand or scale", -1));
    }
    NORI__TRY(nori__nn_count(call, 2, "a_scale", 1));
    NORI__TRY(nori__nn_count(call, 4, "a_zero_point", 1));
    return integer_to_float(call, call->in[0], nori__tensor_get_f64(call->in[2], 0),
                            nori__nn_has(call, 4) ? call->in[4] : NULL,
                            nori__nn_has(call, 5) ? call->in[5] : NULL, 3, 6);
}

/* Inputs: A, B, b_scale, b_zero_point, bias. A is quantized as DynamicQuantizeLinear does. */
nori_status nori__ref_ms_DynamicQuantizeMatMul(nori_call *call)
{
    for (uint32_t i = 0; i < 3; i++) {
        NORI__TRY(nori__nn_need(call, i, "operand or scale", -1));
    }
    const nori_tensor *a = call->in[0];
    nori_tensor *q = NULL;
    float scale;
    uint8_t zero;
    nori_tensor scale_tensor, zero_tensor;
    nori__tensor_init(&scale_tensor, NORI_FLOAT, 0, NULL, &scale);
    nori__tensor_init(&zero_tensor, NORI_UINT8, 0, NULL, &zero);
    NORI__TRY(nori__tensor_new(call->allocator, NORI_UINT8, a->rank, a->dims, &q, call->err));
    nori_tensor *out[3] = {q, &scale_tensor, &zero_tensor};
    nori_call inner = *call;
    inner.n_in = 1;
    inner.out = out;
    inner.n_out = 3;
    nori_status s = nori__ref_DynamicQuantizeLinear(&inner);
    if (s == NORI_OK) {
        s = integer_to_float(call, q, (double)scale, &zero_tensor,
                             nori__nn_has(call, 3) ? call->in[3] : NULL, 2, 4);
    }
    nori_tensor_free(q);
    return s;
}

/* ---- Inverse ---- */

/* Gauss-Jordan with the largest pivot of each column; m: n x 2n, the right half starts as the unit
 * matrix and ends as the inverse. False: singular. */
static bool invert(int64_t n, double *m)
{
    for (int64_t c = 0; c < n; c++) {
        int64_t best = c;
        for (int64_t r = c + 1; r < n; r++) {
            best = fabs(m[r * 2 * n + c]) > fabs(m[best * 2 * n + c]) ? r : best;
        }
        double pivot = m[best * 2 * n + c];
        if (pivot == 0) {
            return false;
        }
        for (int64_t j = 0; j < 2 * n; j++) {
            double v = m[best * 2 * n + j] / pivot;
            m[best * 2 * n + j] = m[c * 2 * n + j];
            m[c * 2 * n + j] = v;
        }
        for (int64_t r = 0; r < n; r++) {
            double factor = r == c ? 0 : m[r * 2 * n + c];
            for (int64_t j = 0; j < 2 * n && factor != 0; j++) {
                m[r * 2 * n + j] -= factor * m[c * 2 * n + j];
            }
        }
    }
    return true;
}

static nori_status inverse(nori_call *call)
{
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    const nori_tensor *x = call->in[0];
    if (x->type != NORI_DOUBLE || x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2]) {
        return nori__fail(call->err, NORI_ERROR_DATA, "X (input 0) is not made of square matrices");
    }
    int64_t n = x->dims[x->rank - 1], cells = 0;
    size_t bytes;
    double *m = nori__mul_dim(n, n, &cells) && nori__mul_dim(cells, 2, &cells)
                    ? nori__nn_scratch(call, cells, sizeof *m, &bytes)
                    : NULL;
    if (!m) {
        return nori__no_memory(call->err);
    }
    nori_status s = NORI_OK;
    for (int64_t from = 0; from < x->count && s == NORI_OK; from += n * n) {
        for (int64_t i = 0; i < n * n; i++) {
            m[i / n * 2 * n + i % n] = ((const double *)x->data)[from + i];
            m[i / n * 2 * n + n + i % n] = i / n == i % n;
        }
        if (!invert(n, m)) {
            s = nori__fail(call->err, NORI_ERROR_DATA, "matrix %lld of X (input 0) has no inverse",
                           (long long)(from / (n * n)));
        }
        for (int64_t i = 0; i < n * n && s == NORI_OK; i++) {
            ((double *)call->out[0]->data)[from + i] = m[i / n * 2 * n + n + i % n];
        }
    }
    nori__release(call->allocator, m, bytes);
    return s;
}

nori_status nori__ref_ms_Inverse(nori_call *call)
{
    return nori__nn_double(call, 0, inverse);
}
