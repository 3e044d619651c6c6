/* lastc_rewrite.c: moves runs of 8-bit networks onto channels-last twins (lastc.h). Types must have been
 * inferred, and quantized graphs be in the form of integer operators (integers.h).
 *
 * A convolution moves whatever its input is; what follows moves where all that it reads has a twin
 * already. */
#include "providers/cpu/lastc.h"

#include "ops/resolve.h"
#include "providers/cpu/integers.h"
#include "providers/cpu/twins.h"

static bool is_image(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && nori__cpu_is_8bit((nori_type)v->type.elem) &&
           v->type.rank == 4 && v->type.dims[1].value > 0;
}

static bool twin_type(nori__ir *ir, const nori__value *plain, nori__type *twin)
{
    const nori__dim *d = plain->type.dims;
    nori__dim dims[4] = {d[0], d[2], d[3], d[1]};
    return nori__type_set(&ir->arena, twin, NORI_UINT8, 4, dims);
}

/* The operator id over in, in the place of n. */
static nori__node *put(nori__twins *m, nori__node *n, nori__lastc_id id, nori__value *const *in)
{
    return nori__twin_put(m, n, nori__lastc_op(id), in, n->input_count);
}

/* ---- constants of unsigned twins ---- */

static nori__value *own_const(nori__twins *m, nori_tensor *t)
{
    nori__value *v = nori__const_new(m->g, NULL, t); /* t is its own, also on failure */
    if (!v) {
        nori__no_memory(m->err);
    }
    return v;
}

/* The zero point `zero` of a plain value as that of its twin; NULL: none can be made. */
static nori__value *zero_moved(nori__twins *m, nori__value *zero, nori_type type)
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

static nori__node *move_conv(nori__twins *m, nori__node *n)
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
    in[0] = nori__twin_made(m, n->inputs[0], n);
    return in[0] ? put(m, n, NORI__LASTC_CONV, in) : NULL;
}

static nori__node *move_max(nori__twins *m, nori__node *n)
{
    nori__value *in[1] = {nori__twin_of(m, n->inputs[0])};
    return in[0] && n->input_count == 1 && given_pads(n, NULL) ? put(m, n, NORI__LASTC_MAX, in)
                                                               : NULL;
}

/* An average of bytes: X, scale, zero, Y scale, zero. */
static nori__node *move_average(nori__twins *m, nori__node *n, nori__lastc_id id)
{
    nori__value *in[5] = {nori__twin_of(m, n->inputs[0])};
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

static nori__node *move_mean(nori__twins *m, nori__node *n)
{
    return move_average(m, n, NORI__LASTC_MEAN);
}

static nori__node *move_average_pool(nori__twins *m, nori__node *n)
{
    return move_average(m, n, NORI__LASTC_AVERAGE);
}

/* QLinearAdd, QLinearMul of two twins of one shape, or of one with one pixel. */
static nori__node *move_binary(nori__twins *m, nori__node *n)
{
    nori__value *in[8];
    if (n->input_count < 7 || n->input_count > 8 || !nori__twin_of(m, n->inputs[0]) ||
        !nori__twin_of(m, n->inputs[3]) || !constant_zeros(n, 2, 3) ||
        (n->input_count == 8 && n->inputs[7] && !constants(n, 7, 8))) {
        return NULL;
    }
    memcpy(in, n->inputs, n->input_count * sizeof(*in));
    nori_type type = (nori_type)n->inputs[0]->type.elem;
    in[0] = nori__twin_of(m, n->inputs[0]);
    in[3] = nori__twin_of(m, n->inputs[3]);
    for (uint32_t i = 2; i < 8; i += i == 2 ? 3 : 2) { /* 2, 5, 7 */
        nori__value *zero = zero_moved(m, nori__input_of(n, i), type);
        if (m->err->status != NORI_OK || (i >= n->input_count && zero)) {
            return NULL;
        }
        if (i < n->input_count) {
            in[i] = zero;
        }
    }
    return nori__twin_put_same(m, n, in, n->input_count);
}

/* A function of one byte: table[b], by the twins' bytes. */
static nori__node *move_table(nori__twins *m, nori__node *n)
{
    nori__value *in[2] = {nori__twin_of(m, n->inputs[0]), nori__input_of(n, 1)};
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
    return nori__twin_put_same(m, n, in, n->input_count);
}

/* Concat and QLinearConcat of channels. first, step: where the operands are among the inputs. */
static nori__node *move_join(nori__twins *m, nori__node *n, uint32_t first, uint32_t step)
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
        in[i] = nori__twin_of(m, n->inputs[i]);
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
    nori__node *made = nori__twin_put_same(m, n, in, n->input_count);
    if (made && !nori__node_set_int(made, "axis", 3)) {
        nori__no_memory(m->err);
        return NULL;
    }
    return made;
}

static nori__node *move_concat(nori__twins *m, nori__node *n)
{
    return move_join(m, n, 0, 1);
}

static nori__node *move_qconcat(nori__twins *m, nori__node *n)
{
    return constants(n, 1, 2) ? move_join(m, n, 2, 3) : NULL;
}

static const struct {
    nori__op_id op;
    nori__node *(*move)(nori__twins *m, nori__node *n);
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

static nori__node *move_node(nori__twins *m, nori__node *n)
{
    if (nori__integer_is(n, NORI__INTEGER_TABLE)) {
        return move_table(m, n);
    }
    for (size_t i = 0; i < NORI__COUNT(rows); i++) {
        if (nori__node_is(n, rows[i].op)) {
            return rows[i].move(m, n);
        }
    }
    return NULL;
}

static bool plain_type(nori__node *made, const nori__value *plain)
{
    return nori__node_set_int(made, "type", plain->type.elem);
}

nori_status nori__cpu_lastc(nori__ir *ir, nori_error *err)
{
    if (!NORI__IR_HAS(ir, NORI__OP_ONNX_QLinearConv)) {
        return NORI_OK; /* twins begin there */
    }
    const nori__twin_kind kind = {is_image, twin_type, move_node, nori__lastc_op(NORI__LASTC_FROM),
                                  nori__lastc_op(NORI__LASTC_TO), plain_type};
    return nori__twins_walk(ir, &kind, err);
}
