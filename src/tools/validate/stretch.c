/* stretch.c: upstream from a node to values another model has too. In a quantized graph a layer's
 * inputs come through QuantizeLinear and DequantizeLinear, whose values the float model lacks: such a
 * layer's own error is that of the whole stretch. */
#include "tools/validate/stretch.h"

#define LONGEST 256 /* nodes; what joins nothing for longer has no layers to compare */

nori_status nori__stretches_begin(nori__stretches *s, const nori_allocator *a, const nori__ir *ir,
                                  nori_error *err)
{
    uint32_t place = 0;
    s->a = a;
    s->n_nodes = ir->node_count;
    s->place = nori__alloc_zero(a, ((size_t)s->n_nodes + 1) * sizeof(*s->place));
    s->taken = nori__alloc_zero(a, ((size_t)s->n_nodes + 1) * sizeof(*s->taken));
    nori__vec_init(&s->nodes, a);
    if (!s->place || !s->taken) {
        return nori__no_memory(err);
    }
    for (const nori__node *n = ir->main->first; n; n = n->next) {
        s->place[n->id] = ++place;
    }
    return NORI_OK;
}

void nori__stretches_end(nori__stretches *s)
{
    nori__release(s->a, s->place, ((size_t)s->n_nodes + 1) * sizeof(*s->place));
    nori__release(s->a, s->taken, ((size_t)s->n_nodes + 1) * sizeof(*s->taken));
    nori__vec_free(&s->nodes);
}

typedef struct walk {
    nori__stretches *s;
    bool found, memory;
} walk;

static bool take(walk *w, nori__node *n)
{
    nori__stretches *s = w->s;
    if (s->taken[n->id]) {
        return true;
    }
    if (!s->place[n->id] || s->nodes.count == LONGEST) {
        w->found = false;
        return false;
    }
    s->taken[n->id] = true;
    w->memory = nori__vec_push(&s->nodes, n);
    return w->memory;
}

static bool read_value(void *user, nori__value *v)
{
    walk *w = user;
    if (nori__value_as_is(v) || w->s->known(w->s->user, v)) {
        return true;
    }
    if (!v->producer) {
        w->found = v->constant != NULL; /* an input left at its default */
        return w->found;
    }
    return take(w, v->producer);
}

/* By place, small lists: insertion. */
static void put_in_order(nori__stretches *s)
{
    void **list = s->nodes.items;
    for (size_t i = 1; i < s->nodes.count; i++) {
        nori__node *n = list[i];
        size_t k = i;
        for (; k > 0 && s->place[((nori__node *)list[k - 1])->id] > s->place[n->id]; k--) {
            list[k] = list[k - 1];
        }
        list[k] = n;
    }
}

nori_status nori__stretch_to(nori__stretches *s, nori__node *node, bool *found, nori_error *err)
{
    walk w = {s, true, true};
    s->nodes.count = 0;
    take(&w, node);
    for (size_t i = 0; w.found && w.memory && i < s->nodes.count; i++) {
        nori__node_reads(s->nodes.items[i], read_value, &w);
    }
    for (size_t i = 0; i < s->nodes.count; i++) {
        s->taken[((nori__node *)s->nodes.items[i])->id] = false;
    }
    *found = w.found && w.memory;
    put_in_order(s);
    return w.memory ? NORI_OK : nori__no_memory(err);
}

const nori__node *nori__stretch_heart(const nori__stretches *s, const nori__node *node)
{
    static const char *const forms[] = {"QuantizeLinear", "DequantizeLinear", "Cast",
                                        "DynamicQuantizeLinear"};
    for (size_t i = s->nodes.count; i > 0; i--) {
        const nori__node *n = s->nodes.items[i - 1];
        bool form = false;
        for (size_t k = 0; k < NORI__COUNT(forms); k++) {
            form = form || nori__same(n->op_type, forms[k]);
        }
        if (!form) {
            return n;
        }
    }
    return node;
}
