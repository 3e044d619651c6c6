/* gpu_life.c: layouts, made empty and freed with all they hold on the device. */
#include "providers/gpu/gpu_lower.h"

gpu_layout *nori__gpu_layout_new(const nori_part *part)
{
    gpu_layout *y = nori__alloc_zero(&nori__malloc, sizeof(*y));
    if (!y) {
        return NULL;
    }
    y->n_in = part->n_in;
    nori__arena_init(&y->arena, &nori__malloc);
    nori__vec_init(&y->mems, &nori__malloc);
    nori__vec_init(&y->feeds, &nori__malloc);
    nori__vec_init(&y->launches, &nori__malloc);
    y->in = nori__arena_array(&y->arena, (size_t)part->n_in + 1, sizeof(*y->in));
    y->content = nori__arena_array(&y->arena, (size_t)part->n_in + 1, sizeof(*y->content));
    y->out = nori__arena_array(&y->arena, (size_t)part->n_out + 1, sizeof(*y->out));
    y->out_mem = nori__arena_array(&y->arena, (size_t)part->n_out + 1, sizeof(*y->out_mem));
    return y;
}

void nori__gpu_layout_free(gpu_self *self, gpu_layout *y)
{
    if (!y) {
        return;
    }
    if (y->recorded && self->driver->forget) {
        self->driver->forget(self, y);
    }
    for (size_t i = 0; i < y->launches.count; i++) {
        const gpu_launch *l = y->launches.items[i];
        if (l->call) {
            self->driver->drop_call(self, l->call);
        } else {
            self->driver->drop_kernel(self, l->kernel);
        }
    }
    for (size_t i = 0; i < y->mems.count; i++) {
        nori__gpu_release(self, y->mems.items[i]);
    }
    for (uint32_t i = 0; y->content && i < y->n_in; i++) {
        nori_tensor_free(y->content[i]);
    }
    nori__vec_free(&y->launches);
    nori__vec_free(&y->mems);
    nori__vec_free(&y->feeds);
    nori__arena_free(&y->arena);
    nori__release(&nori__malloc, y, sizeof(*y));
}
