/* elementwise.cl: operators that go element by element, one or two inputs, and scale and shift by
 * channel. Two inputs are followed by a fused function of one. */

__kernel void unary_plain(__global const STORED *x, __global STORED *y, int count, int kind, float a,
                          float b)
{
    int i = get_global_id(0);
    if (i < count) {
        STORE(unary(kind, a, b, LOAD(x, i)), y, i);
    }
}

float binary(int kind, float p, float q)
{
    switch (kind) {
    case BINARY_Add: return p + q;
    case BINARY_Sub: return p - q;
    case BINARY_Mul: return p * q;
    case BINARY_Div: return p / q;
    case BINARY_Pow: return pow(p, q);
    case BINARY_Max: return isnan(p) || p > q ? p : q;
    case BINARY_Min: return isnan(p) || p < q ? p : q;
    default: return p < 0.0f ? p * q : p; /* PRelu */
    }
}

__kernel void binary_same(__global const STORED *p, __global const STORED *q, __global STORED *y,
                          int count, int kind, int then, float a, float b)
{
    int i = get_global_id(0);
    if (i < count) {
        STORE(unary(then, a, b, binary(kind, LOAD(p, i), LOAD(q, i))), y, i);
    }
}

/* Row-major over sizes; a stride of 0 repeats an input along an axis. */
__kernel void binary_broadcast(__global const STORED *p, __global const STORED *q,
                               __global STORED *y, int8 sizes, int8 by_p, int8 by_q, int count,
                               int kind, int then, float a, float b)
{
    int i = get_global_id(0), rest = i, at_p = 0, at_q = 0;
    if (i >= count) {
        return;
    }
#define AXIS(d)                               \
    at_p += rest % sizes.d * by_p.d;          \
    at_q += rest % sizes.d * by_q.d;          \
    rest /= sizes.d;
    AXIS(s7) AXIS(s6) AXIS(s5) AXIS(s4) AXIS(s3) AXIS(s2) AXIS(s1) AXIS(s0)
#undef AXIS
    STORE(unary(then, a, b, binary(kind, LOAD(p, at_p), LOAD(q, at_q))), y, i);
}

/* y = x * scale[c] + shift[c] for [N, C, inner]. */
__kernel void channel_affine(__global const STORED *x, __global const float *scale,
                             __global const float *shift, __global STORED *y, int count,
                             int channels, int inner, int then, float a, float b)
{
    int i = get_global_id(0);
    if (i < count) {
        int c = i / inner % channels;
        STORE(unary(then, a, b, LOAD(x, i) * scale[c] + shift[c]), y, i);
    }
}
