/* select.c: which nodes compute on integers, which values are quantized, and which share a range.
 *
 * Weighted nodes (convolutions, products) are what quantization pays for. Others are taken along
 * where all they read is on integers already and somebody behind them computes on integers, so
 * that no value is quantized only to be dequantized at once. */
#include <math.h>

#include "ops/resolve.h"
#include "tools/quantize/search.h"

/* Values whose ranges differ by more would lose over two of their eight bits to a common scale. */
#define CONCAT_RATIO 4.0

static bool matches(const char *pattern, const char *text)
{
    size_t n = strlen(pattern);
    if (n > 0 && pattern[n - 1] == '*') {
        return strncmp(pattern, text, n - 1) == 0;
    }
    return nori__same(pattern, text);
}

bool nori__q_excluded(const nori__quantizer *q, const nori__node *n)
{
    for (size_t i = 0; i < q->options->exclude_count; i++) {
        const char *p = q->options->exclude[i];
        if (matches(p, n->name) || nori__same(p, n->op_type)) {
            return true;
        }
    }
    return false;
}

static nori__observer *seen(const nori__quantizer *q, const nori__value *v)
{
    return v ? q->values[v->id].seen : NULL;
}

/* Made by a chosen node: integers are there already. */
static bool on_integers(const nori__quantizer *q, const nori__value *v)
{
    return v->producer && v->producer->graph == q->ir->main && q->chosen[v->producer->id];
}

static bool is_float_const(const nori__value *v)
{
    const nori_tensor *t = nori__value_const(v);
    return t && t->type == NORI_FLOAT;
}

/* ---- may this node be quantized? ---- */

static bool weighted_fits(nori__quantizer *q, const nori__node *n)
{
    const nori__value *w = n->input_count > 1 ? n->inputs[1] : NULL;
    const nori__value *b = n->input_count > 2 ? n->inputs[2] : NULL;
    if (!seen(q, n->inputs[0])) {
        nori__q_report_node(q, n, "its input is no float32");
        return false;
    }
    bool product = nori__same(n->op_type, "MatMul");
    if (!w || (!is_float_const(w) && !(product && seen(q, w)))) {
        nori__q_report_node(q, n, "its weights are not constant");
        return false;
    }
    if (!is_float_const(w) && q->options->search) {
        nori__q_report_node(q, n, "a product of two activations has no weights to make small, and is no "
                                  "faster on integers");
        return false;
    }
    if (b && !is_float_const(b)) {
        nori__q_report_node(q, n, "its bias is not constant");
        return false;
    }
    return true;
}

static double width(const nori__observer *o)
{
    double low = o->min < 0 ? o->min : 0, high = o->max > 0 ? o->max : 0;
    return high - low;
}

/* One scale for all that is joined: small values must not drown. */
static bool concat_fits(nori__quantizer *q, const nori__node *n)
{
    double least = INFINITY, most = 0;
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (seen(q, n->inputs[i])) {
            double w = width(seen(q, n->inputs[i]));
            least = w < least ? w : least;
            most = w > most ? w : most;
        }
    }
    if (most > least * CONCAT_RATIO) {
        nori__q_report_node(q, n, "it joins ranges %g times apart: the smaller would be lost",
                            most / least);
        return false;
    }
    return true;
}

static bool follower_fits(nori__quantizer *q, const nori__node *n)
{
    uint32_t dynamic = 0;
    for (uint32_t i = 0; i < nori__q_data_inputs(n); i++) {
        const nori__value *v = n->inputs[i];
        if (!v || (!is_float_const(v) && !(seen(q, v) && on_integers(q, v)))) {
            nori__q_report_node(q, n, "what it reads is not quantized");
            return false;
        }
        dynamic += !is_float_const(v);
    }
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i] && !seen(q, n->outputs[i])) {
            nori__q_report_node(q, n, "its output is no float32");
            return false;
        }
    }
    if (dynamic == 0) {
        nori__q_report_node(q, n, "it reads constants only");
        return false;
    }
    return !nori__same(n->op_type, "Concat") || concat_fits(q, n);
}

static bool fits(nori__quantizer *q, const nori__node *n, nori__q_role role)
{
    if (role == NORI__Q_FLOAT) {
        nori__q_report_node(q, n, "the operator has no quantized form");
        return false;
    }
    if (nori__q_excluded(q, n)) {
        nori__q_report_node(q, n, "excluded by option");
        return false;
    }
    const nori__q_unit *unit =
        n->output_count > 0 && n->outputs[0] ? nori__map_get(&q->units, n->outputs[0]->name) : NULL;
    if (unit && (unit->hidden || unit->why)) {
        nori__q_report_node(q, n, "%s", unit->why ? unit->why : "");
        return false;
    }
    if (n->output_count == 0 || !n->outputs[0] || !seen(q, n->outputs[0])) {
        nori__q_report_node(q, n, "its output is no float32, or was never computed");
        return false;
    }
    return role == NORI__Q_WEIGHTED ? weighted_fits(q, n) : follower_fits(q, n);
}

/* ---- who reads ---- */

/* Whether a chosen node reads the value; sole: the only reader of all, or NULL. */
static bool read_by_chosen(const nori__quantizer *q, const nori__value *v,
                           const nori__node **sole)
{
    bool any = false;
    uint32_t found = 0;
    const nori__node *last = NULL;
    for (const nori__node *n = v->producer ? v->producer->next : q->ir->main->first;
         n && found < v->uses; n = n->next) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            if (n->inputs[i] == v) {
                found++;
                last = n;
                any = any || q->chosen[n->id];
            }
        }
    }
    if (sole) {
        *sole = found == 1 && v->uses == 1 ? last : NULL;
    }
    return any;
}

static bool feeds_integers(const nori__quantizer *q, const nori__node *n)
{
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i] && read_by_chosen(q, n->outputs[i], NULL)) {
            return true;
        }
    }
    return false;
}

/* A node whose output only an activation reads: the activation clamps what the node requantizes. */
static bool joins_activation(const nori__quantizer *q, const nori__node *n)
{
    const nori__node *reader = NULL;
    nori__q_role role = nori__q_role_of(n);
    bool maker = role == NORI__Q_WEIGHTED || nori__same(n->op_type, "Add");
    if (!maker || n->output_count != 1 || !read_by_chosen(q, n->outputs[0], &reader) || !reader) {
        return false;
    }
    return nori__q_role_of(reader) == NORI__Q_ACTIVATION && reader->inputs[0] == n->outputs[0];
}

/* ---- values ---- */

static void mark(nori__quantizer *q, const nori__node *n)
{
    nori__q_role role = nori__q_role_of(n);
    for (uint32_t i = 0; i < nori__q_data_inputs(n); i++) {
        const nori__value *v = n->inputs[i];
        if (v && !nori__value_const(v) && !nori__q_of(q, v)->inside) {
            nori__q_of(q, v)->pair = true;
        }
    }
    bool inside = joins_activation(q, n);
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i]) {
            nori__q_value *out = nori__q_of(q, n->outputs[i]);
            out->inside = inside;
            out->pair = !inside;
            if (role == NORI__Q_PASS && nori__q_of(q, n->inputs[0])->pair) {
                out->root = nori__q_of(q, n->inputs[0])->root;
            }
        }
    }
}

static nori_status find_range(nori__quantizer *q, const nori__value *v)
{
    nori__q_value *root = nori__q_root(q, v);
    const nori_quantize_options *o = q->options;
    if (root->ranged) {
        return NORI_OK;
    }
    root->range = nori__range_choose(root->seen, q->method, o->percentile, o->activation_type,
                                     o->symmetric_activations);
    root->quant.size = sizeof(root->quant);
    NORI__TRY(nori_quant_range(o->activation_type, root->range.low, root->range.high,
                               o->symmetric_activations, &root->quant, q->err));
    root->quant.scale = (double)(float)root->quant.scale; /* as stored */
    root->ranged = true;
    if (root->seen->nan + root->seen->inf > 0) {
        nori__q_note(q, "%s held %llu NaN and %llu infinities, which have no integer", v->name,
                     (unsigned long long)root->seen->nan, (unsigned long long)root->seen->inf);
    }
    return NORI_OK;
}

static nori_status make_tables(nori__quantizer *q)
{
    q->n_values = q->ir->value_count;
    q->n_nodes = q->ir->node_count;
    q->values = nori__arena_array(&q->arena, (size_t)q->n_values + 1, sizeof(*q->values));
    q->chosen = nori__arena_array(&q->arena, (size_t)q->n_nodes + 1, sizeof(*q->chosen));
    return q->values && q->chosen ? NORI_OK : nori__no_memory(q->err);
}

/* A product of two activations, as attention has them. typed: a copy of the graph whose types were
 * inferred; NULL: not asked for. */
static bool product_of_two(const nori__node *n, const nori__ir *typed)
{
    bool two = nori__node_is(n, NORI__OP_ONNX_MatMul) && n->input_count == 2;
    for (uint32_t i = 0; two && i < 2; i++) {
        const nori__value *v = n->inputs[i];
        const nori__value *t = v && typed ? nori__value_find(typed->main, v->name) : NULL;
        two = v && !v->constant &&
              (!typed || (t && t->type.kind == NORI_KIND_TENSOR && t->type.elem == NORI_FLOAT));
    }
    return two;
}

/* Types of activations, as the newest forms of the operators tell them; what cannot be told is left
 * open. */
static nori_status infer_copy(nori__quantizer *q, nori__ir **typed)
{
    nori_error why = {0};
    NORI__TRY(nori__ir_copy(q->ir, typed, q->err));
    nori_status s = nori__inline_functions(*typed, &why);
    s = s == NORI_OK ? nori__upgrade(*typed, &why) : s;
    return s == NORI_ERROR_MEMORY ? nori__no_memory(q->err) : NORI_OK;
}

/* Whether a node gets integers where only weights matter; *why not. */
static bool takes_integers(const nori__quantizer *q, const nori__node *n, const nori__ir *typed,
                           const char **why)
{
    const nori__value *w = n->input_count > 1 ? n->inputs[1] : NULL;
    bool recurrent = nori__q_recurrent(n), weighted = nori__q_role_of(n) == NORI__Q_WEIGHTED;
    bool two = q->options->kind == NORI_QUANTIZE_DYNAMIC && product_of_two(n, typed);
    *why = nori__q_excluded(q, n)     ? "excluded by option"
           : !weighted && !recurrent  ? "the operator has no weights"
           : two && !q->options->attention
               ? "a product of two activations: only --attention puts it on integers"
               : "its weights are not constant";
    return !nori__q_excluded(q, n) && n->output_count > 0 && n->outputs[0] &&
           ((weighted && w && is_float_const(w)) || (recurrent && nori__q_recurrent_fits(n)) ||
            (two && q->options->attention));
}

nori_status nori__q_select_weights(nori__quantizer *q)
{
    nori__ir *typed = NULL;
    NORI__TRY(make_tables(q));
    nori_status s = q->options->attention ? infer_copy(q, &typed) : NORI_OK;
    for (const nori__node *n = q->ir->main->first; n && s == NORI_OK; n = n->next) {
        const char *why;
        q->chosen[n->id] = takes_integers(q, n, typed, &why);
        if (!q->chosen[n->id]) {
            nori__q_report_node(q, n, "%s", why);
        }
    }
    nori__ir_free(typed);
    return s;
}

nori_status nori__q_select(nori__quantizer *q)
{
    nori__graph *g = q->ir->main;
    NORI__TRY(make_tables(q));
    for (const nori__value *v = g->values; v; v = v->next) {
        nori__q_value *own = nori__q_of(q, v);
        own->root = v;
        own->seen = nori__value_const(v) ? NULL : nori__map_get(&q->seen->observers, v->name);
        own->seen = own->seen && own->seen->count > 0 ? own->seen : NULL;
    }
    for (const nori__node *n = g->first; n; n = n->next) {
        q->chosen[n->id] = fits(q, n, nori__q_role_of(n));
    }
    NORI__TRY(nori__q_spare_by_cost(q));
    for (const nori__node *n = g->last; n; n = n->prev) {
        nori__q_role role = nori__q_role_of(n);
        bool clamp = role == NORI__Q_ACTIVATION && q->chosen[n->id] &&
                     joins_activation(q, n->inputs[0]->producer);
        if (q->chosen[n->id] && role != NORI__Q_WEIGHTED && !clamp && !feeds_integers(q, n)) {
            q->chosen[n->id] = false;
            nori__q_report_node(q, n, "nothing behind it computes on integers");
        }
    }
    for (const nori__node *n = g->first; n; n = n->next) {
        if (q->chosen[n->id]) {
            mark(q, n);
            nori__q_report_node(q, n, NULL);
        }
    }
    for (const nori__value *v = g->values; v; v = v->next) {
        if (nori__q_of(q, v)->pair) {
            NORI__TRY(find_range(q, v));
        }
    }
    return NORI_OK;
}
