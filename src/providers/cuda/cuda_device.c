/* cuda_device.c: the device, what it can do, its context and stream. */
#include <stdio.h>

#include "providers/cuda/cuda.h"

static int attribute(const cuda_self *self, int what)
{
    int v = 0;
    return self->api.cuDeviceGetAttribute(&v, what, self->device) == 0 ? v : 0;
}

static nori_status check_version(cuda_self *self, nori_error *err)
{
    NORI__TRY(nori__cuda_check(self, self->api.cuDriverGetVersion(&self->driver_version),
                               "cuDriverGetVersion", NORI_ERROR_UNAVAILABLE, err));
    if (self->driver_version < CUDA_DRIVER_NEEDED) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "CUDA: the driver %s serves CUDA %d.%d, 11.4 or newer was expected",
                          self->path, self->driver_version / 1000, self->driver_version % 1000 / 10);
    }
    int code = self->api.nvrtcVersion(&self->compiler_version[0], &self->compiler_version[1]);
    return code == 0 ? NORI_OK
                     : nori__fail(err, NORI_ERROR_UNAVAILABLE, "NVRTC: nvrtcVersion gave %s (%d)",
                                  self->api.nvrtcGetErrorString(code), code);
}

static nori_status choose(cuda_self *self, nori_error *err)
{
    int count = 0, code = self->api.cuInit(0);
    if (code != CUDA_NO_DEVICE) {
        NORI__TRY(nori__cuda_check(self, code, "cuInit", NORI_ERROR_UNAVAILABLE, err));
        NORI__TRY(check_version(self, err));
        NORI__TRY(nori__cuda_check(self, self->api.cuDeviceGetCount(&count), "cuDeviceGetCount",
                                   NORI_ERROR_UNAVAILABLE, err));
    }
    if (count == 0) {
        nori__fail(err, NORI_ERROR_UNAVAILABLE, "CUDA: the driver %s finds no device", self->path);
        nori__hint(err, "nvidia-smi lists what there is; CUDA_VISIBLE_DEVICES may hide devices");
        return NORI_ERROR_UNAVAILABLE;
    }
    if (self->device_want >= count) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "CUDA: device=%d is not there: there are %d, counted from 0",
                          self->device_want, count);
    }
    return nori__cuda_check(self, self->api.cuDeviceGet(&self->device, self->device_want),
                            "cuDeviceGet", NORI_ERROR_UNAVAILABLE, err);
}

/* Multiply-accumulates a processor makes in a cycle, of which plain kernels reach a part: 32 of 64 or
 * 128. One core of nori's own makes 25 thousand million a second (plan/cost.c). */
static double guess_speed(int processors, int khz)
{
    double mhz = khz > 0 ? khz / 1000.0 : 1000;
    return (processors > 0 ? processors : 1) * mhz * 32 / 25000;
}

static nori_status look_closer(cuda_self *self, nori_error *err)
{
    gpu_self *gpu = &self->gpu;
    size_t memory = 0;
    char name[128] = "";
    NORI__TRY(nori__cuda_check(self, self->api.cuDeviceGetName(name, sizeof(name), self->device),
                               "cuDeviceGetName", NORI_ERROR_UNAVAILABLE, err));
    snprintf(gpu->device_name, sizeof(gpu->device_name), "%.127s", name);
    NORI__TRY(nori__cuda_check(self, self->api.cuDeviceTotalMem_v2(&memory, self->device),
                               "cuDeviceTotalMem", NORI_ERROR_UNAVAILABLE, err));
    self->memory = memory;
    self->arch = attribute(self, CUDA_MAJOR) * 10 + attribute(self, CUDA_MINOR);
    self->integrated = attribute(self, CUDA_INTEGRATED) != 0;
    gpu->max_alloc = memory;
    gpu->local_memory = (uint64_t)attribute(self, CUDA_SHARED_MEMORY);
    gpu->group_size = (size_t)attribute(self, CUDA_MAX_THREADS);
    gpu->item_sizes[0] = (size_t)attribute(self, CUDA_MAX_BLOCK_X);
    gpu->item_sizes[1] = (size_t)attribute(self, CUDA_MAX_BLOCK_Y);
    gpu->item_sizes[2] = (size_t)attribute(self, CUDA_MAX_BLOCK_Z);
    if (self->arch < 35 || gpu->group_size < 256 || !gpu->item_sizes[0] || !gpu->item_sizes[1]) {
        return nori__fail(err, NORI_ERROR_UNAVAILABLE,
                          "CUDA: device %s has compute capability %d.%d and blocks of %zu threads, 3.5 "
                          "and 256 or more were expected",
                          gpu->device_name, self->arch / 10, self->arch % 10, gpu->group_size);
    }
    gpu->tiles = true;
    gpu->chains = gpu->chains || !gpu->chains_set;
    gpu->speed = guess_speed(attribute(self, CUDA_PROCESSORS), attribute(self, CUDA_CLOCK_KHZ));
    self->described = (nori_device){.size = sizeof(self->described),
                                    .name = gpu->device_name,
                                    .kind = "gpu",
                                    .memory = self->integrated ? "shared" : "device",
                                    .memory_bytes = self->memory};
    return NORI_OK;
}

nori_status nori__cuda_find_device(cuda_self *self, nori_error *err)
{
    const float zero = 0;
    NORI__TRY(choose(self, err));
    NORI__TRY(look_closer(self, err));
    NORI__TRY(nori__cuda_check(self,
                               self->api.cuDevicePrimaryCtxRetain(&self->context, self->device),
                               "cuDevicePrimaryCtxRetain", NORI_ERROR_UNAVAILABLE, err));
    self->retained = true;
    NORI__TRY(nori__gpu_enter(&self->gpu, err));
    nori_status status = nori__cuda_check(
        self, self->api.cuStreamCreate(&self->stream, CUDA_STREAM_NON_BLOCKING), "cuStreamCreate",
        NORI_ERROR_UNAVAILABLE, err);
    if (status == NORI_OK) {
        self->gpu.zero = nori__gpu_floats(&self->gpu, &zero, 1, err);
        status = self->gpu.zero ? NORI_OK : NORI_ERROR_UNAVAILABLE;
    }
    if (status == NORI_OK) {
        status = nori__cuda_find_libraries(self, err);
    }
    nori__gpu_leave(&self->gpu);
    return status;
}
