/* xnnpack_move.c: steps that only move bytes: layouts, transposes, joining and cutting. XNNPACK of
 * 2022 has nothing for most of these. */
#include "providers/xnnpack/xnnpack.h"

#include "kernels/kernels.h"

#define TILE 16        /* elements a side that are turned at a time */
#define GRAIN_BYTES 65536

/* Drops axes of size 1 and joins neighbours that stay neighbours. */
static void join_axes(xp_move *m)
{
    int n = 0;
    for (int d = 0; d < m->rank; d++) {
        if (m->dims[d] == 1) {
            continue;
        }
        if (n > 0 && m->in[n - 1] == m->in[d] * m->dims[d] &&
            m->out[n - 1] == m->out[d] * m->dims[d]) {
            m->dims[n - 1] *= m->dims[d];
            m->in[n - 1] = m->in[d];
            m->out[n - 1] = m->out[d];
        } else {
            m->dims[n] = m->dims[d];
            m->in[n] = m->in[d];
            m->out[n++] = m->out[d];
        }
    }
    if (n == 0) {
        m->dims[0] = m->in[0] = m->out[0] = 1;
        n = 1;
    }
    m->rank = n;
}

typedef struct mover {
    const xp_move *m;
    const uint8_t *in;
    uint8_t *out;
    int last, across; /* the axis that is innermost where it goes, and where it comes from */
    size_t units;
} mover;

static void line_32(const mover *w, const uint8_t *in, uint8_t *out)
{
    const xp_move *m = w->m;
    const uint32_t *x = (const uint32_t *)(const void *)in;
    uint32_t *y = (uint32_t *)(void *)out;
    size_t n = m->dims[w->last], x_step = m->in[w->last], y_step = m->out[w->last];
    if (w->across != w->last) {
        nori__kernels_get()->x32_transpose(n, m->dims[w->across], x, x_step, y, m->out[w->across]);
        return;
    }
    if (x_step == 1 && y_step == 1) {
        memcpy(y, x, n * 4);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        y[i * y_step] = x[i * x_step];
    }
}

static void line_8(const mover *w, const uint8_t *in, uint8_t *out)
{
    const xp_move *m = w->m;
    size_t n = m->dims[w->last], x_step = m->in[w->last], y_step = m->out[w->last];
    uint8_t flip = m->flip ? 0x80 : 0;
    if (w->across == w->last) {
        for (size_t i = 0; i < n; i++) {
            out[i * y_step] = in[i * x_step] ^ flip;
        }
        return;
    }
    size_t rows = m->dims[w->across], row_step = m->out[w->across];
    for (size_t i = 0; i < n; i += TILE) {
        for (size_t k = 0; k < rows; k++) {
            for (size_t a = i; a < n && a < i + TILE; a++) {
                out[k * row_step + a * y_step] = in[a * x_step + k] ^ flip;
            }
        }
    }
}

static void move_units(void *user, int64_t begin, int64_t end, int thread)
{
    const mover *w = user;
    const xp_move *m = w->m;
    (void)thread;
    for (int64_t u = begin; u < end; u++) {
        size_t rest = (size_t)u, from = m->in_at, to = m->out_at;
        for (int d = m->rank - 1; d >= 0; d--) {
            if (d != w->last && d != w->across) {
                from += rest % m->dims[d] * m->in[d];
                to += rest % m->dims[d] * m->out[d];
                rest /= m->dims[d];
            }
        }
        if (m->width == 4) {
            line_32(w, w->in + from * 4, w->out + to * 4);
        } else {
            line_8(w, w->in + from, w->out + to);
        }
    }
}

void nori__xp_move_run(const xp_move *given, const void *in, void *out, nori_call *call)
{
    xp_move m = *given;
    join_axes(&m);
    mover w = {.m = &m, .in = in, .out = out, .last = m.rank - 1, .units = 1};
    w.across = w.last;
    for (int d = 0; d < m.rank && m.in[w.last] != 1 && m.out[w.last] == 1; d++) {
        w.across = m.in[d] == 1 ? d : w.across;
    }
    size_t bytes = m.width;
    for (int d = 0; d < m.rank; d++) {
        if (m.dims[d] == 0) {
            return;
        }
        bool inside = d == w.last || d == w.across;
        *(inside ? &bytes : &w.units) *= m.dims[d];
    }
    int64_t grain = (int64_t)(GRAIN_BYTES / bytes);
    if (call) {
        nori__parallel_for(call->pool, call->threads, (int64_t)w.units, grain > 0 ? grain : 1,
                           move_units, &w);
    } else {
        move_units(&w, 0, (int64_t)w.units, 0);
    }
}

void nori__xp_move_turned(xp_move *m, const xp_shape *in, const int *perm)
{
    size_t stride[XP_RANK], step = 1;
    for (int d = in->rank - 1; d >= 0; d--) {
        stride[d] = step;
        step *= in->d[d];
    }
    m->rank = in->rank;
    step = 1;
    for (int d = in->rank - 1; d >= 0; d--) {
        m->dims[d] = in->d[perm[d]];
        m->in[d] = stride[perm[d]];
        m->out[d] = step;
        step *= m->dims[d];
    }
}

void nori__xp_move_layout(xp_move *m, const xp_shape *shape, unsigned from, unsigned to)
{
    xp_shape in = *shape;
    int perm[XP_RANK], r = shape->rank;
    bool turn = r > 2 && ((from ^ to) & XP_LAST);
    for (int d = 0; d < r; d++) {
        perm[d] = d;
    }
    if (turn && (to & XP_LAST)) {
        for (int d = 1; d < r; d++) {
            perm[d] = d + 1 < r ? d + 1 : 1;
        }
    } else if (turn) { /* in lies channels last */
        for (int d = 1; d < r; d++) {
            in.d[d] = d + 1 < r ? shape->d[d + 1] : shape->d[1];
            perm[d] = d == 1 ? r - 1 : d - 1;
        }
    }
    nori__xp_move_turned(m, &in, perm);
    m->flip = ((from ^ to) & XP_FLIP) != 0;
}

static nori_status run_move(xp_part *p, xp_step *s, nori_call *call)
{
    nori__xp_move_run(s->args, nori__xp_data(p, s->in[0]), nori__xp_data(p, s->out), call);
    return NORI_OK;
}

/* args begins with an xp_move, which setup fills in. */
xp_step *nori__xp_step_move(xp_part *p, const nori__node *node, uint32_t in, uint32_t out,
                            size_t args, nori_status (*setup)(xp_part *, xp_step *, nori_error *))
{
    xp_step *s = nori__xp_step(p, node, &in, 1, out, args, setup);
    if (s) {
        s->run = run_move;
        ((xp_move *)s->args)->width = nori__xp_buffer(p, out)->width;
    }
    return s;
}
