/* bconv_winograd.c: 3 x 3 convolutions with stride 1 by Winograd's F(4 x 4, 3 x 3): 36 products of
 * matrices over tiles of 6 x 6 inputs instead of 144 multiplications a channel and tile. Small maps take
 * F(2 x 2, 3 x 3), 16 products instead of 36 multiplications: their weights, four times those of the
 * file, would take longer to come than the products; these are 1.8 times as large.
 *
 * A unit is some tiles by a share of the output pairs: it transforms its tiles' input for all
 * channels into v[position][block][tile], then for each pair multiplies position by position into
 * m[position][2][tile] and transforms back with what the convolution is joined with. Weights were
 * transformed when they were packed, in double.
 *
 * Errors, as a share of the largest output, for 16 to 512 channels of random values: below 5e-6
 * (direct sums: below 1e-6); tests/test_cpu_blocked.c holds them to that. */
#include "plan/packed.h"
#include "providers/cpu/blocked.h"

/* Bytes of transformed input a unit keeps: it stays in the second cache. */
#define V_BYTES (512 * 1024)
#define TRANSFORM 4.2 /* cycles of a position and block, in or out */

/* Outputs of a tile's side, and products of a tile. */
static size_t tile_of(const nori__bconv *s)
{
    return s->how == NORI__BCONV_WINOGRAD2 ? 2 : 4;
}

static size_t positions_of(const nori__bconv *s)
{
    size_t side = tile_of(s) + 2;
    return side * side;
}

static size_t tiles_along(const nori__bconv_run *r, int d)
{
    return nori__div_up(r->g.out[d], tile_of(r->s));
}

/* ---- weights ---- */

/* Channels whose weights are turned at a time: 9 KB of the widest vectors. */
#define PACK_CHANNELS 16

/* Weights of block b, rows of them from w on, to u: vectors of all channels for each position in turn. */
static void pack_block(const nori__bconv *s, const float *w, size_t rows, float *u, size_t width)
{
    const nori__kernels *kern = nori__kernels_get();
    float turned[PACK_CHANNELS * 9 * NORI__BLOCK_MAX];
    size_t place[PACK_CHANNELS * 9];
    for (size_t q = 0; q < PACK_CHANNELS * 9; q++) {
        place[q] = q * s->block;
    }
    for (size_t i = 0; i < s->per_group; i += PACK_CHANNELS) {
        size_t n = s->per_group - i < PACK_CHANNELS ? s->per_group - i : PACK_CHANNELS;
        kern->f32_block_weights(rows, n * 9, w + i * 9, s->per_group * 9, place, turned);
        kern->f32_winograd_weights(tile_of(s), n, turned, u + i * width, width, s->per_group * width);
    }
}

/* [pair][position][channel][1 or 2 blocks]. */
float *nori__bconv_winograd_pack(const nori__bconv *s, const nori_allocator *a, const float *w,
                                 size_t *bytes)
{
    size_t c = s->block, positions = positions_of(s), count;
    float *out = NULL;
    bool ready = false;
    if (!nori__mul_size(s->blocks * c * positions, s->per_group, &count) ||
        !nori__mul_size(count, sizeof(float), bytes) || !(out = nori__packed(a, *bytes, &ready))) {
        return NULL;
    }
    for (size_t b = 0; !ready && b < s->blocks; b++) {
        size_t p = b / 2, width = (s->blocks - 2 * p < 2 ? 1 : 2) * c, o = b * c;
        pack_block(s, w + o * s->per_group * 9, s->made - o < c ? s->made - o : c,
                   out + p * 2 * c * positions * s->per_group + b % 2 * c, width);
    }
    return out;
}

/* ---- units ---- */

static size_t v_step(const nori__bconv_run *r)
{
    /* One vector more than needed: the positions must not fall on the same cache sets. */
    return (r->x_blocks * r->span + 1) * r->s->block;
}

static size_t m_step(const nori__bconv_run *r)
{
    return (2 * r->span + 1) * r->s->block;
}

bool nori__bconv_winograd_plan(nori__bconv_run *r, int threads)
{
    size_t c = r->s->block, tile = nori__kernels_get()->block_pixels, positions = positions_of(r->s);
    size_t tiles = tiles_along(r, 0) * tiles_along(r, 1);
    size_t each = positions * r->x_blocks * c * sizeof(float);
    size_t most = nori__way_span(r->s->way, V_BYTES) / each / tile * tile;
    most = most > tile ? most : tile;
    nori__bconv_cut_up how = {
        .lines = tiles, .most = most, .quantum = tiles > 2 * tile ? tile : 1, .pairs = r->s->pairs,
        .cost = {.pair = (double)positions * ((double)r->s->lanes + 2 * TRANSFORM),
                 .weights = (double)(positions * r->s->lanes * c) / 2,
                 .line = (double)(positions * r->x_blocks) * TRANSFORM}};
    nori__bconv_split(r, &how, threads);
    r->offset_bytes = r->s->terms * sizeof(int64_t);
    return nori__mul_size((v_step(r) + m_step(r)) * positions, sizeof(float), &r->thread_bytes);
}

void nori__bconv_winograd_offsets(nori__bconv_run *r)
{
    for (size_t t = 0; t < r->s->terms; t++) {
        r->offset[t] = (int64_t)(t * r->span * r->s->block);
    }
}

/* The rows (columns) of the patch at tile t that lie inside; at: the first of them in the input. */
static size_t inside(const nori__bconv_run *r, int d, size_t t, size_t range[2])
{
    size_t tile = tile_of(r->s), side = tile + 2;
    size_t first = t * tile, begin = r->g.begin[d], size = r->g.in[d];
    range[0] = first < begin ? begin - first : 0;
    range[1] = first + side <= begin + size ? side : first < begin + size ? begin + size - first : 0;
    range[0] = range[0] < range[1] ? range[0] : range[1];
    return range[0] < range[1] ? first + range[0] - begin : 0;
}

static void transform_inputs(const nori__bconv_run *r, const float *x, size_t first, size_t n,
                             float *v)
{
    const nori__kernels *kern = nori__kernels_get();
    size_t c = r->s->block, across = tiles_along(r, 1), row = r->g.in[1] * c, tile = tile_of(r->s);
    for (size_t b = 0; b < r->x_blocks; b++) {
        for (size_t t = 0; t < n; t++) {
            nori__block_patch p;
            size_t h = inside(r, 0, (first + t) / across, p.row);
            size_t w = inside(r, 1, (first + t) % across, p.col);
            kern->f32_winograd_in(tile, x + b * r->x_plane + h * row + w * c, row, &p,
                                  v + (b * r->span + t) * c, v_step(r));
        }
    }
}

static void transform_outputs(const nori__bconv_run *r, const float *m, size_t at, size_t first,
                              size_t n, const float *bias)
{
    const nori__kernels *kern = nori__kernels_get();
    const nori__bconv *s = r->s;
    size_t c = s->block, across = tiles_along(r, 1), row = r->g.out[1] * c, tile = tile_of(s);
    nori__block_finish f = {.bias = bias, .clamp = s->act.clamp, .low = s->act.low,
                            .high = s->act.high};
    for (size_t t = 0; t < n; t++) {
        size_t h = (first + t) / across * tile, w = (first + t) % across * tile;
        size_t rows = r->g.out[0] - h < tile ? r->g.out[0] - h : tile;
        size_t cols = r->g.out[1] - w < tile ? r->g.out[1] - w : tile, to = at + h * row + w * c;
        f.add = r->add ? r->add + to : NULL;
        kern->f32_winograd_out(tile, m + t * c, m_step(r), rows, cols, r->y + to, row, &f);
        for (size_t i = 0; s->act.apply && i < rows; i++) {
            float *y = r->y + to + i * row;
            kern->f32_unary[s->act.function](cols * c, y, y, s->act.p);
        }
    }
}

void nori__bconv_winograd_units(void *run, int64_t begin, int64_t end, int thread)
{
    const nori__bconv_run *r = run;
    const nori__bconv *s = r->s;
    size_t c = s->block, tiles = tiles_along(r, 0) * tiles_along(r, 1), positions = positions_of(s);
    float *v = (float *)(void *)(r->work + (size_t)thread * r->thread_bytes);
    float *m = v + positions * v_step(r), zero[2 * NORI__BLOCK_MAX] = {0};
    for (int64_t u = begin; u < end; u++) {
        size_t image, span, share;
        nori__bconv_unit(r, u, &image, &span, &share);
        size_t first = span * r->span, n = tiles - first < r->span ? tiles - first : r->span;
        transform_inputs(r, r->x + image * r->x_batch, first, n, v);
        for (size_t p = share * r->share; p < (share + 1) * r->share && p < s->pairs; p++) {
            size_t blocks = s->blocks - 2 * p < 2 ? 1 : 2;
            const float *w = s->weights + p * 2 * c * positions * s->per_group;
            for (size_t t = 0; t < positions; t++, w += s->per_group * blocks * c) {
                for (size_t i = 0; i < s->n_chunks; i++) {
                    const nori__bconv_chunk *k = &s->chunks[i];
                    nori__block_finish f = {.bias = i == 0 ? zero : NULL};
                    nori__bconv_line(k, n, blocks, r->offset, v + t * v_step(r), c,
                                     w + k->before * blocks * c, 0, 1, m + t * m_step(r), r->span * c,
                                     &f);
                }
            }
            for (size_t b = 0; b < blocks; b++) {
                transform_outputs(r, m + b * r->span * c,
                                  image * r->y_batch + (2 * p + b) * r->y_plane, first, n,
                                  s->bias + (2 * p + b) * c);
            }
        }
    }
}
