/* cpu_bexpand.c: a 1 x 1 convolution and the depthwise one that follows it, over channel blocks, rows
 * at a time: the many channels in between never leave the second cache.
 *
 * A unit is a stretch of output rows of one pair of blocks. It goes down in bands: the rows of the
 * pair that a band needs are made by the 1 x 1 convolution into scratch, where the last rows of the
 * band before are kept, then the depthwise one reads them. The other way, for channels that fit a cache:
 * all of the first one, into scratch, then all of the second. */
#include "providers/cpu/blocked.h"

#define BAND_BYTES (96 * 1024)
#define APART_GRAIN 4 /* depthwise units at a time */

typedef struct expand {
    nori__bconv *first, *second;
    const nori__way *way;
} expand;

static void expand_release(void *state, const nori_allocator *a)
{
    expand *s = state;
    if (s) {
        nori__bconv_free(s->first, a);
        nori__bconv_free(s->second, a);
        nori__release(a, s, sizeof(*s));
    }
}

static nori_status expand_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                  size_t *state_bytes, nori_error *err)
{
    expand *s = nori__alloc_zero(a, sizeof(*s));
    const nori_tensor *t[4];
    for (uint32_t i = 0; i < 4; i++) {
        t[i] = nori__value_as_is(nori__cpu_value(node, i + 1));
    }
    if (!s) {
        return nori__no_memory(err);
    }
    nori__bconv_form form[2] = {{.how = NORI__BCONV_DIRECT, .group = 1},
                                {.how = NORI__BCONV_DEPTHWISE, .group = (size_t)t[2]->dims[0]}};
    nori__layer l = nori__bconv_layer(node, t[2], 1);
    l.channels = t[0]->dims[1];
    s->way = nori__way_for(a, NORI__WAYS_EXPAND, &l);
    bool known = nori__activation_named(node, "expand_activation", "expand_params", &form[0].act) &&
                 nori__activation_read(node, &form[1].act);
    nori_status status =
        known ? NORI_OK : nori__fail(err, NORI_ERROR_INTERNAL, "unknown activation");
    status = status == NORI_OK ? nori__bconv_make(&form[0], t[0], t[1], a, &s->first, err) : status;
    status = status == NORI_OK ? nori__bconv_make(&form[1], t[2], t[3], a, &s->second, err) : status;
    if (status != NORI_OK) {
        expand_release(s, a);
        return status;
    }
    *state = s;
    *state_bytes = sizeof(*s) + nori__bconv_bytes(s->first) + nori__bconv_bytes(s->second);
    return NORI_OK;
}

typedef struct expand_run {
    const expand *s;
    const float *x;
    float *y;
    nori__block_window g;
    size_t batch, x_blocks, y_blocks;
    size_t stretch, stretches; /* output rows a unit; units to a plane */
    size_t band, rows;         /* output rows a band; rows of scratch */
    int threads;
    int64_t *offset;
    size_t offset_bytes, thread_bytes;
    char *work;
    nori__bconv_run apart[2];  /* the other way: both, and the channels in between */
    size_t between_bytes;
} expand_run;

/* Input rows that output rows [row, end) look at: [*from, *to). */
static void needed(const nori__block_window *g, size_t row, size_t end, size_t *from, size_t *to)
{
    size_t low = row * g->stride[0];
    size_t high = (end - 1) * g->stride[0] + (g->kernel[0] - 1) * g->dilation[0] + 1;
    *from = low > g->begin[0] ? low - g->begin[0] : 0;
    *from = *from < g->in[0] ? *from : g->in[0];
    *to = high > g->begin[0] ? high - g->begin[0] : 0;
    *to = *to < g->in[0] ? *to : g->in[0];
    *to = *to > *from ? *to : *from;
}

static bool apart_plan(const expand *s, expand_run *r, size_t *bytes)
{
    nori__bconv_run *a = &r->apart[0], *b = &r->apart[1];
    size_t c = s->first->block, in = r->g.in[0] * r->g.in[1] * c, out = r->g.out[0] * r->g.out[1] * c;
    *a = (nori__bconv_run){.s = s->first, .batch = r->batch, .x_blocks = r->x_blocks, .x_plane = in,
                           .x_batch = r->x_blocks * in, .y_plane = in, .y_batch = r->y_blocks * in,
                           .threads = r->threads};
    for (int d = 0; d < 2; d++) {
        a->g.in[d] = a->g.out[d] = r->g.in[d];
        a->g.kernel[d] = a->g.stride[d] = a->g.dilation[d] = 1;
    }
    *b = (nori__bconv_run){.s = s->second, .batch = r->batch, .x_blocks = r->y_blocks, .g = r->g,
                           .x_plane = in, .x_batch = r->y_blocks * in, .y_plane = out,
                           .y_batch = r->y_blocks * out, .threads = r->threads};
    if (!nori__bconv_direct_plan(a, r->threads) || !nori__bconv_depthwise_plan(b, r->threads) ||
        !nori__mul_size(r->batch * r->y_blocks * sizeof(float), in, &r->between_bytes)) {
        return false;
    }
    r->between_bytes = nori__cpu_round(r->between_bytes);
    return nori__add_size(r->between_bytes, r->offset_bytes, bytes);
}

/* Into how many stretches planes are cut so that the thread with most units has the fewest rows to
 * make: units are one or two blocks wide, and each makes the rows around it anew (which is half of
 * what a row costs). */
static size_t even_stretches(const expand_run *r, size_t threads, size_t extent)
{
    const nori__block_window *g = &r->g;
    size_t most = nori__div_up(g->out[0], 4), best = 1;
    size_t around = extent > g->stride[0] ? extent - g->stride[0] : 0;
    double least = 0;
    most = most < 4 * threads ? most : 4 * threads;
    for (size_t n = 1; n <= most; n++) {
        double units = (double)nori__div_up(r->batch * r->y_blocks * n, 2 * threads);
        size_t stretch = nori__div_up(g->out[0], n);
        double rows = units * (2.0 * (double)(stretch * g->stride[0]) + (double)around);
        if (n == 1 || rows <= least) {
            least = rows;
            best = n;
        }
    }
    return best;
}

static bool expand_plan(const expand *s, const nori_call *call, expand_run *r, size_t *bytes)
{
    const nori_tensor *x = call->in[0], *y = call->out[0];
    size_t c = s->first->block;
    size_t threads = (size_t)nori__way_threads(s->way, nori__cpu_threads(call));
    memset(r, 0, sizeof(*r));
    r->threads = (int)threads;
    *bytes = 0;
    if (!nori__bconv_window(s->second, call->node, x->dims + 2, y->dims + 2, &r->g)) {
        return false;
    }
    r->s = s;
    r->batch = (size_t)x->dims[0];
    r->x_blocks = (size_t)x->dims[1];
    r->y_blocks = (size_t)y->dims[1];
    if (y->count == 0) {
        return true;
    }
    const nori__block_window *g = &r->g;
    size_t extent = (g->kernel[0] - 1) * g->dilation[0] + 1, row_bytes = 2 * g->in[1] * c * 4;
    size_t rows = nori__way_span(s->way, BAND_BYTES) / row_bytes, least = extent + g->stride[0];
    rows = rows > least ? rows : least;
    r->band = (rows - extent) / g->stride[0] + 1;
    r->band = r->band < g->out[0] ? r->band : g->out[0];
    r->rows = (r->band - 1) * g->stride[0] + extent;
    r->stretch = nori__div_up(g->out[0], threads > 1 ? even_stretches(r, threads, extent) : 1);
    r->stretches = nori__div_up(g->out[0], r->stretch);
    r->offset_bytes = nori__cpu_round(s->first->terms * sizeof(int64_t));
    if (s->way->form == NORI__EXPAND_APART) {
        return apart_plan(s, r, bytes);
    }
    r->thread_bytes = nori__cpu_round(r->rows * row_bytes);
    return nori__mul_size(r->thread_bytes, threads, bytes) &&
           nori__add_size(*bytes, r->offset_bytes, bytes);
}

/* Rows [from, to) of the pair's channels into scratch, whose first row is row lo. */
static void make_rows(const expand_run *r, const float *x, size_t pair, size_t from, size_t to,
                      size_t lo, float *scratch)
{
    const nori__bconv *s = r->s->first;
    size_t c = s->block, line = r->g.in[1] * c, blocks = s->blocks - 2 * pair < 2 ? 1 : 2;
    size_t plane = r->rows * line, n = (to - from) * r->g.in[1];
    float *y = scratch + (from - lo) * line;
    const float *w = s->weights + 2 * pair * s->lanes * c;
    nori__block_finish f = {.low = s->act.low, .high = s->act.high};
    for (size_t i = 0; i < s->n_chunks; i++) {
        f.bias = i == 0 ? s->bias + 2 * pair * c : NULL;
        f.clamp = i + 1 == s->n_chunks && s->act.clamp;
        nori__bconv_line(&s->chunks[i], n, blocks, r->offset, x + from * line, c,
                         w + s->chunks[i].before * blocks * c, 0, 1, y, plane, &f);
    }
    for (size_t b = 0; s->act.apply && b < blocks; b++) {
        float *at = y + b * plane;
        nori__kernels_get()->f32_unary[s->act.function](n * c, at, at, s->act.p);
    }
}

/* Output rows [row, end) of the pair from scratch, which holds input rows [lo, hi). */
static void use_rows(const expand_run *r, size_t image, size_t pair, size_t row, size_t end,
                     size_t lo, size_t hi, const float *scratch)
{
    const nori__bconv *s = r->s->second;
    const nori__kernels *kern = nori__kernels_get();
    size_t c = s->block, line = r->g.out[1] * c, taps = s->kernel[0] * s->kernel[1];
    nori__block_window g = r->g; /* the same with rows counted from lo */
    g.begin[0] += lo;
    g.in[0] = hi - lo;
    for (size_t b = 2 * pair; b < 2 * pair + 2 && b < r->y_blocks; b++) {
        float *y = r->y + ((image * r->y_blocks + b) * r->g.out[0] + row) * line;
        nori__block_finish f = {.bias = s->bias + b * c, .clamp = s->act.clamp, .low = s->act.low,
                                .high = s->act.high};
        kern->f32_block_depthwise(&g, row, end,
                                  scratch + (b - 2 * pair) * r->rows * r->g.in[1] * c,
                                  s->weights + b * taps * c, y, &f);
        if (s->act.apply) {
            kern->f32_unary[s->act.function]((end - row) * line, y, y, s->act.p);
        }
    }
}

static void expand_units(void *user, int64_t begin, int64_t end, int thread)
{
    const expand_run *r = user;
    size_t pairs = r->s->first->pairs, line = r->g.in[1] * r->s->first->block;
    float *scratch = (float *)(void *)(r->work + (size_t)thread * r->thread_bytes);
    for (int64_t u = begin; u < end; u++) {
        size_t stretch = (size_t)u % r->stretches, pair = (size_t)u / r->stretches % pairs;
        size_t image = (size_t)u / r->stretches / pairs, lo = 0, hi = 0;
        size_t row = stretch * r->stretch, stop = row + r->stretch;
        const float *x = r->x + image * r->x_blocks * r->g.in[0] * line;
        stop = stop < r->g.out[0] ? stop : r->g.out[0];
        for (bool fresh = true; row < stop; row += r->band, fresh = false) {
            size_t last = row + r->band < stop ? row + r->band : stop, from, to;
            needed(&r->g, row, last, &from, &to);
            size_t kept = !fresh && hi > from ? hi - from : 0;
            for (size_t b = 0; kept > 0 && b < 2; b++) {
                float *plane = scratch + b * r->rows * line;
                memmove(plane, plane + (from - lo) * line, kept * line * sizeof(float));
            }
            if (from + kept < to) {
                make_rows(r, x, pair, from + kept, to, from, scratch);
            }
            lo = from;
            hi = to;
            use_rows(r, image, pair, row, last, lo, hi, scratch);
        }
    }
}

static void run_apart(nori_call *call, expand_run *r)
{
    nori__bconv_run *a = &r->apart[0], *b = &r->apart[1];
    a->x = r->x;
    a->y = (float *)(void *)r->work;
    a->offset = r->offset;
    b->x = a->y;
    b->y = r->y;
    nori__bconv_direct_offsets(a);
    nori__cpu_for(call->pool, r->threads, (int64_t)(a->batch * a->spans * a->shares), 1,
                 nori__bconv_direct_units, a);
    nori__cpu_for(call->pool, r->threads, (int64_t)(b->batch * b->spans * b->shares), APART_GRAIN,
                 nori__bconv_depthwise_units, b);
}

static size_t expand_workspace(const void *state, const nori_call *call)
{
    expand_run r;
    size_t bytes;
    return expand_plan(state, call, &r, &bytes) ? bytes : 0;
}

static nori_status expand_call(const void *state, nori_call *call)
{
    const expand *s = state;
    expand_run r;
    nori__cpu_scratch scratch;
    size_t bytes;
    if (!expand_plan(s, call, &r, &bytes)) {
        return nori__fail(call->err, NORI_ERROR_LIMIT, "a convolution this large cannot be laid out");
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__cpu_take(call, bytes, &scratch));
    r.x = call->in[0]->data;
    r.y = call->out[0]->data;
    r.offset = scratch.data;
    r.work = (char *)scratch.data + r.offset_bytes;
    if (s->way->form == NORI__EXPAND_APART) {
        run_apart(call, &r);
        nori__cpu_give(call, &scratch);
        return NORI_OK;
    }
    for (size_t t = 0; t < s->first->terms; t++) {
        r.offset[t] = (int64_t)(t * r.g.in[0] * r.g.in[1] * s->first->block);
    }
    nori__cpu_for(call->pool, r.threads,
                 (int64_t)(r.batch * s->first->pairs * r.stretches), 1, expand_units, &r);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__blocked_expand = {.size = sizeof(nori__kernel),
                                           .prepare = expand_prepare,
                                           .workspace = expand_workspace,
                                           .run = expand_call,
                                           .release = expand_release,
                                           .packed_inputs = 0x1e};
