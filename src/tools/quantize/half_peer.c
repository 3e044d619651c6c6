/* half_peer.c: nodes that stay float32 in a model of half floats, because a runtime many devices have
 * would crash on it.
 *
 * ONNX Runtime (seen with 1.30) computes a MatMul of float16 in float32 on CPUs, and puts a Cast in
 * front of each input. Where such an input is a Transpose that moves the first axis to one of the last
 * two places, and the other input is none, its fusion of transposes into products loses the node and
 * the process dies while it loads. Without a Cast between the two, so in float32, nothing is wrong. */
#include "ops/op.h"
#include "tools/quantize/quantize.h"

/* Whether axis 0 goes to one of the last two places, and the others keep their order. */
static bool moves_first(const int64_t *perm, int rank)
{
    for (int i = 0, next = 1; i < rank; i++) {
        if (perm[i] == 0) {
            continue;
        }
        if (perm[i] != next++) {
            return false;
        }
    }
    return rank > 2 && (perm[rank - 2] == 0 || perm[rank - 1] == 0);
}

/* What hands its input on as it is, or in another type. */
static bool passes_on(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_Identity) || nori__node_is(n, NORI__OP_ONNX_Dropout) ||
           nori__node_is(n, NORI__OP_ONNX_Cast);
}

/* The permutation of a Transpose applied in front of perm; false: its rank is another, or unknown. */
static bool compose(const nori__node *n, int64_t *perm, int *rank)
{
    size_t count = 0;
    const int64_t *own = nori__attr_ints(n, "perm", &count);
    int axes = n->inputs[0]->type.rank;
    if (axes < 1 || axes > NORI_MAX_RANK || (*rank > 0 && *rank != axes) ||
        (own && count != (size_t)axes)) {
        return false;
    }
    for (int i = 0; i < axes; i++) {
        int64_t at = *rank > 0 ? perm[i] : i;
        perm[i] = own ? own[at] : axes - 1 - at;
        if (perm[i] < 0 || perm[i] >= axes) {
            return false;
        }
    }
    *rank = axes;
    return true;
}

/* Walks up from a product's input through all that a runtime may merge or drop. Whether a Transpose of
 * that kind stands there; with mark, the nodes up to it are marked. */
static bool transposed(const nori__value *v, bool *mark)
{
    int64_t perm[NORI_MAX_RANK];
    int rank = 0;
    bool found = false;
    for (const nori__node *n = v->producer; n && n->graph == v->graph && n->input_count > 0;
         n = v->producer) {
        bool turns = nori__node_is(n, NORI__OP_ONNX_Transpose);
        if (!n->inputs[0] || !(turns ? compose(n, perm, &rank) : passes_on(n))) {
            break;
        }
        found = found || (turns && moves_first(perm, rank));
        if (mark) {
            mark[n->id] = true;
        }
        v = n->inputs[0];
    }
    return found;
}

const bool *nori__q_half_crashes(nori__quantizer *q)
{
    bool *mark = nori__arena_array(&q->arena, (size_t)q->ir->node_count + 1, sizeof(*mark));
    for (const nori__node *n = mark ? q->ir->main->first : NULL; n; n = n->next) {
        if (!nori__node_is(n, NORI__OP_ONNX_MatMul) || n->input_count != 2 || !n->inputs[0] ||
            !n->inputs[1]) {
            continue;
        }
        bool left = transposed(n->inputs[0], NULL), right = transposed(n->inputs[1], NULL);
        if (left != right) {
            mark[n->id] = true;
            (void)transposed(n->inputs[left ? 0 : 1], mark);
        }
    }
    return mark;
}
