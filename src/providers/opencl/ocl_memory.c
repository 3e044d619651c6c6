/* ocl_memory.c: buffers on the device, empty or filled with constants. */
#include "base/half.h"
#include "providers/opencl/opencl.h"

static ocl_mem *make(ocl_self *self, uint64_t flags, size_t bytes, const void *content,
                     nori_error *err)
{
    int32_t code = 0;
    bytes = bytes ? bytes : sizeof(float); /* empty tensors: buffers of no bytes are not allowed */
    if (self->max_alloc && bytes > self->max_alloc) {
        nori__fail(err, NORI_ERROR_LIMIT,
                   "OpenCL: a tensor of %zu bytes is wanted, device %s takes at most %llu", bytes,
                   self->device_name, (unsigned long long)self->max_alloc);
        return NULL;
    }
    ocl_mem *mem = self->api.clCreateBuffer(self->context, flags, bytes,
                                            (void *)(uintptr_t)content, &code);
    nori__ocl_check(self, mem ? 0 : code ? code : -4, "clCreateBuffer", NORI_ERROR_MEMORY, err);
    return mem;
}

ocl_mem *nori__ocl_buffer(ocl_self *self, size_t bytes, nori_error *err)
{
    return make(self, OCL_MEM_READ_WRITE | OCL_MEM_ALLOC_HOST, bytes, NULL, err);
}

static ocl_mem *constant(ocl_self *self, const void *v, size_t bytes, nori_error *err)
{
    return make(self, bytes ? OCL_MEM_READ_ONLY | OCL_MEM_COPY_HOST : OCL_MEM_READ_ONLY, bytes,
                bytes ? v : NULL, err);
}

ocl_mem *nori__ocl_floats(ocl_self *self, const float *v, size_t count, nori_error *err)
{
    return constant(self, v, count * sizeof(*v), err);
}

ocl_mem *nori__ocl_ints(ocl_self *self, const int32_t *v, size_t count, nori_error *err)
{
    return constant(self, v, count * sizeof(*v), err);
}

ocl_mem *nori__ocl_stored(ocl_self *self, const float *v, size_t count, nori_error *err)
{
    if (!self->half) {
        return nori__ocl_floats(self, v, count, err);
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
    ocl_mem *mem = constant(self, half, bytes, err);
    nori__release(&nori__malloc, half, bytes);
    return mem;
}

float *nori__ocl_take_floats(const nori_tensor *t, size_t count, nori_error *err)
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
