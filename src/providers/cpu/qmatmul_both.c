/* qmatmul_both.c: MatMulInteger and QLinearMatMul of two computed operands, over panels of int16
 * pairs. Both are packed in each run, with one zero point each. */
#include "providers/cpu/qmatmul.h"

typedef struct qmatmul_run {
    bool linear;
    nori__ref_product_work w;
    nori__sproduct product;
    bool a_signed, b_signed, y_signed;
    int32_t a_zero, b_zero, y_zero;
    int16_t *a;
    size_t a_bytes;   /* packed, of one product */
    size_t all_bytes; /* of all */
    float *factor;    /* QLinearMatMul: one a column */
    size_t factor_bytes;
    void *y;
} qmatmul_run;

static void batch_at(const nori__ref_product_work *w, size_t index, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int d = w->n_batch - 1; d >= 0; d--) {
        int64_t i = (int64_t)(index % (size_t)w->batch[d]);
        index /= (size_t)w->batch[d];
        *a += i * w->a_batch[d];
        *b += i * w->b_batch[d];
    }
}

static void qmatmul_part(const nori__sproduct *p, size_t index, const int16_t **a,
                         const int16_t **b, int32_t **c)
{
    const qmatmul_run *r = p->user;
    *a = r->a + index * (r->a_bytes / sizeof(int16_t));
    *b = NULL;
    *c = r->linear ? NULL : (int32_t *)r->y + index * p->m * p->n;
}

static void qmatmul_pack(const nori__sproduct *p, size_t index, size_t p0, size_t pc, size_t panel,
                         int16_t *out)
{
    const qmatmul_run *r = p->user;
    const nori__kernels *kern = nori__kernels_get();
    size_t nr = kern->s16_nr, j = panel * nr, count = p->n - j < nr ? p->n - j : nr;
    size_t k = p->k - 2 * p0 < 2 * pc ? p->k - 2 * p0 : 2 * pc;
    int64_t a, b;
    batch_at(&r->w, index, &a, &b);
    kern->s16_pack(nr, k, count,
                   (const uint8_t *)r->w.b + b + (int64_t)(2 * p0) * r->w.b_row +
                       (int64_t)j * r->w.b_col,
                   (size_t)r->w.b_row, (size_t)r->w.b_col, r->b_signed, r->b_zero, out);
}

static void qmatmul_finish(const nori__sproduct *p, size_t index, size_t row, size_t col, size_t n,
                           const int32_t *sums)
{
    const qmatmul_run *r = p->user;
    nori__kernels_get()->requantize_each(n, sums, NULL, r->factor + col, r->y_zero, r->y_signed,
                                         (uint8_t *)r->y + (index * p->m + row) * p->n + col);
}

static void pack_a_units(void *user, int64_t begin, int64_t end, int thread)
{
    const qmatmul_run *r = user;
    const nori__sproduct *p = &r->product;
    const nori__kernels *kern = nori__kernels_get();
    size_t mr = kern->s16_mr, panels = (p->m + mr - 1) / mr, pairs = (p->k + 1) / 2;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t index = (size_t)u / panels, i = (size_t)u % panels * mr;
        int64_t a, b;
        batch_at(&r->w, index, &a, &b);
        kern->s16_pack(mr, p->k, p->m - i < mr ? p->m - i : mr,
                       (const uint8_t *)r->w.a + a + (int64_t)i * r->w.a_row, (size_t)r->w.a_col,
                       (size_t)r->w.a_row, r->a_signed, r->a_zero,
                       r->a + index * (r->a_bytes / sizeof(int16_t)) + i * pairs * 2);
    }
}

static bool plan(bool linear, const nori_call *call, int threads, qmatmul_run *r, size_t *bytes)
{
    uint32_t bi = linear ? 3 : 1;
    nori_call quiet = *call;
    quiet.err = NULL;
    memset(r, 0, sizeof(*r));
    r->linear = linear;
    if (!nori__cpu_has(call, 0) || !nori__cpu_has(call, bi) || !call->out[0] ||
        !nori__cpu_is_8bit((nori_type)call->in[0]->type) ||
        !nori__cpu_is_8bit((nori_type)call->in[bi]->type) ||
        nori__ref_product_setup(&quiet, call->in[0], call->in[bi], call->out[0], &r->w) !=
            NORI_OK) {
        return false;
    }
    nori__ref_product_work *w = &r->w;
    size_t count = (size_t)nori__nn_product(w->batch, 0, w->n_batch);
    r->product = (nori__sproduct){.count = count, .m = (size_t)w->m, .n = (size_t)w->n,
                                  .k = (size_t)w->k, .part = qmatmul_part,
                                  .pack = qmatmul_pack,
                                  .finish = linear ? qmatmul_finish : NULL, .user = r};
    r->a_bytes = nori__spacked_a(r->product.m, r->product.k);
    r->factor_bytes = linear ? nori__cpu_round((size_t)w->n * sizeof(float)) : 0;
    if (!nori__mul_size(r->a_bytes, count, &r->all_bytes)) {
        return false;
    }
    r->all_bytes = nori__cpu_round(r->all_bytes);
    *bytes = r->all_bytes + r->factor_bytes + nori__sproduct_bytes(&r->product, threads);
    return true;
}

size_t nori__qmatmul_both_bytes(bool linear, const nori_call *call)
{
    qmatmul_run r;
    size_t bytes;
    return plan(linear, call, nori__cpu_threads(call), &r, &bytes) ? bytes : 0;
}

static bool params(bool linear, const nori_call *call, qmatmul_run *r)
{
    r->a_signed = call->in[0]->type == NORI_INT8;
    r->b_signed = call->in[linear ? 3 : 1]->type == NORI_INT8;
    if (!nori__qmatmul_zero(call, 2, &r->a_zero) ||
        !nori__qmatmul_zero(call, linear ? 5 : 3, &r->b_zero)) {
        return false;
    }
    if (!linear) {
        return true;
    }
    r->y_signed = call->out[0]->type == NORI_INT8;
    return nori__qmatmul_linear(call, r->w.n) && nori__qmatmul_zero(call, 7, &r->y_zero);
}

nori_status nori__qmatmul_both(bool linear, nori_call *call)
{
    qmatmul_run r;
    size_t bytes;
    int threads = nori__cpu_threads(call);
    if (!plan(linear, call, threads, &r, &bytes) || !params(linear, call, &r)) {
        return nori__cpu_reference(call);
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    r.w.a = call->in[0]->data;
    r.w.b = call->in[linear ? 3 : 1]->data;
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, bytes, &scratch));
    r.a = scratch.data;
    r.factor = (float *)(void *)((char *)scratch.data + r.all_bytes);
    r.y = call->out[0]->data;
    for (size_t j = 0; linear && j < r.product.n; j++) {
        const float *b = call->in[4]->data;
        r.factor[j] = *(const float *)call->in[1]->data * b[call->in[4]->count == 1 ? 0 : j] /
                      *(const float *)call->in[6]->data;
    }
    size_t mr = nori__kernels_get()->s16_mr;
    nori__parallel_for(call->pool, threads,
                       (int64_t)(r.product.count * ((r.product.m + mr - 1) / mr)), 4, pack_a_units,
                       &r);
    nori__sproduct_run(call, &r.product, (char *)scratch.data + r.all_bytes + r.factor_bytes);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}
