/* branch.c: an If whose condition is constant becomes the branch it takes. */
#include "passes/passes.h"

/* The branch taken, or NULL when only the run knows, or when it cannot be put in place. */
static const nori__graph *taken(const nori__node *n)
{
    const nori_tensor *c =
        n->input_count == 1 && n->inputs[0] ? nori__value_const(n->inputs[0]) : NULL;
    if (!nori__node_is(n, NORI__OP_ONNX_If) || !c || c->type != NORI_BOOL || c->count != 1) {
        return NULL;
    }
    const nori__graph *g =
        nori__attr_graph(n, nori__tensor_get_i64(c, 0) ? "then_branch" : "else_branch");
    return g && g->input_count == 0 && g->output_count >= n->output_count ? g : NULL;
}

static nori_status inline_branch(nori__cloner *cloner, nori__node *n, const nori__graph *g,
                                 nori_error *err)
{
    nori__node *before = n->prev;
    nori__inlining what = {.body = g, .prefix = n->name[0] ? n->name : "If", .out = n->outputs,
                           .n_out = n->output_count};
    NORI__TRY(nori__graph_inline(cloner, n, &what, err));
    for (nori__node *i = before ? before->next : n->graph->first; i != n; i = i->next) {
        if (!i->op && i->domain[0] == 0 && nori__same(i->op_type, "Identity")) {
            nori__node_resolve(i); /* made to hand an output on; the others came resolved */
        }
    }
    nori__node_remove(n);
    return NORI_OK;
}

/* A branch put in place may hold an If of the same kind: it is met when the walk comes there. */
nori_status nori__pass_branch(nori__ir *ir, bool *changed, nori_error *err)
{
    if (!NORI__IR_HAS(ir, NORI__OP_ONNX_If)) {
        return NORI_OK;
    }
    nori__cloner cloner;
    nori__cloner_init(&cloner, ir->allocator);
    nori_status s = NORI_OK;
    for (nori__graph *g = ir->graphs; s == NORI_OK && g; g = g->next_graph) {
        for (nori__node *n = g->first, *next; s == NORI_OK && n; n = next) {
            const nori__graph *branch = taken(n);
            nori__node *before = n->prev;
            next = n->next;
            if (branch) {
                s = inline_branch(&cloner, n, branch, err);
                next = before ? before->next : g->first;
                *changed = true;
            }
        }
    }
    nori__cloner_free(&cloner);
    return s;
}
