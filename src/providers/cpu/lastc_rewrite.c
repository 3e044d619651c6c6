/* lastc_rewrite.c: moves runs of 8-bit networks onto channels-last twins (lastc.h). Types must have been
 * inferred, and quantized graphs be in the form of integer operators (integers.h).
 *
 * One walk in order of execution. A convolution moves whatever its input is; what follows moves where
 * all that it reads has a twin already. A value that plain nodes read, too, is made from its twin by
 * one ToPlanes right behind it. */
#include "providers/cpu/lastc.h"

#include "ops/resolve.h"
#include "providers/cpu/integers.h"

typedef struct mover {
    nori__ir *ir;
    nori__graph *g;
    nori__value **twin; /* by id of the plain value; NULL: none */
    size_t values;
    nori_error *err;
} mover;

static bool is_image(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && nori__cpu_is_8bit((nori_type)v->type.elem) &&
           v->type.rank == 4 && v->type.dims[1].value > 0;
}

static nori__value *twin_of(const mover *m, const nori__value *v)
{
    nori__value *t = v && v->id < m->values ? m->twin[v->id] : NULL;
    return t && t->graph == m->g ? t : NULL;
}

/* ---- making nodes ---- */

static nori__node *make(mover *m, nori__node *before, nori__lastc_id id, const char *name,
                        nori__value *const *in, size_t n_in, nori__value *out)
{
    const nori__op *op = nori__lastc_op(id);
    nori__node *n = nori__node_new(m->g, before, "nori", op->name, in, n_in, &out, 1);
    if (!n) {
        nori__no_memory(m->err);
        return NULL;
    }
    n->op = op;
    n->version = 1;
    n->name = name;
    return n;
}

/* A new twin of v, not made by anything yet. */
static nori__value *new_twin(mover *m, const nori__value *v)
{
    nori__value *t = nori__value_new(m->g, v->name);
    const nori__dim *d = v->type.dims;
    nori__dim dims[4] = {d[0], d[2], d[3], d[1]};
    if (!t || !nori__type_set(&m->ir->arena, &t->type, NORI_UINT8, 4, dims)) {
        nori__no_memory(m->err);
        return NULL;
    }
    m->twin[v->id] = t;
    return t;
}

/* v's twin, made by a ToLast in front of n where there is none. */
static nori__value *twin_made(mover *m, nori__value *v, nori__node *n)
{
    nori__value *t = twin_of(m, v);
    if (!t && is_image(v) && v->id < m->values) {
        t = new_twin(m, v);
        if (t && !make(m, n, NORI__LASTC_FROM, "", &v, 1, t)) {
            return NULL;
        }
    }
    return t;
}

/* The operator id over in, in the place of n. */
static nori__node *put(mover *m, nori__node *n, nori__lastc_id id, nori__value *const *in)
{
    nori__value *out = new_twin(m, n->outputs[0]);
    nori__node *made = out ? make(m, n, id, n->name, in, n->input_count, out) : NULL;
    if (made) {
        made->attrs = n->attrs;
        made->attr_count = n->attr_count;
        nori__node_remove(n);
    }
    return made;
}

/* The same operator over in. */
static nori__node *put_same(mover *m, nori__node *n, nori__value *const *in)
{
    nori__value *out = new_twin(m, n->outputs[0]);
    nori__node *made =
        out ? nori__node_new(m->g, n, n->domain, n->op_type, in, n->input_count, &out, 1) : NULL;
    if (!made) {
        nori__no_memory(m->err);
        return NULL;
    }
    made->op = n->op;
    made->version = n->version;
    made->name = n->name;
    made->attrs = n->attrs;
    made->attr_count = n->attr_count;
    nori__node_remove(n);
    return made;
}

/* ---- constants of unsigned twins ---- */

static nori__value *own_const(mover *m, nori_tensor *t)
{
    nori__value *v = nori__const_new(m->g, NULL, t); /* t is its own, also on failure */
    if (!v) {
        nori__no_memory(m->err);
    }
    return v;
}

/* The zero point `zero` of a plain value as that of its twin; NULL: none can be made. */
static nori__value *zero_moved(mover *m, nori__value *zero, nori_type type)
{
    const nori_tensor *t = nori__value_const(zero);
    nori_tensor *moved = NULL;
    if (type == NORI_UINT8 || (zero && (!t || t->count != 1))) {
        return zero;
    }
    if (nori__tensor_new(m->ir->allocator, NORI_UINT8, 0, NULL, &moved, m->err) != NORI_OK) {
        return NULL;
    }
    nori__tensor_set_i64(moved, 0, (t ? nori__tensor_get_i64(t, 0) : 0) + 128);
    return own_const(m, moved);
}

/* Whether zero points at inputs first, first + step ... are constants or absent. */
static bool constant_zeros(const nori__node *n, uint32_t first, uint32_t step)
{
    for (uint32_t i = first; i < n->input_count; i += step) {
        const nori_tensor *t = nori__value_const(n->inputs[i]);
        if (n->inputs[i] && (!t || t->count != 1)) {
            return false;
        }
    }
    return true;
}

static bool constants(const nori__node *n, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        if (i >= n->input_count || !nori__value_const(n->inputs[i])) {
            return false;
        }
    }
    return true;
}

static bool one_scale(const nori__node *n, uint32_t i)
{
    const nori_tensor *t = nori__value_const(nori__cpu_value(n, i));
    return t && t->type == NORI_FLOAT && t->count == 1;
}

/* ---- operators ---- */

static bool given_pads(const nori__node *n, const int64_t *kernel)
{
    nori__window w;
    return nori__window_read(n, NULL, 2, kernel, &w) == NORI_OK && w.begin[0] >= 0 &&
           w.begin[1] >= 0 && w.end[0] >= 0 && w.end[1] >= 0;
}

static nori__node *move_conv(mover *m, nori__node *n)
{
    nori__value *in[9];
    const nori_tensor *w = nori__value_const(nori__cpu_value(n, 3));
    const nori__value *bias = nori__cpu_value(n, 8);
    int64_t group = nori__attr_i(n, "group", 1);
    if (n->input_count < 8 || n->input_count > 9 || !is_image(n->inputs[0]) || !w ||
        w->rank != 4 || w->count == 0 || !nori__cpu_is_8bit((nori_type)w->type) || group < 1 ||
        w->dims[0] % group != 0 || n->inputs[0]->type.dims[1].value != w->dims[1] * group ||
        !one_scale(n, 1) || !one_scale(n, 6) || !constants(n, 4, 5) || !constants(n, 7, 8) ||
        (n->inputs[2] && !constants(n, 2, 3)) || (n->inputs[5] && !constants(n, 5, 6)) ||
        (bias && !nori__value_const(bias)) || !given_pads(n, w->dims + 2)) {
        return NULL;
    }
    const nori_tensor *w_scale = nori__value_const(n->inputs[4]);
    const nori_tensor *w_zero = nori__value_const(n->inputs[5]), *zero = nori__value_const(n->inputs[2]);
    const nori_tensor *y_zero = nori__value_const(n->inputs[7]), *b = nori__value_const(bias);
    if (w_scale->type != NORI_FLOAT || (w_scale->count != 1 && w_scale->count != w->dims[0]) ||
        (w_zero && w_zero->count != 1 && w_zero->count != w->dims[0]) ||
        (zero && (zero->count != 1 || zero->type != n->inputs[0]->type.elem)) ||
        (!zero && n->inputs[0]->type.elem != NORI_UINT8) || y_zero->count != 1 ||
        y_zero->type != n->outputs[0]->type.elem ||
        (b && (b->type != NORI_INT32 || b->count != w->dims[0]))) {
        return NULL;
    }
    memcpy(in, n->inputs, n->input_count * sizeof(*in));
    in[0] = twin_made(m, n->inputs[0], n);
    return in[0] ? put(m, n, NORI__LASTC_CONV, in) : NULL;
}

static nori__node *move_max(mover *m, nori__node *n)
{
    nori__value *in[1] = {twin_of(m, n->inputs[0])};
    return in[0] && n->input_count == 1 && given_pads(n, NULL) ? put(m, n, NORI__LASTC_MAX, in)
                                                               : NULL;
}

/* An average of bytes: X, scale, zero, Y scale, zero. */
static nori__node *move_average(mover *m, nori__node *n, nori__lastc_id id)
{
    nori__value *in[5] = {twin_of(m, n->inputs[0])};
    int type = n->inputs[0]->type.elem;
    if (!in[0] || n->input_count < 4 || n->input_count > 5 || !one_scale(n, 1) ||
        !one_scale(n, 3) || !constant_zeros(n, 2, 2) || nori__attr_i(n, "channels_last", 0) != 0 ||
        n->outputs[0]->type.elem != type ||
        (id == NORI__LASTC_AVERAGE && !given_pads(n, NULL))) {
        return NULL;
    }
    memcpy(in + 1, n->inputs + 1, (n->input_count - 1) * sizeof(*in));
    nori__node *made = put(m, n, id, in);
    if (made && !nori__node_set_int(made, "type", type)) {
        nori__no_memory(m->err);
        return NULL;
    }
    return made;
}

static nori__node *move_mean(mover *m, nori__node *n)
{
    return move_average(m, n, NORI__LASTC_MEAN);
}

static nori__node *move_average_pool(mover *m, nori__node *n)
{
    return move_average(m, n, NORI__LASTC_AVERAGE);
}

/* QLinearAdd, QLinearMul of two twins of one shape, or of one with one pixel. */
static nori__node *move_binary(mover *m, nori__node *n)
{
    nori__value *in[8];
    if (n->input_count < 7 || n->input_count > 8 || !twin_of(m, n->inputs[0]) ||
        !twin_of(m, n->inputs[3]) || !constant_zeros(n, 2, 3) ||
        (n->input_count == 8 && n->inputs[7] && !constants(n, 7, 8))) {
        return NULL;
    }
    memcpy(in, n->inputs, n->input_count * sizeof(*in));
    nori_type type = (nori_type)n->inputs[0]->type.elem;
    in[0] = twin_of(m, n->inputs[0]);
    in[3] = twin_of(m, n->inputs[3]);
    for (uint32_t i = 2; i < 8; i += i == 2 ? 3 : 2) { /* 2, 5, 7 */
        nori__value *zero = zero_moved(m, nori__input_of(n, i), type);
        if (m->err->status != NORI_OK || (i >= n->input_count && zero)) {
            return NULL;
        }
        if (i < n->input_count) {
            in[i] = zero;
        }
    }
    return put_same(m, n, in);
}

/* A function of one byte: table[b], by the twins' bytes. */
static nori__node *move_table(mover *m, nori__node *n)
{
    nori__value *in[2] = {twin_of(m, n->inputs[0]), nori__input_of(n, 1)};
    const nori_tensor *t = nori__value_const(in[1]);
    if (!in[0] || n->input_count != 2 || !t || t->count != 256 ||
        !nori__cpu_is_8bit((nori_type)t->type)) {
        return NULL;
    }
    uint8_t from = nori__lastc_flip(n->inputs[0]->type.elem), to = nori__lastc_flip(t->type);
    if (from || to) {
        nori_tensor *moved = NULL;
        if (nori__tensor_new(m->ir->allocator, NORI_UINT8, 1, t->dims, &moved, m->err) != NORI_OK) {
            return NULL;
        }
        for (size_t i = 0; i < 256; i++) {
            ((uint8_t *)moved->data)[i] = ((const uint8_t *)t->data)[i ^ from] ^ to;
        }
        in[1] = own_const(m, moved);
        if (!in[1]) {
            return NULL;
        }
    }
    return put_same(m, n, in);
}

/* Concat and QLinearConcat of channels. first, step: where the operands are among the inputs. */
static nori__node *move_join(mover *m, nori__node *n, uint32_t first, uint32_t step)
{
    int64_t axis = nori__attr_i(n, "axis", 1);
    if ((axis != 1 && axis != -3) || n->input_count <= first ||
        (n->input_count - first) % step != 0) {
        return NULL;
    }
    nori__value **in = nori__arena_array(&m->ir->arena, n->input_count, sizeof(nori__value *));
    if (!in) {
        nori__no_memory(m->err);
        return NULL;
    }
    memcpy(in, n->inputs, n->input_count * sizeof(*in));
    nori_type type = (nori_type)n->outputs[0]->type.elem;
    for (uint32_t i = first; i < n->input_count; i += step) {
        in[i] = twin_of(m, n->inputs[i]);
        if (!in[i] || n->inputs[i]->type.elem != type ||
            (step == 3 && !constants(n, i + 2, i + 3))) {
            return NULL;
        }
    }
    for (uint32_t i = first; step == 3 && i <= n->input_count; i += step) {
        in[i - 1] = zero_moved(m, n->inputs[i - 1], type);
        if (m->err->status != NORI_OK) {
            return NULL;
        }
    }
    nori__node *made = put_same(m, n, in);
    if (made && !nori__node_set_int(made, "axis", 3)) {
        nori__no_memory(m->err);
        return NULL;
    }
    return made;
}

static nori__node *move_concat(mover *m, nori__node *n)
{
    return move_join(m, n, 0, 1);
}

static nori__node *move_qconcat(mover *m, nori__node *n)
{
    return constants(n, 1, 2) ? move_join(m, n, 2, 3) : NULL;
}

static const struct {
    nori__op_id op;
    nori__node *(*move)(mover *m, nori__node *n);
} rows[] = {
    {NORI__OP_ONNX_QLinearConv, move_conv},
    {NORI__OP_ONNX_MaxPool, move_max},
    {NORI__OP_ONNX_Concat, move_concat},
    {NORI__OP_MS_QLinearAdd, move_binary},
    {NORI__OP_MS_QLinearMul, move_binary},
    {NORI__OP_MS_QLinearConcat, move_qconcat},
    {NORI__OP_MS_QLinearGlobalAveragePool, move_mean},
    {NORI__OP_MS_QLinearAveragePool, move_average_pool},
};

static void move_node(mover *m, nori__node *n)
{
    if (n->output_count != 1 || !is_image(n->outputs[0]) || n->outputs[0]->id >= m->values ||
        n->input_count < 1 || !n->inputs[0]) {
        return;
    }
    if (nori__integer_is(n, NORI__INTEGER_TABLE)) {
        move_table(m, n);
        return;
    }
    for (size_t i = 0; i < NORI__COUNT(rows); i++) {
        if (nori__node_is(n, rows[i].op)) {
            rows[i].move(m, n);
            return;
        }
    }
}

/* Values that lost their producer and have plain readers left are made from their twins. */
static nori_status to_planes(mover *m)
{
    for (nori__value *v = m->g->values; v; v = v->next) {
        nori__value *t = v->id < m->values ? m->twin[v->id] : NULL;
        if (!t || v->producer || v->uses == 0 || (v->flags & NORI__VALUE_INPUT) ||
            nori__value_const(v)) {
            continue;
        }
        nori__node *made = make(m, t->producer->next, NORI__LASTC_TO, "", &t, 1, v);
        if (!made || !nori__node_set_int(made, "type", v->type.elem)) {
            return nori__no_memory(m->err);
        }
    }
    return NORI_OK;
}

static nori_status walk(mover *m)
{
    memset(m->twin, 0, m->values * sizeof(*m->twin));
    for (nori__node *n = m->g->first, *next; n; n = next) {
        next = n->next;
        move_node(m, n);
        if (m->err->status != NORI_OK) {
            return m->err->status;
        }
    }
    return to_planes(m);
}

nori_status nori__cpu_lastc(nori__ir *ir, nori_error *err)
{
    if (!NORI__IR_HAS(ir, NORI__OP_ONNX_QLinearConv)) {
        return NORI_OK; /* twins begin there */
    }
    nori_error own = {0};
    mover m = {.ir = ir, .values = ir->value_count, .err = err ? err : &own};
    size_t bytes = (m.values + 1) * sizeof(*m.twin);
    m.twin = nori__alloc(ir->allocator, bytes);
    if (!m.twin) {
        return nori__no_memory(err);
    }
    nori_status status = NORI_OK;
    for (m.g = ir->graphs; m.g && status == NORI_OK; m.g = m.g->next_graph) {
        status = walk(&m);
    }
    nori__release(ir->allocator, m.twin, bytes);
    return status;
}
