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

/* Elements a unit for a thread. */
#define SPREAD_GRAIN 16384
/* Lines of fewer bytes are copied in the loop over them. */
#define SHORT_LINE 64

typedef struct spread {
    const nori__move *m; /* simplified */
    const void *from;
    void *to;
    size_t width;
    line_fn line;
} spread;

#define PLANE(bits, type)                                                                          \
    static void plane_##bits(const spread *s, int64_t f, int64_t t, int64_t lines)                 \
    {                                                                                              \
        const nori__move *m = s->m;                                                                \
        int in = m->rank - 1;                                                                      \
        int64_t n = m->dims[in], fs = m->from_step[in], ts = m->to_step[in];                       \
        int64_t fl = m->from_step[in - 1], tl = m->to_step[in - 1];                                \
        const type *from = (const type *)s->from + f;                                              \
        type *to = (type *)s->to + t;                                                              \
        for (int64_t l = 0; l < lines; l++) {                                                      \
            for (int64_t i = 0; i < n; i++) {                                                      \
                to[l * tl + i * ts] = from[l * fl + i * fs];                                       \
            }                                                                                      \
        }                                                                                          \
    }
PLANE(8, uint8_t)
PLANE(16, uint16_t)
PLANE(32, uint32_t)
PLANE(64, uint64_t)
PLANE(128, wide)

/* lines of the innermost two loops from f and t on, within one turn of the loops around them. */
static void some_lines(const spread *s, int64_t f, int64_t t, int64_t lines)
{
    const nori__move *m = s->m;
    int in = m->rank - 1;
    int64_t n = m->dims[in], fs = m->from_step[in], ts = m->to_step[in];
    bool whole = fs == 1 && ts == 1 && (size_t)n * s->width >= SHORT_LINE;
    if (lines == 1 || whole || s->width == 0) {
        for (int64_t l = 0; l < lines; l++) {
            s->line(s->from, f, fs, s->to, t, ts, n);
            f += in > 0 ? m->from_step[in - 1] : 0;
            t += in > 0 ? m->to_step[in - 1] : 0;
        }
        return;
    }
    switch (s->width) {
    case 1:
        plane_8(s, f, t, lines);
        break;
    case 2:
        plane_16(s, f, t, lines);
        break;
    case 4:
        plane_32(s, f, t, lines);
        break;
    case 8:
        plane_64(s, f, t, lines);
        break;
    default:
        plane_128(s, f, t, lines);
    }
}

/* Lines [begin, end) of all. */
static void spread_units(void *user, int64_t begin, int64_t end, int thread)
{
    const spread *s = user;
    const nori__move *m = s->m;
    int last = m->rank - 2; /* the loop over lines */
    (void)thread;
    for (int64_t u = begin, lines; u < end; u += lines) {
        int64_t f = m->from, t = m->to, rest = u;
        lines = last < 0 ? 1 : m->dims[last] - u % m->dims[last];
        lines = lines < end - u ? lines : end - u;
        for (int d = last; d >= 0; d--) {
            int64_t i = rest % m->dims[d];
            rest /= m->dims[d];
            f += i * m->from_step[d];
            t += i * m->to_step[d];
        }
        some_lines(s, f, t, lines);
    }
}

static nori_status move_text(const nori__move *m, const nori_tensor *from, nori_tensor *to,
                             nori_error *err)
{
    int64_t at[NORI__MOVE_RANK] = {0}, f = m->from, t = m->to;
    int in = m->rank - 1;
    for (;;) {
        NORI__TRY(line_text(from, f, m->from_step[in], to, t, m->to_step[in], m->dims[in], err));
        int d = in - 1;
        while (d >= 0) {
            f += m->from_step[d];
            t += m->to_step[d];
            if (++at[d] < m->dims[d]) {
                break;
            }
            f -= m->from_step[d] * m->dims[d];
            t -= m->to_step[d] * m->dims[d];
            at[d--] = 0;
        }
        if (d < 0) {
            return NORI_OK;
        }
    }
}

/* call: whose threads take part, or NULL. */
static nori_status move(const nori__move *m, const nori_tensor *from, nori_tensor *to,
                        const nori_call *call, nori_error *err)
{
    nori__move s;
    if (!simplify(m, &s)) {
        return NORI_OK;
    }
    if (to->type == NORI_STRING) {
        return move_text(&s, from, to, err);
    }
    size_t width = nori_type_bits((nori_type)to->type) / 8;
    if (s.rank == 1 && s.from_step[0] == 1 && s.to_step[0] == 1 && width > 0 &&
        (const char *)from->data + (size_t)s.from * width ==
            (char *)to->data + (size_t)s.to * width) {
        return NORI_OK; /* the plan has put the piece where it goes */
    }
    spread job = {&s, from->data, to->data, width, line_for((nori_type)to->type)};
    int64_t lines = 1, n = s.dims[s.rank - 1];
    for (int d = 0; d < s.rank - 1; d++) {
        lines *= s.dims[d];
    }
    /* Elements of less than a byte share bytes: one thread. */
    if (!call || width == 0 || lines == 1) {
        spread_units(&job, 0, lines, 0);
    } else {
        nori__parallel_for(call->pool, call->threads, lines, 1 + SPREAD_GRAIN / n, spread_units,
                           &job);
    }
    return NORI_OK;
}

nori_status nori__move_all(const nori__move *m, const nori_tensor *from, nori_tensor *to,
                           nori_error *err)
{
    return move(m, from, to, NULL, err);
}

nori_status nori__move_spread(const nori_call *call, const nori__move *m, const nori_tensor *from,
                              nori_tensor *to)
{
    return move(m, from, to, call, call->err);
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
    if (from->loose) { /* of whole bytes, as they lie in a file */
        size_t width = nori_type_bits((nori_type)to->type) / 8;
        memcpy((char *)to->data + (size_t)at * width,
               (const char *)nori__tensor_at(from) + (size_t)first * width, (size_t)n * width);
        return NORI_OK;
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
    memcpy(to->data, nori__tensor_at(from), to->bytes);
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
