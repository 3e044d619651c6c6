/* conv.cl: convolution of [N, C, H, W] in two dimensions (one dimension has H = 1). Each work-item
 * makes 4 columns, and 4 output channels but for depthwise: its sums stay in registers, and a weight
 * is loaded once for 4 columns, a pixel once for 4 channels. Sums start with the bias.
 *
 * Weights are packed [group][blocks of 4 channels][C / group][KH][KW][4], missing channels being 0;
 * bias likewise. in: C / group, H, W, groups. out: M / group, OH, OW, N. window: KH, KW and strides.
 * reach: dilations and the pads before. */

float pixel(__global const STORED *row, int x, int width)
{
    return x >= 0 && x < width ? LOAD(row, x) : 0.0f;
}

void put_columns(__global STORED *y, int plane, int left, int channels, float4 s0, float4 s1,
                 float4 s2, float4 s3, int then, float a, float b)
{
    float4 line[4] = {FLOAT4(s0.x, s1.x, s2.x, s3.x), FLOAT4(s0.y, s1.y, s2.y, s3.y),
                      FLOAT4(s0.z, s1.z, s2.z, s3.z), FLOAT4(s0.w, s1.w, s2.w, s3.w)};
    for (int m = 0; m < 4 && m < channels; m++) {
        float4 v = line[m];
        v.x = unary(then, a, b, v.x);
        v.y = unary(then, a, b, v.y);
        v.z = unary(then, a, b, v.z);
        v.w = unary(then, a, b, v.w);
        int at = m * plane;
        if (left >= 4) {
            STORE4(v, y, at);
            continue;
        }
        STORE(v.x, y, at);
        if (left > 1) {
            STORE(v.y, y, at + 1);
        }
        if (left > 2) {
            STORE(v.z, y, at + 2);
        }
    }
}

__kernel void conv_direct(__global const STORED *x, __global const STORED *w,
                          __global const float *bias, __global STORED *y, int4 in, int4 out,
                          int4 window, int4 reach, int then, float a, float b FIRST_PLANE)
{
    int ox = get_global_id(0) * 4, oy = get_global_id(1), z = PLANE;
    int blocks = (out.x + 3) / 4, block = z % blocks, unit = z / blocks; /* image and group */
    int group = unit % in.w;
    if (ox >= out.z || oy >= out.y || unit >= out.w * in.w) {
        return;
    }
    int at = (group * blocks + block) * in.x * window.x * window.y * 4;
    float4 s0 = vload4(group * blocks + block, bias), s1 = s0, s2 = s0, s3 = s0;
    int left = ox * window.w - reach.w, top = oy * window.z - reach.z;
    __global const STORED *plane = x + unit * in.x * in.y * in.z;
    for (int c = 0; c < in.x; c++, plane += in.y * in.z) {
        for (int ky = 0; ky < window.x; ky++) {
            int iy = top + ky * reach.x;
            if (iy < 0 || iy >= in.y) {
                at += window.y * 4;
                continue;
            }
            __global const STORED *row = plane + iy * in.z;
            for (int kx = 0; kx < window.y; kx++, at += 4) {
                float4 weight = LOAD4(w, at);
                int ix = left + kx * reach.y;
                s0 += weight * pixel(row, ix, in.z);
                s1 += weight * pixel(row, ix + window.w, in.z);
                s2 += weight * pixel(row, ix + 2 * window.w, in.z);
                s3 += weight * pixel(row, ix + 3 * window.w, in.z);
            }
        }
    }
    int size = out.y * out.z;
    put_columns(y + (unit * out.x + block * 4) * size + oy * out.z + ox, size, out.z - ox,
                out.x - block * 4, s0, s1, s2, s3, then, a, b);
}

/* A window of one pixel, no strides and no pads: pixels of a plane are one line. */
__kernel void conv_pointwise(__global const STORED *x, __global const STORED *w,
                             __global const float *bias, __global STORED *y, int4 in, int4 out,
                             int then, float a, float b FIRST_PLANE)
{
    int size = in.y * in.z, at = get_global_id(0) * 4, block = get_global_id(1);
    int unit = PLANE, blocks = (out.x + 3) / 4, group = unit % in.w;
    if (at >= size || block >= blocks || unit >= out.w * in.w) {
        return;
    }
    __global const STORED *weights = w + (group * blocks + block) * in.x * 4;
    __global const STORED *pixels = x + unit * in.x * size + at;
    float4 s0 = vload4(group * blocks + block, bias), s1 = s0, s2 = s0, s3 = s0;
    int left = size - at;
    for (int c = 0; c < in.x; c++, pixels += size) {
        float4 weight = LOAD4(weights, c * 4), v;
        if (left >= 4) {
            v = LOAD4(pixels, 0);
        } else {
            v = FLOAT4(LOAD(pixels, 0), LOAD(pixels, min(1, left - 1)),
                         LOAD(pixels, min(2, left - 1)), 0.0f);
        }
        s0 += weight * v.x;
        s1 += weight * v.y;
        s2 += weight * v.z;
        s3 += weight * v.w;
    }
    put_columns(y + (unit * out.x + block * 4) * size + at, size, left, out.x - block * 4, s0, s1,
                s2, s3, then, a, b);
}

/* One input and one output channel a group; weights [C][KH][KW], bias [C]. */
__kernel void conv_depthwise(__global const STORED *x, __global const STORED *w,
                             __global const float *bias, __global STORED *y, int4 in, int4 out,
                             int4 window, int4 reach, int then, float a, float b FIRST_PLANE)
{
    int ox = get_global_id(0) * 4, oy = get_global_id(1), unit = PLANE;
    int channel = unit % in.w;
    if (ox >= out.z || oy >= out.y || unit >= out.w * in.w) {
        return;
    }
    __global const STORED *plane = x + unit * in.y * in.z;
    __global const STORED *weights = w + channel * window.x * window.y;
    int left = ox * window.w - reach.w, top = oy * window.z - reach.z;
    float first = bias[channel];
    float4 sum = FLOAT4(first, first, first, first);
    for (int ky = 0; ky < window.x; ky++) {
        int iy = top + ky * reach.x;
        if (iy < 0 || iy >= in.y) {
            continue;
        }
        __global const STORED *row = plane + iy * in.z;
        for (int kx = 0; kx < window.y; kx++) {
            int ix = left + kx * reach.y;
            sum += LOAD(weights, ky * window.y + kx) *
                   FLOAT4(pixel(row, ix, in.z), pixel(row, ix + window.w, in.z),
                            pixel(row, ix + 2 * window.w, in.z), pixel(row, ix + 3 * window.w, in.z));
        }
    }
    put_columns(y + unit * out.y * out.z + oy * out.z + ox, 0, out.z - ox, 1, FLOAT4(sum.x, 0.0f, 0.0f, 0.0f),
                FLOAT4(sum.y, 0.0f, 0.0f, 0.0f), FLOAT4(sum.z, 0.0f, 0.0f, 0.0f), FLOAT4(sum.w, 0.0f, 0.0f, 0.0f), then, a, b);
}

/* Transposed convolution, seen from the output: which input pixels reach this one. Weights as they
 * come, [C][M / group][KH][KW]; bias [M]. One output a work-item. */
__kernel void conv_transposed(__global const STORED *x, __global const STORED *w,
                              __global const float *bias, __global STORED *y, int4 in, int4 out,
                              int4 window, int4 reach, int then, float a, float b FIRST_PLANE)
{
    int ox = get_global_id(0), oy = get_global_id(1), z = PLANE;
    int m = z % out.x, unit = z / out.x, group = unit % in.w;
    if (ox >= out.z || oy >= out.y || unit >= out.w * in.w) {
        return;
    }
    float sum = bias[group * out.x + m];
    for (int ky = 0; ky < window.x; ky++) {
        int iy = oy + reach.z - ky * reach.x;
        if (iy < 0 || iy % window.z != 0 || iy / window.z >= in.y) {
            continue;
        }
        for (int kx = 0; kx < window.y; kx++) {
            int ix = ox + reach.w - kx * reach.y;
            if (ix < 0 || ix % window.w != 0 || ix / window.w >= in.z) {
                continue;
            }
            int from = (unit * in.x * in.y + iy / window.z) * in.z + ix / window.w;
            int by = ((group * in.x * out.x + m) * window.x + ky) * window.y + kx;
            for (int c = 0; c < in.x; c++) {
                sum += LOAD(x, from + c * in.y * in.z) *
                       LOAD(w, by + c * out.x * window.x * window.y);
            }
        }
    }
    STORE(unary(then, a, b, sum), y, (z * out.y + oy) * out.z + ox);
}
