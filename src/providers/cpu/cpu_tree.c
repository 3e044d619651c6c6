/* cpu_tree.c: tree ensembles whose attributes are read once, when a session is made. Each run is the
 * reference kernel's. */
#include "providers/cpu/cpu.h"
#include "providers/reference/ref_tree.h"

static void tree_release(void *state, const nori_allocator *a)
{
    nori__forest *f = state;
    if (f) {
        nori__arena_free(&f->arena);
        nori__release(a, f, sizeof(*f));
    }
}

static nori_status tree_prepare(const nori__node *node, const nori_allocator *a, void **state,
                                size_t *state_bytes, nori_error *err)
{
    nori__forest *f = nori__alloc_zero(a, sizeof(*f));
    if (!f) {
        return nori__no_memory(err);
    }
    nori_error quiet = {0};
    nori_call call = {.node = node, .allocator = a, .err = &quiet};
    nori_status status = nori__tree_read(&call, f);
    if (status != NORI_OK) {
        tree_release(f, a);
        /* What is wrong with a forest is said by the run that needs it. */
        return status == NORI_ERROR_MEMORY ? nori__no_memory(err) : NORI__NOT_TAKEN;
    }
    *state = f;
    *state_bytes = sizeof(*f) + (size_t)f->n_nodes * sizeof(*f->nodes) +
                   (size_t)f->n_votes * sizeof(*f->votes);
    return NORI_OK;
}

static nori_status tree_run(const void *state, nori_call *call)
{
    return nori__tree_run(call, state);
}

const nori__kernel nori__cpu_tree = {.size = sizeof(nori__kernel),
                                     .prepare = tree_prepare,
                                     .run = tree_run,
                                     .release = tree_release};
