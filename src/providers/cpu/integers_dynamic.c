/* integers_dynamic.c: what stands behind an integer product and makes floats of it:
 *
 *     ConvInteger or MatMulInteger -> Cast -> Mul by the scales -> Add of a bias -> activation
 *
 * becomes one ConvToFloat or MatMulToFloat (integers.h), step by step, each exact. What quantizes the
 * activations in front stays a node: others may read its result, too. */
#include "providers/cpu/integers.h"

static bool is_f32(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && v->type.elem == NORI_FLOAT;
}

static bool is_product(const nori__node *n)
{
    return n && (nori__integer_is(n, NORI__INTEGER_CONV) ||
                 nori__integer_is(n, NORI__INTEGER_MATMUL));
}

/* The elements of v if all axes but `axis` from the end have one element, and that has count; 1 for
 * one element; -1: anything else. */
static int64_t spread(const nori__value *v, int axis, int64_t count)
{
    const nori__type *t = &v->type;
    int64_t all = 1;
    if (t->rank < 0 || (v->flags & NORI__VALUE_HINTED)) {
        return -1;
    }
    for (int d = 0; d < t->rank; d++) {
        if (t->dims[d].value != 1 && (t->rank - 1 - d != axis || t->dims[d].value != count)) {
            return -1;
        }
        all *= t->dims[d].value;
    }
    return all;
}

/* Channels or columns that a product makes, and where they stand from the end; false: not known. */
static bool places(const nori__node *n, bool conv, int64_t *count, int *axis)
{
    const nori__type *w = &n->inputs[1]->type, *y = &n->outputs[0]->type;
    int rank = w->rank;
    if (w->kind != NORI_KIND_TENSOR || rank < (conv ? 3 : 2)) {
        return false;
    }
    *count = w->dims[conv ? 0 : rank - 1].value;
    *axis = conv ? rank - 2 : 0;
    return *count > 0 && y->kind == NORI_KIND_TENSOR && y->rank > *axis;
}

/* Mul of a Cast of an integer product by its scales. */
static nori__node *take_scale(nori__joiner *j, nori__node *n)
{
    for (uint32_t i = 0; i < 2 && n->input_count == 2; i++) {
        nori__node *cast = nori__sole_producer(j, n->inputs[i]);
        nori__node *p = cast && nori__node_is(cast, NORI__OP_ONNX_Cast) && is_f32(n->inputs[i])
                            ? nori__sole_producer(j, cast->inputs[0])
                            : NULL;
        bool conv = p && nori__node_is(p, NORI__OP_ONNX_ConvInteger);
        nori__value *scale = n->inputs[1 - i];
        int64_t count, found;
        int axis;
        if ((!conv && !(p && nori__node_is(p, NORI__OP_ONNX_MatMulInteger))) || !is_f32(scale) ||
            p->input_count < 2 || !p->inputs[0] || !p->inputs[1] ||
            !places(p, conv, &count, &axis) ||
            ((found = spread(scale, axis, count)) != 1 && found != count) ||
            scale->type.rank > p->outputs[0]->type.rank) {
            continue;
        }
        nori__value *in[5] = {p->inputs[0], p->inputs[1], nori__input_of(p, 2),
                              nori__input_of(p, 3), scale};
        const nori__op *op = nori__integer_op(conv ? NORI__INTEGER_CONV : NORI__INTEGER_MATMUL);
        nori__node *made = nori__joiner_node(j, n, "nori", op->name, op, in, 5, n->outputs[0], p);
        if (made) {
            nori__drop(j, n);
        }
        return made;
    }
    return NULL;
}

/* A constant with an element for each place, as a vector. */
static nori__value *as_vector(nori__joiner *j, const nori_tensor *t)
{
    nori_tensor *flat = NULL;
    int64_t count = t->count;
    if (nori__tensor_copy(j->ir->allocator, t, &flat, j->err) != NORI_OK) {
        return NULL;
    }
    (void)nori__tensor_reshape(flat, NORI_FLOAT, 1, &count);
    return nori__joiner_const(j, flat);
}

/* The product p, that makes n's input, makes n's output from now on. */
static nori__node *retire(nori__joiner *j, nori__node *p, nori__node *n)
{
    nori__value *in[6] = {NULL};
    memcpy(in, p->inputs, p->input_count * sizeof(nori__value *));
    nori__node *made =
        nori__joiner_node(j, n, "nori", p->op_type, p->op, in, 6, n->outputs[0], p);
    if (made) {
        nori__drop(j, n);
    }
    return made;
}

/* Add of a bias. */
static nori__node *take_bias(nori__joiner *j, nori__node *n)
{
    for (uint32_t i = 0; i < 2 && n->input_count == 2; i++) {
        nori__node *p = nori__sole_producer(j, n->inputs[i]);
        const nori_tensor *t = nori__value_const(n->inputs[1 - i]);
        int64_t count;
        int axis;
        if (!is_product(p) || !t || t->type != NORI_FLOAT || nori__cpu_value(p, 5) ||
            nori__attr_find(p, "activation") ||
            !places(p, nori__integer_is(p, NORI__INTEGER_CONV), &count, &axis) ||
            t->count != count || t->rank > n->inputs[i]->type.rank ||
            spread(n->inputs[1 - i], axis, count) != count) {
            continue;
        }
        nori__value *bias = as_vector(j, t);
        nori__node *made = bias ? retire(j, p, n) : NULL;
        if (made && !nori__node_set_input(made, 5, bias)) {
            nori__no_memory(j->err);
        }
        return made;
    }
    return NULL;
}

static nori__node *take_activation(nori__joiner *j, nori__node *n)
{
    float p[2];
    size_t n_p;
    nori__node *product = n->input_count > 0 ? nori__sole_producer(j, n->inputs[0]) : NULL;
    const char *name = is_product(product) && !nori__attr_find(product, "activation")
                           ? nori__activation_of(n, p, &n_p)
                           : NULL;
    nori__node *made = name ? retire(j, product, n) : NULL;
    if (made && (!nori__node_set_text(made, "activation", name) ||
                 (n_p > 0 && !nori__node_set_floats(made, "activation_params", p, n_p)))) {
        nori__no_memory(j->err);
    }
    return made;
}

nori__node *nori__join_dynamic(nori__joiner *j, nori__node *n)
{
    if (!n->op || n->output_count != 1 || !n->outputs[0] || !is_f32(n->outputs[0])) {
        return NULL;
    }
    if (nori__node_is(n, NORI__OP_ONNX_Mul)) {
        return take_scale(j, n);
    }
    return nori__node_is(n, NORI__OP_ONNX_Add) ? take_bias(j, n) : take_activation(j, n);
}
