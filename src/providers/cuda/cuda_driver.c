/* cuda_driver.c: what gpu/ asks of a driver, by calls of CUDA: memory and kernels. An address on the device
 * stands for itself as a gpu_mem *. */
#include <stdio.h>

#include "providers/cuda/cuda.h"

static cuda_self *own(gpu_self *self)
{
    return (cuda_self *)self; /* its first member */
}

static cuda_address address(const gpu_mem *mem)
{
    return (cuda_address)(uintptr_t)mem;
}

/* A context belongs to a thread; another library's is put back behind ours. */
static nori_status enter(gpu_self *user, nori_error *err)
{
    cuda_self *self = own(user);
    return nori__cuda_check(self, self->api.cuCtxPushCurrent_v2(self->context), "cuCtxPushCurrent",
                            NORI_ERROR_UNAVAILABLE, err);
}

static void leave(gpu_self *self)
{
    cuda_context *context = NULL;
    own(self)->api.cuCtxPopCurrent_v2(&context);
}

static nori_status wait_for(cuda_self *self, nori_error *err)
{
    return nori__cuda_check(self, self->api.cuStreamSynchronize(self->stream), "cuStreamSynchronize",
                            NORI_ERROR_DATA, err);
}

static nori_status write(cuda_self *self, gpu_mem *mem, const void *from, size_t bytes,
                         nori_error *err)
{
    NORI__TRY(nori__cuda_check(
        self, self->api.cuMemcpyHtoDAsync_v2(address(mem), from, bytes, self->stream),
        "cuMemcpyHtoDAsync", NORI_ERROR_DATA, err));
    return wait_for(self, err);
}

static void release(gpu_self *self, gpu_mem *mem)
{
    own(self)->api.cuMemFree_v2(address(mem));
}

static gpu_mem *make(gpu_self *user, size_t bytes, const void *content, nori_error *err)
{
    cuda_self *self = own(user);
    cuda_address at = 0;
    char what[64];
    snprintf(what, sizeof(what), "cuMemAlloc of %zu bytes", bytes);
    if (nori__cuda_check(self, self->api.cuMemAlloc_v2(&at, bytes), what, NORI_ERROR_MEMORY, err) !=
        NORI_OK) {
        return NULL;
    }
    gpu_mem *mem = (gpu_mem *)(uintptr_t)at;
    if (content && write(self, mem, content, bytes, err) != NORI_OK) {
        release(user, mem);
        return NULL;
    }
    return mem;
}

static gpu_kernel *kernel(gpu_self *user, gpu_source source, const char *name, nori_error *err)
{
    cuda_self *self = own(user);
    gpu_kernel *k = nori__alloc_zero(&nori__malloc, sizeof(*k));
    char what[96];
    if (!k) {
        nori__no_memory(err);
        return NULL;
    }
    snprintf(what, sizeof(what), "cuModuleGetFunction of %s", name);
    if (nori__cuda_check(self,
                         self->api.cuModuleGetFunction(&k->function,
                                                       nori__gpu_program(user, source)->built, name),
                         what,
                         NORI_ERROR_INTERNAL, err) != NORI_OK) {
        nori__release(&nori__malloc, k, sizeof(*k));
        return NULL;
    }
    return k;
}

static void drop_kernel(gpu_self *self, gpu_kernel *k)
{
    (void)self;
    nori__release(&nori__malloc, k, sizeof(*k));
}

static nori_status argument(gpu_self *self, gpu_kernel *k, uint32_t at, size_t size, const void *v,
                            nori_error *err)
{
    (void)self;
    if (at >= CUDA_ARGUMENTS || (v && size > sizeof(k->argument[0])) || size > UINT32_MAX) {
        return nori__fail(err, NORI_ERROR_INTERNAL, "CUDA: argument %u of a kernel has %zu bytes", at,
                          size);
    }
    if (v) {
        memcpy(k->argument[at], v, size);
        k->used |= 1u << at;
    } else {
        k->shared = (unsigned)size;
    }
    return NORI_OK;
}

static size_t group_limit(gpu_self *user, gpu_kernel *k)
{
    cuda_self *self = own(user);
    int most = 0;
    return self->api.cuFuncGetAttribute(&most, CUDA_FUNCTION_MAX_THREADS, k->function) == 0 && most > 0
               ? (size_t)most
               : 0;
}

/* Copies pass through pinned memory: the device reads that by itself. */
static void *staging(cuda_self *self, size_t bytes, nori_error *err)
{
    if (self->staging_size >= bytes) {
        return self->staging;
    }
    if (self->staging) {
        self->api.cuMemFreeHost(self->staging);
        self->staging = NULL;
        self->staging_size = 0;
    }
    if (nori__cuda_check(self, self->api.cuMemAllocHost_v2(&self->staging, bytes), "cuMemAllocHost",
                         NORI_ERROR_MEMORY, err) != NORI_OK) {
        self->staging = NULL;
        return NULL;
    }
    self->staging_size = bytes;
    return self->staging;
}

static void *map(gpu_self *user, gpu_mem *mem, bool write_only, size_t bytes, nori_error *err)
{
    cuda_self *self = own(user);
    void *at = staging(self, bytes, err);
    if (at && !write_only) {
        int code = self->api.cuMemcpyDtoHAsync_v2(at, address(mem), bytes, self->stream);
        if (nori__cuda_check(self, code, "cuMemcpyDtoHAsync", NORI_ERROR_DATA, err) != NORI_OK ||
            wait_for(self, err) != NORI_OK) {
            return NULL;
        }
    }
    return at;
}

static nori_status unmap(gpu_self *user, gpu_mem *mem, void *at, bool write_only, size_t bytes,
                         nori_error *err)
{
    return write_only ? write(own(user), mem, at, bytes, err) : NORI_OK;
}

static void finish(gpu_self *self)
{
    own(self)->api.cuStreamSynchronize(own(self)->stream);
}

const gpu_driver nori__cuda_driver = {
    .name = "cuda",
    .title = "CUDA",
    .enter = enter,
    .leave = leave,
    .make = make,
    .release = release,
    .program = nori__cuda_program,
    .kernel = kernel,
    .argument = argument,
    .group_limit = group_limit,
    .drop_kernel = drop_kernel,
    .map = map,
    .unmap = unmap,
    .product = nori__cuda_product,
    .convolution = nori__cuda_convolution,
    .drop_call = nori__cuda_drop_call,
    .enqueue = nori__cuda_enqueue,
    .finish = finish,
    .forget = nori__cuda_forget,
};
