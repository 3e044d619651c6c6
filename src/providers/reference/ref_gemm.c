/* ref_gemm.c: MatMul, Gemm, com.microsoft FusedGemm.
 *
 * Float sums in double, rounded once (Gemm's addend rounds again); integer sums wrap in their type
 * (64 bits inside). An empty inner dimension gives zeros (Gemm: the addend). NaN and infinity as
 * arithmetic has them. */
#include "providers/reference/ref_nn.h"

#define BLOCK 256

#define T float
#define ACC double
#define NAME(x) x##_f32
#include "providers/reference/ref_gemm_body.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "providers/reference/ref_gemm_body.h"
#undef T
#undef ACC
#undef NAME
#define T uint32_t
#define ACC uint32_t
#define NAME(x) x##_u32
#include "providers/reference/ref_gemm_body.h"
#undef T
#undef ACC
#undef NAME
#define T uint64_t
#define ACC uint64_t
#define NAME(x) x##_u64
#include "providers/reference/ref_gemm_body.h"
#undef T
#undef ACC
#undef NAME

static void product_run(nori_call *call, const nori__ref_product_work *work, nori__body body)
{
    nori__ref_product_work p = *work;
    int64_t units = nori__nn_product(p.batch, 0, p.n_batch) * p.m * ((p.n + BLOCK - 1) / BLOCK);
    if (units > 0) {
        nori__parallel_for(call->pool, nori__nn_threads(call), units, 4, body, &p);
    }
}

void nori__ref_product_f32(nori_call *call, const nori__ref_product_work *work)
{
    product_run(call, work, product_units_f32);
}

void nori__ref_product_f64(nori_call *call, const nori__ref_product_work *work)
{
    product_run(call, work, product_units_f64);
}

void nori__ref_product_u32(nori_call *call, const nori__ref_product_work *work)
{
    product_run(call, work, product_units_u32);
}

void nori__ref_product_u64(nori_call *call, const nori__ref_product_work *work)
{
    product_run(call, work, product_units_u64);
}

/* Batch strides of one operand of the given rank: 0 where it is broadcast. */
static bool batch_strides(const nori_tensor *t, nori__ref_product_work *p, int64_t *strides)
{
    int own = t->rank > 2 ? t->rank - 2 : 0;
    int64_t step = t->rank > 1 ? nori__nn_product(t->dims, t->rank - 2, t->rank) : 0;
    for (int d = p->n_batch - 1; d >= 0; d--) {
        int mine = d - (p->n_batch - own);
        strides[d] = 0;
        if (mine >= 0) {
            if (t->dims[mine] != 1 && t->dims[mine] != p->batch[d]) {
                return false;
            }
            strides[d] = t->dims[mine] == 1 ? 0 : step;
            step = (int64_t)((uint64_t)step * (uint64_t)t->dims[mine]);
        }
    }
    return true;
}

nori_status nori__ref_product_setup(nori_call *call, const nori_tensor *a, const nori_tensor *b,
                                    const nori_tensor *y, nori__ref_product_work *p)
{
    memset(p, 0, sizeof *p);
    bool ok = a->rank > 0 && b->rank > 0;
    if (ok) {
        p->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
        p->k = a->dims[a->rank - 1];
        p->n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
        p->a_row = p->k;
        p->a_col = 1;
        p->b_row = p->n;
        p->b_col = 1;
        int tail = (a->rank > 1) + (b->rank > 1);
        p->n_batch = y->rank - tail;
        ok = p->n_batch >= 0 && (b->rank > 1 ? b->dims[b->rank - 2] : b->dims[0]) == p->k &&
             a->rank - 2 <= p->n_batch && b->rank - 2 <= p->n_batch;
    }
    if (ok) {
        memcpy(p->batch, y->dims, (size_t)p->n_batch * sizeof p->batch[0]);
        ok = batch_strides(a, p, p->a_batch) && batch_strides(b, p, p->b_batch);
    }
    if (!ok) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "operands of ranks %d and %d do not form a matrix product", a->rank,
                          b->rank);
    }
    p->a = a->data;
    p->b = b->data;
    p->y = y->data;
    return NORI_OK;
}

static bool is_float(nori_type t)
{
    return t == NORI_FLOAT || t == NORI_DOUBLE;
}

/* Integer operands widened to 64 bits; the low bits of the result are exact for every type. */
static nori_status product_integer(nori_call *call, nori__ref_product_work *p)
{
    const nori_tensor *a = call->in[0], *b = call->in[1];
    nori_tensor *y = call->out[0];
    size_t na, nb, ny;
    uint64_t *wa = nori__nn_scratch(call, a->count, 8, &na);
    uint64_t *wb = nori__nn_scratch(call, b->count, 8, &nb);
    uint64_t *wy = nori__nn_scratch(call, y->count, 8, &ny);
    nori_status status = NORI_OK;
    if (wa && wb && wy) {
        for (int64_t i = 0; i < a->count; i++) {
            wa[i] = (uint64_t)nori__tensor_get_i64(a, i);
        }
        for (int64_t i = 0; i < b->count; i++) {
            wb[i] = (uint64_t)nori__tensor_get_i64(b, i);
        }
        p->a = wa;
        p->b = wb;
        p->y = wy;
        nori__ref_product_u64(call, p);
        for (int64_t i = 0; i < y->count; i++) {
            nori__tensor_set_i64(y, i, (int64_t)wy[i]);
        }
    } else {
        status = nori__no_memory(call->err);
    }
    nori__release(call->allocator, wa, na);
    nori__release(call->allocator, wb, nb);
    nori__release(call->allocator, wy, ny);
    return status;
}

static nori_status product_any(nori_call *call, nori__ref_product_work *p)
{
    nori_type type = (nori_type)call->in[0]->type;
    if (call->in[1]->type != type || call->out[0]->type != type) {
        return nori__nn_type_error(call, 1);
    }
    if (type == NORI_FLOAT) {
        nori__ref_product_f32(call, p);
    } else if (type == NORI_DOUBLE) {
        nori__ref_product_f64(call, p);
    } else if (type == NORI_INT32 || type == NORI_INT64 || type == NORI_UINT32 ||
               type == NORI_UINT64) {
        return product_integer(call, p);
    } else {
        return nori__nn_type_error(call, 0);
    }
    return NORI_OK;
}

static nori_status matmul(nori_call *call)
{
    nori__ref_product_work p;
    NORI__TRY(nori__nn_need(call, 0, "A", -1));
    NORI__TRY(nori__nn_need(call, 1, "B", -1));
    NORI__TRY(nori__ref_product_setup(call, call->in[0], call->in[1], call->out[0], &p));
    return product_any(call, &p);
}

nori_status nori__ref_MatMul(nori_call *call)
{
    return nori__nn_half(call, matmul);
}

/* ---- Gemm ---- */

/* Row and column strides of the addend in the result of m x n. */
static nori_status addend_strides(nori_call *call, const nori__ref_product_work *p, int64_t *row,
                                  int64_t *col)
{
    const nori_tensor *t = call->in[2];
    int64_t w = t->rank > 0 ? t->dims[t->rank - 1] : 1, h = t->rank > 1 ? t->dims[t->rank - 2] : 1;
    if (t->rank > 2 || (w != 1 && w != p->n) || (h != 1 && h != p->m)) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input 2 (C) of rank %d does not broadcast to %lld x %lld", t->rank,
                          (long long)p->m, (long long)p->n);
    }
    *col = w == 1 ? 0 : 1;
    *row = h == 1 ? 0 : w;
    return NORI_OK;
}

static void add_f32(nori_call *call, const nori__ref_product_work *p, int64_t row, int64_t col)
{
    float *y = call->out[0]->data;
    const float *c = nori__nn_has(call, 2) ? call->in[2]->data : NULL;
    double alpha = (double)nori__attr_f(call->node, "alpha", 1);
    double beta = (double)nori__attr_f(call->node, "beta", 1);
    for (int64_t m = 0; m < p->m; m++) {
        for (int64_t n = 0; n < p->n; n++, y++) {
            double v = alpha * (double)*y;
            *y = (float)(c ? v + beta * (double)c[m * row + n * col] : v);
        }
    }
}

static void add_any(nori_call *call, const nori__ref_product_work *p, int64_t row, int64_t col)
{
    nori_tensor *y = call->out[0];
    const nori_tensor *c = nori__nn_has(call, 2) ? call->in[2] : NULL;
    double alpha = (double)nori__attr_f(call->node, "alpha", 1);
    double beta = (double)nori__attr_f(call->node, "beta", 1);
    bool plain = alpha == 1 && beta == 1 && !is_float((nori_type)y->type);
    for (int64_t i = 0; i < y->count; i++) {
        int64_t j = i / p->n * row + i % p->n * col;
        if (plain) {
            uint64_t v = (uint64_t)nori__tensor_get_i64(y, i);
            v += c ? (uint64_t)nori__tensor_get_i64(c, j) : 0;
            nori__tensor_set_i64(y, i, (int64_t)v);
        } else {
            double v = alpha * nori__tensor_get_f64(y, i);
            nori__tensor_set_f64(y, i, c ? v + beta * nori__tensor_get_f64(c, j) : v);
        }
    }
}

static nori_status gemm(nori_call *call)
{
    nori__ref_product_work p = {0};
    NORI__TRY(nori__nn_need(call, 0, "A", 2));
    NORI__TRY(nori__nn_need(call, 1, "B", 2));
    const int64_t *a = call->in[0]->dims, *b = call->in[1]->dims;
    bool ta = nori__attr_i(call->node, "transA", 0) != 0;
    bool tb = nori__attr_i(call->node, "transB", 0) != 0;
    p.m = a[ta];
    p.k = a[!ta];
    p.n = b[!tb];
    p.a_row = ta ? 1 : a[1];
    p.a_col = ta ? a[1] : 1;
    p.b_row = tb ? 1 : b[1];
    p.b_col = tb ? b[1] : 1;
    p.a = call->in[0]->data;
    p.b = call->in[1]->data;
    p.y = call->out[0]->data;
    if (b[tb] != p.k || call->out[0]->count != p.m * p.n) {
        return nori__fail(call->err, NORI_ERROR_DATA, "inner sizes differ: %lld and %lld",
                          (long long)p.k, (long long)b[tb]);
    }
    int64_t row = 0, col = 0;
    if (nori__nn_has(call, 2)) {
        NORI__TRY(addend_strides(call, &p, &row, &col));
        if (call->in[2]->type != call->in[0]->type) {
            return nori__nn_type_error(call, 2);
        }
    }
    NORI__TRY(product_any(call, &p));
    if (call->out[0]->type == NORI_FLOAT) {
        add_f32(call, &p, row, col);
    } else {
        add_any(call, &p, row, col);
    }
    return NORI_OK;
}

nori_status nori__ref_Gemm(nori_call *call)
{
    return nori__nn_half(call, gemm);
}

/* Gemm with an activation behind it. */
static nori_status fused_gemm(nori_call *call)
{
    static const char *const names[] = {"activation_alpha", "activation_beta", "activation_gamma"};
    float p[3];
    size_t n = 0;
    NORI__TRY(gemm(call));
    if (call->out[0]->type != NORI_FLOAT) {
        return nori__nn_type_error(call, 0);
    }
    while (n < 3 && nori__attr_find(call->node, names[n])) {
        p[n] = nori__attr_f(call->node, names[n], 0);
        n++;
    }
    return nori__nn_activate(call, p, n, call->out[0]->data, call->out[0]->count);
}

nori_status nori__ref_ms_FusedGemm(nori_call *call)
{
    return nori__nn_half(call, fused_gemm);
}
