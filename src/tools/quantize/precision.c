/* precision.c: float32 nodes become float16 or bfloat16 ones, by the facts: an operator whose version
 * has no such form stays float32, between casts. So does a node whose numbers would leave the type. */
#include <math.h>

#include "ops/resolve.h"
#include "ops/schema.h"
#include "tools/quantize/quantize.h"

#define BIT(type) (UINT64_C(1) << (type))

typedef struct half {
    nori__quantizer *q;
    nori_type type;
    nori__value **of; /* by value id: the value in the half type; NULL: not made yet */
    uint32_t n_values, n_nodes;
    uint64_t lost;    /* constants that are not zero, and became it */
    const nori__node *by_name; /* a Gradient, of all nodes between values it names; NULL: none */
    const bool *crashes;       /* by node id: would make a runtime crash; NULL: of no concern */
} half;

static double most(const half *h)
{
    return h->type == NORI_FLOAT16 ? 65504 : 0x1.fep127;
}

static bool is_float(const nori__value *v)
{
    return v && v->type.kind == NORI_KIND_TENSOR && v->type.elem == NORI_FLOAT;
}

static const nori__schema_arg *argument(const nori__schema_arg *args, uint16_t count, uint32_t i)
{
    return count == 0 ? NULL : &args[i < count ? i : count - 1u];
}

static const nori__schema *facts(const nori__node *n)
{
    return n->op ? nori__schema_find(n->domain, n->op_type, n->version) : NULL;
}

/* Whether input i is one that the half type may stand for. */
static bool halved_input(const half *h, const nori__node *n, const nori__schema *s, uint32_t i)
{
    const nori__schema_arg *a = argument(s->in, s->n_in, i);
    return is_float(n->inputs[i]) && a && a->constraint && (a->types & BIT(h->type));
}

/* Whether output i has the type of such an input. */
static bool halved_output(const half *h, const nori__node *n, const nori__schema *s, uint32_t i)
{
    const nori__schema_arg *out = argument(s->out, s->n_out, i);
    if (!is_float(n->outputs[i]) || !out || !out->constraint || !(out->types & BIT(h->type))) {
        return false;
    }
    for (uint32_t k = 0; k < n->input_count; k++) {
        const nori__schema_arg *in = argument(s->in, s->n_in, k);
        if (halved_input(h, n, s, k) && nori__same(in->constraint, out->constraint)) {
            return true;
        }
    }
    return false;
}

/* ---- may this node compute in it? ---- */

/* How many finite numbers of a constant would become infinite. */
static int64_t beyond(const half *h, const nori_tensor *t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->count; i++) {
        double v = fabs(nori__tensor_get_f64(t, i));
        n += isfinite(v) && v > most(h);
    }
    return n;
}

static bool value_fits(const half *h, const nori__node *n, const nori__value *v)
{
    const nori_tensor *t = nori__value_const(v);
    const nori__observer *seen =
        h->q->seen ? nori__map_get(&h->q->seen->observers, v->name) : NULL;
    int64_t many = t ? beyond(h, t) : 0;
    if (many > 0) {
        nori__q_report_node(h->q, n, "%lld numbers of %s lie beyond %g", (long long)many, v->name,
                            most(h));
        return false;
    }
    double reach = seen && seen->count > 0 ? fmax(fabs(seen->min), fabs(seen->max)) : 0;
    if (!t && reach > most(h)) {
        nori__q_report_node(h->q, n, "%s reaches %g, beyond %g", v->name, reach, most(h));
        return false;
    }
    return true;
}

static bool types_fit(const half *h, const nori__node *n, const nori__schema *s)
{
    bool any = false;
    for (uint32_t i = 0; i < n->input_count; i++) {
        const nori__schema_arg *a = argument(s->in, s->n_in, i);
        bool tensor = !n->inputs[i] || n->inputs[i]->type.kind == NORI_KIND_TENSOR;
        if (!tensor || !a) {
            nori__q_report_node(h->q, n, "it takes other things than tensors");
            return false;
        }
        any = any || halved_input(h, n, s, i);
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i] && n->outputs[i]->type.kind != NORI_KIND_TENSOR) {
            nori__q_report_node(h->q, n, "it makes other things than tensors");
            return false;
        }
        if (n->outputs[i] && n->outputs[i]->type.elem == NORI_STRING) {
            nori__q_report_node(h->q, n, "it writes numbers as text");
            return false;
        }
    }
    if (!any) {
        nori__q_report_node(h->q, n, "operator %s of version %d takes no %s here", n->op_type, s->since,
                            nori_type_name(h->type));
    }
    return any;
}

static bool fits(const half *h, const nori__node *n)
{
    uint32_t state = 0;
    const nori__schema *s = facts(n);
    bool floats = false;
    for (uint32_t i = 0; i < n->input_count; i++) {
        floats = floats || is_float(n->inputs[i]);
    }
    if (!floats) {
        nori__q_report_node(h->q, n, "it reads no float32");
        return false;
    }
    if (h->by_name) {
        nori__q_report_node(h->q, n, "%s reads values by name", h->by_name->op_type);
        return false;
    }
    if (nori__q_excluded(h->q, n)) {
        nori__q_report_node(h->q, n, "excluded by option");
        return false;
    }
    if (h->crashes && h->crashes[n->id]) {
        nori__q_report_node(h->q, n, "ONNX Runtime 1.30 crashes on a Transpose of axis 0 in %s in front "
                            "of a MatMul", nori_type_name(h->type));
        return false;
    }
    if (!s || nori__node_subgraph(n, &state) || (n->op->flags & NORI__OP_RANDOM)) {
        nori__q_report_node(h->q, n, !s ? "nothing is known of its types"
                                        : "what it does depends on the type of its inputs");
        return false;
    }
    if (!types_fit(h, n, s)) {
        return false;
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (halved_input(h, n, s, i) && !value_fits(h, n, n->inputs[i])) {
            return false;
        }
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i] && !value_fits(h, n, n->outputs[i])) {
            return false;
        }
    }
    return true;
}

/* ---- rewriting ---- */

static nori__value *cast(half *h, nori__node *before, nori__value *from, nori__value *to,
                         nori_type type)
{
    nori__node *n = nori__node_new(h->q->ir->main, before, "", "Cast", &from, 1, &to, 1);
    /* Before opset 6 the type is a word. */
    bool word = nori__ir_opset(h->q->ir, "") < 6;
    return n && (word ? nori__node_set_text(n, "to", type == NORI_FLOAT ? "FLOAT" : "FLOAT16")
                      : nori__node_set_int(n, "to", type)) ? to : NULL;
}

static nori__value *sibling(half *h, const nori__value *v, const char *what, nori_type type)
{
    const char *name = nori__q_name(h->q, v->name, what);
    nori__value *made = name ? nori__value_new(h->q->ir->main, name) : NULL;
    if (made) {
        made->type = v->type;
        made->type.elem = (uint8_t)type;
    }
    return made;
}

static nori__value *halved_constant(half *h, const nori__value *v)
{
    nori_tensor *t = NULL;
    const nori_tensor *from = v->constant;
    const char *name = nori__q_name(h->q, v->name, nori_type_name(h->type));
    if (!name || nori__tensor_new(h->q->ir->allocator, h->type, from->rank, from->dims, &t,
                                  h->q->err) != NORI_OK) {
        return NULL;
    }
    for (int64_t i = 0; i < from->count; i++) {
        double d = nori__tensor_get_f64(from, i);
        nori__tensor_set_f64(t, i, d);
        h->lost += d != 0 && nori__tensor_get_f64(t, i) == 0;
    }
    return nori__const_new(h->q->ir->main, name, t);
}

/* A value in the half type, made once for all its readers. */
static nori__value *halved(half *h, nori__value *v)
{
    nori__value **of = &h->of[v->id];
    if (!*of && nori__value_const(v)) {
        *of = halved_constant(h, v);
    } else if (!*of) {
        nori__value *to = sibling(h, v, nori_type_name(h->type), h->type);
        nori__node *before = v->producer ? v->producer->next : h->q->ir->main->first;
        *of = to ? cast(h, before, v, to, h->type) : NULL;
    }
    return *of;
}

static nori_status rewrite(half *h, nori__node *n)
{
    const nori__schema *s = facts(n);
    bool in[64], out[64];
    if (n->input_count > NORI__COUNT(in) || n->output_count > NORI__COUNT(out)) {
        nori__q_report_node(h->q, n, "it has more than %zu inputs", NORI__COUNT(in));
        return NORI_OK;
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        out[i] = halved_output(h, n, s, i);
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        in[i] = halved_input(h, n, s, i);
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        nori__value *to = in[i] ? halved(h, n->inputs[i]) : NULL;
        if (in[i] && (!to || !nori__node_set_input(n, i, to))) {
            return nori__no_memory(h->q->err);
        }
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        nori__value *v = n->outputs[i];
        if (!out[i]) {
            continue;
        }
        nori__value *made = sibling(h, v, nori_type_name(h->type), h->type);
        if (!made) {
            return nori__no_memory(h->q->err);
        }
        n->outputs[i] = made;
        made->producer = n;
        v->producer = NULL;
        h->of[v->id] = made;
        if (!cast(h, n->next, made, v, NORI_FLOAT)) {
            return nori__no_memory(h->q->err);
        }
    }
    nori__q_report_node(h->q, n, NULL);
    return NORI_OK;
}

/* A product that stays float32 for a runtime's sake has its weights in the half type all the same. */
static nori_status narrow_weights(half *h, nori__node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++) {
        nori__value *v = n->inputs[i];
        if (!is_float(v) || !nori__value_const(v) || beyond(h, nori__value_const(v)) > 0) {
            continue;
        }
        nori__value *narrow = halved(h, v), *wide = sibling(h, v, "float32", NORI_FLOAT);
        if (!narrow || !wide || !cast(h, n, narrow, wide, NORI_FLOAT) ||
            !nori__node_set_input(n, i, wide)) {
            return nori__no_memory(h->q->err);
        }
    }
    return NORI_OK;
}

/* Casts to float32 that nobody reads go; what they read takes the name it had in the model. */
static void sweep(const half *h)
{
    for (nori__node *n = h->q->ir->main->last, *prev; n; n = prev) {
        prev = n->prev;
        if (n->id < h->n_nodes || n->output_count != 1 || n->outputs[0]->uses > 0) {
            continue;
        }
        nori__value *v = n->outputs[0], *made = n->inputs[0];
        nori__node *maker = made->producer;
        nori__node_remove(n);
        if (!maker || v->type.elem != NORI_FLOAT) {
            continue;
        }
        v->type = made->type;
        nori__value_replace(made, v);
        for (uint32_t i = 0; i < maker->output_count; i++) {
            maker->outputs[i] = maker->outputs[i] == made ? v : maker->outputs[i];
        }
        v->producer = maker;
        made->producer = NULL;
    }
}

nori_status nori__q_emit_half(nori__quantizer *q)
{
    half h = {.q = q,
              .type = q->options->kind == NORI_QUANTIZE_FP16 ? NORI_FLOAT16 : NORI_BFLOAT16};
    nori__resolve(q->ir);
    NORI__TRY(nori__infer_graph(q->ir, q->err));
    h.n_values = q->ir->value_count;
    h.n_nodes = q->ir->node_count;
    h.of = nori__arena_array(&q->arena, (size_t)h.n_values + 1, sizeof(*h.of));
    h.crashes = h.type == NORI_FLOAT16 ? nori__q_half_crashes(q) : NULL;
    if (!h.of || (h.type == NORI_FLOAT16 && !h.crashes)) {
        return nori__no_memory(q->err);
    }
    for (const nori__node *n = q->ir->main->first; n; n = n->next) {
        h.by_name = nori__same(n->op_type, "Gradient") ? n : h.by_name;
    }
    for (nori__node *n = q->ir->main->first, *next; n; n = next) {
        next = n->next; /* casts are put between, and are not looked at */
        if (fits(&h, n)) {
            NORI__TRY(rewrite(&h, n));
        } else if (h.crashes && h.crashes[n->id]) {
            NORI__TRY(narrow_weights(&h, n));
        }
    }
    sweep(&h);
    if (h.lost > 0) {
        nori__q_note(q, "%llu constants are too small for %s and became 0",
                     (unsigned long long)h.lost, nori_type_name(h.type));
    }
    return NORI_OK;
}

/* ---- inputs and outputs ---- */

static void retype(nori__value *v, nori_type type)
{
    v->type.elem = (uint8_t)type;
    v->declared = v->type;
    v->pb = NULL; /* what the file said of it is true no more */
}

/* Every use of an input goes through a cast to float32; casts back to the half type are left out. */
static nori_status half_input(half *h, nori__value *v)
{
    nori__value *wide = sibling(h, v, "float32", NORI_FLOAT);
    if (!wide) {
        return nori__no_memory(h->q->err);
    }
    nori__value_replace(v, wide);
    for (nori__node *n = h->q->ir->main->first, *next; n; n = next) {
        next = n->next;
        if (n->input_count == 1 && n->inputs[0] == wide && nori__same(n->op_type, "Cast") &&
            nori__attr_i(n, "to", 0) == h->type && n->outputs[0]) {
            nori__value *narrow = n->outputs[0];
            nori__node_remove(n);
            nori__value_replace(narrow, v);
        }
    }
    retype(v, h->type);
    if (wide->uses > 0 && !cast(h, h->q->ir->main->first, v, wide, NORI_FLOAT)) {
        return nori__no_memory(h->q->err);
    }
    return NORI_OK;
}

/* The output's name goes to a value of the half type; what else read it reads a wide one. */
static nori_status half_output(half *h, nori__value *v)
{
    nori__node *maker = v->producer;
    nori__value *wide = sibling(h, v, "float32", NORI_FLOAT);
    if (!wide) {
        return nori__no_memory(h->q->err);
    }
    uint32_t at = 0;
    while (maker->outputs[at] != v) {
        at++;
    }
    nori__value_replace(v, wide); /* the graph's output too, for now */
    maker->outputs[at] = wide;
    wide->producer = maker;
    v->producer = NULL;
    retype(v, h->type);
    nori__value *from = nori__same(maker->op_type, "Cast") ? maker->inputs[0] : NULL;
    bool half_made = from && from->type.elem == h->type && from->producer &&
                     !(from->flags & NORI__VALUE_OUTPUT);
    nori__value *narrow = half_made ? from : NULL;
    if (narrow) { /* made by a node of the half type: that node makes v */
        nori__node *source = narrow->producer;
        for (uint32_t i = 0; i < source->output_count; i++) {
            source->outputs[i] = source->outputs[i] == narrow ? v : source->outputs[i];
        }
        v->producer = source;
        narrow->producer = NULL;
        narrow->type = v->type;
        /* Readers of the old name stand behind the source. */
        for (nori__node *n = source->next; n && narrow->uses > 0; n = n->next) {
            for (uint32_t i = 0; i < n->input_count; i++) {
                if (n->inputs[i] == narrow && !nori__node_set_input(n, i, v)) {
                    return nori__no_memory(h->q->err);
                }
            }
        }
    } else if (!cast(h, maker->next, wide, v, h->type)) {
        return nori__no_memory(h->q->err);
    }
    nori__graph *g = h->q->ir->main;
    for (uint32_t i = 0; i < g->output_count; i++) {
        if (g->outputs[i] == wide) {
            g->outputs[i] = v;
            wide->uses--;
            v->uses++;
        }
    }
    wide->flags &= ~(uint32_t)NORI__VALUE_OUTPUT;
    v->flags |= NORI__VALUE_OUTPUT;
    if (wide->uses == 0 && narrow) {
        nori__node_remove(maker);
    }
    return NORI_OK;
}

nori_status nori__q_half_io(nori__quantizer *q)
{
    half h = {.q = q,
              .type = q->options->kind == NORI_QUANTIZE_FP16 ? NORI_FLOAT16 : NORI_BFLOAT16};
    nori__graph *g = q->ir->main;
    nori__resolve(q->ir);
    for (uint32_t i = 0; i < g->input_count; i++) {
        if (is_float(g->inputs[i]) && !g->inputs[i]->constant &&
            !(g->inputs[i]->flags & NORI__VALUE_OUTPUT)) {
            NORI__TRY(half_input(&h, g->inputs[i]));
        }
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        if (is_float(g->outputs[i]) && g->outputs[i]->producer &&
            g->outputs[i]->producer->graph == g) {
            NORI__TRY(half_output(&h, g->outputs[i]));
        }
    }
    return NORI_OK;
}
