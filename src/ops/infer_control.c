/* infer_control.c: what If, Loop and Scan give, from the types of their bodies' outputs (which have
 * been inferred when the node's turn comes). What may change from one iteration to the next, or
 * between branches, is left open. */
#include "ops/content.h"

static const nori__type *body_output(const nori__graph *g, uint32_t i)
{
    return g && i < g->output_count && g->outputs[i] ? &g->outputs[i]->type : NULL;
}

/* Makes `o` what holds for both itself and a type. named: symbols may be compared. */
static void meet(nori__shape *o, const nori__type *t, bool named)
{
    if (!t || t->kind != o->kind) {
        o->kind = NORI_KIND_UNKNOWN;
        o->rank = -1;
        return;
    }
    if (t->elem != o->elem) {
        o->elem = NORI_UNDEFINED;
    }
    if (t->rank != o->rank) {
        o->rank = -1;
    }
    for (int d = 0; d < o->rank; d++) {
        if (!nori__dim_same(o->dims[d], t->dims[d]) || (o->dims[d].value < 0 && !named)) {
            o->dims[d] = NORI__DIM_ANY;
        }
    }
}

static void start(nori__shape *o, const nori__type *t)
{
    o->kind = t ? t->kind : NORI_KIND_UNKNOWN;
    o->elem = t ? t->elem : NORI_UNDEFINED;
    o->rank = (int8_t)(t && t->kind == NORI_KIND_TENSOR ? t->rank : -1);
    o->of = t ? t->of : NULL;
    for (int d = 0; d < o->rank; d++) {
        o->dims[d] = t->dims[d];
    }
}

nori_status nori__infer_if(nori__infer *c)
{
    const nori__graph *yes = nori__attr_graph(c->node, "then_branch");
    const nori__graph *no = nori__attr_graph(c->node, "else_branch");
    if (!yes || !no) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "then_branch or else_branch is missing");
    }
    if (yes->output_count < c->node->output_count || no->output_count < c->node->output_count) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the branches have %u and %u outputs, the node has %u", yes->output_count,
                          no->output_count, c->node->output_count);
    }
    for (uint32_t i = 0; i < c->node->output_count; i++) {
        start(&c->out[i], body_output(yes, i));
        meet(&c->out[i], body_output(no, i), true);
    }
    return NORI_OK;
}

/* A state variable: what the body gives, or the initial value when it never runs. */
static void carried(nori__infer *c, uint32_t out, const nori__type *t, uint32_t in, bool fixed)
{
    nori__shape *o = &c->out[out];
    start(o, t);
    const nori__shape *s = in < c->node->input_count ? &c->in[in] : NULL;
    if (!s || s->kind == NORI_KIND_UNKNOWN) {
        o->rank = -1;
        return;
    }
    if (o->kind != NORI_KIND_UNKNOWN && o->kind != s->kind) {
        start(o, NULL); /* an optional goes in and its content comes out: the run decides */
        return;
    }
    if (o->kind == NORI_KIND_UNKNOWN) {
        *o = *s;
        o->tensor = NULL;
        o->data_count = -1;
        if (!fixed) {
            o->rank = -1;
        }
        return;
    }
    nori__type first = {.kind = s->kind,
                        .elem = s->elem,
                        .rank = s->rank,
                        .of = s->of,
                        .dims = (nori__dim *)(uintptr_t)s->dims};
    if (fixed && o->rank < 0) {
        start(o, &first); /* Scan's states keep their shape */
        return;
    }
    meet(o, &first, true);
    o->elem = s->elem ? s->elem : o->elem;
}

/* Scan output: the body's, with the iterations as an axis more. Names of the body mean something
 * else in each iteration. */
static void stacked(nori__infer *c, uint32_t out, const nori__type *t, int64_t axis,
                    nori__dim count, int64_t batch)
{
    nori__dim dims[NORI_MAX_RANK + 2];
    if (!t || t->kind != NORI_KIND_TENSOR) {
        return;
    }
    nori__out_elem(c, out, (nori_type)t->elem);
    int rank = t->rank + (batch >= -1 ? 2 : 1), from = 0, n = 0;
    axis = axis < 0 ? axis + rank : axis;
    if (t->rank < 0 || rank > NORI_MAX_RANK || axis < 0 || axis >= rank) {
        return;
    }
    if (batch >= -1) {
        dims[n++] = (nori__dim){batch, NULL};
        axis = 1;
    }
    for (; n < rank; n++) {
        if (n == axis) {
            dims[n] = count;
        } else {
            dims[n] = (nori__dim){t->dims[from].value, NULL};
            from++;
        }
    }
    nori__out_set(c, out, (nori_type)t->elem, rank, dims);
}

nori_status nori__infer_loop(nori__infer *c)
{
    const nori__graph *body = nori__attr_graph(c->node, "body");
    uint32_t n = c->node->input_count > 2 ? c->node->input_count - 2 : 0;
    if (!body || body->output_count < n + 1 || body->input_count != n + 2) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the body has %u inputs and %u outputs, expected %u and at least %u",
                          body ? body->input_count : 0, body ? body->output_count : 0, n + 2,
                          n + 1);
    }
    if (c->node->output_count > body->output_count - 1) {
        return nori__fail(c->err, NORI_ERROR_MODEL, "%u outputs, the body gives %u",
                          c->node->output_count, body->output_count - 1);
    }
    for (uint32_t i = 0; i < c->node->output_count; i++) {
        const nori__type *t = body_output(body, i + 1);
        if (i < n) {
            carried(c, i, t, i + 2, false);
        } else {
            stacked(c, i, t, 0, NORI__DIM_ANY, -2);
        }
    }
    return NORI_OK;
}

nori_status nori__infer_scan(nori__infer *c)
{
    const nori__graph *body = nori__attr_graph(c->node, "body");
    bool old = c->node->version < 9;
    int64_t m = nori__attr_i(c->node, "num_scan_inputs", 0);
    uint32_t first = old ? 1 : 0;
    if (!body || m < 1 || c->node->input_count < first || m > c->node->input_count - first ||
        body->input_count != c->node->input_count - first) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "%lld scan inputs, %u inputs, a body with %u inputs: they do not fit",
                          (long long)m, c->node->input_count, body ? body->input_count : 0);
    }
    uint32_t n = body->input_count - (uint32_t)m;
    if (body->output_count < n || c->node->output_count > body->output_count) {
        return nori__fail(c->err, NORI_ERROR_MODEL,
                          "the body has %u outputs for %u states and %u outputs of the node",
                          body->output_count, n, c->node->output_count);
    }
    const nori__shape *s = &c->in[first + n];
    size_t n_axes, n_out_axes;
    const int64_t *axes = nori__attr_ints(c->node, "scan_input_axes", &n_axes);
    const int64_t *out_axes = nori__attr_ints(c->node, "scan_output_axes", &n_out_axes);
    nori__dim count = NORI__DIM_ANY;
    int rank = nori__in_rank(c, first + n);
    int64_t axis = old ? 1 : axes && n_axes > 0 ? axes[0] : 0;
    axis = axis < 0 ? axis + rank : axis;
    if (rank > 0 && axis >= 0 && axis < rank) {
        count = s->dims[axis];
    }
    for (uint32_t i = 0; i < c->node->output_count; i++) {
        const nori__type *t = body_output(body, i);
        if (i < n) {
            carried(c, i, old ? NULL : t, first + i, true);
        } else {
            int64_t to = out_axes && i - n < n_out_axes ? out_axes[i - n] : 0;
            stacked(c, i, t, to, count, old ? rank > 0 ? s->dims[0].value : -1 : -2);
        }
    }
    return NORI_OK;
}
