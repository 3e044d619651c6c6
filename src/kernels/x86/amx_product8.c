/* amx_product8.c: lines of bytes by blocks of 16 channels of 8-bit weights with AMX: a tile register is
 * sixteen lines of 64 bytes, or sixteen quads of sixteen channels as they lie packed; one instruction
 * multiplies two of them. Sums are exact, so they are those of every other level.
 *
 * Lines one distance apart are loaded from where they lie. Others, and terms of no whole tile, are laid
 * side by side first. Depths of less than a tile stay with the level below. */
#include "kernels/x86/avx512_put.h"

#define ROWS 16                   /* lines of a tile register */
#define LINES (2 * ROWS)
#define BLOCKS NORI__U8_BLOCKS_MAX
#define DEPTH 64                  /* bytes of a line in a tile register */
#define TILE (DEPTH * N)          /* bytes of weights in one */
#define SIDE 576                  /* bytes of a line laid side by side at once */
#define SIDE_STEP (SIDE + DEPTH)  /* no power of two: rows of a tile in sets of their own */
#define BELOW_LINES 12            /* of the level below, by two blocks */

/* Two runs of lines of one distance each. */
typedef struct runs {
    size_t n[2];
    const uint8_t *p[2];
    size_t step[2];
} runs;

typedef struct tile_config {
    uint8_t palette, start, none[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_config;

/* Compilers may not know that loading a tile reads memory: what was written before is there, and what is
 * written later comes later. */
ALWAYS void settle(void)
{
    __asm__ volatile("" ::: "memory");
}

/* Sums are in 0 to 3 (lines times blocks), lines in 4 and 5, weights in 6 and 7. */
static void configure(const size_t *n)
{
    tile_config c = {.palette = 1};
    const size_t rows[8] = {n[0], n[0], n[1], n[1], n[0], n[1], DEPTH / 4, DEPTH / 4};
    for (size_t i = 0; i < 8; i++) {
        c.rows[i] = (uint8_t)(rows[i] ? rows[i] : 1);
        c.bytes[i] = DEPTH;
    }
    settle();
    _tile_loadconfig(&c);
}

/* How many of the lines, at most a run, are one distance apart. */
static size_t run_length(const uint8_t *const *x, size_t n)
{
    size_t i = 2;
    n = n < ROWS ? n : ROWS;
    while (i < n && x[i] - x[i - 1] == x[1] - x[0]) {
        i++;
    }
    return i < n ? i : n;
}

static bool find_runs(size_t lines, const uint8_t *const *x, runs *r)
{
    r->n[0] = run_length(x, lines);
    r->n[1] = run_length(x + r->n[0], lines - r->n[0]);
    for (size_t i = 0, at = 0; i < 2; at += r->n[i++]) {
        r->p[i] = r->n[i] > 0 ? x[at] : NULL;
        r->step[i] = r->n[i] > 1 ? (size_t)(x[at + 1] - x[at]) : 0;
    }
    return r->n[0] + r->n[1] == lines;
}

/* n steps of DEPTH bytes; two and pair are constants where this is inlined. */
ALWAYS void steps(const bool two, const bool pair, size_t n, const runs *r, int64_t at,
                  const int8_t *w0, const int8_t *w1)
{
    const uint8_t *a0 = r->p[0] + at, *a1 = two ? r->p[1] + at : a0;
    for (size_t i = 0; i < n; i++, a0 += DEPTH, a1 += DEPTH, w0 += TILE, w1 += TILE) {
        _tile_loadd(6, w0, DEPTH);
        _tile_loadd(4, a0, r->step[0]);
        _tile_dpbusd(0, 4, 6);
        if (pair) {
            _tile_loadd(7, w1, DEPTH);
            _tile_dpbusd(1, 4, 7);
        }
        if (two) {
            _tile_loadd(5, a1, r->step[1]);
            _tile_dpbusd(2, 5, 6);
            if (pair) {
                _tile_dpbusd(3, 5, 7);
            }
        }
    }
}

static void multiply(bool pair, size_t n, const runs *r, int64_t at, const int8_t *w0,
                     const int8_t *w1)
{
    settle();
    if (r->n[1] > 0) {
        if (pair) {
            steps(true, true, n, r, at, w0, w1);
        } else {
            steps(true, false, n, r, at, w0, w1);
        }
    } else if (pair) {
        steps(false, true, n, r, at, w0, w1);
    } else {
        steps(false, false, n, r, at, w0, w1);
    }
    settle();
}

static void no_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/* Adds what weights of more than eight bits have beyond the first eight. */
static void add_rest(size_t lines, const int64_t *offset, const uint8_t *const *x,
                     const nori__u8_block *w, size_t c, int32_t sums[LINES][2][N])
{
    for (size_t e = 0; e < w->rests; e++) {
        int64_t at = offset[w->at[2 * e]] + 4 * (int64_t)w->at[2 * e + 1];
        __m512i v = _mm512_loadu_si512(w->rest + e * 4 * N);
        for (size_t i = 0; i < lines; i++) {
            int32_t four;
            memcpy(&four, x[i] + at, sizeof(four));
            __m512i s = _mm512_load_si512(sums[i][c]);
            _mm512_store_si512(sums[i][c], _mm512_dpbusd_epi32(s, _mm512_set1_epi32(four), v));
        }
    }
}

/* The sums of blocks b and b + 1 to their places. */
static void put_sums(const runs *r, size_t b, size_t blocks, const int64_t *offset,
                     const uint8_t *const *x, const nori__u8_block *w, void *y, size_t ldy,
                     const nori__u8_finish *f)
{
    _Alignas(64) int32_t sums[LINES][2][N];
    const size_t step = sizeof(sums[0]);
    _tile_stored(0, sums[0][0], step);
    if (blocks > 1) {
        _tile_stored(1, sums[0][1], step);
    }
    if (r->n[1] > 0) {
        _tile_stored(2, sums[r->n[0]][0], step);
        if (blocks > 1) {
            _tile_stored(3, sums[r->n[0]][1], step);
        }
    }
    for (size_t c = 0; c < blocks; c++) {
        __m512i start = _mm512_loadu_si512(f->start + (b + c) * N);
        add_rest(r->n[0] + r->n[1], offset, x, &w[b + c], c, sums);
        for (size_t i = 0; i < r->n[0] + r->n[1]; i++) {
            put(_mm512_add_epi32(start, _mm512_load_si512(sums[i][c])), (b + c) * N, i, y, ldy, f);
        }
    }
}

/* Bytes [from, from + n) of a line's terms, one behind the other; zeros up to a whole tile. Whole vectors
 * are stored: what is too much is what comes next, or the distance to the next line. */
static void lay(size_t from, size_t n, size_t term, const int64_t *offset, const uint8_t *x,
                uint8_t *out)
{
    size_t in = from % term;
    const int64_t *at = offset + from / term;
    for (uint8_t *end = out + n; out < end; at++, in = 0) {
        size_t left = term - in < (size_t)(end - out) ? term - in : (size_t)(end - out);
        const uint8_t *p = x + *at + in;
        for (; left > DEPTH; left -= DEPTH, p += DEPTH, out += DEPTH) {
            _mm512_storeu_si512(out, _mm512_loadu_si512(p));
        }
        __mmask64 m = ~(__mmask64)0 >> (DEPTH - left);
        _mm512_storeu_si512(out, _mm512_maskz_loadu_epi8(m, p));
        out += left;
    }
    if (n % DEPTH != 0) {
        _mm512_storeu_si512(out, _mm512_setzero_si512());
    }
}

/* A part of the depth from lines laid side by side: whole tiles, then what is left of a tile's depth,
 * whose weights are copied, for nothing behind them may be read. */
static void multiply_laid(size_t blocks, const runs *r, size_t bytes, const int8_t *w0,
                          const int8_t *w1)
{
    size_t whole = bytes / DEPTH, left = bytes % DEPTH;
    multiply(blocks > 1, whole, r, 0, w0, w1);
    if (left > 0) {
        _Alignas(64) int8_t rest[2][TILE];
        for (size_t b = 0; b < blocks; b++) {
            const int8_t *from = (b == 0 ? w0 : w1) + whole * TILE;
            for (size_t i = 0; i < DEPTH / 4; i++) {
                __m512i v = i < left / 4 ? _mm512_loadu_si512(from + i * 4 * N)
                                         : _mm512_setzero_si512();
                _mm512_store_si512(rest[b] + i * 4 * N, v);
            }
        }
        multiply(blocks > 1, 1, r, (int64_t)(whole * DEPTH), rest[0], rest[1]);
    }
}

/* Everything through lines laid side by side. */
static void tile_laid(size_t lines, size_t blocks, size_t terms, size_t quads,
                      const int64_t *offset, const uint8_t *const *x, const nori__u8_block *w,
                      void *y, size_t ldy, const nori__u8_finish *f)
{
    _Alignas(64) uint8_t side[LINES * SIDE_STEP];
    size_t term = 4 * quads, all = terms * term, first = lines < ROWS ? lines : ROWS;
    runs r = {{first, lines - first}, {side, side + first * SIDE_STEP}, {SIDE_STEP, SIDE_STEP}};
    configure(r.n);
    for (size_t b = 0; b < blocks; b += 2) {
        size_t nb = blocks - b < 2 ? 1 : 2;
        const int8_t *w0 = w[b].w, *w1 = w[b + nb - 1].w;
        no_sums();
        for (size_t from = 0; from < all; from += SIDE) {
            size_t n = all - from < SIDE ? all - from : SIDE;
            for (size_t i = 0; i < lines && (b == 0 || all > SIDE); i++) {
                lay(from, n, term, offset, x[i], side + i * SIDE_STEP);
            }
            multiply_laid(nb, &r, n, w0 + from * N, w1 + from * N);
        }
        put_sums(&r, b, nb, offset, x, w, y, ldy, f);
    }
    _tile_release();
}

/* Terms of whole tiles, loaded from where lines lie. */
static void tile_straight(const runs *r, size_t blocks, size_t terms, size_t quads,
                          const int64_t *offset, const uint8_t *const *x, const nori__u8_block *w,
                          void *y, size_t ldy, const nori__u8_finish *f)
{
    configure(r->n);
    for (size_t b = 0; b < blocks; b += 2) {
        size_t nb = blocks - b < 2 ? 1 : 2, n = 4 * quads / DEPTH;
        const int8_t *w0 = w[b].w, *w1 = w[b + nb - 1].w;
        no_sums();
        for (size_t t = 0; t < terms; t++, w0 += n * TILE, w1 += n * TILE) {
            multiply(nb > 1, n, r, offset[t], w0, w1);
        }
        put_sums(r, b, nb, offset, x, w, y, ldy, f);
    }
    _tile_release();
}

static void *moved(const nori__u8_finish *f, void *y, size_t at)
{
    return (char *)y + at * (f->form == NORI__U8_BYTES ? 1 : 4);
}

/* The level below, in its own tiles. */
static void tile_below(size_t lines, size_t blocks, size_t terms, size_t quads,
                       const int64_t *offset, const uint8_t *const *x, const nori__u8_block *w,
                       void *y, size_t ldy, const nori__u8_finish *finish)
{
    size_t tiles = (lines + BELOW_LINES - 1) / BELOW_LINES;
    for (size_t b = 0; b < blocks; b += 2) {
        size_t nb = blocks - b < 2 ? 1 : 2, from = b * N;
        nori__u8_finish f = *finish;
        f.start += from;
        f.scale = f.scale ? f.scale + from : NULL;
        f.shift = f.shift ? f.shift + from : NULL;
        f.channels = f.channels - from < nb * N ? f.channels - from : nb * N;
        for (size_t t = 0; t < tiles; t++) {
            size_t i0 = lines * t / tiles, i1 = lines * (t + 1) / tiles;
            nori__avx512_u8_tile(i1 - i0, nb, terms, quads, offset, x + i0, w + b,
                                 moved(&f, y, i0 * ldy + from), ldy, &f);
        }
    }
}

static void u8_tile(size_t lines, size_t blocks, size_t terms, size_t quads, const int64_t *offset,
                    const uint8_t *const *x, const nori__u8_block *w, void *y, size_t ldy,
                    const nori__u8_finish *f)
{
    runs r;
    if (terms * quads * 4 < DEPTH) {
        tile_below(lines, blocks, terms, quads, offset, x, w, y, ldy, f);
    } else if (quads * 4 % DEPTH == 0 && find_runs(lines, x, &r)) {
        tile_straight(&r, blocks, terms, quads, offset, x, w, y, ldy, f);
    } else {
        tile_laid(lines, blocks, terms, quads, offset, x, w, y, ldy, f);
    }
}

void nori__amx_product8(nori__kernels *k)
{
    k->u8_lines = LINES;
    k->u8_blocks = BLOCKS;
    k->u8_run = ROWS;
    k->u8_tile = u8_tile;
}
