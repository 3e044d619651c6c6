/* edit.c: changing a graph: values, nodes, wiring. Every function keeps uses, producers and names
 * in step, so that a pass may stop after any of them and leave a valid graph. */
#include <stdio.h>

#include "graph/internal.h"

/* ---- values ---- */

nori__value *nori__value_make(nori__graph *g, const char *name)
{
    nori__ir *ir = g->ir;
    nori__value *v = nori__arena_line(&ir->arena, sizeof(*v));
    if (!v) {
        return NULL;
    }
    v->name = name;
    v->type.rank = v->declared.rank = -1;
    v->id = ir->value_count++;
    v->graph = g;
    v->next = g->values;
    g->values = v;
    g->value_count++;
    return v;
}

nori__value *nori__value_add(nori__graph *g, const char *name)
{
    nori__value *v = nori__value_make(g, name);
    return v && (g->names_wait || nori__map_put(&g->names, name, v)) ? v : NULL;
}

nori__value *nori__value_new(nori__graph *g, const char *name)
{
    nori__ir *ir = g->ir;
    bool made_up = !name || !name[0];
    const char *text = made_up ? NULL : name;
    char buffer[64];
    const char *copy = NULL;
    while (!text || nori__value_find(g, text)) {
        if (made_up) {
            snprintf(buffer, sizeof(buffer), "nori__%u", ir->fresh++);
            text = buffer;
        } else {
            copy = nori__arena_printf(&ir->shared->arena, "%s__%u", name, ir->fresh++);
            if (!copy) {
                return NULL;
            }
            text = copy;
        }
    }
    copy = copy ? copy : nori__ir_text(ir, text, strlen(text));
    return copy ? nori__value_add(g, copy) : NULL;
}

const nori__map *nori__graph_names(const nori__graph *graph)
{
    nori__graph *g = (nori__graph *)(uintptr_t)graph; /* the table is a cache of its values */
    if (g->names_wait) {
        g->names_wait = false;
        for (nori__value *v = g->values; v; v = v->next) {
            /* Room for all of them was made when they were copied: this cannot fail. */
            (void)nori__map_put(&g->names, v->name, v);
        }
    }
    return &g->names;
}

nori__value *nori__value_find(const nori__graph *g, const char *name)
{
    nori__value *v = NULL;
    while (g && !v) {
        v = nori__map_get(nori__graph_names(g), name);
        g = g->parent;
    }
    return v;
}

nori__value *nori__const_new(nori__graph *g, const char *name, nori_tensor *t)
{
    if (!nori__ir_keep(g->ir, t)) {
        return NULL;
    }
    nori__value *v = nori__value_new(g, name);
    if (!v) {
        return NULL;
    }
    v->constant = t;
    v->flags = NORI__VALUE_INITIALIZER;
    v->type.kind = t->kind;
    if (t->kind == NORI_KIND_TENSOR) {
        nori__dim dims[NORI_MAX_RANK];
        for (int i = 0; i < t->rank; i++) {
            dims[i] = nori__dim_of(t->dims[i]);
        }
        if (!nori__type_set(&g->ir->arena, &v->type, (nori_type)t->type, t->rank, dims)) {
            return NULL;
        }
    }
    return v;
}

bool nori__type_set(nori__arena *arena, nori__type *type, nori_type elem, int rank,
                    const nori__dim *dims)
{
    nori__dim *copy = NULL;
    if (rank >= 0) {
        copy = nori__arena_array(arena, (size_t)rank, sizeof(*copy));
        if (!copy) {
            return false;
        }
        if (rank > 0) {
            memcpy(copy, dims, (size_t)rank * sizeof(*copy));
        }
    }
    *type = (nori__type){.kind = NORI_KIND_TENSOR, .elem = (uint8_t)elem,
                         .rank = (int8_t)rank, .dims = copy};
    return true;
}

/* ---- nodes ---- */

nori__node *nori__node_make(nori__ir *ir, size_t n_in, size_t n_out, size_t n_attr)
{
    size_t values, bytes, attrs;
    nori__node *node = NULL;
    if (nori__add_size(n_in, n_out, &values) &&
        nori__mul_size(values, sizeof(nori__value *), &bytes) &&
        nori__mul_size(n_attr, sizeof(nori__attr), &attrs) &&
        nori__add_size(bytes, attrs, &bytes) && nori__add_size(bytes, sizeof(*node), &bytes)) {
        node = nori__arena_line(&ir->arena, bytes);
    }
    if (node) {
        node->attrs = (nori__attr *)(node + 1);
        node->inputs = (nori__value **)(node->attrs + n_attr);
        node->outputs = node->inputs + n_in;
    }
    return node;
}

void nori__node_link(nori__graph *g, nori__node *before, nori__node *node)
{
    g->ir->edits++;
    node->graph = g;
    node->next = before;
    node->prev = before ? before->prev : g->last;
    *(node->prev ? &node->prev->next : &g->first) = node;
    *(before ? &before->prev : &g->last) = node;
    g->node_count++;
}

nori__node *nori__node_new(nori__graph *g, nori__node *before, const char *domain,
                           const char *op_type, nori__value *const *in, size_t n_in,
                           nori__value *const *out, size_t n_out)
{
    nori__node *node = nori__node_make(g->ir, n_in, n_out, 0);
    const char *domain_copy = nori__ir_text(g->ir, domain, strlen(domain));
    const char *op_copy = nori__ir_text(g->ir, op_type, strlen(op_type));
    if (!node || !domain_copy || !op_copy || n_in > INT32_MAX || n_out > INT32_MAX) {
        return NULL;
    }
    node->name = node->overload = "";
    node->domain = domain_copy;
    node->op_type = op_copy;
    node->input_count = (uint32_t)n_in;
    node->output_count = (uint32_t)n_out;
    for (size_t i = 0; i < n_in; i++) {
        node->inputs[i] = in[i];
        if (in[i]) {
            in[i]->uses++;
        }
    }
    for (size_t i = 0; i < n_out; i++) {
        node->outputs[i] = out[i];
        if (out[i]) {
            out[i]->producer = node;
        }
    }
    node->id = g->ir->node_count++;
    nori__node_link(g, before, node);
    return node;
}

/* Gives back what the nodes of a graph that goes away use, and marks it. */
static void kill_graph(nori__graph *g)
{
    g->dead = true;
    for (nori__node *n = g->first; n; n = n->next) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            if (n->inputs[i]) {
                n->inputs[i]->uses--;
            }
        }
    }
    for (uint32_t i = 0; i < g->output_count; i++) {
        g->outputs[i]->uses--;
    }
}

/* Takes the graphs inside node out of the list: outer graphs precede inner ones in the list, so one
 * walk finds all that hang below a dead one. */
static void kill_subgraphs(nori__node *node)
{
    uint32_t state = 0;
    bool any = false;
    for (nori__graph *g; (g = nori__node_subgraph(node, &state)) != NULL;) {
        kill_graph(g);
        any = true;
    }
    nori__graph *top = nori__outermost(node->graph), *last = top;
    for (nori__graph *g = any ? top->next_graph : NULL; g; g = g->next_graph) {
        if (!g->dead && g->parent && g->parent->dead) {
            kill_graph(g);
        }
        if (g->dead) {
            last->next_graph = g->next_graph;
            nori__map_free(&g->names);
        } else {
            last = g;
        }
    }
    if (any) {
        top->tail = last;
    }
}

void nori__node_remove(nori__node *node)
{
    nori__graph *g = node->graph;
    g->ir->edits++;
    kill_subgraphs(node);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i]) {
            node->inputs[i]->uses--;
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] && node->outputs[i]->producer == node) {
            node->outputs[i]->producer = NULL;
        }
    }
    *(node->prev ? &node->prev->next : &g->first) = node->next;
    *(node->next ? &node->next->prev : &g->last) = node->prev;
    g->node_count--;
}

bool nori__node_set_input(nori__node *node, uint32_t index, nori__value *v)
{
    node->graph->ir->edits++;
    if (index >= node->input_count) {
        nori__value **grown =
            nori__arena_array(&node->graph->ir->arena, (size_t)index + 1, sizeof(*grown));
        if (!grown) {
            return false;
        }
        if (node->input_count > 0) {
            memcpy(grown, node->inputs, node->input_count * sizeof(*grown));
        }
        node->inputs = grown;
        node->input_count = index + 1;
    }
    if (v) {
        v->uses++;
    }
    if (node->inputs[index]) {
        node->inputs[index]->uses--;
    }
    node->inputs[index] = v;
    return true;
}

/* ---- replacing ---- */

static void replace_in_outputs(nori__graph *g, nori__value *from, nori__value *to)
{
    for (uint32_t i = 0; i < g->output_count && from->uses > 0; i++) {
        if (g->outputs[i] == from) {
            g->outputs[i] = to;
            from->uses--;
            to->uses++;
            if (from->graph == g) {
                from->flags &= ~(uint32_t)NORI__VALUE_OUTPUT;
            }
            if (to->graph == g) {
                to->flags |= NORI__VALUE_OUTPUT;
            }
        }
    }
}

static bool has_subgraph(const nori__node *n)
{
    uint32_t state = 0;
    return n->attr_count > 0 && nori__node_subgraph(n, &state);
}

/* The node after n in a walk that enters subgraphs; walked graphs get their outputs replaced when
 * left. NULL at the end of graph top. */
static nori__node *walk(nori__node *n, const nori__graph *top, nori__value *from, nori__value *to)
{
    uint32_t state = 0;
    nori__graph *inner = n->attr_count > 0 ? nori__node_subgraph(n, &state) : NULL;
    for (; inner; inner = nori__node_subgraph(n, &state)) {
        replace_in_outputs(inner, from, to);
        if (inner->first) {
            return inner->first;
        }
    }
    while (!n->next) {
        nori__graph *g = n->graph;
        if (g == top) {
            return NULL;
        }
        /* The next sibling graph with nodes, else go on behind the parent. */
        n = g->parent_node;
        state = 0;
        while ((inner = nori__node_subgraph(n, &state)) != NULL && inner != g) {
        }
        while ((inner = nori__node_subgraph(n, &state)) != NULL) {
            replace_in_outputs(inner, from, to);
            if (inner->first) {
                return inner->first;
            }
        }
    }
    return n->next;
}

/* Uses come after the producer, mostly close behind it, and their number is known: the walk stops
 * at the last one, so that replacing is cheap in long graphs. */
void nori__value_replace(nori__value *from, nori__value *to)
{
    nori__graph *top = from->graph;
    if (from == to) {
        return;
    }
    top->ir->edits++;
    replace_in_outputs(top, from, to);
    nori__node *n = from->producer ? from->producer->next : top->first;
    while (n && from->uses > 0) {
        for (uint32_t i = 0; i < n->input_count; i++) {
            if (n->inputs[i] == from) {
                n->inputs[i] = to;
                from->uses--;
                to->uses++;
            }
        }
        n = has_subgraph(n) || n->graph != top ? walk(n, top, from, to) : n->next;
    }
}
