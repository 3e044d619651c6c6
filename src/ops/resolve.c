/* resolve.c: which operator, and which version of it, each node is. */
#include "ops/resolve.h"

#include "ops/custom.h"

void nori__node_resolve_at(nori__node *node, int64_t opset)
{
    const nori__ir *ir = node->graph ? node->graph->ir : NULL;
    node->op = nori__op_in(ir, node->domain, node->op_type, opset);
    node->version = 0;
    if (opset == 0 && node->op && node->op->domain == NORI__MS) {
        opset = 1; /* optimizers use it without importing it */
    }
    /* A file newer than we know: the newest version we know, unless that is refused later. */
    const nori__schema *s = nori__schema_in(ir, node->domain, node->op_type, opset);
    if (s) {
        node->version = s->since;
    } else {
        node->op = NULL;
    }
}

void nori__node_resolve(nori__node *node)
{
    nori__node_resolve_at(node, nori__ir_opset(node->graph->ir, node->domain));
}

void nori__resolve(nori__ir *ir)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            nori__node_resolve(n);
        }
    }
}
