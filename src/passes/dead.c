/* dead.c: nodes whose results nobody reads are removed, with their subgraphs. A node without any
 * output can have no other purpose either: operators have no side effects. */
#include "passes/passes.h"

static bool is_dead(const nori__node *n)
{
    for (uint32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i] && n->outputs[i]->uses > 0) {
            return false;
        }
    }
    return true;
}

nori_status nori__pass_dead(nori__ir *ir, bool *changed, nori_error *err)
{
    (void)err;
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *n = g->last, *prev; n; n = prev) { /* backwards: chains go at once */
            prev = n->prev;
            if (is_dead(n)) {
                nori__node_remove(n);
                *changed = true;
            }
        }
    }
    return NORI_OK;
}
