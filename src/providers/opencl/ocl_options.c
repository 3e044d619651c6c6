/* ocl_options.c: what stands behind "opencl:": key=value, comma-separated. */
#include "providers/opencl/opencl.h"

static nori_status take_option(gpu_self *gpu, const char *key, const char *value, nori_error *err)
{
    ocl_self *self = (ocl_self *)gpu; /* its first member */
    if (nori__same(key, "storage")) {
        gpu->half = nori__same(value, "fp16");
        return gpu->half || nori__same(value, "fp32")
                   ? NORI_OK
                   : nori__gpu_bad_value(gpu, key, value, "fp32 or fp16", err);
    }
    if (nori__same(key, "probe")) {
        static const char *const words[] = {"auto", "always", "never"};
        for (int i = 0; i < 3; i++) {
            if (nori__same(words[i], value)) {
                self->probe = i == 0   ? OCL_PROBE_AUTO
                              : i == 1 ? OCL_PROBE_ALWAYS
                                       : OCL_PROBE_NEVER;
                return NORI_OK;
            }
        }
        return nori__gpu_bad_value(gpu, key, value, "auto, always or never", err);
    }
    const char **text = nori__same(key, "lib")        ? &self->lib
                        : nori__same(key, "platform") ? &self->platform_want
                        : nori__same(key, "device")   ? &self->device_want
                                                      : NULL;
    if (!text) {
        nori__fail(err, NORI_ERROR_ARGUMENT, "opencl has no option \"%s\"", key);
        nori__hint(err, "there are storage=fp32|fp16, device=NAME|cpu|gpu, platform=NAME, "
                        "costs=estimate|none, chains=0|1, probe=auto|always|never, lib=PATH");
        return NORI_ERROR_ARGUMENT;
    }
    if (!*value) {
        return nori__gpu_bad_value(gpu, key, value, "a text", err);
    }
    *text = value;
    return NORI_OK;
}

nori_status nori__ocl_options(ocl_self *self, const nori_provider_open *how, nori_error *err)
{
    return nori__gpu_options(&self->gpu, how, take_option, err);
}
