/* recurrent_body.h: gates of LSTM and GRU; see f32_lstm and f32_gru in kernels.h. Included once a
 * level, after simd.h and simd_math.h. */

ALWAYS vf cell_load(const float *p, size_t n)
{
    return n < VL ? v_load_some(p, n) : v_load(p);
}

ALWAYS void cell_store(float *p, size_t n, vf a)
{
    if (n < VL) {
        v_store_some(p, n, a);
    } else {
        v_store(p, a);
    }
}

static void f32_lstm(size_t n, const float *x, const float *r, float *c, float *h)
{
    for (size_t j = 0; j < n; j += VL, x += 4 * VL, r += 4 * VL) {
        vf i = vsigmoid(v_add(v_load(x), v_load(r)));
        vf o = vsigmoid(v_add(v_load(x + VL), v_load(r + VL)));
        vf f = vsigmoid(v_add(v_load(x + 2 * VL), v_load(r + 2 * VL)));
        vf g = vtanh(v_add(v_load(x + 3 * VL), v_load(r + 3 * VL)));
        vf cell = v_fma(f, cell_load(c + j, n - j), v_mul(i, g));
        cell_store(c + j, n - j, cell);
        cell_store(h + j, n - j, v_mul(o, vtanh(cell)));
    }
}

static void f32_gru_reset(size_t n, const float *x, const float *r, const float *h, float *out)
{
    for (size_t j = 0; j < n; j += VL, x += 3 * VL, r += 2 * VL) {
        vf reset = vsigmoid(v_add(v_load(x + VL), v_load(r + VL)));
        cell_store(out + j, n - j, v_mul(reset, cell_load(h + j, n - j)));
    }
}

static void f32_gru(size_t n, const float *x, const float *r, const float *late, const float *h,
                    float *out)
{
    size_t r_step = late ? 2 * VL : 3 * VL;
    for (size_t j = 0; j < n; j += VL, x += 3 * VL, r += r_step) {
        vf z = vsigmoid(v_add(v_load(x), v_load(r))), part;
        if (late) {
            part = v_load(late + j);
        } else {
            part = v_mul(vsigmoid(v_add(v_load(x + VL), v_load(r + VL))), v_load(r + 2 * VL));
        }
        vf fresh = vtanh(v_add(v_load(x + 2 * VL), part));
        vf old = cell_load(h + j, n - j);
        cell_store(out + j, n - j, v_fma(z, v_sub(old, fresh), fresh));
    }
}

static void recurrent_table(nori__kernels *k)
{
    k->f32_lstm = f32_lstm;
    k->f32_gru_reset = f32_gru_reset;
    k->f32_gru = f32_gru;
}
