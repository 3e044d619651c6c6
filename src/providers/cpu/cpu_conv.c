/* cpu_conv.c: float Conv and com.microsoft FusedConv with constant weights.
 *
 * Each output channel's weights are a row of A, the patches under the kernel columns of B, one a
 * output position: B is never made as a whole, its panels are gathered where they are used. The
 * input is copied once with its padding, so that gathering needs no tests: row k of B is the same
 * set of positions shifted by offset[k]. Kernels of one element without pads or strides read the
 * input as it is. With one input channel a group the kernel works channel by channel.
 *
 * NaN and infinities go as arithmetic has them; over padding a weight meets zeros. */
#include "plan/packed.h"
#include "providers/cpu/cpu.h"
#include "providers/cpu/patches.h"

typedef struct conv_state {
    const nori_tensor *from; /* what was packed: another tensor goes to the reference kernel */
    nori__activation act;
    size_t made, per_group, group, taps; /* output channels, input channels a group, kernel size */
    float *weights;  /* panels a group; depthwise: as they are */
    size_t bytes;
    size_t packed;   /* floats of a group's panels */
    bool depthwise;
} conv_state;

static void conv_release(void *state, const nori_allocator *a)
{
    conv_state *s = state;
    if (s) {
        nori__release(a, s->weights, s->bytes);
        nori__release(a, s, sizeof(*s));
    }
}

static nori_status conv_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                size_t *state_bytes, nori_error *err)
{
    const nori_tensor *w = nori__cpu_default(nori__cpu_value(node, 1));
    nori__activation act;
    if (!w || w->type != NORI_FLOAT || w->rank < 3 || w->rank > 5 || w->count == 0 ||
        !nori__activation_read(node, &act)) {
        return NORI__NOT_TAKEN;
    }
    int64_t group = nori__attr_i(node, "group", 1);
    if (group < 1 || w->dims[0] % group != 0) {
        return NORI__NOT_TAKEN; /* the reference kernel has the message */
    }
    conv_state *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    s->act = act;
    s->from = w;
    s->made = (size_t)w->dims[0];
    s->per_group = (size_t)w->dims[1];
    s->group = (size_t)group;
    s->taps = (size_t)w->count / s->made / s->per_group;
    s->depthwise = s->per_group == 1 && group > 1 && w->rank <= 4;
    size_t m = s->made / s->group, k = s->per_group * s->taps, total = (size_t)w->count;
    if (!s->depthwise) {
        s->packed = nori__packed_a(m, k);
        total = s->packed == 0 || !nori__mul_size(s->packed, s->group, &total) ? 0 : total;
    }
    bool ready = false;
    if (total == 0 || !nori__mul_size(total, sizeof(float), &s->bytes) ||
        !(s->weights = nori__packed(a, s->bytes, &ready))) {
        nori__release(a, s, sizeof(*s));
        return nori__no_memory(err);
    }
    if (!ready && s->depthwise) {
        memcpy(s->weights, nori__tensor_at(w), s->bytes);
    } else if (!ready) {
        for (size_t g = 0; g < s->group; g++) {
            nori__pack_a(m, k, (const float *)nori__tensor_at(w) + g * m * k, k, 1,
                         s->weights + g * s->packed);
        }
    }
    *state = s;
    *state_bytes = s->bytes + sizeof(*s);
    return NORI_OK;
}

/* ---- one run ---- */

typedef struct conv_run {
    const conv_state *s;
    const float *x, *bias, *sum;
    float *y;
    size_t batch, channels;
    nori__patches g;
    size_t ready;          /* elements of the image that may be read, slack included */
    const float *image;    /* what patches are gathered from */
    int64_t *offset;       /* of each k */
    nori__product product;
    size_t offset_bytes, image_bytes, scratch_bytes; /* of the workspace, in this order */
} conv_run;

/* False where sizes are out of what this kernel takes. */
static bool conv_start(const conv_state *s, const nori__ref_conv_work *w, conv_run *r)
{
    memset(r, 0, sizeof(*r));
    r->s = s;
    r->batch = (size_t)w->batch;
    r->channels = (size_t)w->channels;
    return nori__patches_set(&r->g, w);
}

/* ---- products ---- */

static void conv_part(const nori__product *p, size_t index, nori__product_part *part)
{
    const conv_run *r = p->user;
    size_t m = p->m, at = index * m * r->g.out_size;
    part->a = r->s->weights + index * r->s->packed;
    part->c = r->y + at;
    part->row = r->bias ? r->bias + index * m : NULL;
    part->add = r->sum ? r->sum + at : NULL;
}

static void pack_pointwise(const nori__product *p, size_t index, size_t k0, size_t kc,
                           size_t panel, float *out)
{
    const conv_run *r = p->user;
    const nori__kernels *kern = nori__kernels_get();
    size_t j = panel * kern->f32_nr, count = p->n - j < kern->f32_nr ? p->n - j : kern->f32_nr;
    kern->f32_pack(kern->f32_nr, kc, count,
                   r->image + (index * r->s->per_group + k0) * r->g.in_size + j, r->g.in_size, 1, out);
}

static void pack_patches(const nori__product *p, size_t index, size_t k0, size_t kc, size_t panel,
                         float *out)
{
    const conv_run *r = p->user;
    const nori__kernels *kern = nori__kernels_get();
    size_t nr = kern->f32_nr, j = panel * nr, count = p->n - j < nr ? p->n - j : nr;
    size_t from[NORI__NR_MAX + 1];
    int64_t where[NORI__NR_MAX];
    size_t pieces = nori__patches_pieces(&r->g, j, count, from, where), step = r->g.stride[2];
    size_t base = index * r->s->per_group * r->g.padded_size;
    /* Patches are read in whole panels; at the end of a borrowed image that is too much. Offsets
     * and places grow, so the last of both is the furthest. */
    if (base + (size_t)(r->offset[k0 + kc - 1] + where[pieces - 1]) + nr * step > r->ready) {
        from[pieces] = count;
        for (size_t k = 0; k < kc; k++, out += nr) {
            for (size_t s = 0; s < pieces; s++) {
                const float *in = r->image + base + r->offset[k0 + k] + where[s];
                for (size_t c = from[s]; c < from[s + 1]; c++, in += step) {
                    out[c] = *in;
                }
            }
            memset(out + count, 0, (nr - count) * sizeof(float));
        }
        return;
    }
    kern->f32_patches(kc, r->offset + k0, r->image + base, pieces, from, where, step, out);
}

/* ---- the padded copy ---- */

/* One channel into its padded place; step: floats between padded rows. */
static void pad_channel(const conv_run *r, const float *x, float *out, size_t step)
{
    size_t width = r->g.in[2], left = r->g.pad[2], right = step - left - width;
    for (size_t d = 0; d < r->g.padded[0]; d++) {
        bool inside = d >= r->g.pad[0] && d - r->g.pad[0] < r->g.in[0];
        for (size_t h = 0; h < r->g.padded[1]; h++, out += step) {
            if (!inside || h < r->g.pad[1] || h - r->g.pad[1] >= r->g.in[1]) {
                memset(out, 0, step * sizeof(float));
                continue;
            }
            memset(out, 0, left * sizeof(float));
            if (width > 0) { /* x may be NULL when there is nothing of it */
                memcpy(out + left, x, width * sizeof(float));
            }
            memset(out + left + width, 0, right * sizeof(float));
            x += width;
        }
    }
}

/* The same into a plane whose borders are zero already. */
static void fill_channel(const conv_run *r, const float *x, float *out, size_t step)
{
    out += (r->g.pad[0] * r->g.padded[1] + r->g.pad[1]) * step + r->g.pad[2];
    for (size_t h = 0; h < r->g.in[1]; h++, out += step, x += r->g.in[2]) {
        size_t w = 0;
        for (; w + 4 <= r->g.in[2]; w += 4) { /* rows are short: a call each would cost more */
            memcpy(out + w, x + w, 4 * sizeof(float));
        }
        for (; w < r->g.in[2]; w++) {
            out[w] = x[w];
        }
    }
}

static void pad_units(void *user, int64_t begin, int64_t end, int thread)
{
    const conv_run *r = user;
    (void)thread;
    for (int64_t c = begin; c < end; c++) {
        pad_channel(r, r->x + (size_t)c * r->g.in_size,
                    (float *)(uintptr_t)r->image + (size_t)c * r->g.padded_size, r->g.padded[2]);
    }
}

static nori_status run_products(nori_call *call, conv_run *r, char *work)
{
    const float *x = r->x;
    float *y = r->y;
    const float *sum = r->sum;
    size_t x_step = r->channels * r->g.in_size, y_step = r->s->made * r->g.out_size;
    if (!r->g.pointwise) {
        r->offset = (int64_t *)(void *)work;
        nori__patches_offsets(&r->g, r->s->per_group, r->offset);
    }
    for (size_t b = 0; b < r->batch; b++) {
        r->x = x + b * x_step;
        r->y = y + b * y_step;
        r->sum = sum ? sum + b * y_step : NULL;
        r->image = r->x;
        r->ready = x_step;
        if (r->g.copied) {
            r->image = (float *)(void *)(work + r->offset_bytes);
            r->ready = r->image_bytes / sizeof(float);
            nori__cpu_for(call->pool, nori__cpu_threads(call), (int64_t)r->channels, 4,
                         pad_units, r);
        }
        nori__product_run(call, &r->product, work + r->offset_bytes + r->image_bytes);
    }
    return NORI_OK;
}

/* ---- channel by channel ---- */

/* Bytes of one padded channel, rows of whole vectors with slack at the end. */
static size_t plane_step(const conv_run *r)
{
    return (r->g.padded[2] + 7) / 8 * 8;
}

static size_t plane_bytes(const conv_run *r)
{
    return nori__cpu_round((plane_step(r) * r->g.padded[1] + NORI__NR_MAX * r->g.stride[2]) *
                           sizeof(float));
}

typedef struct depthwise_job {
    const conv_run *r;
    char *work;
} depthwise_job;

static void depthwise_units(void *user, int64_t begin, int64_t end, int thread)
{
    const depthwise_job *job = user;
    const conv_run *r = job->r;
    const conv_state *s = r->s;
    const nori__kernels *kern = nori__kernels_get();
    size_t step = plane_step(r), each = s->made / s->group;
    float *plane = (float *)(void *)(job->work + (size_t)thread * plane_bytes(r));
    memset(plane, 0, plane_bytes(r));
    for (int64_t u = begin; u < end; u++) {
        size_t m = (size_t)u % s->made, b = (size_t)u / s->made;
        size_t at = (size_t)u * r->g.out_size;
        nori__f32_finish f = {.row = r->bias ? r->bias + m : NULL, .clamp = s->act.clamp,
                              .low = s->act.low, .high = s->act.high, .ld_add = r->g.out[2],
                              .add = r->sum ? r->sum + at : NULL};
        fill_channel(r, r->x + (b * r->channels + m / each) * r->g.in_size, plane, step);
        kern->f32_depthwise(r->g.out[1], r->g.out[2], r->g.kernel[1], r->g.kernel[2], r->g.stride[1],
                            r->g.stride[2], r->g.dilation[1], r->g.dilation[2], plane, step,
                            s->weights + m * s->taps, r->y + at, &f);
        if (s->act.apply) {
            kern->f32_unary[s->act.function](r->g.out_size, r->y + at, r->y + at, s->act.p);
        }
    }
}

static nori_status run_depthwise(nori_call *call, conv_run *r, char *work)
{
    depthwise_job job = {r, work};
    nori__cpu_for(call->pool, nori__cpu_threads(call), (int64_t)(r->batch * r->s->made), 8,
                 depthwise_units, &job);
    return NORI_OK;
}

/* ---- sizes ---- */

/* Fills what depends on shapes and threads; bytes: workspace. */
static bool conv_plan(conv_run *r, int threads, size_t *bytes)
{
    const conv_state *s = r->s;
    if (s->depthwise) {
        return nori__mul_size(plane_bytes(r), (size_t)threads, bytes);
    }
    size_t k = s->per_group * s->taps;
    r->product = (nori__product){.count = s->group, .m = s->made / s->group, .n = r->g.out_size,
                                 .k = k, .ldc = r->g.out_size, .act = s->act, .part = conv_part,
                                 .pack = r->g.pointwise ? pack_pointwise : pack_patches, .user = r};
    r->offset_bytes = r->g.pointwise ? 0 : nori__cpu_round(k * sizeof(int64_t));
    r->image_bytes = r->g.copied ? nori__cpu_round((r->channels * r->g.padded_size +
                                                  NORI__NR_MAX * r->g.stride[2]) * sizeof(float))
                               : 0;
    r->scratch_bytes = nori__product_bytes(&r->product, threads);
    return nori__add_size(r->offset_bytes, r->image_bytes, bytes) &&
           nori__add_size(*bytes, r->scratch_bytes, bytes);
}

static bool conv_shapes(const conv_state *s, nori_call *call, conv_run *r, nori_error *err)
{
    nori__ref_conv_work w;
    nori_call quiet = *call;
    quiet.err = err;
    return nori__cpu_has(call, 0) && nori__cpu_has(call, 1) && call->in[0]->type == NORI_FLOAT &&
           nori__ref_conv_setup(&quiet, call->in[0], call->in[1], call->out[0], &w) == NORI_OK &&
           (size_t)w.made == s->made && (size_t)w.group == s->group && conv_start(s, &w, r);
}

static size_t conv_workspace(const void *state, const nori_call *call)
{
    conv_run r;
    size_t bytes;
    nori_call copy = *call;
    if (!conv_shapes(state, &copy, &r, NULL) || !conv_plan(&r, nori__cpu_threads(call), &bytes)) {
        return 0;
    }
    return bytes;
}

static bool conv_extra(nori_call *call, uint32_t i, int64_t count)
{
    return !nori__cpu_has(call, i) ||
           (call->in[i]->type == NORI_FLOAT && call->in[i]->count == count);
}

static nori_status conv_kernel(const void *state, nori_call *call)
{
    const conv_state *s = state;
    conv_run r;
    size_t bytes;
    if (!nori__cpu_has(call, 1) || call->in[1] != s->from || !conv_shapes(s, call, &r, NULL) ||
        !conv_plan(&r, nori__cpu_threads(call), &bytes) ||
        !conv_extra(call, 2, (int64_t)s->made) || !conv_extra(call, 3, call->out[0]->count)) {
        return nori__cpu_reference(call);
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    r.x = call->in[0]->data;
    r.y = call->out[0]->data;
    r.bias = nori__cpu_has(call, 2) ? call->in[2]->data : NULL;
    r.sum = nori__cpu_has(call, 3) ? call->in[3]->data : NULL;
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, bytes, &scratch));
    nori_status status = s->depthwise ? run_depthwise(call, &r, scratch.data)
                                      : run_products(call, &r, scratch.data);
    nori__cpu_give(call, &scratch);
    return status;
}

const nori__kernel nori__cpu_conv = {.size = sizeof(nori__kernel),
                                     .prepare = conv_prepare,
                                     .workspace = conv_workspace,
                                     .run = conv_kernel,
                                     .release = conv_release,
                                     .packed_inputs = 0x2};
