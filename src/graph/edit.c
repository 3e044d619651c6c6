/* edit.c: making and changing graphs. */
#include "graph/internal.h"

#include <stdio.h>

nori__ir *nori__ir_new(const nori_allocator *a)
{
    nori__ir *ir = nori__alloc_zero(a, sizeof(*ir));
    if (ir) {
        ir->allocator = a;
        nori__arena_init(&ir->arena, a);
        nori__vec_init(&ir->tensors, a);
        nori__vec_init(&ir->warnings, a);
    }
    return ir;
}

void nori__ir_free(nori__ir *ir)
{
    if (!ir) {
        return;
    }
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        nori__map_free(&g->names);
    }
    for (size_t i = 0; i < ir->tensors.count; i++) {
        nori_tensor_free(ir->tensors.items[i]);
    }
    nori__vec_free(&ir->tensors);
    nori__vec_free(&ir->warnings);
    nori__arena_free(&ir->arena);
    nori__release(ir->allocator, ir, sizeof(*ir));
}

bool nori__ir_keep(nori__ir *ir, nori_tensor *t)
{
    if (!nori__vec_push(&ir->tensors, t)) {
        nori_tensor_free(t);
        return false;
    }
    return true;
}

nori_status nori__ir_warn(nori__ir *ir, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    char *copy = nori__arena_text(&ir->arena, text);
    return copy && nori__vec_push(&ir->warnings, copy) ? NORI_OK : NORI_ERROR_MEMORY;
}

int64_t nori__ir_opset(const nori__ir *ir, const char *domain)
{
    for (size_t i = 0; i < ir->opset_count; i++) {
        if (nori__same(ir->opsets[i].domain, domain)) {
            return ir->opsets[i].version;
        }
    }
    return 0;
}

nori__graph *nori__graph_new(nori__ir *ir, nori__graph *parent)
{
    nori__graph *g = nori__arena_alloc(&ir->arena, sizeof(*g));
    if (g) {
        g->ir = ir;
        g->name = "";
        g->parent = parent;
        nori__map_init(&g->names, ir->allocator);
        nori__graph **tail = &ir->graphs; /* main first */
        if (*tail) {
            g->next_graph = (*tail)->next_graph;
            (*tail)->next_graph = g;
        } else {
            *tail = g;
        }
    }
    return g;
}

nori__value *nori__value_add(nori__graph *g, const char *name)
{
    nori__value *v = nori__arena_alloc(&g->ir->arena, sizeof(*v));
    if (!v || !nori__map_put(&g->names, name, v)) {
        return NULL;
    }
    v->name = name;
    v->type.rank = -1;
    v->id = g->ir->value_count++;
    v->graph = g;
    v->next = g->values;
    g->values = v;
    return v;
}

nori__value *nori__value_find(const nori__graph *g, const char *name)
{
    for (; g; g = g->parent) {
        nori__value *v = nori__map_get(&g->names, name);
        if (v) {
            return v;
        }
    }
    return NULL;
}

nori__value *nori__value_new(nori__graph *g, const char *name)
{
    const char *text = name ? nori__arena_text(&g->ir->arena, name) : NULL;
    while (!name) {
        text = nori__arena_printf(&g->ir->arena, "nori_%u", g->ir->fresh++);
        if (!text) {
            return NULL;
        }
        if (!nori__value_find(g, text)) {
            break;
        }
    }
    return text ? nori__value_add(g, text) : NULL;
}

bool nori__type_set(nori__arena *arena, nori__type *type, nori_type elem, int rank,
                    const nori__dim *dims)
{
    nori__dim *copy = type->dims;
    if (rank > 0 && (!copy || type->rank < rank)) {
        copy = nori__arena_array(arena, (size_t)rank, sizeof(*copy));
        if (!copy) {
            return false;
        }
    }
    for (int d = 0; d < rank; d++) {
        copy[d] = dims[d];
    }
    *type = (nori__type){.kind = NORI_KIND_TENSOR, .elem = (uint8_t)elem, .rank = (int8_t)rank,
                         .dims = copy};
    return true;
}

nori__value *nori__const_new(nori__graph *g, const char *name, nori_tensor *t)
{
    nori__dim dims[NORI_MAX_RANK];
    if (!nori__ir_keep(g->ir, t)) {
        return NULL;
    }
    nori__value *v = nori__value_new(g, name);
    if (!v) {
        return NULL;
    }
    v->flags |= NORI__VALUE_INITIALIZER;
    v->constant = t;
    for (int d = 0; d < t->rank; d++) {
        dims[d] = nori__dim_of(t->dims[d]);
    }
    return nori__type_set(&g->ir->arena, &v->type, t->type, t->rank, dims) ? v : NULL;
}

nori__node *nori__node_add(nori__graph *g)
{
    nori__node *node = nori__arena_alloc(&g->ir->arena, sizeof(*node));
    if (node) {
        node->name = node->op_type = node->domain = node->overload = "";
        node->graph = g;
        node->id = g->ir->node_count++;
        node->prev = g->last;
        *(g->last ? &g->last->next : &g->first) = node;
        g->last = node;
        g->node_count++;
    }
    return node;
}

static void move_before(nori__node *node, nori__node *before)
{
    nori__graph *g = node->graph;
    g->last = node->prev; /* it stands last */
    *(g->last ? &g->last->next : &g->first) = NULL;
    node->prev = before->prev;
    node->next = before;
    *(before->prev ? &before->prev->next : &g->first) = node;
    before->prev = node;
}

nori__node *nori__node_new(nori__graph *g, nori__node *before, const char *domain,
                           const char *op_type, nori__value *const *in, size_t n_in,
                           nori__value *const *out, size_t n_out)
{
    nori__arena *arena = &g->ir->arena;
    nori__value **inputs = nori__arena_array(arena, n_in + 1, sizeof(*inputs));
    nori__value **outputs = nori__arena_array(arena, n_out + 1, sizeof(*outputs));
    const char *op = nori__arena_text(arena, op_type), *dom = nori__arena_text(arena, domain);
    if (!inputs || !outputs || !op || !dom) {
        return NULL;
    }
    nori__node *node = nori__node_add(g);
    if (!node) {
        return NULL;
    }
    if (before) {
        move_before(node, before);
    }
    node->op_type = op;
    node->domain = dom;
    node->inputs = inputs;
    node->outputs = outputs;
    node->input_count = (uint32_t)n_in;
    node->output_count = (uint32_t)n_out;
    for (size_t i = 0; i < n_in; i++) {
        inputs[i] = in[i];
        if (in[i]) {
            in[i]->uses++;
        }
    }
    for (size_t i = 0; i < n_out; i++) {
        outputs[i] = out[i];
        if (out[i]) {
            out[i]->producer = node;
        }
    }
    return node;
}

void nori__node_remove(nori__node *node)
{
    nori__graph *g = node->graph;
    *(node->prev ? &node->prev->next : &g->first) = node->next;
    *(node->next ? &node->next->prev : &g->last) = node->prev;
    g->node_count--;
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
}

bool nori__node_set_input(nori__node *node, uint32_t index, nori__value *v)
{
    if (index >= node->input_count) {
        nori__value **inputs =
            nori__arena_array(&node->graph->ir->arena, (size_t)index + 1, sizeof(*inputs));
        if (!inputs) {
            return false;
        }
        for (uint32_t i = 0; i < node->input_count; i++) {
            inputs[i] = node->inputs[i];
        }
        node->inputs = inputs;
        node->input_count = index + 1;
    }
    if (node->inputs[index]) {
        node->inputs[index]->uses--;
    }
    node->inputs[index] = v;
    if (v) {
        v->uses++;
    }
    return true;
}

void nori__value_replace(nori__value *from, nori__value *to)
{
    for (nori__graph *g = from->graph->ir->graphs; g && from->uses > 0; g = g->next_graph) {
        for (nori__node *node = g->first; node; node = node->next) {
            for (uint32_t i = 0; i < node->input_count; i++) {
                if (node->inputs[i] == from) {
                    node->inputs[i] = to;
                    from->uses--;
                    to->uses++;
                }
            }
        }
        for (uint32_t i = 0; i < g->output_count; i++) {
            if (g->outputs[i] == from) {
                g->outputs[i] = to;
                from->uses--;
                to->uses++;
                to->flags |= to->graph == g ? NORI__VALUE_OUTPUT : 0;
            }
        }
    }
    from->flags &= ~(uint32_t)NORI__VALUE_OUTPUT;
}

void nori__count_uses(nori__ir *ir)
{
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__value *v = g->values; v; v = v->next) {
            v->uses = 0;
        }
    }
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        for (nori__node *node = g->first; node; node = node->next) {
            for (uint32_t i = 0; i < node->input_count; i++) {
                if (node->inputs[i]) {
                    node->inputs[i]->uses++;
                }
            }
        }
        for (uint32_t i = 0; i < g->output_count; i++) {
            g->outputs[i]->uses++;
        }
    }
}

void nori__node_path(const nori__node *node, char *out, size_t size)
{
    const nori__node *chain[NORI__PB_MAX_NESTING + 1];
    int depth = 0;
    for (const nori__node *n = node; n && depth <= NORI__PB_MAX_NESTING; n = n->graph->parent_node) {
        chain[depth++] = n;
    }
    size_t used = 0;
    if (size > 0) {
        out[0] = 0;
    }
    while (depth-- > 0 && used + 1 < size) {
        const nori__node *n = chain[depth];
        const char *name = n->name;
        char made[48];
        if (!name[0] && n->output_count > 0 && n->outputs && n->outputs[0]) {
            name = n->outputs[0]->name; /* nameless: told by its first output */
        } else if (!name[0]) {
            snprintf(made, sizeof(made), "#%u", n->id);
            name = made;
        }
        int wrote = snprintf(out + used, size - used, "%s%s", name, depth > 0 ? " > " : "");
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    if (used + 1 < size) {
        snprintf(out + used, size - used, " (%s)", node->op_type);
    }
}
