/* nnapi_move.c: what moves elements: shapes, Transpose, Concat, Slice, Split, Pad, DepthToSpace. */
#include "providers/nnapi/nnapi_bytes.h"

/* ---- shapes ---- */

static bool is_identity(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_Identity) || nori__node_is(n, NORI__OP_ONNX_Dropout);
}

const char *nori__na_claim_reshape(const na_self *self, const nori__node *n)
{
    (void)self;
    if (nori__node_is(n, NORI__OP_ONNX_Dropout) && nori__na_in(n, 2)) {
        return "it may be for training";
    }
    for (uint32_t i = 1; i < n->input_count && !is_identity(n); i++) {
        if (n->inputs[i] && !nori__na_const(n, i)) {
            return "its shape is not constant";
        }
    }
    return NULL;
}

void nori__na_emit_reshape(na_part *p, const na_job *j)
{
    int form = nori__na_layout(p, j->in[0]);
    na_shape x = nori__na_shape(p, j->in[0], NA_PLAIN), y = nori__na_shape(p, j->out, NA_PLAIN);
    if (is_identity(j->node)) {
        nori__na_share(p, j->out, form, nori__na_want(p, j->in[0], form));
        return;
    }
    /* Lies the same both ways. */
    bool line = x.rank >= 3 && (x.d[1] == 1 || x.count == x.d[0] * x.d[1]);
    const int64_t rank[] = {y.rank};
    uint32_t in[2] = {nori__na_want(p, j->in[0], line ? form : NA_PLAIN),
                      nori__na_ints(p, y.d, 1, rank)};
    nori__na_op(p, NA_RESHAPE, in, 2, nori__na_make(p, j->out, NA_PLAIN));
}

/* ---- Transpose ---- */

static bool read_perm(const nori__node *n, int rank, int64_t *perm)
{
    size_t count;
    const int64_t *given = nori__attr_ints(n, "perm", &count);
    for (int d = 0; d < rank; d++) {
        perm[d] = given && count == (size_t)rank ? given[d] : rank - 1 - d;
        if (perm[d] < 0 || perm[d] >= rank) {
            return false;
        }
    }
    return !given || count == (size_t)rank;
}

const char *nori__na_claim_transpose(const na_self *self, const nori__node *n)
{
    int64_t perm[NA_RANK];
    (void)self;
    return read_perm(n, n->inputs[0]->type.rank, perm) ? NULL : "its perm does not fit";
}

/* Between the layouts of frameworks it is no work: the same operand, in the other form. */
void nori__na_emit_transpose(na_part *p, const na_job *j)
{
    static const int64_t last4[] = {0, 2, 3, 1}, first4[] = {0, 3, 1, 2}, line[] = {0, 2, 1};
    int rank = nori__na_shape(p, j->in[0], NA_PLAIN).rank;
    int64_t perm[NA_RANK];
    read_perm(j->node, rank, perm);
    size_t size = (size_t)rank * sizeof(perm[0]);
    const int64_t *to_last = rank == 4 ? last4 : line, *to_first = rank == 4 ? first4 : line;
    if (rank >= 3 && memcmp(perm, to_last, size) == 0 &&
        p->forms[j->in[0]][NA_LAST] != NA_NONE) {
        nori__na_share(p, j->out, NA_PLAIN, p->forms[j->in[0]][NA_LAST]);
        return;
    }
    uint32_t x = nori__na_want(p, j->in[0], NA_PLAIN);
    if (rank >= 3 && memcmp(perm, to_first, size) == 0) {
        nori__na_share(p, j->out, NA_LAST, x);
        return;
    }
    const int64_t count[] = {rank};
    uint32_t in[2] = {x, nori__na_ints(p, perm, 1, count)};
    nori__na_op(p, NA_TRANSPOSE, in, 2, nori__na_make(p, j->out, NA_PLAIN));
}

/* ---- Concat ---- */

const char *nori__na_claim_concat(const na_self *self, const nori__node *n)
{
    const nori__value *x = n->inputs[0];
    (void)self;
    for (uint32_t i = 0; i < n->input_count; i++) {
        na_quant a, b;
        if (!nori__na_known(n->inputs[i], x->type.rank) || n->inputs[i]->type.elem != x->type.elem) {
            return "not all of its inputs are of a known shape and of one type";
        }
        if (x->type.elem != NORI_FLOAT &&
            !(nori__na_quant(x, &a) && nori__na_quant(n->inputs[i], &b) && nori__na_same(&a, &b))) {
            return "its bytes stand for other numbers in one input than in another";
        }
    }
    return nori__na_axis(nori__attr_i(n, "axis", 1), x->type.rank) >= 0 ? NULL
                                                                        : "its axis does not fit";
}

void nori__na_emit_concat(na_part *p, const na_job *j)
{
    int rank = nori__na_shape(p, j->out, NA_PLAIN).rank, form = NA_PLAIN;
    uint32_t *in = nori__arena_array(&p->arena, (size_t)j->n_in + 1, sizeof(*in));
    if (!in) {
        nori__na_check(p, 1, "Model_addOperation");
        return;
    }
    for (uint32_t i = 0; i < j->n_in; i++) {
        form = nori__na_layout(p, j->in[i]) == NA_LAST ? NA_LAST : form;
    }
    for (uint32_t i = 0; i < j->n_in; i++) {
        in[i] = nori__na_want(p, j->in[i], form);
    }
    int axis = nori__na_axis(nori__attr_i(j->node, "axis", 1), rank);
    in[j->n_in] = nori__na_int(p, nori__na_axis_in(form, rank, axis));
    nori__na_op(p, NA_CONCATENATION, in, j->n_in + 1, nori__na_make(p, j->out, form));
}

/* ---- Slice and Split ---- */

/* Starts and steps by axis; steps above 0. */
static bool read_slice(const nori__node *n, const nori__type *x, int64_t *start, int64_t *step)
{
    const nori_tensor *starts = nori__na_const(n, 1), *ends = nori__na_const(n, 2);
    const nori_tensor *axes = nori__na_const(n, 3), *steps = nori__na_const(n, 4);
    if (!starts || !ends || (nori__na_in(n, 3) && !axes) || (nori__na_in(n, 4) && !steps) ||
        starts->count > x->rank || (axes && axes->count != starts->count) ||
        (steps && steps->count != starts->count)) {
        return false;
    }
    for (int d = 0; d < x->rank; d++) {
        start[d] = 0;
        step[d] = 1;
    }
    for (int64_t i = 0; i < starts->count; i++) {
        int axis = nori__na_axis(axes ? nori__tensor_get_i64(axes, i) : i, x->rank);
        if (axis < 0) {
            return false;
        }
        int64_t size = x->dims[axis].value, at = nori__tensor_get_i64(starts, i);
        at = at < -size ? 0 : at < 0 ? at + size : at;
        start[axis] = at;
        step[axis] = steps ? nori__tensor_get_i64(steps, i) : 1;
        if (at >= size || step[axis] < 1 || step[axis] > INT32_MAX) {
            return false;
        }
    }
    return true;
}

const char *nori__na_claim_slice(const na_self *self, const nori__node *n)
{
    int64_t start[NA_RANK], step[NA_RANK];
    (void)self;
    return read_slice(n, &n->inputs[0]->type, start, step) ? NULL
                                                           : "its limits are not constant and forward";
}

/* start and step by axis of ONNX; ends follow from the size of what comes out. */
static void add_slice(na_part *p, uint32_t x, uint32_t y, const int64_t *start, const int64_t *step)
{
    int form = nori__na_layout(p, x);
    na_shape s = nori__na_shape(p, y, NA_PLAIN);
    int64_t v[3][NA_RANK];
    for (int d = 0; d < s.rank; d++) {
        int at = nori__na_axis_in(form, s.rank, d);
        v[0][at] = start[d];
        v[1][at] = start[d] + (s.d[d] - 1) * step[d] + 1;
        v[2][at] = step[d];
    }
    const int64_t rank[] = {s.rank};
    uint32_t in[7] = {nori__na_want(p, x, form)};
    for (int i = 0; i < 3; i++) {
        in[1 + i] = nori__na_ints(p, v[i], 1, rank);
        in[4 + i] = nori__na_int(p, 0); /* no bits: all of them count, no axis goes */
    }
    nori__na_op(p, NA_STRIDED_SLICE, in, 7, nori__na_make(p, y, form));
}

void nori__na_emit_slice(na_part *p, const na_job *j)
{
    int64_t start[NA_RANK], step[NA_RANK];
    if (!read_slice(j->node, &j->node->inputs[0]->type, start, step)) {
        nori__na_refuse(p, "its limits are not constant and forward");
        return;
    }
    add_slice(p, j->in[0], j->out, start, step);
}

const char *nori__na_claim_split(const na_self *self, const nori__node *n)
{
    (void)self;
    return (!nori__na_in(n, 1) || nori__na_const(n, 1)) &&
                   nori__na_axis(nori__attr_i(n, "axis", 0), n->inputs[0]->type.rank) >= 0
               ? NULL
               : "its sizes are not constant";
}

void nori__na_emit_split(na_part *p, const na_job *j)
{
    static const int64_t step[NA_RANK] = {1, 1, 1, 1};
    int64_t start[NA_RANK] = {0};
    int rank = nori__na_shape(p, j->in[0], NA_PLAIN).rank;
    int axis = nori__na_axis(nori__attr_i(j->node, "axis", 0), rank);
    for (uint32_t i = 0; i < j->node->output_count; i++) {
        add_slice(p, j->in[0], j->outs[i], start, step);
        start[axis] += nori__na_shape(p, j->outs[i], NA_PLAIN).d[axis];
    }
}

/* ---- Pad ---- */

/* [axis][before, after], by axis of ONNX. */
static bool read_pads(const nori__node *n, int rank, int64_t (*out)[2])
{
    const nori_tensor *pads = nori__na_const(n, 1), *axes = nori__na_const(n, 3);
    if (!pads || pads->type != NORI_INT64 || (nori__na_in(n, 3) && !axes)) {
        return false;
    }
    int64_t count = axes ? axes->count : rank;
    memset(out, 0, sizeof(out[0]) * NA_RANK);
    if (count > rank || pads->count != 2 * count) {
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        int axis = nori__na_axis(axes ? nori__tensor_get_i64(axes, i) : i, rank);
        int64_t before = nori__tensor_get_i64(pads, i), after = nori__tensor_get_i64(pads, i + count);
        if (axis < 0 || before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX) {
            return false;
        }
        out[axis][0] = before;
        out[axis][1] = after;
    }
    return true;
}

const char *nori__na_claim_pad(const na_self *self, const nori__node *n)
{
    int64_t pads[NA_RANK][2];
    float value;
    if (!nori__same(nori__attr_s(n, "mode", "constant"), "constant") ||
        !nori__na_scalar(n, 2, 0, &value)) {
        return "NNAPI pads with a constant only";
    }
    if (value != 0 && self->level < 29) {
        return "NNAPI pads with other numbers than 0 from feature level 29 on";
    }
    return read_pads(n, n->inputs[0]->type.rank, pads) ? NULL : "its pads are not constant, or below 0";
}

void nori__na_emit_pad(na_part *p, const na_job *j)
{
    int64_t pads[NA_RANK][2], lying[2 * NA_RANK];
    int form = nori__na_layout(p, j->in[0]), rank = nori__na_shape(p, j->in[0], NA_PLAIN).rank;
    float value;
    nori__na_scalar(j->node, 2, 0, &value);
    read_pads(j->node, rank, pads);
    for (int d = 0; d < rank; d++) {
        int at = nori__na_axis_in(form, rank, d);
        lying[2 * at] = pads[d][0];
        lying[2 * at + 1] = pads[d][1];
    }
    const int64_t dims[] = {rank, 2};
    uint32_t in[3] = {nori__na_want(p, j->in[0], form), nori__na_ints(p, lying, 2, dims)}, n = 2;
    if (value != 0) {
        in[n++] = nori__na_float(p, value);
    }
    nori__na_op(p, n == 3 ? NA_PAD_V2 : NA_PAD, in, n, nori__na_make(p, j->out, form));
}

/* ---- DepthToSpace ---- */

const char *nori__na_claim_depth_to_space(const na_self *self, const nori__node *n)
{
    (void)self;
    return n->inputs[0]->type.rank == 4 && nori__same(nori__attr_s(n, "mode", "DCR"), "DCR") &&
                   nori__attr_i(n, "blocksize", 0) >= 1
               ? NULL
               : "NNAPI orders squares by depth only";
}

void nori__na_emit_depth_to_space(na_part *p, const na_job *j)
{
    uint32_t in[2] = {nori__na_want(p, j->in[0], NA_LAST),
                      nori__na_int(p, nori__attr_i(j->node, "blocksize", 1))};
    nori__na_op(p, NA_DEPTH_TO_SPACE, in, 2, nori__na_make(p, j->out, NA_LAST));
}
