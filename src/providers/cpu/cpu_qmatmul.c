/* cpu_qmatmul.c: MatMulInteger and QLinearMatMul, exact on every level.
 *
 * A constant right operand is packed once, its zero points (one, or one a column) taken off; rows of
 * the left one are lines of bytes (qlines.h). Two computed operands: qmatmul_both.c. Other forms go to
 * the reference kernel. */
#include "providers/cpu/qlines.h"
#include "providers/cpu/qmatmul.h"

typedef struct qmatmul_state {
    bool linear, packed;
    size_t n, k;
    nori__qpack w;
} qmatmul_state;

static void qmatmul_release(void *state, const nori_allocator *a)
{
    qmatmul_state *s = state;
    if (s) {
        nori__qpack_free(&s->w, a);
        nori__release(a, s, sizeof(*s));
    }
}

static nori_status pack(qmatmul_state *s, const nori_tensor *b, const nori_tensor *zero,
                        const nori_allocator *a, nori_error *err)
{
    size_t bytes, *from;
    s->k = (size_t)b->dims[0];
    s->n = (size_t)b->dims[1];
    from = nori__mul_size(s->k, sizeof(*from), &bytes) ? nori__alloc(a, bytes) : NULL;
    if (!from) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < s->k; i++) {
        from[i] = i * s->n;
    }
    nori__qweights weights = {.data = b, .zero = zero, .groups = 1, .made = s->n, .terms = 1,
                              .bytes = s->k, .step = 1, .from = from};
    nori_status status = nori__qpack_make(&weights, a, &s->w, err);
    nori__release(a, from, bytes);
    s->packed = status == NORI_OK;
    return status;
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
        nori_status status = pack(s, b, zero, a, err);
        if (status != NORI_OK) {
            nori__release(a, s, sizeof(*s));
            return status;
        }
    }
    *state = s;
    *state_bytes = nori__qpack_bytes(&s->w) + sizeof(*s);
    return NORI_OK;
}

bool nori__qmatmul_zero(const nori_call *call, uint32_t i, int32_t *zero)
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

bool nori__qmatmul_linear(const nori_call *call, int64_t n)
{
    int32_t zero;
    return nori__qmatmul_zero(call, 7, &zero) && nori__cpu_has(call, 7) &&
           call->in[7]->type == call->out[0]->type && is_f32(call, 1, 1, 1) &&
           is_f32(call, 6, 1, 1) && is_f32(call, 4, 1, n);
}

/* ---- one run with packed weights ---- */

typedef struct qmatmul_run {
    const qmatmul_state *s;
    size_t rows, row;       /* rows of A; bytes of one, a whole number of quads */
    const uint8_t *a;
    uint8_t flip;           /* makes A unsigned */
    bool copied;            /* A is copied: signs, or rows of odd lengths */
    uint8_t *copy;
    size_t copy_bytes, array_bytes;
} qmatmul_run;

static bool qmatmul_plan(const qmatmul_state *s, const nori_call *call, qmatmul_run *r,
                         size_t *bytes)
{
    uint32_t bi = s->linear ? 3 : 1;
    nori__ref_product_work w;
    nori_call quiet = *call;
    quiet.err = NULL;
    memset(r, 0, sizeof(*r));
    r->s = s;
    if (!nori__cpu_has(call, 0) || !nori__cpu_has(call, bi) || !call->out[0] ||
        !nori__cpu_is_8bit((nori_type)call->in[0]->type) ||
        !nori__cpu_is_8bit((nori_type)call->in[bi]->type) ||
        nori__ref_product_setup(&quiet, call->in[0], call->in[bi], call->out[0], &w) != NORI_OK ||
        (size_t)w.n != s->n || (size_t)w.k != s->k) {
        return false;
    }
    r->rows = (size_t)call->out[0]->count / s->n;
    r->row = s->w.quads * 4;
    r->flip = call->in[0]->type == NORI_INT8 ? 128 : 0;
    r->copied = r->flip || r->row != s->k;
    if (r->copied && (!nori__mul_size(r->rows, r->row, &r->copy_bytes) ||
                      r->copy_bytes > SIZE_MAX / 4)) {
        return false;
    }
    r->copy_bytes = nori__cpu_round(r->copy_bytes);
    r->array_bytes = nori__cpu_round(s->w.wide * sizeof(float));
    *bytes = r->copy_bytes + 2 * r->array_bytes;
    return true;
}

static size_t qmatmul_workspace(const void *state, const nori_call *call)
{
    const qmatmul_state *s = state;
    qmatmul_run r;
    size_t bytes;
    if (!s->packed) {
        return nori__qmatmul_both_bytes(s->linear, call);
    }
    return qmatmul_plan(s, call, &r, &bytes) ? bytes : 0;
}

static void copy_units(void *user, int64_t begin, int64_t end, int thread)
{
    const qmatmul_run *r = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        const uint8_t *from = r->a + (size_t)u * r->s->k;
        uint8_t *to = r->copy + (size_t)u * r->row;
        for (size_t i = 0; i < r->s->k; i++) {
            to[i] = from[i] ^ r->flip;
        }
        memset(to + r->s->k, 0, r->row - r->s->k);
    }
}

static void scales(const qmatmul_state *s, const nori_call *call, float *scale)
{
    const float *b = call->in[4]->data;
    float a = *(const float *)call->in[1]->data, y = *(const float *)call->in[6]->data;
    memset(scale, 0, s->w.wide * sizeof(*scale));
    for (size_t j = 0; j < s->n; j++) {
        scale[j] = a * b[call->in[4]->count == 1 ? 0 : j] / y;
    }
}

static nori_status qmatmul_kernel(const void *state, nori_call *call)
{
    const qmatmul_state *s = state;
    qmatmul_run r;
    size_t bytes;
    int32_t zero = 0;
    if (!s->packed) {
        return nori__qmatmul_both(s->linear, call);
    }
    if (!qmatmul_plan(s, call, &r, &bytes) || !nori__qmatmul_zero(call, 2, &zero) ||
        (s->linear && !nori__qmatmul_linear(call, (int64_t)s->n))) {
        return nori__cpu_reference(call);
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, bytes, &scratch));
    char *work = scratch.data;
    int32_t *start = (int32_t *)(void *)work;
    float *scale = (float *)(void *)(work + r.array_bytes);
    r.a = call->in[0]->data;
    r.copy = (uint8_t *)work + 2 * r.array_bytes;
    if (r.copied) {
        nori__parallel_for(call->pool, nori__cpu_threads(call), (int64_t)r.rows,
                           (int64_t)(16384 / r.row + 1), copy_units, &r);
    }
    int64_t none = 0;
    nori__qlines q = {.w = &s->w, .offset = &none, .x = r.copied ? r.copy : r.a, .images = 1,
                      .size = {1, 1, r.rows}, .step = {0, 0, r.row}, .y = call->out[0]->data,
                      .ldy = s->n};
    nori__qlines_start(&s->w, NULL, zero + r.flip, start);
    q.finish.form = NORI__U8_SUMS;
    q.finish.start = start;
    if (s->linear) {
        scales(s, call, scale);
        q.finish.form = NORI__U8_BYTES;
        q.finish.scale = scale;
        nori__qlines_limits(&q.finish, (int32_t)nori__tensor_get_i64(call->in[7], 0),
                            call->out[0]->type == NORI_INT8, false);
    }
    nori__qlines_run(call, &q);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__cpu_qmatmul = {.size = sizeof(nori__kernel),
                                        .prepare = qmatmul_prepare,
                                        .workspace = qmatmul_workspace,
                                        .run = qmatmul_kernel,
                                        .release = qmatmul_release};
