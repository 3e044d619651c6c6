/* upgrade.c: old forms of operators become the newest, on the compiled copy only, so that kernels
 * see one form. A table by operator; what is not in it either never changed its form or keeps its
 * version, and its kernel looks at it (Softmax below 13, GroupNormalization below 21, Scan 8 ...).
 * Some rewrites need an element type or a rank, and inference refuses some old forms: so nodes are
 * rewritten one by one while inference comes along. */
#include "ops/upgrade.h"

#include "base/built.h"
#include "ops/schema.h"

typedef struct rewrite {
    int before; /* applies to versions below this; 0: no rewrite */
    bool keep;  /* the version stays: the kernel wants to see it */
    nori__rewrite_fn run;
} rewrite;

#define KEEP(op, before, keep, what) \
    [NORI__OP_##op] = {before, keep, NORI__WHERE_BUILT(op, nori__upgrade_##what)}
#define ROW(name, before, what) KEEP(ONNX_##name, before, false, what)
static const rewrite rewrites[NORI__OP_COUNT] = {
    ROW(Add, 7, broadcast),
    ROW(And, 7, broadcast),
    KEEP(ONNX_BatchNormalization, 14, true, batchnorm),
    ROW(Cast, 6, cast),
    ROW(Clip, 11, clip),
    ROW(DFT, 20, dft),
    ROW(Div, 7, broadcast),
    KEEP(ONNX_Dropout, 12, true, dropout), /* the type of mask */
    ROW(Equal, 7, broadcast),
    ROW(GlobalLpPool, 2, lp),
    ROW(Greater, 7, broadcast),
    ROW(GridSample, 20, grid),
    ROW(Less, 7, broadcast),
    ROW(LpPool, 2, lp),
    ROW(Mul, 7, broadcast),
    ROW(Or, 7, broadcast),
    ROW(Pad, 11, pad),
    ROW(Pow, 7, broadcast),
    ROW(ReduceL1, 18, axes),
    ROW(ReduceL2, 18, axes),
    ROW(ReduceLogSum, 18, axes),
    ROW(ReduceLogSumExp, 18, axes),
    ROW(ReduceMax, 18, axes),
    ROW(ReduceMean, 18, axes),
    ROW(ReduceMin, 18, axes),
    ROW(ReduceProd, 18, axes),
    ROW(ReduceSum, 13, axes),
    ROW(ReduceSumSquare, 18, axes),
    ROW(Reshape, 5, reshape),
    ROW(Resize, 11, resize),
    ROW(RoiAlign, 16, roi),
    ROW(Scatter, 12, scatter),
    ROW(Slice, 10, slice),
    ROW(Split, 18, split),
    ROW(Squeeze, 13, axes),
    ROW(Sub, 7, broadcast),
    ROW(Tile, 6, tile),
    ROW(TopK, 10, topk),
    ROW(Unsqueeze, 13, axes),
    ROW(Upsample, 11, upsample),
    ROW(Xor, 7, broadcast),
    KEEP(TRAINING_Gradient, INT32_MAX, true, gradient), /* of every version */
};
#undef ROW
#undef KEEP

/* ---- helpers of the rewrites ---- */

static nori_status put(nori__node *n, uint32_t input, nori_tensor *t, nori_error *err)
{
    nori__value *v = nori__const_new(n->graph, NULL, t);
    return v && nori__node_set_input(n, input, v) ? NORI_OK : nori__no_memory(err);
}

nori_status nori__upgrade_ints(nori__node *n, uint32_t input, const int64_t *v, int64_t count,
                               nori_error *err)
{
    nori_tensor *t = NULL;
    NORI__TRY(nori__tensor_new(n->graph->ir->allocator, NORI_INT64, count >= 0 ? 1 : 0, &count, &t,
                               err));
    for (int64_t i = 0; i < t->count; i++) {
        nori__tensor_set_i64(t, i, v[i]);
    }
    return put(n, input, t, err);
}

nori_status nori__upgrade_floats(nori__node *n, uint32_t input, nori_type type, const float *v,
                                 int64_t count, nori_error *err)
{
    nori_tensor *t = NULL;
    NORI__TRY(
        nori__tensor_new(n->graph->ir->allocator, type, count >= 0 ? 1 : 0, &count, &t, err));
    for (int64_t i = 0; i < t->count; i++) {
        nori__tensor_set_f64(t, i, v[i]);
    }
    return put(n, input, t, err);
}

nori_status nori__upgrade_list(nori__node *n, const char *attr, uint32_t input, nori_error *err)
{
    size_t count;
    const int64_t *v = nori__attr_ints(n, attr, &count);
    if (!nori__attr_find(n, attr)) {
        return NORI_OK;
    }
    NORI__TRY(nori__upgrade_ints(n, input, v, (int64_t)count, err));
    nori__node_drop_attr(n, attr);
    return NORI_OK;
}

nori_type nori__upgrade_elem(const nori__node *n, uint32_t input)
{
    const nori__value *v = input < n->input_count ? n->inputs[input] : NULL;
    bool known = v && v->type.kind == NORI_KIND_TENSOR && v->type.elem != NORI_UNDEFINED;
    return known ? (nori_type)v->type.elem : NORI_FLOAT;
}

/* ---- the walk ---- */

static nori_status upgrade_node(nori__node *n, nori_error *err)
{
    const rewrite *r = n->op && n->op->id < NORI__OP_COUNT ? &rewrites[n->op->id] : NULL;
    if (!r || n->version >= r->before || n->settled || n->version == 0) {
        return NORI_OK;
    }
    NORI__TRY(r->run(n, err));
    nori__node_drop_attr(n, "consumed_inputs");
    if (!r->keep) {
        nori__node_resolve(n);
    }
    return NORI_OK;
}

/* New nodes are made and rewritten ones resolved under the newest operator set; the others were
 * resolved under the file's, and keep what they got. */
static nori_status newest_opset(nori__ir *ir, nori_error *err)
{
    for (size_t i = 0; i < ir->opset_count; i++) {
        if (ir->opsets[i].domain[0] == 0) {
            ir->opsets[i].version = NORI__OPSET_MAX_ONNX;
            return NORI_OK;
        }
    }
    nori__opset *grown = nori__arena_array(&ir->arena, ir->opset_count + 1, sizeof(*grown));
    if (!grown) {
        return nori__no_memory(err);
    }
    for (size_t i = 0; i < ir->opset_count; i++) {
        grown[i] = ir->opsets[i];
    }
    grown[ir->opset_count++] = (nori__opset){"", NORI__OPSET_MAX_ONNX};
    ir->opsets = grown;
    return NORI_OK;
}

nori_status nori__upgrade(nori__ir *ir, nori_error *err)
{
    NORI__TRY(newest_opset(ir, err));
    return nori__infer_rewriting(ir, upgrade_node, err);
}
