/* ocl_options.c: what stands behind "opencl:": key=value, comma-separated. */
#include "providers/opencl/opencl.h"

static nori_status bad_value(const char *key, const char *value, const char *expected,
                             nori_error *err)
{
    return nori__fail(err, NORI_ERROR_ARGUMENT, "opencl: %s=%s: %s was expected", key, value,
                      expected);
}

static nori_status take_option(ocl_self *self, const char *key, const char *value, nori_error *err)
{
    if (nori__same(key, "storage")) {
        self->gpu.half = nori__same(value, "fp16");
        return self->gpu.half || nori__same(value, "fp32") ? NORI_OK
                                                       : bad_value(key, value, "fp32 or fp16", err);
    }
    if (nori__same(key, "costs")) {
        self->gpu.costs_set = true;
        self->gpu.free_cost = nori__same(value, "none");
        return self->gpu.free_cost || nori__same(value, "estimate")
                   ? NORI_OK
                   : bad_value(key, value, "estimate or none", err);
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
        return bad_value(key, value, "auto, always or never", err);
    }
    const char **text = nori__same(key, "lib")        ? &self->lib
                        : nori__same(key, "platform") ? &self->platform_want
                        : nori__same(key, "device")   ? &self->device_want
                                                      : NULL;
    if (!text) {
        nori__fail(err, NORI_ERROR_ARGUMENT, "opencl has no option \"%s\"", key);
        nori__hint(err, "there are storage=fp32|fp16, device=NAME|cpu|gpu, platform=NAME, "
                        "costs=estimate|none, probe=auto|always|never, lib=PATH");
        return NORI_ERROR_ARGUMENT;
    }
    if (!*value) {
        return bad_value(key, value, "a text", err);
    }
    *text = value;
    return NORI_OK;
}

nori_status nori__ocl_options(ocl_self *self, const nori_provider_open *how, nori_error *err)
{
    size_t size = strlen(how->options) + 1, folder = how->cache_dir ? strlen(how->cache_dir) + 1 : 0;
    self->text_size = size + folder;
    self->text = nori__alloc(&nori__malloc, self->text_size);
    if (!self->text) {
        return nori__no_memory(err);
    }
    memcpy(self->text, how->options, size);
    if (how->cache_dir) {
        memcpy(self->text + size, how->cache_dir, folder);
        self->gpu.cache_dir = self->text + size;
    }
    char *rest = self->text;
    while (rest && *rest) {
        char *key = rest, *equals = strchr(rest, '='), *comma = strchr(rest, ',');
        if (!equals || (comma && comma < equals)) {
            return nori__fail(err, NORI_ERROR_ARGUMENT,
                              "opencl: option \"%s\": key=value was expected", key);
        }
        rest = comma ? comma + 1 : NULL;
        *equals = 0;
        if (comma) {
            *comma = 0;
        }
        NORI__TRY(take_option(self, key, equals + 1, err));
    }
    return NORI_OK;
}
