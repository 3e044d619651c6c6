/* bconv_direct.c: convolutions over channel blocks as lists of terms: any kernel, stride, dilation,
 * group; 1 x 1 without pads or strides goes over the plane as one line.
 *
 * A unit is a span of output rows (of pixels, where the plane is one line) by a share of the output
 * pairs. Where the window reaches into pads the unit copies its input rows with their pads first:
 * little against the products, and the tiles need no tests. Where rows are too short for good tiles
 * the copy is made once for each kernel column and place within the vertical stride, without what
 * that column does not look at: then a span of rows is one line. Within a unit each pair's weights pass
 * through the cache once, in chunks that meet all pixels before the next chunk comes. */
#include "providers/cpu/blocked.h"

/* Input bytes of a unit: they and the outputs stay in the second cache. With many weights a unit is
 * larger: they are read again for every one. */
#define SPAN_BYTES (256 * 1024)
#define LARGE_SPAN_BYTES (768 * 1024)
#define MANY_WEIGHTS (1024 * 1024)

static size_t at_least(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Inputs along dimension d that outputs look at, pads included. */
static size_t reach_of(const nori__block_window *g, int d)
{
    return (g->out[d] - 1) * g->stride[d] + (g->kernel[d] - 1) * g->dilation[d] + 1;
}

/* Sizes of a unit's copy, where there is one. */
static bool copy_sizes(nori__bconv_run *r, size_t width)
{
    const nori__block_window *g = &r->g;
    size_t total = 0, pixel = r->x_blocks * (r->s->planes ? 1 : r->s->block) * sizeof(float);
    if (r->gathered) {
        r->copy_width = g->out[1];
        r->copy_rows = r->span + (g->kernel[0] - 1) * g->dilation[0] / g->stride[0];
        return nori__mul_size(r->copy_width * g->kernel[1] * g->stride[0], r->copy_rows, &total) &&
               nori__mul_size(total, pixel, &r->thread_bytes);
    }
    if (r->copied) {
        r->copy_width = width;
        r->copy_rows = (r->span - 1) * g->stride[0] + (g->kernel[0] - 1) * g->dilation[0] + 1;
        return nori__mul_size(r->copy_width, r->copy_rows, &total) &&
               nori__mul_size(total, pixel, &r->thread_bytes);
    }
    return true;
}

bool nori__bconv_direct_plan(nori__bconv_run *r, int threads)
{
    const nori__bconv *s = r->s;
    const nori__block_window *g = &r->g;
    size_t c = s->planes ? 1 : s->block, tile = nori__kernels_get()->block_pixels;
    size_t reach[2];
    r->copied = false;
    for (int d = 0; d < 2; d++) {
        reach[d] = reach_of(g, d);
        r->copied = r->copied || g->begin[d] > 0 || reach[d] > g->in[d];
    }
    r->flat = !r->copied && !s->planes && s->kernel[0] * s->kernel[1] == 1 && g->stride[0] == 1 &&
              g->stride[1] == 1 && reach[0] == g->in[0] && reach[1] == g->in[1];
    size_t row_tiles = nori__div_up(g->out[1], tile);
    r->gathered = !r->flat && !s->planes && g->out[0] > 1 &&
                  (s->way->lines == NORI__LINES_BY_WIDTH
                       ? s->blocks > 2 && 4 * g->out[1] < 3 * tile * row_tiles
                       : s->way->lines == NORI__LINES_BY_COLUMN);
    r->step = r->flat || r->gathered ? c : g->stride[1] * c;
    size_t lines = r->flat ? g->out[0] * g->out[1] : g->out[0];
    size_t line = r->flat ? 1 : r->gathered ? g->kernel[1] * g->stride[0] * g->out[1]
                                            : g->stride[0] * (r->copied ? reach[1] : g->in[1]);
    size_t span_bytes = s->weights_bytes > MANY_WEIGHTS ? LARGE_SPAN_BYTES : SPAN_BYTES;
    span_bytes = nori__way_span(s->way, span_bytes);
    size_t most = at_least(span_bytes / (line * r->x_blocks * c * sizeof(float)),
                           r->flat ? 4 * tile : 1);
    size_t pixels = r->flat ? 1 : g->out[1], in = line * r->x_blocks * c; /* floats of a line */
    nori__bconv_cut_up how = {
        .lines = lines, .most = most, .quantum = r->flat ? tile : 1, .pairs = s->pairs * s->group,
        .cost = {.pair = (double)(pixels * s->lanes), .weights = (double)(s->lanes * s->block) / 2,
                 .line = (double)in / (r->copied ? 4 : 16)}};
    nori__bconv_split(r, &how, threads);
    r->offset_bytes = s->terms * sizeof(int64_t);
    return copy_sizes(r, reach[1]);
}

bool nori__bconv_direct_rows_plan(nori__bconv_run *r, size_t rows)
{
    const nori__block_window *g = &r->g;
    size_t width = reach_of(g, 1);
    r->copied = g->begin[0] > 0 || g->begin[1] > 0 || reach_of(g, 0) > g->in[0] || width > g->in[1];
    r->step = g->stride[1] * (r->s->planes ? 1 : r->s->block);
    r->span = rows;
    r->offset_bytes = r->s->terms * sizeof(int64_t);
    return copy_sizes(r, width);
}

/* Floats between planes and rows of what tiles read. */
static size_t plane_step(const nori__bconv_run *r)
{
    if (r->gathered) {
        return r->g.kernel[1] * r->g.stride[0] * r->copy_rows * r->copy_width * r->s->block;
    }
    return r->copied ? r->copy_rows * r->copy_width * (r->s->planes ? 1 : r->s->block) : r->x_plane;
}

static size_t row_step(const nori__bconv_run *r)
{
    return (r->copied ? r->copy_width : r->g.in[1]) * (r->s->planes ? 1 : r->s->block);
}

void nori__bconv_direct_offsets(nori__bconv_run *r)
{
    const nori__bconv *s = r->s;
    size_t taps = s->kernel[0] * s->kernel[1], c = s->planes ? 1 : s->block;
    for (size_t t = 0; t < s->terms; t++) {
        size_t plane = t / taps, h = t % taps / s->kernel[1], w = t % s->kernel[1];
        if (r->gathered) {
            size_t down = h * r->g.dilation[0], stride = r->g.stride[0];
            size_t row = (w * stride + down % stride) * r->copy_rows + down / stride;
            r->offset[t] = (int64_t)(plane * plane_step(r) + row * r->copy_width * c);
            continue;
        }
        r->offset[t] = (int64_t)(plane * plane_step(r) + h * r->g.dilation[0] * row_step(r) +
                                 w * r->g.dilation[1] * c);
    }
}

/* Rows that output rows [row, row + rows) look at, with pads, into out. */
static void copy_rows(const nori__bconv_run *r, const float *x, size_t row, size_t rows, float *out)
{
    const nori__block_window *g = &r->g;
    size_t c = r->s->planes ? 1 : r->s->block, width = r->copy_width * c, left = g->begin[1] * c;
    size_t inner = (r->copy_width - g->begin[1] < g->in[1] ? r->copy_width - g->begin[1] : g->in[1]) * c;
    size_t used = (rows - 1) * g->stride[0] + (g->kernel[0] - 1) * g->dilation[0] + 1;
    for (size_t b = 0; b < r->x_blocks; b++) {
        float *to = out + b * plane_step(r);
        for (size_t h = 0; h < used; h++, to += width) {
            size_t in = row * g->stride[0] + h; /* counted from the first pad */
            if (in < g->begin[0] || in - g->begin[0] >= g->in[0]) {
                memset(to, 0, width * sizeof(float));
                continue;
            }
            memset(to, 0, left * sizeof(float));
            memcpy(to + left, x + b * r->x_plane + (in - g->begin[0]) * g->in[1] * c,
                   inner * sizeof(float));
            memset(to + left + inner, 0, (width - left - inner) * sizeof(float));
        }
    }
}

/* The pixels that kernel column w sees in one padded input row. x: the row; NULL: it is padding. */
static void gather_row(const nori__bconv_run *r, const float *x, size_t w, float *out)
{
    const nori__block_window *g = &r->g;
    size_t c = r->s->block, at = w * g->dilation[1]; /* counted from the first pad */
    for (size_t j = 0; j < g->out[1]; j++, at += g->stride[1], out += c) {
        if (!x || at < g->begin[1] || at - g->begin[1] >= g->in[1]) {
            memset(out, 0, c * sizeof(float));
        } else {
            memcpy(out, x + (at - g->begin[1]) * c, c * sizeof(float));
        }
    }
}

static void gather_rows(const nori__bconv_run *r, const float *x, size_t row, float *out)
{
    const nori__block_window *g = &r->g;
    size_t c = r->s->block, line = g->in[1] * c;
    for (size_t b = 0; b < r->x_blocks; b++, x += r->x_plane) {
        for (size_t w = 0; w < g->kernel[1]; w++) {
            for (size_t place = 0; place < g->stride[0]; place++) {
                for (size_t h = 0; h < r->copy_rows; h++, out += r->copy_width * c) {
                    size_t in = (row + h) * g->stride[0] + place;
                    bool inside = in >= g->begin[0] && in - g->begin[0] < g->in[0];
                    gather_row(r, inside ? x + (in - g->begin[0]) * line : NULL, w, out);
                }
            }
        }
    }
}

/* One pair of output blocks over a unit's rows. */
static void pair(const nori__bconv_run *r, size_t index, size_t image, size_t first, size_t lines,
                 const float *x)
{
    const nori__bconv *s = r->s;
    size_t c = s->block, group = index / s->pairs, p = index % s->pairs;
    size_t blocks = s->blocks - 2 * p < 2 ? 1 : 2, channel = group * s->per_group;
    const float *w = s->weights + (group * s->blocks + 2 * p) * s->lanes * c;
    size_t block = group * s->blocks + 2 * p, width = r->flat ? 1 : r->g.out[1];
    size_t at = image * r->y_batch + block * r->y_plane + first * width * c;
    nori__block_finish f = {.low = s->act.low, .high = s->act.high};
    x += s->planes ? 0 : channel / c * plane_step(r) + channel % c;
    for (size_t i = 0; i < s->n_chunks; i++) {
        const nori__bconv_chunk *k = &s->chunks[i];
        bool last = i + 1 == s->n_chunks;
        f.bias = i == 0 ? s->bias + block * c : NULL;
        f.clamp = last && s->act.clamp;
        f.add = last && r->add ? r->add + at : NULL;
        if (r->flat || r->gathered) {
            nori__bconv_line(k, lines * width, blocks, r->offset, x, r->step, w + k->before * blocks * c,
                             0, 1, r->y + at, r->y_plane, &f);
            continue;
        }
        for (size_t l = 0; l < lines; l++) {
            f.add = last && r->add ? r->add + at + l * width * c : NULL;
            nori__bconv_line(k, width, blocks, r->offset,
                             x + l * r->g.stride[0] * row_step(r), r->step,
                             w + k->before * blocks * c, l, lines, r->y + at + l * width * c, r->y_plane, &f);
        }
    }
    for (size_t b = 0; s->act.apply && b < blocks; b++) {
        float *y = r->y + at + b * r->y_plane;
        nori__kernels_get()->f32_unary[s->act.function](lines * width * c, y, y, s->act.p);
    }
}

void nori__bconv_direct_units(void *run, int64_t begin, int64_t end, int thread)
{
    const nori__bconv_run *r = run;
    const nori__bconv *s = r->s;
    size_t lines = r->flat ? r->g.out[0] * r->g.out[1] : r->g.out[0];
    float *copy = (float *)(void *)(r->work + (size_t)thread * r->thread_bytes);
    for (int64_t u = begin; u < end; u++) {
        size_t image, span, share, all = s->pairs * s->group;
        nori__bconv_unit(r, u, &image, &span, &share);
        size_t first = span * r->span, n = lines - first < r->span ? lines - first : r->span;
        const float *x = r->x + image * r->x_batch;
        if (r->gathered) {
            gather_rows(r, x, first, copy);
            x = copy;
        } else if (r->copied) {
            copy_rows(r, x, first, n, copy);
            x = copy;
        } else {
            x += r->flat ? first * r->step : first * r->g.stride[0] * row_step(r);
        }
        for (size_t p = share * r->share; p < (share + 1) * r->share && p < all; p++) {
            pair(r, p, image, first, n, x);
        }
    }
}

void nori__bconv_direct_rows(const nori__bconv_run *r, size_t image, size_t first, size_t n, size_t to,
                             float *copy)
{
    const float *x = r->x + image * r->x_batch;
    if (r->copied) {
        copy_rows(r, x, first, n, copy);
        x = copy;
    } else {
        x += first * r->g.stride[0] * row_step(r);
    }
    for (size_t p = 0; p < r->s->pairs * r->s->group; p++) {
        pair(r, p, 0, to, n, x);
    }
}
