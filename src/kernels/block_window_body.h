/* block_window_body.h: depthwise convolution, pooling, scaling over activations in channel blocks.
 * Included once a level, after simd.h. Lanes are channels, so nothing is ever shuffled. */

/* ---- depthwise ---- */

/* Most pixels of a tile: their sums, the weights of a kernel row and one input stay in registers. */
#define DEEP_PIXELS 8

/* A tile of pixels of one output row whose first input column is col (may lie left of the row; only
 * checked tiles may reach over an end). rows: kernel rows [r0, r1) lie inside; x is at column 0 of
 * the first of them. All sizes but r1 - r0 are constants where this is inlined. */
ALWAYS void deep_tile(const size_t pixels, const size_t k, const size_t stride, const bool checked,
                      const nori__block_window *g, size_t rows, int64_t col, const float *x,
                      const float *w, float *y, const nori__block_finish *f)
{
    vf s[DEEP_PIXELS];
    for (size_t i = 0; i < pixels; i++) {
        s[i] = v_load(f->bias);
    }
    for (size_t r = 0; r < rows; r++, w += k * VL) {
        const float *in = x + r * g->dilation[0] * g->in[1] * VL;
        vf weight[5];
        for (size_t c = 0; c < k; c++) {
            weight[c] = v_load(w + c * VL);
        }
        for (size_t j = 0; j < (pixels - 1) * stride + k; j++) {
            int64_t at = col + (int64_t)j;
            vf v = checked && (at < 0 || at >= (int64_t)g->in[1]) ? v_zero() : v_load(in + at * VL);
            for (size_t c = 0; c < k; c++) {
                if (j >= c && (j - c) % stride == 0 && (j - c) / stride < pixels) {
                    s[(j - c) / stride] = v_fma(v, weight[c], s[(j - c) / stride]);
                }
            }
        }
    }
    for (size_t i = 0; i < pixels; i++) {
        s[i] = f->add ? v_add(s[i], v_load(f->add + i * VL)) : s[i];
        s[i] = f->clamp ? v_clamp(s[i], v_set(f->low), v_set(f->high)) : s[i];
        v_store(y + i * VL, s[i]);
    }
}

/* Any kernel, one pixel. */
static void deep_pixel(const nori__block_window *g, size_t rows, int64_t col, const float *x,
                       const float *w, float *y, const nori__block_finish *f)
{
    vf s = v_load(f->bias);
    for (size_t r = 0; r < rows; r++, w += g->kernel[1] * VL) {
        const float *in = x + r * g->dilation[0] * g->in[1] * VL;
        for (size_t c = 0; c < g->kernel[1]; c++) {
            int64_t at = col + (int64_t)(c * g->dilation[1]);
            if (at >= 0 && at < (int64_t)g->in[1]) {
                s = v_fma(v_load(in + at * VL), v_load(w + c * VL), s);
            }
        }
    }
    s = f->add ? v_add(s, v_load(f->add)) : s;
    s = f->clamp ? v_clamp(s, v_set(f->low), v_set(f->high)) : s;
    v_store(y, s);
}

/* The kernel rows that lie inside for an output row: how many, the first, its input row. */
ALWAYS size_t window_rows(const nori__block_window *g, size_t row, size_t *first, size_t *in_row)
{
    int64_t top = (int64_t)(row * g->stride[0]) - (int64_t)g->begin[0];
    size_t r0 = 0, r1 = g->kernel[0], d = g->dilation[0];
    while (r0 < r1 && top + (int64_t)(r0 * d) < 0) {
        r0++;
    }
    while (r1 > r0 && top + (int64_t)((r1 - 1) * d) >= (int64_t)g->in[0]) {
        r1--;
    }
    *first = r0;
    *in_row = r1 > r0 ? (size_t)(top + (int64_t)(r0 * d)) : 0;
    return r1 - r0;
}

/* One output row in tiles of a fixed size; the last one overlaps the one before it. */
ALWAYS void deep_row(const size_t pixels, const size_t k, const size_t stride,
                     const nori__block_window *g, size_t rows, const float *x, const float *w,
                     float *y, const nori__block_finish *f)
{
    size_t n = g->out[1];
    nori__block_finish at = *f;
    for (size_t j = 0;; j += pixels) {
        j = j + pixels > n ? n - pixels : j;
        int64_t col = (int64_t)(j * stride) - (int64_t)g->begin[1];
        int64_t end = col + (int64_t)((pixels - 1) * stride + k);
        at.add = f->add ? f->add + j * VL : NULL;
        if (col < 0 || end > (int64_t)g->in[1]) {
            deep_tile(pixels, k, stride, true, g, rows, col, x, w, y + j * VL, &at);
        } else {
            deep_tile(pixels, k, stride, false, g, rows, col, x, w, y + j * VL, &at);
        }
        if (j + pixels >= n) {
            return;
        }
    }
}

#define DEEP_ROW(name, k, stride)                                                                  \
    static void name(const nori__block_window *g, size_t rows, const float *x, const float *w,     \
                     float *y, const nori__block_finish *f)                                        \
    {                                                                                              \
        if (g->out[1] % 7 == 0) {                                                                  \
            deep_row(7, k, stride, g, rows, x, w, y, f);                                           \
        } else if (g->out[1] >= 8) {                                                               \
            deep_row(8, k, stride, g, rows, x, w, y, f);                                           \
        } else if (g->out[1] >= 4) {                                                               \
            deep_row(4, k, stride, g, rows, x, w, y, f);                                           \
        } else {                                                                                   \
            deep_row(1, k, stride, g, rows, x, w, y, f);                                           \
        }                                                                                          \
    }
DEEP_ROW(deep_3, 3, 1)
DEEP_ROW(deep_3s2, 3, 2)
DEEP_ROW(deep_5, 5, 1)
DEEP_ROW(deep_5s2, 5, 2)
#undef DEEP_ROW

static void deep_any(const nori__block_window *g, size_t rows, const float *x, const float *w,
                     float *y, const nori__block_finish *f)
{
    nori__block_finish at = *f;
    for (size_t j = 0; j < g->out[1]; j++, y += VL) {
        at.add = f->add ? f->add + j * VL : NULL;
        deep_pixel(g, rows, (int64_t)(j * g->stride[1]) - (int64_t)g->begin[1], x, w, y, &at);
    }
}

static void f32_block_depthwise(const nori__block_window *g, size_t row, size_t end, const float *x,
                                const float *w, float *y, const nori__block_finish *f)
{
    size_t k = g->kernel[1], s = g->stride[1];
    bool plain = g->dilation[1] == 1;
    nori__block_finish at = *f;
    for (; row < end; row++, y += g->out[1] * VL) {
        size_t first, in_row, rows = window_rows(g, row, &first, &in_row);
        const float *in = x + in_row * g->in[1] * VL, *weight = w + first * k * VL;
        if (plain && k == 3 && s == 1) {
            deep_3(g, rows, in, weight, y, &at);
        } else if (plain && k == 3 && s == 2) {
            deep_3s2(g, rows, in, weight, y, &at);
        } else if (plain && k == 5 && s == 1) {
            deep_5(g, rows, in, weight, y, &at);
        } else if (plain && k == 5 && s == 2) {
            deep_5s2(g, rows, in, weight, y, &at);
        } else {
            deep_any(g, rows, in, weight, y, &at);
        }
        at.add = at.add ? at.add + g->out[1] * VL : NULL;
    }
}

/* ---- pooling ---- */

ALWAYS void pool_row(const bool max, const nori__block_window *g, size_t rows, const float *x,
                     float *y, const float *divide)
{
    size_t row_step = g->dilation[0] * g->in[1] * VL;
    for (size_t j = 0; j < g->out[1]; j++, y += VL) {
        int64_t col = (int64_t)(j * g->stride[1]) - (int64_t)g->begin[1];
        size_t c0 = 0, c1 = g->kernel[1], d = g->dilation[1];
        while (c0 < c1 && col + (int64_t)(c0 * d) < 0) {
            c0++;
        }
        while (c1 > c0 && col + (int64_t)((c1 - 1) * d) >= (int64_t)g->in[1]) {
            c1--;
        }
        vf s = v_set(max ? -(float)INFINITY : 0.0f);
        for (size_t r = 0; r < rows && c1 > c0; r++) {
            const float *in = x + r * row_step + (col + (int64_t)(c0 * d)) * VL;
            for (size_t c = c0; c < c1; c++, in += d * VL) {
                s = max ? v_larger(v_load(in), s) : v_add(s, v_load(in));
            }
        }
        v_store(y, divide ? v_div(s, v_set(divide[j])) : s);
    }
}

static void f32_block_pool(const nori__block_window *g, bool max, size_t row, const float *x,
                           float *y, const float *divide)
{
    size_t first, in_row, rows = window_rows(g, row, &first, &in_row);
    x += in_row * g->in[1] * VL;
    if (max) {
        pool_row(true, g, rows, x, y, NULL);
    } else {
        pool_row(false, g, rows, x, y, divide);
    }
}

static void f32_block_sum(size_t n, const float *x, float *y)
{
    vf s[8];
    for (size_t i = 0; i < 8; i++) {
        s[i] = v_zero();
    }
    size_t p = 0;
    for (; p + 8 <= n; p += 8, x += 8 * VL) {
        for (size_t i = 0; i < 8; i++) {
            s[i] = v_add(s[i], v_load(x + i * VL));
        }
    }
    for (size_t i = 0; p < n; p++, i++, x += VL) {
        s[i] = v_add(s[i], v_load(x));
    }
    for (size_t step = 4; step > 0; step /= 2) {
        for (size_t i = 0; i < step; i++) {
            s[i] = v_add(s[i], s[i + step]);
        }
    }
    v_store(y, s[0]);
}

static void f32_block_affine(size_t n, const float *x, const float *scale, const float *shift,
                             float *y)
{
    vf by = v_load(scale), add = shift ? v_load(shift) : v_zero();
    for (size_t p = 0; p < n; p++) {
        vf v = v_load(x + p * VL);
        v_store(y + p * VL, shift ? v_fma(v, by, add) : v_mul(v, by));
    }
}

static void f32_block_leaky(size_t n, const float *x, const float *slope, float *y)
{
    vf by = v_load(slope);
    for (size_t p = 0; p < n; p++) {
        vf v = v_load(x + p * VL);
        v_store(y + p * VL, v_pick(v_less(v, v_zero()), v_mul(v, by), v));
    }
}

/* ---- resizing ---- */

static void f32_block_pick(size_t n, const int64_t *at, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++) {
        v_store(y + i * VL, v_load(x + at[i] * VL));
    }
}

static void f32_block_linear(size_t n, const nori__linear_tap *tap, const float *x0,
                             const float *x1, float a, float b, float *y)
{
    vf va = v_set(a), vb = v_set(b);
    for (size_t i = 0; i < n; i++) {
        size_t p = tap[i].at[0] * VL, q = tap[i].at[1] * VL;
        vf w0 = v_set(tap[i].weight[0]), w1 = v_set(tap[i].weight[1]);
        vf up = v_fma(w1, v_load(x0 + q), v_mul(w0, v_load(x0 + p)));
        vf down = v_fma(w1, v_load(x1 + q), v_mul(w0, v_load(x1 + p)));
        v_store(y + i * VL, v_fma(vb, down, v_mul(va, up)));
    }
}
