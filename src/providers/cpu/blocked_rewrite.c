/* blocked_rewrite.c: moves runs of a network onto channel blocks (blocked.h). Types must have been
 * inferred, and convolutions joined with what follows them (fuse.c).
 *
 * One walk in order of execution. A convolution becomes blocked whatever its input is; what follows
 * becomes blocked where all that it reads has a twin already. A value that plain nodes read, too,
 * is made from its twin by one Unblock right behind it. */
#include "ops/resize.h"
#include "ops/resolve.h"
#include "providers/cpu/blocked.h"

/* Up to so many channels a convolution reads plain images: blocks would be mostly empty. */
#define FEW_CHANNELS 4

typedef struct blocker {
    nori__ir *ir;
    nori__graph *g;
    nori__value **twin; /* by id of the plain value; NULL: none */
    size_t values;
    size_t block;
    nori_error *err;
} blocker;

static bool is_image(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && v->type.elem == NORI_FLOAT &&
           v->type.rank == 4 && v->type.dims[1].value > 0;
}

static nori__value *input(const nori__node *n, uint32_t i)
{
    return i < n->input_count ? n->inputs[i] : NULL;
}

static nori__value *twin_of(const blocker *b, const nori__value *v)
{
    nori__value *t = v && v->id < b->values ? b->twin[v->id] : NULL;
    return t && t->graph == b->g ? t : NULL;
}

/* ---- making nodes ---- */

/* A node of the domain "nori" in front of before. */
static nori__node *make(blocker *b, nori__node *before, nori__blocked_id id, const char *name,
                        nori__value *const *in, size_t n_in, nori__value *out)
{
    const nori__op *op = nori__blocked_op(id);
    nori__node *n = nori__node_new(b->g, before, "nori", op->name, in, n_in, &out, 1);
    if (!n) {
        nori__no_memory(b->err);
        return NULL;
    }
    n->op = op;
    n->version = 1;
    n->name = name;
    return n;
}

/* A new twin of v, not made by anything yet. */
static nori__value *new_twin(blocker *b, const nori__value *v)
{
    nori__value *t = nori__value_new(b->g, v->name);
    const nori__dim *d = v->type.dims;
    int64_t c = (int64_t)b->block;
    nori__dim dims[5] = {d[0], nori__dim_of((d[1].value + c - 1) / c), d[2], d[3], nori__dim_of(c)};
    if (!t || !nori__type_set(&b->ir->arena, &t->type, NORI_FLOAT, 5, dims)) {
        nori__no_memory(b->err);
        return NULL;
    }
    b->twin[v->id] = t;
    return t;
}

/* v's twin, made by a Block in front of n where there is none. */
static nori__value *blocked(blocker *b, nori__value *v, nori__node *n)
{
    nori__value *t = twin_of(b, v);
    if (!t && is_image(v) && v->id < b->values) {
        t = new_twin(b, v);
        if (t && !make(b, n, NORI__BLOCKED_FROM, "", &v, 1, t)) {
            return NULL;
        }
    }
    return t;
}

/* Puts a node that makes the twin of n's output into the place of n; gives the new node. */
static nori__node *replace(blocker *b, nori__node *n, nori__blocked_id id, nori__value *const *in,
                           size_t n_in)
{
    nori__value *out = new_twin(b, n->outputs[0]);
    nori__node *made = out ? make(b, n, id, n->name, in, n_in, out) : NULL;
    if (made) {
        made->attrs = n->attrs;
        made->attr_count = n->attr_count;
        nori__node_remove(n);
    }
    return made;
}

/* The same with the operator left as it is: it works element by element, or axis by axis. */
static nori__node *retarget(blocker *b, nori__node *n, nori__value *const *in, size_t n_in)
{
    nori__value *out = new_twin(b, n->outputs[0]);
    nori__node *made = out ? nori__node_new(b->g, n, n->domain, n->op_type, in, n_in, &out, 1) : NULL;
    if (!made) {
        nori__no_memory(b->err);
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

/* ---- convolutions ---- */

static bool given_pads(const nori__node *n, const int64_t *kernel)
{
    nori__window w;
    if (nori__window_read(n, NULL, 2, kernel, &w) != NORI_OK) {
        return false;
    }
    return w.begin[0] >= 0 && w.begin[1] >= 0 && w.end[0] >= 0 && w.end[1] >= 0;
}

/* Groups that fall on whole blocks of outputs, and on inputs that do not cross blocks. */
static bool groups_fit(const blocker *b, const nori_tensor *w, int64_t group, int64_t channels)
{
    int64_t c = (int64_t)b->block, each = w->dims[1], made = w->dims[0];
    if (group == 1) {
        return channels == each;
    }
    if (group < 1 || made % group != 0 || each * group != channels) {
        return false;
    }
    if (each == 1) {
        return made == channels;
    }
    return made / group % c == 0 && (each % c == 0 || c % each == 0);
}

static bool conv_fits(const blocker *b, const nori__node *n)
{
    const nori_tensor *w = nori__cpu_default(nori__cpu_value(n, 1));
    const nori__value *bias = nori__cpu_value(n, 2), *sum = nori__cpu_value(n, 3);
    nori__activation act;
    if ((!nori__node_is(n, NORI__OP_ONNX_Conv) && !nori__node_is(n, NORI__OP_MS_FusedConv)) ||
        !w || w->type != NORI_FLOAT || w->rank != 4 || w->count == 0 || !is_image(n->inputs[0]) ||
        !is_image(n->outputs[0]) || !nori__activation_read(n, &act)) {
        return false;
    }
    const nori_tensor *t = nori__cpu_default(bias);
    if ((bias && (!t || t->type != NORI_FLOAT || t->count != w->dims[0])) ||
        (sum && (!is_image(sum) || nori__value_const(sum)))) {
        return false;
    }
    return groups_fit(b, w, nori__attr_i(n, "group", 1), n->inputs[0]->type.dims[1].value) &&
           given_pads(n, w->dims + 2);
}

/* The 1 x 1 convolution that makes n's input for n alone, both with weights that never change. */
static nori__node *expansion(const blocker *b, const nori__node *n)
{
    const nori__value *x = n->inputs[0];
    const nori__value *t = twin_of(b, x);
    nori__node *e = t && t->uses == 0 && x->uses == 1 && !(x->flags & NORI__VALUE_OUTPUT)
                        ? t->producer
                        : NULL;
    if (!e || !nori__blocked_is(e, NORI__BLOCKED_CONV) || e->input_count > 3 ||
        e->inputs[0]->type.rank != 5 || nori__attr_i(e, "group", 1) != 1) {
        return NULL;
    }
    const nori_tensor *w = nori__value_const(e->inputs[1]), *d = nori__value_const(n->inputs[1]);
    const nori__value *bias[2] = {input(e, 2), input(n, 2)};
    nori__window window;
    if (!w || !d || w->dims[2] != 1 || w->dims[3] != 1 || d->dims[1] != 1 ||
        d->dims[0] != w->dims[0] || nori__attr_i(n, "group", 1) != w->dims[0] || input(n, 3) ||
        (bias[0] && !nori__value_const(bias[0])) || (bias[1] && !nori__value_const(bias[1])) ||
        nori__window_read(e, NULL, 2, w->dims + 2, &window) != NORI_OK) {
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        if (window.stride[i] != 1 || window.begin[i] != 0 || window.end[i] != 0) {
            return NULL;
        }
    }
    return e;
}

static nori__node *join_expansion(blocker *b, nori__node *n, nori__node *e)
{
    nori__value *in[5] = {e->inputs[0], e->inputs[1], input(e, 2), n->inputs[1], input(n, 2)};
    const char *name = nori__attr_s(e, "activation", "");
    size_t n_p;
    const float *p = nori__attr_floats(e, "activation_params", &n_p);
    b->twin[n->inputs[0]->id] = NULL;
    nori__node *made = replace(b, n, NORI__BLOCKED_EXPAND, in, 5);
    if (made) {
        nori__node_remove(e);
        if (!nori__node_set_text(made, "expand_activation", name) ||
            (p && n_p > 0 && !nori__node_set_floats(made, "expand_params", p, n_p))) {
            nori__no_memory(b->err);
            return NULL;
        }
    }
    return made;
}

static nori__node *block_conv(blocker *b, nori__node *n)
{
    nori__node *e = expansion(b, n);
    if (e) {
        return join_expansion(b, n, e);
    }
    nori__value *x = n->inputs[0], *sum = input(n, 3);
    bool plain = !twin_of(b, x) && x->type.dims[1].value <= FEW_CHANNELS &&
                 nori__attr_i(n, "group", 1) == 1;
    nori__value *in[4] = {plain ? x : blocked(b, x, n), n->inputs[1], input(n, 2),
                          sum ? blocked(b, sum, n) : NULL};
    if (!in[0] || (sum && !in[3])) {
        return NULL;
    }
    return replace(b, n, NORI__BLOCKED_CONV, in, sum ? 4 : in[2] ? 3 : 2);
}

static bool turned_fits(const nori__node *n)
{
    const nori_tensor *w = nori__cpu_default(nori__cpu_value(n, 1));
    const nori_tensor *bias = nori__cpu_default(nori__cpu_value(n, 2));
    nori__window window;
    if (!nori__node_is(n, NORI__OP_ONNX_ConvTranspose) || !w || w->type != NORI_FLOAT ||
        w->rank != 4 || w->count == 0 || !is_image(n->inputs[0]) || !is_image(n->outputs[0]) ||
        nori__attr_i(n, "group", 1) != 1 || w->dims[0] != n->inputs[0]->type.dims[1].value ||
        (nori__cpu_value(n, 2) &&
         (!bias || bias->type != NORI_FLOAT || bias->count != w->dims[1])) ||
        !given_pads(n, w->dims + 2) ||
        nori__window_read(n, NULL, 2, w->dims + 2, &window) != NORI_OK) {
        return false;
    }
    return window.dilation[0] == 1 && window.dilation[1] == 1 && window.stride[0] <= 16 &&
           window.stride[1] <= 16;
}

static nori__node *block_turned(blocker *b, nori__node *n)
{
    nori__value *in[3] = {blocked(b, n->inputs[0], n), n->inputs[1], input(n, 2)};
    return in[0] ? replace(b, n, NORI__BLOCKED_TURNED, in, in[2] ? 3 : 2) : NULL;
}

/* ---- what follows them ---- */

static nori__node *block_pool(blocker *b, nori__node *n)
{
    nori__value *x = twin_of(b, n->inputs[0]);
    bool average = nori__node_is(n, NORI__OP_ONNX_AveragePool);
    nori__window w;
    if (!x || n->output_count != 1 || nori__window_read(n, NULL, 2, NULL, &w) != NORI_OK ||
        !given_pads(n, NULL)) {
        return NULL;
    }
    nori__node *made = replace(b, n, NORI__BLOCKED_POOL, &x, 1);
    if (made && average && !nori__node_set_int(made, "average", 1)) {
        nori__no_memory(b->err);
        return NULL;
    }
    return made;
}

static nori__node *block_mean(blocker *b, nori__node *n)
{
    nori__value *x = twin_of(b, n->inputs[0]);
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
    return replace(b, n, NORI__BLOCKED_MEAN, &x, 1);
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

static nori__node *block_leaky(blocker *b, nori__node *n)
{
    nori__value *in[2] = {twin_of(b, n->inputs[0]), input(n, 1)};
    return in[0] && each_channel(in[1], n->inputs[0]->type.dims[1].value)
               ? replace(b, n, NORI__BLOCKED_LEAKY, in, 2)
               : NULL;
}

static nori__node *block_norm(blocker *b, nori__node *n)
{
    nori__value *in[5] = {twin_of(b, n->inputs[0])};
    bool fits = in[0] && n->input_count == 5 && n->version >= 7 &&
                nori__attr_i(n, "training_mode", 0) == 0 && nori__attr_i(n, "spatial", 1) == 1;
    for (uint32_t i = 1; fits && i < 5; i++) {
        in[i] = n->inputs[i];
        fits = in[i] && in[i]->type.elem == NORI_FLOAT && in[i]->type.rank == 1 &&
               nori__dim_same(in[i]->type.dims[0], n->inputs[0]->type.dims[1]);
    }
    return fits ? replace(b, n, NORI__BLOCKED_NORM, in, 5) : NULL;
}

/* Resize of height and width alone. */
static nori__node *block_resize(blocker *b, nori__node *n)
{
    nori__value *in[4] = {twin_of(b, n->inputs[0])};
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
    nori__node *made = replace(b, n, NORI__BLOCKED_RESIZE, in, n->input_count);
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
static nori__node *join_activation(blocker *b, nori__node *n)
{
    nori__value *t = twin_of(b, n->inputs[0]);
    nori__node *from = t && t->uses == 0 && n->inputs[0]->uses == 1 &&
                               !(n->inputs[0]->flags & NORI__VALUE_OUTPUT)
                           ? t->producer
                           : NULL;
    float p[2];
    size_t n_p;
    const char *name = nori__activation_of(n, p, &n_p);
    if (!from || !name ||
        (!nori__blocked_is(from, NORI__BLOCKED_NORM) && !nori__blocked_is(from, NORI__BLOCKED_TURNED)) ||
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

static nori__node *block_unary(blocker *b, nori__node *n)
{
    nori__node *joined = join_activation(b, n);
    if (joined || b->err->status != NORI_OK) {
        return joined;
    }
    nori__value *in[3] = {twin_of(b, n->inputs[0]), input(n, 1), input(n, 2)};
    for (uint32_t i = 1; i < n->input_count && i < 3; i++) {
        if (in[i] && !nori__value_const(in[i])) {
            return NULL; /* a bound that is computed */
        }
    }
    return in[0] && n->input_count <= 3 ? retarget(b, n, in, n->input_count) : NULL;
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
    const nori_tensor *t = nori__value_const(v);
    return t && t->type == NORI_FLOAT && t->count == 1 && t->rank <= 4;
}

static nori__node *block_binary(blocker *b, nori__node *n)
{
    nori__value *p = input(n, 0), *q = input(n, 1);
    nori__value *in[2] = {twin_of(b, p), twin_of(b, q)};
    if (n->input_count != 2 || !p || !q || (!in[0] && !in[1])) {
        return NULL;
    }
    if (in[0] && in[1]) {
        if (same_dims(p, q)) {
            return retarget(b, n, in, 2);
        }
        if (nori__node_is(n, NORI__OP_ONNX_Mul) && one_pixel(q, p)) {
            return replace(b, n, NORI__BLOCKED_SCALE, in, 2);
        }
        if (nori__node_is(n, NORI__OP_ONNX_Mul) && one_pixel(p, q)) {
            nori__value *turned[2] = {in[1], in[0]};
            return replace(b, n, NORI__BLOCKED_SCALE, turned, 2);
        }
        return NULL;
    }
    if (!one_value(in[0] ? q : p)) {
        return NULL;
    }
    in[0] = in[0] ? in[0] : p;
    in[1] = in[1] ? in[1] : q;
    return retarget(b, n, in, 2);
}

/* Concat of channels: every input but the last fills its blocks. */
static nori__node *block_concat(blocker *b, nori__node *n)
{
    int64_t axis = nori__attr_i(n, "axis", 1);
    if ((axis != 1 && axis != -3) || n->input_count == 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (!twin_of(b, n->inputs[i]) ||
            (i + 1 < n->input_count && n->inputs[i]->type.dims[1].value % (int64_t)b->block != 0)) {
            return NULL;
        }
    }
    nori__value **in = nori__arena_array(&b->ir->arena, n->input_count, sizeof(nori__value *));
    if (!in) {
        nori__no_memory(b->err);
        return NULL;
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        in[i] = twin_of(b, n->inputs[i]);
    }
    nori__node *made = retarget(b, n, in, n->input_count);
    if (made && !nori__node_set_int(made, "axis", 1)) { /* from the end it would be another */
        nori__no_memory(b->err);
        return NULL;
    }
    return made;
}

static const struct {
    nori__op_id op;
    nori__node *(*block)(blocker *b, nori__node *n);
} rows[] = {
    {NORI__OP_ONNX_MaxPool, block_pool},
    {NORI__OP_ONNX_AveragePool, block_pool},
    {NORI__OP_ONNX_GlobalAveragePool, block_mean},
    {NORI__OP_ONNX_ReduceMean, block_mean},
    {NORI__OP_ONNX_BatchNormalization, block_norm},
    {NORI__OP_ONNX_PRelu, block_leaky},
    {NORI__OP_ONNX_Resize, block_resize},
    {NORI__OP_ONNX_Relu, block_unary},
    {NORI__OP_ONNX_LeakyRelu, block_unary},
    {NORI__OP_ONNX_Clip, block_unary},
    {NORI__OP_ONNX_HardSigmoid, block_unary},
    {NORI__OP_ONNX_HardSwish, block_unary},
    {NORI__OP_ONNX_Sigmoid, block_unary},
    {NORI__OP_ONNX_Tanh, block_unary},
    {NORI__OP_ONNX_Erf, block_unary},
    {NORI__OP_ONNX_Gelu, block_unary},
    {NORI__OP_ONNX_Swish, block_unary},
    {NORI__OP_ONNX_Neg, block_unary},
    {NORI__OP_ONNX_Abs, block_unary},
    {NORI__OP_ONNX_Add, block_binary},
    {NORI__OP_ONNX_Sub, block_binary},
    {NORI__OP_ONNX_Mul, block_binary},
    {NORI__OP_ONNX_Div, block_binary},
    {NORI__OP_ONNX_Max, block_binary},
    {NORI__OP_ONNX_Min, block_binary},
    {NORI__OP_ONNX_Concat, block_concat},
};

/* The blocked node in the place of n, or NULL. */
static nori__node *convert(blocker *b, nori__node *n)
{
    if (n->output_count != 1 || !is_image(n->outputs[0]) || n->outputs[0]->id >= b->values ||
        n->input_count < 1 || !n->inputs[0]) {
        return NULL;
    }
    if (conv_fits(b, n)) {
        return block_conv(b, n);
    }
    if (turned_fits(n)) {
        return block_turned(b, n);
    }
    for (size_t i = 0; i < NORI__COUNT(rows); i++) {
        if (nori__node_is(n, rows[i].op)) {
            return rows[i].block(b, n);
        }
    }
    return NULL;
}

/* Values that lost their producer and have plain readers left get an Unblock. */
static nori_status unblock(blocker *b)
{
    for (nori__value *v = b->g->values; v; v = v->next) {
        nori__value *t = v->id < b->values ? b->twin[v->id] : NULL;
        if (!t || v->producer || v->uses == 0 || (v->flags & NORI__VALUE_INPUT) ||
            nori__value_const(v)) {
            continue;
        }
        nori__node *made = make(b, t->producer->next, NORI__BLOCKED_TO, "", &t, 1, v);
        if (!made || !nori__node_set_int(made, "channels", v->type.dims[1].value)) {
            return nori__no_memory(b->err);
        }
    }
    return NORI_OK;
}

static nori_status walk(blocker *b)
{
    memset(b->twin, 0, b->values * sizeof(*b->twin));
    for (nori__node *n = b->g->first, *next; n; n = next) {
        next = n->next;
        convert(b, n);
        if (b->err->status != NORI_OK) {
            return b->err->status;
        }
    }
    return unblock(b);
}

nori_status nori__cpu_block(nori__ir *ir, nori_error *err)
{
    nori_error own = {0};
    blocker b = {.ir = ir, .values = ir->value_count, .block = nori__kernels_get()->block,
                 .err = err ? err : &own};
    b.twin = nori__alloc(ir->allocator, (b.values + 1) * sizeof(*b.twin));
    if (!b.twin) {
        return nori__no_memory(err);
    }
    nori_status status = NORI_OK;
    for (b.g = ir->graphs; b.g && status == NORI_OK; b.g = b.g->next_graph) {
        status = walk(&b);
    }
    nori__release(ir->allocator, b.twin, (b.values + 1) * sizeof(*b.twin));
    return status;
}

nori_status nori__cpu_rewrite(nori__ir *ir, nori_error *err)
{
    NORI__TRY(nori__cpu_half_islands(ir, err));
    NORI__TRY(nori__cpu_fuse(ir, err));
    NORI__TRY(nori__infer_graph(ir, err)); /* joined nodes' outputs are what their last one's were */
    return nori__cpu_block(ir, err);
}
