/* cpu_bturned.c: ConvTranspose over channel blocks, as one small convolution for each place within a
 * stride.
 *
 * With stride s, outputs o = a + s q see the kernel positions k = (a + begin) mod s + s t only, and
 * those the inputs q + (a + begin) / s - t: an ordinary convolution over q for each a, whose pixels
 * lie s apart in the output. A unit is a span of q in height by a share of the output pairs; it
 * copies the inputs it looks at, with zeros around, so that the tiles need no tests. */
#include "plan/packed.h"
#include "providers/cpu/blocked.h"

#define SPAN_BYTES (256 * 1024)

/* One place within the stride, for both dimensions. */
typedef struct phase {
    size_t first[2], taps[2]; /* kernel positions first + s t, t < taps */
    nori__bconv_chunk *chunks;
    size_t n_chunks, terms, lanes;
    size_t before;            /* lanes of the phases in front of it */
} phase;

typedef struct turned {
    const nori_tensor *from[2];
    nori__activation act;
    size_t block, channels, made, kernel[2], stride[2], begin[2];
    size_t blocks, pairs, phases, lanes, terms;
    phase *phase;
    float *weights, *bias;
    size_t phase_bytes, weights_bytes, bias_bytes, chunk_bytes;
    nori__bconv_chunk *chunks;
} turned;

static void turned_release(void *state, const nori_allocator *a)
{
    turned *s = state;
    if (s) {
        nori__release(a, s->weights, s->weights_bytes);
        nori__release(a, s->bias, s->bias_bytes);
        nori__release(a, s->chunks, s->chunk_bytes);
        nori__release(a, s->phase, s->phase_bytes);
        nori__release(a, s, sizeof(*s));
    }
}

/* Kernel positions of each phase; begin decides which. */
static void set_phases(turned *s)
{
    size_t full = s->channels / s->block, tail = s->channels % s->block, used = 0;
    s->lanes = s->terms = 0;
    for (size_t p = 0; p < s->phases; p++) {
        phase *f = &s->phase[p];
        size_t a[2] = {p / s->stride[1], p % s->stride[1]}, taps = 1;
        for (int d = 0; d < 2; d++) {
            f->first[d] = (a[d] + s->begin[d]) % s->stride[d];
            f->taps[d] = f->first[d] < s->kernel[d]
                             ? nori__div_up(s->kernel[d] - f->first[d], s->stride[d])
                             : 0;
            taps *= f->taps[d];
        }
        nori__bconv_chunk done = {0};
        f->chunks = s->chunks + used;
        f->n_chunks = 0;
        nori__bconv_cut(s->block, full * taps, s->block, f->chunks, &f->n_chunks, &done);
        nori__bconv_cut(s->block, tail > 0 ? taps : 0, tail, f->chunks, &f->n_chunks, &done);
        if (f->n_chunks == 0) { /* no position at all: only the bias */
            f->chunks[f->n_chunks++] = (nori__bconv_chunk){0, 0, 0, 0};
        }
        f->terms = done.terms;
        f->lanes = done.lanes;
        f->before = s->lanes;
        used += f->n_chunks;
        s->lanes += f->lanes;
        s->terms = s->terms > f->terms ? s->terms : f->terms;
    }
}

/* [pair][phase][lane][1 or 2 blocks]; w is [channels][made][kernel]. */
static void pack(const turned *s, const nori__any_f32 *w)
{
    size_t c = s->block, full = s->channels / c * c, plane = s->kernel[0] * s->kernel[1];
    float *out = s->weights;
    for (size_t p = 0; p < s->pairs; p++) {
        size_t width = (s->blocks - 2 * p < 2 ? 1 : 2) * c;
        for (size_t i = 0; i < s->phases; i++) {
            const phase *f = &s->phase[i];
            size_t taps = f->taps[0] * f->taps[1], tail = s->channels - full;
            for (size_t l = 0; l < f->lanes; l++) {
                bool in_full = l < full * taps;
                size_t term = in_full ? l / c : (l - full * taps) / tail;
                size_t tap = term % taps;
                size_t channel = in_full ? term / taps * c + l % c : full + (l - full * taps) % tail;
                size_t at = (f->first[0] + tap / f->taps[1] * s->stride[0]) * s->kernel[1] +
                            f->first[1] + tap % f->taps[1] * s->stride[1];
                for (size_t j = 0; j < width; j++) {
                    size_t o = 2 * p * c + j;
                    *out++ = o < s->made ? w[(channel * s->made + o) * plane + at] : 0;
                }
            }
        }
    }
}

static nori_status turned_fill(turned *s, const nori__node *node, const nori_tensor *w,
                               const nori_tensor *b, const size_t begin[2], const nori_allocator *a,
                               nori_error *err)
{
    nori__window window;
    NORI__TRY(nori__window_read(node, err, 2, w->dims + 2, &window));
    const nori__type *x = &node->inputs[0]->type;
    for (int d = 0; d < 2 && !begin && x->rank == 5; d++) { /* pads may follow from sizes */
        int64_t size;
        NORI__TRY(nori__window_out_transposed(&window, node, err, d, x->dims[d + 2].value, &size));
    }
    if (!nori__activation_read(node, &s->act)) {
        return nori__fail(err, NORI_ERROR_INTERNAL, "unknown activation");
    }
    s->from[0] = w;
    s->from[1] = b;
    s->block = nori__kernels_get()->block;
    s->channels = (size_t)w->dims[0];
    s->made = (size_t)w->dims[1];
    for (int d = 0; d < 2; d++) {
        s->kernel[d] = (size_t)w->dims[d + 2];
        s->stride[d] = (size_t)window.stride[d];
        s->begin[d] = begin ? begin[d] : window.begin[d] > 0 ? (size_t)window.begin[d] : 0;
    }
    s->blocks = nori__div_up(s->made, s->block);
    s->pairs = nori__div_up(s->blocks, 2);
    s->phases = s->stride[0] * s->stride[1];
    s->phase_bytes = s->phases * sizeof(*s->phase);
    size_t taps = s->kernel[0] * s->kernel[1], most = (s->channels / s->block + 1), count;
    if (!nori__mul_size(most, taps, &most) || !nori__add_size(most, s->phases, &most) ||
        !nori__mul_size(most, sizeof(*s->chunks), &s->chunk_bytes) ||
        !nori__mul_size(s->blocks * s->block * s->channels, taps, &count) ||
        !nori__mul_size(count, sizeof(float), &s->weights_bytes)) {
        return nori__no_memory(err);
    }
    s->bias_bytes = (s->blocks + 1) * s->block * sizeof(float);
    s->phase = nori__alloc_zero(a, s->phase_bytes);
    s->chunks = nori__alloc(a, s->chunk_bytes);
    bool ready;
    s->weights = nori__packed(a, s->weights_bytes, &ready);
    s->bias = nori__alloc_zero(a, s->bias_bytes);
    if (!s->phase || !s->chunks || !s->weights || !s->bias) {
        return nori__no_memory(err);
    }
    set_phases(s);
    if (!ready) {
        pack(s, nori__tensor_at(w));
    }
    if (b) {
        memcpy(s->bias, nori__tensor_at(b), s->made * sizeof(float));
    }
    return NORI_OK;
}

static nori_status turned_make(const nori__node *node, const nori_tensor *w, const nori_tensor *b,
                               const size_t begin[2], const nori_allocator *a, turned **out,
                               nori_error *err)
{
    turned *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    nori_status status = turned_fill(s, node, w, b, begin, a, err);
    if (status != NORI_OK) {
        turned_release(s, a);
        return status;
    }
    *out = s;
    return NORI_OK;
}

static nori_status turned_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                  size_t *state_bytes, nori_error *err)
{
    turned *s;
    NORI__TRY(turned_make(node, nori__cpu_default(node->inputs[1]),
                          nori__cpu_default(nori__cpu_value(node, 2)), NULL, a, &s, err));
    *state = s;
    *state_bytes = s->weights_bytes + s->bias_bytes + s->phase_bytes + s->chunk_bytes + sizeof(*s);
    return NORI_OK;
}

/* ---- one run ---- */

typedef struct turned_run {
    const turned *s;
    const float *x;
    float *y;
    size_t batch, in[2], out[2], count[2]; /* count: values of q */
    size_t before[2], wide[2];             /* zeros in front; what a copy of all q needs */
    size_t x_blocks, span, spans, share, shares, copy_rows;
    int64_t *offset; /* of the terms of each phase */
    size_t offset_bytes, thread_bytes;
    char *work;
} turned_run;

/* begin: pads as this run's sizes make them (output_shape, auto_pad). */
static bool turned_plan(const turned *s, const nori_call *call, turned_run *r, size_t begin[2],
                        size_t *bytes)
{
    const nori_tensor *x = call->in[0], *y = call->out[0];
    int64_t kernel[2] = {(int64_t)s->kernel[0], (int64_t)s->kernel[1]};
    int threads = nori__cpu_threads(call);
    nori__window w;
    memset(r, 0, sizeof(*r));
    if (nori__window_read(call->node, NULL, 2, kernel, &w) != NORI_OK) {
        return false;
    }
    for (int d = 0; d < 2; d++) {
        int64_t size;
        if (nori__window_out_transposed(&w, call->node, NULL, d, x->dims[d + 2], &size) != NORI_OK ||
            size != y->dims[d + 2] || w.begin[d] < 0) {
            return false;
        }
        begin[d] = (size_t)w.begin[d];
        r->in[d] = (size_t)x->dims[d + 2];
        r->out[d] = (size_t)size;
        r->count[d] = nori__div_up(r->out[d], s->stride[d]);
        size_t reach = nori__div_up(s->kernel[d], s->stride[d]); /* taps at most */
        size_t base = (s->stride[d] - 1 + begin[d]) / s->stride[d];
        r->before[d] = reach > 0 ? reach - 1 : 0;
        r->wide[d] = r->count[d] + r->before[d] + base;
    }
    r->s = s;
    r->batch = (size_t)x->dims[0];
    r->x_blocks = (size_t)x->dims[1];
    *bytes = 0;
    if (y->count == 0) {
        return true;
    }
    size_t line = r->x_blocks * s->block * r->wide[1] * sizeof(float), total;
    r->span = SPAN_BYTES / line > 2 ? SPAN_BYTES / line : 2;
    if (threads > 1 && r->count[0] / r->span < 2 * (size_t)threads) {
        r->span = r->count[0] / (2 * (size_t)threads) + 1;
    }
    r->span = r->span < r->count[0] ? r->span : r->count[0];
    r->spans = nori__div_up(r->count[0], r->span);
    r->shares = threads > 1 && r->batch * r->spans < (size_t)threads ? (size_t)threads : 1;
    r->shares = r->shares < s->pairs ? r->shares : s->pairs;
    r->share = nori__div_up(s->pairs, r->shares);
    r->copy_rows = r->span + r->wide[0] - r->count[0];
    r->offset_bytes = nori__cpu_round(s->phases * (s->terms + 1) * sizeof(int64_t));
    if (!nori__mul_size(line, r->copy_rows, &total)) {
        return false;
    }
    r->thread_bytes = nori__cpu_round(total);
    return nori__mul_size(r->thread_bytes, (size_t)threads, bytes) &&
           nori__add_size(*bytes, r->offset_bytes, bytes);
}

static void set_offsets(const turned_run *r)
{
    const turned *s = r->s;
    size_t c = s->block, row = r->wide[1] * c, plane = r->copy_rows * row;
    for (size_t p = 0; p < s->phases; p++) {
        const phase *f = &s->phase[p];
        size_t a[2] = {p / s->stride[1], p % s->stride[1]}, taps = f->taps[0] * f->taps[1];
        for (size_t t = 0; t < f->terms; t++) {
            size_t h = r->before[0] + (a[0] + s->begin[0]) / s->stride[0] - t % taps / f->taps[1];
            size_t w = r->before[1] + (a[1] + s->begin[1]) / s->stride[1] - t % f->taps[1];
            r->offset[p * (s->terms + 1) + t] = (int64_t)(t / taps * plane + h * row + w * c);
        }
    }
}

/* Inputs q - before ... of the rows from q on, with zeros where there are none. */
static void copy_rows(const turned_run *r, const float *x, size_t q, float *out)
{
    size_t c = r->s->block, row = r->wide[1] * c, left = r->before[1] * c;
    size_t inner = (r->wide[1] - r->before[1] < r->in[1] ? r->wide[1] - r->before[1] : r->in[1]) * c;
    for (size_t b = 0; b < r->x_blocks; b++, x += r->in[0] * r->in[1] * c) {
        for (size_t h = 0; h < r->copy_rows; h++, out += row) {
            size_t i = q + h;
            if (i < r->before[0] || i - r->before[0] >= r->in[0]) {
                memset(out, 0, row * sizeof(float));
                continue;
            }
            memset(out, 0, left * sizeof(float));
            memcpy(out + left, x + (i - r->before[0]) * r->in[1] * c, inner * sizeof(float));
            memset(out + left + inner, 0, (row - left - inner) * sizeof(float));
        }
    }
}

/* Rows q0 <= q < q1 of one pair. */
static void turned_pair(const turned_run *r, size_t p, size_t image, size_t q0, size_t q1,
                        const float *x)
{
    const turned *s = r->s;
    size_t c = s->block, blocks = s->blocks - 2 * p < 2 ? 1 : 2, plane = r->out[0] * r->out[1] * c;
    float *y = r->y + (image * s->blocks + 2 * p) * plane;
    const float *w = s->weights + 2 * p * c * s->lanes;
    for (size_t i = 0; i < s->phases; i++) {
        const phase *f = &s->phase[i];
        size_t a = i / s->stride[1], b = i % s->stride[1];
        size_t n = r->out[1] > b ? nori__div_up(r->out[1] - b, s->stride[1]) : 0;
        for (size_t k = 0; k < f->n_chunks && n > 0; k++) {
            nori__block_finish finish = {.bias = k == 0 ? s->bias + 2 * p * c : NULL,
                                         .clamp = k + 1 == f->n_chunks && s->act.clamp,
                                         .low = s->act.low, .high = s->act.high,
                                         .step = s->stride[1] * c};
            for (size_t q = q0; q < q1 && a + s->stride[0] * q < r->out[0]; q++) {
                nori__bconv_line(&f->chunks[k], n, blocks, r->offset + i * (s->terms + 1),
                                 x + (q - q0) * r->wide[1] * c, c,
                                 w + (f->before + f->chunks[k].before) * blocks * c, q - q0, q1 - q0,
                                 y + ((a + s->stride[0] * q) * r->out[1] + b) * c, plane, &finish);
            }
        }
    }
    size_t first = q0 * s->stride[0], end = q1 * s->stride[0];
    end = end < r->out[0] ? end : r->out[0];
    for (size_t b = 0; s->act.apply && b < blocks && first < end; b++) {
        float *at = y + b * plane + first * r->out[1] * c;
        nori__kernels_get()->f32_unary[s->act.function]((end - first) * r->out[1] * c, at, at,
                                                        s->act.p);
    }
}

static void turned_units(void *user, int64_t begin, int64_t end, int thread)
{
    const turned_run *r = user;
    float *copy = (float *)(void *)(r->work + (size_t)thread * r->thread_bytes);
    for (int64_t u = begin; u < end; u++) {
        size_t unit = (size_t)u, share = unit % r->shares, span = unit / r->shares % r->spans;
        size_t image = unit / r->shares / r->spans, q0 = span * r->span;
        size_t q1 = q0 + r->span < r->count[0] ? q0 + r->span : r->count[0];
        copy_rows(r, r->x + image * r->x_blocks * r->in[0] * r->in[1] * r->s->block, q0, copy);
        for (size_t p = share * r->share; p < (share + 1) * r->share && p < r->s->pairs; p++) {
            turned_pair(r, p, image, q0, q1, copy);
        }
    }
}

static size_t turned_workspace(const void *state, const nori_call *call)
{
    turned_run r;
    size_t bytes, begin[2];
    return turned_plan(state, call, &r, begin, &bytes) ? bytes : 0;
}

static nori_status run_with(const turned *s, nori_call *call, bool *other_pads, size_t begin[2])
{
    turned_run r;
    size_t bytes;
    nori__cpu_scratch scratch;
    if (!turned_plan(s, call, &r, begin, &bytes)) {
        return nori__fail(call->err, NORI_ERROR_LIMIT, "a convolution this large cannot be laid out");
    }
    *other_pads = begin[0] != s->begin[0] || begin[1] != s->begin[1];
    if (call->out[0]->count == 0 || *other_pads) {
        return NORI_OK;
    }
    NORI__TRY(nori__cpu_take(call, bytes, &scratch));
    r.x = call->in[0]->data;
    r.y = call->out[0]->data;
    r.offset = scratch.data;
    r.work = (char *)scratch.data + r.offset_bytes;
    set_offsets(&r);
    nori__cpu_for(call->pool, nori__cpu_threads(call),
                 (int64_t)(r.batch * r.spans * r.shares), 1, turned_units, &r);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

static nori_status turned_run_call(const void *state, nori_call *call)
{
    const turned *s = state;
    const nori_tensor *w = call->in[1], *b = nori__cpu_has(call, 2) ? call->in[2] : NULL;
    size_t begin[2] = {s->begin[0], s->begin[1]};
    bool other = w != s->from[0] || b != s->from[1], other_pads = false;
    if (other && (w->type != NORI_FLOAT || w->rank != 4 ||
                  memcmp(w->dims, s->from[0]->dims, 4 * sizeof(*w->dims)) != 0 ||
                  (b && (b->type != NORI_FLOAT || b->count != w->dims[1])))) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "the weight given for this run has another shape than its default");
    }
    if (!other) {
        NORI__TRY(run_with(s, call, &other_pads, begin));
        if (!other_pads) {
            return NORI_OK;
        }
    }
    /* Weights of this run alone, or pads that follow from its sizes: phases take other positions. */
    turned_run r;
    size_t bytes;
    turned *own;
    if (!turned_plan(s, call, &r, begin, &bytes)) {
        return nori__fail(call->err, NORI_ERROR_LIMIT, "a convolution this large cannot be laid out");
    }
    NORI__TRY(turned_make(call->node, w, b, begin, call->allocator, &own, call->err));
    nori_status status = run_with(own, call, &other_pads, begin);
    turned_release(own, call->allocator);
    return status;
}

const nori__kernel nori__blocked_turned = {.size = sizeof(nori__kernel),
                                           .prepare = turned_prepare,
                                           .workspace = turned_workspace,
                                           .run = turned_run_call,
                                           .release = turned_release,
                                           .packed_inputs = 0x6};
