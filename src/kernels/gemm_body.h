/* gemm_body.h: tiles of float products over vectors; see f32_tile and f32_few_rows in kernels.h.
 * Included once a level, after simd.h.
 *
 * With 32 registers a tile is 14 x 2 vectors: 28 sums, two vectors of B, a broadcast value of A; with
 * 16 registers 6 x 2. Row counts are compiled apart, so that a short panel costs what it has. Rows of
 * A are addressed in threes from one pointer, since addresses of the form p + step and p + 2 step
 * cost nothing: any strides of A do, packed or not. */
#if V_REGISTERS == 32
#define MR 14
#else
#define MR 6
#endif
#define NR (2 * VL)
#define TURN 4

ALWAYS vf gemm_limit(vf v, const nori__f32_finish *f)
{
    return f->clamp ? v_clamp(v, v_set(f->low), v_set(f->high)) : v;
}

/* One row of sums to c. */
ALWAYS void gemm_put(vf v0, vf v1, size_t row, size_t cols, float *c, const nori__f32_finish *f)
{
    if (f->row) {
        vf add = v_set(f->row[row]);
        v0 = v_add(v0, add);
        v1 = v_add(v1, add);
    }
    const float *old = f->add ? f->add + row * f->ld_add : NULL;
    if (NORI__LIKELY(cols == NR)) {
        if (f->col) {
            v0 = v_add(v0, v_load(f->col));
            v1 = v_add(v1, v_load(f->col + VL));
        }
        if (old) {
            v0 = v_add(v0, v_load(old));
            v1 = v_add(v1, v_load(old + VL));
        }
        v_store(c, gemm_limit(v0, f));
        v_store(c + VL, gemm_limit(v1, f));
        return;
    }
    size_t n0 = cols < VL ? cols : VL, n1 = cols - n0;
    v0 = f->col ? v_add(v0, v_load_some(f->col, n0)) : v0;
    v0 = old ? v_add(v0, v_load_some(old, n0)) : v0;
    v_store_some(c, n0, gemm_limit(v0, f));
    if (n1 > 0) {
        v1 = f->col ? v_add(v1, v_load_some(f->col + VL, n1)) : v1;
        v1 = old ? v_add(v1, v_load_some(old + VL, n1)) : v1;
        v_store_some(c + VL, n1, gemm_limit(v1, f));
    }
}

/* Some columns; apart, since tiles of all heights use it. */
static __attribute__((noinline)) void gemm_put_rows(size_t rows, vf (*s)[2], size_t cols, float *c,
                                                    size_t ldc, const nori__f32_finish *f)
{
    for (size_t i = 0; i < rows; i++) {
        gemm_put(s[i][0], s[i][1], i, cols, c + i * ldc, f);
    }
}

/* All rows, all columns; rows is a constant. */
ALWAYS void gemm_put_whole(const size_t rows, vf s[MR][2], float *c, size_t ldc,
                           const nori__f32_finish *f)
{
    vf c0 = f->col ? v_load(f->col) : v_zero(), c1 = f->col ? v_load(f->col + VL) : v_zero();
    if (f->row) {
        UNROLL
        for (size_t i = 0; i < rows; i++) {
            vf add = v_set(f->row[i]);
            s[i][0] = v_add(s[i][0], add);
            s[i][1] = v_add(s[i][1], add);
        }
    }
    if (f->col) {
        UNROLL
        for (size_t i = 0; i < rows; i++) {
            s[i][0] = v_add(s[i][0], c0);
            s[i][1] = v_add(s[i][1], c1);
        }
    }
    if (f->add) {
        UNROLL
        for (size_t i = 0; i < rows; i++) {
            s[i][0] = v_add(s[i][0], v_load(f->add + i * f->ld_add));
            s[i][1] = v_add(s[i][1], v_load(f->add + i * f->ld_add + VL));
        }
    }
    if (f->clamp) {
        vf low = v_set(f->low), high = v_set(f->high);
        UNROLL
        for (size_t i = 0; i < rows; i++) {
            s[i][0] = v_clamp(s[i][0], low, high);
            s[i][1] = v_clamp(s[i][1], low, high);
        }
    }
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        v_store(c + i * ldc, s[i][0]);
        v_store(c + i * ldc + VL, s[i][1]);
    }
}

ALWAYS float gemm_at(const char *p, size_t which, size_t step)
{
    return *(const float *)(const void *)(which == 0 ? p : which == 1 ? p + step : p + 2 * step);
}

/* rows and halves (1: at most VL columns, half the work in the same order of sums) are constants
 * where this is inlined. */
ALWAYS void gemm_tile(const size_t rows, const size_t halves, size_t cols, size_t k, const float *a,
                      size_t a_row, size_t a_k, const float *b, float *c, size_t ldc,
                      const nori__f32_finish *f)
{
    vf s[MR][2];
    size_t row = a_row * sizeof(float), next = a_k * sizeof(float);
    const char *p0 = (const char *)(const void *)a, *p3 = p0 + 3 * row, *p6 = p3 + 3 * row;
    const char *p9 = p6 + 3 * row, *p12 = p9 + 3 * row;
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        s[i][0] = s[i][1] = v_zero();
    }
    size_t fetch_step = f->fetch ? f->fetch_step : 0;
    size_t second = fetch_step > 64 ? 64 : 0; /* of two lines a step */
    const char *line = (const char *)(f->fetch ? f->fetch : (const void *)b);
    size_t p = 0;
    if ((MR == 6 || (rows > MR / 2 && halves > 1)) && next == sizeof(float)) {
        /* Rows along k: several steps a turn. Each addition of an address and each line asked for
         * stands in the way of a product. */
        for (; p + TURN <= k; p += TURN, b += TURN * NR) {
            NORI__PREFETCH(line);
            NORI__PREFETCH(line + 2 * fetch_step);
            if (fetch_step > 32) { /* more than half a line a step */
                NORI__PREFETCH(line + fetch_step);
                NORI__PREFETCH(line + 3 * fetch_step);
            }
            line += TURN * fetch_step;
            UNROLL
            for (size_t u = 0; u < TURN; u++) {
                vf b0 = v_load(b + u * NR), b1 = halves > 1 ? v_load(b + u * NR + VL) : b0;
                UNROLL
                for (size_t i = 0; i < rows; i++) {
                    const char *q = i < 3 ? p0 : i < 6 ? p3 : i < 9 ? p6 : i < 12 ? p9 : p12;
                    vf v = v_set(gemm_at(q + u * sizeof(float), i % 3, row));
                    V_HOLD(v);
                    s[i][0] = v_fma(v, b0, s[i][0]);
                    if (halves > 1) {
                        s[i][1] = v_fma(v, b1, s[i][1]);
                    }
                }
                V_STEP;
            }
            p0 += TURN * sizeof(float);
            p3 += TURN * sizeof(float);
            p6 += TURN * sizeof(float);
            p9 += TURN * sizeof(float);
            p12 += TURN * sizeof(float);
        }
    }
    for (; p < k; p++, b += NR) {
        NORI__PREFETCH(line);
        if (second) {
            NORI__PREFETCH(line + second);
        }
        line += fetch_step;
        vf b0 = v_load(b), b1 = halves > 1 ? v_load(b + VL) : b0;
        UNROLL
        for (size_t i = 0; i < rows; i++) {
            const char *q = i < 3 ? p0 : i < 6 ? p3 : i < 9 ? p6 : i < 12 ? p9 : p12;
            vf v = v_set(gemm_at(q, i % 3, row));
            V_HOLD(v);
            s[i][0] = v_fma(v, b0, s[i][0]);
            if (halves > 1) {
                s[i][1] = v_fma(v, b1, s[i][1]);
            }
        }
        p0 += next;
        p3 += next;
        p6 += next;
        p9 += next;
        p12 += next;
    }
    if (halves == 2 && NORI__LIKELY(cols == NR)) {
        gemm_put_whole(rows, s, c, ldc, f);
        return;
    }
    vf rest[MR][2]; /* through memory: one piece of code for all */
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        rest[i][0] = s[i][0];
        rest[i][1] = s[i][1];
    }
    gemm_put_rows(rows, rest, cols, c, ldc, f);
}

#define TILE(rows)                                                                          \
    case 2 * (rows):                                                                        \
        gemm_tile(rows, 1, cols, k, a, a_row, a_k, b, c, ldc, f);                           \
        break;                                                                              \
    case 2 * (rows) + 1:                                                                    \
        gemm_tile(rows, 2, cols, k, a, a_row, a_k, b, c, ldc, f);                           \
        break;

static void f32_tile(size_t rows, size_t cols, size_t k, const float *a, size_t a_row, size_t a_k,
                     const float *b, float *c, size_t ldc, const nori__f32_finish *f)
{
    switch (2 * rows + (cols > VL)) {
        TILE(1)
        TILE(2)
        TILE(3)
        TILE(4)
        TILE(5)
        TILE(6)
#if MR == 14
        TILE(7)
        TILE(8)
        TILE(9)
        TILE(10)
        TILE(11)
        TILE(12)
        TILE(13)
        TILE(14)
#endif
    default: break;
    }
}
#undef TILE

/* ---- few rows ---- */

#define FEW_AHEAD 1024          /* floats */
#define FEW_NEAR (1024 * 1024)  /* bytes that the second cache holds */

/* Sums of parts steps of k apart, so that the latency of FMA is hidden. far: the panels come from
 * memory, and what lies a few lines ahead is fetched (nothing is read there). */
ALWAYS void gemm_few(const size_t rows, const size_t parts, const bool far, size_t cols, size_t k,
                     const float *x, size_t ldx, const float *b, float *y, size_t ldy,
                     const nori__f32_finish *f)
{
    vf s[4][4][2];
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        UNROLL
        for (size_t u = 0; u < parts; u++) {
            s[i][u][0] = s[i][u][1] = v_zero();
        }
    }
    size_t p = 0;
    for (; p + parts <= k; p += parts, b += parts * NR) {
        UNROLL
        for (size_t u = 0; u < parts; u++) {
            vf b0 = v_load(b + u * NR), b1 = v_load(b + u * NR + VL);
            if (far) {
                NORI__PREFETCH(b + u * NR + FEW_AHEAD);
            }
            if (far && VL == 16) {
                NORI__PREFETCH(b + u * NR + VL + FEW_AHEAD);
            }
            UNROLL
            for (size_t i = 0; i < rows; i++) {
                vf v = v_set(x[i * ldx + p + u]);
                s[i][u][0] = v_fma(v, b0, s[i][u][0]);
                s[i][u][1] = v_fma(v, b1, s[i][u][1]);
            }
        }
    }
    for (; p < k; p++, b += NR) {
        vf b0 = v_load(b), b1 = v_load(b + VL);
        UNROLL
        for (size_t i = 0; i < rows; i++) {
            vf v = v_set(x[i * ldx + p]);
            s[i][0][0] = v_fma(v, b0, s[i][0][0]);
            s[i][0][1] = v_fma(v, b1, s[i][0][1]);
        }
    }
    for (size_t i = 0; i < rows; i++) {
        for (size_t u = parts / 2; u > 0; u /= 2) {
            for (size_t q = 0; q < u; q++) {
                s[i][q][0] = v_add(s[i][q][0], s[i][q + u][0]);
                s[i][q][1] = v_add(s[i][q][1], s[i][q + u][1]);
            }
        }
        gemm_put(s[i][0][0], s[i][0][1], i, cols, y + i * ldy, f);
    }
}

#define FEW(rows, parts)                                                                    \
    case 2 * (rows):                                                                        \
        gemm_few(rows, parts, false, cols, k, x, ldx, b, y + j, ldy, &f);                   \
        break;                                                                              \
    case 2 * (rows) + 1:                                                                    \
        gemm_few(rows, parts, true, cols, k, x, ldx, b, y + j, ldy, &f);                    \
        break;

static void f32_few_rows(size_t rows, size_t n, size_t k, const float *x, size_t ldx,
                         const float *b, float *y, size_t ldy, const nori__f32_finish *finish)
{
    nori__f32_finish f = *finish;
    bool far = n * k * sizeof(float) > FEW_NEAR;
    for (size_t j = 0; j < n; j += NR, b += NR * k) {
        size_t cols = n - j < NR ? n - j : NR;
        f.col = finish->col ? finish->col + j : NULL;
        f.add = finish->add ? finish->add + j : NULL;
        switch (2 * rows + far) {
        FEW(1, 4)
        FEW(2, 2)
        FEW(3, 2)
        FEW(4, 2)
        default: break;
        }
    }
}
#undef FEW
