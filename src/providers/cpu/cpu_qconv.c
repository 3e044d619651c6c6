/* cpu_qconv.c: ConvInteger and QLinearConv with constant weights, exact on every level. QLinearConv's
 * sums are scaled in float32, rounded half to even and saturated, as the reference kernel does. */
#include "providers/cpu/qconv.h"

typedef struct qconv_state {
    bool linear; /* QLinearConv */
    nori__qconv conv;
} qconv_state;

static void qconv_release(void *state, const nori_allocator *a)
{
    qconv_state *s = state;
    if (s) {
        nori__qconv_free(&s->conv, a);
        nori__release(a, s, sizeof(*s));
    }
}

static nori_status qconv_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                 size_t *state_bytes, nori_error *err)
{
    bool linear = nori__node_is(node, NORI__OP_ONNX_QLinearConv);
    const nori_tensor *w = nori__value_const(nori__cpu_value(node, linear ? 3 : 1));
    const nori__value *zero_value = nori__cpu_value(node, linear ? 5 : 3);
    const nori_tensor *zero = nori__value_const(zero_value);
    int64_t group = nori__attr_i(node, "group", 1);
    if (!w || !nori__cpu_is_8bit((nori_type)w->type) || w->rank < 3 || w->rank > 5 ||
        w->count == 0 || (zero_value && !zero) || group < 1 || w->dims[0] % group != 0 ||
        (zero && zero->count != 1 && zero->count != w->dims[0])) {
        return NORI__NOT_TAKEN;
    }
    nori__window window;
    if (nori__window_read(node, NULL, w->rank - 2, w->dims + 2, &window) != NORI_OK) {
        return NORI__NOT_TAKEN;
    }
    qconv_state *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    s->linear = linear;
    nori_status status = nori__qconv_make(w, zero, group, &window, &node->inputs[0]->type, false, a,
                                          &s->conv, err);
    if (status != NORI_OK) {
        nori__release(a, s, sizeof(*s));
        return status;
    }
    *state = s;
    *state_bytes = nori__qconv_bytes(&s->conv) + sizeof(*s);
    return NORI_OK;
}

/* Sizes; false: a form for the reference kernel. */
static bool qconv_plan(const qconv_state *s, const nori_call *call, nori__qconv_run *r,
                       size_t *bytes)
{
    uint32_t wi = s->linear ? 3 : 1;
    nori__ref_conv_work w;
    nori_call quiet = *call;
    quiet.err = NULL;
    memset(r, 0, sizeof(*r));
    r->s = &s->conv;
    if (!nori__cpu_has(call, 0) || !nori__cpu_has(call, wi) || !call->out[0] ||
        !nori__cpu_is_8bit((nori_type)call->in[0]->type) ||
        nori__ref_conv_setup(&quiet, call->in[0], call->in[wi], call->out[0], &w) != NORI_OK) {
        return false;
    }
    r->flip = call->in[0]->type == NORI_INT8 ? 128 : 0;
    r->finish.form = s->linear ? NORI__U8_BYTES : NORI__U8_SUMS;
    return nori__qconv_plan(r, &w, nori__cpu_threads(call), bytes);
}

static size_t qconv_workspace(const void *state, const nori_call *call)
{
    nori__qconv_run r;
    size_t bytes;
    return qconv_plan(state, call, &r, &bytes) ? bytes : 0;
}

static nori_status qconv_kernel(const void *state, nori_call *call)
{
    const qconv_state *s = state;
    nori__qconv_run r;
    size_t bytes;
    const nori_tensor *zero = nori__cpu_has(call, 2) ? call->in[2] : NULL;
    if (!qconv_plan(s, call, &r, &bytes) ||
        (zero && (zero->count != 1 || !nori__cpu_is_8bit((nori_type)zero->type))) ||
        (s->linear && !nori__qconv_fits(&s->conv, call))) {
        return nori__cpu_reference(call);
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, bytes, &scratch));
    r.x = call->in[0]->data;
    r.x_zero = (zero ? (int32_t)nori__tensor_get_i64(zero, 0) : 0) + r.flip;
    r.y = call->out[0]->data;
    const int32_t *bias = s->linear ? nori__qconv_linear(&r, call, scratch.data) : NULL;
    nori__qconv_go(call, &r, bias, scratch.data);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__cpu_qconv = {.size = sizeof(nori__kernel),
                                      .prepare = qconv_prepare,
                                      .workspace = qconv_workspace,
                                      .run = qconv_kernel,
                                      .release = qconv_release};
