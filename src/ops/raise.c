/* raise.c: writing a model under a newer operator set.
 *
 * Most new versions of an operator only take more types: such nodes stay as they are. Where the form
 * changed (an attribute became an input), upgrade.c rewrites the node. Where the meaning changed
 * under one form, a node is only taken along when both meanings give the same for it. */
#include <stdio.h>

#include "ops/forms.h"
#include "ops/resize.h"
#include "ops/schema.h"
#include "ops/upgrade.h"

/* Versions from which a node of the same form means something else. What shows in the form itself
 * (an attribute that is gone, a new input) needs no row: the facts tell. */
static const struct {
    nori__op_id op;
    int from;
} meanings[] = {
#define ROW(name, from) {NORI__OP_ONNX_##name, from}
    ROW(Add, 7),      ROW(Sub, 7),          ROW(Mul, 7),        ROW(Div, 7),
    ROW(Pow, 7),      ROW(And, 7),          ROW(Or, 7),         ROW(Xor, 7),
    ROW(Equal, 7),    ROW(Greater, 7),      ROW(Less, 7),       ROW(PRelu, 7),
    ROW(Gemm, 7),     ROW(Concat, 4),       ROW(Softmax, 13),   ROW(LogSoftmax, 13),
    ROW(Hardmax, 13), ROW(Dropout, 7),      ROW(LpPool, 2),     ROW(GlobalLpPool, 2),
    ROW(Resize, 11),  ROW(RoiAlign, 16),    ROW(GridSample, 20), ROW(DFT, 20),
    ROW(Scan, 9),     ROW(GroupNormalization, 21), ROW(BatchNormalization, 7),
#undef ROW
};

/* How many changes of meaning a version has behind it. */
static int epoch(const nori__node *n, int64_t version)
{
    int count = 0;
    for (size_t i = 0; i < NORI__COUNT(meanings); i++) {
        count += meanings[i].op == n->op->id && version >= meanings[i].from;
    }
    if (nori__node_is(n, NORI__OP_ONNX_BatchNormalization) && n->output_count > 1) {
        count += version >= 14; /* other outputs in training */
    }
    if (nori__node_is(n, NORI__OP_ONNX_Split) && n->input_count < 2 &&
        !nori__attr_find(n, "split") && !nori__attr_find(n, "num_outputs")) {
        count += version >= 18; /* equal parts must be asked for */
    }
    return count;
}

/* The last axis of a tensor, where Softmax's two meanings agree; the axis is then written down, as
 * its default changed too. */
static bool softmax_agrees(nori__node *n)
{
    bool soft = nori__node_is(n, NORI__OP_ONNX_Softmax) ||
                nori__node_is(n, NORI__OP_ONNX_LogSoftmax) ||
                nori__node_is(n, NORI__OP_ONNX_Hardmax);
    const nori__type *type = soft && n->input_count > 0 && n->inputs[0] ? &n->inputs[0]->type : NULL;
    if (!type || type->rank < 1) {
        return false;
    }
    int64_t axis = nori__attr_i(n, "axis", 1);
    axis += axis < 0 ? type->rank : 0;
    return axis == type->rank - 1 && nori__node_set_int(n, "axis", axis);
}

/* Whether an argument may be of a type, as far as that is known. */
static bool takes(uint64_t types, const nori__type *t)
{
    int of = t->of ? t->of->kind : NORI_KIND_UNKNOWN;
    switch (t->kind) {
    case NORI_KIND_TENSOR:
        return t->elem == NORI_UNDEFINED || (types >> t->elem & 1);
    case NORI_KIND_SEQUENCE:
        return ((types >> NORI__TYPES_SEQ_TENSOR & 1) && of != NORI_KIND_MAP) ||
               ((types >> NORI__TYPES_SEQ_MAP & 1) && of != NORI_KIND_TENSOR);
    case NORI_KIND_OPTIONAL:
        return ((types >> NORI__TYPES_OPT_TENSOR & 1) && of != NORI_KIND_SEQUENCE) ||
               ((types >> NORI__TYPES_OPT_SEQ & 1) && of != NORI_KIND_TENSOR);
    case NORI_KIND_MAP:
        return types >> NORI__TYPES_MAP & 1;
    default:
        return true;
    }
}

/* The first argument whose type is not one of those listed, or -1. */
static int type_misfit(const nori__schema_arg *args, uint16_t n_args, nori__value *const *values,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count && n_args > 0; i++) {
        const nori__schema_arg *arg = &args[i < n_args ? i : n_args - 1u];
        if (values[i] && !takes(arg->types, &values[i]->type)) {
            return (int)i;
        }
    }
    return -1;
}

static const nori__schema_attr *attr_of(const nori__schema *s, const nori__attr *a)
{
    for (uint16_t k = 0; k < s->n_attr; k++) {
        if (nori__same(s->attrs[k].name, a->name) &&
            (s->attrs[k].kind == a->kind || a->kind == NORI__ATTR_NONE)) {
            return &s->attrs[k];
        }
    }
    return NULL;
}

/* Where no version of the operator is in force: when it came. */
static void say_absent(const nori__node *n, const nori__schema *s, char *why, size_t size)
{
    const nori__schema *first = NULL;
    for (int64_t v = 1; v <= NORI__OPSET_MAX_ONNX && !first; v++) {
        first = nori__schema_find("", n->op_type, v);
        first = first && first->runtime ? NULL : first;
    }
    if (s && s->deprecated && !s->runtime) {
        snprintf(why, size, "left ONNX with operator set %d", s->since);
    } else if (first) {
        snprintf(why, size, "came with operator set %d", first->since);
    } else {
        snprintf(why, size, "is no operator of ONNX");
    }
}

bool nori__form_fits(const nori__node *n, int64_t opset, char *why, size_t size)
{
    const nori__schema *s = nori__schema_find("", n->op_type, opset);
    /* What no operator set has stays where a file has it, and is nothing to write others in. */
    if (!s || (s->runtime ? n->version != s->since : s->deprecated)) {
        say_absent(n, s, why, size);
        return false;
    }
    if (s->deprecated && opset >= 10) {
        snprintf(why, size, "was experimental: runtimes do not have it from operator set 10 on");
        return false;
    }
    if (n->input_count > s->max_in || n->input_count < s->min_in) {
        snprintf(why, size, "has %u inputs; version %d takes %u to %u", n->input_count, s->since,
                 s->min_in, s->max_in);
        return false;
    }
    if (n->output_count > s->max_out) {
        snprintf(why, size, "has %u outputs; version %d has %u", n->output_count, s->since,
                 s->max_out);
        return false;
    }
    if (n->output_count < s->min_out) {
        snprintf(why, size, "has %u outputs; version %d has at least %u", n->output_count, s->since,
                 s->min_out);
        return false;
    }
    for (uint32_t i = 0; i < n->attr_count; i++) {
        if (!attr_of(s, &n->attrs[i])) {
            snprintf(why, size, "the attribute %.60s is not there in version %d",
                     n->attrs[i].name, s->since);
            return false;
        }
    }
    int in = type_misfit(s->in, s->n_in, n->inputs, n->input_count);
    int out = in < 0 ? type_misfit(s->out, s->n_out, n->outputs, n->output_count) : -1;
    if (in >= 0 || out >= 0) {
        const nori__value *v = in >= 0 ? n->inputs[in] : n->outputs[out];
        snprintf(why, size, "%s %d is %s, which version %d does not take",
                 in >= 0 ? "input" : "output", in >= 0 ? in : out,
                 v->type.kind == NORI_KIND_TENSOR ? nori_type_name((nori_type)v->type.elem)
                 : v->type.kind == NORI_KIND_SEQUENCE ? "a sequence"
                 : v->type.kind == NORI_KIND_OPTIONAL ? "an optional" : "a map", s->since);
        return false;
    }
    return true;
}

static bool in_main_domain(const nori__node *n)
{
    return n->domain[0] == 0 && n->op && n->version > 0;
}

bool nori__form_means_same(const nori__node *n, int64_t opset)
{
    return epoch(n, n->version) == epoch(n, opset);
}

static bool stays(const nori__node *n, int64_t opset)
{
    char why[128];
    return nori__form_fits(n, opset, why, sizeof(why)) && nori__form_means_same(n, opset);
}

static nori_status finish(nori__ir *ir, int64_t opset, nori_error *err)
{
    char list[512] = "", why[128];
    size_t used = 0, blocked = 0;
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            if (!nori__resize_by_scale(n) &&
                (!in_main_domain(n) || n->settled || stays(n, opset) ||
                 (nori__form_fits(n, opset, why, sizeof(why)) && softmax_agrees(n)))) {
                continue;
            }
            if (blocked++ < 5) {
                char path[96];
                nori__node_path(n, path, sizeof(path));
                int wrote = snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
                                     path);
                used += wrote > 0 && (size_t)wrote < sizeof(list) - used ? (size_t)wrote : 0;
            }
        }
    }
    if (blocked > 0) {
        return nori__fail(err, NORI_ERROR_UNSUPPORTED,
                          "%zu node%s cannot be written under operator set %lld: %s%s", blocked,
                          blocked == 1 ? "" : "s", (long long)opset, list,
                          blocked > 5 ? " ..." : "");
    }
    for (size_t i = 0; i < ir->opset_count; i++) {
        if (ir->opsets[i].domain[0] == 0) {
            ir->opsets[i].version = opset;
        }
    }
    nori__resolve(ir);
    return NORI_OK;
}

int64_t nori__ir_of_opset(int64_t opset)
{
    static const struct {
        int opset, ir;
    } rows[] = {{8, 3}, {9, 4}, {10, 5}, {11, 6}, {14, 7}, {18, 8}, {20, 9}, {22, 10}, {23, 11}};
    for (size_t i = 0; i < NORI__COUNT(rows); i++) {
        if (opset <= rows[i].opset) {
            return rows[i].ir;
        }
    }
    return 12;
}

nori_status nori__raise_opset(nori__ir *ir, int64_t opset, nori_error *err)
{
    if (nori__ir_opset(ir, "") >= opset) {
        return NORI_OK;
    }
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            n->settled = in_main_domain(n) && stays(n, opset);
        }
    }
    NORI__TRY(nori__upgrade(ir, err));
    NORI__TRY(finish(ir, opset, err));
    int64_t least = nori__ir_of_opset(opset);
    ir->ir_version = ir->ir_version < least ? least : ir->ir_version;
    return NORI_OK;
}
