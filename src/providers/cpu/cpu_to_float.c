/* cpu_to_float.c: ConvToFloat and MatMulToFloat (integers.h): the sums of the integer product, made
 * where the result goes, become floats there: scaled, moved by a bias, through an activation. */
#include "providers/cpu/integers.h"

#define GRAIN_ELEMENTS 16384

typedef struct to_float_state {
    nori__node product; /* the integer operator in the node's place */
    const nori__kernel *kernel; /* NULL: its reference kernel */
    void *inner;
    size_t inner_bytes;
    bool conv;
    nori__activation act;
} to_float_state;

static void to_float_release(void *state, const nori_allocator *a)
{
    to_float_state *s = state;
    if (s) {
        if (s->kernel && s->kernel->release) {
            s->kernel->release(s->inner, a);
        }
        nori__release(a, s, sizeof(*s));
    }
}

static nori_status to_float_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                    size_t *state_bytes, nori_error *err)
{
    to_float_state *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    s->conv = nori__integer_is(node, NORI__INTEGER_CONV);
    s->product = *node;
    s->product.op_type = s->conv ? "ConvInteger" : "MatMulInteger";
    s->product.domain = "";
    s->product.op = nori__op_find("", s->product.op_type);
    s->product.version = 10;
    s->product.input_count = node->input_count < 4 ? node->input_count : 4;
    s->kernel = s->conv ? &nori__cpu_qconv : &nori__cpu_qmatmul;
    nori_status status = nori__activation_read(node, &s->act) ? NORI_OK : NORI_ERROR_INTERNAL;
    if (status == NORI_OK && s->kernel->prepare) {
        status = s->kernel->prepare(&s->product, a, &s->inner, &s->inner_bytes, err);
    }
    if (status == NORI__NOT_TAKEN) {
        s->kernel = NULL;
        status = NORI_OK;
    }
    if (status != NORI_OK) {
        nori__release(a, s, sizeof(*s));
        return status;
    }
    *state = s;
    *state_bytes = s->inner_bytes + sizeof(*s);
    return NORI_OK;
}

/* ---- one run ---- */

typedef struct to_float_run {
    const to_float_state *s;
    float *y;
    const float *scale, *bias;
    size_t scale_step, bias_step;
    size_t n, places; /* elements of a line; places along which scales differ */
} to_float_run;

static void to_float_units(void *user, int64_t begin, int64_t end, int thread)
{
    const to_float_run *r = user;
    const nori__kernels *kern = nori__kernels_get();
    const nori__activation *act = &r->s->act;
    const float limits[2] = {act->low, act->high};
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        float *y = r->y + (size_t)u * r->n;
        size_t c = r->s->conv ? (size_t)u % r->places : 0; /* a line is a channel's plane */
        kern->f32_from_sums(r->n, (const int32_t *)(const void *)y, r->scale + c * r->scale_step,
                            r->s->conv ? 0 : r->scale_step, r->bias ? r->bias + c * r->bias_step : NULL,
                            r->s->conv ? 0 : r->bias_step, y);
        if (act->clamp) {
            kern->f32_unary[NORI__U_CLAMP](r->n, y, y, limits);
        } else if (act->apply) {
            kern->f32_unary[act->function](r->n, y, y, act->p);
        }
    }
}

/* What call would be for the integer operator, its sums over the result. */
static void sums_call(const to_float_state *s, const nori_call *call, nori_tensor *sums,
                      nori_tensor **out, nori_call *inner)
{
    nori__tensor_init(sums, NORI_INT32, call->out[0]->rank, call->out[0]->dims,
                      call->out[0]->data);
    *out = sums;
    *inner = *call;
    inner->node = &s->product;
    inner->out = out;
    inner->n_out = 1;
    inner->n_in = call->n_in < 4 ? call->n_in : 4;
}

static size_t to_float_workspace(const void *state, const nori_call *call)
{
    const to_float_state *s = state;
    nori_tensor sums, *out;
    nori_call inner;
    if (!call->out[0]) {
        return 0;
    }
    sums_call(s, call, &sums, &out, &inner);
    return s->kernel && s->kernel->workspace ? s->kernel->workspace(s->inner, &inner) : 0;
}

static nori_status run(const void *state, nori_call *call)
{
    const to_float_state *s = state;
    nori_tensor sums, *out, *y = call->out[0];
    nori_call inner;
    const nori_tensor *scale = call->in[4], *bias = nori__cpu_has(call, 5) ? call->in[5] : NULL;
    sums_call(s, call, &sums, &out, &inner);
    int64_t places = y->rank > 1 ? y->dims[s->conv ? 1 : y->rank - 1] : 1;
    if (scale->type != NORI_FLOAT || (scale->count != 1 && scale->count != places) ||
        (bias && (bias->type != NORI_FLOAT || bias->count != places))) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "scale has %lld elements, expected 1 or %lld",
                          (long long)scale->count, (long long)places);
    }
    NORI__TRY(s->kernel ? s->kernel->run(s->inner, &inner) : nori__cpu_reference(&inner));
    if (y->count == 0) {
        return NORI_OK;
    }
    int64_t lines = s->conv ? y->dims[0] * places : y->count / places;
    to_float_run r = {.s = s, .y = y->data, .scale = scale->data, .bias = bias ? bias->data : NULL,
                      .scale_step = scale->count != 1, .bias_step = 1,
                      .n = (size_t)(y->count / lines), .places = (size_t)places};
    nori__parallel_for(call->pool, nori__cpu_threads(call), lines,
                       (int64_t)(1 + GRAIN_ELEMENTS / r.n), to_float_units, &r);
    return NORI_OK;
}

const nori__kernel nori__cpu_to_float = {.size = sizeof(nori__kernel),
                                         .prepare = to_float_prepare,
                                         .workspace = to_float_workspace,
                                         .run = run,
                                         .release = to_float_release};
