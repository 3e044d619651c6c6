/* attention.cl: softmax(q k^T * scale + mask) v in one go, never writing the scores. A group of 64
 * work-items has 16 rows of q, four work-items a row. It goes along the keys 16 at a time and keeps, a
 * row, the largest score so far, the sum of exponentials below it, and the weighted sum of v, which fade
 * when a larger score comes. q, k, v and y are read by strides: of a batch, a head, a row, and (k) of an
 * element of a row. heads: how many, and how many of them share k and v. */
#define Q_ROWS 16
#define KEYS 16
#define WIDEST 128 /* elements of a row */
#define LANES 4

__kernel void attend(__global const STORED *q, __global const STORED *k, __global const STORED *v,
                     __global const STORED *mask, __global STORED *y, int4 dims, int4 by_q, int4 by_k,
                     int4 by_v, int4 by_y, int4 by_mask, int2 heads, float scale, int causal, int masked)
{
    SHARED float qs[Q_ROWS * WIDEST], ks[KEYS * WIDEST], vs[KEYS * WIDEST], scores[Q_ROWS * KEYS];
    int me = get_local_id(0), row = me / LANES, lane = me % LANES;
    int blocks = (dims.x + Q_ROWS - 1) / Q_ROWS;
    int z = get_group_id(0) / blocks, first = get_group_id(0) % blocks * Q_ROWS, at = first + row;
    int batch = z / heads.x, head = z % heads.x, shared = head / heads.y;
    float acc[WIDEST / LANES], most = -INFINITY, sum = 0.0f;
    q += batch * by_q.x + head * by_q.y;
    k += batch * by_k.x + shared * by_k.y;
    v += batch * by_v.x + shared * by_v.y;
    y += batch * by_y.x + head * by_y.y;
    mask += batch * by_mask.x + head * by_mask.y;
    for (int i = me; i < Q_ROWS * dims.z; i += Q_ROWS * LANES) {
        int r = i / dims.z, d = i % dims.z;
        qs[r * WIDEST + d] = first + r < dims.x ? LOAD(q, (first + r) * by_q.z + d) * scale : 0.0f;
    }
    for (int j = 0; j < WIDEST / LANES; j++) {
        acc[j] = 0.0f;
    }
    for (int n0 = 0; n0 < dims.y; n0 += KEYS) {
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = me; i < KEYS * dims.z; i += Q_ROWS * LANES) { /* neighbours read neighbours */
            int n = by_k.w == 1 ? i / dims.z : i % KEYS, d = by_k.w == 1 ? i % dims.z : i / KEYS;
            ks[n * WIDEST + d] = n0 + n < dims.y ? LOAD(k, (n0 + n) * by_k.z + d * by_k.w) : 0.0f;
        }
        for (int i = me; i < KEYS * dims.w; i += Q_ROWS * LANES) {
            int n = i / dims.w, c = i % dims.w;
            vs[n * WIDEST + c] = n0 + n < dims.y ? LOAD(v, (n0 + n) * by_v.z + c) : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int n = lane; n < KEYS; n += LANES) {
            float s = 0.0f;
            for (int d = 0; d < dims.z; d++) {
                s += qs[row * WIDEST + d] * ks[n * WIDEST + d];
            }
            if (masked && at < dims.x && n0 + n < dims.y) {
                s += LOAD(mask, at * by_mask.z + (n0 + n) * by_mask.w);
            }
            scores[row * KEYS + n] = n0 + n >= dims.y || (causal && n0 + n > at) ? -INFINITY : s;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        float top = most;
        for (int n = 0; n < KEYS; n++) {
            top = scores[row * KEYS + n] > top ? scores[row * KEYS + n] : top;
        }
        float base = top == -INFINITY ? 0.0f : top, fade = exp(most - base);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int n = lane; n < KEYS; n += LANES) {
            scores[row * KEYS + n] = exp(scores[row * KEYS + n] - base);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        sum *= fade;
        for (int n = 0; n < KEYS; n++) {
            sum += scores[row * KEYS + n];
        }
        for (int j = 0; j < WIDEST / LANES; j++) {
            int c = lane + LANES * j;
            if (c < dims.w) {
                float a = acc[j] * fade;
                for (int n = 0; n < KEYS; n++) {
                    a += scores[row * KEYS + n] * vs[n * WIDEST + c];
                }
                acc[j] = a;
            }
        }
        most = top;
    }
    for (int j = 0; j < WIDEST / LANES; j++) {
        int c = lane + LANES * j;
        if (c < dims.w && at < dims.x) {
            STORE(acc[j] / sum, y, at * by_y.z + c);
        }
    }
}
