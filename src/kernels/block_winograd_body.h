/* block_winograd_body.h: the transforms of Winograd's convolutions F(4 x 4, 3 x 3) and F(2 x 2, 3 x 3) for
 * activations in channel blocks. Included once a level, after simd.h.
 *
 * With five points and infinity, 4 outputs of a 3-tap filter over 6 inputs cost 6 products (Lavin
 * and Gray, Fast Algorithms for Convolutional Neural Networks, 2016): inputs become B' d B, products
 * are summed over channels, A' m A gives the outputs. The points are 0, p, -p, q, -q with p = 1 / q =
 * sqrt(1/2): those matrices' entries lie closer to 1 than with whole numbers, and so do errors.
 * With three points, 0, 1, -1, and infinity, 2 outputs cost 4 products. */
#define WINOGRAD_P 0.70710678f
#define WINOGRAD_Q 1.41421356f

/* One dimension of B' d and of A' m for F(2, 3). */
ALWAYS void winograd_in4(const vf d[4], vf r[4])
{
    r[0] = v_sub(d[0], d[2]);
    r[1] = v_add(d[1], d[2]);
    r[2] = v_sub(d[2], d[1]);
    r[3] = v_sub(d[1], d[3]);
}

ALWAYS void winograd_out2(const vf m[4], vf o[2])
{
    o[0] = v_add(m[0], v_add(m[1], m[2]));
    o[1] = v_sub(v_sub(m[1], m[2]), m[3]);
}

/* One dimension of B' d. */
ALWAYS void winograd_in6(const vf d[6], vf r[6])
{
    vf p = v_set(WINOGRAD_P), q = v_set(WINOGRAD_Q), two = v_set(2), half = v_set(0.5f);
    vf a = v_fnma(two, d[2], d[4]), b = v_fnma(two, d[1], d[3]);
    vf c = v_fnma(half, d[2], d[4]), e = v_fnma(half, d[1], d[3]);
    r[0] = v_fnma(v_set(2.5f), d[2], v_add(d[0], d[4]));
    r[1] = v_fma(p, b, a);
    r[2] = v_fnma(p, b, a);
    r[3] = v_fma(q, e, c);
    r[4] = v_fnma(q, e, c);
    r[5] = v_fnma(v_set(2.5f), d[3], v_add(d[1], d[5]));
}

/* One dimension of A' m. */
ALWAYS void winograd_out4(const vf m[6], vf o[4])
{
    const float p = WINOGRAD_P, q = WINOGRAD_Q;
    vf a = v_add(m[1], m[2]), b = v_sub(m[1], m[2]);
    vf c = v_add(m[3], m[4]), d = v_sub(m[3], m[4]);
    o[0] = v_add(v_add(m[0], a), c);
    o[1] = v_fma(v_set(q), d, v_mul(v_set(p), b));
    o[2] = v_fma(v_set(2), c, v_mul(v_set(0.5f), a));
    o[3] = v_fma(v_set(2 * q), d, v_fma(v_set(p / 2), b, m[5]));
}

/* Rows first, one at a time: what lies between stays in the first cache. side: 6 or 4, a constant where
 * this is inlined. */
ALWAYS void winograd_in_body(const size_t side, const bool whole, const float *x, size_t row_step,
                             const nori__block_patch *p, float *v, size_t v_step)
{
    vf t[6][6];
    for (size_t r = 0; r < side; r++) {
        vf d[6];
        bool inside = whole || (r >= p->row[0] && r < p->row[1]);
        const float *in = inside ? x + (r - (whole ? 0 : p->row[0])) * row_step : x;
        for (size_t c = 0; c < side; c++) {
            bool there = whole || (inside && c >= p->col[0] && c < p->col[1]);
            d[c] = there ? v_load(in + (c - (whole ? 0 : p->col[0])) * VL) : v_zero();
        }
        if (side == 6) {
            winograd_in6(d, t[r]);
        } else {
            winograd_in4(d, t[r]);
        }
    }
    for (size_t c = 0; c < side; c++) {
        vf d[6], r[6];
        for (size_t i = 0; i < side; i++) {
            d[i] = t[i][c];
        }
        if (side == 6) {
            winograd_in6(d, r);
        } else {
            winograd_in4(d, r);
        }
        for (size_t i = 0; i < side; i++) {
            v_store(v + (i * side + c) * v_step, r[i]);
        }
    }
}

static void f32_winograd_in(size_t tile, const float *x, size_t row_step, const nori__block_patch *p,
                            float *v, size_t v_step)
{
    size_t side = tile + 2;
    bool whole = p->row[0] == 0 && p->row[1] == side && p->col[0] == 0 && p->col[1] == side;
    if (tile == 2 && whole) {
        winograd_in_body(4, true, x, row_step, p, v, v_step);
    } else if (tile == 2) {
        winograd_in_body(4, false, x, row_step, p, v, v_step);
    } else if (whole) {
        winograd_in_body(6, true, x, row_step, p, v, v_step);
    } else {
        winograd_in_body(6, false, x, row_step, p, v, v_step);
    }
}

/* tile: 4 or 2, a constant where this is inlined. */
ALWAYS void winograd_out_body(const size_t tile, const float *m, size_t m_step, size_t rows, size_t cols,
                              float *y, size_t row_step, const nori__block_finish *f)
{
    const size_t side = tile + 2;
    vf t[4][6], bias = v_load(f->bias), low = v_set(f->low), high = v_set(f->high);
    for (size_t c = 0; c < side; c++) {
        vf d[6], o[4];
        for (size_t r = 0; r < side; r++) {
            d[r] = v_load(m + (r * side + c) * m_step);
        }
        if (tile == 4) {
            winograd_out4(d, o);
        } else {
            winograd_out2(d, o);
        }
        for (size_t r = 0; r < tile; r++) {
            t[r][c] = o[r];
        }
    }
    for (size_t r = 0; r < rows; r++) {
        vf o[4];
        o[2] = o[3] = v_zero(); /* not used, which a compiler cannot know of cols */
        if (tile == 4) {
            winograd_out4(t[r], o);
        } else {
            winograd_out2(t[r], o);
        }
        for (size_t c = 0; c < cols; c++) {
            size_t at = r * row_step + c * VL;
            vf s = v_add(o[c], bias);
            s = f->add ? v_add(s, v_load(f->add + at)) : s;
            v_store(y + at, f->clamp ? v_clamp(s, low, high) : s);
        }
    }
}

static void f32_winograd_out(size_t tile, const float *m, size_t m_step, size_t rows, size_t cols,
                             float *y, size_t row_step, const nori__block_finish *f)
{
    if (tile == 2) {
        winograd_out_body(2, m, m_step, rows, cols, y, row_step, f);
    } else {
        winograd_out_body(4, m, m_step, rows, cols, y, row_step, f);
    }
}
