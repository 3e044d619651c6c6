/* block_weights_body.h: weights of convolutions over channel blocks, from the file's order to the
 * kernels': see f32_block_weights and f32_winograd_weights in kernels.h. Included once a level, after
 * simd.h.
 *
 * What is packed is written once and read once for each session, so this is bound by memory where it
 * goes VL lines at a time. Weights of a file may lie at any address: they are only loaded as vectors or
 * copied. */

static void f32_block_weights(size_t rows, size_t cols, const float *w, size_t w_step,
                              const size_t *place, float *out)
{
    float some[VL * VL];
    for (size_t q = 0; q < cols; q += VL) {
        size_t n = cols - q < VL ? cols - q : VL, step = w_step;
        const float *in = w + q;
        if (n < VL || rows < VL) { /* what is not there is 0 */
            memset(some, 0, sizeof(some));
            for (size_t i = 0; i < rows; i++) {
                memcpy(some + i * VL, in + i * w_step, n * sizeof(float));
            }
            in = some;
            step = VL;
        }
        vf r[VL];
        UNROLL
        for (size_t i = 0; i < VL; i++) {
            r[i] = v_load(in + i * step);
        }
        v_turn(r);
        if (n == VL) {
            UNROLL
            for (size_t i = 0; i < VL; i++) {
                v_store(out + place[q + i], r[i]);
            }
            continue;
        }
        UNROLL
        for (size_t i = 0; i < VL; i++) {
            v_store(some + i * VL, r[i]);
        }
        for (size_t i = 0; i < n; i++) {
            v_store(out + place[q + i], v_load(some + i * VL));
        }
    }
}

/* ---- Winograd ---- */

/* Half a vector, in double. */
typedef double vd __attribute__((vector_size(VL / 2 * sizeof(double))));
typedef float vd_floats __attribute__((vector_size(VL / 2 * sizeof(float))));

ALWAYS vd vd_load(const float *p)
{
    vd_floats a;
    memcpy(&a, p, sizeof(a));
    return __builtin_convertvector(a, vd);
}

ALWAYS void vd_store(float *p, vd a)
{
    vd_floats f = __builtin_convertvector(a, vd_floats);
    memcpy(p, &f, sizeof(f));
}

/* One dimension of G g. Rows of G are [1 0 0], [-2/3 -+2/3 p -1/3], [1/6 +-1/6 q 1/3] and [0 0 1], with
 * p = 1 / q = sqrt(1/2): pairs of rows differ in the middle's sign alone. */
ALWAYS void winograd_weights4(vd a, vd b, vd c, vd out[6])
{
    vd even = -2.0 / 3 * a - 1.0 / 3 * c, odd = 2.0 / 3 * 0.70710678118654752 * b;
    vd even2 = 1.0 / 6 * a + 1.0 / 3 * c, odd2 = 1.0 / 6 * 1.41421356237309505 * b;
    out[0] = a;
    out[1] = even - odd;
    out[2] = even + odd;
    out[3] = even2 + odd2;
    out[4] = even2 - odd2;
    out[5] = c;
}

/* The same for F(2, 3): rows [1 0 0], [1/2 +-1/2 1/2] and [0 0 1]. */
ALWAYS void winograd_weights2(vd a, vd b, vd c, vd out[4])
{
    vd even = 0.5 * (a + c), odd = 0.5 * b;
    out[0] = a;
    out[1] = even + odd;
    out[2] = even - odd;
    out[3] = c;
}

/* side: 6 or 4, a constant where this is inlined. */
ALWAYS void winograd_weights_body(const size_t side, size_t channels, const float *w, float *u,
                                  size_t u_channel, size_t u_step)
{
    for (size_t i = 0; i < channels; i++, w += 9 * VL, u += u_channel) {
        for (size_t half = 0; half < VL; half += VL / 2) {
            vd t[3][6]; /* columns of G g */
            UNROLL
            for (size_t j = 0; j < 3; j++) {
                const float *g = w + j * VL + half;
                vd g0 = vd_load(g), g1 = vd_load(g + 3 * VL), g2 = vd_load(g + 6 * VL);
                if (side == 6) {
                    winograd_weights4(g0, g1, g2, t[j]);
                } else {
                    winograd_weights2(g0, g1, g2, t[j]);
                }
            }
            UNROLL
            for (size_t k = 0; k < side; k++) {
                vd r[6];
                if (side == 6) {
                    winograd_weights4(t[0][k], t[1][k], t[2][k], r);
                } else {
                    winograd_weights2(t[0][k], t[1][k], t[2][k], r);
                }
                UNROLL
                for (size_t j = 0; j < side; j++) {
                    vd_store(u + (k * side + j) * u_step + half, r[j]);
                }
            }
        }
    }
}

static void f32_winograd_weights(size_t tile, size_t channels, const float *w, float *u,
                                 size_t u_channel, size_t u_step)
{
    if (tile == 2) {
        winograd_weights_body(4, channels, w, u, u_channel, u_step);
    } else {
        winograd_weights_body(6, channels, w, u, u_channel, u_step);
    }
}
