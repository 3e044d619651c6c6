/* check.c: the walk over all nodes, subgraphs where their node stands, without recursion. */
#include "ops/resolve.h"
#include "tools/check/check_internal.h"

/* The subgraph after `after` among the node's attributes; NULL after gives the first one. */
static nori__graph *subgraph_after(const nori__node *node, const nori__graph *after)
{
    bool take = after == NULL;
    for (uint32_t i = 0; i < node->attr_count; i++) {
        const nori__attr *a = &node->attrs[i];
        size_t count = a->kind == NORI__ATTR_GRAPH    ? 1
                       : a->kind == NORI__ATTR_GRAPHS ? a->count
                                                      : 0;
        for (size_t k = 0; k < count; k++) {
            nori__graph *g = a->kind == NORI__ATTR_GRAPH ? a->v.graph : a->v.graphs[k];
            if (g && take) {
                return g;
            }
            take |= g == after;
        }
    }
    return NULL;
}

/* Everything about one node whose subgraphs have been walked. */
static nori_status check_node(nori_findings *f, nori__node *node, nori__arena *scratch,
                              nori_error *err)
{
    int64_t opset = nori__ir_opset(node->graph->ir, node->domain);
    if (opset > nori__opset_max_in(node->graph->ir, node->domain) || node->version == 0) {
        return NORI_OK; /* reported as a gap */
    }
    const nori__schema *schema = nori__schema_in(node->graph->ir, node->domain, node->op_type, node->version);
    if (!schema) {
        return NORI_OK;
    }
    nori__type *known = nori__arena_array(scratch, node->output_count, sizeof(*known));
    if (!known) {
        return nori__no_memory(err);
    }
    bool good = nori__check_facts(f, node, schema);
    good &= nori__check_types(f, node, schema, known);
    return nori__check_shapes(f, node, schema, known, good, err);
}

static nori_status walk(nori_findings *f, nori__ir *ir, nori__arena *scratch, nori_error *err)
{
    nori__graph *g = ir->main;
    nori__node *n = g->first;
    for (;;) {
        nori__graph *inner = NULL;
        if (n) {
            inner = subgraph_after(n, NULL);
        } else if (g->parent_node) { /* this graph is done: its next sibling, or its node */
            n = g->parent_node;
            inner = subgraph_after(n, g);
            g = n->graph;
        } else {
            return NORI_OK;
        }
        if (inner) {
            nori__check_seed(n, inner);
            g = inner;
            n = g->first;
            continue;
        }
        NORI__TRY(check_node(f, n, scratch, err));
        n = n->next;
    }
}

/* As a session sees the model: functions expanded, old forms made new, all inferred. Finds what
 * the walk could not, nodes whose old form inference does not read; it stops at the first fault,
 * so it is asked only when the walk has found none. */
static nori_status check_compiled(nori_findings *f, const nori__ir *ir, const char *targets,
                                  nori_error *err)
{
    nori__ir *copy = NULL;
    NORI__TRY(nori__ir_copy(ir, &copy, err));
    nori_error problem = {0};
    nori__resolve(copy); /* before functions: their nodes follow their own operator sets */
    nori_status status = nori__inline_functions(copy, &problem);
    if (status == NORI_OK) {
        status = nori__upgrade(copy, &problem); /* infers on the way */
    }
    nori_status asked = NORI_OK;
    if (status == NORI_OK) {
        asked = nori__check_fallback(f, copy, targets, err);
        asked = asked == NORI_OK ? nori__check_claims(f, copy, targets, err) : asked;
    }
    nori__ir_free(copy);
    if (asked != NORI_OK) {
        return asked;
    }
    if (status == NORI_ERROR_MEMORY) {
        return nori__no_memory(err);
    }
    if (status != NORI_OK) {
        nori__found(f, NORI_SEVERITY_ERROR, "shape", problem.where, problem.hint, "%s",
                    problem.message);
    }
    return NORI_OK;
}

static nori_status check_all(nori_findings *f, const nori__ir *ir, const char *targets,
                             nori_error *err)
{
    NORI__TRY(nori__check_gaps(f, ir, targets, err));
    nori__check_warnings(f, ir);
    nori__check_imports(f, ir);
    nori__check_unused(f, ir);
    nori__check_axes(f, ir);
    nori__ir *copy = NULL;
    NORI__TRY(nori__ir_copy(ir, &copy, err));
    nori__resolve(copy);
    nori__arena scratch;
    nori__arena_init(&scratch, f->allocator);
    nori_status status = walk(f, copy, &scratch, err);
    nori__arena_free(&scratch);
    if (status == NORI_OK) {
        nori__check_batch(f, copy);
    }
    nori__ir_free(copy);
    return status == NORI_OK && !f->faulty ? check_compiled(f, ir, targets, err) : status;
}

nori_status nori__check_ir(const nori__ir *ir, const nori_check_options *options,
                           nori_findings **findings, nori_error *err)
{
    *findings = NULL;
    nori_check_options used;
    nori_check_options_default(&used);
    if (options) {
        if (options->size < sizeof(used)) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "check options have the wrong size");
        }
        used = *options;
    }
    nori_findings *f = nori__findings_open(ir->allocator, used.strict != 0);
    if (!f) {
        return nori__no_memory(err);
    }
    nori_status status = check_all(f, ir, used.targets, err);
    if (status == NORI_OK) {
        status = nori__findings_close(f, err);
    }
    if (status != NORI_OK) {
        nori_findings_free(f);
        return status;
    }
    *findings = f;
    return NORI_OK;
}
