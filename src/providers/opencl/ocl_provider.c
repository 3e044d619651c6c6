/* ocl_provider.c: the provider opencl: opening, what it costs, closing. */
#include <stdio.h>

#include "providers/opencl/opencl.h"

static void ocl_close(void *user)
{
    ocl_self *self = user;
    const ocl_api *api = &self->api;
    for (gpu_source i = 0; i < nori__gpu_program_count(&self->gpu); i++) {
        gpu_program *p = nori__gpu_program(&self->gpu, i);
        if (p->built) {
            api->clReleaseProgram(p->built);
        }
    }
    if (self->gpu.zero) {
        api->clReleaseMemObject(self->gpu.zero);
    }
    if (self->queue) {
        api->clReleaseCommandQueue(self->queue);
    }
    if (self->context) {
        api->clReleaseContext(self->context);
    }
    nori__gpu_end(&self->gpu);
    nori__release(&nori__malloc, self, sizeof(*self));
}

static nori_status start(ocl_self *self, const nori_provider_open *how, nori_error *err)
{
    NORI__TRY(nori__ocl_options(self, how, err));
    NORI__TRY(nori__ocl_probe(self, err));
    NORI__TRY(nori__ocl_load(self, err));
    return nori__ocl_find_device(self, err);
}

static nori_status ocl_open(const nori_provider_open *how, void **user, nori_error *err)
{
    ocl_self *self = nori__alloc_zero(&nori__malloc, sizeof(*self));
    if (!self) {
        return nori__no_memory(err);
    }
    nori__gpu_begin(&self->gpu, &nori__ocl_driver, how);
    nori_status status = start(self, how, err);
    if (status != NORI_OK) {
        ocl_close(self);
        return status;
    }
    *user = self;
    return NORI_OK;
}

/* Copies: a CPU device reads the same memory, a GPU of a phone as well but for its caches, a card has
 * a bus between. Orders of magnitude; costs=none makes all of it free. */
static nori_status ocl_describe(void *user, nori_provider_info *info, nori_error *err)
{
    ocl_self *self = user;
    (void)err;
    snprintf(info->engine, sizeof(info->engine), "%.90s, %.60s, driver %.40s, %s",
             self->platform_name, self->device_version, self->driver_version,
             self->gpu.half ? "fp16 storage" : "fp32 storage");
    info->devices = &self->described;
    info->device_count = 1;
    if (self->gpu.free_cost) {
        return NORI_OK;
    }
    info->copy_in_fixed_ns = info->copy_out_fixed_ns = self->gpu.is_cpu ? 2e3 : 2e4;
    info->copy_in_bytes_per_s = info->copy_out_bytes_per_s = self->gpu.is_cpu      ? 2e10
                                                             : self->unified ? 5e9
                                                                             : 1e10;
    info->launch_ns = self->gpu.is_cpu ? 1e4 : 5e4;
    return NORI_OK;
}

const nori_provider nori__opencl_provider = {
    .size = sizeof(nori_provider),
    .name = "opencl",
    .description = "OpenCL 1.2 devices, GPUs of phones first: fp32, or opencl:storage=fp16",
    .open = ocl_open,
    .close = ocl_close,
    .describe = ocl_describe,
    .claim = nori__gpu_claim,
    .compile = nori__gpu_compile,
    .run = nori__gpu_run,
    .free_part = nori__gpu_free_part,
    .start = nori__gpu_start,
    .finish = nori__gpu_finish,
};
