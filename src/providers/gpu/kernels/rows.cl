/* rows.cl: reductions, softmax and normalization. "lines": a work-item goes along an axis of
 * [outer, n, inner] alone. "rows": a work-group shares a row that lies together in memory; sums are
 * joined pairwise in local memory, whose size is that of the group, a power of two. The order of
 * additions depends on sizes alone. */

float reduce_first(int kind)
{
    return kind == REDUCE_Max ? -INFINITY : kind == REDUCE_Min ? INFINITY
         : kind == REDUCE_Prod ? 1.0f : 0.0f;
}

float reduce_with(int kind, float acc, float v)
{
    switch (kind) {
    case REDUCE_Max: return isnan(acc) || acc > v ? acc : v;
    case REDUCE_Min: return isnan(acc) || acc < v ? acc : v;
    case REDUCE_Prod: return acc * v;
    default: return acc + v;
    }
}

/* What is added up of an element. */
float reduce_term(int kind, float v)
{
    return kind == REDUCE_L1 ? fabs(v) : kind == REDUCE_L2 || kind == REDUCE_SumSquare ? v * v : v;
}

float reduce_last(int kind, float acc, int n)
{
    return kind == REDUCE_Mean ? acc / (float)n : kind == REDUCE_L2 ? sqrt(acc)
         : kind == REDUCE_LogSum ? log(acc) : acc;
}

__kernel void reduce_lines(__global const STORED *x, __global STORED *y, int count, int n,
                           int inner, int kind)
{
    int i = get_global_id(0);
    if (i >= count) {
        return;
    }
    __global const STORED *line = x + i / inner * n * inner + i % inner;
    float acc = reduce_first(kind);
    for (int k = 0; k < n; k++) {
        acc = reduce_with(kind, acc, reduce_term(kind, LOAD(line, k * inner)));
    }
    STORE(reduce_last(kind, acc, n), y, i);
}

/* Adds v to a sum whose lost digits are kept in rest: rows may have hundreds of thousands of elements. */
void add_up(float *sum, float *rest, float v)
{
    float y = v - *rest, t = *sum + y;
    *rest = isinf(t) ? 0.0f : (t - *sum) - y;
    *sum = t;
}

/* Joins one number of every work-item; all get the result. */
float join(int kind, float v, __local float *room)
{
    int me = get_local_id(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    room[me] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_way = get_local_size(0) / 2; half_way > 0; half_way /= 2) {
        if (me < half_way) {
            room[me] = reduce_with(kind, room[me], room[me + half_way]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return room[0];
}

__kernel void reduce_rows(__global const STORED *x, __global STORED *y, ROOM_PARAMETER int n,
                          int kind)
{
    ROOM
    int row = get_group_id(0), me = get_local_id(0), items = get_local_size(0);
    __global const STORED *line = x + row * n;
    float acc = reduce_first(kind), rest = 0.0f;
    for (int k = me; k < n; k += items) {
        float v = reduce_term(kind, LOAD(line, k));
        if (kind == REDUCE_Max || kind == REDUCE_Min || kind == REDUCE_Prod) {
            acc = reduce_with(kind, acc, v);
        } else {
            add_up(&acc, &rest, v);
        }
    }
    acc = join(kind, acc, room);
    if (me == 0) {
        STORE(reduce_last(kind, acc, n), y, row);
    }
}

__kernel void softmax_lines(__global const STORED *x, __global STORED *y, int count, int n,
                            int inner, int logarithm)
{
    int i = get_global_id(0);
    if (i >= count) {
        return;
    }
    int start = i / inner * n * inner + i % inner;
    float most = -INFINITY, sum = 0.0f;
    for (int k = 0; k < n; k++) {
        most = reduce_with(REDUCE_Max, most, LOAD(x, start + k * inner));
    }
    for (int k = 0; k < n; k++) {
        sum += exp(LOAD(x, start + k * inner) - most);
    }
    float less = log(sum);
    for (int k = 0; k < n; k++) {
        float v = LOAD(x, start + k * inner) - most;
        STORE(logarithm ? v - less : exp(v) / sum, y, start + k * inner);
    }
}

__kernel void softmax_rows(__global const STORED *x, __global STORED *y, ROOM_PARAMETER int n,
                           int logarithm)
{
    ROOM
    int me = get_local_id(0), items = get_local_size(0), start = (int)get_group_id(0) * n;
    float most = -INFINITY, sum = 0.0f;
    for (int k = me; k < n; k += items) {
        most = reduce_with(REDUCE_Max, most, LOAD(x, start + k));
    }
    most = join(REDUCE_Max, most, room);
    for (int k = me; k < n; k += items) {
        sum += exp(LOAD(x, start + k) - most);
    }
    sum = join(REDUCE_Sum, sum, room);
    float less = log(sum);
    for (int k = me; k < n; k += items) {
        float v = LOAD(x, start + k) - most;
        STORE(logarithm ? v - less : exp(v) / sum, y, start + k);
    }
}

/* Rows of n, less their mean (unless centred is 0), over their deviation, times scale, plus shift.
 * Both are looked up at row % period * each + place / inner. */
__kernel void normalize_rows(__global const STORED *x, __global const float *scale,
                             __global const float *shift, __global STORED *y, ROOM_PARAMETER
                             int n, int period, int each, int inner, int centred, float epsilon)
{
    ROOM
    int me = get_local_id(0), items = get_local_size(0), row = get_group_id(0);
    int start = row * n, first = row % period * each;
    float sum = 0.0f, rest = 0.0f, mean = 0.0f, more = 0.0f, more_rest = 0.0f, left = 0.0f;
    if (centred) {
        for (int k = me; k < n; k += items) {
            add_up(&sum, &rest, LOAD(x, start + k));
        }
        mean = join(REDUCE_Sum, sum, room) / (float)n;
        sum = rest = 0.0f;
    }
    for (int k = me; k < n; k += items) {
        float away = LOAD(x, start + k) - mean;
        add_up(&sum, &rest, away * away);
        add_up(&more, &more_rest, away);
    }
    if (centred) { /* what rounding took from the mean: much, where rows are flat and far from 0 */
        left = join(REDUCE_Sum, more, room) / (float)n;
    }
    float spread = join(REDUCE_Sum, sum, room) / (float)n - left * left;
    float by = 1.0f / sqrt((spread < 0.0f ? 0.0f : spread) + epsilon);
    for (int k = me; k < n; k += items) {
        int c = first + k / inner;
        STORE((LOAD(x, start + k) - mean - left) * by * scale[c] + shift[c], y, start + k);
    }
}
