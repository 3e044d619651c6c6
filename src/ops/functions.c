/* functions.c: calls of the model's own functions are replaced by their bodies.
 *
 * Each function called is built once as a graph of its own (a template), its nodes resolved under
 * the function's operator sets. Templates are finished callees first, by a stack of our own: when
 * a body is put somewhere it holds no calls any more. What a file can ask for by nesting is
 * bounded in depth and in nodes made. */
#include "ops/resolve.h"

#define MAX_NODES 80000 /* a model may grow to by its functions */

typedef enum state { NEW, OPEN, DONE } state;

typedef struct function {
    const nori__pb_function *pb;
    const char *name;
    nori__graph *body;
    nori__attr *defaults;
    size_t n_defaults;
    size_t nodes; /* of the finished body, subgraphs included */
    state state;
    struct function *below; /* on the stack */
    nori__graph *at_graph;  /* how far its body has been looked through */
    nori__node *at_node;
} function;

typedef struct expander {
    nori__ir *ir;
    nori_error *err;
    nori__map functions; /* by key() */
    nori__vec built;
    nori__cloner cloner;
    size_t made;
} expander;

/* ---- the table ---- */

static char *key(nori__arena *arena, nori__str domain, nori__str name, nori__str overload)
{
    if (nori__str_is(domain, "ai.onnx")) {
        domain.n = 0;
    }
    size_t n;
    if (!nori__add_size(domain.n, name.n, &n) || !nori__add_size(n, overload.n, &n) ||
        !nori__add_size(n, 3, &n)) {
        return NULL;
    }
    char *text = nori__arena_alloc(arena, n);
    nori__str parts[3] = {domain, name, overload};
    size_t at = 0;
    for (int i = 0; text && i < 3; i++) {
        if (parts[i].n > 0) {
            memcpy(text + at, parts[i].p, parts[i].n);
            at += parts[i].n;
        }
        text[at++] = i < 2 ? '\n' : 0;
    }
    return text;
}

static nori__str str(const char *text)
{
    return (nori__str){text, strlen(text)};
}

static nori_status fill_table(expander *e)
{
    const nori__pb_model *pb = e->ir->pb;
    for (size_t i = 0; i < pb->functions.count; i++) {
        const nori__pb_function *f = &pb->functions.items[i];
        char *k = key(&e->ir->arena, f->domain, f->name, f->overload);
        function *entry = nori__arena_alloc(&e->ir->arena, sizeof(*entry));
        if (!k || !entry) {
            return nori__no_memory(e->err);
        }
        entry->pb = f;
        entry->name = nori__arena_copy(&e->ir->arena, f->name.p, f->name.n);
        if (nori__map_get(&e->functions, k)) {
            return nori__fail(e->err, NORI_ERROR_MODEL,
                              "the function '%.200s' of domain '%.*s' is defined twice",
                              entry->name ? entry->name : "",
                              (int)(f->domain.n < 200 ? f->domain.n : 200),
                              f->domain.p ? f->domain.p : "");
        }
        if (!entry->name || !nori__map_put(&e->functions, k, entry)) {
            return nori__no_memory(e->err);
        }
    }
    return NORI_OK;
}

/* The function a node calls, or NULL; false: out of memory. A key longer than the buffer can only
 * be that of a function with a very long name. */
static bool find(expander *e, const nori__node *n, function **out)
{
    nori__arena scratch;
    nori__arena_init(&scratch, e->ir->allocator);
    char buffer[256];
    size_t d = strlen(n->domain), o = strlen(n->op_type), v = strlen(n->overload);
    if (d + o + v + 3 <= sizeof(buffer)) {
        memcpy(buffer, n->domain, d);
        buffer[d] = '\n';
        memcpy(buffer + d + 1, n->op_type, o);
        buffer[d + 1 + o] = '\n';
        memcpy(buffer + d + o + 2, n->overload, v + 1);
        *out = nori__map_get(&e->functions, buffer);
        return true;
    }
    char *k = key(&scratch, str(n->domain), str(n->op_type), str(n->overload));
    *out = k ? nori__map_get(&e->functions, k) : NULL;
    nori__arena_free(&scratch);
    return k != NULL;
}

/* ---- templates ---- */

static int64_t opset_of(const expander *e, const function *f, const char *domain)
{
    for (size_t i = 0; i < f->pb->opsets.count; i++) {
        nori__str d = f->pb->opsets.items[i].domain;
        if (nori__str_is(d, domain) || (domain[0] == 0 && nori__str_is(d, "ai.onnx"))) {
            return f->pb->opsets.items[i].version;
        }
    }
    return nori__ir_opset(e->ir, domain);
}

static nori_status open_function(expander *e, function *f)
{
    NORI__TRY(nori__function_build(e->ir, f->pb, &f->body, e->err));
    if (!nori__vec_push(&e->built, f->body)) {
        nori__function_free(f->body);
        return nori__no_memory(e->err);
    }
    for (nori__graph *g = f->body; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            nori__node_resolve_at(n, opset_of(e, f, n->domain));
        }
    }
    f->defaults = nori__arena_array(&e->ir->arena, f->pb->attrs.count, sizeof(*f->defaults));
    if (!f->defaults) {
        return nori__no_memory(e->err);
    }
    for (; f->n_defaults < f->pb->attrs.count; f->n_defaults++) {
        nori_status s = nori__attr_build(e->ir, &f->pb->attrs.items[f->n_defaults],
                                         &f->defaults[f->n_defaults], e->err);
        if (s != NORI_OK) {
            nori__where(e->err, "function '%.200s'", f->name);
            return s;
        }
    }
    f->state = OPEN;
    f->at_graph = f->body;
    f->at_node = f->body->first;
    return NORI_OK;
}

/* ---- calls ---- */

static nori_status expand_call(expander *e, const function *f, nori__node *call)
{
    if (call->input_count > f->body->input_count || call->output_count > f->body->output_count) {
        return nori__fail(e->err, NORI_ERROR_MODEL,
                          "the function '%.200s' takes %u inputs and gives %u outputs; the node "
                          "has %u and %u",
                          f->name, f->body->input_count, f->body->output_count, call->input_count,
                          call->output_count);
    }
    e->made += f->nodes;
    if (e->made > MAX_NODES) {
        return nori__fail(e->err, NORI_ERROR_LIMIT, "the model's functions expand to more than %d "
                                                    "nodes", MAX_NODES);
    }
    char prefix[128];
    size_t n = strlen(call->name[0] ? call->name : f->name);
    n = n < sizeof(prefix) ? n : sizeof(prefix) - 1;
    memcpy(prefix, call->name[0] ? call->name : f->name, n);
    prefix[n] = 0;
    nori__node *before = call->prev;
    nori__inlining what = {.body = f->body,
                           .prefix = prefix,
                           .in = call->inputs,
                           .out = call->outputs,
                           .n_in = call->input_count,
                           .n_out = call->output_count,
                           .call = call,
                           .defaults = f->defaults,
                           .n_defaults = f->n_defaults};
    NORI__TRY(nori__graph_inline(&e->cloner, call, &what, e->err));
    /* Nodes that only hand an output on were made without operator; the others came resolved. */
    for (nori__node *i = before ? before->next : call->graph->first; i != call; i = i->next) {
        if (!i->op && i->domain[0] == 0 && nori__same(i->op_type, "Identity")) {
            nori__node_resolve_at(i, 1);
        }
    }
    nori__node_remove(call);
    return NORI_OK;
}

/* Goes on through f's body, puts finished functions in place of their calls, and stops in front of
 * a call to one that is not finished. callee NULL: f is done. */
static nori_status advance(expander *e, function *f, function **callee)
{
    *callee = NULL;
    while (f->at_graph) {
        while (f->at_node) {
            nori__node *n = f->at_node;
            function *called;
            if (!find(e, n, &called)) {
                return nori__no_memory(e->err);
            }
            if (called && called->state != DONE) {
                *callee = called;
                return NORI_OK;
            }
            f->at_node = n->next;
            nori_status s = called ? expand_call(e, called, n) : NORI_OK;
            if (s != NORI_OK) {
                char path[256];
                nori__node_path(n, path, sizeof(path));
                nori__where(e->err, "%s", path);
                return s;
            }
        }
        f->at_graph = f->at_graph->next_graph;
        f->at_node = f->at_graph ? f->at_graph->first : NULL;
    }
    return NORI_OK;
}

static size_t count_nodes(const nori__graph *first)
{
    size_t n = 0;
    for (const nori__graph *g = first; g; g = g->next_graph) {
        n += g->node_count;
    }
    return n;
}

/* The main graph stands at the bottom of the stack, as a function that nobody calls. */
static nori_status expand_model(expander *e)
{
    NORI__TRY(fill_table(e));
    function main = {.name = "main", .body = e->ir->main, .state = OPEN};
    main.at_graph = main.body;
    main.at_node = main.body->first;
    int depth = 0;
    for (function *top = &main; top;) {
        function *callee;
        NORI__TRY(advance(e, top, &callee));
        if (!callee) {
            top->nodes = count_nodes(top->body);
            top->state = DONE;
            top = top->below;
            depth--;
            continue;
        }
        if (callee->state == OPEN) {
            return nori__fail(e->err, NORI_ERROR_MODEL,
                              "the function '%.200s' calls itself, by way of '%.200s'",
                              callee->name, top->name);
        }
        if (++depth > NORI__PB_MAX_NESTING) {
            return nori__fail(e->err, NORI_ERROR_LIMIT,
                              "functions call each other more than %d deep",
                              NORI__PB_MAX_NESTING);
        }
        NORI__TRY(open_function(e, callee));
        callee->below = top;
        top = callee;
    }
    return NORI_OK;
}

nori_status nori__inline_functions(nori__ir *ir, nori_error *err)
{
    if (!ir->pb || ir->pb->functions.count == 0) {
        return NORI_OK;
    }
    expander e = {.ir = ir, .err = err};
    nori__map_init(&e.functions, ir->allocator);
    nori__vec_init(&e.built, ir->allocator);
    nori__cloner_init(&e.cloner, ir->allocator);
    nori_status s = expand_model(&e);
    for (size_t i = 0; i < e.built.count; i++) {
        nori__function_free(e.built.items[i]);
    }
    nori__map_free(&e.functions);
    nori__vec_free(&e.built);
    nori__cloner_free(&e.cloner);
    return s;
}
