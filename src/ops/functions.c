/* functions.c: calls of the model's own functions are replaced by their bodies, by rewriting the
 * messages' nodes into the graph. A function's nodes mean what its own operator sets say. */
#include "ops/resolve.h"
#include "ops/schema.h"

#define MAX_EXPANSIONS 100000 /* nodes a model may grow to by its functions */
#define MAX_NESTING 32

typedef struct expander {
    nori__ir *ir;
    nori_error *err;
    size_t made;
} expander;

static const nori__pb_function *find_function(const nori__ir *ir, const nori__node *n)
{
    for (size_t i = 0; ir->pb && i < ir->pb->functions.count; i++) {
        const nori__pb_function *f = &ir->pb->functions.items[i];
        if (nori__str_is(f->name, n->op_type) && nori__str_is(f->overload, n->overload) &&
            (nori__str_is(f->domain, n->domain) ||
             (nori__str_is(f->domain, "ai.onnx") && n->domain[0] == 0))) {
            return f;
        }
    }
    return NULL;
}

static const char *text(expander *e, nori__str s)
{
    return nori__arena_copy(&e->ir->arena, s.n ? s.p : "", s.n);
}

/* The value a body name stands for in this expansion; made when first seen. */
static nori_status body_value(expander *e, nori__map *names, nori__graph *g, nori__str s,
                              nori__value **out)
{
    *out = NULL;
    if (s.n == 0) {
        return NORI_OK;
    }
    *out = nori__map_get_n(names, s.p, s.n);
    if (!*out) {
        const char *key = text(e, s);
        *out = nori__value_new(g, NULL);
        if (!key || !*out || !nori__map_put(names, key, *out)) {
            return nori__no_memory(e->err);
        }
    }
    return NORI_OK;
}

static nori_status copy_attr(expander *e, const nori__pb_function *f, const nori__node *call,
                             const nori__pb_attr *pb, nori__node *to)
{
    const nori__attr *given = NULL;
    const nori__pb_attr *source = pb;
    if (pb->ref_name.n > 0) {
        for (uint32_t i = 0; i < call->attr_count && !given; i++) {
            given = nori__str_is(pb->ref_name, call->attrs[i].name) ? &call->attrs[i] : NULL;
        }
        source = NULL;
        for (size_t i = 0; !given && i < f->attrs.count; i++) {
            if (f->attrs.items[i].name.n == pb->ref_name.n &&
                memcmp(f->attrs.items[i].name.p, pb->ref_name.p, pb->ref_name.n) == 0) {
                source = &f->attrs.items[i];
            }
        }
        if (!given && !source) {
            return NORI_OK; /* an optional attribute nobody gave */
        }
    }
    nori__attr *a = &to->attrs[to->attr_count];
    if (given) {
        *a = *given;
    } else {
        a->kind = source->kind;
        switch (source->kind) {
        case NORI__ATTR_INT:
            a->v.i = source->i;
            break;
        case NORI__ATTR_FLOAT:
            a->v.f = source->f;
            break;
        case NORI__ATTR_STRING:
            a->v.s = text(e, source->s);
            a->count = source->s.n;
            break;
        case NORI__ATTR_INTS:
            a->v.ints = source->ints.items;
            a->count = source->ints.count;
            break;
        case NORI__ATTR_FLOATS:
            a->v.floats = source->floats.items;
            a->count = source->floats.count;
            break;
        case NORI__ATTR_STRINGS:
            a->v.strings = source->strings.items;
            a->count = source->strings.count;
            break;
        case NORI__ATTR_TENSOR:
            NORI__TRY(nori__tensor_from_pb(e->ir->allocator, source->t, NULL, &a->v.tensor, e->err));
            if (!nori__vec_push(&e->ir->tensors, a->v.tensor)) {
                nori_tensor_free(a->v.tensor);
                return nori__no_memory(e->err);
            }
            break;
        default:
            return nori__fail(e->err, NORI_ERROR_UNSUPPORTED,
                              "function %s has a subgraph, which cannot be expanded yet",
                              call->op_type);
        }
    }
    a->pb = NULL;
    a->ref = NULL;
    a->name = text(e, pb->name);
    to->attr_count++;
    return a->name ? NORI_OK : nori__no_memory(e->err);
}

static int64_t opset_of(const nori__pb_function *f, const char *domain)
{
    for (size_t i = 0; i < f->opsets.count; i++) {
        nori__str d = f->opsets.items[i].domain;
        if (nori__str_is(d, domain) || (domain[0] == 0 && nori__str_is(d, "ai.onnx"))) {
            return f->opsets.items[i].version;
        }
    }
    return 0;
}

static nori_status expand_node(expander *e, const nori__pb_function *f, nori__node *call,
                               nori__map *names, const nori__pb_node *pb)
{
    nori__graph *g = call->graph;
    nori__value **in = nori__arena_array(&e->ir->arena, pb->inputs.count + 1, sizeof(*in));
    nori__value **out = nori__arena_array(&e->ir->arena, pb->outputs.count + 1, sizeof(*out));
    const char *domain = text(e, pb->domain), *op = text(e, pb->op_type);
    if (!in || !out || !domain || !op) {
        return nori__no_memory(e->err);
    }
    domain = nori__same(domain, "ai.onnx") ? "" : domain;
    for (size_t i = 0; i < pb->inputs.count; i++) {
        NORI__TRY(body_value(e, names, g, pb->inputs.items[i], &in[i]));
    }
    for (size_t i = 0; i < pb->outputs.count; i++) {
        NORI__TRY(body_value(e, names, g, pb->outputs.items[i], &out[i]));
    }
    nori__node *n = nori__node_new(g, call, domain, op, in, pb->inputs.count, out, pb->outputs.count);
    if (!n) {
        return nori__no_memory(e->err);
    }
    n->name = nori__arena_printf(&e->ir->arena, "%s/%.*s", call->name, (int)pb->name.n,
                                 pb->name.n ? pb->name.p : "");
    n->overload = text(e, pb->overload);
    n->attrs = nori__arena_array(&e->ir->arena, pb->attrs.count + 1, sizeof(*n->attrs));
    if (!n->attrs || !n->name || !n->overload) {
        return nori__no_memory(e->err);
    }
    for (size_t i = 0; i < pb->attrs.count; i++) {
        NORI__TRY(copy_attr(e, f, call, &pb->attrs.items[i], n));
    }
    n->op = nori__op_find(domain, op);
    const nori__schema *s = nori__schema_find(domain, op, opset_of(f, domain));
    n->version = s ? s->since : 0;
    return NORI_OK;
}

static nori_status expand_call(expander *e, const nori__pb_function *f, nori__node *call)
{
    nori__map names;
    nori__map_init(&names, e->ir->allocator);
    nori_status s = NORI_OK;
    for (size_t i = 0; s == NORI_OK && i < f->inputs.count; i++) {
        nori__value *v = i < call->input_count ? call->inputs[i] : NULL;
        const char *key = text(e, f->inputs.items[i]);
        if (v && (!key || !nori__map_put(&names, key, v))) {
            s = nori__no_memory(e->err);
        }
    }
    /* An output that the body only passes through keeps its own value and an Identity. */
    for (size_t i = 0; s == NORI_OK && i < f->outputs.count && i < call->output_count; i++) {
        const char *key = text(e, f->outputs.items[i]);
        if (key && call->outputs[i] && !nori__map_get(&names, key) &&
            !nori__map_put(&names, key, call->outputs[i])) {
            s = nori__no_memory(e->err);
        }
    }
    for (size_t i = 0; s == NORI_OK && i < f->nodes.count; i++) {
        s = ++e->made > MAX_EXPANSIONS
                ? nori__fail(e->err, NORI_ERROR_LIMIT, "functions expand to more than %d nodes",
                             MAX_EXPANSIONS)
                : expand_node(e, f, call, &names, &f->nodes.items[i]);
    }
    for (size_t i = 0; s == NORI_OK && i < f->outputs.count && i < call->output_count; i++) {
        nori__str name = f->outputs.items[i];
        nori__value *v = nori__map_get_n(&names, name.n ? name.p : "", name.n);
        if (v && call->outputs[i] && v != call->outputs[i]) {
            nori__node *id = nori__node_new(call->graph, call, "", "Identity", &v, 1,
                                            &call->outputs[i], 1);
            if (!id) {
                s = nori__no_memory(e->err);
            } else {
                id->op = nori__op_find("", "Identity");
                id->version = 13;
            }
        }
    }
    nori__map_free(&names);
    if (s == NORI_OK) {
        nori__node_remove(call);
    }
    return s;
}

nori_status nori__inline_functions(nori__ir *ir, nori_error *err)
{
    expander e = {.ir = ir, .err = err};
    bool again = ir->pb && ir->pb->functions.count > 0;
    for (int round = 0; again; round++) {
        again = false;
        if (round == MAX_NESTING) {
            return nori__fail(err, NORI_ERROR_MODEL, "functions call each other more than %d deep",
                              MAX_NESTING);
        }
        for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
            for (nori__node *n = g->first, *next; n; n = next) {
                next = n->next;
                const nori__pb_function *f = find_function(ir, n);
                if (f) {
                    NORI__TRY(expand_call(&e, f, n));
                    again = true;
                }
            }
        }
    }
    return NORI_OK;
}
