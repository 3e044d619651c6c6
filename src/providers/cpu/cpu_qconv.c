/* cpu_qconv.c: ConvInteger and QLinearConv with constant weights, exact on every level.
 *
 * Zero points are taken off first (9 bits, kept as int16), so that pads are zeros. The input is
 * copied once as int16 with its pads; panels of pairs are gathered from it. QLinearConv's sums are
 * scaled in float32, rounded half to even and saturated, as the reference kernel does. */
#include "providers/cpu/cpu.h"
#include "providers/cpu/patches.h"

typedef struct qconv_state {
    bool linear;      /* QLinearConv */
    size_t made, per_group, group, taps;
    size_t panels;    /* int16 of a group's weights */
    int16_t *weights; /* panels a group; depthwise: as they are */
    size_t bytes;
    bool depthwise;
} qconv_state;

static void qconv_release(void *state, const nori_allocator *a)
{
    qconv_state *s = state;
    if (s) {
        nori__release(a, s->weights, s->bytes);
        nori__release(a, s, sizeof(*s));
    }
}

static int32_t weight_at(const nori_tensor *w, size_t i)
{
    return w->type == NORI_INT8 ? ((const int8_t *)w->data)[i] : ((const uint8_t *)w->data)[i];
}

/* Weights minus their zero points, which may be one a channel. */
static void pack_weights(qconv_state *s, const nori_tensor *w, const nori_tensor *zero)
{
    size_t mr = nori__kernels_get()->s16_mr, m = s->made / s->group, k = s->per_group * s->taps;
    memset(s->weights, 0, s->bytes);
    for (size_t o = 0; o < s->made; o++) {
        int32_t z = zero ? (int32_t)nori__tensor_get_i64(zero, zero->count == 1 ? 0 : (int64_t)o) : 0;
        size_t row = o % m, panel = row / mr * mr * ((k + 1) / 2) * 2;
        int16_t *to = s->weights + o / m * s->panels + panel + row % mr * 2;
        for (size_t p = 0; p < k; p++) {
            int16_t v = (int16_t)(weight_at(w, o * k + p) - z);
            if (s->depthwise) {
                s->weights[o * k + p] = v;
            } else {
                to[p / 2 * mr * 2 + p % 2] = v;
            }
        }
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
    qconv_state *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    s->linear = linear;
    s->made = (size_t)w->dims[0];
    s->per_group = (size_t)w->dims[1];
    s->group = (size_t)group;
    s->taps = (size_t)w->count / s->made / s->per_group;
    s->depthwise = s->per_group == 1 && group > 1 && w->rank <= 4;
    size_t panels = nori__spacked_a(s->made / s->group, s->per_group * s->taps);
    s->panels = panels / sizeof(int16_t);
    s->bytes = s->depthwise ? (size_t)w->count * sizeof(int16_t) : panels;
    if (panels == 0 || (!s->depthwise && !nori__mul_size(panels, s->group, &s->bytes)) ||
        !(s->weights = nori__alloc(a, s->bytes))) {
        nori__release(a, s, sizeof(*s));
        return nori__no_memory(err);
    }
    pack_weights(s, w, zero);
    *state = s;
    *state_bytes = s->bytes + sizeof(*s);
    return NORI_OK;
}

/* ---- one run ---- */

typedef struct qconv_run {
    const qconv_state *s;
    nori__patches g;
    size_t batch, channels;
    const uint8_t *x;
    bool x_signed, y_signed;
    int32_t x_zero, y_zero;
    int16_t *image;
    int64_t *offset;
    void *y;                   /* int32, or 8-bit */
    const int32_t *bias;
    const nori_tensor *w_scale;
    float x_scale, y_scale;
    nori__sproduct product;
    char *rows;                /* depthwise: sums of a row a thread */
    size_t offset_bytes, image_bytes, scratch_bytes;
} qconv_run;

static float scale_of(const qconv_run *r, size_t channel)
{
    const float *w = r->w_scale->data;
    return r->x_scale * w[r->w_scale->count == 1 ? 0 : channel] / r->y_scale;
}

static void qconv_part(const nori__sproduct *p, size_t index, const int16_t **a, const int16_t **b,
                       int32_t **c)
{
    const qconv_run *r = p->user;
    *a = r->s->weights + index * r->s->panels;
    *b = NULL;
    *c = r->s->linear ? NULL : (int32_t *)r->y + index * p->m * p->n;
}

static void qconv_pack(const nori__sproduct *p, size_t index, size_t p0, size_t pc, size_t panel,
                       int16_t *out)
{
    const qconv_run *r = p->user;
    const nori__kernels *kern = nori__kernels_get();
    size_t nr = kern->s16_nr, j = panel * nr, count = p->n - j < nr ? p->n - j : nr;
    size_t from[NORI__NR_MAX];
    int64_t where[NORI__NR_MAX];
    size_t pieces = nori__patches_pieces(&r->g, j, count, from, where);
    kern->s16_patches(pc, r->offset + 2 * p0, r->image + index * r->s->per_group * r->g.padded_size,
                      pieces, from, where, r->g.stride[2], out);
}

static void qconv_finish(const nori__sproduct *p, size_t index, size_t row, size_t col, size_t n,
                         const int32_t *sums)
{
    const qconv_run *r = p->user;
    size_t channel = index * p->m + row;
    nori__kernels_get()->requantize(n, sums, r->bias ? r->bias[channel] : 0, scale_of(r, channel),
                                    r->y_zero, r->y_signed,
                                    (uint8_t *)r->y + channel * p->n + col);
}

static void widen_units(void *user, int64_t begin, int64_t end, int thread)
{
    const qconv_run *r = user;
    const nori__patches *g = &r->g;
    const nori__kernels *kern = nori__kernels_get();
    (void)thread;
    for (int64_t c = begin; c < end; c++) {
        const uint8_t *x = r->x + (size_t)c * g->in_size;
        int16_t *out = r->image + (size_t)c * g->padded_size;
        if (!g->copied) {
            kern->s16_widen(g->in_size, x, r->x_signed, r->x_zero, out);
            continue;
        }
        memset(out, 0, g->padded_size * sizeof(*out));
        for (size_t d = 0; d < g->in[0]; d++) {
            for (size_t h = 0; h < g->in[1]; h++, x += g->in[2]) {
                kern->s16_widen(g->in[2], x, r->x_signed, r->x_zero,
                                out + ((d + g->pad[0]) * g->padded[1] + h + g->pad[1]) *
                                          g->padded[2] + g->pad[2]);
            }
        }
    }
}

static void depthwise_units(void *user, int64_t begin, int64_t end, int thread)
{
    const qconv_run *r = user;
    const qconv_state *s = r->s;
    const nori__patches *g = &r->g;
    const nori__kernels *kern = nori__kernels_get();
    size_t width = g->out[2], each = s->made / s->group;
    int32_t *sums = (int32_t *)(void *)(r->rows +
                                        (size_t)thread * nori__cpu_round(width * sizeof(*sums)));
    for (int64_t u = begin; u < end; u++) {
        size_t m = (size_t)u;
        const int16_t *image = r->image + m / each * g->padded_size;
        for (size_t h = 0; h < g->out[1]; h++) {
            size_t at = (m * g->out[1] + h) * width;
            int32_t *to = s->linear ? sums : (int32_t *)r->y + at;
            kern->s16_depthwise(width, s->taps, r->offset,
                                image + h * g->stride[1] * g->padded[2], g->stride[2],
                                s->weights + m * s->taps, to);
            if (s->linear) {
                kern->requantize(width, sums, r->bias ? r->bias[m] : 0, scale_of(r, m), r->y_zero,
                                 r->y_signed, (uint8_t *)r->y + at);
            }
        }
    }
}

/* Sizes; false: a form for the reference kernel. */
static bool qconv_plan(const qconv_state *s, const nori_call *call, int threads, qconv_run *r,
                       size_t *bytes)
{
    uint32_t wi = s->linear ? 3 : 1;
    nori__ref_conv_work w;
    nori_call quiet = *call;
    quiet.err = NULL;
    memset(r, 0, sizeof(*r));
    r->s = s;
    if (!nori__cpu_has(call, 0) || !nori__cpu_has(call, wi) || !call->out[0] ||
        !nori__cpu_is_8bit((nori_type)call->in[0]->type) ||
        nori__ref_conv_setup(&quiet, call->in[0], call->in[wi], call->out[0], &w) != NORI_OK ||
        (size_t)w.made != s->made || (size_t)w.group != s->group ||
        !nori__patches_set(&r->g, &w)) {
        return false;
    }
    r->batch = (size_t)w.batch;
    r->channels = (size_t)w.channels;
    size_t k = s->per_group * s->taps;
    r->product = (nori__sproduct){.count = s->group, .m = s->made / s->group, .n = r->g.out_size,
                                  .k = k, .part = qconv_part, .pack = qconv_pack,
                                  .finish = s->linear ? qconv_finish : NULL, .user = r};
    r->offset_bytes = nori__cpu_round((k + 1) * sizeof(int64_t));
    r->image_bytes = nori__cpu_round((r->channels * r->g.padded_size +
                                      NORI__NR_MAX * r->g.stride[2]) * sizeof(int16_t));
    r->scratch_bytes = s->depthwise
                           ? nori__cpu_round(r->g.out[2] * sizeof(int32_t)) * (size_t)threads
                           : nori__sproduct_bytes(&r->product, threads);
    *bytes = r->offset_bytes + r->image_bytes + r->scratch_bytes;
    return true;
}

static size_t qconv_workspace(const void *state, const nori_call *call)
{
    qconv_run r;
    size_t bytes;
    return qconv_plan(state, call, nori__cpu_threads(call), &r, &bytes) ? bytes : 0;
}

static bool one_float(const nori_call *call, uint32_t i, float *v)
{
    if (!nori__cpu_has(call, i) || call->in[i]->type != NORI_FLOAT || call->in[i]->count != 1) {
        return false;
    }
    *v = *(const float *)call->in[i]->data;
    return true;
}

/* Scales, zero points, bias; false: for the reference kernel, which has the messages. */
static bool qconv_params(const qconv_state *s, const nori_call *call, qconv_run *r)
{
    const nori_tensor *zero = nori__cpu_has(call, 2) ? call->in[2] : NULL;
    r->x_signed = call->in[0]->type == NORI_INT8;
    if (zero && (zero->count != 1 || !nori__cpu_is_8bit((nori_type)zero->type))) {
        return false;
    }
    r->x_zero = zero ? (int32_t)nori__tensor_get_i64(zero, 0) : 0;
    if (!s->linear) {
        return true;
    }
    const nori_tensor *y_zero = nori__cpu_has(call, 7) ? call->in[7] : NULL;
    r->w_scale = nori__cpu_has(call, 4) ? call->in[4] : NULL;
    if (!one_float(call, 1, &r->x_scale) || !one_float(call, 6, &r->y_scale) || !y_zero ||
        y_zero->count != 1 || y_zero->type != call->out[0]->type ||
        !nori__cpu_is_8bit((nori_type)y_zero->type) || !r->w_scale ||
        r->w_scale->type != NORI_FLOAT ||
        (r->w_scale->count != 1 && (size_t)r->w_scale->count != s->made)) {
        return false;
    }
    r->y_zero = (int32_t)nori__tensor_get_i64(y_zero, 0);
    r->y_signed = y_zero->type == NORI_INT8;
    if (nori__cpu_has(call, 8)) {
        r->bias = call->in[8]->data;
        return call->in[8]->type == NORI_INT32 && (size_t)call->in[8]->count == s->made;
    }
    return true;
}

static nori_status qconv_kernel(const void *state, nori_call *call)
{
    const qconv_state *s = state;
    qconv_run r;
    size_t bytes;
    int threads = nori__cpu_threads(call);
    if (!qconv_plan(s, call, threads, &r, &bytes) || !qconv_params(s, call, &r)) {
        return nori__cpu_reference(call);
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, bytes, &scratch));
    char *work = scratch.data;
    size_t k = s->per_group * s->taps;
    r.offset = (int64_t *)(void *)work;
    r.image = (int16_t *)(void *)(work + r.offset_bytes);
    r.rows = work + r.offset_bytes + r.image_bytes;
    nori__patches_offsets(&r.g, s->per_group, r.offset);
    r.offset[k] = r.offset[k - 1]; /* an odd k's last pair; its weight is zero */
    size_t y_step = s->made * r.g.out_size * (s->linear ? 1 : sizeof(int32_t));
    for (size_t b = 0; b < r.batch; b++) {
        r.x = (const uint8_t *)call->in[0]->data + b * r.channels * r.g.in_size;
        r.y = (char *)call->out[0]->data + b * y_step;
        nori__parallel_for(call->pool, threads, (int64_t)r.channels, 4, widen_units, &r);
        if (s->depthwise) {
            nori__parallel_for(call->pool, threads, (int64_t)s->made, 8, depthwise_units, &r);
        } else {
            nori__sproduct_run(call, &r.product, r.rows);
        }
    }
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__cpu_qconv = {.size = sizeof(nori__kernel),
                                      .prepare = qconv_prepare,
                                      .workspace = qconv_workspace,
                                      .run = qconv_kernel,
                                      .release = qconv_release};
