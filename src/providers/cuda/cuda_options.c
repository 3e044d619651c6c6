/* cuda_options.c: what stands behind "cuda:": key=value, comma-separated. */
#include <stdlib.h>

#include "providers/cuda/cuda.h"

static nori_status bad_value(const char *key, const char *value, const char *expected,
                             nori_error *err)
{
    return nori__fail(err, NORI_ERROR_ARGUMENT, "cuda: %s=%s: %s was expected", key, value, expected);
}

static nori_status take_option(cuda_self *self, const char *key, const char *value, nori_error *err)
{
    if (nori__same(key, "device")) {
        char *end;
        long n = strtol(value, &end, 10);
        self->device_want = (int)n;
        return *value && !*end && n >= 0 && n < 1000 ? NORI_OK
                                                     : bad_value(key, value, "a number", err);
    }
    if (nori__same(key, "graphs")) {
        self->graphs = nori__same(value, "1");
        return self->graphs || nori__same(value, "0") ? NORI_OK
                                                      : bad_value(key, value, "0 or 1", err);
    }
    if (nori__same(key, "costs")) {
        self->gpu.costs_set = true;
        self->gpu.free_cost = nori__same(value, "none");
        return self->gpu.free_cost || nori__same(value, "estimate")
                   ? NORI_OK
                   : bad_value(key, value, "estimate or none", err);
    }
    const char **text = nori__same(key, "lib")     ? &self->lib
                        : nori__same(key, "nvrtc") ? &self->nvrtc
                                                   : NULL;
    if (!text) {
        nori__fail(err, NORI_ERROR_ARGUMENT, "cuda has no option \"%s\"", key);
        nori__hint(err, "there are device=N, graphs=0|1, costs=estimate|none, lib=PATH, nvrtc=PATH");
        return NORI_ERROR_ARGUMENT;
    }
    *text = value;
    return *value ? NORI_OK : bad_value(key, value, "a path", err);
}

nori_status nori__cuda_options(cuda_self *self, const nori_provider_open *how, nori_error *err)
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
    self->graphs = true;
    char *rest = self->text;
    while (rest && *rest) {
        char *key = rest, *equals = strchr(rest, '='), *comma = strchr(rest, ',');
        if (!equals || (comma && comma < equals)) {
            return nori__fail(err, NORI_ERROR_ARGUMENT,
                              "cuda: option \"%s\": key=value was expected", key);
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
