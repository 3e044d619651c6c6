/* cpu_resize.c: Resize of height and width, nearest or linear, of plain and of blocked activations.
 *
 * Where each output row and column looks is worked out once a run; then rows go by. Linear takes
 * two rows and two columns of each in float, where the reference kernel goes axis by axis in
 * double. Regions, antialiasing, cubic and other axes are left to the reference kernel. */
#include "providers/cpu/blocked.h"
#include "providers/reference/ref_resize.h"

typedef struct resize_job {
    const nori__kernels *kern;
    const float *x;
    float *y;
    bool linear;
    size_t block; /* floats a pixel: 1 when plain */
    size_t in[2], out[2];
    nori__linear_tap *tap[2];
    int64_t *at[2];
} resize_job;

/* Reads the node for an input seen as [N, C, H, W]. False: for the reference kernel. */
static bool resize_read(const nori_call *call, const int64_t dims[4], const int64_t out[4],
                        nori__resize *r)
{
    int64_t want[NORI_MAX_RANK];
    int n = -1;
    if (nori__resize_read(call->node, NULL, r) != NORI_OK || r->coords == NORI__TF_CROP ||
        r->mode == NORI__CUBIC) {
        return false;
    }
    const nori_tensor *scales = nori__cpu_has(call, r->scales_in) ? call->in[r->scales_in] : NULL;
    if (r->sizes_in != UINT32_MAX && nori__cpu_has(call, r->sizes_in)) {
        const nori_tensor *sizes = call->in[r->sizes_in];
        n = sizes->count <= NORI_MAX_RANK ? (int)sizes->count : NORI_MAX_RANK;
        for (int i = 0; i < n; i++) {
            want[i] = nori__tensor_get_i64(sizes, i);
        }
    }
    if (nori__resize_sizes(call->node, NULL, 4, dims, NULL, scales, want, n, r) != NORI_OK) {
        return false;
    }
    bool fits = true;
    for (int d = 0; d < 4; d++) {
        bool kept = r->scale[d] == 1 && r->out[d] == dims[d];
        fits = fits && r->out[d] == out[d] && dims[d] > 0 && (d >= 2 || kept) &&
               !(r->antialias && r->scale[d] < 1);
    }
    return fits;
}

static size_t table_bytes(const nori_tensor *y)
{
    return ((size_t)y->dims[2] + (size_t)y->dims[3]) * sizeof(nori__linear_tap);
}

static size_t resize_workspace(const void *state, const nori_call *call)
{
    (void)state;
    return call->out[0]->rank >= 4 ? table_bytes(call->out[0]) : 0;
}

static void fill_tables(const nori__resize *r, resize_job *j, void *work)
{
    nori__linear_tap *tap = work;
    int64_t *at = work;
    for (int d = 0; d < 2; d++) {
        j->tap[d] = tap;
        j->at[d] = at;
        for (size_t o = 0; o < j->out[d]; o++) {
            int64_t in = (int64_t)j->in[d];
            if (!j->linear) {
                *at++ = nori__resize_nearest_at(r, d + 2, in, (int64_t)o);
                continue;
            }
            int64_t where[2];
            double weight[2];
            nori__resize_linear_at(r, d + 2, in, (int64_t)o, where, weight);
            *tap++ = (nori__linear_tap){{(size_t)where[0], (size_t)where[1]},
                                        {(float)weight[0], (float)weight[1]}};
        }
    }
}

static void plain_linear(size_t n, const nori__linear_tap *tap, const float *x0, const float *x1,
                         float a, float b, float *y)
{
    for (size_t i = 0; i < n; i++) {
        size_t p = tap[i].at[0], q = tap[i].at[1];
        float up = tap[i].weight[0] * x0[p] + tap[i].weight[1] * x0[q];
        float down = tap[i].weight[0] * x1[p] + tap[i].weight[1] * x1[q];
        y[i] = a * up + b * down;
    }
}

/* One output row of a plane. */
static void resize_row(const resize_job *j, size_t row, const float *x, float *y)
{
    size_t line = j->in[1] * j->block, n = j->out[1];
    if (j->linear) {
        const nori__linear_tap *v = &j->tap[0][row];
        const float *x0 = x + v->at[0] * line, *x1 = x + v->at[1] * line;
        (j->block > 1 ? j->kern->f32_block_linear : plain_linear)(n, j->tap[1], x0, x1,
                                                                  v->weight[0], v->weight[1], y);
        return;
    }
    const float *from = x + (size_t)j->at[0][row] * line;
    if (j->block > 1) {
        j->kern->f32_block_pick(n, j->at[1], from, y);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        y[i] = from[j->at[1][i]];
    }
}

static void resize_units(void *user, int64_t begin, int64_t end, int thread)
{
    const resize_job *j = user;
    size_t rows = j->out[0], line = j->out[1] * j->block;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t plane = (size_t)u / rows, row = (size_t)u % rows;
        float *y = j->y + (plane * rows + row) * line;
        /* Enlarged by whole factors, rows repeat; the one before is there if it is of this call. */
        if (!j->linear && u > begin && row > 0 && j->at[0][row] == j->at[0][row - 1]) {
            memcpy(y, y - line, line * sizeof(float));
            continue;
        }
        resize_row(j, row, j->x + plane * j->in[0] * j->in[1] * j->block, y);
    }
}

/* channels < 0: plain. */
static nori_status resize_any(nori_call *call, int64_t channels)
{
    const nori_tensor *x = call->in[0];
    nori_tensor *y = call->out[0];
    bool is_blocked = channels >= 0;
    int64_t in[4] = {x->dims[0], is_blocked ? channels : x->dims[1], x->dims[2], x->dims[3]};
    int64_t out[4] = {y->dims[0], is_blocked ? channels : y->dims[1], y->dims[2], y->dims[3]};
    nori__resize r;
    if (!resize_read(call, in, out, &r)) {
        return is_blocked ? nori__fail(call->err, NORI_ERROR_DATA,
                                       "the scales of this run are not of height and width alone")
                          : nori__cpu_reference(call);
    }
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, table_bytes(y), &scratch));
    resize_job j = {.kern = nori__kernels_get(), .x = x->data, .y = y->data,
                    .linear = r.mode == NORI__LINEAR,
                    .block = is_blocked ? nori__kernels_get()->block : 1,
                    .in = {(size_t)in[2], (size_t)in[3]}, .out = {(size_t)out[2], (size_t)out[3]}};
    fill_tables(&r, &j, scratch.data);
    int64_t rows = y->dims[0] * y->dims[1] * y->dims[2];
    int64_t grain = 8192 / (int64_t)(j.out[1] * j.block + 1) + 1;
    nori__parallel_for(call->pool, nori__cpu_threads(call), rows, grain, resize_units, &j);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

static nori_status plain_run(const void *state, nori_call *call)
{
    (void)state;
    const nori_tensor *x = call->in[0];
    if (!x || !call->out[0] || x->rank != 4 || x->type != NORI_FLOAT || x->count == 0 ||
        call->out[0]->count == 0) {
        return nori__cpu_reference(call);
    }
    return resize_any(call, -1);
}

static nori_status blocked_run(const void *state, nori_call *call)
{
    (void)state;
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    return resize_any(call, nori__attr_i(call->node, "channels", -1));
}

const nori__kernel nori__cpu_resize = {.size = sizeof(nori__kernel),
                                       .workspace = resize_workspace, .run = plain_run};
const nori__kernel nori__blocked_resize = {.size = sizeof(nori__kernel),
                                           .workspace = resize_workspace, .run = blocked_run};
