/* half_islands.c: the CPU levels here compute in float32, so nodes of float16 and bfloat16 that hang
 * together become islands of float32: constants are converted once, what comes in from outside by one
 * Cast a value, and a result goes back to its half type only where somebody outside reads it.
 *
 * Within an island values are not rounded to the half type, so results are nearer to exact arithmetic
 * than the model's own types would make them, and finite where those would overflow: they agree
 * within the type's tolerance, not to the bit. Level 2 only, as all rewrites of providers. */
#include "base/half.h"
#include "passes/passes.h"
#include "providers/cpu/cpu.h"

typedef struct islands {
    nori__ir *ir;
    nori__graph *g;
    nori__value **wide; /* by id of a half value of g: its float32 form, or NULL */
    size_t count;
    nori__vec made;     /* half values that islands used to make */
    nori_error *err;
} islands;

static bool is_half(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR &&
           (v->type.elem == NORI_FLOAT16 || v->type.elem == NORI_BFLOAT16);
}

static nori__value *wide_of(const islands *w, const nori__value *v)
{
    return v->id < w->count ? w->wide[v->id] : NULL;
}

/* What computes, and has float kernels. */
static bool computes(const nori__node *n)
{
    static const nori__op_id ops[] = {
        NORI__OP_ONNX_MatMul, NORI__OP_ONNX_Gemm, NORI__OP_ONNX_Conv, NORI__OP_ONNX_ConvTranspose,
        NORI__OP_ONNX_Add, NORI__OP_ONNX_Sub, NORI__OP_ONNX_Mul, NORI__OP_ONNX_Div,
        NORI__OP_ONNX_Pow, NORI__OP_ONNX_Max, NORI__OP_ONNX_Min, NORI__OP_ONNX_Relu,
        NORI__OP_ONNX_LeakyRelu, NORI__OP_ONNX_Clip, NORI__OP_ONNX_HardSigmoid,
        NORI__OP_ONNX_HardSwish, NORI__OP_ONNX_Sigmoid, NORI__OP_ONNX_Tanh, NORI__OP_ONNX_Exp,
        NORI__OP_ONNX_Erf, NORI__OP_ONNX_Gelu, NORI__OP_ONNX_Sqrt, NORI__OP_ONNX_Reciprocal,
        NORI__OP_ONNX_Neg, NORI__OP_ONNX_Abs, NORI__OP_ONNX_BatchNormalization,
        NORI__OP_ONNX_InstanceNormalization, NORI__OP_ONNX_LayerNormalization,
        NORI__OP_ONNX_Softmax, NORI__OP_ONNX_ReduceMean, NORI__OP_ONNX_GlobalAveragePool,
        NORI__OP_ONNX_AveragePool, NORI__OP_ONNX_MaxPool};
    for (size_t i = 0; i < NORI__COUNT(ops); i++) {
        if (nori__node_is(n, ops[i])) {
            return true;
        }
    }
    return false;
}

/* What only moves values: worth it inside an island. */
static bool moves(const nori__node *n)
{
    static const nori__op_id ops[] = {
        NORI__OP_ONNX_Reshape, NORI__OP_ONNX_Flatten, NORI__OP_ONNX_Squeeze,
        NORI__OP_ONNX_Unsqueeze, NORI__OP_ONNX_Transpose, NORI__OP_ONNX_Concat,
        NORI__OP_ONNX_Slice, NORI__OP_ONNX_Split, NORI__OP_ONNX_Expand, NORI__OP_ONNX_Identity};
    for (size_t i = 0; i < NORI__COUNT(ops); i++) {
        if (nori__node_is(n, ops[i])) {
            return true;
        }
    }
    return false;
}

static bool has_half_output(const nori__node *n)
{
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (is_half(n->outputs[i])) {
            return true;
        }
    }
    return false;
}

static bool joins(const islands *w, const nori__node *n)
{
    if (!n->op || !has_half_output(n)) {
        return false;
    }
    bool inside = computes(n);
    for (uint32_t i = 0; !inside && moves(n) && i < n->input_count; i++) {
        const nori__value *v = n->inputs[i];
        inside = is_half(v) && !nori__value_as_is(v) && wide_of(w, v);
    }
    return inside;
}

static bool remember(islands *w, const nori__value *half, nori__value *wide)
{
    if (half->id < w->count) { /* others are values made here: never half */
        w->wide[half->id] = wide;
    }
    return wide != NULL;
}

static nori__value *wide_constant(islands *w, const nori_tensor *t)
{
    nori_tensor *out = NULL;
    if (nori__tensor_new(w->ir->allocator, NORI_FLOAT, t->rank, t->dims, &out, w->err) !=
        NORI_OK) {
        return NULL;
    }
    const nori__any_u16 *from = nori__tensor_at(t);
    float *to = out->data;
    for (int64_t i = 0; i < t->count; i++) {
        to[i] = t->type == NORI_FLOAT16 ? nori__f16_to_f32(from[i]) : nori__bf16_to_f32(from[i]);
    }
    return nori__const_new(w->g, NULL, out);
}

/* A float32 value of the shape of a half one. */
static nori__value *wide_value(islands *w, const nori__value *half)
{
    nori__value *v = nori__value_new(w->g, NULL);
    if (!v || !nori__type_set(&w->ir->arena, &v->type, NORI_FLOAT, half->type.rank,
                              half->type.dims)) {
        return NULL;
    }
    v->flags |= half->flags & NORI__VALUE_HINTED;
    return v;
}

static bool add_cast(nori__graph *g, nori__node *before, nori__value *from, nori__value *to,
                     nori_type type)
{
    nori__node *cast = nori__node_new(g, before, "", "Cast", &from, 1, &to, 1);
    if (!cast || !nori__node_set_int(cast, "to", type)) {
        return false;
    }
    nori__node_resolve(cast);
    return true;
}

/* The float32 form of what a node of the island reads. */
static nori__value *widen(islands *w, nori__node *n, nori__value *half)
{
    nori__value *wide = wide_of(w, half);
    if (wide) {
        return wide;
    }
    const nori_tensor *t = nori__value_as_is(half);
    const nori__node *maker = half->producer;
    if (t) {
        wide = wide_constant(w, t);
    } else if (maker && maker->graph == w->g && nori__node_is(maker, NORI__OP_ONNX_Cast) &&
               maker->inputs[0]->type.kind == NORI_KIND_TENSOR &&
               maker->inputs[0]->type.elem == NORI_FLOAT) {
        wide = maker->inputs[0]; /* it was float32 before */
    } else {
        wide = wide_value(w, half);
        wide = wide && add_cast(w->g, n, half, wide, NORI_FLOAT) ? wide : NULL;
    }
    return remember(w, half, wide) ? wide : NULL;
}

/* A node of the island: reads and makes float32 from now on. */
static bool convert(islands *w, nori__node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++) {
        nori__value *wide = is_half(n->inputs[i]) ? widen(w, n, n->inputs[i]) : n->inputs[i];
        if (is_half(n->inputs[i]) && (!wide || !nori__node_set_input(n, i, wide))) {
            return false;
        }
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        nori__value *half = n->outputs[i];
        if (!is_half(half)) {
            continue;
        }
        nori__value *wide = wide_value(w, half);
        if (!remember(w, half, wide) || !nori__vec_push(&w->made, half)) {
            return false;
        }
        n->outputs[i] = wide;
        wide->producer = n;
        half->producer = NULL;
    }
    return true;
}

/* Who leaves the island for float32 stays there. */
static bool leave(islands *w, nori__node *n)
{
    if (!nori__node_is(n, NORI__OP_ONNX_Cast) || !is_half(n->inputs[0]) ||
        nori__attr_i(n, "to", 0) != NORI_FLOAT || !wide_of(w, n->inputs[0])) {
        return true;
    }
    nori__value *wide = wide_of(w, n->inputs[0]), *out = n->outputs[0];
    if (out->flags & NORI__VALUE_OUTPUT) {
        return nori__node_set_input(n, 0, wide); /* keeps its name; a Cast to the same type */
    }
    nori__value_replace(out, wide);
    nori__node_remove(n);
    return true;
}

/* What others still read in its half type is cast back, right behind its maker. */
static bool cast_back(islands *w)
{
    for (size_t i = 0; i < w->made.count; i++) {
        nori__value *half = w->made.items[i], *wide = wide_of(w, half);
        if ((half->uses > 0 || (half->flags & NORI__VALUE_OUTPUT)) &&
            !add_cast(w->g, wide->producer->next, wide, half, (nori_type)half->type.elem)) {
            return false;
        }
    }
    return true;
}

static bool convert_graph(islands *w)
{
    memset(w->wide, 0, w->count * sizeof(*w->wide)); /* a value of another graph may come later */
    w->made.count = 0;
    for (nori__node *n = w->g->first, *next; n; n = next) {
        next = n->next;
        if (!(joins(w, n) ? convert(w, n) : leave(w, n))) {
            return false;
        }
    }
    return cast_back(w);
}

nori_status nori__cpu_half_islands(nori__ir *ir, nori_error *err)
{
    bool any = false;
    for (const nori__graph *g = ir->graphs; g && !any; g = g->next_graph) {
        for (const nori__node *n = g->first; n && !any; n = n->next) {
            any = n->op && has_half_output(n) && computes(n);
        }
    }
    if (!any) {
        return NORI_OK;
    }
    islands w = {.ir = ir, .count = ir->value_count, .err = err};
    w.wide = nori__alloc(ir->allocator, w.count * sizeof(*w.wide));
    nori__vec_init(&w.made, ir->allocator);
    bool ok = w.wide != NULL;
    for (w.g = ir->graphs; ok && w.g; w.g = w.g->next_graph) {
        ok = convert_graph(&w);
    }
    nori__release(ir->allocator, w.wide, w.count * sizeof(*w.wide));
    nori__vec_free(&w.made);
    NORI__TRY(ok ? NORI_OK : nori__no_memory(err));
    bool changed = false; /* Casts into an island that took what was before them */
    NORI__TRY(nori__pass_dead(ir, &changed, err));
    return nori__infer_edited(ir, err);
}
