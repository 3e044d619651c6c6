/* fuse_attention.c: MatMul(Q, K^T), a scale, a mask, Softmax and MatMul by V become one Attend, which
 * takes in the transpositions around the heads, too. Float32 only, only where nobody else reads what
 * lies in between. Looked for from the last product backwards. */
#include "providers/cpu/joined.h"

enum { DEAD_MAX = 24 };

typedef struct finding {
    const nori__graph *g;
    int rank;
    float scale;
    nori__node *dead[DEAD_MAX];
    size_t n_dead;
} finding;

/* An operand as the core product sees it: axis i is axis perm[i] of value. */
typedef struct operand {
    nori__value *value;
    int64_t perm[NORI_MAX_RANK];
} operand;

static bool is_f32(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && v->type.elem == NORI_FLOAT;
}

/* The node that makes v, if it is this operator and nobody else reads v. */
static nori__node *maker(const finding *f, const nori__value *v, nori__op_id op)
{
    nori__node *n = v && v->uses == 1 && !(v->flags & NORI__VALUE_OUTPUT) ? v->producer : NULL;
    return n && n->graph == f->g && nori__node_is(n, op) && n->input_count > 0 && is_f32(n->inputs[0])
               ? n
               : NULL;
}

static bool bury(finding *f, nori__node *n)
{
    f->dead[f->n_dead] = n;
    return ++f->n_dead < DEAD_MAX;
}

static bool scalar(const nori__value *v, float *out)
{
    const nori_tensor *t = nori__value_const(v);
    if (!t || t->type != NORI_FLOAT || t->count != 1 || t->rank > 1) {
        return false;
    }
    *out = *(const float *)t->data;
    return true;
}

/* What v is a multiple of, if a Mul or Div by one constant makes it; factor takes it in. */
static nori__value *multiple(finding *f, nori__value *v, float *factor)
{
    float by;
    nori__node *n = maker(f, v, NORI__OP_ONNX_Div);
    if (n && n->input_count == 2 && scalar(n->inputs[1], &by) && bury(f, n)) {
        *factor /= by;
        return n->inputs[0];
    }
    n = maker(f, v, NORI__OP_ONNX_Mul);
    for (uint32_t side = 0; n && n->input_count == 2 && side < 2; side++) {
        if (scalar(n->inputs[1 - side], &by) && is_f32(n->inputs[side]) && bury(f, n)) {
            *factor *= by;
            return n->inputs[side];
        }
    }
    return NULL;
}

static const int64_t *permutation(const nori__node *n, int rank)
{
    size_t count = 0;
    const int64_t *list = n ? nori__attr_ints(n, "perm", &count) : NULL;
    return list && count == (size_t)rank ? list : NULL;
}

/* Follows an operand back through transpositions and, where scaled, factors. */
static void strip(finding *f, nori__value *v, bool scaled, operand *o)
{
    o->value = v;
    for (int d = 0; d < f->rank; d++) {
        o->perm[d] = d;
    }
    while (f->n_dead + 2 < DEAD_MAX) {
        nori__node *n = maker(f, o->value, NORI__OP_ONNX_Transpose);
        const int64_t *perm = permutation(n, f->rank);
        nori__value *inner = NULL;
        if (perm && bury(f, n)) {
            for (int d = 0; d < f->rank; d++) {
                o->perm[d] = perm[o->perm[d]];
            }
            inner = n->inputs[0];
        } else if (scaled) {
            inner = multiple(f, o->value, &f->scale);
        }
        if (!inner) {
            return;
        }
        o->value = inner;
    }
}

/* The product of scores behind v, with its scale; NULL: none. */
static nori__node *scores(finding *f, nori__value *v)
{
    nori__value *inner = v;
    while (inner && f->n_dead + 2 < DEAD_MAX) {
        nori__node *n = maker(f, inner, NORI__OP_ONNX_MatMul);
        if (n) {
            return bury(f, n) ? n : NULL;
        }
        inner = multiple(f, inner, &f->scale);
    }
    return NULL;
}

static bool fits(const finding *f, const nori__value *v)
{
    return is_f32(v) && v->type.rank == f->rank && !v->constant &&
           !(v->flags & NORI__VALUE_HINTED);
}

/* The only reader of n's output, if that is a transposition that keeps the last axis last. Readers
 * stand behind: looked for among the nodes that follow. */
static nori__node *turned(const finding *f, const nori__node *n, const int64_t **perm)
{
    const nori__value *v = n->outputs[0];
    if (v->uses != 1 || (v->flags & NORI__VALUE_OUTPUT)) {
        return NULL;
    }
    int steps = 0;
    for (nori__node *next = n->next; next && steps < 64; next = next->next, steps++) {
        if (nori__node_is(next, NORI__OP_ONNX_Transpose) && next->input_count == 1 &&
            next->inputs[0] == v) {
            *perm = permutation(next, f->rank);
            return *perm && (*perm)[f->rank - 1] == f->rank - 1 ? next : NULL;
        }
    }
    return NULL;
}

static bool last_axis(const nori__node *softmax, int rank)
{
    int64_t axis = nori__attr_i(softmax, "axis", softmax->version < 13 ? 1 : -1);
    return axis == -1 || axis == rank - 1;
}

/* n: the product by V. *joined: what stands in its place, or NULL. */
static nori_status attend(nori__node *n, nori__node **joined)
{
    finding f = {.g = n->graph, .scale = 1};
    f.rank = n->inputs[1] ? n->inputs[1]->type.rank : -1;
    nori__node *softmax = maker(&f, n->inputs[0], NORI__OP_ONNX_Softmax);
    if (!softmax || f.rank < 3 || f.rank > 5 || !last_axis(softmax, f.rank) ||
        !fits(&f, n->inputs[1])) {
        return NORI_OK;
    }
    bury(&f, softmax);
    nori__value *mask = NULL;
    nori__node *add = maker(&f, softmax->inputs[0], NORI__OP_ONNX_Add), *product = NULL;
    if (add && add->input_count == 2 && add->inputs[0] != add->inputs[1]) {
        for (uint32_t side = 0; !product && side < 2; side++) {
            f.n_dead = 1;
            f.scale = 1;
            bury(&f, add);
            mask = add->inputs[1 - side];
            product = scores(&f, add->inputs[side]);
        }
        if (!is_f32(mask) || mask->type.rank < 0 || mask->type.rank > f.rank) {
            return NORI_OK;
        }
    } else {
        product = scores(&f, softmax->inputs[0]);
    }
    if (!product || product->input_count != 2 || !fits(&f, product->inputs[0]) ||
        !fits(&f, product->inputs[1])) {
        return NORI_OK;
    }
    operand q, k, v;
    strip(&f, product->inputs[0], true, &q);
    strip(&f, product->inputs[1], true, &k);
    strip(&f, n->inputs[1], false, &v);
    const int64_t *perm = NULL;
    nori__node *last = turned(&f, n, &perm);
    nori__value *in[4] = {q.value, k.value, v.value, mask};
    nori__node *made = nori__node_new(n->graph, n, "nori", "Attend", in, mask ? 4 : 3,
                                      last ? last->outputs : n->outputs, 1);
    size_t r = (size_t)f.rank;
    if (!made || !nori__node_set_ints(made, "perm_q", q.perm, r) ||
        !nori__node_set_ints(made, "perm_k", k.perm, r) ||
        !nori__node_set_ints(made, "perm_v", v.perm, r) ||
        (last && !nori__node_set_ints(made, "perm", perm, r)) ||
        !nori__node_set_float(made, "scale", f.scale)) {
        return NORI_ERROR_MEMORY;
    }
    made->name = n->name;
    made->op = nori__joined_op(NORI__JOINED_ATTEND);
    made->version = 1;
    *joined = made;
    if (last) {
        nori__node_remove(last);
    }
    nori__node_remove(n);
    for (size_t i = 0; i < f.n_dead; i++) {
        nori__node_remove(f.dead[i]);
    }
    return NORI_OK;
}

nori_status nori__cpu_fuse_attention(nori__ir *ir, nori_error *err)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first, *next; n; n = next) {
            next = n->next;
            if (!nori__node_is(n, NORI__OP_ONNX_MatMul) || n->input_count != 2 ||
                n->output_count != 1 || !n->outputs[0] || !is_f32(n->outputs[0])) {
                continue;
            }
            nori__node *joined = NULL;
            if (attend(n, &joined) != NORI_OK) {
                return nori__no_memory(err);
            }
            next = joined ? joined->next : next; /* a transposition taken in may have been next */
        }
    }
    return NORI_OK;
}
