/* gemm_tiles.cu, behind gemm.cl: matrix products by groups of 256 threads. A group makes 64 rows by 64
 * columns: 16 of K at a time go to shared memory, and each thread keeps 4 by 4 sums. Parameters as in
 * gemm.cl; with packed, B is [N / 4][K][4] as there. */
#define TILE 64
#define DEEP 16

inline __device__ void add_tile(const float *left, const float *right, int row, int column, float4 s[4])
{
    for (int k = 0; k < DEEP; k++) {
        float4 v = vload4(0, right + k * TILE + column);
        const float *p = left + k * TILE + row;
        s[0] += p[0] * v;
        s[1] += p[1] * v;
        s[2] += p[2] * v;
        s[3] += p[3] * v;
    }
}

__kernel void gemm_tiles(const float *p, const float *q, const float *bias, float *y, const int *starts,
                         int packed, int4 dims, int4 by, int2 by_bias, float alpha, int then, float a,
                         float b FIRST_PLANE)
{
    __shared__ float left[DEEP * TILE], right[DEEP * TILE];
    int me = (int)threadIdx.x, m = (int)blockIdx.y * TILE, n = (int)blockIdx.x * TILE, z = PLANE;
    int row = me / 16 * 4, column = me % 16 * 4;
    float4 none = FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), s[4] = {none, none, none, none};
    if (!packed) {
        p += starts[2 * z];
        q += starts[2 * z + 1];
    }
    y += z * dims.x * dims.y;
    for (int k0 = 0; k0 < dims.z; k0 += DEEP) {
        for (int i = 0; i < 4; i++) {
            int r = me / DEEP + i * 16, k = me % DEEP;
            bool inside = m + r < dims.x && k0 + k < dims.z;
            left[k * TILE + r] = inside ? p[(m + r) * by.x + (k0 + k) * by.y] : 0.0f;
        }
        for (int i = 0; i < 4; i++) {
            int c, k;
            if (packed) { /* 4 columns lie together */
                c = me / DEEP * 4 + i;
                k = me % DEEP;
            } else {
                c = me % TILE;
                k = me / TILE + i * 4;
            }
            bool inside = n + c < dims.y && k0 + k < dims.z;
            int at = packed ? ((n + c) / 4 * dims.z + k0 + k) * 4 + (n + c) % 4
                            : (k0 + k) * by.z + (n + c) * by.w;
            right[k * TILE + c] = inside ? q[at] : 0.0f;
        }
        __syncthreads();
        add_tile(left, right, row, column, s);
        __syncthreads();
    }
    if (m + row < dims.x && n + column < dims.y) {
        put_tile(y, m + row, n + column, dims, bias, by_bias, alpha, s, then, a, b);
    }
}
