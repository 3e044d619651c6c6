/* loose.c: tensors whose bytes lie in a file at any address, and when they get data: see tensor.h. A
 * tensor is shared by a model and its sessions, whose threads may ask at once: one makes the copy,
 * the others wait for it. */
#include <sched.h>

#include "graph/internal.h"

/* The copy is made before anybody sees it; who fails lets the next one try. */
static bool make_copy(nori_tensor *t)
{
    void *data = nori__alloc(t->allocator, t->bytes);
    if (data) {
        memcpy(data, t->user, t->bytes);
        t->data = data;
    }
    atomic_store_explicit(&t->loose, data ? NORI__LOOSE_SETTLED : NORI__LOOSE, memory_order_release);
    return data != NULL;
}

bool nori__tensor_settle_now(const nori_tensor *shared)
{
    nori_tensor *t = (nori_tensor *)(uintptr_t)shared;
    for (;;) {
        unsigned char state = atomic_load_explicit(&t->loose, memory_order_acquire);
        if (state == NORI__LOOSE_SETTLED) {
            return true;
        }
        if (state == NORI__LOOSE &&
            atomic_compare_exchange_strong(&t->loose, &state, NORI__LOOSE_BUSY)) {
            return make_copy(t);
        }
        sched_yield();
    }
}

const nori_tensor *nori__value_const(const nori__value *v)
{
    const nori_tensor *t = nori__value_as_is(v);
    return t && nori__tensor_settle(t) ? t : NULL;
}

nori_status nori__ir_settle(const nori__ir *ir, nori_error *err)
{
    for (size_t i = 0; ir->loose && i < ir->shared->tensors.count; i++) {
        if (!nori__tensor_settle(ir->shared->tensors.items[i])) {
            return nori__no_memory(err);
        }
    }
    return NORI_OK;
}
