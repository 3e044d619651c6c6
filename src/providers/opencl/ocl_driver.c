/* ocl_driver.c: what gpu/ asks of a driver, by calls of OpenCL. Buffers are mapped, not copied to and
 * from: where host and device share memory that costs no second copy. */
#include "providers/opencl/opencl.h"

static ocl_self *own(gpu_self *self)
{
    return (ocl_self *)self; /* its first member */
}

static gpu_mem *make(gpu_self *user, size_t bytes, const void *content, nori_error *err)
{
    ocl_self *self = own(user);
    uint64_t flags = content ? OCL_MEM_READ_ONLY | OCL_MEM_COPY_HOST
                             : OCL_MEM_READ_WRITE | OCL_MEM_ALLOC_HOST;
    int32_t code = 0;
    ocl_mem *mem = self->api.clCreateBuffer(self->context, flags, bytes,
                                            (void *)(uintptr_t)content, &code);
    nori__ocl_check(self, mem ? 0 : code ? code : -4, "clCreateBuffer", NORI_ERROR_MEMORY, err);
    return mem;
}

static void release(gpu_self *self, gpu_mem *mem)
{
    own(self)->api.clReleaseMemObject(mem);
}

static gpu_kernel *kernel(gpu_self *user, gpu_source source, const char *name, nori_error *err)
{
    ocl_self *self = own(user);
    int32_t code = 0;
    ocl_kernel *k = self->api.clCreateKernel(nori__gpu_program(user, source)->built, name, &code);
    nori__ocl_check(self, k ? 0 : code ? code : -46, name, NORI_ERROR_INTERNAL, err);
    return k;
}

static nori_status argument(gpu_self *user, gpu_kernel *k, uint32_t at, size_t size, const void *v,
                            nori_error *err)
{
    ocl_self *self = own(user);
    return nori__ocl_check(self, self->api.clSetKernelArg(k, at, size, v), "clSetKernelArg",
                           NORI_ERROR_INTERNAL, err);
}

static size_t group_limit(gpu_self *user, gpu_kernel *k)
{
    ocl_self *self = own(user);
    size_t most = 0;
    return self->api.clGetKernelWorkGroupInfo(k, self->device, OCL_KERNEL_GROUP_SIZE, sizeof(most),
                                              &most, NULL) == 0
               ? most
               : 0;
}

static void drop_kernel(gpu_self *self, gpu_kernel *k)
{
    own(self)->api.clReleaseKernel(k);
}

static void *map(gpu_self *user, gpu_mem *mem, bool write, size_t bytes, nori_error *err)
{
    ocl_self *self = own(user);
    uint64_t how = write ? OCL_MAP_WRITE_INVALIDATE : OCL_MAP_READ;
    int32_t code = 0;
    void *at = self->api.clEnqueueMapBuffer(self->queue, mem, 1, how, 0, bytes, 0, NULL, NULL, &code);
    nori__ocl_check(self, at ? 0 : code ? code : -12, "clEnqueueMapBuffer", NORI_ERROR_DATA, err);
    return at;
}

static nori_status unmap(gpu_self *user, gpu_mem *mem, void *at, bool write, size_t bytes,
                         nori_error *err)
{
    ocl_self *self = own(user);
    (void)write, (void)bytes;
    return nori__ocl_check(self,
                           self->api.clEnqueueUnmapMemObject(self->queue, mem, at, 0, NULL, NULL),
                           "clEnqueueUnmapMemObject", NORI_ERROR_DATA, err);
}

static nori_status enqueue(gpu_self *user, gpu_layout *y, nori_error *err)
{
    ocl_self *self = own(user);
    for (size_t i = 0; i < y->launches.count; i++) {
        const gpu_launch *l = y->launches.items[i];
        NORI__TRY(nori__ocl_check(self,
                                  self->api.clEnqueueNDRangeKernel(self->queue, l->kernel, 3, NULL,
                                                                   l->global, l->local, 0, NULL,
                                                                   NULL),
                                  "clEnqueueNDRangeKernel", NORI_ERROR_DATA, err));
    }
    return nori__ocl_check(self, self->api.clFlush(self->queue), "clFlush", NORI_ERROR_DATA, err);
}

static void finish(gpu_self *self)
{
    own(self)->api.clFinish(own(self)->queue);
}

const gpu_driver nori__ocl_driver = {
    .name = "opencl",
    .title = "OpenCL",
    .make = make,
    .release = release,
    .program = nori__ocl_program,
    .kernel = kernel,
    .argument = argument,
    .group_limit = group_limit,
    .drop_kernel = drop_kernel,
    .map = map,
    .unmap = unmap,
    .enqueue = enqueue,
    .finish = finish,
};
