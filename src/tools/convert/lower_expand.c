/* lower_expand.c: operators that an operator set does not have yet, written in those it has.
 *
 * What is put in stands in its newest form, and goes down with all other nodes afterwards (lower.c): an
 * operator here may come later than the operator set wanted. Formulas are those of ONNX's definitions;
 * a variance is the mean of squared differences. Nodes that say too little stay, and block. */
#include <stdio.h>

#include "ops/schema.h"
#include "ops/upgrade.h"
#include "tools/convert/lower.h"

/* One node on its way to several. */
typedef struct expansion {
    nori__node *n;
    nori__node *last; /* what was put in last; NULL after a failure */
    unsigned made;
    bool failed; /* no memory */
} expansion;

/* ---- putting nodes in ---- */

static nori__value *put(expansion *e, const char *op, nori__value *a, nori__value *b)
{
    nori__graph *g = e->n->graph;
    nori__value *in[2] = {a, b}, *out = a && !e->failed ? nori__value_new(g, NULL) : NULL;
    e->last = out ? nori__node_new(g, e->n, "", op, in, b ? 2 : 1, &out, 1) : NULL;
    if (!e->last) {
        e->failed = true;
        return NULL;
    }
    if (e->n->name) { /* what it stands for is in what a report names; names are to be unique */
        char text[512];
        int size = snprintf(text, sizeof(text), "%.400s/%s_%u", e->n->name, op, e->made++);
        e->last->name = nori__ir_text(g->ir, text, (size_t)size);
        e->failed = e->failed || !e->last->name;
    }
    nori__node_resolve_at(e->last, NORI__OPSET_MAX_ONNX);
    return out;
}

/* A number, or a list of them, of an element type. */
static nori__value *numbers(expansion *e, nori_type type, const double *v, int64_t count)
{
    nori_tensor *t = NULL;
    nori__ir *ir = e->n->graph->ir;
    if (e->failed || nori__tensor_new(ir->allocator, type, count >= 0 ? 1 : 0, &count, &t, NULL) !=
                         NORI_OK) {
        e->failed = true;
        return NULL;
    }
    for (int64_t i = 0; i < t->count; i++) {
        nori__tensor_set_f64(t, i, v[i]);
    }
    nori__value *made = nori__const_new(ir->main, NULL, t);
    e->failed = !made;
    return made;
}

static nori__value *number(expansion *e, nori_type type, double v)
{
    return numbers(e, type, &v, -1);
}

static void set_float(expansion *e, const char *attr, float v)
{
    e->failed = e->failed || !nori__node_set_float(e->last, attr, v);
}

static nori__value *cast(expansion *e, nori__value *v, nori_type type)
{
    if (v && v->type.elem == type) {
        return v;
    }
    nori__value *to = put(e, "Cast", v, NULL);
    e->failed = e->failed || !nori__node_set_int(e->last, "to", type);
    if (to) {
        to->type.kind = NORI_KIND_TENSOR;
        to->type.elem = (uint8_t)type;
    }
    return to;
}

static nori__value *mean(expansion *e, nori__value *v, const double *axes, int64_t count)
{
    return put(e, "ReduceMean", v, numbers(e, NORI_INT64, axes, count));
}

/* The last node makes output i. */
static void finish(expansion *e, uint32_t i, nori__value *v)
{
    nori__value *to = i < e->n->output_count ? e->n->outputs[i] : NULL;
    if (e->failed || !to) {
        return;
    }
    nori__node *maker = v->producer;
    if (v->uses > 0 || maker == e->n) { /* read by others as well */
        put(e, "Identity", v, NULL);
        maker = e->last;
    }
    if (!e->failed) {
        maker->outputs[0] = to;
        to->producer = maker;
    }
}

/* ---- functions of each element ---- */

static bool gelu(expansion *e, nori__value *x, nori_type t)
{
    bool tanh_form = nori__same(nori__attr_s(e->n, "approximate", "none"), "tanh");
    nori__value *in;
    if (tanh_form) {
        nori__value *cube = put(e, "Mul", put(e, "Mul", x, x), x);
        nori__value *sum = put(e, "Add", x, put(e, "Mul", cube, number(e, t, 0.044715)));
        in = put(e, "Tanh", put(e, "Mul", sum, number(e, t, 0.79788456080286535588)), NULL);
    } else {
        in = put(e, "Erf", put(e, "Mul", x, number(e, t, 0.70710678118654752440)), NULL);
    }
    nori__value *half = put(e, "Mul", x, number(e, t, 0.5));
    finish(e, 0, put(e, "Mul", half, put(e, "Add", in, number(e, t, 1))));
    return true;
}

static bool hard_swish(expansion *e, nori__value *x, nori_type t)
{
    if (t == NORI_DOUBLE) { /* an attribute has no double for a sixth */
        nori__value *sixth = put(e, "Div", x, number(e, t, 6));
        nori__value *most = put(e, "Max", put(e, "Add", sixth, number(e, t, 0.5)), number(e, t, 0));
        finish(e, 0, put(e, "Mul", x, put(e, "Min", most, number(e, t, 1))));
        return true;
    }
    nori__value *gate = put(e, "HardSigmoid", x, NULL);
    set_float(e, "alpha", 1.0f / 6);
    set_float(e, "beta", 0.5f);
    finish(e, 0, put(e, "Mul", x, gate));
    return true;
}

static bool mish(expansion *e, nori__value *x, nori_type t)
{
    (void)t;
    finish(e, 0, put(e, "Mul", x, put(e, "Tanh", put(e, "Softplus", x, NULL), NULL)));
    return true;
}

static bool swish(expansion *e, nori__value *x, nori_type t)
{
    float alpha = nori__attr_f(e->n, "alpha", 1);
    nori__value *in = alpha == 1 ? x : put(e, "Mul", x, number(e, t, (double)alpha));
    finish(e, 0, put(e, "Mul", x, put(e, "Sigmoid", in, NULL)));
    return true;
}

static bool celu(expansion *e, nori__value *x, nori_type t)
{
    double alpha = (double)nori__attr_f(e->n, "alpha", 1);
    nori__value *in = put(e, "Div", x, number(e, t, alpha));
    finish(e, 0, put(e, "Mul", put(e, "Elu", in, NULL), number(e, t, alpha)));
    return true;
}

/* Not "not less": a NaN is neither. */
static bool at_least(expansion *e, const char *strictly)
{
    nori__value *a = e->n->inputs[0], *b = e->n->input_count > 1 ? e->n->inputs[1] : NULL;
    if (!b) {
        return false;
    }
    nori__value *one = put(e, strictly, a, b), *other = put(e, "Equal", a, b);
    finish(e, 0, put(e, "Or", one, other));
    return true;
}

static bool greater_or_equal(expansion *e, nori__value *x, nori_type t)
{
    (void)x;
    (void)t;
    return at_least(e, "Greater");
}

static bool less_or_equal(expansion *e, nori__value *x, nori_type t)
{
    (void)x;
    (void)t;
    return at_least(e, "Less");
}

static bool cast_like(expansion *e, nori__value *x, nori_type t)
{
    (void)t;
    const nori__value *like = e->n->input_count > 1 ? e->n->inputs[1] : NULL;
    if (!like || like->type.kind != NORI_KIND_TENSOR || like->type.elem == NORI_UNDEFINED) {
        return false;
    }
    nori__value *to = put(e, "Cast", x, NULL);
    e->failed = e->failed || !nori__node_set_int(e->last, "to", like->type.elem);
    finish(e, 0, to);
    return true;
}

/* ---- norms ---- */

/* The type a norm computes in, by stash_type; the axes it goes over, from the attribute on. */
static int64_t norm_axes(const expansion *e, int rank, double *axes)
{
    int64_t axis = nori__attr_i(e->n, "axis", -1), count = 0;
    if (axis >= 0 && rank < 0) {
        return 0;
    }
    for (int64_t i = axis < 0 ? axis : axis - rank; i < 0 && count < NORI_MAX_RANK; i++) {
        axes[count++] = (double)i;
    }
    return count;
}

/* value * scale + bias, where the value has one type and the output another. */
static void scale_out(expansion *e, nori__value *v, nori_type from, nori_type to)
{
    nori__value *out = put(e, "Mul", from == to ? v : cast(e, v, to), e->n->inputs[1]);
    if (e->n->input_count > 2 && e->n->inputs[2]) {
        out = put(e, "Add", out, e->n->inputs[2]);
    }
    finish(e, 0, out);
}

static bool layer_norm(expansion *e, nori__value *x, nori_type t)
{
    double axes[NORI_MAX_RANK];
    nori_type in = (nori_type)nori__attr_i(e->n, "stash_type", NORI_FLOAT);
    int64_t count = norm_axes(e, x->type.rank, axes);
    if (count == 0 || e->n->input_count < 2 || (t == NORI_DOUBLE && in == NORI_FLOAT)) {
        return false; /* narrowed on purpose: nobody means that, and nobody does it */
    }
    nori__value *wide = cast(e, x, in), *middle = mean(e, wide, axes, count);
    nori__value *off = put(e, "Sub", wide, middle);
    nori__value *variance = mean(e, put(e, "Mul", off, off), axes, count);
    double epsilon = (double)nori__attr_f(e->n, "epsilon", 1e-5f);
    nori__value *deviation =
        put(e, "Sqrt", put(e, "Add", variance, number(e, in, epsilon)), NULL);
    scale_out(e, put(e, "Div", off, deviation), in, t);
    finish(e, 1, middle);
    if (e->n->output_count > 2 && e->n->outputs[2]) {
        finish(e, 2, put(e, "Reciprocal", deviation, NULL));
    }
    return true;
}

static bool rms_norm(expansion *e, nori__value *x, nori_type t)
{
    double axes[NORI_MAX_RANK];
    nori_type in = (nori_type)nori__attr_i(e->n, "stash_type", NORI_FLOAT);
    int64_t count = norm_axes(e, x->type.rank, axes);
    if (count == 0 || e->n->input_count < 2 || !e->n->inputs[1] || (t == NORI_DOUBLE && in == NORI_FLOAT)) {
        return false;
    }
    nori_type out = (nori_type)e->n->inputs[1]->type.elem; /* that of the scale, which need not be x's */
    if (out == NORI_UNDEFINED) {
        return false;
    }
    nori__value *wide = cast(e, x, in);
    nori__value *square = mean(e, put(e, "Mul", wide, wide), axes, count);
    double epsilon = (double)nori__attr_f(e->n, "epsilon", 1e-5f);
    nori__value *size = put(e, "Sqrt", put(e, "Add", square, number(e, in, epsilon)), NULL);
    scale_out(e, put(e, "Div", wide, size), in, out);
    return true;
}

/* ---- the table ---- */

static const struct {
    nori__op_id op;
    int came; /* the operator set */
    bool (*run)(expansion *e, nori__value *x, nori_type type); /* false: it cannot be */
} expansions[] = {
    {NORI__OP_ONNX_CastLike, 15, cast_like},
    {NORI__OP_ONNX_Celu, 12, celu},
    {NORI__OP_ONNX_Gelu, 20, gelu},
    {NORI__OP_ONNX_GreaterOrEqual, 12, greater_or_equal},
    {NORI__OP_ONNX_HardSwish, 14, hard_swish},
    {NORI__OP_ONNX_LayerNormalization, 17, layer_norm},
    {NORI__OP_ONNX_LessOrEqual, 12, less_or_equal},
    {NORI__OP_ONNX_Mish, 18, mish},
    {NORI__OP_ONNX_RMSNormalization, 23, rms_norm},
    {NORI__OP_ONNX_Swish, 24, swish},
};

static nori_status expand(nori__lowering *l, nori__node *n,
                          bool (*run)(expansion *, nori__value *, nori_type))
{
    nori__value *x = n->input_count > 0 ? n->inputs[0] : NULL;
    expansion e = {.n = n};
    if (!x || x->type.kind != NORI_KIND_TENSOR || x->type.elem == NORI_UNDEFINED ||
        n->output_count == 0 || !n->outputs[0] || !run(&e, x, (nori_type)x->type.elem)) {
        return NORI_OK;
    }
    if (e.failed) {
        return nori__no_memory(l->err);
    }
    n->outputs[0]->producer->name = n->name;
    nori__node_remove(n);
    l->rewritten++;
    return NORI_OK;
}

nori_status nori__lower_expand(nori__lowering *l)
{
    for (nori__graph *g = l->ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first, *next; n; n = next) {
            next = n->next;
            for (size_t i = 0; i < NORI__COUNT(expansions); i++) {
                /* A form that only runtimes know has the number of no operator set. */
                if (l->opset < expansions[i].came && n->version >= expansions[i].came &&
                    nori__node_is(n, expansions[i].op)) {
                    NORI__TRY(expand(l, n, expansions[i].run));
                    break;
                }
            }
        }
    }
    return NORI_OK;
}
