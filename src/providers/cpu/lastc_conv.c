/* lastc_conv.c: LastConv, and ToLast and ToPlanes at the borders. */
#include "providers/cpu/lastc.h"
#include "providers/cpu/qconv.h"

/* ---- borders ---- */

/* Pixels a unit. */
#define SPAN 512

typedef struct move_job {
    const uint8_t *x;
    uint8_t *y, flip;
    size_t channels, pixels, spans;
} move_job;

static void from_units(void *user, int64_t begin, int64_t end, int thread)
{
    const move_job *j = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t image = (size_t)u / j->spans * j->channels * j->pixels;
        size_t p = (size_t)u % j->spans * SPAN, n = j->pixels - p < SPAN ? j->pixels - p : SPAN;
        nori__kernels_get()->x8_transpose(j->channels, n, j->x + image + p, j->pixels,
                                          j->y + image + p * j->channels, j->channels, j->flip);
    }
}

static void to_units(void *user, int64_t begin, int64_t end, int thread)
{
    const move_job *j = user;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t image = (size_t)u / j->spans * j->channels * j->pixels;
        size_t p = (size_t)u % j->spans * SPAN, n = j->pixels - p < SPAN ? j->pixels - p : SPAN;
        nori__kernels_get()->x8_transpose(n, j->channels, j->x + image + p * j->channels,
                                          j->channels, j->y + image + p, j->pixels, j->flip);
    }
}

static nori_status move_run(nori_call *call, bool from)
{
    const nori_tensor *x = call->in[0], *y = call->out[0], *plain = from ? x : y;
    if (x->count == 0) {
        return NORI_OK;
    }
    move_job j = {.x = x->data, .y = y->data, .flip = nori__lastc_flip(plain->type),
                  .channels = (size_t)plain->dims[1],
                  .pixels = (size_t)(plain->dims[2] * plain->dims[3])};
    j.spans = (j.pixels + SPAN - 1) / SPAN;
    nori__parallel_for(call->pool, nori__cpu_threads(call), plain->dims[0] * (int64_t)j.spans,
                       1 + (int64_t)(16384 / (j.channels * SPAN)), from ? from_units : to_units,
                       &j);
    return NORI_OK;
}

static nori_status from_run(const void *state, nori_call *call)
{
    (void)state;
    return move_run(call, true);
}

static nori_status to_run(const void *state, nori_call *call)
{
    (void)state;
    return move_run(call, false);
}

const nori__kernel nori__lastc_from = {.size = sizeof(nori__kernel), .run = from_run};
const nori__kernel nori__lastc_to = {.size = sizeof(nori__kernel), .run = to_run};

/* ---- convolution ---- */

static void conv_release(void *state, const nori_allocator *a)
{
    nori__qconv *s = state;
    if (s) {
        nori__qconv_free(s, a);
        nori__release(a, s, sizeof(*s));
    }
}

static nori_status conv_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                size_t *state_bytes, nori_error *err)
{
    const nori_tensor *w = nori__value_const(nori__cpu_value(node, 3));
    const nori_tensor *zero = nori__value_const(nori__cpu_value(node, 5));
    nori__window window;
    NORI__TRY(nori__window_read(node, err, 2, w->dims + 2, &window));
    nori__qconv *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    nori_status status = nori__qconv_make(w, zero, nori__attr_i(node, "group", 1), &window,
                                          &node->inputs[0]->type, true, a, s, err);
    if (status != NORI_OK) {
        nori__release(a, s, sizeof(*s));
        return status;
    }
    *state = s;
    *state_bytes = nori__qconv_bytes(s) + sizeof(*s);
    return NORI_OK;
}

static void plain_shape(const nori_tensor *t, nori_tensor *out)
{
    int64_t dims[4] = {t->dims[0], t->dims[3], t->dims[1], t->dims[2]};
    nori__tensor_init(out, NORI_UINT8, 4, dims, t->data);
}

static nori_status conv_plan(const nori__qconv *s, nori_call *call, nori__qconv_run *r,
                             size_t *bytes)
{
    nori_tensor x, y;
    nori__ref_conv_work w;
    memset(r, 0, sizeof(*r));
    plain_shape(call->in[0], &x);
    plain_shape(call->out[0], &y);
    NORI__TRY(nori__ref_conv_setup(call, &x, call->in[3], &y, &w));
    r->s = s;
    r->x_last = r->y_last = true;
    r->finish.form = NORI__U8_BYTES;
    return nori__qconv_plan(r, &w, nori__cpu_threads(call), bytes) && nori__qconv_fits(s, call)
               ? NORI_OK
               : nori__fail(call->err, NORI_ERROR_INTERNAL,
                            "this convolution should have stayed in planes");
}

static size_t conv_workspace(const void *state, const nori_call *call)
{
    nori__qconv_run r;
    nori_call quiet = *call;
    size_t bytes;
    quiet.err = NULL;
    return conv_plan(state, &quiet, &r, &bytes) == NORI_OK ? bytes : 0;
}

static nori_status conv_run(const void *state, nori_call *call)
{
    nori__qconv_run r;
    size_t bytes;
    NORI__TRY(conv_plan(state, call, &r, &bytes));
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, bytes, &scratch));
    const nori_tensor *zero = nori__cpu_has(call, 2) ? call->in[2] : NULL;
    r.x = call->in[0]->data;
    r.x_zero = zero ? (int32_t)nori__tensor_get_i64(zero, 0) + nori__lastc_flip(zero->type) : 0;
    r.y = call->out[0]->data;
    nori__qconv_go(call, &r, nori__qconv_linear(&r, call, scratch.data), scratch.data);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__lastc_conv = {.size = sizeof(nori__kernel),
                                       .prepare = conv_prepare,
                                       .workspace = conv_workspace,
                                       .run = conv_run,
                                       .release = conv_release};
