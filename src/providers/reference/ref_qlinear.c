/* ref_qlinear.c: integer convolutions and products: ConvInteger, MatMulInteger, QLinearConv,
 * QLinearMatMul, com.microsoft QGemm.
 *
 * Zero points are subtracted first, so that padding (the zero point) adds nothing; sums are exact
 * modulo 2^32 as int32 is. Requantization: float32 factor (a_scale * b_scale / y_scale), float32
 * product, rounded half to even, zero point added, saturated. */
#include "providers/reference/ref_nn.h"

#include <math.h>

/* Which zero point or scale belongs to element i of a matrix operand: one for all, one a row, or
 * one a column, the latter two with or without batch dimensions. */
typedef struct spread {
    int64_t count, inner, columns, rows;
    bool by_row;
} spread;

static int64_t spread_at(const spread *s, int64_t i)
{
    if (s->count == 1) {
        return 0;
    }
    if (s->by_row) {
        return i / s->columns % s->count;
    }
    return s->count == s->columns ? i % s->columns
                                  : i / (s->columns * s->rows) * s->columns + i % s->columns;
}

static nori_status spread_of(nori_call *call, const nori_tensor *t, uint32_t param, bool by_row,
                             spread *s)
{
    memset(s, 0, sizeof *s);
    s->count = 1;
    s->by_row = by_row;
    s->columns = t->rank > 0 ? t->dims[t->rank - 1] : 1;
    s->rows = t->rank > 1 ? t->dims[t->rank - 2] : 1;
    if (!nori__nn_has(call, param)) {
        return NORI_OK;
    }
    s->count = call->in[param]->count;
    int64_t one = by_row ? s->rows : s->columns, other = by_row ? s->columns : s->rows;
    int64_t all = other > 0 ? t->count / other : one;
    if (s->count != 1 && s->count != one && s->count != all) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input %u has %lld values, expected 1 or %lld", param,
                          (long long)s->count, (long long)one);
    }
    return NORI_OK;
}

/* Operand as 32-bit integers, zero points taken off. */
static uint32_t *widen(nori_call *call, uint32_t input, uint32_t zero, const spread *s,
                       size_t *bytes)
{
    const nori_tensor *t = call->in[input];
    uint32_t *out = nori__nn_scratch(call, t->count, sizeof *out, bytes);
    if (!out) {
        nori__no_memory(call->err);
        return NULL;
    }
    nori__nn_load_u32(t, 0, t->count, out);
    if (!nori__nn_has(call, zero) || t->count == 0) {
        return out;
    }
    if (s->count == 1) {
        uint32_t z = (uint32_t)nori__tensor_get_i64(call->in[zero], 0);
        for (int64_t i = 0; i < t->count; i++) {
            out[i] -= z;
        }
        return out;
    }
    for (int64_t i = 0; i < t->count; i++) {
        out[i] -= (uint32_t)nori__tensor_get_i64(call->in[zero], spread_at(s, i));
    }
    return out;
}

static float scalar_f32(const nori_call *call, uint32_t i)
{
    return (float)nori__tensor_get_f64(call->in[i], 0);
}

static nori_status need_scalar(const nori_call *call, uint32_t i, const char *name)
{
    NORI__TRY(nori__nn_need(call, i, name, -1));
    return nori__nn_count(call, i, name, 1);
}

static nori_status need_8bit(const nori_call *call, uint32_t i, const char *name)
{
    NORI__TRY(nori__nn_need(call, i, name, -1));
    nori_type t = (nori_type)call->in[i]->type;
    return t == NORI_UINT8 || t == NORI_INT8 ? NORI_OK : nori__nn_type_error(call, i);
}

static int64_t requantize(uint32_t sum, float factor, double zero, double low, double high)
{
    double v = (double)rintf((float)(int32_t)sum * factor) + zero;
    return v >= low ? (int64_t)(v < high ? v : high) : (int64_t)low; /* NaN: the lowest */
}

/* ---- products ---- */

/* Sums of the product of inputs ai and bi into sums (in the call's scratch). */
static nori_status product(nori_call *call, uint32_t ai, uint32_t azero, uint32_t bi,
                           uint32_t bzero, nori__ref_product_work *p, uint32_t *sums)
{
    spread a_spread, b_spread;
    NORI__TRY(spread_of(call, call->in[ai], azero, true, &a_spread));
    NORI__TRY(spread_of(call, call->in[bi], bzero, false, &b_spread));
    size_t na = 0, nb = 0;
    uint32_t *a = widen(call, ai, azero, &a_spread, &na);
    uint32_t *b = widen(call, bi, bzero, &b_spread, &nb);
    if (a && b) {
        p->a = a;
        p->b = b;
        p->y = sums;
        nori__ref_product_u32(call, p);
    }
    nori__release(call->allocator, a, na);
    nori__release(call->allocator, b, nb);
    return a && b ? NORI_OK : NORI_ERROR_MEMORY;
}

nori_status nori__ref_MatMulInteger(nori_call *call)
{
    nori__ref_product_work p;
    NORI__TRY(need_8bit(call, 0, "A"));
    NORI__TRY(need_8bit(call, 1, "B"));
    NORI__TRY(nori__ref_product_setup(call, call->in[0], call->in[1], call->out[0], &p));
    return product(call, 0, 2, 1, 3, &p, call->out[0]->data);
}

static nori_status requantize_matrix(nori_call *call, const nori__ref_product_work *p,
                                     const uint32_t *sums)
{
    nori_tensor *y = call->out[0];
    spread rows, columns;
    double low, high, zero = (double)nori__tensor_get_i64(call->in[7], 0);
    NORI__TRY(spread_of(call, call->in[0], 1, true, &rows));
    NORI__TRY(spread_of(call, call->in[3], 4, false, &columns));
    nori__nn_range((nori_type)y->type, &low, &high);
    float y_scale = scalar_f32(call, 6);
    int64_t b_matrix = p->n * p->k, i = 0;
    for (int64_t line = 0; i < y->count; line++) {
        /* Scales with batch dimensions belong to operands without broadcasting. */
        int64_t ra = rows.count == 1 ? 0 : line % rows.count;
        float a_scale = (float)nori__tensor_get_f64(call->in[1], ra);
        for (int64_t n = 0; n < p->n; n++, i++) {
            int64_t cb =
                columns.count == p->n ? n : spread_at(&columns, line / p->m * b_matrix + n);
            cb = cb < columns.count ? cb : cb % columns.count;
            float factor = a_scale * (float)nori__tensor_get_f64(call->in[4], cb) / y_scale;
            nori__tensor_set_i64(y, i, requantize(sums[i], factor, zero, low, high));
        }
    }
    return NORI_OK;
}

/* Inputs: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point. */
nori_status nori__ref_QLinearMatMul(nori_call *call)
{
    nori__ref_product_work p;
    size_t bytes;
    NORI__TRY(need_8bit(call, 0, "a"));
    NORI__TRY(need_8bit(call, 3, "b"));
    NORI__TRY(nori__nn_need(call, 1, "a_scale", -1));
    NORI__TRY(nori__nn_need(call, 4, "b_scale", -1));
    NORI__TRY(need_scalar(call, 6, "y_scale"));
    NORI__TRY(need_scalar(call, 7, "y_zero_point"));
    NORI__TRY(nori__ref_product_setup(call, call->in[0], call->in[3], call->out[0], &p));
    uint32_t *sums = nori__nn_scratch(call, call->out[0]->count, sizeof *sums, &bytes);
    if (!sums) {
        return nori__no_memory(call->err);
    }
    nori_status status = product(call, 0, 2, 3, 5, &p, sums);
    if (status == NORI_OK) {
        status = requantize_matrix(call, &p, sums);
    }
    nori__release(call->allocator, sums, bytes);
    return status;
}

/* ---- QGemm: A, a_scale, a_zp, B, b_scale, b_zp, C, y_scale, y_zp ---- */

static nori_status qgemm_finish(nori_call *call, const nori__ref_product_work *p,
                                const uint32_t *sums)
{
    nori_tensor *y = call->out[0];
    float alpha = nori__attr_f(call->node, "alpha", 1);
    bool whole = nori__nn_has(call, 8);
    const nori_tensor *c = nori__nn_has(call, 6) ? call->in[6] : NULL, *bs = call->in[4];
    int64_t cw = c && c->rank > 0 ? c->dims[c->rank - 1] : 1;
    int64_t ch = c && c->rank > 1 ? c->dims[c->rank - 2] : 1;
    if ((bs->count != 1 && bs->count != p->n) || (cw != 1 && cw != p->n) ||
        (ch != 1 && ch != p->m) || (c && (c->rank > 2 || c->type != NORI_INT32))) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "b_scale or C of QGemm does not fit a result of %lld x %lld",
                          (long long)p->m, (long long)p->n);
    }
    double low = 0, high = 0, zero = 0;
    float y_scale = whole ? scalar_f32(call, 7) : 1;
    if (whole) {
        nori__nn_range((nori_type)y->type, &low, &high);
        zero = (double)nori__tensor_get_i64(call->in[8], 0);
    }
    for (int64_t i = 0; i < y->count; i++) {
        int64_t m = i / p->n, n = i % p->n;
        uint32_t sum = sums[i];
        if (c) {
            sum += (uint32_t)((const int32_t *)c->data)[(ch == 1 ? 0 : m * cw) + (cw == 1 ? 0 : n)];
        }
        float scale = alpha * scalar_f32(call, 1) *
                      (float)nori__tensor_get_f64(bs, bs->count == 1 ? 0 : n);
        if (whole) {
            nori__tensor_set_i64(y, i, requantize(sum, scale / y_scale, zero, low, high));
        } else {
            nori__tensor_set_f64(y, i, (double)((float)(int32_t)sum * scale));
        }
    }
    return NORI_OK;
}

nori_status nori__ref_ms_QGemm(nori_call *call)
{
    nori__ref_product_work p = {0};
    size_t bytes, na = 0, nb = 0;
    NORI__TRY(need_8bit(call, 0, "A"));
    NORI__TRY(need_8bit(call, 3, "B"));
    NORI__TRY(nori__nn_need(call, 0, "A", 2));
    NORI__TRY(nori__nn_need(call, 3, "B", 2));
    NORI__TRY(need_scalar(call, 1, "a_scale"));
    NORI__TRY(nori__nn_need(call, 4, "b_scale", -1));
    if (nori__nn_has(call, 8)) {
        NORI__TRY(need_scalar(call, 7, "y_scale"));
        NORI__TRY(need_scalar(call, 8, "y_zero_point"));
    }
    const int64_t *a = call->in[0]->dims, *b = call->in[3]->dims;
    bool ta = nori__attr_i(call->node, "transA", 0) != 0;
    bool tb = nori__attr_i(call->node, "transB", 0) != 0;
    p = (nori__ref_product_work){.m = a[ta], .n = b[!tb], .k = a[!ta], .a_row = ta ? 1 : a[1],
                                 .a_col = ta ? a[1] : 1, .b_row = tb ? 1 : b[1],
                                 .b_col = tb ? b[1] : 1};
    if (b[tb] != p.k) {
        return nori__fail(call->err, NORI_ERROR_DATA, "inner sizes differ: %lld and %lld",
                          (long long)p.k, (long long)b[tb]);
    }
    /* Zero points are of the operand as it lies in memory: A one for all, B one a result column. */
    spread one = {.count = 1}, columns = {.count = 1, .columns = tb ? b[1] : p.n, .rows = b[0]};
    if (nori__nn_has(call, 5)) {
        columns.count = call->in[5]->count;
        columns.by_row = tb;
        if (columns.count != 1 && columns.count != p.n) {
            return nori__nn_count(call, 5, "b_zero_point", p.n);
        }
    }
    NORI__TRY(nori__nn_count(call, 2, "a_zero_point", 1));
    uint32_t *sums = nori__nn_scratch(call, call->out[0]->count, sizeof *sums, &bytes);
    uint32_t *wa = widen(call, 0, 2, &one, &na), *wb = widen(call, 3, 5, &columns, &nb);
    nori_status status = sums && wa && wb ? NORI_OK : nori__no_memory(call->err);
    if (status == NORI_OK) {
        p.a = wa;
        p.b = wb;
        p.y = sums;
        nori__ref_product_u32(call, &p);
        status = qgemm_finish(call, &p, sums);
    }
    nori__release(call->allocator, sums, bytes);
    nori__release(call->allocator, wa, na);
    nori__release(call->allocator, wb, nb);
    return status;
}

/* ---- convolutions ---- */

/* Sums of the convolution of inputs xi and wi into sums; bias already in c. */
static nori_status convolve(nori_call *call, uint32_t xi, uint32_t xzero, uint32_t wi,
                            uint32_t wzero, nori__ref_conv_work *c, uint32_t *sums)
{
    spread one = {.count = 1}, made = {.count = 1, .by_row = true};
    NORI__TRY(nori__nn_count(call, xzero, "zero point of the input", 1));
    if (nori__nn_has(call, wzero)) {
        made.count = call->in[wzero]->count;
        made.columns = c->made > 0 ? call->in[wi]->count / c->made : 1;
        if (made.count != 1) {
            NORI__TRY(nori__nn_count(call, wzero, "zero point of the weight", c->made));
        }
    }
    size_t nx = 0, nw = 0;
    uint32_t *x = widen(call, xi, xzero, &one, &nx), *w = widen(call, wi, wzero, &made, &nw);
    nori_status status = x && w ? NORI_OK : NORI_ERROR_MEMORY;
    if (status == NORI_OK) {
        c->x = x;
        c->weight = w;
        c->y = sums;
        status = nori__ref_conv_u32(call, c);
    }
    nori__release(call->allocator, x, nx);
    nori__release(call->allocator, w, nw);
    return status;
}

nori_status nori__ref_ConvInteger(nori_call *call)
{
    nori__ref_conv_work c;
    NORI__TRY(need_8bit(call, 0, "x"));
    NORI__TRY(need_8bit(call, 1, "w"));
    NORI__TRY(nori__ref_conv_setup(call, call->in[0], call->in[1], call->out[0], &c));
    return convolve(call, 0, 2, 1, 3, &c, call->out[0]->data);
}

static void requantize_channels(nori_call *call, int64_t made, const uint32_t *sums)
{
    nori_tensor *y = call->out[0];
    const nori_tensor *scales = call->in[4];
    double low, high, zero = (double)nori__tensor_get_i64(call->in[7], 0);
    nori__nn_range((nori_type)y->type, &low, &high);
    float x_scale = scalar_f32(call, 1), y_scale = scalar_f32(call, 6);
    int64_t plane = nori__nn_product(y->dims, 2, y->rank), i = 0;
    for (int64_t o = 0; i < y->count; o++) {
        float w_scale = (float)nori__tensor_get_f64(scales, scales->count == 1 ? 0 : o % made);
        float factor = x_scale * w_scale / y_scale;
        for (int64_t j = 0; j < plane; j++, i++) {
            int64_t q = requantize(sums[i], factor, zero, low, high);
            if (y->type == NORI_UINT8) {
                ((uint8_t *)y->data)[i] = (uint8_t)q;
            } else {
                ((int8_t *)y->data)[i] = (int8_t)q;
            }
        }
    }
}

/* Inputs: x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B. */
nori_status nori__ref_QLinearConv(nori_call *call)
{
    nori__ref_conv_work c;
    size_t bytes;
    NORI__TRY(need_8bit(call, 0, "x"));
    NORI__TRY(need_8bit(call, 3, "w"));
    NORI__TRY(need_8bit(call, 7, "y_zero_point"));
    NORI__TRY(need_scalar(call, 1, "x_scale"));
    NORI__TRY(need_scalar(call, 6, "y_scale"));
    NORI__TRY(need_scalar(call, 7, "y_zero_point"));
    NORI__TRY(nori__nn_need(call, 4, "w_scale", -1));
    NORI__TRY(nori__ref_conv_setup(call, call->in[0], call->in[3], call->out[0], &c));
    if (call->in[4]->count != 1) {
        NORI__TRY(nori__nn_count(call, 4, "w_scale", c.made));
    }
    NORI__TRY(nori__nn_count(call, 8, "B", c.made));
    if (nori__nn_has(call, 8)) {
        if (call->in[8]->type != NORI_INT32) {
            return nori__nn_type_error(call, 8);
        }
        c.bias = c.made ? call->in[8]->data : NULL;
    }
    uint32_t *sums = nori__nn_scratch(call, call->out[0]->count, sizeof *sums, &bytes);
    if (!sums) {
        return nori__no_memory(call->err);
    }
    nori_status status = convolve(call, 0, 2, 3, 5, &c, sums);
    if (status == NORI_OK) {
        requantize_channels(call, c.made, sums);
    }
    nori__release(call->allocator, sums, bytes);
    return status;
}
