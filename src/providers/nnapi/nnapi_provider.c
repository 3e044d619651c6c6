/* nnapi_provider.c: NNAPI as an execution provider: options, opening, describing. */
#include <stdio.h>

#include "providers/nnapi/nnapi.h"
#include "providers/providers.h"

#define LAUNCH_US 200 /* a guess at a driver in another process */

static nori_status take_option(na_self *self, const char *key, const char *value, nori_error *err)
{
    if (nori__same(key, "costs")) {
        self->free_cost = nori__same(value, "none");
        return self->free_cost || nori__same(value, "estimate")
                   ? NORI_OK
                   : nori__fail(err, NORI_ERROR_ARGUMENT,
                                "nnapi: costs=%s: estimate or none was expected", value);
    }
    const char **text = nori__same(key, "lib")      ? &self->lib
                        : nori__same(key, "device") ? &self->device_want
                                                    : NULL;
    if (!text) {
        nori__fail(err, NORI_ERROR_ARGUMENT, "provider nnapi has no option \"%s\"", key);
        nori__hint(err, "there are lib=PATH, device=NAME and costs=estimate|none; none gives it every "
                        "node it can take");
        return NORI_ERROR_ARGUMENT;
    }
    *text = value;
    return *value ? NORI_OK
                  : nori__fail(err, NORI_ERROR_ARGUMENT, "nnapi: %s=: a text was expected", key);
}

static nori_status read_options(na_self *self, const nori_provider_open *how, nori_error *err)
{
    size_t size = strlen(how->options) + 1, folder = how->cache_dir ? strlen(how->cache_dir) + 1 : 0;
    self->text_bytes = size + folder;
    self->text = nori__alloc(&nori__malloc, self->text_bytes);
    if (!self->text) {
        return nori__no_memory(err);
    }
    memcpy(self->text, how->options, size);
    if (folder) {
        memcpy(self->text + size, how->cache_dir, folder);
        self->cache_dir = self->text + size;
    }
    char *rest = self->text;
    while (rest && *rest) {
        char *key = rest, *equals = strchr(rest, '='), *comma = strchr(rest, ',');
        if (!equals || (comma && comma < equals)) {
            return nori__fail(err, NORI_ERROR_ARGUMENT,
                              "nnapi: option \"%s\": key=value was expected", key);
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

/* The library stays: its threads may sleep in its code. */
static void na_close(void *user)
{
    na_self *self = user;
    nori__release(&nori__malloc, self->text, self->text_bytes);
    nori__release(&nori__malloc, self, sizeof(*self));
}

static nori_status na_open(const nori_provider_open *how, void **user, nori_error *err)
{
    na_self *self = nori__alloc_zero(&nori__malloc, sizeof(*self));
    if (!self) {
        return nori__no_memory(err);
    }
    nori_status status = read_options(self, how, err);
    status = status == NORI_OK ? nori__na_load(self, err) : status;
    if (status != NORI_OK) {
        na_close(self);
        return status;
    }
    *user = self;
    return NORI_OK;
}

/* The costs are guesses: tensors are handed to a driver, which copies them once. */
static nori_status na_describe(void *user, nori_provider_info *info, nori_error *err)
{
    na_self *self = user;
    (void)err;
    snprintf(self->device_name, sizeof(self->device_name), "%s",
             self->device_want ? self->device_want : "chosen by the system");
    self->device = (nori_device){.size = sizeof(self->device), .name = self->device_name,
                                 .kind = "npu", .memory = "device"};
    snprintf(info->engine, sizeof(info->engine), "NNAPI, feature level %lld",
             (long long)self->level);
    info->devices = &self->device;
    info->device_count = 1;
    if (!self->free_cost) {
        info->copy_in_bytes_per_s = info->copy_out_bytes_per_s = 2e9;
        info->launch_ns = LAUNCH_US * 1e3;
    }
    return NORI_OK;
}

const nori_provider nori__nnapi_provider = {
    .size = sizeof(nori_provider),
    .name = "nnapi",
    .description = "Android's NNAPI: floats and 8 bits of fixed shapes, channels last inside a part",
    .open = na_open,
    .close = na_close,
    .describe = na_describe,
    .claim = nori__na_claim,
    .compile = nori__na_compile,
    .run = nori__na_run,
    .free_part = nori__na_free,
};
