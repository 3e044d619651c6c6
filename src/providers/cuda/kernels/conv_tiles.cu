/* conv_tiles.cu, behind conv.cl: convolution as a product that is never laid out in memory. A group of 256
 * threads makes 64 channels of 64 pixels of one image and group of channels: 16 places of C * KH * KW at a
 * time go to shared memory, and each thread keeps 4 by 4 sums. Weights and parameters as in conv.cl. */
#define TILE 64
#define DEEP 16

__kernel void conv_tiles(const float *x, const float *w, const float *bias, float *y, int4 in, int4 out,
                         int4 window, int4 reach, int then, float a, float b FIRST_PLANE)
{
    __shared__ float left[DEEP * TILE], right[DEEP * TILE];
    int me = (int)threadIdx.x, unit = PLANE, group = unit % in.w;
    int size = out.y * out.z, area = window.x * window.y, inner = in.x * area, blocks = (out.x + 3) / 4;
    int block = (int)blockIdx.y * (TILE / 4) + me / DEEP; /* whose weights this thread brings */
    int at = (int)blockIdx.x * TILE + me % TILE;          /* whose pixels */
    int top = at / out.z * window.z - reach.z, side = at % out.z * window.w - reach.w;
    int row = me / 16 * 4, column = me % 16 * 4;
    int m = (int)blockIdx.y * TILE + row, pixel_at = (int)blockIdx.x * TILE + column;
    const float *plane = x + unit * in.x * in.y * in.z;
    float4 s[4];
    for (int i = 0; i < 4; i++) {
        float first = m + i < out.x ? bias[group * blocks * 4 + m + i] : 0.0f;
        s[i] = FLOAT4(first, first, first, first);
    }
    for (int k0 = 0; k0 < inner; k0 += DEEP) {
        int k = k0 + me % DEEP;
        bool inside = block < blocks && k < inner;
        float4 v = FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
        if (inside) {
            v = vload4((group * blocks + block) * inner + k, w);
        }
        vstore4(v, 0, left + me % DEEP * TILE + me / DEEP * 4);
        for (int i = 0; i < 4; i++) {
            int deep = me / TILE + i * 4, c = (k0 + deep) / area, rest = (k0 + deep) % area;
            int iy = top + rest / window.y * reach.x, ix = side + rest % window.y * reach.y;
            bool there = at < size && k0 + deep < inner && iy >= 0 && iy < in.y && ix >= 0 && ix < in.z;
            right[deep * TILE + me % TILE] = there ? plane[(c * in.y + iy) * in.z + ix] : 0.0f;
        }
        __syncthreads();
        for (int deep = 0; deep < DEEP; deep++) {
            float4 pixels = vload4(0, right + deep * TILE + column);
            const float *weights = left + deep * TILE + row;
            s[0] += weights[0] * pixels;
            s[1] += weights[1] * pixels;
            s[2] += weights[2] * pixels;
            s[3] += weights[3] * pixels;
        }
        __syncthreads();
    }
    for (int i = 0; i < 4 && m + i < out.x; i++) {
        float v[4];
        vstore4(s[i], 0, v);
        for (int c = 0; c < 4 && pixel_at + c < size; c++) {
            y[(unit * out.x + m + i) * size + pixel_at + c] = unary(then, a, b, v[c]);
        }
    }
}
