/* ref.c: what reference kernels share, see ref.h. */
#include "providers/reference/ref.h"

nori_status nori__ref_bad_type(const nori_call *call, uint32_t input)
{
    const nori_tensor *t = nori__ref_in(call, input);
    return nori__fail(call->err, NORI_ERROR_DATA,
                      "input %u of %s has type %s, which is not supported here", (unsigned)input,
                      call->node->op_type, t ? nori_type_name((nori_type)t->type) : "none");
}

nori_status nori__ref_need(const nori_call *call, uint32_t input)
{
    const nori_tensor *t = nori__ref_in(call, input);
    if (!t || t->kind != NORI_KIND_TENSOR) {
        return nori__fail(call->err, NORI_ERROR_DATA, "input %u of %s must be a tensor, found %s",
                          (unsigned)input, call->node->op_type, t ? "another kind" : "none");
    }
    return NORI_OK;
}

nori_status nori__ref_axis(const nori_call *call, int64_t axis, int rank, int *out)
{
    int64_t fixed = axis < 0 ? axis + rank : axis;
    if (fixed < 0 || fixed >= rank) {
        return nori__fail(call->err, NORI_ERROR_DATA,
                          "axis %lld of %s is outside a tensor of rank %d", (long long)axis,
                          call->node->op_type, rank);
    }
    *out = (int)fixed;
    return NORI_OK;
}

void nori__ref_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride = (int64_t)((uint64_t)stride * (uint64_t)dims[i]); /* wraps only where a size is 0 */
    }
}

nori__ref_split nori__ref_split_at(const nori_tensor *t, int axis)
{
    nori__ref_split s = {1, 1, 1};
    for (int i = 0; i < t->rank; i++) {
        *(i < axis ? &s.outer : i == axis ? &s.length : &s.inner) *= t->dims[i];
    }
    return s;
}

/* ---- blocks ---- */

#define LOAD_CASE(TYPE, name, stored, value, wrap)                 \
    case TYPE: {                                                   \
        const stored *p = (const stored *)t->data + first;         \
        for (int64_t i = 0; i < n; i++) {                          \
            out[i] = (element)nori__load_##name(p + i * step);     \
        }                                                          \
        break;                                                     \
    }

void nori__ref_load_f64(const nori_tensor *t, int64_t first, int64_t step, int64_t n, double *out)
{
    typedef double element;
    switch (t->type) {
        NORI__REF_NUMBERS(LOAD_CASE)
        NORI__REF_BOOL(LOAD_CASE)
    default: /* small and complex types */
        for (int64_t i = 0; i < n; i++) {
            out[i] = nori__tensor_get_f64(t, first + i * step);
        }
        break;
    }
}

void nori__ref_load_i64(const nori_tensor *t, int64_t first, int64_t step, int64_t n, int64_t *out)
{
    typedef int64_t element;
    switch (t->type) {
        NORI__REF_INTS(LOAD_CASE)
        NORI__REF_BOOL(LOAD_CASE)
    default:
        for (int64_t i = 0; i < n; i++) {
            out[i] = nori__tensor_get_i64(t, first + i * step);
        }
        break;
    }
}

#define STORE_CASE(TYPE, name, stored, value, wrap)                    \
    case TYPE: {                                                       \
        stored *p = (stored *)t->data + first;                         \
        for (int64_t i = 0; i < n; i++) {                              \
            nori__store_##name(p + i, (value)in[i]);                   \
        }                                                              \
        break;                                                         \
    }

void nori__ref_store_f64(nori_tensor *t, int64_t first, int64_t n, const double *in)
{
    switch (t->type) {
        STORE_CASE(NORI_FLOAT, f32, float, float, float)
        STORE_CASE(NORI_DOUBLE, f64, double, double, double)
    case NORI_FLOAT16: { /* one rounding, not two */
        uint16_t *p = (uint16_t *)t->data + first;
        for (int64_t i = 0; i < n; i++) {
            p[i] = nori__f64_to_f16(in[i]);
        }
        break;
    }
    default:
        for (int64_t i = 0; i < n; i++) {
            nori__tensor_set_f64(t, first + i, in[i]);
        }
        break;
    }
}

void nori__ref_store_i64(nori_tensor *t, int64_t first, int64_t n, const int64_t *in)
{
    switch (t->type) {
        NORI__REF_INTS(STORE_CASE)
    default:
        for (int64_t i = 0; i < n; i++) {
            nori__tensor_set_i64(t, first + i, in[i]);
        }
        break;
    }
}

/* ---- broadcasting ---- */

static nori_status no_broadcast(const nori_call *call, int arg, int axis, int64_t found,
                                int64_t expected)
{
    return nori__fail(call->err, NORI_ERROR_DATA,
                      "input %d of %s cannot be broadcast: axis %d (from the right) is %lld, "
                      "expected %lld or 1",
                      arg, call->node->op_type, axis, (long long)found, (long long)expected);
}

/* Fills stride[][] and dims[] in the output's own axes, ones left out, neighbours joined. */
static nori_status collapse(const nori_call *call, nori__ref_walk *w)
{
    const nori_tensor *to = w->line.to;
    int64_t next[NORI__REF_ARGS]; /* stride of the axis at hand, by input */
    for (int a = 0; a < w->args; a++) {
        const nori_tensor *from = w->line.from[a];
        if (from->rank > to->rank) {
            return nori__fail(call->err, NORI_ERROR_DATA,
                              "input %d of %s has rank %d, more than the result's %d", a,
                              call->node->op_type, from->rank, to->rank);
        }
        next[a] = 1;
    }
    int64_t dims[NORI_MAX_RANK + 1], stride[NORI__REF_ARGS][NORI_MAX_RANK + 1];
    int rank = 0; /* axes are collected from the right */
    for (int right = 0; right < to->rank; right++) {
        int64_t n = to->dims[to->rank - 1 - right];
        int64_t here[NORI__REF_ARGS];
        bool join = rank > 0;
        for (int a = 0; a < w->args; a++) {
            const nori_tensor *from = w->line.from[a];
            int64_t m = right < from->rank ? from->dims[from->rank - 1 - right] : 1;
            if (m != n && m != 1) {
                return no_broadcast(call, a, right, m, n);
            }
            here[a] = m == 1 ? 0 : next[a];
            next[a] *= m;
            join = join && here[a] == stride[a][rank - 1] * dims[rank - 1];
        }
        if (n == 1) {
            continue;
        }
        if (join) {
            dims[rank - 1] *= n;
            continue;
        }
        for (int a = 0; a < w->args; a++) {
            stride[a][rank] = here[a];
        }
        dims[rank++] = n;
    }
    if (rank == 0) {
        dims[0] = 1;
        for (int a = 0; a < w->args; a++) {
            stride[a][0] = 0;
        }
        rank = 1;
    }
    w->rank = rank;
    for (int i = 0; i < rank; i++) {
        w->dims[i] = dims[rank - 1 - i];
        for (int a = 0; a < w->args; a++) {
            w->stride[a][i] = stride[a][rank - 1 - i];
        }
    }
    return NORI_OK;
}

nori_status nori__ref_walk_start(nori_call *call, nori__ref_walk *w, nori_tensor *to,
                                 const nori_tensor *const *from, int n_from)
{
    memset(w, 0, sizeof(*w));
    w->line.to = to;
    w->line.from = from;
    w->args = n_from;
    NORI__TRY(collapse(call, w));
    w->line.n = w->dims[w->rank - 1];
    w->lines = to->count == 0 ? 0 : to->count / w->line.n;
    for (int a = 0; a < n_from; a++) {
        w->line.step[a] = w->stride[a][w->rank - 1];
    }
    return NORI_OK;
}

/* Puts the walk in front of a line by number. */
static void seek(nori__ref_walk *w, int64_t number)
{
    w->done = number;
    w->line.out = number * w->line.n;
    memset(w->line.in, 0, sizeof(w->line.in));
    for (int i = w->rank - 2; i >= 0; i--) {
        w->at[i] = number % w->dims[i];
        number /= w->dims[i];
        for (int a = 0; a < w->args; a++) {
            w->line.in[a] += w->at[i] * w->stride[a][i];
        }
    }
}

bool nori__ref_walk_next(nori__ref_walk *w)
{
    if (w->done >= w->lines) {
        return false;
    }
    if (w->done++ == 0) {
        return true;
    }
    w->line.out += w->line.n;
    for (int i = w->rank - 2; i >= 0; i--) {
        bool carry = ++w->at[i] == w->dims[i];
        for (int a = 0; a < w->args; a++) {
            w->line.in[a] += w->stride[a][i] * (carry ? 1 - w->dims[i] : 1);
        }
        if (!carry) {
            break;
        }
        w->at[i] = 0;
    }
    return true;
}

enum { THREAD_GRAIN = 16384 }; /* elements below which a second thread costs more than it saves */

typedef struct job {
    const nori__ref_walk *walk;
    nori__ref_line_fn fn;
} job;

/* A range of whole lines. */
static void run_lines(void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = user;
    nori__ref_walk w = *j->walk;
    seek(&w, begin);
    for (int64_t i = begin; i < end; i++) {
        j->fn(&w.line);
        w.done = i + 1;
        if (i + 1 < end) {
            nori__ref_walk_next(&w);
        }
    }
}

/* A piece of the only line. */
static void run_piece(void *user, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = user;
    nori__ref_line line = j->walk->line;
    line.out += begin;
    line.n = end - begin;
    for (int a = 0; a < j->walk->args; a++) {
        line.in[a] += begin * line.step[a];
    }
    j->fn(&line);
}

nori_status nori__ref_lines(nori_call *call, nori_tensor *to, const nori_tensor *const *from,
                            int n_from, nori__ref_line_fn fn, void *user)
{
    nori__ref_walk w;
    NORI__TRY(nori__ref_walk_start(call, &w, to, from, n_from));
    w.line.user = user;
    job j = {&w, fn};
    if (w.lines == 1) {
        nori__parallel_for(call->pool, call->threads, w.line.n, THREAD_GRAIN, run_piece, &j);
    } else if (w.lines > 1) {
        int64_t grain = THREAD_GRAIN / w.line.n;
        nori__parallel_for(call->pool, call->threads, w.lines, grain > 0 ? grain : 1, run_lines,
                           &j);
    }
    return NORI_OK;
}
