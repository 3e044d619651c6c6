/* fuse_products.c: MatMul by a constant matrix takes in what follows it: a bias a column, a residual,
 * an activation. Float32 only, only where nobody else reads what lies in between. Looked for from the
 * last node backwards, along producers, so that what was joined grows on. */
#include "providers/cpu/joined.h"

static bool is_f32(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && v->type.elem == NORI_FLOAT;
}

/* The product that makes v, if nobody else reads v and it has no activation yet; else NULL. */
static nori__node *product_of(const nori__value *v, const nori__graph *g)
{
    nori__node *n = v && v->uses == 1 && !(v->flags & NORI__VALUE_OUTPUT) ? v->producer : NULL;
    if (!n || n->graph != g || n->input_count < 2 || !is_f32(n->inputs[0]) || !is_f32(v) ||
        n->inputs[0]->type.rank < 2) {
        return NULL;
    }
    if (nori__joined_is(n, NORI__JOINED_PRODUCT)) {
        return nori__attr_find(n, "activation") ? NULL : n;
    }
    const nori_tensor *w = nori__value_as_is(n->inputs[1]);
    bool fits = w && w->type == NORI_FLOAT && w->rank == 2 && w->count > 0;
    return fits && nori__node_is(n, NORI__OP_ONNX_MatMul) ? n : NULL;
}

/* A constant with one value for each column of the product, no larger than its result in rank. */
static bool is_bias(const nori__value *v, const nori__node *product)
{
    const nori_tensor *t = nori__value_as_is(v), *w = nori__value_as_is(product->inputs[1]);
    return t && t->type == NORI_FLOAT && t->rank > 0 && t->rank <= product->inputs[0]->type.rank &&
           t->count == w->dims[1] && t->dims[t->rank - 1] == w->dims[1];
}

static bool same_shape(const nori__value *a, const nori__value *b)
{
    bool same = a->type.rank >= 0 && a->type.rank == b->type.rank;
    for (int d = 0; same && d < a->type.rank; d++) {
        same = nori__dim_same(a->type.dims[d], b->type.dims[d]);
    }
    return same;
}

/* Puts product, with other inputs, in the place of last. */
static nori__node *grow(nori__node *product, nori__node *last, nori__value *bias, nori__value *sum)
{
    nori__value *in[4] = {product->inputs[0], product->inputs[1], bias, sum};
    size_t n_in = sum ? 4 : bias ? 3 : 2;
    nori__node *made = nori__node_new(last->graph, last, "nori", "Product", in, n_in, last->outputs, 1);
    if (made) {
        made->name = product->name;
        made->op = nori__joined_op(NORI__JOINED_PRODUCT);
        made->version = 1;
        nori__node_remove(last);
        nori__node_remove(product);
    }
    return made;
}

/* A bias, or else a residual. */
static nori_status take_sum(nori__node *n)
{
    for (uint32_t side = 0; side < 2; side++) {
        nori__node *p = product_of(n->inputs[side], n->graph);
        nori__value *other = n->inputs[1 - side];
        if (!p || other == n->inputs[side]) {
            continue;
        }
        nori__value *bias = nori__cpu_value(p, 2) ? p->inputs[2] : NULL;
        bool has_sum = nori__cpu_value(p, 3) != NULL;
        if (!bias && !has_sum && is_bias(other, p)) {
            return grow(p, n, other, NULL) ? NORI_OK : NORI_ERROR_MEMORY;
        }
        if (!has_sum && is_f32(other) && !nori__value_as_is(other) &&
            same_shape(p->outputs[0], other) && same_shape(p->outputs[0], n->outputs[0])) {
            return grow(p, n, bias, other) ? NORI_OK : NORI_ERROR_MEMORY;
        }
    }
    return NORI_OK;
}

static const char *activation_of(const nori__node *n, float *p, size_t *n_p)
{
    *n_p = 0;
    if (nori__node_is(n, NORI__OP_ONNX_Gelu)) {
        return nori__same(nori__attr_s(n, "approximate", "none"), "tanh") ? "GeluTanh" : "Gelu";
    }
    if (nori__node_is(n, NORI__OP_MS_FastGelu)) {
        return nori__cpu_value(n, 1) ? NULL : "GeluTanh";
    }
    return nori__activation_of(n, p, n_p);
}

static nori_status take_activation(nori__node *n)
{
    float p[2];
    size_t n_p;
    const char *name = activation_of(n, p, &n_p);
    nori__node *product = name ? product_of(n->inputs[0], n->graph) : NULL;
    /* Alone a product is better off as MatMul: other rewrites know it. */
    if (!product || !nori__joined_is(product, NORI__JOINED_PRODUCT)) {
        return NORI_OK;
    }
    nori__node *made = grow(product, n, nori__cpu_value(product, 2) ? product->inputs[2] : NULL,
                            nori__cpu_value(product, 3) ? product->inputs[3] : NULL);
    return made && nori__node_set_text(made, "activation", name) &&
                   (n_p == 0 || nori__node_set_floats(made, "activation_params", p, n_p))
               ? NORI_OK
               : NORI_ERROR_MEMORY;
}

nori_status nori__cpu_fuse_products(nori__ir *ir, nori_error *err)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first, *next; n; n = next) {
            next = n->next;
            if (n->input_count < 1 || n->output_count != 1 || !n->inputs[0] || !n->outputs[0] ||
                !is_f32(n->outputs[0])) {
                continue;
            }
            bool add = nori__node_is(n, NORI__OP_ONNX_Add) && n->input_count == 2 && n->inputs[1];
            if ((add ? take_sum(n) : take_activation(n)) != NORI_OK) {
                return nori__no_memory(err);
            }
        }
    }
    return NORI_OK;
}
