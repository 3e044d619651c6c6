/* resolve.c: which operator, and which version of it, each node is. */
#include "ops/resolve.h"

#include "ops/custom.h"

_Static_assert(NORI__OP_COUNT <= NORI__IR_OPS, "nori__ir.met has a bit for each operator");

bool nori__ir_has(const nori__ir *ir, const nori__op_id *ops, size_t count)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        found = found || (ir->met[ops[i] / 64] >> ops[i] % 64 & 1);
    }
    return found;
}

void nori__node_resolve_at(nori__node *node, int64_t opset)
{
    nori__ir *ir = node->graph ? node->graph->ir : NULL;
    node->op = nori__op_in(ir, node->domain, node->op_type, opset);
    node->version = 0;
    node->schema = NULL;
    if (opset == 0 && node->op && node->op->domain == NORI__MS) {
        opset = 1; /* optimizers use it without importing it */
    }
    /* A file newer than we know: the newest version we know, unless that is refused later. */
    const nori__schema *s = nori__schema_in(ir, node->domain, node->op_type, opset);
    if (s) {
        node->schema = s;
        node->version = s->since;
    } else {
        node->op = NULL;
    }
    if (ir && node->op && node->op->id < NORI__OP_COUNT) {
        ir->met[node->op->id / 64] |= UINT64_C(1) << node->op->id % 64;
    }
}

void nori__node_resolve(nori__node *node)
{
    nori__node_resolve_at(node, nori__ir_opset(node->graph->ir, node->domain));
}

void nori__resolve(nori__ir *ir)
{
    const nori__node *last[64] = {NULL}; /* nodes of one operator mostly share its name's text */
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->first; n; n = n->next) {
            const nori__node **same = &last[(uintptr_t)n->op_type % NORI__COUNT(last)];
            if (*same && (*same)->op_type == n->op_type && (*same)->domain == n->domain) {
                n->op = (*same)->op;
                n->version = (*same)->version;
                n->schema = (*same)->schema;
            } else {
                nori__node_resolve(n);
                *same = n;
            }
        }
    }
}
