/* graph_noise.c: how far rounding may move what a node gives. Variants of a value other than the
 * first carry noise: a hundred roundings of a sum in another order cannot do more.
 *
 *   behind a node    some units of the last place of its result
 *   before a sum     the same of each summand: what n summands may lose is below n units of sum |x|,
 *                    however small the sum itself is; eight times such noise of n summands is more
 *                    than that up to thousands of summands
 *   of a half type   where numbers become rare near zero, their distance there; beside ONNX Runtime,
 *                    one rounding for each that reads it
 */
#include <math.h>

#include "graphs.h"
#include "ops/op.h"

/* One rounding, times some: what a sum in another order may differ by. */
static double grain(nori_type type)
{
    return type == NORI_FLOAT     ? 6e-7
           : type == NORI_DOUBLE  ? 1e-14
           : type == NORI_FLOAT16 ? 1e-3
                                  : 8e-3;
}

/* The distance of the smallest numbers, which is felt in float16 alone. */
static double smallest(nori_type type)
{
    return type == NORI_FLOAT16 ? 1.0 / 16777216 : 0;
}

static double largest(const nori_tensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < nori_tensor_elements(t); i++) {
        double v = fabs(nori__tensor_get_f64(t, i));
        most = isfinite(v) && v > most ? v : most;
    }
    return most;
}

static bool is_floats(const nori_tensor *t)
{
    return t && nori_tensor_kind(t) == NORI_KIND_TENSOR &&
           nori__type_is_float(nori_tensor_type(t));
}

/* relative to each element, of the largest, and as it is */
static void disturb(nori_tensor **t, double relative, double of_most, double absolute,
                    graphs_rng *r)
{
    nori_tensor *own = NULL; /* it may be an input, passed through */
    if (nori__tensor_copy(&nori__malloc, *t, &own, NULL) != NORI_OK) {
        return;
    }
    nori_tensor_free(*t);
    *t = own;
    double most = largest(own);
    for (int64_t i = 0; i < nori_tensor_elements(own); i++) {
        double v = nori__tensor_get_f64(own, i);
        if (isfinite(v)) {
            nori__tensor_set_f64(own, i,
                                 v + relative * graphs_unit(r) * fabs(v) +
                                     (of_most * most + absolute) * graphs_unit(r));
        }
    }
}

static const nori__op *operator_of(const nori__pb_node *n)
{
    char op[64], domain[32];
    snprintf(op, sizeof(op), "%.*s", (int)n->op_type.n, n->op_type.p ? n->op_type.p : "");
    snprintf(domain, sizeof(domain), "%.*s", (int)n->domain.n, n->domain.p ? n->domain.p : "");
    return nori__op_find(domain, op);
}

static bool is_of(const nori__pb_node *n, const char *const *families, size_t count)
{
    const nori__op *known = operator_of(n);
    for (size_t i = 0; known && i < count; i++) {
        if (strcmp(known->family, families[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool graphs_sums(const nori__pb_node *n)
{
    static const char *const families[] = {"attention", "conv", "gemm", "image",
                                           "loss",      "norm", "pool", "recurrent",
                                           "reduce",    "signal"};
    return is_of(n, families, NORI__COUNT(families));
}

/* Operators that only move elements round nothing. */
static bool rounds(const nori__pb_node *n)
{
    static const char *const families[] = {"move", "shape", "cast"};
    return !operator_of(n) || !is_of(n, families, NORI__COUNT(families));
}

void graphs_move_summands(nori_tensor **t, graphs_rng *r)
{
    if (is_floats(*t)) {
        disturb(t, grain(nori_tensor_type(*t)), 0, 0, r);
    }
}

/* ONNX Runtime computes nodes of half types that it has no kernel for in float32, and leaves out the
 * rounding between two of them: whether such a value is greater than itself is open there. */
bool graphs_read_apart(const nori_tensor *t, const graphs_values *all)
{
    return all->look.coarse && is_floats(t) && nori_type_bits(nori_tensor_type(t)) == 16;
}

/* What ONNX Runtime computes by rational functions, exact to some units of 1 rather than of the
 * result: sigmoid of -13 has two digits then. */
static bool is_curve(const nori__pb_node *n)
{
    static const char *const names[] = {"Sigmoid",  "Tanh",     "Erf",      "Softmax", "Gelu",
                                        "FastGelu", "BiasGelu", "QuickGelu", "Swish",  "Mish",
                                        "Elu",      "Celu",     "Selu",     "Softplus"};
    for (size_t i = 0; i < NORI__COUNT(names); i++) {
        if (nori__str_is(n->op_type, names[i])) {
            return true;
        }
    }
    return false;
}

void graphs_move_result(const nori__pb_node *n, nori_tensor **t, graphs_values *all)
{
    nori_type type = is_floats(*t) ? nori_tensor_type(*t) : NORI_UNDEFINED;
    bool cast = nori__str_is(n->op_type, "Cast") || nori__str_is(n->op_type, "CastLike");
    /* Rounding to a half type is one, too: islands of such nodes leave it out. */
    bool half = cast && (type == NORI_FLOAT16 || type == NORI_BFLOAT16);
    if (type == NORI_UNDEFINED || (!rounds(n) && !half)) {
        return;
    }
    double absolute = smallest(type);
    if (all->look.coarse && is_curve(n) && n->inputs.count > 0) {
        const graphs_value *x = graphs_find(all, n->inputs.items[0]);
        absolute += 2.4e-7 * (1 + (x && is_floats(x->v[0]) ? largest(x->v[0]) : 0));
    }
    disturb(t, grain(type), 0.25 * grain(type), absolute, &all->noise);
}

/* ---- what noise does ---- */

static double off_at(const graphs_value *v, int64_t i)
{
    double most = 0;
    for (int k = 1; k < GRAPHS_VARIANTS; k++) {
        double off = fabs(nori__tensor_get_f64(v->v[k], i) - nori__tensor_get_f64(v->v[0], i));
        most = off > most ? off : most;
    }
    return most;
}

/* Infinite where even the form depends on noise. */
static double spread_of(const graphs_value *v)
{
    double most = 0;
    for (int k = 1; k < GRAPHS_VARIANTS; k++) {
        if (!v->v[k] || !graphs_one_form(v->v[k], v->v[0])) {
            return INFINITY;
        }
    }
    for (int64_t i = 0; i < nori_tensor_elements(v->v[0]); i++) {
        double off = off_at(v, i);
        most = off > most ? off : most;
    }
    return most;
}

double graphs_allowed(const graphs_value *want)
{
    nori_type type = nori_tensor_type(want->v[0]);
    return 8 * grain(type) * largest(want->v[0]) + 8 * smallest(type) + 8 * spread_of(want) + 1e-7;
}

bool graphs_steady(const graphs_value *v, char *why)
{
    const nori_tensor *exact = v->v[0];
    bool floats = nori__type_is_float(nori_tensor_type(exact));
    for (int k = 1; k < GRAPHS_VARIANTS; k++) {
        if (!graphs_one_form(exact, v->v[k]) ||
            (!floats && !graphs_same_bits(exact, v->v[k], why))) {
            snprintf(why, GRAPHS_TEXT, "noise shows");
            return false;
        }
    }
    for (int64_t i = 0; floats && i < nori_tensor_elements(exact); i++) {
        if (!isfinite(nori__tensor_get_f64(exact, i)) ||
            !isfinite(nori__tensor_get_f64(v->v[1], i))) {
            snprintf(why, GRAPHS_TEXT, "not finite");
            return false;
        }
    }
    double most = floats ? largest(exact) : 0, bound = grain(nori_tensor_type(exact)) * 1000;
    bound = bound > 0.05 ? 0.05 : bound;
    if (floats && (most > 1e5 || spread_of(v) > bound * most)) {
        snprintf(why, GRAPHS_TEXT, "too large, or noise grows");
        return false;
    }
    return true;
}

/* An element that noise moved and that is zero, or next to it. */
static bool near_zero(const graphs_value *v)
{
    bool one_form = isfinite(spread_of(v));
    for (int64_t i = 0; one_form && i < nori_tensor_elements(v->v[0]); i++) {
        double off = off_at(v, i);
        if (off > 0 && fabs(nori__tensor_get_f64(v->v[0], i)) <= 8 * off) {
            return true;
        }
    }
    return false;
}

/* Two elements that noise moved and that are one number, or nearly. */
static bool near_each_other(const graphs_value *a, const graphs_value *b)
{
    int64_t n = nori_tensor_elements(a->v[0]), m = nori_tensor_elements(b->v[0]);
    double off = spread_of(a) + spread_of(b);
    bool alike = graphs_one_form(a->v[0], b->v[0]);
    for (int64_t i = 0; off > 0 && i < n; i++) {
        for (int64_t j = alike ? i : 0; j < (alike ? i + 1 : m); j++) {
            if (fabs(nori__tensor_get_f64(a->v[0], i) - nori__tensor_get_f64(b->v[0], j)) <=
                8 * off) {
                return true;
            }
        }
    }
    return false;
}

bool graphs_at_a_jump(const nori__pb_node *n, graphs_values *all, char *why)
{
    const graphs_value *a = n->inputs.count > 0 ? graphs_find(all, n->inputs.items[0]) : NULL,
                       *b = n->inputs.count > 1 ? graphs_find(all, n->inputs.items[1]) : NULL;
    const nori__pb_attr *to = graphs_attr(n, "to");
    bool near = false;
    if (!a || !is_floats(a->v[0])) {
        return false;
    }
    if (nori__str_is(n->op_type, "NonZero") ||
        (nori__str_is(n->op_type, "Cast") && to && to->i == NORI_BOOL)) {
        near = near_zero(a);
    } else if (nori__str_is(n->op_type, "Equal") && b) {
        near = near_each_other(a, b);
    }
    if (near) {
        snprintf(why, GRAPHS_TEXT, "noise may make a number the one that is asked for");
    }
    return near;
}
