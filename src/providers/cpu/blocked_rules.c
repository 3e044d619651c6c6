/* blocked_rules.c: which operators besides convolutions go over channel blocks, and as what: pools,
 * functions of elements, what has numbers of its own a channel, resizing, joining channels. */
#include "base/built.h"
#include "ops/resize.h"
#include "providers/cpu/blocked_rules.h"

static nori__node *block_pool(nori__twins *b, nori__node *n)
{
    nori__value *x = nori__twin_of(b, n->inputs[0]);
    bool average = nori__node_is(n, NORI__OP_ONNX_AveragePool);
    nori__window w;
    nori__node *stem = !average && x ? nori__block_stem(b, n) : NULL;
    if (stem || b->err->status != NORI_OK) {
        return stem;
    }
    if (!x || n->output_count != 1 || nori__window_read(n, NULL, 2, NULL, &w) != NORI_OK ||
        !nori__given_pads(n, NULL)) {
        return NULL;
    }
    nori__node *made = nori__put_blocked(b, n, NORI__BLOCKED_POOL, &x, 1);
    if (made && average && !nori__node_set_int(made, "average", 1)) {
        nori__no_memory(b->err);
        return NULL;
    }
    return made;
}

static nori__node *block_mean(nori__twins *b, nori__node *n)
{
    nori__value *x = nori__twin_of(b, n->inputs[0]);
    if (!x) {
        return NULL;
    }
    if (nori__node_is(n, NORI__OP_ONNX_ReduceMean)) {
        const nori_tensor *axes = nori__value_const(nori__cpu_value(n, 1));
        if (!axes || axes->count != 2 || nori__attr_i(n, "keepdims", 1) != 1) {
            return NULL;
        }
        int64_t p = nori__tensor_get_i64(axes, 0), q = nori__tensor_get_i64(axes, 1);
        p = p < 0 ? p + 4 : p;
        q = q < 0 ? q + 4 : q;
        if (!((p == 2 && q == 3) || (p == 3 && q == 2))) {
            return NULL;
        }
    }
    return nori__put_blocked(b, n, NORI__BLOCKED_MEAN, &x, 1);
}

/* One value, or one a channel as a plain value of rank 4 would broadcast it. */
static bool each_channel(const nori__value *v, int64_t channels)
{
    const nori__type *t = v ? &v->type : NULL;
    if (!t || t->elem != NORI_FLOAT || t->rank < 0 || t->rank > 4) {
        return false;
    }
    for (int d = 0; d < t->rank; d++) {
        int64_t size = t->dims[d].value;
        if (size != 1 && !(size == channels && t->rank - d == 3)) {
            return false;
        }
    }
    return true;
}

static nori__node *block_leaky(nori__twins *b, nori__node *n)
{
    nori__value *in[2] = {nori__twin_of(b, n->inputs[0]), nori__input(n, 1)};
    return in[0] && each_channel(in[1], n->inputs[0]->type.dims[1].value)
               ? nori__put_blocked(b, n, NORI__BLOCKED_LEAKY, in, 2)
               : NULL;
}

static nori__node *block_norm(nori__twins *b, nori__node *n)
{
    nori__value *in[5] = {nori__twin_of(b, n->inputs[0])};
    bool fits = in[0] && n->input_count == 5 && n->version >= 7 &&
                nori__attr_i(n, "training_mode", 0) == 0 && nori__attr_i(n, "spatial", 1) == 1;
    for (uint32_t i = 1; fits && i < 5; i++) {
        in[i] = n->inputs[i];
        fits = in[i] && in[i]->type.elem == NORI_FLOAT && in[i]->type.rank == 1 &&
               nori__dim_same(in[i]->type.dims[0], n->inputs[0]->type.dims[1]);
    }
    return fits ? nori__put_blocked(b, n, NORI__BLOCKED_NORM, in, 5) : NULL;
}

/* Resize of height and width alone. */
static nori__node *block_resize(nori__twins *b, nori__node *n)
{
    nori__value *in[4] = {nori__twin_of(b, n->inputs[0])};
    const nori__value *x = n->inputs[0], *y = n->outputs[0];
    nori__resize r;
    if (!in[0] || n->input_count > 4 || nori__resize_read(n, NULL, &r) != NORI_OK ||
        r.mode == NORI__CUBIC || r.coords == NORI__TF_CROP || r.antialias ||
        !nori__dim_same(x->type.dims[0], y->type.dims[0]) ||
        !nori__dim_same(x->type.dims[1], y->type.dims[1])) {
        return NULL;
    }
    for (uint32_t i = 1; i < n->input_count; i++) {
        in[i] = n->inputs[i];
    }
    int version = n->version;
    int64_t channels = x->type.dims[1].value;
    nori__node *made = nori__put_blocked(b, n, NORI__BLOCKED_RESIZE, in, n->input_count);
    if (made && !nori__node_set_int(made, "channels", channels)) {
        nori__no_memory(b->err);
        return NULL;
    }
    if (made) {
        made->version = version; /* old ones have other defaults */
    }
    return made;
}

/* An activation that only a norm or a transposed convolution feeds becomes part of it. */
static nori__node *join_activation(nori__twins *b, nori__node *n)
{
    nori__value *t = nori__twin_of(b, n->inputs[0]);
    nori__node *from = t && t->uses == 0 && n->inputs[0]->uses == 1 &&
                               !(n->inputs[0]->flags & NORI__VALUE_OUTPUT)
                           ? t->producer
                           : NULL;
    float p[2];
    size_t n_p;
    const char *name = nori__activation_of(n, p, &n_p);
    if (!from || !name ||
        (!nori__blocked_is(from, NORI__BLOCKED_NORM) &&
         !nori__blocked_is(from, NORI__BLOCKED_TURNED)) ||
        nori__attr_find(from, "activation")) {
        return NULL;
    }
    if (!nori__node_set_text(from, "activation", name) ||
        (n_p > 0 && !nori__node_set_floats(from, "activation_params", p, n_p))) {
        nori__no_memory(b->err);
        return NULL;
    }
    b->twin[n->outputs[0]->id] = t;
    b->twin[n->inputs[0]->id] = NULL; /* it is no longer what that value was */
    nori__node_remove(n);
    return from;
}

static nori__node *block_unary(nori__twins *b, nori__node *n)
{
    nori__node *joined = join_activation(b, n);
    if (joined || b->err->status != NORI_OK) {
        return joined;
    }
    nori__value *in[3] = {nori__twin_of(b, n->inputs[0]), nori__input(n, 1), nori__input(n, 2)};
    for (uint32_t i = 1; i < n->input_count && i < 3; i++) {
        if (in[i] && !nori__value_as_is(in[i])) {
            return NULL; /* a bound that is computed */
        }
    }
    return in[0] && n->input_count <= 3 ? nori__twin_put_same(b, n, in, n->input_count) : NULL;
}

static bool same_dims(const nori__value *a, const nori__value *b)
{
    for (int d = 0; d < 4; d++) {
        if (!nori__dim_same(a->type.dims[d], b->type.dims[d])) {
            return false;
        }
    }
    return true;
}

static bool one_pixel(const nori__value *v, const nori__value *of)
{
    return v->type.dims[2].value == 1 && v->type.dims[3].value == 1 &&
           nori__dim_same(v->type.dims[0], of->type.dims[0]) &&
           nori__dim_same(v->type.dims[1], of->type.dims[1]);
}

static bool one_value(const nori__value *v)
{
    const nori_tensor *t = nori__value_as_is(v);
    return t && t->type == NORI_FLOAT && t->count == 1 && t->rank <= 4;
}

static nori__node *block_binary(nori__twins *b, nori__node *n)
{
    nori__value *p = nori__input(n, 0), *q = nori__input(n, 1);
    nori__value *in[2] = {nori__twin_of(b, p), nori__twin_of(b, q)};
    if (n->input_count != 2 || !p || !q || (!in[0] && !in[1])) {
        return NULL;
    }
    if (in[0] && in[1]) {
        if (same_dims(p, q)) {
            return nori__twin_put_same(b, n, in, 2);
        }
        if (nori__node_is(n, NORI__OP_ONNX_Mul) && one_pixel(q, p)) {
            return nori__put_blocked(b, n, NORI__BLOCKED_SCALE, in, 2);
        }
        if (nori__node_is(n, NORI__OP_ONNX_Mul) && one_pixel(p, q)) {
            nori__value *turned[2] = {in[1], in[0]};
            return nori__put_blocked(b, n, NORI__BLOCKED_SCALE, turned, 2);
        }
        return NULL;
    }
    if (!one_value(in[0] ? q : p)) {
        return NULL;
    }
    in[0] = in[0] ? in[0] : p;
    in[1] = in[1] ? in[1] : q;
    return nori__twin_put_same(b, n, in, 2);
}

/* Concat of channels: every input but the last fills its blocks. */
static nori__node *block_concat(nori__twins *b, nori__node *n)
{
    int64_t axis = nori__attr_i(n, "axis", 1), c = (int64_t)nori__kernels_get()->block;
    if ((axis != 1 && axis != -3) || n->input_count == 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (!nori__twin_of(b, n->inputs[i]) ||
            (i + 1 < n->input_count && n->inputs[i]->type.dims[1].value % c != 0)) {
            return NULL;
        }
    }
    nori__value **in = nori__arena_array(&b->ir->arena, n->input_count, sizeof(nori__value *));
    if (!in) {
        nori__no_memory(b->err);
        return NULL;
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        in[i] = nori__twin_of(b, n->inputs[i]);
    }
    nori__node *made = nori__twin_put_same(b, n, in, n->input_count);
    if (made && !nori__node_set_int(made, "axis", 1)) { /* from the end it would be another */
        nori__no_memory(b->err);
        return NULL;
    }
    return made;
}

#define ROW(name, how) NORI__IF_BUILT(ONNX_##name, {NORI__OP_ONNX_##name, how},)
static const struct {
    nori__op_id op;
    nori__node *(*block)(nori__twins *b, nori__node *n);
} rows[] = {
    ROW(MaxPool, block_pool)
    ROW(AveragePool, block_pool)
    ROW(GlobalAveragePool, block_mean)
    ROW(ReduceMean, block_mean)
    ROW(BatchNormalization, block_norm)
    ROW(PRelu, block_leaky)
    ROW(Resize, block_resize)
    ROW(Relu, block_unary)
    ROW(LeakyRelu, block_unary)
    ROW(Clip, block_unary)
    ROW(HardSigmoid, block_unary)
    ROW(HardSwish, block_unary)
    ROW(Sigmoid, block_unary)
    ROW(Tanh, block_unary)
    ROW(Erf, block_unary)
    ROW(Gelu, block_unary)
    ROW(Swish, block_unary)
    ROW(Neg, block_unary)
    ROW(Abs, block_unary)
    ROW(Add, block_binary)
    ROW(Sub, block_binary)
    ROW(Mul, block_binary)
    ROW(Div, block_binary)
    ROW(Max, block_binary)
    ROW(Min, block_binary)
    ROW(Concat, block_concat)
    {NORI__OP_COUNT, NULL}, /* the end */
};
#undef ROW

nori__node *nori__block_follow(nori__twins *b, nori__node *n)
{
    for (size_t i = 0; rows[i].block; i++) {
        if (nori__node_is(n, rows[i].op)) {
            return rows[i].block(b, n);
        }
    }
    return NULL;
}
