/* lower.c: a graph under another operator set, older or newer.
 *
 * Nodes that stand as they are stay untouched. The others become the newest form (ops/upgrade.c) and
 * are then taken down to the operator set wanted, step by step of the table below; what a version
 * lacks and the node does not use is dropped. A node that ends up in no form of that operator set, or
 * in one that means something else, is a blocker; all of them are found before giving up. */
#include <stdio.h>

#include "ops/forms.h"
#include "ops/resize.h"
#include "ops/schema.h"
#include "tools/convert/lower.h"

/* ---- the table ---- */

/* Later versions first where an operator has several steps. */
static const struct {
    nori__op_id op;
    int below; /* for operator sets below this */
    nori__lower_fn run;
} steps[] = {
#define ROW(name, below, what) {NORI__OP_ONNX_##name, below, nori__lower_##what}
    ROW(Add, 7, broadcast),       ROW(And, 7, broadcast),
    ROW(Clip, 11, clip),          ROW(Constant, 12, constant),
    ROW(DequantizeLinear, 13, scale), ROW(Div, 7, broadcast),
    ROW(Dropout, 12, dropout),    ROW(Equal, 7, broadcast),
    ROW(Gather, 11, gather),      ROW(Gemm, 11, gemm),
    ROW(Greater, 7, broadcast),   ROW(GridSample, 20, grid),
    ROW(Hardmax, 13, softmax),    ROW(Less, 7, broadcast),
    ROW(LogSoftmax, 13, softmax), ROW(Max, 8, same_shapes),
    ROW(Mean, 8, same_shapes),    ROW(Min, 8, same_shapes),
    ROW(Mul, 7, broadcast),       ROW(Or, 7, broadcast),
    ROW(Pad, 18, pad_axes),       ROW(Pad, 11, pad),
    ROW(Pow, 7, broadcast),       ROW(QuantizeLinear, 23, quantize_types),
    ROW(QuantizeLinear, 13, scale),
    ROW(ReduceL1, 18, axes),      ROW(ReduceL2, 18, axes),
    ROW(ReduceLogSum, 18, axes),  ROW(ReduceLogSumExp, 18, axes),
    ROW(ReduceMax, 18, axes),     ROW(ReduceMean, 18, axes),
    ROW(ReduceMin, 18, axes),     ROW(ReduceProd, 18, axes),
    ROW(ReduceSum, 13, axes),     ROW(ReduceSumSquare, 18, axes),
    ROW(Reshape, 5, reshape),     ROW(Resize, 13, resize),
    ROW(Resize, 11, upsample),    ROW(RoiAlign, 16, roi),
    ROW(ScatterElements, 11, scatter), ROW(Slice, 10, slice),
    ROW(Softmax, 13, softmax),    ROW(Split, 18, split_parts),
    ROW(Split, 13, split),        ROW(Squeeze, 13, axes),
    ROW(Sub, 7, broadcast),       ROW(Sum, 8, same_shapes),
    ROW(TopK, 10, topk),          ROW(Unsqueeze, 13, axes),
    ROW(Xor, 7, broadcast),
#undef ROW
};

/* Words of text attributes that came later than the attribute. */
static const struct {
    nori__op_id op;
    const char *attr, *word;
    int from;
} words[] = {
    {NORI__OP_ONNX_Pad, "mode", "wrap", 19},
    {NORI__OP_ONNX_ScatterElements, "reduction", "max", 18},
    {NORI__OP_ONNX_ScatterElements, "reduction", "min", 18},
    {NORI__OP_ONNX_ScatterND, "reduction", "max", 18},
    {NORI__OP_ONNX_ScatterND, "reduction", "min", 18},
    {NORI__OP_ONNX_Resize, "coordinate_transformation_mode", "half_pixel_symmetric", 19},
};

/* ---- helpers of the steps ---- */

nori_status nori__lower_keep(nori__lowering *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(l->why, sizeof(l->why), fmt, args);
    va_end(args);
    return NORI_OK;
}

const nori_tensor *nori__lower_content(const nori__value *v)
{
    const nori_tensor *t = nori__value_const(v);
    return !t && v && v->producer && nori__node_is(v->producer, NORI__OP_ONNX_Constant)
               ? nori__attr_tensor(v->producer, "value")
               : t;
}

bool nori__lower_has(const nori__node *n, uint32_t input)
{
    return input < n->input_count && n->inputs[input];
}

int nori__lower_rank(const nori__node *n, uint32_t input)
{
    const nori__type *t = nori__lower_has(n, input) ? &n->inputs[input]->type : NULL;
    return t && t->kind == NORI_KIND_TENSOR ? t->rank : -1;
}

static void trim(nori__node *n)
{
    while (n->input_count > 0 && !n->inputs[n->input_count - 1]) {
        n->input_count--;
    }
}

void nori__lower_drop(nori__node *n, uint32_t input)
{
    if (input < n->input_count) {
        (void)nori__node_set_input(n, input, NULL); /* needs no memory: the place is there */
    }
    trim(n);
}

/* ---- what every node is looked at for ---- */

static const nori__schema_attr *find_attr(const nori__schema *s, const char *name)
{
    for (uint16_t i = 0; s && i < s->n_attr; i++) {
        if (nori__same(s->attrs[i].name, name)) {
            return &s->attrs[i];
        }
    }
    return NULL;
}

/* Whether an attribute says what is meant without it. */
static bool is_default(const nori__attr *a, const nori__schema_attr *s)
{
    char text[64] = "";
    if (!s || s->kind != a->kind) {
        return false;
    }
    switch (a->kind) {
    case NORI__ATTR_INT:
        snprintf(text, sizeof(text), "%lld", (long long)a->v.i);
        break;
    case NORI__ATTR_STRING:
        snprintf(text, sizeof(text), "%.60s", a->v.s);
        break;
    case NORI__ATTR_INTS: /* dilations of windows: without them they are 1 */
        for (size_t i = 0; i < a->count; i++) {
            if (a->v.ints[i] != 1) {
                return false;
            }
        }
        return nori__same(a->name, "dilations");
    default:
        return false;
    }
    return s->default_text && nori__same(text, s->default_text);
}

/* Attributes the older version lacks, where they say nothing. */
static void drop_unused(nori__node *n, const nori__schema *from, const nori__schema *to)
{
    for (uint32_t i = n->attr_count; i-- > 0;) {
        const nori__attr *a = &n->attrs[i];
        if (!find_attr(to, a->name) && is_default(a, find_attr(from, a->name))) {
            nori__node_drop_attr(n, a->name);
        }
    }
    /* Outputs nobody reads. */
    while (to && n->output_count > 1 && n->output_count > to->min_out) {
        nori__value *last = n->outputs[n->output_count - 1];
        uint16_t at = (uint16_t)(n->output_count - 1);
        bool fits = at < to->max_out &&
                    (!last || last->type.kind != NORI_KIND_TENSOR || at >= to->n_out ||
                     (to->out[at].types >> last->type.elem & 1));
        if (fits || (last && last->uses > 0)) {
            break;
        }
        if (last) {
            last->producer = NULL;
        }
        n->output_count--;
    }
}

/* Selu's constants got more digits with operator set 6: across it they are written down. */
static nori_status keep_constants(nori__lowering *l, nori__node *n)
{
    bool old = n->version < 6;
    if (!nori__node_is(n, NORI__OP_ONNX_Selu) || old == (l->opset < 6)) {
        return NORI_OK;
    }
    float alpha = nori__attr_f(n, "alpha", old ? 1.6732f : 1.67326319217681884765625f);
    float gamma = nori__attr_f(n, "gamma", old ? 1.0507f : 1.05070102214813232421875f);
    return nori__node_set_float(n, "alpha", alpha) && nori__node_set_float(n, "gamma", gamma)
               ? NORI_OK
               : nori__no_memory(l->err);
}

/* Axes count from the end only since operator set 11. */
static nori_status count_from_front(nori__lowering *l, nori__node *n, const nori__schema *to)
{
    bool grows = nori__node_is(n, NORI__OP_ONNX_Unsqueeze);
    const nori__attr *a = nori__attr_find(n, "axis");
    const nori__schema_attr *known = find_attr(to, "axis");
    bool always = known && known->default_text && known->default_text[0] == '-'; /* OneHot */
    int rank = nori__lower_rank(n, 0);
    if (a && a->kind == NORI__ATTR_INT && a->v.i < 0 && !always) {
        if (rank < 0) {
            return nori__lower_keep(l, "axis %lld counts from the end, which needs a known rank "
                                    "before operator set 11", (long long)a->v.i);
        }
        return nori__node_set_int(n, "axis", a->v.i + rank) ? NORI_OK : nori__no_memory(l->err);
    }
    size_t count;
    const int64_t *axes = nori__attr_ints(n, "axes", &count);
    bool negative = false;
    for (size_t i = 0; axes && i < count; i++) {
        negative = negative || axes[i] < 0;
    }
    if (!negative) {
        return NORI_OK;
    }
    if (rank < 0 || count > NORI_MAX_RANK) {
        return nori__lower_keep(l, "axes count from the end, which needs a known rank before operator "
                                "set 11");
    }
    int64_t front[NORI_MAX_RANK];
    for (size_t i = 0; i < count; i++) {
        front[i] = axes[i] + (axes[i] < 0 ? rank + (grows ? (int64_t)count : 0) : 0);
    }
    return nori__node_set_ints(n, "axes", front, count) ? NORI_OK : nori__no_memory(l->err);
}

/* Text attributes and required inputs, which the form alone does not tell. */
static nori_status look_closer(nori__lowering *l, const nori__node *n, const nori__schema *to)
{
    for (size_t i = 0; i < NORI__COUNT(words); i++) {
        if (nori__node_is(n, words[i].op) && l->opset < words[i].from &&
            nori__same(nori__attr_s(n, words[i].attr, ""), words[i].word)) {
            return nori__lower_keep(l, "%s %s came with operator set %d", words[i].attr,
                                    words[i].word, words[i].from);
        }
    }
    for (uint16_t i = 0; i < to->n_attr; i++) {
        if (to->attrs[i].required && !nori__attr_find(n, to->attrs[i].name)) {
            return nori__lower_keep(l, "the attribute %s must be there in version %d",
                                    to->attrs[i].name, to->since);
        }
    }
    for (uint32_t i = 0; i < to->n_in && i < n->input_count; i++) {
        if (to->in[i].option == NORI__ARG_SINGLE && !n->inputs[i]) {
            return nori__lower_keep(l, "input %s must be there in version %d", to->in[i].name,
                                    to->since);
        }
    }
    return NORI_OK;
}

/* ---- one node ---- */

static nori_status lower_node(nori__lowering *l, nori__node *n)
{
    const nori__schema *from = nori__schema_find("", n->op_type, NORI__OPSET_MAX_ONNX);
    for (size_t i = 0; i < NORI__COUNT(steps) && !l->why[0]; i++) {
        if (nori__node_is(n, steps[i].op) && l->opset < steps[i].below) {
            NORI__TRY(steps[i].run(l, n));
        }
    }
    if (n->version < 13 && l->opset >= 13) {
        NORI__TRY(nori__raise_softmax(l, n));
    }
    if (l->opset > 10 && !l->why[0] && nori__resize_by_scale(n)) {
        nori__lower_keep(l, "rounds by its scales, which are not known, or of both kinds: no word for "
                            "that from 11 on");
    }
    NORI__TRY(keep_constants(l, n));
    const nori__schema *to = nori__schema_find("", n->op_type, l->opset);
    trim(n);
    drop_unused(n, from, to);
    if (l->opset < 11 && !l->why[0]) {
        NORI__TRY(count_from_front(l, n, to));
    }
    if (l->why[0] || !nori__form_fits(n, l->opset, l->why, sizeof(l->why))) {
        return NORI_OK;
    }
    l->why[0] = 0;
    if (!l->same && !nori__form_means_same(n, l->opset)) {
        return nori__lower_keep(l, "means something else in version %d", to->since);
    }
    return look_closer(l, n, to);
}

static nori_status block(nori__lowering *l, const char *path, const char *op)
{
    nori_blocker *b = nori__arena_alloc(l->arena, sizeof(*b));
    if (b) {
        *b = (nori_blocker){.size = sizeof(*b), .path = nori__arena_text(l->arena, path),
                            .op = nori__arena_text(l->arena, op),
                            .reason = nori__arena_text(l->arena, l->why)};
    }
    bool ok = b && b->path && b->op && b->reason && nori__vec_push(l->blockers, b);
    return ok ? NORI_OK : nori__no_memory(l->err);
}

static nori_status block_node(nori__lowering *l, const nori__node *n)
{
    char path[256];
    nori__node_path(n, path, sizeof(path));
    return block(l, path, n->op_type);
}

/* Bodies of the model's own functions are written for operator sets of their own. */
static nori_status look_at_functions(nori__lowering *l)
{
    for (size_t i = 0; l->ir->pb && i < l->ir->pb->functions.count; i++) {
        const nori__pb_function *f = &l->ir->pb->functions.items[i];
        for (size_t k = 0; k < f->opsets.count; k++) {
            const nori__pb_opset *o = &f->opsets.items[k];
            bool main = o->domain.n == 0 || nori__str_is(o->domain, "ai.onnx");
            if (main && o->version != l->opset) {
                char name[128];
                snprintf(name, sizeof(name), "%.*s", (int)(f->name.n < 100 ? f->name.n : 100),
                         f->name.p ? f->name.p : "");
                nori__lower_keep(l, "is a function of the model, written for operator set %lld",
                                 (long long)o->version);
                NORI__TRY(block(l, name, "function"));
            }
        }
    }
    return NORI_OK;
}

/* ---- the walk ---- */

static bool main_node(const nori__node *n)
{
    return n->domain[0] == 0;
}

static bool renamed(const nori__node *n)
{
    return nori__node_is(n, NORI__OP_ONNX_Upsample) ||
           (nori__node_is(n, NORI__OP_ONNX_Resize) && n->version < 11);
}

/* Marks what need not become the newest form. */
static nori_status settle(nori__lowering *l)
{
    for (nori__graph *g = l->ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            l->nodes++;
            l->why[0] = 0;
            n->settled = !main_node(n) || !n->op || n->version == 0;
            if (n->settled) {
                continue;
            }
            if (nori__form_fits(n, l->opset, l->why, sizeof(l->why)) &&
                nori__form_means_same(n, l->opset)) {
                l->why[0] = 0;
                NORI__TRY(look_closer(l, n, nori__schema_find("", n->op_type, l->opset)));
                n->settled = !l->why[0];
            }
            /* On the way down the form it has is near enough, but for operators that changed name
             * and inputs. */
            n->settled = n->settled || (n->version > l->opset && !renamed(n));
        }
    }
    return NORI_OK;
}

static nori_status lower_all(nori__lowering *l)
{
    for (nori__graph *g = l->ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first, *next; n; n = next) {
            next = n->next;
            l->why[0] = 0;
            l->same = false;
            uint64_t edits = l->ir->edits;
            if (main_node(n) && (!n->op || n->version == 0)) {
                nori__lower_keep(l, "is not known under the model's operator set");
            } else if (main_node(n) && (!n->settled || n->version > l->opset)) {
                NORI__TRY(lower_node(l, n));
            }
            l->rewritten += n->pb && (!n->settled || l->ir->edits != edits);
            if (l->why[0]) {
                NORI__TRY(block_node(l, n));
            }
        }
    }
    return NORI_OK;
}

nori_status nori__lower(nori__lowering *l)
{
    nori__ir *ir = l->ir;
    nori__resolve(ir);
    NORI__TRY(nori__infer_graph(ir, l->err));
    NORI__TRY(settle(l));
    NORI__TRY(nori__lower_expand(l));
    NORI__TRY(nori__upgrade(ir, l->err));
    NORI__TRY(look_at_functions(l));
    NORI__TRY(lower_all(l));
    for (size_t i = 0; i < ir->opset_count; i++) {
        if (ir->opsets[i].domain[0] == 0) {
            ir->opsets[i].version = l->opset;
        }
    }
    nori__resolve(ir);
    return NORI_OK;
}
