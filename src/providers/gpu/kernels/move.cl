/* move.cl: copies by strides, along an axis by a table, and interpolation along an axis. */

/* Row-major over sizes: transpose, slice, concatenate, expand, tile. Strides may be 0 or negative. */
__kernel void copy_strided(__global const STORED *x, __global STORED *y, int8 sizes, int8 by_x,
                           int8 by_y, int start_x, int start_y, int count)
{
    int i = get_global_id(0), rest = i, from = start_x, to = start_y;
    if (i >= count) {
        return;
    }
#define AXIS(d)                      \
    from += rest % sizes.d * by_x.d; \
    to += rest % sizes.d * by_y.d;   \
    rest /= sizes.d;
    AXIS(s7) AXIS(s6) AXIS(s5) AXIS(s4) AXIS(s3) AXIS(s2) AXIS(s1) AXIS(s0)
#undef AXIS
    STORE(LOAD(x, from), y, to);
}

/* Along the middle axis of [outer, size, inner] each result is where the table says; -1: fill. */
__kernel void take_axis(__global const STORED *x, __global const int *table, __global STORED *y,
                        int count, int n_in, int n_out, int inner, float fill)
{
    int i = get_global_id(0);
    if (i < count) {
        int k = table[i / inner % n_out], outer = i / inner / n_out;
        STORE(k < 0 ? fill : LOAD(x, (outer * n_in + k) * inner + i % inner), y, i);
    }
}

/* The same with two places and their weights. */
__kernel void blend_axis(__global const STORED *x, __global const int *places,
                         __global const float *weights, __global STORED *y, int count, int n_in,
                         int n_out, int inner)
{
    int i = get_global_id(0);
    if (i < count) {
        int o = i / inner % n_out, start = i / inner / n_out * n_in * inner + i % inner;
        STORE(weights[2 * o] * LOAD(x, start + places[2 * o] * inner) +
                  weights[2 * o + 1] * LOAD(x, start + places[2 * o + 1] * inner),
              y, i);
    }
}
