/* cuda_provider.c: the provider cuda: opening, what it costs, closing. */
#include <stdio.h>

#include "providers/cuda/cuda.h"

static void cuda_close(void *user)
{
    cuda_self *self = user;
    const cuda_api *api = &self->api;
    bool entered = self->retained && nori__gpu_enter(&self->gpu, NULL) == NORI_OK;
    if (entered) {
        for (gpu_source i = 0; i < nori__gpu_program_count(&self->gpu); i++) {
            gpu_program *p = nori__gpu_program(&self->gpu, i);
            if (p->built) {
                api->cuModuleUnload(p->built);
            }
        }
        nori__cuda_drop_libraries(self);
        nori__gpu_release(&self->gpu, self->gpu.zero);
        if (self->staging) {
            api->cuMemFreeHost(self->staging);
        }
        if (self->stream) {
            api->cuStreamDestroy_v2(self->stream);
        }
        nori__gpu_leave(&self->gpu);
    }
    if (self->retained) {
        api->cuDevicePrimaryCtxRelease_v2(self->device);
    }
    nori__gpu_end(&self->gpu);
    nori__release(&nori__malloc, self, sizeof(*self));
}

static nori_status start(cuda_self *self, const nori_provider_open *how, nori_error *err)
{
    NORI__TRY(nori__cuda_options(self, how, err));
    if (sizeof(void *) < sizeof(cuda_address)) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE, "CUDA needs a program of 64 bits");
    }
    NORI__TRY(nori__cuda_load(self, err));
    return nori__cuda_find_device(self, err);
}

static nori_status cuda_open(const nori_provider_open *how, void **user, nori_error *err)
{
    cuda_self *self = nori__alloc_zero(&nori__malloc, sizeof(*self));
    if (!self) {
        return nori__no_memory(err);
    }
    nori__gpu_begin(&self->gpu, &nori__cuda_driver, how);
    nori_status status = start(self, how, err);
    if (status != NORI_OK) {
        cuda_close(self);
        return status;
    }
    *user = self;
    return NORI_OK;
}

/* Copies cross a bus, but for boards whose memory is shared. Orders of magnitude; costs=none makes all of
 * it free. */
static nori_status cuda_describe(void *user, nori_provider_info *info, nori_error *err)
{
    cuda_self *self = user;
    (void)err;
    char text[640];
    snprintf(text, sizeof(text),
             "%.60s, compute capability %d.%d, driver for CUDA %d.%d, NVRTC %d.%d, %.300s",
             self->gpu.device_name, self->arch / 10, self->arch % 10, self->driver_version / 1000,
             self->driver_version % 1000 / 10, self->compiler_version[0], self->compiler_version[1],
             self->libraries);
    snprintf(info->engine, sizeof(info->engine), "%.255s", text);
    info->devices = &self->described;
    info->device_count = 1;
    if (self->gpu.free_cost) {
        return NORI_OK;
    }
    info->copy_in_fixed_ns = info->copy_out_fixed_ns = 1e4;
    info->copy_in_bytes_per_s = info->copy_out_bytes_per_s = 1e10;
    info->launch_ns = 1e4;
    return NORI_OK;
}

const nori_provider nori__cuda_provider = {
    .size = sizeof(nori_provider),
    .name = "cuda",
    .description = "NVIDIA's devices by driver and NVRTC, cuBLASLt and cuDNN where they are: fp32, "
                   "recorded graphs",
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .claim = nori__gpu_claim,
    .compile = nori__gpu_compile,
    .run = nori__gpu_run,
    .free_part = nori__gpu_free_part,
    .start = nori__gpu_start,
    .finish = nori__gpu_finish,
};
