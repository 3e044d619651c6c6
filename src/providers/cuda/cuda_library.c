/* cuda_library.c: NVIDIA's driver and kernel compiler, opened when asked for, and errors by name. */
#include <stdio.h>

#include "providers/cuda/cuda.h"

static const char *const driver_names[] = {"libcuda.so.1", "libcuda.so"};
static const char *const compiler_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                             "libnvrtc.so"};

nori_status nori__cuda_check(const cuda_self *self, int code, const char *what, nori_status status,
                             nori_error *err)
{
    const char *name = NULL;
    if (code == 0) {
        return NORI_OK;
    }
    if (!self->api.cuGetErrorName || self->api.cuGetErrorName(code, &name) != 0 || !name) {
        name = "an error this driver does not name";
    }
    return nori__fail(err, status, "CUDA: %s gave %s (%d)%s%s", what, name, code,
                      self->gpu.device_name[0] ? " on " : "", self->gpu.device_name);
}

void *nori__cuda_open_first(const char *want, const char *const *names, size_t count, char path[256],
                            char *tried, size_t size)
{
    void *library = NULL;
    size_t used = 0;
    count = want ? 1 : count;
    for (size_t i = 0; i < count && !library; i++) {
        nori_error why = {0};
        snprintf(path, 256, "%s", want ? want : names[i]);
        library = nori__library_open(path, &why);
        if (!library && used < size) {
            used += (size_t)snprintf(tried + used, size - used, "%s%.300s", i ? "; " : "", why.message);
        }
    }
    return library;
}

bool nori__cuda_symbol(void *library, const char *name, void *to)
{
    nori_error why = {0};
    void *symbol = nori__library_symbol(library, name, &why);
    memcpy(to, &symbol, sizeof(symbol)); /* C casts no data to code */
    return symbol != NULL;
}

static nori_status lacks(const char *path, const char *symbol, const char *since, nori_error *err)
{
    return nori__fail(err, NORI_ERROR_UNAVAILABLE, "library %s lacks symbol %s, which %s has", path,
                      symbol, since);
}

#define TAKE(library, path, name, since)                          \
    if (!nori__cuda_symbol(library, #name, &self->api.name)) {    \
        return lacks(path, #name, since, err);                    \
    }

static nori_status load_driver(cuda_self *self, nori_error *err)
{
    char tried[1024] = "";
    self->library = nori__cuda_open_first(self->lib, driver_names, NORI__COUNT(driver_names), self->path,
                                          tried, sizeof(tried));
    if (!self->library) {
        nori__fail(err, NORI_ERROR_UNAVAILABLE, "NVIDIA's driver is not here: %s", tried);
        nori__hint(err, "libcuda.so.1 comes with the driver of the card, not with the CUDA toolkit; "
                        "in a container the runtime brings it in; cuda:lib=PATH names another");
        return NORI_ERROR_UNAVAILABLE;
    }
#define DRIVER_TAKE(name, result, arguments) TAKE(self->library, self->path, name, "a driver of CUDA 11.4")
    CUDA_CALLS(DRIVER_TAKE)
#undef DRIVER_TAKE
    return NORI_OK;
}

static nori_status load_compiler(cuda_self *self, nori_error *err)
{
    char tried[1024] = "";
    self->compiler = nori__cuda_open_first(self->nvrtc, compiler_names, NORI__COUNT(compiler_names),
                                           self->compiler_path, tried, sizeof(tried));
    if (!self->compiler) {
        nori__fail(err, NORI_ERROR_UNAVAILABLE, "NVRTC, which compiles kernels, is not here: %s", tried);
        nori__hint(err, "it is in the CUDA toolkit (11.2 or newer), Debian's libnvrtc11.2, or pip's "
                        "nvidia-cuda-nvrtc; cuda:nvrtc=PATH names one");
        return NORI_ERROR_UNAVAILABLE;
    }
#define NVRTC_TAKE(name, result, arguments) TAKE(self->compiler, self->compiler_path, name, "NVRTC 11.2")
    NVRTC_CALLS(NVRTC_TAKE)
#undef NVRTC_TAKE
    return NORI_OK;
}

nori_status nori__cuda_load(cuda_self *self, nori_error *err)
{
    NORI__TRY(load_driver(self, err));
    return load_compiler(self, err);
}
