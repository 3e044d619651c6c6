/* merge_join.c: two models in one: nodes, inputs, outputs, functions, metadata, operator sets. */
#include "tools/edit/merging.h"

static nori_status join(nori__merging *m, const void *a, size_t na, const void *b, size_t nb, size_t size,
                        void **out)
{
    *out = nori__arena_array(m->arena, na + nb + 1, size);
    if (!*out) {
        return nori__no_memory(m->err);
    }
    if (na > 0) {
        memcpy(*out, a, na * size);
    }
    if (nb > 0) {
        memcpy((char *)*out + na * size, b, nb * size);
    }
    return NORI_OK;
}
#define JOIN(m, to, x, y)                                                                        \
    do {                                                                                         \
        void *joined;                                                                            \
        NORI__TRY(join((m), (x).items, (x).count, (y).items, (y).count, sizeof(*(to).items), &joined)); \
        (to).items = joined;                                                                     \
        (to).count = (x).count + (y).count;                                                      \
    } while (0)

static bool joined_output(const nori__merging *m, nori__str name)
{
    for (size_t i = 0; i < m->n_joints; i++) {
        if (nori__str_is(name, m->joints[i].output)) {
            return true;
        }
    }
    return false;
}

/* What the second model brings: its inputs that are joined are no longer any. names: as they were. */
static void drop_joined(const nori__merging *m, const nori__pb_graph *was, nori__pb_graph *b)
{
    size_t n = 0;
    for (size_t i = 0; i < was->inputs.count; i++) {
        if (!nori__merge_joined_input(m, was->inputs.items[i].name)) {
            b->inputs.items[n++] = b->inputs.items[i];
        }
    }
    b->inputs.count = n;
    n = 0;
    for (size_t i = 0; i < was->initializers.count; i++) { /* defaults of such inputs */
        if (!nori__merge_joined_input(m, was->initializers.items[i].name)) {
            b->initializers.items[n++] = b->initializers.items[i];
        }
    }
    b->initializers.count = n;
    n = 0;
    for (size_t i = 0; i < was->value_info.count; i++) {
        if (!nori__merge_joined_input(m, was->value_info.items[i].name)) {
            b->value_info.items[n++] = b->value_info.items[i];
        }
    }
    b->value_info.count = n;
}

static nori_status join_outputs(nori__merging *m, const nori__pb_graph *a, const nori__pb_graph *b,
                                nori__pb_graph *to)
{
    size_t room = a->outputs.count + b->outputs.count + 1;
    nori__pb_value *out = nori__arena_array(m->arena, room, sizeof(*out));
    nori__pb_value *info = nori__arena_array(m->arena, to->value_info.count + room, sizeof(*info));
    if (!out || !info) {
        return nori__no_memory(m->err);
    }
    size_t n = 0, k = to->value_info.count;
    if (k > 0) {
        memcpy(info, to->value_info.items, k * sizeof(*info));
    }
    for (size_t i = 0; i < a->outputs.count; i++) {
        bool inner = joined_output(m, a->outputs.items[i].name) && !m->options->keep;
        bool input = false;
        for (size_t j = 0; j < a->inputs.count; j++) {
            input = input || (a->inputs.items[j].name.n == a->outputs.items[i].name.n &&
                              memcmp(a->inputs.items[j].name.p, a->outputs.items[i].name.p,
                                     a->outputs.items[i].name.n) == 0);
        }
        if (!inner) {
            out[n++] = a->outputs.items[i];
        } else if (!input) {
            info[k++] = a->outputs.items[i];
        }
    }
    for (size_t i = 0; i < b->outputs.count; i++) { /* one may be what was handed on */
        bool twice = false;
        for (size_t j = 0; j < n; j++) {
            twice = twice || (out[j].name.n == b->outputs.items[i].name.n &&
                              memcmp(out[j].name.p, b->outputs.items[i].name.p, out[j].name.n) == 0);
        }
        if (!twice) {
            out[n++] = b->outputs.items[i];
        }
    }
    to->outputs.items = out;
    to->outputs.count = n;
    to->value_info.items = info;
    to->value_info.count = k;
    return NORI_OK;
}

static bool same_str(nori__str a, nori__str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static nori_status join_functions(nori__merging *m, const nori__pb_model *a, const nori__pb_model *b,
                                  nori__pb_model *to)
{
    JOIN(m, to->functions, a->functions, b->functions);
    size_t n = a->functions.count;
    for (size_t i = 0; i < b->functions.count; i++) {
        const nori__pb_function *f = &b->functions.items[i];
        bool there = false;
        for (size_t k = 0; k < a->functions.count && !there; k++) {
            const nori__pb_function *g = &a->functions.items[k];
            there = same_str(f->name, g->name) && same_str(f->domain, g->domain) &&
                    same_str(f->overload, g->overload);
            if (there && !same_str(f->head.bytes, g->head.bytes)) {
                return nori__fail(m->err, NORI_ERROR_UNSUPPORTED,
                                  "both models have a function %.*s, and they are not the same",
                                  NORI__NAME_N(f->name));
            }
        }
        if (!there) {
            to->functions.items[n++] = *f;
        }
    }
    to->functions.count = n;
    return NORI_OK;
}

static nori_status join_metadata(nori__merging *m, const nori__pb_model *a, const nori__pb_model *b,
                                 nori__pb_model *to)
{
    JOIN(m, to->metadata, a->metadata, b->metadata);
    size_t n = a->metadata.count;
    for (size_t i = 0; i < b->metadata.count; i++) {
        bool there = false;
        for (size_t k = 0; k < a->metadata.count && !there; k++) {
            there = same_str(a->metadata.items[k].key, b->metadata.items[i].key);
        }
        if (!there) {
            to->metadata.items[n++] = b->metadata.items[i];
        }
    }
    to->metadata.count = n;
    return NORI_OK;
}

static bool uses_domain(const nori__ir *ir, const char *domain)
{
    for (const nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (const nori__node *n = g->first; n; n = n->next) {
            if (nori__same(n->domain, domain)) {
                return true;
            }
        }
    }
    return false;
}

static nori_status join_opsets(nori__merging *m, const nori__pb_model *a, const nori__pb_model *b,
                               nori__pb_model *to)
{
    const nori__ir *ia = nori__model_ir(m->a), *ib = nori__model_ir(m->b);
    JOIN(m, to->opsets, a->opsets, b->opsets);
    size_t n = a->opsets.count;
    for (size_t i = 0; i < ib->opset_count; i++) {
        const char *domain = ib->opsets[i].domain;
        int64_t theirs = nori__ir_opset(ia, domain), own = ib->opsets[i].version;
        if (theirs == 0) {
            to->opsets.items[n++] = b->opsets.items[i];
            continue;
        }
        if (theirs == own) {
            continue;
        }
        if (uses_domain(ia, domain) && uses_domain(ib, domain)) {
            nori_status s = nori__fail(m->err, NORI_ERROR_UNSUPPORTED,
                                       "the models use operator sets %lld and %lld of %s, which cannot be "
                                       "brought together", (long long)theirs, (long long)own,
                                       domain[0] ? domain : "ai.onnx");
            nori__hint(m->err, "convert one of them first: nori convert --opset, or run them one after "
                               "the other");
            return s;
        }
        for (size_t k = 0; k < ia->opset_count; k++) { /* that of the one which uses it */
            if (nori__same(ia->opsets[k].domain, domain) && uses_domain(ib, domain)) {
                to->opsets.items[k].version = own;
            }
        }
    }
    to->opsets.count = n;
    return NORI_OK;
}

nori_status nori__merge_join(nori__merging *m, nori__pb_graph *other, nori__pb_graph *graph,
                             nori__pb_model *to)
{
    const nori__pb_model *a = m->a->source->pb, *b = m->b->source->pb;
    drop_joined(m, b->graph, other);
    JOIN(m, graph->nodes, a->graph->nodes, other->nodes);
    JOIN(m, graph->initializers, a->graph->initializers, other->initializers);
    JOIN(m, graph->sparse_initializers, a->graph->sparse_initializers, other->sparse_initializers);
    JOIN(m, graph->inputs, a->graph->inputs, other->inputs);
    JOIN(m, graph->value_info, a->graph->value_info, other->value_info);
    JOIN(m, graph->quantization, a->graph->quantization, other->quantization);
    NORI__TRY(join_outputs(m, a->graph, other, graph));
    NORI__TRY(join_functions(m, a, b, to));
    NORI__TRY(join_metadata(m, a, b, to));
    NORI__TRY(join_opsets(m, a, b, to));
    return NORI_OK;
}
