/* ref_conv.c: Conv, com.microsoft FusedConv, ConvInteger.
 *
 * Float sums are kept in double and rounded once; NaN and infinity go through as arithmetic has
 * them, padding is left out of the sums (so an infinite weight over padding gives no NaN). Integer
 * sums wrap in int32. Empty batches or spaces give empty results; zero input channels give the
 * bias. */
#include "providers/reference/ref_nn.h"

#define BLOCK 512

typedef struct conv_job {
    const nori__ref_conv_work *c;
    int64_t *lists;     /* a pair of arrays of `positions` entries for each thread */
    int64_t positions;  /* kernel positions, all dimensions but the last */
} conv_job;

int64_t nori__nn_conv_places(const nori__ref_conv_work *c, int64_t row, int64_t *offsets,
                             int64_t *places)
{
    int last = c->w.n - 1;
    int64_t out[NORI__SPATIAL], k[NORI__SPATIAL] = {0}, n = 0;
    for (int d = last - 1; d >= 0; d--) {
        out[d] = row % c->out[d];
        row /= c->out[d];
    }
    for (;;) {
        int64_t offset = 0, place = 0;
        bool inside = true;
        for (int d = 0; d < last && inside; d++) {
            int64_t i = out[d] * c->w.stride[d] + k[d] * c->w.dilation[d] - c->w.begin[d];
            inside = i >= 0 && i < c->in[d];
            offset = inside ? (offset + i) * c->in[d + 1] : 0;
            place = (place + k[d]) * c->w.kernel[d + 1];
        }
        if (inside) {
            offsets[n] = offset;
            places[n++] = place;
        }
        int d = last - 1;
        while (d >= 0 && ++k[d] == c->w.kernel[d]) {
            k[d--] = 0;
        }
        if (d < 0) {
            return n;
        }
    }
}

#define T float
#define ACC double
#define NAME(x) x##_f32
#include "providers/reference/ref_conv_body.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "providers/reference/ref_conv_body.h"
#undef T
#undef ACC
#undef NAME
#define T uint32_t
#define ACC uint32_t
#define NAME(x) x##_u32
#include "providers/reference/ref_conv_body.h"
#undef T
#undef ACC
#undef NAME

nori_status nori__ref_conv_setup(nori_call *call, const nori_tensor *x, const nori_tensor *weight,
                                 const nori_tensor *y, nori__ref_conv_work *c)
{
    memset(c, 0, sizeof *c);
    if (x->rank < 3 || weight->rank != x->rank || y->rank != x->rank) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "input of rank %d and weight of rank %d, expected equal and at least 3",
                          x->rank, weight->rank);
    }
    NORI__TRY(nori__window_read(call->node, call->err, x->rank - 2, weight->dims + 2, &c->w));
    c->group = nori__attr_i(call->node, "group", 1);
    c->batch = x->dims[0];
    c->channels = x->dims[1];
    c->made = weight->dims[0];
    if (c->group < 1 || c->channels % c->group != 0 || c->made % c->group != 0 ||
        weight->dims[1] != c->channels / c->group || y->dims[0] != c->batch ||
        y->dims[1] != c->made) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "%lld channels, %lld groups and a weight of %lld x %lld do not agree",
                          (long long)c->channels, (long long)c->group, (long long)c->made,
                          (long long)weight->dims[1]);
    }
    for (int d = 0; d < c->w.n; d++) {
        c->in[d] = x->dims[d + 2];
        NORI__TRY(nori__window_out(&c->w, call->err, d, c->in[d], &c->out[d]));
        if (c->out[d] != y->dims[d + 2]) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "output axis %d has size %lld, expected %lld", d + 2,
                              (long long)y->dims[d + 2], (long long)c->out[d]);
        }
    }
    return NORI_OK;
}

/* A 1x1 kernel without stride and pads sees one long row. */
static void flatten_pointwise(nori__ref_conv_work *c)
{
    for (int d = 0; d < c->w.n; d++) {
        if (c->w.kernel[d] != 1 || c->w.stride[d] != 1 || c->w.begin[d] || c->w.end[d]) {
            return;
        }
    }
    c->in[0] = c->out[0] = nori__nn_product(c->in, 0, c->w.n);
    c->w.n = 1;
}

static nori_status conv_run(nori_call *call, nori__ref_conv_work *c, nori__body body)
{
    flatten_pointwise(c);
    for (int d = 0; d < c->w.n && c->channels == 0; d++) {
        c->w.kernel[d] = 1; /* nothing to sum, however large the (empty) weight says it is */
    }
    int last = c->w.n - 1;
    int64_t units = c->batch * c->made * nori__nn_product(c->out, 0, last) *
                    ((c->out[last] + BLOCK - 1) / BLOCK);
    if (units == 0) {
        return NORI_OK;
    }
    conv_job job = {c, NULL, nori__nn_product(c->w.kernel, 0, last)};
    size_t bytes;
    int64_t pairs;
    if (!nori__mul_dim(job.positions, 2 * (int64_t)nori__nn_threads(call), &pairs)) {
        return nori__no_memory(call->err);
    }
    job.lists = nori__nn_scratch(call, pairs, sizeof *job.lists, &bytes);
    if (!job.lists) {
        return nori__no_memory(call->err);
    }
    nori__parallel_for(call->pool, nori__nn_threads(call), units, 8, body, &job);
    nori__release(call->allocator, job.lists, bytes);
    return NORI_OK;
}

nori_status nori__ref_conv_u32(nori_call *call, nori__ref_conv_work *work)
{
    return conv_run(call, work, conv_units_u32);
}

static nori_status conv_float(nori_call *call)
{
    nori__ref_conv_work c;
    NORI__TRY(nori__nn_need(call, 0, "X", -1));
    NORI__TRY(nori__nn_need(call, 1, "W", -1));
    nori_type type = (nori_type)call->in[0]->type;
    if ((type != NORI_FLOAT && type != NORI_DOUBLE) || call->in[1]->type != type) {
        return nori__nn_type_error(call, call->in[1]->type != type ? 1 : 0);
    }
    NORI__TRY(nori__ref_conv_setup(call, call->in[0], call->in[1], call->out[0], &c));
    NORI__TRY(nori__nn_count(call, 2, "B", c.made));
    if (nori__nn_has(call, 2) && call->in[2]->type != type) {
        return nori__nn_type_error(call, 2);
    }
    c.x = call->in[0]->data;
    c.weight = call->in[1]->data;
    c.bias = nori__nn_has(call, 2) && c.made ? call->in[2]->data : NULL;
    c.y = call->out[0]->data;
    return conv_run(call, &c, type == NORI_FLOAT ? conv_units_f32 : conv_units_f64);
}

nori_status nori__ref_Conv(nori_call *call)
{
    return nori__nn_half(call, conv_float);
}

/* ---- FusedConv: a sum (input 3) and an activation follow ---- */

static nori_status fused(nori_call *call)
{
    NORI__TRY(conv_float(call));
    NORI__TRY(nori__nn_count(call, 3, "Z", call->out[0]->count));
    if (call->out[0]->type != NORI_FLOAT ||
        (nori__nn_has(call, 3) && call->in[3]->type != NORI_FLOAT)) {
        return nori__nn_type_error(call, nori__nn_has(call, 3) ? 3 : 0);
    }
    float *y = call->out[0]->data;
    for (int64_t i = 0; nori__nn_has(call, 3) && i < call->out[0]->count; i++) {
        y[i] += ((const float *)call->in[3]->data)[i];
    }
    size_t n;
    const float *params = nori__attr_floats(call->node, "activation_params", &n);
    return nori__nn_activate(call, params, params ? n : 0, y, call->out[0]->count);
}

nori_status nori__ref_ms_FusedConv(nori_call *call)
{
    return nori__nn_half(call, fused);
}
