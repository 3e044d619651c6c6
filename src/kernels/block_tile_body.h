/* block_tile_body.h: the sums of convolutions over activations in channel blocks; see f32_block_tile
 * in kernels.h. Included once a level, after simd.h.
 *
 * A tile is some pixels by two blocks of output channels (or one): with 32 registers 14 pixels keep
 * 28 sums, two vectors of weights and a broadcast value; with 16 registers 6 pixels keep 12. Each
 * number of pixels is compiled apart. Pixels are addressed in threes from one pointer, since
 * addresses of the form p + step and p + 2 step cost nothing. */
#if V_REGISTERS == 32
#define TILE_PIXELS 14
#else
#define TILE_PIXELS 6
#endif

#define TILE_TURN 2 /* lanes at a time; meanwhile the pixels of the next term are asked for */

ALWAYS float tile_at(const char *p, size_t which, size_t step)
{
    return *(const float *)(const void *)(which == 0 ? p : which == 1 ? p + step : p + 2 * step);
}

/* pixels and blocks are constants where this is inlined. */
ALWAYS void tile_body(const size_t pixels, const size_t blocks, size_t terms, size_t lanes,
                      const int64_t *offset, const float *x, size_t step, const float *w,
                      const float *fetch, size_t fetch_step, float *y, size_t y_block,
                      const nori__block_finish *f)
{
    vf s[TILE_PIXELS][2];
    size_t next = f->step ? f->step : VL;
    UNROLL
    for (size_t i = 0; i < pixels; i++) {
        UNROLL
        for (size_t b = 0; b < blocks; b++) {
            s[i][b] = f->bias ? v_load(f->bias + b * VL) : v_load(y + b * y_block + i * next);
        }
    }
    const char *next_line = (const char *)(const void *)fetch;
    step *= sizeof(float);
    if (lanes == 1) { /* plain images: a term is a multiplication */
        size_t three = 3 * step;
        for (size_t t = 0; t < terms; t++, w += blocks * VL) {
            const char *p = (const char *)(const void *)(x + offset[t]);
            NORI__PREFETCH(next_line);
            next_line += fetch_step;
            vf w0 = v_load(w), w1 = blocks > 1 ? v_load(w + VL) : w0;
            UNROLL
            for (size_t i = 0; i < pixels; i++) {
                vf v = v_set(tile_at(p, i % 3, step));
                V_HOLD(v);
                s[i][0] = v_fma(v, w0, s[i][0]);
                if (blocks > 1) {
                    s[i][1] = v_fma(v, w1, s[i][1]);
                }
                p += i % 3 == 2 ? three : 0;
            }
        }
        terms = 0;
    }
    for (size_t t = 0; t < terms; t++) {
        const char *p0 = (const char *)(const void *)(x + offset[t]);
        const char *p3 = p0 + 3 * step, *p6 = p3 + 3 * step, *p9 = p6 + 3 * step;
        const char *p12 = p9 + 3 * step;
        size_t l = 0;
        if (VL > 4 && blocks > 1 && pixels > TILE_PIXELS / 2) {
            /* Each addition of an address and each line asked for stands in the way of a product. */
            const size_t share = (pixels * TILE_TURN + VL - 1) / VL;
            const char *near = (const char *)(const void *)(x + offset[t + 1 < terms ? t + 1 : t]);
            for (; l + TILE_TURN <= lanes; l += TILE_TURN, w += TILE_TURN * blocks * VL) {
                NORI__PREFETCH(next_line);
                if (fetch_step > 32) { /* more than half a line a lane */
                    NORI__PREFETCH(next_line + fetch_step);
                }
                next_line += TILE_TURN * fetch_step;
                UNROLL
                for (size_t i = 0; i < share; i++) {
                    V_NEAR(near + i * step);
                }
                near += share * step;
                UNROLL
                for (size_t u = 0; u < TILE_TURN; u++) {
                    const float *at = w + u * blocks * VL;
                    vf w0 = v_load(at), w1 = v_load(at + VL);
                    UNROLL
                    for (size_t i = 0; i < pixels; i++) {
                        const char *p = i < 3 ? p0 : i < 6 ? p3 : i < 9 ? p6 : i < 12 ? p9 : p12;
                        vf v = v_set(tile_at(p + u * sizeof(float), i % 3, step));
                        V_HOLD(v);
                        s[i][0] = v_fma(v, w0, s[i][0]);
                        s[i][1] = v_fma(v, w1, s[i][1]);
                    }
                    V_STEP;
                }
                p0 += TILE_TURN * sizeof(float);
                p3 += TILE_TURN * sizeof(float);
                p6 += TILE_TURN * sizeof(float);
                p9 += TILE_TURN * sizeof(float);
                p12 += TILE_TURN * sizeof(float);
            }
        }
        for (; l < lanes; l++, w += blocks * VL) {
            NORI__PREFETCH(next_line);
            next_line += fetch_step;
            vf w0 = v_load(w), w1 = blocks > 1 ? v_load(w + VL) : w0;
            UNROLL
            for (size_t i = 0; i < pixels; i++) {
                const char *p = i < 3 ? p0 : i < 6 ? p3 : i < 9 ? p6 : i < 12 ? p9 : p12;
                vf v = v_set(tile_at(p, i % 3, step));
                V_HOLD(v);
                s[i][0] = v_fma(v, w0, s[i][0]);
                if (blocks > 1) {
                    s[i][1] = v_fma(v, w1, s[i][1]);
                }
            }
            p0 += sizeof(float);
            p3 += sizeof(float);
            p6 += sizeof(float);
            p9 += sizeof(float);
            p12 += sizeof(float);
        }
    }
    /* Else a compiler keeps all addresses of the beginning, on the stack, for the end. */
    V_FORGET(y);
    V_FORGET(next);
    V_FORGET(y_block);
    if (f->add) {
        UNROLL
        for (size_t i = 0; i < pixels; i++) {
            UNROLL
            for (size_t b = 0; b < blocks; b++) {
                s[i][b] = v_add(s[i][b], v_load(f->add + b * y_block + i * next));
            }
        }
    }
    if (f->clamp) {
        vf low = v_set(f->low), high = v_set(f->high);
        UNROLL
        for (size_t i = 0; i < pixels; i++) {
            UNROLL
            for (size_t b = 0; b < blocks; b++) {
                s[i][b] = v_clamp(s[i][b], low, high);
            }
        }
    }
    UNROLL
    for (size_t i = 0; i < pixels; i++) {
        UNROLL
        for (size_t b = 0; b < blocks; b++) {
            v_store(y + b * y_block + i * next, s[i][b]);
        }
    }
}

/* Functions of their own: one with all of them inside takes a compiler half a minute. */
typedef void tile_fn(size_t terms, size_t lanes, const int64_t *offset, const float *x, size_t step,
                     const float *w, const float *fetch, size_t fetch_step, float *y, size_t y_block,
                     const nori__block_finish *f);
#define TILE(pixels, blocks)                                                                       \
    static __attribute__((noinline)) void tile_##pixels##_##blocks(                                \
        size_t terms, size_t lanes, const int64_t *offset, const float *x, size_t step,            \
        const float *w, const float *fetch, size_t fetch_step, float *y, size_t y_block,           \
        const nori__block_finish *f)                                                               \
    {                                                                                              \
        tile_body(pixels, blocks, terms, lanes, offset, x, step, w, fetch, fetch_step, y,          \
                  y_block, f);                                                                     \
    }
#define TILES(pixels) TILE(pixels, 1) TILE(pixels, 2)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
#if TILE_PIXELS == 14
TILES(7)
TILES(8)
TILES(9)
TILES(10)
TILES(11)
TILES(12)
TILES(13)
TILES(14)
#endif
#undef TILES
#undef TILE
#define TILES(pixels) {tile_##pixels##_1, tile_##pixels##_2}

static void f32_block_tile(size_t pixels, size_t blocks, size_t terms, size_t lanes,
                           const int64_t *offset, const float *x, size_t step, const float *w,
                           const float *fetch, size_t fetch_step, float *y, size_t y_block,
                           const nori__block_finish *f)
{
    static tile_fn *const tiles[TILE_PIXELS][2] = {
        TILES(1),  TILES(2),  TILES(3),  TILES(4),  TILES(5),  TILES(6),
#if TILE_PIXELS == 14
        TILES(7),  TILES(8),  TILES(9),  TILES(10), TILES(11), TILES(12), TILES(13), TILES(14),
#endif
    };
    tiles[pixels - 1][blocks - 1](terms, lanes, offset, x, step, w, fetch, fetch_step, y, y_block, f);
}
#undef TILES
