/* optimize_fuse.c: nodes joined to other standard operators: two Transposes, a MatMul with its bias, a
 * Pad with the Conv behind it. */
#include "tools/edit/optimize.h"

/* What makes v, if it is that operator, in the same graph, and nothing else reads v. */
static nori__node *maker(const nori__node *n, const nori__value *v, nori__op_id op)
{
    bool own = v && v->producer && v->uses == 1 && !(v->flags & NORI__VALUE_OUTPUT) &&
               v->producer->graph == n->graph && nori__node_is(v->producer, op);
    return own ? v->producer : NULL;
}

static const nori_tensor *const_in(const nori__node *n, uint32_t i)
{
    return i < n->input_count && n->inputs[i] ? nori__value_const(n->inputs[i]) : NULL;
}

/* ---- two Transposes ---- */

static bool permutation(const nori__node *n, int64_t *out, size_t *rank)
{
    bool seen[NORI_MAX_RANK] = {false};
    const int64_t *perm = nori__attr_ints(n, "perm", rank);
    if (!perm || *rank > NORI_MAX_RANK) {
        return false;
    }
    for (size_t i = 0; i < *rank; i++) {
        if (perm[i] < 0 || perm[i] >= (int64_t)*rank || seen[perm[i]]) {
            return false;
        }
        seen[perm[i]] = true;
        out[i] = perm[i];
    }
    return true;
}

nori_status nori__opt_transposes(nori__ir *ir, size_t *changes, nori_error *err)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            int64_t second[NORI_MAX_RANK], first[NORI_MAX_RANK], both[NORI_MAX_RANK];
            size_t rank, other;
            nori__node *before = nori__node_is(n, NORI__OP_ONNX_Transpose) && n->input_count == 1
                                     ? maker(n, n->inputs[0], NORI__OP_ONNX_Transpose) : NULL;
            if (!before || before->input_count != 1 || !permutation(n, second, &rank) ||
                !permutation(before, first, &other) || rank != other) {
                continue;
            }
            for (size_t i = 0; i < rank; i++) {
                both[i] = first[second[i]];
            }
            if (!nori__node_set_ints(n, "perm", both, rank) ||
                !nori__node_set_input(n, 0, before->inputs[0])) {
                return nori__no_memory(err);
            }
            nori__node_remove(before);
            (*changes)++;
        }
    }
    return NORI_OK;
}

/* ---- MatMul and Add ---- */

static bool is_matrix(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && v->type.rank == 2 && !(v->flags & NORI__VALUE_HINTED);
}

/* x [M, K] times a constant [K, N], and a constant [N] or [1, N] on top. */
static nori_status join_gemm(nori__node *add, size_t *changes, nori_error *err)
{
    for (uint32_t side = 0; side < 2; side++) {
        nori__node *product = maker(add, add->inputs[side], NORI__OP_ONNX_MatMul);
        const nori_tensor *w = product ? const_in(product, 1) : NULL;
        const nori_tensor *bias = const_in(add, 1 - side);
        bool fits = w && bias && w->rank == 2 && w->type == NORI_FLOAT && bias->type == NORI_FLOAT &&
                    is_matrix(product->inputs[0]) && bias->rank >= 1 && bias->rank <= 2 &&
                    bias->dims[bias->rank - 1] == w->dims[1] && bias->count == w->dims[1];
        if (!fits) {
            continue;
        }
        nori__value *in[] = {product->inputs[0], product->inputs[1], add->inputs[1 - side]};
        nori__value *out = add->outputs[0];
        const char *name = product->name;
        nori__node *gemm = nori__node_new(add->graph, add, "", "Gemm", in, 3, &out, 1);
        if (!gemm) {
            return nori__no_memory(err);
        }
        gemm->name = name;
        nori__node_resolve(gemm);
        nori__node_remove(add);
        nori__node_remove(product);
        out->producer = gemm;
        (*changes)++;
        break;
    }
    return NORI_OK;
}

nori_status nori__opt_gemm(nori__ir *ir, size_t *changes, nori_error *err)
{
    if (nori__ir_opset(ir, "") < 7) { /* its third input is broadcast by an attribute there */
        return NORI_OK;
    }
    for (nori__node *n = ir->main->first, *next; n; n = next) {
        next = n->next;
        if (nori__node_is(n, NORI__OP_ONNX_Add) && n->input_count == 2 && n->output_count == 1 &&
            n->outputs[0]) {
            NORI__TRY(join_gemm(n, changes, err));
        }
    }
    return NORI_OK;
}

/* ---- Pad and Conv ---- */

/* Zeros put around the spatial axes alone; -1: another kind of pad. */
static int zero_pads(const nori__node *pad, int64_t *out)
{
    const nori_tensor *t = const_in(pad, 1), *value = const_in(pad, 2);
    bool bare = pad->input_count < 4 && nori__same(nori__attr_s(pad, "mode", "constant"), "constant") &&
                nori__attr_f(pad, "value", 0) == 0 &&
                (pad->input_count < 3 || !pad->inputs[2] ||
                 (value && value->count == 1 && nori__tensor_get_f64(value, 0) == 0));
    size_t count = 0;
    const int64_t *attr = nori__attr_ints(pad, "pads", &count);
    count = t ? (size_t)t->count : attr ? count : 0;
    if (!bare || (!t && pad->input_count > 1) || count % 2 != 0 || count < 6 ||
        count > 2 * NORI_MAX_RANK) {
        return -1;
    }
    int rank = (int)count / 2;
    for (int i = 0; i < 2 * rank; i++) {
        out[i] = t ? nori__tensor_get_i64(t, i) : attr[i];
        if (out[i] < 0 || (i % rank < 2 && out[i] != 0)) {
            return -1;
        }
    }
    return rank;
}

nori_status nori__opt_pads(nori__ir *ir, size_t *changes, nori_error *err)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            int64_t around[2 * NORI_MAX_RANK], pads[2 * NORI_MAX_RANK] = {0};
            size_t count = 0;
            nori__node *pad = nori__node_is(n, NORI__OP_ONNX_Conv) && n->input_count > 1
                                  ? maker(n, n->inputs[0], NORI__OP_ONNX_Pad) : NULL;
            int rank = pad && nori__same(nori__attr_s(n, "auto_pad", "NOTSET"), "NOTSET")
                           ? zero_pads(pad, around) : -1;
            const int64_t *own = nori__attr_ints(n, "pads", &count);
            size_t spatial = rank > 2 ? (size_t)rank - 2 : 0;
            if (rank < 3 || (own && count != 2 * spatial)) {
                continue;
            }
            bool fits = true;
            for (size_t i = 0; i < spatial; i++) {
                fits = fits && nori__add_i64(own ? own[i] : 0, around[i + 2], &pads[i]) &&
                       nori__add_i64(own ? own[spatial + i] : 0, around[(size_t)rank + i + 2],
                                     &pads[spatial + i]);
            }
            if (!fits) {
                continue;
            }
            if (!nori__node_set_ints(n, "pads", pads, 2 * spatial) ||
                !nori__node_set_input(n, 0, pad->inputs[0])) {
                return nori__no_memory(err);
            }
            nori__node_remove(pad);
            (*changes)++;
        }
    }
    return NORI_OK;
}
