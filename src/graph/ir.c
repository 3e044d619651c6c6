/* ir.c: the ir as a whole: freeing, warnings, imported operator sets, and paths for messages. */
#include <stdio.h>

#include "graph/internal.h"

/* A file can give reason for as many as it has names. */
#define WARNINGS_MAX 100

nori__shared *nori__shared_new(const nori_allocator *a, nori__shared *older)
{
    nori__shared *s = nori__alloc_zero(a, sizeof(*s));
    if (s) {
        atomic_init(&s->refs, 1);
        s->allocator = a;
        nori__arena_init(&s->arena, a);
        nori__vec_init(&s->tensors, a);
        s->older = older;
        if (older) {
            s->tensor_bytes = older->tensor_bytes;
            atomic_fetch_add_explicit(&older->refs, 1, memory_order_relaxed);
        }
    }
    return s;
}

void nori__shared_release(nori__shared *s)
{
    while (s && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) {
        nori__shared *older = s->older;
        for (size_t i = 0; i < s->tensors.count; i++) {
            nori_tensor_free(s->tensors.items[i]);
        }
        nori__vec_free(&s->tensors);
        nori__arena_free(&s->arena);
        nori__release(s->allocator, s, sizeof(*s));
        s = older;
    }
}

nori__ir *nori__ir_new(const nori_allocator *a, nori__shared *older)
{
    nori__ir *ir = nori__alloc_zero(a, sizeof(*ir));
    nori__shared *shared = ir ? nori__shared_new(a, older) : NULL;
    if (!shared) {
        nori__release(a, ir, sizeof(*ir));
        return NULL;
    }
    ir->shared = shared;
    ir->allocator = a;
    nori__arena_init(&ir->arena, a);
    nori__vec_init(&ir->warnings, a);
    return ir;
}

const char *nori__ir_text(nori__ir *ir, const char *bytes, size_t size)
{
    return size > 0 ? nori__arena_copy(&ir->shared->arena, bytes, size) : "";
}

nori__graph *nori__graph_new(nori__ir *ir, nori__graph *parent, nori__node *parent_node)
{
    nori__graph *g = nori__arena_alloc(&ir->arena, sizeof(*g));
    if (g) {
        g->name = "";
        g->ir = ir;
        g->parent = parent;
        g->parent_node = parent_node;
        g->depth = parent ? parent->depth + 1 : 0;
        nori__map_init(&g->names, ir->allocator);
        nori__graph *top = nori__outermost(g);
        *(top->tail ? &top->tail->next_graph : &top->tail) = g;
        top->tail = g;
    }
    return g;
}

bool nori__ir_keep(nori__ir *ir, nori_tensor *t)
{
    if (!nori__vec_push(&ir->shared->tensors, t)) {
        nori_tensor_free(t);
        return false;
    }
    ir->shared->tensor_bytes += t->kind == NORI_KIND_TENSOR ? t->bytes : 0;
    return true;
}

uint64_t nori__ir_tensor_bytes(const nori__ir *ir)
{
    return ir->shared->tensor_bytes;
}

void nori__ir_free(nori__ir *ir)
{
    if (!ir) {
        return;
    }
    for (nori__graph *g = ir->graphs; g; g = g->next_graph) {
        nori__map_free(&g->names);
    }
    nori__vec_free(&ir->warnings);
    nori__arena_free(&ir->arena);
    nori__shared_release(ir->shared);
    nori__release(ir->allocator, ir, sizeof(*ir));
}

nori_status nori__ir_warn(nori__ir *ir, const char *fmt, ...)
{
    if (ir->warnings.count > WARNINGS_MAX) {
        return NORI_OK;
    }
    char text[1024];
    if (ir->warnings.count == WARNINGS_MAX) {
        snprintf(text, sizeof(text), "there are more warnings than these %d", WARNINGS_MAX);
    } else {
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
    }
    char *copy = nori__arena_text(&ir->arena, text);
    return copy && nori__vec_push(&ir->warnings, copy) ? NORI_OK : NORI_ERROR_MEMORY;
}

int64_t nori__ir_opset(const nori__ir *ir, const char *domain)
{
    if (nori__same(domain, "ai.onnx")) {
        domain = "";
    }
    for (size_t i = 0; i < ir->opset_count; i++) {
        if (nori__same(ir->opsets[i].domain, domain)) {
            return ir->opsets[i].version;
        }
    }
    return 0;
}

/* ---- paths ---- */

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
