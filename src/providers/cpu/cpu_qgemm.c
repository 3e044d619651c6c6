/* cpu_qgemm.c: com.microsoft QGemm of rows by a constant matrix that is not transposed: the sums of
 * MatMulInteger, then bias, scale and zero point, as the reference kernel does it. The rewrite of
 * quantized graphs turns transposed weights (integers_products.c). */
#include "providers/cpu/integers.h"
#include "providers/cpu/qscale.h"

/* Inputs: A, a_scale, a_zero, B, b_scale, b_zero, C, y_scale, y_zero. */
typedef struct qgemm_state {
    nori__node product; /* MatMulInteger of A and B */
    nori__value *inputs[4];
    void *inner;
    size_t inner_bytes;
} qgemm_state;

static void qgemm_release(void *state, const nori_allocator *a)
{
    qgemm_state *s = state;
    if (s) {
        if (nori__cpu_qmatmul.release) {
            nori__cpu_qmatmul.release(s->inner, a);
        }
        nori__release(a, s, sizeof(*s));
    }
}

static nori_status qgemm_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                 size_t *state_bytes, nori_error *err)
{
    const nori_tensor *b = nori__value_const(nori__cpu_value(node, 3));
    if (!b || b->rank != 2 || node->input_count < 9 || nori__attr_i(node, "transA", 0) != 0 ||
        nori__attr_i(node, "transB", 0) != 0) {
        return NORI__NOT_TAKEN;
    }
    qgemm_state *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    static const uint32_t from[4] = {0, 3, 2, 5};
    for (int i = 0; i < 4; i++) {
        s->inputs[i] = node->inputs[from[i]];
    }
    s->product = *node;
    s->product.op_type = "MatMulInteger";
    s->product.domain = "";
    s->product.op = nori__op_find("", s->product.op_type);
    s->product.version = 10;
    s->product.inputs = s->inputs;
    s->product.input_count = 4;
    nori_status status =
        nori__cpu_qmatmul.prepare(&s->product, a, &s->inner, &s->inner_bytes, err);
    if (status != NORI_OK) {
        nori__release(a, s, sizeof(*s));
        return status;
    }
    *state = s;
    *state_bytes = s->inner_bytes + sizeof(*s);
    return NORI_OK;
}

/* ---- one run ---- */

typedef struct qgemm_run {
    nori_call call;              /* of the product */
    const nori_tensor *in[4];
    nori_tensor sums, *out;
    size_t sums_bytes, factor_bytes;
    size_t columns;
} qgemm_run;

/* Sizes; false: a form for the reference kernel. */
static bool qgemm_plan(const qgemm_state *s, const nori_call *call, qgemm_run *r)
{
    static const uint32_t from[4] = {0, 3, 2, 5};
    const nori_tensor *y = call->out[0];
    if (!y || !nori__cpu_has(call, 0) || !nori__cpu_has(call, 3) ||
        !nori__cpu_is_8bit((nori_type)call->in[0]->type) || call->in[0]->rank != 2 ||
        call->in[3]->rank != 2 || y->rank != 2 || call->in[0]->dims[1] != call->in[3]->dims[0] ||
        !nori__cpu_is_8bit((nori_type)y->type)) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        r->in[i] = nori__cpu_has(call, from[i]) ? call->in[from[i]] : NULL;
    }
    r->columns = (size_t)y->dims[1];
    r->sums_bytes = nori__cpu_round((size_t)y->count * sizeof(int32_t));
    r->factor_bytes = nori__cpu_round(r->columns * sizeof(float));
    nori__tensor_init(&r->sums, NORI_INT32, 2, y->dims, NULL);
    r->out = &r->sums;
    r->call = *call;
    r->call.node = &s->product;
    r->call.in = r->in;
    r->call.n_in = 4;
    r->call.out = &r->out;
    r->call.n_out = 1;
    return true;
}

static size_t qgemm_workspace(const void *state, const nori_call *call)
{
    const qgemm_state *s = state;
    qgemm_run r;
    if (!qgemm_plan(s, call, &r)) {
        return 0;
    }
    return r.sums_bytes + r.factor_bytes + nori__cpu_qmatmul.workspace(s->inner, &r.call);
}

static nori_status run(const void *state, nori_call *call)
{
    const qgemm_state *s = state;
    const nori_tensor *bs = nori__cpu_has(call, 4) ? call->in[4] : NULL;
    const nori_tensor *c = nori__cpu_has(call, 6) ? call->in[6] : NULL;
    nori__qscale a, y;
    qgemm_run r;
    if (!qgemm_plan(s, call, &r) || !bs || bs->type != NORI_FLOAT ||
        (bs->count != 1 && (size_t)bs->count != r.columns) ||
        (c && (c->type != NORI_INT32 || (size_t)c->count != r.columns ||
               c->dims[c->rank - 1] != c->count)) ||
        !nori__cpu_has(call, 7) || !nori__cpu_has(call, 8) ||
        !nori__qscale_read(call, 1, 2, call->in[0]->type, &a) ||
        !nori__qscale_read(call, 7, 8, call->out[0]->type, &y)) {
        return nori__cpu_reference(call);
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, qgemm_workspace(state, call), &scratch));
    int32_t *sums = scratch.data;
    float *factor = (float *)(void *)((char *)scratch.data + r.sums_bytes);
    nori__tensor_init(&r.sums, NORI_INT32, 2, call->out[0]->dims, sums);
    r.call.work = (char *)scratch.data + r.sums_bytes + r.factor_bytes;
    r.call.work_size = scratch.bytes - r.sums_bytes - r.factor_bytes;
    nori_status status = nori__cpu_qmatmul.run(s->inner, &r.call);
    float alpha = nori__attr_f(call->node, "alpha", 1);
    for (size_t j = 0; j < r.columns; j++) {
        float b = ((const float *)bs->data)[bs->count == 1 ? 0 : j];
        factor[j] = alpha * a.scale * b / y.scale;
    }
    for (int64_t i = 0; i < call->out[0]->dims[0] && status == NORI_OK; i++) {
        size_t at = (size_t)i * r.columns;
        nori__kernels_get()->requantize_each(r.columns, sums + at, c ? c->data : NULL, factor,
                                             y.zero, call->out[0]->type == NORI_INT8,
                                             (uint8_t *)call->out[0]->data + at);
    }
    nori__cpu_give(call, &scratch);
    return status;
}

const nori__kernel nori__cpu_qgemm = {.size = sizeof(nori__kernel),
                                      .prepare = qgemm_prepare,
                                      .workspace = qgemm_workspace,
                                      .run = run,
                                      .release = qgemm_release};
