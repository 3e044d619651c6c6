/* cpu_qmatmul.c: MatMulInteger and QLinearMatMul, exact on every level.
 *
 * A constant right operand is packed once, its zero points (one, or one a column) taken off. The
 * left one is packed per run with one zero point. Other forms go to the reference kernel. */
#include "providers/cpu/cpu.h"
#include "providers/reference/ref_nn.h"

typedef struct qmatmul_state {
    bool linear;
    int16_t *weights; /* NULL: the right operand is not constant */
    size_t bytes, n, k;
} qmatmul_state;

static void qmatmul_release(void *state, const nori_allocator *a)
{
    qmatmul_state *s = state;
    if (s) {
        nori__release(a, s->weights, s->bytes);
        nori__release(a, s, sizeof(*s));
    }
}

static int32_t element(const nori_tensor *t, size_t i)
{
    return t->type == NORI_INT8 ? ((const int8_t *)t->data)[i] : ((const uint8_t *)t->data)[i];
}

static void pack_weights(qmatmul_state *s, const nori_tensor *b, const nori_tensor *zero)
{
    size_t nr = nori__kernels_get()->s16_nr, pairs = (s->k + 1) / 2;
    memset(s->weights, 0, s->bytes);
    for (size_t p = 0; p < s->k; p++) {
        for (size_t j = 0; j < s->n; j++) {
            int64_t z = zero ? nori__tensor_get_i64(zero, zero->count == 1 ? 0 : (int64_t)j) : 0;
            s->weights[(j / nr * pairs + p / 2) * nr * 2 + j % nr * 2 + p % 2] =
                (int16_t)(element(b, p * s->n + j) - z);
        }
    }
}

static nori_status qmatmul_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                   size_t *state_bytes, nori_error *err)
{
    bool linear = nori__node_is(node, NORI__OP_ONNX_QLinearMatMul);
    const nori_tensor *b = nori__value_const(nori__cpu_value(node, linear ? 3 : 1));
    const nori__value *zero_value = nori__cpu_value(node, linear ? 5 : 3);
    const nori_tensor *zero = nori__value_const(zero_value);
    qmatmul_state *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    s->linear = linear;
    if (b && b->rank == 2 && b->count > 0 && nori__cpu_is_8bit((nori_type)b->type) &&
        (!zero_value || (zero && (zero->count == 1 || zero->count == b->dims[1])))) {
        s->k = (size_t)b->dims[0];
        s->n = (size_t)b->dims[1];
        s->bytes = nori__spacked_b(s->n, s->k);
        s->weights = s->bytes ? nori__alloc(a, s->bytes) : NULL;
        if (!s->weights) {
            nori__release(a, s, sizeof(*s));
            return nori__no_memory(err);
        }
        pack_weights(s, b, zero);
    }
    *state = s;
    *state_bytes = s->bytes + sizeof(*s);
    return NORI_OK;
}

/* ---- one run ---- */

typedef struct qmatmul_run {
    const qmatmul_state *s;
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
    *b = r->s->weights;
    *c = r->s->linear ? NULL : (int32_t *)r->y + index * p->m * p->n;
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

static bool qmatmul_plan(const qmatmul_state *s, const nori_call *call, int threads,
                         qmatmul_run *r, size_t *bytes)
{
    uint32_t bi = s->linear ? 3 : 1;
    nori_call quiet = *call;
    quiet.err = NULL;
    memset(r, 0, sizeof(*r));
    r->s = s;
    if (!nori__cpu_has(call, 0) || !nori__cpu_has(call, bi) || !call->out[0] ||
        !nori__cpu_is_8bit((nori_type)call->in[0]->type) ||
        !nori__cpu_is_8bit((nori_type)call->in[bi]->type) ||
        nori__ref_product_setup(&quiet, call->in[0], call->in[bi], call->out[0], &r->w) !=
            NORI_OK) {
        return false;
    }
    nori__ref_product_work *w = &r->w;
    size_t count = (size_t)nori__nn_product(w->batch, 0, w->n_batch);
    if (s->weights && ((size_t)w->n != s->n || (size_t)w->k != s->k)) {
        return false;
    }
    if (s->weights && w->n_batch > 0) { /* rows of all batches in one */
        w->m *= (int64_t)count;
        w->n_batch = 0;
        count = 1;
    }
    r->product = (nori__sproduct){.count = count, .m = (size_t)w->m, .n = (size_t)w->n,
                                  .k = (size_t)w->k, .part = qmatmul_part,
                                  .pack = s->weights ? NULL : qmatmul_pack,
                                  .finish = s->linear ? qmatmul_finish : NULL, .user = r};
    r->a_bytes = nori__spacked_a(r->product.m, r->product.k);
    r->factor_bytes = s->linear ? nori__cpu_round((size_t)w->n * sizeof(float)) : 0;
    if (!nori__mul_size(r->a_bytes, count, &r->all_bytes)) {
        return false;
    }
    r->all_bytes = nori__cpu_round(r->all_bytes);
    *bytes = r->all_bytes + r->factor_bytes + nori__sproduct_bytes(&r->product, threads);
    return true;
}

static size_t qmatmul_workspace(const void *state, const nori_call *call)
{
    qmatmul_run r;
    size_t bytes;
    return qmatmul_plan(state, call, nori__cpu_threads(call), &r, &bytes) ? bytes : 0;
}

/* One 8-bit zero point, or none. */
static bool one_zero(const nori_call *call, uint32_t i, int32_t *zero)
{
    const nori_tensor *t = nori__cpu_has(call, i) ? call->in[i] : NULL;
    *zero = t && t->count == 1 ? (int32_t)nori__tensor_get_i64(t, 0) : 0;
    return !t || (t->count == 1 && nori__cpu_is_8bit((nori_type)t->type));
}

static bool is_f32(const nori_call *call, uint32_t i, int64_t least, int64_t most)
{
    const nori_tensor *t = nori__cpu_has(call, i) ? call->in[i] : NULL;
    return t && t->type == NORI_FLOAT && (t->count == least || t->count == most);
}

static bool qmatmul_params(const qmatmul_state *s, const nori_call *call, qmatmul_run *r)
{
    r->a_signed = call->in[0]->type == NORI_INT8;
    r->b_signed = call->in[s->linear ? 3 : 1]->type == NORI_INT8;
    if (!one_zero(call, 2, &r->a_zero) ||
        (!s->weights && !one_zero(call, s->linear ? 5 : 3, &r->b_zero))) {
        return false;
    }
    if (!s->linear) {
        return true;
    }
    r->y_signed = call->out[0]->type == NORI_INT8;
    return one_zero(call, 7, &r->y_zero) && nori__cpu_has(call, 7) &&
           call->in[7]->type == call->out[0]->type && is_f32(call, 1, 1, 1) &&
           is_f32(call, 6, 1, 1) && is_f32(call, 4, 1, r->w.n);
}

static nori_status qmatmul_kernel(const void *state, nori_call *call)
{
    const qmatmul_state *s = state;
    qmatmul_run r;
    size_t bytes;
    int threads = nori__cpu_threads(call);
    if (!qmatmul_plan(s, call, threads, &r, &bytes) || !qmatmul_params(s, call, &r)) {
        return nori__cpu_reference(call);
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    r.w.a = call->in[0]->data;
    r.w.b = call->in[s->linear ? 3 : 1]->data;
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, bytes, &scratch));
    r.a = scratch.data;
    r.factor = (float *)(void *)((char *)scratch.data + r.all_bytes);
    r.y = call->out[0]->data;
    for (size_t j = 0; s->linear && j < r.product.n; j++) {
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

const nori__kernel nori__cpu_qmatmul = {.size = sizeof(nori__kernel),
                                        .prepare = qmatmul_prepare,
                                        .workspace = qmatmul_workspace,
                                        .run = qmatmul_kernel,
                                        .release = qmatmul_release};
