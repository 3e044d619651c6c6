/* xnnpack_shape.c: operators that only arrange elements, of floats and bytes: most are moves of our
 * own or no work at all. */
#include "providers/xnnpack/xnnpack.h"

static const char *const bad_type = "it is not on floats or bytes of a known rank";

/* ---- the same bytes in another shape ---- */

const char *nori__xp_claim_reshape(const nori__node *n)
{
    for (uint32_t i = 1; i < n->input_count; i++) {
        if (n->inputs[i] && !nori__xp_const(n, i)) {
            return "its shape is not constant";
        }
    }
    for (uint32_t i = 1; i < n->output_count; i++) {
        if (n->outputs[i]) {
            return "its second output is wanted";
        }
    }
    return nori__xp_is(n->inputs[0], NORI_UNDEFINED, 0) &&
                   nori__xp_is(n->outputs[0], NORI_UNDEFINED, 0)
               ? NULL
               : bad_type;
}

nori_status nori__xp_emit_reshape(xp_part *p, const xp_job *j, nori_error *err)
{
    bool same = nori__node_is(j->node, NORI__OP_ONNX_Identity) ||
                nori__node_is(j->node, NORI__OP_ONNX_Dropout);
    unsigned form = same ? nori__xp_layout(p, j->in[0]) : 0;
    uint32_t in = nori__xp_want(p, j->in[0], form);
    return nori__xp_share(p, j->out, form, in) ? NORI_OK : nori__no_memory(err);
}

/* ---- Transpose ---- */

typedef struct transposing {
    xp_move move;
    int perm[XP_RANK]; /* axis of in (as it lies) of each axis of out (as it lies) */
} transposing;

/* Which ONNX axis the i-th axis in memory is. */
static int axis_at(unsigned form, int rank, int i)
{
    return !(form & XP_LAST) || rank < 3 || i == 0 ? i : i + 1 < rank ? i + 1 : 1;
}

static int place_of(unsigned form, int rank, int axis)
{
    return !(form & XP_LAST) || rank < 3 || axis == 0 ? axis : axis > 1 ? axis - 1 : rank - 1;
}

static bool read_perm(const nori__node *n, int rank, int *perm)
{
    size_t count;
    const int64_t *given = nori__attr_ints(n, "perm", &count);
    for (int d = 0; d < rank; d++) {
        perm[d] = given && count == (size_t)rank ? (int)given[d] : rank - 1 - d;
        if (perm[d] < 0 || perm[d] >= rank) {
            return false;
        }
    }
    return !given || count == (size_t)rank;
}

const char *nori__xp_claim_transpose(const nori__node *n)
{
    int perm[XP_RANK];
    if (!nori__xp_is(n->inputs[0], NORI_UNDEFINED, 0)) {
        return bad_type;
    }
    return read_perm(n, n->inputs[0]->type.rank, perm) ? NULL : "its perm does not fit";
}

static nori_status setup_transpose(xp_part *p, xp_step *s, nori_error *err)
{
    transposing *t = s->args;
    xp_shape x = nori__xp_shape(p, s->in[0]);
    (void)err;
    nori__xp_move_turned(&t->move, &x, t->perm);
    return NORI_OK;
}

/* Between the layouts of frameworks it is no work: the same bytes, in the other form. */
nori_status nori__xp_emit_transpose(xp_part *p, const xp_job *j, nori_error *err)
{
    int rank = nori__xp_rank(p, j->in[0]), perm[XP_RANK], turn[XP_RANK];
    bool fresh = p->links.input[j->in[0]] != XP_NONE; /* comes in plain, and is not turned for this */
    read_perm(j->node, rank, perm);
    if (fresh) {
        nori__xp_want(p, j->in[0], 0);
    }
    for (unsigned forms = 0; forms < 4 && rank > 2; forms++) {
        unsigned from = forms & 1 ? XP_LAST : 0, to = forms & 2 ? 0 : XP_LAST;
        bool still = nori__xp_has(p, j->in[0], from);
        for (int i = 0; i < rank && still; i++) {
            still = place_of(from, rank, perm[axis_at(to, rank, i)]) == i;
        }
        if (still) {
            return nori__xp_share(p, j->out, to, nori__xp_want(p, j->in[0], from))
                       ? NORI_OK
                       : nori__no_memory(err);
        }
    }
    unsigned from = nori__xp_layout(p, j->in[0]);
    for (int i = 0; i < rank; i++) {
        turn[i] = place_of(from, rank, perm[i]);
    }
    uint32_t in = nori__xp_want(p, j->in[0], from), out = nori__xp_make(p, j->out, 0);
    xp_step *s = nori__xp_step_move(p, j->node, in, out, sizeof(transposing), setup_transpose);
    if (!s) {
        return nori__no_memory(err);
    }
    memcpy(((transposing *)s->args)->perm, turn, sizeof(turn[0]) * (size_t)rank);
    return NORI_OK;
}

/* ---- pieces: Concat, Slice, Split ---- */

/* Dense strides of what lies in a buffer. */
static void strides_of(const xp_shape *s, size_t *out)
{
    size_t step = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        out[d] = step;
        step *= s->d[d];
    }
}

/* Sets a move of `what` elements: from and to are the shapes they lie in. */
static void piece(xp_move *m, const xp_shape *what, const xp_shape *from, const xp_shape *to)
{
    m->rank = what->rank;
    memcpy(m->dims, what->d, sizeof(what->d));
    strides_of(from, m->in);
    strides_of(to, m->out);
}

static int fixed_axis(const nori__node *n, int64_t otherwise, int rank)
{
    int64_t axis = nori__attr_i(n, "axis", otherwise);
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

const char *nori__xp_claim_concat(const nori__node *n)
{
    const nori__value *x = n->inputs[0];
    for (uint32_t i = 0; i < n->input_count; i++) {
        const nori__value *v = n->inputs[i];
        if (!v || !nori__xp_is(v, NORI_UNDEFINED, 1) || v->type.rank != x->type.rank ||
            v->type.elem != x->type.elem) {
            return bad_type;
        }
    }
    return fixed_axis(n, 1, x->type.rank) >= 0 ? NULL : "its axis does not fit";
}

static nori_status run_concat(xp_part *p, xp_step *s, nori_call *call)
{
    int axis = *(const int *)s->args;
    xp_shape out = nori__xp_shape(p, s->out);
    xp_move m = {.width = nori__xp_buffer(p, s->out)->width};
    for (uint32_t i = 0; i < s->n_in; i++) {
        xp_shape in = nori__xp_shape(p, s->in[i]);
        piece(&m, &in, &in, &out);
        nori__xp_move_run(&m, nori__xp_data(p, s->in[i]), nori__xp_data(p, s->out), call);
        m.out_at += in.d[axis] * m.out[axis];
    }
    return NORI_OK;
}

nori_status nori__xp_emit_concat(xp_part *p, const xp_job *j, nori_error *err)
{
    int rank = nori__xp_rank(p, j->out);
    unsigned form = 0;
    uint32_t *in = nori__arena_array(&p->arena, j->n_in + 1, sizeof(*in));
    for (uint32_t i = 0; i < j->n_in; i++) {
        form |= nori__xp_layout(p, j->in[i]);
    }
    for (uint32_t i = 0; i < j->n_in && in; i++) {
        in[i] = nori__xp_want(p, j->in[i], form);
    }
    xp_step *s = in ? nori__xp_step(p, j->node, in, j->n_in, nori__xp_make(p, j->out, form),
                                    sizeof(int), NULL)
                    : NULL;
    if (!s) {
        return nori__no_memory(err);
    }
    *(int *)s->args = place_of(form, rank, fixed_axis(j->node, 1, rank));
    s->run = run_concat;
    return NORI_OK;
}

typedef struct cutting {
    xp_move move;
    int64_t start[XP_RANK], step[XP_RANK]; /* by axis of ONNX; start from the end when below 0 */
    const uint32_t *before; /* Split: outputs before this one, along axis */
    uint32_t n_before;
    int axis;
} cutting;

/* Starts and steps by axis, of constants; steps above 0. */
static bool read_slice(const nori__node *n, int rank, cutting *c)
{
    const nori_tensor *starts = nori__xp_const(n, 1), *ends = nori__xp_const(n, 2);
    const nori_tensor *axes = nori__xp_const(n, 3), *steps = nori__xp_const(n, 4);
    if (!starts || !ends || (nori__xp_in(n, 3) && !axes) || (nori__xp_in(n, 4) && !steps) ||
        starts->count > rank || (axes && axes->count != starts->count) ||
        (steps && steps->count != starts->count)) {
        return false;
    }
    for (int d = 0; d < rank; d++) {
        c->start[d] = 0;
        c->step[d] = 1;
    }
    for (int64_t i = 0; i < starts->count; i++) {
        int64_t axis = axes ? nori__tensor_get_i64(axes, i) : i;
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank) {
            return false;
        }
        c->start[axis] = nori__tensor_get_i64(starts, i);
        c->step[axis] = steps ? nori__tensor_get_i64(steps, i) : 1;
        if (c->step[axis] < 1 || c->step[axis] > INT32_MAX) {
            return false;
        }
    }
    return true;
}

const char *nori__xp_claim_slice(const nori__node *n)
{
    cutting c;
    if (!nori__xp_is(n->inputs[0], NORI_UNDEFINED, 1)) {
        return bad_type;
    }
    return read_slice(n, n->inputs[0]->type.rank, &c) ? NULL
                                                      : "its limits are not constant and forward";
}

static nori_status setup_cut(xp_part *p, xp_step *s, nori_error *err)
{
    cutting *c = s->args;
    xp_shape x = nori__xp_shape(p, s->in[0]), y = nori__xp_shape(p, s->out);
    unsigned form = nori__xp_buffer(p, s->in[0])->form;
    (void)err;
    s->idle = y.count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    piece(&c->move, &y, &x, &y);
    c->move.in_at = 0;
    for (int i = 0; i < x.rank; i++) {
        int axis = axis_at(form, x.rank, i);
        int64_t size = (int64_t)x.d[i], at = c->start[axis];
        at = at < 0 ? at + size : at;
        at = at < 0 ? 0 : at > size - 1 ? size - 1 : at;
        c->move.in_at += (size_t)at * c->move.in[i];
        c->move.in[i] *= (size_t)c->step[axis];
    }
    for (uint32_t k = 0; k < c->n_before; k++) {
        int i = place_of(form, x.rank, c->axis);
        c->move.in_at += p->shapes[c->before[k]].d[c->axis] * c->move.in[i];
    }
    return NORI_OK;
}

nori_status nori__xp_emit_slice(xp_part *p, const xp_job *j, nori_error *err)
{
    unsigned form = nori__xp_layout(p, j->in[0]);
    uint32_t in = nori__xp_want(p, j->in[0], form), out = nori__xp_make(p, j->out, form);
    xp_step *s = nori__xp_step_move(p, j->node, in, out, sizeof(cutting), setup_cut);
    if (!s) {
        return nori__no_memory(err);
    }
    read_slice(j->node, nori__xp_rank(p, j->in[0]), s->args);
    return NORI_OK;
}

const char *nori__xp_claim_split(const nori__node *n)
{
    if (!nori__xp_is(n->inputs[0], NORI_UNDEFINED, 1)) {
        return bad_type;
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (!n->outputs[i]) {
            return "not all its outputs are wanted";
        }
    }
    return (!nori__xp_in(n, 1) || nori__xp_const(n, 1)) &&
                   fixed_axis(n, 0, n->inputs[0]->type.rank) >= 0
               ? NULL
               : "its sizes are not constant";
}

nori_status nori__xp_emit_split(xp_part *p, const xp_job *j, nori_error *err)
{
    unsigned form = nori__xp_layout(p, j->in[0]);
    uint32_t in = nori__xp_want(p, j->in[0], form);
    const uint32_t *outs = p->part->node_values[j->at] + j->node->input_count;
    for (uint32_t k = 0; k < j->node->output_count; k++) {
        uint32_t out = nori__xp_make(p, outs[k], form);
        xp_step *s = nori__xp_step_move(p, j->node, in, out, sizeof(cutting), setup_cut);
        if (!s) {
            return nori__no_memory(err);
        }
        cutting *c = s->args;
        for (int d = 0; d < XP_RANK; d++) {
            c->step[d] = 1;
        }
        c->before = outs;
        c->n_before = k;
        c->axis = fixed_axis(j->node, 0, nori__xp_rank(p, j->in[0]));
    }
    return NORI_OK;
}

/* ---- Pad ---- */

typedef struct padding {
    size_t before[XP_RANK], after[XP_RANK]; /* by axis of ONNX */
} padding;

static bool read_pads(const nori__node *n, int rank, padding *out)
{
    const nori_tensor *pads = nori__xp_const(n, 1), *axes = nori__xp_const(n, 3);
    if (!pads || pads->type != NORI_INT64 || (nori__xp_in(n, 3) && !axes)) {
        return false;
    }
    int64_t count = axes ? axes->count : rank;
    memset(out, 0, sizeof(*out));
    if (pads->count != 2 * count || count > rank) {
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = axes ? nori__tensor_get_i64(axes, i) : i;
        int64_t before = nori__tensor_get_i64(pads, i), after = nori__tensor_get_i64(pads, i + count);
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank || before < 0 || after < 0 || before > INT32_MAX ||
            after > INT32_MAX) {
            return false;
        }
        out->before[axis] = (size_t)before;
        out->after[axis] = (size_t)after;
    }
    return true;
}

const char *nori__xp_claim_pad(const nori__node *n)
{
    padding p;
    float value;
    if (!nori__xp_is(n->inputs[0], NORI_FLOAT, 1)) {
        return "it is not on floats of a known rank";
    }
    if (!nori__same(nori__attr_s(n, "mode", "constant"), "constant") ||
        !nori__xp_scalar(n, 2, 0, &value)) {
        return "XNNPACK pads with a constant only";
    }
    return read_pads(n, n->inputs[0]->type.rank, &p) ? NULL : "its pads are not constant, or below 0";
}

static nori_status setup_pad(xp_part *p, xp_step *s, nori_error *err)
{
    const padding *a = s->args;
    xp_shape x = nori__xp_shape(p, s->in[0]);
    unsigned form = nori__xp_buffer(p, s->in[0])->form;
    size_t before[XP_RANK], after[XP_RANK];
    for (int i = 0; i < x.rank; i++) {
        before[i] = a->before[axis_at(form, x.rank, i)];
        after[i] = a->after[axis_at(form, x.rank, i)];
    }
    s->idle = nori__xp_shape(p, s->out).count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    XP_TRY(XNN(setup_constant_pad_nd_x32)(s->op, (size_t)x.rank, x.d, before, after,
                                         nori__xp_data(p, s->in[0]), nori__xp_data(p, s->out),
                                         nori__xp_pool(p)),
           s->node, err);
    return NORI_OK;
}

nori_status nori__xp_emit_pad(xp_part *p, const xp_job *j, nori_error *err)
{
    float value;
    unsigned form = nori__xp_layout(p, j->in[0]);
    uint32_t in = nori__xp_want(p, j->in[0], form);
    xp_step *s = nori__xp_step(p, j->node, &in, 1, nori__xp_make(p, j->out, form), sizeof(padding),
                               setup_pad);
    if (!s) {
        return nori__no_memory(err);
    }
    nori__xp_scalar(j->node, 2, 0, &value);
    read_pads(j->node, nori__xp_rank(p, j->in[0]), s->args);
    XP_TRY(XNN(create_constant_pad_nd_x32)(&value, 0, &s->op), j->node, err);
    return NORI_OK;
}

/* ---- channels to squares and back: one move each ---- */

const char *nori__xp_claim_depth_to_space(const nori__node *n)
{
    int64_t block = nori__attr_i(n, "blocksize", 0);
    if (!nori__xp_is(n->inputs[0], NORI_UNDEFINED, 4) || n->inputs[0]->type.rank != 4) {
        return bad_type;
    }
    return block >= 1 && block <= INT16_MAX ? NULL : "its blocksize does not fit";
}

/* Axes of the smaller picture's elements: picture, row, row in the square, column, column in the
 * square, channel; deep is channels of the small side. */
static nori_status setup_depth(xp_part *p, xp_step *s, nori_error *err)
{
    xp_move *m = s->args;
    bool opens = nori__node_is(s->node, NORI__OP_ONNX_DepthToSpace);
    bool by_column = nori__same(nori__attr_s(s->node, "mode", "DCR"), "CRD");
    size_t b = (size_t)nori__attr_i(s->node, "blocksize", 1);
    xp_image deep = nori__xp_image(p, opens ? s->in[0] : s->out);
    (void)err;
    s->idle = nori__xp_shape(p, s->out).count == 0;
    if (s->idle) {
        return NORI_OK;
    }
    size_t c = deep.c / (b * b), dims[] = {deep.n, deep.h, b, deep.w, b, c};
    size_t line = deep.w * deep.c;
    size_t squares[] = {deep.h * line, line, by_column ? b : b * c, deep.c, by_column ? 1 : c,
                        by_column ? b * b : 1};
    size_t flat[] = {deep.h * line, line, line / b, b * c, c, 1};
    m->rank = 6;
    memcpy(m->dims, dims, sizeof(dims));
    memcpy(m->in, opens ? squares : flat, sizeof(flat));
    memcpy(m->out, opens ? flat : squares, sizeof(flat));
    return NORI_OK;
}

nori_status nori__xp_emit_depth_to_space(xp_part *p, const xp_job *j, nori_error *err)
{
    uint32_t in = nori__xp_want(p, j->in[0], XP_LAST), out = nori__xp_make(p, j->out, XP_LAST);
    return nori__xp_step_move(p, j->node, in, out, sizeof(xp_move), setup_depth)
               ? NORI_OK
               : nori__no_memory(err);
}
