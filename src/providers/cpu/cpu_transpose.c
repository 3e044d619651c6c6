/* cpu_transpose.c: Transpose of elements of one and four bytes.
 *
 * Axes that stay together are joined first. If the last axis stays last, whole lines move;
 * otherwise the input's last axis and the one that becomes last form matrices to transpose. */
#include "providers/cpu/cpu.h"
#include "providers/reference/ref.h"

/* What is smaller stays on the thread that runs the step: it is in the caches of some core, and
 * fetching lines from another one costs more than moving them (180 KB: 6 us, on two threads 22). */
#define ALONE_BYTES (256 * 1024)

typedef struct turn {
    int rank;
    size_t dims[NORI_MAX_RANK];  /* of the output, joined */
    size_t in[NORI_MAX_RANK];    /* input strides of output axes */
    size_t out[NORI_MAX_RANK];   /* output strides */
    int across;                  /* output axis that is the input's last */
    size_t size;                 /* bytes of an element */
    const char *x;
    char *y;
    size_t units;                /* loops over all axes but the last and `across` */
} turn;

static void join_axes(const nori_tensor *x, const int *perm, turn *t)
{
    size_t strides[NORI_MAX_RANK], step = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        strides[d] = step;
        step *= (size_t)x->dims[d];
    }
    t->rank = 0;
    for (int d = 0; d < x->rank; d++) {
        size_t size = (size_t)x->dims[perm[d]], stride = strides[perm[d]];
        if (size == 1) {
            continue;
        }
        if (t->rank > 0 && t->in[t->rank - 1] == stride * size) {
            t->dims[t->rank - 1] *= size;
            t->in[t->rank - 1] = stride;
        } else {
            t->dims[t->rank] = size;
            t->in[t->rank++] = stride;
        }
    }
    if (t->rank == 0) {
        t->dims[0] = t->in[0] = 1;
        t->rank = 1;
    }
    step = 1;
    t->units = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        t->out[d] = step;
        step *= t->dims[d];
        t->across = t->in[d] == 1 ? d : t->across;
    }
    for (int d = 0; d < t->rank - 1; d++) {
        t->units *= d == t->across ? 1 : t->dims[d];
    }
}

/* A matrix at element `from` of the input to element `to` of the output, turned. */
static void turn_matrix(const turn *t, size_t rows, size_t cols, size_t from, size_t in_step,
                        size_t to, size_t out_step)
{
    const nori__kernels *kern = nori__kernels_get();
    const void *x = t->x + from * t->size;
    void *y = t->y + to * t->size;
    if (t->size == 1) {
        kern->x8_transpose(rows, cols, x, in_step, y, out_step, 0);
    } else {
        kern->x32_transpose(rows, cols, x, in_step, y, out_step);
    }
}

static void turn_units(void *user, int64_t begin, int64_t end, int thread)
{
    const turn *t = user;
    int last = t->rank - 1;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t rest = (size_t)u, from = 0, to = 0;
        for (int d = last - 1; d >= 0; d--) {
            if (d != t->across) {
                size_t i = rest % t->dims[d];
                rest /= t->dims[d];
                from += i * t->in[d];
                to += i * t->out[d];
            }
        }
        if (t->across == last) {
            memcpy(t->y + to * t->size, t->x + from * t->size, t->dims[last] * t->size);
        } else {
            turn_matrix(t, t->dims[last], t->dims[t->across], from, t->in[last], to,
                        t->out[t->across]);
        }
    }
}

/* One large matrix: columns of the input in strips. */
static void strip_units(void *user, int64_t begin, int64_t end, int thread)
{
    const turn *t = user;
    int last = t->rank - 1;
    size_t from = (size_t)begin;
    (void)thread;
    turn_matrix(t, t->dims[last], (size_t)(end - begin), from, t->in[last],
                from * t->out[t->across], t->out[t->across]);
}

static nori_status transpose_run(const void *state, nori_call *call)
{
    const nori_tensor *x = nori__ref_in(call, 0);
    nori_tensor *y = nori__ref_out(call, 0);
    size_t n = 0;
    const int64_t *list = nori__attr_ints(call->node, "perm", &n);
    int perm[NORI_MAX_RANK];
    uint32_t mask = 0;
    (void)state;
    if (!x || !y || x->kind != NORI_KIND_TENSOR || x->count == 0 || x->count != y->count ||
        x->type == NORI_STRING ||
        (x->bytes != (size_t)x->count * 4 && x->bytes != (size_t)x->count) || (list && n != x->rank)) {
        return nori__cpu_reference(call);
    }
    for (int d = 0; d < x->rank; d++) {
        int64_t p = list ? list[d] : x->rank - 1 - d;
        if (p < 0 || p >= x->rank || (mask >> p & 1)) {
            return nori__cpu_reference(call);
        }
        mask |= 1u << p;
        perm[d] = (int)p;
    }
    turn t = {.size = x->bytes / (size_t)x->count, .x = x->data, .y = y->data};
    join_axes(x, perm, &t);
    int threads = x->bytes < ALONE_BYTES ? 1 : nori__cpu_threads(call);
    if (t.units == 1 && t.across != t.rank - 1) {
        nori__parallel_for(call->pool, threads, (int64_t)t.dims[t.across], 64, strip_units, &t);
    } else {
        nori__parallel_for(call->pool, threads, (int64_t)t.units,
                           (int64_t)(1 + 16384 / (t.dims[t.rank - 1] * t.dims[t.across])),
                           turn_units, &t);
    }
    return NORI_OK;
}

const nori__kernel nori__cpu_transpose = {.size = sizeof(nori__kernel), .run = transpose_run};
