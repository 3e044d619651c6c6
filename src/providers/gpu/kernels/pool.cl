/* pool.cl: maximum and average of windows of [N, C, H, W]. sizes: H, W, OH, OW. window: KH, KW and
 * strides. reach: dilations and the pads before. ends: how far average counts pads behind, or -1
 * when it counts none. */

int counted(int start, int window, int step, int low, int high)
{
    int n = 0;
    for (int k = 0; k < window; k++) {
        int i = start + k * step;
        n += i >= low && i < high;
    }
    return n;
}

__kernel void pool_window(__global const STORED *x, __global STORED *y, int planes, int4 sizes,
                          int4 window, int4 reach, int2 ends, int kind FIRST_PLANE)
{
    int ox = get_global_id(0), oy = get_global_id(1), z = PLANE;
    if (ox >= sizes.w || oy >= sizes.z || z >= planes) {
        return;
    }
    __global const STORED *plane = x + z * sizes.x * sizes.y;
    int top = oy * window.z - reach.z, left = ox * window.w - reach.w;
    float result = kind == POOL_max ? -INFINITY : 0.0f;
    for (int ky = 0; ky < window.x; ky++) {
        int iy = top + ky * reach.x;
        if (iy < 0 || iy >= sizes.x) {
            continue;
        }
        for (int kx = 0; kx < window.y; kx++) {
            int ix = left + kx * reach.y;
            if (ix >= 0 && ix < sizes.y) {
                float v = LOAD(plane, iy * sizes.y + ix);
                result = kind != POOL_max ? result + v : isnan(v) || v > result ? v : result;
            }
        }
    }
    if (kind != POOL_max) {
        bool pads = ends.x >= 0;
        int n = counted(top, window.x, reach.x, pads ? -reach.z : 0,
                        sizes.x + (pads ? ends.x : 0)) *
                counted(left, window.y, reach.y, pads ? -reach.w : 0,
                        sizes.y + (pads ? ends.y : 0));
        result = n > 0 ? result / (float)n : 0.0f;
    }
    STORE(result, y, (z * sizes.z + oy) * sizes.w + ox);
}
