/* check_shapes.c: what one node tells about its outputs, and whether that agrees with what the
 * file declares. Inference functions know the newest form of an operator; a node of an older
 * version is given to them only where it reads the same in the newest one. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/check/check_internal.h"

enum { MAX_ARGS = 4096 }; /* nodes with more inputs or outputs are not inferred */

static const nori__schema_attr *find_attr(const nori__schema *s, const char *name)
{
    for (unsigned i = 0; i < s->n_attr; i++) {
        if (nori__same(s->attrs[i].name, name)) {
            return &s->attrs[i];
        }
    }
    return NULL;
}

static const nori__schema_arg *formal_input(const nori__schema *s, uint32_t i)
{
    if (i < s->n_in) {
        return &s->in[i];
    }
    return s->n_in > 0 && s->in[s->n_in - 1].option == NORI__ARG_VARIADIC ? &s->in[s->n_in - 1]
                                                                          : NULL;
}

/* Whether the node means the same when read as the newest version of its operator. */
static bool reads_as_newest(const nori__node *node, const nori__schema *s)
{
    if (node->op && node->op->id == NORI__OP_CUSTOM) {
        return true; /* each version has an inference of its own */
    }
    const nori__schema *newest = nori__schema_find(s->domain, s->name, nori__opset_max(s->domain));
    if (!newest || newest == s) {
        return newest != NULL;
    }
    for (uint32_t i = 0; i < node->attr_count; i++) {
        const nori__schema_attr *a = find_attr(newest, node->attrs[i].name);
        if (!a || a->kind != node->attrs[i].kind) {
            return false;
        }
    }
    for (unsigned i = 0; i < newest->n_attr; i++) {
        const nori__schema_attr *a = &newest->attrs[i];
        if (nori__attr_find(node, a->name)) {
            continue;
        }
        const nori__schema_attr *old = find_attr(s, a->name);
        if (a->required ||
            (old && (!old->default_text != !a->default_text ||
                     (a->default_text && !nori__same(a->default_text, old->default_text))))) {
            return false;
        }
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        const nori__schema_arg *new = formal_input(newest, i), *old = formal_input(s, i);
        if (node->inputs[i] && (!new || !old || !nori__same(new->name, old->name))) {
            return false;
        }
    }
    return node->input_count >= newest->min_in && node->output_count <= newest->max_out;
}

static void load(nori__shape *out, const nori__value *v)
{
    memset(out, 0, sizeof(*out));
    out->rank = -1;
    out->data_count = -1;
    if (!v) {
        return;
    }
    out->kind = v->type.kind;
    out->elem = v->type.elem;
    out->rank = v->type.rank;
    for (int i = 0; i < v->type.rank; i++) {
        out->dims[i] = v->type.dims[i];
    }
    out->of = v->type.of;
    out->tensor = nori__value_as_is(v);
    if (v->data && v->data_count >= 0 && v->data_count <= NORI_MAX_RANK) {
        out->data_count = v->data_count;
        for (int32_t i = 0; i < v->data_count; i++) {
            out->data[i] = v->data[i];
        }
    }
}

/* "[1, N, ?]" */
static void shape_text(int rank, const nori__dim *dims, char *out, size_t size)
{
    size_t at = 0;
    int n = snprintf(out, size, "[");
    for (int i = 0; i < rank && n >= 0 && at + (size_t)n < size; i++) {
        at += (size_t)n;
        const char *comma = i ? ", " : "";
        if (dims[i].value >= 0) {
            n = snprintf(out + at, size - at, "%s%" PRId64, comma, dims[i].value);
        } else {
            n = snprintf(out + at, size - at, "%s%s", comma, dims[i].name ? dims[i].name : "?");
        }
    }
    if (n >= 0 && at + (size_t)n < size) {
        at += (size_t)n;
        snprintf(out + at, size - at, "]");
    }
}

/* Takes the inferred tensor type into a value, reporting where the file says otherwise. */
static bool merge(nori_findings *f, const nori__node *node, nori__value *v, nori__shape *s)
{
    nori__type *t = &v->type;
    nori__arena *arena = &node->graph->ir->arena;
    if (t->kind != NORI_KIND_UNKNOWN && t->kind != s->kind) {
        nori__found_at(f, NORI_SEVERITY_ERROR, "type", node, NULL,
                       "output %s is declared as another kind of value than %s makes", v->name,
                       node->op_type);
        return true;
    }
    if (s->kind != NORI_KIND_TENSOR) {
        *t = (nori__type){.kind = s->kind, .elem = s->elem, .rank = s->rank, .of = s->of};
        t->rank = -1;
        return true;
    }
    if (t->elem && s->elem && t->elem != s->elem) {
        nori__found_at(f, NORI_SEVERITY_ERROR, "type", node, NULL,
                       "output %s is declared %s, %s makes %s", v->name,
                       nori_type_name((nori_type)t->elem), node->op_type,
                       nori_type_name((nori_type)s->elem));
    }
    bool agrees = t->rank < 0 || s->rank < 0 || t->rank == s->rank;
    if (t->kind == NORI_KIND_TENSOR && t->rank >= 0 && s->rank == t->rank) {
        for (int i = 0; i < s->rank; i++) {
            nori__dim said = t->dims[i];
            if (said.value >= 0 && s->dims[i].value >= 0 && said.value != s->dims[i].value) {
                agrees = false;
            } else if (s->dims[i].value < 0 && (said.value >= 0 || said.name)) {
                s->dims[i] = said; /* the file knows more */
            }
        }
    }
    if (!agrees) {
        char declared[256], inferred[256];
        shape_text(t->rank, t->dims, declared, sizeof(declared));
        shape_text(s->rank, s->dims, inferred, sizeof(inferred));
        nori__found_at(f, NORI_SEVERITY_WARNING, "shape", node,
                       "the declaration is ignored; write the model anew without it",
                       "output %s is declared %s, %s makes %s", v->name, declared, node->op_type,
                       inferred);
    }
    if (s->rank >= 0) {
        nori_type elem = (nori_type)(s->elem ? s->elem : t->elem);
        if (!nori__type_set(arena, t, elem, s->rank, s->dims)) {
            return false;
        }
    } else {
        t->kind = NORI_KIND_TENSOR;
        t->elem = s->elem ? s->elem : t->elem;
    }
    if (s->data_count >= 0 && s->data_count <= NORI_MAX_RANK) {
        nori__dim *data = nori__arena_array(arena, (size_t)s->data_count, sizeof(*data));
        if (!data) {
            return false;
        }
        for (int32_t i = 0; i < s->data_count; i++) {
            data[i] = s->data[i];
        }
        v->data = data;
        v->data_count = s->data_count;
    }
    return true;
}

static nori_status infer(nori_findings *f, nori__node *node, nori__shape *in, nori__shape *out,
                         nori_error *err)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        load(&in[i], node->inputs[i]);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        load(&out[i], NULL);
    }
    nori_error problem = {0};
    nori__infer c = {node, in, out, &node->graph->ir->arena, &problem};
    nori_status status = node->op->infer(&c);
    if (status == NORI_ERROR_MEMORY) {
        return nori__no_memory(err);
    }
    if (status != NORI_OK) {
        nori__found_at(f, NORI_SEVERITY_ERROR, "shape", node, problem.hint, "%s: %s", node->op_type,
                       problem.message);
        return NORI_OK;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] && out[i].kind != NORI_KIND_UNKNOWN &&
            !merge(f, node, node->outputs[i], &out[i])) {
            return nori__no_memory(err);
        }
    }
    return NORI_OK;
}

nori_status nori__check_shapes(nori_findings *f, nori__node *node, const nori__schema *s,
                               const nori__type *known, bool good, nori_error *err)
{
    nori_status status = NORI_OK;
    if (good && node->op && node->input_count <= MAX_ARGS && node->output_count <= MAX_ARGS &&
        reads_as_newest(node, s)) {
        size_t count = (size_t)node->input_count + node->output_count;
        nori__shape *shapes = nori__alloc(f->allocator, count * sizeof(*shapes));
        if (!shapes) {
            return nori__no_memory(err);
        }
        status = infer(f, node, shapes, shapes + node->input_count, err);
        nori__release(f->allocator, shapes, count * sizeof(*shapes));
    }
    for (uint32_t i = 0; i < node->output_count && status == NORI_OK; i++) {
        nori__value *v = node->outputs[i];
        if (v && v->type.kind == NORI_KIND_UNKNOWN && known[i].kind != NORI_KIND_UNKNOWN) {
            v->type.kind = known[i].kind;
            v->type.elem = known[i].elem;
            v->type.of = known[i].of;
            v->type.rank = -1;
        }
    }
    return status;
}

static void seed(nori__graph *body, uint32_t i, const nori__type *type)
{
    if (i < body->input_count && body->inputs[i]->type.kind == NORI_KIND_UNKNOWN && type) {
        body->inputs[i]->type =
            (nori__type){.kind = type->kind, .elem = type->elem, .rank = -1, .of = type->of};
    }
}

void nori__check_seed(nori__node *node, nori__graph *body)
{
    static const nori__type int64 = {.kind = NORI_KIND_TENSOR, .elem = NORI_INT64, .rank = -1};
    static const nori__type truth = {.kind = NORI_KIND_TENSOR, .elem = NORI_BOOL, .rank = -1};
    if (nori__node_is(node, NORI__OP_ONNX_Loop)) {
        seed(body, 0, &int64);
        seed(body, 1, &truth);
        for (uint32_t i = 2; i < node->input_count; i++) {
            seed(body, i, node->inputs[i] ? &node->inputs[i]->type : NULL);
        }
    } else if (nori__node_is(node, NORI__OP_ONNX_Scan)) {
        uint32_t first = node->version == 8; /* version 8 has sequence lengths in front */
        for (uint32_t i = first; i < node->input_count; i++) {
            seed(body, i - first, node->inputs[i] ? &node->inputs[i]->type : NULL);
        }
    } else if (nori__node_is(node, NORI__OP_ONNX_SequenceMap)) {
        for (uint32_t i = 0; i < node->input_count; i++) {
            const nori__type *t = node->inputs[i] ? &node->inputs[i]->type : NULL;
            seed(body, i, t && t->kind == NORI_KIND_SEQUENCE ? t->of : t);
        }
    }
}
