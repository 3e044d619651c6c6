/* cpu_bstem.c: a network's first convolution and the MaxPool behind it, rows at a time: what lies between
 * is the largest value of most networks, and never leaves the second cache.
 *
 * A unit is a stretch of the pool's rows. It goes down in bands: the convolution makes the rows that a
 * band needs for all channels in scratch, where the last rows of the band before are kept. */
#include "providers/cpu/blocked.h"

#define BAND_BYTES (256 * 1024)

typedef struct stem {
    nori__bconv *conv;
    const nori__way *way;
    size_t stride[2], dilation[2], begin[2], end[2]; /* of the convolution */
} stem;

static void stem_release(void *state, const nori_allocator *a)
{
    stem *s = state;
    if (s) {
        nori__bconv_free(s->conv, a);
        nori__release(a, s, sizeof(*s));
    }
}

static nori_status stem_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                size_t *state_bytes, nori_error *err)
{
    stem *s = nori__alloc_zero(a, sizeof(*s));
    size_t n = 0;
    const int64_t *window = nori__attr_ints(node, "conv_window", &n);
    nori__bconv_form form = {.how = NORI__BCONV_DIRECT, .planes = true, .group = 1};
    if (!s) {
        return nori__no_memory(err);
    }
    nori_status status = NORI_OK;
    if (n != 8 || !nori__activation_named(node, "conv_activation", "conv_params", &form.act)) {
        status = nori__fail(err, NORI_ERROR_INTERNAL, "the first convolution has no window");
    }
    for (size_t d = 0; status == NORI_OK && d < 2; d++) {
        s->stride[d] = (size_t)window[d];
        s->dilation[d] = (size_t)window[2 + d];
        s->begin[d] = (size_t)window[4 + d];
        s->end[d] = (size_t)window[6 + d];
    }
    if (status == NORI_OK) {
        const nori_tensor *w = nori__value_as_is(node->inputs[1]);
        const nori__type *x = &node->inputs[0]->type;
        nori__layer l = nori__layer_unknown();
        l.batch = x->rank == 4 ? x->dims[0].value : -1;
        l.channels = w->dims[1];
        l.made = w->dims[0];
        for (int d = 0; d < 2; d++) {
            l.kernel[d] = w->dims[d + 2];
            l.stride[d] = (int64_t)s->stride[d];
            l.in[d] = x->rank == 4 ? x->dims[d + 2].value : -1;
        }
        s->way = nori__way_for(a, NORI__WAYS_STEM, &l);
        status = nori__bconv_make(&form, w, nori__value_as_is(nori__cpu_value(node, 2)), a, &s->conv,
                                  err);
    }
    if (status != NORI_OK) {
        stem_release(s, a);
        return status;
    }
    *state = s;
    *state_bytes = sizeof(*s) + nori__bconv_bytes(s->conv);
    return NORI_OK;
}

typedef struct stem_run {
    nori__bconv_run conv;      /* of an image whose rows go to scratch */
    nori__block_window pool;
    float *y;
    size_t y_blocks;
    size_t stretch, stretches; /* rows of the pool a unit; units to an image */
    size_t band;               /* rows of the pool a band */
    size_t rows;               /* of scratch */
    size_t scratch_bytes, thread_bytes;
} stem_run;

/* Sizes along one dimension; false: what the call brings does not agree with the node. */
static bool stem_sizes(const stem *s, const nori__window *w, const nori_call *call, int d, stem_run *r)
{
    size_t in = (size_t)call->in[0]->dims[d + 2], kernel = s->conv->kernel[d];
    size_t reach = (kernel - 1) * s->dilation[d] + 1, padded = in + s->begin[d] + s->end[d];
    nori__window pool = *w;
    int64_t made;
    if (padded < reach && in > 0) {
        return false;
    }
    size_t out = padded < reach ? 0 : (padded - reach) / s->stride[d] + 1;
    if (nori__window_out(&pool, NULL, d, (int64_t)out, &made) != NORI_OK ||
        made != call->out[0]->dims[d + 2] || pool.begin[d] < 0 || (out == 0 && made > 0)) {
        return false;
    }
    nori__block_window *g = &r->conv.g, *p = &r->pool;
    g->in[d] = in;
    g->out[d] = p->in[d] = out;
    g->kernel[d] = kernel;
    g->stride[d] = s->stride[d];
    g->dilation[d] = s->dilation[d];
    g->begin[d] = s->begin[d];
    p->out[d] = (size_t)made;
    p->kernel[d] = (size_t)pool.kernel[d];
    p->stride[d] = (size_t)pool.stride[d];
    p->dilation[d] = (size_t)pool.dilation[d];
    p->begin[d] = (size_t)pool.begin[d];
    return true;
}

static bool stem_plan(const stem *s, const nori_call *call, stem_run *r, size_t *bytes)
{
    const nori_tensor *x = call->in[0], *y = call->out[0];
    nori__bconv_run *c = &r->conv;
    nori__window w;
    size_t threads = (size_t)nori__cpu_threads(call), block = s->conv->block;
    memset(r, 0, sizeof(*r));
    *bytes = 0;
    if (x->rank != 4 || nori__window_read(call->node, NULL, 2, NULL, &w) != NORI_OK ||
        !stem_sizes(s, &w, call, 0, r) || !stem_sizes(s, &w, call, 1, r)) {
        return false;
    }
    if (y->count == 0) {
        return true;
    }
    const nori__block_window *p = &r->pool;
    size_t extent = (p->kernel[0] - 1) * p->dilation[0] + 1;
    size_t line = c->g.out[1] * s->conv->blocks * block * sizeof(float);
    size_t fit = nori__way_span(s->way, BAND_BYTES) / line;
    fit = fit > extent + p->stride[0] ? fit : extent + p->stride[0];
    r->stretches = threads > 1 ? nori__div_up(3 * threads, (size_t)x->dims[0]) : 1;
    r->stretch = nori__div_up(p->out[0], r->stretches);
    r->stretches = nori__div_up(p->out[0], r->stretch);
    r->band = (fit - extent) / p->stride[0] + 1;
    r->band = r->band < r->stretch ? r->band : r->stretch;
    r->rows = (r->band - 1) * p->stride[0] + extent;
    r->y_blocks = (size_t)y->dims[1];
    c->s = s->conv;
    c->batch = 1;
    c->x_blocks = (size_t)x->dims[1];
    c->x_plane = c->g.in[0] * c->g.in[1];
    c->x_batch = c->x_blocks * c->x_plane;
    c->y_plane = r->rows * c->g.out[1] * block;
    if (!nori__bconv_direct_rows_plan(c, r->rows) ||
        !nori__mul_size(r->rows, line, &r->scratch_bytes)) {
        return false;
    }
    r->scratch_bytes = nori__cpu_round(r->scratch_bytes);
    c->offset_bytes = nori__cpu_round(c->offset_bytes);
    return nori__add_size(r->scratch_bytes, nori__cpu_round(c->thread_bytes), &r->thread_bytes) &&
           nori__mul_size(r->thread_bytes, threads, bytes) &&
           nori__add_size(*bytes, c->offset_bytes, bytes);
}

/* Rows of the convolution that the pool's rows [row, end) look at: [*from, *to). */
static void looked_at(const nori__block_window *p, size_t row, size_t end, size_t *from, size_t *to)
{
    size_t low = row * p->stride[0];
    size_t high = (end - 1) * p->stride[0] + (p->kernel[0] - 1) * p->dilation[0] + 1;
    *from = low > p->begin[0] ? low - p->begin[0] : 0;
    *from = *from < p->in[0] ? *from : p->in[0];
    *to = high > p->begin[0] ? high - p->begin[0] : 0;
    *to = *to < p->in[0] ? *to : p->in[0];
    *to = *to > *from ? *to : *from;
}

/* The pool's rows [row, end) from scratch, which holds the convolution's rows [lo, hi). */
static void pool_rows(const stem_run *r, size_t image, size_t row, size_t end, size_t lo, size_t hi,
                      const float *scratch)
{
    const nori__kernels *kern = nori__kernels_get();
    size_t line = r->pool.out[1] * kern->block;
    nori__block_window p = r->pool; /* the same with rows counted from lo */
    p.begin[0] += lo;
    p.in[0] = hi - lo;
    for (size_t b = 0; b < r->y_blocks; b++) {
        float *y = r->y + ((image * r->y_blocks + b) * p.out[0] + row) * line;
        for (size_t h = row; h < end; h++, y += line) {
            kern->f32_block_pool(&p, true, h, scratch + b * r->conv.y_plane, y, NULL);
        }
    }
}

static void stem_units(void *user, int64_t begin, int64_t end, int thread)
{
    const stem_run *r = user;
    nori__bconv_run c = r->conv;
    char *memory = c.work + (size_t)thread * r->thread_bytes;
    size_t line = c.g.out[1] * c.s->block;
    c.y = (float *)(void *)memory;
    for (int64_t u = begin; u < end; u++) {
        size_t image = (size_t)u / r->stretches, row = (size_t)u % r->stretches * r->stretch;
        size_t stop = row + r->stretch < r->pool.out[0] ? row + r->stretch : r->pool.out[0];
        size_t lo = 0, hi = 0;
        for (bool fresh = true; row < stop; row += r->band, fresh = false) {
            size_t last = row + r->band < stop ? row + r->band : stop, from, to;
            looked_at(&r->pool, row, last, &from, &to);
            size_t kept = !fresh && hi > from ? hi - from : 0;
            for (size_t b = 0; kept > 0 && b < c.s->blocks; b++) {
                float *plane = c.y + b * c.y_plane;
                memmove(plane, plane + (from - lo) * line, kept * line * sizeof(float));
            }
            if (from + kept < to) {
                nori__bconv_direct_rows(&c, image, from + kept, to - from - kept, kept,
                                        (float *)(void *)(memory + r->scratch_bytes));
            }
            lo = from;
            hi = to;
            pool_rows(r, image, row, last, lo, hi, c.y);
        }
    }
}

static size_t stem_workspace(const void *state, const nori_call *call)
{
    stem_run r;
    size_t bytes;
    return stem_plan(state, call, &r, &bytes) ? bytes : 0;
}

static nori_status stem_call(const void *state, nori_call *call)
{
    stem_run r;
    nori__cpu_scratch scratch;
    size_t bytes;
    if (!stem_plan(state, call, &r, &bytes)) {
        return nori__fail(call->err, NORI_ERROR_LIMIT, "a convolution this large cannot be laid out");
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    NORI__TRY(nori__cpu_take(call, bytes, &scratch));
    r.conv.x = call->in[0]->data;
    r.y = call->out[0]->data;
    r.conv.offset = scratch.data;
    r.conv.work = (char *)scratch.data + r.conv.offset_bytes;
    nori__bconv_direct_offsets(&r.conv);
    nori__cpu_for(call->pool, nori__cpu_threads(call),
                 call->in[0]->dims[0] * (int64_t)r.stretches, 1, stem_units, &r);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__blocked_stem = {.size = sizeof(nori__kernel),
                                         .prepare = stem_prepare,
                                         .workspace = stem_workspace,
                                         .run = stem_call,
                                         .release = stem_release,
                                         .packed_inputs = 0x6};
