/* ref_move.c: the one loop nest behind all operators that only move elements. */
#include "providers/reference/ref_move.h"

/* ---- one line ---- */

#define LINE(bits, type)                                                                           \
    static void line_##bits(const void *from, int64_t first, int64_t from_step, void *to,          \
                            int64_t at, int64_t to_step, int64_t n)                                \
    {                                                                                              \
        const type *f = (const type *)from + first;                                                \
        type *t = (type *)to + at;                                                                 \
        if (from_step == 1 && to_step == 1) {                                                      \
            memcpy(t, f, (size_t)n * sizeof(type));                                                \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            t[i * to_step] = f[i * from_step];                                                     \
        }                                                                                          \
    }
typedef struct wide {
    uint64_t half[2];
} wide;
LINE(8, uint8_t)
LINE(16, uint16_t)
LINE(32, uint32_t)
LINE(64, uint64_t)
LINE(128, wide)

#define LINE_SUB(bits)                                                                             \
    static void line_##bits(const void *from, int64_t first, int64_t from_step, void *to,          \
                            int64_t at, int64_t to_step, int64_t n)                                \
    {                                                                                              \
        const unsigned mask = (1u << bits) - 1, per = 8 / bits;                                    \
        for (int64_t i = 0; i < n; i++) {                                                          \
            uint64_t f = (uint64_t)(first + i * from_step), t = (uint64_t)(at + i * to_step);      \
            unsigned v = ((const uint8_t *)from)[f / per] >> f % per * bits & mask;                \
            uint8_t *p = (uint8_t *)to + t / per;                                                  \
            *p = (uint8_t)((*p & ~(mask << t % per * bits)) | v << t % per * bits);                \
        }                                                                                          \
    }
LINE_SUB(2)
LINE_SUB(4)

typedef void (*line_fn)(const void *from, int64_t first, int64_t from_step, void *to, int64_t at,
                        int64_t to_step, int64_t n);

static line_fn line_for(nori_type type)
{
    switch (nori_type_bits(type)) {
    case 2:
        return line_2;
    case 4:
        return line_4;
    case 8:
        return line_8;
    case 16:
        return line_16;
    case 32:
        return line_32;
    case 64:
        return line_64;
    default:
        return line_128;
    }
}

static nori_status line_text(const nori_tensor *from, int64_t first, int64_t from_step,
                             nori_tensor *to, int64_t at, int64_t to_step, int64_t n,
                             nori_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        const nori_string *s = (const nori_string *)from->data + first + i * from_step;
        NORI__TRY(nori__tensor_set_string(to, at + i * to_step, s->data, s->size, err));
    }
    return NORI_OK;
}

/* ---- loops ---- */

/* Loops of one turn go, neighbours that run on are joined. False: there is nothing to do. */
static bool simplify(const nori__move *m, nori__move *s)
{
    s->rank = 0;
    s->from = m->from;
    s->to = m->to;
    for (int d = 0; d < m->rank; d++) {
        int64_t n = m->dims[d], f = m->from_step[d], t = m->to_step[d];
        if (n == 0) {
            return false;
        }
        if (n == 1) {
            continue;
        }
        int last = s->rank - 1;
        if (last >= 0 && s->from_step[last] == f * n && s->to_step[last] == t * n) {
            s->dims[last] *= n;
            s->from_step[last] = f;
            s->to_step[last] = t;
            continue;
        }
        s->dims[s->rank] = n;
        s->from_step[s->rank] = f;
        s->to_step[s->rank++] = t;
    }
    if (s->rank == 0) {
        s->dims[0] = s->from_step[0] = s->to_step[0] = 1;
        s->rank = 1;
    }
    return true;
}

nori_status nori__move_all(const nori__move *m, const nori_tensor *from, nori_tensor *to,
                           nori_error *err)
{
    nori__move s;
    int64_t at[NORI__MOVE_RANK] = {0};
    if (!simplify(m, &s)) {
        return NORI_OK;
    }
    int in = s.rank - 1;
    int64_t f = s.from, t = s.to, n = s.dims[in], fs = s.from_step[in], ts = s.to_step[in];
    bool text = to->type == NORI_STRING;
    line_fn line = line_for((nori_type)to->type);
    size_t width = nori_type_bits((nori_type)to->type) / 8;
    if (in == 0 && fs == 1 && ts == 1 && width > 0 && !text &&
        (const char *)from->data + (size_t)f * width == (char *)to->data + (size_t)t * width) {
        return NORI_OK; /* the plan has put the piece where it goes */
    }
    for (;;) {
        if (text) {
            NORI__TRY(line_text(from, f, fs, to, t, ts, n, err));
        } else {
            line(from->data, f, fs, to->data, t, ts, n);
        }
        int d = in - 1;
        while (d >= 0) {
            f += s.from_step[d];
            t += s.to_step[d];
            if (++at[d] < s.dims[d]) {
                break;
            }
            f -= s.from_step[d] * s.dims[d];
            t -= s.to_step[d] * s.dims[d];
            at[d--] = 0;
        }
        if (d < 0) {
            return NORI_OK;
        }
    }
}

nori_status nori__move_run(const nori_tensor *from, int64_t first, nori_tensor *to, int64_t at,
                           int64_t n, nori_error *err)
{
    if (n <= 0) {
        return NORI_OK;
    }
    if (to->type == NORI_STRING) {
        return line_text(from, first, 1, to, at, 1, n, err);
    }
    line_for((nori_type)to->type)(from->data, first, 1, to->data, at, 1, n);
    return NORI_OK;
}

nori_status nori__move_whole(const nori_tensor *from, nori_tensor *to, nori_error *err)
{
    if (from->data == to->data || to->count == 0) {
        return NORI_OK;
    }
    if (to->type == NORI_STRING) {
        return line_text(from, 0, 1, to, 0, 1, to->count, err);
    }
    memcpy(to->data, from->data, to->bytes);
    return NORI_OK;
}

nori_status nori__move_fill(const nori_tensor *from, int64_t index, nori_tensor *to,
                            nori_error *err)
{
    if (!from && to->type == NORI_STRING) {
        for (int64_t i = 0; i < to->count; i++) {
            NORI__TRY(nori__tensor_set_string(to, i, "", 0, err));
        }
        return NORI_OK;
    }
    if (!from) {
        if (to->bytes > 0) {
            memset(to->data, 0, to->bytes);
        }
        return NORI_OK;
    }
    nori__move m = {.rank = 1, .dims = {to->count}, .to_step = {1}, .from = index};
    return nori__move_all(&m, from, to, err);
}

nori_status nori__move_table(const nori_tensor *from, nori_tensor *to, const int64_t *const *table,
                             nori_error *err)
{
    int64_t at[NORI_MAX_RANK] = {0};
    bool text = to->type == NORI_STRING;
    line_fn line = line_for((nori_type)to->type);
    int rank = to->rank, in = rank - 1;
    if (to->count == 0) {
        return NORI_OK;
    }
    int64_t n = rank ? to->dims[in] : 1;
    for (int64_t t = 0; t < to->count; t += n) {
        int64_t base = 0;
        bool outside = false;
        for (int d = 0; d < in; d++) {
            base += table[d][at[d]];
            outside = outside || table[d][at[d]] < 0;
        }
        for (int64_t i = 0, run; !outside && i < n; i += run) {
            int64_t first = rank ? table[in][i] : 0;
            run = 1;
            while (rank && first >= 0 && i + run < n && table[in][i + run] == first + run) {
                run++;
            }
            if (first < 0) {
                continue;
            }
            if (text) {
                NORI__TRY(line_text(from, base + first, 1, to, t + i, 1, run, err));
            } else {
                line(from->data, base + first, 1, to->data, t + i, 1, run);
            }
        }
        for (int d = in - 1; d >= 0 && ++at[d] == to->dims[d]; d--) {
            at[d] = 0;
        }
    }
    return NORI_OK;
}

void nori__move_like(nori__move *m, int rank, const int64_t *dims, const int64_t *from_dims,
                     const int64_t *to_dims)
{
    m->rank = rank;
    m->from = m->to = 0;
    nori__ref_strides(rank, from_dims, m->from_step);
    nori__ref_strides(rank, to_dims, m->to_step);
    for (int d = 0; d < rank; d++) {
        m->dims[d] = dims[d];
    }
}

/* ---- checks ---- */

nori_status nori__need_indices(const nori_call *call, uint32_t i)
{
    NORI__TRY(nori__ref_need(call, i));
    if (call->in[i]->type != NORI_INT64 && call->in[i]->type != NORI_INT32) {
        return nori__ref_bad_type(call, i);
    }
    return NORI_OK;
}

nori_status nori__bad_index(const nori_call *call, uint32_t input, int64_t i, int axis,
                            int64_t size)
{
    return nori__fail(call->err, NORI_ERROR_DATA,
                      "index %lld (element %lld of input %u) is outside of axis %d of size %lld",
                      (long long)nori__tensor_get_i64(call->in[input], i), (long long)i, input,
                      axis, (long long)size);
}

nori_status nori__need_rank(const nori_call *call, uint32_t i, int rank)
{
    NORI__TRY(nori__ref_need(call, i));
    if (rank >= 0 && call->in[i]->rank != rank) {
        return nori__fail(call->err, NORI_ERROR_DATA, "input %u has rank %d, expected %d", i,
                          call->in[i]->rank, rank);
    }
    return NORI_OK;
}
