/* cpu_bconv.c: BlockedConv: choosing the form of a convolution over channel blocks, packing its
 * weights, and one run. The forms are in bconv_direct.c, bconv_winograd.c, bconv_depthwise.c.
 *
 * The order of each output's sums depends on the layer alone: not on threads, spans or tiles. */
#include "plan/packed.h"
#include "providers/cpu/blocked.h"

/* Cycles that are worth another thread's part, and those of a unit. A hand-over costs about 1000. */
#define THREAD_CYCLES 4000.0
#define UNIT_CYCLES 1000.0

/* Bytes of a pair's weights that stay in the first cache while pixels go by. */
#define CHUNK_BYTES (24 * 1024)

void nori__bconv_free(nori__bconv *s, const nori_allocator *a)
{
    if (s) {
        nori__release(a, s->weights, s->weights_bytes);
        nori__release(a, s->bias, s->bias_bytes);
        nori__release(a, s->chunks, s->chunks_bytes);
        nori__release(a, s, sizeof(*s));
    }
}

size_t nori__bconv_bytes(const nori__bconv *s)
{
    return s->weights_bytes + s->bias_bytes + s->chunks_bytes + sizeof(*s);
}

static void bconv_release(void *state, const nori_allocator *a)
{
    nori__bconv_free(state, a);
}

/* ---- chunks ---- */

void nori__bconv_cut(size_t block, size_t terms, size_t lanes, nori__bconv_chunk *chunks,
                     size_t *count, nori__bconv_chunk *done)
{
    size_t most = CHUNK_BYTES / (2 * block * sizeof(float)) / (lanes > 0 ? lanes : 1);
    most = most > 0 ? most : 1;
    size_t parts = nori__div_up(terms, most);
    for (size_t i = 0; i < parts; i++) {
        size_t from = terms * i / parts;
        chunks[(*count)++] = (nori__bconv_chunk){done->terms + from,
                                                 terms * (i + 1) / parts - from, lanes,
                                                 done->lanes + from * lanes};
    }
    done->terms += terms;
    done->lanes += terms * lanes;
}

static nori_status make_chunks(nori__bconv *s, const nori_allocator *a, nori_error *err)
{
    size_t taps = s->how == NORI__BCONV_DIRECT ? s->kernel[0] * s->kernel[1] : 1;
    size_t full = s->planes ? 0 : s->per_group / s->block, tail = s->per_group % s->block;
    size_t terms = s->planes ? s->per_group : full + 1, most;
    if (!nori__mul_size(terms, taps, &most) || most > INT32_MAX) {
        return nori__fail(err, NORI_ERROR_LIMIT, "a convolution of %zu channels by %zu is too large",
                          s->per_group, taps);
    }
    s->chunks_bytes = (most + 1) * sizeof(*s->chunks);
    s->chunks = nori__alloc(a, s->chunks_bytes);
    if (!s->chunks) {
        return nori__no_memory(err);
    }
    nori__bconv_chunk done = {0};
    if (s->planes) {
        nori__bconv_cut(s->block, s->per_group * taps, 1, s->chunks, &s->n_chunks, &done);
    } else {
        nori__bconv_cut(s->block, full * taps, s->block, s->chunks, &s->n_chunks, &done);
        nori__bconv_cut(s->block, tail > 0 ? taps : 0, tail, s->chunks, &s->n_chunks, &done);
    }
    s->terms = done.terms;
    s->lanes = done.lanes;
    return NORI_OK;
}

/* ---- packing ---- */

/* Weights of a row that are placed at a time. */
#define PACK_COLUMNS 256

/* The lane, in the order of terms, of a channel and kernel position. */
static size_t lane_of(const nori__bconv *s, size_t channel, size_t tap)
{
    size_t taps = s->kernel[0] * s->kernel[1], full = s->per_group / s->block * s->block;
    if (s->planes) {
        return channel * taps + tap;
    }
    return channel < full ? (channel / s->block * taps + tap) * s->block + channel % s->block
                          : full * taps + tap * (s->per_group - full) + channel - full;
}

/* Both blocks of a pair, some columns of both at a time: their vectors alternate. */
static void pack_pair(const nori__bconv *s, const float *w, size_t rows, float *out)
{
    size_t c = s->block, taps = s->kernel[0] * s->kernel[1], all = s->per_group * taps;
    size_t width = (rows > c ? 2 : 1) * c, place[PACK_COLUMNS], channel = 0, tap = 0;
    for (size_t at = 0; at < all; at += PACK_COLUMNS) {
        size_t n = all - at < PACK_COLUMNS ? all - at : PACK_COLUMNS;
        for (size_t q = 0; q < n; q++) {
            place[q] = lane_of(s, channel, tap) * width;
            tap = tap + 1 < taps ? tap + 1 : 0;
            channel += tap == 0;
        }
        for (size_t o = 0; o < rows; o += c) {
            nori__kernels_get()->f32_block_weights(rows - o < c ? rows - o : c, n, w + o * all + at, all,
                                                   place, out + o);
        }
    }
}

static void pack_direct(const nori__bconv *s, const float *w)
{
    size_t c = s->block, m = s->made / s->group, all = s->per_group * s->kernel[0] * s->kernel[1];
    for (size_t g = 0; g < s->group; g++) {
        for (size_t p = 0; p < s->pairs; p++) {
            size_t o = 2 * p * c, rows = m - o < 2 * c ? m - o : 2 * c;
            pack_pair(s, w + (g * m + o) * all, rows, s->weights + (g * s->blocks * c + o) * s->lanes);
        }
    }
}

static void pack_depthwise(const nori__bconv *s, const float *w)
{
    size_t c = s->block, taps = s->kernel[0] * s->kernel[1], place[PACK_COLUMNS];
    for (size_t at = 0; at < taps; at += PACK_COLUMNS) {
        size_t n = taps - at < PACK_COLUMNS ? taps - at : PACK_COLUMNS;
        for (size_t q = 0; q < n; q++) {
            place[q] = (at + q) * c;
        }
        for (size_t o = 0; o < s->made; o += c) {
            nori__kernels_get()->f32_block_weights(s->made - o < c ? s->made - o : c, n,
                                                   w + o * taps + at, taps, place,
                                                   s->weights + o * taps);
        }
    }
}

static bool is_winograd(const nori__bconv *s)
{
    return s->how == NORI__BCONV_WINOGRAD || s->how == NORI__BCONV_WINOGRAD2;
}

static nori_status pack(nori__bconv *s, const nori_allocator *a, const float *w, nori_error *err)
{
    size_t count = s->blocks * s->block;
    bool ready = false;
    if (is_winograd(s)) {
        s->weights = nori__bconv_winograd_pack(s, a, w, &s->weights_bytes);
        return s->weights ? NORI_OK : nori__no_memory(err);
    }
    size_t each = s->how == NORI__BCONV_DEPTHWISE ? s->kernel[0] * s->kernel[1] : s->lanes;
    size_t groups = s->how == NORI__BCONV_DEPTHWISE ? 1 : s->group;
    if (!nori__mul_size(count, each, &count) || !nori__mul_size(count, groups, &count) ||
        !nori__mul_size(count, sizeof(float), &s->weights_bytes) ||
        !(s->weights = nori__packed(a, s->weights_bytes, &ready))) {
        return nori__no_memory(err);
    }
    if (ready) {
        return NORI_OK;
    }
    if (s->how == NORI__BCONV_DEPTHWISE) {
        pack_depthwise(s, w);
    } else {
        pack_direct(s, w);
    }
    return NORI_OK;
}

/* ---- prepare ---- */

nori__layer nori__bconv_layer(const nori__node *node, const nori_tensor *weight, size_t group)
{
    nori__layer l = nori__layer_unknown();
    const nori__type *x = &node->inputs[0]->type;
    nori__window w;
    nori__activation act = {0};
    bool read = nori__window_read(node, NULL, 2, weight->dims + 2, &w) == NORI_OK;
    (void)nori__activation_read(node, &act);
    l.batch = x->rank >= 4 ? x->dims[0].value : -1;
    l.channels = weight->dims[1];
    l.made = weight->dims[0];
    l.group = (int64_t)group;
    for (int d = 0; d < 2; d++) {
        l.kernel[d] = weight->dims[d + 2];
        l.stride[d] = read ? w.stride[d] : -1;
        l.dilation[d] = read ? w.dilation[d] : -1;
        l.in[d] = x->rank >= 4 ? x->dims[d + 2].value : -1;
        if (!read || nori__window_out(&w, NULL, d, l.in[d], &l.out[d]) != NORI_OK) {
            l.out[d] = -1;
        }
    }
    l.joined = (x->rank == 4) + 2 * (nori__cpu_value(node, 3) != NULL) + 4 * act.clamp +
               8 * (act.apply ? 1 + (int64_t)act.function : 0);
    return l;
}

static void choose(const nori__node *node, const nori_tensor *weight, const nori_allocator *a,
                   nori__bconv_form *form)
{
    nori__layer l = nori__bconv_layer(node, weight, form->group);
    bool depthwise = form->group > 1 && weight->dims[1] == 1;
    form->way = nori__way_for(a, depthwise ? NORI__WAYS_DEPTHWISE : NORI__WAYS_CONV, &l);
    form->how = depthwise                                 ? NORI__BCONV_DEPTHWISE
                : form->way->form == NORI__WAY_WINOGRAD  ? NORI__BCONV_WINOGRAD
                : form->way->form == NORI__WAY_WINOGRAD2 ? NORI__BCONV_WINOGRAD2
                                                         : NORI__BCONV_DIRECT;
}

static nori_status fill(nori__bconv *s, const nori_tensor *w, const nori_tensor *b,
                        const nori_allocator *a, nori_error *err)
{
    size_t m = s->how == NORI__BCONV_DEPTHWISE ? s->made : s->made / s->group;
    s->blocks = nori__div_up(m, s->block);
    s->pairs = nori__div_up(s->blocks, 2);
    NORI__TRY(make_chunks(s, a, err));
    NORI__TRY(pack(s, a, nori__tensor_at(w), err));
    /* A pair reads two vectors, also where its second one is not there. */
    s->bias_bytes = (nori__div_up(s->made, s->block) + 1) * s->block * sizeof(float);
    s->bias = nori__alloc_zero(a, s->bias_bytes);
    if (!s->bias) {
        return nori__no_memory(err);
    }
    if (b) {
        memcpy(s->bias, nori__tensor_at(b), s->made * sizeof(float));
    }
    return NORI_OK;
}

nori_status nori__bconv_make(const nori__bconv_form *form, const nori_tensor *w,
                             const nori_tensor *b, const nori_allocator *a, nori__bconv **out,
                             nori_error *err)
{
    nori__bconv *s = nori__alloc_zero(a, sizeof(*s));
    if (!s) {
        return nori__no_memory(err);
    }
    static const nori__way plain = {"", 0, 0, 8, 0};
    s->how = form->how;
    s->way = form->way ? form->way : &plain;
    s->planes = form->planes;
    s->group = form->group;
    s->act = form->act;
    s->block = nori__kernels_get()->block;
    s->from[0] = w;
    s->from[1] = b;
    s->made = (size_t)w->dims[0];
    s->per_group = (size_t)w->dims[1];
    s->kernel[0] = (size_t)w->dims[2];
    s->kernel[1] = (size_t)w->dims[3];
    nori_status status = fill(s, w, b, a, err);
    if (status != NORI_OK) {
        nori__bconv_free(s, a);
        return status;
    }
    *out = s;
    return NORI_OK;
}

/* like: another state of the node, whose way is gone; NULL: the way is chosen. */
static nori_status make_for(const nori__node *node, const nori__bconv *like, const nori_tensor *w,
                            const nori_tensor *b, const nori_allocator *a, nori__bconv **out,
                            nori_error *err)
{
    nori__bconv_form form = {.planes = node->inputs[0]->type.rank == 4,
                             .group = (size_t)nori__attr_i(node, "group", 1)};
    if (!nori__activation_read(node, &form.act)) {
        return nori__fail(err, NORI_ERROR_INTERNAL, "unknown activation");
    }
    if (like) {
        form.how = like->how;
        form.way = like->way;
    } else {
        choose(node, w, a, &form);
    }
    return nori__bconv_make(&form, w, b, a, out, err);
}

static nori_status bconv_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                 size_t *state_bytes, nori_error *err)
{
    nori__bconv *s;
    NORI__TRY(make_for(node, NULL, nori__cpu_default(node->inputs[1]),
                       nori__cpu_default(nori__cpu_value(node, 2)), a, &s, err));
    *state = s;
    *state_bytes = nori__bconv_bytes(s);
    return NORI_OK;
}

/* ---- one run ---- */

void nori__bconv_line(const nori__bconv_chunk *c, size_t pixels, size_t blocks,
                      const int64_t *offset, const float *x, size_t step, const float *w,
                      size_t line, size_t lines, float *y, size_t y_block,
                      const nori__block_finish *finish)
{
    const nori__kernels *kern = nori__kernels_get();
    size_t tiles = nori__div_up(pixels, kern->block_pixels), size = kern->block;
    size_t y_step = finish->step ? finish->step : size;
    /* While these weights are used, as many that come next are fetched, evenly: memory that is far
     * gives a line in about the time of some lanes, and no more. */
    size_t lanes = c->terms * c->lanes, part = blocks * size * sizeof(float), all = tiles * lines;
    size_t fetch_step = nori__div_up(part, all);
    const float *fetch = w + lanes * blocks * size;
    nori__block_finish f = *finish;
    for (size_t t = 0, p = 0; t < tiles; t++) {
        size_t end = pixels * (t + 1) / tiles, at = (line * tiles + t) * fetch_step * lanes;
        f.add = finish->add ? finish->add + p * y_step : NULL;
        kern->f32_block_tile(end - p, blocks, c->terms, c->lanes, offset + c->first, x + p * step,
                             step, w, fetch + at / sizeof(float), fetch_step, y + p * y_step, y_block,
                             &f);
        p = end;
    }
}

bool nori__bconv_window(const nori__bconv *s, const nori__node *node, const int64_t *in,
                        const int64_t *out, nori__block_window *g)
{
    int64_t kernel[2] = {(int64_t)s->kernel[0], (int64_t)s->kernel[1]};
    nori__window w;
    if (nori__window_read(node, NULL, 2, kernel, &w) != NORI_OK) {
        return false;
    }
    for (int d = 0; d < 2; d++) {
        int64_t size;
        if (nori__window_out(&w, NULL, d, in[d], &size) != NORI_OK || size != out[d] ||
            w.begin[d] < 0 || w.end[d] < 0) {
            return false;
        }
        g->in[d] = (size_t)in[d];
        g->out[d] = (size_t)size;
        g->kernel[d] = s->kernel[d];
        g->stride[d] = (size_t)w.stride[d];
        g->dilation[d] = (size_t)w.dilation[d];
        g->begin[d] = (size_t)w.begin[d];
    }
    return true;
}

static bool bconv_plan(const nori__bconv *s, const nori_call *call, nori__bconv_run *r,
                       size_t *bytes)
{
    const nori_tensor *x = call->in[0], *y = call->out[0];
    int threads = nori__way_threads(s->way, nori__cpu_threads(call));
    memset(r, 0, sizeof(*r));
    if (x->rank != (s->planes ? 4 : 5) ||
        !nori__bconv_window(s, call->node, x->dims + 2, y->dims + 2, &r->g)) {
        return false;
    }
    r->s = s;
    r->batch = (size_t)x->dims[0];
    r->x_blocks = (size_t)x->dims[1];
    r->x_plane = r->g.in[0] * r->g.in[1] * (s->planes ? 1 : s->block);
    r->y_plane = r->g.out[0] * r->g.out[1] * s->block;
    r->x_batch = r->x_blocks * r->x_plane;
    r->y_batch = (size_t)y->dims[1] * r->y_plane;
    if (y->count == 0) {
        *bytes = 0;
        return true;
    }
    bool deep = s->how == NORI__BCONV_DEPTHWISE;
    size_t each = deep ? s->kernel[0] * s->kernel[1] : s->lanes;
    /* Two vectors of products a cycle, one where each has a load; weights come from far. */
    double work = (double)y->count * (double)each / (double)(s->block * (deep ? 1 : 2)) +
                  (double)s->weights_bytes / 8;
    threads = work < (double)threads * THREAD_CYCLES ? (int)(work / THREAD_CYCLES) + 1 : threads;
    r->threads = threads;
    bool ok = is_winograd(s)                    ? nori__bconv_winograd_plan(r, threads)
              : s->how == NORI__BCONV_DEPTHWISE ? nori__bconv_depthwise_plan(r, threads)
                                                : nori__bconv_direct_plan(r, threads);
    r->grain = (int64_t)(UNIT_CYCLES / (work / (double)(r->batch * r->spans * r->shares) + 1)) + 1;
    r->offset_bytes = nori__cpu_round(r->offset_bytes);
    r->thread_bytes = nori__cpu_round(r->thread_bytes);
    return ok && nori__mul_size(r->thread_bytes, (size_t)threads, bytes) &&
           nori__add_size(*bytes, r->offset_bytes, bytes);
}

static size_t bconv_workspace(const void *state, const nori_call *call)
{
    nori__bconv_run r;
    size_t bytes;
    return bconv_plan(state, call, &r, &bytes) ? bytes : 0;
}

static nori_status run_with(const nori__bconv *s, nori_call *call)
{
    nori__bconv_run r;
    nori__cpu_scratch scratch;
    size_t bytes;
    if (!bconv_plan(s, call, &r, &bytes)) {
        return nori__fail(call->err, NORI_ERROR_LIMIT, "a convolution this large cannot be laid out");
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__cpu_take(call, bytes, &scratch));
    r.x = call->in[0]->data;
    r.y = call->out[0]->data;
    r.add = nori__cpu_has(call, 3) ? call->in[3]->data : NULL;
    r.offset = scratch.data;
    r.work = (char *)scratch.data + r.offset_bytes;
    nori__body body = is_winograd(s)                    ? nori__bconv_winograd_units
                      : s->how == NORI__BCONV_DEPTHWISE ? nori__bconv_depthwise_units
                                                        : nori__bconv_direct_units;
    if (s->how == NORI__BCONV_DIRECT) {
        nori__bconv_direct_offsets(&r);
    } else if (is_winograd(s)) {
        nori__bconv_winograd_offsets(&r);
    }
    nori__cpu_for(call->pool, r.threads, (int64_t)(r.batch * r.spans * r.shares), r.grain,
                 body, &r);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

/* Other weights than those that were packed: a caller gave them for this run. */
static nori_status run_given(const nori__bconv *s, nori_call *call, const nori_tensor *w,
                             const nori_tensor *b)
{
    const nori_tensor *was = s->from[0];
    nori__bconv *own;
    if (w->type != NORI_FLOAT || w->rank != 4 ||
        memcmp(w->dims, was->dims, 4 * sizeof(*w->dims)) != 0 ||
        (b && (b->type != NORI_FLOAT || b->count != w->dims[0]))) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "the weight given for this run has another shape than its default");
    }
    NORI__TRY(make_for(call->node, s, w, b, call->allocator, &own, call->err));
    nori_status status = run_with(own, call);
    nori__bconv_free(own, call->allocator);
    return status;
}

static nori_status bconv_run(const void *state, nori_call *call)
{
    const nori__bconv *s = state;
    const nori_tensor *b = nori__cpu_has(call, 2) ? call->in[2] : NULL;
    return call->in[1] == s->from[0] && b == s->from[1] ? run_with(s, call)
                                                         : run_given(s, call, call->in[1], b);
}

const nori__kernel nori__blocked_conv = {.size = sizeof(nori__kernel),
                                         .prepare = bconv_prepare,
                                         .workspace = bconv_workspace,
                                         .run = bconv_run,
                                         .release = bconv_release,
                                         .packed_inputs = 0x6};
