/* fuse.c: convolutions and products take in what follows them: a constant BatchNormalization, a
 * bias, a residual, an activation. Only float32, only where nobody else reads what lies in between.
 *
 * The result is com.microsoft FusedConv (X, W, B, Z; activation(conv + B + Z)), FusedGemm, or plain
 * Conv and Gemm where that suffices. */
#include "base/built.h"
#include "ops/resolve.h"
#include "providers/cpu/joined.h"

#include <math.h>

typedef struct fuser {
    nori__ir *ir;
    nori__graph *g;
    nori__node **reader; /* by value id: its only reader in g, or NULL */
    size_t readers;
    nori_error *err;
} fuser;

static bool is_f32(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && v->type.elem == NORI_FLOAT;
}

/* Who reads output 0 of n, if that is one node of the same graph and nothing else. */
static nori__node *only_reader(const fuser *f, const nori__node *n)
{
    const nori__value *v = n->outputs[0];
    return v->uses == 1 && !(v->flags & NORI__VALUE_OUTPUT) && v->id < f->readers
               ? f->reader[v->id]
               : NULL;
}

static void note_readers(fuser *f, nori__node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i] && n->inputs[i]->id < f->readers) {
            f->reader[n->inputs[i]->id] = n;
        }
    }
}

/* n with other inputs, operator and the output of `last`, put where last stands. Both go. */
static nori__node *join(fuser *f, nori__node *n, nori__node *last, const char *domain,
                        const char *op, nori__value *const *in, size_t n_in)
{
    nori__node *made = nori__node_new(f->g, last, domain, op, in, n_in, last->outputs, 1);
    if (!made) {
        nori__no_memory(f->err);
        return NULL;
    }
    made->name = n->name;
    made->attrs = n->attrs;
    made->attr_count = n->attr_count;
    nori__node_resolve_at(made, domain[0] ? 1 : INT32_MAX);
    nori__node_remove(last);
    nori__node_remove(n);
    note_readers(f, made);
    return made;
}

/* ---- activations ---- */

static bool scalar(const nori__value *v, float otherwise, float *out)
{
    const nori_tensor *t = nori__value_const(v);
    *out = t && t->type == NORI_FLOAT && t->count == 1 ? *(const float *)t->data : otherwise;
    return !v || (t && t->type == NORI_FLOAT && t->count == 1 && !isnan(*out));
}

const char *nori__activation_of(const nori__node *n, float *p, size_t *n_p)
{
    *n_p = 0;
    switch (n->op ? n->op->id : NORI__OP_COUNT) {
    case NORI__OP_ONNX_Relu:
        return "Relu";
    case NORI__OP_ONNX_Sigmoid:
        return "Sigmoid";
    case NORI__OP_ONNX_Tanh:
        return "Tanh";
    case NORI__OP_ONNX_HardSwish:
        return "HardSwish";
    case NORI__OP_ONNX_Swish:
        p[0] = nori__attr_f(n, "alpha", 1);
        *n_p = 1;
        return "Swish";
    case NORI__OP_ONNX_LeakyRelu:
        p[0] = nori__attr_f(n, "alpha", 0.01f);
        *n_p = 1;
        return "LeakyRelu";
    case NORI__OP_ONNX_HardSigmoid:
        p[0] = nori__attr_f(n, "alpha", 0.2f);
        p[1] = nori__attr_f(n, "beta", 0.5f);
        *n_p = 2;
        return "HardSigmoid";
    case NORI__OP_ONNX_Clip:
        *n_p = 2;
        return scalar(nori__cpu_value(n, 1), -(float)INFINITY, &p[0]) &&
                       scalar(nori__cpu_value(n, 2), (float)INFINITY, &p[1]) && p[0] <= p[1]
                   ? "Clip"
                   : NULL;
    default:
        return NULL;
    }
}

static nori__node *take_activation(fuser *f, nori__node *n, nori__node *next)
{
    float p[2];
    size_t n_p;
    const char *name = nori__activation_of(next, p, &n_p);
    bool gemm = nori__node_is(n, NORI__OP_ONNX_Gemm);
    if (!name || next->inputs[0] != n->outputs[0] || next->output_count != 1 ||
        (gemm && (n_p > 0 || nori__same(name, "HardSwish")))) {
        return NULL;
    }
    nori__node *made = join(f, n, next, "com.microsoft", gemm ? "FusedGemm" : "FusedConv",
                            n->inputs, n->input_count);
    if (made && (!nori__node_set_text(made, "activation", name) ||
                 (n_p > 0 && !nori__node_set_floats(made, "activation_params", p, n_p)))) {
        nori__no_memory(f->err);
        return NULL;
    }
    return made;
}

/* ---- BatchNormalization into the weights ---- */

static const float *channels(const nori__value *v, int64_t count)
{
    const nori_tensor *t = nori__value_const(v);
    return t && t->type == NORI_FLOAT && t->count == count ? t->data : NULL;
}

static nori__node *take_norm(fuser *f, nori__node *n, nori__node *next)
{
    if (!nori__node_is(next, NORI__OP_ONNX_BatchNormalization) || next->input_count != 5 ||
        next->inputs[0] != n->outputs[0] || next->output_count != 1 || next->version < 7 ||
        nori__attr_i(next, "training_mode", 0) != 0 || nori__attr_i(next, "spatial", 1) != 1) {
        return NULL;
    }
    const nori_tensor *w = nori__value_as_is(n->inputs[1]);
    if (!w) {
        return NULL; /* a default: a caller may give others */
    }
    int64_t m = w->rank > 0 ? w->dims[0] : 0;
    const nori__value *old = nori__cpu_value(n, 2);
    const float *p[4], *b = old ? channels(old, m) : NULL;
    for (uint32_t i = 0; i < 4; i++) {
        p[i] = channels(next->inputs[i + 1], m);
        if (!p[i]) {
            return NULL;
        }
    }
    if ((old && !b) || m == 0 || w->count == 0) {
        return NULL;
    }
    nori_tensor *weight = NULL, *bias = NULL;
    if (nori__tensor_copy(f->ir->allocator, w, &weight, f->err) != NORI_OK) {
        return NULL;
    }
    if (nori__tensor_new(f->ir->allocator, NORI_FLOAT, 1, &m, &bias, f->err) != NORI_OK) {
        nori_tensor_free(weight);
        return NULL;
    }
    float epsilon = nori__attr_f(next, "epsilon", 1e-5f);
    int64_t each = w->count / m;
    for (int64_t c = 0; c < m; c++) {
        double factor = p[0][c] / sqrt((double)p[3][c] + (double)epsilon);
        ((float *)bias->data)[c] = (float)(((b ? b[c] : 0.0) - p[2][c]) * factor + p[1][c]);
        for (int64_t i = 0; i < each; i++) {
            float *at = (float *)weight->data + c * each + i;
            *at = (float)(*at * factor);
        }
    }
    nori__value *new_w = nori__const_new(f->g, NULL, weight);
    nori__value *new_b = nori__const_new(f->g, NULL, bias);
    if (!new_w || !new_b) {
        nori__no_memory(f->err);
        return NULL;
    }
    nori__value *in[3] = {n->inputs[0], new_w, new_b};
    return join(f, n, next, "", "Conv", in, 3);
}

/* ---- what is added ---- */

/* A constant that adds one value to each channel of a convolution of that rank, as [M]. */
static nori__value *channel_bias(fuser *f, nori__value *v, int rank, int64_t made)
{
    const nori_tensor *t = nori__value_const(v);
    int axis = t ? t->rank - (rank - 1) : -1; /* where the channel stands */
    if (!t || t->type != NORI_FLOAT || axis < 0 || axis > 1 || t->count != made ||
        t->dims[axis] != made) {
        return NULL;
    }
    nori_tensor *flat = NULL;
    if (nori__tensor_copy(f->ir->allocator, t, &flat, f->err) != NORI_OK) {
        return NULL;
    }
    if (!nori__tensor_reshape(flat, NORI_FLOAT, 1, &made)) {
        nori_tensor_free(flat);
        return NULL;
    }
    nori__value *bias = nori__const_new(f->g, NULL, flat);
    if (!bias) {
        nori__no_memory(f->err);
    }
    return bias;
}

static bool same_shape(const nori__value *a, const nori__value *b)
{
    bool same = a->type.rank >= 0 && a->type.rank == b->type.rank;
    for (int d = 0; same && d < a->type.rank; d++) {
        same = nori__dim_same(a->type.dims[d], b->type.dims[d]);
    }
    return same;
}

static nori__node *take_sum(fuser *f, nori__node *n, nori__node *next)
{
    nori__value *out = n->outputs[0];
    const nori_tensor *w = nori__cpu_default(n->inputs[1]);
    if (!nori__node_is(next, NORI__OP_ONNX_Add) || next->input_count != 2 ||
        next->output_count != 1 || next->inputs[0] == next->inputs[1]) {
        return NULL;
    }
    nori__value *other = next->inputs[next->inputs[0] == out];
    nori__value *in[4] = {n->inputs[0], n->inputs[1], nori__cpu_value(n, 2) ? n->inputs[2] : NULL,
                          nori__cpu_value(n, 3) ? n->inputs[3] : NULL};
    if (!other || !is_f32(other) || in[3]) {
        return NULL;
    }
    if (!in[2] && w->rank > 2) {
        in[2] = channel_bias(f, other, w->rank, w->dims[0]);
        if (in[2]) {
            return join(f, n, next, "", "Conv", in, 3);
        }
        if (f->err && f->err->status != NORI_OK) {
            return NULL;
        }
    }
    /* Only the last of what is added may be a residual: the branch that is longer. */
    if (nori__value_const(other) || !same_shape(out, other) || !same_shape(out, next->outputs[0])) {
        return NULL;
    }
    in[3] = other;
    return join(f, n, next, "com.microsoft", "FusedConv", in, 4);
}

/* MatMul of a matrix by a constant one, plus a constant row: Gemm. */
static nori__node *product_bias(fuser *f, nori__node *n, nori__node *next)
{
    const nori_tensor *w = nori__cpu_default(n->inputs[1]);
    if (!w || !nori__node_is(next, NORI__OP_ONNX_Add) || next->input_count != 2 ||
        next->output_count != 1 || w->rank != 2 || n->inputs[0]->type.rank != 2) {
        return NULL;
    }
    nori__value *other = next->inputs[next->inputs[0] == n->outputs[0]];
    const nori_tensor *t = nori__value_const(other);
    if (!t || t->type != NORI_FLOAT || t->rank != 1 || t->dims[0] != w->dims[1]) {
        return NULL;
    }
    nori__value *in[3] = {n->inputs[0], n->inputs[1], other};
    return join(f, n, next, "", "Gemm", in, 3);
}

/* ---- the walk ---- */

static bool starts(const nori__node *n)
{
    return n->output_count == 1 && n->outputs[0] && n->input_count >= 2 && n->inputs[0] &&
           is_f32(n->inputs[0]) && is_f32(n->outputs[0]) && nori__cpu_default(n->inputs[1]) &&
           nori__cpu_default(n->inputs[1])->type == NORI_FLOAT;
}

/* n with one more of its followers taken in, or NULL. */
static nori__node *grow(fuser *f, nori__node *n)
{
    nori__node *next = starts(n) ? only_reader(f, n) : NULL;
    if (!next || !next->op || next->output_count < 1 || !next->outputs[0]) {
        return NULL;
    }
    if (nori__node_is(n, NORI__OP_ONNX_Conv)) {
        nori__node *made = take_norm(f, n, next);
        made = made ? made : take_sum(f, n, next);
        return made ? made : take_activation(f, n, next);
    }
    if (nori__node_is(n, NORI__OP_MS_FusedConv) && !nori__attr_find(n, "activation")) {
        return take_activation(f, n, next);
    }
    if (nori__node_is(n, NORI__OP_ONNX_MatMul)) {
        return product_bias(f, n, next);
    }
    return nori__node_is(n, NORI__OP_ONNX_Gemm) ? take_activation(f, n, next) : NULL;
}

/* A joined node stands where its follower stood, so what lay between comes before it: the walk goes
 * on from there and meets the joined node again, until it grows no more. */
static nori_status fuse_graph(fuser *f)
{
    memset(f->reader, 0, f->readers * sizeof(*f->reader));
    for (nori__node *n = f->g->first; n; n = n->next) {
        note_readers(f, n);
    }
    for (nori__node *n = f->g->first; n;) {
        nori__node *before = n->prev, *after = n->next, *made = grow(f, n);
        if (f->err->status != NORI_OK) {
            return f->err->status;
        }
        n = !made ? after : before ? before->next : f->g->first;
    }
    return NORI_OK;
}

nori_status nori__cpu_fuse(nori__ir *ir, nori_error *err)
{
    nori_error own = {0};
    fuser f = {.ir = ir, .err = err ? err : &own};
    if (NORI__BUILT(rewrite_patterns)) {
        NORI__TRY(nori__cpu_fuse_patterns(ir, err));
    }
    if (!NORI__IR_HAS(ir, NORI__OP_ONNX_Conv, NORI__OP_MS_FusedConv, NORI__OP_ONNX_MatMul,
                      NORI__OP_ONNX_Gemm)) {
        return NORI_OK; /* nothing that takes others in */
    }
    f.readers = ir->value_count; /* constants made from here on are not followed */
    f.reader = nori__alloc(ir->allocator, f.readers * sizeof(*f.reader));
    if (!f.reader) {
        return nori__no_memory(err);
    }
    nori_status status = NORI_OK;
    for (f.g = ir->graphs; f.g && status == NORI_OK; f.g = f.g->next_graph) {
        status = fuse_graph(&f);
    }
    nori__release(ir->allocator, f.reader, f.readers * sizeof(*f.reader));
    NORI__TRY(status);
    if (NORI__BUILT(nori_Attend)) {
        NORI__TRY(nori__cpu_fuse_attention(ir, err));
    }
    return NORI__BUILT(nori_Product) ? nori__cpu_fuse_products(ir, err) : NORI_OK;
}
