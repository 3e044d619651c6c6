/* cpu_attention.c: Attend of joined.h: softmax(scale Q K + mask) V, a few rows of Q at a time, so that
 * a block of scores never leaves the first caches.
 *
 * Axes are read and written where they lie: transpositions of the operands and of the result are
 * strides. K and V of a head are packed once a unit of work. The order of all sums follows from the
 * sizes alone. A row of scores with NaN, or all -infinity, gives NaN, as Softmax does. */
#include "providers/cpu/joined.h"

#define SLICE_ROWS 64 /* fewer are not worth packing K and V once more for another thread */

/* An operand seen through its permutation. */
typedef struct view {
    const float *data;
    int64_t dims[NORI_MAX_RANK];
    size_t step[NORI_MAX_RANK];
} view;

typedef struct attend_run {
    const nori__kernels *kern;
    int rank;
    view q, k, v, mask;
    float *y;
    size_t y_step[NORI_MAX_RANK];
    int64_t dims[NORI_MAX_RANK]; /* of the result before it is turned */
    size_t heads, rows, keys, depth, width;
    float scale;
    size_t slices;               /* of rows, a head */
    size_t k_floats, v_floats, ld, each; /* of scratch; each: bytes a thread */
    char *scratch;
} attend_run;

/* Reads t with axes in the order of an attribute; false: they do not fit. */
static bool see(const nori_call *call, uint32_t i, const char *attr, int rank, view *v)
{
    const nori_tensor *t = nori__cpu_has(call, i) ? call->in[i] : NULL;
    size_t n = 0, steps[NORI_MAX_RANK], step = 1;
    const int64_t *perm = nori__attr_ints(call->node, attr, &n);
    if (!t || t->type != NORI_FLOAT || t->rank != rank || n != (size_t)rank) {
        return false;
    }
    for (int d = rank - 1; d >= 0; d--) {
        steps[d] = step;
        step *= (size_t)t->dims[d];
    }
    for (int d = 0; d < rank; d++) {
        v->dims[d] = t->dims[perm[d]];
        v->step[d] = steps[perm[d]];
    }
    v->data = t->data;
    return true;
}

/* The mask, aligned at its last axis; absent axes have one element. */
static void see_mask(const nori_tensor *t, int rank, view *v)
{
    size_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        int at = d - (rank - t->rank);
        v->dims[d] = at >= 0 ? t->dims[at] : 1;
        v->step[d] = step;
        step *= (size_t)v->dims[d];
    }
    v->data = t->data;
}

static bool join(int64_t *dim, int64_t other)
{
    *dim = *dim == 1 ? other : *dim;
    return other == 1 || other == *dim;
}

/* Axes of one element stay where they are while the result's axis goes on. */
static void repeat(view *v, int axis, int64_t size)
{
    v->step[axis] = v->dims[axis] == 1 && size != 1 ? 0 : v->step[axis];
}

static bool attend_shapes(const nori_call *call, attend_run *r)
{
    size_t n = 0, k_panels, v_panels;
    (void)nori__attr_ints(call->node, "perm_q", &n);
    memset(r, 0, sizeof(*r));
    r->kern = nori__kernels_get();
    r->rank = (int)n;
    r->scale = nori__attr_f(call->node, "scale", 1);
    int rank = r->rank, row = rank - 2, col = rank - 1;
    const nori_tensor *mask = nori__cpu_has(call, 3) ? call->in[3] : NULL, *y = call->out[0];
    if (rank < 3 || !y || y->rank != rank || y->type != NORI_FLOAT ||
        (mask && (mask->type != NORI_FLOAT || mask->rank > rank)) ||
        !see(call, 0, "perm_q", rank, &r->q) || !see(call, 1, "perm_k", rank, &r->k) ||
        !see(call, 2, "perm_v", rank, &r->v)) {
        return false;
    }
    int64_t rows = r->q.dims[row], keys = r->k.dims[col];
    if (mask) {
        see_mask(mask, rank, &r->mask);
        if (!join(&rows, r->mask.dims[row]) || !join(&keys, r->mask.dims[col])) {
            return false;
        }
        repeat(&r->q, row, rows);
        repeat(&r->k, col, keys);
        repeat(&r->mask, row, rows);
        repeat(&r->mask, col, keys);
    }
    r->heads = 1;
    for (int d = 0; d < row; d++) {
        r->dims[d] = r->q.dims[d];
        if (!join(&r->dims[d], r->k.dims[d]) || !join(&r->dims[d], r->v.dims[d]) ||
            (mask && !join(&r->dims[d], r->mask.dims[d]))) {
            return false;
        }
        repeat(&r->q, d, r->dims[d]);
        repeat(&r->k, d, r->dims[d]);
        repeat(&r->v, d, r->dims[d]);
        repeat(&r->mask, d, r->dims[d]);
        r->heads *= (size_t)r->dims[d];
    }
    r->dims[row] = rows;
    r->dims[col] = r->v.dims[col];
    r->rows = (size_t)rows;
    r->keys = (size_t)keys;
    r->depth = (size_t)r->q.dims[col];
    r->width = (size_t)r->v.dims[col];
    const int64_t *perm = nori__attr_ints(call->node, "perm", &n);
    size_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        int64_t axis = perm ? perm[d] : d;
        if (y->dims[d] != r->dims[axis]) {
            return false;
        }
        r->y_step[axis] = step;
        step *= (size_t)y->dims[d];
    }
    r->ld = (r->keys + 15) / 16 * 16;
    r->ld += r->ld % 512 == 0 ? 16 : 0; /* rows that do not push each other out of the cache */
    k_panels = nori__packed_b(r->keys, r->depth > 0 ? r->depth : 1);
    v_panels = nori__packed_b(r->width, r->keys > 0 ? r->keys : 1);
    r->k_floats = nori__cpu_round(k_panels * sizeof(float)) / sizeof(float);
    r->v_floats = nori__cpu_round(v_panels * sizeof(float)) / sizeof(float);
    size_t total = r->k_floats;
    return r->k.dims[row] == r->q.dims[col] && r->v.dims[row] == keys &&
           nori__add_size(total, r->v_floats, &total) &&
           nori__add_size(total, r->kern->f32_mr * r->ld, &total) &&
           nori__mul_size(total, sizeof(float), &total) && total < SIZE_MAX / 4 &&
           (r->each = nori__cpu_round(total)) >= total;
}

/* Operands of one head. */
typedef struct head {
    const float *q, *k, *v, *mask;
    float *y;
} head;

static head head_at(const attend_run *r, size_t index)
{
    head h = {r->q.data, r->k.data, r->v.data, r->mask.data, r->y};
    for (int d = r->rank - 3; d >= 0; d--) {
        size_t i = index % (size_t)r->dims[d];
        index /= (size_t)r->dims[d];
        h.q += i * r->q.step[d];
        h.k += i * r->k.step[d];
        h.v += i * r->v.step[d];
        h.mask = h.mask ? h.mask + i * r->mask.step[d] : NULL;
        h.y += i * r->y_step[d];
    }
    return h;
}

/* Panels of keys with all their depth, times the scale; panels of V with all keys. */
static void pack_head(const attend_run *r, const head *h, float *keys, float *values)
{
    const nori__kernels *kern = r->kern;
    size_t nr = kern->f32_nr, row = (size_t)r->rank - 2, col = row + 1;
    for (size_t j = 0; j < r->keys; j += nr) {
        size_t count = r->keys - j < nr ? r->keys - j : nr;
        float *to = keys + j * r->depth;
        kern->f32_pack(nr, r->depth, count, h->k + j * r->k.step[col], r->k.step[row],
                       r->k.step[col], to);
        if (r->scale != 1) {
            const float p[2] = {r->scale, 0};
            kern->f32_unary[NORI__U_AFFINE](nr * r->depth, to, to, p);
        }
    }
    for (size_t j = 0; j < r->width; j += nr) {
        size_t count = r->width - j < nr ? r->width - j : nr;
        kern->f32_pack(nr, r->keys, count, h->v + j * r->v.step[col], r->v.step[row],
                       r->v.step[col], values + j * r->keys);
    }
}

/* Rows [i, i + rows) of one head, rows <= mr. */
static void attend_rows(const attend_run *r, const head *h, size_t i, size_t rows,
                        const float *keys, const float *values, float *scores)
{
    const nori__kernels *kern = r->kern;
    size_t nr = kern->f32_nr, row = (size_t)r->rank - 2, col = row + 1;
    const float *mask = h->mask ? h->mask + i * r->mask.step[row] : NULL;
    bool dense = mask && r->mask.step[col] == 1;
    for (size_t j = 0; j < r->keys; j += nr) {
        nori__f32_finish f = {.add = dense ? mask + j : NULL, .ld_add = r->mask.step[row]};
        kern->f32_tile(rows, r->keys - j < nr ? r->keys - j : nr, r->depth,
                       h->q + i * r->q.step[row], r->q.step[row], r->q.step[col],
                       keys + j * r->depth, scores + j, r->ld, &f);
    }
    for (size_t s = 0; s < rows; s++) {
        float *line = scores + s * r->ld;
        if (mask && !dense) {
            kern->f32_binary[NORI__B_ADD](r->keys, line, 1, mask + s * r->mask.step[row], 0, line);
        }
        kern->f32_softmax(r->keys, line, line);
    }
    nori__f32_finish none = {0};
    for (size_t j = 0; j < r->width; j += nr) {
        kern->f32_tile(rows, r->width - j < nr ? r->width - j : nr, r->keys, scores, r->ld, 1,
                       values + j * r->keys, h->y + i * r->y_step[row] + j, r->y_step[row], &none);
    }
}

static void attend_units(void *user, int64_t begin, int64_t end, int thread)
{
    const attend_run *r = user;
    float *keys = (float *)(void *)(r->scratch + (size_t)thread * r->each);
    float *values = keys + r->k_floats, *scores = values + r->v_floats;
    size_t packed = SIZE_MAX, mr = r->kern->f32_mr;
    for (int64_t u = begin; u < end; u++) {
        size_t index = (size_t)u / r->slices, slice = (size_t)u % r->slices;
        head h = head_at(r, index);
        if (packed != index) {
            pack_head(r, &h, keys, values);
            packed = index;
        }
        size_t stop = r->rows * (slice + 1) / r->slices;
        for (size_t i = r->rows * slice / r->slices; i < stop; i += mr) {
            attend_rows(r, &h, i, stop - i < mr ? stop - i : mr, keys, values, scores);
        }
    }
}

static size_t attend_workspace(const void *state, const nori_call *call)
{
    attend_run r;
    (void)state;
    return attend_shapes(call, &r) ? r.each * (size_t)nori__cpu_threads(call) : 0;
}

static nori_status attend_kernel(const void *state, nori_call *call)
{
    attend_run r;
    (void)state;
    if (!attend_shapes(call, &r)) {
        return nori__fail(call->err, NORI_ERROR_DATA, "operands of an attention do not fit");
    }
    if (call->out[0]->count == 0) {
        return NORI_OK;
    }
    size_t threads = (size_t)nori__cpu_threads(call), most = r.rows / SLICE_ROWS;
    r.slices = r.heads < 4 * threads && threads > 1 ? (4 * threads + r.heads - 1) / r.heads : 1;
    r.slices = r.slices < most ? r.slices : most > 0 ? most : 1;
    nori__cpu_scratch scratch;
    NORI__TRY(nori__cpu_take(call, r.each * threads, &scratch));
    r.scratch = scratch.data;
    r.y = call->out[0]->data;
    nori__cpu_for(call->pool, (int)threads, (int64_t)(r.heads * r.slices), 1, attend_units, &r);
    nori__cpu_give(call, &scratch);
    return NORI_OK;
}

const nori__kernel nori__cpu_attend = {.size = sizeof(nori__kernel),
                                       .workspace = attend_workspace,
                                       .run = attend_kernel};

/* ---- shapes ---- */

/* Input i through its permutation; false: not known. */
static bool turned(const nori__infer *c, uint32_t i, const char *attr, nori__shape *s)
{
    size_t n = 0;
    const int64_t *perm = nori__attr_ints(c->node, attr, &n);
    if (!perm || nori__in_rank(c, i) != (int)n) {
        return false;
    }
    *s = c->in[i];
    for (size_t d = 0; d < n; d++) {
        s->dims[d] = c->in[i].dims[perm[d]];
    }
    return true;
}

nori_status nori__infer_attend(nori__infer *c)
{
    nori__shape q, k, v;
    if (!turned(c, 0, "perm_q", &q) || !turned(c, 1, "perm_k", &k) || !turned(c, 2, "perm_v", &v)) {
        return NORI_OK;
    }
    int row = q.rank - 2, col = q.rank - 1;
    q.dims[col] = k.dims[row] = v.dims[row] = nori__dim_of(1);
    NORI__TRY(nori__broadcast(c, &q, &k, &q)); /* scores */
    if (nori__has_in(c, 3)) {
        if (nori__in_rank(c, 3) < 0) {
            return NORI_OK;
        }
        NORI__TRY(nori__broadcast(c, &q, &c->in[3], &q));
    }
    q.dims[col] = nori__dim_of(1);
    NORI__TRY(nori__broadcast(c, &q, &v, &q));
    size_t n = 0;
    const int64_t *perm = nori__attr_ints(c->node, "perm", &n);
    nori__dim dims[NORI_MAX_RANK];
    for (int d = 0; d < q.rank; d++) {
        dims[d] = q.dims[perm ? perm[d] : d];
    }
    nori__out_set(c, 0, NORI_FLOAT, q.rank, dims);
    return NORI_OK;
}
