/* gpu_options.c: what stands behind a provider's name: key=value, comma-separated. */
#include "providers/gpu/gpu.h"

nori_status nori__gpu_bad_value(const gpu_self *self, const char *key, const char *value,
                                const char *expected, nori_error *err)
{
    return nori__fail(err, NORI_ERROR_ARGUMENT, "%s: %s=%s: %s was expected", self->driver->name, key,
                      value, expected);
}

static nori_status take_costs(gpu_self *self, const char *value, nori_error *err)
{
    self->costs_set = true;
    self->free_cost = nori__same(value, "none");
    return self->free_cost || nori__same(value, "estimate")
               ? NORI_OK
               : nori__gpu_bad_value(self, "costs", value, "estimate or none", err);
}

static nori_status take_chains(gpu_self *self, const char *value, nori_error *err)
{
    self->chains_set = true;
    self->chains = nori__same(value, "1");
    return self->chains || nori__same(value, "0")
               ? NORI_OK
               : nori__gpu_bad_value(self, "chains", value, "0 or 1", err);
}

nori_status nori__gpu_options(gpu_self *self, const nori_provider_open *how, gpu_take_option take,
                              nori_error *err)
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
        self->cache_dir = self->text + size;
    }
    char *rest = self->text;
    while (rest && *rest) {
        char *key = rest, *equals = strchr(rest, '='), *comma = strchr(rest, ',');
        if (!equals || (comma && comma < equals)) {
            return nori__fail(err, NORI_ERROR_ARGUMENT, "%s: option \"%s\": key=value was expected",
                              self->driver->name, key);
        }
        rest = comma ? comma + 1 : NULL;
        *equals = 0;
        if (comma) {
            *comma = 0;
        }
        NORI__TRY(nori__same(key, "costs")    ? take_costs(self, equals + 1, err)
                  : nori__same(key, "chains") ? take_chains(self, equals + 1, err)
                                              : take(self, key, equals + 1, err));
    }
    return NORI_OK;
}
