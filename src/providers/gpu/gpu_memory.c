/* gpu_memory.c: buffers on the device, empty or filled with constants. */
#include "base/half.h"
#include "base/size_text.h"
#include "providers/gpu/gpu.h"

static gpu_mem *make(gpu_self *self, size_t bytes, const void *content, nori_error *err)
{
    content = bytes ? content : NULL;
    bytes = bytes ? bytes : sizeof(float); /* empty tensors: buffers of no bytes are not allowed */
    if (self->max_alloc && bytes > self->max_alloc) {
        char need[NORI__SIZE_TEXT], most[NORI__SIZE_TEXT];
        nori__fail(err, NORI_ERROR_LIMIT, "%s: a tensor of %s is wanted, device %s takes at most %s",
                   self->driver->title, nori__size_apart(bytes, self->max_alloc, need), self->device_name,
                   nori__size_apart(self->max_alloc, bytes, most));
        return NULL;
    }
    return self->driver->make(self, bytes, content, err);
}

gpu_mem *nori__gpu_buffer(gpu_self *self, size_t bytes, nori_error *err)
{
    return make(self, bytes, NULL, err);
}

void nori__gpu_release(gpu_self *self, gpu_mem *mem)
{
    if (mem) {
        self->driver->release(self, mem);
    }
}

gpu_mem *nori__gpu_floats(gpu_self *self, const float *v, size_t count, nori_error *err)
{
    return make(self, count * sizeof(*v), v, err);
}

gpu_mem *nori__gpu_ints(gpu_self *self, const int32_t *v, size_t count, nori_error *err)
{
    return make(self, count * sizeof(*v), v, err);
}

gpu_mem *nori__gpu_stored(gpu_self *self, const float *v, size_t count, nori_error *err)
{
    if (!self->half) {
        return nori__gpu_floats(self, v, count, err);
    }
    size_t bytes = count * sizeof(uint16_t);
    uint16_t *half = nori__alloc(&nori__malloc, bytes);
    if (!half) {
        nori__no_memory(err);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        half[i] = nori__f32_to_f16(v[i]);
    }
    gpu_mem *mem = make(self, bytes, half, err);
    nori__release(&nori__malloc, half, bytes);
    return mem;
}

float *nori__gpu_take_floats(const nori_tensor *t, size_t count, nori_error *err)
{
    size_t bytes;
    float *v = nori__mul_size(count, sizeof(*v), &bytes) ? nori__alloc(&nori__malloc, bytes) : NULL;
    if (!v) {
        nori__no_memory(err);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        v[i] = (float)nori__tensor_get_f64(t, (int64_t)i);
    }
    return v;
}

/* ---- begin and end ---- */

void nori__gpu_begin(gpu_self *self, const gpu_driver *driver, const nori_provider_open *how)
{
    self->driver = driver;
    self->report = how->report;
    self->report_user = how->report_user;
    pthread_mutex_init(&self->lock, NULL);
    nori__vec_init(&self->made, &nori__malloc);
    nori__gpu_name_programs(self);
}

void nori__gpu_end(gpu_self *self)
{
    for (size_t i = 0; i < self->made.count; i++) {
        gpu_program *p = self->made.items[i];
        nori__text_free(&p->body);
        nori__release(&nori__malloc, p, sizeof(*p));
    }
    nori__vec_free(&self->made);
    nori__release(&nori__malloc, self->text, self->text_size);
    pthread_mutex_destroy(&self->lock);
}

nori_status nori__gpu_enter(gpu_self *self, nori_error *err)
{
    return self->driver->enter ? self->driver->enter(self, err) : NORI_OK;
}

void nori__gpu_leave(gpu_self *self)
{
    if (self->driver->leave) {
        self->driver->leave(self);
    }
}
