/* reads.c: what a node reads: its inputs, and what its subgraphs look at outside themselves. */
#include "graph/graph.h"

/* Subgraph depth is limited when the graph is built, so this recursion is too. */
static bool graph_reads(nori__graph *g, const nori__graph *home, nori__read_fn fn, void *user)
{
    for (nori__node *n = g->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            if (n->inputs[i] && n->inputs[i]->graph == home && !fn(user, n->inputs[i])) {
                return false;
            }
        }
        uint32_t state = 0;
        for (nori__graph *sub; (sub = nori__node_subgraph(n, &state)) != NULL;) {
            if (!graph_reads(sub, home, fn, user)) {
                return false;
            }
        }
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        if (g->outputs[i]->graph == home && !fn(user, g->outputs[i])) {
            return false;
        }
    }
    return true;
}

bool nori__node_reads(nori__node *node, nori__read_fn fn, void *user)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] && !fn(user, node->inputs[i])) {
            return false;
        }
    }
    uint32_t state = 0;
    for (nori__graph *sub; (sub = nori__node_subgraph(node, &state)) != NULL;) {
        if (!graph_reads(sub, node->graph, fn, user)) {
            return false;
        }
    }
    return true;
}
