/* fuse_patterns.c: activations and normalizations that exporters wrote out in several nodes become
 * one operator: Swish, HardSwish, Gelu, LayerNormalization. Float32 only.
 *
 * Patterns are looked for from their last node backwards, along producers. What lies in between
 * must have no other reader, or the work would be done twice. */
#include "providers/cpu/cpu.h"
#include "ops/resolve.h"

#include <math.h>

static bool is_f32(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && v->type.elem == NORI_FLOAT;
}

/* The one float of a constant of one element. */
static bool scalar(const nori__value *v, double *out)
{
    const nori_tensor *t = nori__value_const(v);
    if (!t || t->kind != NORI_KIND_TENSOR || t->type != NORI_FLOAT || t->count != 1 ||
        t->rank > 1) {
        return false;
    }
    *out = *(const float *)t->data;
    return true;
}

static bool is_scalar(const nori__value *v, double want)
{
    double got;
    return scalar(v, &got) && fabs(got - want) <= 1e-4 * fabs(want);
}

/* The node that makes v, if it is this operator and nobody else reads v. */
static nori__node *maker(const nori__value *v, nori__op_id op, const nori__graph *g)
{
    nori__node *n = v && v->uses == 1 && !(v->flags & NORI__VALUE_OUTPUT) ? v->producer : NULL;
    return n && n->graph == g && nori__node_is(n, op) && n->input_count > 0 && n->inputs[0] ? n
                                                                                            : NULL;
}

/* Of a node with two inputs: the other than the one that is a scalar near want; else NULL. */
static nori__value *beside(const nori__node *n, double want)
{
    if (!n || n->input_count != 2) {
        return NULL;
    }
    return is_scalar(n->inputs[1], want) ? n->inputs[0]
           : is_scalar(n->inputs[0], want) ? n->inputs[1]
                                           : NULL;
}

/* Puts operator op with inputs in in the place of node, and removes node and the dead nodes. */
static nori__node *replace(nori__node *node, const char *op, nori__value *const *in, size_t n_in,
                           nori__node *const *dead, size_t n_dead)
{
    nori__node *made =
        nori__node_new(node->graph, node, "", op, in, n_in, node->outputs, 1);
    if (made) {
        made->name = node->name;
        nori__node_resolve_at(made, INT32_MAX); /* the newest form */
        nori__node_remove(node);
        for (size_t i = 0; i < n_dead; i++) {
            nori__node_remove(dead[i]);
        }
    }
    return made;
}

/* ---- x * sigmoid(x), x * hardsigmoid(x) ---- */

/* Clip between 0 and 6. */
static nori__node *relu6(nori__value *v, const nori__graph *g)
{
    nori__node *n = maker(v, NORI__OP_ONNX_Clip, g);
    double low, high;
    return n && n->input_count >= 3 && scalar(n->inputs[1], &low) && low == 0 &&
                   scalar(n->inputs[2], &high) && high == 6
               ? n
               : NULL;
}

/* Clip(x + 3, 0, 6); gives x and the nodes. */
static nori__value *six_gate(nori__value *v, const nori__graph *g, nori__node **dead)
{
    dead[0] = relu6(v, g);
    dead[1] = dead[0] ? maker(dead[0]->inputs[0], NORI__OP_ONNX_Add, g) : NULL;
    return dead[1] ? beside(dead[1], 3) : NULL;
}

static bool gated(nori__node *n, nori_status *status)
{
    for (int side = 0; side < 2; side++) {
        nori__value *x = n->inputs[side], *gate = n->inputs[1 - side];
        nori__node *dead[3] = {maker(gate, NORI__OP_ONNX_Sigmoid, n->graph), NULL, NULL};
        if (dead[0] && dead[0]->inputs[0] == x && is_f32(x)) {
            *status = replace(n, "Swish", &x, 1, dead, 1) ? NORI_OK : NORI_ERROR_MEMORY;
            return true;
        }
        dead[0] = maker(gate, NORI__OP_ONNX_HardSigmoid, n->graph);
        if (dead[0] && dead[0]->inputs[0] == x && is_f32(x) &&
            fabsf(nori__attr_f(dead[0], "alpha", 0.2f) - 1.0f / 6) < 1e-6f &&
            nori__attr_f(dead[0], "beta", 0.5f) == 0.5f) {
            *status = replace(n, "HardSwish", &x, 1, dead, 1) ? NORI_OK : NORI_ERROR_MEMORY;
            return true;
        }
        dead[0] = maker(gate, NORI__OP_ONNX_Div, n->graph);
        if (dead[0] && dead[0]->input_count == 2 && is_scalar(dead[0]->inputs[1], 6) &&
            six_gate(dead[0]->inputs[0], n->graph, dead + 1) == x && is_f32(x)) {
            *status = replace(n, "HardSwish", &x, 1, dead, 3) ? NORI_OK : NORI_ERROR_MEMORY;
            return true;
        }
    }
    return false;
}

/* x * Clip(x + 3, 0, 6) / 6 */
static bool gated_six(nori__node *n, nori_status *status)
{
    nori__node *mul = is_scalar(n->inputs[1], 6) ? maker(n->inputs[0], NORI__OP_ONNX_Mul, n->graph)
                                                 : NULL;
    for (int side = 0; mul && side < 2; side++) {
        nori__value *x = mul->inputs[side];
        nori__node *dead[3] = {mul, NULL, NULL};
        if (six_gate(mul->inputs[1 - side], n->graph, dead + 1) == x && is_f32(x)) {
            *status = replace(n, "HardSwish", &x, 1, dead, 3) ? NORI_OK : NORI_ERROR_MEMORY;
            return true;
        }
    }
    return false;
}

/* ---- 0.5 * x * (1 + erf(x / sqrt 2)), multiplied in any order; the same by tanh ---- */

static nori__value *erf_gate(nori__value *v, const nori__graph *g, nori__node **dead)
{
    dead[0] = maker(v, NORI__OP_ONNX_Add, g);
    nori__value *inner = beside(dead[0], 1);
    dead[1] = maker(inner, NORI__OP_ONNX_Erf, g);
    inner = dead[1] ? dead[1]->inputs[0] : NULL;
    dead[2] = maker(inner, NORI__OP_ONNX_Div, g);
    if (dead[2] && is_scalar(dead[2]->inputs[1], 1.4142135)) {
        return dead[2]->inputs[0];
    }
    dead[2] = maker(inner, NORI__OP_ONNX_Mul, g);
    return beside(dead[2], 0.70710678);
}

/* x^3, as a power or as products; *n_dead grows by its nodes. */
static nori__value *cubed(nori__value *v, const nori__graph *g, nori__node **dead, size_t *n_dead)
{
    nori__node *n = maker(v, NORI__OP_ONNX_Pow, g);
    if (n) {
        dead[(*n_dead)++] = n;
        return n->input_count == 2 && is_scalar(n->inputs[1], 3) ? n->inputs[0] : NULL;
    }
    n = maker(v, NORI__OP_ONNX_Mul, g);
    for (int side = 0; n && n->input_count == 2 && side < 2; side++) {
        nori__value *x = n->inputs[side];
        nori__node *square = maker(n->inputs[1 - side], NORI__OP_ONNX_Mul, g);
        if (square && square->input_count == 2 && square->inputs[0] == x &&
            square->inputs[1] == x) {
            dead[(*n_dead)++] = n;
            dead[(*n_dead)++] = square;
            return x;
        }
    }
    return NULL;
}

/* ((0.044715 x) x) x, as v is made of x. */
static bool cubed_in_turn(nori__value *v, const nori__value *x, const nori__graph *g,
                          nori__node **dead)
{
    for (int i = 0; i < 2; i++) {
        dead[i] = maker(v, NORI__OP_ONNX_Mul, g);
        if (!dead[i] || dead[i]->input_count != 2 ||
            (dead[i]->inputs[0] != x && dead[i]->inputs[1] != x)) {
            return false;
        }
        v = dead[i]->inputs[dead[i]->inputs[0] == x];
    }
    dead[2] = maker(v, NORI__OP_ONNX_Mul, g);
    return beside(dead[2], 0.044715) == x;
}

/* 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)) */
static nori__value *tanh_gate(nori__value *v, const nori__graph *g, nori__node **dead,
                              size_t *n_dead)
{
    dead[0] = maker(v, NORI__OP_ONNX_Add, g);
    dead[1] = maker(beside(dead[0], 1), NORI__OP_ONNX_Tanh, g);
    dead[2] = dead[1] ? maker(dead[1]->inputs[0], NORI__OP_ONNX_Mul, g) : NULL;
    dead[3] = maker(beside(dead[2], 0.79788456), NORI__OP_ONNX_Add, g);
    for (int side = 0; dead[3] && dead[3]->input_count == 2 && side < 2; side++) {
        *n_dead = 5;
        dead[4] = maker(dead[3]->inputs[side], NORI__OP_ONNX_Mul, g);
        nori__value *x = cubed(beside(dead[4], 0.044715), g, dead, n_dead);
        if (x && x == dead[3]->inputs[1 - side]) {
            return x;
        }
        x = dead[3]->inputs[1 - side];
        if (x && cubed_in_turn(dead[3]->inputs[side], x, g, dead + 4)) {
            *n_dead = 7;
            return x;
        }
    }
    return NULL;
}

static bool gelu(nori__node *n, nori_status *status)
{
    for (int side = 0; side < 2; side++) {
        nori__node *mul = maker(n->inputs[side], NORI__OP_ONNX_Mul, n->graph);
        if (!mul || mul->input_count != 2) {
            continue;
        }
        nori__value *f[3] = {n->inputs[1 - side], mul->inputs[0], mul->inputs[1]};
        for (int gate = 0; gate < 3; gate++) {
            nori__node *dead[8] = {mul};
            size_t n_dead = 3;
            nori__value *x = erf_gate(f[gate], n->graph, dead + 1);
            bool by_tanh = !x;
            x = by_tanh ? tanh_gate(f[gate], n->graph, dead + 1, &n_dead) : x;
            nori__value *a = f[(gate + 1) % 3], *b = f[(gate + 2) % 3];
            if (x && is_f32(x) && ((a == x && is_scalar(b, 0.5)) || (b == x && is_scalar(a, 0.5)))) {
                nori__node *made = replace(n, "Gelu", &x, 1, dead, n_dead + 1);
                bool made_all = made && (!by_tanh || nori__node_set_text(made, "approximate", "tanh"));
                *status = made_all ? NORI_OK : NORI_ERROR_MEMORY;
                return true;
            }
        }
    }
    return false;
}

/* ---- (x - mean) / sqrt(mean of squares + epsilon) * scale + bias, over the last axis ---- */

/* The mean over the last axis, kept; gives what it is of. */
static nori__value *last_mean(const nori__node *n)
{
    size_t count = 0;
    const int64_t *axes = n ? nori__attr_ints(n, "axes", &count) : NULL;
    const nori_tensor *t = n ? nori__value_const(nori__cpu_value(n, 1)) : NULL;
    if (!n || !n->inputs[0] || nori__attr_i(n, "keepdims", 1) != 1) {
        return NULL;
    }
    if (t && t->type == NORI_INT64) {
        axes = t->data;
        count = (size_t)t->count;
    }
    int rank = n->inputs[0]->type.rank;
    bool last = axes && count == 1 && rank > 0 && (axes[0] == -1 || axes[0] == rank - 1);
    return last ? n->inputs[0] : NULL;
}

/* x of x - mean(x); counts what it has found into dead. */
static nori__value *centred(const nori__value *v, const nori__graph *g, nori__node **sub,
                            nori__node **mean)
{
    nori__node *n = v ? v->producer : NULL;
    if (!n || n->graph != g || !nori__node_is(n, NORI__OP_ONNX_Sub) || n->input_count != 2 ||
        !n->inputs[1] || (v->flags & NORI__VALUE_OUTPUT)) {
        return NULL;
    }
    nori__node *m = n->inputs[1]->producer;
    if (!m || m->graph != g || !nori__node_is(m, NORI__OP_ONNX_ReduceMean) ||
        last_mean(m) != n->inputs[0]) {
        return NULL;
    }
    *sub = n;
    *mean = m;
    return n->inputs[0];
}

/* A constant of one value for each element of the last axis of x. */
static bool per_column(const nori__value *v, const nori__value *x)
{
    const nori_tensor *t = nori__value_const(v);
    int rank = x->type.rank;
    return t && t->type == NORI_FLOAT && t->rank == 1 && rank > 0 &&
           x->type.dims[rank - 1].value == t->count;
}

static bool layer_norm(nori__node *n, nori_status *status)
{
    const nori__graph *g = n->graph;
    for (int side = 0; side < 2; side++) {
        nori__value *bias = n->inputs[side];
        nori__node *scaled = maker(n->inputs[1 - side], NORI__OP_ONNX_Mul, g);
        for (int other = 0; scaled && other < 2; other++) {
            nori__value *scale = scaled->inputs[other];
            nori__node *div = maker(scaled->inputs[1 - other], NORI__OP_ONNX_Div, g);
            nori__node *root = div ? maker(div->inputs[1], NORI__OP_ONNX_Sqrt, g) : NULL;
            nori__node *plus = root ? maker(root->inputs[0], NORI__OP_ONNX_Add, g) : NULL;
            double epsilon = 0;
            bool ok = plus && plus->input_count == 2 && scalar(plus->inputs[1], &epsilon);
            nori__node *mean = ok ? maker(plus->inputs[0], NORI__OP_ONNX_ReduceMean, g) : NULL;
            nori__node *pow = mean && last_mean(mean)
                                  ? maker(mean->inputs[0], NORI__OP_ONNX_Pow, g) : NULL;
            nori__node *sub[2], *means[2];
            nori__value *x = pow && is_scalar(pow->inputs[1], 2)
                                 ? centred(pow->inputs[0], g, &sub[0], &means[0]) : NULL;
            if (!x || centred(div->inputs[0], g, &sub[1], &means[1]) != x || !is_f32(x) ||
                !per_column(scale, x) || !per_column(bias, x)) {
                continue;
            }
            /* The differences have readers of their own only inside the pattern. */
            bool shared = sub[0] == sub[1];
            if (sub[0]->outputs[0]->uses != (shared ? 2u : 1u) ||
                (!shared && sub[1]->outputs[0]->uses != 1)) {
                continue;
            }
            nori__value *in[3] = {x, scale, bias};
            nori__node *dead[7] = {scaled, div, root, plus, mean, pow, sub[0]};
            nori__node *made = replace(n, "LayerNormalization", in, 3, dead, 7);
            if (made && !shared) {
                nori__node_remove(sub[1]);
            }
            for (int i = 0; made && i < (means[0] == means[1] ? 1 : 2); i++) {
                if (means[i]->outputs[0]->uses == 0) {
                    nori__node_remove(means[i]);
                }
            }
            *status = made && nori__node_set_float(made, "epsilon", (float)epsilon) &&
                              nori__node_set_int(made, "axis", -1)
                          ? NORI_OK
                          : NORI_ERROR_MEMORY;
            return true;
        }
    }
    return false;
}

/* ---- the walk ---- */

nori_status nori__cpu_fuse_patterns(nori__ir *ir, nori_error *err)
{
    /* Every pattern has one of these in it. */
    if (!NORI__IR_HAS(ir, NORI__OP_ONNX_Sigmoid, NORI__OP_ONNX_HardSigmoid, NORI__OP_ONNX_Div,
                      NORI__OP_ONNX_Erf, NORI__OP_ONNX_Tanh)) {
        return NORI_OK;
    }
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first, *next; n; n = next) {
            nori_status status = NORI_OK;
            next = n->next; /* patterns lie before n */
            if (n->input_count != 2 || n->output_count != 1 || !n->inputs[0] || !n->inputs[1] ||
                !n->outputs[0] || !is_f32(n->outputs[0])) {
                continue;
            }
            if (nori__node_is(n, NORI__OP_ONNX_Mul)) {
                (void)(gated(n, &status) || gelu(n, &status));
            } else if (nori__node_is(n, NORI__OP_ONNX_Div)) {
                gated_six(n, &status);
            } else if (nori__node_is(n, NORI__OP_ONNX_Add)) {
                layer_norm(n, &status);
            }
            if (status != NORI_OK) {
                return nori__no_memory(err);
            }
        }
    }
    return NORI_OK;
}
