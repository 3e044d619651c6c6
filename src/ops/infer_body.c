/* infer_body.c: what Loop, Scan and SequenceMap give their bodies: types of the bodies' inputs. A
 * carried value may change its shape from one iteration to the next: only what holds for every
 * iteration is said. What comes out is infer_control.c's. */
#include "ops/infer_body.h"

static const nori__type unknown = {.rank = -1};

bool nori__is_loop(const nori__node *node)
{
    return nori__node_is(node, NORI__OP_ONNX_Loop) || nori__node_is(node, NORI__OP_ONNX_Scan);
}

static bool old_scan(const nori__node *node)
{
    return nori__node_is(node, NORI__OP_ONNX_Scan) && node->version < 9;
}

static const nori__type *in_type(const nori__node *node, size_t i)
{
    return i < node->input_count && node->inputs[i] ? &node->inputs[i]->type : &unknown;
}

static const nori__type *body_out(const nori__graph *body, size_t i)
{
    return body && i < body->output_count ? &body->outputs[i]->type : &unknown;
}

static bool same_type(const nori__type *a, const nori__type *b)
{
    if (a->kind != b->kind || a->elem != b->elem || a->rank != b->rank) {
        return false;
    }
    for (int d = 0; d < a->rank; d++) {
        bool open = a->dims[d].value < 0 && !a->dims[d].name;
        if (!open && !nori__dim_same(a->dims[d], b->dims[d])) {
            return false;
        }
    }
    return true;
}

/* ---- Scan: counts and axes ---- */

static size_t scan_inputs(const nori__node *node, const nori__graph *body)
{
    int64_t n = nori__attr_i(node, "num_scan_inputs", 0);
    return n < 0 ? 0 : n > body->input_count ? body->input_count : (size_t)n;
}

/* Carried values of a Loop or Scan. */
static size_t carried(const nori__node *node, const nori__graph *body)
{
    if (nori__node_is(node, NORI__OP_ONNX_Loop)) {
        return body->input_count > 2 ? body->input_count - 2 : 0;
    }
    return body->input_count - scan_inputs(node, body);
}

/* Axis of the i-th scan input or output in a tensor of that rank; -1: not valid. */
static int scan_axis(const nori__node *node, const char *attr, size_t i, int rank)
{
    size_t count;
    const int64_t *axes = nori__attr_ints(node, attr, &count);
    int64_t axis = i < count ? axes[i] : 0;
    axis += axis < 0 ? rank : 0;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

/* Leading axes of an old Scan's tensors: the batch, and for scanned ones the sequence. */
static bool drop_leading(nori__arena *arena, nori__type *to, const nori__type *from, int drop)
{
    if (from->kind != NORI_KIND_TENSOR || from->rank < drop) {
        *to = (nori__type){.kind = from->kind, .elem = from->elem, .rank = -1, .of = from->of};
        return true;
    }
    return nori__type_set(arena, to, (nori_type)from->elem, from->rank - drop, from->dims + drop);
}

static bool drop_axis(nori__arena *arena, nori__type *to, const nori__type *from, int axis)
{
    if (from->kind != NORI_KIND_TENSOR || from->rank < 1 || axis < 0) {
        *to = (nori__type){.kind = from->kind, .elem = from->elem, .rank = -1};
        return true;
    }
    nori__dim dims[NORI_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < from->rank; d++) {
        if (d != axis) {
            dims[rank++] = from->dims[d];
        }
    }
    return nori__type_set(arena, to, (nori_type)from->elem, rank, dims);
}

/* ---- into the body ---- */

static bool bind_carried(nori__arena *arena, nori__value *v, const nori__type *first,
                         const nori__type *after, int carry)
{
    if (first->kind == NORI_KIND_UNKNOWN) {
        v->type = v->declared;
        v->type.rank = -1;
        return true;
    }
    if (first->kind != NORI_KIND_TENSOR) {
        v->type = *first;
        return true;
    }
    if (carry == NORI__CARRY_ELEM || first->rank < 0 ||
        (carry == NORI__CARRY_RANK && after->rank != first->rank)) {
        v->type = (nori__type){.kind = NORI_KIND_TENSOR, .elem = first->elem, .rank = -1};
        return true;
    }
    nori__dim dims[NORI_MAX_RANK];
    for (int d = 0; d < first->rank; d++) {
        bool changed = carry == NORI__CARRY_RANK && !nori__dim_same(first->dims[d], after->dims[d]);
        dims[d] = changed ? NORI__DIM_ANY : first->dims[d];
    }
    return nori__type_set(arena, &v->type, (nori_type)first->elem, first->rank, dims);
}

static bool bind_loop(const nori__node *node, nori__graph *body, int carry)
{
    nori__arena *arena = &body->ir->arena;
    bool ok = true;
    for (uint32_t i = 0; ok && i < body->input_count; i++) {
        nori__value *v = body->inputs[i];
        if (i < 2) {
            ok = nori__type_set(arena, &v->type, i == 0 ? NORI_INT64 : NORI_BOOL, 0, NULL);
        } else {
            ok = bind_carried(arena, v, in_type(node, i), body_out(body, i - 1), carry);
        }
    }
    return ok;
}

static bool bind_scan(const nori__node *node, nori__graph *body, int carry)
{
    nori__arena *arena = &body->ir->arena;
    size_t states = carried(node, body), shift = old_scan(node) ? 1 : 0;
    bool ok = true;
    for (size_t i = 0; ok && i < body->input_count; i++) {
        nori__value *v = body->inputs[i];
        const nori__type *t = in_type(node, i + shift);
        if (i >= states && old_scan(node)) {
            ok = drop_leading(arena, &v->type, t, 2);
        } else if (i >= states) {
            ok = drop_axis(arena, &v->type, t, scan_axis(node, "scan_input_axes", i - states, t->rank));
        } else {
            nori__type first = *t;
            ok = (!old_scan(node) || drop_leading(arena, &first, t, 1)) &&
                 bind_carried(arena, v, &first, body_out(body, i), carry);
        }
    }
    return ok;
}

/* A sequence gives its element, a tensor itself. */
static void bind_map(const nori__node *node, nori__graph *body)
{
    for (uint32_t i = 0; i < body->input_count; i++) {
        const nori__type *t = in_type(node, i);
        bool sequence = t->kind == NORI_KIND_SEQUENCE;
        if (sequence || t->kind == NORI_KIND_TENSOR) {
            body->inputs[i]->type = !sequence ? *t : t->of ? *t->of : unknown;
        }
    }
}

bool nori__body_bind(const nori__node *node, nori__graph *body, int carry)
{
    for (uint32_t i = 0; i < body->input_count; i++) {
        body->inputs[i]->data = NULL;
    }
    if (nori__node_is(node, NORI__OP_ONNX_Loop)) {
        return bind_loop(node, body, carry);
    }
    if (nori__node_is(node, NORI__OP_ONNX_Scan)) {
        return bind_scan(node, body, carry);
    }
    if (nori__node_is(node, NORI__OP_ONNX_SequenceMap)) {
        bind_map(node, body);
    }
    return true; /* branches of If have no inputs */
}

bool nori__body_settled(const nori__node *node)
{
    const nori__graph *body = nori__attr_graph(node, "body");
    bool loop = nori__node_is(node, NORI__OP_ONNX_Loop);
    if (!body || !nori__is_loop(node)) {
        return true;
    }
    for (size_t i = 0; i < carried(node, body); i++) {
        const nori__type *in = &body->inputs[i + (loop ? 2 : 0)]->type;
        if (in->kind == NORI_KIND_TENSOR && in->rank >= 0 &&
            !same_type(in, body_out(body, i + (loop ? 1 : 0)))) {
            return false;
        }
    }
    return true;
}
