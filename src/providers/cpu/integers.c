/* integers.c: the rewrite of quantized graphs (integers.h): which joins are tried where, in what
 * order. Types must have been inferred; it leaves them inferred. */
#include "providers/cpu/integers.h"

#include "passes/passes.h"

#include <math.h>

static bool any_quantized(const nori__ir *ir)
{
    static const nori__op_id ops[] = {
        NORI__OP_ONNX_QuantizeLinear, NORI__OP_ONNX_DequantizeLinear, NORI__OP_ONNX_ConvInteger,
        NORI__OP_ONNX_MatMulInteger, NORI__OP_MS_QGemm, NORI__OP_MS_QLinearSigmoid,
        NORI__OP_MS_QLinearLeakyRelu};
    return nori__ir_has(ir, ops, NORI__COUNT(ops));
}

/* ---- limits between an operator and its QuantizeLinear ---- */

static float within(float v, float low, float high)
{
    return v < low ? low : v > high ? high : v;
}

/* Past Relu and Clip, from x back: what makes the value they limit, and the limits. */
static nori__node *past_limits(const nori__joiner *j, const nori__value *x, float *low, float *high)
{
    nori__node *p = nori__sole_producer(j, x);
    *low = -INFINITY;
    *high = INFINITY;
    while (p && p->output_count == 1 &&
           (nori__node_is(p, NORI__OP_ONNX_Relu) || nori__node_is(p, NORI__OP_ONNX_Clip))) {
        float own[2] = {0, 0};
        size_t n;
        if (!nori__activation_of(p, own, &n)) {
            return NULL;
        }
        if (n == 0) { /* Relu */
            own[1] = INFINITY;
        }
        own[0] = within(own[0], *low, *high);
        own[1] = within(own[1], *low, *high);
        *low = own[0];
        *high = own[1];
        p = nori__sole_producer(j, p->inputs[0]);
    }
    return p;
}

/* Quantizing saturates: limits at or beyond the ends of the range are met by that alone. */
static bool saturation_limits(const nori__quantized *y, float low, float high)
{
    float least = y->type == NORI_INT8 ? -128 : 0, zero = (float)nori__zero_of(y);
    return rintf(low / nori__scale_of(y)) + zero <= least &&
           rintf(high / nori__scale_of(y)) + zero >= least + 255;
}

static nori__node *join_operator(nori__joiner *j, nori__node *q)
{
    nori__quantized y;
    float low, high;
    nori__node *p = nori__quantizes(q, &y) ? past_limits(j, q->inputs[0], &low, &high) : NULL;
    if (!p || !p->op) {
        return NULL;
    }
    bool limits = !saturation_limits(&y, low, high);
    nori__value *out = limits ? nori__value_like(j, y.q, y.type) : y.q;
    if (!out) {
        return NULL;
    }
    nori__node *made = nori__join_product(j, p, q, &y, out);
    if (!made && j->err->status == NORI_OK) {
        made = nori__join_elements(j, p, q, &y, out);
    }
    if (!made || (limits && !nori__clamp_table(j, q, out, &y, low, high, y.q))) {
        return NULL;
    }
    nori__drop(j, q);
    return made;
}

/* ---- the walks ---- */

static void join_quantize(nori__joiner *j, nori__node *q)
{
    for (nori__node *above = q; above; above = nori__lift_up(j, q)) {
        q = above;
    }
    if (j->err->status == NORI_OK && !nori__join_table(j, q) && j->err->status == NORI_OK) {
        join_operator(j, q);
    }
}

static void visit_moves(nori__joiner *j, nori__node *n)
{
    nori__push_down(j, n);
}

static void visit_operators(nori__joiner *j, nori__node *n)
{
    if (nori__node_is(n, NORI__OP_ONNX_QuantizeLinear)) {
        join_quantize(j, n);
    } else {
        nori__turn_qgemm(j, n);
        nori__table_of_node(j, n);
    }
}

static void visit_floats(nori__joiner *j, nori__node *n)
{
    if (!nori__join_to_float(j, n) && j->err->status == NORI_OK) {
        nori__join_dynamic(j, n);
    }
}

/* Joining makes nodes in front of n and removes n and some before it, so n's successor stays. */
static nori_status walk(nori__joiner *j, void (*visit)(nori__joiner *, nori__node *))
{
    for (j->g = j->ir->graphs; j->g; j->g = j->g->next_graph) {
        for (nori__node *n = j->g->first, *next; n; n = next) {
            next = n->next;
            visit(j, n);
            if (j->err->status != NORI_OK) {
                return j->err->status;
            }
        }
    }
    return NORI_OK;
}

nori_status nori__cpu_integers(nori__ir *ir, nori_error *err)
{
    nori_error own = {0};
    nori__joiner j = {.ir = ir, .err = err ? err : &own};
    bool changed = false;
    if (!any_quantized(ir)) {
        return NORI_OK;
    }
    NORI__TRY(walk(&j, visit_moves));
    NORI__TRY(nori__pass_fold(ir, &changed, err)); /* weights that were moved */
    NORI__TRY(nori__infer_graph(ir, err));
    NORI__TRY(walk(&j, visit_operators));
    NORI__TRY(walk(&j, visit_floats));
    NORI__TRY(nori__pass_fold_rest(ir, &changed, err));
    NORI__TRY(nori__pass_dead(ir, &changed, err));
    return nori__infer_graph(ir, err);
}
