/* gemm.cl: matrix products. A work-item makes 4 rows by 4 columns of the result.
 * dims: M, N, K, how many products. by: strides of A (rows, K) and B (K, columns). */

void put_tile(__global STORED *y, int m, int n, int4 dims, __global const float *bias, int2 by_bias,
              float alpha, float4 s[4], int then, float a, float b)
{
    for (int r = 0; r < 4 && m + r < dims.x; r++) {
        float v[4];
        vstore4(s[r], 0, v);
        for (int c = 0; c < 4 && n + c < dims.y; c++) {
            float sum = alpha * v[c] + bias[(m + r) * by_bias.x + (n + c) * by_bias.y];
            STORE(unary(then, a, b, sum), y, (m + r) * dims.y + n + c);
        }
    }
}

/* B is constant and packed [N / 4][K][4], missing columns being 0. */
__kernel void gemm_packed(__global const STORED *p, __global const STORED *q,
                          __global const float *bias, __global STORED *y, int4 dims, int4 by,
                          int2 by_bias, float alpha, int then, float a, float b)
{
    int n = get_global_id(0) * 4, m = get_global_id(1) * 4;
    if (n >= dims.y || m >= dims.x) {
        return;
    }
    __global const STORED *column = q + n * dims.z;
    int last = dims.x - 1; /* rows past the end are those of the last, and not stored */
    int r0 = m * by.x, r1 = min(m + 1, last) * by.x, r2 = min(m + 2, last) * by.x;
    int r3 = min(m + 3, last) * by.x;
    float4 none = FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), s[4] = {none, none, none, none};
    for (int k = 0; k < dims.z; k++) {
        float4 v = LOAD4(column, k * 4);
        int at = k * by.y;
        s[0] += LOAD(p, r0 + at) * v;
        s[1] += LOAD(p, r1 + at) * v;
        s[2] += LOAD(p, r2 + at) * v;
        s[3] += LOAD(p, r3 + at) * v;
    }
    put_tile(y, m, n, dims, bias, by_bias, alpha, s, then, a, b);
}

/* Both computed; starts has where A and B of each product begin. */
__kernel void gemm_strided(__global const STORED *p, __global const STORED *q,
                           __global const float *bias, __global STORED *y,
                           __global const int *starts, int4 dims, int4 by, int2 by_bias,
                           float alpha, int then, float a, float b FIRST_PLANE)
{
    int n = get_global_id(0) * 4, m = get_global_id(1) * 4, z = PLANE;
    if (n >= dims.y || m >= dims.x || z >= dims.w) {
        return;
    }
    p += starts[2 * z];
    q += starts[2 * z + 1];
    y += z * dims.x * dims.y;
    int last = dims.x - 1, end = dims.y - 1;
    int r0 = m * by.x, r1 = min(m + 1, last) * by.x, r2 = min(m + 2, last) * by.x;
    int r3 = min(m + 3, last) * by.x;
    int c0 = n * by.w, c1 = min(n + 1, end) * by.w, c2 = min(n + 2, end) * by.w;
    int c3 = min(n + 3, end) * by.w;
    float4 none = FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), s[4] = {none, none, none, none};
    bool line = by.w == 1 && n + 4 <= dims.y;
    for (int k = 0; k < dims.z; k++) {
        int at = k * by.y, from = k * by.z;
        float4 v;
        if (line) {
            v = LOAD4(q, from + n);
        } else {
            v = FLOAT4(LOAD(q, from + c0), LOAD(q, from + c1), LOAD(q, from + c2),
                         LOAD(q, from + c3));
        }
        s[0] += LOAD(p, r0 + at) * v;
        s[1] += LOAD(p, r1 + at) * v;
        s[2] += LOAD(p, r2 + at) * v;
        s[3] += LOAD(p, r3 + at) * v;
    }
    put_tile(y, m, n, dims, bias, by_bias, alpha, s, then, a, b);
}
